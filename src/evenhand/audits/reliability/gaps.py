"""Gaps between groups as records: to the reference group, the largest of all pairs, and what each feature adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from evenhand.audits.reliability.estimate import (
    Simulated,
    centred,
    why_no_intervals,
    why_rests_on_few,
    why_undefined_at,
    why_untested,
)
from evenhand.audits.reliability.metrics import measures_harm
from evenhand.audits.reliability.result import AttributionRecord, ReliabilityGap
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.formats import finite
from evenhand.core.groups import ComparedGroups
from evenhand.core.records import Against
from evenhand.core.thresholds import size_of_gap
from evenhand.errors import count
from evenhand.stats.intervals import bonferroni, t_quantile
from evenhand.stats.noise import Attribution
from evenhand.stats.reliability import (
    Curves,
    Gap,
    curves,
    gap_of,
    pilot_variance,
    run_band,
    share_lower,
    spread_of_runs,
)
from evenhand.stats.types import FloatArray


def gap_records(simulated: Simulated, spec: ReliabilitySpec) -> Iterator[ReliabilityGap]:
    """Yield the gaps of every metric to the reference group, and the largest of all pairs of groups.

    A gap to the reference is yielded as the mean over levels above 0, and then at each of them.
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
            yield _worst_pair(simulated, name, curve, spec)
        elif to_reference:
            yield _as_worst_pair(to_reference[0])


def undefined_gaps(model: str, setting: str, groups: ComparedGroups, spec: ReliabilitySpec) -> Iterator[ReliabilityGap]:
    """Yield the gaps of a grouping without two groups that are large enough: they say why there is no number."""
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
                status=f"undefined: fewer than two groups have min_count {spec.min_count} people",
                setting=setting,
            )


def with_worse_off(gap: ReliabilityGap) -> ReliabilityGap:
    """Return a gap with whom mistakes hurt more, if the gap is beyond chance."""
    lower = gap.group if (gap.value or 0.0) < 0 else gap.reference
    return replace(gap, worse_off=lower if gap.value and measures_harm(gap.metric) else None)


def is_clear(gap: ReliabilityGap, spec: ReliabilitySpec) -> bool:
    """Tell whether a gap differs clearly from 0, all tables of the run considered."""
    return bool(gap.value) and gap.p_adjusted is not None and gap.p_adjusted <= 1.0 - spec.confidence


# Gaps to the reference ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReferenceGap:
    """A group's gap to the reference group, and why it may not be tested.

    Parameters
    ----------
    gap : at every noise level above 0, and on average.
    levels : those noise levels.
    sd : (levels + 1,) standard deviations between replicates.
    untested : why nothing of it is tested, None where it may be.
    no_interval : for each level, and last for the average, why there is no interval.
    """

    gap: Gap
    levels: FloatArray
    sd: FloatArray
    untested: str | None
    no_interval: list[str | None]

    def clear_at(self, level: float) -> bool:
        """Tell whether the interval of the gap at a noise level leaves out 0; between levels that of the average."""
        gap, positions = self.gap, np.flatnonzero(self.levels == level)
        position = int(positions[0]) if positions.size else -1
        low, high = gap.average_low, gap.average_high
        if positions.size:
            low, high = gap.simultaneous.low[position], gap.simultaneous.high[position]
        return self.untested is None and self.no_interval[position] is None and bool(low > 0 or high < 0)


def reference_gap(simulated: Simulated, name: str, group: int, spec: ReliabilitySpec) -> ReferenceGap:
    """Return the gap of a metric between a group and the reference group."""
    curve = curves(simulated.experiment, simulated.runs, name)
    above, reference = curve.levels > 0, simulated.groups.reference
    runs = _gap_runs(curve, group, reference)
    draws = centred(simulated.draws.gap(name, group, reference), runs.mean(axis=0))
    freedom = simulated.draws.freedom(name, group, reference)
    least = simulated.draws.pooled_stderr(name, group, reference)
    variance = float(np.fmax(draws.stderr()[-1], least)) ** 2
    more, freedom = _with_pilot(simulated, name, runs, (group, reference), variance, freedom, spec)
    gap = gap_of(draws, spec.confidence, freedom, curve.levels[above], least, more)
    rests = why_rests_on_few(simulated, name, (group, reference))
    return ReferenceGap(
        gap,
        curve.levels[above],
        spread_of_runs(runs),
        why_untested(simulated, name, (group, reference)),
        [why or rests for why in why_no_intervals(draws)],
    )


def _gap_runs(curve: Curves, group: int, reference: int) -> FloatArray:
    """Return (replicates, levels + 1) the gaps at levels above 0, and last their mean."""
    above = curve.levels > 0
    runs = curve.values[:, above, group] - curve.values[:, above, reference]
    return np.concatenate([runs, runs.mean(axis=1, keepdims=True)], axis=1)


def _with_pilot(
    simulated: Simulated,
    name: str,
    runs: FloatArray,
    pair: tuple[int, int],
    variance: float,
    freedom: float,
    spec: ReliabilitySpec,
) -> tuple[FloatArray | None, float]:
    """Return what a pilot that was learned by group adds to the variance of gaps, and the degrees of freedom with it.

    What random mistakes add is taken off where that is known well enough; otherwise, where the interval is shorter for
    it, it stays in.
    """
    settings = simulated.mistakes.setting.pilot
    if simulated.same_pilot is None or settings is None:
        return None, freedom
    fixed = _gap_runs(curves(simulated.experiment, simulated.same_pilot, name), *pair)
    choices = []
    for pilot in (pilot_variance(runs, other, float(settings.enough)) for other in (fixed, None)):
        joint = pilot.freedom(-1, variance, freedom)
        half = float(t_quantile(joint, spec.confidence)) * float(np.sqrt(variance + pilot.value[-1]))
        choices.append((half, pilot.value, joint))
    _, value, joint = min(choices, key=lambda choice: choice[0])
    return value, joint


def _gaps_to_reference(
    simulated: Simulated, name: str, curve: Curves, group: int, spec: ReliabilitySpec
) -> Iterator[ReliabilityGap]:
    above, reference = np.flatnonzero(curve.levels > 0), simulated.groups.reference
    whole = reference_gap(simulated, name, group, spec)
    gap, pair = whole.gap, (group, reference)
    common = ReliabilityGap(
        **simulated.coordinates,
        group=simulated.label(group),
        reference=simulated.label(reference),
        metric=name,
        kind="difference",
        against="reference",
        n=simulated.groups.sizes[group] + simulated.groups.sizes[reference],
        value=None,
    )
    status = _average_status(gap, curve, pair) or whole.untested or whole.no_interval[-1] or "ok"
    mean = replace(
        common,
        value=finite(gap.average),
        status=status,
        stderr=finite(gap.average_stderr),
        share_lower=finite(float(share_lower(gap.value))),
        replicate_sd=finite(whole.sd[-1]),
    )
    yield _tested(mean, gap, len(simulated.groups.others), spec) if status == "ok" else mean
    for position, level in enumerate(above.tolist()):
        undefined = why_undefined_at(curve, level, pair)
        status = undefined or whole.untested or whole.no_interval[position] or "ok"
        limits = (gap.simultaneous.low[position], gap.simultaneous.high[position])
        low, high = (finite(end) if status == "ok" else None for end in limits)
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


def _tested(mean: ReliabilityGap, gap: Gap, together: int, spec: ReliabilitySpec) -> ReliabilityGap:
    """Return a mean gap with its limits and its test; with several groups also with limits for all of them."""
    joint_low = joint_high = None
    if together > 1:
        freedom = float("inf") if finite(gap.freedom) is None else gap.freedom
        half = float(t_quantile(freedom, bonferroni(spec.confidence, together))) * (mean.stderr or 0.0)
        joint_low, joint_high = (mean.value or 0.0) - half, (mean.value or 0.0) + half
    return replace(
        mean,
        low=finite(gap.average_low),
        high=finite(gap.average_high),
        joint_low=joint_low,
        joint_high=joint_high,
        p_value=finite(gap.p_value),
        df=finite(gap.freedom),
    )


def _average_status(gap: Gap, curve: Curves, groups: tuple[int, int]) -> str | None:
    if not np.isnan(gap.average):
        return None
    levels = np.flatnonzero(curve.levels > 0)
    lost = [why for level in levels if (why := why_undefined_at(curve, int(level), groups))]
    why = lost[0].removeprefix("undefined: ") if lost else "a replicate has no value"
    return f"undefined: at {len(lost)} of {len(levels)} noise levels, since {why}"


# The worst pair -------------------------------------------------------------------------------------------------------


def _as_worst_pair(gap: ReliabilityGap) -> ReliabilityGap:
    """Return the only gap of two groups as that of the worst pair: the group is the higher one."""
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


@dataclass(frozen=True)
class _Pair:
    """Two groups, the higher first: how far they are apart, the standard error, and half of the interval."""

    higher: int
    lower: int
    size: float
    stderr: float
    freedom: float
    half: float
    unknown: str | None


def _worst_pair(simulated: Simulated, name: str, curve: Curves, spec: ReliabilitySpec) -> ReliabilityGap:
    """Return the largest gap of all pairs, with limits that hold for all pairs together (Bonferroni).

    The largest true gap is at least the largest of the pairs' lower limits, and at most the largest of their upper
    limits. A pair without limits leaves it open upwards.
    """
    every = list(combinations(range(len(simulated.groups.groups)), 2))
    confidence = bonferroni(spec.confidence, len(every))
    pairs = [_pair(simulated, name, curve, pair, confidence, spec) for pair in every]
    sized = [pair for pair in pairs if np.isfinite(pair.size)]
    worst = max(sized, key=lambda pair: pair.size) if sized else pairs[0]
    low, high = _worst_limits(pairs)
    return ReliabilityGap(
        **simulated.coordinates,
        group=simulated.label(worst.higher),
        reference=simulated.label(worst.lower),
        metric=name,
        kind="difference",
        against="worst_pair",
        n=sum(simulated.groups.sizes),
        value=finite(worst.size),
        low=low,
        high=high,
        joint_low=low,
        joint_high=high,
        status=_worst_status(pairs) if sized else str(pairs[0].unknown),
        stderr=finite(worst.stderr) if worst.unknown is None else None,
        df=finite(worst.freedom) if worst.unknown is None else None,
    )


def _worst_limits(pairs: Sequence[_Pair]) -> tuple[float | None, float | None]:
    known = [pair for pair in pairs if pair.unknown is None]
    least = max([0.0, *(pair.size - pair.half for pair in known)])
    if len(known) == len(pairs):
        return finite(least), finite(max(pair.size + pair.half for pair in known))
    return finite(least) if least > 0 else None, None  # without a gap that is sure, nothing is known


def _worst_status(pairs: Sequence[_Pair]) -> str:
    unknown = [pair for pair in pairs if pair.unknown is not None]
    if not unknown:
        return "ok"
    why = str(unknown[0].unknown).removeprefix("no interval: ")
    verb = "has" if len(unknown) == 1 else "have"
    return f"unbounded above: {len(unknown)} of {count(len(pairs), 'pair')} {verb} no interval; {why}"


def _pair(
    simulated: Simulated, name: str, curve: Curves, pair: tuple[int, int], confidence: float, spec: ReliabilitySpec
) -> _Pair:
    above = curve.levels > 0
    mean = curve.mean[above].mean(axis=0)
    lower, higher = pair if not mean[pair[1]] < mean[pair[0]] else pair[::-1]
    draws = simulated.draws.gap(name, lower, higher).part(slice(-1, None))
    freedom = simulated.draws.freedom(name, lower, higher)
    lost = (why for level in np.flatnonzero(above) if (why := why_undefined_at(curve, int(level), pair)))
    untested = why_untested(simulated, name, pair) or why_no_intervals(draws)[0]
    unknown = next(lost, None) or untested or why_rests_on_few(simulated, name, pair)
    stderr = float(np.fmax(draws.stderr()[0], simulated.draws.pooled_stderr(name, lower, higher)))
    runs = _gap_runs(curve, lower, higher)
    more, freedom = _with_pilot(simulated, name, runs, (lower, higher), stderr**2, freedom, spec)
    if more is not None:
        stderr = float(np.sqrt(stderr**2 + more[-1]))
    half = float(t_quantile(freedom, confidence)) * stderr
    return _Pair(higher, lower, float(mean[higher] - mean[lower]), stderr, freedom, half, unknown)


# What each feature adds -----------------------------------------------------------------------------------------------


def attribution_records(simulated: Simulated, spec: ReliabilitySpec) -> Iterator[AttributionRecord]:
    """Yield what the mistakes in each feature add to the gaps; no shares of a gap that may be 0."""
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
    has_shares = reference_gap(simulated, name, group, spec).clear_at(level) and abs(total) > 1e-9
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
            status="ok" if value is not None else "undefined: the metric is undefined without some mistakes",
        )
