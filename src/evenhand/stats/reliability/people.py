"""Gaps as differences of means over people: each person's value, and comparisons of two groups' values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenhand.stats.intervals import tail_share
from evenhand.stats.noise import SUMS, Experiment, PairSums, Simulation
from evenhand.stats.permutation import MeanComparison, compare_means
from evenhand.stats.reliability.metrics import SPREAD_ADJUSTED, fold_spread, metric_values
from evenhand.stats.two_rates import RateComparison, compare_rates
from evenhand.stats.types import BoolArray, FloatArray, IntArray

MEANS = ("pabak", SPREAD_ADJUSTED)
"""Metrics that are means over people; the others are ratios of such means."""
RestsOn = Literal["permutation", "approximation", "bounds", "rates", "none"]
_STEP = 1e-6
_DIGITS = 8


def derivatives_of(names: Sequence[str]) -> Callable[[PairSums], FloatArray]:
    """Return a function that computes the derivatives (metrics, 8, ...) of metrics by each of `SUMS`.

    The derivatives are central differences with a step of 1e-6 of a sum's possible size.

    Examples
    --------
    >>> one = np.array(1.0)
    >>> sums = PairSums(
    ...     n=4 * one,
    ...     centre=0 * one,
    ...     first_ones=2 * one,
    ...     second_ones=one,
    ...     both_ones=one,
    ...     first=2 * one,
    ...     second=one,
    ...     first_squares=2 * one,
    ...     second_squares=one,
    ...     error_squares=one,
    ... )
    >>> derivatives_of(["agreement"])(sums)[0, :3].round(6).tolist()  # (n - r - s + 2 rs) / n
    [-0.25, -0.25, 0.5]
    """

    def derivatives(sums: PairSums) -> FloatArray:
        squares = np.maximum(sums.first_squares, sums.second_squares)
        counts, scores = np.broadcast_to(sums.n, squares.shape), np.sqrt(sums.n * squares)
        sizes = dict(zip(SUMS, (counts,) * 3 + (scores,) * 2 + (squares,) * 3, strict=True))
        found = np.empty((len(names), len(SUMS), *squares.shape))
        for number, name in enumerate(SUMS):
            step, value = _STEP * sizes[name], getattr(sums, name)
            ends = [replace(sums, **{name: value + step}), replace(sums, **{name: value - step})]
            with np.errstate(all="ignore"):
                for metric, named in enumerate(names):
                    up, down = (metric_values(named, end) for end in ends)
                    found[metric, number] = (up - down) / (2.0 * step)
        return found

    return derivatives


def people_values(
    experiment: Experiment, simulation: Simulation, name: str, influence: FloatArray | None = None
) -> FloatArray:
    """Return each person's value, in base order, such that the mean over a fold and group is the metric there.

    The mean is over replicates and levels above 0. With d a person's share of changed decisions and e² the mean squared
    error of the scores, it is 1 - 2 d for PABAK and 1 - e² / V for the spread-adjusted ICC. Any other metric is a ratio
    of means: a person's value is the metric plus the person's influence, which is n times the derivative of the metric
    by the person's weight (the infinitesimal jackknife). Values are nan where the metric is undefined.

    Parameters
    ----------
    experiment, simulation
        The people and the sums of their simulation.
    name
        The metric.
    influence
        (people,) the influence on a metric that is a ratio of means, from `Simulation.influence`.

    References
    ----------
    L. A. Jaeckel (1972), The infinitesimal jackknife, Bell Laboratories memorandum MM 72-1215-11.
    """
    decisions, squares = simulation.damage
    if name == "pabak":
        return np.asarray(1.0 - 2.0 * decisions)
    if name == SPREAD_ADJUSTED:
        with np.errstate(all="ignore"):
            return np.asarray(1.0 - squares / fold_spread(experiment)[experiment.base.fold, 0])
    if influence is None:
        raise TypeError("a ratio of means needs the influence of people")
    by_cell = metric_values(name, simulation.sums)[:, simulation.levels > 0].mean(axis=(0, 1)).ravel()
    cell, rounded = experiment.base.cell, np.round(influence, _DIGITS)  # so that people alike have equal values
    excess = np.bincount(cell, rounded, by_cell.size) / np.maximum(np.diff(experiment.base.starts), 1)
    return np.asarray((by_cell - excess)[cell] + rounded)


@dataclass(frozen=True, eq=False, kw_only=True)
class PeopleGap:
    """The difference of two groups' means over people, with a test and matching confidence limits.

    Parameters
    ----------
    value, stderr : the first group's mean minus the second's, and its standard error.
    p_value : the smallest alpha at which the limits exclude 0.
    limits : a function from a confidence to the limits.
    rests_on : the method of test and limits: the basis of a `MeanComparison`, or "rates".
    few : whether so few people cause most of the variance that a group's sample may lack such people.
    freedom : the degrees of freedom of the standard error (Satterthwaite).
    """

    value: float
    stderr: float
    p_value: float
    limits: Callable[[float], tuple[float, float]]
    rests_on: RestsOn
    few: bool
    freedom: float

    def swapped(self) -> PeopleGap:
        """Return the difference with the two groups exchanged."""

        def limits(confidence: float) -> tuple[float, float]:
            low, high = self.limits(confidence)
            return -high, -low

        return replace(self, value=-self.value, limits=limits)


def compare_people(
    values: FloatArray,
    fold: IntArray,
    in_first: BoolArray,
    *,
    bounds: tuple[float, float] | None = None,
    level: float = 0.05,
) -> PeopleGap:
    """Compare two groups' values, each averaged over the people of a fold and then over folds.

    The studentised difference is compared with its distribution over random assignments of people to the groups within
    their fold (`compare_means`). If there are no folds and all values are ends of `bounds`, they are compared as rates
    (`compare_rates`).

    Parameters
    ----------
    values, fold, in_first
        (people,) the values, the folds from 0, and whether a person is in the first group.
    bounds
        The smallest and largest possible value; None takes the observed extremes.
    level
        The smallest level at which the p-value may decide.

    Examples
    --------
    >>> hurt = np.repeat([0.0, 0.4, 0.0], [60, 60, 540])
    >>> found = compare_people(1.0 - 2.0 * hurt, np.zeros(660, dtype=np.int64), np.arange(660) < 60, bounds=(-1.0, 1.0))
    >>> round(found.value, 3), found.p_value < 0.01, found.rests_on
    (0.08, True, 'bounds')
    """
    if not fold.any():
        return compare_patterns(
            values, in_first.astype(np.int64), (~in_first).astype(np.int64), bounds=bounds, level=level
        )
    shares = np.ones(int(fold.max()) + 1)
    return _of_means(compare_means(values, in_first, ~in_first, strata=fold, shares=shares, bounds=bounds, level=level))


def compare_patterns(
    values: FloatArray,
    first: IntArray,
    second: IntArray,
    *,
    bounds: tuple[float, float] | None = None,
    weights: FloatArray | None = None,
    level: float = 0.05,
) -> PeopleGap:
    """Compare two groups from the number of their people with each value; see `compare_people`.

    Parameters
    ----------
    values, first, second
        (patterns,) the values, and the numbers of people of the first and the second group with each value.
    bounds
        The smallest and largest possible value; None takes the observed extremes.
    weights
        (patterns,) the weight of each person.
    level
        The smallest level at which the p-value may decide.

    Examples
    --------
    >>> found = compare_patterns(np.array([0.0, 1.0]), np.array([3, 27]), np.array([20, 30]), bounds=(0.0, 1.0))
    >>> round(found.value, 3), round(found.p_value, 3), found.rests_on
    (0.3, 0.004, 'rates')
    """
    if bounds is not None and weights is None and np.isin(values, bounds).all():
        return _of_rates(values == bounds[1], (first, second), bounds[1] - bounds[0])
    return _of_means(compare_means(values, first, second, weights=weights, bounds=bounds, level=level))


def _of_means(found: MeanComparison) -> PeopleGap:
    parts = np.array([found.variance_a, found.variance_b])
    weight = float((parts**2 / np.maximum(np.array(found.effective) - 1.0, 1.0)).sum())
    return PeopleGap(
        value=found.estimate,
        stderr=found.stderr,
        p_value=found.p_value,
        limits=lambda confidence: found.limits(2.0 * float(tail_share(confidence))),
        rests_on=found.basis,
        few=found.rests_on == "few people",
        freedom=float(parts.sum() ** 2 / weight) if weight > 0 else float("inf"),
    )


def _of_rates(is_high: BoolArray, people: tuple[IntArray, IntArray], width: float) -> PeopleGap:
    counts = [(int(side[is_high].sum()), int(side.sum())) for side in people]
    found: RateComparison = compare_rates(*counts[0], *counts[1])
    rates = [yes / n for yes, n in counts]
    stderr = np.sqrt(sum(rate * (1.0 - rate) / n for rate, (_, n) in zip(rates, counts, strict=True)))

    def limits(confidence: float) -> tuple[float, float]:
        low, high = found.limits(confidence)
        return width * float(low), width * float(high)

    return PeopleGap(
        value=width * float(found.value),
        stderr=width * float(stderr),
        p_value=float(found.p_value),
        limits=limits,
        rests_on="rates",
        few=False,
        freedom=float(counts[0][1] + counts[1][1] - 2),
    )
