"""The grid chart: one cell for each group of an intersection, such as race by sex."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from math import ceil
from textwrap import wrap

from evenhand.charts.forest_rows import ForestRow, interval_marks, rows_of
from evenhand.charts.forests import Forest
from evenhand.charts.look import LINE, PANEL_WIDTH, TEXT, Legend, head_of, letters, text_at, text_width
from evenhand.messages import showable
from evenhand.messages.formats import DASH, show_tick

MOST_COLUMNS = 6
"""The most columns whose numbers are legible on a phone."""
_BAR = 14
"""The height of a cell's picture."""


@dataclass(frozen=True)
class Grid:
    """A panel with one cell per group of an intersection: its value, its interval mark and its number of people.

    Parameters
    ----------
    panel : a forest with the values of one series; its labels are the groups.
    rows, columns : the parts of the groups' names.
    groups : the group of each cell, by row and column; "" for an empty cell.
    """

    panel: Forest
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]

    @property
    def title(self) -> str:
        """The title of the panel."""
        return self.panel.title

    @property
    def legend(self) -> Legend:
        """An empty legend, since a grid shows one series."""
        return []

    def drawn(self, width: int, height: int, *, legend: bool, titles: bool = True) -> tuple[int, int, str]:  # noqa: ARG002 - cells have a height of their own
        """Return the width, the height and the SVG content of the panel; see `Panel`."""
        panel = self if titles else replace(self, panel=replace(self.panel, title=""))
        return _Drawing(panel, width or PANEL_WIDTH + 120).made()


def grids_of(panel: Forest, between: str) -> list[Grid]:
    """Return a grid for each series of a panel whose labels name intersections of two or more groups.

    If labels have three names, the first two name the row together. The list is empty if labels differ in their number
    of names, or if a grid would be too wide.

    Parameters
    ----------
    panel
        The values; their labels are the groups.
    between
        The separator between the names of a label.
    """
    parts = _parts_of(panel.labels, between)
    across, along = (tuple(dict.fromkeys(names[side] for names in parts.values())) for side in (0, 1))
    if len(along) > len(across):
        across, along = along, across
        parts = {label: (after, before) for label, (before, after) in parts.items()}
    if not 2 <= len(along) <= MOST_COLUMNS:
        return []
    cells = _cells({names: label for label, names in parts.items()}, across, along)
    drawn = {row["series"] for row in panel.rows}
    return [Grid(_of_series(panel, name), across, along, cells) for name in panel.series if name in drawn]


def _cells(
    group: Mapping[tuple[str, str], str], rows: Sequence[str], columns: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(group.get((row, column), "") for column in columns) for row in rows)


def _parts_of(labels: Sequence[str], between: str) -> dict[str, tuple[str, str]]:
    """Return each label's names before and after its last separator; empty if labels differ in their separators."""
    if len({label.count(between) for label in labels} | {0}) != 2 or any(between not in label for label in labels):
        return {}
    return {label: (before, after) for label in labels for before, after in [label.rsplit(between, 1)]}


def _of_series(panel: Forest, name: str) -> Forest:
    """Return the forest of one series, titled by its name if there are several; bars if the axis starts at 0."""
    title = f"{panel.title}, {name}" if len(panel.series) > 1 else panel.title
    rows = tuple(row for row in panel.rows if row["series"] == name)
    axis = panel.domain or panel.ends()
    return replace(panel, title=title, rows=rows, series=(name,), domain=axis, bars=panel.bars or axis[0] == 0)


class _Drawing:
    """The drawing of a grid as SVG."""

    def __init__(self, grid: Grid, width: int) -> None:
        self.grid, self.width = grid, width
        longest = max((text_width(name) for name in grid.rows), default=0.0)
        self.labels = min(longest, width / 4) + 8
        self.cell = (width - self.labels) / len(grid.columns)
        self.top = 0.0

    def made(self) -> tuple[int, int, str]:
        """Return the width, the height and the SVG content of the drawing."""
        self.top, head = head_of(self.grid.title, [], self.width, subtitle=self.grid.panel.start)
        known = {row.label: row for row in rows_of(self.grid.panel)}
        names = "".join(self._names(self.grid.columns))
        rows = [
            self._row(name, [known.get(group) for group in groups])
            for name, groups in zip(self.grid.rows, self.grid.groups, strict=True)
        ]
        foot = "".join(self._axis())
        return self.width, ceil(self.top + LINE), "".join([head, names, *rows, foot])

    def _left(self, column: int) -> float:
        return self.labels + column * self.cell

    def _names(self, names: Sequence[str]) -> Iterator[str]:
        """Yield the names of the columns, and move the top down by their height."""
        broken = [wrap(name, letters(self.cell - 8)) for name in names]
        for column, lines in enumerate(broken):
            for number, line in enumerate(lines):
                yield text_at(self._left(column), self.top + 13 + number * LINE, line, _BOLD)
        self.top += max(map(len, broken)) * LINE + 6

    def _row(self, name: str, cells: Sequence[ForestRow | None]) -> str:
        """Return a row of cells below a thin line, and move the top down by its height."""
        lines = wrap(name, letters(self.labels - 8))
        parts = [f'<path stroke="currentColor" opacity=".14" d="M0 {self.top:.1f}H{self.width}"/>']
        parts.append(f'<g font-size="{TEXT}" fill="currentColor">')
        parts += [_line(0, self.top + 14 + number * LINE, line) for number, line in enumerate(lines)]
        texts = [list(self._texts(cell)) for cell in cells]
        for column, (cell, beside) in enumerate(zip(cells, texts, strict=True)):
            parts += self._cell(self._left(column), cell, beside)
        self.top += max(len(lines) * LINE, max(map(len, texts)) * LINE + _BAR) + 6
        return "".join([*parts, "</g>"])

    def _texts(self, cell: ForestRow | None) -> Iterator[str]:
        """Yield a cell's value, its number of people and the number missing, in lines that fit."""
        if cell is None:
            yield DASH
            return
        people = "" if cell.n is None else f"n = {cell.n:,}"
        short = f"{cell.short} people short" if cell.row["short"] else ""
        line = cell.value
        for text in filter(None, (people, short)):
            if text_width(longer := f"{line} \u00b7 {text}") <= self.cell - 8:
                line = longer
            else:
                yield line
                line = text
        yield line

    def _cell(self, left: float, cell: ForestRow | None, texts: Sequence[str]) -> Iterator[str]:
        """Yield a cell: its texts, and its interval mark below them."""
        for number, text in enumerate(texts):
            yield _line(left, self.top + 14 + number * LINE, text)
        if cell is not None and cell.known:
            marks = interval_marks(cell, partial(self._x, 0), self.grid.panel, _BAR)
            yield f'<g transform="translate({left:.1f} {self.top + len(texts) * LINE + 2:.1f})">{marks}</g>'

    def _x(self, left: float, number: float) -> str:
        return f"{left + (self.cell - 14) * self.grid.panel.share(number):.1f}"

    def _axis(self) -> Iterator[str]:
        """Yield the ends of the axis below each column."""
        ticks = self.grid.panel.ticks()
        for column in range(len(self.grid.columns)):
            for tick, anchor in ((ticks[0], "start"), (ticks[-1], "end")):
                text = show_tick(tick, self.grid.panel.style)
                yield text_at(float(self._x(self._left(column), tick)), self.top + 12, text, anchor=anchor)


def _line(x: float, y: float, text: str) -> str:
    """Return a text as SVG in the style of its row."""
    return f'<text x="{x:.0f}" y="{y:.0f}">{escape(showable(text))}</text>'


_BOLD = 'fill="currentColor" font-weight="600"'
