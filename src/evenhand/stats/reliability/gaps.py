"""The gap between two groups: at every level with bands that hold jointly, and one test of its mean over levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError
from evenhand.stats.agreement import p_of_equality, share_difference
from evenhand.stats.bootstrap import Draws
from evenhand.stats.correlation import two_sided_p
from evenhand.stats.intervals import mover_difference, normal_quantile, t_quantile
from evenhand.stats.types import FloatArray, Interval

_SMALLEST_P = 1e-15
_FRACTIONS = np.array([0.1, 0.35, 0.7, 0.99])
"""Shares of the capital that are bet on each person."""
_BET_ABOVE, _BET_BELOW = np.full(4, 1 / 4), np.array([1, 1, 1, 3]) / 6
"""How the first capital is dealt out among them; where nobody is hurt, the boldest bet below wins most."""


@dataclass(frozen=True)
class Gap:
    """A metric of one group less that of another, over noise levels.

    Attributes
    ----------
    value
        (L,) gaps at the levels above 0.
    stderr
        (L,) standard errors over people.
    pointwise
        Limits of each gap on its own. With 30 levels, some of them miss a true gap of 0 in 8 to 30 % of data sets.
    simultaneous
        Limits that hold at all levels together.
    average
        Mean of the gaps over levels, with its limits and standard error.
    z, freedom, p_value
        The test that the average gap is 0: average / se, held against Student's t with these degrees of freedom.
    """

    value: FloatArray
    stderr: FloatArray
    pointwise: Interval
    simultaneous: Interval
    average: float
    average_low: float
    average_high: float
    average_stderr: float
    z: float
    freedom: float
    p_value: float


def joint_band(
    draws: Draws, confidence: float = 0.95, freedom: float = float("inf"), levels: FloatArray | None = None
) -> Interval:
    """Return limits of a metric at all noise levels that hold together: estimate ± q (t / z) se.

    q is the quantile of the largest abs(draw - estimate) / se over levels (sup-t); t and z are Student's quantile with
    the degrees of freedom of the standard errors and the normal one. At low levels few results change, and by luck
    nearly none: their standard errors s_l are then far too small. Where mistakes are rare the variance grows in
    proportion to the level p_l, later more slowly; so se is at least s_k sqrt(p_l / p_k) for every higher level k. A
    metric that does not vary has no limits.

    Parameters
    ----------
    draws
        Resamples of the metric at each level.
    confidence
        Of all limits together.
    freedom
        Degrees of freedom of the standard errors: `PeopleDraws.freedom`.
    levels
        Rising noise levels; without them standard errors are taken as they are.

    References
    ----------
    P. H. Westfall and S. S. Young (1993), Resampling-Based Multiple Testing. J. Montiel Olea and M. Plagborg-Møller
    (2019), Simultaneous confidence bands, Journal of Applied Econometrics 34.

    Examples
    --------
    >>> draws = Draws(np.zeros(3), np.random.default_rng(0).normal(size=(20_000, 3)))
    >>> joint_band(draws).high.round(1), (joint_band(draws, freedom=10).high / joint_band(draws).high).round(2)
    (array([2.4, 2.4, 2.4]), array([1.14, 1.14, 1.14]))
    """
    stderr_by_level = draws.stderr()
    rounding = 1e-13 * np.abs(np.where(np.isfinite(draws.values), draws.values, 0.0)).max(axis=0)
    varies = stderr_by_level > rounding
    limits = np.full((2, stderr_by_level.size), np.nan)
    if varies.any():
        stderr = np.where(varies, stderr_by_level, 0.0)
        if levels is not None:
            root = np.sqrt(np.maximum(levels, 1e-300))
            stderr = np.maximum(stderr, root * np.maximum.accumulate((stderr / root)[::-1])[::-1])
        away = np.fmax.reduce(np.abs(draws.values - draws.estimate)[:, varies] / stderr[varies], axis=1)
        critical = float(np.quantile(away[~np.isnan(away)], confidence, method="higher"))
        half = critical * float(t_quantile(freedom, confidence)) / normal_quantile(confidence) * stderr[varies]
        limits[:, varies] = draws.estimate[varies] - half, draws.estimate[varies] + half
    return Interval(limits[0], limits[1])


def gap_of(
    draws: Draws,
    confidence: float = 0.95,
    freedom: float = float("inf"),
    levels: FloatArray | None = None,
    least_stderr: float = 0.0,
    more_variance: FloatArray | None = None,
) -> Gap:
    """Return the gap of bootstrap draws: levels first, their mean last (as `PeopleDraws.gap` gives them).

    Limits are gap ± t se for one level and for the average, t being Student's quantile with `freedom`; for all levels
    together `joint_band`. z = average / se. nan where more than 5 % of the resamples have no value.

    Parameters
    ----------
    draws
        Resampled gaps.
    confidence
        Of the limits.
    freedom
        Degrees of freedom of the standard errors: `PeopleDraws.freedom`.
    levels
        The noise levels, for `joint_band`.
    least_stderr
        What the standard error of the average is at least: `PeopleDraws.pooled_stderr`. Where it is more than the
        draws', all standard errors grow by the same factor.
    more_variance
        (L + 1,) variance that people do not account for, such as that of a pilot study (`pilot_variance`): added to
        that of each gap and of the average. Bands grow with the standard errors.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> levels = np.array([0.1, 0.2, 0.3]) + rng.normal(0, 0.05, (2_000, 3))
    >>> draws = Draws(np.array([0.1, 0.2, 0.3, 0.2]), np.column_stack([levels, levels.mean(axis=1)]))
    >>> found = gap_of(draws)
    >>> round(found.z, 1), bool(found.simultaneous.low[2] > 0), bool(found.simultaneous.low[0] > 0)
    (6.9, True, False)
    """
    each = draws.part(slice(None, -1))
    unwidened, quantile = draws.stderr(), float(t_quantile(freedom, confidence))
    wider = np.full(unwidened.size, least_stderr / unwidened[-1] if least_stderr > unwidened[-1] > 0 else 1.0)
    if more_variance is not None:
        with np.errstate(all="ignore"):  # a gap that does not vary has no limits
            wider = np.sqrt(wider**2 + more_variance / unwidened**2)
    stderr = wider * unwidened
    half = quantile * stderr
    average, error = float(draws.estimate[-1]), float(stderr[-1])
    z = average / error if error > 0 else float("nan")
    low, high = joint_band(each, confidence, freedom, levels)
    value, mean_half = each.estimate, float(half[-1])
    joint = Interval(value + wider[:-1] * (low - value), value + wider[:-1] * (high - value))
    p, ends = float(two_sided_p(z, freedom)), (average - mean_half, average + mean_half)
    pointwise = Interval(value - half[:-1], value + half[:-1])
    return Gap(value, stderr[:-1], pointwise, joint, average, *ends, error, z, freedom, p)


@dataclass(frozen=True)
class PilotVariance:
    """What a pilot study adds to the variance of gaps.

    Attributes
    ----------
    value
        (L,) variance of each gap over other pilots, what random mistakes alone make being taken off.
    spread
        (L,) variance of that estimate.
    """

    value: FloatArray
    spread: FloatArray

    def freedom(self, level: int, variance: float, freedom: float) -> float:
        """Return the degrees of freedom of this and another variance together (Satterthwaite).

        (V + S)² / (q / 2 + S² / ν), with q the variance of the estimate V: one with ν degrees of freedom has 2 V² / ν.
        """
        weight = float(self.spread[level]) / 2.0 + (variance**2 / freedom if np.isfinite(freedom) else 0.0)
        return float((variance + self.value[level]) ** 2 / weight) if weight > 0 else float("inf")


def pilot_variance(renewed: FloatArray, fixed: FloatArray | None = None, people: float = float("inf")) -> PilotVariance:
    """Return how far gaps would move with another pilot study of the same size.

    With A the variance between R replicates that each learn from a resample of the pilot, and B that between R
    replicates that all learn from the pilot itself, V = max(0, A - B): what is left when the randomness of mistakes is
    taken off. The mean over replicates has V / R of its own on top. The variance of V is 2 (A² + B²) / (R - 1), and as
    V is learned from m people 2 V² / (m - 1) more. Without `fixed` V is A, which is on the safe side.

    Parameters
    ----------
    renewed, fixed
        (R, L) gaps of the replicates.
    people
        m, the people of the pilot that the smallest profile is learned from.

    References
    ----------
    S. R. Searle, G. Casella and C. E. McCulloch (1992), Variance Components, chapter 3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = pilot_variance(rng.normal(0, 5, (4_000, 1)), rng.normal(0, 3, (4_000, 1)))
    >>> round(float(found.value[0]))
    16
    """
    runs = len(renewed)
    if min(runs, runs if fixed is None else len(fixed)) < 2:
        return PilotVariance(*np.full((2, renewed.shape[1]), np.nan))
    a = renewed.var(axis=0, ddof=1)
    b = np.zeros_like(a) if fixed is None else fixed.var(axis=0, ddof=1)
    value = np.maximum(a - b, 0.0)
    spread = 2.0 * ((a**2 + b**2) / (runs - 1) + value**2 / max(people - 1.0, 1.0))
    return PilotVariance(value * (1.0 + 1.0 / runs), spread)


# Damage between 0 and 1, few people ---------------------------------------------------------------------------------


def bounded_limits(values: ArrayLike, tail: float) -> Interval:
    """Return limits of a mean of numbers between 0 and 1 that hold for any distribution and any number of people.

    They are limits by betting. With f a fixed fraction, prod(1 - f + f x / m) is what a player has who bets that the
    mean is above m, after having begun with 1: it is 1 on average if the mean is m, also where people have different
    means with the average m (the mean of factors with average 1 is at most 1). So is the average over fractions f. The
    lower limit is the m at which this capital is 1 / tail: by Markov's inequality a true mean is below it with a chance
    of at most `tail`. The upper limit is the same of 1 - x. There is no order of people and no random number in it.

    Parameters
    ----------
    values
        (n,) numbers from 0 to 1, independent.
    tail
        The chance that is left on either side, 0.025 for 95 % confidence.

    References
    ----------
    I. Waudby-Smith and A. Ramdas (2024), Estimating means of bounded random variables by betting, Journal of the Royal
    Statistical Society B 86.

    Examples
    --------
    >>> [round(float(limit), 4) for limit in bounded_limits(np.zeros(100), 0.025)]  # nobody of 100 is hurt
    [0.0, 0.0421]
    >>> [round(float(limit), 4) for limit in bounded_limits(np.repeat([0.0, 0.5], 100), 0.025)]
    [0.187, 0.304]
    """
    x = np.asarray(values, dtype=np.float64)
    if not (x.size and np.all((x >= 0) & (x <= 1))):
        raise EvenhandError("The values must be one or more numbers from 0 to 1.")
    known, counts = np.unique(x, return_counts=True)
    times = counts.astype(np.float64)
    low = _lower_by_betting(known, times, tail, _BET_ABOVE)
    high = 1.0 - _lower_by_betting(1.0 - known, times, tail, _BET_BELOW)
    return Interval(np.asarray(min(low, x.mean())), np.asarray(max(high, x.mean())))


def _lower_by_betting(values: FloatArray, times: FloatArray, tail: float, dealt: FloatArray) -> float:
    from scipy.optimize import brentq

    def excess(log_m: float) -> float:
        grown = np.log1p(_FRACTIONS[:, np.newaxis] * (values / np.exp(log_m) - 1.0)) @ times
        return float(np.logaddexp.reduce(grown + np.log(dealt)) + np.log(tail))

    least, top = np.log(1e-9), np.log(max(float(values @ times / times.sum()), 1e-9))
    if excess(least) <= 0:
        return 0.0
    return float(np.exp(brentq(excess, least, top, xtol=1e-9))) if excess(top) < 0 else float(np.exp(top))


def bounded_difference(a: FloatArray, b: FloatArray, tail: float) -> Interval:
    """Return limits of mean(a) - mean(b) of numbers between 0 and 1: MOVER of limits that hold for any distribution.

    Numbers that are all 0 or 1 have Clopper and Pearson's limits (`share_difference`), others `bounded_limits`.

    Parameters
    ----------
    a, b
        What happened to the people of two groups.
    tail
        The share that the interval leaves on either side.

    Examples
    --------
    >>> nobody, some = np.zeros(100), np.repeat([0.0, 0.4], [600, 400])
    >>> [round(float(limit), 3) for limit in bounded_difference(nobody, some, 0.025)]
    [-0.181, -0.113]
    """
    if _all_or_nothing(a, b):
        return share_difference(a.mean(), a.size, b.mean(), b.size, tail)
    return mover_difference(a.mean(), bounded_limits(a, tail), b.mean(), bounded_limits(b, tail))


def _all_or_nothing(*groups: FloatArray) -> bool:
    return all(bool(np.isin(values, (0.0, 1.0)).all()) for values in groups)


def bounded_p(a: FloatArray, b: FloatArray) -> float:
    """Return the smallest alpha at which `bounded_difference` leaves out 0.

    Examples
    --------
    >>> bounded_p(np.zeros(100), np.repeat([0.0, 0.4], [600, 400])) < 0.001
    True
    """
    from scipy.optimize import brentq

    if _all_or_nothing(a, b):
        return float(p_of_equality(lambda tail: share_difference(a.mean(), a.size, b.mean(), b.size, tail), ()))

    def beyond(log_tail: float) -> float:
        """Return how far the limits are beyond 0: below 0 where they hold it."""
        low, high = bounded_difference(a, b, float(np.exp(log_tail)))
        return max(float(low), -float(high))

    least, most = np.log(_SMALLEST_P / 2), np.log(0.5)
    if beyond(most) <= 0:
        return 1.0
    return _SMALLEST_P if beyond(least) > 0 else 2.0 * float(np.exp(brentq(beyond, least, most, xtol=1e-6)))
