"""Compiled scan of all thresholds of a direction. Import only where a kernel is called: this imports numba."""

from __future__ import annotations

import numpy as np

from evenhand.stats.pairs.compiled import kernel
from evenhand.stats.types import FloatArray, IntArray


@kernel()
def scan_thresholds(
    scores: FloatArray,
    order: IntArray,
    group: IntArray,
    gains: FloatArray,
    base: FloatArray,
    size: FloatArray,
    step: float,
    goal: int,
    floors: FloatArray,
    gap_limit: float,
    met: float,
    apart: float,
    out: FloatArray,
) -> None:
    """Write violation, objective and threshold of the best cut of each direction (row of `scores`) into `out` (B, 3).

    `order` sorts each row up; rows are selected from its end. A cut lies between two scores that differ by more than
    `apart` times the range. Goal -1 is fairness, else a group.
    """
    groups, rows = base.size, group.size
    top, bottom = np.empty(groups), np.empty(groups)
    for b in range(scores.shape[0]):
        own = scores[b]
        at = order[b]
        lowest, highest = own[at[0]], own[at[rows - 1]]
        least = apart * (highest - lowest)
        top[:] = base
        bottom[:] = size
        best_violation, best_objective, best_cut = np.inf, np.inf, np.inf
        for selected in range(rows + 1):
            if selected > 0:
                row = at[rows - selected]
                top[group[row]] += gains[row]
                bottom[group[row]] += step
            above = highest + 1.0 if selected == 0 else own[at[rows - selected]]
            below = lowest - 1.0 if selected == rows else own[at[rows - selected - 1]]
            if above - below <= least:
                continue
            high, low, violation = -np.inf, np.inf, 0.0
            for g in range(groups):
                if bottom[g] <= 0:
                    violation = np.inf
                    break
                value = top[g] / bottom[g]
                high, low = max(high, value), min(low, value)
                violation += max(floors[g] - value, 0.0)
            if violation == np.inf:
                continue
            violation += max(high - low - gap_limit, 0.0)
            if violation <= met:
                violation = 0.0
            objective = high - low if goal < 0 else -top[goal] / bottom[goal]
            if violation < best_violation or (violation == best_violation and objective < best_objective):
                best_violation, best_objective, best_cut = violation, objective, 0.5 * (above + below)
        out[b, 0], out[b, 1], out[b, 2] = best_violation, best_objective, best_cut
