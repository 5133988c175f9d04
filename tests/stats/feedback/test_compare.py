"""Two kinds of critics compared: same cases, shared noise, false alarms and real differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student_t

from evenhand.errors import DataError
from evenhand.stats.feedback import INDEFINITE, Answers, Feedback, compare_critics
from evenhand.stats.feedback.compare import _tested
from evenhand.stats.multiplicity import adjusted_p

Sampler = Callable[..., Answers]


def test_rates_are_means_over_shared_cases(crossed: Sampler) -> None:
    """Each case that both kinds saw counts once for each, whoever saw it more often."""
    answers = crossed(np.random.default_rng(0), cases=30, critics=12, each=9)
    kind = np.array([0] * 8 + [1] * 4)
    found = compare_critics(answers, kind, rng=np.random.default_rng(1), draws=200)
    disagrees = answers.answer == 1
    means = np.full((2, 2, 2), np.nan)
    shared = [case for case in range(30) if {0, 1} <= set(kind[answers.critic[answers.case == case]].tolist())]
    for which in range(2):
        for group in range(2):
            for label in range(2):
                inside = [c for c in shared if answers.group[c] == group and answers.label[c] == label]
                each = [disagrees[(answers.case == c) & (kind[answers.critic] == which)].mean() for c in inside]
                means[which, group, label] = np.mean(each) if each else np.nan
    np.testing.assert_allclose(found.disagreement.lower, means[0] - means[1], atol=1e-12)
    assert found.cases == len(shared)
    assert found.df == min(8, 4, len(shared)) - 1
    assert found.critics == (8, 4)


def test_kinds_can_be_exchanged(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(2))
    kind = np.arange(answers.critics) % 3
    one = compare_critics(answers, kind, 0, 2, rng=np.random.default_rng(3))
    two = compare_critics(answers, kind, 2, 0, rng=np.random.default_rng(3))
    np.testing.assert_allclose(one.disagreement.lower, -two.disagreement.lower, atol=1e-12)
    np.testing.assert_allclose(one.disagreement.p, two.disagreement.p, atol=0.05)
    np.testing.assert_allclose(one.gaps.lower, -two.gaps.upper, atol=1e-9)


@pytest.mark.slow
def test_equal_kinds_are_rarely_called_different(crossed: Sampler) -> None:
    hits = tests = 0
    for seed in range(80):
        answers = crossed(np.random.default_rng(seed), cases=80, critics=40, each=20)
        found = compare_critics(answers, np.arange(40) // 20, rng=np.random.default_rng(seed), draws=200)
        known = found.disagreement.p[~np.isnan(found.disagreement.p)]
        hits, tests = hits + int((known < 0.05).sum()), tests + known.size
        assert (found.disagreement.adjusted_p >= found.disagreement.p - 1e-15)[~np.isnan(found.disagreement.p)].all()
    assert 0 < hits / tests < 0.09


def test_what_differs_is_found_where_it_is(crossed: Sampler) -> None:
    kind = np.arange(60) % 2
    answers = crossed(np.random.default_rng(4), cases=150, critics=60, each=40, shift=1.2 * kind)
    found = compare_critics(answers, kind, rng=np.random.default_rng(5))
    assert (found.disagreement.adjusted_p[1] < 0.01).all()
    assert (found.disagreement.adjusted_p[0] > 0.05).all()
    # The second kind sees group 1 higher: it disagrees more when the system says 0, and less when it says 1.
    assert found.disagreement.t[1, 0] < 0 < found.disagreement.t[1, 1]
    assert found.disagreement.high[1, 0] < 0 < found.disagreement.low[1, 1]
    assert (found.disagreement.low <= found.disagreement.lower).all()
    assert (found.disagreement.high >= found.disagreement.upper).all()
    calibration = found.metrics.index("calibration")
    assert found.gaps.adjusted_p[calibration] < 0.05
    assert found.gaps.upper[calibration] < 0  # the second kind sees the gap


def test_gaps_that_are_the_same_count_once(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(6))
    kind = np.arange(answers.critics) // 20
    found = compare_critics(answers, kind, rng=np.random.default_rng(7), metrics=("calibration", *INDEFINITE))
    np.testing.assert_allclose(found.gaps.p[1:], found.gaps.p[1])
    np.testing.assert_allclose(found.gaps.adjusted_p[[0, 1]], adjusted_p(found.gaps.p[:2]))
    np.testing.assert_allclose(found.gaps.adjusted_p[1:], found.gaps.adjusted_p[1])


def test_what_is_left_open_is_not_called_a_difference(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(8), labels=3)
    kind = np.arange(answers.critics) // 20
    found = compare_critics(answers, kind, rng=np.random.default_rng(9), metrics=["equal_opportunity"], draws=300)
    assert found.gaps.lower[0] < 0 < found.gaps.upper[0]
    assert (found.gaps.t[0], found.gaps.p[0]) == (0.0, 1.0)


def test_all_agree_has_no_test(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(10))
    agree = replace(answers, answer=np.zeros_like(answers.answer))
    found = compare_critics(agree, np.arange(answers.critics) // 20, rng=np.random.default_rng(11), draws=50)
    np.testing.assert_array_equal(found.disagreement.lower, 0.0)
    assert np.isnan(found.disagreement.p).all()
    assert np.isnan(found.disagreement.low).all()


def test_too_few_critics_or_cases_are_refused(crossed: Sampler) -> None:
    answers = crossed(np.random.default_rng(12), critics=4, cases=15)
    with pytest.raises(DataError, match="got 15 cases, and 3 and 1 critics"):
        compare_critics(answers, np.array([0, 0, 0, 1]), rng=np.random.default_rng(0))
    codes = np.arange(4)
    apart = Answers(
        critic=codes,
        case=codes,
        answer=codes % 2,
        group=codes % 2,
        label=codes // 2,
        groups=2,
        critics=4,
        feedback=Feedback(2),
    )
    with pytest.raises(DataError, match="got 0 cases, and 0 and 0 critics"):
        compare_critics(apart, np.array([0, 0, 1, 1]), rng=np.random.default_rng(0))


def drawn(estimate: list[float], stderr: list[float]) -> Any:
    return SimpleNamespace(both=SimpleNamespace(estimate=np.array(estimate)), stderr=lambda: np.array(stderr))


def test_a_difference_known_up_to_bounds_is_tested_at_the_bound_near_0() -> None:
    """Bounds above 0, below 0, around 0, and of which one or none varies."""
    lower = drawn([0.2, -0.9, -0.1, 0.2, 0.2], [0.1, 0.3, 0.1, 0.1, 0.0])
    upper = drawn([0.8, -0.3, 0.2, 0.8, 0.8], [0.2, 0.1, 0.1, 0.0, 0.0])
    found = _tested(lower, upper, np.arange(5), 7, 0.9)
    np.testing.assert_allclose(found.t, [2.0, -3.0, 0.0, 2.0, np.nan])
    np.testing.assert_allclose(found.p[:4], np.asarray(2 * student_t.sf([2.0, 3.0, 0.0, 2.0], 7), dtype=np.float64))
    assert np.isnan(found.p[4])
    reach = student_t.ppf(0.95, 7)
    np.testing.assert_allclose(
        found.low[:4], [0.2 - 0.1 * reach, -0.9 - 0.3 * reach, -0.1 - 0.1 * reach, 0.2 - 0.1 * reach]
    )
    np.testing.assert_allclose(found.high[:4], [0.8 + 0.2 * reach, -0.3 + 0.1 * reach, 0.2 + 0.1 * reach, 0.8])
