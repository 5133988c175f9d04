"""Different rows of ratings: as NumPy finds them, only faster."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats.agreement.ratings import distinct_rows


@pytest.mark.parametrize("raters", [1, 2, 7, 40])
def test_the_different_rows_are_those_of_numpy(raters: int) -> None:
    rng = np.random.default_rng(raters)
    for rows in (
        rng.integers(0, 3, (200, raters)).astype(float),
        rng.random((200, raters)),  # 40 columns of 200 values: more than a whole number holds
        np.where(rng.random((200, raters)) < 0.2, np.inf, rng.integers(0, 2, (200, raters))),
    ):
        values, counted = np.unique(rows, axis=0, return_counts=True)
        found, times, place = distinct_rows(rows)
        assert np.array_equal(found[place], rows)
        assert np.array_equal(found, values)
        assert np.array_equal(times, counted)
