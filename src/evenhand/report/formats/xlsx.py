"""One workbook with a summary and a sheet for every table."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from evenhand.errors import ConfigError
from evenhand.messages import showable
from evenhand.messages.formats import show
from evenhand.report import page
from evenhand.report.answer import answer
from evenhand.report.formats import Files
from evenhand.report.formats._packages import import_extra
from evenhand.report.formats._tables import all_tables
from evenhand.report.front import Glance, at_a_glance
from evenhand.report.wording import PageWording

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

_MOST_ROWS = 1_048_575
_LONGEST_SHEET_NAME = 31
_WIDEST_COLUMN = 60
_SUMMARY = "summary"
_LOOKS: dict[str, dict[str, Any]] = {
    "title": {"bold": True, "font_size": 14},
    "head": {"bold": True, "bottom": 1},
    "label": {"bold": True, "valign": "top", "text_wrap": True},
    "text": {"valign": "top", "text_wrap": True},
    "whole": {"num_format": "#,##0"},
    "number": {"num_format": "#,##0.000"},
    "p": {"num_format": '[<0.001]"<0.001";0.000'},
}


def make(audit: Audit) -> Files:
    """Return one workbook: a summary, and then a sheet for every table.

    Numbers are written as numbers, and text is never interpreted as a formula.
    """
    xlsxwriter = import_extra("xlsxwriter", "files", "XLSX")
    buffer = io.BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with xlsxwriter.Workbook(buffer, options) as book:
        book.set_properties({"title": showable(audit.config.report.title), "created": _started(audit)})
        looks = {name: book.add_format(look) for name, look in _LOOKS.items()}
        taken = {_SUMMARY}
        _write_summary(_new_sheet(book, _SUMMARY), audit, looks)
        for name, columns, rows in all_tables(audit):
            if len(rows) > _MOST_ROWS:
                raise ConfigError(
                    "the table '{name}' has {number:,} rows, more than a sheet holds; ask for csv.",
                    name=name,
                    number=len(rows),
                )
            _write_table(_new_sheet(book, _sheet_name(name, taken)), columns, rows, looks)
    return {"tables.xlsx": buffer.getvalue()}


def _new_sheet(book: Any, name: str) -> Any:
    """Add a sheet that prints in landscape, one page wide, with its header on every page."""
    sheet = book.add_worksheet(name)
    sheet.set_landscape()
    sheet.fit_to_pages(1, 0)
    sheet.set_footer("&L&A&RPage &P of &N")
    return sheet


def _write_summary(sheet: Any, audit: Audit, looks: Mapping[str, Any]) -> None:
    """Write the title, the facts about the audit, the answer, and every limit with its verdicts."""
    wording = page.wording_of(audit)
    told = answer(audit, wording)
    rows = [(wording.title(audit.config.report.title), ""), *page.facts(audit, wording), ("", "")]
    rows.append((told.question, told.text))
    rows += [(row.question, " ".join(row.lines)) for row in told.rows if row.lines]
    rows += [
        ("", ""),
        *((f"{line.what} ({line.limit})", _verdicts(line, wording)) for line in at_a_glance(audit, wording)),
    ]
    sheet.set_column(0, 0, 42)
    sheet.set_column(1, 1, 100)
    for number, (name, text) in enumerate(rows):
        sheet.write_string(number, 0, showable(name), looks["title" if number == 0 else "label"])
        sheet.write_string(number, 1, showable(text), looks["text"])


def _verdicts(line: Glance, wording: PageWording) -> str:
    return ", ".join(
        f"{f'{model} ' if model else ''}{wording.amount(finding)} {wording.verdict(finding).lower()}"
        for model, finding in line.verdicts
    )


def _write_table(sheet: Any, columns: Sequence[str], rows: Sequence[Sequence[Any]], looks: Mapping[str, Any]) -> None:
    """Write a table with its header, with column widths that fit the contents."""
    sheet.freeze_panes(1, 0)
    sheet.repeat_rows(0)
    for position, column in enumerate(columns):
        sheet.write_string(0, position, column, looks["head"])
        sheet.set_column(position, position, _width(column, rows, position))
    formats = [looks[_look(column, [row[position] for row in rows])] for position, column in enumerate(columns)]
    for number, row in enumerate(rows, 1):
        for position, value in enumerate(row):
            _write_cell(sheet, number, position, value, formats[position])
    sheet.autofilter(0, 0, max(1, len(rows)), len(columns) - 1)


def _sheet_name(name: str, taken: set[str]) -> str:
    short = name[:_LONGEST_SHEET_NAME]
    number = 1
    while short in taken:
        number += 1
        short = f"{name[: _LONGEST_SHEET_NAME - 3]}-{number}"
    taken.add(short)
    return short


def _width(column: str, rows: Sequence[Sequence[Any]], position: int) -> int:
    longest = max((len(row[position]) for row in rows[:200] if isinstance(row[position], str)), default=9)
    return min(max(len(column), longest) + 2, _WIDEST_COLUMN)


def _look(column: str, values: Sequence[object]) -> str:
    """Return the format of a column: p-values, whole numbers, or numbers with three decimals."""
    if column.startswith("p_"):
        return "p"
    return "number" if any(isinstance(value, float) and not value.is_integer() for value in values) else "whole"


def _write_cell(sheet: Any, row: int, column: int, value: object, look: Any) -> None:
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, int | float):
        sheet.write_number(row, column, value, look)
    elif value is not None:
        sheet.write_string(row, column, showable(_text(value)))


def _text(value: object) -> str:
    """Return a value as text; several values are separated by commas."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(item)}" for name, item in value.items())
    if isinstance(value, float):
        return show(value)
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)


def _started(audit: Audit) -> datetime:
    return datetime.fromisoformat(audit.run["started"]).replace(tzinfo=None)
