"""Rules for small counts in a reliability audit: each metric, by risk level, and moved people."""

from __future__ import annotations

from typing import ClassVar

from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.records import Record
from evenhand.core.withhold import Withholder
from evenhand.messages import Message


class ReliabilityWithholder(Withholder[ReliabilitySpec]):
    """Withholder that treats each metric as a separate part."""

    places: ClassVar[tuple[str, ...]] = ("setting", "noise_level")
    balances: ClassVar[tuple[str, ...]] = ("prevalence_index", "bias_index")

    def part(self, table: str, record: Record) -> str | Message:
        """Return the part to which a record belongs."""
        if table in ("models", "mitigation"):
            return table
        part: str | Message = getattr(record, "metric", "")
        if getattr(record, "risk_level", None) is not None:
            part = say("part_by_risk_level", part=part)
        return say("part_of_people_moved", part=part) if table == "moved" else part


WITHHOLD = ReliabilityWithholder()
"""The reliability audit's rules for small counts."""
