"""The records and the result of the effort audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from evenhand.audits.effort import AUDIT
from evenhand.audits.effort.choices import ChoiceName
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.records import Gap, Record, Reveals, Value, column
from evenhand.core.result import Result
from evenhand.messages import Message
from evenhand.stats.effort import TrajectoryMeasure

Ranked = Literal["eaif", "eagf"]
"""The metrics computed under other choices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffortValue(Value):
    """Individual fairness of a model at one weight, reversed pairs, or a group's mean score in an effort bin.

    A mean score over all efforts has a null bin.
    """

    weight: float | None = column("of eaif: the weight of effort against the aggregate", None, reveals="safe")
    bin_low: float | None = column(
        "of mean_score: lower edge of the effort bin; null for all efforts", None, reveals="safe"
    )
    bin_high: float | None = column("of mean_score: upper edge of the effort bin", None, reveals="safe")
    pairs: int | None = column(
        "the pairs of people compared; of reversed_pairs and the like: the comparable ones",
        None,
        reveals="count",
        of="",
    )
    violated: float | None = column(
        "of eaif: the share of pairs scored more differently than their distance", None, reveals="share", of="pairs"
    )
    stderr: float | None = column("of eaif and of reversed_pairs and the like: standard error", None, reveals="number")
    method: Literal["strips", "blocks", "grid", "sampled", "enumerated", "counted"] | None = column(
        "how pairs were compared", None, reveals="name"
    )
    spread: float | None = column(
        "of eaif: the mean absolute difference between the scores of two people", None, reveals="number"
    )
    at_least_spread: float | None = column(
        "of eaif: the value of the same scores, shrunk to the smallest spread of all models", None, reveals="number"
    )
    rates_share: float | None = column(
        "of eaif: the share of the interval's variance that comes from uncertain rates of inertia", None, reveals="safe"
    )
    error: float | None = column(
        "of eaif: how far the number itself may be off; 0 where it is exact", None, reveals="safe"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EffortGap(Gap):
    """A difference of two models (`eaif`), a ratio of two groups, or a gap in `reversed_pairs`.

    Two models are compared at equal spread of their scores: the larger spread is shrunk to the smaller one. The ratio
    compares the two groups with the largest difference at equal effort (`equal_effort`), or is the parity of one
    effort bin (`eagf`). The gap in `reversed_pairs` is the difference between the shares of reversed pairs in which
    one group or the other came further. Traditional parity, which ignores effort, is the `eagf` with a null bin. Joint
    limits are simultaneous over all pairs of models at the same weight, or over all bins of the grouping.
    """

    model: str = column("the model", reveals="name")
    weight: float | None = column("of eaif: the weight of effort against the aggregate", None, reveals="safe")
    bin_low: float | None = column("of eagf: lower edge of the effort bin; null for all efforts", None, reveals="safe")
    bin_high: float | None = column("of eagf: upper edge of the effort bin", None, reveals="safe")
    rates_share: float | None = column(
        "the share of the interval's variance that comes from uncertain rates of inertia", None, reveals="safe"
    )
    groups: int | None = column("of eagf: the groups large enough to be compared", None, reveals="safe")
    apart: int | None = column(
        "of equal_effort: the people of both groups who are not among n, since nobody of the other one has similar "
        "effort",
        None,
        reveals="count",
    )
    n_group: int | None = column("of equal_effort: the people of `group` among n", None, reveals="count")
    stderr: float | None = column("of eaif: standard error", None, reveals="number")
    spread: float | None = column(
        "of eaif: the mean absolute difference between two people's scores at which both models are compared",
        None,
        reveals="number",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveRecord(Record):
    """Individual fairness of one model at a weight between 0 and 1."""

    model: str = column("the model", reveals="name")
    weight: float = column("the weight of effort against the aggregate", reveals="safe")
    method: Literal["exact", "grid"] = column("'exact', or 'grid' above 20,000 different people", reveals="name")
    error: float = column("how far the number may be off", reveals="safe")
    value: float = column("individual fairness", reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadRecord(Record):
    """The number of a group's people with effort in a range."""

    grouping: str = column("the grouping", reveals="name")
    group: str = column("the group", reveals="name")
    effort_low: float = column("lower end of the range", reveals="safe")
    effort_high: float = column("upper end of the range", reveals="safe")
    n: int = column("the people in the range", reveals="count")
    value: float = column("their share of the group", reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRecord(Record):
    """A person with the least fair pairs, to their loss or gain."""

    individual: ClassVar[bool] = True

    model: str = column("the model", reveals="name")
    weight: float = column("the weight of effort against the aggregate", reveals="safe")
    id: str = column("the person", reveals="name")
    score: float = column("their score")
    effort: float = column("their effort")
    aggregate: float = column("their aggregate")
    value: float = column("the mean fairness of their pairs")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRecord(Record):
    """One of the least fair pairs."""

    individual: ClassVar[bool] = True

    model: str = column("the model", reveals="name")
    weight: float = column("the weight of effort against the aggregate", reveals="safe")
    id_a: str = column("one person", reveals="name")
    id_b: str = column("the other", reveals="name")
    score_a: float = column("the score of the one")
    score_b: float = column("the score of the other")
    distance: float = column("their distance in effort and aggregate")
    value: float = column("by how much more than that their scores differ")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryRecord(Record):
    """One step in the trajectory of a person in one of the least fair pairs."""

    individual: ClassVar[bool] = True

    id: str = column("the person", reveals="name")
    step: str = column("the time step", reveals="name")
    time: float = column("its time stamp", reveals="safe")
    value: float = column("the feature")


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionRecord(Record):
    """Pairs in which one person came further, with the shares scored worse, equally and better."""

    model: str = column("the model", reveals="name")
    grouping: str | None = column("the grouping; null for all people", reveals="name")
    group: str = column("the group of the person who came further; '(overall)' for everybody", reveals="name")
    reference: str = column("the group of the other", reveals="name")
    n: int = column("the people who can be in such a pair", reveals="count")
    pairs: int = column("the comparable pairs; by weight where people have weights", reveals="count", of="")
    value: float | None = column("the share of them that is reversed", reveals="share", of="pairs")
    low: float | None = column("lower limit of it", reveals="number")
    high: float | None = column("upper limit of it", reveals="number")
    concordant: float | None = column("the share that is concordant", reveals="share", of="pairs")
    tied: float | None = column("the share with equal scores", reveals="share", of="pairs")
    random: float = column("the share of reversed pairs that a random score would give", reveals="number")
    shortfall: float | None = column(
        "by how much, on average, the person who came further in a reversed pair is below", reveals="number"
    )
    p_value: float | None = column(
        "p-value of as many reversed as concordant pairs, of this comparison alone", reveals="number"
    )
    status: Message = column("'ok', or why there is no share")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversalRecord(Record):
    """One of the reversed pairs with the largest shortfall."""

    individual: ClassVar[bool] = True

    model: str = column("the model", reveals="name")
    id_ahead: str = column("the person who came further", reveals="name")
    id_behind: str = column("the other", reveals="name")
    score_ahead: float = column("the score of the one")
    score_behind: float = column("the score of the other")
    effort_ahead: float = column("the effort of the one")
    effort_behind: float = column("the effort of the other")
    start_ahead: float = column("the first value of the one")
    start_behind: float = column("the first value of the other")
    end_ahead: float = column("the last value of the one")
    end_behind: float = column("the last value of the other")
    value: float = column("by how much the one who came further is scored worse")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecificationRecord(Record):
    """One metric of one model under one combination of choices; choices that do not affect the metric are null."""

    metric: Ranked = column("'eaif', or 'eagf' for the lowest parity of all effort bins", reveals="name")
    grouping: str | None = column("the grouping, of eagf", reveals="name")
    model: str = column("the model", reveals="name")
    window_first: str = column("first time step of the window", reveals="name")
    window_last: str = column("last time step of the window", reveals="name")
    measure: TrajectoryMeasure = column("how the trajectory is summed up", reveals="name")
    inertia: str = column("the inertia by its name; 'given' is the audit's own", reveals="name")
    unit: float = column("the unit of the feature", reveals="safe")
    weight: float | None = column("the weight of effort", reveals="safe")
    scale: float | None = column("the scale of the aggregate", reveals="safe")
    distance: str | None = column("the distance, of eaif", reveals="name")
    width: float | None = column("the width of the effort bins", reveals="safe")
    min_count: int | None = column("the smallest group that is compared", reveals="safe")
    own: bool = column("whether it is the audit's own specification", reveals="safe")
    bins: int | None = column("of eagf: the effort bins compared", reveals="safe")
    bins_left_out: int | None = column("of eagf: the bins in which no two groups can be compared", reveals="safe")
    value: float | None = column("the value; null where it is undefined", reveals="number")
    error: float | None = column("how far the number itself may be off", reveals="safe")
    fairest: bool | None = column(
        "whether no model is fairer under the same choices; null where there is no ranking", reveals="safe"
    )
    status: Message = column("'ok', or why there is no value")


@dataclass(frozen=True, slots=True, kw_only=True)
class FairestRecord(Record):
    """The share of specifications in which a model is the fairest, and the range of its values."""

    metric: Ranked = column("'eaif' or 'eagf'", reveals="name")
    grouping: str | None = column("the grouping, of eagf", reveals="name")
    model: str = column("the model", reveals="name")
    specifications: int = column("all specifications", reveals="safe")
    ranked: int = column("those in which all models have a value", reveals="safe")
    undefined: int = column("those in which this model has none", reveals="safe")
    wins: float | None = column("those in which it is the fairest; 1/k where k models are tied", reveals="safe")
    tied: int | None = column("those in which it is tied", reveals="safe")
    share: float | None = column("wins / ranked", reveals="safe")
    low: float | None = column("its lowest value", reveals="number")
    high: float | None = column("its highest value", reveals="number")
    own_value: float | None = column("its value in the audit's own specification", reveals="number")
    own_fairest: bool | None = column("whether it is the fairest there", reveals="safe")
    status: Message = column("'ok', or why there is no ranking")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipRecord(Record):
    """The share of comparisons in which another option of one choice changes the fairest model."""

    metric: Ranked = column("'eaif' or 'eagf'", reveals="name")
    grouping: str | None = column("the grouping, of eagf", reveals="name")
    choice: ChoiceName = column("the choice", reveals="name")
    options: int = column("how many options it has", reveals="safe")
    comparisons: int = column(
        "pairs of specifications that differ in this choice alone and can both be ranked", reveals="safe"
    )
    changed: int = column("those in which no model is the fairest under both", reveals="safe")
    share: float | None = column("changed / comparisons", reveals="safe")
    own_option: str = column("the audit's own option", reveals="name")
    own_flips: str | None = column(
        "the options that change the fairest model of the audit's own specification", reveals="name"
    )
    status: Message = column("'ok', or why there is no comparison")


@dataclass(frozen=True, repr=False, kw_only=True)
class EffortResult(Result):
    """Individual and group fairness with their intervals.

    Parameters
    ----------
    values, gaps, curve, spread : the tables, as records.
    direction : the reversed pairs of all people and between groups.
    reversals : the worst reversed pairs, if the table has an id; each record is about two people.
    people, pairs, trajectories : the least fair people and pairs, if the table has an id; the records are about
        individual people.
    specifications, fairest, flips : the values, fairest models and changes under other choices, with `robustness`.
    steps : the names of the trajectory's time steps.
    """

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    places: ClassVar[tuple[str, ...]] = ("weight", "bin_low", "bin_high")
    main_table: ClassVar[str] = "values"
    reveals: ClassVar[Mapping[str, Reveals]] = {"steps": "name"}

    spec: EffortSpec
    values: tuple[EffortValue, ...]
    gaps: tuple[EffortGap, ...]
    curve: tuple[CurveRecord, ...]
    spread: tuple[SpreadRecord, ...]
    direction: tuple[DirectionRecord, ...] = ()
    reversals: tuple[ReversalRecord, ...] = ()
    people: tuple[PersonRecord, ...] = ()
    pairs: tuple[PairRecord, ...] = ()
    trajectories: tuple[TrajectoryRecord, ...] = ()
    specifications: tuple[SpecificationRecord, ...] = ()
    fairest: tuple[FairestRecord, ...] = ()
    flips: tuple[FlipRecord, ...] = ()
    steps: tuple[str, ...]
