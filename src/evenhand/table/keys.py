"""The expressions that turn columns into the keys of cells: group codes, outcome and decision states.

A state is a small whole number, so that one group-by both counts the cells and finds the bad rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw

from evenhand.table.roles import Prediction, Scalar

NO, YES, ABSENT, INVALID = 0, 1, 2, 3
NO_RANGE = -1  # the code of a missing value among the ranges between cut points

TRUE_WORDS = ("1", "yes", "y", "true", "t")
FALSE_WORDS = ("0", "no", "n", "false", "f")

Kind = Literal["text", "boolean", "whole", "real", "other"]


@dataclass(frozen=True)
class Key:
    """One key of a reduction: its name, the expression, and for cut points the labels of its codes."""

    name: str
    expression: nw.Expr
    labels: tuple[str, ...] | None = None


def kind_of(dtype: Any) -> Kind:
    """Return what a column's type means to us."""
    if dtype.is_integer():
        return "whole"
    if dtype.is_numeric():
        return "real"
    if dtype == nw.Boolean:
        return "boolean"
    if dtype in (nw.String, nw.Categorical, nw.Object) or dtype == nw.Enum:
        return "text"
    return "other"


def is_absent(column: str, kind: Kind) -> nw.Expr:
    """Return the test for a missing value; not-a-number counts as missing, as it does in pandas."""
    value = nw.col(column)
    return value.is_null() | value.is_nan() if kind == "real" else value.is_null()


def group_key(column: str, kind: Kind, cuts: tuple[float, ...] | None) -> Key:
    """Return the key of one group column; blank text and not-a-number are missing."""
    value = _text(column) if kind == "text" else nw.col(column)
    if cuts is not None:
        code: Any = nw.when(is_absent(column, kind)).then(nw.lit(NO_RANGE))
        for position, cut in enumerate(cuts):
            code = code.when(nw.col(column) < cut).then(nw.lit(position))
        return Key(column, code.otherwise(nw.lit(len(cuts))).cast(nw.Int64), cut_labels(cuts))
    if kind == "text":
        blank = value.is_null() | (value.str.strip_chars() == "")
        return Key(column, nw.when(~blank).then(value))
    if kind == "real":
        return Key(column, nw.when(~is_absent(column, kind)).then(value))
    return Key(column, value)


def cut_labels(cuts: tuple[float, ...]) -> tuple[str, ...]:
    """Return the names of the ranges between cut points, each closed below.

    Examples
    --------
    >>> cut_labels((25, 45))
    ('under 25', '25 to under 45', '45 and over')
    """
    inner = tuple(f"{low:g} to under {high:g}" for low, high in zip(cuts, cuts[1:], strict=False))
    return (f"under {cuts[0]:g}", *inner, f"{cuts[-1]:g} and over")


def binary_state(column: str, kind: Kind, yes: Scalar | None) -> nw.Expr:
    """Return NO, YES, ABSENT or INVALID for a two-valued column.

    With `yes` given every other value is NO; without it only 0/1, booleans and yes/no words are understood.
    """
    value = _text(column) if kind == "text" else nw.col(column)
    state: Any = nw.when(is_absent(column, kind)).then(nw.lit(ABSENT))
    if yes is not None:
        return _code(state.when(value == yes).then(nw.lit(YES)).otherwise(nw.lit(NO)))
    if kind == "text":
        word = value.str.strip_chars().str.to_lowercase()
        is_yes, is_no = word.is_in(TRUE_WORDS), word.is_in(FALSE_WORDS)
    elif kind == "boolean":
        is_yes, is_no = value, ~value
    else:
        is_yes, is_no = value == 1, value == 0
    return _code(state.when(is_yes).then(nw.lit(YES)).when(is_no).then(nw.lit(NO)).otherwise(nw.lit(INVALID)))


def score_state(prediction: Prediction, kind: Kind) -> nw.Expr:
    """Return YES when the score is above the threshold, NO when not, ABSENT or INVALID (outside the range)."""
    score = nw.col(prediction.column)
    low, high = prediction.range
    state: Any = nw.when(is_absent(prediction.column, kind)).then(nw.lit(ABSENT))
    state = state.when((score < low) | (score > high)).then(nw.lit(INVALID))
    return _code(state.when(score > prediction.threshold).then(nw.lit(YES)).otherwise(nw.lit(NO)))


def score_bin(prediction: Prediction, bins: int) -> nw.Expr:
    """Return the number of the score's bin, `bins` equal parts of the range, the last closed above."""
    low, high = prediction.range
    share = (nw.col(prediction.column).cast(nw.Float64) - low) / (high - low)
    return _code((share * float(bins)).floor().clip(0.0, float(bins - 1)))


def prediction_kind(prediction: Prediction, kind: Kind) -> Literal["score", "decision"]:
    """Return what a prediction column holds, as declared or else by its type.

    Whole numbers with the default threshold and range are taken for 0/1 decisions.
    """
    if prediction.kind is not None:
        return prediction.kind
    if kind in ("text", "boolean") or prediction.selected is not None:
        return "decision"
    default = Prediction(column=prediction.column)
    plain = prediction.threshold == default.threshold and prediction.range == default.range
    return "decision" if kind == "whole" and plain else "score"


def prediction_state(prediction: Prediction, kind: Kind) -> nw.Expr:
    """Return the state of a prediction column, whichever kind it is."""
    if prediction_kind(prediction, kind) == "decision":
        return binary_state(prediction.column, kind, prediction.selected)
    return score_state(prediction, kind)


def _text(column: str) -> nw.Expr:
    return nw.col(column).cast(nw.String)


def _code(expression: nw.Expr) -> nw.Expr:
    return expression.cast(nw.Int64)
