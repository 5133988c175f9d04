"""Group values and the gaps between them, with their limits.

Every metric but AUC is a ratio of sums, so one formula serves all.

For R = sum(a x) / sum(b w) the influence of a row is (a x - R b w) / sum(b w); the sum of its squares is the
linearised variance, which with equal weights is p (1 - p) / n for a rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from evenhand.audits.parity.gather import GroupCells
from evenhand.audits.parity.metrics import WEIGHT, ParityMetric
from evenhand.core.records import Against, Kind
from evenhand.stats import intervals
from evenhand.stats import worst_pair as pairs
from evenhand.stats.auc import auc_influence
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

    metric: ParityMetric
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
        return self.trials if self.metric.method == "rank" else self.n.astype(np.float64)

    def limits(self, confidence: float | FloatArray, *, exact: bool = False) -> Interval:
        """Return limits for each group on its own; pure in the confidence and nested in it.

        Wilson's for a rate, or with `exact` Clopper and Pearson's; `bounded_mean` for a mean and, with DeLong's
        standard error, for an AUC.
        """
        if self.metric.method == "rate" and exact:
            return intervals.clopper_pearson(self.value, self.trials, confidence)
        if self.metric.method == "rate":
            return intervals.wilson(self.value, self.trials, float(confidence))
        if self.metric.method == "custom" or np.isnan(self.stderr).all():  # only the bootstrap knows
            return Interval(np.full(self.value.shape, np.nan), np.full(self.value.shape, np.nan))
        return intervals.bounded_mean(self.value, self.stderr, self.trials, confidence, self.bounds)

    def only(self, groups: IntArray) -> GroupValues:
        """Return the values of some groups."""
        named = {name: getattr(self, name) for name in ("value", "n", "stderr", "trials", "share", "covariance")}
        arrays = {name: values[groups] for name, values in named.items() if values is not None}
        return replace(self, rest=None if self.rest is None else self.rest.only(groups), **arrays)


def ratio_values(cells: GroupCells, metric: ParityMetric, score_range: tuple[float, float]) -> GroupValues:
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
    metric: ParityMetric = shared["metric"]
    value, variance, kish, rows = _ratio(cells.n, cells.first, cells.second, metric)
    if metric.method == "rate":
        # Without n / (n - 1), as Wilson's p (1 - p) / n: equal weights give the limits of no weights.
        trials = intervals.effective_trials(value, variance, kish) if cells.weighted else rows.astype(np.float64)
    else:
        with np.errstate(all="ignore"):
            variance = variance * rows / (rows - 1.0)
        trials = kish
    bounds = metric_bounds(metric, score_range)
    return GroupValues(value=value, n=rows, stderr=np.sqrt(variance), trials=trials, bounds=bounds, **shared)


def _ratio(
    n: IntArray, first: FloatArray, second: FloatArray, metric: ParityMetric
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


def auc_values(rows: ScoreRows, codes: IntArray, groups: int, metric: ParityMetric) -> GroupValues:
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
    numbers = (metric, value, overall, n, int(rows.groups.n.sum()), stderr, rarer, (0.0, 1.0))
    return GroupValues(*numbers, overall_stderr=overall_stderr, covariance=covariance)


def _delong_stderr(influence: FloatArray, spread: FloatArray, positive: BoolArray, count: IntArray) -> float:
    """Return the standard error with DeLong's m / (m - 1) for each of the two outcomes."""
    variance = 0.0
    for outcome in (positive, ~positive):
        m = float(count[outcome].sum())
        squares = float((influence[outcome] ** 2 * spread[outcome]).sum())
        variance += squares * m / (m - 1) if m > 1 else float("nan")
    return float(np.sqrt(variance))


# Gaps ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GapEstimate:
    """One gap in numbers: group minus, or over, reference.

    Parameters
    ----------
    group, reference : positions of the two groups, -1 for everybody.
    higher : whether the group has the higher value.
    value, limits : the gap; nan where undefined.
    joint : limits that hold for all gaps of its kind together.
    differs : whether this very pair is told apart; in the worst pair the limits may rest on another one.
    """

    kind: Kind
    against: Against
    group: int
    reference: int
    higher: bool
    value: float
    limits: tuple[float, float]
    joint: tuple[float, float] = (float("nan"), float("nan"))
    differs: bool = False


def held(limits: Interval, value: FloatArray, bounds: tuple[FloatArray | float, FloatArray | float]) -> Interval:
    """Return limits that lie between what is possible and hold the value itself.

    A mirrored or normal interval does not know what is possible, and resamples of a biased statistic may all lie on one
    side of it. Neither change makes an interval hold the truth less often.
    """
    low, high = (np.minimum(np.maximum(end, bounds[0]), bounds[1]) for end in limits)
    return Interval(np.minimum(low, value), np.maximum(high, value))


def metric_bounds(metric: ParityMetric, score_range: tuple[float, float]) -> tuple[float, float]:
    """Return the lowest and highest possible value of a metric; nobody knows those of a user's own."""
    if metric.method == "custom":
        return -np.inf, np.inf
    return score_range if metric.name == "mean_score" else (0.0, 1.0)


def compare(
    a: GroupValues, b: GroupValues, kind: Kind, confidence: float | FloatArray, *, exact: bool = False
) -> Interval:
    """Return limits of a - b or a / b for independent groups, pairwise, from each side's own limits (MOVER).

    One recipe for rates, means and AUCs: it keeps the skewness that the sides' own limits have, which Welch's and
    Fieller's symmetric limits do not; with few people and skewed scores those cover far too seldom.

    Parameters
    ----------
    a, b : the two sides, arrays of one length.
    kind : difference or ratio.
    confidence : of each pair on its own.
    exact : for rates from exact limits, which tests and limits of many pairs need: Wilson's fail far out in the tails.
    """
    left, right = (side.limits(confidence, exact=exact) for side in (a, b))
    move = intervals.mover_difference if kind == "difference" else intervals.mover_ratio
    return move(a.value, left, b.value, right)


def worst_pair(values: GroupValues, groups: IntArray, kind: Kind, confidence: float | None) -> GapEstimate:
    """Return the largest difference (or the smallest ratio) among some groups; see `evenhand.stats.worst_pair`.

    Without a confidence, here and below, it has no limits: the bootstrap sets them.
    """
    kept = values.only(groups)
    order = np.argsort(kept.value, kind="stable")
    bottom, top = int(order[0]), int(order[-1])
    highest, lowest = int(groups[top]), int(groups[bottom])
    certainty: dict[str, Any] = {"limits": (float("nan"), float("nan"))}
    if confidence is not None:
        limits = partial(kept.limits, exact=True)
        joint = limits(pairs.range_confidence(confidence, len(groups)))
        ends = pairs.worst_pair(kept.value, limits, kind, confidence)
        differs = pairs.pair_differs(kept.value, joint, top, bottom)
        certainty = {"limits": ends, "joint": ends, "differs": differs}
    if kind == "difference":
        value = float(kept.value[top] - kept.value[bottom])
        return GapEstimate(kind, "worst_pair", highest, lowest, True, value, **certainty)
    value = _quotient(kept.value[bottom], kept.value[top])
    return GapEstimate(kind, "worst_pair", lowest, highest, False, value, **certainty)


def to_reference(
    values: GroupValues, groups: IntArray, reference: int, kind: Kind, confidence: float | None
) -> list[GapEstimate]:
    """Return each group's difference from, or ratio to, the reference group."""
    others = groups[groups != reference]
    group, base = values.only(others), values.only(np.full(len(others), reference))

    def limits(at: float | FloatArray, exact: bool) -> Interval:
        return compare(group, base, kind, at, exact=exact)

    return _gaps(kind, "reference", values, others, reference, values.value[reference], limits, confidence)


def to_overall(values: GroupValues, groups: IntArray, kind: Kind, confidence: float | None) -> list[GapEstimate]:
    """Return each group's difference from, or ratio to, everybody's value.

    Everybody is the group and the rest, which are independent. With p the group's share of everybody,
    group - everybody = (1 - p) (group - rest) and everybody / group = p + (1 - p) rest / group, so the limits follow
    from those of the group against the rest.
    """

    def limits(at: float | FloatArray, exact: bool) -> Interval:
        if values.metric.method == "rank":
            return _auc_limits(values, groups, kind, at)
        if values.rest is None or values.share is None:  # only the bootstrap knows
            return Interval(np.full(len(groups), np.nan), np.full(len(groups), np.nan))
        group, rest = values.only(groups), values.rest.only(groups)
        return _limits_from_the_rest(group, rest, values.share[groups], kind, at, exact)

    return _gaps(kind, "overall", values, groups, -1, values.overall, limits, confidence)


def _gaps(
    kind: Kind,
    against: Against,
    values: GroupValues,
    groups: IntArray,
    base: int,
    base_value: float,
    limits: Callable[[float | FloatArray, bool], Interval],
    confidence: float | None,
) -> list[GapEstimate]:
    """Return gaps to one base: each with its own limits, and exact ones that hold for all of them together.

    Together at the confidence c^(1/m) each (Sidak): two-sided limits of m comparisons, dependent or not.
    """
    own = joint = Interval(np.full(len(groups), np.nan), np.full(len(groups), np.nan))
    if confidence is not None:
        own, joint = limits(confidence, False), limits(confidence ** (1.0 / max(len(groups), 1)), True)
    equal = 0.0 if kind == "difference" else 1.0
    gaps = []
    for place, group in enumerate(groups):
        value = values.value[group]
        gap = float(value - base_value) if kind == "difference" else _quotient(value, base_value)
        alone, together = ((float(each.low[place]), float(each.high[place])) for each in (own, joint))
        sides = (kind, against, int(group), base, bool(value >= base_value))
        differs = alone[0] > equal or alone[1] < equal
        gaps.append(GapEstimate(*sides, gap, alone, together, differs))
    return gaps


def _limits_from_the_rest(
    group: GroupValues, rest: GroupValues, share: FloatArray, kind: Kind, confidence: float | FloatArray, exact: bool
) -> Interval:
    """Return limits of groups against everybody from those against the rest.

    The group's share of everybody is estimated too: its error is added in quadrature to both arms.
    """
    with np.errstate(all="ignore"):
        z = intervals.t_quantile(np.inf, confidence)
        wobble = z * np.sqrt(share * (1 - share) / (group.trials + rest.trials))
        if kind == "difference":
            apart, gap = compare(group, rest, kind, confidence, exact=exact), group.value - rest.value
            low, high = (np.hypot((1 - share) * (gap - end), wobble * gap) for end in apart)
            return Interval((1 - share) * gap - low, (1 - share) * gap + high)
        apart, ratio = compare(rest, group, kind, confidence, exact=exact), rest.value / group.value
        low, high = (np.hypot((1 - share) * (ratio - end), wobble * (1 - ratio)) for end in apart)
        centre = share + (1 - share) * ratio
        unbounded = np.isinf(apart.high)
        below = np.where(unbounded, 0.0, 1 / (centre + high))
        # Where the group's own value is 0, everybody's over it has no centre: only the end that is known remains.
        known = np.where(np.isinf(ratio), share + (1 - share) * apart.low, np.maximum(centre - low, share))
        return Interval(np.where(np.isnan(apart.low), np.nan, below), 1 / known)


def _auc_limits(values: GroupValues, groups: IntArray, kind: Kind, confidence: float | FloatArray) -> Interval:
    """Return limits of a group's AUC against everybody's: the delta method with their covariance, Student's t."""
    covariance = values.covariance[groups] if values.covariance is not None else np.full(len(groups), np.nan)
    value, trials = values.value[groups], values.trials[groups]
    stderr = intervals.steady_stderr(value, values.stderr[groups], trials)
    t = intervals.t_quantile(trials - 1, confidence)
    with np.errstate(all="ignore"):
        t = np.where(stderr > 0, t, np.nan)
        if kind == "difference":
            half = t * np.sqrt(stderr**2 + values.overall_stderr**2 - 2 * covariance)
            return Interval(value - values.overall - half, value - values.overall + half)
        overall = np.float64(values.overall)  # which may be 0, as may be a group's
        relative = (stderr / value) ** 2 + (values.overall_stderr / overall) ** 2
        half = t * np.sqrt(relative - 2 * covariance / (value * overall))
        ratio = value / overall
        return Interval(ratio * np.exp(-half), ratio * np.exp(half))


def _quotient(above: FloatArray | float, below: FloatArray | float) -> float:
    return float(above / below) if below > 0 <= above else float("nan")


# Tests ---------------------------------------------------------------------------------------------------------------

Test = tuple[str, Against, int]
"""A metric, what its groups are compared against, and the group; -1 of the worst pair."""


def equality_tests(compared: Sequence[tuple[GroupValues, IntArray]], reference: int) -> dict[Test, float]:
    """Return p-values of no difference of metrics in some groups: the least alpha at which exact limits exclude it.

    The limits of all groups and metrics that have the same formula are inverted together. A ratio is 1 where the
    difference is 0, so its p-value is the same.
    """
    alike: dict[tuple[float, float] | None, list[tuple[GroupValues, IntArray]]] = {}
    p_values: dict[Test, float] = {}
    for values, groups in compared:
        if values.metric.method == "rank":
            p_values |= _excluded(
                [(values.metric.name, "overall", int(group)) for group in groups],
                partial(_auc_limits, values, groups, "difference"),
            )
        if values.metric.method == "rate" or not np.isnan(values.stderr).all():
            alike.setdefault(None if values.metric.method == "rate" else values.bounds, []).append((values, groups))
    for family in alike.values():
        p_values |= _against_one_base(family, reference) | _worst_pairs(family)
    return p_values


def _excluded(tests: Sequence[Test], limits: Callable[[FloatArray], Interval]) -> dict[Test, float]:
    """Return the least alpha at which the limits of differences exclude 0."""

    def margin(confidence: FloatArray) -> FloatArray:
        low, high = limits(confidence)
        return np.maximum(low, -high)

    return dict(zip(tests, pairs.smallest_alpha(margin, (len(tests),)).tolist(), strict=True))


def _against_one_base(family: Sequence[tuple[GroupValues, IntArray]], reference: int) -> dict[Test, float]:
    """Return the p-values of groups against the reference group, which is no part of them, and against everybody."""
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
    known = _joined(groups_of), _joined(bases), np.concatenate(shares)
    return _excluded(tests, lambda confidence: _limits_from_the_rest(*known, "difference", confidence, True))


def _worst_pairs(family: Sequence[tuple[GroupValues, IntArray]]) -> dict[Test, float]:
    """Return the p-values of all groups being equal."""
    joined = _joined([values.only(groups) for values, groups in family])
    sizes = [len(groups) for _, groups in family]
    each = pairs.equality_p_values(joined.value, partial(joined.limits, exact=True), sizes)
    return {(v.metric.name, "worst_pair", -1): p for (v, _), p in zip(family, each.tolist(), strict=True)}


def _joined(parts: Sequence[GroupValues]) -> GroupValues:
    """Return the values of several metrics, whose limits have one formula, as if they were of the first."""
    named = ("value", "n", "stderr", "trials")
    arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in named}
    return replace(parts[0], rest=None, share=None, covariance=None, **arrays)
