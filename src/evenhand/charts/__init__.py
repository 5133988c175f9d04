"""The common look of all charts, and how a chart becomes an accessible SVG or a PNG."""

from evenhand.charts.look import PALETTE, SHAPES, styled
from evenhand.charts.svg import to_png, to_svg

__all__ = ["PALETTE", "SHAPES", "styled", "to_png", "to_svg"]
