"""Columns that are made of others: a mistake in a source that leaves the product as it was contradicts itself."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from evenhand.stats.types import BoolArray, FloatArray, IntArray

ENOUGH = 0.99
"""In this share of rows a column must be what it is made of."""

_MOST_ROWS, _LOOK = 5_000, 128
_LEAST_ROWS, _LEAST_OTHERS = 20, 8  # with fewer, columns that have nothing to do with each other can agree
_LEAST_SMOOTH = 50
_TELLING = 0.9
_NEAR = 0.95


class FixedProduct(NamedTuple):
    """A column that is the product of a perturbed column and another one, in this share of rows, and is held fixed."""

    column: int
    perturbed: int
    factor: int
    share: float


class FixedFunction(NamedTuple):
    """A column that is a function of a perturbed column and is held fixed itself.

    `share` of the rows have the value that most rows with the same source have. `repeated` is false where hardly a
    value of the source comes twice, and only the order of rows shows the function.
    """

    column: int
    perturbed: int
    share: float
    repeated: bool


def fixed_products(features: FloatArray, perturbed: Collection[int]) -> list[FixedProduct]:
    """Find columns that are not perturbed and equal a perturbed column times another one, in 99 % of rows.

    A rater who errs about the source would err about the product too. Held fixed, it can turn the sign of a gap: let it
    follow with `with_derived(model, products(...))`. Where the product differs from either factor, and where the column
    is not what it mostly is, nine rows of ten must agree too: a column that is nearly always 0 is no product.

    Parameters
    ----------
    features
        (people, d) raw features.
    perturbed
        Columns that go wrong or follow their source.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sex, race = rng.integers(0, 2, (2, 50)).astype(float)
    >>> fixed_products(np.column_stack([sex, race, sex * race]), [0])
    [FixedProduct(column=2, perturbed=0, factor=1, share=1.0)]
    """
    found = []
    for column in _fixed(features, perturbed):
        other = _not_the_mode(features[:, column])
        if other.sum() < _LEAST_OTHERS:
            continue
        look = np.concatenate([_spread(np.flatnonzero(other), _LOOK), _spread(np.arange(len(features)), _LOOK)])
        rows, wanted = features[look], features[look, column, np.newaxis]
        for source in sorted(perturbed):
            agree = _same(rows[:, [source]] * rows, wanted).mean(axis=0)
            for factor in np.flatnonzero(agree >= _TELLING).tolist():
                share = _product_share(features, column, source, factor, other)
                if factor not in (source, column) and share is not None:
                    found.append(FixedProduct(column, source, factor, share))
    return sorted(found)


def fixed_functions(features: FloatArray, perturbed: Collection[int]) -> list[FixedFunction]:
    """Find columns that are not perturbed and are a function of one perturbed column: its square, its complement.

    Each person's value is foretold by that of the others with the same value of the source; persons without such others
    by the commonest value. It must be right in 99 % of rows, and in three of four that do not have the commonest value.
    Where the source hardly repeats a value, Chatterjee's coefficient must be 0.95 of what it is for a rising function:
    it goes to 1 if and only if one column is a function of the other.

    Parameters
    ----------
    features
        (people, d) raw features.
    perturbed
        Columns that go wrong or follow their source.

    References
    ----------
    S. Chatterjee (2021), A new coefficient of correlation, Journal of the American Statistical Association 116.

    Examples
    --------
    >>> age, other = np.random.default_rng(0).integers(18, 60, (2, 300)).astype(float)
    >>> fixed_functions(np.column_stack([age, age**2, other]), [0])
    [FixedFunction(column=1, perturbed=0, share=1.0, repeated=True)]
    """
    if len(features) < _LEAST_ROWS:
        return []
    rows = _spread(np.arange(len(features)), _MOST_ROWS)
    np.random.default_rng(0).shuffle(rows)  # rows with one value of the source in no order
    columns = _fixed(features, perturbed)
    codes = {at: np.unique(features[rows, at], return_inverse=True)[1] for at in {*columns, *perturbed}}
    found = []
    for column in columns:
        counts = np.bincount(codes[column])
        if counts.sum() - counts.max() < _LEAST_OTHERS:
            continue
        for source in sorted(perturbed):
            repeated = _foretold(codes[source], codes[column])
            if repeated or _smooth(codes[source], codes[column]):
                share = _agreeing(features[:, source], features[:, column])
                found.append(FixedFunction(column, source, share, repeated))
    return found


def _fixed(features: FloatArray, perturbed: Collection[int]) -> list[int]:
    varies = (features != features[:1]).any(axis=0)
    return [column for column in range(features.shape[1]) if column not in perturbed and varies[column]]


def _spread(rows: IntArray, most: int) -> IntArray:
    return rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.int64)]


def _not_the_mode(values: FloatArray) -> BoolArray:
    known, counts = np.unique(values[_spread(np.arange(len(values)), _MOST_ROWS)], return_counts=True)
    return np.asarray(values != known[np.argmax(counts)])


def _same(one: FloatArray, other: FloatArray) -> BoolArray:
    return np.asarray(np.abs(one - other) <= 1e-9 * (1.0 + np.abs(other)))


def _product_share(features: FloatArray, column: int, source: int, factor: int, other: BoolArray) -> float | None:
    """Return the share of rows in which a column is the product of two, None where it is not in enough of them."""
    one, two, wanted = features[:, source], features[:, factor], features[:, column]
    made = one * two
    agrees = _same(made, wanted)
    if agrees.mean() < ENOUGH or agrees[other].mean() < _TELLING:
        return None
    for matters in (~_same(made, one), ~_same(made, two)):
        if agrees[matters].sum() < _LEAST_OTHERS or agrees[matters].mean() < _TELLING:
            return None
    return float(agrees.mean())


def _foretold(source: IntArray, column: IntArray) -> bool:
    """Tell whether people with the same source foretell a column."""
    counts = np.bincount(column)
    pair, times = np.unique(source * counts.size + column, return_counts=True)
    of = pair // counts.size
    size, most = np.bincount(source), np.zeros(int(source.max()) + 1, dtype=np.int64)
    np.maximum.at(most, of, times)
    right = most[(most > 1) & (2 * most > size)].sum()
    alone = size[source] == 1
    right += np.count_nonzero(column[alone] == np.argmax(counts))
    wrong = source.size - right
    return bool(wrong <= (1 - ENOUGH) * source.size and wrong <= 0.25 * (source.size - counts.max()))


def _smooth(source: IntArray, column: IntArray) -> bool:
    """Tell whether Chatterjee's coefficient is nearly what it is for a rising function."""
    if source.size < _LEAST_SMOOTH:
        return False
    counts = np.bincount(column)
    at_most = np.cumsum(counts)
    n, at_least = source.size, source.size - at_most + counts
    whole = 2.0 * float((counts * at_least * (n - at_least)).sum()) / n
    rank = at_most[column[np.argsort(source, kind="stable")]]
    found = 1.0 - float(np.abs(np.diff(rank)).sum()) / whole
    return found >= _NEAR * (1.0 - float(n - at_most[0]) / whole) > 0


def _agreeing(source: FloatArray, column: FloatArray) -> float:
    """Return the share of rows with the value that is commonest among rows with the same source."""
    known, code = np.unique(column, return_inverse=True)
    of = np.unique(source, return_inverse=True)[1]
    pair, times = np.unique(of * known.size + code, return_counts=True)
    most = np.zeros(int(of.max()) + 1, dtype=np.int64)
    np.maximum.at(most, pair // known.size, times)
    return float(most.sum() / len(source))
