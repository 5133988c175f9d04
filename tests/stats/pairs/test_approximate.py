"""Random pairs: within four standard errors of the exact value, with the same interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evenhand.stats.pairs import individual_fairness
from evenhand.stats.pairs.approximate import PairDraw, aligned_bounds
from evenhand.stats.pairs.inputs import People
from evenhand.stats.types import FloatArray

Columns = tuple[FloatArray, FloatArray, FloatArray]
MakeColumns = Callable[[str, int], Columns]


@pytest.mark.parametrize("kind", ["continuous", "ties", "mixed"])
def test_within_four_standard_errors(kind: str, surveyed: bool, people: MakeColumns) -> None:
    columns = people(kind, 300)
    survey = np.random.default_rng(1).gamma(2.0, 1.0, 300) if surveyed else None
    exact, sampled = (
        individual_fairness(*columns, weight=0.6577, survey_weight=survey, method=method)
        for method in ("strips", "sampled")
    )
    assert abs(sampled.value - exact.value) <= sampled.error < 2e-3
    assert sampled.violated == pytest.approx(exact.violated, abs=4e-3)
    assert sampled.stderr == pytest.approx(exact.stderr, rel=0.03)
    assert sampled.row_means is None
    assert sampled.pairs == 2**20


def test_pairs_are_drawn_in_proportion_to_both_weights() -> None:
    survey = np.array([0.0, 1.0, 2.0, 5.0])
    nobody = np.zeros(4)
    draw, rng = PairDraw(People(nobody, nobody, nobody, survey)), np.random.default_rng(0)
    i, j = draw.pairs(400_000, rng)
    found = np.bincount(4 * i + j, minlength=16).reshape(4, 4) / 400_000
    expected = np.outer(survey, survey) * ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(found, expected / expected.sum(), atol=0.004)
    k = draw.partners(i, rng)
    assert (k != i).all()
    after = np.bincount(k[i == 3], minlength=4) / (i == 3).sum()
    np.testing.assert_allclose(after, [0, 1 / 3, 2 / 3, 0], atol=0.005)


def test_fair_scores_have_no_interval(people: MakeColumns) -> None:
    result = individual_fairness(*people("repeats_effort", 100), method="sampled")
    assert (result.value, result.error) == (1.0, 0.0)
    assert np.isnan([result.low, result.high, result.stderr]).all()


@pytest.mark.parametrize("seed", range(6))
def test_the_commonest_value_lies_on_a_point_of_the_coarse_grid_and_no_room_is_wasted(seed: int) -> None:
    rng, size = np.random.default_rng(seed), 33
    values = np.append(rng.normal(0, 1, 50), np.full(5, rng.normal(0, 0.5)))
    low, high = aligned_bounds(values, size)
    step = (high - low) / (size - 1)
    place = (values[-1] - low) / step
    assert place == pytest.approx(2 * round(place / 2), abs=1e-9)
    assert low <= values.min()
    assert high >= values.max()
    assert min(values.min() - low, high - values.max()) == pytest.approx(0.0, abs=1e-9)
    assert step <= 1.2 * (values.max() - values.min()) / (size - 1)
