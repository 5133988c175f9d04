"""Write several files: all of them or none."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import time

from evenhand.errors import ConfigError

_MARK = ".evenhand-"
_FORGOTTEN = 3600.0  # seconds after which the files of a killed run are removed


def write_files(folder: str | os.PathLike[str], contents: Mapping[str, str | bytes]) -> dict[str, Path]:
    """Write files into a folder, all or none, and return their paths.

    The files are written and flushed in a temporary folder first and then renamed, so that a full disk, an
    interruption or a crash never leaves a partial file. A link or pipe with the name of a file is replaced, and never
    opened; a folder that is a link is refused. Other files in the folder are unchanged.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = write_files(folder, {"a.txt": "one", "b.txt": b"two"})
    ...     paths["a.txt"].read_text(), sorted(os.listdir(folder))
    ('one', ['a.txt', 'b.txt'])
    """
    out = Path(folder)
    was_there = os.path.lexists(out)
    try:
        _require_folder(out, contents)
        out.mkdir(parents=True, exist_ok=True)
        _clear_forgotten(out)
        temporary = Path(tempfile.mkdtemp(prefix=_MARK, dir=out))
        try:
            for name, content in contents.items():
                _write_through(temporary / name, content)
            _put_in_place(temporary, out, list(contents))
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        _flush_folder(out)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        if not was_there:
            with suppress(OSError, ValueError):
                out.rmdir()
        if isinstance(error, ConfigError):
            raise
        why = getattr(error, "strerror", None) or error
        raise ConfigError("the folder '{out}' cannot be written to: {why}.", out=out, why=why) from error
    return {name: out / name for name in contents}


def _require_folder(out: Path, names: Mapping[str, object]) -> None:
    if out.is_symlink():
        raise ConfigError("the folder '{out}' cannot be written to: it is a link; give the folder itself.", out=out)
    for name in names:
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(out / name).st_mode):
                raise ConfigError(
                    "the folder '{out}' cannot be written to: '{name}' in it is a folder; move it away.",
                    out=out,
                    name=name,
                )


def _write_through(path: Path, content: str | bytes) -> None:
    with path.open("xb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def _put_in_place(temporary: Path, out: Path, names: list[str]) -> None:
    """Rename the new files to their final names; if that fails, restore the old files."""
    renamed: list[str] = []
    try:
        for name in names:
            with suppress(FileNotFoundError):
                os.link(out / name, temporary / f"{_MARK}{name}", follow_symlinks=False)
            renamed.append(name)
            os.replace(temporary / name, out / name)
    except BaseException:
        for name in renamed:
            if os.path.lexists(temporary / f"{_MARK}{name}"):
                os.replace(temporary / f"{_MARK}{name}", out / name)
            elif not os.path.lexists(temporary / name):  # a new file, already renamed
                os.unlink(out / name)
        raise


def _flush_folder(folder: Path) -> None:
    """Flush the renaming to disk, on systems that support it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _clear_forgotten(out: Path) -> None:
    for leftover in out.glob(f"{_MARK}*"):
        with suppress(OSError):
            if leftover.is_dir() and not leftover.is_symlink() and time() - leftover.stat().st_mtime > _FORGOTTEN:
                shutil.rmtree(leftover, ignore_errors=True)
