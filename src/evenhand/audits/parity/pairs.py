"""Pairs of groups, each with one test and the limits that invert it, for differences and ratios."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from evenhand.audits.parity.estimate import GroupValues
from evenhand.core.records import Kind
from evenhand.stats import intervals
from evenhand.stats.multiplicity import adjusted_p
from evenhand.stats.two_rates import RateComparison, compare_rates, extreme_bound
from evenhand.stats.types import FloatArray, Interval
from evenhand.stats.worst_pair import narrowest_ratio, smallest_alpha, widest_difference


class Pairs(Protocol):
    """Comparisons of two groups each; the first group of all pairs has the higher value, or of none."""

    @property
    def p_values(self) -> FloatArray:
        """The p-value of equality of each pair, the same for both kinds of gap."""

    def limits(self, kind: Kind, confidence: float) -> Interval:
        """Return the limits of each pair's difference or ratio; they exclude equality exactly if p < 1 - confidence."""

    def widest(self, kind: Kind, confidence: float) -> tuple[float, float]:
        """Return the limits of the largest difference, or of the smallest ratio, of all pairs.

        The end near to equality holds for all pairs together (Bonferroni), because the data choose the pair. The far
        end is the farthest limit of any pair: with the true worst pair, the limit of that pair suffices
        (intersection-union; Berger 1982).
        """


def worst_p(pairs: Pairs) -> float:
    """Return the p-value of all groups being equal: the smallest of the pairs', times their number."""
    return float(np.nan_to_num(adjusted_p(pairs.p_values, "bonferroni"), nan=np.inf).min(initial=np.inf))


def make_pairs(a: GroupValues, b: GroupValues) -> Pairs:
    """Return the comparison of groups, pairwise; those of a worst pair with the higher value first."""
    if a.metric.method == "rate" and not a.weighted:
        counts = (np.rint(side.value * side.trials) for side in (a, b))
        yes_a, yes_b = (np.nan_to_num(count) for count in counts)
        return RatePairs(yes_a, a.trials, yes_b, b.trials)
    return LimitPairs(partial(_moved, a, b))


@dataclass(frozen=True, eq=False)
class RatePairs:
    """Pairs of rates: see `evenhand.stats.two_rates`."""

    yes_a: FloatArray
    n_a: FloatArray
    yes_b: FloatArray
    n_b: FloatArray

    @cached_property
    def difference(self) -> RateComparison:
        """The differences, first minus second."""
        return compare_rates(self.yes_a, self.n_a, self.yes_b, self.n_b)

    @cached_property
    def ratio(self) -> RateComparison:
        """The ratios, first over second."""
        return compare_rates(self.yes_a, self.n_a, self.yes_b, self.n_b, "ratio")

    @cached_property
    def inverse(self) -> RateComparison:
        """The ratios, second over first."""
        return compare_rates(self.yes_b, self.n_b, self.yes_a, self.n_a, "ratio")

    @property
    def p_values(self) -> FloatArray:
        """The p-value of equality of each pair."""
        return self.difference.p_value

    def limits(self, kind: Kind, confidence: float) -> Interval:
        """Return the limits of each pair's difference or ratio."""
        compared = self.difference if kind == "difference" else self.ratio
        return compared.limits(confidence)

    def widest(self, kind: Kind, confidence: float) -> tuple[float, float]:
        """Return the limits of the largest difference, or of the smallest ratio, of all pairs."""
        tail = intervals.tail_share(confidence)
        near_tail = tail / self.n_a.size
        if kind == "difference":
            near = extreme_bound(self.difference, "lower", near_tail, "largest", 0.0)
            far = extreme_bound(self.difference, "upper", tail, "largest", near)
            return near, -extreme_bound(self.difference, "lower", tail, "smallest", -far)
        near = extreme_bound(self.inverse, "upper", near_tail, "smallest", 1.0)
        if not self.inverse.has_limits.all():  # of two rates of 0, nothing is known
            return 0.0, near
        far = extreme_bound(self.inverse, "lower", tail, "smallest", near)
        return (1.0 / extreme_bound(self.inverse, "upper", tail, "largest", 1.0 / far) if far > 0 else 0.0), near


@dataclass(frozen=True, eq=False)
class LimitPairs:
    """Pairs of which limits are known at any confidence; p-values are the least alpha at which they exclude equality.

    Parameters
    ----------
    limits_at : the limits of all pairs, of a kind and at a confidence of each.
    """

    limits_at: Callable[[Kind, float | FloatArray], Interval]

    @cached_property
    def p_values(self) -> FloatArray:
        """The p-value of equality of each pair."""

        def margin(confidence: FloatArray) -> FloatArray:
            low, high = self.limits_at("difference", confidence)
            return np.maximum(low, -high)

        return smallest_alpha(margin, self.limits("difference", 0.5).low.shape)

    def limits(self, kind: Kind, confidence: float) -> Interval:
        """Return the limits of each pair's difference or ratio."""
        return self.limits_at(kind, confidence)

    def widest(self, kind: Kind, confidence: float) -> tuple[float, float]:
        """Return the limits of the largest difference, or of the smallest ratio, of all pairs."""
        pairs = self.limits("difference", 0.5).low.size
        near, far = (self.limits(kind, level) for level in (intervals.bonferroni(confidence, pairs), confidence))
        return widest_difference(near, far) if kind == "difference" else narrowest_ratio(near, far)


def _moved(a: GroupValues, b: GroupValues, kind: Kind, confidence: float | FloatArray) -> Interval:
    """Return limits of a - b or a / b for independent groups, pairwise, from each side's own limits (MOVER).

    It keeps the skewness that the sides' own limits have, which Welch's and Fieller's symmetric limits do not; with few
    people and skewed scores those cover far too seldom.
    """
    left, right = (side.limits(confidence, exact=True) for side in (a, b))
    if kind == "difference":
        return intervals.mover_difference(a.value, left, b.value, right)
    low, high = intervals.mover_ratio(a.value, left, b.value, right)
    # For two zeros nothing is known, but that must not widen the limits over many pairs.
    empty = (a.value == 0) & (b.value == 0) & ~np.isnan(left.low + right.low)
    return Interval(np.where(empty, 0.0, low), np.where(empty, np.inf, high))
