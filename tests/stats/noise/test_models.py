"""Each kind of mistake: what it may do, how often it does it, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.stats.noise import Confusion, Flip, Linear, Normal, OneHot, neighbours
from evenhand.stats.types import FloatArray

MATRIX = ((0.2, 0.5, 0.3), (0.5, 0.0, 0.5), (0.1, 0.1, 0.8))


def column(*values: float, times: int = 1) -> FloatArray:
    return np.repeat(np.array(values, dtype=float), times)[:, np.newaxis]


def test_a_flip_of_other_values() -> None:
    flipped = Flip(1.0, 2.0).draw(column(1, 2, 2), np.random.default_rng(0))
    assert flipped.ravel().tolist() == [2.0, 1.0, 1.0]


def test_a_rounded_normal_has_the_chances_of_the_bins() -> None:
    """Of N(0, 1), 0.383 round to 0 and 0.866 to -1, 0 or 1: not the 68 % of the paper."""
    moved = Normal(1.0).draw(column(5.0, times=200_000), np.random.default_rng(0)) - 5.0
    assert (moved == 0).mean() == pytest.approx(0.3829, abs=0.005)
    assert (np.abs(moved) <= 1).mean() == pytest.approx(0.8664, abs=0.005)
    assert np.array_equal(moved, np.round(moved))


def test_sd_is_the_standard_deviation() -> None:
    moved = Normal(5.0, whole=False).draw(column(0.0, times=200_000), np.random.default_rng(0))
    assert moved.std() == pytest.approx(5.0, rel=0.01)


def test_limits_are_kept() -> None:
    moved = Normal(10.0, minimum=18.0, maximum=20.0).draw(column(19.0, times=1_000), np.random.default_rng(0))
    assert moved.min() == 18.0
    assert moved.max() == 20.0


def test_a_confusion_has_its_chances() -> None:
    model = Confusion((1.0, 2.0, 3.0), MATRIX)
    rng = np.random.default_rng(0)
    for value, chances in zip((1.0, 2.0, 3.0), MATRIX, strict=True):
        values = column(value, times=60_000)
        rate = model.rate(values)
        assert rate is not None
        moved = model.draw(values, rng).ravel()
        assert rate[0] == pytest.approx(1 - chances[int(value) - 1])
        for other, chance in zip((1.0, 2.0, 3.0), chances, strict=True):
            share = 0.0 if other == value else chance / rate[0]
            assert (moved == other).mean() == pytest.approx(share, abs=0.01)


def test_categories_need_not_be_in_order() -> None:
    model = Confusion((3.0, 1.0), ((0.0, 1.0), (1.0, 0.0)))
    assert model.draw(column(1, 3), np.random.default_rng(0)).ravel().tolist() == [3.0, 1.0]


def test_an_ordered_scale_moves_to_its_neighbours() -> None:
    model = neighbours((4, 1, 2, 3), reach=2)
    assert model.values == (1.0, 2.0, 3.0, 4.0)
    np.testing.assert_allclose(model.chances[0], [0, 0.5, 0.5, 0])
    np.testing.assert_allclose(model.chances[1], [1 / 3, 0, 1 / 3, 1 / 3])


def test_one_hot_columns_stay_one_hot() -> None:
    values = np.eye(3)[np.random.default_rng(1).integers(0, 3, 3_000)]
    moved = OneHot().draw(values, np.random.default_rng(0))
    assert (moved.sum(axis=1) == 1).all()
    assert not (moved == values).all(axis=1).any()
    assert moved[values[:, 0] == 1, 1].mean() == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Flip(1.0, 1.0), "two different values"),
        (lambda: Normal(-1.0), r"`sd` must be a number from 0 to 1e\+75; got -1.0"),
        (lambda: Normal(float("nan")), "`sd` must be"),
        (lambda: Normal(1.0, minimum=2, maximum=1), "`minimum` 2 must not be above `maximum` 1"),
        (lambda: Confusion((1.0, 1.0), ((0.5, 0.5), (0.5, 0.5))), "different numbers"),
        (lambda: Confusion((0.0, 1.0), ((0.5, 0.5),)), "2 rows of 2"),
        (lambda: Confusion((0.0, 1.0), ((0.5, 0.6), (0.5, 0.5))), "add up to 1"),
        (lambda: Confusion((0.0, 1.0), ((-0.5, 1.5), (0.5, 0.5))), "not negative"),
        (lambda: neighbours((1, 2), reach=0), "`reach` must be at least 1"),
        (lambda: Linear(np.array([np.nan]), 0.0), "one finite number a column"),
        (lambda: Linear(np.ones(1), 0.0, link="probit"), "`link` got 'probit'"),  # type: ignore[arg-type]
    ],
)
def test_wrong_models_are_named(build: Any, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        build()


@pytest.mark.parametrize(
    ("model", "values", "message"),
    [
        (Flip(), column(0, 1, 2), "must be 0 or 1; got 2"),
        (Normal(1.0), column(0, np.inf), "must be finite; got inf"),
        (Confusion((1.0, 2.0, 3.0), MATRIX), column(1, 4), "one of 1, 2, 3; got 4"),
        (OneHot(), column(0, 1), "two or more columns; got 1"),
        (OneHot(), np.array([[1.0, 1.0]]), "exactly one 1"),
    ],
)
def test_values_that_a_model_cannot_change_are_named(model: Any, values: FloatArray, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        model.check(values)


def test_missing_values_pass_the_checks() -> None:
    Flip().check(column(0, np.nan))
    Confusion((1.0, 2.0, 3.0), MATRIX).check(column(1, np.nan))


def test_a_tie_does_not_depend_on_the_order_of_additions() -> None:
    weights, row = np.array([0.1, 0.2, -0.3]), np.ones((1, 3))
    order = [2, 1, 0]
    assert (row @ weights)[0] != (row[:, order] @ weights[order])[0]
    assert not Linear(weights, 0.0)(row).label[0]
    assert not Linear(weights[order], 0.0)(row[:, order]).label[0]


def test_the_logistic_threshold_is_taken_on_the_sum() -> None:
    model = Linear(np.array([1.0]), 0.0, threshold=0.5)
    assert model(np.array([[0.0], [1e-17], [1e-10]])).label.tolist() == [False, False, True]
    high = Linear(np.array([1.0]), 0.0, threshold=0.9)
    rows = np.linspace(-4, 4, 101)[:, np.newaxis]
    np.testing.assert_array_equal(high(rows).label, high(rows).score > 0.9)


def test_one_weight_among_many_is_enough_to_be_wrong() -> None:
    for wrong in (np.array([1.0, np.nan]), np.array([np.inf, 1.0]), np.ones((2, 2))):
        with pytest.raises(EvenhandError, match="one finite number a column"):
            Linear(wrong, 0.0)


def test_chances_must_add_up_to_1_but_for_rounding() -> None:
    assert Confusion((0.0, 1.0), ((1 / 3, 2 / 3), (0.1 + 0.2, 0.7))) is not None
    with pytest.raises(EvenhandError):
        Confusion((0.0, 1.0), ((1 / 3, 2 / 3 + 1e-6), (0.3, 0.7)))


def test_chances_that_add_up_to_1_but_for_rounding_are_taken() -> None:
    """0.7, 0.2 and 0.1 are together a little less than 1 in binary numbers."""
    row = (0.7, 0.2, 0.1)
    assert np.array([row]).sum(axis=1)[0] != 1.0
    assert Confusion((1.0, 2.0, 3.0), (row, row, row)).rate(column(3.0)) == pytest.approx(0.9)
    with pytest.raises(EvenhandError, match="add up to 1"):
        Confusion((1.0, 2.0, 3.0), (row, row, (0.7, 0.2, 0.1001)))
