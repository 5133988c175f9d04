"""The indicators of adverse impact: published examples, brute force, and laws."""

from __future__ import annotations

from fractions import Fraction
from math import comb, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from evenhand.stats.adverse_impact import AdverseImpact, adverse_impact, highest_rate

COUNTS = st.lists(
    st.integers(1, 25).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=2, max_size=5
)


def of(counts: list[tuple[int, int]], **options: Any) -> AdverseImpact:
    return adverse_impact([n for n, _ in counts], [x for _, x in counts], **options)


def test_the_ratios_of_the_questions_and_answers() -> None:
    """UGESP Questions and Answers: 60, 45, 48 and 51 per cent; 80 per cent exactly is not below four fifths."""
    found = adverse_impact([100, 100, 100, 100], [60, 45, 48, 51])
    assert found.ratio.round(2).tolist() == [1.0, 0.75, 0.8, 0.85]
    assert found.below.tolist() == [False, True, False, False]


def test_the_small_example_of_the_questions_and_answers() -> None:
    """Three of 20 men and one of 10 women: two thirds, and one woman in place of a man turns it round."""
    found = adverse_impact([20, 10], [3, 1])
    assert found.ratio[1] == pytest.approx(2 / 3)
    assert found.below.tolist() == [False, True]
    assert found.flip == ("no", "overtakes")


def test_fishers_own_tea() -> None:
    """The lady tasting tea, 3 of 4 against 1 of 4: 34/70, two-sided."""
    assert adverse_impact([4, 4], [3, 1]).p_value[1] == pytest.approx(34 / 70)


def test_standard_deviations_and_shortfall_by_hand() -> None:
    """80 whites of whom 48 and 40 Blacks of whom 12 were hired, by hand."""
    found = adverse_impact([80, 40], [48, 12])
    assert found.ratio[1] == pytest.approx(0.5)
    assert found.deviations[1] == pytest.approx(-0.3 / sqrt(0.5 * 0.5 * (1 / 80 + 1 / 40)))
    assert found.shortfall[1] == pytest.approx(40 * 0.5 - 12)
    assert found.to_four_fifths.tolist() == [0, 8]  # 0.8 x 0.6 x 40 = 19.2, so 20 are needed


@settings(max_examples=30, deadline=None)
@given(COUNTS)
def test_fishers_test_is_that_of_exact_fractions_and_of_scipy(counts: list[tuple[int, int]]) -> None:
    found = of(counts)
    m, y = counts[found.highest]
    for at, (n, x) in enumerate(counts):
        if at == found.highest:
            assert np.isnan(found.p_value[at])
            continue
        total = comb(n + m, x + y)
        chance = [Fraction(comb(n, k) * comb(m, x + y - k), total) for k in range(x + y + 1) if k <= n]
        assert found.p_value[at] == pytest.approx(float(sum(p for p in chance if p <= chance[x])), abs=1e-12)
        assert found.p_value[at] == fisher_exact(np.array([[x, n - x], [y, m - y]])).pvalue


@settings(max_examples=30, deadline=None)
@given(COUNTS)
def test_what_is_missing_to_four_fifths_is_found_by_trying(counts: list[tuple[int, int]]) -> None:
    found = of(counts)
    m, y = counts[found.highest]
    for at, (n, x) in enumerate(counts):
        needed = next(k for k in range(n + 1) if Fraction(x + k, n) >= Fraction(4, 5) * Fraction(y, m))
        assert found.to_four_fifths[at] == needed
        assert found.below[at] == (needed > 0)


@settings(max_examples=30, deadline=None)
@given(COUNTS)
def test_flip_one_is_found_by_moving_one_person(counts: list[tuple[int, int]]) -> None:
    found = of(counts)
    for at in range(len(counts)):
        assert found.flip[at] == ("no" if at == found.highest else moved_by_hand(counts, at, found.highest))


def moved_by_hand(counts: list[tuple[int, int]], at: int, highest: int) -> str:
    def is_below(rates: list[Fraction]) -> bool:
        return rates[at] < Fraction(4, 5) * max(rates)

    before = is_below([Fraction(x, n) for n, x in counts])
    one = 1 if before else -1
    after = [x + one * ((k == at) - (k == highest)) for k, (_, x) in enumerate(counts)]
    if any(x < 0 or x > n for x, (n, _) in zip(after, counts, strict=True)):
        return "no"
    rates = [Fraction(x, n) for x, (n, _) in zip(after, counts, strict=True)]
    if is_below(rates) == before:
        return "no"
    return "overtakes" if before and rates[at] > rates[highest] else "crosses"


@settings(max_examples=30, deadline=None)
@given(COUNTS, st.randoms(use_true_random=False))
def test_the_order_of_the_groups_does_not_matter(counts: list[tuple[int, int]], random: Any) -> None:
    order = list(range(len(counts)))
    random.shuffle(order)
    found, again = of(counts), of([counts[at] for at in order])
    assert again.rate[again.highest] == found.rate[found.highest]
    for name in ("rate", "ratio", "difference", "below"):
        before, after = getattr(found, name), getattr(again, name)
        assert np.array_equal(before[order], after, equal_nan=True), name


def test_the_highest_rate_is_that_of_a_large_group() -> None:
    assert highest_rate([80, 40, 2], [48, 12, 2]) == 2
    assert highest_rate([80, 40, 2], [48, 12, 2], least=10) == 0
    assert highest_rate([3, 2], [1, 2], least=10) == 1
    assert highest_rate([10, 20], [5, 10]) == 1
    assert adverse_impact([80, 40, 2], [48, 12, 2], least=10).ratio[2] == pytest.approx(1 / 0.6)


@pytest.mark.parametrize("selected", [[0, 0], [5, 7]])
def test_where_all_or_none_are_selected_no_deviation_is_invented(selected: list[int]) -> None:
    found = adverse_impact([5, 7], selected)
    assert np.isnan(found.deviations).all()
    assert np.nanmax(found.p_value) == 1
    assert not found.below.any()
    assert np.isnan(found.ratio).all() == (sum(selected) == 0)


def test_groups_of_one() -> None:
    found = adverse_impact([1, 1], [1, 0])
    assert (found.highest, found.ratio.tolist(), found.flip[1]) == (0, [1.0, 0.0], "overtakes")
