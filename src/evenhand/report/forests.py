"""How a page lays out a forest: as a table with a picture in every row; on paper as lines over one picture."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from markupsafe import Markup

from evenhand.charts import PALETTE
from evenhand.core.formats import MINUS, Format, show, show_interval
from evenhand.forest import Forest

_ROW, _ROW_ON_PAPER = 18, 12
"""How high a row is."""
_LETTER = 5.1
"""How wide a letter is on paper: 0.6 of its font size, 8.5 pixels."""
_MOST_LINES, _CUT_TO = 56, 28
"""Lines that a panel on paper may have; a longer one is cut to fewer, as it is not whole in any case."""


def marks(panels: Sequence[Forest]) -> Iterator[str]:
    """Yield what the marks of forests mean, where there are any."""
    rows = [row for panel in panels for row in panel.rows]
    if any(row["limits"] for row in rows):
        yield "The black line is the limit."
    if any(panel.zero is not None for panel in panels):
        yield "The dashed line is no difference."
    if any(row["small"] for row in rows):
        yield "Faint: too few people to be compared."


def on_screen(panel: Forest) -> dict[str, Any]:
    """Return a forest as rows of a table: label, series, n, the picture of the interval, value and interval."""
    lines = _lines(panel)

    def x(number: float) -> str:
        return f"{100 * _share(number, panel):.1f}%"

    def picture(content: str, height: int, more: str = "") -> Markup:
        return Markup(f'<svg width="100%" height="{height}"{more} aria-hidden="true">{content}</svg>')  # noqa: S704

    for line in lines:
        line["picture"] = picture(_interval_marks(line["row"], x, line["colour"], panel.zero, _ROW), _ROW)
    return {
        "title": panel.title,
        "rows": lines,
        "several": len(panel.series) > 1,
        "counted": any(line["n"] is not None for line in lines),
        "axis": picture(_axis(panel, x), 14, ' fill="currentColor"'),
    }


def on_paper(panel: Forest, width: int) -> dict[str, Any]:
    """Return a forest for paper: a table of letters of one width over a picture of its intervals.

    The style sheet sets its rows as plain lines, as tables proper take ten times as long; to a screen reader it is a
    table nevertheless.
    """
    lines, several, letters = _lines(panel), len(panel.series) > 1, int(width / _LETTER)
    counts = ["" if line["n"] is None else f"{line['n']:,}" for line in lines]
    names = [str(line["series"] if several else line["label"]) for line in lines]
    label = min(max(map(len, names), default=0) + several, letters // 4)
    count = max(map(len, counts), default=0)
    value, interval = (max([len(name), *(len(line[name]) for line in lines)]) for name in ("value", "interval"))
    gap = letters - label - count - value - interval - 4  # the letters that the picture takes
    rows: list[dict[str, Any]] = []
    for name, number, line in zip(names, counts, lines, strict=True):
        if several and line["span"]:
            people = f"  n = {line['people']:,}" if line["people"] else ""
            rows.append({"head": f"{str(line['label'])[: letters - 14]}{people}", "cells": (), "line": None, "high": 1})
        parts = [" " * several + part for part in wrap(name, label - several) or [""]]
        head = "\n".join([*parts[:-1], f"{parts[-1]:{label}}"])
        cells = (f" {number:>{count}}", f"{'':{gap}} {line['value']:>{value}}", f"  {line['interval']:>{interval}}")
        rows.append({"head": head, "cells": cells, "line": line, "high": len(parts)})
    shown = _fitting(rows)
    start, stop = (label + count + 3) * _LETTER, (label + count + gap - 2) * _LETTER
    more = sum(row["line"] is not None for row in rows[len(shown) :])
    top = (f" {'n' if any(counts) else '':>{count}}", f"{'':{gap}} {'value':>{value}}", f"  {'interval':>{interval}}")
    return {
        "title": panel.title,
        "src": as_source(_picture_on_paper(panel, shown, (width, start, stop))),
        "top": ("Of".ljust(label), *top),
        "lines": shown,
        "more": f"{more:,} more {'row is' if more == 1 else 'rows are'} in report.html." if more else "",
    }


def as_source(svg: str) -> str:
    """Return a picture as the source of an image, which a printer need not read as a part of the page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _fitting(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that a panel on paper has room for."""
    most = _MOST_LINES if sum(row["high"] for row in rows) <= _MOST_LINES else _CUT_TO
    shown, height = [], 0
    for row in rows:
        height += row["high"]
        if height > most:
            break
        shown.append(row)
    return shown


def _picture_on_paper(panel: Forest, shown: list[dict[str, Any]], across: tuple[float, float, float]) -> str:
    """Return the axis and the intervals of the rows, between two places of the width."""
    width, start, stop = across

    def x(number: float) -> str:
        return f"{start + (stop - start) * _share(number, panel):.1f}"

    drawn = [f'<g fill="#444" transform="translate(0 -2)">{_axis(panel, x, 8.5, stop - start)}</g>']
    rule = f'<line x1="0" x2="{width}" y1="-12" y2="-12" stroke="#bbb" stroke-width=".6"/>'
    line = 1
    for row in shown:
        line += row["high"]
        found = row["line"]
        if found:
            faint = ' opacity=".4"' if found["small"] else ""
            marked = _interval_marks(found["row"], x, found["colour"], panel.zero, _ROW_ON_PAPER)
            marked += rule if len(panel.series) > 1 and found["span"] else ""
            drawn.append(f'<g transform="translate(0 {(line - 1) * _ROW_ON_PAPER})"{faint}>{marked}</g>')
    size = f'width="{width}" height="{line * _ROW_ON_PAPER}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">{"".join(drawn)}</svg>'


def _share(number: float, panel: Forest) -> float:
    """Return where on the axis of a forest a number stands, from 0 to 1."""
    ticks = panel.ticks()
    return min(max((number - ticks[0]) / (ticks[-1] - ticks[0]), 0), 1)


def _axis(panel: Forest, x: Callable[[float], str], size: float = 11, room: float | None = None) -> str:
    """Return the numbers of an axis; where they would collide in the room there is, every other one."""
    ticks = [(tick, _tick(tick, panel)) for tick in panel.ticks()]
    letters = max(len(text) for _, text in ticks) + 2
    while room is not None and len(ticks) > 2 and letters * size * 0.5 * (len(ticks) - 1) > room:
        ticks = ticks[::2] if len(ticks) % 2 else [ticks[0], ticks[-1]]
    return "".join(
        f'<text x="{x(tick)}" y="11" font-size="{size}" text-anchor="middle">{text}</text>' for tick, text in ticks
    )


def _lines(panel: Forest) -> list[dict[str, Any]]:
    """Return the rows of a forest in order, with what is written in each."""
    colours = {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(panel.series)}
    interval: Format = "points" if panel.style == "percent" else panel.style

    def ordered(row: Mapping[str, Any]) -> tuple[int, int]:
        return panel.labels.index(row["label"]), panel.series.index(row["series"])

    known = [row for row in panel.rows if row["label"] in panel.labels and row["series"] in panel.series]
    rows = sorted(known, key=ordered)
    spans = Counter(row["label"] for row in rows)
    counts = {label: {row["n"] for row in rows if row["label"] == label} for label in spans}
    one_size = all(len(found) == 1 for found in counts.values()) and len(panel.series) > 1
    sizes = {label: next(iter(found)) if one_size else None for label, found in counts.items()}
    seen: set[str] = set()
    lines = []
    for row in rows:
        first = row["label"] not in seen
        seen.add(row["label"])
        lines.append(
            {
                "label": row["label"],
                "people": sizes[row["label"]],
                "span": spans[row["label"]] if first else 0,
                "series": row["series"],
                "n": None if sizes[row["label"]] else row["n"],
                "small": row["small"],
                "row": row,
                "colour": colours[row["series"]],
                "value": show(row["value"], panel.style),
                "interval": show_interval(row["low"], row["high"], interval) if row["value"] is not None else "",
            }
        )
    return lines


def _interval_marks(
    row: Mapping[str, Any], x: Callable[[float], str], colour: str, zero: float | None, height: int
) -> str:
    """Return the interval of one row as a bar with its value, against equality and the limits; numbers are ours."""
    middle, thick = height / 2, 'stroke-width="5" opacity=".38"'
    parts = []
    if zero is not None:
        parts.append(
            f'<line x1="{x(zero)}" x2="{x(zero)}" y1="0" y2="{height}" stroke="{PALETTE[6]}" stroke-dasharray="3 2"/>'
        )
    if row["value"] is not None:
        low, high = (row["value"] if end is None else end for end in (row["low"], row["high"]))
        parts.append(f'<line x1="{x(low)}" x2="{x(high)}" y1="{middle}" y2="{middle}" stroke="{colour}" {thick}/>')
        hollow = row["low"] is None and row["high"] is None
        paint = f'fill="none" stroke="{colour}" stroke-width="1.6"' if hollow else f'fill="{colour}"'
        parts.append(f'<circle cx="{x(row["value"])}" cy="{middle}" r="{round(height / 4.5, 1)}" {paint}/>')
    for limit in row["limits"]:
        parts.append(
            f'<line x1="{x(limit)}" x2="{x(limit)}" y1="1" y2="{height - 1}" stroke="currentColor" stroke-width="2"/>'
        )
    return "".join(parts)


def _tick(number: float, panel: Forest) -> str:
    shown = f"{100 * number:g}" if panel.style in ("percent", "points", "signed_points") else f"{number:g}"
    return shown.replace("-", MINUS) + ("%" if panel.style == "percent" else "")
