"""Pairs of groups with one test each, and with limits that invert it, for differences and ratios."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from evenhand.audits.parity.estimate import GroupValues, PeopleOfGroups
from evenhand.core.families import MOST_FINDINGS
from evenhand.core.records import Kind
from evenhand.stats import intervals
from evenhand.stats.multiplicity import adjusted_p
from evenhand.stats.permutation import MeanComparison, compare_means
from evenhand.stats.permutation.cells import two_group_cells
from evenhand.stats.permutation.means import comparison_of
from evenhand.stats.permutation.reference import Approximated
from evenhand.stats.two_rates import RateComparison, compare_rates, extreme_bound, smallest_p
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval
from evenhand.stats.worst_pair import narrowest_ratio, smallest_alpha, widest_difference

_CLEAR = 0.05  # the significance level of a report
_MOST_DRAWN, _NEAR_LEAST = 50, 20.0


class Pairs(Protocol):
    """Comparisons of pairs of groups; the first group has the higher value in all pairs or in none."""

    @property
    def p_values(self) -> FloatArray:
        """The p-value of equality of each pair, the same for differences and ratios."""

    @property
    def rests_on(self) -> list[str]:
        """The basis of each pair's test and limits."""

    def limits(self, kind: Kind, confidence: float) -> Interval:
        """Return each pair's limits, which exclude equality if and only if p < 1 - confidence."""


class GroupPairs(Pairs, Protocol):
    """Comparisons of groups with each other, including the worst pair."""

    def widest(self, kind: Kind, confidence: float) -> tuple[float, float]:
        """Return the limits of the largest difference, or of the smallest ratio, of all pairs.

        The limit nearer to equality is simultaneous over all pairs (Bonferroni), because the data choose the pair. The
        farther limit is the farthest limit of any pair, because only the limit of the true worst pair must hold
        (intersection-union; Berger 1982).
        """


def worst_p(pairs: Pairs) -> float:
    """Return the p-value of equality of all groups: the smallest p-value of a pair times the number of pairs."""
    if isinstance(pairs, RatePairs):
        p = smallest_p(pairs.difference) * int((pairs.difference.method != "none").sum())
        return float(np.nan_to_num(min(1.0, p) if p >= 0 else np.inf))
    return float(np.nan_to_num(adjusted_p(pairs.p_values, "bonferroni"), nan=np.inf).min(initial=np.inf))


def p_value_of(pairs: Pairs, pair: int) -> float:
    """Return the p-value of one pair, without computing all p-values."""
    if isinstance(pairs, RatePairs):
        return float(pairs.difference.only(np.array([pair])).p_value[0])
    return float(pairs.p_values[pair])


def make_pairs(a: GroupValues, b: GroupValues, *, of_worst: bool = False) -> GroupPairs:
    """Return pairwise comparisons of groups; with `of_worst`, of all pairs with the higher value first."""
    if a.clusters is not None:
        return LimitPairs(partial(moved_limits, a, b), jumps=a.metric.method == "quantile")
    if a.metric.method == "rate" and _are_counts(a) and _are_counts(b):
        yes_a, yes_b = (np.nan_to_num(np.rint(side.value * side.trials)) for side in (a, b))
        return RatePairs(yes_a, np.rint(a.trials), yes_b, np.rint(b.trials))
    if a.people is not None and a.members is not None and b.members is not None:
        one_person = _either(a.one_person, b.one_person)
        return MeanPairs(a.people, a.members, b.members, a.bounds, of_worst, one_person)
    moved = LimitPairs(partial(moved_limits, a, b), jumps=a.metric.method == "quantile")
    if a.metric.of_number == "squared_error" and a.rates:
        return RootPairs(make_pairs(a.rates[0], b.rates[0], of_worst=of_worst), moved, a.value + b.value)
    return moved


def _either(a: BoolArray | None, b: BoolArray | None) -> BoolArray | None:
    sides = [side for side in (a, b) if side is not None]
    return np.any(sides, axis=0) if sides else None


def _are_counts(side: GroupValues) -> bool:
    """Return whether rates are ratios of counts of people: without survey weights, or with equal weights."""
    return not side.weighted or bool(np.allclose(side.trials, side.n, rtol=1e-9, atol=0.0))


@dataclass(frozen=True, eq=False)
class RatePairs:
    """Pairs of rates, compared as in `evenhand.stats.two_rates`."""

    yes_a: FloatArray
    n_a: FloatArray
    yes_b: FloatArray
    n_b: FloatArray

    @cached_property
    def difference(self) -> RateComparison:
        """The comparison of differences, first minus second."""
        return compare_rates(self.yes_a, self.n_a, self.yes_b, self.n_b)

    @cached_property
    def ratio(self) -> RateComparison:
        """The comparison of ratios, first over second."""
        return compare_rates(self.yes_a, self.n_a, self.yes_b, self.n_b, "ratio")

    @cached_property
    def inverse(self) -> RateComparison:
        """The comparison of ratios, second over first."""
        return compare_rates(self.yes_b, self.n_b, self.yes_a, self.n_a, "ratio")

    @property
    def p_values(self) -> FloatArray:
        """The p-value of equality of each pair."""
        return self.difference.p_value

    @property
    def rests_on(self) -> list[str]:
        """The basis of each pair's test and limits: "exact" or "asymptotic"."""
        return [str(method) for method in self.difference.method]

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
        if not self.inverse.has_limits.all():  # two rates of 0 say nothing about their ratio
            return 0.0, near
        far = extreme_bound(self.inverse, "lower", tail, "smallest", near)
        return (1.0 / extreme_bound(self.inverse, "upper", tail, "largest", 1.0 / far) if far > 0 else 0.0), near


class _ComparedPairs:
    """Pairs of means, compared as in `evenhand.stats.permutation`."""

    @cached_property
    def compared(self) -> list[MeanComparison]:
        """The comparison of each pair."""
        raise NotImplementedError

    @property
    def p_values(self) -> FloatArray:
        """The p-value of equality of each pair."""
        return np.array([found.p_value for found in self.compared])

    @property
    def rests_on(self) -> list[str]:
        """The basis of each pair's test and limits: see `MeanComparison`."""
        return [found.rests_on for found in self.compared]

    def limits(self, kind: Kind, confidence: float) -> Interval:
        """Return the limits of each pair's difference or ratio."""
        ends = [replace(found, contrast=kind).limits(2.0 * intervals.tail_share(confidence)) for found in self.compared]
        low, high = np.array(ends).reshape(-1, 2).T
        return Interval(low, high)

    def widest(self, kind: Kind, confidence: float) -> tuple[float, float]:
        """Return the limits of the largest difference, or of the smallest ratio, of all pairs."""
        return _widest(self, kind, confidence, len(self.compared))


@dataclass(frozen=True, eq=False)
class MeanPairs(_ComparedPairs):
    """Pairs of means of people.

    Parameters
    ----------
    people : the values of people in all groups.
    first, second : (pairs, groups) the masks of the groups on both sides of each pair.
    bounds : the lowest and highest possible value.
    of_worst : whether only the worst pair matters. If so, and if there are more than 50 pairs, pairs that cannot be
        the worst are compared by moments.
    one_person : (pairs,) whether one person contributes more than half of the variance of a side, or None if unknown.
    """

    people: PeopleOfGroups
    first: BoolArray
    second: BoolArray
    bounds: tuple[float, float]
    of_worst: bool = False
    one_person: BoolArray | None = None

    @cached_property
    def compared(self) -> list[MeanComparison]:
        """The comparison of each pair."""
        sides = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in zip(self.first, self.second, strict=True)]
        people, bounds, level = self.people, self.bounds, _level(len(sides))
        rough = [people.approximate(a, b, bounds) for a, b in sides] if _are_many(sides, self.of_worst) else []
        decide = _those_that_do_not_decide(rough) or [None] * len(sides)
        return [
            found or people.compare(a, b, bounds, _CLEAR, level) for (a, b), found in zip(sides, decide, strict=True)
        ]

    @property
    def rests_on(self) -> list[str]:
        """The basis of each pair's test and limits: see `MeanComparison`."""
        if self.one_person is None:
            return super().rests_on
        return ["one person" if one else basis for one, basis in zip(self.one_person, super().rests_on, strict=True)]


@dataclass(frozen=True, eq=False)
class StandardisedPairs(_ComparedPairs):
    """Pairs of rates standardised over strata; the test permutes people between groups within strata.

    Parameters
    ----------
    yes, n : (strata, groups) the number of counted people, and of all people.
    shares : (strata,) the weights of the strata.
    first, second : (pairs,) the groups of each pair.
    of_worst : see `MeanPairs`.
    """

    yes: FloatArray
    n: FloatArray
    shares: FloatArray
    first: IntArray
    second: IntArray
    of_worst: bool = False

    @cached_property
    def compared(self) -> list[MeanComparison]:
        """The comparison of each pair."""
        sides = list(zip(self.first.tolist(), self.second.tolist(), strict=True))
        level = _level(len(sides))
        rough = [self._approximate(a, b) for a, b in sides] if _are_many(sides, self.of_worst) else []
        decide = _those_that_do_not_decide(rough) or [None] * len(sides)
        return [found or self._compare(a, b, level) for (a, b), found in zip(sides, decide, strict=True)]

    def _compare(self, a: int, b: int, level: float) -> MeanComparison:
        """Return the comparison of two groups."""
        values, (first, second), strata = self._cells(a, b)
        return compare_means(
            values, first, second, strata=strata, shares=self.shares, bounds=(0.0, 1.0), alpha=_CLEAR, level=level
        )

    def _approximate(self, a: int, b: int) -> MeanComparison | None:
        """Return the comparison of two groups by moments alone; None without variance."""
        values, (first, second), strata = self._cells(a, b)
        cells = two_group_cells(values, first, second, strata=strata, shares=self.shares)
        if cells is None or not (cells.means().variance > 0).all():
            return None
        reference = Approximated(*cells.shape())
        ends = 0.0, 1.0
        return comparison_of(cells.means(), "difference", "approximation", 1.0 / reference.kurtosis, reference, ends)

    def _cells(self, a: int, b: int) -> tuple[FloatArray, tuple[FloatArray, FloatArray], IntArray]:
        """Return the values, both groups' counts and the strata of all cells, counted people first."""
        first, second = (np.append(self.yes[:, group], self.n[:, group] - self.yes[:, group]) for group in (a, b))
        strata = np.arange(self.shares.size)
        return np.repeat([1.0, 0.0], strata.size), (first, second), np.append(strata, strata)


def _level(pairs: int) -> float:
    """Return the smallest level at which one of several pairs may decide."""
    return _CLEAR / MOST_FINDINGS / max(1, pairs)


def _are_many(sides: Sequence[object], of_worst: bool) -> bool:
    """Return whether there are so many pairs that pairs that cannot be the worst are compared by moments."""
    return of_worst and len(sides) > _MOST_DRAWN


def _those_that_do_not_decide(rough: list[MeanComparison | None]) -> list[MeanComparison | None]:
    """Return comparisons by moments for pairs that cannot decide the worst pair's limit or p-value, else None.

    A pair cannot decide if its p-value is more than 20 times the smallest p-value, and if its limits would not be the
    farthest even at twice their distance from the estimate.
    """
    found = [each for each in rough if each is not None]
    p = np.array([each.p_value for each in found])
    decides = p <= _NEAR_LEAST * p.min(initial=1.0)
    for kind in ("difference", "ratio"):
        estimate = _sizes(np.array([replace(each, contrast=kind).estimate for each in found]), kind)
        ends = np.array([replace(each, contrast=kind).limits(_CLEAR) for each in found]).reshape(-1, 2)
        far = np.maximum(*(_sizes(end, kind) for end in ends.T))
        decides |= ~(2.0 * far - estimate < far.max(initial=0.0))
    kept = iter(decides.tolist())
    return [None if each is None or next(kept) else each for each in rough]


def _sizes(gaps: FloatArray, kind: str) -> FloatArray:
    """Return the distance of gaps from equality."""
    with np.errstate(all="ignore"):
        return np.abs(gaps if kind == "difference" else np.log(gaps))


@dataclass(frozen=True, eq=False)
class LimitPairs:
    """Pairs compared by limits; a p-value is the smallest alpha at which the limits exclude equality.

    Parameters
    ----------
    limits_at : the function that returns the limits of all pairs for a kind of gap and a confidence.
    jumps : whether limits are step functions of the confidence, as order statistics are.
    """

    limits_at: Callable[[Kind, float | FloatArray], Interval]
    jumps: bool = False

    @cached_property
    def p_values(self) -> FloatArray:
        """The p-value of equality of each pair."""

        def margin(confidence: FloatArray) -> FloatArray:
            low, high = self.limits_at("difference", confidence)
            return np.maximum(low, -high)

        return smallest_alpha(margin, self.limits("difference", 0.5).low.shape, jumps=self.jumps)

    @property
    def rests_on(self) -> list[str]:
        """The basis of each pair's test and limits: the limits of the two groups."""
        return ["group limits"] * self.limits("difference", 0.5).low.size

    def limits(self, kind: Kind, confidence: float) -> Interval:
        """Return the limits of each pair's difference or ratio."""
        return self.limits_at(kind, confidence)

    def widest(self, kind: Kind, confidence: float) -> tuple[float, float]:
        """Return the limits of the largest difference, or of the smallest ratio, of all pairs."""
        return _widest(self, kind, confidence, self.limits("difference", 0.5).low.size)


@dataclass(frozen=True, eq=False)
class RootPairs:
    """Pairs of square roots of means, such as root mean squared errors, with the test of the means.

    The limits of a ratio are the square roots of the limits of the means' ratio. The limits of a difference are the
    limits of the means' difference divided by the sum of the roots, because a - b = (a² - b²) / (a + b). The sum is an
    estimate, too. So the limits are at least as wide as the MOVER limits from each root's own limits, except for a
    limit by which the test excludes equality.

    Parameters
    ----------
    means : the comparison of the means.
    moved : the comparison of the roots by their own limits.
    total : the sum of both roots of each pair.
    """

    means: Pairs
    moved: LimitPairs
    total: FloatArray

    @property
    def p_values(self) -> FloatArray:
        """The p-value of equality of each pair."""
        return self.means.p_values

    @property
    def rests_on(self) -> list[str]:
        """The basis of each pair's test and limits: see `MeanComparison`."""
        return self.means.rests_on

    def limits(self, kind: Kind, confidence: float) -> Interval:
        """Return the limits of each pair's difference or ratio."""
        low, high = self.means.limits(kind, confidence)
        if kind == "ratio":
            return Interval(np.sqrt(np.maximum(low, 0.0)), np.sqrt(high))
        least, most = self.moved.limits(kind, confidence)
        low, high = low / self.total, high / self.total
        return Interval(
            np.where((low > 0) & ~(least > 0), low, np.fmin(low, least)),
            np.where((high < 0) & ~(most < 0), high, np.fmax(high, most)),
        )

    def widest(self, kind: Kind, confidence: float) -> tuple[float, float]:
        """Return the limits of the largest difference, or of the smallest ratio, of all pairs."""
        return _widest(self, kind, confidence, self.total.size)


def _widest(pairs: Pairs, kind: Kind, confidence: float, number: int) -> tuple[float, float]:
    """Return the limits of the worst pair, computed from the limits of all pairs."""
    near, far = (pairs.limits(kind, level) for level in (intervals.bonferroni(confidence, number), confidence))
    return widest_difference(near, far) if kind == "difference" else narrowest_ratio(near, far)


def moved_limits(a: GroupValues, b: GroupValues, kind: Kind, confidence: float | FloatArray) -> Interval:
    """Return MOVER limits of a - b or a / b, pairwise, from each side's own limits.

    The two sides are independent, or correlated through common clusters.

    MOVER keeps the asymmetry of the sides' own limits. Welch's and Fieller's limits are symmetric and have far too low
    coverage with few people and skewed scores.
    """
    left, right = (side.limits(confidence, exact=True) for side in (a, b))
    correlation = 0.0 if a.clusters is None else a.clusters.correlation[a.places, b.places]
    if kind == "difference":
        return intervals.mover_difference(a.value, left, b.value, right, correlation)
    low, high = intervals.mover_ratio(a.value, left, b.value, right, correlation)
    # Two zeros say nothing about their ratio, but must not widen the limits over many pairs.
    empty = (a.value == 0) & (b.value == 0) & ~np.isnan(left.low + right.low)
    return Interval(np.where(empty, 0.0, low), np.where(empty, np.inf, high))
