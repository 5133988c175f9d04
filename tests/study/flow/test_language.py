from __future__ import annotations

import pytest

from evenhand.study.flow.language import show_number


@pytest.mark.parametrize(
    ("value", "unit", "language", "text"),
    [
        (32_400, "$", "en", "$32,400"),
        (32_400, "€", "de", "32.400\u00a0€"),
        (1_234.5, "", "fr", "1\u202f234,5"),
        (-3, "$", "en-GB", "−$3"),
        (-0.00001, "", "en", "0"),
        (0.005, "", "de", "0,005"),
        (50, "%", "en", "50%"),
        (50, "%", "de", "50\u00a0%"),
        (12, "km", "it", "12\u00a0km"),
        (100, "", "en", "100"),
    ],
)
def test_numbers_are_written_as_people_write_them(value: float, unit: str, language: str, text: str) -> None:
    assert show_number(value, unit, language) == text
