"""Open data: a data frame of any library, a mapping of columns, or files read by DuckDB without loading."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenhand.errors import ConfigError, DataError, did_you_mean, problem
from evenhand.messages import Message
from evenhand.stats.types import FloatArray
from evenhand.table.engines import Frame, collect, connect, needs_portable_sql, remote_engine_name, require_few_rows
from evenhand.table.files import FileOptions, MisreadTypeError, engine_errors, open_files
from evenhand.table.formats import matching_files, read_foreign, refuse_repeated_names
from evenhand.table.frames import BACKENDS, Column, TableData, check_shapes
from evenhand.table.keys import NUMBERS, Kind, kinds_of, label_of, unusable
from evenhand.table.messages import say
from evenhand.table.plain import NOT_PLAIN, is_long, plain_columns
from evenhand.table.roles import Prediction, Roles

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "FileOptions",
    "Frame",
    "MisreadTypeError",
    "Source",
    "engine_errors",
    "fetch",
    "fetch_arrays",
    "open_source",
]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Source:
    """Opened data: a narwhals frame, its original library, and the paths of files.

    `names` are all columns of the data, and `frame` has the requested columns. `connection` is evenhand's DuckDB
    connection for it, if any; `labels` are value labels of the file; `all_rows` is the frame before filtering
    and `counted_filter` the filter, if there is one.
    """

    frame: Frame
    backend: str | None
    names: tuple[str, ...]
    paths: tuple[str, ...] = ()
    notes: tuple[Message, ...] = ()
    connection: duckdb.DuckDBPyConnection | None = None
    labels: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    all_rows: Frame | None = None
    counted_filter: nw.Expr | None = None

    def kinds(self) -> dict[str, Kind]:
        """Return the kind of every column; columns not requested are 'unread'."""
        with engine_errors():
            kinds = kinds_of(self.frame.collect_schema())
        return {name: "other" if unusable(name) else kinds.get(name, "unread") for name in self.names} | kinds

    @property
    def portable_sql(self) -> bool:
        """Whether the engine needs portable SQL."""
        return needs_portable_sql(self.frame)

    def with_filter(self, counted_filter: nw.Expr, note: Message) -> Source:
        """Return the source with only the rows selected by a filter, and a note on the rest."""
        return replace(
            self,
            frame=self.frame.filter(counted_filter),
            all_rows=self.frame,
            counted_filter=counted_filter,
            notes=(*self.notes, note),
        )

    def fingerprints(self) -> list[dict[str, str | int]]:
        """Return name, size and SHA-256 of each file; empty if the data are not in files."""
        return [
            {"name": os.path.basename(path), "bytes": os.path.getsize(path), "sha256": _sha256(path)}
            for path in self.paths
        ]

    def first_rows(self, bad: nw.Expr, most: int) -> list[int]:
        """Return the numbers of the first bad rows, counted from 1; empty if the rows have no order."""
        frame = self.frame if self.all_rows is None else self.all_rows
        marked = frame.select(evenhand_bad=bad if self.counted_filter is None else bad & self.counted_filter)
        if remote_engine_name(marked) is not None:
            return []
        if isinstance(marked, nw.LazyFrame) and not marked.implementation.is_duckdb():
            marked = collect(marked)
        if isinstance(marked, nw.DataFrame):
            numbered = marked.with_row_index("evenhand_row").filter(nw.col("evenhand_bad")).head(most)
            return [int(number) + 1 for number in numbered["evenhand_row"].to_list()]
        if self.connection is None or len(self.paths) > 1:
            return []
        with _in_order(self.connection):
            rows = marked.to_native().project("row_number() over () as evenhand_row, evenhand_bad")
            first = rows.filter("evenhand_bad").order("evenhand_row").limit(most).fetchall()
        return [int(row[0]) for row in first]

    def head(self, rows: int) -> Frame:
        """Return the first rows; rows of a file are cached, since every access would read the file again."""
        if self.connection is None:
            return self.frame.head(rows)
        native = self.frame.to_native()
        with _in_order(self.connection), _each_apart(self.connection):
            native.limit(rows).query("first_rows", "create temp table evenhand_head as from first_rows")
        frame: Frame = nw.from_native(self.connection.table("evenhand_head"))
        return frame


@contextmanager
def _in_order(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Make DuckDB preserve the row order, which costs memory and is rarely needed."""
    connection.execute("set preserve_insertion_order = true")
    try:
        yield
    finally:
        connection.execute("set preserve_insertion_order = false")


@contextmanager
def _each_apart(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Disable DuckDB's search for common subexpressions, which takes minutes for thousands of columns."""
    connection.execute("set disabled_optimizers = 'common_subexpressions'")
    try:
        yield
    finally:
        connection.execute("set disabled_optimizers = ''")


def open_source(
    data: TableData | None,
    options: FileOptions = FileOptions(),  # noqa: B008 it is frozen
    columns: Collection[str] | None = None,
) -> Source:
    """Open some or all columns of a data frame, a mapping of columns, or the path or glob of files.

    Examples
    --------
    >>> source = open_source({"race": ["A", "B"], "risk": [0.2, 0.7]}, columns=["race"])
    >>> source.names, source.frame.collect_schema().names()
    (('race', 'risk'), ['race'])
    """
    if isinstance(data, str | os.PathLike):
        return _open_path(os.fspath(data), options, columns)
    if isinstance(data, Mapping):
        missing, connection = options.missing_values, connect(options.memory_limit)
        connection.register("columns_of_mapping", _arrays_of(data, columns, missing))
        frame = plain_columns(nw.from_native(connection.table("columns_of_mapping")), columns, missing)
        return Source(frame=frame, backend=None, names=tuple(map(str, data)), connection=connection)
    return _open_frame(data, options, columns)


def _open_path(path: str, options: FileOptions, columns: Collection[str] | None) -> Source:
    paths = matching_files(path)
    foreign = read_foreign(paths[0], options.missing_values) if len(paths) == 1 else None
    if foreign is not None:
        source = open_source(foreign.data, options, columns)
        return replace(source, backend=None, paths=tuple(paths), notes=foreign.notes, labels=foreign.labels)
    files = open_files(path, options, columns)
    return Source(
        frame=plain_columns(nw.from_native(files.relation), None, options.missing_values),
        backend=None,
        names=files.names,
        paths=files.paths,
        notes=files.notes,
        connection=files.connection,
    )


def _open_frame(data: TableData | None, options: FileOptions, columns: Collection[str] | None) -> Source:
    frame = _as_narwhals(data)
    with engine_errors():
        names = tuple(frame.collect_schema().names())
    backend, own_connection = frame.implementation.name.lower(), None
    if isinstance(frame, nw.DataFrame) and backend == "pyarrow":
        kept = [name for name in names if columns is None or name in columns]
        if any(is_long(frame.get_column(name)) for name in kept):
            # Arrow cannot compare or multiply such numbers with fractions; DuckDB reads the same memory.
            refuse_repeated_names(frame.columns, "the Arrow table", any_case=True)
            own_connection = connect()
            frame = nw.from_native(own_connection.from_arrow(frame.to_native()))
    with engine_errors():
        plain = plain_columns(frame, columns, options.missing_values)
    return Source(frame=plain, backend=backend if backend in BACKENDS else None, names=names, connection=own_connection)


def _as_narwhals(data: TableData | None) -> Frame:
    """Return a data frame of any library as a narwhals frame."""
    refuse_repeated_names(_eager_names(data), "the data frame")
    try:
        frame: Frame = nw.from_native(_with_text_names(data))
    except TypeError as error:
        raise DataError(
            "`data` must be a data frame (pandas, Polars, PyArrow, DuckDB, PySpark, ibis), a mapping of "
            "columns or a file path; got {name}.",
            name=type(data).__name__,
        ) from error
    return frame


def fetch(frame: Frame) -> dict[str, list[Any]]:
    """Return a small frame as Python lists with None for missing values; a lazy frame is executed in its engine."""
    if isinstance(frame, nw.DataFrame):
        return {name: _listed(frame.get_column(name)) for name in frame.columns}
    if frame.implementation.is_duckdb():
        native = frame.to_native()
        rows = native.fetchall()
        return {name: [row[position] for row in rows] for position, name in enumerate(native.columns)}
    return fetch(collect(frame))


def fetch_arrays(frame: Frame) -> dict[str, npt.NDArray[Any]]:
    """Return a numeric frame without missing values as NumPy arrays."""
    if isinstance(frame, nw.DataFrame):
        return {name: frame.get_column(name).to_numpy() for name in frame.columns}
    if frame.implementation.is_duckdb():
        return dict(frame.to_native().fetchnumpy())
    return fetch_arrays(collect(frame))


def _listed(column: nw.Series[Any]) -> list[Any]:
    absent = column.is_null().to_list()
    return [None if gone else value for value, gone in zip(column.to_list(), absent, strict=True)]


# Columns of frames and mappings -------------------------------------------------------------------


def _eager_names(data: object) -> list[str]:
    """Return the column names of a pandas-like frame or an Arrow table, which may repeat."""
    names: Any = getattr(data, "columns", ()) if hasattr(data, "iloc") else getattr(data, "column_names", ())
    return [str(name) for name in names]


def _with_text_names(data: T) -> T:
    """Return a pandas-like frame with column names converted to text, as in roles."""
    names = getattr(data, "columns", ()) if hasattr(data, "iloc") else ()
    if all(isinstance(name, str) for name in names):
        return data
    renamed: T = getattr(data, "set_axis")([str(name) for name in names], axis=1)  # noqa: B009 of pandas-like frames
    return renamed


def _arrays_of(columns: Mapping[Any, Any], wanted: Collection[str] | None, missing: Sequence[str]) -> dict[str, Any]:
    """Return the wanted columns of a mapping as arrays readable by DuckDB."""
    if not columns:
        raise DataError("the mapping has no columns.")
    named = {str(name): _array(values) for name, values in columns.items()}
    refuse_repeated_names(map(str, columns), "the mapping", any_case=True)
    check_shapes(named)
    chosen = [name for name in named if wanted is None or name in wanted] or list(named)[:1]
    return {name: _readable(np.asanyarray(named[name]), missing) for name in chosen}


def _array(values: Any) -> Column:
    if isinstance(values, str | np.ma.MaskedArray):
        return values
    try:
        array = np.asarray(values)
    except ValueError:  # sequences of different lengths
        array = np.asarray(values, dtype=object)
    if array.dtype.kind not in "US" or isinstance(values, np.ndarray):
        return array
    # NumPy converts numbers mixed with text to text; keep the objects.
    return np.asarray(values, dtype=object)


def _readable(array: npt.NDArray[Any], missing: Sequence[str]) -> npt.NDArray[Any]:
    if array.dtype.kind == "c":
        return np.full(len(array), b"", dtype=object)  # DuckDB has no complex type; bytes are refused, too
    if array.dtype.kind in "SU":  # DuckDB reads fixed-width text as an enum; objects become plain text
        return array.astype(object)
    if array.dtype.kind == "M":
        return array.astype("datetime64[us]")
    return _readable_objects(array, missing) if array.dtype.kind == "O" else array


def _readable_objects(array: npt.NDArray[Any], missing: Sequence[str]) -> npt.NDArray[Any]:
    if isinstance(array, np.ma.MaskedArray):
        return array
    words = set(filter(None, missing))
    values = [None if _is_missing(v, words) else v for v in array]
    kinds = {bool if isinstance(v, np.bool_) else type(v) for v in values if v is not None}
    if kinds & NOT_PLAIN:
        return np.full(len(array), b"", dtype=object)  # columns of bytes are refused
    return np.array([_text_or_none(v) for v in values] if _is_mixed(kinds) else values, dtype=object)


def _is_missing(value: Any, words: Collection[str]) -> bool:
    """Return whether a Python value is missing: a word for missing, None, nan, NaT or pandas' NA."""
    if isinstance(value, str):
        return value in words
    if value is None or type(value).__name__ == "NAType":
        return True
    with suppress(ValueError):  # of arrays
        return bool(value != value)
    return False


def _is_mixed(kinds: set[type]) -> bool:
    """Return whether Python values have several types that cannot share a column."""
    numbers = {kind for kind in kinds if kind is not bool and issubclass(kind, int | float | Decimal | np.number)}
    return len(kinds - numbers) + bool(numbers) > 1


def _text_or_none(value: object) -> str | None:
    return None if value is None else label_of(value)


def _sha256(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def with_thresholds(roles: Roles, source: Source, kinds: Mapping[str, Kind]) -> tuple[Roles, Source]:
    """Return roles with percentiles and capacities converted to thresholds, and the source with notes."""
    predictions, notes = dict(roles.predictions), list(source.notes)
    for name, prediction in predictions.items():
        if prediction.percentile is not None or prediction.capacity is not None:
            threshold, note = _cut(source, kinds, name, prediction)
            predictions[name] = prediction.model_copy(update={"threshold": threshold})
            notes.append(note)
    if len(notes) == len(source.notes):
        return roles, source
    return roles.model_copy(update={"predictions": predictions}), replace(source, notes=tuple(dict.fromkeys(notes)))


def _cut(source: Source, kinds: Mapping[str, Kind], model: str, prediction: Prediction) -> tuple[float, Message]:
    """Return the threshold implied by a percentile or a capacity of a model's scores, and a note."""
    percentile, whom = prediction.percentile, say("everybody")
    role = "capacity" if percentile is None else "percentile"
    what = problem("`{role}` of the model {model!r}", role=role, model=model)
    for column in (prediction.column, None if percentile is None else percentile.among):
        if column is not None and column not in kinds:
            raise ConfigError(
                "{what} needs column {column!r}, which is not in the data; {hint}",
                what=what,
                column=column,
                hint=did_you_mean(column, kinds),
            )
    if kinds[prediction.column] not in NUMBERS:
        raise ConfigError(
            "{what} needs scores; column {column!r} does not hold numbers.", what=what, column=prediction.column
        )
    selected_rows = source.frame
    if percentile is not None and percentile.among is not None:
        selected_rows = selected_rows.filter(nw.col(percentile.among).cast(nw.String) == str(percentile.value))
        whom = say("people_with", column=percentile.among, value=str(percentile.value))
    with engine_errors():
        require_few_rows(selected_rows)
        scores = np.asarray(
            fetch_arrays(selected_rows.select(score=nw.col(prediction.column).cast(nw.Float64)))["score"], np.float64
        )
    known = scores[np.isfinite(scores)]
    if known.size == 0:
        raise DataError("{what}: no score of {whom} is known; mend `among` or `value`.", what=what, whom=whom)
    if percentile is None:
        return _capacity(np.sort(known)[::-1], model, float(prediction.capacity or 0.0))
    cut = float(np.percentile(known, percentile.of))  # NumPy's, linear
    return cut, say("selects_above", model=model, cut=cut, percentile=percentile.of, whom=whom, people=int(known.size))


def _capacity(scores: FloatArray, model: str, capacity: float) -> tuple[float, Message]:
    """Return the highest score that is not selected, and a note; people tied at the cut-off are not selected.

    `scores` must be in descending order.
    """
    places = int(capacity * len(scores)) if capacity < 1 else int(capacity)
    if not 0 < places < len(scores):
        raise DataError(
            "the `capacity` of the model {model!r} is {capacity:g}, which selects {places} of {people:,} people; it "
            "must select some and not all.",
            model=model,
            capacity=capacity,
            places=places,
            people=len(scores),
        )
    cut = float(scores[places])
    selected, tied = int((scores > cut).sum()), int((scores == cut).sum())
    note = "capacity_tied" if selected < places else "capacity"
    return cut, say(note, model=model, cut=cut, places=places, selected=selected, tied=tied)
