"""Documents with fields, some of them blank: the common part of model cards and datasheets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.core.display import escape_markdown
from evenhand.messages import showable
from evenhand.report import front

OPEN = "To be filled in: an audit does not know it."


def group_sizes(item: front.Compared) -> str:
    """Return a description of the groups' sizes in a grouping."""
    missing = f", not known {item.missing:,}" if item.missing else ""
    few = {group: " (too few to compare)" for group, n in item.sizes if n < item.least}
    return ", ".join(f"{group} {n:,}{few.get(group, '')}" for group, n in item.sizes) + missing


def selection_meaning(prediction: Mapping[str, Any]) -> str:
    """Return a description of the meaning of being selected."""
    if not prediction:
        return OPEN
    good = {"selected": "good for the person", "not_selected": "bad for the person"}
    side = good.get(prediction.get("favourable") or "", "whether that is good for a person is not said")
    above = f"score above {prediction['threshold']:g}" if prediction.get("kind") == "score" else "decision"
    return f"{above}; {side}"


def to_markdown(title: str, card: Mapping[str, Mapping[str, Any]]) -> str:
    """Render a document as Markdown: a heading for each part, a paragraph for each field."""
    lines = [f"# {escape_markdown(showable(title))}", ""]
    for heading, entries in card.items():
        lines += [f"## {heading.replace('_', ' ').capitalize()}", ""]
        for name, value in entries.items():
            lines += [*_entry(name.replace("_", " ").capitalize(), value), ""]
    return "\n".join(lines)


def _entry(name: str, value: str | list[Any]) -> list[str]:
    if isinstance(value, str):
        return [f"**{name}.** {escape_markdown(showable(value))}"]
    if value and isinstance(value[0], dict):
        columns = [column for column in value[0] if column != "title"]
        rows = [[_cell(entry["title" if column == "metric" else column]) for column in columns] for entry in value]
        return [f"**{name}**", "", *("| " + " | ".join(row) + " |" for row in (columns, ["---"] * len(columns), *rows))]
    return [f"**{name}**", "", *(f"- {escape_markdown(showable(str(item)))}" for item in value)]


def _cell(value: object) -> str:
    return (
        "–" if value is None else escape_markdown(showable(f"{value:.4g}" if isinstance(value, float) else str(value)))
    )
