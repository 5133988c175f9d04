"""Simulated respondents with known weights, noise and clustering, and the number of people a study needs.

The model of an answer. The trajectory and the aggregate distance that a person sees, T and A, are the pair's designed
positions (similar or different, with some of one difference spilling into the other), plus a personal offset in all
pairs, plus noise, rounded to the scale. Their overall distance is intercept + a_t T + a_a A + a personal level + noise,
rounded to the scale. People weigh the two differently: a_t = strength weight + h and a_a = strength (1 - weight) - h,
with h normal around 0. So rows of one person are dependent, and `weight` is the estimand of the study. The output
distance is generated in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field

from evenhand.errors import ConfigError, require_choice, require_share, require_whole
from evenhand.settings import Settings
from evenhand.stats.correlation import cluster_t, contrast, rank_bootstrap, two_sided_p
from evenhand.stats.intervals import wilson
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.study.responses import Responses, build_responses
from evenhand.study.schema import FACTORS, SCALE

PowerTest = Literal["regression", "correlation"]
TESTS: tuple[PowerTest, ...] = ("regression", "correlation")

_RANK_RESAMPLES = 300
_CHUNK_NUMBERS = 4_000_000
SUBJECTS = ("A", "B", "C", "D")
_DIFFERENT = np.array([[0, 1, 0, 1], [0, 0, 1, 1]])
"""Indicators of the pairs of a set designed to differ in trajectory (first row) and in aggregate (second row)."""
_POINTS = len(SCALE)
_REFERENCE_RISK = 0.3
_REASONS = {
    "trajectory": (
        "I looked at which way it is going.",
        "The trend over the years matters most.",
        "One is going up and the other down.",
    ),
    "aggregate": ("I went by the total.", "Added up they are about the same.", "The sum over all years decides."),
    "both": ("The trend and the total together.", "Partly the total, partly where it is going."),
    "vague": ("It felt right.", "Just my impression."),
}
"""Simulated reasons of four kinds, to try out coding."""


class Respondents(Settings):
    """Settings of simulated people; the defaults are close to tables 2 and 5 of the effort paper.

    Examples
    --------
    >>> Respondents(weight=0.6).strength
    0.9
    """

    weight: float = Field(0.64, ge=0, le=1, description="Weight of trajectory in the overall distance.")
    strength: float = Field(0.9, gt=0, description="Sum of the two coefficients of the overall distance.")
    intercept: float = Field(0.36, description="Overall distance when both distances are 0.")
    noise: float = Field(0.7, ge=0, description="Spread of a single overall answer.")
    level: float = Field(0.25, ge=0, description="Spread of the people's own levels of the overall distance.")
    heterogeneity: float = Field(0.15, ge=0, description="Spread over people of what they look at (h).")
    seen: float = Field(0.9, ge=0, description="Spread of a single seen distance around that of the pair.")
    spill: float = Field(0.15, description="Share of a difference in one distance that is seen in the other.")
    habit: float = Field(0.5, ge=0, description="Spread over people of the distances they see in all pairs.")
    similar: float = Field(2.0, description="Where a similar pair lies on the scale.")
    different: float = Field(4.8, description="Where a different pair lies on the scale.")
    output_weight: float = Field(0.85, ge=0, le=1, description="Weight of trajectory in the output distance.")
    output_strength: float = Field(0.047, gt=0, description="Sum of the two coefficients of the output distance.")
    output_noise: float = Field(0.10, ge=0, description="Spread of a single output distance.")
    careless: float = Field(0.04, ge=0, le=1, description="Share of people who answer at random and fail checks.")
    reasons: float = Field(0.5, ge=0, le=1, description="Share of answers with a reason in words.")


@dataclass(frozen=True)
class SimulatedAnswers:
    """Answers of shape (studies, people, pairs), and careless people, of shape (studies, people)."""

    trajectory: FloatArray
    aggregate: FloatArray
    overall: FloatArray
    output: FloatArray
    careless: IntArray


def draw_answers(
    respondents: Respondents, *, studies: int, people: int, sets: int = 3, rng: np.random.Generator
) -> SimulatedAnswers:
    """Simulate the answers of many studies at once.

    Examples
    --------
    >>> drawn = draw_answers(Respondents(), studies=2, people=5, rng=np.random.default_rng(0))
    >>> drawn.overall.shape, float(drawn.overall.min()) >= 1
    ((2, 5, 12), True)
    """
    r, shape = respondents, (studies, people, 4 * sets)
    careless = rng.random((studies, people)) < r.careless
    seen = []
    for different, other in (_DIFFERENT, _DIFFERENT[::-1]):
        centre = r.similar + (r.different - r.similar) * np.tile(different + r.spill * other, sets)
        habit = r.habit * rng.standard_normal((studies, people, 1))
        seen.append(_on_scale(centre + habit + r.seen * rng.standard_normal(shape), careless, rng))
    trajectory, aggregate = seen
    lean = r.heterogeneity * rng.standard_normal((studies, people, 1))
    level = r.level * rng.standard_normal((studies, people, 1))
    a_t, a_a = r.strength * r.weight + lean, r.strength * (1 - r.weight) - lean
    latent = r.intercept + a_t * trajectory + a_a * aggregate + level + r.noise * rng.standard_normal(shape)
    overall = _on_scale(latent, careless, rng)
    relative = r.output_strength / r.strength
    b_t = r.output_strength * r.output_weight + relative * lean
    b_a = r.output_strength * (1 - r.output_weight) - relative * lean
    far = b_t * trajectory + b_a * aggregate + r.output_noise * rng.standard_normal(shape)
    output = np.round(np.clip(np.abs(far), 0, 1 - _REFERENCE_RISK), 2)
    return SimulatedAnswers(trajectory, aggregate, overall, output, careless.astype(np.int64))


def simulate_responses(
    people: int = 149,
    *,
    conditions: Mapping[str, Respondents | Mapping[str, Any]] | Sequence[str] = ("arrests", "income"),
    sets: int = 3,
    pool: int | None = None,
    seed: int = 0,
) -> Responses:
    """Simulate the responses of one effort study.

    Parameters
    ----------
    people : number of participants, assigned to the conditions in turn.
    conditions : names of the conditions, or a mapping of names to settings of their people.
    sets : number of sets of five that each person sees, with four pairs each.
    pool : number of sets in the instrument, of which each person sees a random `sets`; by default all of them.
    seed : the same seed gives the same answers.

    Examples
    --------
    >>> import evenhand as eh
    >>> eh.study.simulate_responses(10, seed=1)
    <Responses: effort, 10 people, 120 answers>
    """
    require_whole("people", people, 1)
    require_whole("sets", sets, 1)
    of = sets if pool is None else pool
    if of < sets:
        raise ConfigError("`pool` must hold as many sets as each person sees, {sets}; got {of}.", sets=sets, of=of)
    kinds = _respondents(conditions)
    rng, words = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    blocks = []
    for place, (condition, respondents) in enumerate(kinds.items()):
        numbers = np.arange(place, people, len(kinds))
        if numbers.size:
            block = _block(condition, respondents, numbers, sets, rng)
            blocks.append({**block, **_shown(len(numbers), sets, of, words), **_reasons(respondents, block, words)})
    columns = {name: [value for block in blocks for value in block[name]] for name in blocks[0]}
    return build_responses(columns, "effort", where="the simulated answers")


def _respondents(given: Mapping[str, Respondents | Mapping[str, Any]] | Sequence[str]) -> dict[str, Respondents]:
    if not isinstance(given, Mapping):
        return {name: Respondents() for name in given}
    return {
        name: people if isinstance(people, Respondents) else Respondents.parse(people, f"the respondents of {name!r}")
        for name, people in given.items()
    }


def _block(
    condition: str, respondents: Respondents, numbers: IntArray, sets: int, rng: np.random.Generator
) -> dict[str, list[Any]]:
    """Return the tidy rows of one condition."""
    people, pairs = len(numbers), 4 * sets
    drawn = draw_answers(respondents, studies=1, people=people, sets=sets, rng=rng)
    overall, output, careless = drawn.overall[0], drawn.output[0], drawn.careless[0].astype(bool)
    similar = (overall <= _POINTS / 2).mean(axis=0)
    # People underestimate agreement, and expect others to share their view.
    expected = 0.5 + 0.6 * (similar - 0.5) + np.where(overall <= _POINTS / 2, 0.12, -0.12)
    predicted = np.clip(np.round(expected + 0.12 * rng.standard_normal((people, pairs)), 2), 0, 1)
    ticked = _ticked(respondents, people, pairs, rng)
    checks = rng.binomial(3, np.where(careless, 0.3, 0.97))

    def of_people(values: object) -> list[Any]:
        return np.repeat(np.asarray(values), pairs).tolist()

    return {
        "participant": of_people([f"p{number + 1:04d}" for number in numbers]),
        "condition": [condition] * (people * pairs),
        "duration": of_people(np.round(np.where(careless, 600, 2520) * rng.lognormal(0, 0.3, people))),
        "finished": [1] * (people * pairs),
        "checks_passed": of_people(checks),
        "checks_total": [3] * (people * pairs),
        "subject": np.tile(np.array(SUBJECTS), people * sets).tolist(),
        **{name: getattr(drawn, name)[0].ravel().tolist() for name in ("trajectory", "aggregate", "overall")},
        **{f"factor_{factor}": ticks.tolist() for factor, ticks in zip(FACTORS, ticked, strict=True)},
        "predicted": predicted.ravel().tolist(),
        "risk_reference": [_REFERENCE_RISK] * (people * pairs),
        "risk": np.round(_REFERENCE_RISK + output, 2).ravel().tolist(),
    }


def _shown(people: int, sets: int, of: int, rng: np.random.Generator) -> dict[str, list[Any]]:
    """Return the sets that each person sees, with their positions."""
    seen = np.tile(np.arange(1, sets + 1), (people, 1))
    if of > sets:
        seen = rng.permuted(np.tile(np.arange(1, of + 1), (people, 1)), axis=1)[:, :sets]
    places = np.tile(np.arange(1, sets + 1), (people, 1))
    return {"item": np.repeat(seen.ravel(), 4).astype(str).tolist(), "position": np.repeat(places.ravel(), 4).tolist()}


def _reasons(respondents: Respondents, block: dict[str, list[Any]], rng: np.random.Generator) -> dict[str, list[Any]]:
    """Return the reasons: mostly about the ticked factors, sometimes vague."""
    trajectory, aggregate = np.array(block["factor_trajectory"]) > 0, np.array(block["factor_aggregate"]) > 0
    kinds = np.select([trajectory & aggregate, trajectory, aggregate], ["both", "trajectory", "aggregate"], "vague")
    kinds = np.where(rng.random(kinds.size) < 0.1, "vague", kinds)
    silent, pick = rng.random(kinds.size) >= respondents.reasons, rng.integers(0, 1 << 30, kinds.size)
    said = [
        _REASONS[kind][number % len(_REASONS[kind])] for kind, number in zip(kinds.tolist(), pick.tolist(), strict=True)
    ]
    return {"reason": [None if quiet else words for quiet, words in zip(silent.tolist(), said, strict=True)]}


def _ticked(respondents: Respondents, people: int, pairs: int, rng: np.random.Generator) -> FloatArray:
    """Return indicators of ticked factors, shape (3, people pairs); a larger weight makes ticking likelier."""
    chances = (0.45 + 0.5 * respondents.weight, 0.45 + 0.5 * (1 - respondents.weight), 0.03)
    return np.stack([rng.random(people * pairs) < chance for chance in chances]).astype(np.float64)


def _on_scale(latent: FloatArray, careless: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return latent values rounded to the scale; careless people answer at random."""
    rounded = np.clip(np.round(latent), 1, _POINTS)
    return np.where(careless[..., np.newaxis], rng.integers(1, _POINTS + 1, latent.shape), rounded)


@dataclass(frozen=True, kw_only=True)
class Power:
    """The share of simulated studies that find the difference, with its simulation interval."""

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
    """Return the power of `people` in one condition to detect that trajectory and aggregate weigh unequally.

    Parameters
    ----------
    people : number of people in one condition, after exclusions.
    respondents : settings of the people; the difference to detect is in `weight` (0.5 is no difference).
    sets : number of sets that each person sees, with four pairs each.
    test : 'regression', the equality of the two coefficients with clustered standard errors (quick), or 'correlation',
        the difference of the two rank correlations by resampled people (the default of the analysis; slower).
    alpha : level of the two-sided test.
    studies : number of studies to simulate.
    seed : the same seed gives the same answer.

    Examples
    --------
    >>> import evenhand as eh
    >>> found = eh.study.power(40, {"weight": 0.6}, studies=200)
    >>> 0 < found.low < found.value < found.high < 1
    True
    """
    who = _parsed(respondents)
    require_choice("test", test, TESTS)
    for name, value, least in (("people", people, 3), ("sets", sets, 1), ("studies", studies, 10)):
        require_whole(name, value, least)
    require_share("alpha", alpha)
    rng = np.random.default_rng([seed, people])
    step = max(1, _CHUNK_NUMBERS // (people * 4 * sets * 6))
    significant = 0
    for start in range(0, studies, step):
        drawn = draw_answers(who, studies=min(step, studies - start), people=people, sets=sets, rng=rng)
        p = _regression_p(drawn) if test == "regression" else _correlation_p(drawn, rng)
        significant += int((p < alpha).sum())
    low, high = wilson(significant / studies, studies)
    return Power(
        people=people,
        value=significant / studies,
        low=float(low),
        high=float(high),
        studies=studies,
        test=test,
        alpha=alpha,
    )


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
    """Return the smallest number of people in one condition whose simulated power reaches the target.

    The number of people is doubled until the target is reached and then bisected, so the answer is as exact as
    the number of studies allows. Raises a `ConfigError` if `most` people do not suffice.

    Examples
    --------
    >>> import evenhand as eh
    >>> few, many = (eh.study.people_needed(0.8, {"weight": weight}, studies=200).people for weight in (0.7, 0.6))
    >>> few < many
    True
    """
    require_share("target", target)
    who = _parsed(respondents)

    def power_of(people: int) -> Power:
        return power(people, who, sets=sets, test=test, alpha=alpha, studies=studies, seed=seed)

    too_few, enough = 4, power_of(8)
    while enough.value < target:
        if enough.people >= most:
            raise ConfigError(
                "{most:,} people a condition find a weight of {weight:g} in {reached:.0f}% of studies, below "
                "{wanted:g}%; the difference is too small for this design.",
                most=most,
                weight=who.weight,
                reached=100 * enough.value,
                wanted=100 * target,
            )
        too_few, enough = enough.people, power_of(min(2 * enough.people, most))
    while enough.people - too_few > 1:
        middle = power_of((too_few + enough.people) // 2)
        if middle.value >= target:
            enough = middle
        else:
            too_few = middle.people
    return enough


def _parsed(given: Respondents | Mapping[str, Any] | None) -> Respondents:
    return given if isinstance(given, Respondents) else Respondents.parse(given or {}, "the respondents")


def _regression_p(drawn: SimulatedAnswers) -> FloatArray:
    """Return the p-values of equal coefficients with clustered standard errors (CR1), for all studies at once."""
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
    """Return the p-values of equal rank correlations, from resampling people."""
    studies, people, pairs = drawn.overall.shape
    who = np.repeat(np.arange(people), pairs)
    p_values = np.empty(studies)
    for study in range(studies):
        answers = (drawn.aggregate, drawn.trajectory, drawn.overall)
        columns = np.column_stack([distance[study].ravel() for distance in answers])
        draws = rank_bootstrap(columns, who, resamples=_RANK_RESAMPLES, rng=rng)
        p_values[study] = cluster_t(contrast(draws, 2, 1), people).p_value[0]
    return p_values
