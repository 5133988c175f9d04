"""The result of the improvability audit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from evenhand.audits.improvability.records import (
    CandidateRecord,
    CoefficientRecord,
    CurveRecord,
    DecisionRecord,
    DeltaRecord,
    PowerRecord,
    ReasonRecord,
    SampleSizeRecord,
    SplitRecord,
    ValueRecord,
)
from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.audits.improvability.splits import Inputs, Trials
from evenhand.audits.improvability.tables import JUDGED
from evenhand.core.result import Result
from evenhand.core.sections import Section


@dataclass(frozen=True, repr=False)
class ImprovabilityResult(Result):
    """The tests of all candidates on all splits, the decisions, and the largest margins.

    Parameters
    ----------
    splits, decision, deltas, curves, values, candidates, coefficients, power, sample_sizes, reasons : the tables.
    hash : SHA-256 of the rows that the numbers were computed from.
    inputs, trials : the rows and trials behind the tables.
    """

    audit: ClassVar[str] = "improvability"
    title: ClassVar[str] = "Improvability"
    question: ClassVar[str] = "Could the decisions be fairer without being worse at their job?"
    main_table: ClassVar[str] = "decision"

    spec: ImprovabilitySpec
    splits: tuple[SplitRecord, ...]
    decision: tuple[DecisionRecord, ...]
    deltas: tuple[DeltaRecord, ...]
    curves: tuple[CurveRecord, ...]
    values: tuple[ValueRecord, ...]
    candidates: tuple[CandidateRecord, ...]
    coefficients: tuple[CoefficientRecord, ...]
    power: tuple[PowerRecord, ...]
    sample_sizes: tuple[SampleSizeRecord, ...]
    reasons: tuple[ReasonRecord, ...]
    hash: str
    inputs: Inputs = field(repr=False)
    trials: Trials = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold."""
        return {**super().to_dict(), "hash": self.hash}

    @property
    def tables(self) -> Mapping[str, Sequence[Any]]:
        """The tables by name."""
        names = (
            "splits",
            "decision",
            "deltas",
            "curves",
            "values",
            "candidates",
            "coefficients",
            "power",
            "sample_sizes",
            "reasons",
        )
        return {name: getattr(self, name) for name in names}

    @property
    def established(self) -> tuple[DecisionRecord, ...]:
        """The decisions that show an improvement at the smallest margin asked for, with all candidates allowed for."""
        return tuple(one for one in self.rejections if one.established)

    @property
    def rejections(self) -> tuple[DecisionRecord, ...]:
        """The candidates whose own test rejects at the smallest margin asked for; the signed one, which is valid."""
        least = min(self.spec.test.margins)
        own = [one for one in self.decision if (one.test, one.target, one.delta) == (JUDGED, "fairness", least)]
        return tuple(one for one in own if one.rejected)

    def section(self) -> Section:
        """Return the improvability part of a report."""
        from evenhand.audits.improvability.section import improvability_section

        return improvability_section(self)

    def plot(self) -> Any:
        """Return the chart of accuracy by group: status quo and candidates with the 45-degree line."""
        from evenhand.audits.improvability.charts import value_panel

        return value_panel(self)

    def export(
        self, folder: str | os.PathLike[str], candidate: str | None = None, split: int | None = None
    ) -> list[Path]:
        """Write candidates into a folder, so that others can check and use them.

        Parameters
        ----------
        folder
            Where to write; it is made where it does not exist.
        candidate
            Which one; by default all.
        split
            The candidate of which split, from 1; by default the one whose p-value is the median.

        Returns
        -------
        list of Path
            For each candidate a JSON file with what it is (coefficients, features, capacity or threshold, and why a
            format could not be written), a CSV file with its decisions on the test rows of every split, and where
            possible a skops and an ONNX file.
        """
        from evenhand.audits.improvability.export import export_candidates

        return export_candidates(self, Path(folder), candidate, split)
