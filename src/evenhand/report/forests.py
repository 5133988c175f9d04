"""Draw forests: a table with a picture per row on screen, lines over one picture on paper."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from textwrap import wrap
from typing import Any

from markupsafe import Markup

from evenhand.charts import PALETTE, Forest
from evenhand.charts.forest_rows import (
    ForestRow,
    axis_numbers,
    dark_of,
    interval_marks,
    interval_of,
    lengths_of,
    rows_of,
)

_ROW, _ROW_ON_PAPER = 18, 12
"""The height of a row of a forest."""
_LETTER = 5.1
"""The width of a letter in a forest on paper: 0.6 of its font size, 8.5 pixels."""
_LEAST_PICTURE = 18
"""The minimum width of a forest's picture on paper, in letters."""
_HEAD = "Of"
"""The heading above the labels of a forest on paper."""
_MOST_LINES, _CUT_TO = 56, 28
"""The most lines of a panel on paper; a longer panel is cut to fewer, as it is incomplete anyway."""


def what_marks_mean(panels: Sequence[Forest]) -> Iterator[str]:
    """Yield the legend of the marks in forests."""
    rows = [row for panel in panels for row in panel.rows]
    for black in dict.fromkeys(panel.black for panel in panels if any(row["limits"] for row in panel.rows)):
        yield f"The black line is {black}."
    for dashed in dict.fromkeys(panel.dashed for panel in panels if panel.zero is not None):
        yield f"The dashed line is {dashed}."
    if any(row["small"] for row in rows):
        yield "Broken bars: too few people to be compared."


def forest_view(panel: Forest) -> dict[str, Any]:
    """Return a forest as rows of a table: label, series, n, the picture of the interval, value and interval."""

    def x(number: float) -> str:
        return f"{100 * panel.share(number):.1f}%"

    def picture(content: str, height: int, more: str = "") -> Markup:
        return Markup(f'<svg width="100%" height="{height}"{more} aria-hidden="true">{content}</svg>')  # noqa: S704

    lines = [(line, picture(interval_marks(line, x, panel, _ROW), _ROW)) for line in rows_of(panel)]
    return {
        "title": panel.title,
        "start": panel.start,
        "note": panel.note,
        "bounded": any(interval_of(line.row) for line, _ in lines),
        "rows": lines,
        "several": len(panel.series) > 1,
        "paired": any(line.pair for line, _ in lines),
        "counted": any(line.n is not None for line, _ in lines),
        "axis": picture(axis_numbers(panel, x), 14, ' fill="currentColor"'),
    }


@dataclass(frozen=True)
class _PaperLayout:
    """The layout of a forest in fixed-width letters: the width of each column.

    Parameters
    ----------
    letters : the width of a line.
    indent : of rows below their label; 0 where a row is a label.
    label, count, value, interval : the widths of these columns; the picture takes the rest. If that is too little, the
        interval is only drawn.
    """

    letters: int
    indent: int
    label: int
    count: int
    value: int
    interval: int

    @classmethod
    def fitting(cls, lines: Sequence[ForestRow], letters: int, *, several: bool) -> _PaperLayout:
        """Fit the columns to their contents."""

        def longest(texts: Iterable[str]) -> int:
            return max(map(len, texts), default=0)

        label = max(longest(line.named(several=several) for line in lines) + several, len(_HEAD))
        numbers = (
            (_people(line.n) for line in lines),
            (line.value_and_note for line in lines),
            (line.interval for line in lines),
        )
        count, value, interval = map(longest, numbers)
        paper = cls(letters, int(several), min(label, letters // 4), count, max(value, 5), max(interval, 8))
        return paper if paper.picture >= _LEAST_PICTURE else replace(paper, interval=0)

    @property
    def picture(self) -> int:
        return self.letters - self.label - self.count - self.value - self.interval - 4

    def head(self) -> tuple[str, ...]:
        """Return the column heads."""
        return _HEAD.ljust(self.label), *self._cells("n" if self.count else "", "value", "interval")

    def rows(self, line: ForestRow) -> Iterator[_PaperRow]:
        """Yield the text lines of a row: a row for the label first, where the label has several rows."""
        space = " " * self.indent
        if self.indent and line.span:
            people = f"  n = {line.people:,}" if line.people else ""
            yield _PaperRow(f"{line.label[: self.letters - 14]}{people}")
        *before, name = wrap(line.named(several=bool(self.indent)), self.label - self.indent) or [""]
        label = "\n".join([*(space + part for part in before), f"{space + name:{self.label}}"])
        yield _PaperRow(label, self._cells(_people(line.n), line.value_and_note, line.interval), line)

    def _cells(self, n: str, value: str, interval: str) -> tuple[str, ...]:
        """Return the cells after the label.

        Value and interval share a cell, since each cell costs print time.
        """
        counted = [f" {n:>{self.count}}"] if self.count else []
        interval_text = f"  {interval:>{self.interval}}" if self.interval else ""
        return *counted, f"{'':{self.picture + (not self.count)}} {value:>{self.value}}{interval_text}"

    def x(self, share: float) -> str:
        """Return the picture's x coordinate of a share of the axis, in pixels."""
        return f"{self._start + self.room * share:.1f}"

    @property
    def _start(self) -> float:
        return (self.label + self.count + 4) * _LETTER

    @property
    def room(self) -> float:
        """The width of the picture, in pixels."""
        return (self.picture - 6) * _LETTER


@dataclass(frozen=True)
class _PaperRow:
    """A row on paper: its head, the cells after it, and the line whose interval is drawn in it, if any."""

    head: str
    cells: tuple[str, ...] = ()
    line: ForestRow | None = None

    @property
    def high(self) -> int:
        return self.head.count("\n") + 1


def _people(n: int | None) -> str:
    return "" if n is None else f"{n:,}"


def forest_on_paper(panel: Forest, width: int) -> dict[str, Any]:
    """Return a forest for paper: a table in fixed-width letters over a picture of its intervals.

    The style sheet renders its rows as plain lines, since real tables take ten times as long; a screen reader still
    sees a table.
    """
    lines = list(rows_of(panel))
    paper = _PaperLayout.fitting(lines, int(width / _LETTER), several=len(panel.series) > 1)
    rows = [row for line in lines for row in paper.rows(line)]
    shown = _rows_that_fit(rows)
    more = sum(row.line is not None for row in rows[len(shown) :])
    return {
        "title": panel.title,
        "src": as_source(_picture_on_paper(panel, paper, shown, width)),
        "head": paper.head(),
        "lines": shown,
        "more": f"{more:,} more {'row is' if more == 1 else 'rows are'} in report.html." if more else "",
    }


def as_source(svg: str) -> str:
    """Return a picture as an image source, which is not parsed as part of the page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _rows_that_fit(rows: Sequence[_PaperRow]) -> list[_PaperRow]:
    """Return the rows that fit into a panel on paper."""
    most = _MOST_LINES if sum(row.high for row in rows) <= _MOST_LINES else _CUT_TO
    heights = accumulate(row.high for row in rows)
    return [row for row, height in zip(rows, heights, strict=True) if height <= most]


def _picture_on_paper(panel: Forest, paper: _PaperLayout, rows: Sequence[_PaperRow], width: int) -> str:
    """Draw the axis and intervals; marks of one look share a path, since the renderer is slow with many."""

    def x(number: float) -> str:
        return paper.x(panel.share(number))

    paths: dict[str, list[str]] = {}
    height, dashed = 0, f'stroke="{PALETTE[6]}" stroke-dasharray="3 2"'
    for row in rows:
        height += row.high
        if row.line is not None:
            top = height * _ROW_ON_PAPER
            if panel.zero is not None:  # not across the rows of labels, which may extend beyond it
                paths.setdefault(dashed, []).append(
                    f"M{x(panel.zero)} {top + _ROW_ON_PAPER}v-{row.high * _ROW_ON_PAPER}"
                )
            for look, path in _marks_on_paper(row.line, x, top, panel):
                paths.setdefault(look, []).append(path)
            if paper.indent and row.line.span:
                paths.setdefault('stroke="#bbb" stroke-width=".6"', []).append(f"M0 {top - _ROW_ON_PAPER}H{width}")
    bottom = (height + 1) * _ROW_ON_PAPER
    drawn = [f'<g fill="#444" transform="translate(0 -2)">{axis_numbers(panel, x, 8.5, paper.room)}</g>']
    drawn += [f'<path fill="none" {look} d="{"".join(parts)}"/>' for look, parts in paths.items()]
    size = f'width="{width}" height="{bottom}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">{"".join(drawn)}</svg>'


def _marks_on_paper(line: ForestRow, x: Callable[[float], str], top: int, panel: Forest) -> Iterator[tuple[str, str]]:
    """Yield the look and path of each mark of a row: the bar, the dot (hollow without an interval), the limits."""
    row, middle = line.row, top + _ROW_ON_PAPER / 2
    for (left, right), look in lengths_of(line, panel, "#000"):
        yield look, f"M{x(left)} {middle}H{x(right)}"
    if row["value"] is not None and not panel.bars:
        yield f'stroke="{line.colour}" stroke-width="5.4" stroke-linecap="round"', f"M{x(row['value'])} {middle}h.01"
        if interval_of(row) is None:
            yield 'stroke="#fff" stroke-width="2.6" stroke-linecap="round"', f"M{x(row['value'])} {middle}h.01"
    for dark in dark_of(row):
        yield 'stroke="#000" stroke-width="2"', f"M{x(dark)} {top + 1}v{_ROW_ON_PAPER - 2}"
