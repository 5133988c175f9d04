"""The periods of a changed gap, which either last until now or are over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from evenhand.after.records import Drift, Period
from evenhand.report.wording import PageWording

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


@dataclass(frozen=True)
class Span:
    """The periods of a changed gap.

    Parameters
    ----------
    name : the name of the periods.
    is_over : whether later periods followed without a significant change.
    others : the mean gap in all other periods.
    """

    name: str
    is_over: bool
    others: float


def span_of(audit: Audit, drift: Drift, wording: PageWording) -> Span:
    """Return the periods of a change, and the mean gap in all other periods by Mantel-Haenszel weights."""
    first, last = wording.period(drift.changed_from), wording.period(drift.changed_to)
    rows = _gaps(audit, drift)
    names = [row.period for row, _ in rows]
    start, end = names.index(str(drift.changed_from)), names.index(str(drift.changed_to))
    name = first if start == end else wording.say("span", "answer", first=first, last=last)
    return Span(name, end < len(names) - 1, _mean([*rows[:start], *rows[end + 1 :]]))


def _gaps(audit: Audit, drift: Drift) -> list[tuple[Period, int]]:
    """Return a group's gaps by period, each with the reference group's number of people."""
    place = attrgetter("audit", "model", "grouping", "metric")
    periods = [row for extra in audit.extras for row in _periods(extra.tables.get("periods", ()))]
    here = [row for row in periods if place(row) == place(drift)]
    others = {row.period: row.n for row in here if row.group == drift.reference and row.reference is None}
    own = [row for row in here if (row.group, row.reference) == (drift.group, drift.reference)]
    return [(row, others.get(row.period, 0)) for row in own]


def _periods(records: Sequence[object]) -> Iterator[Period]:
    return (record for record in records if isinstance(record, Period))


def _mean(rows: Sequence[tuple[Period, int]]) -> float:
    weights = [(row.gap, row.n * m / (row.n + m)) for row, m in rows if row.gap is not None and row.n + m]
    total = sum(weight for _, weight in weights)
    return sum(gap * weight for gap, weight in weights) / total if total else 0.0
