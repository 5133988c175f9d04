"""Adjust the settings for models that predict numbers, such as salaries."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from evenhand.audits.reliability.gather import ScoredPeople
from evenhand.audits.reliability.metrics import OF_SCORES
from evenhand.audits.reliability.models import Model, needs_folds
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.errors import ConfigError
from evenhand.table.table import Table

_FAR = 1.5  # distance from 0.5 that no model of outcomes 0 and 1 exceeds for most people


def with_kind(table: Table, spec: ReliabilitySpec) -> ReliabilitySpec:
    """Return the settings, converted to numbers if the table's outcome is numeric."""
    if spec.scoring.kind != "score" and (spec.scoring.are_numbers or table.roles.outcome_kind == "number"):
        return _of_numbers(spec)
    table.require_two_outcomes()
    return spec


def with_kind_of_models(models: Sequence[Model], people: ScoredPeople, spec: ReliabilitySpec) -> ReliabilitySpec:
    """Return the settings, converted to numbers if regressors, without an outcome, predict values far from 0 to 1."""
    regressors = [model for model in models if _is_regressor(spec.model[model.name].model)]
    if spec.scoring.kind is not None or people.outcome is not None or not regressors:
        return spec
    some = people.matrix[people.sample()]
    far = any(np.median(np.abs(model.predictors[0](some)[0] - 0.5)) > _FAR for model in regressors)
    return _of_numbers(spec) if far else spec


def _of_numbers(spec: ReliabilitySpec) -> ReliabilitySpec:
    """Return the settings for numeric predictions, with only the metrics that compare numbers."""
    _refuse_what_needs_decisions(spec)
    scoring = spec.scoring.model_copy(update={"kind": "number"})
    metrics = tuple(name for name in spec.metrics if name in OF_SCORES)
    return spec.model_copy(update={"scoring": scoring, "metrics": metrics})


def _refuse_what_needs_decisions(spec: ReliabilitySpec) -> None:
    named = spec.metrics if "metrics" in spec.model_fields_set else ()
    for name in (*named, *(threshold.metric for threshold in spec.thresholds)):
        if name not in OF_SCORES:
            raise ConfigError(
                "the metric {metric!r} compares decisions, and the predictions are numbers; use one of {metrics}, or "
                "say `kind='score'` in `scoring`.",
                metric=name,
                metrics=OF_SCORES,
            )
    if spec.mitigation is not None:
        raise ConfigError("`mitigation` compares decisions of 0 and 1, and the predictions are numbers; leave it out.")
    for name, source in spec.model.items():
        if needs_folds(source, spec):
            raise ConfigError(
                "the model {model!r} is to be fitted here, which needs an outcome of two values, and the predictions "
                "are numbers; give a fitted model, and leave `folds` out.",
                model=name,
            )


def _is_regressor(model: object) -> bool:
    """Return whether a model is a scikit-learn regressor, without importing scikit-learn."""
    base = sys.modules.get("sklearn.base")
    return base is not None and isinstance(model, base.BaseEstimator) and bool(base.is_regressor(model))
