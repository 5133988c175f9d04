"""Intervals and tests of the agreement audit: `python benchmarks/agreement_coverage.py [--quick] [--only PART]`.

Part `coverage`: two raters say yes or no about people of one population; kappa is 0.6, and yes is usual (one half) or
rare (15 %). How often the 95 % interval of a group holds the truth, among samples that have one, and how many have one.

Part `level`: groups of one population, so that every finding is false. `single` is how often one group's gap to the
reference group has p < 0.05, for PABAK (exact) and kappa (bootstrap; a gap that is not tested is no finding); `any` is
how often some finding is told: gaps of PABAK and kappa to the reference group and, of six groups, the worst pair, after
Holm. `former` is what |gap| > 1.96 bootstrap standard errors, one by one, would have told. The reference group is as
large as the others, or has 1,000 people.

Part `scores`: the same for ICC(A,1) and the spread-adjusted ICC of two groups, with normal errors and with errors of
heavy tails (Student's t with 3 degrees of freedom). Part `many` is the lines of `level` with six groups.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from time import perf_counter

import numpy as np

from evenhand.audits.agreement.estimate import LEAST_PEOPLE, LEAST_SCORED, LEAST_SHARED
from evenhand.stats.agreement import (
    BinaryCounts,
    alike_stderr,
    coefficient_difference,
    p_of_equality,
    score_moments,
    share_difference,
)
from evenhand.stats.bootstrap import CellMoments, resample
from evenhand.stats.intervals import clopper_pearson
from evenhand.stats.multiplicity import adjusted_p
from evenhand.stats.types import BoolArray, FloatArray

STATISTICS = ("kappa", "pabak", "ac1", "alpha")
SIZES = (15, 20, 50, 200)
AGREEMENT = (0.7, 0.8, 0.9, 0.99, 1.0)
RESAMPLES = 400
LARGE = 1_000


def statistics(counts: FloatArray, sums: FloatArray) -> FloatArray:  # noqa: ARG001
    """Return the statistics (..., 4) of counts (..., 4)."""
    found = BinaryCounts(*np.moveaxis(counts, -1, 0))
    return np.stack([found.kappa(), found.pabak(), found.ac1(), found.alpha()], axis=-1)


def chances(share: float, agreement: float) -> FloatArray:
    """Return the chances of (yes, yes), (no, yes), (yes, no) and (no, no) of raters who say yes equally often."""
    differ = (1 - agreement) / 2
    return np.array([share - differ, differ, differ, 1 - share - differ])


def testable(counts: FloatArray) -> BoolArray:
    """Return whether coefficients of counts (..., 4) are tested: enough disagreement, and of the rarer rating."""
    both, second, first, neither = np.moveaxis(counts, -1, 0)
    shared, differ = np.minimum(both, neither), second + first
    return np.asarray((differ >= LEAST_PEOPLE) & (shared + differ / 2 >= LEAST_PEOPLE) & (shared >= LEAST_SHARED))


def coverage(people: int, share: float, samples: int, rng: np.random.Generator) -> list[float]:
    """Return for each statistic how many intervals hold the truth, of those there are, and how many there are."""
    chance = chances(share, 1 - 2 * (1 - 0.6) * share * (1 - share))
    truth = statistics(chance * 1e9, np.zeros(0))
    held, there = np.zeros(len(STATISTICS)), np.zeros(len(STATISTICS))
    for _ in range(samples):
        counts = rng.multinomial(people, chance)
        limits = resample(CellMoments.from_counts(counts), statistics, resamples=RESAMPLES, rng=rng).bca()
        low, high = limits.low.copy(), limits.high.copy()
        exact = clopper_pearson((counts[0] + counts[3]) / people, people)
        low[1], high[1] = 2 * exact.low - 1, 2 * exact.high - 1
        usable = ~np.isnan(low) & (testable(counts.astype(np.float64)) | (np.arange(len(low)) == 1))
        there += usable
        held += usable & (low <= truth + 1e-9) & (truth - 1e-9 <= high)
    return [*(held / np.maximum(there, 1)), *(there / samples)]


def kappas(counts: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return kappa of counts (samples, 4), its bootstrap standard error, and that of PABAK."""
    people = counts[0].sum()
    drawn = rng.multinomial(int(people), counts[:, np.newaxis] / people, size=(len(counts), RESAMPLES))
    with np.errstate(all="ignore"):
        values = statistics(drawn.astype(np.float64), np.zeros(0))[..., :2]
        lost = np.isnan(values).mean(axis=1) > 0.05
        known = np.where(np.isnan(values).all(axis=1, keepdims=True), 0.0, values)
        spread = np.where(lost, np.nan, np.nanstd(known, axis=1, ddof=1))
        return statistics(counts, np.zeros(0))[:, 0], spread[:, 0], spread[:, 1]


def level(
    people: int, reference: int, groups: int, chance: FloatArray, samples: int, rng: np.random.Generator
) -> list[float]:
    """Return the level of one test of PABAK and of kappa, how often kappa is tested, and any finding: now, formerly."""
    sizes = [reference, *(people for _ in range(groups - 1))]
    counts = [rng.multinomial(size, chance, size=samples).astype(np.float64) for size in sizes]
    kappa, spread, spread_pabak = zip(*(kappas(one, rng) for one in counts), strict=True)
    agreed = [(one[:, 0] + one[:, 3]) / size for one, size in zip(counts, sizes, strict=True)]
    known = [np.where(testable(one), se, np.nan) for one, se in zip(counts, spread, strict=True)]
    pairs = list(combinations(range(groups), 2))
    p = np.full((2, len(pairs), samples), np.nan)
    for at, (a, b) in enumerate(pairs):
        drawn, place = np.unique(np.stack([agreed[a], agreed[b]]), axis=1, return_inverse=True)
        shares = partial(share_difference, drawn[0], sizes[a], drawn[1], sizes[b])
        p[0, at] = p_of_equality(shares, drawn[0].shape)[place]
        on = ~np.isnan(known[a] + known[b])
        given = (kappa[a][on], known[a][on], sizes[a] - 1, kappa[b][on], known[b][on], sizes[b] - 1)
        p[1, at, on] = p_of_equality(partial(coefficient_difference, *given), given[0].shape)
    to_reference = p[:, : groups - 1]
    worst = np.zeros((0, samples))
    if groups > 2:  # the p-value of the two groups farthest apart, of those that are tested
        apart = np.abs([[one[a] - one[b] for a, b in pairs] for one in (agreed, kappa)])
        place = np.where(np.isnan(p), -1.0, apart).argmax(axis=1)
        worst = np.minimum(1.0, len(pairs) * np.take_along_axis(p, place[:, np.newaxis], axis=1)[:, 0])
    family = np.concatenate([to_reference.reshape(-1, samples), worst])
    found = [np.nanmin(adjusted_p(one), initial=1.0) < 0.05 for one in family.T]
    former = np.zeros(samples, dtype=np.bool_)
    with np.errstate(all="ignore"):
        for group in range(1, groups):
            former |= np.abs(kappa[0] - kappa[group]) > 1.96 * np.hypot(spread[0], spread[group])
            former |= 2 * np.abs(agreed[0] - agreed[group]) > 1.96 * np.hypot(spread_pabak[0], spread_pabak[group])
        single = [float(np.mean(to_reference[which, 0] < 0.05)) for which in (0, 1)]
    return [*single, float(np.mean(~np.isnan(to_reference[1, 0]))), float(np.mean(found)), float(np.mean(former))]


def scored(people: int, heavy: bool, samples: int, rng: np.random.Generator) -> list[FloatArray]:
    """Return ICC(A,1) and the spread-adjusted ICC (samples, 2), their standard errors, and what they rest on."""
    truth = rng.standard_normal((samples, people))
    errors = rng.standard_t(3, (2, samples, people)) / 3 if heavy else 0.5 * rng.standard_normal((2, samples, people))
    first, second = truth + errors[0], truth + errors[1]
    value, spread = np.empty((samples, 2)), np.empty((samples, 2))
    for at in range(samples):
        weight = rng.multinomial(people, np.full(people, 1 / people), size=RESAMPLES).astype(np.float64)
        with np.errstate(all="ignore"):
            value[at] = coefficients(first[at], second[at], np.ones(people))
            spread[at] = np.nanstd(coefficients(first[at], second[at], weight), axis=0, ddof=1)
    squares = (first - second) ** 2
    return [value, spread, squares.sum(axis=1) ** 2 / (squares**2).sum(axis=1)]


def coefficients(first: FloatArray, second: FloatArray, weight: FloatArray) -> FloatArray:
    """Return ICC(A,1) and 1 - mean squared error / 4 (any one spread for all will do)."""
    moments = score_moments(first, second, weight=weight)
    return np.stack([moments.icc_a1(), moments.spread_adjusted(4.0)], axis=-1)


def score_level(people: int, reference: int, heavy: bool, samples: int, rng: np.random.Generator) -> list[float]:
    """Return the level of the tests of ICC(A,1) and the spread-adjusted ICC, how often they are made, and formerly."""
    (a, se_a, rests_a), (b, se_b, rests_b) = (scored(size, heavy, samples, rng) for size in (people, reference))
    enough = (rests_a >= LEAST_SCORED) & (rests_b >= LEAST_SCORED)
    found, former = [], []
    for which in (0, 1):
        known = np.where(enough, se_a[:, which], np.nan)
        alike = alike_stderr(a[:, which], known, people, b[:, which], se_b[:, which], reference)
        given = (a[:, which], alike[0], people - 1, b[:, which], alike[1], reference - 1)
        with np.errstate(all="ignore"):
            found.append(float(np.mean(p_of_equality(partial(coefficient_difference, *given), (samples,)) < 0.05)))
        former.append(float(np.mean(np.abs(a - b)[:, which] > 1.96 * np.hypot(se_a, se_b)[:, which])))
    share = float(enough.mean())
    return [*found, share, *(one / max(share, 1e-9) for one in found), *former]


def table(heads: Sequence[str], rows: Sequence[tuple[Sequence[object], Callable[[], list[float]]]]) -> None:
    """Print a table, a line when it is computed."""
    print("".join(f"{head:>12}" for head in heads))
    for setting, compute in rows:
        cells = [*(f"{value:>12}" for value in setting), *(f"{value:12.3f}" for value in compute())]
        print("".join(cells), flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples: a look, not a measurement")
    parser.add_argument("--samples", type=int, help="samples a line")
    parser.add_argument("--only", choices=["coverage", "level", "many", "scores"], help="one of the parts")
    options = parser.parse_args(argv)
    start, quick = perf_counter(), options.quick
    if options.only in (None, "coverage"):
        samples, rng = 50 if quick else 2_000, np.random.default_rng(0)
        heads = ["people", "yes", *STATISTICS, *(f"{name} has" for name in STATISTICS)]
        table(heads, [((n, y), partial(coverage, n, y, samples, rng)) for n in (30, 50, 100, 400) for y in (0.5, 0.15)])
        print(f"{samples} samples a line; two standard errors: {2 * np.sqrt(0.0475 / samples):.3f}.\n")
    if options.only in (None, "level", "many"):
        samples, rng = 100 if quick else 1_000, np.random.default_rng(1)
        heads = ["people", "reference", "groups", "agreement", "yes", "pabak", "kappa", "tested", "any", "former"]
        places = [(n, reference) for n in SIZES for reference in (n, LARGE)]
        settings = [(*place, 2, r, yes) for place in places for r in AGREEMENT for yes in (0.5, 0.2)]
        settings += [(*place, 6, r, 0.5) for place in places for r in (0.7, 0.9, 0.99)]
        settings = [one for one in settings if options.only != "many" or one[2] == 6]
        rows = [(one, partial(level, *one[:3], chances(one[4], one[3]), samples, rng)) for one in settings]
        table(heads, rows[::8] if quick else rows)
        print(f"{samples} samples a line; two standard errors: {2 * np.sqrt(0.0475 / samples):.3f}.\n")
    if options.only in (None, "scores"):
        samples, rng = options.samples or (50 if quick else 1_000), np.random.default_rng(2)
        heads = [
            "people",
            "reference",
            "errors",
            "icc",
            "icc_spread",
            "tested",
            "icc of these",
            "spread",
            "icc was",
            "spread was",
        ]
        sizes = ((15, 15), (20, 20), (50, 50), (200, 200), (50, 200), (50, 500))
        both = [(n, ref, kind) for kind in ("normal", "heavy") for n, ref in sizes]
        table(heads, [(one, partial(score_level, *one[:2], one[2] == "heavy", samples, rng)) for one in both])
        print(f"{samples} samples a line; two standard errors: {2 * np.sqrt(0.0475 / samples):.3f}.")
    print(f"{perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
