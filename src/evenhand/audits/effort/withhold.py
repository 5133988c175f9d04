"""Rules for small counts in an effort audit: effort bins, reversed pairs, and the spread of effort."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from evenhand.audits.effort.messages import say
from evenhand.audits.effort.result import EffortGap
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.records import Record
from evenhand.core.withhold import AllowedSettings, R, Withholder
from evenhand.messages import Message

if TYPE_CHECKING:
    from evenhand.table.table import Table

_INERTIA = "(inertia)"
_PAIRS = ("reversed_pairs", "concordant_pairs", "reversal_shortfall")


class EffortWithholder(Withholder[EffortSpec]):
    """Withholder with disjoint effort bins; results under other choices, with other bins, are never published."""

    bins: ClassVar[str] = "effort bins"
    from_all_bins: ClassVar[str] = "the spread of effort"
    of_some_people: ClassVar[tuple[str, ...]] = ("effort bins",)
    whole: ClassVar[tuple[str, ...]] = ("curve", "specifications", "fairest", "flips")
    places: ClassVar[tuple[str, ...]] = ("bin_low",)

    def part(self, table: str, record: Record) -> str:
        """Return the part to which a record belongs."""
        if table == "direction" or getattr(record, "metric", "") in _PAIRS:
            return "reversed pairs"
        if table == "spread":
            return self.from_all_bins
        return self.bins if self.bin(record) is not None else ""

    def bin(self, record: Record) -> float | None:
        """Return the lower end of the record's effort bin, or None."""
        low: float | None = getattr(record, "bin_low", None)
        return low

    def coarser(self, record: R) -> R:
        """Return a gap at equal effort with all people of both groups, to hide the few without a counterpart."""
        if isinstance(record, EffortGap) and record.apart is not None:
            return replace(record, n=record.n + record.apart, apart=None, n_group=None)
        return record

    def before(self, table: Table, spec: EffortSpec, touched: Collection[str]) -> AllowedSettings:
        """Return the settings without other choices; rates of hidden groups are replaced by a column of inertia."""
        notes: tuple[Message, ...] = ()
        if spec.robustness:
            spec = spec.model_copy(update={"robustness": None})
            notes = (say("other_choices_withheld"),)
        rates, by = spec.inertia, spec.inertia_by or "race"
        from_groups = isinstance(rates, dict) or (isinstance(rates, str) and rates not in table.kinds)
        if not from_groups or by not in touched:
            return AllowedSettings(spec, notes=notes)
        from evenhand.audits.effort.gather import group_rates

        column, rates_by_group = group_rates(table, spec)
        published_spec = spec.model_copy(update={"inertia": _INERTIA, "inertia_by": None})
        return AllowedSettings(published_spec, {_INERTIA: table.by_group(column, rates_by_group)}, notes=notes)

    def reported_spec(self, spec: EffortSpec, requested: EffortSpec) -> EffortSpec:
        """Return the settings with the requested rates of inertia."""
        if spec.inertia != _INERTIA:
            return spec
        return spec.model_copy(update={name: getattr(requested, name) for name in ("inertia", "inertia_by")})


WITHHOLD = EffortWithholder()
"""The effort audit's rules for small counts."""
