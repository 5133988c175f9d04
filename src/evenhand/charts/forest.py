"""The forest chart: values with their intervals, one row each, series side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.charts.look import PALETTE, PANEL_WIDTH, SHAPES, data, series_scale

MOST_ROWS = 24
"""Rows that a panel has room for."""


def forest(
    rows: Sequence[Mapping[str, Any]],
    *,
    title: str,
    order: Sequence[str] | None = None,
    series: Sequence[str] | None = None,
    percent: bool = False,
    zero: float | None = None,
    domain: tuple[float, float] | None = None,
    width: int = PANEL_WIDTH,
) -> Any:
    """Return one panel of values with intervals.

    Parameters
    ----------
    rows
        For each value its `label` (the row), `value`, `low`, `high`, and where there are several its `series`. A value
        without an interval is a hollow point.
    title
        The panel's title.
    order
        The labels, top first; by default as they come.
    series
        All series in order, so that each has its colour in every panel; by default as they come.
    percent
        Whether the axis is in percent.
    zero
        Where to draw the line of equality, if anywhere.
    domain
        The ends of the axis, where several panels share one; by default those of the values.
    width
        Of the plot, in pixels.
    """
    import altair as alt

    records = [{"series": "", **row} for row in rows if row["value"] is not None]
    series = list(series or dict.fromkeys(record["series"] for record in records))
    labels = list(order or dict.fromkeys(record["label"] for record in records))
    colours = dict(zip(series, (PALETTE[i % len(PALETTE)] for i in range(len(series))), strict=True))
    for record in records:
        record["fill"] = "transparent" if record.get("low") is None else colours[record["series"]]
    axis = alt.Axis(format="%" if percent else "~g", tickCount=4, title=None, labelOverlap=True)
    legend = alt.Legend(title=None) if len(series) > 1 else None
    scale = alt.Scale(zero=False) if domain is None else alt.Scale(domain=list(domain), nice=True)
    base = alt.Chart(data(records)).encode(
        y=alt.Y("label:N", sort=labels, title=None),
        yOffset=alt.YOffset("series:N", sort=series),
        color=alt.Color("series:N", sort=series, scale=series_scale(series, PALETTE), legend=legend),
    )
    rule = base.mark_rule(strokeWidth=2, opacity=0.75).encode(x=alt.X("low:Q", axis=axis, scale=scale), x2="high:Q")
    point = base.mark_point(size=55, opacity=1).encode(
        x=alt.X("value:Q", axis=axis, scale=scale),
        shape=alt.Shape("series:N", sort=series, scale=series_scale(series, SHAPES), legend=legend),
        fill=alt.Fill("fill:N", scale=None),
    )
    layers = [rule, point]
    if zero is not None:
        line = alt.Chart(data([{"zero": zero}])).mark_rule(color=PALETTE[6], strokeDash=[4, 3])
        layers.insert(0, line.encode(x="zero:Q"))
    step = max(26, 11 * len(series) + 8)
    return alt.layer(*layers).properties(title=title, width=width, height=alt.Step(step, **{"for": "position"}))
