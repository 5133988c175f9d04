"""Adjusted p-values: as other libraries have them, and as the procedures reject."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import ConfigError
from evenhand.stats.multiplicity import adjusted_in_tables, adjusted_p

METHODS: dict[Literal["bonferroni", "holm", "benjamini_hochberg"], str] = {
    "bonferroni": "bonferroni",
    "holm": "holm",
    "benjamini_hochberg": "fdr_bh",
}
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@settings(deadline=None)  # the first example imports statsmodels
@given(P_VALUES)
@pytest.mark.slow
def test_adjusted_p_values_equal_statsmodels(p: list[float]) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    for method, name in METHODS.items():
        np.testing.assert_allclose(adjusted_p(p, method), multitest.multipletests(p, method=name)[1], rtol=1e-12)


def test_undefined_p_values_are_no_part_of_the_family() -> None:
    np.testing.assert_array_equal(adjusted_p([0.01, np.nan, 0.02], "bonferroni"), [0.02, np.nan, 0.04])
    np.testing.assert_array_equal(adjusted_p([np.nan]), [np.nan])
    with pytest.raises(ConfigError, match="did you mean 'holm'"):
        adjusted_p([0.1], "hom")  # type: ignore[arg-type]


def chosen_rows(p: list[float], q: float) -> set[int]:
    """Return the rows that Benjamini and Hochberg choose at level q, by their definition."""
    order = np.argsort(p)
    last = [k for k in range(1, len(p) + 1) if p[order[k - 1]] <= q * k / len(p)]
    return set(order[: max(last)].tolist()) if last else set()


def chosen(tables: list[list[float]], q: float) -> set[tuple[int, int]]:
    """Return table and row of what the two steps choose at level q, by their definition."""
    simes = [min(len(p) / (k + 1) * value for k, value in enumerate(sorted(p))) for p in tables]
    picked = chosen_rows(simes, q)
    return {(t, row) for t in picked for row in chosen_rows(tables[t], q * len(picked) / len(tables))}


@given(st.lists(P_VALUES, min_size=1, max_size=5), st.floats(0.001, 0.999))
def test_the_adjusted_p_value_of_a_row_is_the_least_level_at_which_it_is_chosen(
    tables: list[list[float]], q: float
) -> None:
    adjusted = adjusted_in_tables(tables)
    every = {(t, row): p for t, values in enumerate(adjusted) for row, p in enumerate(values)}
    if all(abs(p - q) > 1e-9 for p in every.values()):  # on the boundary rounding decides
        assert {place for place, p in every.items() if p < q} == chosen(tables, q)


def test_one_table_is_benjamini_and_hochberg() -> None:
    p = [0.01, 0.5, 0.02, np.nan]
    np.testing.assert_array_equal(adjusted_in_tables([p])[0], adjusted_p(p, "benjamini_hochberg"))


def test_tables_without_tests_change_nothing_and_the_order_of_tables_neither() -> None:
    tables: list[Any] = [[0.001, 0.02], [0.3, 0.6, 0.04]]
    usual = adjusted_in_tables(tables)
    with_empty = adjusted_in_tables([[np.nan], *tables, []])
    np.testing.assert_array_equal(np.concatenate(with_empty)[1:], np.concatenate(usual))
    np.testing.assert_array_equal(np.concatenate(adjusted_in_tables(tables[::-1])), np.concatenate(usual[::-1]))


def test_where_nothing_is_true_some_row_is_chosen_at_most_so_often() -> None:
    rng = np.random.default_rng(0)
    false = [min(min(p) for p in adjusted_in_tables(list(rng.random((5, 8))))) <= 0.05 for _ in range(2_000)]
    assert np.mean(false) == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / 2_000))
