"""The curve: lines or points with their limits, drawn as SVG in a page, and as an Altair chart in notebooks.

A page holds dozens of panels, and a renderer of any chart takes a tenth of a second for each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from math import ceil, cos, floor, log10, sin, tau
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

from evenhand.charts import PALETTE, PANEL_WIDTH, SHAPES, by_series, data, guides, layered, mark_path, round_ticks
from evenhand.messages import showable
from evenhand.messages.formats import Format, show_tick

if TYPE_CHECKING:
    import altair as alt

_TEXT, _HEAD = 12, 13
"""Font sizes of the axes' text and of the title."""
_LINE = 16
_LETTER = 0.56
"""The average width of a letter, as a share of its font size."""
_SIDES = ("left", "right", "low", "high")
"""The limits of a region."""
_SOFT = 'fill="currentColor" fill-opacity=".75"'


@dataclass(frozen=True)
class Curve:
    """One panel of curves.

    Parameters
    ----------
    title : the panel's title.
    rows : for each point `x`, `y`, `low`, `high` (null or missing where there is none) and its `series`; in regions
        also `left` and `right`, its limits along the horizontal axis.
    series : the series in order.
    x, y : the titles of the axes.
    intervals : whether limits are drawn as a band, as bars, as regions (a box or an ellipse around each point), or not.
    points : whether each point is marked.
    dashed : series drawn as dashes, over the others as wide pale lines, if lines may coincide.
    percent_x, percent_y : whether an axis is in percent.
    log_x : whether the horizontal axis is logarithmic.
    names : the labels at 0, 1 and so on of the horizontal axis, if it has names instead of numbers.
    domain : the range of both axes; of the vertical one if the other is logarithmic or has names.
    diagonal : whether to draw the line of equal x and y, over `domain`.
    level : the position of a level line, such as that of equality.
    upright : the position of a vertical line.
    limit : the position of a threshold's limit, if any.
    width, height : of the plot, in pixels.
    """

    title: str
    rows: tuple[Mapping[str, Any], ...]
    series: tuple[str, ...]
    x: str
    y: str
    intervals: Literal["band", "bars", "boxes", "ellipses", "none"] = "band"
    points: bool = False
    dashed: tuple[str, ...] = ()
    percent_x: bool = False
    percent_y: bool = False
    log_x: bool = False
    names: tuple[str, ...] = ()
    domain: tuple[float, float] | None = None
    diagonal: bool = False
    level: float | None = None
    upright: float | None = None
    limit: float | None = None
    width: int = PANEL_WIDTH
    height: int = 200

    @property
    def legend(self) -> list[tuple[str, str, str]]:
        """Each series with its colour and its shape, if there are several."""
        if len(self.series) < 2:
            return []
        return [(name, colour, shape if self.points else SHAPES[0]) for name, colour, shape in _looks(self.series)]

    def drawn(self, width: int, height: int, *, legend: bool, titles: bool = True) -> tuple[int, int, str]:
        """Return the panel as SVG: its width, its height and its content.

        Parameters
        ----------
        width
            Of the whole picture; 0 for what the panel asks for.
        height
            At most, of the plot; 0 for what the panel asks for.
        legend
            Whether it holds a legend.
        titles
            Whether it holds its title and those of its axes.
        """
        panel = self if titles else replace(self, title="", x="", y="")
        return _Drawing(panel, width or self.width + 64, min(height or self.height, self.height)).made(legend)

    @property
    def above(self) -> str:
        """The title of the vertical axis, if it differs from the panel's title."""
        return "" if self.y == self.title else self.y

    def chart(self) -> alt.LayerChart | alt.FacetChart:
        """Return the panel as an Altair chart."""
        import altair as alt

        scale = alt.Scale(domain=list(self.domain)) if self.domain else alt.Scale(zero=False)
        axis_x, across = self._across(scale)
        base = alt.Chart().encode(
            x=alt.X("x:Q", title=self.x, axis=axis_x, scale=across),
            color=alt.Color(**by_series(self.series, PALETTE)),
        )
        axis_y = alt.Axis(tickCount=5, format="%" if self.percent_y else "~f")
        vertical = alt.Y("y:Q", title=self.y, axis=axis_y, scale=scale)
        layers = guides(self.level, self.upright, self.domain if self.diagonal else None, self.limit)
        if self.intervals == "ellipses":
            around = alt.Chart(data(list(self._rings()))).mark_line(strokeWidth=1.1, opacity=0.55)
            layers.append(around.encode(x=base.encoding.x, y=vertical, color=base.encoding.color, order="turn:Q"))
        elif self.intervals != "none":
            low = alt.Y("low:Q", title=self.y, axis=axis_y, scale=scale)
            if self.intervals == "boxes":
                left = alt.X("left:Q", title=self.x, axis=axis_x, scale=across)
                sides = {"x": left, "x2": alt.X2("right:Q")}
                layers.append(base.mark_rect(opacity=0.1).encode(**sides, y=low, y2=alt.Y2("high:Q")))
                layers.append(base.mark_rule(opacity=0.8).encode(**sides, y=vertical))
            limits = base.mark_area(opacity=0.15) if self.intervals == "band" else base.mark_rule(opacity=0.35)
            layers.append(limits.encode(y=low, y2=alt.Y2("high:Q")))
        layers.extend(line.encode(y=vertical) for line in self._lines(base))
        if self.points:
            shape = alt.Shape(**by_series(self.series, SHAPES))
            layers.append(base.mark_point(filled=True, size=40, opacity=1).encode(y=vertical, shape=shape))
        return layered(layers, self.rows, title=self.title, width=self.width, height=self.height)

    def _lines(self, base: alt.Chart) -> list[alt.Chart]:
        """Return the lines of the chart: all in one style, or dashes over wide pale lines."""
        import altair as alt

        if not self.dashed:
            return [base.mark_line(strokeWidth=1.5)]
        chosen = alt.FieldOneOfPredicate("series", oneOf=list(self.dashed))
        wide, thin = base.mark_line(strokeWidth=4.5, opacity=0.45), base.mark_line(strokeWidth=1.8, strokeDash=[5, 3])
        return [wide.transform_filter({"not": chosen}), thin.transform_filter(chosen)]

    def _across(self, scale: alt.Scale) -> tuple[alt.Axis, alt.Scale]:
        """Return the horizontal axis of the chart, and its scale, by default `scale`."""
        import altair as alt

        if self.names:
            named = f"{json.dumps([showable(name) for name in self.names])}[datum.value]"
            axis = alt.Axis(values=list(range(len(self.names))), labelExpr=named, labelOverlap=True, grid=False)
            return axis, alt.Scale(domain=[-0.5, len(self.names) - 0.5], nice=False)
        axis = alt.Axis(tickCount=5, format="%" if self.percent_x else "~s" if self.log_x else "~f")
        return axis, alt.Scale(type="log", nice=False) if self.log_x else scale

    def _rings(self) -> Iterator[dict[str, Any]]:
        """Yield the points of an ellipse around each point."""
        for row in (row for row in self.rows if None not in map(row.get, _SIDES)):
            across, along = (row["right"] - row["left"]) / 2, (row["high"] - row["low"]) / 2
            for turn in range(49):
                x, y = row["x"] + across * cos(turn * tau / 48), row["y"] + along * sin(turn * tau / 48)
                yield {"series": row["series"], "turn": turn, "x": x, "y": y}

    def to_dict(self, *, validate: bool = True) -> dict[str, Any]:
        """Return the chart's specification, as an Altair chart does."""
        chart: dict[str, Any] = self.chart().to_dict(validate=validate)
        return chart


def curve(rows: Sequence[Mapping[str, Any]], *, title: str, x: str, y: str, **options: Any) -> Curve:
    """Return one panel of curves; options are those of `Curve`, and `order`, the series in order.

    Examples
    --------
    >>> curve([{"x": 0, "y": 0.1, "series": "F"}, {"x": 1, "y": 0.3, "series": "F"}], title="By age", x="Age", y="Rate")
    Curve(title='By age', ..., series=('F',), x='Age', y='Rate', ...)
    """
    series = tuple(options.pop("order", None) or dict.fromkeys(row["series"] for row in rows))
    return Curve(title, tuple(rows), series, x, y, **options)


def _looks(series: Sequence[str]) -> list[tuple[str, str, str]]:
    return [(name, PALETTE[at % len(PALETTE)], SHAPES[at % len(SHAPES)]) for at, name in enumerate(series)]


# Drawing --------------------------------------------------------------------------------------------------------------


class _Drawing:
    """A curve as SVG: equally styled parts are one path, so that a page stays small and prints fast."""

    def __init__(self, panel: Curve, width: int, height: int) -> None:
        self.panel, self.width, self.height = panel, width, height
        self.of_series = {
            name: sorted((row for row in panel.rows if row["series"] == name and row["x"] is not None), key=_by_x)
            for name in panel.series
        }
        self.ticks_y = round_ticks(*_ends([*self._heights(), panel.level, panel.limit], panel.domain))
        self.texts_y = [show_tick(tick, _style(panel.percent_y)) for tick in self.ticks_y]
        self.left = max(_wide(text) for text in self.texts_y) + 8
        self.right = width - 14.0
        self.first, self.last = _ends(self._widths(), None if panel.log_x else panel.domain)
        if panel.names:
            self.first, self.last = -0.5, len(panel.names) - 0.5
        self.top = 0.0

    def _heights(self) -> Iterator[float | None]:
        names = ("y",) if self.panel.intervals == "none" else ("y", "low", "high")
        return (row.get(name) for row in self.panel.rows for name in names)

    def _widths(self) -> Iterator[float | None]:
        names = ("x", "left", "right") if self.panel.intervals in ("boxes", "ellipses") else ("x",)
        return (row.get(name) for row in self.panel.rows for name in names)

    def made(self, legend: bool) -> tuple[int, int, str]:
        """Return the width, the height and the content of the picture."""
        head = list(self._head(legend))
        content = [*head, *self._axes(), *self._guides(), *self._series()]
        return self.width, ceil(self.top + self.height + (2.6 if self.panel.x else 1.5) * _LINE), "".join(content)

    def _head(self, legend: bool) -> Iterator[str]:
        """Yield the title, the legend and the vertical axis' title, one below the other."""
        for line in wrap(self.panel.title, max(10, int(self.width / (1.05 * _HEAD * _LETTER)))):
            yield _text(0, self._next(_LINE), line, f'fill="currentColor" font-weight="600" font-size="{_HEAD}"')
        x, y = 0.0, 0.0
        for name, colour, shape in self.panel.legend if legend else ():
            wide = _wide(name) + 28
            if y == 0.0 or x + wide > self.width:
                x, y = 0.0, self._next(_LINE)
            yield mark_path(shape, colour, [(x + 5, y - 4)]) + _text(x + 13, y, name, _SOFT)
            x += wide
        for line in wrap(self.panel.above, max(10, int(self.width / (_TEXT * _LETTER)))):
            yield _text(0, self._next(_LINE), line, _SOFT)
        self.top += 8

    def _next(self, high: float) -> float:
        self.top += high
        return self.top - 4

    def _x(self, number: float) -> float:
        first, last, number = (log10(n) if self.panel.log_x else n for n in (self.first, self.last, number))
        return round(self.left + (self.right - self.left) * (number - first) / (last - first), 1)

    def _y(self, number: float) -> float:
        low, high = self.ticks_y[0], self.ticks_y[-1]
        share = min(max((number - low) / (high - low), 0), 1)
        return round(self.top + self.height * (1 - share), 1)

    def _axes(self) -> Iterator[str]:
        """Yield the numbers and names of the axes, and grid lines."""
        across = "".join(f"M{self.left:.1f} {self._y(tick)}H{self.right:.1f}" for tick in self.ticks_y)
        yield f'<path stroke="currentColor" opacity=".14" d="{across}"/>'
        for tick, text in zip(self.ticks_y, self.texts_y, strict=True):
            yield _text(self.left - 6, self._y(tick) + 4, text, _SOFT, "end")
        bottom, free = self.top + self.height + _LINE, -9.0
        for tick, text in self._ticks_x():
            position = self._x(tick)
            if position - _wide(text) / 2 >= free:  # names that would overlap are left out
                yield _text(position, bottom, text, _SOFT, "middle")
                free = position + _wide(text) / 2 + 8
        if self.panel.x:
            yield _text((self.left + self.right) / 2, bottom + _LINE + 2, self.panel.x, _SOFT, "middle")

    def _ticks_x(self) -> Iterator[tuple[float, str]]:
        """Yield names, or round numbers between the ends of the horizontal axis, with their positions."""
        if self.panel.names:
            yield from enumerate(self.panel.names)
            return
        if self.panel.log_x:
            powers = range(floor(log10(self.first)), ceil(log10(self.last)) + 1)
            every = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
        else:
            every = round_ticks(self.first, self.last)
        near = 1e-9 * (self.last - self.first)
        for tick in every:
            if self.first - near <= tick <= self.last + near:
                yield tick, show_tick(tick, _style(self.panel.percent_x))

    def _guides(self) -> Iterator[str]:
        """Yield the reference lines: level, upright, where x and y are equal (dashed), and a limit, with labels."""
        panel, dashed = self.panel, 'stroke="currentColor" opacity=".5" stroke-dasharray="4 4"'
        if panel.level is not None:
            yield f'<path {dashed} d="M{self.left:.1f} {self._y(panel.level)}H{self.right:.1f}"/>'
        if panel.upright is not None:
            yield f'<path {dashed} d="M{self._x(panel.upright)} {self.top:.1f}v{self.height}"/>'
        if panel.diagonal and panel.domain:
            ends = " ".join(f"{self._x(end)} {self._y(end)}" for end in panel.domain)
            yield f'<path {dashed} d="M{ends}"/>'
        if panel.limit is not None:
            y, text = self._y(panel.limit), f"limit {show_tick(panel.limit, _style(panel.percent_y))}"
            yield f'<path stroke="currentColor" stroke-width="1.6" d="M{self.left:.1f} {y}H{self.right:.1f}"/>'
            yield _text(self.right, y - 4, text, 'fill="currentColor"', "end")

    def _series(self) -> Iterator[str]:
        """Yield the limits of all series, then their lines and points, which are drawn over them."""
        looks = _looks(self.panel.series)
        yield from (self._limits(self.of_series[name], colour) for name, colour, _ in looks)
        for name, colour, shape in looks:
            runs = list(self._runs(self.of_series[name]))
            line = "".join("M" + "L".join(f"{x} {y}" for x, y in run) for run in runs if len(run) > 1)
            alone = [place for run in runs for place in run if self.panel.points or len(run) == 1]
            yield f'<path fill="none" stroke="{colour}" {self._stroke(name)} d="{line}"/>' if line else ""
            yield mark_path(shape, colour, alone) if alone else ""

    def _stroke(self, name: str) -> str:
        if not self.panel.dashed:
            return 'stroke-width="1.6"'
        dashes = 'stroke-width="1.8" stroke-dasharray="5 3"'
        return dashes if name in self.panel.dashed else 'stroke-width="4.5" opacity=".45"'

    def _runs(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[list[tuple[float, float]]]:
        """Yield runs of neighbouring values: a line breaks where a value is missing."""
        for present, run in groupby(rows, lambda row: row["y"] is not None):
            if present:
                yield [(self._x(row["x"]), self._y(row["y"])) for row in run]

    def _limits(self, rows: Sequence[Mapping[str, Any]], colour: str) -> str:
        """Return the limits of a series: a band, or a bar or a region at each point."""
        kind = self.panel.intervals
        if kind in ("boxes", "ellipses"):
            return self._regions(rows, colour)
        present = [row for row in rows if None not in map(row.get, ("low", "high"))]
        places = [(self._x(row["x"]), self._y(row["low"]), self._y(row["high"])) for row in present]
        if not places or kind == "none":
            return ""
        if kind == "bars":
            bars = "".join(f"M{x} {low}V{high}" for x, low, high in places)
            return f'<path stroke="{colour}" opacity=".45" stroke-width="1.4" d="{bars}"/>'
        around = [f"{x} {high}" for x, _, high in places] + [f"{x} {low}" for x, low, _ in reversed(places)]
        return f'<path fill="{colour}" opacity=".15" d="M{"L".join(around)}Z"/>'

    def _regions(self, rows: Sequence[Mapping[str, Any]], colour: str) -> str:
        return "".join(self._region(row, colour) for row in rows if None not in map(row.get, _SIDES))

    def _region(self, row: Mapping[str, Any], colour: str) -> str:
        """Return the box of a point with its two limits as a cross, or the ellipse around it."""
        x, y, left, right = self._x(row["x"]), self._y(row["y"]), self._x(row["left"]), self._x(row["right"])
        low, high = self._y(row["low"]), self._y(row["high"])
        if self.panel.intervals == "ellipses":
            radii = f'rx="{(right - left) / 2:.1f}" ry="{(low - high) / 2:.1f}"'
            return f'<ellipse cx="{x}" cy="{y}" {radii} fill="{colour}" fill-opacity=".08" stroke="{colour}"/>'
        box = f'<path fill="{colour}" opacity=".1" d="M{left} {low}H{right}V{high}H{left}Z"/>'
        return f'{box}<path stroke="{colour}" opacity=".8" d="M{left} {y}H{right}M{x} {low}V{high}"/>'


def _style(percent: bool) -> Format:
    return "percent" if percent else "number"


def _by_x(row: Mapping[str, Any]) -> float:
    return float(row["x"])


def _ends(numbers: Iterable[float | None], domain: tuple[float, float] | None) -> tuple[float, float]:
    """Return the ends of an axis: the given ones, or those of the values."""
    finite = [number for number in numbers if number is not None]
    low, high = domain or (min(finite, default=0.0), max(finite, default=1.0))
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _wide(text: str) -> float:
    return len(text) * _TEXT * _LETTER


def _text(x: float, y: float, text: str, look: str, anchor: str = "start") -> str:
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    size = "" if "font-size" in look else f' font-size="{_TEXT}"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{where}{size} {look}>{escape(showable(text))}</text>'
