"""Changes between two audits: matching their records, and estimating each difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from evenhand.core.findings import Finding, interval_message
from evenhand.core.metrics import Metric
from evenhand.core.records import Gap, Kind, Record, column, coordinates_of
from evenhand.core.result import Result
from evenhand.core.thresholds import size_of_gap
from evenhand.evidence.messages import say
from evenhand.evidence.pairing import Numbered, Pairing, change_between
from evenhand.messages import Argument, Message
from evenhand.messages.formats import Format, show_p
from evenhand.messages.shared import say as shared
from evenhand.run.audit import Audit
from evenhand.stats.multiplicity import adjusted_p

Direction = Literal["worse", "better", "changed", "unclear"]

Key: TypeAlias = tuple[Any, ...]

_COORDINATES = ("model", "model_reference", "grouping", "stratum", "metric", "kind", "against")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Record):
    """A number in two audits, with its change."""

    number: str | None = column("the finding's number in the report of the new audit, such as F1", None)
    old_number: str | None = column("its number in the report of the old audit", None)
    audit: str = column("the audit")
    model: str | None = column("the model", None)
    model_reference: str | None = column("the model it is compared with; null unless models are compared", None)
    grouping: str | None = column("the grouping", None)
    group: str | None = column("the group; of a worst pair, that of the new audit", None)
    reference: str | None = column("the group it is compared with; of a worst pair, that of the new audit", None)
    old_group: str | None = column("of a worst pair: the group of the old audit", None)
    old_reference: str | None = column("of a worst pair: what that was compared with", None)
    stratum: str | None = column("the stratum", None)
    metric: str = column("the metric")
    kind: str | None = column("of a gap: difference or ratio", None)
    against: str | None = column("of a gap: what the group is compared with", None)
    coordinates: str = column("the audit's own coordinates, in words", "")
    title: str = column("the metric in words", "")
    unit: str = column("the unit of the metric", "index")
    old: float | None = column("its size in the old audit; of a gap, without its direction")
    new: float | None = column("its size in the new audit")
    change: float | None = column("new minus old; null where one of them is undefined")
    low: float | None = column("lower limit of the change", None)
    high: float | None = column("upper limit of the change", None)
    p_value: float | None = column("p-value of no change, of this number alone", None)
    p_adjusted: float | None = column(
        "p-value adjusted (Holm) for all findings compared, of other gaps for all those", None
    )
    old_verdict: str | None = column("the verdict of the old audit, where a threshold was set", None)
    new_verdict: str | None = column("the verdict of the new audit", None)
    direction: Direction = column(
        "worse or better where that is beyond chance; changed where it is neither; else unclear", "unclear"
    )

    @property
    def same_pair(self) -> bool:
        """Whether both audits report the number for the same groups."""
        return (self.old_group, self.old_reference) == (self.group, self.reference)

    @property
    def named_metric(self) -> Metric:
        """The metric, with only its name, title and unit."""
        return Metric(name=self.metric, title=self.title or self.metric, unit=self.unit)  # type: ignore[arg-type]

    @property
    def style(self) -> Format:
        """The number format of its sizes."""
        return self.named_metric.style(next((kind for kind in get_args(Kind) if kind == self.kind), None))

    @property
    def signed_style(self) -> Format:
        """The number format of its change."""
        signed: dict[Format, Format] = {"points": "signed_points", "number": "signed"}
        return signed.get(self.style, self.style)

    def message(self) -> Message:
        """Return the change as a sentence, with both pairs of groups if the worst pair changed."""
        pair, then, now = self._pairs()
        words: dict[str, Argument] = {
            "where": self._where(),
            "title": self.named_metric.title_in_sentence,
            "pair": pair,
            "old": self._size(self.old, then),
            "new": self._size(self.new, now),
        }
        if self.change is None:
            return say("change_undefined", **words)
        words |= {"change": _amount(self.change, self.signed_style), "sure": say(f"sure_{self.direction}")}
        bounded = self.low is not None or self.high is not None
        words["interval"] = interval_message(self.low, self.high, self.style) if bounded else say("no_limits")
        if self.p_adjusted is None:
            return say("change", **words)
        return say("change_tested", p=show_p(self.p_adjusted), **words)

    def _size(self, size: float | None, pair: tuple[str, str] | None) -> Message:
        amount = say("undefined_size") if size is None else _amount(size, self.style)
        return amount if pair is None else say("size_of_pair", size=amount, group=pair[0], reference=pair[1])

    def _where(self) -> Message:
        """Return the model, strata and grouping concerned, for the beginning of a sentence."""
        number = [say("given_name", name=self.number)] if self.number else []
        model, named = None, [say("given_name", name=part) for part in (self.coordinates, self.stratum) if part]
        if self.model is not None:
            other = self.model_reference
            compared = say("models_compared", model=self.model, reference=other) if other else None
            model = compared or say("given_name", name=self.model)
        by = [shared("by", grouping=self.grouping)] if self.grouping else []
        if model is not None:
            return say("places", parts=(*number, model, *named, *by))
        parts = (*number, *named, *by)
        return say("places_first", place=say("places", parts=parts)) if parts else say("of_everybody")

    def _pairs(self) -> tuple[Message | None, tuple[str, str] | None, tuple[str, str] | None]:
        """Return the kind of gap with its groups, and the old and new groups if they differ."""
        if self.kind is None:
            return None, None, None
        kind = say(f"kind_{self.kind}")
        if self.group is None or self.reference is None or self.group == self.reference:
            return say("pair_of_kind", kind=kind), None, None
        if self.same_pair:
            return say("pair", kind=kind, group=self.group, reference=self.reference), None, None
        then = str(self.old_group), str(self.old_reference)
        return say("pair_of_kind", kind=kind), then, (self.group, self.reference)


def _amount(size: float, style: Format) -> Message:
    """Return a number with its unit as a message."""
    if style == "signed_points":
        return say("signed_points", value=size)
    return shared("amount_points" if style == "points" else "amount", value=size, unit=style)


# Records of the same thing ---------------------------------------------------------------------------------------


def _key(result: Result, record: Numbered) -> Key:
    """Return a record's key for matching audits; the groups of a worst pair are not part of it."""
    sides = ("group", "reference") if getattr(record, "against", None) != "worst_pair" else ()
    coordinates = tuple(getattr(record, name, None) for name in (*_COORDINATES, *sides))
    return *coordinates, *sorted((name, str(value)) for name, value in _coordinates(result, record).items())


def _own_coordinates(record: Numbered) -> Mapping[str, Any]:
    return record.coordinates if isinstance(record, Finding) else coordinates_of(record)


def _coordinates(result: Result, record: Numbered) -> dict[str, Any]:
    """Return a number's coordinates, without those determined by the data."""
    observed = result.found_places if getattr(record, "against", None) == "worst_pair" else ()
    return {
        name: value
        for name, value in _own_coordinates(record).items()
        if name in result.places and name not in observed
    }


def findings_by_key(audit: Audit, name: str) -> dict[Key, Finding]:
    """Return the findings of one section by key, with their numbers in the report."""
    result = audit.results[name]
    numbered: dict[Key, Finding] = {}
    for finding in audit.findings:
        if finding.audit == name:
            numbered.setdefault((*_key(result, finding), finding.limit), finding)
    keys = ((*_key(result, finding), finding.limit) for finding in result.findings)
    return {key: numbered[key] for key in keys}


def gaps_by_key(audit: Audit, name: str) -> dict[Key, Gap]:
    """Return the gaps of one section by key."""
    result = audit.results[name]
    return {_key(result, gap): gap for gap in result.tables.get("gaps", ()) if isinstance(gap, Gap)}


def changes_between(
    before: Mapping[Key, Numbered],
    after: Mapping[Key, Numbered],
    *,
    result: Result,
    confidence: float,
    pairing: Pairing | None,
) -> Iterator[Change]:
    """Yield the change of every number that is in both audits.

    Parameters
    ----------
    before, after : the findings or gaps of one section in the old and in the new audit, by key.
    result : the section of the new audit.
    confidence : confidence level of the intervals.
    pairing : the people of both audits; None for independent samples.
    """
    for key, now in after.items():
        if key in before and _is_comparable(before[key], now):
            correlation = 0.0 if pairing is None else pairing.correlation(result.descriptor, before[key], now)
            yield _change(before[key], now, result=result, confidence=confidence, correlation=correlation)


def _is_comparable(old: Numbered, now: Numbered) -> bool:
    """Return whether two records are comparable: both defined, or one defined and the verdict changed."""
    defined = [record.value is not None for record in (old, now)]
    return all(defined) or (any(defined) and getattr(old, "verdict", None) != getattr(now, "verdict", None))


def _change(old: Numbered, now: Numbered, *, result: Result, confidence: float, correlation: float | None) -> Change:
    kind, against, metric = getattr(now, "kind", None), getattr(now, "against", None), result.metrics[now.metric]
    sized = None if against in _WITH_SIGN else kind
    numbers = [(record.value, record.low, record.high) for record in (old, now)]
    ranges = [_range(record) for record in (old, now)]
    sizes = [size_of_gap(sized, *number)[0] for number in numbers]
    change, low, high, p_value = change_between(sized, numbers, ranges, confidence, correlation)
    judged = isinstance(now, Finding) and now.threshold is not None
    return Change(
        number=getattr(now, "number", None),
        old_number=getattr(old, "number", None),
        audit=result.audit,
        **{item: getattr(now, item, None) for item in _COPIED},
        old_group=getattr(old, "group", None),
        old_reference=getattr(old, "reference", None),
        metric=now.metric,
        kind=kind,
        coordinates=_describe_coordinates(result, old, now),
        title=metric.title,
        unit=metric.unit,
        old=sizes[0],
        new=sizes[1],
        change=change,
        low=low,
        high=high,
        p_value=p_value,
        old_verdict=getattr(old, "verdict", None) if judged else None,
        new_verdict=getattr(now, "verdict", None) if judged else None,
        direction=_direction(change, kind, against, metric),
    )


def _describe_coordinates(result: Result, old: Numbered, now: Numbered) -> str:
    """Return the coordinates that a number has in both audits, as text.

    A coordinate is included only if it is the same in both.
    """
    before = _own_coordinates(old)
    places = {
        name: value
        for name, value in _own_coordinates(now).items()
        if name in result.places and before.get(name) == value
    }
    return ", ".join(f"{name} {value}" for name, value in places.items())


_COPIED = ("model", "model_reference", "grouping", "group", "reference", "stratum", "against")
_WITH_SIGN = ("model", "status_quo")
"""The comparisons whose difference keeps its sign, which shows the better model."""


def _range(record: Numbered) -> tuple[float, float] | None:
    """Return the worst-case bounds of a number; None if it is point-identified."""
    lower, upper = (_own_coordinates(record).get(name) for name in ("lower", "upper"))
    return None if lower is None or upper is None else (lower, upper)


def _direction(change: float | None, kind: str | None, against: str | None, metric: Metric) -> Direction:
    """Return the direction of a change: worse is a larger difference or smaller ratio, or by the metric."""
    if not change:
        return "unclear"
    if against in _WITH_SIGN:
        return "changed"
    if kind == "difference":
        return "worse" if change > 0 else "better"
    if kind == "ratio":
        return "worse" if change < 0 else "better"
    if metric.better == "neither":
        return "changed"
    return "worse" if (change < 0) == (metric.better == "higher") else "better"


def adjusted_changes(changes: Sequence[Change], alpha: float) -> Iterator[Change]:
    """Yield changes with jointly adjusted p-values.

    Directions that are not significant become "unclear".
    """
    tested = {id(change): change.p_value for change in changes if change.p_value is not None}
    adjusted = dict(zip(tested, adjusted_p(list(tested.values())).tolist(), strict=True)) if tested else {}
    for change in changes:
        p_adjusted = adjusted.get(id(change))
        clear = p_adjusted is not None and p_adjusted <= alpha
        yield replace(change, p_adjusted=p_adjusted, direction=change.direction if clear else "unclear")


def change_key(change: Change) -> Key:
    """Return the coordinates of a change, without its groups."""
    return tuple(getattr(change, name) for name in ("audit", *_COORDINATES, "coordinates"))
