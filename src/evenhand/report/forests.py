"""Forests on screen: a table with a chart in each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from evenhand.charts import Forest
from evenhand.charts.forest_rows import axis_numbers, interval_marks, interval_of, rows_of
from evenhand.messages.formats import show_tick

_ROW = 18
"""The height of a row of a forest in pixels."""

_LEAST_WIDTH, _SHORT = 80.0, 5
"""The minimum width of a plot with long axis numbers, and the longest number that fits any plot, in letters."""


def what_marks_mean(panels: Sequence[Forest]) -> Iterator[str]:
    """Yield the sentences of the legend of forests."""
    rows = [row for panel in panels for row in panel.rows]
    for black in dict.fromkeys(panel.black for panel in panels if any(row["limits"] for row in panel.rows)):
        yield f"The solid line is {black}."
    for dashed in dict.fromkeys(panel.dashed for panel in panels if panel.zero is not None):
        yield f"The dashed line is {dashed}."
    if any(row["small"] for row in rows):
        yield "Broken bars: too few people to be compared."


def _room(panel: Forest) -> float | None:
    """Return the minimum width of a plot with long axis numbers, or None."""
    longest = max(len(show_tick(tick, panel.style)) for tick in panel.ticks())
    return _LEAST_WIDTH if longest > _SHORT else None


def forest_view(panel: Forest) -> dict[str, Any]:
    """Return a forest as table rows: label, series, n, chart of the interval, value and interval."""

    def x(number: float) -> str:
        return f"{100 * panel.share(number):.1f}%"

    def picture(content: str, height: int, more: str = "") -> Markup:
        return Markup(f'<svg width="100%" height="{height}"{more} aria-hidden="true">{content}</svg>')  # noqa: S704

    lines = [(line, picture(interval_marks(line, x, panel, _ROW), _ROW)) for line in rows_of(panel)]
    return {
        "title": panel.title,
        "start": panel.start,
        "short": any(row["short"] is not None for row in panel.rows),
        "bounded": any(interval_of(line.row) for line, _ in lines),
        "rows": lines,
        "several": len(panel.series) > 1,
        "paired": panel.paired,
        "counted": any(line.n is not None for line, _ in lines),
        "heads": {"value": "value", "interval_head": "interval"},
        "people": "{:,}".format,
        "axis": picture(axis_numbers(panel, x, room=_room(panel)), 14, ' fill="currentColor"'),
    }
