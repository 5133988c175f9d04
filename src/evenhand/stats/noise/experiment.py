"""An experiment: people, models, groups, and the mistakes applied to the features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.random import Generator, SeedSequence

from evenhand.errors import EvenhandError, require_at_least, require_choice
from evenhand.stats.agreement import pooled_spread
from evenhand.stats.noise.models import NoiseModel
from evenhand.stats.noise.predictors import Linear, Predictor, checked
from evenhand.stats.types import BoolArray, FloatArray, IntArray

Shares: TypeAlias = Literal["bernoulli", "exact"]
MEMORY = 64 * 2**20
_MOST_PEOPLE_LEVELS = 2**15 - 1


@dataclass(frozen=True)
class NoiseItem:
    """Columns whose mistakes occur together, and the models of these mistakes.

    Attributes
    ----------
    columns
        The columns.
    model
        The noise model of all people, or of people with profile 0.
    others
        The noise models of people with profiles 1, 2 ...; empty if all profiles share one model.

    Examples
    --------
    >>> from evenhand.stats.noise.models import Flip, Normal
    >>> NoiseItem((0,), Flip()).columns
    (0,)
    >>> item = NoiseItem((0,), Normal(1.0), (Normal(0.0),))
    >>> item.draw(np.array([[5.0], [5.0]]), np.array([1, 1]), np.random.default_rng(0)).ravel().tolist()
    [5.0, 5.0]
    """

    columns: tuple[int, ...]
    model: NoiseModel
    others: tuple[NoiseModel, ...] = ()

    def model_of(self, profile: int) -> NoiseModel:
        """Return the noise model of a profile."""
        return (self.model, *self.others)[profile] if self.others else self.model

    def rate(self, values: FloatArray, profiles: IntArray | None) -> FloatArray | None:
        """Return (people,) the share of touched entries that change, or None if all change."""
        if not self.others or profiles is None:
            return self.model.rate(values)
        share, all_do = np.ones(len(values)), True
        for rows, model in self._by_profile(profiles):
            rates = model.rate(values[rows]) if rows.size else None
            if rates is not None:
                share[rows], all_do = rates, False
        return None if all_do else share

    def draw(self, values: FloatArray, profiles: IntArray | None, rng: Generator) -> FloatArray:
        """Return new values (people, columns) for entries that change."""
        if not self.others or profiles is None:
            return self.model.draw(values, rng)
        drawn = np.empty_like(values)
        for rows, model in self._by_profile(profiles):
            drawn[rows] = model.draw(values[rows], rng)
        return drawn

    def check(self, values: FloatArray, profiles: IntArray | None) -> None:
        """Raise an `EvenhandError` if the models cannot change these values."""
        if not self.others or profiles is None:
            self.model.check(values)
            return
        for rows, model in self._by_profile(profiles):
            model.check(values[rows])

    def _by_profile(self, profiles: IntArray) -> Iterator[tuple[IntArray, NoiseModel]]:
        for number, model in enumerate((self.model, *self.others)):
            yield np.flatnonzero(profiles == number), model


@dataclass(frozen=True, kw_only=True)
class Base:
    """People in the order of their cells (fold, then group), with predictions without mistakes.

    A stratum is a cell or, with noise profiles, the people of one profile in it. Profiles with equal paces and models
    are merged.
    """

    order: IntArray
    features: FloatArray
    fold: IntArray
    cell: IntArray
    starts: IntArray
    profile: IntArray | None
    stratum: IntArray
    score: FloatArray
    label: BoolArray
    centre: FloatArray


@dataclass(frozen=True)
class Ranks:
    """For exact shares: each person's stratum, position in it, and the stratum's touched entries at level 1."""

    stratum: IntArray
    within: IntArray
    room: FloatArray


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A simulated experiment: a second rater (or two raters) who makes mistakes in the same people's features.

    At level p a share p of the entries of every item is touched: each with probability p, or (`exact`) floor(p n + U)
    of the n entries in each fold and group, U being one uniform number for each item, replicate, fold and group. That
    is p n on average, even in small cells, and never differs from p n by one entry or more. If people have profiles, p
    times the pace of their profile replaces p, and shares are exact in each fold, group and profile.

    With `common` random numbers an entry touched at one level is touched, with the same mistake, at all higher levels.
    One draw covers all levels, and differences between levels are more precise; but the mean over levels of one
    replicate varies more, so use many replicates. Otherwise every level is drawn separately.

    Attributes
    ----------
    features
        (people, d) raw features. A missing entry (nan) stays missing.
    predictors
        One model per fold; if all are `Linear`, they are evaluated without building rows.
    items
        The columns with mistakes. No column may be in two items.
    groups, folds
        (people,) integers from 0; by default one fold.
    levels
        Rising noise levels; by default 0, 0.01, ..., 0.30.
    shares
        'bernoulli' or 'exact'.
    common
        Whether to use common random numbers over the levels.
    raters
        2 if the first rater also makes mistakes; otherwise 1.
    memory
        Bytes to use at once for rows and draws.
    renew
        A function from each replicate's random generator to the items of that replicate (with the same columns), for
        example from a resampled pilot study.
    profiles
        (people,) integers from 0 for people with equal mistakes. The items define the mistakes of each profile.
    paces
        (profiles,) the ratio of touched entries to the noise level; by default 1.

    Examples
    --------
    >>> from evenhand.stats.noise.models import Flip
    >>> people = np.array([[0.0], [1.0], [0.0], [1.0]])
    >>> model = Linear(np.array([2.0]), -1.0)
    >>> trial = Experiment(
    ...     features=people,
    ...     predictors=(model,),
    ...     items=(NoiseItem((0,), Flip()),),
    ...     groups=np.array([0, 0, 1, 1]),
    ...     levels=np.array([0.5]),
    ... )
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
    renew: Callable[[Generator], Sequence[NoiseItem]] | None = None
    profiles: IntArray | None = None
    paces: FloatArray | None = None

    def __post_init__(self) -> None:
        _check_people(self)
        _check_profiles(self)
        _check_levels(self)
        check_items(self.items, self.features, self.profiles)
        if self.levels[-1] * highest_rate(self.items, self.features, self.profiles, self.paces) > 1 + 1e-9:
            raise EvenhandError(
                "The noise level {levels:g} would change more than every entry; lower it.", levels=self.levels[-1]
            )

    @property
    def cells(self) -> tuple[int, int]:
        """The numbers of folds and groups."""
        return len(self.predictors), int(self.groups.max()) + 1

    @property
    def columns(self) -> tuple[int, ...]:
        """The perturbed columns, by item."""
        return tuple(column for item in self.items for column in item.columns)

    @cached_property
    def entries(self) -> FloatArray:
        """(columns, people) the true entries of the perturbed columns, people in base order."""
        return np.ascontiguousarray(self.base.features[:, self.columns].T)

    @cached_property
    def slopes(self) -> FloatArray | None:
        """(columns, people) the change of a linear model's sum per unit of each entry; None without linear models."""
        linear = [model for model in self.predictors if isinstance(model, Linear)]
        if len(linear) < len(self.predictors) or len({(model.link, model.threshold) for model in linear}) > 1:
            return None
        weights = np.stack([model.weights for model in linear])
        return np.ascontiguousarray(weights[:, self.columns].T[:, self.base.fold])

    @cached_property
    def base(self) -> Base:
        """People in base order, with their predictions without mistakes."""
        folds = np.zeros(len(self.features), dtype=np.int64) if self.folds is None else self.folds
        groups = self.cells[1]
        cell = folds * groups + self.groups
        profiles = None if self.profiles is None else self._merged()[self.profiles]
        stratum = cell if profiles is None else cell * (int(profiles.max()) + 1) + profiles
        order = np.argsort(stratum, kind="stable").astype(np.int64)
        features, fold, cell, stratum = self.features[order], folds[order], cell[order], stratum[order]
        profile = None if profiles is None else profiles[order]
        starts = np.searchsorted(cell, np.arange(self.cells[0] * groups + 1)).astype(np.int64)
        score, label = np.empty(len(order)), np.empty(len(order), dtype=np.bool_)
        for number, predict in enumerate(self.predictors):
            rows = slice(starts[number * groups], starts[(number + 1) * groups])
            score[rows], label[rows] = checked(predict, features[rows])
        sizes = np.maximum(np.diff(starts), 1)
        centre = np.bincount(cell, score, len(sizes)) / sizes
        return Base(
            order=order,
            features=features,
            fold=fold,
            cell=cell,
            starts=starts,
            profile=profile,
            stratum=stratum,
            score=score,
            label=label,
            centre=centre,
        )

    def _merged(self) -> IntArray:
        """Return for each profile the first profile with the same pace and models."""
        last = 0 if self.profiles is None else int(self.profiles.max())
        paces = np.ones(last + 1) if self.paces is None else self.paces
        merged = np.arange(last + 1)
        for profile in range(1, last + 1):
            for earlier in range(profile):
                same_models = all(_same(item.model_of(profile), item.model_of(earlier)) for item in self.items)
                if same_models and paces[profile] == paces[earlier]:
                    merged[profile] = merged[earlier]
                    break
        return merged

    @cached_property
    def spread(self) -> FloatArray:
        """(folds, 1) V = 2 var(score) over all people in each fold, without mistakes."""
        score, fold = self.base.score, self.base.fold
        return np.array([[float(pooled_spread(score[fold == number]))] for number in range(len(self.predictors))])

    @cached_property
    def ranks(self) -> Ranks:
        """For exact shares: the positions of people within their strata, in base order."""
        _, starts, number, sizes = np.unique(
            self.base.stratum, return_index=True, return_inverse=True, return_counts=True
        )
        within = np.arange(len(self.features)) - starts[number]
        room = sizes[number] * (1.0 if self.pace is None else self.pace)
        return Ranks(number.astype(np.int64), within.astype(np.int64), room.astype(np.float64))

    @cached_property
    def pace(self) -> FloatArray | None:
        """(people,) the ratio of touched entries to the noise level, in base order."""
        return None if self.paces is None or self.base.profile is None else self.paces[self.base.profile]

    def prepare(self) -> None:
        """Compute the arrays shared by all replicates before threads start."""
        _ = self.entries, self.slopes, self.pace, self.ranks if self.shares == "exact" else None


def replicate_seeds(replicates: int, rng: Generator) -> list[SeedSequence]:
    """Return one seed per replicate, so that draws do not depend on other replicates or threads.

    Examples
    --------
    >>> len(replicate_seeds(3, np.random.default_rng(0)))
    3
    """
    require_at_least("replicates", replicates, 1)
    words = rng.integers(0, 2**32, 4, dtype=np.uint32)
    return SeedSequence(words.tolist()).spawn(replicates)


def highest_rate(
    items: Sequence[NoiseItem], features: FloatArray, profiles: IntArray | None = None, paces: FloatArray | None = None
) -> float:
    """Return the largest share of any person's entries that changes at noise level 1.

    Examples
    --------
    >>> from evenhand.stats.noise.models import Flip
    >>> highest_rate([NoiseItem((0,), Flip())], np.zeros((3, 1)), np.array([0, 1, 1]), np.array([1.0, 2.5]))
    2.5
    """
    pace = 1.0 if paces is None or profiles is None else paces[profiles]
    rates = [0.0]
    for item in items:
        rate = item.rate(features[:, item.columns], profiles)
        rates.append(float(np.nanmax(pace * (1.0 if rate is None else rate), initial=0.0)))
    return max(rates)


def check_items(items: Sequence[NoiseItem], features: FloatArray, profiles: IntArray | None = None) -> None:
    """Raise an `EvenhandError` unless each column exists, is in only one item, and suits its noise model."""
    if not items or any(not item.columns for item in items):
        raise EvenhandError("There must be at least one item of noise, each with at least one column.")
    _check_columns([column for item in items for column in item.columns], features.shape[1])
    for item in items:
        if item.others and (profiles is None or len(item.others) < profiles.max()):
            raise EvenhandError("Items that differ by profile must have one model per profile, and people `profiles`.")
        item.check(features[:, item.columns], profiles)


def _check_columns(columns: list[int], features: int) -> None:
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise EvenhandError("The column {twice} is in two items of noise; put it into one.", twice=twice)
    if min(columns) < 0 or max(columns) >= features:
        raise EvenhandError(
            "The columns of noise must be from 0 to {value}; got {max}.", value=features - 1, max=max(columns)
        )


def _same(model: NoiseModel, other: NoiseModel) -> bool:
    """Return whether two models are equal; models with arrays are equal only to themselves."""
    if model is other:
        return True
    try:
        return hash(model) == hash(other) and model == other
    except TypeError:
        return False


def _check_people(experiment: Experiment) -> None:
    features, groups, folds = experiment.features, experiment.groups, experiment.folds
    if features.ndim != 2 or len(features) == 0 or features.dtype != np.float64:
        raise EvenhandError(
            "`features` must be a table of numbers with one row per person; got {shape}.", shape=str(features.shape)
        )
    for name, codes in (("groups", groups), ("folds", folds), ("profiles", experiment.profiles)):
        if codes is None:
            continue
        if codes.shape != (len(features),) or codes.dtype.kind not in "iu" or codes.min() < 0:
            raise EvenhandError(
                "`{name}` must be {number} whole numbers from 0 on, one per person.", name=name, number=len(features)
            )
    expected = 1 if folds is None else int(folds.max()) + 1
    if len(experiment.predictors) != expected:
        raise EvenhandError(
            "There must be one model per fold; got {number} for {wanted} folds.",
            number=len(experiment.predictors),
            wanted=expected,
        )


def _check_profiles(experiment: Experiment) -> None:
    profiles, paces = experiment.profiles, experiment.paces
    if paces is None:
        return
    if profiles is None or paces.ndim != 1 or len(paces) <= profiles.max():
        raise EvenhandError("`paces` must be one number per profile, and people must have `profiles`.")
    if not (np.isfinite(paces).all() and (paces >= 0).all()):
        raise EvenhandError("`paces` must be numbers that are not negative; got {paces}.", paces=paces.tolist())


def _check_levels(experiment: Experiment) -> None:
    levels = experiment.levels
    if levels.ndim != 1 or not 0 < levels.size < _MOST_PEOPLE_LEVELS:
        raise EvenhandError("`levels` must be a list of one or more noise levels.")
    if not (np.all(np.isfinite(levels)) and levels[0] >= 0 and np.all(np.diff(levels) > 0)):
        raise EvenhandError("`levels` must rise and not be negative; got {levels}.", levels=levels.tolist())
    require_choice("shares", experiment.shares, ("bernoulli", "exact"))
    fastest = 1.0 if experiment.paces is None else float(experiment.paces.max())
    if experiment.shares == "exact" and levels[-1] * max(fastest, 1.0) > 1 + 1e-9:
        raise EvenhandError("Exact shares must be at most 1; got {value:g}.", value=levels[-1] * max(fastest, 1.0))
    if experiment.raters not in (1, 2):
        raise EvenhandError("`raters` must be 1 or 2; got {raters!r}.", raters=experiment.raters)
    if experiment.memory < 1:
        raise EvenhandError("`memory` must be at least 1 byte; got {memory!r}.", memory=experiment.memory)
