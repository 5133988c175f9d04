"""Candidates: every rule makes one, searches keep to the training rows, and what is exported decides the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.improvability import TrainingRows
from evenhand.audits.improvability.splits import make_splits, rng_of
from evenhand.errors import ConfigError, EvenhandError
from evenhand.stats.improvability import select_top
from evenhand.stats.types import FloatArray

OPTIONS: dict[str, Any] = {
    "status_quo": "risk_score",
    "outcome": "illnesses",
    "utility": "calibration",
    "capacity": 0.1,
    "resamples": 500,
    "features": ["age", "sex", "illnesses_now", "medications", "emergency_visits", "cost"],
}
ONE, TWO = {"splits": 1}, {"splits": 2}


@pytest.fixture(scope="module")
def patients() -> pd.DataFrame:
    frame: pd.DataFrame = eh.datasets.make_patients(3_000, seed=2, backend="pandas")
    return frame


def make_table(data: Any, **roles: Any) -> eh.Table:
    return eh.Table(data, id="patient", groups="race", **roles)


def own_rule(rows: TrainingRows) -> Any:
    assert rows.features.shape == (len(rows.outcome), len(rows.names))
    assert set(np.unique(rows.status_quo)) == {0.0, 1.0}
    position = rows.names.index("illnesses_now")
    return lambda features: features[:, position]


def test_every_rule_makes_a_candidate(patients: pd.DataFrame) -> None:
    from sklearn.linear_model import Ridge

    candidates = {
        "gradient_boosting": {"settings": {"max_iter": 10}},
        "ridge": Ridge(),
        "own": own_rule,
        "sweep": {"directions": 600, "monotone": {"age": 1}, "excluded": ["cost"]},
        "best": {"family": ["linear", {"column": "need_score"}], "folds": 3},
    }
    result = eh.improvability(make_table(patients), candidates=candidates, test=ONE, **{**OPTIONS, "capacity": 0.2})
    about = {r.model: r for r in result.candidates}
    assert set(about) == set(candidates)
    assert all(r.selected == r.selected_reference == 200 and r.n == 1000 for r in about.values())
    assert about["own"].tied > about["own"].tied_selected > 0
    assert any(note.id == "improvability.ties" for note in result.notes)
    assert about["sweep"].found_by == "sweep"
    weights = {r.feature: r.value for r in result.coefficients if r.model == "sweep"}
    assert weights["cost"] == 0.0
    assert weights["age"] >= 0
    assert about["best"].what in ("linear", "column 'need_score', given")


def test_the_search_keeps_to_the_training_rows(patients: pd.DataFrame) -> None:
    """With outcomes of the test rows shuffled, the search must choose as before."""
    options = {**OPTIONS, "test": ONE, "capacity": 0.2}
    search = {"best": {"family": {"a": "need_score", "b": "risk_score", "c": "linear"}, "folds": 3}}
    first = eh.improvability(make_table(patients), candidates=search, **options)
    changed = patients.sort_values("patient").reset_index(drop=True)
    test = make_splits(len(changed), first.spec)[0].test
    changed.loc[test, "illnesses"] = np.random.default_rng(0).permutation(changed.loc[test, "illnesses"])
    second = eh.improvability(make_table(changed), candidates=search, **options)
    one, other = (found.evidence.trials["best"][0].search for found in (first, second))
    assert one is not None
    assert other is not None
    for goal, chosen in one.choice.items():
        np.testing.assert_array_equal(chosen, other.choice[goal])


def test_linear_coefficients_are_those_of_least_squares(patients: pd.DataFrame) -> None:
    result = eh.improvability(
        make_table(patients),
        candidates=["linear", "lasso"],
        test=ONE,
        **{**OPTIONS, "features": ["age", "medications"]},
    )
    ordered = patients.sort_values("patient").reset_index(drop=True)
    train = ordered.iloc[make_splits(len(ordered), result.spec)[0].train]
    design = np.column_stack([np.ones(len(train)), train[["age", "medications"]]])
    by_hand = np.linalg.lstsq(design, train.illnesses.to_numpy(float), rcond=None)[0]
    for name, tolerance in (("linear", 1e-6), ("lasso", 0.05)):  # a lasso of few features is near least squares
        found = [r.value for r in result.coefficients if r.model == name]
        np.testing.assert_allclose(found, by_hand, atol=tolerance)


@pytest.mark.slow
def test_a_binary_outcome_thresholded_and_reduced_by_fairlearn() -> None:
    rng = np.random.default_rng(0)
    n = 900
    group = rng.integers(0, 2, n)
    x = rng.standard_normal((n, 2)) + group[:, np.newaxis] * 0.3
    y = (x[:, 0] + rng.standard_normal(n) > 0).astype(int)
    data = {"g": np.where(group, "a", "b"), "y": y, "x0": x[:, 0], "x1": x[:, 1], "risk": 1 / (1 + np.exp(-x[:, 1]))}
    table = eh.Table(data, outcome="y", groups="g", predictions={"old": "risk"})
    result = eh.improvability(
        table,
        status_quo="old",
        features=["x0", "x1"],
        test=TWO,
        resamples=200,
        candidates={"logistic": {}, "reductions": {"slack": 0.05}, "milp": {"time_limit": 1, "directions": 500}},
    )
    assert result.candidates[0].selected_reference == int(
        (data["risk"][make_splits(n, result.spec)[0].test] > 0.5).sum()
    )
    solved = [r for r in result.candidates if r.model == "milp"]
    for record in solved:
        assert record.solver_status is not None
        assert record.solver_status.id in ("improvability.solver_optimal", "improvability.solver_stopped")
    assert "improvability.stopped" in {note.id for note in result.notes}
    assert {r.model for r in result.values} == {"status_quo", "logistic", "reductions", "milp"}


def test_the_status_quo_may_be_a_fitted_model() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x, n = rng.standard_normal((900, 2)), 900
    y = (x[:, 0] > 0).astype(int)
    data = {"id": np.arange(n), "g": np.where(np.arange(n) % 2, "a", "b"), "y": y, "x0": x[:, 0], "x1": x[:, 1]}
    model = LogisticRegression().fit(x, (x[:, 1] > 0).astype(int))
    table = eh.Table({**data, "old": model.predict(x)}, id="id", outcome="y", groups="g")
    options: dict[str, Any] = {
        "features": ["x0", "x1"],
        "candidates": "linear",
        "test": {"splits": 2},
        "resamples": 200,
    }
    by_model, by_column, by_function = (
        eh.improvability(table, status_quo=status_quo, **options) for status_quo in (model, "old", model.predict)
    )
    assert by_model.gaps == by_column.gaps == by_function.gaps
    with pytest.raises(EvenhandError, match="cannot score the features: X has 1 features"):
        eh.improvability(table, status_quo=model, **{**options, "features": ["x0"]})


def test_candidates_are_exported(patients: pd.DataFrame, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="exported models are run again")
    pytest.importorskip("skl2onnx", reason="models are converted to ONNX")
    skops = pytest.importorskip("skops.io", reason="exported models are read again")
    hostile = patients.assign(patient="=cmd|" + patients.patient.astype(str))
    candidates = {"linear": {}, "need_score": {}, "sweep": {"directions": 600}, "own": own_rule}
    result = eh.improvability(
        make_table(hostile), candidates=candidates, test={"splits": 2}, **{**OPTIONS, "capacity": 0.2}
    )
    written = {path.name for path in result.export(tmp_path / "out")}
    assert {"linear.json", "linear.skops", "linear.onnx", "linear-decisions.csv", "sweep.skops", "own.json"} <= written
    assert "own.skops" not in written
    about = json.loads((tmp_path / "out/linear.json").read_text(encoding="utf-8"))
    split = about["split"]
    tested = result.evidence.trials["linear"][split - 1]
    matrix = result.evidence.inputs.sample.matrix[tested.piece.test]
    for name in ("linear", "sweep"):
        one = result.evidence.trials[name][json.loads((tmp_path / f"out/{name}.json").read_text())["split"] - 1]
        matrix = result.evidence.inputs.sample.matrix[one.piece.test]
        pipeline = skops.load(tmp_path / f"out/{name}.skops", trusted=[])
        session = onnxruntime.InferenceSession(str(tmp_path / f"out/{name}.onnx"))
        scores: list[FloatArray] = [pipeline.predict(matrix), session.run(None, {"features": matrix})[0].ravel()]
        assert one.piece.made is not None
        for score in scores:
            again = select_top(score, 0.2, rng_of(0, "ties", name, one.piece.split)).selected
            assert (again == one.piece.made.decisions.values).mean() > 0.999
    table = pd.read_csv(tmp_path / "out/linear-decisions.csv")
    assert len(table) == 2 * 1000
    assert table.id.str.startswith("'=cmd|").all()
    assert table[table.split == 1].candidate.sum() == 200
    assert json.loads((tmp_path / "out/own.json").read_text())["files"][".onnx"].startswith("not written")
    with pytest.raises(ConfigError, match="there is no candidate 'lineal'; did you mean 'linear'"):
        result.export(tmp_path, "lineal")
    with pytest.raises(ConfigError, match="`split` must be from 1 to 2; got 3"):
        result.export(tmp_path, split=3)
