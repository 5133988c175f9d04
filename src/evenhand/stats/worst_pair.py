"""The largest gap among several groups: its limits, and tests that all groups are equal.

The largest of several noisy gaps is biased away from equality, and so is every resample of it. The limits are therefore
built from the limits of each group, which `Limits` returns at a confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import sqrt
from typing import Literal

import numpy as np

from evenhand.errors import require_at_least
from evenhand.stats.intervals import mover_difference, mover_ratio, tail_share
from evenhand.stats.types import FloatArray, Interval

Limits = Callable[[float], Interval]
"""The limits of each group alone, at a confidence; they must be nested."""

_FARTHEST = 7.0  # normal quantiles: beyond, 1 - confidence has too few digits. The smallest p-value is 2.6e-12.
_STEPS, _BISECTIONS = 10, 24
_TAIL = 1e-10  # below, 1 - probability of the range has too few digits, and Bonferroni is as sharp


def widest_difference(near: Interval, far: Interval | None = None) -> tuple[float, float]:
    """Return the interval of the largest absolute difference from intervals of all pairs' differences.

    The lower end is the largest max(l, -h, 0) of `near`, the upper end the largest max(abs(l), abs(h)) of `far`. It
    covers the true value if all intervals of `near` cover together and the interval of the true worst pair in `far`
    covers (see `worst_pair`). If any pair has no interval, the far end is unknown and both limits are nan.

    Examples
    --------
    >>> widest_difference(Interval(np.array([-0.1, 0.05]), np.array([0.2, 0.3])))
    (0.05, 0.3)
    """
    far = near if far is None else far
    if far.low.size == 0 or np.isnan([*near, *far]).any():
        return float("nan"), float("nan")
    nearest = float(np.maximum(near.low, -near.high).max())
    return max(0.0, nearest), float(np.maximum(np.abs(far.low), np.abs(far.high)).max())


def narrowest_ratio(near: Interval, far: Interval | None = None) -> tuple[float, float]:
    """Return the interval of the smallest min(r, 1/r) from intervals of all pairs' ratios r.

    The upper end, near equality, is the smallest min(h, 1/l) of `near`, but at most 1; the lower end is the smallest
    min(l, 1/h) of `far`. If any pair has no interval, the far end is unknown and both limits are nan.

    Examples
    --------
    >>> narrowest_ratio(Interval(np.array([0.8, 0.5]), np.array([1.25, 0.9])))
    (0.5, 0.9)
    """
    far = near if far is None else far
    if far.low.size == 0 or np.isnan([*near, *far]).any():
        return float("nan"), float("nan")
    with np.errstate(all="ignore"):
        farthest = np.minimum(far.low, 1.0 / far.high).min()
        nearest = np.minimum(near.high, 1.0 / near.low).min()
    return float(farthest), min(float(nearest), 1.0)


def worst_pair(
    value: FloatArray, limits: Limits, kind: Literal["difference", "ratio"], confidence: float
) -> tuple[float, float]:
    """Return limits of the largest difference, or of the smallest ratio, among several groups.

    With theta = max(p_i - p_j) over all ordered pairs and alpha = 1 - confidence:

    - far end: the largest of the pairs' upper limits, each at alpha / 2 *on its own*. With (i, j) the true worst pair,
      P(theta > U) <= P(p_i - p_j > U_ij) <= alpha / 2, so no correction for the number of pairs is needed
      (intersection-union; Berger 1982).
    - near end: the largest of the pairs' lower limits, valid for all pairs *together* at the level of the studentised
      range (Tukey), since the data choose the pair. Its error probability is up to alpha where all groups are equal;
      there theta = 0, and the far end cannot miss. Far from equality it is about alpha / 2.

    The pairs' limits are computed from the groups' limits (MOVER). For ratios, the end far from 1 likewise uses
    separate limits.

    Parameters
    ----------
    value
        Each group's value.
    limits
        A function from a confidence to each group's separate limits; exact limits for rates.
    kind
        'difference' or 'ratio'.
    confidence
        The confidence of the interval.

    References
    ----------
    Berger, R. L. (1982), Multiparameter hypothesis testing and acceptance sampling, Technometrics 24. V. Chernozhukov,
    S. Lee and A. M. Rosen (2013), Intersection bounds, Econometrica 81. J. W. Tukey (1953), The problem of multiple
    comparisons. A. J. Hayter (1984), A proof of the conjecture that the Tukey-Kramer multiple comparisons procedure is
    conservative, Annals of Statistics 12.

    Examples
    --------
    >>> from evenhand.stats.intervals import clopper_pearson
    >>> rate = np.array([0.50, 0.52, 0.60])
    >>> low, high = worst_pair(rate, lambda c: clopper_pearson(rate, 500, c), "difference", 0.95)
    >>> round(low, 3), round(high, 3)
    (0.025, 0.162)
    """
    joint = range_confidence(confidence, len(value))
    near, far = (_pairs(value, limits(level), kind) for level in (joint, confidence))
    return widest_difference(near, far) if kind == "difference" else narrowest_ratio(near, far)


def _pairs(value: FloatArray, limits: Interval, kind: str) -> Interval:
    """Return the limits of all pairs' differences or ratios from the groups' limits."""
    i, j = np.triu_indices(len(value), 1)
    sides = value[i], Interval(limits.low[i], limits.high[i]), value[j], Interval(limits.low[j], limits.high[j])
    if kind == "difference":
        return mover_difference(*sides)
    ratio_limits = mover_ratio(*sides)
    # For two zeros nothing is known, but that must not widen the limits over many pairs.
    empty = (value[i] == 0) & (value[j] == 0) & ~np.isnan(sides[1].low + sides[3].low)
    return Interval(np.where(empty, 0.0, ratio_limits.low), np.where(empty, np.inf, ratio_limits.high))


@lru_cache(maxsize=1024)
def range_confidence(confidence: float, groups: int) -> float:
    """Return the confidence of each pair's limits at which all pairs' limits hold together (Tukey).

    With q the quantile of the range of `groups` standard normal numbers, it is P(abs(Z) <= q / sqrt(2)): for two groups
    the confidence itself, for more groups a little less than Bonferroni's.

    Examples
    --------
    >>> round(range_confidence(0.95, 2), 6), round(range_confidence(0.95, 10), 6)
    (0.95, 0.998442)
    """
    require_at_least("groups", groups, 2)
    least, most = 0.0, _FARTHEST + 3.0
    for _ in range(60):
        middle = (least + most) / 2
        least, most = (middle, most) if range_p(middle, groups) > 2 * tail_share(confidence) else (least, middle)
    from scipy.special import ndtr

    return 1.0 - 2.0 * float(ndtr(-most))


def range_p(z: float, groups: int) -> float:
    """Return the p-value of the largest pairwise z: P(range of `groups` standard normal numbers > z sqrt(2)).

    P(range <= q) = k times the integral of phi(x) (Phi(x) - Phi(x - q))^(k - 1).

    Examples
    --------
    >>> round(range_p(1.959964, 2), 6), round(range_p(1.959964, 10), 4)
    (0.05, 0.6274)
    """
    from scipy.special import ndtr

    one_pair = 2.0 * float(ndtr(-z))
    pairs = groups * (groups - 1) / 2
    x = np.linspace(-8.5, 8.5, 341)
    density = np.exp(-(x**2) / 2) / sqrt(2 * np.pi)
    within = groups * float(np.sum(density * (ndtr(x) - ndtr(x - z * sqrt(2))) ** (groups - 1))) * (x[1] - x[0])
    beyond = 1.0 - float(within)
    return min(1.0, max(beyond, one_pair) if beyond > _TAIL else pairs * one_pair)


def equality_p_values(value: FloatArray, limits: Callable[[FloatArray], Interval], sizes: Sequence[int]) -> FloatArray:
    """Return the smallest alpha at which `worst_pair` excludes equality, for several sets of groups.

    Parameters
    ----------
    value
        The values of all groups, set after set.
    limits
        A function from one confidence per group to each group's separate limits.
    sizes
        The number of groups in each set.

    Examples
    --------
    >>> from evenhand.stats.intervals import clopper_pearson
    >>> rate = np.array([0.50, 0.52, 0.60, 0.30, 0.34])
    >>> equality_p_values(rate, lambda c: clopper_pearson(rate, 500, c), [3, 2]).round(4)
    array([0.0049, 0.1909])
    """
    last = np.cumsum(sizes)
    sets = [slice(end - size, end) for end, size in zip(last, sizes, strict=True)]
    apart = [np.subtract.outer(value[members], value[members]) for members in sets]

    def margin(confidence: FloatArray) -> FloatArray:
        group_limits = limits(np.repeat(confidence, sizes))
        below, above = value - group_limits.low, group_limits.high - value
        rooms = (np.hypot.outer(below[members], above[members]) for members in sets)
        return np.array([(gaps - room).max() for gaps, room in zip(apart, rooms, strict=True)])

    z = _farthest_z(margin, (len(sizes),))
    unknown = np.isnan(margin(np.full(len(sizes), 0.95)))
    p_values = [
        np.nan if is_unknown else range_p(float(quantile), size)
        for quantile, size, is_unknown in zip(z, sizes, unknown, strict=True)
    ]
    return np.array(p_values)


def smallest_alpha(
    margin: Callable[[FloatArray], FloatArray], shape: tuple[int, ...], *, jumps: bool = False
) -> FloatArray:
    """Return the smallest alpha at which intervals exclude a value, from 2.6e-12 to 1 (never excluded).

    Parameters
    ----------
    margin
        A function from confidences, an array of this shape, to the distance of the intervals from the value; negative
        if they include it. The intervals must be nested. A distance of nan gives nan.
    shape
        The shape of the confidences.
    jumps
        Whether the margin jumps, as with order statistics; bisection is then needed to find the change of sign.

    Examples
    --------
    >>> from evenhand.stats.intervals import student_t
    >>> smallest_alpha(lambda c: student_t([1.0, 0.8, -0.1], 0.5, float("inf"), c).low, (3,)).round(4)
    array([0.0455, 0.1096, 1.    ])
    """
    from scipy.special import ndtr

    find = _last_above if jumps else _farthest_z
    return np.asarray(2.0 * ndtr(-find(margin, shape)))


def _last_above(margin: Callable[[FloatArray], FloatArray], shape: tuple[int, ...]) -> FloatArray:
    """Return by bisection the largest normal quantile at whose confidence the margin is above 0; 0 if none is."""
    from scipy.special import erf

    low, high = np.zeros(shape), np.full(shape, _FARTHEST)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_above = margin(np.asarray(erf(middle / sqrt(2)))) > 0
        low, high = np.where(is_above, middle, low), np.where(is_above, high, middle)
    return low


def _farthest_z(margin: Callable[[FloatArray], FloatArray], shape: tuple[int, ...]) -> FloatArray:
    """Return the normal quantile at whose confidence the margin is 0, by bisection and the Illinois rule."""
    from scipy.special import erf

    def margin_at(z: FloatArray) -> FloatArray:
        return margin(np.asarray(erf(z / sqrt(2))))

    low, high = np.full(shape, 1e-6), np.full(shape, _FARTHEST)
    above, below = margin_at(low), margin_at(high)
    none, always = above <= 0, below >= 0
    before = np.zeros(shape)  # the side that moved last
    with np.errstate(all="ignore"):
        for step in range(_STEPS):
            chord = (low * below - high * above) / (below - above)  # the margin is nearly linear
            middle = (low + high) / 2 if step < _STEPS // 2 else np.clip(chord, low, high)
            margin_there = margin_at(np.where(np.isfinite(middle), middle, low))
            side = np.sign(margin_there)
            unmoved = side == before  # the end that stayed twice is halved, so that it moves, too
            above, below = (
                np.where(unmoved & (side < 0), above / 2, above),
                np.where(unmoved & (side > 0), below / 2, below),
            )
            above, below = np.where(side > 0, margin_there, above), np.where(side > 0, below, margin_there)
            low, high, before = np.where(side > 0, middle, low), np.where(side > 0, high, middle), side
    return np.where(none, 0.0, np.where(always, _FARTHEST, middle))
