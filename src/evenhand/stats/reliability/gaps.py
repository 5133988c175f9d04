"""The gap between two groups at every noise level with joint bands, and a test of its mean over levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.stats.correlation import two_sided_p
from evenhand.stats.draws import Draws
from evenhand.stats.intervals import normal_quantile, t_quantile
from evenhand.stats.types import FloatArray, Interval


@dataclass(frozen=True, kw_only=True)
class GapOverLevels:
    """One group's metric minus another group's, over noise levels.

    Attributes
    ----------
    value
        (L,) gaps at the levels above 0.
    stderr
        (L,) standard errors over people.
    pointwise
        Separate limits of each gap. With 30 levels, some of them miss a true gap of 0 in 8 to 30 % of data sets.
    simultaneous
        Joint limits at all levels.
    average
        Mean of the gaps over levels, with its limits and standard error.
    z, p_value
        Student's test that the average gap is 0: average / se.
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
    p_value: float


def joint_band(
    draws: Draws, confidence: float = 0.95, freedom: float = float("inf"), levels: FloatArray | None = None
) -> Interval:
    """Return joint confidence limits of a metric over all noise levels: estimate ± q (t / z) se.

    q is the quantile of the largest abs(draw - estimate) / se over levels (sup-t); t is Student's quantile with the
    degrees of freedom of the standard errors, and z the normal quantile. At low levels few results change, and by
    chance nearly none may change, so that their standard errors s_l are far too small. If mistakes are rare the
    variance grows in proportion to the level p_l, and more slowly at higher levels; se is therefore set to at least s_k
    sqrt(p_l / p_k) for every higher level k. The limits of a constant metric are nan.

    Parameters
    ----------
    draws
        Resamples of the metric at each level.
    confidence
        The joint confidence of the limits.
    freedom
        Degrees of freedom of the standard errors: `PeopleDraws.freedom`.
    levels
        Rising noise levels; without levels, standard errors are used unchanged.

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
    *,
    freedom: float = float("inf"),
    levels: FloatArray | None = None,
    mean_limits: tuple[float, float] | None = None,
) -> GapOverLevels:
    """Return the gap over levels from bootstrap draws, whose last column is the mean over levels.

    The draws are in the format of `PeopleDraws.gap`. Limits at one level and of the average are gap ± t se, with t
    Student's quantile with `freedom` degrees of freedom; joint limits come from `joint_band`. z is average / se.
    Results are nan if more than 5 % of the resamples are undefined.

    Parameters
    ----------
    draws
        Resampled gaps.
    confidence
        The confidence of the limits.
    freedom
        Degrees of freedom of the standard errors: `PeopleDraws.freedom`.
    levels
        The noise levels, for `joint_band`.
    mean_limits
        Better limits of the average, for example from `compare_people`. If a limit is wider than gap ± t se, the limits
        at single levels are widened on that side by the same factor.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> levels = np.array([0.1, 0.2, 0.3]) + rng.normal(0, 0.05, (2_000, 3))
    >>> draws = Draws(np.array([0.1, 0.2, 0.3, 0.2]), np.column_stack([levels, levels.mean(axis=1)]))
    >>> found = gap_of(draws)
    >>> round(found.z, 1), bool(found.simultaneous.low[2] > 0), bool(found.simultaneous.low[0] > 0)
    (6.9, True, False)
    """
    by_level, stderr, quantile = draws.part(slice(None, -1)), draws.stderr(), float(t_quantile(freedom, confidence))
    average, error, value = float(draws.estimate[-1]), float(stderr[-1]), by_level.estimate
    usual = quantile * error
    low, high = joint_band(by_level, confidence, freedom, levels)
    ends = (average - usual, average + usual) if mean_limits is None else mean_limits
    down, up = (max(1.0, away / usual) if usual > 0 else 1.0 for away in (average - ends[0], ends[1] - average))
    half = quantile * stderr[:-1]
    return GapOverLevels(
        value=value,
        stderr=stderr[:-1],
        pointwise=Interval(value - _stretched(half, down), value + _stretched(half, up)),
        simultaneous=Interval(value - _stretched(value - low, down), value + _stretched(high - value, up)),
        average=average,
        average_low=ends[0],
        average_high=ends[1],
        average_stderr=error,
        z=average / error if error > 0 else float("nan"),
        p_value=float(two_sided_p(average / error if error > 0 else float("nan"), freedom)),
    )


def _stretched(distance: FloatArray, factor: float) -> FloatArray:
    """Return distances of limits multiplied by a factor; an infinite factor gives infinity even at distance 0."""
    if np.isfinite(factor):
        return distance * factor
    return np.where(np.isnan(distance), np.nan, np.inf)


@dataclass(frozen=True)
class PilotVariance:
    """The variance that a pilot study adds to gaps.

    Attributes
    ----------
    value
        (L,) variance of each gap over repeated pilots, without the variance from random mistakes.
    spread
        (L,) variance of this variance estimate.
    """

    value: FloatArray
    spread: FloatArray

    def freedom(self, level: int, variance: float, freedom: float) -> float:
        """Return Satterthwaite's degrees of freedom of this variance plus another variance.

        The formula is (V + S)² / (q / 2 + S² / ν), where S is the other variance with ν degrees of freedom and q is the
        variance of the estimate V, since a variance V with ν degrees of freedom has variance 2 V² / ν.
        """
        weight = float(self.spread[level]) / 2.0 + (variance**2 / freedom if np.isfinite(freedom) else 0.0)
        return float((variance + self.value[level]) ** 2 / weight) if weight > 0 else float("inf")


def pilot_variance(renewed: FloatArray, fixed: FloatArray | None = None, people: float = float("inf")) -> PilotVariance:
    """Return the variance of gaps over repeated pilot studies of the same size.

    A is the variance between R replicates that each learn from a resample of the pilot, and B the variance between R
    replicates that all learn from the pilot itself. V = max(0, A - B) is then free of the randomness of mistakes. The
    mean over replicates adds V / R. The variance of V is 2 (A² + B²) / (R - 1), plus 2 V² / (m - 1) because V is
    estimated from m people. Without `fixed`, V is A, which is conservative.

    Parameters
    ----------
    renewed, fixed
        (R, L) gaps of the replicates.
    people
        The number m of pilot participants from whom the smallest profile is estimated.

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
