"""Means over templates, differences within templates, and the comparisons of placebos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from evenhand.audits.paired.gather import Answers
from evenhand.audits.paired.messages import say
from evenhand.audits.paired.metrics import METRICS
from evenhand.audits.paired.result import PairedGap, PairedValue, PlaceboRecord
from evenhand.audits.paired.spec import PairedSpec
from evenhand.core.estimates import Estimate, estimates_at
from evenhand.core.groups import ComparedGroups
from evenhand.core.records import OK, Against
from evenhand.errors import DataError
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.intervals import bonferroni, student_t, wilson
from evenhand.stats.multiplicity import adjusted_p
from evenhand.stats.sign_flips import PairedComparison, compare_pairs
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval
from evenhand.stats.worst_pair import widest_difference


@dataclass(frozen=True, eq=False)
class TemplateMeans:
    """The answers to each template for each group: their number, their mean, and the squares around it.

    Parameters
    ----------
    n : (templates, groups) the answers.
    mean : (templates, groups) their mean; nan without answers.
    squares : (templates, groups) the sum of squared deviations from it.
    largest : the largest possible difference of two answers.
    """

    n: IntArray
    mean: FloatArray
    squares: FloatArray
    largest: float

    @classmethod
    def build(
        cls, template: IntArray, group: IntArray, groups: int, value: FloatArray, largest: float
    ) -> TemplateMeans:
        """Sum the answers by template and group; a group of -1 and answers of nan do not count."""
        known = (group >= 0) & ~np.isnan(value)
        templates = int(template.max(initial=-1)) + 1
        cell, value = template[known] * groups + group[known], value[known]
        size, shape = templates * groups, (templates, groups)
        n = np.bincount(cell, minlength=size)
        with np.errstate(all="ignore"):
            mean = np.asarray(np.bincount(cell, weights=value, minlength=size) / n, dtype=np.float64)
        squares = np.bincount(cell, weights=(value - mean[cell]) ** 2, minlength=size).astype(np.float64)
        return cls(n.reshape(shape), mean.reshape(shape), squares.reshape(shape), largest)

    def values(self, group: int) -> FloatArray:
        """Return the mean of each template that has answers for a group."""
        of_group = self.mean[:, group]
        return np.asarray(of_group[~np.isnan(of_group)])

    def pair(self, a: int, b: int) -> TemplatePair:
        """Return the comparison of two groups within the templates that have both."""
        both = (self.n[:, a] > 0) & (self.n[:, b] > 0)
        return TemplatePair(self, a, b, both)


class Spread(NamedTuple):
    """What the differences of templates vary by: see `PairedGap`; None where repetitions are wanting."""

    template_sd: float | None = None
    replicate_sd: float | None = None
    template_share: float | None = None


@dataclass(frozen=True, eq=False)
class TemplatePair:
    """Two groups in the templates that have both.

    Parameters
    ----------
    means : the answers.
    a, b : the positions of the groups.
    both : (templates,) which templates have both.
    """

    means: TemplateMeans
    a: int
    b: int
    both: BoolArray

    @property
    def templates(self) -> int:
        """The number of templates that have both."""
        return int(self.both.sum())

    @property
    def n(self) -> int:
        """The number of answers."""
        return int(self.means.n[self.both][:, [self.a, self.b]].sum())

    @cached_property
    def comparison(self) -> PairedComparison | None:
        """The differences a - b with their test; None without templates."""
        mean = self.means.mean[self.both]
        return compare_pairs(mean[:, self.a] - mean[:, self.b], self.means.largest) if self.templates else None

    @cached_property
    def spread(self) -> Spread:
        """The standard deviations of the difference between templates and of answers between repetitions.

        With m_a and m_b repetitions and the variance s² of one, the differences vary by that between templates plus the
        mean of s² (1 / m_a + 1 / m_b): a method of moments, 0 where it would be negative. Without repetitions,
        which alone tell the two apart, nothing is known.
        """
        n = self.means.n[self.both][:, [self.a, self.b]]
        freedom = int((n - 1).sum())
        if self.templates < 2 or freedom < 1 or self.comparison is None:
            return Spread()
        replicate = float(self.means.squares[self.both][:, [self.a, self.b]].sum()) / freedom
        total = float(self.comparison.differences.var(ddof=1))
        between = max(total - replicate * float((1.0 / n).sum(axis=1).mean()), 0.0)
        return Spread(sqrt(between), sqrt(replicate), between / total if total > 0.0 else None)


def value_estimates(
    means: TemplateMeans, grouping: str | None, groups: Sequence[str], metric: str, spec: PairedSpec
) -> list[Estimate[PairedValue]]:
    """Return the mean of each group over its templates, with limits at any confidence."""
    is_share = METRICS[metric].unit == "share"

    def at(confidence: float) -> Iterator[PairedValue]:
        for position, group in enumerate(groups):
            of_group = means.values(position)
            if not of_group.size:
                continue
            low, high = _limits(of_group, is_share, confidence)
            joint = _limits(of_group, is_share, bonferroni(confidence, len(groups)))
            yield PairedValue(
                grouping=grouping,
                group=group,
                metric=metric,
                n=int(means.n[:, position].sum()),
                value=float(of_group.mean()),
                low=low,
                high=high,
                joint_low=joint[0],
                joint_high=joint[1],
                templates=len(of_group),
                status=OK if high is not None else shared("no_interval", why=_why_no_limits(len(of_group))),
            )

    return estimates_at(at, spec.confidence, lambda record: record.group)


def _why_no_limits(templates: int) -> Message:
    return say("one_template" if templates < 2 else "all_alike")


def _limits(of_templates: FloatArray, is_share: bool, confidence: float) -> tuple[float | None, float | None]:
    """Return the limits of a mean over templates: Student's, of a share Wilson's with as many trials as it has error.

    A share of 0 or 1 in all templates has as many trials as there are templates.
    """
    templates = len(of_templates)
    mean, variance = float(of_templates.mean()), float(of_templates.var(ddof=1)) / templates if templates > 1 else 0.0
    if templates < 2 or (not is_share and variance == 0.0):
        return None, None
    if is_share:
        trials = mean * (1.0 - mean) / variance if variance > 0.0 else templates
        limits = wilson(mean, trials, confidence, df=templates - 1)
        return float(limits.low), float(limits.high)
    low, high = student_t(mean, sqrt(variance), templates - 1, confidence)
    return float(low), float(high)


def gap_estimates(
    means: TemplateMeans, grouping: ComparedGroups, metric: str, spec: PairedSpec
) -> list[Estimate[PairedGap]]:
    """Return the gap of each group to the reference, and that of the worst pair."""
    pairs = [means.pair(a, b) for a, b in combinations(range(len(grouping.groups)), 2)]
    tested = [pair for pair in pairs if pair.templates >= spec.min_count]
    to_reference = [means.pair(group, grouping.reference) for group in grouping.others]

    def at(confidence: float) -> Iterator[PairedGap]:
        yield _worst(tested, grouping, metric, confidence, spec)
        for pair in to_reference:
            yield _gap(pair, grouping, metric, "reference", len(to_reference), confidence, spec)

    return estimates_at(at, spec.confidence, lambda gap: (gap.against, gap.group, gap.reference))


def _gap(
    pair: TemplatePair,
    grouping: ComparedGroups,
    metric: str,
    against: Against,
    family: int,
    confidence: float,
    spec: PairedSpec,
) -> PairedGap:
    compared = pair.comparison if pair.templates >= spec.min_count else None
    few = say("few_templates", n=pair.templates, least=spec.min_count)
    low, high = (None, None) if compared is None else compared.limits(confidence)
    joint = (None, None) if compared is None else compared.limits(bonferroni(confidence, family))
    return PairedGap(
        grouping=grouping.name,
        group=grouping.groups[pair.a],
        reference=grouping.groups[pair.b],
        metric=metric,
        kind="difference",
        against=against,
        n=pair.n,
        value=None if pair.comparison is None else finite(pair.comparison.mean),
        low=low,
        high=high,
        joint_low=joint[0],
        joint_high=joint[1],
        p_value=None if compared is None else compared.p_value,
        worse_off=_worse_off(pair, grouping, metric, spec),
        templates=pair.templates,
        template_sd=pair.spread.template_sd,
        replicate_sd=pair.spread.replicate_sd,
        template_share=pair.spread.template_share,
        status=OK if compared is not None else shared("no_interval" if pair.templates else "undefined", why=few),
    )


def _worst(
    pairs: Sequence[TemplatePair], grouping: ComparedGroups, metric: str, confidence: float, spec: PairedSpec
) -> PairedGap:
    """Return the largest difference; its test and its near limit allow for all pairs, its far limit need not."""
    compared = [pair.comparison for pair in pairs if pair.comparison is not None]
    if not compared:
        why = shared("two_groups_needed", least=spec.min_count)
        return PairedGap(
            grouping=grouping.name,
            metric=metric,
            kind="difference",
            against="worst_pair",
            n=int(sum(grouping.sizes)),
            value=None,
            status=shared("undefined", why=why),
        )
    worst = max(pairs, key=lambda pair: abs(pair.comparison.mean if pair.comparison is not None else 0.0))
    if worst.comparison is not None and worst.comparison.mean < 0:
        worst = worst.means.pair(worst.b, worst.a)
    gap = _gap(worst, grouping, metric, "worst_pair", 1, confidence, spec)
    far, near = (
        Interval(*np.array([each.limits(level) for each in compared]).T)
        for level in (confidence, bonferroni(confidence, len(compared)))
    )
    low, high = widest_difference(near, far)
    p_value = min(1.0, len(compared) * min(each.p_value for each in compared))
    return replace(gap, low=low, high=high, joint_low=low, joint_high=high, p_value=p_value)


def _worse_off(pair: TemplatePair, grouping: ComparedGroups, metric: str, spec: PairedSpec) -> str | None:
    """Return the group with the worse value; None if the sides are equal, or nobody said which is worse."""
    difference = 0.0 if pair.comparison is None else pair.comparison.mean
    if spec.favourable is None or metric == "refusal_rate" or difference == 0.0:
        return None
    is_a = (difference < 0) == (spec.favourable == "higher")
    return grouping.groups[pair.a if is_a else pair.b]


# Placebos -------------------------------------------------------------------------------------------------------------

_MOST_VALUES = 50


def placebo_records(answers: Answers, metric: str, largest: float, spec: PairedSpec) -> tuple[PlaceboRecord, ...]:
    """Return the comparison of every two values of each placebo, within templates and groups."""
    inside = np.column_stack([answers.template, *answers.groups.codes.values()])
    place = np.unique(inside, axis=0, return_inverse=True)[1].ravel()
    pairs: list[tuple[str, tuple[str, str], TemplatePair]] = []
    for name, column in answers.placebos.items():
        labels = column.labels
        if len(labels) > _MOST_VALUES:
            raise DataError(
                "the placebo {name!r} has {number} values; at most {most} can be compared.",
                name=name,
                number=len(labels),
                most=_MOST_VALUES,
            )
        means = TemplateMeans.build(place, column.codes, len(labels), answers.of(metric), largest)
        compared = ((means.pair(a, b), (labels[a], labels[b])) for a, b in combinations(range(len(labels)), 2))
        pairs += [(name, named, pair) for pair, named in compared if pair.templates >= spec.min_count]
    tests = [pair.comparison.p_value if pair.comparison is not None else nan for *_, pair in pairs]
    adjusted = adjusted_p(tests).tolist() if tests else []
    return tuple(
        _placebo(name, metric, named, pair, spec.confidence, p_adjusted)
        for (name, named, pair), p_adjusted in zip(pairs, adjusted, strict=True)
    )


def _placebo(
    name: str, metric: str, named: tuple[str, str], pair: TemplatePair, confidence: float, p_adjusted: float
) -> PlaceboRecord:
    compared = pair.comparison
    assert compared is not None  # noqa: S101
    low, high = compared.limits(confidence)
    first, second = named
    return PlaceboRecord(
        placebo=name,
        metric=metric,
        first=first,
        second=second,
        pairs=pair.templates,
        value=compared.mean,
        low=low,
        high=high,
        p_value=compared.p_value,
        p_adjusted=p_adjusted,
    )
