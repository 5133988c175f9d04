"""The sweep: it finds what turning a line through all angles finds, keeps the constraints, and can be repeated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evenhand.errors import ConfigError, EvenhandError
from evenhand.stats.compiled import judge_cut
from evenhand.stats.linear_search import LinearCandidate, SearchProblem, search_problem, sweep, sweep_directions
from evenhand.stats.linear_search.sweep import _batch, _evaluate, _starting_directions, best_direction

Make = Callable[..., SearchProblem]
Best = Callable[[SearchProblem], float]

CASES: list[dict[str, object]] = [
    {"utility": "classification"},
    {"utility": "classification", "goal": 1},
    {"utility": "classification", "groups": 3},
    {"utility": "classification", "capacity": 0.5},
    {"utility": "classification", "monotone": [1, -1]},
    {"utility": "calibration"},
    {"utility": "calibration", "goal": 0},
    {"utility": "calibration", "capacity": None},
    {"utility": "calibration", "monotone": [1, 1]},
]


def found_by_sweep(problem: SearchProblem, **options: int) -> LinearCandidate:
    return best_direction(problem, np.random.default_rng(0), **({"directions": 4_000} | options))


@pytest.mark.parametrize("case", CASES)
def test_it_finds_the_best_of_all_linear_classifiers(problem_of: Make, best_of: Best, case: dict[str, object]) -> None:
    feasible = 0
    for seed in range(6):
        problem = problem_of(n=24, seed=seed, **case)
        best = best_of(problem)
        found = found_by_sweep(problem)
        assert found.feasible == np.isfinite(best)
        if found.feasible:
            feasible += 1
            assert float(problem.judge(found.values)[1]) == pytest.approx(best, abs=1e-12)
    assert feasible >= 2


@pytest.mark.parametrize("case", CASES)
def test_figures_are_those_of_the_coefficients(problem_of: Make, case: dict[str, object]) -> None:
    problem = problem_of(n=60, seed=2, **case)
    found = found_by_sweep(problem, directions=500)
    chosen = found.decide(problem.given)
    np.testing.assert_allclose(found.values, problem.values(chosen))
    assert found.gap == pytest.approx(np.ptp(problem.values(chosen)))
    if problem.capacity is not None:
        assert chosen.sum() == problem.capacity
    assert (problem.signs * found.coefficients >= 0).all()


def test_the_units_of_features_do_not_matter(problem_of: Make) -> None:
    problem = problem_of(n=80, seed=1)
    y = (problem.gains + 1) / 2
    moved = search_problem(problem.given * [1e-4, 1e5] + [9.0, -7e6], y, y, problem.group, "ab")
    plain = search_problem(problem.given, y, y, problem.group, "ab")
    first, second = found_by_sweep(plain, directions=800), found_by_sweep(moved, directions=800)
    np.testing.assert_array_equal(first.decide(plain.given), second.decide(moved.given))


def test_it_can_be_repeated_on_any_number_of_threads(problem_of: Make) -> None:
    for utility in ("classification", "calibration"):
        problem = problem_of(n=300, seed=3, utility=utility)
        first = found_by_sweep(problem, directions=1_500, threads=1)
        for threads in (2, 3):
            again = found_by_sweep(problem, directions=1_500, threads=threads)
            np.testing.assert_array_equal(again.coefficients, first.coefficients)
            assert again.intercept == first.intercept


def test_more_directions_are_never_worse(problem_of: Make) -> None:
    rng = np.random.default_rng(4)
    x, group = rng.standard_normal((200, 8)), rng.integers(2, size=200)
    y = (x[:, :3].sum(axis=1) + rng.standard_normal(200) > 0).astype(float)
    problem = search_problem(x, y, x[:, 0] > 0.3 * group, group, "ab", goal=0)
    values = [found_by_sweep(problem, directions=size).values[0] for size in (512, 2_048, 8_192)]
    assert values[0] <= values[1] <= values[2]
    assert values[0] < values[2]


def test_tied_scores_are_never_cut(problem_of: Make) -> None:
    """Rows with equal features must be decided alike, whatever the capacity."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 3, (120, 2)).astype(float)
    y = rng.poisson(2 + x.sum(axis=1)).astype(float)
    problem = search_problem(x, y, rng.random(120) < 0.5, np.arange(120) % 2, "ab", utility="calibration")
    chosen = found_by_sweep(problem).decide(x)
    for point in np.unique(x, axis=0):
        assert np.unique(chosen[(x == point).all(axis=1)]).size == 1


def test_a_capacity_that_no_cut_can_meet_is_refused() -> None:
    x = np.repeat([[0.0], [1.0]], 10, axis=0)
    problem = search_problem(x, np.ones(20), np.ones(20), np.arange(20) % 2, "ab", capacity=0.3)
    with pytest.raises(
        EvenhandError, match=r"no cut of 600 directions selects .* 6 rows in all; with features of few values"
    ):
        found_by_sweep(problem, directions=600)


def test_floors_out_of_reach_are_refused(problem_of: Make) -> None:
    problem = problem_of(n=60, iota=0.9)
    with pytest.raises(
        EvenhandError, match=r"among 600 directions .* the nearest reaches 'a' 0\.\d+ \(needed 1\.\d+\), 'b'"
    ):
        sweep_directions(problem, np.random.default_rng(0), directions=600)


def test_a_budget_of_nothing_is_refused(problem_of: Make) -> None:
    with pytest.raises(ConfigError, match="`directions` must be at least 1; got 0"):
        sweep_directions(problem_of(), np.random.default_rng(0), directions=0)


@pytest.mark.parametrize("case", [one for one in CASES if "monotone" not in one])
def test_the_best_cut_of_a_direction_is_that_of_all_its_cuts(problem_of: Make, case: dict[str, object]) -> None:
    problem = problem_of(n=13, seed=7, **case)
    batch = np.random.default_rng(1).standard_normal((6, 2))
    for slopes, merit in zip(batch, _evaluate(problem, batch, 1), strict=True):
        score = problem.scaled @ slopes
        cuts = [score >= cut for cut in [*np.sort(score), np.inf]]
        allowed = [one for one in cuts if problem.capacity is None or one.sum() == problem.capacity]
        violation, objective = problem.judge(problem.values(np.array(allowed)))
        best = np.lexsort((objective, violation))[0]
        assert merit[:2] == pytest.approx((violation[best], objective[best]), abs=1e-9)
        if np.isfinite(merit[2]):
            chosen = problem.values(score > merit[2])
            assert problem.judge(chosen) == pytest.approx((violation[best], objective[best]), abs=1e-9)


def uneven_problem() -> SearchProblem:
    """Two features, of which one has an outlier, so that its standard deviation is small on the scale from 0 to 1."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((400, 2))
    x[0, 1] = 300.0
    return search_problem(x, (x[:, 0] > 0).astype(float), x[:, 0] > 0, np.arange(400) % 2, "ab")


def test_random_directions_weigh_features_alike_by_their_standard_deviations() -> None:
    problem = uneven_problem()
    rows = _batch(problem, np.empty((0, 2)), 0, 2_000, np.random.default_rng(0))[20:]
    apart = np.abs(rows * problem.scaled.std(axis=0))
    assert np.mean(apart[:, 0] > apart[:, 1]) == pytest.approx(0.5, abs=0.05)
    assert np.abs(rows).max(axis=1) == pytest.approx(1.0)


def test_only_the_way_matters_in_which_the_best_directions_point() -> None:
    problem, elite = uneven_problem(), np.array([[1.0, 0.2], [-0.3, 1.0]])
    one, two = (_batch(problem, best, 1, 300, np.random.default_rng(0)) for best in (elite, elite * [[1.0], [1e3]]))
    np.testing.assert_allclose(one, two, rtol=1e-9)


def test_the_sweep_starts_with_least_squares_and_with_single_features(problem_of: Make) -> None:
    problem = problem_of(n=40, seed=2)
    starts = _starting_directions(problem)
    np.testing.assert_array_equal(starts[-4:], [[1, 0], [0, 1], [-1, 0], [0, -1]])
    parts = [np.ones(40, dtype=bool), problem.group == 0, problem.group == 1]
    fitted = [
        np.linalg.lstsq(np.column_stack([np.ones(p.sum()), problem.scaled[p]]), problem.gains[p])[0] for p in parts
    ]
    np.testing.assert_allclose(starts[[0, 2, 3]], np.array(fitted)[:, 1:], rtol=1e-8)
    np.testing.assert_allclose(starts[1], starts[0], rtol=1e-8)  # groups of equal size have equal weight already
    flat = search_problem(problem.given, np.ones(40), np.ones(40), problem.group, "ab")
    assert len(_starting_directions(flat)) >= 5


def test_a_sign_turns_a_random_direction_and_keeps_its_size(problem_of: Make) -> None:
    free, signed = problem_of(n=40, seed=2), problem_of(n=40, seed=2, monotone=[1, -1])
    one, two = (_batch(each, np.ones((1, 2)), 1, 50, np.random.default_rng(0)) for each in (free, signed))
    np.testing.assert_allclose(two, np.abs(one) * [1, -1])


def test_a_cut_is_judged_by_its_floors_and_its_gap() -> None:
    """Values 2 and 0.5 of floors 1 and 1: 0.5 is missing, and the gap of 1.5 is 0.5 too large."""
    top, bottom, floors = np.array([2.0, 2.0]), np.array([1.0, 4.0]), np.ones(2)
    assert judge_cut(top, bottom, (floors, 1.0, 1e-9)) == pytest.approx((1.0, 1.5))
    assert judge_cut(top, bottom, (floors, 9.0, 0.5)) == pytest.approx((0.0, 1.5))
    assert judge_cut(top, np.array([1.0, 0.0]), (floors, 9.0, 0.5)) == (np.inf, np.inf)
    assert judge_cut(top, np.array([0.5, 2.0]), (floors, 3.0, 1e-9)) == pytest.approx((0.0, 3.0))


def test_a_share_of_later_directions_is_drawn_afresh() -> None:
    """All others lie near the best direction, which weighs the first feature alone."""
    problem, elite = uneven_problem(), np.array([[1.0, 0.0]])
    rows = _batch(problem, elite, 1, 1_000, np.random.default_rng(0)) * problem.scaled.std(axis=0)
    fresh = rows[-int(1_000 * sweep._FRESH) :]
    assert np.mean(np.abs(fresh[:, 0]) > np.abs(fresh[:, 1])) == pytest.approx(0.5, abs=0.1)
    moved = rows[: -int(1_000 * sweep._FRESH)]
    assert np.mean((np.abs(moved[:, 0]) > np.abs(moved[:, 1])) & (moved[:, 0] > 0)) > 0.8


def test_least_squares_with_groups_of_equal_weight() -> None:
    """30 of group 0 and 10 of group 1: each row of the second counts three times."""
    rng = np.random.default_rng(5)
    x, group = rng.random((40, 2)), np.repeat([0, 1], [30, 10])
    y = (x[:, 0] + group * x[:, 1] + 0.3 * rng.standard_normal(40) > 0.7).astype(float)
    problem = search_problem(x, y, y, group, "ab")
    times = np.where(group == 0, 1, 3)
    design = np.repeat(np.column_stack([np.ones(40), problem.scaled]), times, axis=0)
    slopes = np.linalg.lstsq(design, np.repeat(problem.gains, times))[0][1:]
    np.testing.assert_allclose(_starting_directions(problem)[1], slopes, rtol=1e-8)
