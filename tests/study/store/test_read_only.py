"""A database on read-only media: it is read, nothing is written, and answers in a log are never left out silently."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.study.store import open_store

if sys.platform == "win32":
    pytest.skip("needs the permissions of POSIX", allow_module_level=True)

READ = """
import sys
from pathlib import Path
from evenhand.errors import EvenhandError
from evenhand.study.store import backup, open_store
try:
    with open_store(sys.argv[1]) as store:
        study = store.study("arrests")
        print(study.results.counts().conditions[0].enrolled, len(study.results.responses().people["participant"]))
        print(backup(sys.argv[1], sys.argv[2]).stat().st_size > 50_000)
        study.close()
except EvenhandError as error:
    print(error)
"""
ROOTS_RIGHTS = "-dac_override,-dac_read_search,-fowner"
"""What root can do to any file, as `setpriv` names it."""
Read = Callable[[Path], list[str]]


@pytest.fixture
def folder(tmp_path: Path, make_design: Any) -> Any:
    """A folder with a database in which one person enrolled, while a server holds it; then nobody may write there."""
    source, folder = tmp_path / "source", tmp_path / "media"
    source.mkdir()

    def written(*parts: str) -> Path:
        with open_store(str(source / "study.db")) as store:
            store.register(make_design()).participants.enrol("key")
            if parts:
                shutil.copytree(source, folder)
        if not parts:
            shutil.copytree(source, folder)
        for path in folder.iterdir():
            if path.name.removeprefix("study.db") not in ("", *parts):
                path.unlink()
            else:
                path.chmod(0o400)
        folder.chmod(0o500)
        return folder

    yield written
    folder.chmod(0o700)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read a database in a process that has no right to write into its folder, whoever runs the tests."""
    as_anybody = ["setpriv", "--bounding-set", ROOTS_RIGHTS, "--inh-caps", ROOTS_RIGHTS] if os.geteuid() == 0 else []
    if as_anybody and shutil.which("setpriv") is None:
        pytest.skip("root needs setpriv to give up its rights")

    def run(folder: Path) -> list[str]:
        command = [*as_anybody, sys.executable, "-c", READ, str(folder / "study.db"), str(tmp_path / "copy.db")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.stderr == ""
        return done.stdout.splitlines()

    return run


@pytest.mark.parametrize("parts", [(), ("-wal", "-shm")])
def test_is_read_and_copied_but_not_written(folder: Any, read: Read, parts: tuple[str, ...]) -> None:
    media = folder(*parts)
    counted, copied, refused = read(media)
    assert (counted, copied) == ("1 1", "True")
    assert "attempt to write a readonly database" in refused
    assert sorted(path.name for path in media.iterdir()) == sorted(["study.db", *(f"study.db{one}" for one in parts)])


def test_answers_in_a_log_that_cannot_be_read_are_not_left_out(folder: Any, read: Read) -> None:
    (said,) = read(folder("-wal"))
    assert "has answers in 'study.db-wal'" in said
    assert "copy both files" in said
