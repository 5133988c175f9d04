"""An estimate gives the limits that the audit would have at any other confidence, without a second run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.agreement import audit
from evenhand.audits.agreement.draws import draw_group
from evenhand.audits.agreement.spec import AgreementSpec


def ratings() -> eh.Table:
    rng = np.random.default_rng(5)
    grade = rng.integers(0, 3, 400)
    noise = np.where(rng.random(400) < 0.3, rng.integers(0, 3, 400), grade)
    return eh.Table({"x": grade, "y": noise, "group": np.array(list("abc"))[rng.integers(3, size=400)]}, groups="group")


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_limits_at_another_confidence_are_those_of_an_audit_with_it(scale: Any, confidence: float) -> None:
    spec = AgreementSpec(raters=("x", "y"), scale=scale, resamples=200)
    claims, fresh = audit.run(ratings(), spec).claims, audit.run(ratings(), spec.with_confidence(confidence)).claims
    found = [estimate.at(confidence) for claim in claims for estimate in claim.estimates]
    assert found == [estimate.record for claim in fresh for estimate in claim.estimates]
    assert found != [estimate.record for claim in claims for estimate in claim.estimates]


def test_three_thresholds_draw_the_groups_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def counted(rated: Any, inside: Any, metrics: Any, spread: float, spec: AgreementSpec) -> Any:
        drawn.append(int(inside.sum()))
        return draw_group(rated, inside, metrics, spread, spec)

    monkeypatch.setattr(audit, "draw_group", counted)
    limits = [{"metric": metric, "max": 0.001} for metric in ("kappa", "bennett_s", "ac1")]
    result = eh.agreement(ratings(), raters=["x", "y"], scale="nominal", resamples=200, thresholds=limits)
    assert sum(finding.threshold is not None for finding in result.findings) >= 3
    assert drawn[0] == sum(drawn[1:])
    assert len(drawn) == 4
