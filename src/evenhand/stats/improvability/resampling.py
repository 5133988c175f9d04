"""Bootstrap of group values, with p-values of their contrasts at all margins from the same draws.

Every component of the test has the form T(x) = c + x s > 0, with c and s linear in the group values and x a function of
the margin delta. The centred bootstrap p-value (1 + #(T* - T >= T)) / (J + 1) counts the draws with x (s* - 2 s) >=
-(c* - 2 c): for each draw this inequality is true on one side of a single point x, so sorting these points once gives
the p-values at any number of margins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.random import Generator

from evenhand.errors import ConfigError, require_at_least, require_choice
from evenhand.stats.improvability.rows import RowCells, Rows, merge_rows, with_everyone
from evenhand.stats.improvability.utilities import ratios
from evenhand.stats.types import FloatArray, IntArray
from evenhand.stats.workers import Step, run_chains

Method = Literal["cells", "rows"]
METHODS: tuple[Method, ...] = ("cells", "rows")

_CHUNK_NUMBERS = 1_000_000
_CHAINS = 32
_FEW_CELLS = 256  # faster than loading the compiled kernel
_CELL_COST = 32  # a cell's binomial draw takes as long as this many drawn rows
_SMALL_CELL = 10  # rows: smaller cells are faster to draw row by row
_PRODUCTS = np.triu_indices(4)
_TIE = 1e-11  # relative: differences by the order of sums are smaller


@dataclass(frozen=True, eq=False, kw_only=True)
class ValueDraws:
    """The values of status quo and candidate, in the sample and in J resamples.

    Attributes
    ----------
    estimate
        (G + 1, K, 2) values by group (the last is all rows), utility, and status quo or candidate.
    values
        (J, G + 1, K, 2) the values of each resample; nan if no row of a group counts.
    spread
        (G + 1, K, 2, 2) the estimated covariance of the two values, or None if not requested.
    spreads
        (J, G + 1, K, 2, 2) the covariances of each resample, or None.
    rows
        The number of test rows.
    cells
        The number of cells after merging.
    method
        The method of drawing.
    """

    estimate: FloatArray
    values: FloatArray
    spread: FloatArray | None
    spreads: FloatArray | None
    rows: int
    cells: int
    method: Method

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len(self.estimate) - 1


def bootstrap_values(
    rows: Rows,
    *,
    resamples: int = 10_000,
    rng: Generator,
    method: Method | None = None,
    studentised: bool = False,
    threads: int | None = None,
    part: IntArray | None = None,
) -> ValueDraws:
    """Resample the test rows, with decisions fixed, and return the values of every resample.

    Parameters
    ----------
    rows
        The test rows.
    resamples
        Number of resamples J.
    rng
        Source of randomness. The result depends on it, on the rows (not their order) and on J only.
    method
        "cells": one multinomial draw over merged rows, for outcomes with few values. "rows": compiled draws of single
        counted rows, for continuous outcomes. Both sample the same distribution; the faster method is the default.
    studentised
        Whether to keep the covariances that a studentised test needs.
    threads
        Number of threads for "rows", by default the number of cores. The result does not depend on it.
    part
        (n,) the part of each row, 0 to K - 1, if parts have separate candidates; rows are then drawn within their part.

    References
    ----------
    B. Efron (1979), Bootstrap methods: another look at the jackknife, Annals of Statistics 7. Auerbach, Liang,
    Tabord-Meehan and Okumura (2024), appendix A.

    Examples
    --------
    >>> from evenhand.stats.improvability import get_utility, make_rows
    >>> rng = np.random.default_rng(0)
    >>> y, old, new = rng.integers(0, 2, (3, 400))
    >>> rows = make_rows(np.arange(400) % 2, y, old, y | new, [get_utility("classification")], names="ab")
    >>> draws = bootstrap_values(rows, rng=rng)
    >>> draws.cells, draws.values.shape
    (8, (10000, 3, 1, 2))
    """
    require_at_least("resamples", resamples, 1)
    if method is not None:
        require_choice("method", method, METHODS)
    columns = _with_products(rows.terms) if studentised else rows.terms.reshape(len(rows), -1)
    parts = [np.arange(len(rows))] if part is None else [np.flatnonzero(part == k) for k in range(int(part.max()) + 1)]
    cells_by_part = [
        merge_rows(replace(rows, group=rows.group[rows_of_part], terms=rows.terms[rows_of_part]), columns[rows_of_part])
        for rows_of_part in parts
    ]
    use_cells = all(len(cells) <= _FEW_CELLS or _CELL_COST * len(cells) <= cells.support for cells in cells_by_part)
    chosen: Method = method or ("cells" if use_cells else "rows")
    sums = np.sum([_drawn_sums(cells, resamples, rng, chosen, threads) for cells in cells_by_part], axis=0)
    return draws_of(rows, cells_by_part, sums, chosen)


def _drawn_sums(cells: RowCells, resamples: int, rng: Generator, method: Method, threads: int | None) -> FloatArray:
    if method == "cells":
        return np.concatenate([cells.sums(counts) for counts in _cell_counts(cells, resamples, rng)])
    return _row_sums(cells, resamples, rng, threads)


def draws_of(rows: Rows, cells_by_part: Sequence[RowCells], sums: FloatArray, method: Method) -> ValueDraws:
    """Return the `ValueDraws` of a sample and of its resamples' sums (J, G, Q) by group.

    Examples
    --------
    >>> from evenhand.stats.improvability import get_utility, make_rows
    >>> rows = make_rows(
    ...     [0, 0, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 0, 1, 1], [get_utility("classification")], names="ab"
    ... )
    >>> cells = merge_rows(rows)
    >>> draws_of(rows, [cells], cells.sums(cells.count[np.newaxis]), "cells").values[0, 0]
    array([[0.5, 1. ]])
    """
    sample_sums = np.sum([cells.sums(cells.count[np.newaxis]) for cells in cells_by_part], axis=0)
    both = with_everyone(np.concatenate([sample_sums, sums]))
    shape = rows.terms.shape[1:]
    first = int(np.prod(shape))
    plain = both[..., :first].reshape(*both.shape[:2], *shape)
    values = ratios(plain)
    spreads = _covariances(plain, values, both[..., first:]) if both.shape[-1] > first else None
    spread, drawn_spreads = (None, None) if spreads is None else (spreads[0], spreads[1:])
    merged = sum(len(cells) for cells in cells_by_part)
    return ValueDraws(
        estimate=values[0],
        values=values[1:],
        spread=spread,
        spreads=drawn_spreads,
        rows=len(rows),
        cells=merged,
        method=method,
    )


def _cell_counts(cells: RowCells, resamples: int, rng: Generator) -> Iterator[FloatArray]:
    """Yield (draws, C) arrays of multinomial cell counts for batches of resamples, without the uncounted rows.

    The rows outside all cells (`cells.rest`) take part in the draw but are not returned. All small cells are first
    drawn as one cell, and its rows then one by one; this is faster than one binomial draw per cell and has the same
    distribution.
    """
    total = max(cells.support + cells.rest, 1)
    large, small = (np.flatnonzero(chosen) for chosen in (cells.count > _SMALL_CELL, cells.count <= _SMALL_CELL))
    row_cell = np.repeat(np.arange(small.size), cells.count[small])
    shares = np.concatenate([cells.count[large], [row_cell.size, cells.rest]]) / total
    step = max(1, _CHUNK_NUMBERS // (len(cells) + 1))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = rng.multinomial(cells.support + cells.rest, shares, size=size)
        counts = np.empty((size, len(cells)))
        counts[:, large] = drawn[:, :-2]
        singles = drawn[:, -2]
        picked = np.repeat(np.arange(size) * small.size, singles)
        if row_cell.size:
            picked += row_cell[rng.integers(row_cell.size, size=picked.size)]
        counts[:, small] = np.bincount(picked, minlength=size * small.size).reshape(size, small.size)
        yield counts


def _row_sums(cells: RowCells, resamples: int, rng: Generator, threads: int | None) -> FloatArray:
    """Return the group sums of resamples drawn row by row: a binomial number of counted rows, each equally likely."""
    from evenhand.stats.compiled import draw_sums

    total = cells.support + cells.rest
    key = np.uint64(rng.integers(2**64, dtype=np.uint64))
    sizes = rng.binomial(total, cells.support / total, size=resamples)
    cell = np.repeat(np.arange(len(cells)), cells.count)
    columns = np.ascontiguousarray(cells.columns.T)
    sums = np.empty((resamples, cells.start.size - 1, cells.columns.shape[1]))
    edges = np.linspace(0, resamples, min(_CHAINS, resamples) + 1).astype(np.int64)

    chains: list[list[Step]] = [
        [(last - first, partial(draw_sums, key, first, last, (sizes, cell, cells.start), columns, sums))]
        for first, last in pairwise(edges.tolist())
    ]
    run_chains(chains, resamples, threads=threads)
    return sums


def _with_products(terms: FloatArray) -> FloatArray:
    """Return (n, 4 K + 10 K) u and w of both algorithms, followed by their pairwise products for each utility."""
    flat = terms.reshape(*terms.shape[:2], 4)
    products = flat[:, :, _PRODUCTS[0]] * flat[:, :, _PRODUCTS[1]]
    return np.concatenate([flat.reshape(len(terms), -1), products.reshape(len(terms), -1)], axis=1)


def _covariances(sums: FloatArray, values: FloatArray, products: FloatArray) -> FloatArray:
    """Return (..., K, 2, 2) the delta-method covariance of the status quo and candidate values.

    A row's influence on the ratio U / W of algorithm s is (u_s - F_s w_s) / W_s; the covariance of two ratios is the
    sum of the products of their influences.
    """
    square = np.empty((*values.shape[:-1], 4, 4))
    square[..., _PRODUCTS[0], _PRODUCTS[1]] = products.reshape(*values.shape[:-1], 10)
    square[..., _PRODUCTS[1], _PRODUCTS[0]] = square[..., _PRODUCTS[0], _PRODUCTS[1]]
    with np.errstate(all="ignore"):
        influence = np.zeros((*values.shape, 4))
        for s in (0, 1):
            influence[..., s, 2 * s] = 1.0 / sums[..., s, 1]
            influence[..., s, 2 * s + 1] = -values[..., s] / sums[..., s, 1]
        return np.asarray(influence @ square @ np.swapaxes(influence, -1, -2))


@dataclass(frozen=True)
class Contrast:
    """A contrast T(x) = c + x s that is linear in the values F of groups and algorithms, for one utility.

    Attributes
    ----------
    utility
        The index among the K utilities.
    constant, slope
        (G + 1, 2) the coefficients of the values in c and in s; the last group is all rows.

    Examples
    --------
    >>> Contrast(0, np.array([[0.0, 1.0]]), np.array([[-1.0, 0.0]])).at(np.array([[[5.0, 6.0]]]), 1.1)
    array(0.5)
    """

    utility: int
    constant: FloatArray
    slope: FloatArray

    def parts(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the constant c and the slope s for values (..., G + 1, K, 2)."""
        group_values = values[..., self.utility, :]
        return _weighted(group_values, self.constant), _weighted(group_values, self.slope)

    def at(self, values: FloatArray, x: float | FloatArray) -> FloatArray:
        """Return T(x) for values (..., G + 1, K, 2)."""
        constant, slope = self.parts(values)
        return np.asarray(constant + x * slope)

    def variance(self, spread: FloatArray, x: FloatArray) -> FloatArray:
        """Return (..., D) the variance of T(x) from the covariances (..., G + 1, K, 2, 2) of independent groups."""
        covariance = spread[..., self.utility, :, :]
        used = (self.constant != 0).any(axis=1) | (self.slope != 0).any(axis=1)
        total = np.zeros((*covariance.shape[:-3], x.size))
        for g in np.flatnonzero(used):
            weights = self.constant[g] + x[:, np.newaxis] * self.slope[g]
            total += np.einsum("...st,ds,dt->...d", covariance[..., g, :, :], weights, weights)
        return total


def p_values(draws: ValueDraws, contrast: Contrast, x: FloatArray) -> FloatArray:
    """Return (D,) the centred bootstrap p-values of T(x) <= 0 against T(x) > 0.

    A resample with an undefined contrast counts against rejection; an undefined estimate gives 1.

    Parameters
    ----------
    draws
        The values of sample and resamples.
    contrast
        T(x).
    x
        (D,) the points, in any order.

    References
    ----------
    P. Hall and S. R. Wilson (1991), Two guidelines for bootstrap hypothesis testing, Biometrics 47.

    Examples
    --------
    >>> values = np.array([1.0, 1.2, 1.5, 2.1, np.nan]).reshape(5, 1, 1, 1) * np.array([0.0, 1.0])
    >>> draws = ValueDraws(
    ...     estimate=np.array([[[0.0, 1.0]]]), values=values, spread=None, spreads=None, rows=9, cells=9, method="cells"
    ... )
    >>> gain = Contrast(0, np.array([[0.0, 1.0]]), np.array([[-1.0, 0.0]]))
    >>> p_values(draws, gain, np.array([1.0]))
    array([0.5])
    """
    c, s = contrast.parts(draws.estimate)
    drawn_c, drawn_s = contrast.parts(draws.values)
    size = np.abs(draws.estimate[:, contrast.utility]) * (np.abs(contrast.constant) + np.abs(contrast.slope))
    tie = _TIE * float(np.nansum(size))
    return share_reaching(drawn_s - 2 * s, drawn_c - 2 * c + tie, x)


def parts_correlation(draws: ValueDraws, contrast: Contrast, x: FloatArray) -> FloatArray:
    """Return (D,) the bootstrap correlation of x s + c and x s - c; 1 if undefined.

    Examples
    --------
    >>> values = np.random.default_rng(0).standard_normal((5_000, 1, 1, 2)) * [1.0, 0.5]
    >>> draws = ValueDraws(
    ...     estimate=np.array([[[1.0, 0.0]]]), values=values, spread=None, spreads=None, rows=9, cells=9, method="cells"
    ... )
    >>> gap = Contrast(0, np.array([[0.0, -1.0]]), np.array([[1.0, 0.0]]))
    >>> parts_correlation(draws, gap, np.array([1.0, 0.5])).round(1)
    array([0.6, 0. ])
    """
    c, s = contrast.parts(draws.values)
    defined = np.isfinite(c) & np.isfinite(s)
    if defined.sum() < 2:
        return np.ones(x.size)
    (var_s, cov), (_, var_c) = np.cov(s[defined], c[defined])
    with np.errstate(all="ignore"):
        rho = (x**2 * var_s - var_c) / np.sqrt(
            np.maximum(0.0, x**2 * var_s + var_c + 2 * x * cov) * np.maximum(0.0, x**2 * var_s + var_c - 2 * x * cov)
        )
    return np.asarray(np.clip(np.nan_to_num(rho, nan=1.0, posinf=1.0, neginf=1.0), -1.0, 1.0))


def squared_p_values(draws: ValueDraws, status_quo: Contrast, candidate: Contrast, x: FloatArray) -> FloatArray:
    """Return (D,) the published p-values of x² gap0² - gap1² <= 0, with both gaps as contrasts at x = 0.

    The test is non-regular: if a gap is near 0 its square is far from normal, and for x < 1 a true null is rejected too
    often. Use it only to reproduce published results.

    References
    ----------
    Auerbach, Liang, Tabord-Meehan and Okumura (2024), section 3.2.

    Examples
    --------
    >>> values = np.array([[[3.0, 1.0]], [[1.0, 1.0]]])
    >>> draws = ValueDraws(
    ...     estimate=values,
    ...     values=np.stack([values, values * 1.5, values * 0.5]),
    ...     spread=None,
    ...     spreads=None,
    ...     rows=9,
    ...     cells=9,
    ...     method="cells",
    ... )
    >>> between = [[1.0, 0.0], [-1.0, 0.0]]
    >>> gap0, gap1 = Contrast(0, np.array(between), np.zeros((2, 2))), Contrast(0, np.fliplr(between), np.zeros((2, 2)))
    >>> squared_p_values(draws, gap0, gap1, np.array([1.0, 0.1]))
    array([0.5, 0.5])
    """
    old, new = (float(gap.parts(draws.estimate)[0]) ** 2 for gap in (status_quo, candidate))
    drawn_old, drawn_new = (gap.parts(draws.values)[0] ** 2 for gap in (status_quo, candidate))
    return share_reaching(drawn_old - 2 * old, 2 * new - drawn_new + _TIE * (old + new), x**2)


def studentised_p_values(draws: ValueDraws, contrast: Contrast, x: FloatArray) -> FloatArray:
    """Return (D,) the studentised version of `p_values`.

    It counts the resamples with (T* - T) / se* >= T / se, so each resample's error is divided by its own standard
    error.

    References
    ----------
    A. C. Davison and D. V. Hinkley (1997), Bootstrap Methods and their Application, section 4.4.

    Examples
    --------
    >>> values = np.array([1.0, 1.2, 1.5, 2.1]).reshape(4, 1, 1, 1) * np.array([0.0, 1.0])
    >>> spread = np.ones((1, 1, 2, 2))
    >>> draws = ValueDraws(
    ...     estimate=np.array([[[0.0, 1.0]]]),
    ...     values=values,
    ...     spread=spread,
    ...     spreads=np.stack([spread] * 4),
    ...     rows=9,
    ...     cells=9,
    ...     method="cells",
    ... )
    >>> gain = Contrast(0, np.array([[0.0, 1.0]]), np.array([[0.0, 0.0]]))
    >>> studentised_p_values(draws, gain, np.array([1.0]))
    array([0.4])
    """
    if draws.spread is None or draws.spreads is None:
        raise ConfigError("a studentised test needs draws with their spread; draw them with `studentised=True`.")
    estimate = contrast.at(draws.estimate, x)
    spread = np.sqrt(contrast.variance(draws.spread, x))
    c, s = contrast.parts(draws.values)
    reached = np.zeros(x.size)
    with np.errstate(all="ignore"):
        for d in range(x.size):  # one margin at a time: memory stays O(J)
            error = c + x[d] * s - estimate[d]
            drawn_spread = np.sqrt(contrast.variance(draws.spreads, x[d : d + 1])[:, 0])
            tie = _TIE * np.abs(error).max(initial=0.0, where=~np.isnan(error)) * spread[d]
            reached[d] = np.count_nonzero(~(error * spread[d] < estimate[d] * drawn_spread - tie))
    return np.where(np.isnan(estimate), 1.0, (1.0 + reached) / (1.0 + len(c)))


def share_reaching(a: FloatArray, b: FloatArray, x: FloatArray) -> FloatArray:
    """Return (D,) the shares (1 + #(a x + b >= 0)) / (J + 1) over J draws; nan draws are counted.

    Examples
    --------
    >>> share_reaching(np.array([1.0, -1.0, 0.0, np.nan]), np.array([-2.0, 1.0, -1.0, 0.0]), np.array([0.5, 3.0]))
    array([0.6, 0.6])
    """
    unknown = np.isnan(a) | np.isnan(b)
    rising, falling = ~unknown & (a > 0), ~unknown & (a < 0)
    always = np.count_nonzero(unknown) + np.count_nonzero(~unknown & (a == 0) & (b >= 0))
    above = np.sort(-b[rising] / a[rising])
    below = np.sort(-b[falling] / a[falling])
    reached = always + np.searchsorted(above, x, side="right") + below.size - np.searchsorted(below, x, side="left")
    return np.asarray((1.0 + reached) / (1.0 + a.size), dtype=np.float64)


def _weighted(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted sum over groups and algorithms, skipping weights of 0 because their values may be nan."""
    position = np.nonzero(weights)
    return np.asarray((values[..., position[0], position[1]] * weights[position]).sum(axis=-1))
