"""Compiled loops of the grid method. Import only where a kernel is called: this imports numba."""

from __future__ import annotations

import numpy as np

from evenhand.stats.pairs.compiled import kernel
from evenhand.stats.types import FloatArray, IntArray


@kernel()
def place(value: float, low: float, per_step: float, size: int) -> tuple[int, float]:
    """Return the cell a value lies in and how far into it, from 0 to 1."""
    at = (value - low) * per_step
    cell = min(int(at), size - 2)
    return cell, at - cell


@kernel()
def bin_rows(
    score: FloatArray,
    effort: FloatArray,
    aggregate: FloatArray,
    survey: FloatArray,
    low: FloatArray,
    per_step: FloatArray,
    mass: FloatArray,
    own: FloatArray,
) -> None:
    """Spread each row over the eight corners of its cell; add its products of q = 2 f (1 - f) at each level.

    `survey` has one number, or none when all rows count 1. `own` (levels, 4) gets the sums of v² times q_M,
    q_M q_E, q_M q_S and q_M q_E q_S on grids of double, four times ... the step.
    """
    size = mass.shape[0]
    for row in range(score.size):
        v = survey[row] if survey.size else 1.0
        i, f = place(score[row], low[0], per_step[0], size)
        j, g = place(effort[row], low[1], per_step[1], size)
        k, h = place(aggregate[row], low[2], per_step[2], size)
        at = mass[i : i + 2, j : j + 2, k : k + 2]
        near, far = v * (1.0 - h), v * h
        at[0, 0, 0] += (1.0 - f) * (1.0 - g) * near
        at[0, 0, 1] += (1.0 - f) * (1.0 - g) * far
        at[0, 1, 0] += (1.0 - f) * g * near
        at[0, 1, 1] += (1.0 - f) * g * far
        at[1, 0, 0] += f * (1.0 - g) * near
        at[1, 0, 1] += f * (1.0 - g) * far
        at[1, 1, 0] += f * g * near
        at[1, 1, 1] += f * g * far
        for level in range(own.shape[0]):
            if level:
                f, g, h = (f + i % 2) / 2.0, (g + j % 2) / 2.0, (h + k % 2) / 2.0
                i, j, k = i // 2, j // 2, k // 2
            a, b, c = v * v * 2.0 * f * (1.0 - f), 2.0 * g * (1.0 - g), 2.0 * h * (1.0 - h)
            own[level, 0] += a
            own[level, 1] += a * b
            own[level, 2] += a * c
            own[level, 3] += a * b * c


@kernel()
def field_at(
    score: FloatArray,
    effort: FloatArray,
    aggregate: FloatArray,
    survey: FloatArray,
    low: FloatArray,
    per_step: FloatArray,
    field: FloatArray,
    own: FloatArray,
    out: FloatArray,
) -> None:
    """Write the field at each row, linear between grid points, less the row's excess with its own smear.

    `own` holds the kernel at the steps (1, 0, 0), (1, 1, 0), (1, 0, 1) and (1, 1, 1).
    """
    size = field.shape[0]
    for row in range(score.size):
        v = survey[row] if survey.size else 1.0
        i, f = place(score[row], low[0], per_step[0], size)
        j, g = place(effort[row], low[1], per_step[1], size)
        k, h = place(aggregate[row], low[2], per_step[2], size)
        at = field[i : i + 2, j : j + 2, k : k + 2]
        lower = (1.0 - g) * ((1.0 - h) * at[0, 0, 0] + h * at[0, 0, 1]) + g * (
            (1.0 - h) * at[0, 1, 0] + h * at[0, 1, 1]
        )
        upper = (1.0 - g) * ((1.0 - h) * at[1, 0, 0] + h * at[1, 0, 1]) + g * (
            (1.0 - h) * at[1, 1, 0] + h * at[1, 1, 1]
        )
        a, b, c = v * 2.0 * f * (1.0 - f), 2.0 * g * (1.0 - g), 2.0 * h * (1.0 - h)
        self_pair = (1.0 - b) * ((1.0 - c) * own[0] + c * own[2]) + b * ((1.0 - c) * own[1] + c * own[3])
        out[row] = (1.0 - f) * lower + f * upper - a * self_pair


@kernel()
def lags(
    a: FloatArray, b: FloatArray, low: FloatArray, per_step: FloatArray, size: int, first: IntArray, share: FloatArray
) -> None:
    """Write how two points that are spread over their cells lie to each other, for each axis.

    They are first, first + 1 or first + 2 steps apart with the given shares.
    """
    for axis in range(3):
        i, f = place(a[axis], low[axis], per_step[axis], size)
        j, g = place(b[axis], low[axis], per_step[axis], size)
        first[axis] = i - j - 1
        share[axis, 0] = (1.0 - f) * g
        share[axis, 1] = (1.0 - f) * (1.0 - g) + f * g
        share[axis, 2] = f * (1.0 - g)


@kernel()
def smeared(table: FloatArray, first: IntArray, share: FloatArray) -> float:
    """Return the mean of an even kernel, given at whole steps, over the lags of two points."""
    total = 0.0
    for x in range(3):
        for y in range(3):
            both = share[0, x] * share[1, y]
            at = table[abs(first[0] + x), abs(first[1] + y)]
            for z in range(3):
                total += both * share[2, z] * at[abs(first[2] + z)]
    return total


@kernel()
def deviations(
    first: FloatArray,
    second: FloatArray,
    weight: float,
    tolerance: float,
    low: FloatArray,
    per_step: FloatArray,
    coarse: FloatArray,
    fine: FloatArray,
    hits: FloatArray,
    out: FloatArray,
) -> None:
    """Write (pairs, 2) what the extrapolated grid and the grid of violations add to the truth, for each pair.

    `first` and `second` (3, pairs) hold score, effort and aggregate of the two people.
    The tables are the kernels at whole steps of the coarse grid (of double step) and of the fine grid.
    """
    a, b, half, room = np.empty(3), np.empty(3), per_step / 2.0, np.zeros(3)
    for axis in range(3):
        room[axis] = 2.0 / per_step[axis] if per_step[axis] > 0.0 else 0.0  # how far both grids can move a pair
    lag, share = np.empty(3, np.int64), np.empty((3, 3))
    for pair in range(out.shape[0]):
        a[:], b[:] = first[:, pair], second[:, pair]
        m, e, s = abs(a[0] - b[0]), abs(a[1] - b[1]), abs(a[2] - b[2])
        least = weight * max(0.0, e - room[1]) ** 2 + (1.0 - weight) * max(0.0, s - room[2]) ** 2
        if (m + room[0]) ** 2 <= least:  # no excess on either grid
            out[pair, 0], out[pair, 1] = 0.0, 0.0
            continue
        excess = m - np.sqrt(weight * e * e + (1.0 - weight) * s * s)
        violated = excess > tolerance
        lags(a, b, low, half, coarse.shape[0], lag, share)
        extrapolated = -smeared(coarse, lag, share) / 3.0
        lags(a, b, low, per_step, fine.shape[0], lag, share)
        extrapolated += 4.0 * smeared(fine, lag, share) / 3.0
        out[pair, 0] = extrapolated - (excess if violated else 0.0)
        out[pair, 1] = smeared(hits, lag, share) - (1.0 if violated else 0.0)
