"""The result of the effort audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from evenhand.audits.effort.records import (
    BinGroupRecord,
    BinRecord,
    CurveRecord,
    DifferenceRecord,
    IndividualRecord,
    PairRecord,
    PathRecord,
    PersonRecord,
    SpreadRecord,
)
from evenhand.audits.effort.robustness.explore import Robustness
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.result import Result
from evenhand.core.sections import Section
from evenhand.errors import ConfigError, require_choice
from evenhand.stats.types import FloatArray
from evenhand.table.frames import build_frame


@dataclass(frozen=True, repr=False)
class EffortResult(Result):
    """Individual and group fairness with their intervals, and each person's effort and aggregate.

    Parameters
    ----------
    individual, differences, curve, bins, bin_groups, spread, people, pairs, paths : the tables, as records.
    hash : SHA-256 of the trajectories, inertia, scores and weights that the numbers were computed from.
    robustness : the same under other choices, where that was asked for.
    effort, aggregate, ids : the people behind them, in one canonical order; None where they did not fit in memory.
    """

    audit: ClassVar[str] = "effort"
    title: ClassVar[str] = "Effort"
    question: ClassVar[str] = "Do people who worked equally hard from where they started get equal treatment?"
    main_table: ClassVar[str] = "individual"

    spec: EffortSpec
    individual: tuple[IndividualRecord, ...]
    differences: tuple[DifferenceRecord, ...]
    curve: tuple[CurveRecord, ...]
    bins: tuple[BinRecord, ...]
    bin_groups: tuple[BinGroupRecord, ...]
    spread: tuple[SpreadRecord, ...]
    people: tuple[PersonRecord, ...]
    pairs: tuple[PairRecord, ...]
    paths: tuple[PathRecord, ...]
    effort: FloatArray | None = field(repr=False)
    aggregate: FloatArray | None = field(repr=False)
    ids: tuple[str, ...] | None = field(repr=False)
    hash: str
    robustness: Robustness | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold."""
        return {**super().to_dict(), "hash": self.hash}

    @property
    def tables(self) -> Mapping[str, Sequence[Any]]:
        """The tables by name."""
        return {
            "individual": self.individual,
            "differences": self.differences,
            "curve": self.curve,
            "bins": self.bins,
            "bin_groups": self.bin_groups,
            "spread": self.spread,
            "people": self.people,
            "pairs": self.pairs,
            "paths": self.paths,
            "specifications": self.robustness.specifications if self.robustness is not None else (),
            "fairest": self.robustness.fairest if self.robustness is not None else (),
            "flips": self.robustness.flips if self.robustness is not None else (),
        }

    def columns(self) -> Any:
        """Return a frame with each person's id, effort and aggregate, to be joined to the data by that id."""
        if self.effort is None or self.aggregate is None:
            raise ConfigError("so many people were not read into memory; their effort and aggregate are not at hand.")
        if self.ids is None:
            raise ConfigError("effort can only be given back by an id; name the table's `id` column.")
        return build_frame({"id": list(self.ids), "effort": self.effort, "aggregate": self.aggregate}, self.backend)

    def section(self) -> Section:
        """Return the effort part of a report."""
        from evenhand.audits.effort.section import effort_section

        return effort_section(self)

    def plot(self, grouping: str | None = None) -> Any:
        """Return the chart of parity by effort, by default of the first grouping."""
        import altair as alt

        from evenhand.audits.effort.charts import parity_panels

        groupings = list(dict.fromkeys(record.grouping for record in self.bins))
        if not groupings:
            raise ConfigError("the table names no groups, so there is no parity to draw; give groups=['column', ...].")
        chosen = grouping or groupings[0]
        require_choice("grouping", chosen, groupings)
        return alt.concat(*parity_panels(self, [chosen]), columns=1)
