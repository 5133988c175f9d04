"""The problem: its values are those of the utilities, its targets those of the status quo, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evenhand.errors import ConfigError, DataError
from evenhand.stats.improvability import Utility, get_utility, group_values
from evenhand.stats.linear_search import SearchProblem, search_problem

Make = Callable[..., SearchProblem]
X = np.arange(8.0).reshape(4, 2)
Y, OLD, GROUP = [0, 1, 0, 1], [1, 1, 1, 1], [0, 0, 1, 1]


@pytest.mark.parametrize("utility", ["classification", "calibration"])
def test_values_are_those_of_the_utility(problem_of: Make, utility: str) -> None:
    problem = problem_of(n=40, utility=utility, groups=3)
    rng = np.random.default_rng(1)
    y = problem.gains if utility == "calibration" else (problem.gains + 1) / 2
    for _ in range(20):
        chosen = rng.random(40) < 0.5
        u, w = get_utility(utility).terms(y, chosen)
        np.testing.assert_allclose(problem.values(chosen), group_values(u, w, problem.group, 3))


def test_targets_are_the_status_quos_values_and_iota(problem_of: Make) -> None:
    plain, strict = problem_of(n=40), problem_of(n=40, iota=0.02)
    np.testing.assert_allclose(strict.floors, plain.floors + 0.02)
    assert strict.gap_limit == np.inf
    accurate = problem_of(n=40, goal=1, iota=0.01)
    assert accurate.floors[1] == -np.inf
    assert accurate.floors[0] == pytest.approx(plain.floors[0] + 0.01)
    assert accurate.gap_limit == pytest.approx(np.ptp(plain.floors) - 0.01)


def test_judging_adds_up_what_is_missing() -> None:
    problem = search_problem(X, Y, OLD, GROUP, "ab", goal=1)
    violation, objective = problem.judge(np.array([[0.5, 0.9], [0.4, 0.4], [np.nan, 1.0]]))
    np.testing.assert_allclose(violation, [0.4, 0.1, np.inf])  # no gap was allowed; the floor of a is 0.5
    np.testing.assert_allclose(objective, [-0.9, -0.4, np.inf])


def test_coefficients_are_for_the_features_as_given(problem_of: Make) -> None:
    problem = problem_of(n=30)
    slopes, intercept = np.array([0.5, -0.25]), 0.1
    coefficients, raw = problem.raw(slopes, intercept)
    np.testing.assert_allclose(problem.given @ coefficients + raw, problem.scaled @ slopes + intercept)


def test_features_that_are_excluded_or_constant_are_left_out() -> None:
    x = np.column_stack([X, np.full(4, 7.0), [np.nan, 1, 2, 3]])
    problem = search_problem(x, Y, OLD, GROUP, "ab", excluded=[True, False, False, True], monotone=[0, -1, 0, 0])
    assert problem.used.tolist() == [1]
    assert problem.signs.tolist() == [-1]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"features": X[:3]}, DataError, r"must have 4 rows .* got shape \(3, 2\)"),
        ({"features": np.where(X == 3, np.inf, X)}, DataError, "row 1, column 1 holds inf"),
        ({"outcome": [0, 1, 2, 1]}, DataError, "classification needs an outcome of 0 or 1; got 2"),
        (
            {"outcome": [0, 1, np.nan, 1], "utility": "calibration", "status_quo": [1, 1, 0, 1]},
            DataError,
            "row 2 has no",
        ),
        ({"status_quo": [1, 1, 0, 0], "utility": "calibration"}, DataError, "selects nobody of group 'b'"),
        ({"utility": "false_negative_rate"}, ConfigError, "the linear searches know calibration"),
        ({"goal": 2}, ConfigError, "a group from 0 to 1; got 2"),
        ({"iota": -0.1}, ConfigError, "`iota` must be at least 0"),
        ({"capacity": 1.0}, ConfigError, "above 0 and below 1"),
        ({"monotone": [2, 0]}, ConfigError, "-1, 0 or 1 for each of the 2 features"),
        ({"excluded": [True]}, ConfigError, "yes or no for each of the 2 features"),
        ({"excluded": [True, True]}, ConfigError, "no feature is left"),
    ],
)
def test_what_is_refused(change: dict[str, object], error: type[Exception], words: str) -> None:
    given: dict[str, object] = {"features": X, "outcome": Y, "status_quo": OLD, "group": GROUP, "names": "ab"}
    with pytest.raises(error, match=words):
        search_problem(**(given | change))  # type: ignore[arg-type]


def test_a_weighted_value_of_the_selected_is_refused() -> None:
    """As calibration, but some of the selected count twice: the search would count them once."""
    weighted = Utility(name="weighted", u=lambda y, d: (1 + y) * y * d, w=lambda y, d: (1 + y) * d)
    with pytest.raises(ConfigError, match="weighted is another"):
        search_problem(X, Y, OLD, GROUP, "ab", utility=weighted)


def test_signs_bound_the_slopes_and_nothing_the_intercept() -> None:
    x = np.random.default_rng(0).random((12, 3))
    problem = search_problem(x, np.arange(12) % 2, np.ones(12), np.arange(12) // 6, "ab", monotone=[1, -1, 0])
    assert problem.box == [(-1.0, 1.0), (0.0, 1.0), (-1.0, 0.0), (-1.0, 1.0)]
