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
    effective_trials,
    logit_normal,
    mover_difference,
    mover_ratio,
    narrowest_ratio,
    normal_quantile,
    student_t,
    t_quantile,
    welch_difference,
    welch_log_ratio,
    widest_difference,
    wilson,
)
from evenhand.stats.types import FloatArray, Interval

shares = st.floats(0.0, 1.0).map(lambda share: round(share, 6))
sizes = st.integers(1, 10_000)


def binomial(trials: int, rate: float) -> FloatArray:
    from scipy.stats import binom

    return np.asarray(binom.pmf(np.arange(trials + 1), trials, rate))


def fieller(a: float, se_a: float, b: float, se_b: float, t: float) -> tuple[float, float]:
    """Fieller's interval in its usual form, with g = (t se_b / b)²."""
    g = (t * se_b / b) ** 2
    ratio = a / b
    half = t / b * math.sqrt((1 - g) * se_a**2 + ratio**2 * se_b**2)
    return (ratio - half) / (1 - g), (ratio + half) / (1 - g)


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


def test_effective_trials() -> None:
    rate, n = np.array([0.1, 0.4]), 50
    np.testing.assert_allclose(effective_trials(rate, rate * (1 - rate) / n, kish=7), n)
    np.testing.assert_array_equal(effective_trials([0.0, 1.0, 0.3], [0.1, 0.1, 0.0], [5, 6, 7]), [5, 6, 7])


# One mean, one AUC


def test_student_t_matches_scipy() -> None:
    from scipy.stats import t

    expected = np.asarray(t.interval(0.9, 4.5, loc=[0.2, -3.0], scale=0.3))
    np.testing.assert_allclose(np.asarray(student_t([0.2, -3.0], 0.3, 4.5, 0.9)), expected, rtol=1e-9)
    assert np.isnan(student_t(0.2, np.nan, 0)).all()


def test_logit_normal_matches_its_formula() -> None:
    from scipy.special import expit, logit

    value, stderr = np.array([0.5, 0.91, 0.999]), np.array([0.1, 0.02, 0.001])
    half = normal_quantile(0.95) * stderr / (value * (1 - value))
    expected = expit(logit(value) - half), expit(logit(value) + half)
    np.testing.assert_allclose(logit_normal(value, stderr), expected, rtol=1e-12)
    np.testing.assert_allclose(logit_normal(0.5, 1e6), (0.0, 1.0))
    assert np.isnan(logit_normal([0.0, 1.0, 0.5, np.nan], [0.1, 0.1, 0.0, 0.1])).all()


# Two rates


@pytest.mark.parametrize(
    ("successes", "trials"),
    [((56, 48), (70, 80)), ((9, 3), (10, 10)), ((0, 0), (10, 20)), ((10, 0), (10, 20))],
)
def test_mover_difference_matches_newcombe(successes: tuple[int, int], trials: tuple[int, int]) -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    expected = proportion.confint_proportions_2indep(
        successes[0], trials[0], successes[1], trials[1], compare="diff", method="newcomb"
    )
    a, b = successes[0] / trials[0], successes[1] / trials[1]
    limits = mover_difference(a, wilson(a, trials[0]), b, wilson(b, trials[1]))
    np.testing.assert_allclose(limits, expected, atol=1e-12)


def test_mover_difference_matches_newcombes_printed_table() -> None:
    # Newcombe (1998), table II, method 10: 56/70 - 48/80, 9/10 - 3/10, 10/10 - 0/10.
    a, b = np.array([0.8, 0.9, 1.0]), np.array([0.6, 0.3, 0.0])
    limits = mover_difference(a, wilson(a, [70, 10, 10]), b, wilson(b, [80, 10, 10]))
    np.testing.assert_allclose(limits.low, [0.0524, 0.1705, 0.6075], atol=5e-5)
    np.testing.assert_allclose(limits.high, [0.3339, 0.8090, 1.0], atol=5e-5)


@given(a=shares, b=shares, n_a=sizes, n_b=sizes)
def test_swapping_the_groups_mirrors_both_comparisons(a: float, b: float, n_a: int, n_b: int) -> None:
    first, second = wilson(a, n_a), wilson(b, n_b)
    there, back = mover_difference(a, first, b, second), mover_difference(b, second, a, first)
    np.testing.assert_array_equal([there.low, there.high], [-back.high, -back.low])
    ratio, inverse = mover_ratio(a, first, b, second), mover_ratio(b, second, a, first)
    if a > 0 or b > 0:
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose([ratio.low, ratio.high], [1 / inverse.high, 1 / inverse.low], rtol=1e-6)
    if b > 0:
        assert ratio.low <= a / b * (1 + 1e-9)
        assert ratio.high >= a / b * (1 - 1e-9)


def test_mover_ratio_at_the_edges() -> None:
    a, b, n = np.array([0.0, 0.3, 0.0, 0.3, 0.3]), np.array([0.3, 0.0, 0.0, np.nan, 1.0]), 40
    low, high = mover_ratio(a, wilson(a, n), b, wilson(b, n))
    assert low[0] == 0.0
    assert 0 < high[0] < 1
    assert 1 < low[1] < np.inf
    assert high[1] == np.inf
    assert np.isnan([low[2], high[2], low[3], high[3]]).all()
    assert 0 < low[4] < 0.3 < high[4] < 1


def test_mover_ratio_solves_its_equations() -> None:
    a, b = 0.02, 0.01
    (l_a, u_a), (l_b, u_b) = wilson(a, 200), wilson(b, 300)
    assert u_b > 2 * b  # where the textbook formula for the low limit divides two negative numbers
    low, high = mover_ratio(a, Interval(l_a, u_a), b, Interval(l_b, u_b))
    assert (a - low * b) ** 2 == pytest.approx((a - l_a) ** 2 + low**2 * (u_b - b) ** 2, rel=1e-9)
    assert (a - high * b) ** 2 == pytest.approx((u_a - a) ** 2 + high**2 * (b - l_b) ** 2, rel=1e-9)


@given(a=st.floats(0.5, 5.0), b=st.floats(0.5, 5.0), cv_a=st.floats(0.01, 0.4), cv_b=st.floats(0.01, 0.4))
def test_mover_ratio_with_symmetric_limits_is_fieller(a: float, b: float, cv_a: float, cv_b: float) -> None:
    t = 2.1
    first, second = (
        Interval(np.asarray(x - t * x * cv), np.asarray(x + t * x * cv)) for x, cv in ((a, cv_a), (b, cv_b))
    )
    expected = fieller(a, a * cv_a, b, b * cv_b, t)
    np.testing.assert_allclose(mover_ratio(a, first, b, second), expected, rtol=1e-8)


def test_mover_ratio_without_a_fieller_interval_is_unbounded() -> None:
    a, b = np.array([1.0, 0.1, 0.1, 1.0]), np.array([0.2, 0.2, 1.0, 0.2])
    first = Interval(a - 0.3, a + 0.3)
    second = Interval(b - [0.3, 0.3, 0.3, 0.2], b + 0.3)
    low, high = mover_ratio(a, first, b, second)
    np.testing.assert_array_equal(low[:3], 0.0)
    np.testing.assert_array_equal(high[[0, 1, 3]], np.inf)
    assert np.isfinite(high[2])
    assert low[3] > 0


@pytest.mark.parametrize(("rate_a", "rate_b"), [(0.02, 0.02), (0.05, 0.1), (0.5, 0.4)])
def test_mover_covers_with_wilson_limits(rate_a: float, rate_b: float) -> None:
    trials = 200
    observed = np.arange(trials + 1) / trials
    a, b = observed[:, np.newaxis], observed[np.newaxis, :]
    first, second = wilson(a, trials), wilson(b, trials)
    probability = binomial(trials, rate_a)[:, np.newaxis] * binomial(trials, rate_b)
    for limits, truth in (
        (mover_difference(a, first, b, second), rate_a - rate_b),
        (mover_ratio(a, first, b, second), rate_a / rate_b),
    ):
        covered = (limits.low <= truth) & (truth <= limits.high) | np.isnan(limits.low)
        assert 0.94 < probability[covered].sum() < 0.97


# Two means


def test_welch_difference_matches_scipy() -> None:
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(3)
    x, y = rng.normal(1, 2, 13), rng.normal(0, 5, 29)
    expected = ttest_ind(x, y, equal_var=False).confidence_interval(0.9)
    summary = [(z.mean(), z.std(ddof=1) / math.sqrt(z.size), z.size - 1) for z in (x, y)]
    limits = welch_difference(*summary[0], *summary[1], confidence=0.9)
    np.testing.assert_allclose(limits, (expected.low, expected.high), rtol=1e-9)


def test_welch_log_ratio_is_welch_on_the_log_scale() -> None:
    limits = welch_log_ratio(0.6, 0.04, 19, 0.5, 0.03, 9)
    expected = welch_difference(math.log(0.6), 0.04 / 0.6, 19, math.log(0.5), 0.03 / 0.5, 9)
    np.testing.assert_allclose(np.log(limits), expected, rtol=1e-12)
    swapped = welch_log_ratio(0.5, 0.03, 9, 0.6, 0.04, 19)
    np.testing.assert_allclose(limits.low, 1 / swapped.high)
    assert np.isnan(welch_log_ratio([0.0, -1.0, 0.5], 0.1, 9, [0.5, 0.5, 0.0], 0.1, 9)).all()


def test_welch_without_spread() -> None:
    np.testing.assert_allclose(welch_difference(0.7, 0.0, 4, 0.2, 0.0, 4), (0.5, 0.5), rtol=1e-15)
    one_sided = welch_difference(0.7, 0.1, 4, 0.2, 0.0, 9)
    np.testing.assert_allclose(one_sided, student_t(0.5, 0.1, 4))
    assert np.isnan(welch_difference(0.7, np.nan, 0, 0.2, 0.1, 9)).all()
    known = welch_difference(0.7, 0.1, np.inf, 0.2, 0.1, np.inf)
    np.testing.assert_allclose(known.high, 0.5 + normal_quantile() * math.sqrt(0.02))


# Worst pairs


def test_worst_pairs_by_hand() -> None:
    assert widest_difference([-0.3, 0.1, -0.2], [-0.1, 0.2, 0.4]) == (0.1, 0.4)
    assert widest_difference([-0.3, -0.1], [0.1, 0.2]) == (0.0, 0.3)
    assert narrowest_ratio([0.9, 1.25, 0.5], [1.1, 2.5, 3.0]) == pytest.approx((1 / 3, 0.8))
    assert narrowest_ratio([0.9, 0.8], [1.1, 1.3]) == pytest.approx((1 / 1.3, 1.0))


def test_worst_pairs_with_open_ends() -> None:
    assert widest_difference([-np.inf, 0.1], [np.inf, 0.2]) == (0.1, np.inf)
    assert narrowest_ratio([0.0, 1.25], [np.inf, 2.0]) == (0.0, 0.8)
    assert narrowest_ratio([0.5, 0.4], [np.inf, 0.8]) == (0.0, 0.8)
    for limits in (
        widest_difference([0.1, np.nan], [0.2, 0.3]),
        widest_difference([], []),
        narrowest_ratio([0.5, 0.5], [0.6, np.nan]),
        narrowest_ratio([], []),
    ):
        assert np.isnan(limits).all()


@given(st.lists(st.tuples(st.floats(0.01, 10), st.floats(0.01, 10)), min_size=1, max_size=6))
def test_worst_pairs_do_not_depend_on_direction(pairs: list[tuple[float, float]]) -> None:
    low, high = np.sort(np.array(pairs), axis=1).T
    np.testing.assert_allclose(narrowest_ratio(low, high), narrowest_ratio(1 / high, 1 / low))
    assert widest_difference(low, high) == widest_difference(-high, -low)
    farthest, nearest = narrowest_ratio(low, high)
    upper = np.maximum(np.abs(np.log(low)), np.abs(np.log(high))).max()
    lower = max(0.0, np.maximum(np.log(low), -np.log(high)).max())
    assert (farthest, nearest) == pytest.approx((math.exp(-upper), math.exp(-lower)))


def test_everything_broadcasts() -> None:
    rate, trials = np.full((3, 1), 0.2), np.array([10, 20, 30, 40])
    limits = wilson(rate, trials)
    assert limits.low.shape == (3, 4)
    assert mover_difference(rate, limits, 0.5, wilson(0.5, 10)).low.shape == (3, 4)
    assert mover_ratio(rate, limits, 0.5, wilson(0.5, 10)).high.shape == (3, 4)
    assert welch_log_ratio(rate, 0.1, trials, 0.5, 0.1, 9).low.shape == (3, 4)
    assert isinstance(wilson(0.5, 10).low, np.ndarray)
