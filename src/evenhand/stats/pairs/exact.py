"""Exact sums over all pairs, bit-identical for any number of threads, and the worst pairs.

Tiles that stay in cache: O(n²) time, O(n) memory. ScoredPeople are ordered along a k-d tree and cut into blocks of 128.
Between two blocks whose scores differ by less than their distance no pair can count, and the tile is skipped: one to
four fifths of all tiles, depending on the data. Other tiles are computed once for both members of a pair. Blocks are
dealt to 32 fixed slots, each with its own float64 sums, which are added in a fixed order.

Precision: float64 up to 30,000 distinct rows. Above, tiles are float32 and the sums over tiles float64: less than 1e-9
of the value is lost (1e-7 of a person's own mean), because rounding averages out. Above 30,000 rows float64 is still
used if score, effort or aggregate have common values (two people agree with a probability above 1 in 1,000), whose
rounding errors are equal, or if D = d to within 3e-7 in more than 1 of 10,000 pairs of 64 probe rows with all rows.

The method 'blocks' is for few joint values of effort and aggregate, as in survey data. Between two of the C points (E,
S) the distance d is a constant. With the scores on each point sorted and their cumulative sums, the people whose score
is more than d below or above a given one are found by moving two pointers, and their summed excess is (M - d) sum v -
sum v M: O(C n) in all, for every person's sum and the violations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import require_at_least
from evenhand.stats.pairs.distance import EUCLIDEAN, Distance
from evenhand.stats.pairs.inputs import (
    TOLERANCE,
    Merged,
    ScoredPeople,
    check_people,
    check_weight,
    excess_of,
    hashes,
    merge_people,
    starts,
)
from evenhand.stats.types import FloatArray, IntArray
from evenhand.stats.workers import Progress, Step, run_chains

BLOCK = 128
_SLOTS = 32
_FLOAT64_ROWS = 30_000
_LARGEST = 4.0  # larger values leave too few digits for single precision
_STEP_PAIRS = 2**26  # a few hundredths of a second, the delay of Ctrl-C
_THREAD_PAIRS = 2**20  # fewer finish before a second thread has started
_TREE_ROWS = 16 * BLOCK  # fewer finish before they are ordered
_PROBE_ROWS = 64
_NEAR_TIE = 3e-7
_MOST_TIES = 1e-4
_MOST_COMMON = 1e-3
_STEP_SUMS = 2**21  # row sums in a step, a few hundredths of a second, the delay of Ctrl-C
_CHAINS = 64
_ENUMERATED = 2**20  # pairs per call of a user's distance function
_STEP_BLOCKS = 16  # blocks between two chances for Ctrl-C


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows in blocks of near neighbours; the last block is padded with rows of weight 0.

    Attributes
    ----------
    order
        (rows,) the merged row at each position.
    points
        (3, places) sqrt(w) E, sqrt(1-w) S and M, centred, each contiguous.
    weight
        (places,) weights; 0 for padding.
    low, high
        (blocks, 3) the bounds of each block.
    """

    order: IntArray
    points: FloatArray
    weight: FloatArray
    low: FloatArray
    high: FloatArray


def tile_sums(
    merged: Merged, weight: float, *, threads: int | None = None, progress: Progress | None = None
) -> tuple[FloatArray, float]:
    """Return each row's sum of v_j max(0, D_ij - d_ij), and the sum of v_i v_j over pairs with D > d.

    Parameters
    ----------
    merged
        Distinct rows with their weights.
    weight
        Weight of effort in the distance.
    threads
        Number of threads, by default the number of cores. The result does not depend on it.
    progress
        Called with the number of finished pairs and the total.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.stats.pairs.inputs import ScoredPeople, merge_people
    >>> merged = merge_people(ScoredPeople(np.array([0.1, 0.9]), np.array([0.0, 0.3]), np.array([0.0, 0.0])))
    >>> sums, violated = tile_sums(merged, 1.0)
    >>> sums.round(6), violated
    (array([0.5, 0.5]), 1.0)
    """
    from evenhand.stats.pairs.kernels import sweep

    blocks = block_rows(merged, weight)
    rows = len(merged)
    boxes, kind = (blocks.low, blocks.high), precision(blocks.points[:, :rows], blocks.weight[:rows], merged.shape)
    columns = (*blocks.points, blocks.weight)
    points: tuple[NDArray[Any], ...] = tuple(np.ascontiguousarray(column, dtype=kind) for column in columns)
    tolerance = kind(TOLERANCE)
    count = len(blocks.low)
    slots = min(_SLOTS, count)
    sums = np.zeros((slots, blocks.weight.size))
    violated = np.zeros(slots)

    def chain(slot: int) -> Iterator[Step]:
        first_block = slot
        while first_block < count:
            end = min(count, first_block + slots * max(1, _STEP_PAIRS // ((count - first_block) * BLOCK**2)))
            work = sum((count - a) * BLOCK**2 - BLOCK * (BLOCK - 1) // 2 for a in range(first_block, end, slots))

            def step(first: int = first_block, last: int = end) -> None:
                violated[slot] += sweep(points, boxes, (first, last, slots), tolerance, merged.shape, sums[slot])

            yield work, step
            first_block += slots * len(range(first_block, end, slots))

    total = count * BLOCK * (count * BLOCK + 1) // 2
    few = total < _THREAD_PAIRS
    run_chains([chain(slot) for slot in range(slots)], total, threads=1 if few else threads, progress=progress)
    result = np.empty(len(merged))
    result[blocks.order] = _added_up(sums)[: len(merged)]
    return result, float(_added_up(violated))


def block_rows(merged: Merged, weight: float) -> Blocks:
    """Return the rows in blocks of near neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 300)
    >>> merged = Merged(score=x, effort=x, aggregate=x, weight=np.ones(300), first=np.arange(300), row=np.arange(300))
    >>> block_rows(merged, 0.5).low.shape
    (3, 3)
    """
    points = np.stack([*coordinates(merged, weight), merged.score])
    points -= points.mean(axis=1, keepdims=True)
    order = near_neighbours(points)
    padding = -len(merged) % BLOCK
    positions = np.append(order, np.repeat(order[-1:], padding))
    points_in_order = points[:, positions]
    weights = np.append(merged.weight[order], np.zeros(padding))
    boxes = points_in_order.reshape(3, -1, BLOCK)
    return Blocks(order, points_in_order, weights, boxes.min(axis=2).T.copy(), boxes.max(axis=2).T.copy())


def coordinates(merged: Merged, weight: float, rows: slice | IntArray = slice(None)) -> tuple[FloatArray, FloatArray]:
    """Return coordinates of rows in which distances are Euclidean or city-block lengths without weights."""
    parts = (weight, 1.0 - weight) if merged.diamond else (np.sqrt(weight), np.sqrt(1.0 - weight))
    return parts[0] * merged.effort[rows], parts[1] * merged.aggregate[rows]


def near_neighbours(points: FloatArray) -> IntArray:
    """Return points' positions in the order of a k-d tree, halved at the median of the widest axis down to blocks."""
    order = np.arange(points.shape[1], dtype=np.int64)
    if order.size > _TREE_ROWS:
        from evenhand.stats.pairs.tree import arrange

        arrange(points.copy(), order, BLOCK)
    return order


def precision(
    points: FloatArray, weight: FloatArray, shape: tuple[int, ...] = (), common: bool | None = None
) -> type[np.float32] | type[np.float64]:
    """Return float32 for many rows without common or large values and with few ties D = d, otherwise float64.

    Pass `common` if it is already known from other coordinates of the same people.
    """
    rows = weight.size
    if rows <= _FLOAT64_ROWS or any(np.abs(axis).max() > _LARGEST for axis in points):
        return np.float64
    if has_common(points, weight) if common is None else common:
        return np.float64
    from evenhand.stats.pairs.kernels import near_ties

    probe = np.linspace(0, rows - 1, _PROBE_ROWS).astype(np.int64)
    ties = (
        near_ties(tuple(axis[probe] for axis in points), tuple(points), _NEAR_TIE, shape) - probe.size
    )  # without each row's pair with itself
    return np.float32 if ties < _MOST_TIES * probe.size * rows else np.float64


def has_common(points: FloatArray, weight: FloatArray) -> bool:
    """Return whether two people agree on any axis with a probability above 1 in 1,000."""
    return any(_common(axis, weight) > _MOST_COMMON for axis in points)


def _common(values: FloatArray, weight: FloatArray) -> float:
    """Return the probability that two randomly drawn people have the same value."""
    if (weight == weight[0]).all():  # sorting without weights is ten times as fast
        first = np.flatnonzero(starts(np.sort(values)))
        shares = np.diff(first, append=values.size) / values.size
    else:
        order = np.argsort(values, kind="stable")
        shares = np.add.reduceat(weight[order], np.flatnonzero(starts(values[order]))) / weight.sum()
    return float(np.sum(shares**2))


def _added_up(slots: FloatArray) -> FloatArray:
    """Return the sum over the slots, added in a fixed order."""
    total = np.zeros(slots.shape[1:])
    for part in slots:
        total += part
    return total


@dataclass(frozen=True, eq=False)
class Points:
    """Distinct rows sorted by their point (effort, aggregate) and then by score.

    Attributes
    ----------
    merged
        The rows and their weights.
    start
        (C + 1,) the first row of each point.
    """

    merged: Merged
    start: IntArray

    def __len__(self) -> int:
        return self.start.size - 1


def sort_points(people: ScoredPeople) -> Points:
    """Return the distinct rows sorted by point (effort, aggregate) and score.

    Examples
    --------
    >>> import numpy as np
    >>> points = sort_points(ScoredPeople(np.array([0.9, 0.1, 0.1]), np.array([1.0, 1.0, 1.0]), np.zeros(3)))
    >>> points.merged.score, points.merged.weight, points.start
    (array([0.1, 0.9]), array([2., 1.]), array([0, 2]))
    """
    hashed = hashes(people.effort, people.aggregate)
    merged = merge_people(people, np.lexsort((people.score, hashed)))
    new = starts(merged.effort, merged.aggregate)
    return Points(merged, np.append(np.flatnonzero(new), len(merged)).astype(np.int64))


def block_sums(
    points: Points, weight: float, *, threads: int | None = None, progress: Progress | None = None
) -> tuple[FloatArray, float]:
    """Return each row's sum of v_j max(0, D_ij - d_ij), and the sum of v_i v_j over pairs with D > d.

    Parameters
    ----------
    points
        Rows sorted by `sort_points`.
    weight
        Weight of effort in the distance.
    threads
        Number of threads, by default the number of cores. The result does not depend on it.
    progress
        Called with the number of finished pairs and the total.

    Examples
    --------
    >>> import numpy as np
    >>> points = sort_points(ScoredPeople(np.array([0.1, 0.5, 0.9]), np.array([0.0, 0.0, 0.3]), np.zeros(3)))
    >>> sums, violated = block_sums(points, 1.0)
    >>> sums[points.merged.row].round(6), violated
    (array([0.9, 0.5, 0.6]), 3.0)
    """
    from evenhand.stats.pairs.kernels import row_sums

    merged, count, rows = points.merged, len(points), len(points.merged)
    first_row = points.start[:-1]
    position = coordinates(merged, weight, first_row)
    point = np.repeat(np.arange(count), np.diff(points.start))
    running = merged.score, _running(merged.weight, points), _running(merged.weight * merged.score, points)
    excess, violated = out = np.zeros(rows), np.zeros(rows)
    size = max(1, min(_STEP_SUMS // count, -(-rows // _CHAINS)))

    def chain(number: int) -> Iterator[Step]:
        for first in range(number * size, rows, _CHAINS * size):
            last = min(rows, first + size)

            def step(first: int = first, last: int = last) -> None:
                row_sums(position, (points.start, point), running, (first, last, TOLERANCE), out, merged.shape)

            yield (last - first) * rows, step

    few = count * rows < _STEP_SUMS // 32
    run_chains([chain(i) for i in range(_CHAINS)], rows * rows, threads=1 if few else threads, progress=progress)
    return np.maximum(excess, 0.0), float(np.sum(merged.weight * violated)) / 2.0


def _running(values: FloatArray, points: Points) -> FloatArray:
    """Return the cumulative sums of values within each point, each with a leading 0."""
    sums = np.zeros(values.size + len(points))
    for number, (first, last) in enumerate(zip(points.start[:-1].tolist(), points.start[1:].tolist(), strict=True)):
        np.cumsum(values[first:last], out=sums[first + number + 1 : last + number + 1])
    return sums


class WorstPairs(NamedTuple):
    """Pairs (k, 2) of people i < j and their excess max(0, D - d), largest first."""

    people: IntArray
    excess: FloatArray


def worst_pairs(
    score: ArrayLike,
    effort: ArrayLike,
    aggregate: ArrayLike,
    weight: float = 0.5,
    *,
    count: int = 10,
    distance: Distance = EUCLIDEAN,
) -> WorstPairs:
    """Return the pairs with the largest excess of the score difference over the distance, D - d.

    Blocks of near neighbours whose bounds exclude them from the list are skipped, so this is far faster than comparing
    all pairs. Excesses within 1e-12 are ties; ties are ordered by the people's numbers.

    Parameters
    ----------
    score, effort, aggregate
        One number per person; scores in [0, 1].
    weight
        Weight of effort in the distance.
    count
        The largest number of pairs; fewer are returned if fewer have an excess.
    distance
        The distance between people; by default the paper's.

    Examples
    --------
    >>> worst = worst_pairs([0.1, 0.9, 0.8, 0.1], [0.0, 0.3, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], weight=1.0, count=2)
    >>> worst.people
    array([[0, 2],
           [2, 3]])
    >>> worst.excess.round(6)
    array([0.7, 0.7])
    """
    from evenhand.stats.pairs.kernels import block_bounds, search

    require_at_least("count", count, 1)
    people, weight = distance.transform(check_people(score, effort, aggregate), check_weight(weight))
    if people.own is not None:
        return _worst_enumerated(people, weight, count)
    merged = merge_people(people)
    blocks = block_rows(merged, weight)
    members = np.argsort(merged.row, kind="stable")
    start = np.searchsorted(merged.row[members], np.arange(len(merged) + 1))
    person = np.full(blocks.weight.size, -1, dtype=np.int64)
    person[: len(merged)] = members[start[blocks.order]]
    most = np.empty(len(blocks.low))
    block_bounds(blocks.low, blocks.high, merged.shape, most)
    excess, pair = np.zeros(count + 1, dtype=np.int64), np.full((count + 1, 2), len(people), dtype=np.int64)
    points, boxes = tuple(blocks.points), (blocks.low, blocks.high)
    order = np.argsort(-most, kind="stable")
    for begin in range(0, order.size, _STEP_BLOCKS):
        search(points, person, boxes, order[begin : begin + _STEP_BLOCKS], (excess, pair), merged.shape)
    worst = [
        (-whole, first, second)
        for whole, (i, j) in zip(excess[:count].tolist(), pair[:count].tolist(), strict=True)
        if whole > 0
        for first, second in _people_of(members, start, int(merged.row[i]), int(merged.row[j]), count)
    ]
    worst = sorted(worst)[:count]
    pairs = np.array([row[1:] for row in worst], dtype=np.int64).reshape(-1, 2)
    return WorstPairs(pairs, excess_of(people, weight, pairs[:, 0], pairs[:, 1]))


def enumerated_sums(people: ScoredPeople, weight: float) -> tuple[FloatArray, float]:
    """Return the sums of `tile_sums` for a custom distance function, computed by NumPy.

    Examples
    --------
    >>> own = lambda e, s, f, t: np.abs(e - f)
    >>> people = ScoredPeople(np.array([0.1, 0.9]), np.array([0.0, 0.3]), np.zeros(2), own=own)
    >>> enumerated_sums(people, 0.5)[0].round(6)
    array([0.5, 0.5])
    """
    n, v = len(people), people.weights
    everybody, sums, violated = np.arange(n), np.zeros(n), 0.0
    for first in range(0, n, max(1, _ENUMERATED // n)):
        rows = everybody[first : first + max(1, _ENUMERATED // n), np.newaxis]
        excess = excess_of(people, weight, *np.broadcast_arrays(rows, everybody))
        sums[rows[:, 0]] = excess @ v
        violated += float(v[rows[:, 0]] @ ((excess > 0) @ v))
    return sums, violated / 2.0


def _worst_enumerated(people: ScoredPeople, weight: float, count: int) -> WorstPairs:
    """Return the worst pairs by enumerating all pairs."""
    n, worst = len(people), np.empty((0, 3))
    for i in range(n - 1):
        j = np.arange(i + 1, n)
        excess = excess_of(people, weight, np.full(j.size, i), j)
        largest = np.argsort(-np.round(excess, 12), kind="stable")[:count]
        worst = np.vstack([worst, np.column_stack([excess[largest], np.full(largest.size, i), j[largest]])])
        worst = worst[np.lexsort((worst[:, 2], worst[:, 1], -np.round(worst[:, 0], 12)))][:count]
    worst = worst[worst[:, 0] > 0]
    return WorstPairs(worst[:, 1:].astype(np.int64), worst[:, 0])


def _people_of(members: IntArray, start: IntArray, a: int, b: int, count: int) -> list[tuple[int, int]]:
    """Return the first pairs of a person in row a with a person in row b, in the order of their numbers."""
    on_a, on_b = (members[start[row] : min(start[row + 1], start[row] + count)].tolist() for row in (a, b))
    pairs: list[tuple[int, int]] = []
    for person in sorted(on_a + on_b):
        opposite = on_b if person in set(on_a) else on_a
        pairs += [(person, partner) for partner in opposite if partner > person]
        if len(pairs) >= count:
            break
    return pairs[:count]
