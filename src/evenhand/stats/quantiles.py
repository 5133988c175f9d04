"""Quantiles of people in groups, with exact limits from order statistics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from evenhand.stats.intervals import tail_share
from evenhand.stats.types import FloatArray, IntArray, Interval

_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class GroupQuantiles:
    """Sorted values of people in groups.

    Attributes
    ----------
    values
        (N,) the values, by group and then by size.
    share
        (N,) the share of the group's people up to and including this value.
    ends
        (groups + 1,) the start of each group, followed by the end of the last group.
    people
        (groups,) the number of people; with weights, Kish's effective number.

    Examples
    --------
    >>> people = GroupQuantiles.build(np.arange(1.0, 16.0), np.zeros(15, dtype=np.int64), None, 1)
    >>> people.at(0.5).tolist(), [end.tolist() for end in people.limits(0.5, np.array([0]), 0.95)]
    ([8.0], [[4.0], [12.0]])
    """

    values: FloatArray
    share: FloatArray
    ends: IntArray
    people: FloatArray

    @classmethod
    def build(cls, values: FloatArray, codes: IntArray, weights: FloatArray | None, groups: int) -> GroupQuantiles:
        """Return the values sorted within their groups."""
        order = np.lexsort((values, codes))
        ends = np.searchsorted(codes[order], np.arange(groups + 1))
        sizes = np.diff(ends)
        if weights is None:
            share = (np.arange(values.size) - np.repeat(ends[:-1], sizes) + 1.0) / np.repeat(sizes, sizes)
            return cls(values[order], share, ends, sizes.astype(np.float64))
        weight = weights[order]
        total, squares = (np.bincount(codes, weights=weights**power, minlength=groups) for power in (1, 2))
        parts = [np.cumsum(weight[a:b]) for a, b in pairwise(ends)]
        with np.errstate(all="ignore"):
            return cls(values[order], np.concatenate(parts) / np.repeat(total, sizes), ends, total**2 / squares)

    def at(self, q: float) -> FloatArray:
        """Return a quantile of each group; nan without people.

        A share q of the people do not exceed it. If a share of exactly q has this value or a lower one, it is the mean
        of this and the next value, as in the usual median (definition 2 of Hyndman and Fan). It does not depend on the
        scale of the weights.

        References
        ----------
        R. J. Hyndman and Y. Fan (1996), Sample quantiles in statistical packages, The American Statistician 50.
        """
        groups = np.arange(self.people.size)
        return (self._reaching(groups, np.full(groups.size, q - _ROUNDING)) + self._beyond(groups, q)) / 2.0

    def limits(self, q: float, groups: IntArray, confidence: float | FloatArray) -> Interval:
        """Return exact limits of a quantile of some groups, with a confidence for each group.

        The number B of n people below the quantile is binomial (n, q), whatever the distribution. The lower limit is
        the value of person r in order, with r the largest number for which P(B < r) is at most the tail; the upper
        limit likewise from above. Limits are infinite if there are too few people. Ties make the limits conservative.
        With weights, n is Kish's effective number, rounded down, and r / n is a share of the total weight.

        References
        ----------
        W. R. Thompson (1936), On confidence ranges for the median and other expectation distributions, Annals of
        Mathematical Statistics 7. R. S. Woodruff (1952), Confidence intervals for medians and other position measures,
        JASA 47.
        """
        n = np.floor(self.people[groups] + _ROUNDING)
        tail = np.broadcast_to(tail_share(np.asarray(confidence, dtype=np.float64)), n.shape)
        below, above = _fewest(tail, n, q), _fewest(tail, n, 1.0 - q)
        with np.errstate(all="ignore"):
            low = np.where(below > 0, self._reaching(groups, below / n - _ROUNDING), -np.inf)
            high = np.where(above > 0, self._reaching(groups, (n + 1.0 - above) / n - _ROUNDING), np.inf)
        empty = self.people[groups] == 0
        return Interval(np.where(empty, np.nan, low), np.where(empty, np.nan, high))

    def _reaching(self, groups: IntArray, shares: FloatArray) -> FloatArray:
        """Return the first value of each group whose cumulative share is at least a number."""
        place = np.searchsorted(self._place, 2.0 * groups + shares)
        last = self.ends[groups + 1] - 1
        found = self.values[np.clip(np.minimum(place, last), 0, self.values.size - 1)]
        return np.where(last >= self.ends[groups], found, np.nan)

    @cached_property
    def _place(self) -> FloatArray:
        """Cumulative shares plus twice the group's number, so that one search works for all groups."""
        return np.repeat(2.0 * np.arange(self.people.size), np.diff(self.ends)) + self.share

    def _beyond(self, groups: IntArray, q: float) -> FloatArray:
        """Return the first value of each group whose cumulative share is above q."""
        return self._reaching(groups, np.full(groups.size, q + _ROUNDING))


def _fewest(tail: FloatArray, n: FloatArray, q: float) -> FloatArray:
    """Return the smallest k with P(B <= k) >= tail, for B binomial (n, q)."""
    from scipy.special import bdtr, bdtrik

    (tails, sizes), each = np.unique([tail, n], axis=1, return_inverse=True)  # many pairs share a group
    with np.errstate(all="ignore"):
        k = np.nan_to_num(np.ceil(bdtrik(tails, sizes, q)))
        before = np.maximum(k - 1.0, 0.0)
        least = np.where(bdtr(before, sizes.astype(np.int64), q) >= tails, before, k)
    return np.asarray(least[each.ravel()])
