"""One experiment: people, models, groups, and the mistakes that are put into the features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.noise.models import NoiseModel
from evenhand.stats.noise.predictors import Linear, Predictor, checked
from evenhand.stats.types import BoolArray, FloatArray, IntArray

Shares: TypeAlias = Literal["bernoulli", "exact"]
MEMORY = 64 * 2**20
_MOST_PEOPLE_LEVELS = 2**15 - 1


@dataclass(frozen=True)
class NoiseItem:
    """Columns that go wrong together, and how.

    Examples
    --------
    >>> from evenhand.stats.noise.models import Flip
    >>> NoiseItem((0,), Flip()).columns
    (0,)
    """

    columns: tuple[int, ...]
    model: NoiseModel


@dataclass(frozen=True)
class Base:
    """People in the order of their cells (fold, then group), with the predictions of their true features."""

    order: IntArray
    features: FloatArray
    fold: IntArray
    cell: IntArray
    starts: IntArray
    score: FloatArray
    label: BoolArray
    centre: FloatArray


@dataclass(frozen=True)
class Experiment:
    """What is simulated: a second rater (or two) who makes mistakes in the features of the same people.

    At level p a share p of the entries of every item is touched: each with chance p, or (`exact`) floor(p n + 1/2) of
    the n entries in each fold and group. With `common` random numbers an entry touched at one level is touched, with
    the same mistake, at all higher ones: one draw serves all levels, differences between levels are sharper, but the
    mean over levels of one replicate varies more, so take many. Without, every level is drawn afresh.

    Attributes
    ----------
    features
        (people, d) raw features. A missing entry (nan) stays missing.
    predictors
        One model a fold; those that are all `Linear` are evaluated without building rows.
    items
        What goes wrong. No column may be in two items.
    groups, folds
        (people,) whole numbers from 0; by default one fold.
    levels
        Rising noise levels; by default 0, 0.01, ..., 0.30.
    shares
        'bernoulli' or 'exact'.
    common
        Common random numbers over the levels, or fresh ones.
    raters
        2 when the first rater makes mistakes too; 1 when she is right.
    memory
        Bytes to use for rows and draws at once.
    renew
        Called with each replicate's random generator for items of that replicate (the same columns), such as those of
        a resampled pilot study.

    Examples
    --------
    >>> from evenhand.stats.noise.models import Flip
    >>> people = np.array([[0.0], [1.0], [0.0], [1.0]])
    >>> model = Linear(np.array([2.0]), -1.0)
    >>> trial = Experiment(people, (model,), (NoiseItem((0,), Flip()),), np.array([0, 0, 1, 1]), levels=np.array([0.5]))
    >>> trial.cells
    (1, 2)
    """

    features: FloatArray
    predictors: tuple[Predictor, ...]
    items: tuple[NoiseItem, ...]
    groups: IntArray
    folds: IntArray | None = None
    levels: FloatArray = field(default_factory=lambda: np.round(np.arange(31) * 0.01, 5))
    shares: Shares = "bernoulli"
    common: bool = True
    raters: Literal[1, 2] = 1
    memory: int = MEMORY
    renew: Callable[[np.random.Generator], Sequence[NoiseItem]] | None = None

    def __post_init__(self) -> None:
        _check_people(self)
        _check_levels(self)
        check_items(self.items, self.features)
        for item in self.items:
            rate = item.model.rate(self.features[:, item.columns])
            most = float(self.levels[-1]) * (1.0 if rate is None else float(np.nanmax(rate, initial=0.0)))
            if most > 1 + 1e-9:
                raise EvenhandError(
                    f"The noise level {self.levels[-1]:g} would change more than every entry; lower it."
                )

    @property
    def cells(self) -> tuple[int, int]:
        """Folds and groups."""
        return len(self.predictors), int(self.groups.max()) + 1

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that are perturbed, item by item."""
        return tuple(column for item in self.items for column in item.columns)

    @cached_property
    def entries(self) -> FloatArray:
        """(columns, people) the true entries of the columns that are perturbed, people in base order."""
        return np.ascontiguousarray(self.base.features[:, self.columns].T)

    @cached_property
    def slopes(self) -> FloatArray | None:
        """(columns, people) how far one unit moves the sum of a linear model; None where a model is not linear."""
        linear = [model for model in self.predictors if isinstance(model, Linear)]
        if len(linear) < len(self.predictors) or len({(model.link, model.threshold) for model in linear}) > 1:
            return None
        weights = np.stack([model.weights for model in linear])
        return np.ascontiguousarray(weights[:, self.columns].T[:, self.base.fold])

    @cached_property
    def base(self) -> Base:
        """People in order, and their predictions without mistakes."""
        folds = np.zeros(len(self.features), dtype=np.int64) if self.folds is None else self.folds
        groups = self.cells[1]
        order = np.argsort(folds * groups + self.groups, kind="stable").astype(np.int64)
        features, fold = self.features[order], folds[order]
        cell = fold * groups + self.groups[order]
        starts = np.searchsorted(cell, np.arange(self.cells[0] * groups + 1)).astype(np.int64)
        score, label = np.empty(len(order)), np.empty(len(order), dtype=np.bool_)
        for number, predict in enumerate(self.predictors):
            rows = slice(starts[number * groups], starts[(number + 1) * groups])
            score[rows], label[rows] = checked(predict, features[rows])
        sizes = np.maximum(np.diff(starts), 1)
        centre = np.bincount(cell, score, len(sizes)) / sizes
        return Base(order, features, fold, cell, starts, score, label, centre)

    @cached_property
    def touched_at(self) -> IntArray:
        """(people,) for exact shares: the level at which the entry of each rank within its cell is touched."""
        sizes = np.diff(self.base.starts)
        ranks = np.arange(len(self.features)) - np.repeat(self.base.starts[:-1], sizes)
        counts = np.floor(self.levels * np.repeat(sizes, sizes)[:, np.newaxis] + 0.5)
        return np.asarray((counts <= ranks[:, np.newaxis]).sum(axis=1), dtype=np.int64)

    def prepare(self) -> None:
        """Compute what all replicates share, before threads ask for it."""
        _ = self.entries, self.slopes, self.touched_at if self.shares == "exact" else None


def replicate_seeds(replicates: int, rng: np.random.Generator) -> list[np.random.SeedSequence]:
    """Return one seed a replicate: what each draws then does not depend on the others or on threads.

    Examples
    --------
    >>> len(replicate_seeds(3, np.random.default_rng(0)))
    3
    """
    if replicates < 1:
        raise EvenhandError(f"`replicates` must be at least 1; got {replicates!r}.")
    words = rng.integers(0, 2**32, 4, dtype=np.uint32)
    return np.random.SeedSequence(words.tolist()).spawn(replicates)


def check_items(items: Sequence[NoiseItem], features: FloatArray) -> None:
    """Raise an `EvenhandError` unless each column is there, in one item only, and of the right kind."""
    columns = [column for item in items for column in item.columns]
    if not items or any(not item.columns for item in items):
        raise EvenhandError("There must be at least one item of noise, each with at least one column.")
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise EvenhandError(f"The column {twice} is in two items of noise; put it into one.")
    if min(columns) < 0 or max(columns) >= features.shape[1]:
        raise EvenhandError(f"The columns of noise must be from 0 to {features.shape[1] - 1}; got {max(columns)}.")
    for item in items:
        item.model.check(features[:, item.columns])


def _check_people(experiment: Experiment) -> None:
    features, groups, folds = experiment.features, experiment.groups, experiment.folds
    if features.ndim != 2 or len(features) == 0 or features.dtype != np.float64:
        raise EvenhandError(f"`features` must be a table of numbers with one row a person; got {features.shape}.")
    for name, codes in (("groups", groups), ("folds", folds)):
        if codes is None:
            continue
        if codes.shape != (len(features),) or codes.dtype.kind not in "iu" or codes.min() < 0:
            raise EvenhandError(f"`{name}` must be {len(features)} whole numbers from 0 on, one a person.")
    wanted = 1 if folds is None else int(folds.max()) + 1
    if len(experiment.predictors) != wanted:
        raise EvenhandError(f"There must be one model a fold; got {len(experiment.predictors)} for {wanted} folds.")


def _check_levels(experiment: Experiment) -> None:
    levels = experiment.levels
    if levels.ndim != 1 or not 0 < levels.size < _MOST_PEOPLE_LEVELS:
        raise EvenhandError("`levels` must be a list of one or more noise levels.")
    if not (np.all(np.isfinite(levels)) and levels[0] >= 0 and np.all(np.diff(levels) > 0)):
        raise EvenhandError(f"`levels` must rise and not be negative; got {levels.tolist()}.")
    require_choice("shares", experiment.shares, ("bernoulli", "exact"))
    if experiment.shares == "exact" and levels[-1] > 1:
        raise EvenhandError(f"Exact shares must be at most 1; got the noise level {levels[-1]:g}.")
    if experiment.raters not in (1, 2):
        raise EvenhandError(f"`raters` must be 1 or 2; got {experiment.raters!r}.")
    if experiment.memory < 1:
        raise EvenhandError(f"`memory` must be at least 1 byte; got {experiment.memory!r}.")
