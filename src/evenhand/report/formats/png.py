"""Every figure as a PNG file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.report.formats import Files
from evenhand.report.formats._figures import all_figures
from evenhand.report.page import looks_of

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def make(audit: Audit) -> Files:
    """Return one PNG file per figure."""
    with looks_of(audit):
        return {f"{name}.png": picture.to_png() for name, picture in all_figures(audit)}
