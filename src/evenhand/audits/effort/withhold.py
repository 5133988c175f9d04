"""What of an effort audit tells of few people: effort bins, reversed pairs, the spread of effort."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar

from evenhand.audits.effort.messages import say
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.records import Record
from evenhand.core.withhold import Kept, Withholder
from evenhand.messages import Message

if TYPE_CHECKING:
    from evenhand.table.table import Table

_INERTIA = "(inertia)"
_PAIRS = ("reversed_pairs", "concordant_pairs", "reversal_shortfall")


class EffortWithholder(Withholder[EffortSpec]):
    """Effort bins do not overlap; other choices, which have bins of their own, are not told at all."""

    bins: ClassVar[str] = "effort bins"
    from_bins: ClassVar[str] = "the spread of effort"
    not_of_all: ClassVar[tuple[str, ...]] = ("effort bins",)
    whole: ClassVar[tuple[str, ...]] = ("curve", "specifications", "fairest", "flips")
    places: ClassVar[tuple[str, ...]] = ("bin_low",)

    def part(self, table: str, record: Record) -> str:
        """Return the part that a record tells of."""
        if table == "direction" or getattr(record, "metric", "") in _PAIRS:
            return "reversed pairs"
        if table == "spread":
            return self.from_bins
        return self.bins if self.bin(record) is not None else ""

    def bin(self, record: Record) -> float | None:
        """Return the lower end of the effort bin."""
        low: float | None = getattr(record, "bin_low", None)
        return low

    def before(self, table: Table, spec: EffortSpec, touched: Collection[str]) -> Kept:
        """Return the settings without other choices; where rates are those of hidden groups, inertia as a column."""
        notes: tuple[Message, ...] = ()
        if spec.robustness:
            spec = spec.model_copy(update={"robustness": None})
            notes = (say("other_choices_withheld"),)
        rates, by = spec.inertia, spec.inertia_by or "race"
        from_groups = isinstance(rates, dict) or (isinstance(rates, str) and rates not in table.kinds)
        if not from_groups or by not in touched:
            return Kept(spec, notes=notes)
        from evenhand.audits.effort.gather import group_rates

        column, known = group_rates(table, spec)
        own = spec.model_copy(update={"inertia": _INERTIA, "inertia_by": None})
        return Kept(own, {_INERTIA: table.by_group(column, known)}, notes=notes)

    def as_asked(self, spec: EffortSpec, asked: EffortSpec) -> EffortSpec:
        """Return the settings with the rates of inertia as they were asked for."""
        if spec.inertia != _INERTIA:
            return spec
        return spec.model_copy(update={name: getattr(asked, name) for name in ("inertia", "inertia_by")})


WITHHOLD = EffortWithholder()
"""What the effort audit withholds."""
