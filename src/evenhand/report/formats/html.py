"""The page, and a CSV file for each table that the page truncates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.core.csv_text import write_csv
from evenhand.core.display import DisplayTable
from evenhand.report import page
from evenhand.report.formats import Files

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def make(audit: Audit) -> Files:
    """Return the page, and a CSV file for each table that the page truncates."""
    sections = audit.sections()
    files: Files = {"report.html": page.render(audit, sections)}
    for name, section in sections.items():
        for part in section.parts:
            if isinstance(part, DisplayTable) and part.rows_shown() < len(part.rows):
                files[page.table_file(name, part)] = write_csv(part.numbers())
    return files
