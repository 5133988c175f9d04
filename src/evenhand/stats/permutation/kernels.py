"""Compiled loops of the studentised permutation. Import only where needed: this imports numba."""

from __future__ import annotations

import numpy as np

from evenhand.stats.compiled import STEP, TO_UNIT, kernel, mixed
from evenhand.stats.types import FloatArray, IntArray

_NO_VARIANCE = 1e-13  # of the mean square, by rounding


@kernel()
def shuffle_sums(
    key: np.uint64,
    first: int,
    people: IntArray,
    parts: tuple[IntArray, IntArray, IntArray],
    columns: FloatArray,
    sums: FloatArray,
) -> None:
    """Add the columns (C, Q) of people drawn without replacement to `sums` (B, S, Q), for draws first, first + 1, ...

    `people` contains the cell of each person, part after part, and stays shuffled. `parts` contains each part's first
    person, its stratum, and the number of people to draw: (B, parts), or (1, parts) for the same number in all draws.
    Each loop does one thing, so the compiler can process several people at once.
    """
    start, stratum, takes = parts
    drawn = np.empty(takes.max(), dtype=np.int64)
    for draw in range(sums.shape[0]):
        state, take = mixed(key + STEP * np.uint64(first + draw + 1)), takes[draw % takes.shape[0]]
        for part in range(take.size):
            low, size = start[part], start[part + 1] - start[part]
            for i in range(take[part]):
                share = float(mixed(state + STEP * np.uint64(i + 1)) >> np.uint64(11)) * TO_UNIT
                drawn[i] = low + i + np.int64(share * (size - i))
            state += STEP * np.uint64(take[part])
            for i in range(take[part]):
                other, here = np.uint64(drawn[i]), np.uint64(low + i)
                drawn[i], people[other] = people[other], people[here]
                people[here] = drawn[i]
            for q in range(columns.shape[1]):
                added = 0.0
                for i in range(take[part]):
                    added += columns[np.uint64(drawn[i]), q]
                sums[draw, stratum[part], q] += added


@kernel()
def tilted_takes(key: np.uint64, chances: FloatArray, sums: FloatArray, least: IntArray, out: IntArray) -> None:
    """Write the number of people drawn from each part into `out` (B, parts), for unequal odds and a fixed total.

    Parameters
    ----------
    chances : (parts, K) the probabilities of least, least + 1, ... people of a part under independent draws.
    sums : (parts + 1, take + 1) the probabilities of each number of people from this part and all later parts.
    least : (parts,) see `chances`.
    """
    for draw in range(out.shape[0]):
        state, left = mixed(key + STEP * np.uint64(draw + 1)), sums.shape[1] - 1
        for part in range(out.shape[1]):
            state += STEP
            goal = float(mixed(state) >> np.uint64(11)) * TO_UNIT * sums[part, left]
            most = min(left, least[part] + chances.shape[1] - 1)
            found, number = 0.0, -1
            for k in range(least[part], most + 1):
                chance = chances[part, k - least[part]] * sums[part + 1, left - k]
                if chance > 0.0:
                    found += chance
                    number = k
                    if found > goal:
                        break
            out[draw, part] = number
            left -= number


@kernel()
def row_variance(ww: float, wwz: float, wwzz: float, mean: float) -> float:
    """Return the variance of a person's value about a mean, from sums of w², w² z and w² z²; 0 if only rounding."""
    row = (wwzz - 2.0 * mean * wwz + mean * mean * ww) / ww
    return row if row > _NO_VARIANCE * (wwzz / ww + _NO_VARIANCE) else 0.0


@kernel()
def standardise(sums: FloatArray, people: FloatArray, shares: FloatArray, pooled: FloatArray, out: FloatArray) -> None:
    """Write (2, B) standardised means and their squared standard errors into `out`.

    Parameters
    ----------
    sums : (B, S, Q) of z and z² over the people of each stratum; with weights, of w, w z, w², w² z and w² z².
    people : (S,) the number of people.
    shares : (S,) the strata's shares in the mean.
    pooled : (S,) the variance of a person's value in strata with only one person.
    """
    for draw in range(sums.shape[0]):
        mean_of_all, variance_of_all = 0.0, 0.0
        for s in range(sums.shape[1]):
            n, found = people[s], sums[draw, s]
            w, wz, ww, wwz, wwzz = n, found[0], n, found[0], found[1]
            if found.size == 5:
                w, wz, ww, wwz, wwzz = found[0], found[1], found[2], found[3], found[4]
            mean = wz / w
            row = row_variance(ww, wwz, wwzz, mean) * n / (n - 1.0) if n > 1.0 else pooled[s]
            mean_of_all += shares[s] * mean
            variance_of_all += shares[s] * shares[s] * row * ww / (w * w)
        out[0, draw], out[1, draw] = mean_of_all, variance_of_all
