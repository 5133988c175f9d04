"""Correlations of the two distances with what people concluded, and which of the two is the stronger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from evenhand.core.progress import step
from evenhand.stats.correlation import (
    ClusterEstimate,
    cluster_t,
    contrast,
    correlation_t,
    hotelling_t,
    meng_z,
    rank_bootstrap,
    spearman_interval,
    spearman_matrix,
    steiger_z,
    two_sided_p,
    williams_t,
)
from evenhand.study.analysis.parts import Part, record, why_no_spread, with_families
from evenhand.study.analysis.records import EstimateRecord
from evenhand.study.analysis.spec import AnalysisSpec

DIFFERENCE = "trajectory - aggregate"
TESTS: dict[str, tuple[Callable[..., Any], bool]] = {
    "hotelling": (hotelling_t, True),
    "williams": (williams_t, True),
    "meng": (meng_z, False),
    "steiger": (steiger_z, False),
}
"""The row-level tests by name: the function, and whether it has n - 3 degrees of freedom."""

# Places of the pairs of (aggregate, trajectory, target) in the draws: between the two, and each with the target.
_BETWEEN, _AGGREGATE, _TRAJECTORY = 0, 1, 2


def correlation_tables(
    parts: Sequence[Part], spec: AnalysisSpec
) -> tuple[tuple[EstimateRecord, ...], tuple[EstimateRecord, ...]]:
    """Return the tables `correlations` and `comparisons`."""
    correlations: list[EstimateRecord] = []
    comparisons: list[EstimateRecord] = []
    for part in (part for part in parts if len(part.y)):
        step(f"Correlating the answers of {part.condition or 'all people'}, {part.target} distance")
        r = _coefficients(part)
        draws = None
        if part.people > 1:
            rng = np.random.default_rng([spec.seed, *part.seeds, 0])
            draws = rank_bootstrap(part.columns, part.who, resamples=spec.resamples, rng=rng)
        clustered = None if draws is None else cluster_t(draws, part.people, spec.confidence)
        correlations += _correlations(part, r, clustered, spec, between=part.seeds[1] == 0)
        comparisons += _row_tests(part, r)
        comparisons += _row_bootstrap(part, r, spec)
        gap = (
            None if draws is None else cluster_t(contrast(draws, _TRAJECTORY, _AGGREGATE), part.people, spec.confidence)
        )
        comparisons.append(_of_people(part, DIFFERENCE, gap, 0, r[_TRAJECTORY] - r[_AGGREGATE]))
    family = dict.fromkeys((*("aggregate", "trajectory"), DIFFERENCE), "all")
    return with_families(correlations, family), with_families(comparisons, family)


def _coefficients(part: Part) -> np.ndarray[Any, Any]:
    if len(part.y) < 2:
        return np.full(3, np.nan)
    return spearman_matrix(part.columns)[np.triu_indices(3, 1)]


def _correlations(
    part: Part, r: Any, clustered: ClusterEstimate | None, spec: AnalysisSpec, between: bool
) -> Iterator[EstimateRecord]:
    """Yield the correlations with the target, and once for each condition that of the two distances."""
    wanted = [("aggregate", _AGGREGATE, part.target), ("trajectory", _TRAJECTORY, part.target)]
    if between:
        wanted.append(("aggregate", _BETWEEN, "trajectory"))
    n = len(part.y)
    for term, at, target in wanted:
        t = float(correlation_t(r[at], n)) if abs(r[at]) < 1 else np.nan
        low, high = spearman_interval(r[at], n, spec.confidence)
        yield record(
            part,
            term,
            "published",
            value=float(r[at]),
            statistic=t,
            df=n - 2,
            p_value=float(two_sided_p(t, n - 2)),
            low=float(low),
            high=float(high),
            target=target,
            status=_no_test(part, float(r[at]), t),
        )
        yield _of_people(part, term, clustered, at, float(r[at]), target)


def _of_people(
    part: Part, term: str, found: ClusterEstimate | None, at: int, value: float, target: str | None = None
) -> EstimateRecord:
    """Return what the bootstrap of people says of one statistic."""
    if found is None or np.isnan(found.stderr[at]):
        reason = f"no interval: {why_no_spread(part)}" if np.isfinite(value) else ""
        return record(part, term, "participant_bootstrap", value=value, status=reason, target=target)
    most = 2.0 if term == DIFFERENCE else 1.0
    return record(
        part,
        term,
        "participant_bootstrap",
        value=value,
        stderr=float(found.stderr[at]),
        statistic=float(found.statistic[at]),
        df=found.df,
        p_value=float(found.p_value[at]),
        low=max(float(found.low[at]), -most),
        high=min(float(found.high[at]), most),
        target=target,
    )


def _row_tests(part: Part, r: Any) -> Iterator[EstimateRecord]:
    n = len(part.y)
    for name, (test, student) in TESTS.items():
        statistic = float(test(r[_TRAJECTORY], r[_AGGREGATE], r[_BETWEEN], n))
        statistic = statistic if np.isfinite(statistic) else np.nan
        df = float(n - 3) if student else np.inf
        gap = float(r[_TRAJECTORY] - r[_AGGREGATE])
        yield record(
            part,
            DIFFERENCE,
            name,
            value=gap,
            statistic=statistic,
            df=df,
            p_value=float(two_sided_p(statistic, df)),
            status=_no_test(part, gap, statistic),
        )


def _no_test(part: Part, value: float, statistic: float) -> str:
    """Say why a number has no test; nothing where it has one, or is itself undefined."""
    return f"no test: {why_no_spread(part)}" if np.isfinite(value) and not np.isfinite(statistic) else ""


def _row_bootstrap(part: Part, r: Any, spec: AnalysisSpec) -> Iterator[EstimateRecord]:
    """Yield the published interval of table 4: rows resampled, percentiles."""
    difference = float(r[_TRAJECTORY] - r[_AGGREGATE])
    if np.isnan(difference):
        return
    rng = np.random.default_rng([spec.seed, *part.seeds, 1])
    draws = rank_bootstrap(part.columns, np.arange(len(part.y)), resamples=spec.resamples, rng=rng)
    gap = contrast(draws, _TRAJECTORY, _AGGREGATE)
    low, high = gap.percentile(spec.confidence)
    yield record(
        part,
        DIFFERENCE,
        "row_bootstrap",
        value=difference,
        stderr=float(gap.stderr()[0]),
        low=float(low[0]),
        high=float(high[0]),
    )
