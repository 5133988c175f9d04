"""Published settings by name, and products that are held fixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from evenhand.errors import ConfigError
from evenhand.stats.noise import (
    FixedFunction,
    FixedProduct,
    Flip,
    Normal,
    fixed_functions,
    fixed_products,
    published_names,
    published_noise,
)


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


def made_of(found: Sequence[FixedProduct | FixedFunction]) -> list[tuple[int, ...]]:
    return [(one.column, one.perturbed, *([one.factor] if isinstance(one, FixedProduct) else [])) for one in found]


def test_products_of_perturbed_columns_are_found() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(0, 2, (3, 300)).astype(float)
    features = np.column_stack([a, b, c, a * b, b * c, np.ones(300), np.zeros(300)])
    assert made_of(fixed_products(features, [0])) == [(3, 0, 1)]
    assert made_of(fixed_products(features, [2])) == [(4, 2, 1)]
    assert made_of(fixed_products(features, [0, 3])) == []
    assert made_of(fixed_products(features, [1])) == [(3, 1, 0), (4, 1, 2)]


def test_a_product_that_fails_in_a_few_rows_is_one() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 5_000)).astype(float)
    features = np.column_stack([a, b, a * b])
    features[1:26, 2] = 9.0
    (found,) = fixed_products(features, [0])
    assert (found.column, found.perturbed, found.factor, found.share) == (2, 0, 1, 0.995)
    features[26:60, 2] = 9.0
    assert fixed_products(features, [0]) == []


def test_a_rare_column_is_no_product_because_both_are_nearly_always_0() -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.random((3, 2_000)) < 0.05).astype(float)
    assert np.mean(a * b == c * (rng.random(2_000) < 0.1)) > 0.99
    assert fixed_products(np.column_stack([a, b, c * (rng.random(2_000) < 0.1)]), [0]) == []
    rare = np.column_stack([a, (b > 0) | (c > 0), a * ((b > 0) | (c > 0))])
    assert made_of(fixed_products(rare, [0])) == [(2, 0, 1)]


def test_functions_of_perturbed_columns_are_found() -> None:
    rng = np.random.default_rng(0)
    age, sex, income = rng.integers(18, 70, 500), rng.integers(0, 2, 500), rng.gamma(2.0, 15.0, 500)
    few = 1.0 - sex
    few[:4] = sex[:4]
    made = [age**2, 12 * age, age >= 40, 1 - sex, few, 2 * income, np.log(income), (income - 30) ** 2, income > 40]
    found = fixed_functions(np.column_stack([age, sex, income, *made]).astype(float), [0, 1, 2])
    assert made_of(found) == [(3, 0), (4, 0), (5, 0), (6, 1), (7, 1), (8, 2), (9, 2), (10, 2), (11, 2)]
    assert [one.repeated for one in found] == [True] * 5 + [False] * 4
    assert found[4].share == 0.992


@pytest.mark.parametrize("people", [5, 12, 20, 40, 300])
def test_columns_that_have_nothing_to_do_with_each_other_are_not_reported(people: int) -> None:
    for seed in range(25):
        rng = np.random.default_rng(seed)
        binary = rng.random((people, 12)) < rng.choice([0.02, 0.1, 0.5, 0.9, 0.98], 12)
        correlated = rng.normal(size=people)
        near = 0.95 * correlated + np.sqrt(1 - 0.95**2) * rng.normal(size=people)
        features = np.column_stack(
            [
                binary,
                rng.integers(0, 5, (people, 3)),
                correlated,
                near,
                rng.permutation(people),
                correlated > rng.normal(0, 0.5, people),
            ]
        ).astype(float)
        perturbed = [0, 2, 4, 6, 8, 10, 12, 15]
        assert not fixed_functions(features, perturbed)
        assert not fixed_products(features, perturbed)
