"""What an opposing expert tried: each case once gave a false statement, and must not again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.errors import ConfigError, DataError

from .conftest import Audit, Frame, make_answers


def test_the_truth_of_tolerant_notions_is_tolerant(audit: Audit) -> None:
    data = make_answers(labels=5, seed=3)
    data["disagrees"] = ((data.own - data.label).abs() > 1).astype(int)
    found = audit(data, tolerance=1, truth="own")
    tolerant = [rate for rate in found.rates if rate.notion.startswith("tolerant")]
    assert len(tolerant) == 2 * (5 + 1)
    for rate in tolerant:
        rows = data[data.race == rate.group]
        if rate.label is not None:
            rows = rows[rows.label == int(rate.label)]
        assert rate.truth == pytest.approx(((rows.own - rows.label).abs() <= 1).mean(), abs=1e-12)
        assert rate.truth == pytest.approx(rate.value, abs=1e-12)
    gaps = [gap for gap in found.gaps if gap.notion.startswith("tolerant") and gap.value is not None]
    assert any(gap.critic is not None for gap in gaps)
    assert all(gap.truth == pytest.approx(gap.value, abs=1e-12) for gap in gaps)


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
    caveats = {finding.metric: finding.caveat or "" for finding in audit(answers, bounds="published").findings}
    assert "do not hold" in caveats["overall_misclassification"]
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


def everybody_sees_everything(critics: int = 40, cases: int = 80) -> Frame:
    case = np.tile(np.arange(cases), critics)
    return pd.DataFrame(
        {
            "critic": np.repeat(np.arange(critics), cases),
            "case": case,
            "race": np.where(case % 2, "a", "b"),
            "label": case // 2 % 2,
        }
    )


def test_a_gap_of_all_against_none_is_judged(audit: Audit) -> None:
    data = everybody_sees_everything()
    data["disagrees"] = (data.race == "b").astype(int)
    finding = audit(data, thresholds=[{"metric": "accuracy_equality", "max": 0.1}]).findings[0]
    assert finding.verdict == "does_not_meet"
    exact = 1 - 0.0125 ** (1 / 40)  # 40 critics of one mind, on either group; two differences
    assert finding.low == pytest.approx(1 - exact * 2**0.5, abs=1e-9)
    assert finding.high == 1.0


def test_everybody_agrees_has_the_exact_limit_of_a_proportion(audit: Audit) -> None:
    found = audit(everybody_sees_everything().assign(disagrees=0))
    gap = next(g for g in found.gaps if g.critic is None and g.notion == "calibration")
    assert (gap.value, gap.low) == (0.0, 0.0)
    assert gap.high == pytest.approx(1 - 0.025 ** (1 / 20), abs=1e-9)  # 20 cases of each group and label
    alone = next(g for g in found.gaps if g.critic == "3" and g.notion == "calibration")
    assert alone.high == pytest.approx(1 - 0.025 ** (1 / 20), abs=1e-9)


@pytest.mark.parametrize(("critics", "judged"), [(1, False), (4, False), (5, True)])
def test_few_critics_give_no_verdict(audit: Audit, critics: int, judged: bool) -> None:
    data = everybody_sees_everything(critics, 200)
    data["disagrees"] = np.random.default_rng(1).integers(0, 2, len(data))
    finding = audit(data, thresholds=[{"metric": "accuracy_equality", "max": 0.8}]).findings[0]
    assert (finding.verdict == "meets") == judged
    assert ("too few for a verdict" in finding.sentence) != judged


def test_few_critics_of_a_kind_give_no_verdict_and_are_named(audit: Audit) -> None:
    data = everybody_sees_everything(33, 200)
    data["disagrees"] = np.random.default_rng(1).integers(0, 2, len(data))
    data["kind"] = np.where(data.critic < 3, "surgeon", "patient")
    limit = {"metric": "accuracy_equality", "max": 0.8}
    found = audit(data, stakeholder="kind", thresholds=[limit, {**limit, "stratum": "surgeon"}])
    assert [finding.verdict for finding in found.findings[:2]] == ["meets", "insufficient_evidence"]
    assert any("“surgeon” (3)" in note for note in found.notes)


def test_perfect_separation_of_kinds_is_not_called_chance(audit: Audit) -> None:
    data = everybody_sees_everything()
    data["kind"] = np.where(data.critic % 2, "surgeon", "patient")
    data["disagrees"] = (np.random.default_rng(0).random(len(data)) < 0.3).astype(int)
    torn = (data.race == "b") & (data.label == 1)
    data.loc[torn, "disagrees"] = (data.kind[torn] == "surgeon").astype(int)
    sentence = audit(data, stakeholder="kind").findings[-1].sentence
    assert "no two kinds" not in sentence
    assert "“patient” and “surgeon” differ by 100.0 points without a test about “1” given to b" in sentence
    data["disagrees"] = (data.kind == "surgeon").astype(int)
    assert (
        "no difference between kinds of critics could be tested" in audit(data, stakeholder="kind").findings[-1].claim
    )


def test_kinds_that_share_no_cases_are_named(audit: Audit) -> None:
    data = everybody_sees_everything(60)
    data["kind"] = np.array(["A", "B", "C"])[data.critic // 20]
    data["disagrees"] = (np.random.default_rng(0).random(len(data)) < 0.3).astype(int)
    data = data[(data.kind == "C") == (data.case >= 40)]
    sentence = audit(data, stakeholder="kind").findings[-1].sentence
    assert "of what could be compared" in sentence
    assert "“A” and “C” cannot be compared, “B” and “C” cannot be compared" in sentence


def test_missing_answers_beside_a_direction_are_dropped(audit: Audit, answers: Frame) -> None:
    data = answers.assign(
        way=answers.answer.where(answers.answer != "right"), disagrees=answers.disagrees.astype(float)
    )
    data.loc[data.index[0], ["disagrees", "way"]] = [np.nan, None]
    found = audit(data, direction="way", table={"missing": "drop"})
    assert [(left["n"], left["reason"]) for left in found.left_out] == [(1, "no answer: rows dropped")]


def test_what_a_dropped_row_lacks_is_said(audit: Audit, answers: Frame) -> None:
    data = answers.assign(own=answers.own.astype(float))
    data.loc[data.index[:7], "own"] = np.nan
    found = audit(data, truth="own", table={"missing": "drop"})
    reason = "an answer without the critic's own label: rows dropped"
    assert [(left["n"], left["reason"]) for left in found.left_out] == [(7, reason)]


def test_repeats_with_different_weights_are_refused(audit: Audit, answers: Frame) -> None:
    data = answers.assign(w=1.0)
    again = pd.concat([data, data.head(1).assign(w=50.0)])
    with pytest.raises(DataError, match="1 pair of critic and case stand there several times with different weights"):
        audit(again, table={"weight": "w"})


@pytest.mark.parametrize(
    ("early", "late"),
    [
        ("2024-01-01T10:00:00.1", "2024-01-01T10:00:00.2"),
        ("2024-01-01 09:00+00:00", "2024-01-01 10:30+01:00"),
        ("2024-01-02", "2024-01-02 08:00"),
        (9, 10),
    ],
)
def test_the_latest_answer_counts(audit: Audit, answers: Frame, early: Any, late: Any) -> None:
    data = answers.assign(when=early)
    other = data.head(1).assign(when=late, disagrees=1 - data.disagrees.iloc[0])
    wanted = audit(pd.concat([other, data.iloc[1:]]))
    found = audit(pd.concat([other, data]), contradictions="latest", answered="when")
    assert found.hash == wanted.hash


@pytest.mark.parametrize(("one", "two"), [("10:00", "9:00"), ("12/31/2023", "1/1/2024")])
def test_text_that_is_no_time_is_refused(audit: Audit, answers: Frame, one: str, two: str) -> None:
    data = pd.concat([answers.assign(when=one), answers.head(1).assign(when=two)])
    with pytest.raises(DataError, match="must hold numbers, dates, or times such as"):
        audit(data, contradictions="latest", answered="when")


def test_weights_are_said_to_be_weights(audit: Audit, answers: Frame) -> None:
    found = audit(answers.assign(w=1.0 + answers.label), table={"weight": "w"})
    assert not any("do not vary" in gap.status for gap in found.gaps if gap.critic is not None)
    assert any("weighted answers" in gap.status for gap in found.gaps if gap.critic is not None)
    assert not any("counts once" in note for note in found.notes)


def test_a_label_never_given_to_a_group_is_named(audit: Audit) -> None:
    data = everybody_sees_everything()
    data["disagrees"] = (np.random.default_rng(0).random(len(data)) < 0.3).astype(int)
    data.loc[data.race == "b", "label"] = 0
    assert any("“1” to b" in note for note in audit(data).notes)
    assert not any("never given" in note for note in audit(everybody_sees_everything().assign(disagrees=0)).notes)


def test_few_answers_give_no_warning(audit: Audit) -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame(
        {
            "critic": np.arange(30),
            "case": np.arange(30),
            "race": rng.choice(["a", "b"], 30),
            "label": rng.integers(0, 4, 30),
            "disagrees": rng.integers(0, 2, 30),
        }
    )
    assert audit(data, min_count=2).gaps  # warnings are errors here
