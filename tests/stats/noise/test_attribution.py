"""Shapley values against the definition over all orders, and the engine's coalitions against one at a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.stats.agreement import score_moments
from evenhand.stats.noise import (
    Attribution,
    Experiment,
    Flip,
    Linear,
    NoiseItem,
    PairSums,
    Predictions,
    Predictor,
    attribute,
    replicate_seeds,
    shapley,
)
from evenhand.stats.noise.attribution import _orders, _over_orders, coalition_sums
from evenhand.stats.noise.states import DrawnMistakes
from evenhand.stats.types import FloatArray

Make = Callable[..., Experiment]
SEEDS = replicate_seeds(3, np.random.default_rng(2))


def icc(sums: PairSums) -> FloatArray:
    return sums.moments().icc_a1()


def pabak(sums: PairSums) -> FloatArray:
    return sums.counts().pabak()


def shared_out(trial: Experiment, metric: Callable[[PairSums], FloatArray], **settings: Any) -> Attribution:
    return attribute(trial, SEEDS, {"it": metric}, **settings)["it"]


def over_all_orders(worth: FloatArray, items: int) -> FloatArray:
    gains = np.zeros((items, *worth.shape[1:]))
    orders = list(permutations(range(items)))
    for order in orders:
        coalition = 0
        for item in order:
            gains[item] += worth[coalition | 1 << item] - worth[coalition]
            coalition |= 1 << item
    return gains / len(orders)


def test_shapley_is_the_mean_gain_over_all_orders() -> None:
    worth = np.random.default_rng(0).normal(size=(2**5, 3))
    np.testing.assert_allclose(shapley(worth), over_all_orders(worth, 5), atol=1e-13)
    np.testing.assert_allclose(shapley(worth).sum(axis=0), worth[-1] - worth[0], atol=1e-13)


def test_shapley_of_an_additive_game_and_of_a_dummy() -> None:
    worth = np.array([sum(w for bit, w in enumerate((3.0, 0.0, -1.0)) if s >> bit & 1) for s in range(8)])
    np.testing.assert_allclose(shapley(worth), [3.0, 0.0, -1.0], atol=1e-13)
    with pytest.raises(EvenhandError, match=r"all 2\^J coalitions; got 3"):
        shapley(np.zeros(3))


@pytest.mark.parametrize("kind", ["linear", "curved"])
def test_coalitions_are_what_predicting_each_gives(experiment: Make, request: pytest.FixtureRequest, kind: str) -> None:
    models: Callable[[int], tuple[Predictor, ...]] = request.getfixturevalue(kind)
    trial = experiment(models, levels=np.array([0.5]))
    rows_only = experiment(
        lambda folds: tuple(lambda rows, m=m: m(rows) for m in models(folds)), levels=np.array([0.5])
    )
    mistakes, by_rows = DrawnMistakes.none(trial, 1, 1), DrawnMistakes.none(rows_only, 1, 1)
    mistakes.fill(0, trial, np.random.default_rng(SEEDS[0]))
    by_rows.fill(0, rows_only, np.random.default_rng(SEEDS[0]))
    summed = coalition_sums(trial, mistakes, mistakes.level[0] == 0)
    base = trial.base
    for coalition in range(2**6):
        rows, at = base.features.copy(), 0
        for j, item in enumerate(trial.items):
            for column in item.columns:
                if coalition >> j & 1:
                    wrong = by_rows.level[0, :, j] == 0
                    rows[wrong, column] = by_rows.value[0, wrong, at]
                at += 1
        for cell in range(4):
            own = slice(base.starts[cell], base.starts[cell + 1])
            found = models(2)[cell // 2](rows[own])
            assert summed[1, coalition, cell] == pytest.approx(found.label.sum(), abs=1e-9)
            error = score_moments(base.score[own], found.score).mean_squared_error() * (own.stop - own.start)
            assert summed[7, coalition, cell] == pytest.approx(float(error), abs=1e-12)


@pytest.mark.parametrize("metric", [icc, pabak])
def test_exact_values_add_up_and_drawn_orders_come_near(
    experiment: Make, metric: Callable[[PairSums], FloatArray]
) -> None:
    trial = experiment(levels=np.array([0.5]))
    exact = shared_out(trial, metric)
    drawn = shared_out(trial, metric, permutations=400)
    assert exact.exact
    assert not drawn.exact
    np.testing.assert_allclose(exact.values.sum(axis=1), exact.total, atol=1e-12)
    np.testing.assert_allclose(drawn.values.sum(axis=1), drawn.total, atol=1e-12)
    np.testing.assert_allclose(drawn.total, exact.total, atol=1e-12)
    np.testing.assert_allclose(drawn.values, exact.values, atol=0.02)


def test_all_orders_drawn_would_be_exact(experiment: Make) -> None:
    """With two items an order and its reverse are all there are."""
    trial = experiment(levels=np.array([0.5]), items=(NoiseItem((0,), Flip()), NoiseItem((8,), Flip())))
    exact, drawn = shared_out(trial, icc), shared_out(trial, icc, permutations=2)
    np.testing.assert_allclose(drawn.values, exact.values, atol=1e-12)


def test_a_feature_without_weight_gets_nothing(experiment: Make) -> None:
    weights = np.zeros(9)
    weights[0] = 1.0
    trial = experiment(
        lambda folds: (Linear(weights, -0.5),) * folds,
        levels=np.array([0.5]),
        items=(NoiseItem((0,), Flip()), NoiseItem((8,), Flip())),
    )
    found = shared_out(trial, pabak)
    np.testing.assert_allclose(found.values[:, 1], 0.0, atol=1e-14)
    np.testing.assert_allclose(found.values[:, 0], found.total, atol=1e-14)


def test_eleven_features_are_drawn_by_default() -> None:
    rng = np.random.default_rng(0)
    features = rng.integers(0, 2, (60, 11)).astype(float)
    items = tuple(NoiseItem((column,), Flip()) for column in range(11))
    trial = Experiment(
        features=features,
        predictors=(Linear(rng.normal(size=11), 0.0),),
        items=items,
        groups=np.arange(60) % 2,
        levels=np.array([0.2]),
    )
    found = shared_out(trial, icc)
    assert not found.exact
    assert found.values.shape == (3, 11, 2)
    np.testing.assert_allclose(found.values.sum(axis=1), found.total, atol=1e-12)


def test_threads_change_nothing(experiment: Make) -> None:
    trial = experiment(levels=np.array([0.5]))
    for orders in (None, 10):
        one, two = (shared_out(trial, icc, permutations=orders, threads=threads) for threads in (1, 2))
        np.testing.assert_array_equal(one.values, two.values)


@pytest.mark.parametrize("orders", [None, 4])
def test_several_statistics_cost_one_prediction(
    experiment: Make, curved: Callable[[int], tuple[Predictor, ...]], orders: int | None
) -> None:
    asked = []

    def counting(folds: int) -> tuple[Predictor, ...]:
        def one(model: Predictor) -> Predictor:
            def predict(rows: FloatArray) -> Predictions:
                asked.append(len(rows))
                return model(rows)

            return predict

        return tuple(one(model) for model in curved(folds))

    trial = experiment(counting, levels=np.array([0.5]))
    alone = [shared_out(trial, metric, permutations=orders) for metric in (icc, pabak)]
    apart, asked[:] = sum(asked) - len(trial.features), []
    together = attribute(trial, SEEDS, {"icc": icc, "pabak": pabak}, permutations=orders)
    assert sum(asked) == apart / 2
    for one, other in zip(alone, together.values(), strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.total, other.total)


def test_wrong_experiments_are_named(experiment: Make) -> None:
    with pytest.raises(EvenhandError, match="`level` must be one of the 5 noise levels; got 5"):
        shared_out(experiment(), icc, level=5)
    with pytest.raises(EvenhandError, match="one rater who makes mistakes"):
        shared_out(experiment(levels=np.array([0.5]), raters=2), icc)
    with pytest.raises(EvenhandError, match="`permutations` must be at least 2"):
        shared_out(experiment(levels=np.array([0.5])), icc, permutations=1)


def test_every_second_order_is_the_reverse_of_the_one_ahead() -> None:
    for number in (1, 4, 5):
        orders = _orders(4, number, np.random.default_rng(0))
        assert orders.shape == (number, 4)
        assert (np.sort(orders, axis=1) == np.arange(4)).all()
        np.testing.assert_array_equal(orders[1::2], orders[: number - 1 : 2, ::-1])


def test_values_over_orders_by_hand() -> None:
    """Item 1 first brings 3, then item 0 brings 1; the other way round item 0 brings 2, and item 1 brings 2."""
    one, two = np.array([[0.0], [3.0], [4.0]]), np.array([[0.0], [2.0], [4.0]])
    values, whole = _over_orders(np.array([[1, 0], [0, 1]]), [one, two])
    assert (values.tolist(), whole.tolist()) == ([[1.5], [2.5]], [4.0])
    values, whole = _over_orders(np.array([[1, 0]]), [one])
    assert (values.tolist(), whole.tolist()) == ([[1.0], [3.0]], [4.0])
