"""Many tests at once: adjusted p-values against hand calculation and simulation, and two directions of one test."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal

from evenhand.errors import ConfigError
from evenhand.stats.improvability import (
    Criteria,
    Pair,
    SplitTest,
    bootstrap_values,
    calibrated_p,
    forward_splits,
    get_utility,
    make_rows,
)
from evenhand.stats.improvability.resampling import parts_correlation
from evenhand.stats.multiplicity import adjusted_in_tables, adjusted_p

METHODS: dict[Literal["bonferroni", "holm", "benjamini_hochberg"], str] = {
    "bonferroni": "bonferroni",
    "holm": "holm",
    "benjamini_hochberg": "fdr_bh",
}
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@settings(deadline=None)  # the first example imports statsmodels
@given(P_VALUES)
@pytest.mark.slow
def test_adjusted_p_values_equal_statsmodels(p: list[float]) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    for method, name in METHODS.items():
        np.testing.assert_allclose(adjusted_p(p, method), multitest.multipletests(p, method=name)[1], rtol=1e-12)


def test_undefined_p_values_are_no_part_of_the_family() -> None:
    np.testing.assert_array_equal(adjusted_p([0.01, np.nan, 0.02], "bonferroni"), [0.02, np.nan, 0.04])
    np.testing.assert_array_equal(adjusted_p([np.nan]), [np.nan])
    with pytest.raises(ConfigError, match="did you mean 'holm'"):
        adjusted_p([0.1], "hom")  # type: ignore[arg-type]


def chosen_rows(p: list[float], q: float) -> set[int]:
    """Return the rows that Benjamini and Hochberg choose at level q, by their definition."""
    order = np.argsort(p)
    last = [k for k in range(1, len(p) + 1) if p[order[k - 1]] <= q * k / len(p)]
    return set(order[: max(last)].tolist()) if last else set()


def chosen(tables: list[list[float]], q: float) -> set[tuple[int, int]]:
    """Return table and row of what the two steps choose at level q, by their definition."""
    simes = [min(len(p) / (k + 1) * value for k, value in enumerate(sorted(p))) for p in tables]
    picked = chosen_rows(simes, q)
    return {(t, row) for t in picked for row in chosen_rows(tables[t], q * len(picked) / len(tables))}


@given(st.lists(P_VALUES, min_size=1, max_size=5), st.floats(0.001, 0.999))
def test_the_adjusted_p_value_of_a_row_is_the_least_level_at_which_it_is_chosen(
    tables: list[list[float]], q: float
) -> None:
    adjusted = adjusted_in_tables(tables)
    every = {(t, row): p for t, values in enumerate(adjusted) for row, p in enumerate(values)}
    if all(abs(p - q) > 1e-9 for p in every.values()):  # on the boundary rounding decides
        assert {place for place, p in every.items() if p < q} == chosen(tables, q)


def test_one_table_is_benjamini_and_hochberg() -> None:
    p = [0.01, 0.5, 0.02, np.nan]
    np.testing.assert_array_equal(adjusted_in_tables([p])[0], adjusted_p(p, "benjamini_hochberg"))


def test_tables_without_tests_change_nothing_and_the_order_of_tables_neither() -> None:
    tables: list[Any] = [[0.001, 0.02], [0.3, 0.6, 0.04]]
    usual = adjusted_in_tables(tables)
    with_empty = adjusted_in_tables([[np.nan], *tables, []])
    np.testing.assert_array_equal(np.concatenate(with_empty)[1:], np.concatenate(usual))
    np.testing.assert_array_equal(np.concatenate(adjusted_in_tables(tables[::-1])), np.concatenate(usual[::-1]))


def test_where_nothing_is_true_some_row_is_chosen_at_most_so_often() -> None:
    rng = np.random.default_rng(0)
    false = [min(min(p) for p in adjusted_in_tables(list(rng.random((5, 8))))) <= 0.05 for _ in range(2_000)]
    assert np.mean(false) == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / 2_000))


RIGHT = get_utility("classification")


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.6, 0.9, 0.99])
def test_it_is_the_supremum_over_the_null(rho: float) -> None:
    """By brute force: SciPy's bivariate normal over a grid of the whole quadrant a >= 0 >= b."""
    for p in (0.1, 0.02):
        k = -ndtri(p)
        both = multivariate_normal(cov=[[1, rho], [rho, 1]], allow_singular=True)
        null = [(a, b) for a in (0.0, 0.4, 1.0, 2.0, 7.0) for b in (0.0, -0.4, -1.0, -2.0, -7.0)]
        null += [(0.0, b) for b in np.linspace(-3, 0, 13)]
        found = [both.cdf([a - k, b - k]) + both.cdf([-a - k, -b - k]) for a, b in null]
        assert max(found) <= calibrated_p(p, rho) + 1e-9
        assert calibrated_p(p, rho) == pytest.approx(max(found), abs=2e-3)


def critical_value(alpha: float, correlation: float) -> float:
    """Return the critical value of a level-alpha test against two directions, in standard errors."""
    p_value = brentq(lambda p: float(calibrated_p(p, correlation)) - alpha, alpha / 2.1, alpha)
    return float(-ndtri(p_value))


def test_the_second_direction_is_free_unless_the_parts_are_highly_correlated() -> None:
    """The critical values of the reference table: z_alpha up to 0.74 and 0.79, 1.59 and 1.90 at 0.99."""
    assert critical_value(0.10, 0.70) == pytest.approx(-ndtri(0.10), abs=1e-3)
    assert critical_value(0.05, 0.78) == pytest.approx(-ndtri(0.05), abs=2e-3)
    assert critical_value(0.10, 0.99) == pytest.approx(1.59, abs=0.005)
    assert critical_value(0.05, 0.99) == pytest.approx(1.90, abs=0.005)


def test_it_lies_between_one_and_two_times_p_and_rises() -> None:
    p = np.linspace(0.0, 1.0, 201)
    for rho in (-1.0, 0.3, 0.95, 1.0):
        found = calibrated_p(p, rho)
        assert (found >= p - 1e-12).all()
        assert (found <= np.minimum(1, 2 * p) + 1e-12).all()
        assert (np.diff(found) > -1e-9).all()
    rising = calibrated_p(np.full(50, 0.05), np.linspace(-1, 1, 50))
    assert (np.diff(rising) > -1e-9).all()
    assert calibrated_p(0.05, np.nan) == pytest.approx(calibrated_p(0.05, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "b"), [(0.9, 0.0), (0.9, 1.0), (0.99, 0.5), (0.3, 4.0)])
def test_its_level_holds_in_normal_samples(rho: float, b: float) -> None:
    rng = np.random.default_rng(0)
    z = rng.multivariate_normal([0.0, b], [[1, rho], [rho, 1]], size=40_000)
    smaller = np.minimum(ndtr(-z).max(axis=1), ndtr(z).max(axis=1))
    assert (calibrated_p(smaller, rho) <= 0.1).mean() < 0.1 + 3 * np.sqrt(0.09 / 40_000)


def draws_of_two(swap: bool = False, n: int = 2_000) -> SplitTest:
    rng = np.random.default_rng(0)
    group, y = np.arange(n) % 2, rng.integers(0, 2, n)
    old = np.where(rng.random(n) < 0.55 + 0.3 * group, y, 1 - y)
    new = np.where(rng.random(n) < 0.90, y, 1 - y)
    rows = make_rows(1 - group if swap else group, y, old, new, utilities=[RIGHT], names="ab")
    draws = bootstrap_values(rows, resamples=400, rng=rng)
    return SplitTest(draws=draws, criteria=Criteria(RIGHT, (RIGHT,)), worst=[Pair(0, 1)], direction="either")


def test_the_worst_pair_is_not_asked_for() -> None:
    deltas = np.array([0.0, 0.3])
    test = draws_of_two()
    turned = SplitTest(draws=test.draws, criteria=test.criteria, worst=[Pair(1, 0)], direction="either")
    np.testing.assert_array_equal(test.fairness_p(0, deltas), turned.fairness_p(0, deltas))
    named = SplitTest(draws=test.draws, criteria=test.criteria, worst=[Pair(1, 0)])
    assert (test.fairness_p(0, deltas) >= named.fairness_p(0, deltas)).all()
    np.testing.assert_allclose(draws_of_two(swap=True).fairness_p(0, deltas), test.fairness_p(0, deltas), atol=0.03)


def test_the_correlation_is_that_of_the_parts() -> None:
    test = draws_of_two()
    contrast = test.fairness_contrasts[0][0]
    c, s = contrast.parts(test.draws.values)
    for x in (1.0, 0.4):
        expected = np.corrcoef(x * s + c, x * s - c)[0, 1]
        assert parts_correlation(test.draws, contrast, np.array([x]))[0] == pytest.approx(expected)


def test_rows_are_drawn_within_parts() -> None:
    """Each part holds one value of the outcome, so a sum within parts cannot vary."""
    part = np.repeat([0, 1], 200)
    rows = make_rows(np.arange(400) % 2, part, part * 0 + 1, part * 0 + 1, utilities=[RIGHT], names="ab")
    free = bootstrap_values(rows, resamples=200, rng=np.random.default_rng(0))
    fixed = bootstrap_values(rows, resamples=200, rng=np.random.default_rng(0), part=part)
    assert free.values[:, -1].std() > 0.01
    assert fixed.values[:, -1].std() < 1e-12
    np.testing.assert_array_equal(free.estimate, fixed.estimate)


def test_steps_test_each_later_row_once_with_the_rows_before() -> None:
    splits = forward_splits(101, 0.2, 8, np.random.default_rng(0))
    tested = np.concatenate([split.test for split in splits])
    assert np.unique(tested).size == tested.size == 101 - splits[0].train.size
    for earlier, later in pairwise(splits):
        assert set(later.train) == set(earlier.train) | set(earlier.test)
    with pytest.raises(ConfigError, match="10 rows cannot be tested in 20 steps"):
        forward_splits(10, 0.2, 20, np.random.default_rng(0))
