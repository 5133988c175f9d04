"""Database engines and transactions on SQLite or PostgreSQL; a committed transaction is on disk."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from evenhand.errors import ConfigError
from evenhand.study.store.records import ConnectionLost, StoreError

BUSY_SECONDS = 30
"""How long a statement waits for another transaction."""
CONNECTIONS = 20
"""Maximum connections of a process to PostgreSQL, whose server allows 100 in total by default."""
_SQLITE_CONNECTIONS = 64
"""Maximum connections of a process to SQLite: more than the server has threads, so that they wait only to write."""
_CONNECT_SECONDS = 5
_NETWORK_SECONDS = 10
"""Seconds after which an unreachable PostgreSQL server counts as lost."""
_POOL_SECONDS = 10
_RECYCLE_SECONDS = 1_800
_TIDY_SECONDS = 0.2
_TIDY_PAUSE = 0.1


class Database:
    """A thread-safe database and its connections.

    Parameters
    ----------
    url : its address; see `parse_url`.
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self.sqlite = url.get_backend_name() == "sqlite"
        self.shown = url.database or "" if self.sqlite else _without_secrets(url)
        self.engine = _sqlite_engine(url, self.shown) if self.sqlite else _postgres_engine(url)
        snapshot: dict[str, Any] = {"begin": "BEGIN"} if self.sqlite else {"isolation_level": "REPEATABLE READ"}
        self._snapshots = self.engine.execution_options(**snapshot)
        # Waiting writers of SQLite sleep and retry; a lock wakes the next writer at once.
        self._writers = threading.Lock() if self.sqlite else nullcontext()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection whose queries all see the same state of the database."""
        with self._as_sentences(), self._snapshots.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection for one transaction, committed to disk when the block ends."""
        with self._as_sentences(), self._writers, self.engine.begin() as connection:
            yield connection

    @contextmanager
    def _as_sentences(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            lost = isinstance(error, DBAPIError) and error.connection_invalidated
            raise (ConnectionLost if lost else StoreError)(
                "the database '{database}' cannot be used: {why}.", database=self.shown, why=_reason(error)
            ) from None

    def tidy_log(self, seconds: float = 0.0) -> bool:
        """Merge SQLite's write-ahead log into the database and empty it, so that it keeps no erased data.

        Return whether it is empty. An earlier read that is still running blocks this; writers wait for each
        attempt, so attempts are short, with pauses between them.

        Parameters
        ----------
        seconds : how long to retry.
        """
        until = time.monotonic() + seconds
        while not self._try_to_tidy():
            if time.monotonic() >= until:
                return False
            time.sleep(_TIDY_PAUSE)
        return True

    def _try_to_tidy(self) -> bool:
        path = os.path.realpath(self.url.database or "")
        try:
            if not self.sqlite or not os.path.getsize(f"{path}-wal"):
                return True
            with closing(sqlite3.connect(path, timeout=_TIDY_SECONDS)) as connection:
                busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except FileNotFoundError:  # there is no log
            return True
        except sqlite3.Error:  # another process empties the log or locks the file
            return False
        return not busy

    def close(self, *, tidy: bool = True) -> None:
        """Close all connections, by default after `tidy_log`."""
        if tidy:
            self.tidy_log()
        self.engine.dispose()


def _postgres_engine(url: URL) -> Engine:
    return create_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=_POOL_SECONDS,
        pool_pre_ping=True,
        pool_recycle=_RECYCLE_SECONDS,
        hide_parameters=True,
        connect_args={
            "connect_timeout": _CONNECT_SECONDS,
            "tcp_user_timeout": 1_000 * _NETWORK_SECONDS,
            "keepalives_idle": _NETWORK_SECONDS,
            "keepalives_interval": _NETWORK_SECONDS // 2,
            "application_name": "evenhand",
            "options": f"{url.query.get('options', '')} -c lock_timeout={1_000 * BUSY_SECONDS}",
        },
    )


def _sqlite_engine(url: URL, shown: str) -> Engine:
    path = os.path.abspath(url.database or "")
    read_only = is_read_only(path)
    if not read_only:
        _make_private(path, shown)

    def connect() -> sqlite3.Connection:
        uri = read_uri(path) if read_only else Path(path).as_uri()
        return sqlite3.connect(uri, BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True)

    engine = create_engine(
        "sqlite://",
        creator=connect,
        poolclass=QueuePool,
        pool_size=_SQLITE_CONNECTIONS,
        max_overflow=0,
        hide_parameters=True,
    )
    if not read_only:
        event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def is_read_only(path: str) -> bool:
    """Return whether an existing file, or its folder, is not writable."""
    return os.path.isfile(path) and not (os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK))


def read_uri(path: str) -> str:
    """Return the URI for reading a SQLite file without writing, even on a read-only medium.

    If the log's index file exists, a server may be running, and SQLite also reads the log; else the file is immutable.
    """
    uri, log = Path(path).as_uri(), Path(f"{path}-wal")
    if not is_read_only(path) or os.path.exists(f"{path}-shm"):
        return f"{uri}?mode=ro"
    if log.exists() and log.stat().st_size:
        raise StoreError(
            "the database '{database}' has answers in '{log}', which SQLite reads only where it may write; copy both "
            "files to a folder of your own.",
            database=path,
            log=log.name,
        )
    return f"{uri}?mode=ro&immutable=1"


def _make_private(path: str, shown: str) -> None:
    """Create the file if missing, readable only by its owner: it contains the secret of the study."""
    if not Path(path).parent.is_dir():
        raise ConfigError("the folder of the database '{shown}' does not exist; make it first.", shown=shown)
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(
            "the database '{database}' cannot be made: {why}.", database=shown, why=error.strerror or error
        ) from None
    if not os.path.isfile(path):
        raise ConfigError("the database '{shown}' is a folder; give the path of a file.", shown=shown)


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    """Configure a new SQLite connection; wait up to `BUSY_SECONDS` if another process locks the file."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            # Two processes opened a new file at once: SQLite does not wait for this lock by itself.
            if "locked" not in str(error) or time.monotonic() >= until:
                raise
            time.sleep(0.05)
    for setting in ("synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
        connection.execute(f"PRAGMA {setting}")


def _begin(connection: Connection) -> None:
    """Begin a SQLite transaction; a writer waits for its turn."""
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN IMMEDIATE"))


def parse_url(url: str) -> URL:
    """Return the URL of a database, from a path, a sqlite:/// URL or a postgresql:// URL.

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
            raise ConfigError("the address of the database cannot be read; {how}.", how=how) from None
    backend = parsed.drivername.split("+")[0]
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:" or parsed.query:
            raise ConfigError("a study on SQLite needs the path of a file and nothing else; {how}.", how=how)
        return parsed.set(drivername="sqlite")
    if backend not in ("postgresql", "postgres"):
        raise ConfigError("a study runs on SQLite or PostgreSQL, not on {backend!r}; {how}.", backend=backend, how=how)
    # libpq also accepts the password as an option, where it would be displayed and passed on.
    password = parsed.password or parsed.query.get("password")
    plain = parsed.difference_update_query(["password"]).set(drivername="postgresql+psycopg")
    return plain.set(password=password) if isinstance(password, str) else plain


def _without_secrets(url: URL) -> str:
    plain = URL.create("postgresql", url.username, host=url.host, port=url.port, database=url.database)
    return plain.render_as_string()


def _reason(error: SQLAlchemyError) -> str:
    """Return a driver's error message without data values or passwords."""
    if isinstance(error, exc.IntegrityError | exc.DataError):
        return "it refused a value"
    return _told(str(error.orig) if isinstance(error, DBAPIError) else str(error))


def _told(said: str) -> str:
    """Return the first line of a driver's message, or advice if another process locks the file."""
    if said.startswith("database is locked"):
        return f"another process has held it for {BUSY_SECONDS} s; stop that process, or wait until it is done"
    return (said.strip().splitlines() or ["no reason was given"])[0].rstrip(". ")
