"""One trial: a model, a way of going wrong and a grouping; simulated, resampled and shared out among features."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.audits.reliability.derived import Derivation
from evenhand.audits.reliability.models import Model
from evenhand.audits.reliability.noise import Mistakes
from evenhand.audits.reliability.people import People
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.audits.reliability.words import COMPANIONS
from evenhand.core.compared import Compared
from evenhand.core.progress import step
from evenhand.stats.noise import (
    Attribution,
    Experiment,
    PairSums,
    Simulation,
    attribute,
    replicate_seeds,
    simulate,
    with_derived,
)
from evenhand.stats.reliability import PeopleDraws, bootstrap_people, fold_spread, metric_values
from evenhand.stats.types import FloatArray

PEOPLE_REPLICATES = 20
"""Replicates that the bootstrap over people uses; with fewer the interval is longer, not shorter."""


@dataclass(frozen=True, eq=False)
class Trial:
    """What was simulated.

    Parameters
    ----------
    model, mistakes, groups : the model, the way of going wrong, and the grouping.
    experiment : people, predictors and noise as the engine takes them.
    simulation : the sums of every replicate, level, fold and group.
    draws : every statistic of resampled people.
    attributions : for each statistic, its value shared out among features; empty where that was not asked for.
    same_pilot : where each replicate learns by group from a resampled pilot, others that learn from the pilot itself.
    """

    model: Model
    mistakes: Mistakes
    groups: Compared
    experiment: Experiment
    simulation: Simulation
    draws: PeopleDraws
    attributions: dict[str, Attribution]
    same_pilot: Simulation | None = None

    @property
    def changed(self) -> dict[str, float]:
        """For each feature the share of people whose entry was changed at the highest noise level."""
        return dict(zip(self.mistakes.names, self.simulation.changed.tolist(), strict=True))

    @property
    def place(self) -> tuple[str, str, str]:
        """The names of model, setting and grouping."""
        return self.model.name, self.mistakes.setting, self.groups.name


def run_trial(
    model: Model, mistakes: Mistakes, groups: Compared, people: People, derivation: Derivation, spec: ReliabilitySpec
) -> Trial:
    """Simulate mistakes, resample people, and share the gap out."""
    experiment = make_experiment(model, mistakes, groups, people, derivation, spec)
    rng = _generator(spec.seed, mistakes.setting, groups.name)
    seeds = replicate_seeds(spec.replicates, rng)
    few = seeds[:PEOPLE_REPLICATES]
    where = f"{model.name} by {groups.name}, noise {mistakes.setting}"
    step(f"Simulating mistakes: {where}")
    simulation = simulate(experiment, seeds)
    step(f"Resampling people: {where}")
    names = (*spec.statistics, *COMPANIONS)
    draws = bootstrap_people(experiment, few, names, resamples=spec.resamples, rng=rng)
    attributions = {}
    if mistakes.attribution_level is not None and len(groups.groups) > 1 and len(mistakes.items) > 1:
        step(f"Sharing out the gap among features: {where}")
        attributions = _shared_out(experiment, mistakes.attribution_level, seeds, spec)
    same_pilot = None
    if experiment.renew is not None and spec.replicates > 1 and _by_group(mistakes, spec):
        step(f"Simulating mistakes of one pilot: {where}")
        same_pilot = simulate(replace(experiment, renew=None), replicate_seeds(spec.replicates, rng))
    return Trial(model, mistakes, groups, experiment, simulation, draws, attributions, same_pilot)


def _by_group(mistakes: Mistakes, spec: ReliabilitySpec) -> bool:
    pilot = next(setting.pilot for setting in spec.noise if setting.name == mistakes.setting)
    return pilot is not None and pilot.by is not None


def _shared_out(
    experiment: Experiment, level: float, seeds: Sequence[np.random.SeedSequence], spec: ReliabilitySpec
) -> dict[str, Attribution]:
    """Share statistics out at a noise level, in the replicates of the curves: the parts add up to their gaps.

    A level between those of the curves is added to them, which moves no mistake.
    """
    levels = np.union1d(experiment.levels, [level])
    if levels.size > experiment.levels.size or experiment.raters != 1:
        experiment = replace(experiment, levels=levels, raters=1)
    spread = fold_spread(experiment)
    statistics = {name: _Of(name, spread) for name in spec.statistics}
    return attribute(experiment, seeds, statistics, level=int(np.searchsorted(levels, level)))


@dataclass(frozen=True, eq=False)
class _Of:
    """A statistic as the attribution asks for it."""

    name: str
    spread: FloatArray

    def __call__(self, sums: PairSums) -> FloatArray:
        return metric_values(self.name, sums, self.spread)


def make_experiment(
    model: Model, mistakes: Mistakes, groups: Compared, people: People, derivation: Derivation, spec: ReliabilitySpec
) -> Experiment:
    """Return the experiment of the people who are compared; folds that none of them is in are left out."""
    inside = np.flatnonzero(groups.code >= 0)
    predictors, fold = model.predictors, None
    if model.fold is not None:
        present, fold = np.unique(model.fold[inside], return_inverse=True)
        predictors, fold = tuple(predictors[number] for number in present), fold.astype(np.int64)
    if derivation.derive is not None:
        derive = derivation.derive
        predictors = tuple(with_derived(predict, derive) for predict in predictors)
    code, paces = (None, None) if (own := mistakes.profiles) is None else (own.code[inside], own.paces)
    return Experiment(
        people.matrix[inside],
        predictors,
        mistakes.items,
        groups.code[inside],
        fold,
        mistakes.noise_levels,
        mistakes.shares,
        not spec.fresh,
        spec.noisy_raters,
        spec.memory * 2**20,
        mistakes.renew,
        code,
        paces,
    )


def unused_items(trial: Trial) -> Iterator[str]:
    """Yield the items whose mistakes change no score of anybody: every entry of theirs was touched once."""
    paces = trial.experiment.paces
    most = np.array([1.0 if paces is None else 1.0 / max(1.0, float(paces.max()))])
    for item, name in zip(trial.mistakes.items, trial.mistakes.names, strict=True):
        alone = replace(trial.experiment, items=(item,), levels=most, raters=1, common=True, renew=None)
        done = simulate(alone, replicate_seeds(1, np.random.default_rng(0)))
        if not np.any(done.sums.error_squares):
            yield name


def _generator(seed: int, *names: str) -> np.random.Generator:
    """Return a generator by name: no number depends on what else was computed, and models share the mistakes."""
    digest = hashlib.sha256("\x1f".join(names).encode()).digest()
    return np.random.default_rng(np.random.SeedSequence([seed, *np.frombuffer(digest, dtype=np.uint32).tolist()]))
