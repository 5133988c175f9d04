"""The hash of the data: it covers all that was read, and nothing but that."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evenhand.table import Table
from evenhand.table.coding import Coded
from evenhand.table.ledger import rows_digest

ROWS = 60
ROLES: dict[str, Any] = {
    "id": "who",
    "outcome": "y",
    "groups": ["g", "age"],
    "cuts": {"age": [40]},
    "predictions": {"m": "s"},
    "weight": "w",
}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "who": [f"p{i}" for i in range(ROWS)],
            "g": np.where(np.arange(ROWS) % 3 == 0, "a", "b"),
            "age": rng.integers(20, 60, ROWS),
            "y": rng.integers(0, 2, ROWS),
            "s": rng.random(ROWS).round(6),
            "w": rng.integers(1, 4, ROWS).astype(float),
            "x": np.where(np.arange(ROWS) == 7, np.nan, rng.normal(size=ROWS)),
            "z": rng.integers(1, 9, ROWS),
            "colour": np.where(np.arange(ROWS) % 4 == 0, "red", "blue"),
            "owner": np.arange(ROWS) % 2 == 0,
            "unused": np.arange(ROWS),
        }
    )


def read_scores(table: Table) -> None:
    table.score_rows("m")
    table.score_cells("m")


READS: dict[str, tuple[Callable[[Table], Any], tuple[str, ...]]] = {
    "counts within strata": (lambda table: table.counts("m", within=["colour"]), ("colour", "y", "g")),
    "scores": (read_scores, ("s", "y", "g", "w", "age")),
    "people": (lambda table: table.person_rows(["x", "z"]), ("x", "z", "s", "w", "who")),
    "codes": (lambda table: table.coded_rows({"a": "z", "b": "colour", "c": "owner"}), ("z", "colour", "owner", "w")),
    "engine": (lambda table: table.read_in_engine(["x", "z"]), ("x", "z", "s", "w")),
}


def digest(data: Any, *reads: str) -> str:
    table = Table(data, **ROLES)
    for name in reads:
        READS[name][0](table)
    return table.digest()


def changed(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the data with one column changed in a way that keeps its role sound."""
    values = frame[column]
    if column in ("x", "z", "w"):
        return frame.assign(**{column: 3 * values})
    if column == "age":
        return frame.assign(age=80 - values)
    if column == "s":
        return frame.assign(s=values / 3)
    if column == "who":
        return frame.assign(who=values + "!")
    return frame.assign(**{column: np.roll(values, 1)})


@pytest.mark.parametrize("read", READS)
def test_a_change_of_any_column_that_was_read_changes_the_hash(read: str) -> None:
    before = digest(people(), read)
    for column in READS[read][1]:
        assert digest(changed(people(), column), read) != before, column


@pytest.mark.parametrize("read", READS)
def test_the_hash_is_the_same_in_any_order_of_rows_and_on_every_engine(read: str) -> None:
    frame = people()
    shuffled = frame.sample(frac=1, random_state=2).reset_index(drop=True)
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    forms = [frame, shuffled, pl.from_pandas(frame), pl.from_pandas(shuffled).lazy(), arrow, duckdb.from_arrow(arrow)]
    assert len({digest(data, read) for data in forms}) == 1


def test_the_hash_depends_on_what_was_read_and_not_on_when() -> None:
    frame = people()
    forwards = digest(frame, *READS)
    assert digest(frame, *reversed(READS)) == forwards
    assert digest(frame, *READS, *READS) == forwards
    assert digest(frame, "people") not in (forwards, digest(frame))


def test_columns_that_nobody_read_do_not_count() -> None:
    frame = people()
    renamed = frame.rename(columns={"unused": "useless"})
    assert digest(renamed, *READS) == digest(frame.assign(unused=0), *READS) == digest(frame, *READS)


def test_names_of_the_caller_do_not_count() -> None:
    first, second = Table(people(), **ROLES), Table(people(), **ROLES)
    first.coded_rows({"rater A": "z", "rater B": "colour"})
    second.coded_rows({"features[1]": "colour", "features[0]": "z"})
    assert first.digest() == second.digest()


def test_values_that_only_change_places_change_the_hash() -> None:
    frame = people()
    swapped = frame.assign(z=np.roll(frame["z"], 1))
    for read in ("people", "codes", "engine"):
        assert digest(swapped, read) != digest(frame, read)


def test_tiny_and_huge_changes_are_seen_in_the_engine_too() -> None:
    before = digest(people(), "engine")
    for row, value in ((0, 1e-12), (1, 1e9), (2, -0.25), (3, np.nan)):
        frame = people()
        frame.loc[row, "x"] = frame.loc[row, "x"] + value
        assert digest(frame, "engine") != before


def test_one_zero_one_missing_value_and_texts_by_what_they_say() -> None:
    rows: dict[str, Any] = {
        "a": np.array([0.0, np.nan, 2.0]),
        "b": Coded(np.array([2, 0, -1]), ("no", "unused", "yes")),
    }
    odd_nan = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    same: dict[str, Any] = {"a": np.array([2.0, -0.0, odd_nan]), "b": Coded(np.array([-1, 1, 0]), ("no", "yes"))}
    assert rows_digest(rows) == rows_digest(same)
    other = {**same, "b": Coded(np.array([-1, 1, 0]), ("no", "yet"))}
    assert rows_digest(rows) != rows_digest(other)


def test_other_data_beside_the_table_counts() -> None:
    table, again = Table(people(), **ROLES), Table(people(), **ROLES)
    for one, time in ((table, 1.0), (again, 2.0)):
        one.record_rows({"time": np.array([time])}, source="history")
    assert len({table.digest(), again.digest(), digest(people())}) == 3
    beside = Table({"answer": ["yes", "no"]})
    beside.coded_rows({"answer": "answer"})
    before = table.digest()
    table.record_table("feedback", beside)
    assert table.digest() != before


def test_a_table_can_be_pickled_and_copied_with_what_was_read() -> None:
    table = Table(people(), **ROLES)
    table.person_rows(["x"])
    assert pickle.loads(pickle.dumps(table)).digest() == copy.deepcopy(table).digest() == table.digest()  # noqa: S301
