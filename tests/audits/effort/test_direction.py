"""Direction in the audit: a model that punishes effort is found, and what cannot be asked says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.effort import EffortResult, direction
from evenhand.audits.effort.charts import direction_panels
from evenhand.charts import to_svg
from evenhand.errors import ConfigError

YEARS = ["y1", "y2", "y3"]


def people(n: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    incomes = rng.gamma(3.0, 1.0, (n, 3))
    effort = 1 / (1 + np.exp(-(incomes[:, 2] - incomes[:, 1])))
    return {
        "id": [f"p{i}" for i in range(n)],
        "sex": ["f", "m"] * (n // 2),
        **dict(zip(YEARS, incomes.T.tolist(), strict=True)),
        "punishes": (0.2 + 0.5 * effort).tolist(),
        "rewards": (0.7 - 0.5 * effort).tolist(),
    }


def audit(favourable: Any = "not_selected", data: Any = None, **settings: Any) -> EffortResult:
    columns = people() if data is None else data
    table = eh.Table(
        columns,
        id="id",
        groups="sex",
        predictions={"punishes": "punishes", "rewards": "rewards"},
        favourable=favourable,
    )
    return eh.effort(table, trajectory=YEARS, scale=10, **settings)


@pytest.fixture(scope="module")
def result() -> EffortResult:
    return audit()


def test_a_model_that_punishes_effort_is_perfect_for_individuals_and_reversed_in_every_pair(
    result: EffortResult,
) -> None:
    assert result.get("values", metric="eaif", model="punishes").value == 1
    punished = result.get("values", metric="reversed_pairs", model="punishes")
    assert (punished.value, punished.high) == (1.0, 1.0)
    rewarded = result.get("values", metric="reversed_pairs", model="rewards")
    assert (rewarded.value, rewarded.low) == (0.0, 0.0)
    assert 0 < rewarded.high < 1
    assert (
        result.get("values", metric="reversal_shortfall", model="rewards").status.text
        == "undefined: no pair is reversed"
    )
    told = [finding for finding in result.findings if finding.metric == "reversed_pairs"]
    assert [finding.model for finding in told] == ["punishes", "rewards"]
    assert "100.0% of comparable pairs" in told[0].headline.text


def test_the_other_side_turns_the_shares_round() -> None:
    turned = audit("selected")
    assert turned.get("values", metric="reversed_pairs", model="punishes").value == 0
    assert turned.get("values", metric="concordant_pairs", model="punishes").value == 1


def test_undesirable_features_start_and_end_the_other_way(result: EffortResult) -> None:
    data = people()
    mirrored = {**data, **{year: (-np.array(data[year])).tolist() for year in YEARS}}
    other = audit(data=mirrored, desirable=False)
    assert [r.pairs for r in other.direction] == [r.pairs for r in result.direction]
    assert [r.value for r in other.direction] == [r.value for r in result.direction]


def test_without_a_favourable_side_it_is_undefined_and_a_note_says_why() -> None:
    silent = audit(None)
    record = silent.get("values", metric="reversed_pairs", model="rewards")
    assert (record.value, record.status) == (None, direction.NO_SIDE)
    assert any("`favourable`" in note.text for note in silent.notes)
    assert not [finding for finding in silent.findings if finding.metric == "reversed_pairs"]
    judged = audit(None, thresholds=[{"metric": "reversed_pairs", "max": 0.3, "model": "rewards"}])
    assert judged.findings[0].verdict == "insufficient_evidence"


def test_thresholds_judge_the_share_and_the_gap_between_groups() -> None:
    limits = [
        {"metric": "reversed_pairs", "max": 0.3, "of": "value"},
        {"metric": "reversed_pairs", "max": 0.3, "of": "gap"},
    ]
    judged = audit(thresholds=limits)
    verdicts = {(f.model, f.kind): f.verdict for f in judged.findings if f.metric == "reversed_pairs"}
    assert verdicts["punishes", None] == "does_not_meet"
    assert verdicts["rewards", None] == "meets"
    assert verdicts["punishes", "difference"] in ("meets", "insufficient_evidence")
    with pytest.raises(ConfigError, match="leave out its `weight`"):
        audit(thresholds=[{"metric": "reversed_pairs", "max": 0.3, "of": "value", "weight": 0.5}])
    with pytest.raises(ConfigError, match="leave out its `grouping`"):
        audit(thresholds=[{"metric": "reversed_pairs", "max": 0.3, "of": "value", "grouping": "sex"}])


def test_worst_pairs_name_people_only_where_they_may(result: EffortResult) -> None:
    assert len(result.reversals) == 10
    worst = result.reversals[0]
    assert worst.effort_ahead > worst.effort_behind
    assert worst.end_ahead >= worst.end_behind
    assert not result.to_dict()["reversals"]
    assert len(audit(individuals=True).to_dict()["reversals"]) == 10


def test_many_people_are_counted_in_a_sample_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direction, "MOST_COUNTED", 40)
    some = audit()
    assert some.get("direction", grouping=None, model="rewards").n == 40
    assert any("40 people drawn at random" in note.text for note in some.notes)
    assert not some.reversals


def test_the_chart_draws_models_beside_a_random_score(result: EffortResult) -> None:
    panels = direction_panels(result)
    assert {panel.ends() for panel in panels} == {panels[0].ends()}
    assert panels[0].ends()[0] == 0, "one kind of rate has one axis, from 0"
    assert len(panels) == 2
    assert "a random score" in to_svg(panels[0], "t", "d", name="x")
    assert "f over m" in to_svg(panels[1], "t", "d", name="x")
