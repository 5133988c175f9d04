"""Limits at other confidences come from what one simulation has given."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.reliability import audit
from evenhand.audits.reliability.estimate import run_simulation
from evenhand.audits.reliability.gaps import gap_key
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.result import finalize

from .conftest import reliability

ASKED: dict[str, Any] = {"features": ["age", "priors"], "replicates": 10, "resamples": 100, "attribution": False}
NOISE = {"features": {"age": 3, "priors": 1}, "noise_levels": [0.2, 0.4]}


def risk(rows: Any) -> Any:
    return (rows[:, 1] - rows[:, 0] / 40 + 2) / 10


@pytest.fixture
def three_groups(people: pd.DataFrame) -> eh.Table:
    people["kind"] = people["job"]
    return eh.Table(people, groups=["group", "kind"])


@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_an_estimate_has_the_limits_of_an_audit_at_that_confidence(three_groups: eh.Table, confidence: float) -> None:
    spec = ReliabilitySpec(model=risk, noise=NOISE, **ASKED)
    claims = audit.run(three_groups, spec).claims
    fresh = finalize(audit.run(three_groups, spec.with_confidence(confidence)))
    expected = {gap_key(gap): gap for gap in audit.run(three_groups, spec.with_confidence(confidence)).result.gaps}
    assert len(fresh.gaps) == len(expected)  # a place tells one gap from all others
    estimates: list[Any] = [estimate for claim in claims for estimate in claim.estimates]
    assert {gap_key(estimate.record) for estimate in estimates} == {p for p in expected if p[-1] is None}
    for estimate in estimates:
        assert estimate.at(confidence) == expected[gap_key(estimate.record)]
        assert estimate.at(spec.confidence) == estimate.record


def test_three_thresholds_take_one_simulation(table: eh.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Any] = []

    def counted(setup: Any) -> Any:
        runs.append(setup)
        return run_simulation(setup)

    monkeypatch.setattr(audit, "run_simulation", counted)
    limits = [{"metric": metric, "max": 0.001} for metric in ("pabak", "icc_a1", "icc_spread")]
    found = reliability(risk, table, noise=NOISE["features"], noise_levels=[0.4], thresholds=limits, **ASKED)
    assert [finding.limit for finding in found.findings[:3]] == [0.001] * 3
    assert len(runs) == 1
