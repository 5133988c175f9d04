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
    student_t,
    t_quantile,
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


def compare(a: GroupValues, b: GroupValues, kind: Kind, confidence: float, *, simultaneous: bool = False) -> Interval:
    """Return limits of a - b or a / b for independent groups, pairwise.

    Parameters
    ----------
    a, b : the two sides, arrays of one length.
    kind : difference or ratio.
    confidence : of each pair on its own.
    simultaneous : whether the pair is one of many: then exact limits for rates, since Wilson's fail far out in the
        tails, and Welch's t on the log scale for the ratio of means.
    """
    if a.metric.kind == "mean":
        return _compare_means(a, b, kind, confidence, on_logs=simultaneous)
    move = mover_difference if kind == "difference" else mover_ratio
    limits = move(a.value, a.limits(confidence, exact=simultaneous), b.value, b.limits(confidence, exact=simultaneous))
    if kind == "ratio" and simultaneous:  # of two zeros nothing is known, which is no reason to know less of the others
        empty = (a.value == 0) & (b.value == 0)
        limits = Interval(np.where(empty, 0.0, limits.low), np.where(empty, np.inf, limits.high))
    return limits


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
    # Where nobody differs within a group, the data says nothing of how far its mean may be off.
    known = (a.stderr > 0) & (b.stderr > 0)
    return Interval(np.where(known, limits.low, np.nan), np.where(known, limits.high, np.nan))


def worst_pair(values: GroupValues, groups: IntArray, kind: Kind, confidence: float) -> Gap:
    """Return the largest difference (or the smallest ratio) among some groups, with a simultaneous interval.

    The intervals of all pairs hold together (Bonferroni). For the ratio r of every pair, the parity min r then lies in
    [exp(-max upper |log r|), exp(-max(0, max lower |log r|))]; alike for differences.
    """
    kept = values.only(groups)
    order = np.argsort(kept.value, kind="stable")
    bottom, top = int(order[0]), int(order[-1])
    i, j = np.triu_indices(len(groups), 1)
    limits = compare(kept.only(i), kept.only(j), kind, bonferroni(confidence, len(i)), simultaneous=True)
    if kind == "difference":
        value = float(kept.value[top] - kept.value[bottom])
        ends = widest_difference(*limits)
    else:
        value = _ratio(kept.value[bottom], kept.value[top])
        ends = narrowest_ratio(*limits)
    return Gap(kind, "worst_pair", None, int(groups[top]), int(groups[bottom]), value, ends)


def to_reference(values: GroupValues, groups: IntArray, reference: int, kind: Kind, confidence: float) -> list[Gap]:
    """Return each group's difference from, or ratio to, the reference group."""
    others = groups[groups != reference]
    sides = values.only(others), values.only(np.full(len(others), reference))
    limits = compare(*sides, kind, confidence)
    return [
        _gap(kind, "reference", int(group), reference, values.value[group], values.value[reference], (low, high))
        for group, low, high in zip(others, limits.low, limits.high, strict=True)
    ]


def to_overall(values: GroupValues, groups: IntArray, kind: Kind, confidence: float) -> list[Gap]:
    """Return each group's difference from, or ratio to, everybody's value.

    Everybody is the group and the rest, which are independent. With p the group's share of everybody,
    group - everybody = (1 - p) (group - rest) and everybody / group = p + (1 - p) rest / group, so the limits follow
    from those of the group against the rest.
    """
    if values.metric.kind == "rank":
        limits = _auc_limits(values, groups, kind, confidence)
    elif values.rest is None or values.share is None:  # only the bootstrap knows
        limits = Interval(np.full(len(groups), np.nan), np.full(len(groups), np.nan))
    else:
        group, rest, share = values.only(groups), values.rest.only(groups), values.share[groups]
        with np.errstate(all="ignore"):
            if kind == "difference":
                apart = compare(group, rest, kind, confidence)
                limits = Interval((1 - share) * apart.low, (1 - share) * apart.high)
            else:
                apart = compare(rest, group, kind, confidence)
                limits = Interval(1 / (share + (1 - share) * apart.high), 1 / (share + (1 - share) * apart.low))
    return [
        _gap(kind, "overall", int(group), -1, values.value[group], values.overall, (low, high))
        for group, low, high in zip(groups, limits.low, limits.high, strict=True)
    ]


def _auc_limits(values: GroupValues, groups: IntArray, kind: Kind, confidence: float) -> Interval:
    """Return limits of a group's AUC against everybody's: the delta method with their covariance, Student's t."""
    covariance = values.covariance[groups] if values.covariance is not None else np.full(len(groups), np.nan)
    value, stderr = values.value[groups], values.stderr[groups]
    t = t_quantile(values.trials[groups] - 1, confidence)
    with np.errstate(all="ignore"):
        t = np.where(stderr > 0, t, np.nan)
        if kind == "difference":
            half = t * np.sqrt(stderr**2 + values.overall_stderr**2 - 2 * covariance)
            return Interval(value - values.overall - half, value - values.overall + half)
        relative = (stderr / value) ** 2 + (values.overall_stderr / values.overall) ** 2
        half = t * np.sqrt(relative - 2 * covariance / (value * values.overall))
        ratio = value / values.overall
        return Interval(ratio * np.exp(-half), ratio * np.exp(half))


def _gap(
    kind: Kind, against: Against, group: int, base: int, value: float, base_value: float, limits: tuple[float, float]
) -> Gap:
    gap = float(value - base_value) if kind == "difference" else _ratio(value, base_value)
    high, low = (group, base) if value >= base_value else (base, group)
    return Gap(kind, against, group, high, low, gap, (float(limits[0]), float(limits[1])))


def _ratio(above: FloatArray | float, below: FloatArray | float) -> float:
    return float(above / below) if below > 0 <= above else float("nan")
