"""Statements of many pages on one connection to PostgreSQL, sent together: the event loop waits, and no thread does.

While the answer to one batch is on its way, the next one gathers. A batch is one transaction, so answers that arrive
together share a commit, as on SQLite; a batch with a statement that fails is sent again one statement at a time.
An answer and the next page cost the server 2.4 to 3.0 ms of CPU so, and PostgreSQL 0.7; with a cursor and a thread for
each page 4.1 and 1.3 (least of six rounds of 400 answers, two shared cores).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result
from sqlalchemy import ClauseElement, Dialect
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.util.concurrency import await_only

_MOST = 64
"""Statements of a batch: nobody waits for more than these."""
_READ: dict[int, Callable[[str], Any]] = dict.fromkeys((20, 21, 23), int) | {701: float}
"""How values are read, by the number that PostgreSQL gives a type: whole numbers and double precision; else text."""
_DIALECT: Dialect = PGDialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]


class Statement(NamedTuple):
    """A statement as PostgreSQL knows it: its name there, its text, and its parameters in order."""

    name: bytes
    sql: bytes
    parameters: tuple[str, ...]


_STATEMENTS: dict[ClauseElement, Statement] = {}


class Job(NamedTuple):
    """A statement that somebody waits for."""

    statement: Statement
    values: Sequence[bytes | None]
    result: asyncio.Future[Fetched]
    alone: bool = False


class Fetched:
    """What PostgreSQL returned, read as from a cursor."""

    def __init__(self, result: pq.abc.PGresult) -> None:
        read = [_READ.get(result.ftype(column), str) for column in range(result.nfields)]
        self.rowcount = int(result.command_tuples or 0)
        self._rows = deque(
            tuple(
                None if (value := result.get_value(row, column)) is None else kind(value.decode())
                for column, kind in enumerate(read)
            )
            for row in range(result.ntuples)
        )

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None."""
        return self._rows.popleft() if self._rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows that are left."""
        rows, self._rows = [*self._rows], deque()
        return rows


class Rows:
    """What a statement returned; to be read before the next statement is sent."""

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

    def first(self) -> tuple[Any, ...] | None:
        """Return the first row, or None."""
        row: tuple[Any, ...] | None = self._cursor.fetchone()
        return row

    def one(self) -> tuple[Any, ...]:
        """Return the first row, which must be there."""
        row = self.first()
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


class Pipeline:
    """A connection that carries the statements of many pages.

    Parameters
    ----------
    address, options : where PostgreSQL is, as psycopg takes it.
    patience : seconds after which a batch without an answer has failed, and its connection with it.
    """

    def __init__(self, address: str, patience: float, **options: Any) -> None:
        self._address, self._patience, self._options = address, patience, options
        self._waiting: deque[Job] = deque()
        self._sent: deque[Job] = deque()
        self._results: list[pq.abc.PGresult] = []
        self._prepared: set[bytes] = set()
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._socket, self._forget = -1, False

    def execute(self, statement: ClauseElement, values: Mapping[str, Any]) -> Rows:
        """Send a statement and return its result; only within `greenlet_spawn`, which lets others run meanwhile."""
        return Rows(await_only(self._execute(statement, values)))

    async def _execute(self, statement: ClauseElement, values: Mapping[str, Any]) -> Fetched:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self.close()
            self._loop = loop
        known = _STATEMENTS.get(statement) or _compiled(statement)
        sent = [None if values[name] is None else str(values[name]).encode() for name in known.parameters]
        job = Job(known, sent, loop.create_future())
        if self._connection is not None and self._connection.pgconn.status != pq.ConnStatus.OK:
            self._lose(psycopg.OperationalError("the connection was lost"))
        self._waiting.append(job)
        if self._connection is None:
            await self._connect()
        self._send()
        return await job.result

    async def _connect(self) -> None:
        """Connect, or wait for somebody who does; everybody who waits fails together."""
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.ensure_future(self._open())
        try:
            await asyncio.shield(self._connecting)
        except psycopg.Error as error:
            self._fail(error)

    async def _open(self) -> None:
        made = await psycopg.AsyncConnection.connect(self._address, autocommit=True, **self._options)
        made.pgconn.nonblocking = 1
        made.pgconn.enter_pipeline_mode()
        self._connection, self._prepared, self._forget = made, set(), False
        self._socket = made.pgconn.socket
        asyncio.get_running_loop().add_reader(self._socket, self._receive)

    def _send(self) -> None:
        """Send what waits, unless a batch is under way."""
        if self._connection is None or self._loop is None or self._sent or not self._waiting:
            return
        wire = self._connection.pgconn
        try:
            if self._forget:
                wire.send_query_params(b"DEALLOCATE ALL", None)
                wire.pipeline_sync()
                self._prepared, self._forget = set(), False
            for job in self._next_batch():
                if job.statement.name not in self._prepared:
                    wire.send_prepare(job.statement.name, job.statement.sql)
                    self._prepared.add(job.statement.name)
                wire.send_query_prepared(job.statement.name, job.values)
            wire.pipeline_sync()
            self._deadline = self._loop.call_later(self._patience, self._give_up)
            self._flush()
        except psycopg.Error as error:
            self._lose(error)

    def _next_batch(self) -> Iterator[Job]:
        """Yield the jobs that are sent together; one that wants to be alone is."""
        while self._waiting and len(self._sent) < _MOST:
            if self._sent and (self._sent[0].alone or self._waiting[0].alone):
                return
            self._sent.append(self._waiting.popleft())
            yield self._sent[-1]

    def _give_up(self) -> None:
        self._lose(psycopg.OperationalError(f"no answer for {self._patience:g} s"))

    def _flush(self) -> None:
        """Send as much as the network takes, and the rest when it takes more."""
        if self._connection is None or self._loop is None:
            return
        wire = self._connection.pgconn
        try:
            if wire.flush():
                self._loop.add_writer(self._socket, self._flush)
            else:
                self._loop.remove_writer(self._socket)
        except psycopg.Error as error:
            self._lose(error)

    def _receive(self) -> None:
        """Read what has come; at the end of a batch hand out its results, and send the next."""
        if self._connection is None:
            return
        wire = self._connection.pgconn
        try:
            wire.consume_input()
            while self._sent and not wire.is_busy():
                result = wire.get_result()
                if wire.status != pq.ConnStatus.OK:  # libpq tells it once, and has closed the socket then
                    raise psycopg.OperationalError(wire.get_error_message() or "the connection was lost")
                if result is None:
                    continue
                if result.status == pq.ExecStatus.PIPELINE_SYNC:
                    self._end_batch()
                elif result.status != pq.ExecStatus.COMMAND_OK or result.command_status not in _SILENT:
                    self._results.append(result)
        except psycopg.Error as error:
            self._lose(error)
            return
        self._send()

    def _end_batch(self) -> None:
        results, self._results = self._results, []
        if not results:  # of what was sent to forget statements
            return
        self._stop_clock()
        sent, self._sent = self._sent, deque()
        bad = next((one for one in results if one.status == pq.ExecStatus.FATAL_ERROR), None)
        if bad is None:
            for job, result in zip(sent, results, strict=True):
                if not job.result.done():
                    job.result.set_result(Fetched(result))
            return
        self._forget = True
        if len(sent) == 1:
            if not sent[0].result.done():
                sent[0].result.set_exception(error_from_result(bad))
            return
        self._waiting.extendleft(job._replace(alone=True) for job in reversed(sent))

    def _lose(self, error: psycopg.Error) -> None:
        """Give up a connection that broke, with all who wait for it; the next statement opens another."""
        self._disconnect()
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        for job in (*self._sent, *self._waiting):
            if not job.result.done():
                job.result.set_exception(error)
        self._sent.clear()
        self._waiting.clear()

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _disconnect(self) -> None:
        self._stop_clock()
        held, self._connection, self._results = self._connection, None, []
        if held is None:
            return
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
        held.pgconn.finish()

    def close(self) -> None:
        """Close the connection; the next statement opens another."""
        self._disconnect()
        self._sent.clear()
        self._waiting.clear()
        self._connecting = None


_SILENT = (b"PREPARE", b"DEALLOCATE ALL", b"")
"""What is answered to statements of ours that nobody waits for."""


def _compiled(statement: ClauseElement) -> Statement:
    compiled = statement.compile(dialect=_DIALECT)
    names = tuple(getattr(compiled, "positiontup", None) or ())
    made = Statement(b"evenhand_%d" % len(_STATEMENTS), str(compiled).encode(), names)
    return _STATEMENTS.setdefault(statement, made)
