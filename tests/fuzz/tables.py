"""Strategies for whole tables: small and sound, so that an audit of them finishes; then one defect at a time.

A column is drawn as bytes, one a row: quick to draw, and to shrink. The first rows hold every group with both outcomes.
"""

from __future__ import annotations

import datetime
import gc
import warnings
from collections.abc import Callable, Collection
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyreadstat
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

Columns = dict[str, list[Any]]
Row = Callable[[int, int], Any]

LABELS: tuple[tuple[Any, ...], ...] = (
    ("a", "b", "c"),
    ("Black", "White", "Other"),
    ("é", "日本", "ß"),
    ("<b>x</b>", "=1+1", "a & b"),
    ("[red]x[/red]", "{y}", "%s"),
    ("a, b", 'say "hi"', "it's; c"),
    ("×", "(overall)?", "x" * 60),
    (0, 1, 2),
    (1.5, 2.5, 3.5),
    ("F", "M"),
    (True, False),
    ("0", "1"),
)

RECIPES: dict[str, Row] = {
    "id": lambda row, byte: row,
    "h": lambda row, byte: "xy"[(row // 6 if row < 12 else byte) % 2],
    "y": lambda row, byte: (row // 3 if row < 12 else byte) % 2,
    "s": lambda row, byte: byte / 255,
    "t": lambda row, byte: byte // 64 / 3,
    "d": lambda row, byte: (row // 4 if row < 8 else byte) % 2,
    "e": lambda row, byte: (row // 2 if row < 8 else byte) % 2,
    "w": lambda row, byte: 0.5 + byte % 4,
    "chosen": lambda row, byte: byte % 4,
    "pool": lambda row, byte: 3 + byte % 9,
    "age": lambda row, byte: 18 + byte % 60,
    "income": lambda row, byte: 100.0 * byte,
    "y1": lambda row, byte: byte / 4,
    "y2": lambda row, byte: byte / 4,
    "y3": lambda row, byte: byte / 4,
    "r1": lambda row, byte: (row if row < 4 else byte) % 2,
    "r2": lambda row, byte: (row if row < 4 else byte) % 2,
    "q1": lambda row, byte: "abcd"[byte % 4],
    "q2": lambda row, byte: "abcd"[byte % 4],
    "q3": lambda row, byte: "abcd"[byte % 4],
    "x1": lambda row, byte: byte / 16,
    "x2": lambda row, byte: byte / 16,
    "label": lambda row, byte: ("high", "low", "middle")[(row if row < 6 else byte) % 3],
    "critic": lambda row, byte: f"critic {byte % 5}",
    "disagree": lambda row, byte: byte % 2,
    "kind": lambda row, byte: ("patient", "doctor")[(row if row < 6 else byte) % 2],
}


@st.composite
def people(draw: DrawFn, wanted: Collection[str]) -> Columns:
    """Draw a sound table of a group column `g` and the columns that are wanted."""
    size = draw(st.integers(12, 40))
    labels = draw(st.sampled_from(LABELS))

    def column(recipe: Row) -> list[Any]:
        return [recipe(row, byte) for row, byte in enumerate(draw(st.binary(min_size=size, max_size=size)))]

    groups = column(lambda row, byte: labels[(row if row < 12 else byte) % len(labels)])
    return {"g": groups, **{name: column(RECIPES[name]) for name in wanted}}


# Kinds of input -------------------------------------------------------------------------------------------------------


def _file(name: str, write: Callable[[pd.DataFrame, Path], Any]) -> Callable[[Columns, Path], Any]:
    def make(columns: Columns, folder: Path) -> Path:
        path = folder / name
        write(pd.DataFrame(columns), path)
        return path

    return make


KINDS: dict[str, Callable[[Columns, Path], Any]] = {
    "polars": lambda columns, _: pl.DataFrame(columns),
    "mapping": lambda columns, _: columns,
    "pandas": lambda columns, _: pd.DataFrame(columns),
    "pyarrow": lambda columns, _: pa.table(columns),
    "polars lazy": lambda columns, _: pl.LazyFrame(columns),
    "arrays": lambda columns, _: {name: np.asarray(column) for name, column in columns.items()},
    "duckdb": lambda columns, _: duckdb.from_df(pd.DataFrame(columns)),
    "csv": _file("people.csv", lambda frame, path: frame.to_csv(path, index=False)),
    "csv.gz": _file("people.csv.gz", lambda frame, path: frame.to_csv(path, index=False)),
    "parquet": _file("people.parquet", lambda frame, path: frame.to_parquet(path, index=False)),
    "json": _file("people.json", lambda frame, path: frame.to_json(path, orient="records")),
    "ndjson": _file("people.ndjson", lambda frame, path: frame.to_json(path, orient="records", lines=True)),
    "feather": _file("people.feather", lambda frame, path: feather.write_feather(frame, str(path))),
    "xlsx": _file("people.xlsx", lambda frame, path: frame.to_excel(path, index=False, engine="xlsxwriter")),
    "dta": _file("people.dta", lambda frame, path: pyreadstat.write_dta(frame, path)),
}
FRAMES = ("polars", "mapping", "pandas", "pyarrow", "polars lazy", "arrays", "duckdb")
FILES = tuple(kind for kind in KINDS if kind not in FRAMES)


def as_kind(columns: Columns, kind: str, folder: Path) -> Any:
    """Return the columns as this kind of input; as a mapping where that kind cannot hold them."""
    with suppress(Exception):  # what cannot be written is no input
        return KINDS[kind](columns, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # of files that the writers left open
    return columns


def kinds() -> SearchStrategy[str]:
    """Draw a kind of input, quick ones more often."""
    return st.sampled_from((*["polars"] * 14, *["mapping", "pyarrow"] * 5, *FRAMES, *FILES))


# Defects --------------------------------------------------------------------------------------------------------------

ODD_CELLS: dict[str, Any] = {
    "missing": None,
    "nan": float("nan"),
    "infinite": float("inf"),
    "minus infinite": float("-inf"),
    "far": 1e308,
    "tiny": 5e-324,
    "negative": -1,
    "minus nothing": -0.0,
    "huge": 2**70,
    "large": 2**53 + 1,
    "text": "x",
    "empty": "",
    "blank": " ",
    "word for missing": "NA",
    "control": "\x1b[31m\x00\u202e",
    "surrogate": "\ud800",
    "long": "x" * 5_000,
    "true": True,
    "list": [1],
    "mapping": {"a": 1},
    "bytes": b"\xff\x00",
    "date": datetime.date(2020, 2, 29),
    "time": datetime.datetime(2020, 2, 29, 12, tzinfo=datetime.UTC),
    "decimal": Decimal("0.1"),
    "complex": 1j,
    "object": object,
}
ODD_COLUMNS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "all missing": lambda column: [None] * len(column),
    "constant": lambda column: column[:1] * len(column),
    "as text": lambda column: [str(value) for value in column],
    "all different": lambda column: [f"v{row}" for row in range(len(column))],
    "half missing": lambda column: [None if row % 2 else value for row, value in enumerate(column)],
    "reversed": lambda column: column[::-1],
    "zeros": lambda column: [0] * len(column),
    "only one differs": lambda column: column[:1] * (len(column) - 1) + column[-1:],
    "dates": lambda column: [datetime.date(2020, 1, 1) + datetime.timedelta(row) for row in range(len(column))],
    "small": lambda column: [1e-300 * row for row in range(len(column))],
    "wide": lambda column: [(-1) ** row * 10.0 ** (row % 300) for row in range(len(column))],
    "true or false": lambda column: [bool(row % 2) for row in range(len(column))],
}
ODD_TABLES: dict[str, Callable[[Columns, str], Columns]] = {
    "absent": lambda columns, name: {other: column for other, column in columns.items() if other != name},
    "capitals": lambda columns, name: {
        other.upper() if other == name else other: column for other, column in columns.items()
    },
    "no name": lambda columns, name: {"" if other == name else other: column for other, column in columns.items()},
    "no rows": lambda columns, name: {other: [] for other in columns},
    "one row": lambda columns, name: {other: column[:1] for other, column in columns.items()},
    "two rows": lambda columns, name: {other: column[:2] for other, column in columns.items()},
    "shorter": lambda columns, name: columns | {name: columns[name][:-1]},
    "twice": lambda columns, name: {other: column * 2 for other, column in columns.items()},
    "nothing": lambda columns, name: {},
}


@st.composite
def spoilt(draw: DrawFn, columns: Columns, name: str | None = None) -> Columns:
    """Draw the table with one defect."""
    name = name or draw(st.sampled_from(sorted(columns)))
    defect = draw(st.sampled_from((*ODD_CELLS, *ODD_COLUMNS, *ODD_TABLES)))
    if defect in ODD_TABLES:
        return ODD_TABLES[defect](columns, name)
    column = list(columns[name])
    if defect in ODD_COLUMNS:
        return columns | {name: ODD_COLUMNS[defect](column)}
    column[draw(st.integers(0, len(column) - 1))] = ODD_CELLS[defect]
    return columns | {name: column}
