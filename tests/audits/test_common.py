"""Laws that every audit of the registry obeys; a new audit is covered by being registered and having a case here."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import socket
import subprocess
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.audits import REGISTRY
from evenhand.audits.parity.metrics import METRICS
from evenhand.core.records import Gap, Value
from evenhand.core.result import Result, finalize
from evenhand.errors import ConfigError, DataError, EvenhandError
from evenhand.models import cross_predict
from evenhand.run.schema import results_schema
from evenhand.table import engines
from evenhand.table.decided import read_decided
from evenhand.table.engines import EngineSettings, count_transfers
from evenhand.table.frames import draw_rows
from evenhand.table.labels import hide_groups
from evenhand.table.rows import DerivedRows

PEOPLE = 240
AUDITS = list(REGISTRY)


@cache
def people() -> dict[str, tuple[Any, ...]]:
    """Return one table that every audit can read: people with scores, histories, raters and critics."""
    rng = np.random.default_rng(13)
    sex, race = rng.choice(["F", "M"], PEOPLE), rng.choice(["Black", "Other", "White"], PEOPLE, p=[0.35, 0.25, 0.4])
    ability = rng.normal(0, 1, PEOPLE) + 0.5 * (race == "White")
    outcome = (ability + rng.normal(0, 1, PEOPLE) > 0).astype(int)
    risk = 1 / (1 + np.exp(-(ability + rng.normal(0, 0.6, PEOPLE))))
    first = np.where(rng.random(PEOPLE) < 0.85, outcome, 1 - outcome)
    columns: dict[str, Any] = {
        "id": np.arange(PEOPLE),
        "sex": sex,
        "race": race,
        "outcome": outcome,
        "risk": risk.round(6),
        "other_risk": rng.beta(2, 3, PEOPLE).round(6),
        "age": rng.integers(20, 70, PEOPLE),
        "income": (30 + 8 * ability + rng.normal(0, 4, PEOPLE)).round(3),
        "y1": rng.uniform(20, 60, PEOPLE).round(3),
        "y2": rng.uniform(20, 60, PEOPLE).round(3),
        "y3": rng.uniform(20, 60, PEOPLE).round(3),
        "rater_a": first,
        "rater_b": np.where(rng.random(PEOPLE) < 0.8, first, 1 - first),
        "label": np.where(risk > 0.5, "high", "low"),
        "critic": [f"critic {number % 12}" for number in range(PEOPLE)],
        "disagree": (rng.random(PEOPLE) < np.where(race == "Black", 0.4, 0.2)).astype(int),
        "hired": (risk > 0.55).astype(int),
        "other_label": np.where(outcome == 1, "high", "low"),
    }
    return {name: tuple(np.asarray(column).tolist()) for name, column in columns.items()}


@cache
def in_equal_groups() -> dict[str, tuple[Any, ...]]:
    """Return the same people in groups of equal size."""
    rng, data = np.random.default_rng(14), people()
    dealt = {"race": ["Black", "Other", "White"], "sex": ["F", "M"]}
    drawn = {name: tuple(rng.permutation(np.resize(labels, PEOPLE)).tolist()) for name, labels in dealt.items()}
    return {**data, **drawn}


SIZES = {"any": people, "equal": in_equal_groups}
"""Tables of people: in groups of any size, and of equal size."""


@dataclass(frozen=True)
class Case:
    """How an audit is run here: its settings, and a threshold that it can judge."""

    settings: dict[str, Any]
    threshold: dict[str, Any]
    roles: dict[str, Any] = field(default_factory=dict)
    read: tuple[str, ...] = ()


ROLES: dict[str, Any] = {
    "id": "id",
    "outcome": "outcome",
    "groups": ["race", "sex"],
    "predictions": {"risk": "risk", "other": "other_risk"},
}

CASES = {
    "parity": Case(
        {"custom": {"f1": lambda cells: 2 * cells.tp / (2 * cells.tp + cells.fp + cells.fn)}, "resamples": 200},
        {"metric": "selection_rate", "max": 0.1},
        read=("risk", "other_risk", "outcome", "race", "sex"),
    ),
    "effort": Case(
        {"trajectory": ["y1", "y2", "y3"], "scale": 100, "width": 0.5},
        {"metric": "eagf", "min": 0.8},
        read=("y1", "y2", "y3", "risk", "race"),
    ),
    "disagreement": Case(
        {"decision": "label", "critic": "critic", "disagree": "disagree", "resamples": 100},
        {"metric": "calibration", "max": 0.1},
        read=("label", "critic", "disagree", "race"),
    ),
    "reliability": Case(
        {
            "model": "logistic",
            "features": ["age", "income"],
            "noise": {"features": {"age": 5, "income": 3}, "noise_levels": [0, 0.1, 0.3]},
            "replicates": 3,
            "resamples": 100,
        },
        {"metric": "icc_a1", "max": 0.1},
        read=("age", "income", "outcome", "race"),
    ),
    "agreement": Case(
        {"raters": ["rater_a", "rater_b"], "resamples": 200},
        {"metric": "kappa", "max": 0.1},
        read=("rater_a", "rater_b", "race"),
    ),
    "improvability": Case(
        {
            "status_quo": "hired",
            "grouping": "sex",
            "features": ["age", "income"],
            "candidates": "logistic",
            "capacity": 0.4,
            "test": {"splits": 2},
        },
        {"metric": "improvable_fairness", "max": 0.05},
        read=("hired", "age", "income", "outcome", "sex"),
    ),
    "ranking": Case(
        {"query": "critic", "size": 5},
        {"metric": "shortlist_rate", "max": 0.1},
        read=("critic", "risk", "other_risk", "outcome", "race"),
    ),
    "classes": Case(
        {"decision": "label", "truth": "other_label", "order": ["low", "high"]},
        {"metric": "class_rate", "max": 0.1},
        read=("label", "other_label", "race"),
    ),
    "paired": Case(
        {"template": "critic", "answer": "hired", "favourable": "higher"},
        {"metric": "pass_rate", "max": 0.1},
        read=("critic", "hired", "race"),
    ),
    "wait": Case(  # of tests/plugin, where its package is on the path
        {"days": "y1"},
        {"metric": "mean_wait", "max": 5},
        read=("y1", "race"),
    ),
}


def test_every_registered_audit_has_a_case() -> None:
    assert {name for name in CASES if name in REGISTRY} == set(AUDITS)


def run(
    audit: str, data: Any = None, *, thresholds: Any = (), roles: dict[str, Any] | None = None, **settings: Any
) -> Result:
    case = CASES[audit]
    columns = people() if data is None else data
    given = {name: list(column) for name, column in columns.items()} if isinstance(columns, dict) else columns
    table = eh.Table(given, **{**ROLES, **case.roles, **(roles or {})})
    entry = REGISTRY[audit]
    spec = entry.spec.parse({**case.settings, "thresholds": thresholds, **settings}, "a test")
    found: Result = finalize(entry.run(table, spec))
    return found


@cache
def usual(audit: str, sizes: str = "any") -> Result:
    return run(audit, SIZES[sizes](), thresholds=[CASES[audit].threshold])


def plain(result: Result) -> Any:
    """Return a result as it is after JSON."""
    return json.loads(json.dumps(result.to_dict(), allow_nan=False))


def permuted(data: dict[str, tuple[Any, ...]], seed: int = 5) -> dict[str, tuple[Any, ...]]:
    order = np.random.default_rng(seed).permutation(PEOPLE)
    return {name: tuple(column[place] for place in order) for name, column in data.items()}


# Records ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("audit", AUDITS)
def test_values_and_gaps_begin_with_the_common_columns(audit: str) -> None:
    types = REGISTRY[audit].result.record_types()
    for table, common in (("values", Value), ("gaps", Gap)):
        assert issubclass(types[table], common)
        assert list(types[table].columns())[: len(common.columns())] == list(common.columns())
    assert all(meaning for kind in types.values() for meaning in kind.columns().values())


@pytest.mark.parametrize("audit", AUDITS)
def test_records_are_consistent(audit: str) -> None:
    result = usual(audit)
    for record in (*result.rows("values"), *result.rows("gaps")):
        assert record.metric in result.metrics, record
        assert (record.status == "ok") <= (record.value is not None), record
        for low, high in ((record.low, record.high), (record.joint_low, record.joint_high)):
            assert low is None or high is None or low <= high + 1e-12, record
    for gap in result.rows("gaps", against="worst_pair"):
        if gap.value is not None:
            assert gap.value >= 0 if gap.kind == "difference" else gap.value <= 1, gap


def require_within_its_limits(record: Value | Gap) -> None:
    """Every interval is in order and holds its own value; shares and ratios lie where they can."""
    for low, high in ((record.low, record.high), (record.joint_low, record.joint_high)):
        if record.value is not None and low is not None:
            assert low <= record.value + 1e-12, record
        if record.value is not None and high is not None:
            assert record.value <= high + 1e-12, record
        assert low is None or high is None or low <= high + 1e-12, record
    if isinstance(record, Gap) and record.kind == "ratio":
        least, most = 0.0, 1.0 if record.against == "worst_pair" else float("inf")
    elif record.metric in ("f1", "specification_range"):
        return
    else:
        least, most = (-1.0 if isinstance(record, Gap) else 0.0), 1.0
    for number in (record.value, record.low, record.high, record.joint_low, record.joint_high):
        assert number is None or least <= number <= most, record


NASTY: dict[str, Callable[[np.random.Generator, Any], Any]] = {
    "reversed": lambda rng, y: np.where(y, rng.uniform(0, 0.4, len(y)), rng.uniform(0.6, 1, len(y))),
    "perfect": lambda rng, y: 0.25 + 0.5 * y,
    "constant": lambda rng, y: np.full(len(y), 0.7),
    "all or nothing": lambda rng, y: rng.integers(0, 2, len(y)).astype(float),
    "skewed": lambda rng, y: rng.beta(0.1, 3, len(y)),
    "nobody": lambda rng, y: np.zeros(len(y)),
}


@pytest.mark.parametrize(("kind", "confidence"), list(zip(NASTY, (0.05, 0.8, 0.999) * 2, strict=True)))
def test_values_lie_in_their_range_and_their_interval_at_every_confidence(kind: str, confidence: float) -> None:
    rng = np.random.default_rng([len(kind), int(1000 * confidence)])
    size = 60
    outcome = (rng.random(size) < 0.3).astype(int)
    columns: dict[str, Any] = {
        "group": np.where(rng.random(size) < 0.2, "few", np.where(rng.random(size) < 0.5, "b", "c")),
        "outcome": outcome,
        "risk": NASTY[kind](rng, outcome),
        **{f"y{step}": rng.uniform(20, 60, size) for step in range(3)},
    }
    table = eh.Table(columns, outcome="outcome", groups="group", predictions={"risk": "risk", "again": "risk"})
    f1 = CASES["parity"].settings["custom"]
    methods: dict[str, dict[str, Any]] = {
        name: {"metrics": list(METRICS), "interval": name, "resamples": 100} for name in ("percentile", "basic")
    }
    results = [
        eh.parity(table, metrics=list(METRICS), custom=f1, resamples=100, min_count=2, confidence=confidence),
        *(eh.parity(table, min_count=2, confidence=confidence, **settings) for settings in methods.values()),
        eh.effort(table, trajectory=["y0", "y1", "y2"], scale=100, width=0.5, min_count=2, confidence=confidence),
    ]
    for result in results:
        for record in (*result.rows("values"), *result.rows("gaps")):
            require_within_its_limits(record)


@pytest.mark.parametrize("audit", AUDITS)
def test_the_order_of_rows_does_not_matter(audit: str) -> None:
    again = run(audit, permuted(people()), thresholds=[CASES[audit].threshold])
    assert plain(again) == plain(usual(audit))
    assert [f.to_dict() for f in again.findings] == [f.to_dict() for f in usual(audit).findings]


@pytest.mark.parametrize("audit", AUDITS)
def test_the_names_of_groups_do_not_matter(audit: str) -> None:
    names = {"Black": "Blue", "Other": "Orange", "White": "Yellow", "F": "Feather", "M": "Moss"}
    data = dict(people())
    for column in ("sex", "race"):
        data[column] = tuple(names[value] for value in data[column])
    renamed = run(audit, data, thresholds=[CASES[audit].threshold])
    for table in ("values", "gaps"):
        for before, after in zip(usual(audit).rows(table), renamed.rows(table), strict=True):
            assert (before.value, before.n, before.metric) == (after.value, after.n, after.metric)
            assert names.get(before.group, before.group) == after.group


# Names, order and seeds -----------------------------------------------------------------------------------------------


LABELS = {"Black": "zebra", "Other": "moth", "White": "adder", "F": "yak", "M": "bee"}
"""Other names of groups; they sort in another order."""

SEED_IS_PART_OF_IT = ("reliability", "improvability")
"""Audits that simulate mistakes or split people by the seed; the others only approximate with it."""


def other_names() -> dict[str, str]:
    """Return other names of the columns and models, none of which is part of a word."""
    columns = [*people(), "other"]
    return {name: f"q{number:02d}{name[::-1]}" for number, name in enumerate(reversed(columns))}


def renamed(value: Any, names: dict[str, str]) -> Any:
    """Return a setting with other names of columns, models and values."""
    if isinstance(value, dict):
        return {names.get(key, key): renamed(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [renamed(part, names) for part in value]
    return names.get(value, value) if isinstance(value, str) else value


def said(result: Result, names: dict[str, str]) -> list[str]:
    """Return values, gaps and findings with their sentences, with the first names, in an order of their own."""
    found = plain(result)
    rows = [row for table in ("values", "gaps", "findings") for row in found.get(table, [])]
    back = {other: name for name, other in names.items()}
    texts = [json.dumps(_rounded(row), sort_keys=True) for row in rows]
    pattern = re.compile("|".join(map(re.escape, back)) or "$^")
    return sorted(pattern.sub(lambda match: back[match.group()], text) for text in texts)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.11g}") + 0.0 if isinstance(value, float) else value


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("audit", AUDITS)
def test_names_of_columns_models_and_groups_and_the_order_of_rows_change_nothing(audit: str, sizes: str) -> None:
    names, case = other_names() | LABELS, CASES[audit]
    shuffled = permuted(SIZES[sizes]())
    data = {names[column]: tuple(names.get(v, v) for v in values) for column, values in shuffled.items()}
    settings = {name: renamed(value, names) for name, value in case.settings.items()}
    roles = {role: renamed(columns, names) for role, columns in {**ROLES, **case.roles}.items()}
    again = run(audit, data, thresholds=[case.threshold], roles=roles, **settings)
    assert said(again, names) == said(usual(audit, sizes), {})


@pytest.mark.parametrize("audit", [audit for audit in AUDITS if audit not in SEED_IS_PART_OF_IT])
def test_a_seed_changes_nothing_where_it_only_approximates(audit: str) -> None:
    case = CASES[audit]
    again = run(audit, thresholds=[case.threshold], seed=8)
    assert said(again, {}) == said(usual(audit), {})


@pytest.mark.parametrize("audit", AUDITS)
@pytest.mark.parametrize("engine", ["pandas", "polars", "pyarrow", "duckdb"])
def test_engines_give_the_same_records(audit: str, engine: str) -> None:
    frame = pd.DataFrame({name: list(column) for name, column in people().items()})
    makers: dict[str, Callable[[], Any]] = {
        "pandas": lambda: frame,
        "polars": lambda: pl.DataFrame(people()),
        "pyarrow": lambda: pa.table({name: list(column) for name, column in people().items()}),
        "duckdb": lambda: duckdb.from_df(frame),
    }
    assert plain(run(audit, makers[engine](), thresholds=[CASES[audit].threshold])) == plain(usual(audit))


# Engines elsewhere --------------------------------------------------------------------------------------------------


def same_records_and_few_rows(audit: str, table: Any) -> None:
    """Assert the records of every engine; an audit reads its rows once (parity: once a model), and else cells."""
    with count_transfers() as rows:
        found = run(audit, table, thresholds=[CASES[audit].threshold])
    assert plain(found) == plain(usual(audit)), audit
    assert max(rows) <= PEOPLE, (audit, rows)
    assert sum(count == PEOPLE for count in rows) <= len(ROLES["predictions"]), (audit, rows)


@pytest.fixture
def low_bounds(monkeypatch: pytest.MonkeyPatch) -> int:
    """Lower every bound of what an engine sends so far that small tables reach it; return that of rows."""
    most = 300
    assert all(audit.transfer for audit in REGISTRY.values())  # what is imported later would have the lower bound
    monkeypatch.setattr(engines, "MOST_ROWS", most)
    monkeypatch.setattr("evenhand.table.table.FINE_BINS", 8)
    monkeypatch.setattr("evenhand.audits.effort.audit.MOST_IN_MEMORY", most)
    for name in ("MOST_DIFFERENT", "SAMPLE", "MOST_FREQUENT"):
        monkeypatch.setattr(f"evenhand.audits.effort.large_table.{name}", 100)
    monkeypatch.setattr("evenhand.audits.effort.large_table._BUCKETS", 128)
    monkeypatch.setattr("evenhand.stats.pairs.SIZE", 5)  # cells of the grid along each axis
    return most


def fourfold() -> dict[str, tuple[Any, ...]]:
    """Return four times as many people, no two of them with the same history."""
    more = {name: column * 4 for name, column in people().items()}
    moved = {
        f"y{step}": tuple(x + 0.001 * part for part in range(4) for x in people()[f"y{step}"]) for step in (1, 2, 3)
    }
    return {**more, **moved, "id": tuple(range(4 * PEOPLE))}


@pytest.fixture
def in_a_database(tmp_path: Path) -> Callable[[Any], Any]:
    """Put data where only SQL reaches it: ibis on DuckDB, an engine elsewhere that needs no server."""
    ibis = pytest.importorskip("ibis", reason="databases need evenhand[database]")

    def put(data: Any) -> Any:
        path = tmp_path / f"{len(data['id'])}.parquet"
        pd.DataFrame({name: list(column) for name, column in data.items()}).to_parquet(path, index=False)
        return ibis.duckdb.connect().read_parquet(path)

    return put


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
@pytest.mark.parametrize("audit", AUDITS)
def test_what_an_engine_sends_does_not_grow_beyond_its_bound(
    audit: str, in_a_database: Callable[[Any], Any], low_bounds: int
) -> None:
    few, many, one = in_a_database(people()), in_a_database(fourfold()), {"predictions": "risk"}
    limit = REGISTRY[audit].transfer
    assert limit is not None, "a descriptor says what an engine sends"
    with count_transfers() as rows:
        run(audit, few, roles=one)
    assert max(rows) == PEOPLE <= limit.most
    assert rows.values <= len(rows) * PEOPLE * len(people())
    with count_transfers() as rows:
        if limit.refuses:
            with pytest.raises(DataError, match=r"^this needs every row, and the table has 960; the database sends at"):
                run(audit, many, roles=one)
        else:
            run(audit, many, roles=one)
    assert max(rows) <= low_bounds


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_whatever_else_reads_rows_refuses_too_many(in_a_database: Callable[[Any], Any], low_bounds: int) -> None:
    many = in_a_database(fourfold())
    refused = pytest.raises(DataError, match="this needs every row, and the table has 960")
    with count_transfers() as rows:
        with refused:
            eh.Table(many, **{**ROLES, "predictions": {"risk": {"column": "risk", "percentile": {"of": 60}}}})
        table = eh.Table(many, **ROLES)
        with refused:
            read_decided(table)
        with refused:
            draw_rows(table.complete_rows(), 100, ["race"], np.random.default_rng(0))
        with pytest.raises(
            ConfigError, match="models are fitted on this machine, and the data is in the database; scor"
        ):
            cross_predict(many, id="id", outcome="outcome", features="age", fit="logistic")
    assert max(rows) <= low_bounds


def test_the_bounds_of_what_an_engine_sends_are_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/howto/your-data.md").read_text()
    limits = {name: REGISTRY[name].transfer for name in AUDITS} | engines.TRANSFER_LIMITS
    for name, limit in limits.items():
        assert limit is not None
        assert f"| {name} | {limit.what} | {limit.most:,} | {limit.why} |" in page


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_groups_get_numbers_and_names_in_every_engine(in_a_database: Callable[[Any], Any]) -> None:
    there, here = (eh.Table(data, **ROLES) for data in (in_a_database(people()), pd.DataFrame(people())))
    for table in (there, here):
        rates = table.by_group("race", {"Black": 0.5, "White": 0.25})
        found = DerivedRows(table, [{"rate": rates}]).values({"rate": nw.col("rate"), "id": nw.col("id")})
        by_id = found["rate"][np.argsort(found["id"])]
        expected = [{"Black": 0.5, "White": 0.25}.get(race, np.nan) for race in people()["race"]]
        np.testing.assert_array_equal(by_id, expected)
        hidden = hide_groups(table, {"race": ["Other"]}).cells
        assert hidden.labels["race"] == ("Black", "White", "(missing)")
        assert hidden.rows == PEOPLE


SECRET = "hunter2-and-more"
SPARK: dict[str, Any] = {  # tiny tables: compiling would take longer than running
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": 2,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.task.maxFailures": 1,
}


@pytest.fixture
def in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the people in two Parquet files, where there are Spark and Java."""
    pytest.importorskip("pyspark", reason="needs the extra spark, which EVENHAND_INSTALL=1 make test installs")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java; EVENHAND_INSTALL=1 make test installs it on Debian")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    frame = pd.DataFrame({name: list(column) for name, column in people().items()})
    for part in range(2):
        frame[part::2].to_parquet(tmp_path / f"part{part}.parquet", index=False)
    return tmp_path


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # PySpark 4.0 leaves a socket open
def test_spark_workers_give_the_same_records(in_parts: Path) -> None:
    """One test, so that one process starts Spark: a driver and two workers, each a process of its own."""
    session = {**SPARK, "spark.hadoop.fs.s3a.secret.key": SECRET}
    asked = {"engine": "spark", "master": "local-cluster[2,1,1024]", "session": session}
    spark = EngineSettings.parse(asked, "a test")
    table = spark.open("part*.parquet", in_parts)
    try:
        table.createOrReplaceTempView("people")
        table.cache()
        for audit in AUDITS:
            same_records_and_few_rows(audit, table)
        spark_from_toml(in_parts)
        spark_speaks_in_sentences(spark, in_parts, table)
        spark_tells_times_in_utc(table.sparkSession)
    finally:
        table.sparkSession.stop()
    broken = spark.model_copy(update={"master": "sparky"})
    with pytest.raises(ConfigError, match=r"^Spark could not open the data: Spark says: Could not parse .*'sparky'\.$"):
        broken.open("part*.parquet", in_parts)


def spark_tells_times_in_utc(session: Any) -> None:
    autumn = "timestamp '2023-10-29 00:30:00.75+00:00', timestamp '2023-10-29 01:30:00+00:00', null"
    for zone in ("Europe/Berlin", "America/New_York"):
        session.conf.set("spark.sql.session.timeZone", zone)
        table = eh.Table(session.sql(f"select explode(array({autumn})) as `it is`"), groups="it is")
        assert table.cells.labels["it is"] == (
            "2023-10-29 00:30:00 UTC",
            "2023-10-29 01:30:00 UTC",
            "(missing)",
        )


@pytest.mark.slow
def test_spark_connect_gives_the_same_records(in_parts: Path) -> None:
    """A server in a process of its own, and a client that has no Java."""
    home = Path(pytest.importorskip("pyspark").__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {**SPARK, "spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": port}
    command = [str(home / "bin/spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command.append(str(next((home / "jars").glob("spark-connect_*.jar"))))
    spark = EngineSettings.parse({"engine": "spark", "master": f"sc://127.0.0.1:{port}"}, "a test")
    with pytest.raises(
        ConfigError, match=r"^no Spark Connect server answers at the address that `master` gives; start"
    ):
        spark.open("part*.parquet", in_parts)
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.2)
        table = spark.open("part*.parquet", in_parts)
        assert "connect" in type(table).__module__
        for audit in AUDITS:
            same_records_and_few_rows(audit, table)
        with pytest.raises(ConfigError, match=r"^Spark could not open the data: Spark says: .*nowhere.*\.$"):
            spark.open("nowhere", in_parts)
        table.sparkSession.stop()
    finally:
        server.terminate()
        server.wait()


def test_a_database_gives_the_same_records(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kinds = {int: "bigint", float: "double precision", str: "text"}
    columns = ", ".join(f"{name} {kinds[type(column[0])]}" for name, column in people().items())
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"create table people ({columns})")
        with connection.cursor().copy("copy people from stdin") as copy:
            for row in zip(*people().values(), strict=True):
                copy.write_row(row)
    monkeypatch.setenv("AUDITED", postgres_url)
    database = EngineSettings.parse({"engine": "database", "connection": "AUDITED"}, "a test")
    for audit in AUDITS:
        same_records_and_few_rows(audit, database.open("people", tmp_path))
    path = tmp_path / "audit.toml"
    path.write_text(
        '[data]\nengine = "database"\nconnection = "AUDITED"\nsource = "public.people"\n'
        'groups = ["sex"]\npredictions = "hired"\n[parity]\n'
    )
    done = eh.audit(path)
    assert done.run["engine"] == "ibis"
    secret = postgres_url.split("@")[0].split(":")[-1]
    for name, saved in done.save(tmp_path / "out").items():
        assert not any(part in saved.read_text() for part in (secret, postgres_url, "127.0.0.1")), name
    caplog.set_level("DEBUG")
    nobody = "postgresql://evenhand:hunter2@127.0.0.1:1/nowhere"  # where nothing listens
    for wrong in (postgres_url + "x", postgres_url.replace("evenhand:", "nobody:"), nobody, "nonsense hunter2"):
        monkeypatch.setenv("AUDITED", wrong)
        with pytest.raises(
            ConfigError, match=r"^the database that 'AUDITED' names could not be opened \(\w+\); c"
        ) as told:
            database.open("people", tmp_path)
        shown = "".join(traceback.format_exception(told.value)) + caplog.text
        assert not any(part in shown for part in (secret, "hunter2", "127.0.0.1", "nobody"))
    monkeypatch.setenv("AUDITED", postgres_url)
    with pytest.raises(ConfigError, match="the database has no table 'persons'; mend `source`"):
        database.open("persons", tmp_path)
    gone = database.open("people", tmp_path)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("drop table people")
    with pytest.raises(DataError, match=r"^the data could not be read: the database says: [^\n]*people[^\n]*\.$"):
        eh.Table(gone, groups="sex", predictions="hired")
    assert not any(part in caplog.text for part in (secret, "127.0.0.1"))


def test_what_a_database_complains_of_is_told_without_its_address() -> None:
    text = (
        'connection failed: connection to server at "db.example.org" (10.0.0.7), port 5432 failed: FATAL:  '
        'password authentication failed for user "ann", see postgresql://ann:hunter2@db.example.org/loans'
    )
    told = str(engines.engine_message(psycopg.OperationalError(text)))
    assert told.startswith("the database says: connection failed: ")
    assert told.endswith(".")
    assert not any(part in told for part in ("hunter2", "ann", "db.example", "10.0.0.7", "5432"))


def test_a_database_that_is_no_file_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ibis", reason="databases need evenhand[database]")
    database = EngineSettings.parse({"engine": "database", "connection": "AUDITED"}, "a test")
    monkeypatch.setenv("AUDITED", f"sqlite:///{tmp_path / 'none.db'}")
    with pytest.raises(ConfigError, match="is a file that does not exist"):
        database.open("people", tmp_path)
    assert not (tmp_path / "none.db").exists()


def test_the_address_of_a_database_does_not_belong_into_a_file() -> None:
    address = "postgresql://me:secret@host/db"
    with pytest.raises(ConfigError, match="must be the name of an environment variable") as caught:
        EngineSettings.parse({"engine": "database", "connection": address}, "[data]")
    assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError, match="the environment variable 'NOT_SET_ANYWHERE', which is not set"):
        EngineSettings.parse({"engine": "database", "connection": "NOT_SET_ANYWHERE"}, "[data]").open("t", Path())
    with pytest.raises(ConfigError, match="`connection` is for a database"):
        EngineSettings.parse({"engine": "spark", "connection": "X"}, "[data]")


def spark_from_toml(folder: Path) -> None:
    toml = '[data]\n{engine}source = "{source}"\ngroups = ["sex"]\npredictions = "hired"\n[parity]\n'
    (folder / "here.toml").write_text(toml.format(engine="", source="part*.parquet"))
    here = eh.audit(folder / "here.toml")
    secret = f'engine = "spark"\nsession = {{ "spark.hadoop.fs.s3a.secret.key" = "{SECRET}" }}\n'
    for number, source in enumerate(("part*.parquet", "people")):
        path = folder / f"spark{number}.toml"
        path.write_text(toml.format(engine=secret, source=source))
        there = eh.audit(path)
        assert (here.run["engine"], there.run["engine"]) == ("duckdb", "spark")
        assert there.to_dict()["audits"] == here.to_dict()["audits"]
        assert "spark" not in there.to_json()
    for name, saved in there.save(folder / "out").items():
        assert SECRET not in saved.read_text(), name


def spark_speaks_in_sentences(spark: EngineSettings, folder: Path, table: Any) -> None:
    (folder / "damaged.parquet").write_bytes(b"PAR1 and no more")
    for source, words in (
        ("nowhere", "nowhere"),
        ("no/such.parquet", "does not exist"),
        ("damaged.parquet", "not a Parquet file"),
    ):
        with pytest.raises(ConfigError, match=rf"^Spark could not open the data: Spark says: [^\n]*{words}[^\n]*\.$"):
            spark.open(source, folder)
    with pytest.raises(DataError, match=r"^prediction column 'odd' holds times, nested, [^\n]*\.$"):
        eh.Table(table.selectExpr("*", "array(risk) as odd"), groups="sex", predictions="odd")
    failing = {
        "double(raise_error('the disk is gone'))": r"Spark says: the disk is gone\.$",
        "double(reflect('java.lang.System', 'exit', 3))": r"Spark says: a worker failed: ExecutorLost[^\n]*\.$",
    }
    for expression, words in failing.items():
        with pytest.raises(DataError, match=f"^the data could not be read: {words}"):
            eh.Table(table.selectExpr("*", f"{expression} as odd"), groups="sex", predictions="odd")


@pytest.mark.parametrize("audit", AUDITS)
def test_one_group_is_a_result_or_an_error_in_our_words(audit: str) -> None:
    data = {**people(), "sex": ("F",) * PEOPLE, "race": ("White",) * PEOPLE}
    try:
        result = run(audit, data, thresholds=[CASES[audit].threshold])
    except EvenhandError:
        return
    judged = [finding for finding in result.findings if finding.threshold is not None]
    assert judged
    assert all(finding.verdict == "insufficient_evidence" and finding.reason for finding in judged)


# Accessors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("audit", AUDITS)
def test_an_empty_table_keeps_its_columns(audit: str) -> None:
    result = usual(audit)
    without_records: dict[str, Any] = dict.fromkeys(result.tables, ())
    empty = replace(result, **without_records)
    for name, kind in result.record_types().items():
        assert list(empty.to_frame(name).keys()) == list(kind.columns())


@pytest.mark.parametrize("audit", AUDITS)
def test_unknown_names_are_refused_alike(audit: str) -> None:
    result = usual(audit)
    with pytest.raises(ConfigError, match="`table` got 'valeus'; did you mean 'values'"):
        result.get("valeus")
    with pytest.raises(ConfigError, match="`table` got 'nope'"):
        result.to_frame("nope")
    with pytest.raises(ConfigError, match="has no column 'metrc'; did you mean 'metric'"):
        result.rows("gaps", metrc="x")
    with pytest.raises(ConfigError, match="`metric` got 'nope'"):
        result.get("gaps", metric="nope")
    with pytest.raises(ConfigError, match="fit no columns named; name more of its columns"):
        result.get("values")
    with pytest.raises(ConfigError, match="`chart` got 'nope'"):
        result.plot("nope")
    with pytest.raises(ConfigError, match="`grouping` got 'rase'; did you mean 'race'"):
        run(audit, roles={"groups": ["race"]}, **({"grouping": "race"} if audit == "improvability" else {})).plot(
            grouping="rase"
        )


@pytest.mark.parametrize("audit", AUDITS)
def test_every_chart_can_be_drawn_or_says_why_not(audit: str) -> None:
    result = usual(audit)
    assert result.plot().to_svg(name="x")
    for chart in result.charts():
        try:
            assert result.plot(chart).to_svg(name="x")
        except ConfigError as error:
            assert "nothing to draw" in str(error)  # noqa: PT017


@pytest.mark.parametrize("audit", AUDITS)
def test_each_table_is_a_frame_of_the_callers_library(audit: str) -> None:
    result = run(audit, pl.DataFrame(people()))
    for name in result.tables:
        assert isinstance(result.to_frame(name), pl.DataFrame)


# Thresholds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("audit", AUDITS)
def test_a_threshold_is_judged_and_recorded_for_its_audit(audit: str) -> None:
    result = usual(audit)
    judged = [finding for finding in result.findings if finding.threshold is not None]
    assert judged
    assert {threshold.audit for threshold in result.spec.thresholds} == {audit}
    assert {finding.audit for finding in result.findings} == {audit}
    for finding in judged:
        assert finding.verdict in ("meets", "does_not_meet", "insufficient_evidence")
        assert (finding.verdict == "insufficient_evidence") == bool(finding.reason)


@pytest.mark.parametrize("audit", AUDITS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "nope"}, "`metric` 'nope' of a threshold is not known"),
        ({"audit": "another"}, "has `audit` 'another'"),
        ({"grouping": "religion"}, "`grouping` 'religion' of a threshold is not known|has no `grouping`"),
        ({"model": "nobody"}, "`model` 'nobody' of a threshold is not known|has no `model`"),
        ({"min": -7.0, "max": None}, "the threshold for '.*' must give"),
        ({"min": 0.5, "max": 0.5}, "exactly one of `min` and `max`"),
        ({"against": "model", "kind": "ratio"}, "the threshold for '.*' must give"),
    ],
)
def test_a_threshold_that_the_audit_cannot_have_is_refused(audit: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(audit, thresholds=[{**CASES[audit].threshold, **change}])


@pytest.mark.parametrize("audit", AUDITS)
def test_a_threshold_for_what_the_data_lack_is_insufficient_evidence(audit: str) -> None:
    kind = REGISTRY[audit].spec
    coordinates = (*kind.threshold_coordinates, *kind.threshold_type().own_coordinates())
    lacking = {"stratum": "nowhere", "stakeholder": "nobody", "ward": "unheard of"}
    named = {name: value for name, value in lacking.items() if name in coordinates}
    if "group" in coordinates:
        named["group"] = "Nobody"
    for name, value in named.items():
        against = {"against": "reference"} if name == "group" else {}
        try:
            result = run(audit, thresholds=[{**CASES[audit].threshold, name: value, **against}])
        except ConfigError as error:
            assert (name, "must give" in str(error)) == ("group", True)  # noqa: PT017 no group has a reference here
            continue
        (finding,) = [finding for finding in result.findings if finding.threshold is not None]
        assert finding.verdict == "insufficient_evidence"
        assert finding.reason
        assert str(value) in finding.headline.text


@pytest.mark.parametrize("audit", AUDITS)
def test_groups_that_are_too_small_are_insufficient_evidence(audit: str) -> None:
    try:
        result = run(audit, thresholds=[CASES[audit].threshold], min_count=200)
    except EvenhandError as error:
        assert "min_count" in str(error)  # noqa: PT017
        return
    judged = [finding for finding in result.findings if finding.threshold is not None]
    assert judged
    assert {finding.verdict for finding in judged} == {"insufficient_evidence"}


@pytest.mark.parametrize(
    "audit", [pytest.param(name, marks=[pytest.mark.slow] if name == "reliability" else []) for name in AUDITS]
)
def test_a_verdict_at_another_level_is_that_of_an_audit_at_that_level(audit: str) -> None:
    """Audits recompute no more than what a threshold limits."""
    case, entry = CASES[audit], REGISTRY[audit]
    table = eh.Table({name: list(column) for name, column in people().items()}, **{**ROLES, **case.roles})
    spec = entry.spec.parse({**case.settings, "thresholds": [case.threshold]}, "a test")
    draft, whole = entry.run(table, spec), entry.run(table, spec.with_confidence(0.99)).claims
    assert len(whole) == len(draft.claims)
    pairs = zip(draft.claims, whole, strict=True)
    limited = [pair for pair in pairs if pair[1].records[0].metric == case.threshold["metric"]]
    with_limits = [pair for pair in limited if pair[0].estimates[0].limits is not None]
    assert with_limits
    for here, there in with_limits:
        quick, slow = here.estimates[0].at(0.99), there.records[0]
        for name in ("value", "low", "high", "joint_low", "joint_high"):
            assert getattr(quick, name, None) == getattr(slow, name, None)


# Sentences ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("audit", AUDITS)
def test_a_headline_is_short(audit: str) -> None:
    for finding in usual(audit).findings:
        assert len(finding.headline.text.split()) <= 25, finding.headline
        assert len(re.findall(r"(?<!\w)\d[\d.,]*", finding.headline.text)) <= 2, finding.headline
        assert finding.headline.text.endswith(".")
        assert "None" not in finding.text
        assert "nan" not in finding.text.split()


@pytest.mark.parametrize("audit", AUDITS)
def test_a_caveat_stands_once_a_section(audit: str) -> None:
    section = usual(audit).section()
    assert section.caveats
    assert len({title for title, _ in section.caveats}) == len(section.caveats)


# The schema ---------------------------------------------------------------------------------------------------------


@cache
def validator() -> jsonschema.Draft202012Validator:
    schema = results_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def whole_audit(audit: str) -> eh.Audit:
    table = eh.Table({name: list(column) for name, column in people().items()}, **ROLES)
    case = CASES[audit]
    sections: dict[str, Any] = {audit: {**case.settings, "thresholds": [case.threshold]}}
    return eh.audit(table, **sections)


@cache
def written(audit: str) -> str:
    return whole_audit(audit).to_json()


@pytest.mark.parametrize("audit", AUDITS)
def test_results_fit_the_schema(audit: str) -> None:
    assert [error.message for error in validator().iter_errors(json.loads(written(audit)))] == []


@pytest.mark.parametrize("audit", AUDITS)
def test_the_schema_refuses_what_is_not_written(audit: str) -> None:
    def refused(change: Callable[[Any], None]) -> bool:
        results = json.loads(written(audit))
        change(results)
        return not validator().is_valid(results)

    assert refused(lambda results: results["audits"][audit].update(more=[]))
    assert refused(lambda results: results["audits"][audit].pop("left_out"))
    assert refused(lambda results: results["audits"][audit]["values"][0].update(value="0.5"))
    assert refused(lambda results: results["audits"][audit]["values"][0].pop("joint_low"))
    assert refused(lambda results: results["audits"][audit]["gaps"][0].update(kind="quotient"))
    assert refused(lambda results: results["audits"][audit]["gaps"][0].update(statistic="kappa"))
    assert refused(lambda results: results["findings"][0].update(verdict="passed"))
    assert refused(lambda results: results["findings"][0].pop("headline"))
    assert refused(lambda results: results["data"].update(hash="0"))
    assert refused(lambda results: results.update(schema=1))


@pytest.mark.parametrize(
    "audit", [pytest.param(name, marks=[pytest.mark.slow] if name == "reliability" else []) for name in AUDITS]
)
def test_a_saved_audit_is_read_back_and_renders_the_same_report(audit: str, tmp_path: Path) -> None:
    before = whole_audit(audit)
    before.save(tmp_path)
    after = eh.Audit.load(tmp_path)
    assert after.to_json() == before.to_json()
    assert after.to_html() == (tmp_path / "report.html").read_text(encoding="utf-8")


# Writing and reading ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("audit", AUDITS)
def test_a_result_can_be_pickled(audit: str) -> None:
    again = pickle.loads(pickle.dumps(usual(audit)))  # noqa: S301
    assert plain(again) == plain(usual(audit))
    assert again.findings == usual(audit).findings
    assert again.summary() == usual(audit).summary()


@pytest.mark.parametrize("audit", AUDITS)
def test_a_result_is_rebuilt_from_json(audit: str) -> None:
    result = usual(audit)
    findings = json.loads(json.dumps([finding.to_dict() for finding in result.findings]))
    again = REGISTRY[audit].result.from_dict(plain(result), findings)
    assert plain(again) == plain(result)
    assert again.findings == result.findings


@pytest.mark.parametrize("audit", AUDITS)
def test_records_about_one_person_are_published_only_on_request(audit: str) -> None:
    kinds = REGISTRY[audit].result.record_types()
    personal = [name for name, kind in kinds.items() if kind.individual]
    written = plain(usual(audit))
    assert all(written[name] == [] for name in personal)
    if personal:
        asked = plain(run(audit, individuals=True))
        assert any(asked[name] for name in personal)


@pytest.mark.parametrize("audit", AUDITS)
def test_the_hash_covers_every_column_read(audit: str) -> None:
    """A number changes with the data it was computed from; so must the hash, and with nothing else."""

    less: dict[str, dict[str, Any]] = {
        "parity": {"metrics": ["tpr"], "custom": {}},
        "reliability": {"metrics": ["pabak"], "noise": {"age": 5, "income": 3}, "attribution": False},
        "improvability": {"test": {"splits": 1}},
    }

    def hashed(data: dict[str, tuple[Any, ...]]) -> str:
        table = eh.Table({name: list(column) for name, column in data.items()}, **ROLES)
        entry = REGISTRY[audit]
        entry.run(table, entry.spec.parse(CASES[audit].settings | less.get(audit, {}), "a test"))
        return table.digest()

    before = hashed(people())
    assert hashed(permuted(people())) == before
    for column in CASES[audit].read:
        turned = (*people()[column][1:], people()[column][0])
        assert hashed({**people(), column: turned}) != before, column
