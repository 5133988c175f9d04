"""Tables of counts, and the warning that a table may be one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.errors import ConfigError, DataError
from evenhand.table.counts import count_notes
from evenhand.table.frames import draw_rows
from tests.audits.test_common import AUDITS, CASES, ROLES, people

BERKELEY = {  # admitted men, rejected men, admitted women, rejected women, by department: Bickel et al. (1975)
    "A": (512, 313, 89, 19),
    "B": (353, 207, 17, 8),
    "C": (120, 205, 202, 391),
    "D": (138, 279, 131, 244),
    "E": (53, 138, 94, 299),
    "F": (22, 351, 24, 317),
}
KINDS = (("Admitted", "Male"), ("Rejected", "Male"), ("Admitted", "Female"), ("Rejected", "Female"))
ADMISSION: dict[str, Any] = {
    "groups": "Gender",
    "predictions": {"admission": {"column": "Admit", "selected": "Admitted", "favourable": "selected"}},
}


def berkeley() -> pd.DataFrame:
    """Return the table of counts as R has it."""
    rows = [(*kind, dept, n) for dept, counts in BERKELEY.items() for kind, n in zip(KINDS, counts, strict=True)]
    return pd.DataFrame(rows, columns=["Admit", "Gender", "Dept", "Freq"])


def repeated(data: pd.DataFrame, count: str) -> pd.DataFrame:
    """Return the table with one row per person."""
    return data.loc[np.repeat(data.index, data[count])].drop(columns=count).reset_index(drop=True)


SOURCES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "pandas": lambda data, _: data,
    "polars": lambda data, _: pl.from_pandas(data),
    "lazy": lambda data, _: pl.from_pandas(data).lazy(),
    "pyarrow": lambda data, _: pa.Table.from_pandas(data),
    "duckdb": lambda data, _: duckdb.connect().from_df(data),
    "mapping": lambda data, _: data.to_dict("list"),
    "csv": lambda data, folder: data.to_csv(folder / "counts.csv", index=False) or folder / "counts.csv",
    "parquet": lambda data, folder: data.to_parquet(folder / "counts.parquet") or folder / "counts.parquet",
}


@pytest.mark.parametrize("source", SOURCES)
def test_counts_are_people_in_every_source(source: str, tmp_path: Path) -> None:
    table = eh.Table(SOURCES[source](berkeley(), tmp_path), count="Freq", **ADMISSION)
    found = eh.parity(table, within="Dept")
    values = {record.group: record for record in found.rows("values", stratum=None)}
    assert table.rows == 4526
    assert values["Female"].n == 1835
    assert values["Female"].value == pytest.approx(557 / 1835)
    assert values["Male"].value == pytest.approx(1198 / 2691)
    assert [note.id for note in table.source.notes] == ["table.stand_for"]
    in_pandas = eh.Table(berkeley(), count="Freq", **ADMISSION)
    eh.parity(in_pandas, within="Dept")
    assert table.digest() == in_pandas.digest()


@pytest.mark.parametrize("name", AUDITS)
def test_a_count_is_a_repetition_in_every_audit(name: str) -> None:
    data = pd.DataFrame(people()).drop(columns="id")
    data["times"] = np.arange(len(data)) % 4
    case = CASES[name]
    roles = {**ROLES, **case.roles}
    del roles["id"]
    tables = eh.Table(data, count="times", **roles), eh.Table(repeated(data, "times"), **roles)
    settings: Any = {name: case.settings}
    found, expected = (eh.audit(table, **settings).results[name].to_dict() for table in tables)
    assert {note["id"] for note in found.pop("notes")} >= {"table.stand_for"}
    assert found == {key: value for key, value in expected.items() if key != "notes"}


def test_a_survey_weight_beside_a_count_is_that_of_every_person() -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"g": rng.choice(["a", "b"], 90), "d": rng.integers(0, 2, 90), "w": rng.uniform(0.5, 2, 90)})
    data["n"] = rng.integers(0, 5, 90)
    roles: dict[str, Any] = {"groups": "g", "predictions": "d", "weight": "w"}
    counted, listed = (
        eh.parity(table).to_dict()["values"]
        for table in (eh.Table(data, count="n", **roles), eh.Table(repeated(data, "n"), **roles))
    )
    assert counted == listed


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ([1, -2, 3, 4], "count column 'Freq' is negative in 1 row of 4 (row 2)"),
        ([1.0, 2.5, 3.0, 4.5], "is not a whole number in 2 rows of 4 (rows 2, 4)"),
        ([1, None, 3, 4], "is missing in 1 row of 4 (row 2); it must say how many people each row stands for"),
        ([0, 0, 0, 0], "is 0 in every row: the table has nobody"),
        (["many", "few", "few", "few"], "count column 'Freq' holds text (such as 'few', 'many'), not numbers"),
        ([30_000_000, 1, 1, 1], "adds up to 30,000,003 people, and at most 20,000,000"),
    ],
)
def test_counts_that_are_none_are_told(counts: list[Any], told: str) -> None:
    data = pd.DataFrame({"g": ["a", "a", "b", "b"], "d": [0, 1, 0, 1], "Freq": counts})
    with pytest.raises(DataError) as raised:
        eh.Table(data, groups="g", predictions="d", count="Freq")
    assert told in str(raised.value)


def test_row_numbers_in_errors_are_those_of_the_table_of_counts() -> None:
    data = berkeley().assign(score=0.5)
    data.loc[2, "score"] = None
    with pytest.raises(DataError, match=r"1 row of 24 \(row 3\)"):
        eh.Table(data, groups="Gender", predictions="score", count="Freq")


def test_what_a_count_cannot_be_used_with_is_told() -> None:
    data = berkeley().assign(score=np.linspace(0, 1, 24), person=range(24))
    with pytest.raises(ConfigError, match="leave out one of the two"):
        eh.Table(data, groups="Gender", predictions="score", count="Freq", id="person")
    with pytest.raises(ConfigError, match="give its `threshold`"):
        eh.Table(data, groups="Gender", predictions="score", count="Freq", percentile={"of": 62})
    with pytest.raises(DataError, match="is not in the data; did you mean 'Freq'"):
        eh.Table(data, groups="Gender", predictions="score", count="Frq")


PEAK = """
import resource, sys
import evenhand as eh
table = eh.Table(sys.argv[1], groups="g", predictions="d", count="n")
print(*table.cells.n.tolist(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_hundreds_of_millions_of_people_in_a_row_need_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("g,d,n\na,0,300000000\na,1,4095\nb,0,4096\nb,1,0\n")
    ran = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True)
    *n, kilobytes = map(int, ran.stdout.split())
    assert n == [300_000_000, 4095, 4096]
    assert kilobytes < 1_800_000  # a list of the people alone would take 2,400,000 more than the 400,000 of a start


def test_drawn_rows_of_counts_are_people() -> None:
    table = eh.Table(berkeley(), count="Freq", **ADMISSION)
    drawn = draw_rows(table.complete_rows(table.kinds), 500, [], np.random.default_rng(0), None)
    assert table.with_data(drawn).rows == 500


def test_a_column_named_like_counts_is_asked_about() -> None:
    assert [note.id for note in count_notes(eh.Table(berkeley(), **ADMISSION))] == ["table.may_be_counts"]
    found = eh.parity(eh.Table(berkeley(), **ADMISSION))
    assert "table.may_be_counts" in [note.id for note in found.notes]


@pytest.mark.parametrize(
    ("column", "values"),
    [("Freq", [0, 1] * 12), ("Freq", [0.5] * 24), ("Freq", ["x"] * 24), ("age", list(range(24))), ("n", [None] * 24)],
)
def test_no_other_column_is_asked_about(column: str, values: list[Any]) -> None:
    data = berkeley().drop(columns="Freq").assign(**{column: values})
    assert list(count_notes(eh.Table(data, **ADMISSION))) == []
    assert list(count_notes(eh.Table(berkeley(), count="Freq", **ADMISSION))) == []
