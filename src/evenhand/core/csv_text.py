"""Tables as CSV that is safe in spreadsheets: an apostrophe precedes text that would run as a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(columns: Mapping[str, Iterable[object]]) -> str:
    r"""Return columns as CSV, with an apostrophe before text that a spreadsheet would run (see `unmarked`).

    Examples
    --------
    >>> write_csv({"reason": ["=1+1", None], "n": [1.0, 2.5]})
    "reason,n\n'=1+1,1\n,2.5\n"
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_safe(name) for name in columns])
    writer.writerows(zip(*([_cell(value) for value in values] for values in columns.values()), strict=True))
    return out.getvalue()


def _safe(text: str) -> str:
    return f"'{text}" if text.lstrip("'").startswith(_FORMULA) else text


def unmarked(text: str) -> str:
    """Return a text of a CSV file without the apostrophe that `write_csv` puts before a formula."""
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(_FORMULA) else text


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    # The shortest text that reads back as the same number.
    return str(value).removesuffix(".0") if isinstance(value, float) else _safe(str(value))
