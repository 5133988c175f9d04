"""Power: how many people a study needs to tell trajectory and aggregate apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evenhand.errors import ConfigError, require_choice
from evenhand.stats.correlation import cluster_t, contrast, rank_bootstrap, two_sided_p
from evenhand.stats.intervals import wilson
from evenhand.stats.types import FloatArray
from evenhand.study.simulate import Respondents, SimulatedAnswers, draw_answers

PowerTest = Literal["regression", "correlation"]
TESTS: tuple[PowerTest, ...] = ("regression", "correlation")

_RANK_RESAMPLES = 300
_CHUNK_NUMBERS = 4_000_000


@dataclass(frozen=True)
class Power:
    """The share of simulated studies that find the difference, with the interval their number allows."""

    people: int
    value: float
    low: float
    high: float
    studies: int
    test: PowerTest
    alpha: float


def power(
    people: int,
    respondents: Respondents | Mapping[str, Any] | None = None,
    *,
    sets: int = 3,
    test: PowerTest = "regression",
    alpha: float = 0.05,
    studies: int = 1_000,
    seed: int = 0,
) -> Power:
    """Return the chance that a study of `people` in one condition finds that trajectory and aggregate weigh unequally.

    Parameters
    ----------
    people : people in one condition, after exclusions.
    respondents : what people are like; the difference to be found is in `weight` (0.5 is none).
    sets : sets that each person sees; each gives four pairs.
    test : 'regression', the equality of the two coefficients with clustered standard errors (quick), or 'correlation',
        the difference of the two rank correlations by resampled people (the default of the analysis; slower).
    alpha : level of the two-sided test.
    studies : studies to simulate.
    seed : the same seed gives the same answer.

    Examples
    --------
    >>> import evenhand as eh
    >>> found = eh.study.power(40, {"weight": 0.6}, studies=200)
    >>> 0 < found.low < found.value < found.high < 1
    True
    """
    who = _respondents(respondents)
    require_choice("test", test, TESTS)
    if people < 3 or sets < 1 or studies < 10:
        raise ConfigError(f"power needs at least 3 people, 1 set and 10 studies; got {people}, {sets} and {studies}.")
    rng = np.random.default_rng([seed, people])
    step = max(1, _CHUNK_NUMBERS // (people * 4 * sets * 6))
    found = 0
    for start in range(0, studies, step):
        drawn = draw_answers(who, studies=min(step, studies - start), people=people, sets=sets, rng=rng)
        p = _regression_p(drawn) if test == "regression" else _correlation_p(drawn, rng)
        found += int((p < alpha).sum())
    low, high = wilson(found / studies, studies)
    return Power(people, found / studies, float(low), float(high), studies, test, alpha)


def people_needed(
    target: float = 0.8,
    respondents: Respondents | Mapping[str, Any] | None = None,
    *,
    sets: int = 3,
    test: PowerTest = "regression",
    alpha: float = 0.05,
    studies: int = 1_000,
    most: int = 2_000,
    seed: int = 0,
) -> Power:
    """Return the fewest people in one condition whose simulated power reaches the target, with that power.

    Numbers of people are doubled until the target is reached and then halved in between, so the answer is as exact as
    the number of studies allows. Raises a `ConfigError` when `most` people do not suffice.

    Examples
    --------
    >>> import evenhand as eh
    >>> few, many = (eh.study.people_needed(0.8, {"weight": weight}, studies=200).people for weight in (0.7, 0.6))
    >>> few < many
    True
    """
    if not 0 < target < 1:
        raise ConfigError(f"`target` must be between 0 and 1; got {target:g}.")
    who = _respondents(respondents)

    def at(people: int) -> Power:
        return power(people, who, sets=sets, test=test, alpha=alpha, studies=studies, seed=seed)

    too_few, enough = 4, at(8)
    while enough.value < target:
        if enough.people >= most:
            raise ConfigError(
                f"{most:,} people a condition find a weight of {who.weight:g} in {100 * enough.value:.0f}% of studies, "
                f"below {100 * target:g}%; the difference is too small for this design."
            )
        too_few, enough = enough.people, at(min(2 * enough.people, most))
    while enough.people - too_few > 1:
        middle = at((too_few + enough.people) // 2)
        if middle.value >= target:
            enough = middle
        else:
            too_few = middle.people
    return enough


def _respondents(given: Respondents | Mapping[str, Any] | None) -> Respondents:
    return given if isinstance(given, Respondents) else Respondents.parse(given or {}, "the respondents")


def _regression_p(drawn: SimulatedAnswers) -> FloatArray:
    """Return the p-values of equal coefficients with clustered standard errors (CR1), all studies at once."""
    x = np.stack([np.ones_like(drawn.overall), drawn.aggregate, drawn.trajectory], axis=-1)
    studies, people, pairs, k = x.shape
    y, rows = drawn.overall, people * pairs
    gram = np.einsum("spqi,spqj->sij", x, x)
    bread = np.linalg.inv(gram)
    coef = np.einsum("sij,spqj,spq->si", bread, x, y)
    errors = y - np.einsum("spqi,si->spq", x, coef)
    scores = np.einsum("spqi,spq->spi", x, errors)
    meat = np.einsum("spi,spj->sij", scores, scores)
    correction = people / (people - 1) * (rows - 1) / (rows - k)
    contrast_row = np.array([0.0, -1.0, 1.0])
    spread = np.einsum("i,sij,sjk,skl,l->s", contrast_row, bread, meat, bread, contrast_row)
    t = coef @ contrast_row / np.sqrt(correction * spread)
    return np.asarray(two_sided_p(t, people - 1)).reshape(studies)


def _correlation_p(drawn: SimulatedAnswers, rng: np.random.Generator) -> FloatArray:
    """Return the p-values of equal rank correlations by resampled people."""
    studies, people, pairs = drawn.overall.shape
    who = np.repeat(np.arange(people), pairs)
    found = np.empty(studies)
    for study in range(studies):
        columns = np.column_stack(
            [answers[study].ravel() for answers in (drawn.aggregate, drawn.trajectory, drawn.overall)]
        )
        draws = rank_bootstrap(columns, who, resamples=_RANK_RESAMPLES, rng=rng)
        found[study] = cluster_t(contrast(draws, 2, 1), people).p_value[0]
    return found
