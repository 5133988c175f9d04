"""Compiled search for the worst pairs. Import only where a kernel is called: this imports numba."""

from __future__ import annotations

import numpy as np

from evenhand.stats.pairs.compiled import kernel
from evenhand.stats.types import FloatArray, IntArray

UNIT = 1e-12  # excesses are compared in whole numbers of this, so that rounding breaks no tie


@kernel(fast=True)
def largest_in_rows(
    ui: FloatArray, vi: FloatArray, mi: FloatArray, uj: FloatArray, vj: FloatArray, mj: FloatArray, most: FloatArray
) -> None:
    """Write the largest D - d of each row of a tile."""
    for i in range(ui.size):
        u, v, m = ui[i], vi[i], mi[i]
        largest = -1e30
        for j in range(uj.size):
            x = abs(m - mj[j]) - np.sqrt((u - uj[j]) * (u - uj[j]) + (v - vj[j]) * (v - vj[j]))
            largest = max(largest, x)
        most[i] = largest


@kernel()
def bound(low: FloatArray, high: FloatArray, a: int, b: int) -> float:
    """Return the most that D - d can be between a row of block a and one of block b."""
    across_u = max(0.0, low[a, 0] - high[b, 0], low[b, 0] - high[a, 0])
    across_v = max(0.0, low[a, 1] - high[b, 1], low[b, 1] - high[a, 1])
    largest = max(high[a, 2] - low[b, 2], high[b, 2] - low[a, 2])
    return float(largest - np.sqrt(across_u * across_u + across_v * across_v))


@kernel()
def block_bounds(low: FloatArray, high: FloatArray, out: FloatArray) -> None:
    """Write the most that D - d can be between a row of each block and any row of it or a later block."""
    for a in range(out.size):
        out[a] = -1.0
        for b in range(a, out.size):
            out[a] = max(out[a], bound(low, high, a, b))


@kernel()
def before(excess: IntArray, pair: IntArray, a: int, b: int) -> bool:
    """Return whether pair a of the list is worse than pair b: by excess, then by the people's numbers."""
    if excess[a] != excess[b]:
        return bool(excess[a] > excess[b])
    if pair[a, 0] != pair[b, 0]:
        return bool(pair[a, 0] < pair[b, 0])
    return bool(pair[a, 1] < pair[b, 1])


@kernel()
def keep(excess: IntArray, pair: IntArray, last: int) -> int:
    """Put the candidate at the end of the list in the place of the mildest pair, if it is worse; return the mildest.

    The list has one place more than pairs are wanted, for the candidate.
    """
    candidate = excess.size - 1
    if not before(excess, pair, candidate, last):
        return last
    excess[last], pair[last, 0], pair[last, 1] = excess[candidate], pair[candidate, 0], pair[candidate, 1]
    for at in range(candidate):
        if before(excess, pair, last, at):
            last = at
    return last


@kernel()
def search(
    u: FloatArray,
    v: FloatArray,
    m: FloatArray,
    person: IntArray,
    low: FloatArray,
    high: FloatArray,
    blocks: IntArray,
    excess: IntArray,
    pair: IntArray,
) -> None:
    """Keep the worst pairs between the given blocks and all later ones in a list of excesses and pairs.

    `person` is the number of the first person on each row, -1 for padding.
    """
    size = u.size // low.shape[0]
    most = np.empty(size)
    candidate = excess.size - 1
    last = 0
    for at in range(candidate):
        if before(excess, pair, last, at):
            last = at
    for a in blocks:
        i, k = a * size, (a + 1) * size
        for b in range(a, low.shape[0]):
            if (bound(low, high, a, b) + UNIT) / UNIT < excess[last]:
                continue
            j, n = b * size, (b + 1) * size
            largest_in_rows(u[i:k], v[i:k], m[i:k], u[j:n], v[j:n], m[j:n], most)
            for r in range(size):
                if person[i + r] < 0 or (most[r] + UNIT) / UNIT < excess[last]:
                    continue
                for s in range(r + 1 if a == b else 0, size):
                    p, q = i + r, j + s
                    x = abs(m[p] - m[q]) - np.sqrt((u[p] - u[q]) ** 2 + (v[p] - v[q]) ** 2)
                    whole = int(np.floor(x / UNIT + 0.5))
                    if person[q] >= 0 and whole > 1 and whole >= excess[last]:
                        excess[candidate] = whole
                        pair[candidate, 0] = min(person[p], person[q])
                        pair[candidate, 1] = max(person[p], person[q])
                        last = keep(excess, pair, last)
