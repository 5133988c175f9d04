"""Merge identical people: their mutual excess is 0, so one row with their summed weight stands for all, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.stats.pairs.people import People
from evenhand.stats.types import BoolArray, FloatArray, IntArray

_Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Merged:
    """The distinct rows of (score, effort, aggregate), in an order that does not depend on that of the people.

    Attributes
    ----------
    score, effort, aggregate
        (rows,) the distinct values.
    weight
        (rows,) the summed weight of the people on each row.
    first
        (rows,) one person of each row.
    row
        (n,) the row of each person.
    """

    score: FloatArray
    effort: FloatArray
    aggregate: FloatArray
    weight: FloatArray
    first: IntArray
    row: IntArray

    def __len__(self) -> int:
        return self.score.size


def merge_people(people: People, order: IntArray | None = None) -> Merged:
    """Return the distinct rows and their weights.

    Parameters
    ----------
    people
        The people.
    order
        An order in which identical people are neighbours; by default that of a hash of the three values.

    Examples
    --------
    >>> import numpy as np
    >>> score = np.array([0.1, 0.7, 0.1])
    >>> merged = merge_people(People(score, np.zeros(3), np.zeros(3)))
    >>> sorted(zip(merged.score.tolist(), merged.weight.tolist()))
    [(0.1, 2.0), (0.7, 1.0)]
    >>> merged.score[merged.row]
    array([0.1, 0.7, 0.1])
    """
    if order is None:
        order = np.argsort(hashes(people.score, people.effort, people.aggregate), kind="stable")
    new = starts(people.score[order], people.effort[order], people.aggregate[order])
    at = np.flatnonzero(new)
    row = np.empty(len(people), dtype=np.int64)
    row[order] = np.cumsum(new) - 1
    first = order[at]
    if people.survey is None:
        weight = np.diff(np.append(at, len(people))).astype(np.float64)
    else:
        weight = np.add.reduceat(people.survey[order], at)
    return Merged(people.score[first], people.effort[first], people.aggregate[first], weight, first, row)


def starts(*columns: FloatArray) -> BoolArray:
    """Return where a row differs from the one before it.

    Examples
    --------
    >>> import numpy as np
    >>> starts(np.array([1.0, 1.0, 2.0]), np.array([5.0, 5.0, 5.0]))
    array([ True, False,  True])
    """
    new = np.ones(columns[0].size, dtype=np.bool_)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def hashes(*columns: FloatArray) -> _Hashes:
    """Return a 64-bit hash of each row. Two rows with one hash are merged less, never wrongly.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, -0.0])
    >>> h = hashes(x, np.zeros(3))
    >>> bool(h[0] == h[2]), bool(h[0] == h[1])
    (True, False)
    """
    mixed = np.zeros(columns[0].size, dtype=np.uint64)
    for column in columns:
        mixed += (column + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
        for shift, factor in ((33, 0xFF51AFD7ED558CCD), (29, 0xC4CEB9FE1A85EC53)):
            mixed ^= mixed >> np.uint64(shift)
            mixed *= np.uint64(factor)
        mixed ^= mixed >> np.uint64(32)
    return mixed


def distinct(hashed: _Hashes) -> int:
    """Return how many different hashes there are; sorts them in place.

    Examples
    --------
    >>> import numpy as np
    >>> distinct(np.array([3, 1, 3], dtype=np.uint64))
    2
    """
    hashed.sort()
    return int(np.count_nonzero(hashed[1:] != hashed[:-1])) + 1
