"""Compiled loops over pairs of people, for `exact` and `grid`. Import only where needed: this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.stats.compiled import kernel
from evenhand.stats.types import FloatArray, IntArray

Reals = npt.NDArray[np.floating[Any]]  # float32 or float64, the same for all arrays of a call
Columns = tuple[FloatArray, ...]
Lags = tuple[int, int, int]
Shares = tuple[float, float, float]
Shape = tuple[int, ...]  # () for Euclidean distances, (0,) for those along the axes: known at compile time
UNIT = 1e-12  # excesses are compared in integer multiples of this, so that rounding breaks no tie


@kernel(fast=True)
def length(u: Any, v: Any, shape: Shape) -> Any:
    """Return the length of a step: sqrt(u² + v²) if Euclidean, otherwise abs(u) + abs(v)."""
    if len(shape) == 0:
        return np.sqrt(u * u + v * v)
    return abs(u) + abs(v)


@kernel(fast=True)
def row_total(values: Reals) -> float:
    """Return the sum of values in double precision.

    For single-precision values the error of the sum is far below their last digit, so the vector width hardly ever
    changes it.
    """
    added = 0.0
    for j in range(values.size):
        added += np.float64(values[j])
    return added


@kernel(fast=True)
def tile(
    first: tuple[Reals, ...], second: tuple[Reals, ...], row: Reals, col: Reals, tolerance: Any, shape: Shape
) -> float:
    """Add the excess of all pairs of a tile to its row and column sums; return the weight of the violated pairs.

    Both sides of the tile are (u, v, m, weight). Two rows at a time share the loads of a column. The loop runs over
    slices: with plain indices LLVM must allow for negative indices and emits gathers, which are four times slower. The
    loop sums nothing along a row, because LLVM would halve all vectors for sums in double precision. Its output arrays
    are created here, so LLVM can assume that no arrays overlap.
    """
    (ui, vi, mi, wi), (uj, vj, mj, wj) = first, second
    zero = tolerance - tolerance  # has the precision of the arrays
    xs, ys, hits = np.empty(uj.size, uj.dtype), np.empty(uj.size, uj.dtype), np.zeros(uj.size, uj.dtype)
    for half in range(ui.size // 2):
        i = 2 * half
        u0, v0, m0, w0 = ui[i], vi[i], mi[i], wi[i]
        u1, v1, m1, w1 = ui[i + 1], vi[i + 1], mi[i + 1], wi[i + 1]
        for j in range(uj.size):
            u, v, m, w = uj[j], vj[j], mj[j], wj[j]
            x = abs(m0 - m) - length(u0 - u, v0 - v, shape)
            y = abs(m1 - m) - length(u1 - u, v1 - v, shape)
            hits[j] += (w0 if x > tolerance else zero) + (w1 if y > tolerance else zero)
            x = x if x > tolerance else zero
            y = y if y > tolerance else zero
            xs[j] = w * x
            ys[j] = w * y
            col[j] += w0 * x + w1 * y
        row[i] += row_total(xs)
        row[i + 1] += row_total(ys)
    violated = 0.0
    for j in range(uj.size):
        violated += np.float64(wj[j]) * np.float64(hits[j])
    return violated


@kernel()
def sweep(
    points: tuple[Reals, ...],
    boxes: Columns,
    part: tuple[int, int, int],
    tolerance: Any,
    shape: Shape,
    sums: FloatArray,
) -> float:
    """Add the excess of blocks first, first + step, ... last with themselves and all later blocks to `sums`.

    `points` are (u, v, m, weight); `boxes`, low and high, (blocks, 3) each, bound the u, v and m of a block: if the
    largest D between two blocks is at most the smallest d, no pair counts and the tile is skipped. Row and column sums
    of a tile have the precision of the arrays; sums over tiles are float64. The function returns the weight of the
    violated pairs.
    """
    (u, v, m, w), (low, high) = points, boxes
    first, last, step = part
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
            if largest <= length(across_u, across_v, shape):
                continue
            j, n = b * size, (b + 1) * size
            row[:] = 0
            col[:] = 0
            near, far = (u[i:k], v[i:k], m[i:k], w[i:k]), (u[j:n], v[j:n], m[j:n], w[j:n])
            hits = tile(near, far, row, col, tolerance, shape)
            for r in range(size):
                sums[i + r] += row[r]
            if a == b:  # the tile contains both orders of each pair
                violated += hits / 2
                continue
            violated += hits
            for r in range(size):
                sums[j + r] += col[r]
    return violated


@kernel(fast=True)
def near_ties(first: Columns, second: Columns, near: float, shape: Shape) -> float:
    """Return the number of pairs with D = d to within `near`."""
    (ui, vi, mi), (uj, vj, mj) = first, second
    count = 0.0
    for i in range(ui.size):
        u, v, m = ui[i], vi[i], mi[i]
        for j in range(uj.size):
            x = abs(m - mj[j]) - length(u - uj[j], v - vj[j], shape)
            count += 1.0 if abs(x) < near else 0.0
    return count


@kernel()
def row_sums(
    points: Columns,
    where: tuple[IntArray, IntArray],
    rows: Columns,
    part: tuple[int, int, float],
    out: Columns,
    shape: Shape,
) -> None:
    """Write the sums of excess and of violations for rows first .. last - 1 against all rows.

    Rows are sorted by point (u, v) and score; the rows of point b are start[b] .. start[b+1] - 1. `weights` and
    `scores` are the cumulative sums of w and w M within each point, from 0, so that they have one more entry per point.
    Scores below M - d and above M + d are found by two pointers that only move up.
    """
    (u, v), (start, point), (score, weights, scores), (excess, violated) = points, where, rows, out
    first, last, tolerance = part
    row = first
    while row < last:
        a = point[row]
        end = min(last, start[a + 1])
        for b in range(u.size):
            distance = length(u[a] - u[b], v[a] - v[b], shape)
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


@kernel()
def cell_of(value: float, low: float, per_step: float, size: int) -> tuple[int, float]:
    """Return the cell of a value and its position in the cell, from 0 to 1."""
    position = (value - low) * per_step
    cell = min(int(position), size - 2)
    return cell, position - cell


@kernel()
def bin_rows(people: Columns, scale: Columns, mass: FloatArray, own: FloatArray) -> None:
    """Spread each row over the eight corners of its cell, and add its products of q = 2 f (1 - f) at each level.

    `survey` is empty if all rows have weight 1. `own` (levels, 4) receives the sums of v² times q_M, q_M q_E, q_M q_S
    and q_M q_E q_S on the grids with one, two, four ... times the step.
    """
    (score, effort, aggregate, survey), (low, per_step), size = people, scale, mass.shape[0]
    for row in range(score.size):
        v = survey[row] if survey.size else 1.0
        i, f = cell_of(score[row], low[0], per_step[0], size)
        j, g = cell_of(effort[row], low[1], per_step[1], size)
        k, h = cell_of(aggregate[row], low[2], per_step[2], size)
        corners = mass[i : i + 2, j : j + 2, k : k + 2]
        near, far = v * (1.0 - h), v * h
        corners[0, 0, 0] += (1.0 - f) * (1.0 - g) * near
        corners[0, 0, 1] += (1.0 - f) * (1.0 - g) * far
        corners[0, 1, 0] += (1.0 - f) * g * near
        corners[0, 1, 1] += (1.0 - f) * g * far
        corners[1, 0, 0] += f * (1.0 - g) * near
        corners[1, 0, 1] += f * (1.0 - g) * far
        corners[1, 1, 0] += f * g * near
        corners[1, 1, 1] += f * g * far
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
def field_at(people: Columns, scale: Columns, field: FloatArray, own: FloatArray, out: FloatArray) -> None:
    """Write the field interpolated at each row, minus the row's excess with its own spread.

    `own` holds the kernel at the steps (1, 0, 0), (1, 1, 0), (1, 0, 1) and (1, 1, 1).
    """
    (score, effort, aggregate, survey), (low, per_step), size = people, scale, field.shape[0]
    for row in range(score.size):
        v = survey[row] if survey.size else 1.0
        i, f = cell_of(score[row], low[0], per_step[0], size)
        j, g = cell_of(effort[row], low[1], per_step[1], size)
        k, h = cell_of(aggregate[row], low[2], per_step[2], size)
        corners = field[i : i + 2, j : j + 2, k : k + 2]
        lower = (1.0 - g) * ((1.0 - h) * corners[0, 0, 0] + h * corners[0, 0, 1]) + g * (
            (1.0 - h) * corners[0, 1, 0] + h * corners[0, 1, 1]
        )
        upper = (1.0 - g) * ((1.0 - h) * corners[1, 0, 0] + h * corners[1, 0, 1]) + g * (
            (1.0 - h) * corners[1, 1, 0] + h * corners[1, 1, 1]
        )
        a, b, c = v * 2.0 * f * (1.0 - f), 2.0 * g * (1.0 - g), 2.0 * h * (1.0 - h)
        self_pair = (1.0 - b) * ((1.0 - c) * own[0] + c * own[2]) + b * ((1.0 - c) * own[1] + c * own[3])
        out[row] = (1.0 - f) * lower + f * upper - a * self_pair


@kernel()
def lags(a: float, b: float, low: float, per_step: float, size: int) -> tuple[Lags, Shares]:
    """Return the three possible grid lags of two linearly binned values, and the weights of the lags."""
    i, f = cell_of(a, low, per_step, size)
    j, g = cell_of(b, low, per_step, size)
    steps = abs(i - j - 1), abs(i - j), abs(i - j + 1)
    return steps, ((1.0 - f) * g, (1.0 - f) * (1.0 - g) + f * g, f * (1.0 - g))


@kernel()
def smeared(table: FloatArray, x: tuple[Lags, Shares], y: tuple[Lags, Shares], z: tuple[Lags, Shares]) -> float:
    """Return the mean of an even kernel, tabulated at integer steps, over the lags of two points."""
    total = 0.0
    for i in range(3):
        for j in range(3):
            both = x[1][i] * y[1][j]
            for k in range(3):
                total += both * z[1][k] * table[x[0][i], y[0][j], z[0][k]]
    return total


@kernel()
def weighed(e: float, s: float, weight: float, shape: Shape) -> float:
    """Return the distance for a difference in effort and a difference in aggregate."""
    if len(shape) == 0:
        return float(np.sqrt(weight * e * e + (1.0 - weight) * s * s))
    return float(weight * e + (1.0 - weight) * s)


@kernel()
def deviations(
    pairs: Columns, weight: float, tolerance: float, scale: Columns, tables: Columns, shape: Shape, out: FloatArray
) -> None:
    """Write (pairs, 2) each pair's bias of the extrapolated grid and of the grid of violations.

    `first` and `second` (3, pairs) contain score, effort and aggregate of the two people.
    The tables are the kernels at integer steps of the coarse grid (of double step) and of the fine grid.
    """
    (first, second), (low, per_step), (coarse, fine, hits) = pairs, scale, tables
    half, room = per_step / 2.0, np.zeros(3)
    for axis in range(3):
        room[axis] = 2.0 / per_step[axis] if per_step[axis] > 0.0 else 0.0  # the largest shift of a pair by both grids
    for pair in range(out.shape[0]):
        a, b, c = first[0, pair], first[1, pair], first[2, pair]
        d, f, g = second[0, pair], second[1, pair], second[2, pair]
        m, e, s = abs(a - d), abs(b - f), abs(c - g)
        if m + room[0] <= weighed(
            max(0.0, e - room[1]), max(0.0, s - room[2]), weight, shape
        ):  # no excess on either grid
            out[pair, 0], out[pair, 1] = 0.0, 0.0
            continue
        excess = m - weighed(e, s, weight, shape)
        violated = excess > tolerance
        size = coarse.shape[0]
        x, y = lags(a, d, low[0], half[0], size), lags(b, f, low[1], half[1], size)
        extrapolated = -smeared(coarse, x, y, lags(c, g, low[2], half[2], size)) / 3.0
        size = fine.shape[0]
        x, y = lags(a, d, low[0], per_step[0], size), lags(b, f, low[1], per_step[1], size)
        z = lags(c, g, low[2], per_step[2], size)
        close = smeared(fine, x, y, z)
        hit = smeared(hits, x, y, z) if close > 0.0 else 0.0  # without an excess there is no violation
        out[pair, 0] = extrapolated + 4.0 * close / 3.0 - (excess if violated else 0.0)
        out[pair, 1] = hit - (1.0 if violated else 0.0)


@kernel(fast=True)
def largest_in_rows(first: Columns, second: Columns, most: FloatArray, shape: Shape) -> None:
    """Write the largest D - d of each row of a tile."""
    (ui, vi, mi), (uj, vj, mj) = first, second
    for i in range(ui.size):
        u, v, m = ui[i], vi[i], mi[i]
        largest = -1e30
        for j in range(uj.size):
            x = abs(m - mj[j]) - length(u - uj[j], v - vj[j], shape)
            largest = max(largest, x)
        most[i] = largest


@kernel()
def bound(low: FloatArray, high: FloatArray, a: int, b: int, shape: Shape) -> float:
    """Return an upper bound of D - d between rows of blocks a and b."""
    across_u = max(0.0, low[a, 0] - high[b, 0], low[b, 0] - high[a, 0])
    across_v = max(0.0, low[a, 1] - high[b, 1], low[b, 1] - high[a, 1])
    largest = max(high[a, 2] - low[b, 2], high[b, 2] - low[a, 2])
    return float(largest - length(across_u, across_v, shape))


@kernel()
def block_bounds(low: FloatArray, high: FloatArray, shape: Shape, out: FloatArray) -> None:
    """Write an upper bound of D - d between rows of each block and rows of the same or later blocks."""
    for a in range(out.size):
        out[a] = -1.0
        for b in range(a, out.size):
            out[a] = max(out[a], bound(low, high, a, b, shape))


@kernel()
def before(excess: IntArray, pair: IntArray, a: int, b: int) -> bool:
    """Return whether pair a of the list is worse than pair b, by excess and then by the people's numbers."""
    if excess[a] != excess[b]:
        return bool(excess[a] > excess[b])
    if pair[a, 0] != pair[b, 0]:
        return bool(pair[a, 0] < pair[b, 0])
    return bool(pair[a, 1] < pair[b, 1])


@kernel()
def mildest(excess: IntArray, pair: IntArray, last: int) -> int:
    """Return the index of the mildest pair in the list, without the candidate at the end."""
    for number in range(excess.size - 1):
        if before(excess, pair, last, number):
            last = number
    return last


@kernel()
def keep(excess: IntArray, pair: IntArray, last: int) -> int:
    """Replace the mildest pair by the candidate at the list's end if that is worse; return the mildest pair's index.

    The list has one more entry than the requested pairs, for the candidate.
    """
    candidate = excess.size - 1
    if not before(excess, pair, candidate, last):
        return last
    excess[last], pair[last, 0], pair[last, 1] = excess[candidate], pair[candidate, 0], pair[candidate, 1]
    return mildest(excess, pair, last)


@kernel()
def search_row(
    points: Columns,
    person: IntArray,
    row: int,
    columns: tuple[int, int],
    worst: tuple[IntArray, IntArray],
    last: int,
    shape: Shape,
) -> int:
    """Keep the worst pairs of one row with a range of columns; return the index of the mildest pair in the list."""
    (u, v, m), (excess, pair) = points, worst
    candidate = excess.size - 1
    for column in range(columns[0], columns[1]):
        x = abs(m[row] - m[column]) - length(u[row] - u[column], v[row] - v[column], shape)
        whole = int(np.floor(x / UNIT + 0.5))
        if person[column] >= 0 and whole > 1 and whole >= excess[last]:
            excess[candidate] = whole
            pair[candidate, 0] = min(person[row], person[column])
            pair[candidate, 1] = max(person[row], person[column])
            last = keep(excess, pair, last)
    return last


@kernel()
def search(
    points: Columns,
    person: IntArray,
    boxes: Columns,
    blocks: IntArray,
    worst: tuple[IntArray, IntArray],
    shape: Shape,
) -> None:
    """Collect the worst pairs between `blocks` and all later blocks in a list of excesses and pairs.

    `person` is the number of the first person on each row; -1 for padding.
    """
    (u, v, m), (low, high), (excess, pair) = points, boxes, worst
    size = u.size // low.shape[0]
    most = np.empty(size)
    last = mildest(excess, pair, 0)
    for a in blocks:
        i, k = a * size, (a + 1) * size
        for b in range(a, low.shape[0]):
            if (bound(low, high, a, b, shape) + UNIT) / UNIT < excess[last]:
                continue
            j, n = b * size, (b + 1) * size
            largest_in_rows((u[i:k], v[i:k], m[i:k]), (u[j:n], v[j:n], m[j:n]), most, shape)
            for r in range(size):
                if person[i + r] < 0 or (most[r] + UNIT) / UNIT < excess[last]:
                    continue
                later = i + r + 1 if a == b else j
                last = search_row(points, person, i + r, (later, n), worst, last, shape)
