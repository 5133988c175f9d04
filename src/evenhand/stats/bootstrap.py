"""The bootstrap of a table that has been reduced to cells.

Rows of one cell are alike but for the values that were summed, so a resample of N rows is one multinomial
draw of the cells' counts and one normal draw of each cell's sums. The cost does not depend on N.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.random import Generator

from evenhand.errors import EvenhandError, require_at_least
from evenhand.stats.intervals import normal_quantile, tail_share
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval
from evenhand.stats.workers import thread_count

Statistic: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""statistic(counts (..., C), sums (..., C, K)) -> (..., T): it must work for any leading axes."""

_CHUNK_NUMBERS = 1_000_000
_CACHED_NUMBERS = 40_000
_MOST_THREADS = 8  # each holds a part
_MOST_UNDEFINED = 0.05


@dataclass(frozen=True)
class CellMoments:
    """What the bootstrap needs to know of C cells with K summed row values.

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
            raise EvenhandError(f"`n` must be one whole number per cell; got {self.n.dtype} of shape {self.n.shape}.")
        if self.n.min() < 0:
            raise EvenhandError(f"`n` must not be negative; got {self.n.min()}.")
        if self.first.ndim != 2 or len(self.first) != len(self.n):
            raise EvenhandError(f"`first` must have the shape ({len(self.n)}, values); got {self.first.shape}.")
        if self.second.shape != (*self.first.shape, self.first.shape[1]):
            raise EvenhandError(
                f"`second` must have the shape {(*self.first.shape, self.first.shape[1])}; got {self.second.shape}."
            )

    @classmethod
    def from_counts(cls, n: IntArray | list[int]) -> CellMoments:
        """Return cells that hold counts only (K = 0)."""
        counts = np.asarray(n, dtype=np.int64)
        return cls(counts, np.zeros((counts.size, 0)), np.zeros((counts.size, 0, 0)))


@dataclass(frozen=True)
class Draws:
    """A bootstrap's raw material: R draws of T statistics, from which intervals of any confidence follow.

    Draws that are nan are left out; a statistic with more than 5 % of them has no interval. Limits are order
    statistics, the same number of draws from either end, so infinite draws do no harm and the interval of
    -x mirrors that of x.

    Only BCa needs the acceleration, which costs C evaluations of the statistics over C cells: it is computed
    when it is first asked for, once.

    Attributes
    ----------
    estimate
        (T,) the statistics of the sample.
    values
        (R, T) the statistics of the resamples.
    accelerate
        Computes (T,) the skewness terms of BCa; without it they are 0.

    References
    ----------
    B. Efron (1987), Better bootstrap confidence intervals, Journal of the American Statistical Association
    82. A. C. Davison and D. V. Hinkley (1997), Bootstrap Methods and their Application.

    Examples
    --------
    >>> def share(counts, sums):
    ...     return counts[..., :1] / counts.sum(axis=-1, keepdims=True)
    >>> draws = resample(CellMoments.from_counts([20, 80]), share, rng=np.random.default_rng(0))
    >>> draws.percentile().low, draws.percentile().high
    (array([0.12]), array([0.28]))
    """

    estimate: FloatArray
    values: FloatArray
    accelerate: Callable[[], FloatArray] | None = None

    @cached_property
    def acceleration(self) -> FloatArray:
        """(T,) the skewness term of BCa; 0 where it is unknown."""
        return np.zeros_like(self.estimate) if self.accelerate is None else self.accelerate()

    def part(self, columns: IntArray | slice) -> Draws:
        """Return the draws of some of the statistics; the acceleration is still computed once, for all of them.

        Examples
        --------
        >>> draws = Draws(np.zeros(3), np.arange(6.0).reshape(2, 3), lambda: np.array([0.1, 0.2, 0.3]))
        >>> draws.part(np.array([2, 0])).acceleration
        array([0.3, 0.1])
        """
        return Draws(self.estimate[columns], self.values[:, columns], lambda: self.acceleration[columns])

    @cached_property
    def undefined(self) -> IntArray:
        """(T,) how many draws of each statistic are nan."""
        number = np.zeros(self.estimate.shape, dtype=np.int64)
        some = np.isnan(self.values.max(axis=0, initial=-np.inf))
        if some.any():
            number[some] = np.isnan(self.values[:, some]).sum(axis=0)
        return number

    @cached_property
    def _ordered(self) -> FloatArray:
        """The draws of each statistic by size, nan last: sorted once, for intervals of any confidence."""
        return np.sort(self.values, axis=0)

    def percentile(self, confidence: float = 0.95) -> Interval:
        """Return the quantiles of the draws."""
        tail = np.full(self.estimate.shape, tail_share(confidence))
        return self._between(tail, tail)

    def basic(self, confidence: float = 0.95) -> Interval:
        """Return the percentile interval mirrored at the estimate."""
        low, high = self.percentile(confidence)
        with np.errstate(all="ignore"):
            return Interval(2.0 * self.estimate - high, 2.0 * self.estimate - low)

    def bca(self, confidence: float = 0.95) -> Interval:
        """Return the bias-corrected and accelerated interval; nan when every draw lies on one side."""
        from scipy.special import ndtr

        with np.errstate(all="ignore"):
            bias = self._bias()
            tails = []
            for sign in (-1.0, 1.0):
                shifted = bias + sign * normal_quantile(confidence)
                room = 1.0 - self.acceleration * shifted
                moved = np.where(room > 0, bias + shifted / room, np.copysign(np.inf, shifted))
                tails.append(ndtr(-sign * moved))
            unknown = ~np.isfinite(bias)
        low, high = self._between(*(np.where(unknown, np.nan, tail) for tail in tails))
        return Interval(low, high)

    def p_value(self, method: Literal["percentile", "basic", "bca"] = "bca") -> FloatArray:
        """Return (T,) the smallest alpha at which an interval of this kind excludes 0, to the fineness of the draws.

        With z_0 the normal quantile of the share of draws below 0 (for the basic interval: above twice the estimate;
        ties count half), b BCa's bias and a its acceleration, u = z_0 - b: BCa's lower limit is 0 at the normal
        quantile b - u / (1 + a u). At least 2 / (draws + 1); nan where there is no interval.

        Examples
        --------
        >>> Draws(np.array([1.0]), np.arange(-1.0, 3.1, 0.01)[:, None]).p_value("percentile").round(2)
        array([0.49])
        """
        from scipy.special import ndtr, ndtri

        with np.errstate(all="ignore"):
            defined = len(self.values) - self.undefined
            mirror = 2.0 * self.estimate if method == "basic" else np.zeros_like(self.estimate)
            below = (self._fewer(mirror, "left") + self._fewer(mirror, "right")) / (2.0 * defined)
            share = np.clip(below, 1.0 / (defined + 1), 1.0 - 1.0 / (defined + 1))
            z = ndtri(share)
            if method == "bca":
                bias = self._bias()
                away = z - bias
                z = away / (1.0 + self.acceleration * away) - bias
            p = np.maximum(2.0 * ndtr(-np.abs(z)), 2.0 / (defined + 1))
        return np.asarray(np.where(self._usable, np.minimum(p, 1.0), np.nan))

    def stderr(self) -> FloatArray:
        """Return (T,) the standard deviation of the draws; nan when some are infinite or too many nan."""
        with np.errstate(all="ignore"):
            defined = len(self.values) - self.undefined
            mean = self._without_nan(self.values).sum(axis=0) / defined
            away = self._without_nan(self.values - mean)
            away *= away
            spread = np.sqrt(away.sum(axis=0) / (defined - 1))
            return np.where(self._usable & np.isfinite(spread), spread, np.nan)

    def _without_nan(self, values: FloatArray) -> FloatArray:
        """Return values with 0 where the draw is nan."""
        return np.where(np.isnan(self.values), 0.0, values) if self.undefined.any() else values

    def max_t(self, confidence: float = 0.95) -> Interval:
        """Return intervals of all T statistics that hold jointly: estimate ± q stderr.

        q is the quantile of the largest abs(draw - estimate) / stderr over the statistics. A statistic whose
        standard error is 0 or undefined has no interval and takes no part in the maximum.

        References
        ----------
        P. H. Westfall and S. S. Young (1993), Resampling-Based Multiple Testing.
        """
        spread = self.stderr()
        taking_part = (spread > 0) & (spread > self.rounding()) & np.isfinite(self.estimate)
        if not taking_part.any():
            nothing = np.full(self.estimate.shape, np.nan)
            return Interval(nothing, nothing.copy())
        distance = np.abs(self.values[:, taking_part] - self.estimate[taking_part]) / spread[taking_part]
        largest = np.fmax.reduce(distance, axis=1)
        largest = np.sort(largest[~np.isnan(largest)])
        beyond = _rank(2.0 * tail_share(confidence), largest.size)
        critical = largest[largest.size - beyond]
        half = np.where(taking_part, critical * spread, np.nan)
        return Interval(self.estimate - half, self.estimate + half)

    def _bias(self) -> FloatArray:
        """Return (T,) BCa's bias: the normal quantile of the share of draws below the estimate, ties counting half."""
        from scipy.special import ndtri

        defined = len(self.values) - self.undefined
        tied = (self.values == self.estimate) | (np.abs(self.values - self.estimate) <= self.rounding())
        below = (self.values < self.estimate) & ~tied
        return np.asarray(ndtri((below.sum(axis=0) + 0.5 * tied.sum(axis=0)) / defined))

    def _between(self, below: FloatArray, above: FloatArray) -> Interval:
        """Return the draws that leave the given shares of the defined draws below and above."""
        defined = np.maximum(len(self.values) - self.undefined, 1)
        usable = self._usable & ~np.isnan(below) & ~np.isnan(above)
        low_at = _rank(np.where(usable, below, 0.5), defined) - 1
        high_at = defined - _rank(np.where(usable, above, 0.5), defined)
        every = np.arange(usable.size)
        return Interval(*(np.where(usable, self._ordered[at, every], np.nan) for at in (low_at, high_at)))

    def _fewer(self, limit: FloatArray, side: Literal["left", "right"]) -> IntArray:
        """Return (T,) how many draws lie below a limit of each statistic; on the right side, at it too."""
        return np.array([np.searchsorted(*each, side) for each in zip(self._ordered.T, limit, strict=True)])

    @cached_property
    def _usable(self) -> BoolArray:
        few = self.undefined <= _MOST_UNDEFINED * len(self.values)
        return np.asarray(few & ~np.isnan(self.estimate))

    def rounding(self) -> FloatArray:
        """Return (T,) the distance below which two values differ by the order of additions only."""
        ends = self.values.max(axis=0, initial=0.0), -self.values.min(axis=0, initial=0.0)
        size = np.maximum(np.abs(self.estimate), np.maximum(*ends))
        odd = ~np.isfinite(size)
        if odd.any():
            both = np.abs(np.vstack([self.estimate, self.values])[:, odd])
            size[odd] = np.where(np.isfinite(both), both, 0.0).max(axis=0)
        return np.asarray(1e-13 * size)


def resample(cells: CellMoments, statistic: Statistic, *, resamples: int = 10_000, rng: Generator) -> Draws:
    """Resample the rows behind the cells and return the statistic of every resample.

    Counts are multinomial(N, n/N). Given its count m, a cell's sums are m mean + sqrt(m) L z with L L' the
    covariance of the row values within the cell and z standard normal: the first two moments of m rows drawn
    from the cell. Without the second term the interval of a mean score is too short.

    Parameters
    ----------
    cells
        Counts, sums and sums of products per cell.
    statistic
        Maps counts (..., C) and sums (..., C, K) to (..., T); nan where undefined.
    resamples
        Number of resamples R.
    rng
        Source of randomness. The result depends on it, on the cells and on R only.

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
        values = np.empty((estimate.size, resamples)).T  # each statistic's draws side by side: they are sorted
        start = 0
        for counts, sums in _draw_cells(cells, resamples, rng):
            values[start : start + len(counts)] = statistic(counts, sums)
            start += len(counts)
    return Draws(estimate, values, partial(_acceleration, cells, statistic, estimate))


def _draw_cells(cells: CellMoments, resamples: int, rng: Generator) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield counts (R, C) and sums (R, C, K) of resamples, some at a time; how many at a time depends on C and K.

    The first part is drawn from `rng` and every other from a child of it, so that threads can draw ahead of what is
    used, any number of them with the same result.
    """
    step = _chunk(cells) if cells.first.size else max(1, _CACHED_NUMBERS // cells.n.size)
    sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
    streams = [rng, *(rng.spawn(len(sizes) - 1) if len(sizes) > 1 else ())]
    draw = partial(_draw_part, cells, *_mean_and_factor(cells))
    threads = min(thread_count(None), len(sizes), _MOST_THREADS)
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[Future[tuple[FloatArray, FloatArray]]] = deque()
        for size, stream in zip(sizes, streams, strict=True):
            ahead.append(pool.submit(draw, size, stream))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _draw_part(
    cells: CellMoments, mean: FloatArray, factor: FloatArray, size: int, rng: Generator
) -> tuple[FloatArray, FloatArray]:
    """Return counts (size, C) and sums (size, C, K) of resamples."""
    total = int(cells.n.sum())
    counts = rng.multinomial(total, cells.n / max(total, 1), size=size).astype(np.float64)
    return counts, _draw_sums(counts, mean, factor, rng)


def _draw_sums(counts: FloatArray, mean: FloatArray, factor: FloatArray, rng: Generator) -> FloatArray:
    """Return sums (R, C, K) of `counts` rows drawn from each cell, with normal spread within cells."""
    sums = mean.T[:, np.newaxis, :] * counts  # (K, R, C): each row value on its own is contiguous, and so faster
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

    A Cholesky factorisation that leaves out what does not vary: a pivot that is only rounding becomes 0 and
    so does its column.
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
        rest = covariance[:, k:, k] - (factor[:, k:, :k] * factor[:, k : k + 1, :k]).sum(axis=-1)
        factor[:, k:, k] = np.where(varies[:, np.newaxis], rest / root[:, np.newaxis], 0.0)
    return mean, factor


def _acceleration(cells: CellMoments, statistic: Statistic, estimate: FloatArray) -> FloatArray:
    """Return (T,) the acceleration sum u³ / (6 (sum u²)^1.5) of the rows' jackknife influences u.

    The n_c rows of cell c have influences with mean d_c and variance v_c (v_c by removing a row one factor
    column off the mean, either way), so sum u² = sum n_c (d_c² + v_c), sum u³ = sum n_c (d_c³ + 3 d_c v_c).
    With e_c = what leaving out such a row adds to the estimate and m the mean of the e_c over all rows,
    d_c = m - e_c; the sums of the powers of e_c are gathered chunk by chunk, and centred at the end.
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
    """Return the statistic without one average row of each cell, and the variance over the cell's rows."""
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
    """Return how many resamples to hold at once; it depends on C and K only, so results do too."""
    c, k = int(cells.first.shape[0]), int(cells.first.shape[1])
    return max(1, _CHUNK_NUMBERS // (c * (k + 2)))


def _rank(share: FloatArray | float, size: IntArray | int) -> IntArray:
    """Return which order statistic leaves `share` of `size` draws at or beyond it, from 1 to `size`."""
    rank = np.ceil(np.round(np.asarray(share * size), 9))
    return np.minimum(np.maximum(rank, 1), size).astype(np.int64)  # np.clip takes several times as long


def named_rng(seed: int, *names: str) -> Generator:
    """Return the random generator of a part of an audit: a function of the seed and of the part's names alone.

    A group or model more, or another order of them, leaves the numbers of all others as they are. The entropy is the
    seed followed by the eight words of the SHA-256 of the names, joined by the ASCII unit separator.

    Parameters
    ----------
    seed
        The seed of the audit, not negative.
    names
        What the part is called, from the general to the particular: the model, the grouping, the stratum.

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
