"""The findings and notes of the disagreement audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np

from evenhand.audits.disagreement.critics import MOST_CRITICS
from evenhand.audits.disagreement.gather import Panel
from evenhand.audits.disagreement.groups import Grouping
from evenhand.audits.disagreement.messages import say
from evenhand.audits.disagreement.metrics import DISAGREEMENT, METRICS
from evenhand.audits.disagreement.result import DisagreementGap, DisagreementValue, StakeholderGap
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.estimates import Estimate
from evenhand.core.families import Significance
from evenhand.core.findings import Claim, join_sentences
from evenhand.core.records import OK
from evenhand.messages import Argument, Message
from evenhand.messages.shared import say as shared

LEAST_CRITICS = 5
"""The number of critics below which there is no verdict, because few critics may all agree by chance."""
FEW = 20
"""The number of critics or cases below which bootstrap standard errors are too small."""
_NAMED, _NAMED_LABELS = 3, 5
_ENDINGS: dict[Significance, str] = {"not_significant": "unclear", "untested": "untested"}


def make_claims(
    gaps: Sequence[Estimate[DisagreementGap]],
    values: Sequence[DisagreementValue],
    stakeholders: Sequence[Estimate[StakeholderGap]],
    spec: DisagreementSpec,
) -> Iterator[Claim]:
    """Yield a claim for every gap, and a claim for each grouping on two kinds of critics that differ.

    Without a threshold, the gaps of all critics are headlines; equal gaps appear only once.
    """
    rates = {(r.grouping, r.stakeholder, r.metric, r.label, r.group): r.value for r in values}
    for estimate in gaps:
        gap = estimate.record
        key = gap.grouping, gap.stakeholder, gap.metric, gap.label
        sentence_id = _sentence_id(gap, values)
        arguments: dict[str, Argument] = {
            **_gap_arguments(gap),
            "label": gap.label,
            "group": gap.group,
            "reference": gap.reference,
            "group_value": rates.get((*key, gap.group or "")),
            "reference_value": rates.get((*key, gap.reference or "")),
            "lower": gap.lower,
            "upper": gap.upper,
        }
        yield Claim(
            estimates=(estimate,),
            sentence_id=sentence_id,
            undefined_id="undefined_gap",
            arguments=arguments,
            headline=gap.stakeholder is None and gap.same_as is None,
            when={
                significance: {"sentence_id": f"{sentence_id}_{ending}"} for significance, ending in _ENDINGS.items()
            },
            aside=_largest_gap_message(gap),
            withheld=_too_few(gap.critics),
        )
    for grouping in dict.fromkeys(kind_estimate.record.grouping for kind_estimate in stakeholders):
        rows = [e for e in stakeholders if (e.record.grouping, e.record.metric) == (grouping, DISAGREEMENT)]
        yield from _stakeholder_claims(rows, spec)


def _sentence_id(gap: DisagreementGap, values: Iterable[DisagreementValue]) -> str:
    """Return the id of the sentence on a gap: of its metric, or of bounds."""
    if gap.identified != "bounded":
        return gap.metric
    return "bounded_either" if goes_either_way(gap, values) else "bounded"


def goes_either_way(gap: DisagreementGap, values: Iterable[DisagreementValue]) -> bool:
    """Return whether the answers leave open which of a gap's two groups has the higher rate."""
    place = attrgetter("grouping", "stakeholder", "metric", "label")
    rates = {rate.group: rate for rate in values if place(rate) == place(gap)}
    higher, lower = rates.get(gap.group or ""), rates.get(gap.reference or "")
    least = None if higher is None else higher.lower if higher.lower is not None else higher.value
    most = None if lower is None else lower.upper if lower.upper is not None else lower.value
    return least is None or most is None or least < most


def _gap_arguments(gap: DisagreementGap | StakeholderGap) -> dict[str, Argument]:
    who = say("critics") if gap.stakeholder is None else say("critics_of", stakeholder=gap.stakeholder)
    where = shared("by", grouping=gap.grouping)
    return {"where": where, "title": METRICS[gap.metric].title_in_sentence, "who": who}


def _largest_gap_message(gap: DisagreementGap) -> Message | None:
    """Return a sentence on the groups and label of the largest possible gap, if only bounds are known."""
    if gap.identified != "bounded":
        return None
    groups = {"group": gap.group, "reference": gap.reference}
    return say("upper_end", **groups) if gap.label is None else say("upper_end_at", label=gap.label, **groups)


def _too_few(critics: int) -> Message | None:
    return None if critics >= LEAST_CRITICS else say("few_critics", n=critics, least=LEAST_CRITICS)


# Kinds of critics -----------------------------------------------------------------------------------------------------


def _stakeholder_claims(rows: Sequence[Estimate[StakeholderGap]], spec: DisagreementSpec) -> Iterator[Claim]:
    """Yield the claim on the clearest difference between two kinds of critics by one grouping."""
    tested = [e for e in rows if e.record.p_adjusted is not None]
    untested = [e.record for e in rows if e.record.p_adjusted is None and e.record.value != 0]
    if tested:
        yield _tested_claim(tested, untested, 1.0 - spec.confidence)
    elif untested:
        yield _kinds_claim("kinds_untested", Estimate(_without_numbers(untested[0])), _not_tested(untested))


def _tested_claim(
    tested: Sequence[Estimate[StakeholderGap]], untested: Sequence[StakeholderGap], level: float
) -> Claim:
    """Return the claim on the comparison with the smallest p-value.

    The kind with more disagreement comes first.

    The claim's p-value is adjusted for all comparisons that it was chosen from.
    """
    clearest = min(tested, key=lambda estimate: _clearness(estimate.record))
    if (clearest.record.value or 0.0) < 0:
        clearest = clearest.map(_swap_sides)
    more = sum((e.record.p_adjusted or 0.0) <= level for e in tested) - 1
    alike_id, untold = "kinds_partly_alike" if untested else "kinds_alike", Estimate(_without_numbers(clearest.record))
    fallback = _kinds_claim(alike_id, untold, _not_tested(untested))
    names = ("estimates", "sentence_id", "undefined_id", "arguments", "aside")
    return replace(
        _kinds_claim("kinds_differ", clearest, [say("more_differ", n=more)] if more > 0 else []),
        p_value=clearest.record.p_adjusted,
        when={"not_significant": {name: getattr(fallback, name) for name in names}},
    )


def _clearness(record: StakeholderGap) -> tuple[float, float]:
    return record.p_adjusted or 0.0, -abs(record.statistic or 0.0)


def _kinds_claim(sentence_id: str, estimate: Estimate[StakeholderGap], asides: Sequence[Message]) -> Claim:
    record = estimate.record
    arguments: dict[str, Argument] = {
        **_gap_arguments(record),
        "stakeholder": record.stakeholder,
        "other": record.stakeholder_reference,
        "label": record.label,
        "group": record.group,
        "value": record.value,
    }
    counted = [] if record.value is None else [say("shared_cases")]
    return Claim(
        estimates=(estimate,),
        sentence_id=sentence_id,
        undefined_id=sentence_id,
        arguments=arguments,
        headline=True,
        aside=join_sentences([*counted, *asides]),
    )


def _not_tested(records: Sequence[StakeholderGap]) -> list[Message]:
    """Return sentences on the differences that could not be tested."""
    if not records:
        return []
    parts, more = tuple(map(_join_titles, records[:_NAMED])), len(records) - _NAMED
    return [say("not_tested_and_more", parts=parts, number=more) if more > 0 else say("not_tested", parts=parts)]


def _join_titles(record: StakeholderGap) -> Message:
    key = "cannot_compare" if record.value is None else "differ"
    return say(
        key if record.label is None else f"{key}_at",
        stakeholder=record.stakeholder,
        other=record.stakeholder_reference,
        value=None if record.value is None else abs(record.value),
        label=record.label,
        group=record.group,
    )


def _without_numbers(record: StakeholderGap) -> StakeholderGap:
    """Return a comparison without numbers, for the sentence that no difference was shown."""
    return replace(record, value=None, low=None, high=None, lower=None, upper=None, statistic=None, status=OK)


def _swap_sides(record: StakeholderGap) -> StakeholderGap:
    """Return the comparison with its two sides swapped."""

    def minus(number: float | None) -> float | None:
        return None if number is None else -number

    return replace(
        record,
        stakeholder=record.stakeholder_reference,
        stakeholder_reference=record.stakeholder,
        critics=record.critics_reference,
        critics_reference=record.critics,
        value=minus(record.value),
        low=minus(record.high),
        high=minus(record.low),
        lower=minus(record.upper),
        upper=minus(record.lower),
        statistic=minus(record.statistic),
    )


# Notes ----------------------------------------------------------------------------------------------------------------


def panel_notes(
    panel: Panel, spec: DisagreementSpec, gaps: Sequence[DisagreementGap], fewer: Mapping[str, int]
) -> Iterator[Message]:
    """Yield the notes, most important first."""
    yield from _reading_notes(panel, spec)
    yield say(
        "counts_once" if panel.weight is None else "counts_by_weight",
        answers=say("of_answers", n=len(panel.answer)),
        critics=say("of_critics", n=len(panel.critics)),
        cases=say("of_cases", n=len(panel.cases)),
    )
    if min(len(panel.critics), len(panel.cases)) < FEW:
        yield say("rough")
    yield from _few_of_a_kind(panel)
    yield from _bound_notes(spec, gaps)
    if panel.inconsistent:
        yield say("inconsistent", n=panel.inconsistent)
    if len(panel.critics) > MOST_CRITICS:
        yield say("many_critics", most=MOST_CRITICS)
    for grouping, draws in fewer.items():
        yield say("fewer_resamples", grouping=grouping, draws=draws, resamples=spec.resamples)
    unknown = 0 if panel.stakeholder is None else int((panel.stakeholder < 0).sum())
    if unknown:
        yield say("unknown_kind", n=unknown)


def _reading_notes(panel: Panel, spec: DisagreementSpec) -> Iterator[Message]:
    """Yield notes on the interpretation of the answers."""
    if len(panel.labels.names) == 2 and spec.bounds == "sharp":
        yield say("two_labels")
    if not panel.labels.declared:
        yield say("seen_labels", labels=tuple(map(repr, panel.labels.names)))
    if spec.case is None and not spec.answers.apart:
        yield say("no_case_column")


def label_notes(values: Sequence[DisagreementValue], groupings: Sequence[Grouping]) -> Iterator[Message]:
    """Yield notes on labels that a group was never given, so that calibration cannot compare them."""
    pooled = [r for r in values if r.metric == "calibration" and r.stakeholder is None]
    for grouping in groupings:
        never = _never_given([r for r in pooled if r.grouping == grouping.name and r.group in grouping.chosen])
        if never:
            parts, more = tuple(never[:_NAMED_LABELS]), len(never) - _NAMED_LABELS
            key = "labels_never_given_and_more" if more > 0 else "labels_never_given"
            yield say(key, grouping=grouping.name, parts=parts, number=more)


def _never_given(rates: Sequence[DisagreementValue]) -> list[Message]:
    rated = {r.label for r in rates if r.value is not None}
    return [say("label_to", label=r.label, group=r.group) for r in rates if r.value is None and r.label in rated]


def _few_of_a_kind(panel: Panel) -> Iterator[Message]:
    if panel.stakeholder is None:
        return
    critics = np.bincount(panel.stakeholder[panel.stakeholder >= 0], minlength=len(panel.stakeholders))
    kinds = zip(panel.stakeholders, critics.tolist(), strict=True)
    few = tuple(say("kind_of", stakeholder=name, critics=n) for name, n in kinds if 0 < n < FEW)
    if few:
        yield say("rough_kinds", kinds=few)


def _bound_notes(spec: DisagreementSpec, gaps: Sequence[DisagreementGap]) -> Iterator[Message]:
    if spec.bounds == "published":
        yield say("published_bounds")
    elif any(gap.identified == "bounded" and not gap.sharp for gap in gaps):
        yield say("low_bounds")
    yield say("largest_of_several")
