"""The common style of charts: colours, shapes, text, axes, marks and legends.

Series differ in colour and in shape, so that no reader depends on colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from math import ceil, floor, log10
from textwrap import wrap
from typing import Protocol

from evenhand.messages import showable

PALETTE = ("#0a7abf", "#d55e00", "#0a9b73", "#c2649b", "#b98000", "#3a94d0", "#7a7f87", "#8c5fd0")
"""Okabe and Ito's colours for all kinds of colour vision, adjusted to hold 3:1 on white and on near-black."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")

FONT = "Arial, Helvetica, Liberation Sans, sans-serif"
"""Fonts of equal width, so that the space reserved for a label is what the browser needs."""

PANEL_WIDTH = 220

TEXT, HEAD, LINE = 12, 13, 16
"""The font sizes of text and of titles, and the height of a line."""

_LETTER = 0.56
"""The average width of a letter, as a share of its font size."""

MOST_LINES = 6
"""Line styles that readers can distinguish."""

SOFT = 'fill="currentColor" fill-opacity=".75"'

Legend = list[tuple[str, str, str]]
"""The series of a chart with their colours and shapes."""


class Panel(Protocol):
    """A chart that can be drawn as SVG."""

    @property
    def title(self) -> str:
        """The title of the chart."""

    @property
    def legend(self) -> Legend:
        """The series with their colours and shapes; empty for a single series."""

    def drawn(self, width: int, height: int, *, legend: bool, titles: bool = True) -> tuple[int, int, str]:
        """Return the width, the height and the SVG content of the panel.

        Parameters
        ----------
        width
            The width of the whole drawing in pixels; 0 for the panel's default.
        height
            The largest height of the plot in pixels; 0 for the panel's default.
        legend
            Whether the drawing includes a legend.
        titles
            Whether the drawing includes the titles of the panel and its axes.
        """


_places: ContextVar[dict[str, int] | None] = ContextVar("places", default=None)
"""The places of series in the palette, where several charts share them."""


@contextmanager
def same_looks(first: Sequence[str] = (), *others: Sequence[str]) -> Iterator[None]:
    """Give each series the same colour and shape in all charts drawn within this context.

    Parameters
    ----------
    first
        The series with the first colours.
    others
        Sets of series that never share a chart with another set; the colours of each set start after `first`. Series in
        no set are added when they are first drawn.
    """
    places = {name: len(first) + place for names in others for place, name in enumerate(names)}
    token = _places.set(places | {name: place for place, name in enumerate(first)})
    try:
        yield
    finally:
        _places.reset(token)


def looks(series: Sequence[str]) -> Legend:
    """Return each series with its colour and shape, without repetition in a chart as long as they suffice.

    Examples
    --------
    >>> with same_looks(["a", "b"]):
    ...     [colour == PALETTE[1] for _, colour, _ in looks(["b", "c"])]
    [True, False]
    """
    known = _places.get()
    places: dict[str, int] = {}
    for name in sorted(series, key=lambda name: known is None or name not in known):  # the known ones choose first
        place = (known or {}).get(name, 0)
        taken = {other % len(PALETTE) for other in places.values()}
        free = (place + step for step in range(len(PALETTE)) if (place + step) % len(PALETTE) not in taken)
        places[name] = next(free, len(places))
        if known is not None and name:
            known.setdefault(name, places[name])
    return [(name, PALETTE[places[name] % len(PALETTE)], SHAPES[places[name] % len(SHAPES)]) for name in series]


# Axes -----------------------------------------------------------------------------------------------------------------


def ends_of(numbers: Iterable[float | None]) -> tuple[float, float]:
    """Return the ends of an axis that contains all numbers."""
    finite = [number for number in numbers if number is not None]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


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


# Text -----------------------------------------------------------------------------------------------------------------


def text_width(text: str, size: float = TEXT) -> float:
    """Return the approximate width of a text in pixels."""
    return len(text) * size * _LETTER


def letters(width: float, size: float = TEXT) -> int:
    """Return the number of letters that fit into a width, at least ten."""
    return max(10, int(width / (size * _LETTER)))


def text_at(x: float, y: float, text: str, look: str = SOFT, *, anchor: str = "start", size: float = TEXT) -> str:
    """Return a text as SVG with its baseline at `y`.

    Examples
    --------
    >>> text_at(0, 12, "a < b", 'fill="#000"')
    '<text x="0.0" y="12.0" font-size="12" fill="#000">a &lt; b</text>'
    """
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{where} font-size="{size}" {look}>{escape(showable(text))}</text>'


def title_at(x: float, y: float, text: str, size: float = HEAD) -> str:
    """Return a title as SVG."""
    return text_at(x, y, text, 'fill="currentColor" font-weight="600"', size=size)


# Marks ----------------------------------------------------------------------------------------------------------------

_OUTLINES = {
    "circle": "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "square": "m-3-3h6v6h-6z",
    "triangle-up": "m0-4.2l4 7h-8z",
    "diamond": "m0-4.4l3.6 4.4-3.6 4.4-3.6-4.4z",
    "cross": "m-1.3-4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z",
    "triangle-down": "m0 4.2l4-7h-8z",
    "triangle-right": "m4.2 0l-7 4v-8z",
    "triangle-left": "m-4.2 0l7 4v-8z",
}


def mark_path(shape: str, colour: str, places: Sequence[tuple[float, float]], *, small: bool = False) -> str:
    """Return the markers of a series as one SVG path; a circle is the round cap of a line of length 0.

    Examples
    --------
    >>> mark_path("square", "#000", [(10, 5)])
    '<path fill="#000" d="M10 5m-3-3h6v6h-6z"/>'
    """
    if small or shape not in _OUTLINES or shape == "circle":
        dots = "".join(f"M{x:g} {y:g}h.01" for x, y in places)
        return f'<path stroke="{colour}" stroke-width="{3 if small else 7}" stroke-linecap="round" d="{dots}"/>'
    return f'<path fill="{colour}" d="{"".join(f"M{x:g} {y:g}{_OUTLINES[shape]}" for x, y in places)}"/>'


def solid_path(shape: str, colour: str, x: float, y: float) -> str:
    """Return one solid marker as SVG."""
    return mark_path(shape, colour, [(x, y)])


def hollow_path(shape: str, colour: str, x: float, y: float) -> str:
    """Return one outlined marker as SVG."""
    outline = _OUTLINES.get(shape, _OUTLINES["circle"])
    return f'<path fill="none" stroke="{colour}" stroke-width="1.6" d="M{x:g} {y:g}{outline}"/>'


def head_of(title: str, legend: Legend, width: float, *, size: float = HEAD, subtitle: str = "") -> tuple[float, str]:
    """Return the height and the SVG of a title, a subtitle and a legend, one below the other."""
    bottom, parts = 0.0, []
    for line in wrap(title, letters(width, 1.05 * size)):
        bottom += size + 3
        parts.append(title_at(0, bottom - 4, line, size))
    for line in wrap(subtitle, letters(width)):
        bottom += LINE
        parts.append(text_at(0, bottom - 4, line))
    x = width
    for name, colour, shape in legend:
        needed = text_width(name) + 28
        if x == width or x + needed > width:
            x, bottom = 0.0, bottom + LINE
        parts.append(mark_path(shape, colour, [(x + 5, bottom - 8)]) + text_at(x + 13, bottom - 4, name))
        x += needed
    return bottom, "".join(parts)
