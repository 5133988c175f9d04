"""Charts of one style for the report page, print, notebooks and files.

A `Curve`, a `Forest` or a `Grid` is a panel that is drawn as SVG without a library; an audit may define further panels.
`to_svg` adds the accessible texts to a panel, and a `Picture` joins the panels of a figure.
"""

from evenhand.charts.curves import Curve, curve
from evenhand.charts.forests import MOST_ROWS, Forest, forest, forest_row, pair_text, share_axis
from evenhand.charts.grids import Grid, grids_of
from evenhand.charts.icons import Icons, OfHundred
from evenhand.charts.look import MOST_LINES, PALETTE, PANEL_WIDTH, Panel, mark_path, same_looks
from evenhand.charts.pictures import Picture, columns_for, legend_of, to_svg
from evenhand.charts.slopes import Slopes

__all__ = [
    "MOST_LINES",
    "MOST_ROWS",
    "PALETTE",
    "PANEL_WIDTH",
    "Curve",
    "Forest",
    "Grid",
    "Icons",
    "OfHundred",
    "Panel",
    "Picture",
    "Slopes",
    "columns_for",
    "curve",
    "forest",
    "forest_row",
    "grids_of",
    "legend_of",
    "mark_path",
    "pair_text",
    "same_looks",
    "share_axis",
    "to_svg",
]
