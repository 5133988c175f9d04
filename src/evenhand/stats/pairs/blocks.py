"""Exact sums over all pairs when effort and aggregate take few values together, as in survey data.

Between two of the C points (E, S) the distance d is a constant. With the scores on each point sorted and their
running sums at hand, the people whose score is more than d below or above a given one are found by moving two
pointers, and their summed excess is (M - d) sum v - sum v M: O(C n) in all, for every person's sum and the violations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenhand.stats.pairs.merge import Merged, hashes, merge_people, starts
from evenhand.stats.pairs.people import TOLERANCE, People
from evenhand.stats.pairs.workers import Progress, Step, run_chains
from evenhand.stats.types import FloatArray, IntArray

_STEP_SUMS = 2**21  # row sums in a step, a few hundredths of a second: how soon Ctrl-C is heard
_CHAINS = 64


@dataclass(frozen=True, eq=False)
class Points:
    """Distinct rows sorted by their point (E, S) and score.

    Attributes
    ----------
    merged
        The rows and their weights.
    start
        (C + 1,) where the rows of each point begin.
    """

    merged: Merged
    start: IntArray

    def __len__(self) -> int:
        return self.start.size - 1


def sort_points(people: People) -> Points:
    """Return the distinct rows sorted by point and score.

    Examples
    --------
    >>> import numpy as np
    >>> points = sort_points(People(np.array([0.9, 0.1, 0.1]), np.array([1.0, 1.0, 1.0]), np.zeros(3)))
    >>> points.merged.score, points.merged.weight, points.start
    (array([0.1, 0.9]), array([2., 1.]), array([0, 2]))
    """
    hashed = hashes(people.effort, people.aggregate)
    merged = merge_people(people, np.lexsort((people.score, hashed)))
    new = starts(merged.effort, merged.aggregate)
    return Points(merged, np.append(np.flatnonzero(new), len(merged)).astype(np.int64))


def pair_sums(
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
        Number of threads; by default one for each core. The result does not depend on it.
    progress
        Called with the pairs done and all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> points = sort_points(People(np.array([0.1, 0.5, 0.9]), np.array([0.0, 0.0, 0.3]), np.zeros(3)))
    >>> sums, violated = pair_sums(points, 1.0)
    >>> sums[points.merged.row].round(6), violated
    (array([0.9, 0.5, 0.6]), 3.0)
    """
    from evenhand.stats.pairs.block_kernels import row_sums

    merged, count, rows = points.merged, len(points), len(points.merged)
    at = points.start[:-1]
    u, v = np.sqrt(weight) * merged.effort[at], np.sqrt(1.0 - weight) * merged.aggregate[at]
    point = np.repeat(np.arange(count), np.diff(points.start))
    weights, scores = _running(merged.weight, points), _running(merged.weight * merged.score, points)
    excess, violated = np.zeros(rows), np.zeros(rows)
    size = max(1, min(_STEP_SUMS // count, -(-rows // _CHAINS)))

    def chain(number: int) -> Iterator[Step]:
        for first in range(number * size, rows, _CHAINS * size):
            last = min(rows, first + size)

            def step(first: int = first, last: int = last) -> None:
                row_sums(
                    u, v, points.start, point, merged.score, weights, scores, first, last, TOLERANCE, excess, violated
                )

            yield (last - first) * rows, step

    few = count * rows < _STEP_SUMS // 32
    run_chains([chain(i) for i in range(_CHAINS)], rows * rows, threads=1 if few else threads, progress=progress)
    return np.maximum(excess, 0.0), float(np.sum(merged.weight * violated)) / 2.0


def _running(values: FloatArray, points: Points) -> FloatArray:
    """Return the running sums of values within each point, from 0: one entry more than rows for each point."""
    sums = np.zeros(values.size + len(points))
    for at, (first, last) in enumerate(zip(points.start[:-1].tolist(), points.start[1:].tolist(), strict=True)):
        np.cumsum(values[first:last], out=sums[first + at + 1 : last + at + 1])
    return sums
