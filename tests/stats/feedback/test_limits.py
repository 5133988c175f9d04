"""Intervals of what is known up to bounds, and rates of 0 and 1: by other means, and by counting one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from evenhand.errors import ConfigError
from evenhand.stats.feedback import Answers, Feedback, numbers_of, rates, set_interval
from evenhand.stats.feedback.limits import critical_values, effective_sizes, slacks

CASES = [
    (width, ratio, correlation)
    for width in (0.0, 0.01, 0.03, 0.2)
    for ratio in (0.5, 1.0)
    for correlation in (-0.6, 0.0, 0.9)
]


def coverages(below: float, above: float, width: float, ratio: float, correlation: float) -> tuple[float, float]:
    """The chances to cover the lower and the upper end of the set."""
    lower, upper = 0.02, 0.02 * ratio
    cov = [[1.0, -correlation], [-correlation, 1.0]]
    return (
        float(multivariate_normal.cdf([below, above + width / upper], cov=cov)),
        float(multivariate_normal.cdf([below + width / lower, above], cov=cov)),
    )


@pytest.mark.parametrize(("width", "ratio", "correlation"), CASES)
def test_stoyes_interval_covers_both_ends_and_none_is_shorter(width: float, ratio: float, correlation: float) -> None:
    below, above = critical_values(
        0.3, 0.3 + width, lower_stderr=0.02, upper_stderr=0.02 * ratio, correlation=correlation, confidence=0.95
    )
    ends = coverages(below, above, width, ratio, correlation)
    assert min(ends) >= 0.95 - 1e-4
    length = below + ratio * above
    for other in np.linspace(1.65, 2.6, 20):
        shorter = (length - 0.01 - other) / ratio
        assert min(coverages(float(other), shorter, width, ratio, correlation)) < 0.95


@pytest.mark.parametrize(("width", "ratio", "correlation"), CASES)
def test_imbens_and_manskis_interval_solves_its_equation(width: float, ratio: float, correlation: float) -> None:
    below, above = critical_values(
        0.3,
        0.3 + width,
        lower_stderr=0.02,
        upper_stderr=0.02 * ratio,
        correlation=correlation,
        confidence=0.9,
        method="imbens_manski",
    )
    assert below == above
    assert norm.cdf(below + width / 0.02) - norm.cdf(-below) == pytest.approx(0.9, abs=1e-9)


def test_from_the_two_sided_to_the_one_sided_quantile() -> None:
    point, wide = (set_interval(0.4, upper, 0.01, 0.01, 1.0) for upper in (0.4, 0.9))
    assert point.below == pytest.approx(1.96, abs=0.001)
    assert (point.low, point.high) == pytest.approx((0.3804, 0.4196), abs=1e-4)
    assert wide.below == pytest.approx(1.645, abs=0.001)


@pytest.mark.slow
@pytest.mark.parametrize("width", [0.0, 0.02, 0.05])
def test_each_value_between_the_bounds_is_covered(width: float) -> None:
    """Simulated: bounds that are jointly normal and in order."""
    rng = np.random.default_rng(0)
    shared, own = rng.standard_normal((2, 1_500))
    lower = 0.4 + 0.02 * shared
    upper = 0.4 + width + 0.02 * shared + 0.01 * np.abs(own) * (width > 0)
    stderr = float(upper.std()), float(lower.std())
    correlation = float(np.corrcoef(lower, upper)[0, 1])
    inside = np.zeros(3)
    for low_end, high_end in zip(lower, upper, strict=True):
        found = set_interval(low_end, high_end, stderr[1], stderr[0], correlation, method="imbens_manski")
        inside += [found.low <= value <= found.high for value in (0.4, 0.4 + width / 2, 0.4 + width)]
    assert (inside / 1_500).min() >= 0.935


def test_limits_stay_possible() -> None:
    found = set_interval(0.01, 0.99, 0.1, 0.1)
    assert (found.low, found.high) == (0.0, 1.0)
    assert set_interval(-0.5, 0.5, 0.1, 0.1, possible=(-1.0, 1.0)).low < -0.6


def test_one_bound_that_does_not_vary() -> None:
    found = set_interval(0.0, 0.4, 0.0, 0.05)
    assert found.low == 0.0
    assert found.high == pytest.approx(0.4 + 1.645 * 0.05, abs=1e-3)


@pytest.mark.parametrize("stderr", [0.0, math.nan])
def test_bounds_that_do_not_vary_have_no_interval(stderr: float) -> None:
    found = set_interval(0.2, 0.4, stderr, stderr)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_unless_they_span_everything() -> None:
    found = set_interval(0.0, 1.0, 0.0, 0.0)
    assert (found.low, found.high) == (0.0, 1.0)


def test_the_method_is_checked() -> None:
    with pytest.raises(ConfigError, match="did you mean 'stoye'"):
        set_interval(0.0, 1.0, 0.1, 0.1, method="stoy")  # type: ignore[arg-type]


def test_the_numbers_behind_calibration_are_critics_or_cases() -> None:
    rng = np.random.default_rng(0)
    critic, case = np.divmod(rng.choice(9 * 40, 150, replace=False), 40)
    group, label = rng.integers(0, 2, 40), rng.integers(0, 3, 40)
    answers = Answers(
        critic=critic,
        case=case,
        answer=rng.integers(0, 2, 150),
        group=group,
        label=label,
        groups=2,
        critics=9,
        feedback=Feedback(3),
    )
    both, critics = (effective_sizes(answers, "calibration", how) for how in ("both", "critics"))
    for g in range(2):
        for k in range(3):
            cell = (group[case] == g) & (label[case] == k)
            assert critics[g, k] == min(len(set(critic[cell])), cell.sum())
            assert both[g, k] == min(len(set(critic[cell])), len(set(case[cell])))
    assert np.isinf(effective_sizes(answers, "statistical_parity", "critics")).all()


def test_a_limit_leaves_the_tail() -> None:
    masses = np.array([[[7.0, 0.0], [2.0, 2.0]], [[3.0, 3.0], [2.0, 2.0]]])
    found = rates(masses, Feedback(2), "calibration")
    slack = slacks(found, masses.sum(axis=-1), 0.025)
    assert slack[0] == 0.0  # a rate of 1 cannot be larger
    assert (1.0 - slack[2]) ** 7 == pytest.approx(0.025)  # the chance that all 7 agree, at the limit


def test_a_rate_rests_on_those_who_mean_the_label_or_another() -> None:
    masses = np.array([[[5.0, 2.0], [0.0, 4.0], [6.0, 3.0]]])  # agree and disagree, for each of three labels
    feedback = Feedback(3)
    np.testing.assert_array_equal(numbers_of(masses, feedback, "equal_opportunity"), [[5, 5, 6]])
    np.testing.assert_array_equal(numbers_of(masses, feedback, "predictive_equality"), [[6, 11, 5]])
    only = np.array([[[5.0, 2.0], [0.0, 4.0], [0.0, 3.0]]])
    np.testing.assert_array_equal(numbers_of(only, feedback, "predictive_equality"), [[2, 5, 5]])


@pytest.mark.parametrize("stderrs", [(0.0, 0.02), (0.02, 0.0)])
def test_a_bound_without_error_far_from_the_other_leaves_a_one_sided_test(stderrs: tuple[float, float]) -> None:
    assert critical_values(
        0.2, 0.7, lower_stderr=stderrs[0], upper_stderr=stderrs[1], correlation=0.0, confidence=0.95
    ) == pytest.approx((1.6448536, 1.6448536), abs=1e-6)


def test_labels_of_all_cases_are_known_without_critics() -> None:
    case = np.arange(6)
    answers = Answers(
        critic=case % 2,
        case=case,
        answer=case % 2,
        group=case % 3,
        label=case % 2,
        groups=3,
        critics=2,
        feedback=Feedback(2),
    )
    found = effective_sizes(answers, "statistical_parity", "critics")
    assert found.shape == (3, 2)
    assert np.isinf(found).all()


def test_numbers_behind_rates_of_0_and_1_by_hand() -> None:
    """Two samples of two groups: agree and disagree of each of two labels."""
    masses = np.array([[[[5, 1], [2, 3]], [[0, 4], [6, 0]]], [[[1, 0], [0, 7]], [[2, 2], [3, 3]]]], dtype=float)
    found = numbers_of(masses, Feedback(2), "predictive_equality")  # who agrees on the other label, or refuses this one
    assert found.tolist() == [[[2, 5], [6, 0]], [[0, 1], [3, 2]]]
    found = numbers_of(masses, Feedback(2), "equal_opportunity")  # who agrees, or refuses the other
    assert found.tolist() == [[[5, 2], [0, 6]], [[1, 0], [2, 3]]]
    assert numbers_of(masses, Feedback(2), "calibration").tolist() == [[[6, 5], [4, 6]], [[1, 7], [4, 6]]]
