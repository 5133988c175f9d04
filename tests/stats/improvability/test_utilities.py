"""Utilities against plain counting and scikit-learn; selection to a capacity and its ties; what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix

from evenhand.errors import ConfigError, DataError
from evenhand.stats.improvability import (
    UTILITIES,
    Utility,
    capacity_count,
    get_utility,
    group_values,
    make_rows,
    select_top,
)
from evenhand.stats.types import FloatArray

RNG = np.random.default_rng(5)
Y = RNG.integers(0, 2, 300).astype(float)
D = RNG.integers(0, 2, 300).astype(float)
ALL = np.zeros(300, dtype=np.int64)


def value(name: str, y: FloatArray = Y, d: FloatArray = D) -> float:
    return float(group_values(*get_utility(name).terms(y, d), np.zeros(y.size, dtype=np.int64), 1)[0])


def test_rates_are_those_of_scikit_learn() -> None:
    tn, fp, fn, tp = confusion_matrix(Y, D).ravel()
    assert value("classification") == pytest.approx(accuracy_score(Y, D))
    assert value("false_positive_rate") == pytest.approx(fp / (fp + tn))
    assert value("false_negative_rate") == pytest.approx(fn / (fn + tp))
    assert value("calibration") == pytest.approx(tp / (tp + fp))


def test_calibration_is_the_mean_outcome_of_the_selected() -> None:
    y = RNG.exponential(3.0, 300)
    assert value("calibration", y) == pytest.approx(y[D == 1].mean())


def test_profit_is_the_price_where_it_is_paid() -> None:
    willing, price = np.array([5.0, 3.0, 3.0, 1.0]), np.array([4.0, 4.0, 3.0, 0.5])
    assert value("profit", willing, price) == pytest.approx((4 + 0 + 3 + 0.5) / 4)


def test_error_rates_are_better_when_lower() -> None:
    assert {name for name, utility in UTILITIES.items() if utility.better == "lower"} == {
        "mirrored_calibration",
        "false_positive_rate",
        "false_negative_rate",
        "absolute_error",
        "squared_error",
    }


def test_groups_are_kept_apart_and_an_empty_one_is_nan() -> None:
    group = np.arange(300) % 2
    u, w = get_utility("classification").terms(Y, D)
    values = group_values(u, w, group, 3)
    for g in (0, 1):
        assert values[g] == pytest.approx((Y == D)[group == g].mean())
    assert np.isnan(values[2])


def test_an_outcome_may_be_missing_where_it_does_not_matter() -> None:
    y = np.where(D == 1, Y, np.nan)
    assert value("calibration", y) == value("calibration")


@pytest.mark.parametrize("name", ["classification", "false_positive_rate", "false_negative_rate", "profit"])
def test_an_outcome_that_matters_must_not_be_missing(name: str) -> None:
    y = Y.copy()
    y[[7, 9]] = np.nan
    with pytest.raises(DataError, match=rf"'{name}' needs the outcome of 2 rows where it is missing, first row 7"):
        value(name, y)


def test_selecting_somebody_without_an_outcome_is_refused() -> None:
    with pytest.raises(DataError, match="needs the outcome of 1 row where it is missing, first row 1"):
        value("calibration", np.array([1.0, np.nan]), np.array([1.0, 1.0]))


def test_the_users_own_functions() -> None:
    own = Utility(name="net", u=lambda y, d: y * d - 0.1 * d, w=lambda y, d: 1.0)
    u, w = own.terms(Y, D)
    np.testing.assert_allclose(u, Y * D - 0.1 * D)
    np.testing.assert_array_equal(w, 1.0)
    assert get_utility(own) is own


def test_a_function_of_the_wrong_shape_is_named() -> None:
    with pytest.raises(ConfigError, match="`w` of the utility 'odd' must return one number per row, 300 here"):
        Utility(name="odd", u=lambda y, d: y, w=lambda y, d: np.ones(3)).terms(Y, D)


def test_a_function_that_is_not_finite_is_named() -> None:
    with pytest.raises(DataError, match="the utility 'odd' is not a finite number in row 0"):
        Utility(name="odd", u=lambda y, d: np.full_like(y, np.inf), w=lambda y, d: 1.0).terms(Y, D)


@pytest.mark.parametrize(
    ("name", "y", "d", "role"),
    [
        ("calibration", 1.0, 2.0, "decision"),
        ("false_positive_rate", 3.0, 1.0, "outcome"),
    ],
)
def test_values_other_than_0_and_1_are_refused(name: str, y: float, d: float, role: str) -> None:
    with pytest.raises(DataError, match=f"needs a {role} of 0 or 1; row 0 holds"):
        get_utility(name).terms([y], [d])


def test_bad_columns_are_refused() -> None:
    with pytest.raises(DataError, match="one value per row; got shapes"):
        get_utility("profit").terms([1.0, 2.0], [1.0])
    with pytest.raises(DataError, match="row 1 has no decision"):
        get_utility("profit").terms([1.0, 2.0], [1.0, np.nan])


@pytest.mark.parametrize("name", UTILITIES)
def test_utilities_travel_to_other_processes(name: str) -> None:
    again = pickle.loads(pickle.dumps(get_utility(name)))  # noqa: S301 -- our own bytes
    assert again == get_utility(name)


@given(st.lists(st.integers(0, 4), min_size=4, max_size=40), st.floats(0.2, 0.8), st.integers(0, 99))
def test_the_highest_scores_are_selected_and_ties_are_counted(scores: list[int], share: float, seed: int) -> None:
    places = round(share * len(scores))
    if not 0 < places < len(scores):
        return
    score = np.array(scores)
    found = select_top(score, share, np.random.default_rng(seed))
    assert found.selected.sum() == places
    assert score[found.selected].min() == found.cut
    assert (score[~found.selected] <= found.cut).all()
    assert found.tied == (score == found.cut).sum()
    assert found.tied_selected == (score[found.selected] == found.cut).sum()


def test_ties_are_broken_by_the_seed_alone_and_evenly() -> None:
    score = np.array([1.0, 5.0, 5.0, 5.0, 5.0, 9.0])
    counts = np.zeros(6)
    for seed in range(2_000):
        counts += select_top(score, 0.5, np.random.default_rng(seed)).selected
    assert counts[[0, 5]].tolist() == [0, 2_000]
    np.testing.assert_allclose(counts[1:5] / 2_000, 0.5, atol=0.05)
    twice = [select_top(score, 0.5, np.random.default_rng(7)).selected.tolist() for _ in range(2)]
    assert twice[0] == twice[1]


def test_without_ties_the_seed_does_not_matter() -> None:
    score = np.random.default_rng(0).random(100)
    first, second = (select_top(score, 0.03, np.random.default_rng(seed)) for seed in (1, 2))
    np.testing.assert_array_equal(first.selected, second.selected)
    assert (first.tied, first.tied_selected) == (1, 1)


@pytest.mark.parametrize("capacity", [0.0, 1.0, -0.1, 2.0, float("nan")])
def test_a_capacity_of_nobody_or_everybody_is_refused(capacity: float) -> None:
    with pytest.raises(ConfigError, match="above 0 and below 1"):
        capacity_count(capacity, 100)


def test_a_capacity_that_rounds_to_nobody_or_everybody_is_refused() -> None:
    with pytest.raises(ConfigError, match="selects nobody of 10 rows; raise it"):
        select_top(np.arange(10), 0.01, np.random.default_rng(0))
    with pytest.raises(ConfigError, match="selects everybody of 10 rows; lower it"):
        select_top(np.arange(10), 0.99, np.random.default_rng(0))


def test_a_missing_score_is_refused() -> None:
    with pytest.raises(DataError, match="none missing"):
        select_top([1.0, np.nan, 2.0], 0.5, np.random.default_rng(0))


def test_degrees_of_freedom_are_those_of_the_kurtosis_of_each_group() -> None:
    rng = np.random.default_rng(0)
    group, (y, old, new) = np.repeat([0, 1], [40, 60]), rng.integers(0, 2, (3, 100))
    new[:40] = y[:40]
    new[:2] = 1 - y[:2]  # two of forty decisions are wrong
    rows = make_rows(group, y, old, new, utilities=[get_utility("classification")], names="ab")

    def freedom(right: FloatArray) -> float:
        e = right - right.mean()
        excess = (e**4).sum() - (e**2).sum() ** 2 / e.size
        return float(min(e.size - 1.0, 2 * (e**2).sum() ** 2 / excess))

    each = [freedom((y == made)[group == g] * 1.0) for g in (0, 1) for made in (old, new)]
    assert rows.freedom() == pytest.approx(min(each))
    assert min(each) == each[1] < 10
