"""The curve chart: lines or points with their limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import ceil, floor, log10
from textwrap import wrap
from typing import Any, Literal

from evenhand.charts.look import (
    LINE,
    PANEL_WIDTH,
    SHAPES,
    Legend,
    ends_of,
    head_of,
    letters,
    looks,
    mark_path,
    round_ticks,
    text_at,
    text_width,
)
from evenhand.messages.formats import Format, show_tick

_SIDES = ("left", "right", "low", "high")
"""The limits of a region."""
_MOST_SQUARE = 1.6
"""The largest square, as a share of the panel's height."""
_MANY = 150
"""The number of points from which they are drawn small."""
_AROUND = 'class="ground" fill="none" stroke="#fff" stroke-width="5" stroke-linejoin="round" font-weight="600"'
"""The look of the ground around a text that lies on lines."""


@dataclass(frozen=True)
class Curve:
    """A panel of curves.

    Parameters
    ----------
    title : the panel's title.
    rows : for each point `x`, `y`, `low`, `high` (null or missing if undefined) and its `series`; for regions also
        `left` and `right`, the limits along the horizontal axis.
    series : the series in order.
    x, y : the titles of the axes.
    people : the number of people of each series that is a group, shown in the legend.
    intervals : how limits are drawn: as a band, as bars, as regions (a box or an ellipse around each point), or not at
        all.
    points : whether each point is marked.
    lines : whether the points of a series are joined.
    faint : series drawn as thin grey lines behind the others, without limits.
    dashed : series drawn as dashes over all others, which become wide pale lines, if lines may coincide.
    percent_x, percent_y : whether an axis is in percent.
    log_x : whether the horizontal axis is logarithmic.
    names : the labels at 0, 1 and so on of the horizontal axis, if it has names instead of numbers.
    domain : the range of both axes; only of the vertical axis if the horizontal axis is logarithmic or has names.
    diagonal : whether to draw the line of equal x and y, over `domain`, at 45 degrees.
    level : the position of a horizontal line, such as the line of equality.
    upright : the position of a vertical line.
    means : horizontal segments at the mean of a series: the series, both ends along the horizontal axis, and the
        height.
    mean : the label of these segments.
    limit : the position of a threshold's limit, if any.
    width, height : the size of the plot in pixels.
    """

    title: str
    rows: tuple[Mapping[str, Any], ...]
    series: tuple[str, ...]
    x: str
    y: str
    people: Mapping[str, int] = field(default_factory=dict)
    intervals: Literal["band", "bars", "boxes", "ellipses", "none"] = "band"
    points: bool = False
    lines: bool = True
    faint: tuple[str, ...] = ()
    dashed: tuple[str, ...] = ()
    percent_x: bool = False
    percent_y: bool = False
    log_x: bool = False
    names: tuple[str, ...] = ()
    domain: tuple[float, float] | None = None
    diagonal: bool = False
    level: float | None = None
    upright: float | None = None
    means: tuple[tuple[str, float, float, float], ...] = ()
    mean: str = "mean"
    limit: float | None = None
    width: int = PANEL_WIDTH
    height: int = 200

    @property
    def legend(self) -> Legend:
        """Each series with its colour and shape; empty for a single series."""
        named = [look for look in looks(self.series) if look[0] not in self.faint]
        if len(named) < 2:
            return []
        return [(self._counted(name), colour, shape if self.points else SHAPES[0]) for name, colour, shape in named]

    def _counted(self, name: str) -> str:
        return f"{name} (n = {self.people[name]:,})" if name in self.people else name

    def drawn(self, width: int, height: int, *, legend: bool, titles: bool = True) -> tuple[int, int, str]:
        """Return the width, the height and the SVG content of the panel; see `Panel`."""
        panel = self if titles else replace(self, title="", x="", y="")
        drawing = _Drawing(panel, width or self.width + 64, min(height or self.height, self.height))
        drawing.above = self.above if titles else ""
        return drawing.made(legend)

    @property
    def above(self) -> str:
        """The title of the vertical axis, unless it equals the panel's title, and the start of the axis if above 0."""
        first = self.ticks_y()[0]
        start = f"axis from {show_tick(first, _style(self.percent_y))}" if first > 0 else ""
        return ", ".join(filter(None, ("" if self.y == self.title else self.y, start)))

    def ticks_y(self) -> list[float]:
        """Return the round tick values of the vertical axis."""
        names = ("y",) if self.intervals == "none" else ("y", "low", "high")
        heights = [row.get(name) for row in self.rows for name in names]
        return round_ticks(*_ends_within([*heights, self.level, self.limit], self.domain))


def curve(rows: Sequence[Mapping[str, Any]], *, title: str, x: str, y: str, **options: Any) -> Curve:
    """Return a panel of curves; options are the options of `Curve`, and `order`, the series in order.

    Examples
    --------
    >>> curve([{"x": 0, "y": 0.1, "series": "F"}, {"x": 1, "y": 0.3, "series": "F"}], title="By age", x="Age", y="Rate")
    Curve(title='By age', ..., series=('F',), x='Age', y='Rate', ...)
    """
    series = tuple(options.pop("order", None) or dict.fromkeys(row["series"] for row in rows))
    return Curve(title, tuple(rows), series, x, y, **options)


# Drawing --------------------------------------------------------------------------------------------------------------


class _Drawing:
    """The drawing of a curve panel; equally styled parts are one path, so that a page stays small and prints fast."""

    def __init__(self, panel: Curve, width: int, height: int) -> None:
        self.panel, self.width, self.height, self.above = panel, width, height, panel.above
        self.of_series = {
            name: sorted((row for row in panel.rows if row["series"] == name and row["x"] is not None), key=_by_x)
            for name in panel.series
        }
        self.ticks_y = panel.ticks_y()
        self.texts_y = [show_tick(tick, _style(panel.percent_y)) for tick in self.ticks_y]
        self.left = max(text_width(text) for text in self.texts_y) + 8
        self.right = width - 14.0
        self.first, self.last = _ends_within(self._widths(), None if panel.log_x else panel.domain)
        if panel.names:
            self.first, self.last = -0.5, len(panel.names) - 0.5
        if panel.diagonal and panel.domain:
            side = min(self.right - self.left, _MOST_SQUARE * panel.height)
            self.right, self.height = self.left + side, round(side)
        self.top = 0.0

    def _widths(self) -> Iterator[float | None]:
        names = ("x", "left", "right") if self.panel.intervals in ("boxes", "ellipses") else ("x",)
        return (row.get(name) for row in self.panel.rows for name in names)

    def made(self, legend: bool) -> tuple[int, int, str]:
        """Return the width, the height and the SVG content of the drawing."""
        head = list(self._head(legend))
        content = [*head, *self._axes(), *self._guides(), *self._series()]
        return self.width, ceil(self.top + self.height + (2.6 if self.panel.x else 1.5) * LINE), "".join(content)

    def _head(self, legend: bool) -> Iterator[str]:
        """Yield the title, the legend and the title of the vertical axis, one below the other."""
        self.top, head = head_of(self.panel.title, self.panel.legend if legend else [], self.width)
        yield head
        for line in wrap(self.above, letters(self.width)):
            self.top += LINE
            yield text_at(0, self.top - 4, line)
        self.top += 8

    def _x(self, number: float) -> float:
        first, last, number = (log10(n) if self.panel.log_x else n for n in (self.first, self.last, number))
        return round(self.left + (self.right - self.left) * (number - first) / (last - first), 1)

    def _y(self, number: float) -> float:
        low, high = self.ticks_y[0], self.ticks_y[-1]
        share = min(max((number - low) / (high - low), 0), 1)
        return round(self.top + self.height * (1 - share), 1)

    def _axes(self) -> Iterator[str]:
        """Yield the tick labels and titles of the axes, and the grid lines."""
        across = "".join(f"M{self.left:.1f} {self._y(tick)}H{self.right:.1f}" for tick in self.ticks_y)
        yield f'<path stroke="currentColor" opacity=".14" d="{across}"/>'
        for tick, text in zip(self.ticks_y, self.texts_y, strict=True):
            yield text_at(self.left - 6, self._y(tick) + 4, text, anchor="end")
        bottom, free = self.top + self.height + LINE, -9.0
        for tick, text in self._ticks_x():
            position = self._x(tick)
            if position - text_width(text) / 2 >= free:  # names that would overlap are left out
                yield text_at(position, bottom, text, anchor="middle")
                free = position + text_width(text) / 2 + 8
        if self.panel.x:
            yield text_at((self.left + self.right) / 2, bottom + LINE + 2, self.panel.x, anchor="middle")

    def _ticks_x(self) -> Iterator[tuple[float, str]]:
        """Yield positions and labels of the horizontal axis: names, or round numbers between its ends."""
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
        """Yield the labelled reference lines: horizontal, vertical, diagonal (x = y, dashed) and limit."""
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
            yield text_at(self.right, y - 4, text, 'fill="currentColor"', anchor="end")

    def _series(self) -> Iterator[str]:
        """Yield the limits of all series, followed by their lines and points, which are drawn on top."""
        everything = looks(self.panel.series)
        yield from (self._grey(name) for name in self.panel.faint)
        series = [look for look in everything if look[0] not in self.panel.faint]
        yield from (self._limits(self.of_series[name], colour) for name, colour, _ in series)
        yield from (self._line(*look) for look in series)
        yield from (self._mean(*mean) for mean in self.panel.means)

    def _grey(self, name: str) -> str:
        """Return a series as a thin grey line."""
        path = "".join("M" + "L".join(f"{x} {y}" for x, y in run) for run in self._runs(self.of_series[name]))
        return f'<path fill="none" stroke="currentColor" opacity=".25" d="{path}"/>'

    def _line(self, name: str, colour: str, shape: str) -> str:
        """Return a series as a line, with markers at marked points and at points without neighbours."""
        runs = list(self._runs(self.of_series[name]))
        joined = [run for run in runs if self.panel.lines and len(run) > 1]
        path = "".join("M" + "L".join(f"{x} {y}" for x, y in run) for run in joined)
        line = f'<path fill="none" stroke="{colour}" {self._stroke(name)} d="{path}"/>' if path else ""
        alone = [place for run in runs for place in run if self.panel.points or len(run) == 1]
        return line + (mark_path(shape, colour, alone, small=len(alone) >= _MANY) if alone else "")

    def _mean(self, series: str, first: float, last: float, height: float) -> str:
        """Return a mean as a horizontal segment in the colour of its series, with its number above all lines."""
        colour = next(colour for name, colour, _ in looks(self.panel.series) if name == series)
        left, right, y = self._x(first), self._x(last), self._y(height)
        line = f'<path stroke="{colour}" stroke-width="3" d="M{left} {y}H{right}"/>'
        text = f"{self.panel.mean} {show_tick(round(height, 1), _style(self.panel.percent_y))}"
        place = (left + right) / 2, self.top + 12
        around = text_at(*place, text, _AROUND, anchor="middle")
        return line + around + text_at(*place, text, 'fill="currentColor" font-weight="600"', anchor="middle")

    def _stroke(self, name: str) -> str:
        if not self.panel.dashed:
            return 'stroke-width="1.6"'
        dashes = 'stroke-width="1.8" stroke-dasharray="5 3"'
        return dashes if name in self.panel.dashed else 'stroke-width="4.5" opacity=".7"'

    def _runs(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[list[tuple[float, float]]]:
        """Yield runs of neighbouring points; a line breaks where a value is missing."""
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
            return f'<path stroke="{colour}" stroke-width="1.2" d="{bars}"/>'
        around = [f"{x} {high}" for x, _, high in places] + [f"{x} {low}" for x, low, _ in reversed(places)]
        return f'<path fill="{colour}" opacity=".15" d="M{"L".join(around)}Z"/>'

    def _regions(self, rows: Sequence[Mapping[str, Any]], colour: str) -> str:
        return "".join(self._region(row, colour) for row in rows if None not in map(row.get, _SIDES))

    def _region(self, row: Mapping[str, Any], colour: str) -> str:
        """Return a point's region: a box with its two limits as a cross, or an ellipse."""
        x, y, left, right = self._x(row["x"]), self._y(row["y"]), self._x(row["left"]), self._x(row["right"])
        low, high = self._y(row["low"]), self._y(row["high"])
        if self.panel.intervals == "ellipses":
            radii = f'rx="{(right - left) / 2:.1f}" ry="{(low - high) / 2:.1f}"'
            return f'<ellipse cx="{x}" cy="{y}" {radii} fill="{colour}" fill-opacity=".08" stroke="{colour}"/>'
        box = f'<path fill="{colour}" opacity=".1" d="M{left} {low}H{right}V{high}H{left}Z"/>'
        return f'{box}<path stroke="{colour}" d="M{left} {y}H{right}M{x} {low}V{high}"/>'


def _style(percent: bool) -> Format:
    return "percent" if percent else "number"


def _by_x(row: Mapping[str, Any]) -> float:
    return float(row["x"])


def _ends_within(numbers: Iterable[float | None], domain: tuple[float, float] | None) -> tuple[float, float]:
    """Return the ends of an axis: the domain if defined, otherwise the range of the values."""
    return ends_of(numbers if domain is None else domain)
