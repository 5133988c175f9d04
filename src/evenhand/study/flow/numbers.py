"""Numbers as people write them in their language."""

from __future__ import annotations

_MARKS = {"": (",", "."), "de": (".", ","), "es": (".", ","), "fr": ("\u202f", ",")}
"""The marks between thousands and before decimals, by language; other languages take the first."""
_CURRENCIES = ("$", "€", "£", "¥", "₹")


def show_number(value: float, unit: str = "", language: str = "en") -> str:
    r"""Return a value as people of a language write it, with its unit.

    Examples
    --------
    >>> show_number(32400, "$"), show_number(0.5), show_number(-1200, "€", "de"), show_number(3, "km")
    ('$32,400', '0.5', '−1.200\xa0€', '3\xa0km')
    """
    digits = _marked(f"{abs(value):,.{2 if abs(value) >= 1 else 4}f}".rstrip("0").rstrip("."), language)
    sign = "−" if value < 0 and digits.strip("0.,") else ""
    if not unit:
        return f"{sign}{digits}"
    if language.split("-")[0] not in _MARKS:
        if unit in _CURRENCIES:
            return f"{sign}{unit}{digits}"
        if unit == "%":
            return f"{sign}{digits}%"
    return f"{sign}{digits}\u00a0{unit}"


def show_amount(value: float, language: str = "en") -> str:
    """Return an amount of money without its currency, with two decimals where it has any.

    Examples
    --------
    >>> show_amount(8.5), show_amount(1200), show_amount(8.45, "de")
    ('8.50', '1,200', '8,45')
    """
    return _marked(f"{value:,.2f}".removesuffix(".00"), language)


def _marked(digits: str, language: str) -> str:
    thousands, decimal = _MARKS.get(language.split("-")[0], _MARKS[""])
    return digits.translate({ord(","): thousands, ord("."): decimal})
