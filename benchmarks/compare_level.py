"""Does a comparison of two audits keep its promise? `python benchmarks/compare_level.py [--only WORDS]`.

Two audits of independent samples are compared by `eh.compare`. Where both come from one population, every "worse" or
"better" is false, and the interval of the change of a gap should cover 0. Where the gap grows, finding it is power;
beside it is a z-test of the change by someone who knows which pair of groups it is.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator
from promises import Book, run
from scipy.special import ndtr

import evenhand as eh
from evenhand.stats.types import BoolArray, FloatArray

TWO = ((500, 0.3), (500, 0.3))
SIX = ((1000, 0.1), (400, 0.1), (200, 0.1), (100, 0.1), (60, 0.1), (40, 0.1))
APART = ((500, 0.25), (500, 0.3), (300, 0.35))
GROWN = ((500, 0.20), (500, 0.3), (300, 0.35))
Groups = tuple[tuple[int, float], ...]


def draw(groups: Groups, rng: Generator) -> tuple[eh.Audit, FloatArray]:
    """Return an audit of a sample, and the selected people by group."""
    selected = [rng.random(n) < rate for n, rate in groups]
    names = np.repeat([f"g{number}" for number in range(len(groups))], [n for n, _ in groups])
    table = eh.Table(
        {"group": names, "hired": np.concatenate(selected).astype(int)}, groups="group", predictions="hired"
    )
    audit = eh.audit(table, parity={"metrics": "selection_rate"}, thresholds=[{"metric": "selection_rate", "max": 0.1}])
    return audit, np.array([each.mean() for each in selected])


def false_claims(samples: int, rng: Generator, groups: Groups) -> tuple[BoolArray, BoolArray]:
    """Tell which comparisons of one population claim a change, and which intervals of a worst pair cover none."""
    claimed, covers = [], []
    for _ in range(samples):
        comparison = eh.compare(draw(groups, rng)[0], draw(groups, rng)[0])
        claimed.append(any(change.direction != "unclear" for change in comparison.changes))
        worst = comparison.changes[0]
        covers.append(worst.low is None or worst.high is None or worst.low <= 0 <= worst.high)
    return np.array(claimed), np.array(covers)


def claims(samples: int, rng: Generator, groups: Groups) -> BoolArray:
    """Tell which comparisons claim a change that is not there."""
    return false_claims(samples, rng, groups)[0]


def covers_none(samples: int, rng: Generator, groups: Groups) -> BoolArray:
    """Tell which intervals of the change of a worst pair cover 0."""
    return false_claims(samples, rng, groups)[1]


def found(samples: int, rng: Generator) -> tuple[BoolArray, BoolArray]:
    """Tell which comparisons find that a gap grew, and which the z-test of the pair does."""
    ours, oracle = [], []
    for _ in range(samples):
        (old, old_rates), (new, new_rates) = draw(APART, rng), draw(GROWN, rng)
        ours.append(bool(eh.compare(old, new).worse))
        variance = sum(rate * (1 - rate) / n for groups in (APART, GROWN) for n, rate in (groups[0], groups[2]))
        z = ((new_rates[2] - new_rates[0]) - (old_rates[2] - old_rates[0])) / np.sqrt(variance)
        oracle.append(2 * ndtr(-abs(z)) <= 0.05)
    return np.array(ours), np.array(oracle)


def promises(book: Book) -> None:
    """Measure the lines of two audits compared."""
    for name, groups in (("2 groups of 500", TWO), ("6 groups of 40 to 1,000", SIX)):
        what = f"no change, {name}"
        book.measure(
            "“worse” or “better” of two audits",
            what,
            partial(claims, groups=groups),
            kind="verdict",
            nominal=0.05,
            samples=300,
        )
        book.measure(
            "95 % interval of the change of a worst pair",
            what,
            partial(covers_none, groups=groups),
            kind="interval",
            nominal=0.95,
            samples=300,
        )
    book.measure(
        "a gap that grew between two audits",
        "10 to 15 points, groups of 300 to 500",
        found,
        kind="power",
        oracle="z-test of the known pair",
        samples=300,
    )


if __name__ == "__main__":
    run(promises, __file__, "report/comparison.py audits/parity")
