"""Comparisons of people, models and groups, and estimates with limits at any confidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evenhand.audits.effort.bins import EffortBins, bin_records, group_bins
from evenhand.audits.effort.equal_effort import EqualEffort, compare_groups
from evenhand.audits.effort.estimate import Differences, individual_values, model_differences, model_gaps
from evenhand.audits.effort.gather import EffortPeople
from evenhand.audits.effort.large_table import LargeTable
from evenhand.audits.effort.result import EffortGap, EffortValue
from evenhand.audits.effort.spec import EffortSpec
from evenhand.stats.pairs import FairnessOfModels
from evenhand.table.table import Table

Number = EffortValue | EffortGap


@dataclass(frozen=True, eq=False, kw_only=True)
class Numbers:
    """The comparisons of pairs of people, models and groups.

    Parameters
    ----------
    fairness : individual fairness of every model and weight.
    differences : the differences in individual fairness between models.
    groups, bins : the groups at equal effort, and in bins of effort, of every model and grouping.
    """

    fairness: FairnessOfModels
    differences: Differences
    groups: tuple[EqualEffort, ...]
    bins: tuple[EffortBins, ...]

    @classmethod
    def of(
        cls, table: Table, subjects: EffortPeople | LargeTable, fairness: FairnessOfModels, spec: EffortSpec
    ) -> Numbers:
        """Compare models and groups."""
        bins = tuple(group_bins(table, subjects, spec))
        return cls(
            fairness=fairness,
            differences=model_differences(fairness),
            groups=tuple(compare_groups(table, subjects, bins, spec)),
            bins=bins,
        )

    def without_people(self) -> Numbers:
        """Return a copy without data on individual people, which limits do not need."""
        return replace(self, fairness=self.fairness.without_people())

    def records(self, spec: EffortSpec) -> list[Number]:
        """Return values and gaps with limits at the confidence of the settings."""
        by_bin = [bin_records(bins, spec) for bins in self.bins]
        return [
            *individual_values(self.fairness, spec.confidence),
            *(value for values, _ in by_bin for value in values),
            *model_gaps(self.fairness, self.differences, spec.confidence),
            *(group.record(spec.confidence, spec.min_count) for group in self.groups),
            *(gap for _, gaps in by_bin for gap in gaps),
        ]


_KEY = ("metric", "model", "model_reference", "grouping", "group", "reference", "weight", "bin_low", "kind")


def number_key(record: Number) -> tuple[object, ...]:
    """Return the key of a record, without its numbers."""
    return type(record), *(getattr(record, name, None) for name in _KEY)
