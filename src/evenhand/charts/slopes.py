"""The slope chart: numbers before and now, joined by lines, with names at their ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from evenhand.charts.look import (
    LINE,
    Legend,
    head_of,
    letters,
    looks,
    mark_path,
    round_ticks,
    text_at,
    text_width,
)
from evenhand.messages.formats import Format, show

_WIDTH, _LEAST_HEIGHT = 640, 160
_LEAD = 14
"""The length of the lines between marks and texts."""
_BOLD = ' font-weight="600"'


@dataclass(frozen=True)
class Slopes:
    """A panel of numbers before and now.

    Parameters
    ----------
    title : the panel's title.
    rows : for each number its `label`, `series`, `old`, `new` and whether its change is `clear`; unclear changes are
        thin lines.
    series : all series in order.
    names : the names of both sides.
    style : the format of numbers.
    limits : the positions of horizontal lines.
    """

    title: str
    rows: tuple[Mapping[str, Any], ...]
    series: tuple[str, ...]
    names: tuple[str, str] = ("before", "now")
    style: Format = "number"
    limits: tuple[float, ...] = ()

    @property
    def legend(self) -> Legend:
        """Each series with its colour and shape; empty for a single series."""
        return looks(self.series) if len(self.series) > 1 else []

    def drawn(self, width: int, height: int, *, legend: bool, titles: bool = True) -> tuple[int, int, str]:
        """Return the width, the height and the SVG content of the panel; see `Panel`."""
        panel = self if titles else replace(self, title="")
        least = max(height or _LEAST_HEIGHT, ceil(1.6 * LINE * len(self.rows)))
        return _Drawing(panel, width or _WIDTH, least).made(legend)


class _Drawing:
    """The drawing of a slope chart: old numbers on the left, lines, new numbers and names on the right."""

    def __init__(self, panel: Slopes, width: int, height: int) -> None:
        self.panel, self.width, self.height = panel, width, height
        numbers = [row[side] for row in panel.rows for side in ("old", "new")]
        ticks = round_ticks(min([0.0, *numbers]), max([0.0, *numbers, *panel.limits]) or 1.0)
        self.first, self.last = ticks[0], ticks[-1]
        self.left = max(text_width(self._number(number)) for number in [0.0, *numbers]) + 2 * _LEAD
        longest = max((text_width(self._text(row)) for row in panel.rows), default=0.0)
        self.right = width - min(longest, 0.62 * width) - 2 * _LEAD
        self.top = 0.0

    def made(self, legend: bool) -> tuple[int, int, str]:
        """Return the width, the height and the SVG content of the drawing."""
        self.top, head = head_of(self.panel.title, self.panel.legend if legend else [], self.width)
        sides = zip((self.left, self.right), ("end", "start"), self.panel.names, strict=True)
        names = [text_at(x, self.top + LINE, name, anchor=anchor) for x, anchor, name in sides]
        self.top += LINE + 10
        body = [head, *names, *self._frame(), *map(self._line, self.panel.rows)]
        body += [*self._texts("old", "end"), *self._texts("new", "start")]
        return self.width, ceil(self.top + self.height + LINE), "".join(body)

    def _y(self, number: float) -> float:
        return round(self.top + self.height * (1 - (number - self.first) / (self.last - self.first)), 1)

    def _frame(self) -> Iterator[str]:
        """Yield the two vertical sides, the line of 0, and the limits."""
        sides = "".join(f"M{x:.1f} {self.top:.1f}v{self.height}" for x in (self.left, self.right))
        across = "".join(f"M{self.left:.1f} {self._y(limit)}H{self.right:.1f}" for limit in self.panel.limits)
        yield f'<path stroke="currentColor" opacity=".25" d="{sides}M{self.left:.1f} {self._y(0.0)}H{self.right:.1f}"/>'
        if across:
            yield f'<path stroke="currentColor" stroke-width="1.6" d="{across}"/>'

    def _line(self, row: Mapping[str, Any]) -> str:
        """Return a line with its two markers; thin and dashed for a change that may be due to chance."""
        _, colour, shape = next(look for look in looks(self.panel.series) if look[0] == row["series"])
        ends = [(round(self.left, 1), self._y(row["old"])), (round(self.right, 1), self._y(row["new"]))]
        path = "M" + "L".join(f"{x} {y}" for x, y in ends)
        look = 'stroke-width="2.6"' if row["clear"] else 'stroke-width="1.2" stroke-dasharray="5 3"'
        return f'<path fill="none" stroke="{colour}" {look} d="{path}"/>' + mark_path(shape, colour, ends)

    def _texts(self, side: str, anchor: str) -> Iterator[str]:
        """Yield the numbers of a side (new numbers with names) without overlap, and lines to their markers."""
        mark, step = (self.left, -_LEAD) if side == "old" else (self.right, _LEAD)
        ranked = sorted(self.panel.rows, key=lambda row: -row[side])
        places = _apart([self._y(row[side]) for row in ranked], self.top, self.top + self.height)
        leads = (
            f"M{mark:.1f} {self._y(row[side])}L{mark + step:.1f} {y:.1f}" for row, y in zip(ranked, places, strict=True)
        )
        yield f'<path fill="none" stroke="currentColor" opacity=".3" d="{"".join(leads)}"/>'
        for row, y in zip(ranked, places, strict=True):
            text = self._number(row["old"]) if side == "old" else self._fitting(self._text(row))
            look = f'fill="currentColor"{_BOLD if row["clear"] else ""}'
            yield text_at(mark + step * 1.2, y + 4, text, look, anchor=anchor)

    def _fitting(self, text: str) -> str:
        """Return a text, truncated to fit on the right."""
        most = letters(self.width - self.right - _LEAD)
        return text if len(text) <= most else f"{text[: most - 1]}…"

    def _text(self, row: Mapping[str, Any]) -> str:
        return f"{self._number(row['new'])}  {row['label']}"

    def _number(self, number: float) -> str:
        return show(number, self.panel.style)


def _apart(places: Sequence[float], first: float, last: float) -> list[float]:
    """Return positions, from the top down, at least one line height apart and moved as little as possible.

    Examples
    --------
    >>> _apart([10, 12, 100], 0, 100)
    [3.0, 19.0, 100.0]
    """
    blocks: list[list[float]] = []  # of neighbours: the sum of their wanted first places, and their number
    for number, place in enumerate(places):
        blocks.append([place - number * LINE, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, size = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total, blocks[-1][1] + size]
    lowest = max(first, last - (len(places) - 1) * LINE)
    starts = [min(max(total / size, first), lowest) for total, size in blocks for _ in range(int(size))]
    return [start + number * LINE for number, start in enumerate(starts)]
