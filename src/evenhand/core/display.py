"""The displayed parts of an audit, for any renderer: figures, tables and methods.

A displayed table contains numbers with a format, not finished text. So HTML, terminal, notebook and Markdown can
render the same table, and a spreadsheet gets numbers.
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
from evenhand.core.thresholds import UNDECIDED
from evenhand.messages import Argument, Message, showable
from evenhand.messages.formats import DASH, Format, rounded, show, show_confidence, show_interval
from evenhand.messages.shared import say


class Number(NamedTuple):
    """A number in a table, with its format."""

    value: float | None
    style: Format = "number"

    def __str__(self) -> str:
        return show(self.value, self.style)


class Range(NamedTuple):
    """An interval in a table, with the format of its ends."""

    low: float | None
    high: float | None
    style: Format = "number"

    def __str__(self) -> str:
        return show_interval(self.low, self.high, self.style)


class Link(NamedTuple):
    """A link in a table to a part of the report, with title and anchor."""

    title: str
    anchor: str

    def __str__(self) -> str:
        return self.title


_MARKS = re.compile(r"[\\`*\[\]|]")
_LESS_THAN = re.compile(r"&lt;(?=[ \d])")

Cell: TypeAlias = str | Number | Range | Link | None


def showable_value(value: object) -> object:
    """Return a value escaped for a template, for the `finalize` option of Jinja environments."""
    if isinstance(value, Markup):
        return Markup(showable(value))  # noqa: S704
    return showable(str(value)) if isinstance(value, str | Message) else value


def cell_text(cell: Cell) -> str:
    """Return a cell as text, or a dash if it is empty."""
    return DASH if cell is None else showable(str(cell))


@dataclass(frozen=True)
class Figure:
    """One or more panels, their caption, and a description for readers who cannot see them.

    `shows` is a sentence on what the figure shows, not stronger than the findings; `sizes` are the numbers of people
    by series. A figure that only explains another figure is `aside`: on paper it is named but not drawn.

    Examples
    --------
    >>> figure = Figure("Errors", "Of 100 people.", "Of 100 Asian: 3 wrong; of 100 Black: 11 wrong.", (), DESCRIBES)
    >>> figure.statement, figure.note
    ('Of 100 Asian: 3 wrong.', 'Of 100 people. Described, not tested.')
    """

    title: str
    caption: str
    description: str
    charts: tuple[Any, ...]
    shows: Message | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    aside: bool = False

    @property
    def statement(self) -> str:
        """The sentence on what the figure shows; without a finding, the first statement of its description."""
        if self.shows != DESCRIBES:
            return "" if self.shows is None else str(self.shows)
        first = re.split(r"(?<=\.) |; ", self.description)[0]
        return f"{first.rstrip('.')}."

    @property
    def note(self) -> str:
        """The caption, with a remark if no finding is about the figure."""
        return f"{self.caption} {DESCRIBES}" if self.shows == DESCRIBES else self.caption


FIRST_FOLDED, FIRST_SHOWN = 25, 100
"""The maximum number of rows that a page shows of a folded or open table; a file has all rows."""


@dataclass(frozen=True)
class DisplayTable:
    """A table of typed cells; numeric columns are right-aligned.

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

    @cached_property  # a page reads it for every cell
    def numeric(self) -> tuple[bool, ...]:
        """Whether each column is numeric."""
        return tuple(
            any(isinstance(row[position], Number | Range) for row in self.rows) for position in range(len(self.columns))
        )

    def rows_shown(self) -> int:
        """Return the number of rows that a page shows; all other rows are in a file."""
        return min(len(self.rows), FIRST_FOLDED if self.folded else FIRST_SHOWN)

    def numbers(self) -> dict[str, list[Any]]:
        """Return the columns for a spreadsheet, with numbers as numbers and intervals as two columns."""
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
        """Return the table in Markdown, with cells escaped."""
        rule = ["---:" if right else "---" for right in self.numeric]
        lines = [tuple(map(showable, self.columns)), rule, *self.texts()]
        return "\n".join("| " + " | ".join(escape_markdown(cell) for cell in line) + " |" for line in lines)

    def to_html(self) -> str:
        """Return the table as plain HTML for a notebook, with all text escaped."""
        head = "".join(f'<th scope="col">{escape(showable(column))}</th>' for column in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.texts())
        caption = escape(showable(self.caption))
        table = f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<details><summary>{caption}</summary>{table}</details>" if self.folded else table


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, so that it has no HTML, link, image or cell boundary.

    A less-than sign that cannot begin a tag, as in p < 0.001, is unchanged.
    """
    plain = _LESS_THAN.sub("<", _MARKS.sub(r"\\\g<0>", escape(text, quote=False)))
    return plain.replace("\n", " ")


@dataclass(frozen=True)
class Method:
    """The method behind one number: its name, a description with formula, and the reference."""

    term: str
    text: str
    reference: str = ""


@dataclass(frozen=True)
class Section:
    """One audit's section of the report; `caveats` are the limitations of its metrics, by metric title."""

    title: str
    question: str | Message
    parts: tuple[Figure | DisplayTable, ...]
    methods: tuple[Method, ...]
    notes: tuple[Message, ...] = ()
    caveats: tuple[tuple[str, str], ...] = ()


# What a figure shows -------------------------------------------------------------------------------------------------

DESCRIBES = say("described")


def figure_sentence(findings: Iterable[Finding], metrics: Collection[str], alpha: float) -> Message:
    """Return a sentence on what a figure shows, not stronger than the findings on its metrics.

    With a threshold, a difference is significant if the threshold is violated, or if it is undecided and the
    difference is established. Without a threshold, it is significant if its adjusted p-value is at most `alpha`. The
    sentence states the most significant difference, and the models under which it is significant.
    """
    relevant = [finding for finding in findings if finding.metric in metrics]
    significant = [finding for finding in relevant if _is_clear(finding, alpha)]
    if not relevant:
        return DESCRIBES
    if not significant:
        verdicts = {finding.verdict for finding in relevant if finding.threshold is not None}
        return say("figure_all_meet" if verdicts == {"meets"} else "figure_nothing_clear")
    lead = min(significant, key=lambda f: (f.verdict != "does_not_meet", 1.0 if f.p_adjusted is None else f.p_adjusted))
    return _under_which_models(lead, significant, relevant) if _compares_groups(lead) else lead.headline


_COMPARISON = attrgetter("metric", "grouping", "kind", "against")
"""The columns that are equal in findings on the same question for different models or groups."""


def _under_which_models(lead: Finding, clear: Iterable[Finding], findings: Iterable[Finding]) -> Message:
    """Return the sentence of the leading finding, with the models that have the same finding."""
    is_broken, people = lead.verdict == "does_not_meet", lead.arguments.get("people")
    alike = [finding for finding in clear if not is_broken or finding.verdict == "does_not_meet"]
    same, all_models = ([f for f in among if _COMPARISON(f) == _COMPARISON(lead)] for among in (alike, findings))
    worse_off = _worse_off_in_all(same)
    if worse_off is None:
        sentence = "figure_beyond_the_limit" if is_broken else "figure_groups_differ"
    else:
        sentence = "figure_people_worse_off" if people else "figure_worse_off"
    return say(
        sentence,
        grouping=lead.grouping,
        group=worse_off,
        people=people,
        title=lead.arguments["title"],
        limit=lead.threshold,
        under=_under(dict.fromkeys(f.model for f in same), dict.fromkeys(f.model for f in all_models)),
    )


def _worse_off_in_all(findings: Iterable[Finding]) -> Argument:
    """Return the group that all findings call worse off, or None."""
    named = {f.arguments.get("worse_off") if f.significance == "directed" else None for f in findings}
    return next(iter(named)) if len(named) == 1 else None


def _compares_groups(finding: Finding) -> bool:
    """Return whether a finding is a difference between groups in a titled metric."""
    is_gap = finding.kind is not None and finding.grouping is not None and "title" in finding.arguments
    return is_gap and finding.against != "model"


def _is_clear(finding: Finding, alpha: float) -> bool:
    if finding.threshold is not None:
        is_established = finding.kind is not None and finding.significance in ("directed", "significant")
        return finding.verdict == "does_not_meet" or (finding.verdict in UNDECIDED and is_established)
    return finding.p_adjusted is not None and finding.p_adjusted <= alpha


def _under(clear: Iterable[str | None], models: Iterable[str | None]) -> Message | None:
    """Return a clause on the models under which a difference is significant; None for a single model."""
    significant_models, all_models = [str(model) for model in clear], [str(model) for model in models]
    if len(significant_models) < len(all_models):
        return say("under_some", models=tuple(significant_models))
    return say("under_every") if len(significant_models) > 1 else None


# The usual tables ----------------------------------------------------------------------------------------------------

Extra: TypeAlias = Mapping[str, Callable[[Any], Cell]]
"""Additional columns by title; each is a function of the record."""

_AGAINST = {"worst_pair": "worst pair", "reference": "reference", "overall": "everybody", "model": "model"}


def value_table(
    values: Iterable[Value],
    metrics: Mapping[str, Metric],
    caption: str,
    confidence: float,
    *,
    extra: Extra | None = None,
) -> DisplayTable:
    """Return the table of values without empty columns; the audit's own columns precede the metric."""
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
    return make_table(caption, columns, records, always=("Metric", "n", "Value"))


def gap_table(
    gaps: Iterable[Gap],
    metrics: Mapping[str, Metric],
    caption: str,
    confidence: float,
    *,
    extra: Extra | None = None,
    folded: bool = True,
) -> DisplayTable:
    """Return the table of gaps without empty columns; the audit's own columns precede the metric."""
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
    """Return a table of records from one function per column, without empty columns."""
    cells_by_title = {title: [cell(record) for record in records] for title, cell in columns.items()}
    titles = [title for title, cells in cells_by_title.items() if title in always or any(map(_says_something, cells))]
    rows = tuple(zip(*(cells_by_title[title] for title in titles), strict=True)) if records else ()
    return DisplayTable(caption, tuple(titles), rows, folded)


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
    """Return a status as a cell of a table, or an empty text for 'ok'."""
    return "" if status == OK else status.text
