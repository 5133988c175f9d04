"""People who stay in the data's engine get the numbers they would get in memory."""

from __future__ import annotations

from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.audits.effort import EffortResult, EffortSpec, audit, large_table, person_scores
from evenhand.audits.effort.bins import bin_records, group_bins
from evenhand.audits.effort.estimate import curve_records, effort_spread
from evenhand.audits.effort.gather import gather
from evenhand.audits.effort.large_table import gather_large
from evenhand.errors import ConfigError, DataError
from evenhand.table.rows import DerivedRows

YEARS = [f"income_{year}" for year in range(2019, 2023)]
RATES = {"White": 13, "Asian": 14, "Pacific Islander": 25, "American Indian": 36, "Black": 39, "Hispanic": 33}
OPTIONS: dict[str, Any] = {
    "trajectory": YEARS,
    "inertia": RATES,
    "unit": 10_000,
    "scale": 200_000,
    "weights": [0.5, 1.0],
}


@pytest.fixture(scope="module")
def households() -> pd.DataFrame:
    frame: pd.DataFrame = eh.datasets.make_households(4_000, seed=3, backend="pandas")
    return frame.assign(share=np.random.default_rng(0).uniform(0.5, 2, len(frame)))


def make_table(data: Any, **roles: Any) -> eh.Table:
    return eh.Table(
        data,
        groups=["race", "sex", ["race", "sex"]],
        predictions={"xgboost": "risk_xgboost", "logistic": "risk_logistic"},
        **roles,
    )


@pytest.fixture
def in_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST_IN_MEMORY", 0)


ENGINES: dict[str, Any] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "lazy polars": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "duckdb": lambda frame: duckdb.connect().from_df(frame),
}


def differs(a: Any, b: Any) -> list[tuple[Any, Any]]:
    """Return the records of a table that two results do not share, up to rounding."""

    def plain(record: dict[str, Any]) -> dict[str, Any]:
        return {name: round(v, 9) if isinstance(v, float) else v for name, v in record.items()}

    return [(x, y) for x, y in zip(a, b, strict=True) if plain(x) != plain(y)]


def by_effort(data: Any, how: Any, options: dict[str, Any], **roles: Any) -> list[dict[str, Any]]:
    table, spec = make_table(data, **roles), EffortSpec.parse(options, "here")
    subjects = how(table, spec)
    found = [bin_records(bins, spec) for bins in group_bins(table, subjects, spec)]
    records = [record for values, gaps in found for record in (*values, *gaps)]
    return [record.to_dict() for record in (*records, *effort_spread(table, subjects))]


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_groups_by_effort_are_those_of_people_in_memory(households: pd.DataFrame, engine: str, weighted: bool) -> None:
    roles = {"weight": "share"} if weighted else {}
    in_memory = by_effort(households, gather, OPTIONS, **roles)
    assert not differs(by_effort(ENGINES[engine](households), gather_large, OPTIONS, **roles), in_memory)


def large_fairness(data: Any, options: dict[str, Any], **roles: Any) -> Any:
    return gather_large(make_table(data, **roles), EffortSpec.parse(options, "here")).fairness()


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("most_different", [200_000, 0])
def test_individual_fairness_is_within_its_stated_error(
    households: pd.DataFrame, weighted: bool, most_different: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exact where all people can be counted; else by a grid, corrected on a sample of a quarter of them."""
    monkeypatch.setattr(large_table, "MOST_DIFFERENT", most_different)
    monkeypatch.setattr(large_table, "SAMPLE", 1_000)
    roles = {"weight": "share"} if weighted else {}
    options = {**OPTIONS, "weights": [0.6577]}
    exact = eh.effort(make_table(households, **roles), **options)
    estimates, curves = large_fairness(households, options, **roles)
    for true in exact.rows("values", metric="eaif"):
        estimate = estimates.own[true.model, true.weight]
        assert estimate.method == ("strips" if most_different else "grid")
        assert abs(estimate.value - true.value) <= estimate.error + 1e-12 < 1e-3
        assert estimate.stderr == pytest.approx(true.stderr, rel=0.1 if estimate.error else 1e-3)
        assert estimate.violated == pytest.approx(true.violated, abs=0.02 if estimate.error else 1e-12)
        assert (estimate.n, estimate.pairs) == (true.n, true.pairs)
    for point, true_point in zip(curve_records(curves), exact.curve, strict=True):
        assert point.weight == true_point.weight
        assert abs(point.value - true_point.value) <= point.error + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("most_different", [200_000, 0])
@pytest.mark.parametrize("kinds", [2, 60, 1_500])
def test_people_who_are_alike(kinds: int, most_different: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few kinds of people, and so many pairs of equal ones, the stated error still holds."""
    monkeypatch.setattr(large_table, "MOST_DIFFERENT", most_different)
    monkeypatch.setattr(large_table, "SAMPLE", 3_000)
    rng = np.random.default_rng(kinds)
    which = rng.choice(kinds, 20_000, p=rng.dirichlet(np.ones(kinds)))
    columns = [*YEARS, "risk_xgboost", "risk_logistic"]
    data = {name: values[which] for name, values in zip(columns, rng.random((6, kinds)), strict=True)}
    data |= {"race": np.where(which % 2, "a", "b"), "sex": np.where(rng.random(20_000) < 0.5, "f", "m")}
    options: dict[str, Any] = {"trajectory": YEARS, "scale": 5.0, "weights": [0.5]}
    exact = eh.effort(make_table(data), **options)
    estimates, _ = large_fairness(data, options)
    for true in exact.rows("values", metric="eaif"):
        estimate = estimates.own[true.model, 0.5]
        assert abs(estimate.value - true.value) <= estimate.error + 1e-12
        assert estimate.violated == pytest.approx(true.violated, abs=0.03)
        if most_different:
            assert estimate.stderr == pytest.approx(true.stderr, rel=1e-3)


@pytest.mark.parametrize("size", [1.0, 1e9, 1e12])
def test_the_sample_is_a_fair_one(size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers, coarse scores and large values: about as many as wanted, of every score alike."""
    monkeypatch.setattr(large_table, "SAMPLE", 6_000)
    rng = np.random.default_rng(0)
    data = {name: size * rng.poisson(20, 60_000) for name in YEARS}
    data |= {"race": rng.choice(["a", "b"], 60_000), "sex": rng.choice(["f", "m"], 60_000)}
    data |= {"risk_xgboost": rng.integers(0, 101, 60_000) / 100, "risk_logistic": rng.random(60_000).round(2)}
    table = make_table(data)
    people = gather_large(table, EffortSpec.parse({"trajectory": YEARS, "unit": size, "scale": size}, "here"))
    columns = {name: nw.col(name) for name in people._scores} | {
        "effort": large_table.EFFORT,
        "aggregate": large_table.AGGREGATE,
    }
    sample = people._sample(columns, [*people.stages, people._scores])
    scores = sample.rows["evenhand:score0"]
    assert len(scores) == pytest.approx(6_000, abs=400)
    tenths = np.bincount(np.minimum((scores * 10).astype(int), 9), minlength=10)
    assert tenths.min() > 480
    assert tenths.max() < 760


def test_it_is_the_same_in_any_order_of_rows(households: pd.DataFrame) -> None:
    spec = EffortSpec.parse({**OPTIONS, "weights": [0.5]}, "here")
    first, second = (
        gather_large(make_table(data), spec).fairness()
        for data in (households, households.sample(frac=1, random_state=1))
    )
    for key, found in first[0].own.items():
        assert found.value == pytest.approx(second[0].own[key].value, abs=1e-12)
        assert found.stderr == pytest.approx(second[0].own[key].stderr, abs=1e-12)


@pytest.mark.parametrize("measure", ["slope", "last_minus_first"])
def test_other_measures_and_stamps(households: pd.DataFrame, measure: str) -> None:
    options = {**OPTIONS, "measure": measure, "times": [2019, 2020, 2021.5, 2022], "desirable": False, "inertia": None}
    assert not differs(by_effort(households, gather_large, options), by_effort(households, gather, options))


def test_missing_values_are_an_error_or_dropped_and_counted(households: pd.DataFrame, in_engine: None) -> None:
    gaps = households.assign(income_2021=households.income_2021.astype(float))
    gaps.loc[gaps.index[:4], "income_2021"] = np.nan
    with pytest.raises(DataError, match=r"missing in 4 rows of 4,000 \('income_2021' in 4\)"):
        eh.effort(make_table(gaps), **OPTIONS)
    dropped = gather_large(make_table(gaps, missing="drop"), EffortSpec.parse(OPTIONS, "here"))
    assert (dropped.n, dropped.dropped) == (3_996, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measure": "theil_sen"}, "'theil_sen' needs all people in memory"),
        ({"method": "strips"}, "'strips' needs all people in memory"),
        ({"inertia": "negative"}, "inertia column 'negative' must be above 0 and finite; it holds -1"),
        ({"trajectory": [*YEARS, "endless"]}, "infinite"),
    ],
)
def test_what_cannot_be_done_in_the_engine_is_told(
    households: pd.DataFrame, in_engine: None, change: dict[str, Any], message: str
) -> None:
    data = households.assign(negative=np.where(np.arange(4_000) == 7, -1.0, 1.0), endless=np.inf)
    with pytest.raises((ConfigError, DataError), match=message):
        eh.effort(make_table(data), **{**OPTIONS, **change})


def test_effort_is_not_given_back(households: pd.DataFrame, in_engine: None) -> None:
    options = {**OPTIONS, "weights": [0.5]}
    with pytest.raises(ConfigError, match="not read into memory"):
        person_scores(make_table(households), **options)
    result: EffortResult = eh.effort(make_table(households), **options)
    assert result.notes[0].id == "effort.in_engine"
    assert result.section().parts


def test_frequent_people_are_found_without_counting_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    kind = rng.geometric(0.02, 3_000)
    data = {"s": (kind % 97) / 97, **{f"x{year}": (kind * year % 13).astype(float) for year in (1, 2, 3)}}
    data["s"][:500] = rng.random(500)
    spec = EffortSpec.parse({"trajectory": ["x1", "x2", "x3"], "scale": 10}, "here")
    large = gather_large(eh.Table({**data, "g": ["a", "b", "c"] * 1_000}, groups="g", predictions="s"), spec)
    columns = {name: nw.col(name) for name in large._scores}
    columns |= {"effort": large_table.EFFORT, "aggregate": large_table.AGGREGATE}
    stages = [*large.stages, large._scores]
    for least in (2, 30, 3_000):
        expected = DerivedRows(large.table, stages).frequent(columns, least)
        for most in (0, 1_000):
            monkeypatch.setattr(large_table, "_FEW_BUCKETS", most)
            found = large._frequent_kinds(columns, stages, least)
            assert found.keys() == expected.keys()
            for name, values in expected.items():
                np.testing.assert_array_equal(found[name], values)
