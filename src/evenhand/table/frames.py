"""The one place that builds data frames: named columns in, a native pandas, Polars or PyArrow frame out.

The package itself knows no data frame library; it speaks narwhals, and narwhals loads the library that the
caller has installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, MissingExtraError, count, require_choice

BACKENDS = ("pandas", "polars", "pyarrow")
"""The data frame libraries that can be built, in the order in which they are looked for."""

Column = Sequence[Any] | npt.NDArray[Any]


def installed_backend() -> str | None:
    """Return the first installed of pandas, Polars and PyArrow, or None when there is none.

    Nothing is imported to find out.

    Examples
    --------
    >>> installed_backend() in {"pandas", "polars", "pyarrow", None}
    True
    """
    return next((name for name in BACKENDS if _is_installed(name)), None)


def build_frame(columns: Mapping[str, Column], backend: str | None = None) -> Any:
    """Build a native data frame from named columns.

    Parameters
    ----------
    columns : mapping of str to sequence or numpy.ndarray
        One entry per column, all of one length. None, or a masked entry of a masked array, is missing.
    backend : {"pandas", "polars", "pyarrow"}, optional
        The library of the frame. By default the first of them that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame, pyarrow.Table or dict
        The frame, columns in the order given. With no `backend` named and none of the three installed, a dict
        of numpy arrays, with dtype object where values are missing.

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
    A column keeps the type that the library itself gives it: whole numbers with missing values are floats in
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
        return {name: _as_array(column) for name, column in columns.items()}

    import narwhals.stable.v2 as nw

    plain = {name: _as_plain(column) for name, column in columns.items()}
    library = cast(Literal["pandas", "polars", "pyarrow"], chosen)
    return nw.from_dict(plain, backend=library).to_native()


def _is_installed(module: str) -> bool:
    return find_spec(module) is not None


def _require_installed(backend: str) -> None:
    if not _is_installed(backend):
        raise MissingExtraError(
            f"backend={backend!r} needs the package '{backend}', which is not installed; "
            f"install it with: pip install {backend}"
        )


def check_shapes(columns: Mapping[str, Column]) -> None:
    """Refuse text as a column, tables as columns, and columns of different lengths."""
    problems = [
        f"column {name!r} must be a one-dimensional sequence; got {_shape_in_words(column)}."
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
        raise DataError(f"all columns must have the same length; {lengths}.")


def _shape_in_words(column: Column) -> str:
    return f"an array of shape {column.shape}" if isinstance(column, np.ndarray) else repr(column)


def _as_plain(column: Column) -> Any:
    """Return numbers as they are, and text or values with gaps as a list, which all libraries type alike."""
    if not isinstance(column, np.ndarray):
        return list(column)
    if isinstance(column, np.ma.MaskedArray):
        return column.tolist() if np.ma.is_masked(column) else _as_plain(np.asarray(column.data))
    return column.tolist() if column.dtype.kind in "OUS" else column


def _as_array(column: Column) -> npt.NDArray[Any]:
    plain = _as_plain(column)
    if isinstance(plain, np.ndarray):
        return plain
    return np.array(plain, dtype=object if any(value is None for value in plain) else None)
