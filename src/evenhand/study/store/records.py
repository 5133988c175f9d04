"""What the store hands out (people, answers, counts: plain values, none holds a connection), and how it can fail."""

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
"""How long somebody who agreed to take part and answered nothing yet holds a place."""
SaveStatus = Literal["saved", "repeated", "stale", "too_early", "locked"]


class StudyClosed(EvenhandError):  # noqa: N818
    """The study takes nobody new."""


class StudyFull(EvenhandError):  # noqa: N818
    """Every place of the study is taken."""


class QuotaFull(StudyFull):
    """Enough people who say the same about themselves take part already."""


class StoreError(EvenhandError):
    """The database could not be reached, or refused what was asked."""


class ConnectionLost(StoreError):  # noqa: N818
    """The connection to the database broke; the same request may succeed on another one."""


@dataclass(frozen=True, kw_only=True)
class StudyRow:
    """A study as the database has it.

    Parameters
    ----------
    id, name, kind : number, short name, and 'effort' or 'disagreement'.
    fingerprint : what the study showed when it was registered, as one hash.
    conditions : the conditions with their shares of people.
    places : how many people fit into a condition; None for any number.
    seed : seed of the draws between conditions.
    points : points of the scale.
    abandon_after : seconds after which a person who does nothing no longer holds their place.
    most_people : how many people may take part; None for any number.
    about : the questions about people, in order.
    numbers : the questions about people that are answered by a number.
    quotas : how many people may take part by question and answer.
    secret : what cookies are signed with.
    completion_code : what people hand in to be paid.
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
    """A person who agreed to take part, as the database had them when they were read.

    Parameters
    ----------
    id : number within the database; never shown.
    code : what exports call them: "p" and ten letters or digits.
    token : the secret of their cookie.
    enrolment : SHA-256 of the key that they enrolled with, which says in which browser they began.
    condition, place : what decides their plan; the condition is "" in a disagreement study, places count from 0.
    language : the language they read.
    reached : index of the first step without an answer.
    since : when their time on the first unanswered step began.
    enrolled_at, seen_at : when they agreed, and when they last did anything.
    finished_at, withdrawn_at : when they reached the end, or took their answers back.
    completion_code : the code that they hand in to be paid.
    fingerprint : of the design that they were enrolled with; None where that was not noted yet.
    steady, clock : `since` on a clock that nobody can set, and which one; None where that was not noted yet.
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
        """Return the seconds since `since`, and how far the clock on the wall went ahead of them meanwhile.

        Where no steady clock saw both ends (another machine, one started anew, or an entry from before), the seconds
        are those of the clock on the wall, and the second is None: nobody knows whether that was set.

        Parameters
        ----------
        moment, tick : now, on the clock on the wall and on the steady one.
        """
        shown = moment - self.since.timestamp()
        if self.steady is None or self.clock != CLOCK:
            return shown, None
        return tick - self.steady, shown - (tick - self.steady)


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


@dataclass(frozen=True, slots=True, kw_only=True)
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
class TraitCounts:
    """People who gave one answer to a question about themselves, and how many of them may take part at `most`.

    `taking_part` are those whom a quota counts: who finished, or still holds a place.
    """

    question: str
    answer: str
    taking_part: int
    finished: int
    most: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The numbers of a study at one moment; people who withdrew count only as withdrawn.

    Parameters
    ----------
    conditions : counts of people, one entry a condition of the study.
    pages : where people stand and how long pages take, by index.
    checks : the attention checks by number.
    answers : stored answers to pairs or cases.
    last_answer : when the last answer of any kind was stored.
    traits : people by what they said about themselves.
    """

    conditions: tuple[ConditionCounts, ...]
    pages: tuple[PageCounts, ...]
    checks: tuple[CheckCounts, ...]
    answers: int
    last_answer: datetime | None
    traits: tuple[TraitCounts, ...] = ()


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


def seconds_of(now: datetime | None = None) -> float:
    """Return a moment, by default this one, as seconds since 1970."""
    return time.time() if now is None else now.timestamp()


def steady_of(now: datetime | None) -> float:
    """Return the seconds of a clock that nobody can set; of a moment that was given, its own."""
    if now is not None:
        return now.timestamp()
    return time.monotonic() if _STEADY is None else time.clock_gettime(_STEADY)


def _clock_name() -> str:
    """Return which clock `steady_of` reads: that of this start of the machine, else one of this process alone."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip() if _STEADY else uuid4().hex
    except OSError:
        return uuid4().hex


_STEADY: int | None = getattr(time, "CLOCK_BOOTTIME", None)
"""It runs on while the machine sleeps, and is the same in all processes until the machine is started anew."""
CLOCK = _clock_name()


def moment_of(seconds: float) -> datetime:
    """Return seconds since 1970 as a moment in UTC.

    Examples
    --------
    >>> moment_of(0.5).isoformat()
    '1970-01-01T00:00:00.500000+00:00'
    """
    return datetime.fromtimestamp(seconds, UTC)


def is_storable(text: str) -> bool:
    r"""Tell whether a text from outside can be looked up at all: short, printable, and valid Unicode.

    Examples
    --------
    >>> is_storable("5f1a"), is_storable(""), is_storable("a\x00b"), is_storable("\ud800")
    (True, False, False, False)
    """
    return 0 < len(text) <= _LONGEST_NAME and text.isprintable()
