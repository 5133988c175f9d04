"""The outermost limit of many pairs is that of the list of all limits."""

from __future__ import annotations

from itertools import product
from typing import Literal

import numpy as np
import pytest

from evenhand.stats.two_rates import compare_rates, extreme_bound, smallest_p
from evenhand.stats.two_rates.comparison import Kind, Side

Which = Literal["smallest", "largest"]
KINDS: tuple[Kind, ...] = ("difference", "ratio")
SIDES: tuple[Side, ...] = ("lower", "upper")
ENDS: tuple[Which, ...] = ("smallest", "largest")


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_outermost_of_all_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = rng.integers(3, (60, 400)[seed % 2], (2, 12))
    yes = rng.binomial(people, rng.beta(1, 6, people.shape))
    for kind, side, which in product(KINDS, SIDES, ENDS):
        pairs = compare_rates(yes[0], people[0], yes[1], people[1], kind)
        bounds = pairs.bound_at(side, 0.025)
        start = np.inf if which == "smallest" else -np.inf
        expected = (np.nanmin if which == "smallest" else np.nanmax)(bounds)
        assert extreme_bound(pairs, side, 0.025, which, start) == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_nothing_beyond_what_is_known_changes_it() -> None:
    pairs = compare_rates([3, 30], [40, 90], [1, 25], [30, 80])
    assert extreme_bound(pairs, "upper", 0.025, "largest", 0.9) == 0.9
    nobody = compare_rates([0], [40], [0], [30], "ratio")
    assert extreme_bound(nobody, "upper", 0.025, "smallest", 1.0) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_the_smallest_p_value_is_that_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = rng.integers(1, (40, 400)[seed % 2], (2, 60))
    yes = rng.binomial(people, rng.beta(2, 6, people.shape))
    pairs = compare_rates(yes[0], people[0], yes[1], people[1])
    assert smallest_p(pairs) == pairs.p_value.min()
    assert np.isnan(smallest_p(compare_rates([], [], [], [])))


@pytest.mark.parametrize("seed", range(4))
def test_a_null_is_rejected_where_its_p_value_is_below_the_level(seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = rng.integers(1, (40, 2000)[seed % 2], (2, 80))
    yes = rng.binomial(people, rng.beta(1, 3, people.shape))
    for kind, side, tail in product(KINDS, SIDES, (0.5, 0.025, 1e-4)):
        pairs = compare_rates(yes[0], people[0], yes[1], people[1], kind)
        for null in (None, 0.1, 1.4 if kind == "ratio" else -0.2):
            is_below = pairs.one_sided(side, null) < tail
            np.testing.assert_array_equal(pairs.is_rejected(side, null, tail), is_below)
