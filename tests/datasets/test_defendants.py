"""The synthetic defendants: their shape and their story (`test_synthetic` has the truth that they sample)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from evenhand.datasets import defendants_truth, make_defendants
from evenhand.datasets._synthetic import TreeModel
from evenhand.datasets.defendants import _MODELS, _RISK_SD, _cells
from evenhand.stats.effort import acceleration

LARGE = 500_000
MODELS = ("lightgbm", "logistic", "decision_tree")
ARRESTS = [f"arrests_year{year}" for year in range(1, 5)]
SCORES = [f"risk_{model}" for model in MODELS]
GROUPS = {
    "race": ["White", "Black", "Asian", "American Indian", "Pacific Islander"],
    "sex": ["Female", "Male"],
    "age_group": ["18-24", "25-34", "35-44", "45+"],
    "charge_degree": ["Felony", "Misdemeanor"],
}


@pytest.fixture(scope="module")
def large() -> Any:
    """Enough defendants to see small differences."""
    return make_defendants(LARGE, seed=20, backend="pandas")


@pytest.fixture
def tree() -> TreeModel:
    model = _MODELS["decision_tree"]
    assert isinstance(model, TreeModel)
    return model


def test_columns_and_values() -> None:
    table = make_defendants(5_000, backend="pandas")
    assert list(table.columns) == [
        "defendant",
        "race",
        "sex",
        "age",
        "age_group",
        "charge_degree",
        *ARRESTS,
        "rearrested",
        *SCORES,
    ]
    assert len(table) == 5_000
    assert not table.isna().to_numpy().any()
    assert table["defendant"].tolist() == list(range(1, 5_001))
    for column, names in GROUPS.items():
        assert set(table[column]) == set(names)
    assert set(table["rearrested"]) == {0, 1}
    assert ((table[SCORES] > 0) & (table[SCORES] < 1)).to_numpy().all()
    assert ((table[ARRESTS] >= 0) & (table[ARRESTS] <= 12)).to_numpy().all()
    assert all(pd.api.types.is_integer_dtype(table[name]) for name in ARRESTS)


def test_age_group_holds_the_age(large: Any) -> None:
    limits = large.groupby("age_group")["age"].agg(["min", "max"])
    assert limits.to_dict("index") == {
        "18-24": {"min": 18, "max": 24},
        "25-34": {"min": 25, "max": 34},
        "35-44": {"min": 35, "max": 44},
        "45+": {"min": 45, "max": 75},
    }


def test_arrests_are_few_zero_inflated_and_alike_in_neighbouring_years(large: Any) -> None:
    counts = large[ARRESTS]
    assert counts.mean().between(0.4, 0.8).all()
    assert ((counts == 0).mean() > np.exp(-counts.mean()) + 0.05).all(), "more zeros than a Poisson number has"
    correlation = counts.corr().to_numpy()
    assert correlation.min() > 0.2
    for year in range(2):
        assert correlation[year, year + 1] > correlation[year, year + 2]


def test_groups_differ_in_level_and_in_trajectory(large: Any) -> None:
    by_race, by_age = large.groupby("race")[ARRESTS].mean(), large.groupby("age_group")[ARRESTS].mean()
    assert by_race.loc["Black", "arrests_year1"] > by_race.loc["White", "arrests_year1"]
    assert by_race.loc["White", "arrests_year1"] > 1.5 * by_race.loc["Asian", "arrests_year1"]
    growth = by_race["arrests_year4"] / by_race["arrests_year1"]
    assert growth["American Indian"] > growth["White"] > growth["Black"]
    assert by_age.loc["18-24"].is_monotonic_increasing
    assert by_age.loc["45+"].is_monotonic_decreasing


def test_risk_rises_with_arrests_and_with_their_growth(large: Any) -> None:
    total = large[ARRESTS].sum(axis=1)
    rate = large.groupby(total.clip(upper=8))["rearrested"].mean()
    assert rate.is_monotonic_increasing
    assert rate.iloc[-1] > 2.5 * rate.iloc[0]
    same_total = large[total == 3]
    speed = acceleration(same_total[ARRESTS].to_numpy())
    rearrested = same_total["rearrested"].to_numpy()
    assert rearrested[speed > 0].mean() > rearrested[speed < 0].mean() + 0.02


def test_the_tree_has_eight_values_and_they_are_the_rates_of_its_leaves(large: Any, tree: TreeModel) -> None:
    assert set(large["risk_decision_tree"]) == set(tree.leaves)
    assert len(tree.leaves) == len(tree.cuts) + 1 == 8
    np.testing.assert_allclose(tree.leaves, tree.leaf_rates(_cells()), atol=5.001e-4)
    by_leaf = large.groupby("risk_decision_tree")["rearrested"].agg(["mean", "size"])
    error = np.sqrt(by_leaf["mean"] * (1 - by_leaf["mean"]) / by_leaf["size"])
    assert ((by_leaf["mean"] - by_leaf.index).abs() < 4.5 * error + 5e-4).all()


def test_the_quadrature_agrees_with_an_adaptive_integral(tree: TreeModel) -> None:
    """In a cell, "selected and arrested again" is an integral over the risk."""
    cells = _cells()
    both = tree.masses(cells)["both"] / cells.share
    cut = tree.cuts[[leaf > 0.5 for leaf in tree.leaves].index(True) - 1]

    for cell in (0, 20, 50, 79):

        def integrand(risk: float, mean: float = float(cells.risk[cell])) -> float:
            density = norm.pdf(risk, mean, _RISK_SD)
            return float(norm.cdf(risk) * norm.sf((cut - risk) / tree.noise) * density)

        assert both[cell] == pytest.approx(quad(integrand, -8, 8, epsabs=1e-13)[0], abs=1e-10)


def test_the_truth_tells_the_story_of_the_three_models() -> None:
    truth = defendants_truth()
    assert list(truth) == list(MODELS)
    assert 0.25 < truth["lightgbm"]["overall"]["all"]["outcome_rate"] < 0.35
    for grouping in ("race", "sex", "age_group"):
        assert list(truth["lightgbm"][grouping]) == GROUPS[grouping]
        for group in GROUPS[grouping]:
            boosted, logistic = truth["lightgbm"][grouping][group], truth["logistic"][grouping][group]
            assert boosted["mean_score"] == pytest.approx(boosted["outcome_rate"], abs=1e-12)
            if grouping == "race":
                overstated = logistic["mean_score"] - logistic["outcome_rate"]
                assert overstated > 0.06 if group == "Black" else overstated < 0.03
    races = truth["decision_tree"]["race"]
    whole = truth["decision_tree"]["overall"]["all"]
    assert whole["mean_score"] == pytest.approx(whole["outcome_rate"], abs=5e-4)
    assert races["Asian"]["mean_score"] > races["Asian"]["outcome_rate"] + 0.02
    assert races["American Indian"]["mean_score"] < races["American Indian"]["outcome_rate"] - 0.01


def test_parity_of_the_models_is_ordered_as_in_the_paper() -> None:
    """Table 8: the tree treats the races most alike, the logistic model least; sexes are closer than races."""
    parity = {
        grouping: [ratio(list(defendants_truth()[model][grouping].values())) for model in MODELS]
        for grouping in ("race", "sex", "age_group")
    }
    for boosted, logistic, tree in parity.values():
        assert logistic < boosted < tree
    assert min(parity["sex"]) > max(parity["race"])


def ratio(groups: list[dict[str, float]]) -> float:
    means = [group["mean_score"] for group in groups]
    return min(means) / max(means)


def test_the_boosted_scores_are_calibrated_and_the_logistic_ones_exaggerate(large: Any) -> None:
    bins = pd.cut(large["risk_lightgbm"], np.linspace(0.0, 1.0, 11).tolist())
    by_bin = large.groupby(bins, observed=True).agg(
        n=("defendant", "size"), score=("risk_lightgbm", "mean"), rate=("rearrested", "mean")
    )
    error = np.sqrt(by_bin["rate"] * (1 - by_bin["rate"]) / by_bin["n"])
    assert ((by_bin["score"] - by_bin["rate"]).abs() < 4.5 * error).all()
    white = large[large["race"] == "White"]
    high, low = white["risk_logistic"] > 0.7, white["risk_logistic"] < 0.1
    assert white.loc[high, "risk_logistic"].mean() > white.loc[high, "rearrested"].mean() + 0.05
    assert white.loc[low, "risk_logistic"].mean() < white.loc[low, "rearrested"].mean() - 0.02
