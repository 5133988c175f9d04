"""The engine against the definition: everybody predicted at every level, from the same random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.stats.agreement import Undefined, binary_counts, score_moments
from evenhand.stats.noise import (
    Experiment,
    Flip,
    Linear,
    NoiseItem,
    Normal,
    Paths,
    Predictor,
    Simulation,
    paths,
    products,
    replicate_seeds,
    simulate,
    thresholded,
    with_derived,
)
from evenhand.stats.noise.states import DrawnMistakes
from evenhand.stats.types import FloatArray

Make = Callable[..., Experiment]
SEEDS = replicate_seeds(3, np.random.default_rng(1))
MODES: list[dict[str, Any]] = [
    {},
    {"shares": "exact"},
    {"common": False},
    {"common": False, "shares": "exact"},
    {"raters": 2},
    {"raters": 2, "common": False},
]


def check_sums(trial: Experiment, done: Simulation, full: Paths) -> None:
    """Every metric of every cell equals the one of the full predictions."""
    counts, moments = done.sums.counts(), done.sums.moments()
    for cell in range(len(trial.base.starts) - 1):
        at = np.unravel_index(cell, trial.cells)
        own = slice(trial.base.starts[cell], trial.base.starts[cell + 1])
        expected = binary_counts(full.first_label[..., own], full.second_label[..., own])
        np.testing.assert_array_equal(counts.both[:, :, at[0], at[1]], expected.both)
        np.testing.assert_allclose(counts.kappa()[:, :, at[0], at[1]], expected.kappa(), atol=1e-14)
        scores = score_moments(full.first_score[..., own], full.second_score[..., own])
        for name in ("mean_first", "mean_second", "variance_first", "variance_second", "variance_error", "mean_error"):
            np.testing.assert_allclose(getattr(moments, name)[:, :, at[0], at[1]], getattr(scores, name), atol=1e-14)
        np.testing.assert_allclose(moments.icc_a1()[:, :, at[0], at[1]], scores.icc_a1(), atol=1e-12)


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("kind", ["linear", "curved"])
def test_the_engine_gives_what_predicting_everything_gives(
    experiment: Make,
    by_definition: Callable[..., Paths],
    request: pytest.FixtureRequest,
    kind: str,
    mode: dict[str, Any],
) -> None:
    trial = experiment(request.getfixturevalue(kind), **mode)
    full = by_definition(trial, SEEDS)
    found = paths(trial, SEEDS)
    np.testing.assert_array_equal(found.first_label, full.first_label)
    np.testing.assert_array_equal(found.second_label, full.second_label)
    np.testing.assert_allclose(found.first_score, full.first_score, atol=1e-14)
    np.testing.assert_allclose(found.second_score, full.second_score, atol=1e-14)
    check_sums(trial, simulate(trial, SEEDS), full)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_threads_and_memory_change_nothing(experiment: Make, mode: dict[str, Any]) -> None:
    seeds = replicate_seeds(40, np.random.default_rng(1))
    one = simulate(experiment(**mode), seeds, threads=1)
    other = simulate(experiment(**mode), seeds, threads=3)
    little = simulate(experiment(**mode, memory=1), seeds, threads=2)
    for name in ("second_ones", "both_ones", "second", "second_squares", "error_squares", "first"):
        np.testing.assert_array_equal(getattr(one.sums, name), getattr(other.sums, name))
        np.testing.assert_allclose(getattr(one.sums, name), getattr(little.sums, name), atol=1e-13)


def test_a_replicate_does_not_depend_on_how_many_there_are(experiment: Make) -> None:
    few = simulate(experiment(), replicate_seeds(3, np.random.default_rng(1)))
    many = simulate(experiment(), replicate_seeds(30, np.random.default_rng(1)))
    np.testing.assert_allclose(few.sums.error_squares, many.sums.error_squares[:3], atol=1e-14)


def test_models_are_asked_once_a_fold_and_block(
    experiment: Make, curved: Callable[[int], tuple[Predictor, ...]]
) -> None:
    asked: list[int] = []

    def counting(predict: Predictor) -> Predictor:
        def count(rows: FloatArray) -> Any:
            asked.append(len(rows))
            return predict(rows)

        return count

    trial = experiment(lambda folds: tuple(counting(model) for model in curved(folds)))
    simulate(trial, replicate_seeds(12, np.random.default_rng(0)))
    assert len(asked) == 2 + 2  # everybody's true rows, then all states
    assert sum(asked[2:]) < 12 * 90 * 5
    asked.clear()
    simulate(experiment(lambda folds: tuple(counting(model) for model in curved(folds)), memory=40_000), SEEDS)
    assert max(asked) <= 40_000 // (8 * 9)


def test_linear_models_with_different_thresholds_are_predicted_by_rows(
    experiment: Make, linear: Callable[[int], tuple[Predictor, ...]], by_definition: Callable[..., Paths]
) -> None:
    trial = experiment(lambda folds: (linear(folds)[0], Linear(np.ones(9), 0.1, threshold=0.3)))
    assert trial.slopes is None
    check_sums(trial, simulate(trial, SEEDS), by_definition(trial, SEEDS))


def test_the_identity_link(experiment: Make, by_definition: Callable[..., Paths]) -> None:
    trial = experiment(lambda folds: (Linear(np.ones(9), 0.1, threshold=9.0, link="identity"),) * folds)
    assert trial.slopes is not None
    check_sums(trial, simulate(trial, SEEDS), by_definition(trial, SEEDS))


def test_derived_columns_follow_their_sources() -> None:
    rng = np.random.default_rng(2)
    sex, white = rng.integers(0, 2, (2, 400)).astype(float)
    features = np.column_stack([sex, white, sex * white])
    model = Linear(np.array([1.0, 0.3, -1.0]), -0.5)
    items = (NoiseItem((0,), Flip()),)
    fixed = Experiment(
        features=features, predictors=(model,), items=items, groups=white.astype(int), levels=np.array([0.5])
    )
    following = Experiment(
        features=features,
        predictors=(with_derived(model, products({2: (0, 1)})),),
        items=items,
        groups=white.astype(int),
        levels=np.array([0.5]),
    )
    held, follows = (simulate(trial, SEEDS).sums.moments().mean_squared_error() for trial in (fixed, following))
    assert (held[..., 1] > 0.01).all()
    np.testing.assert_array_equal(follows[..., 1], 0.0)  # sex + white - sex * white is 1 for all white people
    np.testing.assert_allclose(follows[..., 0], held[..., 0], atol=1e-14)
    assert features[0, 2] == sex[0] * white[0]


def test_level_zero_changes_nothing(experiment: Make) -> None:
    done = simulate(experiment(), SEEDS)
    np.testing.assert_array_equal(done.sums.moments().icc_a1()[:, 0], 1.0)
    np.testing.assert_array_equal(done.sums.counts().pabak()[:, 0], 1.0)
    nothing = simulate(experiment(levels=np.array([0.0])), SEEDS)
    np.testing.assert_array_equal(nothing.sums.moments().icc_a1(), 1.0)
    assert paths(experiment(levels=np.array([0.0])), SEEDS).second_score.shape == (3, 1, 90)


def test_missing_entries_stay_missing() -> None:
    features = np.array([[np.nan, 1.0], [0.0, np.nan], [1.0, 2.0]] * 20)
    seen: list[FloatArray] = []

    def score(rows: FloatArray) -> FloatArray:
        seen.append(rows.copy())
        return np.asarray(np.nan_to_num(rows, nan=5.0).sum(axis=1))

    items = (NoiseItem((0,), Flip()), NoiseItem((1,), Normal(3.0)))
    trial = Experiment(
        features=features,
        predictors=(thresholded(score),),
        items=items,
        groups=np.zeros(60, dtype=int),
        levels=np.array([1.0]),
    )
    simulate(trial, SEEDS)
    states = seen[1]
    assert np.isnan(states).any()
    assert np.isin(states[~np.isnan(states[:, 0]), 0], [0, 1]).all()
    assert not (np.isnan(states[:, 0]) & np.isnan(states[:, 1])).any()


def test_a_feature_that_the_model_does_not_use_makes_no_difference(experiment: Make) -> None:
    trial = experiment(
        lambda folds: (Linear(np.eye(9)[8], -0.5),) * folds,
        items=(NoiseItem((0,), Flip()), NoiseItem((1,), Normal(2.0))),
    )
    done = simulate(trial, SEEDS)
    np.testing.assert_array_equal(done.sums.moments().mean_squared_error(), 0.0)


@pytest.mark.parametrize("threshold", [-1.0, 2.0])
def test_a_threshold_that_everybody_or_nobody_passes(experiment: Make, threshold: float) -> None:
    model = thresholded(lambda rows: rows[:, 0] / 2, threshold)
    counts = simulate(experiment(lambda folds: (model,) * folds), SEEDS).sums.counts()
    assert np.isnan(counts.kappa()).all()
    np.testing.assert_array_equal(counts.pabak(), 1.0)
    assert set(counts.why_undefined("kappa").ravel()) == {Undefined.ONE_CLASS}


def test_constant_scores_have_no_icc(experiment: Make) -> None:
    model = thresholded(lambda rows: np.full(len(rows), 0.3))
    moments = simulate(experiment(lambda folds: (model,) * folds), SEEDS).sums.moments()
    assert np.isnan(moments.icc_a1()).all()
    assert set(moments.why_undefined("icc_a1").ravel()) == {Undefined.NO_SPREAD}


def test_a_group_of_three(experiment: Make) -> None:
    rng = np.random.default_rng(0)
    features = rng.integers(0, 2, (50, 1)).astype(float)
    groups = np.array([1] * 3 + [0] * 47)
    trial = Experiment(
        features=features, predictors=(Linear(np.ones(1), -0.5),), items=(NoiseItem((0,), Flip()),), groups=groups
    )
    done = simulate(trial, SEEDS)
    assert done.sums.n.tolist() == [[47.0, 3.0]]
    assert np.isfinite(done.sums.counts().pabak()).all()


def test_an_empty_cell_is_undefined() -> None:
    """Nobody of group 1 is in fold 0."""
    features = np.arange(12.0)[:, np.newaxis] % 2
    groups, folds = np.array([0] * 8 + [1] * 4), np.array([0] * 4 + [1] * 8)
    trial = Experiment(
        features=features,
        predictors=(Linear(np.ones(1), -0.5),) * 2,
        items=(NoiseItem((0,), Flip()),),
        groups=groups,
        folds=folds,
    )
    counts = simulate(trial, SEEDS).sums.counts()
    assert np.isnan(counts.pabak()[:, :, 0, 1]).all()
    assert np.isfinite(counts.pabak()[:, :, 1]).all()


def test_progress_counts_draws(experiment: Make) -> None:
    calls: list[tuple[int, int]] = []
    simulate(experiment(), replicate_seeds(40, np.random.default_rng(0)), progress=lambda *call: calls.append(call))
    assert calls[-1] == (40, 40)
    calls.clear()
    simulate(experiment(common=False), SEEDS, progress=lambda *call: calls.append(call))
    assert calls[-1] == (15, 15)


def test_a_model_that_raises_is_heard(experiment: Make) -> None:
    def broken(rows: FloatArray) -> FloatArray:
        raise RuntimeError("no such column")

    with pytest.raises(RuntimeError, match="no such column"):
        simulate(experiment(lambda folds: (thresholded(broken),) * folds), SEEDS)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda rows: np.full(len(rows), np.nan), r"gave the score nan for the row \("),
        (lambda rows: np.zeros((len(rows), 2)), r"one score a row; \d+ rows gave the shape \(\d+, 2\)"),
    ],
)
def test_wrong_scores_are_named(experiment: Make, score: Any, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        simulate(experiment(lambda folds: (thresholded(score),) * folds), SEEDS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"items": ()}, "at least one item"),
        ({"items": (NoiseItem((0,), Flip()), NoiseItem((0,), Flip()))}, "column 0 is in two items"),
        ({"items": (NoiseItem((12,), Flip()),)}, "from 0 to 8; got 12"),
        ({"items": (NoiseItem((1,), Flip()),)}, "must be 0 or 1; got"),
        ({"levels": np.array([0.2, 0.1])}, "must rise"),
        ({"levels": np.array([0.5, 1.5])}, "more than every entry"),
        ({"levels": np.array([])}, "one or more noise levels"),
        ({"shares": "exactly"}, "did you mean 'exact'"),
        ({"raters": 3}, "must be 1 or 2"),
        ({"memory": 0}, "at least 1 byte"),
    ],
)
def test_wrong_experiments_are_named(experiment: Make, change: dict[str, Any], message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        experiment(**change)


def test_wrong_people_are_named() -> None:
    features, model, items = np.zeros((4, 1)), Linear(np.ones(1), 0.0), (NoiseItem((0,), Flip()),)
    with pytest.raises(EvenhandError, match="`groups` must be 4 whole numbers"):
        Experiment(features=features, predictors=(model,), items=items, groups=np.zeros(3, dtype=int))
    with pytest.raises(EvenhandError, match="one model per fold; got 1 for 2 folds"):
        Experiment(
            features=features,
            predictors=(model,),
            items=items,
            groups=np.zeros(4, dtype=int),
            folds=np.array([0, 0, 1, 1]),
        )
    with pytest.raises(EvenhandError, match="`features` must be a table"):
        Experiment(features=np.zeros(4), predictors=(model,), items=items, groups=np.zeros(4, dtype=int))
    with pytest.raises(EvenhandError, match="`replicates` must be at least 1"):
        replicate_seeds(0, np.random.default_rng(0))


# How often, and how


def shares_touched(trial: Experiment, draws: int) -> FloatArray:
    """(levels, cells) mean share of changed entries of the first item."""
    found = np.zeros((trial.levels.size, len(trial.base.starts) - 1))
    for seed in replicate_seeds(draws, np.random.default_rng(5)):
        mistakes = DrawnMistakes.none(trial, 1, trial.levels.size)
        mistakes.fill(0, trial, np.random.default_rng(seed))
        for level in range(trial.levels.size):
            changed = mistakes.level[0, :, 0] <= level
            found[level] += np.bincount(trial.base.cell, changed, found.shape[1])
    return np.asarray(found / (draws * np.diff(trial.base.starts)))


def test_bernoulli_shares_are_right_on_average(experiment: Make) -> None:
    trial = experiment(items=(NoiseItem((0,), Flip()),))
    np.testing.assert_allclose(
        shares_touched(trial, 2_000), np.broadcast_to(trial.levels[:, np.newaxis], (5, 4)), atol=0.012
    )


def test_exact_shares_are_exact_in_each_fold_and_group(experiment: Make) -> None:
    trial = experiment(items=(NoiseItem((0,), Flip()),), shares="exact")
    sizes = np.diff(trial.base.starts)
    expected = trial.levels[:, np.newaxis] * sizes
    assert (np.abs(shares_touched(trial, 1) * sizes - expected) < 1).all()
    np.testing.assert_allclose(shares_touched(trial, 2_000) * sizes, expected, atol=5 * 0.5 / np.sqrt(2_000))


def test_every_person_is_touched_equally_often_with_exact_shares(experiment: Make) -> None:
    trial = experiment(items=(NoiseItem((0,), Flip()),), shares="exact", levels=np.array([0.3]))
    touched = np.zeros(90)
    for seed in replicate_seeds(2_000, np.random.default_rng(5)):
        mistakes = DrawnMistakes.none(trial, 1, 1)
        mistakes.fill(0, trial, np.random.default_rng(seed))
        touched += mistakes.level[0, :, 0] == 0
    np.testing.assert_allclose(touched / 2_000, 0.3, atol=5 * np.sqrt(0.3 * 0.7 / 2_000))


@pytest.mark.slow
def test_fresh_and_common_random_numbers_agree_on_average(experiment: Make) -> None:
    seeds = replicate_seeds(400, np.random.default_rng(7))
    both = [simulate(experiment(common=common), seeds).sums.counts().pabak() for common in (True, False)]
    error = np.sqrt(sum(value.var(axis=0) for value in both) / 400)
    difference = both[0].mean(axis=0) - both[1].mean(axis=0)
    assert (np.abs(difference) <= 4.5 * error + 1e-12).all()


def test_common_random_numbers_tie_the_levels_together(experiment: Make) -> None:
    """The difference of two near levels varies much less than with fresh numbers."""
    seeds = replicate_seeds(200, np.random.default_rng(7))
    spread = []
    for common in (True, False):
        agreed = simulate(experiment(common=common, levels=np.array([0.25, 0.3])), seeds).sums.counts().pabak()
        spread.append((agreed[:, 1] - agreed[:, 0]).std())
    assert spread[0] < 0.7 * spread[1]


def test_two_noisy_raters_have_no_bias_between_them(experiment: Make) -> None:
    seeds = replicate_seeds(300, np.random.default_rng(3))
    one, two = (simulate(experiment(raters=raters, levels=np.array([0.3]), folds=1), seeds).sums for raters in (1, 2))
    bias = two.moments().mean_error
    assert (np.abs(bias.mean(axis=0)) < 4 * bias.std(axis=0) / np.sqrt(300)).all()
    assert (two.counts().pabak().mean(axis=0) < one.counts().pabak().mean(axis=0)).all()


def test_renewed_items_are_used(experiment: Make, by_definition: Callable[..., Paths]) -> None:
    def renew(rng: np.random.Generator) -> tuple[NoiseItem, ...]:
        return (NoiseItem((1,), Normal(float(rng.choice([0.0, 50.0])))),)

    trial = experiment(items=(NoiseItem((1,), Normal(1.0)),), renew=renew, levels=np.array([0.9]), folds=1)
    seeds = replicate_seeds(12, np.random.default_rng(0))
    wrong = simulate(trial, seeds).sums.moments().mean_squared_error()[:, 0, 0, 0]
    assert (wrong == 0).any()
    assert (wrong > 0.01).any()
    other = experiment(items=(NoiseItem((0,), Flip()),), renew=renew)
    with pytest.raises(EvenhandError, match="same columns"):
        simulate(other, SEEDS)


@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize("raters", [1, 2])
def test_the_damage_is_of_changed_decisions_and_squared_errors(experiment: Make, common: bool, raters: int) -> None:
    trial = experiment(common=common, raters=raters)
    seen = paths(trial, SEEDS)
    above = trial.levels > 0
    expected = (seen.first_label != seen.second_label)[:, above].mean(axis=(0, 1))
    squares = ((seen.first_score - seen.second_score) ** 2)[:, above].mean(axis=(0, 1))
    np.testing.assert_allclose(simulate(trial, SEEDS).damage, [expected, squares], atol=1e-12)
