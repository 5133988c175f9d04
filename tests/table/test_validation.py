"""Every problem with a table's roles and rows, told at once, in the same words on every engine."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evenhand.errors import DataError
from evenhand.table import Table

Columns = dict[str, list[Any]]

PEOPLE: Columns = {
    "person": [1, 2, 3, 4],
    "race": ["A", "B", "A", "B"],
    "sex": ["F", "F", "M", "M"],
    "age": [20, 30, 40, 50],
    "hired": [1, 0, 1, 0],
    "risk": [0.1, 0.6, 0.7, 0.2],
    "weight": [1.0, 2.0, 0.5, 0.25],
}
ROLES: dict[str, Any] = {
    "id": "person",
    "outcome": "hired",
    "groups": ["race"],
    "predictions": {"model": "risk"},
    "weight": "weight",
}

ENGINES: dict[str, Callable[[Columns], Any]] = {
    "mapping": lambda columns: columns,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": lambda columns: pl.DataFrame(columns).lazy(),
    "arrow": pa.table,
    "duckdb": lambda columns: duckdb.connect().from_arrow(pa.table(columns)),
}

CLUSTER = " If rows with the same 'person' belong together, name it as `cluster`."


def problems(changes: Columns | None = None, make: Callable[[Columns], Any] | None = None, **roles: Any) -> list[str]:
    """Return what is wrong with a table that is sound but for the changes."""
    data = PEOPLE | (changes or {})
    with pytest.raises(DataError) as caught:
        Table((make or ENGINES["mapping"])(data), **(ROLES | roles))
    return list(caught.value.problems)


def test_the_table_without_changes_is_sound() -> None:
    table = Table(PEOPLE, **ROLES)
    assert (table.rows, table.dropped) == (4, 0)


# Names and types ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("roles", "sentence"),
    [
        ({"id": "persn"}, "id column 'persn' is not in the data; did you mean 'person'?"),
        ({"outcome": "Hired"}, "outcome column 'Hired' is not in the data; did you mean 'hired'?"),
        ({"weight": "wieght"}, "weight column 'wieght' is not in the data; did you mean 'weight'?"),
        ({"groups": [["race", "sexx"]]}, "group column 'sexx' is not in the data; did you mean 'sex'?"),
        (
            {"predictions": {"m": "zzz"}},
            "prediction column 'zzz' is not in the data; "
            "known names: 'person', 'race', 'sex', 'age', 'hired', 'risk', 'weight'",
        ),
        ({"cuts": {"ace": [1]}}, "`cuts` names 'ace', which is not a group; did you mean 'race'?"),
        (
            {"groups": ["race"], "cuts": {"race": [1]}},
            "group column 'race' has cut points but holds text (such as 'A', 'B'), not numbers.",
        ),
        ({"weight": "race"}, "weight column 'race' holds text (such as 'A', 'B'), not numbers."),
        (
            {"predictions": {"m": {"column": "race", "kind": "score"}}},
            "score column 'race' (model 'm') holds text (such as 'A', 'B'), not numbers; convert it; "
            "words for missing values need missing_values=['A'].",
        ),
        ({"outcome": None, "positive": 1}, "`positive` is 1 but no `outcome` column is named."),
        ({"positive": "yes"}, "`positive` is 'yes', but outcome column 'hired' holds numbers."),
        (
            {"predictions": {"m": {"column": "hired", "selected": "hired"}}},
            "`selected` is 'hired', but decision column 'hired' holds numbers.",
        ),
    ],
)
def test_names_and_types(roles: dict[str, Any], sentence: str) -> None:
    assert problems(**roles) == [sentence]


@pytest.mark.parametrize("engine", ENGINES)
def test_types_in_words_on_every_engine(engine: str) -> None:
    flags: Columns = {"risk": [True, False, True, False], "weight": [dt.date(2020, 1, 1 + day) for day in range(4)]}
    assert problems(flags, ENGINES[engine], predictions={"m": {"column": "risk", "kind": "score"}}) == [
        "score column 'risk' (model 'm') holds true/false values (such as 'false', 'true'), not numbers.",
        "weight column 'weight' holds dates (such as '2020-01-01', '2020-01-02', '2020-01-03', '2020-01-04'), "
        "not numbers.",
    ]


@pytest.mark.parametrize("engine", ["pandas", "polars", "lazy", "arrow", "duckdb"])
@pytest.mark.parametrize(("role", "column"), [("group", "race"), ("outcome", "hired"), ("prediction", "risk")])
def test_nested_values(engine: str, role: str, column: str) -> None:
    assert problems({column: [[1], [2], [1, 2], []]}, ENGINES[engine]) == [
        f"{role} column {column!r} holds times, nested, binary, complex or 128-bit values; "
        "give a column of plain values."
    ]


def test_values_that_positive_can_name() -> None:
    cases: list[tuple[list[Any], Any]] = [
        ([1, 0, 1, 0], "1"),
        ([1.0, 0.0, 1.0, 0.0], True),
        ([True, False, True, False], "yes"),
        ([True, False, True, False], 1),
        (["1", "0", "1", "0"], 1),
        (["a", "b", "a", "b"], "a"),
        ([2, 3, 2, 3], 2),
    ]
    for outcome, positive in cases:
        for make in (ENGINES[name] for name in ("mapping", "pandas", "lazy", "arrow")):
            data = make({"race": PEOPLE["race"], "hired": outcome, "risk": PEOPLE["risk"]})
            cells = Table(data, outcome="hired", positive=positive, groups="race", predictions="risk").cells
            assert cells.n[cells.codes["outcome"] == 1].sum() == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_positive_that_never_occurs(engine: str) -> None:
    assert problems({"hired": ["yes", "no", "no", "yes"]}, ENGINES[engine], positive="Yes") == [
        "`positive` is 'Yes', which outcome column 'hired' never holds; it holds 'no', 'yes'."
    ]


def test_selected_that_never_occurs() -> None:
    assert problems(predictions={"m": {"column": "age", "selected": 31}}) == [
        "`selected` is 31, which decision column 'age' never holds; it holds '20', '30', '40', '50'."
    ]


# Rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_no_rows(engine: str) -> None:
    empty: Columns = {name: [] for name in PEOPLE}
    make = ENGINES[engine]
    if engine in ("arrow", "duckdb"):
        typed = pa.table(PEOPLE).slice(0, 0)
        make = (lambda _: typed) if engine == "arrow" else (lambda _: duckdb.connect().from_arrow(typed))
    assert problems(empty, make) == ["the data has no rows."]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("gap", [None, math.nan])
def test_missing_scores_and_outcomes(engine: str, gap: float | None) -> None:
    """A null and a not-a-number are the same on all engines; only a relation of others has no order of rows."""
    told = problems({"risk": [gap, 0.5, gap, 0.1], "hired": [1, 0, 1, None]}, ENGINES[engine])
    rows = ("", "") if engine == "duckdb" else (" (row 4)", " (rows 1, 3)")
    assert told == [
        f"outcome column 'hired' is missing in 1 row of 4{rows[0]}; fill it, or drop it with missing='drop'.",
        f"prediction column 'risk' is missing in 2 rows of 4{rows[1]}; fill them, or drop them with missing='drop'.",
    ]


def test_many_missing_rows_are_cut_short() -> None:
    data = {name: values * 3 for name, values in PEOPLE.items()} | {"hired": [None] * 7 + [1, 0] * 2 + [1]}
    data["person"] = list(range(12))
    assert problems(data) == [
        "outcome column 'hired' is missing in 7 rows of 12 (rows 1, 2, 3, 4, 5, ...); "
        "fill them, or drop them with missing='drop'."
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_missing_rows_can_be_dropped(engine: str) -> None:
    data = PEOPLE | {"risk": [0.1, None, 0.3, 0.4], "hired": [1.0, 0.0, math.nan, 1.0]}
    table = Table(ENGINES[engine](data), **ROLES, missing="drop")
    assert (table.rows, table.dropped) == (2, 2)
    assert table.score_rows("model").score.tolist() == [0.1, 0.4]


def test_no_row_left_after_dropping() -> None:
    data: Columns = {"risk": [0.1, 0.2, None, None], "hired": [None, None, 1, 0]}
    assert problems(data, missing="drop") == [
        "no rows are left after dropping those with a missing outcome or prediction."
    ]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("missing", ["error", "drop"])
def test_columns_without_any_value(engine: str, missing: str) -> None:
    nothing: Columns = dict.fromkeys(["hired", "race", "risk", "weight"], [None] * 4)
    assert problems(nothing, ENGINES[engine], missing=missing) == [
        "weight column 'weight' has no values: every row is missing.",
        "outcome column 'hired' has no values: every row is missing.",
        "prediction column 'risk' has no values: every row is missing.",
        "group column 'race' has no values: every row is missing.",
    ]


def test_a_score_without_any_value() -> None:
    assert problems({"risk": [None] * 4}, predictions={"m": {"column": "risk", "kind": "score"}})[0] == (
        "score column 'risk' (model 'm') has no values: every row is missing."
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_blank_text_is_missing(engine: str) -> None:
    data = PEOPLE | {"race": ["A", " ", "B", "\u00a0\t"], "hired": ["yes", "no", "YES ", " No"]}
    cells = Table(ENGINES[engine](data), **ROLES).cells
    assert cells.labels["race"] == ("A", "B", "(missing)")
    assert cells.n[cells.codes["race"] == 2].sum() == 2
    told = problems({"hired": ["yes", "", "no", " "]}, ENGINES[engine])
    assert told[0].startswith("outcome column 'hired' is missing in 2 rows of 4")


def test_the_word_missing_is_missing() -> None:
    cells = Table(PEOPLE | {"race": ["A", "(missing)", "B", None]}, **ROLES).cells
    assert cells.labels["race"] == ("A", "B", "(missing)")
    assert cells.joint(["race"])[1] == ("A", "B", "(missing)")


@pytest.mark.parametrize("engine", ENGINES)
def test_outcomes_and_decisions_of_other_values(engine: str) -> None:
    assert problems({"hired": ["yes", "maybe", "no", "often"]}, ENGINES[engine]) == [
        "outcome column 'hired' has 2 rows that are neither 0/1 nor yes/no (such as 'maybe', 'often'); "
        "name the value that counts with `positive`."
    ]
    assert problems({"hired": [1, 0, 2, 1]}, ENGINES[engine], outcome=None, predictions={"m": "hired"}) == [
        "decision column 'hired' has 1 row that is neither 0/1 nor yes/no (such as '2'); "
        "name the value that counts with `selected`, for a score give kind='score' and its range, or for a number such "
        "as a salary kind='number'."
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_scores_outside_their_range(engine: str) -> None:
    assert problems({"risk": [0.5, math.inf, -math.inf, 1.5]}, ENGINES[engine]) == [
        "score column 'risk' lies outside 0 to 1 in 3 rows (such as '-inf', '1.5', 'inf'); "
        "rescale it, give its range=(lowest, highest) and `threshold`, or for a number such as a salary say "
        "kind='number'."
    ]
    wide = {"m": {"column": "age", "range": [25, 45], "threshold": 30}}
    assert problems(make=ENGINES[engine], predictions=wide) == [
        "score column 'age' lies outside 25 to 45 in 2 rows (such as '20', '50'); "
        "rescale it, give its range=(lowest, highest) and `threshold`, or for a number such as a salary say "
        "kind='number'."
    ]


def test_many_examples_are_cut_short() -> None:
    data = {name: values * 2 for name, values in PEOPLE.items()} | {"person": list(range(8)), "risk": list(range(1, 9))}
    told = problems(data, predictions={"m": {"column": "risk", "kind": "score"}})
    assert "in 7 rows (such as '2', '3', '4', '5', '6', ...)" in told[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_one_group(engine: str) -> None:
    assert problems({"race": ["A", None, "A", "A"]}, ENGINES[engine]) == [
        "group column 'race' has only one group ('A'); there is nothing to compare: leave it out."
    ]


def test_cut_points_that_leave_one_group() -> None:
    assert problems(groups=["age"], cuts={"age": [60]}) == [
        "group column 'age' has only one group ('under 60'); there is nothing to compare: leave it out."
    ]


def long_table(rows: int) -> Columns:
    return {
        "person": list(range(rows)),
        "race": [f"r{row}" for row in range(rows)],
        "sex": ["F", "M"] * (rows // 2),
        "age": list(range(rows)),
        "hired": [1, 0] * (rows // 2),
        "risk": [0.5] * rows,
        "weight": [1.0] * rows,
    }


def test_words_for_missing_are_no_outcome_and_count_as_no_only_with_a_note() -> None:
    data = {"race": ["A", "B"] * 20, "y": ["1", "0", "N/A", "1"] * 10, "hired": [1, 0] * 20}
    with pytest.raises(DataError, match=r"if that means missing, say missing_values=\['N/A'\]; if not, name"):
        Table(data, groups=["race"], outcome="y", predictions="hired")
    table = Table(data, groups=["race"], outcome="y", positive=1, predictions="hired")
    assert "y: 'N/A' is treated as not 1; if it means missing, add it to `missing_values`." in [
        note.text for note in table.source.notes
    ]


def test_a_number_with_many_values_needs_cut_points() -> None:
    sentence = (
        "group column 'age' is numeric with 22 distinct values; "
        "give cut points, for example cuts={'age': [7, 14]}; an identifier groups nobody: leave it out."
    )
    assert problems(long_table(22), groups=["age"]) == [sentence]
    assert problems(long_table(22), groups=[["sex", "age"]]) == [sentence]
    assert Table(long_table(20), **(ROLES | {"groups": ["age"]})).rows == 20


def test_five_thousand_groups() -> None:
    sentence = "{} has 5,000 groups, more than 1,000; is it an identifier? Choose something coarser."
    assert problems(long_table(5000)) == [sentence.format("group column 'race'")]
    assert problems(long_table(5000), groups=[["race", "sex"]]) == [sentence.format("group column 'race'")]
    data = long_table(5000) | {
        "race": [f"r{row % 100}" for row in range(5000)],
        "sex": [f"s{r // 100}" for r in range(5000)],
    }
    assert problems(data, groups=[["race", "sex"]]) == [sentence.format("intersection 'race × sex'")]


def test_more_combinations_than_can_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.table.checking.MAX_CELLS", 100)
    assert problems(long_table(5000)) == [
        "group column 'race' has 5,000 groups, more than 1,000; is it an identifier? Choose something coarser."
    ]
    data = long_table(900) | {"weight": [-1.0] * 900}
    assert problems(data, groups=["race", "sex"]) == [
        "weight column 'weight' is negative in 900 rows of 900 (rows 1, 2, 3, 4, 5, ...), down to -1; "
        "weights must be 0 or more.",
        "the group columns have more than 1,000,000 combinations ('race', 'sex'); "
        "leave some of them out, or choose coarser ones.",
    ]


def test_intersections() -> None:
    assert problems({"race": ["A", "B", None, None], "sex": [None, None, "F", "M"]}, groups=[["race", "sex"]]) == [
        "intersection 'race × sex' has no values: some part is missing in every row."
    ]
    assert problems({"race": ["A", "A × B", "A", "C"], "sex": ["B × C", "C", "D", "D"]}, groups=[["race", "sex"]]) == [
        "intersection 'race × sex' has different groups of one name; values must not contain '×'."
    ]


# Ids and weights ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_ids(engine: str) -> None:
    told = problems({"person": ["x", None, "y", "x"]}, ENGINES[engine])
    rows = "" if engine == "duckdb" else " (row 2)"
    assert told == [
        f"id column 'person' is missing in 1 row of 4{rows}; each person must have an id.",
        "id column 'person' repeats: 1 id is in 2 rows of 4 (for example 'x'); each person must have one row."
        + CLUSTER,
    ]
    assert problems({"person": [7, 7, 8, 8]}, ENGINES[engine]) == [
        "id column 'person' repeats: 2 ids are in 4 rows of 4 (for example '7'); each person must have one row."
        + CLUSTER
    ]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("weights", "sentences"),
    [
        ([1.0, None, math.nan, 2.0], ["is missing in 2 rows of 4 (rows 2, 3); fill them."]),
        (
            [1.0, -2.0, -0.5, None],
            [
                "is missing in 1 row of 4 (row 4); fill it.",
                "is negative in 2 rows of 4 (rows 2, 3), down to -2; weights must be 0 or more.",
            ],
        ),
        ([0.0, 0.0, 0.0, 0.0], ["is 0 in every row; some weight must be above 0."]),
        ([1.0, math.inf, 1.0, 1.0], ["has inf as its largest weight; rescale it to about 1."]),
        ([1e-200, 1e-201, 0.0, 0.0], ["has 1e-200 as its largest weight; rescale it to about 1."]),
    ],
)
def test_weights(engine: str, weights: list[float | None], sentences: list[str]) -> None:
    told = problems({"weight": weights}, ENGINES[engine])
    start = "weight column 'weight' "
    if engine == "duckdb":
        sentences = [sentence.replace(" (rows 2, 3)", "").replace(" (row 4)", "") for sentence in sentences]
    assert told == [start + sentence for sentence in sentences]


def test_weights_that_are_far_apart() -> None:
    assert problems({"weight": [1.0, 1e-9, 2.0, 3.0]}) == [
        "the weights of column 'weight' run from 1e-09 to 3, over 1e+08 times apart: "
        "next to the heaviest, the lightest people count for nothing; check them."
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_weight_of_zero_counts_as_nobody(engine: str) -> None:
    data = {name: [*values, values[0]] for name, values in PEOPLE.items()} | {"weight": [0.0, 1.0, 1.0, 1.0, 0.0]}
    table = Table(ENGINES[engine](data), **(ROLES | {"id": None}))
    assert table.rows == 3
    assert tuple(map(str, table.source.notes)) == ("2 rows have a weight of 0 and count as nobody.",)
    told = problems(data | {"risk": [None, 0.5, None, 0.1, None]}, ENGINES[engine], id=None)
    rows = "" if engine == "duckdb" else " (row 3)"
    assert told == [
        f"prediction column 'risk' is missing in 1 row of 3{rows}; fill it, or drop it with missing='drop'."
    ]


# All at once ----------------------------------------------------------------------------------------------


def test_every_problem_at_once() -> None:
    data = PEOPLE | {
        "person": [1, 1, 2, 3],
        "race": ["A"] * 4,
        "hired": [1, 0, 5, None],
        "risk": [0.1, 7.0, None, 0.2],
        "weight": [1.0, -1.0, 1.0, 1.0],
    }
    told = problems(data, groups=["race", "sexx", ["race", "sexx"]], predictions={"a": "risk", "b": "rsik"})
    assert told == [
        "group column 'sexx' is not in the data; did you mean 'sex'?",
        "prediction column 'rsik' is not in the data; did you mean 'risk'?",
        "weight column 'weight' is negative in 1 row of 4 (row 2), down to -1; weights must be 0 or more.",
        "outcome column 'hired' has 1 row that is neither 0/1 nor yes/no (such as '5'); "
        "name the value that counts with `positive`, or for a number such as a salary say outcome_kind='number'.",
        "score column 'risk' lies outside 0 to 1 in 1 row (such as '7'); "
        "rescale it, give its range=(lowest, highest) and `threshold`, or for a number such as a salary say "
        "kind='number'.",
        "outcome column 'hired' is missing in 1 row of 4 (row 4); fill it, or drop it with missing='drop'.",
        "prediction column 'risk' is missing in 1 row of 4 (row 3); fill it, or drop it with missing='drop'.",
        "group column 'race' has only one group ('A'); there is nothing to compare: leave it out.",
        "id column 'person' repeats: 1 id is in 2 rows of 4 (for example '1'); each person must have one row."
        + CLUSTER,
    ]


def test_the_error_lists_its_problems() -> None:
    with pytest.raises(DataError) as caught:
        Table(PEOPLE, groups=["rac", "sx"], predictions="risk")
    assert str(caught.value) == (
        "2 problems with the data:\n"
        "  - group column 'rac' is not in the data; did you mean 'race'?\n"
        "  - group column 'sx' is not in the data; did you mean 'sex'?"
    )


def test_odd_labels_are_remarked_on() -> None:
    data = {
        "sex": ["Female", "female", "FEMALE ", "Male"] * 100,
        "origin": ["White", "N/A"] * 200,
        "age": ([str(20 + i) for i in range(30)] + ["unknown"] * 10) * 10,
        "y": [0, 1, 1, 0] * 100,
    }
    notes = " ".join(map(str, Table(data, groups=["sex", "origin", "age"], predictions="y").source.notes))
    assert "sex: 'FEMALE', 'Female', 'female' differ only in capitals or spaces; they are 3 groups here." in notes
    assert "sex: blanks around values were trimmed (such as 'FEMALE ')." in notes
    assert "origin: 'N/A' looks like a word for missing; if it is, name it among `missing_values`." in notes
    assert "age: 30 of 31 groups are numbers; 'unknown' makes it text without cut points." in notes
