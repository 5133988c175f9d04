"""Every figure as an SVG file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.report.formats import Files
from evenhand.report.formats._figures import all_figures
from evenhand.report.page import looks_of

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def make(audit: Audit) -> Files:
    """Return one SVG file per figure, with title and description."""
    with looks_of(audit):
        return {f"{name}.svg": picture.to_svg(name=name) for name, picture in all_figures(audit)}
