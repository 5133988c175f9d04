"""Bring a database up to the schema of this version: under a lock, in one transaction, all or nothing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from evenhand.study.store.database import Database
from evenhand.study.store.errors import StoreError
from evenhand.study.store.tables import METADATA

HEAD = "0003"
"""The newest revision; the tables are as `tables.py` says."""
VERSION_TABLE = "evenhand_version"
_KEY = 0x6576656E68616E64
"""Names our lock among the advisory locks of a PostgreSQL database."""
_ONE_AT_A_TIME = threading.Lock()
"""Alembic keeps the running migration in a global."""


def revision_of(connection: Connection) -> str | None:
    """Return the revision of a database; None where it was never migrated."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608


def migrate(database: Database, target: str = HEAD) -> None:
    """Bring a database up to a revision; one that is there already is left alone."""
    with database.reading() as connection:
        if revision_of(connection) == target:
            return
    with _ONE_AT_A_TIME, database.writing() as connection:
        if not database.sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _KEY})
        if revision_of(connection) != target:
            _upgrade(connection, target, database.shown)


def require_current(database: Database) -> None:
    """Raise a `StoreError` unless the database has the schema of this version."""
    with database.reading() as connection:
        if revision_of(connection) != HEAD:
            raise StoreError(
                f"the database '{database.shown}' is not of this version; start the server once to bring it up."
            )


def _upgrade(connection: Connection, target: str, shown: str) -> None:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    scripts = ScriptDirectory(str(Path(__file__).parent))

    def steps(revision: Any, _context: Any) -> Any:
        return scripts._upgrade_revs(target, revision)

    try:
        with EnvironmentContext(Config(), scripts, fn=steps) as environment:
            environment.configure(
                connection=connection, target_metadata=METADATA, version_table=VERSION_TABLE, transactional_ddl=True
            )
            environment.run_migrations()
    except CommandError:
        raise StoreError(
            f"the database '{shown}' was made by another version of evenhand; install the newest one."
        ) from None
