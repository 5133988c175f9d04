"""What a value is called does not depend on where it came from: true and false, numbers in text files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.table import Table

GROUPS = [True, False, True, True, False] * 24
FIRST = [True, True, False, True, False, False] * 20
SECOND = [True, False, False, True, False, True] * 20
PEOPLE = {"g": GROUPS, "a": FIRST, "b": SECOND}


def _csv(spell: Callable[[bool], str]) -> Callable[[Path], Any]:
    def write(folder: Path) -> Path:
        rows = (",".join(map(spell, row)) for row in zip(*PEOPLE.values(), strict=True))
        (folder / "people.csv").write_text("\n".join([",".join(PEOPLE), *rows]) + "\n")
        return folder / "people.csv"

    return write


def _file(name: str) -> Callable[[Path], Any]:
    def write(folder: Path) -> Path:
        frame = pl.DataFrame(PEOPLE)
        frame.write_json(folder / name) if name.endswith("json") else frame.write_parquet(folder / name)
        return folder / name

    return write


SOURCES: dict[str, Callable[[Path], Any]] = {
    "True": _csv(str),
    "true": _csv(lambda value: str(value).lower()),
    "TRUE": _csv(lambda value: str(value).upper()),
    "json": _file("people.json"),
    "parquet": _file("people.parquet"),
    "mapping": lambda _: PEOPLE,
    "pandas": lambda _: pd.DataFrame(PEOPLE),
    "objects": lambda _: pd.DataFrame(PEOPLE).astype(object),
    "text": lambda _: pd.DataFrame(PEOPLE).astype(str),
    "categories": lambda _: pd.DataFrame(PEOPLE).astype(str).astype("category"),
    "polars": lambda _: pl.DataFrame(PEOPLE),
    "lazy": lambda _: pl.DataFrame(PEOPLE).lazy(),
    "arrow": lambda _: pa.table(PEOPLE),
    "duckdb": lambda _: duckdb.connect().from_arrow(pa.table(PEOPLE)),
}


@pytest.fixture(scope="module")
def expected() -> tuple[str, list[tuple[Any, ...]]]:
    return _agreement(pl.DataFrame(PEOPLE))


def _agreement(data: Any) -> tuple[str, list[tuple[Any, ...]]]:
    table = Table(data, groups="g")
    values = eh.agreement(table, raters=["a", "b"], metrics=["kappa"], resamples=100).values
    return table.digest(), [(row.group, row.metric, row.value, row.low, row.high) for row in values]


@pytest.mark.parametrize("source", SOURCES)
def test_true_and_false_are_the_same_groups_and_answers_from_every_source(
    source: str, tmp_path: Path, expected: tuple[str, list[tuple[Any, ...]]]
) -> None:
    """The draws of a group go by its name, so "True" beside "true" once moved the limits of agreement."""
    found = _agreement(SOURCES[source](tmp_path))
    assert {row[0] for row in found[1]} == {"(overall)", "g = false", "g = true"}
    assert found == expected


def test_spellings_in_one_column_are_one_group() -> None:
    mixed = {"g": ["True", "true", "FALSE", "false", "x"] * 4, "d": ["TRUE", "false"] * 10}
    table = Table(mixed, groups="g", predictions={"m": {"column": "d", "selected": "True"}})
    assert table.cells.labels["g"] == ("g = false", "g = true", "x")
    assert table.cells.n.tolist() == [4, 4, 4, 4, 2, 2]


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        (["1e3", "2"], ("2", "1000")),
        (["1", "1.0", "1e0", "2"], ("1", "2")),
        (["-0", "0", "1"], ("0", "1")),
        (["-0.0", "0", "1.5"], ("0", "1.5")),
        (["1", "1.0", "x"], ("1", "1.0", "x")),
        (["1e3", "-0", "x"], ("-0", "1e3", "x")),
        (["01", "1"], ("01", "1")),
        (["+1", "1"], ("+1", "1")),
        (["", "a", "b"], ("a", "b", "(missing)")),
        (['""', "a", "b"], ("a", "b", "(missing)")),
        (["  ", "a", "b"], ("a", "b", "(missing)")),
        (["", "1", "2.0"], ("1", "2", "(missing)")),
        (["nan", "1", "2"], ("1", "2", "(missing)")),
    ],
)
def test_fields_of_a_text_file(tmp_path: Path, fields: list[str], labels: tuple[str, ...]) -> None:
    path = tmp_path / "fields.csv"
    path.write_text("g;d\n" + "".join(f"{field};{row % 2}\n" for row, field in enumerate(fields * 6)))
    found = Table(path, groups="g", predictions="d", delimiter=";").cells.labels["g"]
    assert tuple(label.removeprefix("g = ") for label in found) == labels  # a bare number has the column before it
