"""Score test of two groups' rates, and the confidence interval that inverts it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.intervals import tail_share
from evenhand.stats.two_rates.exact import Counts, complemented, is_beyond_tail, lowest_position, upper_tail
from evenhand.stats.types import BoolArray, FloatArray, Interval
from evenhand.stats.workers import run_tasks

Kind = Literal["difference", "ratio"]
Method = Literal["exact", "asymptotic", "effective sizes", "none"]
Side = Literal["lower", "upper"]

FEWEST_EXPECTED = 30.0  # expected people with the rarer outcome in the smaller group, from which on z is normal
_ROUNDING = 1e-9
_FARTHEST = 60.0  # log ratio
_MANY = 8  # limits from which on they are searched in several threads


@dataclass(frozen=True, eq=False)
class RateComparison:
    """Pairs of rates and their contrast, with tests and confidence limits.

    Attributes
    ----------
    yes_a, n_a, yes_b, n_b
        The counts of both groups, arrays of one shape.
    kind
        The contrast in `value` and `limits`: the difference or the ratio of rates. `p_value` is the same for both.
    """

    yes_a: FloatArray
    n_a: FloatArray
    yes_b: FloatArray
    n_b: FloatArray
    kind: Kind

    @cached_property
    def value(self) -> FloatArray:
        """The difference or ratio of the rates of groups a and b; nan if a group is empty or a ratio's divisor is 0."""
        with np.errstate(all="ignore"):
            a, b = self.yes_a / self.n_a, self.yes_b / self.n_b
            return np.asarray(a - b if self.kind == "difference" else np.where(b > 0, a / b, np.nan))

    @cached_property
    def method(self) -> npt.NDArray[np.str_]:
        """The method of test and limits for each pair, a `Method`.

        It is "exact", "asymptotic", "effective sizes" (asymptotic with fractional counts), or "none" if a group is
        empty.
        """
        names = np.where(self._is_exact, "exact", np.where(self._is_whole, "asymptotic", "effective sizes"))
        return np.where(self._is_comparable, names, "none")

    @cached_property
    def p_value(self) -> FloatArray:
        """The two-sided p-value of equal rates, twice the smaller one-sided p-value, at most 1; nan without a test.

        If one of the one-sided p-values is at most 0.5, the other is at least 0.5, and is not computed.
        """
        is_higher = self.yes_a * self.n_b >= self.yes_b * self.n_a
        near = self._one_sided(is_higher)
        is_open = near > 0.5
        if is_open.any():
            near = np.array(near)
            near[is_open] = np.minimum(near[is_open], self.only(is_open)._one_sided(~is_higher[is_open]))
        return np.minimum(1.0, 2.0 * near)

    def _one_sided(self, is_lower: BoolArray) -> FloatArray:
        """Return one-sided p-values of equal rates: side "lower" where `is_lower`, otherwise "upper"."""
        found = np.full(self.n_a.shape, np.nan)
        found[is_lower] = self.only(is_lower).one_sided("lower")
        found[~is_lower] = self.only(~is_lower).one_sided("upper")
        return found

    def one_sided(self, side: Side, null: float | None = None) -> FloatArray:
        """Return the p-value that is small if the value is above (side "lower") or below (side "upper") `null`.

        If `null` is None, the null hypothesis is equality. `bound` of the same side with confidence 1 - p equals
        `null`.
        """
        require_choice("side", side, ("lower", "upper"))
        position = 0.0 if null is None else self._position(null)
        groups, position = (self._groups, position) if side == "lower" else (self._swapped, -position)
        p = np.full(len(groups), np.nan)
        exact = self._is_exact.ravel()
        for i in np.flatnonzero(exact):
            p[i] = upper_tail(self._counts(groups[i], position == 0.0), position, self._is_ratio and position != 0.0)
        others = np.flatnonzero(self._is_comparable.ravel() & ~exact)
        if others.size:
            from scipy.special import ndtr

            from evenhand.stats.two_rates.kernels import scores

            p[others] = ndtr(-scores(groups[others], position, self._is_ratio) * _shrinkage(groups[others]))
        return p.reshape(self.n_a.shape)

    def is_rejected(self, side: Side, null: float | None, tail: float) -> BoolArray:
        """Return whether the p-value of `one_sided` is below `tail`, without computing it; False without a test.

        The probability, at the observed pooled rate, that both groups are at least as extreme as observed is a lower
        bound of the p-value. For most pairs it already shows that the p-value is not below `tail`.
        """
        require_choice("side", side, ("lower", "upper"))
        position = 0.0 if null is None else self._position(null)
        groups, position = (self._groups, position) if side == "lower" else (self._swapped, -position)
        found, exact = np.zeros(len(groups), dtype=np.bool_), self._is_exact.ravel()
        others = np.flatnonzero(self._is_comparable.ravel() & ~exact)
        if others.size:
            found[others] = _flat(self).only(others).one_sided(side, null) < tail
        near = np.flatnonzero(exact)
        for i in near[_least_chance(groups[near], position, self._is_ratio) < tail]:
            counts = self._counts(groups[i], position == 0.0)
            found[i] = is_beyond_tail(counts, position, self._is_ratio and position != 0.0, tail)
        return found.reshape(self.n_a.shape)

    def bound(self, side: Side, confidence: float | FloatArray = 0.95) -> FloatArray:
        """Return the one-sided limit of the value with this confidence."""
        require_choice("side", side, ("lower", "upper"))
        return self.bound_at(side, 2.0 * tail_share(_floats(confidence)))

    def limits(self, confidence: float | FloatArray = 0.95) -> Interval:
        """Return the confidence limits of the value; they exclude equality exactly if p_value < 1 - confidence.

        A ratio of 0 has the low limit 0; a divisor of 0 gives the high limit inf. Limits are nan if a group is empty,
        and for the ratio of two rates of 0.
        """
        tail = tail_share(_floats(confidence))
        return Interval(self.bound_at("lower", tail), self.bound_at("upper", tail))

    def bound_at(self, side: Side, tail: FloatArray | float) -> FloatArray:
        """Return the limit with a one-sided p-value of `tail`."""
        groups, sign = (self._groups, 1.0) if side == "lower" else (self._swapped, -1.0)
        tails = np.broadcast_to(tail, self.n_a.shape).ravel()
        lowest = np.full(len(groups), np.nan)
        exact, has_limits = self._is_exact.ravel(), self.has_limits.ravel()
        those = np.flatnonzero(exact & has_limits)
        searches = [
            (1, partial(lowest_position, self._counts(groups[i], not self._is_ratio), self._is_ratio, float(tails[i])))
            for i in those
        ]
        lowest[those] = list(run_tasks(searches, threads=None if len(searches) >= _MANY else 1))
        others = np.flatnonzero(has_limits & ~exact)
        if others.size:
            lowest[others] = self._score_limits(groups[others], tails[others])
        return self._contrasts(sign * lowest)

    def asymptotic_bound(self, side: Side, tail: FloatArray | float) -> FloatArray:
        """Return the limits that `bound_at` would return if every pair were compared asymptotically."""
        groups, sign = (self._groups, 1.0) if side == "lower" else (self._swapped, -1.0)
        lowest = self._score_limits(groups, np.broadcast_to(tail, self.n_a.shape).ravel())
        return np.where(self.has_limits, self._contrasts(sign * lowest), np.nan)

    def only(self, pairs: npt.NDArray[np.generic]) -> RateComparison:
        """Return the comparison of the selected pairs."""
        x, m, y, n = (part[pairs] for part in (self.yes_a, self.n_a, self.yes_b, self.n_b))
        return RateComparison(x, m, y, n, self.kind)

    def higher_first(self) -> RateComparison:
        """Return all pairs in one dimension as differences, with groups exchanged where needed to make them >= 0."""
        is_higher = self.yes_a * self.n_b >= self.yes_b * self.n_a
        groups = np.where(is_higher.ravel()[:, np.newaxis], self._groups, self._swapped)
        x, m, y, n = groups.T.copy()
        return RateComparison(x, m, y, n, "difference")

    @property
    def score(self) -> FloatArray:
        """The score statistic of equal rates; nan if a group is empty."""
        from evenhand.stats.two_rates.kernels import scores

        z = scores(self._groups, 0.0, False).reshape(self.n_a.shape)
        return np.where(self._is_comparable, z, np.nan)

    def _score_limits(self, groups: FloatArray, tails: FloatArray) -> FloatArray:
        from scipy.special import ndtri

        from evenhand.stats.two_rates.kernels import score_limits

        return score_limits(groups, self._is_ratio, -ndtri(tails) / _shrinkage(groups))

    def _contrasts(self, positions: FloatArray) -> FloatArray:
        """Return positions on the kernels' scale converted to differences or ratios."""
        return (np.exp(positions) if self._is_ratio else positions).reshape(self.n_a.shape)

    @cached_property
    def has_limits(self) -> BoolArray:
        """Mask of pairs with limits: both groups have people, and for a ratio at least one rate is above 0."""
        return self._is_comparable & ((self.yes_a + self.yes_b > 0) if self._is_ratio else True)

    @property
    def is_exact(self) -> BoolArray:
        """Mask of pairs compared by exact enumeration."""
        return self._is_exact

    @property
    def _is_ratio(self) -> bool:
        return self.kind == "ratio"

    @cached_property
    def _is_comparable(self) -> BoolArray:
        return (self.n_a > 0) & (self.n_b > 0)

    @cached_property
    def _is_whole(self) -> BoolArray:
        parts = np.stack([self.yes_a, self.n_a, self.yes_b, self.n_b])
        return np.asarray((parts == np.rint(parts)).all(axis=0))

    @cached_property
    def _is_exact(self) -> BoolArray:
        """Mask of pairs with too few expected people of the rarer outcome for the asymptotic test."""
        with np.errstate(all="ignore"):
            pooled = (self.yes_a + self.yes_b) / (self.n_a + self.n_b)
            expected = np.minimum(self.n_a, self.n_b) * np.minimum(pooled, 1.0 - pooled)
        return self._is_comparable & self._is_whole & (expected < FEWEST_EXPECTED)

    @cached_property
    def _groups(self) -> FloatArray:
        """(pairs, 4) the counts, one row for each pair."""
        return np.stack([part.ravel() for part in (self.yes_a, self.n_a, self.yes_b, self.n_b)], axis=1)

    @cached_property
    def _swapped(self) -> FloatArray:
        return np.ascontiguousarray(self._groups[:, [2, 3, 0, 1]])

    def _counts(self, row: FloatArray, has_complement: bool) -> Counts:
        """Return the counts of a pair as integers, or their `complemented` form if `has_complement`."""
        x, m, y, n = (int(count) for count in row.tolist())
        return complemented((x, m, y, n)) if has_complement else (x, m, y, n)

    def _position(self, null: float) -> float:
        """Return a difference or ratio converted to the kernels' scale."""
        if not self._is_ratio:
            return min(max(null, -1.0), 1.0)
        return min(max(float(np.log(null)), -_FARTHEST), _FARTHEST) if null > 0 else -_FARTHEST


def compare_rates(
    yes_a: ArrayLike, n_a: ArrayLike, yes_b: ArrayLike, n_b: ArrayLike, kind: Kind = "difference"
) -> RateComparison:
    """Return the comparison of two groups' rates; arguments broadcast over pairs.

    The statistic of x of m people against y of n, for a difference d (or a ratio r), is Miettinen and Nurminen's score

        T(d) = (x/m - y/n - d) / sqrt(p (1 - p) / m + q (1 - q) / n),    p - q = d
        T(r) = (x/m - r y/n) / sqrt(p (1 - p) / m + r² q (1 - q) / n),   p = r q

    with p and q the most likely rates if d (or r) is true. At d = 0 and r = 1 both statistics are equal. One-sided
    p-values are the probability of a statistic at least as large (or as small) as observed:

    - Exact, if the smaller group has fewer than 30 expected people with the rarer outcome at the pooled rate: the
      largest chance, under two binomial distributions, over all pooled rates (m p + n q) / (m + n) within their own
      exact limits of confidence 1 - 1e-6, plus 1e-6 (Berger and Boos). No p-value is below that.
    - Asymptotic otherwise: T sqrt((N - 1) / N) is normal, N = m + n.

    The two-sided p-value is twice the smaller one-sided p-value. At the limits the one-sided p-values reach half of 1 -
    confidence (Chan and Zhang), so the limits exclude equality exactly if p < 1 - confidence, for both kinds. Because
    the exact p-value jumps where tables change their order, it may cross this value more than once in a narrow range
    (Röhmel); the outermost crossing is the limit, but never beyond equality if the test rejects equality.

    Exchanging the groups, or counting the complement, mirrors every number exactly. An exact p-value takes about 0.03
    ms, a limit 0.4 ms; they are computed when asked for, once.

    Parameters
    ----------
    yes_a, n_a, yes_b, n_b
        The number of people counted in each group, and the group's size. With survey weights, pass effective sizes and
        effective counts; fractional counts are compared asymptotically.
    kind
        The difference, rate of a minus rate of b, or the ratio, rate of a over rate of b.

    References
    ----------
    O. S. Miettinen and M. Nurminen (1985), Comparative analysis of two rates, Statistics in Medicine 4. I. S. F. Chan
    and Z. Zhang (1999), Test-based exact confidence intervals for the difference of two binomial proportions,
    Biometrics 55. R. L. Berger and D. D. Boos (1994), P values maximized over a confidence set for the nuisance
    parameter, Journal of the American Statistical Association 89. J. Röhmel (2005), Problems with existing procedures
    to calculate exact unconditional p-values for non-inferiority/superiority and confidence intervals for two binomials
    and how to resolve them, Biometrical Journal 47. W. Hoeffding (1956), On the distribution of the number of successes
    in independent trials, Annals of Mathematical Statistics 27.

    Examples
    --------
    >>> found = compare_rates(10, 80, 100, 2000)
    >>> [round(float(number), 4) for number in (found.value, found.p_value, *found.limits(0.95))]
    [0.075, 0.0126, 0.0139, 0.162]
    >>> ratio = compare_rates([10, 100], [80, 800], 100, 2000, "ratio")
    >>> ratio.limits(0.95).low.round(3), ratio.method.tolist()
    (array([1.264, 1.919]), ['exact', 'asymptotic'])
    """
    require_choice("kind", kind, ("difference", "ratio"))
    parts = np.broadcast_arrays(*(_floats(part) for part in (yes_a, n_a, yes_b, n_b)))
    x, m, y, n = (_whole_if_near(part) for part in parts)
    for yes, people in ((x, m), (y, n)):
        wrong = (yes < 0) | (yes > people * (1.0 + _ROUNDING))
        if wrong.any():
            raise EvenhandError(
                "the people counted must be some of the group; got {yes} of {people}.",
                yes=float(yes[wrong][0]),
                people=float(people[wrong][0]),
            )
    return RateComparison(np.minimum(x, m), m, np.minimum(y, n), n, kind)


def _floats(values: ArrayLike) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def _whole_if_near(counts: FloatArray) -> FloatArray:
    """Return counts rounded to whole numbers where they differ from them only by rounding error."""
    whole = np.rint(counts)
    return np.where(np.abs(counts - whole) <= _ROUNDING * np.maximum(1.0, whole), whole, counts)


def _flat(pairs: RateComparison) -> RateComparison:
    """Return the pairs flattened to one dimension."""
    return pairs.only(np.ones(pairs.n_a.shape, dtype=np.bool_))


def _least_chance(groups: FloatArray, position: float, is_ratio: bool) -> FloatArray:
    """Return a lower bound of one-sided p-values: how likely both groups are as extreme at the pooled rate."""
    from scipy.special import betainc

    from evenhand.stats.two_rates.kernels import null_rates

    x, m, y, n = groups.T
    p, q = null_rates(groups, position, is_ratio)
    with np.errstate(all="ignore"):
        first = np.where(x > 0, betainc(x, m - x + 1.0, p), 1.0)
        second = np.where(y < n, betainc(n - y, y + 1.0, 1.0 - q), 1.0)
    return np.asarray(np.nan_to_num(first * second))


def _shrinkage(groups: FloatArray) -> FloatArray:
    """Return sqrt((N - 1) / N), which is nearly 0 for a single person."""
    size = groups[:, 1] + groups[:, 3]
    return np.sqrt(np.maximum(size - 1.0, 1e-12) / size)
