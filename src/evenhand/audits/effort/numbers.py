"""What was compared, and the estimates that follow: limits at any confidence, without comparing anything again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

from evenhand.audits.effort.bins import EffortBins, bin_records, group_bins
from evenhand.audits.effort.estimate import Differences, Fairness, individual_values, model_differences, model_gaps
from evenhand.audits.effort.gather import People
from evenhand.audits.effort.large_table import LargeTable
from evenhand.audits.effort.result import EffortGap, EffortValue
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.estimates import Estimate
from evenhand.table.table import Table

Number = EffortValue | EffortGap
R = TypeVar("R", bound=Number)


@dataclass(frozen=True, eq=False, kw_only=True)
class Numbers:
    """Pairs of people, models and groups, compared.

    Parameters
    ----------
    fairness : individual fairness of every model and weight.
    differences : how two models differ in it.
    bins : the groups in bins of effort, of every model and grouping.
    """

    fairness: Fairness
    differences: Differences
    bins: tuple[EffortBins, ...]

    @classmethod
    def of(cls, table: Table, subjects: People | LargeTable, fairness: Fairness, spec: EffortSpec) -> Numbers:
        """Compare models and groups."""
        bins = tuple(group_bins(table, subjects, spec))
        return cls(fairness=fairness, differences=model_differences(fairness), bins=bins)

    def without_people(self) -> Numbers:
        """Return the same without what is known of single people, which limits do not need."""
        light = {
            place: replace(found, row_means=None, survey_weight=None, people=None)
            for place, found in self.fairness.items()
        }
        return replace(self, fairness=light)

    def records(self, spec: EffortSpec) -> list[Number]:
        """Return values and gaps with limits at the confidence of the settings."""
        groups = [bin_records(bins, spec) for bins in self.bins]
        return [
            *individual_values(self.fairness, spec.confidence),
            *(value for values, _ in groups for value in values),
            *model_gaps(self.fairness, self.differences, spec.confidence),
            *(gap for _, gaps in groups for gap in gaps),
        ]


def estimates_of(records_at: Callable[[float], Iterable[Number]], confidence: float) -> list[Estimate[Number]]:
    """Return the records at one confidence as estimates, whose limits at any other are worked out when asked for.

    Parameters
    ----------
    records_at : returns all records at a confidence; it is called once for each confidence.
    confidence : that of the audit.
    """

    @cache
    def by_place(level: float) -> dict[tuple[object, ...], Number]:
        return {_place(record): record for record in records_at(level)}

    def limits(place: tuple[object, ...]) -> Callable[[float], Number]:
        return lambda level: by_place(level)[place]

    return [Estimate(record, limits(place)) for place, record in by_place(confidence).items()]


_PLACE = ("metric", "model", "model_reference", "grouping", "group", "reference", "weight", "bin_low", "kind")


def _place(record: Number) -> tuple[object, ...]:
    return type(record), *(getattr(record, name, None) for name in _PLACE)


def of_kind(estimates: Iterable[Estimate[Number]], kind: type[R]) -> Iterator[Estimate[R]]:
    """Yield the estimates of values, or those of gaps."""
    for estimate in estimates:
        if isinstance(estimate.record, kind):
            yield estimate  # type: ignore[misc]
