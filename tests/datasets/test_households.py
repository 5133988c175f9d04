"""The synthetic households: their shape, their story, and the known truth that they sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from evenhand.datasets import households_truth, make_households
from evenhand.datasets.households import _MODELS, _RISK_SD, _cells

LARGE = 1_000_000
MODELS = ("xgboost", "logistic", "random_forest")
INCOMES = [f"income_{year}" for year in range(2019, 2023)]
SCORES = [f"risk_{model}" for model in MODELS]
GROUPS = {
    "race": ["White", "Black", "Hispanic", "Asian", "American Indian", "Pacific Islander"],
    "sex": ["Female", "Male"],
    "age_group": ["18-29", "30-44", "45-59", "60+"],
    "employment": ["Full-time", "Part-time", "Self-employed", "Not working"],
}


@pytest.fixture(scope="module")
def large() -> Any:
    """A million households, enough to see small differences."""
    return make_households(LARGE, seed=20, backend="pandas")


def test_columns_and_values() -> None:
    table = make_households(5_000, backend="pandas")
    assert list(table.columns) == [
        "household",
        "race",
        "sex",
        "age",
        "age_group",
        "employment",
        *INCOMES,
        "missed_payment",
        *SCORES,
    ]
    assert len(table) == 5_000
    assert not table.isna().to_numpy().any()
    assert table["household"].tolist() == list(range(1, 5_001))
    for column, names in GROUPS.items():
        assert set(table[column]) == set(names)
    assert table["age"].between(18, 90).all()
    assert set(table["missed_payment"]) == {0, 1}
    assert ((table[SCORES] > 0) & (table[SCORES] < 1)).to_numpy().all()
    assert (table[INCOMES] >= 1_000).to_numpy().all()
    assert (table[INCOMES] % 100 == 0).to_numpy().all()


def test_age_group_holds_the_age(large: Any) -> None:
    limits = large.groupby("age_group")["age"].agg(["min", "max"])
    assert limits.to_dict("index") == {
        "18-29": {"min": 18, "max": 29},
        "30-44": {"min": 30, "max": 44},
        "45-59": {"min": 45, "max": 59},
        "60+": {"min": 60, "max": 90},
    }


def test_the_smallest_groups_are_small_in_a_small_table() -> None:
    table = make_households(1_000, backend="pandas")
    assert 0 < (table["race"] == "Pacific Islander").sum() < 10


@pytest.mark.parametrize("model", MODELS)
def test_the_quadrature_agrees_with_the_bivariate_normal_distribution(model: str) -> None:
    """In a cell, "selected and missed" is an orthant of two correlated normal variables."""
    cells, score_model = _cells(), _MODELS[model]
    both = score_model.masses(cells)["both"] / cells.share
    for cell in (0, 50, 100, 191):
        mean = [score_model.intercept(cells)[cell] / score_model.slope, cells.risk[cell]]
        covariance = [[_RISK_SD**2 + score_model.noise**2, _RISK_SD**2], [_RISK_SD**2, _RISK_SD**2 + 1.0]]
        orthant = multivariate_normal(mean=np.negative(mean), cov=covariance).cdf([0.0, 0.0])
        assert both[cell] == pytest.approx(orthant, abs=1e-7)


def test_the_truth_tells_the_story_of_the_three_models() -> None:
    truth = households_truth()
    assert 0.15 < truth["logistic"]["overall"]["all"]["outcome_rate"] < 0.20
    for group in GROUPS["race"]:
        figures = {model: truth[model]["race"][group] for model in MODELS}
        assert figures["logistic"]["mean_score"] == pytest.approx(figures["logistic"]["outcome_rate"], abs=1e-12)
        overstated = figures["xgboost"]["mean_score"] - figures["xgboost"]["outcome_rate"]
        assert overstated > 0.04 if group in {"Black", "Hispanic"} else abs(overstated) < 1e-12
        assert figures["random_forest"]["selection_rate"] < 0.6 * figures["logistic"]["selection_rate"]


def test_the_logistic_scores_are_calibrated_and_the_forest_is_shrunken(large: Any) -> None:
    bins = pd.cut(large["risk_logistic"], np.linspace(0.0, 1.0, 11).tolist())
    by_bin = large.groupby(bins, observed=True).agg(
        n=("household", "size"), score=("risk_logistic", "mean"), missed=("missed_payment", "mean")
    )
    error = np.sqrt(by_bin["missed"] * (1 - by_bin["missed"]) / by_bin["n"])
    assert ((by_bin["score"] - by_bin["missed"]).abs() < 4.5 * error).all()
    forest = large["risk_random_forest"]
    assert large.loc[forest > 0.4, "missed_payment"].mean() > forest[forest > 0.4].mean() + 0.05
    assert large.loc[forest < 0.05, "missed_payment"].mean() < forest[forest < 0.05].mean() - 0.01


def test_income_is_persistent_differs_by_group_and_lowers_risk(large: Any) -> None:
    logs = np.log(large[INCOMES])
    assert logs.corr().to_numpy().min() > 0.8
    medians = large.groupby("race")[INCOMES].median()
    assert medians.loc["Asian", "income_2019"] > medians.loc["White", "income_2019"]
    assert medians.loc["White", "income_2019"] > 1.2 * medians.loc["Black", "income_2019"]
    growth = medians["income_2022"] / medians["income_2019"]
    assert growth["Hispanic"] > growth["White"] > growth["American Indian"]
    missed = large.groupby(pd.qcut(large["income_2022"], 5, labels=False))["missed_payment"].mean()
    assert missed.is_monotonic_decreasing
    assert missed.iloc[0] > 4 * missed.iloc[-1]
