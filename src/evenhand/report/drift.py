"""Gaps over time: parity in every period, and whether a gap has drifted beyond chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.audits.parity.metrics import METRICS, ParityMetric
from evenhand.audits.parity.spec import ParitySpec
from evenhand.charts import PANEL_WIDTH
from evenhand.core.display import DisplayTable, Figure, Method, Number, Range, Section, make_table
from evenhand.core.findings import render
from evenhand.core.formats import finite, show_confidence
from evenhand.core.groups import reference_of
from evenhand.curve import Curve, curve
from evenhand.errors import ConfigError
from evenhand.report.extras import Drift, Extra, Period
from evenhand.stats.sequences import gap_drift, period_gaps, rate_sequence
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.keys import YES
from evenhand.table.roles import UNNAMED
from evenhand.table.validation import state_key

if TYPE_CHECKING:
    from evenhand.table.table import Table

MOST_PERIODS = 200
_MOST_PANELS, _MOST_NAMED = 12, 6
_CALENDARS = (
    [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ],
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"],
)

SENTENCES = {
    "gap_drifted": (
        "{where}: the gap in {title} between {group} and {reference} was {before:signed_points} points before {period} "
        "and {now:signed_points} from then on; it has drifted beyond chance."
    ),
    "no_drift_shown": "{where}: no drift of the gap in {title} between {group} and {reference} is shown.",
    "one_period": "{where}: the gap in {title} between {group} and {reference} has fewer than two periods to compare.",
}


@dataclass(frozen=True)
class _Series:
    """One metric of one group beside its reference, in every period: who counts, and how many of them."""

    model: str
    grouping: str
    metric: ParityMetric
    group: str
    reference: str
    n: IntArray
    hits: IntArray
    other_n: IntArray
    other_hits: IntArray


def gaps_over_time(table: Table, spec: ParitySpec, period: str, hidden: Collection[str] = ()) -> Extra:
    """Return every headline rate in every period, and which gaps have drifted; the people of some are in none."""
    if period in table.roles.group_columns:
        raise ConfigError(f"`period` {period!r} is a group column already; name another column.")
    series: list[_Series] = []
    labels: tuple[str, ...] = ()
    undated = 0
    for model in table.models:
        cells = table.counts(model, (period,))
        labels, codes = _periods(cells, period, hidden)
        undated = int(cells.n[codes >= len(labels)].sum())
        series += _series(table, cells, model, spec, codes, len(labels))
    if len(labels) < 2:
        raise ConfigError(f"`period` {period!r} has one value only ({', '.join(labels)}); there is nothing to compare.")
    alpha = (1 - spec.confidence) / max(len(series), 1)
    rows: list[Period] = []
    drifts: list[Drift] = []
    references = set()
    for one in series:
        gap, limits = period_gaps(one.hits, one.n, one.other_hits, one.other_n, alpha)
        drifts.append(_drift(one, labels, gap, alpha))
        rows += _rows(one, labels, spec.confidence, (gap, limits.low, limits.high))
        if (place := (one.model, one.grouping, one.metric.name)) not in references:
            references.add(place)
            rows += _rows(one, labels, spec.confidence, None)
    settings = {"period": period, "confidence": spec.confidence, "gaps": len(series)}
    notes = (*_order_notes(labels), *_undated_notes(undated, period, hidden))
    return Extra("over_time", settings, notes, {"drifts": tuple(drifts), "periods": tuple(rows)})


def _periods(cells: Cells, period: str, hidden: Collection[str]) -> tuple[tuple[str, ...], IntArray]:
    """Return the periods in order, and which one each cell is in; the number after the last where it is in none."""
    codes, named = cells.joint([period])
    labels = in_time([label for label in named if label not in UNNAMED and label not in hidden])
    if len(labels) > MOST_PERIODS:
        raise ConfigError(
            f"`period` {period!r} has {len(labels):,} values, more than {MOST_PERIODS}; make months or years of it."
        )
    order = [labels.index(label) if label in labels else len(labels) for label in named]
    return labels, np.array(order, dtype=np.int64)[codes]


def in_time(labels: Sequence[str]) -> tuple[str, ...]:
    """Return periods in order: names of months and weekdays by the calendar, all others as they are sorted.

    >>> in_time(["April", "February", "January"])
    ('January', 'February', 'April')
    """
    for names in _CALENDARS:
        places = [_place(label, names) for label in labels]
        if None not in places:
            return tuple(label for _, label in sorted(zip(places, labels, strict=True)))
    return tuple(labels)


def _place(label: str, names: Sequence[str]) -> int | None:
    """Return which month or weekday a label names, in full or by its first three letters."""
    word = label.strip().casefold().rstrip(".")
    return next((at for at, name in enumerate(names) if word in (name, name[:3])), None)


def _order_notes(labels: Sequence[str]) -> Iterator[str]:
    """Say that the order of periods is that of the alphabet, where nothing else is known of it."""
    known = any(None not in [_place(label, names) for label in labels] for names in _CALENDARS)
    if not known and not all(label.strip()[:1].isdigit() for label in labels):
        yield (
            f"Periods are taken in alphabetical order, from {labels[0]} to {labels[-1]}; if that is not their order in "
            "time, what is said of drift does not hold: write them such as 2026-03."
        )


def _undated_notes(undated: int, period: str, hidden: Collection[str]) -> Iterator[str]:
    if hidden:
        yield f"{undated:,} people are in no period, since too few are of theirs: {', '.join(hidden)}."
    elif undated:
        yield f"{undated:,} people have no {period}, and are in no period."


def _series(
    table: Table, cells: Cells, model: str, spec: ParitySpec, periods: IntArray, number: int
) -> Iterator[_Series]:
    """Yield every headline rate of every group beside the reference group's."""
    states = [is_yes(cells, "outcome"), is_yes(cells, state_key(model))]
    for grouping, columns in table.groupings.items():
        groups, labels = cells.joint(columns)
        counts = np.zeros((len(labels), number + 1, 2, 2), dtype=np.int64)
        np.add.at(counts, (groups, np.minimum(periods, number), *states), cells.n)
        counts = counts[:, :number]
        sizes = {x: int(counts[at].sum()) for at, x in enumerate(labels) if x not in UNNAMED}
        large = [label for label, size in sizes.items() if size >= spec.min_count]
        if len(large) < 2:
            continue
        wanted = reference_of(spec.reference, grouping, labels)
        reference = wanted if wanted in large else max(large, key=sizes.__getitem__)
        for metric in _rates(table, spec):
            above, below = metric.coefficients()
            hits, n = (np.einsum("gpyd,yd->gp", counts, side) for side in (above[..., 0], below))
            for group in large:
                if group != reference:
                    one, other = labels.index(group), labels.index(reference)
                    yield _Series(model, grouping, metric, group, reference, n[one], hits[one], n[other], hits[other])


def _rates(table: Table, spec: ParitySpec) -> list[ParityMetric]:
    """Return the rates that are told in any case, of those that the audit computes."""
    known = [METRICS[name] for name in spec.metrics or METRICS if name in METRICS]
    usable = [row for row in known if row.method == "rate" and (row.headline or spec.metrics)]
    return [row for row in usable if table.roles.outcome is not None or "outcome" not in row.needs]


def is_yes(cells: Cells, key: str) -> IntArray:
    """Return 1 for the cells of people with the outcome, or whom a model selects, and 0 for the others."""
    if key not in cells.codes:
        return np.zeros(len(cells.n), dtype=np.int64)
    return np.array([label == str(YES) for label in cells.labels[key]], dtype=np.int64)[cells.codes[key]]


def _rows(
    one: _Series, labels: Sequence[str], confidence: float, gaps: tuple[FloatArray, FloatArray, FloatArray] | None
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


def _drift(one: _Series, labels: Sequence[str], gap: FloatArray, alpha: float) -> Drift:
    """Say whether the gap of some period differs beyond chance from that of the periods before it."""
    change, limits = gap_drift(one.hits, one.n, one.other_hits, one.other_n, alpha)
    place: dict[str, Any] = {"group": one.group, "reference": one.reference}
    told = {"where": f"{one.model}, by {one.grouping}", "title": one.metric.title_in_sentence, **place}
    place |= {"model": one.model, "grouping": one.grouping, "metric": one.metric.name}
    beyond = np.flatnonzero((limits.low > 0) | (limits.high < 0))
    if len(beyond):
        first, at = int(beyond[0]), int(beyond[-1])
        place |= {"period": labels[at], "first_period": labels[first], "change": float(change[at])}
        place |= {"low": finite(limits.low[at]), "high": finite(limits.high[at])}
        told |= {
            "before": float(gap[first] - change[first]),
            "now": _mean_gap(one, gap, first),
            "period": labels[first],
        }
    sentence_id = "gap_drifted" if len(beyond) else "one_period" if np.isnan(change).all() else "no_drift_shown"
    headline = render(sentence_id, told, SENTENCES)
    return Drift(**place, drifted=len(beyond) > 0, sentence_id=sentence_id, headline=headline)


def _mean_gap(one: _Series, gap: FloatArray, first: int) -> float:
    """Return the mean gap from a period on, by the weights of Mantel and Haenszel, as before it."""
    n, m = one.n[first:], one.other_n[first:]
    kept = (n > 0) & (m > 0)
    weights = n[kept] * m[kept] / (n[kept] + m[kept])
    return float(np.average(gap[first:][kept], weights=weights))


# The section ---------------------------------------------------------------------------------------------------------


def section(extra: Extra) -> Section:
    """Return the part of the report: what drifted, charts of the gaps by period, and the numbers."""
    drifts, periods = extra.tables["drifts"], extra.tables["periods"]
    confidence = extra.settings["confidence"]
    drifted = [drift for drift in drifts if drift.drifted]
    told = [drift.headline for drift in drifted] or [
        f"None of {len(drifts)} gaps has drifted beyond chance by {extra.settings['period']}."
    ]
    return Section(
        "Over time",
        f"Has a gap drifted, by {extra.settings['period']}, beyond chance?",
        (*_figures(extra, drifted), _drift_table(drifts), _period_table(periods, confidence)),
        tuple(_methods(extra)),
        notes=(*told, *extra.notes),
        caveats=(
            (
                "Drift",
                "It says that a gap was not the same in all periods: whether it goes one way, comes back, or only "
                "varies from period to period, the chart shows and the test does not tell.",
            ),
        ),
    )


def _figures(extra: Extra, drifted: Sequence[Drift]) -> Iterator[Figure]:
    """Yield a figure for each grouping: a panel a model and metric, those that drifted first, then the largest gaps."""
    for grouping in dict.fromkeys(row.grouping for row in extra.tables["periods"]):
        told = [drift for drift in drifted if drift.grouping == grouping]
        beyond = {(drift.metric, drift.model) for drift in told}
        panels = _by_place(row for row in extra.tables["periods"] if row.grouping == grouping)
        ranked = sorted(panels, key=lambda place: (place not in beyond, *_size(panels[place])))
        shows = _how_many(extra, grouping, len(told))
        yield Figure(
            f"Gaps over time, by {grouping}",
            f"Points: each group minus {panels[ranked[0]][0].reference}, period by period; the dashed line is no gap. "
            "Lines: limits that hold for all periods and all gaps together, also for periods still to come. Models "
            "share an axis. Where names of periods would collide, some are left out; the table has all."
            f"{_left_out(ranked[_MOST_PANELS:])}",
            " ".join(drift.headline for drift in told) or shows,
            tuple(_panel(panels[place], _axis(panels, place[0])) for place in ranked[:_MOST_PANELS]),
            shows,
            sizes=_people(extra.tables["periods"], grouping),
        )


def _by_place(periods: Iterable[Period]) -> dict[tuple[str, str], list[Period]]:
    """Return the gaps of each metric and model."""
    panels: dict[tuple[str, str], list[Period]] = {}
    for row in periods:
        if row.reference is not None:
            panels.setdefault((row.metric, row.model), []).append(row)
    return panels


def _how_many(extra: Extra, grouping: str, number: int) -> str:
    total = sum(drift.grouping == grouping for drift in extra.tables["drifts"])
    have = "has" if number < 2 else "have"
    return f"{number or 'None'} of {total} gaps by {grouping} {have} drifted beyond chance."


def _axis(panels: Mapping[tuple[str, str], Sequence[Period]], metric: str) -> tuple[float, float]:
    """Return the ends of the axis, in points, that all models share in one metric."""
    alike = [row for place, rows in panels.items() if place[0] == metric for row in rows]
    ends = [100 * end for row in alike for end in (row.low, row.high, row.gap) if end is not None]
    return min([*ends, 0.0]), max([*ends, 0.0])


def _size(rows: Sequence[Period]) -> tuple[float, float]:
    """Return how far the limits of some period are from no gap, then how large a gap is; the largest sorts first."""
    clear = max((max(row.low or 0.0, -(row.high or 0.0)) for row in rows), default=0.0)
    return -max(clear, 0.0), -max((abs(row.gap or 0.0) for row in rows), default=0.0)


def _left_out(places: Sequence[tuple[str, str]]) -> str:
    """Say which panels there is no room for."""
    if not places:
        return ""
    names = [f"{model}, {METRICS[metric].title_in_sentence}" for metric, model in places]
    more = len(names) - _MOST_NAMED
    named = "; ".join(names[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
    return f" Not drawn, as none has drifted or their gaps are smaller: {named}."


def _people(periods: Sequence[Period], grouping: str) -> dict[str, int]:
    """Return how many people each group has in all periods, at most: a rate may be of some of them."""
    sizes = Counter[tuple[str, str, str]]()
    for row in periods:
        if row.grouping == grouping:
            sizes[row.group, row.model, row.metric] += row.n
    return {group: max(n for place, n in sizes.items() if place[0] == group) for group, *_ in sizes}


def _panel(rows: Sequence[Period], domain: tuple[float, float]) -> Curve:
    """Return the panel of one model and metric: a line for each group, groups side by side in every period."""
    groups, periods = (list(dict.fromkeys(getattr(row, name) for row in rows)) for name in ("group", "period"))
    aside = {group: (at - (len(groups) - 1) / 2) * 0.7 / len(groups) for at, group in enumerate(groups)}
    points = [
        {
            "x": periods.index(row.period) + aside[row.group],
            "y": _points(row.gap),
            "low": _points(row.low),
            "high": _points(row.high),
            "series": row.group,
        }
        for row in rows
    ]
    title = f"{rows[0].model}: {METRICS[rows[0].metric].title_in_sentence}"
    options: dict[str, Any] = {"names": tuple(periods), "domain": domain, "level": 0.0, "width": 2 * PANEL_WIDTH}
    return curve(points, title=title, x="", y="Gap, points", intervals="bars", points=True, **options)


def _points(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _drift_table(drifts: Sequence[Drift]) -> DisplayTable:
    columns = {
        "Model": lambda r: r.model,
        "Grouping": lambda r: r.grouping,
        "Metric": lambda r: METRICS[r.metric].title,
        "Group": lambda r: r.group,
        "Compared with": lambda r: r.reference,
        "Drift beyond chance": lambda r: "yes" if r.drifted else "not shown",
        "First seen": lambda r: r.first_period,
        "Last seen": lambda r: r.period,
        "Change then, points": lambda r: Number(r.change, "signed_points"),
        "Limits": lambda r: Range(r.low, r.high, "signed_points"),
    }
    return make_table("Which gaps have drifted", columns, drifts, folded=len(drifts) > _MOST_PANELS)


def _period_table(periods: Sequence[Period], confidence: float) -> DisplayTable:
    columns = {
        "Model": lambda r: r.model,
        "Grouping": lambda r: r.grouping,
        "Metric": lambda r: METRICS[r.metric].title,
        "Group": lambda r: r.group,
        "Period": lambda r: r.period,
        "n": lambda r: Number(r.n, "count"),
        "Rate": lambda r: Number(r.value, "percent"),
        "Gap, points": lambda r: Number(r.gap, "signed_points"),
        "Limits of the gap": lambda r: Range(r.low, r.high, "signed_points"),
        "Rate so far": lambda r: Number(r.mean, "percent"),
        f"{show_confidence(confidence)} limits at all times": lambda r: Range(r.mean_low, r.mean_high, "percent"),
    }
    return make_table("Every period", columns, periods, folded=True)


def _methods(extra: Extra) -> Iterator[Method]:
    alpha = show_confidence(1 - extra.settings["confidence"])
    yield Method(
        "Gaps period by period",
        f"The k-th period spends alpha / (k (k + 1)) of alpha = {alpha} / {extra.settings['gaps']} (so many gaps are "
        "told), with exact limits of both rates combined by MOVER. All limits of all periods hold together with the "
        "confidence stated, however many periods there are and will be, and whether rates are constant or not. Within "
        "a period that is not complete nothing is promised.",
        "Clopper and Pearson 1934, Biometrika 26; Zou and Donner 2008, Statistics in Medicine 27",
    )
    yield Method(
        "Drift",
        "The gap of each period is held against the mean of the gaps before it (Mantel and Haenszel's weights), again "
        "with alpha / (k (k + 1)) for the k-th comparison, exact limits of all rates, and MOVER. Where a gap is the "
        "same in all periods, drift is told with a chance of at most alpha for all gaps together, however often one "
        "looks; rates may move as long as they move together. benchmarks/drift_level.py shows how often drift is told "
        "where there is none.",
        "Mantel and Haenszel 1959, JNCI 22; Zou and Donner 2008, Statistics in Medicine 27",
    )
    yield Method(
        "Rates so far",
        "A confidence sequence (beta-binomial mixture): for a rate that is constant it holds at all times together, "
        "each group on its own. For a rate that drifts its limits are those of the mean so far, and say nothing of the "
        "rate today; they must not be intersected over time.",
        "Robbins 1970, Annals of Mathematical Statistics 41; Howard et al. 2021, Annals of Statistics 49",
    )
