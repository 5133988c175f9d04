"""Bootstrap intervals, where no formula holds: against everybody, standardised over strata, metrics of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evenhand.audits.parity.groups import GroupCells, Totals
from evenhand.audits.parity.metrics import Metric
from evenhand.core.spec import Kind
from evenhand.errors import ConfigError
from evenhand.stats.bootstrap import Draws, resample
from evenhand.stats.intervals import narrowest_ratio, widest_difference
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval

Method = Literal["percentile", "basic", "bca"]
Custom = Callable[[Totals], Any]

BLOCKS = ("value", "overall_difference", "overall_ratio", "reference_difference", "reference_ratio")
_MOST_DRAWS = 30_000_000


def metric_values(sums: FloatArray, metric: Metric, custom: Custom | None) -> FloatArray:
    """Return a metric by group from sums of shape (..., groups, outcome, decision, row value)."""
    with np.errstate(all="ignore"):
        if custom is not None:
            return _own_metric(metric.name, custom, Totals.from_sums(sums), sums.shape[:-3])
        above, below = metric.coefficients()
        return (sums * above).sum(axis=(-3, -2, -1)) / (sums[..., 0] * below).sum(axis=(-2, -1))


def _own_metric(name: str, custom: Custom, totals: Totals, shape: tuple[int, ...]) -> FloatArray:
    try:
        values = np.asarray(custom(totals), dtype=np.float64)
    except Exception as error:
        raise ConfigError(f"the metric {name!r} failed: {type(error).__name__}: {error}") from error
    if values.shape != shape:
        raise ConfigError(
            f"the metric {name!r} must return one value a group, shape {shape}; got shape {values.shape}. "
            "Use only operations that work element by element."
        )
    return values


@dataclass(frozen=True)
class Resampled:
    """The draws of several metrics in all groups, in blocks: values, and contrasts to everybody and the reference."""

    metrics: tuple[str, ...]
    groups: int
    draws: Draws

    def interval(self, metric: str, block: str, method: Method, confidence: float) -> Interval:
        """Return the interval of one metric's block for every group."""
        at = self._columns(metric, block)
        part = self.draws.part(at)
        interval: Interval = getattr(part, method)(confidence)
        return interval

    def estimate(self, metric: str) -> FloatArray:
        """Return the metric's value in every group."""
        return self.draws.estimate[self._columns(metric, "value")]

    def widest_gap(self, metric: str, kept: IntArray, kind: Kind, confidence: float) -> tuple[float, float]:
        """Return limits of the worst pair's gap from one max-t band over all pairs of groups."""
        at = self._columns(metric, "value")[kept]
        estimate, values = self.draws.estimate[at], self.draws.values[:, at]
        i, j = np.triu_indices(len(kept), 1)
        if len(i) * len(values) > 2 * _MOST_DRAWS:
            return float("nan"), float("nan")
        with np.errstate(all="ignore"):  # the log of 0, and the difference of two of them
            if kind == "ratio":
                estimate, values = np.log(estimate), np.log(values)
            pairs = Draws(estimate[i] - estimate[j], values[:, i] - values[:, j])
            low, high = pairs.max_t(confidence)
            return widest_difference(low, high) if kind == "difference" else narrowest_ratio(np.exp(low), np.exp(high))

    def _columns(self, metric: str, block: str) -> IntArray:
        start = (BLOCKS.index(block) * len(self.metrics) + self.metrics.index(metric)) * self.groups
        return np.arange(start, start + self.groups)


def resample_groups(
    cells: GroupCells,
    metrics: Sequence[tuple[Metric, Custom | None]],
    reference: int,
    resamples: int,
    rng: np.random.Generator,
    support: dict[str, BoolArray] | None = None,
) -> list[Resampled]:
    """Resample the cells and return draws of every metric, in batches that fit into memory.

    Parameters
    ----------
    cells : with one stratum; or with several and `support`, for values standardised over strata.
    metrics : each with the user's function or None.
    reference : position of the reference group.
    resamples, rng : how many, and the source of randomness.
    support : for each metric the strata in which every compared group can be compared.
    """
    groups = len(cells.labels)
    batch = max(1, _MOST_DRAWS // (resamples * groups * len(BLOCKS)))
    seeds = rng.integers(2**63, size=1)  # every batch sees the same resamples
    out = []
    for start in range(0, len(metrics), batch):
        part = metrics[start : start + batch]
        statistic = _statistic(cells.n.shape, part, reference, support)
        draws = resample(cells.moments(), statistic, resamples=resamples, rng=np.random.default_rng(seeds))
        out.append(Resampled(tuple(metric.name for metric, _ in part), groups, draws))
    return out


def _statistic(
    shape: tuple[int, ...],
    metrics: Sequence[tuple[Metric, Custom | None]],
    reference: int,
    support: dict[str, BoolArray] | None,
) -> Callable[[FloatArray, FloatArray], FloatArray]:
    def statistic(counts: FloatArray, sums: FloatArray) -> FloatArray:
        cells = sums.reshape(*counts.shape[:-1], *shape, 3)
        values, overall = [], []
        for metric, custom in metrics:
            by_stratum = metric_values(cells, metric, custom)
            everybody = metric_values(cells.sum(axis=-4, keepdims=True), metric, custom)
            if support is None:
                values.append(by_stratum[..., 0, :])
                overall.append(everybody[..., 0, :])
            else:
                share = cells[..., 0].sum(axis=(-3, -2, -1)) * support[metric.name]
                values.append(standardised(by_stratum, share))
                overall.append(standardised(everybody, share))
        value = np.stack(values, axis=-2)
        everyone = np.stack(overall, axis=-2)
        base = value[..., reference, None]
        blocks = (value, value - everyone, value / everyone, value - base, value / base)
        return np.concatenate([block.reshape(*counts.shape[:-1], -1) for block in blocks], axis=-1)

    return statistic


def standardised(by_stratum: FloatArray, share: FloatArray) -> FloatArray:
    """Return the mean over strata (second-last axis), weighted by each stratum's share of all people."""
    used = share[..., None] > 0
    return np.where(used, by_stratum * share[..., None], 0.0).sum(axis=-2) / share.sum(axis=-1)[..., None]
