"""`evenhand data`: the published data sets."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table as RichTable

from evenhand.cli.console import FINE, out

app = typer.Typer(no_args_is_help=True, help="List and fetch the published data sets that evenhand knows.")


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
