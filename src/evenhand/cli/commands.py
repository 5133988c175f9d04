"""The short commands: `demo`, `data` (published data sets), `power`, `replicate` and `doctor`."""

from __future__ import annotations

import json as json_text
import platform
import re
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table as RichTable
from rich.text import Text

from evenhand._version import __version__
from evenhand.cli.console import BROKEN, FINE, TIMINGS_HELP, out, print_line, print_summary, print_timings, progress
from evenhand.cli.flags import COMMAND

if TYPE_CHECKING:
    from evenhand.core.power import PowerLine

data_app = typer.Typer(no_args_is_help=True, help="List and fetch the published data sets that evenhand knows.")


@data_app.command("list")
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


@data_app.command()
def fetch(name: Annotated[str, typer.Argument(help="A name from `evenhand data list`.")]) -> int:
    """Download a data set into the cache, check its SHA-256 and print its path."""
    from evenhand.datasets import fetch as fetch_data

    typer.echo(str(fetch_data(name)))
    return FINE


def demo(
    out_folder: Annotated[Path, typer.Option("--out", "-o", help="Folder for the report.")] = Path("evenhand-demo"),
    rows: Annotated[int, typer.Option(min=100, help="Number of synthetic households.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and of the audit.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
    timings: Annotated[bool, typer.Option("--timings", help=TIMINGS_HELP)] = False,
) -> int:
    """Audit three synthetic credit models on synthetic households: a report in less than a minute, no network."""
    import evenhand as eh
    from evenhand.datasets.households import demonstration, names_for_readers

    with progress(quiet) as clock:
        with clock.timing("read"):
            table = eh.Table(
                eh.datasets.make_households(rows, seed=seed),
                id="household",
                outcome="missed_payment",
                groups=["race", "sex", "age_group", ["race", "sex"]],
                predictions={name: f"risk_{name}" for name in ("xgboost", "logistic", "random_forest")},
                favourable="not_selected",
                selected_word="flags",
                people="households",
            )
        about = {
            "title": "Demonstration audit of three credit models",
            "system": "three made-up models of the risk of a missed payment",
            "thresholds_by": "the authors of this demonstration",
            "scope": "The households are synthetic: "
            "this page shows what a report looks like, not a fact about real people.",
            "names": names_for_readers(),
        }
        audit = eh.audit(table, seed=seed, report=about, **demonstration())
        files = audit.save(out_folder)
    if not quiet:
        print_summary(audit)
        print_line("\nReport: ", str(files["report.html"]))
        if timings:
            print_timings(clock)
        print_line("Next: evenhand init YOUR_DATA.csv")
    return FINE


# What a plan could show ----------------------------------------------------------------------------------------------


def power(
    *,
    plan: Annotated[Path, typer.Argument(help="An audit.toml, or the study.toml of an effort study.")],
    rows: Annotated[
        int | None,
        typer.Option(min=10, help="Planned rows; for a study, people in one condition (default: from [power])."),
    ] = None,
    pilot: Annotated[
        str | None, typer.Option(help="A file with the columns of [data]; its groups and rates are used.")
    ] = None,
    wanted: Annotated[
        float | None, typer.Option("--power", min=0.05, max=0.99, help="The desired power (default 0.8).")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same answer.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the lines as JSON.")] = False,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Let the file import the Python functions it names.")
    ] = False,
) -> int:
    """Show what a plan could find before there are data: the gap each test and threshold detects 8 times in 10.

    `evenhand power audit.toml --rows 2000` takes groups and rates from the file's `[power]`:

    `groups = { race = { White = 0.7, Black = 0.3 } }` and `rates = { selection_rate = 0.4 }`

    `evenhand power audit.toml --rows 2000 --pilot pilot.csv` takes them from similar data, which most audits
    require.

    `evenhand power study.toml --rows 40` says which weight of trajectory 40 people per condition could show.
    """
    from evenhand.evidence.power import lines_as_dicts, plan_power
    from evenhand.messages.language import language
    from evenhand.study.planning import is_study, plan_study

    with progress(json):
        if is_study(plan):
            lines = [plan_study(plan, rows, power=wanted, seed=seed)]
        else:
            lines = plan_power(plan, rows, pilot=pilot, power=wanted, seed=seed, allow_code=allow_code)
    if json:
        typer.echo(json_text.dumps(lines_as_dicts(lines), indent=1, ensure_ascii=False))
        return FINE
    for line in lines:
        print_line(_where(line), _line_subject(line))
        out.print(f"  {language().render(line.how, COMMAND)}", style="dim", markup=False)
    return FINE


def _where(line: PowerLine) -> str:
    parts = (line.audit, line.metric, line.model, line.grouping)
    return f"{', '.join(part for part in parts if part)}: "


def _line_subject(line: PowerLine) -> str:
    """Describe the result of a power line."""
    if line.chance is not None or line.rows is not None:
        needed = "no number of rows" if line.rows is None else f"{line.rows:,} rows"
        chance = "unknown" if line.chance is None else f"{line.chance:.0%}"
        return f"the planned improvement is shown with a chance of {chance}; the required power takes {needed}"
    if line.kind is None and line.gap is None:
        return "not worked out"
    claim = _smallest_gap(line, "shows" if line.threshold is None else "is shown to be broken by")
    who = f" ({line.group}: {line.n:,} people)" if line.group is not None and line.n is not None else ""
    if line.threshold is not None:
        claim = f"'{line.threshold}' {claim}"
    return f"{claim}{who}{_chances(line)}"


def _chances(line: PowerLine) -> str:
    """Describe the probability of meeting a limit if there is no true gap."""
    if line.threshold is not None and line.meets is not None:
        return f"; without a gap it is met with a chance of {line.meets:.0%}"
    return ""


def _smallest_gap(line: PowerLine, verb: str) -> str:
    """Describe the smallest gap detected with the required power."""
    if line.gap is None:
        unknown = line.how.id.startswith("evidence.simulated")
        return "no gap can be named" if unknown else f"{verb} no gap, however large, with the required power"
    if line.kind == "ratio":
        return f"{verb} a ratio of {line.gap:.2f} or less"
    amount = f"{100 * line.gap:.1f} points" if line.points else f"{line.gap:.3f}"
    return f"{verb} a gap of {amount} or more"


# What is installed ---------------------------------------------------------------------------------------------------


_ENGINES = ("duckdb", "pandas", "polars", "pyarrow", "pyspark")
_FOR_DEVELOPERS = ("dev", "docs")


def doctor() -> int:
    """Show installed versions and extras, what is missing, and the command that installs it.

    The exit code is 1 if evenhand itself cannot work.
    """
    print_line(f"evenhand {__version__}, Python {platform.python_version()}, {platform.platform()}")
    packages: dict[str, list[str]] = {"": []}
    for extra, package in _parts():
        packages.setdefault(extra, []).append(package)
    needed = packages.pop("")
    print_line("\nEngines for data frames (one of your own is enough; files are read by DuckDB)")
    _show(_ENGINES, "pip install {package}")
    print_line("\nWhat evenhand needs")
    _show(needed, "pip install evenhand")
    for extra in sorted(packages):
        print_line(f"\nExtra '{extra}'" + ("" if _missing_packages(packages[extra]) else ": complete"))
        _show(packages[extra], f"pip install 'evenhand[{extra}]'")
    broken = [*_missing_packages(needed), *_broken_features()]
    print_line("\nNot working: " + "; ".join(broken) if broken else "\nEverything that evenhand needs works.")
    return BROKEN if broken else FINE


def _parts() -> Iterator[tuple[str, str]]:
    """Yield every package that evenhand requires with its extra, "" for base requirements."""
    try:
        wanted = requires("evenhand") or []
    except PackageNotFoundError:  # run from a folder of source code
        wanted = []
    for line in wanted:
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)", line)
        if name and name[0] != "evenhand" and (extra is None or extra[1] not in _FOR_DEVELOPERS):
            yield (extra[1] if extra else ""), name[0]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _missing_packages(packages: Sequence[str]) -> list[str]:
    return [package for package in packages if _version(package) is None]


def _show(packages: Sequence[str], install: str) -> None:
    """Print the version of each package, or the command to install it."""
    table = RichTable(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for package in packages:
        installed, line = _version(package), install.format(package=package)
        shown = Text(installed) if installed else Text(f"not installed: {line}", style="yellow")
        table.add_row(Text(f"  {package}"), shown)
    out.print(table)


def _broken_features() -> Iterator[str]:
    """Yield failures of basic features: reading, drawing and writing."""
    from evenhand.charts import curve, to_svg
    from evenhand.core.files import write_files
    from evenhand.table.sources import open_source

    try:
        with tempfile.TemporaryDirectory() as folder:
            written = write_files(folder, {"people.csv": "g,d\na,1\nb,0\n"})
            open_source(written["people.csv"]).frame.collect_schema()
            points = curve([{"x": 1, "y": 1, "series": ""}], title="Points", x="x", y="y", intervals="none")
            write_files(Path(folder) / "out", {"chart.svg": to_svg(points, "Points", "One point.", name="points")})
    except Exception as error:  # report any error to the user
        yield f"reading a file, drawing a chart and writing it failed ({type(error).__name__}: {error})"


def replicate(
    papers: Annotated[
        list[str] | None, typer.Argument(help="effort, disagreement, reliability or improvability (default: all).")
    ] = None,
    out_folder: Annotated[Path, typer.Option("--out", "-o", help="Folder for the report.")] = Path(
        "evenhand-replication"
    ),
    data: Annotated[Path | None, typer.Option(help="Data folder, instead of the one that EVENHAND_DATA names.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> int:
    """Replicate the four papers behind the audits: printed values, our values, why they differ, errata.

    It uses the data you have and downloads nothing; the report lists what is missing and how to load it. With all data
    it takes a minute.
    """
    from evenhand.replication import replicate as replicate_papers

    with progress(quiet):
        replication = replicate_papers(papers or (), data=data)
        files = replication.save(out_folder)
    if not quiet:
        out.print(replication.summary(), markup=False)
        print_line("\nReport: ", str(files["replication.html"]))
    return FINE
