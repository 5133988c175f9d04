"""Coverage of individual fairness and parity by effort with estimated rates of inertia.

People of three groups have rates of inertia 13, 25 and 39; every sample uses rates with a random error. The true value
is the value of a population of 20,000 at the true rates. Numbers and limits come from the audit's kernels, pooled over
20 sets of rates as in the audit. Beside the pooled interval is the interval that treats the rates as exact.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from benchmarks.coverage._lines import Book
from evenhand.audits.effort.group_means import group_means, lowest_parity
from evenhand.stats.effort import aggregate_scores, effort_bins, effort_scores
from evenhand.stats.imputation import drawn_rates, pooled
from evenhand.stats.pairs import individual_fairness
from evenhand.stats.types import FloatArray, IntArray

MEASURED = ("stats/imputation.py", "audits/effort/imputation.py")

RATES = np.array([13.0, 25.0, 39.0])
POPULATION, IMPUTATIONS, WIDTH, MIDDLE = 20_000, 20, 0.25, 1  # the bin of effort from 0.25 to 0.5

Crowd = tuple[FloatArray, FloatArray, FloatArray, IntArray, IntArray]  # score, plain effort, aggregate, group, sex
Found = tuple[float, float, float]  # a value and its limits, on the scale on which they are pooled


def people(n: int, rng: np.random.Generator) -> Crowd:
    """Return random people whose scores depend on their change, group, sex and chance."""
    group, sex = rng.integers(0, 3, n), rng.integers(0, 2, n)
    values = rng.gamma(3.0, 1.0, (n, 3))
    inner = 0.6 * (values[:, 1] - values[:, 2]) + 0.5 * sex + (group == 2) + rng.standard_normal(n)
    return 1 / (1 + np.exp(1 - inner)), effort_scores(values), aggregate_scores(values, 10.0), group, sex


def fairness(crowd: Crowd, rates: FloatArray) -> Found:
    """Return individual fairness with limits on the scale -log(1 - value)."""
    score, plain, aggregate, group, _ = crowd
    found = individual_fairness(score, (rates / rates.max())[group] * plain, aggregate, threads=1)
    value, low, high = (-np.log(1.0 - x) for x in (found.value, found.low, found.high))
    return float(value), float(low), float(high)


def parity(crowd: Crowd, rates: FloatArray) -> Found:
    """Return the log parity of men and women of middle effort, with limits."""
    score, plain, _, group, sex = crowd
    bins = np.minimum(effort_bins((rates / rates.max())[group] * plain, WIDTH), 3)
    means = group_means(bins, sex, score, None, (4, 2)).bin(MIDDLE)
    found = lowest_parity(means, np.array([0, 1]))
    value, low, high = np.log([found.value, *found.limits(0.95)])
    return float(value), float(low), float(high)


KINDS: dict[str, Callable[[Crowd, FloatArray], Found]] = {"individual fairness": fairness, "parity by effort": parity}


@cache
def truth(what: str) -> float:
    """Return the population's value at the true rates."""
    return KINDS[what](people(POPULATION, np.random.default_rng(0)), RATES)[0]


def covers(samples: int, rng: np.random.Generator, n: int, error: float, what: str) -> tuple[list[bool], list[bool]]:
    """Return whether each interval covers the true value: pooled over rates, and with rates treated as exact."""
    ours: list[bool] = []
    given: list[bool] = []
    for _ in range(samples):
        crowd = people(n, rng)
        rates = drawn_rates(RATES, error * RATES, 1, rng)[0]
        sets = [KINDS[what](crowd, drawn) for drawn in drawn_rates(rates, error * rates, IMPUTATIONS, rng)]
        value, low, high = np.array(sets).T
        found, alone = pooled(value, low, high, n - 1.0), KINDS[what](crowd, rates)
        cut_off = what == "parity by effort" and high.max() >= 0.0
        ours.append(found.low <= truth(what) and (cut_off or truth(what) <= found.high))
        given.append(alone[1] <= truth(what) <= alone[2])
    return ours, given


def promises(book: Book) -> None:
    """Declare the lines of all sample sizes and errors."""
    for what in KINDS:
        for n, error in ((200, 0.1), (200, 0.3), (1_000, 0.3)):
            book.measure(
                f"{what} with uncertain rates of inertia, 95 % interval",
                f"{n:,} people, rates known to {error:.0%}",
                partial(covers, n=n, error=error, what=what),
                kind="interval",
                nominal=0.95,
                samples=300,
                guard=30 if (n, error) == (200, 0.3) else 0,
                oracle="rates taken as given",
            )
