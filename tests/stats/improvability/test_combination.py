"""Combining splits: the two rules, their order, their level, and the splits themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import ConfigError
from evenhand.stats.improvability import RULES, Rule, combine_splits, random_splits

P = st.lists(st.floats(0, 1), min_size=1, max_size=9)


@given(P, st.floats(0.001, 0.999))
def test_exchangeable_rejects_whenever_the_median_does(p: list[float], alpha: float) -> None:
    median, exchangeable = (combine_splits(p, alpha, rule) for rule in RULES)
    assert exchangeable.rejected or not median.rejected
    assert exchangeable.p <= median.p


@given(P, st.floats(0.001, 0.999))
def test_exchangeable_is_its_definition(p: list[float], alpha: float) -> None:
    found = combine_splits(p, alpha, "exchangeable")
    if len(p) == 1:
        assert bool(found.rejected) == (p[0] < alpha)
        return
    half = any(sum(value <= alpha / 2 for value in p[:k]) >= k / 2 for k in range(1, len(p) + 1))
    assert bool(found.rejected) == half


@given(P, st.permutations(range(9)))
def test_the_median_does_not_depend_on_the_order(p: list[float], order: list[int]) -> None:
    shuffled = [p[i] for i in order if i < len(p)]
    assert combine_splits(p, 0.1, "median") == combine_splits(shuffled, 0.1, "median")


@pytest.mark.parametrize(
    ("p", "alpha", "rejected"),
    [
        ([0.0524, 0.0530, 0.0223, 0.0312, 0.0158], 0.10, True),  # table 1 of the paper: median 0.0312 < 0.05
        ([0.0524, 0.0530, 0.0523, 0.0312, 0.0158], 0.10, False),
        ([0.05, 0.05, 0.05], 0.10, False),  # the median must be below alpha / 2
        ([0.09], 0.10, True),  # a single split is tested at alpha
        ([0.10], 0.10, False),
    ],
)
def test_the_median_rule(p: list[float], alpha: float, rejected: bool) -> None:
    assert bool(combine_splits(p, alpha, "median").rejected) is rejected


def test_margins_are_combined_one_by_one() -> None:
    p = np.random.default_rng(0).random((5, 7))
    for rule in RULES:
        together = combine_splits(p, 0.8, rule)
        for d in range(7):
            alone = combine_splits(p[:, d], 0.8, rule)
            assert together.p[d] == alone.p
            assert together.rejected[d] == alone.rejected
            assert together.median[d] == np.median(p[:, d])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shared", [0.0, 0.5, 0.9, 1.0])
def test_the_level_holds_for_exchangeable_p_values(rule: Rule, shared: float) -> None:
    """P-values of 5 splits with a common part, from independent to equal."""
    from scipy.special import ndtr

    rng = np.random.default_rng(3)
    z = np.sqrt(shared) * rng.standard_normal(20_000) + np.sqrt(1 - shared) * rng.standard_normal((5, 20_000))
    level = float(combine_splits(ndtr(z), 0.10, rule).rejected.mean())
    assert level < 0.10 + 4 * np.sqrt(0.09 / 20_000)


def test_splits_part_the_rows_and_differ() -> None:
    splits = random_splits(1000, 5, 2 / 3, np.random.default_rng(0))
    for split in splits:
        assert split.train.size == 666
        np.testing.assert_array_equal(np.sort(np.concatenate(split)), np.arange(1000))
    assert len({tuple(split.train.tolist()) for split in splits}) == 5
    again = random_splits(1000, 3, 2 / 3, np.random.default_rng(0))
    for first, second in zip(splits, again, strict=False):
        np.testing.assert_array_equal(first.train, second.train)


def test_a_share_that_is_whole_is_not_rounded_down() -> None:
    assert random_splits(30, 1, 0.7, np.random.default_rng(0))[0].train.size == 21


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((10, 0, 0.5), "`splits` must be at least 1"),
        ((10, 1, 1.0), "`train` must be between 0 and 1"),
        ((1, 1, 0.5), "one part is empty"),
    ],
)
def test_bad_splits_are_refused(arguments: tuple[int, int, float], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        random_splits(*arguments, np.random.default_rng(0))


def test_bad_p_values_and_rules_are_refused() -> None:
    for p in ([], [1.2], [float("nan")]):
        with pytest.raises(ConfigError, match="one p-value between 0 and 1 for each split"):
            combine_splits(p, 0.1)
    with pytest.raises(ConfigError, match="`alpha` must be between 0 and 1"):
        combine_splits([0.1], 0.0)
    with pytest.raises(ConfigError, match="`rule` got 'mean'"):
        combine_splits([0.1], 0.1, "mean")  # type: ignore[arg-type]


def test_the_median_rule_doubles_the_median_up_to_1_and_compares_it_with_half_the_level() -> None:
    p = np.array([[0.2, 0.02, 0.9], [0.3, 0.03, 0.8], [0.1, 0.04, 0.7]])
    found = combine_splits(p, 0.1, "median")
    np.testing.assert_allclose(found.p, [0.4, 0.06, 1.0])
    np.testing.assert_array_equal(found.rejected, [False, True, False])
    assert not combine_splits([0.04, 0.04], 0.08, "median").rejected  # at half the level it is not below it
    assert combine_splits([0.04, 0.04], 0.08, "exchangeable").rejected


@pytest.mark.parametrize(
    ("p", "rejected"), [([0.045, 0.001, 0.9], True), ([0.05, 0.001, 0.9], False), ([0.9, 0.06], False)]
)
def test_twice_the_median_is_held_against_the_level(p: list[float], rejected: bool) -> None:
    found = combine_splits(p, 0.1, "median")
    assert bool(found.rejected) is rejected
    assert float(found.p) == pytest.approx(min(1.0, 2 * float(np.median(p))))
