"""Ratings of reasons: the reasons to rate, the ratings as a table, and the scores for bonuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from evenhand.core.records import OK
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.stats.truth_serum import bonus
from evenhand.study.messages import say
from evenhand.study.rationales import reason_ids, reason_rows
from evenhand.study.responses import Responses
from evenhand.study.settings import Rationales

_ABOUT = (
    ("subject", "Compared with K"),
    ("risk_reference", "Risk shown for K"),
    ("risk", "Risk found fair"),
    ("decision", "Decision"),
    ("answer", "Answer"),
)
"""The columns of the answer that a rater sees beside its reason, with their labels."""


@dataclass(frozen=True, slots=True)
class Rating:
    """One rater's rating of one reason: a score from 1, or why it is left out; `step` identifies the answer."""

    participant: str
    step: str
    rater: str
    score: int | None
    left_out: str | None = None


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason to be rated: an anonymous id, its author, the step, the context and the text."""

    id: str
    participant: str
    step: str
    about: tuple[tuple[str, str], ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingAgreement:
    """An agreement metric of two raters, for their 'points' or for what they 'left out'."""

    what: str
    title: str
    metric: str = ""
    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    status: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonScore:
    """A person's score for their reasons: number, value, rank, bonus, and 'ok' or why there is no score."""

    participant: str
    reasons: int = 0
    value: float | None = None
    rank: int | None = None
    bonus: bool = False
    status: Message


def reasons_to_rate(responses: Responses, first: int | None = None) -> list[Reason]:
    """Return the reasons of all participants who finished, in the order of the answers.

    Parameters
    ----------
    responses : the answers of a study.
    first : limit to each person's first sets or cases, in display order; None for all.
    """
    if "reason" not in responses.answers:
        return []
    finished = np.asarray(responses.people.get("finished", np.ones(len(responses.people["participant"]))))
    ids, answers, names = reason_ids(responses), responses.answers, responses.people["participant"][responses.person]
    late = responses.numbers("position") > (np.inf if first is None else first)
    effort = responses.kind == "effort"
    shown = (("item", "Set" if effort else "Case"), *_ABOUT)
    reasons = []
    for row in reason_rows(responses, "reason", None):
        if late[row] or not finished[responses.person[row]]:
            continue
        item = answers["item"][row]
        step = f"pair:{item}/{answers['subject'][row]}" if effort else f"case:{item}"
        about = tuple((words, _shown(name, answers[name][row])) for name, words in shown if name in answers)
        reasons.append(Reason(ids[row], str(names[row]), step, about, str(answers["reason"][row])))
    return reasons


def _shown(name: str, value: Any) -> str:
    if value is None or value != value:
        return "not given"
    return f"{100 * value:.4g} %" if name.startswith("risk") else str(value)


def rating_columns(reasons: Sequence[Reason], ratings: Sequence[Rating]) -> dict[str, list[Any]]:
    """Return ratings as columns for `eh.agreement`, one row per rating: `reason`, `rater`, `rating`.

    Examples
    --------
    >>> reasons = [Reason("ab12", "p1", "case:7", (), "too harsh")]
    >>> rating_columns(reasons, [Rating("p1", "case:7", "ann", 3), Rating("p1", "case:7", "ben", None, "vague")])
    {'reason': ['ab12', 'ab12'], 'rater': ['ann', 'ben'], 'rating': [3, None], 'left_out': [None, 'vague']}
    """
    ids = {(one.participant, one.step): one.id for one in reasons}
    held = [(ids[one.participant, one.step], one) for one in ratings if (one.participant, one.step) in ids]
    return {
        "reason": [identifier for identifier, _ in held],
        "rater": [one.rater for _, one in held],
        "rating": [one.score for _, one in held],
        "left_out": [one.left_out for _, one in held],
    }


def reason_scores(
    reasons: Sequence[Reason],
    ratings: Sequence[Rating],
    raters: Sequence[str],
    finished: Sequence[str],
    *,
    of: Literal["mean", "best", "total"] = "mean",
    share: float = 0.1,
) -> list[ReasonScore]:
    """Return each finished participant's score for their reasons, with rank and bonus, the highest first.

    A reason counts if both raters scored it; its value is the mean of the two scores.
    A person's value is the mean, maximum or sum of their reasons' values. The highest `share` of those who finished are
    paid, at least one person, including ties for the last place; people without a counted reason are never paid.

    Parameters
    ----------
    reasons, ratings : the reasons, and their ratings.
    raters : the two raters.
    finished : the participants who finished.
    of : how a person's value is computed from their reasons.
    share : the share of finished participants to pay.

    Examples
    --------
    >>> reasons = [Reason("a", "p1", "case:7", (), "x"), Reason("b", "p2", "case:7", (), "y")]
    >>> given = [Rating("p1", "case:7", "ann", 3), Rating("p1", "case:7", "ben", 4), Rating("p2", "case:7", "ann", 1)]
    >>> [(one.participant, one.value, one.bonus) for one in reason_scores(reasons, given, ["ann", "ben"], ["p1", "p2"])]
    [('p1', 3.5, True), ('p2', None, False)]
    """
    counted: dict[str, list[float]] = {who: [] for who in finished}
    for who, value in _values_of_reasons(reasons, ratings, raters):
        if who in counted:
            counted[who].append(value)
    values = [_combined(found, of) if found else -1.0 for found in counted.values()]
    paid = bonus(values, share=share)
    scored, unscored = [], []
    for place, (who, found) in enumerate(counted.items()):
        if found:
            rank, chosen = int(paid.rank[place]), bool(paid.chosen[place])
            scored.append(
                ReasonScore(
                    participant=who, reasons=len(found), value=values[place], rank=rank, bonus=chosen, status=OK
                )
            )
        else:
            unscored.append(ReasonScore(participant=who, status=say("no_reason_rated_by_both")))
    return sorted(scored, key=attrgetter("rank", "participant")) + sorted(unscored, key=attrgetter("participant"))


def _values_of_reasons(
    reasons: Sequence[Reason], ratings: Sequence[Rating], raters: Sequence[str]
) -> Iterator[tuple[str, float]]:
    """Yield the author and the value of each counted reason."""
    points = {(given.participant, given.step, given.rater): given.score for given in ratings}
    for who, step in dict.fromkeys((one.participant, one.step) for one in reasons):
        known = [score for rater in raters if (score := points.get((who, step, rater))) is not None]
        if len(known) == len(raters) > 0:
            yield who, float(np.mean(known))


def _combined(values: list[float], of: Literal["mean", "best", "total"]) -> float:
    if of == "mean":
        return float(np.mean(values))
    return max(values) if of == "best" else sum(values)


@dataclass(frozen=True)
class RatedReasons:
    """The reasons of a study with the ratings of its two raters."""

    reasons: Sequence[Reason]
    ratings: Sequence[Rating]
    settings: Rationales

    @classmethod
    def of(cls, responses: Responses, ratings: Sequence[Rating], settings: Rationales) -> RatedReasons:
        """Return the rated reasons of a study's responses."""
        return cls(reasons_to_rate(responses, settings.first), ratings, settings)

    def by(self, rater: str) -> dict[tuple[str, str], Rating]:
        """Return one rater's ratings, by participant and step."""
        keys = {(one.participant, one.step) for one in self.reasons}
        given = {(one.participant, one.step): one for one in self.ratings if one.rater == rater}
        return {key: one for key, one in given.items() if key in keys}

    @property
    def by_both(self) -> int:
        """The number of reasons that both raters rated or left out."""
        return len(set.intersection(*(set(self.by(rater)) for rater in self.settings.raters)))

    def columns(self) -> dict[str, list[Any]]:
        """Return the ratings as a table; see `rating_columns`."""
        return rating_columns(self.reasons, self.ratings)

    @cached_property
    def agreement(self) -> list[RatingAgreement]:
        """The agreement of the two raters on the reasons that both rated; empty without raters.

        Scores are compared on an ordinal scale, over the reasons scored by both; leaving out is compared as a
        yes/no value, over all reasons that both rated or left out.
        """
        if not self.settings.raters:
            return []
        given = [self.by(rater) for rater in self.settings.raters]
        points = [{key: one.score for key, one in held.items() if one.score is not None} for held in given]
        left_out = [{key: one.left_out is not None for key, one in held.items()} for held in given]
        ordinal = {"scale": "ordinal", "categories": tuple(range(1, len(self.settings.scale) + 1))}
        binary = {"scale": "binary", "positive": True, "metrics": ("agreement", "kappa", "pabak")}
        return [*_agreement_on("points", points, ordinal), *_agreement_on("left out", left_out, binary)]


def _agreement_on(
    what: str, held: Sequence[Mapping[tuple[str, str], Any]], settings: Mapping[str, Any]
) -> Iterator[RatingAgreement]:
    """Yield the agreement of two raters on the reasons rated by both, or why it is undefined."""
    import evenhand as eh

    first, second = held
    both = sorted(first.keys() & second.keys())
    given = {"first": [first[one] for one in both], "second": [second[one] for one in both]}
    if len({*given["first"], *given["second"]}) < 2:
        why = say("raters_gave_the_same" if both else "nothing_rated_by_both")
        yield RatingAgreement(what=what, title="Agreement", n=len(both), status=shared("undefined", why=why))
        return
    found = eh.agreement(eh.Table(given), raters=list(given), **settings)
    for one in found.values:
        yield RatingAgreement(
            what=what,
            title=found.metrics[one.metric].title,
            metric=one.metric,
            n=one.n,
            value=one.value,
            low=one.low,
            high=one.high,
            status=one.status,
        )
