"""Remarks that a reader of an improvability audit needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from evenhand.audits.improvability.gather import Sample
from evenhand.audits.improvability.splits import Inputs, Trial, Trials
from evenhand.core.formats import show
from evenhand.errors import count
from evenhand.table.roles import TIMES

_MOST_REMARKS = 5
_MOST_CODES = 50


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
    yield from _proxies(sample)
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
    yield from (f"{remark[:1].upper()}{remark[1:]}" for remark in remarks[:_MOST_REMARKS])
    more = len(remarks) - _MOST_REMARKS
    if more > 0:
        yield f"{count(more, 'more split')} {'has' if more == 1 else 'have'} groups with few rows that count."


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
    pairs = [(trial.made.decisions.values, trial.status_quo.values) for trial in trials if trial.made is not None]
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
        if trial.made is not None and np.isin(trial.made.decisions.values, (0.0, 1.0)).all():
            chosen = np.bincount(sample.group[trial.test], trial.made.decisions.values, len(sample.groups))
            nobody |= set(np.flatnonzero(chosen == 0).tolist())
    return tuple(sample.groups[group] for group in sorted(nobody))


def _nobody(inputs: Inputs, trials: Trials) -> Iterator[str]:
    for name, each in trials.items():
        for group in never_selected(inputs, each):
            yield (
                f"{name} selects nobody of {group} in at least one split. By the measures chosen that can count as "
                "accurate and fair; whether it is an alternative is another question."
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
    decisions = np.concatenate([trial.status_quo.values for trial in next(iter(trials.values()))])
    for value, whom in ((1.0, "selects everybody"), (0.0, "selects nobody")):
        if (decisions == value).all():
            return (
                f" That is likely here: among the rows left the status quo {whom}, as it does where outcomes are known "
                "only for those it selected. Then the candidates are compared with no selection at all."
            )
    return ""


def _proxies(sample: Sample) -> Iterator[str]:
    """Warn of features that tell the group, whatever they are called; the grouping's own columns have another note."""
    for position, name in enumerate(sample.features):
        if name in sample.grouping.split(TIMES):
            continue
        values, codes = np.unique(sample.matrix[:, position], return_inverse=True)
        if not 1 < values.size <= max(_MOST_CODES, len(sample.groups)):
            continue
        seen = np.zeros((values.size, len(sample.groups)), dtype=np.bool_)
        seen[codes.ravel(), sample.group] = True
        if (seen.sum(axis=1) == 1).all():
            yield (
                f"The feature {name} tells every row's group, so a candidate that uses it can treat the groups "
                "differently on purpose. Leave it out unless that is allowed."
            )


def _ties(trials: Trials) -> Iterator[str]:
    most = {"the status quo": max(trial.status_quo.tied for trial in next(iter(trials.values())))}
    for name, each in trials.items():
        most[name] = max((trial.made.decisions.tied for trial in each if trial.made is not None), default=0)
    tied = [f"{name}: up to {count(rows, 'row')}" for name, rows in most.items() if rows]
    if tied:
        yield (
            "Rows with the same score at the cut of the capacity were drawn at random from the seed, each with the "
            f"same chance ({'; '.join(tied)} in a split)."
        )


def _searches(trials: Trials) -> Iterator[str]:
    """Warn of solvers that were stopped, and of splits in which a search found nothing."""
    for name, each in trials.items():
        linear = [trial.made.linear for trial in each if trial.made is not None]
        solvers = [found.solver for found in linear if found is not None and found.solver is not None]
        stopped = sum("time limit" in solver.status for solver in solvers)
        if stopped:
            yield (
                f"{name}: the solver was stopped by its time limit in {stopped} of {count(len(each), 'split')}, so "
                "another run may find another classifier. The test holds for those found here, which can be exported."
            )
        lost = [trial for trial in each if trial.status != "ok"]
        if lost:
            yield (
                f"{name}: in {len(lost)} of {count(len(each), 'split')} there was no candidate to test, which counts "
                f"against rejection ({lost[0].status.removeprefix('no candidate: ')})"
            )
