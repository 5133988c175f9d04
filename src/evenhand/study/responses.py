"""Responses: what people answered, in one tidy schema for both kinds of study; our own export and its reader."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import ConfigError, DataError, count, did_you_mean, require_choice
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.study.schema import (
    BY_NAME,
    FEEDBACK,
    KINDS,
    REQUIRED,
    SCALE,
    Column,
    Kind,
    Values,
    as_column,
    as_text,
    columns_of,
)
from evenhand.table.frames import build_frame
from evenhand.table.keys import shown
from evenhand.table.sources import engine_errors, fetch, open_source

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class ExclusionRecord:
    """People left out by one rule.

    Parameters
    ----------
    rule, limit : the rule by name, and in words.
    people, rows : how many people it took out, and their answers.
    broken : how many people broke it in all; some had been taken out by an earlier rule.
    participants : who they were.
    """

    rule: str
    limit: str
    people: int
    rows: int
    broken: int
    participants: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Responses:
    """The answers of a study.

    Parameters
    ----------
    kind : 'effort' (people compare pairs) or 'feedback' (people agree with decisions or not).
    people : one entry a person: the columns of the schema that belong to people, and any others.
    answers : one entry an answer; `person` says whose.
    points : how many points the scale of similarity has.
    excluded : who was left out, by rule.
    notes : what a reader should know of how they were read.
    backend : the data-frame library that `to_frame` answers in.

    Examples
    --------
    >>> rows = {"participant": ["p1", "p1", "p2"], "item": ["1", "1", "1"], "subject": ["A", "B", "A"],
    ...         "trajectory": [1, 5, 2], "aggregate": [2, 2, 1], "overall": [1, 4, 2]}
    >>> responses = read_responses(rows)
    >>> responses
    <Responses: effort, 2 people, 3 answers>
    """

    kind: Kind
    people: Mapping[str, Values]
    answers: Mapping[str, Values]
    points: int = len(SCALE)
    excluded: tuple[ExclusionRecord, ...] = ()
    notes: tuple[str, ...] = ()
    backend: str | None = field(default=None)

    @property
    def person(self) -> IntArray:
        """Whose answer each answer is: places in `people`."""
        return np.asarray(self.answers["person"], dtype=np.int64)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions, sorted; one empty name where the study has none."""
        return tuple(sorted({str(name or "") for name in self.people["condition"]}))

    def condition_of_rows(self) -> Values:
        """Return the condition of every answer."""
        return np.array([str(name or "") for name in self.people["condition"]], dtype=object)[self.person]

    def numbers(self, name: str) -> FloatArray:
        """Return a column of numbers, one an answer; all nan where the study did not ask."""
        values = self.answers.get(name)
        return np.full(len(self.person), np.nan) if values is None else np.asarray(values, dtype=np.float64)

    def output(self) -> FloatArray:
        """Return the output distance of each pair: how far the risk found fair is from that of K."""
        return np.abs(self.numbers("risk") - self.numbers("risk_reference"))

    def pairs(self) -> Values:
        """Return what each answer is about as one text: condition, item and subject."""
        subject = self.answers.get("subject")
        parts = [self.condition_of_rows(), self.answers["item"], *([] if subject is None else [subject])]
        return np.array(["/".join(str(part) for part in row) for row in zip(*parts, strict=True)], dtype=object)

    def keep(self, people: BoolArray, excluded: tuple[ExclusionRecord, ...] = ()) -> Responses:
        """Return the responses of some of the people."""
        rows = people[self.person]
        place = np.cumsum(people) - 1
        answers = {name: values[rows] for name, values in self.answers.items()}
        answers["person"] = place[self.person[rows]]
        kept = {name: values[people] for name, values in self.people.items()}
        return replace(self, people=kept, answers=answers, excluded=(*self.excluded, *excluded))

    def to_columns(self) -> dict[str, Values]:
        """Return the tidy table: one row an answer, and one with an empty item for who answered nothing."""
        silent = np.setdiff1d(np.arange(len(self.people["participant"])), self.person)
        who = np.concatenate([self.person, silent])
        order = np.argsort(who, kind="stable")
        columns = {name: values[who][order] for name, values in self.people.items()}
        for name, values in self.answers.items():
            if name != "person":
                gap = np.full(len(silent), np.nan) if values.dtype.kind == "f" else np.full(len(silent), None)
                columns[name] = np.concatenate([values, gap])[order]
        known = [column.name for column in columns_of(self.kind) if column.name in columns]
        return {name: columns[name] for name in [*known, *(name for name in columns if name not in known)]}

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the tidy table as a data frame."""
        columns = {name: _with_gaps(values) for name, values in self.to_columns().items()}
        return build_frame(columns, backend or self.backend)

    def to_csv(self) -> str:
        """Return our own export: the tidy table as CSV, an apostrophe before text that a spreadsheet would run."""
        return write_csv(self.to_columns())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write our own export to a file."""
        target = Path(path)
        try:
            target.write_text(self.to_csv(), encoding="utf-8", newline="")
        except OSError as error:
            raise ConfigError(f"'{target}' cannot be written: {error.strerror or error}.") from error
        return target

    def __repr__(self) -> str:
        people, rows = len(self.people["participant"]), len(self.person)
        return f"<Responses: {self.kind}, {count(people, 'person', 'people')}, {count(rows, 'answer')}>"


def read_responses(data: Any, kind: Kind | None = None, *, points: int = len(SCALE)) -> Responses:
    """Read our own export, or any table whose columns are named as in the schema.

    Parameters
    ----------
    data : a data frame, a mapping of columns, or the path of a CSV, Parquet or JSON file.
    kind : 'effort' or 'feedback'; by default what the columns say.
    points : how many points the scale of similarity has.

    Examples
    --------
    >>> import evenhand as eh
    >>> feedback = {"participant": ["c1", "c1"], "item": ["7", "9"], "decision": ["high", "low"],
    ...             "answer": ["agree", "disagree"]}
    >>> eh.study.read_responses(feedback).kind
    'feedback'
    """
    columns, backend = read_columns(data)
    if kind is None:
        kind = "feedback" if {"decision", "answer"} <= columns.keys() else "effort"
    return build_responses(columns, kind, points=points, where="the responses", backend=backend)


def read_columns(data: Any) -> tuple[dict[str, list[Any]], str | None]:
    """Return a table's columns as lists with None for gaps; a CSV file is read as text, so that nothing is guessed."""
    if isinstance(data, str | os.PathLike) and Path(data).suffix.lower() in {".csv", ".tsv", ".txt"}:
        return read_csv(Path(data)), None
    source = open_source(data)
    with engine_errors():
        return fetch(source.frame), source.backend


def read_csv(path: Path) -> dict[str, list[Any]]:
    """Read a CSV file as text; UTF-8 with or without a mark, else Windows-1252."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"'{path}' could not be read: {error.strerror or error}.") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    delimiter = "\t" if text.split("\n", 1)[0].count("\t") > text.split("\n", 1)[0].count(",") else ","
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    except csv.Error as error:
        raise DataError(f"'{path}' could not be read as CSV: {error}.") from None
    if not rows:
        raise DataError(f"'{path}' is empty.")
    header, body = [_unmarked(name) for name in rows[0]], rows[1:]
    repeated = {name for name in header if header.count(name) > 1}
    if repeated:
        raise DataError(f"'{path}' has more than one column {sorted(repeated)[0]!r}; rename one of them.")
    short = next((number for number, row in enumerate(body, 2) if len(row) != len(header)), None)
    if short is not None:
        raise DataError(
            f"line {short} of '{path}' has {len(body[short - 2])} fields where the header has {len(header)}."
        )
    return {name: [_unmarked(row[place]) or None for row in body] for place, name in enumerate(header)}


def write_csv(columns: Mapping[str, list[Any] | Values]) -> str:
    r"""Return columns as CSV, an apostrophe before text that a spreadsheet would run; `read_csv` takes it away again.

    Examples
    --------
    >>> write_csv({"reason": ["=1+1", None], "n": [1.0, 2.5]})
    "reason,n\n'=1+1,1\n,2.5\n"
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_safe(name) for name in columns])
    writer.writerows(zip(*([_cell(value) for value in values] for values in columns.values()), strict=True))
    return out.getvalue()


def build_responses(
    columns: Mapping[str, list[Any] | Values],
    kind: Kind,
    *,
    points: int = len(SCALE),
    where: str,
    notes: tuple[str, ...] = (),
    backend: str | None = None,
) -> Responses:
    """Check the columns of a tidy table and split them into people and answers, both in one canonical order."""
    require_choice("kind", kind, KINDS)
    missing = [name for name in REQUIRED[kind] if name not in columns]
    if missing:
        raise DataError([f"{where} has no column {name!r}; {did_you_mean(name, columns)}" for name in missing])
    typed = {name: _typed(name, values, points, where) for name, values in columns.items()}
    nobody = np.array([name is None for name in typed["participant"]])
    if nobody.any():
        raise DataError(f"'participant' in {where} is empty in {count(int(nobody.sum()), 'row')}; every row needs one.")
    names, who = np.unique(typed["participant"].astype(str), return_inverse=True)
    personal = _personal(typed, who, len(names), where)
    first = np.full(len(names), -1)
    first[who[::-1]] = np.arange(len(who))[::-1]
    people = {name: typed[name][first] for name in personal if name != "participant"}
    people = {"participant": names.astype(object), "condition": np.full(len(names), None), **people}
    rows = np.flatnonzero([item is not None for item in typed["item"]])
    parts = [typed[name] for name in ("subject", "item") if name in typed]
    order = rows[np.lexsort([*(part[rows].astype(str) for part in parts), who[rows]])]
    answers = {"person": who[order], **{name: v[order] for name, v in typed.items() if name not in personal}}
    found = Responses(kind, people, answers, points, notes=notes, backend=backend)
    _check_answers(found, where)
    return found


def _typed(name: str, values: list[Any] | Values, points: int, where: str) -> Values:
    if name in BY_NAME:
        return as_column(BY_NAME[name], values, points, where)
    array = np.asarray(values)
    return array.astype(np.float64) if array.dtype.kind in "fiu" else as_text(values)


def _personal(columns: Mapping[str, Values], who: IntArray, people: int, where: str) -> list[str]:
    """Return the columns that belong to people; those of the schema must not differ within a person."""
    personal = []
    for name, values in columns.items():
        known: Column | None = BY_NAME.get(name)
        if known is not None and known.level == "answer":
            continue
        codes = np.unique(values.astype(str), return_inverse=True)[1]
        low, high = np.full(people, codes.max(initial=0)), np.zeros(people, dtype=np.int64)
        np.minimum.at(low, who, codes)
        np.maximum.at(high, who, codes)
        if (low == high).all():
            personal.append(name)
        elif known is not None:
            first = columns["participant"][int(np.flatnonzero((low != high)[who])[0])]
            raise DataError(f"{name!r} in {where} differs between the rows of one person, first of {first!r}.")
    return personal


def _check_answers(responses: Responses, where: str) -> None:
    keys = np.array([f"{who}/{pair}" for who, pair in zip(responses.person, responses.pairs(), strict=True)])
    found, times = np.unique(keys, return_counts=True) if keys.size else (keys, np.zeros(0, dtype=np.int64))
    if (times > 1).any():
        at = int(np.flatnonzero(keys == found[np.argmax(times > 1)])[0])
        who = responses.people["participant"][responses.person[at]]
        raise DataError(
            f"{where} holds {count(int((times > 1).sum()), 'answer')} more than once, first {responses.pairs()[at]!r} "
            f"of {who!r}; keep one of them."
        )
    if responses.kind == "feedback":
        wrong = sorted({str(word) for word in responses.answers["answer"] if word not in (None, *FEEDBACK)})
        if wrong:
            raise DataError(f"'answer' in {where} must be one of {', '.join(FEEDBACK)}; got {shown(list(wrong), 3)}.")


def _with_gaps(values: Values) -> Any:
    return np.ma.masked_invalid(values) if values.dtype.kind == "f" else values


def _safe(text: str) -> str:
    return f"'{text}" if text.lstrip("'").startswith(_FORMULA) else text


def _unmarked(text: str) -> str:
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(_FORMULA) else text


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    # The shortest text that reads back as the same number.
    return str(value).removesuffix(".0") if isinstance(value, float) else _safe(str(value))
