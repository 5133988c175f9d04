"""Comparison of two groups' means by studentised permutation: a test, and the interval that inverts it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats.bounded import p_of_tail, student_quantile
from evenhand.stats.intervals import mover_difference, mover_ratio
from evenhand.stats.permutation.cells import Means, TwoGroupCells, two_group_cells
from evenhand.stats.permutation.reference import Approximated, Drawn, Reference
from evenhand.stats.permutation.tilted import draw_tails
from evenhand.stats.types import Interval

Contrast = Literal["difference", "ratio"]
Basis = Literal["permutation", "approximation", "bounds", "none"]

DRAWS, MORE_DRAWS = 9_999, 14_999
_NEAR = 2.0  # times the level that decides: beyond, plain draws tell that p is larger
_MOST_SKEWNESS, _MOST_KURTOSIS = 0.15, 0.02  # of the difference of means: below, moments suffice
_FEW_CARRIERS = 5.0
_FEW_VALUES, _MOST_KURTOSIS_OF_FEW = 100, 0.003  # with few distinct values t has few values, too


@dataclass(frozen=True, eq=False)
class MeanComparison:
    """Two means and their contrast, with a test and limits from one reference distribution.

    Attributes
    ----------
    mean_a, mean_b
        The means; with strata, the standardised means.
    variance_a, variance_b
        The squares of their standard errors.
    effective
        The effective number of people of both groups: 1 / sum s² over people of share s in the mean.
    contrast
        The contrast of `estimate`, `p_value` and `limits`.
    basis
        The method behind test and limits: "permutation"; its "approximation" by moments, for large samples; "bounds" if
        a group has no variance, so that the limits also use the bounds of the values; "none" if a group has no people
        to compare.
    carriers
        Approximate number of people of the smaller group who cause the variance: n over the pooled kurtosis. Below 5, a
        group's sample may contain no extreme value: the test stays exact for equal distributions, but the interval
        covers less often.
    reference
        The distribution of t under random assignment to groups.
    bounds
        The smallest and the largest possible value.
    """

    mean_a: float
    mean_b: float
    variance_a: float
    variance_b: float
    effective: tuple[float, float]
    contrast: Contrast
    basis: Basis
    carriers: float
    reference: Reference
    bounds: tuple[float, float]

    def swapped(self) -> MeanComparison:
        """Return the comparison with groups a and b exchanged."""
        return MeanComparison(
            self.mean_b,
            self.mean_a,
            self.variance_b,
            self.variance_a,
            self.effective[::-1],
            self.contrast,
            self.basis,
            self.carriers,
            self.reference.mirrored(),
            self.bounds,
        )

    @property
    def estimate(self) -> float:
        """The contrast: mean_a - mean_b, or mean_a / mean_b; nan if undefined."""
        if self.contrast == "difference":
            return self.mean_a - self.mean_b
        return self.mean_a / self.mean_b if self.mean_a >= 0 and self.mean_b > 0 else float("nan")

    @property
    def stderr(self) -> float:
        """The standard error of the difference of means."""
        return float(np.sqrt(self.variance_a + self.variance_b))

    @property
    def rests_on(self) -> str:
        """The basis, or "few people" if fewer than 5 people of the smaller group cause the variance."""
        return "few people" if self.basis == "permutation" and self.carriers < _FEW_CARRIERS else self.basis

    @property
    def draws(self) -> int:
        """The number of drawn permutations; 0 for an approximation."""
        return self.reference.draws

    @property
    def smallest_p(self) -> float:
        """The smallest p-value that the reference distribution can give."""
        return self.reference.smallest_p

    @cached_property
    def p_value(self) -> float:
        """The smallest alpha at which `limits` exclude equality; nan if a group has no people."""
        return self.p_at(self._equality)

    def p_at(self, null: float) -> float:
        """Return the smallest alpha at which `limits` exclude the difference or ratio `null`."""
        if self.basis == "none":
            return float("nan")
        if self.basis == "bounds" and null != self._equality:
            return p_of_tail(lambda tail: _beyond(null, self.limits(2.0 * tail)))
        return self.reference.p_value(self._t(null), self.t)

    def limits(self, alpha: float = 0.05) -> tuple[float, float]:
        """Return the limits of the contrast; they exclude equality exactly if p_value < alpha."""
        if np.isnan(self.estimate):
            return float("nan"), float("nan")
        observed = self.t
        lowest, highest = self.reference.ends(alpha, observed)
        end_of = self._difference_at if self.contrast == "difference" else self._ratio_at
        low, high = end_of(highest, observed), end_of(lowest, observed)
        if self.basis == "bounds":  # of a mean of 0 without variance, every ratio has the same t
            low, high = self._widened(*((low, high) if self.contrast == "difference" else (1.0, 1.0)), alpha)
        return low, high

    @property
    def t(self) -> float:
        """The statistic of equality: the difference of means divided by its standard error."""
        return self._t(self._equality)

    @property
    def _equality(self) -> float:
        return 0.0 if self.contrast == "difference" else 1.0

    def _t(self, null: float) -> float:
        """Return (mean_a - mean_b - d) / se or (mean_a - r mean_b) / se, rounded to the precision of the draws."""
        r, d = (1.0, null) if self.contrast == "difference" else (null, 0.0)
        return studentised(self.mean_a - r * self.mean_b - d, self.variance_a + r * r * self.variance_b)

    def _difference_at(self, t: float, observed: float) -> float:
        if np.isinf(observed):
            return 0.0 if np.isfinite(t) else -t
        return (observed - t) * self.stderr if np.isfinite(t) else -t

    def _ratio_at(self, t: float, observed: float) -> float:
        """Return the ratio r at which the statistic equals t (Fieller)."""
        a, b, va, vb = self.mean_a, self.mean_b, self.variance_a, self.variance_b
        if np.isinf(t) or t * np.sqrt(va) >= a or -t * np.sqrt(vb) >= b:
            return 0.0 if t > 0 else float("inf")
        root = np.sqrt(max(t * t * (b * b * va + a * a * vb - t * t * va * vb), 0.0))
        r = float((a * a - t * t * va) / (a * b + root) if t > 0 else (a * b + root) / (b * b - t * t * vb))
        if t == observed:
            return 1.0
        return max(r, float(np.nextafter(1.0, 2.0))) if t < observed else min(r, float(np.nextafter(1.0, 0.0)))

    def _bounded(self, tail: float) -> Interval:
        means, variances = (self.mean_a, self.mean_b), (self.variance_a, self.variance_b)
        sides = [
            _limits_within(mean, variance, people, self.bounds, tail)
            for mean, variance, people in zip(means, variances, self.effective, strict=True)
        ]
        combine = mover_difference if self.contrast == "difference" else mover_ratio
        return combine(self.mean_a, sides[0], self.mean_b, sides[1])

    def _widened(self, low: float, high: float, alpha: float) -> tuple[float, float]:
        """Return limits at least as wide as for bounded values, except where the test excludes equality."""
        equal = self._equality
        least, most = (float(end) for end in self._bounded(alpha / 2))
        if self.p_value >= alpha:
            return min(low, least, equal), max(high, most, equal)
        if self.estimate > equal:
            return low if low > equal else max(least, float(np.nextafter(equal, np.inf))), max(high, most)
        return min(low, least), high if high < equal else min(most, float(np.nextafter(equal, -np.inf)))


def _beyond(null: float, limits: tuple[float, float]) -> float:
    """Return the distance from a value to the limits that exclude it; negative if they include it."""
    return max(limits[0] - null, null - limits[1])


def studentised(away: float, variance: float) -> float:
    """Return away / sqrt(variance) rounded to the precision of the draws; infinite without variance."""
    with np.errstate(divide="ignore"):
        return float(np.float32(away / np.sqrt(variance))) if away else 0.0


def _limits_within(mean: float, variance: float, people: float, bounds: tuple[float, float], tail: float) -> Interval:
    """Return Student's limits of a mean, or without variance the exact limits for an unseen share of 1 - tail^(1/n)."""
    if variance > 0:
        half = student_quantile(people - 1.0, tail) * np.sqrt(variance)
        ends = max(mean - half, bounds[0]), min(mean + half, bounds[1])
    else:
        unseen = -np.expm1(np.log(tail) / people)
        ends = mean - unseen * (mean - bounds[0]), mean + unseen * (bounds[1] - mean)
    return Interval(np.asarray(ends[0]), np.asarray(ends[1]))


def compare_means(
    values: ArrayLike,
    counts_a: ArrayLike,
    counts_b: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    shares: ArrayLike | None = None,
    contrast: Contrast = "difference",
    bounds: tuple[float, float] | None = None,
    alpha: float = 0.05,
    level: float | None = None,
) -> MeanComparison:
    """Compare the means of two groups by studentised permutation.

    t = (mean_a - mean_b) / se, se² = v_a / n_a + v_b / n_b, is compared with its distribution when people are assigned
    to the groups at random. p is twice the smaller share of draws at least as extreme, (1 + how many) / (1 + draws):
    it is exact if the distributions are equal, and asymptotically valid if only the means are equal. With q_lo and q_hi
    the order statistics that match p, the limits are [est - q_hi se, est - q_lo se], so they exclude 0 exactly if p <
    alpha. The end far from equality uses at least the normal quantile, because where few people cause the variance the
    permutation distribution is too short on that side. For a ratio, the limits contain all r with q_lo <= (mean_a - r
    mean_b) / sqrt(v_a / n_a + r² v_b / n_b) <= q_hi: the same test at 1.

    - Strata: people change groups within their stratum; means, and their variances, are standardised by `shares`.
      Strata with people of only one group are left out. A group with a single person in a stratum gets the variance of
      the whole stratum.
    - Weights: people keep their weights; v_a / n_a is n / (n - 1) sum w² (x - mean)² / (sum w)².
    - Large samples: if skewness and kurtosis of the difference of means are small, the distribution is approximated by
      its moments (`Approximated`), and nothing is drawn. This depends on sizes and moments only.
    - A group without variance: the test is the same, but its standard error ignores values that this group's sample
      missed. The limits are at least as wide as the limits for bounded values (1 - tail^(1/n) is the largest share of a
      population that a sample of n may miss entirely; MOVER combines them with Student's limits of the other group),
      except at the end by which the test excludes equality.

    Draws depend on the pooled values, the sizes and the levels alone, not on order or names: exchanging the groups
    mirrors every number. If p is more than twice `alpha`, 9,999 plain draws are used; otherwise 14,999 weighted draws,
    many of them in the tails of both levels (`draw_tails`): p-values are then valid at any level, with a relative error
    of about 4 %.

    Parameters
    ----------
    values, counts_a, counts_b
        The cells: a value, and the number of people of each group with this value. Values need not be distinct.
    weights
        The weight of each person in a cell.
    strata
        The stratum of each cell: 0, 1, ...
    shares
        The share of each stratum in the standardised means; by default its share of all people.
    contrast
        The difference or the ratio of means.
    bounds
        The smallest and the largest possible value; None takes the observed extremes.
    alpha, level
        The largest and the smallest level at which the p-value may be tested, as with several findings.

    References
    ----------
    A. Janssen (1997), Studentized permutation tests for non-i.i.d. hypotheses and the generalized Behrens-Fisher
    problem, Statistics & Probability Letters 36. E. Chung and J. P. Romano (2013), Exact and asymptotically robust
    permutation tests, Annals of Statistics 41. B. Phipson and G. K. Smyth (2010), Permutation p-values should never be
    zero, Statistical Applications in Genetics and Molecular Biology 9. E. C. Fieller (1954), Some problems in interval
    estimation, Journal of the Royal Statistical Society B 16.

    Examples
    --------
    >>> found = compare_means([0.1, 0.2, 0.9], [30, 20, 10], [40, 19, 1])
    >>> low, high = found.limits(0.05)
    >>> round(found.estimate, 4), found.p_value < 0.01, round(low, 2), round(high, 2), found.basis
    (0.1217, True, 0.04, 0.2, 'permutation')
    """
    cells = two_group_cells(values, counts_a, counts_b, weights, strata, shares)
    if cells is None:
        return _nothing(contrast)
    cells, is_swapped = cells.oriented()
    reference, basis, carriers = _reference_of(cells, alpha, alpha if level is None else level)
    extremes = float(cells.values.min()), float(cells.values.max())
    found = comparison_of(cells.means(), contrast, basis, carriers, reference, bounds or extremes)
    return found.swapped() if is_swapped else found


def comparison_of(means: Means, *rest: Any) -> MeanComparison:
    """Return a comparison from both groups' means, variances and effective sizes, and the other attributes."""
    (a, b), (variance_a, variance_b), (n_a, n_b) = (pair.tolist() for pair in means)
    return MeanComparison(a, b, variance_a, variance_b, (n_a, n_b), *rest)


def compare_moments(
    people: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    shares: ArrayLike,
    *,
    contrast: Contrast = "difference",
    bounds: tuple[float, float],
) -> MeanComparison:
    """Compare two very large groups from their moments by the normal distribution.

    For numbers between bounds the fourth moment is at most the second times the squared range; this limits how far into
    the tails the normal distribution is used (`Approximated`).

    Parameters
    ----------
    people, mean, variance
        (2, strata) effective people, means and variances of a person's value, by group and stratum.
    shares
        (strata,) the strata's shares in the standardised means, above 0.
    contrast, bounds
        See `compare_means`.

    Examples
    --------
    >>> found = compare_moments([[4e6], [2e6]], [[0.31], [0.30]], [[0.04], [0.04]], [1.0], bounds=(0.0, 1.0))
    >>> round(found.p_value, 12), [round(limit, 4) for limit in found.limits()]
    (0.0, [0.0097, 0.0103])
    """
    n, value, spread = (np.asarray(numbers, dtype=np.float64) for numbers in (people, mean, variance))
    if not n.size:
        return _nothing(contrast)
    share = np.asarray(shares, dtype=np.float64) / np.sum(shares)
    of_mean = share**2 * spread / n
    total = float(of_mean.sum())
    fourth = share**4 * spread * (bounds[1] - bounds[0]) ** 2 / n**3
    kurtosis = float(fourth.sum()) / total**2 if total > 0 else 0.0
    means = Means((share * value).sum(axis=1), of_mean.sum(axis=1), 1.0 / (share**2 / n).sum(axis=1))
    basis: Basis = "approximation" if (means.variance > 0).all() else "bounds"
    return comparison_of(means, contrast, basis, np.inf, Approximated(0.0, kurtosis), bounds)


def _reference_of(cells: TwoGroupCells, alpha: float, level: float) -> tuple[Reference, Basis, float]:
    """Return the reference distribution, its basis, and how many people of the smaller group cause the variance."""
    skewness, kurtosis = cells.shape()
    carriers = 1.0 / kurtosis if kurtosis > 0 else 0.0
    approximated = Approximated(skewness, kurtosis)
    mean, variance, _ = cells.means()
    basis: Basis = "bounds" if (variance == 0).any() else "permutation"
    t = studentised(mean[0] - mean[1], variance.sum())
    if is_fine(approximated, t, (alpha, level), cells.values.size):
        return approximated, "approximation" if basis == "permutation" else basis, carriers
    if approximated.p_value(t, t) > alpha:  # most that do not differ need no more
        drawn = Drawn(cells.draw(DRAWS))
        if drawn.p_value(t, t) > _NEAR * alpha:
            return drawn, basis, carriers
    return draw_tails(cells, alpha, level, MORE_DRAWS), basis, carriers


def is_fine(reference: Approximated, t: float, levels: tuple[float, float], values: int = 0) -> bool:
    """Return whether moments suffice for this statistic and number of distinct values.

    They do not suffice if t lies where the approximation is too coarse to decide at the smaller level.
    """
    most = _MOST_KURTOSIS if values > _FEW_VALUES else _MOST_KURTOSIS_OF_FEW
    alpha, level = levels
    decides = reference.smallest_p < level or reference.p_value(t, t) > _NEAR * alpha
    return abs(reference.skewness) <= _MOST_SKEWNESS and reference.kurtosis <= most and decides


def _nothing(contrast: Contrast) -> MeanComparison:
    """Return the comparison of groups without people to compare."""
    unknown = np.full(2, np.nan)
    return comparison_of(
        Means(unknown, unknown, np.zeros(2)), contrast, "none", 0.0, Approximated(0.0, 1.0), (np.nan, np.nan)
    )
