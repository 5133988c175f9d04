"""Rates of 0 and 1: the number behind them counted one by one, and the limit by the binomial distribution."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats.feedback import Answers, Feedback, rates
from evenhand.stats.feedback.limits import numbers_behind, slacks


def test_the_numbers_behind_calibration_are_critics_or_cases() -> None:
    rng = np.random.default_rng(0)
    critic, case = np.divmod(rng.choice(9 * 40, 150, replace=False), 40)
    group, label = rng.integers(0, 2, 40), rng.integers(0, 3, 40)
    answers = Answers(critic, case, rng.integers(0, 2, 150), group, label, 2, 9, Feedback(3))
    both, critics = (numbers_behind(answers, "calibration", how) for how in ("both", "critics"))
    for g in range(2):
        for k in range(3):
            cell = (group[case] == g) & (label[case] == k)
            assert critics[g, k] == min(len(set(critic[cell])), cell.sum())
            assert both[g, k] == min(len(set(critic[cell])), len(set(case[cell])))
    assert np.isinf(numbers_behind(answers, "statistical_parity", "critics")).all()


def test_a_limit_leaves_the_tail() -> None:
    masses = np.array([[[7.0, 0.0], [2.0, 2.0]], [[3.0, 3.0], [2.0, 2.0]]])
    found = rates(masses, Feedback(2), "calibration")
    slack = slacks(found, masses.sum(axis=-1), 0.025)
    assert slack[0] == 0.0  # a rate of 1 cannot be larger
    assert (1.0 - slack[2]) ** 7 == pytest.approx(0.025)  # the chance that all 7 agree, at the limit
