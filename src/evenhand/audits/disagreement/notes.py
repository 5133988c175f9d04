"""Remarks that a reader of a disagreement audit needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evenhand.audits.disagreement.critics import MOST_CRITICS
from evenhand.audits.disagreement.groups import Grouping
from evenhand.audits.disagreement.panel import Panel
from evenhand.audits.disagreement.records import GapRecord, RateRecord
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.errors import count

_NAMED = 5
FEW = 20
"""Critics or cases below which standard errors from resampling are too small to lean on."""


def panel_notes(
    panel: Panel, spec: DisagreementSpec, gaps: Sequence[GapRecord], fewer: dict[str, int]
) -> Iterator[str]:
    """Yield the remarks, the most important first."""
    names = ", ".join(repr(name) for name in panel.labels.names)
    if len(panel.labels.names) == 2 and spec.bounds == "sharp":
        yield (
            "There are two labels, so whoever disagrees with one means the other: all six notions are exact, and "
            "the gap in predictive equality is that in equal opportunity."
        )
    if not panel.labels.declared:
        yield (
            f"The labels are those seen in the data ({names}). If the system can give others, declare them all with "
            "`labels`: whoever disagrees may have had one of those in mind."
        )
    if spec.column("case") is None and spec.feedback is None:
        yield (
            "No case column was named, so each answer counts as a case of its own. If critics shared cases, the "
            "intervals are too short."
        )
    yield (
        f"{count(len(panel.answer), 'answer')} of {count(len(panel.critics), 'critic')} on "
        f"{count(len(panel.cases), 'case')}. Each answer counts {'once' if panel.weight is None else 'by its weight'}, "
        "so a case that more critics saw counts more."
    )
    if min(len(panel.critics), len(panel.cases)) < FEW:
        yield "With so few critics or cases the intervals are a rough guide at best."
    yield from _few_of_a_kind(panel)
    yield from _bound_notes(spec, gaps)
    if panel.inconsistent:
        yield (
            f"{count(panel.inconsistent, 'answer contradicts', 'answers contradict')} the critic's own label: the "
            "truth then need not lie within the bounds."
        )
    if len(panel.critics) > MOST_CRITICS:
        yield f"With more than {MOST_CRITICS:,} critics, the critics one by one are left out."
    for grouping, draws in fewer.items():
        yield f"Intervals by {grouping} rest on {draws:,} resamples instead of {spec.resamples:,}, because of the size."
    if spec.column("stakeholder") is not None and panel.stakeholder is not None:
        unknown = int((panel.stakeholder < 0).sum())
        if unknown:
            yield f"{count(unknown, 'critic is', 'critics are')} of no known kind; they count in what all critics say."


def label_notes(rates: Sequence[RateRecord], groupings: Sequence[Grouping]) -> Iterator[str]:
    """Yield which labels calibration cannot compare between all groups, because a group was never given them."""
    for grouping in groupings:
        own = [
            r
            for r in rates
            if (r.grouping, r.stakeholder, r.notion) == (grouping.name, None, "calibration")
            and r.group in grouping.chosen
        ]
        given = {r.label for r in own if r.value is not None}
        never = [f"“{r.label}” to {r.group}" for r in own if r.value is None and r.label in given]
        if never:
            more = f", and {len(never) - _NAMED} more" if len(never) > _NAMED else ""
            yield (
                f"By {grouping.name}, some labels were never given to a group: {', '.join(never[:_NAMED])}{more}. "
                "Calibration does not compare them there; statistical parity does."
            )


def _few_of_a_kind(panel: Panel) -> Iterator[str]:
    if panel.stakeholder is None:
        return
    critics = np.bincount(panel.stakeholder[panel.stakeholder >= 0], minlength=len(panel.stakeholders))
    few = [f"“{name}” ({n})" for name, n in zip(panel.stakeholders, critics.tolist(), strict=True) if 0 < n < FEW]
    if few:
        yield f"Few critics are of the kind {', '.join(few)}: intervals of that kind are a rough guide at best."


def _bound_notes(spec: DisagreementSpec, gaps: Sequence[GapRecord]) -> Iterator[str]:
    pooled = [gap for gap in gaps if gap.critic is None and gap.value is not None]
    if spec.bounds == "published":
        yield (
            "The bounds are the published ones, kept for comparison. They are looser than need be, and the one for "
            "overall misclassification points the wrong way, so that the truth can lie outside."
        )
    elif any(gap.kind == "bounded" and not gap.sharp for gap in pooled):
        yield (
            "Some lower bounds of gaps hold but may be too low: with more than two groups, a tolerance, more than ten "
            "labels, or a direction and four labels or more. Upper bounds are as low as the answers allow."
        )
    yield (
        "A gap is the largest of several differences, each with its own noise; so it tends to come out too large, "
        "most of all with few answers. The interval allows for that."
    )
