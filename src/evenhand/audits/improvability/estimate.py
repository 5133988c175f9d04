"""From the trials of all splits to the tables of the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from evenhand.stats.improvability import CANDIDATE, Combined, FairnessTest, Goal, combine_splits, largest_delta
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


@dataclass(frozen=True, eq=False)
class Curve:
    """The p-values of one candidate by one test, for one target, over its margins.

    Parameters
    ----------
    place : what records of it begin with.
    margins : (D,) the margins.
    combined : the p-values of all splits together, and whether the candidate's own test rejects.
    adjusted : (D,) the p-values adjusted for all candidates: Bonferroni's, p times their number.
    rejected : (D,) whether the adjusted test rejects.
    established : (D,) whether it rejects there and at all smaller margins; None for the published test.
    """

    place: Mapping[str, Any]
    margins: FloatArray
    combined: Combined
    adjusted: FloatArray
    rejected: BoolArray
    established: list[bool | None]

    def point(self, index: int) -> dict[str, Any]:
        """Return the columns of a record at one margin."""
        return {
            **self.place,
            "margin": float(self.margins[index]),
            "p_median": float(self.combined.median[index]),
            "p_value": float(self.combined.p[index]),
            "p_adjusted": float(self.adjusted[index]),
            "rejected": bool(self.combined.rejected[index]),
            "established": self.established[index],
        }


def curve_of(inputs: Inputs, trials: Sequence[Trial], test: FairnessTest, target: Target, model: str) -> Curve:
    """Combine the splits of a candidate, and adjust for the number of candidates."""
    spec, goal = inputs.spec, target.goal
    combined = combine_splits(np.stack([trial.p(test, goal) for trial in trials]), spec.test.alpha, spec.test.combine)
    rejected = adjusted_rejections(spec, combined)
    place = {"model": model, "grouping": inputs.sample.grouping, "test": test}
    place |= {"metric": target.metric, "group": target.group}
    established = established_margins(rejected, test)
    return Curve(place, inputs.margins.of(goal), combined, adjusted(spec, combined), rejected, established)


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
    for name, side, each in [(STATUS_QUO, OLD, most), *((name, CANDIDATE, each) for name, each in trials.items())]:
        tested = [trial for trial in each if trial.status == "ok"]
        for k, utility in enumerate(inputs.spec.criteria.utilities):
            for g, group in enumerate((*inputs.sample.groups, OVERALL)):
                yield ImprovabilityValue(
                    model=name,
                    grouping=None if group == OVERALL else inputs.sample.grouping,
                    group=group,
                    metric=utility.name,
                    status="ok" if tested else _NO_CANDIDATE,
                    **_means(tested, g, k, side),
                )


def _means(trials: Sequence[Trial], group: int, utility: int, side: int) -> dict[str, Any]:
    """Return a group's value, its interval and standard error, and the rows that count, the means over the splits."""
    if not trials:
        return {"n": 0, "value": None}
    groups = len(trials[0].counted)
    rows = slice(None) if group == groups else group
    means = {
        part: finite(np.mean([getattr(trial, source)[group, utility, side] for trial in trials]))
        for part, source in {"value": "values", "low": "low", "high": "high", "stderr": "stderr"}.items()
    }
    return {"n": round(float(np.mean([trial.counted[rows, utility, side].sum() for trial in trials]))), **means}


class _Component(NamedTuple):
    """One component of a split's test.

    Parameters
    ----------
    number : its position among the components.
    place : what records call it.
    counted : rows that count under the status quo and the candidate.
    values : the values, or gaps between groups, of both.
    """

    number: int
    place: dict[str, Any]
    counted: IntArray
    values: FloatArray


def _accuracy(inputs: Inputs, trial: Trial) -> Iterator[_Component]:
    for index, group in enumerate(accuracy_groups(inputs)):
        everyone = group == OVERALL
        place = {"component": "accuracy", "metric": inputs.spec.utility.name, "group": group}
        place["grouping"] = None if everyone else inputs.sample.grouping
        counted = trial.counted.sum(axis=0) if everyone else trial.counted[index]
        yield _Component(index, place, counted[0], trial.values[-1 if everyone else index, 0])


def _fairness(inputs: Inputs, trial: Trial, test: FairnessTest) -> Iterator[_Component]:
    spec, first = inputs.spec, len(accuracy_groups(inputs))
    for index, (utility, k) in enumerate(zip(spec.fairness, spec.criteria.fairness_index, strict=True), first):
        place = {"component": "fairness", "metric": utility.name, "test": test, "grouping": inputs.sample.grouping}
        yield _Component(index, place, trial.counted.sum(axis=0)[k], np.ptp(trial.values[:-1, k], axis=0))


def gap_records(inputs: Inputs, trials: Trials) -> Iterator[ImprovabilityGap]:
    """Yield the components of every candidate and split at a margin of 0, as in the paper's table 1."""
    for trial in (trial for each in trials.values() for trial in each):
        split: dict[str, Any] = {"model": trial.candidate, "model_reference": STATUS_QUO, "split": trial.split + 1}
        split |= {"kind": "difference", "against": "status_quo"}
        parts = trial.parts(JUDGED, "fairness")[:, 0]
        yield from (_gap(trial, split, component, parts) for component in _accuracy(inputs, trial))
        for test in inputs.tests:
            parts = trial.parts(test, "fairness")[:, 0]
            yield from (_gap(trial, split, component, parts) for component in _fairness(inputs, trial, test))
            yield ImprovabilityGap(
                **split,
                grouping=inputs.sample.grouping,
                component="all",
                metric=IMPROVEMENT,
                test=test,
                n=trial.test.size,
                n_reference=trial.test.size,
                value=None,
                p_value=float(parts.max()),
                binding=False,
                status=_ONLY_P if trial.status == "ok" else trial.status,
            )


def _gap(trial: Trial, split: dict[str, Any], component: _Component, parts: FloatArray) -> ImprovabilityGap:
    value, low, high = (finite(number) for number in trial.change[component.number])
    p = parts[component.number]
    return ImprovabilityGap(
        **split,
        **component.place,
        n=int(component.counted[CANDIDATE]),
        n_reference=int(component.counted[OLD]),
        value=value,
        low=low,
        high=high,
        model_value=finite(component.values[CANDIDATE]),
        reference_value=finite(component.values[OLD]),
        p_value=float(p),
        binding=bool(p == parts.max()),
        status=trial.status,
    )


def decision_records(inputs: Inputs, trials: Trials) -> Iterator[Decision]:
    """Yield the decision of every candidate, test, target and margin asked for."""
    for test in inputs.tests:
        for target in targets(inputs):
            curves = {name: curve_of(inputs, each, test, target, name) for name, each in trials.items()}
            for margin in inputs.spec.test.margins:
                for name, curve in curves.items():
                    yield _decision(trials[name], curve, int(np.searchsorted(curve.margins, margin)))


def _decision(trials: Sequence[Trial], curve: Curve, index: int) -> Decision:
    point = curve.point(index)
    missing = sum(trial.status != "ok" for trial in trials)
    status = "ok" if not missing else f"no candidate in {missing} of {len(trials)} splits"
    if point["margin"] > 0 and point["metric"] == ACCURACY and not all(trial.shares for trial in trials):
        point |= dict.fromkeys(("p_median", "p_value", "p_adjusted"))
        point |= {"rejected": False, "established": None if point["established"] is None else False}
        status = _NEGATIVE
    return Decision(**point, splits=len(trials), status=status)


def margin_records(inputs: Inputs, trials: Trials) -> Iterator[Margin]:
    """Yield the largest margins, as in the paper's table 2, read off the whole curve."""
    for name, each in trials.items():
        for test in inputs.tests:
            for target in targets(inputs):
                yield _margin(inputs, each, test, target, curve_of(inputs, each, test, target, name))


def _margin(inputs: Inputs, trials: Sequence[Trial], test: FairnessTest, target: Target, curve: Curve) -> Margin:
    margins, value, status = curve.margins, finite(largest_delta(curve.margins, curve.rejected)), "ok"
    end = 0 if value is None else min(int(np.searchsorted(margins, value)) + 1, margins.size - 1)
    binding: str | None = _components(inputs)[_binding(trials, test, target.goal, end)]
    if target.metric == ACCURACY and not all(trial.shares for trial in trials):
        value, status = None, _NEGATIVE
    elif value is None:
        status = "undefined: no improvement is established at a margin of 0"
    elif value == margins[-1]:
        status, binding = "ok: at least this, the end of the margins tried", None
    n = len(inputs.sample)
    return Margin(**curve.place, n=n, value=value, low=value, joint_low=value, binding=binding, status=status)


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
                curve = curve_of(inputs, each, test, target, name)
                steps = np.round(curve.margins / _CURVE_STEP) * _CURVE_STEP
                shown = np.isclose(steps, curve.margins, atol=1e-9) & (curve.margins < 1)
                yield from (CurvePoint(**curve.point(index)) for index in np.flatnonzero(shown).tolist())


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


def _decided(trial: Trial) -> dict[str, Any]:
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
