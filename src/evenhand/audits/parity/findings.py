"""The parity findings: what is said of a gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evenhand.audits.parity.messages import NOT_COMPARED, say
from evenhand.audits.parity.metrics import ParityMetric
from evenhand.audits.parity.result import ParityGap
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.estimates import Estimate
from evenhand.core.families import Clarity
from evenhand.core.findings import Arguments, Claim, in_one
from evenhand.core.records import STANDARDISED, Value
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.table.roles import TIMES, Roles

_NAMED = 3
_Place = tuple[str | None, str | None, str | None, str]


def make_claims(
    gaps: Sequence[Estimate[ParityGap]], values: Sequence[Value], spec: ParitySpec, roles: Roles
) -> Iterator[Claim]:
    """Yield what can be told: every gap; the worst pair's difference in a headline metric is told in any case."""
    by_place: dict[_Place, dict[str, Value]] = {}
    for record in values:
        by_place.setdefault(_place(record), {})[record.group] = record
    compared = {place: sum(map(_is_compared, groups.values())) for place, groups in by_place.items()}
    metrics = spec.known_metrics()
    for estimate in gaps:
        gap = estimate.record
        groups, number = by_place.get(_place(gap), {}), compared.get(_place(gap), 0)
        on_the_whole = gap.stratum is None or gap.stratum == STANDARDISED
        is_worst = (gap.kind, gap.against) == ("difference", "worst_pair")
        yield Claim(
            estimates=(estimate,),
            sentence_id=_sentence_id(gap),
            arguments=_arguments(gap, groups, metrics[gap.metric], spec, roles),
            headline=metrics[gap.metric].headline and on_the_whole and is_worst,
            aside=_others(gap, groups, metrics[gap.metric]) if gap.against == "worst_pair" else None,
            family=shared("all_pairs") if gap.against == "worst_pair" and number > 2 else None,
            when={} if gap.against == "overall" else _when(gap, number),
        )


def _place(record: Value | ParityGap) -> _Place:
    return record.model, record.grouping, record.stratum, record.metric


def _sentence_id(gap: ParityGap) -> str:
    if gap.against == "overall":
        return "against_everybody"
    return "two_values"


def _when(gap: ParityGap, groups: int) -> dict[Clarity, dict[str, str]]:
    """Return what is said of a gap alone; that some of many groups differ need not show that these two do."""
    if gap.worse_off is not None:
        clear = "two_values_worse_off"
    else:
        clear = "some_groups_differ" if gap.against == "worst_pair" and groups > 2 else "two_values_differ"
    ids: dict[Clarity, str] = {"clear": clear, "unclear": "no_clear_difference", "untested": "not_tested"}
    return {clarity: {"sentence_id": sentence_id} for clarity, sentence_id in ids.items()}


def _arguments(
    gap: ParityGap, groups: Mapping[str, Value], metric: ParityMetric, spec: ParitySpec, roles: Roles
) -> Arguments:
    place = _where(gap, spec)
    sides = {"group": gap.group or "", "reference": gap.reference or ""}
    return {
        "where": shared("model_place", model=gap.model, place=place),
        "place": place,
        "metric": metric.name,
        "title": metric.title_in_sentence,
        "model": gap.model,
        "selects": roles.predictions[str(gap.model)].selected_word,
        "people": shared("called", people=roles.people) if roles.people else None,
        **sides,
        **{f"{side}_value": groups[name].value for side, name in sides.items() if name in groups},
        "worse_off": gap.worse_off,
    }


def _where(gap: ParityGap, spec: ParitySpec) -> Message:
    if gap.stratum == STANDARDISED:
        return shared("standardised", grouping=gap.grouping, factor=TIMES.join(spec.within))
    if gap.stratum is not None:
        return shared("within", grouping=gap.grouping, stratum=gap.stratum)
    return shared("by", grouping=gap.grouping)


def _is_compared(record: Value) -> bool:
    return record.status.id not in NOT_COMPARED


def _others(gap: ParityGap, groups: Mapping[str, Value], metric: ParityMetric) -> Message | None:
    """Name the groups outside the worst pair with their values, and those that are not compared."""
    left_out = [record for record in groups.values() if not _is_compared(record) and record.value is not None]
    return in_one([said for said in (_between(gap, groups, metric), _not_compared(left_out)) if said is not None])


def _between(gap: ParityGap, groups: Mapping[str, Value], metric: ParityMetric) -> Message | None:
    """Return the values of the groups between the two of the worst pair, from the worse-off side; else from above."""
    values = {
        name: record.value for name, record in groups.items() if record.value is not None and _is_compared(record)
    }
    pair = {name: values.pop(name) for name in (gap.group, gap.reference) if name in values}
    if len(pair) < 2 or not values:
        return None
    upwards = gap.worse_off in pair and pair[gap.worse_off] == min(pair.values())
    names = sorted(values, key=lambda name: (values[name] if upwards else -values[name], name))
    named = [say("group_value", group=name, value=values[name], unit=metric.style()) for name in names[:_NAMED]]
    return say("other_groups", groups=tuple(named), more=_and_more(len(names)))


def _not_compared(left_out: Sequence[Value]) -> Message | None:
    """Name the groups that have a value but do not enter the gap."""
    named = [say("group_size", group=record.group, n=record.n) for record in left_out[:_NAMED]]
    return say("not_compared", groups=tuple(named), more=_and_more(len(left_out))) if named else None


def _and_more(groups: int) -> Message | None:
    return say("more_groups", n=groups - _NAMED) if groups > _NAMED else None
