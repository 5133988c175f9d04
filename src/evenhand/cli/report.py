"""`evenhand report`: the report of a saved audit again, in any format, without the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.console import FINE, print_line, progress

FORMATS_HELP = "html, pdf, md, xlsx, csv, card (model cards), datasheet, junit, svg, png; several with commas."


def listed_formats(text: str) -> list[str]:
    """Return the formats that an option names, each once."""
    return list(dict.fromkeys(name for part in text.split(",") if (name := part.strip().lower())))


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of an audit: results.json and run.json.")],
    formats: Annotated[str, typer.Option("--format", "-f", help=FORMATS_HELP)] = "html",
    out_folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write (default: the same folder).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> int:
    """Write the report of a saved audit again, in other formats; the data are not needed.

    `evenhand report out/ --format pdf,xlsx` adds report.pdf and tables.xlsx to the folder.

    PDF needs `pip install 'evenhand[pdf]'`, XLSX `pip install 'evenhand[files]'`.
    """
    from evenhand import Audit

    with progress(quiet):
        written = Audit.load(folder).save(out_folder or folder, listed_formats(formats))
    if not quiet:
        for name, path in written.items():
            if name not in ("results.json", "run.json"):
                print_line("", str(path))
    return FINE
