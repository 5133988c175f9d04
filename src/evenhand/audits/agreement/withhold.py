"""What of an agreement audit tells of few people: pairs of ratings."""

from __future__ import annotations

from typing import Any

from evenhand.core.withhold import Withholder


class AgreementWithholder(Withholder):
    """Everything counts pairs of ratings."""

    def part(self, _table: str, _record: Any) -> str:
        """Return the part that a record tells of."""
        return "ratings"


WITHHOLD = AgreementWithholder()
"""What the agreement audit withholds."""
