"""Rules for small counts in a ranking audit: candidates."""

from __future__ import annotations

from typing import ClassVar

from evenhand.audits.ranking.spec import RankingSpec
from evenhand.core.records import Record
from evenhand.core.withhold import Withholder


class RankingWithholder(Withholder[RankingSpec]):
    """Withholder that treats every number as a count of candidates; one small count withholds all."""

    places: ClassVar[tuple[str, ...]] = ("k",)

    def part(self, _table: str, _record: Record) -> str:
        """Return the part to which a record belongs."""
        return "candidates"


WITHHOLD = RankingWithholder()
"""The audit's rules for small counts."""
