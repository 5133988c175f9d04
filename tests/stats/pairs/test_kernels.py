"""The loops over pairs, each against its own definition on a few people, so that they need not be compiled."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats.pairs.ahead import count_ahead, largest_shortfall
from evenhand.stats.pairs.kernels import before, block_bounds, bound, largest_in_rows, near_ties, sweep
from evenhand.stats.types import BoolArray, FloatArray

SIZE, BLOCKS = 4, 5
Shapes = pytest.mark.parametrize("shape", [(), (0,)], ids=["straight", "along the axes"])


@pytest.fixture
def points() -> FloatArray:
    """(4, people) place, score and weight; each block of four lies apart from the others."""
    rng = np.random.default_rng(1)
    u, v, m = np.repeat(rng.random((3, BLOCKS)), SIZE, axis=1) + 0.2 * rng.random((3, SIZE * BLOCKS))
    return np.ascontiguousarray([u, v, m, rng.gamma(2.0, 1.0, SIZE * BLOCKS)])


def apart(points: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return D - d of all pairs."""
    u, v, m = (np.abs(np.subtract.outer(x, x)) for x in points[:3])
    return np.asarray(m - (u + v if shape else np.hypot(u, v)))


def boxes(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    blocks = points[:3].reshape(3, BLOCKS, SIZE)
    return blocks.min(axis=2).T.copy(), blocks.max(axis=2).T.copy()


@Shapes
def test_blocks_that_are_left_out_hold_no_excess(points: FloatArray, shape: tuple[int, ...]) -> None:
    sums, (low, high) = np.zeros(SIZE * BLOCKS), boxes(points)
    found = sweep(tuple(points), (low, high), (0, BLOCKS, 1), 1e-12, shape, sums)
    excess = np.maximum(apart(points, shape), 0.0)
    w = points[3]
    np.testing.assert_allclose(sums, excess @ w, rtol=1e-12)
    assert found == pytest.approx((np.outer(w, w) * (excess > 1e-12)).sum() / 2)
    bounds = np.array([[bound(low, high, a, b, shape) for b in range(BLOCKS)] for a in range(BLOCKS)])
    assert (bounds < 0).any()  # else nothing is left out
    most = apart(points, shape).reshape(BLOCKS, SIZE, BLOCKS, SIZE).max(axis=(1, 3))
    assert (bounds >= most).all()
    out = np.empty(BLOCKS)
    block_bounds(low, high, shape, out)
    np.testing.assert_array_equal(out, [max(bounds[a, a:].max(), -1.0) for a in range(BLOCKS)])


def test_the_bound_of_two_blocks_is_the_score_apart_less_the_gap_between_their_boxes() -> None:
    low, high = np.array([[0.1, 0.2, 0.5], [0.7, 0.9, 0.1]]), np.array([[0.3, 0.4, 0.9], [0.8, 1.0, 0.3]])
    for a, b in ((0, 1), (1, 0)):
        assert bound(low, high, a, b, ()) == pytest.approx(0.8 - np.hypot(0.4, 0.5))
        assert bound(low, high, a, b, (0,)) == pytest.approx(0.8 - 0.9)


@Shapes
def test_near_ties_and_largest_are_counted_by_their_definition(points: FloatArray, shape: tuple[int, ...]) -> None:
    x, three = apart(points, shape), tuple(points[:3])
    assert near_ties(three, three, 0.05, shape) == (np.abs(x) < 0.05).sum()
    most = np.empty(SIZE * BLOCKS)
    largest_in_rows(three, three, most, shape)
    np.testing.assert_allclose(most, x.max(axis=1), rtol=1e-12)


def test_who_is_ahead_of_whom_is_counted_by_its_definition() -> None:
    rng = np.random.default_rng(2)
    e, s, t = rng.integers(0, 4, (3, SIZE * BLOCKS)) / 2.0 + np.repeat(rng.integers(0, 4, (3, BLOCKS)), SIZE, axis=1)
    m, w, group = rng.integers(0, 3, e.size) / 2.0, rng.gamma(2.0, 1.0, e.size), np.array([0, 1, 0, 1, 1])
    low, high = boxes(np.array([e, s, t]))
    out = np.zeros((e.size, 2, 8))
    count_ahead((e, s, t, m, w), (low, high), group, (0, BLOCKS), out[..., :4])
    count_ahead((-e, -s, -t, -m, w), (-high, -low), group, (0, BLOCKS), out[..., 4:])

    def compared(one: BoolArray) -> list[FloatArray]:
        gap = np.subtract.outer(m, m).T  # the other's score less one's own
        return [one * w, (one & (gap > 0)) * w, (one & (gap < 0)) * w, one * np.maximum(gap, 0.0) * w]

    ahead = np.greater.outer(e, e) & np.less_equal.outer(s, s) & np.greater_equal.outer(t, t)
    gap = np.subtract.outer(m, m)
    behind = [ahead.T * w, (ahead.T & (gap > 0)) * w, (ahead.T & (gap < 0)) * w, ahead.T * np.maximum(gap, 0.0) * w]
    for number in (0, 1):
        there = np.repeat(group, SIZE) == number
        expected = [(kind * there).sum(axis=1) for kind in (*compared(ahead), *behind)]
        np.testing.assert_allclose(out[:, number], np.array(expected).T, rtol=1e-12, atol=1e-12)


def test_the_largest_shortfall_of_each_person_by_its_definition() -> None:
    rng = np.random.default_rng(4)
    m = -np.sort(-rng.random(30))  # the highest score first
    e, s, t = rng.integers(0, 4, (3, 30)) / 2.0
    most = np.full(30, np.nan)
    largest_shortfall((e, s, t, m), most)
    ahead = np.greater.outer(e, e) & np.less_equal.outer(s, s) & np.greater_equal.outer(t, t)
    below = np.subtract.outer(m, m).T  # the other's score less one's own
    np.testing.assert_allclose(most, np.where(ahead, np.maximum(below, 0.0), 0.0).max(axis=1))
    assert (most == 0).any()


def test_pairs_are_in_order_of_excess_and_then_of_numbers() -> None:
    excess, pair = np.array([5, 5, 5, 7]), np.array([[1, 9], [1, 4], [0, 9], [8, 9]])
    order = [[before(excess, pair, a, b) for b in range(4)] for a in range(4)]
    worst_first = [3, 2, 1, 0]
    for a in range(4):
        for b in range(4):
            assert order[a][b] == (worst_first.index(a) < worst_first.index(b))
