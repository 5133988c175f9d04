"""Models of mistakes in an entry, one class per kind of feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from evenhand.errors import EvenhandError, require_at_least
from evenhand.stats.types import LARGEST, BoolArray, FloatArray


class NoiseModel(Protocol):
    """A model of the mistakes in one feature, or in several related columns.

    A noise level p is the share of entries that are touched. Of a person's touched entries the share `rate` changes, to
    the values of `draw`.
    """

    def check(self, values: FloatArray) -> None:
        """Raise an `EvenhandError` if the model cannot change these values (people, columns)."""

    def rate(self, values: FloatArray) -> FloatArray | None:
        """Return (people,) the share of touched entries that change, or None if all change."""

    def draw(self, values: FloatArray, rng: Generator) -> FloatArray:
        """Return new values (people, columns) for entries that change."""


@dataclass(frozen=True)
class Flip:
    """A mistake that replaces one of two values by the other.

    Examples
    --------
    >>> Flip().draw(np.array([[0.0], [1.0]]), np.random.default_rng(0)).tolist()
    [[1.0], [0.0]]
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite([self.low, self.high]).all() and self.low != self.high):
            raise EvenhandError(
                "A flip needs two different values; got {low!r} and {high!r}.", low=self.low, high=self.high
            )

    def check(self, values: FloatArray) -> None:
        """Raise an `EvenhandError` for values other than the two."""
        _refuse(values, (values == self.low) | (values == self.high), f"{self.low:g} or {self.high:g}")

    def rate(self, values: FloatArray) -> FloatArray | None:  # noqa: ARG002
        """Return None, since every touched entry changes."""
        return None

    def draw(self, values: FloatArray, rng: Generator) -> FloatArray:  # noqa: ARG002
        """Return the other of the two values."""
        return np.asarray(self.low + self.high - values)


@dataclass(frozen=True)
class Normal:
    """A normal error with standard deviation `sd` in a number, by default rounded to an integer.

    Attributes
    ----------
    sd
        Standard deviation of the error before rounding, in the units of the column.
    whole
        Whether to round the error to an integer; some touched entries then do not change.
    minimum, maximum
        Changed values are clipped to these limits.

    Examples
    --------
    >>> Normal(sd=5.0, minimum=18.0).draw(np.full((3, 1), 19.0), np.random.default_rng(1)).ravel().tolist()
    [21.0, 23.0, 21.0]
    """

    sd: float
    whole: bool = True
    minimum: float | None = None
    maximum: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.sd <= LARGEST:
            raise EvenhandError("`sd` must be a number from 0 to {most:g}; got {sd!r}.", most=LARGEST, sd=self.sd)
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise EvenhandError(
                "`minimum` {minimum:g} must not be above `maximum` {maximum:g}.",
                minimum=self.minimum,
                maximum=self.maximum,
            )

    def check(self, values: FloatArray) -> None:
        """Raise an `EvenhandError` for infinite values."""
        _refuse(values, ~np.isinf(values), "finite")

    def rate(self, values: FloatArray) -> FloatArray | None:  # noqa: ARG002
        """Return None, since every touched entry may change."""
        return None

    def draw(self, values: FloatArray, rng: Generator) -> FloatArray:
        """Return the values with errors, clipped to the limits."""
        error = rng.standard_normal(values.shape)
        error *= self.sd
        if self.whole:
            np.rint(error, out=error)
        return between(values + error, self.minimum, self.maximum)


@dataclass(frozen=True)
class Right:
    """No mistakes, for people without mistakes in a feature where others make them.

    Examples
    --------
    >>> Right().draw(np.array([[3.0]]), np.random.default_rng(0)).tolist()
    [[3.0]]
    """

    def check(self, values: FloatArray) -> None:
        """Accept every value."""

    def rate(self, values: FloatArray) -> FloatArray | None:
        """Return zeros, since no entry changes."""
        return np.zeros(len(values))

    def draw(self, values: FloatArray, rng: Generator) -> FloatArray:  # noqa: ARG002
        """Return the values unchanged."""
        return values


@dataclass(frozen=True)
class Confusion:
    """The confusion of a category with another one, with known probabilities.

    Attributes
    ----------
    values
        The categories, as numbers in the column.
    chances
        chances[u][v]: the probability that a touched entry u becomes v. Rows add up to 1; the diagonal may be above 0.

    Examples
    --------
    >>> model = Confusion((1.0, 2.0, 3.0), ((0.5, 0.5, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)))
    >>> model.rate(np.array([[1.0], [2.0]])).tolist()
    [0.5, 1.0]
    >>> model.draw(np.array([[1.0], [2.0]]), np.random.default_rng(0)).ravel().tolist()
    [2.0, 3.0]
    """

    values: tuple[float, ...]
    chances: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        q = len(self.values)
        if q < 2 or len(set(self.values)) != q or not np.isfinite(self.values).all():
            raise EvenhandError(
                "`values` must be two or more different numbers; got {values}.", values=list(self.values)
            )
        if len(self.chances) != q or any(len(row) != q for row in self.chances):
            raise EvenhandError("`chances` must have {q} rows of {q} numbers.", q=q)
        matrix = np.array(self.chances)
        if not (np.all(matrix >= 0) and np.allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-9)):
            raise EvenhandError("Each row of `chances` must hold numbers that are not negative and add up to 1.")

    def check(self, values: FloatArray) -> None:
        """Raise an `EvenhandError` for values outside the categories."""
        listed = ", ".join(f"{value:g}" for value in self.values)
        _refuse(values, np.isin(values, self.values), f"one of {listed}")

    def rate(self, values: FloatArray) -> FloatArray | None:
        """Return the probability that a touched entry changes."""
        return np.asarray(1.0 - np.diagonal(np.array(self.chances))[self._positions(values)])

    def draw(self, values: FloatArray, rng: Generator) -> FloatArray:
        """Return another random category for each entry."""
        other_chances = np.array(self.chances)
        np.fill_diagonal(other_chances, 0.0)
        total = other_chances.sum(axis=1, keepdims=True)
        steps = np.cumsum(np.divide(other_chances, total, out=np.zeros_like(other_chances), where=total > 0), axis=1)
        row = steps[self._positions(values)]
        chosen = np.minimum((rng.random(len(values))[:, np.newaxis] >= row).sum(axis=1), len(self.values) - 1)
        return np.asarray(self.values, dtype=np.float64)[chosen, np.newaxis]

    def _positions(self, values: FloatArray) -> npt.NDArray[np.intp]:
        categories = np.asarray(self.values)
        order = np.argsort(categories)
        position = np.minimum(np.searchsorted(categories[order], values[:, 0]), len(categories) - 1)
        return np.asarray(order[position])


@dataclass(frozen=True)
class OneHot:
    """A mistake in one-hot columns, which moves the 1 to another column with equal probabilities.

    Examples
    --------
    >>> OneHot().draw(np.array([[1.0, 0.0], [0.0, 1.0]]), np.random.default_rng(0)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    def check(self, values: FloatArray) -> None:
        """Raise an `EvenhandError` for rows without exactly one 1."""
        if values.shape[1] < 2:
            raise EvenhandError("One-hot noise needs two or more columns; got {shape}.", shape=values.shape[1])
        _refuse(values, (values == 0) | (values == 1), "0 or 1")
        if not np.all(values.sum(axis=1) == 1):
            raise EvenhandError("One-hot columns must hold exactly one 1 in each row.")

    def rate(self, values: FloatArray) -> FloatArray | None:  # noqa: ARG002
        """Return None, since every touched entry changes."""
        return None

    def draw(self, values: FloatArray, rng: Generator) -> FloatArray:
        """Return rows with the 1 in another column."""
        people, columns = values.shape
        moved = (np.argmax(values, axis=1) + rng.integers(1, columns, people)) % columns
        return np.asarray(moved[:, np.newaxis] == np.arange(columns), dtype=np.float64)


def neighbours(values: tuple[float, ...], reach: int = 1) -> Confusion:
    """Return the noise of an ordered scale: a move of up to `reach` steps, each with equal probability.

    Examples
    --------
    >>> neighbours((1, 2, 3)).chances
    ((0.0, 1.0, 0.0), (0.5, 0.0, 0.5), (0.0, 1.0, 0.0))
    """
    require_at_least("reach", reach, 1)
    ordered = tuple(sorted(float(value) for value in values))
    apart = np.abs(np.subtract.outer(np.arange(len(ordered)), np.arange(len(ordered))))
    near = ((apart > 0) & (apart <= reach)).astype(np.float64)
    chances = near / np.maximum(near.sum(axis=1, keepdims=True), 1.0)
    return Confusion(ordered, tuple(tuple(row) for row in chances.tolist()))


def between(values: FloatArray, minimum: float | None, maximum: float | None) -> FloatArray:
    """Return values clipped to the limits.

    Examples
    --------
    >>> between(np.array([-1.0, 5.0]), 0.0, None)
    array([0., 5.])
    """
    return values if minimum is None and maximum is None else np.clip(values, minimum, maximum)


def _refuse(values: FloatArray, fits: BoolArray, expected: str) -> None:
    bad = ~fits & ~np.isnan(values)
    if bad.any():
        raise EvenhandError(
            "A value to be perturbed must be {wanted}; got {values:g}.", wanted=expected, values=values[bad][0]
        )
