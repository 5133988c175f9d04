"""Records of gaps between groups: gaps to the reference group, largest gaps of all pairs, and parts by feature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from evenhand.audits.reliability.estimate import Simulated, why_undefined_at
from evenhand.audits.reliability.evidence import MeanGap, level_gaps, mean_gap
from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.metrics import measures_harm
from evenhand.audits.reliability.result import AttributionRecord, ReliabilityGap
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.groups import ComparedGroups
from evenhand.core.records import OK, Against
from evenhand.core.thresholds import size_of_gap
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.intervals import bonferroni
from evenhand.stats.noise import Attribution
from evenhand.stats.reliability import Curves, curves, run_band, share_lower


def gap_records(simulated: Simulated, spec: ReliabilitySpec) -> Iterator[ReliabilityGap]:
    """Yield the gaps of every metric to the reference group, and the largest gap of all pairs of groups.

    Each gap to the reference is yielded first as the mean over levels above 0, and then at each of these levels.
    """
    if not np.any(simulated.experiment.levels > 0):
        return
    for name in spec.metrics:
        curve = curves(simulated.experiment, simulated.runs, name)
        to_reference: list[ReliabilityGap] = []
        for group in simulated.groups.others:
            to_reference += _gaps_to_reference(simulated, name, curve, group, spec)
        yield from to_reference
        if len(simulated.groups.groups) > 2:
            yield _worst_pair(simulated, name, spec)
        elif to_reference:
            yield _as_worst_pair(to_reference[0])


def undefined_gaps(model: str, setting: str, groups: ComparedGroups, spec: ReliabilitySpec) -> Iterator[ReliabilityGap]:
    """Yield the undefined gaps, with the reason, of a grouping that lacks two large enough groups."""
    against: tuple[Against, ...] = ("reference", "worst_pair")
    for name in spec.metrics:
        for pair in against:
            yield ReliabilityGap(
                model=model,
                grouping=groups.name,
                metric=name,
                kind="difference",
                against=pair,
                n=sum(groups.sizes),
                value=None,
                status=shared("undefined", why=shared("two_groups_needed", least=spec.min_count)),
                setting=setting,
            )


GapKey = tuple[str | float | None, ...]
"""The key of a gap within a result."""


def gap_key(gap: ReliabilityGap) -> GapKey:
    """Return the model, setting, grouping, metric, comparison, groups and noise level of a gap."""
    whose = (gap.model, gap.setting, gap.grouping, gap.metric, gap.against)
    return (*whose, gap.group, gap.reference, gap.noise_level)


def with_worse_off(gap: ReliabilityGap) -> ReliabilityGap:
    """Return a significant gap with its worse-off group, if its metric measures harm by mistakes."""
    lower = gap.group if (gap.value or 0.0) < 0 else gap.reference
    return replace(gap, worse_off=lower if gap.value and measures_harm(gap.metric) else None)


def is_significant(gap: ReliabilityGap, spec: ReliabilitySpec) -> bool:
    """Return whether a gap is significantly different from 0, adjusted over all tables of the run."""
    return bool(gap.value) and gap.p_adjusted is not None and gap.p_adjusted <= 1.0 - spec.confidence


# Gaps to the reference ------------------------------------------------------------------------------------------------


def _gaps_to_reference(
    simulated: Simulated, name: str, curve: Curves, group: int, spec: ReliabilitySpec
) -> Iterator[ReliabilityGap]:
    above, pair = np.flatnonzero(curve.levels > 0), (group, simulated.groups.reference)
    mean = mean_gap(simulated, name, pair, spec)
    whole = level_gaps(simulated, name, pair, mean, spec)
    gap = whole.gap
    common = ReliabilityGap(
        **simulated.coordinates,
        group=simulated.label(pair[0]),
        reference=simulated.label(pair[1]),
        metric=name,
        kind="difference",
        against="reference",
        n=simulated.groups.sizes[pair[0]] + simulated.groups.sizes[pair[1]],
        value=None,
    )
    yield replace(
        _with_test(common, mean, len(simulated.groups.others), spec),
        share_lower=finite(float(share_lower(gap.value))),
        replicate_sd=finite(whole.sd[-1]),
    )
    for position, level in enumerate(above.tolist()):
        undefined = why_undefined_at(curve, level, pair)
        status = undefined or whole.untested or whole.no_interval[position] or OK
        limits = (gap.simultaneous.low[position], gap.simultaneous.high[position])
        low, high = (finite(end) if status == OK else None for end in limits)
        yield replace(
            common,
            value=finite(gap.value[position]),
            low=low,
            high=high,
            joint_low=low,
            joint_high=high,
            status=status,
            noise_level=float(curve.levels[level]),
            stderr=finite(gap.stderr[position]),
            replicate_sd=finite(whole.sd[position]),
        )


def _with_test(gap: ReliabilityGap, mean: MeanGap, together: int, spec: ReliabilitySpec) -> ReliabilityGap:
    """Return a gap with the mean over levels, its limits and its test.

    If there are several groups, add simultaneous limits.
    """
    gap = replace(gap, value=finite(mean.value), status=mean.unknown or OK)
    if mean.unknown is not None:
        return gap
    low, high = map(finite, mean.limits(spec.confidence))
    joint = map(finite, mean.limits(bonferroni(spec.confidence, together))) if together > 1 else (None, None)
    joint_low, joint_high = joint
    return replace(
        gap,
        low=low,
        high=high,
        joint_low=joint_low,
        joint_high=joint_high,
        p_value=finite(mean.p_value),
        stderr=finite(mean.stderr),
        df=finite(mean.freedom),
        rests_on=mean.rests_on,
    )


# The worst pair -------------------------------------------------------------------------------------------------------


def _as_worst_pair(gap: ReliabilityGap) -> ReliabilityGap:
    """Return the only gap of two groups as a worst-pair gap, with the higher group first."""
    value, low, high = size_of_gap("difference", gap.value, gap.low, gap.high)
    group, reference = gap.group, gap.reference
    if (gap.value or 0.0) < 0:
        group, reference = reference, group
    return replace(
        gap,
        against="worst_pair",
        group=group,
        reference=reference,
        value=None if value is None else abs(value),
        low=low,
        high=high,
        joint_low=low,
        joint_high=high,
        share_lower=None,
        replicate_sd=None,
    )


def _worst_pair(simulated: Simulated, name: str, spec: ReliabilitySpec) -> ReliabilityGap:
    """Return the largest gap of all pairs.

    The lower limit is the largest of the pairs' lower limits, which hold simultaneously for all pairs (Bonferroni).
    The upper limit is the largest of the pairs' individual upper limits, because only the limit of the true worst pair
    must hold. If a pair has no limits, there is no upper limit. The p-value is the smallest p-value of the pairs times
    the number of pairs.
    """
    pairs = {
        pair: mean_gap(simulated, name, pair, spec) for pair in combinations(range(len(simulated.groups.groups)), 2)
    }
    sized = {pair: gap for pair, gap in pairs.items() if np.isfinite(gap.value)}
    (first, second), worst = max((sized or pairs).items(), key=lambda item: abs(item[1].value))
    higher, lower = (second, first) if worst.value < 0 else (first, second)
    low, high, p_value = _worst_limits(list(pairs.values()), spec)
    has_limits = worst.unknown is None
    return ReliabilityGap(
        **simulated.coordinates,
        group=simulated.label(higher),
        reference=simulated.label(lower),
        metric=name,
        kind="difference",
        against="worst_pair",
        n=sum(simulated.groups.sizes),
        value=finite(abs(worst.value)),
        low=low,
        high=high,
        joint_low=low,
        joint_high=high,
        p_value=p_value,
        status=_worst_status(list(pairs.values())) if sized else worst.unknown or OK,
        stderr=finite(worst.stderr) if has_limits else None,
        df=finite(worst.freedom) if has_limits else None,
        rests_on=worst.rests_on,
    )


def _worst_limits(pairs: Sequence[MeanGap], spec: ReliabilitySpec) -> tuple[float | None, float | None, float | None]:
    """Return the limits of the largest gap, and the p-value of the hypothesis that no pair has a gap."""
    with_limits = [pair for pair in pairs if pair.unknown is None]
    if not with_limits:
        return None, None, None
    near = [pair.limits(bonferroni(spec.confidence, len(pairs))) for pair in with_limits]
    least = max([0.0, *(max(low, -high) for low, high in near)])
    p_value = min([1.0, *(len(pairs) * pair.p_value for pair in with_limits)])
    if len(with_limits) == len(pairs):
        far = [pair.limits(spec.confidence) for pair in with_limits]
        return finite(least), finite(max(max(high, -low) for low, high in far)), finite(p_value)
    return finite(least) if least > 0 else None, None, finite(p_value)  # without a significant gap, nothing is known


def _worst_status(pairs: Sequence[MeanGap]) -> Message:
    unknown = [pair.unknown for pair in pairs if pair.unknown is not None]
    if not unknown:
        return OK
    why = unknown[0].args["why"] if unknown[0].id == "core.no_interval" else unknown[0]
    without = say("pairs_without_interval", n=len(unknown), pairs=len(pairs), why=why)
    return shared("unbounded_above", why=without)


# Attribution to features ---------------------------------------------------------------------------------------------


def attribution_records(simulated: Simulated, spec: ReliabilitySpec) -> Iterator[AttributionRecord]:
    """Yield the contribution of each feature's mistakes to the gaps.

    Shares of the gap are given only for gaps significantly different from 0.
    """
    for name, attribution in simulated.attributions.items():
        for group in simulated.groups.others:
            yield from _parts_of_gap(simulated, name, attribution, group, spec)


def _parts_of_gap(
    simulated: Simulated, name: str, attribution: Attribution, group: int, spec: ReliabilitySpec
) -> Iterator[AttributionRecord]:
    level, reference = float(simulated.mistakes.attribution_level or 0.0), simulated.groups.reference
    parts = attribution.values[:, :, group] - attribution.values[:, :, reference]
    band = run_band(parts, spec.confidence) if len(parts) > 1 else None
    mean = parts.mean(axis=0)
    total = float(mean.sum())
    whole = mean_gap(simulated, name, (group, reference), spec)
    clear = level_gaps(simulated, name, (group, reference), whole, spec).clear_at(level)
    has_shares = clear and abs(total) > 1e-9
    for item, feature in enumerate(simulated.mistakes.names):
        value = finite(mean[item])
        yield AttributionRecord(
            **simulated.coordinates,
            group=simulated.label(group),
            reference=simulated.label(reference),
            metric=name,
            noise_level=level,
            feature=feature,
            value=value,
            share=finite(mean[item] / total) if value is not None and has_shares else None,
            replicate_low=None if band is None else finite(band.low[item]),
            replicate_high=None if band is None else finite(band.high[item]),
            method="exact" if attribution.exact else "sampled",
            status=OK if value is not None else shared("undefined", why=say("needs_all_mistakes")),
        )
