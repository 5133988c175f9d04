"""The result of the agreement audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from evenhand.audits.agreement import AUDIT
from evenhand.audits.agreement.metrics import AgreementMetric, Scale, metrics_for
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.records import Gap, Record, Reveals, Value, column
from evenhand.core.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementValue(Value):
    """A metric of a group or of all people."""

    method: str = column("what the interval rests on", reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementGap(Gap):
    """A group's metric minus another group's, with the test of equality.

    `joint_low` and `joint_high` are simultaneous over all groups of the grouping; for the worst pair, they are limits
    of the largest gap. `p_adjusted` is adjusted for all tables of the run.
    """

    method: str = column("what the interval rests on", reveals="name")
    stderr: float | None = column("standard error of the gap", None, reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRecord(Record):
    """The number of people with a pair of two raters' categories; there are none for scores or more raters."""

    grouping: str | None = column("the grouping; null for everybody", reveals="name")
    group: str = column("the group; '(overall)' for everybody", reveals="name")
    first: str = column("the first rater's rating", reveals="name")
    second: str = column("the second rater's rating", reveals="name")
    n: int = column("how many people", reveals="count")


@dataclass(frozen=True, repr=False, kw_only=True)
class AgreementResult(Result):
    """Agreement of raters, overall and by group.

    Parameters
    ----------
    values, gaps, counts : the tables, as records.
    scale : the scale of the ratings.
    raters : the names of the raters.
    """

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    main_table: ClassVar[str] = "values"
    reveals: ClassVar[Mapping[str, Reveals]] = {"scale": "name", "raters": "name"}

    spec: AgreementSpec
    values: tuple[AgreementValue, ...]
    gaps: tuple[AgreementGap, ...]
    counts: tuple[CountRecord, ...]
    scale: Scale
    raters: tuple[str, ...]

    @property
    def metrics(self) -> Mapping[str, AgreementMetric]:
        """The metrics that these ratings allow."""
        return metrics_for(self.scale, len(self.raters))
