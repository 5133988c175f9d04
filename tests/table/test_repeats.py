"""The warning about rows that repeat."""

from __future__ import annotations

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
from evenhand.table.repeats import count_twins, repeat_notes

ENGINES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda data: data,
    "polars": pl.from_pandas,
    "lazy": lambda data: pl.from_pandas(data).lazy(),
    "pyarrow": pa.Table.from_pandas,
    "duckdb": lambda data: duckdb.connect().from_df(data),
}


def people(n: int, *, rows: int = 1, digits: int = 16, seed: int = 0) -> pd.DataFrame:
    """Return n people, each with a number of equal rows, in any order."""
    rng = np.random.default_rng(seed)
    score = rng.random(n).round(digits)
    data = pd.DataFrame({"group": rng.choice(["a", "b", "c"], n), "score": score, "y": rng.random(n) < score})
    return data.loc[np.repeat(np.arange(n), rows)].sample(frac=1, random_state=seed)


def notes(data: Any, **roles: Any) -> list[str]:
    table = eh.Table(data, **{"groups": "group", "outcome": "y", "predictions": {"m": "score"}, **roles})
    return [note.text for note in repeat_notes(table)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [300, 30_000])
def test_rows_of_one_person_are_told(engine: str, n: int) -> None:
    (note,) = notes(ENGINES[engine](people(n, rows=4)))
    assert "are equal to another one in every column with a role, also in score" in note
    assert not notes(ENGINES[engine](people(4 * n)))


def test_rows_of_a_file_are_told(tmp_path: Path) -> None:
    people(10_000, rows=3).to_csv(tmp_path / "people.csv", index=False)
    assert len(notes(tmp_path / "people.csv")) == 1


def test_the_share_is_that_of_rows_with_a_twin() -> None:
    data = pd.concat([people(900), people(50, rows=2, seed=1)])
    assert notes(data)[0].startswith("Of 1,000 rows compared, 10.0% are equal")


@pytest.mark.parametrize("n", [300, 30_000])
def test_it_does_not_depend_on_the_order_of_rows(n: int) -> None:
    data = people(n, rows=2)
    assert notes(data) == notes(data.sort_values("score")) == notes(data[::-1])


@pytest.mark.parametrize("digits", [2, 3])
@pytest.mark.parametrize("n", [1_000, 30_000])
def test_rounded_scores_of_different_people_are_no_repeated_rows(digits: int, n: int) -> None:
    assert not notes(people(n, digits=digits))


def test_ids_tell_people_apart() -> None:
    data = people(300, rows=4)
    assert not notes(data.assign(person=np.arange(len(data))), id="person")


def test_decisions_and_scores_of_few_values_are_not_compared() -> None:
    data = people(1_000, rows=2, digits=1)
    assert not notes(data)
    assert not notes(data, predictions={"m": {"column": "y", "kind": "decision"}})


def test_weights_are_compared_too() -> None:
    data = people(300, rows=2)
    data["w"] = 1 + np.random.default_rng(0).random(len(data))
    assert not notes(data, weight="w")


def test_audits_of_people_warn() -> None:
    data = people(150, rows=4)
    steps = [f"x{step}" for step in range(4)]
    data[steps] = np.random.default_rng(1).random((len(data), 4))
    table = eh.Table(data, groups="group", outcome="y", predictions={"m": "score"})
    improvability = eh.improvability(table, status_quo="m", features=steps)
    for result in (eh.parity(table, metrics="selection_rate"), eh.effort(table, trajectory=steps), improvability):
        assert sum(note.id == "table.repeated_rows" for note in result.notes) == 1


def test_counts_are_those_of_all_pairs(rng: np.random.Generator) -> None:
    x, g, h = rng.integers(0, 12, 60) / 7, rng.integers(0, 2, 60), rng.integers(0, 3, 60)
    rows = list(zip(x, g, h, strict=True))
    equal = sum(rows[i] == rows[j] for i in range(60) for j in range(i))
    tied = sum(rows[i][0] == rows[j][0] for i in range(60) for j in range(i))
    values = {value: place for place, value in enumerate(np.unique(x))}
    beside = [(a, b) for a in rows for b in rows if values[b[0]] == values[a[0]] + 1]
    agree = sum(a[1:] == b[1:] for a, b in beside)
    found = count_twins(x, [g, h])
    assert found.pairs == equal
    assert found.expected == pytest.approx(tied * agree / len(beside))
    assert found.share == sum(rows.count(row) > 1 for row in rows) / 60


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)
