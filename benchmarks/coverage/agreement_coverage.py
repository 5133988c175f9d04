"""Intervals and tests of the agreement audit.

Coverage: two raters say yes or no about people of one population; kappa is 0.6, and yes is usual (one half) or rare
(15 %). The result is the coverage of the 95 % interval of a group among samples with an interval, beside the share of
samples with one.

Level: all groups come from one population, so every finding is false. Measured are one group's gap to the reference
group, for PABAK (exact) and kappa (among the tested gaps), and any finding: gaps of PABAK and kappa to the reference
group and, of six groups, the worst pair, after Holm. The reference group is as large as the others, or has 1,000
people. Further lines: equal kappa with unequal ratings, its power, and the level of ICC(A,1) and the spread-adjusted
ICC of two groups, with errors of equal variance but different shapes, among the tested gaps.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book, Line
from evenhand.audits.agreement.draws import LEAST_PEOPLE, LEAST_SCORED, LEAST_SHARED
from evenhand.audits.agreement.metrics import Ratings, metrics_for
from evenhand.audits.agreement.people import PeopleValues, people_values
from evenhand.stats.agreement import (
    BinaryCounts,
    ac1_limits,
    coefficient_difference,
    score_moments,
    shared_shape_stderr,
    unseen_tail,
)
from evenhand.stats.bootstrap import CellMoments, resample
from evenhand.stats.intervals import clopper_pearson
from evenhand.stats.multiplicity import adjusted_p
from evenhand.stats.types import BoolArray, FloatArray

MEASURED = (
    "stats/agreement",
    "stats/bootstrap.py",
    "stats/draws.py",
    "audits/agreement/draws.py",
    "audits/agreement/estimate.py",
    "audits/agreement/people.py",
    "stats/permutation",
    "stats/two_rates",
)

STATISTICS = ("kappa", "pabak", "ac1", "alpha")
RESAMPLES = 200
LARGE = 1_000
_LEAST_TESTED = 20
"""Samples with a test below which a level is not told."""


def statistics(counts: FloatArray, sums: FloatArray) -> FloatArray:  # noqa: ARG001
    """Return kappa, PABAK, AC1 and alpha (..., 4) of counts (..., 4)."""
    found = BinaryCounts(*np.moveaxis(counts, -1, 0))
    return np.stack([found.kappa(), found.pabak(), found.ac1(), found.alpha()], axis=-1)


def chances(share: float, agreement: float) -> FloatArray:
    """Return the probabilities of (yes, yes), (no, yes), (yes, no) and (no, no) for raters with equal shares of yes."""
    differ = (1 - agreement) / 2
    return np.array([share - differ, differ, differ, 1 - share - differ])


def testable(counts: FloatArray) -> BoolArray:
    """Return whether coefficients of counts (..., 4) are tested: enough disagreements and enough rarer ratings."""
    both, second, first, neither = np.moveaxis(counts, -1, 0)
    shared, differ = np.minimum(both, neither), second + first
    return np.asarray((differ >= LEAST_PEOPLE) & (shared + differ / 2 >= LEAST_PEOPLE) & (shared >= LEAST_SHARED))


def coverage(samples: int, rng: Generator, *, people: int, share: float) -> list[Line]:
    """Return a line per statistic with its interval's coverage among defined intervals."""
    chance = chances(share, 1 - 2 * (1 - 0.6) * share * (1 - share))
    truth = statistics(chance * 1e9, np.zeros(0))
    held, there = (np.zeros((samples, len(STATISTICS)), dtype=np.bool_) for _ in range(2))
    for at in range(samples):
        counts = rng.multinomial(people, chance)
        drawn = resample(CellMoments.from_counts(counts), statistics, resamples=RESAMPLES, rng=rng)
        limits, alike = drawn.bca(), (counts[0] + counts[3]) / people
        low, high = limits.low.copy(), limits.high.copy()
        exact = clopper_pearson(alike, people)
        low[1], high[1] = 2 * exact.low - 1, 2 * exact.high - 1
        yes = (counts[0] + (counts[1] + counts[2]) / 2) / people
        low[2], high[2] = ac1_limits(alike, people, 2 * yes * (1 - yes), float(drawn.stderr()[2]), 0.025)
        there[at] = ~np.isnan(low) & (testable(counts.astype(np.float64)) | np.isin(np.arange(len(low)), (1, 2)))
        held[at] = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
    return [
        Line(
            what=f"{name} of a group, 95 %",
            population=f"{people} people, {share:.0%} said yes, kappa 0.6",
            kind="interval",
            nominal=0.95,
            **_few(name, people * share),
        )
        .seen(held[there[:, at], at])
        .held_against({"has an interval": there[:, at]})
        for at, name in enumerate(STATISTICS)
    ]


def _few(name: str, yes: float) -> dict[str, Any]:
    """Return the allowed coverage of a bootstrap with few yes ratings."""
    return {"allowed": 0.92, "why": "a bootstrap of few"} if name in ("kappa", "alpha") and yes < 30 else {}


def kappas(counts: FloatArray, rng: Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return kappa of counts (samples, 4), and the bootstrap standard errors of kappa and PABAK."""
    people = counts[0].sum()
    drawn = rng.multinomial(int(people), counts[:, np.newaxis] / people, size=(len(counts), RESAMPLES))
    with np.errstate(all="ignore"):
        values = statistics(drawn.astype(np.float64), np.zeros(0))[..., :2]
        lost = np.isnan(values).mean(axis=1) > 0.05
        known = np.where(np.isnan(values).all(axis=1, keepdims=True), 0.0, values)
        spread = np.where(lost, np.nan, np.nanstd(known, axis=1, ddof=1))
        return statistics(counts, np.zeros(0))[:, 0], spread[:, 0], spread[:, 1]


def level(
    samples: int, rng: Generator, *, people: int, reference: int, groups: int, agreement: float, yes: float
) -> list[Line]:
    """Return the level of one test of PABAK, of one test of kappa, and of any finding."""
    chance = chances(yes, agreement)
    sizes = [reference, *(people for _ in range(groups - 1))]
    counts = [rng.multinomial(size, chance, size=samples) for size in sizes]
    pairs = list(combinations(range(groups), 2))
    p = np.array(
        [
            [[p_of(name, tuple(counts[a][at]), tuple(counts[b][at])) for at in range(samples)] for a, b in pairs]
            for name in METRICS
        ]
    )
    to_reference = p[:, : groups - 1]
    worst = np.zeros((0, samples))
    if groups > 2:  # the p-value of the two groups farthest apart, of those that are tested
        values = [np.moveaxis(statistics(one.astype(np.float64), np.zeros(0)), -1, 0) for one in counts]
        apart = np.abs([[values[a][at] - values[b][at] for a, b in pairs] for at in (1, 0)])
        place = np.where(np.isnan(p), -1.0, apart).argmax(axis=1)
        worst = np.minimum(1.0, len(pairs) * np.take_along_axis(p, place[:, np.newaxis], axis=1)[:, 0])
    family = np.concatenate([to_reference.reshape(-1, samples), worst])
    found = [np.nanmin(adjusted_p(one), initial=1.0) < 0.05 for one in family.T]
    who = f"{groups} groups of {people}, the reference of {reference:,}, {agreement:.0%} alike, {yes:.0%} said yes"
    test = Line(what="PABAK: gap to the reference group", population=who, kind="test", nominal=0.05)
    called = to_reference[:, 0] < 0.05
    tested = ~np.isnan(to_reference[1, 0])
    lines = [
        test.seen(called[0]),
        replace(test, what="any finding of PABAK and kappa", kind="verdict").seen(found),
    ]
    if tested.sum() >= _LEAST_TESTED:
        kappa_line = replace(test, what="kappa: gap to the reference group")
        lines.append(kappa_line.seen(called[1][tested]).held_against({"tested": tested}))
    return lines


METRICS = ("pabak", "kappa")
PATTERNS = (np.array([1.0, 0.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0]))


@lru_cache(100_000)
def p_of(name: str, first: tuple[int, ...], second: tuple[int, ...]) -> float:
    """Return the p-value of equal agreement from the rating counts of two groups; nan if not tested."""
    if name == "kappa" and not testable(np.array([first, second], dtype=np.float64)).all():
        return float("nan")
    gap = of_counts(name, first).compare(of_counts(name, second), 0.001)
    return float("nan") if gap is None else gap.p_value


@lru_cache(100_000)
def of_counts(name: str, counts: tuple[int, ...]) -> PeopleValues:
    """Return the values of a group's people from its rating counts."""
    count = np.array(counts)
    seen = count > 0
    ratings = Ratings((PATTERNS[0][seen], PATTERNS[1][seen]), 2, 0.0)
    return people_values(metrics_for("binary", 2)[name], ratings, count[seen].astype(np.float64), count[seen])


def equal_kappa(samples: int, rng: Generator, *, sizes: tuple[int, int], yes: tuple[float, float]) -> list[bool]:
    """Return whether each test rejects equal kappas of 0.6 in two groups with unequal shares of yes."""
    chance = [chances(share, 1 - 2 * (1 - 0.6) * share * (1 - share)) for share in yes]
    counts = [rng.multinomial(size, one, size=samples) for size, one in zip(sizes, chance, strict=True)]
    p = np.array([p_of("kappa", tuple(a), tuple(b)) for a, b in zip(*counts, strict=True)])
    return [bool(one < 0.05) for one in p[~np.isnan(p)]]


def finds_kappa(samples: int, rng: Generator, *, sizes: tuple[int, int]) -> tuple[list[bool], list[bool]]:
    """Return whether each test separates kappas 0.3 and 0.6: ours, and Student's t with bootstrap errors."""
    chance = [chances(0.5, 1 - 2 * (1 - kappa) * 0.25) for kappa in (0.3, 0.6)]
    counts = [rng.multinomial(size, one, size=samples) for size, one in zip(sizes, chance, strict=True)]
    ours = [p_of("kappa", tuple(a), tuple(b)) < 0.05 for a, b in zip(*counts, strict=True)]
    sides = [one.astype(np.float64) for one in counts]
    (kappa, se, _), (other, se_other, _) = (kappas(one, rng) for one in sides)
    known = [np.where(testable(one), spread, np.nan) for one, spread in zip(sides, (se, se_other), strict=True)]
    low, high = coefficient_difference((kappa, known[0], sizes[0] - 1), (other, known[1], sizes[1] - 1), 0.025)
    return ours, ((low > 0) | (high < 0)).tolist()


def finds_with_fewer(
    samples: int, rng: Generator, *, name: str, people: int, agreement: tuple[float, float]
) -> tuple[list[bool], list[bool]]:
    """Return whether each test separates two groups' agreement: ours, and the best other test on a tenth fewer people.

    The other test is Boschloo's exact test of agreement shares for PABAK. For kappa it is z with the standard errors of
    J. L. Fleiss, J. Cohen and B. S. Everitt (1969) where enough people disagree; elsewhere its error rate reaches .55.
    """
    both = [chances(0.5, share) for share in agreement]
    counts, fewer = (
        [rng.multinomial(size, one, size=samples) for one in both] for size in (people, round(people / 1.1))
    )
    ours = [p_of(name, tuple(a), tuple(b)) < 0.05 for a, b in zip(*counts, strict=True)]
    if name == "kappa":
        (kappa, se), (other, se_other) = (kappa_by_formula(one / one[0].sum(), round(people / 1.1)) for one in fewer)
        enough = testable(fewer[0].astype(np.float64)) & testable(fewer[1].astype(np.float64))
        return ours, (enough & (np.abs(kappa - other) > 1.96 * np.hypot(se, se_other))).tolist()
    alike = [(one[:, 0] + one[:, 3]).tolist() for one in fewer]
    return ours, [boschloo(*pair, round(people / 1.1)) < 0.05 for pair in zip(*alike, strict=True)]


@lru_cache(100_000)
def boschloo(first: int, second: int, people: int) -> float:
    """Return the p-value of Boschloo's exact test for two groups of equal size."""
    from scipy.stats import boschloo_exact

    return float(boschloo_exact([[first, second], [people - first, people - second]]).pvalue)


def kappa_by_formula(share: FloatArray, people: int) -> tuple[FloatArray, FloatArray]:
    """Return kappa of shares (samples, 4) and its standard error by formula."""
    both, second, first, neither = np.moveaxis(share, -1, 0)
    alike, yes, other_yes = both + neither, both + first, both + second
    chance = yes * other_yes + (1 - yes) * (1 - other_yes)
    kappa = (alike - chance) / (1 - chance)
    diagonal = sum(
        cell * (1 - (a + b) * (1 - kappa)) ** 2
        for cell, a, b in ((both, yes, other_yes), (neither, 1 - yes, 1 - other_yes))
    )
    rest = (1 - kappa) ** 2 * (first * (other_yes + 1 - yes) ** 2 + second * (1 - other_yes + yes) ** 2)
    square = (diagonal + rest - (kappa - chance * (1 - kappa)) ** 2) / ((1 - chance) ** 2 * people)
    return kappa, np.sqrt(np.maximum(square, 0.0))


ERRORS: dict[str, tuple[str, str]] = {
    "normal errors": ("normal", "normal"),
    "t(3) errors": ("t(3)", "t(3)"),
    "t(3) against normal errors": ("t(3)", "normal"),
    "log-normal against normal errors": ("log-normal", "normal"),
    "one error in fifty 7 times as large, against normal ones": ("one in 50", "normal"),
    "one error in a hundred 10 times as large, against normal ones": ("one in 100", "normal"),
}
"""The errors of the group and of the reference group; of equal variance."""


def errors_of(kind: str, shape: tuple[int, ...], rng: Generator) -> FloatArray:
    """Return random errors of a kind, with variance 1."""
    normal = rng.standard_normal(shape)
    if kind == "t(3)":
        return np.asarray(rng.standard_t(3, shape) / np.sqrt(3))
    if kind == "log-normal":  # of standard deviation 1.2
        return np.asarray((np.exp(1.2 * normal) - np.exp(0.72)) / np.sqrt((np.exp(1.44) - 1) * np.exp(1.44)))
    if kind.startswith("one in"):
        share, times = {"one in 50": (0.02, 7.0), "one in 100": (0.01, 10.0)}[kind]
        large = np.where(rng.random(shape) < share, times, 1.0)
        return np.asarray(normal * large / np.sqrt(1 - share + share * times**2))
    return normal


def scored(people: int, errors: str, samples: int, rng: Generator) -> list[FloatArray]:
    """Return both ICCs (samples, 2), their standard errors, effective people, and largest and mean squared errors."""
    truth = rng.standard_normal((samples, people))
    shape = (2, samples, people)
    first, second = truth + 0.5 * errors_of(errors, shape, rng)
    value, spread = np.empty((samples, 2)), np.empty((samples, 2))
    for at in range(samples):
        weight = rng.multinomial(people, np.full(people, 1 / people), size=RESAMPLES).astype(np.float64)
        with np.errstate(all="ignore"):
            value[at] = coefficients(first[at], second[at], np.ones(people))
            spread[at] = np.nanstd(coefficients(first[at], second[at], weight), axis=0, ddof=1)
    squares = (first - second) ** 2
    total, sizes = squares.sum(axis=1), np.stack([squares.max(axis=1), squares.mean(axis=1)])
    return [value, spread, total**2 / (squares**2).sum(axis=1), sizes]


def coefficients(first: FloatArray, second: FloatArray, weight: FloatArray) -> FloatArray:
    """Return ICC(A,1) and 1 - mean squared error / 4 (any common spread would do)."""
    moments = score_moments(first, second, weight=weight)
    return np.stack([moments.icc_a1(), moments.spread_adjusted(4.0)], axis=-1)


def score_level(samples: int, rng: Generator, *, people: int, reference: int, errors: str) -> list[Line]:
    """Return the level of the tests of ICC(A,1) and the spread-adjusted ICC among the tested gaps."""
    kinds = ERRORS[errors]
    (a, se_a, rests_a, far_a), (b, se_b, rests_b, far_b) = (
        scored(size, kind, samples, rng) for size, kind in zip((people, reference), kinds, strict=True)
    )
    lines = []
    for which, name in enumerate(("ICC(A,1)", "spread-adjusted ICC")):
        one, other = a[:, which], b[:, which]
        enough = (rests_a >= LEAST_SCORED) & (rests_b >= LEAST_SCORED)
        known = np.where(enough, se_a[:, which], np.nan)
        alike = shared_shape_stderr((one, known, people), (other, se_b[:, which], reference))
        given = ((one, alike[0], people - 1), (other, alike[1], reference - 1))
        tail = np.full(samples, 0.025)
        sides = ((one, people, far_a, far_b), (other, reference, far_b, far_a))
        unseen = [unseen_tail(side, n, own[0] / own[1], beyond[0] / own[1], tail) for side, n, own, beyond in sides]
        with np.errstate(all="ignore"):
            low, high = coefficient_difference(*given, tail, unseen)
        called = (low > 0) | (high < 0)
        if enough.sum() >= _LEAST_TESTED:
            who = f"{errors}, {people} against {reference:,}"
            test = Line(what=f"{name}: gap to the reference group", population=who, kind="test", nominal=0.05)
            former = np.abs(a - b)[:, which] > 1.96 * np.hypot(se_a, se_b)[:, which]
            lines.append(test.seen(called[enough]).held_against({"tested": enough, "before": former[enough]}))
    return lines


def promises(book: Book) -> None:
    """Declare the lines of intervals, tests of binary ratings, and tests of scores."""
    for people in (30, 50, 100, 400):
        for share in (0.5, 0.15):
            name = f"coverage, {people} people, {share:g} yes"
            book.several(name, partial(coverage, people=people, share=share), samples=800)
    for both, shares in product(((50, 50), (50, LARGE), (LARGE, 50), (200, 200)), ((0.5, 0.15), (0.15, 0.5))):
        book.measure(
            "kappa: gap to the reference group",
            f"{both[0]:,} against {both[1]:,} people, kappa 0.6, {shares[0]:.0%} against {shares[1]:.0%} said yes",
            partial(equal_kappa, sizes=both, yes=shares),
            kind="test",
            nominal=0.05,
            samples=2_000,
            guard=40 if both == (50, 50) else 0,
        )
    for sizes in ((25, LARGE), (50, LARGE), (50, 50), (100, 100)):
        book.measure(
            "kappa: gap to the reference group, power",
            f"{sizes[0]:,} against {sizes[1]:,} people, kappa 0.3 against 0.6",
            partial(finds_kappa, sizes=sizes),
            kind="power",
            samples=400,
            oracle="Student's t",
        )
    for (name, people), alike in product((("pabak", 60), ("kappa", 60), ("kappa", 120)), ((0.75, 0.75), (0.7, 0.9))):
        null: dict[str, Any] = {"kind": "test", "nominal": 0.05} if alike[0] == alike[1] else {"kind": "power"}
        book.measure(
            f"{name}: two groups told apart",
            f"{people} people each, {alike[0]:.0%} against {alike[1]:.0%} alike",
            partial(finds_with_fewer, name=name, people=people, agreement=alike),
            samples=1_000,
            oracle=f"{'Boschloo' if name == 'pabak' else 'z'} with a tenth fewer people",
            **null,
        )
    settings = [(n, reference, 2) for n in (15, 50, 200) for reference in (n, LARGE)] + [(20, LARGE, 6), (50, 50, 6)]
    for people, reference, groups in settings:
        for agreement, yes in ((0.7, 0.5), (0.9, 0.2), (0.99, 0.5)):
            where: dict[str, Any] = {
                "people": people,
                "reference": reference,
                "groups": groups,
                "agreement": agreement,
                "yes": yes,
            }
            name = f"level, {groups} groups, {people} against {reference}, {agreement:g} alike, {yes:g} yes"
            book.several(name, partial(level, **where), samples=600 if groups == 2 else 200)
    for errors in ERRORS:
        for people, reference in ((50, 500), (200, 200), (500, 500), (500, 2_000)):
            where = {"people": people, "reference": reference, "errors": errors}
            book.several(f"scores, {errors}, {people} against {reference}", partial(score_level, **where), samples=250)
