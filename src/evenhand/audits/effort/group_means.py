"""Mean scores of groups in bins of effort, from people in memory or from cells counted by a data engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from evenhand.audits.effort.gather import EffortPeople
from evenhand.audits.effort.large_table import LargeTable, cell_numbers
from evenhand.audits.effort.spec import EffortSpec
from evenhand.stats.effort import effort_bins
from evenhand.stats.intervals import bounded_mean
from evenhand.stats.types import FloatArray, IntArray, Interval
from evenhand.stats.worst_pair import equality_p_values, worst_pair
from evenhand.table.cells import Cells

_ROUNDING = 1e-13  # the rounding error of equal scores' squares


@dataclass(frozen=True)
class GroupMeans:
    """Mean scores of groups: arrays over (bins, groups), or over the groups of one bin."""

    n: IntArray
    mean: FloatArray
    stderr: FloatArray
    trials: FloatArray

    def limits(self, confidence: float | FloatArray) -> Interval:
        """Return separate limits of each mean, at one confidence or at one confidence per mean."""
        return bounded_mean(self.mean, self.stderr, self.trials, confidence)

    def bin(self, number: int) -> GroupMeans:
        """Return the groups of one bin."""
        return GroupMeans(self.n[number], self.mean[number], self.stderr[number], self.trials[number])


@dataclass(frozen=True)
class GroupedMeans:
    """A grouping's mean scores in every effort bin and over all bins, with the groups' labels."""

    bins: GroupMeans
    whole: GroupMeans
    labels: tuple[str, ...]


def means_of(
    subjects: EffortPeople | LargeTable, model: str, spec: EffortSpec
) -> Callable[[tuple[str, ...]], GroupedMeans]:
    """Return a function from a grouping to the mean scores of its groups."""
    if isinstance(subjects, LargeTable):
        return partial(_means_of_cells, subjects.bin_cells(model))
    return partial(_means_of_people, subjects, model, spec)


def _means_of_people(people: EffortPeople, model: str, spec: EffortSpec, columns: tuple[str, ...]) -> GroupedMeans:
    codes, labels = people.rows.groups.joint(columns)
    bins = effort_bins(people.effort, spec.width)
    score, weight = people.compared(model), people.rows.weight
    by_bin = group_means(bins, codes, score, weight, (int(bins.max()) + 1, len(labels)))
    return GroupedMeans(by_bin, group_means(np.zeros_like(bins), codes, score, weight, (1, len(labels))), labels)


def _means_of_cells(cells: Cells, columns: tuple[str, ...]) -> GroupedMeans:
    codes, labels = cells.joint(columns)
    bins = cell_numbers(cells, "bin")
    by_bin = _means_from_sums(bins, codes, cells, (int(bins.max()) + 1, len(labels)))
    return GroupedMeans(by_bin, _means_from_sums(np.zeros_like(bins), codes, cells, (1, len(labels))), labels)


def group_means(
    bins: IntArray, codes: IntArray, score: FloatArray, weight: FloatArray | None, shape: tuple[int, int]
) -> GroupMeans:
    """Return the (weighted) mean score, its standard error and Kish's size for every bin and group."""
    cell = bins * shape[1] + codes
    total = partial(_total, cell, prod(shape))
    n, weighed = total(None), score if weight is None else weight * score
    heavy, squares = (n, n) if weight is None else (total(weight), total(weight**2))
    with np.errstate(all="ignore"):
        mean = total(weighed) / heavy
        apart = score - mean.take(cell)
        about = total((apart if weight is None else weight * apart) ** 2)
        return _with_errors(shape, n, heavy, squares, mean, about, total(weighed**2))


def _means_from_sums(bins: IntArray, codes: IntArray, cells: Cells, shape: tuple[int, int]) -> GroupMeans:
    """Return the same from cells with the sums of w s and its square, and with the weight sums w, w² and w² s."""
    total = partial(_total, bins * shape[1] + codes, prod(shape))
    n, first, second = total(cells.n), total(cells.sums["s"]), total(cells.sums["ss"])
    weighted = "w" in cells.sums
    heavy, squares = (total(cells.sums["w"]), total(cells.sums["ww"])) if weighted else (n, n)
    cross = total(cells.sums["ws"]) if weighted else first
    with np.errstate(all="ignore"):
        mean = first / heavy
        about = second - 2.0 * mean * cross + mean**2 * squares
        return _with_errors(shape, n, heavy, squares, mean, about, second)


def _total(cell: IntArray, size: int, values: FloatArray | IntArray | None) -> FloatArray:
    """Return the sum of values in each cell; without values, the count."""
    return np.bincount(cell, weights=values, minlength=size).astype(np.float64)[:size]


def _with_errors(shape: tuple[int, int], *sums: FloatArray) -> GroupMeans:
    """Return means with standard errors and Kish's sizes.

    `sums` are the counts of people, the sums of weights and of squared weights, the means, and the sums of squares
    about the mean and about 0.
    """
    n, heavy, squares, mean, about, second = sums
    about = np.where(about > _ROUNDING * second, about, 0.0)
    stderr = np.sqrt(about / heavy**2 * n / (n - 1.0))
    numbers: tuple[Any, ...] = (n.astype(np.int64), mean, stderr, heavy**2 / squares)
    return GroupMeans(*(x.reshape(shape) for x in numbers))


@dataclass(frozen=True)
class LowestParity:
    """The smallest mean score of some groups over the largest.

    Parameters
    ----------
    means : the means of the compared groups.
    lowest, highest : the positions in `means` of the lowest and the highest mean.
    """

    means: GroupMeans
    lowest: int
    highest: int

    @property
    def value(self) -> float:
        """The parity; nan if every mean is 0."""
        mean = self.means.mean
        return float(mean[self.lowest] / mean[self.highest]) if mean[self.highest] > 0 else float("nan")

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return limits of parity; see `evenhand.stats.worst_pair`."""
        return worst_pair(self.means.mean, self.means.limits, "ratio", confidence)


def lowest_parity(means: GroupMeans, groups: IntArray) -> LowestParity:
    """Return the parity of some groups."""
    among = GroupMeans(means.n[groups], means.mean[groups], means.stderr[groups], means.trials[groups])
    mean = among.mean
    return LowestParity(among, int(len(mean) - 1 - np.argmin(mean[::-1])), int(np.argmax(mean)))


def equal_means_p(parities: Sequence[LowestParity]) -> list[float]:
    """Return for each parity the smallest alpha at which its limits exclude equal means.

    The value is nan without limits.
    """
    if not parities:
        return []
    columns = zip(*(astuple(parity.means) for parity in parities), strict=True)
    every = GroupMeans(*(np.concatenate(column) for column in columns))
    p_values: list[float] = equality_p_values(
        every.mean, every.limits, [len(each.means.n) for each in parities]
    ).tolist()
    return p_values
