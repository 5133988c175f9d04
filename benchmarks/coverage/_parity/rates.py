"""Coverage of the intervals of single rates and pairs of rates, with and without weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import binom

from benchmarks.coverage._parity.core import UNEXPLAINED, Effort, Row, compare, covered, rates, stack, survey
from evenhand.audits.parity.estimate import GroupValues
from evenhand.core.records import Kind
from evenhand.stats.bootstrap import CellMoments, resample
from evenhand.stats.intervals import effective_trials
from evenhand.stats.types import FloatArray, IntArray, Interval

KINDS: tuple[Kind, ...] = ("difference", "ratio")


def window(size: int, rate: float) -> tuple[IntArray, FloatArray]:
    """Return the counts that contain all but 1e-12 of a binomial, with their probabilities."""
    low, high = int(binom.ppf(1e-13, size, rate)), int(binom.isf(1e-13, size, rate))
    counts = np.arange(max(low - 1, 0), min(high + 1, size) + 1)
    return counts, np.asarray(binom.pmf(counts, size, rate))


def discrete(expected: float) -> str:
    """Return a note that coverage jumps if few positives are expected."""
    return "few discrete counts" if expected < 20 else UNEXPLAINED


def single_rate(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return Wilson's exact coverage, beside the percentile bootstrap and Clopper-Pearson."""
    del effort, rng

    def coverage(p: float, *, exact: bool = False) -> float:
        counts, probability = window(size, p)
        return covered(rates(counts / size, size).limits(0.95, exact=exact), p, probability)[0]

    counts, probability = window(size, rate)
    low, high = (np.asarray(binom.ppf(q, size, counts / size)) / size for q in (0.025, 0.975))
    beside = (
        ("percentile", covered(Interval(low, high), rate, probability)[0]),
        ("Clopper-Pearson", coverage(rate, exact=True)),
    )
    why = discrete(size * rate)
    return [Row("rate", size, f"{rate}", "Wilson", coverage(rate), 0.0, 0, beside, why)]


def lowest_rate(size: int, limit: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return Wilson's smallest coverage over rates up to `limit`, searched just beyond its limits."""
    del effort, rng
    counts = np.arange(size + 1)
    found = []
    for exact in (False, True):
        ends = rates(counts / size, size).limits(0.95, exact=exact)
        edges = np.concatenate([np.asarray(ends.low) - 1e-9, np.asarray(ends.high) + 1e-9])
        places = np.unique(np.clip(edges[(edges > 0) & (edges <= limit)], 1e-9, 1 - 1e-9))
        at = [covered(ends, float(p), np.asarray(binom.pmf(counts, size, p)))[0] for p in places]
        found.append((min(at), float(places[int(np.argmin(at))])))
    (coverage, where), (other, _) = found
    why = "the least over all rates, by search"
    beside = (("Clopper-Pearson, its least", other),)
    return [Row("rate, its least coverage", size, f"{where:.4f}", "Wilson", coverage, 0.0, 0, beside, why, 0.83)]


def rate_pair(counts: FloatArray, sums: FloatArray) -> FloatArray:
    """Return difference and ratio of two rates; cells are group a yes, no, group b yes, no."""
    del sums
    a = counts[..., 0] / (counts[..., 0] + counts[..., 1])
    b = counts[..., 2] / (counts[..., 2] + counts[..., 3])
    return np.stack([a - b, a / b], axis=-1)


def exact_pair(size: int, rate: float, kind: Kind) -> tuple[float, float]:
    """Return MOVER's exact coverage over all pairs of counts, and the share of samples without an interval."""
    (x, prob_x), (y, prob_y) = window(size, 0.8 * rate), window(size, rate)
    limits = compare(rates(x[:, None] / size, size), rates(y[None, :] / size, size), kind, 0.95)
    return covered(limits, truth_of(rate, kind), prob_x[:, None] * prob_y)


def truth_of(rate: float, kind: Kind) -> float:
    """Return the true gap of four fifths of a rate to the rate."""
    return 0.8 if kind == "ratio" else -0.2 * rate


def two_rates(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return MOVER's coverage over all pairs of counts, beside BCa on sampled pairs; rates are in the ratio 4/5."""
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
    for k, kind in enumerate(KINDS):
        coverage, none = exact_pair(size, rate, kind)
        beside = ("BCa", covered(stack(draws, k), truth_of(rate, kind), times.astype(np.float64))[0])
        why = discrete(size * rate)
        what = f"{kind} of rates"
        rows.append(Row(what, size, pair_name(rate), "MOVER", coverage, none, 0, (beside,), why))
    return rows


def pair_name(rate: float) -> str:
    """Return 'a b' for a rate b and a, four fifths of it."""
    return f"{0.8 * rate:g} {rate:g}"


def drawn_weights(count: int, size: int, rng: np.random.Generator) -> FloatArray:
    """Return lognormal weights with a design effect of 1.6."""
    return np.asarray(np.exp(0.7 * rng.standard_normal((count, size))))


def weighted_sample(rate: FloatArray, size: int, rng: np.random.Generator) -> tuple[GroupValues, FloatArray]:
    """Return weighted rates as audits compute them, and their effective trials without Kish's cap."""
    shape = rate.shape
    p, trials, uncapped = np.empty((3, rate.size))
    block = max(1, 400_000 // size)
    for start in range(0, rate.size, block):
        chosen = rate.ravel()[start : start + block]
        weight = drawn_weights(chosen.size, size, rng)
        hit = (rng.random((chosen.size, size)) < chosen[:, None]).astype(np.float64)
        found = survey("selection_rate", weight, hit=hit)
        part = slice(start, start + block)
        p[part], trials[part] = found.value, found.trials
        uncapped[part] = effective_trials(found.value, found.stderr**2, np.inf)
    uncapped = np.where(np.isinf(uncapped), trials, uncapped)
    return rates(p.reshape(shape), trials.reshape(shape)), uncapped.reshape(shape)


def weighted_rate(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage of Wilson with effective trials, beside no Kish cap and n trials."""
    samples = effort.samples_of(size)
    found, uncapped = weighted_sample(np.full(samples, rate), size, rng)
    coverage, none = covered(found.limits(0.95), rate)
    beside = (
        ("without cap", covered(replace(found, trials=uncapped).limits(0.95), rate)[0]),
        ("n as trials", covered(rates(found.value, size).limits(0.95), rate)[0]),
    )
    return [Row("rate, weighted", size, f"{rate}", "Wilson, eff. n", coverage, none, samples, beside)]


def two_weighted_rates(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage of MOVER with effective trials, beside the version without Kish's cap."""
    samples = effort.samples_of(2 * size)
    a, uncapped_a = weighted_sample(np.full(samples, 0.8 * rate), size, rng)
    b, uncapped_b = weighted_sample(np.full(samples, rate), size, rng)
    other = replace(a, trials=uncapped_a), replace(b, trials=uncapped_b)
    rows = []
    for kind in KINDS:
        truth = truth_of(rate, kind)
        coverage, none = covered(compare(a, b, kind, 0.95), truth)
        beside = (("without cap", covered(compare(*other, kind, 0.95), truth)[0]),)
        name, what = "MOVER, eff. n", f"{kind}, weighted"
        rows.append(Row(what, size, pair_name(rate), name, coverage, none, samples, beside))
    return rows
