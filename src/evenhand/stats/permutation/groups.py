"""Values of people in several groups, to compare any two sets of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from evenhand.stats.permutation.cells import Means, shape_of
from evenhand.stats.permutation.means import (
    MeanComparison,
    compare_means,
    comparison_of,
    is_fine,
)
from evenhand.stats.permutation.reference import Approximated
from evenhand.stats.types import BoolArray, FloatArray, IntArray

_MOST_ENTRIES, _VALUE_BINS, _WEIGHT_STEP = 100_000, 512, 0.02
_MOST_VALUES = 2**14  # distinct values; beyond, equal bins of their range


@dataclass(frozen=True, eq=False)
class GroupedValues:
    """Values of people, as entries that represent one or more people of one group.

    Moments of all groups are summed once and show whether a comparison needs draws; only then are people counted by
    value. Without weights, more than 16,384 distinct values are merged in equal bins of their range.

    Attributes
    ----------
    values, people, codes
        (N,) the value, the number of people, and the group of each entry.
    weights
        (N,) the weight of each person of an entry; None without weights.
    groups
        The number of groups.

    Examples
    --------
    >>> values, counts, codes = np.array([0.1, 0.2, 0.9, 0.3]), np.array([30, 20, 10, 40]), np.array([0, 0, 0, 1])
    >>> people = GroupedValues(values, counts, codes, None, 2)
    >>> round(people.compare([0], [1], (0.0, 1.0)).estimate, 4)
    -0.0333
    """

    values: FloatArray
    people: IntArray
    codes: IntArray
    weights: FloatArray | None
    groups: int

    def merged(self) -> GroupedValues:
        """Return the values, merged at bin means if there are more than 100,000 weighted entries.

        Values are binned in 512 parts of their range, weights in steps of 2 %.
        """
        if self.weights is None or self.values.size <= _MOST_ENTRIES:
            return self
        low, high = self._extremes
        by_value = np.rint((self.values - low) / max(high - low, 1e-300) * _VALUE_BINS).astype(np.int64)
        by_weight = np.rint(np.log(self.weights) / _WEIGHT_STEP).astype(np.int64)
        by_weight -= by_weight.min()
        cells = (_VALUE_BINS + 1) * (int(by_weight.max()) + 1)
        cell = by_value * (int(by_weight.max()) + 1) + by_weight
        size = np.bincount(cell, weights=self.people, minlength=cells)
        with np.errstate(invalid="ignore"):
            value = np.bincount(cell, weights=self.people * self.values, minlength=cells) / size
            weight = np.bincount(cell, weights=self.people * self.weights, minlength=cells) / size
        counts = np.bincount(self.codes * cells + cell, weights=self.people, minlength=self.groups * cells)
        entries = np.flatnonzero(counts)
        codes, used = np.divmod(entries, cells)
        return GroupedValues(value[used], counts[entries].astype(np.int64), codes, weight[used], self.groups)

    def having(self, values: FloatArray, used: BoolArray) -> GroupedValues:
        """Return the used entries with other values."""
        weights = None if self.weights is None else self.weights[used]
        return GroupedValues(values[used], self.people[used], self.codes[used], weights, self.groups)

    def compare(
        self,
        first: Sequence[int] | IntArray,
        second: Sequence[int] | IntArray,
        bounds: tuple[float, float],
        alpha: float = 0.05,
        level: float | None = None,
    ) -> MeanComparison:
        """Return the comparison of the means of two sets of groups; see `compare_means`."""
        rough, levels = self.approximate(first, second, bounds), (alpha, alpha if level is None else level)
        if rough is not None and _is_enough(rough, levels):
            return rough
        values, counts_a, counts_b, weights = self._cells_of(first, second)
        if rough is not None and weights is None and _is_enough(rough, levels, values.size):
            return rough
        return compare_means(values, counts_a, counts_b, weights=weights, bounds=bounds, alpha=alpha, level=level)

    def approximate(
        self, first: Sequence[int] | IntArray, second: Sequence[int] | IntArray, bounds: tuple[float, float]
    ) -> MeanComparison | None:
        """Return a comparison from moments alone, however coarse; None if a set has no people or no variance."""
        a, b = (self.moments[:, :, groups].sum(axis=2) for groups in (first, second))
        if min(a[0, 0], b[0, 0]) == 0:
            return None
        means, reference = self._means(a, b), Approximated(*_shape(a, b))
        if not (means.variance > 0).all():
            return None
        return comparison_of(means, "difference", "approximation", 1.0 / reference.kurtosis, reference, bounds)

    @cached_property
    def scale(self) -> tuple[float, float]:
        """The mean and the standard deviation of all people's values; the latter is 1 if it is 0."""
        mean = float(np.average(self.values, weights=self.people))
        spread = float(np.sqrt(np.average((self.values - mean) ** 2, weights=self.people)))
        return mean, spread if spread > 0 else 1.0

    @cached_property
    def _extremes(self) -> tuple[float, float]:
        return float(self.values.min()), float(self.values.max())

    @cached_property
    def moments(self) -> FloatArray:
        """(5, 5, groups) the sums of w^k z^j over people; w^0 z^0 is their number."""
        from evenhand.stats.compiled import add_powers, add_weighted_powers

        found = np.zeros((5, 5, self.groups))
        if self.weights is None:
            powers = np.zeros((5, self.groups))
            add_powers(self.values, self.people, self.codes, self.scale, powers)
            found[:] = powers
        else:
            scale = *self.scale, float(np.average(self.weights, weights=self.people))
            add_weighted_powers(self.values, self.weights, self.people, self.codes, scale, found)
        return found

    def _means(self, a: FloatArray, b: FloatArray) -> Means:
        """Return the means of two sets of people, in the units of the values, from their moments."""
        from evenhand.stats.permutation.kernels import row_variance

        mean, spread = self.scale
        sides = np.stack([a, b], axis=2)
        n, w, ww = sides[0, 0], sides[1, 0], sides[2, 0]
        centre = sides[1, 1] / w
        row = np.array([row_variance(*side) for side in zip(ww, sides[2, 1], sides[2, 2], centre, strict=True)])
        variance = np.where(n > 1, row * n / np.maximum(n - 1.0, 1.0), 0.0) * ww / w**2
        within = np.clip(mean + spread * centre, *self._extremes)
        return Means(within, spread**2 * variance, w**2 / ww)

    def _cells_of(
        self, first: Sequence[int] | IntArray, second: Sequence[int] | IntArray
    ) -> tuple[FloatArray, IntArray, IntArray, FloatArray | None]:
        """Return the values, the number of people of both sets with each value, and the weights."""
        if self.weights is None:
            values, counts = self._cells
            a, b = (counts[groups].sum(axis=0) for groups in (first, second))
            used = a + b > 0
            return values[used], a[used], b[used], None
        in_first, in_second = (np.isin(self.codes, groups) for groups in (first, second))
        used = in_first | in_second
        people, member = self.people[used], in_first[used]
        return self.values[used], np.where(member, people, 0), np.where(member, 0, people), self.weights[used]

    @cached_property
    def _cells(self) -> tuple[FloatArray, IntArray]:
        """The distinct values, or the means of their bins, and (groups, values) the number of people."""
        values, cell = np.unique(self.values, return_inverse=True)
        if values.size > _MOST_VALUES:
            low, high = values[0], values[-1]
            bins = np.minimum((self.values - low) / (high - low) * _MOST_VALUES, _MOST_VALUES - 1).astype(np.int64)
            _, cell = np.unique(bins, return_inverse=True)
            size = np.bincount(cell, weights=self.people)
            values = np.bincount(cell, weights=self.people * self.values) / size
        place = self.codes * values.size + cell
        counts = np.bincount(place, weights=self.people, minlength=self.groups * values.size)
        return values, counts.astype(np.int64).reshape(self.groups, values.size)


def _is_enough(rough: MeanComparison, levels: tuple[float, float], values: int = 0) -> bool:
    """Return whether a comparison from moments is precise enough without draws."""
    return isinstance(rough.reference, Approximated) and is_fine(rough.reference, rough.t, levels, values)


def _shape(a: FloatArray, b: FloatArray) -> tuple[float, float]:
    """Return the skewness and fourth standardised moment of the difference of means, from two sets' moments."""
    pooled = a + b
    size, weight = pooled[0, 0], pooled[1, 0]
    mean = pooled[1, 1] / weight

    def moment(p: int) -> FloatArray:
        total = sum(comb(p, j) * pooled[p, j] * (-mean) ** (p - j) for j in range(p + 1))
        return np.atleast_1d((size / weight) ** p * total / size)

    return shape_of(moment(2), moment(3), moment(4), a[0, 0], b[0, 0])
