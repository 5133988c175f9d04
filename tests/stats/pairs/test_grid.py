"""The grid against the exact value: within its stated error on continuous, discrete and mixed data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.stats.pairs import (
    GridMoments,
    PairFairness,
    approximate,
    bin_people,
    check_people,
    fairness,
    grid_excess,
    individual_fairness,
)
from evenhand.stats.pairs.approximate import correct
from evenhand.stats.pairs.grid import Bounds, excess_table, extrapolated_means
from evenhand.stats.pairs.inputs import ScoredPeople
from evenhand.stats.pairs.kernels import deviations
from evenhand.stats.types import FloatArray

Columns = tuple[FloatArray, FloatArray, FloatArray]
MakeColumns = Callable[[str, int], Columns]
Maker = Callable[..., Any]


def grid_moments(*columns: FloatArray, survey_weight: FloatArray | None = None, **options: Any) -> GridMoments:
    score, effort, aggregate = columns
    return bin_people(check_people(score, effort, aggregate, survey_weight), **options)


def pick(columns: Columns, at: Any) -> Columns:
    score, effort, aggregate = columns
    return score[at], effort[at], aggregate[at]


def rows_of(result: PairFairness) -> FloatArray:
    assert result.row_means is not None
    return result.row_means


def test_the_grid_is_within_its_error(kind: str, surveyed: bool, people: MakeColumns) -> None:
    columns, weight = people(kind, 4_000), 0.6577 if surveyed else 0.0
    survey = np.random.default_rng(1).gamma(2.0, 1.0, 4_000) if surveyed else None
    exact, grid = (
        individual_fairness(*columns, weight=weight, survey_weight=survey, method=method)
        for method in ("strips", "grid")
    )
    assert abs(grid.value - exact.value) <= grid.error < 2e-5
    assert grid.violated == pytest.approx(exact.violated, abs=4e-4)
    np.testing.assert_allclose(rows_of(grid), rows_of(exact), rtol=0, atol=5e-3)
    if exact.value < 1:
        assert grid.stderr == pytest.approx(exact.stderr, rel=0.02)
        assert (grid.low, grid.high) == pytest.approx((exact.low, exact.high), abs=0.02 * exact.stderr + 2 * grid.error)


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_at_300_people(weight: float, people: MakeColumns, by_definition: Maker) -> None:
    columns = people("continuous", 300)
    grid = individual_fairness(*columns, weight=weight, method="grid")
    assert abs(grid.value - by_definition(*columns, weight).value) <= grid.error < 4e-6


def test_two_people() -> None:
    grid = individual_fairness([0.2, 0.9], [0.1, 0.4], [0.0, 0.0], 1.0, method="grid")
    assert grid.value == pytest.approx(0.6, abs=1e-12)
    assert np.isnan(grid.low)


def test_all_weights_from_one_autocorrelation(people: MakeColumns) -> None:
    columns = people("continuous", 3_000)
    fine = grid_moments(*columns)
    found = grid_excess(fine.coarser(), fine, [0.0, 0.5, 0.6577, 1.0])
    exact = [1 - individual_fairness(*columns, weight=weight).value for weight in (0.0, 0.5, 0.6577, 1.0)]
    assert (np.abs(found.value - exact) < found.error).all()
    assert (found.error < 2e-4).all()
    assert found.value == pytest.approx(np.array(exact), abs=3e-5)


def engine(
    columns: tuple[FloatArray, ...], survey: FloatArray, bounds: Bounds, size: int
) -> tuple[Any, FloatArray, float, FloatArray]:
    """The sums as a data engine groups them."""
    cells, fractions, own = [], [], []
    for column, (low, high) in zip(columns, bounds, strict=True):
        place = (column - low) / (high - low) * (size - 1)
        cells.append(np.minimum(place.astype(int), size - 2))
        fractions.append(place - cells[-1])
    for level in (1, 2):
        q = []
        for column, (low, high) in zip(columns, bounds, strict=True):
            place = (column - low) / (high - low) * (size - 1) / level
            f = place - np.minimum(place.astype(int), (size - 1) // level - 1)
            q.append(2 * f * (1 - f))
        own.append([(survey**2 * p).sum() for p in (q[0], q[0] * q[1], q[0] * q[2], q[0] * q[1] * q[2])])
    group, at = np.unique(np.stack(cells, axis=1), axis=0, return_inverse=True)
    m, e, s = fractions
    parts = [np.bincount(at.ravel(), survey * x) for x in (m**0, s, e, e * s, m, m * s, m * e, m * e * s)]
    return group, np.stack(parts, axis=1), float((survey**2).sum()), np.array(own)


def test_sums_of_a_data_engine_give_the_same_histogram(people: MakeColumns, surveyed: bool) -> None:
    columns = people("mixed", 2_000)
    survey = np.random.default_rng(1).gamma(2.0, 1.0, 2_000) if surveyed else np.ones(2_000)
    survey /= survey.mean()
    direct = grid_moments(*columns, size=17, survey_weight=survey)
    cells, sums, squares, own = engine(columns, survey, direct.bounds, 17)
    grouped = GridMoments.from_cells(direct.bounds, 17, cells, sums=sums, squares=squares, own=own)
    np.testing.assert_allclose(grouped.mass, direct.mass, atol=1e-9)
    np.testing.assert_allclose(grouped.own, direct.own, rtol=1e-9)
    assert grouped.squares == pytest.approx(direct.squares)
    found = [grid_excess(moments.coarser(), moments, [0.5]).value[0] for moments in (direct, grouped)]
    assert found[0] == pytest.approx(found[1], abs=1e-12)


def test_the_coarse_grid_follows_from_the_fine_one(kind: str, people: MakeColumns) -> None:
    columns = people(kind, 500)
    fine, coarse = grid_moments(*columns, size=33), grid_moments(*columns, size=17)
    np.testing.assert_allclose(fine.coarser().mass, coarse.mass, atol=1e-10)
    np.testing.assert_allclose(fine.coarser().own, coarse.own[:1], atol=1e-9)


def test_the_correction_from_a_sample_of_rows_says_how_good_it_is(people: MakeColumns) -> None:
    """Discrete effort: the raw grid is off by many of its errors, the corrected one is not."""
    columns = people("discrete", 20_000)
    fine = grid_moments(*columns)
    raw = grid_excess(fine.coarser(), fine, [0.0])
    exact = 1 - individual_fairness(*columns, weight=0.0).value
    rows = np.random.default_rng(5).choice(20_000, 4_000, replace=False)
    part = pick(columns, rows)
    whole, sample = (
        correct(check_people(*part), fine, 0.0, sample=told, rng=np.random.default_rng(0)) for told in (False, True)
    )
    assert sample.excess_stderr > whole.excess_stderr
    assert abs(raw.value[0] - exact) > 10 * sample.excess_stderr
    assert abs(raw.value[0] - sample.excess - exact) < 4 * sample.excess_stderr


def test_the_generator_decides_the_correction(people: MakeColumns) -> None:
    columns = people("continuous", 1_000)
    a, b, c = (
        individual_fairness(*columns, method="grid", rng=np.random.default_rng(seed)).value for seed in (1, 1, 2)
    )
    assert a == b
    assert a != c


def test_wrong_grids_get_one_sentence(people: MakeColumns) -> None:
    columns = people("continuous", 50)
    box = ((0.0, 1.0), (0.0, 1.0), (0.0, 0.1))
    with pytest.raises(EvenhandError, match=r"`bounds` must hold all values; those of aggregate are 0 and 0\.1"):
        grid_moments(*columns, bounds=box)
    with pytest.raises(EvenhandError, match="`size` must be odd and at least 3; got 64"):
        grid_moments(*columns, size=64)
    fine = grid_moments(*columns, size=9)
    with pytest.raises(EvenhandError, match="double the step; got 9 and 9 points"):
        grid_excess(fine, fine, [0.5])
    with pytest.raises(EvenhandError, match="has no coarser one"):
        fine.coarser().coarser()
    with pytest.raises(EvenhandError, match="`weight` must be between 0 and 1"):
        grid_excess(fine.coarser(), fine, [1.5])


def corners(value: float, low: float, per_step: float, size: int) -> list[tuple[int, float]]:
    """Return the two grid points of one axis over which a value is spread, and how much of it lies on each."""
    at = (value - low) * per_step
    cell = min(int(np.floor(at)), size - 2)
    return [(cell, 1 - (at - cell)), (cell + 1, at - cell)]


def spread_pair(a: FloatArray, b: FloatArray, moments: GridMoments, weight: float) -> tuple[float, float]:
    """Return the mean excess and the mean violation of two people, each spread over the corners of its cell."""
    (low, per_step), size, total, hits = moments.scale, moments.size, 0.0, 0.0
    points = [[corners(x, low[k], per_step[k], size) for k, x in enumerate(one)] for one in (a, b)]
    for here in product(*points[0]):
        for there in product(*points[1]):
            share = np.prod([mass for _, mass in (*here, *there)])
            m, e, s = (moments.steps[k] * abs(here[k][0] - there[k][0]) for k in range(3))
            d = np.sqrt(weight * e**2 + (1 - weight) * s**2)
            total, hits = total + share * max(m - d, 0.0), hits + share * (m - d > 1e-12)
    return float(total), float(hits)


def deviation(a: FloatArray, b: FloatArray, fine: GridMoments, weight: float) -> tuple[float, float]:
    """Return what the extrapolated grid, and the fine grid's share of violations, add to the truth for one pair."""
    (coarse, _), (close, hits) = (spread_pair(a, b, grid, weight) for grid in (fine.coarser(), fine))
    m, e, s = np.abs(a - b)
    d = np.sqrt(weight * e**2 + (1 - weight) * s**2)
    return (4 * close - coarse) / 3 - max(m - d, 0.0), hits - float(m - d > 1e-12)


def test_what_the_grid_adds_to_a_pair_is_what_spreading_both_over_their_cells_adds() -> None:
    rng, weight = np.random.default_rng(3), 0.3
    columns = rng.random((3, 40)) * np.array([[1.0], [0.6], [1.4]])
    fine = bin_people(check_people(*columns), 9)
    first, second = columns[:, :39].copy(), columns[:, 1:].copy()
    tables = excess_table(fine.coarser(), weight), excess_table(fine, weight)
    out = np.empty((39, 2))
    deviations(
        (first, second), weight, 1e-12, fine.scale, (*tables, (tables[1] > 1e-12).astype(np.float64)), fine.shape, out
    )
    expected = [deviation(a, b, fine, weight) for a, b in zip(first.T, second.T, strict=True)]
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-12)
    assert (np.abs(out[:, 0]) > 1e-4).sum() > 10
    assert (out == 0).all(axis=1).any()


@pytest.mark.parametrize("sample", [False, True])
def test_the_correction_and_its_error_are_those_of_all_pairs(sample: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approximate, "_PAIRS", 2**9)
    monkeypatch.setattr(approximate, "_CHUNK", 2**6)
    rng, n, weight = np.random.default_rng(4), 8, 0.3
    columns, v = rng.random((3, n)), np.array([0.5] * 7 + [6.0])
    v /= v.mean()
    people = check_people(columns[0], columns[1], columns[2], v)
    fine = bin_people(people, 5)
    drawn = [correct(people, fine, weight, sample=sample, rng=np.random.default_rng(seed)) for seed in range(2)]
    both = np.outer(v, v) * ~np.eye(n, dtype=bool)
    pairs = np.array(
        [[deviation(a, b, fine, weight) if a is not b else (0.0, 0.0) for b in columns.T] for a in columns.T]
    )
    mean, violated = np.einsum("ij,ijk->k", both, pairs) / both.sum()
    own = (both * pairs[..., 0]).sum(axis=1) / both.sum(axis=1)  # of each person with a partner
    of_people = (both.sum(axis=1) * own**2).sum() / both.sum()
    square = (both * pairs[..., 0] ** 2).sum() / both.sum()
    variance = ((square + of_people) / 2 - mean**2) / 2**8
    if sample:
        variance += 4 * (of_people - mean**2) * (v**2).sum() / v.sum() ** 2
    assert np.mean([one.excess for one in drawn]) == pytest.approx(mean, abs=4 * np.sqrt(variance / 2))
    assert np.mean([one.violated for one in drawn]) == pytest.approx(violated, abs=0.05)
    assert np.mean([one.excess_stderr for one in drawn]) == pytest.approx(np.sqrt(variance), rel=0.2 if sample else 0.1)
    assert len({one.excess for one in drawn}) == 2


def test_the_mean_and_the_rows_of_a_grid_are_those_of_people_spread_over_their_cells() -> None:
    rng, n, weight = np.random.default_rng(5), 7, 0.3
    columns, v = rng.random((3, n)), rng.gamma(2.0, 1.0, n)
    v /= v.mean()
    people = check_people(columns[0], columns[1], columns[2], v)
    fine = bin_people(people, 5)
    spread = np.array([[spread_pair(a, b, fine, weight) for b in columns.T] for a in columns.T])
    both = np.outer(v, v) * ~np.eye(n, dtype=bool)
    excess, hits = np.einsum("ij,ijk->k", both, spread) / both.sum()
    coarse = np.array([[spread_pair(a, b, fine.coarser(), weight)[0] for b in columns.T] for a in columns.T])
    rough = (both * coarse).sum() / both.sum()
    assert extrapolated_means(fine, weight) == pytest.approx(((4 * excess - rough) / 3, hits))
    rows = approximate.row_excess(people, fine, weight)
    np.testing.assert_allclose(rows, (~np.eye(n, dtype=bool) * spread[..., 0]) @ v, rtol=1e-9)


@pytest.fixture
def hundreds_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few random pairs that they are quick without compilation too."""
    monkeypatch.setattr(approximate, "_PAIRS", 2**9)
    monkeypatch.setattr(approximate, "_CHUNK", 2**6)
    monkeypatch.setattr(fairness, "_PAIRS", 2**9)


@pytest.mark.usefixtures("hundreds_of_pairs")
def test_the_whole_way_over_a_grid_with_few_pairs(people: MakeColumns, by_definition: Maker) -> None:
    columns, calls = people("mixed", 40), list[tuple[int, int]]()
    everybody = check_people(*columns)
    found = approximate.individual_fairness_grid(
        everybody,
        0.3,
        confidence=0.95,
        rng=np.random.default_rng(0),
        threads=1,
        progress=lambda *said: calls.append(said),
    )
    brute = by_definition(*columns, 0.3)
    assert abs(found.value - brute.value) <= found.error < 1e-4
    assert found.violated == pytest.approx(brute.violated, abs=0.05)
    np.testing.assert_allclose(rows_of(found), brute.row_means, atol=0.02)
    assert {total for _, total in calls} == {40 + 2**9}
    done = [number for number, _ in calls]
    assert done == sorted(done)
    assert done[-1] == 40 + 2**9
    fine = bin_people(everybody, bounds=approximate.common_on_points(everybody))
    whole, part = (correct(everybody, fine, 0.3, sample=told, rng=np.random.default_rng(0)) for told in (False, True))
    assert found.error == pytest.approx(approximate.WIDTHS * whole.excess_stderr, rel=1e-6)
    assert found.error < 0.9 * approximate.WIDTHS * part.excess_stderr  # everybody is on the grid, not a sample


@pytest.mark.usefixtures("hundreds_of_pairs")
def test_cells_of_everybody_and_a_sample_give_the_exact_value(people: MakeColumns) -> None:
    """On a coarse grid the correction matters more than its error."""
    columns = people("ties", 100)
    moments, exact = grid_moments(*columns, size=9), individual_fairness(*columns, weight=0.3)
    found = fairness.individual_fairness_cells(moments, *columns, survey_weight=None, weight=0.3, n=100)
    raw = 1 - extrapolated_means(moments, 0.3)[0]
    assert abs(found.value - exact.value) <= found.error < abs(raw - exact.value)
    assert found.violated == pytest.approx(exact.violated, abs=0.1)
    assert found.stderr == pytest.approx(exact.stderr, rel=0.2)
    pairs_alone = correct(check_people(*columns), moments, 0.3, sample=False, rng=np.random.default_rng(0))
    assert found.error > 1.1 * approximate.WIDTHS * pairs_alone.excess_stderr  # the people are a sample
    wider = fairness.individual_fairness_cells(moments, *columns, survey_weight=None, weight=0.3, n=100, clustering=4.0)
    assert wider.error == pytest.approx(2 * found.error, rel=1e-6)


@pytest.mark.usefixtures("hundreds_of_pairs")
def test_a_grid_without_any_deviation_still_has_an_error_above_0() -> None:
    flat = np.full(20, 0.5), np.linspace(0, 1, 20), np.zeros(20)
    found = fairness.individual_fairness_cells(grid_moments(*flat, size=9), *flat, survey_weight=None, weight=0.5, n=20)
    assert (found.value, found.violated) == (1.0, 0.0)
    assert 0.0 < found.error < 1e-9


@pytest.mark.usefixtures("hundreds_of_pairs")
def test_one_coarse_grid_gives_all_weights_within_their_errors(people: MakeColumns) -> None:
    columns, weights = people("ties", 100), [0.3, 1.0]
    everybody, moments = check_people(*columns), grid_moments(*columns, size=9)
    exact = [individual_fairness(*columns, weight=weight).value for weight in weights]
    values, errors = fairness.corrected_grid(moments, everybody, weights, np.random.default_rng(0))
    assert (np.abs(values - exact) <= errors).all()
    raw = 1 - grid_excess(moments.coarser(), moments, weights).value
    assert (np.abs(raw - exact) > errors).all()
    _, wider = fairness.corrected_grid(moments, everybody, weights, np.random.default_rng(0), sample=True)
    np.testing.assert_allclose(wider, errors * np.sqrt(1 + 4 * 2**9 / 100), rtol=1e-6)
    assert (fairness.fairness_by_weight(*columns, weights, exact_rows=100)[1] == 0).all()


@pytest.mark.usefixtures("hundreds_of_pairs")
def test_more_different_people_than_are_compared_go_over_a_grid(people: MakeColumns) -> None:
    columns = people("continuous", 40)
    near, off = fairness.fairness_by_weight(*columns, [0.3], exact_rows=39)
    assert 0 < abs(near[0] - individual_fairness(*columns, weight=0.3).value) <= off[0] < 1e-3


def test_what_the_grid_adds_grows_with_the_unit_of_everything() -> None:
    rng, weight = np.random.default_rng(3), 0.3
    columns = rng.random((3, 40))
    found = []
    for unit in (1.0, 100.0):
        fine = bin_people(ScoredPeople(*(unit * columns)), 5)
        first, second = (np.ascontiguousarray(unit * columns[:, part]) for part in (slice(0, 39), slice(1, 40)))
        tables = (
            excess_table(fine.coarser(), weight),
            excess_table(fine, weight),
            np.zeros_like(excess_table(fine, weight)),
        )
        out = np.empty((39, 2))
        deviations((first, second), weight, 1e-12, fine.scale, tables, fine.shape, out)
        found.append(out[:, 0] / unit)
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)
    assert (found[0] != 0).sum() > 10


def test_the_excess_at_whole_steps_by_hand() -> None:
    """At steps (2, 1, 1) of the axes, straight and along the axes."""
    columns = check_people(np.linspace(0, 1, 9), np.linspace(0, 0.4, 9), np.linspace(0, 0.2, 9))
    for diamond in (False, True):
        moments = bin_people(replace(columns, diamond=diamond), 5)
        score, effort, aggregate = moments.steps
        d = 0.3 * effort + 0.7 * aggregate if diamond else np.sqrt(0.3 * effort**2 + 0.7 * aggregate**2)
        assert excess_table(moments, 0.3)[2, 1, 1] == pytest.approx(2 * score - d)
        assert excess_table(moments, 0.3)[0, 1, 1] == 0.0
