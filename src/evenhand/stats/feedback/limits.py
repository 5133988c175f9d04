"""Confidence intervals for a value known only to lie between two estimated bounds.

If all answers in a rate are equal, resampling shows no error; `slacks` then returns exact limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenhand.errors import require_choice
from evenhand.stats.feedback.answers import Answers, Feedback
from evenhand.stats.feedback.crossed import Resampled
from evenhand.stats.feedback.gaps import ordered_pairs
from evenhand.stats.feedback.metrics import FeedbackMetric, Rates
from evenhand.stats.intervals import tail_share
from evenhand.stats.types import FloatArray

Method = Literal["stoye", "imbens_manski"]

ROUNDING = 1e-12
"""Smaller standard errors are 0 up to rounding."""
_EDGE = 1e-12


@dataclass(frozen=True)
class SetInterval:
    """The confidence interval of a value between two estimated bounds.

    Attributes
    ----------
    low, high
        The limits, clipped to the possible values; nan if neither bound varies, so that their errors are unknown.
    below, above
        Distances from the bounds to the limits, in standard errors.
    """

    low: float
    high: float
    below: float
    above: float


def set_interval(
    lower: float,
    upper: float,
    lower_stderr: float,
    upper_stderr: float,
    correlation: float = 0.0,
    *,
    confidence: float = 0.95,
    possible: tuple[float, float] = (0.0, 1.0),
    method: Method = "stoye",
) -> SetInterval:
    """Return the interval [lower - c_l se_l, upper + c_u se_u] that covers any value between the true bounds.

    If the bounds are far apart, the value can miss the interval on one side only; if they are near, on either side. So
    c is the one-sided quantile (1.645 at 95 %) for a wide set, and the two-sided one (1.96) for a set of width 0.

    - 'imbens_manski': c_l = c_u = c with Phi(c + D / max(se)) - Phi(-c) = confidence, D = upper - lower.
    - 'stoye': the shortest interval with P(-c_l <= z, y <= c_u + D / se_u) and P(-c_l - D / se_l <= y, z <= c_u)
      both at least the confidence, for standard normal z and y with the correlation of the two bounds.

    Both methods require jointly normal bounds that are ordered in every sample, as bounds from the same answers are;
    then they are also valid at and near width 0 (Stoye's lemma 3).

    Parameters
    ----------
    lower, upper
        Estimated bounds, lower <= upper.
    lower_stderr, upper_stderr
        Their standard errors.
    correlation
        The correlation of the two estimated bounds; only 'stoye' uses it.
    confidence
        The probability of covering each value between the bounds.
    possible
        The smallest and largest possible value, to which limits are clipped.
    method
        'stoye' or 'imbens_manski'.

    References
    ----------
    G. W. Imbens and C. F. Manski (2004), Confidence intervals for partially identified parameters, Econometrica 72.
    J. Stoye (2009), More on confidence intervals for partially identified parameters, Econometrica 77.

    Examples
    --------
    >>> wide = set_interval(0.2, 0.6, 0.02, 0.02)
    >>> round(wide.low, 4), round(wide.high, 4), round(wide.below, 3)
    (0.1671, 0.6329, 1.645)
    >>> point = set_interval(0.4, 0.4, 0.02, 0.02, correlation=1.0)
    >>> round(point.low, 4), round(point.high, 4), round(point.below, 3)
    (0.3608, 0.4392, 1.96)
    """
    require_choice("method", method, ("stoye", "imbens_manski"))
    below, above = critical_values(
        lower,
        upper,
        lower_stderr=lower_stderr,
        upper_stderr=upper_stderr,
        correlation=correlation,
        confidence=confidence,
        method=method,
    )
    if np.isnan(below):
        everything = lower <= possible[0] and upper >= possible[1]
        low, high = possible if everything else (float("nan"), float("nan"))
        return SetInterval(low, high, below, above)
    low, high = max(lower - below * lower_stderr, possible[0]), min(upper + above * upper_stderr, possible[1])
    return SetInterval(low, high, below, above)


def critical_values(
    lower: float,
    upper: float,
    *,
    lower_stderr: float,
    upper_stderr: float,
    correlation: float,
    confidence: float,
    method: Method = "stoye",
) -> tuple[float, float]:
    """Return the distances of the limits from the two bounds in standard errors; nan if neither bound varies.

    Examples
    --------
    >>> [
    ...     round(c, 3)
    ...     for c in critical_values(0.40, 0.41, lower_stderr=0.02, upper_stderr=0.03, correlation=0.9, confidence=0.95)
    ... ]
    [1.868, 1.738]
    """
    from scipy.special import ndtr, ndtri

    spread = max(lower_stderr, upper_stderr)
    if not (np.isfinite(lower) and np.isfinite(upper) and np.isfinite(spread) and spread > ROUNDING):
        return float("nan"), float("nan")
    covered = max(1.0 - 2.0 * tail_share(confidence), 0.51)  # with less, limits would lie within the bounds
    width = max(upper - lower, 0.0)
    if method == "imbens_manski":
        c = float(_least_root(lambda x: ndtr(x + width / spread) - ndtr(-x) - covered, np.zeros(1))[0])
        return c, c
    stderrs = (lower_stderr, upper_stderr)
    apart = [width / s if s > ROUNDING else (np.inf if width > 0 else 0.0) for s in stderrs]
    low, high = float(ndtri(covered)), float(ndtri(1.0 - (1.0 - covered) / 50.0))
    for _ in range(3):
        below = np.linspace(low, high, 101)
        above = _needed_above(below, apart, correlation, covered)
        best = int(np.argmin(lower_stderr * below + upper_stderr * above))
        step = float(below[1] - below[0])
        low, high = max(low, float(below[best]) - step), float(below[best]) + step
    return float(below[best]), float(above[best])


def _needed_above(below: FloatArray, apart: list[float], correlation: float, covered: float) -> FloatArray:
    """Return the smallest c_u for each c_l under Stoye's two constraints; `apart` is D / se_l and D / se_u."""
    from scipy.special import ndtri

    least = np.full(below.shape, ndtri(covered))
    return np.maximum(
        _least_root(lambda c: _both_below(below, c + apart[1], -correlation) - covered, least),
        _least_root(lambda c: _both_below(below + apart[0], c, -correlation) - covered, least),
    )


def _least_root(rising: Callable[[FloatArray], FloatArray], low: FloatArray) -> FloatArray:
    """Return the smallest c from `low` to 12 at which an increasing function is nonnegative, or 12 if none is."""
    high = np.full(low.shape, 12.0)
    for _ in range(50):
        middle = (low + high) / 2
        enough = rising(middle) >= 0
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _both_below(h: FloatArray, k: FloatArray, correlation: float) -> FloatArray:
    """Return P(Z <= h, Y <= k) for correlated standard normal Z and Y, by Owen's T function.

    References
    ----------
    D. B. Owen (1956), Tables for computing bivariate normal probabilities, Annals of Mathematical Statistics 27.
    """
    from scipy.special import ndtr, owens_t

    h, k = np.minimum(h, 40.0), np.minimum(k, 40.0)
    if correlation <= -1.0 + 1e-9:
        return np.maximum(ndtr(h) + ndtr(k) - 1.0, 0.0)
    if correlation >= 1.0 - 1e-9:
        return np.asarray(ndtr(np.minimum(h, k)))
    rest = np.sqrt(1.0 - correlation**2)
    to_k, to_h = (k - correlation * h) / (h * rest), (h - correlation * k) / (k * rest)
    return np.asarray((ndtr(h) + ndtr(k)) / 2.0 - owens_t(h, to_k) - owens_t(k, to_h))  # both are positive


def slacks(cells: Rates, n: FloatArray, tail: float) -> FloatArray:
    """Return the extra error of each difference of `differences` whose sample rates are 0 or 1.

    If all n answers agree, the rate of disagreement is at most 1 - tail^(1/n), the exact limit of Clopper and Pearson.
    The slacks of the two rates of a difference are added as squares (Newcombe's method 10).

    Parameters
    ----------
    cells
        The rates.
    n
        (..., groups, columns) the effective sample size of each rate; inf if it is known exactly.
    tail
        The probability of missing the true value beyond a limit.

    References
    ----------
    C. J. Clopper and E. S. Pearson (1934), The use of confidence or fiducial limits, Biometrika 26.
    R. G. Newcombe (1998), Interval estimation for the difference between independent proportions, Statistics in
    Medicine 17.

    Examples
    --------
    >>> from evenhand.stats.feedback import rates
    >>> found = rates([[[9, 0], [3, 1]], [[4, 0], [5, 1]]], Feedback(2), "calibration")
    >>> slacks(found, np.array([[9.0, 4.0], [4.0, 6.0]]), 0.025).round(3)  # all 4 agree: at least 0.398 would
    array([0.602, 0.   , 0.336, 0.   ])
    """
    with np.errstate(divide="ignore"):
        most = 1.0 - tail ** (1.0 / n)
    first, second = ordered_pairs(cells.lower.shape[-2])
    above = np.where(cells.upper <= _EDGE, most, 0.0)[..., first, :]
    below = np.where(cells.lower >= 1.0 - _EDGE, most, 0.0)[..., second, :]
    slack = np.hypot(above, below)
    return np.asarray(slack.reshape(*slack.shape[:-2], -1))


def effective_sizes(answers: Answers, metric: FeedbackMetric, resampled: Resampled) -> FloatArray:
    """Return (groups, columns) the effective sample size of each rate, min(critics, cases).

    Answers of one critic, or on one case, may be fully dependent, so they count as one. Critics or cases that are not
    resampled are ignored.
    """
    if metric == "statistical_parity" and resampled == "critics":
        return np.full(answers.shape[:2], np.inf)  # the labels of all cases are known exactly
    by_critic, by_case, masses = answers.counted
    critics, cases = _numbers(by_critic, metric, heads=True), _numbers(by_case, metric)
    if metric == "statistical_parity" or resampled == "cases":
        fewest = cases
    else:
        fewest = critics if resampled == "critics" else np.minimum(critics, cases)
    return np.minimum(fewest, numbers_of(masses, answers.feedback, metric))


def numbers_of(masses: FloatArray, feedback: Feedback, metric: FeedbackMetric) -> FloatArray:
    """Return (..., groups, columns) the number of answers behind each rate that is 0 or 1."""
    agree = (masses * feedback.agreeing).sum(axis=-1)
    total = masses.sum(axis=-1)
    others = agree.sum(axis=-1, keepdims=True) - agree
    if metric in ("equal_opportunity", "overall_misclassification"):  # critics with this label in mind
        disagree = total - agree
        return np.asarray(np.where(agree > 0, agree, disagree.sum(axis=-1, keepdims=True) - disagree))
    if metric == "predictive_equality":  # critics with another label in mind
        return np.asarray(np.where(others > 0, others, total - agree))
    return _numbers(total, metric)


def _numbers(counts: FloatArray, metric: FeedbackMetric, *, heads: bool = False) -> FloatArray:
    """Return the counts (..., groups, K) per column of a metric; with `heads`, of critics from (critics, groups, K)."""
    whole = counts.max(axis=-1, keepdims=True) if heads else counts.sum(axis=-1, keepdims=True)
    if heads:
        counts, whole = counts.sum(axis=0), whole.sum(axis=0)
    if metric in ("accuracy_equality", "tolerant_accuracy"):
        numbers = whole
    elif metric in ("calibration", "tolerant_calibration"):
        numbers = counts
    elif metric in ("equal_opportunity", "overall_misclassification"):
        numbers = np.where(counts > 0, counts, whole)
    else:
        numbers = np.broadcast_to(whole, counts.shape)
    return np.asarray(numbers)
