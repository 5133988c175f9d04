"""Outcomes, decisions, scores and groups of every person, with their keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from evenhand.errors import ConfigError, DataError, did_you_mean
from evenhand.stats.types import BoolArray, FloatArray
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
    key : identifies people, as text; None if their order does.
    positive : whether the outcome is positive; False if there is none, or if it is a number.
    selected, score : by model; only models with scores have a score, and those with numbers neither.
    groups : the group codes.
    weight : survey weights, 1 if there are none.
    """

    key: npt.NDArray[np.str_] | None
    positive: BoolArray
    selected: dict[str, BoolArray]
    score: dict[str, FloatArray]
    groups: Cells
    weight: FloatArray


def read_decided(table: Table, key: str | None = None) -> DecidedRows:
    """Return the people of a table with their outcomes and decisions.

    Parameters
    ----------
    table
        The table.
    key
        The column that identifies people; by default the table's `id`, or else the order of rows.

    Examples
    --------
    >>> import evenhand as eh
    >>> table = eh.Table({"sex": ["F", "M"], "hired": [1, 0]}, groups="sex", predictions="hired")
    >>> read_decided(table).selected["hired"].tolist()
    [True, False]
    """
    name = table.roles.id if key is None else key
    if name is not None and name not in table.kinds:
        raise ConfigError(
            "the key {name!r} is not in the data; {hint}", name=name, hint=did_you_mean(name, table.kinds)
        )
    columns = table.roles.group_columns
    require_few_rows(table.source.frame, table.rows)
    with engine_errors():
        arrays = fetch_arrays(table.complete_rows().select(**_row_expressions(table, name)))
    return DecidedRows(
        key=None if name is None else _distinct_keys(name, arrays["key"]),
        positive=np.asarray(arrays.get("positive", np.zeros(table.rows)), dtype=np.bool_),
        selected={
            model: np.asarray(arrays[f"selected{i}"], dtype=np.bool_)
            for i, model in enumerate(table.models)
            if f"selected{i}" in arrays
        },
        score={
            model: np.asarray(arrays[f"score{i}"], dtype=np.float64)
            for i, model in enumerate(table.models)
            if f"score{i}" in arrays
        },
        groups=Cells(
            {column_key(c): np.asarray(arrays[f"group{i}"], dtype=np.int64) for i, c in enumerate(columns)},
            table.cells.labels,
            np.ones(table.rows, dtype=np.int64),
        ),
        weight=np.asarray(arrays["weight"], dtype=np.float64) if "weight" in arrays else np.ones(table.rows),
    )


def _row_expressions(table: Table, key: str | None) -> dict[str, nw.Expr]:
    """Return the expressions to read for every row, by name."""
    expressions: dict[str, nw.Expr] = {
        f"group{i}": table.group_codes(name) for i, name in enumerate(table.roles.group_columns)
    }
    if table.roles.outcome_kind != "number":
        expressions["positive"] = table.outcome_state() == YES
    for i, model in enumerate(table.models):
        prediction = table.prediction(model)
        if table.has_numbers(model):
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
