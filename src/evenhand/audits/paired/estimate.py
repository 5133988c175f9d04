"""Means over templates, differences within templates, and comparisons of placebos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import nan

import numpy as np

from evenhand.audits.paired.gather import Answers
from evenhand.audits.paired.messages import say
from evenhand.audits.paired.metrics import METRICS
from evenhand.audits.paired.result import PairedGap, PairedValue, PlaceboRecord
from evenhand.audits.paired.spec import PairedSpec
from evenhand.core.estimates import Estimate
from evenhand.core.groups import ComparedGroups
from evenhand.core.within_units import gaps_within_units, values_within_units
from evenhand.errors import DataError
from evenhand.messages.shared import say as shared
from evenhand.stats.multiplicity import adjusted_p
from evenhand.stats.within_units import UnitMeans, UnitPair


def value_estimates(
    means: UnitMeans, grouping: str | None, groups: Sequence[str], metric: str, spec: PairedSpec
) -> list[Estimate[PairedValue]]:
    """Return each group's mean over its templates, with limits at any confidence."""
    return values_within_units(
        means,
        groups,
        PairedValue(grouping=grouping, metric=metric, n=0, value=None, templates=0),
        spec.confidence,
        is_share=METRICS[metric].unit == "share",
        complete=lambda record, templates: replace(record, templates=templates),
        why_no_limits=lambda templates: say("one_template" if templates < 2 else "all_alike"),
    )


def gap_estimates(
    means: UnitMeans, grouping: ComparedGroups, metric: str, spec: PairedSpec
) -> list[Estimate[PairedGap]]:
    """Return the worst pair's gap, and the gap of each group to the reference."""
    undefined = PairedGap(
        grouping=grouping.name,
        metric=metric,
        kind="difference",
        against="worst_pair",
        n=int(sum(grouping.sizes)),
        value=None,
        status=shared("undefined", why=shared("two_groups_needed", least=spec.min_count)),
    )
    found = gaps_within_units(
        means,
        grouping,
        undefined,
        spec.confidence,
        least=spec.min_count,
        complete=_with_spread,
        few=lambda templates: say("few_templates", n=templates, least=spec.min_count),
    )
    return [gap.map(lambda record: _with_worse_off(record, spec)) for gap in found]


def _with_spread(gap: PairedGap, pair: UnitPair) -> PairedGap:
    """Return a gap with the number of templates, and the variation of the differences between them."""
    return replace(
        gap,
        templates=pair.units,
        template_sd=pair.spread.between_sd,
        replicate_sd=pair.spread.replicate_sd,
        template_share=pair.spread.between_share,
    )


def _with_worse_off(gap: PairedGap, spec: PairedSpec) -> PairedGap:
    """Return a gap with the group of the worse value, if the values differ and the worse direction is set."""
    if spec.favourable is None or gap.metric == "refusal_rate" or not gap.value:
        return gap
    return replace(gap, worse_off=gap.group if (gap.value < 0) == (spec.favourable == "higher") else gap.reference)


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
        _placebo(PlaceboRecord(placebo=name, metric=metric, first=a, second=b, pairs=pair.units), pair, spec, p)
        for (name, (a, b), pair), p in zip(pairs, adjusted, strict=True)
    )


def _placebo(record: PlaceboRecord, pair: UnitPair, spec: PairedSpec, p_adjusted: float) -> PlaceboRecord:
    """Return a record with the difference, its limits and its p-values."""
    compared = pair.comparison
    assert compared is not None  # noqa: S101
    low, high = compared.limits(spec.confidence)
    return replace(record, value=compared.mean, low=low, high=high, p_value=compared.p_value, p_adjusted=p_adjusted)
