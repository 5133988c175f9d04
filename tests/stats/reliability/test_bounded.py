"""Limits of damage between 0 and 1: exact coverage by enumeration, laws, and the limit of nature."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from evenhand.errors import EvenhandError
from evenhand.stats.agreement import share_difference
from evenhand.stats.reliability import bounded_difference, bounded_limits, bounded_p
from evenhand.stats.types import FloatArray

numbers = st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.97, 1.0]), min_size=1, max_size=12).map(np.array)
tails = st.sampled_from([0.3, 0.025, 0.001])


@pytest.mark.parametrize("n", [1, 5, 20])
@pytest.mark.parametrize("tail", [0.1, 0.025])
def test_each_limit_misses_at_most_as_often_as_it_says(n: int, tail: float) -> None:
    """Summed over all samples of 0 and 1, the mean anywhere."""
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
    assert nature < float(bounded_limits(np.zeros(n), 0.025).high) < 1.25 * nature


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
