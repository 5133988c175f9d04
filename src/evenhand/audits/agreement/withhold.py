"""Rules for small counts in an agreement audit: pairs of ratings."""

from __future__ import annotations

from typing import ClassVar

from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.core.records import Record
from evenhand.core.withhold import Withholder


class AgreementWithholder(Withholder[AgreementSpec]):
    """Withholder that treats every number as a count of pairs of ratings."""

    places: ClassVar[tuple[str, ...]] = ("first", "second")
    balances: ClassVar[tuple[str, ...]] = ("prevalence_index", "bias_index")

    def part(self, _table: str, _record: Record) -> str:
        """Return the part to which a record belongs."""
        return "ratings"


WITHHOLD = AgreementWithholder()
"""The agreement audit's rules for small counts."""
