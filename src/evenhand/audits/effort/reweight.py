"""Verdicts of the effort audit under other shares of groups; the formulas are in `stats/weighted.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from evenhand.audits.effort.gather import EffortPeople, gather
from evenhand.audits.effort.imputation import is_uncertain
from evenhand.audits.effort.large_table import MOST_IN_MEMORY
from evenhand.audits.effort.messages import say
from evenhand.core.capabilities import Mix, threshold_of
from evenhand.core.findings import Finding
from evenhand.core.thresholds import Verdict, judge
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.stats.effort import effort_bins
from evenhand.stats.intervals import bonferroni
from evenhand.stats.pairs import individual_fairness
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.stats.weighted import Judged, Moments, Weighted, largest_gap, share_error
from evenhand.table.keys import column_key
from evenhand.table.roles import MISSING

if TYPE_CHECKING:
    from evenhand.audits.effort.result import EffortResult
    from evenhand.audits.effort.spec import EffortSpec
    from evenhand.table.table import Table


@dataclass(frozen=True)
class EffortReweighter:
    """Computes verdicts on individual fairness and parity by effort for reweighted people."""

    table: Table
    result: EffortResult
    spec: EffortSpec
    by_counts: ClassVar[bool] = False

    def why_not(self, finding: Finding) -> Message | None:
        """Return the reason why a verdict cannot be recomputed, or None."""
        if finding.value is None:
            return shared("no_number_yet")
        if finding.metric not in ("eaif", "eagf") or finding.against == "model":
            return say("no_reweighted_limits", metric=finding.metric)
        if self.table.rows > MOST_IN_MEMORY:
            return say("pairs_stay_in_engine", most=MOST_IN_MEMORY)
        if is_uncertain(self.spec):
            return say("uncertain_inertia_not_reweighted")
        return None

    def depends_on(self, finding: Finding, column: str) -> bool:
        """Return whether a column's shares matter; for individual fairness, all columns matter."""
        return finding.grouping is None or column not in self.table.groupings[finding.grouping]

    def judged(self, finding: Finding, mix: Mix) -> tuple[Judged, Verdict]:
        """Return the reweighted value with its limits, and its verdict."""
        threshold = threshold_of(finding)
        if finding.metric == "eaif":
            fairness = self._individual(finding, mix)
            return fairness, judge(threshold, *fairness)
        bins = list(self._bins(finding, mix))
        verdicts = [judge(threshold, *joint) for _, joint in bins]
        if "does_not_meet" in verdicts:
            broken = [joint for (_, joint), verdict in zip(bins, verdicts, strict=True) if verdict == "does_not_meet"]
            return min(broken), "does_not_meet"
        own_parity = min(alone for alone, _ in bins)
        met = all(judge(threshold, *alone) == "meets" for alone, _ in bins)
        return (own_parity, "meets") if met else (min(joint for _, joint in bins), "insufficient_evidence")

    @cached_property
    def _people(self) -> EffortPeople:
        return gather(self.table, self.spec)

    def _individual(self, finding: Finding, mix: Mix) -> Judged:
        """Return individual fairness over all pairs, with weights for both people."""
        people = self._people
        parts = people.rows.groups.codes[column_key(mix.column)]
        weight = mix.weight[parts]
        fairness = individual_fairness(
            *people.numbers(str(finding.model)),
            float(finding.coordinates["weight"]),
            survey_weight=weight,
            method=self.spec.method,
            confidence=self.spec.confidence,
            distance=people.distance,
        )
        if mix.spread is None:
            return fairness.value, fairness.low, fairness.high
        if fairness.row_means is None:
            return fairness.value, float("nan"), float("nan")
        # The slope of a mean over pairs in the weight of a part: twice the sum of (h - U) over the people of the part.
        apart = np.zeros(len(weight))
        apart[weight > 0] = fairness.row_means - fairness.value
        slope = 2 * np.bincount(parts, weights=apart, minlength=len(mix.weight)) / weight.sum()
        extra = share_error(mix.spread, slope, self.spec.confidence)
        low, high = np.hypot([fairness.value - fairness.low, fairness.high - fairness.value], extra).tolist()
        return fairness.value, fairness.value - low, min(fairness.value + high, 1.0)

    def _bins(self, finding: Finding, mix: Mix) -> Iterator[tuple[Judged, Judged]]:
        """Yield the parity of every bin with compared groups, with its own limits and with limits for all bins."""
        people, model = self._people, str(finding.model)
        groups, labels = people.rows.groups.joint(self.table.groupings[str(finding.grouping)])
        parts, score = people.rows.groups.codes[column_key(mix.column)], people.compared(model)
        named = np.array([label != MISSING for label in labels])
        bins = effort_bins(people.effort, self.spec.width)
        shape = len(labels), len(mix.weight)
        compared = []
        for number in np.unique(bins).tolist():
            sums = _sums_of(bins == number, groups * shape[1] + parts, score, shape)
            compared_groups = np.flatnonzero(named & (sums.n.sum(axis=1) >= self.spec.min_count)).tolist()
            if len(compared_groups) > 1:
                compared.append(Weighted.from_sums(sums.select(compared_groups), mix.weight, (0.0, 1.0), mix.spread))
        joint = bonferroni(self.spec.confidence, max(len(compared), 1))
        for values in compared:
            yield largest_gap(values, "ratio", self.spec.confidence), largest_gap(values, "ratio", joint)


def _sums_of(members: BoolArray, position: IntArray, score: FloatArray, shape: tuple[int, int]) -> Moments:
    """Return the sums of scores and of squared scores by group and part, over some people."""
    size = shape[0] * shape[1]
    each: list[FloatArray | None] = [None, score[members], score[members] ** 2]
    parts = (np.bincount(position[members], weights=weight, minlength=size) for weight in each)
    return Moments(*(np.asarray(part, dtype=np.float64).reshape(shape) for part in parts))
