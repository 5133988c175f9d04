"""People's values: their means are the metrics, and their influence is right; the comparison of two groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand.stats.noise import (
    SUMS,
    Experiment,
    Flip,
    Linear,
    NoiseItem,
    Normal,
    PairSums,
    paths,
    replicate_seeds,
    simulate,
)
from evenhand.stats.noise.states import person_sums
from evenhand.stats.permutation import compare_means
from evenhand.stats.reliability import METRICS, compare_people, curves, derivatives_of, metric_values, people_values
from evenhand.stats.two_rates import compare_rates
from evenhand.stats.types import FloatArray

RATIOS = ("kappa", "ac1", "alpha", "icc_a1", "concordance")
SEEDS = replicate_seeds(4, np.random.default_rng(1))
NO_FOLDS = np.zeros(660, dtype=np.int64)


def trial(people: int = 160, **settings: Any) -> Experiment:
    """Return two groups in two folds, with mistakes in a number and in a category."""
    rng = np.random.default_rng(0)
    asked: dict[str, Any] = {
        "features": np.column_stack([rng.normal(size=people), rng.integers(0, 2, people)]),
        "predictors": (Linear(np.array([1.5, 1.0]), -0.5),) * 2,
        "items": (NoiseItem((0,), Normal(1.0)), NoiseItem((1,), Flip())),
        "groups": np.arange(people) % 2,
        "folds": np.arange(people) // 2 % 2,
        "levels": np.array([0.0, 0.1, 0.3, 0.5]),
    }
    return Experiment(**asked | settings)


@pytest.mark.parametrize("name", ["pabak", "icc_spread", *RATIOS])
@pytest.mark.parametrize("common", [True, False])
def test_the_mean_of_peoples_values_is_the_metric(name: str, common: bool) -> None:
    experiment = trial(common=common)
    done = simulate(experiment, SEEDS, derivatives=derivatives_of([name]) if name in RATIOS else None)
    values = people_values(experiment, done, name, done.influence[0] if name in RATIOS else None)
    cells = np.array([values[experiment.base.cell == cell].mean() for cell in range(4)]).reshape(2, 2)
    np.testing.assert_allclose(cells.mean(axis=0), curves(experiment, done, name).mean[1:].mean(axis=0), atol=1e-8)


@pytest.mark.parametrize("name", RATIOS)
@pytest.mark.parametrize("raters", [1, 2])
@pytest.mark.parametrize("common", [True, False])
def test_influence_is_that_of_a_little_more_weight(name: str, raters: int, common: bool) -> None:
    """Weights of the people of one cell are changed by 1e-5, with the same sum, in everybody's own predictions."""
    experiment = trial(raters=raters, common=common)
    done = simulate(experiment, SEEDS, derivatives=derivatives_of([name]))
    rows, seen = np.flatnonzero(experiment.base.cell == 0), paths(experiment, SEEDS)
    r, s = (label[:, 1:, rows] for label in (seen.first_label, seen.second_label))
    x, y = (score[:, 1:, rows] for score in (seen.first_score, seen.second_score))
    of_people = np.stack(person_sums(r, s, x, y, np.zeros(1)))

    def metric(weights: FloatArray) -> float:
        sums = (of_people * weights * rows.size / weights.sum()).sum(axis=-1)
        n, centre = np.array(float(rows.size)), np.array(0.0)
        return float(metric_values(name, PairSums(n=n, centre=centre, **dict(zip(SUMS, sums, strict=True)))).mean())

    for number in range(3):
        more = 1e-5 * (np.arange(rows.size) == number)
        slope = (metric(1.0 + more) - metric(1.0 - more)) / 2e-5 * rows.size
        assert done.influence[0, rows[number]] == pytest.approx(slope, abs=1e-5)


def test_nobody_hurt_against_one_in_ten_is_found() -> None:
    """Of 60 people nobody is hurt, of 600 one in seven: limits for any distribution of damage found it never."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(40):
        hurt = np.where(rng.random(600) < 0.15, rng.beta(2, 2, 600), 0.0)
        values = 1.0 - 2.0 * np.concatenate([np.zeros(60), hurt])
        found += compare_people(values, NO_FOLDS, np.arange(660) < 60, bounds=(-1.0, 1.0)).p_value < 0.05
    assert found >= 38


def test_p_and_interval_agree_at_any_level() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        values = np.where(rng.random(100) < 0.2, rng.random(100), 0.0)
        fold, first = np.arange(100) % 2, rng.random(100) < 0.4
        found = compare_people(values, fold, first)
        for alpha in (0.01, 0.05, 0.2):
            low, high = found.limits(1.0 - alpha)
            assert (found.p_value < alpha) == bool(low > 0 or high < 0)
        back, (low, high) = found.swapped(), found.limits(0.95)
        assert (back.value, back.p_value, back.limits(0.95)) == (-found.value, found.p_value, (-high, -low))


def test_values_at_both_bounds_are_rates() -> None:
    values, first = np.where(np.arange(660) % 11 == 0, -1.0, 1.0), np.arange(660) < 60
    found = compare_people(values, NO_FOLDS, first, bounds=(-1.0, 1.0))
    agree = values == 1.0
    rates = compare_rates(agree[first].sum(), 60, agree[~first].sum(), 600)
    assert (found.rests_on, found.p_value) == ("rates", float(rates.p_value))
    assert found.limits(0.95) == pytest.approx([2 * float(end) for end in rates.limits(0.95)])
    assert found.value == pytest.approx(values[first].mean() - values[~first].mean())


def test_folds_count_alike() -> None:
    """Means over folds are averaged, whatever the folds' sizes; people are shuffled within their fold."""
    rng = np.random.default_rng(2)
    fold, first, values = np.repeat([0, 1], [50, 200]), rng.random(250) < 0.3, rng.random(250)
    found = compare_people(values, fold, first)
    means = [[values[(fold == f) & (first == side)].mean() for f in (0, 1)] for side in (True, False)]
    assert found.value == pytest.approx(np.mean(means[0]) - np.mean(means[1]))
    same = compare_means(values, first, ~first, strata=fold, shares=[0.5, 0.5])
    assert found.p_value == same.p_value


def test_only_means_need_no_influence() -> None:
    experiment = trial()
    done = simulate(experiment, SEEDS)
    assert done.influence.shape == (0, 160)
    assert set(RATIOS) < set(METRICS)
    with pytest.raises(TypeError, match="influence"):
        people_values(experiment, done, "kappa")
