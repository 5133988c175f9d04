"""Coverage of the intervals of a group against all people, with 1,000 other people."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from benchmarks.coverage._parity.core import (
    UNEXPLAINED,
    Effort,
    Row,
    against_everybody,
    covered,
    rates,
    stack,
    survey,
)
from benchmarks.coverage._parity.means import AUC, Summary
from benchmarks.coverage._parity.rates import KINDS, discrete, drawn_weights, window
from evenhand.audits.parity.estimate import auc_values
from evenhand.audits.parity.gaps import limit_pairs, pairs_with_rest
from evenhand.audits.parity.metrics import METRICS
from evenhand.core.records import Kind
from evenhand.stats.bootstrap import CellMoments, resample
from evenhand.stats.types import FloatArray, Interval
from evenhand.table.cells import Cells
from evenhand.table.rows import ScoreRows

REST = 1_000


def truth_of(value: float, rest: float, share: float, kind: Kind) -> float:
    """Return the true gap of a group to all people."""
    everybody = share * value + (1 - share) * rest
    return value - everybody if kind == "difference" else value / everybody


def rate_to_all(counts: FloatArray, sums: FloatArray) -> FloatArray:
    """Return difference and ratio of a group's rate to the overall rate; cells are group yes, no, rest yes, no."""
    del sums
    a = counts[..., 0] / (counts[..., 0] + counts[..., 1])
    everybody = (counts[..., 0] + counts[..., 2]) / counts.sum(axis=-1)
    return np.stack([a - everybody, a / everybody], axis=-1)


def exact_overall(size: int, rate: float, rest: float, kind: Kind) -> tuple[float, float]:
    """Return the exact coverage over all pairs of counts, and the share of samples without an interval."""
    (x, prob_x), (y, prob_y) = window(size, rate), window(REST, rest)
    a, b = (part.ravel() for part in np.meshgrid(x, y, indexing="ij"))
    share = size / (size + REST)
    limits = against_everybody(rates(a / size, size), rates(b / REST, REST), share, kind)
    return covered(limits, truth_of(rate, rest, share, kind), np.outer(prob_x, prob_y).ravel())


def overall_rate(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the exact coverage for a group with the rest's rate, or four fifths of it, beside BCa."""
    rows = []
    for factor in (1.0, 0.8):
        own = factor * rate
        boots = effort.boots // 3
        pairs = np.column_stack([rng.binomial(size, own, boots), rng.binomial(REST, rate, boots)])
        distinct, times = np.unique(pairs, axis=0, return_counts=True)
        draws = [
            resample(
                CellMoments.from_counts([int(i), size - int(i), int(j), REST - int(j)]),
                rate_to_all,
                resamples=effort.resamples // 2,
                rng=rng,
            ).bca()
            for i, j in distinct
        ]
        for k, kind in enumerate(KINDS):
            coverage, none = exact_overall(size, own, rate, kind)
            truth = truth_of(own, rate, size / (size + REST), kind)
            beside = ("BCa", covered(_not_still(stack(draws, k)), truth, times.astype(np.float64))[0])
            why = discrete(size * own)
            at = f"{own:g}, rest {rate:g}"
            rows.append(Row(f"{kind} to all, rate", size, at, "MOVER", coverage, none, 0, (beside,), why))
    return rows


def _not_still(limits: Interval) -> Interval:
    """Return the limits without zero-width intervals, which audits withhold."""
    still = np.asarray(limits.low) == np.asarray(limits.high)
    return Interval(np.where(still, np.nan, limits.low), np.where(still, np.nan, limits.high))


def drawn_share(size: int, share: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage for a group of random size with rate 0.1 against 0.5 in the rest.

    For the difference, the result beside it adds 1.96 standard errors of the share, (a - b) sqrt(s (1 - s) / n), to
    both sides.
    """
    samples, own, rest = 2 * effort.samples, 0.1, 0.5
    n = rng.binomial(size, share, samples)
    a, b, s = rng.binomial(n, own) / n, rng.binomial(size - n, rest) / (size - n), n / size
    why = "the group's share of everybody is taken as known, and is estimated"
    rows = []
    for kind in KINDS:
        limits = against_everybody(rates(a, n), rates(b, size - n), s, kind)
        truth = truth_of(own, rest, share, kind)
        coverage, none = covered(limits, truth)
        beside: tuple[tuple[str, float], ...] = ()
        if kind == "difference":
            value, more = (1 - s) * (a - b), 1.96 * np.abs(a - b) * np.sqrt(s * (1 - s) / size)
            low, high = value - np.hypot(value - limits.low, more), value + np.hypot(limits.high - value, more)
            beside = (("with the share's error", covered(Interval(low, high), truth)[0]),)
        at = f"{own}, {rest}, {share:g} of n"
        rows.append(Row(f"{kind} to all, share drawn", size, at, "MOVER", coverage, none, samples, beside, why))
    return rows


def overall_weighted(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage for a weighted group with four fifths of the rest's rate."""
    samples = effort.samples_of(REST * 5)
    parts: list[tuple[Summary, Summary]] = []
    for start in range(0, samples, 400):
        count = min(400, samples - start)
        sides = []
        for n, p in ((size, 0.8 * rate), (REST, rate)):
            weight = drawn_weights(count, n, rng)
            found = survey("selection_rate", weight, hit=(rng.random((count, n)) < p).astype(np.float64))
            sides.append((found.value, found.trials, weight.sum(axis=1)))
        parts.append((sides[0], sides[1]))
    (a, n_a, w_a), (b, n_b, w_b) = ([np.concatenate([part[s][k] for part in parts]) for k in range(3)] for s in (0, 1))
    share, rows = size / (size + REST), []
    for kind in KINDS:
        limits = against_everybody(rates(a, n_a), rates(b, n_b), w_a / (w_a + w_b), kind)
        coverage, none = covered(limits, truth_of(0.8 * rate, rate, share, kind))
        at = f"{0.8 * rate:g}, rest {rate:g}"
        what, name = f"{kind} to all, weighted", "MOVER, eff. n"
        rows.append(Row(what, size, at, name, coverage, none, samples))
    return rows


def overall_auc(size: int, prevalence: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage for the AUC of a group as good as the rest's (delta method with DeLong's covariance)."""
    samples, n = effort.samples // 4, size + REST
    codes = (np.arange(n) >= size).astype(np.int64)
    positive = np.concatenate([np.arange(part) < round(part * prevalence) for part in (size, REST)])
    cells = Cells({"group": codes}, {"group": ("a", "b")}, np.ones(n, dtype=np.int64), {})
    ones = np.ones(n)
    limits: dict[Kind, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for _ in range(samples):
        score = rng.standard_normal(n) + float(np.sqrt(2) * ndtri(AUC)) * positive
        people = ScoreRows(score=score, positive=positive, weight=ones, squares=ones, groups=cells, binned=False)
        values = auc_values(people, codes, 2, METRICS["auc"])
        for kind, found in limits.items():
            found += limit_pairs(pairs_with_rest(values.only(np.array([0]))).limits(kind, 0.95))
    rarer = round(size * prevalence)
    rows = []
    for (kind, found), truth in zip(limits.items(), (0.0, 1.0), strict=True):
        low, high = np.array(found).T
        coverage, none = covered(Interval(low, high), truth)
        why = f"only {rarer} rows of a class" if rarer <= 20 else UNEXPLAINED
        rows.append(Row(f"{kind} to all, AUC", size, f"{prevalence}", "t, DeLong", coverage, none, samples, (), why))
    return rows
