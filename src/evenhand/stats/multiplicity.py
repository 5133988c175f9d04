"""Multiple tests: p-values adjusted for many tests, and for two opposite directions of one test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import require_choice
from evenhand.stats.types import FloatArray

Adjustment = Literal["bonferroni", "holm", "benjamini_hochberg"]


def adjusted_p(p_values: ArrayLike, method: Adjustment = "holm") -> FloatArray:
    """Return a family of p-values adjusted for multiple testing.

    Bonferroni: min(1, m p). Holm: in increasing order, the largest (m - k + 1) p_k up to this p-value. Both keep the
    probability of any false rejection below alpha under any dependence. Benjamini and Hochberg: in increasing order,
    the smallest m p_k / k from this p-value on; on average at most a share alpha of the rejections is false
    (independent or positively dependent tests). The family consists of the defined p-values: nan stays nan and does not
    count.

    References
    ----------
    S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6.
    Y. Benjamini and Y. Hochberg (1995), Controlling the false discovery rate, Journal of the Royal Statistical
    Society B 57.

    Examples
    --------
    >>> adjusted_p([0.01, 0.04, 0.03]), adjusted_p([0.01, 0.04, 0.03], "bonferroni")
    (array([0.03, 0.06, 0.06]), array([0.03, 0.12, 0.09]))
    >>> adjusted_p([0.01, 0.04, 0.03], "benjamini_hochberg")
    array([0.03, 0.04, 0.04])
    """
    require_choice("method", method, ["bonferroni", "holm", "benjamini_hochberg"])
    p = np.asarray(p_values, dtype=np.float64)
    defined = np.flatnonzero(~np.isnan(p))
    adjusted, m = np.full(p.shape, np.nan), defined.size
    order = defined[np.argsort(p[defined], kind="stable")]
    if method == "bonferroni":
        steps = m * p[order]
    elif method == "holm":
        steps = np.maximum.accumulate((m - np.arange(m)) * p[order])
    else:
        steps = np.minimum.accumulate((m / np.arange(1, m + 1) * p[order])[::-1])[::-1]
    adjusted[order] = np.minimum(1.0, steps)
    return adjusted


def adjusted_in_tables(tables: Sequence[ArrayLike]) -> list[FloatArray]:
    """Return the p-values of several tables, adjusted for selecting tables and then rows within them.

    A table is represented by its Simes p-value, the smallest Benjamini-Hochberg p-value of its rows. Tables are
    selected from these p-values by Benjamini and Hochberg at level q; rows of a selected table are selected by
    Benjamini and Hochberg at level q times the share of selected tables. On average over the selected tables at most a
    share q of the selected rows is false; if all nulls are true, any row is selected with probability at most q. The
    adjusted p-value of a row is the smallest q at which it is selected. This is proved for independent and for
    positively dependent tests, and simulated for all pairs of groups (`benchmarks/coverage/report_level.py`). A table
    without a defined p-value does not count.

    References
    ----------
    Y. Benjamini and M. Bogomolov (2014), Selective inference on multiple families of hypotheses, Journal of the Royal
    Statistical Society B 76. R. J. Simes (1986), An improved Bonferroni procedure, Biometrika 73.

    Examples
    --------
    >>> adjusted_in_tables([[0.001, 0.02, 0.8], [0.3, 0.6]])
    [array([0.006, 0.06 , 0.8  ]), array([0.6, 0.6])]
    """
    within = [adjusted_p(table, "benjamini_hochberg") for table in tables]
    simes = np.array([float(np.nanmin(p)) if np.isfinite(p).any() else np.nan for p in within])
    least = np.sort(adjusted_p(simes, "benjamini_hochberg"))  # the smallest q at which this many tables are chosen
    least = least[~np.isnan(least)]
    chosen = np.arange(1, least.size + 1)
    adjusted = []
    for p in within:
        if not least.size:
            adjusted.append(p)
            continue
        by_number = np.maximum(least, p[:, np.newaxis] * least.size / chosen)
        adjusted.append(np.minimum(1.0, by_number.min(axis=1)))
    return adjusted


# Two directions of one test -------------------------------------------------------------------------------------------


_POINTS = np.concatenate([np.linspace(0.0, 1.0, 21), np.linspace(1.1, 3.0, 20), np.linspace(3.25, 6.0, 12)])
_CHUNK = 512
_ONE = 1.0 - 1e-9


def calibrated_p(p: ArrayLike, correlation: ArrayLike) -> FloatArray:
    """Return the calibrated p-value of the smaller of two opposite directions' p-values p, between p and 2 p.

    The gap shrinks, abs(gap_1) < c abs(gap_0), if A = c gap_0 - gap_1 and B = c gap_0 + gap_1 are both positive or both
    negative; the sign of gap_0 is unknown beforehand. Testing both directions and keeping the smaller p-value p rejects
    a true null too often, at most in 2 p of all samples. The exact rate depends on the correlation of A and B: in units
    of standard errors, (A, B) is normal around a point (a, b) of the null, a >= 0 >= b or the reverse, and

        P(p' <= p) = P(A > k, B > k) + P(A < -k, B < -k),   k = z(1 - p).

    Its supremum over the null is the calibrated p-value. It lies on the boundary a = 0: at b = infinity, where it
    equals p, or at some finite b where A and B move together. The second direction therefore costs nothing unless A and
    B are highly correlated.

    Parameters
    ----------
    p
        The smaller p-value. The p-value of a direction is the larger p-value of its two parts.
    correlation
        The correlation of the two parts, A and B; nan counts as 1, the least favourable.

    Examples
    --------
    >>> calibrated_p([0.05, 0.05, 0.05], [0.5, 0.9, 1.0]).round(3)
    array([0.05 , 0.064, 0.1  ])
    """
    smaller, rho = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(correlation, dtype=np.float64))
    flat, corr = smaller.ravel(), np.clip(np.nan_to_num(rho.ravel(), nan=1.0), -_ONE, _ONE)
    chunks = [
        _supremum(flat[start : start + _CHUNK], corr[start : start + _CHUNK]) for start in range(0, flat.size, _CHUNK)
    ]
    return np.concatenate([np.empty(0), *chunks]).reshape(smaller.shape)


def _supremum(p: FloatArray, rho: FloatArray) -> FloatArray:
    from scipy.special import ndtri

    k = -ndtri(np.clip(p, 1e-300, 0.5))[:, np.newaxis]
    b, corr = _POINTS[np.newaxis], rho[:, np.newaxis]
    inside = (_both_above(k, k - b, corr) + _both_above(k, k + b, corr)).max(axis=1)
    return np.asarray(np.where(p >= 0.5, np.minimum(1.0, 2 * p), np.clip(inside, p, 2 * p)))


def _both_above(h: FloatArray, k: FloatArray, rho: FloatArray) -> FloatArray:
    """Return P(X > h, Y > k) for correlated standard normals X and Y.

    References
    ----------
    D. B. Owen (1956), Tables for computing bivariate normal probabilities, Annals of Mathematical Statistics 27.
    """
    from scipy.special import ndtr, owens_t

    x, y = (np.where(np.abs(z) < 1e-12, 1e-12, z) for z in (-h, -k))  # the quotients are undefined at 0
    root = np.sqrt((1.0 - rho) * (1.0 + rho))
    parts = owens_t(x, (y - rho * x) / (x * root)) + owens_t(y, (x - rho * y) / (y * root))
    return np.asarray((ndtr(x) + ndtr(y)) / 2.0 - parts - np.where(x * y < 0, 0.5, 0.0))
