"""What is told: the findings of the disagreement audit, and remarks that a reader needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.audits.disagreement.critics import MOST_CRITICS
from evenhand.audits.disagreement.gather import Panel
from evenhand.audits.disagreement.groups import Grouping
from evenhand.audits.disagreement.metrics import DISAGREEMENT, METRICS
from evenhand.audits.disagreement.result import DisagreementGap, DisagreementValue, StakeholderGap
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.families import Clarity
from evenhand.core.findings import Claim
from evenhand.core.formats import show
from evenhand.errors import count

LEAST_CRITICS = 5
"""Critics below which no verdict is given, whatever the interval: they may all be of one mind."""
FEW = 20
"""Critics or cases below which standard errors from resampling are too small to lean on."""
_NAMED, _NAMED_LABELS = 3, 5
_UNSHOWN: tuple[Clarity, ...] = ("unclear", "untested")

_GIVEN = "“{label}” to {group_value:unit} of {group} and {reference_value:unit} of {reference} for whom {who} would"
SENTENCES = {
    "statistical_parity": "{where}, the system gives “{label}” in {group_value:unit} of answers on {group} and "
    "{reference_value:unit} on {reference}.",
    "calibration": "{where}, {who} agree with {group_value:unit} of the “{label}” given to {group} and "
    "{reference_value:unit} of those to {reference}.",
    "accuracy_equality": "{where}, {who} agree with {group_value:unit} of the decisions on {group} and "
    "{reference_value:unit} of those on {reference}.",
    "equal_opportunity": f"{{where}}, the system gives {_GIVEN} choose it.",
    "predictive_equality": f"{{where}}, the system gives {_GIVEN} not choose it.",
    "overall_misclassification": f"{{where}}, the system does not give {_GIVEN} choose it.",
    "tolerant_calibration": "{where}, {who} find {group_value:unit} of the “{label}” given to {group} near enough and "
    "{reference_value:unit} of those to {reference}.",
    "tolerant_accuracy": "{where}, {who} find {group_value:unit} of the decisions on {group} near enough and "
    "{reference_value:unit} of those on {reference}.",
    "bounded": "{where}, {title} as {who} see it differs by {lower:points} to {upper:points} percentage points.",
    "undefined_gap": "{where}, {title} as {who} see it cannot be compared between groups.",
    "kinds_differ": "{where}, “{stakeholder}” critics disagree {value:points} points more often than “{other}” critics "
    "about “{label}” given to {group}, on the same cases.",
    "kinds_alike": "{where}, no two kinds of critics differ beyond chance in how often they disagree.",
    "kinds_partly_alike": "{where}, of what could be compared, nothing differs beyond chance between kinds of critics "
    "in how often they disagree.",
    "kinds_untested": "{where}, no difference between kinds of critics could be tested.",
}


SENTENCES |= {
    f"{name}_{clarity}": SENTENCES[name].removesuffix(".") + end
    for name in ("bounded", *METRICS)
    for clarity, end in {"unclear": "; no clear difference.", "untested": "; not tested."}.items()
    if name in SENTENCES
}


def make_claims(
    gaps: Sequence[DisagreementGap],
    values: Sequence[DisagreementValue],
    stakeholders: Sequence[StakeholderGap],
    spec: DisagreementSpec,
) -> Iterator[Claim]:
    """Yield what can be told: every gap, and for each grouping where two kinds of critics differ.

    Without a threshold the gaps of all critics are told; one that is the same number as another's is told once.
    """
    rates = {(r.grouping, r.stakeholder, r.metric, r.label, r.group): r.value for r in values}
    for gap in gaps:
        place = gap.grouping, gap.stakeholder, gap.metric, gap.label
        sentence_id = "bounded" if gap.identified == "bounded" else gap.metric
        arguments = {
            **_place(gap),
            "label": gap.label,
            "group": gap.group,
            "reference": gap.reference,
            "group_value": rates.get((*place, gap.group or "")),
            "reference_value": rates.get((*place, gap.reference or "")),
            "lower": gap.lower,
            "upper": gap.upper,
        }
        yield Claim(
            records=(gap,),
            sentence_id=sentence_id,
            undefined_id="undefined_gap",
            arguments=arguments,
            headline=gap.stakeholder is None and gap.same_as is None,
            when={clarity: {"sentence_id": f"{sentence_id}_{clarity}"} for clarity in _UNSHOWN},
            aside=_largest_at(gap),
            withheld=_too_few(gap.critics),
        )
    for grouping in dict.fromkeys(record.grouping for record in stakeholders):
        rows = [r for r in stakeholders if (r.grouping, r.metric) == (grouping, DISAGREEMENT)]
        yield from _stakeholder_claims(rows, spec)


def _place(gap: DisagreementGap | StakeholderGap) -> dict[str, Any]:
    who = "critics" if gap.stakeholder is None else f"“{gap.stakeholder}” critics"
    return {"where": f"By {gap.grouping}", "title": METRICS[gap.metric].title_in_sentence, "who": who}


def _largest_at(gap: DisagreementGap) -> str:
    """Say where the gap may be largest, when only bounds are known."""
    if gap.identified != "bounded":
        return ""
    label = "" if gap.label is None else f"for “{gap.label}” "
    return f"The upper end is that {label}between {gap.group} and {gap.reference}."


def _too_few(critics: int) -> str | None:
    if critics >= LEAST_CRITICS:
        return None
    return f"{count(critics, 'critic is', 'critics are')} too few for a verdict, which needs {LEAST_CRITICS}"


# Kinds of critics -----------------------------------------------------------------------------------------------------


def _stakeholder_claims(rows: Sequence[StakeholderGap], spec: DisagreementSpec) -> Iterator[Claim]:
    """Yield where two kinds of critics differ most clearly by one grouping."""
    tested = [r for r in rows if r.p_adjusted is not None]
    untested = [r for r in rows if r.p_adjusted is None and r.value != 0]
    if tested:
        yield _tested_claim(tested, untested, 1.0 - spec.confidence)
    elif untested:
        yield _kinds_claim("kinds_untested", _untold(untested[0]), _not_tested(untested))


def _tested_claim(tested: Sequence[StakeholderGap], untested: Sequence[StakeholderGap], level: float) -> Claim:
    """Return the claim of the comparison with the least p-value; the kind that disagrees more comes first.

    The p-value of the claim is adjusted for all comparisons that it was picked from.
    """
    clearest = min(tested, key=_clearness)
    if (clearest.value or 0.0) < 0:
        clearest = _turned(clearest)
    more = sum((r.p_adjusted or 0.0) <= level for r in tested) - 1
    aside = f"{more} more of these differences {'is' if more == 1 else 'are'} beyond chance." if more > 0 else ""
    alike = _kinds_claim("kinds_partly_alike" if untested else "kinds_alike", _untold(clearest), _not_tested(untested))
    names = ("records", "sentence_id", "undefined_id", "arguments", "aside")
    return replace(
        _kinds_claim("kinds_differ", clearest, aside),
        p_value=clearest.p_adjusted,
        when={"unclear": {name: getattr(alike, name) for name in names}},
    )


def _clearness(record: StakeholderGap) -> tuple[float, float]:
    return record.p_adjusted or 0.0, -abs(record.statistic or 0.0)


def _kinds_claim(sentence_id: str, record: StakeholderGap, aside: str) -> Claim:
    arguments = {
        **_place(record),
        "stakeholder": record.stakeholder,
        "other": record.stakeholder_reference,
        "label": record.label,
        "group": record.group,
        "value": record.value,
    }
    shared = "" if record.value is None else "Here n counts the cases that both have seen. "
    return Claim(
        records=(record,),
        sentence_id=sentence_id,
        undefined_id=sentence_id,
        arguments=arguments,
        headline=True,
        aside=f"{shared}{aside}".rstrip(),
    )


def _not_tested(records: Sequence[StakeholderGap]) -> str:
    """Say which differences could not be tested: what is not known to be 0."""
    if not records:
        return ""
    more = f", and {len(records) - _NAMED} more" if len(records) > _NAMED else ""
    return f"Not tested: {', '.join(_in_words(record) for record in records[:_NAMED])}{more}."


def _in_words(record: StakeholderGap) -> str:
    pair = f"“{record.stakeholder}” and “{record.stakeholder_reference}”"
    where = "" if record.label is None else f" about “{record.label}” given to {record.group}"
    if record.value is None:
        return f"{pair} cannot be compared{where}"
    return f"{pair} differ by {show(abs(record.value), 'points')} points{where}"


def _untold(record: StakeholderGap) -> StakeholderGap:
    """Return a comparison without its numbers, which would stand out beside a sentence that says nothing was shown."""
    return replace(record, value=None, low=None, high=None, lower=None, upper=None, statistic=None, status="")


def _turned(record: StakeholderGap) -> StakeholderGap:
    """Return the same comparison the other way round."""

    def minus(number: float | None) -> float | None:
        return None if number is None else -number

    return replace(
        record,
        stakeholder=record.stakeholder_reference,
        stakeholder_reference=record.stakeholder,
        critics=record.critics_reference,
        critics_reference=record.critics,
        value=minus(record.value),
        low=minus(record.high),
        high=minus(record.low),
        lower=minus(record.upper),
        upper=minus(record.lower),
        statistic=minus(record.statistic),
    )


# Remarks --------------------------------------------------------------------------------------------------------------


def panel_notes(
    panel: Panel, spec: DisagreementSpec, gaps: Sequence[DisagreementGap], fewer: Mapping[str, int]
) -> Iterator[str]:
    """Yield the remarks, the most important first."""
    yield from _reading_notes(panel, spec)
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
    unknown = 0 if panel.stakeholder is None else int((panel.stakeholder < 0).sum())
    if unknown:
        yield f"{count(unknown, 'critic is', 'critics are')} of no known kind; they count in what all critics say."


def _reading_notes(panel: Panel, spec: DisagreementSpec) -> Iterator[str]:
    """Yield what the answers were taken to mean."""
    names = ", ".join(repr(name) for name in panel.labels.names)
    if len(panel.labels.names) == 2 and spec.bounds == "sharp":
        yield (
            "There are two labels, so disagreeing with one means choosing the other: all six metrics are exact, and "
            "the gap in predictive equality is that in equal opportunity."
        )
    if not panel.labels.declared:
        yield (
            f"The labels are those seen in the data ({names}). If the system can give others, declare them all with "
            "`labels`: someone who disagrees may have had one of those in mind."
        )
    if spec.case is None and not spec.answers.apart:
        yield (
            "No case column was named, so each answer counts as a case of its own. If critics shared cases, the "
            "intervals are too short."
        )


def label_notes(values: Sequence[DisagreementValue], groupings: Sequence[Grouping]) -> Iterator[str]:
    """Yield which labels calibration cannot compare between all groups, because a group was never given them."""
    pooled = [r for r in values if r.metric == "calibration" and r.stakeholder is None]
    for grouping in groupings:
        never = _never_given([r for r in pooled if r.grouping == grouping.name and r.group in grouping.chosen])
        if never:
            more = f", and {len(never) - _NAMED_LABELS} more" if len(never) > _NAMED_LABELS else ""
            yield (
                f"By {grouping.name}, some labels were never given to a group: {', '.join(never[:_NAMED_LABELS])}"
                f"{more}. Calibration does not compare them there; statistical parity does."
            )


def _never_given(rates: Sequence[DisagreementValue]) -> list[str]:
    given = {r.label for r in rates if r.value is not None}
    return [f"“{r.label}” to {r.group}" for r in rates if r.value is None and r.label in given]


def _few_of_a_kind(panel: Panel) -> Iterator[str]:
    if panel.stakeholder is None:
        return
    critics = np.bincount(panel.stakeholder[panel.stakeholder >= 0], minlength=len(panel.stakeholders))
    few = [f"“{name}” ({n})" for name, n in zip(panel.stakeholders, critics.tolist(), strict=True) if 0 < n < FEW]
    if few:
        yield f"Few critics are of the kind {', '.join(few)}: intervals of that kind are a rough guide at best."


def _bound_notes(spec: DisagreementSpec, gaps: Sequence[DisagreementGap]) -> Iterator[str]:
    if spec.bounds == "published":
        yield (
            "The bounds are the published ones, kept for comparison. They are looser than need be, and the one for "
            "overall misclassification points the wrong way, so that the truth can lie outside."
        )
    elif any(gap.identified == "bounded" and not gap.sharp for gap in gaps):
        yield (
            "Some lower bounds of gaps hold but may be too low: with more than two groups, a tolerance, more than ten "
            "labels, or a direction and four labels or more. Upper bounds are as low as the answers allow."
        )
    yield (
        "A gap is the largest of several differences, each with its own noise; so it tends to come out too large, "
        "most of all with few answers. The interval takes that into account."
    )
