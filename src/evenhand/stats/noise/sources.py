"""Sizes of mistakes, from people with two ratings or from a published study by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from evenhand.errors import ConfigError, EvenhandError, did_you_mean
from evenhand.stats.noise.experiment import NoiseItem, Shares, highest_rate
from evenhand.stats.noise.models import Confusion, Flip, Normal, between
from evenhand.stats.types import BoolArray, FloatArray, IntArray

READINGS = ("raez-2024", "raez-2024-text")
FEATURE_SETS = ("all", "numeric", "categorical", "minima")
SIZES = (1, 5, 10)


@dataclass(frozen=True)
class HotDeck:
    """Errors in a number, drawn from the second rater's errors in a pilot study.

    Attributes
    ----------
    first, error
        The first rater's values, and the differences second - first, for the people of the pilot.
    near
        Draw from this many people with the nearest values; by default from all people, which was no worse in small
        pilots.
    minimum, maximum
        Changed values are clipped to these limits.

    Examples
    --------
    >>> deck = HotDeck(np.array([1.0, 2.0, 9.0, 9.0]), np.array([0.0, 1.0, 0.0, 5.0]))
    >>> deck.rate(np.array([[1.0], [9.0]])).tolist()
    [0.5, 0.5]
    >>> sorted(set(deck.draw(np.zeros((20, 1)), np.random.default_rng(0)).ravel().tolist()))
    [1.0, 5.0]
    """

    first: FloatArray
    error: FloatArray
    near: int | None = None
    minimum: float | None = None
    maximum: float | None = None

    def __post_init__(self) -> None:
        if self.first.ndim != 1 or self.first.shape != self.error.shape or self.first.size == 0:
            raise EvenhandError("A pilot study needs the values of both raters for at least one person.")
        if self.near is not None and not 1 <= self.near <= self.first.size:
            raise EvenhandError(
                "`near` must be from 1 to the {size} people of the pilot; got {near}.",
                size=self.first.size,
                near=self.near,
            )

    def check(self, values: FloatArray) -> None:
        """Accept every number."""

    def rate(self, values: FloatArray) -> FloatArray | None:
        """Return the share of nonzero errors among the people from whom errors are drawn."""
        first, last, _ = self._windows(values)
        return np.asarray((last - first) / (self.near or self.first.size))

    def draw(self, values: FloatArray, rng: Generator) -> FloatArray:
        """Return the values plus nonzero errors drawn from the pilot."""
        first, last, errors = self._windows(values)
        donor = first + (rng.random(len(values)) * (last - first)).astype(np.int64)
        moved = errors[np.minimum(donor, max(errors.size - 1, 0))] if errors.size else np.zeros(len(values))
        moved = np.where(last > first, moved, 0.0)
        return between(values + moved[:, np.newaxis], self.minimum, self.maximum)

    def _windows(self, values: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the range of nonzero errors to draw from for each value, and these errors in the order of `first`."""
        order = np.argsort(self.first, kind="stable")
        values_in_order, error = self.first[order], self.error[order]
        size = self.first.size if self.near is None else self.near
        # The nearest k start where known[i] + known[i + k] first reaches twice the value: the sums increase with i.
        start = (
            np.searchsorted(values_in_order[:-size] + values_in_order[size:], 2.0 * values[:, 0])
            if size < values_in_order.size
            else 0
        )
        start = np.broadcast_to(start, len(values))
        nonzero_errors = np.concatenate([[0], np.cumsum(error != 0)])
        return nonzero_errors[start], nonzero_errors[start + size], error[error != 0]


@dataclass(frozen=True)
class ErrorVectors:
    """Errors in several columns, drawn together from one person of a pilot study.

    Attributes
    ----------
    errors
        (people, columns) the differences second - first.
    binary
        (columns,) whether a nonzero error flips 0 and 1.
    minima, maxima
        (columns,) limits of changed values; -inf and inf for none.

    Examples
    --------
    >>> vectors = ErrorVectors(np.array([[0.0, 0.0], [2.0, -1.0]]), np.array([False, True]))
    >>> vectors.rate(np.zeros((1, 2))).tolist(), vectors.draw(np.zeros((1, 2)), np.random.default_rng(0)).tolist()
    ([0.5], [[2.0, 1.0]])
    """

    errors: FloatArray
    binary: BoolArray
    minima: FloatArray | None = None
    maxima: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.errors.ndim != 2 or len(self.errors) == 0 or self.binary.shape != self.errors.shape[1:]:
            raise EvenhandError("A pilot study needs the values of both raters for at least one person.")

    def check(self, values: FloatArray) -> None:
        """Raise an `EvenhandError` if binary columns have values other than 0 and 1."""
        odd = ~np.isin(values[:, self.binary], (0.0, 1.0)) & ~np.isnan(values[:, self.binary])
        if odd.any():
            raise EvenhandError("A binary value must be 0 or 1; got {values:g}.", values=values[:, self.binary][odd][0])

    def rate(self, values: FloatArray) -> FloatArray | None:
        """Return the share of the pilot's people with any error."""
        return np.full(len(values), (self.errors != 0).any(axis=1).mean())

    def draw(self, values: FloatArray, rng: Generator) -> FloatArray:
        """Return each row of values with the errors of one random person of the pilot."""
        wrong = self.errors[(self.errors != 0).any(axis=1)]
        if len(wrong) == 0:
            return values
        error = wrong[rng.integers(0, len(wrong), len(values))]
        moved = np.where(self.binary, np.where(error != 0, 1.0 - values, values), values + error)
        low = -np.inf if self.minima is None else self.minima
        return np.asarray(np.clip(moved, low, np.inf if self.maxima is None else self.maxima))


@dataclass(frozen=True, kw_only=True)
class Pilot:
    """A small table with two ratings of the same people, from which the mistakes of an experiment are learned.

    At level 1 entries change as often as in the pilot; level L means probabilities (1 - L) I + L Q, up to
    `largest_level`. No gold standard is needed, since only the distribution of the second rating given the first is
    used. All people share one profile, except the people in `apart`.

    Attributes
    ----------
    first, second
        (people, columns) ratings of the perturbed columns.
    columns
        The positions of those columns in the features.
    categories
        The values of categorical columns, with keys as in `columns`; all other columns are numeric.
    together
        Whether to draw the errors of all columns from one person, which preserves their dependence; categories must
        then be 0 and 1.
    near
        For numeric columns, the number of nearest people from whom to draw errors; by default all people.
    minima, maxima
        Limits of numeric columns, by column.
    apart
        The rows of the people of profiles 1, 2 ..., each person in at most one profile; profile 0 is learned from all
        people.

    Examples
    --------
    >>> pilot = Pilot(
    ...     first=np.array([[0.0], [0.0], [1.0]]),
    ...     second=np.array([[0.0], [1.0], [1.0]]),
    ...     columns=(4,),
    ...     categories={4: (0.0, 1.0)},
    ... )
    >>> [[round(chance, 2) for chance in row] for row in pilot.items()[0].model.chances]
    [[0.5, 0.5], [0.25, 0.75]]
    """

    first: FloatArray
    second: FloatArray
    columns: tuple[int, ...]
    categories: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    together: bool = False
    near: int | None = None
    minima: Mapping[int, float] = field(default_factory=dict)
    maxima: Mapping[int, float] = field(default_factory=dict)
    apart: tuple[IntArray, ...] = ()

    def __post_init__(self) -> None:
        shape = (len(self.first), len(self.columns))
        if shape[0] == 0 or self.first.shape != shape or self.second.shape != shape:
            raise EvenhandError(
                "Both raters of a pilot must have one row per person and {number} columns; got {first} and {second}.",
                number=len(self.columns),
                first=str(self.first.shape),
                second=str(self.second.shape),
            )
        if not np.isfinite(self.first).all() or not np.isfinite(self.second).all():
            raise EvenhandError("A rating of the pilot is missing; leave out people whom one rater did not rate.")
        if self.together and any(tuple(sorted(values)) != (0.0, 1.0) for values in self.categories.values()):
            raise EvenhandError("Errors can only be drawn together where categories are 0 and 1.")
        rows_in_profiles = np.concatenate([np.zeros(0, dtype=np.int64), *self.apart])
        if any(rows.size == 0 for rows in self.apart) or np.unique(rows_in_profiles).size < rows_in_profiles.size:
            raise EvenhandError("Each profile of a pilot needs people, and each person belongs to one profile at most.")

    def items(self) -> tuple[NoiseItem, ...]:
        """Return the noise items learned from the pilot."""
        return self._profiles(np.arange(len(self.first)), self.apart)

    def resampled(self) -> Callable[[Generator], Sequence[NoiseItem]]:
        """Return a function that learns the items from a resample of the pilot, for `Experiment.renew`.

        The people of each profile are resampled separately.
        """
        rows_in_profiles = np.concatenate([np.zeros(0, dtype=np.int64), *self.apart])
        strata = [
            rows for rows in (np.setdiff1d(np.arange(len(self.first)), rows_in_profiles), *self.apart) if rows.size
        ]

        def renew(rng: Generator) -> Sequence[NoiseItem]:
            drawn = [rows[rng.integers(0, rows.size, rows.size)] for rows in strata]
            return self._profiles(np.concatenate(drawn), drawn[len(drawn) - len(self.apart) :])

        return renew

    def _profiles(self, everybody: IntArray, apart: Sequence[IntArray]) -> tuple[NoiseItem, ...]:
        learned = [self._learned(rows) for rows in (everybody, *apart)]
        return tuple(
            NoiseItem(of_all.columns, of_all.model, tuple(item.model for item in by_profile))
            for of_all, *by_profile in zip(*learned, strict=True)
        )

    def _learned(self, rows: IntArray) -> tuple[NoiseItem, ...]:
        first, second = self.first[rows], self.second[rows]
        if self.together:
            binary = np.array([column in self.categories for column in self.columns])
            low = np.array([self.minima.get(column, -np.inf) for column in self.columns])
            high = np.array([self.maxima.get(column, np.inf) for column in self.columns])
            return (NoiseItem(self.columns, ErrorVectors(second - first, binary, low, high)),)
        return tuple(self._item(number, first[:, number], second[:, number]) for number in range(len(self.columns)))

    def _item(self, number: int, first: FloatArray, second: FloatArray) -> NoiseItem:
        column = self.columns[number]
        if column in self.categories:
            return NoiseItem((column,), learned_confusion(first, second, self.categories[column]))
        deck = HotDeck(first, second - first, self.near, self.minima.get(column), self.maxima.get(column))
        return NoiseItem((column,), deck)


def learned_confusion(first: ArrayLike, second: ArrayLike, values: Sequence[float]) -> Confusion:
    """Return the estimated probabilities of the second rating given the first: Q_uv = (n_uv + 1/2) / (n_u + q/2).

    Half a person is added to each pair of the q categories, so that unobserved changes in a small pilot are not
    impossible.

    Examples
    --------
    >>> learned_confusion([0, 0, 0], [0, 0, 1], (0, 1)).chances
    ((0.625, 0.375), (0.5, 0.5))
    """
    categories = np.asarray(values, dtype=np.float64)
    pairs = [np.asarray(rating, dtype=np.float64)[:, np.newaxis] == categories for rating in (first, second)]
    if not all(match.any(axis=1).all() for match in pairs):
        raise EvenhandError("A rating of the pilot is not one of the categories {known}.", known=categories.tolist())
    counts = pairs[0].T.astype(np.float64) @ pairs[1].astype(np.float64) + 0.5
    chances = counts / counts.sum(axis=1, keepdims=True)
    return Confusion(tuple(categories.tolist()), tuple(tuple(row) for row in chances.tolist()))


def largest_level(
    items: Sequence[NoiseItem], features: FloatArray, profiles: IntArray | None = None, paces: FloatArray | None = None
) -> float:
    """Return the highest noise level with valid probabilities, 1 / the largest rate of change.

    Examples
    --------
    >>> model = learned_confusion([0, 0, 0, 1], [0, 0, 0, 1], (0, 1))
    >>> largest_level([NoiseItem((0,), model)], np.array([[0.0], [1.0]]))
    4.0
    """
    top = highest_rate(items, features, profiles, paces)
    return 1.0 / top if top > 0 else float("inf")


@dataclass(frozen=True)
class PublishedNoise:
    """A noise setting of Räz (2024).

    The paper calls the size of numeric errors their variance; the code of its figures used it as their standard
    deviation, and touched each entry with probability p where the text reads as an exact share.

    Attributes
    ----------
    sd
        Standard deviation of numeric errors; None if numbers stay unchanged.
    flips
        Whether binary features are flipped.
    minima
        Whether to clip numbers to a column's minimum.
    shares
        The rule by which a level determines the touched entries.

    References
    ----------
    T. Räz (2024), Reliability gaps between groups in COMPAS dataset, FAccT '24.

    Examples
    --------
    >>> published_noise("raez-2024/all/5").sd, round(published_noise("raez-2024-text/all/5").sd, 4)
    (5.0, 2.2361)
    """

    sd: float | None
    flips: bool
    minima: bool
    shares: Shares

    def items(
        self, numeric: Sequence[int], binary: Sequence[int], minima: Mapping[int, float] | None = None
    ) -> tuple[NoiseItem, ...]:
        """Return the noise items of a table's columns.

        Parameters
        ----------
        numeric, binary
            The columns that may have mistakes.
        minima
            The smallest value of each numeric column, used if the setting has minima.

        Examples
        --------
        >>> [item.columns for item in published_noise("raez-2024/all/1").items([3, 4], [0])]
        [(3,), (4,), (0,)]
        """
        least = (minima or {}) if self.minima else {}
        noisy = {} if self.sd is None else {column: Normal(self.sd, minimum=least.get(column)) for column in numeric}
        numbers = [NoiseItem((column,), normal) for column, normal in noisy.items()]
        return tuple(numbers + [NoiseItem((column,), Flip()) for column in binary if self.flips])


def published_names() -> list[str]:
    """Return the names of all published settings.

    Examples
    --------
    >>> len(published_names()), published_names()[0]
    (20, 'raez-2024/all/1')
    """
    return [
        f"{reading}/{features}{size}"
        for reading in READINGS
        for features in FEATURE_SETS
        for size in ([""] if features == "categorical" else [f"/{sd}" for sd in SIZES])
    ]


def published_noise(name: str) -> PublishedNoise:
    """Return a published setting by its name `reading/features/size`; 'categorical' has no size.

    Examples
    --------
    >>> published_noise("raez-2024/al/5")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: There is no noise setting 'raez-2024/al/5'; did you mean 'raez-2024/all/5'?
    """
    if name not in published_names():
        near = get_close_matches(name, published_names(), n=1)
        hint = did_you_mean(name, near or published_names())
        raise ConfigError("There is no noise setting {name!r}; {hint}", name=name, hint=hint)
    reading, features, *size = name.split("/")
    text = reading.endswith("-text")
    sd = None if not size else float(size[0]) ** (0.5 if text else 1.0)
    return PublishedNoise(sd, features != "numeric", features == "minima", "exact" if text else "bernoulli")
