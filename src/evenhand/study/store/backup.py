"""Backup of a database by one command, consistent while the server runs."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import URL

from evenhand.errors import ConfigError
from evenhand.study.store.database import parse_url
from evenhand.study.store.records import StoreError

if sys.platform != "win32":
    import fcntl

_PART = ".evenhand-part"
"""How the name of an unfinished backup ends."""


def backup(url: str, target: str | os.PathLike[str]) -> Path:
    """Copy a database to a file that did not exist, while it may be in use; return the file.

    On SQLite the copy is a database of its own. On PostgreSQL it is an archive of `pg_dump`, which `pg_restore` brings
    back. The file is complete or not there at all, and nobody else may read it. What earlier backups that were killed
    left in its folder is deleted.

    Parameters
    ----------
    url : the database, as for `open_store`.
    target : the file to write.
    """
    source, file = parse_url(url), Path(target)
    if file.exists():
        raise ConfigError(f"'{file}' exists already; name another file for the backup.")
    if not file.parent.is_dir():
        raise ConfigError(f"the folder of '{file}' does not exist; make it first.")
    try:
        _remove_leftovers(file.parent)
        handle, part = tempfile.mkstemp(prefix=f".{file.name}.", suffix=_PART, dir=file.parent)  # for nobody else
        try:
            _hold(handle)
            if source.get_backend_name() == "sqlite":
                _copy_sqlite(source, Path(part))
            else:
                _dump_postgres(source, Path(part))
            os.fsync(handle)
            os.replace(part, file)
        finally:
            os.close(handle)
            with suppress(FileNotFoundError):
                os.unlink(part)
    except OSError as error:
        raise StoreError(f"the backup '{file}' cannot be written: {error.strerror or error}.") from None
    return file


def _hold(handle: int) -> bool:
    """Mark an unfinished backup as being written; return False where another process does. It ends with the process."""
    if sys.platform == "win32":  # where a file in use cannot be deleted anyway
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_leftovers(folder: Path) -> None:
    """Delete what backups that were killed left in a folder: it holds all that a backup holds."""
    for part in folder.glob(f".*{_PART}"):
        with suppress(OSError):
            handle = os.open(part, os.O_RDWR)
            try:
                if _hold(handle):
                    part.with_name(f"{part.name}-journal").unlink(missing_ok=True)
                    part.unlink()
            finally:
                os.close(handle)


def _copy_sqlite(source: URL, part: Path) -> None:
    path = Path(source.database or "")
    if not path.is_file():
        raise ConfigError(f"there is no database '{path}'.")
    try:
        with (
            closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as old,
            closing(sqlite3.connect(part)) as new,
        ):
            old.backup(new)
            # A copy in one file, that opens wherever it is moved.
            new.execute("PRAGMA journal_mode = DELETE")
            sound = new.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.Error as error:
        raise StoreError(f"the database '{path}' cannot be copied: {error}.") from None
    if sound != "ok":
        raise StoreError(f"the database '{path}' is damaged: {sound.splitlines()[0]}.")


def _dump_postgres(source: URL, part: Path) -> None:
    program = shutil.which("pg_dump")
    if program is None:
        raise StoreError(
            "a backup of PostgreSQL needs the program pg_dump, which is not installed; it comes with PostgreSQL's "
            "client programs."
        )
    # The password goes by the environment: arguments of programs can be seen by every user of a machine.
    plain = URL.create(
        "postgresql", source.username, host=source.host, port=source.port, database=source.database, query=source.query
    ).render_as_string()
    environment = {**os.environ, **({"PGPASSWORD": source.password} if source.password else {})}
    command = [program, "--format=custom", "--no-owner", "--no-password", f"--file={part}", f"--dbname={plain}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise StoreError(f"pg_dump could not copy the database: {said.rstrip('.')}.")
