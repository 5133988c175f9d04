"""The tables of the database, and how an older database is brought up to them.

Times are seconds since 1970 in UTC, so that both databases hold the same numbers. Each revision is a function; they run
in order, from the revision that the database has: under a lock, in one transaction, all or nothing. A test compares the
tables that they lead to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
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
    Table,
    Text,
    inspect,
    text,
)
from sqlalchemy.schema import UniqueConstraint

from evenhand.study.store.database import Database
from evenhand.study.store.records import StoreError

if TYPE_CHECKING:
    from alembic.operations import Operations


METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
ID = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a column of type INTEGER."""


def required(**kinds: Any) -> list[Column[Any]]:
    """Return columns that always hold a value, each with its type."""
    return [Column(name, kind, nullable=False) for name, kind in kinds.items()]


def optional(**kinds: Any) -> list[Column[Any]]:
    """Return columns that may be empty, each with its type."""
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
    # `since` on a steady clock, which one, and how far the clock on the wall went ahead of it so far (None: unknown).
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
"""The only table that says who somebody is elsewhere; emptied by one command."""

TRAITS = Table(
    "traits",
    METADATA,
    Column("participant_id", ID, ForeignKey("participants.id"), primary_key=True, autoincrement=False),
    Column("name", Text, primary_key=True),
    *required(value=Text),
    sqlite_with_rowid=False,
)
"""What people said about themselves, by question; since revision 0005."""

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
"""What raters gave to the reasons that people wrote, by the step of the answer; since revision 0006."""

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
"""Sessions of researchers, by the SHA-256 of their token: a copy of the database opens none."""

ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("study_id", ID, ForeignKey("studies.id"), primary_key=True, autoincrement=False),
    Column("digest", Text, primary_key=True),
    *required(started_at=Double, number=Integer),
)
"""Attempts to log in, by a keyed hash of name or address: no address is stored."""

ACTIONS = Table(
    "actions",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("study_id", ID, ForeignKey("studies.id"), nullable=False),
    *required(at=Double, researcher=Text, action=Text, detail=Text),
    Index(None, "study_id", "at"),
)
"""What researchers did; since revision 0002."""


# Revisions ------------------------------------------------------------------------------------------------------------


VERSION_TABLE = "evenhand_version"
_LOCK_KEY = 0x6576656E68616E64
"""Names our lock among the advisory locks of a PostgreSQL database."""


def revision_of(connection: Connection) -> str | None:
    """Return the revision of a database; None where it was never migrated."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608


def migrate(database: Database, target: str | None = None) -> None:
    """Bring a database up to a revision, by default the newest; one that is there already is left alone."""
    wanted = HEAD if target is None else target
    with database.reading() as connection:
        if revision_of(connection) == wanted:
            return
    with database.writing() as connection:
        if not database.sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
        _upgrade(connection, wanted, database.shown)


def require_current(database: Database) -> None:
    """Raise a `StoreError` unless the database has the schema of this version."""
    with database.reading() as connection:
        if revision_of(connection) != HEAD:
            raise StoreError(
                f"the database '{database.shown}' is not of this version; start the server once to bring it up."
            )


def _upgrade(connection: Connection, target: str, shown: str) -> None:
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    current, names = revision_of(connection), list(REVISIONS)
    if current is not None and current not in REVISIONS:
        raise StoreError(
            "the database '{database}' was made by another version of evenhand; install the newest one.", database=shown
        )
    op = Operations(MigrationContext.configure(connection, opts={"target_metadata": METADATA}))
    if current is None:
        version = sa.Column("version_num", sa.String(32), nullable=False)
        op.create_table(VERSION_TABLE, version, sa.PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"))
    done = 0 if current is None else names.index(current) + 1
    for name in names[done : names.index(target) + 1]:
        REVISIONS[name](op)
    connection.execute(text(f"DELETE FROM {VERSION_TABLE}"))  # noqa: S608
    connection.execute(text(f"INSERT INTO {VERSION_TABLE} (version_num) VALUES (:name)"), {"name": target})  # noqa: S608


def _reference(column: str, table: str, *, key: bool = False) -> sa.Column[int]:
    return sa.Column(column, ID, sa.ForeignKey(f"{table}.id"), primary_key=key, nullable=False, autoincrement=False)


def _first_schema(op: Operations) -> None:
    """Make the tables: studies, participants, answers, drafts and researchers."""
    op.create_table(
        "studies",
        sa.Column("id", ID, primary_key=True),
        *required(name=sa.Text, kind=sa.Text, fingerprint=sa.Text, settings=sa.Text, secret=sa.LargeBinary),
        *required(completion_code=sa.Text, created_at=sa.Double),
        *optional(closed_at=sa.Double),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "participants",
        sa.Column("id", ID, primary_key=True),
        _reference("study_id", "studies"),
        *required(enrolment=sa.Text, code=sa.Text, token=sa.Text, condition=sa.Text, place=sa.Integer),
        *required(language=sa.Text, reached=sa.Integer, since=sa.Double, enrolled_at=sa.Double),
        *required(seen_at=sa.Double),
        *optional(finished_at=sa.Double, withdrawn_at=sa.Double),
        sa.UniqueConstraint("study_id", "enrolment"),
        sa.UniqueConstraint("study_id", "code"),
        sa.UniqueConstraint("study_id", "token"),
    )
    op.create_index(
        op.f("ix_participants_study_id_condition_place"), "participants", ["study_id", "condition", "place"]
    )
    op.create_table(
        "recruits",
        _reference("participant_id", "participants", key=True),
        _reference("study_id", "studies"),
        *required(recruitment_id=sa.Text),
        sa.UniqueConstraint("study_id", "recruitment_id"),
    )
    _make_answers(op, sa.Column("seconds", sa.Double, nullable=False))
    op.create_table(
        "drafts",
        _reference("participant_id", "participants", key=True),
        sa.Column("step", sa.Text, primary_key=True),
        *required(fields=sa.Text, saved_at=sa.Double),
        sqlite_with_rowid=False,
    )
    _make_researchers(op)


def _make_answers(op: Operations, seconds: sa.Column[float]) -> None:
    op.create_table(
        "answers",
        _reference("participant_id", "participants", key=True),
        sa.Column("step", sa.Text, primary_key=True),
        *required(step_index=sa.Integer, kind=sa.Text),
        *optional(item=sa.Text, subject=sa.Text, position=sa.Integer, check_number=sa.Integer),
        seconds,
        *required(payload=sa.Text, revision=sa.Integer, saved_at=sa.Double),
        sqlite_with_rowid=False,
    )


def _make_researchers(op: Operations) -> None:
    op.create_table(
        "researchers",
        _reference("study_id", "studies", key=True),
        sa.Column("name", sa.Text, primary_key=True),
        *required(password_hash=sa.Text, changed_at=sa.Double),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", sa.Text, primary_key=True),
        _reference("study_id", "studies"),
        *required(name=sa.Text, opened_at=sa.Double, expires_at=sa.Double),
    )
    op.create_table(
        "attempts",
        _reference("study_id", "studies", key=True),
        sa.Column("digest", sa.Text, primary_key=True),
        *required(started_at=sa.Double, number=sa.Integer),
    )


def _action_log(op: Operations) -> None:
    """Make the log of what researchers did, empty."""
    op.create_table(
        "actions",
        sa.Column("id", ID, primary_key=True),
        _reference("study_id", "studies"),
        *required(at=sa.Double, researcher=sa.Text, action=sa.Text, detail=sa.Text),
    )
    op.create_index(op.f("ix_actions_study_id_at"), "actions", ["study_id", "at"])


def _changed_studies(op: Operations) -> None:
    """Add the design that people were enrolled with, unknown for who is there; let an answer's seconds be missing."""
    op.add_column("participants", sa.Column("fingerprint", sa.Text))
    if op.get_context().dialect.name != "sqlite":
        op.alter_column("answers", "seconds", nullable=True)
        return
    # SQLite changes no column: the answers move into a new table.
    op.rename_table("answers", "old_answers")
    _make_answers(op, sa.Column("seconds", sa.Double))
    columns = (
        "participant_id, step, step_index, kind, item, subject, position, check_number, seconds, payload, revision,"
        " saved_at"
    )
    op.execute(f"INSERT INTO answers ({columns}) SELECT {columns} FROM old_answers")  # noqa: S608
    op.drop_table("old_answers")


def _steady_clock(op: Operations) -> None:
    """Add what times are measured with; unknown for who is there."""
    for column in optional(steady=sa.Double, clock=sa.Text, drift=sa.Double):
        op.add_column("participants", column)


def _about_people(op: Operations) -> None:
    """Make the table of what people said about themselves, empty."""
    op.create_table(
        "traits",
        _reference("participant_id", "participants", key=True),
        sa.Column("name", sa.Text, primary_key=True),
        *required(value=sa.Text),
        sqlite_with_rowid=False,
    )


def _rated_reasons(op: Operations) -> None:
    """Make the table of ratings of reasons, empty."""
    op.create_table(
        "ratings",
        _reference("participant_id", "participants", key=True),
        sa.Column("step", sa.Text, primary_key=True),
        sa.Column("rater", sa.Text, primary_key=True),
        *optional(score=sa.Integer, left_out=sa.Text),
        *required(saved_at=sa.Double),
        sqlite_with_rowid=False,
    )


REVISIONS: dict[str, Callable[[Operations], None]] = {
    "0001": _first_schema,
    "0002": _action_log,
    "0003": _changed_studies,
    "0004": _steady_clock,
    "0005": _about_people,
    "0006": _rated_reasons,
}
"""The revisions by name, oldest first."""
HEAD = list(REVISIONS)[-1]
"""The newest revision."""
