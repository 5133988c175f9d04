"""Effort and aggregate: the paper's formulas, written out by hand, and their laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evenhand.errors import EvenhandError
from evenhand.stats.effort import (
    MEASURES,
    acceleration,
    aggregate_scores,
    effort_bins,
    effort_scores,
    trajectory_measure,
)

trajectories = arrays(np.float64, (4, 5), elements=st.floats(-50, 50))


def by_the_book(x: list[float], times: list[float]) -> float:
    """The definition, step by step: cumulative sums, velocities, accelerations, their mean."""
    total = [sum(x[: t + 1]) for t in range(len(x))]
    gap = [times[t + 1] - times[t] for t in range(len(x) - 1)]
    velocity = [(total[t + 1] - total[t]) / gap[t] for t in range(len(x) - 1)]
    steps = [(velocity[t + 1] - velocity[t]) / ((gap[t] + gap[t + 1]) / 2) for t in range(len(x) - 2)]
    return sum(steps) / len(steps)


@given(trajectories, st.lists(st.floats(0.1, 5), min_size=4, max_size=4))
def test_acceleration_follows_its_definition(x: np.ndarray, gaps: list[float]) -> None:
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    expected = [by_the_book(row.tolist(), times.tolist()) for row in x]
    np.testing.assert_allclose(acceleration(x, times), expected, rtol=1e-9, atol=1e-9)


@given(trajectories)
def test_with_unit_steps_only_two_values_enter(x: np.ndarray) -> None:
    np.testing.assert_allclose(acceleration(x), (x[:, -1] - x[:, 1]) / 3, rtol=1e-9, atol=1e-9)
    changed = x.copy()
    changed[:, [0, 2, 3]] = 7.0
    np.testing.assert_allclose(acceleration(changed), acceleration(x), atol=1e-9)


def test_the_first_time_step_never_enters_even_with_unequal_steps() -> None:
    x, times = np.array([[1.0, 2.0, 5.0, 3.0]]), [0.0, 1.0, 3.0, 8.0]
    moved = x + np.array([[100.0, 0, 0, 0]])
    assert acceleration(x, times) == acceleration(moved, times)
    assert acceleration(x, times) != acceleration(x + np.array([[0, 0, 1.0, 0]]), times)


def test_the_example_of_the_paper() -> None:
    """Income of 60, 90 and 100 thousand: cumulative acceleration 10 thousand, positive effort."""
    assert acceleration([[60.0, 90.0, 100.0]]) == [10.0]


@given(trajectories)
def test_less_is_better_mirrors_more_is_better(x: np.ndarray) -> None:
    np.testing.assert_allclose(effort_scores(x, desirable=False) + effort_scores(x), 1.0, rtol=1e-12)


def test_effort_is_inertia_times_a_sigmoid() -> None:
    from scipy.special import expit

    x, m = np.array([[0.0, 1.0, 2.0, 4.0], [5.0, 5.0, 1.0, 0.0]]), np.array([0.3, 1.0])
    expected = m * expit((x[:, 3] - x[:, 1]) / 2)
    np.testing.assert_allclose(effort_scores(x * 10_000, m, unit=10_000), expected, rtol=1e-12)
    np.testing.assert_allclose(aggregate_scores(x, 2.0), 2 * expit(x.sum(axis=1) / 2) - 1, rtol=1e-12)


def test_extreme_values_neither_overflow_nor_warn() -> None:
    assert effort_scores([[0.0, -1e6, 1e6]]) == [1.0]
    assert effort_scores([[0.0, 1e6, -1e6]]) == [0.0]
    assert aggregate_scores([[1e12, 1e12, 0.0]], 1.0) == [1.0]


def test_measures_agree_on_a_straight_line() -> None:
    times = [0.0, 1.0, 2.5, 4.0, 7.0]
    line = np.outer([1.0, -2.0], times) + 3
    for measure in MEASURES[1:]:
        np.testing.assert_allclose(trajectory_measure(line, measure, times), [1.0, -2.0], rtol=1e-12)
    np.testing.assert_allclose(trajectory_measure(np.outer([1.0, -2.0], range(5)), "acceleration"), [1.0, -2.0])


def test_slope_and_theil_sen_equal_scipy() -> None:
    from scipy.stats import linregress, theilslopes

    rng = np.random.default_rng(0)
    x, times = rng.normal(size=(6, 7)), np.cumsum(rng.uniform(0.5, 2, 7))
    for row, slope, robust in zip(
        x, trajectory_measure(x, "slope", times), trajectory_measure(x, "theil_sen", times), strict=True
    ):
        assert slope == pytest.approx(linregress(times, row).slope, rel=1e-10)
        assert robust == pytest.approx(theilslopes(row, times).slope, rel=1e-10)


def test_a_person_on_a_bin_edge_belongs_to_the_bin_above_it() -> None:
    edges = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    assert effort_bins(edges).tolist() == list(range(10))
    assert effort_bins(edges + 0.05).tolist() == list(range(10))
    assert effort_bins(edges[1:] - 1e-6).tolist() == list(range(9))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": [[1.0, 2.0]]}, "at least 3 time steps"),
        ({"x": [[1.0, np.nan, 2.0]]}, "must be finite; row 0 holds nan"),
        ({"x": [[1.0, np.inf, 2.0]]}, "must be finite"),
        ({"x": [[1.0, 2.0, 3.0]], "inertia": 0.0}, "`inertia` must be above 0 and finite; got 0"),
        ({"x": [[1.0, 2.0, 3.0]], "inertia": [-0.5]}, "got -0.5"),
        ({"x": [[1.0, 2.0, 3.0]], "unit": 0.0}, "`unit` must be above 0"),
        ({"x": [[1.0, 2.0, 3.0]], "times": [0.0, 2.0, 2.0]}, "3 rising time stamps"),
    ],
)
def test_wrong_input_is_told(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        effort_scores(**arguments)  # type: ignore[arg-type]


def test_one_time_step_has_an_aggregate() -> None:
    np.testing.assert_allclose(aggregate_scores([[2.0]], 4.0), 2 / (1 + np.exp(-0.5)) - 1)
