"""Compiled resampling of rows. Import only where a kernel is called: this imports numba."""

from __future__ import annotations

import numpy as np

from evenhand.stats.pairs.compiled import kernel
from evenhand.stats.types import FloatArray, IntArray

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


@kernel()
def mixed(state: np.uint64) -> np.uint64:
    """Return the output of SplitMix64 for a state (Steele, Lea and Flood 2014)."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return np.uint64(z ^ (z >> np.uint64(31)))


@kernel()
def draw_counts(key: np.uint64, number: int, size: int, cell: IntArray, counts: FloatArray) -> None:
    """Draw `size` rows at random and count them by cell: the same for a key and a draw's number, on any thread."""
    counts[:] = 0.0
    state = mixed(key + _STEP * np.uint64(number + 1))
    scale = _TO_UNIT * cell.size
    for _ in range(size):
        state += _STEP
        row = np.uint64(float(mixed(state) >> np.uint64(11)) * scale)
        counts[np.uint64(cell[row])] += 1.0


@kernel(fast=True)
def dot(a: FloatArray, b: FloatArray) -> float:
    """Return the sum of products."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel()
def draw_sums(
    key: np.uint64,
    first: int,
    last: int,
    sizes: IntArray,
    cell: IntArray,
    columns: FloatArray,
    start: IntArray,
    sums: FloatArray,
) -> None:
    """Write the sums by group of the draws first .. last - 1 into `sums` (J, G, Q); `columns` is (Q, C)."""
    counts = np.zeros(columns.shape[1])
    for number in range(first, last):
        draw_counts(key, number, sizes[number], cell, counts)
        for group in range(start.size - 1):
            own = slice(start[group], start[group + 1])
            for q in range(columns.shape[0]):
                sums[number, group, q] = dot(counts[own], columns[q, own])
