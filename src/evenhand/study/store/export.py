"""Export: the answers of a study in the tidy schema, as `Responses`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import select

from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.study.responses import Responses, build_responses
from evenhand.study.schema import Values, columns_of
from evenhand.study.store.room import Room, moment_of
from evenhand.study.store.tables import ANSWERS, PARTICIPANTS

_P, _A = PARTICIPANTS.c, ANSWERS.c
_OWN = ("item", "subject", "position", "seconds")
"""Columns that the store knows by itself; all others of an answer are in its payload."""


class Export(Room):
    """The answers of a study, for analysis."""

    def responses(self) -> Responses:
        """Return everything that people answered, in the tidy schema.

        People are called by their codes. Practice and instructions are left out, and so are people who withdrew; who
        answered nothing is kept without answers. The duration runs from the consent to the end, or to the last answer.
        """
        here = (_P.study_id == self._id, _P.withdrawn_at.is_(None))
        who = (
            select(_P.id, _P.code, _P.condition, _P.enrolled_at, _P.finished_at, _P.language)
            .where(*here)
            .order_by(_P.id)
        )
        what = (
            select(
                _A.participant_id,
                _A.kind,
                _A.item,
                _A.subject,
                _A.position,
                _A.seconds,
                _A.payload,
                _A.saved_at,
                _A.step,
            )
            .join_from(ANSWERS, PARTICIPANTS, _A.participant_id == _P.id)
            .where(*here)
        )
        with self._database.reading(snapshot=True) as connection:
            people, answers = connection.execute(who).all(), connection.execute(what).all()
        return build_responses(
            self._columns(people, answers),
            self._row.kind,
            points=self._row.points,
            where=f"the study {self._row.name!r}",
        )

    def saved_at(self) -> dict[tuple[str, str, str | None], float]:
        """Return when each answer was saved last, in seconds since 1970, by participant, item and subject."""
        asked = (
            select(_P.code, _A.item, _A.subject, _A.saved_at)
            .join_from(ANSWERS, PARTICIPANTS, _A.participant_id == _P.id)
            .where(_P.study_id == self._id, _P.withdrawn_at.is_(None), _A.item.is_not(None))
        )
        with self._database.reading() as connection:
            return {(row[0], row[1], row[2]): row[3] for row in connection.execute(asked)}

    def _columns(self, people: Sequence[Any], answers: Sequence[Any]) -> dict[str, Any]:
        """Return the tidy table: a row for each answer, and one without an item for who gave none."""
        numbers = {row[0]: at for at, row in enumerate(people)}
        who = np.array([numbers[row[0]] for row in answers], dtype=np.int64)
        kinds = np.array([row[1] for row in answers], dtype=object)
        payloads = json.loads(f"[{','.join(row[6] for row in answers)}]")
        checks = kinds == "check"
        passed = np.array([bool(payload.get("passed")) for payload in payloads], dtype=bool)
        rows = np.flatnonzero((kinds == "pair") | (kinds == "case"))
        silent = np.setdiff1d(np.arange(len(people)), who[rows])
        personal = {
            "participant": _of(people, 1),
            "condition": _of(people, 2),
            "language": _of(people, 5),
            "started": np.array([moment_of(row[3]).strftime("%Y-%m-%d %H:%M") for row in people], dtype=object),
            "duration": _durations(people, who, np.array([row[7] for row in answers], dtype=np.float64)),
            "finished": np.array([float(row[4] is not None) for row in people]),
            "checks_passed": np.bincount(who[checks & passed], minlength=len(people)).astype(np.float64),
            "checks_total": np.bincount(who[checks], minlength=len(people)).astype(np.float64),
        }
        steps = np.array([row[8] for row in answers], dtype=object)
        for key in sorted(set(steps[checks])):
            seen = steps == key
            personal[key.replace(":", "_")] = _marked(len(people), who[seen], passed[seen])
        whose = np.concatenate([who[rows], silent])
        columns: dict[str, Any] = {name: values[whose].tolist() for name, values in personal.items()}
        listed, gap = rows.tolist(), [None] * len(silent)
        for at, name in enumerate(_OWN, 2):
            if name != "subject" or self._row.kind == "effort":
                columns[name] = [answers[row][at] for row in listed] + gap
        for column in columns_of(self._row.kind):
            if column.name not in columns:
                columns[column.name] = [payloads[row].get(column.name) for row in listed] + gap
        return columns


def _marked(people: int, who: IntArray, passed: BoolArray) -> Values:
    """Return for everybody whether they passed a check, in words; None for who has not answered it."""
    marks: Values = np.full(people, None, dtype=object)
    marks[who] = np.where(passed, "passed", "failed")
    return marks


def _of(people: Sequence[Any], place: int) -> Any:
    return np.array([row[place] for row in people], dtype=object)


def _durations(people: Sequence[Any], who: IntArray, saved_at: FloatArray) -> FloatArray:
    """Return seconds from the consent to the end, else to the last answer; nan where there is neither.

    They are at least 0: the clocks of two servers, or one that was set back, may say that an answer came before.
    """
    last = np.full(len(people), -np.inf)
    np.maximum.at(last, who, saved_at)
    end = np.array([np.nan if row[4] is None else row[4] for row in people], dtype=np.float64)
    end = np.where(np.isnan(end), np.where(np.isfinite(last), last, np.nan), end)
    taken: FloatArray = np.round(end - np.array([row[3] for row in people], dtype=np.float64), 3)
    return np.where(taken < 0, 0.0, taken)
