"""The parity findings: what is said of a gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evenhand.audits.parity.metrics import ParityMetric
from evenhand.audits.parity.result import ParityGap
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.families import Clarity
from evenhand.core.findings import Claim
from evenhand.core.formats import show
from evenhand.core.records import STANDARDISED, Value
from evenhand.errors import count
from evenhand.table.roles import TIMES, Roles

_TWO = "{group_value:unit} of {group} and {reference_value:unit} of {reference}{people}"
_OF_THOSE = "{place}, of those with the {outcome} outcome, {model} {selects} " + _TWO

SENTENCES = {
    "against_everybody": "{where}: {title} is {group_value:unit} for {group}, compared with everybody.",
    "clause_selection_rate": "{place}, {model} {selects} " + _TWO,
    "clause_tpr": _OF_THOSE.replace("{outcome}", "positive"),
    "clause_fpr": _OF_THOSE.replace("{outcome}", "negative"),
    "clause_ppv": "{place}, of those that {model} {selects}, the outcome is positive for " + _TWO,
    "clause_accuracy": "{place}, {model} is right about " + _TWO,
    "clause_base_rate": "{place}, the outcome is positive for " + _TWO,
    "clause_mean_score": (
        "{place}, {model}'s mean score is {group_value:unit} for {group} and {reference_value:unit} for "
        "{reference}{people}"
    ),
}
"""A judge reads "xgboost flags 27.9% of Black and 4.3% of Asian households"; other metrics keep their titles."""

_NAMED = 3
_Place = tuple[str | None, str | None, str | None, str]


def make_claims(gaps: Sequence[ParityGap], values: Sequence[Value], spec: ParitySpec, roles: Roles) -> Iterator[Claim]:
    """Yield what can be told: every gap; the worst pair's difference in a headline metric is told in any case."""
    by_place: dict[_Place, dict[str, Value]] = {}
    for record in values:
        by_place.setdefault(_place(record), {})[record.group] = record
    compared = {place: sum(map(_is_compared, groups.values())) for place, groups in by_place.items()}
    metrics = spec.known_metrics()
    for gap in gaps:
        groups, number = by_place.get(_place(gap), {}), compared.get(_place(gap), 0)
        on_the_whole = gap.stratum is None or gap.stratum == STANDARDISED
        is_worst = (gap.kind, gap.against) == ("difference", "worst_pair")
        yield Claim(
            records=(gap,),
            sentence_id=_sentence_id(gap),
            arguments=_arguments(gap, groups, metrics[gap.metric], spec, roles),
            headline=metrics[gap.metric].headline and on_the_whole and is_worst,
            aside=_others(gap, groups, metrics[gap.metric]) if gap.against == "worst_pair" else "",
            family="all pairs of groups" if gap.against == "worst_pair" and number > 2 else None,
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
) -> dict[str, str | float | None]:
    place = f"y {gap.grouping}"
    if gap.stratum == STANDARDISED:
        place += f", standardised over {TIMES.join(spec.within)}"
    elif gap.stratum is not None:
        place += f", within {gap.stratum}"
    sides = {"group": gap.group or "", "reference": gap.reference or ""}
    return {
        "where": f"{gap.model}, b{place}",
        "place": f"B{place}",
        "metric": metric.name,
        "title": metric.title_in_sentence,
        "model": gap.model,
        "selects": roles.predictions[str(gap.model)].selected_word,
        "people": f" {roles.people}" if roles.people else "",
        **sides,
        **{f"{side}_value": groups[name].value for side, name in sides.items() if name in groups},
        "worse_off": gap.worse_off,
    }


def _is_compared(record: Value) -> bool:
    return not record.status.startswith(("small", "missing", "undefined"))


def _others(gap: ParityGap, groups: Mapping[str, Value], metric: ParityMetric) -> str:
    """Name the groups outside the worst pair with their values, and those that are not compared."""
    left_out = [record for record in groups.values() if record.status.startswith(("small", "missing"))]
    return " ".join(filter(None, (_between(gap, groups, metric), _not_compared(left_out))))


def _between(gap: ParityGap, groups: Mapping[str, Value], metric: ParityMetric) -> str:
    """Return the values of the groups between the two of the worst pair, from the worse-off side; else from above."""
    values = {
        name: record.value for name, record in groups.items() if record.value is not None and _is_compared(record)
    }
    pair = {name: values.pop(name) for name in (gap.group, gap.reference) if name in values}
    if len(pair) < 2 or not values:
        return ""
    upwards = gap.worse_off in pair and pair[gap.worse_off] == min(pair.values())
    names = sorted(values, key=lambda name: (values[name] if upwards else -values[name], name))
    named = ", ".join(f"{name} {show(values[name], metric.style())}" for name in names[:_NAMED])
    return f"Other groups: {named}{_and_more(len(names))}."


def _not_compared(left_out: Sequence[Value]) -> str:
    """Name the groups that have a value but do not enter the gap."""
    named = ", ".join(f"{record.group} (n = {record.n:,})" for record in left_out[:_NAMED])
    return f"Not compared: {named}{_and_more(len(left_out))}." if named else ""


def _and_more(groups: int) -> str:
    return f" and {count(groups - _NAMED, 'more group')}" if groups > _NAMED else ""
