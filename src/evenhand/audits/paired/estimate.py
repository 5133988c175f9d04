"""Means over templates, differences within templates, and comparisons of placebos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import nan

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
from evenhand.stats.intervals import bonferroni
from evenhand.stats.multiplicity import adjusted_p
from evenhand.stats.within_units import UnitMeans, UnitPair, largest_difference, mean_limits


def value_estimates(
    means: UnitMeans, grouping: str | None, groups: Sequence[str], metric: str, spec: PairedSpec
) -> list[Estimate[PairedValue]]:
    """Return each group's mean over its templates, with limits at any confidence."""
    is_share = METRICS[metric].unit == "share"

    def at(confidence: float) -> Iterator[PairedValue]:
        for position, group in enumerate(groups):
            of_group = means.values(position)
            if not of_group.size:
                continue
            low, high = mean_limits(of_group, is_share, confidence)
            joint = mean_limits(of_group, is_share, bonferroni(confidence, len(groups)))
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


def gap_estimates(
    means: UnitMeans, grouping: ComparedGroups, metric: str, spec: PairedSpec
) -> list[Estimate[PairedGap]]:
    """Return the gap of each group to the reference, and the worst pair's gap."""
    pairs = [means.pair(a, b) for a, b in combinations(range(len(grouping.groups)), 2)]
    tested = [pair for pair in pairs if pair.units >= spec.min_count]
    to_reference = [means.pair(group, grouping.reference) for group in grouping.others]

    def at(confidence: float) -> Iterator[PairedGap]:
        yield _worst(tested, grouping, metric, confidence, spec)
        for pair in to_reference:
            yield _gap(pair, grouping, metric, "reference", len(to_reference), confidence, spec)

    return estimates_at(at, spec.confidence, lambda gap: (gap.against, gap.group, gap.reference))


def _gap(
    pair: UnitPair,
    grouping: ComparedGroups,
    metric: str,
    against: Against,
    family: int,
    confidence: float,
    spec: PairedSpec,
) -> PairedGap:
    compared = pair.comparison if pair.units >= spec.min_count else None
    few = say("few_templates", n=pair.units, least=spec.min_count)
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
        templates=pair.units,
        template_sd=pair.spread.between_sd,
        replicate_sd=pair.spread.replicate_sd,
        template_share=pair.spread.between_share,
        status=OK if compared is not None else shared("no_interval" if pair.units else "undefined", why=few),
    )


def _worst(
    pairs: Sequence[UnitPair], grouping: ComparedGroups, metric: str, confidence: float, spec: PairedSpec
) -> PairedGap:
    """Return the largest difference; its test and near limit are adjusted for all pairs, its far limit is not."""
    if not pairs:
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
    worst = largest_difference(pairs, confidence)
    gap = _gap(worst.pair, grouping, metric, "worst_pair", 1, confidence, spec)
    low, high = worst.low, worst.high
    return replace(gap, low=low, high=high, joint_low=low, joint_high=high, p_value=worst.p_value)


def _worse_off(pair: UnitPair, grouping: ComparedGroups, metric: str, spec: PairedSpec) -> str | None:
    """Return the group with the worse value; None if the values are equal or the worse direction is not set."""
    difference = 0.0 if pair.comparison is None else pair.comparison.mean
    if spec.favourable is None or metric == "refusal_rate" or difference == 0.0:
        return None
    is_a = (difference < 0) == (spec.favourable == "higher")
    return grouping.groups[pair.a if is_a else pair.b]


# Placebos -------------------------------------------------------------------------------------------------------------

_MOST_VALUES = 50


def placebo_records(answers: Answers, metric: str, largest: float, spec: PairedSpec) -> tuple[PlaceboRecord, ...]:
    """Return comparisons of every two values of each placebo, within templates and groups."""
    inside = np.column_stack([answers.template, *answers.groups.codes.values()])
    place = np.unique(inside, axis=0, return_inverse=True)[1].ravel()
    pairs: list[tuple[str, tuple[str, str], UnitPair]] = []
    for name, column in answers.placebos.items():
        labels = column.labels
        if len(labels) > _MOST_VALUES:
            raise DataError(
                "the placebo {name!r} has {number} values; at most {most} can be compared.",
                name=name,
                number=len(labels),
                most=_MOST_VALUES,
            )
        means = UnitMeans.build(place, column.codes, len(labels), answers.of(metric), largest)
        compared = ((means.pair(a, b), (labels[a], labels[b])) for a, b in combinations(range(len(labels)), 2))
        pairs += [(name, named, pair) for pair, named in compared if pair.units >= spec.min_count]
    tests = [pair.comparison.p_value if pair.comparison is not None else nan for *_, pair in pairs]
    adjusted = adjusted_p(tests).tolist() if tests else []
    return tuple(
        _placebo(name, metric, named, pair, spec.confidence, p_adjusted)
        for (name, named, pair), p_adjusted in zip(pairs, adjusted, strict=True)
    )


def _placebo(
    name: str, metric: str, named: tuple[str, str], pair: UnitPair, confidence: float, p_adjusted: float
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
        pairs=pair.units,
        value=compared.mean,
        low=low,
        high=high,
        p_value=compared.p_value,
        p_adjusted=p_adjusted,
    )
