"""Columns that break engines: the same sentence, or the same numbers, on every engine."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.errors import ConfigError, DataError
from evenhand.table import Table
from evenhand.table.profile import profile

ENGINES: dict[str, Callable[[Any], Any]] = {
    "mapping": lambda table: {name: table[name].to_pylist() for name in table.column_names},
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
    "lazy": lambda table: pl.DataFrame(pl.from_arrow(table)).lazy(),
    "arrow": lambda table: table,
    "duckdb": lambda table: duckdb.connect().from_arrow(table),
}
every_engine = pytest.mark.parametrize("engine", ENGINES)
GROUPS, DECISIONS = ["a", "b"] * 20, [1, 0, 0, 1] * 10
LONG = 2**53 + 1


def table_of(engine: str, columns: dict[str, Any], **roles: Any) -> Table:
    data = pa.table({"g": GROUPS, "d": DECISIONS} | columns)
    return Table(ENGINES[engine](data), **({"groups": "g", "predictions": "d"} | roles))


# Names ----------------------------------------------------------------------------------------------------

ODD_NAMES = ("`x`", '"q"', " x", "race ", "a\tb", "(a)", "a'b", "a.b", "x;y", "größe", "select")


@every_engine
@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_name_of_a_column_can_have_any_role(engine: str, name: str) -> None:
    plain = table_of(engine, {"y": DECISIONS[::-1], "w": [1.0] * 40}, groups="g", outcome="y", weight="w").cells
    of_group = table_of(engine, {name: GROUPS}, groups=name).cells
    assert of_group.n.tolist() == table_of(engine, {}).cells.n.tolist()
    others = {"outcome": name, "groups": "g", "weight": "w"}
    odd = table_of(engine, {name: DECISIONS[::-1], "w": [1.0] * 40}, **others).cells
    assert odd.n.tolist() == plain.n.tolist()
    assert table_of(engine, {name: DECISIONS}, predictions=name).cells.n.tolist() == of_group.n.tolist()


@every_engine
@pytest.mark.parametrize("name", ["*", "^g$", "^.*$"])
def test_names_that_are_patterns_to_an_engine_are_refused_by_name(engine: str, name: str) -> None:
    fault = f"{name!r} has a name that engines take for a pattern; rename it."
    for role, word in (("groups", "group"), ("outcome", "outcome"), ("predictions", "prediction"), ("id", "id")):
        with pytest.raises(DataError) as told:
            table_of(engine, {name: DECISIONS}, **{role: name})
        assert str(told.value) == f"{word} column {fault}"
    unused = table_of(engine, {name: DECISIONS})
    for read in (
        lambda: unused.counts("d", within=[name]),
        lambda: unused.coded_rows({"critic": name}),
        lambda: unused.person_rows([name]),
    ):
        with pytest.raises(ConfigError, match="has a name that engines take for a pattern; rename it"):
            read()
    assert unused.rows == 40


def test_a_column_without_a_name_is_refused_where_a_library_allows_one() -> None:
    data = pd.DataFrame({"": GROUPS, "d": DECISIONS})
    with pytest.raises(DataError, match="group column '' has no name; rename it"):
        Table(data, groups="", predictions="d")


def test_a_first_look_passes_over_names_that_are_patterns() -> None:
    kinds = {column.name: column.kind for column in profile(pl.DataFrame({"*": [1, 2], "^x$": [1, 2], "x": [1, 2]}))}
    assert kinds == {"*": "other", "^x$": "other", "x": "whole"}


# Numbers --------------------------------------------------------------------------------------------------


@every_engine
def test_whole_numbers_beyond_the_floats(engine: str) -> None:
    weights = table_of(engine, {"w": [LONG, 3 * LONG] * 20}, weight="w")
    assert weights.cells.sums["w"].sum() == 80 * float(LONG)
    cut = table_of(engine, {"n": [LONG, 5] * 20}, groups="n", cuts={"n": [100]})
    assert cut.cells.n.tolist() == [10, 10, 10, 10]
    unsigned = table_of(engine, {"w": pa.array([2**63 + 2**40, 2**62] * 20, pa.uint64())}, weight="w")
    assert unsigned.cells.rows == 40
    groups = table_of(engine, {"n": [LONG, LONG - 1] * 20}, groups="n").cells.labels["n"]
    assert groups == (f"n = {LONG - 1}", f"n = {LONG}")
    positive = table_of(engine, {"y": [LONG, LONG - 1] * 20}, outcome="y", positive=LONG)
    assert positive.cells.labels["outcome"] == ("0", "1")  # floats would take both for the positive value


def test_an_arrow_table_of_long_numbers_is_read_in_its_order() -> None:
    data = pa.table({"g": GROUPS, "d": [1.0, None] * 20, "n": [LONG] * 40})
    with pytest.raises(DataError, match=r"is missing in 20 rows of 40 \(rows 2, 4, 6, 8, 10, \.\.\.\)"):
        Table(data, groups="g", predictions={"m": "d"})
    assert Table(data, groups="g", predictions={"m": "d"}, missing="drop").backend == "pyarrow"


def read(columns: dict[str, Any], make: Callable[..., Any], roles: dict[str, Any]) -> Table:
    return Table(make(columns), **roles)


@pytest.mark.parametrize("role", ["groups", "outcome", "weight", "id", "predictions"])
def test_types_that_no_audit_can_read(role: str) -> None:
    bad: dict[str, list[Any]] = {
        "complex": [np.array([1 + 2j, 2] * 20), pd.DataFrame, dict],
        "bytes": [[b"a", b"\xff"] * 20, pd.DataFrame, pl.DataFrame, pa.table, dict],
        "bytes of NumPy": [np.array([b"a", b"\xff"] * 20), pd.DataFrame, dict],
        "times": [[dt.time(1), dt.time(2)] * 20, pd.DataFrame, pl.DataFrame, pa.table, dict],
        "128 bits": [[2**70, 2**71] * 20, pd.DataFrame],
    }
    people, roles = {"g": GROUPS, "d": DECISIONS}, {"groups": "g", "predictions": "d"} | {role: "x"}
    for values, *makers in bad.values():
        for make in makers:
            with pytest.raises(DataError, match="column 'x' holds times, nested, binary, complex or 128-bit values"):
                read({**people, "x": values}, make, roles)


def test_128_bits_are_read_where_64_are_enough() -> None:
    wide = duckdb.connect().sql(
        "select case when range % 2 = 0 then 'a' else 'b' end g, (range % 2)::hugeint d, (1 + range)::hugeint w, "
        "range::hugeint << 70 as id from range(40)"
    )
    narrow = Table({"g": ["a", "b"] * 20, "d": [0, 1] * 20, "w": range(1, 41)}, groups="g", predictions="d", weight="w")
    frame = pl.DataFrame({"g": ["a", "b"] * 20, "d": [0, 1] * 20, "w": range(1, 41)})
    eager = frame.with_columns(pl.col("d", "w").cast(pl.Int128))
    for data in (wide, eager, eager.lazy()):
        table = Table(data, groups="g", predictions="d", weight="w")
        assert table.cells.digest() == narrow.cells.digest()
    with pytest.raises(DataError, match="it holds whole numbers of more than 64 bits; turn them into text"):
        Table(wide, id="id", groups="g", predictions="d")
    long = frame.with_columns(id=pl.Series([2**70 + n for n in range(40)], dtype=pl.Int128))
    with pytest.raises(DataError, match="more than 64 bits"):
        Table(long.lazy(), id="id", groups="g", predictions="d")
    with pytest.raises(DataError, match="id column 'id' holds times, nested, binary, complex or 128-bit values"):
        Table(long, id="id", groups="g", predictions="d")
    assert Table(long, groups="g", predictions="d").rows == 40


# Damaged Parquet ------------------------------------------------------------------------------------------


def test_damaged_parquet_is_an_error_of_the_data(tmp_path: Path) -> None:
    """These bytes once reached a raw `duckdb.Error`: an offset beyond the end, a page that does not unpack."""
    draw = random.Random(3)  # noqa: S311
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"g": GROUPS * 20, "d": DECISIONS * 20}), path, compression="gzip")
    whole = path.read_bytes()
    for _ in range(8):
        damaged = bytearray(whole)
        for _ in range(3):
            damaged[draw.randrange(4, len(damaged))] = draw.randrange(256)
        path.write_bytes(damaged)
        with suppress(DataError):  # not every damage is found
            Table(path, groups="g", predictions="d")


def test_what_duckdb_and_polars_call_damage(tmp_path: Path) -> None:
    from evenhand.table.files import engine_errors

    class PanicException(BaseException):
        """As Polars raises it."""

    for error in (duckdb.Error("Out of buffer"), PanicException("called `Result::unwrap()`")):
        with pytest.raises(DataError, match=r"^'x\.parquet' could not be read: "), engine_errors("'x.parquet'"):
            raise error
