"""Gaps over time: rates in every period, and whether a gap has drifted beyond chance."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.after.messages import say
from evenhand.after.records import Drift, Extra, Period
from evenhand.core.counting import Periods, Series
from evenhand.core.result import Result
from evenhand.errors import ConfigError
from evenhand.messages import Argument, Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.sequences import Changes, gap_drift, period_gaps, rate_sequence
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
"""The parts of a year, before or after it; those with a letter also without one."""
_DATES = (
    r"(?P<year>\d{4})-(?P<part>\d\d)-(?P<day>\d\d)",
    r"(?P<day>\d\d?)\.(?P<part>\d\d?)\.(?P<year>\d{4})",
)


def gaps_over_time(table: Table, result: Result, period: str, hidden: Collection[str] = ()) -> Extra:
    """Return every headline rate in every period, and which gaps have drifted; the people of some are in none.

    `result` is that of the audit which counts people.
    """
    counts, spec = result.descriptor.counts, result.spec
    if counts is None:
        raise ConfigError(
            "the {audit} audit counts nobody over time; leave out `period`.",
            audit=result.audit,
        )
    if period in table.roles.group_columns:
        raise ConfigError(
            "`period` {period!r} is a group column already; name another column.",
            period=period,
        )
    series: list[Series] = []
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
    for one, changes in zip(series, _by_holm(series, 1 - spec.confidence), strict=True):
        gap, limits = period_gaps(one.hits, one.n, one.other_hits, one.other_n, alpha)
        drifts.append(_drift(result.audit, one, labels, gap, changes))
        rows += _rows(result.audit, one, labels, spec.confidence, (gap, limits.low, limits.high))
        if (place := (one.model, one.grouping, one.metric.name)) not in references:
            references.add(place)
            rows += _rows(result.audit, one, labels, spec.confidence, None)
    settings = {"period": period, "confidence": spec.confidence, "gaps": len(series)}
    notes = (*_order_notes(labels), *_undated_notes(undated, period, hidden))
    return Extra("over_time", settings, notes, {"drifts": tuple(drifts), "periods": tuple(rows)})


def _periods(cells: Cells, period: str, hidden: Collection[str]) -> tuple[tuple[str, ...], IntArray]:
    """Return the periods in order, and which one each cell is in; the number after the last where it is in none."""
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
    """Return periods in order: by the calendar where all are named in one way, otherwise as they are sorted.

    >>> in_time(["April", "February", "January"]), in_time(["Q1 2026", "Q4 2025"])
    (('January', 'February', 'April'), ('Q4 2025', 'Q1 2026'))
    """
    places = _places(labels)
    return tuple(labels) if places is None else tuple(sorted(labels, key=lambda label: (places[label], label)))


def _places(labels: Sequence[str]) -> dict[str, tuple[int, ...]] | None:
    """Return where in time each period lies; None where that is not known of all, or they are named in several ways."""
    found = {label: when for label in labels if (when := _when(label)) is not None}
    one_way = len({way for way, _ in found.values()}) == 1
    return {label: place for label, (_, place) in found.items()} if one_way and len(found) == len(labels) else None


def _when(label: str) -> tuple[str, tuple[int, ...]] | None:
    """Return how a period is named, and its place in time: as in Q1 2026, 2026-Q1, Jan 2026, 2026-W05, 03/2026, 7."""
    text = label.strip().casefold()
    if text.isdecimal():
        return "number", (int(text),)
    for pattern in _DATES:
        if found := re.fullmatch(pattern, text):
            return "date", tuple(int(found[name]) for name in ("year", "part", "day"))
    for way, part in _PARTS.items():
        for pattern in (f"{_YEAR}{_MARKS}{part}", f"{part}{_MARKS}{_YEAR}", part):
            if (found := re.fullmatch(pattern, text)) and (place := _in_year(way, found.groupdict())):
                return place
    return None


def _in_year(way: str, found: dict[str, str]) -> tuple[str, tuple[int, ...]] | None:
    """Return how a part of a year is named, and its place; a month or weekday in full or by its first letters."""
    year = (int(found["year"]),) if "year" in found else ()
    if "part" in found:
        return (f"{way} of {len(year)} years", (*year, int(found["part"])))
    for kind, languages in _CALENDARS.items():
        for names in map(str.split, languages):
            at = next((at for at, name in enumerate(names) if name.startswith(found["name"])), None)
            if at is not None and (kind == "month" or not year):
                return (f"{kind} of {len(year)} years", (*year, at + 1))
    return None


def _order_notes(labels: Sequence[str]) -> Iterator[Message]:
    """Say that the order of periods is that of the alphabet, where nothing else is known of it."""
    padded = len({len(label) for label in labels}) == 1 and all(label[:1].isdigit() for label in labels)
    if not padded and _places(labels) is None:
        yield say("alphabetical", first=labels[0], last=labels[-1])


def _undated_notes(undated: int, period: str, hidden: Collection[str]) -> Iterator[Message]:
    if hidden:
        yield say("hidden_periods", n=undated, periods=tuple(hidden))
    elif undated:
        yield say("undated", n=undated, period=period)


def _rows(
    audit: str,
    one: Series,
    labels: Sequence[str],
    confidence: float,
    gaps: tuple[FloatArray, FloatArray, FloatArray] | None,
) -> Iterator[Period]:
    """Yield the periods of a group, with its gaps; without them those of the group it is compared with."""
    n, hits = (one.other_n, one.other_hits) if gaps is None else (one.n, one.hits)
    so_far = np.cumsum(n)
    with np.errstate(all="ignore"):
        value, mean = hits / n, np.cumsum(hits) / so_far
    limits = rate_sequence(np.cumsum(hits), so_far, confidence)
    for at, period in enumerate(labels):
        gap, low, high = (None, None, None) if gaps is None else (finite(part[at]) for part in gaps)
        yield Period(
            audit=audit,
            model=one.model,
            grouping=one.grouping,
            group=one.reference if gaps is None else one.group,
            reference=None if gaps is None else one.reference,
            metric=one.metric.name,
            period=period,
            n=int(n[at]),
            value=finite(value[at]),
            mean=finite(mean[at]),
            mean_low=finite(limits.low[at]) if so_far[at] else None,
            mean_high=finite(limits.high[at]) if so_far[at] else None,
            gap=gap,
            low=low,
            high=high,
        )


def _by_holm(series: Sequence[Series], alpha: float) -> list[Changes]:
    """Return the changes of all gaps: those not yet shown to drift are tested again at what is then left to each.

    A gap without drift is ever told with a chance of alpha at most, however often one looks: the first of them to be
    told is so at alpha / m with m no less than the number of such gaps (Holm 1979), and each holds its level at all
    times.
    """
    found: dict[int, Changes] = {}
    rest = list(range(len(series)))
    while rest:
        for at in rest:
            one = series[at]
            found[at] = gap_drift(one.hits, one.n, one.other_hits, one.other_n, alpha / len(rest))
        left = [at for at in rest if not (found[at].nearest > 0).any()]
        rest = left if len(left) < len(rest) else []
    return [found[at] for at in range(len(series))]


def _drift(audit: str, one: Series, labels: Sequence[str], gap: FloatArray, changes: Changes) -> Drift:
    """Say whether the gap from some period on differs beyond chance from that before it, and where most clearly."""
    place: dict[str, Any] = {"group": one.group, "reference": one.reference}
    where = shared("model_place", model=one.model, place=shared("by", grouping=one.grouping))
    told: dict[str, Argument] = {"where": where, "title": one.metric.title_in_sentence, **place}
    place |= {"audit": audit, "model": one.model, "grouping": one.grouping, "metric": one.metric.name}
    key, drifted = "one_period", bool((changes.nearest > 0).any())
    if drifted:
        key, clearest = "gap_drifted", _clearest(changes)
        start, look, change = (int(changes.start[clearest]), int(changes.look[clearest]), changes.change[clearest])
        place |= {"first_period": labels[int(changes.look[changes.nearest > 0].min())], "change": float(change)}
        place |= {"changed_from": labels[start], "changed_to": labels[look], "before": _mean_gap(one, gap, start)}
        place |= {"since": place["before"] + place["change"]}
        place |= {name: finite(getattr(changes.limits, name)[clearest]) for name in ("low", "high")}
        told |= {"before": place["before"], "since": place["since"], "period": labels[start], "until": labels[look]}
    elif changes.look.size:
        room = np.maximum(changes.change - changes.limits.low, changes.limits.high - changes.change)
        key, place["least"] = "no_drift_shown", float(room[changes.look == changes.look.max()].min())
        told["least"] = place["least"]
    return Drift(**place, drifted=drifted, headline=say(key, **told))


def _clearest(changes: Changes) -> int:
    """Return which change has limits farthest from 0: of those up to the last period, if any is beyond chance."""
    last = np.where(changes.look == changes.look.max(), changes.nearest, -np.inf)
    return int(np.argmax(last if last.max() > 0 else changes.nearest))


def _mean_gap(one: Series, gap: FloatArray, end: int) -> float:
    """Return the mean gap before a period, by the weights of Mantel and Haenszel."""
    n, m = one.n[:end], one.other_n[:end]
    kept = (n > 0) & (m > 0)
    weights = n[kept] * m[kept] / (n[kept] + m[kept])
    return float(np.average(gap[:end][kept], weights=weights))
