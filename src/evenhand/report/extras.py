"""What a report can hold beside its audits: gaps over time, and whether a verdict would hold elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.core.records import Kind, Record, column, read_tables, written_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Period(Record):
    """A rate and a gap in one period; `low` and `high` hold in all periods together, also in those still to come."""

    model: str = column("the model")
    grouping: str = column("the grouping")
    group: str = column("the group")
    reference: str | None = column("the group it is compared with; null for that group itself")
    metric: str = column("the metric")
    period: str = column("the period")
    n: int = column("the people behind the rate in this period")
    value: float | None = column("the rate in this period; null where nobody counts")
    mean: float | None = column("the rate of all people so far")
    mean_low: float | None = column("lower limit of the rate so far, at all times together")
    mean_high: float | None = column("upper limit of the rate so far, at all times together")
    gap: float | None = column("the rate minus that of the reference in this period")
    low: float | None = column("lower limit of the gap, for all periods together", None)
    high: float | None = column("upper limit of the gap, for all periods together", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift(Record):
    """Whether a gap has drifted beyond chance."""

    model: str = column("the model")
    grouping: str = column("the grouping")
    group: str = column("the group")
    reference: str = column("the group it is compared with")
    metric: str = column("the metric")
    drifted: bool = column("whether the gap from some period on differs beyond chance from that before it")
    first_period: str | None = column("the first period after which that could be shown", None)
    changed_from: str | None = column("the first period of the clearest change", None)
    changed_to: str | None = column("the last period of the clearest change", None)
    before: float | None = column("the mean gap of all periods before the clearest change", None)
    since: float | None = column("the mean gap from its first period to its last", None)
    change: float | None = column("how far that is from the mean gap before", None)
    low: float | None = column("lower limit of that change, at the level it was tested at", None)
    high: float | None = column("upper limit of that change, at the level it was tested at", None)
    least: float | None = column("the least change that would have been shown after the last period, about", None)
    sentence_id: str = column("which sentence the headline is")
    headline: str = column("the same in a sentence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift(Record):
    """A verdict among people with other shares of the groups of another column."""

    audit: str = column("the audit")
    model: str = column("the model")
    grouping: str | None = column("the grouping that the verdict is about; null for everybody")
    stratum: str | None = column("the stratum; null for all people", None)
    metric: str = column("the metric")
    kind: Kind | None = column("of a gap: difference or ratio")
    against: str | None = column("of a gap: what the group is compared with")
    group: str | None = column("the group; null for a worst pair, which may be another one", None)
    reference: str | None = column("the group it is compared with; null for a worst pair and for a value", None)
    threshold: str = column("the limit in words")
    limit: float | None = column("the limit")
    attribute: str = column("the column whose shares are others")
    shares: str = column("which shares, in words")
    value: float | None = column("the value, or the size of the gap, with these shares")
    low: float | None = column("its lower limit")
    high: float | None = column("its upper limit")
    verdict: str = column("the verdict with these shares")
    holds: bool = column("whether it is that of the people as they are, by the same limits")


EXTRAS: dict[str, dict[str, type[Record]]] = {
    "over_time": {"drifts": Drift, "periods": Period},
    "elsewhere": {"shifts": Shift},
}
"""The extras and their tables."""


@dataclass(frozen=True)
class Extra:
    """One of them, of one audit: its name, what it rests on, and its tables by name."""

    name: str
    settings: dict[str, Any]
    notes: tuple[str, ...]
    tables: dict[str, tuple[Any, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Return what stands in `results.json`."""
        about = {"name": self.name, "settings": self.settings, "notes": list(self.notes)}
        return {**about, "tables": written_tables(self.tables)}

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> Extra:
        """Return the extra that stands in `results.json`."""
        tables = read_tables(written["tables"], EXTRAS[written["name"]])
        return cls(written["name"], dict(written["settings"]), tuple(written["notes"]), tables)
