"""Run one simulation (a model, a noise setting and a grouping), and build its records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from evenhand.audits.reliability.derived import Derivation
from evenhand.audits.reliability.gather import ScoredPeople
from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.metrics import METRICS, measures_harm
from evenhand.audits.reliability.mistakes import Mistakes
from evenhand.audits.reliability.models import Model
from evenhand.audits.reliability.result import ModelRecord, ReliabilityValue
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.families import MOST_FINDINGS
from evenhand.core.findings import without_kind
from evenhand.core.groups import ComparedGroups
from evenhand.core.progress import step
from evenhand.core.records import OK
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.agreement import Undefined
from evenhand.stats.auc import delong
from evenhand.stats.bootstrap import named_rng
from evenhand.stats.draws import Draws
from evenhand.stats.noise import (
    Attribution,
    Experiment,
    PairSums,
    Predictions,
    Simulation,
    attribute,
    replicate_seeds,
    simulate,
    with_derived,
)
from evenhand.stats.reliability import (
    Curves,
    PeopleDraws,
    PeopleGap,
    bootstrap_people,
    compare_people,
    curves,
    derivatives_of,
    fold_spread,
    joint_band,
    metric_values,
    people_values,
)
from evenhand.stats.types import FloatArray, Interval

PEOPLE_REPLICATES = 20
"""The number of replicates in the bootstrap over people; fewer replicates give longer intervals, not shorter ones."""

_CLEAR = 0.05  # the significance level of a clear difference between two groups


@dataclass(frozen=True, eq=False, kw_only=True)
class Simulated:
    """The output of one simulation.

    Parameters
    ----------
    model, mistakes, groups : the model, the mistakes, and the grouping.
    experiment : the people, predictors and noise in the form that the engine takes.
    runs : the sums of every replicate, level, fold and group.
    draws : every metric of resampled people.
    compared : the comparison of two groups' people, by metric and the two positions (the lower position first).
    attributions : the contributions of features, by metric; empty unless requested.
    same_pilot : runs that all learn from the original pilot; present if the main runs learn by group from resampled
        pilots.
    """

    model: Model
    mistakes: Mistakes
    groups: ComparedGroups
    experiment: Experiment
    runs: Simulation
    draws: PeopleDraws
    compared: dict[tuple[str, int, int], PeopleGap]
    attributions: dict[str, Attribution]
    same_pilot: Simulation | None = None

    @property
    def changed(self) -> dict[str, float]:
        """The share of people with a changed entry at the highest noise level, by feature."""
        return dict(zip(self.mistakes.names, self.runs.changed.tolist(), strict=True))

    @property
    def coordinates(self) -> dict[str, Any]:
        """The model, setting and grouping, by the names of a record's columns."""
        return {"model": self.model.name, "setting": self.mistakes.setting.name, "grouping": self.groups.name}

    def label(self, group: int) -> str:
        """Return the label of the group at a position."""
        return self.groups.groups[group]


@dataclass(frozen=True, eq=False, kw_only=True)
class Setup:
    """The inputs of one simulation: a model, its mistakes, and the people by group.

    Parameters
    ----------
    model, mistakes, groups : the model, the mistakes, and the grouping.
    people, derivation : the people's features, and the rules of derived features.
    spec : the settings of the audit.
    tests : the largest number of tests that share the run's level.
    """

    model: Model
    mistakes: Mistakes
    groups: ComparedGroups
    people: ScoredPeople
    derivation: Derivation
    spec: ReliabilitySpec
    tests: int = 1

    @property
    def rng(self) -> np.random.Generator:
        """The random generator of the mistakes, with the same seed for all models."""
        return named_rng(self.spec.seed, self.mistakes.setting.name, *map(str, self.groups.sizes))


def run_simulation(setup: Setup) -> Simulated:
    """Simulate mistakes, resample people, and attribute the gap to features."""
    model, mistakes, groups, spec = setup.model, setup.mistakes, setup.groups, setup.spec
    experiment, rng = make_experiment(setup), setup.rng
    seeds = replicate_seeds(spec.replicates, rng)
    title = f"{model.name} by {groups.name}, noise {mistakes.setting.name}"
    step(f"Simulating mistakes: {title}")
    ratios = [name for name in spec.metrics if not measures_harm(name)]
    runs = simulate(experiment, seeds, derivatives=derivatives_of(ratios) if ratios else None)
    step(f"Resampling people: {title}")
    names, few = spec.shown_metrics, seeds[:PEOPLE_REPLICATES]
    draws = bootstrap_people(experiment, few, names, resamples=spec.resamples, rng=rng)
    attributions = {}
    if mistakes.attribution_level is not None and len(groups.groups) > 1 and len(mistakes.items) > 1:
        step(f"Sharing out the gap among features: {title}")
        attributions = _attributions(experiment, mistakes.attribution_level, seeds, spec)
    same_pilot = None
    if experiment.renew is not None and spec.replicates > 1 and mistakes.learned_by_group:
        step(f"Simulating mistakes of one pilot: {title}")
        same_pilot = simulate(replace(experiment, renew=None), replicate_seeds(spec.replicates, rng))
    return Simulated(
        model=model,
        mistakes=mistakes,
        groups=groups,
        experiment=experiment,
        runs=runs,
        draws=draws,
        compared=dict(_compared(setup, experiment, runs)),
        attributions=attributions,
        same_pilot=same_pilot,
    )


def _compared(
    setup: Setup, experiment: Experiment, runs: Simulation
) -> Iterator[tuple[tuple[str, int, int], PeopleGap]]:
    """Yield the comparison of every two groups' people, for each metric with a value for all of these people."""
    spec, groups = setup.spec, experiment.cells[1]
    group = experiment.base.cell % groups
    influence = iter(runs.influence)
    for name in spec.metrics if np.any(runs.levels > 0) else ():
        values = people_values(experiment, runs, name, None if measures_harm(name) else next(influence))
        for pair in combinations(range(groups), 2):
            rows = np.flatnonzero(np.isin(group, pair))
            if not np.isfinite(values[rows]).all():
                continue
            yield (
                (name, *pair),
                compare_people(
                    values[rows],
                    experiment.base.fold[rows],
                    group[rows] == pair[0],
                    bounds=_bounds(name, experiment),
                    level=_CLEAR / setup.tests / MOST_FINDINGS,
                ),
            )


def _bounds(name: str, experiment: Experiment) -> tuple[float, float] | None:
    """Return the smallest and the largest possible value of a person, or None if they are unknown."""
    if name == "pabak":
        return -1.0, 1.0
    score, spread = experiment.base.score, fold_spread(experiment)
    if name == "icc_spread" and score.min() >= 0 and score.max() <= 1 and spread.min() > 0:
        return 1.0 - 1.0 / float(spread.min()), 1.0
    return None


def _attributions(
    experiment: Experiment, level: float, seeds: Sequence[np.random.SeedSequence], spec: ReliabilitySpec
) -> dict[str, Attribution]:
    """Attribute each metric to features at a noise level, so that the parts sum to the gaps.

    The mistakes are those of the curves' replicates. A level that the curves lack is added, which changes no mistake.
    """
    levels = np.union1d(experiment.levels, [level])
    if levels.size > experiment.levels.size or experiment.raters != 1:
        experiment = replace(experiment, levels=levels, raters=1)
    spread = fold_spread(experiment)
    metrics = {name: partial(_metric_of_sums, name, spread) for name in spec.metrics}
    return attribute(experiment, seeds, metrics, level=int(np.searchsorted(levels, level)))


def _metric_of_sums(name: str, spread: FloatArray, sums: PairSums) -> FloatArray:
    return metric_values(name, sums, spread)


def make_experiment(setup: Setup) -> Experiment:
    """Return the experiment of the compared people, without the folds that contain none of them."""
    model, mistakes, groups, spec = setup.model, setup.mistakes, setup.groups, setup.spec
    inside = np.flatnonzero(groups.code >= 0)
    predictors, fold = model.predictors, None
    if model.fold is not None:
        present, fold = np.unique(model.fold[inside], return_inverse=True)
        predictors, fold = tuple(predictors[number] for number in present), fold.astype(np.int64)
    if (derive := setup.derivation.derive) is not None:
        predictors = tuple(with_derived(predict, derive) for predict in predictors)
    profiles = mistakes.profiles
    return Experiment(
        features=setup.people.matrix[inside],
        predictors=predictors,
        items=mistakes.items,
        groups=groups.code[inside],
        folds=fold,
        levels=mistakes.noise_levels,
        shares=mistakes.shares,
        common=not spec.noise.fresh,
        raters=spec.noise.noisy_raters,
        memory=spec.scoring.memory * 2**20,
        renew=mistakes.redraw,
        profiles=None if profiles is None else profiles.code[inside],
        paces=None if profiles is None else profiles.paces,
    )


def unused_items(simulated: Simulated) -> Iterator[str]:
    """Yield the items whose mistakes change no score, even if every entry is changed once."""
    paces = simulated.experiment.paces
    most = np.array([1.0 if paces is None else 1.0 / max(1.0, float(paces.max()))])
    for item, name in zip(simulated.mistakes.items, simulated.mistakes.names, strict=True):
        alone = replace(simulated.experiment, items=(item,), levels=most, raters=1, common=True, renew=None)
        done = simulate(alone, replicate_seeds(1, np.random.default_rng(0)))
        if not np.any(done.sums.error_squares):
            yield name


# Testability ---------------------------------------------------------------------------------------------------------


def centred(draws: Draws, value: FloatArray) -> Draws:
    """Return bootstrap draws shifted to the mean of all replicates; the bootstrap itself uses fewer."""
    return Draws(value, draws.values + (value - draws.estimate))


def why_no_intervals(draws: Draws) -> list[Message | None]:
    """Return the reason why each bootstrapped number has no interval, or None where it has an interval."""
    stderr, undefined, resamples = draws.stderr(), draws.undefined, len(draws.values)
    rounding = 1e-13 * np.abs(np.where(np.isfinite(draws.values), draws.values, 0.0)).max(axis=0)
    return [
        shared("no_interval", why=say("undefined_in_resamples", lost=lost, resamples=resamples))
        if np.isnan(spread)
        else shared("no_interval", why=say("no_resample_differs"))
        if spread <= least
        else None
        for spread, lost, least in zip(stderr.tolist(), undefined.tolist(), rounding.tolist(), strict=True)
    ]


def why_undefined_at(curve: Curves, level: int, groups: Sequence[int]) -> Message | None:
    """Return the reason why a metric of some groups is undefined at a noise level, or None if it is defined."""
    lost = [group for group in groups if np.isnan(curve.mean[level, group])]
    if not lost:
        return None
    reason = str(curve.reasons[level, lost[0]])
    return shared("undefined", why=Undefined(reason).message if reason else say("no_value"))


# Values and models ----------------------------------------------------------------------------------------------------


def value_records(simulated: Simulated, spec: ReliabilitySpec) -> Iterator[ReliabilityValue]:
    """Yield the values of every metric, group and noise level."""
    for name in spec.shown_metrics:
        curve = curves(simulated.experiment, simulated.runs, name)
        for group in range(len(simulated.groups.groups)):
            yield from _curve_records(simulated, name, curve, group, spec)


def _curve_records(
    simulated: Simulated, name: str, curve: Curves, group: int, spec: ReliabilitySpec
) -> Iterator[ReliabilityValue]:
    draws = centred(simulated.draws.group(name, group), curve.mean[:, group])
    limits = _possible(name, joint_band(draws, spec.confidence, simulated.draws.freedom(name, group), curve.levels))
    band = _possible(name, curve.replicate_band(spec.confidence)) if len(curve.values) > 1 else None
    no_interval = why_no_intervals(draws)
    for level, noise_level in enumerate(curve.levels):
        low, high = finite(limits.low[level]), finite(limits.high[level])
        value = finite(curve.mean[level, group])
        status = _value_status(curve, level, group, simulated) or no_interval[level] or OK
        if low is None and noise_level == 0 and value is not None:
            low = high = value  # without mistakes, both raters always agree
            status = OK
        yield ReliabilityValue(
            **simulated.coordinates,
            group=simulated.label(group),
            metric=name,
            n=simulated.groups.sizes[group],
            value=value,
            low=low,
            high=high,
            joint_low=low,
            joint_high=high,
            status=status,
            noise_level=float(noise_level),
            undefined=int(curve.undefined[level, group]),
            replicate_sd=finite(curve.replicate_sd[level, group]),
            replicate_low=None if band is None else finite(band.low[level, group]),
            replicate_high=None if band is None else finite(band.high[level, group]),
        )


def _possible(name: str, limits: Interval) -> Interval:
    """Clip limits to the metric's range: 0 to 1 for shares, at most 1 for agreement coefficients."""
    share = METRICS[name].unit == "share"
    ends = (0.0 if share else -np.inf, 1.0 if share or METRICS[name].limits else np.inf)
    return Interval(np.clip(limits.low, *ends), np.clip(limits.high, *ends))


def _value_status(curve: Curves, level: int, group: int, simulated: Simulated) -> Message | None:
    undefined = why_undefined_at(curve, level, (group,))
    if undefined is None:
        return None
    why = without_kind(undefined)
    runs, lost = len(curve.values) * simulated.experiment.cells[0], int(curve.undefined[level, group])
    every = lost == runs
    why = say("in_every_run", why=why) if every else say("in_some_runs", why=why, lost=lost, runs=runs)
    return shared("undefined", why=why)


def undefined_in_every_run(record: ReliabilityValue) -> bool:
    """Return whether a value is undefined in every fold and replicate."""
    return without_kind(record.status).id == "reliability.in_every_run"


def model_records(models: Sequence[Model], people: ScoredPeople, *, are_numbers: bool) -> Iterator[ModelRecord]:
    """Yield each model's description and its performance on the data without mistakes."""
    for model in models:
        base = base_predictions(model, people)
        accuracy = auc = None
        if people.outcome is not None:
            accuracy = float((base.label == people.outcome).mean())
            auc = finite(delong(base.score, people.outcome).value)
        yield ModelRecord(
            model=model.name,
            kind=model.kind,
            source=model.source,
            sha256=model.sha256,
            features=", ".join(model.columns),
            folds=len(model.predictors),
            threshold=None if are_numbers else model.threshold,
            method="linear" if model.linear else "rows",
            n=len(people.matrix),
            selected=None if are_numbers else float(base.label.mean()),
            mean_score=float(base.score.mean()),
            accuracy=accuracy,
            auc=auc,
        )


def base_predictions(model: Model, people: ScoredPeople) -> Predictions:
    """Return all people's scores and decisions without mistakes, out of fold for models fitted here."""
    fold = model.fold if model.fold is not None else np.zeros(len(people.matrix), dtype=np.int64)
    score, label = np.empty(len(fold)), np.empty(len(fold), dtype=np.bool_)
    for number, predict in enumerate(model.predictors):
        members = np.flatnonzero(fold == number)
        if members.size:
            score[members], label[members] = predict(people.matrix[members])
    return Predictions(score, label)
