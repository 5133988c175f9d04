"""Gaps over time: rates in every period, and tests of drift."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.after.messages import say
from evenhand.after.records import Drift, Extra, Period
from evenhand.core.capabilities import GroupSeries, Periods
from evenhand.core.result import Result
from evenhand.errors import ConfigError
from evenhand.messages import Argument, Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.sequences import GapChanges, gap_drift, period_gaps, rate_sequence
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.roles import UNNAMED

if TYPE_CHECKING:
    from evenhand.table.table import Table

MOST_PERIODS = 200
_CALENDARS = {
    "month": (
        "january february march april may june july august september october november december",
        "januar februar märz april mai juni juli august september oktober november dezember",
    ),
    "weekday": (
        "monday tuesday wednesday thursday friday saturday sunday",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
    ),
}
_YEAR, _MARKS = r"(?P<year>(?:19|20)\d\d)", r"[\s./_-]*"
_PARTS = {
    "half": r"h\s*(?P<part>[12])",
    "quarter": r"q\s*(?P<part>[1-4])",
    "week": r"(?:w|kw|week)\s*(?P<part>\d\d?)",
    "month": r"(?P<part>0?[1-9]|1[0-2])",
    "named": r"(?P<name>[^\W\d]{3,})\.?",
}
"""Patterns of parts of a year, before or after the year or alone."""
_DATES = (
    r"(?P<year>\d{4})-(?P<part>\d\d)-(?P<day>\d\d)",
    r"(?P<day>\d\d?)\.(?P<part>\d\d?)\.(?P<year>\d{4})",
)


def gaps_over_time(table: Table, result: Result, period: str, hidden: Collection[str] = ()) -> Extra:
    """Return every headline rate in every period, and the tests of drift of the gaps.

    People without a period are left out. `result` belongs to the audit that counts people.
    """
    counts, spec = result.descriptor.counts, result.spec
    if counts is None:
        raise ConfigError("the {audit} audit counts nobody over time; leave out `period`.", audit=result.audit)
    if table.roles.cluster is not None:
        raise ConfigError(
            "`period` compares rows as independent people, which those of one cluster ({cluster!r}) are not; leave out "
            "`period`, or audit each period by itself.",
            cluster=table.roles.cluster,
        )
    if period in table.roles.group_columns:
        raise ConfigError("`period` {period!r} is a group column already; name another column.", period=period)
    series: list[GroupSeries] = []
    labels: tuple[str, ...] = ()
    undated = 0
    for model in table.models:
        cells = table.counts(model, (period,))
        labels, codes = _periods(cells, period, hidden)
        undated = int(cells.n[codes >= len(labels)].sum())
        series += counts.series(table, spec, Periods(model, cells, codes, len(labels)))
    if len(labels) < 2:
        raise ConfigError(
            "`period` {period!r} has one value only ({names}); there is nothing to compare.",
            period=period,
            names=", ".join(labels),
        )
    alpha = (1 - spec.confidence) / max(len(series), 1)
    rows: list[Period] = []
    drifts: list[Drift] = []
    references = set()
    for rate, changes in zip(series, _holm_adjusted_drifts(series, 1 - spec.confidence), strict=True):
        gap, limits = period_gaps(rate.hits, rate.n, rate.other_hits, rate.other_n, alpha)
        drifts.append(_drift(result.audit, rate, labels, changes))
        rows += _period_records(result.audit, rate, labels, spec.confidence, (gap, limits.low, limits.high))
        if (key := (rate.model, rate.grouping, rate.metric.name)) not in references:
            references.add(key)
            rows += _period_records(result.audit, rate, labels, spec.confidence, None)
    settings = {"period": period, "confidence": spec.confidence, "gaps": len(series)}
    notes = (*_order_notes(labels), *_undated_notes(undated, period, hidden))
    return Extra("over_time", settings, notes, {"drifts": tuple(drifts), "periods": tuple(rows)})


def _periods(cells: Cells, period: str, hidden: Collection[str]) -> tuple[tuple[str, ...], IntArray]:
    """Return the periods in order, and the period's position for each cell.

    Unknown periods get the position after the last period.
    """
    codes, named = cells.joint([period])
    labels = in_time([label for label in named if label not in UNNAMED and label not in hidden])
    if len(labels) > MOST_PERIODS:
        raise ConfigError(
            "`period` {period!r} has {number:,} values, more than {MOST_PERIODS}; make months or years of it.",
            period=period,
            number=len(labels),
            MOST_PERIODS=MOST_PERIODS,
        )
    order = [labels.index(label) if label in labels else len(labels) for label in named]
    return labels, np.array(order, dtype=np.int64)[codes]


def in_time(labels: Sequence[str]) -> tuple[str, ...]:
    """Sort periods by the calendar if all have the same pattern, else alphabetically.

    >>> in_time(["April", "February", "January"]), in_time(["Q1 2026", "Q4 2025"])
    (('January', 'February', 'April'), ('Q4 2025', 'Q1 2026'))
    """
    places = _positions(labels)
    return tuple(labels) if places is None else tuple(sorted(labels, key=lambda label: (places[label], label)))


def _positions(labels: Sequence[str]) -> dict[str, tuple[int, ...]] | None:
    """Return the positions of periods in time, or None if a period is not recognised or the patterns differ."""
    matches = {label: when for label in labels if (when := _match_period(label)) is not None}
    one_way = len({pattern for pattern, _ in matches.values()}) == 1
    return {label: time for label, (_, time) in matches.items()} if one_way and len(matches) == len(labels) else None


def _match_period(label: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the pattern and position of a period such as Q1 2026, 2026-Q1, Jan 2026, 2026-W05, 03/2026 or 7."""
    text = label.strip().casefold()
    if text.isdecimal():
        return "number", (int(text),)
    for pattern in _DATES:
        if match := re.fullmatch(pattern, text):
            return "date", tuple(int(match[name]) for name in ("year", "part", "day"))
    for part_name, part in _PARTS.items():
        for pattern in (f"{_YEAR}{_MARKS}{part}", f"{part}{_MARKS}{_YEAR}", part):
            if (match := re.fullmatch(pattern, text)) and (value := _match_year_part(part_name, match.groupdict())):
                return value
    return None


def _match_year_part(part_name: str, groups: dict[str, str]) -> tuple[str, tuple[int, ...]] | None:
    """Return the pattern and position of a part of a year.

    Months and weekdays may be abbreviated.
    """
    year = (int(groups["year"]),) if "year" in groups else ()
    if "part" in groups:
        return (f"{part_name} of {len(year)} years", (*year, int(groups["part"])))
    for kind, languages in _CALENDARS.items():
        for names in map(str.split, languages):
            position = next((position for position, name in enumerate(names) if name.startswith(groups["name"])), None)
            if position is not None and (kind == "month" or not year):
                return (f"{kind} of {len(year)} years", (*year, position + 1))
    return None


def _order_notes(labels: Sequence[str]) -> Iterator[Message]:
    """Yield a note if the periods are in alphabetical order because they are not dates."""
    padded = len({len(label) for label in labels}) == 1 and all(label[:1].isdigit() for label in labels)
    if not padded and _positions(labels) is None:
        yield say("alphabetical", first=labels[0], last=labels[-1])


def _undated_notes(undated: int, period: str, hidden: Collection[str]) -> Iterator[Message]:
    if hidden:
        yield say("hidden_periods", n=undated, periods=tuple(hidden))
    elif undated:
        yield say("undated", n=undated, period=period)


def _period_records(
    audit: str,
    rate: GroupSeries,
    labels: Sequence[str],
    confidence: float,
    gaps: tuple[FloatArray, FloatArray, FloatArray] | None,
) -> Iterator[Period]:
    """Yield the periods of a group with its gaps; if `gaps` is None, the periods of the reference group."""
    n, hits = (rate.other_n, rate.other_hits) if gaps is None else (rate.n, rate.hits)
    so_far = np.cumsum(n)
    with np.errstate(all="ignore"):
        value, mean = hits / n, np.cumsum(hits) / so_far
    limits = rate_sequence(np.cumsum(hits), so_far, confidence)
    for position, period in enumerate(labels):
        gap, low, high = (None, None, None) if gaps is None else (finite(part[position]) for part in gaps)
        yield Period(
            audit=audit,
            model=rate.model,
            grouping=rate.grouping,
            group=rate.reference if gaps is None else rate.group,
            reference=None if gaps is None else rate.reference,
            metric=rate.metric.name,
            period=period,
            n=int(n[position]),
            value=finite(value[position]),
            mean=finite(mean[position]),
            mean_low=finite(limits.low[position]) if so_far[position] else None,
            mean_high=finite(limits.high[position]) if so_far[position] else None,
            gap=gap,
            low=low,
            high=high,
        )


def _holm_adjusted_drifts(series: Sequence[GroupSeries], alpha: float) -> list[GapChanges]:
    """Return the drift of all gaps, adjusted by Holm's procedure.

    Gaps without a detected drift are tested again at the remaining error. The probability to report any gap that has
    no drift is at most alpha, however often the data are checked: the first such report is at the level alpha / m,
    with m at least the number of gaps without drift (Holm 1979), and every test has its level at all times.
    """
    drifts: dict[int, GapChanges] = {}
    rest = list(range(len(series)))
    while rest:
        for position in rest:
            rate = series[position]
            drifts[position] = gap_drift(rate.hits, rate.n, rate.other_hits, rate.other_n, alpha / len(rest))
        left = [position for position in rest if not (drifts[position].nearest > 0).any()]
        rest = left if len(left) < len(rest) else []
    return [drifts[position] for position in range(len(series))]


def _drift(audit: str, rate: GroupSeries, labels: Sequence[str], changes: GapChanges) -> Drift:
    """Test whether a gap changed in some period, and return the test with the clearest change."""
    sides: dict[str, Any] = {"group": rate.group, "reference": rate.reference}
    where = shared("model_place", model=rate.model, place=shared("by", grouping=rate.grouping))
    arguments: dict[str, Argument] = {"where": where, "title": rate.metric.title_in_sentence, **sides}
    sides |= {"audit": audit, "model": rate.model, "grouping": rate.grouping, "metric": rate.metric.name}
    key, drifted = "one_period", bool((changes.nearest > 0).any())
    if drifted:
        key, clearest = "gap_drifted", _clearest_period(changes)
        start, look, change = (int(changes.start[clearest]), int(changes.look[clearest]), changes.change[clearest])
        sides |= {"first_period": labels[_first_shown(changes)], "change": float(change)}
        sides |= {"changed_from": labels[start], "changed_to": labels[look]}
        for name, (first, end) in {"before": (0, start), "since": (start, look + 1)}.items():
            of_group, of_reference = _mean_rates(rate, first, end)
            sides |= {f"group_{name}": of_group, f"reference_{name}": of_reference, name: of_group - of_reference}
        sides |= {name: finite(getattr(changes.limits, name)[clearest]) for name in ("low", "high")}
        arguments |= {
            "before": sides["before"],
            "since": sides["since"],
            "period": labels[start],
            "until": labels[look],
        }
    elif changes.look.size:
        room = np.maximum(changes.change - changes.limits.low, changes.limits.high - changes.change)
        key, sides["least"] = "no_drift_shown", float(room[changes.look == changes.look.max()].min())
        arguments["least"] = sides["least"]
    return Drift(**sides, drifted=drifted, headline=say(key, **arguments))


def _clearest_period(changes: GapChanges) -> int:
    """Return the position of the change with limits farthest from 0.

    The change must begin no later than the first significant change. Changes up to the last period take precedence.
    """
    began = np.where(changes.start <= _first_shown(changes), changes.nearest, -np.inf)
    last = np.where(changes.look == changes.look.max(), began, -np.inf)
    return int(np.argmax(last if last.max() > 0 else began))


def _first_shown(changes: GapChanges) -> int:
    """Return the first period after which a change is significant."""
    return int(changes.look[changes.nearest > 0].min())


def _mean_rates(rate: GroupSeries, first: int, end: int) -> tuple[float, float]:
    """Return the mean rates of a group and its reference over periods, by Mantel-Haenszel weights."""
    n, m = rate.n[first:end], rate.other_n[first:end]
    defined = (n > 0) & (m > 0)
    weights = n[defined] * m[defined] / (n[defined] + m[defined])
    sides = ((rate.hits, rate.n), (rate.other_hits, rate.other_n))
    shares = ((hits[first:end][defined] / people[first:end][defined]) for hits, people in sides)
    of_group, of_reference = (float(np.average(share, weights=weights)) for share in shares)
    return of_group, of_reference
