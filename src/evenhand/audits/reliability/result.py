"""The result of the reliability audit, and the records in its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from evenhand.audits.reliability import AUDIT
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.records import Gap, Record, Reveals, Value, column
from evenhand.core.result import Result
from evenhand.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityValue(Value):
    """A metric of a group at one noise level: the mean over folds and replicates.

    The limits are bootstrap limits over people, simultaneous over all noise levels.
    """

    setting: str = column("the way in which mistakes are made", reveals="name")
    noise_level: float = column("the share of entries that go wrong", reveals="safe")
    undefined: int = column("runs (replicates and folds) in which it is undefined", 0, reveals="safe")
    replicate_sd: float | None = column("standard deviation between replicates", None, reveals="number")
    replicate_low: float | None = column("lower limit for other random mistakes alone", None, reveals="number")
    replicate_high: float | None = column("upper limit for other random mistakes alone", None, reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityGap(Gap):
    """A group's metric minus the reference group's, averaged over noise levels or at one level.

    At one noise level, the limits are simultaneous over all levels. For the average, `joint_low` and `joint_high` are
    simultaneous over all groups, or over all pairs of groups. `p_adjusted` is adjusted for all tables of the run. If
    mistakes were learned from a pilot by group, the limits include the variation between pilots of the same size.
    """

    setting: str = column("the way in which mistakes are made", reveals="name")
    noise_level: float | None = column(
        "the noise level; null for the mean over all levels above 0", None, reveals="safe"
    )
    stderr: float | None = column("standard error", None, reveals="number")
    df: float | None = column("degrees of freedom of the test, of mistakes learned by group", None, reveals="number")
    share_lower: float | None = column("share of noise levels at which the group is lower", None, reveals="safe")
    replicate_sd: float | None = column("standard deviation between replicates", None, reveals="number")
    rests_on: str | None = column(
        "what test and limits of a mean gap rest on: 'permutation' of people, its 'approximation' for many, "
        "'few people' who carry the difference, 'bounds' where people of a group do not vary, 'rates', or a 'pilot'",
        None,
        reveals="name",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionRecord(Record):
    """The part of a gap at one noise level due to mistakes in one feature: its Shapley value.

    The values of all features sum to the gap in a simulation in which only the second rater makes mistakes.
    """

    model: str = column("the model", reveals="name")
    grouping: str = column("the grouping", reveals="name")
    group: str = column("the group", reveals="name")
    reference: str = column("the group it is compared with", reveals="name")
    metric: str = column("the metric", reveals="name")
    setting: str = column("the way in which mistakes are made", reveals="name")
    noise_level: float = column("the noise level", reveals="safe")
    feature: str = column("the feature that goes wrong", reveals="name")
    value: float | None = column("its part of the gap; null where it is undefined", reveals="number")
    share: float | None = column(
        "its share of the gap; null where the gap's interval holds 0, or there is none", reveals="number"
    )
    replicate_low: float | None = column("lower limit for other random mistakes alone", reveals="number")
    replicate_high: float | None = column("upper limit for other random mistakes alone", reveals="number")
    method: str = column("'exact' (all coalitions of features) or 'sampled' (random orders)", reveals="name")
    status: Message = column("'ok', or why there is no value")


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedRecord(Record):
    """The effect of mistakes on risk levels and order at one noise level: a group's estimate and its gap.

    The estimate is a mean over up to 20 replicates of all folds together. The limits are over people, for each
    estimate alone.
    """

    model: str = column("the model", reveals="name")
    setting: str = column("the way in which mistakes are made", reveals="name")
    grouping: str = column("the grouping", reveals="name")
    group: str = column("the group", reveals="name")
    reference: str | None = column("the group it is compared with; null for that group itself", reveals="name")
    metric: str = column("the metric", reveals="name")
    risk_level: str | None = column(
        "the risk level without mistakes; null where the metric is about all of them", None, reveals="name"
    )
    noise_level: float = column("the share of entries that go wrong", reveals="safe")
    n: int = column("the people of the group", reveals="count")
    value: float | None = column("the number; null where it is undefined", reveals="share")
    low: float | None = column("lower limit", None, reveals="number")
    high: float | None = column("upper limit", None, reveals="number")
    gap: float | None = column("the number less that of the reference group", None, reveals="number")
    gap_low: float | None = column("lower limit of the gap", None, reveals="number")
    gap_high: float | None = column("upper limit of the gap", None, reveals="number")
    status: Message = column("'ok', or why there is no value or interval")


@dataclass(frozen=True, slots=True, kw_only=True)
class MitigationRecord(Record):
    """A model compared as a mitigation: accuracy, reliability, and the largest gap in reliability.

    Reliability is PABAK on average over the noise levels above 0. Changes are paired differences from the given model;
    their limits are simultaneous over all alternatives. The limits of the gap are simultaneous over all groups.
    """

    model: str = column("the model", reveals="name")
    family: str = column("'as given', 'sparse', 'regularised' or 'monotone'", reveals="name")
    setting: str = column("the way in which mistakes are made", reveals="name")
    grouping: str = column("the grouping", reveals="name")
    n: int = column("the people", reveals="count")
    accuracy: float = column("share of right decisions without mistakes", reveals="share")
    accuracy_low: float | None = column("lower limit", reveals="number")
    accuracy_high: float | None = column("upper limit", reveals="number")
    accuracy_change: float | None = column("accuracy less that of the given model", None, reveals="number")
    accuracy_change_low: float | None = column("lower limit", None, reveals="number")
    accuracy_change_high: float | None = column("upper limit", None, reveals="number")
    reliability: float = column("PABAK of the decisions with and without mistakes", reveals="number")
    reliability_low: float | None = column("lower limit", reveals="number")
    reliability_high: float | None = column("upper limit", reveals="number")
    reliability_change: float | None = column("reliability less that of the given model", None, reveals="number")
    reliability_change_low: float | None = column("lower limit", None, reveals="number")
    reliability_change_high: float | None = column("upper limit", None, reveals="number")
    group: str = column("the group whose reliability is farthest from the reference group's", reveals="name")
    gap: float = column("its reliability less the reference group's", reveals="number")
    gap_low: float | None = column("lower limit", reveals="number")
    gap_high: float | None = column("upper limit", reveals="number")
    no_less_accurate: bool = column("whether accuracy is shown to be lower by no more than the margin", reveals="safe")
    chosen: bool = column("whether it is the most reliable of those that are no less accurate", reveals="safe")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord(Record):
    """A model's description and its performance without mistakes."""

    model: str = column("the model", reveals="name")
    kind: str = column("'fitted here', 'object', 'function' or 'file'", reveals="name")
    source: str = column("its estimator, class, function or file", reveals="name")
    sha256: str | None = column("SHA-256 of its file", reveals="name")
    features: str = column("the features it uses", reveals="name")
    folds: int = column("how many models were fitted, each for people it was not fitted to", reveals="safe")
    threshold: float | None = column("a person is selected when the score is above it; null of numbers", reveals="safe")
    method: str = column("how it was evaluated: 'linear' or 'rows'", reveals="name")
    n: int = column("the people", reveals="count")
    selected: float | None = column("share of them selected without mistakes; null of numbers", reveals="share")
    mean_score: float = column("their mean score or number without mistakes", reveals="number")
    accuracy: float | None = column("share of right decisions; null without an outcome", reveals="share")
    auc: float | None = column("area under the ROC curve; null without an outcome", reveals="number")


@dataclass(frozen=True, repr=False, kw_only=True)
class ReliabilityResult(Result):
    """Reliability by group and noise level, the gaps between groups, and the sources of the gaps.

    Parameters
    ----------
    values, gaps, attribution, moved, mitigation, models : the tables, as records.
    hash : SHA-256 of the features, groups and outcome that the numbers were computed from.
    """

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    places: ClassVar[tuple[str, ...]] = ("setting", "noise_level")
    reveals: ClassVar[Mapping[str, Reveals]] = {"hash": "safe"}

    spec: ReliabilitySpec
    values: tuple[ReliabilityValue, ...]
    gaps: tuple[ReliabilityGap, ...]
    attribution: tuple[AttributionRecord, ...]
    moved: tuple[MovedRecord, ...]
    mitigation: tuple[MitigationRecord, ...]
    models: tuple[ModelRecord, ...]
    hash: str
