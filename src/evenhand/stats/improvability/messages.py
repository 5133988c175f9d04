"""Messages about the test rows of the improvability test."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue("improvability_stats", "evenhand.stats.improvability")
"""Makes a message about the rows."""
