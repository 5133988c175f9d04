"""From trials to records: curves by group, gaps to the reference group, and what each feature adds to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evenhand.audits.reliability.models import Model
from evenhand.audits.reliability.people import People
from evenhand.audits.reliability.records import AttributionRecord, CurveRecord, GapRecord, ModelRecord
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.audits.reliability.trials import Trial
from evenhand.audits.reliability.words import COMPANIONS
from evenhand.core.numbers import finite
from evenhand.stats.auc import delong
from evenhand.stats.bootstrap import Draws
from evenhand.stats.noise import Predictions
from evenhand.stats.reliability import Curves, Gap, curves, gap_of, run_band, share_lower, spread_of_runs
from evenhand.stats.types import BoolArray, FloatArray

_NOTHING_VARIES = "no interval: the resamples do not differ"


def curve_records(trial: Trial, spec: ReliabilitySpec) -> Iterator[CurveRecord]:
    """Yield every statistic of every group and noise level."""
    for name in (*spec.statistics, *COMPANIONS):
        found = curves(trial.experiment, trial.simulation, name)
        band = found.replicate_band(spec.confidence) if len(found.values) > 1 else None
        for group, label in enumerate(trial.groups.groups):
            draws = _centred(trial.draws.group(name, group), found.mean[:, group])
            limits = draws.max_t(spec.confidence)
            for at, noise_level in enumerate(found.levels):
                low, high = finite(limits.low[at]), finite(limits.high[at])
                value, status = _curve_status(found, at, group, low, trial)
                if low is None and noise_level == 0 and value is not None:
                    low = high = value  # without mistakes everybody agrees, whoever they are
                    status = "ok"
                yield CurveRecord(
                    *trial.place, label, name, float(noise_level), trial.groups.sizes[group],
                    int(found.undefined[at, group]), finite(found.replicate_sd[at, group]),
                    None if band is None else finite(band.low[at, group]),
                    None if band is None else finite(band.high[at, group]), value, low, high, status,
                )  # fmt: skip


def gap_records(trial: Trial, spec: ReliabilitySpec) -> Iterator[GapRecord]:
    """Yield the gaps of every statistic to the reference group: the mean over levels, then each level above 0."""
    if not np.any(trial.experiment.levels > 0):
        return
    for name in spec.statistics:
        found = curves(trial.experiment, trial.simulation, name)
        for group in trial.groups.others:
            yield from _gap_records(trial, name, found, group, spec)


def _gap_records(trial: Trial, name: str, found: Curves, group: int, spec: ReliabilitySpec) -> Iterator[GapRecord]:
    above, reference = found.levels > 0, trial.groups.reference
    runs = found.values[:, above, group] - found.values[:, above, reference]
    runs = np.concatenate([runs, runs.mean(axis=1, keepdims=True)], axis=1)
    draws = _centred(trial.draws.gap(name, group, reference), runs.mean(axis=0))
    gap, sd = gap_of(draws, spec.confidence), spread_of_runs(runs)
    groups = trial.groups
    who = (*trial.place, groups.groups[group], groups.groups[reference], name)
    n = groups.sizes[group] + groups.sizes[reference]
    status = _average_status(gap, found, above, group, reference)
    limits = (gap.average_low, gap.average_high) if gap.average_stderr > 0 else (np.nan, np.nan)
    yield GapRecord(
        *who, None, n, finite(gap.average_stderr), finite(gap.p_value), finite(float(share_lower(gap.value))),
        finite(sd[-1]), finite(gap.average), finite(limits[0]), finite(limits[1]), status,
    )  # fmt: skip
    for at, noise_level in enumerate(found.levels[above]):
        place = int(np.flatnonzero(above)[at])
        low, high = finite(gap.simultaneous.low[at]), finite(gap.simultaneous.high[at])
        why = _reason(found, place, (group, reference))
        status = f"undefined: {why}" if np.isnan(gap.value[at]) else "ok" if low is not None else _NOTHING_VARIES
        yield GapRecord(
            *who, float(noise_level), n, finite(gap.stderr[at]), None, None, finite(sd[at]), finite(gap.value[at]),
            low, high, status,
        )  # fmt: skip


def attribution_records(trial: Trial, spec: ReliabilitySpec) -> Iterator[AttributionRecord]:
    """Yield what the mistakes in each feature add to the gaps."""
    for name, found in trial.attributions.items():
        for group in trial.groups.others:
            parts = found.values[:, :, group] - found.values[:, :, trial.groups.reference]
            band = run_band(parts, spec.confidence) if len(parts) > 1 else None
            mean = parts.mean(axis=0)
            whole = float(mean.sum())
            for at, feature in enumerate(trial.mistakes.names):
                defined = bool(np.isfinite(mean[at]))
                yield AttributionRecord(
                    *trial.place, trial.groups.groups[group], trial.groups.groups[trial.groups.reference], name,
                    float(trial.mistakes.attribution_level or 0.0), feature, "exact" if found.exact else "sampled",
                    finite(mean[at] / whole) if defined and abs(whole) > 1e-9 else None,
                    None if band is None else finite(band.low[at]), None if band is None else finite(band.high[at]),
                    finite(mean[at]), None, None,
                    "ok" if defined else "undefined: the statistic is undefined without some mistakes",
                )  # fmt: skip


def model_record(model: Model, people: People) -> ModelRecord:
    """Return what a model is, and how it does on people without mistakes."""
    found = base_predictions(model, people)
    right = auc = None
    if people.outcome is not None:
        right = float((found.label == people.outcome).mean())
        auc = finite(delong(found.score, people.outcome).value)
    return ModelRecord(
        model.name, model.kind, model.source, model.sha256, ", ".join(model.columns), len(model.predictors),
        model.threshold, "linear" if model.linear else "rows", len(people.matrix), float(found.label.mean()),
        float(found.score.mean()), right, auc,
    )  # fmt: skip


def base_predictions(model: Model, people: People) -> Predictions:
    """Return everybody's score and decision without mistakes, out of fold where the model was fitted here."""
    fold = model.fold if model.fold is not None else np.zeros(len(people.matrix), dtype=np.int64)
    score, label = np.empty(len(fold)), np.empty(len(fold), dtype=np.bool_)
    for number, predict in enumerate(model.predictors):
        own = np.flatnonzero(fold == number)
        if own.size:
            score[own], label[own] = predict(people.matrix[own])
    return Predictions(score, label)


def _centred(draws: Draws, value: FloatArray) -> Draws:
    """Return draws around the value of all replicates; the bootstrap itself uses fewer of them."""
    return Draws(value, draws.values + (value - draws.estimate))


def _curve_status(found: Curves, at: int, group: int, low: float | None, trial: Trial) -> tuple[float | None, str]:
    value = finite(found.mean[at, group])
    if value is None:
        cells = len(found.values) * trial.experiment.cells[0]
        return None, f"undefined: {found.reasons[at, group]} in {found.undefined[at, group]} of {cells} runs"
    return value, "ok" if low is not None else _NOTHING_VARIES


def _average_status(gap: Gap, found: Curves, above: BoolArray, group: int, reference: int) -> str:
    if np.isnan(gap.average):
        places = np.flatnonzero(above)
        gone = [int(place) for place in places if found.undefined[place, [group, reference]].any()]
        why = _reason(found, gone[0], (group, reference)) if gone else "a resample has no value"
        return f"undefined: at {len(gone)} of {len(places)} noise levels, since {why}"
    return "ok" if gap.average_stderr > 0 else _NOTHING_VARIES


def _reason(found: Curves, at: int, groups: Sequence[int]) -> str:
    return next((str(found.reasons[at, group]) for group in groups if found.reasons[at, group]), "no value")
