"""`evenhand power`: what a plan could show, before there are data."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli.console import FINE, out, print_line, progress

if TYPE_CHECKING:
    from evenhand.report.power import PowerLine


def power(
    plan: Annotated[Path, typer.Argument(help="An audit.toml, or the study.toml of an effort study.")],
    rows: Annotated[
        int | None,
        typer.Option(min=10, help="Rows that are planned; of a study, people in one condition (default: [power]'s)."),
    ] = None,
    pilot: Annotated[
        str | None, typer.Option(help="A file with the columns of [data]: its groups and rates are expected.")
    ] = None,
    wanted: Annotated[
        float | None, typer.Option("--power", min=0.05, max=0.99, help="The chance wanted (default 0.8).")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same answer.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the lines as JSON.")] = False,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Let the file import the Python functions it names.")
    ] = False,
) -> int:
    """Say what a plan could show before there are data: the gap that each test and threshold finds 8 times in 10.

    `evenhand power audit.toml --rows 2000` takes groups and rates from the file's `[power]`:

    `groups = { race = { White = 0.7, Black = 0.3 } }` and `rates = { selection_rate = 0.4 }`

    `evenhand power audit.toml --rows 2000 --pilot pilot.csv` takes them from like data, which is what audits other than
    parity need.

    `evenhand power study.toml --rows 40` says which weight of trajectory 40 people a condition could show.
    """
    from evenhand.report.power import lines_as_dicts, plan_power

    with progress(json):
        lines = plan_power(plan, rows, pilot=pilot, power=wanted, seed=seed, allow_code=allow_code)
    if json:
        typer.echo(json_text.dumps(lines_as_dicts(lines), indent=1, ensure_ascii=False))
        return FINE
    for line in lines:
        print_line(_where(line), _what(line))
        out.print(f"  {line.how}", style="dim", markup=False)
    return FINE


def _where(line: PowerLine) -> str:
    parts = (line.audit, line.metric, line.model, line.grouping)
    return f"{', '.join(part for part in parts if part)}: "


def _what(line: PowerLine) -> str:
    """Return what a line says."""
    if line.chance is not None or line.rows is not None:
        needed = "no number of rows" if line.rows is None else f"{line.rows:,} rows"
        chance = "unknown" if line.chance is None else f"{line.chance:.0%}"
        return f"the planned improvement is shown with a chance of {chance}; the power wanted takes {needed}"
    if line.kind is None and line.gap is None:
        return "not worked out"
    who = f" ({line.group}: {line.n:,} count)" if line.group is not None and line.n is not None else ""
    if line.gap is None:
        claim = "shows no gap, however large, with the power wanted"
    elif line.kind == "ratio":
        claim = f"shows a ratio of {line.gap:.2f} or less"
    else:
        claim = f"shows a gap of {line.gap:.3f} or more"
    if line.threshold is None:
        return f"{claim}{who}"
    met = "" if line.meets is None else f"; without a gap it is met with a chance of {line.meets:.0%}"
    return f"'{line.threshold}' {claim.replace('shows', 'is shown to be broken by', 1)}{who}{met}"
