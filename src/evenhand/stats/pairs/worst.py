"""The pairs of people who are treated most differently for what sets them apart, exactly and in O(n) memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.errors import EvenhandError
from evenhand.stats.pairs.merge import merge_people
from evenhand.stats.pairs.people import check_people, check_weight
from evenhand.stats.pairs.sampled import excess_of
from evenhand.stats.pairs.strips import block_rows
from evenhand.stats.types import FloatArray, IntArray

_STEP_BLOCKS = 16  # how many blocks between two chances for Ctrl-C


class WorstPairs(NamedTuple):
    """Pairs (k, 2) of people i < j and their excess max(0, D - d), the largest first."""

    people: IntArray
    excess: FloatArray


def worst_pairs(
    score: npt.ArrayLike, effort: npt.ArrayLike, aggregate: npt.ArrayLike, weight: float = 0.5, count: int = 10
) -> WorstPairs:
    """Return the pairs with the largest excess D - d of the difference in score over the distance.

    Blocks of near neighbours whose bounds rule out a place on the list are passed over, so that this is far
    quicker than all pairs. Excesses within 1e-12 are ties; ties are in the order of the people's numbers.

    Parameters
    ----------
    score, effort, aggregate
        One number a person; scores in [0, 1].
    weight
        Weight of effort in the distance.
    count
        How many pairs; there are fewer when fewer have an excess.

    Examples
    --------
    >>> worst = worst_pairs([0.1, 0.9, 0.8, 0.1], [0.0, 0.3, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], weight=1.0, count=2)
    >>> worst.people
    array([[0, 2],
           [2, 3]])
    >>> worst.excess.round(6)
    array([0.7, 0.7])
    """
    from evenhand.stats.pairs.worst_kernels import block_bounds, search

    if count < 1:
        raise EvenhandError(f"`count` must be at least 1; got {count!r}.")
    people = check_people(score, effort, aggregate)
    merged = merge_people(people)
    blocks = block_rows(merged, check_weight(weight))
    members = np.argsort(merged.row, kind="stable")
    start = np.searchsorted(merged.row[members], np.arange(len(merged) + 1))
    person = np.full(blocks.weight.size, -1, dtype=np.int64)
    person[: len(merged)] = members[start[blocks.order]]
    most = np.empty(len(blocks.low))
    block_bounds(blocks.low, blocks.high, most)
    excess, pair = np.zeros(count + 1, dtype=np.int64), np.full((count + 1, 2), len(people), dtype=np.int64)
    u, v, m = blocks.points
    order = np.argsort(-most, kind="stable")
    for at in range(0, order.size, _STEP_BLOCKS):
        search(u, v, m, person, blocks.low, blocks.high, order[at : at + _STEP_BLOCKS], excess, pair)
    found = [
        (-whole, first, second)
        for whole, (i, j) in zip(excess[:count].tolist(), pair[:count].tolist(), strict=True)
        if whole > 0
        for first, second in _people_of(members, start, int(merged.row[i]), int(merged.row[j]), count)
    ]
    found = sorted(found)[:count]
    pairs = np.array([row[1:] for row in found], dtype=np.int64).reshape(-1, 2)
    return WorstPairs(pairs, excess_of(people, weight, pairs[:, 0], pairs[:, 1]))


def _people_of(members: IntArray, start: IntArray, a: int, b: int, count: int) -> list[tuple[int, int]]:
    """Return the first pairs of a person on row a and one on row b, in the order of their numbers."""
    one, other = (members[start[row] : min(start[row + 1], start[row] + count)].tolist() for row in (a, b))
    pairs: list[tuple[int, int]] = []
    for person in sorted(one + other):
        opposite = other if person in set(one) else one
        pairs += [(person, partner) for partner in opposite if partner > person]
        if len(pairs) >= count:
            break
    return pairs[:count]
