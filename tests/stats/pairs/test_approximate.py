"""Random pairs: within four standard errors of the exact value, with the same interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evenhand.stats.pairs import approximate, fairness, individual_fairness
from evenhand.stats.pairs.approximate import PairDraw, _leverage, aligned_bounds, individual_fairness_sampled
from evenhand.stats.pairs.inputs import ScoredPeople, some_pairs
from evenhand.stats.types import FloatArray

Columns = tuple[FloatArray, FloatArray, FloatArray]
MakeColumns = Callable[[str, int], Columns]


@pytest.mark.parametrize("kind", ["continuous", "ties", "mixed"])
def test_within_four_standard_errors(kind: str, surveyed: bool, people: MakeColumns) -> None:
    columns = people(kind, 300)
    survey = np.random.default_rng(1).gamma(2.0, 1.0, 300) if surveyed else None
    exact, sampled = (
        individual_fairness(*columns, weight=0.6577, survey_weight=survey, method=method)
        for method in ("strips", "sampled")
    )
    assert abs(sampled.value - exact.value) <= sampled.error < 2e-3
    assert sampled.violated == pytest.approx(exact.violated, abs=4e-3)
    assert sampled.stderr == pytest.approx(exact.stderr, rel=0.03)
    assert sampled.row_means is None
    assert sampled.pairs == 2**20


def test_pairs_are_drawn_in_proportion_to_both_weights() -> None:
    survey = np.array([0.0, 1.0, 2.0, 5.0])
    nobody = np.zeros(4)
    draw, rng = (
        PairDraw(ScoredPeople(score=nobody, effort=nobody, aggregate=nobody, survey=survey)),
        np.random.default_rng(0),
    )
    i, j = draw.pairs(400_000, rng)
    found = np.bincount(4 * i + j, minlength=16).reshape(4, 4) / 400_000
    expected = np.outer(survey, survey) * ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(found, expected / expected.sum(), atol=0.004)
    k = draw.partners(i, rng)
    assert (k != i).all()
    after = np.bincount(k[i == 3], minlength=4) / (i == 3).sum()
    np.testing.assert_allclose(after, [0, 1 / 3, 2 / 3, 0], atol=0.005)


def test_fair_scores_have_no_interval(people: MakeColumns) -> None:
    result = individual_fairness(*people("repeats_effort", 100), method="sampled")
    assert (result.value, result.error) == (1.0, 0.0)
    assert np.isnan([result.low, result.high, result.stderr]).all()


@pytest.mark.parametrize("seed", range(6))
def test_the_commonest_value_lies_on_a_point_of_the_coarse_grid_and_no_room_is_wasted(seed: int) -> None:
    rng, size = np.random.default_rng(seed), 33
    values = np.append(rng.normal(0, 1, 50), np.full(5, rng.normal(0, 0.5)))
    low, high = aligned_bounds(values, size)
    step = (high - low) / (size - 1)
    place = (values[-1] - low) / step
    assert place == pytest.approx(2 * round(place / 2), abs=1e-9)
    assert low <= values.min()
    assert high >= values.max()
    assert min(values.min() - low, high - values.max()) == pytest.approx(0.0, abs=1e-9)
    assert step <= 1.2 * (values.max() - values.min()) / (size - 1)


def test_equal_weights_have_the_leverage_of_no_weights() -> None:
    """4 n / (n - 2)², as for the jackknife of a mean over pairs; with weights 2, 1, 1, 1 by hand."""
    zeros = np.zeros(5)
    assert _leverage(ScoredPeople(score=zeros, effort=zeros, aggregate=zeros)) == pytest.approx(20 / 9)
    np.testing.assert_allclose(
        _leverage(ScoredPeople(score=zeros, effort=zeros, aggregate=zeros, survey=np.ones(5))), np.full(5, 20 / 9)
    )
    some = ScoredPeople(score=zeros[:4], effort=zeros[:4], aggregate=zeros[:4], survey=np.array([2.0, 1.0, 1.0, 1.0]))
    g = np.array([6.0, 4.0, 4.0, 4.0])  # each weight times that of the others
    np.testing.assert_allclose(_leverage(some), 4 * 18 * g / (18 - 2 * g) ** 2)


def test_random_pairs_report_how_many_are_done(people: MakeColumns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approximate, "_DRAWS", 2**8)
    monkeypatch.setattr(approximate, "_SAMPLE_CHUNK", 2**6)
    calls: list[tuple[int, int]] = []
    columns = people("continuous", 50)
    found = individual_fairness_sampled(
        ScoredPeople(*columns),
        0.5,
        confidence=0.95,
        rng=np.random.default_rng(0),
        progress=lambda *said: calls.append(said),
    )
    assert calls == [(128, 512), (256, 512), (384, 512), (512, 512)]
    assert (found.pairs, found.method) == (512, "sampled")
    assert abs(found.value - individual_fairness(*columns, 0.5).value) <= found.error


def test_a_distance_of_ones_own_is_enumerated_up_to_a_number_of_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "EXACT_ROWS", 5)
    for n, method in ((5, "enumerated"), (6, "sampled")):
        assert fairness._choose_own(ScoredPeople(*np.random.default_rng(0).random((3, n))), "auto") == method


def test_different_people_are_counted_in_a_part_as_long_as_that_says_enough() -> None:
    many, few = np.arange(100.0), np.arange(100.0) % 2
    assert fairness._different(many[:5], many[:5], many[:5], 5) == 5
    assert fairness._different(few, few, few, 5) == 2
    assert 5 < fairness._different(many, many, many, 5) < 100  # a part of them
    hidden = np.where(np.arange(100) % 5 == 0, np.arange(100) // 5 % 5, np.arange(100.0) + 100)
    assert fairness._different(hidden, hidden, hidden, 5) == 85  # every fifth alone has five


def test_all_pairs_are_taken_as_long_as_there_are_no_more_than_the_most() -> None:
    i, j = some_pairs(np.arange(362.0))
    assert i.size == 362 * 361 // 2
    assert (i < j).all()
    assert some_pairs(np.arange(363.0))[0].size == 2**16


def drawn_people(columns: FloatArray) -> FloatArray:
    """Return what the drawn pairs consist of: six numbers each."""
    return np.concatenate([columns[:, side] for side in some_pairs(*columns)])


@pytest.mark.parametrize("part", [None, 128, 400_000, 1_000_000])
def test_last_bits_draw_no_other_pairs(part: int | None) -> None:
    """Of any numbers, and of those of few digits, which must not lie where rounding goes either way."""
    rng = np.random.default_rng(0)
    columns = rng.random((3, 5_000)) if part is None else rng.integers(0, part, (3, 5_000)) / part
    shaken = np.nextafter(columns, np.random.default_rng(1).choice([-9.0, 9.0], columns.shape))
    np.testing.assert_allclose(drawn_people(shaken), drawn_people(columns), rtol=1e-14, atol=1e-300)


def test_the_order_of_rows_draws_no_other_pairs_even_where_people_are_nearly_alike() -> None:
    columns = np.random.default_rng(2).integers(0, 3, (3, 20_000)) / 7 + np.arange(20_000) // 2 * 1e-12
    shuffled = columns[:, np.random.default_rng(3).permutation(20_000)]
    np.testing.assert_array_equal(drawn_people(shuffled), drawn_people(columns))


def test_people_who_differ_in_their_weights_alone_are_not_taken_for_one_another() -> None:
    rng = np.random.default_rng(4)
    columns, weight = rng.integers(0, 5, (3, 2_000)) / 5, rng.gamma(2.0, size=2_000)
    order = rng.permutation(2_000)
    one = individual_fairness(*columns, survey_weight=weight)
    other = individual_fairness(*columns[:, order], survey_weight=weight[order])
    assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-12)
