"""Utilities of covariates and decisions that are prices: from settings alone, by every rule that can make them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import ConfigError, DataError
from evenhand.stats.improvability import Formula, formula_utility, get_utility, group_values
from evenhand.stats.linear_search import search_problem, solve_milp, sweep_directions

NET = {"name": "net value", "u": "(outcome >= decision) * (decision - cost)"}


@pytest.fixture(scope="module")
def buyers() -> pd.DataFrame:
    """People whose willingness to pay rises with their income; the old price is too high for group b."""
    rng = np.random.default_rng(0)
    n = 1_200
    group = np.where(rng.random(n) < 0.5, "a", "b")
    income = rng.uniform(1, 5, n)
    worth = np.maximum(0.1, 2 * income - 2 * (group == "b") + rng.normal(0, 0.5, n))
    price = np.where(group == "a", 3.0, 5.5)
    cheaper = np.round(np.clip(1.4 * income - 1.5 * (group == "b"), 0.5, None), 2)
    return pd.DataFrame(
        {
            "id": range(n),
            "group": group,
            "income": income,
            "worth": worth,
            "price": price,
            "cheaper": cheaper,
            "cost": 0.2,
        }
    )


def audited(frame: pd.DataFrame, **settings: Any) -> eh.ImprovabilityResult:
    return eh.improvability(
        eh.Table(frame, id="id", groups="group"),
        **{
            "status_quo": {"column": "price", "kind": "decision"},
            "outcome": "worth",
            "utility": "profit",
            "resamples": 200,
            **settings,
        },
    )


def test_a_formula_is_what_it_says() -> None:
    y, d, cost = np.array([5.0, 1.0, 3.0]), np.array([3.0, 3.0, 3.0]), np.array([1.0, 1.0, 2.0])
    found = Formula("max(0, decision - cost) * (outcome >= decision and outcome < 4) + 2 ** -1")
    np.testing.assert_allclose(found(y, d, {"cost": cost}), [0.5, 0.5, 1.5])
    profit, own = get_utility("profit"), formula_utility("own", "decision * (outcome >= decision)")
    np.testing.assert_array_equal(profit.terms(y, d), own.terms(y, d))
    assert np.isnan(own.u(np.array([np.nan]), np.array([1.0]))).all()


@pytest.mark.parametrize(
    "text", ["__import__('os')", "outcome.real", "[1]", "x if y else z", "outcome +", "'a'", "f(1)", "lambda: 1"]
)
def test_a_formula_runs_nothing_else(text: str) -> None:
    with pytest.raises(ConfigError, match="a formula may have numbers"):
        Formula(text)


def test_prices_of_a_column(buyers: pd.DataFrame) -> None:
    found = audited(buyers, candidates={"cheaper": {"column": "cheaper", "kind": "decision"}})
    for model, column in (("status_quo", "price"), ("cheaper", "cheaper")):
        for name, part in buyers.groupby("group"):
            paid = np.where(part["worth"] >= part[column], part[column], 0.0).mean()
            assert found.get("values", model=model, group=name, metric="profit").value == pytest.approx(paid)


def test_a_utility_of_a_column(buyers: pd.DataFrame) -> None:
    candidates = {"cheaper": {"column": "cheaper", "kind": "decision"}}
    found = audited(buyers, utility=NET, candidates=candidates)
    part = buyers[buyers["group"] == "b"]
    net = np.where(part["worth"] >= part["price"], part["price"] - part["cost"], 0.0).mean()
    assert found.get("values", model="status_quo", group="b").value == pytest.approx(net)
    written = json.loads(json.dumps(found.to_dict()))["settings" if "settings" in found.to_dict() else "spec"]
    assert written["utility"] == {**NET, "w": "1", "better": "higher"}


def test_prices_by_linear_search_and_sweep(buyers: pd.DataFrame) -> None:
    family = [{"estimator": "linear", "kind": "decision", "factor": factor} for factor in (0.7, 0.9)]
    found = audited(
        buyers,
        features=["income"],
        candidates={
            "linear": {"estimator": "linear", "kind": "decision", "factor": 0.8},
            "search": {"family": {f"f{i}": member for i, member in enumerate(family)}, "folds": 2},
            "sweep": {"rule": "sweep", "amounts": [2.0, 5.0], "directions": 200},
        },
        test={"splits": 1},
    )
    values = {(r.model, r.group): r.value or 0.0 for r in found.values}
    for name in ("linear", "search", "sweep"):
        assert values[name, "(overall)"] > values["status_quo", "(overall)"]


def test_everything_from_a_file_without_code(buyers: pd.DataFrame, tmp_path: Path) -> None:
    buyers.to_csv(tmp_path / "buyers.csv", index=False)
    (tmp_path / "audit.toml").write_text(
        """
[data]
source = "buyers.csv"
id = "id"
groups = ["group"]

[improvability]
status_quo = { column = "price", kind = "decision" }
outcome = "worth"
utility = { name = "net value", u = "(outcome >= decision) * (decision - cost)" }
candidates = { cheaper = { column = "cheaper", kind = "decision" } }
resamples = 200
"""
    )
    audit = eh.audit(tmp_path / "audit.toml")
    assert {r.metric for r in audit["improvability"].rows("values")} == {"net value"}
    folder = audit.save(tmp_path / "out")
    assert eh.Audit.load(folder["report.html"].parent).to_json() == audit.to_json()


def test_the_two_price_search_is_exact(buyers: pd.DataFrame) -> None:
    """The sums of the search are those of the prices that it sets, and the program is no worse than the sweep."""
    few = buyers.iloc[:60]
    codes = (few["group"] == "b").to_numpy().astype(int)
    x, y = few[["income"]].to_numpy(), few["worth"].to_numpy()
    problem = search_problem(x, y, few["price"].to_numpy(), codes, "ab", utility="profit", amounts=(2.0, 5.0))
    high = x[:, 0] > 3
    paid = np.where(y >= np.where(high, 5.0, 2.0), np.where(high, 5.0, 2.0), 0.0)
    np.testing.assert_allclose(problem.values(high), group_values(paid, np.ones(60), codes, 2))
    rng = np.random.default_rng(0)
    swept = sweep_directions(problem, rng, directions=300)
    solved = solve_milp(problem, rng, time_limit=10, directions=300)
    assert solved.gap <= swept.gap + 1e-9


def test_mistakes_are_told(buyers: pd.DataFrame) -> None:
    with pytest.raises(ConfigError, match="needs its `u`"):
        audited(buyers, utility={"name": "x"}, candidates="cheaper")
    with pytest.raises(ConfigError, match="did you mean 'better'"):
        audited(buyers, utility={**NET, "beter": "lower"}, candidates="cheaper")
    with pytest.raises(DataError, match="needs numbers"):
        audited(
            buyers,
            utility={"name": "x", "u": "decision * group"},
            candidates={"c": {"column": "cheaper", "kind": "decision"}},
        )
    with pytest.raises(ConfigError, match="kind = 'decision'"):
        audited(buyers, candidates="cheaper")
    for utility in ("mirrored_calibration", "false_positive_rate"):
        with pytest.raises(ConfigError, match="the linear searches know calibration"):
            search_problem(np.eye(4), [0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 1, 1], "ab", utility=utility)
