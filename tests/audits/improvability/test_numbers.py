"""Improvability of predicted numbers, such as salaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, mean_squared_error

import evenhand as eh
from evenhand.audits.improvability.result import ImprovabilityResult
from evenhand.errors import ConfigError


def rows(n: int = 600, seed: int = 0) -> Any:
    """Return salaries, of which the old formula errs more for women."""
    rng = np.random.default_rng(seed)
    sex, skill, years = rng.choice(["f", "m"], n), rng.normal(size=n).round(2), rng.integers(0, 30, n)
    pay = (30_000 + 3_000 * skill + 500 * years + 1_000 * rng.normal(size=n)).round()
    old = np.where(sex == "f", 37_000 + 1_000 * skill, 30_000 + 1_500 * skill + 490 * years).round()
    new = (30_000 + 2_900 * skill + 490 * years).round()
    return {"sex": sex, "skill": skill, "years": years, "pay": pay, "old": old, "new": new, "chosen": pay > 38_000}


def audited(data: Any, **settings: Any) -> ImprovabilityResult:
    table = eh.Table(data, groups="sex", outcome="pay", predictions={"old": {"column": "old", "kind": "number"}})
    defaults = {"status_quo": "old", "candidates": {"new": "new"}, "utility": "absolute_error", "resamples": 400}
    return eh.improvability(table, **{**defaults, **settings})


@pytest.mark.parametrize(
    ("utility", "metric"), [("absolute_error", mean_absolute_error), ("squared_error", mean_squared_error)]
)
def test_values_are_those_of_scikit_learn(utility: str, metric: Any) -> None:
    data = rows()
    result = audited(data, utility=utility)
    for group in ("f", "m"):
        inside = data["sex"] == group
        for model, column in (("status_quo", "old"), ("new", "new")):
            value = result.get("values", model=model, group=group, metric=utility)
            assert value.value == pytest.approx(metric(data["pay"][inside], data[column][inside]))


def test_a_formula_that_errs_alike_is_established() -> None:
    result = audited(rows(1_500))
    margin = result.get("margins", metric="improvable_fairness", test="signed")
    assert margin.value is not None
    assert margin.value > 0.5


def test_estimators_predict_the_number() -> None:
    data = rows(900)
    result = audited(data, candidates=["linear"], features=["skill", "years"])
    design = np.column_stack([data["skill"], data["years"]])
    fitted = LinearRegression().fit(design, data["pay"])
    expected = mean_absolute_error(data["pay"], fitted.predict(design))
    value = result.get("values", model="linear", group="(overall)", metric="absolute_error")
    assert value.value == pytest.approx(expected, rel=0.03)


def test_the_mean_salary_of_the_chosen_is_a_utility() -> None:
    data = rows()
    candidate = {"new": {"column": "new", "threshold": 38_000.0}}
    result = audited(data, status_quo="chosen", candidates=candidate, utility="calibration")
    inside = (data["sex"] == "f") & (data["new"] > 38_000)
    value = result.get("values", model="new", group="f", metric="calibration")
    assert value.value == pytest.approx(data["pay"][inside].mean())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"utility": "classification"}, "outcome 'pay' is a number"),
        ({"capacity": 0.2}, "leave one of them out"),
        ({"fairness_utility": "calibration"}, "audit them one by one"),
        ({"candidates": ["sweep"], "features": ["skill"]}, "use an estimator or a column"),
    ],
)
def test_what_does_not_go_with_predicted_numbers_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        audited(rows(), **settings)
