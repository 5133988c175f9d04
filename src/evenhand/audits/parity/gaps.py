"""Gaps between groups: differences and ratios of the worst pair, to a reference group, and to everybody.

Independent groups are compared through their own limits (MOVER). The worst of all pairs
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
    t_quantile,
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
    """Return limits of a - b or a / b for independent groups, pairwise, from each side's own limits (MOVER).

    One recipe for rates, means and AUCs: it keeps the skewness that the sides' own limits have, which Welch's and
    Fieller's symmetric limits do not; with few people and skewed scores those cover far too seldom.

    Parameters
    ----------
    a, b : the two sides, arrays of one length.
    kind : difference or ratio.
    confidence : of each pair on its own.
    simultaneous : whether the pair is one of many: then exact limits for rates, since Wilson's fail far out in the
        tails.
    """
    sides = (side.limits(confidence, exact=simultaneous) for side in (a, b))
    return _moved(kind, a.value, b.value, *sides, simultaneous=simultaneous)


def _moved(
    kind: Kind, a: FloatArray, b: FloatArray, a_limits: Interval, b_limits: Interval, *, simultaneous: bool
) -> Interval:
    if kind == "difference":
        return mover_difference(a, a_limits, b, b_limits)
    limits = mover_ratio(a, a_limits, b, b_limits)
    # Of two zeros nothing is known, which among many pairs is no reason to know less of the others.
    empty = simultaneous & (a == 0) & (b == 0) & ~np.isnan(a_limits.low + b_limits.low)
    return Interval(np.where(empty, 0.0, limits.low), np.where(empty, np.inf, limits.high))


def worst_pair(values: GroupValues, groups: IntArray, kind: Kind, confidence: float) -> Gap:
    """Return the largest difference (or the smallest ratio) among some groups, with a simultaneous interval.

    The intervals of all pairs hold together (Bonferroni). For the ratio r of every pair, the parity min r then lies in
    [exp(-max upper |log r|), exp(-max(0, max lower |log r|))]; alike for differences.
    """
    kept = values.only(groups)
    order = np.argsort(kept.value, kind="stable")
    bottom, top = int(order[0]), int(order[-1])
    i, j = np.triu_indices(len(groups), 1)
    low, high = kept.limits(bonferroni(confidence, len(i)), exact=True)  # once a group, not once a pair
    sides = (Interval(low[at], high[at]) for at in (i, j))
    pairs = _moved(kind, kept.value[i], kept.value[j], *sides, simultaneous=True)
    if kind == "difference":
        value, ends = float(kept.value[top] - kept.value[bottom]), widest_difference(*pairs)
    else:
        value, ends = _ratio(kept.value[bottom], kept.value[top]), narrowest_ratio(*pairs)
    return Gap(kind, "worst_pair", None, int(groups[top]), int(groups[bottom]), value, ends)


def to_reference(values: GroupValues, groups: IntArray, reference: int, kind: Kind, confidence: float) -> list[Gap]:
    """Return each group's difference from, or ratio to, the reference group."""
    others = groups[groups != reference]
    group, base = values.only(others), values.only(np.full(len(others), reference))
    limits = compare(group, base, kind, confidence)
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
        group, rest = values.only(groups), values.rest.only(groups)
        limits = _limits_from_the_rest(group, rest, values.share[groups], kind, confidence)
    return [
        _gap(kind, "overall", int(group), -1, values.value[group], values.overall, (low, high))
        for group, low, high in zip(groups, limits.low, limits.high, strict=True)
    ]


def _limits_from_the_rest(
    group: GroupValues, rest: GroupValues, share: FloatArray, kind: Kind, confidence: float
) -> Interval:
    """Return limits of groups against everybody from those against the rest.

    The group's share of everybody is estimated too: its error is added in quadrature to both arms.
    """
    with np.errstate(all="ignore"):
        wobble = normal_quantile(confidence) * np.sqrt(share * (1 - share) / (group.trials + rest.trials))
        if kind == "difference":
            apart, gap = compare(group, rest, kind, confidence), group.value - rest.value
            low, high = (np.hypot((1 - share) * (gap - end), wobble * gap) for end in apart)
            return Interval((1 - share) * gap - low, (1 - share) * gap + high)
        apart, ratio = compare(rest, group, kind, confidence), rest.value / group.value
        low, high = (np.hypot((1 - share) * (ratio - end), wobble * (1 - ratio)) for end in apart)
        centre = share + (1 - share) * ratio
        unbounded = np.isinf(apart.high)
        below = np.where(unbounded, 0.0, 1 / (centre + high))
        # Where the group's own value is 0, everybody's over it has no centre: only the end that is known remains.
        known = np.where(np.isinf(ratio), share + (1 - share) * apart.low, np.maximum(centre - low, share))
        return Interval(np.where(np.isnan(apart.low), np.nan, below), 1 / known)


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
