"""How reliable each group's results are at every noise level: means over folds and replicates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.stats.agreement.undefined import Reasons
from evenhand.stats.intervals import t_quantile
from evenhand.stats.noise import Experiment, Simulation
from evenhand.stats.reliability.statistics import fold_spread, statistic, why_undefined
from evenhand.stats.types import FloatArray, IntArray, Interval


@dataclass(frozen=True)
class Curves:
    """One statistic of every group and level.

    Attributes
    ----------
    levels
        (L,) noise levels.
    values
        (replicates, L, groups) means over folds; nan where the statistic is undefined in one of them.
    undefined
        (L, groups) in how many folds of all replicates it is undefined.
    reasons
        (L, groups) why, "" where it is defined everywhere.
    """

    levels: FloatArray
    values: FloatArray
    undefined: IntArray
    reasons: Reasons

    @property
    def mean(self) -> FloatArray:
        """(L, groups) means over replicates; nan where one is undefined."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def replicate_sd(self) -> FloatArray:
        """(L, groups) how far one run is from another: standard deviation over replicates, nan for one replicate."""
        return spread_of_runs(self.values)

    def replicate_band(self, confidence: float = 0.95) -> Interval:
        """Return limits (L, groups) of the mean over replicates: mean ± t sd / sqrt(R).

        It says what other random mistakes would have given. It says nothing about other people.
        """
        return run_band(self.values, confidence)


def curves(experiment: Experiment, simulation: Simulation, name: str) -> Curves:
    """Return the curves of one statistic.

    Examples
    --------
    >>> from evenhand.stats.noise import Flip, Linear, NoiseItem, replicate_seeds, simulate
    >>> people = np.arange(40.0)[:, np.newaxis] % 2
    >>> trial = Experiment(people, (Linear(np.array([2.0]), -1.0),), (NoiseItem((0,), Flip()),), np.arange(40) // 20)
    >>> done = simulate(trial, replicate_seeds(50, np.random.default_rng(0)))
    >>> curves(trial, done, "pabak").mean[[0, 10, 20]].round(2).tolist()
    [[1.0, 1.0], [0.81, 0.79], [0.56, 0.61]]
    """
    spread = fold_spread(experiment)
    by_fold = statistic(name, simulation.sums, spread)
    missing = np.moveaxis(np.isnan(by_fold), 2, 1).reshape(-1, *by_fold.shape[1::2])
    reasons = np.moveaxis(np.broadcast_to(why_undefined(name, simulation.sums, spread), by_fold.shape), 2, 1)
    first = np.take_along_axis(reasons.reshape(missing.shape), missing.argmax(axis=0)[np.newaxis], axis=0)[0]
    return Curves(simulation.levels, by_fold.mean(axis=2), missing.sum(axis=0).astype(np.int64), first)


def spread_of_runs(values: FloatArray) -> FloatArray:
    """Return the standard deviation over replicates, the first axis; nan for one replicate.

    Examples
    --------
    >>> spread_of_runs(np.array([[1.0], [3.0]])).round(3)
    array([1.414])
    """
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(axis=0, ddof=1))


def run_band(values: FloatArray, confidence: float = 0.95) -> Interval:
    """Return mean ± t sd / sqrt(R) over R replicates, the first axis.

    Examples
    --------
    >>> [limits.round(2).tolist() for limits in run_band(np.array([[1.0], [3.0]]))]
    [[-10.71], [14.71]]
    """
    half = t_quantile(len(values) - 1, confidence) * spread_of_runs(values) / np.sqrt(len(values))
    return Interval(np.asarray(values.mean(axis=0) - half), np.asarray(values.mean(axis=0) + half))


def share_lower(gap: FloatArray) -> FloatArray:
    """Return the share of levels (first axis) at which a gap is negative; nan where a gap is undefined.

    The levels share people, models and random numbers, so this share is often near 0 or 1 by chance alone: it is a
    description, not a test.

    Examples
    --------
    >>> float(share_lower(np.array([-0.1, 0.2, -0.3, -0.1])))
    0.75
    """
    return np.asarray(np.where(np.isnan(gap).any(axis=0), np.nan, (gap < 0).mean(axis=0)))
