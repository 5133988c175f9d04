"""Console output shared by the commands: consoles, progress display and the summary of an audit."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from evenhand.core.findings import SHORT_VERDICTS, Finding
from evenhand.core.progress import RunClock, listening, timed
from evenhand.core.thresholds import Verdict
from evenhand.errors import count
from evenhand.messages import showable
from evenhand.table.engines import share_read

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

TIMINGS_HELP = "Show at the end where the time went, by section and step; run.json keeps it."
_SHORT = 2.0  # seconds after which a query's remaining time is estimated
FINE, BROKEN, BAD_INPUT, UNDECIDED, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

_STYLES: dict[Verdict, str] = {
    "does_not_meet": "bold red",
    "not_confirmed": "yellow",
    "insufficient_evidence": "yellow",
    "meets": "green",
    "no_threshold": "dim",
}


class _Console(Console):
    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """Escape control characters of all text; style and cursor codes come from Rich and pass unchanged."""
        return super()._render_buffer(
            part if part.control else Segment(showable(part.text), part.style) for part in buffer
        )

    def on_broken_pipe(self) -> None:
        """Raise `BrokenPipeError` for `main` to handle: a reader that stops is not an error."""
        raise BrokenPipeError


# Names and values come from data, so they are never interpreted as markup, emoji codes or numbers to colour.
out = _Console(highlight=False, emoji=False)
err = _Console(stderr=True, highlight=False, emoji=False)


def print_line(start: str, value: str = "") -> None:
    """Print a line verbatim, followed by the value in bold."""
    _print_words(out, Text.assemble(start, (value, "bold")))


def print_error(message: str) -> None:
    """Print an error message to standard error."""
    _print_words(err, Text(message))


def _print_words(console: Console, text: Text) -> None:
    """Print text, wrapped between words on a terminal; otherwise print each line unwrapped."""
    if console.is_terminal:
        text = Text(broken_between_words(text.plain, console.width), spans=text.spans)
    console.print(text, soft_wrap=True)


def broken_between_words(text: str, width: int) -> str:
    r"""Return text wrapped at spaces, so that only words longer than a line exceed the width.

    Examples
    --------
    >>> broken_between_words("there is no file 'a-rather-long-name.toml' here", 12)
    "there is no\nfile\n'a-rather-long-name.toml'\nhere"
    """
    characters, start = list(text), 0
    for word in re.finditer(r"[^ \n]+", text):
        before = word.start() - 1
        if before >= start and text[before] == "\n":
            start = word.start()
        elif before >= start and cell_len(text[start : word.end()]) > width:
            characters[before], start = "\n", word.start()
    return "".join(characters)


def print_json(text: str) -> None:
    """Print JSON as UTF-8 in any terminal encoding; if standard output is a text stream, print text."""
    typer.echo(text.encode() if hasattr(sys.stdout, "buffer") else text, nl=False)


class _Reading(ProgressColumn):
    """Progress column for DuckDB's reading of the data, with the expected remaining time."""

    max_refresh = 0.5

    def __init__(self) -> None:
        super().__init__()
        self._began, self._before = 0.0, 1.0

    def render(self, task: Task) -> Text:  # noqa: ARG002
        share, now = share_read() or 0.0, perf_counter()
        if share < self._before or not share:  # another query
            self._began = now
        self._before, passed = share, now - self._began
        if passed < _SHORT or share < 0.01:
            return Text()
        left = timedelta(seconds=round(passed * (1.0 - share) / share))
        return Text(f"{share:.0%} read, about {left} left of this step")


@contextmanager
def progress(quiet: bool) -> Iterator[RunClock]:
    """Show the current step of an audit on the terminal while it runs."""
    with timed() as clock:
        if quiet or not sys.stderr.isatty():
            yield clock
            return
        shown = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(), _Reading())
        with Progress(*shown, console=err, transient=True) as bar:
            task = bar.add_task("Starting", total=None)
            with listening(lambda description: bar.update(task, description=description)):
                yield clock


def print_timings(clock: RunClock, console: Console = out) -> None:
    """Print the time by section and step, omitting steps below a hundredth of the total."""
    records = clock.records()
    total = sum(record["seconds"] for record in records)
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("Where the time went")
    for name in ("seconds", "CPU", "share"):
        table.add_column(name, justify="right")
    for section in dict.fromkeys(record["section"] for record in records):
        steps = [record for record in records if record["section"] == section]
        table.add_row(section, *_spent(steps, total))
        for record in steps:
            if record["step"] and record["seconds"] >= total / 100.0:
                table.add_row(Text(f"  {record['step']}", style="dim"), *_spent([record], total))
    table.add_row(Text("all", style="bold"), *_spent(records, total))
    console.print(table)


def _spent(records: list[dict[str, Any]], total: float) -> tuple[str, str, str]:
    """Return the seconds, CPU seconds and share of the total of some steps."""
    wall, cpu = (sum(record[column] for record in records) for column in ("seconds", "cpu"))
    return f"{wall:.2f}", f"{cpu:.2f}", f"{wall / max(total, 1e-9):.0%}"


def print_summary(audit: Audit) -> None:
    """Print the answer, the verdicts and a few other findings of an audit."""
    from evenhand.report.answer import answer
    from evenhand.report.display_names import displayed
    from evenhand.report.front import in_order

    audit = displayed(audit)
    _print_head(audit)
    told = answer(audit)
    _print_answer(told.word, told.sentences[:1])
    for sentence in told.sentences[1:]:
        out.print(Text(sentence))
    out.print()
    lines, most = in_order(audit.findings), 8
    judged = [group for group in lines if group[0].threshold is not None]
    others = lines[len(judged) :]
    for group in judged or others[:most]:
        _print_finding(*group)
    for row in told.in_brief:
        _print_answer(row.question, row.lines)
    _print_dim(_left_out(len(judged), sum(map(len, others if judged else others[most:]))))
    _print_notes(audit)


def _print_notes(audit: Audit) -> None:
    """Print the multiple-testing families and the notes."""
    families = [str(family) for family in audit.families if family.id != "core.worse_off_rows"]
    for line in (*families, *(f"Note: {note}" for notes in audit.notes.values() for note in notes)):
        _print_dim(line)


def _print_head(audit: Audit) -> None:
    """Print the title, the number of people, and whether the plan was followed."""
    out.print(Text(audit.config.report.title, style="bold"))
    _print_dim(_rows_used(audit))
    if audit.plan is not None:
        changes = " ".join(change["text"] for change in audit.plan["changes"])
        followed = "followed" if audit.plan["followed"] else f"not followed. {changes}"
        _print_dim(f"Plan {audit.plan['sha256'][:12]}, sealed {audit.plan['sealed']}: {followed}")


def _print_answer(word: str, sentences: Sequence[str]) -> None:
    """Print a question or a short answer in bold, followed by its sentences."""
    if sentences:
        end = "" if word.endswith("?") else "."
        out.print(Text.assemble((f"{word}{end} ", "bold"), " ".join(sentences)))


def _print_dim(line: str) -> None:
    if line:
        out.print(Text(line, style="dim"))


def _left_out(judged: int, others: int) -> str:
    """Return a sentence on the number of findings omitted from the summary."""
    if not judged:
        more = f"{count(others, 'more finding')} in the report. " if others else ""
        return f"{more}No thresholds were set."
    have = "has" if others == 1 else "have"
    return f"{count(others, 'more finding')} {have} no threshold; see the report." if others else ""


def _rows_used(audit: Audit) -> str:
    data = audit.config.data
    noun = "people" if data.get("predictions") and not data.get("cluster") else "rows"
    used, dropped = audit.data["rows_used"], audit.data["rows_dropped"]
    left_out = f" ({count(dropped, 'row')} with missing values dropped)" if dropped else ""
    weight = audit.config.data.get("weight")
    return f"{used:,} {noun}{left_out}{f', weighted by {weight}' if weight else ''}"


def _print_finding(finding: Finding, *others: Finding) -> None:
    """Print a finding's number and verdict, with its sentences below."""
    number, headline = Text(finding.number, style="dim"), finding.headline.text  # no markup: names come from data
    more = f"{len(others)} more like it in the report." if others else ""
    layers = " ".join(str(layer) for layer in (finding.detail, finding.reason, more) if layer)
    if finding.threshold is None:
        out.print(Text.assemble(number, "  ", headline))
    else:
        words = SHORT_VERDICTS[finding.verdict] if finding.badge is None else str(finding.badge)
        verdict = (f"{words[:1].upper()}{words[1:]}", _STYLES[finding.verdict])
        out.print(Text.assemble(number, "  ", verdict, f"  {finding.threshold}"))
        out.print(Padding(Text(headline), (0, 0, 0, 2), expand=False))
    out.print(Padding(Text(layers, style="dim"), (0, 0, 1, 2), expand=False))
