"""`Table`: any data with the roles of its columns, checked once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import narwhals as nw
import numpy as np

from evenhand.errors import ConfigError, DataError, did_you_mean
from evenhand.stats.types import IntArray
from evenhand.table.cells import (
    Cells,
    Measure,
    TooManyCellsError,
    exponent_for,
    reduce,
    score_measures,
    weight_measures,
)
from evenhand.table.keys import (
    ABSENT,
    NO,
    NO_RANGE,
    NUMBERS,
    YES,
    Key,
    Kind,
    binary_state,
    column_key,
    discrete,
    group_key,
    id_text,
    kind_of,
    plain_value,
    prediction_kind,
    prediction_state,
    score_bin,
)
from evenhand.table.roles import Prediction, Roles, Scalar, grouping_name, make_roles
from evenhand.table.rows import CodedRows, PersonRows, ScoreRows, code_columns
from evenhand.table.sources import FileOptions, MisreadTypeError, engine_errors, fetch_arrays, open_source
from evenhand.table.validation import (
    MAX_CELLS,
    crowded_columns,
    id_problems,
    label_notes,
    row_problems,
    schema_problems,
    sound_roles,
    state_key,
    weight_problems,
)

T = TypeVar("T")

EXACT_ROWS = 5_000_000
FINE_BINS = 2**14


class Table:
    """A table of decisions or scores with the roles of its columns.

    Roles and rows are checked here, once; every problem is reported in one `DataError`.

    Parameters
    ----------
    data
        A data frame (pandas, Polars, PyArrow, DuckDB relation), a mapping of columns, or the path or glob of
        CSV, Parquet or JSON files, which DuckDB reads without loading them.
    id
        Column that identifies a person; it must not repeat.
    outcome, positive
        Column of what really happened, and the value that counts as positive (default: 1, true, yes).
    groups
        Columns that define groups; a list inside the list is an intersection: ``["race", "sex", ["race", "sex"]]``.
    cuts
        Cut points of numeric group columns: ``{"age": [25, 45, 65]}``.
    predictions
        Columns by model name, ``{"xgboost": "risk"}``; settings of one model as a mapping,
        ``{"compas": {"column": "decile", "threshold": 4, "range": [1, 10], "favourable": "not_selected"}}``.
    threshold, favourable
        Defaults for all predictions: selected when the score is above the threshold; whether being selected is
        good for the person ('selected') or bad ('not_selected').
    weight
        Column of survey weights.
    missing
        'error' (default) or 'drop': what to do with rows whose outcome or prediction is missing. A missing
        group is never dropped: it is a row of its own, "(missing)", left out of gaps.
    encoding, delimiter, decimal, missing_values
        How to read a text file, where guessing is not enough.

    Examples
    --------
    >>> data = {"race": ["A", "A", "B", "B"], "hired": [1, 0, 1, 1]}
    >>> table = Table(data, groups=["race"], predictions="hired")
    >>> table.rows, table.cells.labels["race"]
    (4, ('A', 'B'))
    """

    def __init__(
        self,
        data: Any,
        *,
        id: str | None = None,  # noqa: A002
        outcome: str | None = None,
        positive: Scalar | None = None,
        groups: Sequence[str | Sequence[str]] | str = (),
        cuts: Mapping[str, Sequence[float]] | None = None,
        predictions: Mapping[str, Any] | Sequence[str] | str | None = None,
        weight: str | None = None,
        threshold: float | None = None,
        favourable: Literal["selected", "not_selected"] | None = None,
        missing: Literal["error", "drop"] = "error",
        encoding: str | None = None,
        delimiter: str | None = None,
        decimal: str = ".",
        missing_values: Sequence[str] = ("",),
    ) -> None:
        self.roles: Roles = make_roles(
            id=id,
            outcome=outcome,
            positive=positive,
            groups=groups,
            cuts=cuts,
            predictions=predictions,
            weight=weight,
            threshold=threshold,
            favourable=favourable,
            missing=missing,
        )
        options = FileOptions.parse(
            {"encoding": encoding, "delimiter": delimiter, "decimal": decimal, "missing_values": missing_values},
            "the options of the file",
        )
        self._data, self._options = data, options
        self._somebody: tuple[nw.Expr, str] | None = None
        self._open()
        self.with_type_retry(self._check)

    def _open(self) -> None:
        self.source = open_source(self._data, self._options)
        with engine_errors():
            schema = self.source.frame.collect_schema()
        self._kinds: dict[str, Kind] = {name: kind_of(dtype) for name, dtype in schema.items()}
        if self._somebody is not None:
            self.source = self.source.only(*self._somebody)

    def with_type_retry(self, read: Callable[[], T]) -> T:
        """Read; where a later row of a file has another type than the first rows, look at all rows and read again."""
        try:
            return read()
        except MisreadTypeError:
            if not self.source.paths or self._options.types_from_all_rows:
                raise
            self._options = self._options.model_copy(update={"types_from_all_rows": True})
            self._open()
            return read()

    def _check(self) -> None:
        """Count the cells and find every problem, of the roles whose columns exist and of their rows."""
        asked = self.roles
        found = list(schema_problems(asked, self._kinds, self.source))
        problems = [text for _, text in found if text]
        self.roles = sound_roles(asked, {column for column, _ in found})
        self._weight_exponent, unweighable = self._weigh()
        try:
            keys = [*self.group_keys(), *self._state_keys()]
            counted = reduce(self.source.frame, keys, [] if unweighable else self._weights(), most=MAX_CELLS)
            problems += [*unweighable, *row_problems(self.roles, self._kinds, counted, self.source)]
            if self.roles.id is not None and counted.rows:
                problems += id_problems(self.source, self.roles.id, self._kinds[self.roles.id], counted.rows)
        except TooManyCellsError:
            problems += [*unweighable, *crowded_columns(self.roles, self._kinds, self.source)]
        self.roles = asked
        if problems:
            raise DataError(problems)
        notes = (*self.source.notes, *label_notes(self.roles, self._kinds, counted))
        self.source = replace(self.source, notes=notes)
        self._keep(counted)

    def _weigh(self) -> tuple[int, list[str]]:
        """Return an exponent that bounds the survey weights, and what is wrong with them."""
        if self.roles.weight is None:
            return 0, []
        problems, largest, zeros = weight_problems(self.source, self.roles.weight, self._kinds[self.roles.weight])
        if problems:
            return 0, problems
        if zeros:
            verb = "row has" if zeros == 1 else "rows have"
            note = f"{zeros:,} {verb} a weight of 0 and count{'s' if zeros == 1 else ''} as nobody."
            self._somebody = (nw.col(self.roles.weight) > 0, note)
            self.source = self.source.only(*self._somebody)
        return exponent_for(largest), []

    def _keep(self, counted: Cells) -> None:
        """Drop rows with a missing outcome or prediction, where that was asked for, and count them."""
        absent = np.zeros(len(counted.n), dtype=bool)
        for key in self._state_keys():
            labels = counted.labels[key.name]
            absent |= np.array([labels[code] == str(ABSENT) for code in counted.codes[key.name]], dtype=bool)
        self.cells: Cells = counted.where(~absent)
        self.rows: int = self.cells.rows
        self.dropped: int = counted.rows - self.rows
        self._reductions: dict[str, Cells] = {"counts": self.cells}
        if self.rows == 0:
            raise DataError("no rows are left after dropping those with a missing outcome or prediction.")

    # What audits read -------------------------------------------------------------------------------------

    @property
    def backend(self) -> str | None:
        """The data-frame library the data came in, or None for files and mappings."""
        return self.source.backend

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the predictions."""
        return tuple(self.roles.predictions)

    @property
    def groupings(self) -> dict[str, tuple[str, ...]]:
        """The groupings by name, each with its columns."""
        return {grouping_name(columns): columns for columns in self.roles.groups}

    def prediction(self, model: str) -> Prediction:
        """Return the settings of one model's predictions."""
        if model not in self.roles.predictions:
            raise ConfigError(f"there is no model {model!r}; {did_you_mean(model, self.models)}")
        return self.roles.predictions[model]

    def has_scores(self, model: str) -> bool:
        """Tell whether a model's column holds scores rather than decisions."""
        prediction = self.prediction(model)
        return prediction_kind(prediction, self._kinds[prediction.column]) == "score"

    def counts(self, model: str, within: Sequence[str] = ()) -> Cells:
        """Return counts by groups, strata, outcome and decision of one model."""
        extra = [column for column in within if column not in self.roles.group_columns]
        if not extra:
            return self.cells
        return self._reduce(f"counts of {model} within {grouping_name(within)}", within, model, self._weights())

    def score_cells(self, model: str, within: Sequence[str] = (), bins: int = 10) -> Cells:
        """Return counts and sums of scores by groups, strata, outcome, decision and score bin of one model.

        The sums are those of the score, the squared error and their products, times the survey weight.
        """
        name = f"scores of {model} in {bins} bins" + (f" within {grouping_name(within)}" if within else "")
        bin_key = Key("bin", score_bin(self.prediction(model), bins))
        return self._reduce(name, within, model, [*self._weights(), *self._score_measures(model)], bin_key)

    def score_rows(self, model: str) -> ScoreRows:
        """Return one model's scores row by row; above 5,000,000 rows, in 16,384 bins of the score's range."""
        if self.rows > EXACT_ROWS:
            bin_key = Key("bin", score_bin(self.prediction(model), FINE_BINS))
            return _binned_scores(self._reduce(f"ranks of {model}", (), model, self._weights(), bin_key))
        return self.with_type_retry(lambda: self._exact_scores(model))

    def _exact_scores(self, model: str) -> ScoreRows:
        column = nw.col(self.prediction(model).column).cast(nw.Float64)
        arrays = self._row_arrays({"score": column, "positive": self._is_positive()})
        score, positive = np.asarray(arrays["score"], np.float64), np.asarray(arrays["positive"], np.bool_)
        weight = arrays["weight"] if self.roles.weight is not None else np.ones(self.rows)
        # Engines return rows in any order; sorted, sums over them are equal to the bit.
        order = np.lexsort((weight, positive, score) if self.roles.weight is not None else (positive, score))
        groups = self._group_cells(arrays, order)
        return ScoreRows(score[order], positive[order], weight[order], weight[order] ** 2, groups, binned=False)

    def person_rows(self, columns: Sequence[str]) -> PersonRows:
        """Return numeric columns and all scores row by row; a value that is missing is nan."""
        self.require_numbers(columns)
        return self.with_type_retry(lambda: self._person_rows(columns))

    def _person_rows(self, columns: Sequence[str]) -> PersonRows:
        models = [model for model in self.models if self.has_scores(model)]
        asked = {f"number{i}": nw.col(c).cast(nw.Float64).fill_null(float("nan")) for i, c in enumerate(columns)}
        asked |= {f"score{i}": nw.col(self.prediction(m).column).cast(nw.Float64) for i, m in enumerate(models)}
        if self.roles.id is not None:
            kind = self._kinds[self.roles.id]
            asked["id"] = id_text(plain_value(self.roles.id, kind), kind)
        arrays = self._row_arrays(asked)
        numbers = {c: np.asarray(arrays[f"number{i}"], np.float64) for i, c in enumerate(columns)}
        scores = {m: np.asarray(arrays[f"score{i}"], np.float64) for i, m in enumerate(models)}
        weight = arrays.get("weight")
        groups = [arrays[f"group{i}"] for i in range(len(self.roles.group_columns))]
        by = [*groups, *numbers.values(), *scores.values(), *([] if weight is None else [weight])]
        if "id" in arrays:  # decides among equals, since other data may be joined by it
            by = [np.unique(arrays["id"].astype(str), return_inverse=True)[1], *by]
        order = np.lexsort(by) if by else np.arange(self.rows)
        return PersonRows(
            {name: values[order] for name, values in numbers.items()},
            {name: values[order] for name, values in scores.items()},
            None if weight is None else weight[order],
            self._group_cells(arrays, order),
            tuple(str(value) for value in arrays["id"][order]) if "id" in arrays else None,
        )

    def coded_rows(self, columns: Mapping[str, str]) -> CodedRows:
        """Return columns as codes into their distinct values, row by row in the engine's order, with the groups.

        `columns` gives each column a name of one's own, by which messages call it too.
        """
        for role, column in columns.items():
            if column not in self._kinds:
                raise ConfigError(
                    f"`{role}` is {column!r}, which is not in the data; {did_you_mean(column, self._kinds)}"
                )
            if self._kinds[column] == "other":
                raise ConfigError(f"`{role}` is {column!r}, which holds no plain values; give a column that does.")
        return self.with_type_retry(lambda: self._coded_rows(columns))

    def _coded_rows(self, columns: Mapping[str, str]) -> CodedRows:
        ranges = [column for column in self.roles.group_columns if column in self.roles.cuts]
        plain = [column for column in self.roles.group_columns if column not in self.roles.cuts]
        asked = {f"column:{name}": column for name, column in columns.items()} | {f"group:{c}": c for c in plain}
        numbers = {f"group:{column}": self._group_codes(column) for column in ranges}
        if self.roles.weight is not None:
            numbers["weight"] = nw.col(self.roles.weight).cast(nw.Float64)
        kinds = {name: (column, self._kinds[column]) for name, column in asked.items()}
        with engine_errors():
            found, arrays = code_columns(self.complete_rows(), kinds, numbers)
        codes = {column_key(c): np.asarray(arrays[f"group:{c}"], np.int64) for c in ranges}
        for column in plain:
            coded = found[f"group:{column}"]
            known = {value: code for code, value in enumerate(self.cells.values[column_key(column)])}
            place = [known.get(value, len(known)) for value in (*coded.values, None)]  # the last is what is missing
            codes[column_key(column)] = np.array(place, dtype=np.int64)[coded.codes]
        return CodedRows(
            {name: found[f"column:{name}"] for name in columns},
            Cells(codes, self.cells.labels, np.ones(self.rows, dtype=np.int64)),
            np.asarray(arrays["weight"], np.float64) if "weight" in arrays else None,
        )

    def require_numbers(self, columns: Sequence[str]) -> None:
        """Refuse columns that are not in the data or hold no numbers."""
        for column in columns:
            if column not in self._kinds:
                raise ConfigError(f"column {column!r} is not in the data; {did_you_mean(column, self._kinds)}")
            if self._kinds[column] not in NUMBERS:
                raise ConfigError(f"column {column!r} must hold numbers, one a person; it does not.")

    def refuse_columns_starting(self, prefix: str) -> None:
        """Refuse a column whose name begins like those that are worked out beside the data's own."""
        for column in self._kinds:
            if column.startswith(prefix):
                raise DataError(f"the column {column!r} begins with {prefix!r}, as our own do: rename it.")

    def weight_and_exponent(self) -> tuple[nw.Expr | None, int]:
        """Return the survey weight as an expression, and an exponent that bounds it."""
        column = self.roles.weight
        return (None if column is None else nw.col(column).cast(nw.Float64)), self._weight_exponent

    def by_group(self, column: str, values: Mapping[str, float]) -> nw.Expr:
        """Return a number for each group of a group column; not a number where none is given."""
        labels = self.cells.labels[column_key(column)]
        numbers = [float(values.get(label, float("nan"))) for label in labels]
        codes = list(range(len(labels)))
        return self._group_codes(column).replace_strict(
            codes, numbers, default=nw.lit(float("nan")), return_dtype=nw.Float64
        )

    def _row_arrays(self, columns: Mapping[str, nw.Expr]) -> dict[str, Any]:
        """Fetch expressions row by row, with the group codes and the survey weight beside them."""
        codes = {f"group{i}": self._group_codes(c) for i, c in enumerate(self.roles.group_columns)}
        weight = {"weight": nw.col(self.roles.weight).cast(nw.Float64)} if self.roles.weight is not None else {}
        with engine_errors():
            arrays = fetch_arrays(self.complete_rows().select(**columns, **codes, **weight))
        return {name: np.asarray(values) for name, values in arrays.items()}

    def _group_cells(self, arrays: Mapping[str, Any], order: IntArray) -> Cells:
        codes = {
            column_key(column): np.asarray(arrays[f"group{i}"], np.int64)[order]
            for i, column in enumerate(self.roles.group_columns)
        }
        return Cells(codes, self.cells.labels, np.ones(len(order), dtype=np.int64))

    def settings(self) -> dict[str, Any]:
        """Return the roles and file options with every default filled in, as JSON can hold them."""
        roles = self.roles.model_dump(mode="json")
        for model, prediction in roles["predictions"].items():
            prediction["kind"] = "score" if self.has_scores(model) else "decision"
        options = self._options.model_dump(mode="json", exclude={"types_from_all_rows"})
        return {**roles, **(options if self.source.paths else {})}

    def __repr__(self) -> str:
        groups, models = ", ".join(self.groupings), ", ".join(self.models)
        return f"<Table: {self.rows:,} rows, groups {groups or 'none'}, predictions {models or 'none'}>"

    def digest(self) -> str:
        """Return one SHA-256 over the counts of all cells and the sums of every model's scores in ten bins.

        It depends on the data and its roles only, not on the engine nor on what was computed before.
        """
        read = {model: self.score_cells(model) for model in self.models if self.has_scores(model)}
        parts = "".join(f"{name}:{cells.digest()}\n" for name, cells in sorted({"": self.cells, **read}.items()))
        return hashlib.sha256(parts.encode()).hexdigest()

    # How it reduces ---------------------------------------------------------------------------------------

    def _reduce(self, name: str, within: Sequence[str], model: str, measures: Sequence[Measure], *more: Key) -> Cells:
        if name not in self._reductions:
            for column in within:
                if column not in self._kinds:
                    hint = did_you_mean(column, self._kinds)
                    raise ConfigError(f"`within` column {column!r} is not in the data; {hint}")
            self._reductions[name] = self.with_type_retry(
                lambda: reduce(self.complete_rows(), [*self._keys(within, model), *more], measures)
            )
        return self._reductions[name]

    def _keys(self, within: Sequence[str], model: str) -> list[Key]:
        strata = [self._group_key(column) for column in within if column not in self.roles.group_columns]
        states = [key for key in self._state_keys() if key.name in ("outcome", state_key(model))]
        return [*self.group_keys(), *strata, *states]

    def complete_rows(self) -> Any:
        """Return the rows without those that were dropped, in the data's own engine."""
        frame = self.source.frame
        if self.dropped:
            for key in self._state_keys():
                frame = frame.filter(key.expression != ABSENT)
        return frame

    def _group_key(self, column: str) -> Key:
        return group_key(column, self._kinds[column], self.roles.cuts.get(column))

    def group_keys(self) -> list[Key]:
        """Return the keys of the group columns."""
        return [self._group_key(column) for column in self.roles.group_columns]

    def _state_keys(self) -> list[Key]:
        keys = []
        if self.roles.outcome is not None:
            column = discrete(self.roles.outcome, self._kinds[self.roles.outcome])
            keys.append(Key("outcome", self._outcome_state(), column=column))
        for name, prediction in self.roles.predictions.items():
            kind = self._kinds[prediction.column]
            keys.append(
                Key(state_key(name), prediction_state(prediction, kind), column=discrete(prediction.column, kind))
            )
        return keys

    def _outcome_state(self) -> nw.Expr:
        if self.roles.outcome is None:
            return nw.lit(NO)
        return binary_state(self.roles.outcome, self._kinds[self.roles.outcome], self.roles.positive)

    def _is_positive(self) -> nw.Expr:
        return self._outcome_state() == YES

    def _weights(self) -> list[Measure]:
        return weight_measures(self.roles.weight, self._weight_exponent) if self.roles.weight is not None else []

    def _score_measures(self, model: str) -> list[Measure]:
        positive = self._is_positive() if self.roles.outcome is not None else None
        return score_measures(self.prediction(model), positive, self.roles.weight, self._weight_exponent)

    def _group_codes(self, column: str) -> nw.Expr:
        """Return the code of each row's group, the codes of the counted cells."""
        key = self._group_key(column)
        if key.labels is not None:
            missing = key.expression == NO_RANGE
            return nw.when(missing).then(nw.lit(len(key.labels))).otherwise(key.expression).cast(nw.Int64)
        values = self.cells.values[key.name]
        codes = list(range(len(values)))
        return key.expression.replace_strict(values, codes, default=nw.lit(len(values)), return_dtype=nw.Int64)


def _binned_scores(cells: Cells) -> ScoreRows:
    bins = np.array([int(label) for label in cells.labels["bin"]], dtype=np.float64)[cells.codes["bin"]]
    is_yes = np.array([label == str(YES) for label in cells.labels["outcome"]], dtype=np.bool_)
    rows = cells.n.astype(np.float64)
    weight, squares = cells.sums.get("w", rows), cells.sums.get("ww", rows)
    return ScoreRows(bins, is_yes[cells.codes["outcome"]], weight, squares, cells, binned=True)
