"""The records of the robustness analysis: flat, frozen, JSON-safe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpecificationRecord:
    """One metric of one model under one combination of choices.

    `metric` is 'eaif' or 'effort_parity' (the lowest parity of all effort bins). A choice that does not enter the
    metric is null. `fairest` says whether no model is fairer under the same choices (two can be, when they are tied);
    it is null where models cannot be ranked. `error` is how far the number itself may be off.
    """

    metric: str
    grouping: str | None
    model: str
    window_first: str
    window_last: str
    measure: str
    inertia: str
    unit: float
    weight: float | None
    scale: float | None
    width: float | None
    min_count: int | None
    own: bool
    bins: int | None
    bins_left_out: int | None
    value: float | None
    error: float | None
    fairest: bool | None
    status: str


@dataclass(frozen=True, slots=True)
class FairestRecord:
    """How often a model is the fairest, and within what range its values lie.

    A specification in which k models are tied counts 1/k for each. `share` is wins / ranked: specifications in which
    a model has no value are not ranked.
    """

    metric: str
    grouping: str | None
    model: str
    specifications: int
    ranked: int
    undefined: int
    wins: float | None
    tied: int | None
    share: float | None
    low: float | None
    high: float | None
    own_value: float | None
    own_fairest: bool | None
    status: str


@dataclass(frozen=True, slots=True)
class FlipRecord:
    """How often another option of one choice makes another model the fairest.

    `comparisons` are all pairs of specifications that differ in this choice alone and can both be ranked; `changed`
    are those in which no model is the fairest under both. `own_flips` names the options that change it when the
    audit's own specification changes in this choice alone.
    """

    metric: str
    grouping: str | None
    choice: str
    options: int
    comparisons: int
    changed: int
    share: float | None
    own_option: str
    own_flips: str | None
    status: str
