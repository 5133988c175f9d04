"""Counts of a study for the dashboard."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import func, select

from evenhand.study.store.records import CheckCounts, ConditionCounts, Counts, PageCounts, Times
from evenhand.study.store.room import SILENT_SECONDS, Room, moment_of, seconds_of
from evenhand.study.store.tables import ANSWERS, PARTICIPANTS

_P, _A = PARTICIPANTS.c, ANSWERS.c
ACTIVE_SECONDS = 600.0


class Numbers(Room):
    """The numbers of a study."""

    def counts(self, *, now: datetime | None = None) -> Counts:
        """Return the counts of people and answers at this moment, all of one state of the database."""
        moment = seconds_of(now)
        cutoff = moment - self._row.abandon_after, moment - SILENT_SECONDS
        who = select(_P.condition, _P.reached, _P.seen_at, _P.finished_at, _P.withdrawn_at).where(
            _P.study_id == self._id
        )
        here = (_P.study_id == self._id, _P.withdrawn_at.is_(None))
        what = (
            select(_A.step, _A.step_index, _A.kind, _A.seconds, _A.saved_at)
            .join_from(ANSWERS, PARTICIPANTS, _A.participant_id == _P.id)
            .where(*here)
        )
        checks = (
            select(_A.check_number, _A.payload)
            .join_from(ANSWERS, PARTICIPANTS, _A.participant_id == _P.id)
            .where(*here, _A.kind == "check")
        )
        with self._database.reading(snapshot=True) as connection:
            people = connection.execute(who).all()
            answers = connection.execute(what).all()
            judged = connection.execute(checks).all()
        seconds = np.array([row[3] for row in answers], dtype=np.float64)
        return Counts(
            conditions=_by_condition([*self._row.conditions], people, moment - ACTIVE_SECONDS, cutoff),
            pages=_by_page(people, [row[1] for row in answers], seconds, cutoff),
            steps=_by_step([row[0] for row in answers], seconds),
            checks=_by_check(judged),
            answers=sum(row[2] in ("pair", "case") for row in answers),
            last_answer=moment_of(max(row[4] for row in answers)) if answers else None,
        )

    def version(self) -> tuple[float, ...]:
        """Return numbers that differ whenever `responses` might: to be compared, not read.

        They are the answers, when the last was saved and how often all were written; and how many people enrolled,
        finished and withdrew.
        """
        written = (
            select(func.count(), func.coalesce(func.max(_A.saved_at), 0.0), func.coalesce(func.sum(_A.revision), 0))
            .join_from(ANSWERS, PARTICIPANTS, _A.participant_id == _P.id)
            .where(_P.study_id == self._id)
        )
        people = select(func.count(), func.count(_P.finished_at), func.count(_P.withdrawn_at)).where(
            _P.study_id == self._id
        )
        with self._database.reading(snapshot=True) as connection:
            return tuple(map(float, (*connection.execute(written).one(), *connection.execute(people).one())))


def _by_condition(
    conditions: list[str], people: Sequence[Any], lately: float, cutoff: tuple[float, float]
) -> tuple[ConditionCounts, ...]:
    states: dict[str, list[str]] = {name: [] for name in conditions}
    for condition, reached, seen_at, finished_at, withdrawn_at in people:
        state = _state(reached, seen_at, finished_at, withdrawn_at, cutoff)
        states.setdefault(condition, []).append("away" if state == "active" and seen_at < lately else state)
    return tuple(
        ConditionCounts(
            name,
            len(found),
            found.count("active"),
            found.count("away"),
            found.count("abandoned"),
            found.count("finished"),
            found.count("withdrawn"),
        )
        for name, found in states.items()
    )


def _state(
    reached: int, seen_at: float, finished_at: float | None, withdrawn_at: float | None, cutoff: tuple[float, float]
) -> str:
    """Return what a person is, as enrolment counts them: who answered nothing yet is given up sooner."""
    if withdrawn_at is not None:
        return "withdrawn"
    if finished_at is not None:
        return "finished"
    return "active" if seen_at >= (cutoff[0] if reached else max(cutoff)) else "abandoned"


def _by_page(
    people: Sequence[Any], indices: list[int], seconds: Any, cutoff: tuple[float, float]
) -> tuple[PageCounts, ...]:
    standing: dict[str, list[int]] = {"active": [], "abandoned": []}
    for _, reached, seen_at, finished_at, withdrawn_at in people:
        standing.setdefault(_state(reached, seen_at, finished_at, withdrawn_at, cutoff), []).append(reached)
    pages = 1 + max([-1, *indices, *standing["active"], *standing["abandoned"]])
    waiting, dropped = (
        np.bincount(np.array(standing[name], dtype=np.int64), minlength=pages) for name in ("active", "abandoned")
    )
    times = _times(indices, seconds)
    return tuple(PageCounts(at, int(waiting[at]), int(dropped[at]), times.get(at)) for at in range(pages))


def _by_step(steps: list[str], seconds: Any) -> dict[str, Times]:
    return _times(steps, seconds)


def _times(keys: list[Any], seconds: Any) -> dict[Any, Times]:
    """Return quartiles by key, linear between order statistics, of the answers that have a time."""
    known = np.isfinite(seconds)
    keys, seconds = [key for key, one in zip(keys, known.tolist(), strict=True) if one], seconds[known]
    if not keys:
        return {}
    names, which = np.unique(np.array(keys), return_inverse=True)
    order = np.argsort(which, kind="stable")
    groups = np.split(seconds[order], np.cumsum(np.bincount(which))[:-1])
    found = {}
    for name, group in zip(names.tolist(), groups, strict=True):
        lower, median, upper = np.quantile(group, [0.25, 0.5, 0.75]).tolist()
        found[name] = Times(len(group), lower, median, upper)
    return found


def _by_check(judged: Sequence[Any]) -> tuple[CheckCounts, ...]:
    passed: dict[int, list[bool]] = {}
    for number, payload in judged:
        passed.setdefault(number, []).append(bool(json.loads(payload).get("passed")))
    return tuple(CheckCounts(number, sum(found), len(found) - sum(found)) for number, found in sorted(passed.items()))
