"""`Table`: data from any source with the roles of its columns, validated once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self, TypeVar

import narwhals as nw

from evenhand.errors import ConfigError, DataError, did_you_mean, problem
from evenhand.messages import Message
from evenhand.stats.types import FloatArray
from evenhand.table import keys
from evenhand.table.cells import Cells, ColumnSum, reduce, score_sums
from evenhand.table.checking import CheckedTable, check_table
from evenhand.table.counts import count_notes, holds_counts
from evenhand.table.engines import Frame, require_few_rows, rows_allowed
from evenhand.table.frames import (
    ColumnArgument,
    GroupsArgument,
    PredictionsArgument,
    TableData,
    from_arrays,
    name_arrays,
)
from evenhand.table.keys import NUMBERS, Key, Kind
from evenhand.table.ledger import Column, Ledger, checksum
from evenhand.table.opening import OpenedTable, open_table
from evenhand.table.repeats import repeat_notes
from evenhand.table.roles import Favourable, Prediction, Roles, Scalar, grouping_name, make_roles
from evenhand.table.rows import (
    CodedRows,
    NumberRows,
    PersonRows,
    ScoreRows,
    binned_scores,
    read_coded,
    read_numbers,
    read_people,
    read_scores,
)
from evenhand.table.sources import FileOptions, MisreadTypeError, Source
from evenhand.table.validation import column_fault, state_key

T = TypeVar("T")

EXACT_ROWS = 5_000_000
FINE_BINS = 2**14

_USER_NAMES = (
    "backend",
    "cells",
    "counts",
    "data",
    "digest",
    "dropped",
    "from_arrays",
    "groupings",
    "has_numbers",
    "has_scores",
    "models",
    "prediction",
    "roles",
    "rows",
    "score_cells",
    "score_rows",
    "settings",
)
"""The attributes shown by tab completion; all others are for authors of audits."""


@dataclass(frozen=True, kw_only=True)
class _State:
    """The checked data of a table, and the record of reads.

    Parameters
    ----------
    checked : the opened and checked data.
    ledger : digests of all data read.
    fitted : the models fitted by evenhand.
    """

    checked: CheckedTable
    ledger: Ledger = field(default_factory=Ledger)
    fitted: frozenset[str] = frozenset()

    @cached_property
    def reduction_cache(self) -> dict[str, Cells]:
        """The cells of all reductions so far, by name."""
        return {"counts": self.checked.cells}


class Table:
    """A table of decisions or scores with the roles of its columns.

    Roles and rows are validated once, on construction; all problems are reported in one `DataError`.

    Parameters
    ----------
    data
        A data frame (pandas, Polars, PyArrow, DuckDB relation, PySpark, ibis table), a mapping of columns, or the
        path or glob of CSV, Parquet or JSON files, which DuckDB reads without loading them.
    id
        Column that identifies a person; it must not repeat. An array or a Series may replace any column name.
    outcome, positive
        Column of the true outcome, and the value that counts as positive (default: 1, true, yes).
    outcome_kind
        'number' for a numeric outcome, such as a salary. Without `predictions` it is itself compared between
        groups; otherwise the predictions are numbers, too, and their errors are compared.
    groups
        Columns that define groups; a list inside the list is an intersection: ``["race", "sex", ["race", "sex"]]``.
    cuts
        Cut points of numeric group columns: ``{"age": [25, 45, 65]}``.
    labels
        Names of groups, by column and value: ``{"black": {0: "not Black", 1: "Black"}}``. Values of one label are one
        group. Without a label, a bare number, yes or no is called by its column: "black = 1".
    one_hot
        Groups encoded as several 0/1 columns, by the name of the group column to build from them:
        ``{"race": ["race_black", "race_white"]}``. ``labels`` may name them by column.
    predictions
        Columns by model name, ``{"xgboost": "risk"}``; settings of one model as a mapping,
        ``{"compas": {"column": "decile", "threshold": 4, "range": [1, 10], "favourable": "not_selected"}}``.
    threshold, percentile, capacity, favourable, selected_word
        Defaults for all predictions: selected if the score is above the threshold, or above a percentile of the
            scores, as ``{"of": 62, "among": "charge", "value": "felony"}``, or among the `capacity` highest scores (a
            whole number of people, or a share below 1); whether selection is good for the
            person ('selected') or bad ('not_selected'), for numbers which side is good ('higher' or 'lower'); the verb
            in the findings, "selects" by default: "flags", "refuses".
    people
        The noun for the rows in the findings: "households", "applicants".
    weight
        Column of survey weights.
    count
        Column with the number of people per row. A row with a count of 3 is equivalent to three rows.
    cluster
        Column of clusters of related rows: the person, the household, the judge, the prompt. Rows in
        the same cluster are not independent, which intervals and tests take into account.
    missing
        'error' (default) or 'drop': the treatment of rows with a missing outcome or prediction. A missing
        group is never dropped: it is reported as "(missing)" and left out of gaps.
    encoding, delimiter, decimal, missing_values
        Options for reading a text file.
    memory_limit
        The memory limit of DuckDB for reading files, such as "4GB" (default: four fifths of the machine's memory);
            the rest goes to temporary files.

    Examples
    --------
    >>> data = {"race": ["A", "A", "B", "B"], "hired": [1, 0, 1, 1]}
    >>> table = Table(data, groups=["race"], predictions="hired")
    >>> table.rows, table.cells.labels["race"]
    (4, ('A', 'B'))
    """

    def __init__(
        self,
        data: TableData | None,
        *,
        id: ColumnArgument | None = None,  # noqa: A002
        outcome: ColumnArgument | None = None,
        outcome_kind: Literal["binary", "number"] | None = None,
        positive: Scalar | None = None,
        groups: GroupsArgument = (),
        cuts: Mapping[str, Sequence[float]] | None = None,
        labels: Mapping[str, Mapping[Any, str]] | None = None,
        one_hot: Mapping[str, Sequence[str]] | None = None,
        predictions: PredictionsArgument | None = None,
        weight: ColumnArgument | None = None,
        count: ColumnArgument | None = None,
        cluster: ColumnArgument | None = None,
        threshold: float | None = None,
        percentile: Mapping[str, Any] | None = None,
        capacity: float | None = None,
        favourable: Favourable | None = None,
        selected_word: str | None = None,
        people: str | None = None,
        missing: Literal["error", "drop"] = "error",
        encoding: str | None = None,
        delimiter: str | None = None,
        decimal: str = ".",
        missing_values: Sequence[str] = ("",),
        memory_limit: str | None = None,
    ) -> None:
        columns: dict[str, object] = {
            "id": id,
            "outcome": outcome,
            "groups": groups,
            "predictions": predictions,
            "weight": weight,
            "count": count,
            "cluster": cluster,
        }
        named_data, columns = name_arrays(data, columns)
        roles = make_roles(
            outcome_kind=outcome_kind,
            positive=positive,
            cuts=cuts,
            labels=labels,
            one_hot=one_hot,
            threshold=threshold,
            percentile=percentile,
            capacity=capacity,
            favourable=favourable,
            selected_word=selected_word,
            people=people,
            missing=missing,
            **columns,
        )
        options = FileOptions.parse(
            {
                "encoding": encoding,
                "delimiter": delimiter,
                "decimal": decimal,
                "missing_values": missing_values,
                "memory_limit": memory_limit,
            },
            "the options of the file",
        )
        self._state = _State(checked=check_table(open_table(named_data, options, roles)))

    @classmethod
    def from_arrays(
        cls,
        *,
        y_true: ColumnArgument | None = None,
        y_pred: ColumnArgument | Mapping[str, ColumnArgument] | None = None,
        y_score: ColumnArgument | Mapping[str, ColumnArgument] | None = None,
        sensitive_features: GroupsArgument,
        sample_weight: ColumnArgument | None = None,
        **settings: Any,
    ) -> Self:
        """Make a table from arrays, Series or lists, as used with scikit-learn and fairlearn.

        Parameters
        ----------
        y_true, sample_weight
            The true outcomes, and survey weights.
        y_pred, y_score
            Decisions, and scores; at least one is required. A mapping has the arrays of several models by name. With
            `outcome_kind="number"`, `y_pred` contains numbers; without `y_pred` the numbers of `y_true` are compared.
        sensitive_features
            The groups: an array, a Series, a data frame, or a mapping of arrays.
        **settings
            Any other argument of `Table`: `positive`, `outcome_kind`, `threshold`, `favourable`, `cuts`, `missing`.

        Examples
        --------
        >>> table = Table.from_arrays(y_true=[1, 0, 1, 0], y_pred=[1, 0, 1, 1], sensitive_features=["f", "f", "m", "m"])
        >>> table.models, list(table.groupings)
        (('y_pred',), ['group'])
        """
        arguments = from_arrays(
            settings,
            y_true=y_true,
            y_pred=y_pred,
            y_score=y_score,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
        )
        return cls(**arguments)

    @classmethod
    def _from_state(cls, state: _State) -> Self:
        """Return a table from already opened and checked data."""
        table = cls.__new__(cls)
        table._state = state
        return table

    def with_data(self, data: TableData | None) -> Self:
        """Return a table with the same roles for other data, such as the same data with added columns."""
        opened = open_table(data, self._opened.options, self.roles, self._opened.derived, self._columns)
        return self._from_state(_State(checked=check_table(opened), fitted=self._state.fitted))

    def with_groups(self, columns: Mapping[str, nw.Expr], roles: Roles) -> Self:
        """Return the table with new roles and with group columns computed from its data."""
        opened = open_table(self.data, self._opened.options, roles, columns, self._columns)
        return self._from_state(_State(checked=check_table(opened), fitted=self._state.fitted))

    @property
    def _columns(self) -> frozenset[str]:
        """The columns with a role, and the columns read additionally."""
        return self.roles.columns | self._reader()._opened.columns

    def __dir__(self) -> list[str]:
        return list(_USER_NAMES)

    # What audits read -------------------------------------------------------------------------------------

    @property
    def _checked(self) -> CheckedTable:
        return self._state.checked

    @property
    def _opened(self) -> OpenedTable:
        return self._state.checked.opened

    @property
    def data(self) -> Any:
        """The data argument, with arrays added as columns."""
        return self._opened.data

    @property
    def roles(self) -> Roles:
        """The roles of the columns."""
        return self._opened.roles

    @property
    def source(self) -> Source:
        """The opened data."""
        return self._opened.source

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kind of every column; 'unread' for columns without a role."""
        return self._opened.kinds

    @property
    def cells(self) -> Cells:
        """Counts by groups, outcome and decisions."""
        return self._checked.cells

    @property
    def rows(self) -> int:
        """The number of rows, without dropped rows."""
        return self.cells.rows

    @property
    def dropped(self) -> int:
        """The number of rows dropped for a missing outcome or prediction."""
        return self._checked.dropped

    @property
    def backend(self) -> str | None:
        """The data frame library of the data; None for files and mappings."""
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
            raise ConfigError("there is no model {model!r}; {hint}", model=model, hint=did_you_mean(model, self.models))
        return self.roles.predictions[model]

    def has_scores(self, model: str) -> bool:
        """Return whether a model's column contains scores rather than decisions."""
        prediction = self.prediction(model)
        return keys.prediction_kind(prediction, self.kinds[prediction.column]) == "score"

    def has_numbers(self, model: str) -> bool:
        """Return whether a model's column contains numbers, such as salaries, rather than scores or decisions."""
        return self.prediction(model).kind == "number"

    def counts(self, model: str, within: Sequence[str] = ()) -> Cells:
        """Return counts by groups, strata, outcome and decision of one model."""
        extra = [column for column in within if column not in self.roles.group_columns]
        if not extra:
            return self.cells
        return self._reduce(f"counts of {model} within {grouping_name(within)}", within, model, self._weights())

    def score_cells(self, model: str, within: Sequence[str] = (), bins: int = 10) -> Cells:
        """Return counts and sums of scores by groups, strata, outcome, decision and score bin of one model.

        It sums the score, the squared error and their products, times the survey weight.
        """
        name = f"scores of {model} in {bins} bins" + (f" within {grouping_name(within)}" if within else "")
        bin_key = Key("bin", keys.score_bin(self.prediction(model), bins))
        return self._reduce(name, within, model, [*self._weights(), *self._score_sums(model)], bin_key)

    def score_rows(self, model: str, strata: Cells | None = None, within: Sequence[str] = ()) -> ScoreRows:
        """Return one model's scores by row, or in 16,384 bins of the range above 5,000,000 rows.

        With columns `within`, the groups of the rows include these, coded as in the cells `strata`.
        """
        if self.rows > min(EXACT_ROWS, rows_allowed(self.source.frame)):
            bin_key = Key("bin", keys.score_bin(self.prediction(model), FINE_BINS))
            name = f"ranks of {model}" + (f" within {grouping_name(within)}" if within else "")
            return binned_scores(self._reduce(name, within, model, self._weights(), bin_key))
        more = [column for column in within if column not in self.roles.group_columns]
        return self._with_type_retry(lambda table: read_scores(table, model, strata, more), within)

    def number_rows(self, model: str, strata: Cells | None = None, within: Sequence[str] = ()) -> NumberRows:
        """Return one model's numbers by row, with the outcome if there is one.

        With columns `within`, the groups of the rows include these, coded as in the cells `strata`.
        """
        require_few_rows(self.source.frame, self.rows)
        more = [column for column in within if column not in self.roles.group_columns]
        return self._with_type_retry(lambda table: read_numbers(table, model, strata, more), within)

    def person_rows(self, columns: Sequence[str]) -> PersonRows:
        """Return numeric columns and all scores by row; missing values are nan."""
        self._require_numbers(columns)
        require_few_rows(self.source.frame, self.rows)
        return self._with_type_retry(lambda table: read_people(table, columns), columns)

    def read_in_engine(self, columns: Sequence[str]) -> None:
        """Record numeric columns for later reads by `DerivedRows`; raise if one is not numeric."""
        self._require_numbers(columns)
        kinds, fitted = self._reader(columns).kinds, self._state.fitted
        scores = [self.prediction(model).column for model in self.models if model not in fitted]
        weight = [] if self.roles.weight is None else [self.roles.weight]
        names = sorted({*columns, *scores, *weight})
        self._state.ledger.add("engine", names, checksum(self, {name: kinds[name] for name in names}).digest())

    def coded_rows(self, columns: Mapping[str, str]) -> CodedRows:
        """Return columns as codes into their distinct values, by row in the engine's order, with the groups.

        `columns` maps names chosen by the caller to columns; error messages use these names, too.
        """
        kinds = self._reader(columns.values()).kinds
        for role, column in columns.items():
            _require_column(problem("`{role}` is {column!r}, which", role=role, column=column), column, kinds)
        require_few_rows(self.source.frame, self.rows)
        return self._with_type_retry(lambda table: read_coded(table, columns), columns.values())

    def holds_counts(self, column: str) -> bool:
        """Return whether a column could be a count column."""
        return holds_counts(self._reader([column]).source, column)

    def _require_numbers(self, columns: Sequence[str]) -> None:
        kinds = self._reader(columns).kinds
        for column in columns:
            _require_column(problem("column {column!r}", column=column), column, kinds)
            if kinds[column] not in NUMBERS:
                raise ConfigError("column {column!r} must hold numbers, one per person; it does not.", column=column)

    def refuse_columns_starting(self, prefix: str) -> None:
        """Raise if a column name starts with the prefix of derived columns."""
        for column in self.kinds:
            if column.startswith(prefix):
                raise DataError(
                    "the column {column!r} begins with the reserved prefix {prefix!r}; rename it.",
                    column=column,
                    prefix=prefix,
                )

    def weight_and_exponent(self) -> tuple[nw.Expr | None, int]:
        """Return the survey weight as an expression (or None), and an exponent that bounds it."""
        column = self.roles.weight
        return (None if column is None else nw.col(column).cast(nw.Float64)), self._checked.weights.exponent

    def by_group(self, column: str, values: Mapping[str, float]) -> nw.Expr:
        """Return an expression for a number per row, looked up by the group's label; nan if it has none."""
        labels = self.cells.labels[keys.column_key(column)]
        numbers = {code: float(values.get(label, float("nan"))) for code, label in enumerate(labels)}
        return keys.recoded(
            self.group_codes(column), numbers, float("nan"), nw.Float64, portable=self.source.portable_sql
        )

    def settings(self) -> dict[str, Any]:
        """Return the roles and file options with every default filled in, for JSON."""
        roles = self.roles.model_dump(mode="json")
        for model, prediction in roles["predictions"].items():
            column = prediction["column"]
            prediction["kind"] = keys.prediction_kind(self.prediction(model), self.kinds[column])
        options = self._opened.options.model_dump(mode="json", exclude={"types_from_all_rows", "memory_limit"})
        missing = options["missing_values"]
        return {**roles, **(options if self.source.paths else {"missing_values": missing} if any(missing) else {})}

    def __repr__(self) -> str:
        groups, models = ", ".join(self.groupings), ", ".join(self.models)
        return f"<Table: {self.rows:,} rows, groups {groups or 'none'}, predictions {models or 'none'}>"

    # A record of reads ----------------------------------------------------------------------------------------

    def digest(self) -> str:
        """Return a single SHA-256 of all data read so far: cells, and rows with every requested column.

        It is independent of row order, engine and order of reads. Scores of models fitted
        by evenhand are left out, because they are not data.
        """
        for name, cells in self._state.reduction_cache.items():
            fitted = {state_key(model) for model in self._state.fitted} & cells.codes.keys()
            if fitted:
                cells = cells.counts_by(name for name in cells.codes if name not in {*fitted, "bin"})
            self._state.ledger.add("cells", [name], cells.digest())
        return self._state.ledger.digest()

    def record_rows(
        self,
        columns: Mapping[str, Column],
        groups: Cells | None = None,
        weight: FloatArray | None = None,
        source: str = "rows",
    ) -> None:
        """Record columns read by row; `source` names other data that an audit reads beside the table."""
        computed = {self.prediction(model).column for model in self._state.fitted} if source == "rows" else set()
        data = {name: values for name, values in columns.items() if name not in computed}
        self._state.ledger.add_rows(source, data, groups, weight)

    def record_table(self, source: str, other: Table) -> None:
        """Record the reads of another table used by an audit beside this table."""
        self._state.ledger.add("table", [source], other.digest())

    # Reductions -----------------------------------------------------------------------------------------------

    def _reduce(self, name: str, within: Sequence[str], model: str, summands: Sequence[ColumnSum], *more: Key) -> Cells:
        cache = self._state.reduction_cache
        if name not in cache:
            kinds = self._reader(within).kinds
            for column in within:
                _require_column(problem("`within` column {column!r}", column=column), column, kinds)
            cache[name] = self._with_type_retry(
                lambda table: reduce(table.complete_rows(), [*table._keys(within, model), *more], summands), within
            )
        return cache[name]

    def _with_type_retry(self, read: Callable[[Self], T], columns: Iterable[str] = ()) -> T:
        """Return the result of a read, retried with types inferred from all rows if the first types do not fit."""
        reader = self._reader(columns)
        try:
            return read(reader)
        except MisreadTypeError:
            if not reader._opened.can_retype:
                raise
            return read(self._reader(all_rows=True))

    def _reader(self, columns: Iterable[str] = (), *, all_rows: bool = False) -> Self:
        """Return the table with additional columns open, or with types inferred from all rows; later reads reuse it."""
        reader: Self = vars(self).get("_widest", self)
        unread = [column for column in columns if reader.kinds.get(column) == "unread"]
        if unread or all_rows:
            checked = reader._checked.reopened(unread, all_rows=all_rows)
            reader = self._widest = self._from_state(replace(self._state, checked=checked))
        return reader

    def _keys(self, within: Sequence[str], model: str) -> list[Key]:
        role_keys = self._opened.keys
        strata = [role_keys.group(column) for column in within if column not in self.roles.group_columns]
        states = [key for key in role_keys.states() if key.name in ("outcome", state_key(model))]
        return [*role_keys.groups(), *strata, *states]

    def complete_rows(self, columns: Iterable[str] = ()) -> Frame:
        """Return the undropped rows in the data's engine, with all columns read so far and additional ones."""
        opened = self._reader(columns)._opened
        frame = opened.source.frame
        if self.dropped:
            for key in opened.keys.states():
                frame = frame.filter(key.expression != keys.ABSENT)
        return frame

    def group_keys(self) -> list[Key]:
        """Return the keys of the group columns."""
        return self._opened.keys.groups()

    def outcome_state(self) -> nw.Expr:
        """Return NO, YES, ABSENT or INVALID for each row's outcome; NO if there is no outcome."""
        self.require_two_outcomes()
        return self._opened.keys.outcome_state()

    def require_two_outcomes(self) -> None:
        """Raise if the outcome is numeric."""
        if self.roles.outcome_kind == "number":
            raise ConfigError(
                "this needs an outcome of two values, but {outcome!r} is a number (`outcome_kind='number'`); name "
                "another column, or run the parity audit, which compares numbers.",
                outcome=self.roles.outcome,
            )

    def states(self) -> dict[str, nw.Expr]:
        """Return the state of each row's outcome and decisions, by the key of their cells."""
        return {key.name: key.expression for key in self._opened.keys.states()}

    @cached_property
    def person_notes(self) -> tuple[Message, ...]:
        """The notes of audits that treat rows as different people: notes on the data, repeated rows and counts."""
        return (*self.source.notes, *repeat_notes(self), *count_notes(self))

    def prediction_state(self, model: str) -> nw.Expr:
        """Return NO, YES, ABSENT or INVALID for each row's decision by a model."""
        if self.has_numbers(model):
            raise ConfigError(
                "this needs scores or decisions, but model {model!r} holds numbers (`kind='number'`): leave it out, or "
                "run the parity audit, which compares numbers.",
                model=model,
            )
        return self._opened.keys.prediction_state(self.prediction(model))

    def _weights(self) -> list[ColumnSum]:
        return self._opened.keys.weights(self._checked.weights.exponent)

    def _score_sums(self, model: str) -> list[ColumnSum]:
        positive = self.outcome_state() == keys.YES if self.roles.outcome is not None else None
        return score_sums(self.prediction(model), positive, self.roles.weight, self._checked.weights.exponent)

    def group_codes(self, column: str, cells: Cells | None = None) -> nw.Expr:
        """Return an expression for the code of each row's group, as in the table's cells or in other cells."""
        key, portable = self._opened.keys.group(column), self.source.portable_sql
        if key.labels is not None:
            missing = key.expression == keys.NO_RANGE
            return nw.when(missing).then(nw.lit(len(key.labels))).otherwise(key.expression).cast(nw.Int64)
        cells = cells or self.cells
        codes, missing_code = cells.values[key.name], cells.missing_code(key.name)
        if self.kinds[column] == "text":
            return keys.recoded_text(column, codes, missing_code, portable=portable)
        return keys.recoded(key.expression, codes, missing_code, portable=portable)


def _require_column(start: Message, column: str, kinds: Mapping[str, Kind]) -> None:
    fault = column_fault(column, kinds)
    if fault:
        raise ConfigError("{start} {fault}", start=start, fault=fault)


def with_fitted_models(
    table: Table, *, before: Table, models: Collection[str], digest: str, notes: Sequence[Message]
) -> Table:
    """Return a table with predictions fitted by evenhand, which are not part of the data's hash.

    Parameters
    ----------
    table
        The table with the scores.
    before
        The table without the scores, whose files and notes the result keeps.
    models
        The names of the fitted models.
    digest
        The digest of the rows used for fitting.
    notes
        Remarks on the fits.
    """
    opened = table._opened
    # The rows are still identified by the original files.
    unique_notes = tuple(dict.fromkeys((*before.source.notes, *table.source.notes, *notes)))
    source = replace(opened.source, paths=before.source.paths, notes=unique_notes)
    checked = replace(table._checked, opened=replace(opened, source=source))
    fitted = Table._from_state(_State(checked=checked, fitted=frozenset(models)))
    fitted._state.ledger.add("models", [], digest)
    fitted.record_table("before the models", before)
    return fitted
