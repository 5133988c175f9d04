"""The bootstrap over people: how far gaps would move with other people from the same population."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.bootstrap import Draws
from evenhand.stats.noise import Experiment, PairSums
from evenhand.stats.noise.engine import base_people, replicate_changes
from evenhand.stats.noise.sums import SUMS
from evenhand.stats.pairs.workers import Progress, Step, run_chains
from evenhand.stats.reliability.statistics import STATISTICS, fold_spread, statistic
from evenhand.stats.types import FloatArray

Times: TypeAlias = npt.NDArray[np.uint16]
_MOST_AT_ONCE = 250


@dataclass(frozen=True)
class PeopleDraws:
    """Statistics of resamples of people, averaged over folds and replicates.

    Attributes
    ----------
    levels
        (L,) noise levels.
    estimate
        For each statistic (L, groups), of everybody.
    values
        For each statistic (resamples, L, groups).
    """

    levels: FloatArray
    estimate: dict[str, FloatArray]
    values: dict[str, FloatArray]

    def gap(self, name: str, group: int, reference: int) -> Draws:
        """Return the draws of group - reference at each level above 0, and last of their mean."""
        at = self.levels > 0
        gap = self.estimate[name][at, group] - self.estimate[name][at, reference]
        drawn = self.values[name][:, at, group] - self.values[name][:, at, reference]
        return Draws(_with_mean(gap), _with_mean(drawn))

    def group(self, name: str, group: int) -> Draws:
        """Return the draws of one group's statistic at each level."""
        return Draws(self.estimate[name][:, group], self.values[name][:, :, group])


def bootstrap_people(
    experiment: Experiment,
    seeds: Sequence[np.random.SeedSequence],
    names: Sequence[str],
    *,
    resamples: int = 1_000,
    rng: np.random.Generator,
    threads: int | None = None,
    progress: Progress | None = None,
) -> PeopleDraws:
    """Resample people within fold and group, and recompute every statistic.

    A person keeps all levels and all random mistakes. The models stay as they are: the result is conditional on them.
    Nothing is predicted again: what each state changes in the sums is added as often as its person was drawn.

    Parameters
    ----------
    experiment
        People, models and mistakes.
    seeds
        Replicates, as for `simulate`. Each adds to the cost; some 20 are enough for standard errors.
    names
        Statistics, of `STATISTICS`.
    resamples
        Number of resamples.
    rng
        Source of the resamples.
    threads, progress
        As for `simulate`; progress counts replicates of blocks of resamples.

    References
    ----------
    B. Efron (1979), Bootstrap methods: another look at the jackknife, Annals of Statistics 7.

    Examples
    --------
    >>> from evenhand.stats.noise import Flip, Linear, NoiseItem, replicate_seeds
    >>> people = np.arange(200.0)[:, np.newaxis] % 2
    >>> trial = Experiment(people, (Linear(np.array([2.0]), -1.0),), (NoiseItem((0,), Flip()),), np.arange(200) // 100)
    >>> rng = np.random.default_rng(0)
    >>> drawn = bootstrap_people(trial, replicate_seeds(5, rng), ["pabak"], resamples=200, rng=rng)
    >>> drawn.gap("pabak", 1, 0).values.shape  # 30 levels above 0, and their mean
    (200, 31)
    """
    for name in names:
        require_choice("statistic", name, STATISTICS)
    if resamples < 2 or not seeds:
        raise EvenhandError(f"`resamples` must be at least 2, with at least one replicate; got {resamples!r}.")
    experiment.prepare()
    size = int(np.clip(experiment.memory // (8 * len(experiment.features)), 1, _MOST_AT_ONCE))
    starts = range(0, resamples, size)
    found = {name: np.zeros((resamples + 1, experiment.levels.size, experiment.cells[1])) for name in names}

    def chain(start: int, stream: np.random.Generator) -> list[Step]:
        stop = min(start + size, resamples)
        rows = np.arange(start, stop) if start else np.append(np.arange(start, stop), resamples)
        times = _times_drawn(experiment, stop - start, stream)
        if not start:  # the sample itself goes with the first block
            times = np.column_stack([times, np.ones(len(times), dtype=times.dtype)])

        def step(seed: np.random.SeedSequence) -> Step:
            def add() -> None:
                for name, values in _statistics(experiment, seed, times, names).items():
                    found[name][rows] += values / len(seeds)

            return 1, add

        return [step(seed) for seed in seeds]

    chains = [chain(start, stream) for start, stream in zip(starts, rng.spawn(len(starts)), strict=True)]
    run_chains(chains, len(starts) * len(seeds), threads=threads, progress=progress)
    estimate = {name: values[-1] for name, values in found.items()}
    return PeopleDraws(experiment.levels, estimate, {name: values[:-1] for name, values in found.items()})


def _times_drawn(experiment: Experiment, resamples: int, rng: np.random.Generator) -> Times:
    """Return (people, resamples) how often each person is drawn, in base order."""
    parts = []
    for size in np.diff(experiment.base.starts):
        drawn = rng.integers(0, max(size, 1), (resamples, size)) + size * np.arange(resamples)[:, np.newaxis]
        parts.append(np.bincount(drawn.ravel(), minlength=size * resamples).reshape(resamples, size).T)
    return np.ascontiguousarray(np.concatenate(parts), dtype=np.uint16)


def _resampled_sums(experiment: Experiment, seed: np.random.SeedSequence, times: Times) -> FloatArray:
    """Return the sums (8, L, cells, resamples) of one replicate."""
    from evenhand.stats.reliability.kernels import add_weighted

    cell, cells = experiment.base.cell, len(experiment.base.starts) - 1
    levels, drawn = experiment.levels.size, times.shape[1]
    everybody = np.arange(len(cell))
    true = np.zeros((1, cells, len(SUMS), drawn))
    add_weighted(np.zeros_like(everybody), cell, everybody, np.stack(base_people(experiment), axis=1), times, true)
    gained = np.zeros((levels, cells, len(SUMS), drawn))
    for changes in replicate_changes(experiment, seed):
        step = changes.step if experiment.common else changes.trial
        nothing = np.zeros(step.size)
        added = np.stack([changes.added.get(name, nothing) for name in SUMS], axis=1)
        add_weighted(step, cell[changes.person], changes.person, added, times, gained)
    if experiment.common:
        np.cumsum(gained, axis=0, out=gained)
    return np.moveaxis(gained + true, 2, 0)


def _statistics(
    experiment: Experiment, seed: np.random.SeedSequence, times: Times, names: Sequence[str]
) -> dict[str, FloatArray]:
    """Return each statistic (resamples, L, groups) of one replicate, averaged over folds."""
    base, (folds, groups) = experiment.base, experiment.cells
    total = _resampled_sums(experiment, seed, times)
    shaped = total.reshape(len(SUMS), experiment.levels.size, folds, groups, times.shape[1])
    n = np.diff(base.starts).astype(np.float64).reshape(folds, groups, 1)
    sums = PairSums(n, base.centre.reshape(folds, groups, 1), *shaped)
    spread = fold_spread(experiment)[:, :, np.newaxis]
    return {name: np.moveaxis(statistic(name, sums, spread).mean(axis=1), 2, 0) for name in names}


def _with_mean(values: FloatArray) -> FloatArray:
    return np.concatenate([values, values.mean(axis=-1, keepdims=True)], axis=-1)
