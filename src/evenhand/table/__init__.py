"""Data of any kind with the roles of its columns, checked once and shrunk to cells where it lives."""

from evenhand.table.cells import Cells
from evenhand.table.roles import Prediction, Roles
from evenhand.table.table import Table

__all__ = ["Cells", "Prediction", "Roles", "Table"]
