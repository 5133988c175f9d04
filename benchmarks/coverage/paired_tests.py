"""Level and coverage of paired tests for differences of shares, ratings, and skewed or mostly zero values.

Beside them are the level of Student's paired test and the coverage of its interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book, Line
from evenhand.stats.intervals import student_t
from evenhand.stats.sign_flips import compare_pairs
from evenhand.stats.types import FloatArray

MEASURED = ("stats/sign_flips.py",)

Draw = Callable[[Generator, int], FloatArray]


def passes(first: float, second: float, replicates: int, spread: float = 1.0) -> Draw:
    """Return a function that draws differences of two pass rates; templates differ in difficulty on the logit scale."""

    def draw(rng: Generator, templates: int) -> FloatArray:
        ease = rng.normal(0.0, spread, templates)
        shares = [rng.binomial(replicates, 1 / (1 + np.exp(-(ease + logit)))) for logit in (first, second)]
        return np.asarray((shares[0] - shares[1]) / replicates)

    return draw


def rare(more: float, fewer: float) -> Draw:
    """Return a function that draws differences of 1 and -1 with these probabilities, otherwise 0."""
    return lambda rng, templates: rng.choice([1.0, -1.0, 0.0], templates, p=[more, fewer, 1.0 - more - fewer])


def ratings(gap: float, between: float) -> Draw:
    """Return a function that draws differences of normal ratings with variation between templates."""
    return lambda rng, templates: gap + rng.normal(0.0, between, templates) + rng.normal(0.0, 1.0, templates)


def skewed(rng: Generator, templates: int) -> FloatArray:
    """Return random lognormal differences with mean 0."""
    return np.asarray(rng.lognormal(0.0, 0.5, templates) - np.exp(0.125))


@dataclass(frozen=True)
class Population:
    """A distribution of differences, the number of templates, and the true mean (None: from a large sample)."""

    name: str
    draw: Draw
    templates: int
    truth: float | None = 0.0
    largest: float = 1.0
    allowed: float | None = None
    why: str = ""


SKEWED = "a mean of so few skewed differences is off to one side, as for Student's test"
POPULATIONS = (
    *(Population("pass rates, equal, one repetition", passes(0.0, 0.0, 1), n) for n in (10, 30, 200)),
    Population("pass rates, equal, five repetitions", passes(0.0, 0.0, 5), 30),
    Population("pass rates 62 % and 50 %, five repetitions", passes(0.6, 0.0, 5), 30, None),
    Population("pass rates of 1 % and 1 %, one repetition", passes(-4.6, -4.6, 1, 0.3), 100),
    *(Population("1 % of templates differ each way", rare(0.01, 0.01), n) for n in (50, 400)),
    *(Population("6 % of templates differ, one way", rare(0.06, 0.0), n, 0.06) for n in (30, 50, 200)),
    Population("20 % against 5 % of templates differ", rare(0.2, 0.05), 60, 0.15),
    *(Population("ratings, equal on average", ratings(0.0, 1.0), n, largest=np.inf) for n in (10, 50)),
    Population("ratings, a gap of .5", ratings(0.5, 0.5), 40, 0.5, np.inf),
    Population("skewed differences", skewed, 20, 0.0, np.inf, 0.90, SKEWED),
    Population("skewed differences", skewed, 200, 0.0, np.inf),
)


def lines_of(samples: int, rng: Generator, of: Population) -> Sequence[Line]:
    """Return the lines of coverage and of rejections (level or power)."""
    truth = float(of.draw(rng, 2_000_000).mean()) if of.truth is None else of.truth
    found = np.zeros((samples, 4), dtype=np.bool_)
    for sample in range(samples):
        differences = of.draw(rng, of.templates)
        ours = compare_pairs(differences, of.largest)
        low, high = ours.limits(0.95)
        stderr = float(differences.std(ddof=1)) / of.templates**0.5
        student = student_t(differences.mean(), stderr, of.templates - 1)
        found[sample] = (
            low <= truth <= high,
            ours.p_value < 0.05,
            student.low <= truth <= student.high,
            not student.low <= 0.0 <= student.high,
        )
    population = f"{of.name}, {of.templates} templates"
    interval = Line(
        what="interval of a paired difference",
        population=population,
        kind="interval",
        nominal=0.95,
        allowed=of.allowed,
        why=of.why,
        oracle="Student",
    )
    is_null = truth == 0.0
    test = Line(
        what="test of a paired difference",
        population=population,
        kind="test" if is_null else "power",
        nominal=0.05 if is_null else None,
        allowed=None if of.allowed is None or not is_null else 1.0 - of.allowed,
        why=of.why,
        oracle="Student",
    )
    return [interval.seen((found[:, 0], found[:, 2])), test.seen((found[:, 1], found[:, 3]))]


def promises(book: Book) -> None:
    """Declare the lines of all populations."""
    for population in POPULATIONS:
        book.several(
            f"{population.name}, {population.templates}",
            partial(lines_of, of=population),
            samples=2_000,
            guard=200 if population.templates == 30 else 0,
        )
