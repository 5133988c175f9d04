"""The Bayesian truth serum: scores that pay people to say what they think when nobody knows the truth.

Reference: D. Prelec (2004), A Bayesian truth serum for subjective data, Science 306. An answer scores high when it is
more common than people predicted ("surprisingly common"), a prediction when it is close to what people answered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError
from evenhand.stats.types import BoolArray, FloatArray, IntArray

CLIP = (0.01, 0.99)


class SerumScores(NamedTuple):
    """The two parts of the scores, of the shape of the answers; nan where a person took no part in a question."""

    information: FloatArray
    prediction: FloatArray
    total: FloatArray


class Bonus(NamedTuple):
    """Who gets a bonus.

    Parameters
    ----------
    chosen : whether each person gets it.
    rank : 1 for the highest score, people with equal scores alike; 0 where a person has no rank.
    places : how many there were to give.
    tied : people beyond `places` who get it because they score as high as the last one who does.
    """

    chosen: BoolArray
    rank: IntArray
    places: int
    tied: int


def scores(
    answers: ArrayLike, predictions: ArrayLike, *, weight: float = 1.0, clip: tuple[float, float] = CLIP
) -> FloatArray:
    """Return everybody's truth-serum score for each question.

    log(x_a / y_a) + weight sum_k x_k log(p_k / x_k), where a is the person's answer, x_k the share that chose k, y_k
    the geometric mean of the predicted shares and p_k the person's own prediction. Terms with x_k = 0 are left out,
    the geometric means are not rescaled to sum to 1. At weight 1 the scores of a question sum to 0.

    Parameters
    ----------
    answers : which answer each person chose, 0 .. K-1 or False and True; shape (people,) or (people, questions).
        nan, or a negative number, is no answer.
    predictions : with two answers, the predicted share that chose answer 1, of the shape of `answers` (the share of
        answer 0 is the rest); with K answers one more axis of length K. nan is no prediction.
    weight : how much predicting counts.
    clip : predictions are moved into this range, since log 0 has no bottom.

    Returns
    -------
    numpy.ndarray
        Scores of the shape of `answers`. A person without an answer or a prediction takes no part in that question,
        and has nan.

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
    """Return the information score, the prediction score and `information + weight prediction`; see `scores`.

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
    """Return each person's mean score over the questions they took part in, and how many those were.

    Examples
    --------
    >>> person_scores([[0.2, 0.4], [float("nan"), -0.1], [float("nan"), float("nan")]])
    (array([ 0.3, -0.1,  nan]), array([2, 1, 0]))
    """
    values = np.asarray(question_scores, dtype=np.float64)
    known = ~np.isnan(values)
    counted = known.sum(axis=1)
    with np.errstate(all="ignore"):
        return np.where(known, values, 0.0).sum(axis=1) / counted, counted.astype(np.int64)


def bonus(
    person: ArrayLike, *, share: float = 0.1, eligible: ArrayLike | None = None, include_ties: bool = True
) -> Bonus:
    """Return who gets the bonus: the highest-scoring share of the eligible people.

    There are round(share n) places, at least one. People who score as the last one does (to 1e-9) are paid too, or with
    `include_ties=False` none of them is, so that chance decides nothing.

    Parameters
    ----------
    person : everybody's score; nan is not eligible.
    share : share of the eligible people who are paid, above 0 and at most 1.
    eligible : who may be paid at all; by default everybody with a score.
    include_ties : what happens to people tied at the last place.

    Examples
    --------
    >>> found = bonus([0.3, 0.1, 0.3, -0.2, 0.0], share=0.2)
    >>> found.chosen, found.rank, found.tied
    (array([ True, False,  True, False, False]), array([1, 3, 1, 5, 4]), 1)
    """
    if not 0 < share <= 1:
        raise EvenhandError(
            "`share` must be above 0 and at most 1; got {share:g}.",
            share=share,
        )
    values = np.asarray(person, dtype=np.float64)
    small = np.abs(values) < 1e6  # larger numbers have no ninth decimal
    values = np.where(small, np.round(np.where(small, values, 0.0), 9), values)
    running = ~np.isnan(values) & (np.ones(values.shape, bool) if eligible is None else np.asarray(eligible, bool))
    n = int(running.sum())
    rank = np.zeros(values.shape, np.int64)
    if n == 0:
        return Bonus(np.zeros(values.shape, bool), rank, 0, 0)
    held = np.sort(values[running])
    rank[running] = 1 + n - np.searchsorted(held, values[running], side="right")
    places = max(1, int(np.floor(share * n + 0.5)))
    last = held[n - places]
    paid, tied = running & (values >= last), running & (values == last)
    beyond = int(paid.sum()) - places
    if beyond and not include_ties:
        return Bonus(paid & ~tied, rank, places, 0)
    return Bonus(paid, rank, places, beyond)


def _answers_and_shares(
    answers: ArrayLike, predictions: ArrayLike, clip: tuple[float, float]
) -> tuple[IntArray, FloatArray]:
    """Return answers as codes, -1 for none, and the clipped predicted shares of all K answers."""
    chosen, predicted = np.asarray(answers, dtype=np.float64), np.asarray(predictions, dtype=np.float64)
    if chosen.ndim not in (1, 2):
        raise EvenhandError(
            "`answers` must have the shape (people,) or (people, questions); got {shape}.",
            shape=chosen.shape,
        )
    low, high = clip
    if not 0 < low < high < 1:
        raise EvenhandError(
            "`clip` must be two rising shares between 0 and 1; got {clip!r}.",
            clip=clip,
        )
    if np.any((predicted < 0) | (predicted > 1)):
        bad = predicted[(predicted < 0) | (predicted > 1)].flat[0]
        raise EvenhandError(
            "`predictions` must be shares between 0 and 1; got {bad:g} (divide percentages by 100).",
            bad=bad,
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
            "`answers` must be whole numbers from 0 to {value}; got {wrong:g}.",
            value=moved.shape[-1] - 1,
            wrong=wrong,
        )
    return codes.astype(np.int64), moved
