"""The bootstrap of group values where rows come in clusters, and splits that keep clusters whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from evenhand.errors import require_at_least
from evenhand.stats.improvability.resampling import ValueDraws
from evenhand.stats.improvability.rows import Rows, with_everyone
from evenhand.stats.improvability.split import Split
from evenhand.stats.improvability.utilities import ratios
from evenhand.stats.intervals import normal_quantile, t_quantile
from evenhand.stats.types import FloatArray, IntArray

_CONFIDENCE = 0.95
_NUMBERS = 4_000_000  # drawn at a time


def bootstrap_clusters(
    rows: Rows, cluster: IntArray, *, resamples: int = 10_000, rng: Generator, part: IntArray | None = None
) -> ValueDraws:
    """Resample whole clusters, with decisions held fixed, and return the values of every resample.

    Draws of few clusters vary too little. Their distances from the estimate are multiplied by sqrt(C / (C - 1)) times
    Student's over the normal 97.5 % quantile, with C the fewest clusters of a group and Satterthwaite's degrees of
    freedom for its sizes n_i, (sum n_i²)² / sum n_i⁴ - 1.

    Parameters
    ----------
    rows
        The test rows.
    cluster
        (n,) the cluster of each row.
    resamples
        Number of resamples J.
    rng
        Source of randomness. The result depends on it, on the rows by cluster, on the order of clusters, and on J.
    part
        (n,) the part of each row, if each part has its own candidate; no cluster is in two parts.

    References
    ----------
    A. C. Cameron, J. B. Gelbach and D. L. Miller (2008), Bootstrap-based improvements for inference with clustered
    errors, Review of Economics and Statistics 90.

    Examples
    --------
    >>> from evenhand.stats.improvability import get_utility, make_rows
    >>> rng = np.random.default_rng(0)
    >>> y, old, new = np.repeat(rng.integers(0, 2, (3, 40)), 10, axis=1)  # all rows of a cluster are alike
    >>> cluster = np.repeat(np.arange(40), 10)
    >>> rows = make_rows(cluster % 2, y, old, new, [get_utility("classification")], names="ab")
    >>> draws = bootstrap_clusters(rows, cluster, resamples=2_000, rng=rng)
    >>> value, spread = draws.estimate[0, 0, 0], draws.values[:, 0, 0, 0].std()
    >>> bool(spread > np.sqrt(value * (1 - value) / 20))  # that of 20 clusters and not of 200 rows
    True
    """
    require_at_least("resamples", resamples, 1)
    _, first, place = np.unique(cluster, return_index=True, return_inverse=True)
    columns = rows.terms.reshape(len(rows), -1)
    totals = np.zeros((first.size, len(rows.names), columns.shape[1]))
    np.add.at(totals, (place, rows.group), columns)
    sums = np.zeros((resamples, *totals.shape[1:]))
    part_of = np.zeros(first.size, dtype=np.int64) if part is None else part[first]
    for number in np.unique(part_of):
        _add_draws(sums, totals[part_of == number], rng)
    both = with_everyone(np.concatenate([totals.sum(axis=0)[np.newaxis], sums]))
    values = ratios(both.reshape(*both.shape[:2], *rows.terms.shape[1:]))
    estimate, drawn = values[0], values[1:]
    return ValueDraws(
        estimate=estimate,
        values=estimate + _widening(rows, place) * (drawn - estimate),
        spread=None,
        spreads=None,
        rows=len(rows),
        cells=first.size,
        method="cells",
    )


def _add_draws(sums: FloatArray, totals: FloatArray, rng: Generator) -> None:
    """Add the sums of as many clusters as there are, drawn with replacement."""
    clusters, step = len(totals), max(1, _NUMBERS // len(totals))
    for start in range(0, len(sums), step):
        size = min(step, len(sums) - start)
        picked = rng.integers(clusters, size=(size, clusters)) + np.arange(size)[:, np.newaxis] * clusters
        counts = np.bincount(picked.ravel(), minlength=size * clusters).reshape(size, clusters)
        sums[start : start + size] += (counts @ totals.reshape(clusters, -1)).reshape(size, *totals.shape[1:])


def _widening(rows: Rows, place: IntArray) -> float:
    clusters, dof = fewest_clusters(rows, place)
    t, z = float(t_quantile(dof, _CONFIDENCE)), normal_quantile(_CONFIDENCE)
    return float(np.sqrt(clusters / (clusters - 1.0)) * t / z) if clusters > 1 else float("nan")


def fewest_clusters(rows: Rows, cluster: IntArray) -> tuple[int, float]:
    """Return the fewest clusters of a group with rows that count, and the fewest degrees of freedom."""
    counts = (rows.terms[..., 1] != 0).any(axis=(1, 2))
    sizes = [
        np.bincount(cluster[counts & (rows.group == group)]).astype(np.float64) for group in range(len(rows.names))
    ]
    with np.errstate(all="ignore"):
        dof = [np.nan_to_num((n**2).sum() ** 2 / (n**4).sum() - 1.0) for n in sizes]
    return min(int((n > 0).sum()) for n in sizes), float(max(min(dof), 1.0))


def rows_of_clusters(splits: Sequence[Split], cluster: IntArray) -> tuple[Split, ...]:
    """Return splits of rows from splits of clusters.

    Examples
    --------
    >>> split = Split(np.array([0, 2]), np.array([1]))
    >>> [part.tolist() for part in rows_of_clusters([split], np.array([0, 0, 1, 2, 1]))[0]]
    [[0, 1, 3], [2, 4]]
    """
    return tuple(Split(*(np.flatnonzero(np.isin(cluster, part)) for part in split)) for split in splits)
