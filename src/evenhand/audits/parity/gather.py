"""The cells of one model and one grouping as dense arrays, and the totals as input of custom metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from evenhand.core.groups import largest_first
from evenhand.stats.bootstrap import CellMoments
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.engines import MOST_ROWS, TransferLimit
from evenhand.table.keys import YES
from evenhand.table.roles import MISSING
from evenhand.table.validation import state_key

_FACTORS = ("w", "s", "l")

TRANSFER = TransferLimit(
    "cells: combinations of groups, outcome, decision and score bin; for AUC the scores, once a model",
    MOST_ROWS,
    "AUC from 16,384 bins of the score, with its error",
)
"""The most data that an engine sends to this process for a parity audit."""


@dataclass(frozen=True)
class Totals:
    """People (or weights) of each group by decision and outcome, the input of a custom metric.

    All arrays have the same shape. The last axis is the groups; the axes before it are resamples.

    Parameters
    ----------
    tp, fp, fn, tn : people selected and positive, selected and negative, not selected and positive, and neither.
    score, loss : the sums of scores and of squared errors (0 for decisions).

    Examples
    --------
    >>> def f1(cells: Totals):
    ...     return 2 * cells.tp / (2 * cells.tp + cells.fp + cells.fn)
    """

    tp: FloatArray
    fp: FloatArray
    fn: FloatArray
    tn: FloatArray
    score: FloatArray
    loss: FloatArray

    @property
    def n(self) -> FloatArray:
        """The number of all people in the group."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def selected(self) -> FloatArray:
        """The number of selected people."""
        return self.tp + self.fp

    @property
    def positives(self) -> FloatArray:
        """The number of people with the positive outcome."""
        return self.tp + self.fn


@dataclass(frozen=True)
class GroupCells:
    """Rows and moments by stratum, group, outcome and decision.

    Parameters
    ----------
    labels : the groups, with "(missing)" last if present.
    strata : the strata; one unnamed stratum if groups are not compared within a factor.
    n : the number of rows, shape (strata, groups, 2, 2).
    first : the sums of weight, weighted score and weighted squared error, shape (strata, groups, 2, 2, 3).
    second : the sums of the products of these three, shape (strata, groups, 2, 2, 3, 3).
    weighted : whether the table has survey weights.
    """

    labels: tuple[str, ...]
    strata: tuple[str, ...]
    n: IntArray
    first: FloatArray
    second: FloatArray
    weighted: bool

    @classmethod
    def build(cls, cells: Cells, model: str, grouping: Sequence[str], within: Sequence[str]) -> Self:
        """Marginalise a table's cells to one model, one grouping and one set of strata."""
        groups, labels = cells.joint(grouping)
        strata, stratum_labels = cells.joint(within) if within else (np.zeros(len(cells.n), dtype=np.int64), ("",))
        shape = (len(stratum_labels), len(labels), 2, 2)
        position = np.ravel_multi_index(
            (strata, groups, state_codes(cells, "outcome"), state_codes(cells, state_key(model))), shape
        )

        def summed(values: FloatArray) -> FloatArray:
            total = np.bincount(position, weights=values, minlength=int(np.prod(shape)))
            return total.astype(np.float64).reshape(shape)

        n = summed(cells.n.astype(np.float64))
        sums = dict(cells.sums) if "w" in cells.sums else _unit_weights(cells)
        first, second = np.zeros((*shape, 3)), np.zeros((*shape, 3, 3))
        for i, a in enumerate(_FACTORS):
            first[..., i] = summed(sums[a]) if a in sums else 0.0
            for j, b in enumerate(_FACTORS):
                product = sums.get(a + b, sums.get(b + a))
                second[..., i, j] = summed(product) if product is not None else 0.0
        return cls(labels, stratum_labels, n.astype(np.int64), first, second, "w" in cells.sums)

    @property
    def named_groups(self) -> IntArray:
        """The positions of the groups that are not "(missing)"."""
        return np.array([i for i, label in enumerate(self.labels) if label != MISSING], dtype=np.int64)

    @cached_property
    def orders(self) -> tuple[IntArray, IntArray]:
        """The positions of strata and of groups by descending size, ties ordered by contents and not by name."""
        stratum, group, outcome, decision = (place.ravel() for place in np.indices(self.n.shape))
        with np.errstate(over="ignore"):
            sums = self.first.astype(np.float32)  # the last digits of sums depend on the order of the cells
        contents = [outcome, decision, self.n.ravel(), *sums.reshape(-1, 3).T]
        sizes = self.n.sum(axis=(1, 2, 3)), self.n.sum(axis=(0, 2, 3))
        return largest_first(sizes[0], stratum, contents), largest_first(sizes[1], group, contents)

    def in_order(self) -> GroupCells:
        """Return the cells with strata and groups in the order of `orders`."""
        strata, groups = self.orders
        return replace(
            self,
            labels=tuple(self.labels[group] for group in groups),
            strata=tuple(self.strata[stratum] for stratum in strata),
            n=self.n[strata][:, groups],
            first=self.first[strata][:, groups],
            second=self.second[strata][:, groups],
        )

    def pooled(self) -> GroupCells:
        """Return the cells summed over all strata."""
        n, first, second = (part.sum(axis=0, keepdims=True) for part in (self.n, self.first, self.second))
        return replace(self, strata=("",), n=n, first=first, second=second)

    def stratum(self, position: int) -> GroupCells:
        """Return the cells of one stratum."""
        part = slice(position, position + 1)
        strata = (self.strata[position],)
        return replace(self, strata=strata, n=self.n[part], first=self.first[part], second=self.second[part])

    def moments(self) -> CellMoments:
        """Return the flattened cells for the bootstrap; counts suffice without weights and scores."""
        cells = self.n.size
        if not self.weighted and not self.first[..., 1:].any():
            return CellMoments.from_counts(self.n.reshape(-1))
        return CellMoments(self.n.reshape(-1), self.first.reshape(cells, 3), self.second.reshape(cells, 3, 3))


def state_codes(cells: Cells, key: str) -> IntArray:
    """Return 1 for cells with the outcome (or selected by a model), and 0 for all other cells."""
    if key not in cells.codes:
        return np.zeros(len(cells.n), dtype=np.int64)
    is_yes = np.array([label == str(YES) for label in cells.labels[key]], dtype=np.int64)
    return is_yes[cells.codes[key]] if len(is_yes) else np.zeros(0, dtype=np.int64)


def _unit_weights(cells: Cells) -> dict[str, FloatArray]:
    """Return the sums of cells, with weight sums from unit weights if there are no survey weights."""
    n = cells.n.astype(np.float64)
    sums = {"w": n, "ww": n, **cells.sums}
    return sums | {f"w{name}": cells.sums[name] for name in ("s", "l") if name in cells.sums}
