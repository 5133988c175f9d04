"""Metrics of a simulation by name, computed from its sums, and their curves over noise levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.errors import require_choice
from evenhand.stats import agreement
from evenhand.stats.intervals import t_quantile
from evenhand.stats.noise import Experiment, PairSums, Simulation
from evenhand.stats.types import FloatArray, IntArray, Interval


def _parts(counts: agreement.BinaryCounts) -> agreement.PabakParts:
    return agreement.pabak_minus_kappa(counts.kappa(), counts.prevalence_index(), counts.bias_index())


PARTS: dict[str, Callable[[agreement.BinaryCounts], FloatArray]] = {
    "prevalence_part": lambda counts: _parts(counts).prevalence,
    "bias_part": lambda counts: _parts(counts).bias,
}
"""The parts of PABAK - kappa due to prevalence and bias; they add up to it, also on average."""

SPREAD_ADJUSTED = "icc_spread"
METRICS: tuple[str, ...] = (*agreement.COUNT_METRICS, *PARTS, *agreement.SCORE_METRICS, SPREAD_ADJUSTED)


def metric_values(name: str, sums: PairSums, spread: FloatArray | None = None) -> FloatArray:
    """Return a metric computed from sums; nan if undefined.

    Parameters
    ----------
    name
        One of `METRICS`.
    sums
        The sums, of any shape.
    spread
        V of the spread-adjusted ICC, of a shape that broadcasts: `fold_spread`. Only for 'icc_spread'.

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
    >>> float(metric_values("pabak", sums)), float(metric_values("icc_spread", sums, np.array(0.5)))
    (0.5, 0.5)
    """
    require_choice("metric", name, METRICS)
    if name in agreement.COUNT_METRICS:
        return agreement.COUNT_METRICS[name](sums.counts())
    if name in PARTS:
        return PARTS[name](sums.counts())
    if name in agreement.SCORE_METRICS:
        return agreement.SCORE_METRICS[name](sums.moments())
    return sums.moments().spread_adjusted(np.asarray(np.nan if spread is None else spread))


def why_undefined(name: str, sums: PairSums, spread: FloatArray | None = None) -> agreement.Reasons:
    """Return the reason a metric of sums is nan, or "" if it is defined; parameters as for `metric_values`.

    Examples
    --------
    >>> zero = np.array(0.0)
    >>> from evenhand.stats.noise import SUMS
    >>> sums = PairSums(**dict.fromkeys(("n", "centre", *SUMS), zero))
    >>> str(why_undefined("kappa", sums))
    'nobody'
    """
    require_choice("metric", name, METRICS)
    if name in agreement.COUNT_METRICS or name in PARTS:
        return sums.counts().why_undefined("kappa" if name in PARTS else name)
    if name in agreement.SCORE_METRICS:
        return sums.moments().why_undefined(name)
    flat = np.asarray(spread) == 0 if spread is not None else np.asarray(True)
    nobody = (np.asarray(sums.n == 0), agreement.Undefined.NOBODY)
    return agreement.first_reason([nobody, (flat, agreement.Undefined.NO_SPREAD)])


def fold_spread(experiment: Experiment) -> FloatArray:
    """Return (folds, 1) V = 2 var(score) over all people in each fold, without mistakes.

    Examples
    --------
    >>> from evenhand.stats.noise import Flip, Linear, NoiseItem
    >>> people = np.array([[0.0], [1.0], [0.0], [1.0]])
    >>> model = Linear(np.ones(1), 0.0, link="identity")
    >>> fold_spread(
    ...     Experiment(
    ...         features=people, predictors=(model,), items=(NoiseItem((0,), Flip()),), groups=np.array([0, 0, 1, 1])
    ...     )
    ... ).tolist()
    [[0.5]]
    """
    return experiment.spread


@dataclass(frozen=True)
class Curves:
    """One metric for every group and noise level.

    Attributes
    ----------
    levels
        (L,) noise levels.
    values
        (replicates, L, groups) means over folds; nan if the metric is undefined in any fold.
    undefined
        (L, groups) the number of folds, over all replicates, in which the metric is undefined.
    reasons
        (L, groups) why the metric is undefined; "" if it is always defined.
    """

    levels: FloatArray
    values: FloatArray
    undefined: IntArray
    reasons: agreement.Reasons

    @property
    def mean(self) -> FloatArray:
        """(L, groups) means over replicates; nan if any replicate is undefined."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def replicate_sd(self) -> FloatArray:
        """(L, groups) the standard deviation over replicates; nan for one replicate."""
        return spread_of_runs(self.values)

    def replicate_band(self, confidence: float = 0.95) -> Interval:
        """Return (L, groups) the limits mean ± t sd / sqrt(R) of the mean over replicates.

        They reflect other random mistakes, but not other samples of people.
        """
        return run_band(self.values, confidence)


def curves(experiment: Experiment, simulation: Simulation, name: str) -> Curves:
    """Return the curves of one metric.

    Examples
    --------
    >>> from evenhand.stats.noise import Flip, Linear, NoiseItem, replicate_seeds, simulate
    >>> people = np.arange(40.0)[:, np.newaxis] % 2
    >>> trial = Experiment(
    ...     features=people,
    ...     predictors=(Linear(np.array([2.0]), -1.0),),
    ...     items=(NoiseItem((0,), Flip()),),
    ...     groups=np.arange(40) // 20,
    ... )
    >>> done = simulate(trial, replicate_seeds(50, np.random.default_rng(0)))
    >>> curves(trial, done, "pabak").mean[[0, 10, 20]].round(2).tolist()
    [[1.0, 1.0], [0.81, 0.79], [0.56, 0.61]]
    """
    spread = fold_spread(experiment)
    by_fold = metric_values(name, simulation.sums, spread)
    missing = np.moveaxis(np.isnan(by_fold), 2, 1).reshape(-1, *by_fold.shape[1::2])
    reasons = np.moveaxis(np.broadcast_to(why_undefined(name, simulation.sums, spread), by_fold.shape), 2, 1)
    first = np.take_along_axis(reasons.reshape(missing.shape), missing.argmax(axis=0)[np.newaxis], axis=0)[0]
    return Curves(simulation.levels, by_fold.mean(axis=2), missing.sum(axis=0).astype(np.int64), first)


def spread_of_runs(values: FloatArray) -> FloatArray:
    """Return the standard deviation over replicates (first axis); nan for one replicate.

    Examples
    --------
    >>> spread_of_runs(np.array([[1.0], [3.0]])).round(3)
    array([1.414])
    """
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(axis=0, ddof=1))


def run_band(values: FloatArray, confidence: float = 0.95) -> Interval:
    """Return the interval mean ± t sd / sqrt(R) over R replicates (first axis).

    Examples
    --------
    >>> [limits.round(2).tolist() for limits in run_band(np.array([[1.0], [3.0]]))]
    [[-10.71], [14.71]]
    """
    half = t_quantile(len(values) - 1, confidence) * spread_of_runs(values) / np.sqrt(len(values))
    return Interval(np.asarray(values.mean(axis=0) - half), np.asarray(values.mean(axis=0) + half))


def share_lower(gap: FloatArray) -> FloatArray:
    """Return the share of levels (first axis) with a negative gap; nan if any gap is undefined.

    The levels share people, models and random numbers, so this share is often near 0 or 1 by chance alone. It is a
    description, not a test.

    Examples
    --------
    >>> float(share_lower(np.array([-0.1, 0.2, -0.3, -0.1])))
    0.75
    """
    return np.asarray(np.where(np.isnan(gap).any(axis=0), np.nan, (gap < 0).mean(axis=0)))
