"""The same data in any library or file gives the same cells, to the bit."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.table import Table, engines, files
from evenhand.table.engines import connect
from evenhand.table.rows import ScoreRows

Columns = dict[str, list[Any]]

WORDS = ["race", "missed_word"]
NULLABLE = {
    "race": "string",
    "missed_word": "string",
    "age": "Int64",
    "district": "Int64",
    "income": "Float64",
    "veteran": "boolean",
    "missed": "boolean",
    "repaid": "Int64",
    "risk": "Float64",
    "decile": "Int64",
}


def pandas_objects(columns: Columns) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})


def polars_enum(columns: Columns) -> pl.DataFrame:
    races = sorted({race for race in columns["race"] if race is not None})
    return pl.DataFrame(columns).with_columns(pl.col("race").cast(pl.Enum([*races, "nobody"])))


def arrow_with(columns: Columns, make: Callable[[Any], Any], names: list[str]) -> pa.Table:
    return pa.table({name: make(pa.array(values)) if name in names else values for name, values in columns.items()})


FRAMES: dict[str, Callable[[Columns], Any]] = {
    "mapping": lambda columns: columns,
    "arrays": lambda columns: {name: np.array(values, dtype=object) for name, values in columns.items()},
    "pandas": pd.DataFrame,
    "pandas objects": pandas_objects,
    "pandas nullable": lambda columns: pd.DataFrame(columns).astype(NULLABLE),
    "pandas convert_dtypes": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas pyarrow": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "pandas categories": lambda columns: pd.DataFrame(columns).astype(
        dict.fromkeys([*WORDS, "district", "income", "veteran", "repaid"], "category")
    ),
    "pandas odd index": lambda columns: pd.DataFrame(columns, index=[3] * len(columns["race"])),
    "polars": pl.DataFrame,
    "polars lazy": lambda columns: pl.DataFrame(columns).lazy(),
    "polars categorical": lambda columns: pl.DataFrame(columns).with_columns(pl.col(WORDS).cast(pl.Categorical)),
    "polars enum": polars_enum,
    "arrow": pa.table,
    "arrow dictionary": lambda columns: arrow_with(
        columns, lambda array: array.dictionary_encode(), [*WORDS, "district"]
    ),
    "arrow large_string": lambda columns: arrow_with(columns, lambda array: array.cast(pa.large_string()), WORDS),
    "arrow small numbers": lambda columns: arrow_with(
        columns, lambda array: array.cast(pa.int8()), ["age", "district", "decile", "repaid"]
    ),
    "arrow chunks": lambda columns: pa.concat_tables([pa.table(columns)[:99], pa.table(columns)[99:]]),
    "duckdb": lambda columns: duckdb.connect().from_arrow(pa.table(columns)),
}


def write_parts(columns: Columns, path: Path) -> None:
    for part in range(4):
        pq.write_table(pa.table(columns)[part * 100 : (part + 1) * 100], path.with_name(f"part{part}.parquet"))


def write_json(columns: Columns, path: Path) -> None:
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    path.write_text(json.dumps(records), encoding="utf-8")


def write_gzip(columns: Columns, path: Path) -> None:
    path.write_bytes(gzip.compress(pl.DataFrame(columns).write_csv().encode()))


FILES: dict[str, Callable[[Columns, Path], object]] = {
    "people.csv": lambda columns, path: pl.DataFrame(columns).write_csv(path),
    "people.csv.gz": write_gzip,
    "people.tsv": lambda columns, path: pl.DataFrame(columns).write_csv(path, separator="\t"),
    "people.parquet": lambda columns, path: pl.DataFrame(columns).write_parquet(path),
    "pandas.parquet": lambda columns, path: pd.DataFrame(columns).astype({"race": "category"}).to_parquet(path),
    "people.json": write_json,
    "people.ndjson": lambda columns, path: pl.DataFrame(columns).write_ndjson(path),
    "part*.parquet": write_parts,
}

ROLES: dict[str, dict[str, Any]] = {
    "every type of group": {
        "id": "person",
        "outcome": "missed",
        "groups": ["race", "age", "district", "income", "veteran", ["race", "district"], ["race", "age", "veteran"]],
        "cuts": {"age": [25, 45, 65]},
        "predictions": {"risk": "risk", "flag": "flag"},
    },
    "weights and words": {
        "outcome": "missed_word",
        "groups": ["race", ["race", "veteran"]],
        "predictions": {"risk": "risk"},
        "weight": "weight",
        "favourable": "not_selected",
    },
    "dropped rows": {
        "outcome": "repaid",
        "groups": ["race", "income"],
        "cuts": {"income": [1.0, 2.25]},
        "predictions": {"risk": "sometimes_risk"},
        "weight": "weight",
        "missing": "drop",
    },
    "other ranges": {
        "outcome": "missed",
        "groups": ["race"],
        "predictions": {
            "decile": {"column": "decile", "range": [1, 10], "threshold": 4},
            "z": {"column": "z", "range": [-3, 3], "threshold": 0.25},
        },
    },
    "a positive word": {
        "outcome": "missed_word",
        "positive": "No",
        "groups": ["veteran"],
        "predictions": {"late": {"column": "missed_word", "selected": "Yes"}, "risk": "risk"},
    },
}


def sorted_rows(rows: ScoreRows) -> dict[str, list[Any]]:
    columns = {"score": rows.score, "positive": rows.positive, "weight": rows.weight, "squares": rows.squares}
    columns |= rows.groups.codes
    order = np.lexsort(tuple(columns.values()))
    return {name: values[order].tolist() for name, values in columns.items()}


def facts(data: Any, roles: dict[str, Any]) -> dict[str, Any]:
    """Everything that audits read of a table."""
    table = Table(data, **roles)
    scored = [model for model in table.models if table.has_scores(model)]
    return {
        "rows": (table.rows, table.dropped),
        "labels": table.cells.labels,
        "counts": table.cells.digest(),
        "scores": {model: table.score_cells(model).digest() for model in scored},
        "within": table.counts(table.models[0], within=["district"]).digest(),
        "score rows": {model: sorted_rows(table.score_rows(model)) for model in scored},
        "digest": table.digest(),
    }


@pytest.fixture(scope="session")
def expected(people: Columns) -> dict[str, dict[str, Any]]:
    return {name: facts(people, roles) for name, roles in ROLES.items()}


FIRST, *OTHERS = ROLES
"""The first roles touch every type of column; the others run on one engine of each library."""

FRAME_CASES = [(engine, FIRST) for engine in FRAMES] + [
    (engine, roles) for engine in ("pandas nullable", "polars lazy", "arrow") for roles in OTHERS
]
FILE_CASES = [(name, FIRST) for name in FILES] + [(name, roles) for name in ("people.csv",) for roles in OTHERS]


@pytest.mark.parametrize(("engine", "roles"), FRAME_CASES)
def test_frames(people: Columns, expected: dict[str, Any], engine: str, roles: str) -> None:
    assert facts(FRAMES[engine](people), ROLES[roles]) == expected[roles]


@pytest.fixture(scope="session")
def folder(people: Columns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files")
    for name, write in FILES.items():
        write(people, path / name)
    return path


@pytest.mark.parametrize(("name", "roles"), FILE_CASES)
def test_files(folder: Path, expected: dict[str, Any], name: str, roles: str) -> None:
    assert facts(str(folder / name), ROLES[roles]) == expected[roles]


@pytest.mark.parametrize("threads", [1, 5])
def test_threads(folder: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    def with_threads(memory_limit: str | None = None) -> duckdb.DuckDBPyConnection:
        connection = connect(memory_limit)
        connection.execute(f"set threads = {threads}")
        return connection

    monkeypatch.setattr(files, "connect", with_threads)
    roles = "weights and words"
    assert facts(folder / "people.parquet", ROLES[roles]) == expected[roles]


def test_the_expected_facts_are_not_empty(expected: dict[str, Any]) -> None:
    first = expected["every type of group"]
    assert first["labels"]["race"] == ("=cmd()", "Asian 🙂", "Black", "White", "two words", "(missing)")
    assert first["labels"]["age"] == ("under 25", "25 to under 45", "45 to under 65", "65 and over", "(missing)")
    assert first["labels"]["district"] == (*(f"district = {number}" for number in range(1, 5)), "(missing)")
    assert first["labels"]["income"] == (
        *(f"income = {number}" for number in ("0.5", "1", "1.5", "2", "2.5")),
        "(missing)",
    )
    assert first["labels"]["veteran"] == ("veteran = false", "veteran = true", "(missing)")
    assert first["rows"] == (400, 0)
    kept, dropped = expected["dropped rows"]["rows"]
    assert kept + dropped == 400
    assert dropped > 50


@pytest.mark.parametrize("plain_sql", [False, True])
def test_many_rows_are_coded_as_they_were_counted(plain_sql: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than one vector or one thread of DuckDB takes at a time, and more groups than a chain of cases."""
    if plain_sql:
        monkeypatch.setattr(engines, "PORTABLE_SQL_ENGINES", ("duckdb",))
    rows = 150_000
    draw = np.random.default_rng(0)
    codes = draw.integers(0, 700, rows)
    data = {"g": np.array([f"g{code:03}" for code in codes]), "y": codes % 2, "s": codes / 700}
    table = Table(data, groups="g", outcome="y", predictions={"m": "s"})
    rows_of = table.score_rows("m")
    assert np.array_equal(np.round(rows_of.score * 700), rows_of.groups.codes["g"])
    assert np.array_equal(np.bincount(rows_of.groups.codes["g"]), np.bincount(codes))
