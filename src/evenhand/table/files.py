"""Read CSV, Parquet and JSON files with DuckDB without loading them, and convert engine errors to sentences."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile
from typing import TYPE_CHECKING, BinaryIO, Literal, TextIO, TypeAlias

import narwhals as nw
from pydantic import field_validator

from evenhand.errors import ConfigError, DataError, SettingError, brief, count, problem
from evenhand.messages import Message
from evenhand.settings import Settings
from evenhand.table.engines import connect, engine_message
from evenhand.table.formats import (
    format_of,
    is_foreign,
    matches,
    matching_files,
    refuse_disguised,
    refuse_repeated_names,
)
from evenhand.table.forms import (
    FRACTION_AS_TEXT,
    LATER_FORM,
    SAMPLED_ROWS,
    csv_forms,
    identifier,
    json_forms,
    literal,
    with_types,
)
from evenhand.table.messages import say

if TYPE_CHECKING:
    import duckdb

LONGEST_QUOTE = 80
"""The maximum number of characters of an invalid line in a message."""

NOT_UTF8 = "give its encoding (encoding='latin-1'), or save it as UTF-8."
_LONG_NUMBERS = re.compile(r"conversion from `u?i128`|Type U?INT128 with value")
_ADVICE = re.compile(r"\s*(Possible |Potential |The search space|Column .* is being|Try |You might |file = |LINE \d)")


_SNIFFED_BYTES = 4 * 1024 * 1024
_MANY_ZEROS = 0.3  # a larger share of zeros in every other byte means UTF-16


class MisreadTypeError(DataError):
    """A later row does not fit the type inferred from the first rows."""


class FileOptions(Settings):
    """Options for reading a file."""

    encoding: Literal["utf-8", "latin-1", "utf-16"] | None = None
    delimiter: str | None = None
    decimal: Literal[".", ","] = "."
    missing_values: tuple[str, ...] = ("",)
    memory_limit: str | None = None
    types_from_all_rows: bool = False

    @field_validator("memory_limit")
    @classmethod
    def _is_size(cls, limit: str | None) -> str | None:
        if limit is not None and not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", limit):
            raise SettingError("it must be a size such as '4GB' or '500MB'; got {limit}", limit=brief(limit))
        return limit


@dataclass(frozen=True)
class OpenFiles:
    """Files of one format as a DuckDB relation, not yet executed."""

    relation: duckdb.DuckDBPyRelation
    connection: duckdb.DuckDBPyConnection
    names: tuple[str, ...]
    paths: tuple[str, ...]
    notes: tuple[Message, ...]


def open_files(pattern: str, options: FileOptions, columns: Collection[str] | None = None) -> OpenFiles:
    """Open the files matching a path or pattern, with some or all columns; `names` has all column names."""
    import duckdb

    paths = matching_files(pattern)
    reader = _READERS[format_of(paths)]
    refuse_disguised(paths)
    connection = connect(options.memory_limit)
    where = f"'{pattern}'"
    try:
        with engine_errors(where):
            relation, names, notes = reader(connection, paths, options, columns)
    except duckdb.Error as error:
        raise DataError("{where} could not be read: {reason}", where=where, reason=reason(str(error))) from error
    return OpenFiles(relation, connection, names, tuple(paths), notes)


# How each format is read ----------------------------------------------------------------------------------

_Read: TypeAlias = "tuple[duckdb.DuckDBPyRelation, tuple[str, ...], tuple[Message, ...]]"


def _as_written(paths: list[str]) -> list[str]:
    """Escape paths for DuckDB, which treats every path as a pattern."""
    return [glob.escape(path) for path in paths]


def _read_parquet(
    connection: duckdb.DuckDBPyConnection, paths: list[str], _: FileOptions, wanted: Collection[str] | None
) -> _Read:
    # Writers omit not-a-number from a file's statistics; by default DuckDB concludes that there is none.
    # Of several files, DuckDB would otherwise convert all to the types of the first: 0.6 to 1.
    several = len(paths) > 1
    files = literal(_as_written(paths))
    relation = connection.sql(f"from read_parquet({files}, can_have_nan = true, union_by_name = {several})")
    names = tuple(relation.columns)
    folded = {name.lower() for name in names}
    if any(re.sub(r"_\d+$", "", name.lower()) in folded - {name.lower()} for name in names):
        # DuckDB may have renamed columns to make them unique: compare with the names in the file.
        query = "select name from parquet_schema(?) where name is not null"
        stored = [row[0] for row in connection.execute(query, [_as_written(paths)[0]]).fetchall()]
        if any(name not in stored for name in names):
            refuse_repeated_names(stored[1:], f"the file '{os.path.basename(paths[0])}'", any_case=True)
    columns = _chosen(names, wanted)
    chosen = relation.project(", ".join(map(identifier, columns)))
    if several:
        _refuse_missing_columns(connection, files, columns)
        chosen = _with_fractions_as_text(connection, files, chosen)
    return chosen, names, ()


def _with_fractions_as_text(
    connection: duckdb.DuckDBPyConnection, files: str, united: duckdb.DuckDBPyRelation
) -> duckdb.DuckDBPyRelation:
    """Write 1.0 as "1" in columns that are fractions in some files and text in others."""
    texts = {name.lower() for name, kind in zip(united.columns, united.types, strict=True) if str(kind) == "VARCHAR"}
    schemas = connection.sql(f"from parquet_schema({files})")
    fractions_of: dict[str, set[str]] = {}
    for path, name, kind in schemas.project("file_name, lower(name), type").order("file_name").fetchall():
        fractions_of.setdefault(path, set()).update({name} & texts if kind in ("FLOAT", "DOUBLE") else ())
    if not any(fractions_of.values()):
        return united
    parts: dict[frozenset[str], list[str]] = {}
    for path, names in fractions_of.items():
        parts.setdefault(frozenset(names), []).append(path)
    relations = []
    for fractions, paths in parts.items():
        casts = {name: FRACTION_AS_TEXT if name.lower() in fractions else "{x}" for name in united.columns}
        source = f"read_parquet({literal(_as_written(paths))}, can_have_nan = true, union_by_name = true)"
        columns = ", ".join(cast.replace("{x}", identifier(name)) for name, cast in casts.items())
        relations.append(connection.sql(f"from {source}").project(columns))
    return reduce(lambda first, second: first.union(second), relations)


def _refuse_missing_columns(connection: duckdb.DuckDBPyConnection, files: str, columns: Sequence[str]) -> None:
    """Raise if one of several Parquet files lacks a column, whose values would count as missing."""
    schemas = connection.sql(f"from parquet_schema({files})").aggregate("file_name, list(name)").order("file_name")
    for path, names in schemas.fetchall():
        absent = [column for column in columns if column.lower() not in {name.lower() for name in names}]
        if absent:
            raise DataError(
                "the file '{path}' has no column {column!r}, which other files have.",
                path=os.path.basename(path),
                column=absent[0],
            )


def _read_json(
    connection: duckdb.DuckDBPyConnection, paths: list[str], options: FileOptions, wanted: Collection[str] | None
) -> _Read:
    sample = -1 if options.types_from_all_rows else SAMPLED_ROWS
    arguments = f"maximum_depth = 1, map_inference_threshold = -1, sample_size = {sample}"
    source = f"read_json({literal(_as_written(paths))}, {arguments})"
    relation = connection.sql(f"from {source}")
    names = tuple(relation.columns)
    if not options.types_from_all_rows and not set(wanted or ()) <= set(names):
        all_rows = options.model_copy(update={"types_from_all_rows": True})
        return _read_json(connection, paths, all_rows, wanted)  # a column may begin in a later row
    if "JSON" not in map(str, relation.types):
        return relation, names, ()  # values instead of records
    forms = json_forms(options)
    return with_types(connection, source, _chosen(names, wanted), forms, options), names, ()


def _read_csv(
    connection: duckdb.DuckDBPyConnection, paths: list[str], options: FileOptions, wanted: Collection[str] | None
) -> _Read:
    import duckdb

    guess = _guess_encoding(paths[0])  # also refuses files that no setting could read
    encoding = options.encoding or guess
    beginning = _beginning(paths[0], encoding)
    delimiter = options.delimiter or _guess_delimiter(beginning)
    for path in paths:
        fields = _header(beginning if path == paths[0] else _beginning(path, encoding), delimiter)
        header = [name.strip() for name in fields]  # as DuckDB reads it
        refuse_repeated_names(header, f"the header of '{os.path.basename(path)}'", any_case=True)
    # No part of the dialect is guessed by DuckDB: a guess may skip rows, or take '#' for a comment.
    settings: dict[str, str | list[str]] = {
        "encoding": encoding,
        "delim": delimiter,
        "quote": '"',
        "escape": '"',
        "comment": "",
        "nullstr": list(dict.fromkeys(("", *options.missing_values))),
    }
    arguments = ", ".join(f"{name} = {literal(value)}" for name, value in settings.items())
    source = f"read_csv({literal(_as_written(paths))}, header = true, skip = 0, all_varchar = true, {arguments})"
    try:
        names = tuple(connection.sql(f"from {source}").columns)
        relation = with_types(connection, source, _chosen(names, wanted), csv_forms(options), options)
    except duckdb.Error as error:
        if "sniffing" in str(error):
            raise DataError(_csv_fault(paths, encoding, delimiter)) from error
        raise
    guessed = encoding != "utf-8" and options.encoding is None
    return relation, names, (say("read_as", encoding=encoding),) if guessed else ()


def _chosen(names: Sequence[str], wanted: Collection[str] | None) -> Sequence[str]:
    """Return the wanted columns in file order; if there are none, the first column, for counting rows."""
    chosen = names if wanted is None else [name for name in names if name in wanted]
    return chosen or names[:1]


_Reader: TypeAlias = "Callable[[duckdb.DuckDBPyConnection, list[str], FileOptions, Collection[str] | None], _Read]"
_READERS: dict[str, _Reader] = {"csv": _read_csv, "parquet": _read_parquet, "json": _read_json}


# Inspecting text files ------------------------------------------------------------------------------------


def _open_bytes(path: str) -> BinaryIO | gzip.GzipFile:
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")


def _is_opaque(path: str) -> bool:
    """Return whether a file can only be read by DuckDB."""
    return path.lower().endswith(".zst")


def _guess_encoding(path: str) -> str:
    if _is_opaque(path):
        return "utf-8"
    with _open_bytes(path) as file:
        start = file.read(_SNIFFED_BYTES)
    if start.startswith(b"\xff\xfe"):
        return "utf-16"
    halves = [start[first:4096:2].count(0) / max(1, len(start[first:4096:2])) for first in (0, 1)]
    if start.startswith(b"\xfe\xff") or halves[0] > _MANY_ZEROS > halves[1]:
        raise DataError("'{path}' could not be read: it is UTF-16 of the big-endian kind; save it as UTF-8.", path=path)
    if halves[1] > _MANY_ZEROS > halves[0]:
        return "utf-16"  # little-endian, without a byte-order mark
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        # A character cut in two by the end of the sample is not a wrong encoding.
        return "utf-8" if error.start >= len(start) - 4 and len(start) == _SNIFFED_BYTES else "latin-1"
    return "utf-8"


def _open_text(path: str, encoding: str) -> TextIO:
    codec = {"utf-8": "utf-8-sig", "utf-16": "utf-16-le"}.get(encoding, encoding)
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding=codec, errors="replace", newline="")
    return open(path, encoding=codec, errors="replace", newline="")


def _guess_delimiter(beginning: str) -> str:
    """Return the candidate delimiter that splits the first line into the most fields, respecting quotes."""
    fields = {mark: len(_header(beginning, mark)) for mark in (",", ";", "\t", "|")}
    return max(fields, key=lambda mark: fields[mark])


def dialect(pattern: str) -> str | None:
    """Return the guessed delimiter of a text file; None for files of another format."""
    paths = matches(pattern)
    if is_foreign(paths[0]) or format_of(paths) != "csv":
        return None
    return _guess_delimiter(_beginning(paths[0], _guess_encoding(paths[0])))


def _header(beginning: str, delimiter: str) -> list[str]:
    """Return the fields of the first line, or an empty list if it cannot be parsed."""
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ConfigError(
            "`delimiter` must be one character, and no quotation mark; got {delimiter!r}.", delimiter=delimiter
        )
    try:
        return next(csv.reader(io.StringIO(beginning, newline=""), delimiter=delimiter), [])
    except csv.Error:  # a field of more than 128 KiB
        return []


def _beginning(path: str, encoding: str) -> str:
    if not _is_opaque(path):
        with _open_text(path, encoding) as file:
            return str(file.read(_SNIFFED_BYTES)).removeprefix("\ufeff")
    # One column of whole lines: no line contains this delimiter.
    dialect = "header = false, delim = '\x1f', quote = '', escape = '', columns = {'line': 'VARCHAR'}"
    lines = connect().sql(f"from read_csv({literal(_as_written([path]))}, {dialect}) limit 1").fetchall()
    return str(lines[0][0]) if lines else ""


def _csv_fault(paths: list[str], encoding: str, delimiter: str) -> Message:
    """Return a message on the first invalid row near the start of a CSV file, which DuckDB does not identify."""
    for path in (path for path in paths if not _is_opaque(path)):
        with _open_text(path, encoding) as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            try:
                width = len(next(reader, []))
                for row in reader:
                    if row and len(row) != width:
                        fault = ragged(reader.line_num, len(row), width, delimiter.join(row))
                        return problem("'{path}' could not be read: {fault}", path=path, fault=fault)
                    if reader.line_num > 2 * SAMPLED_ROWS:
                        break
            except csv.Error as error:
                return problem(
                    "'{path}' could not be read: line {line:,} is not valid CSV ({error}).",
                    path=path,
                    line=reader.line_num,
                    error=error,
                )
    return problem(
        "'{path}' could not be read as CSV; look for stray quotation marks or mixed line ends.", path=paths[0]
    )


# Engine errors --------------------------------------------------------------------------------------------


@contextmanager
def engine_errors(where: str = "the data") -> Iterator[None]:
    """Raise a `DataError` if an engine fails to read data; let other errors pass."""
    try:
        yield
    except BaseException as error:
        text = str(error)
        if isinstance(error, RuntimeError) and text == "Query interrupted":  # DuckDB's message for Ctrl-C
            raise KeyboardInterrupt from None
        if isinstance(error, UnicodeDecodeError):
            raise DataError(
                "{where} could not be read as text: {error}; {NOT_UTF8}", where=where, error=error, NOT_UTF8=NOT_UTF8
            ) from error
        if type(error).__name__ == "PanicException":
            # Polars raises this for some damaged files; it is not an `Exception`.
            raise DataError("{where} could not be read: it is damaged, and Polars stopped.", where=where) from None
        message = engine_message(error)
        if message is not None:  # the error itself may contain an address
            raise DataError("{where} could not be read: {message}", where=where, message=message) from None
        kind = _fault_of_data(error, text)
        if kind is None:
            raise
        raise kind(_sentence(where, error)) from error


def _fault_of_data(error: BaseException, text: str) -> type[DataError] | None:
    """Return the `DataError` class for an engine's error; None if the data are not at fault."""
    import duckdb

    faults = (
        duckdb.InvalidInputException,
        duckdb.IOException,
        duckdb.OutOfMemoryException,
        duckdb.OutOfRangeException,
        duckdb.SerializationException,
        duckdb.TypeMismatchException,  # Python values of several types in one column
    )
    if isinstance(error, duckdb.ConversionException):
        return MisreadTypeError
    if isinstance(error, faults):
        return MisreadTypeError if "JSON transform error" in text or LATER_FORM in text else DataError
    if isinstance(error, nw.exceptions.InvalidOperationError):
        return DataError if _LONG_NUMBERS.search(text) or "unable to decode" in text else None
    # Parquet that DuckDB finds damaged, files behind a lazy frame, and truncated compressed files.
    damaged = (nw.exceptions.ComputeError, EOFError, OSError, zlib.error)
    return DataError if type(error) is duckdb.Error or isinstance(error, damaged) else None


def _sentence(where: str, error: BaseException) -> Message:
    text = str(error)
    named = re.search(r"^\s*file = (.+)$", text, re.MULTILINE)
    subject = f"'{named[1].strip()}'" if named and where == "the data" else where
    return problem("{subject} could not be read: {why}", subject=subject, why=reason(text or type(error).__name__))


def reason(text: str) -> Message:
    r"""Return an engine's error as a sentence.

    Examples
    --------
    >>> reason("CSV Error on Line: 7\nOriginal Line: 4,5\nExpected Number of Columns: 3 Found: 2").text
    "line 7 has 2 fields where the header has 3 ('4,5')."
    """
    line = re.search(r"CSV Error on Line: (\d+)", text)
    widths = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if line and widths:
        quoted = re.search(r"^Original Line:[ ]?(.*)$", text, re.MULTILINE)
        return ragged(int(line[1]), int(widths[2]), int(widths[1]), quoted[1] if quoted else "")
    encoding = re.search(r"not (utf-8|utf-16|latin-1) encoded", text)
    if encoding:
        advice = NOT_UTF8 if encoding[1] == "utf-8" else "save it as UTF-8."
        where = problem("line {line} of it", line=line[1]) if line else problem("it")
        return problem(
            "{where} is not all {encoding}; {advice}", where=where, encoding=encoding[1].upper(), advice=advice
        )
    sentence = next((sentence for pattern, sentence in _SENTENCES.items() if pattern.search(text)), None)
    return problem("{text}", text=_without_advice(text)) if sentence is None else problem(sentence)


_SENTENCES = {
    re.compile(
        r"Type \w+ does not match with \w+"
    ): "a column of it holds Python values of several types; give it one.",
    re.compile("Out of Memory Error"): (
        "it needs more memory, or room for temporary files, than there is; give a larger memory_limit, or name a "
        "roomier folder in TMPDIR."
    ),
    _LONG_NUMBERS: "it holds whole numbers of more than 64 bits; turn them into text, or into fractions.",
    re.compile("value nan can't be cast"): (
        "it holds not-a-number where DuckDB found none in the statistics of a Parquet file; "
        "give the file itself, or read it with read_parquet(..., can_have_nan = true)."
    ),
}


def _without_advice(text: str) -> str:
    lines = takewhile(lambda part: not _ADVICE.match(part), text.splitlines())
    parts = (line.strip()[: 2 * LONGEST_QUOTE] for line in lines)
    sentence = "; ".join(part.rstrip(".") for part in parts if part)
    return re.sub(r"^(\w+ )+Error: ", "", sentence) + "."


def ragged(line: int, fields: int, expected: int, text: str) -> Message:
    """Return the message on a line with too many or too few fields."""
    shown = text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "..."
    return problem(
        "line {line:,} has {fields} where the header has {expected:,} ({text!r}).",
        line=line,
        fields=count(fields, "field"),
        expected=expected,
        text=shown,
    )
