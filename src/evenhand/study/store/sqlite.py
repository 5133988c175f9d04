"""What is special about SQLite: a writers' queue, syncs of the log shared by all who wait, and the set-up of files.

SQLite runs in WAL mode. A commit appends to the log file; it is acknowledged only when a sync of that file that began
after the commit is over. Commits that wait together share one sync, as PostgreSQL does it by itself: each answer is a
transaction of its own, survives a loss of power once acknowledged, and hundreds of them fit into a second even where
a sync takes milliseconds.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection

from evenhand.errors import ConfigError
from evenhand.study.store.records import StoreError

BUSY_SECONDS = 30
IMPATIENT_MILLISECONDS = 20
_QUEUES: dict[str, tuple[threading.Lock, SharedSync]] = {}
_QUEUES_LOCK = threading.Lock()


def writers_queue(path: str) -> tuple[threading.Lock, SharedSync]:
    """Return the writers' queue of a SQLite file, and the sync of its log: one of each in a process."""
    with _QUEUES_LOCK:
        return _QUEUES.setdefault(path, (threading.Lock(), SharedSync(f"{path}-wal")))


class SharedSync:
    """A sync of a file that several threads wait for together.

    The file stays open, so that a process that runs out of handles can still store what it has. Only a sync that
    failed ends all writing: after it the system may have dropped what was to be written, and nobody can be told that
    anything is safe. A file that could not be opened fails those who asked, and the next try may succeed.

    Parameters
    ----------
    path : the file; one that is not there needs no sync.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._changed = threading.Condition()
        self._begun = self._done = 0
        self._running = False
        self._failed: OSError | None = None
        self._handle: int | None = None

    def wait(self) -> None:
        """Return when a sync that began after this call is over."""
        with self._changed:
            wanted = self._begun + 1
            while self._running and self._done < wanted and self._failed is None:
                self._changed.wait()
            if self._failed is not None:
                raise self._failed
            if self._done >= wanted:
                return
            self._running, self._begun = True, self._begun + 1
            mine = self._begun
        failed: OSError | None = None
        done = False
        try:
            handle = self._opened()
            try:
                if handle is not None:
                    _sync(handle)
                done = True
            except OSError as error:
                failed = error
                raise
        finally:
            with self._changed:
                self._running, self._failed = False, failed
                self._done = mine if done else self._done
                self._changed.notify_all()

    def close(self) -> None:
        """Close the file; the next sync opens it again."""
        with self._changed:
            while self._running:
                self._changed.wait()
            self._let_go()

    def _opened(self) -> int | None:
        """Return a handle of the file that has the name now; None where there is none."""
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            # The log is gone when the last connection was closed, which brings everything into the database and syncs.
            self._let_go()
            return None
        if self._handle is not None and not os.path.samestat(there, os.fstat(self._handle)):
            self._let_go()
        if self._handle is None:
            try:
                self._handle = os.open(self._path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
            except FileNotFoundError:
                return None
        return self._handle

    def _let_go(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


def _sync(handle: int) -> None:
    getattr(os, "fdatasync", os.fsync)(handle)


class AwaitedSync:
    """A sync that coroutines wait for together: one at a time, and everybody who comes meanwhile shares the next.

    Parameters
    ----------
    sync : returns when everything stored before the call is on the disk.
    """

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._waiting: list[asyncio.Future[None]] = []
        self._work: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Return when everything stored before this call is on the disk."""
        loop = asyncio.get_running_loop()
        mine = loop.create_future()
        self._waiting.append(mine)
        if self._work is None or self._work.done():
            self._work = loop.create_task(self._sync_all())
        await mine

    async def _sync_all(self) -> None:
        while self._waiting:
            served, self._waiting = self._waiting, []
            problem: Exception | None = None
            try:
                await asyncio.to_thread(self._sync)
            except Exception as error:
                problem = error
            for future in served:
                if future.done():  # somebody went away
                    continue
                if problem is None:
                    future.set_result(None)
                else:
                    future.set_exception(problem)


def make_private(path: str, shown: str) -> None:
    """Make the file where there is none, readable by nobody else: it holds the secret of the study."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise ConfigError(
            "the folder of the database '{shown}' does not exist; make it first.",
            shown=shown,
        )
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        if not os.path.isfile(path):
            raise ConfigError(
                "the database '{shown}' is a folder; give the path of a file.",
                shown=shown,
            )
    except OSError as error:
        raise StoreError(
            "the database '{database}' cannot be made: {why}.", database=shown, why=error.strerror or error
        ) from None


def prepare(connection: sqlite3.Connection, _record: object) -> None:
    """Set up a new connection to SQLite; one that another process holds for itself is waited for `BUSY_SECONDS`."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            break
        except Exception as error:
            # Two processes that open a new file at once: SQLite does not wait for this one by itself.
            if "locked" not in str(error) or time.monotonic() >= until:
                raise
            time.sleep(0.05)
    connection.execute(f"PRAGMA synchronous = {'NORMAL' if mode == 'wal' else 'FULL'}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")


def begin(connection: Connection) -> None:
    """Begin a transaction as the options of its connection say."""
    how = connection.get_execution_options().get("begin", "BEGIN IMMEDIATE")
    if how:
        connection.exec_driver_sql(how)


def size_of(path: str) -> int:
    """Return the bytes of a file; 0 where there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
