"""Files of data: CSV, Parquet and JSON, read by DuckDB without loading them."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evenhand.errors import ConfigError, DataError, did_you_mean
from evenhand.settings import Settings
from evenhand.table.engines import FRACTION, engine_errors, ragged, reason

if TYPE_CHECKING:
    import duckdb

_SNIFFED_BYTES = 4 * 1024 * 1024
_SAMPLED_ROWS = 20_480
_MARKS = {
    b"PK\x03\x04": ("a zip archive", "unpack it first"),
    b"PAR1": ("a Parquet file", "name it .parquet"),
}
_MANY_ZEROS = 0.3  # as a share of every other byte: more of them, and it is UTF-16
_ENDINGS = {"csv": (".csv", ".tsv", ".txt"), "parquet": (".parquet", ".pq"), "json": (".json", ".jsonl", ".ndjson")}
_FORMATS = {ending: name for name, endings in _ENDINGS.items() for ending in endings}


class FileOptions(Settings):
    """How to read a file, where guessing is not enough."""

    encoding: Literal["utf-8", "latin-1", "utf-16"] | None = None
    delimiter: str | None = None
    decimal: Literal[".", ","] = "."
    missing_values: tuple[str, ...] = ("",)
    types_from_all_rows: bool = False


@dataclass(frozen=True)
class OpenFiles:
    """Files of one format as a DuckDB relation that has not been run yet."""

    relation: duckdb.DuckDBPyRelation
    connection: duckdb.DuckDBPyConnection
    paths: tuple[str, ...]
    notes: tuple[str, ...]


def matching_files(pattern: str) -> list[str]:
    """Return the files that a path or a pattern names; refuse what is no file with something in it."""
    paths = _matches(pattern)
    _require_files(pattern, paths)
    return paths


def open_files(pattern: str, options: FileOptions) -> OpenFiles:
    """Open the files that a path or a pattern names."""
    import duckdb

    paths = matching_files(pattern)
    reader = _READERS[_format_of(paths)]
    _refuse_disguised(paths)
    connection = connect()
    where = f"'{pattern}'"
    try:
        with engine_errors(where):
            relation, notes = reader(connection, paths, options)
    except duckdb.Error as error:
        raise DataError(f"{where} could not be read: {reason(str(error))}") from error
    return OpenFiles(relation, connection, tuple(paths), notes)


def connect() -> duckdb.DuckDBPyConnection:
    """Return a connection of our own, which never fetches anything over the network."""
    import duckdb

    return duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "preserve_insertion_order": "false",
            # What does not fit into memory goes where temporary files go, not into the working folder.
            "temp_directory": os.path.join(tempfile.gettempdir(), f"evenhand-{os.getpid()}"),
            # The type of a column of Python objects depends on all of them, not on the first thousand.
            "pandas_analyze_sample": str(2**31),
        }
    )


def refuse_repeated_names(names: Iterable[str], where: str, *, any_case: bool = False) -> None:
    """Refuse columns that cannot be told apart; DuckDB does not tell capitals from small letters."""
    spellings: dict[str, list[str]] = {}
    for name in names:
        spellings.setdefault(name.lower() if any_case else name, []).append(name)
    repeated = [alike for alike in spellings.values() if len(alike) > 1]
    if not repeated:
        return
    shown = ", ".join(repr(name) for name in list(dict.fromkeys(name for alike in repeated for name in alike))[:6])
    if all(len(set(alike)) == 1 for alike in repeated):
        raise DataError(f"{where} has the column {shown} more than once; rename the columns so that each is unique.")
    raise DataError(f"{where} has columns that differ only in capital letters ({shown}); rename them.")


# Which files ----------------------------------------------------------------------------------------------


def _matches(pattern: str) -> list[str]:
    """Return the file of that very name, or else the files that match it as a pattern."""
    if os.path.exists(pattern) or not glob.has_magic(pattern):
        return [pattern]
    # A folder that exists is meant as it is written, even with brackets in its name.
    folder = next((parent for parent in Path(pattern).parents if parent.is_dir()), Path())
    rest = os.path.relpath(pattern, folder)
    return sorted(str(folder / path) for path in glob.glob(rest, root_dir=folder, recursive=True))


def _require_files(pattern: str, paths: list[str]) -> None:
    if not paths:
        raise DataError(f"no file matches '{pattern}'; check the folder and the pattern.")
    for path in paths:
        if not _exists(path):
            raise DataError(f"there is no file '{path}'; {_nearest(Path(path))}")
        if os.path.isdir(path):
            raise DataError(f"'{path}' is a folder; give a file or a pattern such as '{path}/*.parquet'.")
        if not os.path.isfile(path):
            raise DataError(f"'{path}' is a pipe or a device; save the data as a file first.")
        if os.path.getsize(path) == 0:
            raise DataError(f"the file '{path}' is empty (0 bytes).")
        if not os.access(path, os.R_OK):
            raise DataError(f"'{path}' cannot be read: permission denied.")


def _refuse_disguised(paths: list[str]) -> None:
    """Refuse what is no text inside although its name ends like a text file's; Excel saves such files by that name."""
    for path in paths:
        if _FORMATS[_suffix(Path(path))] == "parquet":
            continue
        with open(path, "rb") as file:
            start = file.read(8)
        for mark, (kind, advice) in _MARKS.items():
            if start.startswith(mark):
                raise DataError(f"'{path}' is {kind} by its contents, whatever its name says; {advice}.")


def _exists(path: str) -> bool:
    """Tell whether there is a file; say so where that cannot be told, as of a link that leads to itself."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: a name that no file can have
        return False
    except OSError as error:
        raise DataError(f"'{path}' cannot be read: {str(error.strerror or error).lower()}.") from None
    return True


def _nearest(path: Path) -> str:
    if path.is_symlink():
        return "it is a link to a file that is not there."
    try:
        return did_you_mean(path.name, sorted(entry.name for entry in path.parent.iterdir()))
    except NotADirectoryError:
        return f"'{path.parent}' is a file, not a folder."
    except (OSError, ValueError):
        return f"there is no folder '{path.parent}'."


def _suffix(path: Path) -> str:
    """Return the ending that tells the format: '.csv' of 'people.CSV.gz'."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in {".gz", ".zst"}]
    return suffixes[-1] if suffixes else ""


def _format_of(paths: list[str]) -> str:
    for path in paths:
        if _suffix(Path(path)) not in _FORMATS:
            raise DataError(
                f"the format of '{path}' is not known from its name; evenhand reads .csv, .tsv, .txt, .parquet, .json "
                "and .ndjson files, and one at a time .xlsx, .ods, .dta, .sav, .feather and .rds."
            )
    kinds = {_FORMATS[_suffix(Path(path))] for path in paths}
    if len(kinds) > 1:
        raise DataError(f"the files are of several formats ({', '.join(sorted(kinds))}); give one format at a time.")
    return kinds.pop()


# How each format is read ----------------------------------------------------------------------------------

_Read: TypeAlias = "tuple[duckdb.DuckDBPyRelation, tuple[str, ...]]"


def _literal(value: str | list[str]) -> str:
    """Quote a setting or a path for SQL; names and values from data never pass here."""
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    return "'" + value.replace("'", "''") + "'"


def _as_written(paths: list[str]) -> list[str]:
    """Return paths for DuckDB, which takes every path for a pattern."""
    return [glob.escape(path) for path in paths]


def _read_parquet(connection: duckdb.DuckDBPyConnection, paths: list[str], _: FileOptions) -> _Read:
    # Writers leave not-a-number out of a file's statistics; unless told, DuckDB concludes that there is none.
    relation = connection.sql(f"from read_parquet({_literal(_as_written(paths))}, can_have_nan = true)")
    names = {name.lower() for name in relation.columns}
    if any(re.sub(r"_\d+$", "", name.lower()) in names - {name.lower()} for name in relation.columns):
        # DuckDB may have renamed columns to make them unique: compare with the names in the file.
        query = "select name from parquet_schema(?) where name is not null"
        stored = [row[0] for row in connection.execute(query, [_as_written(paths)[0]]).fetchall()]
        if any(name not in stored for name in relation.columns):
            refuse_repeated_names(stored[1:], f"the file '{os.path.basename(paths[0])}'", any_case=True)
    return relation, ()


def _read_json(connection: duckdb.DuckDBPyConnection, paths: list[str], options: FileOptions) -> _Read:
    import duckdb

    sample = -1 if options.types_from_all_rows else _SAMPLED_ROWS
    query = f"from read_json({_literal(_as_written(paths))}, maximum_depth = 2, sample_size = {sample})"
    relation = connection.sql(query)
    if "JSON" not in map(str, relation.types):
        return relation, ()
    # Values of several types stay JSON, where text has quotation marks around it.
    columns = [
        duckdb.FunctionExpression("json_extract_string", column, duckdb.ConstantExpression("$")).alias(name)
        if str(kind) == "JSON"
        else column
        for name, kind in zip(relation.columns, relation.types, strict=True)
        for column in [duckdb.ColumnExpression(name)]
    ]
    return relation.select(*columns), ()


def _read_csv(connection: duckdb.DuckDBPyConnection, paths: list[str], options: FileOptions) -> _Read:
    import duckdb

    guess = _guess_encoding(paths[0])  # which also refuses what no setting could read
    encoding = options.encoding or guess
    delimiter = options.delimiter or _guess_delimiter(paths[0], encoding)
    refuse_repeated_names(
        _header(paths[0], encoding, delimiter), f"the header of '{os.path.basename(paths[0])}'", any_case=True
    )
    # Nothing about the dialect is left to guessing: a guess may skip rows, or take '#' for a comment.
    settings: dict[str, str | list[str]] = {
        "encoding": encoding,
        "delim": delimiter,
        "quote": '"',
        "escape": '"',
        "comment": "",
        "decimal_separator": options.decimal,
        "nullstr": list(dict.fromkeys(("", *options.missing_values))),
        # Without BOOLEAN, "Yes" and "No" stay the words that the reader knows.
        "auto_type_candidates": ["BIGINT", "DOUBLE", "VARCHAR"],
    }
    arguments = ", ".join(f"{name} = {_literal(value)}" for name, value in settings.items())
    sample = -1 if options.types_from_all_rows else _SAMPLED_ROWS
    source = f"read_csv({_literal(_as_written(paths))}, header = true, skip = 0, sample_size = {sample}, {arguments})"
    try:
        relation = connection.sql(f"from {source}")
    except duckdb.Error as error:
        if "sniffing" in str(error):
            raise DataError(_csv_fault(paths, encoding, delimiter)) from error
        raise
    if not options.types_from_all_rows:
        relation = _whole_or_misread(connection, relation, source, options.decimal)
    guessed = encoding != "utf-8" and options.encoding is None
    return relation, (f"The file is not UTF-8; it was read as {encoding}.",) if guessed else ()


def _whole_or_misread(
    connection: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation, source: str, decimal: str
) -> duckdb.DuckDBPyRelation:
    """Refuse a fraction in a column whose first rows are whole; DuckDB would round it and say nothing."""
    import duckdb

    whole = [name for name, kind in zip(relation.columns, relation.types, strict=True) if str(kind) == "BIGINT"]
    if not whole:
        return relation
    types = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in whole)
    try:
        as_text = connection.sql(f"from {source.removesuffix(')')}, types = {{{types}}})")
    except duckdb.Error:
        return relation  # files of different columns: reading them says so best
    misread = duckdb.FunctionExpression("error", duckdb.ConstantExpression(FRACTION))
    columns = []
    for name in as_text.columns:
        column = duckdb.ColumnExpression(name)
        if name in whole:
            marks = [
                duckdb.FunctionExpression("contains", column, duckdb.ConstantExpression(mark))
                for mark in (decimal, "e", "E")
            ]
            column = duckdb.CaseExpression(marks[0] | marks[1] | marks[2], misread).otherwise(column).cast("BIGINT")
        columns.append(column.alias(name))
    return as_text.select(*columns)


_READERS: dict[str, Callable[[Any, list[str], FileOptions], _Read]] = {
    "csv": _read_csv,
    "parquet": _read_parquet,
    "json": _read_json,
}


# Looking into text files ----------------------------------------------------------------------------------


def _open_bytes(path: str) -> Any:
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")


def _is_opaque(path: str) -> bool:
    """Tell whether only DuckDB can look into a file."""
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
        raise DataError(f"'{path}' could not be read: it is UTF-16 of the big-endian kind; save it as UTF-8.")
    if halves[1] > _MANY_ZEROS > halves[0]:
        return "utf-16"  # of the little-endian kind, without the mark that says so
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        # A character cut in two by the end of the sample is not a wrong encoding.
        return "utf-8" if error.start >= len(start) - 4 and len(start) == _SNIFFED_BYTES else "latin-1"
    return "utf-8"


def _open_text(path: str, encoding: str) -> Any:
    opened = gzip.open if path.lower().endswith(".gz") else open
    codec = {"utf-8": "utf-8-sig", "utf-16": "utf-16-le"}.get(encoding, encoding)
    return opened(path, "rt", encoding=codec, errors="replace", newline="")


def _guess_delimiter(path: str, encoding: str) -> str:
    """Return the candidate that splits the first line most often, outside quotation marks."""
    fields = {mark: len(_header(path, encoding, mark)) for mark in (",", ";", "\t", "|")}
    return max(fields, key=lambda mark: fields[mark])


def dialect(pattern: str) -> str | None:
    """Return what separates the columns of a text file, as guessed; None for files of another format."""
    paths = _matches(pattern)
    if _format_of(paths) != "csv":
        return None
    return _guess_delimiter(paths[0], _guess_encoding(paths[0]))


def _header(path: str, encoding: str, delimiter: str) -> list[str]:
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ConfigError(f"`delimiter` must be one character, and no quotation mark; got {delimiter!r}.")
    first = io.StringIO(_beginning(path, encoding), newline="")
    return next(csv.reader(first, delimiter=delimiter), [])


def _beginning(path: str, encoding: str) -> str:
    if not _is_opaque(path):
        with _open_text(path, encoding) as file:
            return str(file.read(64 * 1024)).removeprefix("\ufeff")
    # One column of whole lines: no line holds the delimiter that is named here.
    dialect = "header = false, delim = '\x1f', quote = '', escape = '', columns = {'line': 'VARCHAR'}"
    lines = connect().sql(f"from read_csv({_literal(_as_written([path]))}, {dialect}) limit 1").fetchall()
    return str(lines[0][0]) if lines else ""


def _csv_fault(paths: list[str], encoding: str, delimiter: str) -> str:
    """Say which of the first lines is not a row of the table; DuckDB only says that there is one."""
    for path in (path for path in paths if not _is_opaque(path)):
        with _open_text(path, encoding) as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            try:
                width = len(next(reader, []))
                for row in reader:
                    if row and len(row) != width:
                        return f"'{path}' could not be read: " + ragged(
                            reader.line_num, len(row), width, delimiter.join(row)
                        )
                    if reader.line_num > 2 * _SAMPLED_ROWS:
                        break
            except csv.Error as error:
                return f"'{path}' could not be read: line {reader.line_num:,} is not valid CSV ({error})."
    return f"'{paths[0]}' could not be read as CSV; look for stray quotation marks or mixed line ends."
