"""Statements straight to the driver of the database, for the few that every page sends.

On SQLite a statement takes some microseconds, and what usually stands between costs ten times as much. The statements
are the same for both databases; each is compiled once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ClauseElement, Dialect

_COMPILED: dict[tuple[str, ClauseElement], tuple[str, tuple[str, ...]]] = {}


class Direct:
    """A connection of the driver that knows `execute` and the results that pages need, as SQLAlchemy's do.

    Only statements that are made once and kept may be given to it, and every parameter must be named.
    """

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        self._cursor, self._dialect = connection.cursor(), dialect

    def execute(self, statement: ClauseElement, values: Mapping[str, Any]) -> Found:
        """Send a statement."""
        key = self._dialect.name, statement
        known = _COMPILED.get(key)
        if known is None:
            compiled = statement.compile(dialect=self._dialect)
            known = _COMPILED[key] = str(compiled), tuple(getattr(compiled, "positiontup", None) or ())
        sql, names = known
        # SQLite takes parameters by their place, psycopg by their name.
        self._cursor.execute(sql, [values[name] for name in names] if self._dialect.positional else values)
        return Found(self._cursor)

    def close(self) -> None:
        """Give up the cursor."""
        self._cursor.close()


class Found:
    """What a statement found; to be read before the next statement is sent."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    @property
    def rowcount(self) -> int:
        """How many rows a statement changed."""
        return int(self._cursor.rowcount)

    def all(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        rows: list[tuple[Any, ...]] = self._cursor.fetchall()
        return rows

    def first(self) -> Any:
        """Return the first row, or None."""
        return self._cursor.fetchone()

    def one(self) -> Any:
        """Return the first row, which must be there."""
        row = self._cursor.fetchone()
        if row is None:
            raise LookupError("the row that a page needs is gone")
        return row

    def scalar_one(self) -> Any:
        """Return the first value of the first row, which must be there."""
        return self.one()[0]

    def scalar(self) -> Any:
        """Return the first value of the first row, or None."""
        row = self._cursor.fetchone()
        return None if row is None else row[0]
