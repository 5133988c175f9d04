"""Groups compared within shared units, such as the same template, list or advertisement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np

from evenhand.stats.intervals import bonferroni, student_t, wilson
from evenhand.stats.sign_flips import PairedComparison, compare_pairs
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval
from evenhand.stats.worst_pair import widest_difference


@dataclass(frozen=True, eq=False)
class UnitMeans:
    """Number of rows, mean and squared deviations by unit and group.

    Parameters
    ----------
    n : (units, groups) the number of rows.
    mean : (units, groups) the mean of the rows; nan without rows.
    squares : (units, groups) the sum of squared deviations from the mean.
    largest : the largest possible difference of two rows.
    """

    n: IntArray
    mean: FloatArray
    squares: FloatArray
    largest: float

    @classmethod
    def build(cls, unit: IntArray, group: IntArray, groups: int, value: FloatArray, largest: float) -> UnitMeans:
        """Return the sums of rows by unit and group; a group of -1 and values of nan do not count."""
        known = (group >= 0) & ~np.isnan(value)
        units = int(unit.max(initial=-1)) + 1
        cell, value = unit[known] * groups + group[known], value[known]
        size, shape = units * groups, (units, groups)
        n = np.bincount(cell, minlength=size)
        with np.errstate(all="ignore"):
            mean = np.asarray(np.bincount(cell, weights=value, minlength=size) / n, dtype=np.float64)
        squares = np.bincount(cell, weights=(value - mean[cell]) ** 2, minlength=size).astype(np.float64)
        return cls(n.reshape(shape), mean.reshape(shape), squares.reshape(shape), largest)

    def values(self, group: int) -> FloatArray:
        """Return the mean of each unit with rows of a group."""
        of_group = self.mean[:, group]
        return np.asarray(of_group[~np.isnan(of_group)])

    def pair(self, a: int, b: int) -> UnitPair:
        """Return the comparison of two groups within the units that contain both."""
        both = (self.n[:, a] > 0) & (self.n[:, b] > 0)
        return UnitPair(self, a, b, both)


class Spread(NamedTuple):
    """Standard deviations between units and within a unit and group, and the share between; None if unknown."""

    between_sd: float | None = None
    replicate_sd: float | None = None
    between_share: float | None = None


@dataclass(frozen=True, eq=False)
class UnitPair:
    """Two groups compared in the units that contain both.

    Parameters
    ----------
    means : the means by unit and group.
    a, b : the indices of the groups.
    both : (units,) mask of the units that contain both groups.
    """

    means: UnitMeans
    a: int
    b: int
    both: BoolArray

    @property
    def units(self) -> int:
        """The number of units that contain both groups."""
        return int(self.both.sum())

    @property
    def n(self) -> int:
        """The number of rows of both groups in these units."""
        return int(self.means.n[self.both][:, [self.a, self.b]].sum())

    @cached_property
    def comparison(self) -> PairedComparison | None:
        """The differences a - b of the unit means with their test; None without units."""
        mean = self.means.mean[self.both]
        return compare_pairs(mean[:, self.a] - mean[:, self.b], self.means.largest) if self.units else None

    @cached_property
    def spread(self) -> Spread:
        """The standard deviations of the difference between units and of rows within units.

        With m_a and m_b repetitions and the variance s² of one repetition, the variance of the differences is the
        variance between units plus the mean of s² (1 / m_a + 1 / m_b). The method of moments solves for the variance
        between units, at least 0. Without repetitions the two variances cannot be separated, and are unknown.
        """
        n = self.means.n[self.both][:, [self.a, self.b]]
        freedom = int((n - 1).sum())
        if self.units < 2 or freedom < 1 or self.comparison is None:
            return Spread()
        replicate = float(self.means.squares[self.both][:, [self.a, self.b]].sum()) / freedom
        total = float(self.comparison.differences.var(ddof=1))
        between = max(total - replicate * float((1.0 / n).sum(axis=1).mean()), 0.0)
        return Spread(sqrt(between), sqrt(replicate), between / total if total > 0.0 else None)


class Largest(NamedTuple):
    """The largest difference of several pairs, with the higher group first, its limits and its p-value."""

    pair: UnitPair
    low: float
    high: float
    p_value: float


def largest_difference(pairs: Sequence[UnitPair], confidence: float) -> Largest:
    """Return the largest difference; its test and near limit account for all pairs, its far limit need not.

    The p-value is the smallest p-value of a pair times the number of pairs (Bonferroni); the limits come from
    `widest_difference`.

    Parameters
    ----------
    pairs : at least one, each with units that have both groups.
    confidence : the confidence of the limits.
    """
    compared = [pair.comparison for pair in pairs]
    found = [each for each in compared if each is not None]
    worst = pairs[int(np.argmax([abs(each.mean) for each in found]))]
    if worst.comparison is not None and worst.comparison.mean < 0:
        worst = worst.means.pair(worst.b, worst.a)
    far, near = (
        Interval(*np.array([each.limits(level) for each in found]).T)
        for level in (confidence, bonferroni(confidence, len(found)))
    )
    low, high = widest_difference(near, far)
    return Largest(worst, low, high, min(1.0, len(found) * min(each.p_value for each in found)))


def mean_limits(of_units: FloatArray, is_share: bool, confidence: float) -> tuple[float | None, float | None]:
    """Return the limits of a mean over units: Student's, or Wilson's with effective trials for a share.

    The effective number of trials of a share matches its standard error; for a share of 0 or 1 in all units it is the
    number of units. A single unit has no limits, and neither do numbers that are equal in all units.

    Examples
    --------
    >>> [round(float(limit), 3) for limit in mean_limits(np.array([0.5, 1.0, 0.0, 0.5, 1.0]), True, 0.95)]
    [0.187, 0.907]
    """
    units = len(of_units)
    mean, variance = float(of_units.mean()), float(of_units.var(ddof=1)) / units if units > 1 else 0.0
    if units < 2 or (not is_share and variance == 0.0):
        return None, None
    if is_share:
        trials = mean * (1.0 - mean) / variance if variance > 0.0 else units
        limits = wilson(mean, trials, confidence, df=units - 1)
        return float(limits.low), float(limits.high)
    low, high = student_t(mean, sqrt(variance), units - 1, confidence)
    return float(low), float(high)
