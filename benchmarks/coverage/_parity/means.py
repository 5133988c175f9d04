"""Coverage of the intervals of mean scores, their differences and ratios, and of AUCs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from benchmarks.coverage._parity.core import UNEXPLAINED, Effort, Row, areas, compare, covered, means, stack, survey
from benchmarks.coverage._parity.rates import KINDS, drawn_weights
from evenhand.audits.parity.estimate import GroupValues
from evenhand.stats.auc import delong
from evenhand.stats.bootstrap import CellMoments, resample
from evenhand.stats.intervals import logit_t, student_t, welch_difference
from evenhand.stats.types import FloatArray, IntArray, Interval

AUC = 0.8

Summary = tuple[FloatArray, FloatArray, FloatArray]
"""Means, standard errors and degrees of freedom of many samples."""


def welch_log_ratio(a: Summary, b: Summary, confidence: float = 0.95) -> Interval:
    """Return a ratio's interval from Welch's interval of log means; nan unless both means are positive."""
    with np.errstate(all="ignore"):
        logs = [(np.log(mean), stderr / mean, df) for mean, stderr, df in (a, b)]
        return Interval(*np.exp(welch_difference(logs[0], logs[1], confidence)))


def beta_scores(mean: float, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Return Beta(5 m, 5 (1 - m)) scores, which are skewed, with standard deviation 0.2 at m = 0.5."""
    return rng.beta(5 * mean, 5 * (1 - mean), shape)


def skewed(mean: float, size: int) -> str:
    """Return a note on the skewness of means of such scores if it is large."""
    a, b = 5 * mean, 5 * (1 - mean)
    skewness = 2 * (b - a) * np.sqrt(a + b + 1) / ((a + b + 2) * np.sqrt(a * b)) / np.sqrt(size)
    return f"skewed rows (skewness of the mean {skewness:.2f})" if abs(skewness) > 0.2 else UNEXPLAINED


def summarise(scores: FloatArray) -> Summary:
    """Return mean, standard error and degrees of freedom along the last axis."""
    n = scores.shape[-1]
    means = scores.mean(axis=-1)
    return means, scores.std(axis=-1, ddof=1) / np.sqrt(n), np.full(means.shape, n - 1.0)


def in_blocks(samples: int, size: int, block: Callable[[int], Summary]) -> Summary:
    """Return the summaries of many samples, drawn in small blocks."""
    step = max(1, 400_000 // size)
    parts = [block(min(step, samples - start)) for start in range(0, samples, step)]
    mean, stderr, df = (np.concatenate([part[k] for part in parts]) for k in range(3))
    return mean, stderr, df


def score_cells(scores: FloatArray, cell: IntArray, cells: int, *, spread: bool = True) -> CellMoments:
    """Return the cell moments of scores; without `spread`, as if all rows equalled their cell's mean."""
    n = np.bincount(cell, minlength=cells).astype(np.int64)
    first, second = (
        np.bincount(cell, weights=values, minlength=cells).astype(np.float64) for values in (scores, scores**2)
    )
    if not spread:
        second = first**2 / np.maximum(n, 1)
    return CellMoments(n, first[:, None], second[:, None, None])


def overall_mean(counts: FloatArray, sums: FloatArray) -> FloatArray:
    """Return the mean over all cells."""
    return np.asarray(sums.sum(axis=-2) / counts.sum(axis=-1, keepdims=True))


def mean_score(size: int, mean: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage of the logit t interval of one mean."""
    samples = effort.samples_of(size)
    b = in_blocks(samples, size, lambda s: summarise(beta_scores(mean, (s, size), rng)))
    coverage, none = covered(means(b).limits(0.95), mean)
    beside = (("plain t", covered(student_t(*b), mean)[0]), *bootstrapped_mean(size, mean, effort, rng))
    one = Row("mean score", size, f"{mean}", "logit t", coverage, none, samples, beside, skewed(mean, size))
    return [one]


def bootstrapped_mean(
    size: int, mean: float, effort: Effort, rng: np.random.Generator
) -> tuple[tuple[str, float], ...]:
    """Return the coverage of the bootstrap of two cells (selected or not), with and without spread within cells."""
    limits: dict[str, list[Interval]] = {"cells": [], "cells, no spread": []}
    for _ in range(effort.boots // 3):
        scores = beta_scores(mean, (size,), rng)
        for name, many in limits.items():
            cells = score_cells(scores, (scores > 0.5).astype(np.int64), 2, spread=name == "cells")
            many.append(resample(cells, overall_mean, resamples=effort.resamples, rng=rng).percentile())
    return tuple((name, covered(stack(many), mean)[0]) for name, many in limits.items())


def weighted_mean(size: int, mean: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage of logit t for weighted means, with Kish's n - 1 df and design effect 1.6."""
    samples = effort.samples_of(2 * size)

    def block(count: int) -> Summary:
        weight, scores = drawn_weights(count, size, rng), beta_scores(mean, (count, size), rng)
        found = survey("mean_score", weight, score=scores)
        return found.value, found.stderr, found.trials - 1

    found = in_blocks(samples, size, block)
    coverage, none = covered(means(found).limits(0.95), mean)
    beside = (("plain t", covered(student_t(*found), mean)[0]),)
    why = skewed(mean, size)
    return [Row("mean score, weighted", size, f"{mean}", "logit t", coverage, none, samples, beside, why)]


def auc(size: int, prevalence: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage of logit t with DeLong's error for one AUC and for pairs of equal AUCs."""
    samples = effort.samples_of(2 * size)
    positive = np.arange(size) < round(size * prevalence)
    shift = float(np.sqrt(2) * ndtri(AUC)) * positive
    found = [delong(rng.standard_normal(size) + shift, positive) for _ in range(samples)]
    value, stderr = np.array([x.value for x in found]), np.array([x.stderr for x in found])
    rarer = int(min(positive.sum(), size - positive.sum()))
    why = f"only {rarer} rows of a class" if rarer <= 20 else UNEXPLAINED
    shipped = areas(value, stderr, rarer)
    coverage, none = covered(shipped.limits(0.95), AUC)
    beside = (("logit normal", covered(logit_t(value, stderr, np.inf), AUC)[0]),)
    name = "logit t DeLong"
    rows = [Row(f"AUC {AUC}", size, f"{prevalence}", name, coverage, none, samples, beside, why)]
    first, second = np.arange(samples // 2), np.arange(samples // 2, 2 * (samples // 2))

    def halves(values: GroupValues) -> tuple[GroupValues, GroupValues]:
        return values.only(first), values.only(second)

    for kind, truth in zip(KINDS, (0.0, 1.0), strict=True):
        coverage, none = covered(compare(*halves(shipped), kind, 0.95), truth)
        what, at = f"{kind} of AUCs", f"{prevalence}"
        apart, error = value[first] - value[second], np.hypot(stderr[first], stderr[second])
        by_z = covered(Interval(apart - 1.959964 * error, apart + 1.959964 * error), 0.0)[0]
        others = (("DeLong's z", by_z),) if kind == "difference" else ()
        rows.append(Row(what, size, at, "MOVER", coverage, none, first.size, others, why))
    return rows
