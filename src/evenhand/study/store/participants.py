"""Participants: balanced enrolment, returning, withdrawal, and recruitment ids."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import count
from typing import Any

from sqlalchemy import Connection, and_, bindparam, case, delete, func, insert, or_, select, update

from evenhand.study.store import records
from evenhand.study.store.database import Database
from evenhand.study.store.records import BonusRow, Participant, QuotaFull, StudyClosed, StudyFull, StudyRow
from evenhand.study.store.tables import ANSWERS, DRAFTS, PARTICIPANTS, RATINGS, RECRUITS, STUDIES, TRAITS

_ERASE_SECONDS = 3.0
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_P, _R = PARTICIPANTS.c, RECRUITS.c
_PERSON = tuple(_P[field.name] for field in fields(Participant) if field.name != "completion_code")
_NAMES = [column.name for column in _PERSON]
_FIRST_TIME, _AFTER_TIMES = _NAMES.index("since"), _NAMES.index("fingerprint")
_OF_STUDY = _P.study_id == bindparam("study")
_BY_TOKEN = select(*_PERSON).where(_OF_STUDY, _P.token == bindparam("token"))
_BY_ENROLMENT = select(*_PERSON).where(_OF_STUDY, _P.enrolment == bindparam("enrolment"))
_BY_RECRUITMENT = (
    select(*_PERSON)
    .join_from(RECRUITS, PARTICIPANTS, _R.participant_id == _P.id)
    .where(_R.study_id == bindparam("study"), _R.recruitment_id == bindparam("recruitment"))
)
_LOCK_STUDY = (
    select(STUDIES.c.closed_at, STUDIES.c.fingerprint)
    .where(STUDIES.c.id == bindparam("study"))
    .with_for_update(key_share=True)
)
_ACTIVE = and_(_P.seen_at >= bindparam("cutoff"), or_(_P.reached > 0, _P.seen_at >= bindparam("silent_cutoff")))
_HELD = and_(_P.withdrawn_at.is_(None), or_(_P.finished_at.is_not(None), _ACTIVE))
_PEOPLE = select(_P.condition, func.count(), func.count(case((_HELD, 1)))).where(_OF_STUDY).group_by(_P.condition)
_SAID_SO = (
    select(func.count())
    .select_from(TRAITS)
    .join(PARTICIPANTS, TRAITS.c.participant_id == _P.id)
    .where(_OF_STUDY, _HELD, TRAITS.c.name == bindparam("name"), TRAITS.c.value == bindparam("value"))
)
_PLACES = select(_P.place).where(_OF_STUDY, _P.condition == bindparam("condition"), _HELD)


@dataclass(frozen=True)
class Participants:
    """The participants of a study."""

    database: Database
    row: StudyRow

    def enrol(
        self,
        key: str,
        *,
        recruitment_id: str | None = None,
        language: str = "en",
        about: Mapping[str, str] | None = None,
        now: datetime | None = None,
    ) -> Participant:
        """Enrol a person, or return the person already enrolled with the same key or recruitment id.

        The condition with the fewest active people relative to its share is chosen, and ties are broken by a seeded
        draw; the place is its smallest free one. Active are people who finished or were seen within `abandon_after`, or
        within half an hour if they have no answer yet. Counting and enrolling are one transaction, and these run one
        after another, over all servers of a database.

        Parameters
        ----------
        key : random text from the consent form; the same form sent twice enrols once.
        recruitment_id : the recruiter's id of the person; ignored unless a short printable text.
        language : the language of their pages.
        about : their answers about themselves, by question; stored, and counted for the quotas.
        now : the current time; by default from the clock.

        Raises
        ------
        StudyClosed, StudyFull, QuotaFull : for a new person only; a person already enrolled is returned. A server
            with an outdated design also raises `StudyClosed`.
        """
        moment, enrolment = records.seconds_of(now), enrolment_of(key)
        recruitment = recruitment_id if recruitment_id and records.is_storable(recruitment_id) else None
        with self.database.writing() as connection:
            closed_at, fingerprint = connection.execute(_LOCK_STUDY, {"study": self.row.id}).one()
            if (known := self._known(connection, enrolment, recruitment)) is not None:
                return self._participant(known)
            if closed_at is not None:
                raise StudyClosed("the study {study!r} is closed; it takes nobody new.", study=self.row.name)
            if fingerprint != self.row.fingerprint:
                raise StudyClosed("the study {study!r} was changed; restart this server.", study=self.row.name)
            self._require_quota(connection, about or {}, moment)
            condition, place = self._free_seat(connection, moment)
            values = {"study_id": self.row.id, "enrolment": enrolment, "language": language, "fingerprint": fingerprint}
            code = "p" + "".join(secrets.choice(_ALPHABET) for _ in range(10))
            values |= {"code": code, "token": secrets.token_urlsafe(32)}
            values |= {"condition": condition, "place": place, "reached": 0}
            values |= dict.fromkeys(("since", "enrolled_at", "seen_at"), moment)
            values |= {"steady": records.steady_of(now), "clock": records.CLOCK, "drift": 0.0}
            number = connection.execute(insert(PARTICIPANTS).returning(_P.id), values).scalar_one()
            if recruitment is not None:
                ids = {"participant_id": number, "study_id": self.row.id, "recruitment_id": recruitment}
                connection.execute(insert(RECRUITS), ids)
            if about:
                said = [{"participant_id": number, "name": name, "value": value} for name, value in about.items()]
                connection.execute(insert(TRAITS), said)
            made = connection.execute(select(*_PERSON).where(_P.id == number)).one()
        return self._participant(made)

    def _known(self, connection: Connection, enrolment: str, recruitment: str | None) -> Any:
        same = connection.execute(_BY_ENROLMENT, {"study": self.row.id, "enrolment": enrolment}).first()
        if same is not None or recruitment is None:
            return same
        return connection.execute(_BY_RECRUITMENT, {"study": self.row.id, "recruitment": recruitment}).first()

    def _require_quota(self, connection: Connection, about: Mapping[str, str], moment: float) -> None:
        """Raise `QuotaFull` if enough people already gave one of these answers about themselves."""
        held = self._held_since(moment)
        for name, value in about.items():
            most = self.row.quotas.get(name, {}).get(value)
            if most is None:
                continue
            asked = {**held, "name": name, "value": value}
            if connection.execute(_SAID_SO, asked).scalar_one() >= most:
                raise QuotaFull(
                    "the study {study!r} has its {most:,} people whose {question} is {answer!r}.",
                    study=self.row.name,
                    most=most,
                    question=name,
                    answer=value,
                )

    def _held_since(self, moment: float) -> dict[str, Any]:
        """Return the parameters of SQL statements that count active people."""
        cutoff = moment - self.row.abandon_after
        return {"study": self.row.id, "cutoff": cutoff, "silent_cutoff": moment - records.SILENT_SECONDS}

    def _free_seat(self, connection: Connection, moment: float) -> tuple[str, int]:
        """Return the condition and the place of the next person."""
        study, asked = self.row, self._held_since(moment)
        rows = connection.execute(_PEOPLE, asked).all()
        held = {condition: people for condition, _, people in rows}
        if study.most_people is not None and sum(held.values()) >= study.most_people:
            raise StudyFull("the study {study!r} has its {most:,} people.", study=study.name, most=study.most_people)
        for name in by_need(study, held, sum(everybody for _, everybody, _ in rows)):
            taken = set(connection.execute(_PLACES, {**asked, "condition": name}).scalars())
            place = next(number for number in count() if number not in taken)
            if study.places is None or place < study.places:
                return name, place
        raise StudyFull("every place of the study {study!r} is taken.", study=study.name)

    def by_token(self, token: str) -> Participant | None:
        """Return the person with this cookie token; None if unknown."""
        if not records.is_storable(token):
            return None
        with self.database.reading() as connection:
            row = connection.execute(_BY_TOKEN, {"study": self.row.id, "token": token}).first()
        return None if row is None else self._participant(row)

    def by_recruitment_id(self, recruitment_id: str) -> Participant | None:
        """Return the person with a recruitment id; None if unknown or ids were erased."""
        if not records.is_storable(recruitment_id):
            return None
        with self.database.reading() as connection:
            row = connection.execute(_BY_RECRUITMENT, {"study": self.row.id, "recruitment": recruitment_id}).first()
        return None if row is None else self._participant(row)

    def withdraw(self, who: Participant | str, *, now: datetime | None = None) -> bool:
        """Withdraw a person and delete all their answers; return whether the person exists.

        Answers, drafts, ratings and answers about themselves are deleted. Their place is free again and they can
        no longer answer. The recruitment id stays until `erase_recruitment_ids`, so that they can be paid and do not
        take part twice.

        Parameters
        ----------
        who : the person, or their code.
        now : the current time; by default from the clock.
        """
        code = who if isinstance(who, str) else who.code
        if not records.is_storable(code):
            return False
        with self.database.writing() as connection:
            known = select(_P.id).where(_P.study_id == self.row.id, _P.code == code).with_for_update()
            person = connection.execute(known).scalar()
            if person is None:
                return False
            moment = func.coalesce(_P.withdrawn_at, records.seconds_of(now))
            connection.execute(update(PARTICIPANTS).where(_P.id == person).values(withdrawn_at=moment))
            for table in (ANSWERS, DRAFTS, TRAITS, RATINGS):
                connection.execute(delete(table).where(table.c.participant_id == person))
        self.database.tidy_log()
        return True

    def empty_log(self, *, seconds: float = 0.0) -> bool:
        """Return whether SQLite's log contains no erased data, after trying again to empty it.

        A read that began before the erasure keeps the log unchanged until the read ends. Emptying is
        tried again whenever the database is opened and closed.

        Parameters
        ----------
        seconds : how long to try.
        """
        return self.database.tidy_log(seconds)

    def erase_recruitment_ids(self) -> int:
        """Delete every recruitment id of the study permanently; return their number.

        `empty_log` then returns whether SQLite's log is free of them.
        """
        with self.database.writing() as connection:
            erased = connection.execute(delete(RECRUITS).where(_R.study_id == self.row.id)).rowcount
        self.database.tidy_log(_ERASE_SECONDS)
        return int(erased)

    def bonus_rows(self) -> list[BonusRow]:
        """Return the people who finished and did not withdraw, in order of finishing, with recruitment ids."""
        asked = (
            select(_R.recruitment_id, _P.code, _P.condition, _P.finished_at)
            .join_from(PARTICIPANTS, RECRUITS, _R.participant_id == _P.id, isouter=True)
            .where(_P.study_id == self.row.id, _P.finished_at.is_not(None), _P.withdrawn_at.is_(None))
            .order_by(_P.finished_at, _P.id)
        )
        with self.database.reading() as connection:
            rows = connection.execute(asked).all()
        return [BonusRow(row[0], row[1], row[2], records.moment_of(row[3])) for row in rows]

    def recruits(self) -> list[tuple[str | None, str]]:
        """Return the recruitment id (or None) and the code of everyone who did not withdraw."""
        asked = (
            select(_R.recruitment_id, _P.code)
            .join_from(PARTICIPANTS, RECRUITS, _R.participant_id == _P.id, isouter=True)
            .where(_P.study_id == self.row.id, _P.withdrawn_at.is_(None))
            .order_by(_P.id)
        )
        with self.database.reading() as connection:
            return [(row[0], row[1]) for row in connection.execute(asked)]

    def _participant(self, row: Sequence[Any]) -> Participant:
        times = [None if seconds is None else records.moment_of(seconds) for seconds in row[_FIRST_TIME:_AFTER_TIMES]]
        values = dict(zip(_NAMES, [*row[:_FIRST_TIME], *times, *row[_AFTER_TIMES:]], strict=True))
        return Participant(**values, completion_code=self.row.completion_code)


def enrolment_of(key: str) -> str:
    """Return the SHA-256 hash of an enrolment key, as stored."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def by_need(study: StudyRow, held: Mapping[str, int], number: int) -> list[str]:
    """Return the conditions by people per share, fewest first; ties are broken by a seeded draw.

    Parameters
    ----------
    study : the conditions with their shares, and the seed of the draw.
    held : number of active people by condition.
    number : number of people ever enrolled, which identifies the draw.
    """

    def need(name: str) -> tuple[float, bytes]:
        draw = hashlib.sha256(f"{study.seed}/{number}/{name}".encode()).digest()
        return held.get(name, 0) / study.conditions[name], draw

    return sorted(study.conditions, key=need)
