"""Coverage of the intervals of the worst pair of several groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from _coverage_core import Effort, Row, covered, stack
from _coverage_means import beta_scores, score_cells, summarise
from _coverage_rates import weighted_sample

from evenhand.stats.bootstrap import CellMoments, Draws, resample
from evenhand.stats.intervals import (
    bonferroni,
    mover_difference,
    mover_ratio,
    narrowest_ratio,
    welch_difference,
    welch_log_ratio,
    widest_difference,
    wilson,
)
from evenhand.stats.types import FloatArray, Interval

SIMULTANEOUS = "simultaneous intervals are conservative (more so where groups differ)"

Pairwise = Callable[[int, int, float], tuple[Interval, Interval]]
"""Intervals of the difference and of the ratio of two groups at a confidence."""


def worst_pair_rows(
    name: str, size: int, at: str, truth: FloatArray, samples: int, pairwise: Pairwise
) -> Iterator[Row]:
    """Yield the rows of the widest difference and of the narrowest ratio over all pairs of groups."""
    groups = truth.size
    confidence = bonferroni(0.95, groups * (groups - 1) // 2)
    pairs = [pairwise(i, j, confidence) for i, j in combinations(range(groups), 2)]
    for k, combine, target, kind in (
        (0, widest_difference, truth.max() - truth.min(), "difference"),
        (1, narrowest_ratio, truth.min() / truth.max(), "ratio"),
    ):
        low, high = (np.stack([pair[k][side] for pair in pairs]) for side in (0, 1))
        limits = np.array([combine(low[:, s], high[:, s]) for s in range(samples)])
        coverage, none = covered(Interval(limits[:, 0], limits[:, 1]), float(target))
        what = f"worst {kind}, {name}"
        yield Row(what, size, at, "simultaneous", coverage, none, samples, above=SIMULTANEOUS)


def worst_statistic(counts: FloatArray, sums: FloatArray) -> FloatArray:
    """Largest less smallest, and smallest over largest, of the groups' means; one cell per group."""
    means = sums[..., 0] / counts
    low, high = means.min(axis=-1), means.max(axis=-1)
    return np.stack([high - low, low / high], axis=-1)


def worst_rate_statistic(counts: FloatArray, sums: FloatArray) -> FloatArray:
    """Return the same of rates; cells: all groups' yes, then all groups' no."""
    del sums
    yes, no = np.split(counts, 2, axis=-1)
    return worst_statistic(yes + no, yes[..., None])


def percentile_beside(rows: Sequence[Row], draws: Sequence[Draws], truth: Sequence[float]) -> list[Row]:
    """Return the rows with the percentile bootstrap's coverage added."""
    limits = [draw.percentile() for draw in draws]
    found = [covered(stack(limits, k), truth[k])[0] for k in range(len(rows))]
    return [replace(row, beside=(("percentile", coverage),)) for row, coverage in zip(rows, found, strict=True)]


def worst_means(size: int, groups: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Mean scores of equal groups: Welch t intervals of the pairs."""
    samples, mean, many = effort.samples, 0.3, int(groups)
    scores = beta_scores(mean, (many, samples, size), rng)
    m, se, df = summarise(scores)

    def pairwise(i: int, j: int, confidence: float) -> tuple[Interval, Interval]:
        six = (m[i], se[i], df[i], m[j], se[j], df[j], confidence)
        return welch_difference(*six), welch_log_ratio(*six)

    rows = worst_pair_rows("means", size, f"{many} equal", np.full(many, mean), samples, pairwise)
    cell = np.repeat(np.arange(many), size)
    draws = [
        resample(
            score_cells(scores[:, s].ravel(), cell, many), worst_statistic, resamples=effort.resamples, rng=rng
        )
        for s in range(effort.boots // 2)
    ]  # fmt: skip
    return percentile_beside(list(rows), draws, (0.0, 1.0))


def worst_rates(size: int, groups: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Rates of equal groups (0.3), and of groups one of which has four fifths: MOVER intervals of the pairs."""
    rows: list[Row] = []
    many, samples = int(groups), effort.samples
    for at, lowest in ((f"{many} equal", 0.3), (f"{many}, one at 4/5", 0.24)):
        truth = np.full(many, 0.3)
        truth[-1] = lowest
        rates = np.broadcast_to(truth[:, None], (many, samples))
        counts = rng.binomial(size, rates)
        plain = list(worst_pair_rows("rates", size, at, truth, samples, mover_pairs(counts / size, size)))
        draws = [
            resample(
                CellMoments.from_counts(np.concatenate([counts[:, s], size - counts[:, s]])),
                worst_rate_statistic,
                resamples=effort.resamples,
                rng=rng,
            )
            for s in range(effort.boots // 2)
        ]
        rows += percentile_beside(plain, draws, (0.3 - lowest, lowest / 0.3))
        p, trials, uncapped = weighted_sample(np.array(rates), size, rng)
        shipped, other = (
            worst_pair_rows("weighted rates", size, at, truth, samples, mover_pairs(p, n)) for n in (trials, uncapped)
        )
        for row, without in zip(shipped, other, strict=True):
            rows.append(replace(row, beside=(("without cap", without.coverage),)))
    return rows


def mover_pairs(p: FloatArray, trials: FloatArray | int) -> Pairwise:
    """Return the MOVER intervals of a pair of groups at a given confidence."""
    n = np.broadcast_to(np.asarray(trials, dtype=np.float64), p.shape)

    def pairwise(i: int, j: int, confidence: float) -> tuple[Interval, Interval]:
        first, second = wilson(p[i], n[i], confidence), wilson(p[j], n[j], confidence)
        return mover_difference(p[i], first, p[j], second), mover_ratio(p[i], first, p[j], second)

    return pairwise
