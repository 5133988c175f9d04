"""Merge rows that are alike: the bootstrap is linear in the row weights, so a cell of like rows needs one weight.

Rows of a group that share every u and w form a cell; rows whose u and w are all 0 count for nothing and form the rest,
whatever their group. A resample of n rows is then a multinomial draw over the cells and the rest. With whole-number
outcomes there are few cells; with a utility of the selected alone the rest holds nearly all rows. Both are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.stats.improvability.rows import Rows
from evenhand.stats.pairs.merge import hashes, starts
from evenhand.stats.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Cells:
    """The distinct rows, ordered by group and then by a hash of their values, so in no way by the order of the rows.

    Attributes
    ----------
    columns
        (C, Q) the values of one row of each cell.
    count
        (C,) the rows of each cell.
    start
        (G + 1,) the cells of group g are start[g] to start[g + 1] - 1.
    rest
        The rows that belong to no cell.
    row_cell
        (n,) the cell of each row; C for the rest.
    """

    columns: FloatArray
    count: IntArray
    start: IntArray
    rest: int
    row_cell: IntArray

    def __len__(self) -> int:
        return self.count.size

    @property
    def support(self) -> int:
        """The rows that belong to a cell."""
        return int(self.count.sum())

    def sums(self, counts: npt.ArrayLike) -> FloatArray:
        """Return (J, G, Q) the sums by group for J sets of cell counts (J, C).

        By `einsum` and not `@`: the products are small, and waking the threads of BLAS takes a third of all CPU time.
        """
        drawn = np.asarray(counts, dtype=np.float64)
        ends = zip(self.start[:-1], self.start[1:], strict=True)
        return np.stack([np.einsum("jc,cq->jq", drawn[:, a:b], self.columns[a:b]) for a, b in ends], axis=1)


def merge_rows(rows: Rows, columns: FloatArray | None = None, *, merge: bool = True) -> Cells:
    """Return the cells of the rows.

    Parameters
    ----------
    rows
        The test rows.
    columns
        (n, Q) what is summed; by default the u and w of `rows`. Columns that are functions of u and w, such as their
        products, do not split cells.
    merge
        Without it every row is a cell of its own: for tests.

    Examples
    --------
    >>> from evenhand.stats.improvability import get_utility, make_rows
    >>> rows = make_rows([0, 0, 0, 1], [3, 3, 2, 3], [1, 1, 0, 1], [1, 1, 0, 0], [get_utility("calibration")], "ab")
    >>> cells = merge_rows(rows)
    >>> cells.count, cells.rest, cells.start
    (array([2, 1]), 1, array([0, 1, 2]))
    """
    keys = rows.terms.reshape(len(rows), -1)
    values = keys if columns is None else columns
    groups = len(rows.names)
    kept = np.flatnonzero((keys != 0).any(axis=1)) if merge else np.arange(len(rows))
    mixed = hashes(*(np.ascontiguousarray(keys[kept, q]) for q in range(keys.shape[1])))
    order = kept[np.lexsort((mixed, rows.group[kept]))]
    same = [rows.group[order].astype(np.float64), *keys[order].T]
    new = starts(*same) if merge else np.ones(order.size, dtype=np.bool_)
    first = np.flatnonzero(new)
    row_cell = np.full(len(rows), first.size, dtype=np.int64)
    row_cell[order] = np.cumsum(new) - 1
    return Cells(
        columns=np.ascontiguousarray(values[order[first]]),
        count=np.diff(np.append(first, order.size)).astype(np.int64),
        start=np.searchsorted(rows.group[order[first]], np.arange(groups + 1)).astype(np.int64),
        rest=len(rows) - order.size,
        row_cell=row_cell,
    )
