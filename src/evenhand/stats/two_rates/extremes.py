"""The outermost limit of many pairs, computed without the limits of all pairs."""

from __future__ import annotations

from typing import Literal

import numpy as np

from evenhand.stats.two_rates.comparison import RateComparison, Side
from evenhand.stats.types import BoolArray


def extreme_bound(
    pairs: RateComparison, side: Side, tail: float, which: Literal["smallest", "largest"], so_far: float
) -> float:
    """Return the smallest or largest bound of many pairs, or `so_far` if it lies beyond all of them.

    The one-sided test of a value shows whether a bound lies beyond it, and costs a hundredth of an exact bound. Bounds
    are therefore computed in the order of their asymptotic values, outermost first, and only while a test shows that
    another bound lies beyond. Pairs without limits are ignored.

    Examples
    --------
    >>> from evenhand.stats.two_rates import compare_rates
    >>> pairs = compare_rates([9, 5, 30], [50, 40, 90], [2, 4, 12], [30, 50, 80])
    >>> round(extreme_bound(pairs, "upper", 0.025, "largest", -1.0), 4)
    0.2607
    """
    left = pairs.only(np.flatnonzero(pairs.has_limits.ravel()))
    sign = 1.0 if which == "largest" else -1.0
    farthest = sign * so_far
    by_formula = ~left.is_exact
    if by_formula.any():
        bounds = left.only(np.flatnonzero(by_formula)).bound_at(side, tail)
        farthest = max(farthest, float((sign * bounds).max()))
        left = left.only(np.flatnonzero(~by_formula))
    guess = sign * left.asymptotic_bound(side, tail) if left.n_a.size else np.empty(0)
    while guess.size:
        beyond = _is_beyond(left, side, tail, which, sign * farthest)
        left, guess = left.only(beyond), guess[beyond]
        if guess.size:
            first = np.arange(guess.size) == np.argmax(guess)
            farthest = max(farthest, float((sign * left.only(first).bound_at(side, tail))[0]))
            left, guess = left.only(~first), guess[~first]
    return sign * farthest


def smallest_p(pairs: RateComparison) -> float:
    """Return the smallest p-value of many pairs without computing all p-values; nan if all are undefined.

    P-values are computed in the order of their asymptotic values, smallest first, and only while a test shows that a
    smaller one exists.

    Examples
    --------
    >>> from evenhand.stats.two_rates import compare_rates
    >>> pairs = compare_rates([9, 5, 30], [50, 40, 90], [2, 4, 12], [30, 50, 80])
    >>> bool(smallest_p(pairs) == pairs.p_value.min())
    True
    """
    left = pairs.higher_first()
    least, guess = np.nan, -left.score
    left, guess = left.only(~np.isnan(guess)), guess[~np.isnan(guess)]
    while guess.size:
        first = np.arange(guess.size) == np.argmin(guess)
        least = float(np.fmin(least, left.only(first).p_value[0]))
        left, guess = left.only(~first), guess[~first]
        beyond = left.is_rejected("lower", None, least / 2)
        left, guess = left.only(beyond), guess[beyond]
    return least


def _is_beyond(pairs: RateComparison, side: Side, tail: float, which: str, value: float) -> BoolArray:
    """Return whether each pair's bound lies beyond a value."""
    if not np.isfinite(value):
        return np.full(pairs.n_a.shape, value < 0 if which == "largest" else value > 0)
    is_rejected = pairs.is_rejected(side, value, tail)
    return np.asarray(is_rejected if (side == "lower") == (which == "largest") else ~is_rejected)
