"""Every figure as an SVG file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.charts import to_svg
from evenhand.report.formats import Files
from evenhand.report.formats._figures import all_figures

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def make(audit: Audit) -> Files:
    """Return one SVG file per figure, with title and description."""
    return {
        f"{name}.svg": to_svg(chart, figure.title, f"{figure.shows or ''} {figure.description}".strip(), name=name)
        for name, figure, chart in all_figures(audit)
    }
