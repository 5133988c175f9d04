"""The bootstrap of a table reduced to cells.

Rows of one cell differ only in the summed values, so a resample of N rows is one multinomial
draw of the cells' counts and one normal draw of each cell's sums. The cost does not depend on N.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError, require_at_least
from evenhand.stats.draws import Draws
from evenhand.stats.types import FloatArray, IntArray
from evenhand.stats.workers import thread_count

Statistic: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""statistic(counts (..., C), sums (..., C, K)) -> (..., T), for any leading axes."""

_CHUNK_NUMBERS = 1_000_000
_CACHED_NUMBERS = 40_000
_MOST_THREADS = 8  # each may have two parts at once


@dataclass(frozen=True)
class CellMoments:
    """The moments of C cells with K summed row values, as required by the bootstrap.

    Attributes
    ----------
    n
        (C,) rows per cell.
    first
        (C, K) sums of the row values; K may be 0.
    second
        (C, K, K) sums of the products of the row values.

    Examples
    --------
    >>> CellMoments.from_counts([3, 7]).first.shape
    (2, 0)
    """

    n: IntArray
    first: FloatArray
    second: FloatArray

    def __post_init__(self) -> None:
        if self.n.ndim != 1 or self.n.size == 0 or self.n.dtype.kind not in "iu":
            raise EvenhandError(
                "`n` must be one whole number per cell; got {dtype} of shape {shape}.",
                dtype=self.n.dtype,
                shape=self.n.shape,
            )
        if self.n.min() < 0:
            raise EvenhandError("`n` must not be negative; got {min}.", min=self.n.min())
        if self.first.ndim != 2 or len(self.first) != len(self.n):
            raise EvenhandError(
                "`first` must have the shape ({number}, values); got {shape}.",
                number=len(self.n),
                shape=self.first.shape,
            )
        if self.second.shape != (*self.first.shape, self.first.shape[1]):
            raise EvenhandError(
                "`second` must have the shape {value}; got {shape}.",
                value=(*self.first.shape, self.first.shape[1]),
                shape=self.second.shape,
            )

    @classmethod
    def from_counts(cls, n: IntArray | list[int]) -> CellMoments:
        """Return cells with counts only (K = 0)."""
        counts = np.asarray(n, dtype=np.int64)
        return cls(counts, np.zeros((counts.size, 0)), np.zeros((counts.size, 0, 0)))


def resample(cells: CellMoments, statistic: Statistic, *, resamples: int = 10_000, rng: Generator) -> Draws:
    """Return the statistic of bootstrap resamples of the rows behind the cells.

    Counts are multinomial(N, n/N). Given its count m, a cell's sums are m mean + sqrt(m) L z with L L' the
    covariance of the row values within the cell and z standard normal; this matches the first two moments of m rows
    drawn from the cell. Without the second term the interval of a mean score is too short.

    Parameters
    ----------
    cells
        Counts, sums and sums of products per cell.
    statistic
        Maps counts (..., C) and sums (..., C, K) to (..., T); nan where undefined.
    resamples
        Number of resamples R.
    rng
        Source of randomness. The result depends only on it, on the cells and on R.

    Returns
    -------
    Draws
        The R draws of T statistics.

    References
    ----------
    B. Efron (1979), Bootstrap methods: another look at the jackknife, Annals of Statistics 7.

    Examples
    --------
    >>> def mean(counts, sums):
    ...     return sums.sum(axis=-2) / counts.sum(axis=-1, keepdims=True)
    >>> cells = CellMoments(np.array([100]), np.array([[50.0]]), np.array([[[34.0]]]))
    >>> draws = resample(cells, mean, rng=np.random.default_rng(0))
    >>> draws.estimate, draws.stderr().round(3)
    (array([0.5]), array([0.03]))
    """
    require_at_least("resamples", resamples, 2)
    with np.errstate(all="ignore"):
        estimate = statistic(cells.n.astype(np.float64), cells.first)
        values = np.empty((estimate.size, resamples)).T  # each statistic's draws are contiguous
        start = 0
        for counts, sums in _draw_cells(cells, resamples, rng):
            values[start : start + len(counts)] = statistic(counts, sums)
            start += len(counts)
    return Draws(estimate, values, partial(_acceleration, cells, statistic, estimate))


def _draw_cells(cells: CellMoments, resamples: int, rng: Generator) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield counts (R, C) and sums (R, C, K) of resamples in blocks whose size depends on C and K.

    The first block is drawn from `rng` and every other block from a child of it, so threads can draw ahead and their
    number does not change the result.
    """
    step = _chunk(cells) if cells.first.size else max(1, _CACHED_NUMBERS // cells.n.size)
    sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
    streams = [rng, *(rng.spawn(len(sizes) - 1) if len(sizes) > 1 else ())]
    draw = partial(_draw_part, cells, *_mean_and_factor(cells))
    parts = list(zip(sizes, streams, strict=True))
    threads = min(thread_count(None), _MOST_THREADS)
    with ThreadPoolExecutor(max(1, threads - 1)) as pool:  # this thread draws, too

        def submit(start: int) -> list[Future[tuple[FloatArray, FloatArray]]]:
            return [pool.submit(draw, *part) for part in parts[start + 1 : start + threads]]

        ahead = submit(0)
        for start in range(0, len(parts), threads):
            first_block = draw(*parts[start])
            pending, ahead = ahead, submit(start + threads)
            yield first_block
            while pending:
                yield pending.pop(0).result()


def _draw_part(
    cells: CellMoments, mean: FloatArray, factor: FloatArray, size: int, rng: Generator
) -> tuple[FloatArray, FloatArray]:
    """Return counts (size, C) and sums (size, C, K) of resamples."""
    total = int(cells.n.sum())
    counts = rng.multinomial(total, cells.n / max(total, 1), size=size).astype(np.float64)
    return counts, _draw_sums(counts, mean, factor, rng)


def _draw_sums(counts: FloatArray, mean: FloatArray, factor: FloatArray, rng: Generator) -> FloatArray:
    """Return sums (R, C, K) of `counts` rows drawn from each cell, with normal variation within cells."""
    sums = mean.T[:, np.newaxis, :] * counts  # (K, R, C): contiguous row values are faster
    root = np.sqrt(counts)
    for column in range(mean.shape[1]):
        varied = np.flatnonzero(factor[:, column, column] > 0)
        if varied.size:
            columns = varied if varied.size < len(mean) else slice(None)
            scaled = root[:, columns] * rng.standard_normal((len(counts), varied.size))
            for row in range(column, mean.shape[1]):
                sums[row][:, columns] += scaled * factor[columns, row, column]
    return np.moveaxis(sums, 0, -1)


def _mean_and_factor(cells: CellMoments) -> tuple[FloatArray, FloatArray]:
    """Return means (C, K) and lower triangular factors (C, K, K) of the covariances within cells.

    This is a Cholesky factorisation without the constant values: a pivot at rounding level becomes 0, and so does its
    column.
    """
    n = np.maximum(cells.n, 1).astype(np.float64)
    mean = cells.first / n[:, np.newaxis]
    square = cells.second / n[:, np.newaxis, np.newaxis]
    covariance = square - mean[:, :, np.newaxis] * mean[:, np.newaxis, :]
    factor = np.zeros_like(covariance)
    for k in range(mean.shape[1]):
        pivot = covariance[:, k, k] - (factor[:, k, :k] ** 2).sum(axis=-1)
        least = np.maximum(64 * np.finfo(np.float64).eps * square[:, k, k], 1e-10 * covariance[:, k, k])
        varies = (pivot > least) & (cells.n > 1)
        root = np.sqrt(np.where(varies, pivot, 1.0))
        column = covariance[:, k:, k] - (factor[:, k:, :k] * factor[:, k : k + 1, :k]).sum(axis=-1)
        factor[:, k:, k] = np.where(varies[:, np.newaxis], column / root[:, np.newaxis], 0.0)
    return mean, factor


def _acceleration(cells: CellMoments, statistic: Statistic, estimate: FloatArray) -> FloatArray:
    """Return (T,) the BCa acceleration sum u³ / (6 (sum u²)^1.5) of the rows' jackknife influences u.

    The n_c rows of cell c have influences with mean d_c and variance v_c (v_c by removing a row one factor column off
    the mean, in either direction), so sum u² = sum n_c (d_c² + v_c), sum u³ = sum n_c (d_c³ + 3 d_c v_c). With e_c the
    change in the estimate from removing such a row and m the mean of the e_c over all rows, d_c = m - e_c; the sums of
    the powers of e_c are computed chunk by chunk, and centred at the end.
    """
    mean, factor = _mean_and_factor(cells)
    present = np.flatnonzero(cells.n > 0)
    step = max(1, min(_chunk(cells), _CHUNK_NUMBERS // max(4 * estimate.size, 1)))
    sums = np.zeros((5, estimate.size))
    with np.errstate(all="ignore"):
        for start in range(0, present.size, step):
            chosen = present[start : start + step]
            left_out, spread = _leave_one_out(cells, statistic, mean, factor, chosen)
            added = left_out - estimate
            square = added * added
            for k, power in enumerate((added, square, added * square, spread, added * spread)):
                sums[k] += np.einsum("c,ct->t", cells.n[chosen].astype(np.float64), power)
        first, second, third, within, mixed = sums
        total = float(cells.n.sum())
        m = first / total
        squares = second - total * m**2 + within
        cubes = 3 * m * second - 2 * total * m**3 - third + 3 * (m * within - mixed)
        acceleration = cubes / (6.0 * squares**1.5)
    return np.where(np.isfinite(acceleration), acceleration, 0.0)


def _leave_one_out(
    cells: CellMoments, statistic: Statistic, mean: FloatArray, factor: FloatArray, chosen: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the statistic without one average row of each cell, and its variance over the cell's rows."""
    row = np.arange(chosen.size)
    counts = np.repeat(cells.n[np.newaxis, :].astype(np.float64), chosen.size, axis=0)
    counts[row, chosen] -= 1.0
    sums = np.repeat(cells.first[np.newaxis, :, :], chosen.size, axis=0)
    sums[row, chosen] -= mean[chosen]
    left_out = statistic(counts, sums)
    spread = np.zeros_like(left_out)
    for column in np.flatnonzero(np.diagonal(factor[chosen], axis1=1, axis2=2).any(axis=0)):
        sums[row, chosen] += factor[chosen, :, column]
        upper = statistic(counts, sums)
        sums[row, chosen] -= 2.0 * factor[chosen, :, column]
        lower = statistic(counts, sums)
        sums[row, chosen] += factor[chosen, :, column]
        spread += ((upper - lower) / 2.0) ** 2
    return left_out, spread


def _chunk(cells: CellMoments) -> int:
    """Return the number of resamples to process at once; it depends on C and K only, and so do results."""
    c, k = int(cells.first.shape[0]), int(cells.first.shape[1])
    return max(1, _CHUNK_NUMBERS // (c * (k + 2)))


def data_rng(purpose: int, *data: ArrayLike) -> Generator:
    """Return a random generator determined by data alone, without names or a seed.

    Use it for draws that only approximate a number, so that equal data always give equal results.

    Parameters
    ----------
    purpose
        The number of the approximation, so that several approximations of the same data are independent.
    data
        Arrays of numbers.

    Examples
    --------
    >>> data_rng(0, [1, 2]).integers(100, size=3)
    array([73, 37, 74])
    """
    digest = hashlib.sha256()
    for array in data:
        numbers = np.ascontiguousarray(array, dtype="<f8")
        digest.update(np.array(numbers.shape, dtype="<i8").tobytes() + numbers.tobytes())
    words = np.frombuffer(digest.digest(), dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence([purpose, *words]))


def named_rng(seed: int, *names: str) -> Generator:
    """Return the random generator of a part of an audit, determined by the seed and the part's names.

    Adding a group or model, or reordering them, leaves all other groups' and models' numbers unchanged. The entropy is
    the seed followed by the eight words of the SHA-256 of the names, joined by the ASCII unit separator.

    Parameters
    ----------
    seed
        The seed of the audit, not negative.
    names
        The names of the part, from general to specific: the model, the grouping, the stratum.

    Examples
    --------
    >>> named_rng(0, "model", "race").integers(100, size=3)
    array([36, 20, 43])
    >>> named_rng(0, "model", "sex").integers(100, size=3)
    array([ 9, 15, 57])
    """
    digest = hashlib.sha256("\x1f".join(names).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))
