"""Exact false alarm rates of the UGESP profile's indicators for two groups without a gap."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.stats import binom

from benchmarks.coverage._lines import Book, Kind
from evenhand.stats.adverse_impact import adverse_impact

MEASURED = ("stats/adverse_impact.py",)

_UNLIKELY = 1e-7

LINES: tuple[tuple[str, Kind], ...] = (
    ("Fisher's exact test of the UGESP profile, p at most 0.05", "test"),
    ("two standard deviations of the UGESP profile", "test"),
    ("four fifths of the UGESP profile without a gap", "power"),
)


@cache
def shares(few: int, many: int, rate: float) -> tuple[float, float, float]:
    """Return the exact probabilities of Fisher's p <= 0.05, of 2 SD and of four fifths for two equal groups."""
    chance = np.outer(binom.pmf(range(few + 1), few, rate), binom.pmf(range(many + 1), many, rate))
    total = np.zeros(3)
    for x, y in np.argwhere(chance > _UNLIKELY):
        found = adverse_impact([few, many], [x, y])
        other = 1 - found.highest
        named = (found.p_value[other] <= 0.05, found.deviations[other] <= -2, found.below[other])
        total += chance[x, y] * np.array(named)
    fisher, deviations, four_fifths = total.tolist()
    return fisher, deviations, four_fifths


def promises(book: Book) -> None:
    """Declare the lines; `samples` is nominal, since the shares are exact."""

    def exact(_: int, __: Generator, at: int, people: tuple[int, int], rate: float) -> float:
        return shares(*people, rate)[at]

    for people in ((10, 20), (30, 30), (100, 100)):
        for rate in (0.1, 0.3, 0.5):
            population = f"{people[0]} and {people[1]} people, both with a rate of {rate:g}"
            guard = 1 if people == (10, 20) else 0
            for at, (what, kind) in enumerate(LINES):
                about: dict[str, Any] = {"nominal": 0.05} if kind == "test" else {}
                if at == 1:
                    about |= {"allowed": 0.06, "why": "a normal approximation; the convention is 2, not a level"}
                book.measure(
                    what,
                    population,
                    partial(exact, at=at, people=people, rate=rate),
                    kind=kind,
                    samples=1,
                    guard=guard,
                    **about,
                )
