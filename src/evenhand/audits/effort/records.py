"""The records of the effort audit: flat, frozen, JSON-safe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndividualRecord:
    """Effort-aware individual fairness of one model at one weight; `error` is how far the number itself may be off."""

    model: str
    weight: float
    n: int
    pairs: int
    violated: float | None
    stderr: float | None
    method: str
    error: float
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class DifferenceRecord:
    """How much fairer model_a is than model_b for the same people."""

    model_a: str
    model_b: str
    weight: float
    n: int
    stderr: float | None
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class BinRecord:
    """Parity of mean scores among people of similar effort: smallest group mean over largest.

    Traditional parity, which knows no effort, is the record whose `bin_low` and `bin_high` are null. `low` and `high`
    hold for this bin (and all pairs of its groups), `all_low` and `all_high` for all bins of the grouping together.
    """

    model: str
    grouping: str
    bin_low: float | None
    bin_high: float | None
    n: int
    groups: int
    group_high: str | None
    group_low: str | None
    value: float | None
    low: float | None
    high: float | None
    all_low: float | None
    all_high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class BinGroupRecord:
    """A group's mean score among people of similar effort."""

    model: str
    grouping: str
    bin_low: float | None
    group: str
    n: int
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class PersonRecord:
    """A person whose pairs are least fair, to their loss or gain: `value` is the mean fairness of those pairs."""

    model: str
    weight: float
    id: str
    score: float
    effort: float
    aggregate: float
    value: float


@dataclass(frozen=True, slots=True)
class PairRecord:
    """One of the least fair pairs: their scores differ by `value` more than effort and aggregate do."""

    model: str
    weight: float
    id_a: str
    id_b: str
    score_a: float
    score_b: float
    distance: float
    value: float


@dataclass(frozen=True, slots=True)
class CurveRecord:
    """Individual fairness of one model at a weight between 0 and 1; `error` is how far the number may be off."""

    model: str
    weight: float
    method: str
    error: float
    value: float | None


@dataclass(frozen=True, slots=True)
class SpreadRecord:
    """How many people of a group have an effort in this range; `value` is their share of the group."""

    grouping: str
    group: str
    effort_low: float
    effort_high: float
    n: int
    value: float


@dataclass(frozen=True, slots=True)
class PathRecord:
    """One step of the trajectory of a person who is in one of the least fair pairs."""

    id: str
    step: str
    time: float
    value: float
