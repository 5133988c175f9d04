"""`evenhand doctor`: what is installed, what is missing, and the line that installs it."""

from __future__ import annotations

import platform
import re
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from rich.table import Table as RichTable
from rich.text import Text

from evenhand._version import __version__
from evenhand.cli.console import BROKEN, FINE, out, print_line

_ENGINES = ("duckdb", "pandas", "polars", "pyarrow", "pyspark")
_FOR_DEVELOPERS = ("dev", "docs")
_MISSING = "not installed"


def doctor() -> int:
    """Say which versions and extras are there, what is missing, and the line that installs it.

    The exit code is 1 where evenhand itself cannot work.
    """
    print_line(f"evenhand {__version__}, Python {platform.python_version()}, {platform.platform()}")
    parts = list(_parts())
    broken = [package for extra, package in parts if extra is None and _version(package) is None]
    print_line("\nEngines for data frames (one of your own is enough; files are read by DuckDB)")
    _show((package, _version(package), f"pip install {package}") for package in _ENGINES)
    print_line("\nWhat evenhand needs")
    _show((package, _version(package), "pip install evenhand") for extra, package in parts if extra is None)
    for extra in sorted({extra for extra, _ in parts if extra is not None}):
        packages = [package for name, package in parts if name == extra]
        lacking = [package for package in packages if _version(package) is None]
        print_line(f"\nExtra '{extra}'" + ("" if lacking else ": complete"))
        _show((package, _version(package), _line(extra)) for package in packages)
    broken += list(_broken())
    print_line("\nNot working: " + "; ".join(broken) if broken else "\nEverything that evenhand needs works.")
    return BROKEN if broken else FINE


def _line(extra: str) -> str:
    return f"pip install 'evenhand[{extra}]'"


def _parts() -> Iterator[tuple[str | None, str]]:
    """Yield every package that evenhand asks for, with the extra it belongs to."""
    try:
        wanted = requires("evenhand") or []
    except PackageNotFoundError:  # run from a folder of source code
        wanted = []
    for line in wanted:
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)", line)
        if name and name[0] != "evenhand" and (extra is None or extra[1] not in _FOR_DEVELOPERS):
            yield (None if extra is None else extra[1]), name[0]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _show(rows: Iterator[tuple[str, str | None, str]]) -> None:
    table = RichTable(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for package, installed, line in rows:
        told = Text(installed) if installed else Text(f"{_MISSING}: {line}", style="yellow")
        table.add_row(Text(f"  {package}"), told)
    out.print(table)


def _broken() -> Iterator[str]:
    """Yield what does not work although it is installed: reading, drawing, writing."""
    from evenhand.charts import to_svg
    from evenhand.core.run import write_files
    from evenhand.table.sources import open_source

    try:
        import altair

        with tempfile.TemporaryDirectory() as folder:
            written = write_files(folder, {"people.csv": "g,d\na,1\nb,0\n"})
            open_source(written["people.csv"]).frame.collect_schema()
            points = altair.Chart(altair.InlineData(values=[{"x": 1}])).mark_point().encode(x="x:Q")
            write_files(Path(folder) / "out", {"chart.svg": to_svg(points, "Points", "One point.", name="points")})
    except Exception as error:  # whatever it is, it is what the user has to know
        yield f"reading a file, drawing a chart and writing it failed ({type(error).__name__}: {error})"
