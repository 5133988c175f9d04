"""Of each person the design that they were enrolled with; answers without a time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_COLUMNS = (
    "participant_id, step, step_index, kind, item, subject, position, check_number, seconds, payload, revision,"
    " saved_at"
)


def upgrade() -> None:
    """Add the fingerprint, unknown for who is there; let the seconds of an answer be missing."""
    op.add_column("participants", sa.Column("fingerprint", sa.Text))
    if op.get_context().dialect.name != "sqlite":
        op.alter_column("answers", "seconds", nullable=True)
        return
    # SQLite changes no column: the answers move into a new table.
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.rename_table("answers", "old_answers")
    op.create_table(
        "answers",
        sa.Column("participant_id", number, sa.ForeignKey("participants.id"), primary_key=True, autoincrement=False),
        sa.Column("step", sa.Text, primary_key=True),
        sa.Column("step_index", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("item", sa.Text),
        sa.Column("subject", sa.Text),
        sa.Column("position", sa.Integer),
        sa.Column("check_number", sa.Integer),
        sa.Column("seconds", sa.Double),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("saved_at", sa.Double, nullable=False),
        sqlite_with_rowid=False,
    )
    op.execute(f"INSERT INTO answers ({_COLUMNS}) SELECT {_COLUMNS} FROM old_answers")  # noqa: S608
    op.drop_table("old_answers")
