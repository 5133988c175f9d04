"""A linear model in which every person has a level of their own, for studies with several rows a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats import regression
from evenhand.stats.correlation import person_codes, two_sided_p
from evenhand.stats.intervals import normal_quantile
from evenhand.stats.types import FloatArray, IntArray

_GRID = np.r_[0.0, np.geomspace(1e-4, 0.1, 20), np.linspace(0.15, 0.95, 17), 1 - np.geomspace(0.04, 1e-6, 12)]
"""Shares of the variance between people at which the likelihood is first looked at."""


@dataclass(frozen=True)
class RandomIntercept:
    """A fitted random-intercept model.

    Parameters
    ----------
    names, coef, covariance : terms, coefficients and their covariance.
    between, within : variances of the people's levels and of their rows.
    """

    names: tuple[str, ...]
    coef: FloatArray
    covariance: FloatArray
    between: float
    within: float

    @property
    def share(self) -> float:
        """The share of the unexplained variance that lies between people."""
        total = self.between + self.within
        return self.between / total if total > 0 else float("nan")

    def coefficients(self, confidence: float = 0.95) -> regression.Coefficients:
        """Return every coefficient with standard error, z, p-value and interval."""
        stderr = regression.roots(np.diagonal(self.covariance))
        with np.errstate(all="ignore"):
            z = self.coef / stderr
        half = normal_quantile(confidence) * stderr
        return regression.Coefficients(self.coef, stderr, np.inf, z, two_sided_p(z), self.coef - half, self.coef + half)


def random_intercept(x: ArrayLike, y: ArrayLike, names: Sequence[str], people: ArrayLike) -> RandomIntercept:
    """Fit y = X b + u_person + e, with u and e normal, by restricted maximum likelihood.

    With q = var(u) / var(e), a person's rows have covariance proportional to I + q 11', whose inverse and determinant
    are known; b and var(e) follow from q. What is left is a search in one dimension, over q / (1 + q) in [0, 1), on a
    grid and then between its points; so the fit is always found, also where no variance lies between people.

    Parameters
    ----------
    x, y, names : regressors without the intercept, what is explained, and the names of the columns.
    people : who gave each row.

    Returns
    -------
    RandomIntercept
        nan throughout when columns depend on each other, or there are fewer than two people or too few rows. Where
        everybody gave one row the two variances cannot be told apart: they are nan and the fit is least squares. A
        perfect fit has coefficients only.

    References
    ----------
    N. M. Laird and J. H. Ware (1982), Random-effects models for longitudinal data, Biometrics 38.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> who, x = np.repeat(np.arange(40), 6), rng.normal(size=(240, 1))
    >>> y = 2 * x[:, 0] + rng.normal(size=40)[who] + rng.normal(size=240)
    >>> fit = random_intercept(x, y, ["x"], who)
    >>> round(float(fit.coef[1]), 1), round(fit.share, 1)
    (2.1, 0.5)
    """
    from scipy.optimize import minimize_scalar

    centred, shift, centred_y, level = regression.centred_regression(x, y, names)
    who = person_codes(people, len(centred))
    terms, (n, k) = (regression.INTERCEPT, *names), centred.shape
    if n <= k or who.max() < 1 or np.isnan(regression.inverse_or_nan((centred.T @ centred)[np.newaxis])).any():
        return RandomIntercept(terms, np.full(k, np.nan), np.full((k, k), np.nan), float("nan"), float("nan"))
    plain = regression.ols(x, y, names)
    if len(np.unique(who)) == n or not plain.residual_variance > 0:
        return RandomIntercept(terms, plain.coef, plain.classical, float("nan"), float("nan"))
    fit_at = _profile(centred, centred_y, who)
    heights = np.array([fit_at(share)[0] for share in _GRID])
    best = int(np.argmin(heights))
    around = (_GRID[max(best - 1, 0)], _GRID[min(best + 1, len(_GRID) - 1)])
    minimum = minimize_scalar(lambda share: fit_at(share)[0], bounds=around, method="bounded", options={"xatol": 1e-10})
    share = float(minimum.x) if minimum.fun < heights[best] else float(_GRID[best])
    _, coef, inverse, within = fit_at(share)
    covariance = within * (shift @ inverse @ shift.T)
    coef = shift @ coef + level * np.eye(k)[0]
    return RandomIntercept(terms, coef, covariance, within * share / (1 - share), within)


def _profile(
    design: FloatArray, target: FloatArray, who: IntArray
) -> Callable[[float], tuple[float, FloatArray, FloatArray, float]]:
    """Return what gives -2 log restricted likelihood, coefficients, (X' W X)⁻¹ and var(e) at a share between people."""
    n, k = design.shape
    sizes = np.bincount(who)
    sums = np.column_stack([np.bincount(who, weights=column) for column in design.T])
    totals = np.bincount(who, weights=target)
    gram, moments, square = design.T @ design, design.T @ target, float(target @ target)

    def fit_at(share: float) -> tuple[float, FloatArray, FloatArray, float]:
        ratio = share / (1 - share)
        pull = ratio / (1 + ratio * sizes)
        weighted = gram - (sums * pull[:, np.newaxis]).T @ sums
        crossed = moments - sums.T @ (pull * totals)
        inverse = regression.inverse_or_nan(weighted[np.newaxis])[0]
        coef = inverse @ crossed
        rest = max(square - float(pull @ totals**2) - float(coef @ crossed), np.finfo(np.float64).tiny)
        height = (n - k) * np.log(rest) + np.log1p(ratio * sizes).sum() + np.linalg.slogdet(weighted)[1]
        return float(height) if np.isfinite(coef).all() else np.inf, coef, inverse, rest / (n - k)

    return fit_at
