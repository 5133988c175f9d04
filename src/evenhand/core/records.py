"""The records that all audits share: a metric's value in one group, and the gap between two places.

Every audit has the tables `values` and `gaps` with these columns in this order; its own coordinates follow them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Literal, Protocol

Kind = Literal["difference", "ratio"]
Against = Literal["worst_pair", "reference", "overall", "status_quo", "model", "stakeholder"]

OVERALL = "(overall)"
"""Stands for everybody where a number is not of one group."""

STANDARDISED = "(standardised)"
"""Stands for the mean over strata, where groups are compared within a factor."""


def column(meaning: str, default: Any = MISSING) -> Any:
    """Declare a column of a record, with what it holds; the reference of `results.json` is generated from that."""
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row of a table: flat, frozen, plain values that JSON can hold."""

    individual: ClassVar[bool] = False
    """Whether a row is about one person; such tables are published only with `individuals = true`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a dictionary, columns in order."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @classmethod
    def columns(cls) -> dict[str, str]:
        """Return the columns and what they hold, in order."""
        return {item.name: str(item.metadata.get("meaning", "")) for item in fields(cls)}


def written_tables(tables: Mapping[str, Iterable[Record]]) -> dict[str, list[dict[str, Any]]]:
    """Return tables of records as they stand in `results.json`."""
    return {name: [record.to_dict() for record in records] for name, records in tables.items()}


def read_tables(
    written: Mapping[str, Iterable[Mapping[str, Any]]], kinds: Mapping[str, type[Record]]
) -> dict[str, tuple[Any, ...]]:
    """Return the tables of records that stand in `results.json`, of the kinds that go by their names."""
    return {name: tuple(kinds[name](**record) for record in records) for name, records in written.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value(Record):
    """A metric in one group."""

    model: str | None = column("the model, where there is one", None)
    grouping: str | None = column("the grouping; null for everybody", None)
    group: str = column("the group; '(overall)' for everybody", OVERALL)
    stratum: str | None = column("the stratum of a legitimate factor; null for all people", None)
    metric: str = column("the metric")
    n: int = column("the people (or answers) behind the number")
    value: float | None = column("the value; null where it is undefined")
    low: float | None = column("lower limit of the interval of this number", None)
    high: float | None = column("upper limit of the interval of this number", None)
    joint_low: float | None = column("lower limit that holds for all numbers of the family together", None)
    joint_high: float | None = column("upper limit that holds for all numbers of the family together", None)
    status: str = column("'ok', or why there is no value, interval or comparison", "ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap(Record):
    """A metric in two places: group minus, or over, reference.

    In the worst pair of a difference the group has the higher value; in that of a ratio the lower one, so that the
    ratio is at most 1, as in the four-fifths rule.
    """

    signed: ClassVar[bool] = False
    """Whether a threshold limits the gap with its sign, rather than its distance from equality."""

    model: str | None = column("the model, where there is one", None)
    model_reference: str | None = column("the model it is compared with; null unless models are compared", None)
    grouping: str | None = column("the grouping", None)
    group: str | None = column("the group that is compared; null where no two can be", None)
    reference: str | None = column("the group it is compared with; '(overall)' for everybody", None)
    stratum: str | None = column("the stratum of a legitimate factor; null for all people", None)
    metric: str = column("the metric")
    kind: Kind = column("'difference' or 'ratio'")
    against: Against = column("what the group is compared with: the worst pair, the reference, everybody, a model")
    n: int = column("the people (or answers) behind the number")
    value: float | None = column("group minus, or over, reference; null where it is undefined")
    low: float | None = column("lower limit of the interval of this number", None)
    high: float | None = column("upper limit of the interval of this number", None)
    joint_low: float | None = column("lower limit that holds for all numbers of the family together", None)
    joint_high: float | None = column("upper limit that holds for all numbers of the family together", None)
    p_value: float | None = column("p-value of equality, of this comparison alone", None)
    p_adjusted: float | None = column("p-value adjusted for all tables of gaps of the run (false discovery rate)", None)
    worse_off: str | None = column("the group that is worse off, where the adjusted p-value leaves no doubt", None)
    status: str = column("'ok', or why there is no value, interval or comparison", "ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut(Record):
    """Something that was left out, and why."""

    model: str | None = column("the model it concerns; null for all", None)
    grouping: str | None = column("the grouping", None)
    group: str | None = column("the group", None)
    n: int = column("how many people or rows")
    reason: str = column("why")


class _WithLimits(Protocol):
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def joint_low(self) -> float | None: ...
    @property
    def joint_high(self) -> float | None: ...


def limits_to_judge(record: _WithLimits) -> tuple[float | None, float | None]:
    """Return the limits that a verdict rests on: joint ones where there are any; "meets" rests on a number's own."""
    if getattr(record, "verdict", None) == "meets":
        return record.low, record.high
    if record.joint_low is not None or record.joint_high is not None:
        return record.joint_low, record.joint_high
    return record.low, record.high


def open_range(record: Record) -> tuple[float, float] | None:
    """Return the smallest and largest value that the data allow, whatever their number; None where it is known."""
    lower, upper = getattr(record, "lower", None), getattr(record, "upper", None)
    return None if lower is None or upper is None or upper - lower <= 1e-9 else (lower, upper)


def coordinates_of(record: Value | Gap) -> dict[str, Any]:
    """Return what an audit adds to the common columns, without the nulls."""
    common = {item.name for item in fields(Gap if isinstance(record, Gap) else Value)}
    own = (item.name for item in fields(record) if item.name not in common)
    return {name: value for name in own if (value := getattr(record, name)) is not None}
