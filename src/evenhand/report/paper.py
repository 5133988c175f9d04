"""Draw forests on paper: lines of text over images of their intervals, in pieces that fill pages."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from textwrap import wrap
from typing import Any

from evenhand.charts import PALETTE, Forest
from evenhand.charts.forest_rows import (
    ForestRow,
    axis_numbers,
    dark_of,
    interval_of,
    lengths_of,
    rows_of,
)
from evenhand.charts.look import FONT

_ROW = 15
"""The height of a line in pixels; the font size is 12 pixels (9 pt)."""
_LETTER = 6.3
"""A generous average width of a letter in a proportional sans serif of 12 pixels."""
_WIDTHS = {**dict.fromkeys("0123456789+−–", 6.8), **dict.fromkeys(" .,:;()|'", 3.5), "%": 10.8}
_GAP, _AXIS, _INDENT, _LEAST_PICTURE = 10, 20, 8, 90
"""The space between columns, before the chart and before a row, and the chart's minimum width, in pixels."""
_HEAD = "Of"
"""The heading above the labels."""
_MOST_LINES, _CUT_TO = 56, 28
"""The maximum number of lines in a panel, and the number that a longer panel is cut to."""
_PIECE = 8
"""The minimum number of lines in a piece; page breaks are between pieces."""


@dataclass(frozen=True)
class _Layout:
    """The columns of a forest in pixels.

    Parameters
    ----------
    width : the width of a line.
    indent : the number of spaces before rows below their label; 0 if each row is a label.
    label, count, value, interval : the widths of these columns. The chart has the remaining width; if that is too
        small, the interval is drawn but not written.
    """

    width: float
    indent: int
    label: float
    count: float
    value: float
    interval: float

    @classmethod
    def fitting(cls, lines: Sequence[ForestRow], width: float, *, several: bool) -> _Layout:
        """Return a layout with columns that fit their contents."""

        def widest(texts: Iterable[str], least: str) -> float:
            return max(map(_width, (*texts, least)))

        label = max((len(line.named(several=several)) for line in lines), default=0) * _LETTER + _INDENT * several
        count = widest((_people(line.n) for line in lines), "") if any(line.n is not None for line in lines) else 0.0
        value = widest((line.value_and_short for line in lines), "value")
        bounded = any(interval_of(line.row) for line in lines)
        interval = widest((line.interval for line in lines), "interval") if bounded else 0.0
        paper = cls(width, 2 * several, min(max(label, 60.0), width / 2.5), count, value, interval)
        return paper if paper.room >= _LEAST_PICTURE else replace(paper, interval=0.0)

    @property
    def start(self) -> float:
        """The x coordinate of the chart's left edge."""
        return self.label + self.count + (_GAP + _AXIS if self.count else _AXIS)

    @property
    def room(self) -> float:
        """The width of the chart."""
        return self.width - self.start - self.value - self.interval - _AXIS - 2 * _GAP

    def x(self, share: float) -> str:
        """Return the x coordinate of a share of the axis."""
        return f"{self.start + self.room * share:.1f}"

    def head(self) -> tuple[str, tuple[_Cell, ...]]:
        """Return the column headers."""
        return _HEAD, self.cells("n" if self.count else "", "value", "interval")

    def rows(self, line: ForestRow) -> Iterator[_Row]:
        """Yield the text lines of a row, with a separate first line for a label of several rows."""
        space = "\u00a0" * self.indent
        if self.indent and line.span:
            people = f", n = {line.people:,}" if line.people else ""
            yield _Row(f"{line.label[: int(self.width / _LETTER) - 14]}{people}")
        letters = max(8, int((self.label - _INDENT * bool(self.indent)) / _LETTER + 0.01))
        parts = wrap(line.named(several=bool(self.indent)), letters) or [""]
        cells = self.cells(_people(line.n), line.value_and_short, line.interval)
        yield _Row("\n".join(space + part for part in parts), cells, line)

    def cells(self, n: str, value: str, interval: str) -> tuple[_Cell, ...]:
        """Return the cells after the label, each with its right edge's distance from the right end of the line."""
        after_value = self.interval + _GAP if self.interval else 0.0
        counted = [_Cell(n, self.width - self.label - self.count - _GAP)] if self.count else []
        given = [_Cell(interval, 0.0)] if self.interval else []
        return *counted, _Cell(value, after_value), *given


@dataclass(frozen=True)
class _Cell:
    """A right-aligned cell, and its right edge's distance from the right end of the line in pixels."""

    text: str
    right: float


@dataclass(frozen=True)
class _Row:
    """A row of text: its header, the cells after it, and the forest row to draw in it (or None)."""

    head: str
    cells: tuple[_Cell, ...] = ()
    line: ForestRow | None = None

    @property
    def high(self) -> int:
        return self.head.count("\n") + 1


def _people(n: int | None) -> str:
    return "" if n is None else f"{n:,}"


def _width(text: str) -> float:
    """Return the approximate width of a text in pixels."""
    return sum(_WIDTHS.get(letter, _LETTER) for letter in text) + 1


def forest_on_paper(panel: Forest, width: int) -> dict[str, Any]:
    """Return a forest for paper: tables over images of their intervals, cut between labels to fill pages.

    The style sheet renders rows as plain lines, because rendering tables takes ten times as long. A screen reader
    still reads a table.
    """
    lines = list(rows_of(panel))
    paper = _Layout.fitting(lines, width, several=len(panel.series) > 1)
    rows = [row for line in lines for row in paper.rows(line)]
    shown = _rows_that_fit(rows)
    more = sum(row.line is not None for row in rows[len(shown) :])
    pieces = [
        {
            "src": as_source(_picture(panel, paper, piece, head=number == 0)),
            "head": paper.head() if number == 0 else None,
            "rows": piece,
        }
        for number, piece in enumerate(_pieces(shown, indented=bool(paper.indent)))
    ]
    return {
        "title": panel.title,
        "width": width,
        "pieces": pieces,
        "more": f"{more:,} more {'row is' if more == 1 else 'rows are'} in report.html." if more else "",
    }


def as_source(svg: str) -> str:
    """Return an SVG as an image source, which is not parsed as part of the page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _rows_that_fit(rows: Sequence[_Row]) -> list[_Row]:
    """Return the rows that fit into a panel."""
    most = _MOST_LINES if sum(row.high for row in rows) <= _MOST_LINES else _CUT_TO
    heights = accumulate(row.high for row in rows)
    return [row for row, height in zip(rows, heights, strict=True) if height <= most]


def _pieces(rows: Sequence[_Row], *, indented: bool) -> list[list[_Row]]:
    """Cut rows between labels into pieces of at least 8 lines; the last piece has at least half as many."""
    pieces: list[list[_Row]] = [[]]
    for position, row in enumerate(rows):
        begins_label = not row.cells if indented else True
        full = sum(other.high for other in pieces[-1]) >= _PIECE
        if begins_label and full and sum(other.high for other in rows[position:]) >= _PIECE / 2:
            pieces.append([])
        pieces[-1].append(row)
    return pieces


def _picture(panel: Forest, paper: _Layout, rows: Sequence[_Row], *, head: bool) -> str:
    """Draw the axis and intervals; marks of the same style share a path, because many paths render slowly."""

    def x(number: float) -> str:
        return paper.x(panel.share(number))

    paths: dict[str, list[str]] = {}
    height, dashed = int(head) - 1, f'stroke="{PALETTE[6]}" stroke-dasharray="3 2"'
    for row in rows:
        height += row.high
        if row.line is not None:
            top = height * _ROW
            if panel.zero is not None:  # not across the rows of labels, which may extend beyond it
                paths.setdefault(dashed, []).append(f"M{x(panel.zero)} {top + _ROW}v-{row.high * _ROW}")
            for look, path in _marks(row.line, x, top, panel):
                paths.setdefault(look, []).append(path)
            if paper.indent and row.line.span:
                paths.setdefault('stroke="#bbb" stroke-width=".6"', []).append(f"M0 {top - _ROW}H{paper.width}")
    axis = f'<g fill="#444" transform="translate(0 -1)">{axis_numbers(panel, x, 12, paper.room)}</g>' if head else ""
    drawn = [f'<path fill="none" {look} d="{"".join(parts)}"/>' for look, parts in paths.items()]
    size = f'width="{paper.width}" height="{(height + 1) * _ROW}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}">{axis}{"".join(drawn)}</svg>'


def _marks(line: ForestRow, x: Callable[[float], str], top: int, panel: Forest) -> Iterator[tuple[str, str]]:
    """Yield the style and path of each mark in a row: the bar, the dot (hollow without an interval) and the limits."""
    row, middle = line.row, top + _ROW / 2
    for (left, right), look in lengths_of(line, panel, "#000"):
        yield look, f"M{x(left)} {middle}H{x(right)}"
    if row["value"] is not None and not panel.bars:
        yield f'stroke="{line.colour}" stroke-width="5.4" stroke-linecap="round"', f"M{x(row['value'])} {middle}h.01"
        if interval_of(row) is None:
            yield 'stroke="#fff" stroke-width="2.6" stroke-linecap="round"', f"M{x(row['value'])} {middle}h.01"
    for dark in dark_of(row):
        yield 'stroke="#000" stroke-width="2"', f"M{x(dark)} {top + 1}v{_ROW - 2}"
