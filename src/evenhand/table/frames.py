"""Arrays and data frames of any library, as inputs and outputs.

Outputs: only this module builds data frames; it makes native pandas, Polars or PyArrow frames from named columns.
Inputs: an array or Series may replace a column name; it is added to the data as a column.

The package does not import a data frame library; it uses narwhals, which loads the library that the caller has
installed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal, Protocol, TypeAlias, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt
from narwhals.typing import IntoDataFrame, IntoFrame

from evenhand.errors import ConfigError, DataError, MissingExtraError, count, problem, require_choice
from evenhand.table.engines import Frame, collect, require_few_rows
from evenhand.table.roles import Prediction

BACKENDS = ("pandas", "polars", "pyarrow")
"""The data frame libraries supported for output, in order of preference."""

Column = Sequence[Any] | npt.NDArray[Any]


class NativeFrame(IntoDataFrame, Protocol):
    """A data frame of pandas, Polars or PyArrow.

    If none of them is installed, `build_frame` returns a dict of NumPy arrays instead.
    """

    def __getitem__(self, key: Any, /) -> Any: ...
    def __getattr__(self, name: str, /) -> Any: ...


class ColumnValues(Protocol):
    """One value per row: a NumPy array, or a Series of any library."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of every axis."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...


TableData: TypeAlias = IntoFrame | Mapping[Any, Any] | str | os.PathLike[str]
"""Data of a table: a data frame of any library, a mapping of columns, or the path of files."""


class Items(Protocol):
    """Anything with a length and items: a list, an array, a Series of any library."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...


ColumnArgument: TypeAlias = str | Items
"""A column name, or an array or Series of the values."""

GroupsArgument: TypeAlias = ColumnArgument | Mapping[str, ColumnArgument] | IntoDataFrame
"""Group columns: names, lists of names for intersections, arrays, or a data frame or mapping of arrays."""

PredictionsArgument: TypeAlias = ColumnArgument | Mapping[str, ColumnArgument | Mapping[str, Any] | Prediction]
"""Predictions: columns, or a mapping from model names to columns or settings."""


def installed_backend() -> str | None:
    """Return the first installed library of pandas, Polars and PyArrow; None if none is installed.

    Nothing is imported.

    Examples
    --------
    >>> installed_backend() in {"pandas", "polars", "pyarrow", None}
    True
    """
    return next((name for name in BACKENDS if _is_installed(name)), None)


def build_frame(columns: Mapping[str, Column], backend: str | None = None) -> NativeFrame:
    """Build a native data frame from named columns.

    Parameters
    ----------
    columns : mapping of str to sequence or numpy.ndarray
        One entry per column, all of one length. None, or a masked entry of a masked array, is missing.
    backend : {"pandas", "polars", "pyarrow"}, optional
        The library of the frame; by default the first installed one.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame, pyarrow.Table or dict
        The frame, with columns in the given order. Without `backend` and with none of the three installed, a dict
        of numpy arrays, with dtype object if values are missing.

    Raises
    ------
    ConfigError
        `backend` is not a known name.
    MissingExtraError
        The `backend` asked for is not installed.
    DataError
        The columns differ in length or have more than one dimension.

    Notes
    -----
    Each library chooses the types of its columns: whole numbers with missing values are floats in
    pandas and nullable integers in Polars and PyArrow.

    Examples
    --------
    >>> build_frame({"race": ["White", None], "n": [3, 4]}, backend="polars").rows()
    [('White', 3), (None, 4)]
    >>> build_frame({"n": [3, 4]}, backend="panda")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: `backend` got 'panda'; did you mean 'pandas'?
    """
    if backend is not None:
        require_choice("backend", backend, BACKENDS)
        _require_installed(backend)
    check_shapes(columns)
    chosen = backend or installed_backend()
    if chosen is None:
        return cast(NativeFrame, {name: _as_numpy(column) for name, column in columns.items()})
    plain = {name: _as_plain(column) for name, column in columns.items()}
    library = cast(Literal["pandas", "polars", "pyarrow"], chosen)
    frame: NativeFrame = nw.from_dict(plain, backend=library).to_native()
    return frame


def _is_installed(module: str) -> bool:
    return find_spec(module) is not None


def _require_installed(backend: str) -> None:
    if not _is_installed(backend):
        raise MissingExtraError(
            "backend={backend!r} needs the package '{backend}', which is not installed; install it with: "
            "pip install {backend}",
            backend=backend,
        )


def check_shapes(columns: Mapping[str, Column]) -> None:
    """Raise for columns that are text or multidimensional, and for columns of different lengths."""
    problems = [
        problem(
            "column {name!r} must be a one-dimensional sequence; got {shape}.", name=name, shape=_shape_in_words(column)
        )
        for name, column in columns.items()
        if isinstance(column, str) or (isinstance(column, np.ndarray) and column.ndim != 1)
    ]
    if problems:
        raise DataError(problems)
    first_of_length: dict[int, str] = {}
    for name, column in columns.items():
        first_of_length.setdefault(len(column), name)
    if len(first_of_length) > 1:
        lengths = ", ".join(f"{name!r} has {count(n, 'value')}" for n, name in first_of_length.items())
        raise DataError("all columns must have the same length; {lengths}.", lengths=lengths)


def _shape_in_words(column: Column) -> str:
    return f"an array of shape {column.shape}" if isinstance(column, np.ndarray) else repr(column)


def _as_plain(column: Column) -> list[Any] | npt.NDArray[Any]:
    """Return numeric arrays unchanged, and text or columns with missing values as lists."""
    if not isinstance(column, np.ndarray):
        return list(column)
    if isinstance(column, np.ma.MaskedArray):
        return list(column.tolist()) if np.ma.is_masked(column) else _as_plain(np.asarray(column.data))
    return list(column.tolist()) if column.dtype.kind in "OUS" else column


def _as_numpy(column: Column) -> npt.NDArray[Any]:
    plain = _as_plain(column)
    if isinstance(plain, np.ndarray):
        return plain
    return np.array(plain, dtype=object if any(value is None for value in plain) else None)


# Arrays in place of column names --------------------------------------------------------------------------------------


def draw_rows(
    frame: Frame, rows: int, strata: Sequence[str], rng: np.random.Generator, number: str | None = None
) -> NativeFrame:
    """Return rows drawn with replacement; combinations of `strata` keep their shares.

    Parameters
    ----------
    frame
        A narwhals frame.
    rows
        The approximate number of rows to draw; every combination is drawn at least once.
    strata
        The columns whose combinations keep their shares.
    number
        An id column to overwrite with row numbers, because people may be drawn twice.

    Examples
    --------
    >>> import narwhals as nw
    >>> frame = nw.from_dict({"g": ["a", "b", "b", "b"], "x": [1, 2, 3, 4]}, backend="polars")
    >>> drawn = draw_rows(frame, 8, ["g"], np.random.default_rng(0))
    >>> sorted(drawn["g"])
    ['a', 'a', 'b', 'b', 'b', 'b', 'b', 'b']
    """
    require_few_rows(frame)
    collected = collect(frame) if isinstance(frame, nw.LazyFrame) else frame
    rows_by_kind: dict[tuple[Any, ...], list[int]] = {}
    columns = [collected.get_column(name).to_list() for name in strata]
    for row in range(len(collected)):
        rows_by_kind.setdefault(tuple(column[row] for column in columns), []).append(row)
    chosen = [
        rng.choice(rows_of_kind, max(1, round(rows * len(rows_of_kind) / len(collected))))
        for rows_of_kind in rows_by_kind.values()
    ]
    drawn = collected[np.concatenate(chosen).tolist()]
    if number is not None:
        numbers = nw.new_series(number, list(range(len(drawn))), backend=drawn.implementation)
        drawn = drawn.with_columns(numbers)
    native: NativeFrame = drawn.to_native()
    return native


def is_array(value: object) -> bool:
    """Return whether a value is an array or a Series of any library; lists are not, since they may be names.

    Examples
    --------
    >>> is_array(np.arange(3)), is_array("race"), is_array(["race", "sex"])
    (True, False, False)
    """
    if value is None or isinstance(value, str | list | tuple | Mapping):
        return False
    return _series(value) is not None or (hasattr(value, "__array__") and not is_frame(value))


def is_frame(value: object) -> bool:
    """Return whether a value is a data frame of any library, in memory or lazy."""
    return isinstance(nw.from_native(value, pass_through=True), nw.DataFrame | nw.LazyFrame)


def _series(value: object) -> nw.Series[Any] | None:
    wrapped = nw.from_native(value, pass_through=True, allow_series=True)
    return wrapped if isinstance(wrapped, nw.Series) else None


def _holds_values(value: object) -> bool:
    """Return whether an argument consists of values instead of naming a column."""
    return is_array(value) or isinstance(value, range) or (isinstance(value, list | tuple) and len(value) > 1)


def _own_name(values: object) -> str | None:
    name = getattr(values, "name", None)
    return name if isinstance(name, str) and name else None


class Columns:
    """Data, with added columns for arrays passed instead of column names.

    Parameters
    ----------
    data : a data frame in memory, a mapping of columns, or None if there are only arrays.

    Examples
    --------
    >>> columns = Columns({"sex": ["f", "m"]})
    >>> columns.add(np.array([0.2, 0.7]), "`outcome`"), sorted(columns.data)
    ('outcome', ['outcome', 'sex'])
    """

    def __init__(self, data: TableData | None) -> None:
        self._data, self._added = data, dict[str, ColumnValues]()
        # Indices must be equal: rows are never aligned silently.
        self._index = _index(data)
        self._rows: int | None = None
        self._first = "the data"

    @property
    def data(self) -> TableData | None:
        """The data with all added columns; the original object if there are none."""
        if not self._added:
            return self._data
        if isinstance(self._data, Mapping | None):
            return {**(self._data or {}), **{name: _plain(values) for name, values in self._added.items()}}
        frame = self._eager("an array")
        added = [_as_series(frame, name, values) for name, values in self._added.items()]
        native: NativeFrame = frame.with_columns(*added).to_native()
        return native

    def add(self, values: object, role: str, name: str | None = None) -> str:
        """Add a column, and return its unique name, derived from `name`, the Series' name, or the role.

        Parameters
        ----------
        values : an array, a Series, or a list of values.
        role : the argument of the values, for messages and as a default name.
        name : the preferred name, overriding the Series' name.
        """
        column = self._checked(values, role)
        preferred = name or _own_name(values) or role.strip("`")
        unique, number = preferred, 2
        while (existing := self._column_of(unique)) is not None:
            if _same(existing, column):
                return unique
            unique, number = f"{preferred} ({number})", number + 1
        self._added[unique] = column
        return unique

    def named(self, value: object, role: str) -> object:
        """Return the column name of an array after adding it; return other values unchanged.

        Lists and mappings of arrays become lists of names.
        """
        if is_array(value):
            return self.add(value, role)
        if isinstance(value, Mapping) and value and all(_holds_values(item) for item in value.values()):
            return [self.add(item, f"{role} {str(name)!r}", str(name)) for name, item in value.items()]
        if isinstance(value, list | tuple) and any(is_array(item) for item in value):
            return [self.add(item, role) if is_array(item) else item for item in value]
        return value

    # The roles of a table -----------------------------------------------------------------------------------------

    def single(self, value: object, role: str) -> object:
        """Return the column name of a role with a single column."""
        return self.add(value, role) if _holds_values(value) else value

    def groups(self, groups: object, role: str = "`groups`") -> object:
        """Return the names of group columns, from an array, a mapping of arrays, or a data frame."""
        groups = _named_columns(groups)
        if isinstance(groups, Mapping):
            for name, values in groups.items():
                if isinstance(values, str):
                    raise ConfigError(
                        "{role} gives the name {name!r} to {values!r}; name columns in a list instead.",
                        role=role,
                        name=name,
                        values=values,
                    )
            return [self.add(values, f"{role} {str(name)!r}", str(name)) for name, values in groups.items()]
        return self._group([groups] if is_array(groups) else groups, role)

    def _group(self, group: object, role: str) -> object:
        if is_array(group):
            return self.add(group, role, _own_name(group) or "group")
        return [self._group(part, role) for part in group] if isinstance(group, list | tuple) else group

    def predictions(self, predictions: object) -> object:
        """Return predictions with arrays replaced by column names; models are named after their columns."""
        if is_array(predictions) or (
            isinstance(predictions, list | tuple) and any(not isinstance(item, str) for item in predictions)
        ):
            predictions = {_own_name(predictions) or "model": predictions}
        if not isinstance(predictions, Mapping):
            return predictions
        return {str(name): self.prediction(str(name), value) for name, value in predictions.items()}

    def prediction(self, name: str, value: object, role: str = "`predictions`") -> object:
        """Return the column of a prediction, or its settings, with arrays replaced by column names."""
        if isinstance(value, Mapping) and "column" in value and not isinstance(value["column"], str):
            return {**value, "column": self.prediction(name, value["column"])}
        if callable(getattr(value, "predict", None)):
            raise ConfigError(
                "{role} {name!r} is a model ({name_2}); give its scores: predictions={{{name!r}: "
                "eh.fitted(model, X)}}.",
                role=role,
                name=name,
                name_2=type(value).__name__,
            )
        return self.add(value, f"{role} {name!r}", name) if _holds_values(value) else value

    # Rows ---------------------------------------------------------------------------------------------------------

    def _checked(self, argument: object, role: str) -> ColumnValues:
        """Return the values as one column; raise if their number or their row order differs from the data."""
        values = _one_column(argument, role)
        if self._rows is None:
            self._rows = self._count(role)
        if self._rows is None:
            self._rows, self._first = len(values), role
        if len(values) != self._rows:
            rows = count(self._rows, "row" if self._first == "the data" else "value")
            raise DataError(
                "{role} has {values}, but {first} has {rows}; give one a row.",
                role=role,
                values=count(len(values), "value"),
                first=self._first,
                rows=rows,
            )
        index = _index(values)
        if index is not None and self._index is not None and not self._index.equals(index):
            raise DataError(
                "{role} is a Series with another index than {first}; bring both into one order, or give its "
                "values with .to_numpy() if the rows already are.",
                role=role,
                first=self._first,
            )
        self._index = index if self._index is None else self._index
        return values

    def _count(self, role: str) -> int | None:
        if not isinstance(self._data, Mapping | None):
            return len(self._eager(role))
        return len(next(iter(self._data.values()))) if self._data else None

    def _eager(self, role: str) -> nw.DataFrame[Any]:
        is_file = isinstance(self._data, str | os.PathLike)
        frame = None if is_file else nw.from_native(self._data, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            what = "a file" if is_file else f"a {type(self._data).__name__}"
            raise ConfigError(
                "{role} is an array, but the data is {what}, whose rows are not in memory in one order; name a "
                "column of it, or load it into a data frame first.",
                role=role,
                what=what,
            )
        return frame

    def _column_of(self, name: str) -> object:
        if name in self._added:
            return self._added[name]
        if isinstance(self._data, Mapping | None):
            return (self._data or {}).get(name)
        frame = self._eager("an array")
        return frame.get_column(name).to_native() if name in frame.columns else None


class _Index(Protocol):
    """The index of a pandas-like object."""

    def equals(self, other: Any, /) -> bool:
        """Return whether another index has the same rows in the same order."""


def _index(values: object) -> _Index | None:
    """Return the index of a pandas-like frame or Series; None for other values."""
    index: _Index | None = getattr(values, "index", None) if hasattr(values, "iloc") else None
    return index


def _named_columns(groups: object) -> object:
    """Return the columns of a two-dimensional array or a data frame by name; other values unchanged."""
    if isinstance(groups, np.ndarray) and groups.ndim == 2 and groups.shape[1] > 1:
        return {f"group {number + 1}": groups[:, number] for number in range(groups.shape[1])}
    if isinstance(groups, Mapping) or not is_frame(groups):
        return groups
    frame: Any = nw.from_native(groups, pass_through=True)
    return {name: frame.get_column(name).to_native() for name in frame.columns}


def _one_column(values: object, role: str) -> ColumnValues:
    """Return the values as one column; raise if they are not one value per row."""
    series = _series(values)
    column: ColumnValues = _as_array(values) if series is None else series.to_native()
    shape = tuple(column.shape)
    if len(shape) == 1:
        return column
    if len(shape) == 2 and shape[1] == 1:
        first: ColumnValues = column[:, 0]
        return first
    hint = "take the column of the positive class: scores[:, 1]" if shape[1:] == (2,) else "give one value a row"
    raise DataError(
        "{role} must be one column; got an array of shape {shape}: {hint}.", role=role, shape=shape, hint=hint
    )


def _as_series(frame: nw.DataFrame[Any], name: str, values: ColumnValues) -> nw.Series[Any]:
    series = _series(values)
    if series is not None and series.implementation is frame.implementation:
        return series.alias(name)
    plain = _plain(values)
    listed = plain.tolist() if plain.dtype.kind in "OUS" else plain
    return nw.new_series(name, listed, backend=frame.implementation)


def _as_array(values: object) -> npt.NDArray[Any]:
    """Return a list or any array as a NumPy array; numbers mixed with text stay numbers."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError("values in place of a column's name must be one a row; got lists of several lengths.") from None
    return np.asarray(values, dtype=object) if isinstance(values, list | tuple) and array.dtype.kind in "US" else array


def _listed(values: object) -> object:
    """Return a list as an array, for arguments that cannot be column names."""
    return _as_array(values) if isinstance(values, list | tuple) else values


def _plain(values: object) -> npt.NDArray[Any]:
    """Return values as a NumPy array, with None for missing values."""
    series = _series(values)
    if series is None:
        return _as_array(values)
    absent = series.is_null()
    if series.dtype.is_numeric() and not absent.any():
        return series.to_numpy()
    column = np.empty(len(series), dtype=object)
    column[:] = [None if gone else value for value, gone in zip(series.to_list(), absent.to_list(), strict=True)]
    return column


def _same(first: object, second: object) -> bool:
    """Return whether two columns contain the same values."""
    left, right = _plain(first), _plain(second)
    return bool(np.array_equal(left, right, equal_nan=left.dtype.kind == right.dtype.kind == "f"))


def name_arrays(data: TableData | None, roles: Mapping[str, object]) -> tuple[TableData | None, dict[str, object]]:
    """Return the data with arrays among the roles added as columns, and roles with their names."""
    columns, named = Columns(data), dict(roles)
    for role in ("id", "outcome", "weight"):
        named[role] = columns.single(named[role], f"`{role}`")
    named["groups"] = columns.groups(named["groups"])
    named["predictions"] = columns.predictions(named["predictions"])
    return columns.data, named


def from_arrays(
    settings: Mapping[str, Any],
    *,
    y_true: object,
    y_pred: object,
    y_score: object,
    sensitive_features: object,
    sample_weight: object,
) -> dict[str, Any]:
    """Return arrays as arguments of `Table`; decisions use the positive value of the outcome."""
    are_numbers = settings.get("outcome_kind") == "number"
    if y_pred is None and y_score is None and not (are_numbers and y_true is not None):
        raise ConfigError("from_arrays needs `y_pred` (decisions) or `y_score` (scores); got neither.")
    columns = Columns(None)
    roles = {
        "outcome": columns.single(_listed(y_true), "`y_true`"),
        "weight": columns.single(_listed(sample_weight), "`sample_weight`"),
    }
    decision = {"kind": "number"} if are_numbers else {"kind": "decision", "selected": settings.get("positive")}
    predictions = {}
    for name_of_argument, argument, kind in (("y_pred", y_pred, decision), ("y_score", y_score, {"kind": "score"})):
        models = argument if isinstance(argument, Mapping) else {} if argument is None else {name_of_argument: argument}
        for name, values in models.items():
            column = columns.prediction(str(name), _listed(values), f"`{name_of_argument}`")
            predictions[str(name)] = {"column": column, **kind}
    single = isinstance(sensitive_features, list | tuple) and not any(map(is_array, sensitive_features))
    groups = {"group": sensitive_features} if single else sensitive_features
    groups = columns.groups(groups, "`sensitive_features`")
    return {**settings, "data": columns.data, **roles, "predictions": predictions, "groups": groups}
