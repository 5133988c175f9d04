"""Coefficients for categorical ratings by two or more raters, with missing ratings: kappas and Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.agreement.counts import binary_counts, ratio
from evenhand.stats.agreement.ratings import (
    coded_ratings,
    is_binary,
    mean_and_squares,
    people_weights,
    plain,
    score_ratings,
)
from evenhand.stats.types import FloatArray, IntArray

Categories = Sequence[object] | None
DISTANCES = ("linear", "quadratic")
AlphaScale = Literal["nominal", "ordinal", "interval"]
ALPHA_SCALES: tuple[AlphaScale, ...] = get_args(AlphaScale)


def cohen_kappa(
    first: ArrayLike, second: ArrayLike, *, categories: Categories = None, weight: ArrayLike | None = None
) -> FloatArray:
    """Return Cohen's kappa of two raters: (po - pc) / (1 - pc).

    po is the share of people with equal categories from both, pc = sum_k r_k s_k / n² its expected value for
    independent raters. The result is nan if both raters put all people into the same category.

    Parameters
    ----------
    first, second
        Categories (numbers or text) of shapes (..., people) that broadcast; each leading index is a simulation.
    categories
        The possible categories; by default the observed ones. They do not change kappa; a rating outside them is an
        error.
    weight
        The number of people each row represents, of a shape (..., people) that broadcasts; 1 by default.

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
    first: ArrayLike,
    second: ArrayLike,
    *,
    distance: str | ArrayLike = "linear",
    categories: Categories = None,
    weight: ArrayLike | None = None,
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
        The categories in their order; by default the observed ones, sorted. An unused category still counts as a step,
        so pass all categories of an ordered scale.
    weight
        The number of people each row represents; 1 by default.

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
    first: ArrayLike, second: ArrayLike, *, categories: Categories = None, weight: ArrayLike | None = None
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
    flat_weights = None if weights is None else np.broadcast_to(weights, shape).ravel()
    counted = np.bincount(cell.ravel(), flat_weights, simulations * q * q)
    return np.asarray(counted.astype(np.float64).reshape(*shape[:-1], q, q))


def _kappa(table: FloatArray, distances: FloatArray) -> FloatArray:
    rows, columns = table.sum(axis=-1), table.sum(axis=-2)
    observed = np.einsum("...ij,ij->...", table, distances) * rows.sum(axis=-1)
    expected = np.einsum("...i,ij,...j->...", rows, distances, columns)
    return np.asarray(1.0 - ratio(observed, expected))


def _distances(distance: str | ArrayLike, q: int) -> FloatArray:
    if isinstance(distance, str):
        require_choice("distance", distance, DISTANCES)
        apart = np.abs(np.subtract.outer(np.arange(q), np.arange(q))).astype(np.float64)
        return apart if distance == "linear" else np.asarray(apart**2)
    matrix = np.asarray(distance, dtype=np.float64)
    if matrix.shape != (q, q) or np.any(np.diagonal(matrix) != 0) or not np.all(matrix >= 0):
        raise EvenhandError(
            "`distance` must be a {q} by {q} matrix, not negative, with 0 on the diagonal; got shape {shape}.",
            q=q,
            shape=matrix.shape,
        )
    return matrix


@dataclass(frozen=True)
class _Agreement:
    """Observed agreement, and the share of each category over all ratings and for each rater."""

    observed: FloatArray
    shares: list[FloatArray]
    by_rater: list[list[FloatArray]]


def fleiss_kappa(*raters: ArrayLike, categories: Categories = None, weight: ArrayLike | None = None) -> FloatArray:
    """Return Fleiss' kappa of two or more raters: (pa - pe) / (1 - pe), pe = sum_k pi_k².

    pa is the share of agreeing pairs of ratings of one person, averaged over people with two or more; pi_k is the mean
    share of category k. With two raters it equals Scott's pi. Different people may have different raters.

    Parameters
    ----------
    raters
        Two or more arrays of categories of shapes (..., people) that broadcast; None or nan if missing.
    categories
        The possible categories; by default the observed ones.
    weight
        The number of people each row represents; 1 by default.

    References
    ----------
    J. L. Fleiss (1971), Measuring nominal scale agreement among many raters, Psychological Bulletin 76. K. L. Gwet
    (2014), Handbook of Inter-Rater Reliability, for missing ratings.

    Examples
    --------
    >>> round(float(fleiss_kappa([1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 1])), 4)
    0.3333
    """
    agreement = _agreement(raters, categories, weight)
    return plain(_beyond(agreement.observed, sum((share**2 for share in agreement.shares), start=np.zeros(()))))


def conger_kappa(*raters: ArrayLike, categories: Categories = None, weight: ArrayLike | None = None) -> FloatArray:
    """Return Conger's kappa, which extends Cohen's to more than two raters: pe = mean over pairs of sum_k p_gk p_hk.

    The mean is over pairs of raters g and h; p_gk is the share of category k among the ratings of rater g. Parameters
    as for `fleiss_kappa`.

    References
    ----------
    A. J. Conger (1980), Integration and generalization of kappas for multiple raters, Psychological Bulletin 88.

    Examples
    --------
    >>> float(conger_kappa(["a", "a", "b", "b"], ["a", "b", "b", "b"]))
    0.5
    """
    agreement = _agreement(raters, categories, weight)
    k = len(raters)
    expected = np.zeros(())
    for shares in agreement.by_rater:
        total, squares = sum(shares, start=np.zeros(())), sum((share**2 for share in shares), start=np.zeros(()))
        expected = expected + (total**2 - squares) / (k * (k - 1))
    return plain(_beyond(agreement.observed, expected))


def bennett_s(*raters: ArrayLike, categories: Categories = None, weight: ArrayLike | None = None) -> FloatArray:
    """Return Bennett's S (Brennan and Prediger's kappa) of two or more raters: pe = 1 / q for q categories.

    With two raters and two categories it equals PABAK. Parameters are as for `fleiss_kappa`; pass `categories`, because
    unused categories count.

    References
    ----------
    R. L. Brennan and D. J. Prediger (1981), Coefficient kappa, Educational and Psychological Measurement 41.

    Examples
    --------
    >>> float(bennett_s([1, 1, 0, 0], [1, 0, 0, 0]))
    0.5
    """
    agreement = _agreement(raters, categories, weight)
    return plain(_beyond(agreement.observed, np.asarray(1.0 / max(len(agreement.shares), 2))))


def ac1(*raters: ArrayLike, categories: Categories = None, weight: ArrayLike | None = None) -> FloatArray:
    """Return Gwet's AC1 of two or more raters: pe = sum_k pi_k (1 - pi_k) / (q - 1) for q categories.

    Parameters are as for `fleiss_kappa`; pass `categories`, because unused categories count in q.

    References
    ----------
    K. L. Gwet (2008), Computing inter-rater reliability and its variance in the presence of high agreement, British
    Journal of Mathematical and Statistical Psychology 61.

    Examples
    --------
    >>> round(float(ac1([1, 1, 0, 0], [1, 0, 0, 0])), 4)
    0.5294
    """
    agreement = _agreement(raters, categories, weight)
    q = max(len(agreement.shares), 2)
    uneven = sum((share * (1.0 - share) for share in agreement.shares), start=np.zeros(()))
    return plain(_beyond(agreement.observed, uneven / (q - 1)))


def alpha(*raters: ArrayLike, scale: AlphaScale = "nominal", weight: ArrayLike | None = None) -> FloatArray:
    """Return Krippendorff's alpha of two or more raters: 1 - observed / expected disagreement.

    With m_u ratings of person u, n_uv of them the value v, and n ratings in all of people with two or more, the
    disagreement is sum_u sum_v n_uv (m_u - n_uv) / (m_u - 1) against sum_v n_v (n - n_v) / (n - 1) on the nominal
    scale. The interval scale uses squared differences instead; the ordinal scale uses squared differences of middle
    ranks. Only counts and sums are computed, never pairs of people.

    Parameters
    ----------
    raters
        Two or more arrays of ratings of shapes (..., people) that broadcast; None or nan if missing.
    scale
        'nominal', 'ordinal' or 'interval'; the last two need numbers.
    weight
        The number of people each row represents; 1 by default.

    References
    ----------
    K. Krippendorff (2011), Computing Krippendorff's alpha-reliability, University of Pennsylvania.

    Examples
    --------
    >>> round(float(alpha([1, 1, 0, 0], [1, 0, 0, 0])), 4)
    0.5333
    >>> round(float(alpha([1, 2, 3], [1, 2, 4], scale="interval")), 4)
    0.878
    """
    require_choice("scale", scale, ALPHA_SCALES)
    _check_raters(raters)
    if scale == "nominal":
        return plain(_nominal_alpha(raters, weight))
    scores = score_ratings(*raters, missing=True)
    weights = people_weights(weight, scores[0].shape[-1])
    ratings = sum((~np.isnan(score) for score in scores), start=np.zeros(1))
    pairable = np.asarray(np.where(ratings >= 2, weights, 0.0))
    if scale == "ordinal":
        scores = _middle_ranks(scores, pairable)
    return plain(_interval_alpha(scores, ratings, pairable))


def pairable_people(*raters: ArrayLike, weight: ArrayLike | None = None) -> FloatArray:
    """Return the number of people with two or more ratings.

    Examples
    --------
    >>> float(pairable_people(["a", None, "b"], ["a", "a", "b"]))
    2.0
    """
    codes, _ = coded_ratings(raters, None, missing=True)
    weights = people_weights(weight, codes[0].shape[-1])
    return np.asarray(np.where(_rated(codes) >= 2, weights, 0.0).sum(axis=-1))


def _agreement(raters: Sequence[ArrayLike], categories: Categories, weight: ArrayLike | None) -> _Agreement:
    _check_raters(raters)
    codes, q = coded_ratings(raters, categories, missing=True)
    weights = people_weights(weight, codes[0].shape[-1])
    ratings = _rated(codes)
    pairs = np.where(ratings >= 2, weights / np.maximum(ratings * (ratings - 1.0), 1.0), 0.0)
    share_of = np.where(ratings >= 1, weights / np.maximum(ratings, 1.0), 0.0)
    rated = np.where(ratings >= 1, weights, 0.0).sum(axis=-1)
    totals = [np.asarray(np.where(code >= 0, weights, 0.0).sum(axis=-1)) for code in codes]
    agree, shares, by_rater = np.zeros(()), [], []
    for category in range(q):
        chosen = [code == category for code in codes]
        count = sum((choice.astype(np.float64) for choice in chosen), start=np.zeros(1))
        agree = agree + (count * (count - 1.0) * pairs).sum(axis=-1)
        shares.append(ratio((count * share_of).sum(axis=-1), rated))
        chosen_by = [np.asarray((choice * weights).sum(axis=-1)) for choice in chosen]
        by_rater.append([ratio(mass, total) for mass, total in zip(chosen_by, totals, strict=True)])
    pairable = np.where(ratings >= 2, weights, 0.0).sum(axis=-1)
    return _Agreement(ratio(np.asarray(agree), np.asarray(pairable)), shares, by_rater)


def _beyond(observed: FloatArray, expected: FloatArray) -> FloatArray:
    return ratio(observed - expected, np.where(1.0 - expected < 1e-14, 0.0, 1.0 - expected))


def _rated(codes: Sequence[IntArray]) -> FloatArray:
    return sum(((code >= 0).astype(np.float64) for code in codes), start=np.zeros(1))


def _check_raters(raters: Sequence[ArrayLike]) -> None:
    if len(raters) < 2:
        raise EvenhandError("There must be at least two raters; got {number}.", number=len(raters))


def _nominal_alpha(raters: Sequence[ArrayLike], weight: ArrayLike | None) -> FloatArray:
    codes, q = coded_ratings(raters, None, missing=True)
    weights = people_weights(weight, codes[0].shape[-1])
    ratings = _rated(codes)
    pairable = np.where(ratings >= 2, weights, 0.0)
    per_pair = pairable / np.maximum(ratings - 1.0, 1.0)
    total = (pairable * ratings).sum(axis=-1)
    observed, expected = np.zeros(()), np.zeros(())
    for category in range(q):
        count = sum((code == category for code in codes), start=np.zeros(1))
        observed = observed + (per_pair * count * (ratings - count)).sum(axis=-1)
        value = (pairable * count).sum(axis=-1)
        expected = expected + value * (total - value)
    return np.asarray(1.0 - ratio(observed * (total - 1.0), expected))


def _interval_alpha(scores: Sequence[FloatArray], ratings: FloatArray, pairable: FloatArray) -> FloatArray:
    """Return alpha for the interval scale, from the squared deviations within people and in total."""
    shape = np.broadcast_shapes(*(score.shape for score in scores), pairable.shape)
    present = np.stack([np.broadcast_to(~np.isnan(score), shape) for score in scores], axis=-1)
    stacked = np.stack([np.broadcast_to(np.nan_to_num(score), shape) for score in scores], axis=-1)
    size = np.abs(stacked).max(axis=(-1, -2), initial=0.0)
    _, within = mean_and_squares(stacked, present.astype(np.float64), np.broadcast_to(size[..., np.newaxis], shape))
    within = np.where(pairable > 0, within, 0.0)  # nan without ratings of a person
    observed = (pairable * within * ratings / np.maximum(ratings - 1.0, 1.0)).sum(axis=-1)
    weights = np.broadcast_to(pairable, shape)[..., np.newaxis] * present
    flat = (*shape[:-1], -1)
    _, spread = mean_and_squares(stacked.reshape(flat), weights.reshape(flat), size)
    total = np.asarray(weights.sum(axis=(-1, -2)))
    return np.asarray(1.0 - ratio(observed * (total - 1.0), total * spread))


def _middle_ranks(scores: Sequence[FloatArray], pairable: FloatArray) -> list[FloatArray]:
    """Return each rating's middle rank among the pairable ratings of its simulation; missing ratings stay nan."""
    shape = np.broadcast_shapes(*(score.shape for score in scores), pairable.shape)
    stacked = np.stack([np.broadcast_to(score, shape) for score in scores], axis=-1)
    present = ~np.isnan(stacked)
    simulations = int(np.prod(shape[:-1]))
    values = stacked.reshape(simulations, -1)
    flat_weights = (np.broadcast_to(pairable, shape)[..., np.newaxis] * present).reshape(simulations, -1)
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    weights = np.take_along_axis(flat_weights, order, axis=-1)
    opens = np.ones(ordered.shape, dtype=np.bool_)
    opens[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    run = np.cumsum(opens.ravel()) - 1
    in_run = np.bincount(run, weights.ravel(), minlength=int(run[-1]) + 1 if run.size else 0)
    before = np.cumsum(in_run) - in_run
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (before + in_run / 2.0)[run].reshape(values.shape), axis=-1)
    ranks = np.where(present, ranks.reshape(stacked.shape), np.nan)
    return [ranks[..., rater] for rater in range(len(scores))]
