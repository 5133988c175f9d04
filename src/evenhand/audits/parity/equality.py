"""Tests of equal values in all groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from evenhand.audits.parity.estimate import GroupValues
from evenhand.audits.parity.gaps import AgainstRest, compare, overall_limits
from evenhand.core.records import Against
from evenhand.stats import worst_pair as pairs
from evenhand.stats.types import FloatArray, IntArray, Interval

Test = tuple[str, Against, int]
"""A metric, the base of comparison, and the group; -1 for the worst pair."""


def equality_tests(compared: Sequence[tuple[GroupValues, IntArray]], reference: int) -> dict[Test, float]:
    """Return p-values of equal values: the least alpha at which exact limits exclude equality.

    The limits of all groups and metrics with the same formula are inverted together. A ratio is 1 where the
    difference is 0, so its p-value is the same.
    """
    families: dict[tuple[float, float] | None, list[tuple[GroupValues, IntArray]]] = {}
    p_values: dict[Test, float] = {}
    for values, groups in compared:
        if values.metric.method == "rank":
            p_values |= _overall_tests(values, groups)
        if values.rates:
            p_values |= _overall_tests(values, groups) | _reference_tests(values, groups, reference)
            p_values |= _worst_pairs([(values, groups)])
        elif values.metric.method == "rate" or not np.isnan(values.stderr).all():
            families.setdefault(None if values.metric.method == "rate" else values.bounds, []).append((values, groups))
    for family in families.values():
        p_values |= _against_one_base(family, reference) | _worst_pairs(family)
    return p_values


def _overall_tests(values: GroupValues, groups: IntArray) -> dict[Test, float]:
    """Return the p-values of one metric's groups against everybody."""
    tests: list[Test] = [(values.metric.name, "overall", int(group)) for group in groups]
    return _excluded(tests, partial(overall_limits, values.only(groups), "difference", exact=True))


def _reference_tests(values: GroupValues, groups: IntArray, reference: int) -> dict[Test, float]:
    """Return the p-values of one metric's groups against the reference group, if it is compared."""
    others = groups[groups != reference]
    if len(others) == len(groups):
        return {}
    tests: list[Test] = [(values.metric.name, "reference", int(group)) for group in others]
    sides = values.only(others), values.only(np.full(len(others), reference))
    return _excluded(tests, partial(compare, *sides, "difference", exact=True))


def _excluded(tests: Sequence[Test], limits: Callable[[FloatArray], Interval]) -> dict[Test, float]:
    """Return the least alpha at which the limits of differences exclude 0."""

    def margin(confidence: FloatArray) -> FloatArray:
        low, high = limits(confidence)
        return np.maximum(low, -high)

    return dict(zip(tests, pairs.smallest_alpha(margin, (len(tests),)).tolist(), strict=True))


def _against_one_base(family: Sequence[tuple[GroupValues, IntArray]], reference: int) -> dict[Test, float]:
    """Return the p-values of groups against the reference group, which is disjoint, and against everybody."""
    tests: list[Test] = []
    sides: list[tuple[GroupValues, GroupValues, FloatArray]] = []
    for values, groups in family:
        if reference in groups:
            others = groups[groups != reference]
            base = values.only(np.full(len(others), reference))
            sides.append((values.only(others), base, np.zeros(len(others))))
            tests += [(values.metric.name, "reference", int(group)) for group in others]
        if values.rest is not None and values.share is not None:
            sides.append((values.only(groups), values.rest.only(groups), values.share[groups]))
            tests += [(values.metric.name, "overall", int(group)) for group in groups]
    if not sides:
        return {}
    groups_of, bases, shares = zip(*sides, strict=True)
    against = AgainstRest(group=_joined(groups_of), rest=_joined(bases), share=np.concatenate(shares))
    return _excluded(tests, partial(against.limits, "difference", exact=True))


def _worst_pairs(family: Sequence[tuple[GroupValues, IntArray]]) -> dict[Test, float]:
    """Return the p-values of all groups being equal."""
    joined = _joined([values.only(groups) for values, groups in family])
    sizes = [len(groups) for _, groups in family]
    each = pairs.equality_p_values(joined.value, partial(joined.limits, exact=True), sizes)
    return {(v.metric.name, "worst_pair", -1): p for (v, _), p in zip(family, each.tolist(), strict=True)}


def _joined(parts: Sequence[GroupValues]) -> GroupValues:
    """Concatenate the values of metrics with one formula for their limits, under the first metric."""
    if len(parts) == 1:
        return parts[0]
    named = ("value", "n", "counted", "stderr", "trials")
    arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in named}
    return replace(parts[0], rest=None, share=None, covariance=None, **arrays)
