"""The paper's tables from a result: every number stands in its place."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.effort import EffortResult, effort
from evenhand.audits.effort.paper import in_text, individual_table, parity_table
from evenhand.core.numbers import DASH

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


def test_individual_fairness_by_model_and_weight(result: EffortResult) -> None:
    table = individual_table(result, "invented", places=4)
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
            record = next(r for r in result.individual if (r.model, r.weight) == (model, weight))
            assert cell == f"{record.value:.4f}"


def test_traditional_parity_is_smallest_over_largest_mean(households: pd.DataFrame, result: EffortResult) -> None:
    table = parity_table(result)
    assert table.columns == ("Model", "Sex parity", "One parity", "Sex × age_group parity")
    for column, row in zip(("risk_xgboost", "risk_random_forest"), table.rows, strict=True):
        means = households.groupby("sex")[column].mean()
        assert row[1] == f"{means.min() / means.max():.2f}"
        assert row[2] == DASH  # a single group of 10 people or more has no parity
        sizes = households.groupby(["sex", "age_group"])[column].agg(["mean", "size"])
        large = sizes["mean"][sizes["size"] >= 10]
        assert row[3] == f"{large.min() / large.max():.2f}"


def test_text_keeps_its_columns(result: EffortResult) -> None:
    lines = in_text(individual_table(result)).splitlines()
    assert lines[:2] == ["Effort-aware individual fairness", ""]
    ends = {len(line) for line in lines[2:]}
    assert len(ends) == 1
    assert np.char.startswith(lines[3:], ["xgboost", "house model"]).all()
