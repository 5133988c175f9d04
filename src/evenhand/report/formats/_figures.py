"""Every figure of an audit as one image with a file name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.charts import Picture
from evenhand.core.display import Figure
from evenhand.report import page

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def all_figures(audit: Audit) -> Iterator[tuple[str, Picture]]:
    """Yield every figure as one image, with its file name."""
    for name, section in audit.sections().items():
        figures = [part for part in section.parts if isinstance(part, Figure) and part.charts]
        for number, figure in enumerate(figures, 1):
            picture = Picture(figure.title, figure.charts, figure.statement, figure.description)
            yield f"{name}-{number}-{page.slug(figure.title)}", picture
