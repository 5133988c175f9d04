"""The rows of a forest: their order, text, colour and shape, and the marks of their intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from evenhand.charts.look import PALETTE, hollow_path, looks, solid_path
from evenhand.messages.formats import Format, show, show_interval, show_tick

if TYPE_CHECKING:
    from evenhand.charts.forests import Forest


BROKEN = ' stroke-dasharray="3 2"'
"""The look of an interval of people too few to be compared."""


@dataclass(frozen=True)
class ForestRow:
    """A row of a forest with its text and style.

    Parameters
    ----------
    row : the row with its numbers.
    colour, shape : the colour and shape of its series.
    span : the number of rows of the label, in the first of them; 0 in all others.
    people : the number of people of the label if equal in all its rows; the rows then omit it.
    value, interval : the value and the interval as text.
    """

    row: Mapping[str, Any]
    colour: str
    shape: str
    span: int
    people: int | None
    value: str
    interval: str

    @property
    def label(self) -> str:
        """The label of the row."""
        return str(self.row["label"])

    @property
    def series(self) -> str:
        """The series of the row."""
        return str(self.row["series"])

    @property
    def small(self) -> bool:
        """Whether the row has too few people for a comparison."""
        return bool(self.row["small"])

    @property
    def known(self) -> bool:
        """Whether the row has a value or an open range."""
        return self.row["value"] is not None or bool(self.row["open"])

    @property
    def n(self) -> int | None:
        """The number of people of the row, or None if its label shows it."""
        return None if self.people else self.row["n"]

    @property
    def pair(self) -> str:
        """The two groups compared by the row."""
        return str(self.row["pair"])

    @property
    def short(self) -> str:
        """The number of people missing to reach the row's limit, as text."""
        return "" if self.row["short"] is None else f"{self.row['short']:,}"

    @property
    def value_and_short(self) -> str:
        """The row's value, with the number of missing people if there are any."""
        return f"{self.value} ({self.short} short)" if self.row["short"] else self.value

    def named(self, *, several: bool) -> str:
        """Return the row's series if there are several, otherwise its label, followed by its two groups."""
        name = self.series if several else self.label
        return f"{name}: {self.pair}" if self.pair else name


def rows_of(panel: Forest) -> Iterator[ForestRow]:
    """Yield the rows of a forest in order, with their text and style."""
    look = {name: (colour, shape) for name, colour, shape in looks(panel.series)}
    style: Format = "points" if panel.style == "percent" else panel.style
    shown = [row for row in panel.rows if row["label"] in panel.labels and row["series"] in panel.series]
    shown.sort(key=lambda row: (panel.labels.index(row["label"]), panel.series.index(row["series"])))
    people = _people_by_label(shown) if len(panel.series) > 1 else {}
    for label, rows in groupby(shown, key=itemgetter("label")):
        remaining = list(rows)
        for number, row in enumerate(remaining):
            colour, shape = look[row["series"]]
            is_known = row["value"] is not None or row["open"]
            yield ForestRow(
                row=row,
                colour=colour,
                shape=shape,
                span=0 if number else len(remaining),
                people=people.get(label),
                value=shown_value(row, panel.style),
                interval=show_interval(row["low"], row["high"], style) if is_known else "",
            )


def _people_by_label(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of people of each label; empty if the rows of any label differ."""
    people: dict[str, int] = {}
    for row in rows:
        if people.setdefault(row["label"], row["n"]) != row["n"]:
            return {}
    return people


def shown_value(row: Mapping[str, Any], style: Format) -> str:
    """Return the value of a row as text, or both ends of its open range."""
    if row["open"]:
        low, high = row["open"]
        return show_interval(low, high, "points" if style == "percent" else style)
    return show(row["value"], style)


def interval_of(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the ends of the drawn interval, or None without an interval; a missing end is placed at the value."""
    inner = row["open"] or (row["value"], row["value"])
    ends = tuple(value if end is None else end for value, end in zip(inner, (row["low"], row["high"]), strict=True))
    has_interval = (row["low"] is not None or row["high"] is not None) and None not in ends
    return (ends[0], ends[1]) if has_interval else None


def lengths_of(line: ForestRow, panel: Forest, dark: str = "currentColor") -> Iterator[tuple[tuple[float, float], str]]:
    """Yield ends and SVG style of each horizontal line of a row: bar, distance to limits, open range, interval."""
    row, colour = line.row, f'stroke="{line.colour}"'
    if panel.bars and row["value"] is not None:
        yield (0.0, row["value"]), f'{colour} stroke-width="9"'
        for limit in row["limits"]:
            if limit > row["value"]:
                yield (row["value"], limit), f'{colour} stroke-width="9" opacity=".25"'
    if row["open"]:
        yield row["open"], f'{colour} stroke-width="7"'
    if ends := interval_of(row):
        thin = f'stroke="{dark}" stroke-width="1.6"' if panel.bars else f'{colour} stroke-width="1.4"'
        usual = f'{colour} stroke-width="2.6"{BROKEN if line.small else ""}'
        yield ends, thin if panel.bars or panel.thin else usual


def dark_of(row: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the positions of a row's black lines: its limits, and the true value if known."""
    return (*row["limits"], *(() if row["truth"] is None else (row["truth"],)))


def axis_numbers(panel: Forest, x: Callable[[float], str], size: float = 11, room: float | None = None) -> str:
    """Return the tick labels of a forest's axis as SVG; fewer if they would overlap."""
    ticks = [(tick, show_tick(tick, panel.style)) for tick in panel.ticks()]
    most = max(len(text) for _, text in ticks) + 2
    while room is not None and len(ticks) > 2 and most * size * 0.5 * (len(ticks) - 1) > room:
        ticks = ticks[::2] if len(ticks) % 2 else [ticks[0], ticks[-1]]
    return "".join(
        f'<text x="{x(tick)}" y="11" font-size="{size}" text-anchor="middle">{text}</text>' for tick, text in ticks
    )


def interval_marks(line: ForestRow, x: Callable[[float], str], panel: Forest, height: int) -> str:
    """Return the SVG marks of a row: its interval, value, limits and the line of equality.

    The numbers are safe to embed. The interval is a bar, which is dashed if there are too few people for a comparison,
    and thin where wide bars show the open range of a value; a value without an interval is hollow.

    Parameters
    ----------
    line
        The row.
    x
        A function that returns the position of a number, in pixels or percent.
    panel
        The forest of the row.
    height
        The height of the row in pixels.
    """
    middle = height / 2

    def upright(number: float, look: str, top: float = 1) -> str:
        return f'<line x1="{x(number)}" x2="{x(number)}" y1="{top}" y2="{height - top}" {look}/>'

    parts = [] if panel.zero is None else [upright(panel.zero, f'stroke="{PALETTE[6]}" stroke-dasharray="3 2"', 0)]
    for (left, right), look in lengths_of(line, panel):
        parts.append(f'<line x1="{x(left)}" x2="{x(right)}" y1="{middle}" y2="{middle}" {look}/>')
    if line.row["value"] is not None and not panel.bars:
        is_hollow = interval_of(line.row) is None
        mark = (hollow_path if is_hollow else solid_path)(line.shape, line.colour, 0, 0)
        parts.append(
            f'<svg x="{x(line.row["value"])}" y="{middle}" overflow="visible">{mark}</svg>'
        )  # x may be in percent
    dark = (upright(number, 'stroke="currentColor" stroke-width="2"') for number in dark_of(line.row))
    return "".join([*parts, *dark])
