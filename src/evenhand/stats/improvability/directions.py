"""A test against two opposite directions at once, where the data do not say beforehand which one holds.

That the gap shrinks, abs(gap_1) < c abs(gap_0), is A > 0 and B > 0, or A < 0 and B < 0, for A = c gap_0 - gap_1 and
B = c gap_0 + gap_1: the sign of gap_0 is not known. Testing both directions and keeping the smaller p-value p rejects a
true null too often, at most in 2 p of all samples. How often exactly depends on the correlation of A and B: with both
in standard errors, (A, B) is normal around a point (a, b) of the null, a >= 0 >= b or the reverse, and

    P(p' <= p) = P(A > k, B > k) + P(A < -k, B < -k),   k = z(1 - p).

Its supremum over the null is the calibrated p-value. It lies on the boundary a = 0: at b = infinity, where it is p
itself, or at some finite b where A and B go together. So nothing is paid for the second direction unless they are
highly correlated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats.types import FloatArray

_POINTS = np.concatenate([np.linspace(0.0, 1.0, 21), np.linspace(1.1, 3.0, 20), np.linspace(3.25, 6.0, 12)])
_CHUNK = 512
_ONE = 1.0 - 1e-9


def calibrated_p(p: ArrayLike, correlation: ArrayLike) -> FloatArray:
    """Return the p-value of the smaller of two opposite directions' p-values: at least it, and at most twice it.

    Parameters
    ----------
    p
        The smaller p-value. That of a direction is the larger of those of its two parts.
    correlation
        The correlation of the two parts, A and B; nan counts as 1, the least favourable.

    Examples
    --------
    >>> calibrated_p([0.05, 0.05, 0.05], [0.5, 0.9, 1.0]).round(3)
    array([0.05 , 0.064, 0.1  ])
    """
    smaller, rho = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(correlation, dtype=np.float64))
    flat, corr = smaller.ravel(), np.clip(np.nan_to_num(rho.ravel(), nan=1.0), -_ONE, _ONE)
    found = [_supremum(flat[at : at + _CHUNK], corr[at : at + _CHUNK]) for at in range(0, flat.size, _CHUNK)]
    return np.concatenate([np.empty(0), *found]).reshape(smaller.shape)


def critical_value(alpha: float, correlation: float) -> float:
    """Return the critical value of a test of level alpha against two directions, in standard errors.

    Examples
    --------
    >>> [round(critical_value(0.10, rho), 2) for rho in (0.5, 0.99)]
    [1.28, 1.59]
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    at = brentq(lambda p: float(calibrated_p(p, correlation)) - alpha, alpha / 2.1, alpha)
    return float(-ndtri(at))


def _supremum(p: FloatArray, rho: FloatArray) -> FloatArray:
    from scipy.special import ndtri

    k = -ndtri(np.clip(p, 1e-300, 0.5))[:, np.newaxis]
    b, corr = _POINTS[np.newaxis], rho[:, np.newaxis]
    inside = (_both_above(k, k - b, corr) + _both_above(k, k + b, corr)).max(axis=1)
    return np.asarray(np.where(p >= 0.5, np.minimum(1.0, 2 * p), np.clip(inside, p, 2 * p)))


def _both_above(h: FloatArray, k: FloatArray, rho: FloatArray) -> FloatArray:
    """Return P(X > h, Y > k) of standard normals with a correlation.

    References
    ----------
    D. B. Owen (1956), Tables for computing bivariate normal probabilities, Annals of Mathematical Statistics 27.
    """
    from scipy.special import ndtr, owens_t

    x, y = (np.where(np.abs(z) < 1e-12, 1e-12, z) for z in (-h, -k))  # at 0 the quotients are not defined
    root = np.sqrt((1.0 - rho) * (1.0 + rho))
    parts = owens_t(x, (y - rho * x) / (x * root)) + owens_t(y, (x - rho * y) / (y * root))
    return np.asarray((ndtr(x) + ndtr(y)) / 2.0 - parts - np.where(x * y < 0, 0.5, 0.0))
