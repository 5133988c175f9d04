"""The result of the ranking audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evenhand.audits.ranking import AUDIT
from evenhand.audits.ranking.spec import RankingSpec
from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.records import Gap, Record, Value, column
from evenhand.core.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingValue(Value):
    """A group's mean of a metric over lists."""

    lists: int = column("the lists with candidates of the group", reveals="safe")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingGap(Gap):
    """The mean difference between two groups within lists, and its sign test."""

    lists: int | None = column("the lists with candidates of both groups", None, reveals="safe")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortlistRecord(Record):
    """The share of a group's candidates among the first `k` of a list, for one size `k` of the shortlist."""

    model: str = column("the model", reveals="name")
    grouping: str = column("the grouping", reveals="name")
    group: str = column("the group", reveals="name")
    k: int = column("so many places", reveals="safe")
    lists: int = column("the lists that are longer, with candidates of the group", reveals="safe")
    n: int = column("the candidates", reveals="count")
    value: float | None = column("the share", reveals="share")
    low: float | None = column("lower limit, for all places and groups together", None, reveals="number")
    high: float | None = column("upper limit, for all places and groups together", None, reveals="number")


@dataclass(frozen=True, repr=False, kw_only=True)
class RankingResult(Result):
    """Comparison of groups within ranked lists.

    Parameters
    ----------
    values, gaps, shortlists : the tables, as records.
    """

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    main_table: ClassVar[str] = "values"

    spec: RankingSpec
    values: tuple[RankingValue, ...]
    gaps: tuple[RankingGap, ...]
    shortlists: tuple[ShortlistRecord, ...] = ()
