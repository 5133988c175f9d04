"""Compiled loops that count comparable pairs, for `direction`. Import only where needed: this imports numba."""

from __future__ import annotations

from evenhand.stats.compiled import kernel
from evenhand.stats.types import FloatArray, IntArray

Columns = tuple[FloatArray, ...]


@kernel(fast=True)
def ahead_in_rows(first: Columns, second: Columns, box: Columns, out: FloatArray) -> None:
    """Add each row's comparable, reversed and concordant weight and its shortfall, over pairs with the row ahead.

    Both sides are (effort, start, end, score), the second with weights and within a box. The first side has an even
    number of rows, processed two at a time so that loads of the second side are shared.
    """
    (ei, si, ti, mi), (ej, sj, tj, mj, wj), (low, high) = first, second, box
    for i in range(0, ei.size, 2):
        k = i + 1
        e, s, t, m = ei[i], si[i], ti[i], mi[i]
        f, u, v, n = ei[k], si[k], ti[k], mi[k]
        if max(e, f) <= low[0] or min(s, u) > high[1] or max(t, v) < low[2]:
            continue
        ahead, over, under, short = 0.0, 0.0, 0.0, 0.0
        ahead_k, over_k, under_k, short_k = 0.0, 0.0, 0.0, 0.0
        for j in range(ej.size):
            apart, apart_k = mj[j] - m, mj[j] - n
            up = wj[j] if (e > ej[j]) & (s <= sj[j]) & (t >= tj[j]) else 0.0
            up_k = wj[j] if (f > ej[j]) & (u <= sj[j]) & (v >= tj[j]) else 0.0
            ahead += up
            over += up if apart > 0.0 else 0.0
            under += up if apart < 0.0 else 0.0
            short += up * max(apart, 0.0)
            ahead_k += up_k
            over_k += up_k if apart_k > 0.0 else 0.0
            under_k += up_k if apart_k < 0.0 else 0.0
            short_k += up_k * max(apart_k, 0.0)
        out[i, 0] += ahead
        out[i, 1] += over
        out[i, 2] += under
        out[i, 3] += short
        out[k, 0] += ahead_k
        out[k, 1] += over_k
        out[k, 2] += under_k
        out[k, 3] += short_k


@kernel()
def count_ahead(points: Columns, boxes: Columns, group: IntArray, part: tuple[int, int], out: FloatArray) -> None:
    """Add the sums of `ahead_in_rows` for blocks first .. last - 1 against all blocks, by the other block's group.

    `points` are (effort, start, end, score, weight); `boxes`, low and high, bound the first three of each block. If all
    columns but the weights are negated, people ahead become people behind.
    """
    (e, s, t, m, w), (low, high) = points, boxes
    blocks = low.shape[0]
    size = e.size // blocks
    for a in range(part[0], part[1]):
        i, k = a * size, (a + 1) * size
        near = (e[i:k], s[i:k], t[i:k], m[i:k])
        for b in range(blocks):
            if high[a, 0] > low[b, 0] and low[a, 1] <= high[b, 1] and high[a, 2] >= low[b, 2]:
                j, n = b * size, (b + 1) * size
                ahead_in_rows(near, (e[j:n], s[j:n], t[j:n], m[j:n], w[j:n]), (low[b], high[b]), out[i:k, group[b]])


@kernel()
def largest_shortfall(points: Columns, most: FloatArray) -> None:
    """Write each person's largest shortfall to any person they are ahead of; 0 if they are ahead of no one.

    `points` are (effort, start, end, score), sorted by decreasing score, so the first person behind gives the largest
    shortfall.
    """
    e, s, t, m = points
    for i in range(e.size):
        most[i] = 0.0
        for j in range(i):
            if e[i] > e[j] and s[i] <= s[j] and t[i] >= t[j]:
                most[i] = m[j] - m[i]
                break
