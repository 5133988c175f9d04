"""The report section on gaps over time: drifts, charts by period, and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evenhand.after.messages import say
from evenhand.after.records import Drift, Extra, Period
from evenhand.audits import REGISTRY
from evenhand.charts import PANEL_WIDTH, Curve, curve
from evenhand.core.display import DisplayTable, Figure, Number, Range, Section, make_table
from evenhand.core.methods import method
from evenhand.messages import Message
from evenhand.messages.formats import show, show_confidence

_MOST_PANELS, _MOST_NAMED = 12, 6
_MOST_TOGETHER = 4
"""The maximum number of groups in one panel; with more groups, changed and large groups have a panel each."""


_METHODS = tuple(method("evenhand.after", key) for key in ("drift", "so_far"))


class _PanelKey(NamedTuple):
    """The coordinates of a panel; a panel without a group shows all groups."""

    audit: str
    metric: str
    model: str
    group: str | None = None

    def name(self, after_model: str = ": ") -> str:
        """Return the name of the panel: model, metric and group."""
        of = "" if self.group is None else f", {self.group}"
        return f"{self.model}{after_model}{REGISTRY[self.audit].metrics[self.metric].title_in_sentence}{of}"


def section(extra: Extra) -> Section:
    """Return the report section: drifts, charts of the gaps by period, and tables."""
    drifts, periods = extra.tables["drifts"], extra.tables["periods"]
    confidence = extra.settings["confidence"]
    alpha = show_confidence(1 - confidence)
    drifted = [drift for drift in drifts if drift.drifted]
    sentences = [drift.headline for drift in drifted] or [_no_drift_message(drifts, extra.settings["period"])]
    return Section(
        "Over time",
        say("over_time_question", period=extra.settings["period"]),
        (*_figures(extra, drifted), _drift_table(drifts), _period_table(periods, confidence)),
        (method("evenhand.after", "gaps", alpha=alpha, gaps=extra.settings["gaps"]), *_METHODS),
        notes=(*sentences, *extra.notes),
        caveats=(
            (
                "Drift",
                "It says that a gap was not the same in all periods: whether it goes one way, comes back, or only "
                "varies from period to period, the gaps of the periods show; the test does not.",
            ),
        ),
    )


def _no_drift_message(drifts: Sequence[Drift], period: str) -> Message:
    """Return a message that no drift was shown, and which change could have been; this does not prove its absence."""
    least = sorted(drift.least for drift in drifts if drift.least is not None)
    key = "not_compared" if not least else "none_drifted" if len(drifts) > 1 else "not_drifted"
    ends = {"least": show(least[0], "points"), "most": show(least[-1], "points")} if least else {}
    return say(key, n=len(drifts), period=period, **ends)


def _figures(extra: Extra, drifted: Sequence[Drift]) -> Iterator[Figure]:
    """Yield a figure for each grouping, with drifted gaps first and then the largest gaps."""
    for grouping in dict.fromkeys(row.grouping for row in extra.tables["periods"]):
        drifts_here = [drift for drift in drifted if drift.grouping == grouping]
        beyond = {_PanelKey(d.audit, d.metric, d.model, group) for d in drifts_here for group in (None, d.group)}
        panels = _panels_by_key(row for row in extra.tables["periods"] if row.grouping == grouping)
        ranked, most = _ranked(panels, beyond)
        sizes = _people_by_group(extra.tables["periods"], grouping)
        reference = str(panels[ranked[0]][0].reference)
        shows = _how_many(extra, grouping, len(drifts_here))
        yield Figure(
            f"Gaps over time, by {grouping}",
            f"Points: each group minus {reference} (n = {sizes.get(reference, 0):,}), period by period; the level "
            "dashed line is no gap, the upright one the clearest change, with the mean before and since. "
            "Lines: limits that hold for all periods and all gaps together, also for periods still to come. Panels "
            "of one metric share an axis. Where names of periods would collide, some are left out; the table has all."
            f"{_omitted_panels(ranked[most:])}",
            " ".join(drift.headline.text for drift in drifts_here) or shows.text,
            tuple(_panel(key, panels[key], _axis(panels, key.metric), drifts_here) for key in ranked[:most]),
            shows,
            sizes=sizes,
        )


def _panels_by_key(periods: Iterable[Period]) -> dict[_PanelKey, list[Period]]:
    """Return the gaps of each metric and model, split by group if there are one or many groups."""
    rows = [row for row in periods if row.reference is not None]
    apart = not 1 < len({row.group for row in rows}) <= _MOST_TOGETHER
    panels: dict[_PanelKey, list[Period]] = {}
    for row in rows:
        panels.setdefault(_PanelKey(row.audit, row.metric, row.model, row.group if apart else None), []).append(row)
    return panels


def _ranked(panels: Mapping[_PanelKey, Sequence[Period]], beyond: Collection[_PanelKey]) -> tuple[list[_PanelKey], int]:
    """Return the panels in order, drifted gaps first, and the number of panels to draw."""
    if len({key.group for key in panels}) == 1:
        return sorted(panels, key=lambda key: (key not in beyond, *_sort_key(panels[key]))), _MOST_PANELS
    ranked = sorted(panels, key=lambda key: (key not in beyond, -sum(row.n for row in panels[key])))
    changed = sum(key in beyond for key in panels)
    return ranked, min(max(changed, _MOST_TOGETHER), _MOST_PANELS)


def _how_many(extra: Extra, grouping: str, number: int) -> Message:
    total = sum(drift.grouping == grouping for drift in extra.tables["drifts"])
    if not number:
        return say("figure_no_drift", n=total, grouping=grouping)
    if total == 1:
        return say("figure_gap_drifted", grouping=grouping)
    return say("figure_gaps_drifted", n=number, total=total, grouping=grouping)


def _axis(panels: Mapping[_PanelKey, Sequence[Period]], metric: str) -> tuple[float, float]:
    """Return the ends of the axis in points, shared by all models of a metric."""
    same_axis = [row for key, rows in panels.items() if key.metric == metric for row in rows]
    ends = [100 * end for row in same_axis for end in (row.low, row.high, row.gap) if end is not None]
    return min([*ends, 0.0]), max([*ends, 0.0])


def _sort_key(rows: Sequence[Period]) -> tuple[float, float]:
    """Return a sort key by the limits' largest distance from no gap, and then by the gap's size.

    The largest distance comes first.
    """
    clear = max((max(row.low or 0.0, -(row.high or 0.0)) for row in rows), default=0.0)
    return -max(clear, 0.0), -max((abs(row.gap or 0.0) for row in rows), default=0.0)


def _omitted_panels(places: Sequence[_PanelKey]) -> str:
    """Return a sentence that names the panels omitted from the figure."""
    if not places:
        return ""
    names = [key.name(", ") for key in places]
    more = len(names) - _MOST_NAMED
    named = "; ".join(names[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
    return f" Not drawn, as none has drifted and their gaps or groups are smaller: {named}."


def _people_by_group(periods: Sequence[Period], grouping: str) -> dict[str, int]:
    """Return the number of people in each group over all periods, the largest number for any rate."""
    sizes = Counter[tuple[str, str, str]]()
    for row in periods:
        if row.grouping == grouping:
            sizes[row.group, row.model, row.metric] += row.n
    return {group: max(n for key, n in sizes.items() if key[0] == group) for group, *_ in sizes}


def _panel(key: _PanelKey, rows: Sequence[Period], domain: tuple[float, float], drifts: Sequence[Drift]) -> Curve:
    """Return a panel with one line per group, groups side by side in each period, and a line at the clearest change."""
    groups, periods = (list(dict.fromkeys(getattr(row, name) for row in rows)) for name in ("group", "period"))
    aside = {group: (position - (len(groups) - 1) / 2) * 0.7 / len(groups) for position, group in enumerate(groups)}
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
    counted = "" if key.group is None else f" (n = {sum(row.n for row in rows):,})"
    options: dict[str, Any] = {
        "names": tuple(periods),
        "domain": domain,
        "level": 0.0,
        "width": 2 * PANEL_WIDTH,
        "upright": _change_at(key, periods, drifts),
        "means": tuple(_means(key, periods, drifts)),
    }
    title = f"{key.name()}{counted}"
    return curve(points, title=title, x="", y="Gap, points", intervals="bars", points=True, **options)


def _change_at(key: _PanelKey, periods: Sequence[str], drifts: Sequence[Drift]) -> float | None:
    """Return the x position just before a panel's clearest change, or None if nothing changed."""
    changes = [d for d in drifts if (d.audit, d.metric, d.model) == key[:3] and key.group in (None, d.group)]
    clearest = max(changes, key=lambda drift: max(drift.low or 0.0, -(drift.high or 0.0)), default=None)
    return None if clearest is None else periods.index(str(clearest.changed_from)) - 0.5


def _means(
    key: _PanelKey, periods: Sequence[str], drifts: Sequence[Drift]
) -> Iterator[tuple[str, float, float, float]]:
    """Yield the mean gaps before and since the changes in a panel, in points."""
    for drift in drifts:
        if (drift.audit, drift.metric, drift.model) != key[:3] or key.group not in (None, drift.group):
            continue
        start, end = (periods.index(str(period)) for period in (drift.changed_from, drift.changed_to))
        for first, last, gap in ((0, start - 1, drift.before), (start, end, drift.since)):
            if gap is not None:
                yield drift.group, first - 0.4, last + 0.4, 100 * gap


def drift_panel(extra: Extra, drift: Drift) -> Curve:
    """Return the panel of one gap, with a line at its change."""
    rows = [
        row
        for row in extra.tables["periods"]
        if (row.audit, row.metric, row.model, row.grouping) == (drift.audit, drift.metric, drift.model, drift.grouping)
        and (row.group, row.reference) == (drift.group, drift.reference)
    ]
    key = _PanelKey(drift.audit, drift.metric, drift.model, drift.group)
    return _panel(key, rows, _axis({key: rows}, drift.metric), [drift])


def _points(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _drift_table(drifts: Sequence[Drift]) -> DisplayTable:
    columns = {
        "Model": lambda r: r.model,
        "Grouping": lambda r: r.grouping,
        "Metric": lambda r: REGISTRY[r.audit].metrics[r.metric].title,
        "Group": lambda r: r.group,
        "Compared with": lambda r: r.reference,
        "Drift beyond chance": lambda r: "yes" if r.drifted else "not shown",
        "First seen": lambda r: r.first_period,
        "Changed from": lambda r: r.changed_from,
        "Changed to": lambda r: r.changed_to,
        "Change, points": lambda r: Number(r.change, "signed_points"),
        "Limits": lambda r: Range(r.low, r.high, "signed_points"),
        "Least change to be shown, points": lambda r: Number(r.least, "points"),
    }
    return make_table("Which gaps have drifted", columns, drifts, folded=len(drifts) > _MOST_PANELS)


def _period_table(periods: Sequence[Period], confidence: float) -> DisplayTable:
    columns = {
        "Model": lambda r: r.model,
        "Grouping": lambda r: r.grouping,
        "Metric": lambda r: REGISTRY[r.audit].metrics[r.metric].title,
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
