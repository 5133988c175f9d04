"""What is said of a result holds up: by chance, by different sizes, by missing candidates or by the invalid test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.improvability import ImprovabilityResult
from evenhand.audits.improvability.findings import SelectedShares, make_notes, plausible_reason
from evenhand.audits.improvability.result import JUDGED
from evenhand.core.display import DisplayTable
from evenhand.errors import ConfigError, DataError, EvenhandError
from evenhand.messages import Message
from evenhand.messages.formats import show
from evenhand.stats.improvability import Utility

LIMIT = {"metric": "improvable_fairness", "max": 0.0}


def right_or_wrong(n: int = 3_000, **more: Any) -> pd.DataFrame:
    """Return decisions that are right for two groups with different chances, and a candidate that is fair."""
    rng = np.random.default_rng(0)
    group, y = np.arange(n) % 2, rng.integers(0, 2, n)
    old = np.where(rng.random(n) < 0.55 + 0.3 * group, y, 1 - y)
    new = np.where(rng.random(n) < 0.93, y, 1 - y)
    return pd.DataFrame({"g": np.where(group, "b", "a"), "y": y, "old": old, "new": new, **more})


def audited(data: pd.DataFrame, **options: Any) -> ImprovabilityResult:
    settings: dict[str, Any] = {
        "status_quo": "old",
        "outcome": "y",
        "candidates": "new",
        "test": {"splits": 2},
        "resamples": 300,
        **options,
    }
    return eh.improvability(eh.Table(data, groups="g"), **settings)


def no_better(seed: int, candidates: int = 20, n: int = 1_200) -> pd.DataFrame:
    """Return candidates that are fairer but no more accurate for group a: each null is true, at its boundary."""
    rng = np.random.default_rng(seed)
    group, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    old = np.where(rng.random(n) < np.where(group == 0, 0.8, 0.4), y, 1 - y)
    data = {"g": np.array(["a", "b"])[group], "y": y, "old": old}
    data |= {f"c{j}": np.where(rng.random(n) < 0.8, y, 1 - y) for j in range(candidates)}
    return pd.DataFrame(data)


def test_the_gap_of_the_candidate_comes_first() -> None:
    result = audited(right_or_wrong())
    gaps = []
    for name in ("new", "status_quo"):
        own = [r.value for r in result.values if r.model == name and r.group in ("a", "b")]
        gaps.append(max(v for v in own if v is not None) - min(v for v in own if v is not None))
    assert gaps[0] < gaps[1]
    new, old = (show(gap, "points") for gap in gaps)
    assert f"The gap in right decisions is {new} points, against {old} points under the status quo" in str(
        result.findings[0].detail
    )


@pytest.fixture(scope="module")
def many() -> ImprovabilityResult:
    """Twenty candidates of which none is better; the seed is one where a test alone rejects by chance."""
    data = no_better(6)
    return audited(data, candidates=[c for c in data if c.startswith("c")], test={"splits": 1}, thresholds=[LIMIT])


def test_among_many_candidates_a_rejection_by_chance_is_no_finding(many: ImprovabilityResult) -> None:
    assert many.rejections
    assert not many.established
    own = [f for f in many.findings if f.metric == "improvable_fairness"]
    assert all(f.value is None and f.verdict == "insufficient_evidence" for f in own)
    assert all(f.headline.text.startswith("It is not shown that ") for f in own)
    alone = next(f for f in own if f.model == many.rejections[0].model)
    assert "adjusted for 20 candidates p = " in str(alone.detail)
    assert "Its own test rejects, but 20 candidates were tried." in str(alone.detail)


def test_the_largest_margin_is_read_off_adjusted_p_values() -> None:
    rng = np.random.default_rng(3)
    data = right_or_wrong(2_400)
    data["noise"] = np.where(rng.random(2_400) < 0.6, data.y, 1 - data.y)
    data["good"] = np.where(rng.random(2_400) < 0.9, data.y, 1 - data.y)
    names = ["new", "good", "noise"]
    together = audited(data, candidates=names)
    alone = {name: audited(data, candidates=name) for name in names}

    def fairness(result: ImprovabilityResult, name: str) -> float:
        value = result.get("margins", model=name, test="signed", metric="improvable_fairness").value
        return -1.0 if value is None else float(value)

    margins = together.evidence.inputs.margins.fairness
    trials = [together.evidence.trials[name] for name in names]
    p = np.array(
        [np.minimum(1, 2 * np.min([trial.p("signed", "fairness") for trial in each], axis=0)) for each in trials]
    )
    for row, name in zip(3 * p, names, strict=True):
        run = np.flatnonzero(row > 0.10)[0]
        assert fairness(together, name) == (pytest.approx(margins[run - 1]) if run else -1.0)
        assert fairness(together, name) <= fairness(alone[name], name)
    assert fairness(together, "new") < fairness(alone["new"], "new")


def test_nothing_is_judged_by_the_published_test() -> None:
    data = right_or_wrong()
    signed, published = (
        audited(data, test={"splits": 2, "fairness": test}, thresholds=[LIMIT]) for test in ("signed", "published")
    )
    assert [(f.text, f.value, f.verdict) for f in signed.findings] == [
        (f.text, f.value, f.verdict) for f in published.findings
    ]
    assert signed.established == published.established
    other = {(d.test, d.value) for d in published.rows("margins", metric="improvable_fairness")}
    assert len(other) == 2  # the two tests differ here, so the equality above says something
    assert sum(note.id == "improvability.published" for note in published.notes)
    assert not any("published" in note.text for note in signed.notes)


@pytest.mark.parametrize(
    ("decision", "utility", "whom"),
    [(0, "false_positive_rate", "none"), (1, "false_negative_rate", "all")],
)
def test_a_candidate_that_does_not_choose_is_refused(decision: int, utility: str, whom: str) -> None:
    data = right_or_wrong(same=decision)
    with pytest.raises(DataError, match=rf"in split 1, the candidate 'same' selects {whom} of the 1,000 test rows"):
        audited(data, candidates="same", utility=utility)


def test_different_shares_selected_are_told() -> None:
    n = 4_000
    rng = np.random.default_rng(1)
    score = rng.normal(size=n)
    ill = score + 5 + (np.arange(n) % 2) * (score < 1) + rng.normal(size=n) * 0.5
    data = right_or_wrong(n).assign(score=score, ill=ill, old=(score > 0).astype(int))
    options: dict[str, Any] = {"outcome": "ill", "utility": "calibration", "candidates": "score"}
    limit = {"metric": "improvable_accuracy", "max": 0.0}
    result = audited(data, capacity=0.08, thresholds=[limit], **options)
    assert {f.metric for f in result.findings} == {"improvable_fairness", "improvable_accuracy"}
    assert all("it selects 8.0% of the rows instead of " in str(f.detail).lower() for f in result.findings)
    assert result.notes[0].text.startswith("score selects 8.0% of the rows, the status quo ")
    same = audited(data, capacity=0.5, **options)
    assert "it selects" not in same.findings[0].text
    assert not any("selects" in note.text for note in same.notes)


def test_shares_are_far_apart_beyond_a_tenth_of_the_larger() -> None:
    assert SelectedShares(0.08, 0.5).far_apart
    assert SelectedShares(0.5, 0.44).far_apart
    assert not SelectedShares(0.5, 0.46).far_apart
    assert not SelectedShares(0.46, 0.5).far_apart


def test_a_score_without_a_cut_is_refused() -> None:
    data = right_or_wrong(percent=np.linspace(0, 100, 3_000))
    with pytest.raises(ConfigError, match="the candidate 'percent' holds scores, so nothing says who is selected"):
        audited(data, candidates="percent")
    with pytest.raises(ConfigError, match="the candidate 'best' holds scores, so nothing says who is selected"):
        audited(data, candidates={"best": {"family": ["percent", "new"]}}, features=["percent"])
    assert audited(data, candidates={"percent": {"column": "percent", "threshold": 50}}).decisions


@pytest.mark.parametrize(
    ("options", "whose"),
    [
        ({"candidates": {"a_b, column c": {"column": "y"}}}, "candidate 'a_b, column c'"),
        ({"status_quo": "y"}, "status quo"),
    ],
)
def test_the_outcome_decides_nothing(options: dict[str, Any], whose: str) -> None:
    with pytest.raises(ConfigError, match=f"^{whose} is 'y', which is the outcome: nobody knows it when deciding"):
        audited(right_or_wrong(), **options)


def test_every_threshold_is_judged() -> None:
    limits = [
        {"metric": metric, "max": limit, **where}
        for metric in ("improvable_fairness", "improvable_accuracy")
        for limit, where in ((0.95, {}), (0.0, {"model": "new"}))
    ]
    result = audited(right_or_wrong(), thresholds=limits)
    found = [(f.metric, f.threshold, f.verdict) for f in result.findings]
    assert len(found) == len(set(found)) == 4
    assert [verdict for *_, verdict in found] == ["insufficient_evidence", "does_not_meet"] * 2
    assert [finding.judgement for finding in result.findings] == [
        "fairer alternative shown, limit undecided",
        "fairer alternative shown",
        "more accurate alternative shown, limit undecided",
        "more accurate alternative shown",
    ]


def test_a_search_without_a_solution_leaves_the_others(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    data = right_or_wrong().assign(x=rng.normal(size=3_000), z=rng.normal(size=3_000))
    hopeless = {"iota": 5, "directions": 50}
    result = audited(data, candidates={"sweep": hopeless, "new": "new"}, features=["x", "z"])
    about = {f.model: f for f in result.findings if f.metric == "improvable_fairness"}
    assert about["new"].value is not None
    assert about["sweep"].value is None
    assert "In no split was there a candidate of sweep to test" in str(about["sweep"].reason)
    assert "the gap in" not in about["sweep"].text.lower()
    assert any(note.text.startswith("sweep: in 2 of 2 splits there was no candidate to test") for note in result.notes)
    assert all(r.value is not None for r in result.values if r.model == "status_quo")
    assert {r.status.text for r in result.values if r.model == "sweep"} == {"undefined: no split has a candidate"}
    assert next(r.reason for r in result.reasons if r.model == "sweep") == "unclear"
    assert result.section().parts
    assert result.export(tmp_path)
    with pytest.raises(EvenhandError, match="in no split was there a candidate to test"):
        audited(data, candidates={"sweep": hopeless}, features=["x", "z"])


def test_too_few_rows_only_where_some_number_would_do() -> None:
    assert plausible_reason(3, 5, 0.9, 0.8, 10_000) == "too_few_rows"
    assert plausible_reason(3, 5, 0.9, 0.8, None) == "unclear"


def test_every_gap_is_stated() -> None:
    result = audited(right_or_wrong(), fairness_utility=["classification", "false_negative_rate"])
    detail = str(result.findings[0].detail)
    assert "The gap in right decisions is " in detail
    assert "the gap in false negative rate is " in detail


def test_two_utilities_of_one_name_are_refused() -> None:
    right = Utility(name="mine", u=lambda y, d: 1.0 * (y == d), w=lambda y, d: np.ones_like(d))
    chosen = Utility(name="mine", u=lambda y, d: 1.0 * d, w=lambda y, d: np.ones_like(d))
    with pytest.raises(ConfigError, match="two different utilities are called 'mine'"):
        audited(right_or_wrong(), utility=right, fairness_utility=chosen)
    assert audited(right_or_wrong(), utility=right, fairness_utility=right).decisions


def test_a_group_with_our_name_for_everybody_is_refused() -> None:
    data = right_or_wrong().replace({"g": {"a": "(overall)"}})
    with pytest.raises(DataError, match=r"'g' has a group called '\(overall\)', our name for everybody: rename it"):
        audited(data)


def test_one_more_remark_is_counted_in_the_singular() -> None:
    result = audited(right_or_wrong())
    first, second = result.evidence.trials["new"]
    for extra, words in ((1, "1 more remark of"), (2, "2 more remarks of")):
        trials = {"new": (replace(first, remarks=(Message("few"),) * (5 + extra)), second)}
        assert any(note.text.startswith(words) for note in make_notes(result.evidence.inputs, trials))


def test_the_report_puts_the_signed_test_first() -> None:
    """Asked for the published test, a reader sees its tables open, but beside those that conclusions rest on."""
    for test in ("signed", "published"):
        parts = audited(right_or_wrong(), test={"splits": 2, "fairness": test}).section().parts
        tables = [part for part in parts if isinstance(part, DisplayTable)]
        other = next(one for one in tables if one.caption == "Largest margins of the published test, for comparison")
        assert other.folded == (test == "signed")
        assert any(one.caption.startswith("Largest margins: the end of the unbroken run") for one in tables)


def test_the_guide_says_which_test_decides() -> None:
    guide = (Path(__file__).parents[3] / "docs/guide/improvability.md").read_text(encoding="utf-8")
    assert f"always rest on the {JUDGED} test" in guide


def test_accuracy_has_a_panel_where_it_has_its_own_measure_and_all_panels_have_the_same_series() -> None:
    one: list[Any] = list(audited(right_or_wrong()).plot("values").panels)
    assert [panel.title for panel in one] == ["Right decisions"]
    result = audited(right_or_wrong(), utility="classification", fairness_utility="false_negative_rate")
    fairness, accuracy = two = list(result.plot("values").panels)
    assert [panel.title for panel in two] == ["False negative rate", "Right decisions"]
    everything: list[Any] = [fairness, accuracy, *result.plot("frontier").panels]
    assert {panel.series for panel in everything} == {("status quo", "new")}
    for panel in everything[:2]:
        assert panel.diagonal
        assert all(title.split(" (n = ")[0] in result.furthest_apart for title in (panel.x, panel.y))
        assert {row["series"] for row in panel.rows} == {"status quo", "new"}


@pytest.mark.parametrize(
    ("favourable", "sentence"),
    [
        (None, "served_false_negative_rate"),
        ("selected", "served_false_negative_rate_selected"),
        ("not_selected", "served_false_negative_rate_not_selected"),
    ],
)
@pytest.mark.parametrize("of_table", [True, False])
def test_whom_the_status_quo_serves_worse_follows_from_the_good_decision(
    favourable: str | None, sentence: str, of_table: bool
) -> None:
    """It is said of the table's model of the same name, or of the status quo itself."""
    predictions: Any = {"old": {"column": "old", "favourable": favourable}} if of_table else None
    quo = {"column": "old"} if of_table or favourable is None else {"column": "old", "favourable": favourable}
    settings: Any = {"status_quo": quo, "outcome": "y", "utility": "false_negative_rate", "resamples": 100}
    table = eh.Table(right_or_wrong(), groups="g", predictions=predictions)
    result = eh.improvability(table, candidates="new", **settings)
    (served,) = (finding.arguments["served"] for finding in result.findings if "served" in finding.arguments)
    assert isinstance(served, Message)
    assert served.id == f"improvability.{sentence}"
    assert dict(served.args) == {"higher": "a", "lower": "b", "outcome": "y"}
