"""Intraclass correlations and Lin's concordance against the published example, pingouin and their definitions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evenhand.errors import EvenhandError
from evenhand.stats.agreement import (
    ICC_FORMS,
    IccForm,
    cohen_kappa,
    concordance,
    icc,
    icc_a1,
    icc_interval,
    mean_squares,
    pabak,
    pooled_spread,
    score_moments,
)
from evenhand.stats.agreement.ratings import is_rounding, score_ratings
from evenhand.stats.types import FloatArray

JUDGES = ([9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7])
SHROUT_FLEISS = {"1": 0.166, "A,1": 0.290, "C,1": 0.715, "k": 0.443, "A,k": 0.620, "C,k": 0.909}
PINGOUIN = {form: f"ICC({form})" if "," in form else f"ICC(1,{form})" for form in ICC_FORMS}


@pytest.mark.replication
@pytest.mark.parametrize("form", ICC_FORMS)
def test_the_example_of_shrout_and_fleiss(form: IccForm) -> None:
    assert icc(*JUDGES, form=form) == pytest.approx(SHROUT_FLEISS[form], abs=5e-4)


@pytest.mark.replication
def test_the_mean_squares_of_shrout_and_fleiss() -> None:
    squares = mean_squares(*JUDGES)
    found = [squares.rows, squares.within, squares.columns, squares.error]
    np.testing.assert_allclose(found, [11.24, 6.26, 32.49, 1.02], atol=0.005)


def test_absolute_agreement_has_the_limits_of_the_generalised_pivot() -> None:
    """By chi-squared numbers drawn at random, where the product takes points that are spread evenly."""
    rng, squares = np.random.default_rng(0), mean_squares(*JUDGES)
    error = 15 * squares.error / rng.chisquare(15, 400_000)
    people = (5 * squares.rows / rng.chisquare(5, 400_000) - error) / 4
    raters = (3 * squares.columns / rng.chisquare(3, 400_000) - error) / 6
    expected = np.quantile(people / (people + raters + error), [0.025, 0.975])
    np.testing.assert_allclose(icc_interval(*JUDGES), expected, atol=3e-3)


def pingouin_table(scores: FloatArray) -> Any:
    pingouin = pytest.importorskip("pingouin", reason="pingouin is not installed (GPL, for tests only)")
    pandas = pytest.importorskip("pandas")
    n, k = scores.shape
    long = pandas.DataFrame(
        {"person": np.repeat(np.arange(n), k), "rater": np.tile(np.arange(k), n), "score": scores.ravel()}
    )
    with warnings.catch_warnings(action="ignore"):  # of pandas, about pingouin
        found = pingouin.intraclass_corr(long, targets="person", raters="rater", ratings="score")
    return found.set_index("Type")


@pytest.mark.replication
def test_all_forms_are_those_of_pingouin() -> None:
    rng = np.random.default_rng(2)
    for _ in range(15):
        n, k = int(rng.integers(3, 40)), int(rng.integers(2, 6))
        scores = rng.normal(size=(n, 1)) * rng.uniform(0, 3) + rng.normal(size=(1, k)) + rng.normal(size=(n, k))
        found = pingouin_table(scores)
        for form in ICC_FORMS:
            row = found.loc[PINGOUIN[form]]
            assert icc(*scores.T, form=form) == pytest.approx(row["ICC"], abs=1e-12)
            limits = next(row[column] for column in row.index if column.startswith("CI95"))
            if not form.startswith("A"):  # McGraw and Wong's are too short there
                np.testing.assert_allclose(icc_interval(*scores.T, form=form), limits, atol=0.0051)


def by_the_book(scores: FloatArray) -> tuple[float, float, float, float]:
    """Mean squares from sums of squares of the table."""
    n, k = scores.shape
    grand = scores.mean()
    rows = k * ((scores.mean(axis=1) - grand) ** 2).sum()
    columns = n * ((scores.mean(axis=0) - grand) ** 2).sum()
    within = ((scores - scores.mean(axis=1, keepdims=True)) ** 2).sum()
    return rows / (n - 1), columns / (k - 1), (within - columns) / ((n - 1) * (k - 1)), within / (n * (k - 1))


@given(arrays(np.float64, (7, 4), elements=st.floats(-100, 100).map(lambda value: round(value, 3))))
def test_mean_squares_follow_their_definition(scores: FloatArray) -> None:
    squares = mean_squares(*scores.T)
    found = [squares.rows, squares.columns, squares.error, squares.within]
    np.testing.assert_allclose(found, by_the_book(scores), rtol=1e-9, atol=1e-9)


@given(arrays(np.float64, (2, 12), elements=st.floats(0, 1).map(lambda value: round(value, 3))))
def test_two_raters_have_a_closed_form(scores: FloatArray) -> None:
    """2 s_xy / (s_x² + s_y² + (mean x - mean y)² - s_e² / n), unbiased; and the moments give the same."""
    x, y = scores
    n, e = len(x), y - x
    bottom = x.var(ddof=1) + y.var(ddof=1) + (x.mean() - y.mean()) ** 2 - e.var(ddof=1) / n
    if bottom < 1e-6:
        return
    expected = 2 * np.cov(x, y)[0, 1] / bottom
    assert icc_a1(x, y) == pytest.approx(expected, abs=1e-9)
    assert score_moments(x, y).icc_a1() == pytest.approx(expected, abs=1e-9)


@given(arrays(np.int64, (2, 20), elements=st.integers(0, 1)))
def test_lins_concordance_of_binary_scores_is_kappa(scores: Any) -> None:
    np.testing.assert_allclose(concordance(*scores), cohen_kappa(*scores), atol=1e-12)


def test_lins_concordance_follows_its_definition() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=50)
    y = 0.3 + 0.8 * x + rng.normal(size=50)
    covariance = ((x - x.mean()) * (y - y.mean())).mean()
    expected = 2 * covariance / (x.var() + y.var() + (x.mean() - y.mean()) ** 2)
    assert concordance(x, y) == pytest.approx(expected, abs=1e-14)


@given(arrays(np.int64, (2, 20), elements=st.integers(0, 1)))
def test_the_spread_adjusted_icc_of_binary_scores_is_pabak(scores: Any) -> None:
    first, second = scores
    np.testing.assert_allclose(score_moments(first, second).spread_adjusted(0.5), pabak(first, second), atol=1e-12)


def test_the_spread_adjusted_icc_does_not_depend_on_a_groups_own_spread() -> None:
    rng = np.random.default_rng(4)
    error = rng.normal(0, 0.05, 400)
    narrow, wide = rng.normal(0.5, 0.1, 400), rng.normal(0.5, 0.3, 400)
    spread = pooled_spread(np.concatenate([narrow, wide]))
    assert icc_a1(narrow, narrow + error) < icc_a1(wide, wide + error) - 0.05
    moments = score_moments(np.array([narrow, wide]), np.array([narrow + error, wide + error]))
    adjusted = moments.spread_adjusted(spread)
    assert adjusted[0] == pytest.approx(adjusted[1], abs=1e-12)


def test_leading_axes_are_simulations() -> None:
    rng = np.random.default_rng(5)
    x, y, z = rng.normal(size=9), rng.normal(size=(2, 3, 9)), rng.normal(size=(3, 9))
    for form in ICC_FORMS:
        one_by_one = [[icc(x, y[i, j], z[j], form=form) for j in range(3)] for i in range(2)]
        np.testing.assert_allclose(icc(x, y, z, form=form), one_by_one, atol=1e-12)
        low, high = icc_interval(x, y, z, form=form)
        assert low.shape == high.shape == (2, 3)
        each = [[icc_interval(x, y[i, j], z[j], form=form) for j in range(3)] for i in range(2)]
        np.testing.assert_allclose(np.stack([low, high], axis=-1), each, atol=1e-9)


def test_the_intervals_cover_normal_ratings() -> None:
    """Raters and people at random: the limits hold in 95 % of 4,000 tables (two standard errors: 0.7 %), A of 500."""
    rng = np.random.default_rng(6)
    people, raters = rng.normal(size=(4_000, 1, 15)), rng.normal(0, 0.5, size=(4_000, 3, 1))
    scores = people + raters + rng.normal(0, 1, size=(4_000, 3, 15))
    truth = {"A,1": 1 / 2.25, "C,1": 1 / 2, "C,k": 1 / (1 + 1 / 3)}
    for form in ("A,1", "C,1", "C,k"):
        low, high = icc_interval(*np.moveaxis(scores[: 500 if form == "A,1" else None], 1, 0), form=form)
        covered = ((low <= truth[form]) & (truth[form] <= high)).mean()
        assert covered == pytest.approx(0.95, abs=0.03 if form.startswith("A") else 0.0105)


def test_wider_confidence_gives_wider_limits() -> None:
    narrow, wide = icc_interval(*JUDGES, confidence=0.8), icc_interval(*JUDGES, confidence=0.99)
    assert wide.low < narrow.low < icc_a1(*JUDGES) < narrow.high < wide.high


def test_wrong_input_is_named() -> None:
    with pytest.raises(EvenhandError, match="at least two raters; got 1"):
        icc_a1([1.0, 2.0])
    with pytest.raises(EvenhandError, match="must be finite; got inf"):
        icc_a1([1.0, np.inf], [1.0, 2.0])
    with pytest.raises(EvenhandError, match="must be numbers"):
        icc_a1(["a", "b"], [1.0, 2.0])
    with pytest.raises(EvenhandError, match="`form` got 'A1'"):
        icc(*JUDGES, form="A1")  # type: ignore[arg-type]


def test_a_score_that_is_missing_must_be_allowed() -> None:
    with pytest.raises(EvenhandError, match="got nan"):
        score_ratings([1.0, np.nan])
    assert np.isnan(score_ratings([1.0, np.nan], missing=True)[0][1])


def test_nothing_is_a_rounding_of_nothing() -> None:
    assert is_rounding(np.array(0.0), np.array(0.0))
    assert not is_rounding(np.array(1e-9), np.array(1.0))


def test_agreement_does_not_depend_on_a_unit_however_small() -> None:
    first, second = np.random.default_rng(0).normal(0, 1, (2, 30))
    for form in ("1", "A,1", "C,1"):
        small = icc(1e-14 * first, 1e-14 * second, form=form)
        assert float(small) == pytest.approx(float(icc(first, second, form=form)))
