"""What an audit shows of itself: figures, tables and methods that any renderer can lay out.

A displayed table holds numbers with a format, not finished text: HTML, terminal, notebook and Markdown render the same
table, and a spreadsheet gets numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, NamedTuple, TypeAlias

from markupsafe import Markup

from evenhand.core.formats import DASH, Format, show, show_confidence, show_interval
from evenhand.core.metrics import Metric
from evenhand.core.records import OVERALL, Gap, Value
from evenhand.errors import showable


class Number(NamedTuple):
    """A number in a table, and how it is written."""

    value: float | None
    style: Format = "number"

    def __str__(self) -> str:
        return show(self.value, self.style)


class Range(NamedTuple):
    """An interval in a table, and how its ends are written."""

    low: float | None
    high: float | None
    style: Format = "number"

    def __str__(self) -> str:
        return show_interval(self.low, self.high, self.style)


class Link(NamedTuple):
    """A part of the report in a table: its title, and the name that a page links to."""

    title: str
    place: str

    def __str__(self) -> str:
        return self.title


_MARKS = re.compile(r"[\\`*\[\]|]")

Cell: TypeAlias = str | Number | Range | Link | None


def showable_value(value: Any) -> Any:
    """Return what a template prints as a page may have it; for the `finalize` of every Jinja environment."""
    if isinstance(value, Markup):
        return Markup(showable(value))  # noqa: S704
    return showable(value) if isinstance(value, str) else value


def cell_text(cell: Cell) -> str:
    """Return a cell as text; a dash where there is nothing."""
    return DASH if cell is None else showable(str(cell))


@dataclass(frozen=True)
class Figure:
    """One or more panels, a caption for all, and the description that stands for them where they cannot be seen."""

    title: str
    caption: str
    description: str
    charts: tuple[Any, ...]


@dataclass(frozen=True)
class DisplayTable:
    """A table of cells with types; a column of numbers is set to the right.

    Examples
    --------
    >>> print(DisplayTable("Two people", ("Name", "Age"), (("Ann", Number(9, "count")), ("Bob", Number(31, "count")))))
    Two people
    <BLANKLINE>
    Name  Age
    Ann     9
    Bob    31
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: bool = False

    @cached_property  # a page asks for each of its cells
    def numeric(self) -> tuple[bool, ...]:
        """Which columns hold numbers."""
        return tuple(
            any(isinstance(row[position], Number | Range) for row in self.rows) for position in range(len(self.columns))
        )

    def texts(self) -> list[tuple[str, ...]]:
        """Return the rows as text."""
        return [tuple(cell_text(cell) for cell in row) for row in self.rows]

    def __str__(self) -> str:
        lines = [tuple(map(showable, self.columns)), *self.texts()]
        widths = [max(len(line[position]) for line in lines) for position in range(len(self.columns))]
        text = (
            "  ".join(
                (cell.rjust if right else cell.ljust)(width)
                for cell, width, right in zip(line, widths, self.numeric, strict=True)
            ).rstrip()
            for line in lines
        )
        return "\n".join([showable(self.caption), "", *text])

    def to_markdown(self) -> str:
        """Return the table in Markdown; what the text holds cannot break out of its cell."""
        rule = ["---:" if right else "---" for right in self.numeric]
        lines = [tuple(map(showable, self.columns)), rule, *self.texts()]
        return "\n".join("| " + " | ".join(in_markdown(cell) for cell in line) + " |" for line in lines)

    def to_html(self) -> str:
        """Return the table as plain HTML for a notebook; all text is escaped."""
        head = "".join(f'<th scope="col">{escape(showable(column))}</th>' for column in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.texts())
        caption = escape(showable(self.caption))
        table = f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<details><summary>{caption}</summary>{table}</details>" if self.folded else table


def in_markdown(text: str) -> str:
    """Return text that means nothing in Markdown but itself: no HTML, no link, no picture, no other cell."""
    plain = _MARKS.sub(r"\\\g<0>", escape(text, quote=False))
    return plain.replace("\n", " ")


@dataclass(frozen=True)
class Method:
    """How one number was computed: its name, the words and formula, and the reference."""

    term: str
    text: str
    reference: str = ""


@dataclass(frozen=True)
class Section:
    """One audit's part of the report; `caveats` are what its metrics do not show, by title."""

    title: str
    question: str
    parts: tuple[Figure | DisplayTable, ...]
    methods: tuple[Method, ...]
    notes: tuple[str, ...] = ()
    caveats: tuple[tuple[str, str], ...] = ()


# The usual tables ----------------------------------------------------------------------------------------------------

Extra: TypeAlias = Mapping[str, Callable[[Any], Cell]]
"""More columns by title, each a function of the record."""

_AGAINST = {"worst_pair": "worst pair", "reference": "reference", "overall": "everybody", "model": "model"}


def value_table(
    values: Iterable[Value],
    metrics: Mapping[str, Metric],
    caption: str,
    confidence: float,
    *,
    extra: Extra | None = None,
    folded: bool = True,
) -> DisplayTable:
    """Return the table of values; columns that say nothing are left out, an audit's own stand before the metric."""
    records = list(values)
    by_group = any(record.group != OVERALL for record in records)
    columns: dict[str, Callable[[Value], Cell]] = {
        "Model": lambda r: r.model,
        "Grouping": lambda r: r.grouping,
        "Stratum": lambda r: r.stratum,
        "Group": lambda r: r.group if by_group else None,
        **(extra or {}),
        "Metric": lambda r: metrics[r.metric].title,
        "n": lambda r: Number(r.n, "count"),
        "Value": lambda r: Number(r.value, metrics[r.metric].style()),
        f"{show_confidence(confidence)} interval": lambda r: Range(r.low, r.high, metrics[r.metric].style()),
        "For all together": lambda r: Range(r.joint_low, r.joint_high, metrics[r.metric].style()),
        "Remark": lambda r: _remark(r.status),
    }
    return make_table(caption, columns, records, always=("Metric", "n", "Value"), folded=folded)


def gap_table(
    gaps: Iterable[Gap],
    metrics: Mapping[str, Metric],
    caption: str,
    confidence: float,
    *,
    extra: Extra | None = None,
    folded: bool = True,
) -> DisplayTable:
    """Return the table of gaps; columns that say nothing are left out, an audit's own stand before the metric."""
    records = list(gaps)
    by_group = any(record.group not in (None, OVERALL) for record in records)

    def style(r: Gap) -> Format:
        return metrics[r.metric].style(r.kind, signed=r.against != "worst_pair")

    columns: dict[str, Callable[[Gap], Cell]] = {
        "Model": lambda r: r.model,
        "Compared with model": lambda r: r.model_reference,
        "Grouping": lambda r: r.grouping,
        "Stratum": lambda r: r.stratum,
        **(extra or {}),
        "Metric": lambda r: metrics[r.metric].title,
        "Kind": lambda r: r.kind,
        "Group": lambda r: r.group if by_group else None,
        "Compared with": _compared_with,
        "Worse off": lambda r: r.worse_off,
        "n": lambda r: Number(r.n, "count"),
        "Gap": lambda r: Number(r.value, style(r)),
        f"{show_confidence(confidence)} interval": lambda r: Range(r.low, r.high, style(r)),
        "For all together": lambda r: Range(r.joint_low, r.joint_high, style(r)),
        "p": lambda r: Number(r.p_value, "p"),
        "Adjusted p": lambda r: Number(r.p_adjusted, "p"),
        "Remark": lambda r: _remark(r.status),
    }
    return make_table(caption, columns, records, always=("Metric", "n", "Gap"), folded=folded)


def make_table(
    caption: str,
    columns: Mapping[str, Callable[[Any], Cell]],
    records: Sequence[Any],
    *,
    always: Sequence[str] = (),
    folded: bool = True,
) -> DisplayTable:
    """Return a table of records: a column by title is a function of the record, and is left out where it is empty."""
    filled = {title: [cell(record) for record in records] for title, cell in columns.items()}
    kept = [title for title, cells in filled.items() if title in always or any(map(_says_something, cells))]
    rows = tuple(zip(*(filled[title] for title in kept), strict=True)) if records else ()
    return DisplayTable(caption, tuple(kept), rows, folded)


def _says_something(cell: Cell) -> bool:
    if isinstance(cell, Number):
        return cell.value is not None
    if isinstance(cell, Range):
        return cell.low is not None or cell.high is not None
    return bool(cell)


def _compared_with(gap: Gap) -> str | None:
    if gap.reference is None or (gap.model_reference is not None and gap.reference == gap.group):
        return None  # the same people under two models
    return gap.reference if gap.against == "overall" else f"{gap.reference} ({_AGAINST.get(gap.against, gap.against)})"


def _remark(status: str) -> str:
    return "" if status == "ok" else status
