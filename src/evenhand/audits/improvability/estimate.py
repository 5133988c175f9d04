"""Convert the trials of all splits to the tables of the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np

from evenhand.audits.improvability import result as records
from evenhand.audits.improvability.curves import SCENARIOS, SIZES, Power
from evenhand.audits.improvability.messages import say
from evenhand.audits.improvability.metrics import ACCURACY, FAIRNESS, IMPROVEMENT
from evenhand.audits.improvability.result import JUDGED
from evenhand.audits.improvability.spec import STATUS_QUO, ImprovabilitySpec
from evenhand.audits.improvability.splits import Inputs, Piece, Trial, Trials
from evenhand.core.records import OK, OVERALL
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.improvability import CANDIDATE, Combined, FairnessTest, Goal, combine_splits, largest_delta
from evenhand.stats.improvability import STATUS_QUO as OLD
from evenhand.stats.linear_search import OPTIMAL, TIME_LIMIT
from evenhand.stats.types import BoolArray, FloatArray, IntArray

NO_CANDIDATE = shared("undefined", why=say("no_split_has_candidate"))
NONE_ESTABLISHED = shared("undefined", why=say("none_established"))
_NEGATIVE = shared("undefined", why=say("negative_accuracy"))
_ONLY_P = shared("undefined", why=say("only_p"))
_NEVER = shared("undefined", why=say("no_number_of_rows"))
_UNCHANGED = say("nothing_to_compare")
_END = say("ok_but", why=say("end_of_margins"))
_CURVE_STEP = 0.01


class Target(NamedTuple):
    """The target of a margin: a goal of the test, with its names in records."""

    goal: Goal
    metric: str
    group: str


def targets(inputs: Inputs) -> tuple[Target, ...]:
    """Return the targets of margins: fairness, joint accuracy, and accuracy of each group."""
    return tuple(
        Target(goal, ACCURACY, inputs.sample.groups[goal])
        if isinstance(goal, int)
        else Target(goal, FAIRNESS if goal == "fairness" else ACCURACY, OVERALL)
        for goal in inputs.goals
    )


def accuracy_groups(inputs: Inputs) -> tuple[str, ...]:
    """Return the groups whose accuracy must rise: each group, or all people together."""
    return (OVERALL,) if inputs.spec.test.accuracy_of == "everyone" else inputs.sample.groups


def _components(inputs: Inputs) -> list[str]:
    """Return the names of the components, in the order of their p-values."""
    fairness = inputs.spec.fairness
    gaps = [f"fairness ({utility.name})" if len(fairness) > 1 else "fairness" for utility in fairness]
    return [*(f"accuracy of {group}" for group in accuracy_groups(inputs)), *gaps]


# The p-values of all splits -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class Curve:
    """The p-values of one candidate in one test for one target, over its margins.

    Parameters
    ----------
    trials : the candidate's trials.
    goal : the goal that the margins apply to.
    columns : the first columns of the curve's records.
    margins : the margins.
    combined : the combined p-values of all splits, and whether the candidate's own test rejects.
    adjusted : the p-values adjusted for all candidates (Bonferroni: p times their number).
    rejected : whether the adjusted test rejects at each margin.
    established : whether the adjusted test rejects at this and all smaller margins; None for the published test.
    """

    trials: Sequence[Trial]
    goal: Goal
    columns: Mapping[str, Any]
    margins: FloatArray
    combined: Combined
    adjusted: FloatArray
    rejected: BoolArray
    established: list[bool | None]

    @property
    def shares_defined(self) -> bool:
        """Whether margins are shares of a positive number, so that they are defined."""
        return self.columns["metric"] != ACCURACY or all(trial.tests.shares for trial in self.trials)

    def point(self, index: int) -> dict[str, Any]:
        """Return the columns of a record at one margin."""
        return {
            **self.columns,
            "margin": float(self.margins[index]),
            "p_median": float(self.combined.median[index]),
            "p_value": float(self.combined.p[index]),
            "p_adjusted": float(self.adjusted[index]),
            "rejected": bool(self.combined.rejected[index]),
            "established": self.established[index],
        }

    def binding(self, index: int) -> int:
        """Return the component with the largest p-value at a margin, in the split with the median p-value."""
        p = np.array([trial.p(self.columns["test"], self.goal)[index] for trial in self.trials])
        middle = self.trials[int(np.argsort(p, kind="stable")[len(p) // 2])]
        return int(np.argmax(middle.parts(self.columns["test"], self.goal)[:, index]))


Curves = Mapping[tuple[str, FairnessTest, Target], Curve]


def make_curves(inputs: Inputs, trials: Trials) -> Curves:
    """Return the combined p-values of every candidate, test and target over all splits."""
    keys = product(trials, inputs.tests, targets(inputs))
    return {(name, test, target): _curve(inputs, trials[name], test, target, name) for name, test, target in keys}


def _curve(inputs: Inputs, trials: Sequence[Trial], test: FairnessTest, target: Target, model: str) -> Curve:
    spec, goal = inputs.spec, target.goal
    combined = combine_splits(np.stack([trial.p(test, goal) for trial in trials]), spec.test.alpha, spec.test.combine)
    rejected = adjusted_rejections(spec, combined)
    columns = {"model": model, "grouping": inputs.sample.grouping, "test": test}
    columns |= {"metric": target.metric, "group": target.group}
    established = established_margins(rejected, test)
    return Curve(
        trials=trials,
        goal=goal,
        columns=columns,
        margins=inputs.margins.of(goal),
        combined=combined,
        adjusted=adjusted(spec, combined),
        rejected=rejected,
        established=established,
    )


def adjusted(spec: ImprovabilitySpec, combined: Combined) -> FloatArray:
    """Return a candidate's p-values adjusted for all candidates (Bonferroni: p times their number)."""
    return np.minimum(1.0, len(spec.candidates) * combined.p)


def adjusted_rejections(spec: ImprovabilitySpec, combined: Combined) -> BoolArray:
    """Return the mask of margins at which a candidate's test rejects, adjusted for all candidates.

    The adjustment is Bonferroni's, because claims are made on every candidate *and* its largest margin, and Holm's
    rejections at each margin would not make these margins simultaneously valid.

    References
    ----------
    K. Strassburger and F. Bretz (2008), Compatible simultaneous lower confidence bounds for the Holm procedure and
    other Bonferroni-based closed tests, Statistics in Medicine 27.
    """
    alpha, p = spec.test.alpha, adjusted(spec, combined)
    return np.asarray(combined.rejected & (p < alpha if spec.test.combine == "median" else p <= alpha))


def established_margins(rejected: BoolArray, test: FairnessTest) -> list[bool | None]:
    """Return whether an improvement is established at each margin: rejected there and at all smaller margins."""
    if test != JUDGED:
        return [None] * rejected.size
    return [bool(value) for value in np.logical_and.accumulate(rejected)]


# The tables -----------------------------------------------------------------------------------------------------------


def value_records(inputs: Inputs, trials: Trials) -> Iterator[records.ImprovabilityValue]:
    """Yield the values of status quo and candidates as means over splits, as in the paper's figure 2."""
    most = max(
        trials.values(), key=lambda each: sum(trial.piece.test.size for trial in each if trial.piece.status == OK)
    )
    for name, side, each in [(STATUS_QUO, OLD, most), *((name, CANDIDATE, each) for name, each in trials.items())]:
        tested = [trial for trial in each if trial.piece.status == OK]
        for k, utility in enumerate(inputs.spec.criteria.utilities):
            for g, group in enumerate((*inputs.sample.groups, OVERALL)):
                yield records.ImprovabilityValue(
                    model=name,
                    grouping=None if group == OVERALL else inputs.sample.grouping,
                    group=group,
                    metric=utility.name,
                    status=OK if tested else NO_CANDIDATE,
                    **_means(tested, g, k, side),
                )


def _means(trials: Sequence[Trial], group: int, utility: int, side: int) -> dict[str, Any]:
    """Return a group's value, interval, standard error and number of rows, as means over splits."""
    if not trials:
        return {"n": 0, "value": None}
    groups = len(trials[0].estimates.counted)
    rows = slice(None) if group == groups else group
    means = {
        part: finite(np.mean([getattr(trial.estimates, source)[group, utility, side] for trial in trials]))
        for part, source in {"value": "values", "low": "low", "high": "high", "stderr": "stderr"}.items()
    }
    return {
        "n": round(float(np.mean([trial.estimates.counted[rows, utility, side].sum() for trial in trials]))),
        **means,
    }


def gap_records(inputs: Inputs, trials: Trials) -> Iterator[records.ImprovabilityGap]:
    """Yield the components of every candidate and split at a margin of 0, as in the paper's table 1."""
    return chain.from_iterable(_split_gaps(inputs, trial) for each in trials.values() for trial in each)


def _split_gaps(inputs: Inputs, trial: Trial) -> Iterator[records.ImprovabilityGap]:
    """Yield the accuracy components, which the tests share, and each test's fairness and joint components."""
    spec, grouping, groups = inputs.spec, inputs.sample.grouping, accuracy_groups(inputs)
    everyone = trial.estimates.counted.sum(axis=0)
    parts = trial.parts(JUDGED, "fairness")[:, 0]
    for number, group in enumerate(groups):
        columns = {"component": "accuracy", "metric": spec.utility.name, "group": group}
        if group == OVERALL:
            yield _gap(trial, number, parts, everyone[0], trial.estimates.values[-1, 0], **columns)
        else:
            counted, values = trial.estimates.counted[number, 0], trial.estimates.values[number, 0]
            yield _gap(trial, number, parts, counted, values, **columns, grouping=grouping)
    for test in inputs.tests:
        parts = trial.parts(test, "fairness")[:, 0]
        common: dict[str, Any] = {"grouping": grouping, "test": test}
        for number, (utility, k) in enumerate(
            zip(spec.fairness, spec.criteria.fairness_index, strict=True), len(groups)
        ):
            columns = {"component": "fairness", "metric": utility.name, **common}
            yield _gap(trial, number, parts, everyone[k], np.ptp(trial.estimates.values[:-1, k], axis=0), **columns)
        yield records.ImprovabilityGap(
            **_gap_columns(trial),
            **common,
            component="all",
            metric=IMPROVEMENT,
            n=trial.piece.test.size,
            n_reference=trial.piece.test.size,
            value=None,
            p_value=float(parts.max()),
            binding=False,
            status=_ONLY_P if trial.piece.status == OK else trial.piece.status,
        )


def _gap_columns(trial: Trial) -> dict[str, Any]:
    """Return the first columns of all gaps of a trial."""
    models = {"model": trial.candidate, "model_reference": STATUS_QUO}
    return {**models, "split": trial.piece.split + 1, "kind": "difference", "against": "status_quo"}


def _gap(
    trial: Trial, number: int, parts: FloatArray, counted: IntArray, values: FloatArray, **columns: Any
) -> records.ImprovabilityGap:
    """Return the record of one component, with its p-value, counted rows and values of both algorithms."""
    value, low, high = (finite(change) for change in trial.estimates.change[number])
    return records.ImprovabilityGap(
        **_gap_columns(trial),
        **columns,
        n=int(counted[CANDIDATE]),
        n_reference=int(counted[OLD]),
        value=value,
        low=low,
        high=high,
        model_value=finite(values[CANDIDATE]),
        reference_value=finite(values[OLD]),
        p_value=float(parts[number]),
        binding=bool(parts[number] == parts.max()),
        status=trial.piece.status,
    )


def decision_records(inputs: Inputs, curves: Curves) -> Iterator[records.Decision]:
    """Yield the decision of every test, target, requested margin and candidate."""
    spec = inputs.spec
    for test, target, margin, name in product(inputs.tests, targets(inputs), spec.test.margins, spec.candidates):
        curve = curves[name, test, target]
        yield _decision(spec, curve, int(np.searchsorted(curve.margins, margin)))


def _decision(spec: ImprovabilitySpec, curve: Curve, index: int) -> records.Decision:
    by_median = bool(curve.combined.median[index] < spec.test.alpha / 2) if len(curve.trials) > 1 else None
    point, splits = curve.point(index), len(curve.trials)
    pieces = [piece for trial in curve.trials for piece in trial.pieces]
    missing = sum(piece.status != OK for piece in pieces)
    lacking = "no_candidate_in_steps" if spec.test.design == "one_pass" else "no_candidate_in_splits"
    status = say(lacking, missing=missing, number=len(pieces)) if missing else OK
    if all(trial.unchanged for trial in curve.trials):
        status = _UNCHANGED
    if point["margin"] > 0 and not curve.shares_defined:
        point |= dict.fromkeys(("p_median", "p_value", "p_adjusted"))
        point |= {"rejected": False, "established": None if point["established"] is None else False}
        by_median = None
        status = _NEGATIVE
    return records.Decision(**point, rejected_by_median=by_median, splits=splits, status=status)


def margin_records(inputs: Inputs, curves: Curves) -> Iterator[records.Margin]:
    """Yield the largest margins, as in the paper's table 2, from the whole curve."""
    names, n = _components(inputs), len(inputs.sample)
    for curve in curves.values():
        margins, value, status = curve.margins, finite(largest_delta(curve.margins, curve.rejected)), OK
        end = 0 if value is None else min(int(np.searchsorted(margins, value)) + 1, margins.size - 1)
        binding: str | None = names[curve.binding(end)]
        if not curve.shares_defined:
            value, status = None, _NEGATIVE
        elif value is None:
            status = NONE_ESTABLISHED
        elif value == margins[-1]:
            status, binding = _END, None
        limits = dict.fromkeys(("value", "low", "joint_low"), value)
        yield records.Margin(**curve.columns, n=n, **limits, binding=binding, status=status)


def curve_records(curves: Curves) -> Iterator[records.CurvePoint]:
    """Yield p-values over the margins, at one in ten of the computed margins."""
    for curve in curves.values():
        steps = np.round(curve.margins / _CURVE_STEP) * _CURVE_STEP
        shown = np.isclose(steps, curve.margins, atol=1e-9) & (curve.margins < 1)
        yield from (records.CurvePoint(**curve.point(index)) for index in np.flatnonzero(shown).tolist())


def candidate_records(inputs: Inputs, trials: Trials) -> Iterator[records.CandidateRecord]:
    """Yield the description of each candidate in each split."""
    for name, piece in _candidate_pieces(trials):
        candidate = inputs.spec.candidates[name]
        yield records.CandidateRecord(
            model=name,
            split=piece.split + 1,
            rule=candidate.rule,
            what=candidate.in_words() if piece.made is None else piece.made.what,
            n=piece.test.size,
            selected_reference=int(np.count_nonzero(piece.status_quo.values)),
            tied_reference=piece.status_quo.tied,
            status=piece.status,
            **_decided(piece),
            **_solver_columns(piece, candidate.margin),
        )


def _candidate_pieces(trials: Trials) -> Iterator[tuple[str, Piece]]:
    """Yield each candidate's name with its result in each split or step."""
    for name, each in trials.items():
        yield from ((name, piece) for trial in each for piece in trial.pieces)


def _decided(piece: Piece) -> dict[str, Any]:
    if piece.made is None:
        return dict.fromkeys(("selected", "changed", "tied", "tied_selected"), 0)
    decisions = piece.made.decisions
    return {
        "selected": int(np.count_nonzero(decisions.values)),
        "changed": int(np.count_nonzero(decisions.values != piece.status_quo.values)),
        "tied": decisions.tied,
        "tied_selected": decisions.tied_selected,
    }


def _solver_columns(piece: Piece, margin: float) -> dict[str, Any]:
    """Return the columns on a linear search: the method that found the classifier, and the solver's status."""
    if piece.made is None or piece.made.linear is None:
        return {}
    solver, found_by = piece.made.linear.solver, piece.made.linear.found_by
    if solver is None:
        return {"found_by": found_by}
    numbers = {name: finite(getattr(solver, name)) for name in ("claimed", "bound", "relative_gap")}
    repaired = {"reproduced": solver.reproduced, "polished": solver.polished}
    key = {OPTIMAL: "optimal", TIME_LIMIT: "stopped"}.get(solver.status, "ended")
    status = say("solver_refuted" if solver.refuted else f"solver_{key}", status=solver.status, margin=margin)
    return {"found_by": found_by, "solver_status": status, **numbers, **repaired}


def coefficient_records(trials: Trials) -> Iterator[records.CoefficientRecord]:
    """Yield the coefficients of linear candidates, rounded to the digits that are equal on all processors.

    In designs with columns that sum to 1, small coefficients have errors as large as those of large coefficients.
    """
    for name, piece in _candidate_pieces(trials):
        for feature, value in piece.made.coefficients if piece.made is not None else ():
            rounded = float(f"{value:.6g}")
            yield records.CoefficientRecord(model=name, split=piece.split + 1, feature=feature, value=rounded)


def _scenarios(inputs: Inputs, trials: Trials) -> Iterator[tuple[dict[str, Any], list[Power]]]:
    """Yield the first columns of each candidate and scenario, with the power in splits with a candidate."""
    plan = {"gain": inputs.spec.plan.gain, "reduction": inputs.spec.plan.reduction}
    for name, scenario in product(trials, SCENARIOS):
        columns = {"model": name, "scenario": scenario, **(plan if scenario == "planned" else {})}
        yield columns, [trial.tests.power for trial in trials[name] if trial.tests.power is not None]


def power_records(inputs: Inputs, trials: Trials) -> Iterator[records.PowerRecord]:
    """Yield the power of the test for multiples of the available rows, as medians over splits."""
    for columns, powers in _scenarios(inputs, trials):
        for index, factor in enumerate(SIZES):
            values = [power.curves[columns["scenario"]][index] for power in powers]
            value, status = (float(np.median(values)), OK) if values else (None, NO_CANDIDATE)
            n = round(factor * len(inputs.sample))
            yield records.PowerRecord(**columns, n=n, value=value, status=status)


def size_records(inputs: Inputs, trials: Trials) -> Iterator[records.SampleSizeRecord]:
    """Yield the number of rows for the required power, as medians over splits."""
    for columns, powers in _scenarios(inputs, trials):
        needed = [power.rows[columns["scenario"]] for power in powers]
        middle = float(np.median(needed)) if needed else float("nan")
        n = round(middle) if np.isfinite(middle) else None
        status = OK if n is not None else _NEVER if needed else NO_CANDIDATE
        yield records.SampleSizeRecord(**columns, power=inputs.spec.plan.power, n=n, status=status)
