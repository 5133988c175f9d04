"""Quantiles of groups equal NumPy's, their limits SciPy's exact ones; means of skewed numbers have Hall's limits."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from evenhand.stats.intervals import mover_difference, mover_ratio
from evenhand.stats.quantiles import GroupQuantiles
from evenhand.stats.skewed import hall_quantile, hall_t
from evenhand.stats.types import Interval


def quantiles(values: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> GroupQuantiles:
    return GroupQuantiles.build(values, np.zeros(values.size, dtype=np.int64), weights, 1)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 501])
@pytest.mark.parametrize("q", [0.1, 0.25, 0.5, 0.9])
def test_values_are_those_of_numpy(n: int, q: float) -> None:
    values = np.random.default_rng(n).lognormal(size=n).round(1)
    assert quantiles(values).at(q)[0] == np.quantile(values, q, method="averaged_inverted_cdf")


@pytest.mark.parametrize("n", [3, 6, 15, 100, 5_000])
@pytest.mark.parametrize("q", [0.1, 0.5, 0.75])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_limits_are_the_exact_ones_of_scipy(n: int, q: float, confidence: float) -> None:
    values = np.random.default_rng(n).normal(size=n)
    expected: Any = stats.quantile_test(values, p=q)
    expected = expected.confidence_interval(confidence)
    low, high = quantiles(values).limits(q, np.array([0]), confidence)
    assert np.array([low[0], high[0]]) == pytest.approx(
        np.nan_to_num([expected.low, expected.high], nan=np.inf) * [-1.0 if np.isnan(expected.low) else 1.0, 1.0]
    )


def test_weights_are_repetition() -> None:
    rng = np.random.default_rng(5)
    values, times = rng.normal(size=200).round(1), rng.integers(1, 4, 200)
    for q in (0.1, 0.5, 0.9):
        repeated = quantiles(np.repeat(values, times)).at(q)
        assert quantiles(values, times.astype(float)).at(q) == pytest.approx(repeated)


def test_equal_weights_are_none() -> None:
    values = np.random.default_rng(6).normal(size=37)
    for weight in (1.0, 0.3):
        weighted, plain = quantiles(values, np.full(37, weight)), quantiles(values)
        assert weighted.at(0.5) == plain.at(0.5)
        assert np.array_equal(weighted.limits(0.5, np.array([0]), 0.95), plain.limits(0.5, np.array([0]), 0.95))


def test_open_limits_of_few_people_leave_only_that_side_open() -> None:
    nothing_above = Interval(np.array([1.0]), np.array([np.inf]))
    both = Interval(np.array([2.0]), np.array([4.0]))
    low, high = mover_difference([2.0], nothing_above, [3.0], both)
    assert (low[0], high[0]) == (pytest.approx(-1.0 - np.hypot(1.0, 1.0)), np.inf)
    low, high = mover_ratio([2.0], nothing_above, [3.0], both)
    assert 0 < low[0] < 2 / 3
    assert high[0] == np.inf


def test_a_group_without_people_has_no_quantile() -> None:
    found = GroupQuantiles.build(np.array([1.0, 2.0]), np.array([0, 2]), None, 3)
    assert found.at(0.5).tolist()[::2] == [1.0, 2.0]
    assert np.isnan(found.at(0.5)[1])
    assert np.isnan(found.limits(0.5, np.array([1]), 0.95)).all()


def test_hall_is_the_inverse_of_his_transformation() -> None:
    for skewness in (-0.7, 0.0, 0.2, 1.5):
        z = np.linspace(-3, 3, 13)
        t = hall_quantile(z, skewness)
        assert t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6 == pytest.approx(z)
        assert (np.diff(t) > 0).all()


def test_without_skewness_hall_is_student() -> None:
    values = np.random.default_rng(1).normal(size=20)
    low, high = hall_t(values.mean(), stats.sem(values), 0.0, 20, 0.95)
    assert (float(low), float(high)) == pytest.approx(stats.t.interval(0.95, 19, values.mean(), stats.sem(values)))
