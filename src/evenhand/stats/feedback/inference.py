"""Confidence intervals of gaps that allow for incomplete answers and sampled critics and cases.

`plan_answers` computes the number of additional answers that would narrow such an interval to a target width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator

from evenhand.errors import ConfigError, EvenhandError, require_choice
from evenhand.stats.draws import Draws
from evenhand.stats.feedback.answers import Answers, Feedback
from evenhand.stats.feedback.crossed import CrossedDraws, MassStatistic, Resampled, crossed_bootstrap, crossed_draws
from evenhand.stats.feedback.gaps import FeedbackGap, differences, gap, same_gap, smallest_gaps
from evenhand.stats.feedback.limits import ROUNDING, critical_values, effective_sizes, slacks
from evenhand.stats.feedback.metrics import BY_LABEL, INDEFINITE, Bounds, FeedbackMetric, rates
from evenhand.stats.intervals import normal_quantile, t_quantile, tail_share
from evenhand.stats.types import FloatArray

GapMethod = Literal["cells", "bounds"]
GAP_METHODS: tuple[GapMethod, ...] = get_args(GapMethod)
Hurdle = Literal["open", "cases", "no_interval"]
_MOST = 1e6
_LEAST_ALPHA, _HALVINGS = 1e-12, 40


@dataclass(frozen=True, eq=False, kw_only=True)
class GapInterval:
    """A gap with an interval that covers the true gap anywhere between its bounds.

    Attributes
    ----------
    gap
        The gap in the sample.
    low, high
        The limits, from 0 to 1; nan if the answers do not vary or the gap is undefined in too many resamples.
    stderr
        (2,) the standard errors of the lower and the upper bound.
    components
        (3, 2) the variance components of critics, cases and single answers in the two bounds; None unless both are
        resampled.
    below, above
        The distances from the bounds to the limits outside them, before clipping to 0 and 1.
    p_value
        The smallest alpha at which the interval of confidence 1 - alpha excludes 0; nan without limits.
    limits
        The data to recompute the limits; None if they exist for one confidence only.
    """

    gap: FeedbackGap
    low: float
    high: float
    stderr: FloatArray
    components: FloatArray | None
    below: float
    above: float
    p_value: float = float("nan")
    limits: GapLimits | None = field(default=None, repr=False)

    def at(self, confidence: float) -> GapInterval:
        """Return the same gap with limits at another confidence, without resampling."""
        if self.limits is None:
            raise EvenhandError("`at` needs an interval that `gap_intervals` has returned.")
        low, high = self.limits.at(confidence)
        below, above = float(self.gap.lower) - low, high - float(self.gap.upper)
        low, high = (float(np.clip(limit, 0.0, 1.0)) for limit in (low, high))
        return replace(self, low=low, high=high, below=below, above=above)


def gap_intervals(
    answers: Answers,
    metrics: Sequence[FeedbackMetric],
    *,
    rng: Generator,
    draws: int = 2_000,
    pair_draws: int | None = None,
    resampled: Resampled = "both",
    confidence: float = 0.95,
    bounds: Bounds = "sharp",
    method: GapMethod = "cells",
) -> dict[FeedbackMetric, GapInterval]:
    """Return the gaps of several metrics with intervals, from one bootstrap of critics and cases.

    Parameters
    ----------
    answers
        The answers, of at least two groups.
    metrics
        Some of `METRICS`.
    rng
        Source of randomness.
    draws
        Number of resamples.
    pair_draws
        Number of resamples for the slow search for the smallest gap of each pair; `draws` if None.
    resampled
        'both' critics and cases, 'critics' if the cases are the whole population of interest, or 'cases'.
    confidence
        The probability of covering the true gap.
    bounds
        'sharp' or 'published', see `rates`. Published bounds have the method 'bounds' only.
    method
        'cells' or 'bounds', see Notes.

    Notes
    -----
    'bounds' is the interval of `set_interval` for the two bounds of the gap. But a gap is the largest of several noisy
    differences, so its estimate and its interval are too high, above all if groups are treated equally. 'cells' uses
    the differences themselves. The gap is at most max (d_j + c_u se_j) over the largest difference d_j of each ordered
    pair and label, with Stoye's c_u. It is at least max (d_j - q se_j) over the m smallest differences and smallest
    gaps of pairs, with q the quantile of Student's t at 1 - alpha / m (Bonferroni): the lower side may use all of
    alpha, because an interval cannot lie below a gap of 0; far from 0 only half of the m differences, of one sign, come
    near the gap. Degrees of freedom are one less than the smaller number of critics or cases; and a rate of 0 or 1 has
    the exact limits of a proportion (`slacks`), since resampling shows no error there. A mass of 0 in the sample does
    not prove that it is 0 (`closed` in `rates`). A difference that is undefined in more than 5 % of the resamples is
    unrestricted: the high limit is then 1.

    References
    ----------
    V. Chernozhukov, S. Lee and A. M. Rosen (2013), Intersection bounds: estimation and inference, Econometrica 81.
    J. Stoye (2009), More on confidence intervals for partially identified parameters, Econometrica 77.

    Examples
    --------
    >>> seed = np.random.default_rng(0)
    >>> critic, case = np.repeat(np.arange(40), 20), np.arange(800) % 100  # 40 critics, 20 cases each
    >>> group, label = np.arange(100) % 2, np.arange(100) // 2 % 2
    >>> disagree = (seed.random(800) < np.array([0.1, 0.5])[group[case]]).astype(int)
    >>> answers = Answers(
    ...     critic=critic,
    ...     case=case,
    ...     answer=disagree,
    ...     group=group,
    ...     label=label,
    ...     groups=2,
    ...     critics=40,
    ...     feedback=Feedback(2),
    ... )
    >>> found = gap_intervals(answers, ["calibration"], rng=seed)["calibration"]
    >>> round(float(found.gap.estimate), 2), round(found.low, 2), round(found.high, 2)
    (0.47, 0.38, 0.55)
    """
    require_choice("method", method, GAP_METHODS)
    feedback, masses = answers.feedback, answers.masses()
    gap_of_metric = {metric: same_gap(metric, feedback.labels) if bounds == "sharp" else metric for metric in metrics}
    distinct = tuple(dict.fromkeys(gap_of_metric.values()))
    searched = tuple(metric for metric in distinct if _sizes(feedback, metric, bounds, answers.groups)[1])
    every = _drawn(answers, partial(_columns, feedback, distinct, bounds, False), resampled, rng, draws)
    few = every
    if searched:
        few = _drawn(answers, partial(_columns, feedback, searched, bounds, True), resampled, rng, pair_draws or draws)
    parts: dict[FeedbackMetric, _Columns] = {}
    start = start_of_few = 0
    for metric in distinct:
        differing, pairs = _sizes(feedback, metric, bounds, answers.groups)
        differences = part = every.part(slice(start, start + differing))
        if pairs:
            part = few.part(slice(start_of_few, start_of_few + differing + pairs))
            start_of_few += differing + pairs
        cells = rates(masses, feedback, metric, bounds=bounds, closed=True)
        published = bounds == "published" and metric in INDEFINITE
        sizes, df = effective_sizes(answers, metric, resampled), _freedom(answers, resampled)
        parts[metric] = _Columns(part, differences.stderr(), published, partial(slacks, cells, sizes), df)
        start += differing
    return {
        metric: _interval(
            gap(masses, feedback, metric, bounds=bounds), parts[gap_of_metric[metric]], confidence, method
        )
        for metric in metrics
    }


@dataclass(frozen=True)
class _Columns:
    """The draws of one metric: the largest differences, then the smallest gaps of pairs of groups.

    `differences` are the standard errors of the differences, which may rest on more draws; `slack` returns the slacks
    of the differences at a tail; `df` are the degrees of freedom.
    """

    draws: Draws | CrossedDraws
    differences: FloatArray
    published: bool
    slack: Callable[[float], FloatArray]
    df: float

    @property
    def differing(self) -> int:
        """The number of differences."""
        return self.differences.size

    def ends(self, columns: FloatArray) -> FloatArray:
        """Return (..., 2) the lower and upper bounds of the gap."""
        largest, pairs = columns[..., : self.differing], columns[..., self.differing :]
        upper, lower = np.fmax.reduce(largest, axis=-1), np.fmax.reduce(-largest, axis=-1)
        if not self.published:
            lower = np.minimum(np.maximum(lower, pairs.max(axis=-1, initial=0.0)), upper)
        return np.stack([lower, upper], axis=-1)

    def limits(self, ends: Draws, ends_stderr: FloatArray, method: GapMethod) -> GapLimits:
        """Return the data for limits, from the draws and the standard errors of the two bounds."""
        both = self.draws.both if isinstance(self.draws, CrossedDraws) else self.draws
        return GapLimits(
            ends=ends.estimate,
            ends_stderr=ends_stderr,
            correlation=_correlation(ends.values),
            estimate=both.estimate,
            stderr=np.append(self.differences, self.draws.stderr()[self.differing :]),
            differing=self.differing,
            slack=self.slack,
            df=self.df,
            plain=method == "bounds" or self.published,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class GapLimits:
    """The data needed to compute a gap's limits at any confidence, without the draws.

    Attributes
    ----------
    ends, ends_stderr, correlation
        (2,) the bounds of the gap, their standard errors and their correlation.
    estimate, stderr
        The largest differences, then the smallest gaps of pairs, and their standard errors.
    differing
        The number of differences.
    slack
        Returns the slacks of the differences at a tail.
    df
        Degrees of freedom.
    plain
        Whether the limits use only the two bounds.
    """

    ends: FloatArray
    ends_stderr: FloatArray
    correlation: float
    estimate: FloatArray
    stderr: FloatArray
    differing: int
    slack: Callable[[float], FloatArray]
    df: float
    plain: bool

    def at(self, confidence: float) -> tuple[float, float]:
        """Return the unclipped limits of the gap; nan if its standard error is unknown."""
        lower, upper, lower_stderr, upper_stderr = (float(x) for x in (*self.ends, *self.ends_stderr))
        c_low, c_high = critical_values(
            lower,
            upper,
            lower_stderr=lower_stderr,
            upper_stderr=upper_stderr,
            correlation=self.correlation,
            confidence=confidence,
        )
        usable = not self.plain and bool(np.isfinite([upper, *self.ends_stderr]).all())
        if np.isnan(c_low) and usable and self.slack(0.5).any():
            c_low = c_high = normal_quantile(confidence)  # nothing varies: all agree or all disagree
        if np.isnan(c_low):
            return (0.0, 1.0) if lower <= 0 and upper >= 1 else (float("nan"), float("nan"))
        if self.plain:
            student = self._student(confidence)
            return lower - c_low * student * lower_stderr, upper + c_high * student * upper_stderr
        return self._least(confidence), self._largest(c_high, confidence)

    def p_value(self) -> float:
        """Return the smallest alpha at which the lower limit is above 0; nan if there are no limits."""
        if np.isnan(self.at(0.95)[0]):
            return float("nan")
        return _least_alpha((lambda confidence: self.at(confidence)[0]) if self.plain else self._least)

    def _student(self, confidence: float) -> float:
        """Return the ratio of Student's t quantile to the normal quantile."""
        return float(t_quantile(self.df, confidence)) / normal_quantile(confidence)

    def _largest(self, c_high: float, confidence: float) -> float:
        """Return the upper limit: the largest of the differences' separate upper limits."""
        largest, spread = self.estimate[: self.differing], self.stderr[: self.differing]
        reach = np.hypot(self._student(confidence) * c_high * spread, self.slack(tail_share(confidence)))
        return float(np.where(np.isnan(spread), 1.0, largest + reach)[~np.isnan(largest)].max())

    def _least(self, confidence: float) -> float:
        """Return the lower limit: the largest of the joint lower limits of the smallest differences."""
        smallest = np.append(-self.estimate[: self.differing], self.estimate[self.differing :])
        alpha = 2.0 * tail_share(confidence)
        slack = np.append(self.slack(alpha / (2 * self.differing)), np.zeros(self.estimate.size - self.differing))
        sure = ((self.stderr > ROUNDING) | (slack > 0)) & ~np.isnan(
            self.stderr + smallest
        )  # otherwise the error is unknown
        if not sure.any():
            return 0.0
        q = float(t_quantile(self.df, 1.0 - 2.0 * alpha / max(int(sure.sum()), 2)))
        return float((smallest - np.hypot(q * self.stderr, slack))[sure].max())


def _freedom(answers: Answers, resampled: Resampled) -> float:
    """Return the degrees of freedom: one less than the smaller number of resampled critics or cases."""
    sizes = {"critics": answers.critics, "cases": answers.cases, "both": min(answers.critics, answers.cases)}
    return float(max(sizes[resampled] - 1, 1))


def _sizes(feedback: Feedback, metric: FeedbackMetric, bounds: Bounds, groups: int) -> tuple[int, int]:
    """Return the numbers of columns that `_columns` gives a metric: for differences, and for smallest gaps."""
    depends = metric in INDEFINITE and bounds == "sharp" and feedback.kind != "label" and feedback.labels > 2
    ordered = groups * (groups - 1)
    columns = ordered * (feedback.labels if metric in BY_LABEL else 1)
    return columns, ordered // 2 if depends and not feedback.tolerance else 0


def _drawn(
    answers: Answers, statistic: MassStatistic, resampled: Resampled, rng: Generator, draws: int
) -> Draws | CrossedDraws:
    """Return the draws of a statistic for the requested kind of resampling."""
    if resampled == "both":
        return crossed_draws(answers, statistic, rng=rng, draws=draws)
    return crossed_bootstrap(answers, statistic, rng=rng, draws=draws, resampled=resampled)


def _columns(
    feedback: Feedback, metrics: tuple[FeedbackMetric, ...], bounds: Bounds, search: bool, masses: FloatArray
) -> FloatArray:
    """Return the largest differences of pairs and labels by metric, and with `search` each pair's smallest gap."""
    mass = masses[..., 0, :, :, :]
    columns = []
    for metric in metrics:
        columns.append(differences(rates(mass, feedback, metric, bounds=bounds, closed=True)))
        if search and _sizes(feedback, metric, bounds, mass.shape[-3])[1]:
            columns.append(smallest_gaps(mass, feedback, metric, closed=True))
    return np.concatenate(columns, axis=-1)


def _interval(in_sample: FeedbackGap, columns: _Columns, confidence: float, method: GapMethod) -> GapInterval:
    with np.errstate(all="ignore"):
        if isinstance(columns.draws, CrossedDraws):
            crossed = columns.draws.map(columns.ends)
            ends, stderr, components = crossed.both, crossed.stderr(), crossed.components()
        else:
            ends = Draws(columns.ends(columns.draws.estimate), columns.ends(columns.draws.values))
            stderr, components = ends.stderr(), None
    limits, unknown = columns.limits(ends, stderr, method), float("nan")
    interval = GapInterval(
        gap=in_sample,
        low=unknown,
        high=unknown,
        stderr=stderr,
        components=components,
        below=unknown,
        above=unknown,
        p_value=limits.p_value(),
        limits=limits,
    )
    return interval.at(confidence)


def _least_alpha(lowest: Callable[[float], float]) -> float:
    """Return the smallest alpha at which the lower limit of confidence 1 - alpha is above 0."""
    least, most = math.log(_LEAST_ALPHA), 0.0
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        least, most = (least, middle) if lowest(1.0 - math.exp(middle)) > 0 else (middle, most)
    return math.exp(most)


def _correlation(ends: FloatArray) -> float:
    """Return the correlation of the two bounds over draws where both are defined; 0 if one is constant."""
    complete = ends[~np.isnan(ends).any(axis=1)]
    if len(complete) < 2:
        return 0.0
    centred = complete - complete.mean(axis=0)
    spread = float(np.sqrt((centred**2).sum(axis=0).prod()))
    return float(np.clip(centred.prod(axis=1).sum() / spread, -1.0, 1.0)) if spread > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class AnswerPlan:
    """Numbers of additional critics, cases and answers that a narrower interval needs.

    Attributes
    ----------
    width
        The desired width of the interval.
    now
        Its present width.
    least
        The smallest width that any number of critics can reach.
    critics, cases, answers
        The additional numbers needed with the present design, 0 if the interval is narrow enough; None if the width
        cannot be reached.
    hurdle
        Why the width cannot be reached: 'open' if the bounds alone are wider, with any number of critics; 'cases' if
        only new cases would help, not more critics on the same cases; 'no_interval' if there is no interval yet. None
        if the width can be reached.
    """

    width: float
    now: float
    least: float
    critics: int | None
    cases: int | None
    answers: int | None
    hurdle: Hurdle | None


def plan_answers(interval: GapInterval, answers: Answers, width: float, *, new_cases: bool = True) -> AnswerPlan:
    """Return the numbers of additional critics, cases and answers that narrow a gap's interval to a width.

    With f times the critics, each answering as many cases as now, the variance of a bound is critics / f + cases / g +
    answers / f, where g = f if the cases increase too and g = 1 if they stay the same, and the three parts are those of
    the crossed bootstrap. The limits move towards the bounds as the standard errors do. The distance between the bounds
    does not shrink with more answers.

    Parameters
    ----------
    interval
        The present interval, with critics and cases both resampled.
    answers
        Its answers.
    width
        The desired width, above 0.
    new_cases
        Whether new critics come with new cases, so that the number of critics per case stays the same; otherwise they
        see the same cases.

    Examples
    --------
    >>> from evenhand.stats.feedback import Feedback, gap_intervals
    >>> seed = np.random.default_rng(0)
    >>> critic, case = np.repeat(np.arange(40), 20), np.arange(800) % 100
    >>> group, label = np.arange(100) % 2, np.arange(100) // 2 % 2
    >>> disagree = (seed.random(800) < np.array([0.1, 0.5])[group[case]]).astype(int)
    >>> answers = Answers(
    ...     critic=critic,
    ...     case=case,
    ...     answer=disagree,
    ...     group=group,
    ...     label=label,
    ...     groups=2,
    ...     critics=40,
    ...     feedback=Feedback(2),
    ... )
    >>> found = gap_intervals(answers, ["calibration"], rng=seed)["calibration"]
    >>> plan = plan_answers(found, answers, width=0.1)
    >>> round(plan.now, 3), plan.critics, plan.cases, plan.answers
    (0.177, 85, 213, 1700)
    """
    if not width > 0:
        raise ConfigError("`width` must be above 0; got {width!r}.", width=width)
    if interval.components is None:
        raise ConfigError("`interval` must come from resampling both critics and cases; set `resampled` to 'both'.")
    unknown = float("nan")
    plan = AnswerPlan(
        width=width, now=unknown, least=unknown, critics=None, cases=None, answers=None, hurdle="no_interval"
    )
    if np.isnan(interval.low):
        return plan
    now, least = (_width(interval, factor, new_cases) for factor in (1.0, math.inf))
    plan = replace(plan, now=now, least=least)
    if now <= width:
        return replace(plan, critics=0, cases=0, answers=0, hurdle=None)
    if _width(interval, _MOST, new_cases) > width:
        still_open = _width(interval, math.inf, new_cases=True) >= width
        return replace(plan, hurdle="open" if still_open else "cases")
    factor = _least_factor(interval, width, new_cases)
    critics = math.ceil(answers.critics * factor - 1e-9) - answers.critics
    cases = math.ceil(answers.cases * factor - 1e-9) - answers.cases if new_cases else 0
    new_answers = math.ceil(critics * (len(answers.answer) / answers.critics))
    return replace(plan, critics=critics, cases=cases, answers=new_answers, hurdle=None)


def _least_factor(interval: GapInterval, width: float, new_cases: bool) -> float:
    low, high = 0.0, math.log(_MOST)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _width(interval, math.exp(middle), new_cases) <= width else (middle, high)
    return math.exp(high)


def _width(interval: GapInterval, factor: float, new_cases: bool) -> float:
    """Return the width of the interval with `factor` times the critics, whose bounds have smaller errors."""
    assert interval.components is not None  # noqa: S101 -- checked by the caller
    critics, cases, single = interval.components
    total = critics + cases + single
    variance = (critics + single) / factor + cases / (factor if new_cases else 1.0)
    lower, upper = np.sqrt(np.divide(variance, total, out=np.full(2, 1.0 / factor), where=total > 0)).tolist()
    low = max(float(interval.gap.lower) - interval.below * lower, 0.0)
    return float(min(float(interval.gap.upper) + interval.above * upper, 1.0) - low)
