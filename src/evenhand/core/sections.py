"""What an audit shows of itself: a section of figures, tables and methods that any renderer can lay out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One or more panels, a caption for all, and the description that stands for them where they cannot be seen."""

    title: str
    caption: str
    description: str
    charts: tuple[Any, ...]


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
