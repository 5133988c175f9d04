"""Power of the improvability test for a planned improvement, and the number of rows it needs.

The bootstrap deviations T* - T of the components represent the sampling error of T. With n test rows instead of n0 they
shrink by sqrt(n0 / n). The test rejects if every component exceeds its own critical value, so its power is the share of
resamples in which effect + deviation exceeds the critical value for all components at once.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import ConfigError, require_share
from evenhand.stats.improvability.rows import CANDIDATE, STATUS_QUO
from evenhand.stats.improvability.split import SplitTest
from evenhand.stats.types import FloatArray

_MOST_ROWS = 10**9


def planned_effects(
    test: SplitTest, gain: ArrayLike, reduction: float, accuracy: ArrayLike = 0.0, fairness: float = 0.0
) -> FloatArray:
    """Return (C,) the component statistics T implied by a planned improvement on the status quo.

    Parameters
    ----------
    test
        A test with the status quo, groups and utilities of the plan.
    gain
        The share by which accuracy improves: one number for all groups, or one per group.
    reduction
        The share by which all gaps between groups shrink, from 0 to 1.
    accuracy, fairness
        The margins to test, as in `SplitTest.components`.

    Examples
    --------
    >>> from evenhand.stats.improvability import Criteria, Pair, ValueDraws, get_utility
    >>> values = np.array([[[5.0, 7.0]], [[4.0, 7.0]], [[4.5, 7.0]]])
    >>> draws = ValueDraws(
    ...     estimate=values, values=values[np.newaxis], spread=None, spreads=None, rows=10, cells=10, method="cells"
    ... )
    >>> utility = get_utility("calibration")
    >>> planned_effects(
    ...     SplitTest(draws=draws, criteria=Criteria(utility, (utility,)), worst=[Pair(0, 1)]), gain=0.1, reduction=0.5
    ... )
    array([0.5, 0.4, 0.5, 1.5])
    """
    if not 0.0 <= reduction <= 1.0:
        raise ConfigError("`reduction` must be between 0 and 1; got {reduction!r}.", reduction=reduction)
    planned = test.draws.estimate.copy()
    shares = np.broadcast_to(np.asarray(gain, dtype=np.float64), (len(test.accuracy_contrasts),))
    better = 1.0 if test.criteria.accuracy.better == "higher" else -1.0
    effects = planned.copy()
    groups = slice(0, -1) if test.criteria.accuracy_of == "groups" else slice(-1, None)
    effects[groups, 0, CANDIDATE] = (1.0 + better * shares) * planned[groups, 0, STATUS_QUO]
    planned[..., CANDIDATE] = (1.0 - reduction) * planned[..., STATUS_QUO]  # only differences between groups matter
    accurate, fair = (component_values(test, v[np.newaxis], accuracy, fairness)[0] for v in (effects, planned))
    return np.concatenate([accurate[: shares.size], fair[shares.size :]])


def component_values(
    test: SplitTest, values: FloatArray, accuracy: ArrayLike = 0.0, fairness: float = 0.0
) -> FloatArray:
    """Return (J, C) the statistics T of the signed test's components; positive means improvement.

    Examples
    --------
    >>> from evenhand.stats.improvability import Criteria, Pair, ValueDraws, get_utility
    >>> values = np.array([[[5.0, 7.0]], [[4.0, 6.5]], [[4.5, 6.7]]])
    >>> draws = ValueDraws(
    ...     estimate=values, values=values[np.newaxis], spread=None, spreads=None, rows=10, cells=10, method="cells"
    ... )
    >>> utility = get_utility("calibration")
    >>> component_values(
    ...     SplitTest(draws=draws, criteria=Criteria(utility, (utility,)), worst=[Pair(0, 1)]), draws.values
    ... )
    array([[2. , 2.5, 0.5, 1.5]])
    """
    margins = np.broadcast_to(np.asarray(accuracy, dtype=np.float64), (len(test.accuracy_contrasts),))
    better = 1.0 if test.criteria.accuracy.better == "higher" else -1.0
    accuracy_values = [c.at(values, 1.0 + better * d) for c, d in zip(test.accuracy_contrasts, margins, strict=True)]
    gaps = [contrast.at(values, 1.0 - fairness) for contrasts in test.fairness_contrasts for contrast in contrasts]
    return np.stack([*accuracy_values, *gaps], axis=-1)


def deviations(test: SplitTest, accuracy: ArrayLike = 0.0, fairness: float = 0.0) -> FloatArray:
    """Return (J, C) the bootstrap deviations T* - T of the signed test's components."""
    drawn = component_values(test, test.draws.values, accuracy, fairness)
    return drawn - component_values(test, test.draws.estimate[np.newaxis], accuracy, fairness)


def power_curve(effect: ArrayLike, deviation: FloatArray, rows: int, sizes: ArrayLike, level: float) -> FloatArray:
    """Return the power of a test on one split at each number of test rows.

    Parameters
    ----------
    effect
        (C,) the true T.
    deviation
        (J, C) deviations T* - T with `rows` test rows. Undefined deviations count against rejection.
    rows
        The number of test rows of the deviations.
    sizes
        Numbers of test rows.
    level
        The level of the split's test: alpha for a single split; alpha / 2 if several splits are combined by their
        median, which has about the power of one split at alpha / 2.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((20_000, 1))
    >>> power_curve([1.645], noise, 100, [100, 400], 0.05).round(1)
    array([0.5, 1. ])
    """
    true = np.asarray(effect, dtype=np.float64)
    critical = _critical(deviation, level)
    power = []
    for size in np.atleast_1d(np.asarray(sizes, dtype=np.float64)):
        shrink = math.sqrt(rows / size)
        with np.errstate(invalid="ignore"):
            power.append(float(np.mean(((true + shrink * deviation) > shrink * critical).all(axis=1))))
    return np.array(power)


def sample_size(
    effect: ArrayLike, deviation: FloatArray, rows: int, *, level: float, power: float = 0.8, train: float = 0.0
) -> float:
    """Return the number of rows with which the test reaches a power; inf if no number does.

    Parameters
    ----------
    effect, deviation, rows, level
        As in `power_curve`.
    power
        The desired power.
    train
        The share of rows for training; the number of test rows is divided by 1 - train.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((20_000, 1))
    >>> 590 < sample_size([1.0], noise, 100, level=0.05, power=0.8) < 650
    True
    >>> sample_size([-1.0], noise, 100, level=0.05)
    inf
    """
    require_share("power", power)
    if not 0.0 <= train < 1.0:
        raise ConfigError("`train` must be at least 0 and below 1; got {train!r}.", train=train)
    low, high = 1, _MOST_ROWS
    if power_curve(effect, deviation, rows, [high], level)[0] < power:
        return math.inf
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2 if high < 4 * low else int(math.sqrt(low * high))
        if power_curve(effect, deviation, rows, [middle], level)[0] >= power:
            high = middle
        else:
            low = middle
    return float(math.ceil(high / (1.0 - train)))


def _critical(deviation: FloatArray, level: float) -> FloatArray:
    """Return (C,) the critical values, upper quantiles of the deviations; undefined deviations count as largest."""
    require_share("level", level)
    filled = np.sort(np.where(np.isnan(deviation), np.inf, deviation), axis=0)
    rank = min(len(filled) - 1, math.ceil((1.0 - level) * len(filled)) - 1)
    return np.asarray(filled[rank])
