"""The improvability findings: what is said of each candidate, and why no improvement is shown where none is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.audits.improvability.metrics import ACCURACY, FAIRNESS, utility_metric
from evenhand.audits.improvability.notes import Shares, never_selected, selected_shares
from evenhand.audits.improvability.result import (
    JUDGED,
    Decision,
    ImprovabilityValue,
    Margin,
    PowerRecord,
    Reason,
    ReasonRecord,
    SampleSizeRecord,
)
from evenhand.audits.improvability.spec import STATUS_QUO, ImprovabilitySpec
from evenhand.audits.improvability.splits import Inputs, Trial, Trials
from evenhand.core.findings import Claim
from evenhand.core.formats import show, show_p
from evenhand.core.metrics import Metric
from evenhand.core.records import OVERALL
from evenhand.errors import count

SENTENCES = {
    "fairer": "{model} is fairer than the status quo without being less accurate {whom}.",
    "fairer_by": (
        "{model} is fairer than the status quo without being less accurate {whom}: the gap shrinks by at least "
        "{value:percent}."
    ),
    "not_fairer": "It is not shown that {model} is fairer than the status quo without being less accurate {whom}.",
    "not_fairer_by": (
        "It is not shown that {model} is fairer than the status quo by at least {margin:percent} without being less "
        "accurate {whom}."
    ),
    "more_accurate": "{model} is more accurate for {whom} by at least {value:percent} and no less fair.",
    "not_more_accurate": "It is not shown that {model} is more accurate for {whom}.",
}


def make_claims(
    inputs: Inputs,
    trials: Trials,
    decisions: Sequence[Decision],
    margins: Sequence[Margin],
    values: Sequence[ImprovabilityValue],
    reasons: Sequence[ReasonRecord],
) -> Iterator[Claim]:
    """Yield what can be told of each candidate: of fairness always, of accuracy where it can be improved."""
    largest = {(margin.model, margin.metric): margin for margin in margins if _is_joint(margin)}
    why = {reason.model: reason.sentence for reason in reasons}
    for name, each in trials.items():
        own = [decision for decision in decisions if decision.model == name and _is_joint(decision)]
        asked = [decision for decision in own if decision.metric == FAIRNESS]
        gaps = _gaps(inputs, name, values)
        yield _fairness(inputs, each, largest[name, FAIRNESS], asked, gaps, why.get(name))
        yield _accuracy(inputs, each, largest[name, ACCURACY], why.get(name))


def _is_joint(record: Decision | Margin) -> bool:
    """Tell whether a record is of the signed test, and of all that is tested together."""
    return (record.test, record.group) == (JUDGED, OVERALL)


def _fairness(
    inputs: Inputs, trials: Sequence[Trial], largest: Margin, decisions: Sequence[Decision], gaps: str, why: str | None
) -> Claim:
    spec, first = inputs.spec, decisions[0]
    if first.established:
        sentence_id = "fairer_by" if largest.value else "fairer"
    else:
        sentence_id = "not_fairer" if first.margin == 0 else "not_fairer_by"
    p = _p(spec, first)
    aside = [f"{gaps}{_size(selected_shares(trials))} ({p})." if gaps else f"{p}."]
    aside += [f"It selects nobody of {group} in at least one split." for group in never_selected(inputs, trials)]
    if first.rejected and not first.established:
        aside.append(f"Its own test rejects, but {count(len(spec.candidates), 'candidate')} were tried.")
    aside += [_further(spec, decision) for decision in decisions[1:]]
    whom = "for everyone together" if spec.test.accuracy_of == "everyone" else "for any group"
    arguments = {"model": largest.model, "whom": whom, "value": largest.value, "margin": first.margin}
    return _claim(inputs, largest, sentence_id, arguments, aside, why, headline=True)


def _further(spec: ImprovabilitySpec, decision: Decision) -> str:
    shown = "is shown" if decision.established else "is not shown"
    return f"A gap smaller by {show(decision.margin, 'percent')} {shown} ({_p(spec, decision)})."


def _accuracy(inputs: Inputs, trials: Sequence[Trial], largest: Margin, why: str | None) -> Claim:
    size = _size(selected_shares(trials)).removeprefix(", and ")
    whom = "everyone" if inputs.spec.test.accuracy_of == "everyone" else "every group"
    arguments = {"model": largest.model, "whom": whom, "value": largest.value}
    sentence_id = "more_accurate" if largest.value else "not_more_accurate"
    aside = [f"{size}."] if size else []
    return _claim(inputs, largest, sentence_id, arguments, aside, why, headline=bool(largest.value))


def _claim(
    inputs: Inputs,
    largest: Margin,
    sentence_id: str,
    arguments: dict[str, str | float | None],
    aside: Sequence[str],
    why: str | None,
    *,
    headline: bool,
) -> Claim:
    several, lost = len(inputs.spec.candidates), inputs.sample.unlabelled
    known = f"It holds for people whose outcome is known: {count(lost, 'row')} without were left out."
    sentences = [*aside, known] if lost else aside
    return Claim(
        records=(largest,),
        sentence_id=sentence_id,
        undefined_id=sentence_id,
        arguments=arguments,
        headline=headline,
        aside=" ".join(f"{sentence[:1].upper()}{sentence[1:]}" for sentence in sentences),
        family=f"all {several} candidates" if several > 1 else None,
        withheld=why if largest.value is None else None,
    )


def _size(shares: Shares | None) -> str:
    """Return a clause where candidate and status quo select different shares."""
    if shares is None or not shares.far_apart:
        return ""
    new, old = (show(share, "percent") for share in shares)
    return f", and it selects {new} of the rows instead of {old}"


def _p(spec: ImprovabilitySpec, decision: Decision) -> str:
    if decision.p_value is None or decision.p_median is None or decision.p_adjusted is None:
        return decision.status
    several, level = len(spec.candidates), f"; level {spec.test.alpha:g}"
    adjusted = f"; adjusted for {several} candidates {show_p(decision.p_adjusted)}" if several > 1 else ""
    if decision.splits == 1:
        return f"{show_p(decision.p_value)}, one split{adjusted}{level}"
    median = f"median {show_p(decision.p_median)} over {count(decision.splits, 'split')}"
    return f"{median}; combined {show_p(decision.p_value)}{adjusted}{level}"


def _gaps(inputs: Inputs, candidate: str, values: Sequence[ImprovabilityValue]) -> str:
    """Return every fairness utility's gap in words; empty where the candidate was never tested."""
    clauses: list[str] = []
    for utility in dict.fromkeys(inputs.spec.fairness):
        old, new = (gap_between(values, name, utility.name) for name in (STATUS_QUO, candidate))
        if new is not None:
            metric = utility_metric(utility)
            clause = (
                f"the gap in {utility.name.replace('_', ' ')} is {_amount(new, metric)}, against {_amount(old, metric)}"
            )
            clauses.append(clause if clauses else f"{clause} under the status quo")
    return "; ".join(clauses)


def _amount(gap: float | None, metric: Metric) -> str:
    style = metric.style("difference")
    return f"{show(gap, style)} points" if style == "points" else show(gap, style)


def gap_between(values: Sequence[ImprovabilityValue], model: str, metric: str) -> float | None:
    """Return by how much the groups' values differ under a model; None where one of them is not known."""
    own = [v.value for v in values if (v.model, v.metric) == (model, metric) and v.group != OVERALL]
    known = [value for value in own if value is not None]
    return max(known) - min(known) if len(known) == len(own) and known else None


# Why no improvement is shown ------------------------------------------------------------------------------------------


def reason_records(
    inputs: Inputs,
    trials: Trials,
    decisions: Sequence[Decision],
    power: Sequence[PowerRecord],
    sizes: Sequence[SampleSizeRecord],
) -> Iterator[ReasonRecord]:
    """Yield, for each candidate without an established improvement at the smallest margin, the plausible reason."""
    shown = _shown_at(min(inputs.spec.test.margins), decisions)
    here = {(record.model, record.scenario): record.value for record in power if record.n == len(inputs.sample)}
    needed = {size.model: size.n for size in sizes if size.scenario == "found"}
    for name in (name for name in trials if name not in shown):
        powers = [trial.power for trial in trials[name]]
        improved = sum(each is not None and each.improved for each in powers)
        yield _reason(inputs, name, improved, (here[name, "found"], here[name, "planned"]), needed[name])


def _shown_at(margin: float, decisions: Sequence[Decision]) -> set[str]:
    """Return the candidates whose improvement is established at a margin."""
    return {d.model for d in decisions if d.established and (d.metric, d.margin) == (FAIRNESS, margin)}


def _reason(
    inputs: Inputs, name: str, improved: int, power: tuple[float | None, float | None], needed: int | None
) -> ReasonRecord:
    found, planned = power
    reason = plausible_reason(improved, inputs.spec.test.splits, planned, inputs.spec.plan.power, needed)
    return ReasonRecord(
        model=name,
        reason=reason,
        improved_splits=improved,
        splits=inputs.spec.test.splits,
        power_found=found,
        power_planned=planned,
        n_needed=needed,
        sentence=_reason_sentence(inputs, reason, name, improved, planned, needed),
    )


def plausible_reason(improved: int, splits: int, planned: float | None, wanted: float, needed: int | None) -> Reason:
    """Return the reason that the numbers make plausible: too few rows, no better algorithm found, or either."""
    if 2 * improved > splits:
        return "too_few_rows" if needed is not None else "unclear"
    return "not_found" if planned is not None and planned >= wanted else "unclear"


def _reason_sentence(
    inputs: Inputs, reason: Reason, name: str, improved: int, planned: float | None, needed: int | None
) -> str:
    spec, splits = inputs.spec, inputs.spec.test.splits
    if planned is None:
        return f"In no split was there a candidate of {name} to test, so nothing is known of how it would do."
    several = len(spec.candidates)
    beyond = f"beyond chance with {several} candidates tried" if several > 1 else "beyond chance"
    where = f"in {improved} of {count(splits, 'split')}"
    better = f"The candidate {name} is better than the status quo on the test rows"
    if reason == "too_few_rows":
        adjusted = f", adjusted for all {several} candidates" if several > 1 else ""
        return (
            f"{better} {where}, but not {beyond}. The plausible reason is too few rows: if the improvement is real and "
            f"of this size, about {needed:,} rows would give the test {show(spec.plan.power, 'percent')} power"
            f"{adjusted}, against {len(inputs.sample):,} here."
        )
    if 2 * improved > splits:
        return (
            f"{better} {where}, but not {beyond}, and in most splits by so little that no number of rows would give "
            "the test the power wanted. The reason is unclear."
        )
    seldom = f"{better} {where} only." if improved else f"{better} in no split."
    chance = (
        f"An improvement as planned (accuracy up by {show(spec.plan.gain, 'percent')} and a gap smaller by "
        f"{show(spec.plan.reduction, 'percent')}) would be found with a chance of {show(planned, 'percent')}."
    )
    if reason == "not_found":
        return (
            f"{seldom} {chance} So too few rows are not the likely reason: this rule did not find a better algorithm. "
            "There may be none among those it can reach; another rule or other features may still find one."
        )
    return (
        f"{seldom} {chance} So both reasons remain: the rule may not have found a better algorithm that exists, and "
        "with so few rows the test could have missed it."
    )
