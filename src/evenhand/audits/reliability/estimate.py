"""From trials to records: curves by group, what each feature adds to gaps, and the models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenhand.audits.reliability.gaps import reference_gap
from evenhand.audits.reliability.intervals import centred, why_no_intervals, why_undefined_at
from evenhand.audits.reliability.models import Model
from evenhand.audits.reliability.people import People
from evenhand.audits.reliability.records import AttributionRecord, CurveRecord, ModelRecord
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.audits.reliability.trials import Trial
from evenhand.audits.reliability.words import COMPANIONS
from evenhand.core.numbers import finite
from evenhand.stats.auc import delong
from evenhand.stats.noise import Predictions
from evenhand.stats.reliability import Curves, curves, joint_band, run_band

EVERY_RUN = "in every run"


def curve_records(trial: Trial, spec: ReliabilitySpec) -> Iterator[CurveRecord]:
    """Yield every statistic of every group and noise level."""
    for name in (*spec.statistics, *COMPANIONS):
        found = curves(trial.experiment, trial.simulation, name)
        band = found.replicate_band(spec.confidence) if len(found.values) > 1 else None
        for group, label in enumerate(trial.groups.groups):
            draws = centred(trial.draws.group(name, group), found.mean[:, group])
            limits = joint_band(draws, spec.confidence, trial.draws.freedom(name, group), found.levels)
            lacking = why_no_intervals(draws)
            for at, noise_level in enumerate(found.levels):
                low, high = finite(limits.low[at]), finite(limits.high[at])
                value = finite(found.mean[at, group])
                status = _curve_status(found, at, group, trial) or lacking[at] or "ok"
                if low is None and noise_level == 0 and value is not None:
                    low = high = value  # without mistakes everybody agrees, whoever they are
                    status = "ok"
                yield CurveRecord(
                    *trial.place,
                    label,
                    name,
                    float(noise_level),
                    trial.groups.sizes[group],
                    int(found.undefined[at, group]),
                    finite(found.replicate_sd[at, group]),
                    None if band is None else finite(band.low[at, group]),
                    None if band is None else finite(band.high[at, group]),
                    value,
                    low,
                    high,
                    status,
                )


def attribution_records(trial: Trial, spec: ReliabilitySpec) -> Iterator[AttributionRecord]:
    """Yield what the mistakes in each feature add to the gaps; no shares of a gap that may be 0."""
    level = float(trial.mistakes.attribution_level or 0.0)
    for name, found in trial.attributions.items():
        for group in trial.groups.others:
            parts = found.values[:, :, group] - found.values[:, :, trial.groups.reference]
            band = run_band(parts, spec.confidence) if len(parts) > 1 else None
            mean = parts.mean(axis=0)
            whole = float(mean.sum())
            shared = reference_gap(trial, name, group, spec).clear_at(level)
            for at, feature in enumerate(trial.mistakes.names):
                defined = bool(np.isfinite(mean[at]))
                yield AttributionRecord(
                    *trial.place,
                    trial.groups.groups[group],
                    trial.groups.groups[trial.groups.reference],
                    name,
                    level,
                    feature,
                    "exact" if found.exact else "sampled",
                    finite(mean[at] / whole) if defined and shared and abs(whole) > 1e-9 else None,
                    None if band is None else finite(band.low[at]),
                    None if band is None else finite(band.high[at]),
                    finite(mean[at]),
                    None,
                    None,
                    "ok" if defined else "undefined: the statistic is undefined without some mistakes",
                )


def model_record(model: Model, people: People) -> ModelRecord:
    """Return what a model is, and how it does on people without mistakes."""
    found = base_predictions(model, people)
    right = auc = None
    if people.outcome is not None:
        right = float((found.label == people.outcome).mean())
        auc = finite(delong(found.score, people.outcome).value)
    return ModelRecord(
        model.name,
        model.kind,
        model.source,
        model.sha256,
        ", ".join(model.columns),
        len(model.predictors),
        model.threshold,
        "linear" if model.linear else "rows",
        len(people.matrix),
        float(found.label.mean()),
        float(found.score.mean()),
        right,
        auc,
    )


def base_predictions(model: Model, people: People) -> Predictions:
    """Return everybody's score and decision without mistakes, out of fold where the model was fitted here."""
    fold = model.fold if model.fold is not None else np.zeros(len(people.matrix), dtype=np.int64)
    score, label = np.empty(len(fold)), np.empty(len(fold), dtype=np.bool_)
    for number, predict in enumerate(model.predictors):
        own = np.flatnonzero(fold == number)
        if own.size:
            score[own], label[own] = predict(people.matrix[own])
    return Predictions(score, label)


def _curve_status(found: Curves, at: int, group: int, trial: Trial) -> str | None:
    why = why_undefined_at(found, at, (group,))
    if why is None:
        return None
    runs, gone = len(found.values) * trial.experiment.cells[0], int(found.undefined[at, group])
    return f"{why} {EVERY_RUN}" if gone == runs else f"{why} in {gone:,} of {runs:,} runs"
