"""Every figure of an audit as one chart with a file name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from evenhand.charts import joined
from evenhand.core.display import Figure
from evenhand.report import page

if TYPE_CHECKING:
    from evenhand.run.audit import Audit


def all_figures(audit: Audit) -> Iterator[tuple[str, Figure, Any]]:
    """Yield every figure as one chart, with its file name."""
    for name, section in audit.sections().items():
        figures = [part for part in section.parts if isinstance(part, Figure) and part.charts]
        for number, figure in enumerate(figures, 1):
            whole = joined(figure.charts, figure.title, str(figure.shows or ""))
            yield f"{name}-{number}-{page.slug(figure.title)}", figure, whole
