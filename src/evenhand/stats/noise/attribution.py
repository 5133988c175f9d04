"""Attribution of a gap to features with mistakes: Shapley values over the items of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import factorial
from typing import TypeAlias

import numpy as np
from numpy.random import Generator, SeedSequence

from evenhand.errors import EvenhandError
from evenhand.stats.noise.engine import pair_sums, steps_of, sums_of_states, trials_of
from evenhand.stats.noise.experiment import Experiment
from evenhand.stats.noise.states import SUMS, DrawnMistakes, PairSums, States, person_sums, predict_states, states_of
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.stats.workers import Progress, run_tasks

MOST_EXACT = 10
Metric: TypeAlias = Callable[[PairSums], FloatArray]
"""sums (..., folds, groups) -> values (..., folds, groups)."""


@dataclass(frozen=True)
class Attribution:
    """The contribution of each item to a metric, by replicate and group.

    Attributes
    ----------
    values
        (replicates, items, groups) Shapley values, whose sum over items is `total`.
    total
        (replicates, groups) the metric with mistakes in all items, minus the metric without mistakes.
    exact
        Whether all coalitions were evaluated, rather than random orders.
    """

    values: FloatArray
    total: FloatArray
    exact: bool


def attribute(
    experiment: Experiment,
    seeds: Sequence[SeedSequence],
    metrics: Mapping[str, Metric],
    *,
    level: int = -1,
    permutations: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Attribution]:
    """Attribute metrics at one noise level to the items with mistakes, by Shapley values.

    v(S) is the metric, averaged over folds, with mistakes only in the items of S; an item's Shapley value is its mean
    gain v(S + j) - v(S) over all orders of the items. All coalitions use the same random numbers, so a coalition is a
    subset of the mistakes of each person, and only their distinct rows are predicted, once for all metrics. The values
    add up to the total, but do not show causes.

    Parameters
    ----------
    experiment
        An experiment with one rater who makes mistakes.
    seeds
        One seed per replicate. With the seeds of a `simulate` run the mistakes are the same, and the values add up to
        its result.
    metrics
        Functions by name, each from sums to one value per fold and group, such as `lambda sums: sums.counts().kappa()`.
    level
        The index of the experiment's noise level; by default the highest.
    permutations
        The number of orders to draw for each replicate, in pairs of an order and its reverse. By default all coalitions
        are evaluated for up to 10 items, and 20 orders are drawn for more.
    threads, progress
        As for `simulate`.

    References
    ----------
    L. S. Shapley (1953), A value for n-person games, Contributions to the Theory of Games II. J. Castro, D. Gómez and
    J. Tejada (2009), Polynomial calculation of the Shapley value based on sampling, Computers & Operations Research 36.

    Examples
    --------
    >>> from evenhand.stats.noise import Flip, Linear, NoiseItem, replicate_seeds
    >>> people = np.array([[i % 2, i // 2 % 2] for i in range(80)], dtype=float)
    >>> items = tuple(NoiseItem((column,), Flip()) for column in (0, 1))
    >>> model = Linear(np.array([2.0, 0.5]), -1.2)
    >>> trial = Experiment(
    ...     features=people, predictors=(model,), items=items, groups=np.arange(80) // 40, levels=np.array([0.3])
    ... )
    >>> pabak = {"pabak": lambda sums: sums.counts().pabak()}
    >>> found = attribute(trial, replicate_seeds(5, np.random.default_rng(0)), pabak)["pabak"]
    >>> bool(np.allclose(found.values.sum(axis=1), found.total)), found.exact
    (True, True)
    """
    items, levels = len(experiment.items), experiment.levels.size
    if experiment.raters != 1:
        raise EvenhandError("Attribution needs an experiment with one rater who makes mistakes.")
    if not -levels <= level < levels:
        raise EvenhandError(
            "`level` must be one of the {levels} noise levels; got {level!r}.", levels=levels, level=level
        )
    if permutations is not None and permutations < 2:
        raise EvenhandError("`permutations` must be at least 2; got {permutations!r}.", permutations=permutations)
    exact = permutations is None and items <= MOST_EXACT
    groups = experiment.cells[1]
    attributions = {
        name: Attribution(np.empty((len(seeds), items, groups)), np.empty((len(seeds), groups)), exact)
        for name in metrics
    }

    experiment.prepare()
    orders = None if exact else permutations or 20
    tasks = [(1, partial(_attributed, experiment, seed, metrics, level % levels, orders)) for seed in seeds]
    for slot, shared in enumerate(run_tasks(tasks, threads=threads, progress=progress)):
        for name, (values, total) in shared.items():
            attributions[name].values[slot], attributions[name].total[slot] = values, total
    return attributions


def _attributed(
    experiment: Experiment, seed: SeedSequence, metrics: Mapping[str, Metric], level: int, orders: int | None
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the Shapley values and the total of each metric in one replicate, exact or from random orders."""
    mistakes, changed, rng = _mistakes_at(experiment, seed, level)
    if orders is None:
        summed = coalition_sums(experiment, mistakes, changed)
        worths = {name: _mean_over_folds(experiment, metric, summed) for name, metric in metrics.items()}
        return {name: (shapley(worth), worth[-1] - worth[0]) for name, worth in worths.items()}
    drawn = _orders(len(experiment.items), orders, rng)
    along = [_cumulative_sums(experiment, mistakes, changed, order) for order in drawn]
    return {
        name: _over_orders(drawn, [_mean_over_folds(experiment, metric, sums) for sums in along])
        for name, metric in metrics.items()
    }


def _mistakes_at(experiment: Experiment, seed: SeedSequence, level: int) -> tuple[DrawnMistakes, BoolArray, Generator]:
    """Return a replicate's mistakes, a mask (people, items) of the mistakes made at a level, and the generator."""
    stream, only = trials_of(experiment, [seed])[0 if experiment.common else level]
    rng = np.random.default_rng(stream)
    mistakes = DrawnMistakes.none(experiment, 1, steps_of(experiment))
    mistakes.fill(0, experiment, rng, only)
    return mistakes, mistakes.level[0] <= (level if experiment.common else 0), rng


def shapley(worth: FloatArray) -> FloatArray:
    """Return the Shapley values (items, ...) of a game from the worth of each coalition.

    Coalitions S are bit masks with 2^j for item j, and phi_j = sum over S without j of |S|! (J - |S| - 1)! / J!
    (worth[S + j] - worth[S]).

    Examples
    --------
    >>> shapley(np.array([0.0, 1.0, 2.0, 5.0]))
    array([2., 3.])
    """
    items = len(worth).bit_length() - 1
    if len(worth) != 2**items or items < 1:
        raise EvenhandError("A game needs the worth of all 2^J coalitions; got {number} values.", number=len(worth))
    coalition = np.arange(len(worth))
    size = ((coalition[:, np.newaxis] >> np.arange(items)) & 1).sum(axis=1)
    weight = np.array([factorial(s) * factorial(items - s - 1) / factorial(items) for s in range(items)])
    values = []
    for j in range(items):
        without = coalition[(coalition >> j) & 1 == 0]
        added = worth[without | (1 << j)] - worth[without]
        values.append(np.einsum("c,c...->...", weight[size[without]], added))
    return np.stack(values)


def coalition_sums(experiment: Experiment, mistakes: DrawnMistakes, changed: BoolArray) -> FloatArray:
    """Return the sums (8, 2^J, cells) of one trial with mistakes only in the items of each coalition.

    `changed` (people, items) marks the mistakes made at the level.

    Only the 2^m subsets of a person's m mistakes are predicted. Their Möbius transform is summed over people, and one
    sum over subsets (the zeta transform) then serves all coalitions.
    """
    base, items = experiment.base, len(experiment.items)
    cells = len(base.starts) - 1
    person, subset, local = _subsets(changed)
    wrong = np.flatnonzero(local > 0)
    score, label = base.score[person], base.label[person]
    active = (subset[wrong, np.newaxis] >> np.arange(items)) & 1 == 1
    score[wrong], label[wrong] = predict_states(experiment, mistakes, person[wrong], active)
    now = person_sums(base.label[person], label, base.score[person], score, base.centre[base.cell[person]])
    total = np.empty((len(SUMS), 2**items, cells))
    deepest = int(local.max(initial=0)).bit_length()
    pairs = [np.flatnonzero((local >> bit) & 1) for bit in range(deepest)]
    for number, value in enumerate(now):
        part = value.copy()
        for bit, upper in enumerate(pairs):
            part[upper] -= part[upper - (1 << bit)]
        summed = np.bincount(subset * cells + base.cell[person], part, 2**items * cells).reshape(2**items, cells)
        for j in range(items):
            halves = summed.reshape(-1, 2, 2**j, cells)
            halves[:, 1] += halves[:, 0]
        total[number] = summed
    return total


def _subsets(changed: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return every subset of every person's mistakes: the person, the items as bits, and the subset's number."""
    count = changed.sum(axis=1)
    person = np.repeat(np.arange(len(changed)), 1 << count)
    first = np.cumsum(1 << count) - (1 << count)
    local = np.arange(len(person)) - first[person]
    wrong_items = np.argsort(~changed, axis=1, kind="stable")  # a person's items with mistakes come first
    subset = np.zeros(len(person), dtype=np.int64)
    for bit in range(int(count.max(initial=0))):
        subset |= ((local >> bit) & 1) << wrong_items[person, bit]
    return person, subset, local


def _orders(items: int, permutations: int, rng: Generator) -> IntArray:
    """Return random orders (P, items); every second order is the reverse of the previous one."""
    half = [rng.permutation(items) for _ in range((permutations + 1) // 2)]
    return np.stack([order for drawn in half for order in (drawn, drawn[::-1])])[:permutations]


def _cumulative_sums(
    experiment: Experiment, mistakes: DrawnMistakes, changed: BoolArray, order: IntArray
) -> FloatArray:
    """Return the sums (8, 1 + items, cells) as items are added in order, treated like noise levels."""
    items, people = len(experiment.items), len(experiment.features)
    position = np.argsort(order)
    level = np.where(changed, position, items).astype(np.int16)
    changes = np.zeros((1, people, items), dtype=np.bool_)
    person, item = np.nonzero(changed)
    changes[0, person, position[item]] = True
    states = states_of(experiment, DrawnMistakes(level[np.newaxis], mistakes.value, changes))
    no_states = States(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, bool))
    parts = [sums_of_states(experiment, no_states, None, 1, 1), sums_of_states(experiment, states, None, 1, items)]
    return np.concatenate([part[:, 0] for part in parts], axis=1)


def _over_orders(orders: IntArray, worths: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return Shapley values (items, groups) and totals, from the worth (1 + items, groups) along each order."""
    values = np.zeros((orders.shape[1], worths[0].shape[1]))
    total = np.zeros(worths[0].shape[1])
    for order, worth in zip(orders, worths, strict=True):
        values[order] += np.diff(worth, axis=0) / len(orders)
        total += (worth[-1] - worth[0]) / len(orders)
    return values, total


def _mean_over_folds(experiment: Experiment, metric: Metric, summed: FloatArray) -> FloatArray:
    """Return the metric (..., groups) averaged over folds, from sums (8, ..., cells); nan if any fold is undefined."""
    sums = pair_sums(experiment, summed.reshape(*summed.shape[:-1], *experiment.cells))
    return np.asarray(metric(sums).mean(axis=-2))
