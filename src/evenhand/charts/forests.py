"""The forest chart: values with their intervals, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil
from textwrap import wrap
from typing import Any

from evenhand.charts.forest_rows import ForestRow, axis_numbers, interval_marks, rows_of
from evenhand.charts.look import (
    LINE,
    PANEL_WIDTH,
    Legend,
    ends_of,
    head_of,
    letters,
    looks,
    round_ticks,
    text_at,
    text_width,
)
from evenhand.messages.formats import MINUS, Format, show_tick

MOST_ROWS = 24
"""The largest number of rows in a panel."""
NO_DIFFERENCE = "no difference"
_ROW = 18
_NUMBER = 11
"""The font size of values and of the axis."""


@dataclass(frozen=True)
class Forest:
    """A panel of values with intervals, drawn as rows of a table on a page or as rows of marks in a picture.

    Parameters
    ----------
    title : the panel's title.
    rows : for each value its `label`, `series`, `value`, `low`, `high`, `n`, `limits` and whether it is `small`; for a
        value known only up to bounds the two ends of its `open` range, and the true value, `truth`, if known.
    labels : the labels from top to bottom.
    series : all series in order, so that each has one colour in all panels.
    style : the format of numbers.
    zero : the position of the dashed line, if any.
    domain : the ends of the axis, if several panels share one.
    width : the width of the plot in pixels.
    thin : whether intervals are thin lines, because thick bars show open ranges.
    dashed : the meaning of the dashed line.
    bars : whether values are bars from 0, with the distance to their limits in a pale colour.
    black : the meaning of the black lines.
    """

    title: str
    rows: tuple[Mapping[str, Any], ...]
    labels: tuple[str, ...]
    series: tuple[str, ...]
    style: Format = "number"
    zero: float | None = None
    domain: tuple[float, float] | None = None
    width: int = PANEL_WIDTH
    thin: bool = False
    dashed: str = NO_DIFFERENCE
    bars: bool = False
    black: str = "the limit"

    def ends(self) -> tuple[float, float]:
        """Return the range of the values, or of the shared axis."""
        if self.domain is not None and self.domain[0] < self.domain[1]:
            return self.domain
        numbers = [row[name] for row in self.rows for name in ("value", "low", "high", "truth")]
        numbers += [end for row in self.rows for end in (*row["limits"], *(row["open"] or ()))] + [self.zero]
        return ends_of(numbers)

    def ticks(self) -> list[float]:
        """Return at most five round numbers between the ends of the axis.

        Examples
        --------
        >>> forest([{"label": "a", "value": 0.17, "low": 0.12, "high": 0.31}], title="").ticks()
        [0.1, 0.2, 0.3, 0.4]
        """
        return round_ticks(*self.ends())

    @property
    def start(self) -> str:
        """A note on where the axis starts if it excludes 0 and shows no line of no difference; otherwise ""."""
        first, *_, last = self.ticks()
        is_cut = (first > 0 or last < 0) and (self.zero is None or self.dashed != NO_DIFFERENCE)
        return f"axis from {show_tick(first, self.style)}" if is_cut else ""

    @property
    def paired(self) -> bool:
        """Whether any row compares two groups."""
        return any(row["pair"] for row in self.rows)

    def share(self, number: float) -> float:
        """Return a number's position on the axis as a share from 0 to 1."""
        ticks = self.ticks()
        return min(max((number - ticks[0]) / (ticks[-1] - ticks[0]), 0), 1)

    @property
    def legend(self) -> Legend:
        """Each series with its colour and shape; empty for a single series."""
        return looks(self.series) if len(self.series) > 1 else []

    def drawn(self, width: int, height: int, *, legend: bool, titles: bool = True) -> tuple[int, int, str]:  # noqa: ARG002 - rows have a height of their own
        """Return the width, the height and the SVG content of the panel; see `Panel`."""
        return _Drawing(self if titles else replace(self, title=""), width).made(legend)


def forest(
    rows: Sequence[Mapping[str, Any]],
    *,
    title: str,
    order: Sequence[str] | None = None,
    series: Sequence[str] | None = None,
    percent: bool = False,
    style: Format | None = None,
    zero: float | None = None,
    domain: tuple[float, float] | None = None,
    width: int = PANEL_WIDTH,
    thin: bool = False,
    dashed: str = NO_DIFFERENCE,
    **options: Any,
) -> Forest:
    """Return a panel of values with intervals.

    Parameters
    ----------
    rows
        For each value its `label` (the row), `value`, `low` and `high`, and optionally its `series`, `n`, `limits` (of
        thresholds), whether it is `small` (its interval is then dashed), its `open` range (two ends), the true value
        `truth`, the `pair` of compared groups, and `short`, the number of people missing to reach its limit. A value
        without an interval is hollow.
    title
        The panel's title.
    order
        The labels from top to bottom; by default in order of appearance.
    series
        All series in order, so that each has one colour in all panels; by default in order of appearance.
    percent
        Whether numbers are in percent.
    style
        The format of numbers; by default as for `percent`.
    zero
        The position of the dashed line, if any.
    domain
        The ends of the axis, if several panels share one; by default the range of the values.
    width
        The width of the plot in pixels.
    thin
        Whether intervals are thin lines.
    dashed
        The meaning of the dashed line.
    options
        The options `bars` and `black` of `Forest`.
    """
    usual = {"series": "", "low": None, "high": None, "n": None, "limits": (), "small": False}
    usual |= {"open": None, "truth": None, "pair": "", "short": None}
    records = tuple({**usual, **row} for row in rows)
    return Forest(
        title,
        records,
        tuple(order or dict.fromkeys(record["label"] for record in records)),
        tuple(series or dict.fromkeys(record["series"] for record in records)),
        style or ("percent" if percent else "number"),
        zero,
        domain,
        width,
        thin,
        dashed,
        **options,
    )


def forest_row(record: object, label: str | None, series: str | None = "") -> dict[str, Any]:
    """Return a record as a row of a forest: its value, limits and number of people."""
    numbers = {name: getattr(record, name, None) for name in ("value", "low", "high", "n")}
    return {"label": label or "", "series": series or "", **numbers}


def pair_text(group: str | None, reference: str | None, people: Mapping[str, int] | None = None) -> str:
    """Return the two groups of a gap as text, with their known numbers of people.

    Examples
    --------
    >>> pair_text("Asian", "Black", {"Asian": 1200})
    'Asian (1,200) − Black'
    """
    if group is None or reference is None:
        return ""
    sizes = people or {}
    return f" {MINUS} ".join(f"{name} ({sizes[name]:,})" if name in sizes else name for name in (group, reference))


def share_axis(panels: Sequence[Forest]) -> list[Forest]:
    """Return the panels with one common axis, so that they can be compared."""
    ends = [end for panel in panels if panel.rows for end in panel.ends()]
    return [replace(panel, domain=(min(ends), max(ends))) for panel in panels] if ends else list(panels)


# Drawing --------------------------------------------------------------------------------------------------------------


class _Drawing:
    """The drawing of a forest: labels on the left, marks in the middle, values on the right."""

    def __init__(self, panel: Forest, width: int) -> None:
        self.panel = panel
        self.rows = [row for row in rows_of(panel) if row.known]
        most = max((len(text) for row in self.rows for text in self._texts([row])), default=0)
        self.values = max((text_width(row.value_and_short, _NUMBER) for row in self.rows), default=0.0) + 10
        self.labels = min(text_width("x" * most), 160.0, width / 3 if width else 160.0) + 12
        self.letters = letters(self.labels - 8)
        self.width = width or ceil(self.labels + panel.width + self.values)
        self.plot = self.width - self.labels - self.values - 8
        self.top = 0.0

    def _texts(self, rows: Sequence[ForestRow]) -> list[str]:
        """Return the texts beside the rows of a label: the label, and the compared groups of each row."""
        people, several = rows[0].people or rows[0].n, len(self.panel.series) > 1
        label = rows[0].label if several else rows[0].named(several=False)
        counted = "" if people is None else f" (n\xa0=\xa0{people:,})"  # not broken within
        return [label + counted, *(row.named(several=True) for row in rows if row.pair and several)]

    def made(self, legend: bool) -> tuple[int, int, str]:
        """Return the width, the height and the SVG content of the drawing."""
        named = self.panel.legend if legend else []
        self.top, head = head_of(self.panel.title, named, self.width, subtitle=self.panel.start)
        self.top += 6
        first = self.top
        rows = list(self._rows())
        numbers = axis_numbers(self.panel, self._x, _NUMBER, self.plot)
        foot = f'<g transform="translate(0 {self.top:.1f})" fill="currentColor" fill-opacity=".75">{numbers}</g>'
        return self.width, ceil(self.top + LINE), "".join([head, self._grid(first), *rows, foot])

    def _x(self, number: float) -> str:
        return f"{self.labels + self.plot * self.panel.share(number):.1f}"

    def _grid(self, first: float) -> str:
        lines = "".join(f"M{self._x(tick)} {first:.1f}V{self.top:.1f}" for tick in self.panel.ticks())
        return f'<path stroke="currentColor" opacity=".14" d="{lines}"/>'

    def _rows(self) -> Iterator[str]:
        """Yield the rows of each label: the wrapped text beside the marks of each series."""
        for _, rows in groupby(self.rows, lambda row: row.label):
            of_label = list(rows)
            label_end = self.top
            for line in (part for text in self._texts(of_label) for part in wrap(text, self.letters)):
                yield text_at(0, label_end + 13, line.replace("\xa0", " "))
                label_end += LINE
            yield from map(self._row, of_label)
            self.top = max(self.top, label_end) + 2

    def _row(self, row: ForestRow) -> str:
        """Return a row as SVG, and move the top down by its height."""
        marks = interval_marks(row, self._x, self.panel, _ROW)
        value = text_at(self.width, 13, row.value_and_short, 'fill="currentColor"', anchor="end", size=_NUMBER)
        place = f'transform="translate(0 {self.top:.1f})"'
        self.top += _ROW
        return f"<g {place}>{marks}{value}</g>"
