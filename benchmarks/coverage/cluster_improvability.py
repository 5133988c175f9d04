"""Level of the signed test where rows come in clusters, of decisions that err together within one."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from benchmarks.coverage._lines import Book
from evenhand.stats.improvability import (
    Criteria,
    Pair,
    SplitTest,
    ValueDraws,
    bootstrap_clusters,
    bootstrap_values,
    get_utility,
    make_rows,
)

MEASURED = ("stats/improvability/clustered.py", "stats/improvability/resampling.py", "stats/improvability/split.py")
RIGHT = get_utility("classification")
CLUSTERS = (10, 30, 100)
CORRELATIONS = (0.05, 0.1, 0.3)
ROWS, RESAMPLES = 10, 999
STATUS_QUO, CANDIDATE = (0.75, 0.6), (0.9, 0.75)
"""The shares of right decisions in both groups: the candidate is more accurate in both, and its gap is as large."""


def rejections(samples: int, rng: Generator, clusters: int, within: float) -> tuple[ArrayLike, ArrayLike]:
    """Return whether the gap is said to shrink, by clusters and by rows."""
    cluster = np.repeat(np.arange(2 * clusters), ROWS)
    group, strength = cluster % 2, 1.0 / within - 1.0
    found = []
    for _ in range(samples):
        decided = []
        for rates in (STATUS_QUO, CANDIDATE):
            rate = np.array(rates)[np.arange(2 * clusters) % 2]
            chance = rng.beta(rate * strength, (1 - rate) * strength)[cluster]
            decided.append((rng.random(len(cluster)) < chance).astype(float))
        rows = make_rows(group, np.ones(len(cluster)), decided[0], decided[1], [RIGHT], names="ab")
        both = (
            bootstrap_clusters(rows, cluster, resamples=RESAMPLES, rng=rng),
            bootstrap_values(rows, resamples=RESAMPLES, rng=rng),
        )
        found.append([_p(draws) <= 0.1 for draws in both])
    by_clusters, by_rows = np.array(found).T
    return by_clusters, by_rows


def _p(draws: ValueDraws) -> float:
    test = SplitTest(draws=draws, criteria=Criteria(RIGHT, (RIGHT,)), worst=(Pair(0, 1),), direction="either")
    return float(test.fairness_p(0, np.zeros(1))[0])


def promises(book: Book) -> None:
    """Declare the lines."""
    for clusters in CLUSTERS:
        for within in CORRELATIONS:
            book.measure(
                "test that a gap shrinks, rows in clusters",
                f"{clusters} and {clusters} clusters of {ROWS} rows, correlation {within}",
                partial(rejections, clusters=clusters, within=within),
                kind="test",
                nominal=0.1,
                oracle="rows drawn one by one",
                samples=1_000,
                guard=100 if (clusters, within) == (30, 0.3) else 0,
            )
