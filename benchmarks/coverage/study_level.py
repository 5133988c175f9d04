"""Coverage of a study's slopes, and error rates of its sentences.

Slopes: people have 12 rows each, or 3 to 21; they differ in level, and in some lines in slope; leverage is lopsided if
the regressors of two people have four times the spread. The model has only a random intercept. Beside the printed
interval (CR2 standard errors clustered by people, with Satterthwaite's degrees of freedom) is the model's own, with the
normal quantile, which was printed earlier.

Sentences: in these studies trajectory and aggregate count equally, in two conditions with two targets each; any
sentence "goes with ... more" is wrong. Beside it is each comparison by its own interval, as used earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book
from evenhand.stats.intervals import normal_quantile
from evenhand.stats.random_intercept import random_intercept
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.study import Respondents, analyze, simulate_responses

MEASURED = ("stats/random_intercept.py", "study/analysis")

NAMES = ("aggregate", "trajectory")
SLOPES = np.array([0.36, 0.54])
PEOPLE = (12, 30, 75)


class Population(NamedTuple):
    """The variation of people's slopes, and whether rows and leverage are unequal."""

    slopes: float = 0.0
    unequal: bool = False
    lopsided: bool = False


POPULATIONS: Mapping[str, Population] = {
    "alike in slope": Population(),
    "random slopes": Population(0.3),
    "random slopes, 3 to 21 rows": Population(0.3, unequal=True),
    "random slopes, lopsided leverage": Population(0.3, lopsided=True),
}


def draw(people: int, population: Population, rng: Generator) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the regressors, the target and the person of each row."""
    rows = np.linspace(3, 21, people).round().astype(int) if population.unequal else np.full(people, 12)
    who = np.repeat(np.arange(people), rows)
    spread = np.ones(people)
    spread[:2] = 4.0 if population.lopsided else 1.0
    x = rng.normal(size=(len(who), 2)) * spread[who][:, np.newaxis]
    own = SLOPES + population.slopes * rng.normal(size=(people, 2))
    y = (x * own[who]).sum(axis=1) + 0.5 * rng.normal(size=people)[who] + 0.8 * rng.normal(size=len(who))
    return x, y, who


def slopes(samples: int, rng: Generator, people: int, population: Population) -> tuple[BoolArray, BoolArray]:
    """Return whether the printed interval, and the model's own, cover the slope of trajectory."""
    held = np.zeros((samples, 2), dtype=bool)
    for sample in range(samples):
        x, y, who = draw(people, population, rng)
        fit = random_intercept(x, y, NAMES, who)
        half, printed = normal_quantile(0.95) * np.sqrt(fit.covariance[2, 2]), fit.coefficients()
        held[sample] = printed.low[2] <= SLOPES[1] <= printed.high[2], abs(fit.coef[2] - SLOPES[1]) <= half
    return held[:, 0], held[:, 1]


def sentences(samples: int, rng: Generator, people: int, heterogeneity: float) -> tuple[BoolArray, BoolArray]:
    """Return whether a study falsely claims that people go by one of the two: now, and before."""
    like = Respondents(weight=0.5, output_weight=0.5, heterogeneity=heterogeneity, careless=0.0)
    wrong = np.zeros((samples, 2), dtype=bool)
    for sample in range(samples):
        seed = int(rng.integers(2**31))
        responses = simulate_responses(people, conditions={"arrests": like, "income": like}, seed=seed)
        result = analyze(responses, resamples=200, seed=seed)
        gaps = result.rows("gaps", metric="rank_correlation", method="participant_bootstrap")
        before = any(gap.low is not None and (gap.low > 0 or gap.high < 0) for gap in gaps)
        wrong[sample] = any(one.sentence_id == "goes_with_one" for one in result.findings), before
    return wrong[:, 0], wrong[:, 1]


def promises(book: Book) -> None:
    """Declare the lines of slopes by people, and of sentences."""
    for people in PEOPLE:
        for name, population in POPULATIONS.items():
            lopsided = {"allowed": 0.90, "why": "two people carry the slope"} if population.lopsided else {}
            book.measure(
                "slope of a random-intercept model, 95 %",
                f"{people} people, {name}",
                partial(slopes, people=people, population=population),
                kind="interval",
                nominal=0.95,
                samples=600 if people < 75 else 300,
                guard=80 if (people, name) == (12, "random slopes") else 0,
                oracle="the model's own",
                **lopsided,
            )
    for people, heterogeneity in ((24, 0.0), (24, 0.3), (100, 0.3)):
        book.measure(
            "a sentence 'goes with ... more' where nothing differs",
            f"{people} people, heterogeneity {heterogeneity:g}",
            partial(sentences, people=people, heterogeneity=heterogeneity),
            kind="verdict",
            nominal=0.05,
            samples=200,
            oracle="each comparison by itself",
        )
