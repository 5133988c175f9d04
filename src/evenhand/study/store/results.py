"""The collected data of a study: answers as responses, and counts of people, pages and checks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import func, select

from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.study.responses import Responses, build_responses
from evenhand.study.schema import Values, columns_of
from evenhand.study.store import records
from evenhand.study.store.database import Database
from evenhand.study.store.records import CheckCounts, ConditionCounts, Counts, PageCounts, StudyRow, Times, TraitCounts
from evenhand.study.store.tables import ANSWERS, PARTICIPANTS, TRAITS

NUMBER = "a number"
"""The answer under which all numeric answers are counted together, because listing each number would be long."""
ACTIVE_SECONDS = 600.0
_P, _A, _T = PARTICIPANTS.c, ANSWERS.c, TRAITS.c
_STORED = {"item": 2, "subject": 3, "position": 4, "seconds": 5}
"""Positions of the answer columns stored as database columns; all others are in the answer's payload."""


@dataclass(frozen=True)
class Results:
    """The collected data of a study."""

    database: Database
    row: StudyRow

    def responses(self) -> Responses:
        """Return all answers in the tidy schema.

        People are identified by their codes. Practice, instructions and withdrawn people are left out; people without
        answers are kept. The duration runs from the consent to the end, or to the last answer,
        corrected for changes of the wall clock; if these are unknown, `duration_clock` is "wall".
        """
        here = (_P.study_id == self.row.id, _P.withdrawn_at.is_(None))
        who = select(_P.id, _P.code, _P.condition, _P.enrolled_at, _P.finished_at, _P.language, _P.drift).where(*here)
        what = (
            select(
                *(_A.participant_id, _A.kind, _A.item, _A.subject, _A.position, _A.seconds, _A.payload, _A.saved_at),
                _A.step,
            )
            .join_from(ANSWERS, PARTICIPANTS, _A.participant_id == _P.id)
            .where(*here)
        )
        about = (
            select(_T.participant_id, _T.name, _T.value)
            .join_from(TRAITS, PARTICIPANTS, _T.participant_id == _P.id)
            .where(*here)
            .order_by(_T.name)
        )
        with self.database.reading() as connection:
            people, answers = connection.execute(who.order_by(_P.id)).all(), connection.execute(what).all()
            told = connection.execute(about).all()
        return build_responses(
            _tidy_columns(self.row, people, answers, told),
            self.row.kind,
            points=self.row.points,
            where=f"the study {self.row.name!r}",
        )

    def saved_at(self) -> dict[tuple[str, str, str | None], float]:
        """Return the time when each answer was last saved, by participant, item and subject, in seconds since 1970."""
        asked = (
            select(_P.code, _A.item, _A.subject, _A.saved_at)
            .join_from(ANSWERS, PARTICIPANTS, _A.participant_id == _P.id)
            .where(_P.study_id == self.row.id, _P.withdrawn_at.is_(None), _A.item.is_not(None))
        )
        with self.database.reading() as connection:
            return {(row[0], row[1], row[2]): row[3] for row in connection.execute(asked)}

    def counts(self, *, now: datetime | None = None) -> Counts:
        """Return the current counts of people and answers, all from one state of the database."""
        moment = records.seconds_of(now)
        cutoff = moment - self.row.abandon_after, moment - records.SILENT_SECONDS
        in_study = _P.study_id == self.row.id
        who = select(_P.condition, _P.reached, _P.seen_at, _P.finished_at, _P.withdrawn_at).where(in_study)
        what = (
            select(_A.step_index, _A.kind, _A.seconds, _A.saved_at)
            .join_from(ANSWERS, PARTICIPANTS, _A.participant_id == _P.id)
            .where(in_study, _P.withdrawn_at.is_(None))
        )
        checks = what.with_only_columns(_A.check_number, _A.payload).where(_A.kind == "check")
        about = who.add_columns(_T.name, _T.value).join(TRAITS, _T.participant_id == _P.id).order_by(_T.name, _T.value)
        with self.database.reading() as connection:
            people = [Standing(*row) for row in connection.execute(who)]
            answers = connection.execute(what).all()
            judged = connection.execute(checks).all()
            told = [(row[-2], row[-1], Standing(*row[:-2]).state(cutoff)) for row in connection.execute(about)]
        seconds = np.array([row[2] for row in answers], dtype=np.float64)
        return Counts(
            conditions=_by_condition([*self.row.conditions], people, moment - ACTIVE_SECONDS, cutoff),
            pages=_by_page(people, [row[0] for row in answers], seconds, cutoff),
            checks=_by_check(judged),
            traits=_by_trait(self.row, told),
            answers=sum(row[1] in ("pair", "case") for row in answers),
            last_answer=records.moment_of(max(row[3] for row in answers)) if answers else None,
        )

    def version(self) -> tuple[float, ...]:
        """Return numbers that change whenever `responses` may change; only for comparison.

        They are the number of answers, the time of the last save, the number of writes, and the numbers of people
        who enrolled, finished and withdrew.
        """
        in_study = _P.study_id == self.row.id
        written = (
            select(func.count(), func.coalesce(func.max(_A.saved_at), 0.0), func.coalesce(func.sum(_A.revision), 0))
            .join_from(ANSWERS, PARTICIPANTS, _A.participant_id == _P.id)
            .where(in_study)
        )
        people = select(func.count(), func.count(_P.finished_at), func.count(_P.withdrawn_at)).where(in_study)
        with self.database.reading() as connection:
            return tuple(map(float, (*connection.execute(written).one(), *connection.execute(people).one())))


def _tidy_columns(
    study: StudyRow, people: Sequence[Any], answers: Sequence[Any], told: Sequence[Any]
) -> dict[str, Any]:
    """Return the tidy table: one row per answer, and a row without item for people without answers."""
    indices = {row[0]: index for index, row in enumerate(people)}
    who = np.array([indices[row[0]] for row in answers], dtype=np.int64)
    payloads = json.loads(f"[{','.join(row[6] for row in answers)}]")
    asked = [number for number, row in enumerate(answers) if row[1] in ("pair", "case")]
    silent = np.setdiff1d(np.arange(len(people)), who[asked])
    whose, gap = np.concatenate([who[asked], silent]), [None] * len(silent)
    personal = _personal_columns(people, who, answers) | _check_columns(len(people), who, answers, payloads)
    personal |= _about_columns(study, indices, told)
    columns: dict[str, Any] = {name: values[whose].tolist() for name, values in personal.items()}
    for name in (column.name for column in columns_of(study.kind) if column.name not in columns):
        # All other columns are in the payload.
        position = _STORED.get(name)
        columns[name] = [payloads[n].get(name) if position is None else answers[n][position] for n in asked] + gap
    return columns


def _personal_columns(people: Sequence[Any], who: IntArray, answers: Sequence[Any]) -> dict[str, Values]:
    columns = {
        "participant": _field(people, 1),
        "condition": _field(people, 2),
        "language": _field(people, 5),
        "started": np.array([records.moment_of(row[3]).strftime("%Y-%m-%d %H:%M") for row in people], dtype=object),
        "duration": _durations(people, who, np.array([row[7] for row in answers], dtype=np.float64)),
        "finished": np.array([float(row[4] is not None) for row in people]),
    }
    unsure = np.array([row[6] is None for row in people], dtype=bool) & np.isfinite(columns["duration"])
    marks: Values = np.full(len(people), None, dtype=object)
    marks[unsure] = "wall"
    return {**columns, "duration_clock": marks} if unsure.any() else columns


def _about_columns(study: StudyRow, indices: Mapping[int, int], told: Sequence[Any]) -> dict[str, Values]:
    """Return people's answers about themselves, one column per question; None if not asked."""
    names = dict.fromkeys((*study.about, *(name for _, name, _ in told)))
    columns: dict[str, Values] = {name: np.full(len(indices), None, dtype=object) for name in names}
    for person, name, value in told:
        columns[name][indices[person]] = value
    return columns


def _check_columns(people: int, who: IntArray, answers: Sequence[Any], payloads: Sequence[Any]) -> dict[str, Values]:
    """Return each person's numbers of passed and shown attention checks, and the result of each check."""
    checks = np.array([row[1] == "check" for row in answers], dtype=bool)
    passed: BoolArray = np.array([bool(payload.get("passed")) for payload in payloads], dtype=bool)
    columns: dict[str, Values] = {
        "checks_passed": np.bincount(who[checks & passed], minlength=people).astype(np.float64),
        "checks_total": np.bincount(who[checks], minlength=people).astype(np.float64),
    }
    steps = _field(answers, 8)
    for key in sorted(set(steps[checks])):
        answered = steps == key
        marks: Values = np.full(people, None, dtype=object)
        marks[who[answered]] = np.where(passed[answered], "passed", "failed")
        columns[key.replace(":", "_")] = marks
    return columns


def _field(rows: Sequence[Any], position: int) -> Values:
    return np.array([row[position] for row in rows], dtype=object)


def _durations(people: Sequence[Any], who: IntArray, saved_at: FloatArray) -> FloatArray:
    """Return the seconds from the consent to the end, or else to the last answer; nan if neither exists.

    Changes of the wall clock are subtracted. If they are unknown, a negative duration also becomes nan.
    """
    last = np.full(len(people), -np.inf)
    np.maximum.at(last, who, saved_at)
    end = np.array([np.nan if row[4] is None else row[4] for row in people], dtype=np.float64)
    end = np.where(np.isnan(end), np.where(np.isfinite(last), last, np.nan), end)
    start = np.array([row[3] + (row[6] or 0.0) for row in people], dtype=np.float64)
    taken: FloatArray = np.round(end - start, 3)
    return np.where(taken < 0, np.nan, taken)


@dataclass(frozen=True, slots=True)
class Standing:
    """A person's progress and last activity."""

    condition: str
    reached: int
    seen_at: float
    finished_at: float | None
    withdrawn_at: float | None

    def state(self, cutoff: tuple[float, float]) -> str:
        """Return the person's state as enrolment counts it; people without answers are abandoned sooner."""
        if self.withdrawn_at is not None:
            return "withdrawn"
        if self.finished_at is not None:
            return "finished"
        return "active" if self.seen_at >= (cutoff[0] if self.reached else max(cutoff)) else "abandoned"


def _by_condition(
    conditions: list[str], people: Sequence[Standing], lately: float, cutoff: tuple[float, float]
) -> tuple[ConditionCounts, ...]:
    states: dict[str, list[str]] = {name: [] for name in conditions}
    for person in people:
        state = person.state(cutoff)
        away = state == "active" and person.seen_at < lately
        states.setdefault(person.condition, []).append("away" if away else state)
    counted = ("active", "away", "abandoned", "finished", "withdrawn")
    return tuple(
        ConditionCounts(condition=name, enrolled=len(listed), **{state: listed.count(state) for state in counted})
        for name, listed in states.items()
    )


def _by_page(
    people: Sequence[Standing], indices: list[int], seconds: FloatArray, cutoff: tuple[float, float]
) -> tuple[PageCounts, ...]:
    standing: dict[str, list[int]] = {"active": [], "abandoned": []}
    for person in people:
        standing.setdefault(person.state(cutoff), []).append(person.reached)
    pages = 1 + max([-1, *indices, *standing["active"], *standing["abandoned"]])
    waiting, dropped = (
        np.bincount(np.array(standing[name], dtype=np.int64), minlength=pages) for name in ("active", "abandoned")
    )
    times = _times(indices, seconds)
    return tuple(PageCounts(page, int(waiting[page]), int(dropped[page]), times.get(page)) for page in range(pages))


def _times(pages: list[int], seconds: FloatArray) -> dict[int, Times]:
    """Return the linearly interpolated quartiles of the known times of answers, by page."""
    known = np.isfinite(seconds)
    if not known.any():
        return {}
    names, codes = np.unique(np.array(pages)[known], return_inverse=True)
    order = np.argsort(codes, kind="stable")
    groups = np.split(seconds[known][order], np.cumsum(np.bincount(codes))[:-1])
    return {
        name: Times(len(group), *np.quantile(group, [0.25, 0.5, 0.75]).tolist())
        for name, group in zip(names.tolist(), groups, strict=True)
    }


def _by_check(judged: Sequence[Any]) -> tuple[CheckCounts, ...]:
    passed: dict[int, list[bool]] = {}
    for number, payload in judged:
        passed.setdefault(number, []).append(bool(json.loads(payload).get("passed")))
    return tuple(
        CheckCounts(number, sum(results), len(results) - sum(results)) for number, results in sorted(passed.items())
    )


def _by_trait(study: StudyRow, told: Sequence[tuple[str, str, str]]) -> tuple[TraitCounts, ...]:
    """Return the numbers of people by answer about themselves, including every answer with a quota."""
    counts: dict[tuple[str, str], list[str]] = {
        (name, value): [] for name, most in study.quotas.items() for value in most
    }
    for name, value, state in told:
        value = NUMBER if name in study.numbers and value.isdigit() else value
        counts.setdefault((name, value), []).append(state)
    order = {name: place for place, name in enumerate(study.about)}
    return tuple(
        TraitCounts(
            name,
            value,
            taking_part=states.count("active") + states.count("finished"),
            finished=states.count("finished"),
            most=study.quotas.get(name, {}).get(value),
        )
        for (name, value), states in sorted(counts.items(), key=lambda one: order.get(one[0][0], len(order)))
    )
