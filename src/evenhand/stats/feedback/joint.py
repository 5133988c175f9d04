"""The smallest gap between two groups that is compatible with their answers, over all labels at once.

Take a rate R_k = c_k / (c_k + x_k) whose c is known and whose x is not: lo_k <= x_k <= hi_k and sum x = X, because
every critic has exactly one label in mind. For equal opportunity c is the mass that agrees and x the mass that only
critics call k; for predictive equality c is the mass that disagrees and x the mass that neither calls k. Under
agreement feedback every such x is possible: by Hall's condition disagreements move freely except for x_k <= sum_{l !=
k} mu_l, which is hi_k.

A gap of at most t between group 1 and group 2 means a_k(x1_k) <= x2_k <= b_k(x1_k) for all k, with

    a(x) = max(lo2, c2 / (R1(x) + t) - c2),  b(x) = min(hi2, c2 / (R1(x) - t) - c2),

so it is possible if and only if min sum a(x1) <= X2 <= max sum b(x1): on the way from the one x1 to the other the sums
change continuously, and a <= b. Both functions rise. a is flat up to a kink, then concave, so the minimum is at x1 at
or above the kinks, and at a corner of that box cut by sum x1 = X1: all coordinates but one at an end. b is convex up to
a kink, then flat, so the same holds for the maximum, below the kinks. t is found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from evenhand.stats.types import BoolArray, FloatArray, IntArray

CORNER_LABELS = 10
"""With more labels there are too many corners; chords instead of the curves then give a slightly lower bound."""

Curve: TypeAlias = Callable[[FloatArray, int | slice], FloatArray]
"""curve(x (rows, n), k) at label k, or curve(x (rows, K, n), slice(None)) at all labels."""
Least: TypeAlias = Callable[[Curve, FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]
"""least(curve, low, high, total, the curve at both ends) -> (rows,): the smallest sum over the box cut by the total."""

_FEW_LABELS = 7
_PRECISION = 1e-10
_CHUNK_NUMBERS = 2_000_000
_ROUNDING = 1e-12


class Budget(NamedTuple):
    """The known parts of one group's rates c / (c + x), with the limits and the sum of x."""

    fixed: FloatArray
    """(..., K) c."""
    low: FloatArray
    """(..., K) the smallest x."""
    high: FloatArray
    """(..., K) the largest x."""
    total: FloatArray
    """(...) the sum of the x."""

    def at(self, rows: slice | IntArray) -> Budget:
        """Return the budget of the selected rows."""
        return Budget(*(field[rows] for field in self))


def smallest_gap(first: Budget, second: Budget, compared: BoolArray) -> FloatArray:
    """Return the smallest max_k abs(R_1k - R_2k) that the two budgets allow.

    Parameters
    ----------
    first, second
        The two groups, with axes (..., K). A group's masses may have any scale.
    compared
        (..., K) mask of the compared labels; the other labels still contribute to the sum.

    Returns
    -------
    (...) the smallest gap, to 1e-10; slightly too low with more than `CORNER_LABELS` labels.

    Examples
    --------
    Three labels, with which nine in ten and three in ten agree. The first two are compared:

    >>> one = Budget(np.array([0.8, 0.1, 0.0]), np.zeros(3), np.array([0.1, 0.1, 0.0]), np.array(0.1))
    >>> two = Budget(np.array([0.1, 0.1, 0.1]), np.zeros(3), np.array([0.2, 0.7, 0.5]), np.array(0.7))
    >>> round(float(smallest_gap(one, two, np.array([True, True, False]))), 4)
    0.1464
    """
    shape, labels = compared.shape[:-1], compared.shape[-1]
    first, second = (_flat(budget, compared.shape) for budget in (first, second))
    used = compared.reshape(-1, labels)
    result = np.empty(len(used))
    step = max(1, _CHUNK_NUMBERS // 2 ** min(labels, CORNER_LABELS))
    for start in range(0, len(used), step):
        rows = slice(start, start + step)
        result[rows] = _bisect(first.at(rows), second.at(rows), used[rows])
    return result.reshape(shape)


def _flat(budget: Budget, shape: tuple[int, ...]) -> Budget:
    """Return the budget with one leading axis, scaled so that c and x sum to 1."""
    rows = int(np.prod(shape[:-1]))
    fixed, low, high = (np.broadcast_to(field, shape).reshape(rows, shape[-1]) for field in budget[:3])
    total = np.broadcast_to(budget.total, shape[:-1]).reshape(rows)
    scale = fixed.sum(axis=-1) + total
    scale = np.where(scale > 0, scale, 1.0)[:, np.newaxis]
    return Budget(fixed / scale, low / scale, high / scale, total / scale[:, 0])


def _bisect(first: Budget, second: Budget, used: BoolArray) -> FloatArray:
    """Return the smallest possible gap t by bisection.

    With many corners, two quick checks narrow t first: chords below the curves give a lower limit, and the best corner
    of the chords gives an upper limit. All corners are checked only between these limits.
    """
    low, high = np.zeros(len(used)), np.ones(len(used))
    high[_feasible(first, second, _slack(low, used), _chord_corner)] = 0.0
    if used.shape[-1] > _FEW_LABELS:
        low, near = _narrow(first, second, used, low=low, high=high, least=_chords)
        if used.shape[-1] > CORNER_LABELS:
            return low
        high = np.where(_feasible(first, second, _slack(near, used), _chord_corner), near, high)
        high = _narrow(first, second, used, low=low, high=high, least=_chord_corner)[1]
    high = _narrow_by_corners(first, second, used, low, high)
    return np.where(high <= _PRECISION, 0.0, high)


def _narrow(
    first: Budget, second: Budget, used: BoolArray, *, low: FloatArray, high: FloatArray, least: Least
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper limits of t, narrowed by bisection to where `_feasible` changes."""
    low, high = low.copy(), high.copy()
    while (unfinished := np.flatnonzero(high - low > _PRECISION)).size:
        middle = (low[unfinished] + high[unfinished]) / 2
        fits = _feasible(first.at(unfinished), second.at(unfinished), _slack(middle, used[unfinished]), least)
        low[unfinished], high[unfinished] = (
            np.where(fits, low[unfinished], middle),
            np.where(fits, middle, high[unfinished]),
        )
    return low, high


def _narrow_by_corners(first: Budget, second: Budget, used: BoolArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the smallest possible t above `low` by enumerating all corners."""
    from evenhand.stats.compiled import narrow_gap

    one, two = (np.stack([budget.fixed, budget.low, budget.high], axis=1) for budget in (first, second))
    ends = np.stack([low, high])
    narrow_gap(one, two, np.stack([first.total, second.total]), np.ascontiguousarray(used), ends, _PRECISION)
    return np.asarray(ends[1])


def _slack(t: FloatArray, used: BoolArray) -> FloatArray:
    """Return (rows, K) the allowed difference of two rates; 2, which never binds, for labels not compared."""
    return np.where(used, t[:, np.newaxis], 2.0)


def _feasible(first: Budget, second: Budget, t: FloatArray, least: Least) -> BoolArray:
    """Return (rows,) whether `least` finds rate differences of at most t (rows, K) possible in all labels."""
    c1, total = first.fixed, first.total
    lowest, highest = _rate(second.fixed, second.high), _rate(second.fixed, second.low)
    low = np.maximum(first.low, _x_at(c1, highest + t, -np.inf))
    high = np.minimum(first.high, _x_at(c1, lowest - t, np.inf))
    fits = ((low <= high + _ROUNDING) & ~((c1 == 0) & (lowest > t + _ROUNDING))).all(axis=-1)
    fits &= (low.sum(axis=-1) <= total + _ROUNDING) & (high.sum(axis=-1) >= total - _ROUNDING)
    low = np.minimum(low, high)

    def a(x: FloatArray, k: int | slice) -> FloatArray:
        return _other(second, _rate(c1[:, k, np.newaxis], x) + t[:, k, np.newaxis], k, least=True)

    def minus_b(x: FloatArray, k: int | slice) -> FloatArray:
        return -_other(second, _rate(c1[:, k, np.newaxis], x) - t[:, k, np.newaxis], k, least=False)

    flat_until = np.clip(_x_at(c1, highest - t, np.inf), low, high)
    flat_from = np.clip(_x_at(c1, lowest + t, -np.inf), low, high)
    fits &= _minimum(a, flat_until, high, total, least=least) <= second.total + _ROUNDING
    fits &= -_minimum(minus_b, low, flat_from, total, least=least, at_least=False) >= second.total - _ROUNDING
    return np.asarray(fits)


def _rate(c: FloatArray, x: FloatArray) -> FloatArray:
    """Return c / (c + x), or 0 if c is 0."""
    return np.divide(c, c + x, out=np.zeros(np.broadcast_shapes(c.shape, x.shape)), where=c > 0)


def _x_at(c: FloatArray, rate: FloatArray, without: float) -> FloatArray:
    """Return the x with c / (c + x) = rate; inf if the rate is 0 or less, and `without` if c is 0."""
    defined = (c > 0) & (rate > 0)
    x = np.divide(c, rate, out=np.full(c.shape, np.inf), where=defined) - c
    return np.where(c > 0, x, without)


def _other(two: Budget, rate: FloatArray, k: int | slice, *, least: bool) -> FloatArray:
    """Return the second group's x at which its rate equals `rate`, clipped to its limits."""
    c, low, high = (field[:, k, np.newaxis] for field in two[:3])
    c = np.broadcast_to(c, rate.shape)
    defined = (c > 0) & (rate > 0)
    x = np.divide(c, rate, out=np.zeros(rate.shape), where=defined) - c
    free = np.broadcast_to(low, rate.shape) if least else np.broadcast_to(high, rate.shape)
    return np.where(c == 0, free, np.where(defined, np.clip(x, low, high), high))


def _minimum(
    curve: Curve, low: FloatArray, high: FloatArray, total: FloatArray, *, least: Least, at_least: bool = True
) -> FloatArray:
    """Return the smallest sum of curve(x_k) over the box with sum x = total, for curves concave in the box.

    The curves are flat outside the box, and x may lie there: below the low ends if their sum is at least the total,
    above the high ends (`at_least` False) if their sum is at most the total.
    """
    ends = curve(np.stack([low, high], axis=-1), slice(None))
    enough = low.sum(axis=-1) >= total if at_least else high.sum(axis=-1) <= total
    free = ends[..., 0 if at_least else 1].sum(axis=-1)
    return np.where(enough, free, least(curve, low, high, total, ends))


def _chords(_: Curve, low: FloatArray, high: FloatArray, total: FloatArray, ends: FloatArray) -> FloatArray:
    """Return the smallest sum of the curves' chords, a lower bound of the curves' sum."""
    slope, filled = _flattest_first(low, high, total, ends)
    return np.asarray(ends[..., 0].sum(axis=-1) + (slope * filled).sum(axis=-1))


def _chord_corner(curve: Curve, low: FloatArray, high: FloatArray, total: FloatArray, ends: FloatArray) -> FloatArray:
    """Return the sum of the curves at the corner with the smallest sum of chords."""
    filled = _flattest_first(low, high, total, ends)[1]
    return np.asarray(curve((low + filled)[..., np.newaxis], slice(None))[..., 0].sum(axis=-1))


def _flattest_first(
    low: FloatArray, high: FloatArray, total: FloatArray, ends: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the chords' slopes, and each x's distance above its low end when the flattest chords are filled first."""
    room = high - low
    rise = ends[..., 1] - ends[..., 0]
    slope = np.divide(rise, room, out=np.zeros_like(rise), where=room > 0)
    order = np.argsort(slope, axis=-1)
    in_order = np.take_along_axis(room, order, -1)
    remaining = (total - low.sum(axis=-1))[:, np.newaxis] - (np.cumsum(in_order, axis=-1) - in_order)
    filled = np.empty_like(room)
    np.put_along_axis(filled, order, np.clip(remaining, 0.0, in_order), -1)
    return slope, filled
