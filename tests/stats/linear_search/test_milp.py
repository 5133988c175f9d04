"""The mixed-integer programs: their optimum is that of all classifiers, and no word of the solver is taken on trust."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from evenhand import errors
from evenhand.errors import ConfigError, EvenhandError, MissingExtraError
from evenhand.stats.linear_search import SearchProblem, milp, search_problem, solve_milp, widest_margin
from evenhand.stats.linear_search.milp import build_program
from evenhand.stats.linear_search.problem import LinearCandidate, SolverReport
from evenhand.stats.linear_search.sweep import best_direction
from evenhand.stats.types import BoolArray, FloatArray

Make = Callable[..., SearchProblem]
Best = Callable[[SearchProblem], float]

needs_highs = pytest.mark.skipif(importlib.util.find_spec("highspy") is None, reason="highspy is not installed")

CASES: list[dict[str, object]] = [
    {"utility": "classification"},  # C.5
    {"utility": "classification", "goal": 1},  # C.6
    {"utility": "classification", "groups": 3},
    {"utility": "classification", "capacity": 0.5},
    {"utility": "classification", "monotone": [1, -1]},
    {"utility": "calibration"},  # P'
    {"utility": "calibration", "goal": 0},
    {"utility": "calibration", "groups": 3},
    {"utility": "calibration", "capacity": None},
    {"utility": "calibration", "monotone": [1, 1]},
]


def solve(problem: SearchProblem, **options: float) -> LinearCandidate:
    return solve_milp(problem, np.random.default_rng(0), **({"time_limit": 20.0} | options))  # type: ignore[arg-type]


@needs_highs
@pytest.mark.parametrize("directions", [0, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES)
def test_the_optimum_is_that_of_all_linear_classifiers(
    problem_of: Make, best_of: Best, case: dict[str, object], directions: int
) -> None:
    solved = 0
    for seed in (1, 2, 3, 4, 5):
        problem = problem_of(n=14, seed=seed, **case)
        best = best_of(problem)
        if np.isinf(best):
            with pytest.raises(
                EvenhandError, match=r"no linear classifier of these features reaches values .* \(proved"
            ):
                solve(problem, directions=directions)
            continue
        solved += 1
        found = solve(problem, directions=directions)
        assert found.feasible
        assert found.solver is not None
        assert found.solver.status == "optimal"
        assert float(problem.judge(found.values)[1]) == pytest.approx(best, abs=1e-9)
        sign = 1.0 if problem.goal == "fairness" else -1.0
        assert sign * found.solver.claimed == pytest.approx(best, abs=1e-9)
        assert sign * found.solver.bound <= best + 1e-6
        assert found.solver.relative_gap <= 1e-4 + 1e-9
    assert solved


@pytest.mark.parametrize("case", CASES)
def test_a_sweeps_classifier_fits_every_constraint_of_the_program(problem_of: Make, case: dict[str, object]) -> None:
    problem = next(
        problem
        for problem in (problem_of(n=40, seed=seed, **case) for seed in range(20))
        if best_direction(problem, np.random.default_rng(0), directions=800).feasible
    )
    swept = best_direction(problem, np.random.default_rng(0), directions=800)
    slopes, intercept, margin = widest_margin(problem, swept.decide(problem.given))
    made = build_program(problem, min(1e-4, margin))
    start = made.start(problem, slopes, intercept)
    program = made.program
    rows = np.zeros(program.rows)
    for row, column, value in program.entries:
        np.add.at(rows, row, value * start[column])
    assert (rows >= np.concatenate(program.row_lower) - 1e-9).all()
    assert (rows <= np.concatenate(program.row_upper) + 1e-9).all()
    assert (start >= np.concatenate(program.lower) - 1e-9).all()
    assert (start <= np.concatenate(program.upper) + 1e-9).all()


@needs_highs
def test_a_short_time_limit_says_so_and_is_never_worse_than_the_sweep() -> None:
    rng = np.random.default_rng(0)
    x, group = rng.standard_normal((300, 4)), rng.integers(2, size=300)
    y = (x.sum(axis=1) + rng.standard_normal(300) > 0).astype(float)
    problem = search_problem(x, y, x[:, 0] + x[:, 1] > 0.6 * group, group, "ab", goal=1)
    swept = best_direction(problem, np.random.default_rng(0), directions=600)
    found = solve(problem, time_limit=0.5, directions=600)
    assert found.feasible
    assert found.solver is not None
    assert found.solver.status == "time limit"
    assert found.solver.seconds < 5
    assert found.values[1] >= swept.values[1]
    assert found.solver.bound >= found.values[1]
    assert found.solver.relative_gap > 0


@needs_highs
def test_a_time_limit_without_a_sweep_may_find_nothing() -> None:
    rng = np.random.default_rng(0)
    x, group = rng.standard_normal((400, 6)), rng.integers(2, size=400)
    y = (x.sum(axis=1) + rng.standard_normal(400) > 0).astype(float)
    problem = search_problem(x, y, x.sum(axis=1) > 0, group, "ab", iota=0.004)
    with pytest.raises(EvenhandError, match=r"was found in 0\.01 s \(HiGHS: time limit\); allow more time"):
        solve(problem, time_limit=0.01, directions=0)


def test_a_bound_that_the_sweep_refutes_is_not_reported(problem_of: Make) -> None:
    problem = problem_of(n=30, seed=2)
    good = best_direction(problem, np.random.default_rng(0), directions=500)
    report = SolverReport(
        status="optimal",
        claimed=good.gap + 0.1,
        bound=good.gap + 0.1,
        relative_gap=0.0,
        reproduced=True,
        polished=True,
        seconds=1.0,
    )
    refuted = milp._consistent(problem, report, good)
    assert (refuted.status, refuted.refuted) == ("optimal", True)
    assert np.isnan(refuted.bound)
    assert np.isnan(refuted.relative_gap)
    fine = replace(report, bound=good.gap)
    assert milp._consistent(problem, fine, good) == fine


def test_coefficients_that_misjudge_their_rows_are_repaired(problem_of: Make) -> None:
    """What a solver with tolerances returns: decisions that are right, and coefficients that are not."""
    problem = problem_of(n=30, seed=2)
    good = best_direction(problem, np.random.default_rng(0), directions=500)
    made = build_program(problem, 1e-4)
    slopes, intercept, _ = widest_margin(problem, good.decide(problem.given))
    solution = made.start(problem, slopes, intercept)
    solution[made.beta] += np.array([0.05, -0.3, 0.2])
    found, report = milp._checked(problem, made, milp._Solved("time limit", solution, 0.0, 1.0, 1.0))
    assert not report.reproduced
    assert report.polished
    assert found is not None
    np.testing.assert_array_equal(found.decide(problem.given), good.decide(problem.given))
    assert report.claimed == pytest.approx(good.gap)


def test_decisions_that_no_line_makes_are_judged_by_the_coefficients(problem_of: Make) -> None:
    x = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    problem = search_problem(x, [1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], "ab")
    chosen = np.array([True, True, False, False])
    assert widest_margin(problem, chosen)[2] <= 1e-9
    made = build_program(problem, 1e-4)
    solution = np.zeros(made.program.columns)
    solution[made.decide] = np.array([1.0, 0.0, 0.0, 1.0])  # distinct rows in order: (0,0), (0,1), (1,0), (1,1)
    solution[made.beta] = [0.5, 0.0, -1.0]
    found, report = milp._checked(problem, made, milp._Solved("time limit", solution, 0.0, 1.0, 1.0))
    assert found is not None
    assert not report.polished
    np.testing.assert_array_equal(found.decide(x), x[:, 1] < 0.75)
    np.testing.assert_allclose(found.values, problem.values(x[:, 1] < 0.75))


def margin_by_search(x: FloatArray, chosen: BoolArray) -> float:
    """Return the widest margin of a classifier of one feature, over a fine grid of coefficients."""
    side = np.where(chosen, 1.0, -1.0)
    intercepts, slopes = np.meshgrid(np.linspace(-1, 1, 401), np.linspace(-1, 1, 401))
    scores = (intercepts[..., np.newaxis] + slopes[..., np.newaxis] * x) * side
    return float(scores.min(axis=-1).max())


def test_the_margin_is_the_widest() -> None:
    x = np.array([0.0, 0.2, 0.7, 1.0])
    problem = search_problem(x[:, np.newaxis], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], "ab")
    assert widest_margin(problem, x > 0.5)[2] == pytest.approx(margin_by_search(x, x > 0.5), abs=0.005)


def test_rows_with_the_same_features_share_a_decision() -> None:
    x = np.repeat([[0.0], [0.5], [1.0]], 20, axis=0)
    problem = search_problem(x, np.arange(60) % 2, np.ones(60), np.arange(60) // 2 % 2, "ab")
    assert build_program(problem, 1e-4).decide.size == 3


@pytest.mark.parametrize(("options", "words"), [({"time_limit": 0.0}, "`time_limit`"), ({"margin": 0.0}, "`margin`")])
def test_bad_options_are_refused(problem_of: Make, options: dict[str, float], words: str) -> None:
    pytest.importorskip("highspy", reason="highspy is not installed")
    with pytest.raises(ConfigError, match=words):
        solve(problem_of(), **options)


def test_without_highs_the_message_says_what_to_install(problem_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"needs the package 'highspy'.*pip install 'evenhand\[models\]'"):
        solve(problem_of())


def test_a_row_on_the_line_is_selected_as_the_classifier_selects_it(problem_of: Make) -> None:
    problem = problem_of(n=14, seed=1)
    made, slopes = build_program(problem, 1e-4), np.array([1.0, 0.0])
    row = int(np.argsort(problem.scaled[:, 0])[7])
    solution = made.start(problem, slopes, -float(problem.scaled[row, 0]))
    assert solution[made.decide[made.cell[row]]] == 1.0
    assert solution[made.decide].sum() == 7


def test_the_solver_starts_from_the_sweeps_classifier(problem_of: Make) -> None:
    problem = problem_of(n=14, seed=1)
    swept = best_direction(problem, np.random.default_rng(0), directions=300)
    made = build_program(problem, 1e-4)
    start = milp._start(problem, made, swept)
    assert start is not None
    np.testing.assert_allclose(start[made.value], swept.values)
    assert milp._start(problem, made, None) is None
    assert milp._start(problem, made, replace(swept, feasible=False)) is None
