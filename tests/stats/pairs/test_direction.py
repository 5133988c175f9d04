"""Reversed pairs against the definition written out, the laws they keep, and what no reversal says."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.stats.pairs import compare_groups, count_reversals, direction, worst_reversals
from evenhand.stats.pairs.direction import COMPARABLE, CONCORDANT, REVERSED
from evenhand.stats.types import FloatArray

Columns = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def crowd(kind: str, n: int, seed: int = 0) -> Columns:
    rng = np.random.default_rng(seed)
    start, end = rng.gamma(2.0, 1.0, n), rng.gamma(2.0, 1.0, n)
    score = 1 / (1 + np.exp(-(0.4 * (end - 2) + rng.standard_normal(n))))
    if kind == "ties":
        start, end, score = start.round(), end.round(), score.round(1)
    if kind == "binary":
        score = (score > 0.5).astype(np.float64)
    return score, 1 / (1 + np.exp(-(end - start))), start, end


def by_definition(columns: Columns, survey: FloatArray, first: Any, second: Any) -> FloatArray:
    """Comparable, reversed, concordant and shortfall, over all ordered pairs."""
    score, effort, start, end = columns
    ahead = np.greater.outer(effort, effort) & np.less_equal.outer(start, start) & np.greater_equal.outer(end, end)
    ahead &= np.outer(first, second)
    short = np.subtract.outer(score, score).T
    both = np.outer(survey, survey)
    kinds = ahead, ahead & (short > 0), ahead & (short < 0)
    return np.array([*(both[kind].sum() for kind in kinds), (both * short)[kinds[1]].sum()])


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "survey"])
@pytest.mark.parametrize("kind", ["continuous", "ties", "binary"])
def test_counts_are_those_of_the_definition(kind: str, weighted: bool) -> None:
    columns = crowd(kind, 400)
    survey = np.random.default_rng(1).gamma(2.0, 1.0, 400) if weighted else np.ones(400)
    group = np.random.default_rng(2).integers(0, 3, 400)
    found = count_reversals(*columns, group=group, survey_weight=survey)
    scaled = survey / survey.mean()
    everyone = np.ones(400, dtype=bool)
    truth = by_definition(columns, scaled, everyone, everyone)
    np.testing.assert_allclose(found.everybody.totals, truth, rtol=1e-12)
    for ahead, behind in ((0, 1), (1, 0), (2, 2)):
        expected = by_definition(columns, scaled, group == ahead, group == behind)
        np.testing.assert_allclose(found.between(ahead, behind).totals, expected, rtol=1e-12)


def test_leaving_a_person_out_is_what_the_jackknife_says() -> None:
    columns = crowd("ties", 60)
    whole = count_reversals(*columns).everybody
    shares = []
    for person in range(60):
        rest = count_reversals(*(np.delete(x, person) for x in columns)).everybody
        shares.append(rest.totals[REVERSED] / rest.pairs)
    apart = np.array(shares) - whole.totals[REVERSED] / whole.pairs
    assert whole.reversed().stderr == pytest.approx(np.sqrt(59 / 60 * np.sum(apart**2)), rel=1e-9)


def test_threads_blocks_and_row_order_change_nothing() -> None:
    columns = crowd("continuous", 3_000)
    group = np.arange(3_000) % 7
    order = np.random.default_rng(0).permutation(3_000)
    one = count_reversals(*columns, group=group, threads=1)
    other = count_reversals(*(x[order] for x in columns), group=group[order], threads=2)
    np.testing.assert_array_equal(one.everybody.totals[:3], other.everybody.totals[:3])
    np.testing.assert_array_equal(one.counts[order][:, :, :3], other.counts[:, :, :3])
    assert one.everybody.reversed().low == pytest.approx(other.everybody.reversed().low, rel=1e-9)


def test_weights_are_repetition_in_the_shares() -> None:
    columns = crowd("ties", 50)
    times = np.random.default_rng(3).integers(1, 4, 50)
    weighted = count_reversals(*columns, survey_weight=times).everybody
    repeated = count_reversals(*(np.repeat(x, times) for x in columns)).everybody
    assert weighted.reversed().value == pytest.approx(repeated.reversed().value, rel=1e-12)
    assert weighted.shortfall().value == pytest.approx(repeated.shortfall().value, rel=1e-12)


@pytest.mark.parametrize("follows", ["level", "change", "effort"])
def test_scores_that_follow_level_change_or_effort_reverse_no_pair(follows: str) -> None:
    _, effort, start, end = crowd("continuous", 300)
    follow = {"level": end, "change": end - start, "effort": effort}[follows]
    score = (follow - follow.min()) / (follow.max() - follow.min())
    found = count_reversals(score, effort, start, end).everybody
    share = found.reversed()
    assert (share.value, share.low) == (0.0, 0.0)
    assert np.isnan(share.stderr)
    punished = count_reversals(1 - score, effort, start, end).everybody.reversed()
    assert (punished.value, punished.high) == (1.0, 1.0)
    assert punished.low == pytest.approx(1 - share.high)


def test_no_reversal_gives_the_limit_of_pairs_that_share_nobody() -> None:
    """Four people in a row: 6 comparable pairs are 3 sets of 2 pairs without a common person."""
    steps = np.arange(4.0)
    share = count_reversals(steps / 4, steps / 4, np.zeros(4), steps).everybody.reversed(0.95)
    assert share.high == pytest.approx(1 - 0.025 ** (1 / 2))


def test_what_a_random_score_gives_is_the_mean_over_all_its_permutations() -> None:
    score, effort, start, end = crowd("ties", 6)
    score = np.array([0.1, 0.1, 0.4, 0.7, 0.7, 0.7])
    shares = [
        (found := count_reversals(np.array(p), effort, start, end).everybody).totals[[REVERSED, CONCORDANT]]
        / found.pairs
        for p in set(permutations(score.tolist()))
    ]
    random = count_reversals(score, effort, start, end).random
    np.testing.assert_allclose(np.mean(shares, axis=0), [random, random], rtol=1e-12)


def test_rounding_puts_nobody_ahead() -> None:
    effort = np.array([0.1 + 0.2, 0.3])
    assert count_reversals([0.2, 0.9], effort, [0, 0], [1, 1]).everybody.pairs == 0


def test_without_comparable_pairs_everything_is_undefined() -> None:
    found = count_reversals([0.2, 0.9], [0.5, 0.5], [0, 0], [1, 1]).everybody
    numbers = [*found.reversed(), *found.concordant(), *found.shortfall(), found.p_value(), found.tied]
    assert np.isnan(numbers).all()


def test_the_gap_between_groups_turns_round_with_the_groups() -> None:
    columns = crowd("continuous", 300)
    found = count_reversals(*columns, group=np.arange(300) % 2)
    gap, p = compare_groups(found.between(0, 1), found.between(1, 0))
    back, same = compare_groups(found.between(1, 0), found.between(0, 1))
    assert gap.value == pytest.approx(-back.value)
    np.testing.assert_allclose([gap.low, gap.high], [-back.high, -back.low])
    assert p == pytest.approx(same)
    assert gap.low < gap.value < gap.high


def test_the_worst_pairs_are_the_largest_shortfalls() -> None:
    score, effort, start, end = crowd("ties", 200)
    worst = worst_reversals(score, effort, start, end, count=25)
    ahead = np.greater.outer(effort, effort) & np.less_equal.outer(start, start) & np.greater_equal.outer(end, end)
    short = np.where(ahead, np.subtract.outer(score, score).T, 0.0)
    i, j = np.nonzero(short > 0)
    truth = sorted(zip(-short[i, j].round(9), i.tolist(), j.tolist(), strict=True))[:25]
    assert [tuple(pair) for pair in worst.people.tolist()] == [row[1:] for row in truth]
    np.testing.assert_allclose(worst.shortfall, [-row[0] for row in truth], atol=1e-9)


def test_a_wrong_end_is_named() -> None:
    with pytest.raises(EvenhandError, match="`end` must be one finite number per person"):
        count_reversals([0.2, 0.9], [0.5, 0.5], [0, 0], [1, np.nan])


def test_few_people_behind_all_reversals_leave_few_degrees_of_freedom() -> None:
    """2 k for k of many people who make all of the spread; all of them, less one, where everybody adds as much."""
    line = np.linspace(0.1, 0.9, 100)
    found = count_reversals(line, line, line, line).everybody
    assert found._freedom(np.repeat([3.0, 0.0], [2, 98])) == pytest.approx(4 / (1 - 0.02))
    assert found._freedom(np.ones(100)) == 99


def test_ties_matchings_and_a_random_score_by_hand() -> None:
    columns = crowd("ties", 40)
    survey, group = np.random.default_rng(1).gamma(2.0, 1.0, 40), (np.arange(40) < 12).astype(np.int64)
    found = count_reversals(*columns, group=group, survey_weight=survey)
    w = survey / survey.mean()
    both = np.outer(w, w) * ~np.eye(40, dtype=bool)
    same = np.equal.outer(columns[0], columns[0])
    assert found.everybody.random == pytest.approx((1 - (both * same).sum() / both.sum()) / 2)
    kinds = by_definition(columns, w, np.ones(40, dtype=bool), np.ones(40, dtype=bool))
    assert found.everybody.tied == pytest.approx(1 - (kinds[1] + kinds[2]) / kinds[0])
    plain = count_reversals(*columns, group=group)
    assert (plain.between(0, 1).matchings, plain.between(1, 0).matchings) == (28.0, 28.0)
    assert (plain.between(0, 0).matchings, plain.between(1, 1).matchings) == (27.0, 11.0)


def test_without_reversals_there_is_no_shortfall() -> None:
    steps = np.arange(4.0)
    found = count_reversals(steps / 4, steps / 4, np.zeros(4), steps).everybody
    assert found.totals[REVERSED] == 0
    assert np.isnan(found.shortfall()).all()


def test_how_far_the_count_has_come_ends_at_all_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups fill a block of 128 places each, the rest of it repeated rows without weight."""
    monkeypatch.setattr(direction, "_STEP_PAIRS", 1)
    calls: list[tuple[int, int]] = []
    count_reversals(*crowd("ties", 20), group=np.arange(20) % 2, threads=1, progress=lambda *said: calls.append(said))
    assert calls == [(256 * 128, 256**2), (256**2, 256**2)]


def test_groups_without_reversals_differ_by_nothing_known_up_to_both_limits() -> None:
    """All go up in a row: neither set has a reversed pair, so nothing varies and there is no test."""
    steps = np.arange(8.0)
    found = count_reversals(steps / 8, steps / 8, np.zeros(8), steps, group=np.arange(8) // 4)
    one, other = found.between(0, 0), found.between(1, 1)
    gap, p = compare_groups(one, other)
    assert gap.value == 0.0
    assert (gap.low, gap.high) == pytest.approx((-other.reversed().high, one.reversed().high))
    assert np.isnan(p)


def test_a_difference_of_shares_lies_between_minus_1_and_1() -> None:
    """In group 0 no pair is reversed, in group 1 all are."""
    steps = np.tile(np.arange(4.0), 2)
    score = np.append(steps[:4], 3 - steps[4:]) / 4
    found = count_reversals(score, steps / 8, np.zeros(8), steps, group=np.arange(8) // 4)
    for one, other, ends in ((0, 1, (-1.0, -1.0)), (1, 0, (1.0, 1.0))):
        gap, _ = compare_groups(found.between(one, one), found.between(other, other))
        assert gap.value == ends[0]
        assert -1.0 <= gap.low <= gap.value <= gap.high <= 1.0


def test_the_limits_of_a_difference_are_those_of_correlated_shares() -> None:
    """Zou 2007: with the distances x and y of both shares to their limits, sqrt(x² - 2 r x y + y²)."""
    found = count_reversals(*crowd("continuous", 60), group=np.arange(60) % 2)
    one, other = found.between(0, 1), found.between(1, 0)
    (value, low, high, _), _ = compare_groups(one, other)
    a, b = one.reversed(), other.reversed()
    r = np.corrcoef(one._apart(REVERSED, COMPARABLE), other._apart(REVERSED, COMPARABLE))[0, 1]
    assert value == pytest.approx(a.value - b.value)
    for end, x, y in (
        (value - low, a.value - a.low, b.high - b.value),
        (high - value, a.high - a.value, b.value - b.low),
    ):
        assert end == pytest.approx(np.sqrt(x**2 - 2 * r * x * y + y**2), rel=1e-3)


def test_the_effective_number_of_people_is_kishs() -> None:
    assert direction._kish(np.array([1.0, 1.0, 2.0])) == pytest.approx(16 / 6)
    assert direction._kish(np.zeros(3)) == 0.0
