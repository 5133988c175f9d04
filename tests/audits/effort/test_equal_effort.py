"""Groups at equal effort: by hand, without effort's part in the gap, and independent of names and order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.effort import audit

STEPS = ["x", "y", "z"]


def people(score: Any, group: Any, effort: Any) -> dict[str, Any]:
    """Return people of given scores, groups and efforts between 0 and 1."""
    rise = np.log(np.asarray(effort) / (1 - np.asarray(effort)))
    return {
        "m": np.asarray(score, dtype=float),
        "g": group,
        "x": np.zeros(rise.size),
        "y": np.zeros(rise.size),
        "z": rise,
    }


def audited(data: Any, **options: Any) -> Any:
    roles = {"groups": "g", "predictions": {"m": {"column": "m", "kind": "score"}}}
    return eh.effort(eh.Table(data, **{**roles, **options.pop("roles", {})}), **{"trajectory": STEPS, **options})


def gap_of(result: Any) -> Any:
    return result.get("gaps", metric="equal_effort")


def finding_of(result: Any) -> Any:
    return next(finding for finding in result.findings if finding.metric == "equal_effort")


def confounded(n: int = 600, shift: float = 0.0, seed: int = 0) -> dict[str, Any]:
    """Return people of whom group a works harder, and whose scores rest on effort and, with a shift, on the group."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n)
    effort = np.clip(rng.beta(4, 4, n) + np.where(group == "a", 0.15, 0.0), 0.05, 0.94)
    score = 0.7 * np.floor(effort * 10) / 10 + 0.2 * rng.random(n) + np.where(group == "a", shift, 0.0)
    return people(score, group, effort)


def test_the_ratio_is_that_of_means_standardised_by_overlap() -> None:
    data = confounded(300, 0.05)
    found = gap_of(audited(data))
    number = np.floor(np.round(1 / (1 + np.exp(-data["z"])) * 10, 9))
    means, weights, people_compared = [], [], 0
    for one in np.unique(number):
        sides = [data["m"][(number == one) & (data["g"] == group)] for group in "ab"]
        if all(side.size for side in sides):
            means.append([side.mean() for side in sides])
            weights.append(np.prod([float(side.size) for side in sides]) / sum(side.size for side in sides))
            people_compared += sum(side.size for side in sides)
    a, b = np.average(np.array(means), axis=0, weights=weights)
    assert (found.group, found.reference) == ("b", "a")
    assert found.value == pytest.approx(b / a)
    assert (found.n, found.apart) == (people_compared, 300 - people_compared)
    assert 0 < found.apart < 300


def test_people_with_nobody_to_compare_are_counted_apart() -> None:
    data = people(np.linspace(0, 1, 70), np.repeat(["a", "b", "a"], [20, 20, 30]), np.repeat([0.2, 0.8], [40, 30]))
    found = audited(data)
    assert (gap_of(found).n, gap_of(found).apart) == (40, 30)
    finding = finding_of(found)
    assert finding.n == 40
    assert finding.detail is not None
    few, apart = finding.detail.args["parts"][-1].args["parts"]
    assert (few.id, few.args["n"], few.args["group"]) == ("effort.of_smaller_group", 20, "a")
    assert (apart.id, apart.args["n"]) == ("effort.apart", 30)


def test_small_counts_do_not_follow_from_who_is_apart() -> None:
    """The few people apart would follow from the people of both groups and those compared."""
    data = people(np.linspace(0, 1, 203), np.repeat(["a", "b", "a"], [100, 100, 3]), np.repeat([0.2, 0.8], [200, 3]))
    table = eh.Table(data, groups="g", predictions={"m": {"column": "m", "kind": "score"}})
    run = eh.audit(table, effort={"trajectory": STEPS}, report={"suppress_below": 10})
    gap = gap_of(run.results["effort"])
    assert gap is None or (gap.n, gap.apart) == (203, None)
    assert not any("effort.apart" in repr(finding) for finding in run.findings)


def test_groups_that_differ_in_effort_alone_do_not_differ() -> None:
    result = audited(confounded(2_000))
    assert result.get("gaps", metric="eagf", bin_low=None).p_value < 1e-6
    assert finding_of(result).sentence_id == "least_equal_unclear"
    assert gap_of(result).high == 1.0


def test_the_headline_agrees_with_clear_bins() -> None:
    """One bin of few people has the lowest parity; the others are each clear, and so is the whole."""
    rng = np.random.default_rng(1)
    sizes = [400] * 4 + [12]
    effort = np.repeat([0.25, 0.35, 0.45, 0.55, 0.65], [2 * n for n in sizes])
    group = np.concatenate([np.repeat(["a", "b"], n) for n in sizes])
    score = np.where(group == "a", 0.5, 0.42) + 0.2 * (rng.random(effort.size) - 0.5)
    score[-12:] = 0.3 + 0.5 * (rng.random(12) - 0.5)
    result = audited(people(score, group, effort), thresholds=[{"metric": "eagf", "min": 0.5}])
    bins = [gap for gap in result.rows("gaps", metric="eagf") if gap.bin_low is not None]
    assert min(bins, key=lambda gap: gap.value).bin_low == 0.6
    assert finding_of(result).sentence_id == "least_equal"
    assert finding_of(result).p_adjusted <= 0.05
    of_bins = next(finding for finding in result.findings if finding.metric == "eagf")
    assert of_bins.p_value == pytest.approx(5 * min(gap.p_value for gap in bins))


def test_p_and_limits_agree_for_several_groups() -> None:
    for seed in range(6):
        data = confounded(240, 0.02, seed)
        data["g"] = np.random.default_rng(seed).choice(["a", "b", "c", "d"], 240)
        gap = gap_of(audited(data, min_count=20))
        assert (gap.p_value < 0.05) == (gap.high < 1.0)
        assert gap.low <= gap.value <= gap.high


def test_names_and_order_change_nothing() -> None:
    data, order = confounded(200, 0.03), np.random.default_rng(2).permutation(200)
    here = gap_of(audited(data))
    renamed = {name: np.asarray(column)[order] for name, column in data.items()}
    renamed["g"] = np.where(renamed["g"] == "a", "z", "y")
    renamed["k"] = renamed.pop("m")
    there = gap_of(audited(renamed, roles={"predictions": {"k": {"column": "k", "kind": "score"}}}, seed=7))
    assert (there.group, there.reference) == ("y", "z")
    assert there.p_value == here.p_value
    assert (there.value, there.low, there.high) == pytest.approx((here.value, here.low, here.high), rel=1e-9)


def test_a_data_engine_gives_nearly_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    data = confounded(3_000, 0.03)
    here = gap_of(audited(data, scale=10))
    monkeypatch.setattr(audit, "MOST_IN_MEMORY", 0)
    there = gap_of(audited(data, scale=10))
    assert there.value == pytest.approx(here.value, abs=1e-4)
    assert (there.low, there.high) == pytest.approx((here.low, here.high), abs=2e-3)


def test_without_shared_effort_nothing_is_compared() -> None:
    data = people(np.linspace(0, 1, 40), np.repeat(["a", "b"], 20), np.repeat([0.2, 0.8], 20))
    finding = finding_of(audited(data))
    assert (finding.sentence_id, finding.value) == ("no_bin", None)
