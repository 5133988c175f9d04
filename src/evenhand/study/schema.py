"""The tidy schema of answers: one row per judged item, with the same columns for every kind of study.

It also contains functions that read a study's tables.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenhand.core.csv_text import unmarked
from evenhand.errors import ConfigError, DataError, EvenhandError, count, did_you_mean, require_choice
from evenhand.table.engines import require_few_rows
from evenhand.table.keys import label_of, shown, yes_or_no
from evenhand.table.sources import engine_errors, fetch, open_source

Kind = Literal["effort", "disagreement"]
"""The kind of a study, named after the audit of its answers."""
KINDS: tuple[Kind, ...] = ("effort", "disagreement")
Values = npt.NDArray[Any]
"""A column: floats with nan for missing values, or texts (objects) with None for missing values."""

SCALE = ("Very similar", "Similar", "Slightly similar", "Slightly different", "Different", "Very different")
FACTORS = ("trajectory", "aggregate", "other")
FEEDBACK = ("agree", "disagree", "too_high", "too_low")

_TICKED = ("x",)
"""Survey tools' values for a ticked box, in addition to the words for yes of every table."""


@dataclass(frozen=True)
class Column:
    """A column of the schema.

    Parameters
    ----------
    name, description : its name and contents.
    type : 'text', 'number', 'yes_no' (1 or 0), 'scale' (1 to the number of points) or 'share' (0 to 1).
    level : whether it belongs to a person or to one answer.
    kind : the kind of study it belongs to; None for both.
    """

    name: str
    description: str
    type: Literal["text", "number", "yes_no", "scale", "share"]
    level: Literal["person", "answer"]
    kind: Kind | None = None


COLUMNS: tuple[Column, ...] = (
    Column("participant", "Who answered.", "text", "person"),
    Column("condition", "The condition the person was in, such as income or arrests.", "text", "person"),
    Column("language", "The language the person read.", "text", "person"),
    Column("started", "When the person began: date and time in UTC, to the minute.", "text", "person"),
    Column("duration", "Seconds from the first page to the last.", "number", "person"),
    Column("finished", "Whether the person reached the end.", "yes_no", "person"),
    Column("checks_passed", "Attention checks passed.", "number", "person"),
    Column("checks_total", "Attention checks seen.", "number", "person"),
    Column("item", "The set (effort) or the case (disagreement) that was judged.", "text", "answer"),
    Column("position", "Place of the item in the person's own order, from 1.", "number", "answer"),
    Column("seconds", "Seconds spent on this answer; missing after a break of over half an hour.", "number", "answer"),
    Column("reason", "Why the person answered so, in their words.", "text", "answer"),
    Column("subject", "Who of the set was compared with K: A, B, C or D.", "text", "answer", "effort"),
    Column("trajectory", "Trajectory distance, 1 for most similar.", "scale", "answer", "effort"),
    Column("aggregate", "Aggregate distance, 1 for most similar.", "scale", "answer", "effort"),
    Column("overall", "Overall distance, 1 for most similar.", "scale", "answer", "effort"),
    Column("factor_trajectory", "Whether trajectory was ticked as a factor.", "yes_no", "answer", "effort"),
    Column("factor_aggregate", "Whether the aggregate was ticked as a factor.", "yes_no", "answer", "effort"),
    Column("factor_other", "Whether another factor was ticked.", "yes_no", "answer", "effort"),
    Column("factor_text", "The other factor in the person's words.", "text", "answer", "effort"),
    Column("predicted", "Share of others predicted to call the pair similar.", "share", "answer", "effort"),
    Column("risk_reference", "The risk score shown for K.", "share", "answer", "effort"),
    Column("risk", "The risk score the person finds fair for the other.", "share", "answer", "effort"),
    Column("decision", "What the system decided on the case.", "text", "answer", "disagreement"),
    Column("answer", "agree, disagree, too_high or too_low.", "text", "answer", "disagreement"),
)
"""The schema. Additional columns are kept, as a person's if constant within each person, else as an answer's."""

BY_NAME = {column.name: column for column in COLUMNS}
REQUIRED: dict[Kind, tuple[str, ...]] = {
    "effort": ("participant", "item", "subject", "trajectory", "aggregate", "overall"),
    "disagreement": ("participant", "item", "decision", "answer"),
}


def kind_of(given: object, name: str = "kind") -> Kind:
    """Return a value as a kind of study; raise if it is unknown.

    Examples
    --------
    >>> kind_of("effort")
    'effort'
    """
    require_choice(name, given, KINDS)
    return "effort" if given == "effort" else "disagreement"


def columns_of(kind: Kind) -> tuple[Column, ...]:
    """Return the columns of a kind of study.

    Examples
    --------
    >>> [column.name for column in columns_of("disagreement")][-2:]
    ['decision', 'answer']
    """
    return tuple(column for column in COLUMNS if column.kind in (None, kind))


def as_text(values: Iterable[Any]) -> Values:
    """Return values as texts without outer blanks; None for missing or empty values.

    Examples
    --------
    >>> as_text([1.0, " a ", "", None, float("nan")]).tolist()
    ['1', 'a', None, None, None]
    """
    known = _each(values, lambda value: label_of(value).strip() or None)
    return np.array(known, dtype=object)


def as_column(column: Column, values: Iterable[Any], points: int, where: str) -> Values:
    """Return values converted to the type of a column; a `DataError` names invalid values."""
    if column.type == "text":
        return as_text(values)
    parse, rule = {
        "yes_no": (_yes_no, "must hold yes or no (1 or 0)"),
        "scale": (partial(_whole, points), f"must hold whole numbers from 1 to {points}"),
        "share": (
            partial(_between, 1.0),
            "must hold shares between 0 and 1 (name columns of percentages in `percent`)",
        ),
        "number": (partial(_between, np.inf), "must hold numbers of 0 or more"),
    }[column.type]
    return _checked(column, list(values), parse, rule, where)


def _checked(column: Column, values: list[Any], parse: Any, rule: str, where: str) -> Values:
    parsed = _each(values, parse)
    wrong = [label_of(v) for v, number in zip(values, parsed, strict=True) if number is None and not _gone(v)]
    if wrong:
        examples = shown(sorted(set(wrong)), 3)
        raise DataError(
            "{name!r} in {where} {rule}; not so in {rows}: {examples}.",
            name=column.name,
            where=where,
            rule=rule,
            rows=count(len(wrong), "row"),
            examples=examples,
        )
    return np.array([np.nan if number is None else number for number in parsed], dtype=np.float64)


def _each(values: Iterable[Any], parse: Callable[[Any], Any]) -> list[Any]:
    """Apply a parser once to each distinct value."""
    listed = [None if _gone(value) else value for value in values]
    parsed = {value: parse(value) for value in set(listed) if value is not None}
    return [None if value is None else parsed[value] for value in listed]


def _gone(value: object) -> bool:
    return (
        value is None or (isinstance(value, float) and value != value) or (isinstance(value, str) and not value.strip())
    )


def _number(value: object) -> float | None:
    try:
        number = float(str(value).strip().removesuffix("%"))
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _between(high: float, value: object) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= high else None


def _whole(points: int, value: object) -> float | None:
    number = _between(points, value)
    return number if number is not None and number >= 1 and number == int(number) else None


def _yes_no(value: object) -> float | None:
    answer = label_of(value).strip().lower() in _TICKED or yes_or_no(value)
    return None if answer is None else float(answer)


def read_columns(data: Any) -> tuple[dict[str, list[Any]], str | None]:
    """Return a table's columns as lists with None for missing values; CSV files are read as text."""
    if isinstance(data, str | os.PathLike) and Path(data).suffix.lower() in {".csv", ".tsv", ".txt"}:
        return read_csv(Path(data)), None
    source = open_source(data)
    with engine_errors():
        require_few_rows(source.frame)
        return fetch(source.frame), source.backend


def read_csv(path: Path) -> dict[str, list[Any]]:
    """Read a CSV file as text, in UTF-8 with or without a byte-order mark, or else Windows-1252."""
    rows = _csv_rows(path)
    if not rows:
        raise DataError("'{path}' is empty.", path=path)
    header, body = [unmarked(name) for name in rows[0]], rows[1:]
    repeated = sorted(name for name in set(header) if header.count(name) > 1)
    if repeated:
        raise DataError(
            "'{path}' has more than one column {repeated!r}; rename one of them.", path=path, repeated=repeated[0]
        )
    for line, row in enumerate(body, 2):
        if len(row) != len(header):
            raise DataError(
                "line {line} of '{path}' has {fields} fields where the header has {columns}.",
                line=line,
                path=path,
                fields=len(row),
                columns=len(header),
            )
    return {name: [unmarked(row[position]) or None for row in body] for position, name in enumerate(header)}


def _csv_rows(path: Path) -> list[list[str]]:
    """Return the non-empty rows of a file; the delimiter is a tab if the header has more tabs than commas."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError("'{path}' could not be read: {why}.", path=path, why=error.strerror or error) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    header = text.split("\n", 1)[0]
    delimiter = "\t" if header.count("\t") > header.count(",") else ","
    try:
        return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    except csv.Error as error:
        raise DataError("'{path}' could not be read as CSV: {error}.", path=path, error=error) from None


def require_known(
    names: Iterable[str],
    known: Collection[str],
    sentence: str,
    error: type[EvenhandError] = ConfigError,
    **args: object,
) -> None:
    """Raise for the first unknown name; the message has the name for {name}, followed by a hint.

    `args` are further arguments of the message.

    Examples
    --------
    >>> require_known(["item", "labl"], ["item", "label"], "there is no column {name}")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: there is no column 'labl'; did you mean 'label'?
    """
    for name in names:
        if name not in known:
            template = sentence.replace("{name}", "{name!r}") + "; {hint}"
            raise error(template, name=name, hint=did_you_mean(name, known), **args)


def save_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text unchanged to a file; return its path."""
    target = Path(path)
    try:
        target.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise ConfigError("'{target}' cannot be written: {why}.", target=target, why=error.strerror or error) from error
    return target
