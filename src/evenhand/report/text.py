"""The terminal summary of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from evenhand.core.findings import SHORT_VERDICTS, Finding
from evenhand.core.thresholds import Verdict
from evenhand.errors import count

if TYPE_CHECKING:
    from evenhand.report.audit import Audit

MOST_FINDINGS = 8
_STYLES: dict[Verdict, str] = {
    "does_not_meet": "bold red",
    "insufficient_evidence": "yellow",
    "meets": "green",
    "no_threshold": "dim",
}


def print_summary(audit: Audit, console: Console) -> None:
    """Print the verdicts first, then a few findings without one; the report has the rest."""
    console.print(Text(audit.config.report.title, style="bold"))
    noun = "people" if audit.config.data.get("predictions") else "rows"
    rows = f"{audit.data['rows_used']:,} {noun}"
    if audit.data["rows_dropped"]:
        rows += f" ({audit.data['rows_dropped']:,} rows with missing values dropped)"
    console.print(Text(rows, style="dim"))
    judged = [finding for finding in audit.findings if finding.threshold is not None]
    others = [finding for finding in audit.findings if finding.threshold is None]
    if judged:
        console.print(_table(judged))
        if others:
            more = "1 more finding has" if len(others) == 1 else f"{len(others)} more findings have"
            console.print(Text(f"{more} no threshold; see the report.", style="dim"))
    else:
        console.print(_table(others[:MOST_FINDINGS]))
        hidden = len(others) - MOST_FINDINGS
        more = f"{count(hidden, 'more finding')} in the report. " if hidden > 0 else ""
        console.print(Text(f"{more}No thresholds were set.", style="dim"))
    for sentence in audit.families:
        console.print(Text(sentence, style="dim"))
    for notes in audit.notes.values():
        for note in notes:
            console.print(Text(f"Note: {note}", style="dim"))


def _table(findings: list[Finding]) -> RichTable:
    table = RichTable(box=None, pad_edge=False, show_header=False, padding=(0, 2, 1, 0))
    with_verdicts = any(finding.threshold for finding in findings)
    for finding in findings:
        verdict = Text(SHORT_VERDICTS[finding.verdict], style=_STYLES[finding.verdict])
        if finding.threshold:
            verdict.append(f"\n{finding.threshold}", style="dim not bold")
        sentence = Text(finding.headline)  # text, not markup: names and values come from data
        for layer in filter(None, (finding.detail, finding.reason)):
            sentence.append(f"\n{layer}", style="dim")
        table.add_row(*((verdict, sentence) if with_verdicts else (sentence,)))
    return table
