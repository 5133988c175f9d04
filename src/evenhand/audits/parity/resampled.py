"""Bootstrap intervals for values without a formula: standardised values and custom metrics.

Only draws of a metric's value in every group and over all people are stored. Contrasts are computed with their
intervals, a few groups at a time, so that many groups need little memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from evenhand.audits.parity.definition import LOSS, SCORE, WEIGHT, ParityMetric, term_coefficients
from evenhand.audits.parity.gather import GroupCells, Totals
from evenhand.core.measures import Terms
from evenhand.core.records import Kind
from evenhand.errors import ConfigError
from evenhand.stats.bootstrap import CellMoments, Statistic, data_rng, resample
from evenhand.stats.draws import Draws, upper_quantile
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval
from evenhand.stats.worst_pair import narrowest_ratio, widest_difference

KINDS: tuple[Kind, ...] = ("difference", "ratio")
Method = Literal["percentile", "basic", "bca"]
Custom = Callable[[Totals], Any]
Metrics = Sequence[tuple[ParityMetric, Custom | None]]
Support = dict[str, BoolArray]

TO_OVERALL = ("overall_difference", "overall_ratio")
BLOCKS = ("value", *TO_OVERALL, "reference_difference", "reference_ratio")

_MOST_DRAWS = 60_000_000  # numbers in memory at a time: 480 MB
_MOST_PAIRS = 60_000_000  # differences of pairs, limited to save time
_SLICE = 250_000  # numbers per batch of intervals, which fit into the processor's cache
_CELL_ORDER = ((0, 0), (0, 1), (1, 0), (1, 1))  # the fixed order of summation over cells


@dataclass(frozen=True)
class Sums:
    """Sums by stratum, group (all people last), outcome and decision; resamples are on the last axis.

    Parameters
    ----------
    weight : the sums of people or weights, shape (strata, groups + 1, 2, 2, ...).
    score, loss : the sums of scores and of squared errors, of the same shape; None for decisions.
    """

    weight: FloatArray
    score: FloatArray | None
    loss: FloatArray | None
    _added: dict[Terms, FloatArray] = field(default_factory=dict)

    @classmethod
    def build(cls, shape: tuple[int, ...], counts: FloatArray, sums: FloatArray) -> Sums:
        """Build from bootstrap draws: counts (..., cells) and row values (..., cells, values).

        Parameters
        ----------
        shape : the shape of the cells: (strata, groups, 2, 2).
        counts : the number of rows in each cell, used as weights if there are no row values.
        sums : the sums of the row values (weight, score, loss), or an empty last axis.
        """
        values = np.moveaxis(sums, (-1, -2), (0, 1)) if sums.shape[-1] else np.moveaxis(counts, -1, 0)[None]
        strata, groups = shape[:2]
        full = np.empty((len(values), strata, groups + 1, 2, 2, *counts.shape[:-1]))
        full[:, :, :groups] = values.reshape(len(values), *shape, *counts.shape[:-1])
        np.sum(full[:, :, :groups], axis=2, out=full[:, :, groups])
        return cls(full[0], full[1], full[2]) if len(full) > 1 else cls(full[0], None, None)

    def of(self, terms: Terms) -> FloatArray:
        """Return a sum of measures with coefficients, shape (strata, groups + 1, ...)."""
        if terms not in self._added:
            self._added[terms] = self._add(term_coefficients(terms))
        return self._added[terms]

    def _add(self, coefficients: FloatArray) -> FloatArray:
        """Return the sum of cells times coefficients by (outcome, decision, row value), in a fixed order."""
        total: FloatArray | None = None
        for value, rows in ((WEIGHT, self.weight), (SCORE, self.score), (LOSS, self.loss)):
            for cell in _CELL_ORDER if rows is not None else ():
                number = float(coefficients[(*cell, value)])
                if rows is not None and number != 0:
                    part = rows[:, :, *cell] if number == 1 else number * rows[:, :, *cell]
                    total = part if total is None else total + part
        return np.zeros_like(self.weight[:, :, 0, 0]) if total is None else total

    def totals(self, groups: slice) -> Totals:
        """Return the input of a custom metric, with axes for resamples, strata and groups."""
        names = ("tp", "fp", "fn", "tn", "score", "loss")
        return Totals(*(np.moveaxis(self.of(((name, 1.0),))[:, groups], (0, 1), (-2, -1)) for name in names))


def metric_values(
    sums: Sums, metric: ParityMetric, custom: Custom | None, support: BoolArray | None = None
) -> FloatArray:
    """Return a metric in every group and, last, over all people: shape (groups + 1, ...).

    Parameters
    ----------
    sums : the sums of a single stratum; with `support`, of several strata.
    metric, custom : the metric, and the user's function or None.
    support : the strata over which values are standardised.
    """
    with np.errstate(all="ignore"):
        if custom is None and metric.ratio is None and metric.function is not None:
            rates = (metric_values(sums, rate, None, support) for rate in metric.function.rates)
            return np.asarray(metric.function.value(*rates))
        if custom is None and metric.ratio is not None:
            below = metric.ratio.denominator
            values = sums.of(metric.ratio.numerator) / sums.of(below)
        elif custom is not None:
            below = (("n", 1.0),)
            parts = [_own_metric(metric.name, custom, sums.totals(part)) for part in (slice(-1), slice(-1, None))]
            values = np.moveaxis(np.concatenate(parts, axis=-1), (-2, -1), (0, 1))
        else:
            raise ValueError(f"the metric {metric.name!r} is no function of sums")
        return np.asarray(values[0]) if support is None else _standardised(values, sums.of(below)[:, -1], support)


def _standardised(values: FloatArray, people: FloatArray, support: BoolArray) -> FloatArray:
    """Return the mean over strata (first axis), weighted by each stratum's share of the relevant people.

    For a true positive rate, the relevant people are the people with the positive outcome. So the rate of a group with
    the overall mix of strata is unchanged.
    """
    share = people * support.reshape(-1, *(1,) * (people.ndim - 1))
    weighted = np.where(share[:, None] > 0, values * share[:, None], 0.0)
    return np.asarray(weighted.sum(axis=0) / share.sum(axis=0))


def _own_metric(name: str, custom: Custom, totals: Totals) -> FloatArray:
    try:
        values = np.asarray(custom(totals), dtype=np.float64)
    except Exception as error:
        raise ConfigError(
            "the metric {metric!r} failed: {kind}: {error}", metric=name, kind=type(error).__name__, error=error
        ) from error
    if values.shape != totals.tp.shape:
        raise ConfigError(
            "the metric {metric!r} must return one value a group, shape {wanted}; got shape {shape}. Use "
            "only operations that work element by element.",
            metric=name,
            wanted=totals.tp.shape,
            shape=values.shape,
        )
    return values


@dataclass(frozen=True, kw_only=True)
class Resampled:
    """The bootstrap draws of several metrics in all groups and over all people.

    Parameters
    ----------
    metrics : the names of the metrics.
    groups, reference : the number of groups, and the position of the reference group.
    draws : the draws of each metric, with one column per group and one for all people.
    blocks : the values and contrasts that BCa intervals may cover.
    accelerate : the function that computes BCa's accelerations, by block, metric and group.
    """

    metrics: tuple[str, ...]
    groups: int
    reference: int
    draws: Draws
    blocks: tuple[str, ...]
    accelerate: Callable[[], FloatArray]
    _intervals: dict[tuple[str, Method, float], Interval] = field(default_factory=dict, repr=False)
    _p_values: dict[tuple[str, Method], FloatArray] = field(default_factory=dict, repr=False)
    _widest: dict[Any, tuple[tuple[float, float], float]] = field(default_factory=dict, repr=False)

    def interval(self, metric: str, block: str, method: Method, confidence: float) -> Interval:
        """Return the interval of one metric's block for every group."""
        if (metric, method, confidence) not in self._intervals:
            self.compute_intervals(metric, method, (confidence,))
        return Interval(*(ends[self.blocks.index(block)] for ends in self._intervals[metric, method, confidence]))

    def p_values(self, metric: str, block: str, method: Method) -> FloatArray:
        """Return each group's smallest alpha at which the interval of a block of differences excludes 0."""
        if (metric, method) not in self._p_values:
            self.compute_intervals(metric, method, ())
        return np.asarray(self._p_values[metric, method][self.blocks.index(block)])

    def compute_intervals(self, metric: str, method: Method, confidences: Collection[float]) -> None:
        """Compute and cache a metric's p-values, and the intervals of all its blocks at several confidences."""
        missing = [confidence for confidence in confidences if (metric, method, confidence) not in self._intervals]
        if not missing and (metric, method) in self._p_values:
            return
        p_values: list[FloatArray] = []
        limits: dict[float, list[Interval]] = {confidence: [] for confidence in missing}
        for part in self._parts(metric):
            if (metric, method) not in self._p_values:
                p_values.append(part.p_value(method))
            for confidence, parts in limits.items():
                parts.append(getattr(part, method)(confidence))
        if p_values:
            self._p_values[metric, method] = self._by_block(p_values).round(12)  # the same for any batch size
        for confidence, parts in limits.items():
            self._intervals[metric, method, confidence] = self._joined(parts)

    def _joined(self, parts: Sequence[Interval]) -> Interval:
        """Return the intervals of all groups; they are undefined where the draws do not vary."""
        low, high = ends = [self._by_block(end) for end in zip(*parts, strict=True)]
        still = low == high  # draws without variation do not prove that the estimate is certain
        return Interval(*(np.where(still, np.nan, end) for end in ends))

    def _by_block(self, numbers: Sequence[FloatArray]) -> FloatArray:
        """Join the results of successive groups into an array (blocks, groups)."""
        return np.concatenate([part.reshape(len(self.blocks), -1) for part in numbers], axis=1)

    def _parts(self, metric: str) -> Iterator[Draws]:
        """Yield the draws of all blocks, a few groups at a time."""
        most = max(1, _SLICE // (len(self.blocks) * len(self.draws.values)))
        for start in range(0, self.groups, most):
            yield self._part(metric, slice(start, min(start + most, self.groups)))

    def _part(self, metric: str, groups: slice) -> Draws:
        """Return the draws of all blocks for a few groups, ordered by block and contiguous by group."""
        position, columns = self.metrics.index(metric), self._columns(metric)
        estimate, values = self.draws.estimate[columns], self.draws.values[:, columns].T
        drawn = np.empty((len(self.blocks), groups.stop - groups.start, values.shape[1]))
        exact = np.empty(drawn.shape[:2])
        with np.errstate(all="ignore"):
            for numbers, contrasts in ((estimate, exact), (values, drawn)):
                for block, contrast in zip(self.blocks, contrasts, strict=True):
                    contrast[...] = _contrast(block, numbers[groups], numbers[-1], numbers[self.reference])
        rows = drawn.reshape(exact.size, -1)
        return Draws(exact.ravel(), rows.T, lambda: self._acceleration[:, position, groups].ravel())

    def _columns(self, metric: str) -> slice:
        start = self.metrics.index(metric) * (self.groups + 1)
        return slice(start, start + self.groups + 1)

    @cached_property
    def _acceleration(self) -> FloatArray:
        return self.accelerate().reshape(len(self.blocks), len(self.metrics), self.groups)

    def widest_gap(
        self, metric: str, groups: IntArray, kind: Kind, confidence: float
    ) -> tuple[tuple[float, float], float]:
        """Return the worst pair's max-t limits, simultaneous over all pairs of groups, and its p-value."""
        key = (metric, tuple(groups.tolist()), kind, confidence)
        if key not in self._widest:
            self._widest[key] = self._widest_gap(metric, groups, kind, confidence)
        return self._widest[key]

    def _widest_gap(
        self, metric: str, groups: IntArray, kind: Kind, confidence: float
    ) -> tuple[tuple[float, float], float]:
        if len(groups) * (len(groups) - 1) // 2 * len(self.draws.values) > _MOST_PAIRS:
            return (float("nan"), float("nan")), float("nan")
        columns = self._columns(metric).start + groups
        estimate, values = self.draws.estimate[columns], self.draws.values.T[columns].T
        with np.errstate(all="ignore"):  # the log of 0, and the difference of two of them
            if kind == "ratio":
                estimate, values = np.log(estimate), np.log(values)
            band, p = _pairwise_band(estimate, values, confidence)
            if kind == "difference":
                return widest_difference(band), p
            return narrowest_ratio(Interval(np.exp(band.low), np.exp(band.high))), p


class DrawCache:
    """A cache of recent draws, shared by several confidences and bounded in memory."""

    def __init__(self) -> None:
        self._batches: list[tuple[object, Resampled]] = []

    def find(self, source: object, metric: str) -> Resampled | None:
        """Return the cached draws of a metric in one analysis, or None."""
        return next((drawn for owner, drawn in self._batches if owner is source and metric in drawn.metrics), None)

    def make_room(self, numbers: int) -> None:
        """Drop the oldest draws until the cache has room for a number of new values."""
        while self._batches and numbers + sum(drawn.draws.values.size for _, drawn in self._batches) > _MOST_DRAWS:
            self._batches.pop(0)

    def keep(self, source: object, drawn: Resampled) -> None:
        """Add the draws of an analysis to the cache."""
        self._batches.append((source, drawn))


def _pairwise_band(estimate: FloatArray, values: FloatArray, confidence: float) -> tuple[Interval, float]:
    """Return max-t intervals of the differences of all pairs of columns, in batches to save memory.

    The p-value tests that there is no difference: it is the share of draws whose largest deviation is at least the
    largest standardised difference from 0.
    """
    i, j = np.triu_indices(len(estimate), 1)
    centre, around = estimate[i] - estimate[j], (values - estimate).T
    noise = Draws(estimate, values).rounding()
    spread, largest = np.full(len(i), np.nan), np.full(len(values), np.nan)
    most = max(1, _SLICE // len(values))
    for part in (slice(start, start + most) for start in range(0, len(i), most)):
        away = around[i[part]]
        away -= around[j[part]]
        stderr = Draws(np.zeros(len(away)), away.T).stderr()
        spread[part] = np.where(stderr > noise[i[part]] + noise[j[part]], stderr, np.nan)
        np.abs(away, out=away)
        away /= spread[part, np.newaxis]
        largest = np.fmax(largest, np.fmax.reduce(away, axis=0))
    half = spread * upper_quantile(largest, confidence)
    with np.errstate(all="ignore"):
        seen, drawn = float(np.fmax.reduce(np.abs(centre) / spread)), np.count_nonzero(~np.isnan(largest))
    p = (1 + np.count_nonzero(largest >= seen)) / (1 + drawn) if np.isfinite(seen) else float("nan")
    return Interval(centre - half, centre + half), p


def _contrast(block: str, value: FloatArray, everybody: FloatArray, base: FloatArray) -> FloatArray:
    """Return a block of draws: values, or their differences from or ratios to the reference or all people."""
    if block == "value":
        return value
    against = everybody if block in TO_OVERALL else base
    return value - against if block.endswith("difference") else value / against


def resample_groups(
    cells: GroupCells,
    metrics: Metrics,
    *,
    reference: int,
    resamples: int,
    support: Support | None = None,
    blocks: tuple[str, ...] = BLOCKS,
) -> Iterator[Resampled]:
    """Resample the cells, and yield draws of the metrics in order, in batches that fit into memory.

    The draws depend on the contents of the cells alone, not on names or a seed.

    Parameters
    ----------
    cells : the cells of one stratum; with `support`, of several strata to standardise over.
    metrics : the metrics, each with the user's function or None.
    reference : the position of the reference group.
    resamples : the number of resamples.
    support : the strata in which every compared group has enough people, by metric.
    blocks : the values and contrasts for BCa intervals; fewer blocks make their accelerations faster.
    """
    groups = len(cells.labels)
    batch = max(1, _MOST_DRAWS // (resamples * (groups + 1)))
    strata, order = cells.orders
    places = np.append(np.argsort(order), groups)
    used = {name: by_stratum[strata] for name, by_stratum in (support or {}).items()}
    moments = cells.in_order().moments()
    for start in range(0, len(metrics), batch):
        part = metrics[start : start + batch]
        statistic = _statistic(cells.n.shape, places, part, used)
        yield Resampled(
            metrics=tuple(metric.name for metric, _ in part),
            groups=groups,
            reference=reference,
            draws=resample(moments, statistic, resamples=resamples, rng=data_rng(0, moments.n)),
            blocks=blocks,
            accelerate=partial(_accelerations, moments, _contrasts(statistic, groups, reference, blocks)),
        )


def _statistic(shape: tuple[int, ...], places: IntArray, metrics: Metrics, support: Support) -> Statistic:
    """Return the function that maps cells to the values of each metric in all groups and then over all people.

    Parameters
    ----------
    shape : the shape of the cells.
    places : the positions in the cells of each group and, last, of all people.
    metrics, support : the metrics, and the strata that standardised metrics use.
    """

    def statistic(counts: FloatArray, sums: FloatArray) -> FloatArray:
        parts = Sums.build(shape, counts, sums)
        values = [metric_values(parts, metric, custom, support.get(metric.name))[places] for metric, custom in metrics]
        return np.moveaxis(np.concatenate(values), 0, -1)

    return statistic


def _contrasts(statistic: Statistic, groups: int, reference: int, blocks: tuple[str, ...]) -> Statistic:
    """Return the function that maps cells to blocks of contrasts, each by metric and group."""

    def contrasts(counts: FloatArray, sums: FloatArray) -> FloatArray:
        values = statistic(counts, sums).reshape(*counts.shape[:-1], -1, groups + 1)
        sides = values[..., :groups], values[..., groups:], values[..., reference, None]
        return np.concatenate([_contrast(b, *sides).reshape(*counts.shape[:-1], -1) for b in blocks], axis=-1)

    return contrasts


def _accelerations(moments: CellMoments, statistic: Statistic) -> FloatArray:
    """Return BCa's accelerations of a statistic; the two draws needed for them are discarded."""
    return resample(moments, statistic, resamples=2, rng=np.random.default_rng(0)).acceleration
