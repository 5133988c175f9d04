"""Selection pooled over several events, such as jobs, years or departments (Mantel-Haenszel and Breslow-Day)."""

from __future__ import annotations

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats.types import FloatArray

MOST_EXACT = 20_000
"""The largest range of the pooled number for which the p-value is exact; beyond it, it is that of z."""

_EQUALLY_LIKELY = 1.0 + 1e-7


class PooledSelection(NamedTuple):
    """Comparison of two groups' selection over all events; nan if undefined.

    Parameters
    ----------
    events : the number of informative events, where both groups have people, and some but not all of them were
        selected.
    n : the number of people of the group in these events.
    observed, expected : the number of people of the group selected in these events, and the number expected at equal
        rates.
    ratio, low, high : the Mantel-Haenszel ratio of the rates and its interval.
    odds_ratio : the Mantel-Haenszel odds ratio.
    deviations : observed minus expected, in standard deviations.
    p_value : the test of equal rates in every event, two-sided.
    consistency : the p-value of equal odds ratios in all events; nan for one event, and if events are too small.
    """

    events: int
    n: int
    observed: float
    expected: float
    ratio: float
    low: float
    high: float
    odds_ratio: float
    deviations: float
    p_value: float
    consistency: float


def pooled_selection(
    selected: ArrayLike, n: ArrayLike, other_selected: ArrayLike, other_n: ArrayLike, confidence: float = 0.95
) -> PooledSelection:
    r"""Compare two groups' selection within events, pooled over the events.

    In event k the group has x of n selected, the other group y of m, both together t of N. Given the margins, x is
    hypergeometric under equal rates, with mean :math:`n t / N` and variance :math:`n m t (N - t) / (N^2 (N - 1))`. The
    deviation in SDs is the sum of x minus its mean, divided by the root of the summed variances. The p-value is exact:
    it sums the probabilities of all values of :math:`\sum x` that are at most as likely as the observed one, so that
    for one event it is Fisher's p-value; if the sum has more than 20,000 possible values, it is the normal p-value of
    the deviation.

    The pooled ratio is :math:`\sum (x m / N) / \sum (y n / N)`, with the limits of Greenland and Robins; the odds ratio
    is :math:`\sum (x (m - y) / N) / \sum (y (n - x) / N)`. Consistency is the test of Breslow and Day with Tarone's
    correction, where by Cochran's rule every fitted number is at least 1, and four fifths of them at least 5.

    Parameters
    ----------
    selected, n
        The number of people of the group selected in each event, and the number of all its people.
    other_selected, other_n
        The same numbers of the other group.
    confidence
        Two-sided confidence of the interval of the ratio.

    References
    ----------
    N. Mantel and W. Haenszel (1959), Journal of the National Cancer Institute 22. S. Greenland and J. M. Robins (1985),
    Biometrics 41, the limits. N. E. Breslow and N. E. Day (1980), Statistical methods in cancer research I. R. E.
    Tarone (1985), Biometrika 72. W. G. Cochran (1954), Biometrics 10.

    Examples
    --------
    >>> found = pooled_selection([89, 17], [108, 25], [512, 353], [825, 560])  # Berkeley, departments A and B, 1973
    >>> round(found.ratio, 3), round(found.deviations, 2), round(found.consistency, 2)
    (1.277, 3.93, 0.1)
    """
    counts = [np.asarray(values, np.float64) for values in (selected, n, other_selected, other_n)]
    told = (
        (counts[1] > 0)
        & (counts[3] > 0)
        & (counts[0] + counts[2] > 0)
        & (counts[0] + counts[2] < counts[1] + counts[3])
    )
    x, size, y, other = (values[told] for values in counts)
    total, both = size + other, x + y
    expected, observed = float((size * both / total).sum()), float(x.sum())
    variance = float((size * other * both * (total - both) / (total**2 * (total - 1))).sum())
    deviations = (observed - expected) / sqrt(variance) if variance else np.nan
    ratio, low, high = _ratio(x, size, y, other, confidence)
    odds_ratio = _quotient((x * (other - y) / total).sum(), (y * (size - x) / total).sum())
    return PooledSelection(
        events=len(x),
        n=int(size.sum()),
        observed=observed,
        expected=expected,
        ratio=ratio,
        low=low,
        high=high,
        odds_ratio=odds_ratio,
        deviations=deviations,
        p_value=_exact_p(x, size, y, other, deviations),
        consistency=_breslow_day(x, size, y, other, odds_ratio),
    )


def _quotient(above: float, below: float) -> float:
    return float(above / below) if below else np.inf if above else np.nan


def _ratio(x: FloatArray, n: FloatArray, y: FloatArray, m: FloatArray, confidence: float) -> tuple[float, float, float]:
    """Return the pooled ratio of the rates with its limits."""
    from scipy.stats import norm

    total = n + m
    above, below = float((x * m / total).sum()), float((y * n / total).sum())
    ratio = _quotient(above, below)
    if not 0.0 < ratio < np.inf:
        return ratio, np.nan, np.nan
    error = sqrt(float(((n * m * (x + y) - x * y * total) / total**2).sum()) / (above * below))
    reach = float(norm.ppf((1 + confidence) / 2)) * error
    return ratio, exp(log(ratio) - reach), exp(log(ratio) + reach)


def _exact_p(x: FloatArray, n: FloatArray, y: FloatArray, m: FloatArray, deviations: float) -> float:
    """Return the exact two-sided p-value of a sum of hypergeometric numbers, or the normal one for large sums."""
    from scipy.stats import hypergeom, norm

    if not len(x):
        return float("nan")
    both = x + y
    lowest, highest = np.maximum(0, both - m), np.minimum(n, both)
    if (highest - lowest).sum() > MOST_EXACT:
        return float(2 * norm.sf(abs(deviations)))
    chances = np.ones(1)
    for low, high, population, chosen, draws in zip(lowest, highest, n + m, n, both, strict=True):
        chances = np.convolve(chances, hypergeom.pmf(np.arange(low, high + 1), population, chosen, draws))
    of_sum = chances[int((x - lowest).sum())]
    return float(min(1.0, chances[chances <= of_sum * _EQUALLY_LIKELY].sum()))


def _breslow_day(x: FloatArray, n: FloatArray, y: FloatArray, m: FloatArray, odds_ratio: float) -> float:
    """Return the p-value of the Breslow-Day test of equal odds ratios, with Tarone's correction."""
    from scipy.stats import chi2

    if len(x) < 2 or not 0.0 < odds_ratio < np.inf:
        return float("nan")
    both = x + y
    fitted = _fitted(n, m, both, odds_ratio)
    cells = np.array([fitted, n - fitted, both - fitted, m - both + fitted])
    if cells.min() < 1 or (cells >= 5).mean() < 0.8:
        return float("nan")
    variance = 1 / (1 / cells).sum(axis=0)
    statistic = float(((x - fitted) ** 2 / variance).sum() - (x - fitted).sum() ** 2 / variance.sum())
    return float(chi2.sf(max(statistic, 0.0), len(x) - 1))


def _fitted(n: FloatArray, m: FloatArray, both: FloatArray, odds_ratio: float) -> FloatArray:
    """Return the expected number of selected people of the group by event, for these margins and odds ratio.

    It solves ``a (m - both + a) = odds_ratio (n - a) (both - a)``.
    """
    square = 1.0 - odds_ratio
    linear = m - both + odds_ratio * (n + both)
    constant = -odds_ratio * n * both
    if abs(square) < 1e-12:
        return np.asarray(-constant / linear)
    # The root between the bounds, in the form without cancellation.
    return np.asarray(-2 * constant / (linear + np.sqrt(linear**2 - 4 * square * constant)))
