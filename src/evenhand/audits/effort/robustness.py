"""Robustness: individual fairness, parity by effort and the ranking of models under every declared choice.

Effort depends on choices: the window, the measure, the inertia, the weight, the scale and the bins. Choices made after
seeing the results can make a model look fair. So all combinations are computed (a multiverse analysis), which
separates results that hold under most combinations from artefacts of one choice.

Computations are shared. The measure of a trajectory is computed once for each window, measure and unit, for all
inertias. Effort is computed once for all scales, weights, bin widths and minimum counts. Values at weight 0 (where
effort has no influence) and at weight 1 (where the aggregate has none) are computed once. All pairs are compared
exactly up to 20,000 different people; above, a grid gives all weights at once. Only the number of people determines
this, not the elapsed time.

References
----------
S. Steegen, F. Tuerlinckx, A. Gelman and W. Vanpaemel (2016), Increasing transparency through a multiverse analysis,
Perspectives on Psychological Science 11. U. Simonsohn, J. P. Simmons and L. D. Nelson (2020), Specification curve
analysis, Nature Human Behaviour 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np

from evenhand.audits.effort.choices import GIVEN, NONE, PUBLISHED_RATES, Choice, Choices, Grid
from evenhand.audits.effort.gather import EffortPeople, group_inertia
from evenhand.audits.effort.messages import say
from evenhand.audits.effort.result import FairestRecord, FlipRecord, Ranked, SpecificationRecord
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.progress import step
from evenhand.core.records import OK
from evenhand.errors import ConfigError, DataError, count
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.effort import aggregate_scores, effort_bins, effort_scores
from evenhand.stats.pairs import EXACT_ROWS, Distance, fairness_by_weight, spread_of
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.stats.workers import in_parallel
from evenhand.table.roles import MISSING
from evenhand.table.table import Table

ROUNDING = 1e-12  # values closer than this (and than their errors) are tied
UNRANKED = shared("undefined", why=say("unranked"))
_ONE_MODEL = say("one_model")

Position = tuple[int, ...]
Groups = Mapping[str, tuple[IntArray, BoolArray]]


@dataclass(frozen=True, eq=False, kw_only=True)
class SpecificationCurve:
    """One metric of every model under every specification.

    Attributes
    ----------
    metric, grouping
        The metric 'eaif', or 'eagf' with its grouping.
    choices
        The choices that affect the metric, one axis of the arrays for each.
    models
        The models, the last axis of the arrays.
    value
        (options of each choice ..., models) the values; nan where undefined.
    error
        The error bound of each value.
    fairest
        The mask of models that no other model exceeds by more than errors and rounding; empty without a ranking.
    bins, bins_left_out
        For eagf: the compared effort bins, and those in which fewer than two groups are large enough or the largest
        mean score is 0.
    """

    metric: Ranked
    grouping: str | None
    choices: tuple[Choice, ...]
    models: tuple[str, ...]
    value: FloatArray = field(repr=False)
    error: FloatArray = field(repr=False)
    fairest: BoolArray = field(repr=False)
    bins: IntArray | None = field(default=None, repr=False)
    bins_left_out: IntArray | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """The number of specifications."""
        return self.value.size // len(self.models)

    @property
    def chosen(self) -> Position:
        """The position of the audit's own specification."""
        return tuple(choice.chosen for choice in self.choices)

    @cached_property
    def ranked(self) -> BoolArray:
        """(options ...) Whether at least two models can be ranked, because all models have a value."""
        return np.asarray(self.fairest.any(axis=-1))

    @cached_property
    def wins(self) -> FloatArray:
        """(options ..., models) The value 1 for the fairest model, split evenly between tied models."""
        return np.asarray(self.fairest / np.maximum(self.fairest.sum(axis=-1, keepdims=True), 1))


def rank(value: FloatArray, error: FloatArray) -> BoolArray:
    """Return the mask of the fairest models (options ..., models), including ties within the errors.

    No model is the fairest if any value is undefined, or if there is only one model.
    """
    ranked = np.isfinite(value).all(axis=-1, keepdims=True) & (value.shape[-1] > 1)
    filled = np.where(ranked, value, 0.0)
    best = np.argmax(filled, axis=-1)[..., np.newaxis]
    behind = np.take_along_axis(filled, best, axis=-1) - filled
    blur = np.take_along_axis(error, best, axis=-1) + error
    return np.asarray((behind <= ROUNDING + blur) & ranked)


def explore(
    table: Table, people: EffortPeople, spec: EffortSpec, choices: Choices, *, exact_rows: int = EXACT_ROWS
) -> tuple[SpecificationCurve, ...]:
    """Recompute an audit under every declared choice, for the same people.

    Parameters
    ----------
    table
        The data, with the groupings whose parity is compared.
    people
        The people of the audit. Columns of `choices.columns` must be among their numbers.
    spec, choices
        The audit's own settings and the declared alternatives.
    exact_rows
        The largest number of different people with all pairs compared; above, individual fairness is computed on a
        grid.
    """
    grid = choices.grid(spec, people.trajectories.steps)
    inertia = {name: _inertia(name, table, people, spec, choices) for name in grid.inertia.options}
    groups = {name: _groups(people, columns) for name, columns in table.groupings.items()}
    grid_args = (people, spec, grid, groups, exact_rows)
    sheets = _SpecificationArrays(*grid_args)
    sheets.fill(inertia, grid_args)
    models = tuple(people.rows.scores)
    parities = (sheet.curve("eagf", grouping, models) for grouping, sheet in sheets.parities.items())
    return (sheets.individual.curve("eaif", None, models), *parities)


class _SpecificationArray:
    """Arrays to fill, with one entry for each specification and model."""

    def __init__(self, choices: tuple[Choice, ...], models: int) -> None:
        self.choices = choices
        shape = (*(len(choice.options) for choice in choices), models)
        self.value, self.error = np.full(shape, np.nan), np.zeros(shape)
        self.bins, self.bins_left_out = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)

    def curve(self, metric: Ranked, grouping: str | None, models: tuple[str, ...]) -> SpecificationCurve:
        """Return the filled arrays as a specification curve with ranked models."""
        return SpecificationCurve(
            metric=metric,
            grouping=grouping,
            choices=self.choices,
            models=models,
            value=self.value,
            error=self.error,
            fairest=rank(self.value, self.error),
            bins=None if grouping is None else self.bins,
            bins_left_out=None if grouping is None else self.bins_left_out,
        )


class _SpecificationArrays:
    """The arrays of individual fairness and of every grouping's parity, with the code that fills them."""

    def __init__(self, people: EffortPeople, spec: EffortSpec, grid: Grid, groups: Groups, exact_rows: int) -> None:
        self.people, self.spec, self.grid, self.groups, self.exact_rows = people, spec, grid, groups, exact_rows
        models = len(people.rows.scores)
        self.scores = _at_least_spread(people)
        self.individual = _SpecificationArray(grid.individual, models)
        self.parities = {name: _SpecificationArray(grid.group, models) for name in groups}

    @property
    def arrays(self) -> Iterator[Any]:
        """All arrays to fill."""
        for sheet in (self.individual, *self.parities.values()):
            yield from (sheet.value, sheet.error, sheet.bins, sheet.bins_left_out)

    def part(self, window: int, measure: int, unit: int, inertia: Mapping[str, FloatArray]) -> list[Any]:
        """Compute one window, measure and unit with every inertia; return this part of all arrays."""
        grid, paths, (first, last) = self.grid, self.people.trajectories, self.grid.window.options[window]
        values = paths.values[:, first : last + 1]
        times = None if paths.times is None else paths.times[first : last + 1]
        aggregates = [aggregate_scores(values, scale) for scale in grid.scale.options]
        plain = effort_scores(
            values, 1.0, self.spec.desirable, grid.unit.options[unit], times, measure=grid.measure.options[measure]
        )
        for i, name in enumerate(grid.inertia.options):
            self._fill_individual((window, measure, i, unit), inertia[name] * plain, aggregates)
            self._fill_parities((window, measure, i, unit), inertia[name] * plain)
        return [array[window, measure, :, unit] for array in self.arrays]

    def fill(self, inertia: Mapping[str, FloatArray], grid_args: tuple[Any, ...]) -> None:
        """Fill all arrays; `inertia` has each person's inertia for every option of that choice."""
        grid, total = self.grid, prod(self.individual.value.shape[:-1])
        sizes = (len(grid.window.options), len(grid.measure.options), len(grid.unit.options))
        parts = list(product(*map(range, sizes)))

        def work() -> Iterator[tuple[Any, ...]]:
            for number, part in enumerate(parts):
                step("Trying other choices", f"{number * total // len(parts):,} of {total:,} specifications")
                yield grid_args, part, inertia

        for (window, measure, unit), arrays in zip(parts, in_parallel(_part, work()), strict=True):
            for array, values in zip(self.arrays, arrays, strict=True):
                array[window, measure, :, unit] = values
        for window in range(sizes[0]):
            self._copy_equal(window)

    def _fill_individual(self, position: Position, effort: FloatArray, aggregates: list[FloatArray]) -> None:
        """Fill in individual fairness at every weight and scale, except the values that `_copy_equal` copies."""
        sheet, people = self.individual, self.people
        for scale, aggregate in enumerate(aggregates):
            needed = [
                number
                for number, weight in enumerate(self.grid.weight.options)
                if (weight > 0 or position[1:] == (0, 0, 0)) and (weight < 1 or scale == 0)
            ]
            if not needed:
                continue
            weights = [self.grid.weight.options[number] for number in needed]
            for (d, norm), (model, score) in product(enumerate(self.grid.distance.options), enumerate(self.scores)):
                own_distance, plain = people.distance, norm != self.spec.distance.norm
                entry: tuple[Any, ...] = (*position, needed, scale, d, model)
                sheet.value[entry], sheet.error[entry] = fairness_by_weight(
                    score,
                    effort,
                    aggregate,
                    weights,
                    people.rows.weight,
                    exact_rows=self.exact_rows,
                    distance=Distance(norm, own_distance.scales, own_distance.lipschitz) if plain else own_distance,
                    device=self.spec.device,
                )

    def _copy_equal(self, window: int) -> None:
        """Copy equal values: at weight 0 over measures, inertias and units, and at weight 1 over scales."""
        for numbers in (self.individual.value[window], self.individual.error[window]):
            for number, weight in enumerate(self.grid.weight.options):
                if weight == 0:
                    numbers[:, :, :, number] = numbers[0, 0, 0, number]
                if weight == 1:
                    numbers[:, :, :, number] = numbers[:, :, :, number, :1]

    def _fill_parities(self, position: Position, effort: FloatArray) -> None:
        """Fill in the lowest parity of the effort bins at every bin width and minimum count."""
        for grouping, sheet in self.parities.items():
            codes, named = self.groups[grouping]
            for w, width in enumerate(self.grid.width.options):
                bins = effort_bins(effort, width)
                n, means = _bin_means(bins * named.size + codes, self.people, (int(bins.max()) + 1, named.size))
                for c, min_count in enumerate(self.grid.min_count.options):
                    value, compared = lowest_parity(means, named & (n >= min_count))
                    entry = (*position, w, c)
                    sheet.value[entry], sheet.bins[entry] = value, compared
                    sheet.bins_left_out[entry] = int(n.any(axis=1).sum()) - compared


def _at_least_spread(people: EffortPeople) -> list[FloatArray]:
    """Return each model's scores, shrunk to the smallest spread of all models."""
    spreads = [1.0 - spread_of(score, people.rows.weight).value for score in people.rows.scores.values()]
    least = min(spreads)
    return [
        score * (least / spread) if spread > least else score
        for score, spread in zip(people.rows.scores.values(), spreads, strict=True)
    ]


def _part(grid_args: tuple[Any, ...], part: tuple[int, int, int], inertia: Mapping[str, FloatArray]) -> list[Any]:
    """Compute a part in separate arrays, because arrays sent to other processes are read-only."""
    return _SpecificationArrays(*grid_args).part(*part, inertia)


def _groups(people: EffortPeople, columns: Sequence[str]) -> tuple[IntArray, BoolArray]:
    """Return each person's group, and the mask of groups that are not missing."""
    codes, labels = people.rows.groups.joint(columns)
    return codes, np.array([label != MISSING for label in labels])


def _bin_means(cell: IntArray, people: EffortPeople, shape: tuple[int, int]) -> tuple[IntArray, FloatArray]:
    """Return the number of people by bin and group, and their weighted mean scores (models, bins, groups)."""
    size, weight = prod(shape), people.rows.weight
    n = np.bincount(cell, minlength=size)
    heavy = n if weight is None else np.bincount(cell, weight, size)
    scores = [people.compared(model) for model in people.rows.scores]
    sums = [np.bincount(cell, s if weight is None else weight * s, size) for s in scores]
    with np.errstate(invalid="ignore"):
        means = np.stack(sums) / heavy
    return n.reshape(shape), means.reshape(-1, *shape)


def lowest_parity(means: FloatArray, large_groups: BoolArray) -> tuple[FloatArray, IntArray]:
    """Return the lowest parity over all bins (smallest / largest mean of large groups) and the number of bins.

    A bin with fewer than two large groups, or with a largest mean of 0, has no parity. Without such bins, the result
    is nan.

    Parameters
    ----------
    means
        (models, bins, groups) mean scores.
    large_groups
        (bins, groups) the groups large enough to be compared.

    Examples
    --------
    >>> import numpy as np
    >>> means = np.array([[[0.2, 0.4, 0.1], [0.3, 0.4, 0.9]]])
    >>> value, bins = lowest_parity(means, np.array([[True, True, False], [True, True, False]]))
    >>> value.tolist(), bins.tolist()
    ([0.5], [2])
    """
    largest = np.where(large_groups, means, -np.inf).max(axis=-1)
    smallest = np.where(large_groups, means, np.inf).min(axis=-1)
    defined = (large_groups.sum(axis=-1) >= 2) & (largest > 0)
    parity = np.divide(smallest, largest, out=np.full(largest.shape, np.inf), where=defined)
    compared = np.asarray(defined.sum(axis=-1))
    return np.where(compared > 0, parity.min(axis=-1), np.nan), compared


def _inertia(name: str, table: Table, people: EffortPeople, spec: EffortSpec, choices: Choices) -> FloatArray:
    """Return each person's inertia under an option: the audit's own, none, a column, or rates by group."""
    if name == (NONE if spec.inertia is None else GIVEN):
        return people.inertia
    option = choices.inertia.get(name, NONE)
    if option == NONE:
        return np.ones(people.n)
    if isinstance(option, str) and option not in PUBLISHED_RATES:
        values = people.rows.numbers[option]
    else:
        try:
            values = group_inertia(table, people.rows, spec.model_copy(update={"inertia": option}))
        except (ConfigError, DataError) as error:
            raise type(error)("inertia {name!r} of `robustness`: {why}", name=name, why=error.message) from None
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        raise DataError(
            "inertia {name!r} of `robustness` is missing, infinite or not above 0 for {people}; mend it, or "
            "leave this option out.",
            name=name,
            people=count(int(bad.sum()), "person", "people"),
        )
    return values


# Records -------------------------------------------------------------------------------------------------------------


def specification_records(curve: SpecificationCurve, steps: Sequence[str]) -> Iterator[SpecificationRecord]:
    """Yield a record for every specification and model."""
    for position in np.ndindex(curve.value.shape[:-1]):
        taken = {choice.name: choice.options[i] for choice, i in zip(curve.choices, position, strict=True)}
        first, last = taken.pop("window")
        for model, name in enumerate(curve.models):
            entry = (*position, model)
            value = finite(curve.value[entry])
            yield SpecificationRecord(
                metric=curve.metric,
                grouping=curve.grouping,
                model=name,
                window_first=steps[first],
                window_last=steps[last],
                **{"weight": None, "scale": None, "distance": None, "width": None, "min_count": None, **taken},
                own=position == curve.chosen,
                bins=None if curve.bins is None else int(curve.bins[entry]),
                bins_left_out=None if curve.bins_left_out is None else int(curve.bins_left_out[entry]),
                value=value,
                error=None if value is None else float(curve.error[entry]),
                fairest=bool(curve.fairest[entry]) if curve.ranked[position] else None,
                status=OK if value is not None else shared("undefined", why=say("no_parity", least=taken["min_count"])),
            )


def recorded_curves(records: Sequence[SpecificationRecord], grid: Grid) -> tuple[SpecificationCurve, ...]:
    """Return the curves behind specification records."""
    by_curve: dict[tuple[Ranked, str | None], list[SpecificationRecord]] = {}
    for record in records:
        by_curve.setdefault((record.metric, record.grouping), []).append(record)
    return tuple(
        _recorded_curve(rows, grid.individual if metric == "eaif" else grid.group)
        for (metric, _), rows in by_curve.items()
    )


def _recorded_curve(records: Sequence[SpecificationRecord], choices: tuple[Choice, ...]) -> SpecificationCurve:
    models = tuple(dict.fromkeys(record.model for record in records))
    shape = (*(len(choice.options) for choice in choices), len(models))
    return SpecificationCurve(
        metric=records[0].metric,
        grouping=records[0].grouping,
        choices=choices,
        models=models,
        value=np.array([np.nan if record.value is None else record.value for record in records]).reshape(shape),
        error=np.array([record.error or 0.0 for record in records]).reshape(shape),
        fairest=np.array([bool(record.fairest) for record in records]).reshape(shape),
    )


def fairest_records(curve: SpecificationCurve) -> Iterator[FairestRecord]:
    """Yield the number of specifications in which each model is the fairest, and the range of its values."""
    ranked = int(curve.ranked.sum())
    alone = len(curve.models) < 2
    for model, name in enumerate(curve.models):
        values = curve.value[..., model]
        finite_values = values[np.isfinite(values)]
        wins = float(curve.wins[..., model].sum())
        tied = int((curve.fairest[..., model] & (curve.fairest.sum(axis=-1) > 1)).sum())
        yield FairestRecord(
            metric=curve.metric,
            grouping=curve.grouping,
            model=name,
            specifications=curve.size,
            ranked=ranked,
            undefined=curve.size - finite_values.size,
            wins=None if alone else wins,
            tied=None if alone else tied,
            share=wins / ranked if ranked else None,
            low=float(finite_values.min()) if finite_values.size else None,
            high=float(finite_values.max()) if finite_values.size else None,
            own_value=finite(curve.value[(*curve.chosen, model)]),
            own_fairest=bool(curve.fairest[(*curve.chosen, model)]) if curve.ranked[curve.chosen] else None,
            status=_ONE_MODEL if alone else OK if ranked else UNRANKED,
        )


def flip_records(curve: SpecificationCurve) -> Iterator[FlipRecord]:
    """Yield for every choice how often a change of this choice alone changes the fairest model."""
    for axis, choice in enumerate(curve.choices):
        fairest, ranked = np.moveaxis(curve.fairest, axis, 0), np.moveaxis(curve.ranked, axis, 0)
        comparisons = changed = 0
        for option, other in combinations(range(len(choice.options)), 2):
            both = ranked[option] & ranked[other]
            comparisons += int(both.sum())
            changed += int((both & ~(fairest[option] & fairest[other]).any(axis=-1)).sum())
        yield FlipRecord(
            metric=curve.metric,
            grouping=curve.grouping,
            choice=choice.name,
            options=len(choice.options),
            comparisons=comparisons,
            changed=changed,
            share=changed / comparisons if comparisons else None,
            own_option=choice.labels[choice.chosen],
            own_flips="; ".join(_own_flips(curve, axis, choice)) or None,
            status=OK if comparisons else _no_comparison(curve, choice),
        )


def _own_flips(curve: SpecificationCurve, axis: int, choice: Choice) -> Iterator[str]:
    """Yield the options that alone change the fairest model of the audit's own specification."""
    chosen = curve.chosen
    for option, label in enumerate(choice.labels):
        changed = (*chosen[:axis], option, *chosen[axis + 1 :])
        comparable = curve.ranked[chosen] and curve.ranked[changed]
        if comparable and not (curve.fairest[chosen] & curve.fairest[changed]).any():
            yield label


def _no_comparison(curve: SpecificationCurve, choice: Choice) -> Message:
    if len(curve.models) < 2:
        return _ONE_MODEL
    return say("one_option") if len(choice.options) < 2 else UNRANKED
