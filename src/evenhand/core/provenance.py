"""The provenance of a run: data, versions and machine."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from evenhand._version import __version__
from evenhand.core.progress import RunClock
from evenhand.table.cells import Cells
from evenhand.table.table import Table

_PARTS = (
    "numpy",
    "scipy",
    "numba",
    "narwhals",
    "duckdb",
    "pydantic",
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
    """Return the numbers of rows used and dropped, and a hash of the data.

    `hash` is the SHA-256 of all data behind the results; it does not depend on the engine or the order of rows.
    `files` has the checksums of the files, and `groups` has the number of rows in each group, by grouping.
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
    """Return the number of rows in each group of a grouping."""
    codes, labels = cells.joint(columns)
    sizes = np.zeros(len(labels), dtype=np.int64)
    np.add.at(sizes, codes, cells.n)
    return dict(zip(labels, sizes.tolist(), strict=True))


def run_record(clock: RunClock, device: str = "cpu", engine: str | None = None) -> dict[str, Any]:
    """Return the time, machine and versions of a run, and the duration of each part.

    Only the device changes numbers: a GPU's results agree with the processor's, except in the last digits.
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


def _times(clock: RunClock) -> dict[str, Any]:
    """Return seconds by section, and seconds and CPU seconds by step."""
    steps, seconds = clock.records(), Counter[str]()
    for record in steps:
        seconds[record["section"]] += record["seconds"]
    return {"seconds": {name: round(value, 3) for name, value in seconds.items()}, "steps": steps}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
