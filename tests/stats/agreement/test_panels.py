"""Panels with gaps: against dense algebra, statsmodels and the closed forms of panels without gaps."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np
import pytest

from evenhand.stats.agreement import ICC_FORMS, Undefined, icc, icc_interval, panels, why_undefined
from evenhand.stats.agreement.panels import Panel, _deviance, panel_interval, panel_of, quadratics
from evenhand.stats.types import FloatArray

JUDGES: Any = np.array([[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]], dtype=float)


def gappy(people: int = 40, raters: int = 5, share: float = 0.4, seed: int = 0) -> Any:
    """Scores (raters, people) of which a share is missing, two or more for everybody."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(1, people)) + 0.6 * rng.normal(size=(raters, 1)) + 0.7 * rng.normal(size=(raters, people))
    rank = rng.random(scores.shape).argsort(axis=0)
    return np.where((rng.random(scores.shape) < share) & (rank >= 2), np.nan, scores)


def dense(scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the ratings, and which person and which rater each is of, as matrices of 0 and 1."""
    rater, person = np.nonzero(~np.isnan(scores))
    return scores[rater, person], np.eye(scores.shape[1])[person], np.eye(scores.shape[0])[rater]


def left_over(y: FloatArray, fixed: FloatArray, covariance: FloatArray) -> float:
    """Return y'Py, the generalised sum of squares that is left when `fixed` is fitted."""
    inverse = np.linalg.inv(covariance)
    beta = np.linalg.pinv(fixed.T @ inverse @ fixed) @ fixed.T @ inverse @ y
    return float((y - fixed @ beta) @ inverse @ (y - fixed @ beta))


def test_without_gaps_restricted_likelihood_is_the_analysis_of_variance() -> None:
    found = panel_of(*JUDGES).iccs()
    for form in ICC_FORMS:
        assert found[form] == pytest.approx(icc(*JUDGES, form=form), abs=1e-6)


def test_without_gaps_the_limits_are_those_of_mean_squares() -> None:
    for form in ICC_FORMS:
        np.testing.assert_allclose(
            panel_interval(panel_of(*JUDGES), form, 0.9), icc_interval(*JUDGES, form=form, confidence=0.9), atol=1e-3
        )


@pytest.mark.parametrize("seed", [0, 1])
def test_the_variances_are_those_of_statsmodels(seed: int) -> None:
    pandas, api = pytest.importorskip("pandas"), pytest.importorskip("statsmodels.formula.api")
    scores = gappy(25, 4, seed=seed)
    rater, person = np.nonzero(~np.isnan(scores))
    long = pandas.DataFrame({"y": scores[rater, person], "person": person, "rater": rater, "all": 1})
    parts = {"person": "0 + C(person)", "rater": "0 + C(rater)"}
    fitted = api.mixedlm("y ~ 1", long, groups="all", vc_formula=parts).fit()
    people, raters = fitted.vcomp
    total = people + raters + fitted.scale
    assert icc(*scores, form="A,1") == pytest.approx(people / total, abs=2e-4)
    assert icc(*scores, form="C,1") == pytest.approx(people / (people + fitted.scale), abs=2e-4)


def test_no_other_variances_are_likelier() -> None:
    """From far starts the search ends where a search without slopes does."""
    from scipy.optimize import minimize

    for seed in range(8):
        scores = gappy(30, 4, seed=seed) * 3 + np.arange(4)[:, np.newaxis] * (seed % 3)
        panel = panel_of(*scores)
        found = [
            minimize(cast(Any, partial(_deviance, panel)), start, method="Nelder-Mead") for start in ([1, 1], [3, 0.3])
        ]
        people, rater = min(found, key=lambda one: one.fun).x ** 2
        assert icc(*scores, form="A,1") == pytest.approx(people / (people + rater + 1), abs=1e-4)


def test_icc_1_is_the_analysis_of_variance_by_the_book() -> None:
    scores = gappy()
    groups = [column[~np.isnan(column)] for column in scores.T]
    sizes, count = np.array([len(group) for group in groups]), sum(map(len, groups))
    grand = np.concatenate(groups).mean()
    between = sum(len(g) * (g.mean() - grand) ** 2 for g in groups) / (len(groups) - 1)
    within = sum(((g - g.mean()) ** 2).sum() for g in groups) / (count - len(groups))
    usual = (count - (sizes**2).sum() / count) / (len(groups) - 1)
    assert icc(*scores, form="1") == pytest.approx((between - within) / (between + (usual - 1) * within), abs=1e-12)


@pytest.mark.parametrize("ratio", [0.0, 0.7, 5.0])
def test_the_sums_of_squares_are_those_of_dense_algebra(ratio: float) -> None:
    scores = gappy()
    y, people, raters = dense(scores)
    found, one = quadratics(panel_of(*scores)), np.eye(len(y))
    error = left_over(y, np.hstack([people, raters]), one)
    assert found.error == pytest.approx(error, rel=1e-9)
    assert found.people(np.array(ratio)) == pytest.approx(
        left_over(y, raters, one + ratio * people @ people.T) - error, rel=1e-8
    )
    assert found.raters(np.array(ratio)) == pytest.approx(
        left_over(y, people, one + ratio * raters @ raters.T) - error, rel=1e-8
    )
    rank = np.linalg.matrix_rank(np.hstack([people, raters]))
    assert (found.freedom_error, found.freedom_people) == (len(y) - rank, rank - len(scores))


@pytest.mark.parametrize("form", ["1", "C,1", "A,1"])
def test_laws_of_panels_with_gaps(form: Any) -> None:
    scores = gappy(24, 4)
    value, limits = icc(*scores, form=form), icc_interval(*scores, form=form)
    order = np.random.default_rng(3).permutation(24)
    assert icc(*scores[::-1, order], form=form) == pytest.approx(value, abs=1e-7)
    np.testing.assert_allclose(icc_interval(*scores[::-1, order], form=form), limits, atol=1e-6)
    np.testing.assert_allclose(icc_interval(*(1e6 * scores - 3e6), form=form), limits, atol=1e-6)
    weight = np.array([1.0, 2.0, 3.0, 0.0] * 6)
    repeated = np.repeat(scores, weight.astype(int), axis=1)
    simulated = icc(*scores, form=form, weight=np.stack([np.ones(24), weight]))
    np.testing.assert_allclose(simulated, [value, icc(*repeated, form=form)], atol=1e-6)
    assert limits.low <= value <= limits.high
    narrow = icc_interval(*scores, form=form, confidence=0.5)
    assert limits.low <= narrow.low <= narrow.high <= limits.high


def test_what_a_panel_cannot_say_has_a_reason() -> None:
    nobody_shared = np.full((6, 3), np.nan)
    nobody_shared[[0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 2]] = [1.0, 2.0, 4.0, 5.0, 1.0, 3.0]
    assert np.isfinite(icc(*nobody_shared, form="1"))
    assert np.isnan(icc(*nobody_shared, form="A,1"))
    assert str(why_undefined("icc A,1", *nobody_shared)) == Undefined.NOT_CROSSED
    assert str(why_undefined("icc A,k", *gappy())) == Undefined.UNEQUAL
    constant = np.where(np.isnan(gappy()), np.nan, 0.1)
    assert str(why_undefined("icc C,1", *constant)) == Undefined.NO_SPREAD
    assert str(why_undefined("icc A,1", *gappy())) == ""


def test_equally_many_ratings_have_a_mean_although_raters_differ() -> None:
    scores = gappy(30, 5, share=0.0)
    scores[np.arange(30) % 5, np.arange(30)] = np.nan
    single = float(icc(*scores, form="A,1"))
    assert icc(*scores, form="A,k") == pytest.approx(4 * single / (1 + 3 * single))


def test_only_sums_are_kept() -> None:
    panel = panel_of(*gappy(200, 3))
    assert isinstance(panel, Panel)
    assert panel.both.shape == (2, 3, 3)


def test_limits_of_raters_who_hardly_agree_reach_below_0_and_do_not_depend_on_the_unit() -> None:
    scores = np.random.default_rng(3).normal(0, 1, (3, 12)) + np.array([[0.0], [0.2], [0.5]])
    for form in ("1", "C,1", "A,1"):
        limits = np.array(panel_interval(panel_of(*scores), form, 0.9))
        expected = np.array(icc_interval(*scores, form=form, confidence=0.9))
        assert limits[0] < 0
        if form != "A,1":  # whose limits without gaps are approximate in another way
            np.testing.assert_allclose(limits, expected, atol=1e-6)
        np.testing.assert_allclose(panel_interval(panel_of(*(0.01 * scores)), form, 0.9), limits, rtol=1e-6)


def test_one_person_and_nobody_are_told_apart() -> None:
    one = np.array([[1.0, np.nan], [2.0, np.nan], [4.0, np.nan]])
    for scores, reason in ((one, Undefined.ONE_PERSON), (np.full((3, 2), np.nan), Undefined.NOBODY)):
        assert str(why_undefined("icc 1", *scores)) == reason
        assert np.isnan(icc_interval(*scores, form="A,1")).all()
    weights = np.ones((4, 2))
    assert np.isnan(icc(*np.full((3, 2), np.nan), form="A,1", weight=weights)).tolist() == [True] * 4


def test_components_are_estimated_up_to_the_most_raters(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, known in ((5, True), (4, False)):
        monkeypatch.setattr(panels, "MOST_RATERS", most)
        assert np.isfinite(icc(*gappy(raters=5), form="A,1")) == known
        assert np.isfinite(icc(*gappy(raters=5), form="1"))
