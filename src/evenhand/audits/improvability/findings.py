"""The improvability findings in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.audits.improvability.notes import Shares, never_selected, selected_shares
from evenhand.audits.improvability.records import DecisionRecord, DeltaRecord, ReasonRecord, ValueRecord
from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.audits.improvability.splits import Inputs, Trial, Trials
from evenhand.audits.improvability.tables import JUDGED
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
    inputs: Inputs,
    trials: Trials,
    decisions: Sequence[DecisionRecord],
    deltas: Sequence[DeltaRecord],
    values: Sequence[ValueRecord],
    reasons: Sequence[ReasonRecord],
) -> tuple[Finding, ...]:
    """Return findings of each candidate: for fairness, and for accuracy where it can be improved; one a threshold."""
    found: list[Finding] = []
    for name in inputs.spec.candidates:
        reason = next((record for record in reasons if record.candidate == name), None)
        own = [record for record in deltas if record.candidate == name and record.test == JUDGED]
        decided = [record for record in decisions if record.candidate == name]
        found += _fairness(inputs, decided, _of(own, "fairness"), values, reason, trials[name])
        found += _accuracy(inputs, _of(own, "joint_accuracy"), selected_shares(trials[name]))
    return tuple(found)


def _of(deltas: Sequence[DeltaRecord], target: str) -> DeltaRecord:
    return next(record for record in deltas if record.target == target)


def _fairness(
    inputs: Inputs,
    decisions: Sequence[DecisionRecord],
    largest: DeltaRecord,
    values: Sequence[ValueRecord],
    reason: ReasonRecord | None,
    tested: Sequence[Trial],
) -> Iterator[Finding]:
    spec = inputs.spec
    own = [one for one in decisions if one.test == JUDGED and one.target == "fairness"]
    claims = [_claim(inputs, own[0], values, selected_shares(tested))]
    claims += [f"It selects nobody of {group} in at least one split." for group in never_selected(inputs, tested)]
    if own[0].rejected and not own[0].established:
        claims.append(f"Its own test rejects, but {count(len(spec.candidates), 'candidate')} were tried.")
    for one in own[1:]:
        shown_or_not = "is shown" if one.established else "is not shown"
        claims.append(f"A gap smaller by {shown(one.delta, percent=True)} {shown_or_not} ({_p(spec, one)}).")
    if largest.value:
        several = len(spec.candidates)
        together = f", with all {several} candidates allowed for" if several > 1 else ""
        claims.append(f"The gap can be reduced by at least {shown(largest.value, percent=True)}{together}.")
    if reason is not None:
        claims.append(reason.sentence)
    caveat = _SHOWN if largest.value is not None else _NOT_SHOWN
    yield from _judged(inputs, largest, " ".join(claims), "improvable_fairness", caveat)


def _claim(inputs: Inputs, decision: DecisionRecord, values: Sequence[ValueRecord], shares: Shares | None) -> str:
    spec = inputs.spec
    by = "" if decision.delta == 0 else f" by at least {shown(decision.delta, percent=True)}"
    whom = "for everyone together" if spec.test.accuracy_of == "everyone" else "for any group"
    if decision.established:
        start = f"{decision.candidate} is fairer than the status quo{by} without being less accurate {whom}"
    else:
        start = (
            f"It is not shown that {decision.candidate} is fairer than the status quo{by} without being less accurate "
            f"{whom}"
        )
    gaps = _gaps(inputs, decision.candidate, values)
    return f"{start}: {gaps}{_size(shares)} ({_p(spec, decision)})." if gaps else f"{start} ({_p(spec, decision)})."


def _size(shares: Shares | None) -> str:
    """Return a clause where candidate and status quo select different shares."""
    if shares is None or not shares.far_apart:
        return ""
    new, old = (shown(share, percent=True) for share in shares)
    return f", and it selects {new} of the rows instead of {old}"


def _p(spec: ImprovabilitySpec, decision: DecisionRecord) -> str:
    several = len(spec.candidates)
    adjusted = f"; adjusted for {several} candidates p = {shown(decision.p_adjusted)}" if several > 1 else ""
    if decision.splits == 1:
        return f"p = {shown(decision.value)}, one split{adjusted}"
    median = f"median p = {shown(decision.p_median)} over {count(decision.splits, 'split')}"
    return f"{median}; combined p = {shown(decision.value)}{adjusted}"


def _gaps(inputs: Inputs, candidate: str, values: Sequence[ValueRecord]) -> str:
    """Return every fairness utility's gap in words; empty where the candidate was never tested."""
    said: list[str] = []
    for utility in dict.fromkeys(utility.name for utility in inputs.spec.fairness):
        old, new = (_gap(inputs, name, utility, values) for name in (None, candidate))
        if new is not None:
            words = f"the gap in {utility.replace('_', ' ')} is {shown(new)}, against {shown(old)}"
            said.append(words if said else f"{words} under the status quo")
    return "; ".join(said)


def _gap(inputs: Inputs, candidate: str | None, utility: str, values: Sequence[ValueRecord]) -> float | None:
    groups = inputs.sample.groups
    own = [r.value for r in values if (r.candidate, r.utility) == (candidate, utility) and r.group in groups]
    known = [value for value in own if value is not None]
    return max(known) - min(known) if len(known) == len(own) and known else None


def _accuracy(inputs: Inputs, largest: DeltaRecord, shares: Shares | None) -> Iterator[Finding]:
    limited = _limits_of(inputs, "improvable_accuracy", largest.candidate) != [None]
    if not largest.value and not limited:
        return
    whom = "everyone" if inputs.spec.test.accuracy_of == "everyone" else "every group"
    by = shown(largest.value, percent=True)
    claim = (
        f"{largest.candidate} is more accurate for {whom} by at least {by} and no less fair{_size(shares)}."
        if largest.value
        else f"It is not shown that {largest.candidate} is more accurate for {whom}{_size(shares)}."
    )
    yield from _judged(inputs, largest, claim, "improvable_accuracy", _SHOWN if largest.value else _NOT_SHOWN)


def _limits_of(inputs: Inputs, metric: str, candidate: str) -> list[Threshold | None]:
    """Return the thresholds for something, or one None where there is none."""
    found = [t for t in inputs.spec.thresholds if t.metric == metric and t.model in (None, candidate)]
    return [*found] or [None]


def _judged(inputs: Inputs, largest: DeltaRecord, claim: str, metric: str, caveat: str) -> Iterator[Finding]:
    for threshold in _limits_of(inputs, metric, largest.candidate):
        yield _finding(inputs, largest, claim, metric, caveat, threshold)


def _finding(
    inputs: Inputs, largest: DeltaRecord, claim: str, metric: str, caveat: str, threshold: Threshold | None
) -> Finding:
    spec, rows = inputs.spec, len(inputs.sample)
    return Finding(
        audit="improvability",
        model=largest.candidate,
        grouping=inputs.sample.grouping,
        stratum=None,
        metric=metric,
        kind="share",
        against="status_quo",
        claim=claim,
        sentence=f"{claim.removesuffix('.')}; level {spec.test.alpha:g}, n = {rows:,}.",
        unit="",
        value=largest.value,
        low=largest.low,
        high=largest.high,
        n=rows,
        threshold=threshold.in_words() if threshold else None,
        verdict=judge(threshold, largest.value, largest.low, largest.high),
        caveat=f"{caveat}{_known_only(inputs)}",
    )


def _known_only(inputs: Inputs) -> str:
    """Return a sentence for the caveat where rows without an outcome were left out."""
    lost = inputs.sample.unlabelled
    return f" It holds for people whose outcome is known: {count(lost, 'row')} without were left out." if lost else ""
