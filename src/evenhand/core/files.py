"""Write several files, all or none of them."""

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
_FORGOTTEN = 3600.0  # seconds after which what a killed run left behind is cleared away


def write_files(folder: str | os.PathLike[str], contents: Mapping[str, str | bytes]) -> dict[str, Path]:
    """Write files into a folder; whatever stops it leaves all the old ones, or all the new ones. Return their paths.

    They are written and flushed in a folder of their own first and then put in place by renaming, so that a full disk,
    an interruption or a crash never leaves a part of one. A link or a pipe in the place of a file is replaced, and
    never followed or waited for; a folder that is a link is refused. Whatever else the folder holds stays as it is.

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
        made = Path(tempfile.mkdtemp(prefix=_MARK, dir=out))
        try:
            for name, content in contents.items():
                _write_through(made / name, content)
            _put_in_place(made, out, list(contents))
        finally:
            shutil.rmtree(made, ignore_errors=True)
        _flush_folder(out)
    except (OSError, ValueError) as error:  # the latter: a name that no file can have
        if not was_there:
            with suppress(OSError, ValueError):
                out.rmdir()
        if isinstance(error, ConfigError):
            raise
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            "the folder '{out}' cannot be written to: {why}.",
            out=out,
            why=why,
        ) from error
    return {name: out / name for name in contents}


def _require_folder(out: Path, names: Mapping[str, object]) -> None:
    if out.is_symlink():
        raise ConfigError(
            "the folder '{out}' cannot be written to: it is a link; give the folder itself.",
            out=out,
        )
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


def _put_in_place(made: Path, out: Path, names: list[str]) -> None:
    """Rename the new files to their place; where that stops half-way, put the old ones back."""
    placed: list[str] = []
    try:
        for name in names:
            with suppress(FileNotFoundError):
                os.link(out / name, made / f"{_MARK}{name}", follow_symlinks=False)
            placed.append(name)
            os.replace(made / name, out / name)
    except BaseException:
        for name in placed:
            if os.path.lexists(made / f"{_MARK}{name}"):
                os.replace(made / f"{_MARK}{name}", out / name)
            elif not os.path.lexists(made / name):  # it is new, and in place
                os.unlink(out / name)
        raise


def _flush_folder(folder: Path) -> None:
    """Make the renaming itself last; only some systems can, and need it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _clear_forgotten(out: Path) -> None:
    for left in out.glob(f"{_MARK}*"):
        with suppress(OSError):
            if left.is_dir() and not left.is_symlink() and time() - left.stat().st_mtime > _FORGOTTEN:
                shutil.rmtree(left, ignore_errors=True)
