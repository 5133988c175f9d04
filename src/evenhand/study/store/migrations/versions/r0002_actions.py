"""A log of what researchers did."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the log, empty."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "actions",
        sa.Column("id", number, primary_key=True),
        sa.Column("study_id", number, sa.ForeignKey("studies.id"), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("researcher", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_index(op.f("ix_actions_study_id_at"), "actions", ["study_id", "at"])
