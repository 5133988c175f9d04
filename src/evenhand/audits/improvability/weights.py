"""The coefficients of candidates that are linear, in the units of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from evenhand.audits.improvability.people import Sample
    from evenhand.audits.improvability.rules import Fitted

INTERCEPT = "(intercept)"


class Coefficient(NamedTuple):
    """What one column adds to the score, for each unit of it."""

    feature: str
    value: float


def coefficients_of(fitted: Fitted, sample: Sample) -> tuple[Coefficient, ...]:
    """Return intercept and coefficients of a linear pipeline, with any standardisation undone; empty for others."""
    from evenhand.audits.improvability.rules import column_names

    steps = getattr(fitted.pipeline, "named_steps", {})
    estimator = steps.get("estimator")
    found = getattr(estimator, "coef_", None)
    if found is None or "columns" not in steps:
        return ()
    slopes = np.asarray(found, dtype=np.float64).reshape(-1).copy()
    intercept = float(np.ravel(getattr(estimator, "intercept_", 0.0))[0])
    columns, _ = column_names(steps["columns"], sample.features, sample.labels)
    if slopes.size != len(columns):
        return ()
    at = 0
    for part, step, places in steps["columns"].transformers_:
        size = sum(len(codes) for codes in step.categories_) if part == "text" else len(places)
        if part == "numbers" and hasattr(step, "scale_"):
            own = slice(at, at + size)
            slopes[own] /= step.scale_
            intercept -= float(slopes[own] @ step.mean_)
        at += size
    named = zip(columns, slopes.tolist(), strict=True)
    return (Coefficient(INTERCEPT, intercept), *(Coefficient(name, value) for name, value in named))
