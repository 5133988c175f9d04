"""The test on one split: its p-values against plain loops, its laws, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest

from evenhand.errors import ConfigError, DataError
from evenhand.stats.improvability import (
    Criteria,
    FairnessTest,
    Pair,
    Rows,
    SplitTest,
    Utility,
    ValueDraws,
    bootstrap_values,
    check_counts,
    get_utility,
    largest_delta,
    make_rows,
    worst_pair,
)
from evenhand.stats.improvability.split import forward_splits
from evenhand.stats.types import FloatArray

MakeRows = Callable[..., Rows]
CALIBRATION = get_utility("calibration")


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def split(
    rows: Rows, *, fairness: tuple[str, ...] = ("calibration",), accuracy: str = "calibration", **options: object
) -> SplitTest:
    criteria = Criteria(get_utility(accuracy), tuple(get_utility(name) for name in fairness))
    draws = bootstrap_values(rows, resamples=400, rng=generator(1), studentised="studentised" in options)
    worst = [Pair(len(rows.names) - 1, 0)] * len(fairness)
    return SplitTest(draws=draws, criteria=criteria, worst=worst, **options)  # type: ignore[arg-type]


def centred_p(drawn: FloatArray, estimate: float) -> float:
    """Count by a loop; what is undefined counts against rejection."""
    reached = sum(1 for value in drawn if np.isnan(value) or value - estimate >= estimate - 1e-12)
    return (1 + reached) / (1 + len(drawn))


def statistic(draws: ValueDraws, formula: Callable[[FloatArray, FloatArray], FloatArray], utility: int = 0) -> float:
    """Return the p-value of a formula of the values F0 (..., G + 1) and F1."""
    drawn = formula(*np.moveaxis(draws.values[:, :, utility], -1, 0))
    estimate = formula(*np.moveaxis(draws.estimate[np.newaxis, :, utility], -1, 0))
    return centred_p(drawn, float(estimate[0]))


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("delta", [0.0, 0.3, 0.9])
def test_components_are_those_of_the_formulas(rows_of: MakeRows, groups: int, delta: float) -> None:
    test = split(rows_of(n=900, groups=groups))
    found = test.components(accuracy=delta, fairness=delta)
    for g in range(groups):
        expected = statistic(test.draws, lambda old, new, g=g: new[:, g] - (1 + delta) * old[:, g])  # type: ignore[misc]
        assert found.accuracy[g] == expected
    high, low = test.worst[0]
    pairs = [
        statistic(
            test.draws,
            lambda old, new, g=g, h=h: (1 - delta) * (old[:, high] - old[:, low]) - (new[:, g] - new[:, h]),  # type: ignore[misc]
        )
        for g, h in permutations(range(groups), 2)
    ]
    assert found.fairness[0] == max(pairs)
    assert found.p == max(*found.accuracy, *found.fairness)


@pytest.mark.parametrize("delta", [0.0, 0.5, 0.9])
def test_the_published_component_is_that_of_the_paper(rows_of: MakeRows, delta: float) -> None:
    """T = gap1² - (1-delta)² gap0², p the share of T* - T <= T, with one added above and below."""
    test = split(rows_of(n=900), fairness_test="published")
    gap0, gap1 = (test.draws.values[:, 0, 0, t] - test.draws.values[:, 1, 0, t] for t in (0, 1))
    own0, own1 = (float(test.draws.estimate[0, 0, t] - test.draws.estimate[1, 0, t]) for t in (0, 1))
    drawn, estimate = gap1**2 - (1 - delta) ** 2 * gap0**2, own1**2 - (1 - delta) ** 2 * own0**2
    expected = (1 + np.sum(drawn - estimate <= estimate)) / 401
    assert test.components(fairness=delta).fairness[0] == pytest.approx(expected)


def test_the_published_component_does_not_ask_for_the_sign(rows_of: MakeRows) -> None:
    rows = rows_of(n=900)
    test = split(rows, fairness_test="published")
    other = SplitTest(draws=test.draws, criteria=test.criteria, worst=[Pair(0, 1)], fairness_test="published")
    deltas = np.linspace(0, 0.9, 7)
    np.testing.assert_array_equal(test.curve("fairness", deltas), other.curve("fairness", deltas))


def test_the_studentised_component_divides_by_its_own_error(rows_of: MakeRows) -> None:
    test = split(rows_of(n=900), studentised=True)
    draws = test.draws
    assert draws.spread is not None
    assert draws.spreads is not None
    estimate = draws.estimate[0, 0, 1] - draws.estimate[0, 0, 0]
    drawn = draws.values[:, 0, 0, 1] - draws.values[:, 0, 0, 0]
    ones = np.array([-1.0, 1.0])
    own = np.sqrt(np.einsum("jst,s,t->j", draws.spreads[:, 0, 0], ones, ones))
    error = float(np.sqrt(ones @ draws.spread[0, 0] @ ones))
    expected = (1 + np.sum((drawn - estimate) / own >= estimate / error - 1e-12)) / 401
    assert test.components().accuracy[0] == pytest.approx(expected)
    plain = SplitTest(draws=draws, criteria=test.criteria, worst=test.worst)
    assert abs(test.components().p - plain.components().p) < 0.05
    assert test.components().p != plain.components().p


def test_a_studentised_test_needs_its_spread(rows_of: MakeRows) -> None:
    test = split(rows_of())
    with pytest.raises(ConfigError, match="draw them with studentised=True"):
        SplitTest(draws=test.draws, criteria=test.criteria, worst=test.worst, studentised=True).components()


def test_curves_put_the_margin_where_the_goal_says(rows_of: MakeRows) -> None:
    test = split(rows_of(n=900))
    for delta in (0.0, 0.1, 0.4):
        assert test.curve("fairness", [delta])[0] == test.components(0.0, delta).p
        assert test.curve("joint_accuracy", [delta])[0] == test.components(delta, 0.0).p
        assert test.curve(0, [delta])[0] == test.components([delta, 0.0], 0.0).p
        assert test.curve(1, [delta])[0] == test.components([0.0, delta], 0.0).p
    with pytest.raises(ConfigError, match="or a group from 0 to 1; got 2"):
        test.curve(2, [0.0])


def test_more_is_never_easier_to_show_in_the_signed_test(rows_of: MakeRows) -> None:
    test = split(rows_of(n=3_000))
    deltas = np.linspace(0, 0.99, 100)
    assert (np.diff(test.curve("fairness", deltas)) >= 0).all()
    assert (np.diff(test.curve("joint_accuracy", deltas)) >= 0).all()


def test_relabelled_groups_change_nothing(rows_of: MakeRows) -> None:
    rows = rows_of(n=900, groups=3)
    test = split(rows)
    turn = np.array([2, 0, 1])  # group g becomes turn[g]
    place = np.append(np.argsort(turn), 3)
    moved = ValueDraws(
        estimate=test.draws.estimate[place],
        values=test.draws.values[:, place],
        spread=None,
        spreads=None,
        rows=900,
        cells=9,
        method="cells",
    )
    other = SplitTest(draws=moved, criteria=test.criteria, worst=[Pair(*(int(turn[g]) for g in test.worst[0]))])
    np.testing.assert_array_equal(other.components().accuracy[turn], test.components().accuracy)
    assert other.components().fairness[0] == test.components().fairness[0]


def test_several_fairness_utilities_take_the_largest_p(rows_of: MakeRows) -> None:
    names = ("classification", "false_positive_rate", "false_negative_rate")
    rows = rows_of(n=900, utilities=names)
    test = split(rows, accuracy="classification", fairness=names)
    found = test.components(fairness=0.2)
    for k in range(3):
        high, low = test.worst[k]
        pairs = [
            statistic(
                test.draws,
                lambda old, new, g=g: 0.8 * (old[:, high] - old[:, low]) - (new[:, g] - new[:, 1 - g]),  # type: ignore[misc]  # noqa: B023
                k,
            )
            for g in (0, 1)
        ]
        assert found.fairness[k] == max(pairs)
    assert found.p >= found.fairness.max()


def test_accuracy_of_everyone_is_one_component(rows_of: MakeRows) -> None:
    test = split(rows_of(n=900))
    overall = SplitTest(draws=test.draws, criteria=Criteria(CALIBRATION, (CALIBRATION,), "everyone"), worst=test.worst)
    found = overall.components(accuracy=0.1)
    assert found.accuracy.shape == (1,)
    assert found.accuracy[0] == statistic(test.draws, lambda old, new: new[:, -1] - 1.1 * old[:, -1])


def test_lower_is_better_for_error_rates(rows_of: MakeRows) -> None:
    rows = rows_of(n=900, utilities=("false_positive_rate", "classification"))
    test = split(rows, accuracy="false_positive_rate", fairness=("classification",))
    found = test.components(accuracy=0.3)
    assert found.accuracy[1] == statistic(test.draws, lambda old, new: 0.7 * old[:, 1] - new[:, 1])


def draws_with(values: FloatArray) -> ValueDraws:
    return ValueDraws(
        estimate=values[0], values=values[1:], spread=None, spreads=None, rows=10, cells=10, method="cells"
    )


def test_a_resample_without_a_selected_row_counts_against_rejection() -> None:
    good = np.array([[[1.0, 9.0]], [[3.0, 9.0]], [[2.0, 9.0]]])
    lost = good.copy()
    lost[0, 0, 1] = np.nan
    criteria = Criteria(CALIBRATION, (CALIBRATION,))
    fine = SplitTest(draws=draws_with(np.stack([good] * 100)), criteria=criteria, worst=[Pair(1, 0)]).components()
    assert fine.p == pytest.approx(1 / 100)
    hurt = SplitTest(
        draws=draws_with(np.stack([good] * 90 + [lost] * 10)), criteria=criteria, worst=[Pair(1, 0)]
    ).components()
    assert hurt.accuracy.tolist() == pytest.approx([11 / 100, 1 / 100])
    assert hurt.fairness[0] == pytest.approx(11 / 100)


@pytest.mark.parametrize("kind", ["signed", "published"])
def test_a_candidate_that_is_the_status_quo_is_no_improvement(rows_of: MakeRows, kind: FairnessTest) -> None:
    rows = rows_of(n=900)
    same = Rows(rows.group, rows.terms[:, :, [0, 0]], rows.names, rows.utilities)
    found = split(same, fairness_test=kind).components()
    assert found.accuracy.tolist() == [1.0, 1.0]
    assert found.fairness[0] == 1.0


def test_a_wrong_sign_from_the_training_rows_does_not_reject(rows_of: MakeRows) -> None:
    test = split(rows_of(n=3_000))
    turned = SplitTest(draws=test.draws, criteria=test.criteria, worst=[Pair(test.worst[0].low, test.worst[0].high)])
    assert turned.components().fairness[0] > 0.5


# What is refused


def test_the_published_test_is_for_two_groups(rows_of: MakeRows) -> None:
    with pytest.raises(ConfigError, match="compares two groups; here are 3"):
        split(rows_of(groups=3), fairness_test="published")


def test_a_pair_for_each_fairness_utility(rows_of: MakeRows) -> None:
    test = split(rows_of())
    with pytest.raises(ConfigError, match="one pair of groups for each fairness utility, 1 here; got 2"):
        SplitTest(draws=test.draws, criteria=test.criteria, worst=[Pair(0, 1), Pair(0, 1)])


def test_criteria_name_what_is_wrong() -> None:
    with pytest.raises(ConfigError, match="at least one utility"):
        Criteria(CALIBRATION, ())
    with pytest.raises(ConfigError, match="`accuracy_of` got 'all'"):
        Criteria(CALIBRATION, (CALIBRATION,), "all")  # type: ignore[arg-type]


def test_a_share_of_a_negative_value_means_nothing() -> None:
    loss = Utility(name="loss", u=lambda y, d: -y * d, w=lambda y, d: 1.0)
    rows = make_rows([0, 0, 1, 1], [1, 2, 3, 4], [1, 1, 1, 1], [0, 1, 0, 1], utilities=[loss], names="ab")
    test = SplitTest(
        draws=bootstrap_values(rows, resamples=50, rng=generator()),
        criteria=Criteria(loss, (loss,)),
        worst=[Pair(0, 1)],
    )
    assert 0 < test.components().p <= 1
    with pytest.raises(ConfigError, match=r"value of loss is negative \(-1.5\)"):
        test.components(accuracy=0.1)


def test_fewer_than_two_rows_that_count_are_refused_and_fewer_than_ten_remarked() -> None:
    group = np.repeat([0, 1], 50)
    y = np.ones(100)
    old, new = np.ones(100), np.ones(100)
    new[50:] = 0
    new[50] = 1
    with pytest.raises(
        DataError, match=r"in split 3, only 1 row of group 'b' counts .* under the candidate .*at least 2"
    ):
        check_counts(make_rows(group, y, old, new, utilities=[CALIBRATION], names="ab"), "split 3")
    new[51:55] = 1
    remarks = check_counts(make_rows(group, y, old, new, utilities=[CALIBRATION], names="ab"), "split 3")
    assert len(remarks) == 1
    assert remarks[0].text.startswith("in split 3, only 5 rows of group 'b' count for calibration under the candidate")
    new[50:60] = 1
    assert check_counts(make_rows(group, y, old, new, utilities=[CALIBRATION], names="ab")) == ()


def test_nobody_selected_from_a_group_is_refused() -> None:
    rows = make_rows([0, 0, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0], utilities=[CALIBRATION], names="ab")
    with pytest.raises(DataError, match="only 0 rows of group 'b' count"):
        check_counts(rows)


def test_the_worst_pair_is_ordered_and_comes_from_the_values() -> None:
    group = np.repeat([0, 1, 2], 4)
    y = np.array([1, 1, 1, 1, 5, 5, 5, 5, 3, 3, 3, 3])
    assert worst_pair(group, y, np.ones(12), utility=CALIBRATION, names="abc") == Pair(1, 0)
    assert worst_pair(group, -y, np.ones(12), utility=CALIBRATION, names="abc") == Pair(0, 1)
    weights = np.where(np.arange(12) % 4 == 0, 1.0, 0.0)
    others = y + np.where(group == 2, np.arange(12) % 4 * 9, 0)  # the rows of weight 0 would change the pair
    assert worst_pair(group, others, np.ones(12), utility=CALIBRATION, names="abc") == Pair(2, 0)
    assert worst_pair(group, others, np.ones(12), utility=CALIBRATION, names="abc", weights=weights) == Pair(1, 0)


def test_a_perfectly_fair_status_quo_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"in the training rows of split 2, the status quo has the same value .* perfectly fair"
    ):
        worst_pair([0, 1], [2, 2], [1, 1], utility=CALIBRATION, names="ab", where="the training rows of split 2")


def test_a_group_without_a_value_is_refused() -> None:
    with pytest.raises(DataError, match="no row of group 'b' counts for calibration"):
        worst_pair([0, 1], [2, 2], [1, 0], utility=CALIBRATION, names="ab")


@pytest.mark.parametrize(
    ("group", "names", "words"),
    [
        ([0, 2], "ab", "between 0 and 1; got 0 to 2"),
        ([0, 0], "a", "at least 2; got 1"),
        ([0.5, 1.0], "ab", "whole number"),
    ],
)
def test_bad_groups_are_refused(group: list[float], names: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        make_rows(group, [1, 1], [1, 1], [1, 1], utilities=[CALIBRATION], names=names)


def test_bad_weights_and_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="2 numbers of at least 0"):
        make_rows([0, 1], [1, 1], [1, 1], [1, 1], utilities=[CALIBRATION], names="ab", weights=[1, -1])
    with pytest.raises(DataError, match="one value per row; got 3 and 2"):
        make_rows([0, 1, 1], [1, 1], [1, 1], [1, 1], utilities=[CALIBRATION], names="ab")


# The largest margin


def test_the_largest_delta_is_the_end_of_the_run_from_zero() -> None:
    deltas = np.arange(5) / 10
    assert largest_delta(deltas, [True] * 5) == 0.4
    assert largest_delta(deltas, [True, False, True, True, True]) == 0.0
    assert np.isnan(largest_delta(deltas, [False, True, True, True, True]))


def test_deltas_must_start_at_zero_and_rise() -> None:
    for deltas in ([0.1, 0.2], [0.0, 0.0], []):
        with pytest.raises(ConfigError, match="must rise from 0"):
            largest_delta(deltas, [True] * len(deltas))


def test_forward_splits_need_rows_before_the_first_step() -> None:
    with pytest.raises(ConfigError, match="10 rows cannot be tested in 2 steps"):
        forward_splits(10, 0.01, 2, np.random.default_rng(0))
