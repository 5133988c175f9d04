"""The distribution of a studentised statistic under random assignment: drawn, or approximated by moments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from evenhand.stats.types import FloatArray

_FARTHEST = 3.0  # the approximation is used while kurtosis t⁴ is below
_ROUNDING = 1e-9

Ends = tuple[float, float]


class Reference(Protocol):
    """A reference distribution: p-values of a statistic, and the matching quantiles.

    On the side of equality both follow the distribution. On the other side of the estimate they are at least as
    cautious as the normal distribution, because where few people cause the variance, permutations are too short on one
    side.
    """

    @property
    def draws(self) -> int:
        """The number of draws; 0 for an approximation."""

    @property
    def smallest_p(self) -> float:
        """The smallest p-value."""

    def p_value(self, t: float, observed: float) -> float:
        """Return twice the smaller tail beyond t; `observed` is the statistic for equality."""

    def ends(self, alpha: float, observed: float) -> Ends:
        """Return the low and high t outside of which p < alpha."""

    def mirrored(self) -> Reference:
        """Return the reference distribution of -t."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A distribution given by sorted draws, in single precision so that ties are recognised.

    Attributes
    ----------
    values
        The draws.
    weights
        The weights of the draws, if some are drawn more often than by chance; None for weights of 1.
    own
        The weight of the observed assignment.

    Examples
    --------
    >>> drawn = Drawn(np.arange(-500, 500, dtype=np.float32))
    >>> round(drawn.p_value(490.0, 490.0), 3), drawn.ends(0.05, 490.0)
    (0.022, (-476.0, 475.0))
    """

    values: npt.NDArray[np.float32]
    weights: FloatArray | None = None
    own: float = 1.0

    @property
    def draws(self) -> int:
        """The number of draws."""
        return self.values.size

    @property
    def smallest_p(self) -> float:
        """The p-value of an observed t beyond all draws; 2 / (draws + 1) if weights are equal."""
        return min(1.0, 2.0 * self.own / (self.draws + 1))

    @cached_property
    def _below(self) -> FloatArray:
        """(draws + 1,) the tail of the lowest 0, 1, ... draws, including the observed assignment's weight."""
        weights = np.ones(self.draws) if self.weights is None else self.weights
        return (self.own + np.append(0.0, np.cumsum(weights))) / (self.draws + 1)

    @cached_property
    def _above(self) -> FloatArray:
        """(draws + 1,) the tail of the highest 0, 1, ... draws, including the observed assignment's weight."""
        weights = np.ones(self.draws) if self.weights is None else self.weights[::-1]
        return (self.own + np.append(0.0, np.cumsum(weights))) / (self.draws + 1)

    def p_value(self, t: float, observed: float) -> float:
        """Return twice the smaller tail: (own weight + weights of draws beyond t) / (1 + draws)."""
        as_drawn = np.float32(t)
        below = self._below[int(np.searchsorted(self.values, as_drawn, "right"))]
        above = self._above[self.draws - int(np.searchsorted(self.values, as_drawn, "left"))]
        return min(1.0, 2.0 * _near_tail(float(below), float(above), t, observed))

    def ends(self, alpha: float, observed: float) -> Ends:
        """Return the order statistics that match p < alpha; infinite if alpha is at most the smallest p-value."""
        below, above = (
            int(np.searchsorted(2.0 * tails, alpha * (1.0 - _ROUNDING))) - 1 for tails in (self._below, self._above)
        )
        if min(below, above) < 0:
            return -np.inf, np.inf
        return _cautious_ends(float(self.values[below]), float(self.values[self.draws - 1 - above]), alpha, observed)

    def mirrored(self) -> Drawn:
        """Return the distribution of -t."""
        return Drawn(-self.values[::-1], None if self.weights is None else self.weights[::-1], self.own)


@dataclass(frozen=True)
class Approximated:
    """Hall's transformation t + A t² / 3 + A² t³ / 27 + A / 6 to a normal distribution, A the numerator's skewness.

    It matches the Edgeworth expansion of a studentised mean to order 1 / sqrt(n) and increases everywhere. The
    neglected terms are of the order kurtosis t⁴; beyond t = (3 / kurtosis)^(1/4) the p-value stays constant.

    References
    ----------
    P. Hall (1992), On the removal of skewness by transformation, Journal of the Royal Statistical Society B 54.

    Examples
    --------
    >>> round(Approximated(0.0, 1e-4).p_value(1.96, 1.96), 3), round(Approximated(0.1, 1e-4).p_value(1.96, 1.96), 3)
    (0.05, 0.035)
    """

    skewness: float
    kurtosis: float

    @property
    def draws(self) -> int:
        """The number of draws, which is 0."""
        return 0

    @property
    def smallest_p(self) -> float:
        """The smallest p-value for which the approximation is used."""
        return 2.0 * max(self._tails(self._farthest)[1], self._tails(-self._farthest)[0])

    def p_value(self, t: float, observed: float) -> float:
        """Return twice the smaller tail, but at least the smallest p-value."""
        return min(1.0, max(2.0 * _near_tail(*self._tails(t), t, observed), self.smallest_p))

    def ends(self, alpha: float, observed: float) -> Ends:
        """Return the alpha / 2 quantiles of both tails; infinite if alpha is at most the smallest p-value."""
        from scipy.special import ndtri

        if alpha <= self.smallest_p:
            return -np.inf, np.inf
        low, high = (self._quantile(z) for z in (float(ndtri(alpha / 2)), -float(ndtri(alpha / 2))))
        return _cautious_ends(low, high, alpha, observed)

    def mirrored(self) -> Approximated:
        """Return the distribution of -t."""
        return Approximated(-self.skewness, self.kurtosis)

    @property
    def _farthest(self) -> float:
        return float((_FARTHEST / max(self.kurtosis, _ROUNDING)) ** 0.25)

    def _tails(self, t: float) -> Ends:
        from scipy.special import ndtr

        a = self.skewness
        z = t + a * t * t / 3 + a * a * t**3 / 27 + a / 6
        return float(ndtr(z)), float(ndtr(-z))

    def _quantile(self, z: float) -> float:
        a = self.skewness
        return float((np.cbrt(1 + a * (z - a / 6)) - 1) * 3 / a) if abs(a) > _ROUNDING else z


def _near_tail(below: float, above: float, t: float, observed: float) -> float:
    """Return the smaller tail; the tail away from equality is at least the normal tail."""
    from scipy.special import ndtr

    if observed >= 0:
        below = max(below, float(ndtr(t)))
    if observed <= 0:
        above = max(above, float(ndtr(-t)))
    return min(below, above)


def _cautious_ends(low: float, high: float, alpha: float, observed: float) -> Ends:
    """Return the ends; the end away from equality is at least the normal quantile, and neither crosses 0."""
    from scipy.special import ndtri

    z = -float(ndtri(alpha / 2))
    return min(low, -z if observed >= 0 else 0.0), max(high, z if observed <= 0 else 0.0)
