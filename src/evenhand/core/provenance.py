"""Where numbers come from: what goes into `results.json` (the same on every run) and into `run.json`."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from evenhand._version import __version__
from evenhand.table.table import Table

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
)


def data_record(table: Table) -> dict[str, Any]:
    """Return rows, what was left out, and what identifies the data.

    `hash` is the SHA-256 of all that was read of the data so far, which is what every number was computed from: the
    same for the same data on any engine and in any order of rows. `files` identifies
    the bytes of the files read, where there are any.
    """
    return {
        "rows": table.rows + table.dropped,
        "rows_used": table.rows,
        "rows_dropped": table.dropped,
        "hash": table.digest(),
        "files": table.source.fingerprints(),
    }


def run_record(started: datetime, seconds: dict[str, float]) -> dict[str, Any]:
    """Return when, where and with what the audit ran; nothing in it changes a number."""
    return {
        "evenhand": __version__,
        "started": started.astimezone(UTC).isoformat(timespec="seconds"),
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: installed for name in _PARTS if (installed := _version(name)) is not None},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
