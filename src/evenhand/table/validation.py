"""One validation pass: every problem of a table's roles and rows, told at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw

from evenhand.errors import count, did_you_mean
from evenhand.table.cells import Cells
from evenhand.table.keys import (
    ABSENT,
    INVALID,
    NUMBERS,
    YES,
    Kind,
    as_kind,
    binary_state,
    column_key,
    is_absent,
    out_of_range,
    plain_value,
    prediction_kind,
    showable,
    shown,
)
from evenhand.table.roles import MISSING, Prediction, Roles, Scalar, grouping_name
from evenhand.table.sources import Source, engine_errors, fetch

WIDEST_WEIGHTS = 1e8
MAX_GROUPS = 1_000
MAX_NUMERIC_GROUPS = 20
MAX_CELLS = 1_000_000
LARGEST_WEIGHT = 1e30
_SHOWN = 5
_MISSING_WORDS = ("na", "n/a", "#n/a", "nan", "null", "none", "unknown", "missing", "not available", *"-?.", "--")
_CONVERT = "; convert it; in a file, decimal commas need decimal=',' and words for missing values need missing_values"


# What the names and types of the columns tell -------------------------------------------------------------


def schema_problems(roles: Roles, kinds: Mapping[str, Kind], source: Source) -> Iterator[tuple[str | None, str]]:
    """Yield what is wrong with a column's role as soon as its name and type are known, with the column."""
    for role, column in _role_columns(roles):
        if column not in kinds:
            yield column, f"{role} column {column!r} is not in the data; {did_you_mean(column, kinds)}"
        elif showable(column) != column:
            yield column, f"{role} column {column!r} has control characters in its name; rename it."
        elif kinds[column] == "other":
            yield column, f"{role} column {column!r} holds {_in_words('other')}; give a column of plain values."
    for column in roles.cuts:
        if column not in roles.group_columns:
            yield None, f"`cuts` names {column!r}, which is not a group; {did_you_mean(column, roles.group_columns)}"
        else:
            yield from _no_numbers(f"group column {column!r} has cut points but", column, kinds, source)
    for name, prediction in roles.predictions.items():
        yield from _prediction_type(name, prediction, kinds, source)
    if roles.weight is not None:
        yield from _no_numbers(f"weight column {roles.weight!r}", roles.weight, kinds, source)
    if roles.positive is not None and roles.outcome is None:
        yield None, f"`positive` is {roles.positive!r} but no `outcome` column is named."
    elif roles.outcome is not None:
        yield from _unfit_value("outcome", roles.outcome, kinds, "positive", roles.positive)


def sound_roles(roles: Roles, bad: Collection[str | None]) -> Roles:
    """Return the roles without the bad columns, so that the rows of the others can still be checked."""
    kept = {name: p for name, p in roles.predictions.items() if p.column not in bad}
    return roles.model_copy(
        update={
            "groups": tuple(grouping for grouping in roles.groups if not set(grouping) & set(bad)),
            "predictions": kept,
            **{name: None for name in ("id", "outcome", "weight") if getattr(roles, name) in bad},
        }
    )


def _role_columns(roles: Roles) -> Iterator[tuple[str, str]]:
    for role, column in (("id", roles.id), ("outcome", roles.outcome), ("weight", roles.weight)):
        if column is not None:
            yield role, column
    for column in roles.group_columns:
        yield "group", column
    for prediction in roles.predictions.values():
        yield "prediction", prediction.column


def _prediction_type(
    name: str, prediction: Prediction, kinds: Mapping[str, Kind], source: Source
) -> Iterator[tuple[str | None, str]]:
    kind = kinds.get(prediction.column)
    if kind is None or kind == "other":
        return
    if prediction_kind(prediction, kind) == "decision":
        yield from _unfit_value("decision", prediction.column, kinds, "selected", prediction.selected)
    else:
        start = f"score column {prediction.column!r} (model {name!r})"
        yield from _no_numbers(start, prediction.column, kinds, source, advice=_CONVERT if kind == "text" else "")


def _unfit_value(
    role: str, column: str, kinds: Mapping[str, Kind], option: str, value: Scalar | None
) -> Iterator[tuple[str | None, str]]:
    kind = kinds.get(column)
    if value is not None and kind is not None and kind != "other" and as_kind(value, kind) is None:
        yield column, f"`{option}` is {value!r}, but {role} column {column!r} holds {_in_words(kind)}."


def _no_numbers(
    start: str, column: str, kinds: Mapping[str, Kind], source: Source, advice: str = ""
) -> Iterator[tuple[str | None, str]]:
    """Yield that a column holds no numbers, and what it holds instead; of a table without rows that is not told."""
    kind = kinds.get(column, "other")
    if kind in (*NUMBERS, "other"):
        return
    examples = _distinct(source, column, kinds, ~is_absent(column, kind))
    if examples:
        held = f"{_in_words(kind)} (such as {shown(examples, _SHOWN)})"
        yield column, f"{start} holds {held}, not numbers{advice}."
    elif fetch(source.frame.select(n=nw.len()))["n"][0]:
        yield column, f"{start} has no values: every row is missing."
    else:
        yield column, ""


def _in_words(kind: Kind) -> str:
    words = {"text": "text", "boolean": "true/false values", "other": "times, nested or binary values"}
    return words.get(kind, "numbers" if kind in NUMBERS else "dates")


# What the rows tell ---------------------------------------------------------------------------------------


def row_problems(roles: Roles, kinds: Mapping[str, Kind], cells: Cells, source: Source) -> Iterator[str]:
    """Yield what is wrong with the rows, read off the cells; only for a problem are rows looked up."""
    if cells.rows == 0:
        yield "the data has no rows."
        return
    if roles.outcome is not None:
        yield from _two_valued(cells, source, "outcome", "outcome", roles.outcome, kinds, "positive", roles.positive)
    for name, prediction in roles.predictions.items():
        key = state_key(name)
        if prediction_kind(prediction, kinds[prediction.column]) == "decision":
            yield from _two_valued(
                cells, source, key, "decision", prediction.column, kinds, "selected", prediction.selected
            )
        else:
            yield from _bad_scores(cells, source, key, prediction, kinds)
    for role, key, column in _state_keys(roles):
        yield from _absent_states(cells, source, role, key, column, kinds, roles.missing == "drop")
    for column in roles.group_columns:
        yield from _bad_group(cells, column, roles, kinds)
    for columns in roles.groups:
        if len(columns) > 1:
            yield from _bad_intersection(cells, columns)


def weight_problems(source: Source, column: str, kind: Kind) -> tuple[list[str], float, int]:
    """Return what is wrong with the survey weights, the largest of them, and how many are 0."""
    absent, value = is_absent(column, kind), nw.col(column).cast(nw.Float64)
    known = nw.when(~absent).then(value)
    with engine_errors():
        selected = source.frame.select(
            absent=absent.cast(nw.Int64),
            known=known,
            negative=(known < 0).cast(nw.Int64),
            zero=(known == 0).cast(nw.Int64),
            positive=nw.when(known > 0).then(known),
        )
        facts = fetch(
            selected.select(
                rows=nw.len(),
                absent=nw.col("absent").sum(),
                negative=nw.col("negative").sum(),
                zero=nw.col("zero").sum(),
                lightest=nw.col("positive").min(),
                lowest=nw.col("known").min(),
                largest=nw.col("known").max(),
            )
        )
    rows, missing, negative = (int(facts[name][0] or 0) for name in ("rows", "absent", "negative"))
    if missing == rows:
        return [f"weight column {column!r} has no values: every row is missing."] if rows else [], 1.0, 0
    problems = []
    lowest, largest = float(facts["lowest"][0]), float(facts["largest"][0])
    if missing:
        where = _example_rows(source, absent)
        fill = f"fill {_them(missing)}."
        problems.append(f"weight column {column!r} is missing in {count(missing, 'row')} of {rows:,}{where}; {fill}")
    if negative:
        where = _example_rows(source, (value < 0) & ~absent)
        problems.append(
            f"weight column {column!r} is negative in {count(negative, 'row')} of {rows:,}{where}, down to {lowest:g}; "
            "weights must be 0 or more."
        )
    elif largest == 0:
        problems.append(f"weight column {column!r} is 0 in every row; some weight must be above 0.")
    problems += _unusual_weights(column, float(facts["lightest"][0] or 0.0), largest)
    return problems, largest, int(facts["zero"][0] or 0)


def _unusual_weights(column: str, lightest: float, largest: float) -> Iterator[str]:
    """Yield that weights are of an unusual size, or too far apart; `lightest` is the smallest above 0."""
    if largest != 0 and not 1 / LARGEST_WEIGHT <= abs(largest) <= LARGEST_WEIGHT:
        yield f"weight column {column!r} has {largest:g} as its largest weight; rescale it to about 1."
    elif largest > 0 and largest / lightest > WIDEST_WEIGHTS:
        yield (
            f"the weights of column {column!r} run from {lightest:g} to {largest:g}, over {WIDEST_WEIGHTS:g} times "
            "apart: next to the heaviest, the lightest people count for nothing; check them."
        )


def id_problems(source: Source, column: str, kind: Kind, rows: int) -> Iterator[str]:
    """Yield a problem when an id is missing or in more than one row."""
    absent = is_absent(column, kind)
    with engine_errors():
        ids: Any = source.frame.select(absent=absent.cast(nw.Int64), person=plain_value(column, kind))
        missing = int(fetch(ids.select(nw.col("absent").sum()))["absent"][0] or 0)
        people = ids.filter(nw.col("absent") == 0).group_by("person").agg(nw.len().alias("rows"))
        repeated = people.filter(nw.col("rows") > 1)
        facts = fetch(repeated.select(ids=nw.len(), rows=nw.col("rows").sum(), example=nw.col("person").min()))
    if missing:
        yield (
            f"id column {column!r} is missing in {count(missing, 'row')} of {rows:,}{_example_rows(source, absent)}; "
            "each person must have an id."
        )
    repeated_ids = int(facts["ids"][0] or 0)
    if repeated_ids:
        are = "is" if repeated_ids == 1 else "are"
        yield (
            f"id column {column!r} repeats: {count(repeated_ids, 'id')} {are} in {count(int(facts['rows'][0]), 'row')} "
            f"of {rows:,} (for example {shown([facts['example'][0]], 1)}); each person must have one row."
        )


def crowded_columns(roles: Roles, kinds: Mapping[str, Kind], source: Source) -> list[str]:
    """Return what is wrong with groups that are too many to be counted."""
    columns = [column for column in roles.group_columns if column not in roles.cuts]
    with engine_errors():
        distinct = fetch(
            source.frame.select(**{f"key{i}": plain_value(c, kinds[c]).n_unique() for i, c in enumerate(columns)})
        )
    sizes = {column: int(distinct[f"key{i}"][0]) for i, column in enumerate(columns)}
    many = [_too_many(f"group column {column!r}", size) for column, size in sizes.items() if size > MAX_GROUPS]
    return many or [
        f"the group columns have more than {MAX_CELLS:,} combinations ({', '.join(map(repr, columns))}); "
        "leave some of them out, or choose coarser ones."
    ]


def state_key(model: str) -> str:
    """Return the name of the key that holds a model's decision state."""
    return f"selected:{model}"


def _state_keys(roles: Roles) -> Iterator[tuple[str, str, str]]:
    if roles.outcome is not None:
        yield "outcome", "outcome", roles.outcome
    for name, prediction in roles.predictions.items():
        yield "prediction", state_key(name), prediction.column


def _two_valued(
    cells: Cells,
    source: Source,
    key: str,
    role: str,
    column: str,
    kinds: Mapping[str, Kind],
    option: str,
    yes: Scalar | None,
) -> Iterator[str]:
    if yes is not None:
        held = _distinct(source, column, kinds, ~is_absent(column, kinds[column])) if not _rows(cells, key, YES) else []
        if held:
            yield f"`{option}` is {yes!r}, which {role} column {column!r} never holds; it holds {shown(held, _SHOWN)}."
        return
    invalid = _rows(cells, key, INVALID)
    if not invalid:
        return
    values = _distinct(source, column, kinds, binary_state(column, kinds[column], None) == INVALID)
    advice = f"name the value that counts with `{option}`"
    if role == "decision" and kinds[column] in NUMBERS:
        advice += ", or for a score give kind='score' and its range"
    are = "is" if invalid == 1 else "are"
    yield (
        f"{role} column {column!r} has {count(invalid, 'row')} that {are} neither 0/1 nor yes/no "
        f"(such as {shown(values, _SHOWN)}); {advice}."
    )


def _bad_scores(
    cells: Cells, source: Source, key: str, prediction: Prediction, kinds: Mapping[str, Kind]
) -> Iterator[str]:
    invalid = _rows(cells, key, INVALID)
    if invalid:
        low, high = prediction.range
        outside = out_of_range(prediction) & ~is_absent(prediction.column, kinds[prediction.column])
        values = _distinct(source, prediction.column, kinds, outside)
        yield (
            f"score column {prediction.column!r} lies outside {low:g} to {high:g} in {count(invalid, 'row')} "
            f"(such as {shown(values, _SHOWN)}); rescale it, or give its range=(lowest, highest) and threshold."
        )


def _absent_states(
    cells: Cells, source: Source, role: str, key: str, column: str, kinds: Mapping[str, Kind], dropping: bool
) -> Iterator[str]:
    absent = _rows(cells, key, ABSENT)
    if absent == cells.rows:
        yield f"{role} column {column!r} has no values: every row is missing."
    elif absent and not dropping:
        where = _example_rows(source, is_absent(column, kinds[column]))
        them = _them(absent)
        yield (
            f"{role} column {column!r} is missing in {count(absent, 'row')} of {cells.rows:,}{where}; "
            f"fill {them}, or drop {them} with missing='drop'."
        )


def _bad_group(cells: Cells, column: str, roles: Roles, kinds: Mapping[str, Kind]) -> Iterator[str]:
    labels = cells.labels[column_key(column)]
    groups = [label for label in labels if label != MISSING]
    if column in roles.cuts:
        groups = [label for label in cells.joint([column])[1] if label != MISSING]
    start = f"group column {column!r}"
    if not groups:
        yield f"{start} has no values: every row is missing."
    elif len(groups) == 1:
        yield f"{start} has only one group ({groups[0]!r}); there is nothing to compare: leave it out."
    elif kinds[column] in NUMBERS and column not in roles.cuts and len(groups) > MAX_NUMERIC_GROUPS:
        yield (
            f"{start} is numeric with {len(groups):,} distinct values; "
            f"give cut points, for example cuts={{{column!r}: [25, 45, 65]}}."
        )
    elif len(groups) > MAX_GROUPS:
        yield _too_many(start, len(groups))


def _bad_intersection(cells: Cells, columns: tuple[str, ...]) -> Iterator[str]:
    groups = [label for label in cells.joint(columns)[1] if label != MISSING]
    start = f"intersection {grouping_name(columns)!r}"
    if any(len(cells.joint([column])[1]) > MAX_GROUPS for column in columns):
        return  # told of the column
    if not groups:
        yield f"{start} has no values: some part is missing in every row."
    elif len(groups) > MAX_GROUPS:
        yield _too_many(start, len(groups))
    elif len(set(groups)) < len(groups):
        yield f"{start} has different groups of one name; values must not contain {grouping_name(['', '']).strip()!r}."


def _them(rows: int) -> str:
    return "it" if rows == 1 else "them"


def _too_many(start: str, groups: int) -> str:
    return f"{start} has {groups:,} groups, more than {MAX_GROUPS:,}; is it an identifier? Choose something coarser."


def _rows(cells: Cells, key: str, state: int) -> int:
    """Return the number of rows in a state."""
    label = str(state)
    if label not in cells.labels[key]:
        return 0
    return int(cells.n[cells.codes[key] == cells.labels[key].index(label)].sum())


def _distinct(source: Source, column: str, kinds: Mapping[str, Kind], wanted: nw.Expr) -> list[Any]:
    """Return the first few distinct values of the rows wanted, in sorted order: the same from every engine."""
    with engine_errors():
        frame: Any = source.frame.filter(wanted).select(value=plain_value(column, kinds[column]))
        return fetch(frame.unique("value").sort("value").head(_SHOWN + 1))["value"]


def _example_rows(source: Source, bad: nw.Expr) -> str:
    """Name the first few bad rows, counted from 1; without an order of rows there is nothing to name."""
    with engine_errors():
        numbers = source.first_rows(bad, _SHOWN + 1)
    if not numbers:
        return ""
    listed = ", ".join(str(number) for number in numbers[:_SHOWN]) + (", ..." if len(numbers) > _SHOWN else "")
    return f" (row {listed})" if len(numbers) == 1 else f" (rows {listed})"


# What is no error, but a reader needs to know -------------------------------------------------------------


def label_notes(roles: Roles, kinds: Mapping[str, Kind], cells: Cells) -> Iterator[str]:
    """Yield remarks on group labels that a person would take for one group, or for none."""
    for column in roles.group_columns:
        if kinds[column] == "text":
            labels = [label for label in cells.labels[column_key(column)] if label != MISSING]
            yield from (f"{column}: {remark}" for remark in _label_remarks(labels))


def _label_remarks(labels: Sequence[str]) -> Iterator[str]:
    spellings: dict[str, list[str]] = {}
    for label in labels:
        spellings.setdefault(" ".join(label.split()).casefold(), []).append(label)
    for alike in spellings.values():
        if len(alike) > 1:
            listed = ", ".join(repr(label) for label in alike)
            yield f"{listed} differ only in capitals or spaces; they are {len(alike)} groups here."
    for label in labels:
        if label.strip().casefold() in _MISSING_WORDS:
            yield f"{label!r} looks like a word for missing; if it is, name it among `missing_values`."
    words = [repr(label) for label in labels if not _is_number(label)]
    numbers = len(labels) - len(words)
    if len(labels) > MAX_NUMERIC_GROUPS and numbers > 0.8 * len(labels):
        yield f"{numbers} of {len(labels)} groups are numbers; {', '.join(words)} makes it text without cut points."


def _is_number(label: str) -> bool:
    return label.replace(".", "", 1).replace("-", "", 1).isdigit()
