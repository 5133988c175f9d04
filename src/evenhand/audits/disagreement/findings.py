"""The disagreement findings in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from evenhand.audits.disagreement.notions import WORDS, caveat_of
from evenhand.audits.disagreement.records import GapRecord, RateRecord, StakeholderRecord
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.audits.disagreement.stakeholders import DISAGREEMENT
from evenhand.core.findings import Finding, judge, shown_amount
from evenhand.core.numbers import shown
from evenhand.core.spec import Threshold
from evenhand.errors import ConfigError, count

Key = tuple[str, str | None, str, str | None, str]
LEAST_CRITICS = 5
"""Critics below which no verdict is given, whatever the interval."""
_NAMED = 3
_DIFFER_CAVEAT = "That two kinds of people see a case differently does not say which of them is right."


def make_findings(
    gaps: Sequence[GapRecord],
    rates: Sequence[RateRecord],
    stakeholders: Sequence[StakeholderRecord],
    heard: Mapping[tuple[str, str | None], int],
    spec: DisagreementSpec,
) -> tuple[Finding, ...]:
    """Return a finding for each gap that a threshold limits, for the gaps of all critics, and for kinds of critics.

    A gap that is the same number as another's is told once, unless a threshold asks for it.
    """
    values = {(r.grouping, r.stakeholder, r.notion, r.label, r.group): r for r in rates}
    shared = [gap for gap in gaps if gap.critic is None]
    findings: list[Finding] = []
    judged: set[int] = set()
    for threshold in spec.thresholds:
        matching = [gap for gap in shared if _fits(threshold, gap)]
        if not matching:
            raise ConfigError(
                f"the threshold for {threshold.metric!r} ({threshold.in_words()}) limits nothing: no such gap was "
                "computed; check its metric, grouping and stratum (the kind of critics)."
            )
        judged.update(id(gap) for gap in matching)
        findings += [
            _unless_few(_gap_finding(gap, threshold, values, spec), heard[gap.grouping, gap.stakeholder])
            for gap in matching
        ]
    pooled = [gap for gap in shared if gap.stakeholder is None and gap.same_as is None and id(gap) not in judged]
    findings += [_gap_finding(gap, None, values, spec) for gap in pooled]
    return (*findings, *_difference_findings(stakeholders, spec))


def _unless_few(finding: Finding, critics: int) -> Finding:
    """Take back a verdict that rests on too few critics, who may all be of one mind."""
    if critics >= LEAST_CRITICS:
        return finding
    why = f"; {count(critics, 'critic is', 'critics are')} too few for a verdict, which needs {LEAST_CRITICS}."
    sentence = f"{finding.sentence.removesuffix('.')}{why}"
    return replace(finding, verdict="insufficient_evidence", sentence=sentence)


def _fits(threshold: Threshold, gap: GapRecord) -> bool:
    return (
        gap.notion == threshold.metric
        and threshold.grouping in (None, gap.grouping)
        and gap.stakeholder == threshold.stratum
    )


def _gap_finding(
    gap: GapRecord, threshold: Threshold | None, values: Mapping[Key, RateRecord], spec: DisagreementSpec
) -> Finding:
    claim, where = _claim(gap, values)
    finding = Finding(
        audit="disagreement",
        model=None,
        grouping=gap.grouping,
        stratum=gap.stakeholder,
        metric=gap.notion,
        kind="difference",
        against="worst_pair",
        claim=f"{claim}{where}.",
        sentence=f"{claim}{where}.",
        unit="points",
        value=gap.value,
        low=gap.low,
        high=gap.high,
        n=gap.n,
        threshold=threshold.in_words(points=True) if threshold else None,
        verdict=judge(threshold, gap.value, gap.low, gap.high),
        caveat=caveat_of(gap.notion, spec.bounds),
    )
    if gap.value is None:
        return finding
    amount = "" if gap.kind == "bounded" else f", a gap of {100 * gap.value:.1f} percentage points"
    sure = f"{100 * spec.confidence:g}% interval {shown_amount(finding)[1]}" if gap.low is not None else gap.status
    return replace(finding, sentence=f"{claim}{amount} ({sure}){where}; {count(gap.n, 'answer')}.")


def _claim(gap: GapRecord, values: Mapping[Key, RateRecord]) -> tuple[str, str]:
    """Return what was found, and where the largest difference may be when only bounds are known."""
    title = WORDS[gap.notion].in_sentence
    who = "critics" if gap.stakeholder is None else f"critics of the kind “{gap.stakeholder}”"
    if gap.value is None:
        return f"By {gap.grouping}, as {who} see it: {title} is {gap.status}", ""
    if gap.kind == "bounded":
        label = "" if gap.label is None else f"for “{gap.label}” "
        return (
            f"By {gap.grouping}, {title} as {who} see it differs by {_points(gap.lower)} to "
            f"{_points(gap.upper)} percentage points",
            f", at most {label}between {gap.group_high} and {gap.group_low}",
        )
    ends = [shown(values[_key(gap, group)].value, percent=True) for group in (gap.group_high, gap.group_low)]
    return f"By {gap.grouping}, {_exactly(gap, who, *ends)}", ""


def _points(value: float | None) -> str:
    return f"{100 * (value or 0.0):.1f}".replace("-", "−")


def _key(gap: GapRecord, group: str | None) -> Key:
    return (gap.grouping, gap.stakeholder, gap.notion, gap.label, group or "")


def _exactly(gap: GapRecord, who: str, high: str, low: str) -> str:
    """Say what the two groups' rates are, in words a person who answered would know."""
    first, second, label = gap.group_high, gap.group_low, f"“{gap.label}”"
    same = f"of what {who} would call {label} the system"
    forms = {
        "statistical_parity": f"the system gives {label} in {high} of answers on {first} and {low} on {second}",
        "calibration": f"{who} agree with {high} of the {label} given to {first} and {low} of those to {second}",
        "accuracy_equality": f"{who} agree with {high} of the decisions on {first} and {low} of those on {second}",
        "equal_opportunity": f"{same} calls {high} so among {first} and {low} among {second}",
        "predictive_equality": (
            f"of what {who} would not call {label} the system calls {high} so among {first} and {low} among {second}"
        ),
        "overall_misclassification": f"{same} does not call {high} so among {first} and {low} among {second}",
        "tolerant_calibration": (
            f"{who} find {high} of the {label} given to {first} near enough and {low} of those to {second}"
        ),
        "tolerant_accuracy": (
            f"{who} find {high} of the decisions on {first} near enough and {low} of those on {second}"
        ),
    }
    return forms[gap.notion]


def _difference_findings(records: Sequence[StakeholderRecord], spec: DisagreementSpec) -> Iterator[Finding]:
    """Yield for each grouping where two kinds of critics differ most surely."""
    for grouping in dict.fromkeys(record.grouping for record in records):
        own = [r for r in records if (r.grouping, r.metric) == (grouping, DISAGREEMENT)]
        tested = [r for r in own if r.p_adjusted is not None]
        untested = _untested([r for r in own if r.p_adjusted is None and r.value != 0])
        if tested:
            yield _difference_finding(grouping, tested, untested, spec)
        elif untested:
            claim = f"By {grouping}, no difference between kinds of critics could be tested: {untested}."
            yield replace(_no_difference(grouping, own[0].cases), claim=claim, sentence=claim)


def _untested(records: Sequence[StakeholderRecord]) -> str:
    """Say which differences could not be tested: what is not known to be 0."""
    parts = []
    for r in records:
        pair = f"“{r.stakeholder_a}” and “{r.stakeholder_b}”"
        where = "" if r.label is None else f" about “{r.label}” given to {r.group}"
        differ = (
            "cannot be compared" if r.value is None else f"differ by {100 * abs(r.value):.1f} points without a test"
        )
        parts.append(f"{pair} {differ}{where}")
    more = f", and {len(parts) - _NAMED} more" if len(parts) > _NAMED else ""
    return ", ".join(parts[:_NAMED]) + more


def _no_difference(grouping: str, n: int) -> Finding:
    return Finding(
        audit="disagreement",
        model=None,
        grouping=grouping,
        stratum=None,
        metric=DISAGREEMENT,
        kind="difference",
        against="worst_pair",
        claim="",
        sentence="",
        unit="points",
        value=None,
        low=None,
        high=None,
        n=n,
        threshold=None,
        verdict="no_threshold",
        caveat=_DIFFER_CAVEAT,
    )


def _difference_finding(
    grouping: str, tested: Sequence[StakeholderRecord], untested: str, spec: DisagreementSpec
) -> Finding:
    surely = [r for r in tested if (r.p_adjusted or 0.0) < 1.0 - spec.confidence]
    most = min(tested, key=lambda r: (r.p_adjusted or 0.0, -abs(r.statistic or 0.0)))
    p = "below 0.001" if (most.p_adjusted or 0.0) < 0.001 else f"= {most.p_adjusted:.3f}"
    finding = _no_difference(grouping, most.cases)
    rest = f"; not tested: {untested}" if untested else ""
    if not surely:
        what = "of what could be compared, nothing differs beyond chance between" if untested else "no"
        who = "kinds of critics" if untested else "two kinds of critics differ beyond chance"
        claim = f"By {grouping}, {what} {who} in how often they disagree"
        sure = f"least adjusted p {p}; {count(len(tested), 'test')}"
        return replace(finding, claim=f"{claim}{rest}.", sentence=f"{claim} ({sure}){rest}.")
    value, low, high = most.value or 0.0, most.low or 0.0, most.high or 0.0
    pair = (most.stakeholder_a, most.stakeholder_b)
    if value < 0:  # the kind that disagrees more stands first
        value, low, high, pair = -value, -high, -low, pair[::-1]
    claim = (
        f"By {grouping}, the critics “{pair[0]}” and “{pair[1]}” differ most surely about “{most.label}” given to "
        f"{most.group}: on the same cases the former disagree {100 * value:.1f} percentage points more often"
    )
    finding = replace(finding, value=value, low=low, high=high)
    verb = "is" if len(surely) == 2 else "are"
    more = f"; {len(surely) - 1} more of {len(tested)} such differences {verb} beyond chance" if surely[1:] else ""
    sure = f"{100 * spec.confidence:g}% interval {shown_amount(finding)[1]}, adjusted p {p}"
    sentence = f"{claim} ({sure}){more}; {count(most.cases, 'case')} seen by both."
    return replace(finding, claim=f"{claim}{more}.", sentence=sentence)
