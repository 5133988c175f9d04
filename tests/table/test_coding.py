"""Columns as codes: the same from every engine, whatever the type of the column, in whatever order the rows come."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evenhand.errors import ConfigError
from evenhand.table import Table

Columns = dict[str, list[Any]]

COLUMNS: Columns = {
    "row": [0, 1, 2, 3, 4, 5, 6],
    "critic": ["zoe", "amy", None, "zoe", "  ", "Ärzte", "amy"],
    "big": [9_007_199_254_740_993, 9_007_199_254_740_992, None, 5, 5, 9_007_199_254_740_993, -3],
    "score": [0.5, -0.0, 0.0, None, 2.5, float("nan"), 0.5],
    "agrees": [True, False, None, True, False, True, True],
    "day": [date(2024, 1, d) for d in (3, 1, 2, 3, 1, 2, 3)],
    "moment": [datetime(2024, 1, 1, h) for h in (3, 1, 2, 3, 1, 2, 3)],
    "race": ["White", "Black", "(missing)", None, "Black", "White", "White"],
    "age": [20, 30, 40, None, 50, 60, 70],
    "weight": [1.0, 2.0, 0.5, 1.0, 1.0, 1.0, 1.0],
}


def duckdb_relation(columns: Columns) -> Any:
    return duckdb.from_arrow(pa.table(columns))


FRAMES: dict[str, Callable[[Columns], Any]] = {
    "mapping": lambda columns: columns,
    "pandas": pd.DataFrame,
    "pandas objects": lambda columns: pd.DataFrame({n: pd.Series(v, dtype=object) for n, v in columns.items()}),
    "pandas nullable": lambda columns: (
        pd.DataFrame(columns).assign(big=pd.array(columns["big"], dtype="Int64")).convert_dtypes()
    ),
    "pandas categories": lambda columns: pd.DataFrame(columns).astype({"critic": "category", "race": "category"}),
    "polars": pl.DataFrame,
    "polars lazy": lambda columns: pl.DataFrame(columns).lazy(),
    "polars categories": lambda columns: pl.DataFrame(columns).with_columns(pl.col("critic").cast(pl.Categorical)),
    "pyarrow": pa.table,
    "pyarrow chunks": lambda columns: pa.concat_tables([pa.table(columns).slice(0, 3), pa.table(columns).slice(3)]),
    "pyarrow dictionary": lambda columns: pa.table(columns).set_column(
        1, "critic", pa.array(columns["critic"]).dictionary_encode()
    ),
    "duckdb": duckdb_relation,
}
# A column of whole numbers with gaps is a column of floats in plain pandas, and in a mapping.
EXACT = [name for name in FRAMES if name not in ("mapping", "pandas", "pandas categories", "pandas objects")]


def coded(data: Any, *names: str) -> dict[str, list[Any]]:
    """The values behind the codes, in the order of the column `row`."""
    rows = Table(data, groups=["race"]).coded_rows({name: name for name in ("row", *names)})
    order = np.argsort(rows.columns["row"].codes)
    found = {}
    for name in names:
        column = rows.columns[name]
        found[name] = [None if code < 0 else column.values[code] for code in column.codes[order]]
        assert list(column.values) == sorted(column.values)
        assert column.absent == sum(value is None for value in found[name])
    return found


@pytest.mark.parametrize("engine", FRAMES)
def test_every_engine_gives_the_same_codes(engine: str) -> None:
    found = coded(FRAMES[engine](COLUMNS), "critic", "score", "agrees", "day", "moment")
    assert found["critic"] == ["zoe", "amy", None, "zoe", None, "Ärzte", "amy"]
    assert found["score"] == [0.5, 0.0, 0.0, None, 2.5, None, 0.5]
    assert found["agrees"] == [True, False, None, True, False, True, True]
    assert found["day"] == [f"2024-01-0{d}" for d in (3, 1, 2, 3, 1, 2, 3)]
    assert found["moment"] == [f"2024-01-01 0{h}:00:00" for h in (3, 1, 2, 3, 1, 2, 3)]


@pytest.mark.parametrize("engine", EXACT)
def test_large_ids_are_not_rounded(engine: str) -> None:
    assert coded(FRAMES[engine](COLUMNS), "big")["big"] == COLUMNS["big"]


@pytest.mark.parametrize("engine", FRAMES)
def test_groups_and_weights_stand_beside_the_codes(engine: str) -> None:
    table = Table(FRAMES[engine](COLUMNS), groups=["race", "age"], cuts={"age": [35, 55]}, weight="weight")
    rows = table.coded_rows({"row": "row"})
    order = np.argsort(rows.columns["row"].codes)
    assert rows.weight is not None
    assert rows.weight[order].tolist() == COLUMNS["weight"]
    names = {
        name: [rows.groups.labels[name][code] for code in rows.groups.codes[name][order]] for name in ("race", "age")
    }
    assert names["race"] == ["White", "Black", "(missing)", "(missing)", "Black", "White", "White"]
    assert names["age"] == [
        "under 35",
        "under 35",
        "35 to under 55",
        "(missing)",
        "35 to under 55",
        "55 and over",
        "55 and over",
    ]


def test_wide_and_narrow_ranges_of_numbers_are_coded_alike() -> None:
    rng = np.random.default_rng(0)
    for span in (10, 10**12):
        values = rng.integers(-span, span, 500)
        frame = pl.DataFrame({"x": values, "race": ["a", "b"] * 250})
        column = Table(frame, groups="race").coded_rows({"x": "x"}).columns["x"]
        distinct, codes = np.unique(values, return_inverse=True)
        assert list(column.values) == distinct.tolist()
        np.testing.assert_array_equal(column.codes, codes)


def test_a_column_without_values_has_no_codes() -> None:
    frame = pl.DataFrame({"x": pl.Series([None, None], dtype=pl.String), "race": ["a", "b"]})
    for data in (frame, frame.to_arrow(), frame.to_pandas(), duckdb.from_arrow(frame.to_arrow())):
        column = Table(data, groups="race").coded_rows({"x": "x"}).columns["x"]
        assert column.values == ()
        assert column.codes.tolist() == [-1, -1]


def test_dropped_rows_have_no_codes() -> None:
    columns = {"who": ["a", "b", "c"], "race": ["x", "y", "x"], "hired": [1, None, 0]}
    table = Table(pl.DataFrame(columns), groups="race", predictions="hired", missing="drop")
    rows = table.coded_rows({"who": "who"})
    assert rows.columns["who"].values == ("a", "c")
    assert [rows.groups.labels["race"][code] for code in rows.groups.codes["race"]] == ["x", "x"]


def test_wrong_columns_are_told() -> None:
    table = Table(pl.DataFrame({"who": ["a", "b"], "race": ["x", "y"], "list": [[1], [2]]}), groups="race")
    with pytest.raises(ConfigError, match=r"`critic` is 'whoo', which is not in the data; did you mean 'who'\?"):
        table.coded_rows({"critic": "whoo"})
    with pytest.raises(
        ConfigError, match="`critic` is 'list', which holds times, nested, binary, complex or 128-bit values"
    ):
        table.coded_rows({"critic": "list"})
