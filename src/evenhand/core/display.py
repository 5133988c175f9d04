"""What an audit shows of itself: figures, tables and methods that any renderer can lay out.

A displayed table holds numbers with a format, not finished text: HTML, terminal, notebook and Markdown render the same
table, and a spreadsheet gets numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from markupsafe import Markup

from evenhand.core.findings import Finding
from evenhand.core.metrics import Metric
from evenhand.core.records import OK, OVERALL, Gap, Value
from evenhand.messages import Message, showable
from evenhand.messages.formats import DASH, Format, rounded, show, show_confidence, show_interval
from evenhand.messages.shared import say


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
_LESS_THAN = re.compile(r"&lt;(?=[ \d])")

Cell: TypeAlias = str | Number | Range | Link | None


def showable_value(value: object) -> object:
    """Return what a template prints as a page may have it; for the `finalize` of every Jinja environment."""
    if isinstance(value, Markup):
        return Markup(showable(value))  # noqa: S704
    return showable(str(value)) if isinstance(value, str | Message) else value


def cell_text(cell: Cell) -> str:
    """Return a cell as text; a dash where there is nothing."""
    return DASH if cell is None else showable(str(cell))


@dataclass(frozen=True)
class Figure:
    """One or more panels, a caption for all, and the description that stands for them where they cannot be seen.

    `shows` says in one sentence what is to be seen, no more than findings allow; `sizes` are the people behind series.
    A figure that only explains another one stands `aside`: on paper it is named, not drawn.
    """

    title: str
    caption: str
    description: str
    charts: tuple[Any, ...]
    shows: Message | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    aside: bool = False


FIRST_FOLDED, FIRST_SHOWN = 25, 100
"""Rows of a table that a page shows, folded or not; the rest is in a file beside it."""


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

    def cut(self) -> int:
        """Return how many rows a page shows: a long table is in a file of its own."""
        return min(len(self.rows), FIRST_FOLDED if self.folded else FIRST_SHOWN)

    def numbers(self) -> dict[str, list[Any]]:
        """Return the columns for a spreadsheet: numbers as numbers, an interval as two columns."""
        columns: dict[str, list[Any]] = {}
        for position, title in enumerate(self.columns):
            cells = [row[position] for row in self.rows]
            if any(isinstance(cell, Range) for cell in cells):
                for end in ("low", "high"):
                    columns[f"{title}, {end}"] = [rounded(getattr(cell, end, None)) for cell in cells]
            else:
                columns[title] = [rounded(cell.value) if isinstance(cell, Number) else cell for cell in cells]
        return {title: [str(c) if isinstance(c, Link) else c for c in cells] for title, cells in columns.items()}

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
    """Return text that means nothing in Markdown but itself: no HTML, no link, no picture, no other cell.

    A sign such as that of p < 0.001, which no tag can begin with, stays as it is.
    """
    plain = _LESS_THAN.sub("<", _MARKS.sub(r"\\\g<0>", escape(text, quote=False)))
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
    question: str | Message
    parts: tuple[Figure | DisplayTable, ...]
    methods: tuple[Method, ...]
    notes: tuple[Message, ...] = ()
    caveats: tuple[tuple[str, str], ...] = ()


# What a figure shows -------------------------------------------------------------------------------------------------

DESCRIBES = say("described")


def what_it_shows(told: Iterable[Finding], drawn: Collection[str], alpha: float) -> Message:
    """Return one sentence on what a figure shows, no stronger than its findings, and of the metrics that it draws.

    A difference is clear where its threshold is broken, or its adjusted p-value is at most `alpha`. The clearest one
    is told, with the models under which it is clear.
    """
    findings = [finding for finding in told if finding.metric in drawn]
    clear = [finding for finding in findings if _is_clear(finding, alpha)]
    if not findings:
        return DESCRIBES
    if not clear:
        verdicts = {finding.verdict for finding in findings if finding.threshold is not None}
        return say("figure_all_meet" if verdicts == {"meets"} else "figure_nothing_clear")
    lead = min(clear, key=lambda f: (f.verdict != "does_not_meet", 1.0 if f.p_adjusted is None else f.p_adjusted))
    return _under_which_models(lead, clear, findings) if _compares_groups(lead) else lead.headline


_QUESTION = attrgetter("metric", "grouping", "kind", "against")
"""What findings share that answer the same question of different models or groups."""


def _under_which_models(lead: Finding, clear: Iterable[Finding], findings: Iterable[Finding]) -> Message:
    """Return the sentence of the clearest finding, with the models that share it."""
    alike, asked = ([f for f in told if _QUESTION(f) == _QUESTION(lead)] for told in (clear, findings))
    worse = {finding.arguments.get("worse_off") for finding in alike}
    if len(worse) == 1 and None not in worse:
        sentence = "figure_people_worse_off" if lead.arguments.get("people") else "figure_worse_off"
    else:
        sentence = "figure_beyond_the_limit" if lead.threshold else "figure_groups_differ"
    return say(
        sentence,
        grouping=lead.grouping,
        group=next(iter(worse)),
        people=lead.arguments.get("people"),
        title=lead.arguments["title"],
        limit=lead.threshold,
        under=_under(dict.fromkeys(f.model for f in alike), dict.fromkeys(f.model for f in asked)),
    )


def _compares_groups(finding: Finding) -> bool:
    """Tell whether a finding is a difference between groups, in a metric that has a title."""
    named = finding.kind is not None and finding.grouping is not None and "title" in finding.arguments
    return named and finding.against != "model"


def _is_clear(finding: Finding, alpha: float) -> bool:
    if finding.threshold is not None:
        return finding.verdict == "does_not_meet"
    return finding.p_adjusted is not None and finding.p_adjusted <= alpha


def _under(clear: Iterable[str | None], every: Iterable[str | None]) -> Message | None:
    """Return under which models something is clear; nothing where there is only one."""
    models, asked = [str(model) for model in clear], [str(model) for model in every]
    if len(models) < len(asked):
        return say("under_some", models=tuple(models))
    return say("under_every") if len(models) > 1 else None


def listed(words: Iterable[str], last: str = "and") -> str:
    """Return words as a sentence lists them.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


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
        "Remark": lambda r: remark(r.status),
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
        "Remark": lambda r: remark(r.status),
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


def remark(status: Message) -> str:
    """Return a status as a cell of a table: nothing where all is well."""
    return "" if status == OK else status.text
