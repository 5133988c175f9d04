"""Rates of groups and gaps between groups, with bounds and intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from evenhand.audits.disagreement.groups import AnswerSet, Resampling, resampling_of
from evenhand.audits.disagreement.messages import say
from evenhand.audits.disagreement.result import AnswerPlan, DisagreementGap, DisagreementValue
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.estimates import Estimate
from evenhand.core.records import OK
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.draws import Draws
from evenhand.stats.feedback import (
    DEFINITE,
    INDEFINITE,
    TOLERANT,
    Bounds,
    CrossedDraws,
    Feedback,
    FeedbackGap,
    FeedbackMetric,
    GapInterval,
    Rates,
    UndefinedRate,
    crossed_bootstrap,
    crossed_draws,
    gap,
    gap_intervals,
    plan_answers,
    rates,
    same_gap,
    set_interval,
)
from evenhand.stats.types import FloatArray, IntArray

NEW_CASES, SAME_CASES = "new cases", "same cases"
NO_SPREAD = shared("no_interval", why=say("no_spread"))
_SELDOM = shared("no_interval", why=say("seldom"))
_UNDEFINED = {
    UndefinedRate.NO_ANSWERS: say("no_answers"),
    UndefinedRate.LABEL_NEVER_GIVEN: say("never_given"),
    UndefinedRate.NO_CRITIC_LABEL: say("no_critic_label"),
    UndefinedRate.NO_OTHER_LABEL: say("no_other_label"),
    UndefinedRate.UNSTATED: say("unstated"),
}
_HURDLES = {
    "open": say("not_reachable", why=say("left_open")),
    "cases": say("not_reachable", why=say("same_cases_not_enough")),
    "no_interval": shared("no_interval", why=say("nothing_to_narrow")),
}


# Rates ----------------------------------------------------------------------------------------------------------------


def value_records(
    heard: AnswerSet, metrics: Sequence[FeedbackMetric], spec: DisagreementSpec
) -> Iterator[DisagreementValue]:
    """Yield every rate as seen by a set of critics."""
    answers, masses = heard.answers, heard.answers.masses()
    counts = np.bincount(
        answers.stratum[answers.case], minlength=answers.groups * answers.feedback.labels
    )  # regardless of the weights
    every_limits = _rate_limits(heard, metrics, resampling_of(answers, spec, 1), spec)
    for metric, limits in zip(metrics, every_limits, strict=True):
        own_labels = heard.truth_for(metric)
        truth = None if own_labels is None else rates(own_labels.masses(), own_labels.feedback, metric).lower
        group_rates = rates(masses, answers.feedback, metric, bounds=spec.bounds)
        yield from _value_records(heard, group_rates, counts.reshape(answers.groups, -1), limits, truth)


def _value_records(
    heard: AnswerSet,
    group_rates: Rates,
    counts: IntArray,
    limits: tuple[FloatArray, FloatArray],
    truth: FloatArray | None,
) -> Iterator[DisagreementValue]:
    for cell in np.ndindex(group_rates.lower.shape):
        group, label = cell
        lower, upper, low, high = (finite(float(x[cell])) for x in (group_rates.lower, group_rates.upper, *limits))
        yield DisagreementValue(
            grouping=heard.grouping,
            group=heard.groups[group],
            metric=group_rates.metric,
            n=int(counts[cell] if group_rates.metric.endswith("calibration") else counts[group].sum()),
            value=middle(lower, upper),
            low=low,
            high=high,
            status=_rate_status(UndefinedRate(int(group_rates.reason[cell])), float(limits[0][cell])),
            label=heard.labels[label] if group_rates.by_label else None,
            stakeholder=heard.stakeholder,
            lower=lower,
            upper=upper,
            truth=None if truth is None else finite(float(truth[cell])),
        )


def middle(lower: float | None, upper: float | None) -> float | None:
    """Return the middle of two bounds; it is exact if they are equal."""
    return None if lower is None or upper is None else (lower + upper) / 2


def _rate_status(reason: UndefinedRate, limit: float) -> Message:
    if reason is not UndefinedRate.DEFINED:
        return shared("undefined", why=_UNDEFINED[reason])
    if np.isfinite(limit):
        return OK
    return _SELDOM if np.isinf(limit) else NO_SPREAD


def _rate_limits(
    heard: AnswerSet, metrics: Sequence[FeedbackMetric], plan: Resampling, spec: DisagreementSpec
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the limits of each metric's rates (groups, labels): nan without variation, infinite if unknown."""
    answers = heard.answers
    statistic = partial(_rate_ends, answers.feedback, tuple(metrics), spec.bounds)
    drawn: Draws | CrossedDraws
    if plan.resampled == "both":
        drawn = crossed_draws(answers, statistic, rng=plan.rng, draws=plan.draws)
    else:
        drawn = crossed_bootstrap(answers, statistic, rng=plan.rng, draws=plan.draws, resampled=plan.resampled)
    values = drawn.both if isinstance(drawn, CrossedDraws) else drawn
    stderr = drawn.stderr()
    half = stderr.size // 2
    ends = [_rate_interval(values.estimate[[i, half + i]], stderr[[i, half + i]], spec.confidence) for i in range(half)]
    limits, start, masses = np.array(ends).reshape(half, 2), 0, answers.masses()
    for metric in metrics:
        shape = rates(masses, answers.feedback, metric, bounds=spec.bounds).lower.shape
        stop = start + int(np.prod(shape))
        yield limits[start:stop, 0].reshape(shape), limits[start:stop, 1].reshape(shape)
        start = stop


def _rate_ends(
    feedback: Feedback, metrics: tuple[FeedbackMetric, ...], bounds: Bounds, masses: FloatArray
) -> FloatArray:
    """Return the lower bounds of all rates, and then the upper bounds."""
    every = [rates(masses[..., 0, :, :, :], feedback, metric, bounds=bounds, closed=True) for metric in metrics]
    lowers = [metric_rates.lower.reshape(*metric_rates.lower.shape[:-2], -1) for metric_rates in every]
    uppers = [metric_rates.upper.reshape(*metric_rates.upper.shape[:-2], -1) for metric_rates in every]
    return np.concatenate([*lowers, *uppers], axis=-1)


def _rate_interval(ends: FloatArray, stderr: FloatArray, confidence: float) -> tuple[float, float]:
    """Return the Imbens-Manski limits of one rate, on the logit scale so that they stay in (0, 1).

    The limits are -inf and inf if the rate is undefined in too many resamples, and nan if it does not vary.
    """
    lower, upper = (float(end) for end in ends)
    if np.isnan(lower):
        return float("nan"), float("nan")
    if np.isnan(stderr).any():
        return float("-inf"), float("inf")
    plain = set_interval(
        lower, upper, float(stderr[0]), float(stderr[1]), confidence=confidence, method="imbens_manski"
    )
    if np.isnan(plain.below):
        return plain.low, plain.high
    return _shift_logit(lower, -plain.below * float(stderr[0])), _shift_logit(upper, plain.above * float(stderr[1]))


def _shift_logit(rate: float, by: float) -> float:
    """Return a rate shifted on the logit scale; rates of 0 and 1 are unchanged."""
    if not 0.0 < rate < 1.0:
        return rate
    odds = rate / (1.0 - rate) * float(np.exp(np.clip(by / (rate * (1.0 - rate)), -500.0, 500.0)))
    return odds / (1.0 + odds)


# Gaps -----------------------------------------------------------------------------------------------------------------


def gap_estimates(
    heard: AnswerSet, metrics: Sequence[FeedbackMetric], spec: DisagreementSpec
) -> tuple[list[Estimate[DisagreementGap]], dict[FeedbackMetric, GapInterval]]:
    """Return the gaps and their intervals, or undefined gaps with the reason."""
    why = heard.why_not_compared(spec.min_count)
    if why is not None:
        undefined = [undefined_gap(heard, metric, heard.n, why, spec.bounds) for metric in metrics]
        return [_constant_estimate(record) for record in undefined], {}
    plan = resampling_of(heard.answers, spec, 2)
    intervals = gap_intervals(
        heard.answers,
        metrics,
        rng=plan.rng,
        draws=plan.draws,
        pair_draws=plan.pair_draws,
        resampled=plan.resampled,
        confidence=spec.confidence,
        bounds=spec.bounds,
    )
    observed = observed_gaps(heard.answers.masses(), heard.answers.feedback, metrics, spec.bounds)
    estimates = [_gap_estimate(heard, observed[metric], interval, spec) for metric, interval in intervals.items()]
    return estimates, intervals


def _constant_estimate(record: DisagreementGap) -> Estimate[DisagreementGap]:
    """Return an estimate with the same record at every confidence."""
    return Estimate(record, lambda _: record)


def _gap_estimate(
    heard: AnswerSet, observed: FeedbackGap, interval: GapInterval, spec: DisagreementSpec
) -> Estimate[DisagreementGap]:
    """Return one gap, with limits at any confidence from the same bootstrap."""
    own_labels, truth = heard.truth_for(observed.metric), None
    if own_labels is not None:
        truth = finite(float(gap(own_labels.masses(), own_labels.feedback, observed.metric).estimate))

    def record_at(confidence: float) -> DisagreementGap:
        bounds = interval.at(confidence)
        record = gap_record(heard, observed, heard.n, (bounds.low, bounds.high), spec.bounds)
        return replace(record, truth=truth, p_value=None if record.low is None else finite(interval.p_value))

    return Estimate(record_at(spec.confidence), record_at)


def observed_gaps(
    masses: FloatArray, feedback: Feedback, metrics: Sequence[FeedbackMetric], bounds: Bounds
) -> dict[FeedbackMetric, FeedbackGap]:
    """Return the gaps with lower bounds that are also valid for the critics' own labels.

    If no critic agrees with a label, critics may never have it in mind. Then its rate is undefined and not part of the
    gap, so the lower bound must not depend on it. The bound for a label with an arbitrarily small mass satisfies this.
    """
    gaps: dict[FeedbackMetric, FeedbackGap] = {}
    for metric in metrics:
        if metric == "overall_misclassification" and bounds == "sharp" and "equal_opportunity" in gaps:
            same = gaps["equal_opportunity"]  # 1 less the other rate: the same gap with the groups swapped
            gaps[metric] = replace(same, metric=metric, high=same.low, low=same.high)
            continue
        observed = gap(masses, feedback, metric, bounds=bounds)
        if metric in INDEFINITE and bounds == "sharp":
            observed = replace(
                observed, lower=np.fmin(observed.lower, gap(masses, feedback, metric, closed=True).lower)
            )
        gaps[metric] = observed
    return gaps


def gap_record(
    heard: AnswerSet, observed: FeedbackGap, n: int, limits: tuple[float, float], bounds: Bounds
) -> DisagreementGap:
    """Return the record of one gap."""
    lower, upper = finite(float(observed.lower)), finite(float(observed.upper))
    if upper is None:
        return undefined_gap(heard, observed.metric, n, say("no_common_label"), bounds)
    label, group, reference = (int(x) for x in (observed.label, observed.high, observed.low))
    low, high = (finite(limit) for limit in limits)
    return DisagreementGap(
        grouping=heard.grouping,
        group=heard.groups[group],
        reference=heard.groups[reference],
        metric=observed.metric,
        kind="difference",
        against="worst_pair",
        n=n,
        value=finite(float(observed.estimate)),
        low=low,
        high=high,
        status=NO_SPREAD if low is None else OK,
        label=None if label < 0 else heard.labels[label],
        stakeholder=heard.stakeholder,
        critics=len(heard.critics),
        lower=lower,
        upper=upper,
        identified=_identified(observed),
        sharp=observed.sharp,
        same_as=_same_as(observed.metric, len(heard.labels), bounds),
    )


def undefined_gap(heard: AnswerSet, metric: FeedbackMetric, n: int, why: Message, bounds: Bounds) -> DisagreementGap:
    """Return an undefined gap, with the reason."""
    return DisagreementGap(
        grouping=heard.grouping,
        metric=metric,
        kind="difference",
        against="worst_pair",
        n=n,
        value=None,
        status=shared("undefined", why=why),
        stakeholder=heard.stakeholder,
        critics=len(heard.critics),
        same_as=_same_as(metric, len(heard.labels), bounds),
    )


def _identified(observed: FeedbackGap) -> str:
    """Return the identification of a gap: 'definite', 'exact' or 'bounded'."""
    if not bool(observed.exact):
        return "bounded"
    return "definite" if observed.metric in (*DEFINITE, *TOLERANT) else "exact"


def same_gap_metric(metric: FeedbackMetric, labels: int, bounds: Bounds) -> FeedbackMetric:
    """Return the metric with the same gap under these bounds: the metric itself, or another."""
    return same_gap(metric, labels) if bounds == "sharp" else metric


def _same_as(metric: FeedbackMetric, labels: int, bounds: Bounds) -> FeedbackMetric | None:
    same = same_gap_metric(metric, labels, bounds)
    return None if same == metric else same


# More answers ---------------------------------------------------------------------------------------------------------


def plan_records(
    heard: AnswerSet, intervals: dict[FeedbackMetric, GapInterval], spec: DisagreementSpec
) -> Iterator[AnswerPlan]:
    """Yield the numbers of answers needed to narrow the intervals to the required width.

    Equal gaps appear only once.
    """
    target = spec.answers.target_width
    if target is None:
        return
    for metric, interval in intervals.items():
        if interval.components is None or same_gap_metric(metric, len(heard.labels), spec.bounds) != metric:
            continue
        for design in (NEW_CASES, SAME_CASES):
            plan = plan_answers(interval, heard.answers, target, new_cases=design == NEW_CASES)
            yield AnswerPlan(
                grouping=heard.grouping,
                metric=metric,
                design=design,
                target_width=target,
                width=finite(plan.now),
                least=finite(plan.least),
                critics=plan.critics,
                cases=plan.cases,
                answers=plan.answers,
                status=OK if plan.hurdle is None else _HURDLES[plan.hurdle],
            )
