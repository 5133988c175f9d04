"""The Bayesian truth serum: scores that reward honest answers to questions without a known truth.

Reference: D. Prelec (2004), A Bayesian truth serum for subjective data, Science 306. An answer scores high if it is
more common than people predicted ("surprisingly common"); a prediction scores high if it is close to people's answers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError
from evenhand.stats.types import BoolArray, FloatArray, IntArray

CLIP = (0.01, 0.99)


class SerumScores(NamedTuple):
    """The two parts and the total of the scores, shaped like the answers; nan where a person did not take part."""

    information: FloatArray
    prediction: FloatArray
    total: FloatArray


class Bonus(NamedTuple):
    """The recipients of a bonus.

    Parameters
    ----------
    chosen : whether each person gets a bonus.
    rank : 1 for the highest score, equal for equal scores; 0 without a rank.
    places : the number of bonuses to give.
    tied : the number of people beyond `places` who get a bonus because their score equals the score of the last place.
    """

    chosen: BoolArray
    rank: IntArray
    places: int
    tied: int


def scores(
    answers: ArrayLike, predictions: ArrayLike, *, weight: float = 1.0, clip: tuple[float, float] = CLIP
) -> FloatArray:
    """Return each person's truth-serum score for each question.

    The score is log(x_a / y_a) + weight sum_k x_k log(p_k / x_k), where a is the person's answer, x_k the share that
    chose k, y_k the geometric mean of the predicted shares and p_k the person's own prediction. Terms with x_k = 0 are
    left out, and the geometric means are not rescaled to sum to 1. At weight 1 the scores of a question sum to 0.

    Parameters
    ----------
    answers : the answer of each person, 0 .. K-1 or False and True; shape (people,) or (people, questions).
        nan or a negative number means no answer.
    predictions : with two answers, the predicted share that chose answer 1, of the shape of `answers` (the share of
        answer 0 is the rest); with K answers one more axis of length K. nan means no prediction.
    weight : the weight of the prediction score.
    clip : predictions are clipped to this range, since log 0 is unbounded.

    Returns
    -------
    numpy.ndarray
        Scores in the shape of `answers`. A person without an answer or a prediction is left out of that question, with
        a score of nan.

    References
    ----------
    D. Prelec (2004), A Bayesian truth serum for subjective data, Science 306.

    Examples
    --------
    Three of four say yes, and people expected that of half:

    >>> scores([1, 1, 1, 0], [0.5, 0.5, 0.5, 0.5]).round(4)
    array([ 0.2747,  0.2747,  0.2747, -0.824 ])
    """
    return score_parts(answers, predictions, weight=weight, clip=clip).total


def score_parts(
    answers: ArrayLike, predictions: ArrayLike, *, weight: float = 1.0, clip: tuple[float, float] = CLIP
) -> SerumScores:
    """Return the information score, the prediction score and the total `information + weight prediction`.

    Examples
    --------
    >>> parts = score_parts([1, 1, 1, 0], [0.75, 0.75, 0.75, 0.75])
    >>> parts.information.round(4), parts.prediction.round(4)
    (array([0., 0., 0., 0.]), array([0., 0., 0., 0.]))
    """
    chosen, share = _answers_and_shares(answers, predictions, clip)
    flat = chosen.ndim == 1
    if flat:
        chosen, share = chosen[:, np.newaxis], share[:, np.newaxis]
    part = (chosen >= 0) & ~np.isnan(share).any(axis=-1)
    people = part.sum(axis=0)
    with np.errstate(all="ignore"):
        picked = (chosen[..., np.newaxis] == np.arange(share.shape[-1])) & part[..., np.newaxis]
        x = picked.sum(axis=0) / people[:, np.newaxis]
        log_share = np.where(part[..., np.newaxis], np.log(share), 0.0)
        log_y = log_share.sum(axis=0) / people[:, np.newaxis]
        log_x = np.where(x > 0, np.log(x), 0.0)
        information = np.where(picked, log_x - log_y, 0.0).sum(axis=-1)
        prediction = (x * (log_share - log_x)).sum(axis=-1)
    parts = [np.where(part, values, np.nan) for values in (information, prediction, information + weight * prediction)]
    return SerumScores(*(values[:, 0] if flat else values for values in parts))


def person_scores(question_scores: ArrayLike) -> tuple[FloatArray, IntArray]:
    """Return each person's mean score over the answered questions, and the number of these questions.

    Examples
    --------
    >>> person_scores([[0.2, 0.4], [float("nan"), -0.1], [float("nan"), float("nan")]])
    (array([ 0.3, -0.1,  nan]), array([2, 1, 0]))
    """
    values = np.asarray(question_scores, dtype=np.float64)
    answered = ~np.isnan(values)
    counted = answered.sum(axis=1)
    with np.errstate(all="ignore"):
        return np.where(answered, values, 0.0).sum(axis=1) / counted, counted.astype(np.int64)


def bonus(
    person: ArrayLike, *, share: float = 0.1, eligible: ArrayLike | None = None, include_ties: bool = True
) -> Bonus:
    """Return the recipients of the bonus: the highest-scoring share of the eligible people.

    There are round(share n) places, at least one. People tied with the last place (to 1e-9) are also paid, or with
    `include_ties=False` none of the tied people is, so that nothing depends on chance.

    Parameters
    ----------
    person : each person's score; people with nan are not eligible.
    share : share of the eligible people to pay, above 0 and at most 1.
    eligible : mask of the people who may be paid; by default all people with a score.
    include_ties : whether to pay people tied at the last place.

    Examples
    --------
    >>> found = bonus([0.3, 0.1, 0.3, -0.2, 0.0], share=0.2)
    >>> found.chosen, found.rank, found.tied
    (array([ True, False,  True, False, False]), array([1, 3, 1, 5, 4]), 1)
    """
    if not 0 < share <= 1:
        raise EvenhandError("`share` must be above 0 and at most 1; got {share:g}.", share=share)
    values = np.asarray(person, dtype=np.float64)
    small = np.abs(values) < 1e6  # larger numbers have no ninth decimal
    values = np.where(small, np.round(np.where(small, values, 0.0), 9), values)
    eligible_people = ~np.isnan(values) & (
        np.ones(values.shape, bool) if eligible is None else np.asarray(eligible, bool)
    )
    n = int(eligible_people.sum())
    rank = np.zeros(values.shape, np.int64)
    if n == 0:
        return Bonus(np.zeros(values.shape, bool), rank, 0, 0)
    sorted_scores = np.sort(values[eligible_people])
    rank[eligible_people] = 1 + n - np.searchsorted(sorted_scores, values[eligible_people], side="right")
    places = max(1, int(np.floor(share * n + 0.5)))
    last = sorted_scores[n - places]
    paid, tied = eligible_people & (values >= last), eligible_people & (values == last)
    beyond = int(paid.sum()) - places
    if beyond and not include_ties:
        return Bonus(paid & ~tied, rank, places, 0)
    return Bonus(paid, rank, places, beyond)


def _answers_and_shares(
    answers: ArrayLike, predictions: ArrayLike, clip: tuple[float, float]
) -> tuple[IntArray, FloatArray]:
    """Return answers as codes (-1 for none), and the clipped predicted shares of all K answers."""
    chosen, predicted = np.asarray(answers, dtype=np.float64), np.asarray(predictions, dtype=np.float64)
    if chosen.ndim not in (1, 2):
        raise EvenhandError(
            "`answers` must have the shape (people,) or (people, questions); got {shape}.", shape=chosen.shape
        )
    low, high = clip
    if not 0 < low < high < 1:
        raise EvenhandError("`clip` must be two increasing shares between 0 and 1; got {clip!r}.", clip=clip)
    if np.any((predicted < 0) | (predicted > 1)):
        bad = predicted[(predicted < 0) | (predicted > 1)].flat[0]
        raise EvenhandError(
            "`predictions` must be shares between 0 and 1; got {bad:g} (divide percentages by 100).", bad=bad
        )
    moved = np.clip(predicted, low, high)
    if predicted.shape == chosen.shape:
        moved = np.stack([1 - moved, moved], axis=-1)
    elif predicted.shape[:-1] != chosen.shape or predicted.ndim != chosen.ndim + 1:
        raise EvenhandError(
            "`predictions` must have the shape of `answers`, {shape}, or one more axis; got {shape_2}.",
            shape=chosen.shape,
            shape_2=predicted.shape,
        )
    codes = np.where(np.isnan(chosen) | (chosen < 0), -1.0, chosen)
    if np.any(codes != np.floor(codes)) or codes.max(initial=-1) >= moved.shape[-1]:
        wrong = codes[(codes != np.floor(codes)) | (codes >= moved.shape[-1])].flat[0]
        raise EvenhandError(
            "`answers` must be whole numbers from 0 to {value}; got {wrong:g}.", value=moved.shape[-1] - 1, wrong=wrong
        )
    return codes.astype(np.int64), moved
