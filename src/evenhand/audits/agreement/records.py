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
    """A group's statistic less another's, and the test that they are equal.

    `against` is 'reference', or 'worst_pair': the two groups farthest apart, of those that can be tested, the higher
    one first. `low` and `high` hold for this gap; `all_low` and `all_high` for those of all groups of the grouping
    together, as do those of the worst pair, which limit the largest gap. `p_adjusted` is for all gaps that are told as
    findings (Holm); null for statistics that are only in the table.
    """

    grouping: str
    group: str
    reference: str
    against: str
    statistic: str
    n: int
    method: str
    stderr: float | None
    p_value: float | None
    p_adjusted: float | None
    value: float | None
    low: float | None
    high: float | None
    all_low: float | None
    all_high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class CountRecord:
    """How many people of a group two raters gave a pair of categories; empty for scores and for more raters."""

    grouping: str | None
    group: str
    first: str
    second: str
    n: int
