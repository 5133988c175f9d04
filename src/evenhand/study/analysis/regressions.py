"""Regressions of what people concluded on the two distances: one a condition, and one with the condition in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from evenhand.core.progress import step
from evenhand.stats.random_intercept import random_intercept
from evenhand.stats.regression import (
    NO_FIT,
    NO_SPREAD,
    Coefficients,
    Inference,
    LinearFit,
    WeightEstimate,
    bootstrap_weight,
    coefficient_bootstrap,
    delta_weight,
    f_test,
    moderated,
    ols,
    wald_equal,
    wald_zero,
)
from evenhand.stats.types import FloatArray
from evenhand.study.analysis.parts import (
    DISTANCES,
    TARGETS,
    Part,
    record,
    why_no_spread,
    why_undefined,
    with_families,
)
from evenhand.study.analysis.records import EstimateRecord
from evenhand.study.analysis.spec import AnalysisSpec

INFERENCES: dict[str, Inference] = {"published": "classical", "clustered": "cluster"}
ZERO, EQUAL = "aggregate = trajectory = 0", "aggregate = trajectory"
WEIGHT = "weight"
TIMES = " × "


def regression_table(parts: Sequence[Part], spec: AnalysisSpec) -> tuple[EstimateRecord, ...]:
    """Return the table `regressions`."""
    records: list[EstimateRecord] = []
    for part in (part for part in parts if len(part.y)):
        step(f"Fitting the {part.target} distance of {part.condition or 'all people'}")
        fit = ols(part.distances, part.y, DISTANCES, part.who)
        records += _fit_records(part, fit, spec, "condition")
        records += _nulls(part, fit)
        records += _mixed(part, part.distances, DISTANCES, spec, "condition")
        if part.target == "overall":
            records += _weights(part, fit, spec)
    records += _moderation(parts, spec)
    return with_families(records, _families(records))


def _families(records: Sequence[EstimateRecord]) -> dict[str, str]:
    """Name the family of each term: slopes together, and each null hypothesis by itself; intercepts are not tested."""
    slopes = {one.term for one in records if one.term in DISTANCES or TIMES in one.term}
    return {**dict.fromkeys(slopes, "slopes"), ZERO: ZERO, EQUAL: EQUAL}


def _fit_records(part: Part, fit: LinearFit, spec: AnalysisSpec, model: str) -> Iterator[EstimateRecord]:
    for method, inference in INFERENCES.items():
        found = fit.coefficients(inference, spec.confidence)
        yield from _coefficients(part, fit.names, found, method, model)
        whole = f_test(fit, inference)
        yield record(
            part,
            "f_statistic",
            method,
            value=whole.f,
            statistic=whole.f,
            df=whole.df_error,
            p_value=whole.p_value,
            model=model,
            status=_no_test(part, fit, whole.f),
        )
    yield record(part, "r_squared", "published", value=fit.r2, model=model)
    yield record(part, "adjusted_r_squared", "published", value=fit.adjusted_r2, model=model)


def _coefficients(
    part: Part, names: Sequence[str], found: Coefficients, method: str, model: str
) -> Iterator[EstimateRecord]:
    for at, name in enumerate(names):
        value, stderr = float(found.value[at]), float(found.stderr[at])
        missing = np.isfinite(value) and not np.isfinite(stderr)
        yield record(
            part,
            name,
            method,
            value=value,
            stderr=stderr,
            statistic=float(found.statistic[at]),
            df=found.df,
            p_value=float(found.p_value[at]),
            low=float(found.low[at]),
            high=float(found.high[at]),
            model=model,
            status=f"no interval: {why_no_spread(part)}" if missing else "",
        )


def _nulls(part: Part, fit: LinearFit) -> Iterator[EstimateRecord]:
    """Yield the Wald tests of both nulls: that nothing matters, and that the two matter alike."""
    for method, inference in INFERENCES.items():
        for term, test in (
            (ZERO, wald_zero(fit, DISTANCES, inference)),
            (EQUAL, wald_equal(fit, *DISTANCES, inference)),
        ):
            gap = float(fit.coef[2] - fit.coef[1]) if term == EQUAL else np.nan
            yield record(
                part,
                term,
                method,
                value=gap,
                statistic=test.statistic,
                df=test.df_error,
                p_value=test.p_value,
                status=_no_test(part, fit, test.statistic) or ("ok" if np.isfinite(test.statistic) else ""),
            )


def _no_test(part: Part, fit: LinearFit, statistic: float) -> str:
    """Say why a fitted model gives no test; nothing where it does, or where there is no fit."""
    if np.isfinite(statistic) or not np.isfinite(fit.coef).all():
        return ""
    return f"no test: {why_no_spread(part)}"


def _weights(part: Part, fit: LinearFit, spec: AnalysisSpec) -> Iterator[EstimateRecord]:
    for method, inference in INFERENCES.items():
        yield _weight(part, delta_weight(fit, inference=inference, confidence=spec.confidence), method)
    if part.people < 2:
        yield _weight(part, delta_weight(fit, inference="cluster"), "participant_bootstrap")
        return
    rng = np.random.default_rng([spec.seed, *part.seeds, 2])
    draws = coefficient_bootstrap(part.distances, part.y, part.who, resamples=spec.resamples, rng=rng)
    found = bootstrap_weight(draws, part.people, trajectory=2, aggregate=1, confidence=spec.confidence)
    yield _weight(part, found, "participant_bootstrap")


def _weight(part: Part, found: WeightEstimate, method: str) -> EstimateRecord:
    reasons = {f"undefined: {NO_FIT}": why_undefined, NO_SPREAD: why_no_spread}
    why = reasons.get(found.status)
    status = found.status if why is None else f"{found.status.partition(':')[0]}: {why(part)}"
    return record(
        part,
        WEIGHT,
        method,
        value=found.value,
        stderr=found.stderr,
        df=found.df,
        low=found.low,
        high=found.high,
        status=status,
    )


def _mixed(part: Part, x: FloatArray, names: Sequence[str], spec: AnalysisSpec, model: str) -> Iterator[EstimateRecord]:
    if part.people < 2:
        return
    fit = random_intercept(x, part.y, names, part.who)
    yield from _coefficients(part, fit.names, fit.coefficients(spec.confidence), "random_intercept", model)
    single = "undefined: everybody gave one answer" if part.people == len(part.y) else ""
    yield record(part, "share_between_people", "random_intercept", value=fit.share, model=model, status=single)


def _moderation(parts: Sequence[Part], spec: AnalysisSpec) -> Iterator[EstimateRecord]:
    """Yield the model with the condition and its products with both distances, where there are several conditions.

    A condition with one person takes no part: its clustered standard errors would be 0.
    """
    for target in TARGETS:
        own = [part for part in parts if part.target == target and part.people >= 2]
        if len(own) < 2:
            continue
        step(f"Fitting the moderation of the {target} distance")
        named = [part.condition for part in own]
        baseline = spec.baseline if spec.baseline in named else named[-1]
        others = [part.condition for part in own if part.condition != baseline]
        whole = replace(
            own[0],
            condition=f"{', '.join(others)} against {baseline}",
            gaps=sum(part.gaps for part in own),
            distances=np.vstack([part.distances for part in own]),
            y=np.concatenate([part.y for part in own]),
            who=np.concatenate([part.who for part in own]),
        )
        of_row = np.repeat([part.condition for part in own], [len(part.y) for part in own])
        x = moderated(whole.distances, np.column_stack([of_row == condition for condition in others]))
        names = [*DISTANCES, *(name for condition in others for name in _moderated_names(condition))]
        yield from _fit_records(whole, ols(x, whole.y, names, whole.who), spec, "moderation")
        yield from _mixed(whole, x, names, spec, "moderation")


def _moderated_names(condition: str) -> list[str]:
    return [f"condition {condition}", *(f"{name}{TIMES}{condition}" for name in DISTANCES)]
