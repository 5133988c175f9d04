"""Selection pooled over events, beside statsmodels, SciPy, R's printed figures and enumeration."""

from __future__ import annotations

from itertools import product
from math import comb, isnan

import numpy as np
import pytest
from scipy.stats import fisher_exact
from statsmodels.stats.contingency_tables import StratifiedTable

from evenhand.stats import pooled_events
from evenhand.stats.pooled_events import PooledSelection, pooled_selection

BERKELEY = np.array(
    [
        *((512, 313, 89, 19), (353, 207, 17, 8), (120, 205, 202, 391)),
        *((138, 279, 131, 244), (53, 138, 94, 299), (22, 351, 24, 317)),
    ]
)


def of_tables(tables: np.ndarray) -> PooledSelection:
    """Return the comparison of the last two columns with the first two: selected and not selected, by event."""
    men, not_men, women, not_women = tables.T
    return pooled_selection(women, women + not_women, men, men + not_men)


def drawn(seed: int, events: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(9, 60, (events, 4))


@pytest.mark.parametrize("tables", [BERKELEY, drawn(1, 2), drawn(2, 7), drawn(3, 40)], ids=len)
def test_it_is_what_statsmodels_computes(tables: np.ndarray) -> None:
    found = of_tables(tables)
    theirs = StratifiedTable([np.array([[c, d], [a, b]], float) for a, b, c, d in tables])
    assert found.odds_ratio == pytest.approx(theirs.oddsratio_pooled, rel=1e-10)
    assert found.ratio == pytest.approx(theirs.riskratio_pooled, rel=1e-10)
    assert found.deviations**2 == pytest.approx(theirs.test_null_odds().statistic, rel=1e-10)
    assert found.consistency == pytest.approx(theirs.test_equal_odds(adjust=True).pvalue, rel=1e-8)


def test_berkeley_is_what_r_prints() -> None:
    found = of_tables(BERKELEY)
    assert 1 / found.odds_ratio == pytest.approx(0.9046968, abs=5e-8)  # mantelhaen.test(UCBAdmissions)
    assert (abs(found.observed - found.expected) - 0.5) ** 2 / (
        (found.observed - found.expected) / found.deviations
    ) ** 2 == pytest.approx(1.4269, abs=5e-5)  # the same with the continuity correction


def test_the_limits_are_those_of_greenland_and_robins_by_hand() -> None:
    found = of_tables(np.array([[10, 20, 4, 26], [8, 12, 3, 27]]))
    x, n, y, m = np.array([4, 3]), np.array([30, 30]), np.array([10, 8]), np.array([30, 20])
    total = n + m
    variance = ((n * m * (x + y) - x * y * total) / total**2).sum() / ((x * m / total).sum() * (y * n / total).sum())
    reach = 1.959963984540054 * np.sqrt(variance)
    assert np.log([found.low, found.high]) == pytest.approx(np.log(found.ratio) + np.array([-reach, reach]), rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_one_event_is_fishers_test(seed: int) -> None:
    tables = drawn(seed, 1)
    a, b, c, d = tables[0]
    assert of_tables(tables).p_value == pytest.approx(fisher_exact(np.array([[c, d], [a, b]])).pvalue, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_p_value_is_that_of_enumeration(seed: int) -> None:
    tables = np.random.default_rng(seed).integers(0, 6, (3, 4)) + np.array([1, 1, 0, 1])
    chances: dict[int, float] = {}
    supports = []
    for a, b, c, d in tables.tolist():
        n, m, t = c + d, a + b, a + c
        ways = {x: comb(n, x) * comb(m, t - x) / comb(n + m, t) for x in range(max(0, t - m), min(n, t) + 1)}
        supports.append(ways.items())
    for combination in product(*supports):
        total = sum(x for x, _ in combination)
        chances[total] = chances.get(total, 0.0) + float(np.prod([chance for _, chance in combination]))
    observed = chances[int(tables[:, 2].sum())]
    expected = sum(chance for chance in chances.values() if chance <= observed * (1 + 1e-7))
    assert of_tables(tables).p_value == pytest.approx(min(1.0, expected), rel=1e-9)


def test_large_counts_use_the_normal_approximation(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = of_tables(BERKELEY).p_value
    monkeypatch.setattr(pooled_events, "MOST_EXACT", 10)
    assert of_tables(BERKELEY).p_value == pytest.approx(exact, rel=0.1)


def test_events_without_a_choice_say_nothing() -> None:
    informative = np.array([[10, 20, 4, 26]])
    silent = np.array([[10, 0, 5, 0], [0, 10, 0, 5], [3, 4, 0, 0], [0, 0, 2, 2]])
    assert of_tables(np.vstack([informative, silent])) == pytest.approx(of_tables(informative), nan_ok=True)
    nothing = of_tables(silent)
    assert (nothing.events, nothing.n) == (0, 0)
    assert all(map(isnan, (nothing.ratio, nothing.p_value, nothing.consistency)))


def test_order_of_events_and_swapped_sides() -> None:
    found, shuffled = of_tables(BERKELEY), of_tables(BERKELEY[::-1])
    swapped = of_tables(BERKELEY[:, [2, 3, 0, 1]])
    assert shuffled == pytest.approx(found)
    assert swapped.deviations == pytest.approx(-found.deviations)
    assert swapped.p_value == pytest.approx(found.p_value)
    assert swapped.ratio == pytest.approx(1 / found.ratio)
    assert (swapped.low, swapped.high) == pytest.approx((1 / found.high, 1 / found.low))


def test_nobody_of_a_group_selected() -> None:
    found = of_tables(np.array([[10, 20, 0, 26], [8, 12, 0, 27]]))
    assert found.ratio == 0
    assert isnan(found.low)
    assert found.p_value < 0.001
