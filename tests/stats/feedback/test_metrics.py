"""Rates of the metrics: every allocation of small counts, linear-fractional programs, and the rules for 0 / 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evenhand.errors import ConfigError, DataError
from evenhand.stats.feedback import (
    BY_LABEL,
    DEFINITE,
    INDEFINITE,
    METRICS,
    Feedback,
    FeedbackMetric,
    UndefinedRate,
    rates,
)
from evenhand.stats.types import FloatArray

ByDefinition = Callable[[FloatArray, FeedbackMetric], FloatArray]
Allocations = Callable[[FloatArray, Feedback], FloatArray]
Program = Callable[[FloatArray, Feedback, FeedbackMetric, int, bool], float]

KINDS = [
    Feedback(2),
    Feedback(3),
    Feedback(2, "direction"),
    Feedback(3, "direction"),
    Feedback(3, "agreement", 1),
    Feedback(3, "direction", 1),
    Feedback(4, "direction"),
]
SIX = (*DEFINITE, *INDEFINITE)


def random_counts(feedback: Feedback, most: int, rng: np.random.Generator) -> FloatArray:
    """Whole counts of the answers that can be given, many of them 0."""
    counts = rng.integers(0, most + 1, (feedback.labels, feedback.answers)) * (rng.random() < 0.9)
    return np.asarray(counts * feedback.possible * (rng.random(feedback.possible.shape) < 0.8), dtype=np.float64)


@pytest.mark.parametrize("feedback", KINDS, ids=str)
def test_intervals_are_the_ends_of_all_allocations(
    feedback: Feedback, by_definition: ByDefinition, allocations: Allocations
) -> None:
    """Zeros and all: where no allocation has a rate it is undefined, and the others span the interval exactly."""
    rng = np.random.default_rng(feedback.labels)
    for _ in range(25):
        counts = random_counts(feedback, 3 if feedback.labels < 4 else 2, rng)
        joints = allocations(counts, feedback)
        for metric in SIX:
            found, each = rates(counts, feedback, metric), by_definition(joints, metric)
            some = ~np.isnan(each).all(axis=0)
            np.testing.assert_array_equal(found.reason == UndefinedRate.DEFINED, some, err_msg=f"{metric} {counts}")
            np.testing.assert_allclose(found.lower[some], np.nanmin(each[:, some], axis=0), atol=1e-12)
            np.testing.assert_allclose(found.upper[some], np.nanmax(each[:, some], axis=0), atol=1e-12)
            assert np.isnan(found.lower[~some]).all()


@pytest.mark.parametrize(
    "feedback",
    [
        Feedback(4),
        Feedback(4, "direction"),
        Feedback(4, "agreement", 1),
        Feedback(5, "direction", 1),
        Feedback(4, "label"),
    ],
    ids=str,
)
def test_intervals_are_the_values_of_linear_fractional_programs(feedback: Feedback, program: Program) -> None:
    rng = np.random.default_rng(1)
    for _ in range(3):
        joint = rng.dirichlet(np.ones(feedback.labels**2)).reshape(feedback.labels, -1)
        masses = feedback.answers_of(joint)
        for metric in ("calibration", "accuracy_equality", *INDEFINITE):
            found = rates(masses, feedback, metric)
            for label in range(feedback.labels if metric in BY_LABEL else 1):
                assert found.lower[label] == pytest.approx(program(masses, feedback, metric, label, False), abs=1e-9)
                assert found.upper[label] == pytest.approx(program(masses, feedback, metric, label, True), abs=1e-9)


@pytest.mark.parametrize("kind", ["agreement", "direction"])
def test_two_labels_are_exact(kind: str, by_definition: ByDefinition) -> None:
    joint = np.random.default_rng(0).dirichlet(np.ones(4), 50).reshape(50, 2, 2)
    feedback = Feedback(2, kind)  # type: ignore[arg-type]
    for metric in SIX:
        found = rates(feedback.answers_of(joint), feedback, metric)
        assert found.exact.all()
        np.testing.assert_allclose(found.lower, by_definition(joint, metric), atol=1e-12)


def test_agreement_makes_the_definite_metrics_exact(by_definition: ByDefinition) -> None:
    joint = np.random.default_rng(0).dirichlet(np.ones(25), 20).reshape(20, 5, 5)
    for metric in DEFINITE:
        found = rates(Feedback(5).answers_of(joint), Feedback(5), metric)
        assert found.exact.all()
        np.testing.assert_allclose(found.lower, by_definition(joint, metric), atol=1e-12)


def test_the_label_itself_leaves_nothing_open(by_definition: ByDefinition) -> None:
    joint = np.random.default_rng(0).dirichlet(np.ones(16), 20).reshape(20, 4, 4)
    for metric in SIX:
        found = rates(joint, Feedback(4, "label"), metric)
        np.testing.assert_allclose(found.lower, by_definition(joint, metric), atol=1e-12)
        np.testing.assert_allclose(found.upper, found.lower, atol=1e-12)


def test_plain_feedback_has_the_closed_forms() -> None:
    """EO in [phi / (phi + sum of the other mu), 1], PE in [mu / (mu + other SP), mu / (mu + other phi)]."""
    masses = np.random.default_rng(2).dirichlet(np.ones(8), 10).reshape(10, 4, 2)
    phi, mu = masses[..., 0], masses[..., 1]
    given = phi + mu
    other_mu, other_phi, other = (x.sum(axis=-1, keepdims=True) - x for x in (mu, phi, given))
    opportunity = rates(masses, Feedback(4), "equal_opportunity")
    np.testing.assert_allclose(opportunity.lower, phi / (phi + other_mu))
    np.testing.assert_allclose(opportunity.upper, 1.0)
    predictive = rates(masses, Feedback(4), "predictive_equality")
    np.testing.assert_allclose(predictive.lower, mu / (mu + other))
    np.testing.assert_allclose(predictive.upper, mu / (mu + other_phi))


@pytest.mark.parametrize("feedback", KINDS, ids=str)
@pytest.mark.parametrize("metric", METRICS)
def test_scale_repetition_and_axes(feedback: Feedback, metric: FeedbackMetric) -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 9, (4, 3, feedback.labels, feedback.answers)) * feedback.possible
    found, scaled = rates(counts, feedback, metric), rates(counts * 7, feedback, metric)
    np.testing.assert_allclose(found.lower, scaled.lower, atol=1e-12)
    np.testing.assert_allclose(found.upper, scaled.upper, atol=1e-12)
    alone = rates(counts[2, 1], feedback, metric)
    np.testing.assert_array_equal(found.lower[2, 1], alone.lower)
    assert (found.lower <= found.upper + 1e-15).all()
    assert found.by_label == (metric in BY_LABEL) == (found.lower.shape[-1] == feedback.labels)


@pytest.mark.parametrize("metric", SIX)
def test_turning_the_order_of_labels_round(metric: FeedbackMetric) -> None:
    """Labels counted from the other end, with too high and too low exchanged, have the same rates."""
    feedback = Feedback(4, "direction")
    counts = np.random.default_rng(4).integers(1, 9, (4, 3)) * feedback.possible
    found, turned = rates(counts, feedback, metric), rates(counts[::-1, [0, 2, 1]], feedback, metric)
    np.testing.assert_allclose(found.lower, turned.lower[::-1])
    np.testing.assert_allclose(found.upper, turned.upper[::-1])


def test_a_direction_never_widens_an_interval() -> None:
    joint = np.random.default_rng(5).dirichlet(np.ones(16), 40).reshape(40, 4, 4)
    plain, directed = Feedback(4), Feedback(4, "direction")
    for metric in INDEFINITE:
        wide, narrow = (rates(kind.answers_of(joint), kind, metric) for kind in (plain, directed))
        assert (narrow.lower >= wide.lower - 1e-12).all()
        assert (narrow.upper <= wide.upper + 1e-12).all()
        assert (narrow.upper - narrow.lower < wide.upper - wide.lower - 0.01).any()


def test_tolerant_metrics_stay_exact() -> None:
    joint = np.random.default_rng(6).dirichlet(np.ones(16), 30).reshape(30, 4, 4)
    near = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) <= 1
    feedback = Feedback(4, "agreement", 1)
    masses = feedback.answers_of(joint)
    share = (joint * near).sum(axis=-1) / joint.sum(axis=-1)
    np.testing.assert_allclose(rates(masses, feedback, "tolerant_calibration").lower, share)
    overall = (joint * near).sum(axis=(-2, -1))[:, np.newaxis]
    np.testing.assert_allclose(rates(masses, feedback, "tolerant_accuracy").upper, overall)
    assert not rates(masses, feedback, "calibration").exact.any()
    np.testing.assert_array_equal(rates(masses, feedback, "equal_opportunity").lower, 0.0)


class TestZeros:
    """0 / 0, one rule at a time; agree and disagree for each of three labels."""

    def test_without_agreement_equal_opportunity_is_0(self) -> None:
        found = rates([[0, 4], [3, 1], [2, 2]], Feedback(3), "equal_opportunity")
        assert (found.lower[0], found.upper[0]) == (0.0, 0.0)

    def test_a_sample_without_agreement_does_not_prove_it(self) -> None:
        found = rates([[0, 4], [3, 1], [2, 2]], Feedback(3), "equal_opportunity", closed=True)
        assert (found.lower[0], found.upper[0]) == (0.0, 1.0)

    def test_without_disagreement_elsewhere_equal_opportunity_is_1(self) -> None:
        found = rates([[2, 4], [3, 0], [2, 0]], Feedback(3), "equal_opportunity")
        assert (found.lower[0], found.upper[0]) == (1.0, 1.0)

    def test_a_label_that_no_critic_can_mean(self) -> None:
        found = rates([[0, 4], [3, 0], [2, 0]], Feedback(3), "equal_opportunity")
        assert found.reason.tolist() == [UndefinedRate.NO_CRITIC_LABEL, 0, 0]
        assert np.isnan(found.lower[0])
        assert np.isnan(found.upper[0])

    def test_a_label_never_given(self) -> None:
        counts = [[0, 0], [3, 1], [2, 2]]
        predictive = rates(counts, Feedback(3), "predictive_equality")
        assert (predictive.lower[0], predictive.upper[0], predictive.reason[0]) == (0.0, 0.0, 0)
        assert rates(counts, Feedback(3), "calibration").reason.tolist() == [UndefinedRate.LABEL_NEVER_GIVEN, 0, 0]
        assert rates(counts, Feedback(3), "statistical_parity").lower[0] == 0.0

    def test_everybody_means_the_one_label(self) -> None:
        found = rates([[5, 0], [0, 0], [0, 0]], Feedback(3), "predictive_equality")
        assert found.reason.tolist() == [UndefinedRate.NO_OTHER_LABEL, 0, 0]

    @pytest.mark.parametrize("metric", METRICS)
    def test_a_group_without_answers(self, metric: FeedbackMetric) -> None:
        found = rates(np.zeros((2, 3, 2)), Feedback(3), metric)
        assert (found.reason == UndefinedRate.NO_ANSWERS).all()
        assert np.isnan(found.upper).all()

    def test_one_answer(self) -> None:
        found = rates([[1, 0], [0, 0]], Feedback(2), "equal_opportunity")
        assert found.lower[0] == 1.0
        assert found.reason[1] == UndefinedRate.NO_CRITIC_LABEL


def test_published_bounds() -> None:
    masses = np.random.default_rng(7).dirichlet(np.ones(8)).reshape(4, 2)
    phi, mu = masses.T
    other = 1 - phi - mu
    published: dict[FeedbackMetric, FloatArray] = {
        "equal_opportunity": phi / (phi + other),
        "predictive_equality": mu / (mu + other),
        "overall_misclassification": other / (phi + other),
    }
    for metric, lower in published.items():
        found = rates(masses, Feedback(4), metric, bounds="published")
        np.testing.assert_allclose(found.lower, lower)
        np.testing.assert_array_equal(found.upper, 1.0)
    for metric in DEFINITE:
        same = rates(masses, Feedback(4), metric, bounds="published").lower
        np.testing.assert_array_equal(rates(masses, Feedback(4), metric).lower, same)


def test_the_published_inequality_of_misclassification_points_the_wrong_way(by_definition: ByDefinition) -> None:
    """In 1,200 random systems every cell breaks it; the other two hold, and the sharp intervals always do."""
    rng = np.random.default_rng(8)
    broken = dict.fromkeys(INDEFINITE, 0)
    cells = 0
    for labels in (3, 5, 10):
        joint = rng.dirichlet(np.ones(labels**2), 400).reshape(400, labels, labels)
        masses = Feedback(labels).answers_of(joint)
        cells += 400 * labels
        for metric in INDEFINITE:
            truth = by_definition(joint, metric)
            broken[metric] += int((truth < rates(masses, Feedback(labels), metric, bounds="published").lower).sum())
            sharp = rates(masses, Feedback(labels), metric)
            assert ((sharp.lower <= truth + 1e-12) & (truth <= sharp.upper + 1e-12)).all()
    assert broken == {"equal_opportunity": 0, "predictive_equality": 0, "overall_misclassification": cells}


def test_what_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 2; got 1"):
        Feedback(1)
    with pytest.raises(ConfigError, match="from 0 to 1 steps with 3 labels"):
        Feedback(3, "agreement", 2)
    with pytest.raises(ConfigError, match="`kind` got 'directon'; did you mean 'direction'"):
        Feedback(3, "directon")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="too low"):
        Feedback(3, "direction").check([[1, 0, 0], [1, 1, 1], [1, 0, 2]])
    with pytest.raises(DataError, match=r"shape \(..., 3 labels, 2 answers\)"):
        rates(np.ones((3, 3)), Feedback(3), "calibration")
    with pytest.raises(DataError, match="negative or missing"):
        rates([[1.0, float("nan")], [1.0, 1.0]], Feedback(2), "calibration")
    with pytest.raises(ConfigError, match="knows no tolerance"):
        rates(np.ones((4, 2)), Feedback(4, "agreement", 1), "equal_opportunity", bounds="published")
    with pytest.raises(ConfigError, match="did you mean 'calibration'"):
        rates(np.ones((2, 2)), Feedback(2), "calibraton")  # type: ignore[arg-type]


def test_a_published_bound_of_nothing_over_nothing_says_so() -> None:
    """A group that has label 0 only, and nobody agrees: neither agreement nor other labels."""
    found = rates([[[0, 4], [0, 0]], [[3, 1], [2, 2]]], Feedback(2), "equal_opportunity", bounds="published")
    np.testing.assert_allclose(found.lower, [[np.nan, 0.0], [3 / 7, 2 / 6]])
    assert found.reason.tolist() == [[UndefinedRate.UNSTATED, 0], [0, 0]]
    assert [int(reason) for reason in UndefinedRate] == [0, 1, 2, 3, 4, 5]  # each reason has its own number
