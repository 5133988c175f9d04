"""A whole analysis against other libraries, from the tidy table on: scipy, statsmodels, and the truth serum by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import evenhand as eh
from evenhand.study import Responses, StudyResult

PAIRS = [("income", "overall"), ("income", "output"), ("arrests", "overall"), ("arrests", "output")]


@pytest.fixture(scope="module")
def responses() -> Responses:
    return eh.study.simulate_responses(50, pool=4, seed=11)


@pytest.fixture(scope="module")
def result(responses: Responses) -> StudyResult:
    return eh.study.analyze(responses, exclusions={"failed_checks": None}, resamples=4_000)


@pytest.fixture(scope="module")
def frame(responses: Responses) -> pd.DataFrame:
    """The answers as another analyst would hold them."""
    table: pd.DataFrame = responses.to_frame("pandas")
    return table.assign(output=(table["risk"] - table["risk_reference"]).abs())


@pytest.mark.parametrize(("condition", "target"), PAIRS)
def test_correlations_equal_scipy(result: StudyResult, frame: pd.DataFrame, condition: str, target: str) -> None:
    own = frame[frame["condition"] == condition]
    for term in ("aggregate", "trajectory"):
        ours = result.get(
            "values",
            metric="rank_correlation",
            factor=term,
            method="published",
            condition=condition,
            target=target,
        )
        theirs = stats.spearmanr(own[term], own[target])
        assert ours.value == pytest.approx(theirs.statistic, rel=1e-10)
        assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-6)


def test_adjusted_p_values_equal_statsmodels(result: StudyResult) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    for method in ("williams", "participant_bootstrap"):
        gaps = result.rows("gaps", metric="rank_correlation", method=method)
        assert len(gaps) == 4
        for field, name in (("p_adjusted", "bonferroni"), ("p_holm", "holm")):
            expected = multitest.multipletests([gap.p_value for gap in gaps], method=name)[1]
            np.testing.assert_allclose([getattr(gap, field) for gap in gaps], expected, rtol=1e-12)


@pytest.mark.parametrize(("condition", "target"), PAIRS)
def test_regressions_equal_statsmodels(result: StudyResult, frame: pd.DataFrame, condition: str, target: str) -> None:
    formula = pytest.importorskip("statsmodels.formula.api")
    own = frame[frame["condition"] == condition]
    codes = own["participant"].astype("category").cat.codes
    model = formula.ols(f"{target} ~ aggregate + trajectory", own)
    fits = {
        "published": model.fit(),
        "clustered": model.fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True),
    }
    for method, fit in fits.items():
        for term in ("aggregate", "trajectory"):
            ours = result.get("regressions", term=term, method=method, condition=condition, target=target)
            assert ours.value == pytest.approx(fit.params[term], rel=1e-9)
            assert ours.stderr == pytest.approx(fit.bse[term], rel=1e-9)
            assert ours.p_value == pytest.approx(fit.pvalues[term], rel=1e-6, abs=1e-200)
        for null, words in (
            ("aggregate = trajectory = 0", "aggregate = trajectory = 0"),
            ("aggregate = trajectory", "aggregate = trajectory"),
        ):
            ours = result.get("regressions", term=null, method=method, condition=condition, target=target)
            theirs = fit.wald_test(words, use_f=True, scalar=True)
            assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-200)


@pytest.mark.parametrize("target", ["overall", "output"])
def test_the_moderation_model_equals_statsmodels(result: StudyResult, frame: pd.DataFrame, target: str) -> None:
    formula = pytest.importorskip("statsmodels.formula.api")
    own = frame.assign(c=(frame["condition"] == "arrests").astype(float))
    model = formula.ols(f"{target} ~ (aggregate + trajectory) * c", own)
    fit = model.fit(
        cov_type="cluster", cov_kwds={"groups": own["participant"].astype("category").cat.codes}, use_t=True
    )
    for term, theirs in (
        ("condition arrests", "c"),
        ("aggregate × arrests", "aggregate:c"),
        ("trajectory × arrests", "trajectory:c"),
    ):
        ours = result.get("regressions", term=term, method="clustered", target=target, regression="moderation")
        assert ours.value == pytest.approx(fit.params[theirs], rel=1e-8, abs=1e-12)
        assert ours.stderr == pytest.approx(fit.bse[theirs], rel=1e-8)
        assert ours.p_value == pytest.approx(fit.pvalues[theirs], rel=1e-6)


def test_the_bootstrap_of_people_equals_one_written_out(result: StudyResult, frame: pd.DataFrame) -> None:
    own = frame[frame["condition"] == "income"]
    people = [rows[["aggregate", "trajectory", "overall"]].to_numpy() for _, rows in own.groupby("participant")]
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(1_500):
        drawn = np.vstack([people[position] for position in rng.integers(0, len(people), len(people))])
        ranks = np.column_stack([stats.rankdata(column) for column in drawn.T])
        r = np.corrcoef(ranks.T)
        gaps.append(r[1, 2] - r[0, 2])
    ours = result.get(
        "gaps", metric="rank_correlation", method="participant_bootstrap", condition="income", target="overall"
    )
    assert ours.df == len(people) - 1
    assert ours.stderr == pytest.approx(np.std(gaps, ddof=1), rel=0.06)
    assert ours.value is not None
    assert ours.stderr is not None
    half = stats.t.ppf(0.975, len(people) - 1) * ours.stderr
    assert ours.low == pytest.approx(ours.value - half, rel=1e-9)


def test_the_truth_serum_by_hand(result: StudyResult, frame: pd.DataFrame) -> None:
    """Pairs of different conditions are different questions, though their names are the same."""
    total: dict[str, list[float]] = {}
    for _, pair in frame.groupby(["condition", "item", "subject"]):
        similar = pair["overall"] <= 3
        share = similar.mean()
        p = pair["predicted"].clip(0.01, 0.99)
        said: dict[bool, tuple[Any, Any]] = {True: (share, p), False: (1 - share, 1 - p)}
        mean = {answer: math.exp(np.log(predicted).mean()) for answer, (_, predicted) in said.items()}
        for row, who in enumerate(pair["participant"]):
            answer = bool(similar.iloc[row])
            score = math.log(said[answer][0] / mean[answer])
            for x, predicted in said.values():
                if x > 0:
                    score += x * math.log(predicted.iloc[row] / x)
            total.setdefault(who, []).append(score)
    for record in result.bonus:
        assert record.value == pytest.approx(np.mean(total[record.participant]), abs=1e-12)
    assert sum(np.sum(scores) for scores in total.values()) == pytest.approx(0, abs=1e-9)
    assert [record.bonus for record in result.bonus] == [True] * 5 + [False] * 45
