"""Syncs of a file that is only ever appended to, shared by all who wait for one at the same moment."""

from __future__ import annotations

import os
import threading


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
