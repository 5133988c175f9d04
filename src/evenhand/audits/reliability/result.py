"""The result of the reliability audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.audits.reliability.records import AttributionRecord, CurveRecord, GapRecord, ModelRecord
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.result import Result
from evenhand.core.sections import Section


@dataclass(frozen=True, repr=False)
class ReliabilityResult(Result):
    """Curves of reliability by group, the gaps between them, and what makes the gaps.

    Parameters
    ----------
    curves, gaps, attribution, models : the tables, as records.
    hash : SHA-256 of the features, groups and outcome that the numbers were computed from.
    """

    audit: ClassVar[str] = "reliability"
    title: ClassVar[str] = "Reliability"
    question: ClassVar[str] = "When the inputs contain mistakes, whose result suffers more?"
    main_table: ClassVar[str] = "gaps"

    spec: ReliabilitySpec
    curves: tuple[CurveRecord, ...]
    gaps: tuple[GapRecord, ...]
    attribution: tuple[AttributionRecord, ...]
    models: tuple[ModelRecord, ...]
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold."""
        return {**super().to_dict(), "hash": self.hash}

    @property
    def tables(self) -> Mapping[str, Sequence[Any]]:
        """The tables by name."""
        return {"curves": self.curves, "gaps": self.gaps, "attribution": self.attribution, "models": self.models}

    def curve(self, statistic: str, group: str, **where: str) -> tuple[CurveRecord, ...]:
        """Return one statistic of a group at all noise levels; `model`, `setting` or `grouping` pick among several."""
        return tuple(
            record
            for record in self.curves
            if (record.statistic, record.group) == (statistic, group)
            and all(getattr(record, name) == value for name, value in where.items())
        )

    def gap(self, statistic: str, group: str | None = None, **where: str) -> GapRecord:
        """Return a gap averaged over noise levels, by default to the reference group; the first that fits."""
        where = {"against": "reference", **where}
        for record in self.gaps:
            fits = record.noise_level is None and record.statistic == statistic and group in (None, record.group)
            if fits and all(getattr(record, name) == value for name, value in where.items()):
                return record
        raise KeyError(f"there is no gap of {statistic!r} for {group!r} {where}")

    def section(self) -> Section:
        """Return the reliability part of a report."""
        from evenhand.audits.reliability.section import reliability_section

        return reliability_section(self)

    def plot(self, grouping: str | None = None) -> Any:
        """Return the curves of the first model and setting, by default of the first grouping."""
        import altair as alt

        from evenhand.audits.reliability.charts import curve_panels, places

        chosen = next(place for place in places(self) if grouping in (None, place[2]))
        return alt.concat(*curve_panels(self, chosen), columns=2)
