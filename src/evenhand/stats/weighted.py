"""Groups among people who are weighted by another column: their rates and means, and gaps between them, with limits.

With weights w by part of the other column, sums n, x and y of people, of a quantity and of its square by group and
part, the value of a group is r = sum(w x) / sum(w n), and its linearised variance
V = sum(w² (y - 2 r x + r² n)) / sum(w n)². A rate has exact limits at the smaller of Kish's effective size
sum(w n)² / sum(w² n) and r (1 - r) / V (Korn and Graubard 1998, Survey Methodology 24), a mean of scores
`bounded_mean` with sqrt(V n / (n - 1)) at Kish's. Gaps are combined by MOVER; of a worst pair as in
`evenhand.stats.worst_pair`.

Shares p of a population that are known from m of its people vary themselves, with the covariance
(diag(p) - p p') / m of a sample. By the delta method a gap then varies by s² = g' C g more, g its slope in the weights,
and each limit moves away: by the root of the sum of squares of its own distance and z s, a ratio on the log scale.
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
    """Sums by group and part of another column: the people who count, the quantity, and its square."""

    n: FloatArray
    first: FloatArray
    second: FloatArray

    def rest(self, group: int) -> Moments:
        """Return three rows: a group, everybody else, and everybody."""
        others = np.arange(len(self.n)) != group
        return Moments(*(np.stack([part[group], part[others].sum(axis=0), part.sum(axis=0)]) for part in self))

    def only(self, groups: list[int]) -> Moments:
        """Return the sums of some groups."""
        return Moments(*(part[groups] for part in self))


@dataclass(frozen=True)
class Weighted:
    """The values of weighted groups.

    Parameters
    ----------
    value, stderr, size : rate or mean of each group, its standard error, and as how many people it counts.
    slope : (groups, parts) by how much the value changes with the weight of a part.
    heavy : the sum of the weights.
    bounds : the lowest and highest possible score; None for a rate.
    spread : the covariance of the weights, where their shares are those of a sample.
    """

    value: FloatArray
    stderr: FloatArray
    size: FloatArray
    slope: FloatArray
    heavy: FloatArray
    bounds: tuple[float, float] | None = None
    spread: FloatArray | None = None

    @classmethod
    def of(
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
        >>> found = Weighted.of(Moments(n, hits, hits), np.array([1.0, 1.0]))
        >>> found.value.tolist(), found.size.round(6).tolist()
        ([0.4], [100.0])
        """
        with np.errstate(all="ignore"):
            heavy = sums.n @ weight
            value = sums.first @ weight / heavy
            kish = heavy**2 / (sums.n @ weight**2)
            each = value[:, None]
            squares = np.maximum(sums.second - 2 * each * sums.first + each**2 * sums.n, 0.0) @ weight**2
            variance = squares / heavy**2
            if bounds is None:
                linearised = value * (1 - value) / variance
                size = np.fmin(kish, np.where(linearised > 0, linearised, np.nan))
            else:
                people = (sums.n * (weight > 0)).sum(axis=1)
                size, variance = kish, variance * people / (people - 1.0)
            slope = (sums.first - each * sums.n) / heavy[:, None]
        return cls(value, np.sqrt(variance), size, slope, heavy, bounds, spread)

    def limits(self, confidence: float) -> Interval:
        """Return the limits of each group on its own, shares taken as exact."""
        if self.bounds is None:
            return clopper_pearson(self.value, self.size, confidence)
        return bounded_mean(self.value, self.stderr, self.size, confidence, self.bounds)

    def beyond(self, slope: FloatArray, confidence: float) -> FloatArray:
        """Return z times the standard deviation that shares of a sample add, for rows of slopes in the weights."""
        return np.zeros(len(slope)) if self.spread is None else share_error(self.spread, slope, confidence)

    def pairs(self, one: IntArray, other: IntArray, kind: str, confidence: float) -> Interval:
        """Return limits of the differences or ratios of some groups, pair by pair."""
        own = self.limits(confidence)
        sides = [(self.value[side], Interval(own.low[side], own.high[side])) for side in (one, other)]
        if kind == "difference":
            limits = mover_difference(*sides[0], *sides[1])
            apart = self.slope[one] - self.slope[other]
            return _wider(self.value[one] - self.value[other], limits, self.beyond(apart, confidence))
        found = mover_ratio(*sides[0], *sides[1])
        # Of two zeros nothing is known, which among many pairs is no reason to know less of the others.
        empty = (self.value[one] == 0) & (self.value[other] == 0)
        limits = Interval(np.where(empty, 0.0, found.low), np.where(empty, np.inf, found.high))
        return _wider_ratio(self, one, other, limits, confidence)


def share_error(spread: FloatArray, slope: FloatArray, confidence: float) -> FloatArray:
    """Return z times the standard deviation that the covariance of the weights adds, by slopes in the weights."""
    from scipy.special import ndtri

    variance = np.einsum("...a,ab,...b->...", slope, spread, slope)
    return np.asarray(ndtri((1 + confidence) / 2) * np.sqrt(np.maximum(variance, 0.0)))


def _wider(value: FloatArray, limits: Interval, extra: FloatArray) -> Interval:
    return Interval(value - np.hypot(value - limits.low, extra), value + np.hypot(limits.high - value, extra))


def _wider_ratio(values: Weighted, one: IntArray, other: IntArray, limits: Interval, confidence: float) -> Interval:
    """Return limits of ratios, wider on the log scale by what the shares vary; 0 and infinity stay."""
    if values.spread is None:
        return limits
    with np.errstate(all="ignore"):
        relative = values.slope / values.value[:, None]
        extra = values.beyond(relative[one] - relative[other], confidence)
        ratio = values.value[one] / values.value[other]
        low = ratio * np.exp(-np.hypot(np.log(ratio / limits.low), extra))
        high = ratio * np.exp(np.hypot(np.log(limits.high / ratio), extra))
    return Interval(np.where(limits.low > 0, low, limits.low), np.where(np.isfinite(limits.high), high, limits.high))


def value_judged(values: Weighted, confidence: float) -> Judged:
    """Return the value of the first group with its limits."""
    limits = _wider(values.value, values.limits(confidence), values.beyond(values.slope, confidence))
    return float(values.value[0]), float(limits.low[0]), float(limits.high[0])


def gap_judged(values: Weighted, kind: str, confidence: float) -> Judged:
    """Return the size of the largest gap of some groups with its limits; of two groups, that between them.

    Far from equality the limits are the pairs' own; near to it they hold for all pairs together (Tukey).

    Examples
    --------
    >>> hits, n = np.array([[30.0], [52.0]]), np.array([[100.0], [100.0]])
    >>> gap = gap_judged(Weighted.of(Moments(n, hits, hits), np.ones(1)), "difference", 0.95)
    >>> [round(each, 3) for each in gap]
    [0.22, 0.077, 0.354]
    """
    one, other = np.triu_indices(len(values.value), 1)
    near = values.pairs(one, other, kind, range_confidence(confidence, len(values.value)))
    far = near if len(one) == 1 else values.pairs(one, other, kind, confidence)
    if kind == "difference":
        return float(np.abs(values.value[one] - values.value[other]).max()), *widest_difference(near, far)
    return float(np.nanmin(_ratios(values.value[one], values.value[other]))), *narrowest_ratio(near, far)


def _ratios(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the smaller over the larger of every two; nan for two zeros."""
    with np.errstate(all="ignore"):
        return np.asarray(np.minimum(one, other) / np.maximum(one, other))


def everybody_judged(values: Weighted, kind: str, confidence: float) -> Judged:
    """Return the size of the gap between a group and everybody; the rows are the group, all others, and everybody.

    With s the group's share of everybody, group - everybody = (1 - s) (group - others), and with R = group / others
    group / everybody = R / (s R + 1 - s), so the limits follow from those against the others.
    """
    group, others, everybody = (np.array([at]) for at in range(3))
    share = float(values.heavy[0] / values.heavy[2])
    found = replace(values, spread=None).pairs(group, others, kind, confidence)
    if kind == "difference":
        limits = Interval((1 - share) * found.low, (1 - share) * found.high)
        apart = values.slope[group] - values.slope[everybody]
        limits = _wider(values.value[group] - values.value[everybody], limits, values.beyond(apart, confidence))
        return float(abs(values.value[0] - values.value[2])), *widest_difference(limits)
    with np.errstate(all="ignore"):
        low = found.low / (share * found.low + 1 - share)
        high = np.where(np.isinf(found.high), 1 / share, found.high / (share * found.high + 1 - share))
    limits = _wider_ratio(values, group, everybody, Interval(low, high), confidence)
    return float(_ratios(values.value[group], values.value[everybody])[0]), *narrowest_ratio(limits)
