"""Validate a table in one pass: collect all problems of its roles and rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np

from evenhand.errors import count, did_you_mean, problem
from evenhand.messages import Message
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
from evenhand.table.messages import say
from evenhand.table.roles import LARGEST_SCORE, MISSING, Prediction, Roles, Scalar, grouping_name
from evenhand.table.sources import Source, engine_errors, fetch

WIDEST_WEIGHTS = 1e8
MAX_GROUPS = 1_000
MIN_COUNT = 10
LARGEST_WEIGHT = 1e30
_SHOWN = 5
_CONVERT = "; convert it; words for missing values need `missing_values={words}`"
_DECIMAL_COMMA = "; these are decimal commas: in a file, say `decimal=','`"
_PERCENT = "; write them without the percent sign, and give `range=(0, 100)` and `threshold=50`"
_NUMBER = r"^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$"
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?[./]\d\d?[./](\d{4}|\d\d)")
_TIMES = frozenset(("year", "time", "date", "month", "quarter", "wave", "period", "visit", "jahr", "annee", "ano"))

Misfit: TypeAlias = tuple[str | None, Message | None]
"""A column (or None) and its problem; the problem is None if another check reports it."""


@dataclass(frozen=True)
class Validation:
    """The checks of a table's column names and types, cells and rows."""

    roles: Roles
    kinds: Mapping[str, Kind]
    source: Source

    def schema_problems(self) -> Iterator[Misfit]:
        """Yield the problems that names and types alone reveal, each with its column."""
        yield from name_problems(self.roles, self.kinds)
        for role, column in _role_columns(self.roles):
            fault = column_fault(column, self.kinds)
            if fault and column not in self.roles.one_hot:
                yield column, problem("{role} column {column!r} {fault}", role=role, column=column, fault=fault)
        for column in self.roles.cuts:
            if column not in self.roles.group_columns:
                yield (
                    None,
                    problem(
                        "`cuts` names {column!r}, which is not a group; {hint}",
                        column=column,
                        hint=did_you_mean(column, self.roles.group_columns),
                    ),
                )
            else:
                yield from self._no_numbers(
                    problem("group column {column!r} has cut points but", column=column), column
                )
        for name, prediction in self.roles.predictions.items():
            yield from self._prediction_type(name, prediction)
        for role, amounts in (("weight", self.roles.weight), ("count", self.roles.count)):
            if amounts is not None:
                yield from self._no_numbers(problem("{role} column {column!r}", role=role, column=amounts), amounts)
        yield from self._outcome_type()

    def _outcome_type(self) -> Iterator[Misfit]:
        if self.roles.positive is not None and self.roles.outcome is None:
            yield (
                None,
                problem("`positive` is {positive!r} but no `outcome` column is named.", positive=self.roles.positive),
            )
        elif self.roles.outcome is not None and self.roles.outcome_kind == "number":
            start = problem("outcome column {column!r}", column=self.roles.outcome)
            yield from self._no_numbers(start, self.roles.outcome, advice=_CONVERT)
        elif self.roles.outcome is not None:
            yield from self._unfit_value("outcome", self.roles.outcome, "positive", self.roles.positive)

    def _prediction_type(self, name: str, prediction: Prediction) -> Iterator[Misfit]:
        kind = self.kinds.get(prediction.column)
        if kind is None or kind == "other":
            return
        if prediction_kind(prediction, kind) == "decision":
            yield from self._unfit_value("decision", prediction.column, "selected", prediction.selected)
        else:
            role = prediction.kind or "score"
            start = problem("{role} column {column!r} (model {name!r})", role=role, column=prediction.column, name=name)
            yield from self._no_numbers(start, prediction.column, advice=_CONVERT)

    def _unfit_value(self, role: str, column: str, option: str, value: Scalar | None) -> Iterator[Misfit]:
        kind = self.kinds.get(column)
        if value is not None and kind is not None and kind != "other" and keys.as_kind(value, kind) is None:
            yield (
                column,
                problem(
                    "`{option}` is {value!r}, but {role} column {column!r} holds {held}.",
                    option=option,
                    value=value,
                    role=role,
                    column=column,
                    held=_in_words(kind),
                ),
            )

    def _no_numbers(self, start: Message, column: str, advice: str = "") -> Iterator[Misfit]:
        """Yield a problem if a column is not numeric; None as the problem if the table has no rows."""
        kind = self.kinds.get(column, "other")
        if kind in (*NUMBERS, "other"):
            return
        present = ~self.absent(column)
        if kind == "text":  # the values that make it text
            present = present & ~self._value(column).str.contains(_NUMBER)
        examples = self._distinct(column, present) or self._distinct(column, ~self.absent(column))
        if examples:
            for form, fix in ((COMMA_NUMBER, _DECIMAL_COMMA), (PERCENT, _PERCENT)):
                if all(form.fullmatch(str(example)) for example in examples):
                    advice = fix
            fix_message = problem(advice, words=[str(examples[0])]) if advice and kind == "text" else None
            yield (
                column,
                problem(
                    "{start} holds {held} (such as {examples}), not numbers{advice}.",
                    start=start,
                    held=_in_words(kind),
                    examples=shown(examples, _SHOWN),
                    advice=fix_message,
                ),
            )
        elif fetch(self.source.frame.select(n=nw.len()))["n"][0]:
            yield column, problem("{start} has no values: every row is missing.", start=start)
        else:
            yield column, None

    def row_problems(self, cells: Cells) -> Iterator[Message]:
        """Yield problems of the rows, detected in the cells; rows are read only for details."""
        if cells.rows == 0:
            yield problem("the data has no rows.")
            return
        if self.roles.outcome is not None and self.roles.outcome_kind == "number":
            yield from self._bad_numbers(cells, "outcome", "outcome", self.roles.outcome)
        elif self.roles.outcome is not None:
            named = ("positive", self.roles.positive)
            yield from self._two_valued(cells, "outcome", "outcome", self.roles.outcome, named=named)
        for name, prediction in self.roles.predictions.items():
            key = state_key(name)
            kind = prediction_kind(prediction, self.kinds[prediction.column])
            if kind == "number":
                yield from self._bad_numbers(cells, key, kind, prediction.column)
            elif kind == "decision":
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

    def weight_problems(self, column: str) -> tuple[list[Message], int, int]:
        """Return the problems of the survey weights, an exponent that bounds them, and the number of zeros."""
        start = problem("weight column {column!r}", column=column)
        absent, value = self.absent(column), nw.col(column).cast(nw.Float64)
        weights = nw.when(~absent).then(value)
        states = {"absent": absent, "negative": weights < 0, "zero": weights == 0}
        with engine_errors():
            selected = self.source.frame.select(
                **{name: as_number(state) for name, state in states.items()},
                known=weights,
                positive=nw.when(weights > 0).then(weights),
            )
            counts = {"rows": nw.len(), **{name: nw.col(name).sum() for name in states}}
            ends = {"lightest": nw.col("positive").min(), "lowest": nw.col("known").min()}
            facts = fetch(selected.select(**counts, **ends, largest=nw.col("known").max()))
        rows, missing, negative, zero = (int(facts[name][0] or 0) for name in counts)
        if missing == rows:
            empty = problem("{start} has no values: every row is missing.", start=start)
            return [empty] if rows else [], 0, 0
        problems = []
        lowest, largest = float(facts["lowest"][0]), float(facts["largest"][0])
        if missing:
            problems.append(
                problem(
                    "{start} is missing in {where}; fill {them}.",
                    start=start,
                    where=self.named(missing, rows, absent),
                    them=_them(missing),
                )
            )
        if negative:
            where = self.named(negative, rows, (value < 0) & ~absent)
            problems.append(
                problem(
                    "{start} is negative in {where}, down to {lowest:g}; weights must be 0 or more.",
                    start=start,
                    where=where,
                    lowest=lowest,
                )
            )
        elif largest == 0:
            problems.append(problem("{start} is 0 in every row; some weight must be above 0.", start=start))
        problems += _unusual_weights(column, float(facts["lightest"][0] or 0.0), largest)
        return problems, 0 if problems else exponent_for(largest), zero

    def cluster_problems(self, column: str, rows: int) -> Iterator[Message]:
        """Yield a problem if the cluster of a row is missing."""
        absent = self.absent(column)
        with engine_errors():
            missing = int(fetch(self.source.frame.select(n=as_number(absent).sum()))["n"][0] or 0)
        if missing:
            yield problem(
                "cluster column {column!r} is missing in {where}; each row must have one, if only one of its own.",
                column=column,
                where=self.named(missing, rows, absent),
            )

    def id_problems(self, column: str, rows: int) -> Iterator[Message]:
        """Yield a problem if an id is missing, or occurs in several rows."""
        absent = self.absent(column)
        with engine_errors():
            ids = self.source.frame.select(absent=as_number(absent), person=self._value(column))
            missing = int(fetch(ids.select(nw.col("absent").sum()))["absent"][0] or 0)
            people = ids.filter(nw.col("absent") == 0).group_by("person").agg(nw.len().alias("rows"))
            repeated = people.filter(nw.col("rows") > 1)
            facts = fetch(repeated.select(ids=nw.len(), rows=nw.col("rows").sum(), example=nw.col("person").min()))
        if missing:
            where = self.named(missing, rows, absent)
            yield problem(
                "id column {column!r} is missing in {where}; each person must have an id.", column=column, where=where
            )
        n = int(facts["ids"][0] or 0)
        if n:
            yield (
                problem(
                    "id column {column!r} repeats: {ids} {are} in {repeated} of {rows:,} (for example {example}); each "
                    "person must have one row.{advice}",
                    column=column,
                    ids=count(n, "id"),
                    are="is" if n == 1 else "are",
                    repeated=count(int(facts["rows"][0]), "row"),
                    rows=rows,
                    example=shown([facts["example"][0]], 1),
                    advice=self._long_table(column),
                )
            )

    def _long_table(self, column: str) -> Message:
        """Return advice for a table with several rows per id, such as one row per person and time."""
        times = [name for name in self.kinds if name != column and _TIMES & set(re.split(r"[\W_]+", name.lower()))]
        if not times:
            return problem(" If rows with the same {column!r} belong together, name it as `cluster`.", column=column)
        return problem(
            " If {column!r} is the time of a row, keep one row per person here; an audit that follows people "
            "over time takes the long table as its `history`.",
            column=times[0],
        )

    def crowded_columns(self) -> list[Message]:
        """Return the problems of group columns with too many combinations to count."""
        columns = [column for column in self.roles.group_columns if column not in self.roles.cuts]
        with engine_errors():
            sizes = {f"key{i}": self._value(column).n_unique() for i, column in enumerate(columns)}
            distinct = fetch(self.source.frame.select(**sizes))
        unique = {column: int(distinct[key][0]) for column, key in zip(columns, sizes, strict=True)}
        crowded = [
            _too_many(problem("group column {column!r}", column=column), size)
            for column, size in unique.items()
            if size > MAX_GROUPS
        ]
        return crowded or [
            problem(
                "the group columns have more than {most:,} combinations ({columns}); leave some of them out, or choose "
                "coarser ones.",
                most=MAX_CELLS,
                columns=tuple(map(repr, columns)),
            )
        ]

    def _two_valued(
        self, cells: Cells, key: str, role: str, column: str, *, named: tuple[str, Scalar | None]
    ) -> Iterator[Message]:
        """Yield the problems of a two-valued column; `named` is the option for its positive value, and that value."""
        option, yes = named
        start = problem("{role} column {column!r}", role=role, column=column)
        if yes is not None:
            values_present = self._distinct(column, ~self.absent(column)) if not _rows(cells, key, keys.YES) else []
            if values_present:
                yield problem(
                    "`{option}` is {yes!r}, which {start} never holds; it holds {examples}.",
                    option=option,
                    yes=yes,
                    start=start,
                    examples=shown(values_present, _SHOWN),
                )
            return
        invalid = _rows(cells, key, keys.INVALID)
        if not invalid:
            return
        values = self._distinct(column, self._binary_state(column) == keys.INVALID)
        advice = problem("name the value that counts with `{option}`", option=option)
        if all(str(value).strip().casefold() in MISSING_WORDS for value in values):
            advice = problem(
                "if that means missing, say `missing_values={values}`; if not, {advice}",
                values=values,
                advice=advice,
            )
        elif role == "decision" and self.kinds[column] in NUMBERS:
            advice = problem(
                "{advice}, for a score give `kind='score'` and its range, or for a number such as a salary "
                "`kind='number'`",
                advice=advice,
            )
        elif role == "outcome" and self.kinds[column] in NUMBERS:
            advice = problem("{advice}, or for a number such as a salary say `outcome_kind='number'`", advice=advice)
        are = "is" if invalid == 1 else "are"
        yield (
            problem(
                "{start} has {rows} that {are} neither 0/1 nor yes/no (such as {examples}); {advice}.",
                start=start,
                rows=count(invalid, "row"),
                are=are,
                examples=shown(values, _SHOWN),
                advice=advice,
            )
        )

    def _bad_numbers(self, cells: Cells, key: str, role: str, column: str) -> Iterator[Message]:
        invalid = _rows(cells, key, keys.INVALID)
        if invalid:
            values = self._distinct(column, nw.col(column).cast(nw.Float64).abs() > LARGEST_SCORE)
            yield problem(
                "{role} column {column!r} has infinite or unusually large numbers in {rows} (such as {examples}); "
                "correct them, or rescale the column.",
                role=role,
                column=column,
                rows=count(invalid, "row"),
                examples=shown(values, _SHOWN),
            )

    def _bad_scores(self, cells: Cells, key: str, prediction: Prediction) -> Iterator[Message]:
        invalid = _rows(cells, key, keys.INVALID)
        if invalid:
            low, high = prediction.range
            outside = keys.out_of_range(prediction) & ~self.absent(prediction.column)
            values = self._distinct(prediction.column, outside)
            yield (
                problem(
                    "score column {column!r} lies outside {low:g} to {high:g} in {rows} (such as {examples}); {advice}",
                    column=prediction.column,
                    low=low,
                    high=high,
                    rows=count(invalid, "row"),
                    examples=shown(values, _SHOWN),
                    advice=self._rescale(prediction),
                )
            )

    def _rescale(self, prediction: Prediction) -> Message:
        """Return advice on scores outside their range; scores from 0 to 100 are probably percentages."""
        value = nw.col(prediction.column).cast(nw.Float64)
        ends = fetch(
            self.source.frame.filter(~self.absent(prediction.column)).select(low=value.min(), high=value.max())
        )
        low, high = float(ends["low"][0]), float(ends["high"][0])
        if prediction.range == (0.0, 1.0) and low >= 0 and 10 < high <= 100:
            return problem(
                "it runs from {low:g} to {high:g}: if it is percent, give `range=(0, 100)` and `threshold=50`.",
                low=low,
                high=high,
            )
        return problem(
            "rescale it, give its `range=(lowest, highest)` and `threshold`, or for a number such as a salary say "
            "`kind='number'`."
        )

    def _absent_states(self, cells: Cells, role: str, key: str, column: str) -> Iterator[Message]:
        absent = _rows(cells, key, keys.ABSENT)
        if absent == cells.rows:
            yield problem("{role} column {column!r} has no values: every row is missing.", role=role, column=column)
        elif absent and self.roles.missing != "drop":
            where, them = self.named(absent, cells.rows, self.absent(column)), _them(absent)
            yield problem(
                "{role} column {column!r} is missing in {where}; fill {them}, or drop {them} with `missing='drop'`.",
                role=role,
                column=column,
                where=where,
                them=them,
            )

    def _bad_group(self, cells: Cells, column: str) -> Iterator[Message]:
        key = keys.column_key(column)
        yield from label_problems(self.roles, column, list(cells.values[key]))
        labels = cells.joint([column])[1] if column in self.roles.cuts else cells.labels[key]
        groups = [label for label in labels if label != MISSING]
        start = problem("group column {column!r}", column=column)
        if not groups:
            yield problem("{start} has no values: every row is missing.", start=start)
        elif len(groups) == 1:
            yield problem(
                "{start} has only one group ({group!r}); there is nothing to compare: leave it out.",
                start=start,
                group=groups[0],
            )
        elif len(groups) > MAX_NUMERIC_GROUPS:
            yield from self._many_groups(cells, column, start, groups)

    def _many_groups(self, cells: Cells, column: str, start: Message, groups: Sequence[str]) -> Iterator[Message]:
        if self.kinds[column] in NUMBERS and column not in self.roles.cuts:
            points = keys.example_cuts(list(cells.values[keys.column_key(column)]))
            unique = len(groups) == cells.rows and self.kinds[column] == "whole"
            yield (
                problem(
                    "{start} is numeric with {number:,} distinct values; give cut points, for example "
                    "`cuts={cuts}`{identifier}.",
                    start=start,
                    number=len(groups),
                    cuts={column: points},
                    identifier=problem("; an identifier groups nobody: leave it out") if unique else None,
                )
            )
        elif self._are_dates(column, groups):
            yield (
                problem(
                    "{start} holds {number:,} dates (such as {example!r}); make periods of them, such as years, in a "
                    "column of text or numbers.",
                    start=start,
                    number=len(groups),
                    example=groups[0],
                )
            )
        elif len(groups) > MAX_GROUPS:
            yield _too_many(start, len(groups))
        elif column not in self.roles.cuts:
            yield from self._tiny_groups(cells, column, start, len(groups))

    def _are_dates(self, column: str, groups: Sequence[str]) -> bool:
        return self.kinds[column] in ("date", "datetime") or all(_DATE.fullmatch(group) for group in groups)

    def _tiny_groups(self, cells: Cells, column: str, start: Message, groups: int) -> Iterator[Message]:
        """Yield a problem if there are many groups, but fewer than two are large enough to compare."""
        codes, labels = cells.joint([column])
        sizes = np.bincount(codes, weights=cells.n, minlength=len(labels))
        large = sum(size >= MIN_COUNT for size, label in zip(sizes, labels, strict=True) if label != MISSING)
        if large < 2:
            mixed = tuple(
                problem(" {remark}", remark=remark)
                for remark in numbers_as_text(list(cells.values[keys.column_key(column)]))
            )
            yield (
                problem(
                    "{start} has {groups:,} groups, and only {large} of them with {least} people or more: nothing "
                    "could be compared; choose something coarser.{mixed}",
                    start=start,
                    groups=groups,
                    large=large,
                    least=MIN_COUNT,
                    mixed=mixed[0] if mixed else None,
                )
            )

    def absent(self, column: str) -> nw.Expr:
        """Return a test for missing values of a column."""
        return is_absent(column, self.kinds[column], portable=self.source.portable_sql)

    def _binary_state(self, column: str) -> nw.Expr:
        return keys.binary_state(column, self.kinds[column], None, portable=self.source.portable_sql)

    def _value(self, column: str) -> nw.Expr:
        return plain_value(column, self.kinds[column])

    def _distinct(self, column: str, condition: nw.Expr) -> list[Any]:
        """Return the first few distinct values of the selected rows, sorted identically on every engine."""
        with engine_errors():
            frame = self.source.frame.filter(condition).select(value=self._value(column))
            return fetch(frame.unique("value").sort("value").head(_SHOWN + 1))["value"]

    def named(self, n: int, rows: int, bad: nw.Expr) -> str:
        """Return the number of bad rows as text, with the first few row numbers if the rows have an order."""
        with engine_errors():
            numbers = self.source.first_rows(bad, _SHOWN + 1)
        listed = ", ".join(str(number) for number in numbers[:_SHOWN]) + (", ..." if len(numbers) > _SHOWN else "")
        named = f" (row{'' if len(numbers) == 1 else 's'} {listed})" if numbers else ""
        return f"{count(n, 'row')} of {rows:,}{named}"

    def notes(self, cells: Cells) -> Iterator[Message]:
        """Yield remarks on an outcome that never varies, and on group labels that may be misread."""
        outcome = None if self.roles.outcome_kind == "number" else self.roles.outcome
        for state, key in ((keys.NO, "always_negative"), (keys.YES, "always_positive")):
            same = sum(_rows(cells, "outcome", code) for code in (state, keys.ABSENT)) if outcome is not None else 0
            if same == cells.rows:
                yield say(key, outcome=outcome)
        yield from self._decided_by_the_outcome(cells)
        yield from self._words_that_count_as_no()
        for column in self.roles.group_columns:
            key = keys.column_key(column)
            yield from label_notes(column, self.kinds[column], list(cells.values[key]), cells.labels[key])

    def _decided_by_the_outcome(self, cells: Cells) -> Iterator[Message]:
        """Yield a warning if decisions equal the outcome in every row, probably one column in two roles."""
        if self.roles.outcome is None:
            return
        outcome = np.array(cells.labels["outcome"])[cells.codes["outcome"]]
        for name, prediction in self.roles.predictions.items():
            key = state_key(name)
            decided = np.array(cells.labels[key])[cells.codes[key]]
            if len(set(decided)) > 1 and bool((decided == outcome).all()):
                yield say("is_outcome", model=name, column=prediction.column, outcome=self.roles.outcome)

    def _words_that_count_as_no(self) -> Iterator[Message]:
        """Yield remarks on words for missing values that count as no, because the user named the yes value."""
        decided = [(p.column, p.selected) for p in self.roles.predictions.values()]
        for column, yes in dict.fromkeys([(self.roles.outcome, self.roles.positive), *decided]):
            if column is None or yes is None or self.kinds[column] != "text":
                continue
            words = self._distinct(column, self._value(column).str.to_lowercase().is_in(MISSING_WORDS))
            if words:
                yield say("counts_as_no", column=column, words=shown(words, _SHOWN), yes=yes)


def column_fault(column: str, kinds: Mapping[str, Kind]) -> Message | None:
    """Return why a column cannot be read, as the end of a sentence; None if it is readable."""
    if column not in kinds:
        return problem("is not in the data; {hint}", hint=did_you_mean(column, kinds))
    if unusable(column):
        return problem("{fault}; rename it.", fault=unusable(column))
    return (
        problem("holds {held}; give a column of plain values.", held=_in_words("other"))
        if kinds[column] == "other"
        else None
    )


def sound_roles(roles: Roles, bad: Collection[str | None]) -> Roles:
    """Return the roles without bad columns, so that the remaining columns can still be checked."""
    predictions = {name: p for name, p in roles.predictions.items() if p.column not in bad}
    return roles.model_copy(
        update={
            "groups": tuple(grouping for grouping in roles.groups if not set(grouping) & set(bad)),
            "predictions": predictions,
            **{name: None for name in ("id", "outcome", "weight", "count", "cluster") if getattr(roles, name) in bad},
        }
    )


def state_key(model: str) -> str:
    """Return the name of the key of a model's decision state."""
    return f"selected:{model}"


def _state_keys(roles: Roles) -> Iterator[tuple[str, str, str]]:
    if roles.outcome is not None:
        yield "outcome", "outcome", roles.outcome
    for name, prediction in roles.predictions.items():
        yield "prediction", state_key(name), prediction.column


def _role_columns(roles: Roles) -> Iterator[tuple[str, str]]:
    for role in ("id", "outcome", "weight", "count", "cluster"):
        column = getattr(roles, role)
        if column is not None:
            yield role, column
    for column in roles.group_columns:
        yield "group", column
    for prediction in roles.predictions.values():
        yield "prediction", prediction.column


def _them(rows: int) -> str:
    return "it" if rows == 1 else "them"


def _too_many(start: Message, groups: int) -> Message:
    return problem(
        "{start} has {groups:,} groups, more than {most:,}; is it an identifier? Choose something coarser.",
        start=start,
        groups=groups,
        most=MAX_GROUPS,
    )


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


def _unusual_weights(column: str, lightest: float, largest: float) -> Iterator[Message]:
    """Yield a problem if weights have an unusual size or range; `lightest` is the smallest positive weight."""
    if largest != 0 and not 1 / LARGEST_WEIGHT <= abs(largest) <= LARGEST_WEIGHT:
        yield problem(
            "weight column {column!r} has {largest:g} as its largest weight; rescale it to about 1.",
            column=column,
            largest=largest,
        )
    elif largest > 0 and largest / lightest > WIDEST_WEIGHTS:
        yield (
            problem(
                "the weights of column {column!r} run from {lightest:g} to {largest:g}, over {widest:g} times apart: "
                "next to the heaviest, the lightest people count for nothing; check them.",
                column=column,
                lightest=lightest,
                largest=largest,
                widest=WIDEST_WEIGHTS,
            )
        )


def _bad_intersection(cells: Cells, columns: tuple[str, ...]) -> Iterator[Message]:
    groups = [label for label in cells.joint(columns)[1] if label != MISSING]
    start = problem("intersection {grouping!r}", grouping=grouping_name(columns))
    if any(len(cells.joint([column])[1]) > MAX_GROUPS for column in columns):
        return  # reported for the column
    if not groups:
        yield problem("{start} has no values: some part is missing in every row.", start=start)
    elif len(groups) > MAX_GROUPS:
        yield _too_many(start, len(groups))
    elif len(set(groups)) < len(groups):
        yield problem(
            "{start} has different groups of one name; values must not contain {sign!r}.",
            start=start,
            sign=grouping_name(["", ""]).strip(),
        )
