"""The compact table of a result: groups as rows, metrics as columns."""

from __future__ import annotations

import pytest

import evenhand as eh
from evenhand.core.result import answer_line
from evenhand.errors import ConfigError
from evenhand.messages.formats import show, show_interval

DATA = {
    "sex": ["F", "M"] * 50 + ["X"] * 3,
    "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10 + [1, 0, 1],
    "y": [1, 1, 0, 0] * 25 + [1, 0, 1],
    "s": [0.2, 0.8] * 50 + [0.5] * 3,
}


@pytest.fixture(scope="module")
def result() -> eh.ParityResult:
    return eh.parity(eh.Table(DATA, groups="sex", outcome="y", predictions={"one": "hired", "two": "s"}), resamples=100)


def test_its_numbers_are_those_of_the_values(result: eh.ParityResult) -> None:
    table = result.table("tpr", model="one")
    assert table.columns == ("Group", "n", "True positive rate")
    for group, _, text in table.texts():
        value = result.get("values", model="one", group=group, metric="tpr")
        told = f"{show(value.value, 'percent')} ({show_interval(value.low, value.high, 'points')})"
        assert text == told + (" *" if group == "X" else "")  # too few people to be compared


def test_columns_that_do_not_vary_are_left_out(result: eh.ParityResult) -> None:
    assert result.table().columns[:3] == ("Model", "Group", "n")
    assert "Grouping" not in result.table(grouping="sex").columns
    assert len(result.table().rows) == 6


def test_unknown_names_and_results_without_groups_are_told(result: eh.ParityResult) -> None:
    with pytest.raises(ConfigError, match="did you mean 'tpr'"):
        result.table("tprr")
    with pytest.raises(ConfigError, match="has no values of groups to tabulate"):
        result.table(grouping="race")


def test_a_printed_result_starts_with_the_answer() -> None:
    table = eh.Table(DATA, groups="sex", predictions="hired")
    limits = [{"metric": "selection_rate", "max": limit} for limit in (0.01, 0.9)]
    judged = eh.parity(table, metrics="selection_rate", thresholds=limits)
    assert str(judged).startswith("Parity: 1 of 2 limits ")
    assert "1 of 2 limits met" in answer_line(judged.findings)
    plain = eh.parity(table, metrics="selection_rate")
    assert str(plain).startswith("Parity: 0 of 1 tested finding without a limit beyond chance.")
