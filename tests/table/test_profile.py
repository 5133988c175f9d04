"""The first look at a table."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from evenhand.errors import DataError
from evenhand.table.profile import ColumnProfile, profile

COLUMNS: dict[str, list[Any]] = {
    "person": ["p1", "p2", "p3", "p4"],
    "race": ["A", "B", None, "A"],
    "hired": ["Yes", "No", "yes", "no"],
    "score": [0.25, None, 1.0, 0.5],
    "n": [3, 1, 2, 2],
    "value": [True, False, True, True],
    "evenhand_n": [1, 1, 1, 0],
    "day": [dt.date(2020, 1, 1)] * 4,
}


def by_name(data: Any) -> dict[str, ColumnProfile]:
    return {column.name: column for column in profile(data)}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, lambda columns: pl.DataFrame(columns).lazy()])
def test_columns(make: Any) -> None:
    found = by_name(make(COLUMNS))
    assert list(found) == list(COLUMNS)
    assert found["person"].unique
    assert found["race"] == ColumnProfile(
        name="race", kind="text", rows=4, missing=1, distinct=2, low=None, high=None, values=("A", "B")
    )
    assert not found["race"].two_valued
    assert found["score"] == ColumnProfile(
        name="score", kind="real", rows=4, missing=1, distinct=3, low=0.25, high=1.0, values=(0.25, 0.5, 1.0)
    )
    assert found["n"] == ColumnProfile(
        name="n", kind="whole", rows=4, missing=0, distinct=3, low=1.0, high=3.0, values=(2, 1, 3)
    )
    assert found["value"].two_valued
    assert found["evenhand_n"].two_valued
    assert (found["hired"].distinct, found["hired"].two_valued) == (4, False)
    assert found["day"].kind in ("date", "datetime")


def test_a_file_is_read_once_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("i,late\n" + "".join(f"{row},{row % 7}\n" for row in range(120_000)))
    found = by_name(path)
    assert (found["i"].rows, found["i"].low, found["i"].high) == (100_000, 0.0, 99_999.0)
    assert found["i"].unique


def test_types_that_change_late(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("g\n" + "1\n2\n" * 15_000 + "x\n")
    assert by_name(path)["g"].kind == "text"


def test_nested_columns_are_passed_over() -> None:
    found = by_name(pl.DataFrame({"list": [[1], [2]], "d": [1, 0]}))
    assert found["list"].kind == "other"
    assert found["d"].two_valued


def test_no_rows() -> None:
    with pytest.raises(DataError, match=r"^the data has no rows\.$"):
        profile({"a": []})
