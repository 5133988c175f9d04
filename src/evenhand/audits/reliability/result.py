"""The result of the reliability audit, and the records in its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evenhand.audits.reliability import AUDIT
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.records import Gap, Record, Value, column
from evenhand.core.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityValue(Value):
    """A metric of a group at one noise level: the mean over folds and replicates.

    Its limits are for other people, jointly at all noise levels.
    """

    setting: str = column("the way in which mistakes are made")
    noise_level: float = column("the share of entries that go wrong")
    undefined: int = column("runs (replicates and folds) in which it is undefined", 0)
    replicate_sd: float | None = column("standard deviation between replicates", None)
    replicate_low: float | None = column("lower limit for other random mistakes alone", None)
    replicate_high: float | None = column("upper limit for other random mistakes alone", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityGap(Gap):
    """A group's metric less that of the reference, on average over noise levels or at one of them.

    At one noise level the limits hold jointly at all of them. On average, `joint_low` and `joint_high` hold for all
    groups, or all pairs of groups, together. `p_adjusted` is for all tables of the run. Where mistakes were
    learned from a pilot by group, the limits allow for another pilot of the same size.
    """

    setting: str = column("the way in which mistakes are made")
    noise_level: float | None = column("the noise level; null for the mean over all levels above 0", None)
    stderr: float | None = column("standard error", None)
    df: float | None = column("degrees of freedom of the test", None)
    share_lower: float | None = column("share of noise levels at which the group is lower", None)
    replicate_sd: float | None = column("standard deviation between replicates", None)
    least_shown: float | None = column(
        "of few people, the least gap that their test (without one: any test) could show if nobody of the smaller "
        "group were hurt",
        None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionRecord(Record):
    """How much of a gap at one noise level the mistakes in one feature make: its Shapley value.

    Over features the values add up to the gap, that of one rater who goes wrong.
    """

    model: str = column("the model")
    grouping: str = column("the grouping")
    group: str = column("the group")
    reference: str = column("the group it is compared with")
    metric: str = column("the metric")
    setting: str = column("the way in which mistakes are made")
    noise_level: float = column("the noise level")
    feature: str = column("the feature that goes wrong")
    value: float | None = column("its part of the gap; null where it is undefined")
    share: float | None = column("its share of the gap; null where the gap's interval holds 0, or there is none")
    replicate_low: float | None = column("lower limit for other random mistakes alone")
    replicate_high: float | None = column("upper limit for other random mistakes alone")
    method: str = column("'exact' (all coalitions of features) or 'sampled' (random orders)")
    status: str = column("'ok', or why there is no value")


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedRecord(Record):
    """What mistakes do to people's places at one noise level: a number of a group, and its gap to the reference.

    The mean over up to 20 replicates, all folds together; limits are for other people, each by itself.
    """

    model: str = column("the model")
    setting: str = column("the way in which mistakes are made")
    grouping: str = column("the grouping")
    group: str = column("the group")
    reference: str | None = column("the group it is compared with; null for that group itself")
    metric: str = column("the metric")
    risk_level: str | None = column("the risk level without mistakes; null where the metric is about all of them", None)
    noise_level: float = column("the share of entries that go wrong")
    n: int = column("the people of the group")
    value: float | None = column("the number; null where it is undefined")
    low: float | None = column("lower limit", None)
    high: float | None = column("upper limit", None)
    gap: float | None = column("the number less that of the reference group", None)
    gap_low: float | None = column("lower limit of the gap", None)
    gap_high: float | None = column("upper limit of the gap", None)
    status: str = column("'ok', or why there is no value or interval")


@dataclass(frozen=True, slots=True, kw_only=True)
class MitigationRecord(Record):
    """A model and what it offers against mistakes: accuracy, reliability, and the largest gap in reliability.

    Reliability is PABAK on average over the noise levels above 0. Changes are against the given model, person by
    person; their limits hold for all alternatives together, those of the gap for all groups.
    """

    model: str = column("the model")
    family: str = column("'as given', 'sparse', 'regularised' or 'monotone'")
    setting: str = column("the way in which mistakes are made")
    grouping: str = column("the grouping")
    n: int = column("the people")
    accuracy: float = column("share of right decisions without mistakes")
    accuracy_low: float | None = column("lower limit")
    accuracy_high: float | None = column("upper limit")
    accuracy_change: float | None = column("accuracy less that of the given model", None)
    accuracy_change_low: float | None = column("lower limit", None)
    accuracy_change_high: float | None = column("upper limit", None)
    reliability: float = column("PABAK of the decisions with and without mistakes")
    reliability_low: float | None = column("lower limit")
    reliability_high: float | None = column("upper limit")
    reliability_change: float | None = column("reliability less that of the given model", None)
    reliability_change_low: float | None = column("lower limit", None)
    reliability_change_high: float | None = column("upper limit", None)
    group: str = column("the group whose reliability is farthest from the reference group's")
    gap: float = column("its reliability less the reference group's")
    gap_low: float | None = column("lower limit")
    gap_high: float | None = column("upper limit")
    no_less_accurate: bool = column("whether accuracy is shown to be lower by no more than the margin")
    chosen: bool = column("whether it is the most reliable of those that are no less accurate")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord(Record):
    """A model: what it is, and how it does without mistakes."""

    model: str = column("the model")
    kind: str = column("'fitted here', 'object', 'function' or 'file'")
    source: str = column("its estimator, class, function or file")
    sha256: str | None = column("SHA-256 of its file")
    features: str = column("the features it uses")
    folds: int = column("how many models were fitted, each for people it was not fitted to")
    threshold: float = column("a person is selected when the score is above it")
    method: str = column("how it was evaluated: 'linear' or 'rows'")
    n: int = column("the people")
    selected: float = column("share of them selected without mistakes")
    mean_score: float = column("their mean score without mistakes")
    accuracy: float | None = column("share of right decisions; null without an outcome")
    auc: float | None = column("area under the ROC curve; null without an outcome")


@dataclass(frozen=True, repr=False, kw_only=True)
class ReliabilityResult(Result):
    """Reliability by group and noise level, the gaps between groups, and what makes the gaps.

    Parameters
    ----------
    values, gaps, attribution, moved, mitigation, models : the tables, as records.
    hash : SHA-256 of the features, groups and outcome that the numbers were computed from.
    """

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    places: ClassVar[tuple[str, ...]] = ("setting", "noise_level")

    spec: ReliabilitySpec
    values: tuple[ReliabilityValue, ...]
    gaps: tuple[ReliabilityGap, ...]
    attribution: tuple[AttributionRecord, ...]
    moved: tuple[MovedRecord, ...]
    mitigation: tuple[MitigationRecord, ...]
    models: tuple[ModelRecord, ...]
    hash: str
