"""Numbers as people read them, and as JSON can hold them."""

from __future__ import annotations

import math

DASH = "–"


def finite(value: float) -> float | None:
    """Return the number for JSON: null where it is undefined or unbounded."""
    number = float(value)
    return number if math.isfinite(number) else None


def shown(value: float | None, *, percent: bool = False, signed: bool = False) -> str:
    """Return a number with three significant places or so, or a dash when there is none.

    Examples
    --------
    >>> shown(0.12345), shown(0.12345, percent=True), shown(None)
    ('0.123', '12.3%', '–')
    """
    if value is None:
        return DASH
    sign = "+" if signed else ""
    if percent:
        return f"{100 * value:{sign}.1f}%"
    magnitude = abs(value)
    if magnitude and (magnitude < 1e-3 or magnitude >= 1e5):
        return f"{value:{sign}.2e}"
    return f"{value:{sign}.3f}" if magnitude < 100 else f"{value:{sign},.1f}"


def shown_interval(low: float | None, high: float | None, *, percent: bool = False, signed: bool = False) -> str:
    """Return an interval as in '0.12 to 0.34'.

    Examples
    --------
    >>> shown_interval(0.1, 0.25, percent=True), shown_interval(0.5, None)
    ('10.0% to 25.0%', 'at least 0.500')
    """
    if low is None and high is None:
        return DASH
    if low is None:
        return f"at most {shown(high, percent=percent, signed=signed)}"
    if high is None:
        return f"at least {shown(low, percent=percent, signed=signed)}"
    return f"{shown(low, percent=percent, signed=signed)} to {shown(high, percent=percent, signed=signed)}"
