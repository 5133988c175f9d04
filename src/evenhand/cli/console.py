"""What the commands share: where they print, how they show progress and an audit, and how they end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from evenhand.core.findings import SHORT_VERDICTS, Finding
from evenhand.core.run import listening
from evenhand.core.thresholds import Verdict
from evenhand.errors import count, showable

if TYPE_CHECKING:
    from evenhand.report.audit import Audit

FINE, BROKEN, BAD_INPUT, UNDECIDED, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

_STYLES: dict[Verdict, str] = {
    "does_not_meet": "bold red",
    "insufficient_evidence": "yellow",
    "meets": "green",
    "no_threshold": "dim",
}


class _Console(Console):
    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """Let all text pass `showable` on its way to the terminal; styles and cursor moves are Rich's own."""
        return super()._render_buffer(
            part if part.control else Segment(showable(part.text), part.style) for part in buffer
        )

    def on_broken_pipe(self) -> None:
        """Leave it to `main`: that nobody reads on is no failure."""
        raise BrokenPipeError


# Names and values come from data: nothing in them is markup, an emoji code or a number to colour.
out = _Console(highlight=False, emoji=False)
err = _Console(stderr=True, highlight=False, emoji=False)


def print_line(start: str, value: str = "") -> None:
    """Print a line as it is, with the value in bold; long lines are not broken."""
    out.print(Text.assemble(start, (value, "bold")), soft_wrap=True)


def print_error(message: str) -> None:
    """Print a line about what went wrong to standard error."""
    err.print(Text(message), soft_wrap=True)


@contextmanager
def progress(quiet: bool) -> Iterator[None]:
    """Show each step of an audit on the terminal while it runs; nothing stays behind."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("Starting", total=None)
        with listening(lambda description: bar.update(task, description=description)):
            yield


def print_summary(audit: Audit, most: int = 8) -> None:
    """Print the verdicts first, then at most so many findings without one; the report has the rest."""
    from evenhand.report.front import drift_in_short, in_order

    out.print(Text(audit.config.report.title, style="bold"))
    _print_dim(_rows_used(audit))
    if audit.plan is not None:
        followed = "followed" if audit.plan["followed"] else f"not followed. {' '.join(audit.plan['changes'])}"
        _print_dim(f"Plan {audit.plan['sha256'][:12]}, sealed {audit.plan['sealed']}: {followed}")
    lines = in_order(audit.findings)
    judged = [alike for alike in lines if alike[0].threshold is not None]
    others = lines[len(judged) :]
    out.print(_table(judged or others[:most]))
    for sentence in drift_in_short(audit):
        out.print(Text(sentence))
    _print_dim(_left_out(len(judged), sum(map(len, others if judged else others[most:]))))
    notes = [f"Note: {note}" for notes in audit.notes.values() for note in notes]
    for line in (*audit.families, *notes):
        _print_dim(line)


def _print_dim(line: str) -> None:
    if line:
        out.print(Text(line, style="dim"))


def _left_out(judged: int, others: int) -> str:
    """Say how many findings the summary leaves to the report."""
    if not judged:
        more = f"{count(others, 'more finding')} in the report. " if others else ""
        return f"{more}No thresholds were set."
    have = "has" if others == 1 else "have"
    return f"{count(others, 'more finding')} {have} no threshold; see the report." if others else ""


def _rows_used(audit: Audit) -> str:
    noun = "people" if audit.config.data.get("predictions") else "rows"
    used, dropped = audit.data["rows_used"], audit.data["rows_dropped"]
    return f"{used:,} {noun}" + (f" ({count(dropped, 'row')} with missing values dropped)" if dropped else "")


def _table(lines: list[tuple[Finding, ...]]) -> RichTable:
    table = RichTable(box=None, pad_edge=False, show_header=False, padding=(0, 2, 1, 0))
    with_verdicts = any(finding.threshold for finding, *_ in lines)
    for finding, *others in lines:
        verdict = Text(SHORT_VERDICTS[finding.verdict], style=_STYLES[finding.verdict])
        if finding.threshold:
            verdict.append(f"\n{finding.threshold}", style="dim not bold")
        sentence = Text(finding.headline)  # text, not markup: names and values come from data
        more = f"{len(others)} more like it in the report." if others else ""
        for layer in filter(None, (finding.detail, finding.reason, more)):
            sentence.append(f"\n{layer}", style="dim")
        table.add_row(*((verdict, sentence) if with_verdicts else (sentence,)))
    return table
