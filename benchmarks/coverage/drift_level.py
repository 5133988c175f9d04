"""Validity of limits over repeated looks.

The lines cover gaps of successive periods, with a constant gap and possibly changing rates; the cumulative rate, with a
constant or a drifting rate (the limits are then limits of the mean rate); and the power to detect a growing gap. Beside
them are limits with 95 % confidence at each look alone, which ignore the other looks.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book
from evenhand.stats.intervals import clopper_pearson, mover_difference
from evenhand.stats.sequences import GapChanges, gap_drift, period_gaps, rate_sequence
from evenhand.stats.types import BoolArray, FloatArray

MEASURED = ("stats/sequences.py",)

Pair = tuple[BoolArray, BoolArray]
Named = tuple[tuple[str, dict[str, Any]], ...]

POPULATIONS: Named = (
    (
        "12 months, 100 and 100 people, rate .1, no gap",
        {"periods": 12, "people": (100, 100), "rate": 0.1, "gap": 0.0, "moving": 0.0},
    ),
    (
        "60 months, 30 and 300 people, rate .3, gap .2",
        {"periods": 60, "people": (30, 300), "rate": 0.3, "gap": 0.2, "moving": 0.0},
    ),
    (
        "60 months, 10 and 1,000 people, rate .02, no gap",
        {"periods": 60, "people": (10, 1000), "rate": 0.02, "gap": 0.0, "moving": 0.0},
    ),
    (
        "24 months, 200 and 200 people, rates move by .04 together",
        {"periods": 24, "people": (200, 200), "rate": 0.15, "gap": 0.1, "moving": 0.04},
    ),
)
RATES: Named = (
    ("constant, .1", {"rate": 0.1, "moving": 0.0}),
    ("constant, .01", {"rate": 0.01, "moving": 0.0}),
    ("constant, .5", {"rate": 0.5, "moving": 0.0}),
    ("moves by .04 around .1", {"rate": 0.1, "moving": 0.04}),
    ("rises from .05 to .35", {"rate": 0.05, "moving": 0.0, "trend": 0.3}),
)


def rates(rng: Generator, periods: int, rate: float, gap: float, moving: float) -> tuple[FloatArray, FloatArray]:
    """Return the true rates of two groups in every period, with a constant gap."""
    one = np.clip(rate + moving * rng.standard_normal(periods), 0.0, 1.0 - gap)
    return one + gap, one


def looks(
    samples: int,
    rng: Generator,
    *,
    periods: int,
    people: tuple[int, int],
    rate: float,
    gap: float,
    moving: float,
    drift: bool = True,
) -> tuple[Pair, Pair]:
    """Return whether all periods' limits cover the gap and whether a drift is reported, beside naive limits."""
    covered, told = [], []
    for _ in range(samples):
        p, q = rates(rng, periods, rate, gap, moving)
        a, b = rng.binomial(people[0], p), rng.binomial(people[1], q)
        _found, limits = period_gaps(a, np.full(periods, people[0]), b, np.full(periods, people[1]), 0.05)
        forgetful = mover_difference(
            a / people[0],
            clopper_pearson(a / people[0], people[0]),
            b / people[1],
            clopper_pearson(b / people[1], people[1]),
        )
        both = (limits, forgetful)
        change = gap_drift(a, np.full(periods, people[0]), b, np.full(periods, people[1]), 0.05) if drift else None
        covered.append([bool(((each.low <= gap + 1e-9) & (gap - 1e-9 <= each.high)).all()) for each in both])
        told.append([change is not None and drifted(change), bool(forgetful.low.max() > forgetful.high.min())])
    return (np.array(covered)[:, 0], np.array(covered)[:, 1]), (np.array(told)[:, 0], np.array(told)[:, 1])


def drifted(changes: GapChanges) -> bool:
    """Return whether any limits exclude a change of the gap of 0."""
    return bool((changes.nearest > 0).any())


def cover_all(samples: int, rng: Generator, **population: Any) -> Pair:
    """Return whether the limits of all periods together cover the gap."""
    return looks(samples, rng, drift=False, **population)[0]


def tell_drift(samples: int, rng: Generator, **population: Any) -> Pair:
    """Return whether a drift is reported for a constant gap."""
    return looks(samples, rng, **population)[1]


def never_miss(samples: int, rng: Generator, *, rate: float, moving: float, trend: float = 0.0) -> Pair:
    """Return whether limits of the cumulative rate cover at all 50 looks, 40 people apart."""
    each, many = 40, 50
    n = each * np.arange(1, many + 1)
    true = rate + moving * rng.standard_normal((samples, many)) + trend * np.linspace(0, 1, many)
    true = np.clip(true, 0.001, 0.999)
    so_far = np.cumsum(rng.binomial(each, true), axis=1)
    mean = np.cumsum(true, axis=1) / np.arange(1, many + 1)
    both = rate_sequence(so_far, n), clopper_pearson(so_far / n, n)
    ours, theirs = (((limits.low <= mean) & (mean <= limits.high)).all(axis=1) for limits in both)
    return np.asarray(ours), np.asarray(theirs)


def sees(samples: int, rng: Generator, *, periods: int, people: int, grows: float) -> Pair:
    """Return whether a gap that grows from 0 is detected, beside a z-test of the last period against the first."""
    ours, theirs = [], []
    for _ in range(samples):
        gap = grows * np.arange(periods) / (periods - 1)
        a, b = rng.binomial(people, 0.4 + gap), rng.binomial(people, np.full(periods, 0.4))
        size = np.full(periods, people)
        ours.append(drifted(gap_drift(a, size, b, size, 0.05)))
        p, q = a[[0, -1]] / people, b[[0, -1]] / people
        spread = np.sqrt(((p * (1 - p) + q * (1 - q)) / people).sum())
        theirs.append(bool(abs((p - q)[1] - (p - q)[0]) > 1.96 * spread))
    return np.array(ours), np.array(theirs)


def sees_lasting(samples: int, rng: Generator, *, people: tuple[int, int], gaps: int) -> Pair:
    """Return whether a lasting jump of one gap among many is detected, beside detection by the last look alone.

    The design is a year of two models, three groupings and three rates; the group's rate falls from .38 to .04 in month
    7.
    """
    ours, theirs = [], []
    sizes = [np.full(12, size) for size in people]
    for _ in range(samples):
        a, b = rng.binomial(people[0], np.repeat([0.38, 0.04], 6)), rng.binomial(people[1], np.full(12, 0.38))
        found = gap_drift(a, sizes[0], b, sizes[1], 0.05 / gaps)
        ours.append(drifted(found))
        theirs.append(bool((found.nearest[found.start == found.look] > 0).any()))
    return np.array(ours), np.array(theirs)


def promises(book: Book) -> None:
    """Declare the lines of gaps over time."""
    forgets = "each look at its own 95 %"
    for name, population in POPULATIONS:
        book.measure(
            "limits of a gap in all periods",
            name,
            partial(cover_all, **population),
            kind="interval",
            nominal=0.95,
            samples=2000,
            guard=100,
            oracle=forgets,
        )
        book.measure(
            "a gap “has drifted” that has not",
            name,
            partial(tell_drift, **population),
            kind="verdict",
            nominal=0.05,
            samples=400,
            oracle=forgets,
        )
    for name, rate in RATES:
        book.measure(
            "limits of the rate so far, at 50 looks",
            name,
            partial(never_miss, **rate),
            kind="interval",
            nominal=0.95,
            samples=4000,
            guard=200,
            oracle="Clopper-Pearson at each",
        )
    book.measure(
        "a gap that grows is seen",
        "0 to 25 points in 12 months, 200 and 200 people",
        partial(sees, periods=12, people=200, grows=0.25),
        kind="power",
        samples=400,
        oracle="z-test of the first and the last, once",
    )
    book.measure(
        "a gap that opens for good is seen among 48",
        "0 to 34 points in month 7 of 12, 55 and 120 people",
        partial(sees_lasting, people=(55, 120), gaps=48),
        kind="power",
        samples=400,
        oracle="each month alone against those before",
    )
