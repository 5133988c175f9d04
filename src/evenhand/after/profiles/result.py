"""The result of a profile: its tables of records and their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.core.records import OK, Record, column, read_tables, written_tables
from evenhand.messages import Message
from evenhand.stats.adverse_impact import Flip


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact(Record):
    """The selection of one group, compared with the group with the highest rate."""

    model: str = column("the model", reveals="name")
    grouping: str = column("the grouping", reveals="name")
    group: str = column("the group", reveals="name")
    highest: str = column("the group with the highest rate, which it is compared with", reveals="name")
    n: int = column("the people of the group", reveals="count")
    selected: int = column("how many of them got the favourable decision", reveals="count")
    rate: float = column("their share", reveals="share")
    ratio: float | None = column("the rate over the highest rate", reveals="number")
    low: float | None = column("lower limit of the ratio, of this pair alone", reveals="number")
    high: float | None = column(
        "upper limit of the ratio, of this pair alone; null where it is unbounded", reveals="number"
    )
    difference: float = column("the rate minus the highest rate", reveals="number")
    below_four_fifths: bool | None = column(
        "whether the ratio is below four fifths; null where it is undefined", reveals="number"
    )
    standard_deviations: float | None = column("the difference in standard deviations, pooled", reveals="number")
    p_value: float | None = column("Fisher's exact test, two-sided", reveals="number")
    shortfall: float | None = column(
        "people expected at the rate of both groups together, minus those selected", reveals="number"
    )
    to_four_fifths: int = column("how many more people of the group would bring it to four fifths", reveals="number")
    flip_one: Flip = column("what selecting one person in place of another would change", reveals="number")
    status: Message = column("'ok', or what to know of the row", OK, reveals="name")

    @property
    def is_far(self) -> bool:
        """Whether the rate is at least two standard deviations below the highest rate."""
        return self.standard_deviations is not None and self.standard_deviations <= -2

    @property
    def is_flagged(self) -> bool:
        """Whether an indicator is raised: a ratio below four fifths, or two standard deviations."""
        return self.group != self.highest and (bool(self.below_four_fifths) or self.is_far)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled(Record):
    """The selection of one group compared with the group with the highest rate, pooled over events."""

    model: str = column("the model", reveals="name")
    grouping: str = column("the grouping", reveals="name")
    group: str = column("the group", reveals="name")
    highest: str = column("the group with the highest rate of all events together", reveals="name")
    events: int = column(
        "the events in which some, but not all, people of the two groups were selected", reveals="safe"
    )
    n: int = column("the people of the group in these events", reveals="count")
    selected: int = column("how many of them got the favourable decision", reveals="count")
    expected: float = column("how many would have, at equal rates in every event", reveals="number")
    ratio: float | None = column("Mantel-Haenszel ratio of the rates", reveals="number")
    low: float | None = column("lower limit of the ratio, of this pair alone", reveals="number")
    high: float | None = column("upper limit of the ratio, of this pair alone", reveals="number")
    standard_deviations: float | None = column("selected minus expected, in standard deviations", reveals="number")
    p_value: float | None = column("exact conditional test of equal rates in every event, two-sided", reveals="number")
    consistency: float | None = column(
        "p-value of Breslow and Day's test that the odds ratio is the same in all events", reveals="number"
    )
    status: Message = column("'ok', or why nothing can be pooled", OK, reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate(Record):
    """The selection rate or scoring rate of one category, and its impact ratio."""

    model: str = column("the model", reveals="name")
    grouping: str = column("the grouping", reveals="name")
    group: str = column("the category; '(missing)' where it is not known", reveals="name")
    kind: str = column("'selection': decisions; 'scoring': scores above the median of the full sample", reveals="name")
    n: int = column("the people of the category", reveals="count")
    counted: int | None = column("how many of them were selected, or score above the median", reveals="count")
    rate: float | None = column("their share", reveals="share")
    share: float | None = column("the category's share of all people whose category is known", reveals="number")
    impact_ratio: float | None = column("the rate over the highest rate of all categories", reveals="number")
    large_ratio: float | None = column(
        "the same among categories of 2 % or more; null for a smaller one", reveals="number"
    )
    median: float | None = column("median score of the full sample; null for decisions", None, reveals="number")
    score_low: float | None = column("lower quartile of the category's scores", None, reveals="number")
    score_median: float | None = column("median of the category's scores", None, reveals="number")
    score_high: float | None = column("upper quartile of the category's scores", None, reveals="number")
    status: Message = column("'ok', or what to know of the row", OK, reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause(Record):
    """A clause, the required content, and its place in the report."""

    clause: str = column("the clause", reveals="name")
    asks: str = column("what it asks for", reveals="name")
    place: str | None = column(
        "the part of the report that has it; null where it is not in this report", reveals="name"
    )
    where: str = column("the same in words", reveals="name")
    remark: str = column("what it holds, or what is missing", reveals="name")


TABLES: dict[str, type[Record]] = {"impact": Impact, "pooled": Pooled, "rates": Rate, "checklist": Clause}
"""The tables that a profile may have."""


@dataclass(frozen=True)
class ProfileResult:
    """The result of one profile for one audit.

    Parameters
    ----------
    name : the name of the profile.
    date : the date of the described rule.
    notes : remarks on these data.
    tables : the tables by name, as records.
    """

    name: str
    date: str
    notes: tuple[Message, ...]
    tables: dict[str, tuple[Any, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Return the profile for `results.json`."""
        about = {"name": self.name, "date": self.date, "notes": [note.to_dict() for note in self.notes]}
        return {**about, "tables": written_tables(self.tables)}

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> ProfileResult:
        """Build a profile from `results.json`."""
        notes, tables = tuple(map(Message.from_dict, written["notes"])), read_tables(written["tables"], TABLES)
        return cls(written["name"], written["date"], notes, tables)
