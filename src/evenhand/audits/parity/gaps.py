"""Gaps between groups: differences and ratios of the worst pair, to a reference group, and to everybody.

Independent groups are compared through their own limits (MOVER; Welch's t for means). The worst of all pairs
is a noisy maximum, biased away from equality, so its interval comes from simultaneous intervals of every pair
(Bonferroni): it covers the true worst gap whichever pair that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.audits.parity.estimates import GroupValues
from evenhand.core.spec import Against, Kind
from evenhand.stats.intervals import (
    bonferroni,
    mover_difference,
    mover_ratio,
    narrowest_ratio,
    normal_quantile,
    student_t,
    welch_difference,
    welch_log_ratio,
    widest_difference,
)
from evenhand.stats.types import FloatArray, IntArray, Interval


@dataclass(frozen=True)
class Gap:
    """One gap in numbers: positions of the two groups (-1 for everybody), value and limits (nan: undefined)."""

    kind: Kind
    against: Against
    group: int | None
    high: int
    low: int
    value: float
    limits: tuple[float, float]


def compare(a: GroupValues, b: GroupValues, kind: Kind, confidence: float, *, on_logs: bool) -> Interval:
    """Return limits of a - b or a / b for independent groups, pairwise.

    Parameters
    ----------
    a, b : the two sides, arrays of one length.
    kind : difference or ratio.
    confidence : of each pair on its own.
    on_logs : for the ratio of means, Welch's t on the log scale instead of Fieller's limits.
    """
    if a.metric.kind == "mean":
        return _compare_means(a, b, kind, confidence, on_logs=on_logs)
    move = mover_difference if kind == "difference" else mover_ratio
    return move(a.value, a.limits(confidence), b.value, b.limits(confidence))


def _compare_means(a: GroupValues, b: GroupValues, kind: Kind, confidence: float, *, on_logs: bool) -> Interval:
    sides = (a.value, a.stderr, a.trials - 1, b.value, b.stderr, b.trials - 1)
    if kind == "difference":
        limits = welch_difference(*sides, confidence)
    elif on_logs:
        limits = welch_log_ratio(*sides, confidence)
    else:
        # With symmetric limits MOVER's ratio is Fieller's; the limits on the logit scale are not symmetric.
        first, second = (student_t(side.value, side.stderr, side.trials - 1, confidence) for side in (a, b))
        limits = mover_ratio(a.value, first, b.value, second)
    # Where nobody differs within either group, the data says nothing of how far the means may be off.
    known = (a.stderr > 0) | (b.stderr > 0)
    return Interval(np.where(known, limits.low, np.nan), np.where(known, limits.high, np.nan))


def worst_pair(values: GroupValues, groups: IntArray, kind: Kind, confidence: float) -> Gap:
    """Return the largest difference (or the smallest ratio) among some groups, with a simultaneous interval.

    References
    ----------
    methods: simultaneous pairwise intervals, Bonferroni over pairs. For the ratio r of every pair, the parity
    min r lies in [exp(-max upper |log r|), exp(-max(0, max lower |log r|))]; alike for differences.
    """
    kept = values.only(groups)
    top, bottom = int(np.argmax(kept.value)), int(np.argmin(kept.value))
    i, j = np.triu_indices(len(groups), 1)
    limits = compare(kept.only(i), kept.only(j), kind, bonferroni(confidence, len(i)), on_logs=True)
    if kind == "difference":
        value = float(kept.value[top] - kept.value[bottom])
        ends = widest_difference(*limits)
    else:
        value = _ratio(kept.value[bottom], kept.value[top])
        ends = narrowest_ratio(*limits) if kept.bounds[0] >= 0 else (np.nan, np.nan)
    return Gap(kind, "worst_pair", None, int(groups[top]), int(groups[bottom]), value, ends)


def to_reference(values: GroupValues, groups: IntArray, reference: int, kind: Kind, confidence: float) -> list[Gap]:
    """Return each group's difference from, or ratio to, the reference group."""
    others = groups[groups != reference]
    sides = values.only(others), values.only(np.full(len(others), reference))
    limits = compare(*sides, kind, confidence, on_logs=False)
    return [
        _gap(kind, "reference", int(group), reference, values.value[group], values.value[reference], (low, high))
        for group, low, high in zip(others, limits.low, limits.high, strict=True)
    ]


def to_overall(values: GroupValues, groups: IntArray, kind: Kind, limits: Interval) -> list[Gap]:
    """Return each group's difference from, or ratio to, everybody's value, with limits computed elsewhere."""
    return [
        _gap(kind, "overall", int(group), -1, values.value[group], values.overall, (low, high))
        for group, low, high in zip(groups, limits.low, limits.high, strict=True)
    ]


def overlapping_limits(values: GroupValues, groups: IntArray, kind: Kind, confidence: float) -> Interval:
    """Return limits of a group's AUC against everybody's, who include the group, by the delta method."""
    covariance = values.covariance[groups] if values.covariance is not None else np.full(len(groups), np.nan)
    value, stderr = values.value[groups], values.stderr[groups]
    z = normal_quantile(confidence)
    with np.errstate(all="ignore"):
        if kind == "difference":
            centre, variance = value - values.overall, stderr**2 + values.overall_stderr**2 - 2 * covariance
            half = z * np.sqrt(variance)
            return Interval(centre - half, centre + half)
        relative = (stderr / value) ** 2 + (values.overall_stderr / values.overall) ** 2
        half = z * np.sqrt(relative - 2 * covariance / (value * values.overall))
        ratio = value / values.overall
        return Interval(ratio * np.exp(-half), ratio * np.exp(half))


def _gap(
    kind: Kind, against: Against, group: int, base: int, value: float, base_value: float, limits: tuple[float, float]
) -> Gap:
    gap = float(value - base_value) if kind == "difference" else _ratio(value, base_value)
    high, low = (group, base) if value >= base_value else (base, group)
    return Gap(kind, against, group, high, low, gap, (float(limits[0]), float(limits[1])))


def _ratio(above: FloatArray | float, below: FloatArray | float) -> float:
    return float(above / below) if below > 0 else float("nan")
