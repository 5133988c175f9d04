"""Store answers, each once and in one transaction, and drafts of answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, TextClause, bindparam, select, text

from evenhand.study.flow.design import Step
from evenhand.study.store.database import Database
from evenhand.study.store.records import CLOCK, Answer, Participant, Saved, seconds_of, steady_of
from evenhand.study.store.tables import ANSWERS, DRAFTS, PARTICIPANTS

AWAY_SECONDS = 30 * 60
"""A participant inactive for longer was away; time away is not counted.

The time on a step restarts with the first activity afterwards: an opened page, a draft, or a change to an earlier
answer. If the first activity is the answer itself, the time of return is unknown, and the answer's seconds are
missing. Times are measured with a monotonic clock if it covers both ends.
"""
DRAFT_BYTES = 32 * 1024
_SEEN_SECONDS = 60

_BEGIN = (
    "since = :now, seen_at = :now, steady = :tick, clock = :clock, drift = drift + CAST(:drift AS double precision)"
)
"""Restart the time on a step and add up wall-clock changes (drift); an unknown drift stays unknown."""
_ADVANCE = text(
    f"UPDATE participants SET reached = reached + 1, {_BEGIN}, finished_at = :finished_at"  # noqa: S608
    " WHERE id = :person AND reached = :index AND finished_at IS NULL AND withdrawn_at IS NULL"
)
_STORE = text(
    "INSERT INTO answers (participant_id, step, step_index, kind, item, subject, position, check_number, seconds,"
    " payload, revision, saved_at) VALUES (:person, :step, :index, :kind, :item, :subject, :position, :check,"
    " :seconds, :payload, 1, :now)"
    " ON CONFLICT (participant_id, step) DO UPDATE SET payload = excluded.payload, saved_at = excluded.saved_at,"
    " revision = answers.revision + 1 RETURNING revision"
)
_NO_DRAFT = text("DELETE FROM drafts WHERE participant_id = :person AND step = :step")
_SEEN = text("UPDATE participants SET seen_at = :now WHERE id = :person")
_BACK = text(f"UPDATE participants SET {_BEGIN} WHERE id = :person AND finished_at IS NULL")  # noqa: S608
_DRAFT = text(
    "INSERT INTO drafts (participant_id, step, fields, saved_at) VALUES (:person, :step, :fields, :now)"
    " ON CONFLICT (participant_id, step) DO UPDATE SET fields = excluded.fields, saved_at = excluded.saved_at"
)
_STATE = (
    select(PARTICIPANTS.c.reached, PARTICIPANTS.c.finished_at, PARTICIPANTS.c.withdrawn_at)
    .where(PARTICIPANTS.c.id == bindparam("person"))
    .with_for_update()
)
_OF_STEP = (ANSWERS.c.participant_id == bindparam("person"), ANSWERS.c.step == bindparam("step"))
_STORED = select(ANSWERS.c.payload, ANSWERS.c.revision).where(*_OF_STEP)
_DRAFTED = select(DRAFTS.c.fields).where(
    DRAFTS.c.participant_id == bindparam("person"), DRAFTS.c.step == bindparam("step")
)


@dataclass(frozen=True)
class Answers:
    """The answers of a study."""

    database: Database

    def save(
        self,
        person: Participant,
        step: Step,
        index: int,
        payload: Mapping[str, Any],
        *,
        revision: int,
        last: bool = False,
        now: datetime | None = None,
    ) -> Saved:
        """Store an answer in one transaction; storing the same answer again changes nothing.

        An answer to the first unanswered step advances the person and records their time; an answer to an earlier step
        replaces the stored answer if the form was rendered from it.

        Parameters
        ----------
        person : as read for this request; `since` is when the time on the step began. An answer given right after more
            than `AWAY_SECONDS` of inactivity is stored without a time.
        step, index : the step and its index in the person's plan.
        payload : the answer by the field names of the schema.
        revision : the revision that the form was rendered from; 0 if nothing was stored.
        last : whether this is the last step, after which the person has finished.
        now : the current time; by default from the clock.
        """
        clock = Clock.of(person, now)
        seconds = None if clock.away or clock.taken < 0 else round(clock.taken, 3)
        values: dict[str, Any] = {**clock.sign, "payload": _as_json(payload), "seconds": seconds}
        values |= {"step": step.key, "index": index, "kind": step.kind, "position": step.position}
        values |= {"item": step.item, "subject": step.subject, "check": step.check}
        onwards = {**clock.sign, "index": index, "finished_at": clock.sign["now"] if last else None}
        with self.database.writing() as connection:
            moved = connection.execute(_ADVANCE, onwards)
            if moved.rowcount == 1:
                return Saved("saved", _write(connection, values), index + 1)
            return _change(
                connection, step, index=index, values=values, revision=revision, sign=_BACK if clock.away else _SEEN
            )

    def page(
        self, person: Participant, step_key: str, *, now: datetime | None = None
    ) -> tuple[Answer | None, dict[str, Any] | None]:
        """Return the stored answer and the draft of a page, each None if missing.

        Opening a page after more than half an hour of inactivity restarts the time on it.
        """
        clock, key = Clock.of(person, now), {"person": person.id, "step": step_key}
        if person.finished_at is person.withdrawn_at is None and clock.away:
            with self.database.writing() as connection:
                connection.execute(_BACK, clock.sign)
        with self.database.reading() as connection:
            stored = connection.execute(_STORED, key).first()
            draft = connection.execute(_DRAFTED, key).scalar()
        return _answer(stored), None if draft is None else json.loads(draft)

    def get(self, person: Participant, step_key: str) -> Answer | None:
        """Return the stored answer to a step; None if there is no answer."""
        with self.database.reading() as connection:
            return _answer(connection.execute(_STORED, {"person": person.id, "step": step_key}).first())

    def save_draft(
        self,
        person: Participant,
        step_key: str,
        fields: Mapping[str, Any],
        *,
        revision: int | None = None,
        now: datetime | None = None,
    ) -> bool:
        """Store an unfinished form until its answer is saved; return whether it was stored.

        It is not stored if the person has finished or withdrawn, if it exceeds 32 KiB, or if `revision` (of the answer
        that the form was rendered from) is outdated: a late draft never hides a newer answer.
        """
        clock, written = Clock.of(person, now), _as_json(fields)
        if len(written) > DRAFT_BYTES:
            return False
        key = {"person": person.id, "step": step_key}
        with self.database.writing() as connection:
            _, finished_at, withdrawn_at = connection.execute(_STATE, {"person": person.id}).one()
            if finished_at is not None or withdrawn_at is not None:
                return False
            if revision is not None:
                stored = connection.execute(_STORED, key).first()
                if revision != (0 if stored is None else stored[1]):
                    return False
            connection.execute(_DRAFT, {**key, "fields": written, "now": clock.sign["now"]})
            if clock.away:
                connection.execute(_BACK, clock.sign)
            elif abs(clock.silence) > _SEEN_SECONDS:
                connection.execute(_SEEN, {"person": person.id, "now": clock.sign["now"]})
        return True


class Clock(NamedTuple):
    """The times of one request of a person.

    Parameters
    ----------
    taken : seconds since their time on the step began.
    silence : seconds since they were last seen, by the wall clock.
    away : whether they were away, or may have been because the clock was set back.
    sign : the parameters of an SQL statement that restarts the time on the step.
    """

    taken: float
    silence: float
    away: bool
    sign: dict[str, Any]

    @classmethod
    def of(cls, person: Participant, now: datetime | None) -> Clock:
        """Return the times of a request at `now`, by default the current time."""
        moment, tick = seconds_of(now), steady_of(now)
        taken, drift = person.time_on_step(moment, tick)
        silence = moment - person.seen_at.timestamp()
        away = taken > AWAY_SECONDS and not 0 <= silence <= AWAY_SECONDS
        return cls(
            taken, silence, away, {"person": person.id, "now": moment, "tick": tick, "clock": CLOCK, "drift": drift}
        )


def _answer(row: Sequence[Any] | None) -> Answer | None:
    return None if row is None else Answer(json.loads(row[0]), row[1])


def _write(connection: Connection, values: Mapping[str, Any]) -> int:
    revision = connection.execute(_STORE, values).scalar_one()
    connection.execute(_NO_DRAFT, {"person": values["person"], "step": values["step"]})
    return int(revision)


def _change(
    connection: Connection, step: Step, *, index: int, values: Mapping[str, Any], revision: int, sign: TextClause
) -> Saved:
    """Store an answer to an earlier step and update last-seen, or return why it was not stored."""
    reached, finished_at, withdrawn_at = connection.execute(_STATE, {"person": values["person"]}).one()
    row = connection.execute(_STORED, {"person": values["person"], "step": step.key}).first()
    stored, current = ("", 0) if row is None else row
    if row is not None and stored == values["payload"]:
        return Saved("repeated", current, reached)
    if finished_at is not None or withdrawn_at is not None or (row is not None and step.kind == "check"):
        return Saved("locked", current, reached)
    if index > reached:
        return Saved("too_early", current, reached)
    if revision != current:
        return Saved("stale", current, reached)
    connection.execute(sign, {name: values[name] for name in ("person", "now", "tick", "clock", "drift")})
    return Saved("saved", _write(connection, values), reached)


def _as_json(values: Mapping[str, Any]) -> str:
    """Return values as JSON with sorted keys, in ASCII so that every database stores every character."""
    return json.dumps(values, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
