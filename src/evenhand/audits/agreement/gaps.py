"""Gaps between groups: to the reference group, and of the two groups farthest apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.audits.agreement.estimate import BOOTSTRAP, EXACT, GroupDraws, why_no_interval
from evenhand.audits.agreement.metrics import AgreementMetric, why_undefined
from evenhand.audits.agreement.result import AgreementGap
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.core.formats import finite
from evenhand.core.groups import ComparedGroups
from evenhand.stats.agreement import alike_stderr, coefficient_difference, p_of_equality, share_difference
from evenhand.stats.intervals import bonferroni, tail_share
from evenhand.stats.types import FloatArray, IntArray, Interval


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of groups: the values of one metric, the difference's limits at two confidences, its p-value.

    Parameters
    ----------
    first, second : (P,) positions of the groups.
    value, stderr : (P,) first less second, and its standard error; nan where undefined.
    own, joint : limits for each pair, and for all of them together.
    p : (P,) that the difference is 0; nan without limits.
    """

    first: IntArray
    second: IntArray
    value: FloatArray
    stderr: FloatArray
    own: Interval
    joint: Interval
    p: FloatArray


def gap_records(
    grouping: ComparedGroups, drawn: Sequence[GroupDraws], metrics: Mapping[str, AgreementMetric], spec: AgreementSpec
) -> Iterator[AgreementGap]:
    """Yield each group's gaps to the reference group, and for each metric that of the two groups farthest apart."""
    makers = [
        _GapMaker(grouping, drawn, position, metric, spec)
        for position, metric in enumerate(metrics.values())
        if metric.compared
    ]
    if len(drawn) < 2:
        yield from (maker.undefined() for maker in makers)
        return
    others = np.array(grouping.others, dtype=np.int64)
    to_reference = [maker.compare(others, np.full_like(others, grouping.reference)) for maker in makers]
    for index in range(len(others)):
        for maker, pairs in zip(makers, to_reference, strict=True):
            yield maker.record(pairs, index)
    every_pair = np.triu_indices(len(drawn), 1)
    yield from (maker.worst(maker.compare(*every_pair)) for maker in makers)


@dataclass(frozen=True)
class _GapMaker:
    """Makes the gaps of one metric between the groups of one grouping; `position` is that of the metric's draws."""

    grouping: ComparedGroups
    drawn: Sequence[GroupDraws]
    position: int
    metric: AgreementMetric
    spec: AgreementSpec

    def compare(self, first: IntArray, second: IntArray) -> _Pairs:
        """Return the differences of pairs of groups, with limits for each and for all of them together."""
        value = np.array([group.draws.estimate[self.position] for group in self.drawn])
        stderr = np.array([group.stderr[self.position] for group in self.drawn])
        trials = np.array([group.variation.trials for group in self.drawn])
        if self.metric.share is not None:
            rate = np.array([group.variation.agreement for group in self.drawn])
            slope, _ = self.metric.share(self.drawn[0].ratings.categories)

            def limits(tail: FloatArray) -> Interval:
                of_shares = share_difference(rate[first], trials[first], rate[second], trials[second], tail)
                return Interval(slope * of_shares.low, slope * of_shares.high)
        else:
            known = np.where([group.variation.too_little(None) is None for group in self.drawn], stderr, np.nan)
            spread = (known[first], known[second])
            if self.drawn[0].variation.scores:
                spread = alike_stderr(value[first], spread[0], trials[first], value[second], spread[1], trials[second])

            def limits(tail: FloatArray) -> Interval:
                a, b = ((value[at], se, trials[at] - 1) for at, se in zip((first, second), spread, strict=True))
                return coefficient_difference(*a, *b, tail)

        confidences = (self.spec.confidence, bonferroni(self.spec.confidence, len(first)))
        own, joint = (limits(np.full(first.shape, tail_share(confidence))) for confidence in confidences)
        with np.errstate(invalid="ignore"):
            p = p_of_equality(limits, first.shape)
            return _Pairs(
                first, second, value[first] - value[second], np.hypot(stderr[first], stderr[second]), own, joint, p
            )

    def record(self, pairs: _Pairs, index: int) -> AgreementGap:
        """Return the gap of one pair, the second group being the reference."""
        group, base = int(pairs.first[index]), int(pairs.second[index])
        low, high, joint_low, joint_high = (finite(float(end[index])) for end in (*pairs.own, *pairs.joint))
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
            status="ok" if low is not None else self._why_not((group, base)),
            stderr=finite(pairs.stderr[index]),
        )

    def worst(self, pairs: _Pairs) -> AgreementGap:
        """Return the gap of the two groups farthest apart, of those that can be tested where any can.

        Its limits are those of the largest gap, so that its lower one may come from another pair, and a pair without
        limits leaves the upper end open. The p-value is this pair's own, adjusted for having been picked from all of
        them (Bonferroni).
        """
        without = np.isnan(pairs.joint.low) | np.isnan(pairs.joint.high)
        size = np.abs(pairs.value) if without.all() else np.where(without, np.nan, np.abs(pairs.value))
        record = self.record(pairs, 0 if np.isnan(size).all() else int(np.nanargmax(size)))
        if record.value is not None and record.value < 0:  # the higher group first
            record = replace(record, group=record.reference, reference=record.group, value=-record.value)
        low = high = p_value = None
        if record.p_value is not None:
            known = [np.where(without, 0.0, limit) for limit in pairs.joint]
            low = float(np.maximum(np.maximum(known[0], -known[1]), 0.0).max())
            high = None if without.any() else float(np.maximum(np.abs(known[0]), np.abs(known[1])).max())
            p_value = min(1.0, len(pairs.p) * record.p_value)
        status = record.status
        if record.value is not None and without.any():
            unknown = int(np.flatnonzero(without)[0])
            why = self._why_not((int(pairs.first[unknown]), int(pairs.second[unknown])))
            status = f"{'no interval' if low is None else 'unbounded above'}: {why.partition(': ')[2]}"
        limits: dict[str, Any] = {"low": low, "high": high, "joint_low": low, "joint_high": high}
        return replace(record, against="worst_pair", p_value=p_value, status=status, **limits)

    def undefined(self) -> AgreementGap:
        """Return the gap of a grouping in which no two groups can be compared."""
        why = f"fewer than two groups have min_count {self.spec.min_count} people"
        return self._gap(against="worst_pair", n=sum(self.grouping.sizes), value=None, status=f"undefined: {why}")

    def _gap(self, **columns: Any) -> AgreementGap:
        method = BOOTSTRAP if self.metric.share is None else EXACT
        coordinates: dict[str, Any] = {"grouping": self.grouping.name, "metric": self.metric.name, "method": method}
        return AgreementGap(kind="difference", **coordinates, **columns)

    def _why_not(self, pair: tuple[int, int]) -> str:
        """Return why the gap of two groups has no value, or no interval."""
        for group in pair:
            drawn = self.drawn[group]
            if np.isnan(drawn.draws.estimate[self.position]):
                return f"undefined: {why_undefined(self.metric, drawn.ratings, drawn.weight)}"
        for group in pair:
            label = self.grouping.groups[group]
            reason = why_no_interval(self.drawn[group], self.position, self.metric, label)
            if reason is not None:
                return f"no interval: {reason}"
        return "no interval: the formula has no limits"


def groupings_of_two(gaps: Sequence[AgreementGap]) -> set[str | None]:
    """Return the groupings of two groups: their worst pair is the gap to the reference group."""
    others = {(gap.grouping, gap.group) for gap in gaps if gap.against == "reference"}
    names = [grouping for grouping, _ in others]
    return {name for name in names if names.count(name) == 1}
