"""Intraclass correlations of numeric ratings with intervals, and other metrics of two raters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.agreement import panels, ratings
from evenhand.stats.agreement.counts import ratio
from evenhand.stats.intervals import tail_share
from evenhand.stats.types import BoolArray, FloatArray, Interval

IccForm = Literal["1", "A,1", "C,1", "k", "A,k", "C,k"]
ICC_FORMS: tuple[IccForm, ...] = get_args(IccForm)


@dataclass(frozen=True)
class MeanSquares:
    """Mean squares from the analysis of variance of n people by k raters; arrays of one shape.

    Attributes
    ----------
    n, raters
        People (fractional with weights) and raters.
    rows, columns, error
        Mean squares between people (MSR), between raters (MSC), and of the residuals (MSE).

    Examples
    --------
    >>> squares = mean_squares([9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7])
    >>> [round(float(value), 2) for value in (squares.rows, squares.columns, squares.error, squares.within)]
    [11.24, 32.49, 1.02, 6.26]
    """

    n: FloatArray
    raters: int
    rows: FloatArray
    columns: FloatArray
    error: FloatArray

    @property
    def within(self) -> FloatArray:
        """Return the mean square within people, (MSC + (n - 1) MSE) / n."""
        with np.errstate(all="ignore"):
            return np.asarray((self.columns + (self.n - 1.0) * self.error) / self.n)

    def icc(self, form: IccForm = "A,1") -> FloatArray:
        """Return the intraclass correlation of a form, or nan if undefined; see `icc`."""
        require_choice("form", form, ICC_FORMS)
        numerator, denominator, size = self._fraction(form)
        with np.errstate(all="ignore"):
            none = (denominator <= 0) | ratings.is_rounding(denominator, size) | (self.n <= 1)
            return np.asarray(np.where(none, np.nan, numerator / denominator))

    def interval(self, form: IccForm = "A,1", confidence: float = 0.95) -> Interval:
        """Return the confidence interval of a form, (1, 1) for perfect agreement; see `icc_interval`."""
        require_choice("form", form, ICC_FORMS)
        with np.errstate(all="ignore"):
            single = self._absolute(confidence) if form.startswith("A") else self._one_f(form, confidence)
            low, high = (self._of_the_mean(limit) for limit in single) if form.endswith("k") else single
            perfect = (self.error == 0) & (self.rows > 0) & (form.startswith("C") | (self.columns == 0))
            defined = ~np.isnan(self.icc(form))
            low, high = (np.where(perfect, 1.0, np.where(defined, limit, np.nan)) for limit in (low, high))
        return Interval(np.asarray(low), np.asarray(high))

    def why_undefined(self, form: IccForm = "A,1") -> ratings.Reasons:
        """Return the reason the coefficient is nan, or "" if it is defined.

        Examples
        --------
        >>> mean_squares([0.5, 0.5], [0.5, 0.5]).why_undefined()
        array('no_spread', dtype='<U17')
        """
        flat = (self.rows == 0) & (self.error == 0) & (form.startswith("C") | (self.columns == 0))
        _, denominator, size = self._fraction(form)
        below_zero = np.asarray((denominator < 0) & ~ratings.is_rounding(denominator, size))
        checks: list[tuple[BoolArray, ratings.Undefined]] = [
            (np.asarray(self.n == 0), ratings.Undefined.NOBODY),
            (np.asarray(self.n <= 1), ratings.Undefined.ONE_PERSON),
            (np.asarray(flat), ratings.Undefined.NO_SPREAD),
            (below_zero, ratings.Undefined.NEGATIVE_VARIANCE),
            (np.isnan(self.icc(form)), ratings.Undefined.ZERO_DENOMINATOR),
        ]
        return ratings.first_reason(checks)

    def _fraction(self, form: IccForm) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the numerator, the denominator, and the magnitude of the denominator's terms."""
        k, msr, msc, mse, msw = self.raters, self.rows, self.columns, self.error, self.within
        with np.errstate(all="ignore"):
            if form in {"1", "k"}:
                return msr - msw, msr + (k - 1) * msw if form == "1" else msr, msr + k * msw
            if form in {"C,1", "C,k"}:
                return msr - mse, msr + (k - 1) * mse if form == "C,1" else msr, msr + k * mse
            if form == "A,1":
                return msr - mse, msr + (k - 1) * mse + k * (msc - mse) / self.n, msr + k * mse + k * msc / self.n
            return msr - mse, msr + (msc - mse) / self.n, msr + (msc + mse) / self.n

    def _of_the_mean(self, single: FloatArray) -> FloatArray:
        """Return k r / (1 + (k - 1) r): a one-rater limit r converted to the mean of k raters; -inf if r is too low."""
        total = 1.0 + (self.raters - 1) * single
        return np.asarray(np.where(total > 0, self.raters * single / total, np.where(np.isnan(total), np.nan, -np.inf)))

    def _one_f(self, form: IccForm, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return limits of the single-rater forms 1 and C,1 from quantiles of F."""
        k, between = self.raters, self.n - 1.0
        one_way = not form.startswith("C")
        residual_df, below = (self.n * (k - 1), self.within) if one_way else (between * (k - 1), self.error)
        f = self.rows / below
        limits = f / _f_quantile(between, residual_df, confidence), f * _f_quantile(residual_df, between, confidence)
        low, high = ((limit - 1.0) / (limit + k - 1.0) for limit in limits)
        return low, high

    def _absolute(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return limits of ICC(A,1) as quantiles of the generalised pivot; see `panels.panel_interval`."""
        n, k = np.asarray(self.n)[..., np.newaxis], self.raters
        msr, msc, mse = (np.asarray(square)[..., np.newaxis] for square in (self.rows, self.columns, self.error))
        people = self.n.flat[0] if np.all(self.n == self.n.flat[:1]) and self.n.size else self.n  # usually equal
        chi_error, chi_people, chi_raters = panels.chi_squares((people - 1.0) * (k - 1), people - 1.0, k - 1.0)
        error = (n - 1.0) * (k - 1) * mse / chi_error
        spread = ((n - 1.0) * msr / chi_people - error) / k
        drawn = spread / (spread + ((k - 1) * msc / chi_raters - error) / n + error)
        tail = tail_share(confidence)
        low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=-1)
        value = self.icc("A,1")
        return np.minimum(low, value), np.maximum(high, value)


def mean_squares(*raters: ArrayLike, weight: ArrayLike | None = None) -> MeanSquares:
    """Return the mean squares of scores of two or more raters.

    Sums use differences from the first rater, so raters who agree have an error of exactly 0.

    Parameters
    ----------
    raters
        Two or more arrays of scores of shapes (..., people) that broadcast.
    weight
        The number of people each row represents, of a shape (..., people) that broadcasts; 1 by default.

    Examples
    --------
    >>> float(mean_squares([1.0, 2.0, 4.0], [1.0, 2.0, 4.0]).error)
    0.0
    """
    if len(raters) < 2:
        raise EvenhandError("There must be at least two raters; got {number}.", number=len(raters))
    scores = ratings.score_ratings(*raters)
    k, weights = len(scores), ratings.people_weights(weight, scores[0].shape[-1])
    n = np.asarray(weights.sum(axis=-1))
    apart = [score - scores[0] for score in scores]
    drift = sum(apart[1:], start=np.zeros(1)) / k
    size = reduce(np.maximum, [np.abs(score).max(axis=-1, initial=0.0) for score in scores])
    _, between = ratings.mean_and_squares(scores[0] + drift, weights, size)
    shifts, lefts = zip(*(ratings.mean_and_squares(gap - drift, weights, size) for gap in apart), strict=True)
    with np.errstate(all="ignore"):
        columns = sum((np.square(shift) for shift in shifts), start=np.zeros(())) * n / (k - 1)
        error = sum(lefts, start=np.zeros(())) / ((n - 1.0) * (k - 1))
        n, rows, columns, error = np.broadcast_arrays(n, k * between / (n - 1.0), columns, error)
    return MeanSquares(n, k, rows, columns, error)


def icc(*raters: ArrayLike, form: IccForm = "A,1", weight: ArrayLike | None = None) -> FloatArray:
    """Return an intraclass correlation of two or more raters.

    ========== =============== ================================================= ===============================
    form       Shrout-Fleiss   formula                                           for
    ========== =============== ================================================= ===============================
    ``1``      ICC(1,1)        (MSR - MSW) / (MSR + (k-1) MSW)                   other raters for each person
    ``A,1``    ICC(2,1)        (MSR - MSE) / (MSR + (k-1) MSE + k (MSC-MSE) / n) same raters, absolute agreement
    ``C,1``    ICC(3,1)        (MSR - MSE) / (MSR + (k-1) MSE)                   same raters, consistency
    ``k``      ICC(1,k)        (MSR - MSW) / MSR                                 the mean of k raters
    ``A,k``    ICC(2,k)        (MSR - MSE) / (MSR + (MSC-MSE) / n)               the mean of k raters
    ``C,k``    ICC(3,k)        (MSR - MSE) / MSR                                 the mean of k raters
    ========== =============== ================================================= ===============================

    The estimate may be negative, and never exceeds 1. nan for fewer than two people, if all scores are equal, and if
    the denominator's variance is estimated below 0, as for the form A,k of raters who contradict each other.

    With missing ratings (nan), form 1 comes from the analysis of variance with unequal numbers: k is n0 = (N - sum k_i²
    / N) / (n - 1) for k_i ratings of person i and N ratings in all. A,1 and C,1 come from the variances of people,
    raters and error by restricted maximum likelihood, s_p / (s_p + s_r + s_e) and s_p / (s_p + s_e), which are 0 or
    more; A,k, C,k and k require equally many ratings of each person. Without missing ratings the results equal the
    table above, except for estimates below 0.

    Parameters
    ----------
    raters
        Two or more arrays of scores of shapes (..., people) that broadcast; each leading index is a simulation. With
        missing ratings (nan) only the weights may have leading indices.
    form
        The form, in McGraw and Wong's notation.
    weight
        The number of people each row represents; 1 by default.

    References
    ----------
    P. E. Shrout and J. L. Fleiss (1979), Intraclass correlations, Psychological Bulletin 86. K. O. McGraw and S. P.
    Wong (1996), Forming inferences about some intraclass correlation coefficients, Psychological Methods 1. S. R.
    Searle, G. Casella and C. E. McCulloch (1992), Variance Components, chapters 3 and 6, for unequal numbers.

    Examples
    --------
    >>> judges = [9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]
    >>> {form: round(float(icc(*judges, form=form)), 2) for form in ICC_FORMS}
    {'1': 0.17, 'A,1': 0.29, 'C,1': 0.71, 'k': 0.44, 'A,k': 0.62, 'C,k': 0.91}
    """
    if ratings.has_gaps(raters):
        require_choice("form", form, ICC_FORMS)
        return ratings.plain(panels.panel_of(*raters, weight=weight).iccs()[form])
    return ratings.plain(mean_squares(*raters, weight=weight).icc(form))


def icc_a1(*raters: ArrayLike, weight: ArrayLike | None = None) -> FloatArray:
    """Return ICC(A,1), the absolute agreement of single raters; see `icc`.

    Examples
    --------
    >>> round(float(icc_a1([0.1, 0.4, 0.9], [0.2, 0.4, 0.7])), 4)
    0.9242
    """
    return icc(*raters, form="A,1", weight=weight)


def icc_interval(
    *raters: ArrayLike, form: IccForm = "A,1", confidence: float = 0.95, weight: ArrayLike | None = None
) -> Interval:
    """Return the confidence interval of an intraclass correlation; parameters as for `icc`.

    With F = MSR/MSW (form 1) or MSR/MSE (form C,1) the limits are (F/q - 1)/(F/q + k - 1) and (F q' - 1)/(F q' + k - 1)
    for quantiles q, q' of F: exact for normal scores. Form A,1 uses the limits of the generalised pivot, since McGraw
    and Wong's interval with Satterthwaite's degrees of freedom is too short (`benchmarks/coverage/panels.py`). For
    missing ratings see `panel_interval`. People and raters are drawn at random; few raters carry little information
    about others, which widens the limits of A,1. Perfect agreement gives (1, 1). The limits contain the value itself at
    every confidence; the lower limit is -inf if the mean of the raters has no lower limit.

    References
    ----------
    K. O. McGraw and S. P. Wong (1996), Forming inferences about some intraclass correlation coefficients,
    Psychological Methods 1, table 7. K. Gilder, N. Ting, L. Tian, J. C. Cappelleri and R. C. Hanumara (2007),
    Confidence intervals on intraclass correlation coefficients in a balanced two-factor random design, Journal of
    Statistical Planning and Inference 137.

    Examples
    --------
    >>> judges = [9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]
    >>> [round(float(limit), 2) for limit in icc_interval(*judges)]
    [0.03, 0.74]
    """
    if ratings.has_gaps(raters):
        value = icc(*raters, form=form, weight=weight)
        limits = panels.panel_interval(panels.panel_of(*raters, weight=weight), form, confidence)
        low, high = np.minimum(limits.low, value), np.maximum(limits.high, value)
    else:
        low, high = mean_squares(*raters, weight=weight).interval(form, confidence)
    return Interval(ratings.plain(low), ratings.plain(high))


def _f_quantile(top: FloatArray, bottom: FloatArray, confidence: float) -> FloatArray:
    from scipy.special import fdtri

    usable = (np.asarray(top) > 0) & (np.asarray(bottom) > 0) & np.isfinite(bottom) & np.isfinite(top)
    top, bottom = np.where(usable, top, 1.0), np.where(usable, bottom, 1.0)
    quantile = fdtri(top, bottom, 1.0 - tail_share(confidence))
    return np.asarray(np.where(usable, np.maximum(quantile, 1.0), np.nan))  # at 1 the limit is the value itself


@dataclass(frozen=True)
class ScoreMoments:
    """Means and variances (divided by n) of two raters' scores and of their difference, as arrays of one shape.

    Attributes
    ----------
    n
        The number of people.
    mean_first, mean_second
        Mean scores.
    variance_first, variance_second, variance_error
        Variances of the scores and of second - first.
    mean_error
        Mean of second - first.

    Examples
    --------
    >>> moments = score_moments([0.0, 1.0], [0.0, 0.5])
    >>> float(moments.mean_squared_error()), float(moments.variance_first)
    (0.125, 0.25)
    """

    n: FloatArray
    mean_first: FloatArray
    mean_second: FloatArray
    variance_first: FloatArray
    variance_second: FloatArray
    variance_error: FloatArray
    mean_error: FloatArray

    def mean_squared_error(self) -> FloatArray:
        """Return the mean of (second - first)²."""
        return np.asarray(self.variance_error + self.mean_error**2)

    def mean_squares(self) -> MeanSquares:
        """Return the mean squares MSR = 2 var((x+y)/2), MSC = n mean(e)² / 2 and MSE = var(e) / 2, with n - 1."""
        with np.errstate(all="ignore"):
            unbiased = self.n / (self.n - 1.0)
            both = 2.0 * (self.variance_first + self.variance_second) - self.variance_error
            rows = np.where(ratings.is_rounding(both, self.variance_error), 0.0, both) * unbiased / 2.0
            columns = np.asarray(self.n * self.mean_error**2 / 2.0)
            return MeanSquares(self.n, 2, rows, columns, self.variance_error * unbiased / 2.0)

    def icc_a1(self) -> FloatArray:
        """Return ICC(A,1) of the two raters."""
        return self.mean_squares().icc("A,1")

    def concordance(self) -> FloatArray:
        """Return Lin's concordance, 2 s_xy / (s_x² + s_y² + (mean x - mean y)²)."""
        total = self.variance_first + self.variance_second + self.mean_error**2
        return np.asarray(1.0 - ratio(self.mean_squared_error(), total))

    def spread_adjusted(self, spread: ArrayLike) -> FloatArray:
        """Return 1 - mean squared error / V: an ICC with the same spread V for all groups."""
        return np.asarray(1.0 - ratio(self.mean_squared_error(), np.asarray(spread, dtype=np.float64)))

    def why_undefined(self, metric: str) -> ratings.Reasons:
        """Return the reason a metric is nan, or "" if it is defined.

        Examples
        --------
        >>> score_moments([0.5], [0.7]).why_undefined("icc_a1")
        array('one_person', dtype='<U17')
        """
        require_choice("metric", metric, SCORE_METRICS)
        if metric == "icc_a1":
            return self.mean_squares().why_undefined("A,1")
        checks: list[tuple[BoolArray, ratings.Undefined]] = [(np.asarray(self.n == 0), ratings.Undefined.NOBODY)]
        if metric == "concordance":
            checks.append((np.isnan(self.concordance()), ratings.Undefined.NO_SPREAD))
        return ratings.first_reason(checks)


SCORE_METRICS: dict[str, Callable[[ScoreMoments], FloatArray]] = {
    "icc_a1": ScoreMoments.icc_a1,
    "concordance": ScoreMoments.concordance,
    "mean_squared_error": ScoreMoments.mean_squared_error,
    "mean_error": lambda moments: moments.mean_second - moments.mean_first,
    **{name: attrgetter(name) for name in ("mean_first", "mean_second", "variance_first", "variance_second")},
}


def score_moments(first: ArrayLike, second: ArrayLike, *, weight: ArrayLike | None = None) -> ScoreMoments:
    """Return the moments of two raters' scores; people on the last axis, simulations on the others.

    Parameters
    ----------
    first, second
        Scores of shapes (..., people) that broadcast.
    weight
        The number of people each row represents, of a shape (..., people) that broadcasts; 1 by default.

    Examples
    --------
    >>> float(score_moments([0.0, 1.0, 1.0], [0.0, 0.0, 1.0]).mean_error.round(4))
    -0.3333
    """
    x, y = ratings.score_ratings(first, second)
    weights = ratings.people_weights(weight, x.shape[-1])
    n = np.asarray(weights.sum(axis=-1))
    mean_x, var_x = _mean_and_variance(x, weights, n)
    mean_y, var_y = _mean_and_variance(y, weights, n)
    mean_e, var_e = _mean_and_variance(y - x, weights, n)
    return ScoreMoments(*np.broadcast_arrays(n, mean_x, mean_y, var_x, var_y, var_e, mean_e))


def concordance(first: ArrayLike, second: ArrayLike, *, weight: ArrayLike | None = None) -> FloatArray:
    """Return Lin's concordance coefficient: 2 s_xy / (s_x² + s_y² + (mean x - mean y)²), moments divided by n.

    On 0/1 scores it is exactly Cohen's kappa. ICC(A,1) of two raters differs from it by terms of the order 1/n.

    Parameters
    ----------
    first, second
        Scores of shapes (..., people) that broadcast.
    weight
        The number of people each row represents; 1 by default.

    References
    ----------
    L. I. Lin (1989), A concordance correlation coefficient to evaluate reproducibility, Biometrics 45.

    Examples
    --------
    >>> float(concordance([1, 1, 0, 0], [1, 0, 0, 0]))
    0.5
    """
    return ratings.plain(score_moments(first, second, weight=weight).concordance())


def pooled_spread(scores: ArrayLike, *, weight: ArrayLike | None = None) -> FloatArray:
    """Return V = 2 var(scores), with variance divided by n: the mean squared difference of two people's scores.

    Examples
    --------
    >>> float(pooled_spread([0, 0, 1, 1]))
    0.5
    """
    return ratings.plain(2.0 * score_moments(scores, scores, weight=weight).variance_first)


def _mean_and_variance(values: FloatArray, weights: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean, squares = ratings.mean_and_squares(values, weights, np.abs(values).max(axis=-1, initial=0.0))
    with np.errstate(all="ignore"):
        return mean, np.asarray(squares / n)
