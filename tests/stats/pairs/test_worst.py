"""The worst pairs are those of all pairs, ties in the order of the people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.stats.pairs import worst_pairs
from evenhand.stats.types import FloatArray

Crowd = tuple[FloatArray, FloatArray, FloatArray]
Crowds = Callable[[str, int], Crowd]
Maker = Callable[..., Any]


def pick(crowd: Crowd, at: Any) -> Crowd:
    score, effort, aggregate = crowd
    return score[at], effort[at], aggregate[at]


@pytest.mark.parametrize("weight", [0.0, 0.6577, 1.0])
@pytest.mark.parametrize("count", [1, 25, 400])
def test_equals_brute_force(kind: str, weight: float, count: int, people: Crowds, by_definition: Maker) -> None:
    crowd = people(kind, 400)
    i, j = np.triu_indices(400, 1)
    excess = np.rint(by_definition(*crowd, weight).excess[i, j] / 1e-12)
    order = np.lexsort((j, i, -excess))[:count]
    order = order[excess[order] > 0]
    found = worst_pairs(*crowd, weight=weight, count=count)
    np.testing.assert_array_equal(found.people, np.stack([i[order], j[order]], axis=1))
    np.testing.assert_allclose(found.excess, excess[order] * 1e-12, rtol=0, atol=1e-12)


def test_many_copies_of_two_people() -> None:
    score = np.tile([0.1, 0.9], 30)
    found = worst_pairs(score, np.zeros(60), np.zeros(60), count=40)
    expected = [(i, j) for i in range(60) for j in range(i + 1, 60, 2)][:40]
    assert [tuple(pair) for pair in found.people.tolist()] == expected


def test_fair_scores_have_no_worst_pairs(people: Crowds) -> None:
    found = worst_pairs(*people("repeats_effort", 300))
    assert found.people.shape == (0, 2)
    assert found.excess.size == 0


def test_the_order_of_people_only_renames_them(people: Crowds) -> None:
    crowd, order = people("continuous", 3_000), np.random.default_rng(1).permutation(3_000)
    a = worst_pairs(*crowd, count=50)
    b = worst_pairs(*pick(crowd, order), count=50)
    np.testing.assert_array_equal(a.people, np.sort(order[b.people], axis=1))


def test_wrong_counts_get_one_sentence() -> None:
    with pytest.raises(EvenhandError, match=r"`count` must be at least 1; got 0\."):
        worst_pairs([0.1, 0.2], [0.0, 0.0], [0.0, 0.0], count=0)
