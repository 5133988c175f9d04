"""The result of a study's analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.core.result import Result
from evenhand.core.sections import DisplayTable, Section
from evenhand.errors import ConfigError
from evenhand.study.analysis.records import BonusRecord, EstimateRecord, FactorRecord
from evenhand.study.analysis.spec import AnalysisSpec


@dataclass(frozen=True, repr=False)
class StudyResult(Result):
    """Correlations, their comparison, regressions, factors and truth serum, as published and by people.

    Parameters
    ----------
    correlations, comparisons, regressions, factors, bonus : the tables, as records.
    conditions : the conditions, in order.
    people, rows : how many were analysed.
    """

    audit: ClassVar[str] = "study"
    title: ClassVar[str] = "Human study"
    question: ClassVar[str] = "Do people look at the trajectory or at the aggregate when they judge who is alike?"
    main_table: ClassVar[str] = "comparisons"

    spec: AnalysisSpec
    correlations: tuple[EstimateRecord, ...]
    comparisons: tuple[EstimateRecord, ...]
    regressions: tuple[EstimateRecord, ...]
    factors: tuple[FactorRecord, ...]
    bonus: tuple[BonusRecord, ...]
    conditions: tuple[str, ...]
    people: int
    rows: int

    @property
    def tables(self) -> Mapping[str, Sequence[Any]]:
        """The tables by name."""
        return {
            "correlations": self.correlations,
            "comparisons": self.comparisons,
            "regressions": self.regressions,
            "factors": self.factors,
            "bonus": self.bonus,
        }

    @property
    def weights(self) -> dict[str, float]:
        """The weight of effort in each condition, for `eh.effort(weights=[...])`; undefined ones are left out."""
        return {
            one.condition: one.value
            for one in self.regressions
            if one.term == "weight" and one.method == "published" and one.value is not None
        }

    def estimate(
        self,
        table: str,
        term: str,
        *,
        method: str,
        condition: str | None = None,
        target: str | None = None,
        model: str = "condition",
    ) -> EstimateRecord:
        """Return one record of the tables `correlations`, `comparisons` or `regressions`."""
        found: list[EstimateRecord] = [
            one
            for one in self.tables[table]
            if (one.term, one.method, one.model) == (term, method, model)
            and condition in (None, one.condition)
            and target in (None, one.target)
        ]
        if len(found) == 1:
            return found[0]
        what = f"{term!r} by {method!r} in {table!r}"
        raise ConfigError(
            f"{len(found)} records fit {what}; name the condition and target." if found else f"no {what}."
        )

    def paper_table(self, number: int) -> DisplayTable:
        """Return table 2, 3, 4 or 5 of the effort paper in its layout, with the clustered form beside the published."""
        from evenhand.study.analysis.tables import paper_tables

        found = paper_tables(self)
        if number not in found:
            raise ConfigError(f"`number` must be one of 2, 3, 4 and 5; got {number}.")
        return found[number]

    def section(self) -> Section:
        """Return the study's part of a report."""
        from evenhand.study.analysis.section import study_section

        return study_section(self)

    def plot(self) -> Any:
        """Return the chart of the correlations."""
        import altair as alt

        from evenhand.study.analysis.charts import correlation_panels

        return alt.concat(*correlation_panels(self), columns=2)
