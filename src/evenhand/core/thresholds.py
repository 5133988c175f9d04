"""Thresholds for all audits: the limited quantity, the matching records, and the verdict.

A threshold with an unknown metric, model, grouping, coordinate or audit raises a `ConfigError`. A threshold with a
group, stratum or label that is missing from the data, or too small, gives insufficient evidence with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from evenhand.core.metrics import Limit, Metric, Of, Side
from evenhand.core.records import Against, Gap, Kind, Value, limits_to_judge
from evenhand.errors import ConfigError, SettingError, did_you_mean
from evenhand.messages import Message
from evenhand.messages.formats import Format
from evenhand.messages.shared import say
from evenhand.settings import Settings
from evenhand.table.labels import known_label
from evenhand.table.roles import grouping_name

Verdict = Literal["meets", "does_not_meet", "not_confirmed", "insufficient_evidence", "no_threshold"]

VERDICTS: tuple[Verdict, ...] = ("does_not_meet", "not_confirmed", "insufficient_evidence", "meets", "no_threshold")
"""The verdicts, most serious first."""

UNDECIDED: tuple[Verdict, ...] = ("not_confirmed", "insufficient_evidence")
"""The undecided verdicts: a violation not confirmed after adjustment, or an interval that contains the limit."""

COMMON = ("model", "grouping", "group", "stratum")
"""Coordinates that select a threshold's records; an audit supports some of them and may add its own."""


def _as_grouping_name(value: object) -> object:
    """Convert names such as `["race", "sex"]` to the grouping name 'race × sex'."""
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return grouping_name(value)
    return value


GroupingName = Annotated[str, BeforeValidator(_as_grouping_name)]


class Threshold(Settings):
    """A user's limit on a value or a gap, in all models and groupings or in the named ones.

    An audit with its own coordinates has a subclass with a field for each coordinate that a threshold may name.

    Examples
    --------
    >>> Threshold(metric="selection_rate", min=0.8).in_words()
    'at least 0.8'
    """

    pooled: ClassVar[tuple[str, ...]] = ("stratum",)
    """Coordinates that, if not named, select only the record of all people together."""

    audit: str | None = Field(None, description="The audit it belongs to; by default the one that knows the metric.")
    metric: str = Field(description="The metric, or a gap known by a name of its own such as 'traditional_parity'.")
    min: float | None = Field(None, description="The least value allowed; give `min` or `max`.")
    max: float | None = Field(None, description="The largest value allowed.")
    of: Of | None = Field(None, description="Whether it limits a value or a gap; by default what the metric allows.")
    kind: Kind | None = Field(None, description="Of a gap: by default a `min` limits a ratio, a `max` a difference.")
    against: Against | None = Field(None, description="Which gap is limited; by default that of the worst pair.")
    model: str | None = Field(None, description="Limit only this model.")
    grouping: GroupingName | None = Field(None, description="Limit only this grouping.")
    group: str | None = Field(None, description="Limit only this group, compared with the reference or everybody.")
    stratum: str | None = Field(None, description="Limit only this stratum; by default all people together.")

    @model_validator(mode="before")
    @classmethod
    def _of_any_audit(cls, values: object) -> object:
        """Convert a threshold of another type to this audit's type."""
        is_other = isinstance(values, Threshold) and not isinstance(values, cls)
        return values.model_dump(exclude_unset=True) if isinstance(values, Threshold) and is_other else values

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        if (self.min is None) == (self.max is None):
            raise SettingError("a threshold needs exactly one of `min` and `max`")
        if not isfinite(self.limit):
            raise SettingError("the limit of a threshold must be a finite number; got {limit}", limit=self.limit)
        return self

    @property
    def side(self) -> Side:
        """The side of the limit: 'min' or 'max'."""
        return "max" if self.min is None else "min"

    @property
    def limit(self) -> float:
        """The limit as a number."""
        return float(self.max or 0.0) if self.min is None else self.min

    def message(self, style: Format = "number") -> Message:
        """Return the limit as a message, in the unit of the limited quantity.

        Examples
        --------
        >>> limit = Threshold(metric="tpr", max=0.1)
        >>> [str(limit.message(style)) for style in ("number", "percent", "points")]
        ['at most 0.1', 'at most 10%', 'at most 10 points']
        """
        return limit_in_unit("at_least" if self.side == "min" else "at_most", self.limit, style)

    def in_words(self) -> str:
        """Return the limit in English, such as 'at least 0.8'."""
        return self.message().text

    def named(self) -> dict[str, Any]:
        """Return the coordinates named by the threshold, with their values."""
        return {name: value for name in self.coordinates() if (value := getattr(self, name)) is not None}

    @classmethod
    def own_coordinates(cls) -> tuple[str, ...]:
        """Return the coordinates that the audit adds to the common ones."""
        return tuple(name for name in cls.model_fields if name not in Threshold.model_fields)

    @classmethod
    def coordinates(cls) -> tuple[str, ...]:
        """Return the coordinates that a threshold may name, common ones first."""
        return (*COMMON, *cls.own_coordinates())


def limit_in_unit(key: str, limit: float, style: Format) -> Message:
    """Return a message on a limit in percentage points, in percent or as a plain number, without trailing zeros."""
    if style.endswith("points"):
        points = 100 * limit
        return say(f"{key}_point" if abs(points - 1.0) < 1e-9 else f"{key}_points", limit=points)
    return say(f"{key}_percent" if style == "percent" else key, limit=limit)


def is_least(limit: Message) -> bool:
    """Return whether the message on a limit is about a minimum."""
    return limit.id.startswith("core.at_least")


Alias = tuple[str, Kind, Against]
"""A named gap of the literature, as metric, kind and comparison."""


def resolve(
    threshold: Threshold,
    audit: str,
    metrics: Mapping[str, Metric],
    aliases: Mapping[str, Alias],
    coordinates: Sequence[str],
) -> Threshold:
    """Return a threshold completed with the defaults of its metric; refuse a threshold that the audit cannot have.

    Raises
    ------
    ValueError
        For the validators of specs, which convert it to a `ConfigError`.
    """
    _require_audit(threshold, audit, metrics, aliases)
    for name in threshold.named():
        if name not in (*coordinates, *threshold.own_coordinates()):
            raise SettingError("a threshold of the {audit} audit has no `{name}`; leave it out", audit=audit, name=name)
    metric, kind, against = aliases.get(threshold.metric, (threshold.metric, threshold.kind, threshold.against))
    sensible = [limit for limit in metrics[metric].limits if threshold.metric not in aliases or limit.kind == kind]
    limit = _fitting(threshold, sensible, kind, against)
    chosen = (against or limit.against[0]) if limit.of == "gap" else None
    if threshold.group is not None and chosen == "worst_pair":
        raise SettingError(
            "the threshold for {metric!r} names a `group`, but limits the worst pair; add against='reference'",
            metric=threshold.metric,
        )
    return threshold.model_copy(update={"audit": audit, "of": limit.of, "kind": limit.kind, "against": chosen})


def _fitting(threshold: Threshold, sensible: Sequence[Limit], kind: Kind | None, against: Against | None) -> Limit:
    """Return the kind of limit of a metric that a threshold sets."""
    what = f"the threshold for {threshold.metric!r}"
    if not sensible:
        raise SettingError(
            "{what} limits nothing: more or less of it is neither better nor worse; leave it out", what=what
        )
    for limit in sensible:
        if _fits(limit, threshold, kind, against):
            return limit
    choices = ", or ".join(limit.in_words() for limit in sensible)
    raise SettingError(
        "{what} must give {choices}; got {given}", what=what, choices=choices, given=_description(threshold)
    )


def _require_audit(
    threshold: Threshold, audit: str, metrics: Mapping[str, Metric], aliases: Mapping[str, Alias]
) -> None:
    if threshold.audit not in (None, audit):
        raise SettingError(
            "a threshold of the {audit} audit has `audit` {audit_2!r}; leave it out",
            audit=audit,
            audit_2=threshold.audit,
        )
    names = [*metrics, *aliases]
    if threshold.metric not in names:
        hint = did_you_mean(threshold.metric, names)
        raise SettingError(
            "`metric` {metric!r} of a threshold is not known; {hint}", metric=threshold.metric, hint=hint
        )


def _fits(limit: Limit, threshold: Threshold, kind: Kind | None, against: Against | None) -> bool:
    return (
        limit.side == threshold.side
        and threshold.of in (None, limit.of)
        and kind in (None, limit.kind)
        and (against is None or against in limit.against)
        and limit.allows(threshold.limit)
    )


def _description(threshold: Threshold) -> str:
    values = {name: getattr(threshold, name) for name in ("of", "kind", "against")}
    extra = [f"{name} {value!r}" for name, value in values.items() if value is not None]
    return " and ".join([threshold.in_words(), *extra])


def require_known(
    thresholds: Iterable[Threshold], *, groupings: Iterable[str] = (), models: Iterable[str] | None = None
) -> None:
    """Refuse a threshold that names an unknown grouping or model.

    Examples
    --------
    >>> require_known([Threshold(metric="tpr", max=0.1, grouping="rase")], groupings=["race"])
    Traceback (most recent call last):
    evenhand.errors.ConfigError: `grouping` 'rase' of a threshold is not known; did you mean 'race'?
    """
    permitted = {"grouping": list(groupings), "model": None if models is None else list(models)}
    for threshold in thresholds:
        for name, names in permitted.items():
            name_given = getattr(threshold, name)
            if name_given is not None and names is not None and name_given not in names:
                raise ConfigError(
                    "`{name}` {asked!r} of a threshold is not known; {hint}",
                    name=name,
                    asked=name_given,
                    hint=did_you_mean(name_given, names),
                )
        if threshold.of == "gap" and threshold.against in ("worst_pair", "reference") and not permitted["grouping"]:
            raise ConfigError(
                "the threshold for {metric!r} ({in_words}) limits a gap between groups, but the table names no "
                "groups; give `groups=['column', ...]`.",
                metric=threshold.metric,
                in_words=threshold.in_words(),
            )


def limits_record(threshold: Threshold, record: Value | Gap, aliases: Mapping[str, Alias]) -> bool:
    """Return whether a threshold applies to a record."""
    metric = aliases[threshold.metric][0] if threshold.metric in aliases else threshold.metric
    if record.metric != metric or (threshold.of == "gap") != isinstance(record, Gap):
        return False
    if isinstance(record, Gap) and (record.kind, record.against) != (threshold.kind, threshold.against):
        return False
    return all(_is_at(record, name, threshold) for name in threshold.coordinates())


def _is_at(record: Value | Gap, coordinate: str, threshold: Threshold) -> bool:
    """Return whether a record has a threshold's coordinate; an unnamed one matches all records or all people."""
    required = getattr(threshold, coordinate)
    if required is None and coordinate not in threshold.pooled:
        return True
    if coordinate == "group" and record.grouping is not None:
        required = known_label(record.grouping, str(required), [str(record.group)]) if required is not None else None
    return bool(getattr(record, coordinate, None) == required)


def size_of_gap(
    kind: str | None, value: float | None, low: float | None, high: float | None
) -> tuple[float | None, float | None, float | None]:
    """Return a signed gap as a distance from equality: |difference|, or a ratio, inverted if above 1.

    Examples
    --------
    >>> size_of_gap("difference", -0.3, -0.34, -0.26)
    (0.3, 0.26, 0.34)
    >>> size_of_gap("ratio", 4.0, 2.0, None)
    (0.25, 0.0, 0.5)
    """
    if value is None or kind is None:
        return value, low, high
    if low is None and high is None:
        return abs(value) if kind == "difference" else _at_most_one(value), None, None
    lowest, highest = (-inf if low is None else low), (inf if high is None else high)
    if kind == "difference":
        largest = max(abs(lowest), abs(highest))
        return abs(value), max(lowest, -highest, 0.0), largest if isfinite(largest) else None
    below = _at_most_one(lowest), _at_most_one(highest)
    return _at_most_one(value), min(below), 1.0 if lowest <= 1 <= highest else max(below)


def _at_most_one(ratio: float) -> float:
    """Return a ratio, inverted if above 1, or 0 if it is not positive."""
    return min(ratio, 1 / ratio) if ratio > 0 else 0.0


def judged_size(record: Value | Gap) -> tuple[float | None, float | None, float | None]:
    """Return the number that a threshold judges, with the limits behind "does not meet"."""
    return sized(record, *limits_to_judge(record))


def sized(
    record: Value | Gap, low: float | None, high: float | None
) -> tuple[float | None, float | None, float | None]:
    """Return the number that a threshold judges, with its limits."""
    kind = record.kind if isinstance(record, Gap) and not record.signed else None
    return size_of_gap(kind, record.value, low, high)


def judge(threshold: Threshold | None, value: float | None, low: float | None, high: float | None) -> Verdict:
    """Return the verdict on an interval: completely within the limit, completely beyond it, or undecided.

    Examples
    --------
    >>> judge(Threshold(metric="selection_rate", min=0.8), 0.7, 0.62, 0.78)
    'does_not_meet'
    >>> judge(Threshold(metric="selection_rate", min=0.8), 0.79, 0.7, 0.9)
    'insufficient_evidence'
    """
    if threshold is None:
        return "no_threshold"
    if value is None or (low is None and high is None):
        return "insufficient_evidence"
    lowest, highest = (-inf if low is None else low), (inf if high is None else high)
    if threshold.side == "min":
        within, beyond = lowest >= threshold.limit, highest < threshold.limit
    else:
        within, beyond = highest <= threshold.limit, lowest > threshold.limit
    return "meets" if within else "does_not_meet" if beyond else "insufficient_evidence"


def judge_all(threshold: Threshold | None, records: Sequence[Value | Gap]) -> tuple[Value | Gap, Verdict]:
    """Return the joint verdict on several records, and the record that decides it.

    The limit is violated if one record lies beyond it. Because any record can be this one, the joint limits decide.
    The limit is met if every record meets it by its own limits, because this verdict is wrong only if it misses the
    one record that violates the limit (Berger 1982). The returned record is the one with the largest violation, or
    else the first.
    """
    if threshold is None:
        return records[0], "no_threshold"
    verdicts = [_judge_one(threshold, record) for record in records]
    if "does_not_meet" in verdicts:
        broken = [record for record, verdict in zip(records, verdicts, strict=True) if verdict == "does_not_meet"]
        return max(broken, key=lambda record: _excess(threshold, record)), "does_not_meet"
    return records[0], "meets" if all(verdict == "meets" for verdict in verdicts) else "insufficient_evidence"


def _judge_one(threshold: Threshold, record: Value | Gap) -> Verdict:
    """Return "meets" by a record's own limits, or "does not meet" by the limits of its family."""
    if judge(threshold, *sized(record, record.low, record.high)) == "meets":
        return "meets"
    together = judge(threshold, *judged_size(record))
    return "insufficient_evidence" if together == "meets" else together


def _excess(threshold: Threshold, record: Value | Gap) -> float:
    """Return the distance by which the nearer end of an interval lies beyond the limit."""
    _, low, high = judged_size(record)
    if threshold.side == "min":
        return threshold.limit - (inf if high is None else high)
    return (-inf if low is None else low) - threshold.limit
