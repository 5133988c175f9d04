"""Risk levels and passing: against brute force, other kernels, the binary case, and the jackknife."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from evenhand.stats.agreement import binary_counts, category_table, cohen_kappa, pabak_minus_kappa, weighted_kappa
from evenhand.stats.reliability.moved import (
    InfluenceEstimate,
    _resting_on,
    _stderr,
    level_estimates,
    level_metrics,
    passing,
    risk_level,
    weighted_parts,
)
from evenhand.stats.types import FloatArray


def levels(people: int = 60, replicates: int = 3, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    first = np.broadcast_to(rng.integers(0, 4, people), (replicates, people))
    shift = rng.choice([-1, 0, 0, 0, 2], (replicates, people))
    return first, np.clip(first + shift, 0, 3)


def test_levels_are_above_their_cuts() -> None:
    scores = np.array([0.0, 0.3, np.nextafter(0.3, 1), 0.6, 0.7])
    assert risk_level(scores, np.array([0.3, 0.6])).tolist() == [0, 0, 1, 1, 2]


def test_kappas_are_those_of_the_agreement_kernels() -> None:
    first, second = levels(replicates=1)
    found = level_metrics(category_table(first[0], second[0], categories=range(4)))
    for distance in ("linear", "quadratic"):
        expected = weighted_kappa(first[0], second[0], distance=distance, categories=range(4))
        assert found[f"weighted_kappa_{distance}"] == pytest.approx(expected)
    assert found["kappa"] == pytest.approx(cohen_kappa(first[0], second[0]))
    assert found["agreement"] == pytest.approx((first[0] == second[0]).mean())
    assert found["stays 2"] == pytest.approx((second[0] == 2)[first[0] == 2].mean())


def test_the_parts_add_up_and_are_byrts_with_two_levels() -> None:
    rng = np.random.default_rng(1)
    for q in (2, 3, 7):
        apart = np.abs(np.subtract.outer(np.arange(q), np.arange(q))).astype(float)
        found = weighted_parts(rng.integers(1, 30, (50, q, q)).astype(float), apart)
        total = found["prevalence_part"] + found["bias_part"]
        np.testing.assert_allclose(found["pabak"] - found["kappa"], total, atol=1e-12)
        assert (found["bias_part"] <= 1e-12).all()
    first, second = rng.integers(0, 2, 80), rng.integers(0, 2, 80)
    counts = binary_counts(first, second)
    byrt = pabak_minus_kappa(counts.kappa(), counts.prevalence_index(), counts.bias_index())
    two = weighted_parts(category_table(first, second), 1.0 - np.eye(2))
    assert two["prevalence_part"] == pytest.approx(byrt.prevalence)
    assert two["bias_part"] == pytest.approx(byrt.bias)


def test_the_influence_is_that_of_leaving_a_person_out() -> None:
    first, second = levels(300)
    everybody = np.ones(300, dtype=np.bool_)
    found = level_estimates(first, second, 4, everybody)
    for name in ("weighted_kappa_linear", "prevalence_part", "stays 3"):
        without = []
        for person in range(0, 300, 60):
            keep = np.arange(300) != person
            left = level_estimates(first[:, keep], second[:, keep], 4, everybody[1:])[name].value
            without.append(299 * (found[name].value - left))
        np.testing.assert_allclose(found[name].influence[::60], without, rtol=0.1, atol=0.02)
        assert found[name].influence.sum() == pytest.approx(0.0, abs=1e-6)


def brute_force(score: FloatArray, moved: FloatArray, alike: float, inside: Any) -> float:
    shares = []
    for after in moved:
        pairs = [(i, j) for i in np.flatnonzero(inside) for j in range(score.size) if i != j]
        near = [(i, j) for i, j in pairs if abs(score[i] - score[j]) <= alike]
        shares.append(np.mean([abs(after[i] - score[j]) > alike for i, j in near]))
    return float(np.mean(shares))


@pytest.mark.parametrize("seed", range(6))
def test_passing_is_what_looking_at_every_pair_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    score = rng.integers(0, 64, 40) / 64  # exact in binary, so that no pair is decided by rounding
    moved = np.where(rng.random((3, 40)) < 0.4, rng.integers(0, 64, (3, 40)) / 64, score)
    inside = rng.random(40) < 0.6
    found = passing(score, moved, 4 / 64, inside)
    assert found.value == pytest.approx(brute_force(score, moved, 4 / 64, inside))
    assert found.influence.sum() == pytest.approx(0.0, abs=1e-9)


def test_laws_of_passing() -> None:
    rng = np.random.default_rng(3)
    score = rng.random(200)
    moved = np.clip(score + 0.05 * rng.standard_normal((4, 200)), 0, 1)
    everybody = np.ones(200, dtype=np.bool_)
    found, order = passing(score, moved, 0.03, everybody), rng.permutation(200)
    again = passing(score[order], moved[:, order], 0.03, everybody)
    assert again.value == pytest.approx(found.value)
    np.testing.assert_allclose(again.influence, found.influence[order], atol=1e-9)
    assert passing(score, score[np.newaxis], 0.03, everybody).value == 0.0
    assert passing(score, score[np.newaxis] + 2, 0.03, everybody).value == 1.0
    assert np.isnan(passing(np.array([0.1, 0.9]), np.array([[0.1, 0.9]]), 0.01, everybody[:2]).value)
    assert passing(score, score[np.newaxis], 0.03, everybody).interval(0.95) is None
    near = passing(score, moved, 0.03, score < 0.5)
    limits = near.difference(passing(score, moved, 0.03, score >= 0.5), 0.95)
    assert limits is not None
    assert limits.low < limits.high


def test_the_influence_of_passing_is_that_of_leaving_a_person_out() -> None:
    rng = np.random.default_rng(5)
    score = rng.random(300)
    moved = np.clip(score + 0.04 * rng.standard_normal((2, 300)), 0, 1)
    everybody = np.ones(300, dtype=np.bool_)
    found = passing(score, moved, 0.03, everybody)
    for person in range(0, 300, 50):
        keep = np.arange(300) != person
        left = passing(score[keep], moved[:, keep], 0.03, everybody[1:]).value
        assert found.influence[person] == pytest.approx(299 * (found.value - left), rel=0.1, abs=0.02)


def test_limits_of_a_mean_lie_on_the_scale_of_its_distance_from_1() -> None:
    influence = np.concatenate([np.linspace(-3, 3, 40), np.zeros(60)])
    found = InfluenceEstimate(0.7, influence, 50.0)
    limits = found.interval(0.9)
    assert limits is not None
    half = student.ppf(0.95, 39) * found.stderr / 0.3
    expected = 1 - 0.3 * np.exp(half), 1 - 0.3 * np.exp(-half)
    assert (float(limits.low), float(limits.high)) == pytest.approx(expected)
    far = InfluenceEstimate(-0.9, 30 * influence, 50.0).interval(0.9)
    assert far is not None
    assert float(far.low) == -1.0
    for without in (
        InfluenceEstimate(1.0, influence, 50.0),
        InfluenceEstimate(0.7, 0 * influence, 50.0),
        InfluenceEstimate(0.7, influence, 0.0),
    ):
        assert without.interval(0.9) is None


def test_undamaged_people_rest_on_nobody() -> None:
    assert _resting_on(np.zeros(3)) == 0.0
    assert _resting_on(np.array([2.0, 2.0, 0.0])) == pytest.approx(2.0)


@pytest.mark.parametrize("n", [2, 5])
def test_the_standard_error_of_an_influence_is_that_of_a_mean(n: int) -> None:
    influence = np.linspace(-1.0, 1.0, n)
    assert _stderr(influence) == pytest.approx(np.std(influence, ddof=1) / np.sqrt(n))
