"""Rules for small counts in a classes audit: people by class."""

from __future__ import annotations

from typing import ClassVar

from evenhand.audits.classes.spec import ClassesSpec
from evenhand.core.records import Record
from evenhand.core.withhold import Withholder


class ClassesWithholder(Withholder[ClassesSpec]):
    """Withholder that treats every number as a count of people by class; one small count withholds all."""

    places: ClassVar[tuple[str, ...]] = ("label",)

    def part(self, _table: str, _record: Record) -> str:
        """Return the part to which a record belongs."""
        return "classes"


WITHHOLD = ClassesWithholder()
"""The audit's rules for small counts."""
