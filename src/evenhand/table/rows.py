"""Rows, for the statistics that cells cannot give: as arrays, as codes of values, or worked out in the engine.

Text is compared where the data lives. What comes back is one number per row, and the distinct values once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import narwhals as nw
import numpy as np

from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.cells import Cells, Measure, reduce
from evenhand.table.engines import collect, require_few_rows
from evenhand.table.keys import BLANKS, NUMBERS, YES, Key, Kind, column_key, id_text, labels_of, plain_value, sort_key
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
        return labels_of(self.values)

    @property
    def absent(self) -> int:
        """The number of rows without a value."""
        return int((self.codes < 0).sum())


CodedAndNumbers: TypeAlias = tuple[dict[str, Coded], dict[str, Any]]


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
    """Every person's numbers, for statistics of whole people; one entry per row, in one canonical order.

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

    def where(self, keep: BoolArray | IntArray) -> PersonRows:
        """Return the people that a boolean mask keeps, or those at some positions."""
        return PersonRows(
            {name: values[keep] for name, values in self.numbers.items()},
            {name: values[keep] for name, values in self.scores.items()},
            None if self.weight is None else self.weight[keep],
            self.groups.where(keep),
            None if self.ids is None else tuple(np.array(self.ids, dtype=object)[keep].tolist()),
        )


@dataclass(frozen=True)
class CodedRows:
    """Columns as codes into their distinct values, one entry per row, in the engine's order.

    Parameters
    ----------
    columns : the columns asked for.
    groups : the group codes of the rows.
    weight : survey weights, or None.
    """

    columns: dict[str, Coded]
    groups: Cells
    weight: FloatArray | None


# How rows are read ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fetched:
    """Expressions of the rows as arrays, in the engine's order, with groups and survey weights beside them."""

    arrays: dict[str, Any]
    groups: Cells
    weight: FloatArray | None

    def numbers(self, names: Mapping[str, str]) -> dict[str, FloatArray]:
        return {name: np.asarray(self.arrays[key], np.float64) for name, key in names.items()}


def _fetch_rows(table: Table, columns: Mapping[str, nw.Expr]) -> _Fetched:
    group_columns = table.roles.group_columns
    codes = {f"group{i}": table.group_codes(column) for i, column in enumerate(group_columns)}
    with engine_errors():
        arrays = fetch_arrays(table.complete_rows().select(**columns, **codes, **_weight_column(table)))
    groups = {column_key(c): np.asarray(arrays[f"group{i}"], np.int64) for i, c in enumerate(group_columns)}
    return _Fetched({name: np.asarray(arrays[name]) for name in columns}, _one_per_row(table, groups), _weights(arrays))


def _weight_column(table: Table) -> dict[str, nw.Expr]:
    weight = table.weight_and_exponent()[0]
    return {} if weight is None else {"weight": weight}


def _weights(arrays: Mapping[str, Any]) -> FloatArray | None:
    return np.asarray(arrays["weight"], np.float64) if "weight" in arrays else None


def _one_per_row(table: Table, codes: dict[str, IntArray]) -> Cells:
    return Cells(codes, table.cells.labels, np.ones(table.rows, dtype=np.int64))


def read_scores(table: Table, model: str) -> ScoreRows:
    """Return one model's scores row by row."""
    score_column = table.prediction(model).column
    fetched = _fetch_rows(
        table, {"score": nw.col(score_column).cast(nw.Float64), "positive": table.outcome_state() == YES}
    )
    score, positive = np.asarray(fetched.arrays["score"], np.float64), np.asarray(fetched.arrays["positive"], np.bool_)
    table.record_rows({score_column: score, "outcome": positive}, fetched.groups, fetched.weight)
    weight = np.ones(table.rows) if fetched.weight is None else fetched.weight
    # Engines return rows in any order; sorted, sums over them are equal to the bit.
    order = np.lexsort((positive, score) if fetched.weight is None else (weight, positive, score))
    groups = fetched.groups.where(order)
    return ScoreRows(score[order], positive[order], weight[order], weight[order] ** 2, groups, binned=False)


def binned_scores(cells: Cells) -> ScoreRows:
    """Return scores that were counted in bins as rows: the bin in place of the score."""
    bins = np.array([int(label) for label in cells.labels["bin"]], dtype=np.float64)[cells.codes["bin"]]
    is_yes = np.array([label == str(YES) for label in cells.labels.get("outcome", ("",))], dtype=np.bool_)
    outcome = cells.codes.get("outcome", np.zeros(len(cells.n), dtype=np.int64))  # without one, nobody is positive
    rows = cells.n.astype(np.float64)
    weight, squares = cells.sums.get("w", rows), cells.sums.get("ww", rows)
    return ScoreRows(bins, is_yes[outcome], weight, squares, cells, binned=True)


def read_people(table: Table, columns: Sequence[str]) -> PersonRows:
    """Return numeric columns and all scores row by row, with the ids."""
    models = [model for model in table.models if table.has_scores(model)]
    numbers = {column: f"number{i}" for i, column in enumerate(columns)}
    scores = {model: f"score{i}" for i, model in enumerate(models)}
    expressions = {key: nw.col(c).cast(nw.Float64).fill_null(float("nan")) for c, key in numbers.items()}
    expressions |= {key: nw.col(table.prediction(m).column).cast(nw.Float64) for m, key in scores.items()}
    if table.roles.id is not None:
        kind = table.kinds[table.roles.id]
        expressions["id"] = id_text(plain_value(table.roles.id, kind), kind)
    fetched = _fetch_rows(table, expressions)
    people = PersonRows(fetched.numbers(numbers), fetched.numbers(scores), fetched.weight, fetched.groups, None)
    read: dict[str, Any] = people.numbers | {table.prediction(m).column: s for m, s in people.scores.items()}
    ids = None
    if table.roles.id is not None:
        ids = read[table.roles.id] = _coded_ids(fetched.arrays["id"])
        people = replace(people, ids=tuple(np.array(ids.values, dtype=object)[ids.codes].tolist()))
    table.record_rows(read, people.groups, people.weight)
    return people.where(_canonical_order(people, ids))


def _coded_ids(ids: Any) -> Coded:
    texts, codes = np.unique(np.asarray(ids).astype(str), return_inverse=True)
    return Coded(codes.reshape(-1).astype(np.int64), tuple(texts.tolist()))


def _canonical_order(people: PersonRows, ids: Coded | None) -> IntArray:
    weight = [] if people.weight is None else [people.weight]
    by: list[Any] = [*people.groups.codes.values(), *people.numbers.values(), *people.scores.values(), *weight]
    if ids is not None:  # decides among equals, since other data may be joined by it
        by = [ids.codes, *by]
    return np.lexsort(by) if by else np.arange(len(people.groups.n))


def read_coded(table: Table, columns: Mapping[str, str]) -> CodedRows:
    """Return columns, each by a name of the caller's, as codes into their distinct values."""
    plain = [column for column in table.roles.group_columns if column not in table.roles.cuts]
    ranges = [column for column in table.roles.group_columns if column not in plain]
    wanted = {f"column:{name}": (column, table.kinds[column]) for name, column in columns.items()}
    wanted |= {f"group:{column}": (column, table.kinds[column]) for column in plain}
    numbers = {f"group:{column}": table.group_codes(column) for column in ranges} | _weight_column(table)
    with engine_errors():
        coded, arrays = code_columns(table.complete_rows(), wanted, numbers)
    codes = {column_key(column): np.asarray(arrays[f"group:{column}"], np.int64) for column in ranges}
    codes |= {column_key(column): _known_codes(table, column, coded[f"group:{column}"]) for column in plain}
    by_name = {name: coded[f"column:{name}"] for name in columns}
    rows = CodedRows(by_name, _one_per_row(table, codes), _weights(arrays))
    table.record_rows({column: by_name[name] for name, column in columns.items()}, rows.groups, rows.weight)
    return rows


def _known_codes(table: Table, column: str, coded: Coded) -> IntArray:
    """Return the codes of a group column as the counted cells have them."""
    known = table.cells.values[column_key(column)]
    missing = table.cells.missing_code(column_key(column))
    codes = [known.get(value, missing) for value in (*coded.values, None)]  # the last is what is missing
    return np.array(codes, dtype=np.int64)[coded.codes]


# Columns as codes ----------------------------------------------------------------------------------------


def code_columns(
    frame: Frame, columns: Mapping[str, tuple[str, Kind]], numbers: Mapping[str, nw.Expr]
) -> CodedAndNumbers:
    """Return columns as codes, and numbers beside them, all in one order of rows.

    Parameters
    ----------
    frame
        The data.
    columns
        By a name of the caller's: the column and its kind.
    numbers
        Expressions of the rows that are numbers already, without missing values.

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
    selected: Any = frame.select(
        **{keys[name]: plain_value(column, kind) for name, (column, kind) in columns.items()},
        **{number_keys[name]: expression for name, expression in numbers.items()},
    )
    if isinstance(selected, nw.LazyFrame) and not selected.implementation.is_duckdb():
        selected = collect(selected)
    is_number = {keys[name]: kind in (*NUMBERS, "boolean") for name, (_, kind) in columns.items()}
    read = _in_memory if isinstance(selected, nw.DataFrame) else _in_engine
    coded, arrays = read(selected, is_number, list(number_keys.values()))
    return (
        {name: coded[key] for name, key in keys.items()},
        {name: np.asarray(arrays[key]) for name, key in number_keys.items()},
    )


def _in_memory(frame: Any, is_number: Mapping[str, bool], numbers: list[str]) -> CodedAndNumbers:
    coded = {
        name: _of_numbers(frame.get_column(name)) if number else _of_text(frame.get_column(name))
        for name, number in is_number.items()
    }
    return coded, fetch_arrays(frame.select(*numbers)) if numbers else {}


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
    """Return the sorted distinct values and the rank of each value among them; a range of numbers needs no sorting."""
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
    codes = nw.from_native(column.cast(nw.Enum(values)).to_native().to_physical(), series_only=True)
    return _in_order(codes.cast(nw.Int64).fill_null(ABSENT_CODE).to_numpy(), values)


def _in_engine(frame: Any, is_number: Mapping[str, bool], numbers: list[str]) -> CodedAndNumbers:
    """Give the distinct texts numbers within DuckDB and join these to the rows, so that only numbers are fetched."""
    rows, texts = frame, {}
    for name in (name for name, number in is_number.items() if not number):
        distinct = frame.group_by(name).agg(nw.len().alias("rows")).filter(~nw.col(name).is_null())
        rank = nw.col("rows").cum_sum().over(order_by=name) - 1
        texts[name] = distinct.with_columns(rows=nw.lit(1)).select(name, **{f"code:{name}": rank})
        rows = rows.join(texts[name], on=name, how="left")
    wanted = {
        name: nw.col(f"code:{name}").fill_null(ABSENT_CODE).cast(nw.Int64) if name in texts else nw.col(name)
        for name in is_number
    }
    arrays = fetch_arrays(rows.select(**wanted, **{name: nw.col(name) for name in numbers}))
    coded = {}
    for name in is_number:
        if name in texts:
            coded[name] = _in_order(np.asarray(arrays[name]), _texts_by_code(fetch(texts[name]), name))
        else:
            coded[name] = _coded_numbers(np.ma.getdata(arrays[name]), np.ma.getmaskarray(arrays[name]))
    return coded, arrays


def _texts_by_code(listed: Mapping[str, list[Any]], name: str) -> list[Any]:
    by_code = dict(zip((int(code) for code in listed[f"code:{name}"]), listed[name], strict=True))
    return [by_code[code] for code in range(len(by_code))]


def _in_order(codes: IntArray, values: list[Any]) -> Coded:
    """Renumber so that values are sorted; blank text counts as missing."""
    kept = [code for code, value in enumerate(values) if str(value).strip(BLANKS)]
    kept.sort(key=lambda code: sort_key(values[code]))
    new = np.full(len(values) + 1, ABSENT_CODE, dtype=np.int64)  # the last is for -1
    new[kept] = np.arange(len(kept))
    return Coded(new[codes], tuple(values[code] for code in kept))


# Rows that stay in the engine -----------------------------------------------------------------------------


@dataclass(frozen=True)
class DerivedRows:
    """The rows of a table in its own engine, with columns derived stage by stage beside its own.

    What they are derived from is named to `Table.read_in_engine` first, so that the hash of the data covers it.

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
    >>> doubled.extremes({"twice": nw.col("twice")})["twice"], doubled.more_than(1, {"twice": nw.col("twice")})
    ((0.4, 0.4), False)
    """

    table: Table
    stages: Stages = ()

    def cells(self, keys: Sequence[Key], measures: Sequence[Measure], *, groups: bool = True) -> Cells:
        """Return counts and sums by some keys, and by the table's groups."""
        group_keys = self.table.group_keys() if groups else []
        return self._ask(lambda frame: reduce(frame, [*group_keys, *keys], measures))

    def values(self, columns: Mapping[str, nw.Expr]) -> dict[str, Any]:
        """Return expressions of the rows as arrays, in the engine's order."""
        arrays = self._ask(lambda frame: fetch_arrays(frame.select(**columns)))
        return {name: np.asarray(values) for name, values in arrays.items()}

    def rows(self, columns: Mapping[str, nw.Expr]) -> dict[str, Any]:
        """Return expressions of rows whose number nobody knows; more than an engine elsewhere may send are refused."""
        self._ask(require_few_rows)
        return self.values(columns)

    def extremes(self, columns: Mapping[str, nw.Expr]) -> dict[str, tuple[float, float]]:
        """Return the lowest and the highest value of expressions of the rows."""
        ends = {f"low:{name}": column.min() for name, column in columns.items()}
        ends |= {f"high:{name}": column.max() for name, column in columns.items()}
        values = self.values(ends)
        return {name: (float(values[f"low:{name}"][0]), float(values[f"high:{name}"][0])) for name in columns}

    def more_than(self, most: int, columns: Mapping[str, nw.Expr]) -> bool:
        """Tell whether the expressions make more different rows than that.

        The first rows decide it, where they can: all different rows of a long table would fill the memory.
        """

        def number(frame: Any) -> int:
            return int(fetch(self._counted(frame, columns).select(n=nw.len()))["n"][0])

        return self._ask(lambda frame: number(frame.head(5 * most))) > most or self._ask(number) > most

    def frequent(self, columns: Mapping[str, nw.Expr], least: int = 1) -> dict[str, Any]:
        """Return the different rows that occur at least so often, with their number `n` and weights `w`, `ww`."""
        rows = self._ask(lambda frame: fetch_arrays(self._counted(frame, columns).filter(nw.col("n") >= least)))
        order = np.lexsort([np.asarray(rows[name]) for name in columns])
        return {name: np.asarray(values)[order] for name, values in rows.items()}

    def _counted(self, frame: Any, columns: Mapping[str, nw.Expr]) -> Any:
        weight = self.table.weight_and_exponent()[0]
        rows = frame.select(**columns, w=nw.lit(1.0) if weight is None else weight)
        rows = rows.with_columns(ww=nw.col("w") * nw.col("w"))
        return rows.group_by(*columns).agg(nw.len().alias("n"), nw.col("w").sum(), nw.col("ww").sum())

    def _ask(self, question: Callable[[Any], T]) -> T:
        def answer() -> T:
            frame = self.table.complete_rows()
            for stage in self.stages:
                frame = frame.with_columns(**stage) if isinstance(stage, Mapping) else frame.filter(stage)
            with engine_errors():
                return question(frame)

        return self.table.with_type_retry(answer)
