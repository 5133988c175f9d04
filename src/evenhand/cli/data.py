"""The data that evenhand brings: `evenhand data` lists and fetches it, `evenhand demo` audits made-up households."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as RichTable

from evenhand.cli.console import FINE, out, print_line, progress

app = typer.Typer(no_args_is_help=True, help="List and fetch the published data sets that evenhand knows.")

_THRESHOLDS = [
    {"metric": "traditional_parity", "min": 0.8, "grouping": "race"},
    {"metric": "demographic_parity_difference", "max": 0.1, "grouping": "race"},
    {"metric": "equal_opportunity_difference", "max": 0.1, "grouping": "sex"},
    {"audit": "effort", "metric": "eaif", "min": 0.85},
]
_EFFORT = {  # the inertia is NCES 2012, and for Hispanic households, which the paper has no rate for, a number of ours
    "trajectory": [f"income_{year}" for year in range(2019, 2023)],
    "unit": 10_000,
    "scale": 200_000,
    "inertia": {"White": 13, "Asian": 14, "Pacific Islander": 25, "Hispanic": 33, "American Indian": 36, "Black": 39},
    "weights": [0.5],
}


@app.command("list")
def list_data() -> int:
    """List the data sets with their licence and source."""
    from evenhand.datasets import available

    table = RichTable(box=None, pad_edge=False, header_style="bold")
    for column in ("Name", "Title", "Rows", "Licence"):
        table.add_column(column)
    for entry in available():
        table.add_row(entry.name, entry.title, f"{entry.rows:,}", entry.licence)
    out.print(table)
    return FINE


@app.command()
def fetch(name: Annotated[str, typer.Argument(help="A name from `evenhand data list`.")]) -> int:
    """Download a data set into the cache, check its SHA-256 and print its path."""
    from evenhand.datasets import fetch as fetch_data

    typer.echo(str(fetch_data(name)))
    return FINE


def demo(
    out_folder: Annotated[Path, typer.Option("--out", "-o", help="Folder for the report.")] = Path("evenhand-demo"),
    rows: Annotated[int, typer.Option(min=100, help="Number of made-up households.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and of the audit.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> int:
    """Audit three made-up credit models on made-up households: a report in a few seconds, no network."""
    import evenhand as eh
    from evenhand.report.text import print_summary

    with progress(quiet):
        households = eh.datasets.make_households(rows, seed=seed)
        table = eh.Table(
            households,
            id="household",
            outcome="missed_payment",
            groups=["race", "sex", "age_group", ["race", "sex"]],
            predictions={name: f"risk_{name}" for name in ("xgboost", "logistic", "random_forest")},
            favourable="not_selected",
        )
        about = {
            "title": "Demonstration audit of three credit models",
            "system": "three made-up models of the risk of a missed payment",
            "scope": "The households are synthetic: "
            "this page shows what a report looks like, not a fact about real people.",
        }
        audit = eh.audit(table, seed=seed, parity={}, effort=_EFFORT, thresholds=_THRESHOLDS, report=about)
        files = audit.save(out_folder)
    if not quiet:
        print_summary(audit, out)
        print_line("\nReport: ", str(files["report.html"]))
        print_line("Next: evenhand init YOUR_DATA.csv")
    return FINE


def replicate(
    papers: Annotated[
        list[str] | None, typer.Argument(help="effort, disagreement, reliability or improvability; by default all.")
    ] = None,
    out_folder: Annotated[Path, typer.Option("--out", "-o", help="Folder for the report.")] = Path(
        "evenhand-replication"
    ),
    data: Annotated[
        Path | None, typer.Option(help="Folder of data, in the place of the one that EVENHAND_DATA names.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> int:
    """Replicate the four papers behind the audits: what they print, what is found here, why it differs, the errata.

    It uses the data at hand and downloads nothing; the report lists what cannot be had, and what would read it. With
    all data at hand it takes a minute.
    """
    from evenhand.replication import replicate as replicate_papers

    with progress(quiet):
        found = replicate_papers(papers or (), data=data)
        files = found.save(out_folder)
    if not quiet:
        out.print(found.summary(), markup=False)
        print_line("\nReport: ", str(files["replication.html"]))
    return FINE
