"""The result of the paired tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from evenhand.audits.paired import AUDIT
from evenhand.audits.paired.spec import PairedSpec
from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.records import OK, Gap, Record, Reveals, Value, column
from evenhand.core.result import Result
from evenhand.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedValue(Value):
    """A group's mean of a metric over templates."""

    templates: int = column("the templates with answers for the group", reveals="safe")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedGap(Gap):
    """The mean difference between two groups within templates, and its sign test."""

    templates: int | None = column("the templates with answers for both groups", None, reveals="safe")
    template_sd: float | None = column(
        "standard deviation of the difference between templates; null without repetitions", None, reveals="number"
    )
    replicate_sd: float | None = column(
        "standard deviation of answers between repetitions of one template and group", None, reveals="number"
    )
    template_share: float | None = column(
        "the part of the variance of the differences that is between templates, not between repetitions",
        None,
        reveals="number",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceboRecord(Record):
    """A comparison of two values of a placebo column, within templates and groups; no difference is expected."""

    placebo: str = column("the placebo column", reveals="name")
    metric: str = column("the metric", reveals="name")
    first: str = column("a value of the column", reveals="name")
    second: str = column("the value it is compared with", reveals="name")
    pairs: int = column("the templates and groups that have both", reveals="safe")
    value: float | None = column("the mean difference, first minus second", None, reveals="number")
    low: float | None = column("lower limit of its interval", None, reveals="number")
    high: float | None = column("upper limit of its interval", None, reveals="number")
    p_value: float | None = column("p-value of no difference, of this comparison alone", None, reveals="number")
    p_adjusted: float | None = column("p-value adjusted for all placebo comparisons (Holm)", None, reveals="number")
    status: Message = column("'ok', or why there is no value or interval", OK, reveals="name")


@dataclass(frozen=True, repr=False, kw_only=True)
class PairedResult(Result):
    """Answers to the same templates for different people.

    Parameters
    ----------
    values, gaps, placebos : the tables, as records.
    passes : the passing answer; None for numeric answers.
    """

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    main_table: ClassVar[str] = "values"
    reveals: ClassVar[Mapping[str, Reveals]] = {"passes": "name"}

    spec: PairedSpec
    values: tuple[PairedValue, ...]
    gaps: tuple[PairedGap, ...]
    placebos: tuple[PlaceboRecord, ...] = ()
    passes: str | None = None
