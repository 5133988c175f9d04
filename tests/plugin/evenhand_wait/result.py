"""What the waiting audit returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.records import Gap, Record, Reveals, Value, column
from evenhand.core.result import Result
from evenhand_wait import AUDIT
from evenhand_wait.spec import WaitSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitValue(Value):
    """The mean waiting time of a group."""

    ward: str = column("where people waited", reveals="name")
    longest: float | None = column("the longest wait, in days", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitGap(Gap):
    """The difference between two groups."""

    ward: str = column("where people waited", reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class LongWait(Record):
    """How many people of a group waited long."""

    grouping: str | None = column("the grouping; null for everybody", reveals="name")
    group: str = column("the group", reveals="name")
    longer_than: float = column("so many days", reveals="safe")
    n: int = column("the people who waited longer", reveals="count")
    mean: float | None = column("their mean wait", reveals="number")
    median: float | None = column("their median wait; what it reveals is not declared", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile(Record):
    """A quantile of everybody's waits; nothing says how many people it is of."""

    share: float = column("the share of people who waited less", reveals="safe")
    days: float = column("so many days", reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank(Record):
    """The place of a group when groups are sorted by their mean wait."""

    grouping: str = column("the grouping", reveals="name")
    group: str = column("the group", reveals="name")
    place: int = column("its place, 1 for the longest", reveals="safe")


@dataclass(frozen=True, repr=False, kw_only=True)
class WaitResult(Result):
    """How long groups wait."""

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    places: ClassVar[tuple[str, ...]] = ("ward",)
    reveals: ClassVar[Mapping[str, Reveals]] = {"unit": "name", "slow": "count"}

    spec: WaitSpec
    values: tuple[WaitValue, ...]
    gaps: tuple[WaitGap, ...]
    long_waits: tuple[LongWait, ...] = ()
    quantiles: tuple[Quantile, ...] = ()
    ranks: tuple[Rank, ...] = ()
    unit: str = "days"
    slow: int = 0
    slowest: tuple[float, ...] = ()
