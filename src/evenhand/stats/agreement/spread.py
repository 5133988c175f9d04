"""Weighted mean and sum of squares over the last axis, with the spread of a constant exactly 0."""

from __future__ import annotations

import numpy as np

from evenhand.stats.types import BoolArray, FloatArray

_ROUNDING = 8.0 * np.finfo(np.float64).eps


def mean_and_squares(values: FloatArray, weights: FloatArray, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean of values (..., people) and the sum of squares about it; nan mean for nobody.

    A spread that is only the rounding of numbers as large as `size` is 0.

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
    """Return whether a difference of terms as large as `size` is no more than their rounding.

    Examples
    --------
    >>> bool(is_rounding(np.array(1e-17), np.array(0.3)))
    True
    """
    return np.asarray(np.abs(value) <= _ROUNDING * size)
