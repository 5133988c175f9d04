"""DeLong's AUC against brute force and scikit-learn, and its laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import EvenhandError
from evenhand.stats.auc import auc_influence, binned_auc_error, delong
from evenhand.stats.types import BoolArray, FloatArray


def brute_force(score: FloatArray, positive: BoolArray, weight: FloatArray) -> tuple[float, float]:
    """Value and standard error from all pairs, as in DeLong et al. (1988)."""
    x, y, v, w = score[positive], score[~positive], weight[positive], weight[~positive]
    psi = (x[:, None] > y) + 0.5 * (x[:, None] == y)
    value = float((v[:, None] * w * psi).sum() / (v.sum() * w.sum()))
    v10, v01 = (psi * w).sum(axis=1) / w.sum(), (psi * v[:, None]).sum(axis=0) / v.sum()
    variance = 0.0
    for weights, placement in ((v, v10), (w, v01)):
        m = weights.size
        variance += m / (m - 1) * (weights**2 * (placement - value) ** 2).sum() / weights.sum() ** 2
    return value, math.sqrt(variance)


def sample(rng: np.random.Generator, rows: int, distinct: int) -> tuple[FloatArray, BoolArray]:
    positive = rng.random(rows) < 0.4
    positive[:4] = [True, True, False, False]
    score = np.clip(rng.normal(0.45 + 0.1 * positive, 0.2), 0, 1)
    return np.round(score * distinct) / distinct, positive


@pytest.mark.parametrize("distinct", [1, 2, 10, 10**6])
def test_matches_brute_force_and_sklearn(distinct: int) -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(distinct)
    score, positive = sample(rng, 300, distinct)
    weight = rng.gamma(2.0, size=score.size)
    plain, weighted = delong(score, positive), delong(score, positive, weight=weight)
    ones = np.ones(score.size)
    assert (plain.value, plain.stderr) == pytest.approx(brute_force(score, positive, ones), abs=1e-12)
    assert (weighted.value, weighted.stderr) == pytest.approx(brute_force(score, positive, weight), abs=1e-12)
    assert plain.value == pytest.approx(roc_auc_score(positive, score), abs=1e-12)
    assert weighted.value == pytest.approx(roc_auc_score(positive, score, sample_weight=weight), abs=1e-12)


rows = st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(1, 4)), min_size=4, max_size=40)


@given(rows=rows, seed=st.integers(0, 10))
@settings(max_examples=60)
def test_laws(rows: list[tuple[int, bool, int]], seed: int) -> None:
    score = np.array([row[0] for row in rows], dtype=float)
    positive = np.array([row[1] for row in rows])
    count = np.array([row[2] for row in rows])
    whole = delong(score, positive, count=count)
    shuffled = np.random.default_rng(seed).permutation(score.size)

    def same(other_value: float, other_stderr: float | None = None) -> None:
        assert other_value == pytest.approx(whole.value, abs=1e-12, nan_ok=True)
        if other_stderr is not None:
            assert other_stderr == pytest.approx(whole.stderr, abs=1e-12, nan_ok=True)

    order = delong(score[shuffled], positive[shuffled], count=count[shuffled])
    same(order.value, order.stderr)
    repeated = delong(np.repeat(score, count), np.repeat(positive, count))
    same(repeated.value, repeated.stderr)
    assert (repeated.positives, repeated.negatives) == (whole.positives, whole.negatives)
    same(delong(score, positive, weight=count).value)
    same(delong(score, positive, weight=7.0 * np.ones(score.size), count=count).value, whole.stderr)
    monotone = delong(np.exp(score), positive, count=count)
    same(monotone.value, monotone.stderr)
    flipped = delong(-score, positive, count=count)
    same(1 - flipped.value, flipped.stderr)


def test_rows_without_weight_are_absent() -> None:
    rng = np.random.default_rng(5)
    score, positive = sample(rng, 40, 8)
    weight = np.where(np.arange(40) < 30, rng.random(40) + 0.1, 0.0)
    assert delong(score, positive, weight=weight) == delong(score[:30], positive[:30], weight=weight[:30])


@pytest.mark.parametrize("positive", [True, False])
def test_one_class_is_undefined(positive: bool) -> None:
    auc = delong([0.1, 0.5, 0.7], [positive] * 3)
    assert math.isnan(auc.value)
    assert math.isnan(auc.stderr)
    assert {auc.positives, auc.negatives} == {0, 3}
    value, influence = auc_influence([0.1, 0.5, 0.7], [positive] * 3)
    assert math.isnan(value)
    assert np.isnan(influence).all()


def test_small_and_bad_samples() -> None:
    alone = delong([0.1, 0.5, 0.7], [True, False, False])
    assert alone.value == 0.0
    assert math.isnan(alone.stderr)
    assert math.isnan(delong([], []).value)
    assert math.isnan(delong([0.1, np.nan, 0.7, 0.2], [True, False, True, False]).value)
    with pytest.raises(EvenhandError, match=r"`weight` must have one value per score"):
        delong([0.1, 0.2], [True, False], weight=[1.0])
    with pytest.raises(EvenhandError, match=r"`weight` must not be negative or nan; got -2.0"):
        delong([0.1, 0.2], [True, False], weight=[1.0, -2.0])


def test_influence_adds_up_to_the_variance() -> None:
    rng = np.random.default_rng(11)
    score, positive = sample(rng, 500, 50)
    weight = rng.gamma(3.0, size=score.size)
    value, influence = auc_influence(score, positive, weight)
    auc = delong(score, positive, weight=weight)
    m, n = auc.positives, auc.negatives
    variance = m / (m - 1) * (influence[positive] ** 2).sum() + n / (n - 1) * (influence[~positive] ** 2).sum()
    assert value == auc.value
    assert math.sqrt(variance) == pytest.approx(auc.stderr, rel=1e-12)
    assert influence.sum() == pytest.approx(0.0, abs=1e-12)


def test_influence_predicts_the_effect_of_a_weight() -> None:
    rng = np.random.default_rng(12)
    score, positive = sample(rng, 200, 20)
    value, influence = auc_influence(score, positive)
    weight = np.ones(score.size)
    weight[7] += 1e-6
    assert (delong(score, positive, weight=weight).value - value) / 1e-6 == pytest.approx(influence[7], rel=1e-3)


@given(seed=st.integers(0, 200), bins=st.integers(1, 12))
@settings(max_examples=40)
def test_binning_moves_the_auc_by_no_more_than_its_bound(seed: int, bins: int) -> None:
    score, positive = sample(np.random.default_rng(seed), 120, 10**6)
    binned = np.minimum(np.floor(score * bins), bins - 1)
    ones = np.bincount(binned[positive].astype(int), minlength=bins)
    zeros = np.bincount(binned[~positive].astype(int), minlength=bins)
    moved = abs(delong(score, positive).value - delong(binned, positive).value)
    assert moved <= float(binned_auc_error(ones, zeros)) + 1e-12


def test_binned_error_at_its_ends() -> None:
    bound = binned_auc_error([[4, 0], [0, 4], [3, 3], [0, 0]], [[0, 9], [0, 9], [0, 5], [1, 1]])
    np.testing.assert_allclose(bound, [0.0, 0.5, 0.25, np.nan])


def test_needs_no_pairs() -> None:
    rng = np.random.default_rng(1)
    score, positive = rng.random(300_000), rng.random(300_000) < 0.3  # 1.9e10 pairs
    auc = delong(score, positive)
    assert abs(auc.value - 0.5) < 4 * auc.stderr
    assert auc.stderr == pytest.approx(math.sqrt(1 / 12 * (1 / auc.positives + 1 / auc.negatives)), rel=1e-2)
