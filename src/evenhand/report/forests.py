"""Draw forests: a table with a picture per row on screen, lines over one picture on paper."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from operator import itemgetter
from textwrap import wrap
from typing import Any

from markupsafe import Markup

from evenhand.charts import PALETTE
from evenhand.forest import Forest, shown_value
from evenhand.messages.formats import Format, show_interval, show_tick

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
    if any(row["limits"] for row in rows):
        yield "The black line is the limit."
    if any(panel.zero is not None for panel in panels):
        yield "The dashed line is no difference."
    if any(row["small"] for row in rows):
        yield "Faint: too few people to be compared."


@dataclass(frozen=True)
class _ForestLine:
    """A row of a forest with its text.

    Parameters
    ----------
    row : the row with its numbers.
    colour : of its series.
    span : in the first row of a label, how many rows it has; 0 in the others.
    people : the number of people of the label, where all its rows agree; the rows then omit it.
    value, interval : as text.
    picture : of the interval.
    """

    row: Mapping[str, Any]
    colour: str
    span: int
    people: int | None
    value: str
    interval: str
    picture: str = ""

    @property
    def label(self) -> str:
        return str(self.row["label"])

    @property
    def series(self) -> str:
        return str(self.row["series"])

    @property
    def small(self) -> bool:
        return bool(self.row["small"])

    @property
    def n(self) -> int | None:
        return None if self.people else self.row["n"]


def forest_view(panel: Forest) -> dict[str, Any]:
    """Return a forest as rows of a table: label, series, n, the picture of the interval, value and interval."""

    def x(number: float) -> str:
        return f"{100 * _share(number, panel):.1f}%"

    def picture(content: str, height: int, more: str = "") -> Markup:
        return Markup(f'<svg width="100%" height="{height}"{more} aria-hidden="true">{content}</svg>')  # noqa: S704

    lines = [
        replace(line, picture=picture(_interval_marks(line, x, panel, _ROW), _ROW)) for line in _forest_lines(panel)
    ]
    return {
        "title": panel.title,
        "rows": lines,
        "several": len(panel.series) > 1,
        "counted": any(line.n is not None for line in lines),
        "axis": picture(_axis(panel, x), 14, ' fill="currentColor"'),
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
    def fitting(cls, lines: Sequence[_ForestLine], letters: int, *, several: bool) -> _PaperLayout:
        """Fit the columns to their contents."""

        def longest(texts: Iterable[str]) -> int:
            return max(map(len, texts), default=0)

        label = max(longest(line.series if several else line.label for line in lines) + several, len(_HEAD))
        numbers = (_people(line.n) for line in lines), (line.value for line in lines), (line.interval for line in lines)
        count, value, interval = map(longest, numbers)
        paper = cls(letters, int(several), min(label, letters // 4), count, max(value, 5), max(interval, 8))
        return paper if paper.picture >= _LEAST_PICTURE else replace(paper, interval=0)

    @property
    def picture(self) -> int:
        return self.letters - self.label - self.count - self.value - self.interval - 4

    def head(self) -> tuple[str, ...]:
        """Return the column heads."""
        return _HEAD.ljust(self.label), *self._cells("n" if self.count else "", "value", "interval")

    def rows(self, line: _ForestLine) -> Iterator[_PaperRow]:
        """Yield the text lines of a row: a row for the label first, where the label has several rows."""
        space = " " * self.indent
        if self.indent and line.span:
            people = f"  n = {line.people:,}" if line.people else ""
            yield _PaperRow(f"{line.label[: self.letters - 14]}{people}")
        *before, name = wrap(line.series if self.indent else line.label, self.label - self.indent) or [""]
        label = "\n".join([*(space + part for part in before), f"{space + name:{self.label}}"])
        yield _PaperRow(label, self._cells(_people(line.n), line.value, line.interval), line)

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
    line: _ForestLine | None = None

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
    lines = list(_forest_lines(panel))
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
        return paper.x(_share(number, panel))

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
            for look, path in _marks_on_paper(row.line, x, top, panel.thin):
                paths.setdefault(look, []).append(path)
            if paper.indent and row.line.span:
                paths.setdefault('stroke="#bbb" stroke-width=".6"', []).append(f"M0 {top - _ROW_ON_PAPER}H{width}")
    bottom = (height + 1) * _ROW_ON_PAPER
    drawn = [f'<g fill="#444" transform="translate(0 -2)">{_axis(panel, x, 8.5, paper.room)}</g>']
    drawn += [f'<path fill="none" {look} d="{"".join(parts)}"/>' for look, parts in paths.items()]
    size = f'width="{width}" height="{bottom}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">{"".join(drawn)}</svg>'


def _marks_on_paper(line: _ForestLine, x: Callable[[float], str], top: int, thin: bool) -> Iterator[tuple[str, str]]:
    """Yield the look and path of each mark of a row: the bar, the dot (hollow without an interval), the limits."""
    row, middle = line.row, top + _ROW_ON_PAPER / 2
    stroke, faint = f'stroke="{line.colour}"', ' opacity=".4"' if line.small else ""
    ends = _ends_of(row)
    if ends:
        look = 'stroke-width="1.4"' if thin else f'stroke-width="5" opacity="{".15" if line.small else ".38"}"'
        yield f"{stroke} {look}", f"M{x(ends[0])} {middle}H{x(ends[1])}"
    if row["open"]:
        yield f'{stroke} stroke-width="5" opacity=".5"', f"M{x(row['open'][0])} {middle}H{x(row['open'][1])}"
    if row["value"] is not None:
        yield f'{stroke} stroke-width="5.4" stroke-linecap="round"{faint}', f"M{x(row['value'])} {middle}h.01"
        if ends is None:
            yield 'stroke="#fff" stroke-width="2.6" stroke-linecap="round"', f"M{x(row['value'])} {middle}h.01"
    for dark in (*row["limits"], *([] if row["truth"] is None else [row["truth"]])):
        yield 'stroke="#000" stroke-width="2"', f"M{x(dark)} {top + 1}v{_ROW_ON_PAPER - 2}"


def _share(number: float, panel: Forest) -> float:
    """Return a number's position on the axis of a forest, from 0 to 1."""
    ticks = panel.ticks()
    return min(max((number - ticks[0]) / (ticks[-1] - ticks[0]), 0), 1)


def _axis(panel: Forest, x: Callable[[float], str], size: float = 11, room: float | None = None) -> str:
    """Return the axis numbers; fewer where they would collide."""
    ticks = [(tick, show_tick(tick, panel.style)) for tick in panel.ticks()]
    letters = max(len(text) for _, text in ticks) + 2
    while room is not None and len(ticks) > 2 and letters * size * 0.5 * (len(ticks) - 1) > room:
        ticks = ticks[::2] if len(ticks) % 2 else [ticks[0], ticks[-1]]
    return "".join(
        f'<text x="{x(tick)}" y="11" font-size="{size}" text-anchor="middle">{text}</text>' for tick, text in ticks
    )


def _forest_lines(panel: Forest) -> Iterator[_ForestLine]:
    """Yield the rows of a forest in order, with their text."""
    colours = {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(panel.series)}
    style: Format = "points" if panel.style == "percent" else panel.style
    shown_rows = [row for row in panel.rows if row["label"] in panel.labels and row["series"] in panel.series]
    shown_rows.sort(key=lambda row: (panel.labels.index(row["label"]), panel.series.index(row["series"])))
    people = _people_by_label(shown_rows) if len(panel.series) > 1 else {}
    for label, rows in groupby(shown_rows, key=itemgetter("label")):
        remaining = list(rows)
        for number, row in enumerate(remaining):
            yield _ForestLine(
                row=row,
                colour=colours[row["series"]],
                span=0 if number else len(remaining),
                people=people.get(label),
                value=shown_value(row, panel.style),
                interval=show_interval(row["low"], row["high"], style)
                if row["value"] is not None or row["open"]
                else "",
            )


def _people_by_label(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of people of each label; empty if the rows of some label differ."""
    people: dict[str, int] = {}
    for row in rows:
        if people.setdefault(row["label"], row["n"]) != row["n"]:
            return {}
    return people


def _interval_marks(line: _ForestLine, x: Callable[[float], str], panel: Forest, height: int) -> str:
    """Draw a row as a bar with its value, equality and the limits.

    The numbers are safe to embed.

    The interval is a wide pale bar, or a thin line where wide bars show the open range of a value.
    """
    row, colour, middle = line.row, line.colour, height / 2

    def upright(number: float, look: str, top: float = 1) -> str:
        return f'<line x1="{x(number)}" x2="{x(number)}" y1="{top}" y2="{height - top}" {look}/>'

    def along(ends: Sequence[float], look: str) -> str:
        return f'<line x1="{x(ends[0])}" x2="{x(ends[1])}" y1="{middle}" y2="{middle}" stroke="{colour}" {look}/>'

    parts = [] if panel.zero is None else [upright(panel.zero, f'stroke="{PALETTE[6]}" stroke-dasharray="3 2"', 0)]
    ends = _ends_of(row)
    if ends:
        parts.append(along(ends, 'stroke-width="1.6"' if panel.thin else 'stroke-width="5" opacity=".38"'))
    if row["open"]:
        parts.append(along(row["open"], 'stroke-width="7" opacity=".5"'))
    if row["value"] is not None:
        paint = f'fill="none" stroke="{colour}" stroke-width="1.6"' if ends is None else f'fill="{colour}"'
        parts.append(f'<circle cx="{x(row["value"])}" cy="{middle}" r="{round(height / 4.5, 1)}" {paint}/>')
    dark = [*row["limits"], *([] if row["truth"] is None else [row["truth"]])]
    return "".join([*parts, *(upright(number, 'stroke="currentColor" stroke-width="2"') for number in dark)])


def _ends_of(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the ends of the drawn interval, if any; a missing end is at the value."""
    inner = row["open"] or (row["value"], row["value"])
    ends = tuple(value if end is None else end for value, end in zip(inner, (row["low"], row["high"]), strict=True))
    has_interval = (row["low"] is not None or row["high"] is not None) and None not in ends
    return (ends[0], ends[1]) if has_interval else None
