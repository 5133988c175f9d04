"""Bootstrap over people: the variation of gaps over samples from the same population."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
from numpy.random import Generator, SeedSequence

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.draws import Draws
from evenhand.stats.noise import (
    OF_THE_FIRST,
    SUMS,
    Changes,
    Experiment,
    PairSums,
    base_people,
    replicate_changes,
)
from evenhand.stats.reliability.metrics import METRICS, fold_spread, metric_values
from evenhand.stats.types import FloatArray, IntArray
from evenhand.stats.workers import Progress, Step, has_backend, in_parallel, run_chains

Times: TypeAlias = npt.NDArray[np.uint8]  # the chance of more than 255 draws of a person is below 1e-500
_Part: TypeAlias = tuple[int, int, dict[str, FloatArray], dict[str, FloatArray], dict[str, FloatArray]]
_MOST_AT_ONCE = 250
_AT_ONCE = 200_000  # people drawn at once, few enough for the processor's cache
_TILE = 64  # resamples whose counts are written together: 64 bytes per person
_DRAWS = 8
"""The memory for draws in units of that for rows; with less, resamples are drawn in blocks."""


@dataclass(frozen=True, kw_only=True)
class PeopleDraws:
    """Metrics of bootstrap samples of people, averaged over folds and replicates.

    Attributes
    ----------
    levels
        (L,) noise levels.
    estimate
        For each metric (L, groups) its value in the whole sample.
    values
        For each metric (resamples, L, groups). Resamples of m people have (m - 1) / m of the sample's variance, so
        the deviation from the estimate of each fold and group is multiplied by sqrt(m / (m - 1)).
    sizes
        (folds, groups) the number of people.
    variances
        For each metric (folds, groups), the contribution of each fold to the variance of the mean over folds and levels
        above 0; nan if unknown.
    """

    levels: FloatArray
    estimate: dict[str, FloatArray]
    values: dict[str, FloatArray]
    sizes: IntArray
    variances: dict[str, FloatArray]

    def gap(self, name: str, group: int, reference: int) -> Draws:
        """Return the draws of the gap group - reference at each level above 0, followed by their mean."""
        above = self.levels > 0
        gap = self.estimate[name][above, group] - self.estimate[name][above, reference]
        drawn = self.values[name][:, above, group] - self.values[name][:, above, reference]
        return Draws(_with_mean(gap), _with_mean(drawn))

    def group(self, name: str, group: int) -> Draws:
        """Return the draws of one group's metric at each level."""
        return Draws(self.estimate[name][:, group], self.values[name][:, :, group])

    def freedom(self, name: str, *groups: int) -> float:
        """Return Satterthwaite's degrees of freedom of the variance of a metric or of a gap between groups.

        With v the variance contributed by a fold and group of m people, it is (sum v)² / sum(v² / (m - 1)). The result
        is inf if nothing varies and nan if a variance is unknown.

        References
        ----------
        F. E. Satterthwaite (1946), An approximate distribution of estimates of variance components, Biometrics
        Bulletin 2.
        """
        parts, sizes = self.variances[name][:, groups], self.sizes[:, groups]
        if not np.isfinite(parts).all():
            return float("nan")
        shares = parts / (float(parts.sum()) or 1.0)  # squares of variances may be too large, or too small
        weight = float((shares**2 / np.maximum(sizes - 1, 1)).sum())
        return 1.0 / weight if weight > 0 else float("inf")


def bootstrap_people(
    experiment: Experiment,
    seeds: Sequence[SeedSequence],
    names: Sequence[str],
    *,
    resamples: int = 1_000,
    rng: Generator,
    threads: int | None = None,
    progress: Progress | None = None,
) -> PeopleDraws:
    """Resample people within fold and group, and recompute every metric.

    A resampled person keeps all levels and all random mistakes. The models are fixed, so the result is conditional on
    them. No prediction is repeated: each state's change of the sums is weighted by its person's number of draws.

    Parameters
    ----------
    experiment
        People, models and mistakes.
    seeds
        Seeds of the replicates, as for `simulate`. The cost grows with their number; about 20 are enough for standard
        errors.
    names
        Metrics, of `METRICS`.
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
    >>> trial = Experiment(
    ...     features=people,
    ...     predictors=(Linear(np.array([2.0]), -1.0),),
    ...     items=(NoiseItem((0,), Flip()),),
    ...     groups=np.arange(200) // 100,
    ... )
    >>> rng = np.random.default_rng(0)
    >>> drawn = bootstrap_people(trial, replicate_seeds(5, rng), ["pabak"], resamples=200, rng=rng)
    >>> drawn.gap("pabak", 1, 0).values.shape  # 30 levels above 0, and their mean
    (200, 31)
    """
    for name in names:
        require_choice("metric", name, METRICS)
    if resamples < 2 or not seeds:
        raise EvenhandError(
            "`resamples` must be at least 2, with at least one replicate; got {resamples!r}.", resamples=resamples
        )
    experiment.prepare()
    size = int(np.clip(_DRAWS * experiment.memory // len(experiment.features), 1, _MOST_AT_ONCE))
    blocks = list(_blocks(resamples, size))
    spawned = rng.spawn(-(-resamples // _MOST_AT_ONCE))
    streams = [cast(SeedSequence, stream.bit_generator.seed_seq) for stream in spawned]
    totals = _Totals(experiment, names, resamples, len(seeds))
    if has_backend():
        block = _Blocks(
            experiment=experiment, names=names, resamples=resamples, seeds=seeds, streams=streams, size=size
        )
        for part in in_parallel(block.totals, blocks):
            totals.take(part)
        return totals.draws()
    chains = [totals.chain(seeds, streams, size, start, stop) for start, stop in blocks]
    run_chains(chains, len(blocks) * len(seeds), threads=threads, progress=progress)
    return totals.draws()


class _Totals:
    """Sums of metrics over resamples, averaged over replicates; the last row is the original sample."""

    def __init__(self, experiment: Experiment, names: Sequence[str], resamples: int, replicates: int) -> None:
        self.resamples = resamples
        levels, (folds, groups) = experiment.levels.size, experiment.cells
        self.experiment, self.names, self.replicates = experiment, names, replicates
        self.sizes = np.diff(experiment.base.starts).reshape(folds, groups)
        self.stretch = _stretch(self.sizes)
        self.stretched = {name: np.zeros((resamples + 1, levels, groups)) for name in names}
        self.by_fold = {name: np.zeros((resamples + 1, folds, groups)) for name in names}
        self.estimate = {name: np.zeros((levels, groups)) for name in names}

    def chain(
        self, seeds: Sequence[SeedSequence], streams: Sequence[SeedSequence], size: int, start: int, stop: int
    ) -> Iterator[Step]:
        """Yield the work of one block of resamples, with one step for each replicate."""
        number, first = divmod(start, _MOST_AT_ONCE)
        served = min(_MOST_AT_ONCE, self.resamples - number * _MOST_AT_ONCE)
        rng, sample = np.random.default_rng(streams[number]), not start  # the sample belongs to the first block
        times = _times_drawn(self.experiment, served, rng, size, first, sample=sample)
        true = _base_sums(self.experiment, times)
        yield from ((1, partial(self.add, seed, self.rows(start, stop), times, true)) for seed in seeds)

    def rows(self, start: int, stop: int) -> IntArray:
        """Return the indices of a block's rows; the first block also fills the row of the original sample."""
        return np.arange(start, stop) if start else np.append(np.arange(start, stop), self.resamples)

    def add(self, seed: SeedSequence, rows: IntArray, times: Times, true: FloatArray) -> None:
        """Add one replicate's metrics for the resamples `rows`, drawn `times` with base sums `true`."""
        changes = replicate_changes(self.experiment, seed)
        above, with_sample = self.experiment.levels > 0, rows[0] == 0
        for name, values in _metrics(self.experiment, changes, times, true, self.names).items():
            self.stretched[name][rows] += (values * self.stretch).mean(axis=2) / self.replicates
            if above.any():
                self.by_fold[name][rows] += values[:, above].mean(axis=1) / self.replicates
            if with_sample:
                self.estimate[name] += values[-1].mean(axis=1) / self.replicates

    def take(self, part: _Part) -> None:
        """Store a block's rows that another process computed."""
        start, stop, stretched, by_fold, estimate = part
        for name in self.names:
            self.stretched[name][self.rows(start, stop)] = stretched[name]
            self.by_fold[name][self.rows(start, stop)] = by_fold[name]
        if not start:
            self.estimate = estimate

    def draws(self) -> PeopleDraws:
        """Return the resampled metrics, shifted by the difference between the estimate and the rescaled sample."""
        folds, _ = self.experiment.cells
        return PeopleDraws(
            levels=self.experiment.levels,
            estimate=self.estimate,
            values={name: self.estimate[name] + (values[:-1] - values[-1]) for name, values in self.stretched.items()},
            sizes=self.sizes,
            variances={
                name: (self.stretch / folds * Draws(v[-1], v[:-1]).stderr()) ** 2 for name, v in self.by_fold.items()
            },
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Blocks:
    """The data shared by all blocks of resamples, for use in other processes."""

    experiment: Experiment
    names: Sequence[str]
    resamples: int
    seeds: Sequence[SeedSequence]
    streams: Sequence[SeedSequence]
    size: int

    def totals(self, start: int, stop: int) -> _Part:
        """Compute one block of resamples and return its rows."""
        totals = _Totals(self.experiment, self.names, self.resamples, len(self.seeds))
        for _, step in totals.chain(self.seeds, self.streams, self.size, start, stop):
            step()
        rows = totals.rows(start, stop)
        stretched, by_fold = (
            {name: values[rows] for name, values in every.items()} for every in (totals.stretched, totals.by_fold)
        )
        return start, stop, stretched, by_fold, totals.estimate


def _stretch(sizes: IntArray) -> FloatArray:
    """Return sqrt(m / (m - 1)) for each fold and group of m people; 1 for a single person."""
    return np.asarray(np.sqrt(sizes / np.maximum(sizes - 1.0, 1.0)))


def _blocks(resamples: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the start and stop of each block of resamples; no block crosses a stream of random numbers."""
    for first in range(0, resamples, _MOST_AT_ONCE):
        end = min(first + _MOST_AT_ONCE, resamples)
        yield from ((start, min(start + size, end)) for start in range(first, end, size))


def _times_drawn(
    experiment: Experiment,
    resamples: int,
    rng: Generator,
    size: int | None = None,
    first: int = 0,
    *,
    sample: bool = False,
) -> Times:
    """Return (people, resamples) how often each person is drawn, in base order; with `sample`, a last column of ones.

    Each stream of random numbers produces a fixed number of resamples. If only `size` of them fit in memory, all are
    drawn but only those from number `first` on are returned, so the result does not depend on the memory.
    """
    from evenhand.stats.compiled import write_times

    number = min(size or resamples, resamples - first)
    times = np.empty((len(experiment.features), number + sample), dtype=np.uint8)
    times[:, number:] = 1
    for begin, end in pairwise(experiment.base.starts.tolist()):
        room = np.empty((min(_TILE, resamples), end - begin), dtype=np.uint8)
        for start in range(0, resamples, _TILE):
            counts = _counts_drawn(rng, room[: resamples - start])
            least, most = max(first - start, 0), min(len(counts), first + number - start)
            if least < most:
                write_times(counts[least:most], times[begin:end, start + least - first : start + most - first])
    return times


def _counts_drawn(rng: Generator, counts: Times) -> Times:
    """Fill and return (resamples, people) the number of times each person is drawn."""
    from evenhand.stats.compiled import count_drawn

    counts[:] = 0
    people = max(counts.shape[1], 1)
    step = max(1, _AT_ONCE // people)
    for start in range(0, len(counts), step):
        rows = counts[start : start + step]
        # Integers of 32 bits equal those of 64 bits from the same stream.
        count_drawn(rng.integers(0, people, rows.shape, dtype=np.uint32), rows)
    return counts


def _base_sums(experiment: Experiment, times: Times) -> FloatArray:
    """Return the sums (cells, 8, resamples) without mistakes, where both raters agree and errors are 0."""
    from evenhand.stats.compiled import add_weighted

    cell, cells = experiment.base.cell, len(experiment.base.starts) - 1
    everybody, sums = np.arange(len(cell)), base_people(experiment)
    positions = [SUMS.index(name) for name in OF_THE_FIRST]
    added = np.stack([sums[position] for position in positions], axis=1)
    true = np.zeros((1, cells, len(positions), times.shape[1]))
    add_weighted(np.zeros_like(everybody), cell, everybody, added, times, true)
    ones, first, squares = np.moveaxis(true[0], 1, 0)
    return np.stack([ones, ones, ones, first, first, squares, squares, np.zeros_like(ones)], axis=1)


def _resampled_sums(experiment: Experiment, replicate: Sequence[Changes], times: Times, true: FloatArray) -> FloatArray:
    """Return the sums (8, L, cells, resamples) of one replicate; `true` is the result of `_base_sums`."""
    from evenhand.stats.compiled import add_weighted

    cell, levels = experiment.base.cell, experiment.levels.size
    gained = np.zeros((levels, *true.shape))
    for changes in replicate:
        step = changes.step if experiment.common else changes.trial
        zeros = np.zeros(step.size)
        added = np.stack([changes.added.get(name, zeros) for name in SUMS], axis=1)
        add_weighted(step, cell[changes.person], changes.person, added, times, gained)
    if experiment.common:
        np.cumsum(gained, axis=0, out=gained)
    return np.moveaxis(gained + true, 2, 0)


def _metrics(
    experiment: Experiment, replicate: Sequence[Changes], times: Times, true: FloatArray, names: Sequence[str]
) -> dict[str, FloatArray]:
    """Return each metric (resamples, L, folds, groups) for one replicate."""
    base, (folds, groups) = experiment.base, experiment.cells
    total = _resampled_sums(experiment, replicate, times, true)
    shaped = total.reshape(len(SUMS), experiment.levels.size, folds, groups, times.shape[1])
    n = np.diff(base.starts).astype(np.float64).reshape(folds, groups, 1)
    sums = PairSums(n=n, centre=base.centre.reshape(folds, groups, 1), **dict(zip(SUMS, shaped, strict=True)))
    spread = fold_spread(experiment)[:, :, np.newaxis]
    return {name: np.moveaxis(metric_values(name, sums, spread), -1, 0) for name in names}


def _with_mean(values: FloatArray) -> FloatArray:
    return np.concatenate([values, values.mean(axis=-1, keepdims=True)], axis=-1)
