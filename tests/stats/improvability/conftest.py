"""Test rows that several files use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evenhand.stats.improvability import Rows, get_utility, make_rows


@pytest.fixture
def rows_of() -> Callable[..., Rows]:
    """Make rows with a capacity-like selection: whole-number or continuous outcomes, any number of groups."""

    def make(
        n: int = 400,
        seed: int = 0,
        groups: int = 2,
        continuous: bool = False,
        utilities: tuple[str, ...] = ("calibration",),
    ) -> Rows:
        rng = np.random.default_rng(seed)
        group = rng.integers(groups, size=n)
        need = rng.gamma(2.0, 1.5, n) + 0.5 * group
        y = need if continuous else rng.poisson(need).astype(float)
        if utilities != ("calibration",):
            y = (y > 2).astype(float)
        old = need + rng.normal(0, 3, n) - 1.0 * group > 4
        new = need + rng.normal(0, 1, n) > 4.5
        return make_rows(
            group, y, old, new, utilities=[get_utility(name) for name in utilities], names="abcdef"[:groups]
        )

    return make
