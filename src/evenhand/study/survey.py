"""Read answers from other survey tools: a CSV export, long or wide, with a map of its columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from evenhand.errors import ConfigError, DataError, SettingError, did_you_mean, problem
from evenhand.messages import Message
from evenhand.settings import Settings
from evenhand.stats.types import IntArray
from evenhand.study.messages import say
from evenhand.study.responses import Responses, build_responses
from evenhand.study.schema import BY_NAME, FACTORS, FEEDBACK, SCALE, Kind, Values, as_text, read_columns, require_known

_COORDINATES = ("condition", "item", "subject")
_Columns = Mapping[str, list[Any]]


class SurveyMap(Settings):
    """A map from the columns of an export to the tidy schema.

    Names of our schema on the left, columns of the export on the right. In a wide export, with one row per person,
    column names contain the judged item: write ``{item}``, ``{subject}`` and ``{condition}`` in its place, as in
    ``"S{item}_{subject}_trajectory"``.

    Examples
    --------
    >>> SurveyMap(columns={"participant": "ResponseId", "overall": "S{item}_{subject}_all"}).wide
    True
    """

    columns: dict[str, str] = Field(description="Columns of the export by their names in our schema.")
    scale: tuple[str, ...] = Field(SCALE, min_length=2, description="Words of the scale, most similar first.")
    percent: tuple[str, ...] = Field((), description="Columns of our schema that the export holds as percentages.")
    factors: dict[str, str] = Field(
        {}, description="What the ticked factors are called where one column, `factors`, lists them."
    )
    answers: dict[str, str] = Field({}, description="The export's words for agree, disagree, too_high, too_low.")
    conditions: dict[str, str] = Field({}, description="The export's words for the conditions, and ours.")
    checks: dict[str, str] = Field({}, description="Columns of attention checks, and the right answer to each.")
    people: dict[str, str] = Field({}, description="Columns of a second file with one row a person (Prolific).")

    @model_validator(mode="after")
    def _known(self) -> Self:
        if "participant" not in self.columns:
            raise SettingError("`columns` must say which column is the participant's id")
        shares = [column.name for column in BY_NAME.values() if column.type == "share"]
        require_known(self.percent, shares, "`percent` got {name}")
        require_known(self.factors, FACTORS, "`factors` got {name}")
        require_known(self.answers.values(), FEEDBACK, "`answers` got {name}")
        return self

    @property
    def wide(self) -> bool:
        """Whether the export has one row per person."""
        return any(_placeholders(pattern) for pattern in self.columns.values())


def read_survey(
    data: object, kind: Kind, columns: SurveyMap | Mapping[str, Any], *, people: object = None
) -> Responses:
    """Read the export of another survey tool, such as Qualtrics, by a map of its columns.

    Parameters
    ----------
    data : the export: a CSV file (the two extra header lines of Qualtrics are dropped), a data frame or a mapping.
    kind : 'effort' or 'disagreement'.
    columns : a `SurveyMap`, or its settings as a mapping.
    people : a second table with one row per person, such as the demographic export of Prolific; columns as in
        `columns["people"]`.

    Examples
    --------
    >>> import evenhand as eh
    >>> export = {"ResponseId": ["R1"], "S1_A_t": ["Similar"], "S1_A_a": ["Different"], "S1_A_o": ["Similar"]}
    >>> responses = eh.study.read_survey(export, "effort", {"columns": {"participant": "ResponseId",
    ...     "trajectory": "S{item}_{subject}_t", "aggregate": "S{item}_{subject}_a", "overall": "S{item}_{subject}_o"}})
    >>> responses.answers["aggregate"]
    array([5.])
    """
    settings = columns if isinstance(columns, SurveyMap) else SurveyMap.parse(columns, "the column map")
    given, backend = read_columns(data)
    table, notes = _without_header_lines(given)
    _require_columns(table, settings)
    tidy = _melted(table, settings) if settings.wide else {n: list(table[c]) for n, c in settings.columns.items()}
    _add_checks(tidy, table, settings)
    notes += _join_people(tidy, people, settings)
    _translate(tidy, settings)
    return build_responses(
        tidy, kind, points=len(settings.scale), where="the export", notes=tuple(notes), backend=backend
    )


def _without_header_lines(table: _Columns) -> tuple[dict[str, list[Any]], list[Message]]:
    """Drop the lines that Qualtrics writes between header and answers: question texts and import ids."""
    rows = len(next(iter(table.values()), []))
    for line in range(min(rows, 3)):
        if any(isinstance(values[line], str) and '"ImportId"' in values[line] for values in table.values()):
            dropped = line + 1
            return {name: list(values[dropped:]) for name, values in table.items()}, [say("header_lines", n=dropped)]
    return {name: list(values) for name, values in table.items()}, []


def _require_columns(table: _Columns, settings: SurveyMap) -> None:
    problems = []
    plain = [pattern for pattern in settings.columns.values() if not _placeholders(pattern)]
    for column in [*plain, *settings.checks]:
        if column not in table:
            hint = did_you_mean(column, table)
            problems.append(problem("the export has no column {column!r}; {hint}", column=column, hint=hint))
    for name, pattern in settings.columns.items():
        if _placeholders(pattern) and not any(_regex(pattern).fullmatch(column) for column in table):
            sentence = "no column of the export fits {pattern!r}, which was given for {name!r}."
            problems.append(problem(sentence, pattern=pattern, name=name))
    if problems:
        raise DataError(problems)


def _placeholders(pattern: str) -> tuple[str, ...]:
    return tuple(name for name in _COORDINATES if "{" + name + "}" in pattern)


def _regex(pattern: str) -> re.Pattern[str]:
    text = re.escape(pattern)
    for name in _COORDINATES:
        text = text.replace(re.escape("{" + name + "}"), f"(?P<{name}>[A-Za-z0-9.-]+)", 1)
    return re.compile(text)


def _melted(table: _Columns, settings: SurveyMap) -> dict[str, list[Any]]:
    """Convert one row per person into one row per answer; people without answers keep one row without an item."""
    patterned = [name for name, pattern in settings.columns.items() if _placeholders(pattern)]
    personal = {name: table[column] for name, column in settings.columns.items() if name not in patterned}
    return _stacked(_judged(table, settings), patterned, personal, len(next(iter(table.values()))))


def _judged(table: _Columns, settings: SurveyMap) -> dict[tuple[str, ...], dict[str, list[Any]]]:
    """Return the columns of each judged item, by condition, item and subject."""
    judged: dict[tuple[str, ...], dict[str, list[Any]]] = {}
    partial: list[tuple[str, dict[str, str], list[Any]]] = []
    most = max((len(_placeholders(pattern)) for pattern in settings.columns.values()), default=0)
    for name, coordinates, values in _matches(table, settings):
        if len(coordinates) < most:
            partial.append((name, coordinates, values))
        else:
            judged.setdefault(tuple(coordinates.get(part, "") for part in _COORDINATES), {})[name] = values
    for name, coordinates, values in partial:  # columns of a whole set, such as the score of K
        for key, columns in judged.items():
            if coordinates.items() <= dict(zip(_COORDINATES, key, strict=True)).items():
                columns[name] = values
    return judged


def _matches(table: _Columns, settings: SurveyMap) -> Iterator[tuple[str, dict[str, str], list[Any]]]:
    for name, pattern in settings.columns.items():
        if _placeholders(pattern):
            expression = _regex(pattern)
            for column, values in table.items():
                match = expression.fullmatch(column)
                if match:
                    yield name, match.groupdict(), values


def _stacked(
    judged: Mapping[tuple[str, ...], _Columns], patterned: list[str], personal: _Columns, rows: int
) -> dict[str, list[Any]]:
    """Return the columns of all judged items stacked, and a row for each person who judged nothing."""
    silent = np.ones(rows, dtype=bool)
    blocks: list[dict[str, list[Any]]] = []
    for key, columns in judged.items():
        texts = {name: as_text(columns.get(name, [None] * rows)) for name in patterned}
        here = np.flatnonzero(np.logical_or.reduce(list(texts.values())).astype(bool))
        silent[here] = False
        coordinates = {name: [word or None] * len(here) for name, word in zip(_COORDINATES, key, strict=True)}
        blocks.append(coordinates | _rows_of(texts, here) | _rows_of(personal, here))
    nothing = {name: [None] * rows for name in (*patterned, *_COORDINATES)}
    blocks.append(_rows_of(nothing | dict(personal), np.flatnonzero(silent)))
    tidy = {name: [value for block in blocks for value in block[name]] for name in blocks[-1]}
    return {name: values for name, values in tidy.items() if name not in _COORDINATES or set(values) - {None}}


def _rows_of(columns: Mapping[str, Sequence[Any] | Values], rows: IntArray) -> dict[str, list[Any]]:
    return {name: [values[row] for row in rows] for name, values in columns.items()}


def _add_checks(tidy: dict[str, list[Any]], table: _Columns, settings: SurveyMap) -> None:
    """Add the numbers of attention checks that each person passed and saw."""
    if not settings.checks:
        return
    names = as_text(table[settings.columns["participant"]])
    passed, seen = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for column, right in settings.checks.items():
        given: dict[Any, Any] = {}
        for who, word in zip(names, as_text(table[column]), strict=True):
            given[who] = word if word is not None else given.get(who)
        for who, word in given.items():
            seen[who] += 1
            passed[who] += word is not None and word.casefold() == right.strip().casefold()
    people = as_text(tidy["participant"])
    tidy["checks_passed"] = [passed.get(who) for who in people]
    tidy["checks_total"] = [seen.get(who) for who in people]


def _join_people(tidy: dict[str, list[Any]], people: object, settings: SurveyMap) -> list[Message]:
    """Add the columns of a second table with one row per person; return notes on unmatched people."""
    if people is None:
        return []
    if "participant" not in settings.people:
        raise ConfigError("a second table of people needs `people` in the column map, with its own `participant`.")
    table, _ = read_columns(people)
    require_known(settings.people.values(), table, "the table of people has no column {name}", DataError)
    row_of = _row_of_each(as_text(table[settings.people["participant"]]))
    participants = as_text(tidy["participant"])
    for name, column in settings.people.items():
        if name != "participant":
            tidy[name] = [table[column][row_of[who]] if who in row_of else None for who in participants]
    notes = {
        "gave_no_answers": len(row_of.keys() - set(participants)),
        "not_in_second_table": len(set(participants) - row_of.keys()),
    }
    return [say(key, n=people) for key, people in notes.items() if people]


def _row_of_each(participants: Values) -> dict[str, int]:
    row_of = {who: row for row, who in enumerate(participants) if who is not None}
    if len(row_of) < sum(who is not None for who in participants):
        raise DataError("the table of people names a participant more than once; keep one row each.")
    return row_of


def _translate(tidy: dict[str, list[Any]], settings: SurveyMap) -> None:
    """Replace the export's words by the schema's, in place."""
    scale = {word: str(point) for point, word in enumerate(settings.scale, 1)}
    replacements = {column.name: scale for column in BY_NAME.values() if column.type == "scale"}
    replacements |= {"answer": settings.answers, "condition": settings.conditions}
    for name in tidy.keys() & replacements.keys():
        if replacements[name]:
            tidy[name] = _replaced(tidy[name], replacements[name])
    for name in tidy.keys() & set(settings.percent):
        tidy[name] = [_share(word) for word in as_text(tidy[name])]
    if "factors" in tidy:
        ticked = as_text(tidy.pop("factors"))
        for factor, word in settings.factors.items():
            tidy[f"factor_{factor}"] = [None if text is None else word.casefold() in text.casefold() for text in ticked]


def _replaced(values: list[Any], words: Mapping[str, str]) -> list[Any]:
    """Return values with each known word replaced by ours, ignoring case."""
    ours = {word.casefold(): replacement for word, replacement in words.items()}
    return [None if word is None else ours.get(word.casefold(), word) for word in as_text(values)]


def _share(word: str | None) -> Any:
    if word is None:
        return None
    try:
        return float(word.removesuffix("%")) / 100
    except ValueError:
        return word
