"""Numbers as text, at the edges between one way of writing them and the next."""

from __future__ import annotations

import pytest

from evenhand.messages.formats import (
    Format,
    json_text,
    rounded,
    show,
    show_confidence,
    show_interval,
    show_p,
    show_tick,
)
from evenhand.messages.shared import say


def test_a_plain_number() -> None:
    said: dict[float | None, str] = {
        0.0: "0",
        1e-13: "0",
        1e-12: "1 × 10⁻¹²",
        0.00099: "0.00099",
        0.001: "0.001",
        -0.5: "−0.500",
        99.9994: "99.999",
        100.0: "100.0",
        999.94: "999.9",
        1_000.4: "1,000",
        9_999.94: "10,000",
        10_000.0: "10,000",
        99_999.94: "100,000",
        100_000.0: "100,000",
        999_999_999_999_000.0: "999,999,999,999,000",
        1e15: "1 × 10¹⁵",
        float("inf"): "∞",
        None: "–",
    }
    assert {value: show(value) for value in said} == said


def test_a_number_in_its_style() -> None:
    said: list[tuple[float, Format, str]] = [
        (0.001, "p", "0.001"),
        (0.0009, "p", "<0.001"),
        (1.0, "p", "1.000"),
        (1234.0, "count", "1,234"),
        (1234.56, "tenths", "1,234.6"),
        (-3.0, "count", "−3"),
        (0.125, "percent", "12.5%"),
        (0.125, "points", "12.5"),
        (0.125, "signed_points", "+12.5"),
        (0.125, "signed", "+0.125"),
        (-0.125, "signed", "−0.125"),
        (0.125, "ratio", "0.125"),
    ]
    assert [show(value, style) for value, style, _ in said] == [text for _, _, text in said]


def test_intervals_ticks_and_confidences() -> None:
    assert show_interval(None, None) == "–"
    assert show_interval(None, 0.5) == "at most 0.500"
    assert show_interval(0.25, 0.5) == "0.250 to 0.500"
    assert [show_tick(value) for value in (0.0, 0.5, 1e-6, 1e-7, -2.0)] == ["0", "0.5", "0.000001", "1 × 10⁻⁷", "−2"]
    assert (show_tick(0.5, "signed_points"), show_confidence(0.999)) == ("50", "99.9%")


@pytest.mark.parametrize(
    ("p", "alpha", "said"),
    [
        (0.001, None, "p = 0.001"),
        (0.00099, None, "p < 0.001"),
        (0.05, 0.05, "p = 0.050"),
        (0.0501, 0.05, "p > 0.05"),
        (0.05 + 1e-9, 0.05, "p > 0.05"),  # eight digits are the most
        (0.0499999, 0.05, "p < 0.05"),
        (0.0501, None, "p = 0.050"),
    ],
)
def test_a_p_value_is_never_rounded_onto_alpha(p: float, alpha: float | None, said: str) -> None:
    assert show_p(p, alpha) == said


def test_json_holds_no_nan_and_keeps_letters() -> None:
    assert json_text({"a": "é"}) == '{\n "a": "é"\n}\n'
    with pytest.raises(ValueError, match="Out of range float"):
        json_text({"a": float("nan")})
    assert rounded([1 / 3, (2 / 3, "x"), {"a": 3}]) == [0.333333333333, [0.666666666667, "x"], {"a": 3}]


def test_a_symbol_keeps_its_case_at_the_start_of_a_sentence() -> None:
    assert str(say("detail", parts=(say("p_value", p="p = 0.20"), say("people_behind", n=5)))) == "p = 0.20; n = 5."
