"""`evenhand audit`: run an audit.toml, or audit a data file by options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli.console import (
    BROKEN,
    FINE,
    TIMINGS_HELP,
    UNDECIDED,
    err,
    out,
    print_json,
    print_line,
    print_summary,
    print_timings,
    progress,
)
from evenhand.cli.flags import COMMAND
from evenhand.cli.report import FORMATS_HELP, listed_formats
from evenhand.errors import ConfigError, count, error_messages_for

if TYPE_CHECKING:
    from evenhand import Audit, Table
    from evenhand.core.findings import Finding
    from evenhand.table.sources import FileOptions

Text = str | None
Many = list[str] | None


_NO_THRESHOLDS = (
    "--check needs thresholds: --require 'selection_rate>=0.8' for a data file, or in audit.toml a [[thresholds]] "
    "table with metric and min or max."
)


def _of_data(*names: str, about: str) -> Any:
    """Return a command-line option for data files; an audit.toml contains these settings itself."""
    return typer.Option(*names, help=about, rich_help_panel="For a data file")


def audit(
    *,
    target: Annotated[
        str,
        typer.Argument(
            help="An audit.toml, or data: CSV, Parquet or JSON (a glob in quotes), Excel, Stata, SPSS, Feather, R."
        ),
    ],
    out_folder: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for report.html, results.json and run.json.")
    ] = Path("out"),
    formats: Annotated[str, typer.Option("--format", "-f", help=FORMATS_HELP)] = "html",
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit with 1 if a threshold is broken: its interval lies entirely beyond it."),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="With --check: exit with 3 if the evidence is insufficient.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Override the seed of the audit.")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=2, help="Run it with so many seeds, too, and print the range of every finding over them."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print results.json to standard output instead of the summary.")
    ] = False,
    timings: Annotated[bool, typer.Option("--timings", help=TIMINGS_HELP)] = False,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Let audit.toml import the Python functions it names.")
    ] = False,
    plan: Annotated[
        Path | None, typer.Option(help="A plan sealed by `evenhand plan`: the report says whether it was followed.")
    ] = None,
    profile: Annotated[
        Many,
        _of_data(about="Legal profile to add to the report, such as ugesp-1978 or nyc-ll144-2023; can be repeated."),
    ] = None,
    outcome: Annotated[Text, _of_data(about="Column of what really happened.")] = None,
    positive: Annotated[Text, _of_data(about="The outcome's positive value.")] = None,
    groups: Annotated[
        Many, _of_data(about="Group columns: race,sex; race+sex is an intersection; can be repeated.")
    ] = None,
    scores: Annotated[Many, _of_data(about="Score column, or name=column; can be repeated.")] = None,
    decisions: Annotated[Many, _of_data(about="Decision column, or name=column; can be repeated.")] = None,
    numbers: Annotated[
        Many,
        _of_data(
            about="Column of a number to compare, such as a salary, or name=column; with --outcome its errors, too."
        ),
    ] = None,
    tolerance: Annotated[
        float | None, _of_data(about="With --numbers and --outcome: the largest error that counts as none.")
    ] = None,
    threshold: Annotated[
        float | None, _of_data(about="A person is selected if the score is above this (default 0.5).")
    ] = None,
    score_range: Annotated[
        Text, _of_data("--range", about="Lowest and highest possible score, as in 1,10 (default 0,1).")
    ] = None,
    selected: Annotated[Text, _of_data(about="The decision that means selected (default 1, true or yes).")] = None,
    cuts: Annotated[
        Many, _of_data(about="Cut points of a numeric group column: age=25,45,65; can be repeated.")
    ] = None,
    labels: Annotated[
        Many, _of_data(about="Names for the groups of a column: black:0=not Black,1=Black; can be repeated.")
    ] = None,
    one_hot: Annotated[
        Many, _of_data(about="0/1 columns that form one grouping: race=race_black,race_white; can be repeated.")
    ] = None,
    metrics: Annotated[
        Many, _of_data(about="Metric to compute; can be repeated (default: all that the data allow).")
    ] = None,
    favourable: Annotated[
        Text,
        _of_data(
            about="Which side is good for the person: selected (a loan) or not_selected (a risk flag); of --numbers "
            "higher or lower."
        ),
    ] = None,
    id_column: Annotated[
        Text, _of_data("--id", about="Column that identifies a person; values must be unique.")
    ] = None,
    selected_word: Annotated[
        Text, _of_data(about="Verb for what the model does to a person it selects: flags, refuses.")
    ] = None,
    people: Annotated[Text, _of_data(about="Noun for the rows in findings: households, applicants.")] = None,
    weight: Annotated[Text, _of_data(about="Column of survey weights.")] = None,
    count: Annotated[Text, _of_data(about="Column that says how many people each row stands for.")] = None,
    cluster: Annotated[
        Text, _of_data(about="Column of what rows have in common: a person, a household, a judge.")
    ] = None,
    within: Annotated[Many, _of_data(about="Column of a legitimate factor to compare within.")] = None,
    require: Annotated[
        Many, _of_data(about="A threshold: 'selection_rate>=0.8' (ratio) or 'tpr<=0.1' (difference); can be repeated.")
    ] = None,
    drop_missing: Annotated[
        bool, _of_data("--drop-missing", about="Drop rows with a missing outcome or score.")
    ] = False,
    decimal: Annotated[Text, _of_data(about="Decimal sign of a CSV file: '.' (default) or ','.")] = None,
    encoding: Annotated[
        Text, _of_data(about="Encoding of a CSV file: utf-8, latin-1 or utf-16 (default: guessed).")
    ] = None,
    delimiter: Annotated[
        Text, _of_data(about="Field separator of a CSV file (default: guessed from the first line).")
    ] = None,
    missing_values: Annotated[
        Many, _of_data(about="A code for a missing value in a CSV file, such as NA or -9; can be repeated.")
    ] = None,
    memory_limit: Annotated[
        Text, _of_data(about="Memory that DuckDB may use, such as 4GB; the rest goes into temporary files.")
    ] = None,
) -> int:
    """Audit a system: summary on the terminal, report.html and results.json in a folder.

    `evenhand audit audit.toml` runs a file written by `evenhand init`.

    `evenhand audit data.csv --outcome y --groups race --scores risk` audits a table directly.
    """
    _require_check(check, strict, _is_toml(target) or bool(require))
    for_data = {
        "profile": profile,
        "outcome": outcome,
        "positive": positive,
        "groups": groups,
        "scores": scores,
        "decisions": decisions,
        "numbers": numbers,
        "tolerance": tolerance,
        "threshold": threshold,
        "range": score_range,
        "selected": selected,
        "cuts": cuts,
        "labels": labels,
        "one-hot": one_hot,
        "metrics": metrics,
        "favourable": favourable,
        "id": id_column,
        "selected-word": selected_word,
        "people": people,
        "weight": weight,
        "count": count,
        "cluster": cluster,
        "within": within,
        "require": require,
        "drop-missing": drop_missing or None,
        "decimal": decimal,
        "encoding": encoding,
        "delimiter": delimiter,
        "missing-values": missing_values,
        "memory-limit": memory_limit,
    }
    silent = quiet or json
    with progress(silent) as clock:
        result = _run(target, for_data, seed, allow_code, plan)
        over = (
            []
            if seeds is None
            else _over_seeds(
                result,
                range(first := _first_seed(result, seed), first + seeds),
                partial(_run, target, for_data, allow_code=allow_code, plan=None),
            )
        )
        files = result.save(out_folder, listed_formats(formats))
        if plan is not None:
            _keep_plan(plan, out_folder)
    if json:
        print_json(result.to_json())
    if not silent:
        _print_result(result, files)
        for line in over:
            print_line(line)
    if timings:
        print_timings(clock, err if silent else out)
    return _checked(result.findings, strict, quiet) if check else FINE


def _first_seed(result: Audit, seed: int | None) -> int:
    return seed if seed is not None else min((spec.seed for spec in result.config.audits.values()), default=0)


def _over_seeds(result: Audit, seeds: Sequence[int], run: Callable[..., Audit]) -> list[str]:
    """Run the audit with each seed; return summary lines on the range of its findings."""
    from evenhand.evidence.seeds import over_seeds, summary

    return summary(over_seeds(result.findings, [run(seed=seed).findings for seed in seeds]), seeds)


def _require_check(check: bool, strict: bool, has_thresholds: bool) -> None:
    if strict and not check:
        raise ConfigError("--strict needs --check; give both.")
    if check and not has_thresholds:
        raise ConfigError(_NO_THRESHOLDS)


def _print_result(result: Audit, files: Mapping[str, Path]) -> None:
    print_summary(result)
    written = {name: path for name, path in files.items() if name not in ("results.json", "run.json")}
    tables = [path for name, path in written.items() if name.startswith("table-")]
    reports = [str(path) for path in written.values() if path not in tables]
    print_line("\nReport: ", ", ".join(reports) or str(files["results.json"]))
    if tables:
        where = tables[0] if len(tables) == 1 else tables[0].parent / "table-*.csv"
        print_line("Tables too long for the page: ", str(where))


def _keep_plan(plan: Path, folder: Path) -> None:
    """Copy the plan into the results folder, where `verify` and `pack` look for it."""
    from evenhand.core.files import write_files

    write_files(folder, {"plan.json": plan.read_bytes()})


def _is_toml(target: str) -> bool:
    return target.lower().endswith(".toml")


def _run(target: str, for_data: Mapping[str, Any], seed: int | None, allow_code: bool, plan: Path | None) -> Audit:
    """Run an audit.toml, or the first applicable audit of a data file."""
    from evenhand import audit as run_audit
    from evenhand.audits import DEFAULT
    from evenhand.core.progress import step, timed

    if _is_toml(target):
        _refuse_data_options(for_data)
        return run_audit(target, seed=seed, allow_code=allow_code, plan=plan)
    limits = [_limit(text) for text in for_data["require"] or ()]
    with error_messages_for(COMMAND):
        with timed() as clock, clock.timing("read"):
            step(f"Reading {target}")
            table = _table(target, for_data)
        within, metrics = (_split_columns(for_data[name] or (), table.kinds) for name in ("within", "metrics"))
        settings = {"within": within, "metrics": metrics or None, "tolerance": for_data["tolerance"]}
        sections: dict[str, Any] = {DEFAULT: settings}
        report = {"profile": _split_columns(for_data["profile"] or (), ())}
        return run_audit(table, seed=seed, plan=plan, thresholds=limits, report=report, **sections)


def _limit(text: str) -> dict[str, Any]:
    """Parse a threshold such as 'selection_rate>=0.8'."""
    for sign, side in ((">=", "min"), ("<=", "max")):
        metric, separator, limit = text.partition(sign)
        if separator:
            try:
                return {"metric": metric.strip(), side: float(limit)}
            except ValueError:
                break
    raise ConfigError(
        "--require got {text!r}; write a metric, >= or <=, and a number, such as 'selection_rate>=0.8'.", text=text
    )


def _checked(findings: Sequence[Finding], strict: bool, quiet: bool) -> int:
    if not any(finding.threshold for finding in findings):
        raise ConfigError(_NO_THRESHOLDS)
    verdicts = [finding.verdict for finding in findings if finding.threshold]
    verdict_count = f"{count(len(verdicts), 'comparison')} with a threshold"
    if broken := verdicts.count("does_not_meet"):
        if not quiet:
            err.print(f"Check: {broken} of {verdict_count} {'does' if broken == 1 else 'do'} not meet it.")
        return BROKEN
    if strict and (undecided := len(verdicts) - verdicts.count("meets")):
        if not quiet:
            err.print(f"Check: for {undecided} of {verdict_count} the data cannot tell.")
        return UNDECIDED
    return FINE


def _refuse_data_options(options: Mapping[str, Any]) -> None:
    names = [f"--{name}" for name, value in options.items() if value is not None]
    if names:
        are = "is" if len(names) == 1 else "are"
        raise ConfigError(
            "{names} {are} for a data file; write it into the .toml instead.", names=", ".join(names), are=are
        )


def _file_options(options: Mapping[str, Any]) -> FileOptions:
    from evenhand.table.sources import FileOptions

    given_options = {
        "decimal": options["decimal"] or ".",
        "encoding": options["encoding"],
        "delimiter": options["delimiter"],
        "missing_values": ("", *(options["missing-values"] or ())),
        "memory_limit": options["memory-limit"],
    }
    return FileOptions.parse(given_options, "the options of the file")


def _table(path: str, options: Mapping[str, Any]) -> Table:
    from evenhand import Table
    from evenhand.table.sources import open_source

    reading = _file_options(options)
    if not options["groups"] or not any(options[kind] for kind in ("scores", "decisions", "numbers")):
        open_source(path, reading, ())  # a missing file is reported first
        raise ConfigError(
            "to audit a data file name its columns with --groups and --scores, --decisions or --numbers (and "
            "--outcome); or write an audit.toml with: evenhand init {path}",
            path=path,
        )
    one_hot = dict(_family(text) for text in options["one-hot"] or ())
    columns = [*open_source(path, reading, ()).names, *one_hot]
    return Table(
        path,
        outcome=options["outcome"],
        positive=options["positive"],
        groups=[
            group if group in columns else _split_intersection(group)
            for group in _split_columns(options["groups"], columns)
        ],
        cuts=dict(_cut_points(text) for text in options["cuts"] or ()),
        labels=_labels(options["labels"] or ()),
        one_hot=one_hot,
        predictions=_predictions(options, columns),
        id=options["id"],
        selected_word=options["selected-word"],
        people=options["people"],
        weight=options["weight"],
        count=options["count"],
        cluster=options["cluster"],
        favourable=options["favourable"],
        missing="drop" if options["drop-missing"] else "error",
        **reading.model_dump(exclude={"types_from_all_rows"}),
    )


def _split_columns(texts: Sequence[str], columns: Collection[str]) -> list[str]:
    """Split an option into columns at commas, unless a column has the whole text as its name."""
    return [part.strip() for text in texts for part in ([text] if text in columns else text.split(","))]


def _split_intersection(group: str) -> str | list[str]:
    """Split an intersection such as `race+sex` into columns; other names are a single column."""
    return group.split("+") if "+" in group else group


def _predictions(options: Mapping[str, Any], columns: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the settings of each prediction, by name."""
    predictions: dict[str, dict[str, Any]] = {}
    for name, settings in _each_prediction(options, columns):
        if name in predictions:
            raise ConfigError(
                "two predictions are called {name!r}; name one of them otherwise, as in other={name}.", name=name
            )
        predictions[name] = settings
    return predictions


def _each_prediction(options: Mapping[str, Any], columns: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    threshold: dict[str, Any] = {} if options["threshold"] is None else {"threshold": options["threshold"]}
    if options["range"] is not None:
        threshold["range"] = _numbers("--range", options["range"], "two numbers such as 1,10", exactly=2)
    selected = {} if options["selected"] is None else {"selected": options["selected"]}
    for text in _split_columns(options["scores"] or (), columns):
        name, column = _named(text)
        yield name, {"column": column, "kind": "score", **threshold}
    for text in _split_columns(options["decisions"] or (), columns):
        name, column = _named(text)
        yield name, {"column": column, "kind": "decision", **selected}
    for text in _split_columns(options["numbers"] or (), columns):
        name, column = _named(text)
        yield name, {"column": column, "kind": "number"}


def _named(text: str) -> tuple[str, str]:
    name, sign, column = text.partition("=")
    return (name, column) if sign else (text, text)


def _cut_points(text: str) -> tuple[str, list[float]]:
    column, sign, points = text.partition("=")
    if not sign:
        raise ConfigError("--cuts got {text!r}; write a column and its cut points, such as age=25,45,65.", text=text)
    return column, _numbers("--cuts", points, "numbers such as age=25,45,65")


def _family(text: str) -> tuple[str, list[str]]:
    family, sign, members = text.partition("=")
    if not sign:
        raise ConfigError(
            "--one-hot got {text!r}; write a name and its columns of 0 and 1, such as race=race_black,race_white.",
            text=text,
        )
    return family, [member.strip() for member in members.split(",")]


def _labels(texts: Sequence[str]) -> dict[str, dict[str, str]]:
    """Parse group labels such as 'black:0=not Black,1=Black'; a column may occur several times."""
    labels: dict[str, dict[str, str]] = {}
    for text in texts:
        column, colon, names = text.partition(":")
        named = [part.partition("=") for part in names.split(",")]
        if not colon or not all(sign and label.strip() for _, sign, label in named):
            raise ConfigError(
                "--labels got {text!r}; write a column, a colon, and its values with their names, such as "
                "'black:0=not Black,1=Black'.",
                text=text,
            )
        labels.setdefault(column, {}).update({value.strip(): label.strip() for value, _, label in named})
    return labels


def _numbers(option: str, text: str, wanted: str, exactly: int | None = None) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or exactly not in (None, len(numbers)):
        raise ConfigError("{option} got {text!r}; write {wanted}.", option=option, text=text, wanted=wanted)
    return numbers
