"""What of a reliability audit tells of few people: each metric, by risk level, and the people moved."""

from __future__ import annotations

from typing import Any

from evenhand.core.withhold import Withholder


class ReliabilityWithholder(Withholder):
    """Each metric is a part of its own."""

    def part(self, table: str, record: Any) -> str:
        """Return the part that a record tells of."""
        if table in ("models", "mitigation"):
            return table
        level = " by risk level" if getattr(record, "risk_level", None) is not None else ""
        return f"{record.metric}{level}{' (people moved)' if table == 'moved' else ''}"


WITHHOLD = ReliabilityWithholder()
"""What the reliability audit withholds."""
