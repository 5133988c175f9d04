"""Remarks on the data that are no errors, but that a reader needs to know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evenhand.table.cells import Cells
from evenhand.table.keys import Kind, column_key
from evenhand.table.roles import MISSING, Roles
from evenhand.table.validation import MAX_NUMERIC_GROUPS

_MISSING_WORDS = {
    "na",
    "n/a",
    "#n/a",
    "nan",
    "null",
    "none",
    "unknown",
    "missing",
    "not available",
    "-",
    "--",
    "?",
    ".",
}


def label_notes(roles: Roles, kinds: Mapping[str, Kind], cells: Cells) -> Iterator[str]:
    """Yield remarks on group labels that a person would take for one group, or for none."""
    for column in roles.group_columns:
        labels = [label for label in cells.labels[column_key(column)] if label != MISSING]
        if kinds[column] != "text":
            continue
        spellings: dict[str, list[str]] = {}
        for label in labels:
            spellings.setdefault(" ".join(label.split()).casefold(), []).append(label)
        for alike in spellings.values():
            if len(alike) > 1:
                listed = ", ".join(repr(label) for label in alike)
                yield f"{column}: {listed} differ only in capitals or spaces; they are {len(alike)} groups here."
        for label in labels:
            if label.strip().casefold() in _MISSING_WORDS:
                yield f"{column}: {label!r} looks like a word for missing; if it is, name it among `missing_values`."
        numbers = sum(_is_number(label) for label in labels)
        if len(labels) > MAX_NUMERIC_GROUPS and numbers > 0.8 * len(labels):
            words = ", ".join(repr(label) for label in labels if not _is_number(label))
            yield f"{column}: {numbers} of {len(labels)} groups are numbers; {words} makes it text without cut points."


def _is_number(label: str) -> bool:
    return label.replace(".", "", 1).replace("-", "", 1).isdigit()
