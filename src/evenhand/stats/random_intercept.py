"""Linear model with a random intercept for each person, for studies with several rows per person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats import regression
from evenhand.stats.correlation import person_codes, two_sided_p
from evenhand.stats.intervals import student_t
from evenhand.stats.types import FloatArray, IntArray

_GRID = np.r_[0.0, np.geomspace(1e-4, 0.1, 20), np.linspace(0.15, 0.95, 17), 1 - np.geomspace(0.04, 1e-6, 12)]
"""Grid of shares of the variance between people, for the first search of the likelihood."""
FEWEST_PEOPLE = 12
"""The fewest people for intervals and tests by people: at 12 the level is .04 to .07 at .05 (see the docs)."""
_RANK = 1e-10


@dataclass(frozen=True, kw_only=True)
class RandomIntercept:
    """A fitted random-intercept model.

    Parameters
    ----------
    names, coef, covariance : terms, coefficients and their covariance if the model is right.
    between, within : variances of the people's levels and of their rows.
    robust, df : covariance clustered by people (CR2), which is valid even if the model is wrong, and the degrees of
        freedom of each coefficient's t; see `robust_by_people`.
    people : the number of people.
    """

    names: tuple[str, ...]
    coef: FloatArray
    covariance: FloatArray
    between: float
    within: float
    robust: FloatArray
    df: FloatArray
    people: int

    @property
    def share(self) -> float:
        """The share of the unexplained variance between people."""
        total = self.between + self.within
        return self.between / total if total > 0 else float("nan")

    def coefficients(self, confidence: float = 0.95) -> regression.Coefficients:
        """Return coefficients with CR2 standard errors clustered by people, t, p-values and intervals.

        With fewer than `FEWEST_PEOPLE` people there are no tests and intervals. If people also differ in their slopes,
        the model's own standard errors are far too small; clustered standard errors are not.
        """
        stderr = regression.roots(np.diagonal(self.robust))
        df = self.df if self.people >= FEWEST_PEOPLE else np.full(len(self.coef), np.nan)
        with np.errstate(all="ignore"):
            t = np.where(np.isnan(df), np.nan, self.coef / stderr)
        low, high = student_t(self.coef, stderr, df, confidence)
        return regression.Coefficients(
            value=self.coef, stderr=stderr, df=df, statistic=t, p_value=two_sided_p(t, df), low=low, high=high
        )


def random_intercept(x: ArrayLike, y: ArrayLike, names: Sequence[str], people: ArrayLike) -> RandomIntercept:
    """Fit y = X b + u_person + e, with u and e normal, by restricted maximum likelihood.

    With q = var(u) / var(e), a person's rows have covariance proportional to I + q 11', whose inverse and determinant
    have closed forms; b and var(e) follow from q. The remaining search over q / (1 + q) in [0, 1) has one dimension,
    first on a grid and then between its points, so a fit always exists, even without variance between people.

    Parameters
    ----------
    x, y, names : regressors without the intercept, the response, and the names of the columns.
    people : the person of each row.

    Returns
    -------
    RandomIntercept
        All numbers are nan if columns are linearly dependent, or there are fewer than two people or too few rows. If
        every person has one row, the two variances cannot be separated: they are nan, and the fit is least squares. A
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
    terms, (n, k), persons = (regression.INTERCEPT, *names), centred.shape, int(who.max()) + 1
    unknown, nan = np.full((k, k), np.nan), float("nan")
    if n <= k or persons < 2 or np.isnan(regression.inverse_or_nan((centred.T @ centred)[np.newaxis])).any():
        return RandomIntercept(
            names=terms,
            coef=unknown[0],
            covariance=unknown,
            between=nan,
            within=nan,
            robust=unknown,
            df=unknown[0],
            people=persons,
        )
    plain = regression.ols(x, y, names)
    if persons == n or not plain.residual_variance > 0:
        errors = centred_y - centred @ np.linalg.solve(shift, plain.coef - level * np.eye(k)[0])
        robust, df = _robust(centred, errors, who, 0.0, shift) if persons == n else (unknown, unknown[0])
        return RandomIntercept(
            names=terms,
            coef=plain.coef,
            covariance=plain.classical,
            between=nan,
            within=nan,
            robust=robust,
            df=df,
            people=persons,
        )
    fit_at = _profile(centred, centred_y, who)
    heights = np.array([fit_at(share)[0] for share in _GRID])
    best = int(np.argmin(heights))
    around = (_GRID[max(best - 1, 0)], _GRID[min(best + 1, len(_GRID) - 1)])
    minimum = minimize_scalar(lambda share: fit_at(share)[0], bounds=around, method="bounded", options={"xatol": 1e-10})
    share = float(minimum.x) if minimum.fun < heights[best] else float(_GRID[best])
    _, coef, inverse, within = fit_at(share)
    covariance, ratio = within * (shift @ inverse @ shift.T), share / (1 - share)
    robust, df = _robust(centred, centred_y - centred @ coef, who, ratio, shift)
    coef = shift @ coef + level * np.eye(k)[0]
    return RandomIntercept(
        names=terms,
        coef=coef,
        covariance=covariance,
        between=within * ratio,
        within=within,
        robust=robust,
        df=df,
        people=persons,
    )


def _profile(
    design: FloatArray, target: FloatArray, who: IntArray
) -> Callable[[float], tuple[float, FloatArray, FloatArray, float]]:
    """Return a function from the share between people to deviance, coefficients, (X' W X)⁻¹ and var(e)."""
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
        residual = max(square - float(pull @ totals**2) - float(coef @ crossed), np.finfo(np.float64).tiny)
        height = (n - k) * np.log(residual) + np.log1p(ratio * sizes).sum() + np.linalg.slogdet(weighted)[1]
        return float(height) if np.isfinite(coef).all() else np.inf, coef, inverse, residual / (n - k)

    return fit_at


def robust_by_people(
    x: ArrayLike, errors: ArrayLike, people: ArrayLike, ratio: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return the CR2 covariance of generalised least squares clustered by people, and each coefficient's df.

    With the working covariance V_i = I + q 11' of a person's rows, D_i its upper Cholesky root (V_i = D_i' D_i),
    M = (sum X_i' V_i⁻¹ X_i)⁻¹ and B_i = D_i (V_i - X_i M X_i') D_i', the errors of a person are made unbiased by
    A_i = D_i' B_i^(+1/2) D_i, the root being that of the generalised inverse:

        M (sum X_i' V_i⁻¹ A_i e_i e_i' A_i' V_i⁻¹ X_i) M

    The degrees of freedom of the coefficient c'b are those of Satterthwaite under the working covariance: with
    p_i = A_i' V_i⁻¹ X_i M c, u_i = X_i' p_i and P_ij = [i = j] p_i' V_i p_i - u_i' M u_j,
    (sum P_ii)² / sum_ij P_ij². Both are valid for any working covariance, and better the closer it is to the truth.

    Parameters
    ----------
    x : regressors including the intercept, shape (rows, columns).
    errors : the residuals.
    people : the person of each row.
    ratio : q, the variance between people divided by the variance within; 0 is least squares.

    Returns
    -------
    covariance, df : nan if the columns are linearly dependent.

    References
    ----------
    R. M. Bell and D. F. McCaffrey (2002), Bias reduction in standard errors for linear regression with multi-stage
    samples, Survey Methodology 28. J. E. Pustejovsky and E. Tipton (2018), Small-sample methods for cluster-robust
    variance estimation and hypothesis testing in fixed effects models, Journal of Business and Economic Statistics 36.

    Examples
    --------
    Two groups of three and 27 people, one row each: 2.5 degrees of freedom (Imbens and Kolesár 2016, table 1).

    >>> x = np.column_stack([np.ones(30), np.arange(30) < 3])
    >>> _, df = robust_by_people(x, np.random.default_rng(0).normal(size=30), np.arange(30))
    >>> round(float(df[1]), 2)
    2.47
    """
    design, residuals = np.asarray(x, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    return _robust(design, residuals, person_codes(people, len(design)), ratio, np.eye(design.shape[1]))


def _robust(
    design: FloatArray, errors: FloatArray, who: IntArray, ratio: float, shift: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return `robust_by_people` for the design's coefficients, transformed by `shift`."""
    k = design.shape[1]
    rows = np.split(np.argsort(who, kind="stable"), np.cumsum(np.bincount(who))[:-1])
    working = {len(rows_of_person): np.eye(len(rows_of_person)) + ratio for rows_of_person in rows}
    weights = {size: np.linalg.inv(shape) for size, shape in working.items()}
    weighted = [weights[len(rows_of_person)] @ design[rows_of_person] for rows_of_person in rows]
    gram = sum(
        (design[rows_of_person].T @ scaled for rows_of_person, scaled in zip(rows, weighted, strict=True)),
        np.zeros((k, k)),
    )
    bread = regression.inverse_or_nan(gram[np.newaxis])[0]
    if np.isnan(bread).any():
        return np.full((k, k), np.nan), np.full(k, np.nan)
    half = bread @ shift.T
    scores, diagonal, leverage = [], np.zeros((len(rows), k)), np.zeros((len(rows), k, k))
    for person, (rows_of_person, scaled) in enumerate(zip(rows, weighted, strict=True)):
        covariance = working[len(rows_of_person)]
        root = np.linalg.cholesky(covariance).T
        inner = root @ (covariance - design[rows_of_person] @ bread @ design[rows_of_person].T) @ root.T
        pulls = (root.T @ _inverse_root(inner) @ root).T @ scaled @ half  # one column per coefficient
        scores.append(errors[rows_of_person] @ pulls)
        diagonal[person] = np.einsum("ij,ik,kj->j", pulls, covariance, pulls)
        leverage[person] = (design[rows_of_person].T @ pulls).T  # one row per coefficient
    meat = np.array(scores)
    return meat.T @ meat, np.array([_satterthwaite(diagonal[:, term], leverage[:, term], bread) for term in range(k)])


def _inverse_root(matrix: FloatArray) -> FloatArray:
    """Return the square root of the generalised inverse of a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    sound = values > _RANK * values.max()
    scale = np.where(sound, 1 / np.sqrt(np.where(sound, values, 1.0)), 0.0)
    return np.asarray((vectors * scale) @ vectors.T)


def _satterthwaite(diagonal: FloatArray, leverage: FloatArray, bread: FloatArray) -> float:
    """Return (sum P_ii)² / sum P_ij² for P = diag(own) - U M U', without forming the matrix over all people."""
    shared = np.einsum("ij,jk,ik->i", leverage, bread, leverage)
    crossed = bread @ (leverage.T @ leverage)
    square = float(diagonal @ diagonal - 2 * diagonal @ shared + np.trace(crossed @ crossed))
    return float((diagonal - shared).sum()) ** 2 / square if square > 0 else float("nan")
