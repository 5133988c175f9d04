"""Bootstrap draws of several statistics, and intervals computed from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from evenhand.stats.intervals import normal_quantile, tail_share
from evenhand.stats.types import BoolArray, FloatArray, IntArray, Interval

_MOST_UNDEFINED = 0.05
_MANY = 4_000  # with at least this many draws of a statistic, only its tails are sorted
_SAMPLE = 1_000  # draws that estimate where the tails begin
_TAIL = 0.06  # share of draws in a tail: usually more than limits of 95 % need


@dataclass(frozen=True)
class Draws:
    """R bootstrap draws of T statistics, with intervals of any confidence.

    Draws that are nan are ignored; a statistic with more than 5 % nan draws has no interval. Limits are order
    statistics at the same number of draws from either end, so infinite draws are harmless and the interval of -x
    mirrors the interval of x.

    Only BCa needs the acceleration, which requires C evaluations of the statistics over C cells; it is computed once,
    on first use.

    Attributes
    ----------
    estimate
        (T,) the statistics of the sample.
    values
        (R, T) the statistics of the resamples.
    accelerate
        Function that computes (T,) the skewness terms of BCa; None for 0.

    References
    ----------
    B. Efron (1987), Better bootstrap confidence intervals, Journal of the American Statistical Association
    82. A. C. Davison and D. V. Hinkley (1997), Bootstrap Methods and their Application.

    Examples
    --------
    >>> from evenhand.stats.bootstrap import CellMoments, resample
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
        """(T,) the skewness term of BCa; 0 if it is unknown."""
        return np.zeros_like(self.estimate) if self.accelerate is None else self.accelerate()

    def part(self, columns: IntArray | slice) -> Draws:
        """Return the draws of some statistics; the acceleration is still computed once for all statistics.

        Examples
        --------
        >>> draws = Draws(np.zeros(3), np.arange(6.0).reshape(2, 3), lambda: np.array([0.1, 0.2, 0.3]))
        >>> draws.part(np.array([2, 0])).acceleration
        array([0.3, 0.1])
        """
        return Draws(self.estimate[columns], self.values[:, columns], lambda: self.acceleration[columns])

    @cached_property
    def undefined(self) -> IntArray:
        """(T,) the number of nan draws of each statistic."""
        number = np.zeros(self.estimate.shape, dtype=np.int64)
        some = np.isnan(self.values.max(axis=0, initial=-np.inf))
        if some.any():
            number[some] = np.isnan(self.values[:, some]).sum(axis=0)
        return number

    @cached_property
    def _tails(self) -> list[tuple[FloatArray, FloatArray]]:
        """For each statistic, its lowest and its highest sorted draws; with few draws, all sorted draws twice."""
        if len(self.values) >= _MANY:
            return [_tails(*column) for column in zip(self.values.T, self.undefined, strict=True)]
        ordered, defined = np.sort(self.values, axis=0).T, len(self.values) - self.undefined
        return [(every[:size], every[:size]) for every, size in zip(ordered, defined.tolist(), strict=True)]

    def percentile(self, confidence: float = 0.95) -> Interval:
        """Return the percentile interval: quantiles of the draws."""
        tail = np.full(self.estimate.shape, tail_share(confidence))
        return self._between(tail, tail)

    def basic(self, confidence: float = 0.95) -> Interval:
        """Return the percentile interval mirrored at the estimate."""
        low, high = self.percentile(confidence)
        with np.errstate(all="ignore"):
            return Interval(2.0 * self.estimate - high, 2.0 * self.estimate - low)

    def bca(self, confidence: float = 0.95) -> Interval:
        """Return the bias-corrected and accelerated interval; nan if all draws lie on one side of the estimate."""
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
        """Return (T,) the smallest alpha at which this kind of interval excludes 0, within the draws' resolution.

        With z_0 the normal quantile of the share of draws below 0 (for the basic interval: above twice the estimate;
        ties count half), b BCa's bias and a its acceleration, u = z_0 - b: BCa's lower limit is 0 at the normal
        quantile b - u / (1 + a u). The p-value is at least 2 / (draws + 1), and nan if there is no interval.

        Examples
        --------
        >>> Draws(np.array([1.0]), np.arange(-1.0, 3.1, 0.01)[:, None]).p_value("percentile").round(2)
        array([0.49])
        """
        from scipy.special import ndtr, ndtri

        with np.errstate(all="ignore"):
            defined = len(self.values) - self.undefined
            mirror = 2.0 * self.estimate if method == "basic" else np.zeros_like(self.estimate)
            share = np.clip(self._below(mirror) / defined, 1.0 / (defined + 1), 1.0 - 1.0 / (defined + 1))
            z = ndtri(share)
            if method == "bca":
                bias = self._bias()
                away = z - bias
                z = away / (1.0 + self.acceleration * away) - bias
            p = np.maximum(2.0 * ndtr(-np.abs(z)), 2.0 / (defined + 1))
        return np.asarray(np.where(self._usable, np.minimum(p, 1.0), np.nan))

    def stderr(self) -> FloatArray:
        """Return (T,) the standard deviation of the draws; nan if a draw is infinite or too many are nan."""
        with np.errstate(all="ignore"):
            defined = len(self.values) - self.undefined
            mean = self._without_nan(self.values).sum(axis=0) / defined
            away = self._without_nan(self.values - mean)
            away *= away
            spread = np.sqrt(away.sum(axis=0) / (defined - 1))
            return np.where(self._usable & np.isfinite(spread), spread, np.nan)

    def _without_nan(self, values: FloatArray) -> FloatArray:
        """Return the values with 0 where the draw is nan."""
        return np.where(np.isnan(self.values), 0.0, values) if self.undefined.any() else values

    def _bias(self) -> FloatArray:
        """Return (T,) BCa's bias: the normal quantile of the share of draws below the estimate (ties count half)."""
        from scipy.special import ndtri

        defined = len(self.values) - self.undefined
        tied = (self.values == self.estimate) | (np.abs(self.values - self.estimate) <= self.rounding())
        below = (self.values < self.estimate) & ~tied
        return np.asarray(ndtri((below.sum(axis=0) + 0.5 * tied.sum(axis=0)) / defined))

    def _between(self, below: FloatArray, above: FloatArray) -> Interval:
        """Return the order statistics with these shares of the defined draws below and above."""
        usable = self._usable & ~np.isnan(below) & ~np.isnan(above)
        defined = np.maximum(len(self.values) - self.undefined, 1)
        shares = (np.where(usable, share, 0.5) for share in (below, above))
        ranks = zip(usable.tolist(), *(_rank(share, defined).tolist() for share in shares), strict=True)
        ends = [
            (self._ranked(statistic, low, 0), self._ranked(statistic, high, 1)) if use else (np.nan, np.nan)
            for statistic, (use, low, high) in enumerate(ranks)
        ]
        return Interval(*np.array(ends).reshape(-1, 2).T)

    def _ranked(self, statistic: int, rank: int, tail: Literal[0, 1]) -> float:
        """Return a statistic's draw at a rank, counted from below in its lower or from above in its upper tail."""
        ordered = self._tails[statistic][tail]
        if rank > ordered.size:  # beyond the sorted tail, which is rare
            ordered = _in_order(self.values[:, statistic], self.undefined[statistic])
            self._tails[statistic] = ordered, ordered
        return float(ordered[-rank] if tail else ordered[rank - 1])

    def _below(self, limit: FloatArray) -> FloatArray:
        """Return (T,) the number of draws below each statistic's limit; draws at the limit count half."""
        columns = list(zip(self.values.T, limit, strict=True))
        return np.array([np.count_nonzero(v < end) + 0.5 * np.count_nonzero(v == end) for v, end in columns])

    @cached_property
    def _usable(self) -> BoolArray:
        few = self.undefined <= _MOST_UNDEFINED * len(self.values)
        return np.asarray(few & ~np.isnan(self.estimate))

    def rounding(self) -> FloatArray:
        """Return (T,) the distance up to which values differ only by the order of additions."""
        ends = self.values.max(axis=0, initial=0.0), -self.values.min(axis=0, initial=0.0)
        size = np.maximum(np.abs(self.estimate), np.maximum(*ends))
        odd = ~np.isfinite(size)
        if odd.any():
            both = np.abs(np.vstack([self.estimate, self.values])[:, odd])
            size[odd] = np.where(np.isfinite(both), both, 0.0).max(axis=0)
        return np.asarray(1e-13 * size)


def upper_quantile(draws: FloatArray, confidence: float) -> float:
    """Return the largest draw that at least a share 1 - confidence of the draws reach, including itself.

    Draws that are nan are ignored; if all draws are nan, the quantile is nan.

    Examples
    --------
    >>> upper_quantile(np.array([np.nan, *range(1, 101)]), 0.95)
    96.0
    """
    defined = draws[~np.isnan(draws)]
    if not defined.size:
        return float("nan")
    index = defined.size - int(_rank(2.0 * tail_share(confidence), defined.size))
    return float(np.partition(defined, index)[index])


def _tails(draws: FloatArray, undefined: int) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest sorted draws of a statistic; with nan draws, all defined draws twice."""
    if undefined:
        ordered = _in_order(draws, undefined)
        return ordered, ordered
    sample = draws[:: draws.size // _SAMPLE]
    inside = int(_TAIL * sample.size)
    low, high = np.partition(sample, (inside, sample.size - 1 - inside))[[inside, -1 - inside]]
    return np.sort(draws.compress(draws <= low)), np.sort(draws.compress(draws >= high))


def _in_order(draws: FloatArray, undefined: int) -> FloatArray:
    """Return the sorted defined draws of a statistic."""
    return np.sort(draws)[: draws.size - undefined]


def _rank(share: FloatArray | float, size: IntArray | int) -> IntArray:
    """Return the rank, from 1 to `size`, of the order statistic with a share `share` of draws at or beyond it."""
    rank = np.ceil(np.round(np.asarray(share * size), 9))
    return np.minimum(np.maximum(rank, 1), size).astype(np.int64)  # np.clip takes several times as long
