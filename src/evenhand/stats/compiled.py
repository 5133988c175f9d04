"""Loops compiled with numba, which is imported at the first call and never with the package.

The loops over pairs of people are in `pairs.kernels`. Import this module only where a loop is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from evenhand.stats.types import BoolArray, FloatArray, IntArray

_Kernel = TypeVar("_Kernel", bound=Callable[..., object])
# Sums may be reordered and fused into vectors; square roots stay correctly rounded (no "afn").
_FAST = {"nnan", "ninf", "nsz", "arcp", "contract", "reassoc"}
STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
TO_UNIT = 2.0**-53
_ROUNDING = 1e-12
CutRows = tuple[IntArray, FloatArray, FloatArray, FloatArray, float]  # group, gains, base, size and step of a problem
CutLimits = tuple[FloatArray, float, float]  # floors, the largest gap, and the largest violation that counts as none


def kernel(*, fast: bool = False) -> Callable[[_Kernel], _Kernel]:
    """Return a decorator that compiles a function on numbers and arrays and releases the interpreter lock.

    The machine code is cached beside the module, or in the user's cache folder if the package is read-only;
    if neither can be written, it is compiled again in each process.

    Parameters
    ----------
    fast
        Whether sums may be reordered, so that loops become vector instructions. Inputs must be finite.

    Examples
    --------
    >>> @kernel()
    ... def double(value: float) -> float:
    ...     return 2.0 * value
    >>> double(4.0)
    8.0
    """

    def decorate(function: _Kernel) -> _Kernel:
        math = _FAST if fast else False
        try:
            compiled = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=math)(function)
        except RuntimeError:  # numba: "cannot cache function: no locator available"
            compiled = numba.njit(nogil=True, error_model="numpy", fastmath=math)(function)
        return cast(_Kernel, compiled)

    return decorate


@kernel()
def add_weighted(
    step: IntArray, cell: IntArray, person: IntArray, added: FloatArray, times: npt.NDArray[np.uint8], out: FloatArray
) -> None:
    """Add each state's values, times the number of draws of its person, to `out` (steps, cells, values, draws).

    The order of states does not depend on the number of threads, so the sums are bit-identical.
    """
    draws = times.shape[1]
    weight = np.empty(draws)
    last = -1
    for state in range(step.size):
        if person[state] != last:
            last = person[state]
            row = times[last]
            for draw in range(draws):
                weight[draw] = row[draw]
        for value in range(added.shape[1]):
            factor = added[state, value]
            if factor != 0.0:
                target = out[step[state], cell[state], value]
                for draw in range(draws):
                    target[draw] += factor * weight[draw]


@kernel()
def count_drawn(drawn: npt.NDArray[np.uint32], counts: npt.NDArray[np.uint8]) -> None:
    """Add the number of times each person occurs in `drawn` (resamples, people) to `counts`."""
    for number in range(drawn.shape[0]):
        count = counts[number]
        for person in drawn[number]:
            count[np.uint64(person)] += np.uint8(1)


@kernel()
def write_times(counts: npt.NDArray[np.uint8], times: npt.NDArray[np.uint8]) -> None:
    """Write the transpose of counts (resamples, people) into times (people, resamples)."""
    for person in range(counts.shape[1]):
        for number in range(counts.shape[0]):
            times[person, number] = counts[number, person]


@kernel()
def mixed(state: np.uint64) -> np.uint64:
    """Return the output of SplitMix64 for a state (Steele, Lea and Flood 2014)."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return np.uint64(z ^ (z >> np.uint64(31)))


@kernel()
def draw_counts(key: np.uint64, number: int, size: int, cell: IntArray, counts: FloatArray) -> None:
    """Write the cell counts of `size` random rows into `counts`; they depend only on the key and the draw's number."""
    counts[:] = 0.0
    state = mixed(key + STEP * np.uint64(number + 1))
    scale = TO_UNIT * cell.size
    for _ in range(size):
        state += STEP
        row = np.uint64(float(mixed(state) >> np.uint64(11)) * scale)
        counts[np.uint64(cell[row])] += 1.0


@kernel(fast=True)
def dot(a: FloatArray, b: FloatArray) -> float:
    """Return the sum of the products of two arrays."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel()
def draw_sums(
    key: np.uint64, first: int, last: int, cells: tuple[IntArray, ...], columns: FloatArray, sums: FloatArray
) -> None:
    """Write the group sums of draws first .. last - 1 into `sums` (J, G, Q); `columns` is (Q, C)."""
    sizes, cell, start = cells
    counts = np.zeros(columns.shape[1])
    for number in range(first, last):
        draw_counts(key, number, sizes[number], cell, counts)
        for group in range(start.size - 1):
            members = slice(start[group], start[group + 1])
            for q in range(columns.shape[0]):
                sums[number, group, q] = dot(counts[members], columns[q, members])


@kernel()
def add_powers(
    values: FloatArray, people: IntArray, codes: IntArray, scale: tuple[float, float], powers: FloatArray
) -> None:
    """Add the powers 0, 1, ... of people's standardised values to `powers` (powers, groups)."""
    for i in range(values.size):
        z, power = (values[i] - scale[0]) / scale[1], float(people[i])
        for j in range(powers.shape[0]):
            powers[j, codes[i]] += power
            power *= z


@kernel()
def add_weighted_powers(
    values: FloatArray,
    weights: FloatArray,
    people: IntArray,
    codes: IntArray,
    scale: tuple[float, float, float],
    powers: FloatArray,
) -> None:
    """Add powers k of people's weights times powers j <= k of standardised values to `powers` (k, j, groups).

    `scale` contains the mean and the standard deviation of values, and the mean weight.
    """
    for i in range(values.size):
        z, w, g, heavy = (values[i] - scale[0]) / scale[1], weights[i] / scale[2], codes[i], float(people[i])
        for k in range(powers.shape[0]):
            power = heavy
            for j in range(k + 1):
                powers[k, j, g] += power
                power *= z
            heavy *= w


@kernel()
def judge_cut(top: FloatArray, bottom: FloatArray, limits: CutLimits) -> tuple[float, float]:
    """Return a cut's violation of the floors and the gap limit, and its gap; inf if a group has no value."""
    floors, gap_limit, met = limits
    high, low, violation = -np.inf, np.inf, 0.0
    for g in range(top.size):
        if bottom[g] <= 0:
            return np.inf, np.inf
        value = top[g] / bottom[g]
        high, low = max(high, value), min(low, value)
        violation += max(floors[g] - value, 0.0)
    violation += max(high - low - gap_limit, 0.0)
    return (0.0 if violation <= met else violation), high - low


@kernel()
def scan_thresholds(
    scores: FloatArray, order: IntArray, rows: CutRows, goal: int, limits: CutLimits, apart: float, out: FloatArray
) -> None:
    """Write violation, objective and threshold of each direction's best cut into `out` (B, 3).

    `scores` has a row for each direction; `order` sorts each row in increasing order, and rows are selected from its
    end. A cut lies between two scores that differ by more than `apart` times the range. Goal -1 means fairness; any
    other goal is a group's number.
    """
    group, gains, base, size, step = rows
    people = group.size
    top, bottom = np.empty(base.size), np.empty(base.size)
    for b in range(scores.shape[0]):
        score, rank = scores[b], order[b]
        lowest, highest = score[rank[0]], score[rank[people - 1]]
        least = apart * (highest - lowest)
        top[:] = base
        bottom[:] = size
        best_violation, best_objective, best_cut = np.inf, np.inf, np.inf
        for selected in range(people + 1):
            if selected > 0:
                row = rank[people - selected]
                top[group[row]] += gains[row]
                bottom[group[row]] += step
            above = highest + 1.0 if selected == 0 else score[rank[people - selected]]
            below = lowest - 1.0 if selected == people else score[rank[people - selected - 1]]
            if above - below <= least:
                continue
            violation, gap = judge_cut(top, bottom, limits)
            if violation == np.inf:
                continue
            objective = gap if goal < 0 else -top[goal] / bottom[goal]
            if violation < best_violation or (violation == best_violation and objective < best_objective):
                best_violation, best_objective, best_cut = violation, objective, 0.5 * (above + below)
        out[b, 0], out[b, 1], out[b, 2] = best_violation, best_objective, best_cut


# The smallest gap compatible with incomplete answers: see `feedback.joint` ------------------------------------------


@kernel()
def share(c: float, x: float) -> float:
    """Return c / (c + x), or 0 if c is 0."""
    return c / (c + x) if c > 0 else 0.0


@kernel()
def remainder(c: float, rate: float, without: float) -> float:
    """Return the x with c / (c + x) = rate; inf if the rate is 0 or less, and `without` if c is 0."""
    if c <= 0:
        return without
    return c / rate - c if rate > 0 else np.inf


@kernel()
def second_x(two: FloatArray, rate: float, least: bool) -> float:
    """Return the second group's x at which its rate is `rate`, clipped to its limits; `two` is (c, low, high)."""
    c, low, high = float(two[0]), float(two[1]), float(two[2])
    if c == 0:
        return low if least else high
    return min(max(c / rate - c, low), high) if rate > 0 else high


@kernel()
def smallest_corner(
    one: FloatArray, two: FloatArray, box: FloatArray, slack: FloatArray, total: float, sign: float
) -> float:
    """Return the smallest sum of the signed second group's x over the box (2, K) cut by the total."""
    labels, best = slack.size, np.inf
    ends = np.empty((2, labels))
    for end in range(2):
        for k in range(labels):
            ends[end, k] = sign * second_x(two[:, k], share(one[0, k], box[end, k]) + sign * slack[k], sign > 0)
    outside = 0 if sign > 0 else 1  # if the curves are flat, x may lie beyond
    if (box[0].sum() >= total) if sign > 0 else (box[1].sum() <= total):
        return float(ends[outside].sum())
    for k in range(labels):
        for corner in range(2 ** (labels - 1)):
            taken, value, bit = 0.0, 0.0, 0
            for label in range(labels):
                if label != k:
                    end = corner >> bit & 1
                    taken, value, bit = taken + box[end, label], value + ends[end, label], bit + 1
            x = total - taken
            if box[0, k] - _ROUNDING <= x <= box[1, k] + _ROUNDING:
                x = min(max(x, box[0, k]), box[1, k])
                value += sign * second_x(two[:, k], share(one[0, k], x) + sign * slack[k], sign > 0)
                best = min(best, value)
    return best


@kernel()
def gap_is_possible(
    one: FloatArray, two: FloatArray, totals: tuple[float, float], slack: FloatArray, boxes: FloatArray
) -> bool:
    """Return whether two groups (3, K) of c, low and high can differ by at most `slack` (K) in every label."""
    low_sum, high_sum = 0.0, 0.0
    for k in range(slack.size):
        c, t = one[0, k], slack[k]
        lowest, highest = share(two[0, k], two[2, k]), share(two[0, k], two[1, k])
        low = max(one[1, k], remainder(c, highest + t, -np.inf))
        high = min(one[2, k], remainder(c, lowest - t, np.inf))
        if low > high + _ROUNDING or (c == 0 and lowest > t + _ROUNDING):
            return False
        low_sum, high_sum = low_sum + low, high_sum + high
        low = min(low, high)
        boxes[0, 0, k] = min(max(remainder(c, highest - t, np.inf), low), high)
        boxes[0, 1, k], boxes[1, 0, k] = high, low
        boxes[1, 1, k] = min(max(remainder(c, lowest + t, -np.inf), low), high)
    if low_sum > totals[0] + _ROUNDING or high_sum < totals[0] - _ROUNDING:
        return False
    if smallest_corner(one, two, boxes[0], slack, totals[0], 1.0) > totals[1] + _ROUNDING:
        return False
    return -smallest_corner(one, two, boxes[1], slack, totals[0], -1.0) >= totals[1] - _ROUNDING


@kernel()
def narrow_gap(
    one: FloatArray, two: FloatArray, totals: FloatArray, used: BoolArray, ends: FloatArray, precision: float
) -> None:
    """Bisect the ends (2, rows) that enclose each row's smallest possible gap.

    `one` and `two` (rows, 3, K) contain c and the limits of x, `totals` (2, rows) the sums of x, and `used` the mask of
    compared labels.
    """
    slack, boxes = np.empty(used.shape[1]), np.empty((2, 2, used.shape[1]))
    for row in range(used.shape[0]):
        while ends[1, row] - ends[0, row] > precision:
            middle = (ends[0, row] + ends[1, row]) / 2
            for k in range(slack.size):
                slack[k] = middle if used[row, k] else 2.0
            possible = gap_is_possible(one[row], two[row], (totals[0, row], totals[1, row]), slack, boxes)
            ends[1 if possible else 0, row] = middle
