"""Compiled sums over people drawn several times. Import only where a kernel is called: this imports numba."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.stats.pairs.compiled import kernel
from evenhand.stats.types import FloatArray, IntArray


@kernel()
def add_weighted(
    step: IntArray, cell: IntArray, person: IntArray, added: FloatArray, times: npt.NDArray[np.uint16], out: FloatArray
) -> None:
    """Add to out (steps, cells, values, draws) each state's values times how often its person was drawn.

    The states come in one order whatever the number of threads, so the sums are the same to the last bit.
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
