"""Gaps between groups: what the answers say of them, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.audits.disagreement.groups import Grouping, Voices
from evenhand.audits.disagreement.records import GapRecord, PlanRecord
from evenhand.audits.disagreement.sampling import resampling_of
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.numbers import finite
from evenhand.errors import count
from evenhand.stats.feedback import (
    DEFINITE,
    INDEFINITE,
    TOLERANT,
    Bounds,
    Feedback,
    Gap,
    GapInterval,
    gap,
    gap_intervals,
    plan_answers,
    same_gap,
)
from evenhand.stats.feedback import (
    FeedbackMetric as Notion,
)
from evenhand.stats.types import FloatArray

NEW_CASES, SAME_CASES = "new cases", "same cases"
NO_SPREAD = "no interval: the answers do not vary"
_HURDLES = {
    "open": "not reachable: the answers leave more than that open, whoever is asked",
    "cases": "not reachable: more critics on the same cases are not enough; ask about new ones",
    "no_interval": "no interval: there is nothing to narrow",
}


@dataclass(frozen=True)
class Place:
    """Whose gap it is: the grouping, and the kind of critics or the one critic (None for all)."""

    grouping: str
    groups: tuple[str, ...]
    labels: tuple[str, ...]
    stakeholder: str | None = None
    critic: str | None = None


def gaps_of(
    voices: Voices, place: Place, notions: Sequence[Notion], spec: DisagreementSpec, *stream: int
) -> tuple[list[GapRecord], dict[Notion, GapInterval]]:
    """Return the gaps of some critics with their intervals."""
    plan = resampling_of(voices.answers, spec, *stream)
    found = gap_intervals(
        voices.answers,
        notions,
        rng=plan.rng,
        draws=plan.draws,
        resampled=plan.resampled,
        confidence=spec.confidence,
        bounds=spec.bounds,
    )
    n = len(voices.answers.answer)
    seen = observed_gaps(voices.answers.masses(), voices.answers.feedback, notions, spec.bounds)
    records = []
    for notion, interval in found.items():
        truth = voices.truth_for(notion)
        own = None if truth is None else finite(float(gap(truth.masses(), truth.feedback, notion).estimate))
        records.append(gap_record(place, seen[notion], n, interval.low, interval.high, own, spec.bounds))
    return records, found


def observed_gaps(
    masses: FloatArray, feedback: Feedback, notions: Sequence[Notion], bounds: Bounds
) -> dict[Notion, Gap]:
    """Return the gaps with lower bounds that hold for the critics' own labels too.

    When nobody agrees with a label, critics may never have it in mind. Its rate is then undefined and not part of the
    gap, so that the lower bound must not lean on it: the bound for a mass that may be tiny does not.
    """
    gaps: dict[Notion, Gap] = {}
    for notion in notions:
        if notion == "overall_misclassification" and bounds == "sharp" and "equal_opportunity" in gaps:
            same = gaps["equal_opportunity"]  # 1 less the other rate: the same gap, the groups turned
            gaps[notion] = replace(same, metric=notion, high=same.low, low=same.high)
            continue
        found = gap(masses, feedback, notion, bounds=bounds)
        if notion in INDEFINITE and bounds == "sharp":
            found = replace(found, lower=np.fmin(found.lower, gap(masses, feedback, notion, closed=True).lower))
        gaps[notion] = found
    return gaps


def gap_record(
    place: Place, found: Gap, n: int, low: float, high: float, truth: float | None, bounds: Bounds
) -> GapRecord:
    """Return the record of a single gap."""
    lower, upper = finite(float(found.lower)), finite(float(found.upper))
    label, first, second = (int(x) for x in (found.label, found.high, found.low))
    status = "ok"
    if upper is None:
        status = "undefined: no label has a rate in two groups"
    elif finite(low) is None:
        status = NO_SPREAD
    return GapRecord(
        grouping=place.grouping,
        stakeholder=place.stakeholder,
        critic=place.critic,
        notion=found.metric,
        kind=None if upper is None else kind_of(found),
        n=n,
        label=None if label < 0 else place.labels[label],
        group_high=None if first < 0 else place.groups[first],
        group_low=None if second < 0 else place.groups[second],
        lower=lower,
        upper=upper,
        value=finite(float(found.estimate)),
        low=finite(low),
        high=finite(high),
        sharp=None if upper is None else found.sharp,
        same_as=_same_as(found.metric, len(place.labels), bounds),
        truth=truth,
        status=status,
    )


def kind_of(found: Gap) -> str:
    """Return whether a gap is definite, exact or bounded."""
    if not bool(found.exact):
        return "bounded"
    return "definite" if found.metric in (*DEFINITE, *TOLERANT) else "exact"


def undefined_gaps(
    place: Place, notions: Sequence[Notion], n: int, why: str, labels: int, bounds: Bounds
) -> list[GapRecord]:
    """Return gaps that cannot be had, with the reason."""
    return [
        GapRecord(
            place.grouping,
            place.stakeholder,
            place.critic,
            notion,
            None,
            n,
            *(None,) * 9,
            same_as=_same_as(notion, labels, bounds),
            truth=None,
            status=f"undefined: {why}",
        )
        for notion in notions
    ]


def _same_as(notion: Notion, labels: int, bounds: Bounds) -> Notion | None:
    same = same_gap(notion, labels) if bounds == "sharp" else notion
    return None if same == notion else same


def why_not(voices: Voices, grouping: Grouping, least: int) -> str | None:
    """Return why groups cannot be compared by some critics, or None when they can.

    Parameters
    ----------
    voices
        Their answers, on the cases of the groups that are compared.
    grouping
        The grouping.
    least
        The number of cases that each group needs.
    """
    if len(grouping.chosen) < 2:
        return f"fewer than two groups of {grouping.name} have enough cases to be compared"
    answers = voices.answers
    cases = np.bincount(answers.group, minlength=answers.groups).tolist()
    for name, n in zip(voices.groups, cases, strict=True):
        if n < least:
            few = f"only {count(n, 'case')} of {name} {'was' if n == 1 else 'were'} answered, fewer than {least}"
            return few if n else f"no case of {name} was answered"
    return None


def plan_records(
    voices: Voices, place: Place, intervals: dict[Notion, GapInterval], spec: DisagreementSpec
) -> list[PlanRecord]:
    """Return what it would take to narrow the intervals to the wanted width; gaps that are the same stand once."""
    if spec.target_width is None:
        return []
    records = []
    for notion, interval in intervals.items():
        if interval.components is None or (spec.bounds == "sharp" and same_gap(notion, len(place.labels)) != notion):
            continue
        for design, new_cases in ((NEW_CASES, True), (SAME_CASES, False)):
            plan = plan_answers(interval, voices.answers, spec.target_width, new_cases=new_cases)
            record = PlanRecord(
                place.grouping,
                notion,
                design,
                spec.target_width,
                finite(plan.now),
                finite(plan.least),
                plan.critics,
                plan.cases,
                plan.answers,
                "ok" if plan.hurdle is None else _HURDLES[plan.hurdle],
            )
            records.append(record)
    return records
