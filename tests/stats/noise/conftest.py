"""People with features of every kind, models, and the definition of an experiment written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from evenhand.stats.noise import (
    Confusion,
    Experiment,
    Flip,
    Linear,
    NoiseItem,
    Normal,
    OneHot,
    Paths,
    Predictor,
    neighbours,
    thresholded,
)
from evenhand.stats.noise.engine import trials_of
from evenhand.stats.noise.states import DrawnMistakes
from evenhand.stats.types import FloatArray

ITEMS = (
    NoiseItem((0,), Flip()),
    NoiseItem((1,), Normal(1.5)),
    NoiseItem((2,), Normal(0.5, whole=False, minimum=-1.0, maximum=2.0)),
    NoiseItem((3,), Confusion((1.0, 2.0, 3.0), ((0.2, 0.5, 0.3), (0.5, 0.0, 0.5), (0.1, 0.1, 0.8)))),
    NoiseItem((4,), neighbours((0.0, 1.0, 2.0, 3.0, 4.0))),
    NoiseItem((5, 6, 7), OneHot()),
)
WEIGHTS = np.array([0.8, -0.3, 0.9, 0.5, -0.4, 0.3, -0.2, 0.6, 0.7])


def _features(people: int = 90, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    category = rng.integers(0, 3, people)
    return np.column_stack(
        [
            rng.integers(0, 2, people),
            rng.integers(0, 9, people),
            rng.normal(size=people).clip(-1, 2),
            rng.integers(1, 4, people),
            rng.integers(0, 5, people),
            category[:, np.newaxis] == np.arange(3),
            rng.integers(0, 2, people),
        ]
    ).astype(np.float64)


def _linear(folds: int) -> tuple[Predictor, ...]:
    return tuple(Linear(WEIGHTS * (1 + 0.2 * fold), -0.2 * fold) for fold in range(folds))


def _curved(folds: int) -> tuple[Predictor, ...]:
    """Models that are not linear: with products of features."""

    def score(rows: FloatArray, fold: int) -> FloatArray:
        return np.asarray(1 / (1 + np.exp(-(rows @ WEIGHTS - 0.4 * fold + 0.2 * rows[:, 0] * rows[:, 1]))))

    return tuple(thresholded(lambda rows, fold=fold: score(rows, fold)) for fold in range(folds))  # type: ignore[misc]


def _experiment(
    models: Callable[[int], tuple[Predictor, ...]] = _linear, folds: int = 2, **settings: Any
) -> Experiment:
    rng = np.random.default_rng(9)
    features = _features()
    chosen: dict[str, Any] = {"items": ITEMS, "levels": np.array([0.0, 0.1, 0.25, 0.5, 0.9])} | settings
    return Experiment(
        features=features,
        predictors=models(folds),
        groups=rng.integers(0, 2, 90),
        folds=rng.permutation(np.arange(90) % folds),
        **chosen,
    )


def _by_definition(experiment: Experiment, seeds: Sequence[np.random.SeedSequence]) -> Paths:
    """Perturb and predict everybody at every level, one after the other, from the same random numbers."""
    base, levels = experiment.base, experiment.levels.size
    steps = levels if experiment.common else 1
    generic = Experiment(
        features=experiment.features,
        predictors=tuple(_as_rows(model) for model in experiment.predictors),
        items=experiment.items,
        groups=experiment.groups,
        folds=experiment.folds,
        levels=experiment.levels,
        shares=experiment.shares,
        common=experiment.common,
        raters=experiment.raters,
        renew=experiment.renew,
        profiles=experiment.profiles,
        paces=experiment.paces,
    )
    score = np.empty((2, len(seeds) * levels, len(experiment.features)))
    label = np.empty(score.shape, dtype=bool)
    for number, (seed, only) in enumerate(trials_of(experiment, seeds)):
        rng = np.random.default_rng(seed)
        drawn = [DrawnMistakes.none(generic, 1, steps) for _ in range(experiment.raters)]
        for mistakes in drawn:
            mistakes.fill(0, generic, rng, only)
        for step in range(steps):
            for rater in (0, 1):
                rows = base.features.copy()
                if rater == 1 or experiment.raters == 2:
                    mistakes = drawn[0] if rater == 1 else drawn[1]
                    at = 0
                    for j, item in enumerate(experiment.items):
                        for column in item.columns:
                            for person in range(len(rows)):
                                if mistakes.level[0, person, j] <= step:
                                    rows[person, column] = mistakes.value[0, person, at]
                            at += 1
                for fold, predict in enumerate(generic.predictors):
                    own = base.fold == fold
                    found = predict(rows[own])
                    score[rater, number * steps + step, own] = found.score
                    label[rater, number * steps + step, own] = found.label
    shape = (len(seeds), levels, len(experiment.features))
    return Paths(score[0].reshape(shape), label[0].reshape(shape), score[1].reshape(shape), label[1].reshape(shape))


def _as_rows(model: Predictor) -> Predictor:
    return lambda rows: model(rows)


@pytest.fixture(scope="session")
def experiment() -> Callable[..., Experiment]:
    return _experiment


@pytest.fixture(scope="session")
def by_definition() -> Callable[..., Paths]:
    return _by_definition


@pytest.fixture(scope="session")
def curved() -> Callable[[int], tuple[Predictor, ...]]:
    return _curved


@pytest.fixture(scope="session")
def linear() -> Callable[[int], tuple[Predictor, ...]]:
    return _linear
