"""The improvability audit: the test by hand, laws, rules, engines, and what a result says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.improvability import ImprovabilityResult
from evenhand.audits.improvability.result import ImprovabilityGap
from evenhand.audits.improvability.splits import make_splits
from evenhand.core.display import DisplayTable, Figure
from evenhand.errors import ConfigError
from evenhand.stats.improvability import Utility, select_top

FEATURES = ["age", "sex", "illnesses_now", "medications", "emergency_visits", "cost"]
OPTIONS: dict[str, Any] = {
    "status_quo": "risk_score",
    "outcome": "illnesses",
    "utility": "calibration",
    "capacity": 0.1,
    "resamples": 500,
    "features": FEATURES,
}
THREE = {"splits": 3, "margins": [0, 0.3]}
ONE = {"splits": 1}


@pytest.fixture(scope="module")
def patients() -> pd.DataFrame:
    frame: pd.DataFrame = eh.datasets.make_patients(3_000, seed=2, backend="pandas")
    return frame


def make_table(data: Any, **roles: Any) -> eh.Table:
    return eh.Table(data, id="patient", groups="race", **roles)


@pytest.fixture(scope="module")
def result(patients: pd.DataFrame) -> ImprovabilityResult:
    return eh.improvability(make_table(patients), candidates=["linear", "need_score"], test=THREE, **OPTIONS)


def test_a_split_by_hand(patients: pd.DataFrame, result: ImprovabilityResult) -> None:
    """Values of table 1, from the rows of the second split."""
    ordered = patients.assign(text=patients.patient.astype(str)).sort_values("patient")
    ordered = ordered.iloc[np.argsort(ordered["patient"].to_numpy(), kind="stable")]
    test = make_splits(len(ordered), result.spec)[1].test
    rows = ordered.iloc[test]
    for column, which in (("risk_score", "reference_value"), ("need_score", "model_value")):
        chosen = rows.nlargest(100, column)
        means = chosen.groupby("race").illnesses.mean()
        for race, mean in means.items():
            record = next(r for r in result.gaps if (r.model, r.split, r.group) == ("need_score", 2, race))
            assert getattr(record, which) == pytest.approx(mean)
        gap = next(
            r for r in result.gaps if (r.model, r.split, r.component, r.test) == ("need_score", 2, "fairness", "signed")
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

    def gain(rows: Any) -> float:
        return float(y[rows][new[rows] & white[rows]].mean() - y[rows][old[rows] & white[rows]].mean())

    estimate = gain(np.arange(len(y)))
    draws = np.array([gain(rng.integers(len(y), size=len(y))) for _ in range(1_000)])
    p = (1 + np.count_nonzero(draws - estimate >= estimate)) / 1_001
    record = next(r for r in result.gaps if (r.model, r.split, r.group) == ("need_score", 1, "White"))
    assert record.value == pytest.approx(estimate)
    assert record.p_value == pytest.approx(p, abs=0.03)


def test_decisions_follow_from_the_splits(result: ImprovabilityResult) -> None:
    for decision in result.rows("decisions", metric="improvable_fairness", margin=0.0):
        splits = result.rows("gaps", model=decision.model, component="all", test=decision.test)
        p = [gap.p_value for gap in splits]
        assert decision.p_median == pytest.approx(np.median(p))
        assert decision.p_value == pytest.approx(min(1, 2 * min(p[0], min(p[:2]), sorted(p)[1])))
        assert decision.rejected == (decision.p_value <= 0.1)
        assert decision.rejected_by_median == (np.median(p) < 0.05)
    for whole in result.rows("gaps", component="all"):
        gaps = result.rows("gaps", model=whole.model, split=whole.split)
        components = [gap for gap in gaps if gap.component != "all" and gap.test in (None, whole.test)]
        assert whole.p_value == max(gap.p_value for gap in components)


def test_all_targets_are_one_hypothesis_at_a_margin_of_0(result: ImprovabilityResult) -> None:
    for candidate in ("linear", "need_score"):
        for test in ("signed", "published"):
            own = {d.p_value for d in result.decisions if (d.model, d.test, d.margin) == (candidate, test, 0.0)}
            assert len(own) == 1


@pytest.fixture(scope="module")
def strong() -> ImprovabilityResult:
    """A candidate that is right far more often than the status quo, and equally so for both groups."""
    return eh.improvability(
        right_or_wrong(), status_quo="old", candidates="new", resamples=500, test={"splits": 3, "margins": [0, 0.2]}
    )


def right_or_wrong(n: int = 3_000) -> eh.Table:
    rng = np.random.default_rng(0)
    group, y = np.arange(n) % 2, rng.integers(0, 2, n)
    old = np.where(rng.random(n) < 0.55 + 0.3 * group, y, 1 - y)
    new = np.where(rng.random(n) < 0.93, y, 1 - y)
    data = {"g": np.where(group, "b", "a"), "y": y, "old": old, "new": new}
    return eh.Table(data, outcome="y", groups="g")


def test_a_better_candidate_is_found(strong: ImprovabilityResult) -> None:
    assert [d.model for d in strong.established] == ["new"]
    assert not strong.reasons
    largest = {(d.metric, d.group): d.value for d in strong.rows("margins", test="signed")}
    assert 0.5 < (largest["improvable_fairness", "(overall)"] or 0) < 1
    assert (largest["improvable_accuracy", "a"] or 0) > (largest["improvable_accuracy", "b"] or 0) > 0
    assert largest["improvable_accuracy", "(overall)"] == largest["improvable_accuracy", "b"]
    joint = strong.get("margins", metric="improvable_accuracy", group="(overall)", test="signed")
    assert joint.binding == "accuracy of b"
    assert strong.findings[0].headline.text.startswith("new is fairer than the status quo without being less accurate")


def test_signed_p_values_rise_with_the_margin_where_they_matter(strong: ImprovabilityResult) -> None:
    for metric in ("improvable_fairness", "improvable_accuracy"):
        own = [r.p_median for r in strong.rows("curves", test="signed", metric=metric, group="(overall)")]
        assert len(own) == 100
        low = [p for p in own if p < 0.5]
        assert low == sorted(low)
        assert own[: len(low)] == low


def test_the_largest_margin_is_the_end_of_the_run(strong: ImprovabilityResult) -> None:
    assert [d.value is not None for d in strong.rows("margins", metric="improvable_fairness")] == [True, True]
    for d in strong.rows("margins", metric="improvable_fairness"):
        curve = strong.rows("curves", test=d.test, metric=d.metric)
        assert all(r.rejected for r in curve if r.margin <= (d.value or 0))
        beyond = [r for r in curve if r.margin > (d.value or 0)]
        assert not beyond or not beyond[0].rejected or beyond[0].margin - (d.value or 0) < 0.01


def test_a_status_quo_that_is_its_own_candidate_is_never_improved() -> None:
    result = eh.improvability(right_or_wrong(), status_quo="old", candidates="old", test={"splits": 3}, resamples=300)
    assert not result.rejections
    assert {r.value for r in result.gaps if r.component != "all"} == {0.0}
    assert {r.p_value for r in result.gaps if r.component == "accuracy"} == {1.0}


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
        make_table(made[kind]()), candidates=["linear", "need_score"], test=THREE, jobs=jobs, **OPTIONS
    )
    assert json.dumps(other.to_dict()) == json.dumps(result.to_dict())


def test_without_an_id_the_order_of_rows_does_not_matter(patients: pd.DataFrame) -> None:
    found = [
        eh.improvability(
            eh.Table(data, groups="race"), candidates="need_score", test=THREE, **{**OPTIONS, "features": []}
        ).to_dict()
        for data in (patients, patients.sample(frac=1, random_state=1))
    ]
    assert found[0] == found[1]


def test_adding_a_candidate_changes_no_other(patients: pd.DataFrame, result: ImprovabilityResult) -> None:
    alone = eh.improvability(make_table(patients), candidates="need_score", test=THREE, **OPTIONS)

    def own(records: Sequence[ImprovabilityGap]) -> list[ImprovabilityGap]:
        """All but what is adjusted for every row of the run."""
        return [replace(r, p_adjusted=None, worse_off=None) for r in records if r.model == "need_score"]

    assert own(result.gaps) == own(alone.gaps)


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
            test={"splits": 2},
            resamples=200,
        )
        for weight in (None, "w")
    )
    assert [r.value for r in plain.values] == [r.value for r in weighted.values]
    given: dict[str, Any] = {
        "status_quo": "old",
        "candidates": "new",
        "test": {"worst_pair": ["a", "b"]},
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
        test={"splits": 2},
        resamples=300,
        fairness_utility=["classification", "false_positive_rate"],
    )
    assert {r.test for r in result.gaps if r.component == "fairness"} == {"signed"}
    assert {r.metric for r in result.gaps if r.component == "fairness"} == {"classification", "false_positive_rate"}
    assert {r.group for r in result.gaps if r.component == "accuracy"} == {"a", "b", "c"}
    assert result.established
    everyone = eh.improvability(
        table, status_quo="old", candidates="new", resamples=300, test={"splits": 2, "accuracy_of": "everyone"}
    )
    assert {r.group for r in everyone.gaps if r.component == "accuracy"} == {"(overall)"}
    assert {(d.metric, d.group) for d in everyone.decisions} == {
        ("improvable_fairness", "(overall)"),
        ("improvable_accuracy", "(overall)"),
    }
    with pytest.raises(ConfigError, match="compares two groups; 'g' has 3"):
        eh.improvability(table, status_quo="old", candidates="new", test={"fairness": "published"})


def test_an_own_utility_with_negative_values_has_no_share() -> None:
    n = 800
    rng = np.random.default_rng(3)
    y, old, new = rng.integers(0, 2, (3, n))
    data = {"g": np.where(np.arange(n) % 2, "a", "b"), "y": y, "old": old, "new": y | new}
    loss = Utility(name="loss", u=lambda y, d: -1.0 * (y != d), w=lambda y, d: np.ones_like(d))
    result = eh.improvability(
        eh.Table(data, outcome="y", groups="g"),
        status_quo="old",
        candidates="new",
        utility=loss,
        test={"splits": 2, "margins": [0, 0.1]},
        resamples=200,
    )
    joint = [d for d in result.rows("decisions", metric="improvable_accuracy", group="(overall)") if d.margin > 0]
    assert joint
    assert all(d.p_value is None and "negative" in d.status.text for d in joint)
    assert all(d.value is None for d in result.rows("margins", metric="improvable_accuracy"))


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
        test={"splits": 2},
        resamples=200,
    )
    paid = np.mean(np.where(worth >= 7.5, 7.5, 0.0))
    own = next(r.value for r in result.values if r.model == "lower" and r.group == "(overall)")
    assert own == pytest.approx(paid, rel=0.1)


def test_exchangeable_rejects_whenever_the_median_does(patients: pd.DataFrame, result: ImprovabilityResult) -> None:
    other = eh.improvability(
        make_table(patients), candidates=["linear", "need_score"], test={**THREE, "combine": "exchangeable"}, **OPTIONS
    )
    for median, exchangeable in zip(result.decisions, other.decisions, strict=True):
        assert exchangeable.rejected or not median.rejected
        assert (exchangeable.p_value or 0) <= (median.p_value or 0)


def test_the_reason_is_told_when_the_test_does_not_reject(result: ImprovabilityResult) -> None:
    assert {r.model for r in result.reasons} == {"linear", "need_score"} - {d.model for d in result.rejections}
    same = eh.improvability(right_or_wrong(9_000), status_quo="old", candidates="old", test=ONE, resamples=300)
    assert same.reasons[0].reason == "unchanged"
    assert same.decisions[0].status.text.startswith("nothing to compare")
    assert any("decides every row as the status quo does" in note.text for note in same.notes)
    assert (same.reasons[0].power_planned or 0) > 0.8
    few = next(r for r in result.reasons if r.model == "need_score")
    assert few.reason in ("too_few_rows", "unclear")
    assert str(next(f.reason for f in result.findings if f.model == "need_score")) == few.sentence.text


def test_thresholds_become_verdicts(strong: ImprovabilityResult) -> None:
    def verdict(limit: float, candidate: str = "new") -> str:
        limits = [{"audit": "improvability", "metric": "improvable_fairness", "max": limit}]
        found = eh.improvability(
            right_or_wrong(),
            status_quo="old",
            candidates=candidate,
            test={"splits": 3},
            resamples=500,
            thresholds=limits,
        )
        return found.findings[0].verdict

    assert verdict(0.0) == "does_not_meet"
    assert verdict(0.99) == "insufficient_evidence"  # a bound from below never shows that the limit is met
    assert verdict(0.0, "old") == "insufficient_evidence"


def test_the_section_has_the_exhibit(result: ImprovabilityResult, strong: ImprovabilityResult) -> None:
    parts = {part.caption if isinstance(part, DisplayTable) else part.title: part for part in strong.section().parts}
    process = parts["The three-part process of a disparate-impact case"]
    assert isinstance(process, DisplayTable)
    assert str(process.rows[2][1]).startswith("Yes, by these measures: new.")
    assert isinstance(parts["Values by group"], Figure)
    assert "Why no improvement is shown" not in parts
    assert "Largest margins: the end of the unbroken run of rejections from 0, a lower bound" in parts
    assert "Why no improvement is shown" in {p.caption for p in result.section().parts if isinstance(p, DisplayTable)}
    page = eh.audit(
        right_or_wrong(),
        improvability={"status_quo": "old", "candidates": "new", "test": {"splits": 2}, "resamples": 200},
    ).to_html()
    assert "What this establishes" in page
    assert strong.plot().to_svg(name="x")
