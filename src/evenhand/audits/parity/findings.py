"""The findings of the parity audit: claims on gaps."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import comb
from typing import Any

from evenhand.audits.parity.decisions import with_chance
from evenhand.audits.parity.definition import ParityMetric
from evenhand.audits.parity.four_fifths import is_favourable_side
from evenhand.audits.parity.messages import NOT_COMPARED, say
from evenhand.audits.parity.result import ParityGap
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.estimates import Estimate
from evenhand.core.families import Significance
from evenhand.core.findings import Arguments, Claim
from evenhand.core.omitted import Omitted
from evenhand.core.records import STANDARDISED, Value
from evenhand.core.thresholds import limits_record
from evenhand.messages import Argument, Message
from evenhand.messages.shared import say as shared
from evenhand.messages.shared import speaker
from evenhand.table.roles import TIMES, Roles

_NAMED = 3
_ONE_SIDED = ("exact", "asymptotic", "permutation", "approximation")
"""Valid bases of one-sided limits; MOVER, the bootstrap and few people have too low one-sided coverage."""

_ValueKey = tuple[str | None, str | None, str | None, str]


def make_claims(
    gaps: Sequence[Estimate[ParityGap]], values: Sequence[Value], spec: ParitySpec, roles: Roles
) -> Iterator[Claim]:
    """Yield a claim for every gap; worst pairs' gaps in headline metrics are headlines."""
    by_place: dict[_ValueKey, dict[str, Value]] = {}
    for record in values:
        by_place.setdefault(_value_key(record), {})[record.group] = record
    compared = {key: sum(map(_is_compared, groups.values())) for key, groups in by_place.items()}
    metrics = spec.known_metrics()
    against_reference = _against_reference(gaps)
    references = {place: gap.reference for (place, _), gap in against_reference.items()}
    for estimate in gaps:
        gap = estimate.record
        key, metric = _value_key(gap), metrics[gap.metric]
        groups = by_place.get(key, {})
        claim = _claim(estimate, groups, compared.get(key, 0), spec, roles)
        if gap.against == "worst_pair":
            claim = replace(claim, aside=_groups_between(gap, groups, metric, references.get(key)))
        is_rate = metric.method == "rate" and roles.weight is None and gap.stratum != STANDARDISED
        yield _completed(claim, gap, groups, spec.confidence if is_rate else None)
    for place, against in against_reference.items():
        yield from _too_small(against, by_place.get(place[0], {}), spec, roles)


def _claim(
    estimate: Estimate[ParityGap], groups: Mapping[str, Value], number: int, spec: ParitySpec, roles: Roles
) -> Claim:
    """Return the claim on a gap among so many compared groups."""
    gap, listed = estimate.record, _is_listed(_clause_name(estimate.record, spec), estimate.record, roles)
    metric = spec.known_metrics()[gap.metric]
    return Claim(
        estimates=(estimate,),
        sentence_id=_sentence_id(gap),
        arguments=_arguments(gap, groups, metric, spec, roles),
        headline=metric.headline and gap.rests_on != "one person" and _is_headline(gap, spec, roles),
        condition=_condition(gap),
        test_key=_test_key(gap, number),
        one_sided=gap.rests_on in _ONE_SIDED,
        when={} if gap.against == "overall" else _sentence_by_significance(gap, number, listed=listed),
    )


def _is_headline(gap: ParityGap, spec: ParitySpec, roles: Roles) -> bool:
    """Return whether a gap is the headline of its metric: a ratio if ratios were requested, else a difference."""
    on_the_whole = gap.stratum is None or gap.stratum == STANDARDISED
    kind = "ratio" if gap.metric in spec.ratios else "difference"
    favourable = roles.predictions[str(gap.model)].favourable
    is_worst = (gap.kind, gap.against) == (kind, "worst_pair")
    return on_the_whole and is_worst and is_favourable_side(gap.metric, favourable, spec.ratios)


def _against_reference(gaps: Sequence[Estimate[ParityGap]]) -> dict[tuple[_ValueKey, str], ParityGap]:
    """Return one gap to the reference for each place and kind."""
    records = (estimate.record for estimate in gaps)
    return {(_value_key(gap), gap.kind): gap for gap in records if gap.against == "reference"}


def _too_small(gap: ParityGap, groups: Mapping[str, Value], spec: ParitySpec, roles: Roles) -> Iterator[Claim]:
    """Yield a claim for each group too small to be compared with the reference whose value violates a limit."""
    reference = groups.get(gap.reference or "")
    limits = [threshold for threshold in spec.thresholds if limits_record(threshold, gap, spec.aliases)]
    if reference is None or reference.value is None:
        return
    omitted = _omitted(groups.values())
    breaking = {
        record.group: record
        for threshold in limits
        for record in replace(omitted, compared=(reference.value,)).breaking(threshold)
    }
    for record in breaking.values():
        nothing: dict[str, Any] = dict.fromkeys(
            ("value", "low", "high", "joint_low", "joint_high", "p_value", "worse_off", "rests_on")
        )
        status = shared("undefined", why=record.status)
        small = replace(gap, group=record.group, n=record.n + reference.n, status=status, **nothing)
        yield Claim(
            estimates=(Estimate(small),),
            sentence_id="too_small",
            undefined_id="too_small",
            arguments=_arguments(small, groups, spec.known_metrics()[gap.metric], spec, roles),
        )


def _completed(claim: Claim, gap: ParityGap, groups: Mapping[str, Value], confidence: float | None) -> Claim:
    """Return a claim with its omitted groups and, with a confidence, the probability of a verdict in larger samples."""
    if gap.against == "worst_pair":
        claim = _with_other_groups(claim, groups)
    elif gap.against == "reference":
        claim = replace(claim, omitted=replace(_omitted(groups.values()), compared=()))
    compared = [record for record in groups.values() if _is_compared(record)]
    return claim if confidence is None else with_chance(claim, gap, compared, confidence)


def _with_other_groups(claim: Claim, groups: Mapping[str, Value]) -> Claim:
    """Return the claim on a worst pair with all pairs as its family, and with the omitted groups."""
    compared = [record for record in groups.values() if _is_compared(record)]
    claim = replace(claim, omitted=_omitted(groups.values()))
    if len(compared) <= 2:
        return claim
    return replace(
        claim,
        family=shared("all_pairs"),
        pairs=comb(len(compared), 2),
        named_by="limits",
        tested_people=sum(record.n for record in compared),
    )


def _value_key(record: Value | ParityGap) -> _ValueKey:
    return record.model, record.grouping, record.stratum, record.metric


def _test_key(gap: ParityGap, groups: int) -> Hashable:
    """Return the key of a test, which a difference and its ratio share; with two groups, all gaps share one test."""
    if groups == 2:
        return _value_key(gap)
    return _value_key(gap), gap.against, None if gap.against == "worst_pair" else (gap.group, gap.reference)


def _sentence_id(gap: ParityGap) -> str:
    if gap.against == "overall":
        return "against_everybody"
    return "two_values"


def _sentence_by_significance(gap: ParityGap, groups: int, *, listed: bool) -> dict[Significance, dict[str, str]]:
    """Return the sentence on a gap for each significance.

    Among more than two groups, a significant difference is not necessarily between these two.
    """
    worse_off = "two_values_worse_off_listed" if listed else "two_values_worse_off"
    differ = "some_groups_differ" if gap.against == "worst_pair" and groups > 2 else "two_values_differ"
    ids: dict[Significance, str] = {
        "directed": "two_values_differ" if gap.worse_off is None else worse_off,
        "significant": differ,
        "not_significant": "no_clear_difference",
        "untested": "not_tested",
    }
    return {significance: {"sentence_id": sentence_id} for significance, sentence_id in ids.items()}


def _arguments(
    gap: ParityGap, groups: Mapping[str, Value], metric: ParityMetric, spec: ParitySpec, roles: Roles
) -> Arguments:
    place_message = _coordinates_message(gap, spec)
    sides = {"group": gap.group or "", "reference": gap.reference or ""}
    return {
        "where": shared("model_place", model=gap.model, place=place_message),
        "place": place_message,
        "metric": _clause_name(gap, spec) + "_listed" * _is_listed(_clause_name(gap, spec), gap, roles),
        "ratio": gap.value if gap.kind == "ratio" else None,
        "title": metric.title_in_sentence,
        "model": _speaker(str(gap.model), roles),
        "selects": roles.predictions[str(gap.model)].selected_word,
        "people": shared("called", people=roles.people) if roles.people else None,
        **sides,
        **{f"{side}_value": groups[name].value for side, name in sides.items() if name in groups},
        "worse_off": gap.worse_off,
    }


def _clause_name(gap: ParityGap, spec: ParitySpec) -> str:
    """Return the name of the clause of a gap: the metric, or a ratio if ratios were requested."""
    if gap.kind != "ratio" or gap.metric not in spec.ratios:
        return gap.metric
    return "selection_ratio" if gap.metric == "selection_rate" else "ratio"


def _speaker(model: str, roles: Roles) -> Argument:
    return speaker(model, roles.predictions[model].selected_word, alone=len(roles.predictions) == 1)


def _is_listed(clause: str, gap: ParityGap, roles: Roles) -> bool:
    """Return whether a clause lists the groups after a colon, because their names do not fit into a phrase."""
    is_phrase = roles.people and not any("=" in (name or "") for name in (gap.group, gap.reference))
    return not is_phrase and f"clause_{clause}_listed" in say


def _coordinates_message(gap: ParityGap, spec: ParitySpec) -> Message:
    if gap.stratum == STANDARDISED:
        return shared("standardised", grouping=gap.grouping, factor=TIMES.join(spec.within))
    if gap.stratum is not None:
        return shared("within", grouping=gap.grouping, stratum=gap.stratum)
    return shared("by", grouping=gap.grouping)


def _is_compared(record: Value) -> bool:
    return record.status.id not in NOT_COMPARED


def _omitted(groups: Collection[Value]) -> Omitted:
    """Return the groups with a value that do not enter the gap, and the values of the groups that do."""
    defined = [record for record in groups if record.value is not None]
    left_out = tuple(record for record in defined if not _is_compared(record))
    return Omitted(left_out, tuple(record.value or 0.0 for record in defined if _is_compared(record)))


def _condition(gap: ParityGap) -> Message | None:
    """Return the caveat if few people determine the limits, or None."""
    few = gap.rests_on in ("bounds", "few people", "one person")
    return say(f"rests_on_{str(gap.rests_on).replace(' ', '_')}") if few else None


def _groups_between(
    gap: ParityGap, groups: Mapping[str, Value], metric: ParityMetric, reference_group: str | None
) -> Message | None:
    """Return the values of the groups between the worst pair's two groups, starting from the worse-off side.

    Without a worse-off side, the order is descending. If there are many groups, the largest group and the reference
    group are always named.
    """
    compared = {record.group: record for record in groups.values() if _is_compared(record) and record.value is not None}
    values = {name: record.value or 0.0 for name, record in compared.items()}
    pair = {name: values.pop(name) for name in (gap.group, gap.reference) if name in values}
    if len(pair) < 2 or not values:
        return None
    largest = max(compared, key=lambda name: (compared[name].n, name))
    return _other_groups(
        values, pair.get(gap.worse_off or "") == min(pair.values()), (largest, reference_group), metric
    )


def _other_groups(
    values: Mapping[str, float], upwards: bool, always: Collection[str | None], metric: ParityMetric
) -> Message:
    """Return the values of groups in rising or falling order, a few of them by name."""
    names = sorted(values, key=lambda name: (values[name] if upwards else -values[name], name))
    shown = _shown_of(names, always)
    named = [say("group_value", group=name, value=values[name], unit=metric.style()) for name in shown]
    more = shared("more_groups", n=len(names) - _NAMED) if len(names) > _NAMED else None
    return say("other_groups", groups=tuple(named), more=more)


def _shown_of(names: Sequence[str], always: Collection[str | None]) -> list[str]:
    """Return the first names in their order, those that are always shown among them."""
    chosen = sorted(names, key=lambda name: name not in always)[:_NAMED]
    return [name for name in names if name in chosen]
