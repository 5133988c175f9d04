"""Coverage of limits for reweighted people.

People of two groups with different mixes of another attribute are drawn, and the gap is reweighted to other shares of
that attribute. The true gap is computed from the true rates with the new shares. Beside it are limits at the unweighted
number of people. Individual fairness is reweighted in the same way, for both people of a pair; its true value is the
exact value of 40,000 people with the new shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book
from evenhand.audits.effort.reweight import EffortReweighter
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.capabilities import Mix
from evenhand.messages import Message
from evenhand.stats.intervals import clopper_pearson, mover_difference
from evenhand.stats.pairs import individual_fairness
from evenhand.stats.pairs.distance import EUCLIDEAN
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval
from evenhand.stats.weighted import Moments, Weighted, gap_to_everybody, largest_gap
from evenhand.table.keys import column_key

MEASURED = ("stats/weighted.py",)


class Population(NamedTuple):
    """Two groups of people with mixes of another attribute.

    Parameters
    ----------
    people : the number of people in each group.
    mix : the share of the first part of the other attribute in each group.
    values : the rate of every group and part, or the two shape parameters of its scores.
    share : the share of the first part among all people, now and in the target population.
    """

    people: tuple[int, int]
    mix: tuple[float, float]
    values: Any
    share: tuple[float, float]


POPULATIONS: tuple[tuple[str, Population], ...] = (
    ("half women to .6, groups of 200", Population((200, 200), (0.3, 0.7), ((0.3, 0.6), (0.3, 0.6)), (0.5, 0.6))),
    (
        "half women to .9, groups of 60 and 1,000",
        Population((60, 1000), (0.4, 0.5), ((0.1, 0.5), (0.2, 0.3)), (0.5, 0.9)),
    ),
    (
        "one in ten to half, groups of 150, rare",
        Population((150, 150), (0.1, 0.1), ((0.02, 0.2), (0.05, 0.1)), (0.1, 0.5)),
    ),
)
SKEWED = Population((150, 300), (0.3, 0.6), (((1, 9), (2, 3)), ((1, 4), (3, 3))), (0.5, 0.7))
FEW_KNOWN, KNOWN = Population((800, 800), (0.3, 0.7), ((0.1, 0.7), (0.4, 0.5)), (0.5, 0.6)), 100


class Drawn(NamedTuple):
    """A sample with the parts' weights and the true values of both groups in the target population.

    `hits` are the numbers of people with the outcome by group and part, if the values are rates.
    """

    n: FloatArray
    weight: FloatArray
    true: FloatArray
    hits: FloatArray

    def gap(self, kind: str) -> float:
        """Return the size of the true gap."""
        one, other = self.true
        return float(abs(one - other) if kind == "difference" else min(one / other, other / one))


def drawn(samples: int, rng: Generator, population: Population) -> Iterator[Drawn]:
    """Yield random samples of a population."""
    people, mix, values, share = population
    weight = np.array([share[1] / share[0], (1 - share[1]) / (1 - share[0])])
    given = np.array(values, dtype=np.float64)
    means = given if given.ndim == 2 else given[..., 0] / given.sum(axis=-1)
    heavy = np.array([np.array([m, 1 - m]) * weight for m in mix])
    true = (means * heavy).sum(axis=1) / heavy.sum(axis=1)
    for _ in range(samples):
        first = np.array([rng.binomial(size, m) for size, m in zip(people, mix, strict=True)])
        n = np.stack([first, np.array(people) - first], axis=1).astype(np.float64)
        hits = rng.binomial(n.astype(np.int64), given) if given.ndim == 2 else np.zeros_like(n)
        yield Drawn(n, weight, true, hits.astype(np.float64))


def cover(samples: int, rng: Generator, population: Population) -> tuple[BoolArray, BoolArray]:
    """Return whether limits of the reweighted gap cover the true gap, with and without an effective size."""
    found: list[list[bool]] = []
    for one in drawn(samples, rng, population):
        values = Weighted.from_sums(Moments(one.n, one.hits, one.hits), one.weight)
        found.append([])
        for each in (values.size, one.n.sum(axis=1)):
            limits = clopper_pearson(values.value, each)
            sides = [Interval(limits.low[at], limits.high[at]) for at in (0, 1)]
            gap = mover_difference(values.value[0], sides[0], values.value[1], sides[1])
            found[-1].append(bool(gap.low <= one.true[0] - one.true[1] <= gap.high))
    ours, theirs = np.array(found, dtype=np.bool_).T
    return ours, theirs


def cover_everybody(samples: int, rng: Generator, population: Population, kind: str) -> list[bool]:
    """Return whether the limits of the first group's gap to all people cover the true gap."""
    found = []
    shares = np.array(population.mix)
    for one in drawn(samples, rng, population):
        heavy = np.array(population.people) * (shares * one.weight[0] + (1 - shares) * one.weight[1])
        everybody = float(heavy @ one.true / heavy.sum())
        true = one._replace(true=np.array([one.true[0], everybody])).gap(kind)
        _, low, high = gap_to_everybody(
            Weighted.from_sums(Moments(one.n, one.hits, one.hits).against_others(0), one.weight), kind, 0.95
        )
        found.append(low <= true <= high)
    return found


def cover_means(samples: int, rng: Generator, population: Population, kind: str) -> list[bool]:
    """Return whether the limits of the gap in beta-distributed mean scores cover the true gap."""
    found = []
    for one in drawn(samples, rng, population):
        sums = np.zeros((2, 2, 2))
        for at in np.ndindex(2, 2):
            alpha, beta = np.array(population.values, dtype=np.float64)[at]
            scores = rng.beta(alpha, beta, int(one.n[at]))
            sums[at] = scores.sum(), (scores**2).sum()
        values = Weighted.from_sums(Moments(one.n, sums[..., 0], sums[..., 1]), one.weight, (0.0, 1.0))
        _, low, high = largest_gap(values, kind, 0.95)
        found.append(low <= one.gap(kind) <= high)
    return found


def sampled_shares(rng: Generator, share: tuple[float, float], known: int) -> tuple[FloatArray, FloatArray]:
    """Return weights from shares estimated in a sample of the population, and their covariance."""
    there = rng.binomial(known, share[1]) / known
    shares, factor = np.array([there, 1 - there]), 1 / np.array([share[0], 1 - share[0]])
    spread = (np.diag(shares) - np.outer(shares, shares)) / known * np.outer(factor, factor)
    return shares * factor, spread


def cover_sampled(samples: int, rng: Generator, population: Population, kind: str) -> tuple[BoolArray, BoolArray]:
    """Return whether limits with sampled shares cover the true gap: ours, and treating shares as exact."""
    found: list[list[bool]] = []
    for one in drawn(samples, rng, population):
        weight, spread = sampled_shares(rng, population.share, KNOWN)
        found.append([])
        for each in (spread, None):
            values = Weighted.from_sums(Moments(one.n, one.hits, one.hits), weight, None, each)
            _, low, high = largest_gap(values, kind, 0.95)
            found[-1].append(low <= one.gap(kind) <= high)
    ours, theirs = np.array(found, dtype=np.bool_).T
    return ours, theirs


# Pairs of people ------------------------------------------------------------------------------------------------------

SHARE = (0.5, 0.8)
SPEC = EffortSpec(trajectory=("y1", "y2", "y3"), unit=1.0, scale=1.0)


class People(NamedTuple):
    """People in two parts; in the first part scores hardly follow effort."""

    part: IntArray
    score: FloatArray
    effort: FloatArray
    aggregate: FloatArray


def pairs_of(rng: Generator, n: int, share: float) -> People:
    """Return random people with this share in the first part."""
    part = (rng.random(n) >= share).astype(np.int64)
    effort, aggregate = rng.beta(2, 3, n), np.tanh(rng.gamma(2, 0.4, n))
    noise = np.where(part == 0, 6.0, 0.3) * rng.standard_normal(n)
    return People(part, 1 / (1 + np.exp(-(effort + aggregate - 0.9 + noise))), effort, aggregate)


def cover_pairs(samples: int, rng: Generator, n: int, known: int | None) -> list[bool] | tuple[BoolArray, BoolArray]:
    """Return whether reweighted individual fairness limits cover the truth, also as if sampled shares were exact."""
    truth = individual_fairness(*pairs_of(np.random.default_rng(0), 40_000, SHARE[1])[1:]).value
    exact = np.array([SHARE[1] / SHARE[0], (1 - SHARE[1]) / (1 - SHARE[0])])
    found: list[list[bool]] = []
    for _ in range(samples):
        people = pairs_of(rng, n, SHARE[0])
        weight, spread = (exact, None) if known is None else sampled_shares(rng, SHARE, known)
        judged = [individually(people, weight, each) for each in ((None,) if known is None else (spread, None))]
        found.append([low <= truth <= high for _, low, high in judged])
    columns = np.array(found, dtype=np.bool_).T
    return columns[0].tolist() if known is None else (columns[0], columns[1])


def individually(people: People, weight: FloatArray, spread: FloatArray | None) -> tuple[float, float, float]:
    """Return reweighted individual fairness with its limits, as a report computes it."""
    again = EffortReweighter(SimpleNamespace(), SimpleNamespace(), SPEC)  # type: ignore[arg-type]
    groups = SimpleNamespace(codes={column_key("part"): people.part})
    rows = SimpleNamespace(groups=groups)
    vars(again)["_people"] = SimpleNamespace(rows=rows, numbers=lambda _: people[1:], distance=EUCLIDEAN)
    finding: Any = SimpleNamespace(model="model", coordinates={"weight": 0.5})
    return again._individual(finding, Mix("part", Message(""), weight, spread))


def promises(book: Book) -> None:
    """Declare the lines of verdicts for reweighted people."""
    usual: dict[str, Any] = {"kind": "interval", "nominal": 0.95, "samples": 2000, "guard": 150}
    for name, population in POPULATIONS:
        what = "95 % interval of a gap with other shares"
        book.measure(what, name, partial(cover, population=population), **usual, oracle="without an effective size")
    for name, population in POPULATIONS[:2]:
        for kind in ("difference", "ratio"):
            what = f"95 % interval of a {kind} to everybody with other shares"
            book.measure(what, name, partial(cover_everybody, population=population, kind=kind), **usual)
    for kind in ("difference", "ratio"):
        what = f"95 % interval of a {kind} of mean scores with other shares"
        measured = partial(cover_means, population=SKEWED, kind=kind)
        book.measure(what, "skewed scores, groups of 150 and 300", measured, **usual)
        what = f"95 % interval of a {kind} with the shares of a table"
        measured_too = partial(cover_sampled, population=FEW_KNOWN, kind=kind)
        book.measure(what, f"{KNOWN} people known of it", measured_too, **usual, oracle="shares taken as exact")
    pairs: dict[str, Any] = {"kind": "interval", "nominal": 0.95, "samples": 1000}
    for n in (50, 200):
        measured_pairs = partial(cover_pairs, n=n, known=None)
        book.measure(
            "95 % interval of individual fairness with other shares", f"half to .8, {n}", measured_pairs, **pairs
        )
    what = "95 % interval of individual fairness with the shares of a table"
    known = partial(cover_pairs, n=400, known=50)
    book.measure(what, "50 people known of it, 400", known, **pairs, oracle="shares taken as exact")
