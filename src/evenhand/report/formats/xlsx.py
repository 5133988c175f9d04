"""Every table as a sheet of one workbook."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from evenhand.errors import ConfigError
from evenhand.messages import showable
from evenhand.report.formats import Files
from evenhand.report.formats._packages import import_extra
from evenhand.report.formats._tables import all_tables

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

_MOST_ROWS = 1_048_575
_LONGEST_SHEET_NAME = 31
_WIDEST_COLUMN = 60


def make(audit: Audit) -> Files:
    """Return one workbook with a sheet per table.

    Numbers stay numbers, and text is never a formula.
    """
    xlsxwriter = import_extra("xlsxwriter", "files", "XLSX")
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(
        buffer, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    ) as book:
        book.set_properties({"title": showable(audit.config.report.title), "created": _started(audit)})
        bold = book.add_format({"bold": True, "bottom": 1})
        taken: set[str] = set()
        for name, columns, rows in all_tables(audit):
            if len(rows) > _MOST_ROWS:
                raise ConfigError(
                    "the table '{name}' has {number:,} rows, more than a sheet holds; ask for csv.",
                    name=name,
                    number=len(rows),
                )
            sheet = book.add_worksheet(_sheet_name(name, taken))
            sheet.freeze_panes(1, 0)
            for position, column in enumerate(columns):
                sheet.write_string(0, position, column, bold)
                sheet.set_column(position, position, _width(column, rows, position))
            for number, row in enumerate(rows, 1):
                for position, value in enumerate(row):
                    _write_cell(sheet, number, position, value)
            sheet.autofilter(0, 0, max(1, len(rows)), len(columns) - 1)
    return {"tables.xlsx": buffer.getvalue()}


def _sheet_name(name: str, taken: set[str]) -> str:
    short = name[:_LONGEST_SHEET_NAME]
    number = 1
    while short in taken:
        number += 1
        short = f"{name[: _LONGEST_SHEET_NAME - 3]}-{number}"
    taken.add(short)
    return short


def _width(column: str, rows: Sequence[Sequence[Any]], position: int) -> int:
    longest = max((len(str(row[position])) for row in rows[:200] if isinstance(row[position], str)), default=9)
    return min(max(len(column), longest) + 2, _WIDEST_COLUMN)


def _write_cell(sheet: Any, row: int, column: int, value: object) -> None:
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, int | float):
        sheet.write_number(row, column, value)
    elif value is not None:
        sheet.write_string(row, column, showable(str(value)))


def _started(audit: Audit) -> datetime:
    return datetime.fromisoformat(audit.run["started"]).replace(tzinfo=None)
