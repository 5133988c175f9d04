"""Remarks on a table for the reader of a result: how it was read, and what is odd about it."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue("table", "evenhand.table")
"""Makes a message from a remark on a table."""
