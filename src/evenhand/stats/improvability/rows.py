"""The test rows of one split, with u and w under status quo and candidate, and their merging into cells.

The bootstrap is linear in the row weights, so a cell of equal rows needs one weight. Rows of a group that share every u
and w form a cell; rows whose u and w are all 0 do not count and form the rest, in any group. A resample of n rows is
then a multinomial draw over the cells and the rest. With integer outcomes there are few cells; with a utility that
counts only selected rows, nearly all rows are in the rest. Both are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import DataError
from evenhand.messages import Message
from evenhand.stats.improvability.messages import say
from evenhand.stats.improvability.utilities import Utility, group_values, ratios
from evenhand.stats.pairs import hashes, starts
from evenhand.stats.types import FloatArray, IntArray

STATUS_QUO, CANDIDATE = 0, 1
_ALGORITHMS = (say("status_quo"), say("candidate"))

_LEAST_ROWS = 2
_FEW_ROWS = 10


@dataclass(frozen=True, eq=False)
class Rows:
    """Test rows decided by two algorithms, with G groups and K utilities.

    Attributes
    ----------
    group
        (n,) group codes 0 to G - 1.
    terms
        (n, K, 2, 2) for each utility and for status quo and candidate, u and w.
    names
        The G names of the groups.
    utilities
        The K names of the utilities.
    """

    group: IntArray
    terms: FloatArray
    names: tuple[str, ...]
    utilities: tuple[str, ...]

    def __len__(self) -> int:
        return self.group.size

    def values(self) -> FloatArray:
        """Return (G + 1, K, 2) the values of status quo and candidate for each group; the last is all rows."""
        return ratios(with_everyone(self.sums(np.ones((1, len(self)))))[0])

    def sums(self, weights: ArrayLike) -> FloatArray:
        """Return (J, G, K, 2, 2) the sums of u and w by group for J sets of row weights (J, n)."""
        w = np.asarray(weights, dtype=np.float64)
        flat = self.terms.reshape(len(self), -1)
        by_group = [w[:, self.group == g] @ flat[self.group == g] for g in range(len(self.names))]
        return np.stack(by_group, axis=1).reshape(len(w), len(self.names), *self.terms.shape[1:])

    def counted(self) -> IntArray:
        """Return (G, K, 2) the number of counted rows (w other than 0) of each group."""
        counts = self.terms[..., 1] != 0
        return np.stack([counts[self.group == g].sum(axis=0) for g in range(len(self.names))]).astype(np.int64)

    def freedom(self) -> float:
        """Return the smallest degrees of freedom of any group value's variance.

        With e = u - value w over the group's rows, it is 2 (sum e²)² / (sum e⁴ - (sum e²)² / n), but at most the number
        of counted rows minus 1. It is about n if e is normal, and about 2 k if k of many decisions are wrong.

        References
        ----------
        F. E. Satterthwaite (1946), An approximate distribution of estimates of variance components, Biometrics
        Bulletin 2.
        """
        values, least = self.values(), self.counted() - 1.0
        for g in range(len(self.names)):
            rows = self.terms[self.group == g]
            apart = rows[..., 0] - np.where(np.isfinite(values[g]), values[g], 0.0) * rows[..., 1]
            squares, n = (apart**2).sum(axis=0), np.maximum(least[g] + 1.0, 1.0)
            excess = (apart**4).sum(axis=0) - squares**2 / n
            least[g] = np.minimum(least[g], 2.0 * squares**2 / np.where(excess > 0, excess, np.inf) + (excess <= 0) * n)
        return float(least.min())


def make_rows(
    group: ArrayLike,
    outcome: ArrayLike,
    status_quo: ArrayLike,
    candidate: ArrayLike,
    utilities: Sequence[Utility],
    *,
    names: Sequence[str],
    weights: ArrayLike | None = None,
    columns: Mapping[str, FloatArray] | None = None,
) -> Rows:
    """Return the test rows with their u and w under both algorithms.

    Parameters
    ----------
    group
        (n,) group codes 0 to G - 1.
    outcome
        (n,) outcomes; nan if unknown and not needed.
    status_quo, candidate
        (n,) decisions.
    utilities
        The utilities of accuracy and fairness, each once.
    names
        The G names of the groups.
    weights
        (n,) survey weights; u and w are multiplied by them.
    columns
        The columns that utilities name.

    Examples
    --------
    >>> from evenhand.stats.improvability import get_utility
    >>> rows = make_rows(
    ...     [0, 0, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 0, 1, 1], [get_utility("classification")], names="ab"
    ... )
    >>> rows.values()[:, 0]
    array([[0.5, 1. ],
           [0.5, 1. ],
           [0.5, 1. ]])
    """
    codes = check_groups(group, len(names))
    pairs = [
        [utility.terms(outcome, decision, columns) for decision in (status_quo, candidate)] for utility in utilities
    ]
    terms = np.moveaxis(np.array(pairs, dtype=np.float64), -1, 0)
    if terms.shape[0] != codes.size:
        raise DataError(
            "group and outcome must have one value per row; got {size} and {shape}.",
            size=codes.size,
            shape=terms.shape[0],
        )
    if weights is not None:
        terms = terms * check_weights(weights, codes.size)[:, np.newaxis, np.newaxis, np.newaxis]
    return Rows(codes, np.ascontiguousarray(terms), tuple(names), tuple(utility.name for utility in utilities))


def with_everyone(sums: FloatArray) -> FloatArray:
    """Return sums (J, G, ...) with their total over all groups appended as one more group.

    Examples
    --------
    >>> with_everyone(np.array([[1.0, 2.0]]))
    array([[1., 2., 3.]])
    """
    return np.concatenate([sums, sums.sum(axis=1, keepdims=True)], axis=1)


def check_counts(rows: Rows, where: str | Message = "the test rows") -> tuple[Message, ...]:
    """Return warnings on groups with fewer than 10 counted rows; raise for fewer than 2.

    A row counts if its w is not 0: for calibration if it is selected, for a false positive rate if its outcome is 0.

    Examples
    --------
    >>> from evenhand.stats.improvability import get_utility
    >>> rows = make_rows([0, 0, 1], [1, 0, 1], [1, 1, 1], [1, 1, 1], [get_utility("calibration")], names="ab")
    >>> check_counts(rows, "split 2")
    Traceback (most recent call last):
    evenhand.errors.DataError: in split 2, only 1 row of group 'b' counts for calibration under the status quo (a row \
counts when it is selected); the test needs at least 2 in each group. Use more rows, merge groups, or leave the group \
or the candidate out.
    """
    counted = rows.counted()
    few = np.argwhere(counted < _FEW_ROWS)
    remarks = []
    for g, k, t in few:
        seen, utility = int(counted[g, k, t]), rows.utilities[k]
        fact = say(
            "few_count_selected" if utility == "calibration" else "few_count",
            where=where,
            n=seen,
            group=rows.names[g],
            utility=utility,
            algorithm=_ALGORITHMS[t],
        )
        if seen < _LEAST_ROWS:
            raise DataError(
                "{fact}; the test needs at least {least} in each group. Use more rows, merge groups, or leave the "
                "group or the candidate out.",
                fact=fact,
                least=_LEAST_ROWS,
            )
        remarks.append(say("rough", fact=fact, few=_FEW_ROWS))
    return tuple(remarks)


class Pair(NamedTuple):
    """The groups with the highest and the lowest value."""

    high: int
    low: int


def worst_pair(
    group: ArrayLike,
    outcome: ArrayLike,
    status_quo: ArrayLike,
    *,
    utility: Utility,
    names: Sequence[str],
    weights: ArrayLike | None = None,
    where: str | Message = "the training rows",
    columns: Mapping[str, FloatArray] | None = None,
) -> Pair:
    """Return the two groups whose status quo values differ most in the training rows.

    The pair and its sign must not come from the test rows; otherwise a true null is rejected too often.

    Parameters
    ----------
    group, outcome, status_quo, weights, columns
        As in `make_rows`, for the training rows.
    utility
        The fairness utility.
    names
        The names of the groups.
    where
        A name for the rows, for messages.

    Examples
    --------
    >>> from evenhand.stats.improvability import get_utility
    >>> worst_pair([0, 0, 1, 1], [1, 0, 1, 1], [1, 0, 0, 1], utility=get_utility("classification"), names="ab")
    Pair(high=0, low=1)
    """
    codes = check_groups(group, len(names))
    u, w = utility.terms(outcome, status_quo, columns)
    if weights is not None:
        survey = check_weights(weights, codes.size)
        u, w = u * survey, w * survey
    values = group_values(u, w, codes, len(names))
    if np.isnan(values).any():
        name = names[int(np.argmax(np.isnan(values)))]
        raise DataError(
            "in {where}, no row of group '{group}' counts for {utility} under the status quo, so its fairness "
            "is not defined; merge the group with another or leave it out.",
            where=where,
            group=name,
            utility=utility.name,
        )
    pair = Pair(int(np.argmax(values)), int(np.argmin(values)))
    if values[pair.high] - values[pair.low] <= 1e-12 * np.abs(values).max():
        raise DataError(
            "in {where}, the status quo has the same value of {utility} in every group: it is perfectly fair "
            "there, and there is nothing to improve.",
            where=where,
            utility=utility.name,
        )
    return pair


def check_groups(group: ArrayLike, groups: int) -> IntArray:
    """Return the group codes as integers, or raise a `DataError`.

    Examples
    --------
    >>> check_groups([0, 1, 1], 2)
    array([0, 1, 1])
    """
    codes = np.asarray(group)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise DataError(
            "groups must be one whole number per row; got {dtype} of shape {shape}.",
            dtype=codes.dtype,
            shape=str(codes.shape),
        )
    if groups < 2:
        raise DataError("fairness compares groups, so there must be at least 2; got {groups}.", groups=groups)
    if codes.size and (codes.min() < 0 or codes.max() >= groups):
        raise DataError(
            "group codes must lie between 0 and {last}; got {least} to {most}.",
            last=groups - 1,
            least=codes.min(),
            most=codes.max(),
        )
    return codes.astype(np.int64)


def check_weights(weights: ArrayLike, rows: int) -> FloatArray:
    """Return the survey weights, or raise a `DataError`.

    Examples
    --------
    >>> check_weights([1, 2], 2)
    array([1., 2.])
    """
    survey = np.asarray(weights, dtype=np.float64)
    if survey.shape != (rows,) or not np.all(np.isfinite(survey) & (survey >= 0)):
        raise DataError(
            "weights must be {rows} numbers of at least 0, all finite; got shape {shape}.",
            rows=rows,
            shape=str(survey.shape),
        )
    return survey


@dataclass(frozen=True, eq=False)
class RowCells:
    """The distinct counted rows, ordered by group and a hash of their values, whatever the order of the rows.

    Attributes
    ----------
    columns
        (C, Q) the values of one row of each cell.
    count
        (C,) the rows of each cell.
    start
        (G + 1,) the cells of group g are start[g] to start[g + 1] - 1.
    rest
        The number of rows in no cell.
    row_cell
        (n,) the cell of each row; C for rows in no cell.
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
        """The number of rows in cells."""
        return int(self.count.sum())

    def sums(self, counts: ArrayLike) -> FloatArray:
        """Return (J, G, Q) the column sums by group for J sets of cell counts (J, C).

        This uses `einsum` instead of `@` because the products are small, and starting the threads of BLAS takes a third
        of the CPU time.
        """
        drawn = np.asarray(counts, dtype=np.float64)
        ends = zip(self.start[:-1], self.start[1:], strict=True)
        return np.stack([np.einsum("jc,cq->jq", drawn[:, a:b], self.columns[a:b]) for a, b in ends], axis=1)


def merge_rows(rows: Rows, columns: FloatArray | None = None) -> RowCells:
    """Merge equal counted rows of a group into cells.

    Parameters
    ----------
    rows
        The test rows.
    columns
        (n, Q) the summed columns; by default the u and w of `rows`. Columns that are functions of u and w, such as
        their products, do not split cells.

    Examples
    --------
    >>> from evenhand.stats.improvability import get_utility, make_rows
    >>> rows = make_rows(
    ...     [0, 0, 0, 1], [3, 3, 2, 3], [1, 1, 0, 1], [1, 1, 0, 0], [get_utility("calibration")], names="ab"
    ... )
    >>> cells = merge_rows(rows)
    >>> cells.count, cells.rest, cells.start
    (array([2, 1]), 1, array([0, 1, 2]))
    """
    keys = rows.terms.reshape(len(rows), -1)
    values = keys if columns is None else columns
    groups = len(rows.names)
    counted = np.flatnonzero((keys != 0).any(axis=1))
    mixed = hashes(*(np.ascontiguousarray(keys[counted, q]) for q in range(keys.shape[1])))
    order = counted[np.lexsort((mixed, rows.group[counted]))]
    same = [rows.group[order].astype(np.float64), *keys[order].T]
    new = starts(*same)
    first = np.flatnonzero(new)
    row_cell = np.full(len(rows), first.size, dtype=np.int64)
    row_cell[order] = np.cumsum(new) - 1
    cells = np.ascontiguousarray(values[order[first]])
    sizes = np.diff(np.append(first, order.size)).astype(np.int64)
    start = np.searchsorted(rows.group[order[first]], np.arange(groups + 1)).astype(np.int64)
    return RowCells(cells, sizes, start, len(rows) - order.size, row_cell)
