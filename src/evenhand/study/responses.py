"""Responses: participants' answers in one tidy schema for both kinds of study, and exclusion rules."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from evenhand.core.csv_text import write_csv
from evenhand.core.descriptor import AuditDescriptor, study_analysis
from evenhand.errors import DataError, count, did_you_mean, problem
from evenhand.messages import Message
from evenhand.settings import Settings
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.study import schema
from evenhand.study.messages import say
from evenhand.study.schema import BY_NAME, FEEDBACK, SCALE, Column, Kind, Values, as_text, read_columns
from evenhand.table.frames import build_frame
from evenhand.table.keys import shown

CORE = {"effort": ("trajectory", "aggregate", "overall"), "disagreement": ("answer",)}
"""The columns that an answer must have to be complete, by kind of study."""


@dataclass(frozen=True, kw_only=True)
class ExclusionRecord:
    """The people excluded by one rule.

    Parameters
    ----------
    rule, limit : the name of the rule, and a description of the behaviour that breaks it.
    people, rows : the numbers of people and of answers that it excluded.
    broken : the number of all people who broke it, including those excluded by an earlier rule.
    participants : the excluded participants.
    """

    rule: str
    limit: Message
    people: int
    rows: int
    broken: int
    participants: tuple[str, ...]


@dataclass(frozen=True, repr=False, kw_only=True)
class Responses:
    """The answers of a study.

    Parameters
    ----------
    kind : 'effort' (people compare pairs) or 'disagreement' (people agree with decisions or not).
    people : columns with one entry per person, from the schema or additional.
    answers : columns with one entry per answer; `person` is the index of its person.
    points : number of points of the similarity scale.
    excluded : the excluded people, by rule.
    notes : remarks on how the answers were read.
    backend : the data-frame library that `to_frame` uses.

    Examples
    --------
    >>> rows = {"participant": ["p1", "p1", "p2"], "item": ["1", "1", "1"], "subject": ["A", "B", "A"],
    ...         "trajectory": [1, 5, 2], "aggregate": [2, 2, 1], "overall": [1, 4, 2]}
    >>> responses = read_responses(rows)
    >>> responses
    <Responses: effort, 2 people, 3 answers>
    """

    kind: Kind
    people: Mapping[str, Values]
    answers: Mapping[str, Values]
    points: int = len(SCALE)
    excluded: tuple[ExclusionRecord, ...] = ()
    notes: tuple[Message, ...] = ()
    backend: str | None = field(default=None)

    @property
    def analysis(self) -> AuditDescriptor:
        """The descriptor of the analysis that `eh.audit` runs on these responses."""
        return study_analysis()

    @property
    def person(self) -> IntArray:
        """The person of each answer, as an index into `people`."""
        return np.asarray(self.answers["person"], dtype=np.int64)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions, sorted; one empty name if the study has no conditions."""
        return tuple(sorted({str(name or "") for name in self.people["condition"]}))

    def condition_of_rows(self) -> Values:
        """Return the condition of every answer."""
        return np.array([str(name or "") for name in self.people["condition"]], dtype=object)[self.person]

    def numbers(self, name: str) -> FloatArray:
        """Return a numeric column with one entry per answer; all nan if the study has no such column."""
        values = self.answers.get(name)
        return np.full(len(self.person), np.nan) if values is None else np.asarray(values, dtype=np.float64)

    def output(self) -> FloatArray:
        """Return the output distance of each pair: the absolute difference of the risk found fair from K's risk."""
        return np.abs(self.numbers("risk") - self.numbers("risk_reference"))

    def pairs(self) -> Values:
        """Return the condition, item and subject of each answer as one text."""
        subject = self.answers.get("subject")
        parts = [self.condition_of_rows(), self.answers["item"], *([] if subject is None else [subject])]
        return np.array(["/".join(str(part) for part in row) for row in zip(*parts, strict=True)], dtype=object)

    def keep(self, people: BoolArray, excluded: tuple[ExclusionRecord, ...] = ()) -> Responses:
        """Return the responses of the people selected by a mask."""
        rows = people[self.person]
        index = np.cumsum(people) - 1
        answers = {name: values[rows] for name, values in self.answers.items()}
        answers["person"] = index[self.person[rows]]
        kept = {name: values[people] for name, values in self.people.items()}
        return replace(self, people=kept, answers=answers, excluded=(*self.excluded, *excluded))

    def to_columns(self) -> dict[str, Values]:
        """Return the tidy table: a row per answer, and a row with an empty item for people without answers."""
        silent = np.setdiff1d(np.arange(len(self.people["participant"])), self.person)
        who = np.concatenate([self.person, silent])
        order = np.argsort(who, kind="stable")
        columns = {name: values[who][order] for name, values in self.people.items()}
        for name, values in self.answers.items():
            if name != "person":
                gap = np.full(len(silent), np.nan) if values.dtype.kind == "f" else np.full(len(silent), None)
                columns[name] = np.concatenate([values, gap])[order]
        known = [column.name for column in schema.columns_of(self.kind) if column.name in columns]
        return {name: columns[name] for name in [*known, *(name for name in columns if name not in known)]}

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the tidy table as a data frame."""
        columns = self.to_columns().items()
        masked = {name: np.ma.masked_invalid(v) if v.dtype.kind == "f" else v for name, v in columns}
        return build_frame(masked, backend or self.backend)

    def to_csv(self) -> str:
        """Return the tidy table as CSV, with an apostrophe before text that a spreadsheet would execute."""
        return write_csv(self.to_columns())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the tidy table to a CSV file."""
        return schema.save_text(path, self.to_csv())

    def __repr__(self) -> str:
        people, rows = len(self.people["participant"]), len(self.person)
        return f"<Responses: {self.kind}, {count(people, 'person', 'people')}, {count(rows, 'answer')}>"


def read_responses(data: object, kind: Kind | None = None, *, points: int = len(SCALE)) -> Responses:
    """Read responses exported by evenhand, or any table with the column names of the schema.

    Parameters
    ----------
    data : a data frame, a mapping of columns, or the path of a CSV, Parquet or JSON file.
    kind : 'effort' or 'disagreement'; by default inferred from the columns.
    points : number of points of the similarity scale.

    Examples
    --------
    >>> import evenhand as eh
    >>> feedback = {"participant": ["c1", "c1"], "item": ["7", "9"], "decision": ["high", "low"],
    ...             "answer": ["agree", "disagree"]}
    >>> eh.study.read_responses(feedback).kind
    'disagreement'
    """
    columns, backend = read_columns(data)
    if kind is None:
        kind = "disagreement" if {"decision", "answer"} <= columns.keys() else "effort"
    return build_responses(columns, kind, points=points, where="the responses", backend=backend)


def build_responses(
    columns: Mapping[str, list[Any] | Values],
    kind: Kind,
    *,
    points: int = len(SCALE),
    where: str,
    notes: tuple[Message, ...] = (),
    backend: str | None = None,
) -> Responses:
    """Check the columns of a tidy table and split them into people and answers in canonical order."""
    kind = schema.kind_of(kind)
    missing = [name for name in schema.REQUIRED[kind] if name not in columns]
    if missing:
        raise DataError(
            [
                problem(
                    "{where} has no column {name!r}; {hint}", where=where, name=name, hint=did_you_mean(name, columns)
                )
                for name in missing
            ]
        )
    typed = {name: _typed(name, values, points, where) for name, values in columns.items()}
    nobody = np.array([name is None for name in typed["participant"]])
    if nobody.any():
        raise DataError(
            "'participant' in {where} is empty in {rows}; every row needs one.",
            where=where,
            rows=count(int(nobody.sum()), "row"),
        )
    names, who = np.unique(typed["participant"].astype(str), return_inverse=True)
    personal = _personal(typed, who, len(names), where)
    people = {
        "participant": names.astype(object),
        "condition": np.full(len(names), None),
        **_first_of_each(typed, [name for name in personal if name != "participant"], who, len(names)),
    }
    order = _answer_order(typed, who)
    answers = {"person": who[order], **{name: v[order] for name, v in typed.items() if name not in personal}}
    responses = Responses(kind=kind, people=people, answers=answers, points=points, notes=notes, backend=backend)
    _check_answers(responses, where)
    return responses


def _first_of_each(
    columns: Mapping[str, Values], names: Sequence[str], who: IntArray, people: int
) -> dict[str, Values]:
    """Return the values of columns in each person's first row."""
    first = np.full(people, -1)
    first[who[::-1]] = np.arange(len(who))[::-1]
    return {name: columns[name][first] for name in names}


def _answer_order(columns: Mapping[str, Values], who: IntArray) -> IntArray:
    """Return the rows with an answer, sorted by person, item and subject."""
    rows = np.flatnonzero([item is not None for item in columns["item"]])
    keys = [columns[name][rows].astype(str) for name in ("subject", "item") if name in columns]
    return rows[np.lexsort([*keys, who[rows]])]


def _typed(name: str, values: list[Any] | Values, points: int, where: str) -> Values:
    if name in BY_NAME:
        return schema.as_column(BY_NAME[name], values, points, where)
    array = np.asarray(values)
    return array.astype(np.float64) if array.dtype.kind in "fiu" else as_text(values)


def _personal(columns: Mapping[str, Values], who: IntArray, people: int, where: str) -> list[str]:
    """Return the columns with one value per person; raise if a personal column of the schema varies within a person."""
    personal = []
    for name, values in columns.items():
        known: Column | None = BY_NAME.get(name)
        if known is not None and known.level == "answer":
            continue
        low, high = _extremes(values.astype(str)[np.newaxis], who, people)
        if (low == high).all():
            personal.append(name)
        elif known is not None:
            first = columns["participant"][int(np.flatnonzero((low != high)[who])[0])]
            raise DataError(
                "{name!r} in {where} differs between the rows of one person, first of {first!r}.",
                name=name,
                where=where,
                first=first,
            )
    return personal


def _check_answers(responses: Responses, where: str) -> None:
    keys = np.array([f"{who}/{pair}" for who, pair in zip(responses.person, responses.pairs(), strict=True)])
    distinct, times = np.unique(keys, return_counts=True) if keys.size else (keys, np.zeros(0, dtype=np.int64))
    if (times > 1).any():
        row = int(np.flatnonzero(keys == distinct[np.argmax(times > 1)])[0])
        who = responses.people["participant"][responses.person[row]]
        raise DataError(
            "{where} holds {answers} more than once, first {pairs!r} of {who!r}; keep one of them.",
            where=where,
            answers=count(int((times > 1).sum()), "answer"),
            pairs=responses.pairs()[row],
            who=who,
        )
    if responses.kind == "disagreement":
        wrong = sorted({str(word) for word in responses.answers["answer"] if word not in (None, *FEEDBACK)})
        if wrong:
            raise DataError(
                "'answer' in {where} must be one of {allowed}; got {given}.",
                where=where,
                allowed=tuple(FEEDBACK),
                given=shown(list(wrong), 3),
            )


def _none_for_false(value: object) -> object:
    """Accept false as None, which TOML lacks."""
    return None if value is False else value


class Exclusions(Settings):
    """The exclusion rules in the order of application; a person counts under the first rule they break.

    Examples
    --------
    >>> Exclusions().failed_checks
    2
    """

    unfinished: bool = Field(False, description="Leave out who did not reach the end.")
    failed_checks: Annotated[
        Annotated[int, Field(ge=1)] | None,
        BeforeValidator(_none_for_false, json_schema_input_type=Annotated[int, Field(ge=1)] | Literal[False] | None),
    ] = Field(2, description="Leave out people who failed this many attention checks or more; false keeps them.")
    incomplete: float | None = Field(
        None, gt=0, le=1, description="Leave out people who answered less than this share of their questions."
    )
    too_fast: float | None = Field(None, gt=0, description="Leave out who took fewer seconds than this.")
    same_answer: bool = Field(False, description="Leave out who gave one and the same answer throughout.")


def apply_exclusions(responses: Responses, rules: Exclusions | dict[str, Any] | None = None) -> Responses:
    """Exclude the people who break a rule, and record them with the rule.

    Examples
    --------
    >>> import evenhand as eh
    >>> rows = {"participant": ["p1", "p2"], "checks_passed": [3, 1], "checks_total": [3, 3], "item": ["1", "1"],
    ...         "subject": ["A", "A"], "trajectory": [1, 2], "aggregate": [2, 1], "overall": [1, 2]}
    >>> kept = eh.study.apply_exclusions(eh.study.read_responses(rows))
    >>> kept.excluded[0].rule, kept.excluded[0].participants
    ('failed_checks', ('p2',))
    """
    if not isinstance(rules, Exclusions):
        rules = Exclusions.parse(rules or {}, "[exclusions]")
    names = responses.people["participant"]
    rows = np.bincount(responses.person, minlength=len(names))
    left = np.ones(len(names), dtype=bool)
    records = []
    for rule, limit, broken in _broken(responses, rules):
        out = broken & left
        records.append(
            ExclusionRecord(
                rule=rule,
                limit=limit,
                people=int(out.sum()),
                rows=int(rows[out].sum()),
                broken=int(broken.sum()),
                participants=tuple(map(str, names[out])),
            )
        )
        left &= ~out
    return responses.keep(left, tuple(records))


def _broken(responses: Responses, rules: Exclusions) -> Iterator[tuple[str, Message, BoolArray]]:
    """Yield every active rule with its description and a mask of people who break it; missing values never do."""
    if rules.unfinished:
        yield "unfinished", say("unfinished"), _of_person(responses, "finished") == 0
    if rules.failed_checks is not None:
        failed = _of_person(responses, "checks_total") - _of_person(responses, "checks_passed")
        limit = say("failed_checks", checks=rules.failed_checks)
        yield "failed_checks", limit, failed >= rules.failed_checks
    if rules.incomplete is not None:
        limit = say("incomplete", percent=100 * rules.incomplete)
        yield "incomplete", limit, answered_share(responses) < rules.incomplete - 1e-12
    if rules.too_fast is not None:
        limit = say("too_fast", seconds=rules.too_fast)
        yield "too_fast", limit, _of_person(responses, "duration") < rules.too_fast
    if rules.same_answer:
        yield "same_answer", say("same_answer"), _same_answer(responses)


def answered_share(responses: Responses) -> FloatArray:
    """Return each person's number of complete answers, divided by the largest number asked in their condition."""
    who, people = responses.person, len(responses.people["participant"])
    whole = np.bincount(who, weights=_whole(responses).astype(np.float64), minlength=people)
    asked = np.bincount(who, minlength=people)
    condition = np.unique([str(name or "") for name in responses.people["condition"]], return_inverse=True)[1]
    most = np.zeros(condition.max(initial=0) + 1)
    np.maximum.at(most, condition, asked)
    with np.errstate(all="ignore"):
        return np.where(most[condition] > 0, whole / most[condition], 0.0)


def _whole(responses: Responses) -> BoolArray:
    """Return a mask of complete answers."""
    columns = [responses.answers[name] for name in CORE[responses.kind]]
    held = [~np.isnan(c) if c.dtype.kind == "f" else np.array([v is not None for v in c], dtype=bool) for c in columns]
    return np.asarray(np.logical_and.reduce(held))


def _same_answer(responses: Responses) -> BoolArray:
    """Return a mask of people who gave the same answer throughout, in at least four rows."""
    who, people = responses.person, len(responses.people["participant"])
    texts = np.stack([responses.answers[name].astype(str) for name in CORE[responses.kind]])
    low, high = _extremes(texts, who, people)
    return np.asarray((low == high) & (np.bincount(who, minlength=people) >= 4))


def _extremes(texts: Values, who: IntArray, people: int) -> tuple[IntArray, IntArray]:
    """Return each person's first and last text in sorted order, as codes; `texts` has a column per answer."""
    codes = np.unique(texts, return_inverse=True)[1].reshape(texts.shape)
    low, high = np.full(people, codes.max(initial=0)), np.zeros(people, dtype=np.int64)
    np.minimum.at(low, who, codes.min(axis=0))
    np.maximum.at(high, who, codes.max(axis=0))
    return low, high


def _of_person(responses: Responses, name: str) -> FloatArray:
    values = responses.people.get(name)
    people = len(responses.people["participant"])
    return np.full(people, np.nan) if values is None else np.asarray(values, dtype=np.float64)
