"""The tidy schema of answers: one row for each thing a person judged, the same columns for every kind of study."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, count
from evenhand.table.keys import label_of, shown

Kind = Literal["effort", "feedback"]
KINDS: tuple[Kind, ...] = ("effort", "feedback")
Values = npt.NDArray[Any]
"""A column: floats with nan for gaps, or texts (objects) with None for gaps."""

SCALE = ("Very similar", "Similar", "Slightly similar", "Slightly different", "Different", "Very different")
FACTORS = ("trajectory", "aggregate", "other")
FEEDBACK = ("agree", "disagree", "too_high", "too_low")

_YES = {"1", "true", "yes", "y", "x", "on", "t"}
_NO = {"0", "false", "no", "n", "off", "f"}


@dataclass(frozen=True)
class Column:
    """A column of the schema.

    Parameters
    ----------
    name, description : what it is called and holds.
    type : 'text', 'number', 'yes_no' (1 or 0), 'scale' (1 to the number of points) or 'share' (0 to 1).
    level : whether it belongs to a person or to one answer.
    kind : the kind of study it belongs to; None for both.
    """

    name: str
    description: str
    type: Literal["text", "number", "yes_no", "scale", "share"]
    level: Literal["person", "answer"]
    kind: Kind | None = None


COLUMNS: tuple[Column, ...] = (
    Column("participant", "Who answered.", "text", "person"),
    Column("condition", "The condition the person was in, such as income or arrests.", "text", "person"),
    Column("language", "The language the person read.", "text", "person"),
    Column("started", "When the person began: date and time in UTC, to the minute.", "text", "person"),
    Column("duration", "Seconds from the first page to the last.", "number", "person"),
    Column("finished", "Whether the person reached the end.", "yes_no", "person"),
    Column("checks_passed", "Attention checks passed.", "number", "person"),
    Column("checks_total", "Attention checks seen.", "number", "person"),
    Column("item", "The set (effort) or the case (feedback) that was judged.", "text", "answer"),
    Column("position", "Place of the item in the person's own order, from 1.", "number", "answer"),
    Column("seconds", "Seconds spent on this answer; missing after a break of over half an hour.", "number", "answer"),
    Column("reason", "Why the person answered so, in their words.", "text", "answer"),
    Column("subject", "Who of the set was compared with K: A, B, C or D.", "text", "answer", "effort"),
    Column("trajectory", "Trajectory distance, 1 for most similar.", "scale", "answer", "effort"),
    Column("aggregate", "Aggregate distance, 1 for most similar.", "scale", "answer", "effort"),
    Column("overall", "Overall distance, 1 for most similar.", "scale", "answer", "effort"),
    Column("factor_trajectory", "Whether trajectory was ticked as a factor.", "yes_no", "answer", "effort"),
    Column("factor_aggregate", "Whether the aggregate was ticked as a factor.", "yes_no", "answer", "effort"),
    Column("factor_other", "Whether another factor was ticked.", "yes_no", "answer", "effort"),
    Column("factor_text", "The other factor in the person's words.", "text", "answer", "effort"),
    Column("predicted", "Share of others predicted to call the pair similar.", "share", "answer", "effort"),
    Column("risk_reference", "The risk score shown for K.", "share", "answer", "effort"),
    Column("risk", "The risk score the person finds fair for the other.", "share", "answer", "effort"),
    Column("decision", "What the system decided on the case.", "text", "answer", "feedback"),
    Column("answer", "agree, disagree, too_high or too_low.", "text", "answer", "feedback"),
)
"""The schema. Further columns are kept: as a person's where they never differ within one, else as an answer's."""

BY_NAME = {column.name: column for column in COLUMNS}
REQUIRED: dict[Kind, tuple[str, ...]] = {
    "effort": ("participant", "item", "subject", "trajectory", "aggregate", "overall"),
    "feedback": ("participant", "item", "decision", "answer"),
}


def columns_of(kind: Kind) -> tuple[Column, ...]:
    """Return the columns that a kind of study has.

    Examples
    --------
    >>> [column.name for column in columns_of("feedback")][-2:]
    ['decision', 'answer']
    """
    return tuple(column for column in COLUMNS if column.kind in (None, kind))


def as_text(values: Iterable[Any]) -> Values:
    """Return values as texts without outer blanks; None for what is missing or empty.

    Examples
    --------
    >>> as_text([1.0, " a ", "", None, float("nan")]).tolist()
    ['1', 'a', None, None, None]
    """
    known = _each(values, lambda value: label_of(value).strip() or None)
    return np.array(known, dtype=object)


def as_column(column: Column, values: Iterable[Any], points: int, where: str) -> Values:
    """Return values in the type of a column, checked; a `DataError` names what does not fit."""
    if column.type == "text":
        return as_text(values)
    listed = list(values)
    if column.type == "yes_no":
        return _checked(column, listed, _yes_no, "must hold yes or no (1 or 0)", where)
    if column.type == "scale":
        return _checked(
            column, listed, lambda v: _whole(v, points), f"must hold whole numbers from 1 to {points}", where
        )
    if column.type == "share":
        fitting = "must hold shares between 0 and 1 (name columns of percentages in `percent`)"
        return _checked(column, listed, lambda v: _between(v, 1.0), fitting, where)
    return _checked(column, listed, lambda v: _between(v, np.inf), "must hold numbers of 0 or more", where)


def _checked(column: Column, values: list[Any], parse: Any, rule: str, where: str) -> Values:
    parsed = _each(values, parse)
    wrong = sorted({label_of(v) for v, number in zip(values, parsed, strict=True) if number is None and not _gone(v)})
    if wrong:
        bad = sum(number is None and not _gone(value) for value, number in zip(values, parsed, strict=True))
        raise DataError(f"{column.name!r} in {where} {rule}; not so in {count(bad, 'row')}: {shown(list(wrong), 3)}.")
    return np.array([np.nan if number is None else number for number in parsed], dtype=np.float64)


def _each(values: Iterable[Any], parse: Any) -> list[Any]:
    """Parse every different value once."""
    listed = [None if _gone(value) else value for value in values]
    parsed = {value: parse(value) for value in set(listed) if value is not None}
    return [None if value is None else parsed[value] for value in listed]


def _gone(value: Any) -> bool:
    return (
        value is None or (isinstance(value, float) and value != value) or (isinstance(value, str) and not value.strip())
    )


def _number(value: Any) -> float | None:
    try:
        number = float(str(value).strip().removesuffix("%"))
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _between(value: Any, high: float) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= high else None


def _whole(value: Any, points: int) -> float | None:
    number = _between(value, points)
    return number if number is not None and number >= 1 and number == int(number) else None


def _yes_no(value: Any) -> float | None:
    word = label_of(value).strip().casefold()
    return 1.0 if word in _YES else 0.0 if word in _NO else None
