"""Rows, for statistics that cells cannot provide: as arrays, as codes, or derived in the engine.

Text is compared in the data's engine, which returns one number per row, and the distinct values once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenhand.stats.auc import auc_influence
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.cells import Cells, ColumnSum, reduce
from evenhand.table.coding import Coded, code_columns
from evenhand.table.engines import Frame, require_few_rows
from evenhand.table.keys import YES, Key, column_key, id_text, plain_value
from evenhand.table.sources import engine_errors, fetch, fetch_arrays

if TYPE_CHECKING:
    from evenhand.table.table import Table

T = TypeVar("T")
Stages: TypeAlias = Sequence[Mapping[str, nw.Expr] | nw.Expr]


@dataclass(frozen=True, kw_only=True)
class ScoreRows:
    """One model's scores or decisions: by row, or in fine bins if the table is too long.

    Parameters
    ----------
    score, positive : the score and whether the outcome is positive, in canonical order.
    weight, squares : sums of the survey weights and of their squares; without survey weights, all weights are 1.
    groups : the group codes of the rows, with the number of rows in each entry.
    binned : whether scores are binned, so that scores in the same bin are tied.
    selected : whether the model selects the people of an entry; only available with survey weights.
    """

    score: FloatArray
    positive: BoolArray
    weight: FloatArray
    squares: FloatArray
    groups: Cells
    binned: bool
    selected: BoolArray | None = None

    @cached_property
    def auc(self) -> tuple[float, FloatArray]:
        """The AUC of all people, and each entry's influence on it; computed once."""
        return auc_influence(self.score, self.positive, weight=self.weight)

    def where(self, keep: BoolArray) -> ScoreRows:
        """Return the entries selected by a mask."""
        return ScoreRows(
            score=self.score[keep],
            positive=self.positive[keep],
            weight=self.weight[keep],
            squares=self.squares[keep],
            groups=self.groups.where(keep),
            binned=self.binned,
            selected=None if self.selected is None else self.selected[keep],
        )


@dataclass(frozen=True)
class NumberRows:
    """One model's numbers, such as predicted salaries: one entry per row, sorted.

    Parameters
    ----------
    value : the numbers.
    outcome : the true numbers; None if the table has no outcome.
    weight : survey weights, or None.
    groups : the group codes of the rows.
    """

    value: FloatArray
    outcome: FloatArray | None
    weight: FloatArray | None
    groups: Cells

    def where(self, keep: BoolArray | IntArray) -> NumberRows:
        """Return the entries at the given positions, or selected by a mask."""
        return NumberRows(
            self.value[keep],
            None if self.outcome is None else self.outcome[keep],
            None if self.weight is None else self.weight[keep],
            self.groups.where(keep),
        )


@dataclass(frozen=True)
class PersonRows:
    """Columns, scores and groups of all people: one entry per row, in canonical order.

    Parameters
    ----------
    numbers : the requested columns; nan if missing.
    scores : every model's scores.
    weight : survey weights, or None.
    groups : the group codes of the rows.
    ids : the people's ids as text, or None if the table has no id.
    """

    numbers: dict[str, FloatArray]
    scores: dict[str, FloatArray]
    weight: FloatArray | None
    groups: Cells
    ids: tuple[str, ...] | None

    def where(self, keep: BoolArray | IntArray) -> PersonRows:
        """Return the people at the given positions, or selected by a mask."""
        if keep.dtype == np.bool_ and keep.all():
            return self
        rows = np.flatnonzero(keep) if keep.dtype == np.bool_ else keep
        return PersonRows(
            {name: values.take(rows) for name, values in self.numbers.items()},
            {name: values.take(rows) for name, values in self.scores.items()},
            None if self.weight is None else self.weight.take(rows),
            self.groups.where(rows),
            None if self.ids is None else tuple(np.array(self.ids, dtype=object).take(rows).tolist()),
        )


@dataclass(frozen=True)
class CodedRows:
    """Columns as codes into their distinct values: one entry per row, in the engine's order.

    Parameters
    ----------
    columns : the requested columns.
    groups : the group codes of the rows.
    weight : survey weights, or None.
    """

    columns: dict[str, Coded]
    groups: Cells
    weight: FloatArray | None


# Reading rows ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fetched:
    """Expressions evaluated for all rows as arrays, in the engine's order, with groups and survey weights."""

    arrays: dict[str, Any]
    groups: Cells
    weight: FloatArray | None

    def numbers(self, names: Mapping[str, str]) -> dict[str, FloatArray]:
        return {name: np.asarray(self.arrays[key], np.float64) for name, key in names.items()}


_MOST_CODED_IN_ENGINE = 1_000  # values, which an engine would look up in as many cases


def _fetch_rows(
    table: Table, columns: Mapping[str, nw.Expr], strata: Cells | None = None, within: Sequence[str] = ()
) -> _Fetched:
    """Return evaluated expressions with the groups, including the columns `within` coded as in `strata`."""
    group_columns = [*table.roles.group_columns, *within]
    many = _of_many_values(within, strata)
    codes = {
        f"group{i}": table.group_codes(column, strata if column in within else None)
        for i, column in enumerate(group_columns)
        if column not in many
    }
    wanted = {**columns, **codes, **_weight_column(table)}
    with engine_errors():
        read, arrays = _read_coded_or_plain(table, many, wanted)
    places = {column: f"group{i}" for i, column in enumerate(group_columns)}
    known = table.cells if strata is None else strata
    groups = {
        column_key(c): _known_codes(known, c, read[c]) if c in read else np.asarray(arrays[at], np.int64)
        for c, at in places.items()
    }
    cells = _one_per_row(table, groups)
    if strata is not None:
        cells.labels.update({column_key(column): strata.labels[column_key(column)] for column in within})
    return _Fetched({name: np.asarray(arrays[name]) for name in columns}, cells, _weights(arrays))


def _of_many_values(within: Sequence[str], strata: Cells | None) -> list[str]:
    """Return the columns with so many values that NumPy codes them faster than a query."""
    labels = {} if strata is None else strata.labels
    return [column for column in within if len(labels.get(column_key(column), ())) > _MOST_CODED_IN_ENGINE]


def _read_coded_or_plain(
    table: Table, many: Sequence[str], wanted: Mapping[str, nw.Expr]
) -> tuple[Mapping[str, Coded], Mapping[str, Any]]:
    """Return columns of many values as codes, by name, and the other expressions as arrays."""
    if not many:
        return {}, fetch_arrays(table.complete_rows().select(**wanted))
    return code_columns(table.complete_rows(), {column: (column, table.kinds[column]) for column in many}, wanted)


def _weight_column(table: Table) -> dict[str, nw.Expr]:
    weight = table.weight_and_exponent()[0]
    return {} if weight is None else {"weight": weight}


def _weights(arrays: Mapping[str, Any]) -> FloatArray | None:
    return np.asarray(arrays["weight"], np.float64) if "weight" in arrays else None


def _one_per_row(table: Table, codes: dict[str, IntArray]) -> Cells:
    return Cells(codes, dict(table.cells.labels), np.ones(table.rows, dtype=np.int64))


def read_scores(table: Table, model: str, strata: Cells | None = None, within: Sequence[str] = ()) -> ScoreRows:
    """Return one model's scores by row, and with survey weights also its decisions."""
    column, weighted = table.prediction(model).column, table.roles.weight is not None
    selected, positive = table.prediction_state(model) == YES, table.outcome_state() == YES
    score = nw.col(column) if table.has_scores(model) else selected
    wanted = {"score": score.cast(nw.Float64), "positive": positive} | ({"selected": selected} if weighted else {})
    fetched = _fetch_rows(table, wanted, strata, within)
    arrays = {name: np.asarray(values) for name, values in fetched.arrays.items()}
    table.record_rows({column: arrays["score"], "outcome": arrays["positive"]}, fetched.groups, fetched.weight)
    weight = np.ones(table.rows) if fetched.weight is None else fetched.weight
    # Engines return rows in any order; sums over sorted rows are bit-identical.
    keys = arrays["positive"], arrays["score"]
    order = _lexsorted(keys if fetched.weight is None else (weight, *keys))
    return ScoreRows(
        score=arrays["score"].astype(np.float64).take(order),
        positive=arrays["positive"].astype(np.bool_).take(order),
        weight=weight.take(order),
        squares=weight.take(order) ** 2,
        groups=fetched.groups.where(order),
        binned=False,
        selected=arrays["selected"].astype(np.bool_).take(order) if weighted else None,
    )


def read_numbers(table: Table, model: str, strata: Cells | None = None, within: Sequence[str] = ()) -> NumberRows:
    """Return one model's numbers by row, with the outcome."""
    columns = {"value": table.prediction(model).column} | (
        {"outcome": table.roles.outcome} if table.roles.outcome is not None else {}
    )
    wanted = {name: nw.col(column).cast(nw.Float64) for name, column in columns.items()}
    fetched = _fetch_rows(table, wanted, strata, within)
    numbers = fetched.numbers({name: name for name in columns})
    table.record_rows({columns[name]: values for name, values in numbers.items()}, fetched.groups, fetched.weight)
    rows = NumberRows(numbers["value"] + 0.0, numbers.get("outcome"), fetched.weight, fetched.groups)
    # Engines return rows in any order; sums over sorted rows are bit-identical.
    keys = [values for values in (fetched.weight, rows.outcome, rows.value) if values is not None]
    return rows.where(_lexsorted(keys))


def binned_scores(cells: Cells) -> ScoreRows:
    """Return binned scores as rows, with the bin number as the score."""
    bins = np.array([int(label) for label in cells.labels["bin"]], dtype=np.float64)[cells.codes["bin"]]
    is_yes = np.array([label == str(YES) for label in cells.labels.get("outcome", ("",))], dtype=np.bool_)
    outcome = cells.codes.get(
        "outcome", np.zeros(len(cells.n), dtype=np.int64)
    )  # without an outcome, all entries count as negative
    rows = cells.n.astype(np.float64)
    weight, squares = cells.sums.get("w", rows), cells.sums.get("ww", rows)
    return ScoreRows(score=bins, positive=is_yes[outcome], weight=weight, squares=squares, groups=cells, binned=True)


def read_people(table: Table, columns: Sequence[str]) -> PersonRows:
    """Return numeric columns and all scores by row, with the ids."""
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
    recorded: dict[str, Any] = people.numbers | {table.prediction(m).column: s for m, s in people.scores.items()}
    ids = None
    if table.roles.id is not None:
        ids = recorded[table.roles.id] = _coded_ids(fetched.arrays["id"])
    table.record_rows(recorded, people.groups, people.weight)
    order = _canonical_order(people, ids)
    names = None if ids is None else tuple(np.array(ids.values, dtype=object).take(ids.codes.take(order)).tolist())
    return replace(people.where(order), ids=names)


def _coded_ids(ids: npt.NDArray[Any]) -> Coded:
    texts, codes = np.unique(np.asarray(ids).astype(str), return_inverse=True)
    return Coded(codes.reshape(-1).astype(np.int64), tuple(texts.tolist()))


def _canonical_order(people: PersonRows, ids: Coded | None) -> IntArray:
    weight = [] if people.weight is None else [people.weight]
    sort_keys: list[Any] = [*people.groups.codes.values(), *people.numbers.values(), *people.scores.values(), *weight]
    if ids is not None:  # breaks ties, since other data may be joined by it
        sort_keys = [ids.codes, *sort_keys]
    return _lexsorted(sort_keys) if sort_keys else np.arange(len(people.groups.n))


def _lexsorted(sort_keys: Sequence[Any]) -> IntArray:
    """Return the same order as NumPy's `lexsort`, but faster if the primary key, the last, has few ties.

    Examples
    --------
    >>> _lexsorted((np.array([2, 1, 0]), np.array([0.5, 0.5, 0.25]))).tolist()
    [2, 1, 0]
    """
    order = np.argsort(sort_keys[-1])
    ranked = sort_keys[-1][order]
    equal = ~(ranked[:-1] < ranked[1:])  # also true of not-a-number
    tied = np.flatnonzero(np.append(False, equal) | np.append(equal, False))
    rows = np.sort(order[tied])
    order[tied] = rows[np.lexsort([key[rows] for key in sort_keys])]
    return order


def read_coded(table: Table, columns: Mapping[str, str]) -> CodedRows:
    """Return columns, by names chosen by the caller, as codes into their distinct values."""
    plain = [column for column in table.roles.group_columns if column not in table.roles.cuts]
    ranges = [column for column in table.roles.group_columns if column not in plain]
    coded_columns = {f"column:{name}": (column, table.kinds[column]) for name, column in columns.items()}
    coded_columns |= {f"group:{column}": (column, table.kinds[column]) for column in plain}
    numbers = {f"group:{column}": table.group_codes(column) for column in ranges} | _weight_column(table)
    with engine_errors():
        coded, arrays = code_columns(table.complete_rows(), coded_columns, numbers)
    codes = {column_key(column): np.asarray(arrays[f"group:{column}"], np.int64) for column in ranges}
    codes |= {column_key(column): _known_codes(table.cells, column, coded[f"group:{column}"]) for column in plain}
    by_name = {name: coded[f"column:{name}"] for name in columns}
    rows = CodedRows(by_name, _one_per_row(table, codes), _weights(arrays))
    table.record_rows({column: by_name[name] for name, column in columns.items()}, rows.groups, rows.weight)
    return rows


def _known_codes(cells: Cells, column: str, coded: Coded) -> IntArray:
    """Return the codes of a group column as in the table's cells."""
    codes_by_value = cells.values[column_key(column)]
    missing = cells.missing_code(column_key(column))
    codes = [codes_by_value.get(value, missing) for value in (*coded.values, None)]  # None is for missing values
    return np.array(codes, dtype=np.int64).take(coded.codes)


# Rows that stay in the engine -------------------------------------------------------------------------------


@dataclass(frozen=True)
class DerivedRows:
    """The rows of a table in its engine, with derived columns, stage by stage.

    Their source columns must first be passed to `Table.read_in_engine`, so that the hash of the data covers them.

    Parameters
    ----------
    table : the table.
    stages : each either a set of columns computed from earlier ones, to compute no expression twice, or a filter of
        rows.

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

    def cells(self, keys: Sequence[Key], sums: Sequence[ColumnSum], *, groups: bool = True) -> Cells:
        """Return counts and sums by the given keys, and by the table's groups."""
        group_keys = self.table.group_keys() if groups else []
        return self._run(lambda frame: reduce(frame, [*group_keys, *keys], sums))

    def values(self, columns: Mapping[str, nw.Expr]) -> dict[str, Any]:
        """Return expressions evaluated for all rows as arrays, in the engine's order."""
        arrays = self._run(lambda frame: fetch_arrays(frame.select(**columns)))
        return {name: np.asarray(values) for name, values in arrays.items()}

    def first(self, rows: int, columns: Mapping[str, nw.Expr]) -> dict[str, Any]:
        """Return expressions evaluated for the first rows as arrays, in the engine's order."""
        arrays = self._run(lambda frame: fetch_arrays(frame.head(rows).select(**columns)))
        return {name: np.asarray(values) for name, values in arrays.items()}

    def rows(self, columns: Mapping[str, nw.Expr]) -> dict[str, Any]:
        """Return expressions evaluated for all rows; raise if a remote engine would send too many rows."""
        self._run(require_few_rows)
        return self.values(columns)

    def extremes(self, columns: Mapping[str, nw.Expr]) -> dict[str, tuple[float, float]]:
        """Return the minimum and the maximum of each expression."""
        ends = {f"low:{name}": column.min() for name, column in columns.items()}
        ends |= {f"high:{name}": column.max() for name, column in columns.items()}
        values = self.values(ends)
        return {name: (float(values[f"low:{name}"][0]), float(values[f"high:{name}"][0])) for name in columns}

    def more_than(self, most: int, columns: Mapping[str, nw.Expr]) -> bool:
        """Return whether the expressions have more than `most` distinct rows.

        The first rows are tried first, because all distinct rows of a long table could fill the memory.
        """

        def number(frame: Frame) -> int:
            return int(fetch(self._counted(frame, columns).select(n=nw.len()))["n"][0])

        return self._run(lambda frame: number(frame.head(5 * most))) > most or self._run(number) > most

    def frequent(self, columns: Mapping[str, nw.Expr], least: int = 1) -> dict[str, Any]:
        """Return the distinct rows occurring at least `least` times, with their number `n` and weights `w`, `ww`."""
        rows = self._run(lambda frame: fetch_arrays(self._counted(frame, columns).filter(nw.col("n") >= least)))
        order = np.lexsort([np.asarray(rows[name]) for name in columns])
        return {name: np.asarray(values)[order] for name, values in rows.items()}

    def _counted(self, frame: Frame, columns: Mapping[str, nw.Expr]) -> Frame:
        weight = self.table.weight_and_exponent()[0]
        rows = frame.select(**columns, w=nw.lit(1.0) if weight is None else weight)
        rows = rows.with_columns(ww=nw.col("w") * nw.col("w"))
        counted: Frame = rows.group_by(*columns).agg(nw.len().alias("n"), nw.col("w").sum(), nw.col("ww").sum())
        return counted

    def _run(self, read: Callable[[Frame], T]) -> T:
        def run(table: Table) -> T:
            frame = table.complete_rows()
            for stage in self.stages:
                frame = frame.with_columns(**stage) if isinstance(stage, Mapping) else frame.filter(stage)
            with engine_errors():
                return read(frame)

        return self.table._with_type_retry(run)
