"""Records of extras: gaps over time, and verdicts in other populations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.core.records import Kind, Record, column, read_tables, written_tables
from evenhand.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Period(Record):
    """A rate and a gap in one period; `low` and `high` are simultaneous over all past and future periods."""

    audit: str = column("the audit that counts the people", reveals="name")
    model: str = column("the model", reveals="name")
    grouping: str = column("the grouping", reveals="name")
    group: str = column("the group", reveals="name")
    reference: str | None = column("the group it is compared with; null for that group itself", reveals="name")
    metric: str = column("the metric", reveals="name")
    period: str = column("the period", reveals="name")
    n: int = column("the people behind the rate in this period", reveals="count")
    value: float | None = column("the rate in this period; null where nobody counts", reveals="share")
    mean: float | None = column("the rate of all people so far", reveals="number")
    mean_low: float | None = column("lower limit of the rate so far, at all times together", reveals="number")
    mean_high: float | None = column("upper limit of the rate so far, at all times together", reveals="number")
    gap: float | None = column("the rate minus that of the reference in this period", reveals="number")
    low: float | None = column("lower limit of the gap, for all periods together", None, reveals="number")
    high: float | None = column("upper limit of the gap, for all periods together", None, reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift(Record):
    """The test of drift of one gap."""

    audit: str = column("the audit that counts the people", reveals="name")
    model: str = column("the model", reveals="name")
    grouping: str = column("the grouping", reveals="name")
    group: str = column("the group", reveals="name")
    reference: str = column("the group it is compared with", reveals="name")
    metric: str = column("the metric", reveals="name")
    drifted: bool = column(
        "whether the gap from some period on differs beyond chance from that before it", reveals="number"
    )
    first_period: str | None = column("the first period after which that could be shown", None, reveals="name")
    changed_from: str | None = column(
        "the first period of the clearest change, no later than `first_period`", None, reveals="name"
    )
    changed_to: str | None = column("the last period of the clearest change", None, reveals="name")
    before: float | None = column("the mean gap of all periods before the clearest change", None, reveals="number")
    since: float | None = column("the mean gap from its first period to its last", None, reveals="number")
    group_before: float | None = column("the mean rate of the group in the same periods before", None, reveals="number")
    group_since: float | None = column("its mean rate since", None, reveals="number")
    reference_before: float | None = column("the mean rate of the reference before", None, reveals="number")
    reference_since: float | None = column("its mean rate since", None, reveals="number")
    change: float | None = column("how far that is from the mean gap before", None, reveals="number")
    low: float | None = column("lower limit of that change, at the level it was tested at", None, reveals="number")
    high: float | None = column("upper limit of that change, at the level it was tested at", None, reveals="number")
    least: float | None = column(
        "the least change that would have been shown after the last period, about", None, reveals="number"
    )
    headline: Message = column("the same in a sentence", reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift(Record):
    """A verdict for people reweighted to other shares of another column's groups."""

    audit: str = column("the audit", reveals="name")
    model: str = column("the model", reveals="name")
    grouping: str | None = column("the grouping that the verdict is about; null for everybody", reveals="name")
    stratum: str | None = column("the stratum; null for all people", None, reveals="name")
    metric: str = column("the metric", reveals="name")
    kind: Kind | None = column("of a gap: difference or ratio", reveals="name")
    against: str | None = column("of a gap: what the group is compared with", reveals="name")
    group: str | None = column("the group; null for a worst pair, which may be another one", None, reveals="name")
    reference: str | None = column(
        "the group it is compared with; null for a worst pair and for a value", None, reveals="name"
    )
    threshold: Message = column("the limit in words", reveals="name")
    limit: float | None = column("the limit", reveals="safe")
    attribute: str = column("the column whose shares are others", reveals="name")
    shares: Message = column("which shares, in words", reveals="name")
    value: float | None = column("the value, or the size of the gap, with these shares", reveals="number")
    low: float | None = column("its lower limit", reveals="number")
    high: float | None = column("its upper limit", reveals="number")
    verdict: str = column("the verdict with these shares", reveals="name")
    holds: bool = column("whether it is that of the people as they are, by the same limits", reveals="number")


EXTRAS: dict[str, dict[str, type[Record]]] = {
    "over_time": {"drifts": Drift, "periods": Period},
    "population_shift": {"shifts": Shift},
}
"""The extras and their tables."""


@dataclass(frozen=True)
class Extra:
    """One optional part of an audit's report, with its name, settings and tables."""

    name: str
    settings: dict[str, Any]
    notes: tuple[Message, ...]
    tables: dict[str, tuple[Any, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Return the extra for `results.json`."""
        about = {"name": self.name, "settings": self.settings, "notes": [note.to_dict() for note in self.notes]}
        return {**about, "tables": written_tables(self.tables)}

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> Extra:
        """Build an extra from `results.json`."""
        tables = read_tables(written["tables"], EXTRAS[written["name"]])
        return cls(written["name"], dict(written["settings"]), tuple(map(Message.from_dict, written["notes"])), tables)
