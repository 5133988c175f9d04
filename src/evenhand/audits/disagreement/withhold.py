"""Rules for small counts in a disagreement audit: answers, kinds of critics, pairs of like cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.records import Record
from evenhand.core.withhold import Withholder


class DisagreementWithholder(Withholder[DisagreementSpec]):
    """Withholder that treats every number as a count of answers; critics' own labels are never published."""

    coarse: ClassVar[tuple[str, ...]] = ("", "answers")
    of_some_people: ClassVar[tuple[str, ...]] = ("kinds of critics",)
    never: ClassVar[str] = "what critics really think"
    places: ClassVar[tuple[str, ...]] = ("label", "stakeholder")

    def part(self, table: str, record: Record) -> str:
        """Return the part to which a record belongs."""
        if table == "pairs":
            return "pairs of like cases"
        return "kinds of critics" if getattr(record, "stakeholder", None) is not None else "answers"

    def without(self, tables: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Record, ...]]:
        """Return tables without the critics' own labels."""
        named = ("values", "gaps", "pairs")
        bare = {name: tuple(replace(record, truth=None) for record in tables[name]) for name in named}
        return {**bare, "truth": ()}


WITHHOLD = DisagreementWithholder()
"""The disagreement audit's rules for small counts."""
