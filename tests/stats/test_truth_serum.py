"""The truth serum: Prelec's formula written out by hand, its laws, ties and gaps."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evenhand.errors import EvenhandError
from evenhand.stats.truth_serum import bonus, person_scores, score_parts, scores

answered = arrays(np.int64, (7, 3), elements=st.integers(0, 1))
predicted = arrays(np.float64, (7, 3), elements=st.floats(0, 1))


def by_the_book(answers: list[int], shares: list[list[float]], weight: float) -> list[float]:
    """The definition for one question, a person at a time."""
    n, k = len(answers), len(shares[0])
    x = [sum(a == j for a in answers) / n for j in range(k)]
    y = [float(np.prod([row[j] for row in shares])) ** (1 / n) for j in range(k)]
    return [
        log(x[a] / y[a]) + weight * sum(x[j] * log(row[j] / x[j]) for j in range(k) if x[j] > 0)
        for a, row in zip(answers, shares, strict=True)
    ]


@given(answered, predicted, st.floats(0, 3))
def test_scores_follow_the_definition(answers: np.ndarray, shares: np.ndarray, weight: float) -> None:
    clipped = np.clip(shares, 0.01, 0.99)
    expected = [
        by_the_book(answers[:, q].tolist(), np.column_stack([1 - clipped[:, q], clipped[:, q]]).tolist(), weight)
        for q in range(3)
    ]
    np.testing.assert_allclose(scores(answers, shares, weight=weight), np.transpose(expected), atol=1e-9)


def test_more_than_two_answers() -> None:
    rng = np.random.default_rng(0)
    answers, shares = rng.integers(0, 4, 20), rng.dirichlet(np.full(4, 9.0), 20)
    np.testing.assert_allclose(scores(answers, shares), by_the_book(answers.tolist(), shares.tolist(), 1.0), rtol=1e-12)


@given(answered, predicted)
def test_at_weight_one_the_scores_of_a_question_sum_to_zero(answers: np.ndarray, shares: np.ndarray) -> None:
    np.testing.assert_allclose(scores(answers, shares).sum(axis=0), 0, atol=1e-10)


@given(answered, predicted)
def test_calling_the_answers_by_other_names_changes_nothing(answers: np.ndarray, shares: np.ndarray) -> None:
    np.testing.assert_allclose(scores(1 - answers, 1 - shares), scores(answers, shares), atol=1e-12)


@given(answered, predicted, st.permutations(range(7)))
def test_the_order_of_people_does_not_matter(answers: np.ndarray, shares: np.ndarray, order: list[int]) -> None:
    np.testing.assert_allclose(scores(answers[order], shares[order]), scores(answers, shares)[order], atol=1e-12)


def test_a_worked_example() -> None:
    """Two of three agree. y = (0.6 * 0.6 * 0.3)^(1/3) for yes and (0.4 * 0.4 * 0.7)^(1/3) for no."""
    found = score_parts([1, 1, 0], [0.6, 0.6, 0.3])
    yes, no = (0.6 * 0.6 * 0.3) ** (1 / 3), (0.4 * 0.4 * 0.7) ** (1 / 3)
    assert found.information == pytest.approx([log(2 / 3 / yes)] * 2 + [log(1 / 3 / no)])
    expected = [2 / 3 * log(p / (2 / 3)) + 1 / 3 * log((1 - p) / (1 / 3)) for p in (0.6, 0.6, 0.3)]
    assert found.prediction == pytest.approx(expected)
    assert found.total == pytest.approx(found.information + found.prediction)


def test_a_surprisingly_common_answer_is_one_that_is_more_common_than_predicted() -> None:
    """The paper's sentence has it backwards."""
    parts = score_parts([1, 1, 1, 0], [0.5] * 4)
    assert parts.information[0] > 0 > parts.information[3]


def test_the_truthful_prediction_scores_best() -> None:
    answers = np.array([1] * 7 + [0] * 3)
    shares = np.linspace(0.05, 0.95, 10)
    parts = score_parts(answers, shares)
    assert np.argmax(parts.prediction) == np.argmin(np.abs(shares - 0.7))
    assert (parts.prediction <= 1e-12).all()


def test_extreme_predictions_are_moved_inwards() -> None:
    found = scores([1, 1, 0], [1.0, 0.0, 0.5])
    np.testing.assert_allclose(found, scores([1, 1, 0], [0.99, 0.01, 0.5]))
    assert np.isfinite(scores([1, 1, 1], [0.0, 1.0, 0.0])).all()


def test_who_left_something_out_takes_no_part() -> None:
    answers = np.array([1.0, np.nan, 0.0, 1.0, 0.0])
    shares = np.array([0.6, 0.5, np.nan, 0.7, 0.2])
    whole = np.array([0, 3, 4])
    found = scores(answers, shares)
    assert np.isnan(found[[1, 2]]).all()
    np.testing.assert_allclose(found[whole], scores(answers[whole], shares[whole]))
    np.testing.assert_allclose(scores([1, -1, 0], [0.6, 0.5, 0.4])[[0, 2]], scores([1, 0], [0.6, 0.4]))


def test_one_person_or_nobody() -> None:
    assert scores([1], [0.3]) == pytest.approx([0.0])
    assert np.isnan(scores([np.nan, np.nan], [0.2, 0.3])).all()
    assert scores([], []).shape == (0,)


def test_a_person_is_scored_over_the_questions_they_took_part_in() -> None:
    rng = np.random.default_rng(1)
    answers, shares = rng.integers(0, 2, (6, 4)).astype(float), rng.random((6, 4))
    shares[0, 1:] = np.nan
    mean, counted = person_scores(scores(answers, shares))
    assert counted.tolist() == [1, 4, 4, 4, 4, 4]
    assert mean[0] == scores(answers, shares)[0, 0]


@pytest.mark.parametrize(("n", "places"), [(149, 15), (144, 14), (5, 1), (1, 1), (10, 1), (25, 3)])
def test_ten_percent_of_people(n: int, places: int) -> None:
    found = bonus(np.arange(n) / n)
    assert found.places == places
    assert found.chosen.sum() == places
    assert found.chosen[-places:].all()
    assert found.rank[-1] == 1


def test_ties_at_the_last_place() -> None:
    values = [0.5, 0.4, 0.4, 0.4, 0.1, 0.0, -0.1, -0.2, -0.3, -0.4]
    all_paid = bonus(values, share=0.2)
    assert all_paid.chosen.tolist() == [True] * 4 + [False] * 6
    assert (all_paid.places, all_paid.tied) == (2, 2)
    none_paid = bonus(values, share=0.2, include_ties=False)
    assert none_paid.chosen.tolist() == [True] + [False] * 9
    assert all_paid.rank.tolist()[:5] == [1, 2, 2, 2, 5]
    almost = np.add(values, [0, 1e-13, -1e-13, 0, 0, 0, 0, 0, 0, 0])
    assert bonus(almost, share=0.2).chosen.tolist() == all_paid.chosen.tolist()


def test_only_the_eligible_compete() -> None:
    found = bonus([9.0, np.nan, 1.0, 0.5, 0.1], share=0.5, eligible=[False, True, True, True, True])
    assert found.chosen.tolist() == [False, False, True, True, False]
    assert found.rank.tolist() == [0, 0, 1, 2, 3]
    assert not bonus([np.nan]).chosen.any()


@pytest.mark.parametrize(
    ("answers", "predictions", "message"),
    [
        ([0, 1], [40, 60], "divide percentages by 100"),
        ([0, 2], [0.4, 0.6], "whole numbers from 0 to 1; got 2"),
        ([0, 0.5], [0.4, 0.6], "got 0.5"),
        ([0, 1], [0.4, 0.6, 0.5], "shape of `answers`"),
        ([[[0]]], [[[0.5]]], r"\(people, questions\)"),
    ],
)
def test_wrong_input_is_told(answers: Any, predictions: Any, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        scores(answers, predictions)


def test_wrong_options_are_told() -> None:
    with pytest.raises(EvenhandError, match="`share` must be above 0"):
        bonus([1.0], share=0.0)
    with pytest.raises(EvenhandError, match="`clip`"):
        scores([1], [0.5], clip=(0.0, 1.0))


def test_scores_that_differ_in_the_ninth_decimal_are_no_tie_and_those_beyond_it_are() -> None:
    assert bonus([0.3, 0.300000004, 0.1], share=0.4).chosen.tolist() == [False, True, False]
    assert bonus([0.3, 0.3000000001, 0.1], share=0.4).chosen.tolist() == [True, True, False]


def test_the_sentence_names_the_prediction_that_is_no_share() -> None:
    with pytest.raises(EvenhandError, match=r"got 1\.5"):
        scores([0, 1, 1], [0.0, 1.0, 1.5])


def test_the_sentence_names_a_share_below_0_too() -> None:
    with pytest.raises(EvenhandError, match=r"got -0\.2"):
        scores([0, 1, 1], [0.0, 1.0, -0.2])


@pytest.mark.parametrize("clip", [(0.0, 0.5), (0.5, 0.5), (0.6, 0.5), (0.5, 1.0), (0.5, 1.5)])
def test_shares_are_moved_inwards_to_shares(clip: tuple[float, float]) -> None:
    with pytest.raises(EvenhandError, match="`clip` must be two increasing shares between 0 and 1"):
        scores([0, 1, 1], [0.2, 0.5, 0.4], clip=clip)


def test_without_anybody_eligible_nobody_is_paid() -> None:
    found = bonus([0.3, 0.1], eligible=[False, False])
    assert (found.chosen.tolist(), found.rank.tolist()) == ([False, False], [0, 0])
    assert (found.places, found.tied) == (0, 0)
