"""From the trials of all splits to the tables of the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from evenhand.audits.improvability.curves import SCENARIOS, SIZES, Scenario
from evenhand.audits.improvability.metrics import ACCURACY, FAIRNESS, IMPROVEMENT
from evenhand.audits.improvability.result import (
    JUDGED,
    CandidateRecord,
    CoefficientRecord,
    CurvePoint,
    Decision,
    ImprovabilityGap,
    ImprovabilityValue,
    Margin,
    PowerRecord,
    SampleSizeRecord,
)
from evenhand.audits.improvability.spec import STATUS_QUO, ImprovabilitySpec
from evenhand.audits.improvability.splits import Inputs, Trial, Trials
from evenhand.core.formats import finite
from evenhand.core.records import OVERALL
from evenhand.stats.improvability import (
    CANDIDATE,
    Combined,
    FairnessTest,
    Goal,
    combine_splits,
    largest_delta,
)
from evenhand.stats.improvability import STATUS_QUO as OLD
from evenhand.stats.types import BoolArray, FloatArray, IntArray

_NEGATIVE = "undefined: the status quo's accuracy is negative, so an improvement by a share of it means nothing"
_NO_CANDIDATE = "undefined: no split has a candidate"
_ONLY_P = "undefined: all components together have a p-value only"
_NEVER = "undefined: no number of rows gives this power"
_CURVE_STEP = 0.01


class Target(NamedTuple):
    """What a margin applies to: a goal of the test, and what records call it."""

    goal: Goal
    metric: str
    group: str


def targets(inputs: Inputs) -> tuple[Target, ...]:
    """Return what margins apply to: fairness, accuracy of all that is tested, and the accuracy of each group."""
    return tuple(
        Target(goal, ACCURACY, inputs.sample.groups[goal])
        if isinstance(goal, int)
        else Target(goal, FAIRNESS if goal == "fairness" else ACCURACY, OVERALL)
        for goal in inputs.goals
    )


def accuracy_groups(inputs: Inputs) -> tuple[str, ...]:
    """Return whose accuracy must rise: each group's, or everybody's."""
    return (OVERALL,) if inputs.spec.test.accuracy_of == "everyone" else inputs.sample.groups


def _components(inputs: Inputs) -> list[str]:
    """Return what the components are called, in the order of their p-values."""
    fairness = inputs.spec.fairness
    gaps = [f"fairness ({utility.name})" if len(fairness) > 1 else "fairness" for utility in fairness]
    return [*(f"accuracy of {group}" for group in accuracy_groups(inputs)), *gaps]


# The p-values of all splits -------------------------------------------------------------------------------------------


class Curve(NamedTuple):
    """The p-values of one candidate by one test, for one target, over its margins.

    Parameters
    ----------
    margins : (D,) the margins.
    combined : the p-values of all splits together, and whether the candidate's own test rejects.
    adjusted : (D,) the p-values adjusted for all candidates: Bonferroni's, p times their number.
    rejected : (D,) whether the adjusted test rejects.
    established : (D,) whether it rejects there and at all smaller margins; None for the published test.
    """

    margins: FloatArray
    combined: Combined
    adjusted: FloatArray
    rejected: BoolArray
    established: list[bool | None]


def curve_of(inputs: Inputs, trials: Sequence[Trial], test: FairnessTest, goal: Goal) -> Curve:
    """Combine the splits of a candidate, and adjust for the number of candidates."""
    combined = combine_splits(
        np.stack([trial.p(test, goal) for trial in trials]), inputs.spec.test.alpha, inputs.spec.test.combine
    )
    rejected = adjusted_rejections(inputs.spec, combined)
    established = established_margins(rejected, test)
    return Curve(inputs.margins.of(goal), combined, adjusted(inputs.spec, combined), rejected, established)


def adjusted(spec: ImprovabilitySpec, combined: Combined) -> FloatArray:
    """Return a candidate's p-values adjusted for all candidates: Bonferroni's, p times their number."""
    return np.minimum(1.0, len(spec.candidates) * combined.p)


def adjusted_rejections(spec: ImprovabilitySpec, combined: Combined) -> BoolArray:
    """Tell at which margins a candidate's test rejects, adjusted for all candidates.

    Bonferroni and not Holm: a claim is made of every candidate *and* of its largest margin, and Holm's rejections at
    each margin do not make these margins hold together.

    References
    ----------
    K. Strassburger and F. Bretz (2008), Compatible simultaneous lower confidence bounds for the Holm procedure and
    other Bonferroni-based closed tests, Statistics in Medicine 27.
    """
    alpha, p = spec.test.alpha, adjusted(spec, combined)
    return np.asarray(combined.rejected & (p < alpha if spec.test.combine == "median" else p <= alpha))


def established_margins(rejected: BoolArray, test: FairnessTest) -> list[bool | None]:
    """Tell at which margins an improvement is established: rejected there and at all smaller margins."""
    if test != JUDGED:
        return [None] * rejected.size
    return [bool(value) for value in np.logical_and.accumulate(rejected)]


# The tables -----------------------------------------------------------------------------------------------------------


def value_records(inputs: Inputs, trials: Trials) -> Iterator[ImprovabilityValue]:
    """Yield the values of status quo and candidates, the means over the splits, as in the paper's figure 2."""
    most = max(trials.values(), key=lambda each: sum(trial.status == "ok" for trial in each))
    grouping, groups = inputs.sample.grouping, (*inputs.sample.groups, OVERALL)
    for name, side, each in [(STATUS_QUO, OLD, most), *((name, CANDIDATE, each) for name, each in trials.items())]:
        tested = [trial for trial in each if trial.status == "ok"]
        for k, utility in enumerate(inputs.spec.criteria.utilities):
            for g, group in enumerate(groups):
                counts = [trial.counted[slice(None) if group == OVERALL else g, k, side].sum() for trial in tested]
                value, low, high, stderr = (
                    finite(np.mean([getattr(trial, part)[g, k, side] for trial in tested])) if tested else None
                    for part in ("values", "low", "high", "stderr")
                )
                yield ImprovabilityValue(
                    model=name,
                    grouping=None if group == OVERALL else grouping,
                    group=group,
                    metric=utility.name,
                    n=round(float(np.mean(counts))) if counts else 0,
                    value=value,
                    low=low,
                    high=high,
                    stderr=stderr,
                    status="ok" if tested else _NO_CANDIDATE,
                )


def gap_records(inputs: Inputs, trials: Trials) -> Iterator[ImprovabilityGap]:
    """Yield the components of every candidate and split at a margin of 0, as in the paper's table 1."""
    for each in trials.values():
        for trial in each:
            yield from _accuracy_gaps(inputs, trial)
            yield from _fairness_gaps(inputs, trial)


def _accuracy_gaps(inputs: Inputs, trial: Trial) -> Iterator[ImprovabilityGap]:
    parts = trial.parts(JUDGED, "fairness")[:, 0]
    for component, group in enumerate(accuracy_groups(inputs)):
        everyone = group == OVERALL
        counted = trial.counted.sum(axis=0) if everyone else trial.counted[component]
        values = trial.values[-1 if everyone else component, 0]
        place = {"component": "accuracy", "metric": inputs.spec.utility.name, "group": group}
        yield _gap(inputs, trial, counted[0], values, parts, component, place)


def _fairness_gaps(inputs: Inputs, trial: Trial) -> Iterator[ImprovabilityGap]:
    spec = inputs.spec
    first = len(trial.change) - len(spec.fairness)
    for test in inputs.tests:
        parts = trial.parts(test, "fairness")[:, 0]
        for f, (utility, k) in enumerate(zip(spec.fairness, spec.criteria.fairness_index, strict=True)):
            gaps = np.ptp(trial.values[:-1, k], axis=0)
            place = {"component": "fairness", "metric": utility.name, "test": test}
            yield _gap(inputs, trial, trial.counted.sum(axis=0)[k], gaps, parts, first + f, place)
        yield ImprovabilityGap(
            model=trial.candidate,
            model_reference=STATUS_QUO,
            grouping=inputs.sample.grouping,
            metric=IMPROVEMENT,
            kind="difference",
            against="status_quo",
            n=trial.test.size,
            value=None,
            p_value=float(parts.max()),
            split=trial.split + 1,
            component="all",
            test=test,
            n_reference=trial.test.size,
            binding=False,
            status=_ONLY_P if trial.status == "ok" else trial.status,
        )


def _gap(
    inputs: Inputs,
    trial: Trial,
    counted: IntArray,
    values: FloatArray,
    parts: FloatArray,
    component: int,
    place: dict[str, Any],
) -> ImprovabilityGap:
    value, low, high = (finite(number) for number in trial.change[component])
    return ImprovabilityGap(
        model=trial.candidate,
        model_reference=STATUS_QUO,
        grouping=None if place.get("group") == OVERALL else inputs.sample.grouping,
        kind="difference",
        against="status_quo",
        n=int(counted[CANDIDATE]),
        value=value,
        low=low,
        high=high,
        p_value=float(parts[component]),
        split=trial.split + 1,
        model_value=finite(values[CANDIDATE]),
        reference_value=finite(values[OLD]),
        n_reference=int(counted[OLD]),
        binding=bool(parts[component] == parts.max()),
        status=trial.status,
        **place,
    )


def decision_records(inputs: Inputs, trials: Trials) -> Iterator[Decision]:
    """Yield the decision of every candidate, test, target and margin asked for."""
    for test in inputs.tests:
        for target in targets(inputs):
            curves = {name: curve_of(inputs, each, test, target.goal) for name, each in trials.items()}
            for margin in inputs.spec.test.margins:
                for name, curve in curves.items():
                    yield _decision(inputs, name, trials[name], test, target, curve, margin)


def _decision(
    inputs: Inputs,
    name: str,
    trials: Sequence[Trial],
    test: FairnessTest,
    target: Target,
    curve: Curve,
    margin: float,
) -> Decision:
    index = int(np.searchsorted(curve.margins, margin))
    margin = float(curve.margins[index])
    known = margin == 0 or target.goal == "fairness" or all(trial.shares for trial in trials)
    missing = sum(trial.status != "ok" for trial in trials)
    status = "ok" if not missing else f"no candidate in {missing} of {len(trials)} splits"
    return Decision(
        model=name,
        grouping=inputs.sample.grouping,
        group=target.group,
        metric=target.metric,
        test=test,
        margin=margin,
        splits=len(trials),
        p_median=float(curve.combined.median[index]) if known else None,
        p_value=float(curve.combined.p[index]) if known else None,
        p_adjusted=float(curve.adjusted[index]) if known else None,
        rejected=bool(curve.combined.rejected[index]) and known,
        established=curve.established[index] and known,
        status=status if known else _NEGATIVE,
    )


def margin_records(inputs: Inputs, trials: Trials) -> Iterator[Margin]:
    """Yield the largest margins, as in the paper's table 2, read off the whole curve."""
    names = _components(inputs)
    for name, each in trials.items():
        for test in inputs.tests:
            for target in targets(inputs):
                curve = curve_of(inputs, each, test, target.goal)
                largest = largest_delta(curve.margins, curve.rejected)
                last = curve.margins.size - 1
                end = 0 if np.isnan(largest) else min(int(np.searchsorted(curve.margins, largest)) + 1, last)
                value, status = finite(largest), "ok"
                binding: str | None = names[_binding(each, test, target.goal, end)]
                if target.goal != "fairness" and not all(trial.shares for trial in each):
                    value, status = None, _NEGATIVE
                elif value is None:
                    status = "undefined: no improvement is established at a margin of 0"
                elif value == curve.margins[-1]:
                    status, binding = "ok: at least this, the end of the margins tried", None
                yield Margin(
                    model=name,
                    grouping=inputs.sample.grouping,
                    group=target.group,
                    metric=target.metric,
                    n=len(inputs.sample),
                    value=value,
                    low=value,
                    joint_low=value,
                    test=test,
                    binding=binding,
                    status=status,
                )


def _binding(trials: Sequence[Trial], test: FairnessTest, goal: Goal, index: int) -> int:
    """Return the component with the largest p-value at a margin, in the split of the median."""
    p = np.array([trial.p(test, goal)[index] for trial in trials])
    middle = trials[int(np.argsort(p, kind="stable")[len(p) // 2])]
    return int(np.argmax(middle.parts(test, goal)[:, index]))


def curve_records(inputs: Inputs, trials: Trials) -> Iterator[CurvePoint]:
    """Yield p-values over the margins, one in ten of those computed."""
    for name, each in trials.items():
        for test in inputs.tests:
            for target in targets(inputs):
                curve = curve_of(inputs, each, test, target.goal)
                margins, combined = curve.margins, curve.combined
                shown = np.isclose(np.round(margins / _CURVE_STEP) * _CURVE_STEP, margins, atol=1e-9) & (margins < 1)
                for index in np.flatnonzero(shown):
                    yield CurvePoint(
                        model=name,
                        group=target.group,
                        metric=target.metric,
                        test=test,
                        margin=float(margins[index]),
                        p_median=float(combined.median[index]),
                        p_value=float(combined.p[index]),
                        p_adjusted=float(curve.adjusted[index]),
                        rejected=bool(combined.rejected[index]),
                        established=curve.established[index],
                    )


def candidate_records(inputs: Inputs, trials: Trials) -> Iterator[CandidateRecord]:
    """Yield what each candidate was in each split."""
    for name, each in trials.items():
        candidate = inputs.spec.candidates[name]
        for trial in each:
            yield CandidateRecord(
                model=name,
                split=trial.split + 1,
                rule=candidate.rule,
                what=candidate.in_words() if trial.made is None else trial.made.what,
                n=trial.test.size,
                selected_reference=int(np.count_nonzero(trial.status_quo.values)),
                tied_reference=trial.status_quo.tied,
                status=trial.status,
                **_decided(trial),
                **_solved(trial),
            )


def _decided(trial: Trial) -> dict[str, int]:
    if trial.made is None:
        return dict.fromkeys(("selected", "changed", "tied", "tied_selected"), 0)
    decisions = trial.made.decisions
    return {
        "selected": int(np.count_nonzero(decisions.values)),
        "changed": int(np.count_nonzero(decisions.values != trial.status_quo.values)),
        "tied": decisions.tied,
        "tied_selected": decisions.tied_selected,
    }


def _solved(trial: Trial) -> dict[str, Any]:
    """Return what is known of a linear search: what found its classifier, and what the solver said."""
    linear = trial.made.linear if trial.made is not None else None
    if linear is None:
        return {}
    solver = linear.solver
    if solver is None:
        return {"found_by": linear.found_by}
    return {
        "found_by": linear.found_by,
        "solver_status": solver.status,
        "claimed": finite(solver.claimed),
        "bound": finite(solver.bound),
        "relative_gap": finite(solver.relative_gap),
        "reproduced": solver.reproduced,
        "polished": solver.polished,
    }


def coefficient_records(trials: Trials) -> Iterator[CoefficientRecord]:
    """Yield the coefficients of linear candidates."""
    for name, each in trials.items():
        for trial in each:
            for feature, value in trial.made.coefficients if trial.made is not None else ():
                yield CoefficientRecord(model=name, split=trial.split + 1, feature=feature, value=float(value))


def power_records(inputs: Inputs, trials: Trials) -> Iterator[PowerRecord]:
    """Yield the power of the test for multiples of the rows at hand, the median over the splits."""
    for name, each in trials.items():
        powers = [trial.power for trial in each if trial.power is not None]
        for scenario in SCENARIOS:
            for index, factor in enumerate(SIZES):
                values = [power.curves[scenario][index] for power in powers]
                yield PowerRecord(
                    model=name,
                    scenario=scenario,
                    n=round(factor * len(inputs.sample)),
                    value=float(np.median(values)) if values else None,
                    status="ok" if values else _NO_CANDIDATE,
                    **_planned(inputs, scenario),
                )


def size_records(inputs: Inputs, trials: Trials) -> Iterator[SampleSizeRecord]:
    """Yield how many rows the power wanted takes, the median over the splits."""
    for name, each in trials.items():
        for scenario in SCENARIOS:
            needed = [trial.power.rows[scenario] for trial in each if trial.power is not None]
            middle = float(np.median(needed)) if needed else float("nan")
            n = round(middle) if np.isfinite(middle) else None
            yield SampleSizeRecord(
                model=name,
                scenario=scenario,
                power=inputs.spec.plan.power,
                n=n,
                status="ok" if n is not None else _NEVER if needed else _NO_CANDIDATE,
                **_planned(inputs, scenario),
            )


def _planned(inputs: Inputs, scenario: Scenario) -> dict[str, float]:
    plan = inputs.spec.plan
    return {"gain": plan.gain, "reduction": plan.reduction} if scenario == "planned" else {}
