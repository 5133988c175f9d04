"""Coverage of the intervals of reversed pairs and of their gap between groups, and the level of the test.

Start and end values are independent. Scores follow the end with noise, are random, punish effort, are decisions, or
follow effort except for one person in twenty. The true value is the exact share in a population of 20,000. Samples
without a comparable pair are ignored. Beside our interval is Wilson's, as if pairs were independent.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.coverage._lines import Book
from evenhand.stats.intervals import wilson
from evenhand.stats.pairs import compare_groups, count_reversals
from evenhand.stats.pairs.direction import Direction
from evenhand.stats.types import FloatArray

MEASURED = ("stats/pairs/direction.py",)

POPULATION = 20_000
KINDS = ("level with noise", "random", "punishing", "decisions", "one in twenty at random", "hardly any reversal")


def people(kind: str, n: int, rng: np.random.Generator, bias: float = 0.0) -> tuple[FloatArray, ...]:
    """Return score, effort, start, end and group (0 or 1) of random people; `bias` lowers the scores of group 1."""
    start, end, noise = rng.gamma(2.0, 1.0, n), rng.gamma(2.0, 1.0, n), rng.standard_normal(n)
    group = (rng.random(n) < 0.3).astype(np.float64)
    slope, spread = {"random": (0.0, 1.0), "punishing": (-0.3, 1.0), "hardly any reversal": (1.0, 0.15)}.get(
        kind, (0.5, 1.0)
    )
    if kind == "one in twenty at random":
        slope, noise = 1.0, np.where(rng.random(n) < 0.05, 1.0, 0.0) * rng.normal(0.0, 5.0, n)
    inner = slope * (end - 2.0) + spread * noise - bias * group
    score = (inner > 0).astype(np.float64) if kind == "decisions" else 1 / (1 + np.exp(-inner))
    return score, 1 / (1 + np.exp(start - end)), start, end, group


def counted(kind: str, n: int, rng: np.random.Generator, bias: float = 0.0) -> Direction:
    """Return the counted pairs of a random sample."""
    *columns, group = people(kind, n, rng, bias)
    score, effort, start, end = columns
    return count_reversals(score, effort, start, end, group=group.astype(np.int64), threads=1)


@cache
def truth(kind: str, bias: float = 0.0) -> tuple[float, float]:
    """Return the population's share of reversed pairs, and its gap between the groups."""
    found = counted(kind, POPULATION, np.random.default_rng(0), bias)
    return found.everybody.reversed().value, compare_groups(found.between(1, 0), found.between(0, 1))[0].value


def covers(samples: int, rng: np.random.Generator, n: int, kind: str) -> tuple[list[bool], list[bool]]:
    """Return whether each interval covers the true share: ours, and Wilson's for independent pairs."""
    share = truth(kind)[0]
    ours, naive = [], []
    for _ in range(samples):
        found = counted(kind, n, rng).everybody
        if not found.pairs:
            continue
        result = found.reversed()
        low, high = wilson(result.value, found.pairs)
        ours.append(np.isnan(result.low) or result.low <= share <= result.high)
        naive.append(bool(low <= share <= high))
    return ours, naive


def covers_gap(samples: int, rng: np.random.Generator, n: int, kind: str, bias: float) -> list[bool]:
    """Return whether each interval of the gap between groups covers the true gap."""
    gap, ours = truth(kind, bias)[1], []
    for _ in range(samples):
        found = counted(kind, n, rng, bias)
        result, _ = compare_groups(found.between(1, 0), found.between(0, 1))
        if not np.isnan(result.low):
            ours.append(result.low <= gap <= result.high)
    return ours


def rejects(samples: int, rng: np.random.Generator, n: int, kind: str) -> list[bool]:
    """Return whether each test rejects the null of a score as good as random."""
    found = (counted(kind, n, rng).everybody.p_value() for _ in range(samples))
    return [p < 0.05 for p in found if not np.isnan(p)]


def promises(book: Book) -> None:
    """Declare the lines of all sample sizes and kinds of scores."""
    about: dict[str, Any] = {"kind": "interval", "nominal": 0.95}
    for n in (30, 100, 300):
        for kind in KINDS:
            book.measure(
                "reversed pairs, 95 % interval",
                f"{n} people, scores: {kind}",
                partial(covers, n=n, kind=kind),
                samples=1_000,
                guard=60 if (n, kind) == (100, "level with noise") else 0,
                oracle="as if pairs were independent (Wilson)",
                **about,
            )
        for kind, bias in (("level with noise", 0.0), ("level with noise", 1.0), ("decisions", 0.0)):
            book.measure(
                "gap of reversed pairs between two groups, 95 % interval",
                f"{n} people, scores: {kind}, bias {bias:g}",
                partial(covers_gap, n=n, kind=kind, bias=bias),
                samples=1_000,
                **about,
            )
        book.measure(
            "reversed pairs, test against a random score",
            f"{n} people, scores: random",
            partial(rejects, n=n, kind="random"),
            kind="test",
            nominal=0.05,
            samples=1_000,
            guard=100 if n == 100 else 0,
        )
        book.measure(
            "reversed pairs, test against a random score",
            f"{n} people, scores: punishing",
            partial(rejects, n=n, kind="punishing"),
            kind="power",
            samples=500,
        )
