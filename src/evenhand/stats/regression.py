"""Least squares with standard errors for rows or clustered by people, Wald tests, and a study's weight of effort.

Classical standard errors treat every row as a person. If a person gives several rows, use clustered standard errors
(CR1), the bootstrap of people or a random intercept. Undefined results are nan, without a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError, did_you_mean, require_at_least, require_choice
from evenhand.stats.correlation import person_codes, two_sided_p
from evenhand.stats.draws import Draws
from evenhand.stats.intervals import student_t
from evenhand.stats.types import FloatArray, IntArray

Inference = Literal["classical", "cluster"]
INTERCEPT = "intercept"

_CHUNK_NUMBERS = 1_000_000
_SINGULAR = 1e-10
_NO_ERROR = 1e-24
"""Squared errors below this share of the target's are rounding: the fit is perfect, and its error unknown."""
_ROUNDING = 1e-12


class Coefficients(NamedTuple):
    """Value, standard error, t, p-value and limits of each term; `df` may be one number for all terms."""

    value: FloatArray
    stderr: FloatArray
    df: float | FloatArray
    statistic: FloatArray
    p_value: FloatArray
    low: FloatArray
    high: FloatArray


class WaldTest(NamedTuple):
    """A test of linear restrictions: chi-square `statistic`, F = statistic / df, and the p-value of F(df, df_error)."""

    null: str
    statistic: float
    df: int
    df_error: float
    f: float
    p_value: float


class WeightStatus(StrEnum):
    """The status of a weight and its interval: defined, or the reason why not.

    There is no weight without a fit, if both coefficients are 0, or if their signs differ; there is no interval if
    there are too few people or the fit is perfect.
    """

    OK = "ok"
    NO_FIT = "no_fit"
    OTHER_SIGNS = "other_signs"
    NO_SPREAD = "no_spread"


class WeightEstimate(NamedTuple):
    """The weight of trajectory against aggregate with its interval; nan, with a status, if outside [0, 1]."""

    value: float
    stderr: float
    df: float
    low: float
    high: float
    status: WeightStatus


@dataclass(frozen=True, kw_only=True)
class LinearFit:
    """A fitted least-squares model.

    Parameters
    ----------
    names : the terms, intercept first.
    coef : the coefficients of the terms.
    classical : covariance of the coefficients with equal, independent errors.
    cluster : covariance that allows dependence between the rows of a person (CR1), or None without people.
    n, people : number of rows and of people.
    r2, adjusted_r2 : share of the variance explained, without and with adjustment for degrees of freedom.
    residual_variance : mean square of the errors.
    """

    names: tuple[str, ...]
    coef: FloatArray
    classical: FloatArray
    cluster: FloatArray | None
    n: int
    people: int | None
    r2: float
    adjusted_r2: float
    residual_variance: float

    def covariance(self, inference: Inference = "classical") -> FloatArray:
        """Return the covariance matrix of the coefficients."""
        require_choice("inference", inference, ["classical", "cluster"])
        if inference == "classical":
            return self.classical
        if self.cluster is None:
            raise EvenhandError("clustered standard errors need to know whose rows are whose; give `people` to ols().")
        return self.cluster

    def df(self, inference: Inference = "classical") -> float:
        """Return the degrees of freedom of t: n - k for rows, or people - 1 for clustered errors."""
        return self.n - len(self.names) if inference == "classical" else (self.people or 0) - 1

    def coefficients(self, inference: Inference = "classical", confidence: float = 0.95) -> Coefficients:
        """Return every coefficient with standard error, t, p-value and interval."""
        df = self.df(inference)
        stderr = roots(np.diagonal(self.covariance(inference)))
        with np.errstate(all="ignore"):
            t = self.coef / stderr
        low, high = student_t(self.coef, stderr, df, confidence)
        return Coefficients(
            value=self.coef, stderr=stderr, df=df, statistic=t, p_value=two_sided_p(t, df), low=low, high=high
        )

    def position(self, term: str) -> int:
        """Return the index of a term."""
        if term not in self.names:
            raise EvenhandError(
                "the model has no term {term!r}; {hint}", term=term, hint=did_you_mean(term, self.names)
            )
        return self.names.index(term)


def ols(x: ArrayLike, y: ArrayLike, names: Sequence[str], people: ArrayLike | None = None) -> LinearFit:
    """Fit y on the columns of x and an intercept by least squares.

    b = (X'X)⁻¹ X'y. Classical covariance s² (X'X)⁻¹, s² = e'e / (n - k). Clustered (CR1): with u_g = X_g' e_g the score
    of person g of G, (X'X)⁻¹ (sum u_g u_g') (X'X)⁻¹ G / (G - 1) (n - 1) / (n - k).

    Parameters
    ----------
    x : regressors, shape (rows, columns), without the intercept and without missing values.
    y : the response.
    names : names of the columns.
    people : the person of each row; None for no clustered standard errors.

    Returns
    -------
    LinearFit
        All numbers are nan if the columns are linearly dependent or there are fewer rows than terms. A perfect fit has
        coefficients but no standard errors.

    References
    ----------
    K.-Y. Liang and S. L. Zeger (1986), Longitudinal data analysis using generalized linear models, Biometrika 73.
    A. C. Cameron and D. L. Miller (2015), A practitioner's guide to cluster-robust inference, Journal of Human
    Resources 50.

    Examples
    --------
    >>> fit = ols([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 4.0, 6.0], ["x"], people=[1, 1, 2, 2])
    >>> fit.coef.round(6), round(fit.r2, 4)
    (array([1.1, 1.6]), 0.9846)
    """
    centred, shift, centred_y, level = centred_regression(x, y, names)
    n, k = centred.shape
    bread = inverse_or_nan((centred.T @ centred)[np.newaxis])[0] if n >= k else np.full((k, k), np.nan)
    coef = bread @ (centred.T @ centred_y)
    errors = centred_y - centred @ coef
    residual, spread = float(errors @ errors), float(centred_y @ centred_y)
    perfect = residual <= _NO_ERROR * spread
    variance = np.nan if n <= k else 0.0 if perfect else residual / (n - k)
    r2 = 1 - residual / spread if spread > 0 else np.nan
    adjusted = 1 - (1 - r2) * (n - 1) / (n - k) if n > k else np.nan
    person = None if people is None else person_codes(people, n)
    scale = np.nan if perfect else 1.0
    cluster = None if person is None else scale * shift @ _clustered(centred, errors, bread, person) @ shift.T
    coefficients = shift @ coef + level * np.eye(k)[0]
    classical, persons = (
        scale * variance * (shift @ bread @ shift.T),
        None if person is None else len(np.unique(person)),
    )
    return LinearFit(
        names=(INTERCEPT, *names),
        coef=coefficients,
        classical=classical,
        cluster=cluster,
        n=n,
        people=persons,
        r2=r2,
        adjusted_r2=adjusted,
        residual_variance=variance,
    )


def wald(fit: LinearFit, restrictions: ArrayLike, null: str, inference: Inference = "classical") -> WaldTest:
    """Return the Wald test of R b = 0, with one degree of freedom per row of R.

    References
    ----------
    A. Wald (1943), Tests of statistical hypotheses concerning several parameters when the number of observations is
    large, Transactions of the American Mathematical Society 54.

    Examples
    --------
    >>> fit = ols([[0.0, 1], [1.0, 0], [2.0, 2], [3.0, 1], [4.0, 3]], [1.0, 3, 5, 6, 7], ["a", "b"])
    >>> round(wald(fit, [[0, 1, -1]], "a = b").statistic, 3)
    8.929
    """
    from scipy.special import fdtrc

    rows = np.atleast_2d(np.asarray(restrictions, dtype=np.float64))
    away = rows @ fit.coef
    covariance = rows @ fit.covariance(inference) @ rows.T
    inverse = inverse_or_nan(covariance[np.newaxis])[0]
    statistic = float(away @ inverse @ away)
    df, df_error = len(rows), fit.df(inference)
    p = float(fdtrc(df, df_error, statistic / df)) if df_error > 0 and statistic >= 0 else float("nan")
    return WaldTest(null=null, statistic=statistic, df=df, df_error=df_error, f=statistic / df, p_value=p)


def wald_zero(fit: LinearFit, terms: Sequence[str], inference: Inference = "classical") -> WaldTest:
    """Return the Wald test that several coefficients are all 0, the null `a = b = 0`.

    Examples
    --------
    >>> fit = ols([[0.0, 1], [1.0, 0], [2.0, 2], [3.0, 1], [4.0, 3]], [1.0, 3, 5, 6, 7], ["a", "b"])
    >>> wald_zero(fit, ["a", "b"]).null
    'a = b = 0'
    """
    rows = np.eye(len(fit.names))[[fit.position(term) for term in terms]]
    return wald(fit, rows, " = ".join([*terms, "0"]), inference)


def wald_equal(fit: LinearFit, first: str, second: str, inference: Inference = "classical") -> WaldTest:
    """Return the Wald test that two coefficients are equal, the null `a = b`.

    Examples
    --------
    >>> fit = ols([[0.0, 1], [1.0, 0], [2.0, 2], [3.0, 1], [4.0, 3]], [1.0, 3, 5, 6, 7], ["a", "b"])
    >>> wald_equal(fit, "a", "b").df
    1
    """
    rows = np.eye(len(fit.names))
    return wald(fit, rows[fit.position(first)] - rows[fit.position(second)], f"{first} = {second}", inference)


def f_test(fit: LinearFit, inference: Inference = "classical") -> WaldTest:
    """Return the test that all coefficients but the intercept are 0; `f` is the F of a regression table.

    Examples
    --------
    >>> round(f_test(ols([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 4.0, 6.0], ["x"])).f, 6)
    128.0
    """
    return wald_zero(fit, fit.names[1:], inference)


def moderated(x: ArrayLike, moderators: ArrayLike) -> FloatArray:
    """Return the columns of x, followed for each 0/1 moderator by the moderator and its product with each column.

    Examples
    --------
    >>> moderated([[2.0, 3.0], [4.0, 5.0]], [[0], [1]])
    array([[2., 3., 0., 0., 0.],
           [4., 5., 1., 4., 5.]])
    """
    columns, switches = np.asarray(x, dtype=np.float64), np.asarray(moderators, dtype=np.float64)
    if switches.ndim != 2 or len(switches) != len(columns):
        raise EvenhandError(
            "`moderators` must have one row for each of {number}; got shape {shape}.",
            number=len(columns),
            shape=switches.shape,
        )
    parts = [np.column_stack([switch, columns * switch[:, np.newaxis]]) for switch in switches.T]
    return np.hstack([columns, *parts])


def delta_weight(
    fit: LinearFit,
    trajectory: str = "trajectory",
    aggregate: str = "aggregate",
    inference: Inference = "classical",
    confidence: float = 0.95,
) -> WeightEstimate:
    """Return the weight w = a_t / (a_t + a_a) of trajectory against aggregate, with the delta method's interval.

    se² = g' V g, g = (a_a, -a_t) / (a_t + a_a)² for (a_t, a_a). The weight is undefined outside [0, 1].

    References
    ----------
    A. W. van der Vaart (1998), Asymptotic Statistics, chapter 3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 2))
    >>> fit = ols(x, x @ [0.3, 0.6] + 0.1 * rng.normal(size=500), ["aggregate", "trajectory"])
    >>> round(delta_weight(fit).value, 2)
    0.66
    """
    terms = [fit.position(trajectory), fit.position(aggregate)]
    a_t, a_a = fit.coef[terms]
    df = fit.df(inference)
    with np.errstate(all="ignore"):
        value = a_t / (a_t + a_a)
        gradient = np.array([a_a, -a_t]) / (a_t + a_a) ** 2
        stderr = float(roots(gradient @ fit.covariance(inference)[np.ix_(terms, terms)] @ gradient))
    return _weight(float(value), stderr, df, confidence)


def coefficient_bootstrap(
    x: ArrayLike, y: ArrayLike, people: ArrayLike, *, resamples: int = 10_000, rng: Generator
) -> Draws:
    """Return the least-squares coefficients of bootstrap resamples of people, with all rows of each person.

    A person matters only through X_g'X_g and X_g'y_g, so a resample requires a weighted sum of these products and one
    small system of equations. The first coefficient is the intercept. A resample with linearly dependent columns is
    nan.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(120, 1))
    >>> draws = coefficient_bootstrap(x, 2 * x[:, 0], np.repeat(np.arange(30), 4), resamples=200, rng=rng)
    >>> draws.values.shape, draws.estimate.round(6)
    ((200, 2), array([0., 2.]))
    """
    columns = np.asarray(x, dtype=np.float64)
    names = [str(j) for j in range(columns.shape[1] if columns.ndim == 2 else 0)]
    centred, shift, centred_y, level = centred_regression(x, y, names)
    person = person_codes(people, len(centred))
    require_at_least("resamples", resamples, 2)
    k, persons = centred.shape[1], int(person.max()) + 1
    a, b = np.triu_indices(k)
    parts = np.hstack([centred[:, a] * centred[:, b], centred * centred_y[:, np.newaxis]])
    sums = np.column_stack([np.bincount(person, weights=part, minlength=persons) for part in parts.T])
    drawn = np.empty((resamples, k))
    step = max(1, _CHUNK_NUMBERS // max(persons, sums.shape[1]))
    for start in range(0, resamples, step):
        counts = rng.multinomial(persons, np.full(persons, 1 / persons), size=min(step, resamples - start))
        drawn[start : start + len(counts)] = _solved(counts.astype(np.float64) @ sums, k)
    shift_of_intercept = level * np.eye(k)[0]
    return Draws(
        _solved(sums.sum(axis=0)[np.newaxis], k)[0] @ shift.T + shift_of_intercept, drawn @ shift.T + shift_of_intercept
    )


def bootstrap_weight(
    draws: Draws, people: int, trajectory: int, aggregate: int, confidence: float = 0.95
) -> WeightEstimate:
    """Return the weight of trajectory against aggregate, with the bootstrap standard error and t(people - 1).

    `trajectory` and `aggregate` are the indices of the two coefficients in the draws of `coefficient_bootstrap`.

    Examples
    --------
    >>> values = np.random.default_rng(0).normal([0.0, 0.3, 0.6], 0.02, (500, 3))
    >>> found = bootstrap_weight(Draws(np.array([0.0, 0.3, 0.6]), values), people=75, trajectory=2, aggregate=1)
    >>> round(found.value, 3), round(found.stderr, 2)
    (0.667, 0.02)
    """
    with np.errstate(all="ignore"):
        value, values = (
            coefficients[..., trajectory] / (coefficients[..., trajectory] + coefficients[..., aggregate])
            for coefficients in (draws.estimate, draws.values)
        )
    stderr = float(Draws(np.array([value]), values[:, np.newaxis]).stderr()[0])
    return _weight(float(value), stderr, people - 1, confidence)


def _weight(value: float, stderr: float, df: float, confidence: float) -> WeightEstimate:
    """Return the weight estimate with limits clipped to 0 and 1."""
    if not -_ROUNDING <= value <= 1 + _ROUNDING:
        status = WeightStatus.OTHER_SIGNS if np.isfinite(value) else WeightStatus.NO_FIT
        return WeightEstimate(value=np.nan, stderr=np.nan, df=df, low=np.nan, high=np.nan, status=status)
    share = min(max(value, 0.0), 1.0)
    none = WeightEstimate(value=share, stderr=np.nan, df=df, low=np.nan, high=np.nan, status=WeightStatus.NO_SPREAD)
    if not stderr > _ROUNDING:
        return none
    low, high = student_t(share, stderr, df, confidence)
    if not np.isfinite(low):
        return none._replace(stderr=stderr)
    return none._replace(stderr=stderr, low=max(float(low), 0.0), high=min(float(high), 1.0), status=WeightStatus.OK)


def _clustered(design: FloatArray, errors: FloatArray, bread: FloatArray, who: IntArray) -> FloatArray:
    n, k = design.shape
    groups = len(np.unique(who))
    scores = np.column_stack([np.bincount(who, weights=column * errors) for column in design.T])
    if groups < 2 or n <= k:
        return np.full((k, k), np.nan)
    correction = groups / (groups - 1) * (n - 1) / (n - k)
    return np.asarray(correction * bread @ (scores.T @ scores) @ bread)


def _solved(sums: FloatArray, k: int) -> FloatArray:
    """Return (R, k) solutions of normal equations, from sums (R, ...) of products of columns and with y."""
    a, b = np.triu_indices(k)
    gram = np.empty((len(sums), k, k))
    gram[:, a, b] = gram[:, b, a] = sums[:, : a.size]
    return np.asarray((inverse_or_nan(gram) @ sums[:, a.size :, np.newaxis])[..., 0])


def inverse_or_nan(matrices: FloatArray) -> FloatArray:
    """Return the inverses of (R, k, k) covariance matrices; nan if singular."""
    scale = roots(np.diagonal(matrices, axis1=-2, axis2=-1))
    with np.errstate(all="ignore"):
        unit = matrices / (scale[..., :, np.newaxis] * scale[..., np.newaxis, :])
        sound = np.asarray(np.isfinite(unit).all(axis=(-2, -1)))
        safe = np.where(sound[..., np.newaxis, np.newaxis], unit, np.eye(matrices.shape[-1]))
        sound &= np.linalg.det(safe) > _SINGULAR
        safe = np.where(sound[..., np.newaxis, np.newaxis], safe, np.eye(matrices.shape[-1]))
        inverse = np.linalg.inv(safe) / (scale[..., :, np.newaxis] * scale[..., np.newaxis, :])
    return np.asarray(np.where(sound[..., np.newaxis, np.newaxis], inverse, np.nan))


def roots(values: ArrayLike) -> FloatArray:
    """Return square roots; nan for negative numbers."""
    squares = np.asarray(values, dtype=np.float64)
    return np.sqrt(np.where(squares >= 0, squares, np.nan))


def centred_regression(
    x: ArrayLike, y: ArrayLike, names: Sequence[str]
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return the validated regression in centred columns, with the transformation back.

    The results are a column of ones followed by the columns of x minus their means, the matrix that transforms
    coefficients back, y minus its mean (exactly 0 if y is constant), and the mean of y. Centring improves accuracy.
    """
    columns, target = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if columns.ndim != 2 or columns.shape[1] != len(names):
        raise EvenhandError(
            "`x` must have one column for each of {number} names; got shape {shape}.",
            number=len(names),
            shape=columns.shape,
        )
    if target.shape != columns.shape[:1]:
        raise EvenhandError(
            "`y` must have one value for each of {number} rows; got shape {shape}.",
            number=len(columns),
            shape=target.shape,
        )
    if not len(target):
        raise EvenhandError("there are no rows to fit.")
    if not (np.isfinite(columns).all() and np.isfinite(target).all()):
        raise EvenhandError("`x` and `y` must be finite; leave out rows with gaps first.")
    design = np.column_stack([np.ones(len(columns)), columns])
    means = np.concatenate([[0.0], design[:, 1:].mean(axis=0)])
    shift = np.eye(len(means))
    shift[0] -= means
    level = float(target[0]) if np.ptp(target) == 0 else float(target.mean())
    return design - means, shift, target - level, level
