"""Verdicts of the parity audit under other shares of groups; the formulas are in `stats/weighted.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from evenhand.audits.parity.gather import GroupCells
from evenhand.audits.parity.messages import say
from evenhand.audits.parity.metrics import METRICS
from evenhand.core.capabilities import Mix, threshold_of
from evenhand.core.findings import Finding
from evenhand.core.records import OK, STANDARDISED
from evenhand.core.thresholds import Verdict, judge
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.stats.weighted import Judged, Moments, Weighted, gap_to_everybody, largest_gap, value_with_limits
from evenhand.table.keys import column_key

if TYPE_CHECKING:
    from evenhand.audits.parity.result import ParityResult
    from evenhand.audits.parity.spec import ParitySpec
    from evenhand.table.table import Table


@dataclass(frozen=True)
class ParityReweighter:
    """Computes verdicts of the parity audit for reweighted people."""

    table: Table
    result: ParityResult
    spec: ParitySpec
    by_counts: ClassVar[bool] = True

    def why_not(self, finding: Finding) -> Message | None:
        """Return the reason why a verdict cannot be recomputed, or None."""
        metric = self.result.spec.known_metrics().get(finding.metric)
        if finding.value is None:
            return shared("no_number_yet")
        if metric is None or metric.of_number is not None or metric.method not in ("rate", "mean"):
            return say("no_mean_to_weight", metric=finding.metric)
        if finding.stratum == STANDARDISED:
            return say("strata_shares_change")
        return None

    def depends_on(self, finding: Finding, column: str) -> bool:
        """Return whether a column's shares matter; the finding's own columns matter only against all people."""
        return finding.against == "overall" or column not in self.table.groupings[str(finding.grouping)]

    def judged(self, finding: Finding, mix: Mix) -> tuple[Judged, Verdict]:
        """Return the reweighted value with its limits, and its verdict."""
        sums, labels = self._sums(finding, mix)
        confidence = self.result.spec.confidence
        bounds = None
        if METRICS[finding.metric].method == "mean":
            score_range = self.table.prediction(str(finding.model)).range
            bounds = score_range if finding.metric == "mean_score" else (0.0, 1.0)
        if finding.against == "overall":
            sums = sums.against_others(labels.index(str(finding.group)))
        else:
            sums = sums.select(self._compared(finding, labels))
        values = Weighted.from_sums(sums, mix.weight, bounds, mix.spread)
        if finding.kind is None:
            judged = value_with_limits(values, confidence)
        elif finding.against == "overall":
            judged = gap_to_everybody(values, finding.kind, confidence)
        else:
            judged = largest_gap(values, finding.kind, confidence)
        return judged, judge(threshold_of(finding), *judged)

    def _compared(self, finding: Finding, labels: tuple[str, ...]) -> list[int]:
        """Return the positions of the compared groups: one, two, or all groups of a worst pair."""
        if finding.kind is None:
            return [labels.index(str(finding.group))]
        if finding.against == "reference":
            return [labels.index(str(finding.group)), labels.index(str(finding.reference))]
        coordinates = {name: getattr(finding, name) for name in ("model", "grouping", "metric", "stratum")}
        return [labels.index(value.group) for value in self.result.rows("values", **coordinates) if value.status == OK]

    def _sums(self, finding: Finding, mix: Mix) -> tuple[Moments, tuple[str, ...]]:
        """Return a metric's sums by group and by value of the other column, with the groups' labels."""
        model, spec, metric = str(finding.model), self.result.spec, METRICS[finding.metric]
        scored = self.table.has_scores(model)
        cells = (
            self.table.score_cells(model, spec.within, spec.bins) if scored else self.table.counts(model, spec.within)
        )
        if finding.stratum is not None:
            strata, names = cells.joint(spec.within)
            cells = cells.where(strata == names.index(finding.stratum))
        group_cells = GroupCells.build(cells, model, self.table.groupings[str(finding.grouping)], [mix.column])
        above, below = metric.coefficients()
        parts = (
            np.einsum("pgyd,yd->gp", group_cells.first[..., 0], below),
            np.einsum("pgydi,ydi->gp", group_cells.first, above),
            np.einsum("ydi,pgydij,ydj->gp", above, group_cells.second, above),
        )
        every = self.table.cells.labels[column_key(mix.column)]
        positions = [every.index(label) for label in group_cells.strata]
        whole = [np.zeros((len(group_cells.labels), len(every))) for _ in parts]
        for target, part in zip(whole, parts, strict=True):
            target[:, positions] = part
        return Moments(*whole), group_cells.labels
