"""What is told: findings in three layers, verdicts and their reasons. Each case once gave a false statement."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import ConfigError

from .conftest import Audit, Frame, everybody_sees_everything, make_answers


def test_findings_in_words(full: eh.DisagreementResult) -> None:
    gaps = {(g.grouping, g.metric): g for g in full.gaps if g.stakeholder is None}
    calibration = next(f for f in full.findings if (f.metric, f.grouping) == ("calibration", "race"))
    gap = gaps["race", "calibration"]
    assert calibration.headline.text.startswith("By race, critics agree with ")
    assert f"of the “{gap.label}” given to {gap.group}" in calibration.headline.text
    assert str(calibration.detail).startswith(f"A gap of {100 * (gap.value or 0):.1f} percentage points; 95% interval")
    assert "; n = 480." in str(calibration.detail)
    opportunity = next(
        f
        for f in full.findings
        if (f.metric, f.grouping) == ("equal_opportunity", "race") and "stakeholder" not in f.coordinates
    )
    gap = gaps["race", "equal_opportunity"]
    bounds = f"{100 * (gap.lower or 0):.1f} to {100 * (gap.upper or 0):.1f} percentage points"
    assert f"differs by {bounds}, and which" in opportunity.headline.text
    assert opportunity.sentence_id == "bounded_either_unclear"
    assert str(opportunity.detail).startswith(f"A gap of {bounds}; 95% interval")  # not the middle of the bounds
    assert f"The upper end is that for “{gap.label}” between {gap.group} and {gap.reference}." in str(
        opportunity.detail
    )
    told = {full.metrics[finding.metric].title for finding in full.findings}
    assert {title for title, _ in full.section().caveats} == told
    assert all(finding.audit == "disagreement" for finding in full.findings)


def test_misclassification_is_not_counted_twice(full: eh.DisagreementResult, audit: Audit) -> None:
    assert "overall_misclassification" not in {finding.metric for finding in full.findings}
    rows = [g for g in full.gaps if g.metric == "overall_misclassification"]
    assert {g.same_as for g in rows} == {"equal_opportunity"}
    two = audit(make_answers(labels=2))
    assert "predictive_equality" not in {finding.metric for finding in two.findings}
    asked = audit(make_answers(labels=2), thresholds=[{"metric": "overall_misclassification", "max": 0.5}])
    assert [f.metric for f in asked.findings].count("overall_misclassification") == 1


def test_verdicts(full: eh.DisagreementResult) -> None:
    judged = {(f.metric, f.grouping): f for f in full.findings if f.threshold and not f.coordinates.get("stakeholder")}
    race = judged["calibration", "race"]
    assert race.low is not None
    assert str(race.threshold) == "at most 2 points"
    assert race.low > 0.02
    assert race.verdict == "not_confirmed"  # it would not meet alone
    assert str(race.reason).startswith("Taken alone, this is beyond the limit; with the ")
    assert re.search(
        r" verdicts of disagreement together it is not yet certain\. About [\d,]+ more answers, of new critics on new "
        r"cases in the same proportion as the [\d,]+ compared here, give an 80% chance",
        str(race.reason),
    )
    assert {judged["accuracy_equality", g].verdict for g in ("race", "sex")} == {"meets"}
    patients = [f for f in full.findings if f.threshold and f.coordinates.get("stakeholder") == "Patient"]
    assert [f.metric for f in patients] == ["equal_opportunity", "equal_opportunity"]  # by race and by sex
    assert "as “Patient” critics see it" in patients[0].headline.text


def test_one_finding_for_the_kinds_of_critics(full: eh.DisagreementResult) -> None:
    found = {f.grouping: f for f in full.findings if f.metric == "disagreement"}
    assert set(found) == {"race", "sex"}
    if (found["race"].p_adjusted or 0.0) <= 0.05:
        assert found["race"].headline.text.startswith("By race, “Patient” critics disagree ")
    else:
        assert found["race"].headline.id == "disagreement.kinds_alike"


def test_two_kinds_that_differ_are_told(audit: Audit) -> None:
    result = audit(make_answers(critics=60, cases=60, each=30, seed=1), stakeholder="kind")
    finding = next(f for f in result.findings if f.metric == "disagreement")
    assert re.match(
        r"By race, “Patient” critics disagree \d+\.\d points more often than “Surgeon” critics about “\d” given to "
        r"Black, on the same cases. A gap of \d+\.\d percentage points; 95% interval \d+\.\d to \d+\.\d; "
        r"p .* adjusted.*; n = \d+\. Here n counts the cases that both have "
        r"seen\.",
        finding.text,
    )
    assert finding.value is not None
    assert finding.low is not None
    assert finding.high is not None
    assert finding.low < finding.value < finding.high


@pytest.mark.parametrize("extra", [{"kind": "ratio"}, {"against": "reference"}, {"audit": "parity"}])
def test_a_threshold_is_not_taken_for_something_else(audit: Audit, answers: Frame, extra: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(extra))):
        audit(answers, thresholds=[{"metric": "calibration", "max": 0.1, **extra}])


def test_thresholds_belong_to_the_audit(audit: Audit, answers: Frame) -> None:
    found = audit(answers, thresholds=[{"metric": "calibration", "max": 0.1, "kind": "difference"}])
    assert [threshold.audit for threshold in found.spec.thresholds] == ["disagreement"]


def test_bounds_that_do_not_hold_judge_nothing(audit: Audit, answers: Frame) -> None:
    limit = {"metric": "overall_misclassification", "max": 0.5}
    with pytest.raises(ConfigError, match="truth can lie outside"):
        audit(answers, bounds="published", thresholds=[limit])
    caveats = dict(audit(answers, bounds="published").section().caveats)
    assert "do not hold" in caveats["Overall misclassification"]
    assert not any("the bounds hold" in caveat for caveat in caveats.values())


def small_cells(seed: int, rare: int = 4) -> Frame:
    """Calibration differs by 30 points on a label that either group is seldom given."""
    rng, n = np.random.default_rng(seed), 400
    race = np.repeat(["a", "b"], n // 2)
    label = (np.arange(n) % (n // 2) < rare).astype(int)
    agree = np.where(label == 0, 0.95, np.where(race == "a", 0.95, 0.65))
    said = (rng.random(n) > agree).astype(int)
    return pd.DataFrame(
        {"critic": np.arange(n) % 40, "case": np.arange(n), "race": race, "label": label, "disagrees": said}
    )


def test_a_few_answers_that_all_agree_prove_little(audit: Audit) -> None:
    limit = {"metric": "calibration", "max": 0.2}
    verdicts = [audit(small_cells(seed), thresholds=[limit]).findings[0].verdict for seed in range(12)]
    assert "meets" not in verdicts


def test_a_gap_of_all_against_none_is_judged(audit: Audit) -> None:
    data = everybody_sees_everything()
    data["disagrees"] = (data.race == "b").astype(int)
    finding = audit(data, thresholds=[{"metric": "accuracy_equality", "max": 0.1}]).findings[0]
    assert finding.verdict == "does_not_meet"
    exact = 1 - 0.0125 ** (1 / 40)  # 40 critics of one mind, on either group; two differences
    assert finding.low == pytest.approx(1 - exact * 2**0.5, abs=1e-9)
    assert finding.high == 1.0


@pytest.mark.parametrize(("critics", "judged"), [(1, False), (4, False), (5, True)])
def test_few_critics_give_no_verdict(audit: Audit, critics: int, judged: bool) -> None:
    data = everybody_sees_everything(critics, 200)
    data["disagrees"] = np.random.default_rng(1).integers(0, 2, len(data))
    finding = audit(data, thresholds=[{"metric": "accuracy_equality", "max": 0.8}]).findings[0]
    assert (finding.verdict == "meets") == judged
    assert judged == (finding.reason is None)
    assert judged or "too few for a verdict" in str(finding.reason)


def test_few_critics_of_a_kind_give_no_verdict_and_are_named(audit: Audit) -> None:
    data = everybody_sees_everything(33, 200)
    data["disagrees"] = np.random.default_rng(1).integers(0, 2, len(data))
    data["kind"] = np.where(data.critic < 3, "surgeon", "patient")
    limit = {"metric": "accuracy_equality", "max": 0.8}
    found = audit(data, stakeholder="kind", thresholds=[limit, {**limit, "stakeholder": "surgeon"}])
    assert [finding.verdict for finding in found.findings[:2]] == ["meets", "insufficient_evidence"]
    assert any("“surgeon” (3)" in note.text for note in found.notes)


def test_perfect_separation_of_kinds_is_not_called_chance(audit: Audit) -> None:
    data = everybody_sees_everything()
    data["kind"] = np.where(data.critic % 2, "surgeon", "patient")
    data["disagrees"] = (np.random.default_rng(0).random(len(data)) < 0.3).astype(int)
    torn = (data.race == "b") & (data.label == 1)
    data.loc[torn, "disagrees"] = (data.kind[torn] == "surgeon").astype(int)
    text = audit(data, stakeholder="kind").findings[-1].text
    assert "no two kinds" not in text
    assert "Not tested: “patient” and “surgeon” differ by 100.0 points about “1” given to b." in text
    data["disagrees"] = (data.kind == "surgeon").astype(int)
    headline = audit(data, stakeholder="kind").findings[-1].headline
    assert headline.text == "By race, no difference between kinds of critics could be tested."


def test_kinds_that_share_no_cases_are_named(audit: Audit) -> None:
    data = everybody_sees_everything(60)
    data["kind"] = np.array(["A", "B", "C"])[data.critic // 20]
    data["disagrees"] = (np.random.default_rng(0).random(len(data)) < 0.3).astype(int)
    data = data[(data.kind == "C") == (data.case >= 40)]
    sentence = audit(data, stakeholder="kind").findings[-1].text
    assert "where kinds of critics could be compared" in sentence
    assert "“A” and “C” cannot be compared, “B” and “C” cannot be compared" in sentence


def test_what_is_left_open_is_not_decided_by_more_answers(audit: Audit, answers: Frame) -> None:
    limit = {"metric": "equal_opportunity", "max": 0.5}
    finding = audit(answers, thresholds=[limit]).findings[0]
    assert finding.verdict == "insufficient_evidence"
    assert str(finding.reason).startswith(
        "The interval reaches both sides of the limit of 50 points, and so does what is left open, "
    )
    assert str(finding.reason).endswith("more answers of this kind would not settle it.")


def test_a_threshold_for_a_kind_that_nobody_is_of_is_not_judged(audit: Audit, answers: Frame) -> None:
    limit = {"metric": "calibration", "max": 0.1, "stakeholder": "Nurse"}
    finding = audit(answers, stakeholder="kind", thresholds=[limit]).findings[0]
    assert finding.verdict == "insufficient_evidence"
    assert "'Nurse'" in finding.headline.text
    assert "Patient" in str(finding.reason)
