"""Files: which are opened, how text files are read, and what is said of broken ones."""

from __future__ import annotations

import gzip
import math
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.errors import ConfigError, DataError
from evenhand.table import Table, files
from evenhand.table.engines import connect
from evenhand.table.sources import FileOptions, open_source

ROWS = "a,1\nb,0\na,0\nb,1\n"


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path | str, **options: Any) -> Table:
    return Table(path, **({"groups": "g", "predictions": "d"} | options))


def refusal(path: Path | str, **options: Any) -> str:
    with pytest.raises((DataError, ConfigError)) as caught:
        read(path, **options)
    return str(caught.value)


# Which files ----------------------------------------------------------------------------------------------

NAMES = [
    "data.csv",
    "DATA.CSV",
    "data[1].csv",
    "da*ta?.csv",
    'it\'s "quoted".csv',
    "späße 🙂.csv",
    "a b/c d.csv",
    "odd [folder] */data.csv",
    "data.2024.csv",
    "-data.csv",
    "$HOME;x.csv",
    "{a}.csv",
    "back\\slash.csv",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_paths_are_taken_as_they_are_written(tmp_path: Path, name: str, ending: str) -> None:
    path = (tmp_path / name).with_suffix(f".{ending}")
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path.with_name(f"data1.{ending}"), "not this one")
    if ending == "csv":
        write(path, "g,d\n" + ROWS)
    elif ending == "parquet":
        pq.write_table(pa.table({"g": ["a", "b"] * 2, "d": [1, 0, 0, 1]}), path)
    else:
        write(path, '{"g": "a", "d": 1}\n{"g": "b", "d": 0}\n{"g": "a", "d": 0}\n{"g": "b", "d": 1}\n')
    table = read(path)
    assert table.rows == 4
    assert [file["name"] for file in table.source.fingerprints()] == [path.name]


def test_patterns(tmp_path: Path) -> None:
    folder = tmp_path / "odd [1]"
    for name in ("b.csv", "a.csv", "deep/c.csv"):
        write(folder / name, "g,d\n" + ROWS)
    table = read(folder / "*.csv")
    assert table.rows == 8
    assert [os.path.basename(path) for path in table.source.paths] == ["a.csv", "b.csv"]
    assert read(f"{folder}/**/*.csv").rows == 12
    assert read(f"{folder}/[ab].csv").rows == 8


def test_a_pattern_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "x1.csv", "g,d\n" + ROWS)
    monkeypatch.chdir(tmp_path)
    assert read("x?.csv").source.paths == ("x1.csv",)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    people = write(tmp_path / "people.csv", "g,d\n" + ROWS)
    assert refusal(tmp_path / "poeple.csv") == f"there is no file '{tmp_path}/poeple.csv'; did you mean 'people.csv'?"
    assert refusal(tmp_path / "no/people.csv") == (
        f"there is no file '{tmp_path}/no/people.csv'; there is no folder '{tmp_path}/no'."
    )
    assert (
        refusal(tmp_path / "*.parquet") == f"no file matches '{tmp_path}/*.parquet'; check the folder and the pattern."
    )
    assert refusal(tmp_path) == f"'{tmp_path}' is a folder; give a file or a pattern such as '{tmp_path}/*.parquet'."
    assert refusal(write(tmp_path / "empty.csv", "")) == f"the file '{tmp_path}/empty.csv' is empty (0 bytes)."
    assert refusal(write(tmp_path / "people.docx", "PK")) == (
        f"the format of '{tmp_path}/people.docx' is not known from its name; evenhand reads .csv, .tsv, .txt, "
        ".parquet, .json and .ndjson files, and one at a time .xlsx, .ods, .dta, .sav, .feather and .rds."
    )
    write(tmp_path / "people.json", "{}")
    assert refusal(tmp_path / "people.[cj]s*") == (
        "the files are of several formats (csv, json); give one format at a time."
    )
    os.mkfifo(tmp_path / "pipe.csv")
    assert (
        refusal(tmp_path / "pipe.csv") == f"'{tmp_path}/pipe.csv' is a pipe or a device; save the data as a file first."
    )
    assert read(os.fspath(people)).rows == 4


def test_nothing_is_fetched_from_the_network() -> None:
    for url in ("https://example.org/people.csv", "s3://bucket/people.parquet"):
        assert refusal(url).startswith(f"there is no file '{url}'")


# Text files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("\ufeffg,d\n" + ROWS, {}),
        (("g,d\n" + ROWS).replace(",", ";"), {}),
        (("g,d\n" + ROWS).replace(",", "\t"), {}),
        (("g,d\n" + ROWS).replace(",", "|"), {}),
        (("g,d\n" + ROWS).replace(",", "#"), {"delimiter": "#"}),
        (("g,d\n" + ROWS).replace("\n", "\r\n"), {}),
        (("g,d\n" + ROWS).replace("\n", "\r"), {}),
        ("g,d\n" + ROWS + "\n\n", {}),
        ('"g","d"\n"a","1"\n"b","0"\n"a","0"\n"b","1"\n', {}),
        (("g,d\n" + ROWS).encode("utf-16"), {}),
        (("g,d\n" + ROWS).encode("utf-16"), {"encoding": "utf-16"}),
        (" g, d\na, 1\nb, 0\na,0 \nb,  1\n", {}),
    ],
)
def test_dialects(tmp_path: Path, content: str | bytes, options: dict[str, Any]) -> None:
    table = read(write(tmp_path / "people.csv", content), **options)
    assert table.cells.labels["g"] == ("a", "b")
    assert table.cells.n.tolist() == [1, 1, 1, 1]


def test_quoted_newlines_quotes_and_commas(tmp_path: Path) -> None:
    text = '"g","d"\n"two\nlines",1\n"say ""hi"", all",0\n#no comment,1\n'
    assert read(write(tmp_path / "people.csv", text)).cells.labels["g"] == (
        "#no comment",
        'say "hi", all',
        "two\nlines",
    )


def test_quotes_that_first_come_late(tmp_path: Path) -> None:
    text = "g,d\n" + "a,1\n" * 30_000 + '"b, c",0\n'
    assert read(write(tmp_path / "people.csv", text)).cells.labels["g"] == ("a", "b, c")


def test_encodings(tmp_path: Path) -> None:
    latin = write(tmp_path / "latin.csv", "g,d\nMéxico,1\nSão,0\n".encode("latin-1"))
    guessed, told = read(latin), read(latin, encoding="latin-1")
    assert guessed.cells.labels["g"] == told.cells.labels["g"] == ("México", "São")
    assert tuple(map(str, guessed.source.notes)) == ("The file is not UTF-8; it was read as latin-1.",)
    assert tuple(map(str, told.source.notes)) == ()
    assert refusal(latin, encoding="utf-8") == (
        f"'{latin}' could not be read: line 2 of it is not all UTF-8; "
        "give its encoding (encoding='latin-1'), or save it as UTF-8."
    )
    windows = write(tmp_path / "windows.csv", "g,d\n“a”,1\nb,0\n".encode("cp1252"))
    assert refusal(windows) == f"'{windows}' could not be read: it is not all LATIN-1; save it as UTF-8."
    assert "`encoding` in the options of the file: must be 'utf-8', 'latin-1' or 'utf-16'" in refusal(
        latin, encoding="klingon"
    )


def test_characters_that_duckdb_cannot_read_from_utf_16(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", "g,d\n🙂,1\nb,0\n".encode("utf-16"))
    assert refusal(path) == f"'{path}' could not be read: it is not all UTF-16; save it as UTF-8."


def test_a_character_cut_by_the_sample_is_no_other_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "people.csv", "g,d\nMé,1\nb,0\n")
    monkeypatch.setattr(files, "_SNIFFED_BYTES", 6)
    assert read(path).source.notes == ()


def test_latin_after_the_sample_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "people.csv", ("g,d\n" + "a,1\n" * 40_000 + "é,0\n").encode("latin-1"))
    monkeypatch.setattr(files, "_SNIFFED_BYTES", 1000)
    assert "line 40002 of it is not all UTF-8; give its encoding (encoding='latin-1')" in refusal(path)


def test_decimal_commas(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", "g;s\na;0,25\nb;0,75\n")
    roles = {"predictions": {"m": {"column": "s", "kind": "score"}}}
    assert refusal(path, **roles) == (
        "score column 's' (model 'm') holds text (such as '0,25', '0,75'), not numbers; these are decimal commas: "
        "in a file, say decimal=','."
    )
    assert read(path, **roles, decimal=",").score_cells("m").sums["s"].tolist() == [0.25, 0.75]


def test_words_for_missing_values(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", "g,s\na,0.25\nb,NA\nc,\nb,0.5\n")
    roles = {"predictions": {"m": {"column": "s", "kind": "score"}}, "missing": "drop"}
    assert "holds text (such as 'NA'), not numbers; convert it; words for missing" in refusal(path, **roles)
    table = read(path, **roles, missing_values=["NA"])
    assert (table.rows, table.dropped) == (2, 2)


def test_row_numbers_of_a_file(tmp_path: Path) -> None:
    rows = ["a,1,0.5", "b,0,0.5"] * 40_000
    rows[12] = "a,1,"
    rows[70_000] = "a,1,nan"
    path = write(tmp_path / "people.csv", "g,d,s\n" + "\n".join(rows) + "\n")
    for source in (path, _as_parquet(path)):
        assert refusal(source, predictions={"m": "s"}) == (
            "prediction column 's' is missing in 2 rows of 80,000 (rows 13, 70001); "
            "fill them, or drop them with missing='drop'."
        )
    write(tmp_path / "people2.csv", "g,d,s\na,1,\n")
    assert "is missing in 3 rows of 80,001; fill" in refusal(tmp_path / "people*.csv", predictions={"m": "s"})


def _as_parquet(path: Path) -> Path:
    relation: Any = open_source(path).frame.to_native()
    relation.write_parquet(os.fspath(path.with_suffix(".parquet")))
    return path.with_suffix(".parquet")


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("g,d,d", "has the column 'd' more than once; rename the columns so that each is unique."),
        ("g,d,d,g", "has the column 'g', 'd' more than once; rename the columns so that each is unique."),
        ("g,d,G", "has columns that differ only in capital letters ('g', 'G'); rename them."),
    ],
)
def test_repeated_names_in_a_header(tmp_path: Path, header: str, sentence: str) -> None:
    path = write(tmp_path / "people.csv", header + "\na,1,1,1\n"[: 2 * len(header.split(",")) + 1] + "\n")
    assert refusal(path) == f"the header of 'people.csv' {sentence}"


def test_repeated_names_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table([["a", "b"], [1, 0], [0, 1]], names=["g", "d", "d"]), path)
    assert refusal(path).startswith("the file 'people.parquet' has the column 'd' more than once")
    pq.write_table(pa.table([["a", "b"], [1, 0], [0, 1]], names=["g", "d", "D"]), path)
    assert "differ only in capital letters ('d', 'D')" in refusal(path)
    pq.write_table(pa.table({"g": ["a", "b"], "d": [1, 0], "d_1": [0, 1]}), path)
    assert read(path).rows == 2


@pytest.mark.parametrize("scores", [[0.1, math.nan, 0.5, 0.5], [0.5, math.nan, 0.5, 0.5], [math.nan, 0.0, -0.0, 0.5]])
def test_not_a_number_in_parquet(tmp_path: Path, scores: list[float]) -> None:
    """Statistics of a Parquet file leave not-a-number out, and DuckDB would conclude that there is none."""
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"g": ["a", "b"] * 2, "d": scores, "y": [1, 0, 1, 0]}), path)
    row = 1 + [math.isnan(score) for score in scores].index(True)
    for roles in ({"predictions": {"m": {"column": "d", "kind": "score"}}}, {"outcome": "d", "predictions": "y"}):
        told = refusal(path, **roles)
        assert f"column 'd' is missing in 1 row of 4 (row {row}); fill it" in told
    assert f"id column 'd' is missing in 1 row of 4 (row {row})" in refusal(path, id="d", predictions="y")
    assert f"weight column 'd' is missing in 1 row of 4 (row {row})" in refusal(path, weight="d", predictions="y")
    table = read(path, outcome="y", predictions={"m": "d"}, missing="drop")
    assert (table.rows, table.dropped) == (3, 1)
    assert math.fsum(table.score_cells("m").sums["s"]) == math.fsum(s for s in scores if not math.isnan(s))
    if len(set(scores)) > 2:
        assert read(path, groups="d", predictions="y").cells.labels["d"][-1] == "(missing)"


def test_not_a_number_in_a_relation_over_parquet(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"g": ["a", "b"] * 2, "d": [0.1, math.nan, 0.5, 0.5]}), path)
    relation = duckdb.connect().read_parquet(os.fspath(path))
    table = Table(relation, groups="g", predictions={"m": "d"})
    with pytest.raises(DataError, match=r"give the file itself, or read it with read_parquet\(\.\.\., can_have_nan"):
        table.score_cells("m")


def test_zstandard(tmp_path: Path) -> None:
    def packed(content: str) -> Path:
        with pa.CompressedOutputStream(os.fspath(tmp_path / "people.csv.zst"), "zstd") as file:
            file.write(content.encode())
        return tmp_path / "people.csv.zst"

    assert read(packed("g;d\n" + ROWS.replace(",", ";"))).rows == 4
    assert "has the column 'd' more than once" in refusal(packed("g,d,d\na,1,2\n"))
    assert "could not be read" in refusal(packed("g,d\na,1,2\nb\n"))


@pytest.mark.parametrize("ending", ["csv", "tsv", "json", "ndjson", "parquet", "csv.gz", "csv.zst", "json.gz"])
def test_noise_is_refused(tmp_path: Path, ending: str) -> None:
    draw = random.Random(ending)  # noqa: S311
    for size in (1, 10, 1_000, 20_000):
        told = refusal(write(tmp_path / f"noise.{ending}", draw.randbytes(size)))
        assert "\x00" not in told


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n"])
def test_bad_delimiters(tmp_path: Path, delimiter: str) -> None:
    path = write(tmp_path / "people.csv", "g,d\n" + ROWS)
    if delimiter:
        assert refusal(path, delimiter=delimiter) == (
            f"`delimiter` must be one character, and no quotation mark; got {delimiter!r}."
        )
    else:
        assert read(path, delimiter=delimiter).rows == 4


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("g,d,x\na,1,2\nb,0\n", "line 3 has 2 fields where the header has 3 ('b,0')."),
        ("g,d\na,1\nb,0,5,6\n", "line 3 has 4 fields where the header has 2 ('b,0,5,6')."),
        ("g,d\n" + "a,1\n" * 30_000 + "b\n", "line 30,002 has 1 field where the header has 2 ('b')."),
        ("g,d,x\na,1,\n" + "y" * 200 + "\n", f"line 3 has 1 field where the header has 3 ('{'y' * 80}...')."),
        ('g,d\n"a,1\nb,0\n', "line 3 is not valid CSV (unexpected end of data)."),
    ],
)
def test_ragged_rows(tmp_path: Path, content: str, reason: str) -> None:
    path = write(tmp_path / "people.csv", content)
    assert refusal(path) == f"'{path}' could not be read: {reason}"


def test_mixed_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", "g,d\r\na,1\nb,0\r\n")
    assert refusal(path) == f"'{path}' could not be read as CSV; look for stray quotation marks or mixed line ends."


def test_types_that_change_late(tmp_path: Path) -> None:
    """DuckDB guesses types from the first rows; a later row of another type makes it look at all of them."""
    text = "g,d,s,h\n" + "1,0,1,1\n2,1,0,2\n" * 15_000 + "x,1,0.5,y\n"
    path = write(tmp_path / "people.csv", text)
    table = read(path, predictions={"m": {"column": "s", "kind": "score"}, "d": "d"})
    assert table.cells.labels["g"] == ("g = 1", "g = 2", "x")
    assert table.rows == 30_001
    assert table.counts("d", within=["h"]).labels["h"] == ("h = 1", "h = 2", "y")


def test_a_type_that_changes_in_a_column_read_later(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", "g,d,h\n" + "a,0,1\nb,1,2\n" * 15_000 + "a,1,y\n")
    table = read(path)
    before = table.cells.digest()
    assert table.counts("d", within=["h"]).labels["h"] == ("h = 1", "h = 2", "y")
    assert table.cells.digest() == before


def test_a_weight_of_zero_stays_nobody_when_a_file_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", "g,d,h,w\n" + "a,0,1,1\nb,1,2,0\n" * 15_000 + "b,1,y,1\n")
    table = read(path, weight="w")
    assert table.counts("d", within=["h"]).rows == table.rows == 15_001
    assert tuple(map(str, table.source.notes)) == ("15,000 rows have a weight of 0 and count as nobody.",)


def test_types_that_change_late_in_json(tmp_path: Path) -> None:
    rows = '{"g": 1, "d": 0}\n{"g": 2, "d": 1}\n' * 15_000 + '{"g": "x", "d": 1}\n'
    assert read(write(tmp_path / "people.ndjson", rows)).cells.labels["g"] == ("g = 1", "g = 2", "x")


# Other broken files ---------------------------------------------------------------------------------------


def test_broken_files(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"g": ["a", "b"] * 500, "d": [1, 0] * 500}), whole)
    broken: dict[str, bytes] = {
        "cut.parquet": whole.read_bytes()[:-50],
        "text.parquet": b"g,d\na,1\n",
        "cut.json": b'[{"g": "a", "d": 1}, {"g": ',
        "text.json": b"g,d\na,1\n",
        "twice.json": b'[{"g": "a", "g": "b", "d": 1}]',
        "text.csv.gz": b"g,d\na,1\n",
        "cut.csv.gz": gzip.compress(("g,d\n" + ROWS * 1000).encode())[:40],
    }
    for name, content in broken.items():
        told = refusal(write(tmp_path / name, content))
        assert "could not be read: " in told, name
        assert "\n" not in told, name
        assert told.endswith("."), name
        assert "Error" not in told, name


def test_a_json_file_that_is_no_table(tmp_path: Path) -> None:
    assert "group column 'g' is not in the data" in refusal(write(tmp_path / "list.json", "[1, 2, 3]"))
    nested = write(tmp_path / "nested.json", '[{"g": ["a"], "d": 1}, {"g": ["b"], "d": 0}]')
    assert refusal(nested) == (
        "group column 'g' holds times, nested, binary, complex or 128-bit values; give a column of plain values."
    )


def test_json_of_several_types(tmp_path: Path) -> None:
    text = '[{"g": "a", "d": true}, {"g": 1, "d": false}, {"d": true}, {"g": "a", "d": null}]'
    table = read(write(tmp_path / "people.json", text), missing="drop")
    assert table.cells.labels["g"] == ("g = 1", "a", "(missing)")
    assert (table.rows, table.dropped) == (3, 1)


def test_files_of_different_columns(tmp_path: Path) -> None:
    write(tmp_path / "p1.csv", "g,d\n" + ROWS)
    write(tmp_path / "p2.csv", "g,x\n" + ROWS)
    told = refusal(tmp_path / "p*.csv")
    assert told.startswith(f"'{tmp_path / 'p*.csv'}' could not be read: Schema mismatch between globbed files; ")
    assert told.endswith('Column with name: "d" is missing.')
    assert "\n" not in told


def test_header_only(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", "g,d,s\n")
    assert refusal(path, predictions={"m": {"column": "s", "kind": "score"}}) == "the data has no rows."


def test_spills_go_to_the_folder_for_temporary_files() -> None:
    found = connect().execute("select current_setting('temp_directory')").fetchone()
    assert found is not None
    assert "evenhand-" in found[0]


def test_options_of_files_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"`decimal` in the options of the file: must be '\.' or ','; got ';'"):
        Table("x.csv", decimal=";")
    assert FileOptions().missing_values == ("",)


@pytest.mark.parametrize("number", ["51.5", "5.15e1"])
def test_a_fraction_after_many_whole_numbers_is_not_rounded(tmp_path: Path, number: str) -> None:
    path = tmp_path / "late.csv"
    rows = [f"{i % 7},{'ab'[i % 2]},0.5" for i in range(24_000)]
    path.write_text("\n".join(["it's x,g,m", *rows, f"{number},a,0.5"]) + "\n")
    numbers = Table(str(path), groups="g", predictions="m").person_rows(["it's x"]).numbers["it's x"]
    assert numbers.max() == 51.5
    assert len(numbers) == 24_001


@pytest.mark.parametrize("number", ["0x10", "0XE", "0b11"])
@pytest.mark.parametrize("first", [True, False])
def test_a_number_as_programmers_write_it_stays_text(tmp_path: Path, number: str, first: bool) -> None:
    path = tmp_path / "hex.csv"
    rows = [f"{i % 7},{'ab'[i % 2]},0.5" for i in range(30 if first else 24_000)]
    odd = f"{number},a,0.5"
    path.write_text("\n".join(["it's x,g,m", *([odd, *rows] if first else [*rows, odd])]) + "\n")
    table = Table(str(path), groups=["g", "it's x"], predictions="m")
    assert number in table.cells.labels["it's x"]
    assert len(table.cells.labels["it's x"]) == 8
    with pytest.raises(ConfigError, match=r"must hold numbers"):
        table.person_rows(["it's x"])


def databases(connection: Any) -> set[str]:
    return {name for (name,) in connection.execute("select table_name from duckdb_tables()").fetchall()}


def test_a_database_has_one_user_at_a_time_and_serves_the_next() -> None:
    first, second = connect(), connect()
    first.execute("create table mark_of_the_first (x integer)")
    assert databases(second) == set()
    del first
    third = connect()
    assert databases(third) == {"mark_of_the_first"}
    third.execute("drop table mark_of_the_first")


def test_nothing_of_a_table_is_left_for_the_next(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", "g,d\n" + ROWS)
    source = open_source(path)
    source.head(1)
    assert databases(source.connection) == {"evenhand_head"}
    assert source.connection is not None
    source.connection.execute("set preserve_insertion_order = true")
    del source
    connection = connect()
    assert databases(connection) == set()
    found = connection.execute("select current_setting('preserve_insertion_order')").fetchone()
    assert found == (False,)


def test_a_file_that_is_written_again_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    found = []
    for last in ("C", "B"):
        pq.write_table(pa.table({"g": ["A"] * 9 + [last], "d": [0, 1] * 5}), path)
        os.utime(path, (1e9, 1e9))
        found.append(read(path).cells.labels["g"])
    assert found == [("A", "C"), ("A", "B")]


FORK = """
import os, sys
from evenhand.table import Table
def rows():
    return Table({"g": ["a", "b"] * 5, "d": [1, 0] * 5}, groups="g", predictions="d").rows
rows()
child = os.fork()
if child == 0:
    sys.exit(rows())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_process_that_forks_after_a_table_is_gone_ends() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], timeout=60, check=False)
    assert done.returncode == 10
