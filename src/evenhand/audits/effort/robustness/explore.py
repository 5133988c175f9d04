"""Robustness: individual fairness, parity by effort and the ranking of models under every declared choice.

Effort rests on choices: the window, the measure, the inertia, the weight, the scale, the bins. Whoever makes them after
seeing the numbers can make a model look fair. So all combinations are computed (a multiverse analysis), and what holds
under most of them is told apart from what one choice made.

Work is shared. The measure of a trajectory is worked out once for each window, measure and unit, and serves all
inertias; the effort serves all scales, weights, bin widths and minimum counts. At weight 0 effort plays no part and at
weight 1 the aggregate plays none: those are computed once. Up to 20,000 different people all pairs are compared
exactly; above, the grid gives all weights at once. That is decided by size, never by the clock.

References
----------
S. Steegen, F. Tuerlinckx, A. Gelman and W. Vanpaemel (2016), Increasing transparency through a multiverse analysis,
Perspectives on Psychological Science 11. U. Simonsohn, J. P. Simmons and L. D. Nelson (2020), Specification curve
analysis, Nature Human Behaviour 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from evenhand.audits.effort.inertia import TABLES
from evenhand.audits.effort.people import People, group_rates
from evenhand.audits.effort.robustness.choices import GIVEN, NONE, Choice, Choices, Grid
from evenhand.audits.effort.robustness.ranking import Curve, fairest_records, flip_records, specification_records
from evenhand.audits.effort.robustness.records import FairestRecord, FlipRecord, SpecificationRecord
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.progress import step
from evenhand.errors import ConfigError, DataError, count
from evenhand.stats.effort import aggregate_scores, effort_bins, effort_scores
from evenhand.stats.pairs import EXACT_ROWS, fairness_by_weight
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.roles import MISSING
from evenhand.table.table import Table


@dataclass(frozen=True, eq=False)
class Robustness:
    """What becomes of an audit's numbers under other defensible choices.

    Attributes
    ----------
    grid
        The declared choices.
    curves
        Individual fairness, then the lowest parity of each grouping, under every specification.
    people
        How many people were compared.
    """

    grid: Grid
    curves: tuple[Curve, ...] = field(repr=False)
    people: int

    @cached_property
    def specifications(self) -> tuple[SpecificationRecord, ...]:
        """Every metric of every model under every specification."""
        return tuple(record for curve in self.curves for record in specification_records(curve, self.grid))

    @cached_property
    def fairest(self) -> tuple[FairestRecord, ...]:
        """How often each model is the fairest."""
        return tuple(record for curve in self.curves for record in fairest_records(curve))

    @cached_property
    def flips(self) -> tuple[FlipRecord, ...]:
        """How often each choice changes which model is the fairest."""
        return tuple(record for curve in self.curves for record in flip_records(curve))


def robustness_of(table: Table, people: People, spec: EffortSpec, choices: Choices) -> Robustness:
    """Recompute an audit under every declared choice, for the same people.

    Parameters
    ----------
    table
        The data; its groupings are those whose parity is compared.
    people
        The people of the audit. Columns of `choices.columns` must be among their numbers.
    spec, choices
        The audit's own settings and the declared alternatives.
    """
    grid = choices.grid(spec, people.steps)
    inertia = {name: _inertia(name, table, people, spec, choices) for name in grid.inertia.options}
    return explore(people, spec, grid, inertia, table.groupings)


def explore(
    people: People,
    spec: EffortSpec,
    grid: Grid,
    inertia: Mapping[str, FloatArray],
    groupings: Mapping[str, Sequence[str]],
    *,
    exact_rows: int = EXACT_ROWS,
) -> Robustness:
    """Return every metric of every model under every specification of a grid.

    Parameters
    ----------
    people
        The people: trajectories, scores, survey weights and groups.
    spec
        The audit's settings, for what is no choice (whether more of the feature is better).
    grid
        The choices.
    inertia
        Each person's inertia for every option of that choice.
    groupings
        The group columns of each grouping.
    exact_rows
        Different people up to whom all pairs are compared; above, individual fairness comes from the grid.
    """
    scores = people.rows.scores
    individual = _Sheet(grid.individual, len(scores))
    parities = {name: _Sheet(grid.group, len(scores)) for name in groupings}
    sorted_out = {name: _groups(people, columns) for name, columns in groupings.items()}
    done, total = 0, prod(individual.value.shape[:-1])
    for window, (first, last) in enumerate(grid.window.options):
        values = people.values[:, first : last + 1]
        times = None if people.times is None else people.times[first : last + 1]
        aggregates = [aggregate_scores(values, scale) for scale in grid.scale.options]
        for (m, measure), (u, unit) in product(enumerate(grid.measure.options), enumerate(grid.unit.options)):
            plain = effort_scores(values, 1.0, spec.desirable, unit, times, measure)
            for i, name in enumerate(grid.inertia.options):
                step(f"Trying other choices: {done:,} of {total:,} specifications")
                effort, place = inertia[name] * plain, (window, m, i, u)
                _individual(individual, place, people, effort, aggregates, grid, exact_rows, spec.seed)
                for grouping, sheet in parities.items():
                    _parities(sheet, place, people, effort, sorted_out[grouping], grid)
                done += len(grid.weight.options) * len(aggregates)
        _spread(individual, window, grid)
    models = tuple(scores)
    curves = [Curve("eaif", None, grid.individual, models, individual.value, individual.error)]
    curves += [
        Curve("effort_parity", grouping, grid.group, models, sheet.value, sheet.error, sheet.bins, sheet.left_out)
        for grouping, sheet in parities.items()
    ]
    return Robustness(grid, tuple(curves), len(people.values))


class _Sheet:
    """Arrays to be filled: one entry for each specification and model."""

    def __init__(self, choices: tuple[Choice, ...], models: int) -> None:
        shape = (*(len(choice.options) for choice in choices), models)
        self.value, self.error = np.full(shape, np.nan), np.zeros(shape)
        self.bins, self.left_out = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)


def _individual(
    sheet: _Sheet,
    place: tuple[int, int, int, int],
    people: People,
    effort: FloatArray,
    aggregates: list[FloatArray],
    grid: Grid,
    exact_rows: int,
    seed: int,
) -> None:
    """Fill in individual fairness at every weight and scale, but for what `_spread` copies."""
    for scale, aggregate in enumerate(aggregates):
        wanted = [
            at
            for at, weight in enumerate(grid.weight.options)
            if (weight > 0 or place[1:] == (0, 0, 0)) and (weight < 1 or scale == 0)
        ]
        if not wanted:
            continue
        weights = [grid.weight.options[at] for at in wanted]
        for model, score in enumerate(people.rows.scores.values()):
            found = fairness_by_weight(
                score, effort, aggregate, weights, people.rows.weight, exact_rows=exact_rows, seed=seed
            )
            sheet.value[(*place, wanted, scale, model)], sheet.error[(*place, wanted, scale, model)] = found


def _spread(sheet: _Sheet, window: int, grid: Grid) -> None:
    """Copy what cannot differ: at weight 0 over measures, inertias and units, at weight 1 over scales."""
    for numbers in (sheet.value[window], sheet.error[window]):
        for at, weight in enumerate(grid.weight.options):
            if weight == 0:
                numbers[:, :, :, at] = numbers[0, 0, 0, at]
            if weight == 1:
                numbers[:, :, :, at] = numbers[:, :, :, at, :1]


def _groups(people: People, columns: Sequence[str]) -> tuple[IntArray, BoolArray]:
    """Return everybody's group, and which of the groups are known."""
    codes, labels = people.rows.groups.joint(columns)
    return codes, np.array([label != MISSING for label in labels])


def _parities(
    sheet: _Sheet,
    place: tuple[int, int, int, int],
    people: People,
    effort: FloatArray,
    groups: tuple[IntArray, BoolArray],
    grid: Grid,
) -> None:
    """Fill in the lowest parity of the effort bins at every bin width and minimum count."""
    codes, known = groups
    for at, width in enumerate(grid.width.options):
        bins = effort_bins(effort, width)
        n, means = _bin_means(bins * known.size + codes, people, (int(bins.max()) + 1, known.size))
        for least, min_count in enumerate(grid.min_count.options):
            value, compared = lowest_parity(means, known & (n >= min_count))
            spot = (*place, at, least)
            sheet.value[spot], sheet.bins[spot] = value, compared
            sheet.left_out[spot] = int(n.any(axis=1).sum()) - compared


def _bin_means(at: IntArray, people: People, shape: tuple[int, int]) -> tuple[IntArray, FloatArray]:
    """Return the people in every bin and group, and (models, bins, groups) their (weighted) mean scores."""
    size, weight = prod(shape), people.rows.weight
    n = np.bincount(at, minlength=size)
    heavy = n if weight is None else np.bincount(at, weight, size)
    sums = [np.bincount(at, s if weight is None else weight * s, size) for s in people.rows.scores.values()]
    with np.errstate(invalid="ignore"):
        means = np.stack(sums) / heavy
    return n.reshape(shape), means.reshape(-1, *shape)


def lowest_parity(means: FloatArray, kept: BoolArray) -> tuple[FloatArray, IntArray]:
    """Return the lowest parity of all bins, smallest mean / largest mean of the groups kept, and the bins it is over.

    A bin with fewer than two groups, or whose largest mean is 0, has no parity; without any bin it is nan.

    Parameters
    ----------
    means
        (models, bins, groups) mean scores.
    kept
        (bins, groups) the groups large enough to be compared.

    Examples
    --------
    >>> import numpy as np
    >>> means = np.array([[[0.2, 0.4, 0.1], [0.3, 0.4, 0.9]]])
    >>> value, bins = lowest_parity(means, np.array([[True, True, False], [True, True, False]]))
    >>> value.tolist(), bins.tolist()
    ([0.5], [2])
    """
    largest = np.where(kept, means, -np.inf).max(axis=-1)
    smallest = np.where(kept, means, np.inf).min(axis=-1)
    defined = (kept.sum(axis=-1) >= 2) & (largest > 0)
    parity = np.divide(smallest, largest, out=np.full(largest.shape, np.inf), where=defined)
    compared = np.asarray(defined.sum(axis=-1))
    return np.where(compared > 0, parity.min(axis=-1), np.nan), compared


def _inertia(name: str, table: Table, people: People, spec: EffortSpec, choices: Choices) -> FloatArray:
    """Return everybody's inertia under an option: the audit's own, none, a column, or rates by group."""
    if name == (NONE if spec.inertia is None else GIVEN):
        return people.inertia
    option = choices.inertia.get(name, NONE)
    if option == NONE:
        return np.ones(len(people.values))
    if isinstance(option, str) and option not in TABLES:
        values = people.rows.numbers[option]
    else:
        values = _by_group(name, table, people, spec.model_copy(update={"inertia": option}))
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        raise DataError(
            f"inertia {name!r} of `robustness` is missing, infinite or not above 0 for "
            f"{count(int(bad.sum()), 'person', 'people')}; mend it, or leave this option out."
        )
    return values


def _by_group(name: str, table: Table, people: People, spec: EffortSpec) -> FloatArray:
    try:
        by, rates = group_rates(table, spec)
    except (ConfigError, DataError) as error:
        raise type(error)(f"inertia {name!r} of `robustness`: {error}") from None
    codes, labels = people.rows.groups.joint([by])
    return np.array([rates.get(label, np.nan) for label in labels])[codes]
