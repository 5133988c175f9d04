"""Time-uniform limits: a confidence sequence of a rate, and intervals for successive periods."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats.intervals import clopper_pearson, mover_difference
from evenhand.stats.types import FloatArray, IntArray, Interval

_HALVINGS = 60


def rate_sequence(successes: ArrayLike, trials: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return time-uniform limits of a rate from cumulative counts; they are valid at all times together.

    With S successes in n trials, the limits contain all p with B(1 + S, 1 + n - S) / (p^S (1 - p)^(n - S)) < 1 / alpha,
    where B is the beta function and alpha = 1 - confidence. For a constant p the left side is a martingale that starts
    at 1, so the probability that it ever reaches 1 / alpha is at most alpha (Ville 1939). If the rate drifts, they are
    limits of the mean rate up to each time (checked by simulation, `benchmarks/coverage/drift_level.py`), and must not
    be intersected over time.

    References
    ----------
    H. Robbins (1970), Statistical methods related to the law of the iterated logarithm, Annals of Mathematical
    Statistics 41. S. R. Howard, A. Ramdas, J. McAuliffe and J. Sekhon (2021), Time-uniform, nonparametric,
    nonasymptotic confidence sequences, Annals of Statistics 49.

    Examples
    --------
    >>> limits = rate_sequence([3, 30], [10, 100])
    >>> [[round(float(end), 3) for end in side] for side in limits]
    [[0.037, 0.169], [0.733, 0.457]]
    """
    from scipy.special import betaln, xlog1py, xlogy

    s, n = np.broadcast_arrays(np.asarray(successes, np.float64), np.asarray(trials, np.float64))
    bound = betaln(1 + s, 1 + n - s) + np.log(1 - confidence)

    def outside(p: FloatArray) -> FloatArray:
        return np.asarray(xlogy(s, p) + xlog1py(n - s, -p) < bound)

    with np.errstate(all="ignore"):
        middle = np.where(n > 0, s / np.maximum(n, 1), 0.5)
    ends = []
    for end in (np.zeros_like(middle), np.ones_like(middle)):
        far, near = end.copy(), middle.copy()
        for _ in range(_HALVINGS):
            halfway = (far + near) / 2
            out = outside(halfway)
            far, near = np.where(out, halfway, far), np.where(out, near, halfway)
        ends.append(np.where(outside(end), near, end))
    return Interval(*ends)


def spent(alpha: float, position: ArrayLike) -> FloatArray:
    """Return the part of alpha available to the k-th look, alpha / (k (k + 1)).

    The parts of any number of looks add up to at most alpha.

    Examples
    --------
    >>> spent(0.05, [1, 2, 3]).round(4).tolist()
    [0.025, 0.0083, 0.0042]
    """
    k = np.asarray(position, np.float64)
    return np.asarray(alpha / (k * (k + 1)))


def period_gaps(
    successes: ArrayLike, trials: ArrayLike, other_successes: ArrayLike, other_trials: ArrayLike, alpha: float
) -> tuple[FloatArray, Interval]:
    """Return the difference of two rates in every period, with limits valid in all periods together.

    The k-th period has limits at the level `spent(alpha, k)`: exact limits of both rates (Clopper and Pearson),
    combined by MOVER. They are valid for changing rates and any number of future periods.

    Parameters
    ----------
    successes, trials, other_successes, other_trials
        (periods,) counts of the group and of its reference group.
    alpha
        The probability that any period's limits miss the true difference.

    Examples
    --------
    >>> gap, limits = period_gaps([40, 70], [100, 100], [40, 40], [100, 100], 0.05)
    >>> gap.round(2).tolist(), limits.low.round(2).tolist()
    ([0.0, 0.3], [-0.16, 0.11])
    """
    a, n, b, m = (np.asarray(part, np.float64) for part in (successes, trials, other_successes, other_trials))
    confidence = 1.0 - spent(alpha, 1 + np.arange(len(a)))
    with np.errstate(all="ignore"):
        p, q = a / n, b / m
        limits = mover_difference(p, clopper_pearson(p, n, confidence), q, clopper_pearson(q, m, confidence))
    return np.asarray(p - q), limits


class GapChanges(NamedTuple):
    """Changes of a gap, for every last observed period (`look`) and every possible start of a change (`start`).

    Parameters
    ----------
    look, start
        Indices of periods: the last observed period, and the first period after the change.
    change
        The mean gap from `start` to `look`, minus the mean gap before `start`.
    limits
        The limits of the changes, valid for all changes together.
    """

    look: IntArray
    start: IntArray
    change: FloatArray
    limits: Interval

    @property
    def nearest(self) -> FloatArray:
        """The distance of the limits from a change of 0; negative if they include it."""
        return np.maximum(self.limits.low, -self.limits.high)


def gap_drift(
    successes: ArrayLike, trials: ArrayLike, other_successes: ArrayLike, other_trials: ArrayLike, alpha: float
) -> GapChanges:
    """Return the change of the gap before and after every possible start, at every look, with joint limits.

    After the k-th further period, the last s periods are compared with all earlier periods, for s = 1 to k: a single
    period shows a jump, several periods together a lasting change. Both sides are means of the periods' gaps, sum(w_j
    d_j) / sum(w_j) with the weights of Mantel and Haenszel, w_j = n_j m_j / (n_j + m_j): both rates may change as long
    as they change together. Each rate has exact limits at the effective number of people, (sum w)² / sum(w_j² / n_j)
    (Korn and Graubard 1998), and MOVER combines the limits of the four rates (Zou and Donner 2008). The level of each
    comparison is alpha / (k² s (s + 1)), which sums to at most alpha over all s and all looks. If the gap is equal in
    all periods, the probability that any limits exclude 0 is at most alpha, as far as MOVER is accurate
    (`benchmarks/coverage/drift_level.py`).

    Parameters
    ----------
    successes, trials, other_successes, other_trials
        (periods,) counts of the group and of its reference group; a period where either has no people is ignored.
    alpha
        The probability of reporting a drift at any time if there is none.

    References
    ----------
    E. L. Korn and B. I. Graubard (1998), Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data, Survey Methodology 24. G. Y. Zou and A. Donner (2008), Construction of confidence
    limits about effect measures, Statistics in Medicine 27.

    Examples
    --------
    >>> found = gap_drift([40, 38, 70], [100, 100, 100], [40, 40, 40], [100, 100, 100], 0.05)
    >>> found.look.tolist(), found.start.tolist(), found.change.round(2).tolist(), found.limits.low.round(2).tolist()
    ([1, 2, 2], [1, 1, 2], [-0.02, 0.14, 0.31], [-0.25, -0.13, 0.07])
    """
    counts = [np.asarray(part, np.float64) for part in (successes, trials, other_successes, other_trials)]
    usable = np.flatnonzero((counts[1] > 0) & (counts[3] > 0))
    a, n, b, m = (part[usable] for part in counts)
    weight = n * m / (n + m)
    look, before = np.tril_indices(len(usable), -1)
    start = before + 1
    level = spent(alpha, look - before) / np.maximum(look, 1) ** 2

    def mean_gap(first: IntArray | int, end: IntArray) -> tuple[FloatArray, Interval]:
        def total(part: FloatArray) -> FloatArray:
            so_far = np.append(0.0, np.cumsum(part))
            return np.asarray(so_far[end] - so_far[first])

        sides: list[Any] = []
        for hits, people in ((a, n), (b, m)):
            rate = np.clip(total(weight * hits / people) / total(weight), 0.0, 1.0)
            worth = total(weight) ** 2 / total(weight**2 / people)
            sides += [rate, clopper_pearson(rate, worth, 1.0 - level)]
        return sides[0] - sides[2], mover_difference(*sides)

    (old, of_old), (new, of_new) = mean_gap(0, start), mean_gap(start, look + 1)
    return GapChanges(usable[look], usable[start], new - old, mover_difference(new, of_new, old, of_old))
