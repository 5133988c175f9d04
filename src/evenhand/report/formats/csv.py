"""Every table as a CSV file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evenhand.core.csv_text import write_csv
from evenhand.report.formats import Files
from evenhand.report.formats._tables import all_tables

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def make(audit: Audit) -> Files:
    """Return one CSV file per table."""
    return {
        f"{name}.csv": write_csv({column: [_cell(row[at]) for row in rows] for at, column in enumerate(columns)})
        for name, columns, rows in all_tables(audit)
    }


def _cell(value: object) -> object:
    """Return a value as one cell; several values are written as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
