"""Closed-form confidence intervals for rates, means, areas under a curve, and comparisons of two values.

All functions broadcast. Undefined results are nan and unbounded results inf, without a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError, require_at_least, require_share
from evenhand.stats.types import BoolArray, FloatArray, Interval, Summary

_Confidence = TypeVar("_Confidence", float, FloatArray)
_MORE_PEOPLE = 2.0  # chosen by simulation: benchmarks/coverage/parity_coverage.py


def tail_share(confidence: _Confidence) -> _Confidence:
    """Return the share (1 - confidence) / 2 beyond either limit of a two-sided interval.

    Examples
    --------
    >>> round(tail_share(0.95), 6)
    0.025
    """
    if not isinstance(confidence, np.ndarray):
        require_share("confidence", confidence)
    elif confidence.size:
        require_share("confidence", float(confidence.min()))
        require_share("confidence", float(confidence.max()))
    return (1.0 - confidence) / 2.0


def normal_quantile(confidence: float = 0.95) -> float:
    """Return z with P(abs(Z) <= z) = confidence for a standard normal Z.

    Examples
    --------
    >>> round(normal_quantile(0.95), 6)
    1.959964
    """
    from scipy.special import ndtri

    return float(-ndtri(tail_share(confidence)))


def t_quantile(df: ArrayLike, confidence: float | FloatArray = 0.95) -> FloatArray:
    """Return t with P(abs(T) <= t) = confidence for Student's T; df may be fractional or inf.

    Examples
    --------
    >>> t_quantile([1, 10, float("inf"), 0], 0.95).round(4)
    array([12.7062,  2.2281,  1.96  ,     nan])
    """
    from scipy.special import ndtri, stdtrit

    freedom, tail = _floats(df), tail_share(_floats(confidence))
    usable = (freedom > 0) & (freedom < 1e9)
    student = -stdtrit(np.where(usable, freedom, 1.0), tail)
    return np.asarray(np.where(usable, student, np.where(freedom >= 1e9, -ndtri(tail), np.nan)))


def normal_confidence(df: ArrayLike, confidence: float | FloatArray = 0.95) -> FloatArray:
    """Return the confidence at which normal limits are as wide as Student's t; unchanged if df is unknown.

    Examples
    --------
    >>> normal_confidence([9, float("inf"), float("nan")], 0.95).round(4)
    array([0.9763, 0.95  , 0.95  ])
    """
    from scipy.special import ndtr

    t = t_quantile(df, confidence)
    same = np.minimum(1.0 - 2.0 * ndtr(-t), np.nextafter(1.0, 0.0))
    return np.where(np.isnan(t), confidence, same)


def bonferroni(confidence: float, comparisons: int) -> float:
    """Return the confidence of each of m intervals for joint confidence: 1 - (1 - confidence) / m.

    References
    ----------
    O. J. Dunn (1961), Multiple comparisons among means, Journal of the American Statistical Association 56.

    Examples
    --------
    >>> round(bonferroni(0.95, 10), 12)
    0.995
    """
    require_at_least("comparisons", comparisons, 1)
    return 1.0 - 2.0 * tail_share(confidence) / comparisons


def wilson(
    rate: ArrayLike, trials: ArrayLike, confidence: float | FloatArray = 0.95, df: ArrayLike | None = None
) -> Interval:
    """Return Wilson's score interval of a rate.

    The limits are (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n). The low limit of a rate of 0 is exactly 0, and
    the high limit of a rate of 1 is exactly 1.

    Parameters
    ----------
    rate
        Observed share p, in [0, 1].
    trials
        Number of trials n, which may be fractional (an effective sample size). With 0 trials the limits are nan.
    confidence
        Two-sided confidence.
    df
        Degrees of freedom of an estimated number of trials; t then replaces z.

    References
    ----------
    E. B. Wilson (1927), Probable inference, Journal of the American Statistical Association 22.

    Examples
    --------
    >>> [round(float(limit), 4) for limit in wilson(0.02, 200)]
    [0.0078, 0.0503]
    """
    p, n = _floats(rate), _floats(trials)
    z2 = np.square(normal_quantile(float(confidence)) if df is None else t_quantile(df, confidence))
    with np.errstate(all="ignore"):
        defined = (n > 0) & (p >= 0) & (p <= 1)
        shrink = 1.0 + z2 / n
        centre = (p + z2 / (2 * n)) / shrink
        half = np.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n))) / shrink
        low = np.where(p == 0, 0.0, np.clip(centre - half, 0.0, 1.0))
        high = np.where(p == 1, 1.0, np.clip(centre + half, 0.0, 1.0))
    return Interval(np.where(defined, low, np.nan), np.where(defined, high, np.nan))


def clopper_pearson(rate: ArrayLike, trials: ArrayLike, confidence: float | FloatArray = 0.95) -> Interval:
    """Return the exact (Clopper-Pearson) interval of a rate, with at most (1 - confidence) / 2 beyond each limit.

    Wilson's interval has its nominal coverage on average over rates; far out in the tails, as for simultaneous
    intervals, its error probability near rates of 0 and 1 is many times the nominal one. The error probability of the
    exact interval never exceeds the nominal one. Trials may be fractional (an effective size).

    References
    ----------
    C. J. Clopper and E. S. Pearson (1934), The use of confidence or fiducial limits illustrated in the case of the
    binomial, Biometrika 26.

    Examples
    --------
    >>> [round(float(limit), 4) for limit in clopper_pearson(0.1, 50)]
    [0.0333, 0.2181]
    """
    from scipy.special import betaincinv

    p, n, tail = np.broadcast_arrays(_floats(rate), _floats(trials), tail_share(_floats(confidence)))
    with np.errstate(all="ignore"):
        yes = p * n
        no = n - yes
        low = np.where(yes > 0, betaincinv(yes, no + 1, tail), 0.0)
        high = np.where(no > 0, betaincinv(yes + 1, no, 1 - tail), 1.0)
        defined = (n > 0) & ~np.isnan(p)
    return Interval(np.where(defined, low, np.nan), np.where(defined, high, np.nan))


def effective_trials(rate: ArrayLike, variance: ArrayLike, kish: ArrayLike) -> FloatArray:
    """Return the effective number of trials of a weighted rate, p(1-p) / variance, at most Kish's n.

    Kish's n is (sum w)² / sum w². It is also returned where the design effect cannot be estimated: if the rate is 0 or
    1, or the variance is 0. It is the maximum because the variance rests on the weights of the rarer outcome: if a few
    rows with small weights happen to have it, p and its variance are both too small, the number of trials too large,
    and the interval misses the true rate on the low side too often (`benchmarks/coverage/parity_coverage.py` shows
    both). In return, if the weights of the two outcomes truly differ so that the design is better than Kish's n, the
    interval is longer than necessary.

    Parameters
    ----------
    rate
        Weighted share p.
    variance
        Its linearised variance sum w² (x - p)² / (sum w)², without n / (n - 1), so that equal weights give n.
    kish
        Kish's effective sample size.

    References
    ----------
    E. L. Korn and B. I. Graubard (1998), Confidence intervals for proportions with small expected number
    of positive counts estimated from survey data, Survey Methodology 24. L. Kish (1965), Survey Sampling.

    Examples
    --------
    >>> effective_trials([0.5, 0.5, 0.0], [0.0025, 0.005, 0.0], kish=80)
    array([80., 50., 80.])
    """
    p, v, most = np.broadcast_arrays(_floats(rate), _floats(variance), _floats(kish))
    with np.errstate(all="ignore"):
        estimable = (p > 0) & (p < 1) & (v > 0)
        return np.asarray(np.where(estimable, np.minimum(p * (1 - p) / v, most), most))


def student_t(mean: ArrayLike, stderr: ArrayLike, df: ArrayLike, confidence: float | FloatArray = 0.95) -> Interval:
    """Return the interval mean ± t(df) stderr.

    References
    ----------
    Student (1908), The probable error of a mean, Biometrika 6.

    Examples
    --------
    >>> [round(float(limit), 4) for limit in student_t(0.4, 0.05, 9)]
    [0.2869, 0.5131]
    """
    centre = _floats(mean)
    with np.errstate(all="ignore"):
        half = t_quantile(df, confidence) * _floats(stderr)
        return Interval(np.asarray(centre - half), np.asarray(centre + half))


def logit_t(
    value: ArrayLike,
    stderr: ArrayLike,
    df: ArrayLike,
    confidence: float | FloatArray = 0.95,
    bounds: tuple[float, float] = (0, 1),
) -> Interval:
    """Return Student's t interval on the logit scale for a value between bounds, such as an AUC.

    With b = v - lowest, r = b / (highest - v) and h = t(df) stderr (1 / b + 1 / (highest - v)), the interval
    on the scale of log r is log r ± h, and the limits lowest + b (1 + r) / (r + exp(±h)). Without a highest
    value r = 0, and this is the interval on the log scale. Limits stay within the bounds, and the longer arm
    is on the side of the longer tail. The limits are nan if the value is at a bound or the standard error is 0.

    Parameters
    ----------
    value, stderr
        Estimate and standard error.
    df
        Degrees of freedom; inf for the normal interval.
    confidence
        Two-sided confidence.
    bounds
        The lowest and highest possible value; the highest may be inf.

    References
    ----------
    M. S. Pepe (2003), The Statistical Evaluation of Medical Tests for Classification and Prediction, 5.2.

    Examples
    --------
    >>> [round(float(limit), 4) for limit in logit_t(0.9, 0.03, df=19)]
    [0.8175, 0.9476]
    >>> [round(float(limit), 4) for limit in logit_t(2.0, 0.5, df=float("inf"), bounds=(0.0, float("inf")))]
    [1.2253, 3.2646]
    """
    lowest, highest = bounds
    if not (np.isfinite(lowest) and lowest < highest):
        raise EvenhandError(
            "`bounds` must be a finite lowest and a higher highest value; got {bounds!r}.", bounds=bounds
        )
    with np.errstate(all="ignore"):
        below, above = _floats(value) - lowest, highest - _floats(value)
        half = t_quantile(df, confidence) * _floats(stderr) * (1.0 / below + 1.0 / above)
        odds = below / above
        low, high = (lowest + below * (1.0 + odds) / (odds + np.exp(h)) for h in (half, -half))
        defined = (below > 0) & (above > 0) & (half > 0)
    return Interval(*(np.where(defined, np.clip(limit, lowest, highest), np.nan) for limit in (low, high)))


def steady_stderr(
    value: ArrayLike, stderr: ArrayLike, people: ArrayLike, bounds: tuple[float, float] = (0, 1)
) -> FloatArray:
    """Return the standard error of a bounded mean as if two more people were at the bounds.

    With b and a the distances to the lowest and the highest value and s² = n stderr² the variance of one person,
    it is sqrt((n s² + 2 a b) / (n + 2) / n), where a b, the largest possible variance for this mean, is the variance of
    people at the two bounds. A small sample that happens to contain no extreme people has a mean too near to the bound
    and too small a standard error; the two additional people correct for this, and are negligible for large n. A
    standard error of 0 stays 0, because without variation the data do not show the error of the mean.

    Examples
    --------
    >>> steady_stderr(0.05, [0.015, 0.0], 20).round(4)
    array([0.0205, 0.    ])
    """
    with np.errstate(all="ignore"):
        n, error = _floats(people), _floats(stderr)
        largest = (_floats(value) - bounds[0]) * (bounds[1] - _floats(value))
        steady = np.sqrt((n * n * error**2 + _MORE_PEOPLE * largest) / (n + _MORE_PEOPLE) / n)
        return np.asarray(np.where(error > 0, np.maximum(steady, error), error))


def bounded_mean(
    value: ArrayLike,
    stderr: ArrayLike,
    people: ArrayLike,
    confidence: float | FloatArray = 0.95,
    bounds: tuple[float, float] = (0, 1),
    *,
    df: ArrayLike | None = None,
) -> Interval:
    """Return the interval of a mean of bounded scores, or of an AUC.

    The interval is Student's t on the logit scale (`logit_t`) with `steady_stderr`. If all n people are at one bound,
    one limit is exact: a score in [0, 1] with mean m is above 0 with probability at least m, so if all scores are 0, m
    is at most 1 - tail^(1/n). For an AUC, n is the number of people with the rarer outcome: with an AUC of m, n pairs
    of different people are all in order with probability at most m^n. The limits are nan if all scores are equal but
    not at a bound.

    Parameters
    ----------
    value, stderr
        The mean and its standard error.
    people
        The number of people; with survey weights, Kish's effective number.
    confidence
        Two-sided confidence.
    bounds
        The lowest and highest possible score.
    df
        Degrees of freedom of the standard error; by default the number of people minus 1.

    Examples
    --------
    >>> [round(float(limit), 4) for limit in bounded_mean(0.05, 0.015, 20)]
    [0.0209, 0.115]
    >>> [round(float(limit), 4) for limit in bounded_mean(0.0, 0.0, 20)]
    [0.0, 0.1684]
    """
    degrees = _floats(people) - 1 if df is None else df
    limits = logit_t(value, steady_stderr(value, stderr, people, bounds), degrees, confidence, bounds)
    with np.errstate(all="ignore"):
        reach = (bounds[1] - bounds[0]) * (1.0 - tail_share(_floats(confidence)) ** (1.0 / _floats(people)))
    ends = [(_floats(value) == bound) & (_floats(people) > 0) for bound in bounds]
    low = np.where(ends[0], bounds[0], np.where(ends[1], bounds[1] - reach, limits.low))
    return Interval(low, np.where(ends[0], bounds[0] + reach, np.where(ends[1], bounds[1], limits.high)))


def mover_difference(
    a: ArrayLike, a_limits: Interval, b: ArrayLike, b_limits: Interval, correlation: ArrayLike = 0.0
) -> Interval:
    """Return the interval of a - b from the separate limits of a and b (MOVER).

    The interval is [d - sqrt((a - l_a)² + (u_b - b)² - 2 r (a - l_a) (u_b - b)), d + sqrt((u_a - a)² + (b - l_b)² - 2 r
    (u_a - a) (b - l_b))], d = a - b, with the correlation r of the two estimates. With Wilson limits and r = 0 this is
    Newcombe's method 10.

    References
    ----------
    G. Y. Zou and A. Donner (2008), Construction of confidence limits about effect measures, Statistics in
    Medicine 27. G. Y. Zou (2007), Toward using confidence intervals to compare correlations, Psychological Methods 12,
    for correlated estimates. R. G. Newcombe (1998), Interval estimation for the difference between independent
    proportions, Statistics in Medicine 17.

    Examples
    --------
    >>> limits = mover_difference(56 / 70, wilson(56 / 70, 70), 48 / 80, wilson(48 / 80, 80))
    >>> [round(float(limit), 4) for limit in limits]
    [0.0524, 0.3339]
    """
    x, y = _floats(a), _floats(b)
    with np.errstate(all="ignore"):
        low = (x - y) - _side(x - a_limits.low, b_limits.high - y, correlation)
        high = (x - y) + _side(a_limits.high - x, y - b_limits.low, correlation)
    return Interval(np.asarray(low), np.asarray(high))


def _side(a: FloatArray, b: FloatArray, correlation: ArrayLike) -> FloatArray:
    """Return sqrt(a² + b² - 2 r a b)."""
    r = _floats(correlation)
    return np.asarray(np.hypot(a - _product(r, b), b * np.sqrt(1.0 - r * r)))


def _product(correlation: ArrayLike, other: FloatArray) -> FloatArray:
    """Return a correlation times a distance; 0 for correlation 0, even at infinite distance."""
    r = _floats(correlation)
    return np.asarray(np.where(r == 0, 0.0, r * other))


def mover_ratio(
    a: ArrayLike, a_limits: Interval, b: ArrayLike, b_limits: Interval, correlation: ArrayLike = 0.0
) -> Interval:
    """Return the interval of a / b from the separate limits of two nonnegative quantities (MOVER-R).

    The low limit R solves (a - R b)² = (a - l_a)² + R² (u_b - b)² - 2 r R (a - l_a) (u_b - b), the high limit (a - R
    b)² = (u_a - a)² + R² (b - l_b)² - 2 r R (u_a - a) (b - l_b), with the correlation r of the two estimates. With
    symmetric limits these are Fieller's limits, cut at 0. The high limit is inf when l_b <= 0, the low limit 0 when l_a
    <= 0. The low limit is also 0 when l_b < 0: Fieller's set is then all R outside (r1, r2), r1 < 0 < r2, which would
    leave [r2, inf); but a nonnegative b with such a limit is far from normal, and r2 is too high too often
    (`benchmarks/coverage/parity_coverage.py`, "weak"). To get r2, set l_b to 0. A ratio 0 / 0 and a ratio of negative
    numbers have no interval.

    References
    ----------
    A. Donner and G. Y. Zou (2012), Closed-form confidence intervals for functions of the normal mean and
    standard deviation, Statistical Methods in Medical Research 21. E. C. Fieller (1954), Some problems in
    interval estimation, Journal of the Royal Statistical Society B 16.

    Examples
    --------
    >>> limits = mover_ratio(0.1, wilson(0.1, 200), 0.2, wilson(0.2, 200))
    >>> [round(float(limit), 4) for limit in limits]
    [0.3049, 0.8198]
    """
    x, y = _floats(a), _floats(b)
    lower_a, upper_a = _floats(a_limits.low), _floats(a_limits.high)
    lower_b, upper_b = _floats(b_limits.low), _floats(b_limits.high)
    unknown = _any_nan(x, y, lower_a, upper_a, lower_b, upper_b)
    with np.errstate(all="ignore"):
        top, bottom = lower_a * (2 * x - lower_a), upper_b * (2 * y - upper_b)
        middle = x * y - _product(correlation, (x - lower_a) * (upper_b - y))
        root = np.sqrt(np.maximum(middle**2 - top * bottom, 0.0))
        low = np.where((lower_a > 0) & (lower_b >= 0), top / (middle + root), 0.0)
        top, bottom = upper_a * (2 * x - upper_a), lower_b * (2 * y - lower_b)
        middle = x * y - _product(correlation, (upper_a - x) * (y - lower_b))
        root = np.sqrt(np.maximum(middle**2 - top * bottom, 0.0))
        high = np.where(lower_b > 0, (middle + root) / bottom, np.inf)
        defined = ~unknown & (x >= 0) & (y >= 0) & (x + y > 0)
    return Interval(np.where(defined, low, np.nan), np.where(defined, high, np.nan))


def mover(function: Callable[..., FloatArray], values: Sequence[FloatArray], limits: Sequence[Interval]) -> Interval:
    """Return the interval of a function of independent estimates from their separate limits (MOVER).

    The low limit is f - sqrt(sum of d²), with d the decrease of f when one estimate moves to the limit that lowers f
    and all others are fixed; the high limit likewise. For a difference this is `mover_difference`; for a monotone
    function of one estimate, it is the function of the limits.

    Parameters
    ----------
    function
        A function with one array argument for each estimate, monotone in each.
    values, limits
        The estimates and their limits.

    References
    ----------
    G. Y. Zou and A. Donner (2008), Construction of confidence limits about effect measures, Statistics in Medicine 27.

    Examples
    --------
    >>> rates, sizes = [np.array(0.8), np.array(0.6)], (70, 80)
    >>> limits = mover(lambda a, b: (a + b) / 2, rates, [wilson(p, n) for p, n in zip(rates, sizes)])
    >>> [round(float(limit), 4) for limit in limits]
    [0.623, 0.7632]
    """
    below = above = np.zeros(())
    with np.errstate(all="ignore"):
        centre = function(*values)
        for i, interval in enumerate(limits):
            moved = [function(*values[:i], end, *values[i + 1 :]) for end in interval]
            below = np.hypot(below, centre - np.fmin(np.fmin(*moved), centre))
            above = np.hypot(above, np.fmax(np.fmax(*moved), centre) - centre)
        unknown = _any_nan(*(end for interval in limits for end in interval))
        return Interval(np.where(unknown, np.nan, centre - below), np.where(unknown, np.nan, centre + above))


def welch_difference(a: Summary, b: Summary, confidence: float = 0.95) -> Interval:
    """Return Welch's interval of a difference of means, with Satterthwaite's degrees of freedom.

    Parameters
    ----------
    a, b
        The mean of each group, its standard error and its degrees of freedom.
    confidence
        Two-sided confidence.

    References
    ----------
    B. L. Welch (1947), The generalization of Student's problem when several different population variances
    are involved, Biometrika 34.

    Examples
    --------
    >>> [round(float(limit), 4) for limit in welch_difference((0.6, 0.04, 19), (0.5, 0.03, 9))]
    [-0.0025, 0.2025]
    """
    mean_a, stderr_a, df_a = map(_floats, a)
    mean_b, stderr_b, df_b = map(_floats, b)
    stderr, df = _satterthwaite(stderr_a, df_a, stderr_b, df_b)
    return student_t(mean_a - mean_b, stderr, df, confidence)


def _satterthwaite(
    stderr_a: FloatArray, df_a: FloatArray, stderr_b: FloatArray, df_b: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the standard error of a difference and its degrees of freedom."""
    with np.errstate(all="ignore"):
        stderr = np.hypot(stderr_a, stderr_b)
        share_a, share_b = (stderr_a / stderr) ** 2, (stderr_b / stderr) ** 2
        df = 1.0 / (share_a**2 / df_a + share_b**2 / df_b)
        return stderr, np.asarray(np.where(stderr == 0, df_a + df_b, df))


def _any_nan(*arrays: FloatArray) -> BoolArray:
    """Return a mask of positions where any array is nan."""
    unknown = np.zeros((), dtype=np.bool_)
    for array in arrays:
        unknown = unknown | np.isnan(array)
    return np.asarray(unknown)


def _floats(values: ArrayLike) -> FloatArray:
    return np.asarray(values, dtype=np.float64)
