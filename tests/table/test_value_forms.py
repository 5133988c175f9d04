"""The type of a column follows from all of its values: never from the first file, the first rows or the engine."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from evenhand.errors import DataError
from evenhand.table import Table

EARLY = 21_000  # rows: more than types are taken from at first


def groups(data: Any, **settings: Any) -> dict[str, int]:
    table = Table(data, groups="g", **settings)
    codes = table.cells.codes["g"]
    return {label: int(table.cells.n[codes == code].sum()) for code, label in enumerate(table.cells.labels["g"])}


# Several files --------------------------------------------------------------------------------------------


def in_parquet(folder: Path, *tables: dict[str, Any]) -> str:
    for number, columns in enumerate(tables):
        pq.write_table(pa.table({"g": ["A", "B"] * 10} | columns), folder / f"{number}.parquet")
    return str(folder / "*.parquet")


def test_scores_of_a_later_file_are_not_rounded_to_the_type_of_the_first(tmp_path: Path) -> None:
    files = in_parquet(tmp_path, {"s": [1, 0] * 10}, {"s": [0.4, 0.6] * 10})
    scores = Table(files, groups="g", predictions="s").score_rows("s").score
    assert np.unique(scores).tolist() == [0.0, 0.4, 0.6, 1.0]


def test_weights_of_a_later_file_are_not_rounded_to_nobody(tmp_path: Path) -> None:
    files = in_parquet(tmp_path, {"w": [1] * 20, "d": [1, 0] * 10}, {"w": [0.4] * 20, "d": [1, 0] * 10})
    table = Table(files, groups="g", predictions="d", weight="w")
    assert table.rows == 40
    assert table.cells.sums["w"].sum() == pytest.approx(28.0)


def test_codes_of_a_later_file_stay_text(tmp_path: Path) -> None:
    files = in_parquet(tmp_path, {"g": [1, 2] * 10}, {"g": ["01", "2"] * 10})
    assert groups(files) == {"g = 01": 10, "g = 1": 10, "g = 2": 20}


def test_fractions_beside_the_text_of_a_later_file_are_told_as_elsewhere(tmp_path: Path) -> None:
    values = [1.0, 2.5, float("nan"), -0.0] * 5, ["01", "x", "2.5", "1"] * 5
    files = in_parquet(tmp_path, {"g": values[0]}, {"g": values[1]}, {"g": [True, False] * 10}, {"g": [1, 7] * 10})
    mixed = [*values[0], *values[1], *[True, False] * 10, *[1, 7] * 10]
    assert groups(files) == groups({"g": mixed})
    assert groups(files)["g = 1"] == 20


def test_a_file_without_a_column_is_named(tmp_path: Path) -> None:
    files = in_parquet(tmp_path, {"d": [1, 0] * 10}, {"x": [1, 0] * 10})
    with pytest.raises(DataError, match=r"the file '1\.parquet' has no column 'd', which other files have\."):
        Table(files, groups="g", predictions="d")
    assert groups(files) == {"A": 20, "B": 20}


# Later rows -----------------------------------------------------------------------------------------------


def late_csv(path: Path, late: str, *, first: bool) -> Path:
    early = [f"{1 + row % 2},{row % 2}" for row in range(EARLY)]
    rows = [f"{late},1"] * 50
    path.write_text("\n".join(["g,d", *(rows + early if first else early + rows)]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("late", "label"),
    [
        ("01", "g = 01"),
        ("+1", "g = +1"),
        ("1_000", "1_000"),
        ("-01", "g = -01"),
        ("0x1", "0x1"),
        ("00.5", "g = 00.5"),
        ("12345678901234567890", "g = 12345678901234567890"),
        ("1.5", "g = 1.5"),
        ("x", "x"),
    ],
)
def test_a_code_in_any_row_of_a_text_file_is_a_group(tmp_path: Path, late: str, label: str, first: bool) -> None:
    found = groups(late_csv(tmp_path / "people.csv", late, first=first))
    assert found == {"g = 1": EARLY // 2, "g = 2": EARLY // 2, label: 50}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("late", ["1.0", " 1", "1e0"])
def test_another_way_to_write_a_number_is_no_other_group(tmp_path: Path, late: str, first: bool) -> None:
    found = groups(late_csv(tmp_path / "people.csv", late, first=first))
    assert found == {"g = 1": EARLY // 2 + 50, "g = 2": EARLY // 2}


def test_values_that_begin_after_the_first_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("g,s\n" + "A,\nB,\n" * EARLY + "A,0.25\nB,0.75\n" * 5)
    scores = Table(path, groups="g", predictions={"m": {"column": "s", "kind": "score"}}, missing="drop")
    assert sorted(set(scores.score_rows("m").score.tolist())) == [0.25, 0.75]


@pytest.mark.parametrize("ending", ["json", "ndjson"])
def test_late_fractions_and_codes_of_json(tmp_path: Path, ending: str) -> None:
    early = [{"g": row % 2, "s": row % 2} for row in range(EARLY)]
    rows = [json.dumps(row) for row in [*early, {"g": "01", "s": 0.4, "late": 1}, {"g": 1.0, "s": 0.6, "late": 2}]]
    path = tmp_path / f"people.{ending}"
    path.write_text("\n".join(rows) if ending == "ndjson" else f"[{','.join(rows)}]")
    table = Table(path, groups="g", predictions={"m": {"column": "s", "kind": "score"}})
    assert sorted(set(table.score_rows("m").score.tolist())) == [0.0, 0.4, 0.6, 1.0]
    assert groups(path) == {"g = 0": EARLY // 2, "g = 01": 1, "g = 1": EARLY // 2 + 1}
    assert np.nansum(table.person_rows(["late"]).numbers["late"]) == 3.0


def test_a_json_file_of_many_columns_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "people.json"
    path.write_text(json.dumps([{f"c{number}": number for number in range(500)} | {"g": g} for g in "AABB"]))
    assert groups(path) == {"A": 2, "B": 2}


# Words for missing values ---------------------------------------------------------------------------------

SOURCES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "pandas": lambda frame, _: frame,
    "polars": lambda frame, _: pl.DataFrame(frame.to_dict("list"), strict=False),
    "lazy": lambda frame, _: pl.LazyFrame(frame.to_dict("list"), strict=False),
    "arrow": lambda frame, _: pa.table(frame.to_dict("list")),
    "duckdb": lambda frame, _: duckdb.from_df(frame),
    "mapping": lambda frame, _: frame.to_dict("list"),
    "csv": lambda frame, path: frame.to_csv(path / "p.csv", index=False) or path / "p.csv",
    "parquet": lambda frame, path: frame.to_parquet(path / "p.parquet") or path / "p.parquet",
    "json": lambda frame, path: frame.to_json(path / "p.json", orient="records") or path / "p.json",
    "xlsx": lambda frame, path: frame.to_excel(path / "p.xlsx", index=False, engine="xlsxwriter") or path / "p.xlsx",
    "feather": lambda frame, path: feather.write_feather(frame, str(path / "p.feather")) or path / "p.feather",
}
every_source = pytest.mark.parametrize("source", SOURCES)


@every_source
def test_words_for_missing_values_are_missing_in_every_source(source: str, tmp_path: Path) -> None:
    data = pd.DataFrame({"g": ["A", "B", "NA", "-"] * 5, "d": [1, 0, 1, -99] * 5})
    table = Table(
        SOURCES[source](data, tmp_path), groups="g", predictions="d", missing="drop", missing_values=["NA", "-", "-99"]
    )
    assert (table.rows, table.dropped) == (15, 5)
    assert table.cells.labels["g"] == ("A", "B", "(missing)")
    assert table.settings()["missing_values"] == ["NA", "-", "-99"]


@pytest.mark.parametrize("source", ["mapping", "csv", "xlsx", "json"])
def test_numbers_beside_words_for_missing_values_are_numbers(source: str, tmp_path: Path) -> None:
    data = pd.DataFrame({"g": ["A", "B"] * 10, "s": [0.25, "NA", 0.75, 1] * 5})
    scores = {"m": {"column": "s", "kind": "score"}}
    table = Table(
        SOURCES[source](data, tmp_path), groups="g", predictions=scores, missing="drop", missing_values=["NA"]
    )
    assert (table.rows, table.dropped) == (15, 5)


@pytest.mark.parametrize("source", sorted(SOURCES.keys() - {"csv", "json"}))
@pytest.mark.parametrize("kind", ["datetime", "date", "boolean"])
def test_words_for_missing_dates_and_truths_are_missing_in_every_source(source: str, kind: str, tmp_path: Path) -> None:
    days = pd.to_datetime(["2020-01-01", "2021-01-01", "9999-12-31"] * 5).as_unit("us")
    values = {"datetime": days, "date": days.date, "boolean": [True, False, True] * 5}[kind]
    data = pd.DataFrame({"g": values, "h": ["x", "y", "x"] * 5})
    word = "False" if kind == "boolean" else "9999-12-31"
    if kind == "boolean":
        with pytest.raises(DataError, match=r"has only one group \('g = true'\)"):
            groups(SOURCES[source](data, tmp_path), missing_values=[word])
    else:
        found = groups(SOURCES[source](data, tmp_path), missing_values=[word])
        assert found == {"2020-01-01": 5, "2021-01-01": 5, "(missing)": 5}


# Times with a zone ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", sorted(SOURCES.keys() - {"csv", "json", "xlsx"}))
@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "America/New_York"])
def test_times_with_a_zone_are_told_in_utc(
    source: str, zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    autumn = pd.to_datetime(["2023-10-29 00:30", "2023-10-29 01:30"] * 5, utc=True).tz_convert(zone)
    data = SOURCES[source](pd.DataFrame({"g": autumn}), tmp_path)
    assert groups(data) == {"2023-10-29 00:30:00 UTC": 5, "2023-10-29 01:30:00 UTC": 5}


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
@pytest.mark.parametrize("session", ["Asia/Tokyo", "Europe/Berlin"])
def test_times_with_a_zone_are_told_in_utc_by_a_database(
    session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ibis = pytest.importorskip("ibis", reason="databases need evenhand[database]")
    monkeypatch.setenv("TZ", session)
    times = pd.to_datetime(["2023-10-29 00:30:00.75", "2023-10-29 01:30:00", None] * 5, utc=True, format="ISO8601")
    pd.DataFrame({"g": times.tz_convert("Europe/Berlin")}).to_parquet(tmp_path / "p.parquet")
    found = groups(ibis.duckdb.connect().read_parquet(tmp_path / "p.parquet"))
    assert found == {"2023-10-29 00:30:00 UTC": 5, "2023-10-29 01:30:00 UTC": 5, "(missing)": 5}


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "America/New_York"])
def test_objects_and_categories_that_are_times_with_a_zone_are_told_in_utc(zone: str) -> None:
    autumn = pd.to_datetime(["2023-10-29 00:30", "2023-10-29 01:30", None] * 5, utc=True).tz_convert(zone)
    for column in (pd.Series(list(autumn), dtype=object), pd.Categorical(autumn)):
        found = groups(pd.DataFrame({"g": column}))
        assert found == {"2023-10-29 00:30:00 UTC": 5, "2023-10-29 01:30:00 UTC": 5, "(missing)": 5}


# Types of pandas and Arrow --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        pd.Categorical([0.0, 1.0] * 5, ordered=True),
        pd.Categorical([0.0, 1.0] * 5),
        pd.arrays.SparseArray([0.0, 1.0, -0.0, 1.0, 0.0] * 2),
        pd.arrays.SparseArray([0, 1] * 5),
        pd.array([0, 1] * 5, dtype="int64[pyarrow]"),
        pd.array(pa.array([0, 1] * 5).dictionary_encode(), dtype=pd.ArrowDtype(pa.dictionary(pa.int64(), pa.int64()))),
        pd.array(np.array([0, 1] * 5, np.float16), dtype=pd.ArrowDtype(pa.float16())),
        pd.array(["0", "1"] * 5, dtype=pd.ArrowDtype(pa.string_view())),
    ],
)
def test_numbers_of_pandas_are_one_group_each(values: Any) -> None:
    assert list(groups(pd.DataFrame({"g": values}))) == ["g = 0", "g = 1"]


ODD_COLUMNS: dict[str, Any] = {
    "map": pa.array([[("a", 1)]] * 20, pa.map_(pa.string(), pa.int64())),
    "list view": pa.array([[1]] * 20, pa.list_view(pa.int64())),
    "union": pa.UnionArray.from_sparse(pa.array([0] * 20, pa.int8()), [pa.array([1] * 20)]),
    "interval": pa.array([pa.MonthDayNano([1, 2, 3])] * 20),
    "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((20, 2, 2))),
    "uuid": pa.array([bytes(16)] * 20, pa.uuid()),
    "struct": pa.array([{"a": 1}] * 20),
    "run-end dictionary": pa.RunEndEncodedArray.from_arrays(
        pa.array([10, 20], pa.int32()), pa.array(["x", "y"]).dictionary_encode()
    ),
}
PLAIN_COLUMNS: dict[str, Any] = {
    "run-end": pa.RunEndEncodedArray.from_arrays(pa.array([10, 20], pa.int32()), pa.array(["x", "y"])),
    "dictionary": pa.array(["x", "y"] * 10).dictionary_encode(),
    "string view": pa.array(["x", "y"] * 10, pa.string_view()),
    "large": pa.array(["x", "y"] * 10, pa.large_string()),
}
ARROW: dict[str, Callable[[pa.Table, Path], Any]] = {
    "arrow": lambda table, _: table,
    "pandas": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
    "feather": lambda table, path: (
        feather.write_feather(table, str(path / "p.feather"), compression="uncompressed") or path / "p.feather"
    ),
}


@pytest.mark.parametrize("source", ARROW)
@pytest.mark.parametrize("name", [*ODD_COLUMNS, *PLAIN_COLUMNS])
def test_columns_of_odd_types(source: str, name: str, tmp_path: Path) -> None:
    column = (ODD_COLUMNS | PLAIN_COLUMNS)[name]
    data = ARROW[source](pa.table({"g": ["A", "B"] * 10, "d": [1, 0] * 10, "x": column}), tmp_path)
    assert Table(data, groups="g", predictions="d").rows == 20
    if name in PLAIN_COLUMNS:
        assert Table(data, groups="x", predictions="d").cells.labels["x"] == ("x", "y")
        return
    with pytest.raises(DataError, match="group column 'x' holds times, nested, binary"):
        Table(data, groups=["g", "x"], predictions="d")


@pytest.mark.parametrize("kind", ["int64[pyarrow]", "uint64[pyarrow]", "Int64", "int64"])
def test_long_weights_of_pandas(kind: str) -> None:
    weights = pd.array([2**53 + 1, 2**53 + 3] * 5, dtype=kind)
    table = Table(pd.DataFrame({"g": ["A", "B"] * 5, "w": weights}), groups="g", weight="w")
    assert table.cells.sums["w"].sum() == 10.0 * (2**53 + 2)


@pytest.mark.parametrize("make", [lambda columns: columns, pd.DataFrame])
def test_decimals_beside_missing_values(make: Callable[[dict[str, Any]], Any]) -> None:
    values: Sequence[Any] = [Decimal("0.25"), pd.NA, Decimal("0.75"), None] * 5
    data = make({"g": ["A", "A", "B", "B"] * 5, "s": pd.Series(values, dtype=object)})
    table = Table(data, groups="g", predictions={"m": {"column": "s", "kind": "score"}}, missing="drop")
    assert sorted(set(table.score_rows("m").score.tolist())) == [0.25, 0.75]


def test_missing_values_of_pandas_in_lists() -> None:
    days = [pd.NaT, dt.date(2020, 1, 1), dt.date(2021, 1, 1), None] * 5
    assert groups({"g": days}) == {"2020-01-01": 5, "2021-01-01": 5, "(missing)": 10}
    assert groups({"g": [pd.NA, "a", "b", float("nan")] * 5}) == {"a": 5, "b": 5, "(missing)": 10}


@pytest.mark.parametrize("values", [[np.array([1, 2]), np.array([1])] * 10, [{}, {1}] * 10, [[1], "a"] * 10])
def test_nested_values_in_lists_are_refused(values: list[Any]) -> None:
    with pytest.raises(DataError, match="group column 'g' holds times, nested, binary"):
        groups({"g": values})


def test_decisions_as_text_of_fractions() -> None:
    table = Table({"g": ["a", "b"] * 5, "d": ["0.0", "1.0"] * 5}, groups="g", predictions="d")
    assert table.cells.labels["selected:d"] == ("0", "1")


# Labels ---------------------------------------------------------------------------------------------------


def test_composed_and_decomposed_letters_are_two_groups_and_a_note() -> None:
    table = Table({"g": ["Jos\u00e9", "Jose\u0301"] * 10, "d": [1, 0] * 10}, groups="g", predictions="d")
    assert [note.text for note in table.source.notes] == [
        r"g: 'Jose\u0301', 'Jos\xe9' look the same, but are written with other characters; they are 2 groups here."
    ]


@pytest.mark.parametrize(("bare", "full"), [("1", "g = 1"), ("yes", "g = yes"), (" 1", "g = 1 ")])
def test_a_bare_value_and_the_name_that_it_would_have_are_not_merged(bare: str, full: str) -> None:
    data = {"g": [bare, full, "2"] * 5}
    with pytest.raises(DataError, match=r"group column 'g' contains .* would both be shown as 'g = \w+'; name .* in"):
        groups(data)
    assert groups(data, labels={"g": {bare.strip(): "one"}}) == {"one": 5, full.strip(): 5, "g = 2": 5}


# Wide tables ----------------------------------------------------------------------------------------------


def test_a_column_that_repeats_but_for_blanks_is_refused_in_text_files(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("g , g,d\nA,B,1\nB,A,0\n")
    with pytest.raises(DataError, match=r"the header of 'people\.csv' has the column 'g' more than once"):
        Table(tmp_path / "people.csv", groups="g")


def test_a_column_that_repeats_in_a_later_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("g,d\nA,1\nB,0\n")
    (tmp_path / "1.csv").write_text("g,d,g\nA,1,X\nB,0,Y\n")
    with pytest.raises(DataError, match=r"the header of '1\.csv' has the column 'g' more than once"):
        Table(str(tmp_path / "*.csv"), groups="g")


def test_a_column_that_repeats_at_the_end_of_a_long_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    names = ["g", *(f"column_{number:06d}" for number in range(6_000)), "g"]
    path.write_text(",".join(names) + "\n" + ",".join(["A"] * len(names)) + "\n")
    with pytest.raises(DataError, match=r"the header of 'people\.csv' has the column 'g' more than once"):
        Table(path, groups="g")


def test_only_columns_with_a_role_are_read(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("g,d,x\n" + "A,1,7\nB,0,8\n" * 5)
    frames = {"pandas": pd.read_csv(path), "polars": pl.read_csv(path), "arrow": pa.table(pd.read_csv(path))}
    for data in (path, *frames.values(), duckdb.from_df(frames["pandas"]), pd.read_csv(path).to_dict("list")):
        table = Table(data, groups="g", predictions="d")
        assert table.source.frame.collect_schema().names() == ["g", "d"]
        assert table.kinds["x"] == "unread"
        assert sorted(table.person_rows(["x"]).numbers["x"].tolist()) == [7.0] * 5 + [8.0] * 5
        assert table.counts("d", within=["x"]).labels["x"] == ("x = 7", "x = 8")
        with pytest.raises(DataError, match=r"group column 'y' is not in the data; known names: 'g', 'd', 'x'"):
            Table(data, groups="y", predictions="d")


def test_dates_in_arrow_of_milliseconds() -> None:
    days = pa.array([dt.date(2020, 1, 1), dt.date(2020, 1, 2)] * 5, pa.date64())
    assert groups(pa.table({"g": days})) == {"2020-01-01": 5, "2020-01-02": 5}
