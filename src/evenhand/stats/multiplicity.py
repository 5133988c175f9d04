"""Many tests at once: p-values that allow for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import require_choice
from evenhand.stats.types import FloatArray

Adjustment = Literal["bonferroni", "holm", "benjamini_hochberg"]


def adjusted_p(p_values: ArrayLike, method: Adjustment = "holm") -> FloatArray:
    """Return the p-values of one family adjusted for all of them.

    Bonferroni: min(1, m p). Holm: sorted upwards, the largest of (m - k + 1) p_k so far. Both keep the chance of any
    false rejection below alpha, however the tests hang together. Benjamini and Hochberg: sorted upwards, the smallest
    of m p_k / k from here on; of what is rejected, at most a share alpha is false on average (independent or
    positively dependent tests). The family is what is defined: nan stays nan and does not count.

    References
    ----------
    S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6.
    Y. Benjamini and Y. Hochberg (1995), Controlling the false discovery rate, Journal of the Royal Statistical
    Society B 57.

    Examples
    --------
    >>> adjusted_p([0.01, 0.04, 0.03]), adjusted_p([0.01, 0.04, 0.03], "bonferroni")
    (array([0.03, 0.06, 0.06]), array([0.03, 0.12, 0.09]))
    >>> adjusted_p([0.01, 0.04, 0.03], "benjamini_hochberg")
    array([0.03, 0.04, 0.04])
    """
    require_choice("method", method, ["bonferroni", "holm", "benjamini_hochberg"])
    p = np.asarray(p_values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(p))
    adjusted, m = np.full(p.shape, np.nan), known.size
    order = known[np.argsort(p[known], kind="stable")]
    if method == "bonferroni":
        steps = m * p[order]
    elif method == "holm":
        steps = np.maximum.accumulate((m - np.arange(m)) * p[order])
    else:
        steps = np.minimum.accumulate((m / np.arange(1, m + 1) * p[order])[::-1])[::-1]
    adjusted[order] = np.minimum(1.0, steps)
    return adjusted


def adjusted_in_tables(tables: Sequence[ArrayLike]) -> list[FloatArray]:
    """Return the p-values of several tables, adjusted for picking tables and then rows in them.

    A table counts by its Simes p-value, the least of its rows' Benjamini-Hochberg p-values. The tables are chosen from
    those by Benjamini and Hochberg at level q; in a chosen table Benjamini and Hochberg choose the rows, at level q
    times chosen tables over all tables. Of the rows of a chosen table, at most a share q is false on average over the
    chosen tables; where nothing is true, some row is chosen with a chance of at most q. The adjusted p-value of a row
    is the least q at which it is chosen. That is proved for independent and for positively dependent tests; for all
    pairs of groups, it is simulated (`benchmarks/report_level.py`). A table without a defined p-value does not count.

    References
    ----------
    Y. Benjamini and M. Bogomolov (2014), Selective inference on multiple families of hypotheses, Journal of the Royal
    Statistical Society B 76. R. J. Simes (1986), An improved Bonferroni procedure, Biometrika 73.

    Examples
    --------
    >>> adjusted_in_tables([[0.001, 0.02, 0.8], [0.3, 0.6]])
    [array([0.006, 0.06 , 0.8  ]), array([0.6, 0.6])]
    """
    within = [adjusted_p(table, "benjamini_hochberg") for table in tables]
    simes = np.array([float(np.nanmin(p)) if np.isfinite(p).any() else np.nan for p in within])
    least = np.sort(adjusted_p(simes, "benjamini_hochberg"))  # the least q at which so many tables are chosen
    least = least[~np.isnan(least)]
    chosen = np.arange(1, least.size + 1)
    adjusted = []
    for p in within:
        if not least.size:
            adjusted.append(p)
            continue
        by_number = np.maximum(least, p[:, np.newaxis] * least.size / chosen)
        adjusted.append(np.minimum(1.0, by_number.min(axis=1)))
    return adjusted
