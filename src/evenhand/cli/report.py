"""`evenhand report`, `compare`, `plan`, `verify` and `pack`: commands on plans and on saved audits."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.console import BROKEN, FINE, out, print_json, print_line, progress
from evenhand.cli.flags import COMMAND
from evenhand.errors import ConfigError, error_messages_for
from evenhand.report.formats import FORMATS

FORMATS_HELP = f"{', '.join(FORMATS)}; separated by commas."


def listed_formats(text: str) -> list[str]:
    """Return the formats named by an option, without repetitions."""
    names = list(dict.fromkeys(name for part in text.split(",") if (name := part.strip().lower())))
    if not names:
        raise ConfigError(
            "--format got {text!r}, which names no format; give one or several: {FORMATS_HELP}",
            text=text,
            FORMATS_HELP=FORMATS_HELP,
        )
    return names


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of an audit: results.json and run.json.")],
    formats: Annotated[str, typer.Option("--format", "-f", help=FORMATS_HELP)] = "html",
    out_folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write (default: the same folder).")
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Language of the front page: en or de (default: that of the audit).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> int:
    """Write the report of a saved audit again, in any format, without its data.

    `evenhand report out/ --format pdf,xlsx` adds report.pdf and tables.xlsx to the folder.

    PDF needs `pip install 'evenhand[pdf]'`, XLSX `pip install 'evenhand[files]'`.
    """
    from evenhand import Audit
    from evenhand.report.wording import page_wording

    with progress(quiet):
        audit = Audit.load(folder)
        if language is not None:
            audit = replace(audit, run={**audit.run, "language": page_wording(language).code})
        written = audit.save(out_folder or folder, listed_formats(formats))
    if not quiet:
        for name, path in written.items():
            if name not in ("results.json", "run.json"):
                print_line("", str(path))
    return FINE


Settings = Annotated[Path | None, typer.Option(help="The audit.toml.")]
AllowCode = Annotated[bool, typer.Option("--allow-code", help="Let audit.toml import the Python functions it names.")]
Key = Annotated[Path | None, typer.Option("--sign", help="Sign with this private SSH key (ssh-keygen -Y).")]


def plan(
    settings: Annotated[Path, typer.Argument(help="The audit.toml of an audit to come; its data need not exist yet.")],
    out_file: Annotated[Path, typer.Option("--out", "-o", help="Where to write the plan.")] = Path("plan.json"),
    key: Key = None,
    allow_code: AllowCode = False,
) -> int:
    """Seal a plan before the data are seen: thresholds, metrics, models and exclusions, with the time and a hash.

    Give the hash, or the file, to somebody you trust. `evenhand audit audit.toml --plan plan.json` then says whether
    the plan was followed, and marks whatever it did not foresee as exploratory.
    """
    from evenhand.core.files import write_files
    from evenhand.evidence.pack import sign
    from evenhand.messages.formats import json_text
    from evenhand.run.plan import seal

    if os.path.lexists(out_file):  # also names that no file can have, which fail on writing
        raise ConfigError(
            "'{out_file}' is there already; a plan is sealed once: give another name with --out.", out_file=out_file
        )
    sealed = seal(settings, allow_code=allow_code)
    text = json_text(sealed)
    files: dict[str, str | bytes] = {out_file.name: text}
    if key is not None:
        files[f"{out_file.name}.sig"] = sign(text.encode(), key)
    write_files(out_file.parent, files)
    print_line("Plan: ", str(out_file))
    print_line("SHA-256: ", sealed["sha256"])
    return FINE


def verify(
    folder: Annotated[Path, typer.Argument(help="The folder of an audit, or an unpacked pack.")],
    settings: Annotated[
        Path | None, typer.Option(help="The audit.toml, to recompute every number from the data.")
    ] = None,
    plan_file: Annotated[
        Path | None, typer.Option("--plan", help="The sealed plan (default: plan.json in the folder).")
    ] = None,
    allow_code: AllowCode = False,
) -> int:
    """Check whether report, results, data and plan belong together, and show what differs.

    `evenhand verify out/ --settings audit.toml` also recomputes everything. Exits with 1 if something differs.
    """
    from evenhand.evidence.verify import verify as run_checks

    with progress(False):
        checks = run_checks(folder, settings=settings, plan=plan_file, allow_code=allow_code)
    marks = {True: "[green]✓[/green] ", False: "[bold red]✕[/bold red] ", None: "[dim]–[/dim] "}
    for check in checks:
        out.print(marks[check.holds], end="")
        out.print(check.text, markup=False, highlight=False)
    return BROKEN if any(check.holds is False for check in checks) else FINE


def pack(
    *,
    folder: Annotated[Path, typer.Argument(help="The folder of an audit.")],
    out_file: Annotated[Path, typer.Option("--out", "-o", help="The zip to write.")] = Path("audit-pack.zip"),
    settings: Settings = None,
    plan_file: Annotated[
        Path | None, typer.Option("--plan", help="The sealed plan (default: plan.json in the folder).")
    ] = None,
    formats: Annotated[str, typer.Option("--format", "-f", help=FORMATS_HELP)] = "html,md,csv,datasheet,junit",
    key: Key = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    allow_code: AllowCode = False,
) -> int:
    """Make one zip for a regulator: report, results, plan, settings, versions, checksums, and how to verify them.

    It does not contain the data, only their SHA-256. VERIFY.md explains how to check it without evenhand.
    """
    from evenhand.evidence.pack import pack as make_pack

    if out_file.exists() and not force:
        raise ConfigError(
            "'{out_file}' exists already; give --force to overwrite it, or another name with --out.", out_file=out_file
        )
    with progress(False):
        path = make_pack(
            folder,
            out_file,
            settings=settings,
            plan=plan_file,
            formats=listed_formats(formats),
            key=key,
            allow_code=allow_code,
        )
    print_line("Pack: ", str(path))
    return FINE


def compare(
    *,
    old: Annotated[Path, typer.Argument(help="The folder of the old audit.")],
    new: Annotated[Path, typer.Argument(help="The folder of the new audit.")],
    out_folder: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for compare.md, .json and .svg (default: none)."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 if a finding changed for the worse beyond chance.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    old_settings: Annotated[
        Path | None, typer.Option(help="The audit.toml of the old audit, if both contain the same people.")
    ] = None,
    new_settings: Annotated[
        Path | None, typer.Option(help="The audit.toml of the new audit (default: the same as the old).")
    ] = None,
    key: Annotated[str | None, typer.Option(help="The column that identifies people (default: their `id`).")] = None,
) -> int:
    """Compare two audits: verdict flips first, then every change with its interval.

    `evenhand compare march/ april/ --check` fails a build if a finding changed for the worse beyond chance; other gaps
    are shown, but do not count. The two audits are treated as independent samples. If the same people are in both, as
    with two models, their data are needed too:
    `evenhand compare v1/ v2/ --old-settings v1.toml --new-settings v2.toml --key person`.
    """
    from evenhand.evidence.comparison import compare as run_comparison
    from evenhand.run.auditing import read_table

    if old_settings is None and (new_settings is not None or key is not None):
        raise ConfigError("people who are in both need the data of both audits: give --old-settings too.")
    tables = None
    if old_settings is not None:
        tables = read_table(old_settings), read_table(new_settings or old_settings)
    with error_messages_for(COMMAND):
        comparison = run_comparison(old, new, tables=tables, key=key)
    if out_folder is not None:
        comparison.save(out_folder)
    if json:
        print_json(comparison.to_json())
    else:
        out.print(comparison.summary(), markup=False)
    return BROKEN if check and comparison.worse else FINE
