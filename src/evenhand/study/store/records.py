"""What the store hands out: people, answers, counts. All are plain values; none holds a connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

SaveStatus = Literal["saved", "repeated", "stale", "too_early", "locked"]


@dataclass(frozen=True, slots=True)
class Participant:
    """A person who agreed to take part, as the database had them when they were read.

    Parameters
    ----------
    id : number within the database; never shown.
    code : what exports call them: "p" and ten letters or digits.
    token : the secret of their cookie.
    enrolment : SHA-256 of the key that they enrolled with, which says in which browser they began.
    condition, place : what decides their plan; the condition is "" in a feedback study, places count from 0.
    language : the language they read.
    reached : index of the first step without an answer.
    since : when their time on the first unanswered step began.
    enrolled_at, seen_at : when they agreed, and when they last did anything.
    finished_at, withdrawn_at : when they reached the end, or took their answers back.
    completion_code : the code that they hand in to be paid.
    fingerprint : of the design that they were enrolled with; None where that was not noted yet.
    """

    id: int
    code: str
    token: str = field(repr=False)
    enrolment: str = field(repr=False)
    condition: str
    place: int
    language: str
    reached: int
    since: datetime
    enrolled_at: datetime
    seen_at: datetime
    finished_at: datetime | None
    withdrawn_at: datetime | None
    completion_code: str
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What is stored for a step: the payload, and how often it was written (1 is the first time)."""

    payload: dict[str, Any]
    revision: int


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of a submitted answer.

    Parameters
    ----------
    status : 'saved' (stored now), 'repeated' (it was there already; nothing changed), 'stale' (another answer was
        stored since the form was made; nothing changed), 'too_early' (an earlier step has no answer yet) or 'locked'
        (an attention check, or a person who finished or withdrew, cannot change an answer).
    revision : the revision that is stored now; 0 where there is none.
    reached : index of the first step without an answer.
    """

    status: SaveStatus
    revision: int
    reached: int


@dataclass(frozen=True, slots=True)
class BonusRow:
    """Whom to pay: the recruitment id (None where there was none or it was erased), the code and the condition."""

    recruitment_id: str | None
    participant: str
    condition: str
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class ConditionCounts:
    """People of one condition.

    Who neither finished nor withdrew is `active` (an answer or draft within ten minutes), `away`, or, after the time in
    which nobody else may take the place, `abandoned`.
    """

    condition: str
    enrolled: int
    active: int
    away: int
    abandoned: int
    finished: int
    withdrawn: int


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds spent on a step or a page: how many answers, lower quartile, median, upper quartile."""

    answers: int
    lower: float
    median: float
    upper: float


@dataclass(frozen=True, slots=True)
class PageCounts:
    """One page of the study by its index: who stands there, and how long people took over it.

    Parameters
    ----------
    index : index of the step, from 0.
    waiting : people whose first unanswered step this is and who are active or away.
    dropped : the same for people who were not seen for long: they dropped out here.
    times : seconds of the answers given here; None where there are none.
    """

    index: int
    waiting: int
    dropped: int
    times: Times | None


@dataclass(frozen=True, slots=True)
class CheckCounts:
    """People who passed and failed one attention check."""

    check: int
    passed: int
    failed: int


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of a study at one moment; people who withdrew count only as withdrawn.

    Parameters
    ----------
    conditions : counts of people, one entry a condition of the study.
    pages : where people stand and how long pages take, by index.
    steps : seconds by the key of the step, such as "pair:1/A".
    checks : the attention checks by number.
    answers : stored answers to pairs or cases.
    last_answer : when the last answer of any kind was stored.
    """

    conditions: tuple[ConditionCounts, ...]
    pages: tuple[PageCounts, ...]
    steps: Mapping[str, Times]
    checks: tuple[CheckCounts, ...]
    answers: int
    last_answer: datetime | None


@dataclass(frozen=True, slots=True)
class Session:
    """A researcher who is logged in."""

    name: str
    opened_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Action:
    """Something a researcher did."""

    at: datetime
    researcher: str
    action: str
    detail: str
