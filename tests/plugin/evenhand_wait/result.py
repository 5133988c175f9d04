"""What the waiting audit returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.records import Gap, Value, column
from evenhand.core.result import Result
from evenhand_wait import AUDIT
from evenhand_wait.spec import WaitSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitValue(Value):
    """The mean waiting time of a group."""

    ward: str = column("where people waited")
    longest: float | None = column("the longest wait, in days", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitGap(Gap):
    """The difference between two groups."""

    ward: str = column("where people waited")


@dataclass(frozen=True, repr=False, kw_only=True)
class WaitResult(Result):
    """How long groups wait."""

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    places: ClassVar[tuple[str, ...]] = ("ward",)

    spec: WaitSpec
    values: tuple[WaitValue, ...]
    gaps: tuple[WaitGap, ...]
