"""Paper 2 on the critics of Dressel and Farid, by the audit itself: published estimates err, sharp ones do not."""

from __future__ import annotations

import os
from functools import cache

import pytest

import evenhand as eh

pytestmark = [
    pytest.mark.replication,
    pytest.mark.skipif(not os.environ.get("EVENHAND_DATA"), reason="EVENHAND_DATA names no folder of data"),
]

INDEFINITE = ("equal_opportunity", "predictive_equality", "overall_misclassification")
ERRORS = {"no_race": (0.147, 0.171, 0.147), "race": (0.142, 0.162, 0.142)}


@cache
def audited(condition: str, bounds: str) -> eh.DisagreementResult:
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


@pytest.mark.slow
@pytest.mark.parametrize("condition", ERRORS)
def test_mean_errors_over_400_critics(condition: str) -> None:
    published, sharp = ({r.metric: r for r in audited(condition, bounds).truth} for bounds in ("published", "sharp"))
    for metric, expected in zip(INDEFINITE, ERRORS[condition], strict=True):
        assert published[metric].critics == sharp[metric].critics == 400
        assert published[metric].mean_error == pytest.approx(expected, abs=6e-4)
        assert sharp[metric].mean_error == pytest.approx(0.0, abs=1e-12)
        assert sharp[metric].inside == 1.0


def test_only_the_misclassification_bounds_are_broken() -> None:
    """The paper sees 'violations' and blames human behaviour; they come from an inequality turned the wrong way."""
    inside = {r.metric: r.inside for r in audited("race", "published").truth}
    assert inside["equal_opportunity"] == inside["predictive_equality"] == 1.0
    assert inside["overall_misclassification"] is not None
    assert 0.9 < inside["overall_misclassification"] < 1.0


def test_the_pooled_gap_and_its_crossed_error() -> None:
    """Of those whom critics would call 1, COMPAS calls more so among Black defendants; standard error about 0.038."""
    result = audited("no_race", "sharp")
    gap = result.get("gaps", metric="equal_opportunity")
    assert (gap.identified, gap.label, gap.group, gap.reference) == ("exact", "1", "Black", "White")
    assert gap.value == pytest.approx(gap.truth)
    assert gap.low is not None
    assert gap.high is not None
    assert gap.high - gap.low == pytest.approx(2 * 2.2 * 0.038, rel=0.25)
