"""MOVER's differences and ratios against other implementations, Fieller, exact coverage, and their laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.intervals import mover, mover_difference, mover_ratio, wilson
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


ratios = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 2001)])
relative = st.floats(0.05, 1.6)


@given(a=st.floats(0.1, 5.0), b=st.floats(0.1, 5.0), half_a=relative, half_b=relative)
def test_mover_ratio_is_fiellers_set_among_nonnegative_ratios(a: float, b: float, half_a: float, half_b: float) -> None:
    # Also where b may be 0, when l_b is cut at 0: the set [r2, inf). Uncut, the low limit is 0 (see the docstring).
    first = Interval(np.asarray(a - a * half_a), np.asarray(a + a * half_a))
    second = Interval(np.asarray(b - b * half_b), np.asarray(b + b * half_b))
    low, high = mover_ratio(a, first, b, Interval(np.maximum(second.low, 0.0), second.high))
    inside = (a - ratios * b) ** 2 <= (a * half_a) ** 2 + (ratios * b * half_b) ** 2
    at_an_end = np.isclose(ratios, low, rtol=1e-6) | np.isclose(ratios, high, rtol=1e-6)
    assert (at_an_end | (inside == ((low <= ratios) & (ratios <= high)))).all()
    uncut = mover_ratio(a, first, b, second)
    assert uncut.high == high
    assert uncut.low == (low if second.low >= 0 else 0.0)


def test_mover_ratio_of_negative_numbers_is_undefined() -> None:
    near = Interval(np.array([-0.4, 0.5]), np.array([-0.2, 0.7]))
    there, back = (mover_ratio(*sides) for sides in (([-0.3, 0.6], near, 0.5, near), (0.5, near, [-0.3, 0.6], near)))
    for limits in (there, back):
        assert np.isnan([limits.low[0], limits.high[0]]).all()
        assert np.isfinite([limits.low[1], limits.high[1]]).all()


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


def test_a_ratio_of_exact_numbers_is_exact_whatever_the_rounding() -> None:
    a, b = np.random.default_rng(0).random((2, 2_000)) + 0.01
    low, high = mover_ratio(a, Interval(a, a), b, Interval(b, b))
    np.testing.assert_allclose(low, a / b, rtol=1e-6)
    np.testing.assert_allclose(high, a / b, rtol=1e-6)


def test_a_ratio_of_nothing_or_of_negative_numbers_has_no_interval() -> None:
    limits = Interval(np.array(0.1), np.array(0.3))
    for a, b, known in ((0.2, 0.2, True), (0.0, 0.2, True), (0.0, 0.0, False), (-0.1, 0.3, False), (0.3, -0.1, False)):
        found = mover_ratio(a, limits, b, limits)
        assert np.isfinite(found.low) == known
    assert np.isnan(mover_ratio(0.2, Interval(np.array(np.nan), np.array(0.3)), 0.2, limits)).all()


def test_limits_of_a_function_are_those_of_its_special_cases() -> None:
    rates, people = [np.array([0.0, 0.2, 0.7]), np.array([0.5, 0.9, 1.0])], (40, 90)
    limits = [wilson(rate, n) for rate, n in zip(rates, people, strict=True)]
    difference = mover(lambda a, b: a - b, rates, limits)
    for ours, expected in zip(difference, mover_difference(rates[0], limits[0], rates[1], limits[1]), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-15)
    odds = mover(lambda p: p / (1 + p), rates[:1], limits[:1])
    for ours, end in zip(odds, limits[0], strict=True):
        np.testing.assert_allclose(ours, end / (1 + end), atol=1e-15)


def test_a_function_of_an_estimate_without_limits_has_none() -> None:
    limits = [Interval(np.array([np.nan, 0.1]), np.array([np.nan, 0.3])), Interval(np.full(2, 0.1), np.full(2, 0.4))]
    low, high = mover(lambda a, b: a + b, [np.full(2, 0.2), np.full(2, 0.2)], limits)
    assert np.isnan([low[0], high[0]]).all()
    assert np.isfinite([low[1], high[1]]).all()
