"""The result of the disagreement audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.audits.disagreement.records import (
    CriticRecord,
    GapRecord,
    PlanRecord,
    RateRecord,
    StakeholderRecord,
    TruthRecord,
)
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.result import Result
from evenhand.core.sections import Section
from evenhand.errors import require_choice


@dataclass(frozen=True, repr=False)
class DisagreementResult(Result):
    """Six notions of fairness as the people who answered see them: rates, gaps, critics one by one, stakeholders.

    Parameters
    ----------
    gaps, rates, critics, stakeholders, plan, truth : the tables, as records.
    labels : the labels, lowest first where they have an order.
    hash : SHA-256 of the answers that the numbers were computed from.
    """

    audit: ClassVar[str] = "disagreement"
    title: ClassVar[str] = "Disagreement"
    question: ClassVar[str] = "What do the people affected think, when all they can say is “I agree” or “I disagree”?"
    main_table: ClassVar[str] = "gaps"

    spec: DisagreementSpec
    gaps: tuple[GapRecord, ...]
    rates: tuple[RateRecord, ...]
    critics: tuple[CriticRecord, ...]
    stakeholders: tuple[StakeholderRecord, ...]
    plan: tuple[PlanRecord, ...]
    truth: tuple[TruthRecord, ...]
    labels: tuple[str, ...]
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold."""
        return {**super().to_dict(), "labels": list(self.labels), "hash": self.hash}

    @property
    def tables(self) -> Mapping[str, Sequence[Any]]:
        """The tables by name."""
        return {
            "gaps": self.gaps,
            "rates": self.rates,
            "critics": self.critics,
            "stakeholders": self.stakeholders,
            "plan": self.plan,
            "truth": self.truth,
        }

    def section(self) -> Section:
        """Return the disagreement part of a report."""
        from evenhand.audits.disagreement.section import disagreement_section

        return disagreement_section(self)

    def plot(self, grouping: str | None = None) -> Any:
        """Return the chart of the gaps, by default of the first grouping."""
        import altair as alt

        from evenhand.audits.disagreement.charts import gap_panels

        known = list(dict.fromkeys(gap.grouping for gap in self.gaps))
        chosen = grouping or known[0]
        require_choice("grouping", chosen, known)
        return alt.concat(*gap_panels(self, [chosen]), columns=1)
