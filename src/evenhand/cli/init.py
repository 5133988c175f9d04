"""`evenhand init`: look at a table, propose roles, write a commented audit.toml that runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.console import FINE, print_line
from evenhand.cli.propose import Proposal, cut_points, is_risk, propose
from evenhand.errors import ConfigError
from evenhand.table.files import FileOptions
from evenhand.table.profile import ColumnProfile, profile


def init(
    data: Annotated[str, typer.Argument(help="A CSV, Parquet or JSON file (a glob in quotes).")],
    path: Annotated[Path, typer.Option("--out", "-o", help="Where to write the audit.toml.")] = Path("audit.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    decimal: Annotated[str, typer.Option(help="Decimal sign of a CSV file: '.' or ','.")] = ".",
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of a CSV file: utf-8, latin-1 or utf-16 (default: guessed).")
    ] = None,
) -> int:
    """Look at a table, guess what its columns mean, and write a commented audit.toml that runs as it is.

    Read what it guessed before you trust a number: only you know what the columns mean.
    """
    if path.exists() and not force:
        raise ConfigError(f"'{path}' exists already; give --force to overwrite it, or another name with --out.")
    options = FileOptions.parse({"decimal": decimal, "encoding": encoding}, "the options of the command")
    columns = profile(data, options)
    found = propose(columns)
    _require_roles(data, found, columns)
    text = "\n".join(_toml(_relative(data, path), options, found, columns)) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be written: {error.strerror or error}.") from error
    print_line(f"Wrote {path}")
    for role, value in _told(found):
        print_line(f"  {role:<12}{value}")
    print_line(f"Check these roles, then: evenhand audit {path}")
    return FINE


def _require_roles(data: str, found: Proposal, columns: list[ColumnProfile]) -> None:
    lacking = [] if found.scores or found.decisions else ["a score or a decision"]
    lacking += [] if found.groups else ["a group"]
    if lacking:
        names = ", ".join(column.name for column in columns[:30])
        raise ConfigError(
            f"no column of '{data}' looks like {', or like '.join(lacking)}; name the columns yourself, for example: "
            f"evenhand audit {data} --groups COLUMN --scores COLUMN (columns: {names})"
        )


def _relative(data: str, path: Path) -> str:
    """Return the data's path as seen from the audit.toml, which is where it is looked up."""
    return Path(os.path.relpath(data, path.parent)).as_posix()


def _told(found: Proposal) -> Iterator[tuple[str, str]]:
    yield "id", found.id or "none found"
    yield "outcome", found.outcome.name if found.outcome else "none found: error rates need one"
    yield "groups", ", ".join(column.name for column in found.groups)
    yield "scores", ", ".join(column.name for column in found.scores) or "none found"
    yield "decisions", ", ".join(column.name for column in found.decisions) or "none found"
    if found.weight:
        yield "weight", found.weight
    if found.drops_rows:
        yield "missing", "drop: some rows have no outcome or prediction; they are dropped and counted"


def _text(value: object) -> str:
    """Return a TOML string; JSON's quoting is TOML's for every text."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(source: str, options: FileOptions, found: Proposal, columns: list[ColumnProfile]) -> Iterator[str]:
    yield "# What evenhand guessed from the data. Check every role: only you know what the columns mean."
    yield "# Run it with evenhand audit and the name of this file."
    yield ""
    yield "[data]"
    yield f"source = {_text(source)}    # a CSV, Parquet or JSON file, or a glob; seen from this file's folder"
    if options.decimal != ".":
        yield f"decimal = {_text(options.decimal)}"
    if options.encoding:
        yield f"encoding = {_text(options.encoding)}"
    if found.id:
        yield f"id = {_text(found.id)}    # identifies a person; must not repeat"
    if found.outcome:
        yield f"outcome = {_text(found.outcome.name)}    # what really happened"
        yield "# positive = 1    # the outcome's value that counts as positive (default: 1, true, yes)"
    else:
        yield '# outcome = "..."    # what really happened: error rates and calibration need it'
    groups = [_text(column.name) for column in found.groups]
    if len(groups) > 1:
        groups.append(f"[{groups[0]}, {groups[1]}]")
    yield f"groups = [{', '.join(groups)}]    # a list inside the list is an intersection"
    cuts = {column.name: cut_points(column) for column in found.groups}
    inner = ", ".join(f"{_text(name)} = {points}" for name, points in cuts.items() if points)
    if inner:
        yield f"cuts = {{ {inner} }}    # numeric groups: under the first cut, between cuts, the last and over"
    yield (
        f"weight = {_text(found.weight)}    # survey weight"
        if found.weight
        else '# weight = "..."    # survey weight, if any'
    )
    side = "not_selected" if is_risk(c.name for c in (*found.scores, *found.decisions)) else "selected"
    yield f"favourable = {_text(side)}    # is being selected good for the person ('selected') or bad ('not_selected')?"
    rows = _text("drop" if found.drops_rows else "error")
    yield f"missing = {rows}    # rows without outcome or prediction: 'error' or 'drop' (counted)"
    yield ""
    yield from _predictions(found)
    yield "[parity]"
    yield '# metrics = ["selection_rate", "tpr", "fpr"]    # default: all that the data allows'
    yield '# within = ["..."]    # a legitimate factor: compare like with like'
    yield '# reference = "..."    # default: the largest group'
    yield "# min_count = 10    # smaller groups are listed but left out of gaps"
    yield ""
    yield "# Thresholds are yours. With --check, a broken one makes the command fail."
    yield "# [[thresholds]]"
    yield '# metric = "selection_rate"'
    yield "# min = 0.8    # smallest ratio between two groups; or max = 0.1 for the largest difference"
    yield ""
    yield "# [report]"
    yield '# title = "Fairness audit"'
    yield '# system = "..."'
    yield '# auditor = "..."'
    unused = [column.name for column in columns if column.name not in _used(found)]
    if unused:
        yield ""
        yield f"# Columns not used: {', '.join(_text(name) for name in unused)}"


def _predictions(found: Proposal) -> Iterator[str]:
    for column in found.scores:
        low, high = column.low or 0.0, column.high or 0.0
        yield f"[data.predictions.{_text(column.name)}]"
        yield f"column = {_text(column.name)}"
        yield 'kind = "score"'
        if low < 0 or high > 1:
            ends = f"{_number(low)}, {_number(high)}"
            yield f"range = [{ends}]    # lowest and highest possible score: seen in the data, check it"
            yield f"threshold = {_number((low + high) / 2)}    # selected when the score is above it: check it"
        else:
            yield "threshold = 0.5    # selected when the score is above it"
        yield ""
    for column in found.decisions:
        yield f"[data.predictions.{_text(column.name)}]"
        yield f"column = {_text(column.name)}"
        yield 'kind = "decision"'
        yield ""


def _number(value: float) -> str:
    """Return a number without losing a digit: a range must hold every score seen."""
    return str(int(value)) if value.is_integer() else repr(value)


def _used(found: Proposal) -> set[str | None]:
    named = {column.name for column in (*found.groups, *found.scores, *found.decisions)}
    return named | {found.id, found.weight, found.outcome.name if found.outcome else None}
