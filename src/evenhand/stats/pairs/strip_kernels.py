"""Compiled loops over tiles of pairs. Import only where a kernel is called: this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.stats.pairs.compiled import kernel
from evenhand.stats.types import FloatArray

Reals = npt.NDArray[np.floating[Any]]  # float32 or float64, the same for all arrays of a call


@kernel(fast=True)
def tile(
    ui: Reals,
    vi: Reals,
    mi: Reals,
    wi: Reals,
    uj: Reals,
    vj: Reals,
    mj: Reals,
    wj: Reals,
    row: Reals,
    col: Reals,
    tolerance: Any,
) -> float:
    """Add the excess of all pairs of a tile to its row and column sums; return the weight of the violations.

    Two rows at a time share the loads of a column. The loop runs over slices: with plain indices LLVM has to
    allow for negative ones and emits gathers, which is four times slower.
    """
    zero = tolerance * 0
    violated = 0.0
    for half in range(ui.size // 2):
        i = 2 * half
        u0, v0, m0, w0 = ui[i], vi[i], mi[i], wi[i]
        u1, v1, m1, w1 = ui[i + 1], vi[i + 1], mi[i + 1], wi[i + 1]
        sum0, sum1, hit0, hit1 = zero, zero, zero, zero
        for j in range(uj.size):
            u, v, m, w = uj[j], vj[j], mj[j], wj[j]
            x = abs(m0 - m) - np.sqrt((u0 - u) * (u0 - u) + (v0 - v) * (v0 - v))
            beyond = x > tolerance
            x = x if beyond else zero
            hit0 += w if beyond else zero
            sum0 += w * x
            y = abs(m1 - m) - np.sqrt((u1 - u) * (u1 - u) + (v1 - v) * (v1 - v))
            beyond = y > tolerance
            y = y if beyond else zero
            hit1 += w if beyond else zero
            sum1 += w * y
            col[j] += w0 * x + w1 * y
        row[i] += sum0
        row[i + 1] += sum1
        violated += np.float64(w0) * np.float64(hit0) + np.float64(w1) * np.float64(hit1)
    return violated


@kernel()
def sweep(
    u: Reals,
    v: Reals,
    m: Reals,
    w: Reals,
    low: FloatArray,
    high: FloatArray,
    first: int,
    last: int,
    step: int,
    tolerance: Any,
    sums: FloatArray,
) -> float:
    """Add the excess of the blocks first, first + step, ... with themselves and all later blocks to `sums`.

    `low` and `high` (blocks, 3) bound the u, v and m of a block: where the largest D between two blocks is at
    most the smallest d, no pair counts and the tile is left out. Sums within a tile have the precision of the
    arrays, sums over tiles are float64. Returns the weight of the violations.
    """
    blocks = low.shape[0]
    size = u.size // blocks
    row, col = np.empty(size, u.dtype), np.empty(size, u.dtype)
    violated = 0.0
    for a in range(first, last, step):
        i, k = a * size, (a + 1) * size
        for b in range(a, blocks):
            across_u = max(0.0, low[a, 0] - high[b, 0], low[b, 0] - high[a, 0])
            across_v = max(0.0, low[a, 1] - high[b, 1], low[b, 1] - high[a, 1])
            largest = max(high[a, 2] - low[b, 2], high[b, 2] - low[a, 2])
            if largest * largest <= across_u * across_u + across_v * across_v:
                continue
            j, n = b * size, (b + 1) * size
            row[:] = 0
            col[:] = 0
            hits = tile(u[i:k], v[i:k], m[i:k], w[i:k], u[j:n], v[j:n], m[j:n], w[j:n], row, col, tolerance)
            for r in range(size):
                sums[i + r] += row[r]
            if a == b:  # both orders of each pair were in the tile
                violated += hits / 2
                continue
            violated += hits
            for r in range(size):
                sums[j + r] += col[r]
    return violated


@kernel(fast=True)
def near_ties(
    ui: FloatArray, vi: FloatArray, mi: FloatArray, uj: FloatArray, vj: FloatArray, mj: FloatArray, near: float
) -> float:
    """Return how many pairs have D = d to within `near`."""
    count = 0.0
    for i in range(ui.size):
        u, v, m = ui[i], vi[i], mi[i]
        for j in range(uj.size):
            x = abs(m - mj[j]) - np.sqrt((u - uj[j]) * (u - uj[j]) + (v - vj[j]) * (v - vj[j]))
            count += 1.0 if abs(x) < near else 0.0
    return count
