"""The result of the classes audit."""

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
    """A group's share of people in one metric of one class."""

    label: str = column("the class", reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassesGap(Gap):
    """The difference between two groups in a share, or their ordinal dominance.

    `joint_low` and `joint_high` are simultaneous over all classes, and over all pairs of groups or all groups.
    """

    label: str | None = column("the class; null for ordinal dominance", None, reveals="name")


@dataclass(frozen=True, repr=False, kw_only=True)
class ClassesResult(Result):
    """Comparison of groups' classes.

    Parameters
    ----------
    values, gaps : the tables, as records.
    labels : the classes, from worst to best if they are ordered.
    """

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    main_table: ClassVar[str] = "values"
    places: ClassVar[tuple[str, ...]] = ("label",)
    reveals: ClassVar[Mapping[str, Reveals]] = {"labels": "name"}

    spec: ClassesSpec
    values: tuple[ClassesValue, ...]
    gaps: tuple[ClassesGap, ...]
    labels: tuple[str, ...] = ()
