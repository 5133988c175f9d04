"""Individual fairness of models at equal spread of their scores."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from evenhand.stats.pairs import (
    FairnessOfModels,
    PairFairness,
    bin_people,
    check_people,
    compare,
    individual_fairness,
    individual_fairness_cells,
    individual_fairness_counts,
    shrinkages,
    spread_of,
)
from evenhand.stats.pairs.result import PairDifference
from evenhand.stats.types import FloatArray


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def of_models(scores: dict[str, FloatArray], survey: FloatArray | None = None) -> FairnessOfModels:
    """Return the fairness of models among people with random efforts and aggregates."""
    people = len(next(iter(scores.values())))
    effort, aggregate = np.random.default_rng(people).random((2, people))
    spreads = {model: spread_of(score, survey) for model, score in scores.items()}
    factors = {(model, model): 1.0 for model in scores} | shrinkages(spreads)
    found = {
        (*pair, 0.5): individual_fairness(factor * scores[pair[0]], effort, aggregate, survey_weight=survey)
        for pair, factor in factors.items()
    }
    return FairnessOfModels.of(found, spreads)


def differ(models: FairnessOfModels, model: str, other: str) -> PairDifference:
    return compare(models.at_equal_spread(model, other, 0.5), models.at_equal_spread(other, model, 0.5))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_spread_is_the_mean_absolute_difference(rng: np.random.Generator, weighted: bool) -> None:
    score = rng.random(40)
    weight = rng.random(40) if weighted else np.ones(40)
    pairs = list(combinations(range(40), 2))
    by_hand = np.average(
        [abs(score[i] - score[j]) for i, j in pairs], weights=[weight[i] * weight[j] for i, j in pairs]
    )
    assert 1 - spread_of(score, weight if weighted else None).value == pytest.approx(by_hand)


@pytest.mark.parametrize("factor", [0.5, 1e-2, 1e-4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_scores_shrunk_are_not_fairer(rng: np.random.Generator, factor: float, weighted: bool) -> None:
    score = rng.random(500)
    survey = rng.random(500) if weighted else None
    models = of_models({"wide": score, "shrunk": 0.3 + factor * (score - 0.3)}, survey)
    found = differ(models, "wide", "shrunk")
    assert models.own["shrunk", 0.5].value > models.own["wide", 0.5].value + 0.01
    assert found.value == pytest.approx(0, abs=1e-9)
    assert found.p_value == 1


def test_a_constant_score_is_not_fairer(rng: np.random.Generator) -> None:
    models = of_models({"varies": rng.random(100), "constant": np.full(100, 0.3)})
    assert models.own["constant", 0.5].value == 1
    assert differ(models, "varies", "constant").value == 0
    assert differ(models, "varies", "constant").p_value == 1


def test_scores_that_follow_effort_are_fairer_than_noise_of_the_same_spread(rng: np.random.Generator) -> None:
    effort = np.random.default_rng(500).random((2, 500))[0]  # that of `of_models`
    models = of_models({"noise": rng.random(500), "follows": 0.2 + 0.4 * effort})
    assert differ(models, "follows", "noise").p_value < 1e-6


def test_a_third_model_does_not_change_the_comparison_of_two(rng: np.random.Generator) -> None:
    scores = {"a": rng.random(80), "b": 0.5 * rng.random(80)}
    with_third = of_models({**scores, "nearly constant": 0.4 + 1e-3 * rng.random(80)})
    assert differ(of_models(scores), "a", "b") == differ(with_third, "a", "b")


def test_the_standard_error_is_that_of_leaving_out_each_person(rng: np.random.Generator) -> None:
    scores = {"a": rng.random(300), "b": 0.5 * rng.random(300) ** 2}
    effort, aggregate = np.random.default_rng(300).random((2, 300))

    def difference(keep: FloatArray) -> float:
        factor = (1 - spread_of(scores["b"][keep]).value) / (1 - spread_of(scores["a"][keep]).value)
        a, b = (
            individual_fairness(score[keep], effort[keep], aggregate[keep]).value
            for score in (factor * scores["a"], scores["b"])
        )
        return a - b

    everybody = np.arange(300)
    left_out = np.array([difference(np.delete(everybody, person)) for person in everybody])
    jackknife = np.sqrt(299 / 300 * np.sum((left_out - left_out.mean()) ** 2))
    assert differ(of_models(scores), "a", "b").stderr == pytest.approx(jackknife, rel=0.01)


def test_counts_and_the_grid_agree_with_rows(rng: np.random.Generator) -> None:
    score, effort, aggregate = rng.random((3, 5_000))
    nowhere = np.zeros(5_000)
    moments = bin_people(check_people(score, effort, aggregate))
    ones = np.ones(5_000)

    def same(grid: PairFairness, counts: PairFairness, rows: PairFairness) -> None:
        assert counts.value == pytest.approx(rows.value, abs=1e-12)
        assert abs(grid.value - rows.value) <= grid.error
        assert counts.row_means == pytest.approx(rows.row_means, abs=1e-3)

    for grid, factor, place in (
        (moments.scores_alone(), 1.0, (nowhere, nowhere)),
        (moments.shrunk(0.4), 0.4, (effort, aggregate)),
    ):
        same(
            individual_fairness_cells(grid, factor * score, *place, survey_weight=None, n=5_000),
            individual_fairness_counts(factor * score, *place, total_weight=ones, squares=ones, n=5_000),
            individual_fairness(factor * score, *place),
        )
