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

from evenhand.report.elsewhere import weighted_rates
from evenhand.stats.intervals import clopper_pearson, mover_difference
from evenhand.stats.types import BoolArray, Interval

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
    weight = np.array([share[1] / share[0], (1 - share[1]) / (1 - share[0])])
    p = np.array(rates)
    true = np.array([np.array([m, 1 - m]) * weight for m in mix])
    true = (p * true).sum(axis=1) / true.sum(axis=1)
    ours: list[bool] = []
    theirs: list[bool] = []
    for _ in range(samples):
        first = np.array([rng.binomial(size, m) for size, m in zip(people, mix, strict=True)])
        n = np.stack([first, np.array(people) - first], axis=1).astype(np.float64)
        rate, size = weighted_rates(rng.binomial(n.astype(np.int64), p).astype(np.float64), n, weight)
        for found, each in ((ours, size), (theirs, n.sum(axis=1))):
            limits = clopper_pearson(rate, each)
            sides = [Interval(limits.low[at], limits.high[at]) for at in (0, 1)]
            gap = mover_difference(rate[0], sides[0], rate[1], sides[1])
            found.append(bool(gap.low <= true[0] - true[1] <= gap.high))
    return np.array(ours), np.array(theirs)


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


if __name__ == "__main__":
    run(promises, __file__, "report/elsewhere.py")
