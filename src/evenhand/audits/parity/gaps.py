"""Gaps between the values of groups, with their limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from evenhand.audits.parity.estimate import GroupValues, no_limits
from evenhand.core.records import Against, Kind
from evenhand.stats import intervals
from evenhand.stats import worst_pair as pairs
from evenhand.stats.types import FloatArray, IntArray, Interval


@dataclass(frozen=True, kw_only=True)
class GapNumbers:
    """One gap in numbers: group minus, or over, reference.

    Parameters
    ----------
    group, reference : positions of the two groups, -1 for everybody.
    higher : whether the group has the higher value.
    value, limits : the gap; nan where undefined.
    joint : simultaneous limits for all gaps of its kind.
    differs : whether this pair differs significantly; the worst pair's limits may come from another pair.
    """

    kind: Kind
    against: Against
    group: int
    reference: int
    higher: bool
    value: float
    limits: tuple[float, float] = (float("nan"), float("nan"))
    joint: tuple[float, float] = (float("nan"), float("nan"))
    differs: bool = False


def clamp_interval(
    limits: Interval, value: FloatArray, bounds: tuple[FloatArray | float, FloatArray | float]
) -> Interval:
    """Return limits clamped to the possible values and widened to include the value itself.

    A mirrored or normal interval may exceed the possible values, and resamples of a biased statistic may all lie on one
    side of it. Neither change lowers the coverage.
    """
    low, high = (np.minimum(np.maximum(end, bounds[0]), bounds[1]) for end in limits)
    return Interval(np.minimum(low, value), np.maximum(high, value))


def compare(
    a: GroupValues, b: GroupValues, kind: Kind, confidence: float | FloatArray, *, exact: bool = False
) -> Interval:
    """Return limits of a - b or a / b for independent groups, pairwise, from each side's own limits (MOVER).

    One recipe for rates, means and AUCs: it keeps the skewness that the sides' own limits have, which Welch's and
    Fieller's symmetric limits do not; with few people and skewed scores those cover far too seldom.

    Parameters
    ----------
    a, b : the two sides, arrays of one length.
    kind : difference or ratio.
    confidence : of each pair on its own.
    exact : for rates from exact limits, which tests and limits of many pairs need: Wilson's fail far out in the tails.
    """
    left, right = (side.limits(confidence, exact=exact) for side in (a, b))
    move = intervals.mover_difference if kind == "difference" else intervals.mover_ratio
    return move(a.value, left, b.value, right)


def worst_pair(values: GroupValues, groups: IntArray, kind: Kind, confidence: float | None) -> GapNumbers:
    """Return the largest difference (or the smallest ratio) among some groups.

    See `evenhand.stats.worst_pair`.

    Without a confidence, here and below, it has no limits: the bootstrap sets them.
    """
    compared = values.only(groups)
    order = np.argsort(compared.value, kind="stable")
    bottom, top = int(order[0]), int(order[-1])
    highest, lowest = int(groups[top]), int(groups[bottom])
    gap = GapNumbers(kind=kind, against="worst_pair", group=highest, reference=lowest, higher=True, value=np.nan)
    if kind == "difference":
        gap = replace(gap, value=float(compared.value[top] - compared.value[bottom]))
    else:
        value = _quotient(compared.value[bottom], compared.value[top])
        gap = replace(gap, group=lowest, reference=highest, higher=False, value=value)
    if confidence is None:
        return gap
    limits = partial(compared.limits, exact=True)
    joint = limits(pairs.range_confidence(confidence, len(groups)))
    ends = pairs.worst_pair(compared.value, limits, kind, confidence)
    return replace(gap, limits=ends, joint=ends, differs=pairs.pair_differs(compared.value, joint, top, bottom))


def to_reference(
    values: GroupValues, groups: IntArray, reference: int, kind: Kind, confidence: float | None
) -> list[GapNumbers]:
    """Return each group's difference from, or ratio to, the reference group."""
    others = groups[groups != reference]
    group, base = values.only(others), values.only(np.full(len(others), reference))
    gaps = _gaps_to_base(group, float(values.value[reference]), kind)
    gaps = [replace(gap, group=int(position), reference=reference) for gap, position in zip(gaps, others, strict=True)]
    return _with_limits(gaps, partial(compare, group, base, kind), confidence)


def to_overall(values: GroupValues, groups: IntArray, kind: Kind, confidence: float | None) -> list[GapNumbers]:
    """Return each group's difference from, or ratio to, everybody's value."""
    gaps = _gaps_to_base(values.only(groups), values.overall, kind)
    gaps = [replace(gap, against="overall", group=int(position)) for gap, position in zip(gaps, groups, strict=True)]
    return _with_limits(gaps, partial(overall_limits, values.only(groups), kind), confidence)


def _gaps_to_base(values: GroupValues, base: float, kind: Kind) -> list[GapNumbers]:
    """Return the gaps of all groups to one number, without limits and positions."""
    gaps = []
    for value in values.value:
        gap = float(value - base) if kind == "difference" else _quotient(value, base)
        sides: dict[str, Any] = {"group": -1, "reference": -1, "higher": bool(value >= base)}
        gaps.append(GapNumbers(kind=kind, against="reference", value=gap, **sides))
    return gaps


def _with_limits(
    gaps: Sequence[GapNumbers], limits: Callable[..., Interval], confidence: float | None
) -> list[GapNumbers]:
    """Return gaps to one base with limits: each with its own, and exact ones that hold for all of them together.

    Together at the confidence c^(1/m) each (Sidak): two-sided limits of m comparisons, dependent or not.
    """
    if confidence is None:
        return list(gaps)
    alone, joint = limits(confidence), limits(confidence ** (1.0 / max(len(gaps), 1)), exact=True)
    return [
        replace(gap, limits=ends, joint=together, differs=excludes_equality(gap.kind, ends))
        for gap, ends, together in zip(gaps, limit_pairs(alone), limit_pairs(joint), strict=True)
    ]


def limit_pairs(limits: Interval) -> list[tuple[float, float]]:
    """Return the limits as pairs of numbers."""
    return [(float(low), float(high)) for low, high in zip(*limits, strict=True)]


def excludes_equality(kind: Kind, limits: tuple[float, float]) -> bool:
    """Tell whether the limits of a gap exclude that two groups are equal."""
    equal = 0.0 if kind == "difference" else 1.0
    return bool(limits[0] > equal or limits[1] < equal)


def overall_limits(values: GroupValues, kind: Kind, confidence: float | FloatArray, *, exact: bool = False) -> Interval:
    """Return limits of groups against everybody; nan where only the bootstrap has any."""
    if values.metric.method == "rank":
        return _auc_limits(values, kind, confidence)
    if values.rates:
        return _function_overall_limits(values, kind, confidence, exact=exact)
    if values.rest is None or values.share is None:
        return no_limits(len(values.value))
    against = AgainstRest(group=values, rest=values.rest, share=values.share)
    return against.limits(kind, confidence, exact=exact)


@dataclass(frozen=True, kw_only=True)
class AgainstRest:
    """Groups beside the rest of all people, which is everybody else.

    Everybody is the group and the rest, which are independent. With p the group's share of everybody,
    group - everybody = (1 - p) (group - rest) and everybody / group = p + (1 - p) rest / group, so limits against
    everybody follow from those of the group against the rest. With a share of 0, the rest is everybody.

    Parameters
    ----------
    group, rest : the values, pairwise.
    share : the group's share of everybody.
    """

    group: GroupValues
    rest: GroupValues
    share: FloatArray

    def share_error(self, confidence: float | FloatArray) -> FloatArray:
        """Return how far off the share may be: it is estimated too."""
        z = intervals.t_quantile(np.inf, confidence)
        return np.asarray(z * np.sqrt(self.share * (1 - self.share) / (self.group.trials + self.rest.trials)))

    def limits(self, kind: Kind, confidence: float | FloatArray, *, exact: bool) -> Interval:
        """Return limits of the groups against everybody.

        The error of the share is added in quadrature to both arms.
        """
        group, rest, share = self.group, self.rest, self.share
        with np.errstate(all="ignore"):
            error = self.share_error(confidence)
            if kind == "difference":
                apart, gap = compare(group, rest, kind, confidence, exact=exact), group.value - rest.value
                low, high = (np.hypot((1 - share) * (gap - end), error * gap) for end in apart)
                return Interval((1 - share) * gap - low, (1 - share) * gap + high)
            apart, ratio = compare(rest, group, kind, confidence, exact=exact), rest.value / group.value
            low, high = (np.hypot((1 - share) * (ratio - end), error * (1 - ratio)) for end in apart)
            centre = share + (1 - share) * ratio
            unbounded = np.isinf(apart.high)
            below = np.where(unbounded, 0.0, 1 / (centre + high))
            # Where the group's own value is 0, everybody's over it has no centre: only the end that is known remains.
            least = np.where(np.isinf(ratio), share + (1 - share) * apart.low, np.maximum(centre - low, share))
            return Interval(np.where(np.isnan(apart.low), np.nan, below), 1 / least)


def _function_overall_limits(
    values: GroupValues, kind: Kind, confidence: float | FloatArray, *, exact: bool
) -> Interval:
    """Return limits of a function of rates in groups against everybody (MOVER).

    Everybody's rate is share · group + (1 - share) · rest. So the gap is a function of the rates of the group, those of
    the rest, and the shares: independent estimates with limits of their own.
    """
    function = values.metric.function
    if function is None:
        return no_limits(len(values.value))
    combine, estimates, limits = function.value, [], []
    for rate in values.rates:
        if rate.rest is None or rate.share is None:
            return no_limits(len(values.value))
        error = AgainstRest(group=rate, rest=rate.rest, share=rate.share).share_error(confidence)
        shares = Interval(np.maximum(rate.share - error, 0.0), np.minimum(rate.share + error, 1.0))
        estimates += [rate.value, rate.rest.value, rate.share]
        limits += [rate.limits(confidence, exact=exact), rate.rest.limits(confidence, exact=exact), shares]

    def gap(*parts: FloatArray) -> FloatArray:
        sides = list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))
        value = combine(*(group for group, _, _ in sides))
        everybody = combine(*(share * group + (1 - share) * rest for group, rest, share in sides))
        return np.asarray(value - everybody if kind == "difference" else value / everybody)

    return intervals.mover(gap, estimates, limits)


def _auc_limits(values: GroupValues, kind: Kind, confidence: float | FloatArray) -> Interval:
    """Return limits of a group's AUC against everybody's: the delta method with their covariance, Student's t."""
    value, trials = values.value, values.trials
    covariance = values.covariance if values.covariance is not None else np.full(len(value), np.nan)
    stderr = intervals.steady_stderr(value, values.stderr, trials)
    t = intervals.t_quantile(trials - 1, confidence)
    with np.errstate(all="ignore"):
        t = np.where(stderr > 0, t, np.nan)
        if kind == "difference":
            half = t * np.sqrt(stderr**2 + values.overall_stderr**2 - 2 * covariance)
            return Interval(value - values.overall - half, value - values.overall + half)
        overall = np.float64(values.overall)  # which may be 0, as may be a group's
        relative = (stderr / value) ** 2 + (values.overall_stderr / overall) ** 2
        half = t * np.sqrt(relative - 2 * covariance / (value * overall))
        ratio = value / overall
        return Interval(ratio * np.exp(-half), ratio * np.exp(half))


def _quotient(above: FloatArray | float, below: FloatArray | float) -> float:
    return float(above / below) if below > 0 <= above else float("nan")
