"""Records of groups' values and gaps, with limits at any confidence."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from evenhand.audits.parity import gaps as between
from evenhand.audits.parity.analysis import Analysis
from evenhand.audits.parity.clustered import ClusterCells, auc_errors, with_clusters
from evenhand.audits.parity.clustered_numbers import with_clusters_of_numbers
from evenhand.audits.parity.definition import ParityMetric
from evenhand.audits.parity.estimate import GroupValues, auc_values, no_limits, ratio_values, with_people
from evenhand.audits.parity.gaps import GapNumbers, clamp_interval, excludes_equality, joint_confidence, limit_pairs
from evenhand.audits.parity.messages import say
from evenhand.audits.parity.metrics import GAP_NAMES
from evenhand.audits.parity.pairs import GroupPairs, Pairs, StandardisedPairs, make_pairs
from evenhand.audits.parity.resampled import KINDS, Custom, Resampled, Sums, metric_values
from evenhand.audits.parity.result import ParityGap
from evenhand.core.estimates import Estimate, estimates_at
from evenhand.core.records import OK, OVERALL, Against, Kind, Value
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.clusters import FEWEST
from evenhand.stats.types import IntArray, Interval
from evenhand.table.roles import MISSING

_CACHED = 4  # number of confidences with records in memory


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One metric in the groups of an analysis.

    Parameters
    ----------
    analysis : the analysis.
    values : the metric by group.
    groups : the positions of the groups that enter gaps.
    """

    analysis: Analysis
    values: GroupValues
    groups: IntArray

    @property
    def metric(self) -> ParityMetric:
        """The compared metric."""
        return self.values.metric

    def value_records(self, confidence: float) -> tuple[Value, ...]:
        """Return the values with limits at a confidence."""
        values, labels = self.values, self.analysis.cells.labels
        if self.analysis.by_bootstrap(self.metric):
            limits = self._drawn_limits("value", np.arange(len(labels)), confidence)
        else:
            limits = values.limits(confidence)
        ends = limit_pairs(clamp_interval(limits, values.value, values.bounds))
        return tuple(self._value_record(position, *ends[position]) for position in range(len(labels)))

    def gap_records(self, confidence: float) -> tuple[ParityGap, ...]:
        """Return the gaps with limits at a confidence, differences first."""
        records: list[ParityGap] = []
        for kind in KINDS:
            reason = self._why_no_gap(kind)
            if reason is not None:
                records.append(self._gap(kind, "worst_pair", n=0, value=None, status=shared("undefined", why=reason)))
                continue
            gaps = list(self._gaps(kind, confidence))
            for gap, ends in zip(gaps, _possible_limits(gaps, self.values.bounds), strict=True):
                records.append(self._gap_record(gap, ends))
        return tuple(records)

    # Numbers ----------------------------------------------------------------------------------------------

    def _gaps(self, kind: Kind, confidence: float) -> Iterator[GapNumbers]:
        """Yield the worst pair's gap, and then the gaps to the reference and to all people."""
        values, groups, reference = self.values, self.groups, self.analysis.reference
        worst = between.worst_gap(values, self._by_value, kind)
        to_reference = between.gaps_to_reference(values, self._others, reference, kind)
        to_overall = between.gaps_to_overall(values, groups, kind)
        if self._standardised is not None:
            others = self._others, np.full(len(self._others), reference)
            yield between.worst_gap_limits(worst, self._standardised(*self._sides, True), self._sides, confidence)
            yield from between.with_limits(to_reference, self._standardised(*others, False), confidence)
            yield from self._drawn(to_overall, confidence)
        elif self.analysis.by_bootstrap(self.metric):
            ends, p = self._drawn_worst_pair(kind, confidence)
            found = replace(worst, limits=ends, joint=ends, p_value=p, rests_on="bootstrap")
            yield replace(found, differs=excludes_equality(kind, ends))
            yield from self._drawn(to_reference, confidence)
            yield from self._drawn(to_overall, confidence)
        else:
            yield between.worst_gap_limits(worst, self._all_pairs, self._sides, confidence)
            yield from between.with_limits(to_reference, self._pairs_with_reference, confidence)
            yield from between.with_limits(to_overall, self._pairs_with_rest, confidence)

    @cached_property
    def _standardised(self) -> Callable[[IntArray, IntArray, bool], StandardisedPairs] | None:
        """A function that compares groups by standardised rates; None for other values and for weighted rates."""
        analysis, metric = self.analysis, self.metric
        cells, support = analysis.cells, analysis.support
        if support is None or metric.ratio is None or metric.method != "rate" or cells.weighted:
            return None
        if analysis.spec.interval != "auto" or analysis.clusters is not None:
            return None
        sums = Sums.build(cells.n.shape, cells.n.reshape(-1).astype(np.float64), np.zeros((cells.n.size, 0)))
        yes, n = sums.of(metric.ratio.numerator), sums.of(metric.ratio.denominator)
        shares = n[:, -1] * support[metric.name]
        return partial(StandardisedPairs, yes, n, shares)

    @cached_property
    def _others(self) -> IntArray:
        """The groups compared with the reference; empty if the reference itself is not compared."""
        is_reference = self.groups == self.analysis.reference
        return self.groups[~is_reference] if is_reference.any() else self.groups[:0]

    @cached_property
    def _by_value(self) -> IntArray:
        """The groups in descending order of value, and of size for equal values."""
        groups = self.analysis.cells.orders[1]
        groups = groups[np.isin(groups, self.groups)]
        return np.asarray(groups[np.argsort(-self.values.value[groups], kind="stable")])

    @cached_property
    def _sides(self) -> tuple[IntArray, IntArray]:
        """The two groups of every pair, the group with the higher value first."""
        first, second = np.triu_indices(len(self.groups), 1)
        return self._by_value[first], self._by_value[second]

    @cached_property
    def _all_pairs(self) -> GroupPairs:
        return make_pairs(*(self.values.only(side) for side in self._sides), of_worst=True)

    @cached_property
    def _pairs_with_reference(self) -> GroupPairs:
        base = np.full(len(self._others), self.analysis.reference)
        return make_pairs(self.values.only(self._others), self.values.only(base))

    @cached_property
    def _pairs_with_rest(self) -> Pairs:
        return between.pairs_with_rest(self.values.only(self.groups))

    def _drawn(self, gaps: Sequence[GapNumbers], confidence: float) -> Iterator[GapNumbers]:
        """Yield gaps to one base with bootstrap limits and p-values."""
        if not gaps:
            return
        block = f"{gaps[0].against}_{gaps[0].kind}"
        groups = np.array([gap.group for gap in gaps], dtype=np.int64)
        alone = limit_pairs(self._drawn_limits(block, groups, confidence))
        joint = limit_pairs(self._drawn_limits(block, groups, joint_confidence(confidence, len(gaps))))
        p_values = self._drawn_p_values(f"{gaps[0].against}_difference", groups)  # the same for the ratio
        for gap, ends, together, p in zip(gaps, alone, joint, p_values, strict=True):
            found = replace(gap, limits=ends, joint=together, p_value=p, rests_on="bootstrap")
            yield replace(found, differs=excludes_equality(gap.kind, ends))

    def _drawn_p_values(self, block: str, groups: IntArray) -> list[float]:
        drawn = self.analysis.draws_of(self.metric)
        if drawn is None:
            return [np.nan] * len(groups)
        return [float(p) for p in drawn.p_values(self.metric.name, block, self.analysis.method)[groups]]

    def _drawn_worst_pair(self, kind: Kind, confidence: float) -> tuple[tuple[float, float], float]:
        """Return the bootstrap limits of the worst pair's gap, and the p-value of its difference."""
        drawn = self._draws(confidence)
        group_limits = self._drawn_limits("value", self.groups, confidence)
        if drawn is None or np.isnan(group_limits.low).any():  # without spread in a group, its error is unknown
            return (np.nan, np.nan), np.nan
        name, groups, level = self.metric.name, self.groups, self.analysis.spec.confidence
        _, p = drawn.widest_gap(name, groups, "difference", level)
        return drawn.widest_gap(name, groups, kind, confidence)[0], p

    def _draws(self, confidence: float) -> Resampled | None:
        """Return the draws, with cached intervals for all records at a confidence."""
        drawn = self.analysis.draws_of(self.metric)
        if drawn is not None:
            compared = (1, int((self.groups != self.analysis.reference).sum()), len(self.groups))
            levels = {joint_confidence(confidence, number) for number in compared}
            drawn.compute_intervals(self.metric.name, self.analysis.method, levels)
        return drawn

    def _drawn_limits(self, block: str, groups: IntArray, confidence: float) -> Interval:
        drawn = self.analysis.draws_of(self.metric)
        if drawn is None:
            return no_limits(len(groups))
        low, high = drawn.interval(self.metric.name, block, self.analysis.method, confidence)
        return Interval(low[groups], high[groups])

    # Records ----------------------------------------------------------------------------------------------

    def _value_record(self, position: int, low: float, high: float) -> Value:
        status = self._status(position)
        if status == OK and finite(low) is None and finite(high) is None:
            status = shared("no_interval", why=_why_no_interval(self.metric))
        return Value(
            group=self.analysis.cells.labels[position],
            metric=self.metric.name,
            n=int(self.values.n[position]),
            value=finite(self.values.value[position]),
            low=finite(low),
            high=finite(high),
            status=status,
            **self._coordinates,
        )

    def _status(self, position: int) -> Message:
        analysis, values = self.analysis, self.values
        if np.isnan(values.value[position]):
            has_people = analysis.support is not None and analysis.cells.n[:, position].sum() > 0
            return shared("undefined", why=say("too_few_shared" if has_people else self.metric.empty))
        if analysis.cells.labels[position] == MISSING:
            return shared("missing_group")
        if values.clusters is not None and not values.enough_clusters[position]:
            return shared("few_clusters", n=int(values.clusters.clusters[position]), least=FEWEST)
        if values.counted[position] < analysis.spec.min_count:
            number, least = int(values.counted[position]), analysis.spec.min_count
            rarer = self.metric.rarer_counts
            return say("small_rarer", n=number, least=least) if rarer else shared("small", n=number, least=least)
        return OK

    def _why_no_gap(self, kind: Kind) -> Message | None:
        """Return the reason why the groups have no gap of a kind, or None if they have one."""
        if len(self.groups) < 2:
            return shared("one_group" if len(self.groups) else "no_group", least=self.analysis.spec.min_count)
        values = self.values
        if kind == "ratio" and (-np.inf < values.bounds[0] < 0 or values.value[self.groups].min() < 0):
            return say("negative_values")
        return None

    def _gap_record(self, gap: GapNumbers, ends: Sequence[float]) -> ParityGap:
        sides, values = (gap.group, gap.reference), self.values
        low, joint_low, high, joint_high = ends
        # The search for a limit ends within a share of its distance from the estimate: the joint one may be narrower.
        ends = (low, min(joint_low, low), high, max(joint_high, high))
        limits = dict(zip(("low", "joint_low", "high", "joint_high"), map(finite, ends), strict=True))
        return self._gap(
            gap.kind,
            gap.against,
            group=self._label(gap.group),
            reference=self._label(gap.reference),
            n=values.n_overall if -1 in sides else sum(int(values.n[side]) for side in sides),
            value=finite(gap.value),
            **limits,
            p_value=finite(gap.p_value),
            worse_off=self._worse_off(gap),
            differs=gap.differs if finite(gap.p_value) is not None else None,
            rests_on=gap.rests_on,
            status=_gap_status(gap, self.metric),
        )

    @property
    def _coordinates(self) -> dict[str, Any]:
        analysis = self.analysis
        return {"model": analysis.model, "grouping": analysis.grouping, "stratum": analysis.stratum}

    def _gap(self, kind: Kind, against: Against, **columns: Any) -> ParityGap:
        metric = self.metric.name
        name = GAP_NAMES.get((metric, kind, against))
        return ParityGap(metric=metric, kind=kind, against=against, name=name, **self._coordinates, **columns)

    def _worse_off(self, gap: GapNumbers) -> str | None:
        """Return the worse-off group if the gap is significant and the worse direction is known, else None."""
        worse = self.metric.worse_value(self.analysis.favourable)
        side = gap.group if gap.higher == (worse == "higher") else gap.reference
        return self._label(side) if worse is not None and gap.differs and side >= 0 else None

    def _label(self, position: int) -> str:
        return OVERALL if position < 0 else self.analysis.cells.labels[position]


def _why_no_interval(metric: ParityMetric) -> Message:
    if metric.method in ("mean", "number") or metric.of_number == "squared_error":
        return say("all_alike")
    if metric.method == "quantile":
        return say("too_few_for_quantile")
    if metric.method == "rank":
        return say("told_apart")
    return say("still_resamples")


def _possible_limits(gaps: Sequence[GapNumbers], bounds: tuple[float, float]) -> list[list[float]]:
    """Return the limits of every gap, clamped to possible values: low, joint low, high, joint high.

    Parameters
    ----------
    gaps : the gaps with their limits.
    bounds : the lowest and highest possible value of the metric.
    """
    limits = np.array([(gap.limits, gap.joint) for gap in gaps])
    least, most = np.array([_gap_bounds(gap.kind, gap.against, bounds) for gap in gaps]).T[:, :, np.newaxis]
    value = np.array([gap.value for gap in gaps])[:, np.newaxis]
    clamped = clamp_interval(Interval(limits[..., 0], limits[..., 1]), value, (least, most))
    return [ends.tolist() for ends in np.concatenate(clamped, axis=1)]


def _gap_bounds(kind: Kind, against: Against, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the smallest and largest possible gap of values within bounds.

    A worst pair's gap is not negative.
    """
    if kind == "ratio":
        return 0.0, 1.0 if against == "worst_pair" else np.inf
    span = bounds[1] - bounds[0]
    return 0.0 if against == "worst_pair" else -span, span


def _why_no_limits(gap: GapNumbers, metric: ParityMetric) -> str:
    if gap.against == "overall" and metric.of_number is not None:
        return "quantile_of_everybody" if metric.method == "quantile" else "standardised_everybody"
    by_formula = metric.method in ("mean", "rank", "number", "quantile")
    return "one_group_has_none" if by_formula else "some_still_resamples"


def _gap_status(gap: GapNumbers, metric: ParityMetric) -> Message:
    low, high = gap.limits
    if np.isnan(gap.value):
        return shared("undefined", why=say("zero_below"))
    if np.isnan(low) and np.isnan(high):
        return shared("no_interval", why=say(_why_no_limits(gap, metric)))
    if np.isinf(high):
        is_open = metric.method == "quantile" and gap.kind == "difference"
        return shared("unbounded_above", why=say("too_few_for_quantile" if is_open else "zero_below_possible"))
    return OK


@dataclass(frozen=True)
class Analysed:
    """The values and gaps of an analysis, with limits at any confidence."""

    values: tuple[Estimate[Value], ...]
    gaps: tuple[Estimate[ParityGap], ...]


def analyse(analysis: Analysis) -> Analysed:
    """Return the values of all groups and the gaps between them."""
    confidence = analysis.spec.confidence
    values: list[Estimate[Value]] = []
    gaps: list[Estimate[ParityGap]] = []
    for metric, custom in analysis.metrics:
        each = _group_values(analysis, metric, custom)
        comparison = Comparison(analysis=analysis, values=each, groups=analysis.comparable(each))
        values += estimates_at(comparison.value_records, confidence, _key, cached=_CACHED)
        gaps += estimates_at(comparison.gap_records, confidence, _key, cached=_CACHED)
    return Analysed(tuple(values), tuple(gaps))


def _key(record: Value | ParityGap) -> Hashable:
    """Return the key of a record within its metric; the worst pair's key omits its groups."""
    if isinstance(record, Value):
        return record.group
    return record.kind, record.against, None if record.against == "worst_pair" else record.group


def _group_values(analysis: Analysis, metric: ParityMetric, custom: Custom | None) -> GroupValues:
    values = _values_of_people(analysis, metric, custom)
    return values if analysis.clusters is None else _with_clusters(analysis, analysis.clusters, values, custom)


def _with_clusters(
    analysis: Analysis, clusters: ClusterCells, values: GroupValues, custom: Custom | None
) -> GroupValues:
    """Return values with cluster-robust errors."""
    metric, cells, support = values.metric, analysis.cells, analysis.support
    if metric.of_number is not None and analysis.numbers is not None:
        return with_clusters_of_numbers(analysis.numbers, clusters.name, values)
    if metric.method == "rank" and analysis.ranks is not None:
        return with_clusters(values, auc_errors(*analysis.ranks, values, clusters), values.overall_stderr)
    overall = np.nan
    if support is not None and metric.method == "rate" and metric.function is None:
        values = replace(values, stderr=np.sqrt(values.value * (1.0 - values.value) / values.n))
        overall = float(np.sqrt(values.overall * (1.0 - values.overall) / values.n_overall))
    elif support is None and custom is None:
        n, first, second = (part.sum(axis=1, keepdims=True) for part in (cells.n, cells.first, cells.second))
        everybody = replace(cells, labels=(OVERALL,), n=n, first=first, second=second)
        overall = float(ratio_values(everybody, metric, analysis.score_range).stderr[0])
    used = np.ones(len(cells.strata), dtype=np.bool_) if support is None else support[metric.name]
    return with_clusters(values, clusters.errors(metric, custom, used, np.append(values.stderr, overall) ** 2), overall)


def _values_of_people(analysis: Analysis, metric: ParityMetric, custom: Custom | None) -> GroupValues:
    """Return values with limits that assume independent rows."""
    if metric.of_number is not None and analysis.numbers is not None:
        return analysis.numbers.values(metric)
    if metric.method == "rank" and analysis.ranks is not None:
        return auc_values(*analysis.ranks, len(analysis.cells.labels), metric)
    if analysis.support is None and custom is None:
        values = ratio_values(analysis.cells, metric, analysis.score_range)
        people = analysis.people(metric)
        return values if people is None else with_people(values, people)
    return _bootstrapped_values(analysis, metric, custom)


def _bootstrapped_values(analysis: Analysis, metric: ParityMetric, custom: Custom | None) -> GroupValues:
    """Return values with limits from the bootstrap alone."""
    cells, support = analysis.cells, analysis.support
    used = np.ones(len(cells.strata), dtype=bool) if support is None else support[metric.name]
    people = cells.n[used].sum(axis=0)
    rows = metric.people(people)
    moments = cells.moments()
    sums = Sums.build(cells.n.shape, moments.n.astype(np.float64), moments.first)
    value = metric_values(sums, metric, custom, used)
    unknown = np.full(len(rows), np.nan)
    return GroupValues(
        metric=metric,
        value=value[:-1],
        overall=float(value[-1]),
        n=rows,
        n_overall=int(rows.sum()),
        counted=metric.people_counted(people).astype(np.float64),
        stderr=unknown,
        trials=unknown,
        bounds=metric.bounds(analysis.score_range),
    )
