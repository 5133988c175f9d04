"""Reliability of models that predict numbers, such as salaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import evenhand as eh
from evenhand.audits.reliability.result import ReliabilityResult
from evenhand.errors import ConfigError

NOISE = {"features": {"skill": 0.5, "years": 3}, "noise_levels": [1.0]}


def rows(n: int = 600, seed: int = 0) -> Any:
    """Return people with a salary."""
    rng = np.random.default_rng(seed)
    sex, skill = rng.choice(["f", "m"], n), rng.normal(size=n).round(2)
    years = rng.integers(0, 30, n).astype(float)
    pay = (30_000 + 3_000 * skill + 500 * years + 1_000 * rng.normal(size=n)).round()
    return {"sex": sex, "skill": skill, "years": years, "pay": pay}


def fitted(data: Any) -> Any:
    return LinearRegression().fit(np.column_stack([data["skill"], data["years"]]), data["pay"])


def audited(model: Any, data: Any, outcome: str | None = None, **settings: Any) -> ReliabilityResult:
    kind: Any = None if outcome is None else "number"
    table = eh.Table(data, groups="sex", outcome=outcome, outcome_kind=kind, predictions=None if kind is None else {})
    defaults = {"features": ["skill", "years"], "noise": NOISE, "replicates": 40, "resamples": 200}
    return eh.reliability(model, table, **{**defaults, **settings})


def test_errors_are_those_of_the_noise() -> None:
    """A mistake of standard deviation s in a feature with the weight b moves a prediction by b s."""
    data = rows(2_000)
    result = audited(fitted(data), data)
    expected = (3_000 * 0.5) ** 2 + (500 * 3) ** 2
    for group in ("f", "m"):
        squares = result.get("values", group=group, metric="mean_squared_error")
        assert squares.value == pytest.approx(expected, rel=0.1)
        change = result.get("values", group=group, metric="mean_error")
        assert change.low is not None
        assert change.high is not None
        assert change.low < 0 < change.high
        of_group = np.asarray(fitted(data).predict(np.column_stack([data["skill"], data["years"]])))[
            data["sex"] == group
        ]
        icc = result.get("values", group=group, metric="icc_a1")
        assert icc.value == pytest.approx(1 - expected / 2 / (of_group.var() + expected / 2), abs=0.02)


def test_only_metrics_of_numbers_are_shown() -> None:
    data = rows()
    result = audited(fitted(data), data)
    assert result.spec.metrics == ("icc_a1", "icc_spread")
    assert {record.metric for record in result.values} == {
        *result.spec.metrics,
        *("mean_error", "mean_squared_error", "variance_first", "variance_second", "mean_second"),
    }
    (model,) = result.models
    assert (model.threshold, model.selected, model.accuracy) == (None, None, None)
    assert not any("select" in note.id for note in result.notes)


def test_a_unit_of_the_number_changes_no_coefficient() -> None:
    data = rows()
    first = audited(fitted(data), data)
    thousands = {**data, "pay": data["pay"] / 1_000}
    second = audited(fitted(thousands), thousands)
    for a, b in zip(first.gaps, second.gaps, strict=True):
        assert (a.value, a.low, a.high, a.p_value) == pytest.approx((b.value, b.low, b.high, b.p_value), abs=1e-6)


def test_a_function_of_rows_may_give_numbers() -> None:
    data = rows()
    result = audited(lambda x: 1_000 * x[:, 0] + x[:, 1], data, scoring={"kind": "number"})
    assert result.spec.metrics == ("icc_a1", "icc_spread")


def test_the_report_has_it() -> None:
    data = rows()
    settings: Any = {"model": fitted(data), "features": ["skill", "years"], "noise": NOISE, "replicates": 10}
    page = eh.audit(eh.Table(data, groups="sex"), reliability=settings).to_html()
    assert "Mean change" in page
    assert "Why kappa and PABAK differ" not in page


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (None, {"metrics": ["kappa"]}, "'kappa' compares decisions"),
        (None, {"mitigation": {"family": ["sparse"]}}, "`mitigation` compares decisions"),
        ("random_forest", {"scoring": {"kind": "number"}}, "give a fitted model"),
        (LinearRegression(), {"scoring": {"kind": "number"}}, "give a fitted model"),
    ],
)
def test_what_needs_decisions_is_refused(model: Any, settings: Any, message: str) -> None:
    data = rows()
    with pytest.raises(ConfigError, match=message):
        audited(fitted(data) if model is None else model, data, **settings)
