"""Exports of other survey tools: wide and long, extra header lines, a second table of people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import ConfigError, DataError
from evenhand.study import apply_exclusions, read_survey

WIDE_MAP: dict[str, Any] = {
    "columns": {
        "participant": "ResponseId",
        "duration": "Duration (in seconds)",
        "finished": "Finished",
        "prolific": "PID",
        "trajectory": "{condition}_S{item}_{subject}_traj",
        "aggregate": "{condition}_S{item}_{subject}_aggr",
        "overall": "{condition}_S{item}_{subject}_all",
        "factors": "{condition}_S{item}_{subject}_why",
        "predicted": "{condition}_S{item}_{subject}_pred",
        "risk": "{condition}_S{item}_{subject}_risk",
        "risk_reference": "{condition}_S{item}_K",
    },
    "percent": ["predicted", "risk", "risk_reference"],
    "factors": {"trajectory": "Trend", "aggregate": "Total", "other": "Other"},
    "checks": {"check1": "Blue", "check2": "Seven", "check3": "Chair"},
}

# As Qualtrics writes it: names, question texts, import ids, then one row a person.
QUALTRICS = """ResponseId,Duration (in seconds),Finished,PID,check1,check2,check3,CLUE_S1_K,CLUE_S1_A_traj,CLUE_S1_A_aggr,CLUE_S1_A_all,CLUE_S1_A_why,CLUE_S1_A_pred,CLUE_S1_A_risk,SHED_S1_K,SHED_S1_A_traj,SHED_S1_A_aggr,SHED_S1_A_all,SHED_S1_A_why,SHED_S1_A_pred,SHED_S1_A_risk
Response ID,Duration (in seconds),Finished,PID,Pick blue,Pick seven,Not an animal?,K,How similar?,How similar?,How similar?,Why?,What percentage?,Risk?,K,How similar?,How similar?,How similar?,Why?,What percentage?,Risk?
"{""ImportId"":""_recordId""}","{""ImportId"":""duration""}","{""ImportId"":""finished""}","{""ImportId"":""PID""}",x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x
R_1,2400,True,pid1,Blue,seven,Chair,40,Very similar,Different,Slightly similar,"Trend,Total",60,45,,,,,,,
R_2,300,False,pid2,Red,Six,Chair,,,,,,,,15,Similar,Similar,Very different,Other,10,15
R_3,10,False,pid3,,,,,,,,,,,,,,,,,
"""  # noqa: E501


@pytest.fixture
def export(tmp_path: Path) -> Path:
    path = tmp_path / "qualtrics.csv"
    path.write_text(QUALTRICS, encoding="utf-8")
    return path


def test_a_cell_with_an_x_is_a_ticked_box() -> None:
    cells = {"who": ["p1", "p2", "p3", "p4"], "set": ["1"] * 4, "other": ["A"] * 4, "done": ["x", " X ", "no", None]}
    scales = {name: ["1"] * 4 for name in ("trajectory", "aggregate", "overall")}
    columns = {"participant": "who", "item": "set", "subject": "other", "finished": "done"}
    survey = read_survey(cells | scales, "effort", {"columns": columns | {name: name for name in scales}})
    np.testing.assert_array_equal(survey.people["finished"], [1.0, 1.0, 0.0, np.nan])


def test_a_wide_export_becomes_tidy(export: Path) -> None:
    found = read_survey(export, "effort", WIDE_MAP)
    assert found.people["participant"].tolist() == ["R_1", "R_2", "R_3"]
    assert found.people["condition"].tolist() == ["CLUE", "SHED", None]
    assert found.people["checks_passed"].tolist() == [3, 1, 0]
    assert found.people["finished"].tolist() == [1, 0, 0]
    assert len(found.person) == 2
    assert found.answers["trajectory"].tolist() == [1, 2]
    assert found.answers["aggregate"].tolist() == [5, 2]
    assert found.answers["overall"].tolist() == [3, 6]
    assert found.answers["predicted"].tolist() == [0.6, 0.1]
    assert found.output().round(9).tolist() == [0.05, 0.0]
    assert found.answers["factor_trajectory"].tolist() == [1, 0]
    assert found.answers["factor_other"].tolist() == [0, 1]
    assert tuple(map(str, found.notes)) == ("2 lines of question texts and import ids below the header were left out.",)


def test_exclusions_follow_the_checks_of_the_export(export: Path) -> None:
    kept = apply_exclusions(read_survey(export, "effort", WIDE_MAP), {"failed_checks": 2})
    assert kept.people["participant"].tolist() == ["R_1"]
    assert kept.excluded[0].participants == ("R_2", "R_3")


def test_a_second_table_of_people_is_joined(export: Path, tmp_path: Path) -> None:
    prolific = tmp_path / "prolific.csv"
    prolific.write_text("Submission id,Participant id,Status,Age\ns1,R_1,APPROVED,33\ns2,R_9,RETURNED,50\n")
    columns = {**WIDE_MAP, "people": {"participant": "Participant id", "status": "Status", "age": "Age"}}
    found = read_survey(export, "effort", columns, people=prolific)
    assert found.people["status"].tolist() == ["APPROVED", None, None]
    notes = list(map(str, found.notes))
    assert "1 person of the second table gave no answers here." in notes
    assert "2 people who answered are not in the second table." in notes
    with pytest.raises(ConfigError, match="needs `people` in the column map"):
        read_survey(export, "effort", WIDE_MAP, people=prolific)
    wrong = {**columns, "people": {"participant": "Participant ID"}}
    with pytest.raises(DataError, match="did you mean 'Participant id'"):
        read_survey(export, "effort", wrong, people=prolific)


def test_a_long_export_of_feedback() -> None:
    rows = {
        "worker": ["w1", "w1", "w2"],
        "defendant": [7, 9, 7],
        "label": ["high", "low", "high"],
        "vote": ["Yes", "No", "Too harsh"],
        "cond": ["1", "1", "2"],
    }
    found = read_survey(
        rows,
        "disagreement",
        {
            "columns": {
                "participant": "worker",
                "item": "defendant",
                "decision": "label",
                "answer": "vote",
                "condition": "cond",
            },
            "answers": {"yes": "agree", "no": "disagree", "too harsh": "too_high"},
            "conditions": {"1": "race shown", "2": "race hidden"},
        },
    )
    assert found.answers["answer"].tolist() == ["agree", "disagree", "too_high"]
    assert found.answers["item"].tolist() == ["7", "9", "7"]
    assert found.conditions == ("race hidden", "race shown")


def test_a_wide_export_of_feedback() -> None:
    rows = {
        "worker": ["w1", "w2"],
        "case_7": ["agree", None],
        "case_9": ["disagree", "agree"],
        "seen_7": ["high", "high"],
        "seen_9": ["low", "low"],
    }
    found = read_survey(
        rows,
        "disagreement",
        {
            "columns": {"participant": "worker", "answer": "case_{item}", "decision": "seen_{item}"},
        },
    )
    assert found.answers["item"].tolist() == ["7", "9", "7", "9"]
    assert found.answers["answer"].tolist() == ["agree", "disagree", None, "agree"]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"columns": {"overall": "x"}}, ConfigError, "which column is the participant's id"),
        ({"columns": {**WIDE_MAP["columns"], "participant": "RespondeId"}}, DataError, "did you mean 'ResponseId'"),
        ({"columns": {**WIDE_MAP["columns"], "overall": "S{item}_{subject}_sum"}}, DataError, "no column .* fits"),
        ({"percent": ["overall"]}, ConfigError, "`percent` got 'overall'"),
        ({"percent": ["predicted", "risk"]}, DataError, "'risk_reference' in the export must hold shares"),
        ({"scale": ["Same", "Other"]}, DataError, "'Very similar'"),
        ({"factors": {"trend": "Trend"}}, ConfigError, "`factors` got 'trend'"),
        ({"answers": {"yes": "agreed"}}, ConfigError, "did you mean 'agree'"),
        ({"checks": {"check9": "Blue"}}, DataError, "no column 'check9'"),
        ({"colunms": {}}, ConfigError, "did you mean 'columns'"),
    ],
)
def test_wrong_maps_are_told(export: Path, change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_survey(export, "effort", {**WIDE_MAP, **change})
