"""`Table`: any data with the roles of its columns, checked once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal, Self, TypeVar

import narwhals as nw
import numpy as np

from evenhand.errors import ConfigError, DataError, did_you_mean
from evenhand.table import keys
from evenhand.table.cells import Cells, Measure, TooManyCellsError, reduce, score_measures, weight_measures
from evenhand.table.engines import MAX_CELLS, require_few_rows, rows_allowed
from evenhand.table.frames import from_arrays, name_arrays
from evenhand.table.keys import NUMBERS, Key, Kind
from evenhand.table.labels import families, labelled_key, with_value_labels
from evenhand.table.ledger import Column, Ledger, checksum
from evenhand.table.roles import Prediction, Roles, Scalar, grouping_name, make_roles
from evenhand.table.rows import CodedRows, PersonRows, ScoreRows, binned_scores, read_coded, read_people, read_scores
from evenhand.table.sources import FileOptions, MisreadTypeError, engine_errors, open_source, with_percentiles
from evenhand.table.validation import Validation, column_fault, sound_roles, state_key

T = TypeVar("T")

EXACT_ROWS = 5_000_000
FINE_BINS = 2**14


class Table:
    """A table of decisions or scores with the roles of its columns.

    Roles and rows are checked here, once; every problem is reported in one `DataError`.

    Parameters
    ----------
    data
        A data frame (pandas, Polars, PyArrow, DuckDB relation, PySpark, ibis table), a mapping of columns, or the
        path or glob of CSV, Parquet or JSON files, which DuckDB reads without loading them.
    id
        Column that identifies a person; it must not repeat. In place of any column, an array or a Series may stand.
    outcome, positive
        Column of what really happened, and the value that counts as positive (default: 1, true, yes).
    groups
        Columns that define groups; a list inside the list is an intersection: ``["race", "sex", ["race", "sex"]]``.
    cuts
        Cut points of numeric group columns: ``{"age": [25, 45, 65]}``.
    labels
        Names of groups, by column and value: ``{"black": {0: "not Black", 1: "Black"}}``. Values of one label are one
        group. Without a label, a bare number, yes or no is called by its column: "black = 1".
    one_hot
        Groups that are spread over columns of 0 and 1, by the name of the group column that they become:
        ``{"race": ["race_black", "race_white"]}``. ``labels`` may name them by column.
    predictions
        Columns by model name, ``{"xgboost": "risk"}``; settings of one model as a mapping,
        ``{"compas": {"column": "decile", "threshold": 4, "range": [1, 10], "favourable": "not_selected"}}``.
    threshold, percentile, favourable, selected_word
        Defaults for all predictions: selected when the score is above the threshold, or above a percentile of the
        scores, as ``{"of": 62, "among": "charge", "value": "felony"}``; whether being selected is
        good for the person ('selected') or bad ('not_selected'); the verb of the findings, "selects" or your own:
        "flags", "refuses".
    people
        What a row is, in the findings: "households", "applicants".
    weight
        Column of survey weights.
    missing
        'error' (default) or 'drop': what to do with rows whose outcome or prediction is missing. A missing
        group is never dropped: it is a row of its own, "(missing)", left out of gaps.
    encoding, delimiter, decimal, missing_values
        How to read a text file, where guessing is not enough.
    memory_limit
        How much memory DuckDB may fill while it reads files, such as "4GB" (default: four fifths of the machine's);
        what does not fit goes into temporary files.

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
        id: Any = None,  # noqa: A002
        outcome: Any = None,
        positive: Scalar | None = None,
        groups: Any = (),
        cuts: Mapping[str, Sequence[float]] | None = None,
        labels: Mapping[str, Mapping[Any, str]] | None = None,
        one_hot: Mapping[str, Sequence[str]] | None = None,
        predictions: Any = None,
        weight: Any = None,
        threshold: float | None = None,
        percentile: Mapping[str, Any] | None = None,
        favourable: Literal["selected", "not_selected"] | None = None,
        selected_word: str | None = None,
        people: str | None = None,
        missing: Literal["error", "drop"] = "error",
        encoding: str | None = None,
        delimiter: str | None = None,
        decimal: str = ".",
        missing_values: Sequence[str] = ("",),
        memory_limit: str | None = None,
    ) -> None:
        columns = {"id": id, "outcome": outcome, "groups": groups, "predictions": predictions, "weight": weight}
        data, columns = name_arrays(data, columns)
        self.roles: Roles = make_roles(
            positive=positive,
            cuts=cuts,
            labels=labels,
            one_hot=one_hot,
            threshold=threshold,
            percentile=percentile,
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
        self._options = options
        self._read(data)

    @classmethod
    def from_arrays(
        cls,
        *,
        y_true: Any = None,
        y_pred: Any = None,
        y_score: Any = None,
        sensitive_features: Any,
        sample_weight: Any = None,
        **settings: Any,
    ) -> Self:
        """Make a table of arrays, Series or lists, as scikit-learn and fairlearn users hold them.

        Parameters
        ----------
        y_true, sample_weight
            What really happened, and survey weights.
        y_pred, y_score
            Decisions, and scores; one of them is needed. A mapping holds those of several models by name.
        sensitive_features
            The groups: an array, a Series, a data frame or a mapping of several.
        **settings
            Any other argument of `Table`: `positive`, `threshold`, `favourable`, `cuts`, `missing`.

        Examples
        --------
        >>> table = Table.from_arrays(y_true=[1, 0, 1, 0], y_pred=[1, 0, 1, 1], sensitive_features=["f", "f", "m", "m"])
        >>> table.models, list(table.groupings)
        (('y_pred',), ['group'])
        """
        return cls(**from_arrays(y_true, y_pred, y_score, sensitive_features, sample_weight, settings))

    def with_data(self, data: Any) -> Self:
        """Return a table with the same roles of other data, such as its own with columns added."""
        changed = copy(self)
        changed._read(data)
        return changed

    def with_groups(self, columns: Mapping[str, nw.Expr], roles: Roles) -> Self:
        """Return the table with group columns that are worked out from those of the data, and the roles they have."""
        changed = copy(self)
        changed._in_place = dict(columns)
        changed._open()
        changed.roles, changed._ledger = roles, Ledger()
        changed.with_type_retry(changed._check)
        return changed

    def _read(self, data: Any) -> None:
        """Open the data and check everything."""
        self.data = data
        self._weighty: tuple[nw.Expr, str] | None = None
        self._in_place: dict[str, nw.Expr] = {}
        self._ledger, self._fitted = Ledger(), frozenset[str]()
        self._open()
        self.with_type_retry(self._check)

    def _open(self) -> None:
        self.source = open_source(self.data, self._options)
        self.roles = with_value_labels(self.roles, self.source.labels)
        with engine_errors():
            schema = self.source.frame.collect_schema()
        self.kinds: dict[str, Kind] = keys.kinds_of(schema)
        self.roles, self.source = with_percentiles(self.roles, self.source, self.kinds)
        for family, column in families(self.roles, self.kinds).items():
            self.source = replace(self.source, frame=self.source.frame.with_columns(**{family: column}))
            self.kinds[family] = "text"
        if self._in_place:
            self.source = replace(self.source, frame=self.source.frame.with_columns(**self._in_place))
            with engine_errors():
                found = keys.kinds_of(self.source.frame.collect_schema())
            self.kinds |= {name: found[name] for name in self._in_place}
        if self._weighty is not None:
            self.source = self.source.only(*self._weighty)

    def with_type_retry(self, read: Callable[[], T]) -> T:
        """Read; where a later row of a file has another type than the first, infer types from all and read again."""
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
        all_roles = self.roles
        misfits = list(self._validation().schema_problems())
        problems = [text for _, text in misfits if text]
        self.roles = sound_roles(all_roles, {column for column, _ in misfits})
        self._weight_exponent, bad_weights = self._check_weights()
        check = self._validation()
        try:
            all_keys = [*self.group_keys(), *self._state_keys()]
            counted = reduce(self.source.frame, all_keys, [] if bad_weights else self._weights(), most=MAX_CELLS)
            problems += [*bad_weights, *check.row_problems(counted)]
            if self.roles.id is not None and counted.rows:
                problems += check.id_problems(self.roles.id, counted.rows)
        except TooManyCellsError:
            problems += [*bad_weights, *check.crowded_columns()]
        self.roles = all_roles
        if problems:
            raise DataError(problems)
        notes = (*self.source.notes, *check.notes(counted))
        self.source = replace(self.source, notes=notes)
        self._drop_absent(counted)

    def _validation(self) -> Validation:
        return Validation(self.roles, self.kinds, self.source)

    def _check_weights(self) -> tuple[int, list[str]]:
        """Return an exponent that bounds the survey weights, and what is wrong with them."""
        if self.roles.weight is None:
            return 0, []
        problems, exponent, zeros = self._validation().weight_problems(self.roles.weight)
        if problems:
            return 0, problems
        if zeros:
            verb = "row has" if zeros == 1 else "rows have"
            note = f"{zeros:,} {verb} a weight of 0 and count{'s' if zeros == 1 else ''} as nobody."
            self._weighty = (nw.col(self.roles.weight) > 0, note)
            self.source = self.source.only(*self._weighty)
        return exponent, []

    def _drop_absent(self, counted: Cells) -> None:
        """Drop rows with a missing outcome or prediction, where that was asked for, and count them."""
        absent = np.zeros(len(counted.n), dtype=bool)
        for key in self._state_keys():
            labels = counted.labels[key.name]
            absent |= np.array([labels[code] == str(keys.ABSENT) for code in counted.codes[key.name]], dtype=bool)
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
        return keys.prediction_kind(prediction, self.kinds[prediction.column]) == "score"

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
        bin_key = Key("bin", keys.score_bin(self.prediction(model), bins))
        return self._reduce(name, within, model, [*self._weights(), *self._score_measures(model)], bin_key)

    def score_rows(self, model: str) -> ScoreRows:
        """Return one model's scores row by row; above 5,000,000 rows, in 16,384 bins of the score's range."""
        if self.rows > min(EXACT_ROWS, rows_allowed(self.source.frame)):
            bin_key = Key("bin", keys.score_bin(self.prediction(model), FINE_BINS))
            return binned_scores(self._reduce(f"ranks of {model}", (), model, self._weights(), bin_key))
        return self.with_type_retry(lambda: read_scores(self, model))

    def person_rows(self, columns: Sequence[str]) -> PersonRows:
        """Return numeric columns and all scores row by row; a value that is missing is nan."""
        self._require_numbers(columns)
        require_few_rows(self.source.frame, self.rows)
        return self.with_type_retry(lambda: read_people(self, columns))

    def read_in_engine(self, columns: Sequence[str]) -> None:
        """Note numeric columns that `DerivedRows` will read beside the scores; refuse what holds no numbers."""
        self._require_numbers(columns)
        scores = [self.prediction(model).column for model in self.models if model not in self._fitted]
        weight = [] if self.roles.weight is None else [self.roles.weight]
        names = sorted({*columns, *scores, *weight})
        self._ledger.add("engine", names, checksum(self, {name: self.kinds[name] for name in names}).digest())

    def coded_rows(self, columns: Mapping[str, str]) -> CodedRows:
        """Return columns as codes into their distinct values, row by row in the engine's order, with the groups.

        `columns` gives each column a name of the caller's, by which messages call it too.
        """
        for role, column in columns.items():
            self._require_column(f"`{role}` is {column!r}, which", column)
        require_few_rows(self.source.frame, self.rows)
        return self.with_type_retry(lambda: read_coded(self, columns))

    def _require_numbers(self, columns: Sequence[str]) -> None:
        for column in columns:
            self._require_column(f"column {column!r}", column)
            if self.kinds[column] not in NUMBERS:
                raise ConfigError(f"column {column!r} must hold numbers, one per person; it does not.")

    def _require_column(self, start: str, column: str) -> None:
        fault = column_fault(column, self.kinds)
        if fault:
            raise ConfigError(f"{start} {fault}")

    def refuse_columns_starting(self, prefix: str) -> None:
        """Refuse a column whose name begins like those that are worked out beside the data's own."""
        for column in self.kinds:
            if column.startswith(prefix):
                raise DataError(f"the column {column!r} begins with {prefix!r}, as our own do: rename it.")

    def weight_and_exponent(self) -> tuple[nw.Expr | None, int]:
        """Return the survey weight as an expression, and an exponent that bounds it."""
        column = self.roles.weight
        return (None if column is None else nw.col(column).cast(nw.Float64)), self._weight_exponent

    def by_group(self, column: str, values: Mapping[str, float]) -> nw.Expr:
        """Return a number for each group of a group column; not a number where none is given."""
        labels = self.cells.labels[keys.column_key(column)]
        numbers = {code: float(values.get(label, float("nan"))) for code, label in enumerate(labels)}
        return keys.recoded(self.group_codes(column), numbers, float("nan"), nw.Float64)

    def settings(self) -> dict[str, Any]:
        """Return the roles and file options with every default filled in, as JSON can hold them."""
        roles = self.roles.model_dump(mode="json")
        for model, prediction in roles["predictions"].items():
            prediction["kind"] = "score" if self.has_scores(model) else "decision"
        options = self._options.model_dump(mode="json", exclude={"types_from_all_rows", "memory_limit"})
        return {**roles, **(options if self.source.paths else {})}

    def __repr__(self) -> str:
        groups, models = ", ".join(self.groupings), ", ".join(self.models)
        return f"<Table: {self.rows:,} rows, groups {groups or 'none'}, predictions {models or 'none'}>"

    # What was read ----------------------------------------------------------------------------------------

    def digest(self) -> str:
        """Return one SHA-256 over all that was read so far: cells, and rows with every column that was asked for.

        It depends neither on the order of rows nor on the engine nor on the order of the reads. Scores of models that
        were fitted here are no data, and left out.
        """
        for name, cells in self._reductions.items():
            fitted = {state_key(model) for model in self._fitted} & cells.codes.keys()
            if fitted:
                cells = cells.counts_by(name for name in cells.codes if name not in {*fitted, "bin"})
            self._ledger.add("cells", [name], cells.digest())
        return self._ledger.digest()

    def record_rows(
        self, columns: Mapping[str, Column], groups: Cells | None = None, weight: Any = None, source: str = "rows"
    ) -> None:
        """Note columns that were read row by row; `source` names other data that an audit reads beside the table."""
        computed = {self.prediction(model).column for model in self._fitted} if source == "rows" else set()
        data = {name: values for name, values in columns.items() if name not in computed}
        self._ledger.add_rows(source, data, groups, weight)

    def record_table(self, source: str, other: Table) -> None:
        """Note what was read of another table that an audit reads beside this one."""
        self._ledger.add("table", [source], other.digest())

    def record_models(self, models: Collection[str], digest: str) -> None:
        """Note that some predictions are no data, but were fitted here to data with this digest."""
        self._fitted = frozenset(models)
        self._ledger.add("models", [], digest)

    # How it reduces ---------------------------------------------------------------------------------------

    def _reduce(self, name: str, within: Sequence[str], model: str, measures: Sequence[Measure], *more: Key) -> Cells:
        if name not in self._reductions:
            for column in within:
                self._require_column(f"`within` column {column!r}", column)
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
                frame = frame.filter(key.expression != keys.ABSENT)
        return frame

    def _group_key(self, column: str) -> Key:
        return labelled_key(self.roles, column, self.kinds[column])

    def group_keys(self) -> list[Key]:
        """Return the keys of the group columns."""
        return [self._group_key(column) for column in self.roles.group_columns]

    def _state_keys(self) -> list[Key]:
        states = []
        if self.roles.outcome is not None:
            states.append(("outcome", self.roles.outcome, self.outcome_state()))
        for name, prediction in self.roles.predictions.items():
            state = keys.prediction_state(prediction, self.kinds[prediction.column])
            states.append((state_key(name), prediction.column, state))
        return [Key(name, state, column=keys.discrete(column, self.kinds[column])) for name, column, state in states]

    def outcome_state(self) -> nw.Expr:
        """Return NO, YES, ABSENT or INVALID for each row's outcome; NO where there is none."""
        if self.roles.outcome is None:
            return nw.lit(keys.NO)
        return keys.binary_state(self.roles.outcome, self.kinds[self.roles.outcome], self.roles.positive)

    def _weights(self) -> list[Measure]:
        return weight_measures(self.roles.weight, self._weight_exponent) if self.roles.weight is not None else []

    def _score_measures(self, model: str) -> list[Measure]:
        positive = self.outcome_state() == keys.YES if self.roles.outcome is not None else None
        return score_measures(self.prediction(model), positive, self.roles.weight, self._weight_exponent)

    def group_codes(self, column: str) -> nw.Expr:
        """Return the code of each row's group, the codes of the counted cells."""
        key = self._group_key(column)
        if key.labels is not None:
            missing = key.expression == keys.NO_RANGE
            return nw.when(missing).then(nw.lit(len(key.labels))).otherwise(key.expression).cast(nw.Int64)
        codes, other = self.cells.values[key.name], self.cells.missing_code(key.name)
        if self.kinds[column] == "text":
            return keys.recoded_text(column, codes, other)
        return keys.recoded(key.expression, codes, other)
