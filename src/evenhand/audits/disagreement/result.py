"""The records and the result of the disagreement audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evenhand.audits.disagreement import AUDIT
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.records import Gap, Record, Value, column
from evenhand.core.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class DisagreementValue(Value):
    """A group's rate of one metric at one label; `n` counts answers, for calibration those to the label."""

    label: str | None = column("the label; null for a metric without labels", None)
    stakeholder: str | None = column("the kind of critics; null for all of them", None)
    lower: float | None = column("the smallest rate that the answers allow", None)
    upper: float | None = column("the largest rate that the answers allow; `value` is the middle of the two", None)
    truth: float | None = column("the rate by the critics' own labels, where these are known", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisagreementGap(Gap):
    """The largest difference of one metric between two groups, over all labels."""

    label: str | None = column("the label at which the difference is largest", None)
    stakeholder: str | None = column("the kind of critics; null for all of them", None)
    critics: int = column("how many critics answered")
    lower: float | None = column("the smallest gap that the answers allow", None)
    upper: float | None = column("the largest gap that the answers allow; `value` is the middle of the two", None)
    identified: str | None = column(
        "'definite' (exact by its nature), 'exact' (nothing is left open here) or 'bounded'", None
    )
    sharp: bool | None = column("whether both bounds can be attained; else the lower one may be too low", None)
    same_as: str | None = column("the metric whose gap is this very number", None)
    truth: float | None = column("the gap by the critics' own labels, where these are known", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticGap(DisagreementGap):
    """The gap that one critic sees, on their own answers."""

    individual: ClassVar[bool] = True

    critic: str = column("the critic")
    error: float | None = column("value minus truth, where that is known", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StakeholderGap(Gap):
    """Two kinds of critics on the cases that both have seen: `stakeholder` minus `stakeholder_reference`.

    The metric is 'disagreement' (the rate at which they disagree with a label given to a group) or one whose gaps
    between groups are compared; `group` is then null. `n` counts the shared cases. `p_adjusted` is Holm's, over all
    comparisons of the grouping in the rate, and over all in gaps.
    """

    stakeholder: str = column("the kind of critics")
    stakeholder_reference: str = column("the kind of critics they are compared with")
    label: str | None = column("the label; null where gaps are compared", None)
    critics: int = column("how many critics are of the first kind")
    critics_reference: int = column("how many are of the other kind")
    lower: float | None = column("the smallest difference that the answers allow", None)
    upper: float | None = column("the largest difference that the answers allow", None)
    statistic: float | None = column("Student's t of the difference", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPlan(Record):
    """How many more critics, cases and answers would narrow the interval of a gap to the wanted width."""

    grouping: str = column("the grouping")
    metric: str = column("the metric")
    design: str = column("'new cases' (new critics answer new cases) or 'same cases'")
    target_width: float = column("the wanted width")
    width: float | None = column("the width now")
    least: float | None = column("the width that no number of critics gets below")
    critics: int | None = column("how many more critics; null where no number is enough")
    cases: int | None = column("how many more cases")
    answers: int | None = column("how many more answers")
    status: str = column("'ok', or why the width cannot be reached", "ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthRecord(Record):
    """How far the estimates are off for the critics whose own labels are known."""

    grouping: str = column("the grouping")
    metric: str = column("the metric")
    critics: int = column("how many critics have a gap")
    mean_error: float | None = column("mean absolute error over them", None)
    worst_error: float | None = column("largest absolute error", None)
    inside: float | None = column("share of them whose true gap lies within the bounds", None)
    status: str = column("'ok', or why there is no error", "ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRecord(Record):
    """A share of the pairs of like cases that one critic judged."""

    stakeholder: str | None = column("the kind of critics; null for all of them", None)
    metric: str = column("the metric")
    n: int = column("how many pairs of like cases")
    critics: int = column("how many critics judged such a pair")
    cases: int = column("how many cases are in such a pair")
    value: float | None = column("the share; null where there is no pair", None)
    low: float | None = column("lower limit of the interval", None)
    high: float | None = column("upper limit of the interval", None)
    lower: float | None = column("the smallest share that the answers allow", None)
    upper: float | None = column("the largest share that the answers allow; `value` is the middle of the two", None)
    truth: float | None = column("the share by the critics' own labels, where these are known", None)
    any_pair: float | None = column("of split answers, their share among all pairs of a critic, alike or not", None)
    status: str = column("'ok', or why there is no value or interval", "ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticPairRecord(PairRecord):
    """The same of one critic."""

    individual: ClassVar[bool] = True

    critic: str = column("the critic")


@dataclass(frozen=True, repr=False, kw_only=True)
class DisagreementResult(Result):
    """Six metrics of fairness as the people who answered see them.

    Parameters
    ----------
    values, gaps : the rates of groups, and the largest differences between two of them.
    critics : the gaps that critics see one by one.
    stakeholders : kinds of critics compared.
    plan : how many more answers it would take.
    truth : how far the estimates of single critics are off, where the critics' own labels are known.
    pairs, critic_pairs : pairs of like cases that one critic judged, of all critics, of each kind, and one by one.
    labels : the labels, lowest first where they have an order.
    hash : SHA-256 of the answers that the numbers were computed from.
    """

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    places: ClassVar[tuple[str, ...]] = ("label", "stakeholder", "stakeholder_reference")
    found_places: ClassVar[tuple[str, ...]] = ("label",)

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
