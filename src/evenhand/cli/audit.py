"""`evenhand audit`: run an audit.toml, or audit a data file by options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.console import BROKEN, FINE, UNDECIDED, err, out, progress
from evenhand.errors import ConfigError

Many = list[str]


def audit(
    target: Annotated[str, typer.Argument(help="An audit.toml, or a CSV, Parquet or JSON file (a glob in quotes).")],
    out_folder: Annotated[Path, typer.Option("--out", "-o", help="Folder for report.html, results.json and run.json.")] = Path("out"),
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 when a threshold is broken: its interval lies wholly beyond it.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="With --check: exit with 3 when the data does not decide.")] = False,
    seed: Annotated[int | None, typer.Option(help="Override the seed of the audit.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print results.json to standard output instead of the summary.")] = False,
    allow_code: Annotated[bool, typer.Option("--allow-code", help="Let audit.toml import the Python functions it names.")] = False,
    outcome: Annotated[str | None, typer.Option(help="Column of what really happened.", rich_help_panel="For a data file")] = None,
    positive: Annotated[str | None, typer.Option(help="The outcome's positive value.", rich_help_panel="For a data file")] = None,
    groups: Annotated[Many | None, typer.Option(help="Group column; repeat it; race+sex is an intersection.", rich_help_panel="For a data file")] = None,
    scores: Annotated[Many | None, typer.Option(help="Score column, or name=column; repeat it.", rich_help_panel="For a data file")] = None,
    decisions: Annotated[Many | None, typer.Option(help="Decision column, or name=column; repeat it.", rich_help_panel="For a data file")] = None,
    threshold: Annotated[float, typer.Option(help="A person is selected when the score is above it.", rich_help_panel="For a data file")] = 0.5,
    weight: Annotated[str | None, typer.Option(help="Column of survey weights.", rich_help_panel="For a data file")] = None,
    within: Annotated[Many | None, typer.Option(help="Column of a legitimate factor to compare within.", rich_help_panel="For a data file")] = None,
    drop_missing: Annotated[bool, typer.Option("--drop-missing", help="Drop rows with a missing outcome or score.", rich_help_panel="For a data file")] = False,
) -> int:  # fmt: skip
    """Audit a system: summary on the terminal, report.html and results.json in a folder.

    `evenhand audit audit.toml` runs a file written by `evenhand init`.

    `evenhand audit data.csv --outcome y --groups race --scores risk` audits a table at once.
    """
    from evenhand import audit as run_audit
    from evenhand.report.text import print_summary

    with progress(quiet or json):
        if target.lower().endswith(".toml"):
            if groups or scores or decisions or outcome:
                raise ConfigError("the options --outcome, --groups, --scores and --decisions are for a data file; edit the .toml instead.")
            result = run_audit(target, seed=seed, allow_code=allow_code)
        else:
            table = _table(
                target, outcome=outcome, positive=_value(positive), groups=groups, scores=scores, decisions=decisions,
                threshold=threshold, weight=weight, missing="drop" if drop_missing else "error",
            )  # fmt: skip
            result = run_audit(table, seed=seed, parity={"within": within or []})
        files = result.save(out_folder)
    if json:
        typer.echo(result.to_json(), nl=False)
    elif not quiet:
        print_summary(result, out)
        out.print(f"\nReport: [bold]{files['report.html']}[/bold]", soft_wrap=True)
    if not check:
        return FINE
    return _checked(result.findings, strict, quiet)


def _checked(findings: Any, strict: bool, quiet: bool) -> int:
    if not any(finding.threshold for finding in findings):
        raise ConfigError("--check needs thresholds; add a [[thresholds]] table with metric and min or max to audit.toml.")
    verdicts = [finding.verdict for finding in findings]
    if "does_not_meet" in verdicts:
        if not quiet:
            err.print(f"Check: {verdicts.count('does_not_meet')} of the thresholds broken.")
        return BROKEN
    if strict and "insufficient_evidence" in verdicts:
        if not quiet:
            err.print("Check: the data does not decide some thresholds.")
        return UNDECIDED
    return FINE


def _table(
    path: str, *, groups: Many | None, scores: Many | None, decisions: Many | None, threshold: float, **roles: Any
) -> Any:
    from evenhand import Table

    if not groups or not (scores or decisions):
        raise ConfigError(
            "to audit a data file name its columns with --groups and --scores or --decisions "
            f"(and --outcome); or write an audit.toml with: evenhand init {path}"
        )
    predictions: dict[str, Any] = {}
    for text in scores or ():
        name, column = _named(text)
        predictions[name] = {"column": column, "kind": "score", "threshold": threshold}
    for text in decisions or ():
        name, column = _named(text)
        predictions[name] = {"column": column, "kind": "decision"}
    parsed = [group.split("+") if "+" in group else group for group in groups]
    return Table(path, groups=parsed, predictions=predictions, **roles)


def _named(text: str) -> tuple[str, str]:
    name, sign, column = text.partition("=")
    return (name, column) if sign else (text, text)


def _value(text: str | None) -> str | int | None:
    """Take a whole number for a number, since the shell knows only text."""
    return int(text) if text is not None and text.lstrip("-").isdigit() else text
