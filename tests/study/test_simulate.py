"""Simulated respondents: what was put in comes out, and rows of a person depend on each other."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import ConfigError
from evenhand.stats.correlation import spearman_matrix
from evenhand.stats.random_intercept import random_intercept
from evenhand.stats.regression import delta_weight, ols
from evenhand.study import Respondents, simulate_responses
from evenhand.study.simulate import draw_answers

NAMES = ("aggregate", "trajectory")


def drawn(people: int = 4_000, **settings: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    answers = draw_answers(
        Respondents(careless=0.0, **settings), studies=1, people=people, rng=np.random.default_rng(1)
    )
    x = np.column_stack([answers.aggregate.ravel(), answers.trajectory.ravel()])
    return x, answers.overall.ravel(), answers.output.ravel(), np.repeat(np.arange(people), 12)


@pytest.mark.parametrize("weight", [0.3, 0.5, 0.6577])
def test_the_weight_put_in_comes_out(weight: float) -> None:
    x, overall, _, who = drawn(weight=weight)
    assert delta_weight(ols(x, overall, NAMES, who)).value == pytest.approx(weight, abs=0.01)


def test_answers_are_near_those_of_the_paper() -> None:
    """Table 2 has 0.17 and 0.43 between the distances, 0.50 to 0.79 with overall, 0.21 to 0.50 with output."""
    x, overall, output, _ = drawn()
    r = spearman_matrix(np.column_stack([x, overall, output]))
    assert 0.1 < r[0, 1] < 0.45
    assert 0.4 < r[0, 2] < r[1, 2] < 0.8
    assert 0.1 < r[0, 3] < r[1, 3] < 0.6


def test_people_differ_only_where_they_are_told_to() -> None:
    x, overall, _, who = drawn(people=400, level=0.6)
    assert random_intercept(x, overall, NAMES, who).share > 0.2
    x, overall, _, who = drawn(people=400, level=0.0, heterogeneity=0.0)
    assert random_intercept(x, overall, NAMES, who).share < 0.02
    fit = ols(x, overall, NAMES, who)
    np.testing.assert_allclose(
        fit.coefficients("cluster").stderr[1:], fit.coefficients("classical").stderr[1:], rtol=0.15
    )


def test_a_whole_study() -> None:
    responses = simulate_responses(101, conditions=["b", "a"], sets=2, seed=5)
    assert responses.conditions == ("a", "b")
    assert [sum(responses.people["condition"] == name) for name in ("a", "b")] == [50, 51]
    assert len(responses.person) == 101 * 8
    overall = responses.numbers("overall")
    assert set(np.unique(overall)) <= set(range(1, 7))
    assert ((responses.output() >= 0) & (responses.output() <= 1)).all()
    again = simulate_responses(101, conditions=["b", "a"], sets=2, seed=5)
    np.testing.assert_array_equal(again.numbers("risk"), responses.numbers("risk"))
    assert (simulate_responses(101, conditions=["b", "a"], sets=2, seed=6).numbers("overall") != overall).any()


def test_conditions_may_have_people_of_their_own() -> None:
    responses = simulate_responses(600, conditions={"x": {"weight": 0.9}, "y": Respondents(weight=0.1)}, seed=7)
    names = responses.condition_of_rows()
    for name, weight in (("x", 0.9), ("y", 0.1)):
        rows = names == name
        x = np.column_stack([responses.numbers(column)[rows] for column in NAMES])
        found = delta_weight(ols(x, responses.numbers("overall")[rows], NAMES))
        assert found.value == pytest.approx(weight, abs=0.06)


def test_careless_people_fail_checks() -> None:
    responses = simulate_responses(400, conditions={"all": {"careless": 0.5}}, seed=8)
    failed = 3 - responses.people["checks_passed"].astype(float)
    assert 0.3 < (failed >= 2).mean() < 0.5


def test_wrong_settings_are_told() -> None:
    with pytest.raises(ConfigError, match="`people` must be an integer of at least 1; got 0"):
        simulate_responses(0)
    with pytest.raises(ConfigError, match="did you mean 'weight'"):
        simulate_responses(5, conditions={"a": {"wieght": 0.5}})
