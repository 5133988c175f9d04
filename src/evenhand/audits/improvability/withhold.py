"""What of an improvability audit tells of few people: candidates, the frontier, values of groups."""

from __future__ import annotations

from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.core.records import Record
from evenhand.core.withhold import Withholder


class ImprovabilityWithholder(Withholder[ImprovabilitySpec]):
    """Decisions and margins count nobody but all rows."""

    def part(self, table: str, record: Record) -> str:
        """Return the part that a record tells of."""
        if table in ("candidates", "frontier"):
            return table
        is_value = type(record).__name__.endswith("Value")
        return "values of groups" if hasattr(record, "component") or is_value else ""


WITHHOLD = ImprovabilityWithholder()
"""What the improvability audit withholds."""
