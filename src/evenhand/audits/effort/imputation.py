"""Uncertain rates of inertia: results under redrawn rates, pooled by Rubin's rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.audits.effort import estimate
from evenhand.audits.effort.gather import EffortPeople, source_inertia
from evenhand.audits.effort.messages import say
from evenhand.audits.effort.numbers import Number, Numbers
from evenhand.audits.effort.result import EffortGap, EffortValue
from evenhand.audits.effort.spec import EffortSpec, InertiaSources
from evenhand.core.progress import step
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.bootstrap import named_rng
from evenhand.stats.imputation import Pooled, pooled
from evenhand.table.table import Table

Scale = tuple[Callable[[float], float], Callable[[float], float]]
_LEAST = 1e-300

_LOG_RATIO: Scale = lambda r: float(np.log(max(r, _LEAST))), lambda y: float(min(1.0, np.exp(y)))
# Transformations to scales with about symmetric limits, and back.
_SCALES: dict[tuple[str, type], Scale] = {
    ("eaif", EffortValue): (lambda u: float(-np.log(max(1.0 - u, _LEAST))), lambda y: float(1.0 - np.exp(-y))),
    ("eaif", EffortGap): (float, float),
    ("eagf", EffortGap): _LOG_RATIO,
    ("equal_effort", EffortGap): _LOG_RATIO,
}


def is_uncertain(spec: EffortSpec) -> bool:
    """Return whether a rate of inertia has a standard error."""
    return isinstance(spec.inertia, InertiaSources) and any(
        source.errors or source.error_column for source in spec.inertia.sources.values()
    )


def imputed_people(table: Table, people: EffortPeople, spec: EffortSpec) -> Iterator[EffortPeople]:
    """Yield the same people with effort under redrawn rates; E = m sigmoid(A) is linear in m."""
    assert isinstance(spec.inertia, InertiaSources)  # noqa: S101
    plain = people.effort / people.inertia
    for inertia in source_inertia(
        table, people.rows, spec.inertia, spec.inertia.imputations, named_rng(0, "rates of inertia")
    ):
        yield replace(people, inertia=inertia, effort=inertia * plain)


def impute(table: Table, people: EffortPeople, spec: EffortSpec) -> Iterator[Numbers]:
    """Yield the comparisons under redrawn rates, if a rate of inertia has a standard error."""
    if not is_uncertain(spec):
        return
    for number, imputed in enumerate(imputed_people(table, people, spec), start=1):
        step("Trying rates of inertia as they may truly be", str(number))
        yield Numbers.of(table, imputed, estimate.individual_estimates(imputed, spec), spec).without_people()


def pool(records: Sequence[Number], imputed: Sequence[Numbers], people: EffortPeople, spec: EffortSpec) -> list[Number]:
    """Return records with intervals that include the uncertainty of the rates.

    Parameters
    ----------
    records : the records under the given rates.
    imputed : the comparisons of the same people under redrawn rates; empty if the rates are certain.
    people : the people.
    spec : the settings, with the confidence.
    """
    if not imputed:
        return list(records)
    by_key: dict[tuple[object, ...], list[Number]] = {}
    for numbers in imputed:
        for record in numbers.records(spec):
            by_key.setdefault(_key(record), []).append(record)
    df = people.n - 1.0 if people.rows.weight is None else people.rows.weight.sum() ** 2 / (people.rows.weight**2).sum()
    return [_pooled_record(record, by_key.get(_key(record), []), len(imputed), float(df), spec) for record in records]


def _key(record: Number) -> tuple[object, ...]:
    names = ("metric", "model", "model_reference", "grouping", "weight", "bin_low", "kind")
    return type(record), *(getattr(record, name, None) for name in names)


def _pooled_record(record: Number, redrawn: Sequence[Number], imputations: int, df: float, spec: EffortSpec) -> Number:
    scale = _scale_of(record)
    if scale is None:
        return record
    complete = [other for other in redrawn if None not in (other.value, other.low, other.high)]
    if len(complete) < max(2, imputations / 2):
        why = shared("no_interval", why=say("few_rates", known=len(complete), imputations=imputations))
        return _changed(record, {**dict.fromkeys(("low", "high", "joint_low", "joint_high", "p_value")), "status": why})
    numbers = _pooled_numbers(record, complete, scale, df, spec)
    return _changed(record, {name: finite(number) for name, number in numbers.items()})


def _scale_of(record: Number) -> Scale | None:
    """Return the scale of a record's limits.

    Return None if the record has no limits, or does not depend on effort.
    """
    whole = record.metric == "eagf" and record.bin_low is None
    if whole or record.low is None or record.high is None:
        return None
    return _SCALES.get((record.metric, type(record)))


def _pooled_numbers(
    record: Number, complete: Sequence[Number], scale: Scale, df: float, spec: EffortSpec
) -> dict[str, Any]:
    """Return the limits and p-value of a record, including the uncertainty of the rates."""
    onto, back = scale
    alone = _pooled(complete, onto, df, spec, ("low", "high"))
    numbers: dict[str, Any] = {"low": back(alone.low), "high": back(alone.high), "rates_share": alone.share}
    if record.metric in ("eagf", "equal_effort") and any((other.high or 0.0) >= 1.0 for other in complete):
        numbers["high"] = 1.0  # the distance of a limit truncated at 1 is unknown
    if record.joint_low is not None and record.joint_high is not None:
        joint = _pooled(complete, onto, df, spec, ("joint_low", "joint_high"))
        numbers |= {"joint_low": back(joint.low), "joint_high": max(back(joint.high), numbers["high"])}
    p = getattr(record, "p_value", None)
    if p is not None:
        numbers["p_value"] = max(p, _p_value(alone, spec.confidence))
    return numbers


def _changed(record: Number, numbers: dict[str, Any]) -> Number:
    """Return a record with new numbers in the columns that it has."""
    return replace(record, **{name: number for name, number in numbers.items() if hasattr(record, name)})


def _pooled(
    complete: Sequence[Any], onto: Callable[[float], float], df: float, spec: EffortSpec, names: tuple[str, str]
) -> Pooled:
    """Pool limits; joint limits are widened by the same factor as the record's own limits."""
    values = np.array([onto(other.value) for other in complete])
    low, high = (np.array([onto(getattr(other, name) or 0.0) for other in complete]) for name in names)
    own_low, own_high = (np.array([onto(getattr(other, name)) for other in complete]) for name in ("low", "high"))
    width = float(np.mean(own_high - own_low))
    times = float(np.mean(high - low)) / width if width > 0 else 1.0
    return pooled(values, low, high, df, spec.confidence, times=times)


def _p_value(pooled: Pooled, confidence: float) -> float:
    """Return the two-sided p-value of no difference, with the variance of the side that contains 0."""
    from scipy.special import stdtr

    from evenhand.stats.intervals import t_quantile

    arm = (pooled.high - pooled.value) if pooled.value < 0 else (pooled.value - pooled.low)
    stderr = arm / float(t_quantile(pooled.df, confidence))
    return float(2.0 * stdtr(pooled.df, -abs(pooled.value) / stderr)) if stderr > 0 else 1.0
