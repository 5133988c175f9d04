"""An estimate gives the limits at any confidence that the audit would have with that confidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.parity import audit, resampled
from evenhand.audits.parity.analysis import Analysis
from evenhand.audits.parity.comparison import Analysed, analyse
from evenhand.audits.parity.gather import GroupCells, Totals
from evenhand.audits.parity.metrics import METRICS, custom_metric
from evenhand.audits.parity.spec import ParitySpec
from evenhand.stats import bootstrap
from evenhand.stats.types import FloatArray


def jaccard(cells: Totals) -> FloatArray:
    return cells.tp / (cells.tp + cells.fp + cells.fn)


def description(interval: Any, confidence: float, weight: str | None = None) -> Analysis:
    rng = np.random.default_rng(4)
    size = 700
    outcome = rng.random(size) < 0.4
    data = {
        "group": np.array(list("abcd"))[rng.integers(4, size=size)],
        "outcome": outcome.astype(int),
        "score": np.clip(0.3 + 0.3 * outcome + 0.2 * rng.standard_normal(size), 0, 1),
        "weight": rng.gamma(3.0, size=size),
    }
    table = eh.Table(data, outcome="outcome", groups="group", predictions={"m": "score"}, weight=weight)
    ranks = table.score_rows("m")
    return Analysis(
        model="m",
        grouping="group",
        stratum=None,
        cells=GroupCells.build(table.score_cells("m"), "m", ["group"], ()),
        metrics=[*((metric, None) for metric in METRICS.values()), (custom_metric("own"), jaccard)],
        spec=ParitySpec(interval=interval, confidence=confidence, resamples=200),
        reference=0,
        score_range=(0.0, 1.0),
        favourable="selected",
        ranks=(ranks, ranks.groups.joint(["group"])[0]),
    )


def at(analysed: Analysed, confidence: float) -> list[Any]:
    """Return the records at another confidence, asked for in no order."""
    estimates: list[Any] = [*analysed.values, *analysed.gaps]
    order = np.random.default_rng(2).permutation(len(estimates))
    records: dict[int, Any] = {int(place): estimates[place].at(confidence) for place in order}
    return [records[place] for place in range(len(estimates))]


@pytest.mark.parametrize("interval", ["auto", "basic", "bca"])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_limits_at_another_confidence_are_those_of_an_audit_with_it(interval: str, weight: str | None) -> None:
    analysed = analyse(description(interval, 0.95, weight))
    for confidence in (0.8, 0.99):
        again = analyse(description(interval, confidence, weight))
        expected = [*(value.record for value in again.values), *(gap.record for gap in again.gaps)]
        assert at(analysed, confidence) == expected


def test_draws_are_shared_between_confidences(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    real = bootstrap.resample

    def counted(*args: Any, **options: Any) -> Any:
        drawn.append(options["resamples"])
        return real(*args, **options)

    monkeypatch.setattr(resampled, "resample", counted)
    analysed = analyse(description("basic", 0.95))
    first = drawn.count(200)
    at(analysed, 0.9)
    at(analysed, 0.99)
    assert (first, drawn.count(200)) == (1, 1)


def test_an_analysis_is_not_changed_by_being_run() -> None:
    analysis = description("bca", 0.95)
    first, second = analyse(analysis), analyse(replace(analysis, draws=resampled.DrawCache()))
    assert [estimate.record for estimate in first.gaps] == [estimate.record for estimate in second.gaps]


def test_the_audit_reads_verdicts_from_its_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    real = analyse

    def counted(analysis: Analysis) -> Analysed:
        runs.append(analysis.grouping)
        return real(analysis)

    monkeypatch.setattr(audit, "analyse", counted)
    data = {"g": ["a", "b"] * 100, "d": [1, 1, 0, 1, 0] * 40, "y": [1, 0, 0, 1] * 50}
    table = eh.Table(data, outcome="y", groups="g", predictions={"m": "d"})
    limits = [{"metric": name, "max": 0.05} for name in ("selection_rate", "tpr", "f1")]
    eh.parity(table, thresholds=limits)
    assert runs == ["g"]
