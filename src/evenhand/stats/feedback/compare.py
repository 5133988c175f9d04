"""Differences between two kinds of critics in their disagreement on the same cases and in their gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.random import Generator

from evenhand.errors import DataError
from evenhand.stats.feedback.answers import Answers, Feedback, numbered
from evenhand.stats.feedback.crossed import CrossedDraws, crossed_draws
from evenhand.stats.feedback.gaps import gap, same_gap
from evenhand.stats.feedback.limits import ROUNDING
from evenhand.stats.feedback.metrics import DEFINITE, INDEFINITE, FeedbackMetric, rates
from evenhand.stats.intervals import t_quantile
from evenhand.stats.multiplicity import adjusted_p
from evenhand.stats.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Differences:
    """Differences between two kinds of critics, first minus second; arrays of one shape, nan where undefined.

    Attributes
    ----------
    lower, upper
        The smallest and largest difference compatible with the answers; equal if the difference is exact.
    low, high
        The interval of the difference; nan if the answers do not vary.
    t, p, adjusted_p
        The statistic, 0 if the bounds include 0; the two-sided p-value, and Holm's for the whole array; nan if the
        answers do not vary.
    stderr, df
        (2, ...) the standard errors of `lower` and `upper`, nan if the answers do not vary; degrees of freedom.
    """

    lower: FloatArray
    upper: FloatArray
    low: FloatArray
    high: FloatArray
    t: FloatArray
    p: FloatArray
    adjusted_p: FloatArray
    stderr: FloatArray
    df: int

    def at(self, confidence: float) -> Differences:
        """Return the same differences with intervals of another confidence, without resampling."""
        with np.errstate(all="ignore"):
            below, above = t_quantile(self.df, confidence) * self.stderr
        return replace(self, low=self.lower - below, high=self.upper + above)


@dataclass(frozen=True, eq=False, kw_only=True)
class CriticComparison:
    """Differences between two kinds of critics on the cases that both have seen.

    Attributes
    ----------
    disagreement
        (groups, K) the differences of their rates of disagreement with each label.
    gaps
        (metrics,) the differences of the gaps.
    metrics
        The metrics.
    cases, critics
        The number of shared cases, and the critics of either kind who saw one.
    df
        Degrees of freedom of the tests: one less than the smallest of the three numbers.
    """

    disagreement: Differences
    gaps: Differences
    metrics: tuple[FeedbackMetric, ...]
    cases: int
    critics: tuple[int, int]
    df: int

    def at(self, confidence: float) -> CriticComparison:
        """Return the same comparison with intervals of another confidence, without resampling."""
        return replace(self, disagreement=self.disagreement.at(confidence), gaps=self.gaps.at(confidence))


class TooFewSharedError(DataError):
    """Two kinds of critics share too few cases, or too few critics have seen a shared case."""

    def __init__(self, cases: int, critics: tuple[int, int]) -> None:
        self.cases, self.critics = cases, critics
        super().__init__(
            "a comparison needs two cases that both kinds of critics have seen, and two critics of each kind who saw "
            "one; got {cases} cases, and {first} and {second} critics.",
            cases=cases,
            first=critics[0],
            second=critics[1],
        )


def compare_critics(
    answers: Answers,
    kind: IntArray,
    first: int = 0,
    second: int = 1,
    *,
    rng: Generator,
    metrics: Sequence[FeedbackMetric] = (*DEFINITE[1:], *INDEFINITE),
    draws: int = 2_000,
    confidence: float = 0.95,
) -> CriticComparison:
    """Return the differences between two kinds of critics, with tests.

    Only cases that both kinds have seen count, and each counts equally for both: an answer has the weight 1 / (answers
    of its kind on its case). Critics are resampled within their kind and cases for both at once, so common variation
    cancels. The test is Student's t of a difference over its standard error (see `CrossedDraws`). For a difference
    known only up to bounds, the bound nearer to 0 is tested, and nothing is rejected if 0 lies between the bounds. The
    gap of the kind with fewer critics is noisier and therefore tends to be larger; the rates have no such bias.

    Parameters
    ----------
    answers
        The answers.
    kind
        (critics,) the kind of each critic, a code from 0.
    first, second
        The two kinds to compare.
    rng
        Source of randomness.
    metrics
        The metrics whose gaps are compared. A gap that equals another metric's is not counted twice in Holm's
        adjustment.
    draws
        Number of resamples.
    confidence
        Two-sided confidence of the intervals.

    References
    ----------
    S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6.
    A. C. Cameron, J. B. Gelbach and D. L. Miller (2011), Robust inference with multiway clustering, Journal of Business
    and Economic Statistics 29.

    Examples
    --------
    >>> seed = np.random.default_rng(0)
    >>> critic, case = np.repeat(np.arange(40), 20), np.arange(800) % 100
    >>> group, label, kind = np.arange(100) % 2, np.arange(100) // 2 % 2, np.arange(40) // 20
    >>> bothered = (kind[critic] == 1) & (group[case] == 1)  # the second kind disagrees more about group 1
    >>> disagree = (seed.random(800) < np.where(bothered, 0.5, 0.1)).astype(int)
    >>> found = compare_critics(
    ...     Answers(
    ...         critic=critic,
    ...         case=case,
    ...         answer=disagree,
    ...         group=group,
    ...         label=label,
    ...         groups=2,
    ...         critics=40,
    ...         feedback=Feedback(2),
    ...     ),
    ...     kind,
    ...     rng=seed,
    ... )
    >>> found.disagreement.lower.round(2)
    array([[ 0.03,  0.03],
           [-0.43, -0.47]])
    >>> found.disagreement.adjusted_p < 0.05
    array([[False, False],
           [ True,  True]])
    """
    shared, kinds = _shared(answers, kind, (first, second))
    counts = np.bincount(kinds, minlength=2)
    df = int(min(*counts, shared.cases)) - 1
    if df < 1:
        raise TooFewSharedError(shared.cases, (int(counts[0]), int(counts[1])))
    columns = partial(_columns, answers.feedback, tuple(metrics))
    drawn = crossed_draws(shared, columns, rng=rng, draws=draws, kind=kinds)
    cells, number = answers.groups * answers.feedback.labels, len(metrics)
    rate, lower, upper = (drawn.part(slice(*ends)) for ends in ((0, cells), (cells, -number), (-number, None)))
    shape = answers.groups, answers.feedback.labels
    disagreement = _tested(rate, rate, np.arange(cells).reshape(shape), df, confidence)
    gap_of_metric = [same_gap(metric, answers.feedback.labels) for metric in metrics]
    family = np.array([gap_of_metric.index(metric) for metric in gap_of_metric], dtype=np.int64)
    gaps = _tested(lower, upper, family, df, confidence)
    return CriticComparison(
        disagreement=disagreement,
        gaps=gaps,
        metrics=tuple(metrics),
        cases=shared.cases,
        critics=(int(counts[0]), int(counts[1])),
        df=df,
    )


def _shared(answers: Answers, kind: IntArray, pair: tuple[int, int]) -> tuple[Answers, IntArray]:
    """Return the answers of two kinds of critics on the cases seen by both, and the kinds coded 0 and 1."""
    side = np.where(kind == pair[0], 0, np.where(kind == pair[1], 1, -1))[answers.critic]
    position = side * answers.cases + answers.case
    weight = np.ones(side.size) if answers.weight is None else answers.weight
    total = np.bincount(position[side >= 0], weights=weight[side >= 0], minlength=2 * answers.cases)
    by_both = np.minimum(total[: answers.cases], total[answers.cases :]) > 0
    keep = (side >= 0) & by_both[answers.case]
    equal = np.divide(weight, total[position], out=np.zeros(side.size), where=keep)
    shared = replace(answers, weight=equal).where(keep)
    return shared, np.asarray(kind[numbered(answers.critic[keep], kind.size)[0]] == pair[1], dtype=np.int64)


def _columns(feedback: Feedback, metrics: tuple[FeedbackMetric, ...], masses: FloatArray) -> FloatArray:
    """Return the differences of all disagreement rates, then lower and upper bounds of the gaps' differences."""
    agreed = rates(masses, feedback, "tolerant_calibration").lower
    rate = agreed[..., 1, :, :] - agreed[..., 0, :, :]
    gap_of_metric = [same_gap(metric, feedback.labels) for metric in metrics]
    gaps = {metric: gap(masses, feedback, metric) for metric in set(gap_of_metric)}
    lower = [gaps[metric].lower[..., 0] - gaps[metric].upper[..., 1] for metric in gap_of_metric]
    upper = [gaps[metric].upper[..., 0] - gaps[metric].lower[..., 1] for metric in gap_of_metric]
    return np.concatenate([rate.reshape(*rate.shape[:-2], -1), np.stack([*lower, *upper], axis=-1)], axis=-1)


def _tested(lower: CrossedDraws, upper: CrossedDraws, family: IntArray, df: int, confidence: float) -> Differences:
    """Return the differences with intervals and tests; tests of one family number share a p-value."""
    from scipy.special import stdtr

    shape = family.shape
    ends = [draws.both.estimate.reshape(shape) for draws in (lower, upper)]
    stderr = [draws.stderr().reshape(shape) for draws in (lower, upper)]
    varies = np.maximum(stderr[0], stderr[1]) > ROUNDING  # otherwise the error is unknown
    with np.errstate(all="ignore"):
        t = np.maximum(np.fmax(ends[0] / stderr[0], -ends[1] / stderr[1]), 0.0)
        t = np.where(varies & np.isfinite(t), t, np.nan)
        p = 2.0 * stdtr(float(df), -t)
    first = np.unique(family)
    adjusted = np.full(family.size, np.nan)
    adjusted[first] = adjusted_p(p.ravel()[first])
    sign = np.where(ends[1] < 0, -1.0, 1.0)
    return Differences(
        lower=ends[0],
        upper=ends[1],
        low=np.full(shape, np.nan),
        high=np.full(shape, np.nan),
        t=sign * t,
        p=np.asarray(p, dtype=np.float64),
        adjusted_p=adjusted[family],
        stderr=np.where(varies, np.stack(stderr), np.nan),
        df=df,
    ).at(confidence)
