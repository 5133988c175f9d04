"""Asking a result for its records: the one that is meant, or a sentence that says what to name."""

from __future__ import annotations

import re

import pytest

import evenhand as eh
from evenhand.errors import ConfigError

DATA = {
    "sex": ["F", "M"] * 60,
    "age": ["old", "old", "young"] * 40,
    "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 12,
    "good": [1, 0, 1, 1, 0, 0] * 20,
}


@pytest.fixture(scope="module")
def result() -> eh.ParityResult:
    table = eh.Table(DATA, outcome="good", groups=["sex", "age"], predictions="hired")
    return eh.parity(table, metrics=["selection_rate", "tpr"], resamples=200)


def test_what_is_not_named_is_all_people_the_difference_and_the_worst_pair(result: eh.ParityResult) -> None:
    found = result.get("gaps", metric="tpr", grouping="sex")
    assert (found.kind, found.against, found.stratum) == ("difference", "worst_pair", None)
    ratio = result.get("gaps", metric="tpr", grouping="sex", kind="ratio", against="worst_pair")
    assert (ratio.kind, ratio.against) == ("ratio", "worst_pair")
    assert result.get("values", metric="tpr", grouping="sex", group="F").group == "F"


def test_several_that_fit_are_refused_with_what_tells_them_apart(result: eh.ParityResult) -> None:
    with pytest.raises(ConfigError) as told:
        result.get("values", metric="tpr")
    several = re.fullmatch(
        r"(\d+) records of 'values' fit metric='tpr'; name more of its columns, such as (.+)\.", str(told.value)
    )
    assert several is not None
    assert int(several[1]) == len(result.rows("values", metric="tpr"))
    named = several[2].split(", ")
    assert "grouping" in named
    assert "metric" not in named
    assert "n" in named or len(named) == 6
    for name in named:
        assert len({getattr(record, name) for record in result.rows("values", metric="tpr")}) > 1


def test_nothing_that_fits_is_told_with_the_nearest_name(result: eh.ParityResult) -> None:
    with pytest.raises(ConfigError, match="`group` got 'Fm'; did you mean"):
        result.get("values", metric="tpr", group="Fm")
    with pytest.raises(ConfigError, match="no record of 'values' fits grouping='sex', group='old'"):
        result.get("values", grouping="sex", group="old")
    assert result.rows("values", group=["F"]) == ()  # type: ignore[call-overload]
    assert result.rows("values", metric="tpr", group=["F"]) == ()  # type: ignore[call-overload]


def test_rows_have_all_the_columns_asked_for_in_the_order_of_the_table(result: eh.ParityResult) -> None:
    every = [r for r in result.values if r.metric == "tpr" and r.grouping == "age"]
    assert list(result.rows("values", metric="tpr", grouping="age")) == every
    assert result.rows("values") == result.values
    assert result.groupings == ["sex", "age"]


def test_the_verdict_stands_behind_a_headline_that_has_a_threshold() -> None:
    table = eh.Table(DATA, groups="sex", predictions="hired")
    limited = eh.parity(table, metrics=["selection_rate"], thresholds=[{"metric": "selection_rate", "max": 0.99}])
    assert "[meets the threshold]" in limited.summary()
    assert "[" not in eh.parity(table, metrics=["selection_rate"]).summary()


def test_a_table_is_a_frame_and_the_first_one_is_the_main_one(result: eh.ParityResult) -> None:
    assert len(result.to_frame()) == len(getattr(result, result.main_table))
    assert len(result.to_frame("gaps")) == len(result.gaps)
    assert list(result.tables)[-1] == "left_out"


def test_who_is_left_out_stands_last() -> None:
    assert list(eh.ParityResult.record_types())[-1] == "left_out"
