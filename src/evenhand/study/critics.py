"""Simulated critics of a feedback study, with known rates of disagreement: for tests and for a trial run.

A critic disagrees with the decision on a case with log odds logit(rate of the case's group) + the critic's own leaning
+ what everybody finds of the case. Disagreement may have a direction: too high or too low.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from evenhand.errors import ConfigError, DataError, did_you_mean
from evenhand.settings import Settings
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.study.cases import Assignment, Cases, read_cases
from evenhand.study.responses import Responses, build_responses
from evenhand.study.schema import FEEDBACK

_REASONS = {
    "agree": ("Looks right to me.", "I would have decided the same."),
    "disagree": ("The decision does not fit the case.", "I see it differently."),
    "too_high": ("Too harsh for what is there.", "This is rated too high."),
    "too_low": ("Not strict enough.", "This is rated too low."),
}


class Critics(Settings):
    """What simulated critics are like.

    Examples
    --------
    >>> Critics(groups={"Black": 0.4}).rate("White"), Critics(groups={"Black": 0.4}).rate("Black")
    (0.25, 0.4)
    """

    disagree: float = Field(0.25, gt=0, lt=1, description="Chance that a middling critic disagrees.")
    groups: dict[str, float] = Field({}, description="The same for groups of cases in which it is another.")
    too_high: float = Field(0.5, ge=0, le=1, description="Share of disagreement that finds a decision too high.")
    leaning: float = Field(0.5, ge=0, description="Spread of critics' own leanings, in log odds.")
    case: float = Field(0.5, ge=0, description="Spread over cases of what everybody finds of one, in log odds.")
    careless: float = Field(0.04, ge=0, le=1, description="Share of critics who answer at random and fail checks.")
    reasons: float = Field(0.3, ge=0, le=1, description="Share of answers with a reason in words.")

    def rate(self, group: str) -> float:
        """Return the chance of disagreement in a group."""
        return self.groups.get(group, self.disagree)


def simulate_feedback(
    data: Any,
    assignment: Assignment,
    *,
    id: str,  # noqa: A002
    decision: str,
    groups: Sequence[str] | str = (),
    labels: Sequence[str] | None = None,
    answers: Sequence[str] = ("agree", "disagree"),
    critics: Critics | Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Responses:
    """Make the responses of one feedback study: every critic of an assignment judges their cases.

    Parameters
    ----------
    data : the cases, as given to `assign_cases`.
    assignment : who sees what; `assign_cases` makes it.
    id, decision, groups : the columns, as in `assign_cases`.
    labels : all labels, lowest first: nobody finds the lowest too high or the highest too low. By default those seen.
    answers : what critics can say; with 'too_high' or 'too_low' disagreement has a direction.
    critics : what critics are like, or its settings as a mapping.
    seed : the same seed gives the same answers.

    Examples
    --------
    >>> import evenhand as eh
    >>> cases = {"case": range(100), "label": ["high", "low"] * 50, "race": ["A"] * 60 + ["B"] * 40}
    >>> dealt = eh.study.assign_cases(cases, id="case", decision="label", groups="race", per_critic=20, per_case=3)
    >>> eh.study.simulate_feedback(cases, dealt, id="case", decision="label", groups="race", critics={"disagree": 0.3})
    <Responses: feedback, 15 people, 300 answers>
    """
    who = critics if isinstance(critics, Critics) else Critics.parse(critics or {}, "the critics")
    cases = read_cases(data, id, decision, (groups,) if isinstance(groups, str) else tuple(groups))
    order = [str(label) for label in labels] if labels is not None else cases.label_names
    _require_known(cases, who, order)
    rows = _rows(cases, assignment)
    critic = np.repeat(np.arange(len(assignment.critics)), [len(seen) for seen in assignment.critics])
    rng = np.random.default_rng(seed)
    careless = rng.random(len(assignment.critics)) < who.careless
    rates = np.array([who.rate(name) for name in cases.group_names])[cases.group[rows]]
    odds = np.log(rates / (1 - rates)) + who.leaning * rng.standard_normal(len(careless))[critic]
    odds += who.case * rng.standard_normal(len(cases.ids))[rows]
    chance = np.where(careless[critic], 0.5, 1 / (1 + np.exp(-odds)))
    level = np.array([order.index(name) for name in cases.label_names])[cases.label[rows]]
    words = _words(rng.random(rows.size) < chance, level, len(order) - 1, answers, who, rng)
    return build_responses(
        {
            "participant": [f"c{number + 1:04d}" for number in critic],
            **_of_critics(careless, critic, rng),
            "item": [cases.ids[row] for row in rows],
            "position": [at for seen in assignment.critics for at in range(1, len(seen) + 1)],
            "decision": [cases.label_names[at] for at in cases.label[rows]],
            "answer": words,
            "reason": _said(words, who, rng),
        },
        "feedback",
        where="the simulated answers",
    )


def _require_known(cases: Cases, who: Critics, order: Sequence[str]) -> None:
    for name in who.groups:
        if name not in cases.group_names:
            raise ConfigError(f"`groups` of the critics got {name!r}; {did_you_mean(name, cases.group_names)}")
    for label in cases.label_names:
        if label not in order:
            raise ConfigError(f"`labels` lacks {label!r}, which the system gave; {did_you_mean(label, order)}")


def _rows(cases: Cases, assignment: Assignment) -> IntArray:
    """Return which case each answer is about, critic by critic."""
    place = {name: at for at, name in enumerate(cases.ids)}
    try:
        return np.array([place[case] for seen in assignment.critics for case in seen], dtype=np.int64)
    except KeyError as error:
        raise DataError(f"the assignment has a case {error} that is not among the cases.") from None


def _words(
    against: BoolArray, level: IntArray, highest: int, answers: Sequence[str], who: Critics, rng: np.random.Generator
) -> list[str]:
    """Return the answers in words; where both directions are open, chance picks one."""
    allowed = set(answers)
    for answer in answers:
        if answer not in FEEDBACK:
            raise ConfigError(f"`answers` got {answer!r}; {did_you_mean(answer, FEEDBACK)}")
    if "agree" not in allowed or len(allowed) < 2:
        raise ConfigError("`answers` must hold 'agree' and something else.")
    high = rng.random(against.size) < who.too_high
    high = (high | (level == highest)) & (level > 0)
    directed = [("too_high", high), ("too_low", ~high)]
    told = np.full(against.size, "disagree" if "disagree" in allowed else "agree", dtype=object)
    for word, here in directed:
        if word in allowed:
            told[here] = word
    return [str(word) for word in np.where(against, told, "agree")]


def _of_critics(careless: BoolArray, critic: IntArray, rng: np.random.Generator) -> dict[str, list[Any]]:
    duration: FloatArray = np.round(np.where(careless, 300, 1500) * rng.lognormal(0, 0.3, careless.size))
    checks = rng.binomial(3, np.where(careless, 0.3, 0.97))
    return {
        "duration": duration[critic].tolist(),
        "finished": [1] * critic.size,
        "checks_passed": checks[critic].tolist(),
        "checks_total": [3] * critic.size,
    }


def _said(words: Sequence[str], who: Critics, rng: np.random.Generator) -> list[str | None]:
    quiet, pick = rng.random(len(words)) >= who.reasons, rng.integers(0, 2, len(words))
    return [None if q else _REASONS[word][at] for q, word, at in zip(quiet, words, pick, strict=True)]
