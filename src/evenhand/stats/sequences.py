"""Limits that hold however often one looks: a confidence sequence of a rate, and intervals of period after period."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, xlog1py, xlogy

from evenhand.stats.intervals import clopper_pearson, mover_difference
from evenhand.stats.types import FloatArray, Interval

_HALVINGS = 60


def rate_sequence(successes: ArrayLike, trials: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return limits of a rate that hold at all times together, from the counts so far.

    All p with B(1 + S, 1 + n - S) / (p^S (1 - p)^(n - S)) < 1 / alpha: for a constant p the left side is a martingale
    that begins at 1, so that it ever reaches 1 / alpha with a chance of at most alpha (Ville 1939). Where the rate
    drifts they are limits of the mean of the rates so far (by simulation, `benchmarks/drift_level.py`), and must not be
    intersected over time.

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
    """Return the part of alpha that the k-th look may use, alpha / (k (k + 1)).

    However many looks there are, their parts add up to at most alpha.

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
    """Return the difference of two rates in every period, with limits that hold in all periods together.

    The k-th period has limits at the level `spent(alpha, k)`: exact ones of both rates (Clopper and Pearson), combined
    by MOVER. They need no rate to be constant, and hold for any number of periods that are still to come.

    Parameters
    ----------
    successes, trials, other_successes, other_trials
        (periods,) counts of the group and of the one it is compared with.
    alpha
        The chance that any period's limits miss.

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


def gap_drift(
    successes: ArrayLike, trials: ArrayLike, other_successes: ArrayLike, other_trials: ArrayLike, alpha: float
) -> tuple[FloatArray, Interval]:
    """Return how far the gap of every period is from that of the periods before it, with limits for all together.

    Before the k-th period the gap is the mean of the gaps so far, d = sum(w_j d_j) / sum(w_j) with the weights of
    Mantel and Haenszel, w_j = n_j m_j / (n_j + m_j): rates may move as long as they move together. The limits of
    d_k - d are by MOVER for a sum (Zou and Donner 2008) from exact limits of all rates at the level
    `spent(alpha, k - 1)`. Where the gap is the same in all periods, the chance that 0 ever lies outside is at most
    alpha, as far as MOVER holds (`benchmarks/drift_level.py`). The first period has none.

    Parameters
    ----------
    successes, trials, other_successes, other_trials
        (periods,) counts of the group and of the one it is compared with; a period without one of them has no limits.
    alpha
        The chance that a drift is told where there is none, at any time.

    Examples
    --------
    >>> change, limits = gap_drift([40, 38, 70], [100, 100, 100], [40, 40, 40], [100, 100, 100], 0.05)
    >>> change.round(2).tolist(), limits.low.round(2).tolist()
    ([nan, -0.02, 0.31], [nan, -0.25, 0.08])
    """
    a, n, b, m = (np.asarray(part, np.float64) for part in (successes, trials, other_successes, other_trials))
    change, low, high = (np.full(len(a), np.nan) for _ in range(3))
    usable = np.flatnonzero((n > 0) & (m > 0))
    for position, k in enumerate(usable[1:], start=1):
        some = usable[: position + 1]
        p, q = a[some] / n[some], b[some] / m[some]
        confidence = 1.0 - float(spent(alpha, position))
        of_p, of_q = clopper_pearson(p, n[some], confidence), clopper_pearson(q, m[some], confidence)
        weight = n[some] * m[some] / (n[some] + m[some])
        share = np.append(-weight[:-1] / weight[:-1].sum(), 1.0)
        change[k] = share @ (p - q)
        # Each rate reaches down where its share in the change is positive, and up where it is negative.
        down = [np.where(share > 0, p - of_p.low, of_p.high - p), np.where(share > 0, of_q.high - q, q - of_q.low)]
        up = [np.where(share > 0, of_p.high - p, p - of_p.low), np.where(share > 0, q - of_q.low, of_q.high - q)]
        low[k] = change[k] - np.sqrt(sum((share * part) @ (share * part) for part in down))
        high[k] = change[k] + np.sqrt(sum((share * part) @ (share * part) for part in up))
    return change, Interval(low, high)
