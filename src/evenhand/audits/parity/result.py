"""The result of the parity audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from evenhand.audits.parity import AUDIT
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.records import Gap, Record, Reveals, Value, column
from evenhand.core.result import Result
from evenhand.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityGap(Gap):
    """A gap between two groups, or between a group and all people."""

    name: str | None = column("the gap's own name in the literature, where it has one", None, reveals="name")
    differs: bool | None = column(
        "whether these two groups differ, by limits that hold for all pairs of this metric", None, reveals="number"
    )
    rests_on: str | None = column(
        "what test and limits rest on: of rates 'exact' or 'asymptotic' scores; of means 'permutation' of people, its "
        "'approximation' for many, 'few people' or 'one person' who carry the variance, 'bounds' where people of a "
        "group do not vary; 'group limits' of each group; or the 'bootstrap'",
        None,
        reveals="name",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRecord(Record):
    """The share of positive outcomes, or the mean outcome, of a group's people in one score bin."""

    model: str = column("the model", reveals="name")
    grouping: str = column("the grouping", reveals="name")
    group: str = column("the group", reveals="name")
    bin_low: float = column("lower edge of the bin", reveals="safe")
    bin_high: float = column("upper edge of the bin", reveals="safe")
    n: int = column("the people in the bin", reveals="count")
    mean_score: float | None = column("their mean score or number", reveals="number")
    value: float | None = column("the share of them with the positive outcome, or their mean outcome", reveals="share")
    low: float | None = column("lower limit of the value", reveals="number")
    high: float | None = column("upper limit of the value", reveals="number")
    status: Message = column("'ok', or why the bin is not drawn")


@dataclass(frozen=True, repr=False, kw_only=True)
class ParityResult(Result):
    """Group values, gaps and calibration, with their intervals.

    Parameters
    ----------
    values, gaps, calibration : the tables, as records.
    favourable : the side of each model's decision that is good for a person, or None if it was not set.
    """

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    reveals: ClassVar[Mapping[str, Reveals]] = {"favourable": "name"}

    spec: ParitySpec
    values: tuple[Value, ...]
    gaps: tuple[ParityGap, ...]
    calibration: tuple[CalibrationRecord, ...]
    favourable: dict[str, str | None]
