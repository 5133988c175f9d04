"""Paper 2 on the critics of Dressel and Farid, by the audit itself: published estimates err, sharp ones do not."""

from __future__ import annotations

import os
from functools import cache
from typing import Any, Literal

import pytest

import evenhand as eh
from evenhand.replication.disagreement import NOTIONS, critic_errors, replicate_disagreement

pytestmark = [
    pytest.mark.replication,
    pytest.mark.skipif(not os.environ.get("EVENHAND_DATA"), reason="EVENHAND_DATA names no folder of data"),
]

BOUNDS = ("published", "sharp")
ERRORS = {"no_race": (0.147, 0.171, 0.147), "race": (0.142, 0.162, 0.142)}


@cache
def audited(condition: str, bounds: Literal["sharp", "published"]) -> eh.DisagreementResult:
    """White and Black defendants only, as in the paper's comparison."""
    answers = eh.datasets.load_dressel_farid(backend="pandas")
    answers = answers[(answers["condition"] == condition) & answers["race"].isin(["White", "Black"])]
    return eh.disagreement(
        eh.Table(answers, groups="race"),
        decision="compas_decision",
        disagree="disagrees",
        critic="critic",
        case="case",
        answers={"truth": "prediction"},
        bounds=bounds,
        resamples=200,
    )


@cache
def answers() -> dict[str, Any]:
    table = eh.datasets.load_dressel_farid(backend="pandas")
    return {name: table[name].to_numpy() for name in table.columns}


@pytest.mark.parametrize("condition", ERRORS)
def test_mean_errors_over_400_critics(condition: str) -> None:
    for metric, expected in zip(NOTIONS, ERRORS[condition], strict=True):
        published, sharp = (critic_errors(answers(), condition, metric, bounds=bounds) for bounds in BOUNDS)
        assert published.truth.size == 400
        assert published.error.mean() == pytest.approx(expected, abs=6e-4)
        assert sharp.error.max() == pytest.approx(0.0, abs=1e-12)
        assert sharp.outside == 0


def test_violations_in_both_readings_of_the_feedback() -> None:
    """With s = y XOR z only misclassification is broken, whose inequality is turned; by the gloss others are too."""
    outside = {
        (feedback, metric): tuple(
            critic_errors(answers(), condition, metric, feedback=feedback, bounds="published").outside
            for condition in ("race", "no_race")
        )
        for feedback in ("disagrees", "wrong")
        for metric in NOTIONS
    }
    assert outside["disagrees", "equal_opportunity"] == outside["disagrees", "predictive_equality"] == (0, 0)
    assert outside["disagrees", "overall_misclassification"] == (12, 13)
    assert outside["wrong", "equal_opportunity"] == (2, 1)


def test_the_chapter_says_what_differs() -> None:
    found = replicate_disagreement()
    assert {line.what for line in found.lines if line.agrees} >= {"critics", "defendants"}
    assert {claim.verdict for claim in found.claims} == {"holds", "does not hold"}
    assert len(found.figures[0].charts) == 3


@pytest.mark.slow
def test_the_audit_has_the_same_errors() -> None:
    found = {record.metric: record for record in audited("race", "published").truth}
    for metric, expected in zip(NOTIONS, ERRORS["race"], strict=True):
        assert found[metric].critics == 400
        assert found[metric].mean_error == pytest.approx(expected, abs=6e-4)
    assert found["overall_misclassification"].inside == pytest.approx(1 - 12 / 400)


@pytest.mark.slow
def test_the_pooled_gap_and_its_crossed_error() -> None:
    """Of those whom critics would call 1, COMPAS calls more so among Black defendants; standard error about 0.038."""
    result = audited("no_race", "sharp")
    gap = result.get("gaps", metric="equal_opportunity")
    assert (gap.identified, gap.label, gap.group, gap.reference) == ("exact", "1", "Black", "White")
    assert gap.value == pytest.approx(gap.truth)
    assert gap.low is not None
    assert gap.high is not None
    assert gap.high - gap.low == pytest.approx(2 * 2.2 * 0.038, rel=0.25)
