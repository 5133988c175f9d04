"""The improvability findings in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.audits.improvability.records import DecisionRecord, DeltaRecord, ReasonRecord, ValueRecord
from evenhand.audits.improvability.splits import Setting
from evenhand.core.findings import Finding, judge
from evenhand.core.numbers import shown
from evenhand.core.spec import Threshold
from evenhand.errors import count

_SHOWN = (
    "That the candidate is the best, or that the law requires it: only that an alternative exists which does better by "
    "these measures, in the population that the rows were drawn from."
)
_NOT_SHOWN = (
    "That no better algorithm exists: another rule, other features or more rows may find one. Not rejecting is no "
    "proof of necessity."
)


def make_findings(
    setting: Setting, decisions: Sequence[DecisionRecord], deltas: Sequence[DeltaRecord],
    values: Sequence[ValueRecord], reasons: Sequence[ReasonRecord],
) -> tuple[Finding, ...]:  # fmt: skip
    """Return one finding a candidate for fairness, and one for accuracy where it can be improved."""
    found: list[Finding] = []
    for name in setting.spec.candidates:
        reason = next((record for record in reasons if record.candidate == name), None)
        own = [record for record in deltas if record.candidate == name and record.test == setting.spec.fairness_test]
        decided = [record for record in decisions if record.candidate == name]
        found.append(_fairness(setting, decided, _of(own, "fairness"), values, reason))
        found += _accuracy(setting, _of(own, "joint_accuracy"))
    return tuple(found)


def _of(deltas: Sequence[DeltaRecord], target: str) -> DeltaRecord:
    return next(record for record in deltas if record.target == target)


def _fairness(
    setting: Setting, decisions: Sequence[DecisionRecord], largest: DeltaRecord, values: Sequence[ValueRecord],
    reason: ReasonRecord | None,
) -> Finding:  # fmt: skip
    spec = setting.spec
    own = [one for one in decisions if one.test == spec.fairness_test and one.target == "fairness"]
    claims = [_claim(setting, own[0], values)]
    for one in own[1:]:
        shown_or_not = "is shown" if one.rejected else "is not shown"
        claims.append(f"A gap smaller by {shown(one.delta, percent=True)} {shown_or_not} ({_p(one)}).")
    if largest.value:
        claims.append(
            f"At level {spec.alpha:g} the gap can be reduced by at least {shown(largest.value, percent=True)}."
        )
    if reason is not None:
        claims.append(reason.sentence)
    caveat = _SHOWN if largest.value is not None else _NOT_SHOWN
    return _finding(setting, largest, " ".join(claims), "improvable_fairness", caveat)


def _claim(setting: Setting, decision: DecisionRecord, values: Sequence[ValueRecord]) -> str:
    spec = setting.spec
    by = "" if decision.delta == 0 else f" by at least {shown(decision.delta, percent=True)}"
    whom = "for everyone together" if spec.accuracy_of == "everyone" else "for any group"
    if decision.rejected:
        start = f"{decision.candidate} is fairer than the status quo{by} without being less accurate {whom}"
    else:
        start = (
            f"It is not shown that {decision.candidate} is fairer than the status quo{by} without being less accurate "
            f"{whom}"
        )
    return f"{start}: {_gaps(setting, decision.candidate, values)} ({_p(decision)})."


def _p(decision: DecisionRecord) -> str:
    if decision.splits == 1:
        return f"p = {shown(decision.p_median)}, one split"
    return f"median p = {shown(decision.p_median)} over {count(decision.splits, 'split')}"


def _gaps(setting: Setting, candidate: str, values: Sequence[ValueRecord]) -> str:
    utility = setting.spec.fairness[0].name
    found = []
    for name in (None, candidate):
        own = [
            r.value for r in values if (r.candidate, r.utility) == (name, utility) and r.group in setting.sample.groups
        ]
        known = [value for value in own if value is not None]
        found.append(max(known) - min(known) if len(known) == len(own) and known else None)
    return f"the gap in {utility.replace('_', ' ')} is {shown(found[0])} against {shown(found[1])}"


def _accuracy(setting: Setting, largest: DeltaRecord) -> Iterator[Finding]:
    limited = _threshold(setting, "improvable_accuracy", largest.candidate) is not None
    if not largest.value and not limited:
        return
    whom = "everyone" if setting.spec.accuracy_of == "everyone" else "every group"
    by = shown(largest.value, percent=True)
    claim = (
        f"{largest.candidate} is more accurate for {whom} by at least {by} and no less fair."
        if largest.value
        else f"It is not shown that {largest.candidate} is more accurate for {whom}."
    )
    yield _finding(setting, largest, claim, "improvable_accuracy", _SHOWN if largest.value else _NOT_SHOWN)


def _threshold(setting: Setting, metric: str, candidate: str) -> Threshold | None:
    for threshold in setting.spec.thresholds:
        if threshold.metric == metric and threshold.model in (None, candidate):
            return threshold
    return None


def _finding(setting: Setting, largest: DeltaRecord, claim: str, metric: str, caveat: str) -> Finding:
    spec, rows = setting.spec, len(setting.sample)
    threshold = _threshold(setting, metric, largest.candidate)
    return Finding(
        audit="improvability", model=largest.candidate, grouping=setting.sample.grouping, stratum=None, metric=metric,
        kind="share", against="status_quo", claim=claim,
        sentence=f"{claim.removesuffix('.')}; level {spec.alpha:g}, n = {rows:,}.", unit="", value=largest.value,
        low=largest.low, high=largest.high, n=rows, threshold=threshold.in_words() if threshold else None,
        verdict=judge(threshold, largest.value, largest.low, largest.high), caveat=caveat,
    )  # fmt: skip
