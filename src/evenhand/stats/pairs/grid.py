"""Individual fairness of any number of people from a histogram that a data engine can compute in one pass.

The sum over all pairs of k(M_i - M_j, E_i - E_j, S_i - S_j) with k = max(0, abs(m) - sqrt(w e² + (1-w) s²)) is the
autocorrelation of the (M, E, S) histogram against a fixed kernel. Each person is spread over the eight corners of a
grid cell in proportion (cloud in cell), the autocorrelation is an FFT, and every weight w costs one more kernel sum.
The effect of the spreading on self-pairs is subtracted exactly. The error is of second
order in the step, so a grid of 65 points and one of 33 are extrapolated (Richardson) to a step of 0. A hat function is
the sum of three hat functions of half its width, so the coarse grid follows from the fine grid, and one pass over the
data gives both.

With atoms (many people with one value) the error is not of second order, and the extrapolation step is too small: if
rows are available, or a sample of them, `approximate.correct` corrects the value on random pairs and returns a valid
error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError
from evenhand.stats.pairs.inputs import TOLERANCE, ScoredPeople, check_weight
from evenhand.stats.types import FloatArray
from evenhand.stats.workers import Progress, Step, run_chains, thread_count

SIZE = 65
_LEVELS = 2
_SLOTS = 8
_CHUNK = 2**19

Bounds = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]


class GridExcess(NamedTuple):
    """The mean of max(0, D - d) over all pairs for each weight, and the last extrapolation step as its error.

    The error is conservative for continuous values. With atoms it may be too small.
    """

    value: FloatArray
    error: FloatArray


@dataclass(frozen=True, eq=False)
class GridMoments:
    """The (score, effort, aggregate) histogram of people on a grid.

    Attributes
    ----------
    bounds
        Lowest and highest score, effort and aggregate: the ends of the grid.
    mass
        (size, size, size) the weight at each grid point.
    squares
        The sum of squared weights (the number of people without weights).
    own
        (levels, 4) sums of v² times q_M, q_M q_E, q_M q_S and q_M q_E q_S, with q = 2 f (1 - f) and f the position
        within the cell, for this grid and for the grids with two, four ... times the step.
    diamond
        Whether distances are city-block.
    """

    bounds: Bounds
    mass: FloatArray
    squares: float
    own: FloatArray
    diamond: bool = False

    @classmethod
    def from_cells(
        cls, bounds: Bounds, size: int, cells: ArrayLike, *, sums: ArrayLike, squares: float, own: ArrayLike
    ) -> GridMoments:
        """Return the histogram from sums over grid cells, as a data engine computes them.

        With t = (x - low) / (high - low) (size - 1) a row's cell is c = min(floor(t), size - 2), f = t - c.

        Parameters
        ----------
        bounds
            Lowest and highest score, effort and aggregate.
        size
            Grid points per axis.
        cells
            (cells, 3) numbers of the cell in score, effort and aggregate, from 0.
        sums
            (cells, 8) sums over the rows of each cell of v times 1, f_S, f_E, f_E f_S, f_M, f_M f_S, f_M f_E and
            f_M f_E f_S.
        squares
            The sum of v² over all rows.
        own
            (levels, 4) as in the attributes; the second row is for (size + 1) / 2 grid points.

        Examples
        --------
        >>> import numpy as np
        >>> box = ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0))
        >>> sums, own = [[2, 1, 0, 0, 0, 0, 0, 0]], [[0, 0, 0, 0]]
        >>> moments = GridMoments.from_cells(box, 3, [[0, 1, 0]], sums=sums, squares=2.0, own=own)
        >>> moments.mass[0, 1]
        array([1., 1., 0.])
        """
        index = np.asarray(cells, dtype=np.int64).T
        parts = np.asarray(sums, dtype=np.float64).reshape(-1, 2, 2, 2).copy()
        for axis in (1, 2, 3):  # (sum 1, sum f) -> (sum (1 - f), sum f)
            near, far = np.moveaxis(parts, axis, 0)
            near -= far
        mass = np.zeros((size, size, size))
        for corner in np.ndindex(2, 2, 2):
            np.add.at(mass, tuple(index + np.array(corner)[:, np.newaxis]), parts[(slice(None), *corner)])
        return cls(bounds, mass, float(squares), np.asarray(own, dtype=np.float64).reshape(-1, 4))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of distances as an argument of the compiled loops: (0,) for city-block, () for Euclidean."""
        return (0,) if self.diamond else ()

    @property
    def size(self) -> int:
        """The number of grid points per axis."""
        return len(self.mass)

    @property
    def steps(self) -> FloatArray:
        """(3,) the distance between grid points in score, effort and aggregate."""
        return np.array([(high - low) / (self.size - 1) for low, high in self.bounds])

    @property
    def scale(self) -> tuple[FloatArray, FloatArray]:
        """The origin of each axis, and the number of grid points per unit."""
        return _scale(self.bounds, self.size)

    @cached_property
    def pair_weight(self) -> float:
        """Twice the sum of v_i v_j over all pairs of two people."""
        return float(self.mass.sum()) ** 2 - self.squares

    def shrunk(self, factor: float) -> GridMoments:
        """Return the histogram of the same people with their scores multiplied by a factor.

        Examples
        --------
        >>> import numpy as np
        >>> x = np.array([0.0, 0.3, 1.0])
        >>> whole, half = (bin_people(ScoredPeople(c * x, x, x), 5) for c in (1.0, 0.5))
        >>> whole.shrunk(0.5).bounds == half.bounds, bool(np.allclose(whole.mass, half.mass))
        (True, True)
        """
        low, high = self.bounds[0]
        return replace(self, bounds=((factor * low, factor * high), *self.bounds[1:]))

    def scores_alone(self) -> GridMoments:
        """Return the histogram of the same scores with equal effort and aggregate for all people.

        Examples
        --------
        >>> import numpy as np
        >>> x, nowhere = np.array([0.0, 0.3, 1.0]), np.zeros(3)
        >>> alone = bin_people(ScoredPeople(x, x, x), 5).scores_alone()
        >>> bool(np.allclose(alone.mass, bin_people(ScoredPeople(x, nowhere, nowhere), 5).mass))
        True
        """
        mass, own = np.zeros_like(self.mass), np.zeros_like(self.own)
        mass[:, 0, 0], own[:, 0] = self.mass.sum(axis=(1, 2)), self.own[:, 0]
        nowhere = (0.0, 0.0)
        return replace(self, bounds=(self.bounds[0], nowhere, nowhere), mass=mass, own=own)

    def coarser(self) -> GridMoments:
        """Return the exact histogram of the same people on a grid with double the step.

        Examples
        --------
        >>> import numpy as np
        >>> x = np.array([0.0, 0.3, 1.0])
        >>> fine, coarse = (bin_people(ScoredPeople(x, x, x), size) for size in (9, 5))
        >>> bool(np.allclose(fine.coarser().mass, coarse.mass))
        True
        """
        if self.size % 2 == 0 or len(self.own) < 2:
            raise EvenhandError(
                "A grid of {size} points with {number} levels has no coarser one.", size=self.size, number=len(self.own)
            )
        mass = self.mass
        for axis in range(3):
            along = np.moveaxis(mass, axis, 0)
            half = along[::2].copy()
            half[1:] += along[1::2] / 2.0
            half[:-1] += along[1::2] / 2.0
            mass = np.moveaxis(half, 0, axis)
        return GridMoments(self.bounds, np.ascontiguousarray(mass), self.squares, self.own[1:], self.diamond)


def bin_people(
    people: ScoredPeople,
    size: int = SIZE,
    *,
    bounds: Bounds | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> GridMoments:
    """Return the histogram of people on a grid, with the sums that its coarser grid needs.

    Parameters
    ----------
    people
        The people.
    size
        Grid points per axis; odd, so that there is a coarser grid.
    bounds
        Lowest and highest value of each axis; by default from the data.
    threads
        Number of threads, by default the number of cores. The result does not depend on it.
    progress
        Called with the number of finished people and the total.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 0.25, 1.0])
    >>> bin_people(ScoredPeople(x, x, np.zeros(3)), 3).mass[:, :, 0]
    array([[1.25, 0.25, 0.  ],
           [0.25, 0.25, 0.  ],
           [0.  , 0.  , 1.  ]])
    """
    from evenhand.stats.pairs.kernels import bin_rows

    if size < 3 or size % 2 == 0:
        raise EvenhandError("`size` must be odd and at least 3; got {size!r}.", size=size)
    columns = (people.score, people.effort, people.aggregate)
    ranges = tuple((float(column.min()), float(column.max())) for column in columns)
    ends = bounds if bounds is not None else (ranges[0], ranges[1], ranges[2])
    for name, (low, high), (least, most) in zip(("score", "effort", "aggregate"), ends, ranges, strict=True):
        if least < low or most > high:
            raise EvenhandError(
                "`bounds` must hold all values; those of {name} are {low:g} and {high:g}, the values run from "
                "{least:g} to {most:g}.",
                name=name,
                low=low,
                high=high,
                least=least,
                most=most,
            )
    scale = _scale(ends, size)
    slots = min(_SLOTS, -(-len(people) // _CHUNK))
    mass, self_sums = np.zeros((slots, size, size, size)), np.zeros((slots, _LEVELS, 4))

    def chain(slot: int) -> Iterator[Step]:
        for start in range(slot * _CHUNK, len(people), slots * _CHUNK):
            rows = slice(start, start + _CHUNK)

            def step(rows: slice = rows) -> None:
                bin_rows(people.part(rows), scale, mass[slot], self_sums[slot])

            yield people.score[rows].size, step

    run_chains([chain(slot) for slot in range(slots)], len(people), threads=threads, progress=progress)
    squares = float(len(people)) if people.survey is None else float(np.sum(people.survey**2))
    return GridMoments(ends, mass.sum(axis=0), squares, self_sums.sum(axis=0), people.diamond)


def grid_excess(coarse: GridMoments, fine: GridMoments, weights: Sequence[float] | FloatArray) -> GridExcess:
    """Return the mean of max(0, D - d) over all pairs, for each weight of effort in the distance.

    Individual fairness is 1 minus this mean. Two FFTs serve all weights, with one sum over the grid for each.

    Parameters
    ----------
    coarse, fine
        Histograms of the same people, the coarse one with double the step: `fine.coarser()`.
    weights
        Weights of effort in the distance, each in [0, 1].

    References
    ----------
    R. W. Hockney and J. W. Eastwood (1988), Computer Simulation Using Particles, chapter 5 (cloud in cell).
    L. F. Richardson (1911), The approximate arithmetical solution by finite differences, Phil. Trans. A 210.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score, effort, aggregate = rng.random((3, 1000))
    >>> fine = bin_people(ScoredPeople(score, effort, aggregate))
    >>> found = grid_excess(fine.coarser(), fine, [0.5])
    >>> from evenhand.stats.pairs import individual_fairness
    >>> exact = 1 - individual_fairness(score, effort, aggregate, 0.5).value
    >>> bool(abs(found.value[0] - exact) < found.error[0])
    True
    """
    if 2 * coarse.size - 1 != fine.size or coarse.bounds != fine.bounds:
        raise EvenhandError(
            "The coarse grid must have the same bounds and double the step; got {size} and {size_2} points.",
            size=coarse.size,
            size_2=fine.size,
        )
    chosen = [check_weight(float(weight)) for weight in weights]
    values = []
    for moments in (coarse, fine):
        apart = autocorrelation(moments)
        values.append([kernel_mean(moments, apart, excess_table(moments, weight)) for weight in chosen])
    rough, close = np.array(values)
    step = (close - rough) / 3.0
    return GridExcess(close + step, np.abs(step))


def extrapolated_means(fine: GridMoments, weight: float, threads: int | None = None) -> tuple[float, float]:
    """Return the extrapolated mean of max(0, D - d) over all pairs, and the fine grid's share of pairs with D > d."""
    value, violated = 0.0, 0.0
    for grid, share in ((fine.coarser(), -1.0 / 3.0), (fine, 4.0 / 3.0)):
        apart, table = autocorrelation(grid, threads), excess_table(grid, weight)
        value += share * kernel_mean(grid, apart, table)
        violated = kernel_mean(grid, apart, (table > TOLERANCE).astype(np.float64))
    return value, violated


def autocorrelation(moments: GridMoments, workers: int | None = None) -> FloatArray:
    """Return (size, size, size) the weight of all ordered pairs by their distance in grid steps on each axis."""
    import scipy.fft

    size = moments.size
    lengths = (scipy.fft.next_fast_len(2 * size - 1, real=True),) * 3
    threads = thread_count(workers)
    spectrum = scipy.fft.rfftn(moments.mass, lengths, workers=threads)
    power = spectrum.real**2 + spectrum.imag**2
    apart = np.asarray(scipy.fft.irfftn(power, lengths, workers=threads), dtype=np.float64)
    for axis in range(3):
        along = np.moveaxis(apart, axis, 0)
        folded = along[:size].copy()
        folded[1:] += along[:-size:-1]
        apart = np.moveaxis(folded, 0, axis)
    return apart


def excess_table(moments: GridMoments, weight: float) -> FloatArray:
    """Return (size, size, size) the values of max(0, D - d) at whole grid steps."""
    score, effort, aggregate = moments.steps[:, np.newaxis] * np.arange(moments.size)
    if moments.diamond:
        distance = weight * effort[:, np.newaxis] + (1.0 - weight) * aggregate
    else:
        distance = np.sqrt(weight * effort[:, np.newaxis] ** 2 + (1.0 - weight) * aggregate**2)
    return np.asarray(np.maximum(score[:, np.newaxis, np.newaxis] - distance, 0.0))


def own_pairs(table: FloatArray) -> FloatArray:
    """Return (4,) a kernel at the steps (1, 0, 0), (1, 1, 0), (1, 0, 1) and (1, 1, 1), for self-pairs."""
    return np.array([table[1, 0, 0], table[1, 1, 0], table[1, 0, 1], table[1, 1, 1]])


def kernel_mean(moments: GridMoments, apart: FloatArray, table: FloatArray) -> float:
    """Return the mean of a kernel over all pairs of different people on the grid."""
    near, beside, diagonal_behind, both = own_pairs(table)
    m, me, ms, mes = moments.own[0]
    with_themselves = near * (m - me - ms + mes) + beside * (me - mes) + diagonal_behind * (ms - mes) + both * mes
    return (float(np.einsum("ijk,ijk->", apart, table)) - float(with_themselves)) / moments.pair_weight


def _scale(bounds: Bounds, size: int) -> tuple[FloatArray, FloatArray]:
    """Return (3,) the origin of the grid and (3,) its points per unit; 0 where all values are equal."""
    low, high = np.array(bounds).T
    with np.errstate(divide="ignore"):
        return low, np.where(high > low, (size - 1) / (high - low), 0.0)
