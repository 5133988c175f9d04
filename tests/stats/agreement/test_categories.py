"""Many raters with missing ratings, against statsmodels, krippendorff and pairs of ratings one by one."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from evenhand.errors import EvenhandError
from evenhand.stats.agreement import (
    ALPHA_SCALES,
    AlphaScale,
    ac1,
    alpha,
    bennett_s,
    cohen_kappa,
    conger_kappa,
    fleiss_kappa,
    pabak,
)
from evenhand.stats.types import FloatArray


def ratings(seed: int, people: int = 30, raters: int = 4, q: int = 3, missing: float = 0.0) -> FloatArray:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, q, people)
    found = np.where(rng.random((raters, people)) < 0.6, truth, rng.integers(0, q, (raters, people))).astype(float)
    found[rng.random((raters, people)) < missing] = np.nan
    return found


@pytest.mark.parametrize("seed", range(8))
def test_fleiss_and_bennett_are_those_of_statsmodels(seed: int) -> None:
    found = ratings(seed)
    table, _ = aggregate_raters(found.T.astype(int))
    assert fleiss_kappa(*found) == pytest.approx(statsmodels_fleiss(table), abs=1e-13)
    assert bennett_s(*found) == pytest.approx(statsmodels_fleiss(table, method="randolph"), abs=1e-13)


def test_two_raters_are_the_special_cases() -> None:
    r, s = ratings(1, raters=2, q=2)
    assert conger_kappa(r, s) == pytest.approx(float(cohen_kappa(r, s)), abs=1e-14)
    assert bennett_s(r, s) == pytest.approx(float(pabak(r, s)), abs=1e-14)


def agreeing(found: FloatArray) -> float:
    """The share of agreeing ordered pairs of ratings of a person, averaged over people with two ratings."""
    shares = []
    for person in found.T:
        known = person[~np.isnan(person)]
        if len(known) >= 2:
            shares.append(np.mean([a == b for a, b in permutations(known, 2)]))
    return float(np.mean(shares))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_chance_agreement_follows_its_definitions(missing: float) -> None:
    for seed in range(6):
        found = ratings(seed, missing=missing)
        observed = agreeing(found)
        known = ~np.isnan(found)
        kept = known.any(axis=0)
        shares = [np.mean((found == k).sum(axis=0)[kept] / known.sum(axis=0)[kept]) for k in range(3)]
        own = np.array(
            [[(rater[mask] == k).mean() for k in range(3)] for rater, mask in zip(found, known, strict=True)]
        )
        pairs = np.mean([own[g] @ own[h] for g, h in permutations(range(len(own)), 2)])
        expected = {
            fleiss_kappa: sum(share**2 for share in shares),
            ac1: sum(share * (1 - share) for share in shares) / 2,
            bennett_s: 1 / 3,
            conger_kappa: pairs,
        }
        for function, chance in expected.items():
            value = (observed - chance) / (1 - chance)
            assert function(*found) == pytest.approx(value, abs=1e-12)
            text = np.where(np.isnan(found), None, np.array(["x", "y", "z"])[np.nan_to_num(found).astype(int)])
            assert function(*text) == pytest.approx(value, abs=1e-12)


@pytest.mark.replication
def test_ac1_of_the_example_of_gwet() -> None:
    """Twelve subjects, four raters, five categories: Gwet's worked example with missing ratings, AC1 = 0.77544."""
    table = [
        [1, 1, None, 1],
        [2, 2, 3, 2],
        [3, 3, 3, 3],
        [3, 3, 3, 3],
        [2, 2, 2, 2],
        [1, 2, 3, 4],
        [4, 4, 4, 4],
        [1, 1, 2, 1],
        [2, 2, 2, 2],
        [None, 5, 5, 5],
        [None, None, 1, 1],
        [None, None, 3, None],
    ]
    raters = np.array(table, dtype=object).T
    assert ac1(*raters) == pytest.approx(0.77544, abs=5e-6)
    assert fleiss_kappa(*raters) == pytest.approx(0.76117, abs=5e-6)
    assert bennett_s(*raters) == pytest.approx(0.77273, abs=5e-6)
    assert conger_kappa(*raters) == pytest.approx(0.76282, abs=5e-6)
    assert alpha(*raters) == pytest.approx(0.74342, abs=5e-6)


@pytest.mark.replication
@pytest.mark.parametrize("scale", ALPHA_SCALES)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_alpha_is_that_of_krippendorff(scale: AlphaScale, missing: float) -> None:
    krippendorff = pytest.importorskip("krippendorff", reason="krippendorff is not installed (GPL, for tests only)")
    for seed in range(8):
        found = ratings(seed, q=4, missing=missing)
        expected = krippendorff.alpha(reliability_data=found, level_of_measurement=scale)
        assert alpha(*found, scale=scale) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("scale", ALPHA_SCALES)
def test_alpha_follows_the_definition_by_pairs(scale: AlphaScale) -> None:
    found = ratings(3, people=12, raters=3, q=4, missing=0.2) * 1.5 - 2.0
    units = [[v for v in person if not np.isnan(v)] for person in found.T]
    units = [unit for unit in units if len(unit) >= 2]
    values = [v for unit in units for v in unit]

    def rank(v: float) -> float:
        return float(sum(w < v for w in values) + sum(w == v for w in values) / 2)

    def apart(v: float, w: float) -> float:
        if scale == "nominal":
            return float(v != w)
        return float((v - w) ** 2 if scale == "interval" else (rank(v) - rank(w)) ** 2)

    within = sum(sum(apart(v, w) for v, w in permutations(unit, 2)) / (len(unit) - 1) for unit in units) / len(values)
    across = np.mean([apart(v, w) for v, w in permutations(values, 2)])
    assert alpha(*found, scale=scale) == pytest.approx(1 - within / across, abs=1e-12)


@pytest.mark.parametrize("scale", ALPHA_SCALES)
def test_alpha_over_simulations_is_alpha_of_each(scale: AlphaScale) -> None:
    simulated = np.stack([ratings(seed, missing=0.1) for seed in range(5)], axis=1)
    each = [alpha(*simulated[:, i], scale=scale) for i in range(5)]
    np.testing.assert_allclose(alpha(*simulated, scale=scale), each, atol=1e-12)


def test_alpha_needs_no_memory_for_pairs_of_people() -> None:
    """A million scores, all different: pairs of people would be 10^12 numbers."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=1_000_000)
    y = x + rng.normal(0, 0.5, size=1_000_000)
    assert alpha(x, y, scale="interval") == pytest.approx(1 - 0.25 / (2 * 1.125), abs=0.01)


def test_a_category_nobody_used_counts_where_it_should() -> None:
    r, s = [0, 0, 1, 1], [0, 1, 1, 1]
    assert fleiss_kappa(r, s, categories=[0, 1, 2]) == pytest.approx(float(fleiss_kappa(r, s)))
    assert bennett_s(r, s, categories=[0, 1, 2]) == pytest.approx((0.75 - 1 / 3) / (2 / 3))
    assert ac1(r, s, categories=[0, 1, 2]) > ac1(r, s)


def test_one_rater_is_too_few() -> None:
    for function in (fleiss_kappa, conger_kappa, bennett_s, ac1, alpha):
        with pytest.raises(EvenhandError, match="at least two raters; got 1"):
            function([0, 1])
