"""From mistakes to predictions: the distinct rows that mistakes make of each person, predicted once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from evenhand.stats.noise.draws import Mistakes
from evenhand.stats.noise.experiment import Experiment
from evenhand.stats.noise.predictors import Linear, Predictions, checked
from evenhand.stats.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class States:
    """What one rater's mistakes make of the predictions, sorted by trial, person and level.

    Attributes
    ----------
    key
        (trial * people + person) * steps + step, rising.
    score, label
        The prediction from that step on, until the person's next state.
    """

    key: IntArray
    score: FloatArray
    label: BoolArray


def states_of(experiment: Experiment, mistakes: Mistakes) -> States:
    """Predict every distinct row that mistakes make of a person."""
    steps = mistakes.changes.shape[2]
    key = np.flatnonzero(mistakes.changes)
    place, step = np.divmod(key, steps)
    active = mistakes.level.reshape(-1, mistakes.level.shape[2])[place] <= step[:, np.newaxis]
    found = predict_states(experiment, mistakes, place, active)
    return States(key, found.score, found.label)


def predict_states(experiment: Experiment, mistakes: Mistakes, place: IntArray, active: BoolArray) -> Predictions:
    """Predict people with some of their mistakes.

    Parameters
    ----------
    place
        (S,) trial * people + person.
    active
        (S, items) which mistakes of theirs are made.
    """
    person = place % len(experiment.features)
    if experiment.slopes is not None:
        shifts = mistakes.value.reshape(-1, mistakes.value.shape[2])[place]
        sums = base_sums(experiment)[person] + np.einsum("sj,sj->s", shifts, active.astype(np.float64))
        return cast(Linear, experiment.predictors[0]).of_sums(sums)
    return _by_rows(experiment, mistakes, place, person, active)


def base_sums(experiment: Experiment) -> FloatArray:
    """Return (people,) intercept + row · weights of the true features, of linear models."""
    sums = np.empty(len(experiment.features))
    for number, model in enumerate(experiment.predictors):
        rows = fold_slice(experiment, number)
        linear = cast(Linear, model)
        sums[rows] = experiment.base.features[rows] @ linear.weights + linear.intercept
    return sums


def fold_slice(experiment: Experiment, fold: int) -> slice:
    """Return where the people of a fold are in the base order."""
    groups = experiment.cells[1]
    return slice(int(experiment.base.starts[fold * groups]), int(experiment.base.starts[(fold + 1) * groups]))


def _by_rows(
    experiment: Experiment, mistakes: Mistakes, place: IntArray, person: IntArray, active: BoolArray
) -> Predictions:
    score, label = np.empty(len(place)), np.empty(len(place), dtype=np.bool_)
    most = max(1, experiment.memory // (8 * experiment.features.shape[1]))
    fold = experiment.base.fold[person]
    for number, predict in enumerate(experiment.predictors):
        states = np.flatnonzero(fold == number)
        for start in range(0, states.size, most):
            chunk = states[start : start + most]
            rows = rows_of(experiment, mistakes, place[chunk], person[chunk], active[chunk])
            score[chunk], label[chunk] = checked(predict, rows)
    return Predictions(score, label)


def rows_of(
    experiment: Experiment, mistakes: Mistakes, place: IntArray, person: IntArray, active: BoolArray
) -> FloatArray:
    """Return the features of each state: those of the person, with the active mistakes."""
    rows = experiment.base.features[person]
    values = mistakes.value.reshape(-1, mistakes.value.shape[2])
    at = 0
    for number, item in enumerate(experiment.items):
        on = active[:, number]
        for column in item.columns:
            rows[on, column] = values[place[on], at]
            at += 1
    return rows
