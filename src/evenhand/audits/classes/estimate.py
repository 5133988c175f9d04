"""Shares of people in classes with their limits, gaps between groups, and ordinal dominance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Protocol

import numpy as np

from evenhand.audits.classes.messages import say
from evenhand.audits.classes.metrics import ClassMetric
from evenhand.audits.classes.result import ClassesGap, ClassesValue
from evenhand.audits.classes.spec import ClassesSpec
from evenhand.core.estimates import Estimate, estimates_at
from evenhand.core.groups import ComparedGroups
from evenhand.core.records import OK
from evenhand.messages.shared import say as shared
from evenhand.stats.intervals import bonferroni, wilson
from evenhand.stats.permutation import MeanComparison, compare_means
from evenhand.stats.two_rates import compare_rates
from evenhand.stats.two_rates.comparison import RateComparison
from evenhand.stats.types import IntArray, Interval
from evenhand.stats.worst_pair import widest_difference

Limits = tuple[float, float]


class Pair(Protocol):
    """A comparison of two groups: the difference (first minus second), its p-value and limits."""

    @property
    def value(self) -> float:
        """The difference."""

    @property
    def p_value(self) -> float:
        """The p-value of no difference."""

    def limits(self, confidence: float) -> Limits:
        """Return the limits of the difference."""


@dataclass(frozen=True, eq=False)
class SharePair:
    """Two shares of people, compared by the exact score test with the limits that invert it (`compare_rates`)."""

    compared: RateComparison

    @property
    def value(self) -> float:
        """The difference."""
        return float(self.compared.value)

    @cached_property
    def p_value(self) -> float:
        """The p-value of no difference."""
        return float(self.compared.p_value)

    def limits(self, confidence: float) -> Limits:
        """Return the limits of the difference."""
        low, high = self.compared.limits(confidence)
        return float(low), float(high)


@dataclass(frozen=True, eq=False)
class DominancePair:
    """Cliff's delta of two groups: P(first in a better class) - P(first in a worse class).

    It is 2 / N times the difference between the groups' mean ranks among all N people of both groups, with mid-ranks
    for ties. So the test is the studentised permutation test of ranks, with the interval that inverts it
    (`compare_means`).

    Parameters
    ----------
    first, second : the number of people in each class, for both groups; the worst class is first.

    References
    ----------
    N. Cliff (1993), Dominance statistics: ordinal analyses to answer ordinal questions, Psychological Bulletin 114.
    K. Neubert and E. Brunner (2007), A studentized permutation test for the non-parametric Behrens-Fisher problem,
    Computational Statistics and Data Analysis 51.
    """

    first: IntArray
    second: IntArray

    @cached_property
    def _compared(self) -> MeanComparison:
        both = self.first + self.second
        ranks = np.cumsum(both) - both / 2.0
        some = both > 0
        return compare_means(2.0 * ranks[some] / both.sum(), self.first[some], self.second[some])

    @property
    def value(self) -> float:
        """Cliff's delta."""
        return float(self._compared.estimate)

    @property
    def p_value(self) -> float:
        """The p-value of no dominance."""
        return float(self._compared.p_value)

    def limits(self, confidence: float) -> Limits:
        """Return the limits of the delta."""
        low, high = self._compared.limits(1.0 - confidence)
        return max(float(low), -1.0), min(float(high), 1.0)


def value_estimates(
    n: IntArray,
    grouping: str | None,
    groups: Sequence[str],
    labels: Sequence[str],
    *,
    metric: ClassMetric,
    spec: ClassesSpec,
) -> list[Estimate[ClassesValue]]:
    """Return a metric of every class and group, with Wilson's limits at any confidence.

    `n` is the number of people by group, class and right class. Joint limits are simultaneous over all classes and
    groups.
    """
    assert metric.counts is not None  # noqa: S101
    of_class = [metric.counts(n, label) for label in range(len(labels))]

    def at(confidence: float) -> Iterator[ClassesValue]:
        together = bonferroni(confidence, len(labels) * max(len(groups), 1))
        for label, (yes, people) in zip(labels, of_class, strict=True):
            for position, group in enumerate(groups):
                k, size = int(yes[position]), int(people[position])
                record = ClassesValue(
                    grouping=grouping, group=group, label=label, metric=metric.name, n=size, value=None, status=_EMPTY
                )
                yield _share(record, k, confidence, together) if size else record

    return estimates_at(at, spec.confidence, lambda record: (record.label, record.group))


_EMPTY = shared("undefined", why=say("empty"))


def _share(record: ClassesValue, yes: int, confidence: float, together: float) -> ClassesValue:
    """Return a record with its share and Wilson's limits."""
    rate = yes / record.n
    own, joint = wilson(rate, record.n, confidence), wilson(rate, record.n, together)
    return replace(
        record,
        value=rate,
        low=float(own.low),
        high=float(own.high),
        joint_low=float(joint.low),
        joint_high=float(joint.high),
        status=OK,
    )


def gap_estimates(
    n: IntArray, grouping: ComparedGroups, labels: Sequence[str], metric: ClassMetric, spec: ClassesSpec
) -> list[Estimate[ClassesGap]]:
    """Return for each class the worst pair's gap, and the gaps to the reference group."""
    if metric.counts is None:
        people = n.sum(axis=-1)
        return _gaps(_Compared(metric, None, grouping, people.sum(axis=-1), people, None), 1, spec)
    gaps = []
    for label, name in enumerate(labels):
        yes, size = metric.counts(n, label)
        gaps += _gaps(_Compared(metric, name, grouping, size, None, yes), len(labels), spec)
    return gaps


@dataclass(frozen=True, eq=False)
class _Compared:
    """The groups of a grouping, compared in one metric of one class.

    Parameters
    ----------
    metric, label, grouping : the metric, the class (None for dominance), and the groups.
    people : (groups,) the number of people in the denominator.
    of_class : (groups, classes) the number of people by class, for ordinal dominance; None for shares.
    yes : (groups,) the number of people in the numerator; None for ordinal dominance.
    """

    metric: ClassMetric
    label: str | None
    grouping: ComparedGroups
    people: IntArray
    of_class: IntArray | None
    yes: IntArray | None

    def pair(self, a: int, b: int) -> Pair | None:
        """Return the comparison of two groups; None if a group has no people."""
        if not self.people[a] or not self.people[b]:
            return None
        if self.of_class is not None:
            return DominancePair(self.of_class[a], self.of_class[b])
        assert self.yes is not None  # noqa: S101
        return SharePair(compare_rates(self.yes[a], self.people[a], self.yes[b], self.people[b]))

    def tested(self, a: int, b: int, least: int) -> Pair | None:
        """Return the comparison of two groups; None if a group has fewer than `least` people."""
        return self.pair(a, b) if min(self.people[a], self.people[b]) >= least else None


def _gaps(compared: _Compared, classes: int, spec: ClassesSpec) -> list[Estimate[ClassesGap]]:
    grouping = compared.grouping
    undefined = ClassesGap(
        grouping=grouping.name,
        label=compared.label,
        metric=compared.metric.name,
        kind="difference",
        against="worst_pair",
        n=int(compared.people.sum()),
        value=None,
        status=shared("undefined", why=shared("two_groups_needed", least=spec.min_count)),
    )
    pairs = {
        (a, b): pair
        for a, b in combinations(range(len(grouping.groups)), 2)
        if (pair := compared.tested(a, b, spec.min_count)) is not None
    }

    def at(confidence: float) -> Iterator[ClassesGap]:
        yield _worst(compared, pairs, undefined, confidence, classes)
        for other in grouping.others:
            a, b = other, grouping.reference
            gap = _named(compared, replace(undefined, against="reference"), a, b)
            pair = compared.tested(a, b, spec.min_count)
            if pair is None:
                few = say("few_people", n=int(min(compared.people[a], compared.people[b])), least=spec.min_count)
                yield replace(gap, status=shared("undefined" if gap.value is None else "no_interval", why=few))
                continue
            own, joint = pair.limits(confidence), pair.limits(bonferroni(confidence, classes * len(grouping.others)))
            yield replace(
                gap, low=own[0], high=own[1], joint_low=joint[0], joint_high=joint[1], p_value=pair.p_value, status=OK
            )

    return estimates_at(at, spec.confidence, lambda gap: (gap.against, gap.group, gap.reference))


def _named(compared: _Compared, gap: ClassesGap, a: int, b: int) -> ClassesGap:
    pair, groups = compared.pair(a, b), compared.grouping.groups
    people = int(compared.people[a] + compared.people[b])
    return replace(gap, group=groups[a], reference=groups[b], n=people, value=None if pair is None else pair.value)


def _worst(
    compared: _Compared, pairs: dict[tuple[int, int], Pair], undefined: ClassesGap, confidence: float, classes: int
) -> ClassesGap:
    """Return the largest difference; its test and near limit are adjusted for all pairs, its far limit is not."""
    if not pairs:
        return undefined
    a, b = max(pairs, key=lambda place: abs(pairs[place].value))
    if pairs[a, b].value < 0:
        a, b = b, a
    gap = _named(compared, undefined, a, b)

    def widest(level: float) -> Limits:
        far, near = (
            Interval(*np.array([pair.limits(each) for pair in pairs.values()]).T)
            for each in (level, bonferroni(level, len(pairs)))
        )
        return widest_difference(near, far)

    own, joint = widest(confidence), widest(bonferroni(confidence, classes))
    p_value = min(1.0, len(pairs) * min(pair.p_value for pair in pairs.values()))
    return replace(gap, low=own[0], high=own[1], joint_low=joint[0], joint_high=joint[1], p_value=p_value, status=OK)


def with_worse_off(gap: ClassesGap, labels: Sequence[str], spec: ClassesSpec) -> ClassesGap:
    """Return a gap with the worse-off group: less often in the best class, or more often in the worst one."""
    if spec.order is None or not gap.value:
        return gap
    is_best = gap.metric == "dominance" or (gap.metric == "class_rate" and gap.label == labels[-1])
    is_worst = gap.metric == "class_rate" and gap.label == labels[0]
    if not (is_best or is_worst):
        return gap
    return replace(gap, worse_off=gap.group if (gap.value < 0) == is_best else gap.reference)
