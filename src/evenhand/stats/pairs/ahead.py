"""Compiled loops that count who is ahead of whom, for `direction`. Import only where one is called: it needs numba."""

from __future__ import annotations

from evenhand.stats.compiled import kernel
from evenhand.stats.types import FloatArray, IntArray

Columns = tuple[FloatArray, ...]


@kernel(fast=True)
def ahead_in_rows(first: Columns, second: Columns, out: FloatArray) -> None:
    """Add the comparable, reversed and concordant weight and the shortfall of each row's pairs: ahead, then behind.

    Both sides are (effort, start, end, score), the second with weights.
    """
    (ei, si, ti, mi), (ej, sj, tj, mj, wj) = first, second
    for i in range(ei.size):
        e, s, t, m = ei[i], si[i], ti[i], mi[i]
        ahead, over, under, short = 0.0, 0.0, 0.0, 0.0
        behind, lower, upper, excess = 0.0, 0.0, 0.0, 0.0
        for j in range(ej.size):
            apart = mj[j] - m
            up = wj[j] if (e > ej[j]) & (s <= sj[j]) & (t >= tj[j]) else 0.0
            down = wj[j] if (e < ej[j]) & (s >= sj[j]) & (t <= tj[j]) else 0.0
            ahead += up
            behind += down
            over += up if apart > 0.0 else 0.0
            under += up if apart < 0.0 else 0.0
            short += up * max(apart, 0.0)
            lower += down if apart < 0.0 else 0.0
            upper += down if apart > 0.0 else 0.0
            excess += down * max(-apart, 0.0)
        out[i, 0] += ahead
        out[i, 1] += over
        out[i, 2] += under
        out[i, 3] += short
        out[i, 4] += behind
        out[i, 5] += lower
        out[i, 6] += upper
        out[i, 7] += excess


@kernel()
def count_ahead(points: Columns, boxes: Columns, group: IntArray, part: tuple[int, int], out: FloatArray) -> None:
    """Count the pairs of the blocks first .. last - 1 with all blocks, by the group of the other block.

    `points` are (effort, start, end, score, weight); `boxes`, low and high, bound the first three of each block.
    """
    (e, s, t, m, w), (low, high) = points, boxes
    blocks = low.shape[0]
    size = e.size // blocks
    for a in range(part[0], part[1]):
        i, k = a * size, (a + 1) * size
        near = (e[i:k], s[i:k], t[i:k], m[i:k])
        for b in range(blocks):
            ahead = high[a, 0] > low[b, 0] and low[a, 1] <= high[b, 1] and high[a, 2] >= low[b, 2]
            behind = low[a, 0] < high[b, 0] and high[a, 1] >= low[b, 1] and low[a, 2] <= high[b, 2]
            if ahead or behind:
                j, n = b * size, (b + 1) * size
                ahead_in_rows(near, (e[j:n], s[j:n], t[j:n], m[j:n], w[j:n]), out[i:k, group[b]])


@kernel()
def largest_shortfall(points: Columns, most: FloatArray) -> None:
    """Write the most that each person is scored below somebody whom they are ahead of; 0 where it is nothing.

    `points` are (effort, start, end, score), the highest score first: the first whom a person is ahead of settles it.
    """
    e, s, t, m = points
    for i in range(e.size):
        most[i] = 0.0
        for j in range(i):
            if e[i] > e[j] and s[i] <= s[j] and t[i] >= t[j]:
                most[i] = m[j] - m[i]
                break
