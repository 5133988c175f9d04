"""Small counts of the paired audit: answers."""

from __future__ import annotations

from evenhand.audits.paired.spec import PairedSpec
from evenhand.core.records import Record
from evenhand.core.withhold import Withholder


class PairedWithholder(Withholder[PairedSpec]):
    """Treats every number as a count of answers, so that all are withheld if one is small."""

    def part(self, _table: str, _record: Record) -> str:
        """Return the part that a record belongs to."""
        return "answers"


WITHHOLD = PairedWithholder()
"""The audit's rules for small counts."""
