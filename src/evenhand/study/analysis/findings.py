"""The findings of a study in sentences, and where the published form and that by people part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.core.findings import Finding, judge
from evenhand.core.numbers import shown, shown_interval
from evenhand.core.spec import Threshold
from evenhand.errors import count
from evenhand.study.analysis.correlations import TESTS
from evenhand.study.analysis.parts import DISTANCES
from evenhand.study.analysis.records import EstimateRecord
from evenhand.study.analysis.regressions import EQUAL, WEIGHT, ZERO
from evenhand.study.analysis.spec import AnalysisSpec

_DIFFERENCE_CAVEAT = (
    "Ranks of answers go together; it does not show that people ought to judge so, nor that other sets or other people "
    "would give the same."
)
_WEIGHT_CAVEAT = (
    "It is the pull of the answers about two distances on a third answer of the same person, as shown here."
)


def make_findings(
    correlations: Sequence[EstimateRecord],
    comparisons: Sequence[EstimateRecord],
    regressions: Sequence[EstimateRecord],
    spec: AnalysisSpec,
) -> tuple[Finding, ...]:
    """Return a finding for each comparison of the two distances, and for each weight."""
    strengths = {(r.condition, r.target, r.term): r.value for r in correlations if r.method == "published"}
    compared = [r for r in comparisons if r.method == "participant_bootstrap"]
    weights = [r for r in regressions if (r.term, r.method) == (WEIGHT, "participant_bootstrap")]
    return (
        *(_comparison(record, strengths, spec) for record in compared),
        *(_weight(record, spec) for record in weights),
    )


def _comparison(
    record: EstimateRecord, strengths: dict[tuple[str, str, str], float | None], spec: AnalysisSpec
) -> Finding:
    by = {term: shown(strengths.get((record.condition, record.target, term))) for term in DISTANCES}
    where = f"{record.condition}: " if record.condition else ""
    target = f"the {record.target} distance"
    if record.value is None:
        says = f"whether {target} goes more with trajectory or with aggregate is {_because(record.status)}"
    elif record.low is not None and record.low > 0:
        says = f"{target} {_more('trajectory', 'aggregate', by)}"
    elif record.high is not None and record.high < 0:
        says = f"{target} {_more('aggregate', 'trajectory', by)}"
    else:
        says = (
            f"{target} does not clearly go with one distance more than with the other; rank correlations are "
            f"{by['trajectory']} with trajectory and {by['aggregate']} with aggregate"
        )
    claim = _capital(f"{where}{says}.", record.condition)
    return _finding(record, claim, "correlation_difference", _DIFFERENCE_CAVEAT, spec)


def _more(one: str, other: str, by: dict[str, str]) -> str:
    return f"goes with {one} more than with {other} distance; rank correlations are {by[one]} and {by[other]}"


def _because(status: str) -> str:
    return status.replace(": ", ", because ", 1)


def _capital(claim: str, condition: str) -> str:
    """Begin a claim with a capital, but leave the name of a condition as it is."""
    return claim if condition else f"{claim[0].upper()}{claim[1:]}"


def _weight(record: EstimateRecord, spec: AnalysisSpec) -> Finding:
    where = f"{record.condition}: " if record.condition else ""
    said = shown(record.value) if record.value is not None else _because(record.status)
    claim = f"{where}the weight of trajectory against aggregate in the overall distance is {said}."
    claim = _capital(claim, record.condition)
    return _finding(record, claim, "effort_weight", _WEIGHT_CAVEAT, spec)


def _finding(record: EstimateRecord, claim: str, metric: str, caveat: str, spec: AnalysisSpec) -> Finding:
    threshold = _threshold(spec, metric, record)
    interval = (
        f"{100 * spec.confidence:g}% interval {shown_interval(record.low, record.high)} by people"
        if record.low is not None
        else record.status.replace("no interval: ", "no interval, ")
    )
    lead = "difference " if metric == "correlation_difference" else ""
    inside = f" ({lead}{shown(record.value)}, {interval})" if lead else f" ({interval})"
    heard = f"{count(record.people, 'person', 'people')}, {count(record.n, 'answer')}"
    return Finding(
        audit="study",
        model=None,
        grouping=record.condition or None,
        stratum=record.target,
        metric=metric,
        kind="difference" if metric == "correlation_difference" else "value",
        against="aggregate",
        claim=claim,
        sentence=f"{claim.removesuffix('.')}{inside if record.value is not None else ''}; {heard}.",
        unit="",
        value=record.value,
        low=record.low,
        high=record.high,
        n=record.people,
        threshold=threshold.in_words() if threshold else None,
        verdict=judge(threshold, record.value, record.low, record.high),
        caveat=caveat,
    )


def _threshold(spec: AnalysisSpec, metric: str, record: EstimateRecord) -> Threshold | None:
    for threshold in spec.thresholds:
        fits = threshold.grouping in (None, record.condition) and threshold.stratum in (None, record.target)
        if threshold.metric == metric and fits:
            return threshold
    return None


def conclusion_notes(
    comparisons: Sequence[EstimateRecord], regressions: Sequence[EstimateRecord], spec: AnalysisSpec
) -> tuple[str, ...]:
    """Say where a conclusion at alpha differs between the published form and that by people."""
    changes = [*_changed_comparisons(comparisons, spec.alpha), *_changed_coefficients(regressions, spec.alpha)]
    if changes:
        return tuple(changes)
    if not any(r.method in ("participant_bootstrap", "clustered") and r.p_value is not None for r in comparisons):
        return ("Nothing could be tested by people; the published tests take answers for people.",)
    return (f"At {spec.alpha:g} the published tests and those by people come to the same conclusions.",)


def _changed_comparisons(comparisons: Sequence[EstimateRecord], alpha: float) -> Iterator[str]:
    for one in comparisons:
        if one.method != "participant_bootstrap" or one.p_value is None:
            continue
        others = [
            r
            for r in comparisons
            if (r.condition, r.target) == (one.condition, one.target) and r.method in TESTS and r.p_value is not None
        ]
        parted = [r.method.capitalize() for r in others if ((r.p_value or 0) < alpha) != (one.p_value < alpha)]
        if parted:
            yield (
                f"{_place(one)}: {', '.join(parted)} {'calls' if len(parted) == 1 else 'call'} the difference between "
                f"trajectory and aggregate {_word(one.p_value >= alpha)} at {alpha:g}; by people it is "
                f"{_word(one.p_value < alpha)} ({_p(one.p_value)})."
            )


def _changed_coefficients(regressions: Sequence[EstimateRecord], alpha: float) -> Iterator[str]:
    published = {
        (r.model, r.condition, r.target, r.term): r.p_value
        for r in regressions
        if r.method == "published" and r.term not in {"f_statistic", "intercept"}
    }
    for one in regressions:
        before = published.get((one.model, one.condition, one.target, one.term))
        if one.method != "clustered" or one.p_value is None or before is None:
            continue
        if (one.p_value < alpha) != (before < alpha):
            what = f"the null {one.term}" if one.term in {EQUAL, ZERO} else f"the coefficient of {one.term}"
            yield (
                f"{_place(one)}: {what} is {_word(before < alpha)} at {alpha:g} with classical standard errors "
                f"({_p(before)}) and {_word(one.p_value < alpha)} with clustered ones ({_p(one.p_value)})."
            )


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _word(significant: bool) -> str:
    return "significant" if significant else "not significant"


def _place(one: EstimateRecord) -> str:
    return f"{one.condition}, {one.target} distance" if one.condition else f"{one.target} distance".capitalize()
