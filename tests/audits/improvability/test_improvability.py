"""The improvability audit: the test by hand, laws, rules, engines, and what a result says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.improvability import ImprovabilityResult, TrainingRows
from evenhand.audits.improvability.splits import make_splits, rng_of
from evenhand.core.sections import DisplayTable, Figure
from evenhand.errors import ConfigError, EvenhandError
from evenhand.stats.improvability import Utility, select_top
from evenhand.stats.types import FloatArray

FEATURES = ["age", "sex", "illnesses_now", "medications", "emergency_visits", "cost"]
OPTIONS: dict[str, Any] = {
    "status_quo": "risk_score",
    "outcome": "illnesses",
    "utility": "calibration",
    "capacity": 0.1,
    "splits": 3,
    "resamples": 500,
    "features": FEATURES,
}


@pytest.fixture(scope="module")
def patients() -> pd.DataFrame:
    frame: pd.DataFrame = eh.datasets.make_patients(3_000, seed=2, backend="pandas")
    return frame


def make_table(data: Any, **roles: Any) -> eh.Table:
    return eh.Table(data, id="patient", groups="race", **roles)


@pytest.fixture(scope="module")
def result(patients: pd.DataFrame) -> ImprovabilityResult:
    return eh.improvability(make_table(patients), candidates=["linear", "need_score"], delta=[0, 0.3], **OPTIONS)


def test_a_split_by_hand(patients: pd.DataFrame, result: ImprovabilityResult) -> None:
    """Values of table 1, from the rows of the second split."""
    ordered = patients.assign(text=patients.patient.astype(str)).sort_values("patient")
    ordered = ordered.iloc[np.argsort(ordered["patient"].to_numpy(), kind="stable")]
    test = make_splits(len(ordered), result.spec)[1].test
    rows = ordered.iloc[test]
    for column, which in (("risk_score", "status_quo"), ("need_score", "candidate_value")):
        chosen = rows.nlargest(100, column)
        means = chosen.groupby("race").illnesses.mean()
        for race, mean in means.items():
            record = next(r for r in result.splits if (r.candidate, r.split, r.group) == ("need_score", 2, race))
            assert getattr(record, which) == pytest.approx(mean)
        gap = next(
            r
            for r in result.splits
            if (r.candidate, r.split, r.component, r.test) == ("need_score", 2, "fairness", "signed")
        )
        assert getattr(gap, which) == pytest.approx(abs(means["Black"] - means["White"]))


def test_the_bootstrap_by_hand(patients: pd.DataFrame, result: ImprovabilityResult) -> None:
    """The p-value of accuracy, from a plain loop over resampled rows with decisions held fixed."""
    ordered = patients.sort_values("patient").reset_index(drop=True)
    test = make_splits(len(ordered), result.spec)[0].test
    rows = ordered.iloc[test].reset_index(drop=True)
    rng = np.random.default_rng(5)
    old = select_top(rows.risk_score, 0.1, rng).selected
    new = select_top(rows.need_score, 0.1, rng).selected
    white, y = (rows.race == "White").to_numpy(), rows.illnesses.to_numpy()

    def gain(at: Any) -> float:
        return float(y[at][new[at] & white[at]].mean() - y[at][old[at] & white[at]].mean())

    estimate = gain(np.arange(len(y)))
    draws = np.array([gain(rng.integers(len(y), size=len(y))) for _ in range(1_000)])
    p = (1 + np.count_nonzero(draws - estimate >= estimate)) / 1_001
    record = next(r for r in result.splits if (r.candidate, r.split, r.group) == ("need_score", 1, "White"))
    assert record.value == pytest.approx(estimate)
    assert record.p_value == pytest.approx(p, abs=0.03)


def test_decisions_follow_from_the_splits(result: ImprovabilityResult) -> None:
    for decision in result.decision:
        if decision.delta > 0 or decision.target != "fairness":
            continue
        p = [
            r.p_value
            for r in result.splits
            if (r.candidate, r.component, r.test) == (decision.candidate, "all", decision.test)
        ]
        assert decision.p_median == pytest.approx(np.median(p))
        assert decision.value == pytest.approx(min(1, 2 * np.median(p)))
        assert decision.rejected == (np.median(p) < 0.05)
    for record in (r for r in result.splits if r.component == "all"):
        own = [
            r
            for r in result.splits
            if (r.candidate, r.split) == (record.candidate, record.split)
            and r.test in (None, record.test)
            and r.component != "all"
        ]
        assert record.p_value == max(r.p_value for r in own)


def test_all_targets_are_one_hypothesis_at_a_margin_of_0(result: ImprovabilityResult) -> None:
    for candidate in ("linear", "need_score"):
        for test in ("signed", "published"):
            own = {d.value for d in result.decision if (d.candidate, d.test, d.delta) == (candidate, test, 0.0)}
            assert len(own) == 1


@pytest.fixture(scope="module")
def strong() -> ImprovabilityResult:
    """A candidate that is right far more often than the status quo, and equally so for both groups."""
    return eh.improvability(
        right_or_wrong(), status_quo="old", candidates="new", splits=3, resamples=500, delta=[0, 0.2]
    )


def right_or_wrong(n: int = 3_000) -> eh.Table:
    rng = np.random.default_rng(0)
    group, y = np.arange(n) % 2, rng.integers(0, 2, n)
    old = np.where(rng.random(n) < 0.55 + 0.3 * group, y, 1 - y)
    new = np.where(rng.random(n) < 0.93, y, 1 - y)
    data = {"g": np.where(group, "b", "a"), "y": y, "old": old, "new": new}
    return eh.Table(data, outcome="y", groups="g")


def test_a_better_candidate_is_found(strong: ImprovabilityResult) -> None:
    assert [d.candidate for d in strong.established] == ["new"]
    assert not strong.reasons
    largest = {(d.target, d.group): d.value for d in strong.deltas if d.test == "signed"}
    assert 0.5 < (largest["fairness", None] or 0) < 1
    assert (largest["group_accuracy", "a"] or 0) > (largest["group_accuracy", "b"] or 0) > 0
    assert largest["joint_accuracy", None] == largest["group_accuracy", "b"]
    binding = next(d.binding for d in strong.deltas if d.target == "joint_accuracy" and d.test == "signed")
    assert binding == "accuracy of b"
    assert strong.findings[0].claim.startswith("new is fairer than the status quo without being less accurate")


def test_signed_p_values_rise_with_the_margin_where_they_matter(strong: ImprovabilityResult) -> None:
    for target in ("fairness", "joint_accuracy"):
        own = [r.p_median for r in strong.curves if (r.test, r.target) == ("signed", target)]
        assert len(own) == 100
        low = [p for p in own if p < 0.5]
        assert low == sorted(low)
        assert own[: len(low)] == low


def test_the_largest_margin_is_the_end_of_the_run(strong: ImprovabilityResult) -> None:
    assert [d.value is not None for d in strong.deltas if d.target == "fairness"] == [True, True]
    for d in (d for d in strong.deltas if d.target == "fairness"):
        curve = [r for r in strong.curves if (r.test, r.target) == (d.test, "fairness")]
        assert all(r.rejected for r in curve if r.delta <= (d.value or 0))
        beyond = [r for r in curve if r.delta > (d.value or 0)]
        assert not beyond or not beyond[0].rejected or beyond[0].delta - (d.value or 0) < 0.01


def test_a_status_quo_that_is_its_own_candidate_is_never_improved() -> None:
    result = eh.improvability(right_or_wrong(), status_quo="old", candidates="old", splits=3, resamples=300)
    assert not result.rejections
    assert {r.value for r in result.splits if r.component != "all"} == {0.0}
    assert {r.p_value for r in result.splits if r.component == "accuracy"} == {1.0}


@pytest.mark.parametrize("kind", ["shuffled", "polars", "pyarrow", "duckdb", "dict", "parallel"])
def test_the_same_bytes_from_every_engine_order_and_number_of_processes(
    patients: pd.DataFrame, result: ImprovabilityResult, kind: str, tmp_path: Path
) -> None:
    import duckdb
    import polars as pl
    import pyarrow as pa

    made: dict[str, Any] = {
        "shuffled": lambda: patients.sample(frac=1, random_state=0),
        "polars": lambda: pl.from_pandas(patients),
        "pyarrow": lambda: pa.Table.from_pandas(patients),
        "duckdb": lambda: duckdb.from_df(patients),
        "dict": lambda: patients.to_dict("list"),
        "parallel": lambda: patients,
    }
    jobs = 2 if kind == "parallel" else None
    other = eh.improvability(
        make_table(made[kind]()), candidates=["linear", "need_score"], delta=[0, 0.3], jobs=jobs, **OPTIONS
    )
    assert json.dumps(other.to_dict()) == json.dumps(result.to_dict())


def test_without_an_id_the_order_of_rows_does_not_matter(patients: pd.DataFrame) -> None:
    found = [
        eh.improvability(
            eh.Table(data, groups="race"), candidates="need_score", **{**OPTIONS, "features": []}
        ).to_dict()
        for data in (patients, patients.sample(frac=1, random_state=1))
    ]
    assert found[0] == found[1]


def test_adding_a_candidate_changes_no_other(patients: pd.DataFrame, result: ImprovabilityResult) -> None:
    alone = eh.improvability(make_table(patients), candidates="need_score", delta=[0, 0.3], **OPTIONS)
    assert [r for r in result.splits if r.candidate == "need_score"] == list(alone.splits)


def test_weights_of_one_change_nothing_and_equal_repeated_rows_in_value() -> None:
    n = 600
    rng = np.random.default_rng(1)
    y, old, new = rng.integers(0, 2, (3, n))
    data = {"g": np.where(np.arange(n) % 2, "a", "b"), "y": y, "old": old, "new": y | new, "w": np.ones(n)}
    plain, weighted = (
        eh.improvability(
            eh.Table(data, outcome="y", groups="g", weight=weight),
            status_quo="old",
            candidates="new",
            splits=2,
            resamples=200,
        )
        for weight in (None, "w")
    )
    assert [r.value for r in plain.values] == [r.value for r in weighted.values]
    given: dict[str, Any] = {
        "status_quo": "old",
        "candidates": "new",
        "splits": 1,
        "train": 0,
        "worst_pair": ["a", "b"],
        "resamples": 200,
    }
    double = {name: np.repeat(values, 2) for name, values in data.items()}
    repeated = eh.improvability(eh.Table(double, outcome="y", groups="g"), **given)
    heavy = eh.improvability(eh.Table({**data, "w": np.full(n, 2.0)}, outcome="y", groups="g", weight="w"), **given)
    assert [r.value for r in repeated.values] == pytest.approx([r.value for r in heavy.values])


def test_three_groups_and_several_utilities() -> None:
    n = 3_000
    rng = np.random.default_rng(3)
    group, y = rng.integers(0, 3, n), rng.integers(0, 2, n)
    old = np.where(rng.random(n) < 0.5 + 0.15 * group, y, 1 - y)
    new = np.where(rng.random(n) < 0.93, y, 1 - y)
    table = eh.Table({"g": np.array(list("abc"))[group], "y": y, "old": old, "new": new}, outcome="y", groups="g")
    result = eh.improvability(
        table,
        status_quo="old",
        candidates="new",
        splits=2,
        resamples=300,
        fairness_utility=["classification", "false_positive_rate"],
    )
    assert {r.test for r in result.splits if r.component == "fairness"} == {"signed"}
    assert {r.utility for r in result.splits if r.component == "fairness"} == {"classification", "false_positive_rate"}
    assert {r.group for r in result.splits if r.component == "accuracy"} == {"a", "b", "c"}
    assert result.established
    everyone = eh.improvability(
        table, status_quo="old", candidates="new", splits=2, resamples=300, accuracy_of="everyone"
    )
    assert {r.group for r in everyone.splits if r.component == "accuracy"} == {"(everyone)"}
    assert {d.target for d in everyone.decision} == {"fairness", "joint_accuracy"}
    with pytest.raises(ConfigError, match="compares two groups; 'g' has 3"):
        eh.improvability(table, status_quo="old", candidates="new", fairness_test="published")


def test_an_own_utility_with_negative_values_has_no_share() -> None:
    n = 800
    rng = np.random.default_rng(3)
    y, old, new = rng.integers(0, 2, (3, n))
    data = {"g": np.where(np.arange(n) % 2, "a", "b"), "y": y, "old": old, "new": y | new}
    loss = Utility("loss", lambda y, d: -1.0 * (y != d), lambda y, d: np.ones_like(d))
    result = eh.improvability(
        eh.Table(data, outcome="y", groups="g"),
        status_quo="old",
        candidates="new",
        utility=loss,
        splits=2,
        resamples=200,
        delta=[0, 0.1],
    )
    joint = [d for d in result.decision if d.target == "joint_accuracy" and d.delta > 0]
    assert all(d.value is None and "negative" in d.status for d in joint)
    assert all(d.value is None for d in result.deltas if d.target == "joint_accuracy")


def test_prices_are_decisions() -> None:
    n = 1_000
    rng = np.random.default_rng(4)
    worth = rng.uniform(5, 15, n)
    data = {
        "g": np.where(np.arange(n) % 2, "a", "b"),
        "worth": worth,
        "price": np.full(n, 9.0) + np.arange(n) % 2,
        "offer": np.full(n, 7.5),
    }
    result = eh.improvability(
        eh.Table(data, groups="g"),
        status_quo={"column": "price", "kind": "decision"},
        outcome="worth",
        utility="profit",
        candidates={"lower": lambda rows: lambda features: np.full(len(features), 7.5)},
        features=["price"],
        splits=2,
        resamples=200,
    )
    paid = np.mean(np.where(worth >= 7.5, 7.5, 0.0))
    own = next(r.value for r in result.values if r.candidate == "lower" and r.group == "(everyone)")
    assert own == pytest.approx(paid, rel=0.1)


def test_exchangeable_rejects_whenever_the_median_does(patients: pd.DataFrame, result: ImprovabilityResult) -> None:
    other = eh.improvability(
        make_table(patients), candidates=["linear", "need_score"], delta=[0, 0.3], combine="exchangeable", **OPTIONS
    )
    for median, exchangeable in zip(result.decision, other.decision, strict=True):
        assert exchangeable.rejected or not median.rejected
        assert (exchangeable.value or 0) <= (median.value or 0)


def own_rule(rows: TrainingRows) -> Any:
    assert rows.features.shape == (len(rows.outcome), len(rows.names))
    assert set(np.unique(rows.status_quo)) == {0.0, 1.0}
    place = rows.names.index("illnesses_now")
    return lambda features: features[:, place]


def test_every_rule_makes_a_candidate(patients: pd.DataFrame) -> None:
    from sklearn.linear_model import Ridge

    candidates = {
        "gradient_boosting": {"settings": {"max_iter": 10}},
        "ridge": Ridge(),
        "own": own_rule,
        "sweep": {"directions": 600, "monotone": {"age": 1}, "excluded": ["cost"]},
        "best": {"family": ["linear", {"column": "need_score"}], "folds": 3},
    }
    result = eh.improvability(make_table(patients), candidates=candidates, **{**OPTIONS, "splits": 1, "capacity": 0.2})
    about = {r.candidate: r for r in result.candidates}
    assert set(about) == set(candidates)
    assert all(r.selected == r.selected_status_quo == 200 and r.rows == 1000 for r in about.values())
    assert about["own"].tied > about["own"].tied_selected > 0
    assert any(note.startswith("Rows with the same score at the cut") for note in result.notes)
    assert about["sweep"].found_by == "sweep"
    weights = {r.feature: r.value for r in result.coefficients if r.candidate == "sweep"}
    assert weights["cost"] == 0.0
    assert weights["age"] >= 0
    assert about["best"].what in ("linear", "column 'need_score', given")


def test_the_search_keeps_to_the_training_rows(patients: pd.DataFrame) -> None:
    """With outcomes of the test rows shuffled, the search must choose as before."""
    options = {**OPTIONS, "splits": 1, "capacity": 0.2}
    search = {"best": {"family": {"a": "need_score", "b": "risk_score", "c": "linear"}, "folds": 3}}
    first = eh.improvability(make_table(patients), candidates=search, **options)
    changed = patients.sort_values("patient").reset_index(drop=True)
    test = make_splits(len(changed), first.spec)[0].test
    changed.loc[test, "illnesses"] = np.random.default_rng(0).permutation(changed.loc[test, "illnesses"])
    second = eh.improvability(make_table(changed), candidates=search, **options)
    for goal, chosen in first.tests["best"][0].choice.items():
        np.testing.assert_array_equal(chosen, second.tests["best"][0].choice[goal])


def test_linear_coefficients_are_those_of_least_squares(patients: pd.DataFrame) -> None:
    result = eh.improvability(
        make_table(patients),
        candidates=["linear", "lasso"],
        **{**OPTIONS, "splits": 1, "features": ["age", "medications"]},
    )
    ordered = patients.sort_values("patient").reset_index(drop=True)
    train = ordered.iloc[make_splits(len(ordered), result.spec)[0].train]
    design = np.column_stack([np.ones(len(train)), train[["age", "medications"]]])
    by_hand = np.linalg.lstsq(design, train.illnesses.to_numpy(float), rcond=None)[0]
    for name, tolerance in (("linear", 1e-8), ("lasso", 0.05)):  # a lasso of few features is near least squares
        found = [r.value for r in result.coefficients if r.candidate == name]
        np.testing.assert_allclose(found, by_hand, atol=tolerance)


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
        splits=2,
        resamples=200,
        candidates={"logistic": {}, "reductions": {"slack": 0.05}, "milp": {"time_limit": 1, "directions": 500}},
    )
    assert result.candidates[0].selected_status_quo == int(
        (data["risk"][make_splits(n, result.spec)[0].test] > 0.5).sum()
    )
    solved = [r for r in result.candidates if r.candidate == "milp"]
    assert all(r.solver_status for r in solved)
    assert any("stopped by its time limit" in note for note in result.notes)
    assert {r.candidate for r in result.values} == {None, "logistic", "reductions", "milp"}


def test_the_status_quo_may_be_a_fitted_model() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x, n = rng.standard_normal((900, 2)), 900
    y = (x[:, 0] > 0).astype(int)
    data = {"id": np.arange(n), "g": np.where(np.arange(n) % 2, "a", "b"), "y": y, "x0": x[:, 0], "x1": x[:, 1]}
    model = LogisticRegression().fit(x, (x[:, 1] > 0).astype(int))
    table = eh.Table({**data, "old": model.predict(x)}, id="id", outcome="y", groups="g")
    options: dict[str, Any] = {"features": ["x0", "x1"], "candidates": "linear", "splits": 2, "resamples": 200}
    by_model, by_column, by_function = (
        eh.improvability(table, status_quo=status_quo, **options) for status_quo in (model, "old", model.predict)
    )
    assert by_model.splits == by_column.splits == by_function.splits
    with pytest.raises(EvenhandError, match="cannot score the features: X has 1 features"):
        eh.improvability(table, status_quo=model, **{**options, "features": ["x0"]})


def test_the_reason_is_told_when_the_test_does_not_reject(result: ImprovabilityResult) -> None:
    assert {r.candidate for r in result.reasons} == {"linear", "need_score"} - {d.candidate for d in result.rejections}
    same = eh.improvability(right_or_wrong(9_000), status_quo="old", candidates="old", splits=1, resamples=300)
    assert same.reasons[0].reason == "not_found"
    assert (same.reasons[0].power_planned or 0) > 0.8
    few = next(r for r in result.reasons if r.candidate == "need_score")
    assert few.reason in ("too_few_rows", "unclear")
    assert next(f.claim for f in result.findings if f.model == "need_score").endswith(few.sentence)


def test_thresholds_become_verdicts(strong: ImprovabilityResult) -> None:
    def verdict(limit: float, candidate: str = "new") -> str:
        limits = [{"audit": "improvability", "metric": "improvable_fairness", "max": limit}]
        found = eh.improvability(
            right_or_wrong(), status_quo="old", candidates=candidate, splits=3, resamples=500, thresholds=limits
        )
        return found.findings[0].verdict

    assert verdict(0.0) == "does_not_meet"
    assert verdict(0.99) == "insufficient_evidence"  # a bound from below never shows that the limit is met
    assert verdict(0.0, "old") == "insufficient_evidence"


def test_the_section_has_the_exhibit(result: ImprovabilityResult, strong: ImprovabilityResult) -> None:
    parts = {part.caption if isinstance(part, DisplayTable) else part.title: part for part in strong.section().parts}
    process = parts["The three-part process of a disparate-impact case"]
    assert isinstance(process, DisplayTable)
    assert process.rows[2][1].startswith("Yes, by these measures: new.")
    assert isinstance(parts["Values by group"], Figure)
    assert "Why no improvement is shown" not in parts
    assert "Largest margins: the end of the unbroken run of rejections from 0, a lower bound" in parts
    assert "Why no improvement is shown" in {p.caption for p in result.section().parts if isinstance(p, DisplayTable)}
    page = eh.audit(
        right_or_wrong(), improvability={"status_quo": "old", "candidates": "new", "splits": 2, "resamples": 200}
    ).to_html()
    assert "What this establishes" in page
    assert strong.plot().to_dict()


def test_candidates_are_exported(patients: pd.DataFrame, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="exported models are run again")
    pytest.importorskip("skl2onnx", reason="models are converted to ONNX")
    skops = pytest.importorskip("skops.io", reason="exported models are read again")
    hostile = patients.assign(patient="=cmd|" + patients.patient.astype(str))
    candidates = {"linear": {}, "need_score": {}, "sweep": {"directions": 600}, "own": own_rule}
    result = eh.improvability(make_table(hostile), candidates=candidates, **{**OPTIONS, "splits": 2, "capacity": 0.2})
    written = {path.name for path in result.export(tmp_path / "out")}
    assert {"linear.json", "linear.skops", "linear.onnx", "linear-decisions.csv", "sweep.skops", "own.json"} <= written
    assert "own.skops" not in written
    about = json.loads((tmp_path / "out/linear.json").read_text(encoding="utf-8"))
    split = about["split"]
    tested = result.tests["linear"][split - 1]
    matrix = result.setting.sample.matrix[tested.test]
    for name in ("linear", "sweep"):
        one = result.tests[name][json.loads((tmp_path / f"out/{name}.json").read_text())["split"] - 1]
        matrix = result.setting.sample.matrix[one.test]
        pipeline = skops.load(tmp_path / f"out/{name}.skops", trusted=[])
        session = onnxruntime.InferenceSession(str(tmp_path / f"out/{name}.onnx"))
        scores: list[FloatArray] = [pipeline.predict(matrix), session.run(None, {"features": matrix})[0].ravel()]
        assert one.made is not None
        for score in scores:
            again = select_top(score, 0.2, rng_of(0, "ties", name, one.split)).selected
            assert (again == one.made.decided.decisions).mean() > 0.999
    table = pd.read_csv(tmp_path / "out/linear-decisions.csv")
    assert len(table) == 2 * 1000
    assert table.id.str.startswith("'=cmd|").all()
    assert table[table.split == 1].candidate.sum() == 200
    assert json.loads((tmp_path / "out/own.json").read_text())["files"][".onnx"].startswith("not written")
    with pytest.raises(ConfigError, match="there is no candidate 'lineal'; did you mean 'linear'"):
        result.export(tmp_path, "lineal")
    with pytest.raises(ConfigError, match="`split` must be from 1 to 2; got 3"):
        result.export(tmp_path, split=3)
