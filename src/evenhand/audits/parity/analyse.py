"""The values of groups and the gaps between them, each with limits at any confidence."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np

from evenhand.audits.parity import estimate, resampled
from evenhand.audits.parity.analysis import Analysis
from evenhand.audits.parity.comparison import Comparison, metric_tests
from evenhand.audits.parity.equality import Test, equality_tests
from evenhand.audits.parity.estimate import GroupValues
from evenhand.audits.parity.metrics import ParityMetric
from evenhand.audits.parity.resampled import Custom
from evenhand.audits.parity.result import ParityGap
from evenhand.core.estimates import Estimate
from evenhand.core.records import Value

R = TypeVar("R", bound=Value | ParityGap)


@dataclass(frozen=True)
class Analysed:
    """What came of an analysis: its values and gaps, each with limits at any confidence."""

    values: tuple[Estimate[Value], ...]
    gaps: tuple[Estimate[ParityGap], ...]


def analyse(analysis: Analysis) -> Analysed:
    """Return the values of all groups and the gaps between them."""
    estimated = [_group_values(analysis, metric, custom) for metric, custom in analysis.metrics]
    tests = _formula_tests(analysis, estimated)
    values: list[Estimate[Value]] = []
    gaps: list[Estimate[ParityGap]] = []
    for each in estimated:
        comparison = Comparison(analysis=analysis, values=each, groups=analysis.comparable(each))
        p_values = tests | metric_tests(comparison)
        values += _estimates(comparison.value_records, analysis.spec.confidence)
        gaps += _estimates(partial(comparison.gap_records, p_values), analysis.spec.confidence)
    return Analysed(tuple(values), tuple(gaps))


def _estimates(records_at: Callable[[float], Sequence[R]], confidence: float) -> list[Estimate[R]]:
    """Return the records at a confidence, each with its limits at any other."""

    @lru_cache(maxsize=4)
    def by_key(level: float) -> dict[Hashable, R]:
        return {_key(record): record for record in records_at(level)}

    def limits(key: Hashable, level: float) -> R:
        return by_key(level)[key]

    return [Estimate(record, partial(limits, key)) for key, record in by_key(confidence).items()]


def _key(record: Value | ParityGap) -> Hashable:
    """Return what tells a record of one metric from the others; the worst pair is told by being that."""
    if isinstance(record, Value):
        return record.group
    return record.kind, record.against, None if record.against == "worst_pair" else record.group


def _group_values(analysis: Analysis, metric: ParityMetric, custom: Custom | None) -> GroupValues:
    if metric.method == "rank" and analysis.ranks is not None:
        return estimate.auc_values(*analysis.ranks, len(analysis.cells.labels), metric)
    if analysis.support is None and custom is None:
        return estimate.ratio_values(analysis.cells, metric, analysis.score_range)
    return _bootstrapped_values(analysis, metric, custom)


def _bootstrapped_values(analysis: Analysis, metric: ParityMetric, custom: Custom | None) -> GroupValues:
    """Return values whose limits only the bootstrap has."""
    cells, support = analysis.cells, analysis.support
    used = np.ones(len(cells.strata), dtype=bool) if support is None else support[metric.name]
    people = cells.n[used].sum(axis=0)
    rows = metric.people(people)
    moments = cells.moments()
    sums = resampled.Sums.build(cells.n.shape, moments.n.astype(np.float64), moments.first)
    value = resampled.metric_values(sums, metric, custom, used)
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


def _formula_tests(analysis: Analysis, estimated: Sequence[GroupValues]) -> dict[Test, float]:
    """Return the p-values that do not come from the bootstrap."""
    compared = [(each, analysis.comparable(each)) for each in estimated if not analysis.by_bootstrap(each.metric)]
    return equality_tests([(each, groups) for each, groups in compared if len(groups) > 1], analysis.reference)
