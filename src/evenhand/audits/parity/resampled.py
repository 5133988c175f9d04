"""Bootstrap intervals, where no formula holds: against everybody, standardised over strata, metrics of one's own.

Draws of a metric's value in every group and over everybody are kept, no more; contrasts of the two are made when
their intervals are asked for, some groups at a time, so that many groups need little memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from evenhand.audits.parity.groups import GroupCells, Totals
from evenhand.audits.parity.metrics import CELLS, Metric
from evenhand.core.spec import Kind
from evenhand.errors import ConfigError
from evenhand.stats.bootstrap import CellMoments, Draws, Statistic, resample
from evenhand.stats.intervals import narrowest_ratio, widest_difference
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval

Method = Literal["percentile", "basic", "bca"]
Custom = Callable[[Totals], Any]

TO_OVERALL = ("overall_difference", "overall_ratio")
BLOCKS = ("value", *TO_OVERALL, "reference_difference", "reference_ratio")

_MOST_DRAWS = 30_000_000  # numbers kept at a time, 240 MB
_SLICE = 500_000  # numbers an interval is computed from at a time: they stay in the processor's cache
_ORDER = {"tn": 0, "fp": 1, "fn": 2, "tp": 3}


@dataclass(frozen=True)
class Sums:
    """Sums by stratum, group (everybody last), outcome and decision; resamples, if any, on the last axis.

    Parameters
    ----------
    weight : people or weights, shape (strata, groups + 1, 2, 2, ...).
    score, loss : sums of scores and of squared errors, the same shape; None for decisions.
    """

    weight: FloatArray
    score: FloatArray | None
    loss: FloatArray | None
    _known: dict[tuple[str, ...], FloatArray] = field(default_factory=dict)

    @classmethod
    def build(cls, shape: tuple[int, ...], counts: FloatArray, sums: FloatArray) -> Sums:
        """Build from counts (..., cells) and row values (..., cells, values), as the bootstrap draws them.

        Parameters
        ----------
        shape : (strata, groups, 2, 2).
        counts : rows of each cell; they are the weights where there are no row values.
        sums : sums of the row values (weight, score, loss), or of none.
        """
        given = np.moveaxis(sums, (-1, -2), (0, 1)) if sums.shape[-1] else np.moveaxis(counts, -1, 0)[None]
        strata, groups = shape[:2]
        full = np.empty((len(given), strata, groups + 1, 2, 2, *counts.shape[:-1]))
        full[:, :, :groups] = given.reshape(len(given), *shape, *counts.shape[:-1])
        np.sum(full[:, :, :groups], axis=2, out=full[:, :, groups])
        return cls(full[0], full[1], full[2]) if len(full) > 1 else cls(full[0], None, None)

    def of(self, *terms: str) -> FloatArray:
        """Return the sum of some terms ('tp', 'fn', 'score', ...), shape (strata, groups + 1, ...)."""
        if terms not in self._known:
            self._known[terms] = self._sum(terms)
        return self._known[terms]

    def _sum(self, terms: tuple[str, ...]) -> FloatArray:
        if terms in (("score",), ("loss",)):
            rows = self.score if terms == ("score",) else self.loss
            return np.zeros_like(self.weight[:, :, 0, 0]) if rows is None else _added(rows, tuple(_ORDER))
        return _added(self.weight, tuple(sorted(terms, key=_ORDER.__getitem__)))

    def totals(self, groups: slice) -> Totals:
        """Return what a metric of one's own receives: resamples first, then strata, then groups."""
        terms = ("tp", "fp", "fn", "tn", "score", "loss")
        return Totals(*(np.moveaxis(self.of(term)[:, groups], (0, 1), (-2, -1)) for term in terms))


def _added(cells: FloatArray, terms: tuple[str, ...]) -> FloatArray:
    """Add cells of (strata, groups, outcome, decision, ...), always in the same order."""
    total = cells[:, :, *CELLS[terms[0]]]
    for term in terms[1:]:
        total = total + cells[:, :, *CELLS[term]]
    return total


def metric_values(sums: Sums, metric: Metric, custom: Custom | None, support: BoolArray | None = None) -> FloatArray:
    """Return a metric in every group and, last, over everybody: shape (groups + 1, ...).

    Parameters
    ----------
    sums : with a single stratum, or with several and `support`.
    metric, custom : what to compute; the user's own function or None.
    support : the strata over which values are standardised, each with its share of everybody.
    """
    with np.errstate(all="ignore"):
        if custom is None:
            values = sums.of(*metric.numerator) / sums.of(*metric.denominator)
        else:
            parts = [_own_metric(metric.name, custom, sums.totals(part)) for part in (slice(-1), slice(-1, None))]
            values = np.moveaxis(np.concatenate(parts, axis=-1), (-2, -1), (0, 1))
        return np.asarray(values[0] if support is None else _standardised(values, sums.of(*CELLS)[:, -1], support))


def _standardised(values: FloatArray, people: FloatArray, support: BoolArray) -> FloatArray:
    """Return the mean over strata (the first axis), weighted by each stratum's share of all people."""
    share = people * support.reshape(-1, *(1,) * (people.ndim - 1))
    weighted = np.where(share[:, None] > 0, values * share[:, None], 0.0)
    return np.asarray(weighted.sum(axis=0) / share.sum(axis=0))


def _own_metric(name: str, custom: Custom, totals: Totals) -> FloatArray:
    try:
        values = np.asarray(custom(totals), dtype=np.float64)
    except Exception as error:
        raise ConfigError(f"the metric {name!r} failed: {type(error).__name__}: {error}") from error
    if values.shape != totals.tp.shape:
        raise ConfigError(
            f"the metric {name!r} must return one value a group, shape {totals.tp.shape}; got shape {values.shape}. "
            "Use only operations that work element by element."
        )
    return values


@dataclass(frozen=True)
class Resampled:
    """The draws of several metrics in all groups and over everybody.

    Parameters
    ----------
    blocks : for each metric what intervals will be asked of, values or contrasts.
    groups, reference : the number of groups, and the position of the one that others are compared with.
    draws : for each metric one column a group, and one for everybody.
    accelerate : computes BCa's accelerations: all blocks of the first metric, each for every group; and so on.
    """

    blocks: dict[str, tuple[str, ...]]
    groups: int
    reference: int
    draws: Draws
    accelerate: Callable[[], FloatArray]
    _limits: dict[tuple[str, str, float], dict[str, Interval]] = field(default_factory=dict)

    def interval(self, metric: str, block: str, method: Method, confidence: float) -> Interval:
        """Return the interval of one metric's block for every group."""
        key = block, method, confidence
        if key not in self._limits:
            self._limits[key] = self._intervals(*key)
        return self._limits[key][metric]

    def _intervals(self, block: str, method: Method, confidence: float) -> dict[str, Interval]:
        """Return the intervals of all metrics that have the block, as many at a time as the cache can hold."""
        most = max(1, _SLICE // len(self.draws.values))
        metrics = [metric for metric, blocks in self.blocks.items() if block in blocks]
        pieces = [(m, slice(at, min(at + most, self.groups))) for m in metrics for at in range(0, self.groups, most)]
        together = max(1, most // self.groups)
        ends = []
        for start in range(0, len(pieces), together):
            ends.append(np.stack(getattr(self._part(block, pieces[start : start + together]), method)(confidence)))
        low, high = np.concatenate(ends, axis=1).reshape(2, len(metrics), self.groups)
        return {metric: Interval(*pair) for metric, *pair in zip(metrics, low, high, strict=True)}

    def _part(self, block: str, pieces: Sequence[tuple[str, slice]]) -> Draws:
        """Return the draws of a block for some metrics and groups, each in a row of its own in memory."""
        estimates, rows, accelerations = [], [], []
        with np.errstate(all="ignore"):
            for metric, groups in pieces:
                columns = self._columns(metric)
                for out, numbers in (estimates, self.draws.estimate), (rows, self.draws.values.T):
                    own = numbers[columns]
                    out.append(_contrast(block, own[groups], own[-1], own[self.reference]))
                accelerations.append(partial(self._acceleration, metric, block, groups))
        return Draws(
            np.concatenate(estimates), np.concatenate(rows).T, lambda: np.concatenate([part() for part in accelerations])
        )

    def _columns(self, metric: str) -> slice:
        start = list(self.blocks).index(metric) * (self.groups + 1)
        return slice(start, start + self.groups + 1)

    def _acceleration(self, metric: str, block: str, groups: slice) -> FloatArray:
        every = [(name, part) for name, blocks in self.blocks.items() for part in blocks]
        return self._accelerations[every.index((metric, block)), groups]

    @cached_property
    def _accelerations(self) -> FloatArray:
        return self.accelerate().reshape(-1, self.groups)

    def widest_gap(self, metric: str, kept: IntArray, kind: Kind, confidence: float) -> tuple[float, float]:
        """Return limits of the worst pair's gap from one max-t band over all pairs of groups."""
        at = self._columns(metric).start + kept
        i, j = np.triu_indices(len(kept), 1)
        if len(i) * len(self.draws.values) > 2 * _MOST_DRAWS:
            return float("nan"), float("nan")
        estimate, values = self.draws.estimate[at], self.draws.values[:, at]
        with np.errstate(all="ignore"):  # the log of 0, and the difference of two of them
            if kind == "ratio":
                estimate, values = np.log(estimate), np.log(values)
            pairs = Draws(estimate[i] - estimate[j], values[:, i] - values[:, j])
            low, high = pairs.max_t(confidence)
            return widest_difference(low, high) if kind == "difference" else narrowest_ratio(np.exp(low), np.exp(high))


def _contrast(block: str, value: FloatArray, everybody: FloatArray, base: FloatArray) -> FloatArray:
    """Return a block of draws: values, or their differences from and ratios to everybody or the reference."""
    if block == "value":
        return value
    against = everybody if block in TO_OVERALL else base
    return value - against if block.endswith("difference") else value / against


def resample_groups(
    cells: GroupCells,
    metrics: Sequence[tuple[Metric, Custom | None]],
    blocks: dict[str, tuple[str, ...]],
    reference: int,
    resamples: int,
    rng: np.random.Generator,
    support: dict[str, BoolArray] | None = None,
) -> Iterator[Resampled]:
    """Resample the cells and yield draws of the metrics, in order, in batches that fit into memory.

    Parameters
    ----------
    cells : with one stratum; or with several and `support`, for values standardised over strata.
    metrics : each with the user's function or None.
    blocks : for each metric what intervals will be asked of.
    reference : position of the reference group.
    resamples, rng : how many, and the source of randomness.
    support : for each metric the strata in which every compared group can be compared.
    """
    groups = len(cells.labels)
    batch = max(1, _MOST_DRAWS // (resamples * (groups + 1)))
    seeds = rng.integers(2**63, size=1)  # every batch sees the same resamples
    moments = cells.moments()
    for start in range(0, len(metrics), batch):
        part = metrics[start : start + batch]
        asked = {metric.name: blocks[metric.name] for metric, _ in part}
        statistic = _statistic(cells.n.shape, part, support)
        yield Resampled(
            asked, groups, reference,
            resample(moments, statistic, resamples=resamples, rng=np.random.default_rng(seeds)),
            partial(_accelerations, moments, _contrasts(statistic, groups, reference, list(asked.values()))),
        )  # fmt: skip


def _statistic(
    shape: tuple[int, ...], metrics: Sequence[tuple[Metric, Custom | None]], support: dict[str, BoolArray] | None
) -> Statistic:
    """Return the function from cells to values: for each metric one a group, and everybody's."""

    def statistic(counts: FloatArray, sums: FloatArray) -> FloatArray:
        parts = Sums.build(shape, counts, sums)
        strata = support or {}
        values = [metric_values(parts, metric, custom, strata.get(metric.name)) for metric, custom in metrics]
        return np.moveaxis(np.concatenate(values), 0, -1)

    return statistic


def _contrasts(statistic: Statistic, groups: int, reference: int, blocks: list[tuple[str, ...]]) -> Statistic:
    """Return the function from cells to each metric's blocks of groups."""

    def contrasts(counts: FloatArray, sums: FloatArray) -> FloatArray:
        values = np.moveaxis(statistic(counts, sums), -1, 0).reshape(len(blocks), groups + 1, *counts.shape[:-1])
        made = [
            _contrast(block, own[:-1], own[-1], own[reference])
            for own, asked in zip(values, blocks, strict=True)
            for block in asked
        ]
        return np.moveaxis(np.concatenate(made), 0, -1)

    return contrasts


def _accelerations(moments: CellMoments, statistic: Statistic) -> FloatArray:
    """Return BCa's accelerations of a statistic; of the draws that come with them nothing is used."""
    return resample(moments, statistic, resamples=2, rng=np.random.default_rng(0)).acceleration
