"""The noise engine, which predicts each distinct row once for all levels and replicates of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from evenhand.stats.noise.experiment import Experiment
from evenhand.stats.noise.states import OF_THE_FIRST, SUMS, DrawnMistakes, PairSums, States, person_sums, states_of
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.stats.workers import Progress, run_tasks

_MOST_IN_A_BLOCK = 16
Seeds: TypeAlias = Sequence[np.random.SeedSequence]
Trial: TypeAlias = tuple[np.random.SeedSequence, int | None]
"""A seed, and the one level drawn from it; None for all levels."""
Derivatives: TypeAlias = Callable[[PairSums], FloatArray]
"""From sums of a shape, the derivatives of some metrics by each of `SUMS`: (metrics, 8, *shape)."""


@dataclass(frozen=True)
class Simulation:
    """The sums of every replicate, level, fold and group of an experiment.

    Attributes
    ----------
    levels
        (L,) noise levels.
    sums
        Arrays that broadcast to (replicates, L, folds, groups).
    changed
        (items,) the share of people whose entry the second rater changed at the highest level, over all replicates.
    damage
        (2, people) in base order, the share of replicates and levels above 0 in which a person's decision changed, and
        the score's mean squared error over these replicates and levels.
    influence
        (metrics, people) each person's influence on each metric, n times the derivative by the person's weight,
        averaged over replicates and levels above 0.
    """

    levels: FloatArray
    sums: PairSums
    changed: FloatArray
    damage: FloatArray
    influence: FloatArray


class Paths(NamedTuple):
    """Both raters' predictions (replicates, levels, people) at every level, with people in base order."""

    first_score: FloatArray
    first_label: BoolArray
    second_score: FloatArray
    second_label: BoolArray


@dataclass(frozen=True)
class Changes:
    """The changes of the sums: trial, first step, person, and amounts of each change."""

    trial: IntArray
    step: IntArray
    person: IntArray
    added: dict[str, FloatArray]


def simulate(
    experiment: Experiment,
    seeds: Seeds,
    *,
    derivatives: Derivatives | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Simulate all replicates of an experiment and return their sums.

    With common random numbers the mistakes at one level include the mistakes at lower levels, so a person has at most
    as many distinct rows as entries with mistakes. These rows are predicted together, in one call per fold and block of
    replicates, and only their changes are summed. The result is exactly equal to predicting all people at every level.

    Parameters
    ----------
    experiment
        People, models and mistakes.
    seeds
        One seed per replicate, from `replicate_seeds`.
    derivatives
        The derivatives of the metrics whose influences are returned.
    threads
        Number of threads, by default the number of cores. The result does not depend on it.
    progress
        Called as `progress(done, total)`, counting draws of all people's mistakes.

    Examples
    --------
    >>> from evenhand.stats.noise import Flip, Linear, NoiseItem, replicate_seeds
    >>> people = np.arange(40.0)[:, np.newaxis] % 2
    >>> trial = Experiment(
    ...     features=people,
    ...     predictors=(Linear(np.array([2.0]), -1.0),),
    ...     items=(NoiseItem((0,), Flip()),),
    ...     groups=np.arange(40) // 20,
    ... )
    >>> done = simulate(trial, replicate_seeds(10, np.random.default_rng(0)))
    >>> done.sums.counts().pabak().shape  # replicates, levels, folds, groups
    (10, 31, 1, 2)
    """
    experiment.prepare()
    trials = trials_of(experiment, seeds)
    parts = blocks(experiment, trials)
    results: list[FloatArray] = []
    changed = np.zeros(len(experiment.items), dtype=np.int64)
    damage, influence = np.zeros((2, len(experiment.features))), np.zeros((1, 1))
    tasks = [(len(part), partial(_block_sums, experiment, part, derivatives)) for part in parts]
    for sums, entries, hurt, moved in run_tasks(tasks, threads=threads, progress=progress):
        results.append(sums)
        changed += entries
        damage += hurt
        influence = influence + moved
    summed = np.concatenate(results, axis=1).reshape(len(SUMS), len(seeds), experiment.levels.size, *experiment.cells)
    share = changed / (len(seeds) * len(experiment.features))
    runs = max(len(seeds) * int(np.count_nonzero(experiment.levels > 0)), 1)
    return Simulation(experiment.levels, pair_sums(experiment, summed), share, damage / runs, influence / runs)


def paths(experiment: Experiment, seeds: Seeds) -> Paths:
    """Return all people's predictions at every level of the replicates that `simulate` sums.

    Examples
    --------
    >>> from evenhand.stats.noise import Flip, Linear, NoiseItem, replicate_seeds
    >>> people = np.arange(40.0)[:, np.newaxis] % 2
    >>> trial = Experiment(
    ...     features=people,
    ...     predictors=(Linear(np.array([2.0]), -1.0),),
    ...     items=(NoiseItem((0,), Flip()),),
    ...     groups=np.arange(40) // 20,
    ... )
    >>> paths(trial, replicate_seeds(3, np.random.default_rng(0))).second_label.shape
    (3, 31, 40)
    """
    dense = []
    for block in blocks(experiment, trials_of(experiment, seeds)):
        second, first = block_states(experiment, *block_mistakes(experiment, block))
        dense.append((*_dense(experiment, first, len(block)), *_dense(experiment, second, len(block))))
    shape = (len(seeds), experiment.levels.size, len(experiment.features))
    return Paths(*(np.concatenate(parts).reshape(shape) for parts in zip(*dense, strict=True)))


def trials_of(experiment: Experiment, seeds: Seeds) -> list[Trial]:
    """Return the units of drawing: whole replicates with common random numbers, otherwise single levels."""
    if experiment.common:
        return [(seed, None) for seed in seeds]
    return [
        (np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, level)), level)
        for seed in seeds
        for level in range(experiment.levels.size)
    ]


def blocks(experiment: Experiment, trials: Sequence[Trial]) -> list[Sequence[Trial]]:
    """Return trials in blocks that fit into memory; block sizes depend on the experiment, not on threads."""
    people, d = experiment.features.shape
    items, columns, steps = len(experiment.items), len(experiment.columns), steps_of(experiment)
    states = people * items * min(float(experiment.levels[-1]), 1.0)
    bytes_per_trial = people * (steps + 2 * items + 8 * max(items, columns)) + states * (8 * d + 16 * items + 100)
    size = int(np.clip(experiment.memory // (experiment.raters * bytes_per_trial), 1, _MOST_IN_A_BLOCK))
    return [trials[start : start + size] for start in range(0, len(trials), size)]


def pair_sums(experiment: Experiment, summed: FloatArray) -> PairSums:
    """Return the engine's sums (8, ..., folds, groups) as `PairSums`."""
    n = np.diff(experiment.base.starts).astype(np.float64).reshape(experiment.cells)
    return PairSums(
        n=n, centre=experiment.base.centre.reshape(experiment.cells), **dict(zip(SUMS, summed, strict=True))
    )


def steps_of(experiment: Experiment) -> int:
    """Return the number of levels that one draw covers."""
    return experiment.levels.size if experiment.common else 1


def block_mistakes(experiment: Experiment, block: Sequence[Trial]) -> list[DrawnMistakes]:
    """Return the mistakes of the second rater and, if the first makes mistakes, of the first."""
    drawn = [DrawnMistakes.none(experiment, len(block), steps_of(experiment)) for _ in range(experiment.raters)]
    for number, (seed, level) in enumerate(block):
        rng = np.random.default_rng(seed)
        for mistakes in drawn:
            mistakes.fill(number, experiment, rng, level)
    return drawn


def block_states(
    experiment: Experiment, second: DrawnMistakes, first: DrawnMistakes | None = None
) -> tuple[States, States | None]:
    """Return the states of the second rater and, if the first makes mistakes, of the first."""
    return states_of(experiment, second), None if first is None else states_of(experiment, first)


def _block_sums(
    experiment: Experiment, block: Sequence[Trial], derivatives: Derivatives | None
) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
    """Return a block's sums (8, trials * steps, cells), changed entries by item, damage, and influence."""
    drawn = block_mistakes(experiment, block)
    second, first = block_states(experiment, *drawn)
    steps = steps_of(experiment)
    changes = changes_of_states(experiment, second, first, steps)
    total = _sums_of_changes(experiment, changes, len(block), steps)
    highest = [level in (None, experiment.levels.size - 1) for _, level in block]
    changed = np.count_nonzero(drawn[0].level[highest] < steps, axis=(0, 1))
    influence = np.zeros((0, len(experiment.features)))
    if derivatives is not None:
        above = experiment.levels > 0
        counted = np.array([above if level is None else above[[level]] for _, level in block])
        influence = _influence(experiment, changes, total, counted, derivatives)
    return total.reshape(len(SUMS), -1, total.shape[-1]), changed, _damage_of(experiment, changes), influence


def _influence(
    experiment: Experiment, changes: Changes, total: FloatArray, counted: BoolArray, derivatives: Derivatives
) -> FloatArray:
    """Return (metrics, people) n sum_k g_k (s_k - mean of s_k), over the counted trials and steps.

    g_k is the derivative by sum k, and s_k a person's contribution to sum k. A change lasts for all later steps.
    """
    cell = experiment.base.cell
    found = derivatives(pair_sums(experiment, total.reshape(*total.shape[:-1], *experiment.cells)))
    slope = np.where(counted[:, :, np.newaxis], found.reshape(len(found), *total.shape), 0.0)
    n = np.diff(experiment.base.starts)
    later = n * np.cumsum(slope[:, :, :, ::-1], axis=3)[:, :, :, ::-1]
    values = -np.einsum("mktsc,ktsc->mc", slope, total)[:, cell]
    for number, (name, start) in enumerate(zip(SUMS, base_people(experiment), strict=True)):
        values += later[:, number, :, 0].sum(axis=1)[:, cell] * start
        if name in changes.added:
            weights = later[:, number, changes.trial, changes.step, cell[changes.person]] * changes.added[name]
            values += np.stack([np.bincount(changes.person, each, cell.size) for each in weights])
    return np.asarray(values)


def changes_of_states(experiment: Experiment, second: States, first: States | None, steps: int) -> Changes:
    """Return the change of the sums caused by each state, in the order of states."""
    base, people = experiment.base, len(experiment.features)
    key = second.key if first is None else np.union1d(first.key, second.key)
    slot, step = np.divmod(key, steps)
    trial, person = np.divmod(slot, people)
    opens = np.ones(key.size, dtype=np.bool_)
    np.not_equal(slot[1:], slot[:-1], out=opens[1:])
    x, r = _current(experiment, first, key=key, slot=slot, person=person, steps=steps)
    y, s = (
        (second.score, second.label)
        if first is None
        else _current(experiment, second, key=key, slot=slot, person=person, steps=steps)
    )
    now = person_sums(r, s, x, y, base.centre[base.cell[person]])
    true = base_people(experiment)
    added = {
        name: _changes(now[number], true[number], person, opens)
        for number, name in enumerate(SUMS)
        if first is not None or name not in OF_THE_FIRST
    }
    return Changes(trial, step, person, added)


def sums_of_states(experiment: Experiment, second: States, first: States | None, trials: int, steps: int) -> FloatArray:
    """Return the sums (8, trials, steps, cells): the base sums plus all changes up to each step."""
    return _sums_of_changes(experiment, changes_of_states(experiment, second, first, steps), trials, steps)


def _sums_of_changes(experiment: Experiment, changes: Changes, trials: int, steps: int) -> FloatArray:
    cell, cells = experiment.base.cell, len(experiment.base.starts) - 1
    bins = (changes.trial * steps + changes.step) * cells + cell[changes.person]
    total = np.empty((len(SUMS), trials, steps, cells))
    for number, (name, start) in enumerate(zip(SUMS, base_people(experiment), strict=True)):
        total[number] = np.bincount(cell, start, cells)
        if name in changes.added:
            gained = np.bincount(bins, changes.added[name], trials * steps * cells).reshape(trials, steps, cells)
            total[number] += np.cumsum(gained, axis=1)
    return total


def _damage_of(experiment: Experiment, changes: Changes) -> FloatArray:
    """Return (2, people) each person's changed decisions and squared errors, over a block's trials and levels.

    If one draw covers all levels, a change at a step persists at all later steps.
    """
    duration = experiment.levels.size - changes.step if experiment.common else np.ones(changes.step.size)
    zeros = np.zeros(changes.step.size)
    first, second, both_ones = (changes.added.get(name, zeros) for name in ("first_ones", "second_ones", "both_ones"))
    kinds = first + second - 2.0 * both_ones, changes.added["error_squares"]
    return np.stack(
        [np.maximum(np.bincount(changes.person, kind * duration, len(experiment.features)), 0.0) for kind in kinds]
    )


def base_people(experiment: Experiment) -> tuple[FloatArray, ...]:
    """Return each person's contribution to the sums without mistakes."""
    base = experiment.base
    return person_sums(base.label, base.label, base.score, base.score, base.centre[base.cell])


def replicate_changes(experiment: Experiment, seed: np.random.SeedSequence) -> list[Changes]:
    """Return the changes of the sums in one replicate, by block; without common numbers `trial` counts levels."""
    replicate, done = [], 0
    for block in blocks(experiment, trials_of(experiment, [seed])):
        states = block_states(experiment, *block_mistakes(experiment, block))
        changes = changes_of_states(experiment, *states, steps_of(experiment))
        replicate.append(replace(changes, trial=changes.trial + done))
        done += len(block)
    return replicate


def _changes(value: FloatArray, start: FloatArray, person: IntArray, opens: BoolArray) -> FloatArray:
    """Return the change of each state's value from the person's previous state, or from the base for the first."""
    change = np.empty_like(value)
    np.subtract(value[1:], value[:-1], out=change[1:])
    first = np.flatnonzero(opens)
    change[first] = value[first] - start[person[first]]
    return change


def _current(
    experiment: Experiment, states: States | None, *, key: IntArray, slot: IntArray, person: IntArray, steps: int
) -> tuple[FloatArray, BoolArray]:
    """Return a rater's predictions at each key: from the last state up to the key, or from the base."""
    score, label = experiment.base.score[person], experiment.base.label[person]
    if states is None or states.key.size == 0:
        return score, label
    last = np.searchsorted(states.key, key, side="right") - 1
    changed = (last >= 0) & (states.key[last] // steps == slot)
    return np.where(changed, states.score[last], score), np.where(changed, states.label[last], label)


def _dense(experiment: Experiment, states: States | None, trials: int) -> tuple[FloatArray, BoolArray]:
    """Return predictions (trials * steps, people), from each state until the person's next and from the base before."""
    base, people, steps = experiment.base, len(experiment.features), steps_of(experiment)
    shape = (trials * steps, people)
    if states is None or states.key.size == 0:
        return np.broadcast_to(base.score, shape), np.broadcast_to(base.label, shape)
    marks = np.full(trials * people * steps, -1)
    marks[states.key] = np.arange(states.key.size)
    last = np.maximum.accumulate(marks.reshape(trials, people, steps), axis=2)
    last = np.moveaxis(last, 1, 2).reshape(shape)
    has_state = last >= 0
    return np.where(has_state, states.score[last], base.score), np.where(has_state, states.label[last], base.label)
