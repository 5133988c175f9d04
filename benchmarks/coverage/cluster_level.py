"""Level and coverage of parity with clustered rows, for equal groups and for a known gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

import evenhand as eh
from benchmarks.coverage._lines import Book
from evenhand.stats.types import IntArray

MEASURED = ("audits/parity/clustered.py", "stats/clusters.py")

Sizes = Callable[[int, Generator], IntArray]


def equal_sizes(clusters: int, _: Generator) -> IntArray:
    """Return a size of 20 rows for each cluster."""
    return np.full(clusters, 20)


def uneven_sizes(clusters: int, rng: Generator) -> IntArray:
    """Return lognormal cluster sizes with a median of 12 rows."""
    return np.maximum(1, rng.lognormal(2.5, 1.0, clusters)).astype(np.int64)


def few_huge(clusters: int, rng: Generator) -> IntArray:
    """Return 10 rows for most clusters, and 500 rows for one in twenty."""
    return np.where(rng.random(clusters) < 0.05, 500, 10)


@dataclass(frozen=True)
class Population:
    """Clusters of two groups; a cluster's rate is beta distributed around its group's rate.

    Parameters
    ----------
    clusters : the number of clusters of the first and of the second group.
    rate, gap : the first group's rate, and the second group's rate minus it.
    within : the correlation of rows within a cluster.
    mixed : whether clusters contain both groups.
    """

    name: str
    clusters: tuple[int, int]
    sizes: Sizes = equal_sizes
    rate: float = 0.5
    gap: float = 0.0
    within: float = 0.1
    mixed: bool = False
    guard: int = 0

    def drawn(self, rng: Generator) -> dict[str, Any]:
        """Return the rows of one random sample."""
        number = sum(self.clusters)
        cluster = np.repeat(np.arange(number), self.sizes(number, rng))
        second = rng.random(len(cluster)) < 0.5 if self.mixed else cluster >= self.clusters[0]
        strength = 1.0 / self.within - 1.0
        rates = [rng.beta(rate * strength, (1 - rate) * strength, number) for rate in (self.rate, self.rate + self.gap)]
        if self.mixed:
            rates[1] = rates[0] + self.gap
        chance = np.clip(np.where(second, rates[1][cluster], rates[0][cluster]), 0.0, 1.0)
        selected = (rng.random(len(cluster)) < chance).astype(int)
        score = np.clip(0.6 * chance + 0.4 * rng.random(len(cluster)), 0.0, 1.0).round(3)
        return {"group": np.where(second, "B", "A"), "cluster": cluster, "selected": selected, "score": score}


POPULATIONS = (
    Population("100 clusters of 20 rows, correlation 0.05", (50, 50), within=0.05, guard=30),
    Population("100 clusters of 20 rows, correlation 0.1", (50, 50)),
    Population("100 clusters of 20 rows, correlation 0.3", (50, 50), within=0.3),
    Population("10 and 10 clusters of 20 rows, correlation 0.3", (10, 10), within=0.3),
    Population("10 and 90 clusters of 20 rows, rate 0.1, correlation 0.3", (10, 90), rate=0.1, within=0.3),
    Population("10 and 90 clusters of uneven sizes, rate 0.1", (10, 90), uneven_sizes, rate=0.1),
    Population("20 and 180 clusters, a few huge, rate 0.1", (20, 180), few_huge, rate=0.1),
    Population("20 and 180 clusters of 20 rows, rate 0.02", (20, 180), rate=0.02),
    Population("40 clusters with both groups, correlation 0.3", (20, 20), within=0.3, mixed=True),
    Population("100 clusters of 20 rows, gap 0.15", (50, 50), rate=0.3, gap=0.15),
    Population("10 and 40 clusters of uneven sizes, gap 0.2", (10, 40), uneven_sizes, rate=0.2, gap=0.2),
    Population("40 clusters with both groups, gap 0.1", (20, 20), rate=0.3, gap=0.1, within=0.05, mixed=True),
)


def compared(population: Population, column: str, rng: Generator) -> Any:
    """Return the gap to the first group in one random sample; None if undefined."""
    metric = "selection_rate" if column == "selected" else "mean_score"
    predictions = {"m": {"column": column, "kind": "decision" if column == "selected" else "score", "threshold": 0.5}}
    if column == "selected":
        predictions["m"].pop("threshold")
    table = eh.Table(population.drawn(rng), groups="group", predictions=predictions, cluster="cluster")
    result = eh.parity(table, metrics=metric, reference="A")
    return next((gap for gap in result.gaps if (gap.kind, gap.against) == ("difference", "reference")), None)


def promises(book: Book) -> None:
    """Declare the lines of all populations."""

    def rejected(samples: int, rng: Generator, population: Population, column: str) -> ArrayLike:
        found = [compared(population, column, rng) for _ in range(samples)]
        return [gap is not None and gap.p_value is not None and gap.p_value < 0.05 for gap in found]

    def covered(samples: int, rng: Generator, population: Population) -> ArrayLike:
        found = [compared(population, "selected", rng) for _ in range(samples)]
        return [gap.low <= population.gap <= gap.high for gap in found if gap is not None and gap.low is not None]

    for population in POPULATIONS:
        if population.gap:
            what = "limits of a gap in selection rates, rows in clusters"
            about: dict[str, Any] = {"kind": "interval", "samples": 1_000, "nominal": 0.95}
            book.measure(what, population.name, partial(covered, population=population), **about)
            continue
        for column, measure in (("selected", "selection rates"), ("score", "mean scores")):
            what = f"test of equal {measure}, rows in clusters"
            about = {"kind": "test", "samples": 1_000, "nominal": 0.05, "guard": population.guard}
            book.measure(what, population.name, partial(rejected, population=population, column=column), **about)
