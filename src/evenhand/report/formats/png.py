"""Every figure as a PNG file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.charts import to_png
from evenhand.report.formats import Files
from evenhand.report.formats._figures import all_figures

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def make(audit: Audit) -> Files:
    """Return one PNG file per figure."""
    return {f"{name}.png": to_png(chart) for name, _, chart in all_figures(audit)}
