"""Opening data: a data frame of any library, a mapping of columns, or files read by DuckDB without loading them."""

from __future__ import annotations

import csv
import glob
import gzip
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import narwhals as nw

from evenhand.errors import ConfigError, DataError, did_you_mean
from evenhand.settings import Settings

if TYPE_CHECKING:
    import duckdb

Frame: TypeAlias = "nw.DataFrame[Any] | nw.LazyFrame[Any]"

_SNIFFED_BYTES = 4 * 1024 * 1024
_FORMATS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv",
    ".parquet": "parquet", ".pq": "parquet",
    ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip


class MisreadTypeError(DataError):
    """A later row does not have the type that the first rows suggested."""


class FileOptions(Settings):
    """How to read a file, where guessing is not enough."""

    encoding: Literal["utf-8", "latin-1", "utf-16"] | None = None
    delimiter: str | None = None
    decimal: Literal[".", ","] = "."
    missing_values: tuple[str, ...] = ("",)
    types_from_all_rows: bool = False


@dataclass(frozen=True)
class Source:
    """Opened data: a narwhals frame, the library it came from, and for files what identifies their bytes."""

    frame: Frame
    backend: str | None
    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def fingerprints(self) -> list[dict[str, str | int]]:
        """Return name, size and SHA-256 of each file; empty for data that never was a file."""
        return [
            {"name": os.path.basename(path), "bytes": os.path.getsize(path), "sha256": _sha256(path)}
            for path in self.paths
        ]


def open_source(data: Any, options: FileOptions | None = None) -> Source:
    """Open a data frame, a mapping of columns, or the path or glob of CSV, Parquet or JSON files.

    Examples
    --------
    >>> open_source({"race": ["A", "B"], "risk": [0.2, 0.7]}).frame.collect_schema().names()
    ['race', 'risk']
    """
    if isinstance(data, str | os.PathLike):
        return _open_files(os.fspath(data), options or FileOptions())
    if isinstance(data, Mapping):
        return Source(_frame_of_mapping(data), backend=None)
    _refuse_repeated_names(_eager_names(data), "the data frame")
    try:
        frame = nw.from_native(data)
    except TypeError as error:
        raise DataError(
            f"`data` must be a data frame (pandas, Polars, PyArrow, DuckDB), a mapping of columns or a file path; "
            f"got {type(data).__name__}."
        ) from error
    backend = frame.implementation.name.lower()
    return Source(frame, backend=backend if backend in {"pandas", "polars", "pyarrow"} else None)


def fetch(frame: Frame) -> dict[str, list[Any]]:
    """Return a small frame as Python lists; a lazy frame is run by its own engine."""
    if isinstance(frame, nw.DataFrame):
        return {name: frame.get_column(name).to_list() for name in frame.columns}
    native = frame.to_native()
    if frame.implementation.is_duckdb():
        rows = native.fetchall()
        names = native.columns
        return {name: [row[position] for row in rows] for position, name in enumerate(names)}
    return fetch(frame.collect())


def fetch_arrays(frame: Frame) -> dict[str, Any]:
    """Return a frame of numbers without missing values as NumPy arrays."""
    if isinstance(frame, nw.DataFrame):
        return {name: frame.get_column(name).to_numpy() for name in frame.columns}
    if frame.implementation.is_duckdb():
        return dict(frame.to_native().fetchnumpy())
    return fetch_arrays(frame.collect())


@contextmanager
def engine_errors(where: str = "the data") -> Iterator[None]:
    """Turn an engine's failure while it reads data into a `DataError` in our words."""
    import duckdb

    try:
        yield
    except duckdb.ConversionException as error:
        raise MisreadTypeError(f"{where} could not be read: {_first_line(error)}") from error
    except duckdb.Error as error:
        raise DataError(f"{where} could not be read: {_first_line(error)}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{where} could not be read as text: {error}; give encoding='latin-1'.") from error


def _eager_names(data: Any) -> list[str]:
    """Return the column names of a pandas-like frame or an Arrow table, the only ones that can repeat."""
    names = getattr(data, "column_names", None) or (data.columns if hasattr(data, "iloc") else ())
    return [str(name) for name in names]


def _frame_of_mapping(columns: Mapping[str, Any]) -> Frame:
    import numpy as np

    arrays = {str(name): np.asarray(values) for name, values in columns.items()}
    lengths = {name: len(values) for name, values in arrays.items() if values.ndim == 1}
    if len(lengths) < len(arrays) or len(set(lengths.values())) != 1:
        raise DataError(f"the columns of a mapping must be one-dimensional and of one length; got {lengths}.")
    # DuckDB reads fixed-width text as an enum; object arrays become plain text.
    plain = {name: a.astype(object) if a.dtype.kind in "US" else a for name, a in arrays.items()}
    connection = _connect()
    connection.register("columns_of_mapping", plain)
    return nw.from_native(connection.table("columns_of_mapping"))


def _open_files(pattern: str, options: FileOptions) -> Source:
    paths = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else [pattern]
    if glob.has_magic(pattern) and os.path.exists(pattern):
        paths = [pattern]
    _require_files(pattern, paths)
    kind = _format_of(paths)
    with engine_errors(f"'{pattern}'"):
        relation, notes = _READERS[kind](_connect(), paths, options)
    return Source(nw.from_native(relation), backend=None, paths=tuple(paths), notes=notes)


def _require_files(pattern: str, paths: list[str]) -> None:
    if not paths:
        raise DataError(f"no file matches '{pattern}'; check the folder and the pattern.")
    for path in paths:
        if not os.path.exists(path):
            siblings = [entry.name for entry in Path(path).parent.glob("*")] if Path(path).parent.is_dir() else []
            raise DataError(f"there is no file '{path}'; {did_you_mean(os.path.basename(path), siblings)}")
        if os.path.isdir(path):
            raise DataError(f"'{path}' is a folder; give a file or a pattern such as '{path}/*.parquet'.")
        if os.path.getsize(path) == 0:
            raise DataError(f"the file '{path}' is empty (0 bytes).")


def _format_of(paths: list[str]) -> str:
    kinds = set()
    for path in paths:
        suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() not in {".gz", ".zst"}]
        kinds.add(_FORMATS.get(suffixes[-1] if suffixes else "", ""))
    if len(kinds) != 1 or "" in kinds:
        raise DataError(
            f"the format of {paths[0]!r} is not known from its name; evenhand reads .csv, .tsv, .parquet and .json "
            "files (one format at a time)."
        )
    return kinds.pop()


def _connect() -> duckdb.DuckDBPyConnection:
    import duckdb

    # No extension is ever fetched over the network, and no progress bar is drawn over ours.
    return duckdb.connect(
        config={"autoinstall_known_extensions": "false", "preserve_insertion_order": "false"},
    )


_Reader: TypeAlias = (
    "Callable[[duckdb.DuckDBPyConnection, list[str], FileOptions], tuple[duckdb.DuckDBPyRelation, tuple[str, ...]]]"
)


def _read_parquet(
    connection: duckdb.DuckDBPyConnection, paths: list[str], _: FileOptions
) -> tuple[duckdb.DuckDBPyRelation, tuple[str, ...]]:
    return connection.read_parquet(paths), ()


def _read_json(
    connection: duckdb.DuckDBPyConnection, paths: list[str], _: FileOptions
) -> tuple[duckdb.DuckDBPyRelation, tuple[str, ...]]:
    return connection.sql(f"from read_json({_literal(paths)}, maximum_depth = 1)"), ()  # noqa: S608


def _read_csv(
    connection: duckdb.DuckDBPyConnection, paths: list[str], options: FileOptions
) -> tuple[duckdb.DuckDBPyRelation, tuple[str, ...]]:
    encoding = options.encoding or _guess_encoding(paths[0])
    delimiter = options.delimiter or _guess_delimiter(paths[0], encoding)
    _refuse_repeated_names(_header(paths[0], encoding, delimiter), f"the header of '{os.path.basename(paths[0])}'")
    settings = {
        "encoding": encoding,
        "delim": delimiter,
        "decimal_separator": options.decimal,
        "nullstr": list(options.missing_values),
        # Without BOOLEAN, "Yes" and "No" stay the words that the reader knows.
        "auto_type_candidates": ["BIGINT", "DOUBLE", "VARCHAR"],
    }
    arguments = ", ".join(f"{name} = {_literal(value)}" for name, value in settings.items())
    notes = () if encoding == "utf-8" or options.encoding else (f"The file is not UTF-8; it was read as {encoding}.",)
    sample = -1 if options.types_from_all_rows else 20_480
    query = f"from read_csv({_literal(paths)}, header = true, sample_size = {sample}, {arguments})"  # noqa: S608
    return connection.sql(query), notes


_READERS: dict[str, _Reader] = {"csv": _read_csv, "parquet": _read_parquet, "json": _read_json}


def _literal(value: str | list[str]) -> str:
    """Quote a setting or a path for SQL; names and values from data never pass here."""
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    return "'" + value.replace("'", "''") + "'"


def _open_bytes(path: str) -> Any:
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")


def _guess_encoding(path: str) -> str:
    if path.lower().endswith(".zst"):
        return "utf-8"
    with _open_bytes(path) as file:
        start = file.read(_SNIFFED_BYTES)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        # A character cut in two by the end of the sample is not a wrong encoding.
        return "utf-8" if error.start >= len(start) - 4 and len(start) == _SNIFFED_BYTES else "latin-1"
    return "utf-8"


def _first_text(path: str, encoding: str) -> str:
    with _open_bytes(path) as file:
        start: bytes = file.read(64 * 1024)
    return start.decode("utf-8-sig" if encoding == "utf-8" else encoding, errors="replace")


def _guess_delimiter(path: str, encoding: str) -> str:
    """Return the candidate that splits the first line most often, outside quotation marks."""
    if path.lower().endswith(".zst"):
        return ","
    first = next(iter(_first_text(path, encoding).splitlines()), "")
    fields = {mark: len(next(csv.reader([first], delimiter=mark), [])) for mark in (",", ";", "\t", "|")}
    return max(fields, key=lambda mark: fields[mark])


def _header(path: str, encoding: str, delimiter: str) -> list[str]:
    if path.lower().endswith(".zst"):
        return []
    if len(delimiter) != 1:
        raise ConfigError(f"`delimiter` must be one character; got {delimiter!r}.")
    return next(csv.reader(_first_text(path, encoding).splitlines(), delimiter=delimiter), [])


def _refuse_repeated_names(names: list[str], where: str) -> None:
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        shown = ", ".join(repr(name) for name in repeated[:5])
        raise DataError(f"{where} has the column {shown} more than once; rename the columns so that each is unique.")


def _sha256(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
