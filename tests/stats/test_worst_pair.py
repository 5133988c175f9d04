"""The largest gap of several groups against brute force, SciPy's studentised range and exact levels."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.stats.intervals import bonferroni, clopper_pearson, mover_difference, student_t
from evenhand.stats.types import FloatArray, Interval
from evenhand.stats.worst_pair import (
    equality_p_values,
    narrowest_ratio,
    range_confidence,
    range_p,
    smallest_alpha,
    widest_difference,
    worst_pair,
)


def interval(low: list[float], high: list[float]) -> Interval:
    return Interval(np.array(low), np.array(high))


def test_ends_by_hand() -> None:
    assert widest_difference(interval([-0.3, 0.1, -0.2], [-0.1, 0.2, 0.4])) == (0.1, 0.4)
    assert widest_difference(interval([-0.3, -0.1], [0.1, 0.2])) == (0.0, 0.3)
    assert narrowest_ratio(interval([0.9, 1.25, 0.5], [1.1, 2.5, 3.0])) == pytest.approx((1 / 3, 0.8))
    assert narrowest_ratio(interval([0.9, 0.8], [1.1, 1.3])) == pytest.approx((1 / 1.3, 1.0))


def test_open_ends() -> None:
    assert widest_difference(interval([-np.inf, 0.1], [np.inf, 0.2])) == (0.1, np.inf)
    assert narrowest_ratio(interval([0.0, 1.25], [np.inf, 2.0])) == (0.0, 0.8)
    assert narrowest_ratio(interval([0.5, 0.4], [np.inf, 0.8])) == (0.0, 0.8)
    for limits in (
        widest_difference(interval([0.1, np.nan], [0.2, 0.3])),
        widest_difference(interval([], [])),
        narrowest_ratio(interval([0.5, 0.5], [0.6, np.nan])),
        narrowest_ratio(interval([], [])),
    ):
        assert np.isnan(limits).all()


@given(st.lists(st.tuples(st.floats(0.01, 10), st.floats(0.01, 10)), min_size=1, max_size=6))
def test_ends_do_not_depend_on_direction(pairs: list[tuple[float, float]]) -> None:
    low, high = np.sort(np.array(pairs), axis=1).T
    here, there = Interval(low, high), Interval(1 / high, 1 / low)
    np.testing.assert_allclose(narrowest_ratio(here), narrowest_ratio(there))
    assert widest_difference(here) == widest_difference(Interval(-high, -low))
    farthest, nearest = narrowest_ratio(here)
    upper = np.maximum(np.abs(np.log(low)), np.abs(np.log(high))).max()
    lower = max(0.0, np.maximum(np.log(low), -np.log(high)).max())
    assert (farthest, nearest) == pytest.approx((math.exp(-upper), math.exp(-lower)))


@pytest.mark.parametrize("groups", [2, 3, 10, 40])
def test_the_range_is_that_of_scipy(groups: int) -> None:
    from scipy.stats import studentized_range

    for z in (0.5, 1.96, 3.0, 4.5):
        expected = float(studentized_range.sf(z * math.sqrt(2), groups, np.inf))
        assert range_p(z, groups) == pytest.approx(expected, rel=1e-6)
    for confidence in (0.5, 0.95, 0.999):
        joint = range_confidence(confidence, groups)
        assert confidence - 1e-9 <= joint <= bonferroni(confidence, groups * (groups - 1) // 2)
    assert range_p(8.0, groups) == pytest.approx(groups * (groups - 1) / 2 * 1.244e-15, rel=1e-3)


def test_the_far_end_is_pointwise_and_the_near_end_joint() -> None:
    rate, people = np.array([0.31, 0.4, 0.48, 0.45]), np.array([200, 90, 120, 400])
    low, high = worst_pair(rate, partial(clopper_pearson, rate, people), "difference", 0.95)

    def pair(i: int, j: int, confidence: float) -> Interval:
        own = clopper_pearson(rate, people, confidence)
        sides = [(rate[k], Interval(own.low[k], own.high[k])) for k in (i, j)]
        return mover_difference(*sides[0], *sides[1])

    pairs = list(combinations(range(4), 2))
    far = [pair(i, j, 0.95) for i, j in pairs]
    near = [pair(i, j, range_confidence(0.95, 4)) for i, j in pairs]
    assert high == pytest.approx(max(max(-float(x.low), float(x.high)) for x in far))
    assert low == pytest.approx(max(0.0, *(max(float(x.low), -float(x.high)) for x in near)))
    assert low > 0


rates = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=6)


@settings(max_examples=40, deadline=None)
@given(rates)
def test_limits_hold_the_gap_are_nested_and_agree_with_the_p_value(counts: list[tuple[int, int]]) -> None:
    people = np.array([yes + no + 1 for yes, no in counts])
    rate = np.array([yes for yes, _ in counts]) / people
    limits = partial(clopper_pearson, rate, people)
    gap = rate.max() - rate.min()
    p = equality_p_values(rate, lambda confidence: limits(float(confidence[0])), [len(rate)])[0]
    before = (0.0, 0.0)
    for confidence in (0.2, 0.8, 0.95, 0.9999):
        low, high = worst_pair(rate, limits, "difference", confidence)
        assert 0 <= low <= gap + 1e-12 <= high + 2e-12 <= 1 + 3e-12
        assert before == (0.0, 0.0) or (low <= before[0] and high >= before[1])
        if abs(p - (1 - confidence)) > 1e-4:
            assert (low > 0) == (p < 1 - confidence)
        near, far = worst_pair(rate, limits, "ratio", confidence)
        assert (far < 1) == (low > 0)
        assert near <= (rate.min() / rate.max() if rate.max() > 0 else 1) + 1e-12
        before = low, high


def test_p_values_of_t_limits_are_those_of_t() -> None:
    from scipy.stats import t

    mean, df = np.array([0.5, -0.4, 0.01, 2.0]), np.array([3.0, 30.0, 1e12, 9.0])

    def margin(confidence: FloatArray) -> FloatArray:
        low, high = student_t(mean, 0.2, df, confidence)
        return np.maximum(low, -high)

    np.testing.assert_allclose(smallest_alpha(margin, (4,)), 2 * t.sf(np.abs(mean) / 0.2, df), rtol=1e-4)
