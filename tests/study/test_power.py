"""Power: the level under the null, more people find more, and the number needed."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import ConfigError
from evenhand.stats.regression import ols, wald_equal
from evenhand.study import Respondents, people_needed, power
from evenhand.study.simulate import _regression_p, draw_answers


def test_all_studies_at_once_give_what_one_by_one_gives() -> None:
    drawn = draw_answers(Respondents(), studies=5, people=20, rng=np.random.default_rng(0))
    who = np.repeat(np.arange(20), 12)
    expected = []
    for study in range(5):
        x = np.column_stack([drawn.aggregate[study].ravel(), drawn.trajectory[study].ravel()])
        fit = ols(x, drawn.overall[study].ravel(), ["a", "t"], who)
        expected.append(wald_equal(fit, "a", "t", "cluster").p_value)
    np.testing.assert_allclose(_regression_p(drawn), expected, rtol=1e-6)


@pytest.mark.slow
def test_without_a_difference_power_is_the_level() -> None:
    found = power(75, {"weight": 0.5, "heterogeneity": 0.3}, studies=3_000)
    assert found.value == pytest.approx(0.05, abs=0.015)
    assert found.low < found.value < found.high
    by_ranks = power(30, {"weight": 0.5, "heterogeneity": 0.3}, test="correlation", studies=150)
    assert by_ranks.value < 0.12


def test_more_people_and_larger_differences_find_more() -> None:
    values = [power(people, {"weight": 0.58}, studies=400).value for people in (15, 40, 120)]
    assert values == sorted(values)
    assert values[2] > values[0] + 0.2
    assert power(40, {"weight": 0.65}, studies=400).value > values[1]


def test_the_number_needed_reaches_the_target_and_one_fewer_does_not() -> None:
    needed = people_needed(0.8, {"weight": 0.62}, studies=400, seed=1)
    assert needed.value >= 0.8
    assert power(needed.people - 1, {"weight": 0.62}, studies=400, seed=1).value < 0.8
    assert 10 < needed.people < 80


def test_what_cannot_be_found_is_told() -> None:
    with pytest.raises(ConfigError, match="the difference is too small"):
        people_needed(0.8, {"weight": 0.5}, studies=50, most=40)
    with pytest.raises(ConfigError, match="`target` must be between 0 and 1"):
        people_needed(1.0)
    with pytest.raises(ConfigError, match=r"`people` must be an integer of at least 3; got 2\."):
        power(2)
    with pytest.raises(ConfigError, match="`people` must be an integer of at least 3; got 'x'"):
        power("x")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="did you mean 'regression'"):
        power(20, test="regresion")  # type: ignore[arg-type]
