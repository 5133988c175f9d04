"""The accuracy and gap of the status quo and the candidate, with joint confidence regions.

Overall accuracy and the differences between all pairs of groups are smooth functions of means, so their bootstrap is
regular; the gap, which is the largest difference, is not smooth if groups tie. A joint band for accuracy and all
differences gives a region for accuracy and gap: if every difference lies within its limits, the largest lies between
the largest lower and the largest upper limit.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from evenhand.errors import require_share
from evenhand.stats.improvability.resampling import ValueDraws
from evenhand.stats.types import FloatArray

EIGENVALUE_LIMIT = 0.01
"""Below it the values of status quo and candidate are nearly equal, and assumption 2 of the paper is in doubt."""


def frontier_region(draws: ValueDraws, fairness: int, confidence: float, freedom: float = float("inf")) -> FloatArray:
    """Return (2, 2, 3) values and joint limits of accuracy and gap, for status quo and candidate.

    The limits are value ± q se, with se the bootstrap standard errors and q the quantile of the largest absolute
    deviation in standard errors over accuracy and all differences between groups (sup-t), converted to Student's t with
    the degrees of freedom of the least precise standard error. A resample in which no row of a group counts is treated
    as infinitely far from the estimate.

    Parameters
    ----------
    draws
        The values of the sample and the resamples; the first utility is the accuracy utility.
    fairness
        The utility of the gap.
    confidence
        The confidence of the region of one algorithm. For m algorithms together, pass 1 - (1 - confidence) / m
        (Bonferroni).
    freedom
        Degrees of freedom: `Rows.freedom`.

    References
    ----------
    J. L. Montiel Olea and M. Plagborg-Moller (2019), Simultaneous confidence bands: theory, implementation, and an
    application to SVARs, Journal of Applied Econometrics 34.

    Examples
    --------
    >>> from evenhand.stats.improvability import bootstrap_values, get_utility, make_rows
    >>> rng = np.random.default_rng(0)
    >>> group, y = np.arange(4_000) % 2, rng.integers(0, 2, 4_000)
    >>> old, new = (np.where(rng.random(4_000) < p, y, 1 - y) for p in (0.6 + 0.2 * group, 0.9))
    >>> draws = bootstrap_values(make_rows(group, y, old, new, [get_utility("classification")], names="ab"), rng=rng)
    >>> frontier_region(draws, 0, 0.95).round(2)[:, :, 0]
    array([[0.7 , 0.18],
           [0.9 , 0.02]])
    """
    require_share("confidence", confidence)
    return np.stack([_region(draws, fairness, side, confidence, freedom) for side in (0, 1)])


def _region(draws: ValueDraws, fairness: int, side: int, confidence: float, freedom: float) -> FloatArray:
    from scipy.special import ndtr, stdtrit

    pairs = list(combinations(range(draws.groups), 2))

    def parts(values: FloatArray) -> FloatArray:
        gaps = [values[..., g, fairness, side] - values[..., h, fairness, side] for g, h in pairs]
        return np.stack([values[..., -1, 0, side], *gaps], axis=-1)

    estimate, drawn = parts(draws.estimate), parts(draws.values)
    if not np.isfinite(estimate).all():
        return np.full((2, 3), np.nan)
    with np.errstate(all="ignore"):
        error = np.nanstd(drawn, axis=0)
        apart = np.abs(drawn - estimate) / error
    apart = np.where(np.isnan(drawn), np.inf, np.where(error > 0, apart, 0.0)).max(axis=1)
    quantile = float(np.quantile(apart, confidence, method="higher"))
    if freedom < 1e9 and np.isfinite(quantile):
        quantile = -float(stdtrit(max(freedom, 1.0), float(ndtr(-quantile))))
    reach = quantile * error if np.isfinite(quantile) else np.full_like(error, np.inf)
    low, high = estimate - reach, estimate + reach
    least = np.maximum(np.maximum(low[1:], -high[1:]), 0.0).max()
    most = np.maximum(np.abs(low[1:]), np.abs(high[1:])).max()
    return np.array([[estimate[0], low[0], high[0]], [np.abs(estimate[1:]).max(), least, most]])


def smallest_eigenvalue(draws: ValueDraws) -> float:
    """Return the smallest eigenvalue of the correlations between status quo and candidate values.

    The minimum is over groups and utilities. For two values the eigenvalue is 1 - abs(rho), with rho from the
    bootstrap; it is 0 if one of them is constant. Assumption 2 of Auerbach and others requires that eigenvalues stay
    away from 0. As printed, for the covariance of all nuisance parameters and of both utilities, this condition fails
    if the two utilities are equal or if weights are 1, because rows of the matrix are then equal. The eigenvalue here
    is the one that their explanation requires.

    Examples
    --------
    >>> values = np.random.default_rng(0).standard_normal((2_000, 2, 1, 1)) * [1.0, 1.0]
    >>> smallest_eigenvalue(
    ...     ValueDraws(estimate=values[0], values=values, spread=None, spreads=None, rows=9, cells=9, method="cells")
    ... ) < 1e-12
    True
    """
    pairs = draws.values[:, : draws.groups].reshape(len(draws.values), -1, 2)
    eigenvalues = []
    for number in range(pairs.shape[1]):
        defined = pairs[np.isfinite(pairs[:, number]).all(axis=1), number]
        if len(defined) < 3 or (defined.std(axis=0) == 0).any():
            eigenvalues.append(0.0)
        else:
            first, second = (defined - defined.mean(axis=0)).T
            eigenvalues.append(1.0 - abs(float(first @ second)) / float(np.sqrt((first @ first) * (second @ second))))
    return max(0.0, min(eigenvalues))
