"""Differences of two groups' agreement: against limits made otherwise, and laws."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import multinomial
from scipy.stats import t as student

from evenhand.stats.agreement import (
    ac1_limits,
    coefficient_difference,
    p_of_equality,
    shared_shape_stderr,
    unseen_tail,
)
from evenhand.stats.types import FloatArray, Interval


def test_p_is_where_the_wider_limits_begin_to_hold_0() -> None:
    a, b, se, df = 0.9, 0.7, 0.05, 59

    def nearer_end(tail: float) -> float:
        q = float(student.isf(tail, df)) * se
        ends = (a - q, b + q), (1 - (1 - a) * np.exp(q / (1 - a)), 1 - (1 - b) * np.exp(-q / (1 - b)))
        return min(a - b - float(np.hypot(a - low, high - b)) for low, high in ends)

    found = p_of_equality(partial(coefficient_difference, ([a], se, df), ([b], se, df)), (1,))
    assert found[0] == pytest.approx(2 * brentq(nearer_end, 1e-9, 0.4999), rel=1e-6)


def test_limits_of_coefficients_by_hand() -> None:
    a, se_a, b, se_b, df, tail = 0.8, 0.06, 0.5, 0.1, 19, 0.01
    t = student.ppf(1 - tail, df)
    both = ((a, se_a), (b, se_b))
    logs = [[1 - (1 - v) * np.exp(sign * t * s / (1 - v)) for sign in (1, -1)] for v, s in both]
    low = min(a - b - t * np.hypot(se_a, se_b), a - b - np.hypot(a - logs[0][0], logs[1][1] - b))
    high = max(a - b + t * np.hypot(se_a, se_b), a - b + np.hypot(logs[0][1] - a, b - logs[1][0]))
    found = coefficient_difference((a, se_a, df), (b, se_b, df), tail)
    assert (float(found.low), float(found.high)) == pytest.approx((low, high))


def test_turning_the_groups_turns_the_limits() -> None:
    there = coefficient_difference((0.9, 0.03, 40), (0.7, 0.08, 20), 0.025)
    back = coefficient_difference((0.7, 0.08, 20), (0.9, 0.03, 40), 0.025)
    assert (float(there.low), float(there.high)) == pytest.approx((-float(back.high), -float(back.low)))


@pytest.mark.parametrize("bad", [(1.0, 0.0, 9), (0.5, 0.0, 9), (0.5, np.nan, 9), (np.nan, 0.1, 9), (0.5, 0.1, 0)])
def test_what_has_no_spread_has_no_limits_and_no_p(bad: tuple[float, float, float]) -> None:
    limits = partial(coefficient_difference, ([bad[0]], [bad[1]], [bad[2]]), ([0.4], [0.1], [20]))
    assert np.isnan(limits(0.025).low).all()
    assert np.isnan(p_of_equality(limits, (1,))).all()


def test_heavy_tails_are_learned_from_the_larger_group() -> None:
    """Errors of both groups with 3 degrees of freedom: of the tests made, 3 % were false, and 20 % before."""
    rng, called = np.random.default_rng(0), []
    for _ in range(300):
        squares = [(rng.standard_t(3, people) - rng.standard_t(3, people)) ** 2 for people in (50, 500)]
        value = [1 - one.mean() / 40 for one in squares]
        stderr = [one.std(ddof=1) / 40 / np.sqrt(one.size) for one in squares]
        if min(one.sum() ** 2 / (one**2).sum() for one in squares) < 10:
            continue
        alike = shared_shape_stderr((value[0], stderr[0], 50), (value[1], stderr[1], 500))
        called.append(
            [
                not limits.low <= 0 <= limits.high
                for limits in (
                    coefficient_difference((value[0], one[0], 49), (value[1], one[1], 499), 0.025)
                    for one in (stderr, alike)
                )
            ]
        )
    before, after = np.mean(called, axis=0)
    assert after <= 0.06 < 0.12 < before


def test_errors_shaped_alike_have_the_same_relative_spread() -> None:
    """The unit of errors does not matter, nor the order of groups, and nothing grows smaller."""
    small, large = shared_shape_stderr((0.9, 0.01, 50), (0.6, 0.05, 300))
    np.testing.assert_allclose(shared_shape_stderr((0.6, 0.05, 300), (0.9, 0.01, 50)), (large, small))
    half = shared_shape_stderr((0.95, 0.005, 50), (0.8, 0.025, 300))
    assert (float(half[0]), float(half[1])) == pytest.approx((float(small) / 2, float(large) / 2))
    assert small >= 0.01
    assert large >= 0.05


def test_errors_that_may_have_been_missed_only_lower_a_limit_and_less_so_with_more_people() -> None:
    people = np.array([20.0, 50.0, 499.0, 500.0, 5_000.0])
    more = unseen_tail(0.9, people, 8.0, 10.0, 0.025)
    assert np.all(np.diff(more) < 0)
    assert unseen_tail(0.8, 50, 8.0, 10.0, 0.025) == pytest.approx(2 * more[1])  # in proportion to the disagreement
    assert unseen_tail(0.9, 50, 8.0, 10.0, 0.001) > more[1]  # a rarer miss, more of it
    groups = ((0.9, 0.01, 49), (0.8, 0.01, 499))
    plain, wide = (coefficient_difference(*groups, 0.025, unseen) for unseen in ((), (more[1], 0.0)))
    assert wide.low < plain.low
    assert wide.high == plain.high


def test_a_small_group_without_far_off_people_is_not_called_better_for_that() -> None:
    """Errors of equal variance, in the small group one in fifty seven times as large: none of 60 people has one."""
    rng = np.random.default_rng(0)
    small, large = 0.5 * rng.standard_normal(60) ** 2, rng.standard_normal(500) ** 2  # what 60 people show of it
    (one, se_one), (other, se_other) = ((1 - d.mean() / 8, d.std(ddof=1) / 8 / np.sqrt(d.size)) for d in (small, large))
    given = ((one, se_one, 59), (other, se_other, 499))
    farthest = (small.max() / small.mean(), large.max() / small.mean())

    def p(*, allowed: bool) -> float:
        def limits(tail: FloatArray) -> Interval:
            unseen = (
                unseen_tail(one, 60, *farthest, tail),
                unseen_tail(other, 500, large.max() / large.mean(), 0.0, tail),
            )
            return coefficient_difference(*given, tail, unseen if allowed else ())

        return float(p_of_equality(limits, ()))

    assert p(allowed=False) < 0.01
    assert p(allowed=True) > 0.05


# AC1 of a group -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "yes", "kappa"), [(15, 0.15, 0.2), (15, 0.5, 0.9), (25, 0.15, 0.6), (25, 0.05, 0.6)])
def test_limits_of_ac1_cover_in_all_tables_together(n: int, yes: float, kappa: float) -> None:
    """Exactly, summed over all tables of so many people; the standard error is that of the delta method."""
    differ = (1 - kappa) * yes * (1 - yes)
    chance = np.array([yes - differ, differ, differ, 1 - yes - differ])
    truth = 1 - 2 * differ / (1 - 2 * yes * (1 - yes))
    covered = 0.0
    for both, apart in ((b, d) for b in range(n + 1) for d in range(n + 1 - b)):  # who of two said yes does not matter
        share, disagree = (both + apart / 2) / n, apart / n
        expected = 2 * share * (1 - share)
        slope = disagree / (1 - expected) ** 2 * 2 * (1 - 2 * share)
        parts = -np.array([0, 1, 0]) / (1 - expected) - slope * np.array([1, 0.5, 0])
        cells = np.array([both, apart, n - both - apart]) / n
        stderr = np.sqrt((cells @ parts**2 - (cells @ parts) ** 2) / n)
        low, high = ac1_limits(1 - disagree, n, expected, float(stderr), 0.025)
        held = low <= truth + 1e-9 and truth - 1e-9 <= high
        covered += held * multinomial.pmf([both, apart, n - both - apart], n, [chance[0], 2 * differ, chance[3]])
    assert covered >= 0.95


def test_limits_of_ac1_with_full_agreement_are_those_of_no_disagreement() -> None:
    low, high = ac1_limits(1.0, 40, 0.5, float("nan"), 0.025)
    assert (float(low), float(high)) == pytest.approx((1 - 2 * (1 - 0.025 ** (1 / 40)), 1.0))
