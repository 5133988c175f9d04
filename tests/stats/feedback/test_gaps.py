"""Gaps: pairs and labels one by one, every allocation of small counts, and witnesses of the sharp lower bound."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from evenhand.errors import DataError
from evenhand.stats.feedback import (
    DEFINITE,
    INDEFINITE,
    METRICS,
    Feedback,
    FeedbackGap,
    FeedbackMetric,
    gap,
    joint,
    rates,
    same_gap,
)
from evenhand.stats.feedback.gaps import differences, ordered_pairs, smallest_gaps
from evenhand.stats.feedback.joint import Budget, _chords, _other, _x_at, smallest_gap
from evenhand.stats.types import FloatArray

ByDefinition = Callable[[FloatArray, FeedbackMetric], FloatArray]
Allocations = Callable[[FloatArray, Feedback], FloatArray]

RATIOS: tuple[FeedbackMetric, ...] = ("equal_opportunity", "predictive_equality")


def random_masses(feedback: Feedback, shape: tuple[int, ...], seed: int, spread: float = 1.0) -> FloatArray:
    size = feedback.labels**2
    table = np.random.default_rng(seed).dirichlet(np.full(size, spread), shape)
    return feedback.answers_of(table.reshape(*shape, feedback.labels, feedback.labels))


def largest(rates_of_groups: FloatArray) -> float:
    """The definition: the largest difference over pairs and labels, without the cells that are undefined."""
    pairs = permutations(range(len(rates_of_groups)), 2)
    return float(np.nanmax([rates_of_groups[one] - rates_of_groups[two] for one, two in pairs]))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("groups", [2, 3, 5])
def test_bounds_over_pairs_one_by_one(metric: FeedbackMetric, groups: int) -> None:
    feedback = Feedback(3, "direction")
    masses = random_masses(feedback, (20, groups), 0)
    masses[::3, 1] = 0.0  # a group without answers
    masses[1::4, 0, 2] = 0.0  # a label never given
    found, each = gap(masses, feedback, metric), rates(masses, feedback, metric)
    for i in range(20):
        pairs = list(permutations(range(groups), 2))
        apart = np.array([[each.upper[i, m] - each.lower[i, n]] for m, n in pairs])
        if np.isnan(apart).all():
            assert np.isnan([found.lower[i], found.upper[i], found.estimate[i]]).all()
            assert (found.label[i], found.high[i], found.low[i]) == (-1, -1, -1)
            continue
        assert found.upper[i] == pytest.approx(np.nanmax(apart))
        valid = max(0.0, np.nanmax([each.lower[i, m] - each.upper[i, n] for m, n in pairs]))
        assert found.separate_lower[i] == pytest.approx(valid, abs=1e-12)
        label = max(found.label[i], 0)
        there = each.upper[i, found.high[i], label] - each.lower[i, found.low[i], label]
        assert there == pytest.approx(found.upper[i])
        assert found.separate_lower[i] - 1e-12 <= found.lower[i] <= found.upper[i] + 1e-12


def test_exact_gaps_are_the_definition(by_definition: ByDefinition) -> None:
    table = np.random.default_rng(1).dirichlet(np.ones(9), (10, 4)).reshape(10, 4, 3, 3)
    for metric in (*DEFINITE, *INDEFINITE):
        found = gap(table, Feedback(3, "label"), metric)
        assert found.exact.all()
        assert found.sharp
        np.testing.assert_allclose(found.estimate, [largest(by_definition(each, metric)) for each in table])


def test_a_metric_without_labels_names_none() -> None:
    found = gap(random_masses(Feedback(3), (2,), 2), Feedback(3), "accuracy_equality")
    assert found.label == -1
    assert {int(found.high), int(found.low)} == {0, 1}


def test_groups_may_be_renamed_and_repeated() -> None:
    masses = random_masses(Feedback(3), (4,), 3)
    for metric in METRICS:
        found, turned = gap(masses, Feedback(3), metric), gap(masses[::-1], Feedback(3), metric)
        assert found.upper == pytest.approx(turned.upper)
        assert found.lower == pytest.approx(turned.lower, abs=1e-9)
        if found.exact:  # else several pairs may attain the bound
            assert (3 - found.high, 3 - found.low, found.label) == (turned.high, turned.low, turned.label)
        again = gap(np.concatenate([masses, masses]), Feedback(3), metric)
        assert again.upper >= found.upper  # the same answers twice may still mean different things
        assert again.lower == pytest.approx(found.lower, abs=1e-9)


@pytest.mark.parametrize("labels", [2, 3, 5])
def test_the_gap_of_misclassification_is_that_of_equal_opportunity(labels: int) -> None:
    masses = random_masses(Feedback(labels), (30, 3), 4)
    one, two = (gap(masses, Feedback(labels), metric) for metric in ("equal_opportunity", "overall_misclassification"))
    for field in ("lower", "upper", "estimate"):
        np.testing.assert_allclose(getattr(one, field), getattr(two, field), atol=1e-9)
    np.testing.assert_array_equal(one.high, two.low)


def test_with_two_labels_the_three_indefinite_gaps_are_one() -> None:
    masses = random_masses(Feedback(2), (30, 2), 5)
    found = [gap(masses, Feedback(2), metric) for metric in INDEFINITE]
    assert all(each.exact.all() for each in found)
    for other in found[1:]:
        np.testing.assert_allclose(found[0].estimate, other.estimate, atol=1e-12)
    assert [same_gap(metric, 2) for metric in INDEFINITE] == ["equal_opportunity"] * 3


def test_published_gaps_are_the_middle_of_published_bounds() -> None:
    masses = random_masses(Feedback(4), (2,), 6)
    for metric in INDEFINITE:
        found, each = (f(masses, Feedback(4), metric, bounds="published") for f in (gap, rates))
        assert isinstance(found, FeedbackGap)
        lower = each.lower
        assert found.lower == pytest.approx(lower.max() - 1)
        assert found.upper == pytest.approx(1 - lower.min())
        assert found.estimate == pytest.approx((lower.max() - lower.min()) / 2)


def test_differences_are_those_of_ordered_pairs() -> None:
    found = rates(random_masses(Feedback(3), (3,), 7), Feedback(3), "predictive_equality")
    pairs = list(zip(*ordered_pairs(3), strict=True))
    assert pairs == list(permutations(range(3), 2))
    by_hand = [found.upper[m, k] - found.lower[n, k] for m, n in pairs for k in range(3)]
    np.testing.assert_allclose(differences(found), by_hand)


@pytest.mark.slow
@pytest.mark.parametrize("feedback", [Feedback(3), Feedback(3, "direction")], ids=str)
@pytest.mark.parametrize("metric", RATIOS)
def test_no_allocation_of_small_counts_is_below_the_sharp_bound(
    feedback: Feedback, metric: FeedbackMetric, by_definition: ByDefinition, allocations: Allocations
) -> None:
    """All allocations of both groups, with zeros; a rate whose numerator cannot be positive is 0 by its rule."""
    rng = np.random.default_rng(8)
    touched = 0
    for _ in range(12):
        counts = rng.integers(0, 5, (2, 3, feedback.answers)) * feedback.possible
        counts[..., 0] += rng.random((2, 3)) < 0.7
        found, each = gap(counts, feedback, metric), rates(counts, feedback, metric)
        values = []
        for m in range(2):
            rate = by_definition(allocations(counts[m].astype(float), feedback), metric)
            fixed = each.lower[m] == each.upper[m]
            values.append(np.where(fixed, each.lower[m], rate))
        apart = np.abs(values[0][:, np.newaxis] - values[1])
        counted = np.where(np.isnan(each.lower).any(axis=0), 0.0, apart)
        whole = np.asarray(~np.isnan(counted).any(axis=-1))
        least = np.nanmax(np.where(whole[..., np.newaxis], apart, np.inf), axis=-1).min()
        assert found.sharp
        assert found.lower <= least + 1e-9
        touched += bool(least - found.lower < 0.03)
    assert touched >= 4


@pytest.mark.slow
@pytest.mark.parametrize("feedback", [Feedback(3), Feedback(4), Feedback(5), Feedback(3, "direction")], ids=str)
@pytest.mark.parametrize("metric", RATIOS)
def test_the_sharp_bound_is_attained(feedback: Feedback, metric: FeedbackMetric, by_definition: ByDefinition) -> None:
    """A joint distribution with these answers and that gap exists in every system: it is built."""
    positive = 0
    for i in range(16):
        masses = random_masses(feedback, (2,), 100 + i, spread=0.3 if i % 2 else 1.0)
        found = gap(masses, feedback, metric)
        tables = witness(masses, feedback, metric, float(found.lower) + 1e-5)
        np.testing.assert_allclose(feedback.answers_of(tables), masses, atol=1e-7)
        assert largest(by_definition(tables, metric)) <= float(found.lower) + 2e-5
        positive += float(found.lower) > float(found.separate_lower) + 1e-4
    assert positive >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "feedback", [Feedback(3), Feedback(4), Feedback(4, "direction"), Feedback(4, "agreement", 1)], ids=str
)
@pytest.mark.parametrize("metric", RATIOS)
def test_no_search_gets_below_the_lower_bound(
    feedback: Feedback, metric: FeedbackMetric, by_definition: ByDefinition
) -> None:
    rng = np.random.default_rng(9)
    for i in range(4):
        masses = random_masses(feedback, (2,), 200 + i, spread=0.5)
        lower = float(gap(masses, feedback, metric).lower)
        tables = np.stack([random_tables(masses[m], feedback, 20_000, rng) for m in range(2)], axis=1)
        values = by_definition(tables, metric)
        apart = np.abs(values[:, 0] - values[:, 1]).max(axis=-1)
        assert apart.min() >= lower - 1e-9
        assert descend(masses, feedback, metric, tables[apart.argmin()], by_definition) >= lower - 1e-6


def test_chords_are_below_the_corners_and_near(monkeypatch: pytest.MonkeyPatch) -> None:
    masses = random_masses(Feedback(4), (200, 2), 10, spread=0.3)
    exact = smallest_gaps(masses, Feedback(4), "equal_opportunity")
    monkeypatch.setattr(joint, "_FEW_LABELS", 2)
    np.testing.assert_allclose(smallest_gaps(masses, Feedback(4), "equal_opportunity"), exact, atol=2e-10)
    monkeypatch.setattr(joint, "CORNER_LABELS", 2)
    chords = smallest_gaps(masses, Feedback(4), "equal_opportunity")
    assert (chords <= exact + 1e-9).all()
    assert (exact - chords).max() > 1e-4
    assert (exact - chords).mean() < 0.02


def test_many_labels_give_a_valid_bound_that_is_not_called_sharp() -> None:
    feedback = Feedback(12)
    found = gap(random_masses(feedback, (2,), 11), feedback, "equal_opportunity")
    assert not found.sharp
    assert 0 <= found.lower <= found.upper


def test_chunks_do_not_change_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    masses = random_masses(Feedback(3), (7, 3, 2), 12)
    whole = gap(masses, Feedback(3), "equal_opportunity")
    monkeypatch.setattr(joint, "_CHUNK_NUMBERS", 16)
    np.testing.assert_array_equal(gap(masses, Feedback(3), "equal_opportunity").lower, whole.lower)


def test_which_bounds_are_sharp() -> None:
    def sharp(feedback: Feedback, metric: FeedbackMetric, groups: int = 2) -> bool:
        return gap(random_masses(feedback, (groups,), 13), feedback, metric).sharp

    assert sharp(Feedback(4), "equal_opportunity")
    assert sharp(Feedback(3, "direction"), "equal_opportunity")
    assert not sharp(Feedback(4, "direction"), "equal_opportunity")
    assert not sharp(Feedback(4, "agreement", 1), "equal_opportunity")
    assert sharp(Feedback(4, "agreement", 1), "calibration")
    assert not sharp(Feedback(3), "predictive_equality", groups=3)
    assert sharp(Feedback(3), "calibration", groups=3)


def test_everybody_agrees_or_nobody_does() -> None:
    agree = np.zeros((2, 3, 2))
    agree[..., 0] = [[1, 2, 3], [3, 1, 1]]
    found = gap(agree, Feedback(3), "equal_opportunity")
    assert (float(found.lower), float(found.upper)) == (0.0, 0.0)
    nobody = agree[..., ::-1]
    found = gap(nobody, Feedback(3), "equal_opportunity")
    assert (float(found.lower), float(found.upper)) == (0.0, 0.0)
    unsure = gap(nobody, Feedback(3), "equal_opportunity", closed=True)
    assert (float(unsure.lower), float(unsure.upper)) == (0.0, 1.0)


def test_one_group_is_refused() -> None:
    with pytest.raises(DataError, match="at least two groups"):
        gap(np.ones((1, 3, 2)), Feedback(3), "calibration")


def budget(masses: FloatArray, metric: FeedbackMetric) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """c, lo, hi and X of the module's docstring, from agreement or three labels with a direction, written out."""
    phi, mu = masses[:, 0], masses[:, 1:].sum(axis=1)
    given, total = phi + mu, masses.sum()
    low, high = np.zeros(len(phi)), mu.sum() - mu
    if masses.shape[1] == 3:  # too high at 1 means 0, too low at 1 means 2
        low = np.array([masses[1, 1], 0.0, masses[1, 2]])
        high = np.array([masses[1, 1] + masses[2, 1], masses[0, 2] + masses[2, 1], masses[1, 2] + masses[0, 2]])
    if metric == "equal_opportunity":
        return phi, low, high, float(mu.sum())
    return mu, total - given - high, total - given - low, float((total - given).sum() - mu.sum())


def witness(masses: FloatArray, feedback: Feedback, metric: FeedbackMetric, t: float) -> FloatArray:
    """Return joint masses of two groups that have these answers and a gap of at most t."""
    (c1, low1, high1, total1), (c2, low2, high2, total2) = (budget(each, metric) for each in masses)

    def ends(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        rate = c1 / (c1 + x)
        with np.errstate(divide="ignore"):
            b = np.where(rate > t, c2 / np.where(rate > t, rate - t, 1.0) - c2, np.inf)
        return np.maximum(low2, c2 / (rate + t) - c2), np.minimum(high2, b)

    slack = [c2 / (c2 + low2) + t, c2 / (c2 + high2) - t, c2 / (c2 + low2) - t, c2 / (c2 + high2) + t]
    at = [np.where(rate > 0, c1 / np.where(rate > 0, rate, 1.0) - c1, np.inf) for rate in slack]
    low, high = np.maximum(low1, at[0]), np.minimum(high1, at[1])
    stops = [np.clip(kink, low, high) for kink in (low, high, at[2], at[3])]
    corners = []
    for k in range(feedback.labels):
        for choice in product(range(4), repeat=feedback.labels - 1):
            x = np.array(
                [stops[c][i] for c, i in zip((*choice[:k], 0, *choice[k:]), range(feedback.labels), strict=True)]
            )
            x[k] = total1 - np.delete(x, k).sum()
            if low[k] - 1e-12 <= x[k] <= high[k] + 1e-12:
                corners.append(np.clip(x, low, high))
    corner = np.array(corners)
    a, b = ends(corner)
    first, last = corner[a.sum(axis=1).argmin()], corner[b.sum(axis=1).argmax()]
    low_way, high_way = 0.0, 0.0 if ends(first)[1].sum() >= total2 else 1.0
    for _ in range(60):  # the sum of b crosses X2 on the way, and the sum of a is below it
        middle = (low_way + high_way) / 2
        enough = ends(first + middle * (last - first))[1].sum() >= total2
        low_way, high_way = (low_way, middle) if enough else (middle, high_way)
    x1 = first + high_way * (last - first)
    a, b = ends(x1)
    assert a.sum() <= total2 + 1e-12 <= b.sum() + 2e-12
    room = (b - a).sum()
    x2 = a + (b - a) * ((total2 - a.sum()) / room if room > 0 else 0.0)
    return np.stack([realise(masses[m], feedback, metric, x) for m, x in enumerate((x1, x2))])


def realise(masses: FloatArray, feedback: Feedback, metric: FeedbackMetric, x: FloatArray) -> FloatArray:
    """Return a joint table with these answers in which critics alone call q of the cases each label."""
    given = masses.sum(axis=1)
    q = x if metric == "equal_opportunity" else masses.sum() - given - x
    cells = [tuple(cell) for cell in np.argwhere(feedback.admissible)]
    equal = [[float(each[:2] == cell) for each in cells] for cell in np.ndindex(*masses.shape)]
    equal += [[float(each[2] == k != each[0]) for each in cells] for k in range(feedback.labels)]
    scale = 1e5  # the solver's tolerance is absolute
    right = scale * np.concatenate([masses.ravel(), q])
    # Slack variables: rounding in q must not make the program infeasible.
    rows = np.hstack([np.array(equal), np.eye(len(right)), -np.eye(len(right))])
    cost = np.concatenate([np.zeros(len(cells)), np.ones(2 * len(right))])
    found = linprog(cost, A_eq=rows, b_eq=right, method="highs")
    assert found.status == 0
    assert found.fun is not None
    assert found.x is not None
    assert found.fun < 1e-3
    table = np.zeros((feedback.labels, feedback.labels))
    for (system, _, critic), mass in zip(cells, found.x, strict=False):
        table[system, critic] += mass / scale
    return table


def random_tables(masses: FloatArray, feedback: Feedback, n: int, rng: np.random.Generator) -> FloatArray:
    """Return joint tables with these answers, drawn at random, also from the corners."""
    tables = np.zeros((n, feedback.labels, feedback.labels))
    for label, answer in np.ndindex(*masses.shape):
        open_ = np.flatnonzero(feedback.admissible[label, answer])
        if open_.size:
            split = rng.gamma(rng.choice([0.1, 0.5, 2.0], (n, 1)), size=(n, open_.size)) + 1e-300
            tables[:, label, open_] += masses[label, answer] * split / split.sum(axis=1, keepdims=True)
    return tables


def descend(
    masses: FloatArray, feedback: Feedback, metric: FeedbackMetric, start: FloatArray, by_definition: ByDefinition
) -> float:
    """Return the gap that a local search from a pair of tables reaches."""
    shape = (2, *feedback.admissible.shape)
    open_ = np.argwhere(np.broadcast_to(feedback.admissible, shape))
    answers = np.einsum("mlz,lfz->mlfz", start, feedback.admissible)

    def tables(v: FloatArray) -> FloatArray:
        full = np.zeros(shape)
        full[tuple(open_.T)] = v[:-1]
        return np.asarray(full.sum(axis=2))

    def apart(v: FloatArray) -> FloatArray:
        values = by_definition(tables(v), metric)
        return np.asarray(values[0] - values[1])

    equal = np.array([[float(tuple(o[:3]) == cell) for o in open_] for cell in np.ndindex(*shape[:3])])
    first = np.append(answers[tuple(open_.T)], 0.0)
    first[-1] = np.abs(apart(first)).max()
    constraints = [
        {"type": "eq", "fun": lambda v: equal @ v[:-1] - masses.ravel()},
        {"type": "ineq", "fun": lambda v: v[-1] - apart(v)},
        {"type": "ineq", "fun": lambda v: v[-1] + apart(v)},
    ]
    bounds = [(1e-9, 1.0)] * first.size
    found = minimize(  # type: ignore[call-overload]
        lambda v: v[-1], first, method="SLSQP", bounds=bounds, constraints=constraints, options={"maxiter": 60}
    )
    kept = np.abs(equal @ found.x[:-1] - masses.ravel()).max() < 1e-8
    return float(np.abs(apart(found.x)).max()) if kept else 1.0


def test_a_label_on_which_nobody_agrees_does_not_count_where_its_rate_may_be_anything() -> None:
    """Group 1 agrees with all. In group 0 label 0 was never agreed with, so that nobody may have meant it.

    If it counts, a rate of 0 stands against one of 1. Else all ten who refused labels 1 and 2 may have meant 0, and the
    five who refused 0 meant 1 and 2: of each then 5 of 7.5 agree.
    """
    masses = [[[0, 5], [5, 5], [5, 5]], [[5, 0]] * 3]
    assert smallest_gaps(masses, Feedback(3), "equal_opportunity") == pytest.approx([1.0])
    assert smallest_gaps(masses, Feedback(3), "equal_opportunity", closed=True) == pytest.approx([1 / 3], abs=1e-7)


def test_with_a_tolerance_every_pair_of_groups_may_be_alike() -> None:
    found = smallest_gaps(np.ones((4, 3, 5, 2)), Feedback(5, tolerance=1), "equal_opportunity")
    np.testing.assert_array_equal(found, np.zeros((4, 3)))


def test_a_group_without_answers_is_compared_with_nobody() -> None:
    nothing = Budget(np.zeros(2), np.zeros(2), np.zeros(2), np.array(0.0))
    somebody = Budget(np.full(2, 0.3), np.zeros(2), np.full(2, 0.4), np.array(0.4))
    for pair in ((nothing, somebody), (somebody, nothing)):
        assert float(smallest_gap(*pair, np.zeros(2, dtype=np.bool_))) == 0.0


def test_the_x_of_a_rate_by_hand() -> None:
    """1 / (1 + x) is a half at 1, and 0 or less nowhere; without c every x has the rate 0."""
    found = _x_at(np.array([1.0, 1.0, 1.0, 0.0]), np.array([0.5, 0.0, -0.1, 0.5]), -7.0)
    assert found.tolist() == [1.0, np.inf, np.inf, -7.0]


def test_chords_are_filled_from_the_flattest_and_a_point_has_no_slope() -> None:
    """Chords from 0 to 4 over [0, 2], and 3 at the point 1: with a total of 2 one of slope 2 is filled by 1."""
    ends = np.array([[[0.0, 4.0], [3.0, 3.0]]])
    low, high, total = np.array([[0.0, 1.0]]), np.array([[2.0, 1.0]]), np.array([2.0])
    assert _chords(lambda x, k: x, low, high, total, ends).tolist() == [5.0]


def test_the_gap_of_three_groups_is_at_least_that_of_any_two() -> None:
    masses = np.array([[[9, 1], [8, 1], [9, 2]], [[9, 1], [9, 1], [8, 1]], [[1, 9], [5, 5], [2, 9]]])
    pairs = smallest_gaps(masses, Feedback(3), "equal_opportunity")
    found = gap(masses, Feedback(3), "equal_opportunity")
    assert pairs.max() > 0.1 > pairs.min()
    assert found.lower >= pairs.max()


def test_the_second_groups_x_of_a_rate_within_its_ends_by_hand() -> None:
    """With c of 1, 1 / (1 + x) is a half at 1, a fifth at 4 (its end is 3) and 0 nowhere; without c it is free."""
    two = Budget(np.array([[1.0], [0.0]]), np.array([[0.5], [0.5]]), np.array([[3.0], [3.0]]), np.array([1.0, 1.0]))
    rate = np.array([[0.5, 0.2, 0.0, 0.9, -0.1], [0.5, 0.2, 0.0, 0.9, -0.1]])
    assert _other(two, rate, 0, least=True).tolist() == [[1.0, 3.0, 3.0, 0.5, 3.0], [0.5] * 5]
    assert _other(two, rate, 0, least=False).tolist() == [[1.0, 3.0, 3.0, 0.5, 3.0], [3.0] * 5]
