"""The test of paired differences by their signs: against enumeration, McNemar's test and its own interval."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm, permutation_test
from statsmodels.stats.contingency_tables import mcnemar

from evenhand.errors import EvenhandError
from evenhand.stats.sign_flips import compare_pairs
from evenhand.stats.types import FloatArray

DIFFERENCES = st.lists(st.integers(-3, 3).map(float) | st.floats(-2, 2), min_size=1, max_size=40)


@pytest.mark.parametrize("seed", range(6))
def test_p_values_equal_an_enumeration_of_all_signs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    differences = rng.normal(0.4, 1.0, 11) if seed % 2 else rng.integers(-2, 4, 11).astype(float)
    sums = [abs(float(np.dot(signs, np.abs(differences)))) for signs in product((-1, 1), repeat=11)]
    share = np.mean(np.array(sums) >= abs(differences.sum()) - 1e-9)
    assert compare_pairs(differences).p_value == pytest.approx(share, abs=3 / 2**11 if seed % 2 else 1e-9)


@pytest.mark.parametrize(("more", "fewer", "same"), [(7, 1, 13), (30, 12, 50), (3, 3, 0), (0, 0, 9), (120, 80, 400)])
def test_differences_of_one_give_mcnemars_exact_test(more: int, fewer: int, same: int) -> None:
    differences = np.repeat([1.0, -1.0, 0.0], [more, fewer, same])
    expected = mcnemar([[same, more], [fewer, 0]], exact=True).pvalue if more + fewer else 1.0
    assert compare_pairs(differences, 1.0).p_value == pytest.approx(expected, rel=1e-9)


def _mean_difference(first: FloatArray, second: FloatArray) -> float:
    return float((first - second).mean())


def test_p_values_equal_scipys_permutations_of_pairs() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(0.3, 1.0, 12), rng.normal(0.0, 1.0, 12)
    theirs = permutation_test((x, y), _mean_difference, permutation_type="samples", n_resamples=10**6)
    assert compare_pairs(x - y).p_value == pytest.approx(theirs.pvalue, abs=2 / 2**12)


def test_the_shares_of_several_repetitions_are_exact() -> None:
    """Three repetitions: differences are multiples of a third, whatever their floating-point digits."""
    thirds = np.array([2, 1, 1, -1, 0, 3, 2, 1, -2, 1]) / 3
    whole = compare_pairs(3 * thirds)
    assert compare_pairs(thirds).p_value == pytest.approx(whole.p_value, rel=1e-9)


@given(DIFFERENCES, st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_limits_exclude_zero_exactly_where_the_test_rejects(differences: list[float], confidence: float) -> None:
    found = compare_pairs(differences, 3.0)
    low, high = found.limits(confidence)
    assert low <= found.mean + 1e-12
    assert found.mean <= high + 1e-12
    assert (low > 0 or high < 0) == (found.p_value < 1 - confidence)


@given(DIFFERENCES)
def test_order_and_side_do_not_matter(differences: list[float]) -> None:
    found, turned = compare_pairs(differences, 3.0), compare_pairs([-value for value in reversed(differences)], 3.0)
    assert turned.p_value == pytest.approx(found.p_value, rel=1e-6)
    (low, high), (turned_low, turned_high) = found.limits(0.95), turned.limits(0.95)
    assert (turned_low, turned_high) == pytest.approx((-high, -low), abs=1e-9)


def test_a_higher_confidence_never_has_narrower_limits() -> None:
    found = compare_pairs(np.random.default_rng(1).choice([1.0, -1.0, 0.0], 40, p=[0.3, 0.1, 0.6]), 1.0)
    limits = [found.limits(confidence) for confidence in np.linspace(0.5, 0.999, 60)]
    assert all(a[0] >= b[0] - 1e-12 and a[1] <= b[1] + 1e-12 for a, b in pairwise(limits))


def test_without_any_difference_the_limits_are_exact_bounds() -> None:
    low, high = compare_pairs(np.zeros(50), 1.0).limits(0.95)
    assert (low, high) == pytest.approx((-0.0711, 0.0711), abs=1e-4)
    assert high == pytest.approx(binomtest(0, 50).proportion_ci(0.95, method="exact").high)


def test_p_values_of_many_differences_are_those_of_a_normal_sum() -> None:
    differences = np.random.default_rng(3).normal(0.03, 1.0, 5_000)
    z = differences.sum() / np.sqrt((differences**2).sum())
    assert compare_pairs(differences).p_value == pytest.approx(2 * norm.sf(abs(z)), rel=0.02)


@pytest.mark.parametrize("wrong", [[], [np.nan], [np.inf, 1.0], [[1.0, 2.0]]])
def test_anything_but_finite_numbers_is_refused(wrong: list[float]) -> None:
    with pytest.raises(EvenhandError, match="`differences` must be finite numbers"):
        compare_pairs(wrong)
