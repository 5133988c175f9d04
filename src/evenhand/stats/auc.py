"""The area under the ROC curve with DeLong's standard error, optionally weighted, in O(n log n)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError
from evenhand.stats.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class AucSummary:
    """An area under the ROC curve with its standard error.

    Attributes
    ----------
    value
        P(score of a positive > score of a negative) + P(equal) / 2; nan when a class is absent.
    stderr
        DeLong's standard error; nan when a class has fewer than two rows.
    positives, negatives
        The number of rows of each class with positive weight, including repetitions.
    """

    value: float
    stderr: float
    positives: int
    negatives: int


def delong(
    score: ArrayLike, positive: ArrayLike, *, weight: ArrayLike | None = None, count: ArrayLike | None = None
) -> AucSummary:
    """Return the AUC of scores with DeLong's standard error.

    With psi = 1 when a positive scores above a negative, 1/2 when they tie and 0 below, and survey weights w,

        A = sum_ij w_i w_j psi_ij / (W1 W0),   V10_i = sum_j w_j psi_ij / W0,   V01_j = sum_i w_i psi_ij / W1
        var = m/(m-1) sum_i w_i² (V10_i - A)² / W1² + n/(n-1) sum_j w_j² (V01_j - A)² / W0²

    for m positives and n negatives. With equal weights this is DeLong's variance. One sort and cumulative
    sums over the distinct scores replace the m n pairs.

    Parameters
    ----------
    score
        One score per row; a nan makes the result nan.
    positive
        Whether the row's outcome is positive.
    weight
        Survey weight of each row, by default 1; rows of weight 0 are ignored.
    count
        The number of identical rows that each row represents, by default 1.

    References
    ----------
    E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson (1988), Comparing the areas under two or more
    correlated receiver operating characteristic curves, Biometrics 44. X. Sun and W. Xu (2014), Fast
    implementation of DeLong's algorithm, IEEE Signal Processing Letters 21.

    Examples
    --------
    >>> auc = delong([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    >>> auc.value, round(auc.stderr, 6), auc.positives, auc.negatives
    (0.75, 0.353553, 2, 2)
    """
    scores, outcome, weights, counts = _rows(score, positive, weight, count)
    rows = np.where(weights > 0, counts, 0.0)
    positives, negatives = int(rows[outcome].sum()), int(rows[~outcome].sum())
    value, above, below = _placements(scores, outcome, weights * counts)
    variance = 0.0
    for member, size, placement in ((outcome, positives, above), (~outcome, negatives, below)):
        w, c = weights[member], counts[member]
        spread = float(np.sum(c * (w * (placement[member] - value)) ** 2))
        total = float(np.sum(w * c))
        variance += size / (size - 1) * spread / total**2 if size > 1 else np.nan
    return AucSummary(value, float(np.sqrt(variance)), positives, negatives)


def auc_influence(score: ArrayLike, positive: ArrayLike, weight: ArrayLike | None = None) -> tuple[float, FloatArray]:
    """Return the AUC and each row's influence on it.

    The influence is w_i (V10_i - A) / W1 for a positive and w_j (V01_j - A) / W0 for a negative (see `delong`). The sum
    of squares is the variance and the sum of products with another statistic's influence the covariance, up to the
    corrections m/(m-1); so two AUCs that share rows can be compared.

    References
    ----------
    E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson (1988), Comparing the areas under two or more
    correlated receiver operating characteristic curves, Biometrics 44.

    Examples
    --------
    >>> auc_influence([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
    (0.75, array([ 0.125, -0.125, -0.125,  0.125]))
    """
    scores, outcome, weights, _ = _rows(score, positive, weight, None)
    value, above, below = _placements(scores, outcome, weights)
    with np.errstate(all="ignore"):
        share = weights / np.where(outcome, weights[outcome].sum(), weights[~outcome].sum())
        return value, np.asarray(share * (np.where(outcome, above, below) - value))


def binned_auc_error(positives: ArrayLike, negatives: ArrayLike) -> FloatArray:
    """Return the largest possible difference between the AUC of binned and of unbinned scores.

    The difference is at most sum_b P_b N_b / (2 P N): pairs in different bins are in the right order, and pairs in one
    bin count 1/2 but may truly count anything from 0 to 1. Bins run along the last axis; nan when a class is absent.

    Examples
    --------
    >>> float(binned_auc_error([10, 30], [40, 20]))
    0.20833333333333334
    """
    p, n = np.asarray(positives, dtype=np.float64), np.asarray(negatives, dtype=np.float64)
    with np.errstate(all="ignore"):
        return np.asarray((p * n).sum(axis=-1) / (2.0 * p.sum(axis=-1) * n.sum(axis=-1)))


def _placements(scores: FloatArray, outcome: BoolArray, mass: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Return the AUC and, for each row's score, the shares of negatives below and of positives above it."""
    level = _levels(scores)
    ones = np.bincount(level, weights=np.where(outcome, mass, 0.0))
    zeros = np.bincount(level, weights=np.where(outcome, 0.0, mass))
    all_ones, all_zeros = ones.sum(), zeros.sum()
    if np.isnan(scores).any() or all_ones == 0 or all_zeros == 0:
        unknown = np.full(scores.shape, np.nan)
        return float("nan"), unknown, unknown
    twice_below = 2.0 * np.cumsum(zeros) - zeros
    twice_above = 2.0 * (all_ones - np.cumsum(ones)) + ones
    value = float(np.sum(ones * twice_below) / (2.0 * all_ones * all_zeros))
    return value, (twice_below / (2.0 * all_zeros)).take(level), (twice_above / (2.0 * all_ones)).take(level)


def _levels(scores: FloatArray) -> IntArray:
    """Return the rank of each score among the distinct scores, without sorting again if they are sorted."""
    if scores.size and bool((scores[1:] >= scores[:-1]).all()):
        return np.cumsum(np.append(False, scores[1:] != scores[:-1]))
    return np.asarray(np.unique(scores, return_inverse=True)[1], dtype=np.int64)


def _rows(
    score: ArrayLike, positive: ArrayLike, weight: ArrayLike | None, count: ArrayLike | None
) -> tuple[FloatArray, BoolArray, FloatArray, FloatArray]:
    """Return scores, outcomes, weights and counts as arrays of one length."""
    scores = np.asarray(score, dtype=np.float64)
    outcome = np.asarray(positive, dtype=np.bool_)
    ones = np.ones(scores.shape)
    weights = ones if weight is None else np.asarray(weight, dtype=np.float64)
    counts = ones if count is None else np.asarray(count, dtype=np.float64)
    for name, array in (("positive", outcome), ("weight", weights), ("count", counts)):
        if scores.ndim != 1 or array.shape != scores.shape:
            raise EvenhandError(
                "`{name}` must have one value per score; got shape {shape} for {shape_2} scores.",
                name=name,
                shape=array.shape,
                shape_2=scores.shape,
            )
        if not np.all(array >= 0):
            raise EvenhandError(
                "`{name}` must not be negative or nan; got {array}.", name=name, array=array[~(array >= 0)][0]
            )
    return scores, outcome, weights, counts
