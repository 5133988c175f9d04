"""Strips and blocks against the definition, the laws that both must keep, and the worst pairs of all."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.stats.pairs import PairFairness, exact, individual_fairness, worst_pairs
from evenhand.stats.pairs.fairness import individual_fairness_counts
from evenhand.stats.pairs.inputs import ScoredPeople, check_people, merge_people
from evenhand.stats.types import FloatArray

EXACT = ("strips", "blocks", "auto")
WEIGHTS = (0.0, 0.5, 0.6577, 1.0)
Columns = tuple[FloatArray, FloatArray, FloatArray]
MakeColumns = Callable[[str, int], Columns]
Maker = Callable[..., Any]


def pick(columns: Columns, at: Any) -> Columns:
    score, effort, aggregate = columns
    return score[at], effort[at], aggregate[at]


def rows_of(result: PairFairness) -> FloatArray:
    assert result.row_means is not None
    return result.row_means


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("method", EXACT)
def test_equals_the_definition(
    method: Any, weight: float, kind: str, surveyed: bool, people: MakeColumns, by_definition: Maker
) -> None:
    score, effort, aggregate = people(kind, 300)
    survey = np.random.default_rng(1).gamma(2.0, 1.0, 300) if surveyed else None
    result = individual_fairness(score, effort, aggregate, weight, survey_weight=survey, method=method)
    truth = by_definition(score, effort, aggregate, weight, survey)
    assert result.value == pytest.approx(truth.value, abs=1e-13)
    assert result.violated == pytest.approx(truth.violated, abs=1e-13)
    np.testing.assert_allclose(rows_of(result), truth.row_means, rtol=0, atol=1e-12)
    assert (result.n, result.pairs, result.error) == (300, 44_850, 0.0)


@pytest.mark.parametrize("method", ["strips", "blocks"])
def test_two_people(method: Any) -> None:
    result = individual_fairness([0.2, 0.9], [0.1, 0.4], [0.0, 0.0], 1.0, method=method)
    assert result.value == pytest.approx(0.6, abs=1e-15)
    assert (result.violated, result.pairs) == (1.0, 1)
    assert np.isnan([result.low, result.high, result.stderr]).all()


@pytest.mark.parametrize("method", ["strips", "blocks"])
def test_scores_that_repeat_the_effort_are_fair_to_the_last_bit(method: Any, people: MakeColumns) -> None:
    result = individual_fairness(*people("repeats_effort", 2_000), weight=0.5, method=method)
    assert (result.value, result.violated) == (1.0, 0.0)
    assert np.isnan([result.low, result.high, result.stderr]).all()


def test_blocks_equal_strips(people: MakeColumns, surveyed: bool) -> None:
    columns = people("discrete", 4_000)
    survey = np.random.default_rng(1).gamma(2.0, 1.0, 4_000) if surveyed else None
    a, b = (individual_fairness(*columns, weight=0.6577, survey_weight=survey, method=m) for m in ("strips", "blocks"))
    assert a.value == pytest.approx(b.value, abs=1e-13)
    assert a.violated == pytest.approx(b.violated, abs=1e-13)
    assert a.stderr == pytest.approx(b.stderr, rel=1e-9)
    np.testing.assert_allclose(rows_of(a), rows_of(b), rtol=0, atol=1e-12)


def test_float32_tiles_lose_nothing_visible(people: MakeColumns, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = people("continuous", 6_000)
    full = individual_fairness(*columns, method="strips")
    monkeypatch.setattr(exact, "_FLOAT64_ROWS", 100)
    quick = individual_fairness(*columns, method="strips")
    assert quick.value != full.value
    assert quick.value == pytest.approx(full.value, abs=1e-9)
    assert quick.violated == pytest.approx(full.violated, abs=1e-6)
    np.testing.assert_allclose(rows_of(quick), rows_of(full), rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", ["repeats_effort", "deciles", "mixed", "binary"])
def test_float32_is_not_used_where_rounding_would_not_average_out(
    kind: str, people: MakeColumns, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = people(kind, 6_000)
    full = individual_fairness(*columns, method="strips")
    monkeypatch.setattr(exact, "_FLOAT64_ROWS", 100)
    merged = merge_people(check_people(*columns))
    blocks = exact.block_rows(merged, 0.5)
    assert exact.precision(blocks.points, blocks.weight) is np.float64
    assert individual_fairness(*columns, method="strips").value == full.value


@pytest.mark.parametrize("method", EXACT)
def test_merging_identical_people_changes_nothing(method: Any, people: MakeColumns, by_definition: Maker) -> None:
    twice = pick(people("continuous", 200), np.append(np.arange(200), np.arange(100)))
    merged = merge_people(check_people(*twice))
    assert len(merged) == 200
    for column, name in zip(twice, ("score", "effort", "aggregate"), strict=True):
        np.testing.assert_array_equal(getattr(merged, name)[merged.row], column)
    result, truth = individual_fairness(*twice, method=method), by_definition(*twice, 0.5)
    assert result.value == pytest.approx(truth.value, abs=1e-13)
    np.testing.assert_allclose(rows_of(result), truth.row_means, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", EXACT)
def test_weights_are_repetition(method: Any, people: MakeColumns) -> None:
    """Weights v and v copies have the same summed excess; the pairs of copies are fair and only in the second."""
    columns, times = people("continuous", 150), np.random.default_rng(2).integers(1, 4, 150)
    weighted = individual_fairness(*columns, survey_weight=times, method=method)
    repeated = individual_fairness(*pick(columns, np.repeat(np.arange(150), times)), method=method)
    total, between = times.sum(), (times.sum() ** 2 - (times**2).sum()) / 2
    share = between / (total * (total - 1) / 2)
    assert 1 - repeated.value == pytest.approx((1 - weighted.value) * share, rel=1e-11)
    assert repeated.violated == pytest.approx(weighted.violated * share, rel=1e-11)


@pytest.mark.parametrize("method", EXACT)
def test_equal_weights_change_nothing(method: Any, people: MakeColumns) -> None:
    columns = people("continuous", 120)
    plain, ones = (
        individual_fairness(*columns, method=method),
        individual_fairness(*columns, survey_weight=np.full(120, 7.0)),
    )
    assert (plain.value, plain.low, plain.high) == pytest.approx((ones.value, ones.low, ones.high), abs=1e-13)


def test_people_with_weight_0_do_not_count(people: MakeColumns, by_definition: Maker) -> None:
    columns = people("continuous", 200)
    survey = np.where(np.arange(200) < 150, np.random.default_rng(3).gamma(2.0, 1.0, 200), 0.0)
    result, without = (
        individual_fairness(*pick(columns, slice(size)), survey_weight=survey[:size]) for size in (200, 150)
    )
    assert result.n == without.n == 150
    for name in ("value", "low", "high", "violated", "stderr"):
        assert getattr(result, name) == pytest.approx(getattr(without, name), rel=1e-11)
    assert rows_of(result).size == 200


@pytest.mark.parametrize("method", EXACT)
def test_the_order_of_people_changes_not_a_bit(method: Any, kind: str, people: MakeColumns) -> None:
    columns, order = people(kind, 700), np.random.default_rng(4).permutation(700)
    a = individual_fairness(*columns, method=method)
    b = individual_fairness(*pick(columns, order), method=method)
    assert a.violated == b.violated
    assert a.value == pytest.approx(b.value, abs=1e-15)
    np.testing.assert_array_equal(rows_of(a)[order], rows_of(b))


@pytest.mark.parametrize("method", EXACT)
def test_names_and_directions_do_not_matter(method: Any, people: MakeColumns) -> None:
    score, effort, aggregate = people("mixed", 400)
    plain = individual_fairness(score, effort, aggregate, 0.3, method=method).value
    swapped = individual_fairness(score, aggregate, effort, 0.7, method=method).value
    mirrored = individual_fairness(1 - score, 5 - effort, -aggregate, 0.3, method=method).value
    assert [swapped, mirrored] == pytest.approx([plain, plain], abs=1e-13)


@pytest.mark.slow
def test_auto_takes_the_cheap_way(people: MakeColumns, monkeypatch: pytest.MonkeyPatch) -> None:
    assert individual_fairness(*people("discrete", 9_000)).method == "blocks"
    assert individual_fairness(*people("continuous", 500)).method == "strips"
    monkeypatch.setattr("evenhand.stats.pairs.fairness._EXACT_ROWS", 400)
    assert individual_fairness(*people("continuous", 500)).method == "grid"
    for name, value in (("_GLANCE", 200), ("_MOST_ROW_SUMS", 1_000)):
        monkeypatch.setattr(f"evenhand.stats.pairs.fairness.{name}", value)
    assert individual_fairness(*people("continuous", 1_000)).method == "grid"


@pytest.mark.parametrize("weight", [0.0, 0.6577, 1.0])
@pytest.mark.parametrize("count", [1, 25, 400])
def test_equals_brute_force(kind: str, weight: float, count: int, people: MakeColumns, by_definition: Maker) -> None:
    columns = people(kind, 400)
    i, j = np.triu_indices(400, 1)
    excess = np.rint(by_definition(*columns, weight).excess[i, j] / 1e-12)
    order = np.lexsort((j, i, -excess))[:count]
    order = order[excess[order] > 0]
    found = worst_pairs(*columns, weight=weight, count=count)
    np.testing.assert_array_equal(found.people, np.stack([i[order], j[order]], axis=1))
    np.testing.assert_allclose(found.excess, excess[order] * 1e-12, rtol=0, atol=1e-12)


def test_many_copies_of_two_people() -> None:
    score = np.tile([0.1, 0.9], 30)
    found = worst_pairs(score, np.zeros(60), np.zeros(60), count=40)
    expected = [(i, j) for i in range(60) for j in range(i + 1, 60, 2)][:40]
    assert [tuple(pair) for pair in found.people.tolist()] == expected


def test_fair_scores_have_no_worst_pairs(people: MakeColumns) -> None:
    found = worst_pairs(*people("repeats_effort", 300))
    assert found.people.shape == (0, 2)
    assert found.excess.size == 0


def test_the_order_of_people_only_renames_them(people: MakeColumns) -> None:
    columns, order = people("continuous", 3_000), np.random.default_rng(1).permutation(3_000)
    a = worst_pairs(*columns, count=50)
    b = worst_pairs(*pick(columns, order), count=50)
    np.testing.assert_array_equal(a.people, np.sort(order[b.people], axis=1))


def test_wrong_counts_get_one_sentence() -> None:
    with pytest.raises(EvenhandError, match=r"`count` must be at least 1; got 0\."):
        worst_pairs([0.1, 0.2], [0.0, 0.0], [0.0, 0.0], count=0)


def test_values_are_common_where_two_people_share_one_more_often_than_once_in_a_thousand() -> None:
    assert not exact.has_common(np.arange(2_000.0)[np.newaxis], np.ones(2_000))
    assert exact.has_common((np.arange(2_000.0) % 500)[np.newaxis], np.ones(2_000))


def test_violations_of_an_own_distance_are_counted_once_each(people: MakeColumns, by_definition: Maker) -> None:
    columns, weight = people("ties", 30), np.random.default_rng(1).gamma(2.0, 1.0, 30)

    def own(e: FloatArray, s: FloatArray, f: FloatArray, t: FloatArray) -> FloatArray:
        return np.sqrt(0.5 * (e - f) ** 2 + 0.5 * (s - t) ** 2)

    sums, violated = exact.enumerated_sums(ScoredPeople(*columns, weight, own=own), 0.5)
    excess = by_definition(*columns, 0.5).excess
    np.testing.assert_allclose(sums, excess @ weight, rtol=1e-9, atol=1e-12)
    assert violated == pytest.approx((np.outer(weight, weight) * (excess > 0)).sum() / 2)


def test_blocks_in_many_steps_are_those_in_one(
    people: MakeColumns, by_definition: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "_STEP_PAIRS", 1)
    monkeypatch.setattr(exact, "_SLOTS", 2)
    monkeypatch.setattr(exact, "BLOCK", 8)
    columns = people("continuous", 60)
    merged = merge_people(check_people(*columns))
    sums, violated = exact.tile_sums(merged, 0.5, threads=1)
    excess = by_definition(*columns, 0.5).excess
    np.testing.assert_allclose(sums[merged.row], excess.sum(axis=1), rtol=1e-5, atol=1e-7)
    assert violated == pytest.approx((excess > 0).sum() / 2)


def test_the_worst_pairs_of_an_own_distance_are_no_more_than_there_are() -> None:
    people = ScoredPeople(score=np.array([0.0, 0.5, 0.9]), effort=np.zeros(3), aggregate=np.zeros(3))
    found = exact._worst_enumerated(people, 0.5, 10)
    assert found.people.tolist() == [[0, 2], [0, 1], [1, 2]]
    np.testing.assert_allclose(found.excess, [0.9, 0.5, 0.4])


@pytest.mark.parametrize("n", [16, 21, 37])
def test_neighbours_lie_in_one_block(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Along the widest axis the blocks are stretches without overlap, and the others do not matter."""
    monkeypatch.setattr(exact, "_TREE_ROWS", 4)
    monkeypatch.setattr(exact, "BLOCK", 4)
    points = np.random.default_rng(0).random((3, n)) * np.array([[0.001], [1.0], [0.002]])
    order = exact.near_neighbours(points)
    assert sorted(order.tolist()) == list(range(n))
    blocks = [points[1, order[start : start + 4]] for start in range(0, n, 4)]
    assert all(one.max() < other.min() for one, other in pairwise(blocks))


@pytest.mark.parametrize("kind", ["up", "down", "constant", "organ pipes", "few values", "saw"])
def test_blocks_are_found_in_rows_of_any_order(kind: str) -> None:
    """Every half of the widest axis lies below the other, whatever order the rows come in."""
    n = 20 * exact.BLOCK + 5
    up = np.arange(n, dtype=np.float64)
    axis = {
        "up": up,
        "down": -up,
        "constant": np.ones(n),
        "organ pipes": np.minimum(up, n - up),
        "few values": up % 3,
        "saw": up % 64,
    }[kind]
    order = exact.near_neighbours(np.stack([np.zeros(n), axis]))
    assert sorted(order.tolist()) == list(range(n))
    blocks = [axis[order[start : start + exact.BLOCK]] for start in range(0, n, exact.BLOCK)]
    assert all(one.max() <= other.min() for one, other in pairwise(blocks))


def test_single_precision_needs_many_rows_small_values_and_hardly_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "_PROBE_ROWS", 8)
    points, ones = np.random.default_rng(0).random((3, 60)), np.ones(60)
    assert exact.precision(points, ones) is np.float64  # few rows
    monkeypatch.setattr(exact, "_FLOAT64_ROWS", 59)
    assert exact.precision(points, ones) is np.float64  # one in sixty is a common value
    assert exact.precision(points, ones, common=False) is np.float32
    assert exact.precision(9 * points, ones, common=False) is np.float64
    assert exact.precision(points, ones, common=True) is np.float64
    assert exact.precision(np.stack([points[0], 0 * points[1], points[0]]), ones, common=False) is np.float64


def test_counts_of_different_people_have_the_error_of_everybody(people: MakeColumns) -> None:
    """Each row stands for one to four alike people: the limits are those of all of them one by one."""
    columns, times = people("continuous", 30), np.arange(30) % 4 + 1
    found = individual_fairness_counts(*columns, total_weight=times, squares=times, weight=0.5, n=int(times.sum()))
    score, effort, aggregate = (np.repeat(column, times) for column in columns)
    every = individual_fairness(score, effort, aggregate, 0.5)
    assert (found.value, found.violated) == pytest.approx((every.value, every.violated))
    assert found.n == every.n
    assert found.pairs == every.pairs
    assert found.stderr == pytest.approx(every.stderr, rel=0.05)
    assert (found.low, found.high) == pytest.approx((every.low, every.high), abs=0.1 * every.stderr)


FAIRNESS = """
import numpy as np
from evenhand.stats.pairs import individual_fairness
score, effort, aggregate = np.random.default_rng(0).random((3, 31_000))
found = individual_fairness(score, effort, aggregate, method="strips")
print(repr(found.value), repr(found.violated), repr(float(found.row_means.sum())))
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names processors of Intel's and AMD's make")
def test_narrower_vectors_give_the_same_digits(tmp_path: Path) -> None:
    """Single precision, as for more than 30,000 people, by loops for processors with and without AVX-512."""
    found = []
    haswell = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "", "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL"}
    for narrow in ({}, haswell | {"NUMBA_CACHE_DIR": str(tmp_path)}):
        environment = os.environ | narrow
        command = [sys.executable, "-W", "ignore", "-c", FAIRNESS]
        found.append(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    assert found[0] == found[1]
