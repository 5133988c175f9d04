"""Paper 2 on the real critics of Dressel and Farid: the published estimate errs, the sharp one does not."""

from __future__ import annotations

import os
from functools import cache

import numpy as np
import pytest

from evenhand.datasets import load_dressel_farid
from evenhand.stats.feedback import INDEFINITE, Answers, Feedback, FeedbackGap, FeedbackMetric, gap

pytestmark = [
    pytest.mark.replication,
    pytest.mark.skipif(not os.environ.get("EVENHAND_DATA"), reason="EVENHAND_DATA names no folder of data"),
]

EXPECTED = {"no_race": (0.147, 0.171, 0.147), "race": (0.142, 0.162, 0.142)}
PRINTED = (0.12, 0.17, 0.15)


@cache
def critics(condition: str, kind: str) -> Answers:
    """White and Black defendants only, as agreement or as the critics' own labels."""
    table = load_dressel_farid(backend="pandas")
    table = table[(table["condition"] == condition) & table["race"].isin(["White", "Black"])]
    cases = table.drop_duplicates("case").sort_values("case")
    return Answers(
        critic=np.unique(table["critic"], return_inverse=True)[1],
        case=np.searchsorted(cases["case"].to_numpy(), table["case"].to_numpy()),
        answer=table["disagrees" if kind == "agreement" else "prediction"].to_numpy(),
        group=(cases["race"] == "Black").to_numpy().astype(np.int64),
        label=cases["compas_decision"].to_numpy(),
        groups=2,
        critics=400,
        feedback=Feedback(2, kind),  # type: ignore[arg-type]
    )


def gaps(condition: str, metric: FeedbackMetric) -> tuple[FeedbackGap, FeedbackGap, FeedbackGap]:
    """The true gaps of the 400 critics, the published ones and the sharp ones."""
    truth, feedback = critics(condition, "label"), critics(condition, "agreement")
    return (
        gap(truth.by_critic(), truth.feedback, metric),
        gap(feedback.by_critic(), feedback.feedback, metric, bounds="published"),
        gap(feedback.by_critic(), feedback.feedback, metric),
    )


@pytest.mark.parametrize("condition", EXPECTED)
def test_mean_absolute_errors(condition: str) -> None:
    for metric, expected in zip(INDEFINITE, EXPECTED[condition], strict=True):
        truth, published, sharp = gaps(condition, metric)
        assert truth.estimate.shape == (400,)
        assert np.abs(published.estimate - truth.estimate).mean() == pytest.approx(expected, abs=6e-4)
        np.testing.assert_allclose(sharp.estimate, truth.estimate, atol=1e-12)
        assert sharp.exact.all()


def test_the_printed_errors_are_near_those_of_the_condition_without_race() -> None:
    for metric, printed in zip(INDEFINITE, PRINTED, strict=True):
        truth, published, _ = gaps("no_race", metric)
        assert np.abs(published.estimate - truth.estimate).mean() == pytest.approx(printed, abs=0.03)


def test_the_published_bounds_hold_but_for_misclassification() -> None:
    for metric in INDEFINITE:
        truth, published, _ = gaps("race", metric)
        outside = (truth.estimate > published.upper + 1e-12) | (truth.estimate < published.lower - 1e-12)
        assert outside.any() == (metric == "overall_misclassification")
