"""Two rates against brute force, SciPy and statsmodels, and laws that join the test and its interval."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import barnard_exact, beta, binom
from statsmodels.stats import proportion

from evenhand.errors import EvenhandError
from evenhand.stats.two_rates import RateComparison, compare_rates
from evenhand.stats.two_rates.comparison import Kind, Side
from evenhand.stats.two_rates.exact import GAMMA, upper_tail
from evenhand.stats.two_rates.kernels import largest_tail, score
from evenhand.stats.types import FloatArray

KINDS: tuple[Kind, ...] = ("difference", "ratio")
SIZES = ((1, 1), (1, 4), (5, 3), (6, 6), (9, 2))


def every_table(m: int, n: int, kind: Kind = "difference") -> RateComparison:
    """Return the comparisons of all tables with these sizes."""
    x, y = np.array(list(product(range(m + 1), range(n + 1)))).T
    return compare_rates(x, m, y, n, kind)


def slow_score(x: int, m: int, y: int, n: int, null: float, kind: Kind) -> float:
    """Return the score statistic with rates of the largest likelihood, found by a root finder."""

    factor, shift = (null, 0.0) if kind == "ratio" else (1.0, null)

    def slope(q: float) -> float:
        p = factor * q + shift
        return factor * (x - m * p) * q * (1 - q) + (y - n * q) * p * (1 - p)

    ends = (0.0, min(1.0, 1.0 / null)) if kind == "ratio" else (max(0.0, -null), min(1.0, 1.0 - null))
    inner = np.linspace(*ends, 2001)[1:-1]
    likelihood = binom.logpmf(x, m, factor * inner + shift) + binom.logpmf(y, n, inner)
    best = int(np.argmax(likelihood))
    around = inner[max(best - 1, 0)], inner[min(best + 1, inner.size - 1)]
    if slope(around[0]) * slope(around[1]) < 0:
        q = float(brentq(slope, *around, xtol=1e-15))
    else:
        q = ends[0] if best == 0 else ends[1]
    p = factor * q + shift
    away = x / m - null * y / n if kind == "ratio" else x / m - y / n - null
    variance = p * (1 - p) / m + factor**2 * q * (1 - q) / n
    return float(away / np.sqrt(variance)) if variance > 1e-14 else 0.0


def brute_tail(x: int, m: int, y: int, n: int, null: float, kind: Kind) -> float:
    """Return the one-sided p-value on a fine grid of pooled rates, over all tables."""
    scores = np.array([[slow_score(i, m, j, n, null, kind) for j in range(n + 1)] for i in range(m + 1)])
    extreme = scores >= scores[x, y] - 1e-7
    yes, size = x + y, m + n
    low = beta.ppf(GAMMA / 2, yes, size - yes + 1) if yes else 0.0
    high = beta.ppf(1 - GAMMA / 2, yes + 1, size - yes) if yes < size else 1.0
    if kind == "ratio":
        second = np.linspace(low, min(high, (m * min(null, 1.0) + n * min(1.0, 1 / null)) / size), 8001)
        second *= size / (m * null + n)
        first = null * second
    else:
        least, most = max(0.0, null), min(1.0, 1.0 + null)
        first = np.linspace(max(low + null * n / size, least), min(high + null * n / size, most), 8001)
        second = first - null
    first, second = np.clip(first, 0, 1), np.clip(second, 0, 1)
    a, b = binom.pmf(np.arange(m + 1)[:, None], m, first), binom.pmf(np.arange(n + 1)[:, None], n, second)
    chances = np.einsum("ik,ij,jk->k", a, extreme.astype(float), b)
    return float(chances.max(initial=0.0)) + GAMMA


@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 3), (4, 9)])
@pytest.mark.parametrize(("kind", "null"), [("difference", 0.0), ("difference", -0.3), ("ratio", 0.6), ("ratio", 3.0)])
def test_exact_p_values_are_those_of_brute_force(m: int, n: int, kind: Kind, null: float) -> None:
    found = every_table(m, n, kind)
    ours = found.one_sided("lower", null)
    tables = [(int(x), int(y)) for x, y in zip(found.yes_a, found.yes_b, strict=True)]
    brute = [min(1.0, brute_tail(x, m, y, n, null, kind)) for x, y in tables]
    np.testing.assert_allclose(ours, brute, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("table", [(3, 40, 9, 30), (2, 60, 6, 25), (0, 9, 4, 11)])
def test_over_all_nuisance_rates_the_test_is_barnards(table: tuple[int, int, int, int]) -> None:
    x, m, y, n = table
    theirs = barnard_exact([[x, y], [m - x, n - y]], alternative="less", pooled=True, n=256).pvalue
    ours = largest_tail((float(y), float(n), float(x), float(m)), (0.0, False), (0.0, 1.0), 2.0)
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_published_p_value_of_a_vaccine() -> None:
    """Mehta and Senchaudhuri (2003): 7 of 15 infected against 12 of 15, .0341 by Barnard's test."""
    assert compare_rates(7, 15, 12, 15).one_sided("upper") == pytest.approx(0.0341, abs=5e-5)


@pytest.mark.parametrize("table", [(400, 1000, 370, 800), (90, 9000, 250, 31_000), (40.5, 101.25, 37.5, 80.5)])
def test_asymptotic_numbers_are_those_of_statsmodels(table: tuple[float, float, float, float]) -> None:
    """Only ratios have limits: its rates at a difference are not the most likely ones."""
    found = compare_rates(*table, "ratio")
    assert found.method == ("asymptotic" if table[0] % 1 == 0 else "effective sizes")
    limits = proportion.confint_proportions_2indep(*table, method="score", compare="ratio")
    np.testing.assert_allclose(found.limits(0.95), limits, rtol=1e-8)
    for compare in ("diff", "ratio"):
        test = proportion.test_proportions_2indep(*table, method="score", compare=compare)
        assert found.p_value == pytest.approx(test.pvalue, rel=1e-8)


@pytest.mark.parametrize("table", [(400, 1000, 370, 800), (90, 9000, 250, 31_000), (60, 100, 50, 90)])
@pytest.mark.parametrize("kind", KINDS)
def test_asymptotic_limits_have_the_normal_score(table: tuple[int, int, int, int], kind: Kind) -> None:
    size = table[1] + table[3]
    for limit, z in zip(
        compare_rates(*table, kind).limits(0.9), (1.6448536269514722, -1.6448536269514722), strict=True
    ):
        assert slow_score(*table, float(limit), kind) * np.sqrt((size - 1) / size) == pytest.approx(z, rel=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "n"), [*SIZES, (70, 400)])
def test_p_value_and_limits_agree(m: int, n: int, kind: Kind) -> None:
    if m < 70:
        found = every_table(m, n, kind)
    else:  # around the levels
        y = np.arange(0, 401, 16)
        found = compare_rates(np.clip(np.rint(0.175 * y + np.linspace(-9, 9, y.size)), 0, 70), m, y, n, kind)
    equality = 1.0 if kind == "ratio" else 0.0
    for alpha in (0.001, 0.01, 0.05, 0.3):
        low, high = found.limits(1 - alpha)
        defined = ~np.isnan(low)
        excluded = (low > equality) | (high < equality)
        assert (excluded == (found.p_value < alpha))[defined].all()
        assert (defined | (found.p_value == 1.0)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "n"), SIZES)
def test_limits_are_nested_and_hold_the_value(m: int, n: int, kind: Kind) -> None:
    found = every_table(m, n, kind)
    inner = found.value, found.value
    for confidence in (0.5, 0.8, 0.95, 0.99, 0.999):
        low, high = found.limits(confidence)
        defined = ~np.isnan(low) & ~np.isnan(inner[0])
        assert (low <= inner[0])[defined].all()
        assert (high >= inner[1])[defined].all()
        inner = low, high


@pytest.mark.parametrize(("m", "n"), [*SIZES, (1000, 900)])
def test_exchanging_the_groups_mirrors_every_number(m: int, n: int) -> None:
    x, y = np.array([0, m // 3, m]), np.array([n // 2, n, 0])
    for kind in KINDS:
        found, swapped = compare_rates(x, m, y, n, kind), compare_rates(y, n, x, m, kind)
        assert (found.p_value == swapped.p_value).all()
        low, high = found.limits(0.9)
        back = swapped.limits(0.9)
        if kind == "difference":
            assert (low == -back.high).all()
            assert (high == -back.low).all()
        else:
            with np.errstate(divide="ignore"):
                np.testing.assert_allclose(low, 1 / back.high, rtol=1e-14)


@pytest.mark.parametrize(("m", "n"), [*SIZES, (1000, 900)])
def test_counting_the_others_mirrors_every_number(m: int, n: int) -> None:
    x, y = np.array([0, m // 3, m]), np.array([n // 2, n, 0])
    found, complement = compare_rates(x, m, y, n), compare_rates(m - x, m, n - y, n)
    np.testing.assert_allclose(found.p_value, complement.p_value, rtol=1e-13)
    for low, high in ((found.limits().low, complement.limits().high), (found.limits().high, complement.limits().low)):
        np.testing.assert_allclose(low, -high, rtol=0, atol=1e-9)


def test_kinds_share_their_p_value() -> None:
    x, y = np.arange(0, 80, 7), np.arange(79, -1, -7)
    assert (compare_rates(x, 80, y, 300).p_value == compare_rates(x, 80, y, 300, "ratio").p_value).all()


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_do_not_depend_on_each_other(kind: Kind) -> None:
    x, m, y, n = np.array([3, 500, 0, 20]), np.array([30, 1000, 5, 90]), np.array([9, 480, 2, 1]), 800
    together = compare_rates(x, m, y, n, kind)
    limits = np.stack(together.limits(np.array([0.9, 0.95, 0.99, 0.8])))
    for i, confidence in enumerate((0.9, 0.95, 0.99, 0.8)):
        alone = compare_rates(x[i], m[i], y[i], n, kind)
        assert alone.p_value == together.p_value[i]
        assert (np.stack(alone.limits(confidence)) == limits[:, i]).all()


@pytest.mark.parametrize("is_ratio", [False, True])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (6, 6), (15, 4), (3, 25)])
def test_scores_rise_with_the_first_count_and_fall_with_the_second(m: int, n: int, is_ratio: bool) -> None:
    """Of all tables as extreme as one only the edge is searched."""
    for position in (-3.0, -0.7, -0.1, 0.0, 1e-6, 0.2, 0.95, 4.0):
        if is_ratio or abs(position) < 1:
            scores = np.array(
                [
                    [score((float(x), float(m), float(y), float(n)), (position, is_ratio)) for y in range(n + 1)]
                    for x in range(m + 1)
                ]
            )
            assert (np.diff(scores, axis=0) > -1e-9).all()
            assert (np.diff(scores, axis=1) < 1e-9).all()


def test_a_bound_touches_the_null_at_the_level_of_its_test() -> None:
    nulls: tuple[tuple[Kind, float], ...] = (("difference", 0.05), ("ratio", 0.8), ("difference", 0.0))
    sides: tuple[Side, ...] = ("lower", "upper")
    for kind, null in nulls:
        for table in ((12, 40, 9, 60), (300, 1000, 280, 900)):
            found = compare_rates(*table, kind)
            for side in sides:
                p = float(found.one_sided(side, null))
                if p < 0.5:
                    assert found.bound(side, 1 - p) == pytest.approx(null, abs=2e-3)
    assert found.bound("lower", 0.95) == found.limits(0.9).low


def test_undefined_comparisons() -> None:
    nobody = compare_rates(0, 0, 3, 10)
    assert nobody.method == "none"
    assert np.isnan([nobody.value, nobody.p_value, *nobody.limits()]).all()
    none_yes, all_yes = (compare_rates([0, 10], [8, 10], [0, 20], [50, 20], kind) for kind in KINDS)
    assert none_yes.p_value.tolist() == all_yes.p_value.tolist() == [1.0, 1.0]
    assert (none_yes.limits().low < 0).all()
    assert np.isnan([all_yes.value[0], all_yes.limits().low[0], all_yes.limits().high[0]]).all()
    assert all_yes.limits().low[1] < 1 < all_yes.limits().high[1]


@pytest.mark.parametrize(("n", "m"), [(20, 30), (2000.5, 300.25)])
def test_ratio_with_a_rate_of_0_has_one_limit(n: float, m: float) -> None:
    low, high = compare_rates(0, n, 6, m, "ratio").limits()
    assert low == 0.0
    assert 0 < high < np.inf
    low, high = compare_rates(6, m, 0, n, "ratio").limits()
    assert 0 < low < np.inf
    assert high == np.inf
    assert np.isnan(compare_rates(6, m, 0, n, "ratio").value)


def test_fractional_counts_are_compared_asymptotically() -> None:
    fractional = compare_rates(4.5, 40.25, 9.5, 60.5)
    assert fractional.method == "effective sizes"
    theirs = proportion.test_proportions_2indep(4.5, 40.25, 9.5, 60.5, method="score")
    assert fractional.p_value == pytest.approx(theirs.pvalue, rel=1e-8)
    assert compare_rates(0.1 * 3 * 10, 10, 0.3 * 20, 20).method == "exact"


def test_more_counted_than_people_is_an_error() -> None:
    with pytest.raises(EvenhandError, match=r"some of the group; got 11\.0 of 10\.0"):
        compare_rates(11, 10, 2, 5)


def test_enough_people_make_the_exact_p_value_small() -> None:
    """Rare events in groups of different sizes, where the asymptotic p-value is far too small."""
    tables: FloatArray = np.array([[4, 80, 5, 2000], [10, 80, 20, 2000]], dtype=float)
    found = compare_rates(*tables.T)
    approximate = [proportion.test_proportions_2indep(*table, method="score").pvalue for table in tables]
    assert (found.p_value > 3 * np.array(approximate)).all()
    assert upper_tail((10, 80, 20, 2000), 0.0, False) < 1e-4
