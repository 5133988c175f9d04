"""Open a store and its studies, the entry point to all stored data, and back up a database."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from sqlalchemy import URL, Connection, bindparam, select, text, update

from evenhand.errors import ConfigError, did_you_mean
from evenhand.study.flow.design import Design
from evenhand.study.store import tables
from evenhand.study.store.answers import Answers
from evenhand.study.store.database import Database, parse_url, read_uri
from evenhand.study.store.participants import Participants
from evenhand.study.store.records import StoreError, StudyRow, seconds_of
from evenhand.study.store.researchers import Ratings, Researchers
from evenhand.study.store.results import Results
from evenhand.study.store.tables import ANSWERS, PARTICIPANTS, STUDIES

if sys.platform != "win32":
    import fcntl

SECRET_VARIABLE = "EVENHAND_STUDY_SECRET"  # noqa: S105
_SHORTEST_SECRET = 32
_CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_SOMEBODY = select(PARTICIPANTS.c.id).where(PARTICIPANTS.c.study_id == bindparam("study")).limit(1)
_SOME_ANSWER = (
    select(ANSWERS.c.step)
    .join_from(ANSWERS, PARTICIPANTS, ANSWERS.c.participant_id == PARTICIPANTS.c.id)
    .where(PARTICIPANTS.c.study_id == bindparam("study"))
    .limit(1)
)
_CLOSED = select(STUDIES.c.closed_at).where(STUDIES.c.id == bindparam("study"))


def open_store(url: str) -> Store:
    """Open a database, and create its tables if it has none.

    Parameters
    ----------
    url : the path of a SQLite file (created if missing), sqlite:///PATH, or
        postgresql://USER:PASSWORD@HOST/NAME. No error message contains the password.
    """
    store = Store(Database(parse_url(url)))
    try:
        tables.make_tables(store.database)
        store.database.tidy_log()
    except BaseException:
        store.database.close(tidy=False)  # tidying would wait again for a locked file
        raise
    return store


class Store:
    """An open database; use it in a `with` statement, or close it."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def register(self, design: Design, *, accept: bool = False) -> Study:
        """Return the study of a design, created if the database has no study of this name.

        Parameters
        ----------
        design : the study; settings that do not affect its pages may differ from the registered design, and
            while nobody is enrolled, all settings may.
        accept : whether to accept a design with other pages than those shown to people enrolled so far. Once
            there are answers, the kind and the points of the scale cannot change, and conditions and places not shrink.
        """
        name, settings = design.name, _settings(design)
        with self.database.writing() as connection:
            c = STUDIES.c
            asked = select(c.id, c.kind, c.fingerprint, c.settings).where(c.name == name)
            known = connection.execute(asked.with_for_update(key_share=True)).first()
            if known is None:
                new = {"name": name, "kind": design.kind, "fingerprint": design.fingerprint, "settings": settings}
                code = "".join(secrets.choice(_CODE_LETTERS) for _ in range(8))
                made = {"secret": secrets.token_bytes(32), "created_at": seconds_of(), "completion_code": code}
                connection.execute(_MAKE, new | made)
                known = connection.execute(asked).one()
            if known.fingerprint != design.fingerprint:
                self._require_compatible(connection, known, design, accept)
            values: dict[str, Any] = {"settings": settings, "fingerprint": design.fingerprint, "kind": design.kind}
            if design.spec.recruitment.completion_code is not None:
                values["completion_code"] = design.spec.recruitment.completion_code
            connection.execute(update(STUDIES).where(STUDIES.c.name == name).values(values))
        return self.study(name)

    def _require_compatible(self, connection: Connection, known: Any, design: Design, accept: bool) -> None:
        """Raise for a changed design that was not accepted, or that does not fit the stored answers."""
        before = json.loads(known.settings)
        if not accept and connection.execute(_SOMEBODY, {"study": known.id}).first() is not None:
            raise ConfigError(
                "the study {name!r} in '{shown}' was made with other contents: people there saw something "
                "else{changed}. Give the changed study a new name, or accept the change with --accept.",
                name=design.name,
                shown=self.database.shown,
                changed=_changed(before, design),
            )
        broken = _broken(known.kind, before, design)
        if broken and connection.execute(_SOME_ANSWER, {"study": known.id}).first() is not None:
            raise ConfigError(
                "the study {name!r} in '{shown}' has answers, and with them {broken} cannot change any more, "
                "also not with --accept. Give the changed study a new name.",
                name=design.name,
                shown=self.database.shown,
                broken=broken,
            )

    def study(self, name: str) -> Study:
        """Return a study of the database, as last registered."""
        with self.database.reading() as connection:
            row = connection.execute(select(STUDIES).where(STUDIES.c.name == name)).mappings().first()
        if row is None:
            raise ConfigError(
                "there is no study {name!r} in '{shown}'; {hint}",
                name=name,
                shown=self.database.shown,
                hint=did_you_mean(name, self.studies()),
            )
        return Study(self.database, _row(dict(row)))

    def studies(self) -> list[str]:
        """Return the names of all studies in the database, sorted."""
        with self.database.reading() as connection:
            return list(connection.execute(select(STUDIES.c.name).order_by(STUDIES.c.name)).scalars())

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Study:
    """A study in a store.

    All its methods are thread-safe, and several servers may use one database. Methods
    that depend on the time accept `now` for tests.

    Parameters
    ----------
    database, row : the database, and the study's row in it.

    Attributes
    ----------
    participants : the participants: enrolment, withdrawal, recruitment ids.
    answers : their answers, page by page.
    researchers : the researchers: passwords, sessions, logged actions.
    ratings : the ratings of the participants' reasons.
    results : the collected data: responses and counts.
    """

    def __init__(self, database: Database, row: StudyRow) -> None:
        self._database, self._row = database, row
        self.participants = Participants(database, row)
        self.answers = Answers(database)
        self.researchers = Researchers(database, row)
        self.ratings = Ratings(database, row)
        self.results = Results(database, row)

    @property
    def name(self) -> str:
        """The study's short name."""
        return self._row.name

    @property
    def secret(self) -> bytes:
        """The signing key of cookies, from the environment variable EVENHAND_STUDY_SECRET or else the database."""
        given = os.environ.get(SECRET_VARIABLE)
        if given is None:
            return self._row.secret
        if len(given) < _SHORTEST_SECRET:
            raise ConfigError(
                "{variable} must have at least {least} characters.", variable=SECRET_VARIABLE, least=_SHORTEST_SECRET
            )
        return given.encode()

    @property
    def completion_code(self) -> str:
        """The code that participants submit to be paid."""
        return self._row.completion_code

    @property
    def closed(self) -> bool:
        """Whether the study accepts no new participants."""
        with self._database.reading() as connection:
            return connection.execute(_CLOSED, {"study": self._row.id}).scalar_one() is not None

    def close(self, *, now: datetime | None = None) -> None:
        """Stop accepting new participants; enrolled participants may finish."""
        self._set_closed(seconds_of(now))

    def reopen(self) -> None:
        """Accept new participants again."""
        self._set_closed(None)

    def _set_closed(self, moment: float | None) -> None:
        with self._database.writing() as connection:
            connection.execute(update(STUDIES).where(STUDIES.c.id == self._row.id).values(closed_at=moment))


_MAKE = text(
    "INSERT INTO studies (name, kind, fingerprint, settings, secret, completion_code, created_at)"
    " VALUES (:name, :kind, :fingerprint, :settings, :secret, :completion_code, :created_at)"
    " ON CONFLICT (name) DO NOTHING"
)


def _settings(design: Design) -> str:
    points, asked = len(design.spec.scale), design.spec.recruitment
    settings = {"conditions": design.conditions, "places": design.places, "seed": design.seed, "points": points}
    people: dict[str, Any] = {"abandon_after": 3600 * asked.abandon_after, "most_people": asked.most_people}
    people |= {"about": design.spec.about.names, "numbers": design.spec.about.numbers, "quotas": asked.quotas}
    return json.dumps({**settings, **people, "parts": dict(design.parts)})


def _changed(settings: Mapping[str, Any], design: Design) -> str:
    """Return the settings and files that differ from the registered study, in brackets."""
    before, after = settings.get("parts", {}), design.parts
    changed = [name for name in dict.fromkeys((*after, *before)) if before.get(name) != after.get(name)]
    return f" (changed: {', '.join(changed)})" if before and changed else ""


def _broken(kind: str, settings: Mapping[str, Any], design: Design) -> str | None:
    """Return the part of a design that is incompatible with stored answers; None if compatible."""
    if kind != design.kind:
        return f"the kind ({kind} before, {design.kind} now)"
    points = len(design.spec.scale)
    if settings["points"] != points:
        return f"the number of points of the scale ({settings['points']} before, {points} now)"
    gone = [name for name in settings["conditions"] if name not in design.conditions]
    if gone:
        return f"the conditions that people are in ({', '.join(map(repr, gone))} missing now)"
    before, after = settings["places"], design.places
    if before is not None and after is not None and after < before:
        return f"the number of critics to a smaller one ({before} before, {after} now)"
    return None


def _row(row: Mapping[str, Any]) -> StudyRow:
    held = {**json.loads(row["settings"]), **row, "secret": bytes(row["secret"])}
    return StudyRow(**{field.name: held[field.name] for field in fields(StudyRow)})


# Backup ---------------------------------------------------------------------------------------------------------------


_PART = ".evenhand-part"
"""The file name ending of an unfinished backup."""


def backup(url: str, target: str | os.PathLike[str]) -> Path:
    """Copy a database, even while in use, to a new file; return its path.

    On SQLite the copy is a database file. On PostgreSQL it is a `pg_dump` archive, to be restored by `pg_restore`.
    The file is either complete or absent, and readable only by its owner. Leftover files of interrupted earlier
    backups in its folder are deleted.

    Parameters
    ----------
    url : the database, as for `open_store`.
    target : the file to write.
    """
    source, file = parse_url(url), Path(target)
    if file.exists():
        raise ConfigError("'{file}' exists already; name another file for the backup.", file=file)
    if not file.parent.is_dir():
        raise ConfigError("the folder of '{file}' does not exist; make it first.", file=file)
    try:
        _remove_leftovers(file.parent)
        handle, part = tempfile.mkstemp(prefix=f".{file.name}.", suffix=_PART, dir=file.parent)  # private to the owner
        try:
            _hold(handle)
            if source.get_backend_name() == "sqlite":
                _copy_sqlite(source, Path(part))
            else:
                _dump_postgres(source, Path(part))
            os.fsync(handle)
            os.replace(part, file)
        finally:
            os.close(handle)
            with suppress(FileNotFoundError):
                os.unlink(part)
    except OSError as error:
        raise StoreError(
            "the backup '{file}' cannot be written: {why}.", file=file, why=error.strerror or error
        ) from None
    return file


def _hold(handle: int) -> bool:
    """Lock an unfinished backup until this process ends; return False if another process has locked it."""
    if sys.platform == "win32":  # where a file in use cannot be deleted anyway
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_leftovers(folder: Path) -> None:
    """Delete the files of interrupted backups in a folder, since they contain the study's data."""
    for part in folder.glob(f".*{_PART}"):
        with suppress(OSError):
            handle = os.open(part, os.O_RDWR)
            try:
                if _hold(handle):
                    part.with_name(f"{part.name}-journal").unlink(missing_ok=True)
                    part.unlink()
            finally:
                os.close(handle)


def _copy_sqlite(source: URL, part: Path) -> None:
    path = Path(source.database or "")
    if not path.is_file():
        raise ConfigError("there is no database '{path}'.", path=path)
    try:
        with (
            closing(sqlite3.connect(read_uri(os.path.abspath(path)), uri=True, timeout=30)) as old,
            closing(sqlite3.connect(part)) as new,
        ):
            old.backup(new)
            # A single file that can be moved and opened anywhere.
            new.execute("PRAGMA journal_mode = DELETE")
            sound = new.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.Error as error:
        raise StoreError("the database '{database}' cannot be copied: {why}.", database=path, why=error) from None
    if sound != "ok":
        raise StoreError("the database '{database}' is damaged: {why}.", database=path, why=sound.splitlines()[0])


def _dump_postgres(source: URL, part: Path) -> None:
    program = shutil.which("pg_dump")
    if program is None:
        raise StoreError(
            "a backup of PostgreSQL needs the program pg_dump, which is not installed; it comes with PostgreSQL's "
            "client programs."
        )
    # Pass the password in the environment: every user of a machine can see the arguments of programs.
    plain = URL.create(
        "postgresql", source.username, host=source.host, port=source.port, database=source.database, query=source.query
    ).render_as_string()
    environment = {**os.environ, **({"PGPASSWORD": source.password} if source.password else {})}
    command = [program, "--format=custom", "--no-owner", "--no-password", f"--file={part}", f"--dbname={plain}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise StoreError("pg_dump could not copy the database: {why}.", why=said.rstrip("."))
