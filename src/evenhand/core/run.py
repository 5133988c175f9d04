"""A run of an audit: the steps it tells while it goes, what its numbers come from, and its files, all or none."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from html import escape
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter, process_time, time
from typing import Any

import numpy as np

from evenhand._version import __version__
from evenhand.errors import ConfigError, brief
from evenhand.settings import read_json
from evenhand.table.cells import Cells
from evenhand.table.table import Table

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("evenhand_progress", default=None)
_clock: ContextVar[Clock | None] = ContextVar("evenhand_clock", default=None)


class Clock:
    """Where the time of a run goes: seconds and CPU seconds of each section, and of each step of it.

    Examples
    --------
    >>> with timed() as clock:
    ...     with clock.timing("parity"):
    ...         step("Counting")
    >>> [(record["section"], record["step"]) for record in clock.records()]
    [('parity', ''), ('parity', 'Counting')]
    """

    def __init__(self) -> None:
        self.started = datetime.now(UTC)
        self._spent: dict[tuple[str, str], list[float]] = {}
        self._now = ("", "")
        self._since = (perf_counter(), process_time())

    @contextmanager
    def timing(self, section: str) -> Iterator[None]:
        """Count the time of the block, and of the steps within it, as that of a section."""
        before = self._now
        self._turn(section, "")
        try:
            yield
        finally:
            self._turn(*before)

    def mark(self, description: str) -> None:
        """Count the time from now on as that of a step; how far it has come is no part of its name."""
        self._turn(self._now[0], re.sub(r": \d+%$", "", description))

    def _turn(self, section: str, description: str) -> None:
        now = (perf_counter(), process_time())
        spent = self._spent.setdefault(self._now, [0.0, 0.0])
        for position, (later, earlier) in enumerate(zip(now, self._since, strict=True)):
            spent[position] += later - earlier
        self._now, self._since = (section, description), now

    def records(self) -> list[dict[str, Any]]:
        """Return seconds and CPU seconds by section and step, in the order in which they began."""
        return [
            {"section": section, "step": description, "seconds": round(wall, 3), "cpu": round(cpu, 3)}
            for (section, description), (wall, cpu) in self._spent.items()
            if section
        ]


@contextmanager
def timed() -> Iterator[Clock]:
    """Let one clock run while the block does: that of whoever runs a larger part already, or a new one."""
    running = _clock.get()
    clock = running or Clock()
    token = _clock.set(clock)
    try:
        yield clock
    finally:
        _clock.reset(token)


def step(description: str) -> None:
    """Say what happens next; silent unless somebody listens."""
    clock, listener = _clock.get(), _listener.get()
    if clock is not None:
        clock.mark(description)
    if listener is not None:
        listener(description)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Pass every step to `listener` while the block runs.

    Examples
    --------
    >>> heard = []
    >>> with listening(heard.append):
    ...     step("Counting")
    >>> heard
    ['Counting']
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def shown_in_notebook() -> Iterator[None]:
    """Show the steps below the cell of a Jupyter notebook while the block runs; nowhere else, and nothing is left."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if _listener.get() is not None or type(shell).__name__ != "ZMQInteractiveShell":
        yield
        return
    display = import_module("IPython.display")
    handle = display.display(display.HTML(""), display_id=True)
    try:
        with listening(lambda text: handle.update(display.HTML(f"<em>{escape(text)} ...</em>"))):
            yield
    finally:
        handle.update(display.HTML(""))


# Provenance -----------------------------------------------------------------------------------------------------------


_PARTS = (
    "numpy",
    "scipy",
    "numba",
    "narwhals",
    "duckdb",
    "pydantic",
    "altair",
    "vl-convert-python",
    "pandas",
    "polars",
    "pyarrow",
    "scikit-learn",
    "xgboost-cpu",
    "lightgbm",
    "cupy-cuda12x",
    "cupy-cuda13x",
)


def data_record(table: Table) -> dict[str, Any]:
    """Return rows, what was left out, and what identifies the data.

    `hash` is the SHA-256 of all that was read of the data so far, which is what every number was computed from: the
    same for the same data on any engine and in any order of rows. `files` identifies
    the bytes of the files read, where there are any; `groups` holds the rows of each group, by grouping.
    """
    return {
        "rows": table.rows + table.dropped,
        "rows_used": table.rows,
        "rows_dropped": table.dropped,
        "groups": {name: _sizes(table.cells, columns) for name, columns in table.groupings.items()},
        "hash": table.digest(),
        "files": table.source.fingerprints(),
    }


def _sizes(cells: Cells, columns: Sequence[str]) -> dict[str, int]:
    """Return the rows of each group of one grouping."""
    codes, labels = cells.joint(columns)
    sizes = np.zeros(len(labels), dtype=np.int64)
    np.add.at(sizes, codes, cells.n)
    return dict(zip(labels, sizes.tolist(), strict=True))


def run_record(clock: Clock, device: str = "cpu", engine: str | None = None) -> dict[str, Any]:
    """Return when, where and with what the audit ran, and what took how long.

    Nothing in it changes a number but the device: those of a card agree with the processor's, not to the last digit.
    """
    return {
        "evenhand": __version__,
        "started": clock.started.isoformat(timespec="seconds"),
        **_times(clock),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "engine": engine,
        "device": device,
        "packages": {name: installed for name in _PARTS if (installed := _version(name)) is not None},
    }


def _times(clock: Clock) -> dict[str, Any]:
    """Return seconds by section, and with CPU seconds by section and step."""
    steps, seconds = clock.records(), Counter[str]()
    for record in steps:
        seconds[record["section"]] += record["seconds"]
    return {"seconds": {name: round(value, 3) for name, value in seconds.items()}, "steps": steps}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# Files ----------------------------------------------------------------------------------------------------------------


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


def read_run(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what results.json and run.json of a saved audit hold, which must be of one run."""
    written, run = (read_saved(folder / name) for name in ("results.json", "run.json"))
    _require_one_run(folder, checksums(run))
    _require_run(folder / "run.json", run)
    return written, run


def read_saved(path: Path) -> dict[str, Any]:
    """Return what a file of a saved audit holds."""
    return read_json(path, "a file of a saved audit")


def checksums(run: dict[str, Any]) -> dict[str, Any]:
    """Take the checksums of its files out of what run.json holds."""
    sums = run.pop("sha256", {})
    return sums if isinstance(sums, dict) else {}


def _require_one_run(folder: Path, sums: Mapping[str, str]) -> None:
    """Refuse results that were changed, or that a run which was stopped has left beside those of another."""
    name = "results.json"
    if name in sums and hashlib.sha256((folder / name).read_bytes()).hexdigest() != sums[name]:
        raise ConfigError(
            "'{value}' is not what the run of '{value_2}' wrote; audit again.",
            value=folder / name,
            value_2=folder / "run.json",
        )


def _require_run(path: Path, run: Mapping[str, Any]) -> None:
    """Refuse a run.json that does not say when and with what an audit ran."""
    kinds = {"evenhand": str, "started": str, "seconds": dict, "python": str, "platform": str, "packages": dict}
    fault = next((name for name, kind in kinds.items() if not isinstance(run.get(name), kind)), None)
    try:
        datetime.fromisoformat(run["started"] if fault is None else "")
    except ValueError:
        fault = fault or "started"
        raise ConfigError(
            "'{path}' is not whole: `{fault}` is {get}; run the audit again.",
            path=path,
            fault=fault,
            get=brief(run.get(fault)),
        ) from None
