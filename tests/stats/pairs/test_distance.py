"""Every distance against its definition, by every method; and the learned one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evenhand.errors import EvenhandError
from evenhand.stats.pairs import NORMS, Distance, fairness_by_weight, individual_fairness, learn_metric, worst_pairs
from evenhand.stats.pairs.inputs import own_distance
from evenhand.stats.types import FloatArray

Columns = tuple[FloatArray, FloatArray, FloatArray]
MakeColumns = Callable[[str, int], Columns]
WEIGHTS = (0.0, 0.5, 0.6577, 1.0)
DISTANCES = (
    *(Distance(norm) for norm in NORMS),
    Distance("manhattan", scales=(0.5, 2.0), lipschitz=0.8),
    Distance("maximum", scales=(2.0, 1.0), lipschitz=1.5),
    Distance("euclidean", scales=(0.3, 0.7), lipschitz=0.4),
    Distance(matrix=(0.7, -0.3, 0.3), lipschitz=0.9),
)


def apart(distance: Distance, effort: FloatArray, aggregate: FloatArray, weight: float) -> FloatArray:
    """The definition, written out."""
    e = np.abs(np.subtract.outer(effort, effort)) / distance.scales[0]
    s = np.abs(np.subtract.outer(aggregate, aggregate)) / distance.scales[1]
    if distance.matrix is not None:
        a, b, c = distance.matrix
        signed = np.subtract.outer(effort, effort) * np.subtract.outer(aggregate, aggregate)
        return distance.lipschitz * np.sqrt(a * e**2 + 2 * b * signed + c * s**2)
    found = {
        "euclidean": np.sqrt(weight * e**2 + (1 - weight) * s**2),
        "manhattan": weight * e + (1 - weight) * s,
        "maximum": np.maximum(e * (weight > 0), s * (weight < 1)),
    }
    return np.asarray(distance.lipschitz * found[distance.norm])


def brute(columns: Columns, distance: Distance, weight: float) -> FloatArray:
    score, effort, aggregate = columns
    excess = np.abs(np.subtract.outer(score, score)) - apart(distance, effort, aggregate, weight)
    return np.where(excess > 1e-12, excess, 0.0)


@pytest.mark.parametrize("method", ["strips", "blocks"])
@pytest.mark.parametrize("distance", DISTANCES, ids=str)
def test_exact_methods_equal_the_definition(distance: Distance, method: Any, people: MakeColumns) -> None:
    for kind, weight in zip(("continuous", "ties", "discrete", "binary"), WEIGHTS, strict=True):
        columns = people(kind, 300)
        found = individual_fairness(*columns, weight, method=method, distance=distance)
        truth = brute(columns, distance, weight)
        assert found.value == pytest.approx(1 - truth.sum() / (300 * 299), abs=1e-12)
        assert found.violated == pytest.approx((truth > 0).sum() / (300 * 299), abs=1e-12)
        assert found.row_means is not None
        np.testing.assert_allclose(found.row_means, 1 - truth.sum(axis=1) / 299, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("distance", DISTANCES[1:], ids=str)
def test_grid_and_samples_are_within_their_errors(distance: Distance, people: MakeColumns) -> None:
    columns = people("mixed", 2_000)
    for weight in (0.0, 0.6577):
        exact = individual_fairness(*columns, weight, distance=distance)
        for method in ("grid", "sampled"):
            near = individual_fairness(*columns, weight, method=method, distance=distance)
            assert abs(near.value - exact.value) <= near.error
    exact_curve, _ = fairness_by_weight(*columns, (0.0, 0.3, 1.0), distance=distance)
    curve, error = fairness_by_weight(*columns, (0.0, 0.3, 1.0), distance=distance, exact_rows=100)
    assert (np.abs(curve - exact_curve) <= error).all()


@pytest.mark.parametrize(
    "distance",
    [*DISTANCES, Distance(function=lambda e, s, f, t: np.hypot(e - f, s - t))],
    ids=[*map(str, DISTANCES), "a function"],
)
def test_worst_pairs_are_the_largest_excesses(distance: Distance, people: MakeColumns) -> None:
    columns = people("continuous", 400)
    worst = worst_pairs(*columns, 0.6577, count=12, distance=distance)
    if distance.function is None:
        truth = brute(columns, distance, 0.6577)
    else:
        truth = brute(columns, Distance(matrix=(1.0, 0.0, 1.0)), 0.5)
    np.testing.assert_allclose(worst.excess, np.sort(truth[np.triu_indices(400, 1)])[::-1][:12], atol=1e-12)
    i, j = worst.people.T
    np.testing.assert_allclose(worst.excess, truth[i, j], atol=1e-12)


def test_a_function_of_ones_own_that_says_the_same_gives_the_same(people: MakeColumns) -> None:
    columns = people("ties", 300)
    survey = np.random.default_rng(1).gamma(2.0, 1.0, 300)
    own = Distance(function=lambda e, s, f, t: 0.5 * np.abs(e - f) + 0.5 * np.abs(s - t), lipschitz=0.7)
    found = individual_fairness(*columns, distance=own, survey_weight=survey)
    same = individual_fairness(*columns, distance=Distance("manhattan", lipschitz=0.7), survey_weight=survey)
    assert found.method == "enumerated"
    assert (found.value, found.low) == pytest.approx((same.value, same.low), abs=1e-12)


def test_the_norms_are_in_order_and_agree_where_one_feature_counts(people: MakeColumns) -> None:
    columns = people("continuous", 200)
    values = [individual_fairness(*columns, 0.4, distance=Distance(norm)).value for norm in ("manhattan", "euclidean")]
    assert values[0] < values[1] < individual_fairness(*columns, 0.4, distance=Distance("maximum")).value
    for weight in (0.0, 1.0):
        ends = [individual_fairness(*columns, weight, distance=Distance(norm)).value for norm in NORMS]
        np.testing.assert_allclose(ends, ends[0], atol=1e-14)


def test_wrong_distances_are_named(people: MakeColumns) -> None:
    columns = people("continuous", 20)
    with pytest.raises(EvenhandError, match="`lipschitz` must be above 0"):
        Distance(lipschitz=0.0)
    with pytest.raises(EvenhandError, match="the distance function failed: TypeError: object"):
        individual_fairness(*columns, distance=Distance(function=object))  # type: ignore[arg-type]
    with pytest.raises(EvenhandError, match="finite numbers of 0 or more; it returned -1"):
        individual_fairness(*columns, distance=Distance(function=lambda e, s, f, t: 0 * (e - f) - 1))
    with pytest.raises(EvenhandError, match="one number a pair"):
        individual_fairness(*columns, distance=Distance(function=lambda e, s, f, t: np.zeros(3)))
    with pytest.raises(EvenhandError, match="cannot be compared by 'grid'"):
        individual_fairness(*columns, method="grid", distance=Distance(function=lambda e, s, f, t: abs(e - f)))


def test_the_learned_distance_finds_the_one_that_judged() -> None:
    rng = np.random.default_rng(0)
    e, s = rng.normal(0.0, 0.5, (2, 20_000))
    truth = np.array([6.0, -2.0, 2.0])
    judged = rng.random(20_000) < 2 / (1 + np.exp(truth[0] * e**2 + 2 * truth[1] * e * s + truth[2] * s**2))
    np.testing.assert_allclose(learn_metric(e, s, judged), truth / (truth[0] + truth[2]), atol=0.03)


def test_the_learned_distance_does_not_depend_on_order_or_units_of_both() -> None:
    rng = np.random.default_rng(1)
    e, s = rng.normal(0.0, 0.5, (2, 300))
    judged = rng.random(300) < 2 / (1 + np.exp(4 * e**2 + s**2))
    found = learn_metric(e, s, judged)
    order = rng.permutation(300)
    np.testing.assert_allclose(learn_metric(-e[order], -s[order], judged[order]), found, atol=1e-4)
    np.testing.assert_allclose(learn_metric(10 * e, 10 * s, judged), found, atol=1e-4)


def test_a_learned_distance_needs_pairs_of_both_kinds() -> None:
    with pytest.raises(EvenhandError, match="all 12 are similar"):
        learn_metric(np.ones(12), np.ones(12), np.ones(12))
    with pytest.raises(EvenhandError, match="all 12 are different"):
        learn_metric(np.ones(12), np.ones(12), np.zeros(12))
    with pytest.raises(EvenhandError, match="at least 10 judged pairs; got 3"):
        learn_metric(np.ones(3), np.ones(3), [1, 0, 1])


def test_a_learned_distance_leaves_no_direction_without_distance() -> None:
    rng = np.random.default_rng(0)
    e = rng.random(200)
    of_effort, both, of_aggregate = learn_metric(e, np.zeros(200), (rng.random(200) < np.exp(-3 * e)).astype(float))
    assert (of_effort, of_aggregate) == pytest.approx((1 - 5e-7, 5e-7), abs=2e-7)
    assert of_effort * of_aggregate > both**2


def test_the_one_number_that_is_no_distance_is_named() -> None:
    def own(*columns: FloatArray) -> FloatArray:
        return np.array([0.0, 1.0, -2.0])

    with pytest.raises(EvenhandError, match="it returned -2"):
        own_distance(own, *np.zeros((4, 3)))


def test_weights_for_which_people_lie_in_the_same_places_go_together() -> None:
    weights = [0.0, 0.3, 1.0, 0.7]
    assert Distance().same_coordinates(weights) == [[0, 1, 2, 3]]
    assert Distance(norm="maximum").same_coordinates(weights) == [[1, 3], [0, 2]]
    assert Distance(norm="maximum").same_coordinates([0.5]) == [[0]]
