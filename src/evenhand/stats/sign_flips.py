"""Sign-flip test of paired differences, and the matching interval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError
from evenhand.stats.intervals import clopper_pearson, t_quantile
from evenhand.stats.types import FloatArray, IntArray

_GRID = 2**15
"""The most steps of the sum of all sizes for which the distribution is computed in every step."""
_FEW = 40
"""Up to so many differences without a common unit are rounded to the grid; the sum of more is nearly continuous."""
_NODES, _FARTHEST = 400, 12.0  # of the integral, in standard deviations of the sum
_BLOCK = 10_000
_LEAST_P = 1e-12
"""Smaller p-values are lost in rounding."""
_UNITS = 720
"""Differences of means of whole numbers are multiples of 1/720 with up to six, eight, nine or ten repetitions."""
_MARGIN = 1e-9
"""The share of the mean by which limits at least exclude 0 where the test rejects."""


@dataclass(frozen=True, eq=False)
class PairedComparison:
    r"""The mean of paired differences, with a sign-flip test and matching limits.

    If the two sides of a pair are exchangeable, every difference is equally likely to have the other sign. The test
    rejects if an absolute sum of the differences as large as observed is rare among all 2^n choices of signs: p =
    P(abs(S) >= abs(s)), S = sum of e_i abs(d_i), the e_i independent and -1 or 1 with equal probability. It follows
    from the characteristic function of S, the product of cos(abs(d_i) t): exactly, if the sizes abs(d_i) are multiples
    of a unit, as for shares; otherwise by numerical integration (Gil-Pelaez). No random numbers are used. For
    differences of -1, 0 and 1 it is McNemar's exact test.

    The limits are Student's, but the limit nearer to 0 is moved to 0 where test and limits would disagree, so the
    limits exclude 0 exactly if p < alpha. If there are so few nonzero differences m that the test cannot reject, 2^(1 -
    m) >= alpha, or if all differences are equal, the limits are the limits of bounded differences, -R u(fewer) and R
    u(more), with the exact upper limits u of the shares of negative and of positive differences and the largest
    possible difference R.

    Parameters
    ----------
    differences : (pairs,) the differences.
    largest : the largest possible difference.

    References
    ----------
    R. A. Fisher (1935), The Design of Experiments, section 21. Q. McNemar (1947), Note on the sampling error of the
    difference between correlated proportions, Psychometrika 12. J. Gil-Pelaez (1951), Note on
    the inversion theorem, Biometrika 38. A. Janssen (1999), Nonparametric symmetry tests for statistical functionals,
    Mathematical Methods of Statistics 8.

    Examples
    --------
    >>> one_way = PairedComparison(np.array([1.0] * 7 + [-1.0] + [0.0] * 13), largest=1.0)
    >>> round(one_way.p_value, 6)  # McNemar's exact test of 7 against 1: 2 (1 + 8) / 2^8
    0.070313
    >>> [round(limit, 3) for limit in one_way.limits(0.95)]
    [0.0, 0.541]
    """

    differences: FloatArray
    largest: float

    def __post_init__(self) -> None:
        if self.differences.ndim != 1 or not self.differences.size or not np.isfinite(self.differences).all():
            raise EvenhandError("`differences` must be finite numbers, at least one.")

    @property
    def mean(self) -> float:
        """The mean difference."""
        return float(self.differences.mean())

    @cached_property
    def stderr(self) -> float:
        """The standard error of the mean; nan for a single pair."""
        n = len(self.differences)
        return float(self.differences.std(ddof=1)) / sqrt(n) if n > 1 else nan

    @cached_property
    def p_value(self) -> float:
        """The two-sided p-value of the null of no difference."""
        p = _p_value(self.differences)
        return min(max(p, _LEAST_P, self._least_p), 1.0)

    @property
    def _least_p(self) -> float:
        """The p-value if all nonzero differences had the same sign."""
        return float(2.0 ** (1 - min(int(np.count_nonzero(self.differences)), 50)))

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return the limits of the mean difference, which exclude 0 exactly if the p-value is below 1 - confidence."""
        low, high = self._student(confidence) if self._least_p < 1.0 - confidence else (-inf, inf)
        if not high - low < inf or high == low:
            low, high = self._bounded(confidence)
        if self.p_value >= 1.0 - confidence:
            low, high = min(low, 0.0), max(high, 0.0)
        elif self.mean > 0:
            low = max(low, _MARGIN * self.mean)
        else:
            high = min(high, _MARGIN * self.mean)
        return max(low, -self.largest) + 0.0, min(high, self.largest) + 0.0  # no negative zero

    def _student(self, confidence: float) -> tuple[float, float]:
        half = float(t_quantile(len(self.differences) - 1, confidence)) * self.stderr
        return self.mean - half, self.mean + half

    def _bounded(self, confidence: float) -> tuple[float, float]:
        n = len(self.differences)
        shares = np.array([(self.differences < 0).mean(), (self.differences > 0).mean()])
        fewer, more = clopper_pearson(shares, n, confidence).high
        return -self.largest * float(fewer), self.largest * float(more)


def _p_value(differences: FloatArray) -> float:
    """Return P(abs(S) >= abs(s)) for the sum S of the differences with random signs."""
    steps = _in_steps(differences)
    if steps is None:
        return _by_integral(np.abs(differences), abs(float(differences.sum())))
    return float(_tails(np.abs(steps))[abs(int(steps.sum()))])


def _in_steps(differences: FloatArray) -> IntArray | None:
    """Return the differences as multiples of a unit, rounding few; None for many differences without a unit."""
    whole: IntArray = np.rint(differences * _UNITS).astype(np.int64)
    if np.abs(differences * _UNITS - whole).max() < 1e-9 * _UNITS:
        unit = int(np.gcd.reduce(np.abs(whole))) or 1
        if np.abs(whole).sum() // unit <= _GRID:
            return np.asarray(whole // unit)
    if len(differences) > _FEW:
        return None
    return np.asarray(np.rint(differences / np.abs(differences).sum() * _GRID), dtype=np.int64)


def _tails(sizes: IntArray) -> FloatArray:
    """Return P(abs(S) >= s) for s = 0, 1, ... and the sum S of integer sizes with random signs."""
    total = int(sizes.sum())
    values, counts = np.unique(sizes[sizes > 0], return_counts=True)
    quarter = total // 2 + 1  # of the circle; the transform is f(pi - t) = f(t), or -f(t) if the total is odd
    angle = np.pi / (2 * quarter) * np.arange(quarter + 1)
    half = np.ones_like(angle)
    for value, number in zip(values.tolist(), counts.tolist(), strict=True):
        half *= np.cos(angle * value) ** number
    transform = np.concatenate([half, (-1) ** (total % 2) * half[-2::-1]])
    mass = np.maximum(np.fft.irfft(transform, 4 * quarter), 0.0)
    by_size = mass[: total + 1].copy()
    by_size[1:] += mass[: -total - 1 : -1]
    return np.asarray(np.cumsum(by_size[::-1])[::-1])


def _by_integral(sizes: FloatArray, total: float) -> float:
    """Return P(abs(S) >= total) by integrating sin(total t) / t prod cos(size t) over t > 0."""
    step = _FARTHEST / _NODES / float(np.sqrt((sizes**2).sum()))
    nodes = step * np.arange(1, _NODES + 1)
    transform = np.ones(_NODES)
    for block in np.array_split(sizes, -(-len(sizes) // _BLOCK)):
        transform *= np.cos(np.multiply.outer(nodes, block)).prod(axis=1)
    return float(1.0 - 2.0 / np.pi * (step * (np.sin(total * nodes) / nodes * transform).sum() + total * step / 2.0))


def compare_pairs(differences: ArrayLike, largest: float = inf) -> PairedComparison:
    """Return the comparison of paired differences; the default largest difference is the largest observed one."""
    values = np.asarray(differences, dtype=np.float64)
    seen = float(np.abs(values).max(initial=0.0))
    return PairedComparison(values, max(seen, largest) if largest < inf else seen)
