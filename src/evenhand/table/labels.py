"""The text of a value, the same from every engine: labels of groups, examples in messages."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np

_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def showable(text: str) -> str:
    r"""Return text with control characters written out: they steer terminals, and no page or chart can hold them.

    Examples
    --------
    >>> showable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return _UNSHOWABLE.sub(lambda match: ascii(match[0])[1:-1], text)


def label_of(value: Any) -> str:
    """Return the text of a group value, the same from every engine (1 and 1.0 are both "1").

    Examples
    --------
    >>> label_of(1.0), label_of(True), label_of("Black")
    ('1', 'true', 'Black')
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S").removesuffix(" 00:00:00")
    return showable(str(value))


def sort_key(value: Any) -> tuple[int, Any]:
    """Return what values are sorted by: numbers by size, then everything else by its text."""
    if isinstance(value, int | float | np.number):
        return 0, float(value)
    return 1, str(value)


def shown(values: list[Any], most: int) -> str:
    """Return the first few values of a list as they stand in a message.

    Examples
    --------
    >>> shown([0.5, 1.0, "NA"], 2)
    "'0.5', '1', ..."
    """
    texts = [repr(label_of(value)) for value in values[:most]]
    return ", ".join(texts + ["..."] * (len(values) > most))
