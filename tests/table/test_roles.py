"""Roles: what may be given, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.errors import ConfigError
from evenhand.table import Prediction, Roles, Table
from evenhand.table.roles import make_roles

DATA = {"g": ["a", "b"] * 4, "h": ["x", "x", "y", "y"] * 2, "age": [20, 30, 40, 50] * 2, "d": [1, 0, 1, 1] * 2}


def refusal(**roles: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        make_roles(**roles)
    return str(caught.value)


def test_short_forms() -> None:
    assert make_roles(groups="g").groups == (("g",),)
    assert make_roles(groups=["g", ["g", "h"]]).groups == (("g",), ("g", "h"))
    assert make_roles(groups=["g", ["g", "h"], ("h", "g")]).group_columns == ("g", "h")
    assert list(make_roles(predictions="s").predictions) == ["s"]
    assert list(make_roles(predictions=["s", "t"]).predictions) == ["s", "t"]
    given = {"m": Prediction(column="s", threshold=0.3), "n": "t", "o": {"column": "u", "favourable": "selected"}}
    predictions = make_roles(predictions=given, threshold=0.7, favourable="not_selected").predictions
    assert [(p.column, p.threshold, p.favourable) for p in predictions.values()] == [
        ("s", 0.3, None),
        ("t", 0.7, "not_selected"),
        ("u", 0.7, "selected"),
    ]


@pytest.mark.parametrize(
    ("roles", "sentence"),
    [
        ({"groups": ["g", "g"]}, "`groups` in the roles of the table: `groups` names 'g' twice."),
        ({"groups": [["g", "g"]]}, "`groups` in the roles of the table: `groups` names 'g × g' twice."),
        ({"groups": ["g × h", ["g", "h"]]}, "`groups` in the roles of the table: `groups` names 'g × h' twice."),
        (
            {"groups": [[]]},
            "`groups.0` in the roles of the table: must not be empty.",
        ),
        ({"groups": [1]}, "`groups.0` in the roles of the table: must be a list; got 1."),
        (
            {"cuts": {"age": [3, 2]}},
            "`cuts` in the roles of the table: the cut points of 'age' must be finite and rise; got [3.0, 2.0].",
        ),
        (
            {"cuts": {"age": [1, float("inf")]}},
            "`cuts` in the roles of the table: the cut points of 'age' must be finite and rise; got [1.0, inf].",
        ),
        (
            {"predictions": {"m": {"column": "s", "range": [1, 0]}}},
            "`predictions.m` in the roles of the table: `range` must be (lowest, highest); got (1, 0).",
        ),
        (
            {"predictions": {"m": {"column": "s", "range": [0, float("inf")]}}},
            "`predictions.m` in the roles of the table: `range` must be finite and of a usual size; got (0, inf): "
            "rescale the score.",
        ),
        (
            {"predictions": {"m": {"column": "s", "range": [0, 1e-300]}}},
            "`predictions.m` in the roles of the table: `range` must be finite and of a usual size; got (0, 1e-300): "
            "rescale the score.",
        ),
        (
            {"predictions": {"m": {"column": "s", "threshold": 4}}},
            "`predictions.m` in the roles of the table: `threshold` 4 lies outside the score range 0 to 1; "
            "if scores have another one, give their `range` too.",
        ),
        (
            {"predictions": {"m": {"column": "s", "treshold": 0.4}}},
            "`predictions.m.treshold` in the roles of the table: there is no such setting; did you mean 'threshold'?",
        ),
        (
            {"predictions": {"m": {}}},
            "`predictions.m.column` in the roles of the table: it is required and was not given.",
        ),
        ({"missing": "dorp"}, "`missing` in the roles of the table: must be 'error' or 'drop'; got 'dorp'."),
        (
            {"favourable": "yes", "predictions": "s"},
            "`predictions.s.favourable` in the roles of the table: must be 'selected', 'not_selected', "
            "'higher' or 'lower'; got 'yes'.",
        ),
    ],
)
def test_bad_roles(roles: dict[str, Any], sentence: str) -> None:
    assert refusal(**roles) == sentence


def test_roles_are_frozen_and_start_empty() -> None:
    first = Roles()
    assert (first.cuts, first.predictions, first.groups) == ({}, {}, ())
    with pytest.raises(ValueError, match="frozen"):
        first.id = "x"  # type: ignore[misc]


def test_what_a_table_answers() -> None:
    table = Table(DATA, groups=["g", ["g", "h"]], predictions={"m": "d"})
    assert table.models == ("m",)
    assert table.groupings == {"g": ("g",), "g × h": ("g", "h")}
    assert table.backend is None
    assert not table.has_scores("m")
    assert table.counts("m") is table.cells
    assert table.counts("m", within=["h"]) is table.cells
    assert table.counts("m", within=["age"]) is table.counts("m", within=["age"])
    with pytest.raises(ConfigError, match=r"there is no model 'x'; known names: 'm'"):
        table.prediction("x")
    with pytest.raises(ConfigError, match=r"`within` column 'agee' is not in the data; did you mean 'age'\?"):
        table.counts("m", within=["agee"])


@pytest.mark.parametrize(
    ("values", "settings", "scores"),
    [
        ([0, 1, 1, 0], {}, False),
        ([0.0, 1.0, 0.5, 0.25], {}, True),
        (["yes", "no", "yes", "no"], {}, False),
        ([True, False, True, False], {}, False),
        ([0, 1, 1, 0], {"kind": "score"}, True),
        ([0.0, 1.0, 1.0, 0.0], {"kind": "decision"}, False),
        ([1, 5, 10, 3], {"range": [1, 10], "threshold": 4}, True),
        ([1.5, 2.5, 1.5, 2.5], {"selected": 2.5}, False),
    ],
)
def test_scores_or_decisions(values: list[Any], settings: dict[str, Any], scores: bool) -> None:
    table = Table({"g": ["a", "b"] * 2, "s": values}, groups="g", predictions={"m": {"column": "s", **settings}})
    assert table.has_scores("m") is scores


def test_the_digest_is_that_of_the_data() -> None:
    first, second = (Table(DATA, groups="g", predictions={"m": "d"}) for _ in range(2))
    assert first.digest() == second.digest()
    other = Table(DATA | {"d": [0, 1, 1, 1] * 2}, groups="g", predictions={"m": "d"})
    assert first.digest() != other.digest()
