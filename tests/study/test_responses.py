"""Responses: the schema, our own export there and back, wrong data, and hostile text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenhand.errors import ConfigError, DataError
from evenhand.study import Responses, read_responses, simulate_responses
from evenhand.study.schema import COLUMNS, columns_of

ROWS: dict[str, list[Any]] = {
    "participant": ["p2", "p1", "p1", "p2"],
    "condition": ["income", "arrests", "arrests", "income"],
    "item": ["1", "1", "1", "1"],
    "subject": ["B", "B", "A", "A"],
    "trajectory": [5, 4, 1, 2],
    "aggregate": [1, 2, 2, 1],
    "overall": [4, 3, 1, 2],
    "predicted": [0.4, None, 0.9, 0.8],
    "risk_reference": [0.3, 0.2, 0.2, 0.3],
    "risk": [0.5, 0.1, 0.2, 0.3],
    "reason": ["a", None, "b", "c"],
}


def same(one: Responses, other: Responses) -> None:
    for mine, theirs in ((one.people, other.people), (one.answers, other.answers)):
        assert set(mine) == set(theirs)
        for name in mine:
            np.testing.assert_array_equal(mine[name].astype(str), theirs[name].astype(str), err_msg=name)


def test_rows_are_split_into_people_and_answers_in_one_order() -> None:
    found = read_responses(ROWS)
    assert found.people["participant"].tolist() == ["p1", "p2"]
    assert found.conditions == ("arrests", "income")
    assert found.answers["subject"].tolist() == ["A", "B", "A", "B"]
    assert found.person.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(found.output(), [0.0, 0.1, 0.0, 0.2])
    assert found.pairs()[0] == "arrests/1/A"


def test_the_order_of_rows_does_not_matter() -> None:
    turned = {name: values[::-1] for name, values in ROWS.items()}
    same(read_responses(ROWS), read_responses(turned))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_any_data_frame_can_be_read_and_comes_back(frame: Any) -> None:
    found = read_responses(frame(ROWS))
    same(found, read_responses(ROWS))
    back = found.to_frame()
    assert isinstance(back, frame)
    assert list(back.columns)[:3] == ["participant", "condition", "item"]
    same(read_responses(back), found)


def test_our_own_export_there_and_back(tmp_path: Path) -> None:
    responses = simulate_responses(30, seed=4)
    path = responses.save(tmp_path / "responses.csv")
    same(read_responses(path), responses)
    assert path.read_text(encoding="utf-8").startswith("participant,condition,duration,finished")


def test_who_answered_nothing_is_kept_and_comes_back(tmp_path: Path) -> None:
    silent = {name: [*values, None] for name, values in ROWS.items()}
    silent["participant"][-1], silent["condition"][-1] = "p3", "income"
    found = read_responses(silent)
    assert found.people["participant"].tolist() == ["p1", "p2", "p3"]
    assert len(found.person) == 4
    same(read_responses(found.save(tmp_path / "r.csv")), found)


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd", "-2", "@sum", "'=x", "''-y", "plain", 'say "hi", ok', "line\nbreak", "ünï"]
)
def test_text_that_a_spreadsheet_would_run_is_marked_and_comes_back(text: str, tmp_path: Path) -> None:
    found = read_responses({**ROWS, "reason": [text] * 4})
    path = found.save(tmp_path / "r.csv")
    assert read_responses(path).answers["reason"].tolist() == [text] * 4
    content = path.read_text(encoding="utf-8")
    assert not any(cell.startswith(("=", "+", "-", "@")) for line in content.split("\n") for cell in line.split(","))


def test_other_columns_are_kept_with_people_or_with_answers() -> None:
    found = read_responses({**ROWS, "age": [40, 31, 31, 40], "note": ["x", "y", "z", "w"]})
    assert found.people["age"].tolist() == [31.0, 40.0]
    assert found.answers["note"].tolist() == ["z", "y", "w", "x"]


def test_feedback_has_the_same_schema() -> None:
    rows = {
        "participant": ["c1", "c1", "c2"],
        "item": ["9", "7", "7"],
        "decision": ["low", "high", "high"],
        "answer": ["agree", "too_high", None],
        "group": ["A", "B", "B"],
    }
    found = read_responses(rows)
    assert found.kind == "disagreement"
    assert found.answers["answer"].tolist() == ["too_high", "agree", None]
    assert found.to_frame("pandas")["decision"].tolist() == ["high", "low", "high"]
    with pytest.raises(DataError, match="must be one of agree, disagree, too_high, too_low; got 'maybe'"):
        read_responses({**rows, "answer": ["agree", "maybe", None]})


def test_the_schema_says_what_each_kind_has() -> None:
    shared = {column.name for column in columns_of("effort")} & {column.name for column in columns_of("disagreement")}
    assert {"participant", "condition", "item", "reason", "checks_passed"} <= shared
    assert all(column.description.endswith(".") for column in COLUMNS)
    assert len({column.name for column in COLUMNS}) == len(COLUMNS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"overall": None}, "no column 'overall'"),
        (
            {"overall": [7, 1, 2, 3]},
            "'overall' in the responses must hold whole numbers from 1 to 6; not so in 1 row: '7'",
        ),
        ({"overall": [1.5, 1, 2, 3]}, "whole numbers"),
        ({"overall": ["Similar", 1, 2, 3]}, "'Similar'"),
        ({"predicted": [40, 50, 60, 70]}, "name columns of percentages in `percent`"),
        ({"participant": ["p2", None, "p1", "p2"]}, "'participant' in the responses is empty in 1 row"),
        ({"condition": ["income", "arrests", "income", "income"]}, "'condition' .* differs .* first of 'p1'"),
        ({"subject": ["B", "A", "A", "A"]}, "1 answer more than once, first 'arrests/1/A' of 'p1'"),
        ({"finished": ["1", "maybe", "1", "1"]}, "must hold yes or no"),
    ],
)
def test_wrong_data_is_told(change: dict[str, Any], message: str) -> None:
    rows = {name: values for name, values in {**ROWS, **change}.items() if values is not None}
    with pytest.raises(DataError, match=message):
        read_responses(rows, "effort")


def test_wrong_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="could not be read"):
        read_responses(tmp_path / "nothing.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError, match="is empty"):
        read_responses(tmp_path / "empty.csv")
    (tmp_path / "short.csv").write_text("participant,item\np1\n")
    with pytest.raises(DataError, match=r"line 2 .* has 1 fields where the header has 2"):
        read_responses(tmp_path / "short.csv")
    (tmp_path / "twice.csv").write_text("participant,participant\np1,p1\n")
    with pytest.raises(DataError, match="more than one column 'participant'"):
        read_responses(tmp_path / "twice.csv")
    with pytest.raises(ConfigError, match="cannot be written"):
        read_responses(ROWS).save(tmp_path / "no" / "folder.csv")
    with pytest.raises(ConfigError, match="did you mean 'effort'"):
        read_responses(ROWS, "efort")  # type: ignore[arg-type]
