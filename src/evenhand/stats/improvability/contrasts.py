"""P-values of contrasts of group values, at all margins from the same draws.

Every component of the test is of the form T(x) = c + x s > 0, with c and s linear in the group values and x a function
of the margin delta. The centred bootstrap p-value (1 + #(T* - T >= T)) / (J + 1) asks for the draws with
x (s* - 2 s) >= -(c* - 2 c): for each draw that holds on one side of one point, so sorting these points once gives the
p-values at any number of margins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.errors import ConfigError
from evenhand.stats.improvability.resampling import ValueDraws
from evenhand.stats.types import FloatArray

_TIE = 1e-11  # relative: sums in another order differ by less


@dataclass(frozen=True)
class Contrast:
    """T(x) = sum constant F + x sum slope F over the values F of groups and algorithms, for one utility.

    Attributes
    ----------
    utility
        Which of the K utilities.
    constant, slope
        (G + 1, 2) the coefficients of the values; the last group is everyone.

    Examples
    --------
    >>> Contrast(0, np.array([[0.0, 1.0]]), np.array([[-1.0, 0.0]])).at(np.array([[[5.0, 6.0]]]), 1.1)
    array(0.5)
    """

    utility: int
    constant: FloatArray
    slope: FloatArray

    def parts(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return c and s of values (..., G + 1, K, 2)."""
        own = values[..., self.utility, :]
        return _weighted(own, self.constant), _weighted(own, self.slope)

    def at(self, values: FloatArray, x: float | FloatArray) -> FloatArray:
        """Return T(x) of values (..., G + 1, K, 2)."""
        constant, slope = self.parts(values)
        return np.asarray(constant + x * slope)

    def variance(self, spread: FloatArray, x: FloatArray) -> FloatArray:
        """Return (..., D) the variance of T(x) from covariances (..., G + 1, K, 2, 2); groups are independent."""
        own = spread[..., self.utility, :, :]
        used = (self.constant != 0).any(axis=1) | (self.slope != 0).any(axis=1)
        total = np.zeros((*own.shape[:-3], x.size))
        for g in np.flatnonzero(used):
            weights = self.constant[g] + x[:, np.newaxis] * self.slope[g]
            total += np.einsum("...st,ds,dt->...d", own[..., g, :, :], weights, weights)
        return total


def p_values(draws: ValueDraws, contrast: Contrast, x: FloatArray) -> FloatArray:
    """Return (D,) the centred bootstrap p-values of T(x) <= 0 against T(x) > 0.

    A resample in which the contrast is not defined counts against rejection; an estimate that is not defined gives 1.

    Parameters
    ----------
    draws
        The values of sample and resamples.
    contrast
        T(x).
    x
        (D,) the points, in any order.

    References
    ----------
    P. Hall and S. R. Wilson (1991), Two guidelines for bootstrap hypothesis testing, Biometrics 47.

    Examples
    --------
    >>> values = np.array([1.0, 1.2, 1.5, 2.1, np.nan]).reshape(5, 1, 1, 1) * np.array([0.0, 1.0])
    >>> draws = ValueDraws(np.array([[[0.0, 1.0]]]), values, None, None, 9, 9, "cells")
    >>> gain = Contrast(0, np.array([[0.0, 1.0]]), np.array([[-1.0, 0.0]]))
    >>> p_values(draws, gain, np.array([1.0]))
    array([0.5])
    """
    c, s = contrast.parts(draws.estimate)
    drawn_c, drawn_s = contrast.parts(draws.values)
    size = np.abs(draws.estimate[:, contrast.utility]) * (np.abs(contrast.constant) + np.abs(contrast.slope))
    tie = _TIE * float(np.nansum(size))
    return share_reaching(drawn_s - 2 * s, drawn_c - 2 * c + tie, x)


def squared_p_values(draws: ValueDraws, status_quo: Contrast, candidate: Contrast, x: FloatArray) -> FloatArray:
    """Return (D,) the published p-values of x² gap0² - gap1² <= 0, with the gaps given as contrasts at x = 0.

    Non-regular: where a gap is near 0 its square is not near normal, and the test rejects a true null too often for
    x < 1. It is here to reproduce published results.

    References
    ----------
    Auerbach, Liang, Tabord-Meehan and Okumura (2024), section 3.2.

    Examples
    --------
    >>> values = np.array([[[3.0, 1.0]], [[1.0, 1.0]]])
    >>> draws = ValueDraws(values, np.stack([values, values * 1.5, values * 0.5]), None, None, 9, 9, "cells")
    >>> between = [[1.0, 0.0], [-1.0, 0.0]]
    >>> gap0, gap1 = Contrast(0, np.array(between), np.zeros((2, 2))), Contrast(0, np.fliplr(between), np.zeros((2, 2)))
    >>> squared_p_values(draws, gap0, gap1, np.array([1.0, 0.1]))
    array([0.5, 0.5])
    """
    old, new = (float(gap.parts(draws.estimate)[0]) ** 2 for gap in (status_quo, candidate))
    drawn_old, drawn_new = (gap.parts(draws.values)[0] ** 2 for gap in (status_quo, candidate))
    return share_reaching(drawn_old - 2 * old, 2 * new - drawn_new + _TIE * (old + new), x**2)


def studentised_p_values(draws: ValueDraws, contrast: Contrast, x: FloatArray) -> FloatArray:
    """Return (D,) the p-values of `p_values` with each resample's T* - T divided by its own standard error.

    #((T* - T) / se* >= T / se): each resample's error is judged by that resample's own spread.

    References
    ----------
    A. C. Davison and D. V. Hinkley (1997), Bootstrap Methods and their Application, section 4.4.

    Examples
    --------
    >>> values = np.array([1.0, 1.2, 1.5, 2.1]).reshape(4, 1, 1, 1) * np.array([0.0, 1.0])
    >>> spread = np.ones((1, 1, 2, 2))
    >>> draws = ValueDraws(np.array([[[0.0, 1.0]]]), values, spread, np.stack([spread] * 4), 9, 9, "cells")
    >>> gain = Contrast(0, np.array([[0.0, 1.0]]), np.array([[0.0, 0.0]]))
    >>> studentised_p_values(draws, gain, np.array([1.0]))
    array([0.4])
    """
    if draws.spread is None or draws.spreads is None:
        raise ConfigError("a studentised test needs draws with their spread; draw them with `studentised=True`.")
    estimate = contrast.at(draws.estimate, x)
    spread = np.sqrt(contrast.variance(draws.spread, x))
    c, s = contrast.parts(draws.values)
    reached = np.zeros(x.size)
    with np.errstate(all="ignore"):
        for d in range(x.size):  # one margin at a time: memory stays O(J)
            error = c + x[d] * s - estimate[d]
            own = np.sqrt(contrast.variance(draws.spreads, x[d : d + 1])[:, 0])
            tie = _TIE * np.abs(error).max(initial=0.0, where=~np.isnan(error)) * spread[d]
            reached[d] = np.count_nonzero(~(error * spread[d] < estimate[d] * own - tie))
    return np.where(np.isnan(estimate), 1.0, (1.0 + reached) / (1.0 + len(c)))


def share_reaching(a: FloatArray, b: FloatArray, x: FloatArray) -> FloatArray:
    """Return (D,) (1 + #(a x + b >= 0)) / (J + 1) over J draws; a draw that is nan is counted.

    Examples
    --------
    >>> share_reaching(np.array([1.0, -1.0, 0.0, np.nan]), np.array([-2.0, 1.0, -1.0, 0.0]), np.array([0.5, 3.0]))
    array([0.6, 0.6])
    """
    unknown = np.isnan(a) | np.isnan(b)
    rising, falling = ~unknown & (a > 0), ~unknown & (a < 0)
    always = np.count_nonzero(unknown) + np.count_nonzero(~unknown & (a == 0) & (b >= 0))
    above = np.sort(-b[rising] / a[rising])
    below = np.sort(-b[falling] / a[falling])
    reached = always + np.searchsorted(above, x, side="right") + below.size - np.searchsorted(below, x, side="left")
    return np.asarray((1.0 + reached) / (1.0 + a.size), dtype=np.float64)


def _weighted(own: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted sum over groups and algorithms, without those of weight 0, which may be nan."""
    at = np.nonzero(weights)
    return np.asarray((own[..., at[0], at[1]] * weights[at]).sum(axis=-1))
