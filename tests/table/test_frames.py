"""The one builder of data frames."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evenhand.errors import ConfigError, DataError, MissingExtraError
from evenhand.table import frames
from evenhand.table.frames import BACKENDS, build_frame, installed_backend

NATIVE = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}


def pretend_installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(frames, "_is_installed", lambda module: module in names)


def values(frame: Any, column: str) -> list[Any]:
    return list(nw.from_native(frame, eager_only=True)[column].to_list())


@pytest.mark.parametrize("backend", BACKENDS)
def test_builds_the_library_asked_for(backend: str) -> None:
    columns: dict[str, Any] = {
        "id": np.arange(3),
        "score": np.array([0.1, 0.5, 0.9]),
        "race": np.array(["a", "b", "a"], dtype=object),
        "sex": np.array(["f", "m", "f"]),
        "flag": [True, False, True],
    }
    frame = build_frame(columns, backend)
    assert isinstance(frame, NATIVE[backend])
    read = nw.from_native(frame, eager_only=True)
    assert read.columns == list(columns)
    assert dict(read.schema) == {
        "id": nw.Int64(),
        "score": nw.Float64(),
        "race": nw.String(),
        "sex": nw.String(),
        "flag": nw.Boolean(),
    }
    assert {name: values(frame, name) for name in columns} == {
        "id": [0, 1, 2],
        "score": [0.1, 0.5, 0.9],
        "race": ["a", "b", "a"],
        "sex": ["f", "m", "f"],
        "flag": [True, False, True],
    }


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "column",
    [
        ["a", None, "c"],
        np.array(["a", None, "c"], dtype=object),
        np.ma.masked_array(np.array(["a", "b", "c"], dtype=object), [False, True, False]),
        [1, None, 3],
        (1.5, None, 2.5),
        np.ma.masked_array([1, 2, 3], [False, True, False]),
    ],
)
def test_none_and_masked_entries_are_missing(backend: str, column: Any) -> None:
    frame = nw.from_native(build_frame({"x": column}, backend), eager_only=True)
    assert frame["x"].is_null().to_list() == [False, True, False]
    assert frame["x"].drop_nulls().to_list() == [column[0], column[2]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_masked_array_without_gaps_keeps_its_type(backend: str) -> None:
    frame = build_frame({"x": np.ma.masked_array([1, 2], [False, False])}, backend)
    assert nw.from_native(frame, eager_only=True).schema["x"] == nw.Int64()


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_rows(backend: str) -> None:
    frame = nw.from_native(build_frame({"x": np.array([], dtype=float)}, backend), eager_only=True)
    assert frame.shape == (0, 1)


@pytest.mark.parametrize(
    ("installed", "chosen"),
    [
        (("pandas", "polars", "pyarrow"), "pandas"),
        (("polars", "pyarrow"), "polars"),
        (("pyarrow",), "pyarrow"),
        ((), None),
    ],
)
def test_the_default_is_the_first_installed(
    monkeypatch: pytest.MonkeyPatch, installed: tuple[str, ...], chosen: str | None
) -> None:
    pretend_installed(monkeypatch, *installed)
    assert installed_backend() == chosen
    assert isinstance(build_frame({"x": [1]}), NATIVE[chosen] if chosen else dict)


def test_arrays_when_no_library_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_installed(monkeypatch)
    built = build_frame({"n": [1, 2], "gap": ["a", None], "masked": np.ma.masked_array([1, 2], [True, False])})
    assert built["n"].dtype.kind == "i"
    assert built["gap"].dtype == built["masked"].dtype == object
    assert built["gap"].tolist() == ["a", None]
    assert built["masked"].tolist() == [None, 2]


def test_unknown_backend_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="`backend` got 'poalrs'; did you mean 'polars'"):
        build_frame({"x": [1]}, "poalrs")


def test_backend_not_installed_gives_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_installed(monkeypatch, "polars")
    with pytest.raises(MissingExtraError, match="not installed; install it with: pip install pandas"):
        build_frame({"x": [1]}, "pandas")


def test_columns_of_different_lengths() -> None:
    with pytest.raises(DataError, match="same length; 'a' has 2 values, 'b' has 1 value"):
        build_frame({"a": [1, 2], "b": [1]})


@pytest.mark.parametrize("column", ["text", np.zeros((2, 2)), np.array(1.0)])
def test_a_column_has_one_dimension(column: Any) -> None:
    with pytest.raises(DataError, match="column 'a' must be a one-dimensional sequence; got"):
        build_frame({"a": column})
