"""Cohen's kappa of two raters, plain and weighted, with any number of categories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.agreement.counts import binary_counts, ratio
from evenhand.stats.agreement.ratings import coded_ratings, is_binary, people_weights, plain
from evenhand.stats.types import FloatArray

DISTANCES = ("linear", "quadratic")


def cohen_kappa(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    categories: Sequence[object] | None = None,
    weight: npt.ArrayLike | None = None,
) -> FloatArray:
    """Return Cohen's kappa of two raters: (po - pc) / (1 - pc).

    po is the share of people with the same category from both, pc = sum_k r_k s_k / n² what it would be for raters
    who do not look. nan where both put everybody into one and the same category.

    Parameters
    ----------
    first, second
        Categories (numbers or text) of shapes (..., people) that broadcast; each leading index is a simulation.
    categories
        The categories there are; by default those that occur. They do not change kappa, but unknown ones are found.
    weight
        How many people each row stands for, of a shape (..., people) that broadcasts; 1 by default.

    References
    ----------
    J. Cohen (1960), A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20.

    Examples
    --------
    >>> float(cohen_kappa(["a", "a", "b", "b"], ["a", "b", "b", "b"]))
    0.5
    >>> cohen_kappa([1, 1, 0, 0], [[1, 1, 0, 0], [1, 0, 0, 0]])
    array([1. , 0.5])
    """
    if categories is None and is_binary(first) and is_binary(second):
        return plain(binary_counts(first, second, weight=weight).kappa())
    table = category_table(first, second, categories=categories, weight=weight)
    return plain(_kappa(table, 1.0 - np.eye(table.shape[-1])))


def weighted_kappa(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    distance: str | npt.ArrayLike = "linear",
    categories: Sequence[object] | None = None,
    weight: npt.ArrayLike | None = None,
) -> FloatArray:
    """Return the weighted kappa of two raters: 1 - sum D o / sum D e.

    o are the observed shares of each pair of categories, e the products of the raters' own shares, D the distances.

    Parameters
    ----------
    first, second
        Categories of shapes (..., people) that broadcast.
    distance
        'linear' (how many categories apart), 'quadratic' (its square), or a matrix of distances with 0 on the diagonal.
    categories
        The categories in their order; by default those that occur, sorted. A category that nobody used still counts as
        a step, so give all of them for an ordered scale.
    weight
        How many people each row stands for; 1 by default.

    References
    ----------
    J. Cohen (1968), Weighted kappa, Psychological Bulletin 70.

    Examples
    --------
    >>> round(float(weighted_kappa([1, 2, 3, 3], [1, 3, 3, 2], distance="quadratic")), 4)
    0.6364
    """
    table = category_table(first, second, categories=categories, weight=weight)
    return plain(_kappa(table, _distances(distance, table.shape[-1])))


def category_table(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    categories: Sequence[object] | None = None,
    weight: npt.ArrayLike | None = None,
) -> FloatArray:
    """Return (..., q, q) counts of people by the category of the first and of the second rater.

    Examples
    --------
    >>> category_table([0, 1, 1], [0, 1, 0])
    array([[1., 0.],
           [1., 1.]])
    """
    (r, s), q = coded_ratings([first, second], categories)
    weights = None if weight is None else people_weights(weight, r.shape[-1])
    shape = np.broadcast_shapes(r.shape, s.shape, (1,) if weights is None else weights.shape)
    simulations = int(np.prod(shape[:-1]))
    if q == 0 or simulations == 0:
        return np.zeros((*shape[:-1], max(q, 1), max(q, 1)))
    cell = np.broadcast_to(r * q + s, shape).reshape(simulations, -1)
    cell = cell + (np.arange(simulations) * (q * q))[:, np.newaxis]
    each = None if weights is None else np.broadcast_to(weights, shape).ravel()
    counted = np.bincount(cell.ravel(), each, simulations * q * q)
    return np.asarray(counted.astype(np.float64).reshape(*shape[:-1], q, q))


def _kappa(table: FloatArray, distances: FloatArray) -> FloatArray:
    rows, columns = table.sum(axis=-1), table.sum(axis=-2)
    observed = np.einsum("...ij,ij->...", table, distances) * rows.sum(axis=-1)
    expected = np.einsum("...i,ij,...j->...", rows, distances, columns)
    return np.asarray(1.0 - ratio(observed, expected))


def _distances(distance: str | npt.ArrayLike, q: int) -> FloatArray:
    if isinstance(distance, str):
        require_choice("distance", distance, DISTANCES)
        apart = np.abs(np.subtract.outer(np.arange(q), np.arange(q))).astype(np.float64)
        return apart if distance == "linear" else np.asarray(apart**2)
    matrix = np.asarray(distance, dtype=np.float64)
    if matrix.shape != (q, q) or np.any(np.diagonal(matrix) != 0) or not np.all(matrix >= 0):
        raise EvenhandError(
            f"`distance` must be a {q} by {q} matrix, not negative, with 0 on the diagonal; got shape {matrix.shape}."
        )
    return matrix
