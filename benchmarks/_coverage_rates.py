"""Coverage of the intervals of rates, plain and weighted, one and two of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from _coverage_core import UNEXPLAINED, Effort, Row, covered, stack
from scipy.stats import binom

from evenhand.stats.bootstrap import CellMoments, resample
from evenhand.stats.intervals import effective_trials, mover_difference, mover_ratio, wilson
from evenhand.stats.types import FloatArray, IntArray, Interval


def window(size: int, rate: float) -> tuple[IntArray, FloatArray]:
    """Return the counts that hold all but 1e-12 of a binomial, and their probabilities."""
    low, high = int(binom.ppf(1e-13, size, rate)), int(binom.isf(1e-13, size, rate))
    counts = np.arange(max(low - 1, 0), min(high + 1, size) + 1)
    return counts, np.asarray(binom.pmf(counts, size, rate))


def discrete(size: int, rate: float, coverage: Callable[[float], float]) -> str:
    """Say what the coverage is at rates nearby, where positives are few enough for it to jump."""
    if size * rate >= 20:
        return UNEXPLAINED
    nearby = [coverage(rate * factor) for factor in np.linspace(0.9, 1.1, 21)]
    return f"few discrete counts (rates 10 % either side: {min(nearby):.3f}-{max(nearby):.3f})"


def cap(size: int, rate: float) -> str:
    """Say that Kish's cap is conservative, where positives are few."""
    return "Kish's cap is conservative with few positives" if size * rate <= 20 else UNEXPLAINED


def single_rate(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Wilson; the percentile bootstrap of a rate is the quantiles of Binomial(n, x / n), so it too is exact."""
    del effort, rng

    def wilson_at(p: float) -> float:
        counts, probability = window(size, p)
        return covered(wilson(counts / size, size), p, probability)[0]

    counts, probability = window(size, rate)
    low, high = (np.asarray(binom.ppf(q, size, counts / size)) / size for q in (0.025, 0.975))
    beside = ("percentile", covered(Interval(low, high), rate, probability)[0])
    why = discrete(size, rate, wilson_at)
    return [Row("rate", size, f"{rate}", "Wilson", wilson_at(rate), 0.0, 0, (beside,), why, why)]


def rate_pair(counts: FloatArray, sums: FloatArray) -> FloatArray:
    """Difference and ratio of two rates; cells: group a yes, no, group b yes, no."""
    del sums
    a = counts[..., 0] / (counts[..., 0] + counts[..., 1])
    b = counts[..., 2] / (counts[..., 2] + counts[..., 3])
    return np.stack([a - b, a / b], axis=-1)


def exact_pair(size: int, rate: float, *, ratio: bool) -> tuple[float, float]:
    """Return the coverage of MOVER over every pair of counts, and the share without an interval."""
    (x, prob_x), (y, prob_y) = window(size, 0.8 * rate), window(size, rate)
    a, b = x[:, None] / size, y[None, :] / size
    mover, truth = (mover_ratio, 0.8) if ratio else (mover_difference, -0.2 * rate)
    return covered(mover(a, wilson(a, size), b, wilson(b, size)), truth, prob_x[:, None] * prob_y)


def two_rates(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """MOVER over every pair of counts; BCa on sampled pairs. Group a has four fifths of group b's rate."""
    pairs = np.column_stack([rng.binomial(size, 0.8 * rate, effort.boots), rng.binomial(size, rate, effort.boots)])
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
    for k, (what, truth) in enumerate((("difference of rates", -0.2 * rate), ("ratio of rates", 0.8))):
        is_ratio = k == 1
        coverage, none = exact_pair(size, rate, ratio=is_ratio)
        beside = ("BCa", covered(stack(draws, k), truth, times.astype(np.float64))[0])
        why = discrete(size, rate, lambda p, r=is_ratio: exact_pair(size, p, ratio=r)[0])  # type: ignore[misc]
        rows.append(Row(what, size, pair_name(rate), "MOVER", coverage, none, 0, (beside,), why, why))
    return rows


def pair_name(rate: float) -> str:
    """Return 'a b' for a rate b and four fifths of it."""
    return f"{0.8 * rate:g} {rate:g}"


def weighted_sample(rate: FloatArray, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weighted rates, effective trials, and these without Kish's cap; weights lognormal, design effect 1.6."""
    out = np.empty((3, rate.size))
    block = max(1, 400_000 // size)
    for start in range(0, rate.size, block):
        chosen = rate.ravel()[start : start + block]
        weight = np.exp(0.7 * rng.standard_normal((chosen.size, size)))
        hit = rng.random((chosen.size, size)) < chosen[:, None]
        total = weight.sum(axis=1)
        squares = weight * weight
        kish = total**2 / squares.sum(axis=1)
        p = (weight * hit).sum(axis=1) / total
        variance = (squares * (hit - p[:, None]) ** 2).sum(axis=1) / total**2
        uncapped = effective_trials(p, variance, np.inf)
        uncapped = np.where(np.isinf(uncapped), kish, uncapped)
        out[:, start : start + block] = p, effective_trials(p, variance, kish), uncapped
    p, trials, uncapped = out.reshape(3, *rate.shape)
    return p, trials, uncapped


def weighted_rate(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Wilson with effective trials; beside it the same without Kish's cap, and with n itself."""
    samples = effort.samples_of(size)
    p, trials, uncapped = weighted_sample(np.full(samples, rate), size, rng)
    coverage, none = covered(wilson(p, trials), rate)
    beside = (
        ("without cap", covered(wilson(p, uncapped), rate)[0]),
        ("n as trials", covered(wilson(p, size), rate)[0]),
    )
    name, why = "Wilson, eff. n", cap(size, rate)
    return [Row("rate, weighted", size, f"{rate}", name, coverage, none, samples, beside, above=why)]


def two_weighted_rates(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """MOVER with effective trials; beside it the same without Kish's cap."""
    samples = effort.samples_of(2 * size)
    a, n_a, uncapped_a = weighted_sample(np.full(samples, 0.8 * rate), size, rng)
    b, n_b, uncapped_b = weighted_sample(np.full(samples, rate), size, rng)
    rows = []
    for what, mover, truth in (
        ("difference, weighted", mover_difference, -0.2 * rate),
        ("ratio, weighted", mover_ratio, 0.8),
    ):
        coverage, none = covered(mover(a, wilson(a, n_a), b, wilson(b, n_b)), truth)
        other = mover(a, wilson(a, uncapped_a), b, wilson(b, uncapped_b))
        beside = (("without cap", covered(other, truth)[0]),)
        name, why = "MOVER, eff. n", cap(size, rate)
        rows.append(Row(what, size, pair_name(rate), name, coverage, none, samples, beside, above=why))
    return rows
