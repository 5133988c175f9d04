"""Limits of the mean of numbers between 0 and 1 that hold for any distribution, and p-values that invert limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError
from evenhand.stats.types import FloatArray, Interval

_SMALLEST_P = 1e-15
_LEAST_TILT, _MOST_TILT = 1e-4, 36.0


def bounded_limits(values: ArrayLike, tail: float) -> Interval:
    """Return limits of a mean of numbers between 0 and 1, valid for any distribution and sample size.

    They are Gaffke's. One person with 1, the worst possible value, is added to the n; each of them is weighted by an
    exponential random number, so that the weighted mean is sum(E x) / sum(E); its quantile 1 - tail is the upper limit.
    The lower limit is the same for 1 - x. For numbers 0 and 1 they are Clopper and Pearson's; if nobody is hurt the
    upper limit is 1 - tail^(1/n), the smallest limit that can hold for all distributions; with many people they are the
    normal limits. That they hold for every distribution is a conjecture: proven for 0 and 1, without a counterexample
    in searches (Learned-Miller and Thomas), and measured here (`benchmarks/coverage/raters_level.py`).

    The weighted mean is above m if sum(E (x - m)) is above 0. With lambda from 0 to 1 its saddlepoint is explicit:
    weights 1 / (1 - lambda x) have the mean m. Its probability is that of a normal number above r = w + log(u / w) / w
    (Barndorff-Nielsen), which is accurate to half a percent of m, on the safe side.

    Parameters
    ----------
    values
        (n,) numbers from 0 to 1, independent.
    tail
        The chance beyond either limit, 0.025 for 95 % confidence.

    References
    ----------
    N. Gaffke (2005), Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
    variable, Mathematical Methods of Statistics 14. E. Learned-Miller and P. S. Thomas (2020), A new confidence
    interval for the mean of a bounded random variable, arXiv 1905.06208. O. E. Barndorff-Nielsen (1986), Inference on
    full or partial parameters based on the standardized signed log likelihood ratio, Biometrika 73.

    Examples
    --------
    >>> [round(float(limit), 4) for limit in bounded_limits(np.zeros(100), 0.025)]  # nobody of 100 is hurt
    [0.0, 0.0364]
    >>> [round(float(limit), 4) for limit in bounded_limits(np.repeat([0.0, 0.5], 100), 0.025)]
    [0.2143, 0.2889]
    """
    x = np.asarray(values, dtype=np.float64)
    if not (x.size and np.all((x >= 0) & (x <= 1))):
        raise EvenhandError("The values must be one or more numbers from 0 to 1.")
    distinct, counts = np.unique(x, return_counts=True)
    times, mean = counts.astype(np.float64), float(x.mean())
    low, high = 1.0 - _upper_of_mean(1.0 - distinct, times, tail), _upper_of_mean(distinct, times, tail)
    return Interval(np.asarray(min(low, mean)), np.asarray(max(high, mean)))


def _upper_of_mean(values: FloatArray, times: FloatArray, tail: float) -> float:
    from scipy.optimize import brentq
    from scipy.special import ndtri

    if values.min() == 1.0:
        return 1.0
    x, counts, goal = np.append(values, 1.0), np.append(times, 1.0), -float(ndtri(tail))

    def mean_and_root(s: float) -> tuple[float, float]:
        """Return m and r at lambda = 1 - exp(-s), computed from 1 - x, as x and m may be nearly 1."""
        complement = (1.0 - x) + x * np.exp(-s)  # 1 - lambda x
        weights = counts / complement
        short = float((weights * (1.0 - x)).sum() / weights.sum())  # 1 - m
        rest = short + (1.0 - short) * np.exp(-s)
        w = np.sqrt(max(2.0 * float((counts * np.log(complement / rest)).sum()), 0.0))
        u = -np.expm1(-s) * np.sqrt(float((counts * ((short - (1.0 - x)) / complement) ** 2).sum()))
        return 1.0 - short, float(w + np.log(u / w) / w) if w > 1e-4 else 0.0

    if mean_and_root(_LEAST_TILT)[1] >= goal:
        return mean_and_root(_LEAST_TILT)[0]
    if mean_and_root(_MOST_TILT)[1] <= goal:
        return 1.0
    return mean_and_root(brentq(lambda s: mean_and_root(s)[1] - goal, _LEAST_TILT, _MOST_TILT, xtol=1e-9))[0]


def p_of_tail(beyond: Callable[[float], float]) -> float:
    """Return twice the tail at which the limits reach 0, to six digits; `beyond` is their distance from it."""
    from scipy.optimize import brentq

    most, least = np.log(0.5), np.log(_SMALLEST_P / 2)
    if beyond(0.5) <= 0:
        return 1.0
    if beyond(_SMALLEST_P / 2) > 0:
        return _SMALLEST_P
    log_tail = brentq(lambda log_tail: beyond(float(np.exp(log_tail))), least, most, xtol=1e-7)
    return float(f"{2.0 * np.exp(log_tail):.6g}")  # further digits depend on the processor


def student_quantile(freedom: float, tail: float) -> float:
    """Return Student's quantile for this tail, which may be tiny; nan without degrees of freedom.

    Examples
    --------
    >>> round(student_quantile(10, 0.025), 4), round(student_quantile(float("inf"), 0.025), 4)
    (2.2281, 1.96)
    """
    from scipy.special import ndtri, stdtrit

    return -float(stdtrit(freedom, tail) if freedom < 1e9 else ndtri(tail)) if freedom > 0 else float("nan")
