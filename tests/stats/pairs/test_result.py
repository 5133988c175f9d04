"""The interval by hand, the difference of two models, and the sentences for wrong input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import EvenhandError
from evenhand.stats.pairs import METHODS, FairnessOfModels, compare, individual_fairness, shrinkages, spread_of
from evenhand.stats.pairs.inputs import ScoredPeople
from evenhand.stats.pairs.result import jackknife, limits, widened
from evenhand.stats.types import FloatArray

Columns = tuple[FloatArray, FloatArray, FloatArray]
MakeColumns = Callable[[str, int], Columns]
Maker = Callable[..., Any]


def pick(columns: Columns, at: Any) -> Columns:
    score, effort, aggregate = columns
    return score[at], effort[at], aggregate[at]


def pair_excess(score: FloatArray, effort: FloatArray, aggregate: FloatArray) -> FloatArray:
    """Return max(0, D - d) of all pairs, at weight 0.5."""
    i, j = np.triu_indices(score.size, 1)
    distance = np.sqrt(0.5 * (effort[i] - effort[j]) ** 2 + 0.5 * (aggregate[i] - aggregate[j]) ** 2)
    return np.asarray(np.maximum(0.0, np.abs(score[i] - score[j]) - distance))


def freedom(changes: FloatArray) -> float:
    """Return the degrees of freedom of a sum of squares of changes from their mean, by their kurtosis."""
    kurtosis = float(stats.kurtosis(changes, fisher=False))
    return min(changes.size - 1.0, 2.0 * changes.size / (kurtosis - 1.0))


def test_the_interval_by_hand(people: MakeColumns, by_definition: Maker) -> None:
    columns = people("continuous", 40)
    truth, result = by_definition(*columns, 0.5), individual_fairness(*columns, confidence=0.9)
    stderr = 2 * truth.row_means.std(ddof=1) * 39 / (38 * np.sqrt(40))
    t = stats.t.ppf(0.95, freedom(truth.row_means))
    wide = stderr + 2 * np.sqrt(pair_excess(*columns).var() / 39) * 39 / (38 * np.sqrt(40))
    ends = [1 - (1 - truth.value) * np.exp(sign * t * wide / (1 - truth.value)) for sign in (1, -1)]
    assert result.stderr == pytest.approx(stderr, rel=1e-10)
    assert [result.low, result.high] == pytest.approx(ends, rel=1e-10)


def test_the_standard_error_is_that_of_leaving_each_person_out(people: MakeColumns, surveyed: bool) -> None:
    columns = people("continuous", 30)
    survey = np.random.default_rng(1).gamma(2.0, 1.0, 30) if surveyed else np.ones(30)
    value = individual_fairness(*columns, survey_weight=survey).value
    without = []
    for person in range(30):
        rest = np.arange(30) != person
        without.append(individual_fairness(*pick(columns, rest), survey_weight=survey[rest]).value)
    expected = np.sqrt(29 / 30 * np.sum((np.array(without) - value) ** 2))
    assert individual_fairness(*columns, survey_weight=survey).stderr == pytest.approx(expected, rel=1e-9)


def test_weights_of_1_give_the_unweighted_formula() -> None:
    h = np.array([0.7, 0.8, 0.95, 0.8, 0.75])
    nobody = np.zeros(5)
    plain = jackknife(h, 0.8, ScoredPeople(score=nobody, effort=nobody, aggregate=nobody))
    assert plain == pytest.approx(
        jackknife(h, 0.8, ScoredPeople(score=nobody, effort=nobody, aggregate=nobody, survey=np.ones(5))), rel=1e-15
    )
    assert plain[0] == pytest.approx(2 * h.std(ddof=1) * 4 / (3 * np.sqrt(5)), rel=1e-12)


def test_few_people_who_cause_all_of_it_leave_few_degrees_of_freedom() -> None:
    nobody = np.zeros(100)
    everybody = ScoredPeople(score=nobody, effort=nobody, aggregate=nobody)
    one, alike = np.where(np.arange(100) == 3, 0.2, 0.8), 0.8 + np.tile([0.1, -0.1], 50)
    assert jackknife(one, float(one.mean()), everybody)[1] == pytest.approx(freedom(one), rel=1e-9)
    assert freedom(one) < 3
    assert jackknife(alike, 0.8, everybody)[1] == 99


def test_the_difference_of_two_models_by_hand(people: MakeColumns, by_definition: Maker) -> None:
    score, effort, aggregate = people("continuous", 60)
    other = np.clip(score + 0.1, 0, 1)
    a, b = (individual_fairness(x, effort, aggregate) for x in (score, other))
    h = by_definition(score, effort, aggregate, 0.5).row_means - by_definition(other, effort, aggregate, 0.5).row_means
    stderr = 2 * h.std(ddof=1) * 59 / (58 * np.sqrt(60))
    difference = compare(a, b, 0.95)
    assert difference.value == pytest.approx(a.value - b.value)
    assert difference.stderr == pytest.approx(stderr, rel=1e-8)
    apart = pair_excess(score, effort, aggregate) - pair_excess(other, effort, aggregate)
    wide = stderr + 2 * np.sqrt(apart.var() / 59) * 59 / (58 * np.sqrt(60))
    assert difference.high - difference.value == pytest.approx(stats.t.ppf(0.975, freedom(h)) * wide, rel=1e-8)
    assert difference.p_value == pytest.approx(2 * stats.t.sf(abs(difference.value) / wide, freedom(h)))
    back = compare(b, a, 0.95)
    assert (back.low, back.high) == pytest.approx((-difference.high, -difference.low))


def test_coin_flips_are_covered() -> None:
    """Equal effort and decisions by a coin: no person differs from another, but samples do; the jackknife covers .8."""
    rng = np.random.default_rng(7)
    covered = alone = 0
    for _ in range(200):
        score = (rng.random(50) < 0.5).astype(float)
        result = individual_fairness(score, np.zeros(50), np.zeros(50))
        low, high = limits(result.value, result.stderr, 49, 0.95, 0.0)
        covered += result.low <= 0.5 <= result.high
        alone += low <= 0.5 <= high
    assert covered >= 190
    assert alone <= 185


def test_pairs_do_not_depend_on_the_order_of_people(people: MakeColumns) -> None:
    columns = people("continuous", 500)  # more pairs than are looked at
    order = np.random.default_rng(1).permutation(500)
    one, other = individual_fairness(*columns), individual_fairness(*pick(columns, order))
    assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-12)
    exact = individual_fairness(*columns).stderr + 2 * pair_excess(*columns).std() * np.sqrt(499 / 500) / 498
    assert widened(one.stderr, (ScoredPeople(*columns),), 0.5) == pytest.approx(exact, rel=2e-3)


def test_a_model_does_not_differ_from_itself(people: MakeColumns) -> None:
    result = individual_fairness(*people("ties", 50))
    assert compare(result, result) == compare(result, result, 0.5)
    assert compare(result, result).stderr == 0.0


def test_compare_needs_the_same_people_and_row_means(people: MakeColumns) -> None:
    columns = people("continuous", 50)
    plain, sampled = individual_fairness(*columns), individual_fairness(*columns, method="sampled")
    weighted = individual_fairness(*columns, survey_weight=np.arange(1, 51))
    fewer = individual_fairness(*pick(columns, slice(40)))
    with pytest.raises(EvenhandError, match="'sampled' has none"):
        compare(plain, sampled)
    for other in (weighted, fewer):
        with pytest.raises(EvenhandError, match="the same people with the same survey weights"):
            compare(plain, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": [0.1, 1.2, 0.3]}, r"^`score` must be between 0 and 1; person 1 has 1\.2\.$"),
        ({"score": [0.1, -0.2, 0.3]}, r"^`score` must be between 0 and 1; person 1 has -0\.2\.$"),
        ({"score": [0.1, 0.2, float("nan")]}, r"^`score` must be finite; person 2 has nan\.$"),
        ({"effort": [0.1, float("inf"), 0.2]}, r"^`effort` must be finite; person 1 has inf\.$"),
        ({"aggregate": [0.1, 0.2]}, r"must have one number per person; got 3, 3 and 2\.$"),
        ({"aggregate": [[0.1, 0.2, 0.3]]}, r"`aggregate` must have one number per person; got an array of shape"),
        ({"score": [0.5], "effort": [0.5], "aggregate": [0.5]}, r"needs at least 2 people; got 1\.$"),
        ({"score": [], "effort": [], "aggregate": []}, r"needs at least 2 people; got 0\.$"),
        ({"weight": 1.5}, r"^`weight` must be between 0 and 1; got 1\.5\.$"),
        ({"weight": float("nan")}, r"^`weight` must be between 0 and 1; got nan\.$"),
        ({"method": "stripes"}, r"^`method` got 'stripes'; did you mean 'strips'\?$"),
        ({"confidence": 1.0}, r"^`confidence` must be between 0 and 1; got 1\.0\.$"),
        ({"threads": 0}, r"^`threads` must be at least 1; got 0\.$"),
        ({"survey_weight": [1.0, 2.0]}, r"^`survey_weight` must have one number per person; got 2 for 3\.$"),
        ({"survey_weight": [1.0, -2.0, 1.0]}, r"^`survey_weight` must be 0 or more; person 1 has -2\.$"),
        ({"survey_weight": [1.0, 0.0, 0.0]}, r"^`survey_weight` must be above 0 for at least 2 people; got 1\.$"),
        ({"survey_weight": [1.0, float("nan"), 0.0]}, r"^`survey_weight` must be finite; person 1 has nan\.$"),
    ],
)
def test_wrong_input_gets_one_sentence(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"score": [0.1, 0.2, 0.3], "effort": [0.1, 0.2, 0.3], "aggregate": [0.0, 0.1, 0.2]}
    with pytest.raises(EvenhandError, match=message):
        individual_fairness(**{**given, **change})


def test_methods_are_named() -> None:
    assert METHODS == ("auto", "strips", "blocks", "grid", "sampled")


@pytest.mark.parametrize("method", METHODS)
def test_the_result_says_how_it_was_made(method: Any, people: MakeColumns) -> None:
    result = individual_fairness(*people("continuous", 30), method=method)
    assert result.method == ("strips" if method == "auto" else method)
    assert result.low < result.value < result.high


def test_limits_stay_within_0_and_1_and_need_an_excess_and_an_error() -> None:
    assert limits(0.9999, 1e-6, 30.0, 0.95, 0.01)[1] == 1.0
    assert limits(0.0001, 0.2, 30.0, 0.95, 0.01)[0] == 0.0
    assert np.isnan(limits(1.0, 0.1, 30.0, 0.95, 0.0)).all()
    assert np.isnan(limits(0.9, 0.0, 30.0, 0.95, 0.0)).all()


def test_a_difference_is_wider_by_the_numerical_errors_of_both(people: MakeColumns) -> None:
    score, effort, aggregate = people("continuous", 30)
    a, b = individual_fairness(score, effort, aggregate), individual_fairness(score**2, effort, aggregate)
    exact, rough = compare(a, b), compare(replace(a, error=0.02), replace(b, error=0.03))
    assert rough.high - rough.low == pytest.approx(exact.high - exact.low + 0.1)
    assert compare(replace(a, error=1.0), b).p_value == 1.0  # all of it may be numerical


@pytest.mark.parametrize("method", [method for method in METHODS if method != "auto"])
@pytest.mark.parametrize("weighted", [False, True])
def test_another_confidence_needs_no_pairs_again(people: MakeColumns, method: Any, weighted: bool) -> None:
    columns = people("continuous", 60)
    options: dict[str, Any] = {"method": method, "survey_weight": np.linspace(1, 3, 60) if weighted else None}
    found, asked = (
        individual_fairness(*columns, confidence=confidence, rng=np.random.default_rng(0), **options)
        for confidence in (0.95, 0.7)
    )
    assert (found.at(0.7).low, found.at(0.7).high) == (asked.low, asked.high)
    assert found.at(0.7).value == found.value


@pytest.mark.parametrize("kind", ["smooth", "few", "coins"])
def test_the_error_of_a_difference_at_equal_spread_by_hand(kind: str) -> None:
    n, rng = 40, np.random.default_rng(8)
    effort, noise = (
        rng.choice([0.1, 0.6], n),
        rng.standard_normal((2, n)) * (rng.random(n) < 0.1 if kind == "few" else 1),
    )
    first, second = (0.5 + 0.3 * (effort - 0.3) + 0.15 * np.tanh(each) for each in noise)
    if kind == "coins":
        first, second = rng.choice([0.0, 1.0], n), rng.choice([0.0, 1.0], n, p=[0.7, 0.3])
    scores, spreads = {"a": first, "b": second}, {"a": spread_of(first), "b": spread_of(second)}
    factors = {("a", "a"): 1.0, ("b", "b"): 1.0} | shrinkages(spreads)
    found = {(*pair, 0.5): individual_fairness(c * scores[pair[0]], effort, 0 * effort) for pair, c in factors.items()}
    models = FairnessOfModels.of(found, spreads)
    ours = compare(models.at_equal_spread("a", "b", 0.5), models.at_equal_spread("b", "a", 0.5))

    apart = [np.abs(np.subtract.outer(each, each)) for each in (first, second)]
    least, pairs = np.sqrt(0.5) * np.abs(np.subtract.outer(effort, effort)), np.triu_indices(n, 1)
    spread = [each[pairs].mean() for each in apart]
    wide = int(spread[1] > spread[0])
    c = spread[1 - wide] / spread[wide]
    unfair = [np.maximum(0, (c if side == wide else 1) * apart[side] - least) for side in (0, 1)]
    slope = (apart[wide] * (c * apart[wide] > least))[pairs].mean()
    raw = unfair[1] - unfair[0]
    values = raw + (1 if wide else -1) * slope * (apart[1 - wide] - c * apart[wide]) / spread[wide]
    changes = 2 * (values.sum(axis=1) / (n - 1) - values[pairs].mean()) / (n - 2)
    error = np.sqrt((n - 1) / n * (changes**2).sum())
    between = max(0, values[pairs].var() - 2 * (changes**2).mean() * (n - 2) ** 2 / 4)
    few = min(1, 36 / ((changes**2).sum() ** 2 / (changes**4).sum()) ** 2)
    plain = np.sqrt(error**2 + 4 * between / (n * (n - 1)))
    cautious = error + 2 * np.sqrt((n - 1) / n) * raw[pairs].std() / (n - 2)
    assert ours.value == pytest.approx(values[pairs].mean())
    assert ours.stderr == pytest.approx(error)
    assert ours.spread == pytest.approx((1 - few) * plain + few * cautious)
