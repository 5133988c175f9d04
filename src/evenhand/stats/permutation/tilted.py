"""Random assignments drawn often from the tails, with importance weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from evenhand.stats.permutation.cells import TwoGroupCells
from evenhand.stats.permutation.reference import Drawn
from evenhand.stats.types import FloatArray, IntArray

_PLAIN = 0.2  # the share of draws without a tilt: no weight is above 5
_PARTS = 24  # of a stratum, if people are drawn one by one
_WIDEST, _LARGEST = 15.0, 700.0  # log odds, and their sum
_DIRECTIONS, _LENGTHS, _NEWTON, _EXACT = 5, 2, 40, 1e-9  # iterations, and where the last ones end


class _Table(NamedTuple):
    """For one stratum, the probabilities of numbers of people by part, and of their sums; see `tilted_takes`."""

    parts: slice
    chances: FloatArray
    sums: FloatArray
    least: IntArray


@dataclass(frozen=True, eq=False)
class Tilt:
    """A draw of the smaller group of each stratum with unequal odds of being drawn.

    Attributes
    ----------
    cells
        The cells of the people.
    log_odds
        (C,) the logarithm of each cell's odds, equal within a part.
    part
        (C,) the part of each cell, numbered by stratum.
    """

    cells: TwoGroupCells
    log_odds: FloatArray
    part: IntArray

    def draw(self, key: int, number: int, columns: FloatArray) -> FloatArray:
        """Return the sums (number, S, Q) of columns (C, Q) over the drawn people."""
        from evenhand.stats.permutation.kernels import shuffle_sums, tilted_takes

        sizes = self._sizes
        takes = np.empty((number, sizes.size), dtype=np.int64)
        *keys, last = np.random.SeedSequence(key).generate_state(len(self._tables) + 1, np.uint64)
        for own, (of_stratum, chance, total, least) in zip(keys, self._tables, strict=True):
            out = np.empty((number, least.size), dtype=np.int64)
            tilted_takes(own, chance, total, least, out)
            takes[:, of_stratum] = out
        if sizes.size == self.part.size:
            parts = [table.parts for table in self._tables]
            return np.stack([takes[:, part] @ columns[self._first[part]] for part in parts], axis=1)
        order = np.argsort(self.part, kind="stable")
        people = np.repeat(order, self.cells.counts.sum(axis=0)[order])
        start = np.append(0, np.cumsum(sizes)).astype(np.int64)
        sums = np.zeros((number, len(self._tables), columns.shape[1]))
        shuffle_sums(last, 0, people, (start, self._strata, takes), columns, sums)
        return sums

    @cached_property
    def log_mean(self) -> float:
        """The logarithm of the mean of exp(sum of log odds) over draws with equal probabilities."""
        from scipy.special import gammaln

        n, take = self.cells.people.sum(axis=0), self.cells.people.min(axis=0)
        pooled = self.cells.counts.sum(axis=0)
        all_ways = gammaln(n + 1) - gammaln(take + 1) - gammaln(n - take + 1)
        exactly = np.log([table.sums[0, -1] for table in self._tables])
        chance, shift = chances(self.cells, self.log_odds)
        return float((exactly - take * shift - self.cells.by_stratum(pooled * np.log1p(-chance)) - all_ways).sum())

    @cached_property
    def _first(self) -> IntArray:
        """(parts,) the first cell of each part."""
        return np.unique(self.part, return_index=True)[1]

    @cached_property
    def _strata(self) -> IntArray:
        return self.cells.strata[self._first]

    @cached_property
    def _sizes(self) -> IntArray:
        """(parts,) the number of people of each part."""
        return np.bincount(self.part, weights=self.cells.counts.sum(axis=0)).astype(np.int64)

    @cached_property
    def _tables(self) -> list[_Table]:
        chance = chances(self.cells, self.log_odds)[0][self._first]
        takes = self.cells.people.min(axis=0).astype(np.int64).tolist()
        ends = np.searchsorted(self._strata, np.arange(len(takes) + 1)).tolist()
        return [
            _table(slice(low, high), self._sizes[low:high], chance[low:high], take)
            for low, high, take in zip(ends, ends[1:], takes, strict=False)
        ]


def _table(parts: slice, sizes: IntArray, chance: FloatArray, take: int) -> _Table:
    """Return the binomial probabilities of each part's number, within nine standard deviations, and of the sums."""
    from scipy.special import gammaln, xlog1py, xlogy

    centre, reach = sizes * chance, 9.0 * (1.0 + np.sqrt(sizes * chance * (1.0 - chance)))
    least = np.maximum(0, centre - reach).astype(np.int64)
    most = np.minimum(np.minimum(sizes, take), np.ceil(centre + reach)).astype(np.int64)
    k = least[:, np.newaxis] + np.arange(int((most - least).max()) + 1)
    n, p = sizes[:, np.newaxis], chance[:, np.newaxis]
    inside = k <= most[:, np.newaxis]
    k_in = np.where(inside, k, least[:, np.newaxis])
    ways = gammaln(n + 1) - gammaln(k_in + 1) - gammaln(n - k_in + 1)
    found = np.where(inside, np.exp(ways + xlogy(k_in, p) + xlog1py(n - k_in, -p)), 0.0)
    sums = np.zeros((sizes.size + 1, take + 1))
    sums[-1, 0] = 1.0
    for part in range(sizes.size - 1, -1, -1):
        of_rest = np.flatnonzero(sums[part + 1])
        low = int(of_rest[0]) + int(least[part])
        new = np.convolve(sums[part + 1, of_rest[0] : of_rest[-1] + 1], found[part])[: max(0, take + 1 - low)]
        sums[part, low : low + new.size] = new
    return _Table(parts, found, sums, least)


def chances(cells: TwoGroupCells, log_odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return probabilities (C,) of being drawn with these log odds that give the required expected numbers.

    The second result (S,) is the number added to the log odds of each stratum.
    """
    from scipy.special import expit

    pooled, take, n = cells.counts.sum(axis=0), cells.people.min(axis=0), cells.people.sum(axis=0)
    shift = np.log(take / (n - take))
    for _ in range(_NEWTON):
        chance = expit(log_odds + shift[cells.strata])
        away, slope = take - cells.by_stratum(pooled * chance), cells.by_stratum(pooled * chance * (1.0 - chance))
        if (np.abs(away) < _EXACT * take).all():
            return chance, shift
        shift = shift + np.clip(away / slope, -1.0, 1.0)
    return expit(log_odds + shift[cells.strata]), shift


def tilt_of(cells: TwoGroupCells, side: int, levels: tuple[float, float]) -> Tilt:
    """Return the tilt that centres the draws in the low (-1) or high (1) tail of the statistic.

    Each person's log odds are proportional to the person's influence on t at the centre of the tilted draws (the
    dominating point, computed by iteration). They are scaled so that the Kullback-Leibler divergence from plain draws
    is z² / 2, as for a normal tail, with z the mean of both levels' normal quantiles. An imperfect tilt only costs
    precision.
    """
    from scipy.special import ndtri

    goal = float(ndtri(np.array(levels) / 2.0).mean()) ** 2 / 2.0
    log_odds = np.zeros(cells.values.size)
    for _ in range(_DIRECTIONS):
        direction = side * _moves(cells, chances(cells, log_odds)[0])
        length = np.sqrt(goal / max(_divergence(cells, 1e-3 * direction / max(np.ptp(direction), 1e-300)), 1e-300))
        log_odds = 1e-3 * direction / max(np.ptp(direction), 1e-300) * length
        for _ in range(_LENGTHS):
            log_odds = _within(log_odds * np.clip(np.sqrt(goal / max(_divergence(cells, log_odds), 1e-9)), 0.5, 2.0))
    return _in_parts(cells, log_odds)


def _within(log_odds: FloatArray) -> FloatArray:
    return np.asarray(np.clip(log_odds - np.median(log_odds), -_WIDEST, _WIDEST))


def _divergence(cells: TwoGroupCells, log_odds: FloatArray) -> float:
    """Return the Kullback-Leibler divergence from the plain draw, as if people were drawn independently."""
    from scipy.special import rel_entr

    chance, _ = chances(cells, log_odds)
    plain = (cells.people.min(axis=0) / cells.people.sum(axis=0))[cells.strata]
    return float((cells.counts.sum(axis=0) * (rel_entr(chance, plain) + rel_entr(1.0 - chance, 1.0 - plain))).sum())


def _moves(cells: TwoGroupCells, chance: FloatArray) -> FloatArray:
    """Return (C,) the derivative of t by drawing one person of each cell, at these probabilities."""
    is_rest = cells.people[0] > cells.people[1]
    drawn = np.moveaxis(cells.by_stratum(cells.counts.sum(axis=0) * chance * cells.columns.T), 0, 1)
    first = np.where(is_rest[:, np.newaxis], cells.sums.sum(axis=0) - drawn, drawn)
    step = 1e-5 * np.sqrt((cells.columns**2).mean(axis=0)) * cells.people.min()
    steps = np.eye(first.size).reshape(-1, *first.shape) * step
    slope = (cells.studentised(first + steps) - cells.studentised(first - steps)).reshape(first.shape) / (2.0 * step)
    slope = np.nan_to_num(slope, posinf=0.0, neginf=0.0) * np.where(is_rest, -1.0, 1.0)[:, np.newaxis]
    return np.asarray((slope[cells.strata] * cells.columns).sum(axis=1))


def _in_parts(cells: TwoGroupCells, log_odds: FloatArray) -> Tilt:
    """Return the tilt with the mean log odds of each part: a cell, or one of 24 bins if people are drawn one by one.

    Bins are narrow where there are many people and where log odds differ much.
    """
    if not cells.shuffling_is_faster:
        return Tilt(cells, log_odds, np.arange(cells.values.size))
    pooled, bins = cells.counts.sum(axis=0), np.zeros(cells.values.size, dtype=np.int64)
    ends = [*cells.start.tolist(), cells.values.size]
    for part in map(slice, ends, ends[1:]):
        of_part = log_odds[part]
        if np.ptp(of_part) > 0:
            order = np.argsort(of_part, kind="stable")
            rank = np.empty(of_part.size)
            rank[order] = (np.cumsum(pooled[part][order]) - 0.5 * pooled[part][order]) / pooled[part].sum()
            place = (rank + (of_part - of_part.min()) / np.ptp(of_part)) / 2.0
            bins[part] = np.minimum(_PARTS * place, _PARTS - 1).astype(np.int64)
    _, number = np.unique(cells.strata * _PARTS + bins, return_inverse=True)
    mean = np.bincount(number, weights=pooled * log_odds) / np.bincount(number, weights=pooled)
    return Tilt(cells, mean[number], number)


def draw_tails(cells: TwoGroupCells, alpha: float, level: float, number: int) -> Drawn:
    """Return draws from a mixture: a fifth plain draws, the rest tilted to both tails.

    The tilt is centred between the normal quantiles of both levels, so p-values near either level are precise. A draw
    with the sums L_k of log odds has the exact weight 1 / (.2 + .4 sum exp(L_k) / E exp(L_k)); the observed assignment
    has a weight by the same formula. With that weight included in their sums, p-values are valid at any level (Harrison
    2012). The draws depend on the pooled values, the sizes and the levels alone.

    References
    ----------
    M. T. Harrison (2012), Conservative hypothesis tests and confidence intervals using importance sampling,
    Biometrika 99. E. Veach and L. J. Guibas (1995), Optimally combining sampling techniques for Monte Carlo rendering,
    SIGGRAPH.
    """
    cells = cells.merged()
    key = cells.key(np.array([alpha, level]))
    tilts = [tilt_of(cells, side, (alpha, level)) for side in (-1, 1)]
    mixture = [_in_parts(cells, np.zeros(cells.values.size)), *tilts]
    shares = np.array([_PLAIN, *[(1.0 - _PLAIN) / 2] * 2])
    sizes = np.random.Generator(np.random.PCG64(key)).multinomial(number, shares).tolist()
    columns = np.column_stack([cells.columns, *(tilt.log_odds for tilt in tilts)])
    sums = np.concatenate(
        [
            tilt.draw(key + 1 + which, size, columns)
            for which, (tilt, size) in enumerate(zip(mixture, sizes, strict=True))
        ]
    )
    total, is_rest = cells.sums.sum(axis=0), cells.people[0] > cells.people[1]
    summed, exponents = sums[..., :-2], sums[..., -2:].sum(axis=1)
    t = cells.statistics(np.where(is_rest[:, np.newaxis], total - summed, summed))
    observed = np.where(is_rest[cells.strata], cells.counts[1], cells.counts[0]) @ columns[:, -2:]
    ratio = np.exp(np.minimum(np.vstack([exponents, observed]) - [tilt.log_mean for tilt in tilts], _LARGEST))
    weights = 1.0 / (shares[0] + ratio @ shares[1:])
    order = np.argsort(t, kind="stable")
    return Drawn(t[order], weights[order], float(weights[-1]))
