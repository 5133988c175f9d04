"""The researchers' side: logins, logged actions, and ratings of the participants' reasons."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Executable, delete, insert, select, text, update

from evenhand.study.ratings import Rating
from evenhand.study.store.database import Database
from evenhand.study.store.records import Action, Session, StudyRow, is_storable, moment_of, seconds_of
from evenhand.study.store.tables import ACTIONS, ANSWERS, ATTEMPTS, PARTICIPANTS, RATINGS, RESEARCHERS, SESSIONS

SESSION_SECONDS = 12 * 3600
ATTEMPTS_ALLOWED = 5
ATTEMPT_WINDOW = 15 * 60
_DETAIL_LENGTH = 1_000

_INSERT = (
    "INSERT INTO researchers (study_id, name, password_hash, changed_at) VALUES (:study, :name, :hash, :now)"
    " ON CONFLICT (study_id, name)"
)
_SET_PASSWORD = text(
    f"{_INSERT} DO UPDATE SET password_hash = excluded.password_hash, changed_at = excluded.changed_at"
)
_FIRST_PASSWORD = text(f"{_INSERT} DO NOTHING")
_ATTEMPT = text(
    "INSERT INTO attempts (study_id, digest, started_at, number) VALUES (:study, :digest, :now, 1)"
    " ON CONFLICT (study_id, digest) DO UPDATE SET"
    " number = CASE WHEN attempts.started_at <= :cutoff THEN 1 ELSE attempts.number + 1 END,"
    " started_at = CASE WHEN attempts.started_at <= :cutoff THEN excluded.started_at ELSE attempts.started_at END"
    " RETURNING number"
)


@dataclass(frozen=True)
class Researchers:
    """The researchers of a study: passwords, sessions, login attempts and logged actions."""

    database: Database
    row: StudyRow

    def set_password(self, name: str, password_hash: str) -> None:
        """Store the hash of a researcher's password, and end all their sessions."""
        values = {"study": self.row.id, "name": name, "hash": password_hash, "now": seconds_of()}
        ended = delete(SESSIONS).where(SESSIONS.c.study_id == self.row.id, SESSIONS.c.name == name)
        self._write(_SET_PASSWORD.bindparams(**values), ended)

    def set_first_password(self, name: str, password_hash: str) -> bool:
        """Store the hash of a researcher's password unless they have a password; return whether stored.

        If several servers start at the same moment, exactly one call returns True.
        """
        values = {"study": self.row.id, "name": name, "hash": password_hash, "now": seconds_of()}
        with self.database.writing() as connection:
            return connection.execute(_FIRST_PASSWORD, values).rowcount == 1

    def password_hash(self, name: str) -> str | None:
        """Return the hash of a researcher's password; None if the researcher is unknown."""
        if not is_storable(name):
            return None
        asked = select(RESEARCHERS.c.password_hash).where(
            RESEARCHERS.c.study_id == self.row.id, RESEARCHERS.c.name == name
        )
        with self.database.reading() as connection:
            return connection.execute(asked).scalar()

    def names(self) -> list[str]:
        """Return the names of all researchers with a password, sorted."""
        asked = select(RESEARCHERS.c.name).where(RESEARCHERS.c.study_id == self.row.id).order_by(RESEARCHERS.c.name)
        with self.database.reading() as connection:
            return list(connection.execute(asked).scalars())

    def open_session(self, name: str, *, seconds: float = SESSION_SECONDS, now: datetime | None = None) -> str:
        """Open a session for a researcher, delete expired sessions, and return the new session's token."""
        moment, token = seconds_of(now), secrets.token_urlsafe(32)
        values = {"digest": _digest(token), "study_id": self.row.id, "name": name, "opened_at": moment}
        self._write(
            delete(SESSIONS).where(SESSIONS.c.study_id == self.row.id, SESSIONS.c.expires_at <= moment),
            insert(SESSIONS).values(**values, expires_at=moment + seconds),
        )
        return token

    def session(self, token: str, *, now: datetime | None = None) -> Session | None:
        """Return the session of a token; None if unknown or expired."""
        asked = select(SESSIONS.c.name, SESSIONS.c.opened_at, SESSIONS.c.expires_at).where(
            SESSIONS.c.study_id == self.row.id,
            SESSIONS.c.digest == _digest(token),
            SESSIONS.c.expires_at > seconds_of(now),
        )
        with self.database.reading() as connection:
            row = connection.execute(asked).first()
        return None if row is None else Session(row[0], moment_of(row[1]), moment_of(row[2]))

    def end_session(self, token: str) -> None:
        """Delete the session of a token."""
        self._write(delete(SESSIONS).where(SESSIONS.c.study_id == self.row.id, SESSIONS.c.digest == _digest(token)))

    def note_attempt(
        self, key: str, *, limit: int = ATTEMPTS_ALLOWED, window: float = ATTEMPT_WINDOW, now: datetime | None = None
    ) -> int:
        """Count a login attempt before its password is checked; return the number of attempts left.

        If negative, this attempt must be rejected. Counting is one SQL statement, so simultaneous attempts on
        several servers are all counted. The count restarts `window` seconds after its first attempt.

        Parameters
        ----------
        key : the counter, such as "name:anna" or "address:192.0.2.1"; only a keyed hash of it is stored.
        limit : attempts allowed within a window.
        window : length of the window in seconds.
        now : the current time; by default from the clock.
        """
        moment = seconds_of(now)
        values = {"study": self.row.id, "digest": self._keyed(key), "now": moment, "cutoff": moment - window}
        with self.database.writing() as connection:
            number = int(connection.execute(_ATTEMPT, values).scalar_one())
        if number == 1:
            # In a separate transaction, to avoid deadlocks between two transactions that each lock a row.
            over = ATTEMPTS.c.started_at <= moment - window
            self._write(delete(ATTEMPTS).where(ATTEMPTS.c.study_id == self.row.id, over))
        return limit - number

    def forget_attempts(self, key: str) -> None:
        """Reset the count of attempts after a successful login."""
        digest = self._keyed(key)
        self._write(delete(ATTEMPTS).where(ATTEMPTS.c.study_id == self.row.id, ATTEMPTS.c.digest == digest))

    def log(self, researcher: str, action: str, detail: str = "", *, now: datetime | None = None) -> None:
        """Log an action of a researcher."""
        said = {"researcher": _cut(researcher), "action": _cut(action), "detail": _cut(detail)}
        self._write(insert(ACTIONS).values(study_id=self.row.id, at=seconds_of(now), **said))

    def actions(self, limit: int = 100) -> list[Action]:
        """Return the researchers' actions, the newest first."""
        c = ACTIONS.c
        asked = select(c.at, c.researcher, c.action, c.detail).where(c.study_id == self.row.id)
        with self.database.reading() as connection:
            rows = connection.execute(asked.order_by(c.at.desc(), c.id.desc()).limit(limit)).all()
        return [Action(moment_of(row[0]), row[1], row[2], row[3]) for row in rows]

    def _write(self, *statements: Executable) -> None:
        """Execute SQL statements in one transaction."""
        with self.database.writing() as connection:
            for statement in statements:
                connection.execute(statement)

    def _keyed(self, key: str) -> str:
        return hmac.new(self.row.secret, key.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _cut(text: str) -> str:
    """Return a text shortened for the log, with unprintable characters such as line breaks as spaces."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:_DETAIL_LENGTH])


# How reasons were rated -----------------------------------------------------------------------------------------------


_P, _A, _G = PARTICIPANTS.c, ANSWERS.c, RATINGS.c
_RATE = text(
    "INSERT INTO ratings (participant_id, step, rater, score, left_out, saved_at)"
    " VALUES (:person, :step, :rater, :score, :left_out, :now)"
    " ON CONFLICT (participant_id, step, rater) DO UPDATE SET score = excluded.score, left_out = excluded.left_out,"
    " saved_at = excluded.saved_at"
)


@dataclass(frozen=True)
class Ratings:
    """Raters' ratings of reasons by people who finished, and reasons entered by researchers."""

    database: Database
    row: StudyRow

    def rate(self, rating: Rating, *, now: datetime | None = None) -> bool:
        """Store a rating, replacing the rater's earlier one; return whether the reason exists."""
        with self.database.writing() as connection:
            found = connection.execute(self._answer(rating.participant, rating.step).with_for_update(read=True)).first()
            if found is None or not json.loads(found.payload).get("reason"):
                return False
            given = {"rater": rating.rater, "score": rating.score, "left_out": rating.left_out}
            values = {"person": found.id, "step": rating.step, "now": seconds_of(now), **given}
            connection.execute(_RATE, values)
        return True

    def all(self) -> list[Rating]:
        """Return all ratings, sorted by participant, step and rater."""
        asked = (
            select(_P.code, _G.step, _G.rater, _G.score, _G.left_out)
            .join_from(RATINGS, PARTICIPANTS, _G.participant_id == _P.id)
            .where(_P.study_id == self.row.id, _P.withdrawn_at.is_(None))
            .order_by(_P.code, _G.step, _G.rater)
        )
        with self.database.reading() as connection:
            return [Rating(*row) for row in connection.execute(asked)]

    def enter(self, participant: str, step: str, reason: str) -> bool:
        """Store a reason that a finished participant gave elsewhere; return whether it was stored.

        It is not stored if the person wrote a reason themselves or never gave that answer.
        """
        with self.database.writing() as connection:
            found = connection.execute(self._answer(participant, step).with_for_update()).first()
            payload = {} if found is None else json.loads(found.payload)
            if found is None or payload.get("reason"):
                return False
            payload["reason"] = reason
            where = (_A.participant_id == found.id, _A.step == step)
            written = json.dumps(payload, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
            connection.execute(update(ANSWERS).where(*where).values(payload=written, revision=_A.revision + 1))
        return True

    def _answer(self, participant: str, step: str) -> Any:
        """Return the query for an answer of a participant who finished."""
        return (
            select(_P.id, _A.payload)
            .join_from(ANSWERS, PARTICIPANTS, _A.participant_id == _P.id)
            .where(_P.study_id == self.row.id, _P.code == participant, _A.step == step)
            .where(_P.finished_at.is_not(None), _P.withdrawn_at.is_(None))
        )
