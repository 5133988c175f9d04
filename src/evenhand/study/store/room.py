"""What every part of a study's store shares: the database, the study's row, and how time is counted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from evenhand.study.schema import Kind
from evenhand.study.store.database import Database

SILENT_SECONDS = 30 * 60
"""How long somebody who agreed to take part and answered nothing yet holds a place."""


@dataclass(frozen=True)
class StudyRow:
    """A study as the database has it.

    Parameters
    ----------
    id, name, kind : number, short name, and 'effort' or 'feedback'.
    fingerprint : what the study showed when it was registered, as one hash.
    conditions : the conditions with their shares of people.
    places : how many people fit into a condition; None for any number.
    seed : seed of the draws between conditions.
    points : points of the scale.
    abandon_after : seconds after which a person who does nothing no longer holds their place.
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


class Room:
    """A study bound to its database."""

    def __init__(self, database: Database, row: StudyRow) -> None:
        self._database = database
        self._row = row
        self._id = row.id


def seconds_of(now: datetime | None) -> float:
    """Return a moment, by default this one, as seconds since 1970."""
    return time.time() if now is None else now.timestamp()


def moment_of(seconds: float) -> datetime:
    """Return seconds since 1970 as a moment in UTC.

    Examples
    --------
    >>> moment_of(0.5).isoformat()
    '1970-01-01T00:00:00.500000+00:00'
    """
    return datetime.fromtimestamp(seconds, UTC)


def is_storable(text: str, longest: int = 200) -> bool:
    r"""Tell whether a text from outside can be looked up at all: short, printable, and valid Unicode.

    Examples
    --------
    >>> is_storable("5f1a"), is_storable(""), is_storable("a\x00b"), is_storable("\ud800")
    (True, False, False, False)
    """
    return 0 < len(text) <= longest and text.isprintable()
