"""Data from any source with the roles of its columns, validated once and reduced to cells in its engine."""

from evenhand.table.cells import Cells
from evenhand.table.roles import Prediction, Roles
from evenhand.table.table import Table

__all__ = ["Cells", "Prediction", "Roles", "Table"]
