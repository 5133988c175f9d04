"""Coverage of agreement among real raters with missing ratings.

ICC(A,1), ICC(C,1) and ICC(1): people and raters drawn at random, normal scores, or people and errors with heavy tails.
Beside ICC(A,1) without missing ratings are McGraw and Wong's limits, which the product used before. The variances are
of people, raters and error. Kappas: new people, the same raters, each person rated by two or more of them. The gap of
ICC(A,1): two groups of one population, rated by the same raters with missing ratings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.random import Generator
from scipy.stats import f as f_distribution

from benchmarks.coverage._lines import Book
from evenhand.stats.agreement import (
    ac1,
    alpha,
    coefficient_difference,
    conger_kappa,
    fleiss_kappa,
    icc,
    icc_interval,
    mean_squares,
    shared_shape_stderr,
)
from evenhand.stats.bootstrap import CellMoments, resample
from evenhand.stats.types import BoolArray, FloatArray

MEASURED = ("stats/agreement",)

Variances = tuple[float, float, float]


def scores(rng: Generator, people: int, raters: int, least: int, variances: Variances, heavy: bool) -> FloatArray:
    """Return random scores (raters, people), with at least `least` random ratings of each person."""
    draw = (lambda size: rng.standard_t(5, size) / np.sqrt(5 / 3)) if heavy else rng.standard_normal
    person, rater, error = np.sqrt(variances)
    given = person * draw((1, people)) + rater * rng.standard_normal((raters, 1)) + error * draw((raters, people))
    kept = rng.integers(least, raters + 1, people)
    return np.where(rng.random(given.shape).argsort(axis=0) < kept, given, np.nan)


def mcgraw(given: FloatArray) -> tuple[float, float]:
    """Return McGraw and Wong's limits of ICC(A,1) with Satterthwaite's degrees of freedom."""
    squares = mean_squares(*given)
    n, k, msr, msc, mse = float(squares.n), squares.raters, squares.rows, squares.columns, squares.error
    value = float(icc(*given))
    a, b = k * value / (n * (1 - value)), 1 + k * value * (n - 1) / (n * (1 - value))
    freedom = (a * msc + b * mse) ** 2 / ((a * msc) ** 2 / (k - 1) + (b * mse) ** 2 / ((n - 1) * (k - 1)))
    lower, upper = f_distribution.ppf(0.975, n - 1, freedom), f_distribution.ppf(0.975, freedom, n - 1)
    rest = k * msc + (k * n - k - n) * mse
    low, high = n * (msr - lower * mse) / (lower * rest + n * msr), n * (upper * msr - mse) / (rest + n * upper * msr)
    return float(low), float(high)


def covers(
    samples: int, rng: Generator, form: str, people: int, raters: int, least: int, variances: Variances, heavy: bool
) -> BoolArray | tuple[BoolArray, BoolArray]:
    """Return whether each interval covers the true value; for complete ICC(A,1) also McGraw and Wong's."""
    person, rater, error = variances
    truth = person / (person + error + (rater if form != "C,1" else 0.0))
    ours, theirs = [], []
    for _ in range(samples):
        given = scores(rng, people, raters, least, variances, heavy)
        low, high = icc_interval(*given, form=form)  # type: ignore[arg-type]
        ours.append(low <= truth <= high)
        if form == "A,1" and least == raters:
            least_of, most_of = mcgraw(given)
            theirs.append(least_of <= truth <= most_of)
    return (np.array(ours), np.array(theirs)) if theirs else np.array(ours)


KAPPAS: dict[str, Callable[..., FloatArray]] = {
    "Fleiss' kappa": fleiss_kappa,
    "Conger's kappa": conger_kappa,
    "AC1": ac1,
    "alpha": alpha,
}


def judged(rng: Generator, people: int, raters: int, share: float) -> FloatArray:
    """Return 0/1 ratings (raters, people) by raters with different thresholds, at least two ratings per person."""
    level = rng.standard_normal(people)
    strict = np.linspace(-0.4, 0.4, raters)[:, np.newaxis]
    yes = level + 0.6 * rng.standard_normal((raters, people)) > np.quantile(level, 1 - share) + strict
    kept = rng.integers(2, raters + 1, people)
    return np.where(rng.random(yes.shape).argsort(axis=0) < kept, yes.astype(float), np.nan)


def kappa_covers(samples: int, rng: Generator, name: str, people: int, raters: int, share: float) -> BoolArray:
    """Return whether each bootstrap interval covers the coefficient of 200,000 people."""
    metric, found = KAPPAS[name], []
    truth = float(metric(*judged(np.random.default_rng(0), 200_000, raters, share)))
    for _ in range(samples):
        patterns, counted = np.unique(
            np.nan_to_num(judged(rng, people, raters, share), nan=2), axis=1, return_counts=True
        )
        columns = np.where(patterns == 2, np.nan, patterns)

        def value(counts: FloatArray, sums: FloatArray, columns: FloatArray = columns) -> FloatArray:  # noqa: ARG001
            return np.asarray(metric(*columns, weight=counts))[..., np.newaxis]

        low, high = resample(CellMoments.from_counts(counted), value, resamples=400, rng=rng).bca()
        found.append(low[0] <= truth <= high[0])
    return np.array(found)


def false_gap(samples: int, rng: Generator, people: int, raters: int) -> BoolArray:
    """Return whether each test reports different ICC(A,1) in two groups of one population."""
    told = []
    for _ in range(samples):
        given = scores(rng, 2 * people, raters, 2, (0.5, 0.15, 0.35), heavy=False)
        parts = []
        for half in (given[:, :people], given[:, people:]):
            drawn = rng.multinomial(people, np.full(people, 1 / people), size=100).astype(float)
            parts.append((float(icc(*half)), float(np.std(icc(*half, weight=drawn), ddof=1))))
        (a, se_a), (b, se_b) = parts
        first, second = shared_shape_stderr((a, se_a, people), (b, se_b, people))
        low, high = coefficient_difference((a, first, people - 1), (b, second, people - 1), np.array(0.025))
        told.append(low > 0 or high < 0)
    return np.array(told)


SPREADS: dict[str, Variances] = {
    "people .6, raters .15, error .25": (0.6, 0.15, 0.25),
    "people .3, raters .5, error .2": (0.3, 0.5, 0.2),
    "people .3, raters .02, error .68": (0.3, 0.02, 0.68),
    "people 0, raters .2, error .8": (0.0, 0.2, 0.8),
}


def promises(book: Book) -> None:
    """Declare the lines of intraclass correlations, kappas and gaps."""
    for name, variances in SPREADS.items():
        for people, raters, least in ((50, 4, 4), (200, 3, 3), (50, 4, 2), (20, 3, 2), (60, 10, 2)):
            gaps = "all rate all" if least == raters else f"{least} to {raters} ratings each"
            book.measure(
                "ICC(A,1) of real raters",
                f"{people} people, {raters} raters, {gaps}; {name}",
                partial(
                    covers, form="A,1", people=people, raters=raters, least=least, variances=variances, heavy=False
                ),
                kind="interval",
                nominal=0.95,
                samples=400 if least == raters else 250,
                guard=20 if (people, least) == (50, 4) else 0,
                oracle="McGraw and Wong" if least == raters else "",
            )
    for form, title in (("C,1", "ICC(C,1) of real raters"), ("1", "ICC(1) of real raters")):
        for people, raters in ((50, 4), (20, 3)):
            book.measure(
                title,
                f"{people} people, 2 to {raters} ratings each; people .5, raters .15, error .35",
                partial(
                    covers,
                    form=form,
                    people=people,
                    raters=raters,
                    least=2,
                    variances=(0.5, 0.15, 0.35) if form == "C,1" else (0.5, 0.0, 0.5),
                    heavy=False,
                ),
                kind="interval",
                nominal=0.95,
                samples=400,
            )
    book.measure(
        "ICC(A,1) of real raters",
        "50 people, 2 to 4 ratings each, people and errors t(5); people .6, raters .15, error .25",
        partial(covers, form="A,1", people=50, raters=4, least=2, variances=(0.6, 0.15, 0.25), heavy=True),
        kind="interval",
        nominal=0.95,
        allowed=0.88,
        why="the limits are those of normal scores; with heavy tails they are too narrow, and the methods page says so",
        samples=1_000,
    )
    for name in KAPPAS:
        for people, share in ((50, 0.5), (150, 0.2)):
            book.measure(
                f"{name} of real raters",
                f"{people} people, 2 to 4 ratings each by 4 raters, {share:.0%} yes",
                partial(kappa_covers, name=name, people=people, raters=4, share=share),
                kind="interval",
                nominal=0.95,
                samples=400,
            )
    book.measure(
        "gap of ICC(A,1), raters with gaps",
        "two groups of 50 people, 2 to 4 ratings each by 4 raters",
        partial(false_gap, people=50, raters=4),
        kind="test",
        nominal=0.05,
        samples=200,
    )
