"""People who stay in the data's engine get the numbers they would get in memory."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.audits.effort import EffortResult, EffortSpec, audit
from evenhand.audits.effort.by_effort import compare_groups, spread_records
from evenhand.audits.effort.crowd import gather_crowd
from evenhand.audits.effort.people import gather
from evenhand.core.result import record_dict
from evenhand.errors import ConfigError, DataError

YEARS = [f"income_{year}" for year in range(2019, 2023)]
RATES = {"White": 13, "Asian": 14, "Pacific Islander": 25, "American Indian": 36, "Black": 39, "Hispanic": 33}
OPTIONS: dict[str, Any] = {
    "trajectory": YEARS, "inertia": RATES, "unit": 10_000, "scale": 200_000, "weights": [0.5, 1.0],
}  # fmt: skip


@pytest.fixture(scope="module")
def households() -> pd.DataFrame:
    frame: pd.DataFrame = eh.datasets.make_households(4_000, seed=3, backend="pandas")
    return frame.assign(share=np.random.default_rng(0).uniform(0.5, 2, len(frame)))


def make_table(data: Any, **roles: Any) -> eh.Table:
    return eh.Table(
        data, groups=["race", "sex", ["race", "sex"]],
        predictions={"xgboost": "risk_xgboost", "logistic": "risk_logistic"}, **roles,
    )  # fmt: skip


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
    bins, groups = compare_groups(table, subjects, spec)
    return [record_dict(record) for record in (*bins, *groups, *spread_records(table, subjects))]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_groups_by_effort_are_those_of_people_in_memory(households: pd.DataFrame, engine: str, weighted: bool) -> None:
    roles = {"weight": "share"} if weighted else {}
    in_memory = by_effort(households, gather, OPTIONS, **roles)
    assert not differs(by_effort(ENGINES[engine](households), gather_crowd, OPTIONS, **roles), in_memory)


@pytest.mark.parametrize("weighted", [False, True])
def test_individual_fairness_is_within_its_stated_error(
    households: pd.DataFrame, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    roles = {"weight": "share"} if weighted else {}
    options = {**OPTIONS, "weights": [0.6577]}
    exact = eh.effort(make_table(households, **roles), **options)
    monkeypatch.setattr(audit, "MOST_IN_MEMORY", 0)
    found = eh.effort(make_table(households, **roles), **options)
    for one, true in zip(found.individual, exact.individual, strict=True):
        assert abs(one.value - true.value) < one.error < 1e-3  # type: ignore[operator]
        assert one.stderr == pytest.approx(true.stderr, rel=0.03)
        assert one.violated == pytest.approx(true.violated, abs=0.01)
        assert (one.n, one.pairs, one.method) == (true.n, true.pairs, "grid")
    for gap, true_gap in zip(found.differences, exact.differences, strict=True):
        assert gap.value == pytest.approx(true_gap.value, abs=1e-3)
        assert gap.stderr == pytest.approx(true_gap.stderr, rel=0.05)
    for point, true_point in zip(found.curve, exact.curve, strict=True):
        assert point.weight == true_point.weight
        assert abs(point.value - true_point.value) <= 2 * point.error  # type: ignore[operator]


def test_it_is_the_same_in_any_order_of_rows(households: pd.DataFrame) -> None:
    spec = EffortSpec.parse({**OPTIONS, "weights": [0.5]}, "here")
    first, second = (
        gather_crowd(make_table(data), spec).fairness()
        for data in (households, households.sample(frac=1, random_state=1))
    )
    for key, found in first[0].items():
        assert found.value == pytest.approx(second[0][key].value, abs=1e-12)
        assert found.stderr == pytest.approx(second[0][key].stderr, abs=1e-12)


@pytest.mark.parametrize("measure", ["slope", "last_minus_first"])
def test_other_measures_and_stamps(households: pd.DataFrame, measure: str) -> None:
    options = {**OPTIONS, "measure": measure, "times": [2019, 2020, 2021.5, 2022], "desirable": False, "inertia": None}
    assert not differs(by_effort(households, gather_crowd, options), by_effort(households, gather, options))


def test_missing_values_are_an_error_or_dropped_and_counted(households: pd.DataFrame, in_engine: None) -> None:
    gaps = households.assign(income_2021=households.income_2021.astype(float))
    gaps.loc[gaps.index[:4], "income_2021"] = np.nan
    with pytest.raises(DataError, match=r"missing in 4 rows of 4,000 \('income_2021' in 4\)"):
        eh.effort(make_table(gaps), **OPTIONS)
    dropped = gather_crowd(make_table(gaps, missing="drop"), EffortSpec.parse(OPTIONS, "here"))
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
    result: EffortResult = eh.effort(make_table(households), **{**OPTIONS, "weights": [0.5]})
    with pytest.raises(ConfigError, match="not read into memory"):
        result.columns()
    assert "a grid that the data's own engine filled" in result.notes[0]
    assert result.section().parts
