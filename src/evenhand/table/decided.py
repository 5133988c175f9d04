"""Outcomes, decisions, scores, groups and keys of all people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenhand.errors import ConfigError, DataError, did_you_mean
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.engines import require_few_rows
from evenhand.table.keys import YES, column_key, prediction_state
from evenhand.table.roles import Prediction
from evenhand.table.sources import engine_errors, fetch_arrays

if TYPE_CHECKING:
    from evenhand.table.table import Table


@dataclass(frozen=True, kw_only=True)
class DecidedRows:
    """One entry per person, in the engine's order.

    Parameters
    ----------
    key : text ids of people, or of clusters in a table with `cluster`; None if people are matched by row order.
    cluster : the index of each person's cluster in `key`; None if people are independent.
    positive : whether the outcome is positive; False without an outcome or with a numeric outcome.
    outcome : the numeric outcome; otherwise None.
    selected, score, number : decisions, scores and numbers by model; a model has either numbers, or decisions and
        possibly scores.
    groups : the group codes.
    weight : survey weights; all 1 without survey weights.
    """

    key: npt.NDArray[np.str_] | None
    positive: BoolArray
    selected: dict[str, BoolArray]
    score: dict[str, FloatArray]
    number: dict[str, FloatArray]
    outcome: FloatArray | None
    groups: Cells
    weight: FloatArray
    cluster: IntArray | None = None

    def by_key(self, values: FloatArray) -> FloatArray:
        """Return the values of people, summed within clusters if there are any."""
        if self.cluster is None or self.key is None:
            return values
        return np.bincount(self.cluster, weights=values, minlength=len(self.key)).astype(np.float64)


def read_decided(table: Table, key: str | None = None) -> DecidedRows:
    """Return the outcomes, decisions, scores and groups of a table's people.

    Parameters
    ----------
    table
        The table.
    key
        The column that identifies people; by default the table's `id`, or else the row order. A table with
        `cluster` uses the cluster column instead.

    Examples
    --------
    >>> import evenhand as eh
    >>> table = eh.Table({"sex": ["F", "M"], "hired": [1, 0]}, groups="sex", predictions="hired")
    >>> read_decided(table).selected["hired"].tolist()
    [True, False]
    """
    of_cluster = table.roles.cluster
    name = of_cluster or (table.roles.id if key is None else key)
    if name is not None and name not in table.kinds:
        raise ConfigError(
            "the key {name!r} is not in the data; {hint}", name=name, hint=did_you_mean(name, table.kinds)
        )
    columns = table.roles.group_columns
    require_few_rows(table.source.frame, table.rows)
    with engine_errors():
        arrays = fetch_arrays(table.complete_rows().select(**_row_expressions(table, name)))
    keys, clusters = (None, None) if name is None else _keys(name, arrays["key"], repeat=of_cluster is not None)
    return DecidedRows(
        key=keys,
        cluster=clusters,
        positive=np.asarray(arrays.get("positive", np.zeros(table.rows)), dtype=np.bool_),
        selected=_by_model(table, arrays, "selected", np.bool_),
        score=_by_model(table, arrays, "score", np.float64),
        number=_by_model(table, arrays, "number", np.float64),
        outcome=np.asarray(arrays["outcome"], dtype=np.float64) if "outcome" in arrays else None,
        groups=Cells(
            {column_key(c): np.asarray(arrays[f"group{i}"], dtype=np.int64) for i, c in enumerate(columns)},
            table.cells.labels,
            np.ones(table.rows, dtype=np.int64),
        ),
        weight=np.asarray(arrays.get("weight", np.ones(table.rows)), dtype=np.float64),
    )


def _row_expressions(table: Table, key: str | None) -> dict[str, nw.Expr]:
    """Return the expressions to read for every row, by name."""
    expressions: dict[str, nw.Expr] = {
        f"group{i}": table.group_codes(name) for i, name in enumerate(table.roles.group_columns)
    }
    if table.roles.outcome_kind == "number" and table.roles.outcome is not None:
        expressions["outcome"] = nw.col(table.roles.outcome).cast(nw.Float64)
    else:
        expressions["positive"] = table.outcome_state() == YES
    for i, model in enumerate(table.models):
        prediction = table.prediction(model)
        if table.has_numbers(model):
            expressions[f"number{i}"] = nw.col(prediction.column).cast(nw.Float64)
            continue
        expressions[f"selected{i}"] = _state(table, prediction) == YES
        if table.has_scores(model):
            expressions[f"score{i}"] = nw.col(prediction.column).cast(nw.Float64)
    weight = table.weight_and_exponent()[0]
    if weight is not None:
        expressions["weight"] = weight
    if key is not None:
        expressions["key"] = nw.col(key).cast(nw.String)
    return expressions


def _state(table: Table, prediction: Prediction) -> nw.Expr:
    return prediction_state(prediction, table.kinds[prediction.column], portable=table.source.portable_sql)


def _by_model(table: Table, arrays: Mapping[str, Any], name: str, kind: type[Any]) -> dict[str, npt.NDArray[Any]]:
    """Return a column for every model that has it."""
    named = {model: f"{name}{i}" for i, model in enumerate(table.models)}
    return {model: np.asarray(arrays[key], dtype=kind) for model, key in named.items() if key in arrays}


def _keys(name: str, values: npt.NDArray[Any], *, repeat: bool) -> tuple[npt.NDArray[np.str_], IntArray | None]:
    """Return the distinct keys of people; if keys may repeat, the distinct clusters and each person's cluster index."""
    if not repeat:
        return _distinct_keys(name, values), None
    return np.unique(np.asarray(values).astype(str), return_inverse=True)


def _distinct_keys(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    keys = np.asarray(values).astype(str)
    distinct, counts = np.unique(keys, return_counts=True)
    if len(distinct) < len(keys):
        worst = distinct[int(np.argmax(counts))]
        raise DataError(
            "the key {name!r} does not tell people apart: {worst!r} stands in {max} rows.",
            name=name,
            worst=str(worst),
            max=counts.max(),
        )
    return keys
