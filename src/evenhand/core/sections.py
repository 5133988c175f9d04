"""What an audit shows of itself: a section of figures, tables and methods that any renderer can lay out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A chart with the words that stand for it where it cannot be seen."""

    title: str
    description: str
    chart: Any


@dataclass(frozen=True)
class DisplayTable:
    """A table of finished text; `numeric` says which columns are set to the right."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    folded: bool = False


@dataclass(frozen=True)
class Method:
    """How one number was computed: its name, the words and formula, and the reference."""

    term: str
    text: str
    reference: str = ""


@dataclass(frozen=True)
class Section:
    """One audit's part of the report."""

    title: str
    question: str
    parts: tuple[Figure | DisplayTable, ...]
    methods: tuple[Method, ...]
    notes: tuple[str, ...] = ()


def display_table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int, folded: bool = False
) -> DisplayTable:
    """Build a table whose first `text_columns` columns are words and whose others are numbers."""
    numeric = tuple(position >= text_columns for position in range(len(columns)))
    return DisplayTable(caption, tuple(columns), tuple(tuple(row) for row in rows), numeric, folded)
