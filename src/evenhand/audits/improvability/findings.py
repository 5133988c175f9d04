"""What is said of each candidate, why no improvement is shown where none is, and remarks that a reader needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from evenhand.audits.improvability import result as records
from evenhand.audits.improvability.gather import Sample, telling_features
from evenhand.audits.improvability.metrics import ACCURACY, FAIRNESS, utility_metric
from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.audits.improvability.splits import Inputs, Trial, Trials
from evenhand.core.families import Clarity
from evenhand.core.findings import Claim
from evenhand.core.formats import show, show_p
from evenhand.core.metrics import Metric
from evenhand.core.records import OVERALL
from evenhand.errors import all_of, count
from evenhand.table.roles import TIMES

_MOST_REMARKS = 5

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
    decisions: Sequence[records.Decision],
    margins: Sequence[records.Margin],
    reasons: Sequence[records.ReasonRecord],
) -> Iterator[Claim]:
    """Yield what can be told of each candidate: of fairness always, of accuracy where it can be improved."""
    largest = {(margin.model, margin.metric): margin for margin in margins if _is_joint(margin)}
    asked = [decision for decision in decisions if _is_joint(decision) and decision.metric == FAIRNESS]
    why = {reason.model: reason.sentence for reason in reasons}
    for name, each in trials.items():
        candidate = _Candidate(inputs, each, why.get(name))
        decided = [decision for decision in asked if decision.model == name]
        yield candidate.fairness(largest[name, FAIRNESS], largest[name, ACCURACY], decided, _gaps(inputs, each))
        yield candidate.accuracy(largest[name, ACCURACY])


def _is_joint(record: records.Decision | records.Margin) -> bool:
    """Tell whether a record is of the signed test, and of all that is tested together."""
    return (record.test, record.group) == (records.JUDGED, OVERALL)


@dataclass(frozen=True, eq=False)
class _Candidate:
    """One candidate's trials, and why no improvement is shown where none is."""

    inputs: Inputs
    trials: Sequence[Trial]
    why: str | None

    def fairness(
        self, largest: records.Margin, accuracy: records.Margin, decisions: Sequence[records.Decision], gaps: str
    ) -> Claim:
        spec, first = self.inputs.spec, decisions[0]
        if first.established:
            sentence_id = "fairer_by" if largest.value else "fairer"
        else:
            sentence_id = "not_fairer" if first.margin == 0 else "not_fairer_by"
        aside = [*self._with_gaps(first, gaps), *map(self._at_margin, decisions[1:])]
        if first.established and accuracy.value:
            aside.append(f"Accuracy improves for {self.everyone} by at least {show(accuracy.value, 'percent')}.")
        whom = "for everyone together" if spec.test.accuracy_of == "everyone" else "for any group"
        claim = self.claim(largest, sentence_id, aside, whom=whom, margin=first.margin)
        unclear = {"sentence_id": "not_fairer", "aside": f"{claim.aside} With all findings of the run it is not clear."}
        when: Mapping[Clarity, Mapping[str, Any]] = {"unclear": unclear} if first.established else {}
        return replace(claim, headline=True, p_value=first.p_value, when=when)

    def _with_gaps(self, decision: records.Decision, gaps: str) -> Iterator[str]:
        """Yield what stands beside a decision: the gaps, the p-value, and who is never selected."""
        spec, p = self.inputs.spec, _p(self.inputs, decision)
        size = f", and {self.size}" if self.size else ""
        yield f"{gaps}{size} ({p})." if gaps else f"{p}."
        for group in never_selected(self.inputs, self.trials):
            yield f"It selects nobody of {group}{_in_some_split(spec)}."
        if decision.rejected and not decision.established:
            yield f"Its own test rejects, but {count(len(spec.candidates), 'candidate')} were tried."

    def _at_margin(self, decision: records.Decision) -> str:
        shown = "is shown" if decision.established else "is not shown"
        return f"A gap smaller by {show(decision.margin, 'percent')} {shown} ({_p(self.inputs, decision)})."

    def accuracy(self, largest: records.Margin) -> Claim:
        """Return what a threshold may ask of accuracy; at a margin of 0 it is the hypothesis of fairness."""
        sentence_id = "more_accurate" if largest.value else "not_more_accurate"
        aside = [f"{self.size}."] if self.size else []
        return self.claim(largest, sentence_id, aside, whom=self.everyone)

    @property
    def everyone(self) -> str:
        """Whose accuracy must improve."""
        return "everyone" if self.inputs.spec.test.accuracy_of == "everyone" else "every group"

    def claim(self, largest: records.Margin, sentence_id: str, aside: list[str], *, whom: str, **more: float) -> Claim:
        several, lost = len(self.inputs.spec.candidates), self.inputs.sample.unlabelled
        if lost:
            aside.append(f"It holds for people whose outcome is known: {count(lost, 'row')} without were left out.")
        return Claim(
            records=(largest,),
            sentence_id=sentence_id,
            undefined_id=sentence_id,
            arguments={"model": largest.model, "whom": whom, "value": largest.value, **more},
            aside=" ".join(map(_capitalised, aside)),
            family=all_of(several, "candidates") if several > 1 else None,
            withheld=self.why if largest.value is None else None,
        )

    @property
    def size(self) -> str:
        """A clause where candidate and status quo select different shares."""
        shares = selected_shares(self.trials)
        if shares is None or not shares.far_apart:
            return ""
        new, old = (show(share, "percent") for share in shares)
        return f"it selects {new} of the rows instead of {old}"


def _capitalised(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}"


def _in_some_split(spec: ImprovabilitySpec) -> str:
    return " in at least one split" if spec.test.design == "splits" else ""


def _p(inputs: Inputs, decision: records.Decision) -> str:
    spec = inputs.spec
    if decision.p_value is None or decision.p_median is None or decision.p_adjusted is None:
        return decision.status
    several, level = len(spec.candidates), f"; level {spec.test.alpha:g}"
    adjusted = f"; adjusted for {several} candidates {show_p(decision.p_adjusted)}" if several > 1 else ""
    if spec.test.design == "one_pass":
        fitted = f", fitted in {count(spec.test.steps, 'step')}" if spec.candidates[decision.model].refits else ""
        return f"{show_p(decision.p_value)}, one pass through {len(inputs.sample):,} rows{fitted}{adjusted}{level}"
    if decision.splits == 1:
        return f"{show_p(decision.p_value)}, one split{adjusted}{level}"
    median = f"median {show_p(decision.p_median)} over {count(decision.splits, 'split')}"
    paper = f"; by the paper's rule {'shown' if decision.rejected_by_median else 'not shown'}"
    return f"{median}; combined {show_p(decision.p_value)}{adjusted}{level}{paper}"


def _gaps(inputs: Inputs, trials: Sequence[Trial]) -> str:
    """Return every fairness utility's gap on the candidate's test rows in words; empty where it was never tested."""
    tested = [trial.estimates.values for trial in trials if trial.piece.status == "ok"]
    if not tested:
        return ""
    clauses: list[str] = []
    for utility, k in dict(zip(inputs.spec.fairness, inputs.spec.criteria.fairness_index, strict=True)).items():
        old, new = (_amount(gap, utility_metric(utility)) for gap in np.ptp(np.mean(tested, axis=0)[:-1, k], axis=0))
        clause = f"the gap in {utility.name.replace('_', ' ')} is {new}, against {old}"
        clauses.append(clause if clauses else f"{clause} under the status quo")
    return "; ".join(clauses)


def _amount(gap: float, metric: Metric) -> str:
    style = metric.style("difference")
    return f"{show(gap, style)} points" if style == "points" else show(gap, style)


# Why no improvement is shown ------------------------------------------------------------------------------------------


def reason_records(
    inputs: Inputs,
    trials: Trials,
    decisions: Sequence[records.Decision],
    power: Sequence[records.PowerRecord],
    sizes: Sequence[records.SampleSizeRecord],
) -> Iterator[records.ReasonRecord]:
    """Yield, for each candidate without an established improvement at the smallest margin, the plausible reason."""
    test, plan = inputs.spec.test, inputs.spec.plan
    shown = _shown_at(min(test.margins), decisions)
    here = {(record.model, record.scenario): record.value for record in power if record.n == len(inputs.sample)}
    needed = {(size.model, size.scenario): size.n for size in sizes}
    for name in (name for name in trials if name not in shown):
        improved = sum(trial.tests.power is not None and trial.tests.power.improved for trial in trials[name])
        planned, splits = here[name, "planned"], len(trials[name])
        reason = plausible_reason(improved, splits, planned, plan.power, needed[name, "found"])
        if all(trial.unchanged for trial in trials[name]):
            reason = "unchanged"
        rows = _Needed(needed[name, "found"], needed[name, "planned"])
        yield records.ReasonRecord(
            model=name,
            reason=reason,
            improved_splits=improved,
            splits=splits,
            power_found=here[name, "found"],
            power_planned=planned,
            n_needed=rows.found,
            sentence=_reason_sentence(inputs, reason, name=name, improved=improved, planned=planned, needed=rows),
        )


class _Needed(NamedTuple):
    """The rows that would show an improvement as it was found, and as it was planned; None where no number would."""

    found: int | None
    planned: int | None


def _shown_at(margin: float, decisions: Sequence[records.Decision]) -> set[str]:
    """Return the candidates whose improvement is established at a margin."""
    return {d.model for d in decisions if d.established and (d.metric, d.margin) == (FAIRNESS, margin)}


def plausible_reason(
    improved: int, splits: int, planned: float | None, wanted: float, needed: int | None
) -> records.Reason:
    """Return the reason that the numbers make plausible: too few rows, no better algorithm found, or either."""
    if 2 * improved > splits:
        return "too_few_rows" if needed is not None else "unclear"
    return "not_found" if planned is not None and planned >= wanted else "unclear"


def _reason_sentence(
    inputs: Inputs, reason: records.Reason, *, name: str, improved: int, planned: float | None, needed: _Needed
) -> str:
    spec, splits = inputs.spec, inputs.spec.test.splits
    one_pass = spec.test.design == "one_pass"
    if reason == "unchanged":
        return f"The candidate {name} decides every row as the status quo does, so there is nothing to compare."
    if planned is None:
        nowhere = "step" if one_pass else "split"
        return f"In no {nowhere} was there a candidate of {name} to test, so nothing is known of how it would do."
    where = "" if one_pass else f" in {improved} of {count(splits, 'split')}"
    better = f"The candidate {name} is better than the status quo on {'these' if one_pass else 'the test'} rows"
    if 2 * improved > (1 if one_pass else splits):
        return f"{better}{where}, but not beyond chance{_why_not_beyond(inputs, reason, needed.found)}"
    seldom = f"{better}{where} only." if improved else f"{better} in no split."
    if one_pass:
        seldom = f"The candidate {name} is not better than the status quo in all measures on these rows."
    chance = (
        f"An improvement as planned (accuracy up by {show(spec.plan.gain, 'percent')} and a gap smaller by "
        f"{show(spec.plan.reduction, 'percent')}) would be found with a chance of {show(planned, 'percent')}."
    )
    if reason == "not_found":
        return (
            f"{seldom} {chance} So too few rows are not the likely reason: this rule did not find a better algorithm. "
            "There may be none among those it can reach; another rule or other features may still find one."
        )
    power = show(spec.plan.power, "percent")
    enough = f" About {needed.planned:,} rows would raise it to {power}." if needed.planned is not None else ""
    return (
        f"{seldom} {chance}{enough} So both reasons remain: the rule may not have found a better algorithm that "
        "exists, and with so few rows the test could have missed it."
    )


def _why_not_beyond(inputs: Inputs, reason: records.Reason, needed: int | None) -> str:
    """Return the rest of a sentence on a candidate that is better, but not beyond chance."""
    spec, several = inputs.spec, len(inputs.spec.candidates)
    tried = f" with {several} candidates tried" if several > 1 else ""
    adjusted = f", adjusted for all {several} candidates" if several > 1 else ""
    if reason == "too_few_rows":
        return (
            f"{tried}. The plausible reason is too few rows: if the improvement is real and of this size, about "
            f"{needed:,} rows would give the test {show(spec.plan.power, 'percent')} power{adjusted}, against "
            f"{len(inputs.sample):,} here."
        )
    mostly = "" if spec.test.design == "one_pass" else " in most splits"
    return (
        f"{tried}, and{mostly} by so little that no number of rows would give the test the power wanted. The reason is "
        "unclear."
    )


# Remarks --------------------------------------------------------------------------------------------------------------


def make_notes(inputs: Inputs, trials: Trials) -> Iterator[str]:
    """Yield the remarks."""
    spec, sample = inputs.spec, inputs.sample
    if spec.test.fairness == "published":
        yield (
            "The published fairness test rejects true nulls too often at margins above 0: in simulations at the "
            "boundary of the null 9 to 34 percent at margins of 0.725 and 0.9, where 5 are allowed. Its tables are "
            "shown for comparison. Findings, largest improvements and verdicts rest on the signed test."
        )
    yield from _different_shares(trials)
    yield from _nobody(inputs, trials)
    yield from _missing_outcomes(sample, trials)
    for name in telling_features(sample):
        yield (
            f"The feature {name} tells every row's group, so a candidate using it can treat the groups differently on "
            "purpose. Leave it out unless that is allowed."
        )
    if spec.use_group and set(sample.grouping.split(TIMES)) & set(spec.features):
        yield (
            f"Candidates may use {sample.grouping} itself, so they may treat the groups differently on purpose. In US "
            "law that can be disparate treatment, whatever its effect."
        )
    several = len(spec.candidates)
    if several > 1:
        yield (
            f"{several} candidates were tested. Decisions, largest margins, power and verdicts are adjusted for all of "
            f"them: a p-value counts {several} times (Bonferroni) before it is compared with {spec.test.alpha:g}. So "
            "what is said of the candidates holds for all together."
        )
    yield from _unchanged(trials)
    yield from _ties(trials)
    yield from _searches(trials)
    if sample.weight is not None:
        yield (
            "Survey weights enter the values and the tests. Candidates are fitted without them, and a capacity is a "
            "share of rows."
        )
    yield from _few_rows([remark for each in trials.values() for trial in each for remark in trial.remarks])


def _few_rows(remarks: Sequence[str]) -> Iterator[str]:
    """Yield the first remarks about groups with few rows, and how many more there are."""
    yield from map(_capitalised, remarks[:_MOST_REMARKS])
    if len(remarks) > _MOST_REMARKS:
        yield f"{count(len(remarks) - _MOST_REMARKS, 'more remark')} of this kind left out."


class Shares(NamedTuple):
    """The shares that a candidate and the status quo select, the means over the splits."""

    candidate: float
    status_quo: float

    @property
    def far_apart(self) -> bool:
        """Whether they differ by more than a tenth of the larger."""
        return abs(self.candidate - self.status_quo) > max(self) / 10


def selected_shares(trials: Sequence[Trial]) -> Shares | None:
    """Return the shares selected; None without a candidate, or where decisions are not 0 or 1."""
    pairs = [
        (trial.piece.made.decisions.values, trial.piece.status_quo.values)
        for trial in trials
        if trial.piece.made is not None
    ]
    if not pairs or not all(np.isin(values, (0.0, 1.0)).all() for pair in pairs for values in pair):
        return None
    return Shares(*(float(np.mean([values.mean() for values in side])) for side in zip(*pairs, strict=True)))


def _different_shares(trials: Trials) -> Iterator[str]:
    """Warn where candidate and status quo select different shares, so that they are compared at different sizes."""
    for name, each in trials.items():
        shares = selected_shares(each)
        if shares is not None and shares.far_apart:
            yield (
                f"{name} selects {show(shares.candidate, 'percent')} of the rows, the status quo "
                f"{show(shares.status_quo, 'percent')}. A difference between them may come from how many are selected, "
                "not from whom. A capacity ranks scores only; it does not apply to decisions. Compare at the same "
                "share where the number of places is fixed."
            )


def never_selected(inputs: Inputs, trials: Sequence[Trial]) -> tuple[str, ...]:
    """Return the groups of which a candidate selects nobody in some split, though it selects others."""
    sample, nobody = inputs.sample, set()
    for trial in trials:
        if trial.piece.made is not None and np.isin(trial.piece.made.decisions.values, (0.0, 1.0)).all():
            chosen = np.bincount(sample.group[trial.piece.test], trial.piece.made.decisions.values, len(sample.groups))
            nobody |= set(np.flatnonzero(chosen == 0).tolist())
    return tuple(sample.groups[group] for group in sorted(nobody))


def _nobody(inputs: Inputs, trials: Trials) -> Iterator[str]:
    for name, each in trials.items():
        for group in never_selected(inputs, each):
            yield (
                f"{name} selects nobody of {group}{_in_some_split(inputs.spec)}. By the measures chosen that can count "
                "as accurate and fair; whether it is an alternative is another question."
            )


def _missing_outcomes(sample: Sample, trials: Trials) -> Iterator[str]:
    """Warn of selective labels: outcomes that are known for some only."""
    unknown = int(np.isnan(sample.outcome).sum())
    if sample.unlabelled:
        were = "was" if sample.unlabelled == 1 else "were"
        yield (
            f"{count(sample.unlabelled, 'row')} {were} left out because the outcome (or a prediction) is missing. If "
            "it is missing because of what was decided (selective labels), the result holds for people whose outcome "
            f"is known, not for all: a candidate might do better or worse on the others.{_all_alike(trials)}"
        )
    if unknown:
        yield (
            f"The outcome is missing in {count(unknown, 'row')} and was not needed there, since no algorithm compared "
            "here selects them. Candidates were fitted to the others only. If outcomes are missing because of what was "
            "decided (selective labels), candidates have learned from people whom the status quo chose."
        )


def _all_alike(trials: Trials) -> str:
    """Return a sentence where the status quo decides the same for all rows left: the mark of selective labels."""
    decisions = np.concatenate([trial.piece.status_quo.values for trial in next(iter(trials.values()))])
    for value, whom in ((1.0, "selects everybody"), (0.0, "selects nobody")):
        if (decisions == value).all():
            return (
                f" That is likely here: among the rows left the status quo {whom}, as it does where outcomes are known "
                "only for those it selected. Then the candidates are compared with no selection at all."
            )
    return ""


def _unchanged(trials: Trials) -> Iterator[str]:
    """Name candidates with nothing to compare, whose p-value is 1 whatever the data."""
    for name in (name for name, each in trials.items() if all(trial.unchanged for trial in each)):
        yield (
            f"{name} decides every row as the status quo does, so its p-value is 1 and says nothing of the data. Leave "
            "it out: each candidate costs the others power."
        )


def _ties(trials: Trials) -> Iterator[str]:
    most = {"the status quo": max(trial.piece.status_quo.tied for trial in next(iter(trials.values())))}
    for name, each in trials.items():
        most[name] = max((trial.piece.made.decisions.tied for trial in each if trial.piece.made is not None), default=0)
    tied = [f"{name}: up to {count(rows, 'row')}" for name, rows in most.items() if rows]
    if tied:
        yield (
            "Rows with the same score at the cut of the capacity were drawn at random from the seed, each with the "
            f"same chance ({'; '.join(tied)})."
        )


def _searches(trials: Trials) -> Iterator[str]:
    """Warn of solvers that were stopped, and of splits in which a search found nothing."""
    for name, each in trials.items():
        pieces = [piece for trial in each for piece in trial.pieces]
        where = count(len(pieces), "step" if each[0].steps else "split")
        stopped = sum(piece.stopped for piece in pieces)
        if stopped:
            yield (
                f"{name}: the solver was stopped by its time limit in {stopped} of {where}, so "
                "another run may find another classifier. The test holds for those found here, which can be exported."
            )
        lost = [piece for piece in pieces if piece.status != "ok"]
        if lost:
            then = "the status quo decided there" if each[0].steps else "which counts against rejection"
            yield (
                f"{name}: in {len(lost)} of {where} there was no candidate to test, {then} "
                f"({lost[0].status.removeprefix('no candidate: ')})"
            )
