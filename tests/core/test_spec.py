"""What all settings share: names, code by its name, other confidences, signatures and documented parameters."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
import pytest
from pydantic import Field, ValidationError

import evenhand as eh
from evenhand.core.metrics import Limit, Metric
from evenhand.core.spec import Code, Names, Spec, audit_function, code_name, require_table, settings_of
from evenhand.errors import ConfigError
from evenhand.settings import named_once


class Small(Spec):
    """A setting that must be given, one with a default, one without."""

    audit: ClassVar[str] = "small"
    column_settings: ClassVar[tuple[str, ...]] = ("score",)

    depth: int = Field(3, description="How deep.")
    score: Names = Field(description="The columns of the scores.")
    weigh: Code = Field(None, description="A function.")


def made() -> Any:
    """Return a function with the signature of the settings, derived anew."""

    @audit_function(Small)
    def small(table: eh.Table, **settings: Any) -> tuple[eh.Table, dict[str, Any]]:
        """Return what it was given.

        Parameters
        ----------
        {settings}
        """
        return table, settings

    return small


def test_the_signature_and_the_words_are_those_of_the_settings() -> None:
    small = made()
    parameters = inspect.signature(small).parameters
    assert list(parameters) == ["table", "score", "depth", "weigh", "confidence", "seed", "min_count", "thresholds"]
    assert parameters["score"].default is inspect.Parameter.empty
    assert (parameters["depth"].default, parameters["confidence"].default) == (3, 0.95)
    assert (parameters["seed"].default, parameters["min_count"].default) == (0, 10)
    words = (small.__doc__ or "").splitlines()
    assert "        How deep. Default: 3." in words
    assert words[words.index("    score") + 1] == "        The columns of the scores."
    assert words[words.index("    weigh") + 1] == "        A function."
    assert max(map(len, words)) <= 116
    assert [*settings_of(Small)][:3] == ["depth", "score", "weigh"]


def test_arrays_in_place_of_columns_become_columns_of_the_table() -> None:
    frame = pd.DataFrame({"sex": ["F", "M"], "a": [1, 2]})
    table, small = eh.Table(frame, groups=["sex"]), made()
    same, named = small(table, score="a", depth=1)
    assert same is table
    assert named == {"score": "a", "depth": 1}
    more, named = small(table, score=np.array([0.5, 0.25]))
    assert more is not table
    assert more.data[named["score"]].tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    ("value", "function", "said"),
    [
        (pd.DataFrame({"a": [1]}), "parity", r"got a DataFrame\. .*: eh\.parity\(eh\.Table\(df, groups"),
        ("people.csv", "parity", r"got a str\. .*eh\.Table\('people\.csv', groups"),
        ("x" * 59, "parity", r"eh\.Table\('x{59}', groups"),
        ("x" * 60, "parity", r"eh\.Table\(data, groups"),
        (3, "reliability", r"got an int\. .*: eh\.reliability\(model, eh\.Table\(data, groups"),
    ],
)
def test_data_without_roles_is_refused_with_the_line_that_gives_them(value: Any, function: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        require_table(value, function, "model, " if function == "reliability" else "")


def test_a_call_that_lacks_an_argument_is_refused_in_one_sentence() -> None:
    functions = cast(Any, eh)
    with pytest.raises(ConfigError, match=r"`parity\(table, \*\*settings\)`: missing a required argument: 'table'\."):
        functions.parity()
    with pytest.raises(ConfigError, match=r"too many positional arguments"):
        functions.parity(1, 2)


def test_a_file_of_data_in_place_of_a_table_is_refused_with_the_line_that_opens_it() -> None:
    with pytest.raises(ConfigError, match=r"eh\.audit needs a table .*eh\.Table\('people\.csv', groups"):
        eh.audit("people.csv")


@pytest.mark.parametrize("function", ["parity", "agreement"])
def test_an_empty_list_of_metrics_is_refused(function: str) -> None:
    table = eh.Table({"sex": ["F", "M"] * 9, "hired": [1, 0, 1] * 6}, groups="sex", predictions="hired")
    raters = {} if function == "parity" else {"raters": ["hired", "hired"]}
    with pytest.raises(ConfigError, match=r"`metrics` in the arguments of .*: must not be empty\."):
        getattr(eh, function)(table, metrics=[], **raters)


def test_the_line_that_gives_roles_has_the_arguments_before_the_table() -> None:
    with pytest.raises(ConfigError, match=r"eh\.reliability\(model, eh\.Table\(data, groups"):
        eh.reliability("logistic", cast(Any, 3), features=["a"], noise={"a": 1})


def test_code_is_a_function_and_in_a_record_its_name() -> None:
    assert code_name(None) is None
    assert code_name("module:name") == "module:name"
    assert code_name(named_once) == "evenhand.settings:named_once"
    assert code_name(Metric(name="a", title="A", unit="share")) == "evenhand.core.metrics:Metric"
    own = Small(score="a", weigh=abs)
    assert own.without_code().weigh == "builtins:abs"
    assert own.without_code().score == ("a",)
    with pytest.raises(ValidationError, match="must be a function; got 'builtins:abs'"):
        Small(score="a", weigh="builtins:abs")


@pytest.mark.parametrize(("confidence", "fits"), [(0.001, True), (0.999, True), (0.0005, False), (1.0, False)])
def test_a_confidence_lies_between_0_and_1(confidence: float, fits: bool) -> None:
    if fits:
        assert Small(score="a", confidence=confidence).finding_alpha == pytest.approx(1 - confidence)
    else:
        with pytest.raises(ValidationError):
            Small(score="a", confidence=confidence)


def test_the_same_settings_with_another_confidence() -> None:
    own = Small(score=("a", "b"), seed=3)
    assert own.with_confidence(0.5) == own.model_copy(update={"confidence": 0.5})
    assert named_once("score", ("a", "b")) == ("a", "b")
    with pytest.raises(ValueError, match="`score` names the column 'b' twice"):
        named_once("score", ("a", "b", "b"))


@pytest.mark.parametrize(
    ("title", "inside"),
    [
        ("True positive rate", "true positive rate"),
        ("PABAK", "PABAK"),
        ("Cohen's kappa", "Cohen's kappa"),
        ("F score", "F score"),
        ("Brier score", "Brier score"),
        ("", ""),
    ],
)
def test_titles_inside_a_sentence_keep_the_capitals_of_names(title: str, inside: str) -> None:
    assert Metric(name="m", title=title, unit="share").title_in_sentence == inside


def test_the_style_of_a_number_follows_from_its_unit() -> None:
    share, index = (Metric(name="m", title="M", unit=unit) for unit in ("share", "index"))
    assert (share.style(), index.style()) == ("percent", "number")
    assert (share.style("difference"), share.style("difference", signed=True)) == ("points", "signed_points")
    assert (index.style("difference"), index.style("difference", signed=True)) == ("number", "signed")
    assert (share.style("ratio"), share.style("ratio", signed=True)) == ("number", "number")


def test_a_limit_is_neither_met_by_all_nor_by_none() -> None:
    most, least = Limit("gap", "max", "difference"), Limit("value", "min")
    assert [most.allows(limit) for limit in (-0.1, 0.0, 0.5, 1.0)] == [False, True, True, False]
    assert [least.allows(limit) for limit in (0.0, 0.5, 1.0, 1.1)] == [False, True, True, False]
    assert most.in_words() == "max= of 0 or more and below 1 (a difference)"
    assert least.in_words() == "min= above 0 and at most 1"
    assert Limit("value", "max", range=(0.0, float("inf"))).in_words() == "max= of 0 or more"
    assert Limit("value", "min", range=(0.0, float("inf"))).in_words() == "min= above 0"
