"""The records of the agreement audit: flat, frozen, JSON-safe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StatisticRecord:
    """One statistic of a group; `grouping` is null for everybody. `method` says what the interval rests on."""

    grouping: str | None
    group: str
    statistic: str
    n: int
    method: str
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class GapRecord:
    """A group's statistic less that of the reference group, and the test that they are equal."""

    grouping: str
    group: str
    reference: str
    statistic: str
    n: int
    stderr: float | None
    p_value: float | None
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class CountRecord:
    """How many people of a group two raters gave a pair of categories; empty for scores and for more raters."""

    grouping: str | None
    group: str
    first: str
    second: str
    n: int
