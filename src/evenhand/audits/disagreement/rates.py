"""Rates of groups and labels with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from evenhand.audits.disagreement.gaps import NO_SPREAD, Place
from evenhand.audits.disagreement.groups import Voices
from evenhand.audits.disagreement.records import RateRecord
from evenhand.audits.disagreement.sampling import Resampling, resampling_of
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.numbers import finite
from evenhand.stats.bootstrap import Draws
from evenhand.stats.feedback import (
    Bounds,
    CrossedDraws,
    Feedback,
    Rates,
    Undefined,
    crossed_bootstrap,
    crossed_draws,
    rates,
    set_interval,
)
from evenhand.stats.feedback import (
    FeedbackMetric as Notion,
)
from evenhand.stats.types import FloatArray, IntArray

_REASONS = {
    Undefined.NO_ANSWERS: "nobody answered on the group",
    Undefined.LABEL_NEVER_GIVEN: "the label was never given to the group",
    Undefined.NO_CRITIC_LABEL: "no critic can have the label in mind",
    Undefined.NO_OTHER_LABEL: "no critic can have another label in mind",
    Undefined.UNSTATED: "the published bound is 0 / 0",
}
_SELDOM = "no interval: too few answers, undefined in more than 5% of the resamples"


def rates_of(
    voices: Voices, place: Place, notions: Sequence[Notion], spec: DisagreementSpec, *stream: int
) -> list[RateRecord]:
    """Return every rate of some critics."""
    answers, feedback = voices.answers, voices.answers.feedback
    masses = answers.masses()
    counts = _counts(voices)
    limits = _limits(voices, notions, resampling_of(answers, spec, *stream), spec)
    records = []
    for position, notion in enumerate(notions):
        found = rates(masses, feedback, notion, bounds=spec.bounds)
        own = voices.truth_for(notion)
        truth = None if own is None else rates(own.masses(), own.feedback, notion).lower
        records += _records(place, found, counts, limits[position], truth)
    return records


def _counts(voices: Voices) -> IntArray:
    """Return (groups, K) the number of answers, whatever their weights."""
    answers = voices.answers
    cells = answers.stratum[answers.case]
    return np.bincount(cells, minlength=answers.groups * answers.feedback.labels).reshape(answers.groups, -1)


def _records(
    place: Place, found: Rates, counts: IntArray, limits: tuple[FloatArray, FloatArray], truth: FloatArray | None
) -> list[RateRecord]:
    records = []
    for group, label in np.ndindex(found.lower.shape):
        at = group, label
        lower, upper, low, high = (finite(float(x[at])) for x in (found.lower, found.upper, *limits))
        n = counts[at] if found.metric.endswith("calibration") else counts[group].sum()
        record = RateRecord(
            grouping=place.grouping,
            stakeholder=place.stakeholder,
            group=place.groups[group],
            label=place.labels[label] if found.by_label else None,
            notion=found.metric,
            n=int(n),
            lower=lower,
            upper=upper,
            value=None if lower is None or upper is None else (lower + upper) / 2,
            low=low,
            high=high,
            truth=None if truth is None else finite(float(truth[at])),
            status=_status(Undefined(int(found.reason[at])), float(limits[0][at])),
        )
        records.append(record)
    return records


def _status(reason: Undefined, limit: float) -> str:
    if reason is not Undefined.DEFINED:
        return f"undefined: {_REASONS[reason]}"
    if np.isfinite(limit):
        return "ok"
    return _SELDOM if np.isinf(limit) else NO_SPREAD


def _limits(
    voices: Voices, notions: Sequence[Notion], plan: Resampling, spec: DisagreementSpec
) -> list[tuple[FloatArray, FloatArray]]:
    """Return for each notion the limits (groups, columns) of its rates: nan where answers do not vary, else inf."""
    answers = voices.answers
    statistic = partial(_columns, answers.feedback, tuple(notions), spec.bounds)
    drawn: Draws | CrossedDraws
    if plan.resampled == "both":
        drawn = crossed_draws(answers, statistic, rng=plan.rng, draws=plan.draws)
    else:
        drawn = crossed_bootstrap(answers, statistic, rng=plan.rng, draws=plan.draws, resampled=plan.resampled)
    values = drawn.both if isinstance(drawn, CrossedDraws) else drawn
    stderr = drawn.stderr()
    half = stderr.size // 2
    ends = [_interval(values.estimate[[i, half + i]], stderr[[i, half + i]], spec.confidence) for i in range(half)]
    limits, start = np.array(ends).reshape(half, 2), 0
    found = []
    for notion in notions:
        shape = rates(answers.masses(), answers.feedback, notion, bounds=spec.bounds).lower.shape
        size = int(np.prod(shape))
        found.append((limits[start : start + size, 0].reshape(shape), limits[start : start + size, 1].reshape(shape)))
        start += size
    return found


def _columns(feedback: Feedback, notions: tuple[Notion, ...], bounds: Bounds, masses: FloatArray) -> FloatArray:
    """Return the lower ends of all rates, then the upper ones."""
    every = [rates(masses[..., 0, :, :, :], feedback, notion, bounds=bounds, closed=True) for notion in notions]
    lowers = [found.lower.reshape(*found.lower.shape[:-2], -1) for found in every]
    uppers = [found.upper.reshape(*found.upper.shape[:-2], -1) for found in every]
    return np.concatenate([*lowers, *uppers], axis=-1)


def _interval(ends: FloatArray, stderr: FloatArray, confidence: float) -> tuple[float, float]:
    """Return the limits of one rate: those of Imbens and Manski, taken on the logit scale so that they stay in (0, 1).

    A rate that is undefined in too many resamples has limits of -inf and inf, one that does not vary of nan.
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
    return _moved(lower, -plain.below * float(stderr[0])), _moved(upper, plain.above * float(stderr[1]))


def _moved(rate: float, by: float) -> float:
    """Return a rate moved by so much on the logit scale; one at 0 or 1 stays."""
    if not 0.0 < rate < 1.0:
        return rate
    odds = rate / (1.0 - rate) * float(np.exp(np.clip(by / (rate * (1.0 - rate)), -500.0, 500.0)))
    return odds / (1.0 + odds)
