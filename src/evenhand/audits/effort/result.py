"""The result of the effort audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from evenhand.audits.effort.records import (
    BinGroupRecord,
    BinRecord,
    DifferenceRecord,
    IndividualRecord,
    PairRecord,
    PersonRecord,
)
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.result import Result
from evenhand.core.sections import Section
from evenhand.stats.types import FloatArray
from evenhand.table.cells import Cells
from evenhand.table.frames import build_frame


@dataclass(frozen=True, repr=False)
class EffortResult(Result):
    """Individual and group fairness with their intervals, and each person's effort and aggregate.

    Parameters
    ----------
    individual, differences, bins, bin_groups, people, pairs : the tables, as records.
    effort, aggregate, ids, groups : the people behind them, in one canonical order.
    """

    audit: ClassVar[str] = "effort"
    title: ClassVar[str] = "Effort"
    question: ClassVar[str] = "Do people who worked equally hard from where they started get equal treatment?"
    main_table: ClassVar[str] = "individual"

    spec: EffortSpec
    individual: tuple[IndividualRecord, ...]
    differences: tuple[DifferenceRecord, ...]
    bins: tuple[BinRecord, ...]
    bin_groups: tuple[BinGroupRecord, ...]
    people: tuple[PersonRecord, ...]
    pairs: tuple[PairRecord, ...]
    effort: FloatArray = field(repr=False)
    aggregate: FloatArray = field(repr=False)
    ids: tuple[str, ...] | None = field(repr=False)
    groups: Cells = field(repr=False)

    @property
    def tables(self) -> Mapping[str, Sequence[Any]]:
        """The tables by name."""
        return {
            "individual": self.individual,
            "differences": self.differences,
            "bins": self.bins,
            "bin_groups": self.bin_groups,
            "people": self.people,
            "pairs": self.pairs,
        }

    def columns(self) -> Any:
        """Return a frame with each person's id (where the table has one), effort and aggregate, to be written back."""
        ids = {"id": list(self.ids)} if self.ids is not None else {}
        return build_frame({**ids, "effort": self.effort, "aggregate": self.aggregate}, self.backend)

    def section(self) -> Section:
        """Return the effort part of a report."""
        from evenhand.audits.effort.section import effort_section

        return effort_section(self)

    def plot(self, grouping: str | None = None) -> Any:
        """Return the chart of parity by effort, by default of the first grouping."""
        import altair as alt

        from evenhand.audits.effort.charts import parity_panels

        chosen = grouping or next(record.grouping for record in self.bins)
        return alt.concat(*parity_panels(self, [chosen]), columns=1)
