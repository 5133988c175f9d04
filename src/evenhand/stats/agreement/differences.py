"""Confidence limits and p-values of the difference between two groups' agreement."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats.intervals import mover_difference
from evenhand.stats.types import FloatArray, Interval, Summary

_SMALLEST_P = 1e-15
_HALVINGS = 40


def ac1_limits(agreement: float, trials: float, chance: float, stderr: float, tail: float) -> Interval:
    """Return confidence limits of one group's Gwet AC1 = 1 - D / (1 - chance), D = 1 - agreement.

    Clopper and Pearson's limits of D are divided by 1 - chance. Because the agreement by chance is estimated too, the
    distances from the value are multiplied by the ratio of the standard error of AC1 to its standard error with a known
    chance, sqrt(D (1 - D) / n) / (1 - chance), if this ratio is above 1. Limits exist for any number of people and
    disagreements, so no sample is dropped for lack of limits. Their exact coverage, summed over all tables of 15 to 50
    people, is at least 0.96 (`benchmarks/coverage/agreement_coverage.py`); a bootstrap of tables with five
    disagreements has 0.85.

    Parameters
    ----------
    agreement, trials
        Observed agreement, and the effective number of people.
    chance
        Agreement by chance, sum p (1 - p) / (q - 1) over the shares p of q ratings.
    stderr
        Standard error of AC1; nan or 0 if unknown.
    tail
        The share beyond either limit.

    References
    ----------
    K. L. Gwet (2008), Computing inter-rater reliability and its variance in the presence of high agreement, British
    Journal of Mathematical and Statistical Psychology 61.

    Examples
    --------
    >>> [round(float(limit), 3) for limit in ac1_limits(1.0, 30, 0.255, float("nan"), 0.025)]
    [0.845, 1.0]
    """
    low, high = _exact(1.0 - agreement, trials, tail)
    stderr_known_chance = np.sqrt(agreement * (1.0 - agreement) / trials) / (1.0 - chance)
    widening = max(1.0, stderr / stderr_known_chance) if stderr_known_chance > 0 and stderr > 0 else 1.0
    value = 1.0 - (1.0 - agreement) / (1.0 - chance)
    ends = (value + widening * (1.0 - limit / (1.0 - chance) - value) for limit in (high, low))
    return Interval(*(np.clip(end, -1.0, 1.0) for end in ends))


def coefficient_limits(value: ArrayLike, stderr: ArrayLike, df: ArrayLike, tail: ArrayLike) -> Interval:
    """Return the wider of the two intervals that `coefficient_difference` computes for each coefficient.

    Examples
    --------
    >>> [round(float(limit), 3) for limit in coefficient_limits(0.8, 0.05, 99, 0.025)]
    [0.672, 0.899]
    """
    plain, logs = (limits(value, stderr, df, tail) for limits in (_t_limits, _log_limits))
    return Interval(np.minimum(plain.low, logs.low), np.maximum(plain.high, logs.high))


def coefficient_difference(
    a: Summary, b: Summary, tail: ArrayLike, unseen: Sequence[ArrayLike] = (), correlation: ArrayLike = 0.0
) -> Interval:
    """Return confidence limits of the difference a - b of two coefficients of agreement with maximum 1.

    Each coefficient is 1 - D, where D is the observed over the expected disagreement. Two intervals are formed by MOVER
    from Student's t limits of each coefficient, a ± t se and, on the scale of log D, 1 - (1 - a) exp(±t se / (1 - a));
    on either side the wider limit is returned. The first interval alone is too narrow when a small group is compared
    with a large one, the second when errors have heavy tails. The limits are nan if a standard error is 0 or agreement
    is perfect.

    Parameters
    ----------
    a, b
        Each coefficient, below 1, with its standard error and its degrees of freedom, people - 1.
    tail
        The probability beyond either limit: one number, or one for each difference.
    unseen
        For scores, how far below its lower limit each coefficient may lie because of large errors missing from its
        sample (`unseen_tail`).
    correlation
        The correlation of the two estimates.

    References
    ----------
    G. Y. Zou and A. Donner (2008), Construction of confidence limits about effect measures, Statistics in Medicine 27.

    Examples
    --------
    >>> [round(float(limit), 3) for limit in coefficient_difference((0.8, 0.05, 99), (0.6, 0.08, 99), 0.025)]
    [0.013, 0.41]
    """
    plain, logs = (
        [
            Interval(interval.low - np.asarray(more), interval.high)
            for interval, more in zip(limits, unseen or (0.0, 0.0), strict=True)
        ]
        for limits in (
            [_t_limits(*first_part, tail) for first_part in (a, b)],
            [_log_limits(*first_part, tail) for first_part in (a, b)],
        )
    )
    first, second = (
        mover_difference(a[0], first_part, b[0], other, correlation) for first_part, other in (plain, logs)
    )
    return Interval(np.minimum(first.low, second.low), np.maximum(first.high, second.high))


def shared_shape_stderr(a: Summary, b: Summary) -> tuple[FloatArray, FloatArray]:
    """Return two coefficients' standard errors, raised to those implied by errors of one common shape.

    Each coefficient is 1 - D, and h = n se² / D² is the relative variance of a person's disagreement. With heavy-tailed
    errors, a small group that by luck lacks extreme errors looks both better and more certain than it is; the other
    group shows how extreme errors can be. With h averaged over the people of both groups, se is at least D sqrt(h / n).
    The unit of the errors does not matter: a group with half the errors keeps half the standard error.

    Parameters
    ----------
    a, b
        Each coefficient, below 1, with its standard error and the number of people.

    Examples
    --------
    >>> small, large = shared_shape_stderr((0.9, 0.005, 50), (0.8, 0.02, 500))
    >>> round(float(small), 3), round(float(large), 3)
    (0.03, 0.02)
    """
    first, second = ([np.asarray(values, dtype=np.float64) for values in group] for group in (a, b))
    with np.errstate(all="ignore"):
        relative = [n * (se / (1.0 - value)) ** 2 for value, se, n in (first, second)]
        common = (first[2] * relative[0] + second[2] * relative[1]) / (first[2] + second[2])
        least = [(1.0 - value) * np.sqrt(common / n) for value, _, n in (first, second)]
    return np.asarray(np.fmax(first[1], least[0])), np.asarray(np.fmax(second[1], least[1]))


_SHOW_THEIR_OWN, _UNSEEN_PEOPLE, _UNSEEN_SIZE = 500, 5.0, 3.0


def unseen_tail(
    value: ArrayLike, people: ArrayLike, largest: ArrayLike, other: ArrayLike, tail: ArrayLike
) -> FloatArray:
    """Return the possible fall of a coefficient of scores due to large errors missing from its sample.

    The coefficient is 1 - D, where D is a mean over n people. A small group that by luck lacks extreme errors looks
    better than it is, and its own numbers do not show that. A sample of fewer than 500 people may miss the share 1 -
    tail^(1/n) of its group (the exact limit for an event never observed); each missed person is assumed to have three
    times the largest squared error of both groups. A sample of 500 or more is assumed to miss five people with the
    group's own largest error: for errors whose squares fall off as x^-1.5 (Student's t with 3 degrees of freedom), the
    part of the mean beyond the largest of n errors is 3 / n of its size on average, and for normal errors about 1 / n.
    The three numbers are chosen by simulation (`benchmarks/coverage/agreement_coverage.py`): errors of equal variance,
    normal in one group and in the other Student's t, log-normal, or with one in fifty seven times, one in a hundred ten
    times as large.

    Parameters
    ----------
    value, people
        The coefficient, below 1, and its number of people.
    largest, other
        The largest squared error in this group and in the other, over the mean of this group.
    tail
        The share beyond either limit.

    Examples
    --------
    >>> unseen_tail(0.9, [50, 499, 500], 8.0, 10.0, 0.025).round(3)
    array([0.213, 0.022, 0.008])
    """
    n, size = np.asarray(people, dtype=np.float64), np.asarray(largest, dtype=np.float64)
    missed = _UNSEEN_SIZE * (1.0 - np.asarray(tail, dtype=np.float64) ** (1.0 / n)) * np.maximum(size, other)
    excess = np.where(n >= _SHOW_THEIR_OWN, _UNSEEN_PEOPLE / n * size, missed)
    return np.asarray(excess * (1.0 - np.asarray(value, dtype=np.float64)))


def p_of_equality(limits: Callable[[FloatArray], Interval], shape: tuple[int, ...]) -> FloatArray:
    """Return the p-value of each difference: twice the tail at which its limits just include 0.

    An interval of confidence c therefore excludes 0 exactly if p < 1 - c. The p-value is nan if there are no limits.

    Parameters
    ----------
    limits
        A function from tails of this shape to limits, which must widen as the tails shrink.
    shape
        The shape of the differences.

    Examples
    --------
    >>> def limits(tail):
    ...     return coefficient_difference(([0.9, 0.7], 0.05, 59), ([0.7, 0.7], 0.05, 59), tail)
    >>> p_of_equality(limits, (2,)).round(3)
    array([0.044, 1.   ])
    """
    low, high = np.full(shape, np.log(_SMALLEST_P / 2)), np.full(shape, np.log(0.5))
    with np.errstate(all="ignore"):
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            interval = limits(np.exp(middle))
            without = (interval.low > 0) | (interval.high < 0)
            low, high = np.where(without, low, middle), np.where(without, middle, high)
        widest = limits(np.full(shape, _SMALLEST_P / 2))
    return np.asarray(np.where(np.isnan(widest.low) | np.isnan(widest.high), np.nan, 2 * np.exp(high)))


def _exact(share: ArrayLike, trials: ArrayLike, tail: ArrayLike) -> Interval:
    """Return Clopper and Pearson's limits of a share p of n trials, widened where needed to include p."""
    from scipy.special import betaincinv

    p, n, tails = np.broadcast_arrays(*(np.asarray(array, dtype=np.float64) for array in (share, trials, tail)))
    with np.errstate(all="ignore"):
        yes, no = p * n, (1 - p) * n
        low = np.where(yes > 0, betaincinv(yes, no + 1, tails), 0.0)
        high = np.where(no > 0, betaincinv(yes + 1, no, 1 - tails), 1.0)
        defined = (n > 0) & (p >= 0) & (p <= 1)
    return Interval(np.where(defined, np.minimum(low, p), np.nan), np.where(defined, np.maximum(high, p), np.nan))


def _half(stderr: ArrayLike, df: ArrayLike, tail: ArrayLike) -> FloatArray:
    from scipy.special import stdtrit

    spread, freedom = np.asarray(stderr, dtype=np.float64), np.asarray(df, dtype=np.float64)
    with np.errstate(all="ignore"):
        half = -stdtrit(np.where(freedom > 0, freedom, np.nan), np.asarray(tail, dtype=np.float64)) * spread
    return np.asarray(np.where(spread > 0, half, np.nan))


def _t_limits(value: ArrayLike, stderr: ArrayLike, df: ArrayLike, tail: ArrayLike) -> Interval:
    centre, half = np.asarray(value, dtype=np.float64), _half(stderr, df, tail)
    return Interval(np.asarray(centre - half), np.asarray(centre + half))


def _log_limits(value: ArrayLike, stderr: ArrayLike, df: ArrayLike, tail: ArrayLike) -> Interval:
    with np.errstate(all="ignore"):
        short = 1.0 - np.asarray(value, dtype=np.float64)
        half = np.where(short > 0, _half(stderr, df, tail) / short, np.nan)
        return Interval(1.0 - short * np.exp(half), 1.0 - short * np.exp(-half))
