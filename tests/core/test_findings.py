"""Verdicts, thresholds and the words of numbers."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from evenhand.core.findings import judge
from evenhand.core.numbers import finite, shown, shown_interval
from evenhand.core.spec import Threshold


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.8, 0.9, "meets"),  # on the limit is within it
        (0.7, 0.79, "does_not_meet"),
        (0.7, 0.8, "insufficient_evidence"),
        (0.85, None, "meets"),  # unbounded above
        (0.7, None, "insufficient_evidence"),
        (None, None, "insufficient_evidence"),
    ],
)
def test_a_lower_limit(low: float | None, high: float | None, verdict: str) -> None:
    assert judge(Threshold(metric="tpr", min=0.8), 0.8, low, high) == verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.0, 0.1, "meets"),
        (0.11, 0.2, "does_not_meet"),
        (0.1, 0.2, "insufficient_evidence"),
        (0.2, None, "does_not_meet"),
    ],
)
def test_an_upper_limit(low: float, high: float | None, verdict: str) -> None:
    assert judge(Threshold(metric="tpr", max=0.1), 0.1, low, high) == verdict


def test_an_upper_limit_of_zero_is_a_limit() -> None:
    assert judge(Threshold(metric="tpr", max=0.0), 0.1, 0.05, 0.2) == "does_not_meet"


def test_an_undefined_gap_is_never_a_pass() -> None:
    assert judge(Threshold(metric="tpr", max=0.1), None, None, None) == "insufficient_evidence"


def test_the_kind_follows_from_the_limit() -> None:
    assert Threshold(metric="tpr", min=0.8).kind == "ratio"
    assert Threshold(metric="tpr", max=0.1).kind == "difference"
    assert Threshold(metric="tpr", max=1.25, kind="ratio").kind == "ratio"


@pytest.mark.parametrize("limits", [{}, {"min": 0.1, "max": 0.2}])
def test_a_threshold_has_exactly_one_limit(limits: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="exactly one of `min` and `max`"):
        Threshold(metric="tpr", **limits)


def test_an_intersection_may_be_named_by_its_columns() -> None:
    threshold = Threshold.parse({"metric": "tpr", "max": 0.1, "grouping": ["race", "sex"]}, "here")
    assert threshold.grouping == "race × sex"


def test_numbers_in_words() -> None:
    assert shown(0.00012) == "1.20e-04"
    assert shown(0.25, percent=True, signed=True) == "+25.0%"
    assert shown(1234.5) == "1,234.5"
    assert shown_interval(None, None) == "–"
    assert shown_interval(None, 0.5) == "at most 0.500"
    assert finite(float("inf")) is None
    assert finite(float("nan")) is None
