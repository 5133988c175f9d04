"""An estimate gives the limits that the analysis would have at any other confidence, without a second run."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.core.estimates import Estimate
from evenhand.stats import correlation, regression
from evenhand.study import AnalysisSpec, Responses, analyze, simulate_responses
from evenhand.study.analysis import estimate
from evenhand.study.analysis.analyze import run

RANKS, FITS = correlation.rank_bootstrap, regression.coefficient_bootstrap


@pytest.fixture(scope="module")
def responses() -> Responses:
    return simulate_responses(40, seed=2)


def told(responses: Responses, spec: AnalysisSpec) -> list[Estimate[Any]]:
    """Return the estimates of everything that the analysis tells."""
    return [estimate for claim in run(responses, spec).claims for estimate in claim.estimates]


@pytest.mark.parametrize("people", [1, 40])
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.999])
def test_limits_at_another_confidence_are_those_of_an_analysis_with_it(people: int, confidence: float) -> None:
    responses = simulate_responses(people, seed=2)
    spec = AnalysisSpec.parse({"resamples": 200, "exclusions": {"failed_checks": False}}, "the settings")
    own, fresh = told(responses, spec), told(responses, spec.with_confidence(confidence))
    found = [estimate.at(confidence) for estimate in own]
    assert found == [estimate.record for estimate in fresh]
    assert (found != [estimate.record for estimate in own]) == (people > 1)


def test_three_thresholds_resample_people_once(responses: Responses, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def ranks(*args: Any, **options: Any) -> Any:
        calls.append("ranks")
        return RANKS(*args, **options)

    def fits(*args: Any, **options: Any) -> Any:
        calls.append("fit")
        return FITS(*args, **options)

    monkeypatch.setattr(estimate, "rank_bootstrap", ranks)
    monkeypatch.setattr(regression, "coefficient_bootstrap", fits)
    analyze(responses, resamples=200)
    once = list(calls)
    assert sorted(set(once)) == ["fit", "ranks"]
    calls.clear()
    limits = [
        {"metric": "effort_weight", "max": 0.2},
        {"metric": "correlation_difference", "max": -0.5},
        {"metric": "effort_weight", "min": 0.95},
    ]
    judged = analyze(responses, resamples=200, thresholds=limits)
    assert sum(finding.verdict == "does_not_meet" for finding in judged.findings) >= 3
    assert calls == once
