"""Gaps between the values of groups, with their limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from evenhand.audits.parity.estimate import GroupValues, no_limits
from evenhand.audits.parity.pairs import (
    GroupPairs,
    LimitPairs,
    Pairs,
    RootPairs,
    make_pairs,
    moved_limits,
    p_value_of,
    worst_p,
)
from evenhand.core.records import Against, Kind
from evenhand.stats import intervals
from evenhand.stats.types import FloatArray, IntArray, Interval

_CAUTIOUS = ("bounds", "one person", "few people")


@dataclass(frozen=True, kw_only=True)
class GapNumbers:
    """The numbers of one gap: group minus reference, or group over reference.

    Parameters
    ----------
    group, reference : the positions of the two groups; -1 for all people.
    higher : whether the group has the higher value.
    value, limits : the gap and its limits; nan where undefined.
    joint : the limits simultaneous over all gaps of the same kind.
    p_value : the p-value of equality.
    differs : whether this pair differs significantly; the worst pair's limits may come from another pair.
    rests_on : the basis of test and limits; for the worst pair, the basis of the named pair or of a pair with few
        people.
    """

    kind: Kind
    against: Against
    group: int
    reference: int
    higher: bool
    value: float
    limits: tuple[float, float] = (float("nan"), float("nan"))
    joint: tuple[float, float] = (float("nan"), float("nan"))
    p_value: float = float("nan")
    differs: bool = False
    rests_on: str | None = None


def clamp_interval(
    limits: Interval, value: FloatArray, bounds: tuple[FloatArray | float, FloatArray | float]
) -> Interval:
    """Return limits clamped to possible values and widened to include the value.

    A basic or normal interval can exceed the possible values, and all resamples of a biased statistic can lie on one
    side of the estimate. Neither change lowers the coverage.
    """
    low, high = (np.minimum(np.maximum(end, bounds[0]), bounds[1]) for end in limits)
    return Interval(np.minimum(low, value), np.maximum(high, value))


def worst_gap(values: GroupValues, by_value: IntArray, kind: Kind) -> GapNumbers:
    """Return the largest difference or the smallest ratio without limits; `by_value` are the groups, descending."""
    lowest, highest = int(by_value[-1]), int(by_value[0])
    high, low = float(values.value[highest]), float(values.value[lowest])
    if kind == "difference":
        sides: dict[str, Any] = {"group": highest, "reference": lowest, "higher": True, "value": high - low}
    else:
        sides = {"group": lowest, "reference": highest, "higher": False, "value": _quotient(low, high)}
    return GapNumbers(kind=kind, against="worst_pair", **sides)


def gaps_to_reference(values: GroupValues, groups: IntArray, reference: int, kind: Kind) -> list[GapNumbers]:
    """Return each group's difference from, or ratio to, the reference group, without limits."""
    gaps = _gaps_to_base(values.only(groups), float(values.value[reference]), kind)
    return [replace(gap, group=int(position), reference=reference) for gap, position in zip(gaps, groups, strict=True)]


def gaps_to_overall(values: GroupValues, groups: IntArray, kind: Kind) -> list[GapNumbers]:
    """Return each group's difference from, or ratio to, the value of all people, without limits."""
    gaps = _gaps_to_base(values.only(groups), values.overall, kind)
    return [replace(gap, against="overall", group=int(position)) for gap, position in zip(gaps, groups, strict=True)]


def _gaps_to_base(values: GroupValues, base: float, kind: Kind) -> list[GapNumbers]:
    """Return the gaps of all groups to one number, without limits or positions."""
    gaps = []
    for value in values.value:
        gap = float(value - base) if kind == "difference" else _quotient(value, base)
        sides: dict[str, Any] = {"group": -1, "reference": -1, "higher": bool(value >= base)}
        gaps.append(GapNumbers(kind=kind, against="reference", value=gap, **sides))
    return gaps


def worst_gap_limits(
    gap: GapNumbers, pairs: GroupPairs, sides: tuple[IntArray, IntArray], confidence: float
) -> GapNumbers:
    """Return the worst pair's gap with limits and p-value; `sides` are the positions of the groups of all pairs.

    The named pair differs if its limits at the simultaneous level of all pairs exclude equality.
    """
    number = len(sides[0])
    ends = pairs.widest(gap.kind, confidence)
    named = {gap.group, gap.reference}
    here = next(i for i, pair in enumerate(zip(*(side.tolist() for side in sides), strict=True)) if set(pair) == named)
    p, alpha = worst_p(pairs), 1.0 - confidence
    differs = p < alpha and number * p_value_of(pairs, here) < alpha
    bases = pairs.rests_on
    rests_on = next((basis for basis in _CAUTIOUS if basis in bases), bases[here])
    return replace(gap, limits=ends, joint=ends, p_value=p, differs=differs, rests_on=rests_on)


def with_limits(gaps: Sequence[GapNumbers], pairs: Pairs, confidence: float) -> list[GapNumbers]:
    """Return gaps to one base with p-values, individual limits and simultaneous limits.

    Simultaneous limits of m comparisons have the confidence c^(1/m) each (Sidak), which is valid for dependent
    two-sided limits.
    """
    if not gaps:
        return []
    kind = gaps[0].kind
    alone, joint = (limit_pairs(pairs.limits(kind, c)) for c in (confidence, joint_confidence(confidence, len(gaps))))
    return [
        replace(gap, limits=ends, joint=together, p_value=p, differs=p < 1.0 - confidence, rests_on=rests_on)
        for gap, ends, together, p, rests_on in zip(
            gaps, alone, joint, pairs.p_values.tolist(), pairs.rests_on, strict=True
        )
    ]


def joint_confidence(confidence: float, number: int) -> float:
    """Return the individual confidence of several simultaneous intervals (Sidak)."""
    return float(confidence ** (1.0 / max(number, 1)))


def limit_pairs(limits: Interval) -> list[tuple[float, float]]:
    """Return limits as a list of pairs."""
    return [(float(low), float(high)) for low, high in zip(*limits, strict=True)]


def excludes_equality(kind: Kind, limits: tuple[float, float]) -> bool:
    """Return whether the limits of a gap exclude equality of the two groups."""
    equal = 0.0 if kind == "difference" else 1.0
    return bool(limits[0] > equal or limits[1] < equal)


def pairs_with_rest(values: GroupValues) -> Pairs:
    """Return the comparison of groups with all people, which tests each group against all other people."""
    if values.clusters is not None and values.rest is not None:
        return LimitPairs(partial(moved_limits, values, values.rest), jumps=values.metric.method == "quantile")
    if values.metric.method == "rank":
        return LimitPairs(partial(_auc_limits, values))
    if values.rates:
        moved = LimitPairs(partial(_function_overall_limits, values))
        is_root = values.metric.of_number == "squared_error"
        return RootPairs(pairs_with_rest(values.rates[0]), moved, values.value + values.overall) if is_root else moved
    if values.rest is None or values.share is None:
        return LimitPairs(partial(_unknown_limits, values))
    return Overall(make_pairs(values, values.rest), values.share)


def _unknown_limits(values: GroupValues, _kind: Kind, _confidence: float | FloatArray) -> Interval:
    return no_limits(len(values.value))


@dataclass(frozen=True, eq=False)
class Overall:
    """Comparison of groups with all people, computed from the comparison with all other people.

    With s the group's share of all people, group - all = (1 - s) (group - rest) and, with r = group / rest, group /
    all = 1 + (1 - s) (r - 1) / (s r + 1 - s). Both increase with the gap to the rest and equal 0 or 1 where the rest
    is equal, so they have the same test, and limits by transformation. The share is taken as fixed.

    Parameters
    ----------
    rest : the comparison with all people outside the group.
    share : the group's share of all people.
    """

    rest: Pairs
    share: FloatArray

    @property
    def p_values(self) -> FloatArray:
        """The p-value of equality of each pair."""
        return self.rest.p_values

    @property
    def rests_on(self) -> list[str]:
        """The basis of each pair's test and limits."""
        return self.rest.rests_on

    def limits(self, kind: Kind, confidence: float) -> Interval:
        """Return the limits of each group's difference from, or ratio to, the value of all people."""
        return Interval(*(self._of_everybody(kind, end) for end in self.rest.limits(kind, confidence)))

    def _of_everybody(self, kind: Kind, gap: FloatArray) -> FloatArray:
        others = 1.0 - self.share
        if kind == "difference":
            return np.asarray(others * gap)
        with np.errstate(all="ignore"):
            ratio = 1.0 + others * (gap - 1.0) / (self.share * gap + others)
            return np.asarray(np.where(np.isinf(gap), 1.0 / self.share, ratio))


def _function_overall_limits(values: GroupValues, kind: Kind, confidence: float | FloatArray) -> Interval:
    """Return MOVER limits of a function of rates in groups against all people.

    The rate of all people is share · group + (1 - share) · rest. So the gap is a function of the group's rates and the
    rest's rates, which are independent estimates with their own limits, and of the shares, which are taken as fixed.
    """
    function = values.metric.function
    if function is None:
        return no_limits(len(values.value))
    combine, estimates, limits = function.value, [], []
    for rate in values.rates:
        if rate.rest is None or rate.share is None:
            return no_limits(len(values.value))
        shares = Interval(rate.share, rate.share)
        estimates += [rate.value, rate.rest.value, rate.share]
        limits += [*(side.limits(confidence, exact=True) for side in (rate, rate.rest)), shares]

    def gap(*parts: FloatArray) -> FloatArray:
        sides = list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))
        value = combine(*(group for group, _, _ in sides))
        everybody = combine(*(share * group + (1 - share) * rest for group, rest, share in sides))
        return np.asarray(value - everybody if kind == "difference" else value / everybody)

    return intervals.mover(gap, estimates, limits)


def _auc_limits(values: GroupValues, kind: Kind, confidence: float | FloatArray) -> Interval:
    """Return Student's t limits of a group's AUC against the overall AUC: the delta method with their covariance."""
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
