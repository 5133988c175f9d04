"""Simulated critics: the rates put in come out, of the study and of the audit that reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import ConfigError, DataError
from evenhand.study import Assignment, Critics, Responses, apply_exclusions, assign_cases, simulate_feedback

ROLES: dict[str, Any] = {"id": "case", "decision": "label", "groups": "race"}


@pytest.fixture(scope="module")
def cases() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    race, label = rng.choice(["A", "B"], 600, p=[0.7, 0.3]), rng.choice(["low", "middle", "high"], 600)
    return pd.DataFrame({"case": np.arange(600), "race": race, "label": label})


@pytest.fixture(scope="module")
def dealt(cases: pd.DataFrame) -> Assignment:
    return assign_cases(cases, per_critic=30, per_case=10, **ROLES)


def joined(cases: pd.DataFrame, responses: Responses) -> pd.DataFrame:
    frame = pd.DataFrame(responses.to_columns())
    return frame.merge(cases.assign(item=cases["case"].astype(str)), on="item")


def test_everybody_answers_what_they_were_dealt(cases: pd.DataFrame, dealt: Assignment) -> None:
    made = simulate_feedback(cases, dealt, seed=1, **ROLES)
    frame = joined(cases, made)
    assert len(frame) == 6_000
    assert (frame["decision"] == frame["label"]).all()
    for number, seen in enumerate(dealt.critics[:5], 1):
        own = frame[frame["participant"] == f"c{number:04d}"].sort_values("position")
        assert own["item"].tolist() == list(seen)
    assert made.to_csv() == simulate_feedback(cases, dealt, seed=1, **ROLES).to_csv()
    assert made.to_csv() != simulate_feedback(cases, dealt, seed=2, **ROLES).to_csv()


def test_the_rates_put_in_come_out(cases: pd.DataFrame, dealt: Assignment) -> None:
    critics = Critics(disagree=0.2, groups={"B": 0.4}, leaning=0, case=0, careless=0)
    frame = joined(cases, simulate_feedback(cases, dealt, critics=critics, seed=3, **ROLES))
    rates = (frame["answer"] == "disagree").groupby(frame["race"]).mean()
    assert rates["A"] == pytest.approx(0.2, abs=0.02)
    assert rates["B"] == pytest.approx(0.4, abs=0.03)


def test_directions_stay_on_the_scale(cases: pd.DataFrame, dealt: Assignment) -> None:
    made = simulate_feedback(
        cases, dealt, labels=["low", "middle", "high"], answers=["agree", "too_high", "too_low"], **ROLES
    )
    frame = joined(cases, made)
    seen = frame.groupby("label")["answer"].unique().map(set)
    assert seen["low"] == {"agree", "too_low"}
    assert seen["high"] == {"agree", "too_high"}
    assert seen["middle"] == {"agree", "too_high", "too_low"}


def test_the_disagreement_audit_reads_them(cases: pd.DataFrame, dealt: Assignment) -> None:
    critics = {"disagree": 0.2, "groups": {"B": 0.4}, "leaning": 0.0, "case": 0.0}
    kept = apply_exclusions(simulate_feedback(cases, dealt, critics=critics, seed=3, **ROLES))
    table = eh.Table(cases, id="case", groups="race")
    result = eh.disagreement(
        table,
        decision="label",
        critic="participant",
        answer="answer",
        case="item",
        answers={"data": kept.to_frame()},
        resamples=200,
    )
    gap = result.get("gaps", metric="accuracy_equality")
    assert gap.value == pytest.approx(0.2, abs=0.04)
    with pytest.raises(ConfigError, match=r"answers=\{'data': responses.to_frame\(\)\}"):
        eh.study.analyze(kept)


def test_careless_critics_fail_checks(cases: pd.DataFrame, dealt: Assignment) -> None:
    made = simulate_feedback(cases, dealt, critics={"careless": 0.3}, seed=1, **ROLES)
    left = apply_exclusions(made)
    assert 0.15 < 1 - len(left.people["participant"]) / len(made.people["participant"]) < 0.35


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"critics": {"groups": {"C": 0.4}}}, ConfigError, "`groups` of the critics got 'C'"),
        ({"critics": {"disagree": 1.0}}, ConfigError, "`disagree` in the critics"),
        ({"labels": ["low", "high"]}, ConfigError, "`labels` lacks 'middle'"),
        ({"answers": ["agree", "disagre"]}, ConfigError, "did you mean 'disagree'"),
        ({"answers": ["agree"]}, ConfigError, "`answers` must hold 'agree' and something else"),
        ({"decision": "lable"}, ConfigError, "did you mean 'label'"),
    ],
)
def test_wrong_input_is_told(
    change: dict[str, Any], error: type[Exception], message: str, cases: pd.DataFrame, dealt: Assignment
) -> None:
    with pytest.raises(error, match=message):
        simulate_feedback(cases, dealt, **{**ROLES, **change})


def test_an_assignment_of_other_cases_is_refused(cases: pd.DataFrame, dealt: Assignment) -> None:
    with pytest.raises(DataError, match="the assignment has a case"):
        simulate_feedback(cases.iloc[:300], dealt, **ROLES)
