"""Correlations: published worked examples, SciPy and statsmodels, brute force, and laws."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata, spearmanr

from evenhand.errors import EvenhandError
from evenhand.stats.correlation import (
    cluster_t,
    contrast,
    correlation_t,
    hotelling_t,
    meng_z,
    midranks,
    rank_bootstrap,
    spearman,
    spearman_interval,
    spearman_matrix,
    steiger_z,
    two_sided_p,
    williams_t,
)
from evenhand.stats.draws import Draws

TESTS = (hotelling_t, williams_t, meng_z, steiger_z)
scales = arrays(np.int64, (9, 3), elements=st.integers(1, 4))


# May and Hittner (1997), A note on statistics for comparing dependent correlations, Psychological Reports 80: n = 50,
# r_yz from 0 to 0.8 in steps of 0.1. Their 2.24 for Meng at (0.5, 0.2, 0.5) is 2.2450 cut, not rounded.
MAY_HITTNER = [
    (hotelling_t, 0.5, 0.2, [1.73, 1.80, 1.89, 2.01, 2.17, 2.38, 2.68, 3.16, 4.07]),
    (hotelling_t, 0.7, 0.4, [2.46, 2.42, 2.45, 2.53, 2.67, 2.89, 3.22, 3.78, 4.91]),
    (meng_z, 0.5, 0.2, [1.62, 1.70, 1.80, 1.91, 2.06, 2.245, 2.50, 2.87, 3.50]),
    (meng_z, 0.7, 0.4, [2.03, 2.10, 2.20, 2.32, 2.47, 2.66, 2.94, 3.35, 4.05]),
]


@pytest.mark.replication
@pytest.mark.parametrize(("test", "r_xy", "r_xz", "printed"), MAY_HITTNER)
def test_the_table_of_may_and_hittner(test: Any, r_xy: float, r_xz: float, printed: list[float]) -> None:
    np.testing.assert_allclose(test(r_xy, r_xz, np.arange(9) / 10, 50), printed, atol=0.0051)


@pytest.mark.replication
@pytest.mark.parametrize(
    ("test", "arguments", "printed", "places"),
    [
        (hotelling_t, (0.612, 0.541, 0.466, 157), 1.158, 3),  # Glass and Stanley (1984), p. 311
        (hotelling_t, (0.55, 0.45, 0.60, 200), 1.91, 2),  # Guilford and Fruchter (1978), p. 164
        (meng_z, (0.63, -0.03, -0.19, 15), 1.68, 2),  # Meng, Rosenthal and Rubin (1992)
        (williams_t, (0.3, 0.4, 0.5, 100), -1.0767, 4),  # Silver, Hittner and May (2006), DEPCOR
        (steiger_z, (0.3, 0.4, 0.5, 100), -1.0718, 4),
        (meng_z, (0.3, 0.4, 0.5, 100), -1.0707, 4),
        (williams_t, (0.4, 0.5, 0.1, 103), -0.89, 2),  # Steiger (1980), case A, p. 249
    ],
)
def test_worked_examples(test: Any, arguments: tuple[float, ...], printed: float, places: int) -> None:
    assert round(float(test(*arguments)), places) == printed


@pytest.mark.replication
def test_steigers_own_example() -> None:
    """Steiger (1980), case A: the paper prints -0.8913 from rounded intermediate values; exactly it is -0.8887."""
    assert steiger_z(0.4, 0.5, 0.1, 103) == pytest.approx(-0.8887185, abs=1e-7)
    assert steiger_z(0.4, 0.5, 0.1, 103) == pytest.approx(-0.8913, abs=0.003)


@pytest.mark.replication
def test_p_values_of_the_worked_examples() -> None:
    assert two_sided_p(meng_z(0.63, -0.03, -0.19, 15)) / 2 == pytest.approx(0.047, abs=5e-4)
    assert two_sided_p(williams_t(0.3, 0.4, 0.5, 100), 97) == pytest.approx(0.2843, abs=5e-5)
    assert two_sided_p(steiger_z(0.3, 0.4, 0.5, 100)) == pytest.approx(0.2838, abs=5e-5)


@settings(deadline=None)
@given(scales)
def test_spearman_equals_scipy(rows: np.ndarray) -> None:
    np.testing.assert_array_equal(midranks(rows[:, 0]), rankdata(rows[:, 0]))
    if np.ptp(rows[:, 0]) and np.ptp(rows[:, 1]):
        assert spearman(rows[:, 0], rows[:, 1]) == pytest.approx(spearmanr(rows[:, 0], rows[:, 1]).statistic, abs=1e-12)
    else:
        assert np.isnan(spearman(rows[:, 0], rows[:, 1]))


def test_t_and_p_of_a_correlation_equal_scipy() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    y = x + 2 * rng.normal(size=60)
    assert two_sided_p(correlation_t(spearman(x, y), 60), 58) == pytest.approx(spearmanr(x, y).pvalue, rel=1e-9)


@pytest.mark.parametrize("test", TESTS)
def test_swapping_the_two_correlations_turns_the_sign(test: Any) -> None:
    assert test(0.6, 0.3, 0.2, 80) == pytest.approx(-test(0.3, 0.6, 0.2, 80), rel=1e-12)
    assert test(0.4, 0.4, 0.2, 80) == 0


@pytest.mark.parametrize("test", TESTS)
def test_arrays_give_what_numbers_give(test: Any) -> None:
    r1, r2, r3, n = np.array([0.5, 0.1]), np.array([0.2, 0.3]), np.array([0.1, -0.4]), np.array([50, 900])
    np.testing.assert_allclose(test(r1, r2, r3, n), [test(*row) for row in zip(r1, r2, r3, n, strict=True)], rtol=1e-14)


@pytest.mark.parametrize("test", TESTS)
def test_no_test_without_enough_rows(test: Any) -> None:
    assert np.isnan(test(0.5, 0.2, 0.1, 3))
    assert np.isfinite(test(0.5, 0.2, 0.1, 4))


def test_correlations_that_cannot_be_together_have_no_test() -> None:
    assert np.isnan(hotelling_t(0.9, -0.9, 0.9, 50))
    assert np.isnan(williams_t(0.9, -0.9, 0.9, 50))
    with pytest.raises(EvenhandError, match=r"between -1 and 1; got 1\.2"):
        meng_z(1.2, 0.1, 0.1, 50)


def test_williams_keeps_its_level_where_hotelling_does_not() -> None:
    """Three normal variables, y and z equally correlated with x: 20,000 samples of 30."""
    rng = np.random.default_rng(2)
    factor = np.linalg.cholesky([[1, 0.7, 0.7], [0.7, 1, 0.3], [0.7, 0.3, 1]])
    data = rng.normal(size=(20_000, 30, 3)) @ factor.T
    data -= data.mean(axis=1, keepdims=True)
    products = np.einsum("sij,sik->sjk", data, data)
    spread = np.sqrt(np.diagonal(products, axis1=1, axis2=2))
    r = products / spread[:, :, None] / spread[:, None, :]
    rejected = {
        test: (two_sided_p(test(r[:, 0, 1], r[:, 0, 2], r[:, 1, 2], 30), 27) < 0.05).mean()
        for test in (hotelling_t, williams_t)
    }
    assert rejected[williams_t] == pytest.approx(0.05, abs=0.006)
    assert rejected[hotelling_t] > 0.07


def all_resamples(values: np.ndarray, people: np.ndarray) -> np.ndarray:
    """Spearman's correlations of every ordered resample of three people, by repeating rows."""
    rows = [np.flatnonzero(people == person) for person in np.unique(people)]
    found = []
    for drawn in product(range(3), repeat=3):
        taken = np.concatenate([rows[person] for person in drawn])
        found.append(spearman_matrix(values[taken])[np.triu_indices(values.shape[1], 1)])
    return np.array(found)


def test_the_bootstrap_draws_what_repeating_people_gives() -> None:
    """Three people have 27 ordered resamples: the draws are these values, in these shares."""
    rng = np.random.default_rng(3)
    people = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    values = np.column_stack([rng.integers(1, 4, 9), rng.integers(1, 4, 9), rng.normal(size=9)])
    expected = np.nan_to_num(all_resamples(values, people), nan=9.0)  # one person alone may not vary
    draws = rank_bootstrap(values, people, resamples=27_000, rng=np.random.default_rng(4))
    known = np.unique(expected.round(9), axis=0)
    drawn, times = np.unique(np.nan_to_num(draws.values, nan=9.0).round(9), axis=0, return_counts=True)
    np.testing.assert_allclose(drawn, known, atol=2e-9)
    shares = [(expected.round(9) == row).all(axis=1).mean() for row in known]
    np.testing.assert_allclose(times / 27_000, shares, atol=0.012)
    np.testing.assert_allclose(draws.estimate, spearman_matrix(values)[np.triu_indices(3, 1)])


def test_the_bootstrap_does_not_see_the_order_of_rows() -> None:
    rng = np.random.default_rng(5)
    people = np.repeat(np.array(["ann", "bob", "cy", "di"]), 5)
    values = rng.integers(1, 7, (20, 2))
    order = rng.permutation(20)
    one, two = (
        rank_bootstrap(values[at], people[at], resamples=50, rng=np.random.default_rng(6))
        for at in (np.arange(20), order)
    )
    np.testing.assert_allclose(one.values, two.values, rtol=1e-12)


def test_rows_as_people_give_the_known_standard_error() -> None:
    """The standard error of Spearman's r of normal data: sqrt((1 + r²/2) / (n - 3)) on the scale of atanh."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=400)
    y = x + rng.normal(size=400)
    draws = rank_bootstrap(np.column_stack([x, y]), np.arange(400), resamples=2_000, rng=rng)
    found = cluster_t(draws, 400)
    low, high = spearman_interval(draws.estimate, 400)
    assert found.low[0] == pytest.approx(low[0], abs=0.015)
    assert found.high[0] == pytest.approx(high[0], abs=0.015)


def test_people_who_give_alike_rows_are_fewer_than_their_rows() -> None:
    """Each row five times over: the interval of people is that of one row per person."""
    rng = np.random.default_rng(8)
    values = rng.normal(size=(60, 2))
    values = values[np.argsort(values[:, 0])]  # people in the order of the cells, so that both draw alike
    once = rank_bootstrap(values, np.arange(60), resamples=500, rng=np.random.default_rng(9))
    often = rank_bootstrap(
        np.repeat(values, 5, axis=0), np.repeat(np.arange(60), 5), resamples=500, rng=np.random.default_rng(9)
    )
    np.testing.assert_allclose(often.values, once.values, atol=1e-12)


def test_a_contrast_and_its_t() -> None:
    values = np.random.default_rng(10).normal([0.7, 0.5], 0.05, (5_000, 2))
    found = cluster_t(contrast(Draws(np.array([0.7, 0.5]), values), 0, 1), people=75)
    assert found.value[0] == pytest.approx(0.2)
    assert found.stderr[0] == pytest.approx(0.05 * np.sqrt(2), rel=0.03)
    assert found.df == 74
    assert found.high[0] - found.low[0] == pytest.approx(2 * 1.9925 * found.stderr[0], rel=1e-4)


def test_a_column_that_does_not_vary_has_no_interval() -> None:
    rows = np.column_stack([np.ones(12), np.arange(12)])
    found = cluster_t(rank_bootstrap(rows, np.repeat(np.arange(4), 3), resamples=50, rng=np.random.default_rng(0)), 4)
    for value in (found.value, found.low, found.high, found.p_value):
        assert np.isnan(value).all()


@pytest.mark.parametrize(
    ("values", "people", "message"),
    [
        ([[1.0, 2.0], [np.nan, 1.0]], [0, 1], "row 1 is not"),
        ([[1.0], [2.0]], [0, 1], "at least two columns"),
        ([[1.0, 2.0], [3.0, 1.0]], [0], "one person a row, 2 in all"),
    ],
)
def test_wrong_input_is_told(values: Any, people: Any, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        rank_bootstrap(values, people, rng=np.random.default_rng(0))


@pytest.mark.parametrize("test", TESTS)
def test_one_correlation_among_many_is_enough_to_be_wrong(test: Any) -> None:
    with pytest.raises(EvenhandError, match=r"between -1 and 1; got 1\.5"):
        test([0.3, 1.5], 0.4, 0.5, 100)
