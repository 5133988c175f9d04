"""Planning: the power that is predicted against the share of simulated samples that reject."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from evenhand.errors import ConfigError, DataError
from evenhand.stats.improvability import (
    Criteria,
    Pair,
    Rows,
    SplitTest,
    ValueDraws,
    bootstrap_values,
    deviations,
    get_utility,
    make_rows,
    planned_effects,
    power_curve,
    sample_size,
)
from evenhand.stats.improvability.rows import check_groups
from evenhand.stats.types import FloatArray

CALIBRATION = get_utility("calibration")
CRITERIA = Criteria(CALIBRATION, (CALIBRATION,))


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def sample(n: int, rng: np.random.Generator) -> Rows:
    """A population with values 5 and 4 under the status quo, 5.5 and 5.2 under the candidate, decided apart."""
    group = rng.integers(2, size=n)
    old, new = np.zeros(n), np.zeros(n)
    chosen = rng.random(n)
    old[chosen < 0.2], new[chosen > 0.8] = 1, 1
    mean = np.where(old == 1, np.array([5.0, 4.0])[group], np.array([5.5, 5.2])[group])
    return make_rows(group, rng.normal(mean, 1.5), old, new, utilities=[CALIBRATION], names="ab")


def test_one_component_has_the_power_of_the_normal_test() -> None:
    noise = generator().standard_normal((200_000, 1))
    sizes = np.array([100, 200, 400, 800])
    exact = norm.cdf(np.sqrt(sizes / 100) * 0.9 - norm.ppf(0.95))
    np.testing.assert_allclose(power_curve([0.9], noise, 100, sizes, 0.05), exact, atol=0.005)


def test_the_sample_size_has_the_power_that_was_asked_for() -> None:
    noise = generator().standard_normal((100_000, 1))
    exact = 100 * ((norm.ppf(0.95) + norm.ppf(0.8)) / 0.5) ** 2
    found = sample_size([0.5], noise, 100, level=0.05, power=0.8)
    assert found == pytest.approx(exact, rel=0.02)
    assert sample_size([0.5], noise, 100, level=0.05, power=0.8, train=2 / 3) == pytest.approx(3 * found, abs=3)


@pytest.mark.slow
def test_predicted_power_is_that_of_simulated_samples() -> None:
    """Deviations of one large sample, scaled to a smaller one."""
    pilot = SplitTest(
        draws=bootstrap_values(sample(20_000, generator(1)), resamples=4_000, rng=generator(2)),
        criteria=CRITERIA,
        worst=[Pair(0, 1)],
    )
    effect: FloatArray = np.array([0.5, 1.2, 0.7, 1.3])
    size, level = 1_200, 0.05
    predicted = float(power_curve(effect, deviations(pilot), 20_000, [size], level)[0])
    rng = generator(3)
    rejected = 0
    for _ in range(400):
        draws = bootstrap_values(sample(size, rng), resamples=399, rng=rng, method="rows", threads=1)
        rejected += SplitTest(draws=draws, criteria=CRITERIA, worst=[Pair(0, 1)]).components().p <= level
    assert 0.3 < predicted < 0.9
    assert predicted == pytest.approx(rejected / 400, abs=0.09)


def test_planned_effects_are_the_components_of_such_a_candidate() -> None:
    test = SplitTest(
        draws=bootstrap_values(sample(2_000, generator()), resamples=50, rng=generator()),
        criteria=CRITERIA,
        worst=[Pair(0, 1)],
    )
    old = test.draws.estimate[:2, 0, 0]
    effect = planned_effects(test, gain=[0.1, 0.2], reduction=0.6, accuracy=0.05, fairness=0.25)
    gap = old[0] - old[1]
    expected = [0.05 * old[0], 0.15 * old[1], 0.75 * gap - 0.4 * gap, 0.75 * gap + 0.4 * gap]
    np.testing.assert_allclose(effect, expected)


def test_error_rates_gain_by_falling() -> None:
    rate = get_utility("false_positive_rate")
    rng = generator()
    y, old, new = rng.integers(2, size=(3, 400))
    rows = make_rows(np.arange(400) % 2, y, old, new, utilities=[rate], names="ab")
    test = SplitTest(
        draws=bootstrap_values(rows, resamples=20, rng=rng), criteria=Criteria(rate, (rate,)), worst=[Pair(0, 1)]
    )
    effect = planned_effects(test, gain=0.3, reduction=0.0)
    np.testing.assert_allclose(effect[:2], 0.3 * test.draws.estimate[:2, 0, 0])


def test_no_sample_finds_what_is_not_there() -> None:
    noise = generator().standard_normal((1_000, 2))
    assert sample_size([0.5, 0.0], noise, 100, level=0.05) == math.inf


def test_undefined_deviations_count_against_rejection() -> None:
    noise = generator().standard_normal((1_000, 1)) * 0.01
    noise[:300] = np.nan
    assert power_curve([1.0], noise, 100, [100], 0.5)[0] == pytest.approx(0.7)
    assert power_curve([1.0], noise, 100, [100], 0.05)[0] == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"level": 0.0}, "`level`"),
        ({"level": 0.05, "power": 1.0}, "`power`"),
        ({"level": 0.05, "train": 1.0}, "`train`"),
    ],
)
def test_bad_options_are_refused(options: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        sample_size([1.0], np.zeros((10, 1)), 10, **options)


def test_a_reduction_is_a_share() -> None:
    test = SplitTest(
        draws=bootstrap_values(sample(500, generator()), resamples=20, rng=generator()),
        criteria=CRITERIA,
        worst=[Pair(0, 1)],
    )
    with pytest.raises(ConfigError, match=r"`reduction` must be between 0 and 1; got 1\.5"):
        planned_effects(test, 0.1, 1.5)


def test_deviations_are_those_of_each_resample_from_the_sample() -> None:
    values = np.array([[[5.0, 7.0]], [[4.0, 6.5]], [[4.5, 6.7]]])
    drawn = np.stack([values, values + np.array([0.0, 1.0]), 2 * values])
    test = SplitTest(
        draws=ValueDraws(estimate=values, values=drawn, spread=None, spreads=None, rows=10, cells=10, method="cells"),
        criteria=CRITERIA,
        worst=[Pair(0, 1)],
    )
    # accuracy gains 2 and 2.5; gaps 1 before and 0.5 after, in either direction
    expected = np.array([[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [2.0, 2.5, 0.5, 1.5]])
    np.testing.assert_allclose(deviations(test), expected, atol=1e-12)


@pytest.mark.parametrize("codes", [[0, 1, -1], [0, 2, 1]])
def test_group_codes_lie_within_the_groups(codes: list[int]) -> None:
    with pytest.raises(DataError, match="group codes must lie between 0 and 1"):
        check_groups(codes, 2)
