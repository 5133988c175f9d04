"""The tables of the database.

Times are seconds since 1970 in UTC, so that both kinds of database store the same numbers.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.schema import UniqueConstraint

from evenhand.study.store.database import Database
from evenhand.study.store.records import StoreError

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
ID = BigInteger().with_variant(Integer, "sqlite")
"""The type of row ids; SQLite numbers rows automatically only in a column of type INTEGER."""


def required(**kinds: Any) -> list[Column[Any]]:
    """Return non-null columns, each with its type."""
    return [Column(name, kind, nullable=False) for name, kind in kinds.items()]


def optional(**kinds: Any) -> list[Column[Any]]:
    """Return nullable columns, each with its type."""
    return [Column(name, kind) for name, kind in kinds.items()]


STUDIES = Table(
    "studies",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    *required(kind=Text, fingerprint=Text, settings=Text, secret=LargeBinary, completion_code=Text),
    *required(created_at=Double),
    *optional(closed_at=Double),
)

PARTICIPANTS = Table(
    "participants",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("study_id", ID, ForeignKey("studies.id"), nullable=False),
    *required(enrolment=Text, code=Text, token=Text, condition=Text, place=Integer, language=Text),
    *required(reached=Integer, since=Double, enrolled_at=Double, seen_at=Double),
    *optional(finished_at=Double, withdrawn_at=Double, fingerprint=Text),
    # `since` on a monotonic clock, the clock's id, and the wall clock's total drift against it (None: unknown).
    *optional(steady=Double, clock=Text, drift=Double),
    UniqueConstraint("study_id", "enrolment"),
    UniqueConstraint("study_id", "code"),
    UniqueConstraint("study_id", "token"),
    Index(None, "study_id", "condition", "place"),
)

RECRUITS = Table(
    "recruits",
    METADATA,
    Column("participant_id", ID, ForeignKey("participants.id"), primary_key=True, autoincrement=False),
    Column("study_id", ID, ForeignKey("studies.id"), nullable=False),
    *required(recruitment_id=Text),
    UniqueConstraint("study_id", "recruitment_id"),
)
"""The only table with external ids of people; one command empties it."""

TRAITS = Table(
    "traits",
    METADATA,
    Column("participant_id", ID, ForeignKey("participants.id"), primary_key=True, autoincrement=False),
    Column("name", Text, primary_key=True),
    *required(value=Text),
    sqlite_with_rowid=False,
)
"""People's answers about themselves, by question."""

ANSWERS = Table(
    "answers",
    METADATA,
    Column("participant_id", ID, ForeignKey("participants.id"), primary_key=True, autoincrement=False),
    Column("step", Text, primary_key=True),
    *required(step_index=Integer, kind=Text),
    *optional(item=Text, subject=Text, position=Integer, check_number=Integer, seconds=Double),
    *required(payload=Text, revision=Integer, saved_at=Double),
    sqlite_with_rowid=False,
)

RATINGS = Table(
    "ratings",
    METADATA,
    Column("participant_id", ID, ForeignKey("participants.id"), primary_key=True, autoincrement=False),
    Column("step", Text, primary_key=True),
    Column("rater", Text, primary_key=True),
    *optional(score=Integer, left_out=Text),
    *required(saved_at=Double),
    sqlite_with_rowid=False,
)
"""The raters' ratings of the participants' reasons, by the step of the answer."""

DRAFTS = Table(
    "drafts",
    METADATA,
    Column("participant_id", ID, ForeignKey("participants.id"), primary_key=True, autoincrement=False),
    Column("step", Text, primary_key=True),
    *required(fields=Text, saved_at=Double),
    sqlite_with_rowid=False,
)

RESEARCHERS = Table(
    "researchers",
    METADATA,
    Column("study_id", ID, ForeignKey("studies.id"), primary_key=True, autoincrement=False),
    Column("name", Text, primary_key=True),
    *required(password_hash=Text, changed_at=Double),
)

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("study_id", ID, ForeignKey("studies.id"), nullable=False),
    *required(name=Text, opened_at=Double, expires_at=Double),
)
"""Sessions of researchers, by the SHA-256 of their token, so that a copy of the database cannot open a session."""

ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("study_id", ID, ForeignKey("studies.id"), primary_key=True, autoincrement=False),
    Column("digest", Text, primary_key=True),
    *required(started_at=Double, number=Integer),
)
"""Login attempts, by a keyed hash of name or address, so that no address is stored."""

ACTIONS = Table(
    "actions",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("study_id", ID, ForeignKey("studies.id"), nullable=False),
    *required(at=Double, researcher=Text, action=Text, detail=Text),
    Index(None, "study_id", "at"),
)
"""The researchers' logged actions."""


VERSIONS = Table("evenhand_version", METADATA, Column("version_num", String(32), primary_key=True))
"""One row with the version of the database's tables."""
VERSION = "0006"
_LOCK_KEY = 0x6576656E68616E64
"""The key of our advisory lock in a PostgreSQL database."""


def version_of(connection: Connection) -> str | None:
    """Return the version of a database's tables; None if it has no tables of evenhand."""
    if not inspect(connection).has_table(VERSIONS.name):
        return None
    return connection.execute(select(VERSIONS.c.version_num)).scalar()


def make_tables(database: Database) -> None:
    """Create the tables of a new database in one locked transaction; raise if it has another version."""
    with database.reading() as connection:
        version = version_of(connection)
    if version is None:
        with database.writing() as connection:
            if not database.sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
            version = version_of(connection)
            if version is None:
                METADATA.create_all(connection, checkfirst=False)
                connection.execute(insert(VERSIONS).values(version_num=VERSION))
                return
    if version != VERSION:
        raise StoreError(
            "the database '{database}' was made by another version of evenhand; use that version, or start again "
            "with another database.",
            database=database.shown,
        )
