"""Which model is the fairest under each specification, how often, and which choice changes that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from evenhand.audits.effort.robustness.choices import Choice, Grid
from evenhand.audits.effort.robustness.records import FairestRecord, FlipRecord, SpecificationRecord
from evenhand.core.numbers import finite
from evenhand.stats.types import BoolArray, FloatArray, IntArray

ROUNDING = 1e-12  # values closer than this (and than their errors) are tied
_UNDEFINED = "undefined: no effort bin has two groups of at least {min_count} people and a mean score above 0"


@dataclass(frozen=True, eq=False)
class Curve:
    """One metric of every model under every specification.

    Attributes
    ----------
    metric, grouping
        'eaif', or 'effort_parity' of a grouping.
    choices
        The choices that enter, one axis of the arrays for each.
    models
        The models, the last axis of the arrays.
    value
        (options of each choice ..., models) the values; nan where undefined.
    error
        How far each value may be off.
    bins, bins_left_out
        For parity: the effort bins that are compared, and those in which fewer than two groups are large enough or
        the largest mean score is 0.
    """

    metric: str
    grouping: str | None
    choices: tuple[Choice, ...]
    models: tuple[str, ...]
    value: FloatArray = field(repr=False)
    error: FloatArray = field(repr=False)
    bins: IntArray | None = field(default=None, repr=False)
    bins_left_out: IntArray | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """The number of specifications."""
        return self.value.size // len(self.models)

    @property
    def own(self) -> tuple[int, ...]:
        """Where the audit's own specification is."""
        return tuple(choice.own for choice in self.choices)

    @cached_property
    def ranked(self) -> BoolArray:
        """(options ...) where two or more models can be compared: all of them have a value."""
        if len(self.models) < 2:
            return np.zeros(self.value.shape[:-1], dtype=np.bool_)
        return np.asarray(np.isfinite(self.value).all(axis=-1))

    @cached_property
    def fairest(self) -> BoolArray:
        """(options ..., models) the models that no other is fairer than, by more than their errors and rounding."""
        filled = np.where(self.ranked[..., np.newaxis], self.value, 0.0)
        best = np.argmax(filled, axis=-1)[..., np.newaxis]
        behind = np.take_along_axis(filled, best, axis=-1) - filled
        blur = np.take_along_axis(self.error, best, axis=-1) + self.error
        return np.asarray((behind <= ROUNDING + blur) & self.ranked[..., np.newaxis])

    @cached_property
    def wins(self) -> FloatArray:
        """(options ..., models) 1 for the fairest model, split evenly between tied ones."""
        return np.asarray(self.fairest / np.maximum(self.fairest.sum(axis=-1, keepdims=True), 1))


def specification_records(curve: Curve, grid: Grid) -> Iterator[SpecificationRecord]:
    """Yield a record for every specification and model."""
    for place in np.ndindex(curve.value.shape[:-1]):
        taken = {choice.name: choice.options[at] for choice, at in zip(curve.choices, place, strict=True)}
        first, last = taken["window"]
        for model, name in enumerate(curve.models):
            value = finite(curve.value[(*place, model)])
            yield SpecificationRecord(
                metric=curve.metric,
                grouping=curve.grouping,
                model=name,
                window_first=grid.steps[first],
                window_last=grid.steps[last],
                measure=taken["measure"],
                inertia=taken["inertia"],
                unit=taken["unit"],
                weight=taken.get("weight"),
                scale=taken.get("scale"),
                width=taken.get("width"),
                min_count=taken.get("min_count"),
                own=place == curve.own,
                bins=_at(curve.bins, place, model),
                bins_left_out=_at(curve.bins_left_out, place, model),
                value=value,
                error=None if value is None else float(curve.error[(*place, model)]),
                fairest=bool(curve.fairest[(*place, model)]) if curve.ranked[place] else None,
                status="ok" if value is not None else _UNDEFINED.format(**taken),
            )


def fairest_records(curve: Curve) -> Iterator[FairestRecord]:
    """Yield for every model how often it is the fairest, and the range of its values."""
    ranked = int(curve.ranked.sum())
    alone = len(curve.models) < 2
    for model, name in enumerate(curve.models):
        values = curve.value[..., model]
        known = values[np.isfinite(values)]
        wins = float(curve.wins[..., model].sum())
        tied = int((curve.fairest[..., model] & (curve.fairest.sum(axis=-1) > 1)).sum())
        status = "one model: no ranking" if alone else "ok" if ranked else "undefined: no specification can be ranked"
        yield FairestRecord(
            metric=curve.metric,
            grouping=curve.grouping,
            model=name,
            specifications=curve.size,
            ranked=ranked,
            undefined=curve.size - known.size,
            wins=None if alone else wins,
            tied=None if alone else tied,
            share=wins / ranked if ranked else None,
            low=float(known.min()) if known.size else None,
            high=float(known.max()) if known.size else None,
            own_value=finite(curve.value[(*curve.own, model)]),
            own_fairest=bool(curve.fairest[(*curve.own, model)]) if curve.ranked[curve.own] else None,
            status=status,
        )


def flip_records(curve: Curve) -> Iterator[FlipRecord]:
    """Yield for every choice how often changing it alone changes which model is the fairest."""
    for axis, choice in enumerate(curve.choices):
        fairest, ranked = np.moveaxis(curve.fairest, axis, 0), np.moveaxis(curve.ranked, axis, 0)
        comparisons = changed = 0
        for one, other in combinations(range(len(choice.options)), 2):
            both = ranked[one] & ranked[other]
            comparisons += int(both.sum())
            changed += int((both & ~(fairest[one] & fairest[other]).any(axis=-1)).sum())
        flips = _own_flips(curve, axis, choice)
        status = "ok" if comparisons else _no_comparison(curve, choice)
        yield FlipRecord(
            metric=curve.metric,
            grouping=curve.grouping,
            choice=choice.name,
            options=len(choice.options),
            comparisons=comparisons,
            changed=changed,
            share=changed / comparisons if comparisons else None,
            own_option=choice.labels[choice.own],
            own_flips="; ".join(flips) or None,
            status=status,
        )


def _own_flips(curve: Curve, axis: int, choice: Choice) -> list[str]:
    """Return the options with which the audit's own specification would have another fairest model."""
    own = curve.own
    if not curve.ranked[own]:
        return []
    flips = []
    for option, label in enumerate(choice.labels):
        place = (*own[:axis], option, *own[axis + 1 :])
        if curve.ranked[place] and not (curve.fairest[own] & curve.fairest[place]).any():
            flips.append(label)
    return flips


def _no_comparison(curve: Curve, choice: Choice) -> str:
    if len(curve.models) < 2:
        return "one model: no ranking"
    return "one option: not varied" if len(choice.options) < 2 else "undefined: no specification can be ranked"


def _at(values: IntArray | None, place: tuple[int, ...], model: int) -> int | None:
    return None if values is None else int(values[(*place, model)])
