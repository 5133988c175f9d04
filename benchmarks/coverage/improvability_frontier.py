"""Coverage of the frontier's joint region.

Every row of two or three groups is decided correctly with a probability that depends on its group and on the algorithm,
so the overall accuracy and the gap are known. A sample counts as covered if the regions of the status quo and of all
three candidates contain both true numbers. The candidates decide half of the rows like the status quo, so all results
are correlated.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book
from evenhand.stats.improvability import bootstrap_values, frontier_region, get_utility, make_rows
from evenhand.stats.types import BoolArray

MEASURED = ("stats/improvability/frontier.py", "stats/improvability/resampling.py")

RIGHT = get_utility("classification")
POPULATIONS: dict[str, list[tuple[float, ...]]] = {
    "two groups, no gaps": [(0.7, 0.7), (0.75, 0.75), (0.8, 0.8), (0.8, 0.8)],
    "two groups, a gap that shrinks": [(0.6, 0.8), (0.7, 0.8), (0.75, 0.8), (0.8, 0.75)],
    "two groups, accuracy near 1": [(0.97, 0.99), (0.98, 0.99), (0.985, 0.99), (0.99, 0.99)],
    "three groups, two tied": [(0.6, 0.8, 0.8), (0.7, 0.8, 0.8), (0.75, 0.75, 0.75), (0.8, 0.7, 0.8)],
}
SHARES = {2: (0.3, 0.7), 3: (0.2, 0.3, 0.5)}


def covered(samples: int, rng: Generator, n: int, chances: list[tuple[float, ...]]) -> BoolArray:
    """Return for each sample whether all regions contain the true values."""
    groups = len(chances[0])
    shares = np.array(SHARES[groups])
    level = 1 - 0.05 / len(chances)
    found = np.ones(samples, dtype=np.bool_)
    for sample in range(samples):
        group = rng.choice(groups, size=n, p=shares)
        y = rng.integers(0, 2, n)
        luck, again, same = rng.random(n), rng.random((len(chances), n)), rng.random(n) < 0.5
        decisions = [
            np.where(np.where(same, luck, again[t]) < np.array(chance)[group], y, 1 - y)
            for t, chance in enumerate(chances)
        ]
        for candidate in range(1, len(chances)):
            rows = make_rows(group, y, decisions[0], decisions[candidate], utilities=[RIGHT], names="abc"[:groups])
            draws = bootstrap_values(rows, resamples=999, rng=rng)
            region = frontier_region(draws, 0, level, rows.freedom())
            for side, which in ((0, 0), (1, candidate)) if candidate == 1 else ((1, candidate),):
                chance = np.array(chances[which])
                for number, truth in enumerate((shares @ chance, np.ptp(chance))):
                    _, low, high = region[side, number]
                    found[sample] &= bool(low - 1e-12 <= truth <= high + 1e-12)
    return found


def promises(book: Book) -> None:
    """Declare the lines of all populations."""
    for name, chances in POPULATIONS.items():
        for n in (200, 1_000):
            if (n, name) == (200, "two groups, accuracy near 1"):
                continue  # fewer than ten errors in a group: the report warns of such counts
            book.measure(
                "Frontier: accuracy and gap of all algorithms",
                f"{name}, {n:,} rows",
                partial(covered, n=n, chances=chances),
                kind="interval",
                nominal=0.95,
                samples=300,
                guard=40 if (n, name) == (200, "two groups, no gaps") else 0,
            )
