"""The studentised permutation against all permutations, exact levels, and laws of order and names."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from evenhand.errors import EvenhandError
from evenhand.stats.permutation import MeanComparison, compare_means
from evenhand.stats.permutation.cells import two_group_cells
from evenhand.stats.permutation.means import DRAWS, MORE_DRAWS
from evenhand.stats.permutation.reference import Approximated, Drawn
from evenhand.stats.types import FloatArray


def compare(x: FloatArray, y: FloatArray, **how: object) -> MeanComparison:
    """Compare two samples, one person a cell."""
    in_a = np.repeat([1, 0], [x.size, y.size])
    return compare_means(np.concatenate([x, y]), in_a, 1 - in_a, **how)  # type: ignore[arg-type]


def welch(x: FloatArray, y: FloatArray) -> float:
    away = x.mean() - y.mean()
    variance = x.var(ddof=1) / x.size + y.var(ddof=1) / y.size
    return 0.0 if abs(away) < 1e-12 else float(away / np.sqrt(variance)) if variance > 1e-20 else float(np.inf * away)


def all_statistics(pooled: FloatArray, first: int) -> FloatArray:
    """Return t of every assignment of `first` people to the first group."""
    everybody = set(range(pooled.size))
    found = [
        welch(pooled[list(chosen)], pooled[sorted(everybody - set(chosen))])
        for chosen in combinations(range(pooled.size), first)
    ]
    return np.array(found)


def numbers(found: MeanComparison, alpha: float = 0.05) -> list[float]:
    return [found.estimate, found.p_value, *found.limits(alpha), found.variance_a, found.variance_b]


SMALL = {
    "continuous": np.array([0.1, 0.5, 0.15, 0.9, 0.33, 0.72, 0.64, 0.21, 0.05]),
    "ties": np.array([0.0, 0.0, 1.0, 0.5, 0.5, 0.5, 0.0, 1.0, 1.0]),
    "rare": np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 1.0]),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("first", [2, 4])
def test_draws_have_the_distribution_of_all_permutations(name: str, first: int) -> None:
    pooled = SMALL[name]
    exact = all_statistics(pooled, first)
    for chosen in ([0, 1, 2, 3][:first], [8, 7, 3, 6][:first]):
        in_a = np.isin(np.arange(9), chosen)
        found = compare(pooled[in_a], pooled[~in_a])
        t = welch(pooled[in_a], pooled[~in_a])
        tails = [(exact >= t - 1e-6).mean(), (exact <= t + 1e-6).mean()]
        away = [tail for tail, is_near in zip(tails, (t > 0, t < 0), strict=True) if is_near]
        expected = min(1.0, 2 * float(min(away, default=1.0)))
        assert found.p_value == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("first", [3, 4])
def test_level_is_exact_over_all_assignments(first: int) -> None:
    for pooled in SMALL.values():
        p_values = []
        for chosen in combinations(range(9), first):
            in_a = np.isin(np.arange(9), chosen)
            p_values.append(compare(pooled[in_a], pooled[~in_a]).p_value)
        for alpha in (0.05, 0.1, 0.2):
            assert (np.array(p_values) < alpha).mean() <= alpha + 0.005


def fraud(rng: np.random.Generator, people: int, share: float = 0.05) -> FloatArray:
    """Draw scores of which a few are near 1."""
    return np.where(rng.random(people) < share, 1 - 0.03 * rng.random(people), rng.beta(1, 20, people))


@pytest.mark.parametrize("contrast", ["difference", "ratio"])
def test_limits_exclude_equality_exactly_if_p_is_below_alpha(contrast: str) -> None:
    rng = np.random.default_rng(4)
    equal = 0.0 if contrast == "difference" else 1.0
    for number in range(60):
        x = fraud(rng, 60) if number % 3 else np.zeros(40)
        found = compare(x, fraud(rng, 30 + number, 0.15), contrast=contrast, bounds=(0.0, 1.0), level=0.01)
        for alpha in (0.5, 0.2, 0.05, 0.01, found.p_value * (1 - 1e-6), found.p_value * (1 + 1e-6)):
            if alpha < 1.0:
                low, high = found.limits(alpha)
                assert (low > equal or high < equal) == (found.p_value < alpha)
                assert low <= found.estimate <= high


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.3, 1.0]), st.integers(0, 4), st.integers(0, 4)), min_size=2),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_exchanged_groups_mirror_and_order_does_not_matter(
    cells: list[tuple[float, int, int]], is_ratio: bool, random: object
) -> None:
    value, a, b = np.array(cells, dtype=np.float64).T
    strata = np.arange(value.size) % 2
    how = {"contrast": "ratio" if is_ratio else "difference", "bounds": (0.0, 1.0)}
    straight, swapped = (compare_means(value, *sides, strata=strata, **how) for sides in ((a, b), (b, a)))  # type: ignore[arg-type]
    shuffled = list(range(value.size))
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    renamed = compare_means(value[shuffled], a[shuffled], b[shuffled], strata=1 - strata[shuffled], **how)  # type: ignore[arg-type]
    assert numbers(renamed) == pytest.approx(numbers(straight), rel=1e-9, nan_ok=True)
    assert renamed.p_value == straight.p_value or np.isnan(straight.p_value)
    if not np.isnan(straight.estimate + swapped.estimate):
        assert swapped.p_value == straight.p_value
        low, high = straight.limits(0.1)
        mirrored = swapped.limits(0.1)
        with np.errstate(divide="ignore"):
            turned = 1 / np.array([high, low]) if is_ratio else -np.array([high, low])
        np.testing.assert_allclose(mirrored, turned, rtol=1e-9, atol=1e-12)


def test_cells_equal_people() -> None:
    rng = np.random.default_rng(0)
    x, y = np.round(fraud(rng, 90), 1), np.round(fraud(rng, 60), 1)
    value, place = np.unique(np.concatenate([x, y]), return_inverse=True)
    counts = [np.bincount(part, minlength=value.size) for part in np.split(place, [90])]
    assert numbers(compare_means(value, *counts)) == numbers(compare(x, y))
    assert numbers(compare_means(value, *counts, weights=np.full(value.size, 3.0))) == numbers(compare(x, y))


def test_weights_by_hand() -> None:
    rng = np.random.default_rng(1)
    x, y, w = rng.random(40), rng.random(30), rng.choice([0.5, 1.0, 4.0], 70)
    found = compare(x, y, weights=w)
    mean = np.average(x, weights=w[:40])
    assert found.mean_a == pytest.approx(mean)
    assert found.variance_a == pytest.approx(40 / 39 * (w[:40] ** 2 * (x - mean) ** 2).sum() / w[:40].sum() ** 2)
    assert found.effective[1] == pytest.approx(w[40:].sum() ** 2 / (w[40:] ** 2).sum())


def test_strata_are_standardised_and_keep_their_people() -> None:
    rng = np.random.default_rng(2)
    stratum = rng.integers(0, 3, 400)
    in_a = rng.random(400) < np.array([0.1, 0.5, 0.9])[stratum]
    score = 0.2 * stratum + 0.1 * rng.random(400)  # groups differ only by their strata
    crude = compare_means(score, in_a, ~in_a)
    found = compare_means(score, in_a, ~in_a, strata=stratum)
    assert crude.p_value <= crude.smallest_p
    assert found.p_value > 0.05
    share = np.bincount(stratum) / 400
    by_hand = sum(
        share[s] * (score[in_a & (stratum == s)].mean() - score[~in_a & (stratum == s)].mean()) for s in range(3)
    )
    assert found.estimate == pytest.approx(by_hand)
    variance = sum(
        share[s] ** 2 * np.var(score[in_a & (stratum == s)], ddof=1) / (in_a & (stratum == s)).sum() for s in range(3)
    )
    assert found.variance_a == pytest.approx(variance)


def test_a_stratum_of_one_group_is_left_out() -> None:
    value = np.array([0.1, 0.4, 0.2, 0.9, 0.8])
    a, b = np.array([5, 3, 4, 7, 0]), np.array([4, 6, 5, 0, 0])
    alone = compare_means(value, a, b, strata=[0, 0, 1, 2, 3])
    assert numbers(alone) == numbers(compare_means(value[:3], a[:3], b[:3], strata=[0, 0, 1]))


def test_people_on_one_side_only_have_nothing_to_compare() -> None:
    found = compare_means([0.1, 0.2], [3, 4], [0, 0])
    assert found.basis == "none"
    assert np.isnan([found.estimate, found.p_value, *found.limits()]).all()


def test_one_person_has_the_variance_of_everybody() -> None:
    rest = np.random.default_rng(3).random(30)
    found = compare(np.array([0.5]), rest)
    assert found.variance_a == pytest.approx(np.append(rest, 0.5).var(ddof=1))
    assert found.p_value > 0.05
    assert compare(np.array([9.0]), rest).p_value == pytest.approx(2 / 31, abs=0.01)  # one of 31 can be the outlier


def test_a_group_without_variance_has_limits_of_bounded_values() -> None:
    hurt = np.append(np.zeros(540), np.linspace(0.1, 0.6, 60))
    found = compare(np.zeros(60), hurt, bounds=(0.0, 1.0))
    assert (found.basis, found.p_value < 0.05) == ("bounds", True)  # all 60 miss the tenth that is hurt: .9^60 = .002
    assert found.limits(0.05)[0] < -0.035
    few = compare(np.zeros(8), hurt, bounds=(0.0, 1.0))
    assert few.p_value > 0.2
    assert few.limits(0.05)[1] > 0.3  # 8 people may miss 1 - .025^(1/8) = 37 %


def test_constants() -> None:
    same = compare(np.full(20, 0.3), np.full(10, 0.3), bounds=(0.0, 1.0))
    low, high = same.limits()
    assert (same.p_value, same.estimate) == (1.0, 0.0)
    assert low < -0.1 < 0.1 < high
    apart = compare(np.zeros(5), np.ones(5), bounds=(0.0, 1.0))
    assert apart.p_value == pytest.approx(2 / 252, abs=0.002)
    assert apart.limits()[1] < 0 > apart.limits(0.001)[0]


def test_a_shift_and_a_scale_change_nothing() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=3_000), rng.normal(0.08, 2, size=2_000)
    found, moved = compare(x, y), compare(1e6 + 1e-3 * x, 1e6 + 1e-3 * y)
    assert found.basis == moved.basis == "approximation"
    assert moved.p_value == pytest.approx(found.p_value, rel=1e-4)


def test_more_draws_near_the_level() -> None:
    x, y = (np.random.default_rng(seed).beta(0.2, 2, 40) for seed in (6, 7))
    drawn = set()
    for shift in (0.0, 0.03, 0.04, 0.05, 0.1, 0.3):
        found = compare(x + shift, y)
        assert (found.draws == MORE_DRAWS) == (found.p_value <= 0.1)
        drawn |= {found.draws}
    assert drawn == {DRAWS, MORE_DRAWS}


def test_the_first_draws_are_the_same_for_any_number() -> None:
    values = np.random.default_rng(8).random(60)
    for value in (values, np.round(values, 1)):  # people and cells are drawn
        cells = two_group_cells(value, np.arange(60) < 20, np.arange(60) >= 20)
        assert cells is not None
        few, many = cells.draw(500), cells.draw(5_000)
        assert set(few.tolist()) <= set(many.tolist())


@pytest.mark.parametrize("name", ["exponential", "fraud", "merged"])
def test_the_approximation_has_the_tails_of_the_draws(name: str) -> None:
    rng = np.random.default_rng(9)
    people, draws = ((2_000, 400), 100_000) if name == "exponential" else ((30_000, 3_000), 20_000)
    value = rng.exponential(size=sum(people)) if name == "exponential" else fraud(rng, sum(people), 0.025)
    in_a = np.arange(value.size) < people[0]
    cells = two_group_cells(value, in_a, ~in_a)
    assert cells is not None
    reference, drawn = Approximated(*cells.shape()), cells.draw(draws)
    for tail in (0.025, 0.005):
        low, high = (float(reference._quantile(z)) for z in (ndtri(tail), -ndtri(tail)))
        error = 4 * np.sqrt(tail / draws) + 0.06 * tail
        assert (drawn <= low).mean() == pytest.approx(tail, abs=error)
        assert (drawn >= high).mean() == pytest.approx(tail, abs=error)


def test_beyond_its_range_the_approximation_gives_no_smaller_p() -> None:
    rng = np.random.default_rng(10)
    found = compare(rng.normal(size=400), rng.normal(3, 1, size=400))
    assert found.basis == "approximation"
    assert found.p_value == found.smallest_p > 1e-9
    assert np.isinf(found.limits(found.smallest_p)).all()
    assert np.isinf(Drawn(np.zeros(99, dtype=np.float32)).ends(0.02, 0.0)).all()


@pytest.mark.parametrize(
    ("value", "a", "b", "how"),
    [
        ([np.nan, 1.0], [1, 1], [1, 1], {}),
        ([0.0, 1.0], [1, -1], [1, 1], {}),
        ([0.0, 1.0], [1, 1], [1, 1], {"weights": [1.0, 0.0]}),
        ([0.0, 1.0], [1, 1, 1], [1, 1], {}),
    ],
)
def test_what_cannot_be_compared_is_refused(
    value: list[float], a: list[int], b: list[int], how: dict[str, list[float]]
) -> None:
    with pytest.raises(EvenhandError):
        compare_means(value, a, b, **how)  # type: ignore[arg-type]
