"""Remarks on a table for readers of a result: how it was read, and anything unusual."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue("table", "evenhand.table")
"""Builds messages from the remarks on tables."""
