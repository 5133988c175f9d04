"""Numbers and clusters on published data: values and errors against fairlearn, scikit-learn and statsmodels."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from fairlearn.metrics import MetricFrame
from scipy import stats
from sklearn.metrics import mean_absolute_error, mean_squared_error, root_mean_squared_error

import evenhand as eh

pytestmark = pytest.mark.skipif(not os.environ.get("EVENHAND_DATA"), reason="EVENHAND_DATA names no folder of data")


@pytest.fixture(name="patients", scope="module")
def make_patients() -> pd.DataFrame:
    """Return patients with their illnesses, as found and as predicted."""
    found: pd.DataFrame = eh.datasets.load_hospital(backend="pandas")
    return found


@pytest.fixture(name="answers", scope="module")
def make_answers() -> pd.DataFrame:
    """Return the guesses of people about defendants: 50 by each person."""
    found: pd.DataFrame = eh.datasets.load_dressel_farid(backend="pandas")
    return found


def illnesses(patients: pd.DataFrame) -> Any:
    kind = {"m": {"column": "gagne_sum_t_hat", "kind": "number"}}
    table = eh.Table(patients, groups="race", outcome="gagne_sum_t", predictions=kind)
    return eh.parity(table, metrics=["mean", "median", "mean_outcome", "mean_error", "mae", "mse", "rmse"])


def test_values_are_those_of_fairlearn_and_scikit_learn(patients: pd.DataFrame) -> None:
    metrics = {
        "mae": mean_absolute_error,
        "mse": mean_squared_error,
        "rmse": root_mean_squared_error,
        "mean": lambda _, d: float(np.mean(d)),
        "median": lambda _, d: float(np.median(d)),
        "mean_outcome": lambda y, _: float(np.mean(y)),
        "mean_error": lambda y, d: float(np.mean(d - y)),
    }
    y, d, race = patients["gagne_sum_t"], patients["gagne_sum_t_hat"], patients["race"]
    frame = MetricFrame(metrics=metrics, y_true=y, y_pred=d, sensitive_features=race)
    result = illnesses(patients)
    for name in metrics:
        for group in frame.by_group.index:
            assert result.get("values", metric=name, group=str(group)).value == pytest.approx(
                frame.by_group.loc[group, name], rel=1e-9
            )
        gap = result.get("gaps", metric=name, kind="difference", against="worst_pair")
        assert gap.value == pytest.approx(frame.difference()[name], rel=1e-7)


def test_the_test_of_means_is_welchs_in_large_groups(patients: pd.DataFrame) -> None:
    race = patients["race"]
    first, second = (patients["gagne_sum_t_hat"][race == group] for group in sorted(race.unique()))
    welch = stats.ttest_ind(first, second, equal_var=False)
    gap = illnesses(patients).get("gaps", metric="mean", kind="difference", against="worst_pair")
    low, high = sorted(abs(end) for end in welch.confidence_interval(0.95))
    assert [gap.low, gap.high] == pytest.approx([low, high], rel=0.02)


@pytest.mark.parametrize("weight", [None, "weight"])
def test_errors_of_clusters_are_those_of_statsmodels(answers: pd.DataFrame, weight: str | None) -> None:
    """Guesses of one person are alike, and every person judges defendants of both groups."""
    two = answers[answers["race"].isin(["Black", "White"])].copy()
    critic = np.unique(two["critic"].astype(str) + two["condition"], return_inverse=True)[1]
    two = two.assign(person=critic, number=two["prediction"] * 7.0 + 1.0, weight=1.0 + (np.arange(len(two)) % 3))
    design = sm.add_constant((two["race"] == "Black").astype(float))
    fit = sm.OLS if weight is None else partial(sm.WLS, weights=two["weight"])
    table = eh.Table(
        two,
        groups="race",
        predictions={"guess": "prediction", "number": {"column": "number", "kind": "number"}},
        cluster="person",
        weight=weight,
    )
    result = eh.parity(table, metrics=["selection_rate", "mean"], reference="White")
    for model, metric, times in (("guess", "selection_rate", 1.0), ("number", "mean", 7.0)):
        expected = fit(two["prediction"].astype(float), design).fit(cov_type="cluster", cov_kwds={"groups": critic})
        gap = result.get("gaps", model=model, metric=metric, kind="difference", against="reference")
        assert gap.value == pytest.approx(times * expected.params.iloc[1], rel=1e-9)
        assert gap.low is not None
        assert gap.high is not None
        width = stats.t.ppf(0.975, len(np.unique(critic)) - 1) * expected.bse.iloc[1] * times
        assert (gap.high - gap.low) / 2 == pytest.approx(width, rel=0.03)
