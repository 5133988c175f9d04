"""The pipelines of the effort paper's appendix: a split, a search, weighted F1, and a percentile as threshold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

import evenhand as eh
from evenhand.errors import ConfigError, DataError
from evenhand.models.estimators import ModelsSettings
from evenhand.models.folds import add_models, cross_predict, weighted_f1


@pytest.fixture(scope="module")
def households() -> pd.DataFrame:
    frame: pd.DataFrame = eh.datasets.make_households(200, seed=1, backend="pandas")
    return frame


TREE: dict[str, Any] = {"estimator": "decision_tree", "settings": {"min_samples_leaf": 5}}


@pytest.mark.parametrize("seed", range(3))
def test_weighted_f1_is_scikit_learns(seed: int) -> None:
    truth, selected = np.random.default_rng(seed).random((2, 50)) < [[0.3], [0.5]]
    assert weighted_f1(truth, selected) == pytest.approx(f1_score(truth, selected, average="weighted"))


def test_weighted_f1_is_a_metric_of_parity_with_a_gap_and_a_limit(households: pd.DataFrame) -> None:
    roles: dict[str, Any] = {"outcome": "missed_payment", "groups": "sex", "predictions": "risk_logistic"}
    table = eh.Table(households, **roles)
    limit = {"metric": "weighted_f1", "max": 0.3}
    result = eh.parity(table, metrics=["weighted_f1", "accuracy"], thresholds=[limit], resamples=200)
    for sex, people in households.groupby("sex"):
        record: Any = result.get("values", metric="weighted_f1", group=sex)
        expected = f1_score(people.missed_payment, people.risk_logistic > 0.5, average="weighted")
        assert record.value == pytest.approx(expected)
        assert record.low < record.value < record.high
    assert result.findings[0].metric == "weighted_f1"
    with pytest.raises(ConfigError, match="needs outcome"):
        eh.parity(eh.Table(households, groups="sex", predictions="risk_logistic"), metrics=["weighted_f1"])
    with pytest.raises(ConfigError, match="did you mean 'weighted_f1'"):
        eh.parity(table, metrics=["weigthed_f1"])


def test_a_model_is_judged_on_a_split_beside_its_scores_out_of_fold(households: pd.DataFrame) -> None:
    roles: dict[str, Any] = {"data": households, "id": "household", "outcome": "missed_payment"}
    settings = ModelsSettings(features=["income_2022", "employment"], fit={"tree": TREE}, split=0.7)
    scored = add_models(eh.Table(**roles), roles, settings)
    note = next(note.text for note in scored.source.notes if note.id == "table.judged_on_split")
    assert "Fitted to 70% of the people and judged on the other 60" in note
    plain = add_models(eh.Table(**roles), roles, settings.model_copy(update={"split": None}))
    assert plain.data["tree"].equals(scored.data["tree"])


def test_a_search_tries_its_grid_and_is_the_same_for_a_seed(households: pd.DataFrame) -> None:
    search = {"grid": {"max_depth": [1, 3], "min_samples_leaf": [5, 20]}, "iterations": 2, "folds": 2}
    options: dict[str, Any] = {"id": "household", "outcome": "missed_payment", "features": ["income_2022"], "folds": 2}
    found, again = (cross_predict(households, fit={"tree": {**TREE, "search": search}}, **options) for _ in range(2))
    pd.testing.assert_frame_equal(found, again)
    only = {"grid": {"max_depth": [1]}, "folds": 2}
    shallow = cross_predict(households, fit={"tree": {**TREE, "search": only}}, **options)
    fixed = cross_predict(
        households, fit={"tree": {**TREE, "settings": {"min_samples_leaf": 5, "max_depth": 1}}}, **options
    )
    pd.testing.assert_frame_equal(shallow, fixed)
    with pytest.raises(ConfigError, match="max_dept"):
        cross_predict(households, fit={"tree": {**TREE, "search": {"grid": {"max_dept": [1]}}}}, **options)
    with pytest.raises(ConfigError, match="random_state"):
        cross_predict(households, fit={"tree": {**TREE, "search": {"grid": {"random_state": [1]}}}}, **options)


def test_a_threshold_is_a_percentile_of_the_scores_of_some_people(households: pd.DataFrame, tmp_path: Path) -> None:
    women = households[households.sex == "Female"].risk_logistic
    percentile = {"of": 62, "among": "sex", "value": "Female"}
    table = eh.Table(households, groups="sex", predictions="risk_logistic", percentile=percentile)
    assert table.prediction("risk_logistic").threshold == pytest.approx(np.percentile(women, 62))
    note = next(note.text for note in table.source.notes if "percentile 62" in note.text)
    assert f"the people with sex 'Female' ({len(women):,})" in note
    rate = eh.parity(table, metrics=["selection_rate"], resamples=100).get(
        "values", metric="selection_rate", group="Female"
    )
    assert rate.value == pytest.approx(0.38, abs=0.01)
    everybody = eh.Table(households, groups="sex", predictions="risk_logistic", percentile={"of": 90})
    assert everybody.prediction("risk_logistic").threshold == pytest.approx(np.percentile(households.risk_logistic, 90))
    households.to_csv(tmp_path / "households.csv", index=False)
    file = eh.Table(tmp_path / "households.csv", groups="sex", predictions="risk_logistic", percentile=percentile)
    assert file.prediction("risk_logistic").threshold == pytest.approx(np.percentile(women, 62))


def test_wrong_percentiles_say_what_to_do(households: pd.DataFrame) -> None:
    with pytest.raises(ConfigError, match="column 'sx', which is not in the data; did you mean 'sex'"):
        eh.Table(households, predictions="risk_logistic", percentile={"of": 62, "among": "sx", "value": "Female"})
    with pytest.raises(DataError, match="no score of the people with sex 'woman' is known"):
        eh.Table(households, predictions="risk_logistic", percentile={"of": 62, "among": "sex", "value": "woman"})
    with pytest.raises(ConfigError, match="needs both `among`"):
        eh.Table(households, predictions="risk_logistic", percentile={"of": 62, "among": "sex"})


def test_parity_by_effort_can_be_of_decisions(households: pd.DataFrame) -> None:
    table = eh.Table(households, groups="sex", predictions="risk_logistic", threshold=0.3)
    years = [f"income_{year}" for year in range(2019, 2023)]
    result = eh.effort(table, trajectory=years, unit=10_000, scale=200_000, width=1.0, parity_of="decisions")
    shares = (households.risk_logistic > 0.3).groupby(households.sex).mean()
    gap = result.get("gaps", metric="eagf", bin_low=0.0)
    assert gap.value == pytest.approx(shares.min() / shares.max())
    assert "share selected" in next(f.headline.text for f in result.findings if f.metric == "equal_effort")
    assert "effort.of_decisions" in {note.id for note in result.notes}
