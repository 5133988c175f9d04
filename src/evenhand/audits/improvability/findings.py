"""The findings and notes of the improvability audit, and reasons why no improvement is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import NamedTuple, TypeAlias

import numpy as np

from evenhand.audits.improvability import result as records
from evenhand.audits.improvability.gather import AuditRows, telling_features
from evenhand.audits.improvability.messages import say
from evenhand.audits.improvability.metrics import ACCURACY, FAIRNESS, utility_metric
from evenhand.audits.improvability.spec import STATUS_QUO, ImprovabilitySpec
from evenhand.audits.improvability.splits import Inputs, Trial, Trials
from evenhand.core.estimates import Estimate
from evenhand.core.families import Significance
from evenhand.core.findings import Arguments, Claim, join_sentences, without_kind
from evenhand.core.metrics import Metric
from evenhand.core.needed import two_digits
from evenhand.core.records import OK, OVERALL
from evenhand.messages import Argument, Message
from evenhand.messages.formats import show_p
from evenhand.messages.shared import say as shared
from evenhand.table.roles import TIMES

_MOST_REMARKS = 5
_HOPELESS = 0.0005
"""The power below which the data could not have shown an improvement."""
_Needed: TypeAlias = tuple[int | None, int | None]
"""The rows needed to show the estimated and the planned improvement; None if no number suffices."""


def make_claims(
    inputs: Inputs,
    trials: Trials,
    decisions: Sequence[records.Decision],
    margins: Sequence[Estimate[records.Margin]],
    reasons: Sequence[records.ReasonRecord],
) -> Iterator[Claim]:
    """Yield each candidate's claims: on fairness always, and on accuracy for thresholds."""
    joint = [margin for margin in margins if _is_joint(margin.record)]
    largest = {(margin.record.model, margin.record.metric): margin for margin in joint}
    requested = [decision for decision in decisions if _is_joint(decision) and decision.metric == FAIRNESS]
    why = {reason.model: reason.sentence for reason in reasons}
    for name, each in trials.items():
        candidate = _Candidate(inputs, each, why.get(name))
        decided = [decision for decision in requested if decision.model == name]
        accuracy = largest[name, ACCURACY]
        yield candidate.fairness(largest[name, FAIRNESS], accuracy.record, decided, _gaps(inputs, each))
        yield candidate.accuracy(accuracy)


def _is_joint(record: records.Decision | records.Margin) -> bool:
    """Return whether a record belongs to the signed test of all tested groups together."""
    return (record.test, record.group) == (records.JUDGED, OVERALL)


@dataclass(frozen=True, eq=False)
class _Candidate:
    """One candidate's trials, and the reason if no improvement is shown."""

    inputs: Inputs
    trials: Sequence[Trial]
    why: Message | None

    def fairness(
        self,
        largest: Estimate[records.Margin],
        accuracy: records.Margin,
        decisions: Sequence[records.Decision],
        gaps: tuple[Message, ...],
    ) -> Claim:
        spec, first = self.inputs.spec, decisions[0]
        if first.established:
            sentence_id = "fairer_by" if largest.record.value else "fairer"
        else:
            sentence_id = "not_fairer" if first.margin == 0 else "not_fairer_by"
        asides = [*self._with_gaps(first, gaps), *map(self._at_margin, decisions[1:])]
        if first.established and accuracy.value:
            asides.append(say("accuracy_improves", whom=self.everyone, value=whole_percent(accuracy.value)))
        asides += self._lost()
        whom = say("for_everyone_together" if spec.test.accuracy_of == "everyone" else "for_any_group")
        sides = _sides(self.inputs, self.trials, shown=bool(first.established))
        claim = self._claim(largest, sentence_id, asides, {"whom": whom, "margin": first.margin, **sides})
        unclear = {"sentence_id": "not_fairer", "aside": join_sentences([*asides, say("unclear_in_the_run")])}
        when: Mapping[Significance, Mapping[str, str | Message | None]] = (
            {"not_significant": unclear} if first.established else {}
        )
        return replace(claim, headline=True, p_value=first.p_value, when=when)

    def _with_gaps(self, decision: records.Decision, gaps: tuple[Message, ...]) -> Iterator[Message]:
        """Yield sentences on a decision: the gaps, the p-value, and groups without selected people."""
        spec, p, size = self.inputs.spec, _p(self.inputs, decision), self.size
        beside = p
        if gaps:
            with_size = say("gaps_size_and_p", gaps=gaps, size=size, p=p)
            beside = say("gaps_and_p", gaps=gaps, p=p) if size is None else with_size
        yield shared("sentence", text=beside)
        for group in never_selected(self.inputs, self.trials):
            yield say(_in_some_split("selects_nobody", spec), group=group)
        if decision.rejected and not decision.established:
            yield say("tried", n=len(spec.candidates))

    def _at_margin(self, decision: records.Decision) -> Message:
        key = "smaller_gap" if decision.established else "no_smaller_gap"
        return say(key, margin=decision.margin, p=_p(self.inputs, decision, brief=True))

    def accuracy(self, largest: Estimate[records.Margin]) -> Claim:
        """Return the claim on accuracy for thresholds.

        At a margin of 0, its hypothesis equals the hypothesis of fairness.
        """
        sentence_id = "more_accurate" if largest.record.value else "not_more_accurate"
        size = [] if self.size is None else [shared("sentence", text=self.size)]
        return self._claim(largest, sentence_id, [*size, *self._lost()], {"whom": self.everyone})

    @property
    def everyone(self) -> Message:
        """A phrase for the people whose accuracy must improve."""
        return say("everyone" if self.inputs.spec.test.accuracy_of == "everyone" else "every_group")

    def _lost(self) -> list[Message]:
        """Return a message with the number of rows left out for a missing outcome, as a list."""
        lost = self.inputs.sample.unlabelled
        return [say("known_outcomes", n=lost)] if lost else []

    def _claim(
        self, largest: Estimate[records.Margin], sentence_id: str, asides: Sequence[Message], words: Arguments
    ) -> Claim:
        margin, several = largest.record, len(self.inputs.spec.candidates)
        return Claim(
            estimates=(largest,),
            sentence_id=sentence_id,
            undefined_id=sentence_id,
            arguments={
                "model": margin.model,
                "value": None if margin.value is None else whole_percent(margin.value),
                **words,
            },
            aside=join_sentences(asides),
            family=say("both_candidates" if several == 2 else "all_candidates", n=several) if several > 1 else None,
            withheld=self.why if margin.value is None else None,
        )

    @property
    def size(self) -> Message | None:
        """A clause on the different shares selected by candidate and status quo, or None."""
        shares = selected_shares(self.trials)
        if shares is None or not shares.far_apart:
            return None
        return say("selects_other_share", new=shares.candidate, old=shares.status_quo)


def _in_some_split(key: str, spec: ImprovabilitySpec) -> str:
    """Return the key of the sentence on groups without selected people."""
    return f"{key}_in_a_split" if spec.test.design == "splits" else key


def _p(inputs: Inputs, decision: records.Decision, *, brief: bool = False) -> Message:
    """Return a decision's p-value, alone and adjusted for candidates, and (unless brief) its computation."""
    spec = inputs.spec
    if decision.p_value is None or decision.p_median is None or decision.p_adjusted is None:
        return decision.status
    several = len(spec.candidates)
    adjusted = say("p_adjusted", number=several, p=show_p(decision.p_adjusted)) if several > 1 else None
    words: dict[str, Argument] = {
        "p": show_p(decision.p_value),
        "adjusted": adjusted,
        "level": spec.test.alpha,
        "seed": spec.seed,
    }
    if brief and spec.test.design == "one_pass":
        return say("p_brief", p=words["p"], adjusted=adjusted)
    if spec.test.design == "one_pass":
        fitted = say("p_fitted", n=spec.test.steps) if spec.candidates[decision.model].refits else None
        return say("p_one_pass", **words, rows=len(inputs.sample), fitted=fitted)
    if decision.splits == 1:
        return say("p_one_split", **words)
    paper = "p_splits_shown" if decision.rejected_by_median else "p_splits_not_shown"
    return say(paper, **words, median=show_p(decision.p_median), splits=decision.splits)


def _gaps(inputs: Inputs, trials: Sequence[Trial]) -> tuple[Message, ...]:
    """Return the gap in every fairness utility on the candidate's test rows.

    The tuple is empty for an untested candidate.
    """
    tested = [trial.estimates.values for trial in trials if trial.piece.status == OK]
    if not tested:
        return ()
    clauses: list[Message] = []
    for utility, k in dict(zip(inputs.spec.fairness, inputs.spec.criteria.fairness_index, strict=True)).items():
        old, new = (_amount(gap, utility_metric(utility)) for gap in np.ptp(np.mean(tested, axis=0)[:-1, k], axis=0))
        key = "gap_against" if clauses else "gap_against_status_quo"
        clauses.append(say(key, utility=utility_metric(utility).title_in_sentence, new=new, old=old))
    return tuple(clauses)


def _sides(inputs: Inputs, trials: Sequence[Trial], *, shown: bool) -> dict[str, Argument]:
    """Return the arguments on the first fairness utility: the status quo and its two groups furthest apart.

    If an improvement is shown, they include a sentence on the group that the status quo serves worse.
    """
    tested = [trial.estimates.values for trial in trials if trial.piece.status == OK]
    if not tested:
        return {}
    utility, old = inputs.spec.fairness[0], np.mean(tested, axis=0)[:-1, inputs.spec.criteria.fairness_index[0], 0]
    higher, lower = (inputs.sample.groups[int(place)] for place in (np.argmax(old), np.argmin(old)))
    pair = {"higher": higher, "lower": lower}
    keys = (f"served_{utility.name}_{inputs.sample.favourable}", f"served_{utility.name}")
    served = next((say(key, **pair, outcome=inputs.spec.outcome) for key in keys if shown and key in say), None)
    about = {"compared": utility.name, "baseline": STATUS_QUO, "outcome": inputs.spec.outcome}
    return {**about, **pair, "served": served}


def _amount(gap: float, metric: Metric) -> Message:
    style = metric.style("difference")
    size = float(gap)
    return say("gap_points", size=size) if style == "points" else say("gap_amount", size=size, unit=style)


# Why no improvement is shown ------------------------------------------------------------------------------------------


def reason_records(
    inputs: Inputs,
    trials: Trials,
    decisions: Sequence[records.Decision],
    power: Sequence[records.PowerRecord],
    sizes: Sequence[records.SampleSizeRecord],
) -> Iterator[records.ReasonRecord]:
    """Yield the plausible reason for each candidate without an established improvement at the smallest margin."""
    test, plan = inputs.spec.test, inputs.spec.plan
    smallest = [d for d in decisions if (d.metric, d.margin) == (FAIRNESS, min(test.margins))]
    shown = {decision.model for decision in smallest if decision.established}
    here = {(record.model, record.scenario): record.value for record in power if record.n == len(inputs.sample)}
    needed = {(size.model, size.scenario): size.n for size in sizes}
    for name in (name for name in trials if name not in shown):
        improved, is_unchanged = _improved_splits(trials[name])
        planned, splits = here[name, "planned"], len(trials[name])
        rows = needed[name, "found"], needed[name, "planned"]
        reason = "unchanged" if is_unchanged else plausible_reason(improved, splits, planned, plan.power, rows[0])
        yield records.ReasonRecord(
            model=name,
            reason=reason,
            improved_splits=improved,
            splits=splits,
            power_found=here[name, "found"],
            power_planned=planned,
            n_needed=rows[0],
            sentence=_reason_sentence(inputs, reason, name=name, improved=improved, planned=planned, needed=rows),
        )


def _improved_splits(trials: Sequence[Trial]) -> tuple[int, bool]:
    """Return the number of splits with an improvement, and whether all decisions equal the status quo's."""
    improved = sum(trial.tests.power is not None and trial.tests.power.improved for trial in trials)
    return improved, all(trial.unchanged for trial in trials)


def plausible_reason(
    improved: int, splits: int, planned: float | None, wanted: float, needed: int | None
) -> records.Reason:
    """Return the plausible reason: too few rows, no better algorithm, or unclear."""
    if 2 * improved > splits:
        return "too_few_rows" if needed is not None else "unclear"
    return "not_found" if planned is not None and planned >= wanted else "unclear"


def _reason_sentence(
    inputs: Inputs,
    reason: records.Reason,
    *,
    name: str,
    improved: int,
    planned: float | None,
    needed: tuple[int | None, int | None],
) -> Message:
    spec, splits = inputs.spec, inputs.spec.test.splits
    one_pass = spec.test.design == "one_pass"
    if reason == "unchanged":
        return say("unchanged", model=name)
    if planned is None:
        return say("no_candidate_step" if one_pass else "no_candidate_split", model=name)
    words: dict[str, Argument] = {"model": name, "improved": improved, "splits": say("splits", n=splits)}
    if 2 * improved > (1 if one_pass else splits):
        return _together(_not_beyond_chance(inputs, reason, needed[0], words))
    better = "not_better" if one_pass else "better_seldom" if improved else "better_nowhere"
    plan = spec.plan
    key = "planned" if planned >= _HOPELESS else "planned_hopeless"
    chance = say(key, gain=plan.gain, reduction=plan.reduction, chance=planned)
    if reason == "not_found":
        return _together([say(better, **words), chance, say("not_found")])
    enough = [] if needed[1] is None else [say("planned_rows", needed=two_digits(needed[1]), power=plan.power)]
    return _together([say(better, **words), chance, *enough, say("both_remain")])


def _not_beyond_chance(
    inputs: Inputs, reason: records.Reason, needed: int | None, words: Arguments
) -> Iterator[Message]:
    """Yield the sentences on a candidate that is better, but not significantly."""
    spec, several = inputs.spec, len(inputs.spec.candidates)
    where = "" if spec.test.design == "one_pass" else "_in"
    tried = "_tried" if several > 1 else ""
    few = reason == "too_few_rows"
    yield say(f"{'better' if few else 'too_little'}{where}{tried}", **words, number=several)
    if not few:
        yield say("reason_unclear")
        return
    rows = {
        "needed": None if needed is None else two_digits(needed),
        "power": spec.plan.power,
        "rows": len(inputs.sample),
    }
    yield say(f"rows_needed{tried}", **rows, number=several)


def whole_percent(share: float) -> float:
    """Return a share rounded down to whole percent, so that "at least" holds; shares below 1 % are unchanged.

    Examples
    --------
    >>> whole_percent(0.4831), whole_percent(0.004)
    (0.48, 0.004)
    """
    return floor(round(100 * share, 9)) / 100 if share >= 0.01 else share


def _together(sentences: Iterable[Message]) -> Message:
    return shared("sentences", parts=tuple(sentences))


# Notes ----------------------------------------------------------------------------------------------------------------


def make_notes(inputs: Inputs, trials: Trials) -> Iterator[Message]:
    """Yield the notes of the audit."""
    spec, sample = inputs.spec, inputs.sample
    if spec.test.fairness == "published":
        yield say("published")
    yield from _different_shares(trials)
    yield from _never_selected_note(inputs, trials)
    yield from _missing_outcomes(sample, trials)
    for name in telling_features(sample):
        yield say("tells_group", feature=name)
    if spec.use_group and set(sample.grouping.split(TIMES)) & set(spec.features):
        yield say("may_use_group", grouping=sample.grouping)
    several = len(spec.candidates)
    if several > 1:
        yield say("several", number=several, level=spec.test.alpha)
    yield from _unchanged(trials)
    yield from _ties(trials)
    yield from _searches(trials)
    if sample.weight is not None:
        yield say("weights")
    yield from _few_rows([remark for each in trials.values() for trial in each for remark in trial.remarks])


def _few_rows(remarks: Sequence[Message]) -> Iterator[Message]:
    """Yield the first notes on groups with few rows, and the number of further notes."""
    yield from (shared("sentence", text=remark) for remark in remarks[:_MOST_REMARKS])
    if len(remarks) > _MOST_REMARKS:
        yield say("more_remarks", n=len(remarks) - _MOST_REMARKS)


class SelectedShares(NamedTuple):
    """The shares selected by a candidate and by the status quo, as means over splits."""

    candidate: float
    status_quo: float

    @property
    def far_apart(self) -> bool:
        """Whether the shares differ by more than a tenth of the larger share."""
        return abs(self.candidate - self.status_quo) > max(self) / 10


def selected_shares(trials: Sequence[Trial]) -> SelectedShares | None:
    """Return the selected shares; None without a candidate, or if decisions are not 0 or 1."""
    pairs = [
        (trial.piece.made.decisions.values, trial.piece.status_quo.values)
        for trial in trials
        if trial.piece.made is not None
    ]
    if not pairs or not all(np.isin(values, (0.0, 1.0)).all() for pair in pairs for values in pair):
        return None
    return SelectedShares(*(float(np.mean([values.mean() for values in side])) for side in zip(*pairs, strict=True)))


def _different_shares(trials: Trials) -> Iterator[Message]:
    """Warn if candidate and status quo select different shares, so that differently sized selections are compared."""
    for name, each in trials.items():
        shares = selected_shares(each)
        if shares is not None and shares.far_apart:
            yield say("different_shares", model=name, new=shares.candidate, old=shares.status_quo)


def never_selected(inputs: Inputs, trials: Sequence[Trial]) -> tuple[str, ...]:
    """Return the groups in which a candidate selects no one in some split."""
    sample, nobody = inputs.sample, set()
    for trial in trials:
        if trial.piece.made is not None and np.isin(trial.piece.made.decisions.values, (0.0, 1.0)).all():
            chosen = np.bincount(sample.group[trial.piece.test], trial.piece.made.decisions.values, len(sample.groups))
            nobody |= set(np.flatnonzero(chosen == 0).tolist())
    return tuple(sample.groups[group] for group in sorted(nobody))


def _never_selected_note(inputs: Inputs, trials: Trials) -> Iterator[Message]:
    for name, each in trials.items():
        for group in never_selected(inputs, each):
            yield say(_in_some_split("nobody", inputs.spec), model=name, group=group)


def _missing_outcomes(sample: AuditRows, trials: Trials) -> Iterator[Message]:
    """Warn of selective labels, which are outcomes known only for some people."""
    unknown = int(np.isnan(sample.outcome).sum())
    if sample.unlabelled:
        uniform = _uniform_decisions_note(trials)
        unlabelled_note = say("unlabelled", n=sample.unlabelled)
        yield unlabelled_note if uniform is None else _together([unlabelled_note, uniform])
    if unknown:
        yield say("outcome_not_needed", n=unknown)


def _uniform_decisions_note(trials: Trials) -> Message | None:
    """Return a warning if the status quo decides equally for all remaining rows, a sign of selective labels."""
    decisions = np.concatenate([trial.piece.status_quo.values for trial in next(iter(trials.values()))])
    for value, key in ((1.0, "all_selected"), (0.0, "none_selected")):
        if (decisions == value).all():
            return say(key)
    return None


def _unchanged(trials: Trials) -> Iterator[Message]:
    """Yield notes on candidates equal to the status quo, whose p-value is always 1."""
    for name in (name for name, each in trials.items() if all(trial.unchanged for trial in each)):
        yield say("says_nothing", model=name)


def _ties(trials: Trials) -> Iterator[Message]:
    old = max(trial.piece.status_quo.tied for trial in next(iter(trials.values())))
    most: list[tuple[str | Message, int]] = [(say("the_status_quo"), old)]
    for name, each in trials.items():
        made = [trial.piece.made for trial in each if trial.piece.made is not None]
        most.append((name, max((piece_made.decisions.tied for piece_made in made), default=0)))
    tied = tuple(say("tied", who=who, n=rows) for who, rows in most if rows)
    if tied:
        yield say("ties", tied=tied)


def _searches(trials: Trials) -> Iterator[Message]:
    """Warn of solvers stopped by their time limit, and of splits in which a search found nothing."""
    for name, each in trials.items():
        pieces = [piece for trial in each for piece in trial.pieces]
        where = say("steps" if each[0].steps else "splits", n=len(pieces))
        stopped = sum(piece.stopped for piece in pieces)
        if stopped:
            yield say("stopped", model=name, stopped=stopped, where=where)
        lost = [piece for piece in pieces if piece.status != OK]
        if lost:
            key = "lost_steps" if each[0].steps else "lost_splits"
            yield say(key, model=name, lost=len(lost), where=where, why=without_kind(lost[0].status))
