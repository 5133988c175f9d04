"""Models that are linear in the raw columns, found by asking them; the engine then needs no rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from evenhand.audits.reliability.people import People
from evenhand.stats.noise import Linear
from evenhand.stats.types import FloatArray

Scores: TypeAlias = Callable[[FloatArray], FloatArray]
"""Rows (m, features) to scores (m,)."""

_SCALERS = {"StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"}
_SHIFTS = (1.0, -3.0, 7.5)
_MOST_ROWS = 500


def as_linear(
    model: Any, given: Callable[[FloatArray], Any], scores: Scores, columns: Sequence[str], people: People,
    threshold: float,
) -> Linear | None:  # fmt: skip
    """Return a logistic regression, behind scalers or not, as a linear model of the raw columns; None for others.

    Its weights are read off its own sums, one column moved at a time, and must then give its scores for people with
    many columns moved at once.

    Parameters
    ----------
    model : the fitted model.
    given : turns rows of the matrix into what the model takes.
    scores : rows of the matrix to scores.
    columns, people, threshold : the model's features, the people, and the limit of its scores.
    """
    if not 0 < threshold < 1 or not _may_be_linear(model) or np.isnan(people.matrix).any():
        return None
    from scipy.special import expit

    places = people.places(columns)
    lowest = np.array([feature.distinct[0] for feature in people.features])
    steps = np.array([max(np.ptp(people.features[place].distinct), 1.0) for place in places])
    rows = np.repeat(lowest[np.newaxis], len(places) + 1, axis=0)
    rows[np.arange(1, len(rows)), places] += steps
    sums = np.asarray(model.decision_function(given(rows)), dtype=np.float64)
    weights = np.zeros(len(lowest))
    weights[places] = (sums[1:] - sums[0]) / steps
    found = Linear(weights, float(sums[0] - lowest @ weights), threshold)
    rows = _moved_about(people, places)
    return found if np.allclose(expit(rows @ weights + found.intercept), scores(rows), rtol=0, atol=1e-10) else None


def _moved_about(people: People, places: Sequence[int]) -> FloatArray:
    """Return some people as they are, and with many columns moved at once."""
    pick = np.linspace(0, len(people.matrix) - 1, min(_MOST_ROWS, len(people.matrix))).astype(np.int64)
    rows = people.matrix[pick]
    shifted = [rows]
    for number, shift in enumerate(_SHIFTS):
        other = rows.copy()
        for at, place in enumerate(places):
            feature = people.features[place]
            if not feature.categorical:  # categories only take the values they have
                other[:, place] += shift * (1 + (at + number) % 3)
            elif (at + number) % 2:
                low, high = feature.distinct[[0, -1]]
                other[:, place] = low + high - other[:, place]
        shifted.append(other)
    return np.concatenate(shifted)


def _may_be_linear(model: Any) -> bool:
    """Tell whether a model is a logistic regression of scikit-learn behind steps that keep it linear."""
    if not type(model).__module__.startswith("sklearn."):
        return False
    name = type(model).__name__
    if name == "Pipeline":
        *before, last = [part for _, part in model.steps]
        return all(_keeps_linear(part) for part in before) and _may_be_linear(last)
    return name == "LogisticRegression" and getattr(model, "coef_", np.zeros((2, 1))).shape[0] == 1


def _keeps_linear(part: Any) -> bool:
    if part is None or isinstance(part, str):
        return part in (None, "passthrough", "drop")
    if type(part).__name__ == "ColumnTransformer":
        return all(_keeps_linear(inner) for _, inner, _ in part.transformers_)
    if type(part).__name__ == "OneHotEncoder":
        return all(len(known) <= 2 for known in part.categories_)
    if type(part).__name__ == "FunctionTransformer":
        return part.func is None  # a ColumnTransformer holds what it passes through as such
    return type(part).__name__ in _SCALERS and type(part).__module__.startswith("sklearn.")
