"""Models as the noise engine sees them: rows of features in, scores and decisions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.types import BoolArray, FloatArray


class Predictions(NamedTuple):
    """Scores, and which people are selected."""

    score: FloatArray
    label: BoolArray


Predictor: TypeAlias = Callable[[FloatArray], Predictions]
"""Rows (m, d) of raw features to predictions; called from several threads at once when there are several."""

RowFunction: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Linear:
    """A linear model of the raw features: score = link(intercept + row · weights), selected when score > threshold.

    The engine does not build rows for it: a mistake shifts the sum by weight times error.

    Attributes
    ----------
    weights
        (d,) one a column, in raw units: divide by the scale of a scaler.
    intercept
        With a scaler: less the sum of coefficient times mean over scale.
    threshold
        For the logistic link it is compared on the scale of the sum, so that 0.5 is a sum above 0. A sum that exceeds
        it by less than the rounding of its terms is a tie, and a tie is not selected: with whole-number features ties
        are common, and must not depend on the order of additions.
    link
        'logistic' or 'identity'.

    Examples
    --------
    >>> model = Linear(np.array([1.0, -1.0]), 0.0)
    >>> model(np.array([[2.0, 2.0], [3.0, 2.0]])).label.tolist()
    [False, True]
    """

    weights: FloatArray
    intercept: float
    threshold: float = 0.5
    link: Literal["logistic", "identity"] = "logistic"

    def __post_init__(self) -> None:
        require_choice("link", self.link, ("logistic", "identity"))
        if self.weights.ndim != 1 or not np.isfinite(self.weights).all() or not np.isfinite(self.intercept):
            raise EvenhandError("The weights of a linear model must be one finite number a column.")

    def __call__(self, rows: FloatArray) -> Predictions:
        """Return the predictions of rows."""
        return self.of_sums(rows @ self.weights + self.intercept)

    def of_sums(self, sums: FloatArray) -> Predictions:
        """Return the predictions where intercept + row · weights are known."""
        from scipy.special import expit, logit

        tie = 1e-12 * (abs(self.intercept) + float(np.abs(self.weights).sum()))
        if self.link == "identity":
            return Predictions(sums, sums > self.threshold + tie)
        return Predictions(np.asarray(expit(sums)), sums > float(logit(self.threshold)) + tie)


def thresholded(score: RowFunction, threshold: float = 0.5) -> Predictor:
    """Return the predictor that selects where a score function exceeds a threshold.

    Examples
    --------
    >>> thresholded(lambda rows: rows[:, 0])(np.array([[0.5], [0.6]])).label.tolist()
    [False, True]
    """

    def predict(rows: FloatArray) -> Predictions:
        scores = np.asarray(score(rows), dtype=np.float64)
        return Predictions(scores, scores > threshold)

    return predict


def with_derived(predict: Predictor, derive: RowFunction) -> Predictor:
    """Return the predictor of rows whose derived columns follow their sources: predict(derive(rows)).

    Examples
    --------
    >>> def follow(rows):
    ...     rows[:, 1] = 2 * rows[:, 0]
    ...     return rows
    >>> with_derived(thresholded(lambda rows: rows[:, 1]), follow)(np.array([[1.0, 0.0]])).score.tolist()
    [2.0]
    """
    return lambda rows: predict(derive(rows.copy()))


def products(sources: Mapping[int, Sequence[int]]) -> RowFunction:
    """Return the function that sets columns to the product of others, for `with_derived`.

    Parameters
    ----------
    sources
        For each column that is a product, the columns it is the product of.

    Examples
    --------
    >>> products({2: (0, 1)})(np.array([[3.0, 2.0, 0.0]])).tolist()
    [[3.0, 2.0, 6.0]]
    """

    def derive(rows: FloatArray) -> FloatArray:
        for column, factors in sources.items():
            rows[:, column] = np.prod(rows[:, list(factors)], axis=1)
        return rows

    return derive


def once_per_distinct_row(predict: Predictor) -> Predictor:
    """Return a predictor that is asked once about equal rows; worth it where predicting is dear.

    Examples
    --------
    >>> asked = []
    >>> def model(rows):
    ...     asked.append(len(rows))
    ...     return rows[:, 0]
    >>> once_per_distinct_row(thresholded(model))(np.array([[1.0], [1.0], [0.0]])).score.tolist(), asked
    ([1.0, 1.0, 0.0], [2])
    """

    def asked_once(rows: FloatArray) -> Predictions:
        if len(rows) == 0:
            return predict(rows)
        packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
        _, first, back = np.unique(packed, return_index=True, return_inverse=True)
        found = predict(rows[first])
        return Predictions(found.score[back], found.label[back])

    return asked_once


def checked(predict: Predictor, rows: FloatArray) -> Predictions:
    """Return predictions of the right shape and without nan, or raise an `EvenhandError` that says what is wrong."""
    found = predict(rows)
    score, label = np.asarray(found.score, dtype=np.float64), np.asarray(found.label, dtype=np.bool_)
    if score.shape != (len(rows),) or label.shape != (len(rows),):
        raise EvenhandError(f"The model must return one score a row; {len(rows)} rows gave the shape {score.shape}.")
    if not np.isfinite(score).all():
        bad = int(np.flatnonzero(~np.isfinite(score))[0])
        shown = ", ".join(f"{value:g}" for value in rows[bad][:8])
        raise EvenhandError(f"The model gave the score {score[bad]} for the row ({shown}); scores must be finite.")
    return Predictions(score, label)
