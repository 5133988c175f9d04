"""Rubin's rules against the formulas of a textbook, and the laws that pooling keeps."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.stats.imputation import drawn_rates, pooled
from evenhand.stats.intervals import t_quantile


def test_pooling_is_rubins_total_variance_with_the_degrees_of_barnard_and_rubin() -> None:
    q, stderr = np.array([2.1, 2.4, 1.9, 2.2, 2.6]), np.array([0.3, 0.32, 0.28, 0.3, 0.35])
    df, m = 40.0, 5
    half = t_quantile(df) * stderr
    found = pooled(q, q - half, q + half, df)
    between = (1 + 1 / m) * q.var(ddof=1)
    total = np.mean(stderr**2) + between
    share = between / total
    observed = (df + 1) / (df + 3) * df * (1 - share)
    freedom = 1 / (share**2 / (m - 1) + 1 / observed)
    assert found.value == pytest.approx(q.mean())
    assert (found.share, found.df) == pytest.approx((share, freedom))
    assert found.high - found.value == pytest.approx(float(t_quantile(freedom)) * np.sqrt(total))


def test_sets_that_agree_add_nothing_but_degrees_of_freedom() -> None:
    found = pooled([1.0] * 4, [0.5] * 4, [1.5] * 4, df=1e6)
    assert found.share == 0
    assert (found.low, found.high) == pytest.approx((0.5, 1.5), abs=1e-4)


def test_each_side_keeps_its_own_length() -> None:
    found = pooled([0.0, 0.1, -0.1], [-1.0, -0.9, -1.1], [0.5, 0.6, 0.4], df=200)
    assert found.value - found.low > 1.8 * (found.high - found.value)


def test_limits_for_several_numbers_together_stay_as_many_times_as_wide() -> None:
    q, half = np.array([0.0, 0.2, 0.1]), np.array([1.0, 1.1, 0.9])
    one, both = pooled(q, q - half, q + half, 50), pooled(q, q - 1.5 * half, q + 1.5 * half, 50, times=1.5)
    assert both.high - both.value == pytest.approx(1.5 * (one.high - one.value))


def test_known_rates_stay_and_uncertain_ones_have_their_error() -> None:
    drawn = drawn_rates([10.0, 20.0], [0.0, 2.0], 20_000, np.random.default_rng(0))
    assert (drawn[:, 0] == 10).all()
    assert drawn[:, 1].min() > 0
    assert np.log(drawn[:, 1]).std() == pytest.approx(0.1, rel=0.02)
    with pytest.raises(EvenhandError, match="0 or more"):
        drawn_rates([1.0], [-1.0], 2, np.random.default_rng(0))
    with pytest.raises(EvenhandError, match="at least 2 imputed"):
        pooled([1.0], [0.5], [1.5], 10)


def test_where_nothing_varies_no_share_of_the_variance_is_that_of_imputation() -> None:
    found = pooled([1.0, 1.0], [1.0, 1.0], [1.0, 1.0], df=100)
    assert (found.value, found.low, found.high, found.share) == (1.0, 1.0, 1.0, 0.0)
