"""Agreement of categories as a mean over people."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.audits.agreement.metrics import AgreementMetric, Ratings, metrics_for
from evenhand.audits.agreement.people import PeopleValues, agreeing_pairs, people_values
from evenhand.stats.agreement.ratings import distinct_rows
from evenhand.stats.two_rates import compare_rates
from evenhand.stats.types import FloatArray, IntArray

CATEGORIES = [
    (scale, raters, name)
    for scale in ("binary", "nominal", "ordinal")
    for raters in (2, 3)
    for name, metric in metrics_for(scale, raters).items()
    if metric.compared
]


def patterns(given: FloatArray, categories: int, weight: FloatArray) -> tuple[Ratings, FloatArray, IntArray]:
    """Return the distinct patterns of ratings (people, raters), their summed weights, and how many people have each."""
    rows, counted, _ = distinct_rows(np.column_stack([given, weight]))
    return Ratings(tuple(rows[:, :-1].T), categories, 0.0), rows[:, -1] * counted, counted.astype(np.int64)


def drawn(
    people: int, raters: int, categories: int, seed: int, weighted: bool = False
) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, categories, people)
    given = [np.where(rng.random(people) < 0.6, truth, rng.integers(0, categories, people)) for _ in range(raters)]
    return np.column_stack(given).astype(np.float64), rng.integers(1, 4, people) / 2.0 if weighted else np.ones(people)


def of(metric: AgreementMetric, given: FloatArray, weight: FloatArray, categories: int) -> PeopleValues:
    return people_values(metric, *patterns(given, categories, weight))


@pytest.mark.parametrize(("scale", "raters", "name"), CATEGORIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_of_the_values_is_the_metric(scale: str, raters: int, name: str, weighted: bool) -> None:
    categories = 2 if scale == "binary" else 3
    metric = metrics_for(scale, raters)[name]  # type: ignore[arg-type]
    given, weight = drawn(60, raters, categories, 1, weighted)
    ratings, total, count = patterns(given, categories, weight)
    found = people_values(metric, ratings, total, count)
    mean = float((found.values * found.weight * found.count).sum() / total.sum())
    assert mean == pytest.approx(float(metric.evaluate(ratings, total)), abs=1e-7)


@pytest.mark.parametrize("name", ["kappa", "ac1", "alpha", "pabak", "agreement"])
def test_the_standard_error_is_that_of_leaving_out_each_person(name: str) -> None:
    metric = metrics_for("binary", 2)[name]
    given, weight = drawn(300, 2, 2, 2)

    def value(keep: FloatArray) -> float:
        ratings, total, _ = patterns(given[keep], 2, weight[keep])
        return float(metric.evaluate(ratings, total))

    left_out = np.array([value(np.delete(np.arange(300), person)) for person in range(300)])
    jackknife = np.sqrt(299 / 300 * ((left_out - left_out.mean()) ** 2).sum())
    found = of(metric, given, weight, 2)
    spread = np.repeat(found.values, found.count).std(ddof=1)
    assert spread / np.sqrt(300) == pytest.approx(jackknife, rel=0.02)


def test_shares_of_two_raters_are_rates() -> None:
    metric, (a, b) = metrics_for("binary", 2)["pabak"], (drawn(40, 2, 2, 3)[0], drawn(70, 2, 2, 4)[0])
    counts = [(int((one[:, 0] == one[:, 1]).sum()), len(one)) for one in (a, b)]
    exact = compare_rates(*counts[0], *counts[1])
    first, second = (of(metric, one, np.ones(len(one)), 2) for one in (a, b))
    found = first.compare(second, 0.001)
    assert first.are_rates
    assert found is not None
    assert found.rests_on == "rates"
    assert found.p_value == float(exact.p_value)
    assert found.limits(0.95) == pytest.approx([2 * float(end) for end in exact.limits(0.95)])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_limits_exclude_0_exactly_if_p_is_small_and_turn_with_the_groups(weighted: bool) -> None:
    metric = metrics_for("nominal", 3)["fleiss_kappa"]
    first, second = (of(metric, *drawn(50, 3, 3, seed, weighted), 3) for seed in (5, 6))
    there, back = first.compare(second, 0.001), second.compare(first, 0.001)
    assert there is not None
    assert back is not None
    assert there.p_value == back.p_value
    assert there.limits(0.9) == pytest.approx([-end for end in back.limits(0.9)[::-1]])
    for confidence in (0.5, 0.9, 0.99):
        low, high = there.limits(confidence)
        assert (low > 0 or high < 0) == (there.p_value < 1 - confidence)


def test_an_undefined_metric_is_not_compared() -> None:
    metric = metrics_for("binary", 2)["kappa"]
    alike = of(metric, np.ones((20, 2)), np.ones(20), 2)
    assert alike.compare(of(metric, *drawn(20, 2, 2, 7), 2), 0.001) is None


def test_pairs_that_agree_are_counted_within_people() -> None:
    ratings = Ratings((np.array([0.0, 1.0]), np.array([0.0, 0.0]), np.array([0.0, np.nan])), 2, 0.0)
    np.testing.assert_allclose(agreeing_pairs(ratings), [[1.0, 0.0], [0.0, 0.0]])
