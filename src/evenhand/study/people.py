"""Check recruited people against a study's filters, using the recruiter's export."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from evenhand.errors import DataError, did_you_mean
from evenhand.study.schema import as_text, read_columns, require_known
from evenhand.study.settings import Filter, Recruitment

UNTOLD = ("data_expired", "consent_revoked", "rather not say", "prefer not to say", "not applicable / rather not say")
"""Prolific's values for unknown, in lower case; an empty cell also means unknown."""
_SEVERAL = re.compile(r"[,;|]")


@dataclass(frozen=True, kw_only=True)
class RecruitRecord:
    """Whether one person passes one filter: 'meets', 'breaks', or 'unknown' if the export has no value."""

    recruitment_id: str
    participant: str
    column: str
    asked: str
    value: str | None
    status: str


@dataclass(frozen=True, kw_only=True)
class RecruitCheck:
    """The comparison of a recruiter's export with the people of a study.

    Parameters
    ----------
    records : a record for each person in both and each filter that can be checked.
    unmatched : ids of people in the study that are missing from the export.
    absent : ids in the export that are not in the study.
    repeated : ids with several rows of different values in the export; all their rows are checked.
    unchecked : filters whose column is missing from the export, each with the nearest name.
    without_id : participants without an id, or with an erased id.
    """

    records: tuple[RecruitRecord, ...]
    unmatched: tuple[str, ...]
    absent: tuple[str, ...]
    repeated: tuple[str, ...]
    unchecked: tuple[str, ...]
    without_id: tuple[str, ...]

    def people(self, status: str) -> tuple[str, ...]:
        """Return the ids of people with the given status over all filters; 'breaks' outranks 'unknown'."""
        order = ("meets", "unknown", "breaks")
        worst: dict[str, int] = {}
        for record in self.records:
            worst[record.recruitment_id] = max(worst.get(record.recruitment_id, 0), order.index(record.status))
        return tuple(one for one, rank in worst.items() if order[rank] == status)


def check_recruits(
    export: object, people: Iterable[tuple[str | None, str]], recruitment: Recruitment | Mapping[str, Any]
) -> RecruitCheck:
    """Check the recruiter's export, such as Prolific's CSV, against the filters that a study declares.

    Parameters
    ----------
    export : a file, a data frame or a mapping of columns, with one row per person or submission.
    people : recruitment id (or None) and participant's code of everyone in the study.
    recruitment : [recruitment] of the study: its `filters`, and `export_id`, the column of the ids.

    Examples
    --------
    >>> import evenhand as eh
    >>> export = {"Participant id": ["5f1", "5f2"], "Age": ["34", "17"], "Fluent languages": ["English, Thai", "Thai"]}
    >>> filters = [{"column": "Age", "least": 18}, {"column": "Fluent languages", "values": ["English"]}]
    >>> found = eh.study.check_recruits(export, [("5f1", "pa"), ("5f2", "pb"), ("5f3", "pc")], {"filters": filters})
    >>> found.people("meets"), found.people("breaks"), found.unmatched
    (('5f1',), ('5f2',), ('5f3',))
    """
    asked = recruitment if isinstance(recruitment, Recruitment) else Recruitment.parse(recruitment, "[recruitment]")
    columns, _ = read_columns(export)
    require_known([asked.export_id], columns, "the recruiter's export has no column {name} with the ids", DataError)
    checked = [rule for rule in asked.filters if rule.column in columns]
    told = _told_of_each(columns[asked.export_id], {rule.column: columns[rule.column] for rule in checked})
    everybody = list(people)
    known = {one: code for one, code in everybody if one is not None}
    both = sorted(known.keys() & told.keys())
    return RecruitCheck(
        records=tuple(_record(one, known[one], rule, told[one][rule.column]) for one in both for rule in checked),
        unmatched=tuple(sorted(known.keys() - told.keys())),
        absent=tuple(sorted(told.keys() - known.keys())),
        repeated=tuple(sorted(_repeated(told))),
        unchecked=tuple(_unchecked(asked.filters, columns)),
        without_id=tuple(sorted(code for one, code in everybody if one is None)),
    )


_Told: TypeAlias = dict[str, dict[str, list[str | None]]]
"""The values of an export by id and column, one value per row of the person."""


def _told_of_each(ids: Sequence[Any], columns: Mapping[str, Any]) -> _Told:
    cells = {name: as_text(column) for name, column in columns.items()}
    told: _Told = {}
    for row, one in enumerate(as_text(ids)):
        if one is not None:
            values = told.setdefault(one, {name: [] for name in cells})
            for name, column in cells.items():
                values[name].append(column[row])
    return told


def _repeated(told: _Told) -> Iterator[str]:
    """Yield the ids of people with several rows that differ."""
    for one, columns in told.items():
        if any(len(set(values)) > 1 for values in columns.values()):
            yield one


def _unchecked(filters: Iterable[Filter], columns: Collection[str]) -> Iterator[str]:
    """Yield messages on filters whose column is missing from the export, each with the nearest name."""
    for rule in filters:
        if rule.column not in columns:
            yield f"the export has no column {rule.column!r}; {did_you_mean(rule.column, columns)}"


def _record(one: str, participant: str, rule: Filter, values: Sequence[str | None]) -> RecruitRecord:
    """Return whether a person passes a filter; of several rows, the worst counts."""
    states = [(_status(rule, value), value) for value in values]
    status, value = max(states, key=lambda state: ("meets", "unknown", "breaks").index(state[0]))
    return RecruitRecord(
        recruitment_id=one, participant=participant, column=rule.column, asked=rule.in_words, value=value, status=status
    )


def _status(rule: Filter, value: str | None) -> str:
    if value is None or value.casefold() in UNTOLD:
        return "unknown"
    if rule.values:
        said = {part.strip().casefold() for part in (value, *_SEVERAL.split(value))}
        return "meets" if said & {wanted.casefold() for wanted in rule.values} else "breaks"
    try:
        number = float(value.removesuffix("%"))
    except ValueError:
        return "unknown"
    if math.isnan(number):
        return "unknown"
    low = -math.inf if rule.least is None else rule.least
    high = math.inf if rule.most is None else rule.most
    return "meets" if low <= number <= high else "breaks"
