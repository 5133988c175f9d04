"""Accessible SVG of panels, and pictures of several panels for notebooks and files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from math import ceil
from pathlib import Path

from evenhand.charts.look import FONT, HEAD, Legend, Panel, head_of
from evenhand.errors import ConfigError, require_extra
from evenhand.messages import showable

_MARGIN, _GAP = 12, 28
_numbers = count(1)


def to_svg(
    panel: Panel | Picture,
    title: str,
    description: str,
    *,
    name: str,
    legend: bool = True,
    titles: bool = True,
    width: int = 0,
    height: int = 0,
) -> str:
    """Return a panel as accessible inline SVG.

    Parameters
    ----------
    panel
        A panel, or a picture of several.
    title, description
        The texts that screen readers read instead of the picture.
    name
        The prefix of the SVG's identifiers, unique on the page.
    legend
        Whether the SVG includes a legend.
    titles
        Whether the SVG includes the titles of the panel and its axes.
    width, height
        The width of the picture, and the largest height of its plot; 0 for the panel's defaults.

    Examples
    --------
    >>> from evenhand.charts import curve
    >>> points = curve([{"x": 1, "y": 2, "series": ""}], title="Points", x="x", y="y", intervals="none")
    >>> to_svg(points, "Points", "One point at 1.", name="figure-1").startswith('<svg role="img"')
    True
    """
    wide, high, body = panel.drawn(width, height, legend=legend, titles=titles)
    return (
        f'<svg role="img" aria-labelledby="{name}-title {name}-text" class="chart" xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" font-family="{FONT}">'
        f'<title id="{name}-title">{escape(showable(title))}</title>'
        f'<desc id="{name}-text">{escape(showable(description))}</desc>'
        f'<g aria-hidden="true">{body}</g></svg>'
    )


def legend_of(panels: Sequence[Panel]) -> Legend:
    """Return the common legend of a figure's panels; empty if their legends differ."""
    legends = {tuple(panel.legend) for panel in panels}
    return list(legends.pop()) if len(legends) == 1 else []


def columns_for(panels: int) -> int:
    """Return a number of columns that leaves no panel alone in the last row.

    Examples
    --------
    >>> [columns_for(panels) for panels in (1, 2, 3, 4, 5, 6, 7, 8)]
    [1, 2, 3, 2, 3, 3, 4, 2]
    """
    if panels < 3:
        return max(1, panels)
    return next((columns for columns in (3, 2, 4) if panels % columns == 0), 4 if panels % 3 == 1 else 3)


@dataclass(frozen=True)
class Picture:
    """All panels of a figure in one picture, which notebooks show and `save` writes.

    Parameters
    ----------
    title : the title of the picture.
    panels : the panels, in rows.
    subtitle : a line below the title.
    description : the text that screen readers read instead of the picture.
    """

    title: str
    panels: tuple[Panel, ...]
    subtitle: str = ""
    description: str = ""

    @property
    def legend(self) -> Legend:
        """The common legend of all panels; empty if their legends differ."""
        return legend_of(self.panels)

    def drawn(self, width: int, height: int, *, legend: bool = True, titles: bool = True) -> tuple[int, int, str]:
        """Return the width, the height and the SVG content of the picture, for panels of this size."""
        apart = legend and not self.legend
        made = [panel.drawn(width, height, legend=apart, titles=titles) for panel in self.panels]
        columns = columns_for(len(made))
        rows = [made[start : start + columns] for start in range(0, len(made), columns)]
        step = max((wide for wide, _, _ in made), default=0) + _GAP
        whole = step * max(map(len, rows), default=0) - _GAP
        title, subtitle = (self.title, self.subtitle) if titles else ("", "")
        top, head = head_of(title, self.legend if legend else [], whole, size=15, subtitle=subtitle)
        parts = [head]
        for row in rows:
            top += HEAD
            for column, (_, _, body) in enumerate(row):
                parts.append(f'<g transform="translate({column * step} {top:.1f})">{body}</g>')
            top += max(high for _, high, _ in row)
        body = f'<g transform="translate({_MARGIN} {_MARGIN})">{"".join(parts)}</g>'
        return whole + 2 * _MARGIN, ceil(top) + 2 * _MARGIN, body

    def to_svg(self, *, name: str | None = None) -> str:
        """Return the picture as SVG; `name` is the prefix of its identifiers, unique on a page."""
        description = f"{self.subtitle} {self.description}".strip()
        return to_svg(self, self.title, description, name=name or f"picture-{next(_numbers)}")

    def to_png(self) -> bytes:
        """Return the picture as PNG at twice the screen's resolution, on white."""
        require_extra("vl_convert", "png", "PNG")
        import vl_convert

        drawn: bytes = vl_convert.svg_to_png(_on_white(self.to_svg()), scale=2)
        return drawn

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to an `.svg` or `.png` file, and return its path.

        Examples
        --------
        >>> import evenhand as eh
        >>> table = eh.Table({"sex": ["F", "M"] * 50, "hired": [1, 0] * 50}, groups="sex", predictions="hired")
        >>> file = eh.parity(table).plot().save("gaps.svg")  # doctest: +SKIP
        """
        target = Path(path)
        if target.suffix not in (".svg", ".png"):
            raise ConfigError("a picture is saved as .svg or .png; got '{path}'.", path=str(path))
        content = self.to_png() if target.suffix == ".png" else self.to_svg().encode()
        target.write_bytes(content)
        return target

    def _repr_html_(self) -> str:
        return self.to_svg()


def _on_white(svg: str) -> str:
    """Return an SVG in black on white, independent of the colours of its page."""
    start = svg.index("<title")
    ground = '<rect width="100%" height="100%" fill="#fff"/>'
    return f"{svg[:start]}{ground}{svg[start:]}".replace("currentColor", "#000")
