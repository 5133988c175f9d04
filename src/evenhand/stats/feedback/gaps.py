"""Gaps of a metric over labels and groups: exact if the rates are exact, otherwise bounds.

The gap is max_k max_{m, m'} (R_mk - R_m'k) over the defined cells. Groups are independent of one another, so the upper
bound max (U_mk - L_m'k) over ordered pairs is attained. The lower bound max (0, L_mk - U_m'k) is valid, but the labels
of a group depend on one another; `joint` has the sharp bound for two groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import DataError
from evenhand.stats.feedback.answers import Feedback
from evenhand.stats.feedback.joint import CORNER_LABELS, Budget, smallest_gap
from evenhand.stats.feedback.metrics import INDEFINITE, Bounds, FeedbackMetric, Rates, parts, rates, ratio_masses
from evenhand.stats.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class FeedbackGap:
    """The gap of one metric: arrays over the axes before groups and labels (a scalar for one gap).

    Attributes
    ----------
    metric
        The metric.
    lower, upper
        The smallest and largest gap compatible with the answers; nan if no label has two groups with a rate. The
        published lower bound may be negative.
    separate_lower
        The lower bound from separate intervals, without the dependence of labels.
    label
        The label at which the upper bound (or the exact gap) is attained; -1 for a metric without labels or an
        undefined gap.
    high, low
        The groups with the higher and the lower rate at this label; -1 if the gap is undefined.
    sharp
        Whether both bounds are attainable. Otherwise the lower bound is valid but may be too low: with a direction and
        four labels or more, with a tolerance, with more than two groups, or with more than ten labels.
    """

    metric: FeedbackMetric
    lower: FloatArray
    upper: FloatArray
    separate_lower: FloatArray
    label: IntArray
    high: IntArray
    low: IntArray
    sharp: bool

    @property
    def estimate(self) -> FloatArray:
        """Return the gap if it is exact, otherwise the middle of its bounds.

        The estimate is the largest of several noisy differences, and therefore too high on average.
        """
        return np.asarray((self.lower + self.upper) / 2)

    @property
    def exact(self) -> BoolArray:
        """Mask of exact gaps, up to rounding."""
        return np.asarray(self.upper - self.lower <= 1e-9)


def gap(
    masses: ArrayLike, feedback: Feedback, metric: FeedbackMetric, *, bounds: Bounds = "sharp", closed: bool = False
) -> FeedbackGap:
    """Return the largest difference of a metric between groups, over all labels.

    The gap in overall misclassification equals the gap in equal opportunity, since the rates add up to 1.

    Parameters
    ----------
    masses
        (..., groups, K, answers) counts, weights or shares of the answers.
    feedback
        The kind of feedback.
    metric
        One of `METRICS`.
    bounds
        'sharp' or 'published', see `rates`. The published estimate is the middle of the published bounds.
    closed
        Treat a mass of 0 as possibly tiny but positive; see `rates`.

    Examples
    --------
    >>> white, black = [[70, 10], [12, 8]], [[30, 10], [24, 36]]  # agree and disagree, for each of two labels
    >>> found = gap([white, black], Feedback(2), "equal_opportunity")
    >>> round(float(found.estimate), 4), bool(found.exact), int(found.label), (int(found.high), int(found.low))
    (0.4429, True, 0, (0, 1))

    With a third label there are bounds; the lower one needs the labels together:

    >>> three = [[[70, 10], [12, 8], [5, 5]], [[30, 10], [4, 36], [9, 1]]]
    >>> found = gap(three, Feedback(3), "equal_opportunity")
    >>> [round(float(x), 4) for x in (found.separate_lower, found.lower, found.estimate, found.upper)]
    [0.0, 0.0445, 0.4404, 0.8364]
    """
    mass = feedback.check(masses)
    if mass.ndim < 3 or mass.shape[-3] < 2:
        raise DataError("a gap needs at least two groups; `masses` has the shape {shape}.", shape=mass.shape)
    cells = rates(mass, feedback, metric, bounds=bounds, closed=closed)
    upper, label, high, low = _largest(cells.upper, cells.lower)
    separate = _largest(cells.lower, cells.upper)[0]
    found = FeedbackGap(
        metric=metric,
        lower=separate,
        upper=upper,
        separate_lower=separate,
        label=label if cells.by_label else np.full_like(label, -1),
        high=high,
        low=low,
        sharp=False,
    )
    if bounds == "published" and metric in INDEFINITE:
        return found
    separate, two_groups = np.asarray(np.maximum(separate, 0.0)), mass.shape[-3] == 2
    found = replace(found, lower=separate, separate_lower=separate)
    exact = bool((cells.exact | np.isnan(cells.lower)).all())
    if exact or metric not in INDEFINITE:
        return replace(found, sharp=exact or two_groups)
    jointly = smallest_gaps(mass, feedback, metric, closed=closed).max(axis=-1)
    lower = np.asarray(np.minimum(np.maximum(separate, jointly), upper))
    return replace(found, lower=lower, sharp=two_groups and _any_budget(feedback))


def smallest_gaps(masses: ArrayLike, feedback: Feedback, metric: FeedbackMetric, *, closed: bool = False) -> FloatArray:
    """Return the smallest gap compatible with the answers for each pair of groups (see `joint`).

    Parameters
    ----------
    masses, feedback, closed
        As for `gap`.
    metric
        One of the indefinite metrics.

    Returns
    -------
    (..., pairs) the gaps of the pairs (0, 1), (0, 2), ..., (1, 2), ...; with a tolerance all are 0, which is always
    valid.
    """
    mass = parts(masses, feedback)
    ratio: FeedbackMetric = "equal_opportunity" if metric == "overall_misclassification" else metric
    fixed, most, low, high = ratio_masses(ratio, mass)
    first, second = np.triu_indices(fixed.shape[-2], 1)
    if feedback.tolerance:  # then c is unknown
        return np.zeros((*fixed.shape[:-2], first.size))
    total = mass.refused_low.sum(axis=-1)
    if ratio == "predictive_equality":
        total = mass.rest.sum(axis=-1) - total
    compared = (most + high > 0) & ~(closed & (most == 0) & (low == 0))
    a, b = (Budget(fixed[..., m, :], low[..., m, :], high[..., m, :], total[..., m]) for m in (first, second))
    return smallest_gap(a, b, compared[..., first, :] & compared[..., second, :])


def _any_budget(feedback: Feedback) -> bool:
    """Return whether `Budget` describes all possible x exactly, with few enough corners to enumerate."""
    free = feedback.kind == "agreement" or feedback.labels <= 3
    return free and not feedback.tolerance and feedback.labels <= CORNER_LABELS


def same_gap(metric: FeedbackMetric, labels: int) -> FeedbackMetric:
    """Return the metric whose gap equals this metric's gap, so that equal gaps count once.

    Overall misclassification is 1 minus equal opportunity, so their gaps are equal. With two labels, a critic's label
    other than k is l, so predictive equality of k is 1 minus equal opportunity of l, and the gaps are equal again.

    Examples
    --------
    >>> same_gap("overall_misclassification", 5), same_gap("predictive_equality", 2), same_gap("predictive_equality", 3)
    ('equal_opportunity', 'equal_opportunity', 'predictive_equality')
    """
    if metric == "overall_misclassification" or (metric == "predictive_equality" and labels == 2):
        return "equal_opportunity"
    return metric


def differences(cells: Rates) -> FloatArray:
    """Return the largest possible differences U_mk - L_m'k for each ordered pair of groups and each label.

    Returns
    -------
    (..., pairs * labels) with nan if a rate is undefined. The pairs are (0, 1), (0, 2), ..., (1, 0), ..., the labels
    run fastest. The smallest possible differences are the negatives of the reversed pairs' differences.

    Examples
    --------
    >>> found = rates([[[6, 2], [3, 1]], [[3, 3], [5, 1]]], Feedback(2), "calibration")
    >>> differences(found).round(3)
    array([ 0.25 , -0.083, -0.25 ,  0.083])
    """
    first, second = ordered_pairs(cells.lower.shape[-2])
    difference = cells.upper[..., first, :] - cells.lower[..., second, :]
    return np.asarray(difference.reshape(*difference.shape[:-2], -1))


def ordered_pairs(groups: int) -> tuple[IntArray, IntArray]:
    """Return the first and second groups of all ordered pairs.

    Examples
    --------
    >>> ordered_pairs(3)
    (array([0, 0, 1, 1, 2, 2]), array([1, 2, 0, 2, 0, 1]))
    """
    first, second = np.divmod(np.arange(groups * groups), groups)
    return first[first != second], second[first != second]


def _largest(higher: FloatArray, lower: FloatArray) -> tuple[FloatArray, IntArray, IntArray, IntArray]:
    """Return max (higher_mk - lower_m'k) over labels and pairs of groups m, m', with its label, m and m'.

    To avoid a list of pairs, it compares the highest and the lowest group of a label; if they are the same group, it
    replaces one of them by its runner-up.
    """
    highs, lows = np.where(np.isnan(higher), -np.inf, higher), np.where(np.isnan(lower), np.inf, lower)
    top, bottom = highs.argmax(axis=-2), lows.argmin(axis=-2)
    group = np.arange(highs.shape[-2])[:, np.newaxis]
    other_highs = np.where(group == top[..., np.newaxis, :], -np.inf, highs)
    other_lows = np.where(group == bottom[..., np.newaxis, :], np.inf, lows)
    most, second = highs.max(axis=-2), other_highs.max(axis=-2)
    least, second_lowest = lows.min(axis=-2), other_lows.min(axis=-2)
    keep_top = most - second_lowest >= second - least
    same = top == bottom
    value = np.where(same, np.where(keep_top, most - second_lowest, second - least), most - least)
    high = np.where(same & ~keep_top, other_highs.argmax(axis=-2), top)
    low = np.where(same & keep_top, other_lows.argmin(axis=-2), bottom)
    label = value.argmax(axis=-1)
    value, high, low = (np.take_along_axis(x, label[..., np.newaxis], -1)[..., 0] for x in (value, high, low))
    defined = np.isfinite(value)
    label, high, low = (np.where(defined, x, -1) for x in (label, high, low))
    return np.where(defined, value, np.nan), label, high, low
