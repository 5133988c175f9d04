"""The bootstrap of group values: resample the test rows, keep the values of every resample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from evenhand.errors import ConfigError, require_choice
from evenhand.stats.improvability.cells import Cells, merge_rows
from evenhand.stats.improvability.rows import Rows, with_everyone
from evenhand.stats.improvability.utilities import ratios
from evenhand.stats.pairs.workers import Step, run_chains
from evenhand.stats.types import FloatArray

Method = Literal["cells", "rows"]
METHODS: tuple[Method, ...] = ("cells", "rows")

_CHUNK_NUMBERS = 1_000_000
_CHAINS = 32
_FEW_CELLS = 256  # quicker than loading the compiled kernel
_CELL_COST = 32  # a cell's binomial draw takes as long as so many drawn rows
_SMALL_CELL = 10  # rows: a cell of fewer is quicker drawn row by row
_PRODUCTS = np.triu_indices(4)


@dataclass(frozen=True, eq=False)
class ValueDraws:
    """The values of status quo and candidate, in the sample and in J resamples; all p-values follow from these.

    Attributes
    ----------
    estimate
        (G + 1, K, 2) values by group (the last is everyone), utility, and status quo and candidate.
    values
        (J, G + 1, K, 2) the same of each resample; nan where no row of a group counts.
    spread
        (G + 1, K, 2, 2) the estimated covariance of the two values, or None unless it was asked for.
    spreads
        (J, G + 1, K, 2, 2) the same of each resample, or None.
    rows
        The number of test rows.
    cells
        The number of cells they were merged into.
    method
        How they were drawn.
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
    rng: np.random.Generator,
    method: Method | None = None,
    studentised: bool = False,
    threads: int | None = None,
) -> ValueDraws:
    """Resample the rows, with decisions held fixed, and return the values of every resample.

    Parameters
    ----------
    rows
        The test rows.
    resamples
        Number of resamples J.
    rng
        Source of randomness. The result depends on it, on the rows (not their order) and on J only.
    method
        "cells": one multinomial draw over merged rows, for outcomes with few values. "rows": draws of single rows among
        those that count, compiled, for continuous outcomes. Both sample the same law; by default the quicker one.
    studentised
        Whether to keep the covariances that a studentised test needs.
    threads
        Number of threads of "rows"; by default one for each core. The result does not depend on it.

    References
    ----------
    B. Efron (1979), Bootstrap methods: another look at the jackknife, Annals of Statistics 7. Auerbach, Liang,
    Tabord-Meehan and Okumura (2024), appendix A.

    Examples
    --------
    >>> from evenhand.stats.improvability import get_utility, make_rows
    >>> rng = np.random.default_rng(0)
    >>> y, old, new = rng.integers(0, 2, (3, 400))
    >>> rows = make_rows(np.arange(400) % 2, y, old, y | new, [get_utility("classification")], "ab")
    >>> draws = bootstrap_values(rows, rng=rng)
    >>> draws.cells, draws.values.shape
    (8, (10000, 3, 1, 2))
    """
    if resamples < 1:
        raise ConfigError(f"`resamples` must be at least 1; got {resamples!r}.")
    if method is not None:
        require_choice("method", method, METHODS)
    columns = _with_products(rows.terms) if studentised else rows.terms.reshape(len(rows), -1)
    cells = merge_rows(rows, columns)
    few = len(cells) <= _FEW_CELLS or _CELL_COST * len(cells) <= cells.support
    chosen: Method = method or ("cells" if few else "rows")
    if chosen == "cells":
        sums = np.concatenate([cells.sums(counts) for counts in _cell_counts(cells, resamples, rng)])
    else:
        sums = _row_sums(cells, resamples, rng, threads)
    return draws_of(rows, cells, sums, chosen)


def draws_of(rows: Rows, cells: Cells, sums: FloatArray, method: Method) -> ValueDraws:
    """Return the draws whose sums by group (J, G, Q) are given.

    Examples
    --------
    >>> from evenhand.stats.improvability import get_utility, make_rows
    >>> rows = make_rows([0, 0, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 0, 1, 1], [get_utility("classification")], "ab")
    >>> cells = merge_rows(rows)
    >>> draws_of(rows, cells, cells.sums(cells.count[np.newaxis]), "cells").values[0, 0]
    array([[0.5, 1. ]])
    """
    both = with_everyone(np.concatenate([cells.sums(cells.count[np.newaxis]), sums]))
    shape = rows.terms.shape[1:]
    first = int(np.prod(shape))
    plain = both[..., :first].reshape(*both.shape[:2], *shape)
    values = ratios(plain)
    spreads = _covariances(plain, values, both[..., first:]) if both.shape[-1] > first else None
    return ValueDraws(
        estimate=values[0],
        values=values[1:],
        spread=None if spreads is None else spreads[0],
        spreads=None if spreads is None else spreads[1:],
        rows=len(rows),
        cells=len(cells),
        method=method,
    )


def _cell_counts(cells: Cells, resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield chunks of multinomial draws over the cells; the rest takes what remains.

    The rows of small cells are first drawn as if they were one cell, and its rows then one by one: quicker than a
    binomial draw for each, and of the same law.
    """
    total = max(cells.support + cells.rest, 1)
    large, small = (np.flatnonzero(which) for which in (cells.count > _SMALL_CELL, cells.count <= _SMALL_CELL))
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


def _row_sums(cells: Cells, resamples: int, rng: np.random.Generator, threads: int | None) -> FloatArray:
    """Return the sums of draws of single rows: how many count is binomial, which ones is even."""
    from evenhand.stats.improvability.kernels import draw_sums

    total = cells.support + cells.rest
    key = np.uint64(rng.integers(2**64, dtype=np.uint64))
    sizes = rng.binomial(total, cells.support / total, size=resamples)
    cell = np.repeat(np.arange(len(cells)), cells.count)
    columns = np.ascontiguousarray(cells.columns.T)
    sums = np.empty((resamples, cells.start.size - 1, cells.columns.shape[1]))
    edges = np.linspace(0, resamples, min(_CHAINS, resamples) + 1).astype(np.int64)

    def chain(first: int, last: int) -> Iterator[Step]:
        yield (
            last - first,
            lambda: draw_sums(key, first, last, sizes, cell, columns, cells.start, sums),
        )

    chains = [chain(int(first), int(last)) for first, last in pairwise(edges)]
    run_chains(chains, resamples, threads=threads)
    return sums


def _with_products(terms: FloatArray) -> FloatArray:
    """Return (n, 4 K + 10 K) u and w of both algorithms, then for each utility their products two by two."""
    flat = terms.reshape(*terms.shape[:2], 4)
    products = flat[:, :, _PRODUCTS[0]] * flat[:, :, _PRODUCTS[1]]
    return np.concatenate([flat.reshape(len(terms), -1), products.reshape(len(terms), -1)], axis=1)


def _covariances(sums: FloatArray, values: FloatArray, products: FloatArray) -> FloatArray:
    """Return (..., K, 2, 2) the covariance of the values of status quo and candidate, by the delta method.

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
