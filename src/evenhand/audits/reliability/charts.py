"""The charts of the reliability audit: curves by group, gaps, why kappa and PABAK differ, features, models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evenhand.audits.reliability.words import TITLES
from evenhand.charts.look import PALETTE, PANEL_WIDTH, SHAPES, data, series_scale

if TYPE_CHECKING:
    from evenhand.audits.reliability.records import CurveRecord, GapRecord
    from evenhand.audits.reliability.result import ReliabilityResult

Place = tuple[str, str, str]
"""Model, setting and grouping."""

_HEIGHT = 190
_LEVEL = "Share of entries that go wrong"
_MOST_BARS = 12
PARTS = ("Cohen's kappa", "with prevalence", "with bias", "PABAK")
"""The lines of the chart of the paper's figure 2."""


def places(result: ReliabilityResult) -> list[Place]:
    """Return the trials of a result."""
    return list(dict.fromkeys((record.model, record.setting, record.grouping) for record in result.curves))


def reference_gaps(result: ReliabilityResult) -> list[GapRecord]:
    """Return the gaps to the reference group, which are drawn; the largest of all pairs is in the table."""
    return [record for record in result.gaps if record.against == "reference"]


def curve_panels(result: ReliabilityResult, place: Place) -> list[Any]:
    """Return one panel a statistic: a line for each group, with bands for other people."""
    return [_lines(_of(result, place, name), TITLES[name], TITLES[name]) for name in result.spec.statistics]


def companion_panels(result: ReliabilityResult, place: Place) -> list[Any]:
    """Return the error and the spread of scores, which ICC is made of."""
    return [
        _lines(_of(result, place, name), TITLES[name], "Scores, squared")
        for name in ("mean_squared_error", "variance_second")
    ]


def _of(result: ReliabilityResult, place: Place, statistic: str) -> list[CurveRecord]:
    return [r for r in result.curves if (r.model, r.setting, r.grouping) == place and r.statistic == statistic]


def _lines(records: Sequence[CurveRecord], title: str, axis: str) -> Any:
    import altair as alt

    rows = [
        {"group": r.group, "level": r.noise_level, "value": r.value, "low": r.low, "high": r.high}
        for r in records
        if r.value is not None
    ]
    groups = list(dict.fromkeys(r.group for r in records))
    base = alt.Chart(data(rows)).encode(x=_x(), color=_colour("group", groups))
    y = alt.Y("value:Q", title=axis, scale=alt.Scale(zero=False), axis=_few())
    band = base.mark_area(opacity=0.16).encode(y=alt.Y("low:Q", title=axis), y2="high:Q")
    line = base.mark_line(strokeWidth=1.8).encode(y=y, strokeDash=alt.StrokeDash("group:N", sort=groups, legend=None))
    return (band + line).properties(title=title, width=PANEL_WIDTH, height=_HEIGHT)


def part_panels(result: ReliabilityResult, place: Place) -> list[Any]:
    """Return one panel a group: kappa and PABAK with bands, and kappa with the part that each index makes."""
    import altair as alt

    own = [r for r in result.curves if (r.model, r.setting, r.grouping) == place and r.value is not None]
    found = {(r.statistic, r.group, r.noise_level): r for r in own}
    panels = []
    for group in dict.fromkeys(r.group for r in own):
        ends, parts = [], []
        for (statistic, of, level), record in found.items():
            if of != group or statistic not in ("kappa", "pabak"):
                continue
            ends.append(
                {
                    "line": TITLES[statistic],
                    "level": level,
                    "value": record.value,
                    "low": record.low,
                    "high": record.high,
                }
            )
            if statistic == "kappa":
                for name, part in (("with prevalence", "prevalence_part"), ("with bias", "bias_part")):
                    added = (record.value or 0.0) + (found[part, group, level].value or 0.0)
                    parts.append({"line": name, "level": level, "value": added})
        colour = _colour("line", PARTS)
        y = alt.Y("value:Q", title="Agreement of decisions", scale=alt.Scale(zero=False), axis=_few())
        wide, thin = (alt.Chart(data(rows)).encode(x=_x(), color=colour) for rows in (ends, parts))
        band = wide.mark_area(opacity=0.14).encode(y=alt.Y("low:Q", title="Agreement of decisions"), y2="high:Q")
        lines = wide.mark_line(strokeWidth=4.5, opacity=0.45).encode(y=y)
        dashes = thin.mark_line(strokeWidth=1.8, strokeDash=[5, 3]).encode(y=y)
        panels.append((band + lines + dashes).properties(title=group, width=PANEL_WIDTH, height=_HEIGHT))
    return panels


def gap_panels(result: ReliabilityResult, place: Place) -> list[Any]:
    """Return one panel a statistic: each group less the reference, with bands that hold at all levels together."""
    import altair as alt

    panels = []
    for name in result.spec.statistics:
        own = [g for g in reference_gaps(result) if (g.model, g.setting, g.grouping, g.statistic) == (*place, name)]
        rows = [
            {"group": g.group, "level": g.noise_level, "value": g.value, "low": g.low, "high": g.high}
            for g in own
            if g.noise_level is not None and g.value is not None
        ]
        groups = list(dict.fromkeys(g.group for g in own))
        base = alt.Chart(data(rows)).encode(x=_x(), color=_colour("group", groups, _groups(result, place[2])))
        y = alt.Y("value:Q", title="Gap", axis=_few())
        band = base.mark_area(opacity=0.16).encode(y=alt.Y("low:Q", title="Gap"), y2="high:Q")
        line = base.mark_line(strokeWidth=1.8).encode(y=y)
        panels.append((_zero("y", "Gap") + band + line).properties(title=TITLES[name], width=PANEL_WIDTH, height=150))
    return panels


def attribution_panels(result: ReliabilityResult, place: Place) -> list[Any]:
    """Return bars of what the mistakes in each feature add to the gap, a panel for each statistic and group."""
    import altair as alt

    panels = []
    own = [r for r in result.attribution if (r.model, r.setting, r.grouping) == place and r.value]
    for name, group in dict.fromkeys((r.statistic, r.group) for r in own):
        records = [r for r in own if (r.statistic, r.group) == (name, group)]
        records.sort(key=lambda r: -abs(r.value or 0.0))
        rows = [
            {
                "feature": r.feature,
                "value": r.value,
                "low": r.replicate_low,
                "high": r.replicate_high,
                "colour": PALETTE[0] if (r.value or 0.0) > 0 else PALETTE[1],
            }
            for r in records[:_MOST_BARS]
        ]
        order, title = [r.feature for r in records[:_MOST_BARS]], f"{group} less {records[0].reference}"
        base = alt.Chart(data(rows)).encode(y=alt.Y("feature:N", sort=order, title=None))
        bars = base.mark_bar(height=11).encode(
            x=alt.X("value:Q", title=title, axis=_few(3)), color=alt.Color("colour:N", scale=None)
        )
        ends = base.mark_rule(strokeWidth=1.4, color="currentColor", opacity=0.7).encode(x="low:Q", x2="high:Q")
        height = 19 * len(rows)
        panels.append(
            (_zero("x", title) + bars + ends).properties(title=TITLES[name], width=PANEL_WIDTH - 60, height=height)
        )
    return panels


def model_panels(result: ReliabilityResult, setting: str, grouping: str) -> list[Any]:
    """Return one panel a statistic: every model's gap averaged over noise levels, with its interval."""
    own = [g for g in reference_gaps(result) if (g.setting, g.grouping, g.noise_level) == (setting, grouping, None)]
    return [
        _dots(result, [g for g in own if g.statistic == name], TITLES[name], "Gap", zero=True)
        for name in result.spec.statistics
    ]


def top_panels(result: ReliabilityResult, setting: str, grouping: str, noise_level: float) -> list[Any]:
    """Return one panel a statistic: every model and group at one noise level, with its interval."""
    own = [r for r in result.curves if (r.setting, r.grouping, r.noise_level) == (setting, grouping, noise_level)]
    return [
        _dots(result, [r for r in own if r.statistic == name], TITLES[name], "Value", zero=False)
        for name in result.spec.statistics
    ]


def _dots(
    result: ReliabilityResult, records: Sequence[CurveRecord | GapRecord], title: str, axis: str, *, zero: bool
) -> Any:
    import altair as alt

    rows = [
        {"model": r.model, "group": r.group, "value": r.value, "low": r.low, "high": r.high}
        for r in records
        if r.value is not None
    ]
    if any(row["low"] is None and row["high"] is None for row in rows):
        axis += " (a dot without a line has no interval)"
    groups, models = list(dict.fromkeys(r.group for r in records)), list(result.spec.model)
    every = _groups(result, records[0].grouping) if records else groups
    base = alt.Chart(data(rows)).encode(
        y=alt.Y("model:N", sort=models, title=None),
        yOffset=alt.YOffset("group:N", sort=groups),
        color=_colour("group", groups, every),
    )
    x = alt.X("value:Q", title=axis, scale=alt.Scale(zero=False), axis=_few(3))
    ends = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2="high:Q")
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x, shape=alt.Shape("group:N", scale=series_scale(every, SHAPES), legend=_legend(groups))
    )
    layers = _zero("x", axis) + ends + dots if zero else ends + dots
    return layers.properties(title=title, width=PANEL_WIDTH - 40, height=max(24, 16 * len(groups)) * len(models))


def _x() -> Any:
    import altair as alt

    return alt.X("level:Q", title=_LEVEL, axis=alt.Axis(tickCount=4))


def _few(ticks: int = 4) -> Any:
    import altair as alt

    return alt.Axis(tickCount=ticks, labelOverlap=True)


def _legend(names: Sequence[str]) -> Any:
    import altair as alt

    return alt.Legend(title=None, columns=2, values=list(names)) if len(names) > 1 else None


def _groups(result: ReliabilityResult, grouping: str) -> list[str]:
    """Return all groups of a grouping: each has one colour in all figures, also where the reference is not drawn."""
    return list(dict.fromkeys(record.group for record in result.curves if record.grouping == grouping))


def _colour(field: str, names: Sequence[str], every: Sequence[str] | None = None) -> Any:
    import altair as alt

    return alt.Color(f"{field}:N", scale=series_scale(every or names, PALETTE), legend=_legend(names))


def _zero(side: str, title: str) -> Any:
    """Return the line of no gap; the title is that of the axis, which all layers share."""
    import altair as alt

    rule = alt.Chart(data([{"none": 0}])).mark_rule(strokeDash=[4, 3], color="currentColor", opacity=0.6)
    return rule.encode(y=alt.Y("none:Q", title=title)) if side == "y" else rule.encode(x=alt.X("none:Q", title=title))
