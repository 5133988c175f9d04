"""Format numbers as text and for JSON, and escape external text.

All conversion of numbers to text is done here.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Literal

DASH = "–"
MINUS = "−"
_ROUNDING = 1e-12
# Control characters, and characters that reorder or break the surrounding text: overrides, embeddings and isolates of
# bidirectional text, line separators, lone surrogates. U+200E and U+200F are part of Hebrew and Arabic text, and stay.
UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb\ufffe\uffff]")

Format = Literal["number", "signed", "percent", "points", "signed_points", "ratio", "count", "tenths", "p"]
"""The formats of numbers, as in 0.123, +0.123, 12.3%, 12.3 (percentage points), +12.3, 0.12, 1,234, 1,234.5, <0.001."""


def finite(value: float) -> float | None:
    """Return a number for JSON; None if it is not finite."""
    number = float(value)
    return number if math.isfinite(number) else None


def rounded(value: Any) -> Any:
    """Return plain values with numbers rounded to 12 significant digits, as in `results.json`.

    Processors may differ in the last of about 16 digits.

    Examples
    --------
    >>> rounded({"train": 2 / 3, "splits": (5,)})
    {'train': 0.666666666667, 'splits': [5]}
    """
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list | tuple) else value


def json_text(value: object) -> str:
    r"""Return plain values as JSON text, with control and bidirectional characters escaped.

    Examples
    --------
    >>> print(json_text({"title": "\u202eMüller"}), end="")
    {
     "title": "\u202eMüller"
    }
    """
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    return UNSHOWABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def show(value: float | None, style: Format = "number") -> str:
    """Return a number as text, or a dash for None.

    Examples
    --------
    >>> show(0.12345), show(0.12345, "percent"), show(-0.05, "signed_points"), show(None), show(0.0002, "p")
    ('0.123', '12.3%', '−5.0', '–', '<0.001')
    >>> show(0.0000421), show(3.1e-9), show(2_000_000.0), show(0.1 + 0.1735) == show(0.2735)
    ('0.000042', '3.1 × 10⁻⁹', '2,000,000', True)
    """
    if value is None:
        return DASH
    value = rounded(float(value))  # so ties round alike on every processor, and after reading results.json
    if style == "p":
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    if style in ("count", "tenths"):
        return f"{value:,.{0 if style == 'count' else 1}f}".replace("-", MINUS)
    sign = "+" if style.startswith("signed") else ""
    if style == "percent":
        text = f"{100 * value:.1f}%"
    elif style.endswith("points"):
        text = f"{100 * value:{sign}.1f}"
    else:
        text = _plain(value, sign)
    return text.replace("-", MINUS)


def _plain(value: float, sign: str) -> str:
    """Return a number with at most three decimals, or with two significant digits if it is very small or large."""
    magnitude = abs(value)
    if magnitude < _ROUNDING:
        return "0"
    if magnitude < 1e-3 or magnitude >= 1e15:
        return _in_full(value, 2, sign)
    places = 3 if magnitude < 100 else 1 if magnitude < 1e3 else 0
    return f"{value:{sign},.{places}f}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _in_full(value: float, digits: int, sign: str = "") -> str:
    """Return a number with the given significant digits, in full or with a power of ten."""
    if value == 0:
        return "0"
    if math.isinf(value):
        return f"{value:{sign}}".replace("inf", "∞")
    text, power = f"{value:{sign}.{digits - 1}e}".split("e")
    if -7 < int(power) < 15:
        text = f"{float(f'{text}e{power}'):{sign},.{max(0, digits - 1 - int(power))}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text if -7 < int(power) < 15 else f"{text} × 10{str(int(power)).translate(_RAISED)}"


def show_tick(value: float, style: Format = "number") -> str:
    """Return the shortest text of a number, for axis ticks.

    Examples
    --------
    >>> show_tick(0.25), show_tick(0.25, "percent"), show_tick(-0.05, "points"), show_tick(0.00002), show_tick(250000.0)
    ('0.25', '25%', '−5', '0.00002', '250,000')
    """
    hundreds = style in ("percent", "points", "signed_points")
    shown = _in_full(100 * value if hundreds else value, 6).replace("-", MINUS)
    return shown + ("%" if style == "percent" else "")


def show_interval(low: float | None, high: float | None, style: Format = "number") -> str:
    """Return an interval as text, as in '0.12 to 0.34'.

    Examples
    --------
    >>> show_interval(0.1, 0.25, "percent"), show_interval(0.5, None)
    ('10.0% to 25.0%', 'at least 0.500')
    """
    if low is None and high is None:
        return DASH
    if low is None:
        return f"at most {show(high, style)}"
    if high is None:
        return f"at least {show(low, style)}"
    return f"{show(low, style)} to {show(high, style)}"


def show_p(value: float, alpha: float | None = None) -> str:
    """Return a p-value for a sentence, or its side of alpha if rounding would hide it.

    From 0.1 on it has two decimals, the precision of 9,999 permutations.

    Examples
    --------
    >>> show_p(0.0123), show_p(1e-9), show_p(0.4154)
    ('p = 0.012', 'p < 0.001', 'p = 0.42')
    >>> show_p(0.0498, alpha=0.05), show_p(0.05004, alpha=0.05)
    ('p < 0.05', 'p > 0.05')
    """
    if value < 0.001:
        return "p < 0.001"
    text = f"{value:.3f}" if value < 0.1 else f"{value:.2f}"
    if alpha is None or value == alpha or float(text) != round(alpha, 3):
        return f"p = {text}"
    return f"p {'<' if value < alpha else '>'} {alpha:g}"


def show_confidence(confidence: float) -> str:
    """Return a confidence level as in '95%', with up to two decimals, or more if it would round to 100%.

    Examples
    --------
    >>> show_confidence(0.95), show_confidence(1 - 0.05 / 12), show_confidence(0.999999)
    ('95%', '99.58%', '99.9999%')
    """
    text = f"{100 * confidence:.2f}".rstrip("0").rstrip(".")
    return f"{100 * confidence:g}%" if text in ("100", "0") else f"{text}%"


def showable(text: str) -> str:
    r"""Return text with control characters escaped, so that it cannot control a terminal or a page.

    All external text passes through here: labels when read, error messages, all output of the
    command line and all text of a page.

    Examples
    --------
    >>> showable("a\x1b[31mb"), showable("\u202eevil")
    ('a\\x1b[31mb', '\\u202eevil')
    """
    return UNSHOWABLE.sub(lambda match: ascii(match[0])[1:-1], text)
