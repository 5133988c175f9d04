"""Cells of two groups, and the studentised difference of their means under random assignment to groups."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError
from evenhand.stats.types import FloatArray, IntArray

_CELL = 25  # the cost of drawing a cell's number, in people drawn
_MOST_WORK, _GRID = 25_000, 0.02  # of one draw; beyond, values are merged on a grid of so many standard deviations
_NUMBERS = 2_000_000  # sums in memory at once
_DIGITS = 12
_NO_DIFFERENCE = 1e-13  # of means in standard deviations, by rounding


class Means(NamedTuple):
    """Standardised means of two groups, their squared standard errors, and effective numbers of people."""

    mean: FloatArray
    variance: FloatArray
    effective: FloatArray


@dataclass(frozen=True, eq=False)
class TwoGroupCells:
    """Distinct cells of two groups, sorted by stratum, value and weight; the mean weight is 1.

    Attributes
    ----------
    values, weights, strata
        (C,) the value, weight and stratum of each cell; strata are 0 ... S - 1, in the order of their contents.
    counts
        (2, C) the number of people of both groups; every stratum contains people of both.
    shares
        (S,) the strata's shares in the standardised means; they sum to 1.
    """

    values: FloatArray
    weights: FloatArray
    strata: IntArray
    counts: IntArray
    shares: FloatArray

    @cached_property
    def start(self) -> IntArray:
        """(S,) the first cell of each stratum."""
        return np.searchsorted(self.strata, np.arange(self.shares.size))

    def by_stratum(self, numbers: npt.NDArray[np.generic]) -> FloatArray:
        """Return the sums over each stratum of an array whose last axis is cells."""
        return np.asarray(np.add.reduceat(numbers.astype(np.float64), self.start, axis=-1))

    @cached_property
    def people(self) -> FloatArray:
        """(2, S) the number of people by group and stratum."""
        return self.by_stratum(self.counts)

    @cached_property
    def centre(self) -> tuple[float, float]:
        """The pooled mean, and the pooled standard deviation (1 if it is 0)."""
        weight = self.counts.sum(axis=0) * self.weights
        mean = float(np.average(self.values, weights=weight))
        spread = float(np.sqrt(np.average((self.values - mean) ** 2, weights=weight)))
        return mean, spread if spread > 0 else 1.0

    @cached_property
    def columns(self) -> FloatArray:
        """(C, Q) the summed columns: z and z² or, with weights, w, w z, w², w² z and w² z²."""
        mean, spread = self.centre
        z, w = (self.values - mean) / spread, self.weights
        if (w == 1.0).all():
            return np.column_stack([z, z * z])
        return np.column_stack([w, w * z, w * w, w * w * z, (w * z) ** 2])

    @cached_property
    def sums(self) -> FloatArray:
        """(2, S, Q) the columns summed over the people of both groups in each stratum."""
        return np.moveaxis(self.by_stratum(self.counts[:, np.newaxis] * self.columns.T), 1, 2)

    def means(self) -> Means:
        """Return the means of both groups, with their variances and effective sizes, in the units of the values."""
        mean, variance = np.concatenate([self._means(self.sums[[g]], self.people[g]) for g in (0, 1)], axis=1)
        centre, spread = self.centre
        weight, _, squares, *_ = self._split(self.sums, self.people)
        effective = 1.0 / (self.shares**2 * squares / weight**2).sum(axis=-1)
        within = np.clip(centre + spread * mean, self.values.min(), self.values.max())
        return Means(within, spread**2 * variance, effective)

    def _means(self, sums: FloatArray, people: FloatArray) -> FloatArray:
        """Return (2, B) standardised means of z and their squared standard errors, from sums (B, S, Q)."""
        from evenhand.stats.permutation.kernels import standardise

        found = np.empty((2, len(sums)))
        standardise(np.ascontiguousarray(sums), people, self.shares, self._pooled_variance, found)
        return found

    @cached_property
    def _pooled_variance(self) -> FloatArray:
        """(S,) the variance of a person's value in each stratum, over both groups."""
        n = self.people.sum(axis=0)
        w, wz, ww, wwz, wwzz = self._split(self.sums.sum(axis=0), n)
        mean = wz / w
        return np.asarray(np.maximum((wwzz - 2.0 * mean * wwz + mean**2 * ww) / ww, 0.0) * n / (n - 1.0))

    @staticmethod
    def _split(sums: FloatArray, people: FloatArray) -> tuple[FloatArray, ...]:
        """Return the sums of w, w z, w², w² z and w² z²."""
        if sums.shape[-1] == 5:
            return tuple(np.moveaxis(sums, -1, 0))
        return people, sums[..., 0], people, sums[..., 0], sums[..., 1]

    def statistics(self, first: FloatArray) -> npt.NDArray[np.float32]:
        """Return the single-precision t of assignments, from the sums (B, S, Q) over the first group."""
        return self.studentised(first).astype(np.float32)

    def studentised(self, first: FloatArray) -> FloatArray:
        """Return the double-precision t of assignments, from the sums (B, S, Q) over the first group."""
        mean, variance = self._means(first, self.people[0])
        other_mean, other_variance = self._means(self.sums.sum(axis=0) - first, self.people[1])
        away, square = mean - other_mean, variance + other_variance
        with np.errstate(all="ignore"):
            return np.where(np.abs(away) > _NO_DIFFERENCE, away / np.sqrt(square), 0.0)

    def shape(self) -> tuple[float, float]:
        """Return the skewness and the fourth standardised moment of the difference of means over assignments.

        With e = w (z - mean) for a person (mean weight 1), the shares p of strata and V = sum p² E e² (1/n_a + 1/n_b),
        they are sum p³ E e³ (1/n_a² - 1/n_b²) / V^(3/2) and sum p⁴ E e⁴ (1/n_a³ + 1/n_b³) / V².
        """
        pooled = self.counts.sum(axis=0)
        size, weight = self.by_stratum(pooled), self.by_stratum(pooled * self.weights)
        mean = self.by_stratum(pooled * self.weights * self.values) / weight
        away = self.weights * (self.values - mean[self.strata]) * (size / weight)[self.strata] / self.centre[1]
        second, third, fourth = (
            self.shares**power * self.by_stratum(pooled * away**power) / size for power in (2, 3, 4)
        )
        return shape_of(second, third, fourth, *self.people)

    # The order that contents decide ---------------------------------------------------------------------------

    def oriented(self) -> tuple[TwoGroupCells, bool]:
        """Return the cells with groups and strata ordered by content, and whether the groups were exchanged."""
        straight, swapped = self._keys(self.counts), self._keys(self.counts[::-1])
        is_swapped = sorted(swapped) < sorted(straight)
        keys = swapped if is_swapped else straight
        counts = self.counts[::-1] if is_swapped else self.counts
        order = sorted(range(len(keys)), key=keys.__getitem__)
        rank = np.empty(len(keys), dtype=np.int64)
        rank[order] = np.arange(len(keys))
        strata = rank[self.strata]
        cells = np.argsort(strata, kind="stable")
        return (
            TwoGroupCells(
                self.values[cells],
                self.weights[cells],
                strata[cells],
                counts[:, cells],
                self.shares[order],
            ),
            is_swapped,
        )

    def _keys(self, counts: IntArray) -> list[tuple[int, bytes]]:
        """Return a sort key of each stratum's contents."""
        parts = [slice(a, b) for a, b in pairwise([*self.start.tolist(), self.values.size])]
        return [
            (
                int(counts[0, part].sum()),
                _digest(self.values[part], self.weights[part], self.shares[[s]], counts[:, part]),
            )
            for s, part in enumerate(parts)
        ]

    # Draws ----------------------------------------------------------------------------------------------------

    def draw(self, number: int) -> npt.NDArray[np.float32]:
        """Return sorted statistics of random assignments; a larger `number` keeps the earlier draws."""
        cells = self.merged()
        key = cells.key()
        take, total = cells.people.min(axis=0).astype(np.int64), cells.sums.sum(axis=0)
        is_rest = (cells.people[0] > cells.people[1])[:, np.newaxis]
        assign = cells._shuffles if cells.shuffling_is_faster else cells._hypergeometric
        batch = max(1, min(number, _NUMBERS // total.size))
        parts = [cells.statistics(np.where(is_rest, total - sums, sums)) for sums in assign(take, key, number, batch)]
        return np.sort(np.concatenate(parts))

    def key(self, *more: npt.NDArray[np.generic]) -> int:
        """Return a seed computed from the pooled values, the group sizes, and the arrays in `more`."""
        pooled = self.counts.sum(axis=0)
        return int.from_bytes(_digest(self.values, self.weights, self.shares, self.people, pooled, *more))

    @property
    def shuffling_is_faster(self) -> bool:
        """Whether drawing people one by one is faster than drawing a number for each cell."""
        return bool(self.people.min(axis=0).sum() <= _CELL * self.values.size)

    def _shuffles(self, take: IntArray, key: int, number: int, batch: int) -> Iterator[FloatArray]:
        """Yield the sums (B, S, Q) over `take` people of each stratum, drawn one by one."""
        from evenhand.stats.permutation.kernels import shuffle_sums

        people = np.repeat(np.arange(self.values.size), self.counts.sum(axis=0))
        start = np.append(0, np.cumsum(self.people.sum(axis=0))).astype(np.int64)
        parts = start, np.arange(take.size), take[np.newaxis]
        for first in range(0, number, batch):
            sums = np.zeros((min(batch, number - first), *self.sums.shape[1:]))
            shuffle_sums(np.uint64(key), first, people, parts, self.columns, sums)
            yield sums

    def _hypergeometric(self, take: IntArray, key: int, number: int, batch: int) -> Iterator[FloatArray]:
        """Yield the sums (B, S, Q) over `take` people of each stratum, from a number drawn for each cell."""
        streams = np.random.SeedSequence(key).spawn(take.size)
        rngs = [np.random.Generator(np.random.PCG64(stream)) for stream in streams]
        pooled, ends = self.counts.sum(axis=0), [*self.start.tolist(), self.values.size]
        for first in range(0, number, batch):
            sums = np.empty((min(batch, number - first), *self.sums.shape[1:]))
            for s, (rng, part) in enumerate(zip(rngs, map(slice, ends, ends[1:]), strict=False)):
                drawn = rng.multivariate_hypergeometric(pooled[part], take[s], size=len(sums), method="marginals")
                sums[:, s] = drawn @ self.columns[part]
            yield sums

    def merged(self) -> TwoGroupCells:
        """Return the cells, merging nearly equal values at their mean if there are too many cells to draw."""
        if min(self.people.min(axis=0).sum(), _CELL * self.values.size) <= _MOST_WORK:
            return self
        mean, spread = self.centre
        grid = np.column_stack(
            [self.strata, np.rint(np.column_stack([(self.values - mean) / spread, self.weights]) / _GRID)]
        )
        _, cell = np.unique(grid, axis=0, return_inverse=True)
        pooled = self.counts.sum(axis=0).astype(np.float64)
        size = np.bincount(cell, weights=pooled)
        weight = np.bincount(cell, weights=pooled * self.weights) / size
        value = np.bincount(cell, weights=pooled * self.weights * self.values) / size / weight
        counts = np.stack([np.bincount(cell, weights=each).astype(np.int64) for each in self.counts])
        strata = np.zeros(size.size, dtype=np.int64)
        strata[cell] = self.strata
        return replace(self, values=value, weights=weight, counts=counts, strata=strata)


def shape_of(
    second: FloatArray, third: FloatArray, fourth: FloatArray, n_a: FloatArray, n_b: FloatArray
) -> tuple[float, float]:
    """Return the skewness and fourth standardised moment of `TwoGroupCells.shape` from moments by stratum."""
    variance = float((second * (1 / n_a + 1 / n_b)).sum())
    if variance <= 0:
        return 0.0, 0.0
    return (
        float((third * (1 / n_a**2 - 1 / n_b**2)).sum() / variance**1.5),
        float((fourth * (1 / n_a**3 + 1 / n_b**3)).sum() / variance**2),
    )


def two_group_cells(
    values: ArrayLike,
    counts_a: ArrayLike,
    counts_b: ArrayLike,
    weights: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    shares: ArrayLike | None = None,
) -> TwoGroupCells | None:
    """Return the cells of two groups in strata with people of both groups; None without such strata."""
    value = np.asarray(values, dtype=np.float64).ravel()
    counts = np.stack([_column(array, value.size, np.int64) for array in (counts_a, counts_b)])
    weight = np.ones(value.size) if weights is None else _column(weights, value.size, np.float64)
    stratum = np.zeros(value.size, dtype=np.int64) if strata is None else _column(strata, value.size, np.int64)
    used = counts.sum(axis=0) > 0
    if counts.min(initial=0) < 0 or not (np.isfinite(value[used]).all() and (weight[used] > 0).all()):
        raise EvenhandError("Values must be finite, weights positive, and counts not negative.")
    people = np.stack([np.bincount(stratum, weights=each) for each in counts])
    shared = (people > 0).all(axis=0)
    mass = np.bincount(stratum, weights=counts.sum(axis=0) * weight)
    share = np.where(shared, mass if shares is None else np.asarray(shares, dtype=np.float64), 0.0)
    used &= share[stratum] > 0
    if not used.any():
        return None
    number = np.cumsum(share > 0) - 1
    mean_weight = float(np.average(weight[used], weights=counts[:, used].sum(axis=0)))
    keys = number[stratum[used]], _rounded(value[used]), _rounded(weight[used] / mean_weight)
    first, cell = _distinct(*keys)
    return TwoGroupCells(
        values=keys[1][first],
        weights=keys[2][first],
        strata=keys[0][first].astype(np.int64),
        counts=np.stack([np.bincount(cell, weights=each[used]).astype(np.int64) for each in counts]),
        shares=share[share > 0] / share.sum(),
    )


def _distinct(*keys: npt.NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Return one row of each distinct combination, in order, and the combination's number for every row."""
    order = np.lexsort(keys[::-1])
    is_new = np.zeros(order.size, dtype=np.bool_)
    is_new[0] = True
    for key in keys:
        is_new[1:] |= key[order[1:]] != key[order[:-1]]
    number = np.empty(order.size, dtype=np.int64)
    number[order] = np.cumsum(is_new) - 1
    return order[is_new], number


def _column(array: ArrayLike, size: int, kind: npt.DTypeLike) -> npt.NDArray[np.generic]:
    column = np.asarray(array).astype(kind).ravel()
    if column.size != size:
        raise EvenhandError("There must be one number per cell, {size}; got {number}.", size=size, number=column.size)
    return column


def _rounded(values: FloatArray) -> FloatArray:
    """Return values rounded to 12 digits of their range, since later digits depend on the order of summation."""
    largest = float(np.ptp(values) or np.abs(values).max())
    digits = _DIGITS - (int(np.floor(np.log10(largest))) + 1 if largest > 0 else 0)
    scale = 10.0**digits if abs(digits) < 300 else 1.0
    return np.asarray(np.rint(values * scale) / scale + 0.0)


def _digest(*arrays: npt.NDArray[np.generic]) -> bytes:
    digest = hashlib.blake2b(digest_size=8)
    for array in arrays:
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.digest()
