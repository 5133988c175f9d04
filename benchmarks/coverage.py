"""Coverage of every interval at nominal 95 %: `python benchmarks/coverage.py [--quick]`.

Rates are enumerated (exact); the rest is simulated. Beside each interval stand those it was chosen over.
`none` is the share of samples without an interval; coverage is among the others. `basis` is the number of
samples; two standard errors are 0.004 at 10,000 and 0.014 at 1,000. Bootstraps beside have 1,000 to 3,000.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations
from time import perf_counter

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from evenhand.stats.auc import delong
from evenhand.stats.bootstrap import CellMoments, Draws, resample
from evenhand.stats.intervals import (
    bonferroni,
    effective_trials,
    logit_normal,
    mover_difference,
    mover_ratio,
    narrowest_ratio,
    student_t,
    welch_difference,
    welch_log_ratio,
    widest_difference,
    wilson,
)
from evenhand.stats.types import FloatArray, IntArray, Interval

SIZES = (200, 2_000, 20_000)
RATES = (0.02, 0.05, 0.1, 0.2, 0.5)
AUC = 0.8
INSIDE = (0.93, 0.97)


@dataclass(frozen=True)
class Effort:
    """How many samples and resamples a simulation may spend."""

    samples: int = 10_000
    boots: int = 3_000
    resamples: int = 2_000


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    size: int
    at: str
    interval: str
    coverage: float
    none: float
    basis: str
    beside: tuple[tuple[str, float], ...] = ()


def covered(limits: Interval, truth: float, probability: FloatArray | None = None) -> tuple[float, float]:
    """Return the coverage among samples with an interval, and the share without one."""
    low, high = np.asarray(limits.low), np.asarray(limits.high)
    share = np.full(low.shape, 1.0 / low.size) if probability is None else probability
    slack = 1e-12 * max(1.0, abs(truth))
    known = ~np.isnan(low) & ~np.isnan(high)
    inside = known & (low <= truth + slack) & (truth - slack <= high)
    return float(share[inside].sum() / share[known].sum()), float(share[~known].sum() / share.sum())


def window(size: int, rate: float) -> tuple[IntArray, FloatArray]:
    """Return the counts that hold all but 1e-12 of a binomial, and their probabilities."""
    low, high = int(binom.ppf(1e-13, size, rate)), int(binom.isf(1e-13, size, rate))
    counts = np.arange(max(low - 1, 0), min(high + 1, size) + 1)
    return counts, np.asarray(binom.pmf(counts, size, rate))


def stack(limits: Sequence[Interval]) -> Interval:
    """Return one Interval of arrays from many."""
    return Interval(
        np.array([float(np.ravel(limit.low)[0]) for limit in limits]),
        np.array([float(np.ravel(limit.high)[0]) for limit in limits]),
    )


# One rate


def single_rate(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Wilson; the percentile bootstrap of a rate is the quantiles of Binomial(n, x / n), so it too is exact."""
    del effort, rng
    counts, probability = window(size, rate)
    observed = counts / size
    coverage, none = covered(wilson(observed, size), rate, probability)
    low, high = (np.asarray(binom.ppf(q, size, observed)) / size for q in (0.025, 0.975))
    percentile = Interval(low, high)
    beside = ("percentile", covered(percentile, rate, probability)[0])
    return [Row("rate", size, f"{rate}", "Wilson", coverage, none, "exact", (beside,))]


def weighted_rate(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Wilson with effective trials; beside it the same with no more trials than Kish's n, and with n itself."""
    samples = min(effort.samples, 40_000_000 // size)
    p, trials, kish = weighted_sample(np.full(samples, rate), size, rng)
    coverage, none = covered(wilson(p, trials), rate)
    beside = (
        ("capped at Kish", covered(wilson(p, np.minimum(trials, kish)), rate)[0]),
        ("n as trials", covered(wilson(p, size), rate)[0]),
    )
    return [Row("rate, weighted", size, f"{rate}", "Wilson, eff. n", coverage, none, f"{samples}", beside)]


def weighted_sample(rate: FloatArray, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weighted rates, effective trials and Kish's n; the weights are lognormal, design effect 1.6."""
    out = np.empty((3, rate.size))
    block = max(1, 400_000 // size)
    for start in range(0, rate.size, block):
        chosen = rate.ravel()[start : start + block]
        weight = np.exp(0.7 * rng.standard_normal((chosen.size, size)))
        hit = rng.random((chosen.size, size)) < chosen[:, None]
        total = weight.sum(axis=1)
        kish = total**2 / (weight**2).sum(axis=1)
        p = (weight * hit).sum(axis=1) / total
        variance = (weight**2 * (hit - p[:, None]) ** 2).sum(axis=1) / total**2
        out[:, start : start + block] = p, effective_trials(p, variance, kish), kish
    p, trials, kish = out.reshape(3, *rate.shape)
    return p, trials, kish


# Two rates


def rate_pair(counts: FloatArray, sums: FloatArray) -> FloatArray:
    """Difference and ratio of two rates; cells: group a yes, no, group b yes, no."""
    del sums
    a = counts[..., 0] / (counts[..., 0] + counts[..., 1])
    b = counts[..., 2] / (counts[..., 2] + counts[..., 3])
    return np.stack([a - b, a / b], axis=-1)


def two_rates(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """MOVER over every pair of counts; BCa on sampled pairs. Group a has four fifths of group b's rate."""
    lower = round(0.8 * rate, 6)
    (x, prob_x), (y, prob_y) = window(size, lower), window(size, rate)
    a, b, probability = x[:, None] / size, y[None, :] / size, prob_x[:, None] * prob_y
    first, second = wilson(a, size), wilson(b, size)
    exact = (mover_difference(a, first, b, second), mover_ratio(a, first, b, second))
    pairs = np.column_stack([rng.binomial(size, lower, effort.boots), rng.binomial(size, rate, effort.boots)])
    distinct, times = np.unique(pairs, axis=0, return_counts=True)
    draws = [
        resample(
            CellMoments.from_counts([int(i), size - int(i), int(j), size - int(j)]),
            rate_pair,
            resamples=effort.resamples,
            rng=rng,
        ).bca()
        for i, j in distinct
    ]
    rows = []
    for k, (what, truth) in enumerate((("difference of rates", lower - rate), ("ratio of rates", 0.8))):
        coverage, none = covered(exact[k], truth, probability)
        bca = stack([Interval(draw.low[k : k + 1], draw.high[k : k + 1]) for draw in draws])
        beside = ("BCa", covered(bca, truth, times.astype(np.float64))[0])
        rows.append(Row(what, size, f"{lower:g} {rate}", "MOVER", coverage, none, "exact", (beside,)))
    return rows


def two_weighted_rates(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """MOVER with effective trials."""
    samples = min(effort.samples, 10_000_000 // size)
    lower = round(0.8 * rate, 6)
    a, n_a, kish_a = weighted_sample(np.full(samples, lower), size, rng)
    b, n_b, kish_b = weighted_sample(np.full(samples, rate), size, rng)
    first, second = wilson(a, n_a), wilson(b, n_b)
    capped = wilson(a, np.minimum(n_a, kish_a)), wilson(b, np.minimum(n_b, kish_b))
    rows = []
    for what, mover, truth in (
        ("difference, weighted", mover_difference, lower - rate),
        ("ratio, weighted", mover_ratio, 0.8),
    ):
        coverage, none = covered(mover(a, first, b, second), truth)
        beside = ("capped at Kish", covered(mover(a, capped[0], b, capped[1]), truth)[0])
        at = f"{lower:g} {rate}"
        rows.append(Row(what, size, at, "MOVER, eff. n", coverage, none, f"{samples}", (beside,)))
    return rows


# Means


def beta_scores(mean: float, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Return scores from Beta(5 m, 5 (1 - m)): skewed, with a standard deviation of 0.2 at m = 0.5."""
    return rng.beta(5 * mean, 5 * (1 - mean), shape)


def summarise(scores: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """Return mean, standard error and degrees of freedom along the last axis."""
    n = scores.shape[-1]
    return scores.mean(axis=-1), scores.std(axis=-1, ddof=1) / np.sqrt(n), n - 1


def score_cells(scores: FloatArray, cell: IntArray, cells: int, *, spread: bool = True) -> CellMoments:
    """Return the cells of scores; without spread, rows are taken to equal their cell's mean."""
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
    """Student's t; the bootstrap of two cells (selected or not at 0.5) with and without the spread within."""
    samples, boots = min(effort.samples, 20_000_000 // size), effort.boots // 2
    limits: list[Interval] = []
    bootstrap: dict[str, list[Interval]] = {"cells": [], "cells, no spread": []}
    for done in range(samples):
        scores = beta_scores(mean, (size,), rng)
        limits.append(student_t(*summarise(scores)))
        for name in bootstrap if done < boots else ():
            cells = score_cells(scores, (scores > 0.5).astype(np.int64), 2, spread=name == "cells")
            draws = resample(cells, overall_mean, resamples=effort.resamples, rng=rng)
            bootstrap[name].append(draws.percentile())
    coverage, none = covered(stack(limits), mean)
    beside = tuple((name, covered(stack(many), mean)[0]) for name, many in bootstrap.items())
    return [Row("mean score", size, f"{mean}", "Student t", coverage, none, f"{samples}", beside)]


def mean_ratio(size: int, mean: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Fieller, as MOVER-R with t limits; the bootstrap of two cells beside it."""
    samples = 2 * effort.samples
    a, b = beta_scores(mean, (samples, size), rng), beta_scores(mean, (samples, size), rng)
    first, second = student_t(*summarise(a)), student_t(*summarise(b))
    coverage, none = covered(mover_ratio(a.mean(axis=-1), first, b.mean(axis=-1), second), 1.0)
    cell = np.repeat([0, 1], size)
    draws = [
        resample(
            score_cells(np.concatenate(pair), cell, 2),
            lambda counts, sums: sums[..., :1, 0] / counts[..., :1] / (sums[..., 1:, 0] / counts[..., 1:]),
            resamples=effort.resamples,
            rng=rng,
        )
        for pair in zip(a[: effort.boots], b[: effort.boots], strict=True)
    ]
    beside = (
        ("percentile", covered(stack([draw.percentile() for draw in draws]), 1.0)[0]),
        ("BCa", covered(stack([draw.bca() for draw in draws]), 1.0)[0]),
    )
    return [Row("ratio of means", size, f"{mean} {mean}", "Fieller", coverage, none, f"{samples}", beside)]


# AUC


def auc(size: int, prevalence: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Logit DeLong; scores of either class are normal, 1.19 apart; the share of positives varies."""
    samples = min(effort.samples, 20_000_000 // size)
    positive = np.arange(size) < round(size * prevalence)
    shift = float(np.sqrt(2) * ndtri(AUC)) * positive
    found = [delong(rng.standard_normal(size) + shift, positive) for _ in range(samples)]
    value, stderr = np.array([x.value for x in found]), np.array([x.stderr for x in found])
    coverage, none = covered(logit_normal(value, stderr), AUC)
    beside = ("plain normal", covered(student_t(value, stderr, np.inf), AUC)[0])
    row = Row("AUC 0.8", size, f"{prevalence}", "logit DeLong", coverage, none, f"{samples}", (beside,))
    return [row]


# Worst pairs

Pairwise = Callable[[int, int, float], tuple[Interval, Interval]]


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
        yield Row(f"worst {kind}, {name}", size, at, "simultaneous", coverage, none, f"{samples}")


def worst_statistic(counts: FloatArray, sums: FloatArray) -> FloatArray:
    """Largest less smallest, and smallest over largest, of the groups' means; one cell per group."""
    means = sums[..., 0] / counts
    low, high = means.min(axis=-1), means.max(axis=-1)
    return np.stack([high - low, low / high], axis=-1)


def percentile_beside(rows: Sequence[Row], draws: Sequence[Draws], truth: Sequence[float]) -> list[Row]:
    """Return the rows with the percentile bootstrap's coverage added."""
    limits = [draw.percentile() for draw in draws]
    found = [covered(Interval(*_column(limits, k)), truth[k])[0] for k in range(len(rows))]
    return [replace(row, beside=(("percentile", coverage),)) for row, coverage in zip(rows, found, strict=True)]


def _column(limits: Sequence[Interval], k: int) -> tuple[FloatArray, FloatArray]:
    return np.array([x.low[k] for x in limits]), np.array([x.high[k] for x in limits])


def worst_means(size: int, groups: int, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Mean scores of equal groups: Welch t intervals of the pairs."""
    samples, mean = effort.samples, 0.3
    scores = beta_scores(mean, (groups, samples, size), rng)
    m, se, df = summarise(scores)

    def pairwise(i: int, j: int, confidence: float) -> tuple[Interval, Interval]:
        six = (m[i], se[i], df, m[j], se[j], df, confidence)
        return welch_difference(*six), welch_log_ratio(*six)

    rows = worst_pair_rows("means", size, f"{groups} equal", np.full(groups, mean), samples, pairwise)
    cell = np.repeat(np.arange(groups), size)
    draws = [
        resample(
            score_cells(scores[:, s].ravel(), cell, groups),
            worst_statistic,
            resamples=effort.resamples,
            rng=rng,
        )
        for s in range(effort.boots // 2)
    ]
    return percentile_beside(list(rows), draws, (0.0, 1.0))


def worst_rate_statistic(counts: FloatArray, sums: FloatArray) -> FloatArray:
    """Return the same of rates; cells: all groups' yes, then all groups' no."""
    del sums
    yes, no = np.split(counts, 2, axis=-1)
    return worst_statistic(yes + no, yes[..., None])


def worst_rates(size: int, groups: int, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Rates of equal groups (0.3), and of groups one of which has four fifths: MOVER intervals of the pairs."""
    rows: list[Row] = []
    for at, lowest in ((f"{groups} equal", 0.3), (f"{groups}, one at 4/5", 0.24)):
        truth = np.full(groups, 0.3)
        truth[-1] = lowest
        rates = np.broadcast_to(truth[:, None], (groups, effort.samples))
        counts = rng.binomial(size, rates)
        plain = list(worst_pair_rows("rates", size, at, truth, effort.samples, mover_pairs(counts / size, size)))
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
        p, trials, kish = weighted_sample(np.array(rates), size, rng)
        many = effort.samples
        weighted = worst_pair_rows("weighted rates", size, at, truth, many, mover_pairs(p, trials))
        least = mover_pairs(p, np.minimum(trials, kish))
        capped = worst_pair_rows("weighted rates", size, at, truth, many, least)
        for row, other in zip(weighted, capped, strict=True):
            rows.append(replace(row, beside=(("capped at Kish", other.coverage),)))
    return rows


def mover_pairs(p: FloatArray, trials: FloatArray | int) -> Pairwise:
    """Return the MOVER intervals of a pair of groups at a given confidence."""
    n = np.broadcast_to(np.asarray(trials, dtype=np.float64), p.shape)

    def pairwise(i: int, j: int, confidence: float) -> tuple[Interval, Interval]:
        first, second = wilson(p[i], n[i], confidence), wilson(p[j], n[j], confidence)
        return mover_difference(p[i], first, p[j], second), mover_ratio(p[i], first, p[j], second)

    return pairwise


# The table

Task = tuple[Callable[[int, float, Effort, np.random.Generator], list[Row]], int, float, Effort, int]


def tasks(effort: Effort) -> list[Task]:
    """Return every simulation with its own seed, so that the table does not depend on their order."""
    grid = [(size, rate) for size in SIZES for rate in RATES]
    small = [(size, mean) for size in (10, 15, 20) for mean in (0.2, 0.5)]
    worst = [(size, groups) for size in (15, 200) for groups in (2, 4)]
    plan = [
        *((single_rate, size, rate) for size, rate in grid),
        *((weighted_rate, size, rate) for size, rate in grid),
        *((two_rates, size, rate) for size, rate in grid),
        *((two_weighted_rates, size, rate) for size, rate in grid if size < 20_000),
        *((mean_score, size, rate) for size, rate in grid),
        *((auc, size, rate) for size, rate in grid),
        *((mean_ratio, size, mean) for size, mean in small),
        *((worst_means, size, groups) for size, groups in worst),
        *((worst_rates, size, groups) for size, groups in worst),
    ]
    return [(run, size, at, effort, seed) for seed, (run, size, at) in enumerate(plan)]  # type: ignore[misc]


def perform(task: Task) -> list[Row]:
    """Run one simulation."""
    run, size, at, effort, seed = task
    with np.errstate(all="ignore"):
        return run(size, at, effort, np.random.default_rng(seed))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples: a look, not a measurement")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(argv)
    effort = Effort(400, 60, 500) if options.quick else Effort()
    start = perf_counter()
    with ProcessPoolExecutor(options.processes) as pool:
        rows = [row for rows in pool.map(perform, tasks(effort)) for row in rows]
    print(f"{'quantity':33}{'n':>7}  {'at':15}{'interval':16}{'covers':>7}{'none':>7}  {'basis':7} beside")
    for row in rows:
        beside = "   ".join(f"{name} {coverage:.3f}" for name, coverage in row.beside)
        print(
            f"{row.what:33}{row.size:>7,}  {row.at:15}{row.interval:16}{row.coverage:>7.3f}{row.none:>7.3f}"
            f"  {row.basis:7} {beside}"
        )
    outside = [row for row in rows if not INSIDE[0] <= row.coverage <= INSIDE[1]]
    print(f"{len(rows)} rows in {perf_counter() - start:.0f} s; two standard errors: 0.004 at 10,000 samples.")
    named = "; ".join(f"{row.what} n={row.size} {row.at} ({row.coverage:.4f})" for row in outside)
    print(f"Outside 93-97 %: {named or 'none'}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
