"""The charts of the agreement audit: statistics by group, gaps, and why kappa and PABAK differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.audits.agreement.compare import row_label
from evenhand.audits.agreement.statistics import statistics_for
from evenhand.charts.look import PALETTE, PANEL_WIDTH, data, series_scale

if TYPE_CHECKING:
    from evenhand.audits.agreement.result import AgreementResult

PARTS = ("prevalence", "bias")
MOST_DRAWN = 4
"""Statistics that are drawn; all of them are in the table."""


def group_panels(result: AgreementResult, grouping: str | None) -> list[Any]:
    """Return one panel a statistic that can be compared: everybody and every group, with intervals."""
    known = statistics_for(result.scale, len(result.spec.raters))
    panels = []
    for name in _drawn(result):
        own = [r for r in result.statistics if r.statistic == name and r.grouping in (None, grouping)]
        rows = [
            {
                "group": row_label(r.grouping, r.group),
                "value": r.value,
                "low": r.low,
                "high": r.high,
                "colour": PALETTE[6] if r.grouping is None else PALETTE[0],
                "fill": "transparent" if r.low is None else PALETTE[6] if r.grouping is None else PALETTE[0],
            }
            for r in own
            if r.value is not None
        ]
        if rows:
            order = [row_label(r.grouping, r.group) for r in own]
            panels.append(_dots_and_lines(rows, order).properties(title=known[name].title))
    return panels


def gap_panels(result: AgreementResult, grouping: str) -> list[Any]:
    """Return one panel a statistic that is told: each group's gap to the reference group, and a line at 0."""
    import altair as alt

    known = statistics_for(result.scale, len(result.spec.raters))
    panels = []
    for name in _drawn(result):
        own = [r for r in result.gaps if (r.statistic, r.grouping, r.against) == (name, grouping, "reference")]
        rows = [
            {
                "group": r.group,
                "value": r.value,
                "low": r.all_low,
                "high": r.all_high,
                "colour": PALETTE[0],
                "fill": "transparent" if r.all_low is None else PALETTE[0],
            }
            for r in own
            if r.value is not None
        ]
        if rows and (known[name].headline or result.spec.statistics is not None):
            zero = alt.Chart(data([{"zero": 0.0}])).mark_rule(color=PALETTE[6], strokeDash=[4, 3]).encode(x="zero:Q")
            dots = _dots_and_lines(rows, [r.group for r in own])
            panels.append((zero + dots).properties(title=known[name].title))
    return panels


def _drawn(result: AgreementResult) -> list[str]:
    """Return the statistics that are drawn, those that are told first; agreement itself is PABAK on another scale."""
    known = statistics_for(result.scale, len(result.spec.raters))
    names = dict.fromkeys(r.statistic for r in result.statistics if known[r.statistic].compared)
    if "pabak" in names:
        names.pop("agreement", None)
    return sorted(names, key=lambda name: not known[name].headline)[:MOST_DRAWN]


def _dots_and_lines(rows: list[dict[str, Any]], order: list[str]) -> Any:
    """Return values with their intervals, one line a group; what has no interval is a hollow dot."""
    import altair as alt

    base = alt.Chart(data(rows)).encode(
        y=alt.Y("group:N", sort=order, title=None), color=alt.Color("colour:N", scale=None)
    )
    x = alt.X(
        "value:Q",
        title=None,
        scale=alt.Scale(zero=False),
        axis=alt.Axis(tickCount=3, labelOverlap=True, labelFlush=False),
    )
    ends = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=None), x2="high:Q")
    dots = base.mark_point(size=60, opacity=1).encode(x=x, fill=alt.Fill("fill:N", scale=None))
    return (ends + dots).properties(width=PANEL_WIDTH - 60, height=22 * len(order))


def part_panel(result: AgreementResult, grouping: str | None) -> Any:
    """Return what prevalence and bias take off kappa against PABAK, in each group."""
    import altair as alt

    names = {"prevalence_part": PARTS[0], "bias_part": PARTS[1]}
    own = [r for r in result.statistics if r.statistic in names and r.grouping in (None, grouping)]
    rows = [
        {"group": row_label(r.grouping, r.group), "part": names[r.statistic], "value": r.value}
        for r in own
        if r.value is not None
    ]
    order = list(dict.fromkeys(row_label(r.grouping, r.group) for r in own))
    return (
        alt.Chart(data(rows))
        .mark_bar(height=11)
        .encode(
            x=alt.X("value:Q", title="PABAK less kappa", axis=alt.Axis(tickCount=4, labelOverlap=True)),
            y=alt.Y("group:N", sort=order, title=None),
            color=alt.Color("part:N", scale=series_scale(PARTS, PALETTE), legend=alt.Legend(title=None)),
        )
        .properties(title="PABAK less kappa", width=PANEL_WIDTH - 60, height=22 * len(order))
    )
