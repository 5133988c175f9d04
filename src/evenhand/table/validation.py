"""One validation pass: every problem of a table's roles and rows, told at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.errors import count, did_you_mean
from evenhand.table.cells import Cells, label_of
from evenhand.table.keys import ABSENT, INVALID, Kind, is_absent, prediction_kind
from evenhand.table.roles import MISSING, Prediction, Roles, grouping_name
from evenhand.table.sources import Frame, engine_errors, fetch

MAX_GROUPS = 1_000
MAX_NUMERIC_GROUPS = 20
_SHOWN = 5


def schema_problems(roles: Roles, kinds: Mapping[str, Kind]) -> Iterator[str]:
    """Yield what is wrong with the roles as soon as the columns' names and types are known."""
    for role, column in _role_columns(roles):
        if column not in kinds:
            yield f"{role} column {column!r} is not in the data; {did_you_mean(column, kinds)}"
    for column in roles.cuts:
        if column not in roles.group_columns:
            yield f"`cuts` names {column!r}, which is not a group; {did_you_mean(column, roles.group_columns)}"
        elif kinds.get(column, "whole") not in ("whole", "real"):
            yield f"group column {column!r} has cut points but holds {_in_words(kinds[column])}, not numbers."
    for name, prediction in roles.predictions.items():
        kind = kinds.get(prediction.column)
        if kind is not None and prediction_kind(prediction, kind) == "score" and kind not in ("whole", "real"):
            yield (
                f"score column {prediction.column!r} (model {name!r}) holds {_in_words(kind)}, not numbers; "
                "convert it, or for decimal commas in a file give decimal=','."
            )
    if roles.weight is not None and kinds.get(roles.weight, "real") not in ("whole", "real"):
        yield f"weight column {roles.weight!r} holds {_in_words(kinds[roles.weight])}, not numbers."
    if roles.positive is not None and roles.outcome is None:
        yield f"`positive` is {roles.positive!r} but no `outcome` column is named."


def row_problems(roles: Roles, kinds: Mapping[str, Kind], cells: Cells, frame: Frame) -> Iterator[str]:
    """Yield what is wrong with the rows, read off the cells; only for a problem are rows looked up."""
    if cells.rows == 0:
        yield "the data has no rows."
        return
    if roles.outcome is not None:
        yield from _two_valued(cells, frame, "outcome", "outcome", roles.outcome, kinds, "positive")
    for name, prediction in roles.predictions.items():
        key = state_key(name)
        if prediction_kind(prediction, kinds[prediction.column]) == "decision":
            yield from _two_valued(cells, frame, key, "decision", prediction.column, kinds, "selected")
        else:
            yield from _bad_scores(cells, frame, key, prediction, kinds)
    if roles.missing == "error":
        for role, key, column in _state_keys(roles):
            absent = int(cells.n[cells.codes[key] == _code(cells, key, ABSENT)].sum())
            if absent:
                where = _example_rows(frame, is_absent(column, kinds[column]))
                yield (
                    f"{role} column {column!r} is missing in {count(absent, 'row')} of {cells.rows:,}{where}; "
                    "fill them, or drop them with missing='drop'."
                )
    for columns in roles.groups:
        yield from _bad_grouping(cells, columns, roles, kinds)


def weight_problems(frame: Frame, column: str, kind: Kind) -> tuple[list[str], float]:
    """Return what is wrong with the survey weights, and the largest of them."""
    value, absent = nw.col(column), is_absent(column, kind)
    with engine_errors():
        facts = fetch(
            frame.select(
                absent=absent.cast(nw.Int64).sum(), lowest=value.cast(nw.Float64).min(), largest=value.cast(nw.Float64).max()
            )
        )
    problems = []
    if facts["absent"][0]:
        problems.append(f"weight column {column!r} is missing in {count(int(facts['absent'][0]), 'row')}.")
    lowest, largest = (float(facts[name][0] if facts[name][0] is not None else 0.0) for name in ("lowest", "largest"))
    if lowest < 0 or not largest > 0 or not np.isfinite(largest):
        problems.append(f"weight column {column!r} must be 0 or more and finite; it runs from {lowest:g} to {largest:g}.")
    return problems, largest


def id_problems(frame: Frame, column: str, rows: int) -> Iterator[str]:
    """Yield a problem when an id stands in more than one row."""
    with engine_errors():
        repeated = frame.group_by(column).agg(nw.len().alias("rows")).filter(nw.col("rows") > 1)
        facts = fetch(repeated.select(ids=nw.len(), rows=nw.col("rows").sum(), example=nw.col(column).min()))
    ids = int(facts["ids"][0] or 0)
    if ids:
        yield (
            f"id column {column!r} repeats: {count(ids, 'id')} stand in {count(int(facts['rows'][0]), 'row')} of {rows:,} "
            f"(for example {label_of(facts['example'][0])!r}); each person must have one row."
        )


def state_key(model: str) -> str:
    """Return the name of the key that holds a model's decision state."""
    return f"selected:{model}"


def _role_columns(roles: Roles) -> Iterator[tuple[str, str]]:
    for role, column in (("id", roles.id), ("outcome", roles.outcome), ("weight", roles.weight)):
        if column is not None:
            yield role, column
    for column in roles.group_columns:
        yield "group", column
    for prediction in roles.predictions.values():
        yield "prediction", prediction.column


def _state_keys(roles: Roles) -> Iterator[tuple[str, str, str]]:
    if roles.outcome is not None:
        yield "outcome", "outcome", roles.outcome
    for name, prediction in roles.predictions.items():
        yield "prediction", state_key(name), prediction.column


def _two_valued(
    cells: Cells, frame: Frame, key: str, role: str, column: str, kinds: Mapping[str, Kind], option: str
) -> Iterator[str]:
    invalid = int(cells.n[cells.codes[key] == _code(cells, key, INVALID)].sum())
    if invalid:
        from evenhand.table.keys import binary_state

        values = _example_values(frame, column, binary_state(column, kinds[column], None) == INVALID)
        advice = f"name the value that counts with {option}=..."
        if role == "decision" and kinds[column] in ("whole", "real"):
            advice += ", or for a score give kind='score' and its range"
        yield (
            f"{role} column {column!r} has {count(invalid, 'row')} that are neither 0/1 nor yes/no ({values}); {advice}."
        )


def _bad_scores(
    cells: Cells, frame: Frame, key: str, prediction: Prediction, kinds: Mapping[str, Kind]
) -> Iterator[str]:
    invalid = int(cells.n[cells.codes[key] == _code(cells, key, INVALID)].sum())
    if invalid:
        low, high = prediction.range
        score = nw.col(prediction.column)
        outside = ((score < low) | (score > high)) & ~is_absent(prediction.column, kinds[prediction.column])
        values = _example_values(frame, prediction.column, outside)
        yield (
            f"score column {prediction.column!r} lies outside {low:g} to {high:g} in {count(invalid, 'row')} ({values}); "
            "rescale it, or give its range=(lowest, highest) and threshold."
        )


def _bad_grouping(cells: Cells, columns: tuple[str, ...], roles: Roles, kinds: Mapping[str, Kind]) -> Iterator[str]:
    _, labels = cells.joint(columns)
    groups = [label for label in labels if label != MISSING]
    name = grouping_name(columns)
    numeric = [c for c in columns if kinds[c] in ("whole", "real") and c not in roles.cuts]
    if not groups:
        yield f"group column {name!r} has no values: all {count(cells.rows, 'row')} are missing."
    elif len(groups) == 1:
        yield f"group column {name!r} has only one group ({groups[0]!r}); there is nothing to compare: leave it out."
    elif len(columns) == 1 and numeric and len(groups) > MAX_NUMERIC_GROUPS:
        yield (
            f"group column {name!r} is numeric with {len(groups):,} distinct values; "
            f"give cut points, for example cuts={{{name!r}: [25, 45, 65]}}."
        )
    elif len(groups) > MAX_GROUPS:
        yield (
            f"group column {name!r} has {len(groups):,} groups, more than {MAX_GROUPS:,}; "
            "is it an identifier? Choose a coarser column."
        )


def _code(cells: Cells, key: str, state: int) -> int:
    """Return the code that stands for a state among a key's sorted distinct values, or -1."""
    label = str(state)
    return cells.labels[key].index(label) if label in cells.labels[key] else -1


def _example_values(frame: Frame, column: str, bad: nw.Expr) -> str:
    with engine_errors():
        values = fetch(frame.filter(bad).select(column).head(200))[column]
    distinct = list(dict.fromkeys(label_of(value) for value in values))[:_SHOWN]
    return "such as " + ", ".join(repr(value) for value in distinct)


def _example_rows(frame: Frame, bad: nw.Expr) -> str:
    """Name the first few bad rows, counted from 1; only frames in memory have an order to count in."""
    if not isinstance(frame, nw.DataFrame):
        return ""
    numbers: list[Any] = frame.with_row_index("evenhand_row").filter(bad).head(_SHOWN)["evenhand_row"].to_list()
    return " (rows " + ", ".join(str(int(number) + 1) for number in numbers) + " ...)"


def _in_words(kind: Kind) -> str:
    return {"text": "text", "boolean": "true/false values", "other": "dates or nested values"}.get(kind, "numbers")
