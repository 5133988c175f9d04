"""The slope chart of a comparison: every finding before and now, joined by a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.charts import Picture, Slopes
from evenhand.evidence.changes import Change
from evenhand.messages.formats import MINUS

MOST_LINES, MOST_PANELS = 12, 6
"""The maximum numbers of findings per panel and of panels."""
_KINDS = {"difference": "gap", "ratio": "ratio"}


def slope_picture(changes: Sequence[Change]) -> Picture | None:
    """Return the slope chart of the first changes with both values; None if there are none."""
    known = [change for change in changes if change.old is not None and change.new is not None]
    of_panel: dict[tuple[str, str | None], list[Change]] = {}
    for change in known:
        of_panel.setdefault((change.metric, change.kind), []).append(change)
    panels = [_panel(each[:MOST_LINES]) for each in list(of_panel.values())[:MOST_PANELS]]
    drawn = sum(len(panel.rows) for panel in panels)
    subtitle = "Thick: changed beyond chance. Broken: no clear change."
    if drawn < len(known):
        subtitle += f" {drawn:,} of {len(known):,} findings are drawn; the table has them all."
    described = "; ".join(f"{_label(c)}: {c.old:.3g} before, {c.new:.3g} now" for c in known[:MOST_LINES])
    return Picture("What changed", tuple(panels), subtitle, f"{described}.") if panels else None


def _panel(changes: Sequence[Change]) -> Slopes:
    first = changes[0]
    kind = f", {_KINDS[first.kind]}" if first.kind in _KINDS else ""
    unit = " in points" if first.style == "points" else ""
    models = tuple(dict.fromkeys(change.model or "" for change in changes))
    rows = tuple(map(_row, changes))
    return Slopes(f"{first.named_metric.title}{kind}{unit}", rows, models, style=first.style)


def _row(change: Change) -> Mapping[str, Any]:
    named = {"label": _label(change), "series": change.model or "", "old": change.old, "new": change.new}
    return named | {"clear": change.direction != "unclear"}


def _label(change: Change) -> str:
    """Return a finding's current number, grouping and groups, as text."""
    pair = f"{change.group} {MINUS if change.kind == 'difference' else '/'} {change.reference}"
    groups = pair if change.kind is not None and change.reference else change.group
    places = (change.number, change.grouping, change.stratum, change.coordinates, groups)
    return ", ".join(place for place in places if place)
