"""Intervals of gaps: what they cover, what they share, and what has none.

`benchmarks/coverage/bounds.py` measures coverage.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student_t

from evenhand.errors import ConfigError
from evenhand.stats.feedback import INDEFINITE, METRICS, Answers, Feedback, gap, gap_intervals, plan_answers
from evenhand.stats.feedback.inference import GapInterval, _correlation, _least_alpha

Sampler = Callable[..., Answers]


def interval(answers: Answers, metric: str = "calibration", seed: int = 0, **options: object) -> GapInterval:
    rng = np.random.default_rng(seed)
    return gap_intervals(answers, [metric], rng=rng, draws=400, **options)[metric]  # type: ignore[list-item, index, arg-type]


def test_every_gap_lies_in_its_interval(crossed: Sampler) -> None:
    for labels, kind in ((2, "agreement"), (3, "agreement"), (3, "direction"), (3, "label")):
        answers = crossed(np.random.default_rng(0), labels=labels, kind=kind, bias=(0.0, 0.6))
        found = gap_intervals(answers, METRICS, rng=np.random.default_rng(1), draws=300)
        assert list(found) == list(METRICS)
        for metric, each in found.items():
            in_sample = gap(answers.masses(), answers.feedback, metric)
            assert each.gap.upper == in_sample.upper
            assert 0 <= each.low <= in_sample.lower <= in_sample.upper <= each.high <= 1
            assert each.components is not None
            assert (each.components >= 0).all()
            np.testing.assert_allclose(each.components.sum(axis=0), each.stderr**2)


def test_misclassification_has_the_interval_of_equal_opportunity(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(2), labels=3)
    found = gap_intervals(answers, INDEFINITE, rng=np.random.default_rng(3), draws=200)
    one, two = found["equal_opportunity"], found["overall_misclassification"]
    assert (one.low, one.high) == pytest.approx((two.low, two.high))
    assert (int(one.gap.high), int(one.gap.low)) == (int(two.gap.low), int(two.gap.high))


@pytest.mark.slow
def test_intervals_of_a_null_gap_start_at_0_where_the_maximum_does_not(crossed: Sampler) -> None:
    """Four labels and no gap: the bounds' own interval misses 0 far too often, that of the cells does not."""
    missed = {"cells": 0, "bounds": 0}
    for seed in range(60):
        answers = crossed(np.random.default_rng(seed), labels=4, cases=150, critics=40, each=15)
        for method in missed:
            missed[method] += interval(answers, "calibration", seed, method=method).low > 0
    assert missed["cells"] <= 6
    assert missed["bounds"] >= missed["cells"] + 5


def test_a_real_gap_is_found(crossed: Sampler) -> None:
    """Group 1 is seen a whole step higher: the interval excludes 0 and covers the gap of a sample 50 times as large."""
    truth = gap(
        crossed(np.random.default_rng(4), bias=(0.0, 1.0), cases=20_000, critics=4_000, each=20).masses(),
        Feedback(2),
        "calibration",
    )
    found = interval(crossed(np.random.default_rng(5), bias=(0.0, 1.0), cases=400, critics=80, each=20))
    assert 0 < found.low < float(truth.estimate) < found.high < 1


def test_critics_alone_are_surer_than_critics_and_cases(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(6), critics=120, each=40)
    both, critics = interval(answers), interval(answers, resampled="critics")
    assert critics.stderr[1] < both.stderr[1]
    assert critics.components is None


def test_published_bounds_have_their_interval_too(crossed: Sampler) -> None:
    found = interval(crossed(np.random.default_rng(7), labels=3), "equal_opportunity", bounds="published")
    assert found.gap.lower < 0
    assert found.low == 0.0
    assert found.high >= found.gap.upper


def test_everybody_agrees_so_the_limit_is_that_of_a_proportion(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(8))
    all_agree = Answers(
        critic=answers.critic,
        case=answers.case,
        answer=np.zeros_like(answers.answer),
        group=answers.group,
        label=answers.label,
        groups=2,
        critics=answers.critics,
        feedback=Feedback(2),
    )
    found = interval(all_agree)
    assert float(found.gap.estimate) == 0.0
    fewest = min(
        min(np.unique(sample[cell]).size for sample in (answers.critic, answers.case))
        for group in range(2)
        for label in range(2)
        if (cell := (answers.group[answers.case] == group) & (answers.label[answers.case] == label)).any()
    )
    assert found.low == 0.0
    assert math.isclose(found.high, 1.0 - 0.025 ** (1.0 / fewest), rel_tol=1e-9)
    assert plan_answers(found, all_agree, 0.1).critics  # more of them would narrow it
    uneven = replace(all_agree, weight=np.random.default_rng(0).random(answers.answer.size))
    assert math.isclose(interval(uneven).high, found.high, rel_tol=1e-9)  # though sums of weights differ by rounding


def test_no_agreement_in_a_sample_leaves_everything_open(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(9), labels=3)
    none = Answers(
        critic=answers.critic,
        case=answers.case,
        answer=np.ones_like(answers.answer),
        group=answers.group,
        label=answers.label,
        groups=2,
        critics=answers.critics,
        feedback=Feedback(3),
    )
    found = interval(none, "equal_opportunity")
    assert float(found.gap.upper) == 0.0
    assert (found.low, found.high) == (0.0, 1.0)


def test_a_tiny_cell_may_be_anything() -> None:
    """The second group has one case of label 1: resamples often miss it, so the gap may be as large as 1."""
    critic, case = np.repeat(np.arange(30), 20), np.arange(600) % 60
    group = (np.arange(60) >= 40).astype(np.int64)
    label = np.where(group == 1, 0, np.arange(60) % 2)
    label[59] = 1
    answer = (np.random.default_rng(10).random(600) < 0.3).astype(np.int64)
    assert (
        interval(
            Answers(
                critic=critic,
                case=case,
                answer=answer,
                group=group,
                label=label,
                groups=2,
                critics=30,
                feedback=Feedback(2),
            )
        ).high
        == 1.0
    )


def test_the_method_is_checked(crossed: Sampler) -> None:
    with pytest.raises(ConfigError, match="did you mean 'cells'"):
        interval(crossed(np.random.default_rng(0)), method="cell")


class TestPlanning:
    """How many more answers."""

    def test_four_times_the_answers_halve_an_exact_gaps_interval(self, crossed: Sampler) -> None:
        answers = crossed(np.random.default_rng(11), bias=(0.0, 1.2), cases=400, critics=80, each=20)
        found = interval(answers)
        plan = plan_answers(found, answers, (found.high - found.low) / 2)
        assert plan.hurdle is None
        assert plan.critics is not None
        assert plan.critics == pytest.approx(3 * 80, abs=2)
        assert plan.cases == pytest.approx(3 * 400, abs=2)
        assert plan.answers == 20 * plan.critics
        assert plan.least == pytest.approx(0.0, abs=1e-9)

    def test_the_planned_sample_has_the_planned_width(self, crossed: Sampler) -> None:
        answers = crossed(np.random.default_rng(12), bias=(0.0, 0.8), cases=300, critics=60, each=20)
        plan = plan_answers(interval(answers), answers, 0.12)
        assert plan.critics is not None
        assert plan.cases is not None
        larger = crossed(
            np.random.default_rng(13), bias=(0.0, 0.8), cases=300 + plan.cases, critics=60 + plan.critics, each=20
        )
        found = interval(larger)
        assert found.high - found.low == pytest.approx(0.12, rel=0.25)

    def test_narrow_enough_already(self, crossed: Sampler) -> None:
        answers = crossed(np.random.default_rng(14))
        plan = plan_answers(interval(answers), answers, 0.99)
        assert (plan.critics, plan.cases, plan.answers, plan.hurdle) == (0, 0, 0, None)

    def test_what_is_left_open_stays_open(self, crossed: Sampler) -> None:
        answers = crossed(np.random.default_rng(15), labels=3)
        found = interval(answers, "equal_opportunity")
        plan = plan_answers(found, answers, 0.1)
        assert (plan.hurdle, plan.critics, plan.answers) == ("open", None, None)
        assert plan.least == pytest.approx(float(found.gap.upper - found.gap.lower))

    def test_more_critics_on_the_same_cases(self, crossed: Sampler) -> None:
        answers = crossed(np.random.default_rng(16), bias=(0.0, 1.2), cases=60, critics=80, each=30)
        found = interval(answers)
        wanted = (found.high - found.low) / 3
        stuck = plan_answers(found, answers, wanted, new_cases=False)
        assert stuck.hurdle == "cases"
        assert wanted < stuck.least < stuck.now
        slightly = plan_answers(found, answers, (stuck.least + stuck.now) / 2, new_cases=False)
        assert slightly.critics is not None
        assert slightly.critics > 0
        assert slightly.cases == 0

    def test_what_is_refused(self, crossed: Sampler) -> None:
        answers = crossed(np.random.default_rng(17))
        with pytest.raises(ConfigError, match="`width` must be above 0"):
            plan_answers(interval(answers), answers, 0.0)
        with pytest.raises(ConfigError, match="both critics and cases"):
            plan_answers(interval(answers, resampled="critics"), answers, 0.1)


def test_the_correlation_of_the_bounds_is_pearsons_over_draws_that_have_both() -> None:
    ends = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.6], [0.6, 2]], 50)
    ends[3, 0] = ends[7, 1] = np.nan
    known = ends[~np.isnan(ends).any(axis=1)]
    assert _correlation(ends) == pytest.approx(np.asarray(np.corrcoef(known.T))[0, 1])
    assert _correlation(np.column_stack([known[:, 0], np.ones(48)])) == 0.0
    assert _correlation(known[:1]) == 0.0


@pytest.mark.parametrize(("resampled", "df"), [("both", 5), ("critics", 5), ("cases", 39)])
def test_the_interval_of_an_exact_gap_is_that_of_students_t(crossed: Sampler, resampled: str, df: int) -> None:
    """With two labels calibration is known: its bounds are one number, and so are their standard errors."""
    answers = crossed(np.random.default_rng(20), bias=(0.0, 1.2), cases=40, critics=6, each=20)
    found = interval(answers, method="bounds", resampled=resampled)
    assert found.gap.lower == found.gap.upper
    reach = student_t.ppf(0.975, df) * found.stderr
    assert (found.below, found.above) == pytest.approx((reach[0], reach[1]), rel=1e-3)
    assert found.low == pytest.approx(max(0.0, float(found.gap.lower) - reach[0]), rel=1e-3)


def test_a_gap_that_may_be_0_in_every_resample_has_a_lower_bound_without_error(crossed: Sampler) -> None:
    """A step of tolerance leaves open whether who agrees means the label: all rates overlap."""
    answers = crossed(np.random.default_rng(21), labels=4, cases=40, critics=10, each=20)
    agreed = replace(answers, feedback=Feedback(4, tolerance=1), answer=np.zeros_like(answers.answer))
    found = interval(agreed, "calibration")
    assert (float(found.gap.lower), float(found.gap.upper)) == (0.0, 1.0)
    assert (found.low, found.high, found.stderr[0]) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize("alpha", [0.3, 0.03, 1e-6])
def test_the_p_value_is_the_least_alpha_whose_lower_limit_is_above_0(alpha: float) -> None:
    assert _least_alpha(lambda confidence: 1.0 if 1 - confidence >= alpha else -1.0) == pytest.approx(alpha, rel=1e-3)


def test_wide_bounds_need_one_side_only_above(crossed: Sampler) -> None:
    """What is left open is many standard errors wide, so that a gap at the upper bound is missed on one side only."""
    answers = crossed(np.random.default_rng(22), labels=3, cases=120, critics=40, each=30, bias=(0.0, 1.5))
    rng = np.random.default_rng(0)
    found = gap_intervals(answers, ["equal_opportunity"], rng=rng, draws=600)["equal_opportunity"]
    assert found.gap.upper - found.gap.lower > 5 * found.stderr.max()
    assert found.above / found.stderr[1] == pytest.approx(student_t.ppf(0.95, 39), rel=0.1)
