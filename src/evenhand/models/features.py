"""Features as a numeric matrix for every audit and model, and the rows to which models are fitted.

- Numbers stay as they are.
- Truth values are 0 and 1: boolean columns, and text columns that contain only true and false (as in files).
- Other text is coded by its rank among the distinct texts, which are its labels.
- Missing and blank values are nan.

Estimators treat text and truth values as categories, and all other values as numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenhand.errors import ConfigError, DataError, count, problem
from evenhand.messages import Message
from evenhand.stats.types import LARGEST, BoolArray, FloatArray, IntArray
from evenhand.table.coding import Coded
from evenhand.table.engines import remote_engine_name
from evenhand.table.frames import TableData
from evenhand.table.keys import ABSENT, NUMBERS, YES, Kind, binary_state, is_absent, kinds_of, plain_value
from evenhand.table.ledger import rows_digest
from evenhand.table.roles import Roles
from evenhand.table.sources import FileOptions, MisreadTypeError, Source, engine_errors, fetch_arrays, open_source
from evenhand.table.validation import column_fault

MOST_LABELS = 200  # distinct texts of a feature; more would be names, not categories
TRUTH_LABELS = ("false", "true")


@dataclass(frozen=True, eq=False)
class Feature:
    """A column of a feature matrix.

    Parameters
    ----------
    name : the name of the column.
    kind : its kind of values.
    labels : the meanings of the codes 0, 1 ... of text and truth values; empty for numbers.
    distinct : the distinct numbers or codes, in order.
    integer : whether the column has an integer type.
    """

    name: str
    kind: Literal["number", "truth", "text"]
    labels: tuple[str, ...]
    distinct: FloatArray
    integer: bool = False


@dataclass(frozen=True, eq=False)
class FeatureMatrix:
    """A numeric matrix of features, with the meaning of its columns.

    Parameters
    ----------
    features : the meaning of the columns of `values`.
    values : (rows, features) numbers, and codes of categories; nan if missing.
    """

    features: tuple[Feature, ...]
    values: FloatArray

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(feature.name for feature in self.features)

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The meanings of the codes of each categorical feature."""
        return {feature.name: feature.labels for feature in self.features if feature.kind != "number"}

    @property
    def categories(self) -> list[int]:
        """The indices of features that an estimator treats as categories: text and truth values."""
        return [position for position, feature in enumerate(self.features) if feature.kind != "number"]

    @property
    def numbers(self) -> list[int]:
        """The indices of numeric features."""
        return [position for position, feature in enumerate(self.features) if feature.kind == "number"]

    @property
    def complete(self) -> BoolArray:
        """Mask of rows without missing values."""
        return np.asarray(~np.isnan(self.values).any(axis=1), dtype=np.bool_)

    def refuse_missing(
        self, rows: BoolArray | None = None, advice: str | Message = "fill them, or drop them with `missing='drop'`"
    ) -> None:
        """Raise a `DataError` if values are missing in these rows, with their number for each feature."""
        absent = np.isnan(self.values) if rows is None else np.isnan(self.values) & rows[:, None]
        problems = [
            problem(
                "feature {name!r} is missing in {rows} of {number:,}; {advice}.",
                name=name,
                rows=count(int(n), "row"),
                number=len(self.values),
                advice=problem(advice) if isinstance(advice, str) else advice,
            )
            for name, n in zip(self.names, absent.sum(axis=0), strict=True)
            if n
        ]
        if problems:
            raise DataError(problems)


def read_features(columns: Mapping[str, Coded | FloatArray], rows: int) -> FeatureMatrix:
    """Return the columns of one table as a matrix; raise one error for all unusable columns.

    Parameters
    ----------
    columns : the columns by name of the feature: codes with values, as from `Table.coded_rows`, or numbers.
    rows : the number of rows.

    Examples
    --------
    >>> job = Coded(np.array([1, 0, -1]), ("clerk", "nurse"))
    >>> owner = Coded(np.array([0, 1, 1]), ("FALSE", "TRUE"))
    >>> matrix = read_features({"job": job, "owner": owner, "income": np.array([3.5, 1.0, 2.0])}, rows=3)
    >>> [feature.kind for feature in matrix.features], matrix.labels["job"]
    (['text', 'truth', 'number'], ('clerk', 'nurse'))
    >>> matrix.values.tolist()
    [[1.0, 0.0, 3.5], [0.0, 1.0, 1.0], [nan, 1.0, 2.0]]
    """
    problems = [
        columns_read for name, column in columns.items() if (columns_read := _problem(name, column)) is not None
    ]
    if problems:
        raise DataError(problems)
    parts = [_feature(name, column) for name, column in columns.items()]
    values = np.column_stack([numbers for _, numbers in parts]) if parts else np.empty((rows, 0))
    return FeatureMatrix(tuple(feature for feature, _ in parts), values)


def _problem(name: str, column: Coded | FloatArray) -> Message | None:
    values = column.values if isinstance(column, Coded) else column[~np.isnan(column)]
    if not len(values):
        return problem("feature {name!r} holds no values; leave it out.", name=name)
    if not isinstance(values[0], str):
        largest = float(max(np.asarray(values, dtype=np.float64), key=abs))
        if np.isinf(largest):
            return problem("feature {name!r} holds infinite values; replace them.", name=name)
        too_large = problem(
            "feature {name!r} holds {largest:g}, out of reach of the arithmetic; give it in other units.",
            name=name,
            largest=largest,
        )
        return too_large if abs(largest) > LARGEST else None
    if len(values) > MOST_LABELS:
        return problem(
            "feature {name!r} holds {number:,} different texts, more than {most}; put them into fewer kinds, or leave "
            "it out.",
            name=name,
            number=len(values),
            most=MOST_LABELS,
        )
    return None


def _feature(name: str, column: Coded | FloatArray) -> tuple[Feature, FloatArray]:
    if not isinstance(column, Coded):
        return Feature(name, "number", (), np.unique(column[~np.isnan(column)])), column
    first = column.values[0]
    if not isinstance(first, str | bool | np.bool_):
        numbers = np.array([float(value) for value in column.values])
        feature = Feature(name, "number", (), numbers, integer=isinstance(first, int | np.integer))
    elif {str(value).lower() for value in column.values} <= set(TRUTH_LABELS):
        numbers = np.array([float(TRUTH_LABELS.index(str(value).lower())) for value in column.values])
        feature = Feature(name, "truth", TRUTH_LABELS, np.unique(numbers))
    else:
        numbers = np.arange(len(column.values), dtype=np.float64)
        feature = Feature(name, "text", tuple(str(value) for value in column.values), numbers)
    return feature, np.append(numbers, np.nan)[column.codes]  # -1, a missing value, is the last


# The rows that models are fitted to ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Training:
    """The rows of the data for fitting models, in the order of the data.

    Parameters
    ----------
    source : the opened data.
    features : the features of all rows.
    outcome : whether the outcome is positive.
    usable : mask of rows without missing values and with a survey weight above 0; only these are used.
    by_id : the row indices sorted by id; without ids, in the order of the data.
    ids : the ids of the data, or None.
    """

    source: Source
    features: FeatureMatrix
    outcome: BoolArray
    usable: BoolArray
    by_id: IntArray
    ids: npt.NDArray[Any] | None

    @property
    def matrix(self) -> FloatArray:
        """The features as a numeric matrix."""
        return self.features.values

    def digest(self) -> str:
        """Return a SHA-256 of the used rows' features and outcome, independent of the order of rows."""
        columns: dict[str, Any] = {"outcome": self.outcome[self.usable]}
        for feature, values in zip(self.features.features, self.matrix[self.usable].T, strict=True):
            is_number = feature.kind == "number"
            column = values if is_number else Coded(values.astype(np.int64), feature.labels)
            columns[f"feature {feature.name}"] = column
        return rows_digest(columns)


def read_training(data: TableData, options: FileOptions, roles: Roles, features: Sequence[str]) -> Training:
    """Read features and outcome into memory; missing values raise, or exclude a row on request."""
    _require_roles(roles, features)
    try:
        return _read(open_source(data, options), roles, tuple(features))
    except MisreadTypeError:  # a later row has another type than the first rows
        all_rows = options.model_copy(update={"types_from_all_rows": True})
        return _read(open_source(data, all_rows), roles, tuple(features))


def _require_roles(roles: Roles, features: Sequence[str]) -> None:
    if any(prediction.kind == "number" for prediction in roles.predictions.values()):
        raise ConfigError(
            "models fitted here predict an outcome of two values, not a number; add the predictions of a regressor as "
            "a column, or with eh.fitted."
        )
    if roles.outcome is None:
        raise ConfigError("models need an outcome to predict; name its column as `outcome`.")
    for column, role in ((roles.outcome, "the outcome"), (roles.id, "the id")):
        if column in features:
            raise ConfigError("`features` names {column!r}, which is {role}; leave it out.", column=column, role=role)


def _read(source: Source, roles: Roles, names: tuple[str, ...]) -> Training:
    engine = remote_engine_name(source.frame)
    if engine is not None:
        raise ConfigError(
            "models are fitted on this machine, and the data is in {engine}; score the table there and name "
            "the scores as predictions, or save the columns as Parquet and give their path.",
            engine=engine,
        )
    with engine_errors():
        kinds = kinds_of(source.frame.collect_schema())
    _require_columns(names, kinds)
    if source.connection is not None:
        # Without ids the folds follow the order of the rows, by which the scores are always put back.
        source.connection.execute("set preserve_insertion_order = true")
    with engine_errors():
        arrays = fetch_arrays(source.frame.select(**_expressions(roles, names, kinds)))
    state = np.asarray(arrays["outcome"], dtype=np.int64)
    columns = {
        name: _numbers(arrays[f"feature{i}"]) if kinds[name] in NUMBERS else _coded(arrays[f"feature{i}"])
        for i, name in enumerate(names)
    }
    features = read_features(columns, len(state))
    weighted = _numbers(arrays["weight"]) > 0 if "weight" in arrays else np.ones(len(state), dtype=np.bool_)
    if roles.missing == "error":
        features.refuse_missing(weighted)
    order = np.argsort(np.asarray(arrays["name"]).astype(str), kind="stable") if "id" in arrays else None
    return Training(
        source=source,
        features=features,
        outcome=state == YES,
        usable=features.complete & (state != ABSENT) & weighted,
        by_id=np.arange(len(state)) if order is None else order,
        ids=arrays.get("id"),
    )


def _require_columns(features: Sequence[str], kinds: Mapping[str, Kind]) -> None:
    for name in features:
        fault = column_fault(name, kinds)
        if fault:
            raise ConfigError("feature {name!r} {fault}", name=name, fault=fault)
        if kinds[name] not in (*NUMBERS, "boolean", "text"):
            raise ConfigError(
                "feature {name!r} must hold numbers, true or false, or text; turn it into one of them.", name=name
            )


def _expressions(roles: Roles, features: Sequence[str], kinds: Mapping[str, Kind]) -> dict[str, nw.Expr]:
    assert roles.outcome is not None  # noqa: S101
    outcome = binary_state(roles.outcome, kinds[roles.outcome], roles.positive, portable=False)
    expressions = {"outcome": outcome}
    for position, name in enumerate(features):
        expressions[f"feature{position}"] = _feature_expression(name, kinds[name])
    if roles.id is not None:
        expressions |= {"id": nw.col(roles.id), "name": plain_value(roles.id, kinds[roles.id]).cast(nw.String)}
    if roles.weight is not None:
        expressions["weight"] = nw.col(roles.weight).cast(nw.Float64)
    return expressions


def _feature_expression(name: str, kind: Kind) -> nw.Expr:
    """Return an expression for a feature, with nan or "" for missing values."""
    if kind in NUMBERS:
        return nw.col(name).cast(nw.Float64).fill_null(float("nan"))
    blank = nw.when(is_absent(name, kind, portable=False)).then(nw.lit(""))
    if kind == "text":
        return blank.otherwise(plain_value(name, kind))
    return blank.when(nw.col(name)).then(nw.lit("true")).otherwise(nw.lit("false"))


def _numbers(values: npt.NDArray[Any]) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def _coded(values: npt.NDArray[Any]) -> Coded:
    texts, codes = np.unique(np.asarray(values).astype(str), return_inverse=True)
    blank = int(texts[:1].tolist() == [""])  # "" sorts first
    return Coded(codes.reshape(-1).astype(np.int64) - blank, tuple(texts[blank:].tolist()))
