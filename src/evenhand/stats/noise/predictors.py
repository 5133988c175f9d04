"""Models as functions of rows, and detection of columns that are functions of other columns.

A predictor takes rows of features and returns scores and decisions. If a column is a function of another column, a
mistake in the source alone makes a row inconsistent; `fixed_products` and `fixed_functions` find such columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.types import LARGEST, BoolArray, FloatArray, IntArray

ENOUGH = 0.99
"""The share of rows in which a column must equal its function."""

_MOST_ROWS, _LOOK = 5_000, 128
_LEAST_ROWS, _LEAST_OTHERS = 20, 8  # with fewer, unrelated columns can agree
_LEAST_SMOOTH = 50
_MOSTLY = 0.9
_NEAR = 0.95


class Predictions(NamedTuple):
    """Scores and decisions of rows; a label is True for selected people."""

    score: FloatArray
    label: BoolArray


Predictor: TypeAlias = Callable[[FloatArray], Predictions]
"""Maps rows (m, d) of raw features to predictions; several threads may call it at once."""

RowFunction: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Linear:
    """A linear model of raw features: score = link(intercept + row · weights), selected if score > threshold.

    The engine does not build rows for it: a mistake shifts the sum by weight times error.

    Attributes
    ----------
    weights
        (d,) one weight per column, in raw units: divide by the scale of a scaler.
    intercept
        With a scaler: minus the sum of coefficient times mean over scale.
    threshold
        For the logistic link it is compared on the scale of the sum, so 0.5 means a sum above 0. A sum that exceeds it
        by less than the rounding error of its terms is a tie. Ties are not selected, because they are common with
        integer features and must not depend on the order of additions.
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
        return self.of_sums(self.sums(rows))

    def sums(self, rows: FloatArray) -> FloatArray:
        """Return intercept + row · weights without BLAS, whose order of additions depends on the processor."""
        return np.asarray(np.einsum("ij,j->i", rows, self.weights) + self.intercept)

    def of_sums(self, sums: FloatArray) -> Predictions:
        """Return the predictions for sums of intercept + row · weights."""
        from scipy.special import expit, logit

        tie = 1e-12 * (abs(self.intercept) + float(np.abs(self.weights).sum()))
        if self.link == "identity":
            return Predictions(sums, sums > self.threshold + tie)
        return Predictions(np.asarray(expit(sums)), sums > float(logit(self.threshold)) + tie)


def thresholded(score: RowFunction, threshold: float = 0.5) -> Predictor:
    """Return a predictor that selects scores above a threshold.

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
    """Return a predictor that recomputes derived columns first: predict(derive(rows)).

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
    """Return a function that sets columns to the product of other columns, for `with_derived`.

    Parameters
    ----------
    sources
        The factors' columns of each product column.

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


def checked(predict: Predictor, rows: FloatArray) -> Predictions:
    """Return the predictions, or raise an `EvenhandError` if they have the wrong shape or are not finite."""
    predictions = predict(rows)
    score, label = np.asarray(predictions.score, dtype=np.float64), np.asarray(predictions.label, dtype=np.bool_)
    if score.shape != (len(rows),) or label.shape != (len(rows),):
        raise EvenhandError(
            "The model must return one score a row; {number} rows gave the shape {shape}.",
            number=len(rows),
            shape=str(score.shape),
        )
    if not np.isfinite(score).all():
        bad = int(np.flatnonzero(~np.isfinite(score))[0])
        shown = ", ".join(f"{value:g}" for value in rows[bad][:8])
        raise EvenhandError(
            "The model gave the score {score} for the row ({shown}); scores must be finite.",
            score=score[bad],
            shown=shown,
        )
    if (largest := float(np.abs(score).max(initial=0.0))) > LARGEST:
        raise EvenhandError(
            "The model gave a score of size {largest:g}, out of reach of the arithmetic; give smaller scores.",
            largest=largest,
        )
    return Predictions(score, label)


class FixedProduct(NamedTuple):
    """An unperturbed column that is the product of a perturbed column and another one in a share of rows."""

    column: int
    perturbed: int
    factor: int
    share: float


class FixedFunction(NamedTuple):
    """An unperturbed column that is a function of a perturbed column.

    `share` of the rows have the most common value among rows with the same source. `repeated` is false if the source
    hardly repeats a value, so that only the smoothness over its order shows the function.
    """

    column: int
    perturbed: int
    share: float
    repeated: bool


def fixed_products(features: FloatArray, perturbed: Collection[int]) -> list[FixedProduct]:
    """Return unperturbed columns that equal a perturbed column times another column in 99 % of rows.

    A rater's mistake in the source also affects the product. An unperturbed product can reverse the sign of a gap, so
    recompute it with `with_derived(model, products(...))`. Nine in ten rows must also agree where the product differs
    from either factor, and where the column differs from its most common value, so a column that is nearly always 0 is
    not reported.

    Parameters
    ----------
    features
        (people, d) raw features.
    perturbed
        Columns with mistakes, or recomputed from such columns.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sex, race = rng.integers(0, 2, (2, 50)).astype(float)
    >>> fixed_products(np.column_stack([sex, race, sex * race]), [0])
    [FixedProduct(column=2, perturbed=0, factor=1, share=1.0)]
    """
    fixed = []
    for column in _fixed(features, perturbed):
        not_mode = _not_the_mode(features[:, column])
        if not_mode.sum() < _LEAST_OTHERS:
            continue
        sample = np.concatenate([_spread(np.flatnonzero(not_mode), _LOOK), _spread(np.arange(len(features)), _LOOK)])
        rows, column_values = features[sample], features[sample, column, np.newaxis]
        for source in sorted(perturbed):
            agree = _same(_product(rows[:, [source]], rows), column_values).mean(axis=0)
            for factor in np.flatnonzero(agree >= _MOSTLY).tolist():
                share = _product_share(features, column, source, factor, not_mode)
                if factor not in (source, column) and share is not None:
                    fixed.append(FixedProduct(column, source, factor, share))
    return sorted(fixed)


def fixed_functions(features: FloatArray, perturbed: Collection[int]) -> list[FixedFunction]:
    """Return unperturbed columns that are a function of one perturbed column, such as its square or complement.

    Each person's value is predicted from the other people with the same value of the source, or from the most common
    value if there are no such people. The prediction must be right in 99 % of all rows, and in 75 % of the rows without
    the most common value. If values of the source hardly repeat, Chatterjee's coefficient must instead reach 0.95 of
    its value for an increasing function: it tends to 1 if and only if one column is a function of the other.

    Parameters
    ----------
    features
        (people, d) raw features.
    perturbed
        Columns with mistakes, or recomputed from such columns.

    References
    ----------
    S. Chatterjee (2021), A new coefficient of correlation, Journal of the American Statistical Association 116.

    Examples
    --------
    >>> age, other = np.random.default_rng(0).integers(18, 60, (2, 300)).astype(float)
    >>> fixed_functions(np.column_stack([age, age**2, other]), [0])
    [FixedFunction(column=1, perturbed=0, share=1.0, repeated=True)]
    """
    if len(features) < _LEAST_ROWS:
        return []
    rows = _spread(np.arange(len(features)), _MOST_ROWS)
    np.random.default_rng(0).shuffle(rows)  # so that rows with equal source are in random order
    columns = _fixed(features, perturbed)
    codes = {number: np.unique(features[rows, number], return_inverse=True)[1] for number in {*columns, *perturbed}}
    fixed = []
    for column in columns:
        counts = np.bincount(codes[column])
        if counts.sum() - counts.max() < _LEAST_OTHERS:
            continue
        for source in sorted(perturbed):
            repeated = _predicted_by(codes[source], codes[column])
            if repeated or _smooth(codes[source], codes[column]):
                share = _agreeing(features[:, source], features[:, column])
                fixed.append(FixedFunction(column, source, share, repeated))
    return fixed


def _fixed(features: FloatArray, perturbed: Collection[int]) -> list[int]:
    varies = (features != features[:1]).any(axis=0)
    return [column for column in range(features.shape[1]) if column not in perturbed and varies[column]]


def _spread(rows: IntArray, most: int) -> IntArray:
    return rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.int64)]


def _not_the_mode(values: FloatArray) -> BoolArray:
    distinct, counts = np.unique(values[_spread(np.arange(len(values)), _MOST_ROWS)], return_counts=True)
    return np.asarray(values != distinct[np.argmax(counts)])


def _product(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return a product; an overflow becomes infinite, and so equals no value."""
    with np.errstate(over="ignore"):
        return np.asarray(first * second)


def _same(values: FloatArray, other: FloatArray) -> BoolArray:
    return np.asarray(np.abs(values - other) <= 1e-9 * (1.0 + np.abs(other)))


def _product_share(features: FloatArray, column: int, source: int, factor: int, not_mode: BoolArray) -> float | None:
    """Return the share of rows in which a column equals the product, or None if it is too small."""
    first, second, column_values = features[:, source], features[:, factor], features[:, column]
    product = _product(first, second)
    agrees = _same(product, column_values)
    if agrees.mean() < ENOUGH or agrees[not_mode].mean() < _MOSTLY:
        return None
    for matters in (~_same(product, first), ~_same(product, second)):
        if agrees[matters].sum() < _LEAST_OTHERS or agrees[matters].mean() < _MOSTLY:
            return None
    return float(agrees.mean())


def _predicted_by(source: IntArray, column: IntArray) -> bool:
    """Return whether people with equal source values predict a column well enough."""
    counts = np.bincount(column)
    pair, times = np.unique(source * counts.size + column, return_counts=True)
    source_of_pair = pair // counts.size
    size, most = np.bincount(source), np.zeros(int(source.max()) + 1, dtype=np.int64)
    np.maximum.at(most, source_of_pair, times)
    right = most[(most > 1) & (2 * most > size)].sum()
    alone = size[source] == 1
    right += np.count_nonzero(column[alone] == np.argmax(counts))
    wrong = source.size - right
    return bool(wrong <= (1 - ENOUGH) * source.size and wrong <= 0.25 * (source.size - counts.max()))


def _smooth(source: IntArray, column: IntArray) -> bool:
    """Return whether Chatterjee's coefficient is close to its value for an increasing function."""
    if source.size < _LEAST_SMOOTH:
        return False
    counts = np.bincount(column)
    at_most = np.cumsum(counts)
    n, at_least = source.size, source.size - at_most + counts
    scale = 2.0 * float((counts * at_least * (n - at_least)).sum()) / n
    rank = at_most[column[np.argsort(source, kind="stable")]]
    smoothness = 1.0 - float(np.abs(np.diff(rank)).sum()) / scale
    return smoothness >= _NEAR * (1.0 - float(n - at_most[0]) / scale) > 0


def _agreeing(source: FloatArray, column: FloatArray) -> float:
    """Return the share of rows with the most common value among rows with the same source."""
    distinct, code = np.unique(column, return_inverse=True)
    source_code = np.unique(source, return_inverse=True)[1]
    pair, times = np.unique(source_code * distinct.size + code, return_counts=True)
    most = np.zeros(int(source_code.max()) + 1, dtype=np.int64)
    np.maximum.at(most, pair // distinct.size, times)
    return float(most.sum() / len(source))
