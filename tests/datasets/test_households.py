"""The synthetic households: their shape, their story, and the known truth that they sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import multivariate_normal

from evenhand.datasets import households_truth, make_households
from evenhand.datasets.households import _MODELS, _RISK_SD, _cell_masses, _cells
from evenhand.errors import ConfigError

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
    """A million households, enough to see the truth to three digits."""
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


def test_same_seed_same_table_on_every_backend() -> None:
    in_pandas = make_households(500, seed=7, backend="pandas")
    in_polars = make_households(500, seed=7, backend="polars")
    in_arrow = make_households(500, seed=7, backend="pyarrow")
    assert isinstance(in_polars, pl.DataFrame)
    assert isinstance(in_arrow, pa.Table)
    assert in_polars.to_dict(as_series=False) == in_arrow.to_pydict() == in_pandas.to_dict("list")
    assert not in_polars.equals(make_households(500, seed=8, backend="polars"))


def test_the_smallest_groups_are_small_in_a_small_table() -> None:
    table = make_households(1_000, backend="pandas")
    assert 0 < (table["race"] == "Pacific Islander").sum() < 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "`n` must be an integer of at least 1; got 0"),
        ({"n": 2.5}, "`n` must be an integer of at least 1; got 2.5"),
        ({"n": True}, "`n` must be an integer of at least 1; got True"),
        ({"seed": -1}, "`seed` must be an integer of at least 0; got -1"),
        ({"seed": None}, "`seed` must be an integer of at least 0; got None"),
        ({"n": 5, "backend": "pola"}, "did you mean 'polars'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_households(**arguments)


def test_one_household_and_numpy_integers() -> None:
    assert len(make_households(np.int64(1), np.int32(3), backend="pandas")) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("grouping", ["overall", "race", "sex", "age_group"])
def test_a_large_table_agrees_with_the_truth(large: Any, model: str, grouping: str) -> None:
    key = np.full(LARGE, "all") if grouping == "overall" else large[grouping].to_numpy()
    truth = households_truth()[model][grouping]
    assert set(truth) == set(key)
    for group, expected in truth.items():
        rows = large[key == group]
        score, missed = rows[f"risk_{model}"].to_numpy(), rows["missed_payment"].to_numpy() == 1
        selected = score > 0.5
        assert_rate(len(rows), LARGE, expected["share"])
        assert_rate(missed.sum(), missed.size, expected["outcome_rate"])
        assert_rate(selected.sum(), selected.size, expected["selection_rate"])
        assert_rate(selected[missed].sum(), missed.sum(), expected["tpr"])
        assert_rate(selected[~missed].sum(), (~missed).sum(), expected["fpr"])
        assert abs(score.mean() - expected["mean_score"]) < 4.5 * score.std() / math.sqrt(score.size)


def assert_rate(hits: float, size: float, truth: float) -> None:
    assert abs(hits / size - truth) <= 4.5 * math.sqrt(truth * (1.0 - truth) / size)


@pytest.mark.parametrize("model", MODELS)
def test_the_quadrature_agrees_with_the_bivariate_normal_distribution(model: str) -> None:
    """In a cell, "selected and missed" is an orthant of two correlated normal variables."""
    cells, score_model = _cells(), _MODELS[model]
    both = _cell_masses(score_model, cells)["both"] / cells.share
    for cell in (0, 50, 100, 191):
        mean = [score_model.intercept(cells)[cell] / score_model.slope, cells.risk[cell]]
        covariance = [[_RISK_SD**2 + score_model.noise**2, _RISK_SD**2], [_RISK_SD**2, _RISK_SD**2 + 1.0]]
        orthant = multivariate_normal(mean=np.negative(mean), cov=covariance).cdf([0.0, 0.0])
        assert both[cell] == pytest.approx(orthant, abs=1e-7)


def test_the_truth_adds_up() -> None:
    for by_grouping in households_truth().values():
        overall = by_grouping["overall"]["all"]
        for groups in by_grouping.values():
            assert math.fsum(group["share"] for group in groups.values()) == pytest.approx(1.0)
            for figure in ("outcome_rate", "selection_rate", "mean_score"):
                mixed = math.fsum(group["share"] * group[figure] for group in groups.values())
                assert mixed == pytest.approx(overall[figure])
            for group in groups.values():
                selected = group["outcome_rate"] * group["tpr"] + (1 - group["outcome_rate"]) * group["fpr"]
                assert selected == pytest.approx(group["selection_rate"])


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
