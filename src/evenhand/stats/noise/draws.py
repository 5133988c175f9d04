"""Random mistakes: which entries are touched from which level on, and what they become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.errors import EvenhandError
from evenhand.stats.noise.experiment import Experiment, NoiseItem
from evenhand.stats.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Mistakes:
    """The mistakes of one rater in T trials (replicates, or levels of them drawn afresh), people in base order.

    Attributes
    ----------
    level
        (T, people, items) from which level on an entry has changed; the number of levels where it never does.
    value
        (T, people, columns) what the columns of a changed item become; (T, people, items) how far they shift the sum
        where all models are linear.
    changes
        (T, people, levels) whether something changes there.
    """

    level: npt.NDArray[np.int16]
    value: FloatArray
    changes: BoolArray


def no_mistakes(experiment: Experiment, trials: int, steps: int) -> Mistakes:
    """Return mistakes that are yet to be filled in: none."""
    people, items = len(experiment.features), len(experiment.items)
    width = items if experiment.slopes is not None else len(experiment.columns)
    return Mistakes(
        np.full((trials, people, items), steps, dtype=np.int16),
        np.zeros((trials, people, width)),
        np.zeros((trials, people, steps), dtype=np.bool_),
    )


def fill_mistakes(
    mistakes: Mistakes, trial: int, experiment: Experiment, rng: np.random.Generator, only: int | None = None
) -> None:
    """Draw the mistakes of one trial: at all levels with common random numbers, or at one level `only`."""
    items = experiment.items if experiment.renew is None else _renewed(experiment, rng)
    touched, steps = _touched(experiment, items, rng, only)
    entries, slopes, profile, at = experiment.entries, experiment.slopes, experiment.base.profile, 0
    for number, item in enumerate(items):
        columns = slice(at, at + len(item.columns))
        people, step = touched[number], steps[number]
        old = entries[columns].take(people, axis=1).T
        profiles = None if profile is None else profile[people]
        new = np.where(np.isnan(old), old, item.draw(old, profiles, rng))
        changed = np.flatnonzero(((new != old) & ~np.isnan(old)).any(axis=1))
        people, step, old, new = people[changed], step[changed], old[changed], new[changed]
        mistakes.level[trial, people, number] = step
        mistakes.changes[trial, people, step] = True
        if slopes is None:
            mistakes.value[trial, people, columns] = new
        else:
            shift = slopes[columns].take(people, axis=1).T * (new - old)
            mistakes.value[trial, people, number] = shift.sum(axis=1)
        at = columns.stop


def _touched(
    experiment: Experiment, items: Sequence[NoiseItem], rng: np.random.Generator, only: int | None
) -> tuple[list[IntArray], list[IntArray]]:
    """Return for each item the people whose entries are touched and may change, and from which level on."""
    people = len(experiment.features)
    chance = rng.random((len(items), people))
    levels = experiment.levels if only is None else experiment.levels[only : only + 1]
    rates = [item.rate(experiment.base.features[:, item.columns], experiment.base.profile) for item in items]
    if experiment.shares == "exact":
        return _exactly(experiment, chance, rates, rng, only)
    if experiment.pace is not None:
        rates = [experiment.pace if rate is None else experiment.pace * rate for rate in rates]
    for row, rate in zip(chance, rates, strict=True):
        if rate is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                np.divide(row, rate, out=row)
    flat = np.flatnonzero(chance < levels[-1])
    step = np.searchsorted(levels, chance.ravel()[flat], side="right")
    cuts = np.searchsorted(flat, np.arange(1, len(items)) * people)
    who = [part - number * people for number, part in enumerate(np.split(flat, cuts))]
    return who, list(np.split(step, cuts))


def _exactly(
    experiment: Experiment,
    chance: FloatArray,
    rates: Sequence[FloatArray | None],
    rng: np.random.Generator,
    only: int | None,
) -> tuple[list[IntArray], list[IntArray]]:
    """Touch the entries of lowest rank in each stratum: floor(p n + U) of n at level p, with one U an item and stratum.

    The entry of rank k = 0, 1 ... is touched from the first level p on at which p n + U reaches k + 1.
    """
    who, steps = [], []
    ranks = experiment.ranks
    levels = experiment.levels if only is None else experiment.levels[only : only + 1]
    up = rng.random((len(chance), int(ranks.stratum[-1]) + 1))
    for row, rate, own in zip(chance, rates, up, strict=True):
        with np.errstate(divide="ignore"):
            needed = (ranks.within + (1.0 - own[ranks.stratum])) / ranks.room
        inside = np.flatnonzero(needed <= levels[-1])
        step = np.searchsorted(levels, needed[inside])
        people = np.argsort(experiment.base.stratum + row)[inside]  # people are in the order of strata
        kept = slice(None) if rate is None else rng.random(people.size) < rate[people]
        who.append(people[kept])
        steps.append(step[kept])
    return who, steps


def _renewed(experiment: Experiment, rng: np.random.Generator) -> Sequence[NoiseItem]:
    items = tuple(experiment.renew(rng)) if experiment.renew is not None else experiment.items
    if [(i.columns, len(i.others)) for i in items] != [(i.columns, len(i.others)) for i in experiment.items]:
        raise EvenhandError("`renew` must return items with the same columns and profiles as `items`, in their order.")
    return items
