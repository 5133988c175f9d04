"""What engines say: faults of the data become one sentence, faults of ours pass through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import polars as pl
import pytest

from evenhand.errors import ConfigError, DataError, problem
from evenhand.table import Table
from evenhand.table.files import MisreadTypeError, engine_errors, reason


def refusal(data: Any) -> str:
    with pytest.raises(DataError) as caught:
        Table(data, groups="g", predictions="d")
    return str(caught.value)


def test_lazy_frames_over_broken_files(tmp_path: Path) -> None:
    late = tmp_path / "late.csv"
    late.write_text("g,d\n" + "1,0\n2,1\n" * 500 + "x,1\n")
    told = refusal(pl.scan_csv(late))
    assert told.startswith("the data could not be read: could not parse `x` as dtype `i64` at column 'g'")
    assert "\n" not in told
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(b"PAR1 and no more")
    assert refusal(pl.scan_parquet(cut)).startswith("the data could not be read: ")
    assert "No such file" in refusal(pl.scan_parquet(tmp_path / "none.parquet"))


def test_a_relation_that_fails_while_it_runs() -> None:
    relation = duckdb.connect().sql("select case when range < 5 then 'a' else 'x' end::int as g, 1 as d from range(9)")
    assert refusal(relation).startswith("the data could not be read: Could not convert string 'a' to INT32")


@pytest.mark.parametrize(
    "error",
    [
        TypeError("ours"),
        KeyError("ours"),
        RuntimeError("ours"),
        NotImplementedError("ours"),
        duckdb.BinderException("ours"),
        duckdb.CatalogException("ours"),
        duckdb.InternalException("ours"),
        nw.exceptions.ColumnNotFoundError("ours"),
        nw.exceptions.InvalidOperationError("ours"),
        ConfigError("ours"),
    ],
)
def test_errors_of_ours_pass_through(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, engine_errors():
        raise error
    assert caught.value is error


def test_a_data_error_is_not_wrapped_twice() -> None:
    inner = DataError([problem("one."), problem("two.")])
    with pytest.raises(DataError) as caught, engine_errors("the file"), engine_errors("the data"):
        raise inner
    assert caught.value is inner


def test_ctrl_c_stays_ctrl_c() -> None:
    with pytest.raises(KeyboardInterrupt), engine_errors():
        raise RuntimeError("Query interrupted")
    with pytest.raises(KeyboardInterrupt), engine_errors():
        raise KeyboardInterrupt


def test_a_conversion_is_a_misread_type() -> None:
    with pytest.raises(MisreadTypeError, match=r"^the data could not be read: no\.$"), engine_errors():
        raise duckdb.ConversionException("Conversion Error: no")


def test_text_that_cannot_be_decoded() -> None:
    with pytest.raises(DataError, match=r"could not be read as text: .*give its encoding"), engine_errors("'x.csv'"):
        b"\xff".decode("utf-8")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("IO Error: nothing there.", "nothing there."),
        ("Invalid Input Error: a\nb\nPossible fixes:\n* c", "a; b."),
        ("no prefix\nTry harder", "no prefix."),
        (
            "CSV Error on Line: 2\nOriginal Line: x\nValue with unterminated quote found.\n\nPossible fixes:",
            "CSV Error on Line: 2; Original Line: x; Value with unterminated quote found.",
        ),
    ],
)
def test_reasons(text: str, sentence: str) -> None:
    assert reason(text).text == sentence
