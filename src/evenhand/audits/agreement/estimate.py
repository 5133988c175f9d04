"""Agreement within groups and gaps between groups: metrics, bootstrap, intervals and tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import nan
from typing import Any, TypeAlias, TypeVar

import numpy as np

from evenhand.audits.agreement.draws import GroupDraws
from evenhand.audits.agreement.gather import RatedPeople
from evenhand.audits.agreement.messages import say
from evenhand.audits.agreement.metrics import AgreementMetric, Share, why_undefined
from evenhand.audits.agreement.people import PeopleValues, people_values
from evenhand.audits.agreement.result import AgreementGap, AgreementValue, CountRecord
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.core.estimates import Estimate
from evenhand.core.families import MOST_FINDINGS
from evenhand.core.findings import without_kind
from evenhand.core.groups import ComparedGroups
from evenhand.core.records import OK
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.agreement import (
    ac1_limits,
    coefficient_difference,
    coefficient_limits,
    icc_interval,
    p_of_equality,
    shared_shape_stderr,
    unseen_tail,
)
from evenhand.stats.clusters import FEWEST
from evenhand.stats.intervals import (
    bonferroni,
    clopper_pearson,
    effective_trials,
    normal_confidence,
    student_t,
    tail_share,
)
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval

R = TypeVar("R", AgreementValue, AgreementGap)

_LEVELS = 4
"""The number of confidences with cached records for a group or metric."""

EXACT, BOOTSTRAP, PERMUTATION, CLUSTERS = "exact", "bootstrap", "permutation", "clusters"


def value_estimates(
    drawn: GroupDraws, grouping: str | None, group: str, metrics: Mapping[str, AgreementMetric], confidence: float
) -> list[Estimate[AgreementValue]]:
    """Return the metrics of a group, with intervals at any confidence from the same draws."""
    at = lru_cache(_LEVELS)(lambda level: tuple(value_records(drawn, grouping, group, metrics, level)))
    return _estimates(at, confidence)


def _estimates(at: Callable[[float], Sequence[R]], confidence: float) -> list[Estimate[R]]:
    """Return an estimate for each record that a function of the confidence returns, in order."""

    def limits(index: int) -> Callable[[float], R]:
        return lambda level: at(level)[index]

    return [Estimate(record, limits(index)) for index, record in enumerate(at(confidence))]


def value_records(
    drawn: GroupDraws, grouping: str | None, group: str, metrics: Mapping[str, AgreementMetric], confidence: float
) -> Iterator[AgreementValue]:
    """Yield the metrics of a group with their intervals."""
    if drawn.clusters is not None:
        yield from _records_of_clusters(drawn, grouping, group, metrics, confidence)
        return
    limits, by_bootstrap = drawn.bootstrap_limits(confidence)
    for position, (name, metric) in enumerate(metrics.items()):
        value = finite(drawn.draws.estimate[position])
        low, high = finite(limits.low[position]), finite(limits.high[position])
        method, why = by_bootstrap, why_no_interval(drawn, position, metric, None if grouping is None else group)
        if metric.share is not None and value is not None:
            method, why, (low, high) = EXACT, None, _exact_limits(drawn, metric.share, confidence)
        elif name == "ac1" and value is not None:
            variation, tail = drawn.variation, tail_share(confidence)
            limits_of = ac1_limits(
                variation.agreement, variation.trials, variation.chance, float(drawn.stderr[position]), tail
            )
            method, why, (low, high) = EXACT, None, (float(limits_of.low), float(limits_of.high))
        elif metric.form is not None and value is not None and np.array_equal(drawn.weight, drawn.count):
            method, (low, high) = _icc_limits(drawn, metric.form, confidence)
            why = why if high is None or drawn.variation.disagreeing == 0 else None
        if why is None and high is None:
            why = say("one_sided" if metric.form is None else "no_limits")
        record = AgreementValue(grouping=grouping, group=group, metric=name, n=drawn.n, value=value, method=method)
        yield _with_status(record, metric, drawn, why, {"low": low, "high": high})


def _records_of_clusters(
    drawn: GroupDraws, grouping: str | None, group: str, metrics: Mapping[str, AgreementMetric], confidence: float
) -> Iterator[AgreementValue]:
    """Yield the metrics of a group with clustered people; metrics of other raters have no limits."""
    for position, (name, metric) in enumerate(metrics.items()):
        value = finite(drawn.draws.estimate[position])
        low, high = (finite(float(end)) for end in _cluster_limits(drawn, position, metric, confidence))
        why = why_no_interval(drawn, position, metric, None if grouping is None else group)
        if metric.share is not None and low is not None:
            why = None
        elif why is None and high is None:
            why = say("other_raters_of_clusters") if metric.form is not None else say("no_limits")
        record = AgreementValue(grouping=grouping, group=group, metric=name, n=drawn.n, value=value, method=CLUSTERS)
        yield _with_status(record, metric, drawn, why, {"low": low, "high": high})


def _cluster_limits(drawn: GroupDraws, position: int, metric: AgreementMetric, confidence: float) -> Interval:
    """Return cluster-robust limits of a metric.

    A share has exact limits with the effective number of people or, if all ratings agree, of clusters. All other
    metrics have `coefficient_limits`, or Student's t limits if they have no largest value.
    """
    stderr, dof, estimate = (values[position] for values in (drawn.stderr, drawn.dof, drawn.draws.estimate))
    assert drawn.clusters is not None  # noqa: S101
    if metric.share is not None and drawn.clusters.number >= FEWEST:
        slope, intercept = metric.share(drawn.ratings.categories)
        variation = drawn.variation
        trials = float(effective_trials(variation.agreement, (stderr / slope) ** 2, variation.trials))
        trials = trials if stderr > 0 else min(variation.trials, drawn.clusters.number)
        limits = clopper_pearson(variation.agreement, trials, normal_confidence(dof, confidence))
        return Interval(intercept + slope * limits.low, intercept + slope * limits.high)
    if metric.form is not None and metric.form.startswith("A"):
        return Interval(np.array(nan), np.array(nan))
    if metric.compared:
        return coefficient_limits(estimate, stderr, dof, tail_share(confidence))
    return student_t(estimate, stderr, dof, confidence)


def _with_status(
    record: AgreementValue, metric: AgreementMetric, drawn: GroupDraws, why: Message | None, limits: Mapping[str, Any]
) -> AgreementValue:
    """Return a value with its limits, unless its status excludes them."""
    status = OK if why is None else shared("no_interval", why=why)
    if why is None and limits["low"] is None:
        status = shared("unbounded_below", why=say("no_variance"))
    if record.value is None:
        status = _undefined(metric, drawn)
    return replace(record, status=status, **(limits if why is None else {}))


def _undefined(metric: AgreementMetric, drawn: GroupDraws) -> Message:
    reason = why_undefined(metric, drawn.ratings, drawn.weight)
    return shared("undefined", why=say("some_missing") if reason is None else reason.message)


def _icc_limits(drawn: GroupDraws, form: str, confidence: float) -> tuple[str, tuple[float | None, float | None]]:
    people = np.repeat(np.stack(drawn.ratings.raters), drawn.count, axis=1)
    limits = icc_interval(*people, form=form, confidence=confidence)  # type: ignore[arg-type]
    name = "generalised pivot" if form.startswith("A") else "F distribution"
    return name, (finite(float(limits.low)), finite(float(limits.high)))


def _exact_limits(drawn: GroupDraws, share: Share, confidence: float) -> tuple[float | None, float | None]:
    slope, intercept = share(drawn.ratings.categories)
    limits = clopper_pearson(drawn.variation.agreement, drawn.variation.trials, confidence)
    return intercept + slope * float(limits.low), intercept + slope * float(limits.high)


def why_no_interval(drawn: GroupDraws, position: int, metric: AgreementMetric, group: str | None) -> Message | None:
    """Return the reason why a group's resamples give no interval of a metric, or None."""
    if drawn.clusters is not None and drawn.clusters.number < FEWEST:
        return shared("few_clusters", n=drawn.clusters.number, least=FEWEST)
    too_little = drawn.variation.too_little(group) if metric.compared else None
    if too_little is not None:
        return too_little
    where = None if group is None else say("of_group", group=group)
    if np.isnan(drawn.stderr[position]):
        return say("resamples_undefined", where=where)
    return None if drawn.stderr[position] > 0 else say("resamples_alike", where=where)


def count_records(rated: RatedPeople, inside: BoolArray, grouping: str | None, group: str) -> Iterator[CountRecord]:
    """Yield the number of people for each pair of two raters' categories."""
    if rated.ratings.shape[1] != 2 or not rated.labels:
        return
    complete = rated.ratings[inside & ~np.isnan(rated.ratings).any(axis=1)].astype(np.int64)
    q = len(rated.labels)
    counted = np.bincount(complete[:, 0] * q + complete[:, 1], minlength=q * q)
    for pair in np.flatnonzero(counted) if q > 2 else range(q * q):
        first, second = divmod(int(pair), q)
        yield CountRecord(
            grouping=grouping, group=group, first=rated.labels[first], second=rated.labels[second], n=int(counted[pair])
        )


# Gaps between groups --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class _Pairs:
    """Differences of one metric between pairs of groups, with limits at two confidences and p-values.

    Parameters
    ----------
    first, second : (pairs,) the positions of the groups.
    value, stderr : (pairs,) first minus second, and the standard error; nan where undefined.
    limits, joint : the limits for each pair, and the limits simultaneous over all pairs.
    p : (pairs,) the p-values of no difference; nan without limits.
    """

    first: IntArray
    second: IntArray
    value: FloatArray
    stderr: FloatArray
    limits: Interval
    joint: Interval
    p: FloatArray


def gap_estimates(
    grouping: ComparedGroups, drawn: Sequence[GroupDraws], metrics: Mapping[str, AgreementMetric], spec: AgreementSpec
) -> list[Estimate[AgreementGap]]:
    """Return the gaps of each group to the reference group, and the gap of each metric's worst pair."""
    makers = [
        _GapMaker(grouping, drawn, position, metric, 1.0 - spec.confidence)
        for position, metric in enumerate(metrics.values())
        if metric.compared
    ]
    if len(drawn) < 2:
        return [Estimate(maker.undefined(spec.min_count)) for maker in makers]
    by_metric = [_estimates(lru_cache(_LEVELS)(maker.records()), spec.confidence) for maker in makers]
    return [estimate for same_place in zip(*by_metric, strict=True) for estimate in same_place]


_Test: TypeAlias = tuple[Callable[[float], Interval], FloatArray, FloatArray]
"""The limits of pairs of groups at a confidence, their p-values, and their standard errors."""


@dataclass(frozen=True)
class _GapMaker:
    """Builder of one metric's gaps between the groups of one grouping.

    Parameters
    ----------
    grouping, drawn : the groups and their resamples.
    position, metric : the metric, and its position in the draws.
    alpha : the level of one test.
    """

    grouping: ComparedGroups
    drawn: Sequence[GroupDraws]
    position: int
    metric: AgreementMetric
    alpha: float

    def records(self) -> Callable[[float], tuple[AgreementGap, ...]]:
        """Return a function from a confidence to the gaps: to the reference group, and of the worst pair."""
        others = np.array(self.grouping.others, dtype=np.int64)
        to_reference = self.compare(others, np.full_like(others, self.grouping.reference))
        every_pair = self.compare(*np.triu_indices(len(self.drawn), 1))

        def at(confidence: float) -> tuple[AgreementGap, ...]:
            pairs = to_reference(confidence)
            return *(self.record(pairs, index) for index in range(len(others))), self.worst(every_pair(confidence))

        return at

    def compare(self, first: IntArray, second: IntArray) -> Callable[[float], _Pairs]:
        """Return a function from a confidence to pairwise differences with individual and simultaneous limits."""
        value = np.array([group.draws.estimate[self.position] for group in self.drawn])
        scores = self.drawn[0].variation.scores
        clustered = self.drawn[0].errors is not None
        limits, p, stderr = (self._coefficients if scores or clustered else self._categories)(first, second)
        difference = value[first] - value[second]

        def at(confidence: float) -> _Pairs:
            own, joint = (limits(level) for level in (confidence, bonferroni(confidence, len(first))))
            return _Pairs(first=first, second=second, value=difference, stderr=stderr, limits=own, joint=joint, p=p)

        return at

    def _categories(self, first: IntArray, second: IntArray) -> _Test:
        """Compare the people of every two groups by the exact test of two rates or by permutation."""
        tested = [self.metric.share is not None or group.variation.too_little(None) is None for group in self.drawn]
        level = self.alpha / max(1, len(first)) / MOST_FINDINGS
        gaps = [
            self.values[a].compare(self.values[b], level) if tested[a] and tested[b] else None
            for a, b in zip(first.tolist(), second.tolist(), strict=True)
        ]

        most = max(values.width for values in self.values)

        def limits(confidence: float) -> Interval:  # infinite if too few exchanges support so high a confidence
            ends = [(nan, nan) if gap is None else gap.limits(confidence) for gap in gaps]
            return Interval(*np.clip(np.array(ends, dtype=np.float64).reshape(-1, 2).T, -most, most))

        p, stderr = (
            np.array([nan if gap is None else getattr(gap, name) for gap in gaps]) for name in ("p_value", "stderr")
        )
        return limits, p, stderr

    @cached_property
    def values(self) -> tuple[PeopleValues, ...]:
        """The values of the people in each group, with the metric as their mean."""
        return tuple(people_values(self.metric, group.ratings, group.weight, group.count) for group in self.drawn)

    def _coefficients(self, first: IntArray, second: IntArray) -> _Test:
        """Compare coefficients by their standard errors; for scores, allow for unsampled tails in small groups."""
        value = np.array([group.draws.estimate[self.position] for group in self.drawn])
        stderr = np.array([group.stderr[self.position] for group in self.drawn])
        trials = np.array([group.dof[self.position] + 1.0 for group in self.drawn])
        usable = np.where([group.variation.too_little(None) is None for group in self.drawn], stderr, np.nan)
        spread = shared_shape_stderr(
            (value[first], usable[first], trials[first]), (value[second], usable[second], trials[second])
        )

        errors = [group.errors for group in self.drawn if group.errors is not None]
        correlation = np.stack([each.correlation[self.position] for each in errors])[first, second] if errors else 0.0

        def limits(tail: FloatArray) -> Interval:
            a, b = (
                (value[positions], se, trials[positions] - 1)
                for positions, se in zip((first, second), spread, strict=True)
            )
            unseen = [self._unsampled_excess(*side, tail) for side in ((first, second), (second, first))]
            return coefficient_difference(a, b, tail, unseen, correlation)

        with np.errstate(invalid="ignore"):
            p = p_of_equality(limits, first.shape)
        at = lambda confidence: limits(np.full(first.shape, tail_share(confidence)))  # noqa: E731
        return at, p, np.hypot(stderr[first], stderr[second])

    def _unsampled_excess(self, groups: IntArray, others: IntArray, tail: FloatArray) -> FloatArray:
        """Return the largest possible reduction of groups' values by large errors that were not sampled."""
        if not self.drawn[0].variation.scores:
            return np.zeros(len(groups))
        value = np.array([group.draws.estimate[self.position] for group in self.drawn])
        people = np.array([group.dof[self.position] + 1.0 for group in self.drawn])
        average, largest = np.array([(group.variation.average, group.variation.largest) for group in self.drawn]).T
        with np.errstate(all="ignore"):
            own_excess, other = (largest[side] / average[groups] for side in (groups, others))
        return unseen_tail(value[groups], people[groups], own_excess, other, tail)

    def record(self, pairs: _Pairs, index: int) -> AgreementGap:
        """Return the gap of a group to the reference group, the second group of the pair."""
        group, base = int(pairs.first[index]), int(pairs.second[index])
        low, high, joint_low, joint_high = (finite(float(end[index])) for end in (*pairs.limits, *pairs.joint))
        return self._gap(
            against="reference",
            group=self.grouping.groups[group],
            reference=self.grouping.groups[base],
            n=self.drawn[group].n + self.drawn[base].n,
            value=finite(pairs.value[index]),
            low=low,
            high=high,
            joint_low=joint_low,
            joint_high=joint_high,
            p_value=finite(pairs.p[index]),
            status=OK if low is not None else self._why_not((group, base)),
            stderr=finite(pairs.stderr[index]),
        )

    def worst(self, pairs: _Pairs) -> AgreementGap:
        """Return the gap of the two groups with the largest difference, among testable pairs if there are any.

        Its limits are the limits of the largest gap, so the lower limit can come from another pair. If a pair has no
        limits, there is no upper limit. The p-value belongs to this pair, adjusted for the choice among all pairs
        (Bonferroni).
        """
        without = np.isnan(pairs.joint.low) | np.isnan(pairs.joint.high)
        size = np.abs(pairs.value) if without.all() else np.where(without, np.nan, np.abs(pairs.value))
        record = self.record(pairs, 0 if np.isnan(size).all() else int(np.nanargmax(size)))
        if record.value is not None and record.value < 0:  # the higher group first
            record = replace(record, group=record.reference, reference=record.group, value=-record.value)
        low = high = p_value = None
        if record.p_value is not None:
            joint_limits = [np.where(without, 0.0, limit) for limit in pairs.joint]
            low = float(np.maximum(np.maximum(joint_limits[0], -joint_limits[1]), 0.0).max())
            high = None if without.any() else float(np.maximum(np.abs(joint_limits[0]), np.abs(joint_limits[1])).max())
            p_value = min(1.0, len(pairs.p) * record.p_value)
        status = record.status
        if record.value is not None and without.any():
            unknown = int(np.flatnonzero(without)[0])
            why = without_kind(self._why_not((int(pairs.first[unknown]), int(pairs.second[unknown]))))
            status = shared("no_interval" if low is None else "unbounded_above", why=why)
        limits: dict[str, Any] = {"low": low, "high": high, "joint_low": low, "joint_high": high}
        return replace(record, against="worst_pair", p_value=p_value, status=status, **limits)

    def undefined(self, min_count: int) -> AgreementGap:
        """Return the undefined gap of a grouping without two groups that can be compared."""
        status = shared("undefined", why=shared("two_groups_needed", least=min_count))
        return self._gap(against="worst_pair", n=sum(self.grouping.sizes), value=None, status=status)

    def _gap(self, **columns: Any) -> AgreementGap:
        scores = bool(self.drawn) and self.drawn[0].variation.scores
        clustered = bool(self.drawn) and self.drawn[0].errors is not None
        rates = not scores and not clustered and all(values.are_rates for values in self.values)
        method = CLUSTERS if clustered else BOOTSTRAP if scores else EXACT if rates else PERMUTATION
        coordinates: dict[str, Any] = {"grouping": self.grouping.name, "metric": self.metric.name, "method": method}
        return AgreementGap(kind="difference", **coordinates, **columns)

    def _why_not(self, pair: tuple[int, int]) -> Message:
        """Return the reason why the gap of two groups has no value or no interval."""
        for group in pair:
            drawn = self.drawn[group]
            if np.isnan(drawn.draws.estimate[self.position]):
                return _undefined(self.metric, drawn)
        for group in pair:
            label = self.grouping.groups[group]
            reason = why_no_interval(self.drawn[group], self.position, self.metric, label)
            if reason is not None:
                return shared("no_interval", why=reason)
        return shared("no_interval", why=say("no_limits"))


def groupings_of_two(gaps: Sequence[AgreementGap]) -> set[str | None]:
    """Return the groupings with two groups, for which the worst pair is the gap to the reference group."""
    others = {(gap.grouping, gap.group) for gap in gaps if gap.against == "reference"}
    names = [grouping for grouping, _ in others]
    return {name for name in names if names.count(name) == 1}
