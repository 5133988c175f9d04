"""The grid method where rows are at hand: corrected on random pairs, with an honest error and a standard error.

For a pair of people the smeared kernel is known in closed form, so what the extrapolated grid adds to the truth can be
computed pair by pair. Its mean over 2^22 random pairs is subtracted (a control variate): what remains is unbiased for
any data, and its error is that of the mean, of which four standard errors are stated. Atoms make single deviations
larger and so the stated error; they do not make it wrong. (The grid is laid so that the most common value of each axis
is on a grid point, where it is not spread at all.) The share of violated pairs, whose kernel is a step, is
corrected in the same way.

Row means are read off the field of all people, linear between grid points, and moved to the corrected mean. Each is
good to about three decimals (two where many people share a value), which is ample for the standard error.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.stats.pairs.grid import (
    SIZE,
    GridMoments,
    autocorrelation,
    bin_people,
    excess_table,
    kernel_mean,
    own_pairs,
    scale,
)
from evenhand.stats.pairs.people import TOLERANCE, People, check_people, check_weight
from evenhand.stats.pairs.result import PairFairness, summarise
from evenhand.stats.pairs.sampled import WIDTHS, PairDraw
from evenhand.stats.pairs.workers import Progress, Step, run_chains, thread_count
from evenhand.stats.types import FloatArray, IntArray

_PAIRS = 2**22
_CHUNK = 2**18
_GLANCE = 2**16  # values among which a common one is looked for


class Correction(NamedTuple):
    """What the grid adds to the mean excess and to the share of violations, each with its standard error."""

    excess: float
    excess_stderr: float
    violated: float
    violated_stderr: float


def grid_correction(
    moments: GridMoments,
    score: npt.ArrayLike,
    effort: npt.ArrayLike,
    aggregate: npt.ArrayLike,
    weight: float = 0.5,
    *,
    survey_weight: npt.ArrayLike | None = None,
    sample: bool = False,
    rng: np.random.Generator | None = None,
) -> Correction:
    """Return what the extrapolated grid adds to the truth, estimated on random pairs of rows.

    `grid_excess(moments.coarser(), moments, [weight]).value - correction.excess` is unbiased for any data.

    Parameters
    ----------
    moments
        The fine grid.
    score, effort, aggregate
        The rows behind the grid, or a random sample of them.
    weight
        Weight of effort in the distance.
    survey_weight
        One weight a row.
    sample
        Whether the rows are a sample; their number then adds to the standard error.
    rng
        Source of randomness; by default a fixed one.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.stats.pairs.grid import grid_excess, grid_moments
    >>> rng = np.random.default_rng(0)
    >>> score, effort, aggregate = rng.random(1000), rng.choice([0, 0.31, 1], 1000), np.zeros(1000)  # atoms
    >>> fine = grid_moments(score, effort, aggregate)
    >>> raw = grid_excess(fine.coarser(), fine, [0.5])
    >>> correction = grid_correction(fine, score, effort, aggregate, 0.5)
    >>> from evenhand.stats.pairs import individual_fairness
    >>> exact = 1 - individual_fairness(score, effort, aggregate, 0.5).value
    >>> bool(abs(raw.value[0] - exact) > 1e-5)
    True
    >>> bool(abs(raw.value[0] - correction.excess - exact) < 4 * correction.excess_stderr)
    True
    """
    people = check_people(score, effort, aggregate, survey_weight)
    source = np.random.default_rng(0) if rng is None else rng
    return correct(people, moments, check_weight(weight), sample=sample, rng=source)


def correct(
    people: People,
    moments: GridMoments,
    weight: float,
    *,
    sample: bool,
    rng: np.random.Generator,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Correction:
    """Return the correction for checked people; see `grid_correction`."""
    from evenhand.stats.pairs.grid_kernels import deviations

    coarse, fine = excess_table(moments.coarser(), weight), excess_table(moments, weight)
    hits = (fine > TOLERANCE).astype(np.float64)
    origin, per_step = scale(moments.bounds, moments.size)
    draw, draws = PairDraw(people), _PAIRS // 2
    seeds = rng.integers(0, 2**63, draws // _CHUNK)
    sums = np.zeros((seeds.size, 3, 2))

    def step(number: int) -> None:
        own = np.random.default_rng(seeds[number])
        i, j = draw.pairs(_CHUNK, own)
        found = np.empty((2, _CHUNK, 2))
        first = _values(people, i)
        for out, partner in zip(found, (j, draw.partners(i, own)), strict=True):
            second = _values(people, partner)
            deviations(first, second, weight, TOLERANCE, origin, per_step, coarse, fine, hits, out)
        both = found.mean(axis=0)
        sums[number] = both.sum(axis=0), (both**2).sum(axis=0), found.prod(axis=0).sum(axis=0)

    chains: list[list[Step]] = [[(2 * _CHUNK, partial(step, number))] for number in range(seeds.size)]
    run_chains(chains, _PAIRS, threads=threads, progress=progress)
    mean, square, product = sums.sum(axis=0) / draws
    variance = (square - mean**2) / draws
    if sample:  # the two partners of a person show the variance between people
        variance += 4.0 * np.maximum(product - mean**2, 0.0) * np.sum(people.weights**2) / people.total**2
    stderr = np.sqrt(np.maximum(variance, 0.0))
    return Correction(float(mean[0]), float(stderr[0]), float(mean[1]), float(stderr[1]))


def aligned_bounds(values: FloatArray, size: int) -> tuple[float, float]:
    """Return bounds that hold all values and put the most common one on a point of the grid and of its coarser one.

    There it is not spread at all, so the commonest of ties (no arrests, no change) cost no accuracy.

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
    found, times = np.unique(values[:: max(1, values.size // _GLANCE)], return_counts=True)
    common = float(found[np.argmax(times)])
    if times.max() == 1 or not low < common < high:
        return low, high
    below = 2 * min(max(round((common - low) / (high - low) * (size - 1) / 2), 1), (size - 3) // 2)
    step = max((common - low) / below, (high - common) / (size - 1 - below))
    return min(low, common - below * step), max(high, common + (size - 1 - below) * step)


def _values(people: People, at: IntArray) -> FloatArray:
    """Return (3, people) score, effort and aggregate: gathered at once, which waits for memory less than in a loop."""
    return np.stack([people.score[at], people.effort[at], people.aggregate[at]])


def individual_fairness_grid(
    people: People,
    weight: float,
    *,
    confidence: float,
    rng: np.random.Generator,
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
        Number of threads; by default one for each core. The result does not depend on it.
    progress
        Called with the people and pairs done and to do.
    """
    total = len(people) + _PAIRS

    def stage(before: int) -> Progress | None:
        return None if progress is None else lambda done, _: progress(before + done, total)

    score, effort, aggregate = (aligned_bounds(x, SIZE) for x in (people.score, people.effort, people.aggregate))
    fine = bin_people(people, bounds=(score, effort, aggregate), threads=threads, progress=stage(0))
    violated, value = 0.0, 0.0
    for grid, share in ((fine.coarser(), -1.0 / 3.0), (fine, 4.0 / 3.0)):
        apart, table = autocorrelation(grid, threads), excess_table(grid, weight)
        value += share * kernel_mean(grid, apart, table)
        violated = kernel_mean(grid, apart, (table > TOLERANCE).astype(np.float64))
    correction = correct(people, fine, weight, sample=False, rng=rng, threads=threads, progress=stage(len(people)))
    excess = min(1.0, max(0.0, value - correction.excess))
    share = min(1.0, max(0.0, violated - correction.violated))
    error = WIDTHS * correction.excess_stderr + 1e-12
    rows = row_excess(people, fine, weight, threads)
    return summarise(people, rows, share * people.pair_weight, "grid", confidence, exact=(1.0 - excess, error))


def row_excess(people: People, moments: GridMoments, weight: float, threads: int | None = None) -> FloatArray:
    """Return each person's sum of v_j max(0, D_ij - d_ij) from the field of all people on the grid.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 1001)
    >>> people = People(x, np.zeros(1001), np.zeros(1001))
    >>> rows = row_excess(people, bin_people(people), 0.5) / 1000
    >>> rows[[0, 500]].round(2)  # the mean of abs(x - y) over all y
    array([0.5 , 0.25])
    """
    import scipy.fft

    from evenhand.stats.pairs.grid_kernels import field_at

    size = moments.size
    length = scipy.fft.next_fast_len(2 * size - 1, real=True)
    apart = np.minimum(np.arange(length), length - np.arange(length))
    apart = np.minimum(apart, size - 1)  # lags that no pair has
    table = excess_table(moments, weight)
    workers, shape = thread_count(threads), (length, length, length)
    spectrum = scipy.fft.rfftn(table[np.ix_(apart, apart, apart)], workers=workers)
    spectrum *= scipy.fft.rfftn(moments.mass, shape, workers=workers)
    field = np.ascontiguousarray(scipy.fft.irfftn(spectrum, shape, workers=workers)[:size, :size, :size])
    origin, per_step = scale(moments.bounds, size)
    out, own = np.empty(len(people)), own_pairs(table)

    def step(rows: slice) -> None:
        field_at(*people.part(rows), origin, per_step, field, own, out[rows])

    cuts = [slice(start, start + _CHUNK) for start in range(0, len(people), _CHUNK)]
    chains: list[list[Step]] = [[(1, partial(step, rows))] for rows in cuts]
    run_chains(chains, len(chains), threads=threads)
    return out
