"""Limits on the ratio of selection rates are judged on the favourable side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.stats.adverse_impact import adverse_impact

RNG = np.random.default_rng(0)
GROUP = RNG.choice(["A", "B"], 2_000)
APPROVED = (RNG.random(2_000) < np.where(GROUP == "A", 0.8, 0.6)).astype(int)
LIMIT: dict[str, Any] = {"metric": "selection_rate", "min": 0.8}


def audited(*limits: dict[str, Any], metrics: Any = "selection_rate", **models: str | None) -> eh.ParityResult:
    columns = {name: APPROVED if name == "approve" else 1 - APPROVED for name in models}
    predictions = {name: {"column": name, "kind": "decision", "favourable": side} for name, side in models.items()}
    table = eh.Table({"g": GROUP, **columns}, groups="g", predictions=predictions)
    return eh.parity(table, metrics=metrics, thresholds=limits)


def judged(result: eh.ParityResult) -> list[tuple[Any, ...]]:
    found = (f for f in result.findings if f.threshold is not None)
    return [(f.model, f.metric, f.value, f.low, f.high, f.verdict) for f in found]


@pytest.mark.parametrize("metrics", ["selection_rate", None])
def test_accepting_and_rejecting_the_same_people_is_judged_alike(metrics: Any) -> None:
    (accept,) = judged(audited(LIMIT, metrics=metrics, approve="selected"))
    result = audited(LIMIT, metrics=metrics, reject="not_selected")
    (reject,) = judged(result)
    assert reject[:2] == ("reject", "not_selected_rate")
    assert reject[2:5] == pytest.approx(accept[2:5])
    assert reject[5] == accept[5]
    assert result.notes[0].id == "parity.favourable_side"
    assert eh.ParityResult.from_dict(result.to_dict()).to_dict() == result.to_dict()


def test_each_model_is_judged_on_its_own_side() -> None:
    limit = {"metric": "demographic_parity_ratio", "min": 0.8}
    (accept, reject) = judged(audited(limit, approve="selected", reject="not_selected"))
    assert (accept[:2], reject[:2]) == (("approve", "selection_rate"), ("reject", "not_selected_rate"))
    assert accept[2] == pytest.approx(reject[2])


def test_a_ratio_that_was_asked_for_is_that_of_each_models_favourable_side() -> None:
    result = audited(metrics="disparate_impact", approve="selected", reject="not_selected")
    accept, reject = sorted(result.findings, key=lambda finding: str(finding.model))
    assert [(f.model, f.metric, f.kind) for f in (accept, reject)] == [
        ("approve", "selection_rate", "ratio"),
        ("reject", "not_selected_rate", "ratio"),
    ]
    assert accept.value == pytest.approx(reject.value)


@pytest.mark.parametrize("side", ["selected", None])
def test_other_limits_and_models_of_no_side_stay_as_they_are(side: str | None) -> None:
    (found,) = judged(audited(LIMIT, reject=side))
    assert found[1] == "selection_rate"
    (found,) = judged(audited({"metric": "selection_rate", "max": 0.1}, reject="not_selected"))
    assert found[1] == "selection_rate"


def test_the_rate_not_selected_is_what_the_selection_rate_leaves() -> None:
    result = audited(metrics=["selection_rate", "not_selected_rate"], approve="selected")
    for value in result.rows("values", metric="selection_rate"):
        other = result.get("values", metric="not_selected_rate", group=value.group)
        assert None not in (value.value, value.low, value.high)
        assert other.value == pytest.approx(1 - (value.value or 0))
        assert other.n == value.n
        limits = [1 - (value.high or 0), 1 - (value.low or 0)]
        assert [other.low, other.high] == pytest.approx(limits)


def rates_of(table: eh.Table, **settings: Any) -> Any:
    return eh.parity(table, **({"metrics": "disparate_impact"} | settings)).plot("values").panels[0]


def test_a_ratio_of_selection_rates_is_drawn_as_bars_with_the_people_short_of_it() -> None:
    n, selected = (100, 60, 41, 20), (50, 23, 9, 8)
    race = [name for name, size in zip("ABCD", n, strict=True) for _ in range(size)]
    hired = [int(at < chosen) for size, chosen in zip(n, selected, strict=True) for at in range(size)]
    table = eh.Table({"race": race, "hired": hired}, groups="race", predictions="hired")
    limits: Any = [{"metric": "selection_rate", "kind": "ratio", "min": 0.8}]
    panel = rates_of(table, metrics="selection_rate", thresholds=limits)
    assert panel.bars
    assert all(row["limits"] == (pytest.approx(0.4),) for row in panel.rows)
    known = dict(zip("ABCD", adverse_impact(n, selected).to_four_fifths.tolist(), strict=True))
    short = {row["label"]: row["short"] for row in panel.rows}
    assert short == {"A": None, **{group: known[group] for group in "BCD"}}
    assert "80% of the rate of A" in panel.black
    assert not rates_of(table, metrics="selection_rate").bars, "no ratio is asked for"


def test_bars_of_weighted_rates_count_no_people_and_bars_are_of_the_favourable_side() -> None:
    rng = np.random.default_rng(4)
    data = {"race": rng.choice(["A", "B"], 300), "hired": rng.integers(0, 2, 300), "weight": rng.uniform(0.5, 2, 300)}
    weighted = eh.Table(data, groups="race", predictions="hired", weight="weight")
    assert {row["short"] for row in rates_of(weighted).rows} == {None}
    adverse = eh.Table(data, groups="race", predictions={"m": {"column": "hired", "favourable": "not_selected"}})
    assert not rates_of(adverse).bars, "four fifths of a rate of rejections say nothing"
