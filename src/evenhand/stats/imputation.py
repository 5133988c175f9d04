"""Rubin's rules, which pool the same analysis of several imputed data sets into one interval.

Reference: D. B. Rubin (1987), Multiple Imputation for Nonresponse in Surveys. The variance of an estimate is the mean
of the variances within the imputed sets, W, plus (1 + 1/M) times the variance between their M estimates, B. The degrees
of freedom follow J. Barnard and D. B. Rubin (1999), Small-sample degrees of freedom with multiple imputation,
Biometrika 86.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError
from evenhand.stats.intervals import t_quantile
from evenhand.stats.types import FloatArray


class Pooled(NamedTuple):
    """A pooled estimate with its interval.

    Attributes
    ----------
    value
        The mean of the estimates.
    low, high
        The limits of the pooled estimate.
    share
        The share of the variance due to imputation, (1 + 1/M) B / T.
    df
        Degrees of freedom.
    """

    value: float
    low: float
    high: float
    share: float
    df: float


def pooled(
    values: ArrayLike, lows: ArrayLike, highs: ArrayLike, df: float, confidence: float = 0.95, *, times: float = 1.0
) -> Pooled:
    """Return one estimate and interval pooled over several imputed data sets.

    Each side has its own within variance, ((value - low) / t)² and ((high - value) / t)² with t the quantile of `df`
    (the variances implied by the limits: MOVER), so that asymmetric limits stay asymmetric.

    Parameters
    ----------
    values, lows, highs
        The estimate and its limits in every imputed data set, on an approximately normal scale.
    df
        Degrees of freedom of the analysis of one data set.
    confidence
        Two-sided confidence of all limits.
    times
        The ratio of the limits' width to their width at this confidence, for simultaneous limits of several numbers.

    Examples
    --------
    >>> found = pooled([1.0, 1.2, 0.8], [0.6, 0.8, 0.4], [1.4, 1.6, 1.2], df=100)
    >>> round(found.value, 3), round(found.low, 3), round(found.share, 3)
    (1.0, 0.23, 0.567)
    """
    q, low, high = (np.asarray(x, dtype=np.float64) for x in (values, lows, highs))
    if not (q.shape == low.shape == high.shape and q.ndim == 1 and q.size >= 2):
        raise EvenhandError(
            "Rubin's rules need at least 2 imputed data sets; got estimates of shape {shape}.", shape=q.shape
        )
    unit = times * float(t_quantile(df, confidence))
    centre, between = float(q.mean()), float(q.var(ddof=1)) * (1.0 + 1.0 / q.size)
    within = [float(np.mean((side / unit) ** 2)) for side in (q - low, high - q)]
    total = between + float(np.mean(within))
    share = between / total if total > 0 else 0.0
    freedom = _freedom(share, q.size, df)
    spread = times * float(t_quantile(freedom, confidence))
    down, up = (spread * float(np.sqrt(side + between)) for side in within)
    return Pooled(centre, centre - down, centre + up, share, freedom)


def _freedom(share: float, imputations: int, complete: float) -> float:
    """Return the degrees of freedom of Barnard and Rubin."""
    observed = (complete + 1.0) / (complete + 3.0) * complete * (1.0 - share)
    if share <= 0.0:
        return observed
    old = (imputations - 1) / share**2
    return float(1.0 / (1.0 / old + 1.0 / observed)) if observed > 0 else float(old)


def drawn_rates(rates: ArrayLike, errors: ArrayLike, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return (draws, rates) plausible true rates, log-normal around `rates` so that they stay above 0.

    The standard error on the log scale is error / rate; a rate with a standard error of 0 stays fixed.

    Examples
    --------
    >>> drawn_rates([10.0, 20.0], [0.0, 2.0], 3, np.random.default_rng(0)).round(2)
    array([[10.  , 19.74],
           [10.  , 20.21],
           [10.  , 20.74]])
    """
    centre, error = np.asarray(rates, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if not ((error >= 0) & np.isfinite(error)).all():
        raise EvenhandError(
            "standard errors must be 0 or more and finite; got {flat:g}.", flat=error[~(error >= 0)].flat[0]
        )
    return np.asarray(centre * np.exp(error / centre * rng.standard_normal((draws, *centre.shape))))
