"""Rules for small counts in a paired audit: answers."""

from __future__ import annotations

from evenhand.audits.paired.spec import PairedSpec
from evenhand.core.records import Record
from evenhand.core.withhold import Withholder


class PairedWithholder(Withholder[PairedSpec]):
    """Withholder that treats every number as a count of answers; one small count withholds all."""

    def part(self, _table: str, _record: Record) -> str:
        """Return the part to which a record belongs."""
        return "answers"


WITHHOLD = PairedWithholder()
"""The audit's rules for small counts."""
