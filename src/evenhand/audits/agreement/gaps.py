"""Gaps between groups: to the reference group, and of the two groups farthest apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.audits.agreement.compare import BOOTSTRAP, EXACT, GroupDraws, why_no_interval
from evenhand.audits.agreement.records import GapRecord
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.audits.agreement.statistics import Statistic, why_undefined
from evenhand.core.compared import Compared
from evenhand.core.numbers import finite
from evenhand.stats.agreement import coefficient_difference, p_of_equality, share_difference
from evenhand.stats.correlation import adjusted_p
from evenhand.stats.intervals import bonferroni, tail_share
from evenhand.stats.types import FloatArray, IntArray, Interval


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of groups: the values of one statistic, the difference's limits at two confidences, its p-value.

    Parameters
    ----------
    first, second : (P,) positions of the groups.
    value, stderr : (P,) first less second, and its standard error; nan where undefined.
    own, joint : limits for each pair, and for all of them together.
    p : (P,) that the difference is 0; nan without limits.
    """

    first: IntArray
    second: IntArray
    value: FloatArray
    stderr: FloatArray
    own: Interval
    joint: Interval
    p: FloatArray


def gap_records(
    grouping: Compared, drawn: Sequence[GroupDraws], statistics: Mapping[str, Statistic], spec: AgreementSpec
) -> Iterator[GapRecord]:
    """Yield each group's gaps to the reference group, and for each statistic that of the two groups farthest apart."""
    others = np.array(grouping.others, dtype=np.int64)
    to_reference = (others, np.full_like(others, grouping.reference))
    every_pair = np.triu_indices(len(drawn), 1)
    compared = [(at, name, one) for at, (name, one) in enumerate(statistics.items()) if one.compared]
    found = [_compare(drawn, at, one, to_reference, spec) for at, _, one in compared]
    for place in range(len(others)):
        for (at, name, one), pairs in zip(compared, found, strict=True):
            yield _record(grouping, drawn, (at, name, one), pairs, place)
    for at, name, one in compared:
        yield _worst(grouping, drawn, (at, name, one), _compare(drawn, at, one, every_pair, spec))


def _compare(
    drawn: Sequence[GroupDraws], at: int, statistic: Statistic, pairs: tuple[IntArray, IntArray], spec: AgreementSpec
) -> _Pairs:
    first, second = pairs
    value = np.array([one.draws.estimate[at] for one in drawn])
    stderr = np.array([one.stderr[at] for one in drawn])
    trials = np.array([one.variation.trials for one in drawn])

    if statistic.share is not None:
        rate = np.array([one.variation.agreement for one in drawn])
        slope, _ = statistic.share(drawn[0].ratings.categories)

        def limits(tail: FloatArray) -> Interval:
            found = share_difference(rate[first], trials[first], rate[second], trials[second], tail)
            return Interval(slope * found.low, slope * found.high)
    else:
        known = np.where([one.variation.too_little(None) is None for one in drawn], stderr, np.nan)

        def limits(tail: FloatArray) -> Interval:
            a, b = ((value[who], known[who], trials[who] - 1) for who in pairs)
            return coefficient_difference(*a, *b, tail)

    tails = [tail_share(c) for c in (spec.confidence, bonferroni(spec.confidence, len(first)))]
    own, joint = (limits(np.full(first.shape, tail)) for tail in tails)
    with np.errstate(invalid="ignore"):
        return _Pairs(
            first,
            second,
            value[first] - value[second],
            np.hypot(stderr[first], stderr[second]),
            own,
            joint,
            p_of_equality(limits, first.shape),
        )


def _record(
    grouping: Compared, drawn: Sequence[GroupDraws], which: tuple[int, str, Statistic], pairs: _Pairs, place: int
) -> GapRecord:
    _, name, statistic = which
    own, base = int(pairs.first[place]), int(pairs.second[place])
    ends = [finite(float(limits[place])) for limits in (*pairs.own, *pairs.joint)]
    value = finite(pairs.value[place])
    status = "ok" if ends[0] is not None else _why_not(grouping, drawn, which, (own, base))
    return GapRecord(
        grouping=grouping.name,
        group=grouping.groups[own],
        reference=grouping.groups[base],
        against="reference",
        statistic=name,
        n=drawn[own].n + drawn[base].n,
        method=BOOTSTRAP if statistic.share is None else EXACT,
        stderr=finite(pairs.stderr[place]),
        p_value=finite(pairs.p[place]),
        p_adjusted=None,
        value=value,
        low=ends[0],
        high=ends[1],
        all_low=ends[2],
        all_high=ends[3],
        status=status,
    )


def _why_not(
    grouping: Compared, drawn: Sequence[GroupDraws], which: tuple[int, str, Statistic], pair: tuple[int, int]
) -> str:
    """Return why the gap of two groups has no value, or no interval."""
    at, _, statistic = which
    for group in pair:
        if np.isnan(drawn[group].draws.estimate[at]):
            return f"undefined: {why_undefined(statistic, drawn[group].ratings, drawn[group].weight)}"
    for group in pair:
        reason = why_no_interval(drawn[group], at, statistic, grouping.groups[group])
        if reason is not None:
            return f"no interval: {reason}"
    return "no interval: the formula has no limits"


def _worst(
    grouping: Compared, drawn: Sequence[GroupDraws], which: tuple[int, str, Statistic], pairs: _Pairs
) -> GapRecord:
    """Return the gap of the two groups farthest apart, of those that can be tested where any can.

    Its limits are those of the largest gap, so that its lower one may come from another pair, and a pair without limits
    leaves the upper end open. The p-value is this pair's own, for having been picked from all of them (Bonferroni).
    """
    without = np.isnan(pairs.joint.low) | np.isnan(pairs.joint.high)
    size = np.abs(pairs.value) if without.all() else np.where(without, np.nan, np.abs(pairs.value))
    place = 0 if np.isnan(size).all() else int(np.nanargmax(size))
    record = _record(grouping, drawn, which, pairs, place)
    if (record.value or 0.0) < 0:  # the higher group first
        turned = None if record.value is None else -record.value
        record = replace(record, group=record.reference, reference=record.group, value=turned)
    low = high = p_value = None
    if record.p_value is not None:
        known = [np.where(without, 0.0, limit) for limit in pairs.joint]
        low = float(np.maximum(np.maximum(known[0], -known[1]), 0.0).max())
        high = None if without.any() else float(np.maximum(np.abs(known[0]), np.abs(known[1])).max())
        p_value = min(1.0, len(pairs.p) * record.p_value)
    status = record.status
    if record.value is not None and without.any():
        where = int(np.flatnonzero(without)[0])
        why = _why_not(grouping, drawn, which, (int(pairs.first[where]), int(pairs.second[where])))
        status = f"{'no interval' if low is None else 'unbounded above'}: {why.partition(': ')[2]}"
    return replace(
        record, against="worst_pair", p_value=p_value, low=low, high=high, all_low=low, all_high=high, status=status
    )


def with_adjusted_p(gaps: Sequence[GapRecord], told: Sequence[str]) -> list[GapRecord]:
    """Return the gaps with p-values adjusted for all that are told as findings, over all groups and groupings (Holm).

    Between two groups the worst pair is the gap to the reference group: one test, counted once.
    """
    others: dict[str, set[str]] = {}
    for gap in gaps:
        if gap.against == "reference":
            others.setdefault(gap.grouping, set()).add(gap.group)
    two = {name for name, groups in others.items() if len(groups) == 1}
    family = [
        at
        for at, gap in enumerate(gaps)
        if gap.statistic in told and (gap.against == "reference" or gap.grouping not in two)
    ]
    p = [gaps[at].p_value for at in family]
    adjusted = adjusted_p([np.nan if one is None else one for one in p])
    found = {at: finite(one) for at, one in zip(family, adjusted, strict=True)}
    same = {(gaps[at].grouping, gaps[at].statistic): one for at, one in found.items() if gaps[at].grouping in two}
    return [
        replace(gap, p_adjusted=found.get(at, same.get((gap.grouping, gap.statistic)))) for at, gap in enumerate(gaps)
    ]
