"""Findings of a study, and notes on conclusions that differ between published and person-level estimates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from evenhand.core.estimates import Estimate
from evenhand.core.families import Significance
from evenhand.core.findings import Arguments, Claim
from evenhand.core.records import matching
from evenhand.messages import Message
from evenhand.messages.formats import show_p
from evenhand.study.analysis.estimate import BY_PEOPLE, TESTS
from evenhand.study.analysis.messages import say
from evenhand.study.analysis.metrics import METRICS
from evenhand.study.analysis.regressions import INTERCEPT
from evenhand.study.analysis.result import RegressionRecord, StudyGap, StudyValue
from evenhand.study.analysis.spec import AnalysisSpec

_WHEN: dict[Significance, dict[str, str]] = {
    "significant": {"sentence_id": "goes_with_one"},
    "not_significant": {"sentence_id": "no_clear_difference"},
    "untested": {"sentence_id": "not_tested"},
}


def make_claims(
    values: Sequence[Estimate[StudyValue]], gaps: Sequence[Estimate[StudyGap]], spec: AnalysisSpec
) -> Iterator[Claim]:
    """Yield the claims from person-level estimates: each comparison of the two correlations, and each weight."""
    correlations = {
        (record.condition, record.target, record.factor): record.value
        for record in (estimate.record for estimate in values)
        if (record.metric, record.method) == ("rank_correlation", BY_PEOPLE)
    }
    for compared in gaps:
        gap = compared.record
        if (gap.metric, gap.method) == ("rank_correlation", BY_PEOPLE):
            sides = {side: correlations.get((gap.condition, gap.target, side)) for side in (gap.group, gap.reference)}
            claim = _claim(compared, "two_correlations", "correlations_undefined", _comparison(gap, sides), spec)
            yield replace(claim, when=_WHEN)
    for weight in values:
        if (weight.record.metric, weight.record.method) == ("effort_weight", BY_PEOPLE):
            yield _claim(weight, "weight", "weight_undefined", {"value": weight.record.value}, spec)


def _claim(
    estimate: Estimate[StudyValue] | Estimate[StudyGap],
    sentence_id: str,
    undefined_id: str,
    told: Arguments,
    spec: AnalysisSpec,
) -> Claim:
    record = estimate.record
    where = say("condition", condition=record.condition) if record.condition else say("all_people")
    place: Arguments = {"where": where, "title": METRICS[record.metric].title_in_sentence, "target": record.target}
    return Claim(
        estimates=(estimate,),
        sentence_id=sentence_id,
        undefined_id=undefined_id,
        arguments={**place, **told},
        headline=True,
        aside=_answers(record),
        withheld=None if record.value is None else _too_few(record, spec),
    )


def _comparison(gap: StudyGap, sides: dict[str | None, float | None]) -> Arguments:
    """Return both correlations and the arguments that name the stronger and the weaker distance."""
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


def _answers(record: StudyValue | StudyGap) -> Message:
    key = "gave" if record.low is None else "gave_resampled"
    return say(key, n=record.n, answers=say("answers", n=record.answers))


def _too_few(record: StudyValue | StudyGap, spec: AnalysisSpec) -> Message | None:
    return None if record.n >= spec.min_count else say("no_verdict", n=record.n, least=spec.min_count)


# Remarks --------------------------------------------------------------------------------------------------------------


def conclusion_notes(
    gaps: Sequence[StudyGap], regressions: Sequence[RegressionRecord], spec: AnalysisSpec
) -> tuple[Message, ...]:
    """Return notes on conclusions at alpha that differ between published and person-level estimates."""
    compared = [gap for gap in gaps if gap.metric == "rank_correlation"]
    changes = [*_changed_comparisons(compared, spec.alpha), *_changed_coefficients(regressions, spec.alpha)]
    if changes:
        return tuple(changes)
    if not any(gap.method == BY_PEOPLE and gap.p_value is not None for gap in compared):
        return (say("not_tested_by_people"),)
    return (say("same_conclusions", alpha=spec.alpha),)


def _changed_comparisons(gaps: Sequence[StudyGap], alpha: float) -> Iterator[Message]:
    for gap in gaps:
        if gap.method != BY_PEOPLE or gap.p_value is None:
            continue
        is_significant = gap.p_value < alpha
        differing = tuple(
            other.method.capitalize()
            for other in gaps
            if (other.condition, other.target) == (gap.condition, gap.target)
            and other.method in TESTS
            and other.p_value is not None
            and (other.p_value < alpha) != is_significant
        )
        if differing:
            one, several = ("test_misses", "tests_miss") if is_significant else ("test_finds", "tests_find")
            key = one if len(differing) == 1 else several
            yield say(key, where=_distance(gap), tests=differing, alpha=alpha, p=show_p(gap.p_value))


def _changed_coefficients(regressions: Sequence[RegressionRecord], alpha: float) -> Iterator[Message]:
    def key(record: RegressionRecord) -> tuple[str | None, ...]:
        return record.regression, record.condition, record.target, record.metric, record.term

    tested = [r for r in regressions if r.metric in ("coefficient", "wald_test") and r.term != INTERCEPT]
    published = {key(record): record.p_value for record in tested if record.method == "published"}
    for record in matching(tested, method="clustered"):
        before, after = published.get(key(record)), record.p_value
        if before is None or after is None or (before < alpha) == (after < alpha):
            continue
        what = "null" if record.metric == "wald_test" else "coefficient"
        yield say(
            f"{what}_lost" if before < alpha else f"{what}_gained",
            where=_distance(record),
            term=record.term,
            alpha=alpha,
            before=show_p(before),
            after=show_p(after),
        )


def _distance(record: StudyGap | RegressionRecord) -> Message:
    if record.condition:
        return say("distance_in", condition=record.condition, target=record.target)
    return say(f"{record.target}_distance")
