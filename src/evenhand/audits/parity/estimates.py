"""Group values with their limits: every metric but AUC is a ratio of sums, so one formula serves all.

For R = sum(a x) / sum(b w) the influence of a row is (a x - R b w) / sum(b w); the sum of its squares is the
linearised variance, which with equal weights is p (1 - p) / n for a rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.audits.parity.groups import GroupCells
from evenhand.audits.parity.metrics import WEIGHT, Metric
from evenhand.stats.auc import auc_influence
from evenhand.stats.intervals import clopper_pearson, effective_trials, logit_t, wilson
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval
from evenhand.table.rows import ScoreRows

_ROUNDING = 1e-13


@dataclass(frozen=True)
class GroupValues:
    """One metric's value in each group and overall, with what its limits are computed from.

    Parameters
    ----------
    value, overall : the metric by group and over everybody; nan where undefined.
    n : rows in each group's denominator.
    stderr : standard errors.
    trials : effective sample sizes (n without weights); for an AUC the rows of the rarer outcome.
    bounds : the lowest and highest possible value.
    rest, share : the same metric for everybody outside each group, and the group's share of everybody.
    covariance : of each group's AUC with the overall AUC.
    """

    metric: Metric
    value: FloatArray
    overall: float
    n: IntArray
    n_overall: int
    stderr: FloatArray
    trials: FloatArray
    bounds: tuple[float, float]
    rest: GroupValues | None = None
    share: FloatArray | None = None
    overall_stderr: float = float("nan")
    covariance: FloatArray | None = None

    @property
    def counted(self) -> FloatArray:
        """What `min_count` applies to: people in the denominator; for an AUC those of the rarer outcome."""
        return self.trials if self.metric.kind == "rank" else self.n.astype(np.float64)

    def limits(self, confidence: float, *, exact: bool = False) -> Interval:
        """Return limits for each group on its own.

        Wilson's for a rate, or with `exact` Clopper and Pearson's; Student's t on the logit scale of the bounds for a
        mean and, with DeLong's standard error, for an AUC.
        """
        if self.metric.kind == "rate":
            return (clopper_pearson if exact else wilson)(self.value, self.trials, confidence)
        return logit_t(self.value, self.stderr, self.trials - 1, confidence, self.bounds)

    def only(self, groups: IntArray) -> GroupValues:
        """Return the values of some groups."""
        covariance = None if self.covariance is None else self.covariance[groups]
        return replace(
            self,
            value=self.value[groups],
            n=self.n[groups],
            stderr=self.stderr[groups],
            trials=self.trials[groups],
            covariance=covariance,
            rest=None if self.rest is None else self.rest.only(groups),
            share=None if self.share is None else self.share[groups],
        )


def ratio_values(cells: GroupCells, metric: Metric, score_range: tuple[float, float]) -> GroupValues:
    """Return a metric that is a ratio of sums, for the groups of one stratum.

    Parameters
    ----------
    cells : cells with a single stratum.
    metric : any metric but AUC.
    score_range : the lowest and highest possible score.
    """
    n, first, second = cells.n[0], cells.first[0], cells.second[0]
    overall, _, _, rows = _ratio(n.sum(0)[None], first.sum(0)[None], second.sum(0)[None], metric)
    whole = replace(cells, n=n, first=first, second=second)
    others = replace(cells, n=_all_but_one(n), first=_all_but_one(first), second=_all_but_one(second))
    below = metric.coefficients()[1]
    with np.errstate(all="ignore"):
        heavy = (first[..., WEIGHT] * below).sum(axis=(-2, -1))
        share = heavy / heavy.sum()
    shared = {"metric": metric, "overall": float(overall[0]), "n_overall": int(rows[0])}
    rest = _values(others, shared, score_range)
    return replace(_values(whole, shared, score_range), rest=rest, share=share)


def _all_but_one(parts: Any) -> Any:
    """Return, for each entry of the first axis, the sum of all others; added up, since differences lose digits."""
    before = np.concatenate([np.zeros_like(parts[:1]), np.cumsum(parts, axis=0)[:-1]])
    after = np.concatenate([np.cumsum(parts[::-1], axis=0)[::-1][1:], np.zeros_like(parts[:1])])
    return before + after


def _values(cells: GroupCells, shared: dict[str, Any], score_range: tuple[float, float]) -> GroupValues:
    """Return values and what their limits need, from cells by group, outcome and decision."""
    metric: Metric = shared["metric"]
    value, variance, kish, rows = _ratio(cells.n, cells.first, cells.second, metric)
    bounds = (0.0, 1.0)
    if metric.kind == "rate":
        # Without n / (n - 1), as Wilson's p (1 - p) / n: equal weights give the limits of no weights.
        trials = effective_trials(value, variance, kish) if cells.weighted else rows.astype(np.float64)
    else:
        with np.errstate(all="ignore"):
            variance = variance * rows / (rows - 1.0)
        trials = kish
        if metric.name == "mean_score":
            bounds = score_range
    return GroupValues(value=value, n=rows, stderr=np.sqrt(variance), trials=trials, bounds=bounds, **shared)


def _ratio(
    n: IntArray, first: FloatArray, second: FloatArray, metric: Metric
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Return value, linearised variance, Kish's effective size and rows in the denominator, by group."""
    above, below = metric.coefficients()
    with np.errstate(all="ignore"):
        weight = (first[..., WEIGHT] * below).sum(axis=(-2, -1))
        value = (first * above).sum(axis=(-3, -2, -1)) / weight
        influence = np.broadcast_to(above, first.shape).copy()
        influence[..., WEIGHT] -= value[:, None, None] * below
        squares = np.einsum("gydi,gydij,gydj->g", influence, second, influence)
        kish = weight**2 / (second[..., WEIGHT, WEIGHT] * below).sum(axis=(-2, -1))
        # Sums of squares are differences of large numbers: what is left below their rounding is no spread.
        rounding = _ROUNDING * np.einsum("gydi,gydii->g", influence**2, second)
        variance = np.where(squares > rounding, squares, 0.0) / weight**2
    return value, variance, kish, (n * below.astype(np.int64)).sum(axis=(-2, -1))


def auc_values(rows: ScoreRows, codes: IntArray, groups: int, metric: Metric) -> GroupValues:
    """Return AUC by group with DeLong's variances, and their covariances with the overall AUC.

    Parameters
    ----------
    rows : scores in canonical order.
    codes : the group of each entry of `rows`.
    groups : the number of groups.
    metric : the metric's entry in the table of metrics.
    """
    # An entry's influence is that of all its rows together; this spreads it over them.
    spread = rows.squares / rows.weight**2
    overall, overall_influence = auc_influence(rows.score, rows.positive, weight=rows.weight)
    value, stderr, covariance, rarer = (np.full(groups, np.nan) for _ in range(4))
    n = np.zeros(groups, dtype=np.int64)
    by_group = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[by_group], np.arange(groups + 1))
    for group in range(groups):
        member = by_group[edges[group] : edges[group + 1]]
        positive, count = rows.positive[member], rows.groups.n[member]
        n[group] = count.sum()
        rarer[group] = min(count[positive].sum(), count[~positive].sum())
        value[group], influence = auc_influence(rows.score[member], positive, weight=rows.weight[member])
        stderr[group] = _delong_stderr(influence, spread[member], positive, count)
        covariance[group] = (influence * overall_influence[member] * spread[member]).sum()
    overall_stderr = _delong_stderr(overall_influence, spread, rows.positive, rows.groups.n)
    return GroupValues(
        metric,
        value,
        overall,
        n,
        int(rows.groups.n.sum()),
        stderr,
        rarer,
        (0.0, 1.0),
        overall_stderr=overall_stderr,
        covariance=covariance,
    )


def _delong_stderr(influence: FloatArray, spread: FloatArray, positive: BoolArray, count: IntArray) -> float:
    """Return the standard error with DeLong's m / (m - 1) for each of the two outcomes."""
    variance = 0.0
    for outcome in (positive, ~positive):
        m = float(count[outcome].sum())
        squares = float((influence[outcome] ** 2 * spread[outcome]).sum())
        variance += squares * m / (m - 1) if m > 1 else float("nan")
    return float(np.sqrt(variance))
