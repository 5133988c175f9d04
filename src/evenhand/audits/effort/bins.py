"""Groups by effort bin: mean scores and parity among people of similar effort."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.audits.effort.gather import EffortPeople
from evenhand.audits.effort.group_means import (
    GroupedMeans,
    GroupMeans,
    LowestParity,
    equal_means_p,
    lowest_parity,
    means_of,
)
from evenhand.audits.effort.large_table import LargeTable
from evenhand.audits.effort.messages import say
from evenhand.audits.effort.result import EffortGap, EffortValue
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.groups import largest_first
from evenhand.core.progress import step
from evenhand.core.records import OK
from evenhand.errors import ConfigError
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.intervals import bonferroni
from evenhand.stats.types import IntArray
from evenhand.table.roles import MISSING
from evenhand.table.table import Table

MOST_BINS = 10_000


@dataclass(frozen=True, eq=False, kw_only=True)
class EffortBins:
    """The groups of one model and grouping in every effort bin, with the inputs of their limits.

    Parameters
    ----------
    model, grouping : the coordinates of the groups.
    labels : the groups.
    members : the groups' means by bin number; the key None has the means over all bins.
    large_groups : the groups of each bin with enough people, in an order independent of names.
    parities, p_values : the lowest parity and the p-value of equal means, for bins with at least two large groups.
    """

    model: str
    grouping: str
    labels: tuple[str, ...]
    members: dict[int | None, GroupMeans]
    large_groups: dict[int | None, IntArray]
    parities: dict[int | None, LowestParity]
    p_values: dict[int | None, float]

    @classmethod
    def of(cls, means: GroupedMeans, model: str, grouping: str, min_count: int) -> EffortBins:
        """Return the bins of a grouping's means, and compare the groups of at least `min_count` people."""
        occupied = np.flatnonzero(means.bins.n.sum(axis=1)).tolist()
        members: dict[int | None, GroupMeans] = {None: means.whole.bin(0)}
        members |= {number: means.bins.bin(number) for number in occupied}
        named = np.array([label != MISSING for label in means.labels])
        order = _largest_first(members)
        large_groups = {number: order[(named & (each.n >= min_count))[order]] for number, each in members.items()}
        parities = {
            number: lowest_parity(members[number], groups) for number, groups in large_groups.items() if len(groups) > 1
        }
        return cls(
            model=model,
            grouping=grouping,
            labels=means.labels,
            members=members,
            large_groups=large_groups,
            parities=parities,
            p_values=dict(zip(parities, equal_means_p(list(parities.values())), strict=True)),
        )

    @property
    def compared(self) -> int:
        """The number of bins in which groups are compared, at least 1."""
        return max(len(self.parities.keys() - {None}), 1)


def _largest_first(members: Mapping[int | None, GroupMeans]) -> IntArray:
    """Return the groups in descending size; groups of equal size are sorted by their means in the bins."""
    sizes = members[None].n
    bins = np.repeat([-1.0 if number is None else number for number in members], sizes.size)
    n, mean = (np.concatenate([getattr(each, name) for each in members.values()]) for name in ("n", "mean"))
    return largest_first(sizes, np.tile(np.arange(sizes.size), len(members)), [bins, n, mean.astype(np.float32)])


def group_bins(table: Table, subjects: EffortPeople | LargeTable, spec: EffortSpec) -> Iterator[EffortBins]:
    """Yield the effort bins of every model and grouping."""
    if table.groupings:
        _require_bins(subjects.highest, spec.width)
    for model in table.models:
        step(f"Comparing groups by effort under {model}")
        grouping_means = means_of(subjects, model, spec)
        for grouping, columns in table.groupings.items():
            yield EffortBins.of(grouping_means(columns), model, grouping, spec.min_count)


def bin_records(bins: EffortBins, spec: EffortSpec) -> tuple[list[EffortValue], list[EffortGap]]:
    """Return the group means and the parity of all people (traditional parity), and then of every effort bin.

    An effort bin is [k width, (k + 1) width). Parity is the smallest mean score over the largest, among groups with at
    least `min_count` people in the bin (eq. 14 of the paper). Its own limits are the limits of a worst pair
    (`evenhand.stats.worst_pair`); its joint limits are Bonferroni-adjusted for all bins.
    """
    values: list[EffortValue] = []
    gaps: list[EffortGap] = []
    for number, each in bins.members.items():
        low = None if number is None else round(float(number) * spec.width, 9)
        high = None if low is None else round(low + spec.width, 9)
        where: dict[str, Any] = {"model": bins.model, "grouping": bins.grouping, "bin_low": low, "bin_high": high}
        values += _group_values(each, bins.labels, spec, where)
        where |= {"n": int(each.n[bins.large_groups[number]].sum()), "groups": len(bins.large_groups[number])}
        if number in bins.parities:
            labels = [bins.labels[group] for group in bins.large_groups[number]]
            parity = _parity(bins.parities[number], labels, spec, 1 if number is None else bins.compared)
            parity["p_value"] = finite(bins.p_values[number])
        else:
            why = shared("undefined", why=say("few_groups", least=spec.min_count))
            parity = {"group": None, "reference": None, "value": None, "status": why}
        gaps.append(EffortGap(**where, metric="eagf", kind="ratio", against="worst_pair", **parity))
    return values, gaps


def _parity(parity: LowestParity, labels: Sequence[str], spec: EffortSpec, bins: int) -> dict[str, Any]:
    """Return the parity of one bin, with its own limits and limits simultaneous over all bins."""
    alone, joint = (parity.limits(level) for level in (spec.confidence, bonferroni(spec.confidence, bins)))
    status = OK
    if np.isnan(parity.value):
        status = shared("undefined", why=say("means_of_zero"))
    elif np.isnan(alone).any():
        status = shared("no_interval", why=say("constant_scores"))
    return {
        "group": labels[parity.lowest],
        "reference": labels[parity.highest],
        "value": finite(parity.value),
        **limit_columns(alone, joint),
        "status": status,
    }


def limit_columns(alone: tuple[float, float], joint: tuple[float, float]) -> dict[str, Any]:
    """Return a gap's own limits and joint limits by column name."""
    names = ("low", "high", "joint_low", "joint_high")
    return {name: finite(limit) for name, limit in zip(names, (*alone, *joint), strict=True)}


def _group_values(
    means: GroupMeans, labels: tuple[str, ...], spec: EffortSpec, where: dict[str, Any]
) -> Iterator[EffortValue]:
    limits = means.limits(spec.confidence)
    for code in np.flatnonzero(means.n):
        n = int(means.n[code])
        yield EffortValue(
            **where,
            group=labels[code],
            metric="mean_score",
            n=n,
            value=finite(means.mean[code]),
            low=finite(limits.low[code]),
            high=finite(limits.high[code]),
            status=_group_status(labels[code], n, float(limits.low[code]), spec.min_count),
        )


def _group_status(label: str, n: int, low: float, least: int) -> Message:
    if label == MISSING:
        return say("missing_group")
    if n < least:
        return say("small_group", n=n, least=least)
    return shared("no_interval", why=say("constant_group")) if np.isnan(low) else OK


def _require_bins(highest: float, width: float) -> None:
    """Refuse an effort range with too many bins."""
    if highest / width > MOST_BINS:
        raise ConfigError(
            "efforts up to {highest:g} in bins of width {width:g} make more than {most:,} bins; take a larger `width`, "
            "or an inertia of at most 1.",
            highest=highest,
            width=width,
            most=MOST_BINS,
        )
