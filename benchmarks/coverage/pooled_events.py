"""Level of the UGESP profile's pooled tests, and coverage of the Mantel-Haenszel ratio's limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from benchmarks.coverage._lines import Book
from evenhand.stats.pooled_events import PooledSelection, pooled_selection

MEASURED = ("stats/pooled_events.py",)


@dataclass(frozen=True)
class Population:
    """Events with the larger group's rates between two ends, and a common ratio of rates."""

    name: str
    events: int
    few: int
    many: int
    rates: tuple[float, float]
    ratio: float = 1.0
    guard: int = 0


ROUGH = "a chi-square approximation"
POPULATIONS = (
    Population("1 event of 30 and 60 people, rate 0.3", 1, 30, 60, (0.3, 0.3), guard=20),
    Population("5 events of 10 and 30 people, rates 0.2 to 0.6", 5, 10, 30, (0.2, 0.6)),
    Population("40 events of 3 and 6 people, rates 0.1 to 0.5", 40, 3, 6, (0.1, 0.5)),
    Population("6 events of 200 and 400 people, rates 0.05 to 0.65", 6, 200, 400, (0.05, 0.65)),
    Population("5 events of 40 and 80 people, rates 0.2 to 0.6, ratio 0.7", 5, 40, 80, (0.2, 0.6), 0.7),
    Population("20 events of 10 and 20 people, rates 0.1 to 0.5, ratio 0.5", 20, 10, 20, (0.1, 0.5), 0.5),
)


def drawn(population: Population, rng: Generator) -> PooledSelection:
    """Return the comparison of one random sample."""
    rates = np.linspace(*population.rates, population.events)
    sizes = np.full(population.events, population.few), np.full(population.events, population.many)
    selected = rng.binomial(sizes[0], population.ratio * rates), rng.binomial(sizes[1], rates)
    return pooled_selection(selected[0], sizes[0], selected[1], sizes[1])


def promises(book: Book) -> None:
    """Declare the lines of all populations."""

    def rejected(samples: int, rng: Generator, population: Population, measure: str) -> ArrayLike:
        found = [drawn(population, rng) for _ in range(samples)]
        if measure == "deviations":
            return [abs(one.deviations) >= 1.959964 for one in found]
        return [getattr(one, measure) <= 0.05 for one in found]

    def covered(samples: int, rng: Generator, population: Population) -> ArrayLike:
        found = [drawn(population, rng) for _ in range(samples)]
        return [one.low <= population.ratio <= one.high for one in found]

    for population in POPULATIONS:
        place = population.name
        if population.ratio == 1.0:
            exact = partial(rejected, population=population, measure="p_value")
            what = "the exact test of the UGESP profile pooled over events, p at most 0.05"
            book.measure(what, place, exact, kind="test", samples=4_000, guard=population.guard, nominal=0.05)
            normal = partial(rejected, population=population, measure="deviations")
            what = "the pooled standard deviations of the UGESP profile, 1.96"
            why = "a normal approximation; the exact test stands beside it"
            about: dict[str, Any] = {"nominal": 0.05, "allowed": 0.065, "why": why}
            book.measure(what, place, normal, kind="test", samples=4_000, **about)
        limits = partial(covered, population=population)
        what = "limits of the Mantel-Haenszel ratio of the UGESP profile"
        book.measure(what, place, limits, kind="interval", samples=4_000, nominal=0.95)
        if population.ratio == 1.0 and population.few >= 100:
            consistency = partial(rejected, population=population, measure="consistency")
            what = "Breslow and Day's test of the UGESP profile, p at most 0.05"
            book.measure(what, place, consistency, kind="test", samples=4_000, nominal=0.05, allowed=0.065, why=ROUGH)
