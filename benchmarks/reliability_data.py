"""People, folds and models for the reliability benchmarks, from the COMPAS data if EVENHAND_DATA contains it."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evenhand.stats.noise import Experiment, Linear, Predictor, published_noise
from evenhand.stats.types import FloatArray, IntArray

NUMERIC, BINARY = (1, 3, 4, 5, 6), (12, 11, 0)  # age and counts; charge degree and sex
MINIMA = {1: 18.0, 3: 0.0, 4: 0.0, 5: 0.0, 6: 0.0}
FOLDS = 5


class People(NamedTuple):
    """Features in the author's order of columns, groups, outcomes, folds, and the source of the data."""

    features: FloatArray
    group: IntArray
    outcome: IntArray
    fold: IntArray
    source: str


def people() -> People:
    """Return the 6,167 defendants of the study, or synthetic people of the same shape."""
    path = (
        Path(os.environ.get("EVENHAND_DATA") or "/nonexistent") / "compas/friedler_numerical_binsensitive_slim.csv.gz"
    )
    if path.is_file():
        with gzip.open(path, "rt") as file:
            head, *rows = csv.reader(file)
        table = np.array(rows, dtype=np.float64)
        outcome = head.index("two_year_recid")
        features, source = np.ascontiguousarray(np.delete(table, outcome, axis=1)), "COMPAS"
        label = table[:, outcome].astype(np.int64)
    else:
        features, label, source = *_made_up(), "made-up people"
    fold = np.random.default_rng(0).permutation(np.arange(len(features)) % FOLDS)
    return People(features, features[:, 2].astype(np.int64), label, fold, source)


def _made_up(size: int = 6_167) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(1)
    sex, race, felony = (rng.random(size) < share for share in (0.81, 0.34, 0.64))
    age = 18 + rng.gamma(1.7, 9.5, size).astype(int)
    counts = [rng.negative_binomial(0.1, 0.1 / (0.1 + mean), size) for mean in (0.06, 0.09, 0.11)]
    priors = rng.negative_binomial(0.6, 0.6 / 3.8, size)
    bins = [(age >= 25) & (age <= 45), age > 45, age < 25]
    columns = [sex, age, race, *counts, priors, sex & race, *bins, felony, ~felony]
    logit = 0.2 * priors - 0.05 * (age - 34) + 0.4 * sex - 0.8
    return np.column_stack(columns).astype(np.float64), (rng.random(size) < 1 / (1 + np.exp(-logit))).astype(np.int64)


def fitted(crowd: People, estimator: Any) -> list[Any]:
    """Return one pipeline (scaled numbers, estimator) per fold, fitted to the other folds."""
    from sklearn.base import clone
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaler = ColumnTransformer([("numbers", StandardScaler(), list(NUMERIC))], remainder="passthrough")
    models = []
    for fold in range(FOLDS):
        train = crowd.fold != fold
        pipeline = make_pipeline(clone(scaler), clone(estimator))
        models.append(pipeline.fit(crowd.features[train], crowd.outcome[train]))
    return models


def linear(pipeline: Any) -> Linear:
    """Return a pipeline of scaler and logistic regression as a linear model of raw features."""
    scaler, regression = pipeline[0].named_transformers_["numbers"], pipeline[-1]
    rest = [column for column in range(13) if column not in NUMERIC]
    weights = np.empty(13)
    weights[list(NUMERIC)] = regression.coef_[0][: len(NUMERIC)] / scaler.scale_
    weights[rest] = regression.coef_[0][len(NUMERIC) :]
    shift = float((weights[list(NUMERIC)] * scaler.mean_).sum())
    return Linear(weights, float(regression.intercept_[0]) - shift)


def experiment(crowd: People, models: tuple[Predictor, ...], name: str, **settings: Any) -> Experiment:
    """Return a published experiment on these people."""
    noise = published_noise(name)
    items = noise.items(NUMERIC, BINARY, MINIMA)
    return Experiment(
        features=crowd.features,
        predictors=models,
        items=items,
        groups=crowd.group,
        folds=crowd.fold,
        shares=noise.shares,
        **settings,
    )
