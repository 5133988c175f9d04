"""What must not change a number: the order of rows, the engine, the names, one table or two."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.audits.disagreement import Answers

from .conftest import SETTINGS, Audit, Frame, make_answers

OPTIONS: dict[str, Any] = {"truth": "own", "target_width": 0.3}
FULL = {"stakeholder": "kind", **OPTIONS}
APART: dict[str, Any] = {
    "decision": "label",
    "critic": "critic",
    "disagree": "disagrees",
    "stakeholder": "kind",
    "resamples": 100,
}
"""Answers in a table of their own, which names the case as the table of cases does."""


def numbers(result: eh.DisagreementResult, *without: str) -> str:
    found: dict[str, Any] = {name: [r.to_dict() for r in records] for name, records in result.tables.items()}
    found |= {"labels": result.labels, "hash": result.hash}
    return json.dumps({name: found[name] for name in found if name not in without}, sort_keys=True)


@pytest.fixture(scope="module")
def expected(answers: Frame, audit: Audit) -> str:
    return numbers(audit(answers, **FULL))


@pytest.fixture(scope="module")
def plain(answers: Frame, audit: Audit) -> str:
    return numbers(audit(answers))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["mapping", "polars", "pyarrow", "duckdb", "csv", "parquet"])
def test_every_engine_and_order_of_rows(
    engine: str, answers: Frame, audit: Audit, expected: str, tmp_path: Path
) -> None:
    shuffled = answers.sample(frac=1, random_state=len(engine))
    makers: dict[str, Callable[[], Any]] = {
        "mapping": lambda: shuffled.to_dict("list"),
        "polars": lambda: pl.from_pandas(shuffled),
        "pyarrow": lambda: pa.Table.from_pandas(shuffled, preserve_index=False),
        "duckdb": lambda: duckdb.from_df(shuffled),
        "csv": lambda: shuffled.to_csv(tmp_path / "d.csv", index=False) or tmp_path / "d.csv",
        "parquet": lambda: shuffled.to_parquet(tmp_path / "d.parquet") or tmp_path / "d.parquet",
    }
    assert numbers(audit(makers[engine](), **FULL)) == expected


@pytest.mark.slow
def test_the_seed_decides_nothing(answers: Frame, audit: Audit, plain: str) -> None:
    assert numbers(audit(answers, seed=0)) == plain
    assert numbers(audit(answers, seed=1)) == plain


def test_names_of_groups_labels_and_cases_do_not_matter(answers: Frame, audit: Audit) -> None:
    """Names that sort the same way round give the same numbers under the new names."""
    renamed = answers.assign(
        race=answers["race"].map({"Black": "A", "White": "B"}),
        case="x" + answers["case"],
        critic="y" + answers["critic"],
        label=answers["label"].map({1: "low", 2: "mid", 3: "top"}),
    )
    plain, other = audit(answers), audit(renamed)
    for mine, theirs in zip(plain.gaps, other.gaps, strict=True):
        assert (mine.lower, mine.upper, mine.value, mine.low, mine.high) == (
            theirs.lower,
            theirs.upper,
            theirs.value,
            theirs.low,
            theirs.high,
        )
        assert mine.label is None or {"1": "low", "2": "mid", "3": "top"}[mine.label] == theirs.label


def test_groups_in_another_order_have_the_same_gap(answers: Frame, audit: Audit) -> None:
    turned = answers.assign(race=answers["race"].map({"Black": "Z", "White": "A"}))
    for mine, theirs in zip(audit(answers).gaps, audit(turned).gaps, strict=True):
        assert mine.lower == pytest.approx(theirs.lower, abs=1e-9)
        assert mine.upper == pytest.approx(theirs.upper, abs=1e-9)
        assert mine.high == pytest.approx(theirs.high, abs=0.05)  # the resamples are other ones


def cases_of(answers: Frame) -> Frame:
    return answers.drop_duplicates("case")[["case", "race", "sex", "label"]]


def said_of(answers: Frame) -> Frame:
    return answers.drop(columns=["race", "sex", "label"])


@pytest.mark.slow
def test_one_table_and_two_tables_give_the_same(answers: Frame, audit: Audit, expected: str) -> None:
    table = eh.Table(cases_of(answers), id="case", groups="race")
    shuffled = said_of(answers).sample(frac=1, random_state=1)
    result = eh.disagreement(table, answers={"data": shuffled, **OPTIONS}, individuals=True, **APART)
    assert numbers(result) == expected
    written = json.loads(json.dumps(result.to_dict()))  # the answers themselves are not written, nor pickled
    assert numbers(eh.DisagreementResult.from_dict(written)) == expected
    again = pickle.loads(pickle.dumps(result))  # noqa: S301
    assert numbers(again) == expected
    assert again.spec.answers.data is None
    # The case may have another name there.
    other = said_of(answers).rename(columns={"case": "offer"})
    result = eh.disagreement(table, case="offer", answers=Answers(data=other, **OPTIONS), **APART)
    assert numbers(result) == expected


def test_cases_without_answers_are_counted_and_change_nothing(answers: Frame, expected: str) -> None:
    more = pd.DataFrame({"case": ["z1", "z2"], "race": "Black", "sex": "F", "label": 2})
    table = eh.Table(pd.concat([cases_of(answers), more]), id="case", groups="race")
    result = eh.disagreement(table, answers={"data": said_of(answers), **OPTIONS}, **APART)
    found = json.loads(numbers(result))
    (left,) = found.pop("left_out")
    assert left.pop("reason")["text"] == "cases that nobody answered"
    assert left == {"model": None, "grouping": None, "group": None, "n": 2}
    wanted = json.loads(expected)
    wanted.pop("left_out")
    assert found == wanted


@pytest.mark.slow
def test_ids_as_numbers_and_as_text_are_joined(answers: Frame) -> None:
    number = answers["case"].str[1:].astype(int)
    table = eh.Table(cases_of(answers.assign(case=number)), id="case", groups="race")
    results = [
        eh.disagreement(table, answers={"data": said_of(answers.assign(case=case))}, **APART)
        for case in (number, number.astype(str), number.astype(float))
    ]
    assert numbers(results[0]) == numbers(results[1]) == numbers(results[2])


def test_an_answer_given_twice_counts_once(answers: Frame, audit: Audit, plain: str) -> None:
    again = audit(pd.concat([answers, answers.head(7)]))
    assert json.loads(numbers(again))["gaps"] == json.loads(plain)["gaps"]
    assert [r.n for r in again.left_out] == [7]
    assert again.left_out[0].reason.id == "disagreement.repeated"


@pytest.mark.slow
def test_the_latest_of_contradictory_answers_counts(answers: Frame, audit: Audit, plain: str) -> None:
    timed = answers.assign(at=pd.Timestamp("2024-05-02"))
    early = timed.head(9).assign(at=pd.Timestamp("2024-05-01"), disagrees=1 - timed["disagrees"])
    data = pd.concat([timed, early]).sample(frac=1, random_state=2)
    for column in (data["at"], data["at"].dt.strftime("%Y-%m-%d"), data["at"].astype("int64")):
        result = audit(data.assign(at=column), contradictions="latest", answered="at")
        assert json.loads(numbers(result))["gaps"] == json.loads(plain)["gaps"]
        assert result.left_out[0].n == 9
        assert result.left_out[0].reason.id == "disagreement.superseded"


@pytest.mark.parametrize(
    "words",
    [
        {0: 0, 1: 1},
        {0: False, 1: True},
        {0: "no", 1: "Yes"},
        {0: "n", 1: "TRUE "},
        {0: 0.0, 1: 1.0},
    ],
)
def test_yes_and_no_in_other_words(words: dict[int, Any], answers: Frame, audit: Audit, plain: str) -> None:
    assert numbers(audit(answers.assign(disagrees=answers["disagrees"].map(words)))) == plain


@pytest.mark.slow
def test_answers_in_other_words(answers: Frame, audit: Audit, plain: str) -> None:
    agree = answers["disagrees"].map({0: "Agree", 1: "disagrees"})
    assert numbers(audit(answers.assign(said=agree), disagree=None, answer="said")) == plain
    directed = numbers(audit(answers, disagree=None, answer="answer"))
    spoken = answers["answer"].map({"right": "About right", "too_high": "Too high", "too_low": "too-low"})
    assert numbers(audit(answers.assign(said=spoken), disagree=None, answer="said")) == directed
    only = answers["answer"].where(answers["answer"] != "right")  # empty where the critic agrees
    assert numbers(audit(answers.assign(way=only), direction="way")) == directed


def test_words_in_a_declared_order_are_like_numbers(answers: Frame, audit: Audit) -> None:
    names = {1: "poor", 2: "fair", 3: "good"}
    data = answers.assign(label=answers["label"].map(names))
    settings: dict[str, Any] = {"disagree": None, "answer": "answer", "labels": ["poor", "fair", "good"]}
    words, plain = audit(data, **settings, ordered=True), audit(answers, disagree=None, answer="answer")
    for mine, theirs in zip(words.gaps, plain.gaps, strict=True):
        assert (mine.lower, mine.upper, mine.low, mine.high) == (theirs.lower, theirs.upper, theirs.low, theirs.high)


@pytest.mark.slow
def test_no_case_column_makes_each_answer_a_case(audit: Audit) -> None:
    data = make_answers(critics=10, each=10)
    own = data.assign(case=np.arange(len(data)))
    loose, shared = audit(data, case=None), audit(own)
    for mine, theirs in zip(loose.gaps, shared.gaps, strict=True):
        assert (mine.lower, mine.upper, mine.value) == (theirs.lower, theirs.upper, theirs.value)
    assert "disagreement.no_case_column" in {note.id for note in loose.notes}
    shuffled = audit(data.sample(frac=1, random_state=3), case=None)
    assert numbers(shuffled) == numbers(loose)


def test_dropped_rows_are_counted(answers: Frame, audit: Audit) -> None:
    data = answers.assign(disagrees=answers["disagrees"].astype(float))
    data.loc[data.index[:5], "disagrees"] = np.nan
    result = audit(data, table={"missing": "drop"})
    assert result.left_out[0].n == 5
    assert result.left_out[0].reason.id == "disagreement.no_answer"
    assert numbers(result, "left_out") == numbers(audit(answers.iloc[5:]), "left_out")


@pytest.mark.slow
def test_all_audits_of_one_table(answers: Frame) -> None:
    """The audit runs beside others, and results.json is the same bytes for the same data."""
    table = eh.Table(answers.assign(hired=answers["disagrees"]), groups="race", predictions="hired")
    sections: dict[str, Any] = {"parity": {"resamples": 100, "metrics": "selection_rate"}, "disagreement": SETTINGS}
    first = eh.audit(table, **sections).to_json()
    shuffled = answers.assign(hired=answers["disagrees"]).sample(frac=1, random_state=5)
    again = eh.audit(eh.Table(pl.from_pandas(shuffled), groups="race", predictions="hired"), **sections).to_json()
    assert first == again


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
