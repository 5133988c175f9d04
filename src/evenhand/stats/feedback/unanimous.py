"""What is known of a rate when all answers behind it say the same, so that resampling shows no error at all."""

from __future__ import annotations

import numpy as np

from evenhand.stats.feedback.answers import Answers
from evenhand.stats.feedback.gaps import ordered_pairs
from evenhand.stats.feedback.kinds import Feedback
from evenhand.stats.feedback.notions import Notion, Rates
from evenhand.stats.feedback.sampling import Resampled
from evenhand.stats.types import FloatArray

_EDGE = 1e-12


def slacks(found: Rates, n: FloatArray, tail: float) -> FloatArray:
    """Return how much larger each difference of `differences` may be because a rate of 0 or 1 is only a sample's.

    When all n say the same, the rate of the others is at most 1 - tail^(1/n), the exact limit of Clopper and Pearson.
    The slacks of the two rates of a difference are added as squares (Newcombe's method 10).

    Parameters
    ----------
    found
        The rates.
    n
        (..., groups, columns) the number behind each rate; inf where it is known for sure.
    tail
        The share of samples in which a limit may be missed.

    References
    ----------
    C. J. Clopper and E. S. Pearson (1934), The use of confidence or fiducial limits, Biometrika 26.
    R. G. Newcombe (1998), Interval estimation for the difference between independent proportions, Statistics in
    Medicine 17.

    Examples
    --------
    >>> from evenhand.stats.feedback import rates
    >>> found = rates([[[9, 0], [3, 1]], [[4, 0], [5, 1]]], Feedback(2), "calibration")
    >>> slacks(found, np.array([[9.0, 4.0], [4.0, 6.0]]), 0.025).round(3)  # all 4 agree: at least 0.398 would
    array([0.602, 0.   , 0.336, 0.   ])
    """
    with np.errstate(divide="ignore"):
        most = 1.0 - tail ** (1.0 / n)
    one, two = ordered_pairs(found.lower.shape[-2])
    above = np.where(found.upper <= _EDGE, most, 0.0)[..., one, :]
    below = np.where(found.lower >= 1.0 - _EDGE, most, 0.0)[..., two, :]
    each = np.hypot(above, below)
    return np.asarray(each.reshape(*each.shape[:-2], -1))


def numbers_behind(answers: Answers, notion: Notion, resampled: Resampled) -> FloatArray:
    """Return (groups, columns) the number behind each rate: its critics or its cases, which are fewer.

    Answers of one critic, or on one case, may all go together; so they count as one. What is no sample does not count.
    """
    cells = answers.groups * answers.feedback.labels
    shape = answers.groups, answers.feedback.labels
    if notion == "statistical_parity" and resampled == "critics":
        return np.full(shape, np.inf)  # the labels of all cases are known
    counted = answers.weight is None or answers.weight > 0
    keep = np.broadcast_to(counted, answers.critic.shape)
    stratum = answers.stratum[answers.case[keep]]
    asked = np.bincount(answers.critic[keep] * cells + stratum, minlength=answers.critics * cells) > 0
    by_critic = asked.reshape(answers.critics, *shape).astype(np.float64)
    seen = np.unique(answers.case[keep])
    by_case = np.bincount(answers.stratum[seen], minlength=cells).reshape(shape).astype(np.float64)
    counts = np.bincount(answers.cell[keep], minlength=cells * answers.feedback.answers)
    masses = counts.reshape(answers.shape).astype(np.float64)
    critics, cases = _numbers(np.minimum(by_critic, 1.0), notion, heads=True), _numbers(by_case, notion)
    if notion == "statistical_parity" or resampled == "cases":
        fewest = cases
    else:
        fewest = critics if resampled == "critics" else np.minimum(critics, cases)
    return np.minimum(fewest, numbers_of(masses, answers.feedback, notion))


def numbers_of(masses: FloatArray, feedback: Feedback, notion: Notion) -> FloatArray:
    """Return (..., groups, columns) the number of answers behind each rate that is 0 or 1."""
    agree = (masses * feedback.agreeing).sum(axis=-1)
    total = masses.sum(axis=-1)
    others = agree.sum(axis=-1, keepdims=True) - agree
    if notion in ("equal_opportunity", "overall_misclassification"):  # of those who mean the label
        disagree = total - agree
        return np.asarray(np.where(agree > 0, agree, disagree.sum(axis=-1, keepdims=True) - disagree))
    if notion == "predictive_equality":  # of those who mean another
        return np.asarray(np.where(others > 0, others, total - agree))
    return _numbers(total, notion)


def _numbers(counts: FloatArray, notion: Notion, *, heads: bool = False) -> FloatArray:
    """Return the counts (..., groups, K) of a notion's columns; `heads` for (critics, groups, K) of critics asked."""
    whole = counts.max(axis=-1, keepdims=True) if heads else counts.sum(axis=-1, keepdims=True)
    if heads:
        counts, whole = counts.sum(axis=0), whole.sum(axis=0)
    if notion in ("accuracy_equality", "tolerant_accuracy"):
        found = whole
    elif notion in ("calibration", "tolerant_calibration"):
        found = counts
    elif notion in ("equal_opportunity", "overall_misclassification"):
        found = np.where(counts > 0, counts, whole)
    else:
        found = np.broadcast_to(whole, counts.shape)
    return np.asarray(found)
