"""Charts: the common look, the forest and the curve, and how a chart becomes an accessible SVG.

Series differ in colour and in shape, so that no reader depends on colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from evenhand.errors import showable

if TYPE_CHECKING:
    import altair as alt


PALETTE = ("#0a7abf", "#d55e00", "#0a9b73", "#c2649b", "#b98000", "#4aa3df", "#7a7f87", "#8c5fd0")
"""Okabe and Ito's colours for all kinds of colour vision, adjusted to hold 3:1 on white and on near-black."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")

PANEL_WIDTH = 220

FONT = "Arial, Helvetica, Liberation Sans, sans-serif"
"""Faces of one width, so that the room the renderer leaves for a label is what the browser needs."""


def styled(chart: Any) -> Any:
    """Give a chart the common look; text and rules take the colour of the page around them."""
    axis = {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "domain": False,
        "ticks": False,
        "gridColor": "currentColor",
        "gridOpacity": 0.14,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelPadding": 6,
        "labelLimit": 150,
    }
    return chart.configure(
        background="transparent",
        font=FONT,
        axis=axis,
        axisY={**axis, "grid": False},
        view={"stroke": None},
        title={"color": "currentColor", "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 8},
        legend={
            "labelColor": "currentColor",
            "title": None,
            "orient": "top",
            "labelFontSize": 12,
            "symbolOpacity": 1,
            "columns": 3,
            "labelLimit": 110,
        },
        range={"category": list(PALETTE), "symbol": list(SHAPES)},
    )


def data(records: list[dict[str, Any]]) -> alt.InlineData:
    """Wrap plain records as a chart's data."""
    import altair as alt

    return alt.InlineData(values=[{name: _printable(value) for name, value in record.items()} for record in records])


def _printable(value: Any) -> Any:
    """Replace the control characters that an SVG may not hold; round numbers to what a chart can show."""
    if isinstance(value, float):
        return float(f"{float(f'{value:.12g}'):.9g}")  # by way of the digits that `results.json` keeps
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", value) if isinstance(value, str) else value


def series_scale(domain: Sequence[str], values: Sequence[str]) -> Any:
    """Return the same colour or shape for the same series in every panel; so the two legends become one."""
    import altair as alt

    return alt.Scale(domain=list(domain), range=[values[i % len(values)] for i in range(len(domain))])


# Kinds of charts ------------------------------------------------------------------------------------------------------


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
    for record in records:
        record["filled"] = int(record.get("low") is not None)
    axis = alt.Axis(format=_number_format(percent), tickCount=4, title=None, labelOverlap=True)
    scale = alt.Scale(zero=False) if domain is None else alt.Scale(domain=list(domain), nice=True)
    base = alt.Chart(data(records)).encode(
        y=alt.Y("label:N", sort=labels, title=None),
        yOffset=alt.YOffset("series:N", sort=series),
        color=alt.Color(**_by_series(series, PALETTE)),
    )
    rule = base.mark_rule(strokeWidth=2, opacity=0.75).encode(x=alt.X("low:Q", axis=axis, scale=scale), x2="high:Q")
    point = base.mark_point(size=55, opacity=1).encode(
        x=alt.X("value:Q", axis=axis, scale=scale),
        shape=alt.Shape(**_by_series(series, SHAPES)),
        fill=alt.Fill(**_by_series(series, PALETTE)),
        fillOpacity=alt.FillOpacity("filled:Q", scale=None, legend=None),
    )
    equality = []
    if zero is not None:
        line = alt.Chart(data([{"zero": zero}])).mark_rule(color=PALETTE[6], strokeDash=[4, 3])
        equality.append(line.encode(x="zero:Q"))
    step = max(26, 11 * len(series) + 8)
    return alt.layer(*equality, rule, point).properties(
        title=title, width=width, height=alt.Step(step, **{"for": "position"})
    )


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
    log_x: bool = False,
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
    log_x
        Whether the horizontal axis is logarithmic.
    domain
        The range of both axes; of the vertical one where the other is logarithmic.
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
    across = alt.Scale(type="log", nice=False) if log_x else scale
    axis_x = alt.Axis(tickCount=5, format=_number_format(percent_x, plain="~s" if log_x else "~g"))
    base = alt.Chart(data([dict(row) for row in rows])).encode(
        x=alt.X("x:Q", title=x, axis=axis_x, scale=across),
        color=alt.Color(**_by_series(series, PALETTE)),
    )
    axis_y = alt.Axis(tickCount=5, format=_number_format(percent_y))
    vertical = alt.Y("y:Q", title=y, axis=axis_y, scale=scale)
    layers = _guides(level, domain if diagonal else None)
    if intervals != "none":
        limits = base.mark_area(opacity=0.15) if intervals == "band" else base.mark_rule(opacity=0.35)
        layers.append(limits.encode(y=alt.Y("low:Q", title=y, axis=axis_y, scale=scale), y2="high:Q"))
    layers.append(base.mark_line(strokeWidth=1.5).encode(y=vertical))
    if points:
        shape = alt.Shape(**_by_series(series, SHAPES))
        layers.append(base.mark_point(filled=True, size=40, opacity=1).encode(y=vertical, shape=shape))
    return alt.layer(*layers).properties(title=title, width=width, height=height)


def over_time(
    rows: Sequence[Mapping[str, Any]], *, title: str, y: str, width: int = 2 * PANEL_WIDTH, height: int = 200
) -> Any:
    """Return one panel of shares by period: points with limits, joined by a line for each series.

    Parameters
    ----------
    rows
        For each point `x` (the period, in order), `y`, `low`, `high` (null where there is none) and its `series`.
    title
        The panel's title.
    y
        The title of the vertical axis.
    width, height
        Of the plot, in pixels.
    """
    import altair as alt

    series, periods = (list(dict.fromkeys(row[name] for row in rows)) for name in ("series", "x"))
    aside = alt.XOffset("series:N", sort=series) if len(series) > 1 else alt.Undefined
    labels = alt.Axis(labelAngle=-40 if len(periods) > 8 else 0, labelOverlap=True, grid=False)
    base = alt.Chart(data([dict(row) for row in rows])).encode(
        x=alt.X("x:O", title=None, sort=periods, axis=labels),
        color=alt.Color(**_by_series(series, PALETTE)),
    )
    axis = alt.Axis(tickCount=5, format="%")
    layers = _guides(0.0, None)
    limits = base.mark_rule(opacity=0.45).encode(y=alt.Y("low:Q", title=y, axis=axis), y2="high:Q", xOffset=aside)
    points = base.mark_point(filled=True, size=40, opacity=1).encode(
        y=alt.Y("y:Q", title=y, axis=axis), shape=alt.Shape(**_by_series(series, SHAPES)), xOffset=aside
    )
    return alt.layer(*layers, limits, points).properties(title=title, width=width, height=height)


def _by_series(series: Sequence[str], values: Sequence[str]) -> dict[str, Any]:
    """Return how a channel (colour, fill, shape) tells series apart: a legend only where there are several."""
    import altair as alt

    legend = alt.Legend(title=None) if len(series) > 1 else None
    return {"shorthand": "series:N", "sort": list(series), "scale": series_scale(series, values), "legend": legend}


def _number_format(percent: bool, plain: str = "~g") -> str:
    return "%" if percent else plain


def _guides(level: float | None, diagonal: tuple[float, float] | None) -> list[Any]:
    """Return the dashed lines behind curves: a level, and where x and y are equal."""
    import altair as alt

    dashed: dict[str, Any] = {"color": "currentColor", "opacity": 0.45, "strokeDash": [4, 4]}
    lines = []
    if level is not None:
        lines.append(alt.Chart(data([{"y": level}])).mark_rule(**dashed).encode(y="y:Q"))
    if diagonal is not None:
        ends = alt.Chart(data([{"x": end, "y": end} for end in diagonal]))
        lines.append(ends.mark_line(**dashed).encode(x="x:Q", y="y:Q"))
    return lines


# SVG ------------------------------------------------------------------------------------------------------------------


_SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)" viewBox="([^"]+)">')


def to_svg(chart: Any, title: str, description: str, *, name: str) -> str:
    """Return a chart as inline SVG.

    The renderer drops a chart's description and numbers its clip paths anew in every process; so title and
    description are added here, and identifiers are derived from `name`, which must be unique on the page.

    Examples
    --------
    >>> import altair as alt
    >>> chart = alt.Chart(alt.InlineData(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    >>> to_svg(chart, "Points", "One point at 1.", name="figure-1").startswith('<svg role="img"')
    True
    """
    import vl_convert

    raw: str = vl_convert.vegalite_to_svg(styled(chart).to_dict(validate=False))
    match = _SIZE.search(raw)
    width, height, box = match.groups() if match else ("300", "200", "0 0 300 200")
    body = raw[match.end() : raw.rindex("</svg>")] if match else raw
    head = (
        f'<svg role="img" aria-labelledby="{name}-title {name}-text" class="chart" xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="{box}" width="{width}" height="{height}">'
        f'<title id="{name}-title">{escape(showable(title))}</title>'
        f'<desc id="{name}-text">{escape(showable(description))}</desc>'
    )
    return head + _quiet(_own_ids(body, name)) + "</svg>"


def to_png(chart: Any) -> bytes:
    """Return a chart as a PNG of twice the resolution of a screen."""
    import vl_convert

    drawn: bytes = vl_convert.vegalite_to_png(styled(chart).to_dict(validate=False), scale=2)
    return drawn


def _own_ids(body: str, name: str) -> str:
    """Renumber identifiers in the order in which they appear."""
    found = dict.fromkeys(re.findall(r'\bid="([^"]+)"', body))
    for number, identifier in enumerate(found):
        body = body.replace(f'id="{identifier}"', f'id="{name}-{number}"')
        body = body.replace(f"url(#{identifier})", f"url(#{name}-{number})")
    return body


def _quiet(body: str) -> str:
    """Hide the parts from screen readers: the title and description stand for the whole."""
    body = re.sub(r' (?:aria-label|aria-roledescription|role)="[^"]*"', "", body)
    return f'<g aria-hidden="true">{body}</g>'
