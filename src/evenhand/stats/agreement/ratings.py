"""Validation of ratings, and the reasons for undefined metrics.

There is one array per rater, with people on the last axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError
from evenhand.messages import Message
from evenhand.stats.agreement.messages import say
from evenhand.stats.types import LARGEST, BoolArray, FloatArray, IntArray

Reasons = npt.NDArray[np.str_]
"""Values of `Undefined`, "" without a reason."""

_ROUNDING = 8.0 * np.finfo(np.float64).eps
_FEW = 1_000
_MOST_NUMBERS = 2**62


class Undefined(StrEnum):
    """The reasons why a metric is nan.

    Examples
    --------
    >>> str(Undefined.ONE_CLASS), Undefined.ONE_CLASS.message.text
    ('one_class', 'all ratings are in one class')
    """

    NOBODY = "nobody"
    ONE_PERSON = "one_person"
    NO_PAIR = "no_pair"
    ONE_CLASS = "one_class"
    NO_SPREAD = "no_spread"
    NO_POSITIVE = "no_positive"
    NO_NEGATIVE = "no_negative"
    NEGATIVE_VARIANCE = "negative_variance"
    UNEQUAL = "unequal"
    NOT_CROSSED = "not_crossed"
    MANY_RATERS = "many_raters"
    ZERO_DENOMINATOR = "zero_denominator"

    @property
    def message(self) -> Message:
        """Return the reason as a sentence."""
        return say(self.value, n=1) if self is Undefined.ONE_PERSON else say(self.value)


def first_reason(checks: Sequence[tuple[BoolArray, Undefined]]) -> Reasons:
    """Return the first reason that applies to each element, or "" if none applies.

    Examples
    --------
    >>> first_reason([(np.array([True, False]), Undefined.NOBODY)])
    array(['nobody', ''], dtype='<U6')
    """
    longest = max(len(reason) for _, reason in checks)
    applies = np.broadcast_arrays(*(np.asarray(condition) for condition, _ in checks))
    return np.select(applies, [str(reason) for _, reason in checks], "").astype(f"<U{longest}")


def mean_and_squares(values: FloatArray, weights: FloatArray, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean of values (..., people) and the sum of squared deviations; nan without people.

    A sum no larger than the rounding error of numbers as large as `size` is set to 0.

    Examples
    --------
    >>> mean_and_squares(np.array([1.0, 3.0]), np.ones(2), np.array(3.0))
    (array(2.), array(2.))
    """
    origin = values[..., :1] if values.shape[-1] else np.full((*values.shape[:-1], 1), np.nan)
    with np.errstate(all="ignore"):
        n = weights.sum(axis=-1)
        centred = values - origin
        mean = np.asarray(np.einsum("...i,...i->...", centred, weights) / n)
        centred = centred - mean[..., np.newaxis]
        squares = np.einsum("...i,...i,...i->...", centred, centred, weights)
        return np.asarray(mean + origin[..., 0]), np.where(squares <= n * (_ROUNDING * size) ** 2, 0.0, squares)


def is_rounding(value: FloatArray, size: FloatArray) -> BoolArray:
    """Return whether a difference of terms as large as `size` is within their rounding error.

    Examples
    --------
    >>> bool(is_rounding(np.array(1e-17), np.array(0.3)))
    True
    """
    return np.asarray(np.abs(value) <= _ROUNDING * size)


def binary_ratings(*raters: ArrayLike) -> list[BoolArray]:
    """Return each rater's 0/1 ratings as booleans.

    Examples
    --------
    >>> binary_ratings([0, 1, 1])
    [array([False,  True,  True])]
    """
    _check_people(raters)
    return [_as_bool(rater) for rater in raters]


def is_binary(rater: ArrayLike) -> bool:
    """Return whether all ratings are 0 or 1 (or False or True).

    Examples
    --------
    >>> is_binary([0, 1]), is_binary([0, 2]), is_binary(["0", "1"])
    (True, False, False)
    """
    values = np.asarray(rater)
    if values.dtype.kind not in "iuf":
        return values.dtype == np.bool_
    return bool(np.all((values == 0) | (values == 1)))


def score_ratings(*raters: ArrayLike, missing: bool = False) -> list[FloatArray]:
    """Return each rater's scores as numbers; raise for infinite scores, and for missing ones unless allowed.

    Examples
    --------
    >>> score_ratings([1, 2])
    [array([1., 2.])]
    """
    _check_people(raters)
    return [_as_scores(rater, missing=missing) for rater in raters]


def has_gaps(raters: Sequence[ArrayLike]) -> bool:
    """Return whether any rating is missing.

    Examples
    --------
    >>> has_gaps([[1.0, 2.0], [np.nan, 2.0]])
    True
    """
    return any(bool(np.isnan(scores).any()) for scores in score_ratings(*raters, missing=True))


def coded_ratings(
    raters: Sequence[ArrayLike], categories: Sequence[object] | None, *, missing: bool = False
) -> tuple[list[IntArray], int]:
    """Return each rater's ratings as category indices, and the number of categories.

    The default categories are the observed ones, sorted; ratings with only 0 and 1 (or False and True) always have both
    categories. A missing rating (None or nan) becomes -1 if `missing` is True; otherwise it is an error.

    Examples
    --------
    >>> coded_ratings([["low", "high"], ["low", "low"]], ["low", "medium", "high"])
    ([array([0, 2]), array([0, 0])], 3)
    """
    _check_people(raters)
    labels = (np.asarray(rater) for rater in raters)
    arrays = [values.astype(np.int64) if values.dtype == np.bool_ else values for values in labels]
    absent = [_is_missing(array) for array in arrays]
    if not missing and any(mask.any() for mask in absent):
        raise EvenhandError("A rating is missing; leave out people whom some rater did not rate.")
    seen = [array[~mask] for array, mask in zip(arrays, absent, strict=True)]
    all_categories = _categories(seen) if categories is None else _listed(categories)
    return [_positions(array, mask, all_categories) for array, mask in zip(arrays, absent, strict=True)], len(
        all_categories
    )


def people_weights(weight: ArrayLike | None, people: int) -> FloatArray:
    """Return the number of people each row represents: the weights, or ones without weights.

    Examples
    --------
    >>> people_weights(None, 3)
    array([1., 1., 1.])
    """
    if weight is None:
        return np.ones(people)
    weights = np.asarray(weight, dtype=np.float64)
    if weights.ndim == 0 or weights.shape[-1] != people:
        raise EvenhandError(
            "`weight` must have {people} values, one per person; got shape {shape}.", people=people, shape=weights.shape
        )
    if not np.all(np.isfinite(weights) & (weights >= 0)):
        bad = weights[~(np.isfinite(weights) & (weights >= 0))].flat[0]
        raise EvenhandError("`weight` must be finite and not negative; got {bad:g}.", bad=bad)
    return weights


def plain(value: ArrayLike) -> FloatArray:
    """Return the values as an array of floats, or as a NumPy scalar if there is only one number."""
    array: FloatArray = np.asarray(value, dtype=np.float64)
    return array[()]


def _check_people(raters: Sequence[ArrayLike]) -> None:
    shapes = [np.shape(rater) for rater in raters]
    if any(not shape for shape in shapes):
        raise EvenhandError("Ratings must be arrays with people on the last axis; got one number.")
    if len({shape[-1] for shape in shapes}) > 1:
        sizes = ", ".join(str(shape[-1]) for shape in shapes)
        raise EvenhandError("All raters must rate the same people; got {sizes} ratings.", sizes=sizes)


def _as_bool(rater: ArrayLike) -> BoolArray:
    values = np.asarray(rater)
    if values.dtype == np.bool_:
        return values
    if values.size == 0:
        return values.astype(np.bool_)
    if not is_binary(values):
        bad = values.ravel() if values.dtype.kind not in "iuf" else values[(values != 0) & (values != 1)]
        raise EvenhandError("Ratings must be 0 or 1; got {rating!r}.", rating=bad.tolist()[0])
    return np.asarray(values == 1)


def _as_scores(rater: ArrayLike, *, missing: bool) -> FloatArray:
    try:
        values = np.asarray(rater, dtype=np.float64)
    except (TypeError, ValueError):
        raise EvenhandError("Scores must be numbers.") from None
    if np.isinf(values).any() or (not missing and np.isnan(values).any()):
        bad = values[~np.isfinite(values)].flat[0]
        raise EvenhandError("Scores must be finite; got {bad}. Leave out people whom some rater did not rate.", bad=bad)
    if (largest := float(np.nanmax(np.abs(values), initial=0.0))) > LARGEST:
        raise EvenhandError(
            "Scores reach {largest:g}, out of reach of the arithmetic; give them in other units.", largest=largest
        )
    return values


def _is_missing(values: npt.NDArray[Any]) -> BoolArray:
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "O":
        return np.asarray((values == None) | (values != values), dtype=np.bool_)  # noqa: E711
    return np.zeros(values.shape, dtype=np.bool_)


def _categories(seen: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    try:
        distinct = np.unique(np.concatenate([_distinct(values) for values in seen]))
    except TypeError:
        raise EvenhandError("Ratings must all be text or all be numbers.") from None
    if distinct.dtype.kind in "iuf" and np.isin(distinct, [0, 1]).all():
        return np.array([0, 1])
    return distinct


def _distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.kind in "iu" and values.size:
        least, most = int(values.min()), int(values.max())
        if most - least < _FEW:  # counting is faster than sorting
            return np.flatnonzero(np.bincount((values - least).ravel())) + least
    return np.unique(values)


def _listed(categories: Sequence[object]) -> npt.NDArray[Any]:
    distinct = np.asarray(categories)
    if distinct.ndim != 1 or distinct.size < 2 or np.unique(distinct).size != distinct.size:
        raise EvenhandError(
            "`categories` must be two or more different values; got {categories!r}.", categories=list(categories)
        )
    return distinct


def _positions(values: npt.NDArray[Any], absent: BoolArray, categories: npt.NDArray[Any]) -> IntArray:
    order = np.argsort(categories, kind="stable")
    present = values[~absent]
    position = np.minimum(np.searchsorted(categories[order], present), max(categories.size - 1, 0))
    is_category = categories[order][position] == present if categories.size else np.zeros(present.shape, dtype=np.bool_)
    if (unknown := present[~is_category]).size:
        raise EvenhandError(
            "The rating {rating!r} is not one of `categories` {known!r}.",
            rating=unknown.tolist()[0],
            known=categories.tolist(),
        )
    positions = np.full(values.shape, -1, dtype=np.int64)
    positions[~absent] = order[position]
    return positions


def distinct_rows(rows: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the sorted distinct rows, their counts, and the index of each row among them.

    Examples
    --------
    >>> rows, counted, place = distinct_rows(np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]]))
    >>> rows.tolist(), counted.tolist(), place.tolist()
    ([[0.0, 5.0], [1.0, 2.0]], [1, 2], [1, 0, 1])
    """
    number = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        values = np.unique(column)
        if (int(number.max(initial=0)) + 1) * values.size > _MOST_NUMBERS:  # renumber without gaps
            number = np.unique(number, return_inverse=True)[1]
        number = number * values.size + np.searchsorted(values, column)
    _, first, place, counted = np.unique(number, return_index=True, return_inverse=True, return_counts=True)
    return rows[first], counted, place
