"""Rates and means of groups weighted by another column, and gaps between them, with limits.

With weights w by part of the other column, sums n, x and y of people, of a quantity and of its square by group and
part, the value of a group is r = sum(w x) / sum(w n), and its linearised variance
V = sum(w² (y - 2 r x + r² n)) / sum(w n)². A rate has exact limits at the smaller of Kish's effective size
sum(w n)² / sum(w² n) and r (1 - r) / V (Korn and Graubard 1998, Survey Methodology 24), a mean of scores uses
`bounded_mean` with sqrt(V n / (n - 1)) at Kish's effective size. Gaps are combined by MOVER; for the worst pair see
`evenhand.stats.worst_pair`.

Shares p of a population estimated from a sample of m people have the covariance C = (diag(p) - p p') / m. By the delta
method this adds the variance s² = g' C g to a gap with slope g in the weights, and each limit moves outwards: its
distance becomes the root of the sum of squares of the original distance and z s, for a ratio on the log scale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from evenhand.stats.intervals import bounded_mean, clopper_pearson, mover_difference, mover_ratio
from evenhand.stats.types import FloatArray, IntArray, Interval
from evenhand.stats.worst_pair import narrowest_ratio, range_confidence, widest_difference

Judged = tuple[float, float, float]
"""A value, or the size of a gap, with its limits."""


class Moments(NamedTuple):
    """Sums by group and part of another column: the number of people, a quantity, and its square."""

    n: FloatArray
    first: FloatArray
    second: FloatArray

    def against_others(self, group: int) -> Moments:
        """Return three rows: a group, all other people, and all people."""
        others = np.arange(len(self.n)) != group
        return Moments(*(np.stack([part[group], part[others].sum(axis=0), part.sum(axis=0)]) for part in self))

    def select(self, groups: list[int]) -> Moments:
        """Return the sums of the selected groups."""
        return Moments(*(part[groups] for part in self))


@dataclass(frozen=True)
class Weighted:
    """The weighted values of groups, with standard errors and slopes.

    Parameters
    ----------
    value, stderr, size : rate or mean of each group, its standard error, and the effective number of people.
    slope : (groups, parts) the change of the value with the weight of a part.
    total_weight : the sum of the weights.
    bounds : the lowest and highest possible score; None for a rate.
    spread : the covariance of the weights, if the shares are estimated from a sample.
    """

    value: FloatArray
    stderr: FloatArray
    size: FloatArray
    slope: FloatArray
    total_weight: FloatArray
    bounds: tuple[float, float] | None = None
    spread: FloatArray | None = None

    @classmethod
    def from_sums(
        cls,
        sums: Moments,
        weight: FloatArray,
        bounds: tuple[float, float] | None = None,
        spread: FloatArray | None = None,
    ) -> Self:
        """Return the values of groups whose parts have these weights.

        Examples
        --------
        >>> hits, n = np.array([[30.0, 10.0]]), np.array([[60.0, 40.0]])
        >>> found = Weighted.from_sums(Moments(n, hits, hits), np.array([1.0, 1.0]))
        >>> found.value.tolist(), found.size.round(6).tolist()
        ([0.4], [100.0])
        """
        with np.errstate(all="ignore"):
            total_weight = sums.n @ weight
            value = sums.first @ weight / total_weight
            kish = total_weight**2 / (sums.n @ weight**2)
            column = value[:, None]
            squares = np.maximum(sums.second - 2 * column * sums.first + column**2 * sums.n, 0.0) @ weight**2
            variance = squares / total_weight**2
            if bounds is None:
                linearised = value * (1 - value) / variance
                size = np.fmin(kish, np.where(linearised > 0, linearised, np.nan))
            else:
                people = (sums.n * (weight > 0)).sum(axis=1)
                size, variance = kish, variance * people / (people - 1.0)
            slope = (sums.first - column * sums.n) / total_weight[:, None]
        return cls(value, np.sqrt(variance), size, slope, total_weight, bounds, spread)

    def limits(self, confidence: float) -> Interval:
        """Return the separate limits of each group, treating shares as exact."""
        if self.bounds is None:
            return clopper_pearson(self.value, self.size, confidence)
        return bounded_mean(self.value, self.stderr, self.size, confidence, self.bounds)

    def share_margin(self, slope: FloatArray, confidence: float) -> FloatArray:
        """Return z times the standard deviation due to sampled shares, for rows of slopes in the weights."""
        return np.zeros(len(slope)) if self.spread is None else share_error(self.spread, slope, confidence)

    def pairs(self, first: IntArray, second: IntArray, kind: str, confidence: float) -> Interval:
        """Return limits of the differences or ratios of pairs of groups."""
        limits_of_groups = self.limits(confidence)
        sides = [
            (self.value[side], Interval(limits_of_groups.low[side], limits_of_groups.high[side]))
            for side in (first, second)
        ]
        if kind == "difference":
            limits = mover_difference(*sides[0], *sides[1])
            slope_difference = self.slope[first] - self.slope[second]
            return _wider(
                self.value[first] - self.value[second], limits, self.share_margin(slope_difference, confidence)
            )
        ratio_limits = mover_ratio(*sides[0], *sides[1])
        # For two zeros nothing is known, but that must not widen the limits over many pairs.
        empty = (self.value[first] == 0) & (self.value[second] == 0)
        limits = Interval(np.where(empty, 0.0, ratio_limits.low), np.where(empty, np.inf, ratio_limits.high))
        return _wider_ratio(self, first, second, limits, confidence)


def share_error(spread: FloatArray, slope: FloatArray, confidence: float) -> FloatArray:
    """Return z times the standard deviation due to the covariance of the weights, for slopes in the weights."""
    from scipy.special import ndtri

    variance = np.einsum("...a,ab,...b->...", slope, spread, slope)
    return np.asarray(ndtri((1 + confidence) / 2) * np.sqrt(np.maximum(variance, 0.0)))


def _wider(value: FloatArray, limits: Interval, extra: FloatArray) -> Interval:
    return Interval(value - np.hypot(value - limits.low, extra), value + np.hypot(limits.high - value, extra))


def _wider_ratio(values: Weighted, first: IntArray, second: IntArray, limits: Interval, confidence: float) -> Interval:
    """Return limits of ratios, widened on the log scale for sampled shares; limits of 0 and infinity stay."""
    if values.spread is None:
        return limits
    with np.errstate(all="ignore"):
        relative = values.slope / values.value[:, None]
        extra = values.share_margin(relative[first] - relative[second], confidence)
        ratio = values.value[first] / values.value[second]
        low = ratio * np.exp(-np.hypot(np.log(ratio / limits.low), extra))
        high = ratio * np.exp(np.hypot(np.log(limits.high / ratio), extra))
    return Interval(np.where(limits.low > 0, low, limits.low), np.where(np.isfinite(limits.high), high, limits.high))


def value_with_limits(values: Weighted, confidence: float) -> Judged:
    """Return the value of the first group with its limits."""
    limits = _wider(values.value, values.limits(confidence), values.share_margin(values.slope, confidence))
    return float(values.value[0]), float(limits.low[0]), float(limits.high[0])


def largest_gap(values: Weighted, kind: str, confidence: float) -> Judged:
    """Return the largest gap between groups with its limits.

    The limit far from equality is based on separate limits of the pairs; the limit near equality is based on limits
    valid for all pairs together (Tukey).

    Examples
    --------
    >>> hits, n = np.array([[30.0], [52.0]]), np.array([[100.0], [100.0]])
    >>> gap = largest_gap(Weighted.from_sums(Moments(n, hits, hits), np.ones(1)), "difference", 0.95)
    >>> [round(each, 3) for each in gap]
    [0.22, 0.077, 0.354]
    """
    first, second = np.triu_indices(len(values.value), 1)
    near = values.pairs(first, second, kind, range_confidence(confidence, len(values.value)))
    far = near if len(first) == 1 else values.pairs(first, second, kind, confidence)
    if kind == "difference":
        return float(np.abs(values.value[first] - values.value[second]).max()), *widest_difference(near, far)
    return float(np.nanmin(_ratios(values.value[first], values.value[second]))), *narrowest_ratio(near, far)


def _ratios(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the smaller over the larger value of each pair; nan for two zeros."""
    with np.errstate(all="ignore"):
        return np.asarray(np.minimum(first, second) / np.maximum(first, second))


def gap_to_everybody(values: Weighted, kind: str, confidence: float) -> Judged:
    """Return the gap between a group and all people, with its limits; rows are the group, all others, and all.

    With s the group's share of all people, group - all = (1 - s) (group - others), and with R = group / others group /
    all = R / (s R + 1 - s), so the limits follow from the limits against the others.
    """
    group, others, everybody = (np.array([row]) for row in range(3))
    share = float(values.total_weight[0] / values.total_weight[2])
    against_others = replace(values, spread=None).pairs(group, others, kind, confidence)
    if kind == "difference":
        limits = Interval((1 - share) * against_others.low, (1 - share) * against_others.high)
        slope_difference = values.slope[group] - values.slope[everybody]
        limits = _wider(
            values.value[group] - values.value[everybody], limits, values.share_margin(slope_difference, confidence)
        )
        return float(abs(values.value[0] - values.value[2])), *widest_difference(limits)
    with np.errstate(all="ignore"):
        low = against_others.low / (share * against_others.low + 1 - share)
        high = np.where(
            np.isinf(against_others.high), 1 / share, against_others.high / (share * against_others.high + 1 - share)
        )
    limits = _wider_ratio(values, group, everybody, Interval(low, high), confidence)
    return float(_ratios(values.value[group], values.value[everybody])[0]), *narrowest_ratio(limits)
