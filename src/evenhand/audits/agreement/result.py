"""The result of the agreement audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.audits.agreement.compare import OVERALL
from evenhand.audits.agreement.records import CountRecord, GapRecord, StatisticRecord
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.audits.agreement.statistics import Scale
from evenhand.core.result import Result
from evenhand.core.sections import Section


@dataclass(frozen=True, repr=False)
class AgreementResult(Result):
    """How far raters agree, on the whole and by group.

    Parameters
    ----------
    statistics, gaps, counts : the tables, as records.
    scale : what the ratings were taken for.
    hash : SHA-256 of the ratings, groups and weights that the numbers were computed from.
    """

    audit: ClassVar[str] = "agreement"
    title: ClassVar[str] = "Agreement"
    question: ClassVar[str] = "Do raters agree about the same people, and do they agree less about some groups?"
    main_table: ClassVar[str] = "statistics"

    spec: AgreementSpec
    statistics: tuple[StatisticRecord, ...]
    gaps: tuple[GapRecord, ...]
    counts: tuple[CountRecord, ...]
    scale: Scale
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold."""
        return {**super().to_dict(), "scale": self.scale, "hash": self.hash}

    @property
    def tables(self) -> Mapping[str, Sequence[Any]]:
        """The tables by name."""
        return {"statistics": self.statistics, "gaps": self.gaps, "counts": self.counts}

    def statistic(self, name: str, group: str = OVERALL, grouping: str | None = None) -> StatisticRecord:
        """Return one statistic of a group, by default of everybody; the first that fits."""
        for record in self.statistics:
            if (record.statistic, record.group) == (name, group) and grouping in (None, record.grouping):
                return record
        raise KeyError(f"there is no {name!r} of {group!r}")

    def section(self) -> Section:
        """Return the agreement part of a report."""
        from evenhand.audits.agreement.section import agreement_section

        return agreement_section(self)

    def plot(self, grouping: str | None = None) -> Any:
        """Return the chart of the statistics by group, by default of the first grouping."""
        import altair as alt

        from evenhand.audits.agreement.charts import group_panels

        chosen = grouping or next((r.grouping for r in self.statistics if r.grouping is not None), None)
        return alt.concat(*group_panels(self, chosen), columns=2)
