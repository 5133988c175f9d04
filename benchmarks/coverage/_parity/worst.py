"""Coverage of the intervals of the worst pair of several groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from benchmarks.coverage._parity.core import Effort, Row, areas, compare, covered, rates, stack
from benchmarks.coverage._parity.means import AUC
from benchmarks.coverage._parity.rates import KINDS, weighted_sample
from evenhand.audits.parity.estimate import GroupValues
from evenhand.core.records import Kind
from evenhand.stats.auc import delong
from evenhand.stats.bootstrap import CellMoments, resample
from evenhand.stats.draws import Draws
from evenhand.stats.intervals import (
    bonferroni,
    mover_difference,
    mover_ratio,
    wilson,
)
from evenhand.stats.types import FloatArray, IntArray, Interval
from evenhand.stats.worst_pair import narrowest_ratio, range_confidence, widest_difference

Pairwise = Callable[[int, int, Kind, float], Interval]
"""Intervals of the difference or of the ratio of two groups at a confidence, one a sample."""


def worst_pair_limits(
    groups: int, samples: int, kind: Kind, pairwise: Pairwise, *, bonferronis: bool = False
) -> Interval:
    """Return limits of the largest difference or smallest ratio over all pairs of groups, one per sample.

    They are computed as in `evenhand.stats.worst_pair.worst_pair`, or with Bonferroni's level at both ends.
    """
    every = bonferroni(0.95, groups * (groups - 1) // 2)
    levels = (every, every) if bonferronis else (range_confidence(0.95, groups), 0.95)
    ends = []
    for confidence in levels:
        pairs = [pairwise(i, j, kind, confidence) for i, j in combinations(range(groups), 2)]
        ends.append([np.stack([np.asarray(pair[side]) for pair in pairs], axis=1) for side in (0, 1)])
    combine = widest_difference if kind == "difference" else narrowest_ratio
    limits = np.array([combine(*(Interval(low[s], high[s]) for low, high in ends)) for s in range(samples)])
    return Interval(limits[:, 0], limits[:, 1])


def worst_pair_rows(
    name: str, size: int, at: str, truth: FloatArray, samples: int, pairwise: Pairwise
) -> Iterator[Row]:
    """Yield the results for the largest difference and the smallest ratio over all pairs of groups."""
    for kind in KINDS:
        limits, before = (
            worst_pair_limits(truth.size, samples, kind, pairwise, bonferronis=old) for old in (False, True)
        )
        coverage, none = covered(limits, target(truth, kind))
        widths = [float(np.nanmean(np.asarray(found.high) - np.asarray(found.low))) for found in (limits, before)]
        spread = (("mean width", widths[0]), ("mean width by Bonferroni", widths[1]))
        beside = (*spread, ("Bonferroni", covered(before, target(truth, kind))[0]))
        what = f"worst {kind}, {name}"
        yield Row(what, size, at, "worst pair", coverage, none, samples, beside)


def target(truth: FloatArray, kind: Kind) -> float:
    """Return the true gap of the worst pair."""
    return float(truth.max() - truth.min() if kind == "difference" else truth.min() / truth.max())


def of_groups(groups: Sequence[GroupValues]) -> Pairwise:
    """Return the audits' function for simultaneous intervals of pairs of groups."""
    return lambda i, j, kind, confidence: compare(groups[i], groups[j], kind, confidence)


def of_counts(counts: IntArray, sizes: Sequence[int], *, exact: bool = True) -> Pairwise:
    """Return a function for intervals of pairs of rates, exact or from Wilson's limits."""

    def pairwise(i: int, j: int, kind: Kind, confidence: float) -> Interval:
        code, at = np.unique(counts[i] * (sizes[j] + 1) + counts[j], return_inverse=True)
        a, b = code // (sizes[j] + 1) / sizes[i], code % (sizes[j] + 1) / sizes[j]
        if exact:
            found = compare(rates(a, sizes[i]), rates(b, sizes[j]), kind, confidence)
        else:
            move = mover_difference if kind == "difference" else mover_ratio
            found = move(a, wilson(a, sizes[i], confidence), b, wilson(b, sizes[j], confidence))
            empty = (a == 0) & (b == 0) & (kind == "ratio")
            found = Interval(np.where(empty, 0.0, found.low), np.where(empty, np.inf, found.high))
        return Interval(found.low[at], found.high[at])

    return pairwise


def worst_statistic(counts: FloatArray, sums: FloatArray) -> FloatArray:
    """Return largest - smallest and smallest / largest of the groups' means; one cell per group."""
    values = sums[..., 0] / counts
    low, high = values.min(axis=-1), values.max(axis=-1)
    return np.stack([high - low, low / high], axis=-1)


def worst_rate_statistic(counts: FloatArray, sums: FloatArray) -> FloatArray:
    """Return the worst difference and ratio of rates; cells are all groups' yes, then all groups' no."""
    del sums
    yes, no = np.split(counts, 2, axis=-1)
    return worst_statistic(yes + no, yes[..., None])


def percentile_beside(rows: Sequence[Row], draws: Sequence[Draws], truth: Sequence[float]) -> list[Row]:
    """Return the results with the coverage of the percentile bootstrap added."""
    limits = [draw.percentile() for draw in draws]
    found = [covered(stack(limits, k), truth[k])[0] for k in range(len(rows))]
    return [
        replace(row, beside=(*row.beside, ("percentile", coverage))) for row, coverage in zip(rows, found, strict=True)
    ]


def wilson_beside(rows: Sequence[Row], counts: IntArray, sizes: Sequence[int], truth: FloatArray) -> list[Row]:
    """Return the results with the coverage of MOVER from Wilson's limits added."""
    pairwise = of_counts(counts, sizes, exact=False)
    found = [
        covered(worst_pair_limits(len(sizes), counts.shape[1], kind, pairwise), target(truth, kind))[0]
        for kind in KINDS
    ]
    return [replace(row, beside=(*row.beside, ("Wilson", coverage))) for row, coverage in zip(rows, found, strict=True)]


def worst_rates(size: int, groups: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage for equal groups (rate 0.3), and for groups with one at four fifths."""
    rows: list[Row] = []
    many, samples = int(groups), effort.samples
    for at, lowest in ((f"{many} equal", 0.3), (f"{many}, one at 4/5", 0.24)):
        truth = np.full(many, 0.3)
        truth[-1] = lowest
        values = np.broadcast_to(truth[:, None], (many, samples))
        counts, sizes = rng.binomial(size, values), [size] * many
        plain = list(worst_pair_rows("rates", size, at, truth, samples, of_counts(counts, sizes)))
        draws = [
            resample(
                CellMoments.from_counts(np.concatenate([counts[:, s], size - counts[:, s]])),
                worst_rate_statistic,
                resamples=effort.resamples,
                rng=rng,
            )
            for s in range(min(samples, effort.boots // 2))
        ]
        plain = wilson_beside(plain, counts, sizes, truth)
        rows += percentile_beside(plain, draws, (0.3 - lowest, lowest / 0.3))
        found, uncapped = weighted_sample(np.array(values), size, rng)
        shipped, other = (
            worst_pair_rows("weighted rates", size, at, truth, samples, of_groups(_apart(sides)))
            for sides in (found, replace(found, trials=uncapped))
        )
        for row, without in zip(shipped, other, strict=True):
            rows.append(replace(row, beside=(("without cap", without.coverage),)))
    return rows


def _apart(values: GroupValues) -> list[GroupValues]:
    """Return the samples of each group from values of shape (groups, samples)."""
    return [rates(value, trials) for value, trials in zip(values.value, values.trials, strict=True)]


def uneven_rates(size: int, many: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage for one group of 5,000 and many of `size` at one rate; `many` 30.02 means 30 at 0.02."""
    small, rate = int(many), round(many % 1, 4)
    sizes, samples = [5_000, *[size] * small], effort.samples
    counts = np.stack([rng.binomial(n, rate, samples) for n in sizes])
    truth = np.full(len(sizes), rate)
    at = f"5000 + {small}x{size}, {rate}"
    rows = list(worst_pair_rows("uneven rates", size, at, truth, samples, of_counts(counts, sizes)))
    return wilson_beside(rows, counts, sizes, truth)


def worst_areas(size: int, prevalence: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage for AUCs of four equal groups, with DeLong's errors and Student's t on the logit scale."""
    samples, positive = effort.samples // 4, np.arange(size) < round(size * prevalence)
    shift = float(np.sqrt(2) * ndtri(AUC)) * positive
    rarer = int(min(positive.sum(), size - positive.sum()))
    sides = []
    for _ in range(4):
        found = [delong(rng.standard_normal(size) + shift, positive) for _ in range(samples)]
        sides.append(areas(np.array([x.value for x in found]), np.array([x.stderr for x in found]), rarer))
    at = f"4 equal, {prevalence}"
    return list(worst_pair_rows("AUCs", size, at, np.full(4, AUC), samples, of_groups(sides)))
