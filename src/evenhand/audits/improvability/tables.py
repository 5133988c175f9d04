"""From the tests of all splits to the tables of the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from evenhand.audits.improvability.gather import EVERYONE
from evenhand.audits.improvability.records import (
    CandidateRecord,
    CoefficientRecord,
    CurveRecord,
    DecisionRecord,
    DeltaRecord,
    SplitRecord,
    ValueRecord,
)
from evenhand.audits.improvability.splits import Inputs, Trial, Trials
from evenhand.core.numbers import finite
from evenhand.stats.improvability import (
    CANDIDATE,
    STATUS_QUO,
    Combined,
    FairnessTest,
    Goal,
    combine_splits,
    largest_delta,
)
from evenhand.stats.types import BoolArray, FloatArray

JUDGED: FairnessTest = "signed"
"""The fairness test that every conclusion rests on, whichever is shown first: the published one is not valid."""
NEGATIVE = "undefined: the status quo's accuracy is negative, so an improvement by a share of it means nothing"
_CURVE_STEP = 0.01


class Target(NamedTuple):
    """What a margin applies to, as records call it."""

    goal: Goal
    name: str
    group: str | None


def targets(inputs: Inputs) -> tuple[Target, ...]:
    """Return the targets: fairness, joint accuracy, and the accuracy of each group."""
    found = []
    for goal in inputs.goals:
        if isinstance(goal, int):
            found.append(Target(goal, "group_accuracy", inputs.sample.groups[goal]))
        else:
            found.append(Target(goal, goal, None))
    return tuple(found)


def components(inputs: Inputs) -> list[str]:
    """Return what the components are called, in the order of their p-values."""
    spec, groups = inputs.spec, inputs.sample.groups
    own = [EVERYONE] if spec.test.accuracy_of == "everyone" else list(groups)
    gaps = [f"fairness ({utility.name})" if len(spec.fairness) > 1 else "fairness" for utility in spec.fairness]
    return [*(f"accuracy of {group}" for group in own), *gaps]


def combined(inputs: Inputs, tested: Sequence[Trial], test: FairnessTest, goal: Goal) -> Combined:
    """Return the decision of all splits at each margin of a goal."""
    return combine_splits(
        np.stack([one.p(test, goal) for one in tested]), inputs.spec.test.alpha, inputs.spec.test.combine
    )


def adjusted(inputs: Inputs, own: Combined) -> FloatArray:
    """Return a candidate's p-values with all candidates allowed for: Bonferroni's, p times their number."""
    return np.minimum(1.0, len(inputs.spec.candidates) * own.p)


def stands(inputs: Inputs, own: Combined) -> BoolArray:
    """Tell at which margins a candidate's test rejects with all candidates allowed for.

    Bonferroni and not Holm: a claim is made of every candidate *and* of its largest margin, and Holm's rejections at
    each margin do not make these margins hold together.

    References
    ----------
    K. Strassburger and F. Bretz (2008), Compatible simultaneous lower confidence bounds for the Holm procedure and
    other Bonferroni-based closed tests, Statistics in Medicine 27.
    """
    alpha, p = inputs.spec.test.alpha, adjusted(inputs, own)
    return np.asarray(own.rejected & (p < alpha if inputs.spec.test.combine == "median" else p <= alpha))


def established(inputs: Inputs, own: Combined, test: FairnessTest) -> list[bool | None]:
    """Tell at which margins an improvement is established: its test stands there and at all smaller margins."""
    if test != JUDGED:
        return [None] * own.p.size
    return [bool(one) for one in np.logical_and.accumulate(stands(inputs, own))]


def split_records(inputs: Inputs, trials: Trials) -> Iterator[SplitRecord]:
    """Yield the components of every candidate and split at a margin of 0, as in the paper's table 1."""
    for tested in (one for found in trials.values() for one in found):
        yield from _accuracy_records(inputs, tested)
        yield from _fairness_records(inputs, tested)


def _accuracy_records(inputs: Inputs, one: Trial) -> Iterator[SplitRecord]:
    spec, groups = inputs.spec, inputs.sample.groups
    parts = one.parts(JUDGED, "fairness")[:, 0]
    everyone = spec.test.accuracy_of == "everyone"
    for a, group in enumerate([EVERYONE] if everyone else groups):
        at = len(groups) if everyone else a
        counted = one.counted.sum(axis=0) if everyone else one.counted[a]
        yield _split_record(one, "accuracy", group, spec.utility.name, None, counted[0], one.values[at, 0], parts, a)


def _fairness_records(inputs: Inputs, one: Trial) -> Iterator[SplitRecord]:
    spec = inputs.spec
    own = len(one.change) - len(spec.fairness)
    for test in inputs.tests:
        parts = one.parts(test, "fairness")[:, 0]
        for f, (utility, k) in enumerate(zip(spec.fairness, spec.criteria.fairness_index, strict=True)):
            values = one.values[:-1, k]
            gaps = np.array([np.ptp(values[:, t]) for t in (STATUS_QUO, CANDIDATE)])
            counted = one.counted.sum(axis=0)[k]
            yield _split_record(one, "fairness", None, utility.name, test, counted, gaps, parts, own + f)
        yield SplitRecord(
            candidate=one.candidate,
            split=one.split + 1,
            component="all",
            group=None,
            utility=None,
            test=test,
            n=one.test.size,
            n_status_quo=one.test.size,
            status_quo=None,
            candidate_value=None,
            p_value=float(parts.max()),
            binding=False,
            value=None,
            low=None,
            high=None,
            status=one.status,
        )


def _split_record(
    one: Trial,
    component: str,
    group: str | None,
    utility: str,
    test: str | None,
    counted: FloatArray,
    values: FloatArray,
    parts: FloatArray,
    at: int,
) -> SplitRecord:
    value, low, high = (finite(number) for number in one.change[at])
    return SplitRecord(
        candidate=one.candidate,
        split=one.split + 1,
        component=component,
        group=group,
        utility=utility,
        test=test,
        n=int(counted[CANDIDATE]),
        n_status_quo=int(counted[STATUS_QUO]),
        status_quo=finite(values[STATUS_QUO]),
        candidate_value=finite(values[CANDIDATE]),
        p_value=float(parts[at]),
        binding=bool(parts[at] == parts.max()),
        value=value,
        low=low,
        high=high,
        status=one.status,
    )


def decision_records(inputs: Inputs, trials: Trials) -> Iterator[DecisionRecord]:
    """Yield the decision of every candidate, test, target and margin asked for."""
    for test in inputs.tests:
        for target in targets(inputs):
            margins = inputs.margins.of(target.goal)
            found = {name: combined(inputs, tested, test, target.goal) for name, tested in trials.items()}
            for delta in inputs.spec.test.margins:
                for name, one in found.items():
                    yield _decision(inputs, trials[name], test, target, int(np.searchsorted(margins, delta)), one)


def _decision(
    inputs: Inputs, tested: Sequence[Trial], test: FairnessTest, target: Target, at: int, one: Combined
) -> DecisionRecord:
    delta = float(inputs.margins.of(target.goal)[at])
    known = delta == 0 or target.goal == "fairness" or all(each.shares for each in tested)
    missing = sum(each.status != "ok" for each in tested)
    status = NEGATIVE if not known else "ok" if not missing else f"no candidate in {missing} of {len(tested)} splits"
    shown = established(inputs, one, test)[at]
    return DecisionRecord(
        candidate=tested[0].candidate,
        test=test,
        target=target.name,
        group=target.group,
        delta=delta,
        splits=len(tested),
        p_median=float(one.median[at]) if known else None,
        rejected=bool(one.rejected[at]) and known,
        p_adjusted=float(adjusted(inputs, one)[at]) if known else None,
        established=shown and known,
        value=float(one.p[at]) if known else None,
        low=None,
        high=None,
        status=status,
    )


def delta_records(inputs: Inputs, trials: Trials) -> Iterator[DeltaRecord]:
    """Yield the largest margins, as in the paper's table 2, read off the whole curve."""
    names = components(inputs)
    for name, tested in trials.items():
        for test in inputs.tests:
            for target in targets(inputs):
                margins = inputs.margins.of(target.goal)
                largest = largest_delta(margins, stands(inputs, combined(inputs, tested, test, target.goal)))
                ends_at = 0 if np.isnan(largest) else min(int(np.searchsorted(margins, largest)) + 1, margins.size - 1)
                binding = names[_binding(tested, test, target.goal, ends_at)]
                yield _delta_record(name, test, target, largest, binding, bool(margins[-1] == largest), tested)


def _delta_record(
    name: str, test: FairnessTest, target: Target, largest: float, binding: str, whole: bool, tested: Sequence[Trial]
) -> DeltaRecord:
    value, status = finite(largest), "ok"
    if target.goal != "fairness" and not all(one.shares for one in tested):
        value, status = None, NEGATIVE
    elif value is None:
        status = "undefined: no improvement is established at a margin of 0"
    elif whole:
        status, binding = "ok: at least this, the end of the margins tried", ""
    return DeltaRecord(name, test, target.name, target.group, binding or None, value, value, None, status)


def _binding(tested: Sequence[Trial], test: FairnessTest, goal: Goal, at: int) -> int:
    """Return the component with the largest p-value at a margin, in the split of the median."""
    p = np.array([one.p(test, goal)[at] for one in tested])
    middle = tested[int(np.argsort(p, kind="stable")[len(p) // 2])]
    return int(np.argmax(middle.parts(test, goal)[:, at]))


def curve_records(inputs: Inputs, trials: Trials) -> Iterator[CurveRecord]:
    """Yield p-values over the margins, one in ten of those computed."""
    for name, tested in trials.items():
        for test in inputs.tests:
            for target in targets(inputs):
                margins = inputs.margins.of(target.goal)
                found = combined(inputs, tested, test, target.goal)
                p, stand = adjusted(inputs, found), established(inputs, found, test)
                shown = np.isclose(np.round(margins / _CURVE_STEP) * _CURVE_STEP, margins, atol=1e-9) & (margins < 1)
                for at in np.flatnonzero(shown):
                    yield CurveRecord(
                        name,
                        test,
                        target.name,
                        target.group,
                        float(margins[at]),
                        float(found.median[at]),
                        bool(found.rejected[at]),
                        float(p[at]),
                        stand[at],
                        float(found.p[at]),
                    )


def value_records(inputs: Inputs, trials: Trials) -> Iterator[ValueRecord]:
    """Yield the values of status quo and candidates, the means over the splits, as in the paper's figure 2."""
    first = max(trials.values(), key=lambda found: sum(one.status == "ok" for one in found))
    for which, tested in [(STATUS_QUO, first), *((CANDIDATE, found) for found in trials.values())]:
        known = [one for one in tested if one.status == "ok"]
        name = None if which == STATUS_QUO else tested[0].candidate
        for k, utility in enumerate(inputs.spec.criteria.utilities):
            for g, group in enumerate((*inputs.sample.groups, EVERYONE)):
                n = [one.counted[:, k, which].sum() if group == EVERYONE else one.counted[g, k, which] for one in known]
                value, low, high, stderr = (
                    finite(np.mean([getattr(one, part)[g, k, which] for one in known])) if known else None
                    for part in ("values", "low", "high", "stderr")
                )
                status = "ok" if known else "undefined: no split has a candidate"
                yield ValueRecord(
                    name, utility.name, group, round(float(np.mean(n))) if n else 0, stderr, value, low, high, status
                )


def candidate_records(inputs: Inputs, trials: Trials) -> Iterator[CandidateRecord]:
    """Yield what each candidate was in each split."""
    for name, tested in trials.items():
        for one in tested:
            made, old = one.made, one.status_quo
            linear = made.linear if made is not None else None
            solver = linear.solver if linear is not None else None
            new = made.decisions if made is not None else None
            yield CandidateRecord(
                candidate=name,
                split=one.split + 1,
                rule=inputs.spec.candidates[name].rule,
                what=made.what if made is not None else inputs.spec.candidates[name].in_words(),
                rows=one.test.size,
                selected=int(np.count_nonzero(new.values)) if new is not None else 0,
                selected_status_quo=int(np.count_nonzero(old.values)),
                changed=int(np.count_nonzero(new.values != old.values)) if new is not None else 0,
                tied=new.tied if new is not None else 0,
                tied_selected=new.tied_selected if new is not None else 0,
                tied_status_quo=old.tied,
                found_by=linear.found_by if linear is not None else None,
                solver_status=solver.status if solver is not None else None,
                claimed=finite(solver.claimed) if solver is not None else None,
                bound=finite(solver.bound) if solver is not None else None,
                relative_gap=finite(solver.relative_gap) if solver is not None else None,
                reproduced=solver.reproduced if solver is not None else None,
                polished=solver.polished if solver is not None else None,
                status=one.status,
            )


def coefficient_records(trials: Trials) -> Iterator[CoefficientRecord]:
    """Yield the coefficients of linear candidates."""
    for name, tested in trials.items():
        for one in tested:
            for feature, value in one.made.coefficients if one.made is not None else ():
                yield CoefficientRecord(name, one.split + 1, feature, float(value))
