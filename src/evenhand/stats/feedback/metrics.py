"""Rates of six fairness metrics from critics' answers: exact where possible, otherwise sharp bounds.

For label k of a group, and for any critic labels compatible with the answers, T is the mass of cases with label k from
both the system and the critic, Q the mass with k from the critic alone, S the mass with the system's label k and O the
remaining mass. Answers compatible with a single label fix a part of T and Q; other answers may or may not count. T
rests on the cases labelled k and Q on all others, so each reaches its ends T- and T+, Q- and Q+ independently of the
other. A rate that increases in T and decreases in Q therefore has its ends at (T-, Q+) and (T+, Q-). Both ends are
attained, so the intervals are sharp.

References
----------
M. Telukunta and V. S. S. Nadendla, Towards inclusive fairness evaluation via eliciting disagreement feedback from
non-expert stakeholders: the metrics, and the bounds that `bounds="published"` keeps. C. F. Manski (2003), Partial
Identification of Probability Distributions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import ConfigError, require_choice
from evenhand.stats.feedback.answers import Feedback
from evenhand.stats.types import BoolArray, FloatArray, IntArray

FeedbackMetric = Literal[
    "statistical_parity",
    "calibration",
    "accuracy_equality",
    "equal_opportunity",
    "predictive_equality",
    "overall_misclassification",
    "tolerant_calibration",
    "tolerant_accuracy",
]
Bounds = Literal["sharp", "published"]
BOUNDS: tuple[Bounds, ...] = ("sharp", "published")


class UndefinedRate(IntEnum):
    """The reasons why a rate is undefined."""

    DEFINED = 0
    NO_ANSWERS = 1
    """The group has no answers."""
    LABEL_NEVER_GIVEN = 2
    """The system never gives the label to the group, so nothing is known about such cases."""
    NO_CRITIC_LABEL = 3
    """No critic can have the label in mind for a case of the group."""
    NO_OTHER_LABEL = 4
    """No critic can have another label in mind for a case of the group."""
    UNSTATED = 5
    """The published bound is 0 / 0."""


@dataclass(frozen=True, eq=False)
class Rates:
    """The bounds of one metric's rate for every group and label; nan if undefined.

    Attributes
    ----------
    metric
        The metric.
    lower, upper
        (..., K) the smallest and largest rate compatible with the answers; one column for a metric without labels.
    reason
        (..., K) an `UndefinedRate` code.
    by_label
        Whether the columns are labels.
    """

    metric: FeedbackMetric
    lower: FloatArray
    upper: FloatArray
    reason: IntArray
    by_label: bool = True

    @property
    def exact(self) -> BoolArray:
        """(..., K) mask of rates whose bounds coincide, up to rounding."""
        return np.asarray(self.upper - self.lower <= 1e-12)


class Parts(NamedTuple):
    """(..., K) the masses from which the rates of each label are computed."""

    system: FloatArray
    """S, the cases with the system's label k."""
    rest: FloatArray
    """O, the cases with another system label."""
    same_low: FloatArray
    """T-."""
    same_high: FloatArray
    """T+."""
    only_low: FloatArray
    """Q-, label k from critics alone."""
    only_high: FloatArray
    """Q+."""
    refused_low: FloatArray
    """S - T+, label k from the system alone."""
    refused_high: FloatArray
    """S - T-."""
    neither_low: FloatArray
    """O - Q+."""
    neither_high: FloatArray
    """O - Q-."""
    agreed: FloatArray
    """The mass of the answer that agrees."""

    @property
    def everything(self) -> FloatArray:
        """(..., K) N, the mass of all answers."""
        return self.system + self.rest


def parts(masses: ArrayLike, feedback: Feedback) -> Parts:
    """Return the masses T-, T+, Q-, Q+ and the others of `Parts` for each label.

    Parameters
    ----------
    masses
        (..., K, answers) counts, weights or shares of the answers to each of the system's labels. They are summed
        directly, so empty masses are exactly 0.
    feedback
        The kind of feedback.

    Examples
    --------
    >>> found = parts([[6, 2], [3, 1], [4, 4]], Feedback(3))  # agree and disagree for each of three labels
    >>> found.same_low, found.only_low, found.only_high
    (array([6., 3., 4.]), array([0., 0., 0.]), array([5., 6., 3.]))
    """
    mass = feedback.check(masses)
    summed = mass.reshape(*mass.shape[:-2], -1) @ _sums(feedback)
    return Parts(*np.moveaxis(summed.reshape(*mass.shape[:-2], len(Parts._fields), feedback.labels), -2, 0))


@lru_cache(maxsize=32)
def _sums(feedback: Feedback) -> FloatArray:
    """Return the 0/1 matrix that maps the masses of labels and answers to `Parts`."""
    may = feedback.admissible
    must = may & (may.sum(axis=2, keepdims=True) == 1)
    same_label = np.eye(feedback.labels, dtype=np.bool_)[:, np.newaxis, :]
    system_label = np.broadcast_to(same_label, may.shape)
    agreed = same_label & feedback.agreeing[:, :, np.newaxis]
    sides, kinds = (same_label, ~same_label), ((must, may), (~may, ~must))
    masses = [side & kind for low_and_high in kinds for side in sides for kind in low_and_high]
    columns = (system_label, ~system_label, *masses, agreed)
    matrix = np.stack(columns, axis=2).astype(np.float64)
    return matrix.reshape(feedback.labels * feedback.answers, -1)


def rates(
    masses: ArrayLike, feedback: Feedback, metric: FeedbackMetric, *, bounds: Bounds = "sharp", closed: bool = False
) -> Rates:
    """Return the bounds of a metric's rate for every group and label.

    With the masses of `Parts` and N the mass of all answers,

    - statistical parity: S / N;
    - calibration: [T- / S, T+ / S]; accuracy equality: [sum T- / N, sum T+ / N];
    - equal opportunity: [T- / (T- + Q+), T+ / (T+ + Q-)]; overall misclassification: 1 - equal opportunity;
    - predictive equality: [(S-T+) / (S-T+ + O-Q-), (S-T-) / (S-T- + O-Q+)];
    - tolerant calibration and accuracy: the share of cases where the critic agrees, exact with any tolerance.

    A ratio a / (a + b) is 0 if a cannot be positive and b can, 1 if b cannot be positive and a can, and undefined if
    neither can.

    Parameters
    ----------
    masses
        (..., K, answers) counts, weights or shares; the leading axes are groups, critics or resamples. A group need
        not sum to 1.
    feedback
        The kind of feedback.
    metric
        One of `METRICS`.
    bounds
        'sharp', or 'published': the paper's own lower bounds with an upper bound of 1, looser, and for overall
        misclassification wrong (EO >= L gives OMR <= 1 - L, not OMR >= 1 - L). The definite metrics are the same.
    closed
        Treat a mass of 0 in the sample as possibly tiny but positive in the population: a ratio whose a or b is 0 then
        ranges over all its limits, up to [0, 1]. Use it for sampling intervals.

    Examples
    --------
    >>> answers = [[6, 2], [3, 1], [4, 4]]  # agree and disagree for each of three labels
    >>> found = rates(answers, Feedback(3), "equal_opportunity")
    >>> found.lower.round(3), found.upper
    (array([0.545, 0.333, 0.571]), array([1., 1., 1.]))

    Two labels leave nothing open: who disagrees with one means the other.

    >>> rates([[6, 2], [3, 1]], Feedback(2), "equal_opportunity").exact
    array([ True,  True])
    """
    require_choice("metric", metric, METRICS)
    require_choice("bounds", bounds, BOUNDS)
    mass = parts(masses, feedback)
    if bounds == "published" and metric in _PUBLISHED:
        return _published(metric, mass, feedback)
    if metric == "overall_misclassification":
        same = rates(masses, feedback, "equal_opportunity", closed=closed)
        return Rates(metric, 1.0 - same.upper, 1.0 - same.lower, same.reason)
    return _interval(metric, mass, closed) if metric in _RATIOS else _share(metric, mass)


class ShareRule(NamedTuple):
    """The masses that form a share, and the reason if its denominator is 0."""

    low: str
    high: str
    whole: str
    reason: UndefinedRate
    by_label: bool = True


_SHARES: dict[FeedbackMetric, ShareRule] = {
    "statistical_parity": ShareRule("system", "system", "everything", UndefinedRate.NO_ANSWERS),
    "calibration": ShareRule("same_low", "same_high", "system", UndefinedRate.LABEL_NEVER_GIVEN),
    "accuracy_equality": ShareRule("same_low", "same_high", "everything", UndefinedRate.NO_ANSWERS, by_label=False),
    "tolerant_calibration": ShareRule("agreed", "agreed", "system", UndefinedRate.LABEL_NEVER_GIVEN),
    "tolerant_accuracy": ShareRule("agreed", "agreed", "everything", UndefinedRate.NO_ANSWERS, by_label=False),
}


class RatioRule(NamedTuple):
    """The masses that form a rate a / (a + b), and the reason if a and b can only be 0."""

    low: str
    high: str
    against_low: str
    against_high: str
    reason: UndefinedRate


_RATIOS: dict[FeedbackMetric, RatioRule] = {
    "equal_opportunity": RatioRule("same_low", "same_high", "only_low", "only_high", UndefinedRate.NO_CRITIC_LABEL),
    "predictive_equality": RatioRule(
        "refused_low", "refused_high", "neither_low", "neither_high", UndefinedRate.NO_OTHER_LABEL
    ),
}
_PUBLISHED: tuple[FeedbackMetric, ...] = (*_RATIOS, "overall_misclassification")
DEFINITE: tuple[FeedbackMetric, ...] = ("statistical_parity", "calibration", "accuracy_equality")
"""The metrics that agreement alone makes exact."""
INDEFINITE: tuple[FeedbackMetric, ...] = _PUBLISHED
"""The metrics that agreement bounds; with two labels they are exact, too."""
TOLERANT: tuple[FeedbackMetric, ...] = ("tolerant_calibration", "tolerant_accuracy")
"""The metrics that are exact with a tolerance, too."""
METRICS: tuple[FeedbackMetric, ...] = (*DEFINITE, *INDEFINITE, *TOLERANT)
BY_LABEL: tuple[FeedbackMetric, ...] = tuple(
    metric for metric in METRICS if metric not in _SHARES or _SHARES[metric].by_label
)
"""The metrics with a rate for each label."""


def ratio_masses(metric: FeedbackMetric, mass: Parts) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the masses a-, a+, b- and b+ of a metric with the rate a / (a + b)."""
    ratio = _RATIOS[metric]
    a_low, a_high, b_low, b_high = (getattr(mass, name) for name in ratio[:4])
    return a_low, a_high, b_low, b_high


def _interval(metric: FeedbackMetric, mass: Parts, closed: bool) -> Rates:
    """Return the rates [a- / (a- + b+), a+ / (a+ + b-)], with the limits for 0 / 0."""
    a_low, a_high, b_low, b_high = ratio_masses(metric, mass)
    with np.errstate(invalid="ignore"):
        lower, upper = a_low / (a_low + b_high), a_high / (a_high + b_low)
    lower = np.where(a_low + b_high == 0, 0.0 if closed else 1.0, lower)
    upper = np.where(a_high + b_low == 0, 1.0 if closed else 0.0, upper)
    return _defined(
        metric, lower, upper, undefined=a_high + b_high == 0, total=mass.everything, reason=_RATIOS[metric].reason
    )


def _published(metric: FeedbackMetric, mass: Parts, feedback: Feedback) -> Rates:
    if feedback.tolerance:
        raise ConfigError("`bounds` 'published' knows no tolerance; use 'sharp', or set `tolerance` to 0.")
    a = mass.refused_high if metric == "predictive_equality" else mass.same_low
    with np.errstate(invalid="ignore"):
        share = a / (a + mass.rest)
        lower = mass.rest / (a + mass.rest) if metric == "overall_misclassification" else share
    return _defined(
        metric,
        lower,
        np.ones_like(lower),
        undefined=a + mass.rest == 0,
        total=mass.everything,
        reason=UndefinedRate.UNSTATED,
    )


def _share(metric: FeedbackMetric, mass: Parts) -> Rates:
    """Return the rates [low / whole, high / whole]; metrics without labels use sums of low and high over labels."""
    share = _SHARES[metric]
    low, high, whole = (getattr(mass, name) for name in share[:3])
    total = mass.everything
    if not share.by_label:
        low, high = low.sum(axis=-1, keepdims=True), high.sum(axis=-1, keepdims=True)
        whole, total = whole[..., :1], total[..., :1]
    with np.errstate(invalid="ignore"):
        lower, upper = np.minimum(low / whole, 1.0), np.minimum(high / whole, 1.0)
    return _defined(
        metric, lower, upper, undefined=whole == 0, total=total, reason=share.reason, by_label=share.by_label
    )


def _defined(
    metric: FeedbackMetric,
    lower: FloatArray,
    upper: FloatArray,
    *,
    undefined: BoolArray,
    total: FloatArray,
    reason: UndefinedRate,
    by_label: bool = True,
) -> Rates:
    """Return the rates with their reasons, set to nan where undefined."""
    why = np.where(undefined, int(reason), 0)
    why = np.where(total == 0, int(UndefinedRate.NO_ANSWERS), why).astype(np.int64)
    lower, upper = (np.where(why == 0, end, np.nan) for end in (lower, upper))
    return Rates(metric, lower, upper, why, by_label)
