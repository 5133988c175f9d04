"""Compiled loops that order rows along a k-d tree, for `exact`. Import only where needed: this imports numba.

They only compare and move numbers, so every processor produces the same order. NumPy's `argpartition` does not, because
its arrangement of the halves depends on the processor's vector width.

References
----------
J. L. Bentley (1975), Multidimensional binary search trees used for associative searching, Communications of the ACM 18.
C. A. R. Hoare (1961), Algorithm 65: find, Communications of the ACM 4.
"""

from __future__ import annotations

import numpy as np

from evenhand.stats.compiled import STEP, kernel, mixed
from evenhand.stats.types import FloatArray, IntArray

_DEEPEST = 128  # parts still to be halved: one per level, with at most 64 levels


@kernel()
def widest_axis(points: FloatArray, start: int, end: int) -> int:
    """Return the axis with the largest range over positions `start` to before `end`."""
    widest, spread = 0, -1.0
    for axis in range(points.shape[0]):
        values = points[axis, start:end]
        low, high = values[0], values[0]
        for value in values:
            low, high = min(low, value), max(high, value)
        if high - low > spread:
            widest, spread = axis, high - low
    return widest


@kernel()
def move_halves(points: FloatArray, order: IntArray, part: tuple[int, int, int], axis: int) -> None:
    """Move the lower values of an axis before the middle of a range and the higher values after it."""
    start, middle, end = part
    values = points[axis]
    low, high = start, end - 1
    state = np.uint64(0)
    while low < high:
        # The median of three pseudo-random positions, so that no usual order of rows is a slow one.
        state = mixed(state + STEP)
        width = np.uint64(high - low + 1)
        a, b = values[low + np.int64(state % width)], values[low + np.int64((state >> np.uint64(21)) % width)]
        c = values[low + np.int64((state >> np.uint64(42)) % width)]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                for row in range(points.shape[0]):
                    points[row, i], points[row, j] = points[row, j], points[row, i]
                i, j = i + 1, j - 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@kernel()
def arrange(points: FloatArray, order: IntArray, block: int) -> None:
    """Order positions along the tree, down to parts of at most `block` positions."""
    waiting = np.empty((_DEEPEST, 2), dtype=np.int64)
    waiting[0, 0], waiting[0, 1] = 0, order.size
    count = 1
    while count > 0:
        count -= 1
        start, end = waiting[count, 0], waiting[count, 1]
        if end - start <= block:
            continue
        middle = start + ((end - start) // block + 1) // 2 * block
        move_halves(points, order, (start, middle, end), widest_axis(points, start, end))
        waiting[count, 0], waiting[count, 1] = start, middle
        waiting[count + 1, 0], waiting[count + 1, 1] = middle, end
        count += 2
