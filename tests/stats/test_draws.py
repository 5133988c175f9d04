"""Intervals of draws: by hand, by sorting all draws, and where draws tie, are undefined or infinite."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from evenhand.stats.draws import Draws, upper_quantile
from evenhand.stats.types import FloatArray


def draws_of(values: FloatArray, estimate: FloatArray) -> Draws:
    return Draws(estimate, values)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_percentile_and_basic_by_hand() -> None:
    values = np.arange(1.0, 101.0)[:, None]
    draws = draws_of(generator().permutation(values), np.array([40.0]))
    np.testing.assert_array_equal(np.ravel(draws.percentile(0.9)), [5.0, 96.0])
    np.testing.assert_array_equal(np.ravel(draws.basic(0.9)), [-16.0, 75.0])


@pytest.mark.parametrize("method", ["percentile", "basic", "bca"])
def test_intervals_mirror(method: str) -> None:
    values = generator(4).gamma(2.0, size=(999, 3))
    draws = Draws(np.array([1.5, 1.9, 2.5]), values, lambda: np.array([0.05, -0.02, 0.0]))
    mirrored = Draws(-draws.estimate, -values, lambda: -draws.acceleration)
    there, back = getattr(draws, method)(0.9), getattr(mirrored, method)(0.9)
    np.testing.assert_array_equal([there.low, there.high], [-back.high, -back.low])


def test_bca_without_bias_and_acceleration_is_the_percentile_interval() -> None:
    values = generator(5).normal(size=(1000, 1))
    draws = draws_of(values, np.median(values, axis=0))
    np.testing.assert_array_equal(draws.bca(), draws.percentile())


def test_ties_count_half_in_the_bias_even_when_rounding_parts_them() -> None:
    values = np.repeat([0.1, 0.2, 0.3], [300, 400, 300])[:, None]
    parted = values + generator(6).choice([0.0, 1e-16], size=values.shape)
    for draws in (draws_of(values, np.array([0.2])), draws_of(parted, np.array([0.2]))):
        np.testing.assert_allclose(draws.bca(0.5), draws.percentile(0.5), rtol=1e-12)


# Undefined and infinite draws


def test_few_undefined_draws_are_left_out_many_undo_the_interval() -> None:
    values = np.tile(np.arange(1.0, 101.0)[:, None], (10, 3))
    values[:50, 1] = np.nan
    values[:51, 2] = np.nan
    draws = draws_of(values, np.full(3, 50.0))
    np.testing.assert_array_equal(draws.undefined, [0, 50, 51])
    kept = draws_of(values[50:, 1:2], np.full(1, 50.0))
    for method in ("percentile", "basic", "bca"):
        limits = getattr(draws, method)()
        assert np.isfinite(limits.low[:2]).all()
        assert np.isnan([limits.low[2], limits.high[2]]).all()
        assert (limits.low[1], limits.high[1]) == tuple(np.ravel(getattr(kept, method)()))
    assert draws.stderr()[1] == pytest.approx(values[50:, 1].std(ddof=1), rel=1e-12)
    assert np.isnan(draws.stderr()[2])


def test_infinite_draws_are_the_largest() -> None:
    values = np.arange(1.0, 1001.0)[:, None]
    values[-100:] = np.inf
    draws = draws_of(values, np.array([500.5]))
    for limits in (draws.percentile(), draws.bca()):
        assert limits.low[0] == pytest.approx(26, abs=2)
        assert limits.high[0] == np.inf
    assert draws.basic().low[0] == -np.inf
    assert np.isnan(draws.stderr()[0])


def test_undefined_estimate_has_no_interval() -> None:
    draws = draws_of(generator().normal(size=(100, 1)), np.array([np.nan]))
    for limits in (draws.percentile(), draws.basic(), draws.bca()):
        assert np.isnan(limits).all()


@pytest.mark.parametrize("method", ["percentile", "basic", "bca"])
def test_the_p_value_is_where_the_interval_reaches_zero(method: Literal["percentile", "basic", "bca"]) -> None:
    rng = np.random.default_rng(2)
    shift = np.array([0.4, -0.5, 1.5, 0.05])
    draws = Draws(shift, shift + 0.3 * (rng.gamma(4.0, 0.5, (4000, 4)) - 2.0), lambda: np.full(4, 0.03))
    p = draws.p_value(method)
    assert (p > 0).all()
    for place, value in enumerate(p):
        for alpha in (value * 0.8, min(value * 1.2, 0.999)):
            low, high = getattr(draws, method)(1 - alpha)
            assert bool(low[place] > 0 or high[place] < 0) == (alpha > value) or value <= 2 / 4000


# Only the tails are sorted


def many_draws(kind: str) -> FloatArray:
    """Return 10,000 draws of three statistics, more than are sorted as a whole."""
    values = generator(16).gamma(2.0, size=(10_000, 3))
    if kind == "by size":
        values.sort(axis=0)
    elif kind == "from the largest":
        values[:] = -np.sort(-values, axis=0)
    elif kind == "ties":
        values = values.round(1)
    elif kind == "constant":
        values[:] = 2.5
    elif kind == "infinite":
        values[::10] = np.inf
        values[5::10] = -np.inf
    elif kind == "undefined":
        values[:300, 1] = np.nan
    elif kind == "in waves":  # every tenth draw, the sample that tells where tails begin, lies apart
        values[::10] += 100.0
    return values


@pytest.mark.parametrize(
    "kind", ["plain", "by size", "from the largest", "ties", "constant", "infinite", "undefined", "in waves"]
)
@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.88, 0.95, 0.999, 0.9999])
def test_limits_are_those_of_all_draws_sorted(kind: str, confidence: float) -> None:
    values = many_draws(kind)
    limits = draws_of(values, np.full(3, 2.0)).percentile(confidence)
    for column, low, high in zip(values.T, *limits, strict=True):
        ordered = np.sort(column[~np.isnan(column)])
        rank = max(1, int(np.ceil(round((1 - confidence) / 2 * ordered.size, 9))))
        assert (low, high) == (ordered[rank - 1], ordered[-rank])


@pytest.mark.parametrize("kind", ["plain", "ties", "constant", "infinite", "undefined"])
def test_the_p_value_counts_draws_below_zero_and_half_of_those_at_it(kind: str) -> None:
    from scipy.special import ndtr, ndtri

    values = many_draws(kind) - 0.3
    p = draws_of(values, np.full(3, 1.7)).p_value("percentile")
    for column, found in zip(values.T, p, strict=True):
        defined = column[~np.isnan(column)]
        share = np.mean(defined < 0) + np.mean(defined == 0) / 2
        share = np.clip(share, 1 / (defined.size + 1), defined.size / (defined.size + 1))
        assert found == pytest.approx(max(2 * ndtr(-abs(ndtri(share))), 2 / (defined.size + 1)))


def test_the_upper_quantile_is_the_one_of_sorted_draws() -> None:
    draws = generator(17).normal(size=999)
    assert upper_quantile(draws, 0.9) == np.sort(draws)[-100]
    assert upper_quantile(np.append(draws, [np.nan] * 50), 0.9) == np.sort(draws)[-100]
    assert np.isnan(upper_quantile(np.full(3, np.nan), 0.9))
