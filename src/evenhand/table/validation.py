"""One validation pass: every problem of a table's roles and rows, told at once."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np

from evenhand.errors import count, did_you_mean
from evenhand.table import keys
from evenhand.table.cells import Cells, exponent_for
from evenhand.table.engines import MAX_CELLS
from evenhand.table.keys import NUMBERS, Kind, as_number, is_absent, plain_value, prediction_kind, shown, unusable
from evenhand.table.labels import (
    COMMA_NUMBER,
    MAX_NUMERIC_GROUPS,
    MISSING_WORDS,
    PERCENT,
    label_notes,
    label_problems,
    name_problems,
    numbers_as_text,
)
from evenhand.table.roles import MISSING, Prediction, Roles, Scalar, grouping_name
from evenhand.table.sources import Source, engine_errors, fetch

WIDEST_WEIGHTS = 1e8
MAX_GROUPS = 1_000
MIN_COUNT = 10
LARGEST_WEIGHT = 1e30
_SHOWN = 5
_CONVERT = "; convert it; in a file, words for missing values need missing_values=[{word!r}]"
_DECIMAL_COMMA = "; these are decimal commas: in a file, say decimal=','"
_PERCENT = "; write them without the percent sign, and give range=(0, 100) and threshold=50"
_NUMBER = r"^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$"
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?[./]\d\d?[./](\d{4}|\d\d)")
_TIMES = frozenset(("year", "time", "date", "month", "quarter", "wave", "period", "visit", "jahr", "annee", "ano"))

Misfit: TypeAlias = tuple[str | None, str]
"""A column, or none, and what is wrong with its role."""


@dataclass(frozen=True)
class Validation:
    """The checks of a table, by what a problem shows in: names and types of the columns, cells, or rows."""

    roles: Roles
    kinds: Mapping[str, Kind]
    source: Source

    def schema_problems(self) -> Iterator[Misfit]:
        """Yield what is wrong with a column's role as soon as its name and type are known, with the column."""
        yield from name_problems(self.roles, self.kinds)
        for role, column in _role_columns(self.roles):
            fault = column_fault(column, self.kinds)
            if fault and column not in self.roles.one_hot:
                yield column, f"{role} column {column!r} {fault}"
        for column in self.roles.cuts:
            if column not in self.roles.group_columns:
                yield (
                    None,
                    f"`cuts` names {column!r}, which is not a group; {did_you_mean(column, self.roles.group_columns)}",
                )
            else:
                yield from self._no_numbers(f"group column {column!r} has cut points but", column)
        for name, prediction in self.roles.predictions.items():
            yield from self._prediction_type(name, prediction)
        if self.roles.weight is not None:
            yield from self._no_numbers(f"weight column {self.roles.weight!r}", self.roles.weight)
        if self.roles.positive is not None and self.roles.outcome is None:
            yield None, f"`positive` is {self.roles.positive!r} but no `outcome` column is named."
        elif self.roles.outcome is not None:
            yield from self._unfit_value("outcome", self.roles.outcome, "positive", self.roles.positive)

    def _prediction_type(self, name: str, prediction: Prediction) -> Iterator[Misfit]:
        kind = self.kinds.get(prediction.column)
        if kind is None or kind == "other":
            return
        if prediction_kind(prediction, kind) == "decision":
            yield from self._unfit_value("decision", prediction.column, "selected", prediction.selected)
        else:
            start = f"score column {prediction.column!r} (model {name!r})"
            yield from self._no_numbers(start, prediction.column, advice=_CONVERT)

    def _unfit_value(self, role: str, column: str, option: str, value: Scalar | None) -> Iterator[Misfit]:
        kind = self.kinds.get(column)
        if value is not None and kind is not None and kind != "other" and keys.as_kind(value, kind) is None:
            yield column, f"`{option}` is {value!r}, but {role} column {column!r} holds {_in_words(kind)}."

    def _no_numbers(self, start: str, column: str, advice: str = "") -> Iterator[Misfit]:
        """Yield that a column holds no numbers, and what it holds instead; of a table without rows that is not told."""
        kind = self.kinds.get(column, "other")
        if kind in (*NUMBERS, "other"):
            return
        known = ~self._absent(column)
        if kind == "text":  # what makes it text, not the numbers beside it
            known = known & ~self._value(column).str.contains(_NUMBER)
        examples = self._distinct(column, known) or self._distinct(column, ~self._absent(column))
        if examples:
            for form, mended in ((COMMA_NUMBER, _DECIMAL_COMMA), (PERCENT, _PERCENT)):
                if all(form.fullmatch(str(example)) for example in examples):
                    advice = mended
            advice = advice.format(word=str(examples[0]))
            held = f"{_in_words(kind)} (such as {shown(examples, _SHOWN)})"
            yield column, f"{start} holds {held}, not numbers{advice if kind == 'text' else ''}."
        elif fetch(self.source.frame.select(n=nw.len()))["n"][0]:
            yield column, f"{start} has no values: every row is missing."
        else:
            yield column, ""

    def row_problems(self, cells: Cells) -> Iterator[str]:
        """Yield what is wrong with the rows, read off the cells; only for a problem are rows looked up."""
        if cells.rows == 0:
            yield "the data has no rows."
            return
        if self.roles.outcome is not None:
            named = ("positive", self.roles.positive)
            yield from self._two_valued(cells, "outcome", "outcome", self.roles.outcome, named=named)
        for name, prediction in self.roles.predictions.items():
            key = state_key(name)
            if prediction_kind(prediction, self.kinds[prediction.column]) == "decision":
                named = ("selected", prediction.selected)
                yield from self._two_valued(cells, key, "decision", prediction.column, named=named)
            else:
                yield from self._bad_scores(cells, key, prediction)
        for role, key, column in _state_keys(self.roles):
            yield from self._absent_states(cells, role, key, column)
        for column in self.roles.group_columns:
            yield from self._bad_group(cells, column)
        for columns in self.roles.groups:
            if len(columns) > 1:
                yield from _bad_intersection(cells, columns)

    def weight_problems(self, column: str) -> tuple[list[str], int, int]:
        """Return what is wrong with the survey weights, an exponent that bounds them, and how many are 0."""
        start = f"weight column {column!r}"
        absent, value = self._absent(column), nw.col(column).cast(nw.Float64)
        known = nw.when(~absent).then(value)
        states = {"absent": absent, "negative": known < 0, "zero": known == 0}
        with engine_errors():
            selected = self.source.frame.select(
                **{name: as_number(state) for name, state in states.items()},
                known=known,
                positive=nw.when(known > 0).then(known),
            )
            counts = {"rows": nw.len(), **{name: nw.col(name).sum() for name in states}}
            ends = {"lightest": nw.col("positive").min(), "lowest": nw.col("known").min()}
            facts = fetch(selected.select(**counts, **ends, largest=nw.col("known").max()))
        rows, missing, negative, zero = (int(facts[name][0] or 0) for name in counts)
        if missing == rows:
            return [f"{start} has no values: every row is missing."] if rows else [], 0, 0
        problems = []
        lowest, largest = float(facts["lowest"][0]), float(facts["largest"][0])
        if missing:
            problems.append(f"{start} is missing in {self._named(missing, rows, absent)}; fill {_them(missing)}.")
        if negative:
            where = self._named(negative, rows, (value < 0) & ~absent)
            problems.append(f"{start} is negative in {where}, down to {lowest:g}; weights must be 0 or more.")
        elif largest == 0:
            problems.append(f"{start} is 0 in every row; some weight must be above 0.")
        problems += _unusual_weights(column, float(facts["lightest"][0] or 0.0), largest)
        return problems, 0 if problems else exponent_for(largest), zero

    def id_problems(self, column: str, rows: int) -> Iterator[str]:
        """Yield a problem when an id is missing or in more than one row."""
        absent = self._absent(column)
        with engine_errors():
            ids = self.source.frame.select(absent=as_number(absent), person=self._value(column))
            missing = int(fetch(ids.select(nw.col("absent").sum()))["absent"][0] or 0)
            people = ids.filter(nw.col("absent") == 0).group_by("person").agg(nw.len().alias("rows"))
            repeated = people.filter(nw.col("rows") > 1)
            facts = fetch(repeated.select(ids=nw.len(), rows=nw.col("rows").sum(), example=nw.col("person").min()))
        if missing:
            where = self._named(missing, rows, absent)
            yield f"id column {column!r} is missing in {where}; each person must have an id."
        n = int(facts["ids"][0] or 0)
        if n:
            repeats = f"{count(n, 'id')} {'is' if n == 1 else 'are'} in {count(int(facts['rows'][0]), 'row')}"
            yield (
                f"id column {column!r} repeats: {repeats} of {rows:,} (for example {shown([facts['example'][0]], 1)}); "
                f"each person must have one row.{self._long_table(column)}"
            )

    def _long_table(self, column: str) -> str:
        """Say where a table belongs that has a row for each person and time."""
        times = [name for name in self.kinds if name != column and _TIMES & set(re.split(r"[\W_]+", name.lower()))]
        if not times:
            return ""
        return (
            f" If {times[0]!r} is the time of a row, keep one row a person here, and give the long table to the "
            "effort audit as its `history`."
        )

    def crowded_columns(self) -> list[str]:
        """Return what is wrong with groups that are too many to be counted."""
        columns = [column for column in self.roles.group_columns if column not in self.roles.cuts]
        with engine_errors():
            sizes = {f"key{i}": self._value(column).n_unique() for i, column in enumerate(columns)}
            distinct = fetch(self.source.frame.select(**sizes))
        unique = {column: int(distinct[key][0]) for column, key in zip(columns, sizes, strict=True)}
        many = [_too_many(f"group column {column!r}", size) for column, size in unique.items() if size > MAX_GROUPS]
        return many or [
            f"the group columns have more than {MAX_CELLS:,} combinations ({', '.join(map(repr, columns))}); "
            "leave some of them out, or choose coarser ones."
        ]

    def _two_valued(
        self, cells: Cells, key: str, role: str, column: str, *, named: tuple[str, Scalar | None]
    ) -> Iterator[str]:
        """Yield what is wrong with rows of two values; `named` is an option and its value."""
        option, yes = named
        start = f"{role} column {column!r}"
        if yes is not None:
            held = self._distinct(column, ~self._absent(column)) if not _rows(cells, key, keys.YES) else []
            if held:
                yield f"`{option}` is {yes!r}, which {start} never holds; it holds {shown(held, _SHOWN)}."
            return
        invalid = _rows(cells, key, keys.INVALID)
        if not invalid:
            return
        values = self._distinct(column, self._binary_state(column) == keys.INVALID)
        advice = f"name the value that counts with `{option}`"
        if all(str(value).strip().casefold() in MISSING_WORDS for value in values):
            advice = f"if that means missing, in a file say missing_values={values!r}; if not, {advice}"
        elif role == "decision" and self.kinds[column] in NUMBERS:
            advice += ", or for a score give kind='score' and its range"
        are = "is" if invalid == 1 else "are"
        yield (
            f"{start} has {count(invalid, 'row')} that {are} neither 0/1 nor yes/no "
            f"(such as {shown(values, _SHOWN)}); {advice}."
        )

    def _bad_scores(self, cells: Cells, key: str, prediction: Prediction) -> Iterator[str]:
        invalid = _rows(cells, key, keys.INVALID)
        if invalid:
            low, high = prediction.range
            outside = keys.out_of_range(prediction) & ~self._absent(prediction.column)
            values = self._distinct(prediction.column, outside)
            yield (
                f"score column {prediction.column!r} lies outside {low:g} to {high:g} in {count(invalid, 'row')} "
                f"(such as {shown(values, _SHOWN)}); {self._rescale(prediction)}"
            )

    def _rescale(self, prediction: Prediction) -> str:
        """Say how to mend a score outside its range; scores from 0 to 100 are most likely percent."""
        value = nw.col(prediction.column).cast(nw.Float64)
        ends = fetch(
            self.source.frame.filter(~self._absent(prediction.column)).select(low=value.min(), high=value.max())
        )
        low, high = float(ends["low"][0]), float(ends["high"][0])
        if prediction.range == (0.0, 1.0) and low >= 0 and 10 < high <= 100:
            return f"it runs from {low:g} to {high:g}: if it is percent, give range=(0, 100) and threshold=50."
        return "rescale it, or give its range=(lowest, highest) and threshold."

    def _absent_states(self, cells: Cells, role: str, key: str, column: str) -> Iterator[str]:
        absent = _rows(cells, key, keys.ABSENT)
        if absent == cells.rows:
            yield f"{role} column {column!r} has no values: every row is missing."
        elif absent and self.roles.missing != "drop":
            where, them = self._named(absent, cells.rows, self._absent(column)), _them(absent)
            yield f"{role} column {column!r} is missing in {where}; fill {them}, or drop {them} with missing='drop'."

    def _bad_group(self, cells: Cells, column: str) -> Iterator[str]:
        key = keys.column_key(column)
        yield from label_problems(self.roles, column, list(cells.values[key]))
        labels = cells.joint([column])[1] if column in self.roles.cuts else cells.labels[key]
        groups = [label for label in labels if label != MISSING]
        start = f"group column {column!r}"
        if not groups:
            yield f"{start} has no values: every row is missing."
        elif len(groups) == 1:
            yield f"{start} has only one group ({groups[0]!r}); there is nothing to compare: leave it out."
        elif len(groups) > MAX_NUMERIC_GROUPS:
            yield from self._many_groups(cells, column, start, groups)

    def _many_groups(self, cells: Cells, column: str, start: str, groups: Sequence[str]) -> Iterator[str]:
        if self.kinds[column] in NUMBERS and column not in self.roles.cuts:
            points = keys.example_cuts(list(cells.values[keys.column_key(column)]))
            unique = len(groups) == cells.rows and self.kinds[column] == "whole"
            yield (
                f"{start} is numeric with {len(groups):,} distinct values; give cut points, for example "
                f"cuts={{{column!r}: {points}}}{'; an identifier groups nobody: leave it out' if unique else ''}."
            )
        elif self._are_dates(column, groups):
            yield (
                f"{start} holds {len(groups):,} dates (such as {groups[0]!r}); make periods of them, such as years, "
                "in a column of text or numbers."
            )
        elif len(groups) > MAX_GROUPS:
            yield _too_many(start, len(groups))
        elif column not in self.roles.cuts:
            yield from self._tiny_groups(cells, column, start, len(groups))

    def _are_dates(self, column: str, groups: Sequence[str]) -> bool:
        return self.kinds[column] in ("date", "datetime") or all(_DATE.fullmatch(group) for group in groups)

    def _tiny_groups(self, cells: Cells, column: str, start: str, groups: int) -> Iterator[str]:
        """Refuse many groups of which no two are large enough to be compared."""
        codes, labels = cells.joint([column])
        sizes = np.bincount(codes, weights=cells.n, minlength=len(labels))
        large = sum(size >= MIN_COUNT for size, label in zip(sizes, labels, strict=True) if label != MISSING)
        if large < 2:
            mixed = "".join(f" {remark}" for remark in numbers_as_text(list(cells.values[keys.column_key(column)])))
            yield (
                f"{start} has {groups:,} groups, and only {large} of them with {MIN_COUNT} people or more: nothing "
                f"could be compared; choose something coarser.{mixed}"
            )

    def _absent(self, column: str) -> nw.Expr:
        return is_absent(column, self.kinds[column], portable=self.source.portable_sql)

    def _binary_state(self, column: str) -> nw.Expr:
        return keys.binary_state(column, self.kinds[column], None, portable=self.source.portable_sql)

    def _value(self, column: str) -> nw.Expr:
        return plain_value(column, self.kinds[column])

    def _distinct(self, column: str, wanted: nw.Expr) -> list[Any]:
        """Return the first few distinct values of the rows wanted, in sorted order: the same from every engine."""
        with engine_errors():
            frame = self.source.frame.filter(wanted).select(value=self._value(column))
            return fetch(frame.unique("value").sort("value").head(_SHOWN + 1))["value"]

    def _named(self, n: int, rows: int, bad: nw.Expr) -> str:
        """Count bad rows and name the first few from 1; without an order of rows there is nothing to name."""
        with engine_errors():
            numbers = self.source.first_rows(bad, _SHOWN + 1)
        listed = ", ".join(str(number) for number in numbers[:_SHOWN]) + (", ..." if len(numbers) > _SHOWN else "")
        named = f" (row{'' if len(numbers) == 1 else 's'} {listed})" if numbers else ""
        return f"{count(n, 'row')} of {rows:,}{named}"

    def notes(self, cells: Cells) -> Iterator[str]:
        """Yield remarks on an outcome that never differs, and on group labels that a person would read otherwise."""
        outcome = self.roles.outcome
        for state, rates in ((keys.NO, "true positive rates"), (keys.YES, "false positive rates")):
            same = sum(_rows(cells, "outcome", each) for each in (state, keys.ABSENT)) if outcome is not None else 0
            if same == cells.rows:
                word = "positive" if state == keys.YES else "negative"
                yield (
                    f"The outcome {outcome!r} is {word} in every row: {rates}, AUC and calibration say nothing here. "
                    "Is it the right column, and is `positive` right?"
                )
        yield from self._words_that_count_as_no()
        for column in self.roles.group_columns:
            key = keys.column_key(column)
            yield from label_notes(column, self.kinds[column], list(cells.values[key]), cells.labels[key])

    def _words_that_count_as_no(self) -> Iterator[str]:
        """Yield that words for missing values count as a no, where somebody named the value that is a yes."""
        decided = [(p.column, p.selected) for p in self.roles.predictions.values()]
        for column, yes in dict.fromkeys([(self.roles.outcome, self.roles.positive), *decided]):
            if column is None or yes is None or self.kinds[column] != "text":
                continue
            words = self._distinct(column, self._value(column).str.to_lowercase().is_in(MISSING_WORDS))
            if words:
                yield (
                    f"{column}: {shown(words, _SHOWN)} counts as not {yes!r}; if it means missing, name it among "
                    "`missing_values`."
                )


def column_fault(column: str, kinds: Mapping[str, Kind]) -> str:
    """Say why a column cannot be read, as the end of a sentence; nothing where it can."""
    if column not in kinds:
        return f"is not in the data; {did_you_mean(column, kinds)}"
    if unusable(column):
        return f"{unusable(column)}; rename it."
    return f"holds {_in_words('other')}; give a column of plain values." if kinds[column] == "other" else ""


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


def state_key(model: str) -> str:
    """Return the name of the key that holds a model's decision state."""
    return f"selected:{model}"


def _state_keys(roles: Roles) -> Iterator[tuple[str, str, str]]:
    if roles.outcome is not None:
        yield "outcome", "outcome", roles.outcome
    for name, prediction in roles.predictions.items():
        yield "prediction", state_key(name), prediction.column


def _role_columns(roles: Roles) -> Iterator[tuple[str, str]]:
    for role, column in (("id", roles.id), ("outcome", roles.outcome), ("weight", roles.weight)):
        if column is not None:
            yield role, column
    for column in roles.group_columns:
        yield "group", column
    for prediction in roles.predictions.values():
        yield "prediction", prediction.column


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


def _in_words(kind: Kind) -> str:
    words = {
        "text": "text",
        "boolean": "true/false values",
        "other": "times, nested, binary, complex or 128-bit values",
    }
    return words.get(kind, "numbers" if kind in NUMBERS else "dates")


def _unusual_weights(column: str, lightest: float, largest: float) -> Iterator[str]:
    """Yield that weights are of an unusual size, or too far apart; `lightest` is the smallest above 0."""
    if largest != 0 and not 1 / LARGEST_WEIGHT <= abs(largest) <= LARGEST_WEIGHT:
        yield f"weight column {column!r} has {largest:g} as its largest weight; rescale it to about 1."
    elif largest > 0 and largest / lightest > WIDEST_WEIGHTS:
        yield (
            f"the weights of column {column!r} run from {lightest:g} to {largest:g}, over {WIDEST_WEIGHTS:g} times "
            "apart: next to the heaviest, the lightest people count for nothing; check them."
        )


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
