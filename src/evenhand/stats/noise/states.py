"""Mistakes, the distinct rows they produce, the predictions of these rows, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from evenhand.errors import EvenhandError
from evenhand.stats.agreement import BinaryCounts, ScoreMoments
from evenhand.stats.noise.experiment import Experiment, NoiseItem
from evenhand.stats.noise.predictors import Linear, Predictions, checked
from evenhand.stats.types import BoolArray, FloatArray, IntArray

SUMS = ("first_ones", "second_ones", "both_ones", "first", "second", "first_squares", "second_squares", "error_squares")
"""Per person: r, s, r s, x, y, x², y² and (y - x)², scores x and y minus the centre of their cell."""

OF_THE_FIRST = ("first_ones", "first", "first_squares")
"""The sums that a second rater's mistakes do not change."""


@dataclass(frozen=True, kw_only=True)
class PairSums:
    """Sums over people of two raters' decisions and scores, as arrays that broadcast with cells on the last axes.

    Scores are reduced by `centre`, a number near their mean, so that squares do not lose precision.

    Attributes
    ----------
    n
        The number of people.
    centre
        The number subtracted from the scores.
    first_ones, second_ones, both_ones
        People selected by the first rater, by the second, by both.
    first, second, first_squares, second_squares
        Sums of scores and of their squares.
    error_squares
        Sums of (second - first)².

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
    >>> float(sums.counts().kappa())
    0.5
    """

    n: FloatArray
    centre: FloatArray
    first_ones: FloatArray
    second_ones: FloatArray
    both_ones: FloatArray
    first: FloatArray
    second: FloatArray
    first_squares: FloatArray
    second_squares: FloatArray
    error_squares: FloatArray

    def counts(self) -> BinaryCounts:
        """Return the counts of the pairs of decisions."""
        a = self.both_ones
        b, c = self.second_ones - a, self.first_ones - a
        return BinaryCounts(*np.broadcast_arrays(a, b, c, self.n - a - b - c))

    def moments(self) -> ScoreMoments:
        """Return the moments of the two raters' scores."""
        with np.errstate(all="ignore"):
            x, y = self.first / self.n, self.second / self.n
            error = np.where(self.error_squares == 0, 0.0, y - x)
            squares, means = (self.first_squares, self.second_squares, self.error_squares), (x, y, error)
            variances = [size / self.n - mean**2 for size, mean in zip(squares, means, strict=True)]
            both = zip(variances, squares, strict=True)
            spreads = (np.where(variance * self.n <= 1e-14 * size, 0.0, variance) for variance, size in both)
            return ScoreMoments(*np.broadcast_arrays(self.n, x + self.centre, y + self.centre, *spreads, error))


def person_sums(r: BoolArray, s: BoolArray, x: FloatArray, y: FloatArray, centre: FloatArray) -> tuple[FloatArray, ...]:
    """Return each person's contribution to the sums of `PairSums`."""
    x, y = x - centre, y - centre
    first, second, both = r.astype(np.float64), s.astype(np.float64), (r & s).astype(np.float64)
    return first, second, both, x, y, x * x, y * y, (y - x) ** 2


@dataclass(frozen=True)
class DrawnMistakes:
    """The mistakes of one rater in T trials (replicates, or single levels), with people in base order.

    Attributes
    ----------
    level
        (T, people, items) the first level at which an entry has changed; the number of levels if it never does.
    value
        (T, people, columns) the new values of a changed item's columns; if all models are linear, (T, people, items)
        the shifts of their sums.
    changes
        (T, people, levels) whether anything changes at a level.
    """

    level: npt.NDArray[np.int16]
    value: FloatArray
    changes: BoolArray

    @classmethod
    def none(cls, experiment: Experiment, trials: int, steps: int) -> DrawnMistakes:
        """Return arrays without mistakes, to be filled."""
        people, items = len(experiment.features), len(experiment.items)
        width = items if experiment.slopes is not None else len(experiment.columns)
        level = np.full((trials, people, items), steps, dtype=np.int16)
        return cls(level, np.zeros((trials, people, width)), np.zeros((trials, people, steps), dtype=np.bool_))

    def fill(self, trial: int, experiment: Experiment, rng: Generator, only: int | None = None) -> None:
        """Draw the mistakes of one trial: of all levels with common random numbers, or of the level `only`."""
        items = experiment.items if experiment.renew is None else _renewed(experiment, rng)
        touched, steps = _touched(experiment, items, rng, only)
        entries, slopes, profile, first_column = experiment.entries, experiment.slopes, experiment.base.profile, 0
        for number, item in enumerate(items):
            columns = slice(first_column, first_column + len(item.columns))
            people, step = touched[number], steps[number]
            old = entries[columns].take(people, axis=1).T
            profiles = None if profile is None else profile[people]
            new = np.where(np.isnan(old), old, item.draw(old, profiles, rng))
            changed = np.flatnonzero(((new != old) & ~np.isnan(old)).any(axis=1))
            people, step, old, new = people[changed], step[changed], old[changed], new[changed]
            self.level[trial, people, number] = step
            self.changes[trial, people, step] = True
            if slopes is None:
                self.value[trial, people, columns] = new
            else:
                shift = slopes[columns].take(people, axis=1).T * (new - old)
                self.value[trial, people, number] = shift.sum(axis=1)
            first_column = columns.stop


def _touched(
    experiment: Experiment, items: Sequence[NoiseItem], rng: Generator, only: int | None
) -> tuple[list[IntArray], list[IntArray]]:
    """Return for each item the people with touched entries that may change, and the first levels of the changes."""
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
    people_of_item = [part - number * people for number, part in enumerate(np.split(flat, cuts))]
    return people_of_item, list(np.split(step, cuts))


def _exactly(
    experiment: Experiment, chance: FloatArray, rates: Sequence[FloatArray | None], rng: Generator, only: int | None
) -> tuple[list[IntArray], list[IntArray]]:
    """Return the touched people and first levels of each item for exact shares, floor(p n + U) of n at level p.

    There is one U per item and stratum. The entry of rank k = 0, 1 ... in a stratum is touched from the first level p
    at which p n + U reaches k + 1.
    """
    people_of_item, steps = [], []
    ranks = experiment.ranks
    levels = experiment.levels if only is None else experiment.levels[only : only + 1]
    up = rng.random((len(chance), int(ranks.stratum[-1]) + 1))
    for row, rate, draw in zip(chance, rates, up, strict=True):
        with np.errstate(divide="ignore"):
            needed = (ranks.within + (1.0 - draw[ranks.stratum])) / ranks.room
        inside = np.flatnonzero(needed <= levels[-1])
        step = np.searchsorted(levels, needed[inside])
        people = np.argsort(experiment.base.stratum + row)[inside]  # people are sorted by stratum
        changing = slice(None) if rate is None else rng.random(people.size) < rate[people]
        people_of_item.append(people[changing])
        steps.append(step[changing])
    return people_of_item, steps


def _renewed(experiment: Experiment, rng: Generator) -> Sequence[NoiseItem]:
    items = tuple(experiment.renew(rng)) if experiment.renew is not None else experiment.items
    if [(i.columns, len(i.others)) for i in items] != [(i.columns, len(i.others)) for i in experiment.items]:
        raise EvenhandError("`renew` must return items with the same columns and profiles as `items`, in their order.")
    return items


@dataclass(frozen=True)
class States:
    """The predictions that result from one rater's mistakes, sorted by trial, person and level.

    Attributes
    ----------
    key
        (trial * people + person) * steps + step, rising.
    score, label
        The prediction from that step until the person's next state.
    """

    key: IntArray
    score: FloatArray
    label: BoolArray


def states_of(experiment: Experiment, mistakes: DrawnMistakes) -> States:
    """Return the predictions of every distinct row that the mistakes produce."""
    steps = mistakes.changes.shape[2]
    key = np.flatnonzero(mistakes.changes)
    slot, step = np.divmod(key, steps)
    active = mistakes.level.reshape(-1, mistakes.level.shape[2])[slot] <= step[:, np.newaxis]
    predictions = predict_states(experiment, mistakes, slot, active)
    return States(key, predictions.score, predictions.label)


def predict_states(experiment: Experiment, mistakes: DrawnMistakes, slot: IntArray, active: BoolArray) -> Predictions:
    """Return the predictions of people with some of their mistakes.

    Parameters
    ----------
    slot
        (S,) trial * people + person.
    active
        (S, items) mask of the active mistakes.
    """
    person = slot % len(experiment.features)
    if experiment.slopes is not None:
        shifts = mistakes.value.reshape(-1, mistakes.value.shape[2])[slot]
        sums = base_sums(experiment)[person] + np.einsum("sj,sj->s", shifts, active.astype(np.float64))
        return cast(Linear, experiment.predictors[0]).of_sums(sums)
    return _by_rows(experiment, mistakes, slot, person, active)


def base_sums(experiment: Experiment) -> FloatArray:
    """Return (people,) intercept + row · weights without mistakes, for linear models."""
    sums = np.empty(len(experiment.features))
    for number, model in enumerate(experiment.predictors):
        rows = fold_slice(experiment, number)
        linear = cast(Linear, model)
        sums[rows] = linear.sums(experiment.base.features[rows])
    return sums


def fold_slice(experiment: Experiment, fold: int) -> slice:
    """Return the slice of a fold's people in base order."""
    groups = experiment.cells[1]
    return slice(int(experiment.base.starts[fold * groups]), int(experiment.base.starts[(fold + 1) * groups]))


def _by_rows(
    experiment: Experiment, mistakes: DrawnMistakes, slot: IntArray, person: IntArray, active: BoolArray
) -> Predictions:
    score, label = np.empty(len(slot)), np.empty(len(slot), dtype=np.bool_)
    most = max(1, experiment.memory // (8 * experiment.features.shape[1]))
    fold = experiment.base.fold[person]
    for number, predict in enumerate(experiment.predictors):
        states = np.flatnonzero(fold == number)
        for start in range(0, states.size, most):
            chunk = states[start : start + most]
            rows = rows_of(experiment, mistakes, slot[chunk], person[chunk], active[chunk])
            score[chunk], label[chunk] = checked(predict, rows)
    return Predictions(score, label)


def rows_of(
    experiment: Experiment, mistakes: DrawnMistakes, slot: IntArray, person: IntArray, active: BoolArray
) -> FloatArray:
    """Return the features of each state: the person's features with the active mistakes."""
    rows = experiment.base.features[person]
    values = mistakes.value.reshape(-1, mistakes.value.shape[2])
    position = 0
    for number, item in enumerate(experiment.items):
        on = active[:, number]
        for column in item.columns:
            rows[on, column] = values[slot[on], position]
            position += 1
    return rows
