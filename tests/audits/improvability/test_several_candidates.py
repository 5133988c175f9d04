"""Several candidates: claims that hold together, and one decision wherever a result or a report states it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.improvability import ImprovabilityResult, ImprovabilitySpec
from evenhand.audits.improvability.charts import curve_panels
from evenhand.audits.improvability.estimate import adjusted_rejections, established_margins
from evenhand.core.display import DisplayTable, Figure, Number
from evenhand.errors import ConfigError
from evenhand.messages.formats import show
from evenhand.stats.improvability import combine_splits
from evenhand.stats.multiplicity import adjusted_p

NAMES = ["good", "fair", "noise"]


def decided(n: int = 2_400) -> eh.Table:
    """Return a clearly better candidate, one that is better by little, and one that is not."""
    rng = np.random.default_rng(3)
    group, y = np.arange(n) % 2, rng.integers(0, 2, n)
    chances = {"old": 0.6 + 0.2 * group, "good": 0.9, "fair": np.where(group, 0.82, 0.74), "noise": 0.6}
    data = {name: np.where(rng.random(n) < np.asarray(chance), y, 1 - y) for name, chance in chances.items()}
    frame = pd.DataFrame({"who": np.arange(n), "g": np.where(group, "b", "a"), "y": y, **data})
    return eh.Table(frame, id="who", outcome="y", groups="g")


def audited(*, candidates: Any = NAMES, resamples: int = 400, **test: Any) -> ImprovabilityResult:
    options = {"splits": 3, "margins": [0, 0.2], **test}
    return eh.improvability(decided(), status_quo="old", candidates=candidates, resamples=resamples, test=options)


@pytest.fixture(scope="module", params=["median", "exchangeable", "one split", "published"])
def result(request: pytest.FixtureRequest) -> ImprovabilityResult:
    more: dict[str, dict[str, Any]] = {
        "median": {},
        "exchangeable": {"combine": "exchangeable"},
        "one split": {"splits": 1},
        "published": {"fairness": "published"},
    }
    return audited(**more[request.param])


# The largest margins of all candidates hold together -------------------------------------------------------------


def wrong_bounds(rejected: Any, first_null: list[int]) -> float:
    """Return the share of samples in which the run of rejections of any candidate reaches a margin where it is null."""
    run = np.logical_and.accumulate(rejected, axis=2)
    return float(np.any([run[:, c, at] for c, at in enumerate(first_null)], axis=0).mean())


def test_the_margins_of_all_candidates_hold_together() -> None:
    """Three independent candidates, each improvable up to another margin: Bonferroni bounds all, Holm does not.

    T ~ N(mean, 1) and p(delta) = 1 - Phi(T - 20 delta): a claim of more than mean / 20 is false.
    """
    from scipy.special import ndtr

    rng, samples, alpha = np.random.default_rng(0), 20_000, 0.10
    margins, true = np.arange(0, 1, 0.05), np.array([0.2, 0.5, 0.8])
    t = 20 * true + rng.standard_normal((samples, 3))
    p = np.asarray(1 - ndtr(t[..., np.newaxis] - 20 * margins))
    first_null = [int(np.flatnonzero(np.isclose(margins, margin))[0]) for margin in true]
    spec = ImprovabilitySpec(status_quo="old", candidates=NAMES, test={"alpha": alpha, "combine": "median"})
    combined = [combine_splits(p[np.newaxis, :, c], alpha) for c in range(3)]
    ours = np.stack([adjusted_rejections(spec, each) for each in combined], axis=1)
    holm = np.apply_along_axis(adjusted_p, 1, p[:2_000]) < alpha
    error = 3 * np.sqrt(alpha * (1 - alpha) / samples)
    assert alpha - 0.01 < wrong_bounds(ours, first_null) < alpha + error
    assert wrong_bounds(holm, first_null) > 1.4 * alpha


def test_a_margin_is_established_only_with_all_smaller_ones() -> None:
    spec = ImprovabilitySpec(status_quo="old", candidates=NAMES, test={"alpha": 0.1, "combine": "median"})
    own = combine_splits(np.array([[0.01, 0.02, 0.05, 0.01]]), 0.1)
    assert own.rejected.all()
    rejected = adjusted_rejections(spec, own)
    assert established_margins(rejected, "signed") == [True, True, False, False]
    assert established_margins(rejected, "published") == [None] * 4


# One decision everywhere -----------------------------------------------------------------------------------------


def test_decisions_margins_and_curves_agree(result: ImprovabilityResult) -> None:
    curves = {(r.model, r.test, r.metric, r.group, r.margin): r for r in result.curves}
    largest = {(d.model, d.test, d.metric, d.group): d for d in result.margins}
    seen = set()
    for d in result.decisions:
        assert d.p_value is not None
        assert d.p_adjusted == pytest.approx(min(1.0, 3 * d.p_value))
        point = curves[d.model, d.test, d.metric, d.group, d.margin]
        assert (point.p_adjusted, point.established, point.rejected) == (d.p_adjusted, d.established, d.rejected)
        bound = largest[d.model, d.test, d.metric, d.group]
        if d.test == "published":
            assert d.established is None
            continue
        assert d.established == (bound.value is not None and d.margin <= bound.value)
        assert not d.established or d.rejected
        seen.add((d.established, d.rejected))
    assert {(True, True), (False, False)} <= seen
    assert {d.model for d in result.established} == {
        d.model for d in result.decisions if d.established and d.margin == 0
    }


def test_the_report_states_the_same_decisions(result: ImprovabilityResult) -> None:
    parts = {part.caption: part for part in result.section().parts if isinstance(part, DisplayTable)}
    decisions = next(part for caption, part in parts.items() if caption.startswith("Decisions at level 0.1"))
    said = {row[:3]: str(row[3]) for row in decisions.texts()}
    assert ("alone only" in said.values()) == ("its own test rejects, but 3 candidates were tried" in decisions.caption)
    shown_names = [d.model for d in result.established]
    for name in NAMES:
        alone = name in [d.model for d in result.rejections]
        now = "shown" if name in shown_names else "alone only" if alone else "not shown"
        assert said[name, "Fairness and accuracy", "0.0%"] == now
        by_split = next(part for part in parts if part.startswith(f"{name}, adjusted p "))
        assert f": {'an' if name in shown_names else 'no'} improvement is shown. Old is" in by_split
        margins = [
            row[1]
            for row in next(p for c, p in parts.items() if c.startswith("Largest margins: ")).texts()
            if row[0] == name
        ]
        assert (margins == ["Anything"]) == (name not in shown_names)
        headline = next(f.headline.text for f in result.findings if f.model == name)
        assert headline.startswith(f"{name} is fairer" if name in shown_names else f"It is not shown that {name} is")
    answer = next(part for part in parts.values() if part.caption.startswith("The three-part")).texts()[2][1]
    assert answer.startswith(f"Yes, by these measures: {', '.join(shown_names)}.")
    reasons = {r.model for r in result.reasons}
    assert reasons == set(NAMES) - set(shown_names)


def test_p_values_by_split_are_those_that_decide(result: ImprovabilityResult) -> None:
    parts = [part for part in result.section().parts if isinstance(part, DisplayTable)]
    for name in NAMES:
        table = next(part for part in parts if part.caption.startswith(f"{name}, adjusted p "))
        told = {row[1] for row in table.rows}
        largest = [
            row[-1].value
            for row in table.rows
            if row[1] == "All of these, the largest p" and isinstance(row[-1], Number)
        ]
        own = [r.p_value for r in result.gaps if (r.model, r.component, r.test) == (name, "all", "signed")]
        assert largest == own
        assert ("Gap, by the published test" in told) == (result.spec.test.fairness == "published")
        decision = next(d for d in result.decisions if (d.model, d.test, d.margin) == (name, "signed", 0.0))
        assert show(decision.p_adjusted, "p") in table.caption


def test_the_curves_are_drawn_as_they_decide(result: ImprovabilityResult) -> None:
    panel = curve_panels(result)[0]
    assert (panel.title, panel.level) == ("Fairness", 0.1)
    curves = result.rows("curves", test="signed", metric="improvable_fairness")
    own = {(r.model, r.margin): r.p_adjusted for r in curves}
    assert {(row["series"], row["x"]): row["y"] for row in panel.rows} == own
    figure = next(p for p in result.section().parts if isinstance(p, Figure) and p.title == "P-values by margin")
    assert "The adjusted p where" in figure.caption


def test_an_export_states_the_same_decisions(result: ImprovabilityResult, tmp_path: Path) -> None:
    result.export(tmp_path)
    for name in NAMES:
        about = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
        assert about["decisions"]
        for written in about["decisions"]:
            where = {part: written[part] for part in ("metric", "group", "margin")}
            d = result.get("decisions", model=name, test="signed", **where)
            assert written == {part: getattr(d, part) for part in written}
        assert {written["established"] for written in about["decisions"] if written["margin"] == 0} == {
            name in [d.model for d in result.established]
        }
        p = [gap.p_value for gap in result.rows("gaps", model=name, component="all", test="signed")]
        assert about["p_value"] == sorted(p)[(len(p) - 1) // 2]


# Power -----------------------------------------------------------------------------------------------------------


def test_power_allows_for_all_candidates() -> None:
    three, alone = audited(), audited(candidates="fair")
    assert (alone.spec.counts, three.spec.counts) == (2, 6)
    for scenario in ("found", "planned"):
        few, many = (
            next(r.n for r in one.sample_sizes if (r.model, r.scenario) == ("fair", scenario)) for one in (alone, three)
        )
        assert few is not None
        assert many is not None
        assert 1.1 * few < many < 2 * few  # (z_.0167 + z_.2)^2 / (z_.05 + z_.2)^2 = 1.42 for one normal component
    same = audited(alpha=0.1 / 3, candidates="fair")
    pick = [(r.scenario, r.n) for r in same.sample_sizes]
    assert pick == [(r.scenario, r.n) for r in three.sample_sizes if r.model == "fair"]
    power = [(r.scenario, r.n, r.value) for r in same.power]
    assert power == [(r.scenario, r.n, r.value) for r in three.power if r.model == "fair"]
    captions = [part.caption for part in three.section().parts]
    assert "Rows in all for a power of 80.0%, adjusted for all 3 candidates" in captions
    assert any("that an improvement is shown, adjusted for all 3 candidates, by" in words for words in captions)
    assert "Rows in all for a power of 80.0%" in [part.caption for part in alone.section().parts]


def test_reasons_and_power_are_of_the_margin_asked_for() -> None:
    at_zero, far = audited(candidates="good"), audited(candidates="good", margins=0.97)
    assert not at_zero.reasons
    assert [r.model for r in far.reasons] == ["good"]
    here = [next(r.value for r in one.power if r.n == 2_400 and r.scenario == "found") for one in (at_zero, far)]
    assert here[0] is not None
    assert here[1] is not None
    assert here[0] > 0.9 > 0.2 > here[1]


# Too few resamples to reject -------------------------------------------------------------------------------------


def test_resamples_that_cannot_show_anything_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"no p-value can be below 0\.0099; with 3 splits and 1 candidate one below 0\.005"
    ):
        audited(resamples=100, alpha=0.01, candidates="good")
    with pytest.raises(ConfigError, match=r"3 candidates one below 0\.0083 is needed\. Set it to 120 or more"):
        audited(resamples=119, alpha=0.05)
    assert audited(resamples=120, alpha=0.05).established
