"""Small counts of the ranking audit: candidates."""

from __future__ import annotations

from typing import ClassVar

from evenhand.audits.ranking.spec import RankingSpec
from evenhand.core.records import Record
from evenhand.core.withhold import Withholder


class RankingWithholder(Withholder[RankingSpec]):
    """Treats every number as a count of candidates, so that all are withheld if one is small."""

    places: ClassVar[tuple[str, ...]] = ("k",)

    def part(self, _table: str, _record: Record) -> str:
        """Return the part that a record belongs to."""
        return "candidates"


WITHHOLD = RankingWithholder()
"""The audit's rules for small counts."""
