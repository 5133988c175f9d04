"""Closed-form intervals against other implementations, exact coverage, and the laws they obey."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import EvenhandError
from evenhand.stats.intervals import (
    bonferroni,
    bounded_mean,
    clopper_pearson,
    effective_trials,
    logit_t,
    mover_difference,
    mover_ratio,
    normal_quantile,
    steady_stderr,
    student_t,
    t_quantile,
    tail_share,
    welch_difference,
    wilson,
)
from evenhand.stats.types import FloatArray

shares = st.floats(0.0, 1.0).map(lambda share: round(share, 6))


def binomial(trials: int, rate: float) -> FloatArray:
    from scipy.stats import binom

    return np.asarray(binom.pmf(np.arange(trials + 1), trials, rate))


# Quantiles


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_quantiles_match_scipy(confidence: float) -> None:
    from scipy.stats import norm, t

    df = np.array([0.7, 1.0, 3.5, 30.0, 1e6, 1e12])
    upper = (1 + confidence) / 2
    np.testing.assert_allclose(t_quantile(df, confidence), t.ppf(upper, df), rtol=1e-9)
    assert normal_quantile(confidence) == pytest.approx(norm.ppf(upper), rel=1e-12)
    assert float(t_quantile(np.inf, confidence)) == normal_quantile(confidence)


@pytest.mark.parametrize("df", [0.0, -1.0, math.nan])
def test_t_quantile_without_freedom_is_undefined(df: float) -> None:
    assert math.isnan(float(t_quantile(df)))


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, -0.1, math.nan])
def test_confidence_must_be_a_probability(confidence: float) -> None:
    with pytest.raises(EvenhandError, match=r"`confidence` must be between 0 and 1; got"):
        wilson(0.5, 10, confidence)


def test_bonferroni_shares_the_error() -> None:
    assert bonferroni(0.95, 1) == pytest.approx(0.95, abs=1e-15)
    assert bonferroni(0.9, 5) == pytest.approx(0.98, abs=1e-15)
    with pytest.raises(EvenhandError, match=r"`comparisons` must be at least 1; got 0\."):
        bonferroni(0.95, 0)


# One rate


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_wilson_matches_statsmodels(confidence: float) -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    trials = np.array([1, 2, 7, 50, 200, 5000])
    for successes in (np.zeros_like(trials), trials // 3, trials // 2, trials):
        expected = proportion.proportion_confint(successes, trials, alpha=1 - confidence, method="wilson")
        np.testing.assert_allclose(wilson(successes / trials, trials, confidence), expected, atol=1e-12)


def test_wilson_ends_are_exact_and_empty_is_undefined() -> None:
    low, high = wilson([0.0, 1.0, 0.0, 0.5, 1.2, np.nan], [3, 7, 0, -1, 5, 5])
    assert low[0] == 0.0
    assert high[1] == 1.0
    assert np.isnan(low[2:]).all()
    assert np.isnan(high[2:]).all()


@given(rate=shares, trials=st.floats(0.1, 1e9))
def test_wilson_contains_the_rate_and_mirrors(rate: float, trials: float) -> None:
    low, high = wilson(rate, trials)
    assert 0.0 <= low <= rate + 1e-12
    assert rate - 1e-12 <= high <= 1.0
    mirrored = wilson(1 - rate, trials)
    np.testing.assert_allclose([1 - mirrored.high, 1 - mirrored.low], [low, high], atol=1e-12)


@pytest.mark.parametrize(("trials", "rate"), [(200, 0.02), (200, 0.05), (200, 0.5), (2000, 0.02)])
def test_wilson_covers(trials: int, rate: float) -> None:
    low, high = wilson(np.arange(trials + 1) / trials, trials)
    coverage = binomial(trials, rate)[(low <= rate) & (rate <= high)].sum()
    assert 0.93 < coverage < 0.97


def test_wilsons_least_coverage_is_far_below_nominal() -> None:
    """Why a pair among many does not use it: at n = 10 it holds in 83.5 % of samples just below a limit."""
    low, high = wilson(np.arange(11) / 10, 10)
    rate = float(low[1]) - 1e-6
    assert rate == pytest.approx(0.0179, abs=1e-4)
    assert binomial(10, rate)[(low <= rate) & (rate <= high)].sum() == pytest.approx(0.835, abs=1e-3)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.9999])
def test_clopper_pearson_matches_statsmodels(confidence: float) -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    trials = np.array([1, 2, 7, 50, 200, 5000])
    for successes in (np.zeros_like(trials), trials // 3, trials // 2, trials):
        expected = proportion.proportion_confint(successes, trials, alpha=1 - confidence, method="beta")
        np.testing.assert_allclose(
            clopper_pearson(successes / trials, trials, confidence), expected, rtol=1e-9, atol=1e-12
        )


def test_clopper_pearson_ends_are_exact_and_empty_is_undefined() -> None:
    low, high = clopper_pearson([0.0, 1.0, 0.0, np.nan], [3, 7, 0, 5])
    assert low[0] == 0.0
    assert high[1] == 1.0
    assert np.isnan(low[2:]).all()
    assert np.isnan(high[2:]).all()


@given(rate=shares, trials=st.floats(0.1, 1e6))
def test_clopper_pearson_contains_the_rate_and_mirrors(rate: float, trials: float) -> None:
    low, high = clopper_pearson(rate, trials)
    assert 0.0 <= low <= rate + 1e-9
    assert rate - 1e-9 <= high <= 1.0
    mirrored = clopper_pearson(1 - rate, trials)
    np.testing.assert_allclose([1 - mirrored.high, 1 - mirrored.low], [low, high], atol=1e-9)


@pytest.mark.parametrize("confidence", [0.95, bonferroni(0.95, 55)])
@pytest.mark.parametrize("trials", [1, 10, 12, 37, 200])
def test_neither_tail_of_clopper_pearson_is_ever_too_large(trials: int, confidence: float) -> None:
    """Exact, by enumeration of all counts, at rates just beyond each limit, where the tails are largest."""
    low, high = clopper_pearson(np.arange(trials + 1) / trials, trials, confidence)
    tail = (1 - confidence) / 2
    limits = np.concatenate([np.asarray(low), np.asarray(high)])
    for rate in np.concatenate([limits - 1e-9, limits + 1e-9, np.linspace(0.0005, 0.9995, 101)]):
        if 0 < rate < 1:
            chance = binomial(trials, float(rate))
            assert chance[low > rate].sum() <= tail * (1 + 1e-6)
            assert chance[high < rate].sum() <= tail * (1 + 1e-6)


def test_effective_trials() -> None:
    rate, n = np.array([0.1, 0.4]), 50
    np.testing.assert_allclose(effective_trials(rate, rate * (1 - rate) / n, kish=70), n)
    np.testing.assert_array_equal(effective_trials(rate, rate * (1 - rate) / n, kish=7), 7)
    np.testing.assert_array_equal(effective_trials([0.0, 1.0, 0.3], [0.1, 0.1, 0.0], [5, 6, 7]), [5, 6, 7])


def weighted_rate(hit: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weighted rates, their linearised variances and Kish's n, along the last axis."""
    total, squares = weight.sum(axis=-1), weight**2
    p = (weight * hit).sum(axis=-1) / total
    variance = (squares * (hit - p[..., np.newaxis]) ** 2).sum(axis=-1) / total**2
    return p, variance, total**2 / squares.sum(axis=-1)


@given(hits=st.integers(0, 40), weight=st.floats(0.01, 100.0))
def test_equal_weights_are_no_weights(hits: int, weight: float) -> None:
    p, variance, kish = weighted_rate((np.arange(40) < hits).astype(float), np.full(40, weight))
    np.testing.assert_allclose(effective_trials(p, variance, kish), 40, rtol=1e-9)
    np.testing.assert_allclose(wilson(p, effective_trials(p, variance, kish)), wilson(hits / 40, 40), atol=1e-9)


def test_effective_trials_are_capped_because_few_positives_mislead() -> None:
    rng = np.random.default_rng(0)
    rate, shape = 0.02, (4000, 200)
    hit, weight = (rng.random(shape) < rate).astype(float), np.exp(0.7 * rng.standard_normal(shape))
    p, variance, kish = weighted_rate(hit, weight)

    def coverage(most: FloatArray | float) -> float:
        trials = effective_trials(p, variance, most)
        low, high = wilson(p, np.where(np.isinf(trials), kish, trials))
        return float(((low <= rate) & (rate <= high)).mean())

    assert coverage(np.inf) < 0.92
    assert coverage(kish) > 0.94


# One mean, one AUC


def test_student_t_matches_scipy() -> None:
    from scipy.stats import t

    expected = np.asarray(t.interval(0.9, 4.5, loc=[0.2, -3.0], scale=0.3))
    np.testing.assert_allclose(np.asarray(student_t([0.2, -3.0], 0.3, 4.5, 0.9)), expected, rtol=1e-9)
    assert np.isnan(student_t(0.2, np.nan, 0)).all()


@pytest.mark.parametrize("df", [3.5, 40, math.inf])
def test_logit_t_matches_its_formula(df: float) -> None:
    from scipy.special import expit, logit

    value, stderr = np.array([0.5, 0.91, 0.999]), np.array([0.1, 0.02, 0.001])
    half = t_quantile(df, 0.9) * stderr / (value * (1 - value))
    expected = expit(logit(value) - half), expit(logit(value) + half)
    np.testing.assert_allclose(logit_t(value, stderr, df, 0.9), expected, rtol=1e-12)
    assert math.isinf(df) == np.allclose(half, normal_quantile(0.9) * stderr / (value * (1 - value)), rtol=1e-12)


def test_logit_t_at_the_edges() -> None:
    np.testing.assert_allclose(logit_t(0.5, 1e6, 5), (0.0, 1.0))
    assert np.isnan(logit_t([0.0, 1.0, 0.5, np.nan, 0.5, -0.1], [0.1, 0.1, 0.0, 0.1, np.nan, 0.1], 5)).all()
    assert np.isnan(logit_t(0.5, 0.1, [0, -1, np.nan])).all()
    assert np.isnan(logit_t([0.0, -1.0], 0.1, 5, bounds=(0.0, math.inf))).all()
    np.testing.assert_array_equal(logit_t(2.0, 1e6, 5, bounds=(1.0, math.inf)), (1.0, math.inf))
    for bounds in ((-math.inf, 1.0), (1.0, 1.0), (0.0, math.nan)):
        with pytest.raises(EvenhandError, match=r"`bounds` must be a finite lowest and a higher highest value; got"):
            logit_t(0.5, 0.1, 5, bounds=bounds)


inner = st.floats(0.01, 0.99)


@given(share=inner, stderr=st.floats(1e-4, 0.5), df=st.floats(1.0, 1e3), low=st.floats(-5, 5), span=st.floats(0.1, 50))
def test_logit_t_moves_with_its_bounds(share: float, stderr: float, df: float, low: float, span: float) -> None:
    there = logit_t(share, stderr, df)
    assert 0.0 <= there.low < share < there.high <= 1.0
    moved = logit_t(low + span * share, span * stderr, df, bounds=(low, low + span))
    np.testing.assert_allclose(moved, (low + span * there.low, low + span * there.high), atol=1e-9 * (5 + span))
    mirrored = logit_t(1 - share, stderr, df)
    np.testing.assert_allclose(mirrored, (1 - there.high, 1 - there.low), atol=1e-9)


@given(value=st.floats(0.1, 10.0), stderr=st.floats(0.01, 2.0), low=st.floats(-3, 3))
def test_logit_t_without_a_highest_value_is_on_the_log_scale(value: float, stderr: float, low: float) -> None:
    half = float(t_quantile(12)) * stderr / value
    expected = low + value * math.exp(-half), low + value * math.exp(half)
    open_end = logit_t(low + value, stderr, 12, bounds=(low, math.inf))
    np.testing.assert_allclose(open_end, expected, rtol=1e-7, atol=1e-9)
    if half < 5:  # a highest value far away is as good as none
        np.testing.assert_allclose(logit_t(low + value, stderr, 12, bounds=(low, 1e9)), open_end, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("size", "mean"), [(50, 0.05), (200, 0.02), (50, 0.5)])
def test_logit_t_covers_a_skewed_mean_no_worse_than_plain_t(size: int, mean: float) -> None:
    scores = np.random.default_rng(1).beta(5 * mean, 5 * (1 - mean), (8000, size))
    found = scores.mean(axis=1), scores.std(axis=1, ddof=1) / math.sqrt(size), size - 1
    coverage = [
        ((limits.low <= mean) & (mean <= limits.high)).mean() for limits in (logit_t(*found), student_t(*found))
    ]
    assert coverage[0] >= coverage[1] - 0.002
    assert 0.92 < coverage[0] < 0.97


# Two means


def test_welch_difference_matches_scipy() -> None:
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(3)
    x, y = rng.normal(1, 2, 13), rng.normal(0, 5, 29)
    expected = ttest_ind(x, y, equal_var=False).confidence_interval(0.9)
    a, b = ((z.mean(), z.std(ddof=1) / math.sqrt(z.size), z.size - 1) for z in (x, y))
    limits = welch_difference(a, b, confidence=0.9)
    np.testing.assert_allclose(limits, (expected.low, expected.high), rtol=1e-9)


def test_welch_without_spread() -> None:
    np.testing.assert_allclose(welch_difference((0.7, 0.0, 4), (0.2, 0.0, 4)), (0.5, 0.5), rtol=1e-15)
    one_sided = welch_difference((0.7, 0.1, 4), (0.2, 0.0, 9))
    np.testing.assert_allclose(one_sided, student_t(0.5, 0.1, 4))
    assert np.isnan(welch_difference((0.7, np.nan, 0), (0.2, 0.1, 9))).all()
    known = welch_difference((0.7, 0.1, np.inf), (0.2, 0.1, np.inf))
    np.testing.assert_allclose(known.high, 0.5 + normal_quantile() * math.sqrt(0.02))


# Means between bounds


def test_two_people_at_the_bounds_steady_the_standard_error() -> None:
    scores = np.array([0.01, 0.02, 0.02, 0.05, 0.1, 0.4])
    mean, n = scores.mean(), scores.size
    stderr = scores.std(ddof=1) / math.sqrt(n)
    variance = (n * scores.var(ddof=1) + 2 * mean * (1 - mean)) / (n + 2)
    assert float(steady_stderr(mean, stderr, n)) == pytest.approx(math.sqrt(variance / n))
    np.testing.assert_allclose(bounded_mean(mean, stderr, n), logit_t(mean, math.sqrt(variance / n), n - 1), rtol=1e-12)
    moved = bounded_mean(100 + 50 * mean, 50 * stderr, n, bounds=(100, 150))
    np.testing.assert_allclose(moved, 100 + 50 * np.array(bounded_mean(mean, stderr, n)))
    assert float(steady_stderr(0.3, 0.0, n)) == 0.0
    assert float(steady_stderr(0.3, 1e-3, 1e9)) == pytest.approx(1e-3)


@pytest.mark.parametrize("share", [0.001, 0.02, 0.2, 0.7])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_the_limit_of_nothing_but_zeros_holds_for_the_worst_scores_there_can_be(n: int, share: float) -> None:
    """A score of 1 with this chance, else 0, has the most zeros of all scores with its mean."""
    limit = float(bounded_mean(0.0, 0.0, n).high)
    assert share <= limit or (1 - share) ** n <= 0.025 + 1e-12
    assert float(bounded_mean(1.0, 0.0, n).low) == pytest.approx(1 - limit)


def test_confidences_broadcast() -> None:
    levels = np.array([0.5, 0.9, 0.99])
    for function in (clopper_pearson, lambda p, n, c: bounded_mean(p, 0.05, n, c)):
        together = function(0.3, 20, levels)
        for place, level in enumerate(levels):
            alone = function(0.3, 20, float(level))
            assert (together.low[place], together.high[place]) == pytest.approx((float(alone.low), float(alone.high)))
    with pytest.raises(EvenhandError, match="confidence"):
        clopper_pearson(0.3, 20, np.array([0.5, 1.0]))


def test_everything_broadcasts() -> None:
    rate, trials = np.full((3, 1), 0.2), np.array([10, 20, 30, 40])
    limits = wilson(rate, trials)
    assert limits.low.shape == (3, 4)
    assert mover_difference(rate, limits, 0.5, wilson(0.5, 10)).low.shape == (3, 4)
    assert mover_ratio(rate, limits, 0.5, wilson(0.5, 10)).high.shape == (3, 4)
    assert welch_difference((rate, 0.1, trials), (0.5, 0.1, 9)).low.shape == (3, 4)
    assert logit_t(rate, 0.1, trials).low.shape == (3, 4)
    assert isinstance(wilson(0.5, 10).low, np.ndarray)


def test_one_share_among_many_is_enough_to_be_wrong() -> None:
    for wrong in (-0.1, 1.5):
        with pytest.raises(EvenhandError, match="confidence"):
            tail_share(np.array([0.95, wrong]))


def test_wilson_reaches_0_and_1_exactly() -> None:
    n = np.arange(1, 300)
    assert (wilson(np.zeros(n.size), n).low == 0).all()
    assert (wilson(np.ones(n.size), n).high == 1).all()


def test_a_value_without_error_has_no_limits_on_the_logit_scale() -> None:
    assert np.isnan(logit_t(0.5, 0.0, df=10)).all()
    assert np.isnan(logit_t([0.0, 1.0], 0.1, df=10)).all()


def test_very_many_degrees_of_freedom_are_normal() -> None:
    assert t_quantile([1e8, 1e9, 1e12], 0.95) == pytest.approx([1.959964] * 3, abs=1e-6)
