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
    """A table of finished text; `numeric` says which columns are set to the right.

    Examples
    --------
    >>> print(DisplayTable("Two people", ("Name", "Age"), (("Ann", "9"), ("Bob", "31")), (False, True)))
    Two people
    <BLANKLINE>
    Name  Age
    Ann     9
    Bob    31
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    folded: bool = False

    def __str__(self) -> str:
        lines = (self.columns, *self.rows)
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.columns))]
        set_out = (
            (cell.rjust if right else cell.ljust)(width)
            for line in lines
            for cell, width, right in zip(line, widths, self.numeric, strict=True)
        )
        text = ("  ".join(next(set_out) for _ in self.columns).rstrip() for _ in lines)
        return "\n".join([self.caption, "", *text])


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
