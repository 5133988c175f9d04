"""From simulations to records: values by group and noise level, what each feature adds to gaps, and the models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evenhand.audits.reliability.gaps import reference_gap
from evenhand.audits.reliability.gather import People
from evenhand.audits.reliability.metrics import COMPANIONS
from evenhand.audits.reliability.models import Model
from evenhand.audits.reliability.result import AttributionRecord, ModelRecord, ReliabilityValue
from evenhand.audits.reliability.simulate import Simulated, centred, why_no_intervals, why_undefined_at
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.formats import finite
from evenhand.stats.auc import delong
from evenhand.stats.noise import Predictions
from evenhand.stats.reliability import Curves, curves, joint_band, run_band

EVERY_RUN = "in every run"


def value_records(simulated: Simulated, spec: ReliabilitySpec) -> Iterator[ReliabilityValue]:
    """Yield every metric of every group and noise level."""
    for name in (*spec.metrics, *COMPANIONS):
        curve = curves(simulated.experiment, simulated.runs, name)
        for group in range(len(simulated.groups.groups)):
            yield from _curve_records(simulated, name, curve, group, spec)


def _curve_records(
    simulated: Simulated, name: str, curve: Curves, group: int, spec: ReliabilitySpec
) -> Iterator[ReliabilityValue]:
    draws = centred(simulated.draws.group(name, group), curve.mean[:, group])
    limits = joint_band(draws, spec.confidence, simulated.draws.freedom(name, group), curve.levels)
    band = curve.replicate_band(spec.confidence) if len(curve.values) > 1 else None
    no_interval = why_no_intervals(draws)
    for level, noise_level in enumerate(curve.levels):
        low, high = finite(limits.low[level]), finite(limits.high[level])
        value = finite(curve.mean[level, group])
        status = _value_status(curve, level, group, simulated) or no_interval[level] or "ok"
        if low is None and noise_level == 0 and value is not None:
            low = high = value  # without mistakes everybody agrees, whoever they are
            status = "ok"
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


def _value_status(curve: Curves, level: int, group: int, simulated: Simulated) -> str | None:
    why = why_undefined_at(curve, level, (group,))
    if why is None:
        return None
    runs, lost = len(curve.values) * simulated.experiment.cells[0], int(curve.undefined[level, group])
    return f"{why} {EVERY_RUN}" if lost == runs else f"{why} in {lost:,} of {runs:,} runs"


def attribution_records(simulated: Simulated, spec: ReliabilitySpec) -> Iterator[AttributionRecord]:
    """Yield what the mistakes in each feature add to the gaps; no shares of a gap that may be 0."""
    level = float(simulated.mistakes.attribution_level or 0.0)
    reference = simulated.groups.reference
    for name, attribution in simulated.attributions.items():
        for group in simulated.groups.others:
            parts = attribution.values[:, :, group] - attribution.values[:, :, reference]
            band = run_band(parts, spec.confidence) if len(parts) > 1 else None
            mean = parts.mean(axis=0)
            total = float(mean.sum())
            has_shares = reference_gap(simulated, name, group, spec).clear_at(level) and abs(total) > 1e-9
            for item, feature in enumerate(simulated.mistakes.names):
                defined = bool(np.isfinite(mean[item]))
                yield AttributionRecord(
                    **simulated.coordinates,
                    group=simulated.label(group),
                    reference=simulated.label(reference),
                    metric=name,
                    noise_level=level,
                    feature=feature,
                    value=finite(mean[item]),
                    share=finite(mean[item] / total) if defined and has_shares else None,
                    replicate_low=None if band is None else finite(band.low[item]),
                    replicate_high=None if band is None else finite(band.high[item]),
                    method="exact" if attribution.exact else "sampled",
                    status="ok" if defined else "undefined: the metric is undefined without some mistakes",
                )


def model_records(models: Sequence[Model], people: People) -> Iterator[ModelRecord]:
    """Yield what each model is, and how it does on people without mistakes."""
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
            threshold=model.threshold,
            method="linear" if model.linear else "rows",
            n=len(people.matrix),
            selected=float(base.label.mean()),
            mean_score=float(base.score.mean()),
            accuracy=accuracy,
            auc=auc,
        )


def base_predictions(model: Model, people: People) -> Predictions:
    """Return everybody's score and decision without mistakes, out of fold where the model was fitted here."""
    fold = model.fold if model.fold is not None else np.zeros(len(people.matrix), dtype=np.int64)
    score, label = np.empty(len(fold)), np.empty(len(fold), dtype=np.bool_)
    for number, predict in enumerate(model.predictors):
        members = np.flatnonzero(fold == number)
        if members.size:
            score[members], label[members] = predict(people.matrix[members])
    return Predictions(score, label)
