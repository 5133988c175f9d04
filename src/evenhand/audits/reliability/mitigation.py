"""Models that are hurt less by mistakes: sparse, regularised or monotone models of no lower accuracy.

All models decide about the same people under the same mistakes, out of fold if they are fitted here. So two models can
be compared person by person: by correct decisions, and by the share of runs with a changed decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from evenhand.audits.reliability.derived import Derivation
from evenhand.audits.reliability.estimate import Setup, base_predictions, make_experiment
from evenhand.audits.reliability.gather import ScoredPeople, deal_folds
from evenhand.audits.reliability.mistakes import Mistakes
from evenhand.audits.reliability.model_sources import ModelSource
from evenhand.audits.reliability.models import FOLDS, Model, fit_to_everybody, prepare_model
from evenhand.audits.reliability.result import MitigationRecord
from evenhand.audits.reliability.spec import Mitigation, ReliabilitySpec
from evenhand.core.groups import ComparedGroups
from evenhand.core.progress import step
from evenhand.errors import ConfigError, require_extra
from evenhand.messages.formats import finite
from evenhand.stats.intervals import bonferroni, bounded_mean, t_quantile, wilson
from evenhand.stats.noise import replicate_seeds, simulate
from evenhand.stats.paired import paired_difference
from evenhand.stats.reliability import compare_people
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval

_STRENGTHS = (0.1, 0.01, 0.001)


def alternatives(spec: ReliabilitySpec, people: ScoredPeople) -> dict[str, tuple[str, ModelSource]]:
    """Return the models of the named families, each with its family and source.

    Sparse models are logistic regressions with the l1 penalty, which drops features. Regularised models are logistic
    regressions with the l2 penalty, which shrinks all weights. Monotone models are boosted trees whose score only
    rises or only falls with each numeric feature, by the sign of its correlation with the outcome.
    """
    alternatives_by_name: dict[str, tuple[str, ModelSource]] = {}
    for family in [] if spec.mitigation is None else spec.mitigation.family:
        for strength in _STRENGTHS if family != "monotone" else (None,):
            settings: dict[str, Any] = {"C": strength}
            if family == "sparse":
                settings |= {"l1_ratio": 1.0, "solver": "saga", "tol": 1e-6, "max_iter": 10_000}
            elif family == "monotone":
                settings = {"monotonic_cst": _directions(people), "max_leaf_nodes": 8}
            estimator = "gradient_boosting" if family == "monotone" else "logistic"
            name = family if strength is None else f"{family} {strength:g}"
            alternatives_by_name[name] = family, ModelSource(estimator=estimator, settings=settings)
    return alternatives_by_name


def _directions(people: ScoredPeople) -> list[int]:
    """Return the monotone direction of each pipeline column, text columns first: 1, -1, or 0 for none."""
    text, numbers, outcome = [], [], _outcome(people)
    for column, feature in enumerate(people.features):
        values = people.matrix[:, column]
        if feature.kind != "number":
            text += [0] * len(feature.distinct)
        else:
            present = ~np.isnan(values)
            slope = np.mean((values[present] - values[present].mean()) * outcome[present])
            numbers.append(int(np.sign(slope)))
    return [*text, *numbers]


def _outcome(people: ScoredPeople) -> BoolArray:
    if people.outcome is None:
        raise ConfigError("`mitigation` fits models, which needs an outcome; name its column as `outcome`.")
    return people.outcome


@dataclass(frozen=True, eq=False)
class _ModelOutcome:
    """The results of one model: correct decisions, and shares of runs with a changed decision, by person."""

    name: str
    family: str
    model: Model
    right: FloatArray
    damage: FloatArray


def mitigation_records(
    models: Sequence[Model],
    people: ScoredPeople,
    *,
    settings: Sequence[Mistakes],
    groups: Sequence[ComparedGroups],
    derivation: Derivation,
    spec: ReliabilitySpec,
) -> Iterator[MitigationRecord]:
    """Yield accuracy, reliability and largest gap of each model, and mark the chosen one."""
    if spec.mitigation is None:
        return
    _outcome(people)
    others = alternatives(spec, people)
    fold = deal_folds(people, spec.folds or FOLDS, spec.seed)
    tried = [("as given", _baseline_outcome(models, spec.mitigation))]
    tried += [
        (family, prepare_model(name, made, people, spec=spec, positive=1, fold=fold))
        for name, (family, made) in others.items()
    ]
    compared = [grouping for grouping in groups if len(grouping.groups) > 1]
    for number, (mistakes, grouping) in enumerate(product(settings, compared)):
        step(f"Other models under mistakes: by {grouping.name}, noise {mistakes.setting.name}")
        met = [
            _simulate_outcome(
                family,
                Setup(model=model, mistakes=mistakes, groups=grouping, people=people, derivation=derivation, spec=spec),
            )
            for family, model in tried
        ]
        records = list(_compare(met, mistakes, grouping, spec.mitigation, spec.confidence))
        yield from records
        if spec.mitigation.export is not None and number == 0:
            _export(next(record.model for record in records if record.chosen), others, people, spec)


def _baseline_outcome(models: Sequence[Model], mitigation: Mitigation) -> Model:
    """Return the model as given by the user, the baseline of the comparison."""
    return next((model for model in models if mitigation.model in (None, model.name)), models[0])


def _simulate_outcome(family: str, setup: Setup) -> _ModelOutcome:
    """Simulate mistakes for one model, and return correct and changed decisions by person."""
    experiment, model, people = make_experiment(setup), setup.model, setup.people
    seeds = replicate_seeds(setup.spec.replicates, setup.rng)
    inside = np.flatnonzero(setup.groups.code >= 0)
    damage = np.empty(inside.size)
    damage[experiment.base.order] = simulate(experiment, seeds).damage[0]
    right = (base_predictions(model, people).label == people.outcome)[inside]
    return _ModelOutcome(model.name, family, model, right.astype(np.float64), damage)


def accuracy_change(right: FloatArray, baseline: FloatArray, confidence: float) -> dict[str, float | None]:
    """Return a model's gain in accuracy over the given model, with Tango's limits.

    Examples
    --------
    >>> found = accuracy_change(np.ones(200), np.ones(200), 0.95)
    >>> found["accuracy_change"], round(found["accuracy_change_low"], 3)
    (0.0, -0.019)
    """
    gained, lost = int((right > baseline).sum()), int((right < baseline).sum())
    low, high = paired_difference(gained, lost, right.size, confidence)
    names = ("accuracy_change", "accuracy_change_low", "accuracy_change_high")
    return dict(zip(names, ((gained - lost) / right.size, low, high), strict=True))


def _with_limits(name: str, value: float, limits: Interval) -> dict[str, float | None]:
    return {name: value, f"{name}_low": finite(float(limits.low)), f"{name}_high": finite(float(limits.high))}


def _accuracy(right: FloatArray, confidence: float) -> dict[str, float | None]:
    """Return the share of correct decisions with Wilson's limits."""
    share = float(right.mean())
    return _with_limits("accuracy", share, wilson(share, right.size, confidence))


def _reliability(damage: FloatArray, confidence: float) -> dict[str, float | None]:
    """Return the PABAK of decisions with and without mistakes, with its limits."""
    values = 1.0 - 2.0 * damage
    mean, stderr = float(values.mean()), float(values.std(ddof=1)) / np.sqrt(values.size)
    return _with_limits("reliability", mean, bounded_mean(mean, stderr, values.size, confidence, (-1.0, 1.0)))


def _reliability_change(values: FloatArray, confidence: float) -> dict[str, float | None]:
    """Return the mean of people's differences with t limits; no limits if all differences are equal."""
    mean, half = float(values.mean()), np.nan
    if np.ptp(values) > 0:
        half = t_quantile(values.size - 1, confidence) * values.std(ddof=1) / np.sqrt(values.size)
    low, high = np.maximum(mean - half, -2.0), np.minimum(mean + half, 2.0)
    return _with_limits("reliability_change", mean, Interval(low, high))


def _compare(
    met: Sequence[_ModelOutcome],
    mistakes: Mistakes,
    grouping: ComparedGroups,
    mitigation: Mitigation,
    confidence: float,
) -> Iterator[MitigationRecord]:
    """Yield one record per model; changes hold for all alternatives together (Bonferroni).

    The chosen model has the highest reliability among the given model and the alternatives whose accuracy is shown to
    be lower by at most the margin.
    """
    code = grouping.code[grouping.code >= 0]
    together = bonferroni(confidence, max(len(met) - 1, 1))
    changes = [accuracy_change(outcome.right, met[0].right, together) for outcome in met[1:]]
    allowed = [True, *((change["accuracy_change_low"] or 0.0) >= -mitigation.margin for change in changes)]
    best = max(
        (position for position, ok in enumerate(allowed) if ok),
        key=lambda position: (-met[position].damage.mean(), -position),
    )
    for position, outcome in enumerate(met):
        columns: dict[str, Any] = _accuracy(outcome.right, confidence) | _reliability(outcome.damage, confidence)
        if position:
            columns |= changes[position - 1] | _reliability_change(2.0 * (met[0].damage - outcome.damage), together)
        yield MitigationRecord(
            model=outcome.name,
            family=outcome.family,
            setting=mistakes.setting.name,
            grouping=grouping.name,
            n=code.size,
            **columns,
            **_largest_gap(outcome.damage, code, grouping, confidence),
            no_less_accurate=allowed[position],
            chosen=position == best,
        )


def _largest_gap(damage: FloatArray, code: IntArray, grouping: ComparedGroups, confidence: float) -> Mapping[str, Any]:
    """Return the largest gap in reliability to the reference group, with limits simultaneous over groups."""
    values, joint = 1.0 - 2.0 * damage, bonferroni(confidence, len(grouping.others))
    gaps: list[dict[str, Any]] = []
    for number in grouping.others:
        rows = np.flatnonzero((code == number) | (code == grouping.reference))
        in_group, fold = code[rows] == number, np.zeros(rows.size, dtype=np.int64)
        found = compare_people(values[rows], fold, in_group, bounds=(-1.0, 1.0), level=1.0 - joint)
        low, high = found.limits(joint)
        gaps.append({"group": grouping.groups[number], "gap": found.value, "gap_low": low, "gap_high": high})
    return max(gaps, key=lambda record: abs(record["gap"]))


def _export(
    chosen: str, others: Mapping[str, tuple[str, ModelSource]], people: ScoredPeople, spec: ReliabilitySpec
) -> None:
    """Export the chosen alternative, fitted to all people, as a skops file.

    The given model is not exported, because the user has it.
    """
    path = spec.folder / str(spec.mitigation.export if spec.mitigation else None)
    if chosen not in others:
        return
    require_extra("skops", "models", "`export`")
    model = fit_to_everybody(chosen, others[chosen][1], people, spec)
    path.parent.mkdir(parents=True, exist_ok=True)
    import_module("skops.io").dump(model, path)
