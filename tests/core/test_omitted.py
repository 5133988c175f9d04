"""A group too small to be compared is named beside "meets", and prevents it if its whole interval breaks the limit."""

from __future__ import annotations

from typing import Any

import pytest

import evenhand as eh
from evenhand.core.omitted import Omitted
from evenhand.core.records import Value
from evenhand.core.thresholds import Threshold
from evenhand.messages import language
from evenhand.report.answer import Answer, answer
from evenhand.report.formats import make_files


def small(low: float, high: float, group: str = "C") -> Value:
    return Value(metric="selection_rate", group=group, n=9, value=(low + high) / 2, low=low, high=high)


def limit(**columns: Any) -> Threshold:
    return Threshold(metric="selection_rate", of="gap", against="worst_pair", **columns)


@pytest.mark.parametrize(
    ("record", "threshold", "breaks"),
    [
        (small(0.0, 0.39), limit(kind="difference", max=0.2), True),  # 0.6 - 0.2 is 0.4
        (small(0.0, 0.41), limit(kind="difference", max=0.2), False),
        (small(0.71, 1.0), limit(kind="difference", max=0.2), True),  # 0.5 + 0.2 is 0.7
        (small(0.69, 1.0), limit(kind="difference", max=0.2), False),
        (small(0.0, 0.47), limit(kind="ratio", min=0.8), True),  # 0.8 times 0.6 is 0.48
        (small(0.0, 0.49), limit(kind="ratio", min=0.8), False),
        (small(0.63, 1.0), limit(kind="ratio", min=0.8), True),  # 0.5 over 0.8 is 0.625
        (small(0.62, 1.0), limit(kind="ratio", min=0.8), False),
        (small(0.0, 0.1, "(missing)"), limit(kind="ratio", min=0.8), False),
    ],
)
def test_a_group_breaks_a_limit_if_its_whole_interval_does(record: Value, threshold: Threshold, breaks: bool) -> None:
    assert Omitted((record,), (0.5, 0.55, 0.6)).breaking(threshold) == ((record,) if breaks else ())
    assert Omitted((record,), ()).breaking(threshold) == ()


def all_lines(given: Answer) -> str:
    return " ".join(line for row in given.rows for line in row.lines)


def audit_of(selected: int, of: int, limits: dict[str, float], missing: int = 0, **report: Any) -> eh.Audit:
    groups = ["A"] * 500 + ["B"] * 500 + ["C"] * of + [None] * missing
    rates = [i % 5 < 3 for i in range(1000)] + [i < selected for i in range(of)] + [i % 2 == 0 for i in range(missing)]
    columns: dict[str, list[Any]] = {"race": list(groups), "screen": [int(rate) for rate in rates]}
    table = eh.Table(columns, groups=["race"], predictions="screen")
    return eh.audit(table, parity={}, thresholds=[{"metric": "selection_rate", **limits}], report=report)


@pytest.mark.parametrize("limits", [{"max": 0.2}, {"min": 0.8}])
def test_meets_is_withheld_where_a_group_left_out_breaks_the_limit(limits: dict[str, float]) -> None:
    broken, met = audit_of(0, 9, limits), audit_of(6, 9, limits)
    (judged,) = (finding for finding in broken.findings if finding.threshold)
    assert judged.verdict == "insufficient_evidence"
    assert "of a group too small to be compared breaks it: C (0.0% to 29.9%, n = 9)." in str(judged.reason)
    assert language("de").translates(judged.reason) if judged.reason else False
    (judged,) = (finding for finding in met.findings if finding.threshold)
    assert (judged.verdict, str(judged.reason)) == ("meets", "Not compared: C (n = 9).")


@pytest.mark.parametrize("limits", [{"max": 0.2, "against": "reference"}, {"min": 0.8, "against": "reference"}])
def test_a_group_too_small_for_the_reference_is_undecided_where_it_breaks_the_limit(limits: dict[str, Any]) -> None:
    def judged(selected: int) -> dict[str | None, Any]:
        return {found.group: found for found in audit_of(selected, 9, limits).findings if found.threshold}

    (met,) = judged(6).values()
    assert (met.group, met.verdict, str(met.reason)) == ("B", "meets", "Not compared: C (n = 9).")
    both = judged(0)
    assert {group: found.verdict for group, found in both.items()} == {"B": "meets", "C": "insufficient_evidence"}
    assert str(both["C"].headline) == "screen, by race: C has too few people to be compared with A in selection rate."
    assert str(both["C"].reason) == "Only 9 (minimum 10); shown, not compared."
    assert language("de").translates(both["C"].headline)


def test_every_format_names_who_was_not_compared() -> None:
    audit = audit_of(6, 9, {"min": 0.8})
    assert "Not compared: C (n = 9)." in all_lines(answer(audit))
    for text in make_files(audit, ["html", "md"]).values():
        assert str(text).count("C (n = 9)") >= 2  # in the answer and beside the verdict


def test_many_people_of_unknown_group_are_on_the_front_page() -> None:
    few, many = audit_of(6, 10, {"min": 0.8}, missing=50), audit_of(6, 10, {"min": 0.8}, missing=60)
    sentence = "Not known, and in no comparison: race of 6% of people."
    assert "Not known" not in all_lines(answer(few))
    assert sentence in all_lines(answer(many))
    assert sentence in many.to_html()
