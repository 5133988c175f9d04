"""The chart of adverse impact: every group's rate, with a line at four fifths of the highest rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from evenhand.after.messages import say
from evenhand.after.profiles.result import Impact
from evenhand.charts import MOST_ROWS, Forest, forest
from evenhand.core.display import Figure
from evenhand.errors import count

_FOUR_FIFTHS = 0.8


def impact_figure(rows: Sequence[Impact]) -> Figure:
    """Return the chart of the rates under all models, with one panel per grouping."""
    beside = [row for row in rows if row.group != row.highest]
    below = [row for row in beside if row.below_four_fifths]
    described = "; ".join(f"{row.model}, {row.group}: {count(row.to_four_fifths, 'person', 'people')}" for row in below)
    return Figure(
        "Four fifths",
        "Bars: the rate of the favourable decision. People short: how many more of a group would bring it to four "
        f"fifths of the highest rate.{_larger(rows)}",
        f"Missing to four fifths: {described or 'nobody'}.",
        tuple(_panel(name, rows) for name in dict.fromkeys(row.grouping for row in rows)),
        say("four_fifths", n=len(below), total=len(beside)) if below else say("four_fifths_nobody"),
    )


def _larger(rows: Sequence[Impact]) -> str:
    """Return a sentence if a group too small to be compared has a rate above the highest, else an empty text."""
    highest = {(row.model, row.grouping): row.rate for row in rows if row.group == row.highest}
    is_outdone = any(row.rate > highest[row.model, row.grouping] for row in rows)
    return " A group too small to be compared has a higher one." if is_outdone else ""


def _panel(grouping: str, everything: Sequence[Impact]) -> Forest:
    """Return the panel of a grouping's rates, sorted by the first model's rate in descending order."""
    rows = [row for row in everything if row.grouping == grouping]
    models = list(dict.fromkeys(row.model for row in rows))
    ranked = sorted((row for row in rows if row.model == models[0]), key=lambda row: -row.rate)
    shown = {row.group: None for row in ranked[:MOST_ROWS]}
    highest = {row.model: row.rate for row in rows if row.group == row.highest}
    lines = [_row(row, _FOUR_FIFTHS * highest[row.model]) for row in rows if row.group in shown]
    end = max(chain((row.rate for row in rows), (1e-9,)))
    return forest(
        lines,
        title=f"By {grouping}",
        order=list(shown),
        series=models,
        percent=True,
        domain=(0.0, end),
        bars=True,
        black="four fifths of the highest rate",
    )


def _row(row: Impact, line: float) -> Mapping[str, Any]:
    """Return a group's bar with the four-fifths line and the number of people short of it."""
    short = {} if row.group == row.highest else {"short": row.to_four_fifths}
    named = {"label": row.group, "series": row.model, "value": row.rate, "n": row.n}
    return named | {"limits": (line,) if line > 0 else ()} | short
