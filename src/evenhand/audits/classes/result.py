"""The result of the audit of classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from evenhand.audits.classes import AUDIT
from evenhand.audits.classes.spec import ClassesSpec
from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.records import Gap, Reveals, Value, column
from evenhand.core.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassesValue(Value):
    """A share of a group's people that is about one class."""

    label: str = column("the class", reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassesGap(Gap):
    """The difference between two groups in a share, or their ordinal dominance.

    `joint_low` and `joint_high` hold for all classes and all pairs of groups, or all groups, together.
    """

    label: str | None = column("the class; null for ordinal dominance", None, reveals="name")


@dataclass(frozen=True, repr=False, kw_only=True)
class ClassesResult(Result):
    """How people are put into classes.

    Parameters
    ----------
    values, gaps : the tables, as records.
    labels : the classes, in their order if they have one.
    """

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    main_table: ClassVar[str] = "values"
    places: ClassVar[tuple[str, ...]] = ("label",)
    reveals: ClassVar[Mapping[str, Reveals]] = {"labels": "name"}

    spec: ClassesSpec
    values: tuple[ClassesValue, ...]
    gaps: tuple[ClassesGap, ...]
    labels: tuple[str, ...] = ()
