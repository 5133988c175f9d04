"""The chart of a pair: two trajectories over one axis, as inline SVG that a phone and a screen reader can read.

Nothing here sets a colour or a font: a strict Content-Security-Policy forbids inline styles, and the page's style
sheet knows light from dark. The two lines differ in colour, in marker and in dash.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup, escape

from evenhand.errors import showable
from evenhand.study.flow.language import show_number

WIDTH, HEIGHT = 360, 250
_TOP, _BOTTOM = 26, 46
_LETTER = 6.9
"""Width of a letter at the 12 units that the style sheet sets; a little more than the faces need."""
_APART = 15
_LONGEST_NAME = 14


@dataclass(frozen=True, slots=True)
class Line:
    """A trajectory: whose it is, and the values."""

    name: str
    values: tuple[float, ...]


@lru_cache(maxsize=4096)
def pair_chart(
    first: Line,
    second: Line,
    times: tuple[str, ...],
    *,
    title: str,
    stamps: tuple[float, ...] | None = None,
    unit: str = "",
    language: str = "en",
) -> Markup:
    """Draw two trajectories over one axis that starts at 0.

    Each value is written at its point where there is room, else only the first and the last; the page gives all of
    them in a table.

    Parameters
    ----------
    first, second : the trajectories, of one length.
    times : what the points in time are called.
    title : what the chart shows, for those who do not see it.
    stamps : the times as numbers, where they are not evenly apart.
    unit, language : how values are written.

    Examples
    --------
    >>> drawn = pair_chart(Line("K", (1, 2)), Line("<b>", (2, 1)), ("2001", "2002"), title="Arrests a year")
    >>> drawn.count("<path"), "<b>" in drawn
    (4, False)
    """
    ticks = axis_ticks(*first.values, *second.values)
    tick_texts = [show_number(tick, unit, language) for tick in ticks]
    texts = [[show_number(value, unit, language) for value in line.values] for line in (first, second)]
    names = [_shorter(line.name) for line in (first, second)]
    half = max(14.0, _LETTER / 2 * max(len(text) for row in (*texts, times) for text in (row[0], row[-1])))
    left = 10 + _LETTER * max(map(len, tick_texts))
    right = WIDTH - 4 - 1.3 * _LETTER * max(map(len, names))
    frame = _Frame(left, right, half, ticks[0], ticks[-1], stamps or tuple(range(len(times))))
    valued = _with_room([*texts[0], *texts[1]], frame)
    if len(valued) < len(times):
        valued = sorted({0, len(times) - 1})
    described = "; ".join(
        f"{line.name}: {', '.join(f'{time} {text}' for time, text in zip(times, row, strict=True))}"
        for line, row in zip((first, second), texts, strict=True)
    )
    parts = [
        Markup(
            '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-labelledby="chart-title chart-text" '
            'focusable="false"><title id="chart-title">{}</title><desc id="chart-text">{}</desc>'
        ).format(WIDTH, HEIGHT, _printable(title), _printable(described)),
        _axis(frame, ticks, tick_texts, times, _with_room(times, frame)),
        *_traces(frame, first, second),
        _values(frame, (first, second), texts, valued),
        *_markers(frame, first, second),
        _ends(frame, (first, second), names),
        Markup("</svg>"),
    ]
    return Markup("").join(parts)


def axis_ticks(*values: float) -> list[float]:
    """Return three to six round numbers from 0, or from below the lowest where one is negative, to the highest or more.

    Examples
    --------
    >>> axis_ticks(32400, 51000)
    [0.0, 20000.0, 40000.0, 60000.0]
    >>> axis_ticks(0, 3)
    [0.0, 1.0, 2.0, 3.0]
    >>> axis_ticks(0)
    [0.0, 1.0]
    """
    low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
    if high - low < 1e-9:
        return [0.0, 1.0]
    rough = (high - low) / 4
    size = 10.0 ** math.floor(math.log10(rough))
    whole = all(value == int(value) for value in values)
    steps = [factor * size for factor in (1, 2, 2.5, 5, 10) if not whole or (factor * size).is_integer()]
    step = next(candidate for candidate in steps if candidate >= rough * 0.999)
    return [step * number for number in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)]


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where the values of the chart lie on the canvas; `margin` is room for half of a value at either end."""

    left: float
    right: float
    margin: float
    low: float
    high: float
    stamps: tuple[float, ...]

    def x(self, at: int) -> float:
        start, end = self.left + self.margin + 2, self.right - self.margin - 6
        span = self.stamps[-1] - self.stamps[0]
        return start + (end - start) * ((self.stamps[at] - self.stamps[0]) / span if span else 0.5)

    def y(self, value: float) -> float:
        return _TOP + (self.high - value) / (self.high - self.low) * (HEIGHT - _TOP - _BOTTOM)

    def points(self, line: Line) -> list[tuple[float, float]]:
        return [(self.x(at), self.y(value)) for at, value in enumerate(line.values)]


def _with_room(texts: Sequence[str], frame: _Frame) -> list[int]:
    """Return the points where a text can be written: from the last back, each that has room."""
    wide = _LETTER * max(map(len, texts)) + 8
    kept = [len(frame.stamps) - 1]
    for at in range(len(frame.stamps) - 2, -1, -1):
        if frame.x(kept[-1]) - frame.x(at) >= wide:
            kept.append(at)
    return kept[::-1]


def _axis(
    frame: _Frame, ticks: Sequence[float], texts: Sequence[str], times: Sequence[str], written: Sequence[int]
) -> Markup:
    grid = [
        Markup('<line class="{}" x1="{}" x2="{}" y1="{y}" y2="{y}"/>').format(
            "axis" if tick == 0 else "grid", _n(frame.left), _n(frame.right - 4), y=_n(frame.y(tick))
        )
        + _text("tick", frame.left - 6, frame.y(tick) + 4, text)
        for tick, text in zip(ticks, texts, strict=True)
    ]
    return Markup("").join([*grid, *(_text("time", frame.x(point), HEIGHT - 12, times[point]) for point in written)])


def _traces(frame: _Frame, first: Line, second: Line) -> list[Markup]:
    """Draw the solid line and the dashed one over it: where they meet, both still show."""
    return [
        _path(f"trace {kind}", "M" + " L".join(f"{_n(x)} {_n(y)}" for x, y in frame.points(line)))
        for kind, line in (("first", first), ("second", second))
    ]


def _markers(frame: _Frame, first: Line, second: Line) -> list[Markup]:
    """Draw the hollow diamonds and the smaller filled circles over them."""
    return [
        _path("marker second", "".join(_diamond(x, y) for x, y in frame.points(second))),
        _path("marker first", "".join(_circle(x, y) for x, y in frame.points(first))),
    ]


def _text(kind: str, x: float, y: float, text: str) -> Markup:
    return Markup('<text class="{}" x="{}" y="{}">{}</text>').format(kind, _n(x), _n(y), _printable(text))


def _path(kind: str, drawn: str) -> Markup:
    return Markup('<path class="{}" d="{}"/>').format(kind, drawn)


def _circle(x: float, y: float) -> str:
    return f"M{_n(x - 4)} {_n(y)}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"


def _diamond(x: float, y: float) -> str:
    return f"M{_n(x)} {_n(y - 7)}l7 7l-7 7l-7 -7z"


def _values(frame: _Frame, lines: Sequence[Line], texts: Sequence[Sequence[str]], written: Sequence[int]) -> Markup:
    """Write the higher value above its point and the lower one below, so that they never meet."""
    parts = []
    for point in written:
        above = lines[0].values[point] >= lines[1].values[point]
        for line, row, kind, up in zip(lines, texts, ("first", "second"), (above, not above), strict=True):
            y = frame.y(line.values[point]) + (-10 if up else 18)
            parts.append(_text(f"value {kind}", frame.x(point), y, row[point]))
    return Markup("").join(parts)


def _ends(frame: _Frame, lines: Sequence[Line], names: Sequence[str]) -> Markup:
    """Write each name at the end of its line, apart where the lines end together."""
    wanted = [frame.y(line.values[-1]) + 5 for line in lines]
    gap = abs(wanted[0] - wanted[1])
    if gap < _APART:
        push = (_APART - gap) / 2
        down = 0 if wanted[0] > wanted[1] else 1
        wanted[down], wanted[1 - down] = wanted[down] + push, wanted[1 - down] - push
    return Markup("").join(
        _text(f"name {kind}", frame.right, y, name)
        for kind, y, name in zip(("first", "second"), wanted, names, strict=True)
    )


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _shorter(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _printable(text: str) -> Markup:
    """Escape a text, and write out the control characters that a page may not hold."""
    return escape(showable(text))
