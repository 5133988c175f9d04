"""The records and the result of the disagreement audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from evenhand.audits.disagreement import AUDIT
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.records import OK, Gap, Record, Reveals, Value, column
from evenhand.core.result import Result
from evenhand.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class DisagreementValue(Value):
    """A group's rate of one metric at one label; `n` is the number of answers (for calibration, to the label)."""

    label: str | None = column("the label; null for a metric without labels", None, reveals="name")
    stakeholder: str | None = column("the kind of critics; null for all of them", None, reveals="name")
    lower: float | None = column("the smallest rate that the answers allow", None, reveals="share")
    upper: float | None = column(
        "the largest rate that the answers allow; `value` is the middle of the two", None, reveals="share"
    )
    truth: float | None = column("the rate by the critics' own labels, where these are known", None, reveals="share")


@dataclass(frozen=True, slots=True, kw_only=True)
class DisagreementGap(Gap):
    """The largest difference of one metric between two groups, over all labels."""

    label: str | None = column("the label at which the difference is largest", None, reveals="name")
    stakeholder: str | None = column("the kind of critics; null for all of them", None, reveals="name")
    critics: int = column("how many critics answered", reveals="count", of="")
    lower: float | None = column("the smallest gap that the answers allow", None, reveals="number")
    upper: float | None = column(
        "the largest gap that the answers allow; `value` is the middle of the two", None, reveals="number"
    )
    identified: str | None = column(
        "'definite' (exact by its nature), 'exact' (nothing is left open here) or 'bounded'", None, reveals="name"
    )
    sharp: bool | None = column(
        "whether both bounds can be attained; else the lower one may be too low", None, reveals="safe"
    )
    same_as: str | None = column("the metric whose gap is this very number", None, reveals="name")
    truth: float | None = column("the gap by the critics' own labels, where these are known", None, reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticGap(DisagreementGap):
    """The gap as seen by one critic, on their own answers."""

    individual: ClassVar[bool] = True

    critic: str = column("the critic", reveals="name")
    error: float | None = column("value minus truth, where that is known", None, reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class StakeholderGap(Gap):
    """A difference between two kinds of critics, on cases that both saw: `stakeholder` minus `stakeholder_reference`.

    The metric is 'disagreement' (the rate of disagreement with a label given to a group), or a metric with compared
    gaps between groups; then `group` is null. `n` is the number of shared cases. `p_adjusted` is adjusted by Holm over
    all comparisons of rates in the grouping, and separately over all comparisons of gaps.
    """

    stakeholder: str = column("the kind of critics", reveals="name")
    stakeholder_reference: str = column("the kind of critics they are compared with", reveals="name")
    label: str | None = column("the label; null where gaps are compared", None, reveals="name")
    critics: int = column("how many critics are of the first kind", reveals="count", of="")
    critics_reference: int = column("how many are of the other kind", reveals="count", of="")
    lower: float | None = column("the smallest difference that the answers allow", None, reveals="number")
    upper: float | None = column("the largest difference that the answers allow", None, reveals="number")
    statistic: float | None = column("Student's t of the difference", None, reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPlan(Record):
    """The additional critics, cases and answers needed for an interval of the required width."""

    grouping: str = column("the grouping", reveals="name")
    metric: str = column("the metric", reveals="name")
    design: str = column("'new cases' (new critics answer new cases) or 'same cases'", reveals="name")
    target_width: float = column("the required width", reveals="safe")
    width: float | None = column("the width now", reveals="number")
    least: float | None = column("the width that no number of critics gets below", reveals="number")
    critics: int | None = column("how many more critics; null where no number is enough", reveals="number")
    cases: int | None = column("how many more cases", reveals="number")
    answers: int | None = column("how many more answers", reveals="number")
    status: Message = column("'ok', or why the width cannot be reached", OK, reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthRecord(Record):
    """The errors of the estimates for critics with known labels."""

    grouping: str = column("the grouping", reveals="name")
    metric: str = column("the metric", reveals="name")
    critics: int = column("how many critics have a gap", reveals="count")
    mean_error: float | None = column("mean absolute error over them", None, reveals="number")
    worst_error: float | None = column("largest absolute error", None, reveals="number")
    inside: float | None = column("share of them whose true gap lies within the bounds", None, reveals="number")
    status: Message = column("'ok', or why there is no error", OK, reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRecord(Record):
    """A share of the pairs of like cases that one critic judged."""

    stakeholder: str | None = column("the kind of critics; null for all of them", None, reveals="name")
    metric: str = column("the metric", reveals="name")
    n: int = column("how many pairs of like cases", reveals="count")
    critics: int = column("how many critics judged such a pair", reveals="count", of="")
    cases: int = column("how many cases are in such a pair", reveals="count", of="")
    value: float | None = column("the share; null where there is no pair", None, reveals="share")
    low: float | None = column("lower limit of the interval", None, reveals="number")
    high: float | None = column("upper limit of the interval", None, reveals="number")
    lower: float | None = column("the smallest share that the answers allow", None, reveals="share")
    upper: float | None = column(
        "the largest share that the answers allow; `value` is the middle of the two", None, reveals="share"
    )
    truth: float | None = column("the share by the critics' own labels, where these are known", None, reveals="share")
    any_pair: float | None = column(
        "of split answers, their share among all pairs of a critic, alike or not", None, reveals="number"
    )
    status: Message = column("'ok', or why there is no value or interval", OK, reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticPairRecord(PairRecord):
    """A share of pairs of like cases judged by one critic."""

    individual: ClassVar[bool] = True

    critic: str = column("the critic", reveals="name")


@dataclass(frozen=True, repr=False, kw_only=True)
class DisagreementResult(Result):
    """Six metrics of fairness as seen by the people who answered.

    Parameters
    ----------
    values, gaps : the rates of groups, and the largest differences between two groups.
    critics : the gaps as seen by each critic.
    stakeholders : the comparisons of kinds of critics.
    plan : the additional answers needed for narrower intervals.
    truth : the errors of single critics' estimates, if the critics' own labels are known.
    pairs, critic_pairs : the shares of pairs of like cases, for all critics, for each kind, and for each critic.
    labels : the labels, in rising order if they are ordered.
    hash : SHA-256 of the answers that the numbers were computed from.
    """

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    places: ClassVar[tuple[str, ...]] = ("label", "stakeholder", "stakeholder_reference")
    found_places: ClassVar[tuple[str, ...]] = ("label",)
    reveals: ClassVar[Mapping[str, Reveals]] = {"labels": "name", "hash": "safe"}

    spec: DisagreementSpec
    values: tuple[DisagreementValue, ...]
    gaps: tuple[DisagreementGap, ...]
    critics: tuple[CriticGap, ...]
    stakeholders: tuple[StakeholderGap, ...]
    plan: tuple[AnswerPlan, ...]
    truth: tuple[TruthRecord, ...]
    pairs: tuple[PairRecord, ...]
    critic_pairs: tuple[CriticPairRecord, ...]
    labels: tuple[str, ...]
    hash: str
