"""The interpretation of values: their kinds and text, words for yes and no, and the keys of cells.

A state is a small integer, so that one group-by both counts the cells and finds invalid rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal

import narwhals as nw
import numpy as np
from narwhals.dtypes import DType

from evenhand.messages import showable
from evenhand.table.roles import LARGEST_SCORE, MISSING, Prediction, PredictionKind, Scalar

NO, YES, ABSENT, INVALID = 0, 1, 2, 3
NO_RANGE = -1  # the code of a missing value in a column with cut points

TRUE_WORDS = ("1", "1.0", "yes", "y", "true", "t", "on")
FALSE_WORDS = ("0", "0.0", "no", "n", "false", "f", "off")
"""The words recognised as yes and no in any column, in any case."""

SPELLINGS = ("True", "TRUE", "False", "FALSE")
"""The spellings of true and false that pandas, spreadsheets and R write into text files."""

Kind = Literal["text", "boolean", "whole", "real", "date", "datetime", "other", "unread"]
"""The kind of a column's values; columns not yet needed are 'unread', because reading large files takes time."""

NUMBERS: tuple[Kind, ...] = ("whole", "real")

ZONE = " UTC"
"""The time zone in which every engine writes times with a zone."""

BLANKS = " \t\n\r\x0b\x0c\xa0"  # listed, because engines define white space differently


# The text of a value, the same from every engine ----------------------------------------------------------


def label_of(value: object) -> str:
    """Return the text of a group value, identical for all engines (1 and 1.0: "1", True and "True": "true").

    Examples
    --------
    >>> label_of(1.0), label_of(True), label_of("TRUE"), label_of("Black")
    ('1', 'true', 'true', 'Black')
    """
    if isinstance(value, bool | np.bool_) or (isinstance(value, str) and value in SPELLINGS):
        return str(value).lower()
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            return value.astimezone(UTC).strftime(f"%Y-%m-%d %H:%M:%S{ZONE}")
        return value.strftime("%Y-%m-%d %H:%M:%S").removesuffix(" 00:00:00")
    return showable(str(value))


def labels_of(values: Sequence[Any]) -> tuple[str, ...]:
    """Return the texts of many values like `label_of`, with a fast path for integers.

    Examples
    --------
    >>> labels_of((1, 2)), labels_of((1.0, "x"))
    (('1', '2'), ('1', 'x'))
    """
    return tuple(map(str if set(map(type, values)) == {int} else label_of, values))


def yes_or_no(value: object) -> bool | None:
    """Return whether a value means yes or no; None if neither.

    Examples
    --------
    >>> yes_or_no(" Yes"), yes_or_no(0.0), yes_or_no(True), yes_or_no("perhaps")
    (True, False, True, None)
    """
    word = label_of(value).strip().lower()
    return True if word in TRUE_WORDS else False if word in FALSE_WORDS else None


def sort_key(value: object) -> tuple[int, float | str]:
    """Return the sort key of a value: numbers by size, then all others by their text."""
    if isinstance(value, int | float | np.number):
        return 0, float(value)
    return 1, str(value)


def shown(values: list[Any], most: int) -> str:
    """Return the first few values of a list for a message.

    Examples
    --------
    >>> shown([0.5, 1.0, "NA"], 2)
    "'0.5', '1', ..."
    """
    texts = [repr(label_of(value)) for value in values[:most]]
    return ", ".join(texts + ["..."] * (len(values) > most))


# Columns as keys -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """One key of a reduction.

    Parameters
    ----------
    name : its name.
    expression : the expression that rows are grouped by.
    labels : for cut points, the labels of the codes.
    label : for other groups, returns the label of a value; values with the same label are one group.
    column : the only column it depends on, if that has few distinct values; rows are then counted by the column first,
        and the expression is evaluated once per distinct value.
    """

    name: str
    expression: nw.Expr
    labels: tuple[str, ...] | None = None
    label: Callable[[Any], str] = label_of
    column: str | None = None


def kind_of(dtype: DType) -> Kind:
    """Return the kind of a column with this type."""
    if dtype in (nw.Int128, nw.UInt128):
        return "other"
    if dtype.is_integer():
        return "whole"
    if dtype.is_numeric():
        return "real"
    if dtype == nw.Boolean:
        return "boolean"
    if dtype in (nw.String, nw.Categorical) or dtype == nw.Enum:
        return "text"
    if dtype == nw.Date:
        return "date"
    return "datetime" if isinstance(dtype, nw.Datetime) and dtype.time_zone is None else "other"


def kinds_of(schema: Mapping[str, DType]) -> dict[str, Kind]:
    """Return the kind of every column; 'other' if its name is `unusable`."""
    return {name: "other" if unusable(name) else kind_of(dtype) for name, dtype in schema.items()}


def unusable(column: str) -> str:
    r"""Return why a column's name cannot be used on every engine; empty if it can.

    Examples
    --------
    >>> unusable("race"), unusable("^race$"), unusable("a\x1b")
    ('', 'has a name that engines take for a pattern', 'has control characters in its name')
    """
    if not column:
        return "has no name"
    if column == "*" or (column.startswith("^") and column.endswith("$")):
        return "has a name that engines take for a pattern"
    return "has control characters in its name" if showable(column) != column else ""


def as_number(flag: nw.Expr) -> nw.Expr:
    """Return 1 for true and 0 for false; PostgreSQL casts booleans only to short integers."""
    return flag.cast(nw.Int32).cast(nw.Int64)


# Some engines lack functions of narwhals and need `portable` expressions: equivalent, and a little slower.


def _trimmed(text: nw.Expr, *, portable: bool) -> nw.Expr:
    return text.str.replace_all(f"^[{BLANKS}]+|[{BLANKS}]+$", "") if portable else text.str.strip_chars(BLANKS)


def recoded(
    values: nw.Expr,
    codes: Mapping[Any, Any],
    default: float | str,
    dtype: type[nw.Int64 | nw.Float64 | nw.String] = nw.Int64,
    *,
    portable: bool,
) -> nw.Expr:
    """Return an expression for the code of each value; with another `dtype`, a number or a name."""
    if not portable:
        return values.replace_strict(list(codes), list(codes.values()), default=nw.lit(default), return_dtype=dtype)
    # A flat list of cases: a chain of nested cases is too deep for many groups.
    cases = [nw.when(values == nw.lit(value)).then(nw.lit(code)) for value, code in codes.items()]
    return nw.coalesce(*cases, nw.lit(default)).cast(dtype)


def recoded_text(column: str, codes: Mapping[Any, int], default: int, *, portable: bool) -> nw.Expr:
    """Return an expression for the code of each text of a column; blank and missing text has the default."""
    spelt = {word: codes[word.lower()] for word in SPELLINGS if word.lower() in codes}
    return recoded(nw.col(column).cast(nw.String), {**codes, **spelt}, default, portable=portable)


def is_absent(column: str, kind: Kind, *, portable: bool) -> nw.Expr:
    """Return a test for a missing value; blank text and not-a-number are missing."""
    value = nw.col(column)
    if kind == "real":
        return value.is_null() | value.is_nan()
    if kind == "text":
        return value.is_null() | (_trimmed(value.cast(nw.String), portable=portable) == "")
    return value.is_null()


def plain_value(column: str, kind: Kind) -> nw.Expr:
    """Return an expression for a column's values as text, numbers or booleans, equal on every engine."""
    value = nw.col(column)
    if kind == "text":
        return _text(column)
    if kind == "real":
        return value.cast(nw.Float64) + 0.0  # -0.0 becomes 0.0; Arrow would group them apart
    if kind == "date":
        return value.dt.to_string("%Y-%m-%d")
    if kind == "datetime":
        moment = value.dt.to_string("%Y-%m-%d %H:%M:%S").str.slice(0, 19)  # Arrow adds a fraction to the seconds
        return nw.when(moment.str.ends_with(" 00:00:00")).then(moment.str.slice(0, 10)).otherwise(moment)
    return value


def id_text(value: nw.Expr, kind: Kind) -> nw.Expr:
    """Return an id as text, identical for 7 and 7.0."""
    if kind != "real":
        return value.cast(nw.String)
    whole = (value == value.floor()) & (value.abs() < 2.0**53)
    number = nw.when(whole).then(value).otherwise(nw.lit(0.0))  # because engines cast the numbers of all rows
    return nw.when(whole).then(number.cast(nw.Int64).cast(nw.String)).otherwise(value.cast(nw.String))


def group_key(
    column: str, kind: Kind, cuts: tuple[float, ...] | None, label: Callable[[Any], str], *, portable: bool
) -> Key:
    """Return the key of one group column; blank text, "(missing)" and not-a-number are missing."""
    absent, value = is_absent(column, kind, portable=portable), plain_value(column, kind)
    if cuts is not None:
        code: Any = nw.when(absent).then(nw.lit(NO_RANGE))
        for position, cut in enumerate(cuts):
            code = code.when(value < cut).then(nw.lit(position))
        return Key(column_key(column), code.otherwise(nw.lit(len(cuts))).cast(nw.Int64), cut_labels(cuts))
    if kind == "text":
        text = nw.col(column).cast(nw.String)
        absent = text.is_null() | _trimmed(text, portable=portable).is_in(("", MISSING))
    return Key(column_key(column), nw.when(~absent).then(value), label=label, column=discrete(column, kind))


def discrete(column: str, kind: Kind) -> str | None:
    """Return the column if its kind usually has few distinct values: any kind except real numbers."""
    return None if kind in ("real", "other") else column


def column_key(column: str) -> str:
    """Return the name of a column's key: the column's name, unless evenhand uses it for another key.

    Examples
    --------
    >>> column_key("race"), column_key("outcome")
    ('race', 'column:outcome')
    """
    is_ours = column in ("outcome", "bin") or column.startswith(("selected:", "column:"))
    return f"column:{column}" if is_ours else column


def cut_labels(cuts: tuple[float, ...]) -> tuple[str, ...]:
    """Return the names of the ranges between cut points, each closed below.

    Examples
    --------
    >>> cut_labels((25, 45))
    ('under 25', '25 to under 45', '45 and over')
    """
    inner = tuple(f"{low:g} to under {high:g}" for low, high in pairwise(cuts))
    return (f"under {cuts[0]:g}", *inner, f"{cuts[-1]:g} and over")


def as_kind(value: Scalar, kind: Kind) -> Scalar | None:
    """Return a value converted to the kind of a column; None if it cannot be converted.

    Examples
    --------
    >>> as_kind("1", "whole"), as_kind(1, "text"), as_kind("yes", "boolean"), as_kind("yes", "whole")
    (1, '1', True, None)
    """
    word = label_of(value)
    if kind in NUMBERS:
        return _number(value, kind)
    return yes_or_no(value) if kind == "boolean" else word


def _number(value: Scalar, kind: Kind) -> int | float | None:
    """Return a value as a number; integers are kept exact, since floats beyond 2**53 are not."""
    try:
        if kind == "whole" and not isinstance(value, float) and abs(int(value)) < 2**63:
            return int(value)
    except ValueError:
        pass  # not the text of an integer
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def binary_state(column: str, kind: Kind, yes: Scalar | None, *, portable: bool) -> nw.Expr:
    """Return NO, YES, ABSENT or INVALID for a two-valued column.

    With `yes`, every other value is NO; without it, only 0/1, booleans and yes/no words are valid.
    """
    value = plain_value(column, kind)
    state: Any = nw.when(is_absent(column, kind, portable=portable)).then(nw.lit(ABSENT))
    if yes is not None:
        return _code(state.when(value == as_kind(yes, kind)).then(nw.lit(YES)).otherwise(nw.lit(NO)))
    if kind == "boolean":
        is_yes, is_no = value, ~value
    elif kind in NUMBERS:
        is_yes, is_no = value == 1, value == 0
    else:
        word = _trimmed(value, portable=portable).str.to_lowercase()
        is_yes, is_no = word.is_in(TRUE_WORDS), word.is_in(FALSE_WORDS)
    return _code(state.when(is_yes).then(nw.lit(YES)).when(is_no).then(nw.lit(NO)).otherwise(nw.lit(INVALID)))


def score_state(prediction: Prediction, kind: Kind, *, portable: bool) -> nw.Expr:
    """Return an expression for YES (score above the threshold), NO, ABSENT or INVALID (outside the range)."""
    score = nw.col(prediction.column).cast(nw.Float64)
    state: Any = nw.when(is_absent(prediction.column, kind, portable=portable)).then(nw.lit(ABSENT))
    state = state.when(out_of_range(prediction)).then(nw.lit(INVALID))
    return _code(state.when(score > prediction.threshold).then(nw.lit(YES)).otherwise(nw.lit(NO)))


def out_of_range(prediction: Prediction) -> nw.Expr:
    """Return a test for a score outside its range."""
    score = nw.col(prediction.column).cast(nw.Float64)
    low, high = prediction.range
    return (score < low) | (score > high)


def score_bin(prediction: Prediction, bins: int) -> nw.Expr:
    """Return the score's bin among `bins` equal parts of the range, the last closed above."""
    low, high = prediction.range
    share = (nw.col(prediction.column).cast(nw.Float64) - low) / (high - low)
    return _code((share * float(bins)).floor().clip(0.0, float(bins - 1)))


def number_state(column: str, kind: Kind, *, portable: bool) -> nw.Expr:
    """Return NO for a valid number, ABSENT, or INVALID if it is infinite or unusually large."""
    value = nw.col(column).cast(nw.Float64)
    state: Any = nw.when(is_absent(column, kind, portable=portable)).then(nw.lit(ABSENT))
    return _code(state.when(value.abs() > LARGEST_SCORE).then(nw.lit(INVALID)).otherwise(nw.lit(NO)))


def prediction_kind(prediction: Prediction, kind: Kind) -> PredictionKind:
    """Return the kind of a prediction column, as declared or else inferred from its type.

    Integers with the default threshold and range are interpreted as 0/1 decisions.
    """
    if prediction.kind is not None:
        return prediction.kind
    if kind not in NUMBERS or prediction.selected is not None:
        return "decision"
    default = Prediction(column=prediction.column)
    plain = prediction.threshold == default.threshold and prediction.range == default.range
    return "decision" if kind == "whole" and plain else "score"


def prediction_state(prediction: Prediction, kind: Kind, *, portable: bool) -> nw.Expr:
    """Return the state of a prediction column: a score, a decision or a number."""
    match prediction_kind(prediction, kind):
        case "decision":
            return binary_state(prediction.column, kind, prediction.selected, portable=portable)
        case "number":
            return number_state(prediction.column, kind, portable=portable)
    return score_state(prediction, kind, portable=portable)


def _text(column: str) -> nw.Expr:
    """Return a text column with one spelling of true and false."""
    text = nw.col(column).cast(nw.String)
    return (
        nw.when(text.is_in(SPELLINGS[:2]))
        .then(nw.lit("true"))
        .when(text.is_in(SPELLINGS[2:]))
        .then(nw.lit("false"))
        .otherwise(text)
    )


def _code(expression: nw.Expr) -> nw.Expr:
    return expression.cast(nw.Int64)


def example_cuts(values: Sequence[Any]) -> list[float]:
    """Return plausible cut points: 25, 45 and 65 for ages, else round numbers near the terciles.

    Examples
    --------
    >>> example_cuts(range(18, 80)), example_cuts([100 * i for i in range(500)])
    ([25, 45, 65], [17000, 33000])
    """
    numbers = np.sort(np.asarray([value for value in values if value is not None], dtype=np.float64))
    if numbers[0] >= 0 and numbers[0] < 25 and 65 < numbers[-1] <= 120:
        return [25, 45, 65]
    thirds = np.quantile(numbers, (1 / 3, 2 / 3))
    digits = 1 - np.floor(np.log10(max(thirds[1] - thirds[0], 1e-300)))
    rounded = sorted({float(np.round(third, int(digits))) for third in thirds})
    return [int(point) if point.is_integer() else point for point in rounded]
