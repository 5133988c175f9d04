"""The paper's tables from a result: every number stands in its place."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.effort import EffortResult, effort
from evenhand.audits.effort.section import individual_table, parity_table
from evenhand.core.display import Cell, Number

YEARS = [f"income_{year}" for year in range(2019, 2023)]


@pytest.fixture(scope="module")
def households() -> pd.DataFrame:
    frame: pd.DataFrame = eh.datasets.make_households(400, seed=2, backend="pandas")
    return frame.assign(one=["rare"] * 3 + ["usual"] * 397)


@pytest.fixture(scope="module")
def result(households: pd.DataFrame) -> EffortResult:
    models = {"xgboost": "risk_xgboost", "house model": "risk_random_forest"}
    table = eh.Table(households, groups=["sex", "one", ["sex", "age_group"]], predictions=models)
    return effort(table, trajectory=YEARS, unit=10_000, scale=200_000, weights=[0.5, 0.3, 0.6577])


def number(cell: Cell) -> float | None:
    assert isinstance(cell, Number)
    return cell.value


def test_individual_fairness_by_model_and_weight(result: EffortResult) -> None:
    table = individual_table(result, "invented")
    assert table.caption == "Effort-aware individual fairness: invented"
    assert table.columns == (
        "Model",
        "Equal weights",
        "Weight 0.3 on effort",
        "Human study weights (0.6577 on effort)",
    )
    assert [row[0] for row in table.rows] == ["xgboost", "house model"]
    for model, row in zip(("xgboost", "house model"), table.rows, strict=True):
        for weight, cell in zip((0.5, 0.3, 0.6577), row[1:], strict=True):
            record = result.get("values", metric="eaif", model=model, weight=weight)
            assert cell == Number(record.value)


def test_traditional_parity_is_smallest_over_largest_mean(households: pd.DataFrame, result: EffortResult) -> None:
    table = parity_table(result)
    assert table.columns == ("Model", "Sex parity", "One parity", "Sex × age_group parity")
    for column, row in zip(("risk_xgboost", "risk_random_forest"), table.rows, strict=True):
        means = households.groupby("sex")[column].mean()
        assert number(row[1]) == pytest.approx(means.min() / means.max(), abs=1e-12)
        assert number(row[2]) is None  # a single group of 10 people or more has no parity
        sizes = households.groupby(["sex", "age_group"])[column].agg(["mean", "size"])
        large = sizes["mean"][sizes["size"] >= 10]
        assert number(row[3]) == pytest.approx(large.min() / large.max(), abs=1e-12)


def test_text_keeps_its_columns(result: EffortResult) -> None:
    lines = str(individual_table(result)).splitlines()
    assert lines[:2] == ["Effort-aware individual fairness", ""]
    ends = {len(line) for line in lines[2:]}
    assert len(ends) == 1
    assert np.char.startswith(lines[3:], ["xgboost", "house model"]).all()
