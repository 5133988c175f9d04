"""Do the limits of a reweighted gap cover it? `python benchmarks/elsewhere_coverage.py [--only WORDS]`.

People of two groups are drawn, each with its own mix of another attribute, and the gap is reweighted to other shares of
that attribute. The true gap elsewhere is that of the true rates with the new shares. Beside it: the same rates with
limits at the plain number of people, as if there were no weights.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from promises import Book, run

from evenhand.report.reweighting import Moments, Weighted, everybody_judged, gap_judged
from evenhand.stats.intervals import clopper_pearson, mover_difference
from evenhand.stats.types import BoolArray, FloatArray, Interval

POPULATIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "half women to .6, groups of 200",
        {"people": (200, 200), "mix": (0.3, 0.7), "rates": ((0.3, 0.6), (0.3, 0.6)), "share": (0.5, 0.6)},
    ),
    (
        "half women to .9, groups of 60 and 1,000",
        {"people": (60, 1000), "mix": (0.4, 0.5), "rates": ((0.1, 0.5), (0.2, 0.3)), "share": (0.5, 0.9)},
    ),
    (
        "one in ten to half, groups of 150, rare",
        {"people": (150, 150), "mix": (0.1, 0.1), "rates": ((0.02, 0.2), (0.05, 0.1)), "share": (0.1, 0.5)},
    ),
)


def people_of(
    rng: Generator, people: tuple[int, int], mix: tuple[float, float], share: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return people by group and part of the other attribute, and the weight of each part."""
    first = np.array([rng.binomial(size, m) for size, m in zip(people, mix, strict=True)])
    n = np.stack([first, np.array(people) - first], axis=1).astype(np.float64)
    return n, np.array([share[1] / share[0], (1 - share[1]) / (1 - share[0])])


def true_values(values: Any, mix: tuple[float, float], weight: FloatArray) -> FloatArray:
    """Return the values of both groups elsewhere."""
    heavy = np.array([np.array([m, 1 - m]) * weight for m in mix])
    return np.asarray((np.array(values) * heavy).sum(axis=1) / heavy.sum(axis=1))


def cover(
    samples: int,
    rng: Generator,
    *,
    people: tuple[int, int],
    mix: tuple[float, float],
    rates: Any,
    share: tuple[float, float],
) -> tuple[BoolArray, BoolArray]:
    """Tell which limits of the reweighted gap cover the true one."""
    ours: list[bool] = []
    theirs: list[bool] = []
    for _ in range(samples):
        n, weight = people_of(rng, people, mix, share)
        true = true_values(rates, mix, weight)
        hits = rng.binomial(n.astype(np.int64), np.array(rates)).astype(np.float64)
        values = Weighted.of(Moments(n, hits, hits), weight)
        for found, each in ((ours, values.size), (theirs, n.sum(axis=1))):
            limits = clopper_pearson(values.value, each)
            sides = [Interval(limits.low[at], limits.high[at]) for at in (0, 1)]
            gap = mover_difference(values.value[0], sides[0], values.value[1], sides[1])
            found.append(bool(gap.low <= true[0] - true[1] <= gap.high))
    return np.array(ours), np.array(theirs)


def cover_everybody(
    samples: int,
    rng: Generator,
    *,
    kind: str,
    people: tuple[int, int],
    mix: tuple[float, float],
    rates: Any,
    share: tuple[float, float],
) -> BoolArray:
    """Tell which limits of the first group's gap to everybody cover the true one."""
    found = []
    for _ in range(samples):
        n, weight = people_of(rng, people, mix, share)
        hits = rng.binomial(n.astype(np.int64), np.array(rates)).astype(np.float64)
        heavy = np.array([size * (m * weight[0] + (1 - m) * weight[1]) for size, m in zip(people, mix, strict=True)])
        group, other = true_values(rates, mix, weight)
        everybody = float(heavy @ [group, other] / heavy.sum())
        true = abs(group - everybody) if kind == "difference" else min(group / everybody, everybody / group)
        _, low, high = everybody_judged(Weighted.of(Moments(n, hits, hits).rest(0), weight), kind, 0.95)
        found.append(bool(low <= true <= high))
    return np.array(found)


def cover_means(
    samples: int,
    rng: Generator,
    *,
    kind: str,
    people: tuple[int, int],
    mix: tuple[float, float],
    scores: Any,
    share: tuple[float, float],
) -> BoolArray:
    """Tell which limits of the gap in mean scores, beta-distributed in each part, cover the true one."""
    shape = np.array(scores)  # (groups, parts, 2)
    found = []
    for _ in range(samples):
        n, weight = people_of(rng, people, mix, share)
        one, other = true_values(shape[..., 0] / shape.sum(axis=-1), mix, weight)
        true = abs(one - other) if kind == "difference" else min(one / other, other / one)
        sums = np.zeros((2, 2, 2))
        for at in np.ndindex(2, 2):
            drawn = rng.beta(float(shape[at][0]), float(shape[at][1]), int(n[at]))
            sums[at] = drawn.sum(), (drawn**2).sum()
        values = Weighted.of(Moments(n, sums[..., 0], sums[..., 1]), weight, (0.0, 1.0))
        _, low, high = gap_judged(values, kind, 0.95)
        found.append(bool(low <= true <= high))
    return np.array(found)


def cover_sampled(
    samples: int,
    rng: Generator,
    *,
    kind: str,
    known: int,
    people: tuple[int, int],
    mix: tuple[float, float],
    rates: Any,
    share: tuple[float, float],
) -> tuple[BoolArray, BoolArray]:
    """Tell which limits cover where the new shares come from so many people of the population; and without that."""
    ours: list[bool] = []
    theirs: list[bool] = []
    for _ in range(samples):
        n, weight = people_of(rng, people, mix, share)
        one, other = true_values(rates, mix, weight)
        true = abs(one - other) if kind == "difference" else min(one / other, other / one)
        hits = rng.binomial(n.astype(np.int64), np.array(rates)).astype(np.float64)
        there = rng.binomial(known, share[1]) / known
        shares, factor = np.array([there, 1 - there]), 1 / np.array([share[0], 1 - share[0]])
        spread = (np.diag(shares) - np.outer(shares, shares)) / known * np.outer(factor, factor)
        for found, each in ((ours, spread), (theirs, None)):
            values = Weighted.of(Moments(n, hits, hits), shares * factor, None, each)
            _, low, high = gap_judged(values, kind, 0.95)
            found.append(bool(low <= true <= high))
    return np.array(ours), np.array(theirs)


SKEWED: dict[str, Any] = {
    "people": (150, 300),
    "mix": (0.3, 0.6),
    "scores": (((1, 9), (2, 3)), ((1, 4), (3, 3))),
    "share": (0.5, 0.7),
}
FEW_KNOWN: dict[str, Any] = {
    "people": (800, 800),
    "mix": (0.3, 0.7),
    "rates": ((0.1, 0.7), (0.4, 0.5)),
    "share": (0.5, 0.6),
    "known": 100,
}


def promises(book: Book) -> None:
    """Measure the lines of verdicts elsewhere."""
    for name, population in POPULATIONS:
        book.measure(
            "95 % interval of a gap with other shares",
            name,
            partial(cover, **population),
            kind="interval",
            nominal=0.95,
            samples=2000,
            guard=150,
            oracle="without an effective size",
        )
    usual: dict[str, Any] = {"kind": "interval", "nominal": 0.95, "samples": 2000, "guard": 150}
    for name, population in POPULATIONS[:2]:
        for kind in ("difference", "ratio"):
            measured = partial(cover_everybody, **population)
            what = f"95 % interval of a {kind} to everybody with other shares"
            book.measure(what, name, partial(measured, kind=kind), **usual)
    for kind in ("difference", "ratio"):
        what = f"95 % interval of a {kind} of mean scores with other shares"
        book.measure(what, "skewed scores, groups of 150 and 300", partial(cover_means, kind=kind, **SKEWED), **usual)
        what = f"95 % interval of a {kind} with the shares of a table"
        measured_too = partial(cover_sampled, kind=kind, **FEW_KNOWN)
        book.measure(what, "100 people known of it", measured_too, **usual, oracle="shares taken as exact")


if __name__ == "__main__":
    run(promises, __file__, "report/reweighting.py")
