"""Charts: the common look, and the conversion of a chart to an accessible SVG.

Series differ in colour and in shape, so that no reader depends on colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard, cast

from evenhand.messages import showable

if TYPE_CHECKING:
    import altair as alt

    AltairChart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart | alt.ConcatChart
    Drawable: TypeAlias = "AltairChart | Charted"


class Charted(Protocol):
    """A panel that can be converted to an Altair chart, such as a forest."""

    def chart(self) -> AltairChart:
        """Return it as an Altair chart."""


class Panel(Charted, Protocol):
    """A panel that draws itself on a page, and is converted to an Altair chart elsewhere."""

    @property
    def legend(self) -> Sequence[tuple[str, str, str]]:
        """The series with their colours and shapes."""

    def drawn(self, width: int, height: int, *, legend: bool, titles: bool) -> tuple[float, float, str]:
        """Return the width, the height and the content of the SVG."""


PALETTE = ("#0a7abf", "#d55e00", "#0a9b73", "#c2649b", "#b98000", "#4aa3df", "#7a7f87", "#8c5fd0")
"""Okabe and Ito's colours for all kinds of colour vision, adjusted to hold 3:1 on white and on near-black."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")

PANEL_WIDTH = 220

_LABEL_ROOM = 64
"""The width of the vertical axis' labels in a chart."""

FONT = "Arial, Helvetica, Liberation Sans, sans-serif"
"""Fonts of equal width, so that the renderer's space for a label is what the browser needs."""


def specified(chart: Drawable) -> dict[str, Any]:
    """Return a chart's specification with the common look; text and rules inherit the page's colour."""
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
    look = {
        "background": "transparent",
        "font": FONT,
        "axis": axis,
        "axisY": {**axis, "grid": False},
        "view": {"stroke": None},
        "title": {"color": "currentColor", "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 8},
        "legend": {
            "labelColor": "currentColor",
            "title": None,
            "orient": "top",
            "labelFontSize": 12,
            "symbolOpacity": 1,
            "columns": 3,
            "labelLimit": 110,
        },
        "range": {"category": list(PALETTE), "symbol": list(SHAPES)},
    }
    return {**as_chart(chart).to_dict(validate=False), "config": look}


def data(records: list[dict[str, Any]]) -> alt.InlineData:
    """Wrap plain records as a chart's data."""
    import altair as alt

    return alt.InlineData(values=[{name: _printable(value) for name, value in record.items()} for record in records])


def _printable(value: object) -> object:
    """Remove control characters that SVG forbids; round numbers to what a chart can show."""
    if isinstance(value, float):
        return float(f"{float(f'{value:.12g}'):.9g}")  # via the digits in `results.json`
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", value) if isinstance(value, str) else value


def series_scale(domain: Sequence[str], values: Sequence[str]) -> alt.Scale:
    """Return a scale with equal colours or shapes for equal series in every panel, so that legends merge."""
    import altair as alt

    return alt.Scale(domain=list(domain), range=[values[i % len(values)] for i in range(len(domain))])


# Kinds of charts ------------------------------------------------------------------------------------------------------


def _is_panel(chart: Drawable) -> TypeGuard[Panel]:
    return hasattr(chart, "drawn")


def as_chart(panel: Drawable) -> AltairChart:
    """Return a panel as an Altair chart."""
    return cast("AltairChart", panel) if hasattr(panel, "configure") else cast("Charted", panel).chart()


def joined(panels: Sequence[Drawable], title: str, subtitle: str = "") -> alt.ConcatChart:
    """Return all panels of a figure as one chart, with one legend if they have the same series."""
    import altair as alt

    head = alt.TitleParams(title, subtitle=subtitle, subtitleColor="currentColor", subtitleFontSize=12, fontSize=15)
    whole: alt.ConcatChart = alt.concat(*map(as_chart, panels), columns=columns_for(len(panels)), title=head)
    if len(panels) == 1 or legend_of(panels):
        return whole
    apart: alt.ConcatChart = whole.resolve_scale(color="independent", shape="independent", fill="independent")
    return apart


def columns_for(panels: int) -> int:
    """Return the number of columns of panels for which none is alone in the last row.

    Examples
    --------
    >>> [columns_for(panels) for panels in (1, 2, 3, 4, 5, 6, 7, 8)]
    [1, 2, 3, 2, 3, 3, 4, 2]
    """
    if panels < 3:
        return max(1, panels)
    return next((columns for columns in (3, 2, 4) if panels % columns == 0), 4 if panels % 3 == 1 else 3)


MOST_LINES = 6
"""Line styles that readers can distinguish."""


def round_ticks(low: float, high: float) -> list[float]:
    """Return at most five round numbers between the ends of an axis.

    Examples
    --------
    >>> round_ticks(0.12, 0.31)
    [0.1, 0.2, 0.3, 0.4]
    """
    rough = (high - low) / 4
    power = 10.0 ** floor(log10(rough))
    steps = (power * factor for factor in (1, 2, 2.5, 5, 10, 20))
    step = next(step for step in steps if ceil(high / step - 1e-9) - floor(low / step + 1e-9) <= 4)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def layered(
    layers: Sequence[alt.Chart], rows: Sequence[Mapping[str, Any]], *, title: str, width: int, height: int
) -> alt.LayerChart | alt.FacetChart:
    """Return layers that share their rows, since Altair copies a chart at every step."""
    import altair as alt

    whole = alt.layer(*layers, title=title, width=width, height=height)
    whole.data = data([dict(row) for row in rows])
    return whole


def by_series(series: Sequence[str], values: Sequence[str]) -> dict[str, Any]:
    """Return the encoding of series by a channel (colour, fill, shape), with a legend only for several."""
    import altair as alt

    legend = alt.Legend(title=None) if len(series) > 1 else None
    return {"shorthand": "series:N", "sort": list(series), "scale": series_scale(series, values), "legend": legend}


def guides(
    level: float | None, upright: float | None, diagonal: tuple[float, float] | None, limit: float | None
) -> list[Any]:
    """Return reference lines of curves: level, upright, where x and y are equal (dashed), and a limit."""
    import altair as alt

    dashed: dict[str, Any] = {"color": "currentColor", "opacity": 0.45, "strokeDash": [4, 4]}
    scale = alt.Scale(zero=False)  # a reference line must not stretch an axis
    x, y = alt.X("x:Q", scale=scale), alt.Y("y:Q", scale=scale)
    lines = []
    if level is not None:
        lines.append(alt.Chart(data([{"y": level}])).mark_rule(**dashed).encode(y=y))
    if upright is not None:
        lines.append(alt.Chart(data([{"x": upright}])).mark_rule(**dashed).encode(x=x))
    if limit is not None:
        line = alt.Chart(data([{"y": limit}])).mark_rule(color="currentColor", strokeWidth=1.6)
        lines.append(line.encode(y=y))
    if diagonal is not None:
        ends = alt.Chart(data([{"x": end, "y": end} for end in diagonal]))
        lines.append(ends.mark_line(**dashed).encode(x=x, y=y))
    return lines


_OUTLINES = {
    "square": "m-3-3h6v6h-6z",
    "triangle-up": "m0-4.2l4 7h-8z",
    "diamond": "m0-4.4l3.6 4.4-3.6 4.4-3.6-4.4z",
    "cross": "m-1.3-4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z",
    "triangle-down": "m0 4.2l4-7h-8z",
    "triangle-right": "m4.2 0l-7 4v-8z",
    "triangle-left": "m-4.2 0l7 4v-8z",
}


def mark_path(shape: str, colour: str, places: Sequence[tuple[float, float]]) -> str:
    """Return the markers of a series as one path; a circle is the round cap of a line of no length.

    Examples
    --------
    >>> mark_path("square", "#000", [(10, 5)])
    '<path fill="#000" d="M10 5m-3-3h6v6h-6z"/>'
    """
    outline = _OUTLINES.get(shape)
    if outline is None:
        dots = "".join(f"M{x:g} {y:g}h.01" for x, y in places)
        return f'<path stroke="{colour}" stroke-width="7" stroke-linecap="round" d="{dots}"/>'
    return f'<path fill="{colour}" d="{"".join(f"M{x:g} {y:g}{outline}" for x, y in places)}"/>'


# SVG ------------------------------------------------------------------------------------------------------------------


_SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)" viewBox="([^"]+)">')


def to_svg(
    chart: Drawable,
    title: str,
    description: str,
    *,
    name: str,
    legend: bool = True,
    titles: bool = True,
    width: int = 0,
    height: int = 0,
) -> str:
    """Return a chart as inline SVG.

    The renderer drops a chart's description and numbers its clip paths anew in every process; so title and
    description are added here, and identifiers are derived from `name`, which must be unique on the page. Without
    `legend` the page has one for all panels; without `titles` it writes those of a curve itself. With `width` a single
    plot is made about so wide, with its labels; with `height` at most so high, without them.

    Examples
    --------
    >>> import altair as alt
    >>> chart = alt.Chart(alt.InlineData(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    >>> to_svg(chart, "Points", "One point at 1.", name="figure-1").startswith('<svg role="img"')
    True
    """
    wide: float | str
    high: float | str
    if _is_panel(chart):
        wide, high, body = chart.drawn(width, height, legend=legend, titles=titles)
        box, body = f"0 0 {wide} {high}", f'<g aria-hidden="true">{body}</g>'
    else:
        wide, high, box, body = _rendered(as_chart(chart), name, legend, width, height)
    head = (
        f'<svg role="img" aria-labelledby="{name}-title {name}-text" class="chart" xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="{box}" width="{wide}" height="{high}" font-family="{FONT}">'
        f'<title id="{name}-title">{escape(showable(title))}</title>'
        f'<desc id="{name}-text">{escape(showable(description))}</desc>'
    )
    return f"{head}{body}</svg>"


def _rendered(chart: AltairChart, name: str, legend: bool, width: int, height: int) -> tuple[str, str, str, str]:
    """Return the width, the height, the view box and the content of an Altair chart."""
    import vl_convert

    specification = specified(chart)
    if not legend:
        for encoding in _encodings(specification):
            encoding["legend"] = None
    if width and isinstance(specification.get("width"), int):
        specification["width"] = width - _LABEL_ROOM
    if height and isinstance(specification.get("height"), int):
        specification["height"] = min(height, specification["height"])
    raw: str = vl_convert.vegalite_to_svg(specification)
    match = _SIZE.search(raw)
    wide, high, box = match.groups() if match else ("300", "200", "0 0 300 200")
    body = raw[match.end() : raw.rindex("</svg>")] if match else raw
    return wide, high, box, _quiet(_own_ids(_lean(body), name))


def to_png(chart: Drawable) -> bytes:
    """Return a chart as a PNG at twice the screen's resolution, on white."""
    import vl_convert

    specification = specified(chart)
    specification["config"]["background"] = "white"
    drawn: bytes = vl_convert.vegalite_to_png(specification, scale=2)
    return drawn


def legend_of(charts: Sequence[Drawable]) -> list[tuple[str, str, str]]:
    """Return the series of a figure with colour and shape, if all its panels have the same; else nothing."""
    legends = dict.fromkeys(
        tuple(chart.legend) if _is_panel(chart) else _legend_of_altair(as_chart(chart).to_dict(validate=False))
        for chart in charts
    )
    return list(next(iter(legends))) if len(legends) == 1 else []


def _legend_of_altair(specification: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Return the series of an Altair chart with colour and shape, if it has a legend."""
    scales = [encoding.get("scale", {}) for encoding in _encodings(specification) if encoding.get("legend")]
    ranges = [(scale["domain"], scale["range"]) for scale in scales if scale.get("range")]
    colours = next(((domain, values) for domain, values in ranges if values[0].startswith("#")), ((), ()))
    shaped = any(values[0] in SHAPES for _, values in ranges)
    return tuple(
        (str(name), colour, SHAPES[position % len(SHAPES)] if shaped else SHAPES[0])
        for position, (name, colour) in enumerate(zip(*colours, strict=False))
    )


def _encodings(specification: object) -> Iterator[dict[str, Any]]:
    """Yield the channels of a chart, and of nested charts, that a legend explains."""
    if isinstance(specification, dict):
        for name, value in specification.items():
            if name in ("color", "fill", "shape", "stroke") and isinstance(value, dict) and "field" in value:
                yield value
            elif name not in ("data", "datasets", "config"):
                yield from _encodings(value)
    elif isinstance(specification, list):
        for item in specification:
            yield from _encodings(item)


_TAG = re.compile(r"<[^>]+>")  # angle brackets in text are escaped
_SAYS_NOTHING = re.compile(
    r' (?:class="[^"]*"|aria-hidden="true"|pointer-events="none"|opacity="1"|font-weight="normal"'
    r'|font-family="[^"]*"|stroke-miterlimit="10"|text-anchor="start"|transform="translate\(0,0\)")'
)
_PLACED = re.compile(r' (?:d|transform|x|y|x1|x2|y1|y2)="[^"]*"')
_LONG = re.compile(r"(\.\d)\d+")
_NOTHING_DRAWN = re.compile(r'<path(?: (?:d="(?:M0,0h0v0h0Z)?"|display="none"|opacity="0"))+/>|<g(?: [^>]*)?/>|<g></g>')
_BACKGROUND = re.compile(r'<path d="M[-\d.,]+h[\d.]+v[\d.]+h-[\d.]+Z"/>')


def _lean(body: str) -> str:
    """Remove the parts of the renderer's SVG without visible effect: about two thirds of it."""

    def short(tag: re.Match[str]) -> str:
        return _PLACED.sub(lambda match: _LONG.sub(r"\1", match[0]), _SAYS_NOTHING.sub("", tag[0]))

    body = _BACKGROUND.sub("", _TAG.sub(short, body))
    before = ""
    while before != body:
        before, body = body, _NOTHING_DRAWN.sub("", body)
    return body


def _own_ids(body: str, name: str) -> str:
    """Renumber identifiers in the order in which they appear."""
    identifiers = dict.fromkeys(re.findall(r'\bid="([^"]+)"', body))
    for number, identifier in enumerate(identifiers):
        body = body.replace(f'id="{identifier}"', f'id="{name}-{number}"')
        body = body.replace(f"url(#{identifier})", f"url(#{name}-{number})")
    return body


def _quiet(body: str) -> str:
    """Hide the parts from screen readers: the title and description replace them."""
    body = re.sub(r' (?:aria-label|aria-roledescription|role)="[^"]*"', "", body)
    return f'<g aria-hidden="true">{body}</g>'
