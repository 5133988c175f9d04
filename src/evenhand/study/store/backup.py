"""Backup of a database by one command, consistent while the server runs."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import URL

from evenhand.errors import ConfigError
from evenhand.study.store.database import parse_url
from evenhand.study.store.errors import StoreError


def backup(url: str, target: str | os.PathLike[str]) -> Path:
    """Copy a database to a file that did not exist, while it may be in use; return the file.

    On SQLite the copy is a database of its own. On PostgreSQL it is an archive of `pg_dump`, which `pg_restore` brings
    back. The file is complete or not there at all, and nobody else may read it.

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
        handle, part = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        os.close(handle)
        try:
            if source.get_backend_name() == "sqlite":
                _copy_sqlite(source, Path(part))
            else:
                _dump_postgres(source, Path(part))
            with open(part, "rb") as written:
                os.fsync(written.fileno())
            os.replace(part, file)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part)
    except OSError as error:
        raise StoreError(f"the backup '{file}' cannot be written: {error.strerror or error}.") from None
    return file


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
