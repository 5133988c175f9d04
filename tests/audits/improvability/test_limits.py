"""Largest margins at other confidences come from the p-values of one test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.improvability import ImprovabilitySpec, audit
from evenhand.audits.improvability.result import Margin
from evenhand.stats import improvability as stats


def decided(n: int = 2_000) -> eh.Table:
    """Return decisions of which the candidates are right more often, and in both groups alike."""
    rng = np.random.default_rng(0)
    group, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    shares = {"old": 0.55 + 0.2 * group, "new": np.full(n, 0.9), "near": np.full(n, 0.72)}
    right = {name: rng.random(n) < share for name, share in shares.items()}
    columns = {name: np.where(good, y, 1 - y) for name, good in right.items()}
    return eh.Table(pd.DataFrame({"g": np.array(["a", "b"])[group], "y": y, **columns}), groups="g", outcome="y")


OPTIONS: dict[str, Any] = {"status_quo": "old", "candidates": ["new", "near"], "resamples": 1_000}


def place(margin: Margin) -> tuple[str | None, ...]:
    return margin.model, margin.metric, margin.group, margin.test


@pytest.mark.parametrize("confidence", [0.8, 0.97])
def test_an_estimate_has_the_margin_of_a_test_at_that_level(confidence: float) -> None:
    table = decided()
    claims = audit.run(table, ImprovabilitySpec(**OPTIONS)).claims
    level = {"alpha": 1.0 - confidence}
    expected = {
        place(margin): margin for margin in audit.run(table, ImprovabilitySpec(**OPTIONS, test=level)).result.margins
    }
    moved = 0
    for estimate in (estimate for claim in claims for estimate in claim.estimates):
        margin = estimate.record
        assert isinstance(margin, Margin)
        assert estimate.at(confidence) == expected[place(margin)]
        assert estimate.at(0.9) == margin
        moved += margin.value != expected[place(margin)].value
    assert moved > 0


def test_three_thresholds_take_one_test_of_each_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, kernel = [], stats.bootstrap_values

    def counted(*rows: Any, **options: Any) -> Any:
        drawn.append(options)
        return kernel(*rows, **options)

    monkeypatch.setattr(stats, "bootstrap_values", counted)
    limits = [{"metric": "improvable_fairness", "max": most} for most in (0.0, 0.1)]
    limits.append({"metric": "improvable_accuracy", "max": 0.0})
    found = eh.improvability(decided(), **OPTIONS, thresholds=limits)
    assert sum(finding.limit is not None for finding in found.findings) == 6
    assert len(drawn) == 2
