"""Columns of odd types and names: the same on every engine, or refused in a sentence."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evenhand.errors import DataError
from evenhand.table import Table
from evenhand.table.keys import label_of, shown, sort_key

Columns = dict[str, Any]

ENGINES: dict[str, Callable[[Columns], Any]] = {
    "mapping": lambda columns: columns,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": lambda columns: pl.DataFrame(columns).lazy(),
    "arrow": pa.table,
    "duckdb": lambda columns: duckdb.connect().from_arrow(pa.table(columns)),
}
BASE: Columns = {"g": ["a", "b", "a", "b"], "y": [1, 0, 1, 0], "s": [0.1, 0.6, 0.7, 0.2]}


@cache
def read_base() -> dict[str, Any]:
    return read(BASE)


def read(data: Any, group: str = "g") -> dict[str, Any]:
    table = Table(data, groups=group, outcome="y", predictions={"m": "s"})
    scores = table.score_cells("m")
    rows = table.score_rows("m")
    return {
        "groups": table.cells.joint([group])[1],
        "sums": scores.sums["s"].tolist(),
        "rows": sorted(zip(rows.score.tolist(), rows.groups.joint([group])[0].tolist(), strict=True)),
        "digest": table.digest(),
    }


def labels(*values: Any) -> tuple[str, ...]:
    return Table(
        pd.DataFrame({"g": values, "d": [1, 0] * (len(values) // 2)}), groups="g", predictions="d"
    ).cells.labels["g"]


@pytest.mark.parametrize("engine", ENGINES)
def test_decimals(engine: str) -> None:
    exact = [Decimal("0.1"), Decimal("0.6"), Decimal("0.7"), Decimal("0.2")]
    assert read(ENGINES[engine](BASE | {"s": exact})) == read_base()
    groups = [Decimal("1.50"), Decimal("2.00"), None, Decimal("2.00")]
    assert read(ENGINES[engine](BASE | {"g": groups}))["groups"] == ("g = 1.5", "g = 2", "(missing)")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "dates",
    [
        [dt.date(2020, 1, 2), dt.date(2021, 3, 4), None, dt.date(2020, 1, 2)],
        [dt.datetime(2020, 1, 2), dt.datetime(2021, 3, 4), None, dt.datetime(2020, 1, 2)],
    ],
)
def test_dates(engine: str, dates: list[Any]) -> None:
    assert read(ENGINES[engine](BASE | {"g": dates}))["groups"] == ("2020-01-02", "2021-03-04", "(missing)")


@pytest.mark.parametrize("engine", ENGINES)
def test_moments_are_told_apart_by_the_second(engine: str) -> None:
    moments = [dt.datetime(2020, 1, 2, 3, 4, 5, micro) for micro in (0, 1)] + [dt.datetime(2020, 1, 2, 3)] * 2
    assert read(ENGINES[engine](BASE | {"g": moments}))["groups"] == ("2020-01-02 03:00:00", "2020-01-02 03:04:05")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("threshold", [0.1, 0.3])
def test_a_short_float_is_compared_as_it_is(engine: str, threshold: float) -> None:
    """0.3 as a 32-bit float is above 0.3; engines must not round the threshold to it."""
    data = ENGINES[engine](BASE | {"s": np.full(4, threshold, dtype=np.float32)})
    cells = Table(data, groups="g", predictions={"m": {"column": "s", "threshold": threshold}}).cells
    assert cells.labels["selected:m"] == ("1",)


@pytest.mark.parametrize("engine", ENGINES)
def test_minus_zero_is_zero(engine: str) -> None:
    found = read(ENGINES[engine](BASE | {"g": [0.0, -0.0, 1.5, -0.0]}))
    assert found["groups"] == ("g = 0", "g = 1.5")
    assert found["rows"] == [(0.1, 0), (0.2, 0), (0.6, 0), (0.7, 1)]


@pytest.mark.parametrize("engine", ["mapping", "pandas", "polars", "arrow"])
def test_outcomes_of_any_number(engine: str) -> None:
    kinds = (np.int8, np.uint8, np.int64, np.uint64, np.float32, np.bool_)
    digests = set()
    for kind in kinds:
        data = ENGINES[engine](BASE | {"y": np.array(BASE["y"]).astype(kind)})
        digests.add(Table(data, groups="g", outcome="y", predictions={"m": "s"}).cells.digest())
    assert digests == {Table(BASE, groups="g", outcome="y", predictions={"m": "s"}).cells.digest()}


def test_mixed_objects_in_pandas_and_mappings() -> None:
    mixed = [1, "a", True, 2.0, None, "1"]
    told = ("g = 1", "g = 2", "a", "g = true", "(missing)")
    assert labels(*mixed) == told
    assert Table({"g": mixed, "d": [1, 0] * 3}, groups="g", predictions="d").cells.labels["g"] == told


def test_objects_of_one_type_in_pandas() -> None:
    assert labels(pd.NA, "a", "b", np.nan) == ("a", "b", "(missing)")
    assert labels(*pd.Series([True, None, False, True], dtype=object)) == ("g = false", "g = true", "(missing)")
    assert labels(*pd.Series([10, None, 9, 10], dtype=object)) == ("g = 9", "g = 10", "(missing)")
    assert labels(*pd.Series([1, 2.5, 1.0, None], dtype=object)) == ("g = 1", "g = 2.5", "(missing)")
    scores = pd.DataFrame({"g": BASE["g"], "y": BASE["y"], "s": pd.Series(BASE["s"], dtype=object)})
    assert read(scores) == read_base()


def test_pandas_categories() -> None:
    bands = pd.cut(pd.Series([1, 2, 3, np.nan]), [0, 1, 2, 3])
    assert labels(*bands) == ("(0.0, 1.0]", "(1.0, 2.0]", "(2.0, 3.0]", "(missing)")
    categories = [
        pd.Categorical(["x", "y", None, "x"], categories=["y", "x", "never"]),
        pd.Categorical([2, 1, None, 2]),
    ]
    for category, told in zip(categories, [("x", "y", "(missing)"), ("g = 1", "g = 2", "(missing)")], strict=True):
        data = pd.DataFrame({"g": category, "d": [1, 0, 1, 0]})
        assert Table(data, groups="g", predictions="d").cells.labels["g"] == told


def test_arrow_dictionary_of_numbers() -> None:
    data = pa.table(BASE | {"g": pa.array([2, 1, None, 2]).dictionary_encode()})
    assert read(data)["groups"] == ("g = 1", "g = 2", "(missing)")


def test_duckdb_types() -> None:
    query = """
        select ['a', 'b'][1 + range % 2]::enum('b', 'a') as g, range % 2 as y, (range / 10)::decimal(9, 3) as s,
               uuid() as person from range(10)
    """
    table = Table(duckdb.connect().sql(query), id="person", groups="g", outcome="y", predictions={"m": "s"})
    assert table.cells.labels["g"] == ("a", "b")
    assert table.score_rows("m").score.tolist() == [row / 10 for row in range(10)]


# Names ----------------------------------------------------------------------------------------------------

OURS = [
    "key0",
    "high0",
    "low0",
    "n",
    "evenhand_row",
    "evenhand_bad",
    "group0",
    "score",
    "positive",
    "weight",
    "value",
    "person",
    "rows",
    "absent",
    "outcome",
    "bin",
    "selected:m",
    "column:outcome",
    "columns_of_mapping",
]
HOSTILE = ['"', "'; drop table x; --", "a b", "ä 🙂", "<script>", "=cmd()", "a.b", "a,b", "{x}", "%s", "\\"]


@pytest.mark.parametrize("engine", ENGINES)
def test_group_columns_of_any_name(engine: str) -> None:
    names = [*OURS, *HOSTILE]
    data = dict.fromkeys(names, BASE["g"]) | {"y": BASE["y"], "s": BASE["s"]}
    table = Table(ENGINES[engine](data), groups=names, outcome="y", predictions={"m": "s"})
    cells, rows = table.score_cells("m"), table.score_rows("m")
    assert cells.sums["s"].tolist() == read_base()["sums"]
    for name in names:
        assert cells.joint([name])[1] == ("a", "b")
        assert rows.groups.joint([name])[0].tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("engine", ["mapping", "pandas", "arrow"])
@pytest.mark.parametrize(
    ("id_name", "weight_name", "outcome_name"),
    [("rows", "absent", "evenhand_bad"), ("person", "known", "evenhand_row"), ('x" y', "value", "outcome")],
)
def test_other_roles_of_any_name(engine: str, id_name: str, weight_name: str, outcome_name: str) -> None:
    gaps = {name: [1.0, 0.0, None, 1.0] for name in (id_name, weight_name, outcome_name)}
    data = ENGINES[engine]({"g": BASE["g"], "d": BASE["y"], **gaps})
    with pytest.raises(DataError) as caught:
        Table(data, groups="g", predictions="d", id=id_name, weight=weight_name, outcome=outcome_name)
    missing = [problem for problem in caught.value.problems if "is missing in 1 row of 4 (row 3)" in problem]
    assert [problem.split()[0] for problem in missing] == ["weight", "outcome", "id"]


def test_group_columns_called_like_our_keys_keep_apart() -> None:
    data = {"outcome": ["x", "y", "x", "y"], "bin": ["u", "u", "v", "v"], "y": [1, 0, 1, 0], "s": BASE["s"]}
    table = Table(data, groups=["outcome", "bin", ["outcome", "bin"]], outcome="y", predictions={"m": "s"})
    cells = table.score_cells("m")
    assert cells.joint(["outcome"])[1] == ("x", "y")
    assert cells.joint(["outcome", "bin"])[1] == ("x × u", "x × v", "y × u", "y × v")
    assert cells.labels["outcome"] == ("0", "1")
    assert cells.labels["bin"] == ("1", "2", "6", "7")
    assert table.score_rows("m").groups.joint(["bin"])[1] == ("u", "v")


def test_control_characters_are_written_out() -> None:
    """They would steer a terminal, and a chart that holds one stops the whole process."""
    groups = ["\x1b[31mred", "tab\tand\nline", "b\x00", "é\x85"]
    assert labels(*groups) == ("\\x1b[31mred", "b\\x00", "tab\tand\nline", "é\\x85")
    with pytest.raises(DataError) as caught:
        Table({"g\x1b": ["a", "b"], "d": [1, 0]}, groups="g\x1b", predictions="d")
    assert str(caught.value) == "group column 'g\\x1b' has control characters in its name; rename it."


def test_names_that_are_not_text() -> None:
    data = pd.DataFrame({0: BASE["g"], 1: BASE["y"]})
    assert Table(data, groups="0", predictions="1").cells.labels["0"] == ("a", "b")
    with pytest.raises(DataError, match=r"group column 'x' is not in the data; known names: '0', '1'"):
        Table(data, groups="x", predictions="1")
    several = pd.DataFrame({("a", "x"): BASE["g"], ("b", "y"): BASE["y"]})
    assert Table(several, groups=["('a', 'x')"], predictions="('b', 'y')").rows == 4
    assert Table({0: BASE["g"], 1: BASE["y"]}, groups="0", predictions="1").rows == 4


def test_repeated_names() -> None:
    twice = pd.DataFrame([["a", 1, 1], ["b", 0, 0]], columns=["g", "d", "d"])
    sentence = "the data frame has the column 'd' more than once; rename the columns so that each is unique."
    for data in (twice, pa.table([["a", "b"], [1, 0], [1, 0]], names=["g", "d", "d"])):
        with pytest.raises(DataError) as caught:
            Table(data, groups="g", predictions="d")
        assert str(caught.value) == sentence
    with pytest.raises(DataError, match=r"the data frame has the column '1' more than once"):
        Table(pd.DataFrame([["a", 1], ["b", 0]], columns=[1, "1"]), groups="1", predictions="1")
    with pytest.raises(DataError, match=r"the mapping has columns that differ only in capital letters \('g', 'G'\)"):
        Table({"g": ["a", "b"], "G": [1, 0]}, groups="g", predictions="G")
    capitals = pd.DataFrame({"g": ["a", "b"], "G": [1, 0]})
    assert Table(capitals, groups="g", predictions="G").cells.labels["g"] == ("a", "b")


# Mappings and what is no table ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({}, "the mapping has no columns."),
        ({"g": ["a"], "d": [1, 0]}, "all columns must have the same length; 'g' has 1 value, 'd' has 2 values."),
        ({"g": "ab", "d": [1, 0]}, "column 'g' must be a one-dimensional sequence; got 'ab'."),
        ({"g": 1, "d": [1, 0]}, "column 'g' must be a one-dimensional sequence; got an array of shape ()."),
        (
            {"g": [[1], [2]], "d": [1, 0]},
            "column 'g' must be a one-dimensional sequence; got an array of shape (2, 1).",
        ),
        (
            {"g": [[1], [2, 3]], "d": [1, 0]},
            "group column 'g' holds times, nested, binary, complex or 128-bit values; give a column of plain values.",
        ),
    ],
)
def test_bad_mappings(columns: Columns, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        Table(columns, groups="g", predictions="d")
    assert str(caught.value) == sentence


def test_mappings_of_any_sequence() -> None:
    for groups in (
        ("a", None, "b"),
        np.array(["a", None, "b"], dtype=object),
        np.ma.masked_array(["a", "x", "b"], [False, True, False]),
        np.ma.masked_array(np.array(["a", "x", "b"], dtype=object), [False, True, False]),
        pl.Series(["a", None, "b"]),
        pd.Series(["a", None, "b"]),
        pa.array(["a", None, "b"]),
    ):
        cells = Table({"g": groups, "d": [1, 0, 1]}, groups="g", predictions="d").cells
        assert cells.labels["g"] == ("a", "b", "(missing)")
    text = np.array(["a", "b"])
    assert Table({"g": text, "d": [1, 0]}, groups="g", predictions="d").cells.labels["g"] == ("a", "b")
    days = np.array(["2020-01-01", "NaT", "2021-01-01"], dtype="datetime64[D]")
    assert Table({"g": days, "d": [1, 0, 1]}, groups="g", predictions="d").cells.labels["g"][0] == "2020-01-01"


def test_a_type_that_shows_late_in_a_mapping() -> None:
    late = {"g": [None] * 5000 + ["a", "b"], "d": [1] * 5001 + [0], "s": [0] * 5001 + [0.5]}
    table = Table(late, groups="g", predictions={"d": "d", "s": "s"})
    assert table.cells.labels["g"] == ("a", "b", "(missing)")
    assert table.has_scores("s")


@pytest.mark.parametrize("data", [5, [1, 2], None, pd.Series([1]), pl.Series([1]), np.zeros(3)])
def test_what_is_no_table(data: Any) -> None:
    with pytest.raises(DataError) as caught:
        Table(data, groups="g", predictions="d")
    assert str(caught.value) == (
        "`data` must be a data frame (pandas, Polars, PyArrow, DuckDB, PySpark, ibis), a mapping of columns or a file "
        f"path; got {type(data).__name__}."
    )


def test_labels() -> None:
    values = [
        1,
        1.0,
        True,
        Decimal("1.50"),
        Decimal(100),
        dt.date(2020, 1, 2),
        dt.datetime(2020, 1, 2),
        0.1,
        np.float32(2),
    ]
    assert [label_of(value) for value in values] == [
        "1",
        "1",
        "true",
        "1.5",
        "100",
        "2020-01-02",
        "2020-01-02",
        "0.1",
        "2",
    ]
    assert sorted(["b", 10, 9.5, "a"], key=sort_key) == [9.5, 10, "a", "b"]
    assert shown(["a"], 5) == "'a'"
