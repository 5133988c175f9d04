"""Remarks on a table for readers of a result: how it was read, and anything unusual."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue("table", "evenhand.table")
"""Builds a message from a remark on a table."""
