"""Effort-aware group fairness: mean scores of groups among people of similar effort."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenhand.audits.effort.records import BinGroupRecord, BinRecord
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.numbers import finite
from evenhand.errors import ConfigError
from evenhand.stats.intervals import bonferroni, logit_t, mover_ratio, narrowest_ratio
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval
from evenhand.table.cells import Cells
from evenhand.table.roles import MISSING

_ROUNDING = 1e-13  # what equal scores leave of their squares
MOST_BINS = 10_000


@dataclass(frozen=True)
class GroupMeans:
    """Mean scores of groups: arrays over groups, or over (bins, groups)."""

    n: IntArray
    mean: FloatArray
    stderr: FloatArray
    trials: FloatArray


def bin_records(
    parts: GroupMeans, whole: GroupMeans, labels: tuple[str, ...], model: str, grouping: str, spec: EffortSpec
) -> tuple[list[BinRecord], list[BinGroupRecord]]:
    """Return the parity of every effort bin with its group means, after the traditional parity of all bins together.

    In each bin of effort, [k width, (k + 1) width), the mean score of every group with at least `min_count` people;
    parity is the smallest mean over the largest (eq. 14 of the paper). Its interval comes from simultaneous
    intervals of all pairs of groups (Bonferroni), each from the two groups' own limits (MOVER).
    """
    known = np.array([label != MISSING for label in labels])
    compared = int((((parts.n >= spec.min_count) & known).sum(axis=1) >= 2).sum())
    records: list[BinRecord] = []
    groups: list[BinGroupRecord] = []
    for low, means in (
        (None, _row(whole, 0)),
        *((k, _row(parts, k)) for k in np.flatnonzero(parts.n.sum(axis=1)).tolist()),
    ):
        edge = None if low is None else round(float(low) * spec.width, 9)
        top = None if edge is None else round(edge + spec.width, 9)
        family = 1 if low is None else max(compared, 1)
        records.append(_parity(means, known, labels, spec, (model, grouping, edge, top), family))
        groups += _group_records(means, labels, spec, (model, grouping, edge))
    return records, groups


def require_bins(highest: float, width: float) -> None:
    """Refuse effort bins without number."""
    if highest / width > MOST_BINS:
        raise ConfigError(
            f"efforts up to {highest:g} in bins of width {width:g} make more than {MOST_BINS:,} bins; take a larger "
            "`width`, or an inertia of at most 1."
        )


def group_means(
    bins: IntArray, codes: IntArray, score: FloatArray, weight: FloatArray | None, size: int, groups: int
) -> GroupMeans:
    """Return the (weighted) mean score, its standard error and Kish's size for every bin and group."""
    at, w = bins * groups + codes, np.ones(len(score)) if weight is None else weight

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(at, weights=values, minlength=size * groups).astype(np.float64)[: size * groups]

    n = np.bincount(at, minlength=size * groups)[: size * groups]
    with np.errstate(all="ignore"):
        heavy = total(w)
        mean = total(w * score) / heavy
        about = total((w * (score - mean[at])) ** 2)
        about = np.where(about > _ROUNDING * total((w * score) ** 2), about, 0.0)
        spread = about / heavy**2 * n / (n - 1)
        kish = heavy**2 / total(w**2)
    shape = (size, groups)
    return GroupMeans(n.reshape(shape), mean.reshape(shape), np.sqrt(spread).reshape(shape), kish.reshape(shape))


def means_from_sums(bins: IntArray, codes: IntArray, cells: Cells, size: int, groups: int) -> GroupMeans:
    """Return the same from cells with their sums of w s and its square, and with weights of w, w² and w² s."""
    at = bins * groups + codes

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(at, weights=values, minlength=size * groups).astype(np.float64)

    n, first, second = total(cells.n.astype(np.float64)), total(cells.sums["s"]), total(cells.sums["ss"])
    weighted = "w" in cells.sums
    heavy, squares = (total(cells.sums["w"]), total(cells.sums["ww"])) if weighted else (n, n)
    cross = total(cells.sums["ws"]) if weighted else first
    with np.errstate(all="ignore"):
        mean = first / heavy
        about = second - 2.0 * mean * cross + mean**2 * squares
        about = np.where(about > _ROUNDING * second, about, 0.0)
        stderr = np.sqrt(about / heavy**2 * n / (n - 1.0))
        kish = heavy**2 / squares
    shape = (size, groups)
    return GroupMeans(
        n.astype(np.int64).reshape(shape), mean.reshape(shape), stderr.reshape(shape), kish.reshape(shape)
    )


def _row(means: GroupMeans, at: int) -> GroupMeans:
    return GroupMeans(means.n[at], means.mean[at], means.stderr[at], means.trials[at])


def parity_of(means: GroupMeans, kept: IntArray, confidence: float) -> tuple[float, float, float, int, int]:
    """Return smallest over largest mean of some groups, its limits, and which groups they are."""
    mean = means.mean[kept]
    top, bottom = int(np.argmax(mean)), int(len(mean) - 1 - np.argmin(mean[::-1]))
    value = float(mean[bottom] / mean[top]) if mean[top] > 0 else float("nan")
    i, j = np.triu_indices(len(kept), 1)
    own = mean_limits(means, kept, bonferroni(confidence, len(i)))
    sides = [Interval(own.low[at], own.high[at]) for at in (i, j)]
    pairs = mover_ratio(mean[i], sides[0], mean[j], sides[1])
    low, high = narrowest_ratio(*pairs)
    return value, low, high, int(kept[top]), int(kept[bottom])


def mean_limits(means: GroupMeans, kept: IntArray, confidence: float) -> Interval:
    """Return limits of mean scores: Student's t on the logit scale, or what n scores of 0 (or of 1) say of the mean.

    A score in [0, 1] of mean m is above 0 with a chance of at least m; so if all n are 0, m is at most 1 - a^(1/n) with
    confidence 1 - a, here with a of one side.
    """
    mean, trials = means.mean[kept], means.trials[kept]
    limits = logit_t(mean, means.stderr[kept], trials - 1, confidence)
    with np.errstate(all="ignore"):
        reach = 1.0 - ((1.0 - confidence) / 2.0) ** (1.0 / trials)
    low = np.where(mean == 0.0, 0.0, np.where(mean == 1.0, 1.0 - reach, limits.low))
    return Interval(low, np.where(mean == 0.0, reach, np.where(mean == 1.0, 1.0, limits.high)))


def _parity(
    means: GroupMeans,
    known: BoolArray,
    labels: tuple[str, ...],
    spec: EffortSpec,
    place: tuple[str, str, float | None, float | None],
    bins: int,
) -> BinRecord:
    """Return the parity of one bin, with its own limits and with those that hold for all bins together."""
    kept = np.flatnonzero(known & (means.n >= spec.min_count))
    n = int(means.n[kept].sum())
    if len(kept) < 2:
        reason = f"undefined: fewer than two groups have {spec.min_count} people here"
        return BinRecord(*place, n, len(kept), None, None, None, None, None, None, None, reason)
    value, low, high, top, bottom = parity_of(means, kept, spec.confidence)
    _, all_low, all_high, _, _ = parity_of(means, kept, bonferroni(spec.confidence, bins))
    status = "ok"
    if np.isnan(value):
        status = "undefined: the mean score of every group is 0"
    elif np.isnan([low, high]).any():
        status = "no interval: the scores of a group do not vary"
    return BinRecord(
        *place,
        n,
        len(kept),
        labels[top],
        labels[bottom],
        finite(value),
        finite(low),
        finite(high),
        finite(all_low),
        finite(all_high),
        status,
    )


def _group_records(
    means: GroupMeans, labels: tuple[str, ...], spec: EffortSpec, place: tuple[str, str, float | None]
) -> Iterator[BinGroupRecord]:
    limits = mean_limits(means, np.arange(len(means.n)), spec.confidence)
    for at in np.flatnonzero(means.n):
        n, status = int(means.n[at]), "ok"
        if labels[at] == MISSING:
            status = "missing group: left out of parity"
        elif n < spec.min_count:
            status = f"small: {n} is below min_count {spec.min_count}; left out of parity"
        elif np.isnan(limits.low[at]):
            status = "no interval: the people of this group do not differ"
        low, high = finite(limits.low[at]), finite(limits.high[at])
        yield BinGroupRecord(*place, labels[at], n, finite(means.mean[at]), low, high, status)
