"""Plain records that the store returns (people, answers, counts), and its errors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from evenhand.errors import EvenhandError
from evenhand.study.schema import Kind

_LONGEST_NAME = 200
SILENT_SECONDS = 30 * 60
"""How long a place stays reserved for a participant without any answer."""
SaveStatus = Literal["saved", "repeated", "stale", "too_early", "locked"]


class StudyClosed(EvenhandError):  # noqa: N818
    """The study accepts no new participants."""


class StudyFull(EvenhandError):  # noqa: N818
    """Every place of the study is taken."""


class QuotaFull(StudyFull):
    """Enough people with the same answer about themselves already take part."""


class StoreError(EvenhandError):
    """The database is unreachable or rejected a statement."""


class ConnectionLost(StoreError):  # noqa: N818
    """The connection to the database broke; a retry on a new connection may succeed."""


@dataclass(frozen=True, kw_only=True)
class StudyRow:
    """A study as stored in the database.

    Parameters
    ----------
    id, name, kind : number, short name, and 'effort' or 'disagreement'.
    fingerprint : hash of the study's contents when it was registered.
    conditions : the conditions, each with its share of people.
    places : maximum number of people per condition; None for no limit.
    seed : seed of the draws between conditions.
    points : points of the scale.
    abandon_after : seconds of inactivity after which a person's place is released.
    most_people : maximum number of participants; None for no limit.
    about : the questions about people, in order.
    numbers : the questions about people with numeric answers.
    quotas : maximum number of participants by question and answer.
    secret : signing key of the cookies.
    completion_code : code that participants submit to be paid.
    """

    id: int
    name: str
    kind: Kind
    fingerprint: str
    conditions: Mapping[str, float]
    places: int | None
    seed: int
    points: int
    abandon_after: float
    secret: bytes = field(repr=False)
    completion_code: str
    most_people: int | None
    about: Sequence[str]
    numbers: Sequence[str]
    quotas: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """A participant, as read from the database at one moment.

    Parameters
    ----------
    id : number within the database; never shown.
    code : their name in exports: "p" and ten letters or digits.
    token : the secret of their cookie.
    enrolment : SHA-256 of their enrolment key, which identifies the browser in which they began.
    condition, place : determine their plan; the condition is "" in a disagreement study, places count from 0.
    language : the language of their pages.
    reached : index of the first step without an answer.
    since : when their time on the first unanswered step began.
    enrolled_at, seen_at : when they enrolled, and when they were last active.
    finished_at, withdrawn_at : when they finished, and when they withdrew; else None.
    completion_code : the code that they submit to be paid.
    fingerprint : hash of the design at their enrolment; None in older databases.
    steady, clock : `since` on a monotonic clock, and the clock's id; None in older databases.
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
    steady: float | None = None
    clock: str | None = None

    def time_on_step(self, moment: float, tick: float) -> tuple[float, float | None]:
        """Return the seconds since `since`, and the drift of the wall clock against the monotonic clock.

        If no monotonic clock covers both ends (another machine, a reboot, or an older entry), the seconds
        come from the wall clock, and the drift is None, meaning unknown.

        Parameters
        ----------
        moment, tick : the current time on the wall clock and on the monotonic clock.
        """
        shown = moment - self.since.timestamp()
        if self.steady is None or self.clock != CLOCK:
            return shown, None
        return tick - self.steady, shown - (tick - self.steady)


@dataclass(frozen=True, slots=True)
class Answer:
    """The stored answer to a step: payload and revision (1 when first stored)."""

    payload: dict[str, Any]
    revision: int


@dataclass(frozen=True, slots=True)
class Saved:
    """The outcome of submitting an answer.

    Parameters
    ----------
    status : 'saved' (stored now), 'repeated' (already stored; nothing changed), 'stale' (another answer was
        stored after the form was rendered; nothing changed), 'too_early' (an earlier step has no answer yet) or
        'locked' (answers to attention checks, or of people who finished or withdrew, cannot be changed).
    revision : the revision now stored; 0 if there is no answer.
    reached : index of the first step without an answer.
    """

    status: SaveStatus
    revision: int
    reached: int


@dataclass(frozen=True, slots=True)
class BonusRow:
    """A participant eligible for bonuses: recruitment id (None if missing or erased), code and condition."""

    recruitment_id: str | None
    participant: str
    condition: str
    finished_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionCounts:
    """Numbers of people of one condition.

    People who neither finished nor withdrew are `active` (seen within ten minutes), `away`, or, once their reserved
    place has been released, `abandoned`.
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
    """Seconds spent on a step or a page: number of answers, lower quartile, median, upper quartile."""

    answers: int
    lower: float
    median: float
    upper: float


@dataclass(frozen=True, slots=True)
class PageCounts:
    """One page of the study: the people who are on it, and the time spent on it.

    Parameters
    ----------
    index : index of the step, from 0.
    waiting : active or away people whose first unanswered step this is.
    dropped : people who abandoned the study at this step.
    times : seconds spent on the page's answers; None if there are no answers.
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
class TraitCounts:
    """People with one answer to a question about themselves, and its quota `most`.

    `taking_part` counts people towards the quota: those who finished or still have a place.
    """

    question: str
    answer: str
    taking_part: int
    finished: int
    most: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The numbers of a study at one moment; withdrawn people count only as withdrawn.

    Parameters
    ----------
    conditions : counts of people, one entry per condition.
    pages : people on each page and time spent on it, by index.
    checks : results of the attention checks, by number.
    answers : stored answers to pairs or cases.
    last_answer : when the last answer of any kind was stored.
    traits : numbers of people by their answers about themselves.
    """

    conditions: tuple[ConditionCounts, ...]
    pages: tuple[PageCounts, ...]
    checks: tuple[CheckCounts, ...]
    answers: int
    last_answer: datetime | None
    traits: tuple[TraitCounts, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """The session of a logged-in researcher."""

    name: str
    opened_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Action:
    """A logged action of a researcher."""

    at: datetime
    researcher: str
    action: str
    detail: str


def seconds_of(now: datetime | None = None) -> float:
    """Return a time, by default the current time, as seconds since 1970."""
    return time.time() if now is None else now.timestamp()


def steady_of(now: datetime | None) -> float:
    """Return the seconds of the monotonic clock; for a given time, its seconds since 1970."""
    if now is not None:
        return now.timestamp()
    return time.monotonic() if _STEADY is None else time.clock_gettime(_STEADY)


def _clock_name() -> str:
    """Return the id of the clock of `steady_of`: the machine's boot id, or else random for this process."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip() if _STEADY else uuid4().hex
    except OSError:
        return uuid4().hex


_STEADY: int | None = getattr(time, "CLOCK_BOOTTIME", None)
"""A monotonic clock that includes sleep and is the same in all processes until the machine reboots."""
CLOCK = _clock_name()


def moment_of(seconds: float) -> datetime:
    """Return seconds since 1970 as a datetime in UTC.

    Examples
    --------
    >>> moment_of(0.5).isoformat()
    '1970-01-01T00:00:00.500000+00:00'
    """
    return datetime.fromtimestamp(seconds, UTC)


def is_storable(text: str) -> bool:
    r"""Return whether an external text is short, printable and valid Unicode, so that it can be looked up.

    Examples
    --------
    >>> is_storable("5f1a"), is_storable(""), is_storable("a\x00b"), is_storable("\ud800")
    (True, False, False, False)
    """
    return 0 < len(text) <= _LONGEST_NAME and text.isprintable()
