"""Rows, for the statistics that cells cannot give: as arrays, as codes of values, or worked out in the engine.

Text is compared where the data lives. What comes back is one number per row, and the distinct values once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import narwhals as nw
import numpy as np

from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.cells import Cells, Measure, reduce
from evenhand.table.keys import BLANKS, NUMBERS, Key, Kind, label_of, plain_value, sort_key
from evenhand.table.sources import Frame, engine_errors, fetch, fetch_arrays

if TYPE_CHECKING:
    from evenhand.table.table import Table

T = TypeVar("T")
Stages: TypeAlias = Sequence[Mapping[str, nw.Expr] | nw.Expr]

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


@dataclass(frozen=True)
class ScoreRows:
    """One model's scores for statistics of ranks: every row, or every fine bin of a table too long for that.

    Parameters
    ----------
    score, positive : the score and whether the outcome is positive, in one canonical order.
    weight, squares : sums of the survey weights (1 without them) and of their squares.
    groups : the group codes of the rows, with the number of rows that each entry stands for.
    binned : whether scores were put into bins, so that scores of one bin count as tied.
    """

    score: FloatArray
    positive: BoolArray
    weight: FloatArray
    squares: FloatArray
    groups: Cells
    binned: bool


@dataclass(frozen=True)
class PersonRows:
    """Every person's numbers, for statistics of whole people; one entry a row, in one canonical order.

    Parameters
    ----------
    numbers : the columns asked for; nan where missing.
    scores : every model's scores.
    weight : survey weights, or None.
    groups : the group codes of the rows.
    ids : what identifies the people as text, or None where the table has no id.
    """

    numbers: dict[str, FloatArray]
    scores: dict[str, FloatArray]
    weight: FloatArray | None
    groups: Cells
    ids: tuple[str, ...] | None


@dataclass(frozen=True)
class CodedRows:
    """Columns as codes into their distinct values, one entry a row, in the engine's order.

    Parameters
    ----------
    columns : the columns asked for.
    groups : the group codes of the rows.
    weight : survey weights, or None.
    """

    columns: dict[str, Coded]
    groups: Cells
    weight: FloatArray | None


# Columns as codes ----------------------------------------------------------------------------------------


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


# Rows that stay in the engine -----------------------------------------------------------------------------


@dataclass(frozen=True)
class DerivedRows:
    """The rows of a table after some stages.

    Parameters
    ----------
    table : the table.
    stages : each a set of columns worked out from those before, so that no expression is worked out twice; or a
        condition on the rows.

    Examples
    --------
    >>> from evenhand.table import Table
    >>> table = Table({"g": ["a", "a", "b"], "m": [0.1, 0.2, 0.2]}, groups="g", predictions="m")
    >>> doubled = DerivedRows(table, [{"twice": 2.0 * nw.col("m")}, nw.col("twice") > 0.3])
    >>> doubled.extremes({"twice": nw.col("twice")})["twice"], doubled.different({"twice": nw.col("twice")})
    ((0.4, 0.4), 1)
    """

    table: Table
    stages: Stages = ()

    def cells(self, keys: Sequence[Key], measures: Sequence[Measure], *, groups: bool = True) -> Cells:
        """Return counts and sums by keys of one's own, and by the table's groups."""
        own = self.table.group_keys() if groups else []
        return self._asked(lambda frame: reduce(frame, [*own, *keys], measures))

    def values(self, columns: Mapping[str, nw.Expr]) -> dict[str, Any]:
        """Return expressions of the rows as arrays, in the engine's order."""
        found = self._asked(lambda frame: fetch_arrays(frame.select(**columns)))
        return {name: np.asarray(values) for name, values in found.items()}

    def extremes(self, columns: Mapping[str, nw.Expr]) -> dict[str, tuple[float, float]]:
        """Return the lowest and the highest value of expressions of the rows."""
        ends = {f"low:{name}": column.min() for name, column in columns.items()}
        ends |= {f"high:{name}": column.max() for name, column in columns.items()}
        found = self.values(ends)
        return {name: (float(found[f"low:{name}"][0]), float(found[f"high:{name}"][0])) for name in columns}

    def different(self, columns: Mapping[str, nw.Expr]) -> int:
        """Return how many different rows the expressions make."""
        return int(self._asked(lambda frame: fetch(self._alike(frame, columns).select(n=nw.len())))["n"][0])

    def frequent(self, columns: Mapping[str, nw.Expr], least: int = 1) -> dict[str, Any]:
        """Return the different rows that occur at least so often, with their number `n` and weights `w`, `ww`."""
        found = self._asked(lambda frame: fetch_arrays(self._alike(frame, columns).filter(nw.col("n") >= least)))
        order = np.lexsort([np.asarray(found[name]) for name in columns])
        return {name: np.asarray(values)[order] for name, values in found.items()}

    def _alike(self, frame: Any, columns: Mapping[str, nw.Expr]) -> Any:
        weight = self.table.weight_and_exponent()[0]
        rows = frame.select(**columns, w=nw.lit(1.0) if weight is None else weight)
        rows = rows.with_columns(ww=nw.col("w") * nw.col("w"))
        return rows.group_by(*columns).agg(nw.len().alias("n"), nw.col("w").sum(), nw.col("ww").sum())

    def _asked(self, question: Callable[[Any], T]) -> T:
        def answer() -> T:
            frame = self.table.complete_rows()
            for stage in self.stages:
                frame = frame.with_columns(**stage) if isinstance(stage, Mapping) else frame.filter(stage)
            with engine_errors():
                return question(frame)

        return self.table.with_type_retry(answer)
