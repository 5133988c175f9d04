"""The curve chart: a number along an axis, one line a series, with intervals as bands or bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evenhand.charts.look import PALETTE, PANEL_WIDTH, SHAPES, data, series_scale

MOST_LINES = 6
"""Lines that a reader can tell apart."""


def curve(
    rows: Sequence[Mapping[str, Any]],
    *,
    title: str,
    x: str,
    y: str,
    order: Sequence[str] | None = None,
    intervals: Literal["band", "bars", "none"] = "band",
    points: bool = False,
    percent_x: bool = False,
    percent_y: bool = False,
    domain: tuple[float, float] | None = None,
    diagonal: bool = False,
    level: float | None = None,
    width: int = PANEL_WIDTH,
    height: int = 200,
) -> Any:
    """Return one panel of curves.

    Parameters
    ----------
    rows
        For each point `x`, `y`, `low`, `high` (null where there is none) and its `series`.
    title
        The panel's title.
    x, y
        The titles of the axes.
    order
        The series in order; by default as they come.
    intervals
        Whether limits are drawn as a band, as bars, or not.
    points
        Whether each point is marked.
    percent_x, percent_y
        Whether an axis is in percent.
    domain
        The range of both axes.
    diagonal
        Whether to draw the line on which x and y are equal, over `domain`.
    level
        Where to draw a level line, such as that of equality.
    width, height
        Of the plot, in pixels.
    """
    import altair as alt

    series = list(order or dict.fromkeys(row["series"] for row in rows))
    scale = alt.Scale(domain=list(domain)) if domain else alt.Scale(zero=False)
    legend = alt.Legend(title=None) if len(series) > 1 else None
    base = alt.Chart(data([dict(row) for row in rows])).encode(
        x=alt.X("x:Q", title=x, axis=alt.Axis(tickCount=5, format="%" if percent_x else "~g"), scale=scale),
        color=alt.Color("series:N", sort=series, scale=series_scale(series, PALETTE), legend=legend),
    )
    axis_y = alt.Axis(tickCount=5, format="%" if percent_y else "~g")
    vertical = alt.Y("y:Q", title=y, axis=axis_y, scale=scale)
    layers = [base.mark_line(strokeWidth=1.5).encode(y=vertical)]
    low = alt.Y("low:Q", title=y, axis=axis_y, scale=scale)
    if intervals == "band":
        layers.insert(0, base.mark_area(opacity=0.15).encode(y=low, y2="high:Q"))
    elif intervals == "bars":
        layers.insert(0, base.mark_rule(opacity=0.35).encode(y=low, y2="high:Q"))
    if points:
        shape = alt.Shape("series:N", sort=series, scale=series_scale(series, SHAPES), legend=legend)
        layers.append(base.mark_point(filled=True, size=40, opacity=1).encode(y=vertical, shape=shape))
    if diagonal and domain:
        ends = alt.Chart(data([{"x": end, "y": end} for end in domain]))
        layers.insert(0, ends.mark_line(color="currentColor", opacity=0.45, strokeDash=[4, 4]).encode(x="x:Q", y="y:Q"))
    if level is not None:
        line = alt.Chart(data([{"y": level}])).mark_rule(color="currentColor", opacity=0.45, strokeDash=[4, 4])
        layers.insert(0, line.encode(y="y:Q"))
    return alt.layer(*layers).properties(title=title, width=width, height=height)
