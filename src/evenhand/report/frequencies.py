"""The values of the groups behind a finding, as natural frequencies such as "28 of 100"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.core.findings import Finding
from evenhand.core.metrics import Metric
from evenhand.core.records import OK, STANDARDISED, Against, Gap, Value, coordinates_of
from evenhand.messages import Argument, Message
from evenhand.messages.formats import Format, show
from evenhand.messages.shared import say, speaker
from evenhand.report.messages import say as say_answer
from evenhand.report.wording import PageWording
from evenhand.table.roles import UNNAMED

if TYPE_CHECKING:
    from evenhand.core.result import Result
    from evenhand.run.audit import Audit


_Place = tuple[str | None, str | None, str | None, str]
"""A model, a grouping, a stratum and a metric."""


@dataclass(frozen=True)
class GroupValues:
    """The values of all groups that a finding compares.

    Parameters
    ----------
    metric : the metric of the values.
    values : the values by group, highest first.
    pair : the two groups of the finding.
    largest : the largest group of the data, or None if it is not compared.
    reference : the reference group, or None.
    overall : the value of all people, or None.
    compared : the groups that are large enough to be compared.
    of_people : whether shares are ratios of counts of people, neither weighted nor standardised.
    """

    metric: Metric
    values: tuple[Value, ...]
    pair: tuple[str, ...]
    largest: str | None = None
    reference: str | None = None
    overall: float | None = None
    compared: tuple[str, ...] = ()
    of_people: bool = False

    @property
    def named(self) -> list[Value]:
        """The values that are always listed: the pair, the largest group and the reference group."""
        names = {*self.pair, self.largest, self.reference}
        return [value for value in self.values if value.group in names]

    def per(self) -> int | None:
        """Return the base of natural frequencies (100, 1,000 or 10,000), or None for values that cannot be counted.

        Examples
        --------
        Shares that differ are told apart: 0.04 and 0.043 are 40 and 43 of 1,000.
        """
        shares = [value.value for value in self.named if value.value is not None]
        if self.metric.unit != "share" or not all(0 <= share <= 1 for share in shares):
            return None
        for number in (100, 1_000, 10_000):
            rounded = {share: round(share * number) for share in shares}
            if len(set(rounded.values())) == len(rounded) and all(
                _is_faithful(*each, number) for each in rounded.items()
            ):
                return number
        return None

    def style(self) -> Format:
        """Return the format of values that are not counted."""
        return self.metric.style()


def group_values(audit: Audit, finding: Finding, stratum: str | None = None) -> GroupValues | None:
    """Return the values of the groups that a finding compares, or None if its audit has no such table.

    `stratum` replaces the finding's own stratum.
    """
    where = (finding.model, finding.grouping, stratum or finding.stratum, finding.metric)
    return _groups_at(audit, finding, where, (finding.group, finding.reference))


def values_compared(audit: Audit, finding: Finding, model: str) -> GroupValues | None:
    """Return the groups' values under a model for a finding on an alternative, or None if there are none."""
    arguments = finding.arguments
    known = audit.results[finding.audit].spec.known_metrics()
    if not isinstance(metric := arguments.get("compared"), str) or metric not in known:
        return None
    pair = tuple(str(arguments[name]) for name in ("higher", "lower") if name in arguments)
    return _groups_at(audit, finding, (model, finding.grouping, finding.stratum, metric), pair)


def status_quo_values(audit: Audit, finding: Finding) -> GroupValues | None:
    """Return the groups' values under the status quo for a finding on an alternative, or None."""
    baseline = finding.arguments.get("baseline")
    return values_compared(audit, finding, baseline) if isinstance(baseline, str) else None


def _groups_at(audit: Audit, finding: Finding, where: _Place, names: Sequence[str | None]) -> GroupValues | None:
    """Return the values of all groups in a comparison, with the named groups as the finding's pair."""
    result = audit.results[finding.audit]
    values = list(_values(result, where, finding))
    found = {value.group: value for value in values}
    pair = tuple(name for name in names if name in found)
    if len(found) < len(values) or not pair:
        return None
    sizes = audit.data.get("groups", {}).get(finding.grouping, {})
    return GroupValues(
        metric=result.spec.known_metrics()[where[-1]],
        values=tuple(sorted(values, key=lambda value: (-(value.value or 0.0), value.group))),
        pair=pair,
        largest=max(found, key=lambda name: (sizes.get(name, 0), name)),
        reference=next((gap.reference for gap in _gaps(result, where, "reference")), None),
        overall=_overall(result, where, found),
        compared=tuple(value.group for value in values if value.status == OK),
        of_people=audit.config.data.get("weight") is None and where[2] != STANDARDISED,
    )


def _values(result: Result, where: _Place, finding: Finding) -> Iterator[Value]:
    """Yield the values of a comparison's named groups, with the coordinates of a finding."""
    for value in result.tables.get("values", ()):
        if not isinstance(value, Value) or value.value is None or value.group in UNNAMED:
            continue
        if _place(value) == where and _same_coordinates(value, finding):
            yield value


def _gaps(result: Result, where: _Place, against: Against) -> Iterator[Gap]:
    """Yield the gaps of a comparison to a reference group or to all people."""
    gaps = (gap for gap in result.tables.get("gaps", ()) if isinstance(gap, Gap))
    return (gap for gap in gaps if gap.against == against and _place(gap) == where)


def _overall(result: Result, where: _Place, values: Mapping[str, Value]) -> float | None:
    """Return the value of all people, computed from a group's value and gap, or None."""
    for gap in _gaps(result, where, "overall"):
        value = values.get(gap.group or "")
        if gap.kind == "difference" and gap.value is not None and value is not None and value.value is not None:
            return value.value - gap.value
    return None


def _place(record: Value | Gap) -> _Place:
    return record.model, record.grouping, record.stratum, record.metric


def _same_coordinates(value: Value, finding: Finding) -> bool:
    own = coordinates_of(value)
    return all(own[name] == finding.coordinates[name] for name in own.keys() & finding.coordinates.keys())


def _is_faithful(share: float, counted: int, of: int) -> bool:
    """Return whether a rounded count of 0 or of all people stands only for a share of exactly 0 or 1."""
    return (counted > 0 or share == 0) and (counted < of or share == 1)


_FEW = 100
"""The number of people below which a share is also written as a count, such as 5 of 18."""


def _counted(value: Value, wording: PageWording) -> str | None:
    """Return a share of few people as "5 of 18", or None for many people and other shares."""
    people = (value.value or 0.0) * value.n
    if value.n >= _FEW or abs(people - round(people)) > 1e-6:
        return None
    return wording.say("people_of", "answer", people=round(people), n=value.n)


def _number(value: Value, per: int | None, groups: GroupValues, wording: PageWording) -> str:
    """Return a value or a natural frequency, with the counts of people if they are few."""
    if per is None:
        return show(value.value, groups.style())
    number = f"{round((value.value or 0.0) * per):,}"
    people = _counted(value, wording) if groups.of_people else None
    return number if people is None else f"{number} ({people})"


def told_values(
    groups: GroupValues, wording: PageWording, shown: Sequence[Value] | None = None, *, counted: bool = True
) -> str:
    """Return the groups' values as a list: "Black 28, White 8 (the largest group), Asian 4", or as percentages."""
    per = groups.per() if counted else None
    chosen = groups.named if shown is None else shown
    colon = ":" if any(value.group[-1:].isdigit() for value in chosen) else ""
    parts = []
    for value in chosen:
        is_aside = value.group == groups.largest and value.group not in groups.pair
        words = {"group": f"{wording.label(value.group)}{colon}", "value": _number(value, per, groups, wording)}
        parts.append(wording.say("largest_group" if is_aside else "group_value", "answer", **words))
    return ", ".join(parts)


def lead_of(audit: Audit, finding: Finding, groups: GroupValues, wording: PageWording) -> str:
    """Return the introduction of a list of values: "Of 100 households in each group, xgboost flags"."""
    per = groups.per()
    clause = finding.headline.args.get("clause")
    said = clause.args if isinstance(clause, Message) else finding.headline.args
    title = groups.metric.title_in_sentence
    model = speaker_of(audit, finding.model or "")
    outcomes = {name: _outcome(audit, name, wording) for name in ("positive", "negative")}
    arguments = {"people": None, **said, **outcomes, "title": title, "model": model, "per": f"{per or 0:,}"}
    place = arguments["place"] = _place_of(arguments.get("place"), finding)
    own = _share_sentence(finding, arguments)
    if per is not None and own is not None:
        return wording.message(own)
    key = ("values_of" if per is None else "shares_of") + ("_model" if finding.model else "")
    return wording.say(key, "answer", title=title, place=place, model=model, per=per)


def _place_of(place: Argument, finding: Finding) -> Argument:
    """Return the clause on the compared groups; if standardised, "by sex, with the same mix of grade"."""
    if isinstance(place, Message) and place.id == "core.standardised":
        return say_answer("answer_place_standardised", **place.args)
    return place or say("by", grouping=finding.grouping)


def _outcome(audit: Audit, which: str, wording: PageWording) -> str:
    """Return the definition of an outcome in brackets: " (repaid: yes)" or " (status: not default)"."""
    data = audit.config.data
    column, positive = data.get("outcome"), data.get("positive")
    if column is None or data.get("outcome_kind") == "number":
        return ""
    names = audit.config.report.names
    key = f"outcome_{which}" if positive is None else f"outcome_{which}_value"
    return wording.say(key, "answer", outcome=names.get(column, column), value=str(positive))


def speaker_of(audit: Audit, model: str) -> Argument:
    """Return the name of a model within sentences."""
    predictions = audit.config.data.get("predictions", {})
    verb = predictions.get(model, {}).get("selected_word", "selects")
    return speaker(model, verb, alone=len(predictions) == 1)


def _share_sentence(finding: Finding, arguments: Mapping[str, Argument]) -> Message | None:
    """Return the audit's own sentence on a share, or None."""
    from evenhand.audits import REGISTRY

    catalogue = REGISTRY[finding.audit].messages if finding.audit in REGISTRY else None
    name = f"share_{finding.metric}"
    return catalogue(name, **arguments) if catalogue is not None and name in catalogue else None
