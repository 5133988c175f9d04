"""The frontier's region: its values by hand, what the gap's limits follow from, and laws."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from evenhand.stats.improvability import (
    EIGENVALUE_LIMIT,
    ValueDraws,
    bootstrap_values,
    combine_splits,
    frontier_region,
    get_utility,
    make_rows,
    smallest_eigenvalue,
)
from evenhand.stats.types import FloatArray

RIGHT = get_utility("classification")


def drawn(
    seed: int, groups: int = 2, n: int = 1_500, order: FloatArray | None = None, agree: float = 0.0
) -> ValueDraws:
    rng = np.random.default_rng(seed)
    group, y = rng.integers(0, groups, n), rng.integers(0, 2, n)
    old = np.where(rng.random(n) < 0.6 + 0.1 * group, y, 1 - y)
    new = np.where(rng.random(n) < 0.85, y, 1 - y)
    new = np.where(rng.random(n) < agree, old, new)
    at = np.arange(n) if order is None else order.astype(int)
    made = make_rows(group[at], y[at], old[at], new[at], utilities=[RIGHT], names="abcd"[:groups])
    return bootstrap_values(made, resamples=800, rng=np.random.default_rng(1))


def test_values_are_the_accuracy_of_everyone_and_the_largest_difference() -> None:
    draws = drawn(0, groups=3)
    region = frontier_region(draws, 0, 0.95)
    for side in (0, 1):
        values = draws.estimate[:, 0, side]
        assert region[side, 0, 0] == values[-1]
        assert region[side, 1, 0] == pytest.approx(max(a - b for a, b in permutations(values[:-1], 2)))
    assert (region[..., 1] <= region[..., 0]).all()
    assert (region[..., 0] <= region[..., 2]).all()
    assert (region[:, 1, 1] >= 0).all()


def test_the_limits_by_brute_force() -> None:
    """The gap's limits are the extremes of |d| over the band of the difference, where d is one of two groups."""
    draws = drawn(3)
    parts = np.stack([draws.values[:, 2, 0, 1], draws.values[:, 0, 0, 1] - draws.values[:, 1, 0, 1]], axis=1)
    here = np.array([draws.estimate[2, 0, 1], draws.estimate[0, 0, 1] - draws.estimate[1, 0, 1]])
    furthest = np.sort(np.abs((parts - here) / parts.std(axis=0)).max(axis=1))
    reach = furthest[int(np.ceil(0.9 * (len(furthest) - 1)))] * parts.std(axis=0)
    band = np.linspace(here[1] - reach[1], here[1] + reach[1], 20_001)
    region = frontier_region(draws, 0, 0.9)[1]
    assert region[0, 1:] == pytest.approx([here[0] - reach[0], here[0] + reach[0]])
    assert region[1, 1:] == pytest.approx([np.abs(band).min(), np.abs(band).max()], abs=1e-4)


def test_row_order_and_more_confidence() -> None:
    order = np.random.default_rng(9).permutation(1_500).astype(np.float64)
    np.testing.assert_allclose(frontier_region(drawn(2), 0, 0.95), frontier_region(drawn(2, order=order), 0, 0.95))
    narrow, wide = (frontier_region(drawn(2), 0, confidence) for confidence in (0.8, 0.99))
    assert (np.ptp(wide[..., 1:], axis=-1) > np.ptp(narrow[..., 1:], axis=-1)).all()


def test_a_value_that_is_not_defined_has_no_region() -> None:
    values = np.full((3, 1, 2), np.nan)
    draws = ValueDraws(
        estimate=values,
        values=values[np.newaxis].repeat(5, axis=0),
        spread=None,
        spreads=None,
        rows=9,
        cells=9,
        method="cells",
    )
    assert np.isnan(frontier_region(draws, 0, 0.95)).all()


def test_the_smallest_eigenvalue_falls_as_decisions_agree() -> None:
    found = [smallest_eigenvalue(drawn(5, agree=share)) for share in (0.0, 0.9, 1.0)]
    assert found[0] > 0.5 > found[1] > found[2]
    assert found[2] < EIGENVALUE_LIMIT


def test_an_even_number_of_splits_is_stricter_than_the_papers_test() -> None:
    """Half of the splits reject at alpha / 2, so the paper's test does; the median of the four lies above."""
    p = [0.01, 0.02, 0.2, 0.3]
    assert np.mean(np.array(p) < 0.05) >= 0.5
    assert not combine_splits(p, 0.10, "median").rejected
    assert combine_splits(p, 0.10, "exchangeable").rejected


def test_mirrored_calibration_is_the_mean_outcome_of_the_others() -> None:
    u, w = get_utility("mirrored_calibration").terms([4.0, 6.0, 1.0, np.nan], [1, 0, 0, 1])
    assert u.sum() / w.sum() == 3.5
    assert get_utility("mirrored_calibration").better == "lower"


def test_a_gap_that_never_varies_has_no_limits_apart_from_its_value() -> None:
    """Both groups are alike in all resamples; accuracy is 0.5 with ten resamples around it."""
    drawn_values = np.linspace(0.3, 0.7, 11)[:, np.newaxis, np.newaxis, np.newaxis] * np.ones((11, 3, 1, 2))
    draws = ValueDraws(
        estimate=np.full((3, 1, 2), 0.5),
        values=drawn_values,
        spread=None,
        spreads=None,
        rows=99,
        cells=99,
        method="cells",
    )
    region = frontier_region(draws, 0, 0.9)
    np.testing.assert_allclose(region[:, 0], [[0.5, 0.3, 0.7]] * 2)  # the tenth of eleven distances, rounded up
    np.testing.assert_allclose(region[:, 1], np.zeros((2, 3)), atol=1e-12)


def test_few_degrees_of_freedom_widen_the_region_as_students_t_does() -> None:
    """A distance of q standard errors becomes the one that t leaves out as often as the normal distribution q."""
    draws = drawn(4)
    wide, normal = frontier_region(draws, 0, 0.95, freedom=5.0), frontier_region(draws, 0, 0.95)
    q = (normal[:, 0, 2] - normal[:, 0, 0]) / np.nanstd(draws.values[:, -1, 0, :], axis=0)
    assert (q > 1.9).all()
    ratio = (wide[:, 0, 2] - wide[:, 0, 0]) / (normal[:, 0, 2] - normal[:, 0, 0])
    np.testing.assert_allclose(ratio, -student.ppf(norm.cdf(-q), 5.0) / q, rtol=1e-9)
