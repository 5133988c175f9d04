"""What groups are called, and groups that are spread over several columns, the same on every engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.errors import EvenhandError
from evenhand.table import Table

Columns = dict[str, list[Any]]
ENGINES: dict[str, Callable[[Columns], Any]] = {
    "mapping": lambda columns: columns,
    "pandas": pd.DataFrame,
    "lazy": lambda columns: pl.DataFrame(columns).lazy(),
    "arrow": pa.table,
    "duckdb": lambda columns: duckdb.connect().from_arrow(pa.table(columns)),
}
PEOPLE: Columns = {
    "black": [1, 0, 0, 1, 0, 0, None, 0],
    "sex": ["f", " m", "m ", "f", "m", "f", "m", "f"],
    "race_black": [1, 0, 0, 1, 0, 0, None, 1],
    "race_white": [0, 1, 0, 0, 1, 0, 1, 1],
    "hired": [1, 0, 1, 1, 0, 0, 1, 0],
    "score": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
}


def counted(data: Any, **roles: Any) -> dict[str, int]:
    """Return how many people each group has."""
    codes, labels = (cells := Table(data, predictions="hired", **roles).cells).joint([roles["groups"]])
    return {label: int(cells.n[codes == code].sum()) for code, label in enumerate(labels)}


@pytest.mark.parametrize("engine", ENGINES)
class TestOnEveryEngine:
    def test_a_bare_number_is_called_by_its_column(self, engine: str) -> None:
        assert counted(ENGINES[engine](PEOPLE), groups="black") == {"black = 0": 5, "black = 1": 2, "(missing)": 1}

    def test_labels_name_the_values(self, engine: str) -> None:
        labels = {"black": {0: "not Black", 1: "Black"}}
        assert counted(ENGINES[engine](PEOPLE), groups="black", labels=labels) == {
            "not Black": 5,
            "Black": 2,
            "(missing)": 1,
        }

    def test_blanks_around_values_are_trimmed_and_noted(self, engine: str) -> None:
        table = Table(ENGINES[engine](PEOPLE), groups="sex", predictions="hired")
        assert counted(ENGINES[engine](PEOPLE), groups="sex") == {"f": 4, "m": 4}
        assert tuple(map(str, table.source.notes)) == ("sex: blanks around values were trimmed (such as ' m', 'm ').",)

    def test_rows_have_the_groups_of_the_cells(self, engine: str) -> None:
        table = Table(ENGINES[engine](PEOPLE), groups=["sex", "black"], predictions={"m": "score"}, outcome="hired")
        rows, cells = table.score_rows("m").groups, table.cells
        coded = table.coded_rows({"outcome": "hired"}).groups
        for column in ("sex", "black"):
            wanted = sorted(n for label in range(3) if (n := int(cells.n[cells.codes[column] == label].sum())))
            for read in (rows, coded):
                assert sorted(pd.Series(read.codes[column]).value_counts().tolist()) == wanted

    def test_columns_of_0_and_1_become_one_grouping(self, engine: str) -> None:
        families = {"race": ["race_black", "race_white"]}
        found = counted(ENGINES[engine](PEOPLE), groups="race", one_hot=families)
        assert found == {"none of these": 2, "black": 2, "white": 2, "several of these": 1, "(missing)": 1}
        labels = {"race": {"race_black": "Black", "none of these": "other"}}
        found = counted(ENGINES[engine](PEOPLE), groups="race", one_hot=families, labels=labels)
        assert found == {"other": 2, "Black": 2, "white": 2, "several of these": 1, "(missing)": 1}


def test_a_one_hot_family_is_the_column_it_was_made_of() -> None:
    race = ["A", "B", "C", "B", "A"] * 40
    hired = [1, 0, 1, 1, 0, 0, 1, 0] * 25
    wide = {"race": race, "hired": hired}
    dummies = {f"race_{name}": [int(value == name) for value in race] for name in "ABC"} | {"hired": hired}
    plain = eh.parity(eh.Table(wide, groups="race", predictions="hired"))
    spread = eh.parity(eh.Table(dummies, groups="race", one_hot={"race": list(dummies)[:3]}, predictions="hired"))
    assert spread.to_dict()["gaps"] == plain.to_dict()["gaps"]


def test_values_of_one_label_are_one_group_with_exact_sums() -> None:
    data = {"g": [1, 2, 3] * 50, "score": [i / 150 for i in range(150)], "w": [1.0, 0.5, 2.0] * 50}
    merged = {"g": ["x", "x", "y"] * 50, "score": data["score"], "w": data["w"]}
    roles: dict[str, Any] = {"groups": "g", "predictions": {"m": "score"}, "weight": "w"}
    labelled = Table(data, **roles, labels={"g": {1: "x", 2: "x", 3: "y"}})
    plain = Table(merged, **roles)
    assert labelled.score_cells("m").digest() == plain.score_cells("m").digest()
    assert labelled.digest() == plain.digest()


def test_a_label_can_say_missing() -> None:
    found = counted({"g": [1, 2, 9] * 5, "hired": [1, 0, 1] * 5}, groups="g", labels={"g": {9: "(missing)"}})
    assert found == {"g = 1": 5, "g = 2": 5, "(missing)": 5}


def test_yes_and_no_are_called_by_their_column_but_not_single_letters() -> None:
    data = {"smoker": ["Yes", "no"] * 5, "sex": ["f", "m"] * 5, "hired": [1, 0] * 5}
    assert set(counted(data, groups="smoker")) == {"smoker = Yes", "smoker = no"}
    assert set(counted(data, groups="sex")) == {"f", "m"}


def test_a_reference_and_a_threshold_may_name_the_bare_value() -> None:
    data = {"black": [1, 0, 0] * 100, "hired": [1, 0, 1, 0] * 75}
    table = eh.Table(data, groups="black", predictions="hired")
    for reference in ("1", {"black": "1"}, "black = 1"):
        result = eh.parity(table, reference=reference)
        assert result.get("gaps", metric="selection_rate", against="reference", kind="difference").group == "black = 0"
    limit = {"metric": "selection_rate", "against": "reference", "group": "1", "max": 0.9}
    audit = eh.audit(table, parity={"metrics": ["selection_rate"]}, thresholds=[limit])
    assert [finding.verdict for finding in audit.findings if finding.threshold] == ["meets"]


def test_labels_are_in_the_settings_of_the_result() -> None:
    families = {"race": ["race_black", "race_white"]}
    named = {"black": {1: "Black"}}
    settings = Table(PEOPLE, groups=["black", "race"], predictions="hired", labels=named, one_hot=families).settings()
    assert settings["labels"] == {"black": {"1": "Black"}}
    assert settings["one_hot"] == {"race": ["race_black", "race_white"]}


@pytest.mark.parametrize(
    ("roles", "sentence"),
    [
        (
            {"groups": "black", "labels": {"blak": {1: "x"}}},
            "`labels` names 'blak', which is not in the data; did you mean 'black'?",
        ),
        (
            {"groups": "black", "labels": {"black": {"yes": "x"}}},
            "`labels` of 'black' name 'yes', which do not occur in it; it contains '0', '1'.",
        ),
        (
            {"groups": "black", "labels": {"black": "Black"}},
            "`labels` must name columns, and in them values: {'black': {0: 'not Black', 1: 'Black'}}",
        ),
        (
            {"groups": "race", "one_hot": {"race": ["race_black", "race_wite"]}},
            "`one_hot` 'race' names 'race_wite', which is not in the data; did you mean 'race_white'?",
        ),
        ({"groups": "race", "one_hot": {"race": ["race_black"]}}, "`one_hot` 'race' needs at least two columns"),
        (
            {"groups": "sex", "one_hot": {"sex": ["race_black", "race_white"]}},
            "`one_hot` makes a column 'sex', which the data has already; choose another name.",
        ),
        (
            {"groups": "sex", "one_hot": {"race": ["race_black", "race_white"]}},
            "`one_hot` 'race' is not among the `groups`; name it there.",
        ),
        (
            {"groups": "race", "one_hot": {"race": ["race_black", "score"]}},
            "the columns of `one_hot` 'race' ('race_black', 'score') must hold 0/1 or yes/no",
        ),
    ],
)
def test_what_cannot_be(roles: dict[str, Any], sentence: str) -> None:
    with pytest.raises(EvenhandError) as told:
        Table(PEOPLE, predictions="hired", **roles)
    assert sentence in str(told.value)


# Columns that are no groups -------------------------------------------------------------------------------


def refusal(column: list[Any]) -> str:
    with pytest.raises(EvenhandError) as told:
        Table({"g": column, "hired": [1, 0] * (len(column) // 2)}, groups="g", predictions="hired")
    return str(told.value)


def test_dates_and_codes_are_no_groups() -> None:
    days = pd.date_range("2020-01-01", periods=60)
    text = "group column 'g' holds 60 dates (such as '2020-01-01'); make periods of them"
    assert refusal(list(days.strftime("%Y-%m-%d")) * 20).startswith(text)
    assert refusal(list(days.date) * 20).startswith(text)
    assert refusal([f"Z{number:03}" for number in range(400)] * 2) == (
        "group column 'g' has 400 groups, and only 0 of them with 10 people or more: nothing could be compared; "
        "choose something coarser."
    )
    assert len(counted({"g": [f"Z{n}" for n in range(30)] * 20, "hired": [1, 0] * 300}, groups="g")) == 30
    assert "'unknown' makes it text" in refusal([str(20 + n) for n in range(39)] + ["unknown"])


def test_an_outcome_that_never_differs_is_noted() -> None:
    data = {"g": ["a", "b"] * 20, "y": [1] * 40, "hired": [1, 0] * 20}
    notes = tuple(map(str, Table(data, groups="g", outcome="y", predictions="hired").source.notes))
    assert notes == (
        "The outcome 'y' is positive in every row: false positive rates, AUC and calibration say nothing here. "
        "Is it the right column, and is `positive` right?",
    )


def test_percent_scores_are_recognised() -> None:
    with pytest.raises(EvenhandError) as told:
        Table({"g": ["a", "b"] * 5, "s": [12.5, 99.0] * 5}, groups="g", predictions={"m": "s"})
    assert str(told.value).endswith("it runs from 12.5 to 99: if it is percent, give range=(0, 100) and threshold=50.")


def test_a_long_table_points_to_history() -> None:
    data = {"person": [1, 1, 2, 2], "year": [2001, 2002] * 2, "g": ["a", "a", "b", "b"], "s": [0.1, 0.2, 0.3, 0.4]}
    with pytest.raises(EvenhandError) as told:
        Table(data, id="person", groups="g", predictions={"m": "s"})
    assert str(told.value).endswith(
        "each person must have one row. If 'year' is the time of a row, keep one row per person here; an audit that "
        "follows people over time takes the long table as its `history`."
    )
