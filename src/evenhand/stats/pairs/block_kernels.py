"""Compiled sums between sorted scores. Import only where a kernel is called: this imports numba."""

from __future__ import annotations

import numpy as np

from evenhand.stats.pairs.compiled import kernel
from evenhand.stats.types import FloatArray, IntArray


@kernel()
def row_sums(
    u: FloatArray,
    v: FloatArray,
    start: IntArray,
    point: IntArray,
    score: FloatArray,
    weights: FloatArray,
    scores: FloatArray,
    first: int,
    last: int,
    tolerance: float,
    excess: FloatArray,
    violated: FloatArray,
) -> None:
    """Write the sums of excess and of violations of the rows first .. last - 1 against all rows.

    Rows are sorted by point (u, v) and score; those of point b are start[b] .. start[b+1] - 1. `weights` and
    `scores` are the running sums of w and w M within each point, from 0, so that they have one entry more a
    point. Scores below M - d and above M + d are found by two pointers that only move up.
    """
    row = first
    while row < last:
        a = point[row]
        end = min(last, start[a + 1])
        for b in range(u.size):
            distance = np.sqrt((u[a] - u[b]) ** 2 + (v[a] - v[b]) ** 2)
            beyond = distance + tolerance
            size = start[b + 1] - start[b]
            other = score[start[b] : start[b + 1]]
            w = weights[start[b] + b : start[b + 1] + b + 1]
            wm = scores[start[b] + b : start[b + 1] + b + 1]
            below = np.searchsorted(other, score[row] - beyond)
            upto = np.searchsorted(other, score[row] + beyond, side="right")
            for i in range(row, end):
                m = score[i]
                while below < size and other[below] < m - beyond:
                    below += 1
                while upto < size and other[upto] <= m + beyond:
                    upto += 1
                above = w[size] - w[upto]
                excess[i] += (m - distance) * w[below] - wm[below] + (wm[size] - wm[upto]) - (m + distance) * above
                violated[i] += w[below] + above
        row = end
