"""Columns as codes into their distinct values, computed in the data's engine.

Text is compared once per distinct value. The engine returns one number per row, and the distinct values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenhand.stats.types import BoolArray, IntArray
from evenhand.table.engines import collect
from evenhand.table.keys import BLANKS, NUMBERS, SPELLINGS, Kind, labels_of, plain_value, sort_key
from evenhand.table.sources import Frame, fetch, fetch_arrays

ABSENT_CODE = -1


@dataclass(frozen=True, eq=False)
class Coded:
    """A column as codes into its distinct values.

    Parameters
    ----------
    codes : the code of each row; -1 if the value is missing or blank.
    values : the distinct values, numbers sorted by size, then other values sorted by their text.
    """

    codes: IntArray
    values: tuple[Any, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The text of each value, identical for all engines."""
        return labels_of(self.values)

    @property
    def absent(self) -> int:
        """The number of rows with missing values."""
        return int((self.codes < 0).sum())


CodedAndNumbers: TypeAlias = tuple[dict[str, Coded], dict[str, npt.NDArray[Any]]]


def code_columns(
    frame: Frame, columns: Mapping[str, tuple[str, Kind]], numbers: Mapping[str, nw.Expr]
) -> CodedAndNumbers:
    """Return coded columns and numeric columns, all in the same row order.

    Parameters
    ----------
    frame
        The data.
    columns
        The column and its kind, by a name of the caller's choice.
    numbers
        Numeric expressions without missing values.

    Examples
    --------
    >>> from evenhand.table.sources import open_source
    >>> frame = open_source({"who": ["b", "a", None, "b"], "n": [7, 7, 9, 8]}).frame
    >>> coded, numbers = code_columns(frame, {"who": ("who", "text")}, {"n": nw.col("n")})
    >>> order = np.lexsort((coded["who"].codes, numbers["n"]))  # engines return rows in any order
    >>> coded["who"].values, coded["who"].codes[order].tolist()
    (('a', 'b'), [0, 1, 1, -1])
    """
    keys = {name: f"value{position}" for position, name in enumerate(columns)}
    number_keys = {name: f"number{position}" for position, name in enumerate(numbers)}
    selected: Frame = frame.select(
        **{keys[name]: _as_read(column, kind) for name, (column, kind) in columns.items()},
        **{number_keys[name]: expression for name, expression in numbers.items()},
    )
    if isinstance(selected, nw.LazyFrame) and not selected.implementation.is_duckdb():
        selected = collect(selected)
    is_number = {keys[name]: kind in (*NUMBERS, "boolean") for name, (_, kind) in columns.items()}
    number_names = list(number_keys.values())
    if isinstance(selected, nw.DataFrame):
        coded, arrays = _in_memory(selected, is_number, number_names)
    else:
        coded, arrays = _in_engine(selected, is_number, number_names)
    return (
        {name: coded[key] for name, key in keys.items()},
        {name: np.asarray(arrays[key]) for name, key in number_keys.items()},
    )


def _as_read(column: str, kind: Kind) -> nw.Expr:
    """Return an expression for a column as text, a number or a boolean, before unification of true and false."""
    return nw.col(column).cast(nw.String) if kind == "text" else plain_value(column, kind)


def _in_memory(frame: nw.DataFrame[Any], is_number: Mapping[str, bool], numbers: list[str]) -> CodedAndNumbers:
    coded = {
        name: _of_numbers(frame.get_column(name)) if number else _of_text(frame.get_column(name))
        for name, number in is_number.items()
    }
    return coded, fetch_arrays(frame.select(*numbers)) if numbers else {}


def _of_numbers(column: nw.Series[Any]) -> Coded:
    absent = column.is_null().to_numpy()
    return _coded_numbers(column.fill_null(False if column.dtype == nw.Boolean else 0).to_numpy(), absent)


def _coded_numbers(values: npt.NDArray[Any], absent: BoolArray) -> Coded:
    if values.dtype.kind == "f":
        absent = absent | np.isnan(values)
    if not absent.any():
        distinct, codes = _distinct(values)
        return Coded(codes, tuple(distinct.tolist()))
    codes = np.full(len(values), ABSENT_CODE, dtype=np.int64)
    distinct, codes[~absent] = _distinct(values[~absent])
    return Coded(codes, tuple(distinct.tolist()))


def _distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the sorted distinct values and the rank of each value; dense integers need no sorting."""
    if values.dtype.kind in "iu" and values.size:
        low, span = int(values.min()), int(values.max()) - int(values.min()) + 1
        if span <= 4 * values.size + 1_000:
            shifted = (values - values.min()).astype(np.int64, copy=False)
            seen = np.bincount(shifted, minlength=span) > 0
            return np.flatnonzero(seen) + low, shifted if seen.all() else (np.cumsum(seen) - 1).take(shifted)
    distinct, codes = np.unique(values, return_inverse=True)
    return distinct, codes.astype(np.int64)


def _of_text(column: nw.Series[Any]) -> Coded:
    """Return a text column in memory as codes, using functions of its library."""
    native = column.to_native()
    if column.implementation.is_pandas_like():
        codes, values = native.factorize()
        return _in_order(np.asarray(codes, dtype=np.int64), list(values))
    if column.implementation.is_pyarrow():
        encoded = native.dictionary_encode().unify_dictionaries()
        parts = [np.asarray(chunk.indices.fill_null(ABSENT_CODE), dtype=np.int64) for chunk in encoded.chunks]
        values = encoded.chunk(0).dictionary.to_pylist() if parts else []
        return _in_order(np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64), values)
    values = sorted(column.drop_nulls().unique().to_list())
    if not values:
        return Coded(np.full(len(column), ABSENT_CODE, dtype=np.int64), ())
    codes = nw.from_native(column.cast(nw.Enum(values)).to_native().to_physical(), series_only=True)
    return _in_order(codes.cast(nw.Int64).fill_null(ABSENT_CODE).to_numpy(), values)


def _in_engine(frame: nw.LazyFrame[Any], is_number: Mapping[str, bool], numbers: list[str]) -> CodedAndNumbers:
    """Code the distinct texts within DuckDB and join the codes to the rows, so that rows are fetched as numbers."""
    rows, texts = frame, dict[str, nw.LazyFrame[Any]]()
    for name in (name for name, number in is_number.items() if not number):
        distinct = frame.group_by(name).agg(nw.len().alias("rows")).filter(~nw.col(name).is_null())
        rank = nw.col("rows").cum_sum().over(order_by=name) - 1
        texts[name] = distinct.with_columns(rows=nw.lit(1)).select(name, **{f"code:{name}": rank})
        rows = rows.join(texts[name], on=name, how="left")
    expressions = {
        name: nw.col(f"code:{name}").fill_null(ABSENT_CODE).cast(nw.Int64) if name in texts else nw.col(name)
        for name in is_number
    }
    arrays = fetch_arrays(rows.select(**expressions, **{name: nw.col(name) for name in numbers}))
    coded = {}
    for name in is_number:
        if name in texts:
            coded[name] = _in_order(np.asarray(arrays[name]), _texts_by_code(fetch(texts[name]), name))
        else:
            coded[name] = _coded_numbers(np.ma.getdata(arrays[name]), np.ma.getmaskarray(arrays[name]))
    return coded, arrays


def _texts_by_code(fetched: Mapping[str, list[Any]], name: str) -> list[Any]:
    by_code = dict(zip((int(code) for code in fetched[f"code:{name}"]), fetched[name], strict=True))
    return [by_code[code] for code in range(len(by_code))]


def _in_order(codes: IntArray, values: list[Any]) -> Coded:
    """Recode so that values are sorted, with one spelling of true and false; blank text becomes missing."""
    texts = [value.lower() if value in SPELLINGS else value for value in values]
    distinct = sorted({text for text in texts if str(text).strip(BLANKS)}, key=sort_key)
    code = {text: index for index, text in enumerate(distinct)}
    new = np.array(
        [*(code.get(text, ABSENT_CODE) for text in texts), ABSENT_CODE]
    )  # the last element is for missing values, -1
    return Coded(codes if (new[:-1] == np.arange(len(texts))).all() else new.take(codes), tuple(distinct))
