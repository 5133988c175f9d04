"""Bad input: each kind gets one message that says what is wrong, where, and what to do; or a result that says so."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import ConfigError, DataError, EvenhandError

from .conftest import Audit, Frame, make_answers


def refused(audit: Audit, data: Any, message: str, kind: type[EvenhandError] = DataError, **settings: Any) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        audit(data, **settings)


# The data -------------------------------------------------------------------------------------------------


def test_one_label(answers: Frame, audit: Audit) -> None:
    data = answers.assign(label=1)
    refused(audit, data, "`decision` column 'label' holds one label only ('1'), so there is nothing to disagree about")
    refused(audit, data, "`labels` needs at least two labels", ConfigError, labels=[1])
    assert audit(data, labels=[0, 1]).labels == ("0", "1")  # declared, the other label exists


def test_one_group_with_enough_cases(answers: Frame, audit: Audit) -> None:
    few = sorted(answers.loc[answers["race"] == "Black", "case"].unique())[:3]
    data = answers[(answers["race"] == "White") | answers["case"].isin(few)]
    result = audit(data)
    why = "undefined: fewer than two groups of race have enough cases to be compared"
    assert {gap.status.text for gap in result.gaps} == {why}
    assert {gap.value for gap in result.gaps} == {None}
    assert why.removeprefix("undefined: f") in str(result.findings[0].reason)
    assert (
        result.findings[0].headline.text
        == "By race, statistical parity as critics see it cannot be compared between groups."
    )
    assert result.section().parts


def test_a_label_never_given_to_a_group(answers: Frame, audit: Audit) -> None:
    data = answers[~((answers["race"] == "Black") & (answers["label"] == 3))]
    result = audit(data)
    cell = {r.metric: r for r in result.values if (r.group, r.label) == ("Black", "3")}
    assert cell["calibration"].status.text == "undefined: the label was never given to the group"
    assert cell["calibration"].value is None
    assert (cell["predictive_equality"].lower, cell["predictive_equality"].upper) == (0.0, 0.0)
    assert cell["statistical_parity"].value == 0.0
    gap = next(g for g in result.gaps if g.metric == "calibration")
    assert gap.label in ("1", "2")


def test_a_critic_with_one_answer(answers: Frame, audit: Audit) -> None:
    data = pd.concat([answers[answers["critic"] != "c00"], answers[answers["critic"] == "c00"].head(1)])
    result = audit(data)
    own = result.rows("critics", critic="c00")
    assert {gap.n for gap in own} == {1}
    assert all(gap.status.text.startswith("undefined: this critic answered no case of") for gap in own)


@pytest.mark.parametrize("everybody", [0, 1])
def test_all_agree_or_all_disagree(everybody: int, answers: Frame, audit: Audit) -> None:
    result = audit(answers.assign(disagrees=everybody), stakeholder="kind")
    gaps = {g.metric: g for g in result.gaps if g.stakeholder is None}
    for metric in ("calibration", "accuracy_equality"):
        assert gaps[metric].value == 0.0
        assert gaps[metric].low == 0.0
        assert 0.0 < (gaps[metric].high or 0.0) < 1.0  # a sample of one mind does not prove that all are
        assert gaps[metric].status.id == "core.ok"
    rates = [r for r in result.values if r.metric == "accuracy_equality"]
    assert {r.value for r in rates} == {1.0 - everybody}
    if everybody:  # nobody agrees with any label: equal opportunity is 0, or nobody meant the label at all
        equal = [r for r in result.values if r.metric == "equal_opportunity"]
        assert {(r.lower, r.upper) for r in equal} == {(0.0, 0.0)}
    assert {r.status.text for r in result.stakeholders if r.p_value is None} == {"no test: the answers do not vary"}
    assert result.section().parts


def test_contradictory_answers(answers: Frame, audit: Audit) -> None:
    first = answers.iloc[[0]]
    data = pd.concat([answers, first.assign(disagrees=1 - first["disagrees"])])
    who, what = answers.loc[0, "critic"], answers.loc[0, "case"]
    refused(
        audit,
        data,
        f"1 pair of critic and case have contradictory answers (critic '{who}' on case '{what}'); correct them, or "
        "keep the latest with contradictions='latest' and the column `answered`.",
    )
    refused(audit, data, "`contradictions` 'latest' needs `answered`", ConfigError, contradictions="latest")
    tied = data.assign(at=1)
    refused(audit, tied, "the latest answers have the same time", contradictions="latest", answered="at")


def test_unknown_case_ids(answers: Frame) -> None:
    cases = answers.drop_duplicates("case")[["case", "race", "label"]]
    table = eh.Table(cases[~cases["case"].isin(["k001", "k002"])], id="case", groups="race")
    rows = int(answers["case"].isin(["k001", "k002"]).sum())
    settings: dict[str, Any] = {"decision": "label", "critic": "critic", "disagree": "disagrees"}
    apart = {"data": answers[["case", "critic", "disagrees"]]}
    with pytest.raises(
        DataError,
        match=re.escape(
            f"`case` column 'case' of the answers names 2 cases in {rows} rows that the table does not have (such as "
            "'k001', 'k002'); add the cases, or remove the answers."
        ),
    ):
        eh.disagreement(table, answers=apart, **settings)
    with pytest.raises(ConfigError, match="name the table's `id` column"):
        eh.disagreement(eh.Table(cases, groups="race"), answers=apart, **settings)


def test_labels_of_mixed_type(answers: Frame, audit: Audit) -> None:
    mixed = answers["label"].map({1: 1, 2: 2, 3: "high"})
    message = "the labels are of mixed type: '1', '2' are numbers and 'high' text; write them alike"
    refused(audit, answers.assign(label=mixed), message)
    refused(audit, answers.assign(label=mixed).to_dict("list"), message)
    refused(
        audit, answers, "`labels` must be all numbers or all text; got [1, 'high']", ConfigError, labels=[1, "high"]
    )
    assert audit(answers.assign(label=mixed), labels=["1", "2", "high"]).labels == ("1", "2", "high")


def test_labels_that_were_not_declared(answers: Frame, audit: Audit) -> None:
    rows = int((answers["label"] == 3).sum())
    message = (
        f"`decision` column 'label' holds '3' in {rows} rows, which is not among the declared `labels` ('1', '2'); "
        "correct the rows or declare the label."
    )
    refused(audit, answers, message, labels=[1, 2])
    refused(audit, answers.assign(own=7), "`truth` column 'own' holds '7'", labels=[1, 2, 3], truth="own")
    refused(audit, answers, "`labels` names 2 twice", ConfigError, labels=[1, 2, 2])


def test_a_score_in_the_place_of_labels(answers: Frame, audit: Audit) -> None:
    scores = answers["case"].str[1:].astype(float) / 7
    refused(audit, answers.assign(label=scores), "different values, more than 100; is it a score?")


def test_direction_for_labels_without_an_order(answers: Frame, audit: Audit) -> None:
    words = answers.assign(label=answers["label"].map({1: "kidney", 2: "liver", 3: "heart"}))
    message = (
        "an answer of too high or too low needs labels with an order, and these have none ('heart', 'kidney', "
        "'liver'); declare `labels`, lowest first, and set `ordered` to true."
    )
    refused(audit, words, message, ConfigError, direction="answer")
    refused(audit, words, message, ConfigError, disagree=None, answer="answer")
    refused(audit, words, "`tolerance` needs labels with an order", ConfigError, tolerance=1)
    refused(audit, words, "are words ('heart', 'kidney', 'liver') whose order nobody knows", ConfigError, ordered=True)
    refused(
        audit,
        answers,
        "`direction` needs ordered labels, but `ordered` is false",
        ConfigError,
        direction="answer",
        ordered=False,
    )
    refused(
        audit,
        answers,
        "`tolerance` needs ordered labels, but `ordered` is false",
        ConfigError,
        tolerance=1,
        ordered=False,
    )


def test_directions_that_cannot_be(answers: Frame, audit: Audit) -> None:
    lowest = answers["label"] == 1
    up = answers.assign(answer=np.where(lowest, "too_high", "right"))
    refused(
        audit,
        up,
        f"'too high' is the answer to the label '1' in {lowest.sum()} rows, but '1' is the lowest label",
        disagree=None,
        answer="answer",
    )
    highest = answers["label"] == 3
    down = answers.assign(answer=np.where(highest, "too_low", "right"))
    refused(audit, down, "but '3' is the highest label", disagree=None, answer="answer")
    assert audit(down, disagree=None, answer="answer", labels=[1, 2, 3, 4]).labels[-1] == "4"


def test_directions_that_contradict_the_answer(answers: Frame, audit: Audit) -> None:
    torn = answers.assign(answer=np.where(answers["label"] == 2, "too_low", answers["answer"]))
    n = int(((answers["disagrees"] == 0) & (torn["answer"] != "right")).sum())
    refused(
        audit,
        torn,
        f"in {n} rows the critic agrees in 'disagrees' and says too high or too low in 'answer'",
        direction="answer",
    )
    silent = answers.assign(answer="right")
    refused(
        audit,
        silent,
        f"in {answers['disagrees'].sum()} rows the critic disagrees in 'disagrees' without saying",
        direction="answer",
    )


def test_answers_that_mean_nothing(answers: Frame, audit: Audit) -> None:
    maybe = answers.assign(disagrees=np.where(answers["label"] == 2, "maybe", "no"))
    n = int((answers["label"] == 2).sum())
    refused(audit, maybe, f"`disagree` column 'disagrees' holds 'maybe' in {n} rows; an answer must be 0 or 1, or yes")
    refused(audit, answers.assign(disagrees=answers["label"]), "`disagree` column 'disagrees' holds '2', '3' in")
    plain = answers.assign(answer=np.where(answers["answer"] == "too_low", "disagree", answers["answer"]))
    refused(audit, plain, "(a plain 'disagree' has no direction)", disagree=None, answer="answer")


def test_missing_values(answers: Frame, audit: Audit) -> None:
    for column, role in (("critic", "critic"), ("case", "case"), ("label", "decision")):
        data = answers.astype({column: object})
        data.loc[data.index[:4], column] = None
        refused(audit, data, f"`{role}` column {column!r} is missing in 4 rows of 480; fill or remove them.")
    data = answers.astype({"disagrees": object})
    data.loc[data.index[:4], "disagrees"] = None
    refused(
        audit, data, "4 rows of 480 have no answer, no time or no label of the critic's own; fill them, or drop them"
    )


def test_a_case_or_critic_that_is_two_things(answers: Frame, audit: Audit) -> None:
    data = answers.copy()
    rows = data.index[data["case"] == data.loc[0, "case"]]
    assert len(rows) > 1
    data.loc[rows[0], "label"] = data.loc[rows[0], "label"] % 3 + 1
    refused(audit, data, f"1 case has several values of 'label' (such as '{data.loc[0, 'case']}')")
    data = answers.copy()
    data.loc[rows[0], "race"] = "Asian"
    refused(audit, data, f"1 case has several values of 'race' (such as '{data.loc[0, 'case']}')")
    data = answers.copy()
    data.loc[0, "kind"] = "Donor"
    refused(audit, data, "1 critic has several values of `stakeholder` (such as 'c00')", stakeholder="kind")


@pytest.mark.slow
def test_kinds_without_shared_cases_or_critics(answers: Frame, audit: Audit) -> None:
    lonely = answers[(answers["kind"] == "Patient") | (answers["critic"] == "c01")]
    result = audit(lonely, stakeholder="kind", min_count=5)
    assert len(result.stakeholders) == 1
    assert result.stakeholders[0].status.text.startswith("undefined: a comparison needs two")
    assert result.section().parts


@pytest.mark.slow
def test_a_kind_with_few_cases_of_a_group_has_no_gap(answers: Frame, audit: Audit) -> None:
    lost = (answers["kind"] == "Surgeon") & (answers["race"] == "Black")
    few = sorted(answers.loc[lost, "case"].unique())[:2]
    result = audit(answers[~lost | answers["case"].isin(few)], stakeholder="kind")
    statuses = {str(g.status) for g in result.gaps if g.stakeholder == "Surgeon"}
    assert statuses == {"undefined: only 2 cases of Black were answered, fewer than 10"}


def test_an_identifier_in_the_place_of_kinds(answers: Frame, audit: Audit) -> None:
    refused(
        audit,
        answers,
        "`stakeholder` has 24 kinds of critics, more than 20; is it an identifier?",
        stakeholder="critic",
    )


@pytest.mark.slow
def test_critics_of_no_known_kind(answers: Frame, audit: Audit) -> None:
    data = answers.assign(kind=answers["kind"].where(answers["critic"] != "c00"))
    result = audit(data, stakeholder="kind")
    assert "1 critic is of no known kind; they count in what all critics say." in [note.text for note in result.notes]
    assert {g.stakeholder for g in result.rows("critics", critic="c00")} == {None}


def test_a_truth_that_contradicts_the_answers_is_told(answers: Frame, audit: Audit) -> None:
    result = audit(answers.assign(own=answers["label"]), truth="own")
    n = int(answers["disagrees"].sum())
    assert any(f"{n} answers contradict the critic's own label" in note.text for note in result.notes)


def test_missing_answers_beside_a_direction_are_dropped(audit: Audit, answers: Frame) -> None:
    data = answers.assign(
        way=answers.answer.where(answers.answer != "right"), disagrees=answers.disagrees.astype(float)
    )
    data.loc[data.index[0], ["disagrees", "way"]] = [np.nan, None]
    found = audit(data, direction="way", table={"missing": "drop"})
    assert [(left.n, left.reason.text) for left in found.left_out] == [(1, "no answer: rows dropped")]


def test_what_a_dropped_row_lacks_is_said(audit: Audit, answers: Frame) -> None:
    data = answers.assign(own=answers.own.astype(float))
    data.loc[data.index[:7], "own"] = np.nan
    found = audit(data, truth="own", table={"missing": "drop"})
    reason = "an answer without the critic's own label: rows dropped"
    assert [(left.n, left.reason.text) for left in found.left_out] == [(7, reason)]


def test_repeats_with_different_weights_are_refused(audit: Audit, answers: Frame) -> None:
    data = answers.assign(w=1.0)
    again = pd.concat([data, data.head(1).assign(w=50.0)])
    with pytest.raises(DataError, match="1 pair of critic and case appear several times with different weights"):
        audit(again, table={"weight": "w"})


@pytest.mark.parametrize(("one", "two"), [("10:00", "9:00"), ("12/31/2023", "1/1/2024")])
def test_text_that_is_no_time_is_refused(audit: Audit, answers: Frame, one: str, two: str) -> None:
    data = pd.concat([answers.assign(when=one), answers.head(1).assign(when=two)])
    with pytest.raises(DataError, match="must hold numbers, dates, or times such as"):
        audit(data, contradictions="latest", answered="when")


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


# The settings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"critic": None}, "`critic` in the arguments of disagreement(): it is required and was not given"),
        ({"disagree": None}, "give either `disagree` (a column of yes and no) or `answer` (a column of words)"),
        ({"answer": "answer"}, "give either `disagree`"),
        ({"disagree": None, "answer": "answer", "direction": "answer"}, "`direction` applies to `disagree` only"),
        ({"critic": "critc"}, "`critic` is 'critc', which is not in the data; did you mean 'critic'"),
        ({"decision": "lable"}, "`decision` is 'lable', which is not in the data; did you mean 'label'"),
        ({"bounds": "loose"}, "`bounds`"),
        ({"bounds": "published", "tolerance": 1}, "`bounds` 'published' knows no tolerance"),
        ({"tolerance": -1}, "`answers.tolerance`"),
        ({"tolerance": 2}, "`tolerance` must be from 0 to 1 steps with 3 labels"),
        ({"target_width": 0}, "`answers.target_width`"),
        ({"target_width": 0.1, "cases": "all"}, "`target_width` plans for a sample of cases"),
        ({"labls": [1, 2]}, "`labls` in the arguments of disagreement(): there is no such setting"),
        ({"thresholds": [{"metric": "calibrtion", "max": 0.1}]}, "did you mean 'calibration'"),
        ({"thresholds": [{"metric": "calibration", "min": 0.1}]}, "must give max= of 0 or more and below 1"),
        ({"thresholds": [{"metric": "calibration", "max": 1}]}, "must give max= of 0 or more and below 1"),
        ({"thresholds": [{"metric": "calibration", "max": 0.1, "model": "m"}]}, "has no `model`"),
        ({"thresholds": [{"metric": "calibration", "max": 0.1, "grouping": "rcae"}]}, "did you mean 'race'"),
        ({"thresholds": [{"metric": "calibration", "max": 0.1, "stratum": "Nurse"}]}, "has no `stratum`"),
        ({"thresholds": [{"metric": "tolerant_accuracy", "max": 0.1}]}, "'tolerant_accuracy' of a threshold is not"),
        ({"thresholds": [{"metric": "disagreement", "max": 0.1}]}, "limits nothing"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str, answers: Frame, audit: Audit) -> None:
    refused(audit, answers, message, ConfigError, **settings)


def test_a_table_without_groups(answers: Frame, audit: Audit) -> None:
    refused(audit, answers, "the table names no groups to compare", ConfigError, groups=())


def test_many_things_wrong_in_the_same_rows_are_told_together(answers: Frame, audit: Audit) -> None:
    data = answers.astype({"critic": object, "case": object})
    data.loc[data.index[:2], "critic"] = None
    data.loc[data.index[:3], "case"] = None
    with pytest.raises(DataError) as told:
        audit(data)
    assert len(told.value.problems) == 2


def test_hostile_text_does_no_harm(audit: Audit) -> None:
    data = make_answers()
    evil = '<script>alert("x")</script>'
    data = data.assign(race=data["race"].replace("Black", evil), kind=data["kind"].replace("Patient", "=cmd()"))
    result = audit(data, stakeholder="kind")
    assert evil in {g.group for g in result.gaps} | {g.reference for g in result.gaps}
    assert evil not in result._repr_html_()
