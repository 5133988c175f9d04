"""The charts of the agreement audit: statistics by group, and why kappa and PABAK differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.audits.agreement.compare import OVERALL
from evenhand.audits.agreement.statistics import statistics_for
from evenhand.charts.look import PALETTE, PANEL_WIDTH, data, series_scale

if TYPE_CHECKING:
    from evenhand.audits.agreement.result import AgreementResult

PARTS = ("prevalence", "bias")
MOST_DRAWN = 4
"""Statistics that are drawn, the first ones; all of them are in the table."""


def group_panels(result: AgreementResult, grouping: str | None) -> list[Any]:
    """Return one panel a statistic that can be compared: everybody and every group, with intervals."""
    import altair as alt

    known = statistics_for(result.scale, len(result.spec.raters))
    panels = []
    names = list(dict.fromkeys(r.statistic for r in result.statistics if known[r.statistic].compared))
    for name in names[:MOST_DRAWN]:
        own = [r for r in result.statistics if r.statistic == name and r.grouping in (None, grouping)]
        rows = [
            {"group": r.group, "value": r.value, "low": r.low, "high": r.high,
             "colour": PALETTE[6] if r.group == OVERALL else PALETTE[0]}
            for r in own
            if r.value is not None
        ]  # fmt: skip
        if not rows:
            continue
        order = [r.group for r in own]
        base = alt.Chart(data(rows)).encode(
            y=alt.Y("group:N", sort=order, title=None), color=alt.Color("colour:N", scale=None)
        )
        axis = alt.Axis(tickCount=3, labelOverlap=True)
        x = alt.X("value:Q", title=None, scale=alt.Scale(zero=False), axis=axis)
        ends = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=None), x2="high:Q")
        dots = base.mark_point(filled=True, size=60, opacity=1).encode(x=x)
        panels.append((ends + dots).properties(title=known[name].title, width=PANEL_WIDTH - 60, height=22 * len(order)))
    return panels


def part_panel(result: AgreementResult, grouping: str | None) -> Any:
    """Return what prevalence and bias take off kappa against PABAK, in each group."""
    import altair as alt

    names = {"prevalence_part": PARTS[0], "bias_part": PARTS[1]}
    own = [r for r in result.statistics if r.statistic in names and r.grouping in (None, grouping)]
    rows = [{"group": r.group, "part": names[r.statistic], "value": r.value} for r in own if r.value is not None]
    order = list(dict.fromkeys(r.group for r in own))
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
