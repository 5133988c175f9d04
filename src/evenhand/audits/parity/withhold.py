"""Rules for small counts in a parity audit: strata and score bins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from evenhand.audits.parity.messages import say
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.withhold import AllowedSettings, Withholder, has_small
from evenhand.messages import Message

if TYPE_CHECKING:
    from evenhand.table.table import Table

_BINS = (5, 4, 3, 2)


class ParityWithholder(Withholder[ParitySpec]):
    """Withholder that drops or coarsens strata and score bins; other counts of the audit are never small."""

    by_decision: ClassVar[bool] = True

    def after(self, table: Table, spec: ParitySpec, least: int, *, is_entangled: bool) -> AllowedSettings:
        """Return the settings without small strata and score bins."""
        changed: dict[str, Any] = {}
        notes = []
        if spec.within and (is_entangled or _small_strata(table, spec.within, least)):
            changed["within"] = ()
            notes.append(say("strata_withheld" if is_entangled else "small_strata_withheld", factors=spec.within))
        of_numbers = any(map(table.has_numbers, table.models))  # quantile bins have equal numbers of people
        bins = None if is_entangled or of_numbers else _enough_bins(table, spec, least)
        changed |= {} if bins is None else {"bins": bins}
        notes += _bin_notes(table, spec, bins, is_entangled=is_entangled)
        dropped = () if bins is not None else ("calibration",)
        return AllowedSettings(spec.model_copy(update=changed), {}, dropped, tuple(notes))


def _bin_notes(table: Table, spec: ParitySpec, bins: int | None, *, is_entangled: bool) -> Iterator[Message]:
    """Yield notes on omitted calibration: fewer score bins, or no calibration at all."""
    binned = (table.has_scores(model) or table.has_numbers(model) for model in table.models)
    scored = table.roles.outcome is not None and any(binned)
    if bins is not None and bins != spec.bins:
        yield say("fewer_bins", bins=bins, asked=spec.bins)
    elif bins is None and scored:
        yield say("calibration_withheld" if is_entangled else "small_bins_withheld")


def _small_strata(table: Table, within: Sequence[str], least: int) -> bool:
    reduced = {model: table.counts(model, within) for model in table.models}
    return any(has_small(table, model, cells, cells.joint(within)[0], least) for model, cells in reduced.items())


def _enough_bins(table: Table, spec: ParitySpec, least: int) -> int | None:
    """Return the largest number of score bins without a small count, or None."""
    scored = [model for model in table.models if table.has_scores(model)]
    if not scored or table.roles.outcome is None:
        return spec.bins
    for bins in (spec.bins, *(fewer for fewer in _BINS if fewer < spec.bins)):
        reduced = {model: table.score_cells(model, (), bins) for model in scored}
        if not any(has_small(table, model, cells, cells.codes["bin"], least) for model, cells in reduced.items()):
            return bins
    return None


WITHHOLD = ParityWithholder()
"""The parity audit's rules for small counts."""
