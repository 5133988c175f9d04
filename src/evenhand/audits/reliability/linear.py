"""Models that are linear in the raw columns, found by asking them; the engine then needs no rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from evenhand.audits.reliability.people import People
from evenhand.stats.noise import Linear, NoiseItem, NoiseModel, Normal, between
from evenhand.stats.types import FloatArray

Scores: TypeAlias = Callable[[FloatArray], FloatArray]
"""Rows (m, features) to scores (m,)."""

_SCALERS = {"StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"}
_MOST_ROWS, _MOST_VALUES = 500, 20
_DRAWS = 4
_FAR = 8.0
"""Standard deviations that no error is off by."""
_SAME = 1e-9


def as_linear(
    model: Any,
    given: Callable[[FloatArray], Any],
    scores: Scores,
    columns: Sequence[str],
    people: People,
    threshold: float,
    mistakes: Sequence[NoiseItem],
) -> Linear | None:
    """Return a logistic regression, behind scalers or not, as a linear model of the raw columns; None for others.

    Its weights are read off its own sums, one column moved at a time, and must then give its scores for people as they
    are and with the audit's own mistakes, also the largest ones: scalers that clip, and encoders that leave unknown
    values out, are linear only inside what they were fitted to.

    Parameters
    ----------
    model : the fitted model.
    given : turns rows of the matrix into what the model takes.
    scores : rows of the matrix to scores.
    columns, people, threshold : the model's features, the people, and the limit of its scores.
    mistakes : all that can go wrong, in any setting and any group.
    """
    if not 0 < threshold < 1 or not _may_be_linear(model) or np.isnan(people.matrix).any():
        return None
    from scipy.special import expit

    try:
        found = _read_off(model, given, columns, people, mistakes, threshold)
        rows = _with_mistakes(people, mistakes)
        wanted = rows @ found.weights + found.intercept
        # Scores near 0 and 1 hide what a sum does, and rounding is that of the largest term of a sum.
        near = _SAME * (1.0 + float(np.abs(rows * found.weights).max()))
        same = np.allclose(wanted, model.decision_function(given(rows)), rtol=0, atol=near)
        same = same and np.allclose(expit(wanted), scores(rows), rtol=0, atol=_SAME)
    except Exception:  # a model that cannot take some row is not linear; the simulation tells if it meets such a row
        return None
    return found if same else None


def _read_off(
    model: Any,
    given: Callable[[FloatArray], Any],
    columns: Sequence[str],
    people: People,
    mistakes: Sequence[NoiseItem],
    threshold: float,
) -> Linear:
    """Return the linear model that agrees with a model where one column at a time is moved from its least value."""
    moved = {column for item in mistakes for column in item.columns}
    lowest, highest = (np.array([feature.distinct[end] for feature in people.features]) for end in (0, -1))
    highest[[at for at in moved if lowest[at] == highest[at]]] += 1.0
    places = [at for at in people.places(columns) if highest[at] > lowest[at]]
    rows = np.repeat(lowest[np.newaxis], len(places) + 1, axis=0)
    rows[np.arange(1, len(rows)), places] = highest[places]
    sums = np.asarray(model.decision_function(given(rows)), dtype=np.float64)
    weights = np.zeros(len(lowest))
    weights[places] = (sums[1:] - sums[0]) / (highest - lowest)[places]
    return Linear(weights, float(sums[0] - lowest @ weights), threshold)


def _with_mistakes(people: People, mistakes: Sequence[NoiseItem]) -> FloatArray:
    """Return some people as they are, with drawn mistakes in many columns at once, and with the largest in one."""
    rng = np.random.default_rng(0)
    rows = _some_rows(people)
    ways = [(list(item.columns), model) for item in mistakes for model in (item.model, *item.others)]
    found = [rows]
    for _ in range(_DRAWS):
        other = rows.copy()
        for columns, model in ways:  # where a column goes wrong in several ways, people have one of them
            touched = rng.random(len(rows)) < 0.8
            other[:, columns] = np.where(
                touched[:, np.newaxis], _drawn(model, rows[:, columns], rng), other[:, columns]
            )
        found.append(other)
    for columns, model in ways:
        for end in (0, -1):
            other = rows.copy()
            other[:, columns] = [people.features[column].distinct[end] for column in columns]
            if isinstance(model, Normal):
                largest = np.rint(_FAR * model.sd) if model.whole else _FAR * model.sd
                beyond = other[:, columns] + (largest if end else -largest)
                other[:, columns] = between(beyond, model.minimum, model.maximum)
            else:
                other[:, columns] = _drawn(model, other[:, columns], rng)
            found.append(other)
    return np.concatenate(found)


def _drawn(model: NoiseModel, values: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return values gone wrong, those that never do as they are."""
    rate = model.rate(values)
    drawn = model.draw(values, rng)
    return drawn if rate is None else np.asarray(np.where(rate[:, np.newaxis] > 0, drawn, values))


def _some_rows(people: People) -> FloatArray:
    """Return people from all over the table: some for every value of a column with few, and for the ends of others."""
    pick = np.linspace(0, len(people.matrix) - 1, min(_MOST_ROWS, len(people.matrix))).astype(np.int64).tolist()
    for column, feature in enumerate(people.features):
        values = feature.distinct if len(feature.distinct) <= _MOST_VALUES else feature.distinct[[0, -1]]
        pick += [int(np.argmax(people.matrix[:, column] == value)) for value in values]
    return people.matrix[np.unique(np.array(pick, dtype=np.int64))]


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
