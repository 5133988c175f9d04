"""Selection to a capacity: how many, which, and how ties at the cut are broken and counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import ConfigError, DataError
from evenhand.stats.improvability import capacity_count, select_top


@given(st.lists(st.integers(0, 4), min_size=4, max_size=40), st.floats(0.2, 0.8), st.integers(0, 99))
def test_the_highest_scores_are_selected_and_ties_are_counted(scores: list[int], share: float, seed: int) -> None:
    places = round(share * len(scores))
    if not 0 < places < len(scores):
        return
    score = np.array(scores)
    found = select_top(score, share, np.random.default_rng(seed))
    assert found.selected.sum() == places
    assert score[found.selected].min() == found.cut
    assert (score[~found.selected] <= found.cut).all()
    assert found.tied == (score == found.cut).sum()
    assert found.tied_selected == (score[found.selected] == found.cut).sum()


def test_ties_are_broken_by_the_seed_alone_and_evenly() -> None:
    score = np.array([1.0, 5.0, 5.0, 5.0, 5.0, 9.0])
    counts = np.zeros(6)
    for seed in range(2_000):
        counts += select_top(score, 0.5, np.random.default_rng(seed)).selected
    assert counts[[0, 5]].tolist() == [0, 2_000]
    np.testing.assert_allclose(counts[1:5] / 2_000, 0.5, atol=0.05)
    twice = [select_top(score, 0.5, np.random.default_rng(7)).selected.tolist() for _ in range(2)]
    assert twice[0] == twice[1]


def test_without_ties_the_seed_does_not_matter() -> None:
    score = np.random.default_rng(0).random(100)
    first, second = (select_top(score, 0.03, np.random.default_rng(seed)) for seed in (1, 2))
    np.testing.assert_array_equal(first.selected, second.selected)
    assert (first.tied, first.tied_selected) == (1, 1)


@pytest.mark.parametrize("capacity", [0.0, 1.0, -0.1, 2.0, float("nan")])
def test_a_capacity_of_nobody_or_everybody_is_refused(capacity: float) -> None:
    with pytest.raises(ConfigError, match="above 0 and below 1"):
        capacity_count(capacity, 100)


def test_a_capacity_that_rounds_to_nobody_or_everybody_is_refused() -> None:
    with pytest.raises(ConfigError, match="selects nobody of 10 rows; raise it"):
        select_top(np.arange(10), 0.01, np.random.default_rng(0))
    with pytest.raises(ConfigError, match="selects everybody of 10 rows; lower it"):
        select_top(np.arange(10), 0.99, np.random.default_rng(0))


def test_a_missing_score_is_refused() -> None:
    with pytest.raises(DataError, match="none missing"):
        select_top([1.0, np.nan, 2.0], 0.5, np.random.default_rng(0))
