"""Tables for people: which columns they have, what is compared with what, and how they look as text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenhand.audits.parity.metrics import METRICS
from evenhand.core.display import (
    FIRST_FOLDED,
    FIRST_SHOWN,
    DisplayTable,
    Number,
    Range,
    escape_markdown,
    gap_table,
    make_table,
    value_table,
)
from evenhand.core.records import OVERALL, Gap, Value
from evenhand.messages import Message
from evenhand.messages.shared import say

GAP = Gap(
    metric="tpr", kind="difference", against="reference", group="F", reference="M", n=9, value=-0.2, low=-0.3, high=-0.1
)
VALUE = Value(metric="tpr", group="F", n=9, value=0.5, low=0.2, high=0.8)
MIXED = DisplayTable(
    "Two | people",
    ("Name", "Share", "From to"),
    (("Ann|e", Number(0.25, "percent"), Range(0.1, 0.4, "percent")), ("<b>", Number(None, "percent"), None)),
)


def test_a_page_shows_the_first_rows_and_more_of_what_is_not_folded() -> None:
    long = DisplayTable("Long", ("Name",), (("x",),) * 1_000)
    assert (long.rows_shown(), replace(long, folded=True).rows_shown()) == (FIRST_SHOWN, FIRST_FOLDED) == (100, 25)
    assert MIXED.rows_shown() == 2


def test_a_spreadsheet_has_two_columns_for_an_interval_even_where_one_is_missing() -> None:
    assert MIXED.numbers() == {
        "Name": ["Ann|e", "<b>"],
        "Share": [0.25, None],
        "From to, low": [0.1, None],
        "From to, high": [0.4, None],
    }


def test_numbers_stand_to_the_right_and_text_cannot_break_out() -> None:
    head, rule, first, second = MIXED.to_markdown().splitlines()
    assert (head, rule) == ("| Name | Share | From to |", "| --- | ---: | ---: |")
    assert first.startswith("| Ann\\|e | 25.0%")
    assert "&lt;b" in second
    assert second.endswith(" |")
    assert MIXED.to_html().count("<tr><td>") == MIXED.to_html().count("</td></tr>") == 2
    assert "<b>" not in MIXED.to_html()


def test_a_small_p_is_readable_in_markdown_and_still_no_tag_begins() -> None:
    assert escape_markdown("p < 0.001 and <0.001") == "p < 0.001 and <0.001"
    assert escape_markdown("<b> &lt; 3") == "&lt;b&gt; &amp;lt; 3"


def test_a_folded_table_says_its_caption_before_it_is_opened() -> None:
    folded = replace(MIXED, folded=True).to_html()
    assert folded.startswith("<details><summary>Two | people</summary><table>")
    assert MIXED.to_html().startswith("<table>")


def test_columns_that_say_nothing_are_left_out_unless_they_always_stand() -> None:
    columns = {
        "Name": lambda r: r,
        "Empty": lambda _: None,
        "None": lambda _: Number(None, "count"),
        "Open": lambda _: Range(None, 2.0, "number"),
        "Nowhere": lambda _: Range(None, None, "number"),
        "Kept": lambda _: None,
    }
    made = make_table("A table", columns, ["a", "b"], always=("Kept",))
    assert made.columns == ("Name", "Open", "Kept")
    assert len(made.rows) == 2
    assert made.folded
    assert make_table("A table", columns, [], always=("Kept",)) == DisplayTable("A table", ("Kept",), (), True)


def test_the_group_is_named_where_there_is_more_than_everybody() -> None:
    everybody = replace(VALUE, group=OVERALL)
    assert "Group" not in value_table([everybody], METRICS, "Values", 0.95).columns
    assert "Group" in value_table([everybody, VALUE], METRICS, "Values", 0.95).columns
    assert value_table([VALUE], METRICS, "Values", 0.95).folded
    worst = replace(GAP, against="worst_pair", group=None, reference=None)
    assert "Group" not in gap_table([worst], METRICS, "Gaps", 0.95).columns
    assert "Group" in gap_table([worst, GAP], METRICS, "Gaps", 0.95).columns


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        (GAP, "M (reference)"),
        (replace(GAP, against="worst_pair"), "M (worst pair)"),
        (replace(GAP, against="overall", reference="everybody else"), "everybody else"),
        (replace(GAP, model_reference="old", reference="F"), None),
        (replace(GAP, model_reference="old"), "M (reference)"),
        (replace(GAP, reference="F"), "F (reference)"),
        (replace(GAP, reference=None), None),
    ],
)
def test_what_a_gap_is_compared_with(gap: Gap, said: str | None) -> None:
    made = gap_table([gap], METRICS, "Gaps", 0.95)
    told = made.rows[0][made.columns.index("Compared with")] if "Compared with" in made.columns else None
    assert told == said


def test_a_remark_stands_only_where_something_is_wrong() -> None:
    assert "Remark" not in gap_table([GAP], METRICS, "Gaps", 0.95).columns
    made = gap_table([GAP, replace(GAP, status=say("undefined", why=Message("nobody")))], METRICS, "Gaps", 0.95)
    assert [row[made.columns.index("Remark")] for row in made.rows] == ["", "undefined: nobody"]
