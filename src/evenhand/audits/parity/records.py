"""The records of the parity audit: flat, frozen, JSON-safe."""

from __future__ import annotations

from dataclasses import dataclass

OVERALL = "(overall)"
"""Stands for everybody where a gap's other side is not a group."""

STANDARDISED = "(standardised)"
"""Stands for the mean over strata, where groups are compared within a factor."""


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A metric's value in one group; `n` is the number of people in its denominator."""

    model: str
    grouping: str
    stratum: str | None
    group: str
    metric: str
    n: int
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class GapRecord:
    """A gap between two groups, or between a group and everybody ("(overall)").

    `group` is the group compared with the reference or with everybody (null for the worst pair), `worse_off` the
    side on which the value is worse for the people (null where neither is), `name` the gap's own name in the
    literature, where it has one.
    """

    model: str
    grouping: str
    stratum: str | None
    metric: str
    kind: str
    against: str
    group: str | None
    group_high: str | None
    group_low: str | None
    n: int
    value: float | None
    low: float | None
    high: float | None
    status: str
    worse_off: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class CalibrationRecord:
    """The share with the positive outcome among a group's people whose scores fall into one bin."""

    model: str
    grouping: str
    group: str
    bin_low: float
    bin_high: float
    n: int
    mean_score: float | None
    value: float | None
    low: float | None
    high: float | None
    status: str
