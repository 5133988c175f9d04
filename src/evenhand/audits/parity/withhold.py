"""What of a parity audit tells of few people: strata and score bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.withhold import Kept, Withholder, has_small

if TYPE_CHECKING:
    from evenhand.table.table import Table

_BINS = (5, 4, 3, 2)


class ParityWithholder(Withholder[ParitySpec]):
    """Strata and score bins are left out, or made coarser; counts by group, outcome and decision are never small."""

    by_decision: ClassVar[bool] = True

    def after(self, table: Table, spec: ParitySpec, least: int, *, is_entangled: bool) -> Kept:
        """Return the settings without small strata and score bins."""
        changed: dict[str, Any] = {}
        notes = []
        if spec.within and (is_entangled or _small_strata(table, spec.within, least)):
            changed["within"] = ()
            why = "" if is_entangled else ": some strata are too small"
            notes.append(f"Gaps within strata of {', '.join(spec.within)} are withheld{why}.")
        bins = None if is_entangled else _enough_bins(table, spec, least)
        if bins is not None and bins != spec.bins:
            changed["bins"] = bins
            notes.append(f"Calibration is shown in {bins} score bins in place of {spec.bins}.")
        scored = table.roles.outcome is not None and any(map(table.has_scores, table.models))
        if bins is None and scored:
            notes.append(f"Calibration is withheld{'' if is_entangled else ': some score bins hold too few people'}.")
        dropped = () if bins is not None else ("calibration",)
        return Kept(spec.model_copy(update=changed), {}, dropped, tuple(notes))


def _small_strata(table: Table, within: Sequence[str], least: int) -> bool:
    reduced = {model: table.counts(model, within) for model in table.models}
    return any(has_small(table, model, cells, cells.joint(within)[0], least) for model, cells in reduced.items())


def _enough_bins(table: Table, spec: ParitySpec, least: int) -> int | None:
    """Return the largest number of score bins in which no count is small; None where there is none."""
    scored = [model for model in table.models if table.has_scores(model)]
    if not scored or table.roles.outcome is None:
        return spec.bins
    for bins in (spec.bins, *(fewer for fewer in _BINS if fewer < spec.bins)):
        reduced = {model: table.score_cells(model, (), bins) for model in scored}
        if not any(has_small(table, model, cells, cells.codes["bin"], least) for model, cells in reduced.items()):
            return bins
    return None


WITHHOLD = ParityWithholder()
"""What the parity audit withholds."""
