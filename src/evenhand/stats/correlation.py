"""Rank correlations, tests of two correlations that share a variable, and the bootstrap of people.

The tests assume that every row is a person. If a person gives several rows, `rank_bootstrap` resamples people.
Undefined results are nan, without a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError, require_at_least
from evenhand.stats.draws import Draws
from evenhand.stats.intervals import normal_quantile, student_t
from evenhand.stats.types import FloatArray, IntArray, Interval

_CHUNK_NUMBERS = 1_000_000
_ROUNDING = 1e-12


class ClusterEstimate(NamedTuple):
    """Estimates with standard errors from resampled people, and Student's t, p-values and limits with people - 1 df."""

    value: FloatArray
    stderr: FloatArray
    df: int
    statistic: FloatArray
    p_value: FloatArray
    low: FloatArray
    high: FloatArray


def midranks(x: ArrayLike) -> FloatArray:
    """Return ranks from 1 to n; tied values get the mean of their ranks.

    Examples
    --------
    >>> midranks([3.0, 1.0, 3.0, 7.0])
    array([2.5, 1. , 2.5, 4. ])
    """
    _, codes, counts = np.unique(np.asarray(x, dtype=np.float64), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[codes], dtype=np.float64)


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Return Spearman's rank correlation: Pearson's correlation of the midranks.

    The result is nan if there are fewer than two rows or a variable is constant.

    References
    ----------
    C. Spearman (1904), The proof and measurement of association between two things, American Journal of Psychology 15.

    Examples
    --------
    >>> round(spearman([1, 2, 3, 4], [1, 3, 2, 4]), 12)
    0.8
    """
    return float(spearman_matrix(np.column_stack([_row_values(x, "x"), _row_values(y, "y")]))[0, 1])


def spearman_matrix(values: ArrayLike) -> FloatArray:
    """Return the Spearman correlations of all pairs of columns; nan for a constant column.

    Examples
    --------
    >>> spearman_matrix([[1.0, 2.0, 5.0], [2.0, 1.0, 5.0], [3.0, 3.0, 5.0]]).round(2)
    array([[1. , 0.5, nan],
           [0.5, 1. , nan],
           [nan, nan, nan]])
    """
    table = _complete_rows(values)
    ranks = np.column_stack([midranks(column) for column in table.T]) - (len(table) + 1) / 2
    products = ranks.T @ ranks
    spread = np.sqrt(np.diagonal(products))
    with np.errstate(all="ignore"):
        correlations = products / np.outer(spread, spread)
    return np.asarray(np.where(np.abs(correlations) > 1 - _ROUNDING, np.sign(correlations), correlations))


def correlation_t(r: ArrayLike, n: ArrayLike) -> FloatArray:
    """Return t = r sqrt((n - 2) / (1 - r²)) for the null of no correlation, with n - 2 degrees of freedom.

    Examples
    --------
    >>> round(float(correlation_t(0.5022, 900)), 3)
    17.403
    """
    r, n = _correlations(r), np.asarray(n, dtype=np.float64)
    with np.errstate(all="ignore"):
        return _number(np.where(n > 2, r * np.sqrt((n - 2) / (1 - r**2)), np.nan))


def spearman_interval(r: ArrayLike, n: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the interval tanh(atanh r ± z sqrt((1 + r²/2) / (n - 3))) of a rank correlation.

    References
    ----------
    D. G. Bonett and T. A. Wright (2000), Sample size requirements for estimating Pearson, Kendall and Spearman
    correlations, Psychometrika 65.

    Examples
    --------
    >>> [round(float(limit), 4) for limit in spearman_interval(0.5, 100)]
    [0.3259, 0.6413]
    """
    r, n = _correlations(r), np.asarray(n, dtype=np.float64)
    with np.errstate(all="ignore"):
        half = normal_quantile(confidence) * np.sqrt((1 + r**2 / 2) / np.where(n > 3, n - 3, np.nan))
        return Interval(np.asarray(np.tanh(np.arctanh(r) - half)), np.asarray(np.tanh(np.arctanh(r) + half)))


def hotelling_t(r_xy: ArrayLike, r_xz: ArrayLike, r_yz: ArrayLike, n: ArrayLike) -> FloatArray:
    """Return Hotelling's t for the null that x correlates equally with y and z, with n - 3 degrees of freedom.

    t = (r_xy - r_xz) sqrt((n - 3)(1 + r_yz) / (2 G)), G = 1 - r_xy² - r_xz² - r_yz² + 2 r_xy r_xz r_yz. It treats y and
    z as fixed and rejects too often if they are not (7.6 % at the 5 % level). It is included because papers report it.

    References
    ----------
    H. Hotelling (1940), The selection of variates for use in prediction, Annals of Mathematical Statistics 11.

    Examples
    --------
    >>> round(float(hotelling_t(0.55, 0.45, 0.60, 200)), 2)
    1.91
    """
    r1, r2, r3, n, area = _triple(r_xy, r_xz, r_yz, n)
    with np.errstate(all="ignore"):
        return _number((r1 - r2) * np.sqrt((n - 3) * (1 + r3) / (2 * area)))


def williams_t(r_xy: ArrayLike, r_xz: ArrayLike, r_yz: ArrayLike, n: ArrayLike) -> FloatArray:
    """Return Williams' t for the null that x correlates equally with y and z, with n - 3 degrees of freedom.

    t = (r_xy - r_xz) sqrt((n - 1)(1 + r_yz) / (2 G (n - 1) / (n - 3) + m² (1 - r_yz)³)), m the mean of r_xy and
    r_xz and G as in `hotelling_t`. This is the recommended test among the four.

    References
    ----------
    E. J. Williams (1959), The comparison of regression variables, Journal of the Royal Statistical Society B 21.
    J. H. Steiger (1980), Tests for comparing elements of a correlation matrix, Psychological Bulletin 87.

    Examples
    --------
    >>> round(float(williams_t(0.3, 0.4, 0.5, 100)), 4)
    -1.0767
    """
    r1, r2, r3, n, area = _triple(r_xy, r_xz, r_yz, n)
    mean = (r1 + r2) / 2
    with np.errstate(all="ignore"):
        below = 2 * area * (n - 1) / (n - 3) + mean**2 * (1 - r3) ** 3
        return _number((r1 - r2) * np.sqrt((n - 1) * (1 + r3) / below))


def meng_z(r_xy: ArrayLike, r_xz: ArrayLike, r_yz: ArrayLike, n: ArrayLike) -> FloatArray:
    """Return the z of Meng, Rosenthal and Rubin for the null that x correlates equally with y and z.

    z = (atanh r_xy - atanh r_xz) sqrt((n - 3) / (2 (1 - r_yz) h)), h = (1 - f q) / (1 - q), q the mean of r_xy² and
    r_xz², f = min(1, (1 - r_yz) / (2 (1 - q))). The effort paper calls it Steiger's Z.

    References
    ----------
    X.-L. Meng, R. Rosenthal and D. B. Rubin (1992), Comparing correlated correlation coefficients, Psychological
    Bulletin 111.

    Examples
    --------
    >>> round(float(meng_z(0.63, -0.03, -0.19, 15)), 2)
    1.68
    """
    r1, r2, r3, n, _ = _triple(r_xy, r_xz, r_yz, n)
    square = (r1**2 + r2**2) / 2
    with np.errstate(all="ignore"):
        f = np.minimum(1.0, (1 - r3) / (2 * (1 - square)))
        h = (1 - f * square) / (1 - square)
        return _number((np.arctanh(r1) - np.arctanh(r2)) * np.sqrt((n - 3) / (2 * (1 - r3) * h)))


def steiger_z(r_xy: ArrayLike, r_xz: ArrayLike, r_yz: ArrayLike, n: ArrayLike) -> FloatArray:
    """Return Steiger's z, with pooled correlations, for the null that x correlates equally with y and z.

    z = (atanh r_xy - atanh r_xz) sqrt((n - 3) / (2 - 2 c)), with m the mean of r_xy and r_xz and
    c = (r_yz (1 - 2 m²) - m² (1 - 2 m² - r_yz²) / 2) / (1 - m²)².

    References
    ----------
    J. H. Steiger (1980), Tests for comparing elements of a correlation matrix, Psychological Bulletin 87, formulas
    10 and 14.

    Examples
    --------
    >>> round(float(steiger_z(0.3, 0.4, 0.5, 100)), 4)
    -1.0718
    """
    r1, r2, r3, n, _ = _triple(r_xy, r_xz, r_yz, n)
    square = ((r1 + r2) / 2) ** 2
    with np.errstate(all="ignore"):
        c = (r3 * (1 - 2 * square) - square * (1 - 2 * square - r3**2) / 2) / (1 - square) ** 2
        return _number((np.arctanh(r1) - np.arctanh(r2)) * np.sqrt((n - 3) / (2 - 2 * c)))


def two_sided_p(statistic: ArrayLike, df: ArrayLike = np.inf) -> FloatArray:
    """Return the two-sided p-value of Student's t, or of a standard normal z if df is inf.

    Examples
    --------
    >>> two_sided_p([1.959964, 2.2281], [float("inf"), 10]).round(4)
    array([0.05, 0.05])
    """
    from scipy.special import ndtr, stdtr

    away, freedom = -np.abs(np.asarray(statistic, dtype=np.float64)), np.asarray(df, dtype=np.float64)
    valid = np.where((freedom > 0) & np.isfinite(freedom), freedom, np.nan)
    with np.errstate(all="ignore"):
        return _number(2 * np.where(np.isposinf(freedom), ndtr(away), stdtr(valid, away)))


def rank_bootstrap(values: ArrayLike, people: ArrayLike, *, resamples: int = 10_000, rng: Generator) -> Draws:
    """Return the Spearman correlations of bootstrap resamples of people, with all rows of each person.

    Ranks are recomputed in every resample. A resample is a count for each person; rows with equal values in all columns
    form one cell, so a resample requires a sum over cells but no sorting. The result does not depend on the order of
    the rows.

    Parameters
    ----------
    values : the columns to correlate, shape (rows, k), without missing values.
    people : the person of each row; one person per row gives the plain bootstrap of rows.
    resamples : number of resamples.
    rng : source of randomness.

    Returns
    -------
    Draws
        The correlations of the pairs of columns (0, 1), (0, 2) ... (k-2, k-1), in the order of `numpy.triu_indices(k,
        1)`.

    References
    ----------
    A. C. Davison and D. V. Hinkley (1997), Bootstrap Methods and their Application, 3.8.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> person, own = np.repeat(np.arange(30), 4), np.repeat(rng.normal(size=30), 4)
    >>> x = own + rng.normal(size=120)
    >>> draws = rank_bootstrap(np.column_stack([x, x + own]), person, resamples=500, rng=rng)
    >>> draws.estimate.shape, draws.values.shape
    ((1,), (500, 1))
    """
    from scipy.sparse import coo_array

    table = _complete_rows(values)
    person = person_codes(people, len(table))
    require_at_least("resamples", resamples, 2)
    codes = np.column_stack([np.unique(column, return_inverse=True)[1] for column in table.T])
    cells, cell = np.unique(codes, axis=0, return_inverse=True)
    size, persons = len(cells), int(person.max()) + 1
    rows_of, share = _rows_of_people(cell.ravel(), person, size)
    levels = [coo_array((np.ones(size), (cells[:, j], np.arange(size)))).tocsr() for j in range(cells.shape[1])]
    i, j = np.triu_indices(table.shape[1], 1)
    drawn = np.empty((resamples, i.size))
    step = max(1, _CHUNK_NUMBERS // (size * (table.shape[1] + 2)))
    for start in range(0, resamples, step):
        counts = rng.multinomial(persons, share, size=min(step, resamples - start))
        weight = rows_of @ counts.T.astype(np.float64)
        drawn[start : start + len(counts)] = _weighted_spearman(weight, cells, levels)[:, i, j]
    return Draws(spearman_matrix(table)[i, j], drawn)


def _rows_of_people(cell: IntArray, person: IntArray, size: int) -> tuple[Any, FloatArray]:
    """Return the sparse number of rows in each cell (size, P) by person, and each person's probability.

    If every person has one row, the people of one cell are interchangeable, and the cell replaces them.
    """
    from scipy.sparse import coo_array, eye_array

    persons = int(person.max()) + 1
    if persons == len(person):
        return eye_array(size).tocsr(), np.bincount(cell, minlength=size) / persons
    counts = coo_array((np.ones(len(person)), (cell, person)), shape=(size, persons))
    return counts.tocsr(), np.full(persons, 1 / persons)


def _weighted_spearman(weight: FloatArray, cells: IntArray, levels: Sequence[Any]) -> FloatArray:
    """Return (R, k, k) rank correlations of cells (C, k) that represent `weight` (C, R) rows each.

    `levels` contains for each column a sparse matrix (levels, C) that marks the cells of each level.
    """
    half = weight.sum(axis=0) / 2
    ranks = []
    for column, members in enumerate(levels):
        rows_in_level = members @ weight
        centred = (
            np.cumsum(rows_in_level, axis=0) - rows_in_level / 2 - half
        )  # the midrank minus the mean rank (N + 1) / 2
        ranks.append(centred[cells[:, column]])
    k = len(ranks)
    products = np.empty((weight.shape[1], k, k))
    for a in range(k):
        weighted = weight * ranks[a]
        for b in range(a, k):
            products[:, a, b] = products[:, b, a] = np.einsum("cr,cr->r", weighted, ranks[b])
    spread = np.sqrt(np.diagonal(products, axis1=1, axis2=2))
    with np.errstate(all="ignore"):
        return np.asarray(products / (spread[:, :, np.newaxis] * spread[:, np.newaxis, :]))


def contrast(draws: Draws, plus: int, minus: int) -> Draws:
    """Return the draws of the difference of two statistics, plus minus minus.

    Examples
    --------
    >>> contrast(Draws(np.array([0.7, 0.5]), np.array([[0.8, 0.5], [0.6, 0.4]])), 0, 1).values.round(2).ravel()
    array([0.3, 0.2])
    """
    estimate = draws.estimate[[plus]] - draws.estimate[[minus]]
    return Draws(estimate, draws.values[:, [plus]] - draws.values[:, [minus]])


def cluster_t(draws: Draws, people: int, confidence: float = 0.95) -> ClusterEstimate:
    """Return Student's t with people - 1 degrees of freedom, from the bootstrap's standard errors.

    With 74 people of 12 rows each, who differ but on average weigh both variables equally, it rejects a true null in
    4.5 % of samples at the 5 % level; tests that treat rows as people reject in 35 %
    (`benchmarks/coverage/study_recovery.py`).

    Examples
    --------
    >>> found = cluster_t(Draws(np.array([0.2]), np.random.default_rng(0).normal(0.2, 0.1, (2000, 1))), people=75)
    >>> [round(float(limit), 2) for limit in (found.low[0], found.high[0], found.p_value[0])]
    [0.0, 0.4, 0.05]
    """
    stderr, df = draws.stderr(), people - 1
    stderr = np.where(stderr > _ROUNDING, stderr, np.nan)  # differences by rounding alone are not a spread
    with np.errstate(all="ignore"):
        statistic = draws.estimate / stderr
    low, high = student_t(draws.estimate, stderr, df, confidence)
    return ClusterEstimate(
        value=draws.estimate,
        stderr=stderr,
        df=df,
        statistic=statistic,
        p_value=two_sided_p(statistic, df),
        low=low,
        high=high,
    )


def person_codes(people: ArrayLike, rows: int) -> IntArray:
    """Return a number from 0 for the person of each row, in the order of the people's names.

    Examples
    --------
    >>> person_codes(["bob", "ann", "bob"], 3)
    array([1, 0, 1])
    """
    names = np.asarray(people)
    if names.shape != (rows,):
        raise EvenhandError(
            "`people` must name one person a row, {rows} in all; got shape {shape}.", rows=rows, shape=names.shape
        )
    if rows == 0:
        raise EvenhandError("there are no rows.")
    return np.asarray(np.unique(names, return_inverse=True)[1], dtype=np.int64)


def _triple(
    r_xy: ArrayLike, r_xz: ArrayLike, r_yz: ArrayLike, n: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return three correlations, n, and their matrix's determinant; nan where no test is defined."""
    r1, r2, r3 = _correlations(r_xy), _correlations(r_xz), _correlations(r_yz)
    size = np.asarray(n, dtype=np.float64)
    area = 1 - r1**2 - r2**2 - r3**2 + 2 * r1 * r2 * r3
    return r1, r2, r3, np.where(size > 3, size, np.nan), np.where(area > 1e-12, area, np.nan)


def _correlations(r: ArrayLike) -> FloatArray:
    values = np.asarray(r, dtype=np.float64)
    if np.any(np.abs(values) > 1):
        raise EvenhandError(
            "a correlation must be between -1 and 1; got {flat:g}.", flat=values[np.abs(values) > 1].flat[0]
        )
    return values


def _number(values: FloatArray) -> FloatArray:
    """Return the values, as a scalar if the inputs were scalars."""
    number: FloatArray = np.asarray(values)[()]
    return number


def _row_values(values: ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise EvenhandError("`{name}` must be one value per row; got shape {shape}.", name=name, shape=array.shape)
    return array


def _complete_rows(values: ArrayLike) -> FloatArray:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise EvenhandError(
            "`values` must have one row per answer and at least two columns; got shape {shape}.", shape=table.shape
        )
    if not np.isfinite(table).all():
        bad = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise EvenhandError("`values` must be finite; row {bad} is not: leave out rows with gaps first.", bad=bad)
    return table
