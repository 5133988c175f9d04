"""Limits of damage between 0 and 1: exact coverage by enumeration, laws, and the limit of nature."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom
from scipy.stats import t as student

from evenhand.errors import EvenhandError
from evenhand.stats.agreement import share_difference
from evenhand.stats.draws import Draws
from evenhand.stats.reliability import Unseen, bounded_difference, bounded_limits, bounded_p, gap_of
from evenhand.stats.reliability.bounded import half_widths
from evenhand.stats.types import FloatArray

numbers = st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.97, 1.0]), min_size=1, max_size=12).map(np.array)
tails = st.sampled_from([0.3, 0.025, 0.001])


@pytest.mark.parametrize("n", [1, 5, 20])
@pytest.mark.parametrize("tail", [0.1, 0.025])
def test_each_limit_misses_at_most_as_often_as_it_says(n: int, tail: float) -> None:
    """Summed over all samples of 0 and 1, the mean anywhere: where nobody is hurt no limit could be shorter."""
    limits = [bounded_limits(np.arange(n) < hurt, tail) for hurt in range(n + 1)]
    for mean in np.linspace(0.01, 0.99, 25):
        chance = binom.pmf(np.arange(n + 1), n, mean)
        assert chance @ [float(one.low) > mean for one in limits] <= tail
        assert chance @ [float(one.high) < mean for one in limits] <= tail


def test_people_with_different_means_do_no_harm() -> None:
    """Half of the people are always hurt and half never: the mean is one half, whoever is drawn."""
    low, high = bounded_limits(np.repeat([0.0, 1.0], 10), 0.025)
    assert low < 0.5 < high


@pytest.mark.parametrize("n", [15, 40, 100, 300])
def test_nobody_hurt_is_near_the_limit_of_nature(n: int) -> None:
    """No limit that holds for all distributions is below 1 - tail^(1/n)."""
    nature = 1 - 0.025 ** (1 / n)
    assert nature < float(bounded_limits(np.zeros(n), 0.025).high) < 1.006 * nature


@pytest.mark.parametrize("tail", [0.3, 0.025, 0.001])
def test_limits_of_0_and_1_are_clopper_and_pearsons(tail: float) -> None:
    for n, hurt in ((1, 1), (7, 2), (40, 1), (40, 20), (300, 3), (300, 299)):
        low, high = bounded_limits(np.arange(n) < hurt, tail)
        exact = beta.ppf(tail, hurt, n - hurt + 1), beta.ppf(1 - tail, hurt + 1, n - hurt) if hurt < n else 1.0
        assert (1 - float(low), float(high)) == pytest.approx((1 - exact[0], exact[1]), rel=6e-3)


def test_the_upper_limit_is_the_quantile_of_randomly_weighted_means() -> None:
    rng = np.random.default_rng(0)
    damage = rng.beta(0.1, 0.9, 60)
    drawn = rng.dirichlet(np.ones(61), 100_000) @ np.append(damage, 1.0)
    for tail in (0.2, 0.025):
        assert float(bounded_limits(damage, tail).high) == pytest.approx(np.quantile(drawn, 1 - tail), rel=0.01)


def test_many_people_have_the_normal_limits() -> None:
    damage = np.random.default_rng(0).random(100_000)
    half = 1.959964 * damage.std(ddof=1) / np.sqrt(damage.size)
    limits = [float(end) for end in bounded_limits(damage, 0.025)]
    assert limits == pytest.approx([damage.mean() - half, damage.mean() + half], abs=half / 50)


# What a group has missed ----------------------------------------------------------------------------------------------


def missed(bounded: bool, small: FloatArray, large: FloatArray) -> Unseen:
    spread = [float(one.std(ddof=1) / np.sqrt(one.size)) for one in (small, large)]
    means = 1 - float(small.mean()), 1 - float(large.mean())
    return Unseen((small, large), means, (spread[0], spread[1]), bounded)


@pytest.mark.parametrize("bounded", [True, False])
def test_what_a_small_group_has_missed_widens_the_gap_on_its_side_only(bounded: bool) -> None:
    rng = np.random.default_rng(0)
    unseen = missed(bounded, rng.beta(1, 99, 100), rng.beta(2, 98, 100_000))
    down, up = half_widths(0.001, float("inf"), 0.025, unseen)
    assert down > 5 * 0.00196 > up > 0.00195
    turned = missed(bounded, unseen.damage[1], unseen.damage[0])
    assert half_widths(0.001, float("inf"), 0.025, turned) == pytest.approx((up, down))
    assert half_widths(0.001, float("inf"), 0.025, None) == pytest.approx((0.00196, 0.00196), abs=1e-6)


def test_of_a_group_of_zeros_or_of_one_person_nothing_is_allowed_for() -> None:
    """Such a group has no test by the bootstrap."""
    some = np.full(50, 0.1)
    assert [
        missed(True, np.zeros(50), some).lower(0, 0.025),
        Unseen((some[:1], some), (0.9, 0.9), (0, 0), True).lower(0, 0.025),
    ] == [0.0, 0.0]


def test_a_gap_of_damage_that_a_group_has_missed_is_not_called() -> None:
    """One in a hundred is hurt wholly, and these hundred people hold none of them."""
    rng = np.random.default_rng(3)
    small, large = rng.beta(1, 99, 100), rng.beta(2, 98.5, 1_000)
    unseen = missed(True, small, large)
    gap = float(large.mean() - small.mean())
    drawn = Draws(np.full(2, gap), gap + 0.0012 * rng.standard_normal((500, 2)))
    alone, with_it = gap_of(drawn), gap_of(drawn, unseen=unseen)
    assert alone.p_value < 1e-6 < 0.05 < with_it.p_value
    assert with_it.average_low < 0 < alone.average_low
    for confidence in (0.5, 0.9, 0.99):
        low, high = with_it.limits(confidence)
        assert (low > 0 or high < 0) == (with_it.p_value < 1 - confidence)
    assert with_it.simultaneous.low[0] < alone.simultaneous.low[0]


@settings(deadline=None, max_examples=40)
@given(numbers, tails)
def test_limits_hold_their_mean_and_widen_with_confidence(values: FloatArray, tail: float) -> None:
    (low, high), (lower, higher) = (bounded_limits(values, one) for one in (tail, tail / 2))
    assert 0 <= lower <= low <= values.mean() <= high <= higher <= 1
    np.testing.assert_allclose(bounded_limits(values[::-1], tail), (low, high))


@settings(deadline=None, max_examples=40)
@given(numbers, numbers, tails)
def test_a_difference_is_antisymmetric_and_p_agrees_with_it(a: FloatArray, b: FloatArray, tail: float) -> None:
    low, high = bounded_difference(a, b, tail)
    other = bounded_difference(b, a, tail)
    assert (float(low), float(high)) == pytest.approx((-float(other.high), -float(other.low)), abs=1e-9)
    assert low <= a.mean() - b.mean() <= high
    p = bounded_p(a, b)
    if abs(p - 2 * tail) > 1e-4:
        assert (low > 0 or high < 0) == (p < 2 * tail)


def test_all_or_nothing_is_clopper_and_pearson() -> None:
    a, b = np.repeat([0.0, 1.0], [28, 2]), np.repeat([0.0, 1.0], [10, 20])
    expected = share_difference(2 / 30, 30, 20 / 30, 30, 0.025)
    np.testing.assert_allclose(bounded_difference(a, b, 0.025), expected)
    assert bounded_p(a, b) < 0.001


@pytest.mark.parametrize("wrong", [[], [0.5, 1.2], [-0.1], [np.nan]])
def test_what_is_not_between_0_and_1_is_refused(wrong: list[float]) -> None:
    with pytest.raises(EvenhandError, match="numbers from 0 to 1"):
        bounded_limits(wrong, 0.025)


def test_what_a_group_may_have_missed_widens_one_side_by_hand() -> None:
    """t se is 2.2 for 10 degrees of freedom; what the first missed puts the gap lower, the second nothing."""
    hurt, unhurt = np.repeat([0.0, 0.1], 50), np.zeros(100)
    unseen = Unseen((hurt, unhurt), (0.9, 1.0), (0.03, 0.04), True)
    t, missed = float(student.ppf(0.975, 10)), unseen.lower(0, 0.025)
    down, up = half_widths(0.05, 10.0, 0.025, unseen)
    assert missed > 0.01
    assert down == pytest.approx(np.sqrt((t * 0.05) ** 2 + 2 * t * 0.03 * missed + missed**2))
    assert up == pytest.approx(t * 0.05)
    assert half_widths(0.05, 10.0, 0.025, None) == pytest.approx((t * 0.05, t * 0.05))


def test_what_four_people_may_have_missed_by_hand() -> None:
    hurt = np.array([0.0, 0.1, 0.2, 0.1])
    mean, error = 0.1, np.sqrt(0.02 / 3 / 4)  # squares about the mean add up to 0.02
    beyond = float(bounded_limits(hurt, 0.1).high) - mean - float(student.ppf(0.9, 3)) * error
    found = Unseen((hurt, hurt), (0.7, 0.7), (0.1, 0.1), True).lower(0, 0.1)
    assert found == pytest.approx(0.3 * beyond / mean)
    assert found > 0
