"""The records of the disagreement audit: flat, frozen, JSON-safe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RateRecord:
    """A group's rate of one notion at one label (null for a notion without labels).

    `lower` and `upper` are the smallest and largest rate that the answers allow, `value` the rate where they are the
    same and else their middle; `low` and `high` add the sampling. `n` is the number of answers behind it: of the group,
    for calibration with the label. `truth` is the rate by the critics' own labels, where these are known.
    """

    grouping: str
    stakeholder: str | None
    group: str
    label: str | None
    notion: str
    n: int
    lower: float | None
    upper: float | None
    value: float | None
    low: float | None
    high: float | None
    truth: float | None
    status: str


@dataclass(frozen=True, slots=True)
class GapRecord:
    """The gap of one notion between groups, over all labels: of all critics, of a kind of them, or of one.

    `kind` is 'definite' (exact by its nature), 'exact' (nothing is left open here) or 'bounded'. `lower` and `upper`
    are the smallest and largest gap that the answers allow, `value` the gap or the middle of the bounds, and `low` and
    `high` add the sampling. `label`, `group_high` and `group_low` say where the largest is. `sharp` says whether both
    bounds can be attained; else the lower one may be too low. `same_as` names the notion whose gap is this very number.
    """

    grouping: str
    stakeholder: str | None
    critic: str | None
    notion: str
    kind: str | None
    n: int
    label: str | None
    group_high: str | None
    group_low: str | None
    lower: float | None
    upper: float | None
    value: float | None
    low: float | None
    high: float | None
    sharp: bool | None
    same_as: str | None
    truth: float | None
    status: str


@dataclass(frozen=True, slots=True)
class CriticRecord:
    """One critic's gap, beside the true one where the critic's own labels are known: `error` is value less truth."""

    grouping: str
    notion: str
    critic: str
    stakeholder: str | None
    n: int
    lower: float | None
    upper: float | None
    value: float | None
    truth: float | None
    error: float | None
    status: str


@dataclass(frozen=True, slots=True)
class StakeholderRecord:
    """Two kinds of critics on the cases that both have seen: the difference, `stakeholder_a` less `stakeholder_b`.

    `metric` is 'disagreement' (the rate at which they disagree with a label given to a group) or a notion (whose gaps
    are compared). `p_adjusted` is Holm's, over all comparisons of the grouping in the same kind of metric.
    """

    grouping: str
    stakeholder_a: str
    stakeholder_b: str
    metric: str
    group: str | None
    label: str | None
    cases: int
    critics_a: int
    critics_b: int
    lower: float | None
    upper: float | None
    value: float | None
    low: float | None
    high: float | None
    statistic: float | None
    p_value: float | None
    p_adjusted: float | None
    status: str


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """How many more critics, cases and answers would narrow the interval of a gap to the wanted width.

    `design` is 'new cases' (new critics answer new cases) or 'same cases'. `width` is the width now, `least` the one
    that no number of critics gets below.
    """

    grouping: str
    notion: str
    design: str
    target: float
    width: float | None
    least: float | None
    critics: int | None
    cases: int | None
    answers: int | None
    status: str


@dataclass(frozen=True, slots=True)
class TruthRecord:
    """How far the estimates are off for the critics whose own labels are known.

    `mean_error` and `worst_error` are absolute errors over the critics with a gap; `inside` is the share of them whose
    true gap lies within the bounds.
    """

    grouping: str
    notion: str
    critics: int
    mean_error: float | None
    worst_error: float | None
    inside: float | None
    status: str
