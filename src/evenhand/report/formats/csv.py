"""Every table as a CSV file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.core.csv_text import write_csv
from evenhand.report.formats import Files
from evenhand.report.formats._tables import all_tables

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def make(audit: Audit) -> Files:
    """Return one CSV file per table."""
    return {
        f"{name}.csv": write_csv({column: [row[position] for row in rows] for position, column in enumerate(columns)})
        for name, columns, rows in all_tables(audit)
    }
