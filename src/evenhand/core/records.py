"""The records of all audits: a metric's value in one group, and the gap between two groups.

Every audit has the tables `values` and `gaps` with these columns in this order, followed by its own coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar

from evenhand.messages import Message
from evenhand.messages.shared import say

Kind = Literal["difference", "ratio"]
Against = Literal["worst_pair", "reference", "overall", "status_quo", "model", "stakeholder"]

OVERALL = "(overall)"
"""The group label of values of all people."""

STANDARDISED = "(standardised)"
"""The stratum label of a mean over strata, if groups are compared within a factor."""


OK = say("ok")
"""The status of a record without a missing number, interval or comparison."""

Reveals = Literal["name", "count", "share", "number", "safe", "undeclared"]
"""What a column reveals about the number of people: see `column`."""


def column(meaning: str, default: Any = MISSING, *, reveals: Reveals = "undeclared", of: str = "n") -> Any:
    """Declare a column of a record and its meaning, from which the reference of `results.json` is generated.

    Parameters
    ----------
    meaning : the description of the column.
    default : the default value, if there is one.
    reveals : what the column reveals about the number of people. If small counts are hidden (`suppress_below`), a
        `name` (a coordinate or a label) and `safe` values (which imply no count) are published. A small `count` of
        people withholds everything counted with it. A `share` of counted people is treated as a count, too. Any other
        `number` computed from the counted people, such as a mean, a limit or a p-value, is published if no count is
        small. An undeclared column is always withheld.
    of : the column with the total of a share or count; '' if there is no total.
    """
    return field(default=default, metadata={"meaning": meaning, "reveals": reveals, "of": of})


class Declaration(NamedTuple):
    """The declaration of a column: what it reveals, the column of its total, and whether it may be null."""

    reveals: Reveals
    of: str
    nullable: bool


def declarations(record: type[Record]) -> Mapping[str, Declaration]:
    """Return the declarations of a record's columns, by name.

    Examples
    --------
    >>> declarations(Value)["n"]
    Declaration(reveals='count', of='n', nullable=False)
    """
    return _declarations(record)  # type: ignore[arg-type]  # a class can be hashed


@cache
def _declarations(record: type[Record]) -> Mapping[str, Declaration]:
    return {
        item.name: Declaration(
            item.metadata.get("reveals", "undeclared"), item.metadata.get("of", "n"), "None" in str(item.type)
        )
        for item in fields(record)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row of a table: flat and immutable, with plain values for JSON."""

    individual: ClassVar[bool] = False
    """Whether each row is about one person; such tables are published only with `individuals = true`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a dictionary, columns in order."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value.to_dict() if isinstance(value, Message) else value for name, value in values.items()}

    @property
    def is_ok(self) -> bool:
        """Whether no value, interval or comparison is missing; otherwise `status` explains what is missing and why."""
        return bool(getattr(self, "status", OK) == OK)

    @classmethod
    def columns(cls) -> dict[str, str]:
        """Return the columns with their descriptions, in order."""
        return {item.name: str(item.metadata.get("meaning", "")) for item in fields(cls)}

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> Self:
        """Return the record written by `to_dict`."""
        messages = _message_columns(cls)  # type: ignore[arg-type]  # a class can be hashed
        return cls(
            **{
                name: Message.from_dict(value) if name in messages and value is not None else value
                for name, value in written.items()
            }
        )


@cache
def _message_columns(record: type[Record]) -> frozenset[str]:
    """Return the columns of a record that contain messages."""
    return frozenset(item.name for item in fields(record) if "Message" in str(item.type))


def written_tables(tables: Mapping[str, Iterable[Record]]) -> dict[str, list[dict[str, Any]]]:
    """Return tables of records in the form of `results.json`."""
    return {name: [record.to_dict() for record in records] for name, records in tables.items()}


def read_tables(
    written: Mapping[str, Iterable[Mapping[str, Any]]], kinds: Mapping[str, type[Record]]
) -> dict[str, tuple[Any, ...]]:
    """Read the tables of records in `results.json`; `kinds` are their record types by name."""
    return {name: tuple(map(kinds[name].from_dict, records)) for name, records in written.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value(Record):
    """A metric in one group."""

    model: str | None = column("the model, where there is one", None, reveals="name")
    grouping: str | None = column("the grouping; null for everybody", None, reveals="name")
    group: str = column("the group; '(overall)' for everybody", OVERALL, reveals="name")
    stratum: str | None = column("the stratum of a legitimate factor; null for all people", None, reveals="name")
    metric: str = column("the metric", reveals="name")
    n: int = column("the people (or answers) behind the number", reveals="count")
    value: float | None = column("the value; null where it is undefined", reveals="share")
    low: float | None = column("lower limit of the interval of this number", None, reveals="number")
    high: float | None = column("upper limit of the interval of this number", None, reveals="number")
    joint_low: float | None = column(
        "lower limit that holds for all numbers of the family together", None, reveals="number"
    )
    joint_high: float | None = column(
        "upper limit that holds for all numbers of the family together", None, reveals="number"
    )
    status: Message = column("'ok', or why there is no value, interval or comparison", OK, reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap(Record):
    """The gap of a metric between two groups: group minus, or over, reference.

    In the worst pair of a difference, the group has the higher value. In the worst pair of a ratio, it has the lower
    value, so that the ratio is at most 1, as in the four-fifths rule.
    """

    signed: ClassVar[bool] = False
    """Whether a threshold limits the signed gap, not its distance from equality."""

    model: str | None = column("the model, where there is one", None, reveals="name")
    model_reference: str | None = column(
        "the model it is compared with; null unless models are compared", None, reveals="name"
    )
    grouping: str | None = column("the grouping", None, reveals="name")
    group: str | None = column("the group that is compared; null where no two can be", None, reveals="name")
    reference: str | None = column("the group it is compared with; '(overall)' for everybody", None, reveals="name")
    stratum: str | None = column("the stratum of a legitimate factor; null for all people", None, reveals="name")
    metric: str = column("the metric", reveals="name")
    kind: Kind = column("'difference' or 'ratio'", reveals="name")
    against: Against = column(
        "what the group is compared with: the worst pair, the reference, everybody, a model", reveals="name"
    )
    n: int = column("the people (or answers) behind the number", reveals="count")
    value: float | None = column("group minus, or over, reference; null where it is undefined", reveals="number")
    low: float | None = column("lower limit of the interval of this number", None, reveals="number")
    high: float | None = column("upper limit of the interval of this number", None, reveals="number")
    joint_low: float | None = column(
        "lower limit that holds for all numbers of the family together", None, reveals="number"
    )
    joint_high: float | None = column(
        "upper limit that holds for all numbers of the family together", None, reveals="number"
    )
    p_value: float | None = column("p-value of equality, of this comparison alone", None, reveals="number")
    p_adjusted: float | None = column(
        "adjusted p-value: of a gap that a finding states, that of the finding (Holm); of any other, for all tables of "
        "gaps of the run (false discovery rate)",
        None,
        reveals="number",
    )
    worse_off: str | None = column(
        "the group that is worse off, where the finding or the adjusted p-value leaves no doubt", None, reveals="name"
    )
    status: Message = column("'ok', or why there is no value, interval or comparison", OK, reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut(Record):
    """People or rows that were left out, with the reason."""

    model: str | None = column("the model it concerns; null for all", None, reveals="name")
    grouping: str | None = column("the grouping", None, reveals="name")
    group: str | None = column("the group", None, reveals="name")
    n: int = column("how many people or rows", reveals="count")
    reason: Message = column("why", reveals="name")


R = TypeVar("R", bound=Record)


def matching(records: Iterable[R], **where: object) -> tuple[R, ...]:
    """Return the records with the wanted values in their columns."""
    return tuple(record for record in records if all(getattr(record, name) == value for name, value in where.items()))


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
    """Return the limits behind a verdict.

    For "meets", these are one-sided limits or else the record's own limits. For all other verdicts, these are the
    joint limits if known.
    """
    if getattr(record, "verdict", None) == "meets":
        bounds = getattr(record, "bound_low", None), getattr(record, "bound_high", None)
        return (record.low, record.high) if bounds == (None, None) else bounds
    if record.joint_low is not None or record.joint_high is not None:
        return record.joint_low, record.joint_high
    return record.low, record.high


def open_range(record: Record) -> tuple[float, float] | None:
    """Return the smallest and largest value that the data allow, or None if the value is known."""
    lower, upper = getattr(record, "lower", None), getattr(record, "upper", None)
    return None if lower is None or upper is None or upper - lower <= 1e-9 else (lower, upper)


def coordinates_of(record: Value | Gap) -> dict[str, Any]:
    """Return the columns that an audit adds to the common ones, without nulls."""
    common = {item.name for item in fields(Gap if isinstance(record, Gap) else Value)}
    names = (item.name for item in fields(record) if item.name not in common)
    return {name: value for name in names if (value := getattr(record, name)) is not None}
