"""Group values, with the inputs of their limits.

Most metrics are a ratio of sums, so one formula gives their variances.

For R = sum(a x) / sum(b w), the influence of a row is (a x - R b w) / sum(b w). The sum of squared influences is the
linearised variance; for a rate with equal weights it is p (1 - p) / n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from evenhand.audits.parity.definition import WEIGHT, ParityMetric
from evenhand.audits.parity.gather import GroupCells
from evenhand.stats import intervals
from evenhand.stats.auc import auc_influence
from evenhand.stats.clusters import FEWEST, ClusterErrors
from evenhand.stats.permutation import MeanComparison
from evenhand.stats.quantiles import GroupQuantiles
from evenhand.stats.skewed import hall_t
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval
from evenhand.table.rows import ScoreRows

_ROUNDING = 1e-13


class PeopleOfGroups(Protocol):
    """People whose means can be compared between any two sets of groups, such as `GroupedValues`."""

    @property
    def groups(self) -> int:
        """The number of groups."""

    def compare(
        self,
        first: Sequence[int] | IntArray,
        second: Sequence[int] | IntArray,
        bounds: tuple[float, float],
        alpha: float = 0.05,
        level: float | None = None,
    ) -> MeanComparison:
        """Return the comparison of the means of two sets of groups."""

    def approximate(
        self, first: Sequence[int] | IntArray, second: Sequence[int] | IntArray, bounds: tuple[float, float]
    ) -> MeanComparison | None:
        """Return the comparison by moments alone, or None if it is not available."""


@dataclass(frozen=True, kw_only=True)
class GroupValues:
    """A metric's value in each group and overall, with the inputs of its limits.

    Parameters
    ----------
    value, overall : the metric by group and over all people; nan where undefined.
    n, n_overall : the number of rows in each group's denominator, and in the denominator of all people.
    counted : the number to compare with `min_count`: `n`, or the people with the rarer outcome for an AUC or several
        rates.
    stderr : the standard errors.
    trials : the effective sample sizes (n without weights); for an AUC, the rows with the rarer outcome.
    bounds : the lowest and highest possible value.
    people, members : the values of people for a mean, and the mask (groups, all groups) of the groups that each group
        contains.
    weighted : whether rows have survey weights; without weights, a rate times its trials is a number of people.
    rest, share : the metric for all people outside each group, and the group's share of all people.
    rates : the values of the rates that the metric is a function of.
    skewness : the skewness of the mean of numbers.
    one_person : whether one person contributes more than half of the group's variance.
    ordered, position : the sorted numbers of all groups (and of all people if rows come in clusters) to take quantiles
        of, and the position of each group there.
    overall_stderr, covariance : the standard error of the overall AUC, and its covariance with each group's.
    clusters, places : the cluster-robust errors of all groups and of all people, and the groups' positions there.
    """

    metric: ParityMetric
    value: FloatArray
    overall: float
    n: IntArray
    n_overall: int
    counted: FloatArray
    stderr: FloatArray
    trials: FloatArray
    bounds: tuple[float, float]
    weighted: bool = False
    people: PeopleOfGroups | None = None
    members: BoolArray | None = None
    rest: GroupValues | None = None
    share: FloatArray | None = None
    rates: tuple[GroupValues, ...] = ()
    overall_stderr: float = float("nan")
    skewness: FloatArray | None = None
    one_person: BoolArray | None = None
    ordered: GroupQuantiles | None = None
    position: IntArray | None = None
    covariance: FloatArray | None = None
    clusters: ClusterErrors | None = None
    places: IntArray | None = None

    def limits(self, confidence: float | FloatArray, *, exact: bool = False) -> Interval:
        """Return separate limits for each group.

        Limits at a higher confidence contain limits at a lower one.

        A rate has Wilson's limits, or with `exact` Clopper and Pearson's; a function of rates has MOVER limits from
        them. A mean has the limits of `bounded_mean`, as has an AUC with DeLong's standard error. A mean of numbers
        has the limits of `hall_t`, and a quantile of numbers has order statistics.
        """
        if self.metric.function is not None and self.rates:
            rate_limits = [rate.limits(confidence, exact=exact) for rate in self.rates]
            return intervals.mover(self.metric.function.value, [rate.value for rate in self.rates], rate_limits)
        if self.clusters is not None:
            return self._cluster_limits(self.clusters, confidence)
        of_numbers = self._number_limits(confidence)
        if of_numbers is not None:
            return of_numbers
        if self.metric.method == "rate" and exact:
            return intervals.clopper_pearson(self.value, self.trials, confidence)
        if self.metric.method == "rate":
            return intervals.wilson(self.value, self.trials, float(confidence))
        if self.metric.method == "custom" or np.isnan(self.stderr).all():  # only the bootstrap has limits
            return no_limits(len(self.value))
        return intervals.bounded_mean(self.value, self.stderr, self.trials, confidence, self.bounds)

    def _cluster_limits(self, clusters: ClusterErrors, confidence: float | FloatArray) -> Interval:
        """Return Student's t limits with the degrees of freedom of the cluster-robust errors."""
        df = clusters.dof[self.places]
        if self.ordered is not None and self.position is not None and self.metric.quantile is not None:
            normal = intervals.normal_confidence(df, confidence)
            return self.ordered.limits(self.metric.quantile, self.position, normal)
        if self.metric.method == "number" and self.skewness is not None:
            return hall_t(self.value, self.stderr, self.skewness, df + 1.0, confidence)
        if self.metric.method == "rate" and self.metric.function is None:
            return intervals.wilson(self.value, self.trials, confidence, df)
        if np.isinf(self.bounds[0]):
            return intervals.student_t(self.value, self.stderr, df, confidence)
        return intervals.bounded_mean(self.value, self.stderr, self.trials, confidence, self.bounds, df=df)

    @property
    def enough_clusters(self) -> BoolArray:
        """Whether each group has enough clusters; always true if rows are independent."""
        if self.clusters is None:
            return np.ones(len(self.value), dtype=np.bool_)
        return np.asarray(self.clusters.clusters[self.places] >= FEWEST)

    def _number_limits(self, confidence: float | FloatArray) -> Interval | None:
        """Return the limits of quantiles or means of numbers, or None for other metrics."""
        if self.ordered is not None and self.position is not None and self.metric.quantile is not None:
            return self.ordered.limits(self.metric.quantile, self.position, confidence)
        if self.metric.method != "number" or self.skewness is None:
            return None
        return hall_t(self.value, self.stderr, self.skewness, self.trials, confidence)

    def only(self, groups: IntArray) -> GroupValues:
        """Return the values of some groups."""
        named = [
            *("value", "n", "counted", "stderr", "trials", "share", "covariance", "members"),
            *("skewness", "one_person", "position", "places"),
        ]
        arrays = {name: values[groups] for name in named if (values := getattr(self, name)) is not None}
        rest = None if self.rest is None else self.rest.only(groups)
        return replace(self, rest=rest, rates=tuple(rate.only(groups) for rate in self.rates), **arrays)


def with_people(values: GroupValues, people: PeopleOfGroups) -> GroupValues:
    """Return values with the values of single people, which are needed to compare means."""
    own = np.eye(people.groups, dtype=np.bool_)
    rest = values.rest and replace(values.rest, people=people, members=~own)
    return replace(values, people=people, members=own, rest=rest)


def no_limits(groups: int) -> Interval:
    """Return nan limits for each group."""
    return Interval(np.full(groups, np.nan), np.full(groups, np.nan))


def ratio_values(cells: GroupCells, metric: ParityMetric, score_range: tuple[float, float]) -> GroupValues:
    """Return the group values of a ratio of sums, or of a function of rates, in one stratum.

    Parameters
    ----------
    cells : cells with a single stratum.
    metric : any metric but AUC.
    score_range : the lowest and highest possible score.
    """
    if metric.function is not None:
        return _function_values(cells, metric, score_range)
    n, first, second = cells.n[0], cells.first[0], cells.second[0]
    everyone = replace(cells, n=n.sum(0)[None], first=first.sum(0)[None], second=second.sum(0)[None])
    everybody = _Ratios.build(everyone, metric)
    whole = replace(cells, n=n, first=first, second=second)
    others = replace(cells, n=all_but_one(n), first=all_but_one(first), second=all_but_one(second))
    below = metric.coefficients()[1]
    with np.errstate(all="ignore"):
        total_weight = (first[..., WEIGHT] * below).sum(axis=(-2, -1))
        share = total_weight / total_weight.sum()
    rest = _values(others, metric, everybody, score_range)
    return replace(_values(whole, metric, everybody, score_range), rest=rest, share=share)


def all_but_one(parts: Any) -> Any:
    """Return for each entry of the first axis the sum of all other entries, without a subtraction's cancellation."""
    before = np.concatenate([np.zeros_like(parts[:1]), np.cumsum(parts, axis=0)[:-1]])
    after = np.concatenate([np.cumsum(parts[::-1], axis=0)[::-1][1:], np.zeros_like(parts[:1])])
    return before + after


def _values(
    cells: GroupCells, metric: ParityMetric, everybody: _Ratios, score_range: tuple[float, float]
) -> GroupValues:
    """Return values and the inputs of their limits, from cells by group, outcome and decision."""
    ratios = _Ratios.build(cells, metric)
    rows, variance, trials = ratios.rows, ratios.variance, ratios.kish
    if metric.method == "rate":
        # Without n / (n - 1), as Wilson's p (1 - p) / n: equal weights give the limits of no weights.
        weighted = intervals.effective_trials(ratios.value, variance, ratios.kish) if cells.weighted else None
        trials = rows.astype(np.float64) if weighted is None else weighted
    else:
        with np.errstate(all="ignore"):
            variance = variance * rows / (rows - 1.0)
    return GroupValues(
        metric=metric,
        value=ratios.value,
        overall=float(everybody.value[0]),
        n=rows,
        n_overall=int(everybody.rows[0]),
        counted=rows.astype(np.float64),
        stderr=np.sqrt(variance),
        trials=trials,
        bounds=metric.bounds(score_range),
        weighted=cells.weighted,
    )


def _function_values(cells: GroupCells, metric: ParityMetric, score_range: tuple[float, float]) -> GroupValues:
    """Return a function of independent rates.

    The standard error is the delta method's, sqrt(sum of (slope · the rate's own error)²): for balanced accuracy
    sqrt(var(tpr) + var(tnr)) / 2. Limits do not use it, because it is 0 if every rate is 0 or 1; they are computed
    from the rates' limits, which are valid for small counts.
    """
    function = metric.function
    if function is None:
        raise ValueError(f"the metric {metric.name!r} is no function of rates")
    rates = tuple(ratio_values(cells, rate, score_range) for rate in function.rates)
    with np.errstate(all="ignore"):
        value = function.value(*(rate.value for rate in rates))
        slopes = function.slopes(*(rate.value for rate in rates))
        stderr = np.sqrt(sum((slope * rate.stderr) ** 2 for slope, rate in zip(slopes, rates, strict=True)))
        overall = float(function.value(*(np.float64(rate.overall) for rate in rates)))
    if metric.ratio is not None:  # the same number, rounded as the ratio is
        value = _ratio_of(cells.first[0], metric)
        overall = float(_ratio_of(cells.first[0].sum(0)[None], metric)[0])
    n = cells.n[0]
    return GroupValues(
        metric=metric,
        value=value,
        overall=overall,
        n=metric.people(n),
        n_overall=int(metric.people(n.sum(0))),
        counted=metric.people_counted(n).astype(np.float64),
        stderr=np.asarray(stderr),
        trials=np.min([rate.trials for rate in rates], axis=0),
        bounds=metric.bounds(score_range),
        rates=rates,
    )


def _ratio_of(first: FloatArray, metric: ParityMetric) -> FloatArray:
    """Return a ratio of sums by group."""
    above, below = metric.coefficients()
    with np.errstate(all="ignore"):
        return np.asarray((first * above).sum(axis=(-3, -2, -1)) / (first[..., WEIGHT] * below).sum(axis=(-2, -1)))


@dataclass(frozen=True, kw_only=True)
class _Ratios:
    """A ratio of sums by group: value, linearised variance, Kish's effective size, and rows in the denominator."""

    value: FloatArray
    variance: FloatArray
    kish: FloatArray
    rows: IntArray

    @classmethod
    def build(cls, cells: GroupCells, metric: ParityMetric) -> _Ratios:
        """Build from cells by group, outcome and decision."""
        first, second = cells.first, cells.second
        above, below = metric.coefficients()
        with np.errstate(all="ignore"):
            weight = (first[..., WEIGHT] * below).sum(axis=(-2, -1))
            value = _ratio_of(first, metric)
            influence = np.broadcast_to(above, first.shape).copy()
            influence[..., WEIGHT] -= value[:, None, None] * below
            squares = np.einsum("gydi,gydij,gydj->g", influence, second, influence)
            kish = weight**2 / (second[..., WEIGHT, WEIGHT] * below**2).sum(axis=(-2, -1))
            # Sums of squares are differences of large numbers: a remainder below their rounding is no spread.
            rounding = _ROUNDING * np.einsum("gydi,gydii->g", influence**2, second)
            variance = np.where(squares > rounding, squares, 0.0) / weight**2
        return cls(value=value, variance=variance, kish=kish, rows=metric.people(cells.n))


def auc_values(rows: ScoreRows, codes: IntArray, groups: int, metric: ParityMetric) -> GroupValues:
    """Return AUC by group with DeLong's variances, and their covariances with the overall AUC.

    Parameters
    ----------
    rows : the scores in canonical order.
    codes : the group of each entry of `rows`.
    groups : the number of groups.
    metric : the metric's entry in the table of metrics.
    """
    # An entry's influence is the joint influence of its rows; this divides it among the rows.
    spread = rows.squares / rows.weight**2
    overall, overall_influence = rows.auc
    value, stderr, covariance, rarer = (np.full(groups, np.nan) for _ in range(4))
    n = np.zeros(groups, dtype=np.int64)
    by_group = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[by_group], np.arange(groups + 1))
    for group in range(groups):
        member = by_group[edges[group] : edges[group + 1]]
        positive, count, each = rows.positive.take(member), rows.groups.n.take(member), spread.take(member)
        n[group] = count.sum()
        rarer[group] = min(count[positive].sum(), count[~positive].sum())
        value[group], influence = auc_influence(rows.score.take(member), positive, weight=rows.weight.take(member))
        stderr[group] = _delong_stderr(influence, each, positive, count)
        covariance[group] = (influence * overall_influence.take(member) * each).sum()
    overall_stderr = _delong_stderr(overall_influence, spread, rows.positive, rows.groups.n)
    return GroupValues(
        metric=metric,
        value=value,
        overall=overall,
        n=n,
        n_overall=int(rows.groups.n.sum()),
        counted=rarer,
        stderr=stderr,
        trials=rarer,
        bounds=(0.0, 1.0),
        overall_stderr=overall_stderr,
        covariance=covariance,
    )


def _delong_stderr(influence: FloatArray, spread: FloatArray, positive: BoolArray, count: IntArray) -> float:
    """Return the standard error with DeLong's factor m / (m - 1) for each of the two outcomes."""
    variance = 0.0
    for outcome in (positive, ~positive):
        m = float(count[outcome].sum())
        squares = float((influence[outcome] ** 2 * spread[outcome]).sum())
        variance += squares * m / (m - 1) if m > 1 else float("nan")
    return float(np.sqrt(variance))
