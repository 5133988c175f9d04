"""The tables of the database. Times are seconds since 1970 in UTC, so that both databases hold the same numbers."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
_ID = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a column of type INTEGER."""

STUDIES = Table(
    "studies",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("secret", LargeBinary, nullable=False),
    Column("completion_code", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("closed_at", Double),
)

PARTICIPANTS = Table(
    "participants",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("study_id", _ID, ForeignKey("studies.id"), nullable=False),
    Column("enrolment", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("condition", Text, nullable=False),
    Column("place", Integer, nullable=False),
    Column("language", Text, nullable=False),
    Column("reached", Integer, nullable=False),
    Column("since", Double, nullable=False),
    Column("enrolled_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("withdrawn_at", Double),
    Column("fingerprint", Text),
    UniqueConstraint("study_id", "enrolment"),
    UniqueConstraint("study_id", "code"),
    UniqueConstraint("study_id", "token"),
    Index(None, "study_id", "condition", "place"),
)

RECRUITS = Table(
    "recruits",
    METADATA,
    Column("participant_id", _ID, ForeignKey("participants.id"), primary_key=True, autoincrement=False),
    Column("study_id", _ID, ForeignKey("studies.id"), nullable=False),
    Column("recruitment_id", Text, nullable=False),
    UniqueConstraint("study_id", "recruitment_id"),
)
"""The only table that says who somebody is elsewhere; emptied by one command."""

ANSWERS = Table(
    "answers",
    METADATA,
    Column("participant_id", _ID, ForeignKey("participants.id"), primary_key=True, autoincrement=False),
    Column("step", Text, primary_key=True),
    Column("step_index", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("item", Text),
    Column("subject", Text),
    Column("position", Integer),
    Column("check_number", Integer),
    Column("seconds", Double),
    Column("payload", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("saved_at", Double, nullable=False),
    sqlite_with_rowid=False,
)

DRAFTS = Table(
    "drafts",
    METADATA,
    Column("participant_id", _ID, ForeignKey("participants.id"), primary_key=True, autoincrement=False),
    Column("step", Text, primary_key=True),
    Column("fields", Text, nullable=False),
    Column("saved_at", Double, nullable=False),
    sqlite_with_rowid=False,
)

RESEARCHERS = Table(
    "researchers",
    METADATA,
    Column("study_id", _ID, ForeignKey("studies.id"), primary_key=True, autoincrement=False),
    Column("name", Text, primary_key=True),
    Column("password_hash", Text, nullable=False),
    Column("changed_at", Double, nullable=False),
)

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("study_id", _ID, ForeignKey("studies.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
)
"""Sessions of researchers, by the SHA-256 of their token: a copy of the database opens none."""

ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("study_id", _ID, ForeignKey("studies.id"), primary_key=True, autoincrement=False),
    Column("digest", Text, primary_key=True),
    Column("started_at", Double, nullable=False),
    Column("number", Integer, nullable=False),
)
"""Attempts to log in, by a keyed hash of name or address: no address is stored."""

ACTIONS = Table(
    "actions",
    METADATA,
    Column("id", _ID, primary_key=True),
    Column("study_id", _ID, ForeignKey("studies.id"), nullable=False),
    Column("at", Double, nullable=False),
    Column("researcher", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Index(None, "study_id", "at"),
)
"""What researchers did; since revision 0002."""
