"""Colours, shapes and type. Series differ in colour and in shape, so that no reader depends on colour alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

PALETTE = ("#0a7abf", "#d55e00", "#0a9b73", "#c2649b", "#b98000", "#4aa3df", "#7a7f87", "#8c5fd0")
"""Okabe and Ito's colours for all kinds of colour vision, adjusted to hold 3:1 on white and on near-black."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")

PANEL_WIDTH = 220

FONT = "Arial, Helvetica, Liberation Sans, sans-serif"
"""Faces of one width, so that the room the renderer leaves for a label is what the browser needs."""


def styled(chart: Any) -> Any:
    """Give a chart the common look; text and rules take the colour of the page around them."""
    axis = {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "domain": False,
        "ticks": False,
        "gridColor": "currentColor",
        "gridOpacity": 0.14,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelPadding": 6,
        "labelLimit": 150,
    }
    return chart.configure(
        background="transparent",
        font=FONT,
        axis=axis,
        axisY={**axis, "grid": False},
        view={"stroke": None},
        title={"color": "currentColor", "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 8},
        legend={
            "labelColor": "currentColor",
            "title": None,
            "orient": "top",
            "labelFontSize": 12,
            "symbolOpacity": 1,
            "columns": 3,
            "labelLimit": 110,
        },
        range={"category": list(PALETTE), "symbol": list(SHAPES)},
    )


def data(records: list[dict[str, Any]]) -> alt.InlineData:
    """Wrap plain records as a chart's data."""
    import altair as alt

    return alt.InlineData(values=[{name: _printable(value) for name, value in record.items()} for record in records])


def _printable(value: Any) -> Any:
    """Replace the control characters that an SVG may not hold; round numbers to what a chart can show."""
    if isinstance(value, float):
        return float(f"{float(f'{value:.12g}'):.9g}")  # by way of the digits that `results.json` keeps
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", value) if isinstance(value, str) else value


def series_scale(domain: Sequence[str], values: Sequence[str]) -> Any:
    """Return the same colour or shape for the same series in every panel; so the two legends become one."""
    import altair as alt

    return alt.Scale(domain=list(domain), range=[values[i % len(values)] for i in range(len(domain))])
