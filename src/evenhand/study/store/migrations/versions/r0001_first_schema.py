"""The first schema: studies, people, answers, drafts and researchers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _reference(column: str, table: str, *, key: bool = False) -> sa.Column[int]:
    return sa.Column(column, _ID, sa.ForeignKey(f"{table}.id"), primary_key=key, nullable=False, autoincrement=False)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "studies",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("secret", sa.LargeBinary, nullable=False),
        sa.Column("completion_code", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("closed_at", sa.Double),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "participants",
        sa.Column("id", _ID, primary_key=True),
        _reference("study_id", "studies"),
        sa.Column("enrolment", sa.Text, nullable=False),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("condition", sa.Text, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("language", sa.Text, nullable=False),
        sa.Column("reached", sa.Integer, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.Column("enrolled_at", sa.Double, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.Column("finished_at", sa.Double),
        sa.Column("withdrawn_at", sa.Double),
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
        sa.Column("recruitment_id", sa.Text, nullable=False),
        sa.UniqueConstraint("study_id", "recruitment_id"),
    )
    _make_answers()
    _make_researchers()


def _make_answers() -> None:
    op.create_table(
        "answers",
        _reference("participant_id", "participants", key=True),
        sa.Column("step", sa.Text, primary_key=True),
        sa.Column("step_index", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("item", sa.Text),
        sa.Column("subject", sa.Text),
        sa.Column("position", sa.Integer),
        sa.Column("check_number", sa.Integer),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("saved_at", sa.Double, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "drafts",
        _reference("participant_id", "participants", key=True),
        sa.Column("step", sa.Text, primary_key=True),
        sa.Column("fields", sa.Text, nullable=False),
        sa.Column("saved_at", sa.Double, nullable=False),
        sqlite_with_rowid=False,
    )


def _make_researchers() -> None:
    op.create_table(
        "researchers",
        _reference("study_id", "studies", key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("password_hash", sa.Text, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", sa.Text, primary_key=True),
        _reference("study_id", "studies"),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("opened_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
    )
    op.create_table(
        "attempts",
        _reference("study_id", "studies", key=True),
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
    )
