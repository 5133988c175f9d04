"""Engines and transactions: SQLite or PostgreSQL by URL, one writer at a time on SQLite, nothing acknowledged unsynced.

Pages go a shorter way than all else, by `Direct`. Measured with `benchmarks/speed/study_load.py` on SQLite (2 shared
cores): an answer and the next page cost the server 2.9 ms of CPU by it, and 3.6 to 3.9 ms by SQLAlchemy's connections
at the same rate, with which one process would not hold 300 answers a second.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import Any

import psycopg
from sqlalchemy import URL, ClauseElement, Connection, Dialect, Engine, create_engine, event, exc, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection, IsolationLevel
from sqlalchemy.exc import DBAPIError, DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool
from sqlalchemy.util.concurrency import in_greenlet

from evenhand.errors import ConfigError
from evenhand.study.store import sqlite
from evenhand.study.store.pipeline import Pipeline, Rows
from evenhand.study.store.records import Busy, StoreError
from evenhand.study.store.sqlite import BUSY_SECONDS

_BEGIN, _COMMIT, _ROLLBACK = text("BEGIN"), text("COMMIT"), text("ROLLBACK")
_BEGIN_WRITE, _LAZILY = text("BEGIN IMMEDIATE"), text("SET LOCAL synchronous_commit = off")
_TIDY_MILLISECONDS = 200
_TIDY_PAUSE = 0.1
_IMPATIENT = text(f"PRAGMA busy_timeout = {sqlite.IMPATIENT_MILLISECONDS}")
_PATIENT = text(f"PRAGMA busy_timeout = {1_000 * BUSY_SECONDS}")
_IDLE_SECONDS = 5
_CONNECTIONS = 64
"""To SQLite: more than the threads of a server, so nobody waits for a connection, only for the writer's turn."""
_POSTGRES_CONNECTIONS = 10
_PAGE_CONNECTIONS = 8
"""To PostgreSQL, for each process: 20 with the two that pages share. A server of PostgreSQL has 100 for everybody."""
_POSTGRES_OPTIONS = {"connect_timeout": 10, "application_name": "evenhand"}
_COMPILED: dict[tuple[str, ClauseElement], tuple[str, tuple[str, ...]]] = {}


class Direct:
    """A connection of the driver that knows `execute` and the results that pages need, as SQLAlchemy's do.

    Only statements that are made once and kept may be given to it, and every parameter must be named.
    """

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        self._cursor, self._dialect = connection.cursor(), dialect

    def execute(self, statement: ClauseElement, values: Mapping[str, Any]) -> Rows:
        """Send a statement."""
        key = self._dialect.name, statement
        known = _COMPILED.get(key)
        if known is None:
            compiled = statement.compile(dialect=self._dialect)
            known = _COMPILED[key] = str(compiled), tuple(getattr(compiled, "positiontup", None) or ())
        sql, names = known
        # SQLite takes parameters by their place, psycopg by their name.
        self._cursor.execute(sql, [values[name] for name in names] if self._dialect.positional else values)
        return Rows(self._cursor)

    def close(self) -> None:
        """Give up the cursor."""
        self._cursor.close()


class Database:
    """A database with its connections.

    Parameters
    ----------
    url : where it is; see `parse_url`.
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self.sqlite = url.get_backend_name() == "sqlite"
        self.shown = url.database or "" if self.sqlite else _without_secrets(url)
        self._lock: threading.Lock | None = None
        self._log: sqlite.SharedSync | None = None
        self._path = ""
        self.engine = self._sqlite_engine() if self.sqlite else self._postgres_engine()
        self._once: Engine
        self._snapshot: Engine
        self._write: Engine
        self._pages = self.engine
        self._lines: tuple[Pipeline, Pipeline] | None = None
        if self.sqlite:
            self._once = self.engine.execution_options(begin="")
            self._snapshot = self.engine.execution_options(begin="BEGIN")
            self._write = self.engine.execution_options(begin="BEGIN IMMEDIATE")
        else:
            self._once = self.engine.execution_options(isolation_level="AUTOCOMMIT")
            self._snapshot = self.engine.execution_options(isolation_level="REPEATABLE READ")
            self._write = self.engine
            self._pages = self._postgres_engine("AUTOCOMMIT", _PAGE_CONNECTIONS)
            # Two, for reads do not wait until what was written is on the disk.
            address = self.url.set(drivername="postgresql").render_as_string(hide_password=False)
            reads, writes = (Pipeline(address, BUSY_SECONDS, **_POSTGRES_OPTIONS) for _ in range(2))
            self._lines = reads, writes

    def _postgres_engine(
        self, isolation: IsolationLevel = "READ COMMITTED", connections: int = _POSTGRES_CONNECTIONS
    ) -> Engine:
        engine = create_engine(
            self.url,
            pool_size=connections,
            max_overflow=0,
            pool_timeout=BUSY_SECONDS,
            hide_parameters=True,
            isolation_level=isolation,
            connect_args=_POSTGRES_OPTIONS,
        )
        event.listen(engine, "checkin", _note_use)
        event.listen(engine, "checkout", _check_idle)
        return engine

    def _sqlite_engine(self) -> Engine:
        path = os.path.abspath(self.url.database or "")
        self._path = os.path.realpath(path)
        self._lock, self._log = sqlite.writers_queue(self._path)
        sqlite.make_private(path, self.shown)
        engine = create_engine(
            self.url,
            poolclass=QueuePool,
            pool_size=16,
            max_overflow=_CONNECTIONS - 16,
            hide_parameters=True,
            connect_args={"isolation_level": None, "check_same_thread": False, "timeout": BUSY_SECONDS},
        )
        event.listen(engine, "connect", sqlite.prepare)
        event.listen(engine, "begin", sqlite.begin)
        return engine

    @contextmanager
    def reading(self, *, snapshot: bool = False) -> Iterator[Connection]:
        """Give a connection for one query, or for several that see the same state (`snapshot`)."""
        with self._as_sentences(), (self._snapshot if snapshot else self._once).connect() as connection:
            yield connection

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Connection]:
        """Give a connection for one transaction; on return it is stored, and on the disk unless `durable` is False."""
        with self._as_sentences():
            with self._lock or nullcontext(), self._write.begin() as connection:
                if not (durable or self.sqlite):
                    connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
                yield connection
            if self._log is not None and durable:
                self._log.wait()

    @contextmanager
    def page_reading(self) -> Iterator[Direct | Pipeline]:
        """Give the shortest way to the database, for one statement, which is a transaction by itself."""
        with self._as_sentences():
            if self._lines is not None and in_greenlet():
                yield self._lines[0]
                return
            with self._direct() as direct:
                yield direct

    @contextmanager
    def page_change(self) -> Iterator[Direct | Pipeline]:
        """Give the shortest way to PostgreSQL, for one statement that changes something; it is on the disk then."""
        if self._lines is None or not in_greenlet():
            with self.page_reading() as direct:
                yield direct
            return
        with self._as_sentences():
            yield self._lines[1]

    @contextmanager
    def page_writing(self, *, durable: bool = True, wait: bool = True) -> Iterator[Direct]:
        """Give what a page writes with: one transaction, as `writing`, the shortest way there is.

        With `wait` False it raises `Busy`, before anything is done, where it is not its turn on SQLite, and on
        PostgreSQL always: a transaction of several statements holds up whoever waits for it.
        """
        if not (wait or self.sqlite):
            raise Busy("the database '{database}' has to be waited for.", database=self.shown)
        with self._as_sentences():
            with self._turn(wait), self._direct() as direct:
                _begin_writing(direct, wait, self.sqlite)
                try:
                    if not (durable or self.sqlite):
                        direct.execute(_LAZILY, {})
                    yield direct
                    direct.execute(_COMMIT, {})
                except BaseException:
                    with suppress(sqlite3.Error, psycopg.Error):
                        direct.execute(_ROLLBACK, {})
                    raise
            if durable and self._log is not None:
                self._log.wait()

    @contextmanager
    def _turn(self, wait: bool) -> Iterator[None]:
        if self._lock is None:
            yield
            return
        if not self._lock.acquire(blocking=wait):
            raise Busy("the database '{database}' is being written.", database=self.shown)
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def _direct(self) -> Iterator[Direct]:
        held = self._pages.raw_connection()
        try:
            with closing(Direct(held.driver_connection, self._pages.dialect)) as direct:
                yield direct
        except psycopg.OperationalError:
            held.invalidate()  # the server went away, or was started anew
            raise
        finally:
            held.close()

    def sync(self) -> None:
        """Return when every transaction that was over before this call is on the disk."""
        if self._log is not None:
            with self._as_sentences():
                self._log.wait()

    @contextmanager
    def _as_sentences(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise StoreError(
                "the database '{database}' cannot be used: {why}.", database=self.shown, why=_reason(error)
            ) from None
        except (sqlite3.Error, psycopg.Error) as error:
            refused = isinstance(error, sqlite3.IntegrityError | psycopg.IntegrityError | psycopg.DataError)
            said = "it refused a value" if refused else _told(str(error))
            raise StoreError(
                "the database '{database}' cannot be used: {why}.", database=self.shown, why=said
            ) from None
        except OSError as error:
            raise StoreError(
                "the database '{database}' cannot be written: {why}.", database=self.shown, why=error.strerror or error
            ) from None

    def tidy_log(self, seconds: float = 0.0) -> bool:
        """Bring the log of SQLite into the database and empty it, so that what was erased is not in it either.

        Return whether it is empty. A read that began before, an export perhaps, holds the log; writers wait for each
        try, so a try is short and there are pauses between them.

        Parameters
        ----------
        seconds : how long to try again.
        """
        if not self.sqlite:
            return True
        until = time.monotonic() + seconds
        while True:
            if self._try_to_tidy():
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(_TIDY_PAUSE)

    def _try_to_tidy(self) -> bool:
        if not sqlite.size_of(f"{self._path}-wal"):
            return True
        with self.reading() as connection:
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {_TIDY_MILLISECONDS}")
            try:
                busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
            except exc.OperationalError:  # somebody else empties the log at this moment
                return False
            finally:
                connection.exec_driver_sql(f"PRAGMA busy_timeout = {1_000 * BUSY_SECONDS}")
        return not busy

    def close(self, *, tidy: bool = True) -> None:
        """Close all connections, by default after `tidy_log`."""
        with suppress(StoreError):
            if tidy:
                self.tidy_log()
        self.engine.dispose()
        self._pages.dispose()
        for line in self._lines or ():
            line.close()
        if self._log is not None:
            self._log.close()


def parse_url(url: str) -> URL:
    """Return the address of a database: a path or sqlite:/// URL of a file, or a postgresql:// URL.

    Examples
    --------
    >>> parse_url("study.db").render_as_string()
    'sqlite:///study.db'
    >>> parse_url("postgresql://anna:secret@db/study").render_as_string()
    'postgresql+psycopg://anna:***@db/study'
    """
    how = "give the path of a file, such as study.db, or postgresql://USER:PASSWORD@HOST/NAME"
    if "://" not in url:
        parsed = URL.create("sqlite", database=url)
    else:
        try:
            parsed = make_url(url)
        except (exc.ArgumentError, ValueError):
            raise ConfigError(
                "the address of the database cannot be read; {how}.",
                how=how,
            ) from None
    backend = parsed.drivername.split("+")[0]
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:" or parsed.query:
            raise ConfigError(
                "a study on SQLite needs the path of a file and nothing else; {how}.",
                how=how,
            )
        return parsed.set(drivername="sqlite")
    if backend not in ("postgresql", "postgres"):
        raise ConfigError(
            "a study runs on SQLite or PostgreSQL, not on {backend!r}; {how}.",
            backend=backend,
            how=how,
        )
    # libpq also takes the password as an option; there it would be shown and passed on.
    password = parsed.password or parsed.query.get("password")
    plain = parsed.difference_update_query(["password"]).set(drivername="postgresql+psycopg")
    return plain.set(password=password) if isinstance(password, str) else plain


def _without_secrets(url: URL) -> str:
    plain = URL.create("postgresql", url.username, host=url.host, port=url.port, database=url.database)
    return plain.render_as_string()


def _begin_writing(direct: Direct, wait: bool, in_file: bool) -> None:
    """Begin a transaction that writes; `Busy` where another process writes and we do not want to wait for it."""
    if wait or not in_file:
        direct.execute(_BEGIN_WRITE if in_file else _BEGIN, {})
        return
    direct.execute(_IMPATIENT, {})
    try:
        direct.execute(_BEGIN_WRITE, {})
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        raise Busy("another process writes to the database.") from None
    finally:
        direct.execute(_PATIENT, {})


def _note_use(_connection: object, record: ConnectionPoolEntry) -> None:
    record.info["used"] = time.monotonic()


def _check_idle(connection: DBAPIConnection, record: ConnectionPoolEntry, _proxy: object) -> None:
    """Replace a connection that broke while it lay idle; asking before every use would cost a round trip each."""
    if time.monotonic() - record.info.get("used", time.monotonic()) > _IDLE_SECONDS:
        try:
            with closing(connection.cursor()) as cursor:
                cursor.execute("SELECT 1")
            connection.rollback()
        except Exception as error:
            raise DisconnectionError from error


def _reason(error: SQLAlchemyError) -> str:
    """Return what a driver said, without values that people gave or a password."""
    if isinstance(error, exc.IntegrityError | exc.DataError):
        return "it refused a value"
    return _told(str(error.orig) if isinstance(error, DBAPIError) else str(error))


def _told(said: str) -> str:
    """Return the first line of what a driver said, or what to do where another process holds a file."""
    if said.startswith("database is locked"):
        return f"another process has held it for {BUSY_SECONDS} s; stop that process, or wait until it is done"
    return (said.strip().splitlines() or ["no reason was given"])[0].rstrip(". ")
