"""Rules for small counts in an improvability audit: candidates, the frontier, and values of groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from evenhand.audits.improvability.result import ImprovabilityResult
from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.core.records import Record
from evenhand.core.result import Result
from evenhand.core.withhold import Withholder
from evenhand.messages import Message
from evenhand.messages.shared import say


class ImprovabilityWithholder(Withholder[ImprovabilitySpec]):
    """Withholder that treats decisions and margins as numbers about all rows."""

    whole: ClassVar[tuple[str, ...]] = ("decisions", "curves", "coefficients", "power", "sample_sizes", "reasons")
    places: ClassVar[tuple[str, ...]] = ()

    def part(self, table: str, record: Record) -> str:
        """Return the part to which a record belongs."""
        if table in ("candidates", "frontier"):
            return table
        is_value = type(record).__name__.endswith("Value")
        return "values of groups" if hasattr(record, "component") or is_value else ""

    def left_out(self, result: Result) -> Iterator[tuple[Message, int]]:
        """Yield the numbers of people outside all values of the result, with the reasons."""
        yield from super().left_out(result)
        if isinstance(result, ImprovabilityResult):
            yield say("rows_dropped"), result.unlabelled or 0


WITHHOLD = ImprovabilityWithholder()
"""The improvability audit's rules for small counts."""
