"""Where kinds of critics differ, on the cases that both have seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from evenhand.audits.disagreement.gaps import Place
from evenhand.audits.disagreement.groups import Voices
from evenhand.audits.disagreement.panel import Panel
from evenhand.audits.disagreement.records import StakeholderRecord
from evenhand.audits.disagreement.sampling import resampling_of
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.numbers import finite
from evenhand.errors import DataError
from evenhand.stats.correlation import adjusted_p
from evenhand.stats.feedback import TOLERANT, Comparison, Differences, compare_critics
from evenhand.stats.feedback import FeedbackMetric as Notion
from evenhand.stats.types import IntArray

DISAGREEMENT = "disagreement"
_SAME = "no test: the answers do not vary"


def compared_notions(labels: int, tolerance: int) -> tuple[Notion, ...]:
    """Return the notions whose gaps are compared: those that the answers make exact, each number once."""
    if tolerance:
        return TOLERANT
    exact: tuple[Notion, ...] = ("calibration", "accuracy_equality")
    return (*exact, "equal_opportunity") if labels == 2 else exact


def stakeholder_records(
    panel: Panel, voices: Voices, place: Place, spec: DisagreementSpec, *stream: int
) -> list[StakeholderRecord]:
    """Return the differences of every two kinds of critics by one grouping, with tests adjusted for their number."""
    if panel.stakeholder is None:
        return []
    kind = panel.stakeholder[voices.critics]
    present = [code for code in range(len(panel.stakeholders)) if (kind == code).any()]
    records: list[StakeholderRecord] = []
    for number, (first, second) in enumerate(combinations(present, 2)):
        names = panel.stakeholders[first], panel.stakeholders[second]
        records += _pair(voices, kind, (first, second), names, place, spec, *stream, number)
    return list(_adjusted(records))


def _pair(
    voices: Voices,
    kind: IntArray,
    codes: tuple[int, int],
    names: tuple[str, str],
    place: Place,
    spec: DisagreementSpec,
    *stream: int,
) -> list[StakeholderRecord]:
    feedback = voices.answers.feedback
    plan = resampling_of(voices.answers, spec, *stream)
    try:
        found = compare_critics(
            voices.answers,
            kind,
            *codes,
            rng=plan.rng,
            metrics=compared_notions(feedback.labels, feedback.tolerance),
            draws=plan.draws,
            confidence=spec.confidence,
        )
    except DataError as error:
        first, second = (int((kind == code).sum()) for code in codes)
        return [
            StakeholderRecord(
                place.grouping,
                names[0],
                names[1],
                DISAGREEMENT,
                None,
                None,
                0,
                first,
                second,
                *(None,) * 8,
                status=f"undefined: {str(error).removesuffix('.')}",
            )
        ]
    rows = [
        _record(found, found.disagreement, (group, label), names, place, DISAGREEMENT)
        for group, label in np.ndindex(found.disagreement.lower.shape)
    ]
    return rows + [
        _record(found, found.gaps, (number,), names, place, notion) for number, notion in enumerate(found.metrics)
    ]


def _record(
    found: Comparison, values: Differences, at: tuple[int, ...], names: tuple[str, str], place: Place, metric: str
) -> StakeholderRecord:
    lower, upper, low, high, t, p = (
        finite(getattr(values, name)[at]) for name in ("lower", "upper", "low", "high", "t", "p")
    )
    is_rate = metric == DISAGREEMENT
    group, label = (place.groups[at[0]], place.labels[at[1]]) if is_rate else (None, None)
    status = "ok"
    if lower is None or upper is None:
        status = "undefined: one of the two has no answers on this label and group" if is_rate else "undefined"
    elif p is None:
        status = _SAME
    return StakeholderRecord(
        grouping=place.grouping,
        stakeholder_a=names[0],
        stakeholder_b=names[1],
        metric=metric,
        group=group,
        label=label,
        cases=found.cases,
        critics_a=found.critics[0],
        critics_b=found.critics[1],
        lower=lower,
        upper=upper,
        value=None if lower is None or upper is None else (lower + upper) / 2,
        low=None if low is None or p is None else max(low, -1.0),
        high=None if high is None or p is None else min(high, 1.0),
        statistic=t,
        p_value=p,
        p_adjusted=None,
        status=status,
    )


def _adjusted(records: list[StakeholderRecord]) -> Iterator[StakeholderRecord]:
    """Adjust the p-values of the rates for all rates, and those of the gaps for all gaps, of all pairs of kinds."""
    is_rate = np.array([record.metric == DISAGREEMENT for record in records], dtype=np.bool_)
    p = np.array([np.nan if record.p_value is None else record.p_value for record in records])
    adjusted = np.full(p.size, np.nan)
    for family in (is_rate, ~is_rate):
        adjusted[family] = adjusted_p(p[family])
    for record, value in zip(records, adjusted, strict=True):
        yield replace(record, p_adjusted=finite(value))
