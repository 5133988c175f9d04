"""Coverage of the interval of individual fairness at nominal 95 %.

Samples of n people are drawn from populations of four kinds of scores, without and with survey weights, and for the
difference of two models. `covers` is the interval that `individual_fairness` and `compare` give; beside it the plain
normal interval value ± 1.96 se and, with weights, the same interval with n - 1 degrees of freedom in the place of
Kish's. The truth is the exact value of a population of 60,000 people. Two standard errors of a coverage are 0.004 at
10,000 samples. `python -m benchmarks.coverage.eaif_coverage [--quick]` prints a table of more populations.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.coverage._lines import Book
from evenhand.stats.pairs import (
    FairnessOfModels,
    compare,
    individual_fairness,
    limits,
    shrinkages,
    spread_of,
)
from evenhand.stats.pairs.result import PairDifference
from evenhand.stats.types import FloatArray

MEASURED = ("stats/pairs",)

SIZES = (10, 20, 50, 200)
POPULATION = 60_000
# How steep scores are in effort and aggregate, and how noisy.
KINDS = {"independent": (0.0, 1.0), "smooth": (2.0, 0.3), "polarised": (20.0, 6.0), "rare": (1.0, 0.05)}
# Of differences only: one in ten differs much; coins of .5 and .3, with two efforts; skewed scores and effort.
MORE_KINDS = ("one in ten", "coins", "skewed")
# Equal effort, decisions by a coin: nearly all that differs is between pairs, not between people.
COINS = (0.5, 0.45, 0.3, 0.1)


class Sample(NamedTuple):
    """People with the scores of two models and survey weights."""

    score: FloatArray
    other: FloatArray
    effort: FloatArray
    aggregate: FloatArray
    survey: FloatArray | None


def draw(kind: str, weights: str, n: int, rng: np.random.Generator) -> Sample:
    """Return a random sample of people from a population."""
    effort, aggregate = rng.beta(2, 3, n), np.tanh(rng.gamma(2, 0.4, n))
    noise, more = rng.standard_normal((2, n))
    if kind == "coins":
        first, second, step = ((rng.random(n) < rate).astype(np.float64) for rate in (0.5, 0.3, 0.5))
        return Sample(first, second, step / 2, 0 * noise, None)
    if kind == "skewed":
        effort = np.minimum(1.0, rng.pareto(1.2, n) / 20)
        return Sample(rng.beta(0.1, 0.1, n), rng.beta(0.1, 0.3, n), effort, 0 * noise, None)
    steep, spread = KINDS.get(kind, KINDS["rare"])
    if kind in ("rare", "one in ten"):  # one in twenty, or ten, is treated quite differently
        rate, times = (0.05, 60.0) if kind == "rare" else (0.1, 20.0)
        noise, more = (np.where(rng.random(n) < rate, times * shock, shock) for shock in (noise, more))
    score, other = (
        1 / (1 + np.exp(-(steep * (effort + aggregate - 0.9) + spread * shock)))
        for shock in (noise, 0.8 * noise + 0.6 * more)
    )
    survey: FloatArray | None = None
    if weights != "none":
        survey = rng.lognormal(0.0, 1.0, n) if weights == "heavy" else rng.gamma(2.0, 1.0, n)
    if weights == "by effort":
        survey *= np.exp(2 * effort)
    return Sample(score, other, effort, aggregate, survey)


Values = tuple[float, list[tuple[float, float]]]  # the value, and the intervals to compare


def single(sample: Sample) -> Values:
    """Return the value and the intervals to compare."""
    result = individual_fairness(sample.score, sample.effort, sample.aggregate, survey_weight=sample.survey)
    half = 1.96 * result.stderr
    ours, normal = (result.low, result.high), (result.value - half, result.value + half)
    return result.value, [ours, normal, limits(result.value, result.stderr, result.n - 1.0, 0.95, 0.0)]


def compared(sample: Sample) -> PairDifference:
    """Return the difference between two models at equal spread of their scores."""
    scores = {"score": sample.score, "other": sample.other}
    spreads = {model: spread_of(score, sample.survey) for model, score in scores.items()}
    factors = {(model, model): 1.0 for model in scores} | shrinkages(spreads)
    found = {
        (*pair, 0.5): individual_fairness(
            factor * scores[pair[0]], sample.effort, sample.aggregate, survey_weight=sample.survey
        )
        for pair, factor in factors.items()
    }
    models = FairnessOfModels.of(found, spreads)
    return compare(models.at_equal_spread("score", "other", 0.5), models.at_equal_spread("other", "score", 0.5))


def difference(sample: Sample) -> Values:
    """Return the difference between two models at equal spread, and the intervals to compare."""
    found = compared(sample)
    half, freely = 1.96 * found.stderr, (found.high - found.value)
    return found.value, [
        (found.low, found.high),
        (found.value - half, found.value + half),
        (found.value - freely, found.high),
    ]


STATISTICS: dict[str, Callable[[Sample], Values]] = {"value": single, "difference": difference}
Task = tuple[str, str, str, int]


def simulate(task: Task) -> str:
    """Return the table rows of one population as text."""
    statistic, kind, weights, samples = task
    truth, _ = STATISTICS[statistic](draw(kind, weights, POPULATION, np.random.default_rng(0)))
    lines = []
    for n in SIZES:
        rng = np.random.default_rng([len(statistic), len(kind), len(weights), n])
        inside, none = np.zeros(3), 0
        for _ in range(samples):
            _, found = STATISTICS[statistic](draw(kind, weights, n, rng))
            known = not np.isnan(found[0][0])
            none += not known
            inside += [known and low <= truth <= high for low, high in found]
        covers, normal, plain = inside / max(samples - none, 1)
        beside = f"{plain:10.3f}" if weights != "none" and statistic == "value" else " " * 10
        named = f"{statistic:12}{kind:13}{weights:11}{n:>5}"
        lines.append(f"{named}{covers:>9.3f}{normal:>9.3f}{beside}{none / samples:>8.3f}{truth:>9.4f}")
    return "\n".join(lines)


def coin_flips(samples: int, rng: np.random.Generator, n: int, rate: float) -> tuple[list[bool], list[bool]]:
    """Return whether each interval covers the true value: ours, and the jackknife's alone."""
    truth, nothing = 1 - 2 * rate * (1 - rate), np.zeros(n)
    ours, alone = [], []
    for _ in range(samples):
        result = individual_fairness((rng.random(n) < rate).astype(float), nothing, nothing)
        if result.value == 1:  # all decisions are the same: there is no interval
            continue
        ends = limits(result.value, result.stderr, n - 1.0, 0.95, 0.0)
        ours.append(result.low <= truth <= result.high)
        alone.append(ends[0] <= truth <= ends[1])
    return ours, alone


def of_kind(samples: int, rng: np.random.Generator, n: int, kind: str) -> tuple[list[bool], list[bool]]:
    """Return whether each interval covers the true value for a kind of scores: ours, and the jackknife's alone."""
    truth, _ = single(draw(kind, "none", POPULATION, np.random.default_rng(0)))
    ours, alone = [], []
    for _ in range(samples):
        sample = draw(kind, "none", n, rng)
        result = individual_fairness(sample.score, sample.effort, sample.aggregate)
        ends = limits(result.value, result.stderr, n - 1.0, 0.95, 0.0)
        ours.append(result.low <= truth <= result.high)
        alone.append(ends[0] <= truth <= ends[1])
    return ours, alone


def of_models(samples: int, rng: np.random.Generator, n: int, kind: str) -> list[bool]:
    """Return whether each interval of the difference between two models covers the true difference."""
    truth, _ = difference(draw(kind, "none", POPULATION, np.random.default_rng(0)))
    found = (difference(draw(kind, "none", n, rng))[1][0] for _ in range(samples))
    return [low <= truth <= high for low, high in found if not np.isnan(low)]


def equally_fair(
    samples: int, rng: np.random.Generator, n: int, kind: str, factor: float
) -> tuple[list[bool], list[bool]]:
    """Return whether models are called different that differ only in the spread of their scores.

    The second result is the same without equal spread.
    """
    shrunk, apart = [], []
    for _ in range(samples):
        sample = draw(kind, "none", n, rng)
        sample = sample._replace(other=0.5 + factor * (_same_law(sample, kind, rng) - 0.5))
        own = [individual_fairness(score, sample.effort, sample.aggregate) for score in (sample.score, sample.other)]
        shrunk.append(compared(sample).p_value <= 0.05)
        apart.append(compare(own[0], own[1]).p_value <= 0.05)
    return shrunk, apart


def less_fair(samples: int, rng: np.random.Generator, n: int, noise: float) -> tuple[list[bool], list[bool]]:
    """Return whether a model with more noise is detected as less fair, beside the jackknife alone."""
    from scipy.stats import t

    ours, alone = [], []
    for _ in range(samples):
        sample = draw("smooth", "none", n, rng)
        noisier = 2.0 * (sample.effort + sample.aggregate - 0.9) + noise * rng.standard_normal(n)
        found = compared(sample._replace(other=1 / (1 + np.exp(-noisier))))
        ours.append(found.p_value <= 0.05)
        alone.append(2 * t.sf(abs(found.value) / found.stderr, found.freedom) <= 0.05)
    return ours, alone


def _same_law(sample: Sample, kind: str, rng: np.random.Generator) -> FloatArray:
    """Return new scores of the same people from the same distribution as in `draw`."""
    steep, spread = KINDS[kind]
    noise = rng.standard_normal(len(sample.effort))
    if kind == "rare":
        noise = np.where(rng.random(len(noise)) < 0.05, 60.0 * noise, noise)
    return np.asarray(1 / (1 + np.exp(-(steep * (sample.effort + sample.aggregate - 0.9) + spread * noise))))


def promises(book: Book) -> None:
    """Declare the lines of all populations."""
    about: dict[str, Any] = {"kind": "interval", "nominal": 0.95, "oracle": "jackknife alone"}
    for n in (20, 50, 200):
        for rate in COINS:
            book.measure(
                "individual fairness, 95 % interval",
                f"{n} people of equal effort, decisions by a coin of {rate:g}",
                partial(coin_flips, n=n, rate=rate),
                samples=1_000,
                guard=100 if (n, rate) == (50, 0.5) else 0,
                **about,
            )
        for kind in KINDS:
            few: dict[str, Any] = {
                "allowed": 0.65 if n == 20 else 0.83,
                "why": "one person in twenty causes nearly all of it",
            }
            book.measure(
                "individual fairness, 95 % interval",
                f"{n} people, {kind} scores",
                partial(of_kind, n=n, kind=kind),
                samples=1_000,
                **about,
                **(few if kind == "rare" and n < 200 else {}),
            )
        for kind in (*KINDS, *MORE_KINDS):
            fewer: dict[str, Any] = {
                "allowed": {20: 0.5, 50: 0.72, 200: 0.9}[n],
                "why": "one person in twenty causes nearly all of it",
            }
            book.measure(
                "difference of two models in individual fairness at equal spread, 95 % interval",
                f"{n} people, {kind} scores",
                partial(of_models, n=n, kind=kind),
                kind="interval",
                nominal=0.95,
                samples=500,
                **(fewer if kind == "rare" else {}),
            )
    for n, kind, factor in product((50, 200), KINDS, (0.9, 0.3, 0.01)):
        book.measure(
            "difference of two models in individual fairness at equal spread, test at .05",
            f"{n} people, {kind} scores, those of one model times {factor:g}",
            partial(equally_fair, n=n, kind=kind, factor=factor),
            kind="test",
            nominal=0.05,
            samples=1_500 if kind == "rare" else 500,
            oracle="without equal spread",
            guard=100 if (n, kind, factor) == (50, "smooth", 0.3) else 0,
        )

    for n, noise in product((50, 200), (0.6, 1.0)):
        book.measure(
            "a model that is less fair to individuals at equal spread is found",
            f"{n} people, smooth scores, noise of {noise:g} against 0.3",
            partial(less_fair, n=n, noise=noise),
            kind="power",
            samples=300,
            oracle="jackknife alone",
        )


def tasks(samples: int) -> list[Task]:
    """Return the populations to simulate."""
    plan: list[Task] = [("value", kind, w, samples) for w in ("none", "gamma", "by effort", "heavy") for kind in KINDS]
    return plan + [("difference", kind, w, samples) for w in ("none", "gamma") for kind in KINDS]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table of coverages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples: a look, not a measurement")
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(argv)
    samples = 100 if options.quick else options.samples
    start = perf_counter()
    columns = f"{'covers':>9}{'normal':>9}{'df n-1':>10}{'none':>8}{'truth':>9}"
    print(f"{'statistic':12}{'scores':13}{'weights':11}{'n':>5}{columns}")
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for line in pool.map(simulate, tasks(samples)):
            print(line, flush=True)
    noise = 2 * np.sqrt(0.0475 / samples)
    print(f"{samples:,} samples a line in {perf_counter() - start:.0f} s; two standard errors: {noise:.3f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
