"""Pairs of like cases that one critic judged: against loops over all pairs, and laws."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from numpy.random import Generator

from evenhand.errors import DataError, EvenhandError
from evenhand.stats.feedback import PAIR_METRICS, Answers, Feedback, LikePairs, find_like_pairs, split_share
from evenhand.stats.feedback.pairs import ALIKE, APART, SPLIT, _Sums
from evenhand.stats.types import FloatArray, IntArray


def draw(rng: Generator, labels: int = 3, kind: str = "agreement", critics: int = 6, cases: int = 14) -> Answers:
    """Every critic answers about two thirds of the cases, with a label of their own in mind."""
    critic, case = (codes.ravel() for codes in np.indices((critics, cases)))
    seen = rng.random(critic.size) < 0.66
    critic, case = critic[seen], case[seen]
    label = rng.integers(0, labels, cases)
    feedback = Feedback(labels, kind)  # type: ignore[arg-type]
    own = rng.integers(0, labels, case.size)
    answer = feedback.admissible[label[case], :, own].argmax(axis=1)
    return Answers(
        critic=critic,
        case=case,
        answer=answer,
        group=np.zeros(cases, dtype=np.int64),
        label=label,
        groups=1,
        critics=critics,
        feedback=feedback,
    )


def by_hand(answers: Answers, traits: FloatArray, tolerances: list[float]) -> list[tuple[int, int, int, str, str]]:
    """Return each like pair with what is sure and what is possible of it, by its definition, one by one."""
    found = []
    for one, other in combinations(range(len(answers.case)), 2):
        i, j = answers.case[one], answers.case[other]
        if answers.critic[one] != answers.critic[other] or not (np.abs(traits[i] - traits[j]) <= tolerances).all():
            continue
        sets = [
            np.flatnonzero(answers.feedback.admissible[answers.label[answers.case[a]], answers.answer[a]])
            for a in (one, other)
        ]
        alike = {bool(a == b) for a, b in product(*sets)}
        same = answers.label[i] == answers.label[j]
        held_unlike_treated = {held != same for held in alike}
        sure = "unfair" if held_unlike_treated == {True} else ""
        may = "unfair" if True in held_unlike_treated else ""
        found.append((int(answers.critic[one]), int(min(i, j)), int(max(i, j)), sure, may))
    return sorted(found)


@pytest.mark.parametrize(("labels", "kind"), [(2, "agreement"), (3, "agreement"), (4, "direction"), (3, "label")])
def test_pairs_and_bounds_are_those_of_every_reading_of_the_answers(labels: int, kind: str) -> None:
    rng = np.random.default_rng(labels)
    answers, traits = draw(rng, labels, kind), rng.integers(0, 4, (14, 2)).astype(np.float64)
    pairs = find_like_pairs(answers, traits, [1.0, 2.0])
    unfair = [np.where(part[APART] | part[ALIKE], "unfair", "") for part in (pairs.least, pairs.most)]
    told = sorted(
        zip(
            pairs.critic.tolist(),
            pairs.first.tolist(),
            pairs.second.tolist(),
            *(u.tolist() for u in unfair),
            strict=True,
        )
    )
    assert told == by_hand(answers, traits, [1.0, 2.0])
    assert len(pairs) > 20


def test_with_two_labels_split_answers_are_the_pairs_that_critic_and_system_treat_differently() -> None:
    rng = np.random.default_rng(0)
    pairs = find_like_pairs(draw(rng, 2), rng.random((14, 1)), [0.4])
    for part in (pairs.least, pairs.most):
        np.testing.assert_array_equal(part[SPLIT], part[APART] ^ part[ALIKE])
        assert part[APART].any()
        assert part[ALIKE].any()


def test_the_own_labels_lie_between_the_bounds() -> None:
    rng = np.random.default_rng(1)
    traits = rng.random((14, 1))
    told = draw(rng, 4)
    own = np.array(
        [
            rng.choice(np.flatnonzero(told.feedback.admissible[told.label[c], a]))
            for c, a in zip(told.case, told.answer, strict=True)
        ]
    )
    known = find_like_pairs(replace(told, answer=own, feedback=Feedback(4, "label")), traits, [0.3])
    pairs = find_like_pairs(told, traits, [0.3])
    for metric in (APART, ALIKE):
        assert (pairs.least[metric] <= known.most[metric]).all()
        assert (known.most[metric] <= pairs.most[metric]).all()


def variance_by_hand(pairs: LikePairs, apart: FloatArray) -> float:
    """Return the sum of e e' over all pairs of pairs that share a critic or a case."""
    total = 0.0
    for a, b in product(range(len(pairs)), repeat=2):
        cases = {int(pairs.first[a]), int(pairs.second[a])} & {int(pairs.first[b]), int(pairs.second[b])}
        if cases or pairs.critic[a] == pairs.critic[b]:
            total += float(apart[a] * apart[b])
    return total


def test_the_variance_adds_up_all_pairs_that_share_a_critic_or_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    pairs = find_like_pairs(draw(rng, 2, critics=5, cases=9), rng.random((9, 1)), [0.5])
    apart = rng.standard_normal(len(pairs))
    import evenhand.stats.feedback.pairs as kernel

    plain = kernel._Sums.__init__

    def uncorrected(self: kernel._Sums, apart: FloatArray, *keys: IntArray) -> None:
        plain(self, apart, *keys)
        self.corrected = self.squares

    monkeypatch.setattr(kernel._Sums, "__init__", uncorrected)
    critics = sum(float(apart[pairs.critic == c].sum()) ** 2 for c in range(5))
    assert pairs._variance(apart, False)[0] == pytest.approx(max(variance_by_hand(pairs, apart), critics))
    assert pairs._variance(apart, True)[0] == pytest.approx(critics)


def test_neither_order_nor_names_matter_and_weights_are_repetition() -> None:
    rng = np.random.default_rng(2)
    answers, traits = draw(rng), rng.random((14, 2))
    found = find_like_pairs(answers, traits, [0.4, 0.9])
    shuffle, rename = rng.permutation(len(answers.case)), rng.permutation(14)
    place = np.argsort(rename)
    other = Answers(
        critic=answers.critic[shuffle],
        case=rename[answers.case[shuffle]],
        answer=answers.answer[shuffle],
        group=answers.group,
        label=answers.label[place],
        groups=1,
        critics=answers.critics,
        feedback=answers.feedback,
    )
    again = find_like_pairs(other, traits[place], [0.4, 0.9])
    weighted = find_like_pairs(replace(answers, weight=np.full(len(answers.case), 3.0)), traits, [0.4, 0.9])
    for metric in PAIR_METRICS:
        assert again.share(metric) == pytest.approx(found.share(metric), nan_ok=True)
        assert weighted.share(metric) == pytest.approx(found.share(metric), nan_ok=True)


def test_limits_hold_their_bounds_and_widen_with_confidence() -> None:
    rng = np.random.default_rng(3)
    pairs = find_like_pairs(draw(rng, 3, critics=12, cases=30), rng.random((30, 1)), [0.3])
    for metric in PAIR_METRICS:
        narrow, wide = (pairs.share(metric, confidence) for confidence in (0.8, 0.99))
        assert 0 <= wide.low <= narrow.low <= narrow.lower <= narrow.upper <= narrow.high <= wide.high <= 1


def test_a_share_of_none_has_an_upper_limit_only() -> None:
    """Ten critics who agree with everything: of ten independent pairs none is split with a chance of (1 - share)^10."""
    critic, case = (codes.ravel() for codes in np.indices((10, 40)))
    answers = Answers(
        critic=critic,
        case=case,
        answer=np.zeros(400, dtype=np.int64),
        group=np.zeros(40, dtype=np.int64),
        label=np.arange(40) % 2,
        groups=1,
        critics=10,
        feedback=Feedback(2),
    )
    pairs = find_like_pairs(answers, np.zeros((40, 1)), [0.0])
    assert len(pairs) == 10 * 40 * 39 // 2
    assert pairs.share(SPLIT) == pytest.approx((0.0, 0.0, 0.0, 1 - 0.025**0.1))
    assert split_share(answers) == 0


def test_no_pairs_one_pair_and_missing_traits() -> None:
    rng = np.random.default_rng(4)
    answers = draw(rng, critics=1, cases=3)
    nothing = find_like_pairs(answers, np.full((3, 1), np.nan), [9.0])
    assert len(nothing) == 0
    assert np.isnan(nothing.share(SPLIT)).all()
    one = Answers(
        critic=np.zeros(2, dtype=np.int64),
        case=np.arange(2),
        answer=np.arange(2),
        group=np.zeros(2, dtype=np.int64),
        label=np.zeros(2, dtype=np.int64),
        groups=1,
        critics=1,
        feedback=Feedback(2),
    )
    found = find_like_pairs(one, np.zeros((2, 1)), [0.0]).share(ALIKE)
    assert (found.lower, found.upper) == (1.0, 1.0)
    assert found.low < 0.1


@pytest.mark.parametrize(("traits", "tolerances"), [(np.zeros((13, 1)), [0.0]), (np.zeros((14, 0)), [])])
def test_traits_of_another_shape_are_refused(traits: FloatArray, tolerances: list[float]) -> None:
    with pytest.raises(DataError, match="a row for each case"):
        find_like_pairs(draw(np.random.default_rng(0)), traits, tolerances)


def test_a_tolerance_below_0_is_refused() -> None:
    with pytest.raises(EvenhandError, match="at least 0"):
        find_like_pairs(draw(np.random.default_rng(0)), np.zeros((14, 1)), [-1.0])


def test_sums_over_clusters_have_the_freedom_of_their_kurtosis() -> None:
    rng = np.random.default_rng(0)
    apart, keys = rng.normal(0, 1, 60), rng.integers(0, 9, 60)
    found = _Sums(apart, keys)
    summed = np.array([apart[keys == key].sum() for key in range(9)])
    squares = (summed**2).sum()
    assert (found.squares, found.corrected) == pytest.approx((squares, squares * 9 / 8))
    assert found.freedom == pytest.approx(min(8.0, 2 * squares**2 / ((summed**4).sum() - squares**2 / 9)))
    one_large = _Sums(np.array([5.0, 0.1, -0.1, 0.2, -0.2, 0.1]), np.arange(6))
    assert one_large.freedom == pytest.approx(2 * 25.11**2 / (625.0035 - 25.11**2 / 6), rel=1e-4)
    assert _Sums(np.ones(4), np.arange(4)).freedom == 3.0  # nothing is left over


def test_of_a_share_of_none_among_few_cases_half_of_them_are_independent_pairs() -> None:
    """Ten critics and six cases: three pairs share nobody; where the cases are all there are, each critic is one."""
    critic, case = (codes.ravel() for codes in np.indices((10, 6)))
    nobody = np.zeros(60, dtype=np.int64)
    answers = Answers(
        critic=critic,
        case=case,
        answer=nobody,
        group=nobody[:6],
        label=nobody[:6],
        groups=1,
        critics=10,
        feedback=Feedback(2),
    )
    pairs = find_like_pairs(answers, np.zeros((6, 1)), [0.0])
    assert pairs.share(SPLIT).high == pytest.approx(1 - 0.025 ** (1 / 3))
    assert pairs.share(SPLIT, cases_are_all=True).high == pytest.approx(1 - 0.025 ** (1 / 10))
    assert pairs.share(SPLIT, 0.8).high == pytest.approx(1 - 0.1 ** (1 / 3))


def test_split_answers_of_any_two_cases_by_counting_them() -> None:
    rng = np.random.default_rng(5)
    answers = draw(rng, 2)
    weight = rng.gamma(2.0, 1.0, len(answers.case))
    split = every = 0.0
    for one, other in combinations(range(len(answers.case)), 2):
        if answers.critic[one] == answers.critic[other]:
            every += weight[one] * weight[other]
            split += weight[one] * weight[other] * (answers.answer[one] != answers.answer[other])
    assert split_share(replace(answers, weight=weight)) == pytest.approx(split / every)
