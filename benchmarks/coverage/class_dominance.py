"""Level and coverage of ordinal dominance: groups in three to five classes, of equal and unequal size.

Beside the level stands that of the Mann-Whitney test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator
from scipy.stats import mannwhitneyu

from benchmarks.coverage._lines import Book, Line
from evenhand.audits.classes.estimate import DominancePair

MEASURED = ("stats/permutation", "audits/classes/estimate.py")


@dataclass(frozen=True)
class Population:
    """The shares of both groups by class, and their sizes."""

    name: str
    first: tuple[float, ...]
    second: tuple[float, ...]
    sizes: tuple[int, int]
    allowed: float | None = None
    why: str = ""

    @property
    def truth(self) -> float:
        """Cliff's delta."""
        first, second = np.array(self.first), np.array(self.second)
        below = np.concatenate([[0.0], np.cumsum(second)[:-1]])
        above = 1.0 - np.cumsum(second)
        return round(float((first * (below - above)).sum()), 12)


THREE, FIVE, RARE = (0.5, 0.3, 0.2), (0.1, 0.2, 0.4, 0.2, 0.1), (0.96, 0.03, 0.01)
POPULATIONS = (
    *(Population("equal, three classes", THREE, THREE, sizes) for sizes in ((15, 15), (40, 40), (30, 300), (500, 500))),
    Population("equal, five classes", FIVE, FIVE, (25, 100)),
    Population("equal, 4 % above the lowest class", RARE, RARE, (100, 400)),
    Population("the same mean class, other spread", (0.3, 0.4, 0.3), (0.1, 0.8, 0.1), (40, 200)),
    Population("better by a third of a class", (0.35, 0.3, 0.35), THREE, (60, 60)),
    Population("better by a third of a class", (0.35, 0.3, 0.35), THREE, (30, 300)),
)


def lines_of(samples: int, rng: Generator, of: Population) -> Sequence[Line]:
    """Return coverage, and the share of rejections: of equality a level, else the power."""
    found, peer = [], []
    for _ in range(samples):
        counts = rng.multinomial(of.sizes[0], of.first), rng.multinomial(of.sizes[1], of.second)
        pair = DominancePair(*counts)
        if not np.isnan(pair.p_value):
            low, high = pair.limits(0.95)
            found.append((low <= of.truth <= high, pair.p_value < 0.05))
            first, second = (np.repeat(np.arange(len(each), dtype=np.float64), each) for each in counts)
            peer.append(mannwhitneyu(first, second).pvalue < 0.05)
    covers, rejects = np.array(found, dtype=np.bool_).T
    population = f"{of.name}, {of.sizes[0]} and {of.sizes[1]} people"
    is_null = of.truth == 0.0
    interval = Line(
        what="interval of ordinal dominance",
        population=population,
        kind="interval",
        nominal=0.95,
        allowed=of.allowed,
        why=of.why,
    )
    test = Line(
        what="test of ordinal dominance",
        population=population,
        kind="test" if is_null else "power",
        nominal=0.05 if is_null else None,
        allowed=None if of.allowed is None or not is_null else 1.0 - of.allowed,
        why=of.why,
        oracle="Mann-Whitney",
    )
    return [interval.seen(covers), test.seen((rejects, np.array(peer)))]


def promises(book: Book) -> None:
    """Declare the lines."""
    for population in POPULATIONS:
        book.several(
            f"{population.name}, {population.sizes}",
            partial(lines_of, of=population),
            samples=2_000,
            guard=200 if population.sizes == (40, 40) else 0,
        )
