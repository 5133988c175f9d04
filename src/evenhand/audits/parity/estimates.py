"""Group values with their limits: every metric but AUC is a ratio of sums, so one formula serves all.

For R = sum(a x) / sum(b w) the influence of a row is (a x - R b w) / sum(b w); the sum of its squares is the
linearised variance, which with equal weights is p (1 - p) / n for a rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evenhand.audits.parity.groups import GroupCells
from evenhand.audits.parity.metrics import WEIGHT, Metric
from evenhand.stats.auc import auc_influence
from evenhand.stats.intervals import effective_trials, logit_t, wilson
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
    covariance : of each group's value with the overall value, where it is known.
    """

    metric: Metric
    value: FloatArray
    overall: float
    n: IntArray
    n_overall: int
    stderr: FloatArray
    trials: FloatArray
    bounds: tuple[float, float]
    overall_stderr: float = float("nan")
    covariance: FloatArray | None = None

    def limits(self, confidence: float) -> Interval:
        """Return Wilson limits for a rate, Student's t on the logit scale of the bounds for a mean or an AUC."""
        if self.metric.kind == "rate":
            return wilson(self.value, self.trials, confidence)
        return logit_t(self.value, self.stderr, self.trials - 1, confidence, self.bounds)

    def only(self, groups: IntArray) -> GroupValues:
        """Return the values of some groups."""
        covariance = None if self.covariance is None else self.covariance[groups]
        return replace(
            self, value=self.value[groups], n=self.n[groups], stderr=self.stderr[groups], trials=self.trials[groups],
            covariance=covariance,
        )  # fmt: skip


def ratio_values(cells: GroupCells, metric: Metric, score_range: tuple[float, float]) -> GroupValues:
    """Return a metric that is a ratio of sums, for the groups of one stratum.

    Parameters
    ----------
    cells : cells with a single stratum.
    metric : any metric but AUC.
    score_range : the lowest and highest possible score.
    """
    n, first, second = cells.n[0], cells.first[0], cells.second[0]
    value, variance, rows, kish = _ratio(n, first, second, metric)
    overall = _ratio(n.sum(0)[None], first.sum(0)[None], second.sum(0)[None], metric)
    weighted = not np.array_equal(first[..., WEIGHT], n)
    if metric.kind == "rate":
        # Without n / (n - 1), as Wilson's p (1 - p) / n: equal weights give the limits of no weights.
        trials = effective_trials(value, variance, kish) if weighted else rows.astype(np.float64)
        bounds = (0.0, 1.0)
    else:
        with np.errstate(all="ignore"):
            variance = variance * rows / (rows - 1.0)
        trials = kish
        low, high = score_range
        bounds = (0.0, max(high, 1 - low) ** 2) if metric.name == "brier" else (low, high)
    return GroupValues(metric, value, float(overall[0][0]), rows, int(overall[2][0]), np.sqrt(variance), trials, bounds)


def _ratio(
    n: IntArray, first: FloatArray, second: FloatArray, metric: Metric
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Return value, linearised variance, rows in the denominator and Kish's effective size, by group."""
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
    return value, variance, (n * below.astype(np.int64)).sum(axis=(-2, -1)), kish


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
        metric, value, overall, n, int(rows.groups.n.sum()), stderr, rarer, (0.0, 1.0),
        overall_stderr, covariance,
    )  # fmt: skip


def _delong_stderr(influence: FloatArray, spread: FloatArray, positive: BoolArray, count: IntArray) -> float:
    """Return the standard error with DeLong's m / (m - 1) for each of the two outcomes."""
    variance = 0.0
    for outcome in (positive, ~positive):
        m = float(count[outcome].sum())
        squares = float((influence[outcome] ** 2 * spread[outcome]).sum())
        variance += squares * m / (m - 1) if m > 1 else float("nan")
    return float(np.sqrt(variance))
