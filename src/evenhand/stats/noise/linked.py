"""Columns that are made of others: a mistake in a source that leaves the product as it was contradicts itself."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from evenhand.stats.types import FloatArray

_FIRST_LOOK = 256


class FixedProduct(NamedTuple):
    """A column that is the product of a perturbed column and another one, and is held fixed itself."""

    column: int
    perturbed: int
    factor: int


def fixed_products(features: FloatArray, perturbed: Collection[int]) -> list[FixedProduct]:
    """Find columns that are not perturbed and equal a perturbed column times another one, in every row.

    A rater who errs about the source would err about the product too. Held fixed, it can turn the sign of a gap: let it
    follow with `with_derived(model, products(...))`.

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
    [FixedProduct(column=2, perturbed=0, factor=1)]
    """
    look = features[np.linspace(0, len(features) - 1, min(_FIRST_LOOK, len(features))).astype(int)]
    varies = (features != features[:1]).any(axis=0)
    fixed = [column for column in range(features.shape[1]) if column not in perturbed and varies[column]]
    found = []
    for source in sorted(perturbed):
        candidates = look[:, [source], np.newaxis] * look[:, :, np.newaxis] == look[:, np.newaxis, fixed]
        for factor, at in np.argwhere(candidates.all(axis=0)):
            column = fixed[at]
            if factor in (source, column) or not varies[factor]:
                continue
            if np.array_equal(features[:, source] * features[:, factor], features[:, column]):
                found.append(FixedProduct(column, source, int(factor)))
    return sorted(found)
