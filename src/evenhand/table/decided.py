"""Who was decided how: outcome, decisions, scores and groups person by person, with what tells people apart."""

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
    """One entry a person, in the engine's order.

    Parameters
    ----------
    key : what tells people apart, as text; None where rows are people by their order.
    positive : whether the outcome is positive; False where there is none.
    selected, score : by model; scores of those that have any.
    groups : the group codes.
    weight : survey weights, 1 where there are none.
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
        The column that tells people apart; by default the table's `id`, and without one the order of rows.

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
            "the key {name!r} is not in the data; {hint}",
            name=name,
            hint=did_you_mean(name, table.kinds),
        )
    columns = table.roles.group_columns
    require_few_rows(table.source.frame, table.rows)
    with engine_errors():
        arrays = fetch_arrays(table.complete_rows().select(**_row_expressions(table, name)))
    return DecidedRows(
        key=None if name is None else _distinct_keys(name, arrays["key"]),
        positive=np.asarray(arrays["positive"], dtype=np.bool_),
        selected={model: np.asarray(arrays[f"selected{at}"], dtype=np.bool_) for at, model in enumerate(table.models)},
        score={
            model: np.asarray(arrays[f"score{at}"], dtype=np.float64)
            for at, model in enumerate(table.models)
            if f"score{at}" in arrays
        },
        groups=Cells(
            {column_key(c): np.asarray(arrays[f"group{at}"], dtype=np.int64) for at, c in enumerate(columns)},
            table.cells.labels,
            np.ones(table.rows, dtype=np.int64),
        ),
        weight=np.asarray(arrays["weight"], dtype=np.float64) if "weight" in arrays else np.ones(table.rows),
    )


def _row_expressions(table: Table, key: str | None) -> dict[str, nw.Expr]:
    """Return what is read of everybody, by its name."""
    read: dict[str, nw.Expr] = {
        f"group{at}": table.group_codes(name) for at, name in enumerate(table.roles.group_columns)
    }
    read["positive"] = table.outcome_state() == YES
    for at, model in enumerate(table.models):
        prediction = table.prediction(model)
        read[f"selected{at}"] = _state(table, prediction) == YES
        if table.has_scores(model):
            read[f"score{at}"] = nw.col(prediction.column).cast(nw.Float64)
    weight = table.weight_and_exponent()[0]
    if weight is not None:
        read["weight"] = weight
    if key is not None:
        read["key"] = nw.col(key).cast(nw.String)
    return read


def _state(table: Table, prediction: Prediction) -> nw.Expr:
    return prediction_state(prediction, table.kinds[prediction.column], portable=table.source.portable_sql)


def _distinct_keys(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    keys = np.asarray(values).astype(str)
    found, times = np.unique(keys, return_counts=True)
    if len(found) < len(keys):
        worst = found[int(np.argmax(times))]
        raise DataError(
            "the key {name!r} does not tell people apart: {worst!r} stands in {max} rows.",
            name=name,
            worst=str(worst),
            max=times.max(),
        )
    return keys
