"""The findings of a study, and where the published form and the one by people come to different conclusions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from evenhand.core.families import Clarity
from evenhand.core.findings import Claim
from evenhand.core.formats import show_p
from evenhand.errors import count
from evenhand.study.analysis.estimate import BY_PEOPLE, TESTS
from evenhand.study.analysis.regressions import INTERCEPT
from evenhand.study.analysis.result import RegressionRecord, StudyGap, StudyValue
from evenhand.study.analysis.spec import AnalysisSpec

_BOTH = (
    "{where}: the {target} distance has rank correlations {group_value:unit} with trajectory and "
    "{reference_value:unit} with aggregate"
)
SENTENCES = {
    "goes_with_one": (
        "{where}: the {target} distance goes with {stronger} more than with {weaker} distance; rank correlations are "
        "{stronger_value:unit} and {weaker_value:unit}."
    ),
    "two_correlations": f"{_BOTH}.",
    "no_clear_difference": f"{_BOTH}; no clear difference.",
    "not_tested": f"{_BOTH}; not tested.",
    "correlations_undefined": (
        "{where}: the {target} distance's rank correlations with trajectory and aggregate cannot be compared."
    ),
    "weight": "{where}: the weight of trajectory against aggregate in the {target} distance is {value:unit}.",
    "weight_undefined": (
        "{where}: the weight of trajectory against aggregate in the {target} distance cannot be computed."
    ),
}

_WHEN: dict[Clarity, dict[str, str]] = {
    "clear": {"sentence_id": "goes_with_one"},
    "unclear": {"sentence_id": "no_clear_difference"},
    "untested": {"sentence_id": "not_tested"},
}


def make_claims(values: Sequence[StudyValue], gaps: Sequence[StudyGap], spec: AnalysisSpec) -> Iterator[Claim]:
    """Yield what can be told, by people: each comparison of the two correlations, and each weight."""
    correlations = {
        (record.condition, record.target, record.factor): record.value
        for record in values
        if (record.metric, record.method) == ("rank_correlation", BY_PEOPLE)
    }
    compared = [gap for gap in gaps if (gap.metric, gap.method) == ("rank_correlation", BY_PEOPLE)]
    for gap in compared:
        sides = {side: correlations.get((gap.condition, gap.target, side)) for side in (gap.group, gap.reference)}
        told = _comparison(gap, sides)
        yield replace(_claim(gap, "two_correlations", "correlations_undefined", told, spec), when=_WHEN)
    for record in values:
        if (record.metric, record.method) == ("effort_weight", BY_PEOPLE):
            yield _claim(record, "weight", "weight_undefined", {"value": record.value}, spec)


def _claim(
    record: StudyValue | StudyGap, sentence_id: str, undefined_id: str, told: dict[str, Any], spec: AnalysisSpec
) -> Claim:
    title = "weight of effort" if record.metric == "effort_weight" else "rank correlation"
    place = {"where": record.condition or "All people", "title": title, "target": record.target}
    return Claim(
        records=(record,),
        sentence_id=sentence_id,
        undefined_id=undefined_id,
        arguments=place | told,
        headline=True,
        aside=_answers(record),
        withheld=None if record.value is None else _too_few(record, spec),
    )


def _comparison(gap: StudyGap, sides: dict[str | None, float | None]) -> dict[str, Any]:
    """Return both correlations, and which of the two is the stronger, if they differ beyond chance."""
    group, reference = sides
    stronger, weaker = (group, reference) if (gap.value or 0.0) > 0 else (reference, group)
    return {
        "group_value": sides[group],
        "reference_value": sides[reference],
        "stronger": stronger,
        "weaker": weaker,
        "stronger_value": sides[stronger],
        "weaker_value": sides[weaker],
    }


def _answers(record: StudyValue | StudyGap) -> str:
    resampled = " and were resampled" if record.low is not None else ""
    return f"{count(record.n, 'person', 'people')} gave {count(record.answers, 'answer')}{resampled}."


def _too_few(record: StudyValue | StudyGap, spec: AnalysisSpec) -> str | None:
    if record.n >= spec.min_count:
        return None
    return f"there is no verdict about {count(record.n, 'person', 'people')}, fewer than min_count {spec.min_count}"


# Remarks --------------------------------------------------------------------------------------------------------------


def conclusion_notes(
    gaps: Sequence[StudyGap], regressions: Sequence[RegressionRecord], spec: AnalysisSpec
) -> tuple[str, ...]:
    """Say where a conclusion at alpha differs between the published form and the one by people."""
    compared = [gap for gap in gaps if gap.metric == "rank_correlation"]
    changes = [*_changed_comparisons(compared, spec.alpha), *_changed_coefficients(regressions, spec.alpha)]
    if changes:
        return tuple(changes)
    if not any(gap.method == BY_PEOPLE and gap.p_value is not None for gap in compared):
        return ("Nothing could be tested by people; the published tests take answers for people.",)
    return (f"At {spec.alpha:g} the published tests and those by people come to the same conclusions.",)


def _changed_comparisons(gaps: Sequence[StudyGap], alpha: float) -> Iterator[str]:
    for gap in gaps:
        if gap.method != BY_PEOPLE or gap.p_value is None:
            continue
        is_significant = gap.p_value < alpha
        differing = [
            other.method.capitalize()
            for other in gaps
            if (other.condition, other.target) == (gap.condition, gap.target)
            and other.method in TESTS
            and other.p_value is not None
            and (other.p_value < alpha) != is_significant
        ]
        if differing:
            yield (
                f"{_distance(gap)}: {', '.join(differing)} {'calls' if len(differing) == 1 else 'call'} the difference "
                f"between trajectory and aggregate {_significant(not is_significant)} at {alpha:g}; by people it is "
                f"{_significant(is_significant)} ({show_p(gap.p_value)})."
            )


def _changed_coefficients(regressions: Sequence[RegressionRecord], alpha: float) -> Iterator[str]:
    def key(record: RegressionRecord) -> tuple[str | None, ...]:
        return record.regression, record.condition, record.target, record.metric, record.term

    tested = [r for r in regressions if r.metric in ("coefficient", "wald_test") and r.term != INTERCEPT]
    published = {key(record): record.p_value for record in tested if record.method == "published"}
    for record in tested:
        before, after = published.get(key(record)), record.p_value
        if record.method != "clustered" or before is None or after is None or (before < alpha) == (after < alpha):
            continue
        what = "the null" if record.metric == "wald_test" else "the coefficient of"
        yield (
            f"{_distance(record)}: {what} {record.term} is {_significant(before < alpha)} at {alpha:g} with classical "
            f"standard errors ({show_p(before)}) and {_significant(after < alpha)} with clustered ones "
            f"({show_p(after)})."
        )


def _significant(is_significant: bool) -> str:
    return "significant" if is_significant else "not significant"


def _distance(record: StudyGap | RegressionRecord) -> str:
    distance = f"{record.target} distance"
    return f"{record.condition}, {distance}" if record.condition else distance.capitalize()
