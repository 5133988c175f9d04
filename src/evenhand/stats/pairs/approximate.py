"""Individual fairness of many people, estimated from random pairs or from a bias-corrected grid.

The sampling method shares no code with the exact methods, so it is a check on them: 2^21 people are drawn, each with
two partners. The two partners of one person also show how much of the variance is between people, which the interval
needs: E[(x_ij - X)(x_ik - X)] = E[(mean_i - X)²]. The standard error includes both that variance and the noise of the
draws; the numerical error is four standard errors of the draws alone.

The grid is corrected on random pairs, with a valid error bound and a standard error. For a pair of people the smeared
kernel has a closed form, so the bias of the extrapolated grid can be computed pair by pair. Its mean over 2^22 random
pairs is subtracted (a control variate). The result is unbiased for any data, and its stated error is four standard
errors of this mean. Atoms increase single deviations, and therefore the stated error, but do not invalidate it. (The
grid is aligned so that the most common value of each axis is on a grid point, where it is not spread at all.) The share
of violated pairs, whose kernel is a step, is corrected in the same way.

Row means are read from the field of all people, linear between grid points, and shifted to the corrected mean. Each is
accurate to about three decimals (two if many people share a value), which is ample for the standard error.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from evenhand.stats.pairs.grid import SIZE, Bounds, GridMoments, bin_people, excess_table, extrapolated_means, own_pairs
from evenhand.stats.pairs.inputs import TOLERANCE, ScoredPeople, excess_of
from evenhand.stats.pairs.result import PairFairness, limits, summarise, widened
from evenhand.stats.types import FloatArray, IntArray
from evenhand.stats.workers import Progress, Step, run_chains, thread_count

_DRAWS = 2**21
_SAMPLE_CHUNK = 2**17
WIDTHS = 4.0  # standard errors in the stated numerical error
_PAIRS = 2**22
_CHUNK = 2**18
_GLANCE = 2**16  # values searched for a common one


def individual_fairness_sampled(
    people: ScoredPeople, weight: float, *, confidence: float, rng: Generator, progress: Progress | None = None
) -> PairFairness:
    """Return individual fairness estimated from random pairs.

    Parameters
    ----------
    people
        The people.
    weight
        Weight of effort in the distance.
    confidence
        Two-sided confidence.
    rng
        Source of randomness.
    progress
        Called with the number of finished pairs and the total.

    Examples
    --------
    >>> score, effort = np.linspace(0, 1, 50), np.linspace(0, 0.5, 50)
    >>> result = individual_fairness_sampled(
    ...     ScoredPeople(score, effort, np.zeros(50)), 1.0, confidence=0.95, rng=np.random.default_rng(0)
    ... )
    >>> bool(abs(result.value - (1 - 0.5 * 17 / 49)) < result.error)
    True
    """
    draw = PairDraw(people)
    leverage = _leverage(people)
    sums = np.zeros(6)
    for start in range(0, _DRAWS, _SAMPLE_CHUNK):
        i, j = draw.pairs(_SAMPLE_CHUNK, rng)
        x, y = (excess_of(people, weight, i, partner) for partner in (j, draw.partners(i, rng)))
        both, hits = (x + y) / 2.0, ((x > 0).astype(np.float64) + (y > 0)) / 2.0
        lever = leverage if isinstance(leverage, float) else leverage[i]
        terms = (both, both * both, hits, lever * x * y, lever * both, lever + 0.0 * both)
        sums += [float(term.sum()) for term in terms]
        if progress is not None:
            progress(2 * (start + _SAMPLE_CHUNK), 2 * _DRAWS)
    mean, square, violated, product, crossed, lever_mean = (sums / _DRAWS).tolist()
    noise = float(np.sqrt(max(0.0, square - mean**2) / _DRAWS))
    between = max(0.0, product - 2.0 * mean * crossed + mean**2 * lever_mean)  # E[leverage (x - mean)(y - mean)]
    n = people.counted
    stderr = float(np.sqrt((n - 1) / n * between + noise**2)) if n > 2 and mean > 0 else float("nan")
    wide, freedom = widened(stderr, (people,), weight), people.kish - 1.0
    low, high = limits(1.0 - mean, wide, freedom, confidence, 0.0)
    return PairFairness(
        value=1.0 - mean,
        low=low,
        high=high,
        stderr=stderr,
        n=n,
        pairs=2 * _DRAWS,
        violated=violated,
        method="sampled",
        error=WIDTHS * noise,
        survey_weight=people.survey,
        spread=wide,
        freedom=freedom,
    )


def _leverage(people: ScoredPeople) -> FloatArray | float:
    """Return 4 G g_i / (G - 2 g_i)², the factor of (h_i - U)² in the jackknife variance of `result.jackknife`."""
    n = people.counted
    if people.survey is None or n < 3:
        return 4.0 * n / max(n - 2, 1) ** 2
    weight = people.survey * people.others
    total = weight.sum()
    return np.asarray(4.0 * total * weight / (total - 2.0 * weight) ** 2)


class PairDraw:
    """Sampler of pairs i != j with probability proportional to v_i v_j, with replacement.

    Examples
    --------
    >>> people = ScoredPeople(np.zeros(3), np.zeros(3), np.zeros(3), np.array([0.0, 1.0, 1.0]))
    >>> i, j = PairDraw(people).pairs(1000, np.random.default_rng(0))
    >>> sorted(set(i.tolist())), bool((i + j == 3).all())
    ([1, 2], True)
    """

    def __init__(self, people: ScoredPeople) -> None:
        self._size = len(people)
        self._weight = people.survey
        if self._weight is not None:
            self._upto = np.cumsum(self._weight)
            self._first_upto = np.cumsum(self._weight * (self._upto[-1] - self._weight))  # in a pair with another

    def pairs(self, size: int, rng: Generator) -> tuple[IntArray, IntArray]:
        """Return two arrays with the first and the second person of each pair."""
        if self._weight is None:
            i = rng.integers(0, self._size, size)
        else:
            positions = np.sort(rng.random(size)) * self._first_upto[-1]  # sorted, the search stays in cache
            i = self._person_at(self._first_upto, positions)
            rng.shuffle(i)
        return i, self.partners(i, rng)

    def partners(self, i: IntArray, rng: Generator) -> IntArray:
        """Return a random partner for each person, drawn by the weights of all other people."""
        if self._weight is None:
            j = rng.integers(0, self._size - 1, i.size)
            return np.asarray(j + (j >= i), dtype=np.int64)
        weight, end = self._weight[i], self._upto[i]
        positions = rng.random(i.size) * (self._upto[-1] - weight)
        positions = np.where(positions >= end - weight, positions + weight, positions)
        order = np.argsort(positions, kind="stable")
        j = np.empty_like(i)
        j[order] = self._person_at(self._upto, positions[order])
        return np.where(j == i, self._beside(i), j)  # rounding at the ends of the person's own range

    def _person_at(self, upto: FloatArray, places: FloatArray) -> IntArray:
        last = int(np.flatnonzero(self._weight)[-1]) if self._weight is not None else self._size - 1
        return np.minimum(np.searchsorted(upto, places, side="right"), last).astype(np.int64)

    def _beside(self, i: IntArray) -> IntArray:
        """Return the next person with a positive weight, or the previous one for the last."""
        somebody = np.flatnonzero(np.asarray(self._weight))
        position = np.searchsorted(somebody, i)
        return np.asarray(somebody[np.where(position + 1 < somebody.size, position + 1, position - 1)], dtype=np.int64)


class Correction(NamedTuple):
    """The grid's bias in the mean excess, with its standard error, and in the share of violations."""

    excess: float
    excess_stderr: float
    violated: float


def correct(
    people: ScoredPeople,
    moments: GridMoments,
    weight: float,
    *,
    sample: bool,
    rng: Generator,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Correction:
    """Return the bias of the extrapolated grid, estimated on random pairs of rows.

    The value `grid_excess(moments.coarser(), moments, [weight]).value - correction.excess` is unbiased for any data.

    Parameters
    ----------
    people
        The people of the grid, or a random sample of them.
    moments
        The fine grid.
    weight
        Weight of effort in the distance.
    sample
        Whether the people are a sample; their number then contributes to the standard error.
    rng
        Source of randomness.
    threads, progress
        Number of threads, and a function called with the number of finished pairs and the total.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.stats.pairs.grid import grid_excess
    >>> rng = np.random.default_rng(0)
    >>> score, effort, aggregate = rng.random(1000), rng.choice([0, 0.31, 1], 1000), np.zeros(1000)  # atoms
    >>> people = ScoredPeople(score, effort, aggregate)
    >>> fine = bin_people(people)
    >>> raw = grid_excess(fine.coarser(), fine, [0.5])
    >>> correction = correct(people, fine, 0.5, sample=False, rng=rng)
    >>> from evenhand.stats.pairs import individual_fairness
    >>> exact = 1 - individual_fairness(score, effort, aggregate, 0.5).value
    >>> bool(abs(raw.value[0] - exact) > 1e-5)
    True
    >>> bool(abs(raw.value[0] - correction.excess - exact) < 4 * correction.excess_stderr)
    True
    """
    from evenhand.stats.pairs.kernels import deviations

    coarse, fine = excess_table(moments.coarser(), weight), excess_table(moments, weight)
    tables = coarse, fine, (fine > TOLERANCE).astype(np.float64)
    draw, draws = PairDraw(people), _PAIRS // 2
    seeds = rng.integers(0, 2**63, draws // _CHUNK)
    sums = np.zeros((seeds.size, 3, 2))

    def step(number: int) -> None:
        stream = np.random.default_rng(seeds[number])
        i, j = draw.pairs(_CHUNK, stream)
        deviation = np.empty((2, _CHUNK, 2))
        first = gathered(people, i)
        for out, partner in zip(deviation, (j, draw.partners(i, stream)), strict=True):
            second = gathered(people, partner)
            deviations((first, second), weight, TOLERANCE, moments.scale, tables, moments.shape, out)
        both = deviation.mean(axis=0)
        sums[number] = both.sum(axis=0), (both**2).sum(axis=0), deviation.prod(axis=0).sum(axis=0)

    chains: list[list[Step]] = [[(2 * _CHUNK, partial(step, number))] for number in range(seeds.size)]
    run_chains(chains, _PAIRS, threads=threads, progress=progress)
    mean, square, product = sums.sum(axis=0) / draws
    variance = (square - mean**2) / draws
    if sample:  # the two partners of a person show the variance between people
        variance += 4.0 * np.maximum(product - mean**2, 0.0) * np.sum(people.weights**2) / people.total**2
    return Correction(float(mean[0]), float(np.sqrt(np.maximum(variance[0], 0.0))), float(mean[1]))


def aligned_bounds(values: FloatArray, size: int) -> tuple[float, float]:
    """Return bounds of all values that put the most common value on a point of the grid and of its coarser grid.

    A value on a grid point is not spread, so the most common ties (no arrests, no change) cost no accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = aligned_bounds(np.array([-1.0, 0.13, 0.13, 0.13, 1.0]), 65)
    >>> round((0.13 - low) / (high - low) * 64, 9)
    36.0
    >>> aligned_bounds(np.array([0.0, 0.0, 0.7, 1.0]), 65)
    (0.0, 1.0)
    """
    low, high = float(values.min()), float(values.max())
    distinct, times = np.unique(values[:: max(1, values.size // _GLANCE)], return_counts=True)
    common = float(distinct[np.argmax(times)])
    if times.max() == 1 or not low < common < high:
        return low, high
    below = 2 * min(max(round((common - low) / (high - low) * (size - 1) / 2), 1), (size - 3) // 2)
    step = max((common - low) / below, (high - common) / (size - 1 - below))
    return min(low, common - below * step), max(high, common + (size - 1 - below) * step)


def common_on_points(people: ScoredPeople) -> Bounds:
    """Return grid bounds that put the most common value of each axis on a grid point."""
    score, effort, aggregate = (aligned_bounds(axis, SIZE) for axis in (people.score, people.effort, people.aggregate))
    return score, effort, aggregate


def gathered(people: ScoredPeople, rows: IntArray) -> FloatArray:
    """Return (3, people) score, effort and aggregate of the rows, gathered in one array."""
    return np.stack([column.take(rows) for column in (people.score, people.effort, people.aggregate)])


def individual_fairness_grid(
    people: ScoredPeople,
    weight: float,
    *,
    confidence: float,
    rng: Generator,
    threads: int | None = None,
    progress: Progress | None = None,
) -> PairFairness:
    """Return individual fairness by the grid method.

    Parameters
    ----------
    people
        The people.
    weight
        Weight of effort in the distance.
    confidence
        Two-sided confidence.
    rng
        Source of randomness for the correction.
    threads
        Number of threads, by default the number of cores. The result does not depend on it.
    progress
        Called with the number of finished people and pairs and the total.
    """
    total = len(people) + _PAIRS

    def stage(before: int) -> Progress | None:
        return None if progress is None else lambda done, _: progress(before + done, total)

    fine = bin_people(people, bounds=common_on_points(people), threads=threads, progress=stage(0))
    value, violated = extrapolated_means(fine, weight, threads)
    correction = correct(people, fine, weight, sample=False, rng=rng, threads=threads, progress=stage(len(people)))
    excess = min(1.0, max(0.0, value - correction.excess))
    share = min(1.0, max(0.0, violated - correction.violated))
    error = WIDTHS * correction.excess_stderr + 1e-12
    rows = row_excess(people, fine, weight, threads)
    exact = (1.0 - excess, error)
    return summarise(
        people, weight, rows, violated=share * people.pair_weight, method="grid", confidence=confidence, exact=exact
    )


def row_excess(people: ScoredPeople, moments: GridMoments, weight: float, threads: int | None = None) -> FloatArray:
    """Return each person's sum of v_j max(0, D_ij - d_ij), interpolated from the grid's field of all people.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 1001)
    >>> people = ScoredPeople(x, np.zeros(1001), np.zeros(1001))
    >>> rows = row_excess(people, bin_people(people), 0.5) / 1000
    >>> rows[[0, 500]].round(2)  # the mean of abs(x - y) over all y
    array([0.5 , 0.25])
    """
    import scipy.fft

    from evenhand.stats.pairs.kernels import field_at

    size = moments.size
    length = scipy.fft.next_fast_len(2 * size - 1, real=True)
    apart = np.minimum(np.arange(length), length - np.arange(length))
    apart = np.minimum(apart, size - 1)  # lags of no pair
    table = excess_table(moments, weight)
    workers, shape = thread_count(threads), (length, length, length)
    spectrum = scipy.fft.rfftn(table[np.ix_(apart, apart, apart)], workers=workers)
    spectrum *= scipy.fft.rfftn(moments.mass, shape, workers=workers)
    field = np.ascontiguousarray(scipy.fft.irfftn(spectrum, shape, workers=workers)[:size, :size, :size])
    out, self_pairs = np.empty(len(people)), own_pairs(table)

    def step(rows: slice) -> None:
        field_at(people.part(rows), moments.scale, field, self_pairs, out[rows])

    cuts = [slice(start, start + _CHUNK) for start in range(0, len(people), _CHUNK)]
    chains: list[list[Step]] = [[(1, partial(step, rows))] for rows in cuts]
    run_chains(chains, len(chains), threads=threads)
    return out
