"""Small counts of the classes audit: people by class."""

from __future__ import annotations

from typing import ClassVar

from evenhand.audits.classes.spec import ClassesSpec
from evenhand.core.records import Record
from evenhand.core.withhold import Withholder


class ClassesWithholder(Withholder[ClassesSpec]):
    """Treats every number as a count of people by class, so that all are withheld if one is small."""

    places: ClassVar[tuple[str, ...]] = ("label",)

    def part(self, _table: str, _record: Record) -> str:
        """Return the part that a record belongs to."""
        return "classes"


WITHHOLD = ClassesWithholder()
"""The audit's rules for small counts."""
