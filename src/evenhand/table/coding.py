"""Columns as whole numbers: each row's place among the distinct values, for statistics that follow who did what.

Text is compared where the data lives. What comes back is one number a row, and the distinct values once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.stats.types import IntArray
from evenhand.table.keys import BLANKS, NUMBERS, Kind, plain_value
from evenhand.table.labels import label_of, sort_key
from evenhand.table.sources import Frame, fetch, fetch_arrays

ABSENT_CODE = -1


@dataclass(frozen=True, eq=False)
class Coded:
    """A column as codes into its distinct values.

    Parameters
    ----------
    codes : one for each row; -1 where the value is missing or blank.
    values : the distinct values, numbers by size, everything else by its text.
    """

    codes: IntArray
    values: tuple[Any, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The text of each value, the same from every engine."""
        return tuple(label_of(value) for value in self.values)

    @property
    def absent(self) -> int:
        """The number of rows without a value."""
        return int((self.codes < 0).sum())


def code_columns(
    frame: Frame, columns: Mapping[str, tuple[str, Kind]], numbers: Mapping[str, nw.Expr]
) -> tuple[dict[str, Coded], dict[str, Any]]:
    """Return columns as codes, and numbers beside them, all in one order of rows.

    Parameters
    ----------
    frame
        The data.
    columns
        By a name of one's own: the column and its kind.
    numbers
        Expressions of the rows that are numbers already, without missing values.

    Examples
    --------
    >>> from evenhand.table.sources import open_source
    >>> frame = open_source({"who": ["b", "a", None, "b"], "n": [7, 7, 9, 8]}).frame
    >>> found, numbers = code_columns(frame, {"who": ("who", "text")}, {"n": nw.col("n")})
    >>> order = np.lexsort((found["who"].codes, numbers["n"]))  # engines return rows in any order
    >>> found["who"].values, found["who"].codes[order].tolist()
    (('a', 'b'), [0, 1, 1, -1])
    """
    places = {f"value{place}": given for place, given in enumerate(columns.values())}
    beside = {f"number{place}": expression for place, expression in enumerate(numbers.values())}
    selected: Any = frame.select(**{name: plain_value(*given) for name, given in places.items()}, **beside)
    if isinstance(selected, nw.LazyFrame) and not selected.implementation.is_duckdb():
        selected = selected.collect()
    is_number = {name: kind in (*NUMBERS, "boolean") for name, (_, kind) in places.items()}
    if isinstance(selected, nw.DataFrame):
        found = {
            name: _of_numbers(selected.get_column(name)) if is_number[name] else _of_text(selected.get_column(name))
            for name in places
        }
        arrays = fetch_arrays(selected.select(*beside)) if beside else {}
    else:
        found, arrays = _in_engine(selected, is_number, list(beside))
    return (
        {name: found[place] for name, place in zip(columns, places, strict=True)},
        {name: np.asarray(arrays[place]) for name, place in zip(numbers, beside, strict=True)},
    )


def _of_numbers(column: nw.Series[Any]) -> Coded:
    absent = column.is_null().to_numpy()
    return _coded_numbers(column.fill_null(False if column.dtype == nw.Boolean else 0).to_numpy(), absent)


def _coded_numbers(values: Any, absent: Any) -> Coded:
    if values.dtype.kind == "f":
        absent = absent | np.isnan(values)
    if not absent.any():
        distinct, codes = _distinct(values)
        return Coded(codes, tuple(distinct.tolist()))
    codes = np.full(len(values), ABSENT_CODE, dtype=np.int64)
    distinct, codes[~absent] = _distinct(values[~absent])
    return Coded(codes, tuple(distinct.tolist()))


def _distinct(values: Any) -> tuple[Any, IntArray]:
    """Return the sorted distinct values and the place of each value among them; a range of numbers needs no sorting."""
    if values.dtype.kind in "iu" and values.size:
        low, span = int(values.min()), int(values.max()) - int(values.min()) + 1
        if span <= 4 * values.size + 1_000:
            shifted = (values - values.min()).astype(np.int64)
            seen = np.bincount(shifted, minlength=span) > 0
            return np.flatnonzero(seen) + low, (np.cumsum(seen) - 1)[shifted]
    distinct, codes = np.unique(values, return_inverse=True)
    return distinct, codes.astype(np.int64)


def _of_text(column: nw.Series[Any]) -> Coded:
    """Return the codes of a text column in memory, by what its library has for it."""
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
    places = nw.from_native(column.cast(nw.Enum(values)).to_native().to_physical(), series_only=True)
    return _in_order(places.cast(nw.Int64).fill_null(ABSENT_CODE).to_numpy(), values)


def _in_engine(frame: Any, is_number: Mapping[str, bool], beside: list[str]) -> tuple[dict[str, Coded], dict[str, Any]]:
    """Give the distinct texts numbers within DuckDB and join these to the rows, so that only numbers are fetched."""
    rows, lists = frame, {}
    for name, number in is_number.items():
        if not number:
            counted = frame.group_by(name).agg(nw.len().alias("one")).filter(~nw.col(name).is_null())
            counted = counted.with_columns(one=nw.lit(1))
            lists[name] = counted.select(name, **{f"code:{name}": nw.col("one").cum_sum().over(order_by=name) - 1})
            rows = rows.join(lists[name], on=name, how="left")
    wanted = {name: nw.col(name if number else f"code:{name}") for name, number in is_number.items()}
    wanted = {
        n: column if is_number[n] else column.fill_null(ABSENT_CODE).cast(nw.Int64) for n, column in wanted.items()
    }
    arrays = fetch_arrays(rows.select(**wanted, **{name: nw.col(name) for name in beside}))
    found = {}
    for name, number in is_number.items():
        if number:
            found[name] = _coded_numbers(np.ma.getdata(arrays[name]), np.ma.getmaskarray(arrays[name]))
        else:
            texts = fetch(lists[name])
            by_code = dict(zip((int(code) for code in texts[f"code:{name}"]), texts[name], strict=True))
            found[name] = _in_order(np.asarray(arrays[name]), [by_code[code] for code in range(len(by_code))])
    return found, arrays


def _in_order(codes: IntArray, values: list[Any]) -> Coded:
    """Renumber so that values are sorted; blank text counts as missing."""
    kept = [place for place, value in enumerate(values) if str(value).strip(BLANKS)]
    kept.sort(key=lambda place: sort_key(values[place]))
    new = np.full(len(values) + 1, ABSENT_CODE, dtype=np.int64)  # the last is for -1
    new[kept] = np.arange(len(kept))
    return Coded(new[codes], tuple(values[place] for place in kept))
