"""The tables of the effort paper's human study, from the figures it prints."""

from __future__ import annotations

import pytest

import evenhand as eh
from evenhand.replication.effort import CELLS, comparisons, replicate_effort, shed_results, wald_equal

pytestmark = pytest.mark.replication

# Williams' t and Steiger's own z from the correlations of table 2, computed independently.
OTHERS = {
    ("CLUE", "input"): (6.9714, 6.9146),
    ("CLUE", "output"): (5.4164, 5.3624),
    ("SHED", "input"): (6.6093, 6.5610),
    ("SHED", "output"): (7.8773, 7.6914),
}


def test_every_number_that_follows_from_the_printed_tables_agrees() -> None:
    found = replicate_effort()
    printed = [line for line in found.lines if not line.item.startswith("Table 1") or "weight of effort" in line.what]
    assert len([line for line in printed if line.item == "Table 3"]) == 8
    assert [line for line in printed if not line.agrees] == []
    assert {claim.item: claim.verdict for claim in found.claims} == {
        "Table 2": "holds",
        "Table 3": "holds in part",
        "Table 4": "does not hold",
        "Footnotes 15, 16": "does not hold",
        "Footnote 16": "does not hold",
    }


@pytest.mark.parametrize("cell", CELLS)
def test_the_tests_that_the_paper_does_not_print(cell: tuple[str, str]) -> None:
    found = comparisons(*cell)
    assert (found["williams"], found["steiger"]) == pytest.approx(OTHERS[cell], abs=5e-5)


@pytest.mark.parametrize("cell", CELLS)
def test_the_printed_wald_test_lies_within_what_rounding_allows(cell: tuple[str, str]) -> None:
    line = next(line for line in replicate_effort().lines if line.what == f"{cell[0]}, {cell[1]}: Wald")
    assert wald_equal(*cell, 0.1, 5e-5) < line.printed < wald_equal(*cell, -0.1, -5e-5)


@pytest.mark.slow
def test_the_households_of_the_survey_give_tables_1_and_6() -> None:
    """On invented households in the survey's form: the numbers differ, the tables and the figure are whole."""
    households = eh.datasets.make_households(400, seed=3, backend="pandas").rename(
        columns={"missed_payment": "unpaid_balance"}
    )
    households = households.assign(bank_account=1, household_size=2)
    households["education"] = households.get("education", "High school")
    households = households[households["race"] != "Hispanic"]
    lines, (figure,) = shed_results(households)
    assert [line.item for line in lines].count("Table 1") == 6
    assert [line.item for line in lines].count("Table 6") == 9
    assert len(figure.charts) == 3
