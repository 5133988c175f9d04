"""Published settings by name, and products that are held fixed."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import ConfigError
from evenhand.stats.noise import Flip, Normal, fixed_products, published_names, published_noise


def test_every_name_is_known() -> None:
    assert len(published_names()) == len(set(published_names())) == 20
    for name in published_names():
        published_noise(name)


@pytest.mark.parametrize(
    ("name", "sd", "flips", "minima", "shares"),
    [
        ("raez-2024/all/5", 5.0, True, False, "bernoulli"),
        ("raez-2024-text/all/10", 10**0.5, True, False, "exact"),
        ("raez-2024/numeric/1", 1.0, False, False, "bernoulli"),
        ("raez-2024/categorical", None, True, False, "bernoulli"),
        ("raez-2024-text/minima/5", 5**0.5, True, True, "exact"),
    ],
)
def test_settings_say_what_the_study_did(name: str, sd: float | None, flips: bool, minima: bool, shares: str) -> None:
    found = published_noise(name)
    assert found.sd == (None if sd is None else pytest.approx(sd))
    assert (found.flips, found.minima, found.shares) == (flips, minima, shares)


def test_items_follow_the_setting() -> None:
    items = published_noise("raez-2024/minima/5").items([1, 2], [0], {1: 18.0})
    assert [item.model for item in items] == [Normal(5.0, minimum=18.0), Normal(5.0), Flip()]
    assert [item.model for item in published_noise("raez-2024/all/5").items([1], [0], {1: 18.0})] == [
        Normal(5.0),
        Flip(),
    ]
    assert [item.columns for item in published_noise("raez-2024/categorical").items([1], [0])] == [(0,)]
    assert [item.columns for item in published_noise("raez-2024/numeric/1").items([1], [0])] == [(1,)]


@pytest.mark.parametrize("name", ["raez-2024/all", "raez-2024/all/2", "raez-2024/categorical/5", "nothing", ""])
def test_unknown_names_are_answered(name: str) -> None:
    with pytest.raises(ConfigError, match="There is no noise setting"):
        published_noise(name)


def test_products_of_perturbed_columns_are_found() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(0, 2, (3, 300)).astype(float)
    features = np.column_stack([a, b, c, a * b, b * c, np.ones(300), np.zeros(300)])
    assert [tuple(found) for found in fixed_products(features, [0])] == [(3, 0, 1)]
    assert [tuple(found) for found in fixed_products(features, [2])] == [(4, 2, 1)]
    assert [tuple(found) for found in fixed_products(features, [0, 3])] == []
    assert {tuple(found) for found in fixed_products(features, [1])} == {(3, 1, 0), (4, 1, 2)}


def test_a_product_that_fails_in_one_row_is_none() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 5_000)).astype(float)
    features = np.column_stack([a, b, a * b])
    features[1, 2] = 9.0
    assert fixed_products(features, [0]) == []
